use super::*;

fn text(delta: &str) -> Input {
    Input::Engine(Box::new(Event::Text { delta: delta.to_owned() }))
}

fn said(message: Option<Message>) -> String {
    match message {
        Some(Message::Input(Input::Engine(event))) => match *event {
            Event::Text { delta } => delta,
            Event::CallProgress { text, .. } => text,
            _ => "another event".to_owned(),
        },
        Some(_) => "another message".to_owned(),
        None => "nothing".to_owned(),
    }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().build().unwrap()
}

#[test]
fn pieces_of_a_text_become_one_while_they_wait_and_nothing_overtakes() {
    let (mailbox, inbox) = mailbox().unwrap();
    runtime().block_on(async {
        for n in 0..2_000 {
            mailbox.send(text(&(n % 10).to_string())).await.unwrap();
        }
        let progress = |text: &str| {
            let text = text.to_owned();
            Input::Engine(Box::new(Event::CallProgress { position: 1, text }))
        };
        mailbox.send(progress("one line")).await.unwrap();
        mailbox.send(progress("one line\nand another")).await.unwrap();
        mailbox.send(text("after it")).await.unwrap();
    });
    assert_eq!(said(inbox.take()), "0123456789".repeat(200));
    assert_eq!(said(inbox.take()), "one line\nand another");
    assert_eq!(said(inbox.take()), "after it");
    assert_eq!(said(inbox.take()), "nothing");
}

#[test]
fn a_text_without_end_is_taken_in_pieces_of_a_bounded_size() {
    let (mailbox, inbox) = mailbox().unwrap();
    let piece = "x".repeat(JOINED_CAP_BYTES / 2 + 1);
    runtime().block_on(async {
        for _ in 0..3 {
            mailbox.send(text(&piece)).await.unwrap();
        }
    });
    for _ in 0..3 {
        assert_eq!(said(inbox.take()).len(), piece.len());
    }
}

#[test]
fn whoever_sends_too_much_waits_until_there_is_room_and_summonses_pass() {
    let (mailbox, inbox) = mailbox().unwrap();
    runtime().block_on(async {
        // Steps cannot be joined.
        let step = || Input::Engine(Box::new(Event::StepStarted));
        for _ in 0..AHEAD {
            mailbox.send(step()).await.unwrap();
        }
        let mut late = Box::pin(mailbox.send(step()));
        let now = std::future::poll_fn(|context| {
            std::task::Poll::Ready(late.as_mut().poll(context).is_ready())
        });
        assert!(!now.await);
        mailbox.summon(Summons::Quit);
        mailbox.summon(Summons::Resized);
        let summoned = inbox.summoned();
        assert!(summoned.quit && summoned.resized && !summoned.suspend);
        assert!(!inbox.summoned().quit);
        for _ in 0..=AHEAD / 2 {
            inbox.take().unwrap();
        }
        late.await.unwrap();
    });
}

#[test]
fn a_mailbox_that_nobody_reads_any_more_takes_nothing_and_holds_up_nobody() {
    let (mailbox, inbox) = mailbox().unwrap();
    drop(inbox);
    assert!(runtime().block_on(mailbox.send(text("x"))).is_err());
    mailbox.leave(Message::Input(Input::Tick));
    assert!(mailbox.0.lock().messages.is_empty());
}
