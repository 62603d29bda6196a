//! Clears old outputs away while a session is at work: after its first answer, so that nothing waits
//! for it on the way there, and beside the work, so that nothing waits for it later.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;

use futures_util::future::BoxFuture;
use toolwright_engine::Journal;
use toolwright_session::{
    Entry, EntryId, Log, LogError, Mark, MoveReason, Retention, Session, Store,
};

/// A session's log that has the store swept when the first answer is in it.
pub(crate) struct Housekeeper {
    log: Log,
    sweep: Option<(Store, Retention)>,
    /// Ends the sweep with the session: whatever is left is for another day.
    stop: Arc<AtomicBool>,
}

impl Housekeeper {
    pub(crate) fn new(log: Log, store: Store, retention: Retention) -> Self {
        Self { log, sweep: Some((store, retention)), stop: Arc::default() }
    }

    fn begin(&mut self) {
        let Some((store, retention)) = self.sweep.take() else { return };
        let stop = Arc::clone(&self.stop);
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn_blocking(move || {
                store.sweep_if_due(retention, SystemTime::now(), &stop);
            });
        }
    }
}

impl Drop for Housekeeper {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

impl Journal for Housekeeper {
    fn append(&mut self, entry: &Entry) -> Result<Mark, LogError> {
        let mark = Journal::append(&mut self.log, entry)?;
        if matches!(entry, Entry::Reply { .. }) {
            self.begin();
        }
        Ok(mark)
    }

    fn move_to(&mut self, target: EntryId, why: MoveReason) -> Result<Session, LogError> {
        Journal::move_to(&mut self.log, target, why)
    }

    fn sync(&mut self) -> BoxFuture<'static, Result<(), LogError>> {
        Journal::sync(&mut self.log)
    }
}
