//! The terminal interface: commands in, events out, and no agent logic.
//!
//! Three parts: `app` is a state machine without a terminal, `host` drives the engine for it, and
//! `shell` has the terminal.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod app;
mod blocks;
mod diff;
mod drop;
mod editor;
mod files;
mod flow;
mod fuzzy;
mod highlight;
mod host;
mod input;
mod key;
mod keymap;
mod mailbox;
mod markdown;
mod picture;
mod prefs;
mod screen;
mod shell;
mod style;
mod terminal;
mod theme;
mod vim;
mod width;

use std::path::PathBuf;
use std::pin::Pin;
use std::time::Duration;

use rustix::process::Signal;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{mpsc, oneshot};
use toolwright::{SessionChoice, SetupError, Workbench};

use crate::host::Host;
use crate::mailbox::{Mailbox, Message, Summons};
use crate::prefs::Places;
use crate::shell::Shell;
use crate::terminal::Terminal;

/// How long the interface may take to leave the terminal as it was.
const GRACE: Duration = Duration::from_secs(1);

const DRAWING: &str = "tw-ui";

/// How the interface begins.
#[derive(Debug, Clone)]
pub struct Start {
    pub directory: PathBuf,
    pub trust: bool,
    pub model: Option<String>,
    pub agent: Option<String>,
    pub session: SessionChoice,
    pub fork: bool,
    /// Every *ask* becomes *allow*.
    pub auto: bool,
    /// Stands in the prompt at the beginning.
    pub prompt: Option<String>,
    pub doctor: Doctor,
}

/// Tells what was found on this machine; whoever wires us up knows more than we do.
#[derive(Debug, Clone, Copy)]
pub struct Doctor(pub fn(Workbench) -> Pin<Box<dyn Future<Output = String> + Send>>);

/// Why it ended, where the person did not just leave.
#[derive(Debug)]
pub enum Ended {
    /// A signal, or the terminal is gone.
    Interrupted,
    Setup(SetupError),
    Terminal(std::io::Error),
    /// The thread that draws is gone; it has said why.
    Crashed,
}

/// Shows the interface until the person leaves. Paints before it loads anything.
pub async fn run(start: Start) -> Result<(), Ended> {
    let (mailbox, inbox) = mailbox::mailbox().map_err(Ended::Terminal)?;
    let (orders, taken) = mpsc::unbounded_channel();
    let (done, mut finished) = oneshot::channel();
    terminal::watch_for_panics(DRAWING);
    let own = mailbox.clone();
    let draw = move || {
        let begun =
            Terminal::enter().and_then(|terminal| Shell::begin(terminal, own, inbox, orders));
        let result = begun.and_then(Shell::run);
        // Whoever waits for it may have had enough.
        done.send(result).ok();
    };
    std::thread::Builder::new().name(DRAWING.to_owned()).spawn(draw).map_err(Ended::Terminal)?;
    // Also where this thread panics.
    let _restored = Restored;
    let work = work(start, mailbox.clone(), taken);
    tokio::pin!(work);
    let mut stop = Signals::listen(&[
        SignalKind::interrupt(),
        SignalKind::terminate(),
        SignalKind::hangup(),
        SignalKind::quit(),
    ]);
    let mut resized = Signals::listen(&[SignalKind::window_change()]);
    let own = |signal: Signal| SignalKind::from_raw(signal.as_raw());
    let mut suspend = Signals::listen(&[own(Signal::TSTP)]);
    let mut resumed = Signals::listen(&[own(Signal::CONT)]);
    let mut worked = None;
    loop {
        tokio::select! {
            biased;
            result = &mut finished => {
                let result = match result {
                    Ok(Ok(())) => Ok(()),
                    Ok(Err(problem)) => Err(Ended::Terminal(problem)),
                    Err(_) => Err(Ended::Crashed),
                };
                if worked.is_none() {
                    // The turn at work is cancelled and its session closed.
                    worked = tokio::time::timeout(GRACE * 3, &mut work).await.ok();
                }
                return match (result, worked) {
                    (_, Some(Err(problem))) => Err(Ended::Setup(problem)),
                    (result, _) => result,
                };
            }
            () = stop.next() => {
                mailbox.summon(Summons::Quit);
                let left = tokio::time::timeout(GRACE, &mut finished).await;
                if worked.is_none() {
                    tokio::time::timeout(GRACE, &mut work).await.ok();
                }
                drop(left);
                return Err(Ended::Interrupted);
            }
            () = resized.next() => mailbox.summon(Summons::Resized),
            () = suspend.next() => mailbox.summon(Summons::Suspend),
            () = resumed.next() => mailbox.summon(Summons::Resumed),
            result = &mut work, if worked.is_none() => {
                if result.is_err() {
                    mailbox.summon(Summons::Quit);
                }
                worked = Some(result);
            }
        }
    }
}

/// Everything but the terminal.
async fn work(
    start: Start,
    mailbox: Mailbox,
    orders: mpsc::UnboundedReceiver<app::Order>,
) -> Result<(), SetupError> {
    // Let the first picture be made before this thread competes for the processor.
    tokio::task::yield_now().await;
    let bench = Workbench::open(&start.directory, start.trust)?;
    let directory = bench.workspace.directory().to_owned();
    let places = Places::new(&bench.paths.config, &bench.paths.data, &directory);
    mailbox.leave(Message::Places(places, directory));
    Host::new(start, bench, mailbox, orders).run().await
}

struct Restored;

impl Drop for Restored {
    fn drop(&mut self) {
        terminal::restore();
    }
}

struct Signals(Vec<tokio::signal::unix::Signal>);

impl Signals {
    fn listen(kinds: &[SignalKind]) -> Self {
        Self(kinds.iter().filter_map(|kind| signal(*kind).ok()).collect())
    }

    async fn next(&mut self) {
        std::future::poll_fn(|context| {
            let ready = self.0.iter_mut().any(|s| s.poll_recv(context).is_ready());
            if ready { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
        })
        .await;
    }
}
