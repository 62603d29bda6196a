//! Calls that a running call makes: planned, judged and run like any other, by the same pipeline.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::Value;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use toolwright_session::Outcome;

use crate::batch::{EXCLUDED, Inside};
use crate::pipeline::{CallRequest, Pipeline, Update, failed};
use crate::tool::{RunContext, ToolError};

/// A running call's way to the other tools.
pub struct InnerCalls {
    pipeline: Pipeline,
    cancel: CancellationToken,
    /// Whose calls they are, and which cannot be made from within.
    outer: String,
    made: AtomicUsize,
}

impl RunContext {
    pub fn inner_calls(&self) -> InnerCalls {
        let gate = Inside::new(&self.pipeline, Vec::new(), self.door.position);
        // The cache speaks of steps, and these calls are not steps.
        let pipeline =
            Pipeline { gate: Arc::new(gate), cache: None, keeper: None, ..self.pipeline.clone() };
        let (cancel, outer) = (self.cancel.clone(), self.door.tool.clone());
        InnerCalls { pipeline, cancel, outer, made: AtomicUsize::new(0) }
    }
}

impl InnerCalls {
    /// What can be called.
    pub fn names(&self) -> Vec<String> {
        let mut names = self.pipeline.registry.names();
        names.retain(|name| *name != self.outer && !EXCLUDED.contains(&name.as_str()));
        names
    }

    /// One call to its end. Fails only where the turn itself cannot go on.
    pub async fn call(&self, name: &str, arguments: &Value) -> Result<Outcome, ToolError> {
        let at = self.made.fetch_add(1, Ordering::Relaxed);
        let id = format!("{}/{at}", self.outer);
        let request =
            CallRequest { id, name: name.to_owned(), arguments: arguments.to_string(), cut: false };
        if let Ok(readable) = self.pipeline.read(&request) {
            let tool = readable.tool();
            if tool == self.outer || EXCLUDED.contains(&tool) {
                return Ok(failed(tool, format!("{tool} cannot be called from {}.", self.outer)));
            }
        }
        let (sender, mut updates) = mpsc::channel(8);
        let running = self.pipeline.run_calls(vec![request], self.cancel.clone(), sender);
        let watching = async {
            let mut settled = Err(ToolError::Fatal("the call gave no outcome".to_owned()));
            while let Some(update) = updates.recv().await {
                match update {
                    // The outer call is on record as one that may change something.
                    Update::Starting { go, .. } => {
                        go.send(()).ok();
                    }
                    // What the outer call did to files is noted as a whole.
                    Update::Progress { .. } | Update::Changed(_) => {}
                    Update::Settled { outcome, .. } => settled = Ok(outcome),
                    Update::Fatal { message } => settled = Err(ToolError::Fatal(message)),
                }
            }
            settled
        };
        let ((), settled) = tokio::join!(running, watching);
        settled
    }
}
