//! `tw run`: one prompt, headless, with an exit status that tells the truth.

mod ask;
mod input;
mod json;
mod text;

use std::io::IsTerminal;
use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;
use toolwright::{
    CancellationToken, Desk, DeskOptions, Event, Selection, SessionChoice, TurnEnd, Workbench,
};

use crate::args::{Format, Run, Shared};
use crate::exit::{Exit, Problem};
use crate::terminal::Style;

/// Events that the printer may lag behind before the loop waits for it.
const EVENTS_AHEAD: usize = 256;

/// Something that shows a run.
trait Face {
    /// Before the first event. A face that cannot write any more says so with an error.
    fn begin(&mut self, desk: &Desk) -> std::io::Result<()>;
    fn event(&mut self, event: &Event) -> std::io::Result<()>;
    /// Called now and then while nothing happens.
    fn tick(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

pub fn directory(shared: &Shared) -> std::path::PathBuf {
    shared.dir.clone().unwrap_or_else(|| std::path::PathBuf::from("."))
}

pub async fn run(shared: &Shared, options: Run) -> Result<Exit, Problem> {
    if options.fork && !options.resume && options.session.is_none() {
        return Err(Problem::usage("--fork needs a session to copy: add -c or -s ID"));
    }
    let workbench = Workbench::open(&directory(shared), shared.trust)?;
    let style = Style::for_stderr();
    for warning in &workbench.config.warnings {
        eprintln!("{}", style.attention(&format!("! {warning}")));
    }
    let content = input::prompt(&options).await?;
    let (sender, events) = mpsc::channel(EVENTS_AHEAD);
    let session = match (&options.session, options.resume) {
        (Some(id), _) => SessionChoice::Id(id.clone()),
        (None, true) => SessionChoice::Latest,
        (None, false) => SessionChoice::New,
    };
    if content.is_empty() && session == SessionChoice::New {
        return Err(Problem::usage(
            "there is nothing to do: give a prompt, for example  tw run \"What is this project?\"",
        ));
    }
    // A person can be asked where both the question and the answer have a terminal.
    let interactive = options.format == Format::Text
        && std::io::stdin().is_terminal()
        && std::io::stderr().is_terminal();
    let desk = workbench
        .desk(DeskOptions {
            model: options.model.clone(),
            agent: options.agent.clone(),
            session,
            fork: options.fork,
            auto: options.auto,
            asker: interactive.then(|| sender.clone()),
            steps: options.max_steps,
            time: options.timeout.map(Duration::from_secs),
        })
        .await?;
    if content.is_empty() && !desk.engine.session().is_open() {
        return Err(Problem::usage(
            "the session has nothing left to do: give a prompt to go on with it",
        ));
    }
    let mut face: Box<dyn Face> = match options.format {
        Format::Text => Box::new(text::TextFace::new(style, options.thinking)),
        Format::Json => Box::new(json::JsonFace::new(desk.engine.session(), options.thinking)),
    };
    for notice in &desk.notices {
        eprintln!("{}", style.attention(&format!("! {notice}")));
    }
    if desk.chosen == Selection::Demo && options.format == Format::Text {
        eprintln!(
            "{}",
            style.attention("! no key and no local server found: this is the built-in demo model")
        );
    }
    // A reader that is gone before anything was printed: nothing has been done yet.
    if face.begin(&desk).is_err() {
        return Ok(Exit::Failed);
    }
    let end = drive(desk, content, sender, events, face.as_mut()).await;
    Ok(Exit::from(end.status))
}

/// Runs the turn and shows it until it has ended.
async fn drive(
    desk: Desk,
    content: Vec<toolwright::llm::Content>,
    sender: mpsc::Sender<Event>,
    mut events: mpsc::Receiver<Event>,
    face: &mut dyn Face,
) -> TurnEnd {
    let Desk { mut engine, questions, .. } = desk;
    let cancel = CancellationToken::new();
    let asked_to_stop = cancel.clone();
    let turn = async {
        if content.is_empty() {
            engine.resume(&cancel, &sender).await
        } else {
            engine.prompt(content, &cancel, &sender).await
        }
    };
    tokio::pin!(turn);
    let mut stop = StopSignals::listen();
    let mut tick = tokio::time::interval(Duration::from_millis(100));
    let mut end: Option<TurnEnd> = None;
    let mut asker = ask::Asker::new(questions);
    loop {
        tokio::select! {
            biased;
            () = stop.next() => {
                if asked_to_stop.is_cancelled() {
                    // Asked twice: the person does not want to wait.
                    toolwright::end_everything();
                    std::process::exit(Exit::Interrupted.code());
                }
                asked_to_stop.cancel();
            }
            Some(event) = events.recv() => {
                let shown = face.event(&event);
                if let Event::Question { id, question } = event {
                    asker.ask(id, &question);
                }
                // Nobody reads any more: what cannot be shown should not go on.
                if shown.is_err() {
                    asked_to_stop.cancel();
                }
            }
            finished = &mut turn, if end.is_none() => end = Some(finished),
            _ = tick.tick() => if face.tick().is_err() {
                asked_to_stop.cancel();
            },
        }
        // The turn's last event has been sent by now: show what is still in the channel.
        if let Some(end) = end.take_if(|_| events.is_empty()) {
            return end;
        }
    }
}

/// SIGINT, SIGTERM and SIGHUP, all of them a wish to stop.
struct StopSignals(Vec<tokio::signal::unix::Signal>);

impl StopSignals {
    fn listen() -> Self {
        let kinds = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
        Self(kinds.into_iter().filter_map(|kind| signal(kind).ok()).collect())
    }

    async fn next(&mut self) {
        std::future::poll_fn(|context| {
            let ready = self.0.iter_mut().any(|s| s.poll_recv(context).is_ready());
            if ready { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
        })
        .await;
    }
}
