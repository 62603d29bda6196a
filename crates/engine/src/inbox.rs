//! What people say while the engine is at work. A message is in the log before anybody is told that
//! it waits, so that it survives a crash like any other.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use tokio::sync::Notify;
use toolwright_llm::Content;
use toolwright_session::{QueueKind, Queued};

/// Commands that wait to be taken in. A face that sends more than this without a boundary in between
/// is not a person.
const CAPACITY: usize = 1_024;

/// The engine's ear while it works; shared with whoever talks to it.
#[derive(Default)]
pub struct Inbox {
    next: AtomicU64,
    waiting: Mutex<VecDeque<Command>>,
    arrived: Notify,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Command {
    Say(Queued),
    Withdraw(u64),
    Compact,
}

impl Inbox {
    /// Ids go on behind those that wait: a message that was delivered or taken back has no use for its own.
    pub(crate) fn behind(queued: &[Queued]) -> Self {
        let next = queued.iter().map(|message| message.id + 1).max().unwrap_or(0);
        Self { next: AtomicU64::new(next), ..Self::default() }
    }

    /// Says something that the model sees at the next boundary: calls that have not begun are
    /// skipped. Nothing is returned if the inbox is full.
    pub fn steer(&self, content: Vec<Content>) -> Option<u64> {
        self.say(QueueKind::Steer, content)
    }

    /// Says something that begins a turn of its own after this one.
    pub fn follow_up(&self, content: Vec<Content>) -> Option<u64> {
        self.say(QueueKind::FollowUp, content)
    }

    /// Takes a message back that the model has not seen yet.
    pub fn withdraw(&self, id: u64) {
        self.push(Command::Withdraw(id));
    }

    /// Makes room at the next boundary.
    pub fn compact(&self) {
        self.push(Command::Compact);
    }

    fn say(&self, kind: QueueKind, content: Vec<Content>) -> Option<u64> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        self.push(Command::Say(Queued { id, kind, content })).then_some(id)
    }

    fn push(&self, command: Command) -> bool {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.len() >= CAPACITY {
            return false;
        }
        waiting.push_back(command);
        drop(waiting);
        self.arrived.notify_one();
        true
    }

    pub(crate) async fn arrived(&self) {
        self.arrived.notified().await;
    }

    pub(crate) fn take(&self) -> VecDeque<Command> {
        std::mem::take(&mut *self.waiting.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
