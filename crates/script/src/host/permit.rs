//! Leave to do something, held while it happens.

use futures_util::future::BoxFuture;
use tokio::runtime::Handle;

/// What its giver wants to happen afterwards happens whichever way the work ends: done, failed, or cut off
/// because nobody waits for it any more.
#[must_use]
#[derive(Default)]
pub struct Permit(Option<BoxFuture<'static, ()>>);

impl Permit {
    pub fn with_end(end: impl Future<Output = ()> + Send + 'static) -> Self {
        Self(Some(Box::pin(end)))
    }

    /// Comes back when all of it has happened.
    pub(crate) async fn end(mut self) {
        if let Some(end) = self.0.take() {
            // In a task of its own: whoever waits here may be cut off too.
            tokio::spawn(end).await.ok();
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        // Without a runtime the process ends, and nobody is left to be told.
        if let (Some(end), Ok(runtime)) = (self.0.take(), Handle::try_current()) {
            runtime.spawn(end);
        }
    }
}
