//! Where others leave messages for the thread that has the terminal. It is bounded, and what can be
//! said at once is joined while it waits: a model's words come in hundreds of pieces between two
//! pictures.

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use toolwright::Event;

use crate::app::{Input, News};
use crate::picture::Canvas;
use crate::prefs::Places;

/// Messages that wait before whoever sends them does.
const AHEAD: usize = 512;
/// Pieces of a text are joined up to here: taking one message in must stay a matter of a moment.
const JOINED_CAP_BYTES: usize = 8 << 10;

pub enum Message {
    Input(Input),
    Places(Places, PathBuf),
    #[cfg(test)]
    Do(Box<dyn FnOnce() + Send>),
}

/// What gets through however full it is; said twice is said once.
#[derive(Debug, Clone, Copy)]
pub enum Summons {
    Quit,
    /// The terminal has another size.
    Resized,
    /// Somebody wants us to stop for a while.
    Suspend,
    /// The process goes on after it stood still.
    Resumed,
}

/// Those that came since the last look.
#[derive(Debug, Default, Clone, Copy)]
pub struct Summoned {
    pub quit: bool,
    pub resized: bool,
    pub suspend: bool,
    pub resumed: bool,
}

/// The interface is gone.
#[derive(Debug)]
pub struct Gone;

#[derive(Clone)]
pub struct Mailbox(Arc<Shared>);

/// The side that reads; the mailbox closes with it.
pub struct Inbox {
    shared: Arc<Shared>,
    bell: UnixStream,
}

struct Shared {
    waiting: Mutex<Waiting>,
    room: Notify,
    bell: UnixStream,
    rung: AtomicBool,
    /// What the terminal can show of images.
    canvas: Mutex<Canvas>,
}

#[derive(Default)]
struct Waiting {
    messages: VecDeque<Message>,
    summoned: Summoned,
    /// Somebody waits for room.
    held: bool,
    closed: bool,
}

pub fn mailbox() -> std::io::Result<(Mailbox, Inbox)> {
    let (ours, theirs) = UnixStream::pair()?;
    ours.set_nonblocking(true)?;
    theirs.set_nonblocking(true)?;
    let shared = Arc::new(Shared {
        waiting: Mutex::default(),
        room: Notify::new(),
        bell: ours,
        rung: AtomicBool::new(false),
        canvas: Mutex::default(),
    });
    let inbox = Inbox { shared: Arc::clone(&shared), bell: theirs };
    Ok((Mailbox(shared), inbox))
}

impl Mailbox {
    /// Waits while the thread is far behind.
    pub async fn send(&self, input: Input) -> Result<(), Gone> {
        let mut left = Some(input);
        while let Some(input) = left.take() {
            // Before the look, so that room which is made in between is heard of.
            let room = self.0.room.notified();
            left = self.offer(input)?;
            if left.is_some() {
                room.await;
            }
        }
        Ok(())
    }

    /// Does not wait: for the few that nobody sends many of.
    pub fn leave(&self, message: Message) {
        let mut waiting = self.0.lock();
        if !waiting.closed {
            waiting.messages.push_back(message);
            drop(waiting);
            self.0.ring();
        }
    }

    pub fn set_canvas(&self, canvas: Canvas) {
        *self.0.canvas.lock().unwrap_or_else(PoisonError::into_inner) = canvas;
    }

    pub fn canvas(&self) -> Canvas {
        *self.0.canvas.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn summon(&self, what: Summons) {
        let mut waiting = self.0.lock();
        let all = &mut waiting.summoned;
        match what {
            Summons::Quit => all.quit = true,
            Summons::Resized => all.resized = true,
            Summons::Suspend => all.suspend = true,
            Summons::Resumed => all.resumed = true,
        }
        drop(waiting);
        self.0.ring();
    }

    /// Gives it back where there is no room.
    fn offer(&self, input: Input) -> Result<Option<Input>, Gone> {
        let mut waiting = self.0.lock();
        if waiting.closed {
            return Err(Gone);
        }
        let input = match waiting.messages.back_mut() {
            Some(Message::Input(last)) => match join(last, input) {
                Some(input) => input,
                None => return Ok(None),
            },
            _ => input,
        };
        if waiting.messages.len() >= AHEAD {
            waiting.held = true;
            return Ok(Some(input));
        }
        waiting.messages.push_back(Message::Input(input));
        drop(waiting);
        self.0.ring();
        Ok(None)
    }
}

/// Makes one of two where both say the same as one; otherwise the second comes back.
fn join(last: &mut Input, next: Input) -> Option<Input> {
    match (last, next) {
        (Input::Engine(last), Input::Engine(next)) => match (last.as_mut(), *next) {
            (Event::Text { delta: all }, Event::Text { delta })
            | (Event::Reasoning { delta: all }, Event::Reasoning { delta })
                if all.len() + delta.len() <= JOINED_CAP_BYTES =>
            {
                all.push_str(&delta);
                None
            }
            // Each tells all that is to be seen.
            (
                Event::CallProgress { position: own, text: all },
                Event::CallProgress { position, text },
            ) if *own == position => {
                *all = text;
                None
            }
            (_, next) => Some(Input::Engine(Box::new(next))),
        },
        (Input::News(last), Input::News(next)) => match (last.as_mut(), *next) {
            (News::ShellSaid(all), News::ShellSaid(text)) => {
                *all = text;
                None
            }
            (_, next) => Some(Input::News(Box::new(next))),
        },
        (_, next) => Some(next),
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ring(&self) {
        if !self.rung.swap(true, Ordering::SeqCst) {
            // Full means that it has been rung often enough.
            (&self.bell).write_all(b"!").ok();
        }
    }
}

impl Inbox {
    /// Readable when there is something new.
    pub fn bell(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }

    /// Stops the bell; to be called before looking at what came.
    pub fn hush(&self) {
        let mut bytes = [0_u8; 64];
        while (&self.bell).read(&mut bytes).is_ok_and(|count| count == bytes.len()) {}
        self.shared.rung.store(false, Ordering::SeqCst);
    }

    pub fn summoned(&self) -> Summoned {
        std::mem::take(&mut self.shared.lock().summoned)
    }

    pub fn take(&self) -> Option<Message> {
        let mut waiting = self.shared.lock();
        let message = waiting.messages.pop_front();
        if waiting.held && waiting.messages.len() <= AHEAD / 2 {
            waiting.held = false;
            self.shared.room.notify_waiters();
        }
        message
    }
}

impl Drop for Inbox {
    fn drop(&mut self) {
        let mut waiting = self.shared.lock();
        waiting.closed = true;
        waiting.messages.clear();
        self.shared.room.notify_waiters();
    }
}

#[cfg(test)]
#[path = "mailbox_tests.rs"]
mod tests;
