//! How a running call is getting on: told to people at most ten times a second, the newest first.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, mpsc};

use crate::Update;
use crate::mask::Secrets;

/// Faster than this nobody reads.
const PAUSE: Duration = Duration::from_millis(100);

/// Where a tool says how far it is.
#[derive(Clone, Default)]
pub struct Progress {
    shared: Arc<Shared>,
    secrets: Secrets,
}

#[derive(Default)]
struct Shared {
    newest: Mutex<String>,
    /// Not passed on yet.
    notes: Mutex<Vec<String>>,
    changed: Notify,
}

impl Progress {
    pub(crate) fn masking(secrets: Secrets) -> Self {
        Self { secrets, ..Self::default() }
    }

    /// Never waits. What is replaced before it was shown is not missed: the newest says more.
    pub fn update(&self, text: impl AsRef<str>) {
        let text = self.secrets.mask(text.as_ref()).into_owned();
        *self.shared.newest.lock().unwrap_or_else(PoisonError::into_inner) = text;
        self.shared.changed.notify_one();
    }

    /// Something that must not be lost with the process: if the call never comes to its end, the model
    /// is told. Never waits.
    pub fn note(&self, text: impl AsRef<str>) {
        let text = self.secrets.mask(text.as_ref()).into_owned();
        self.shared.notes.lock().unwrap_or_else(PoisonError::into_inner).push(text);
        self.shared.changed.notify_one();
    }

    fn take_notes(&self) -> Vec<String> {
        std::mem::take(&mut *self.shared.notes.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The newest text; what is left of a tool that never came back.
    pub(crate) fn newest(&self) -> String {
        self.shared.newest.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Passes updates on for as long as it is polled.
    pub(crate) async fn pass_on(&self, position: usize, updates: &mpsc::Sender<Update>) {
        loop {
            self.shared.changed.notified().await;
            for text in self.take_notes() {
                // A receiver that is gone is seen below.
                let note = Update::Progress { position, text, keep: true };
                updates.send(note).await.ok();
            }
            let update = Update::Progress { position, text: self.newest(), keep: false };
            if updates.send(update).await.is_err() {
                return std::future::pending().await;
            }
            tokio::time::sleep(PAUSE).await;
        }
    }
}
