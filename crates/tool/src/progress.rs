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

    /// The newest text; what is left of a tool that never came back.
    pub(crate) fn newest(&self) -> String {
        self.shared.newest.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Passes updates on for as long as it is polled.
    pub(crate) async fn pass_on(&self, position: usize, updates: &mpsc::Sender<Update>) {
        loop {
            self.shared.changed.notified().await;
            let update = Update::Progress { position, text: self.newest() };
            if updates.send(update).await.is_err() {
                return std::future::pending().await;
            }
            tokio::time::sleep(PAUSE).await;
        }
    }
}
