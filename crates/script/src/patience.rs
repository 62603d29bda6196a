//! How long a call may take, and what counts of it.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::Value;
use tokio::sync::watch;
use tokio::time::Instant;
use toolwright_tool::Plan;

use crate::host::{Guard, Permit};

/// How long a call may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// All in all.
    Whole(Duration),
    /// Without the time in which somebody decides about what the script asked for: people may take theirs.
    /// Only where they see the question, and can stop all of it.
    Own(Duration),
}

impl Limit {
    pub(crate) fn time(self) -> Duration {
        match self {
            Self::Whole(time) | Self::Own(time) => time,
        }
    }
}

/// Questions of one script that are being decided. One that waits for its answer without a promise holds up
/// all calls of the script, so what they have left is counted together.
#[derive(Clone)]
pub(crate) struct Patience(Arc<watch::Sender<usize>>);

impl Patience {
    pub(crate) fn new() -> Self {
        Self(Arc::new(watch::Sender::new(0)))
    }

    pub(crate) async fn run_out(&self, limit: Limit) {
        let mut left = match limit {
            Limit::Whole(time) => return tokio::time::sleep(time).await,
            Limit::Own(time) => time,
        };
        let mut asked = self.0.subscribe();
        loop {
            // It fails only without a sender, and that is ours.
            asked.wait_for(|count| *count == 0).await.ok();
            let since = Instant::now();
            tokio::select! {
                () = tokio::time::sleep(left) => return,
                _ = asked.wait_for(|count| *count > 0) => {
                    left = left.saturating_sub(since.elapsed());
                }
            }
        }
    }
}

struct Asking<'a>(&'a Patience);

impl<'a> Asking<'a> {
    fn begin(patience: &'a Patience) -> Self {
        patience.0.send_modify(|count| *count += 1);
        Self(patience)
    }
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        self.0.0.send_modify(|count| *count -= 1);
    }
}

/// Whoever decides for a script, with an eye on the time that it takes.
pub(crate) struct Timed {
    pub(crate) inner: Arc<dyn Guard>,
    pub(crate) patience: Patience,
}

impl Guard for Timed {
    fn ask<'a>(&'a self, plan: Plan) -> BoxFuture<'a, Result<Permit, String>> {
        async move {
            let _asking = Asking::begin(&self.patience);
            self.inner.ask(plan).await
        }
        .boxed()
    }

    fn progress(&self, text: &str) {
        self.inner.progress(text);
    }

    fn call_tool<'a>(
        &'a self,
        name: &'a str,
        input: Value,
    ) -> BoxFuture<'a, Result<Value, String>> {
        self.inner.call_tool(name, input)
    }
}
