//! Work that goes on beside everything else. It belongs to the host, and ends with it.

use std::sync::PoisonError;

use tokio::task::AbortHandle;

use super::Host;
use crate::app::{Input, News};

impl Host {
    pub(super) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) -> AbortHandle {
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        // Those that are done take room and nothing else.
        while tasks.try_join_next().is_some() {}
        tasks.spawn(work)
    }

    /// Tells what comes of it.
    pub(super) fn beside<F: Future<Output = Vec<News>> + Send + 'static>(
        &self,
        work: F,
    ) -> AbortHandle {
        let ui = self.ui.clone();
        self.spawn(async move {
            for news in work.await {
                ui.send(Input::News(Box::new(news))).await.ok();
            }
        })
    }
}
