//! Calls that a server works on as tasks: begun, looked after, and fetched when they are done.
//!
//! Which tools want that is said in a field that the SDK no longer knows. The protocol has another sign:
//! a plain call of such a tool is refused as an unknown method.

use std::time::Duration;

use rmcp::model::{ClientRequest, CustomRequest, JsonObject};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::live::{CallError, LONGEST_CALL, Live, Waiting};

/// How long a server is asked to keep what came of it: an hour.
const KEEP_MS: u64 = 60 * 60 * 1_000;

/// How often a task is looked at when its server does not say, and the least and most that it may say.
const USUAL_PAUSE_MS: u64 = 500;
const PAUSES_MS: std::ops::RangeInclusive<u64> = 50..=5_000;

/// Whether an answer is that refusal, put into the words of a tool's own error as the TypeScript SDK
/// does. Its words to the letter and for this tool: what only sounds like them may have had an effect,
/// and is not called again.
pub(crate) fn is_wanted(answer: &Value, tool: &str) -> bool {
    let words = answer["content"][0]["text"].as_str().unwrap_or_default();
    let refusal = format!("MCP error -32601: Tool {tool} requires task augmentation");
    answer["isError"] == true && words.starts_with(&refusal)
}

fn request(method: &str, params: Value) -> ClientRequest {
    ClientRequest::CustomRequest(CustomRequest::new(method, Some(params)))
}

impl Live {
    /// `otherwise` is what the plain call came to; it stands if this leads nowhere either.
    pub(crate) async fn call_as_task(
        &self,
        name: &str,
        arguments: &JsonObject,
        waiting: &Waiting<'_>,
        otherwise: Result<Value, CallError>,
    ) -> Result<Value, CallError> {
        let task = json!({ "ttl": KEEP_MS });
        let params = json!({ "name": name, "arguments": arguments, "task": task });
        let begun = match self.plain(request("tools/call", params), waiting).await {
            Ok(begun) => begun,
            Err(CallError::Refused(_)) => return otherwise,
            Err(other) => return Err(other),
        };
        // Some answer at once after all.
        let Some(id) = begun["task"]["taskId"].as_str().or(begun["taskId"].as_str()) else {
            return if begun.get("content").is_some() { Ok(begun) } else { otherwise };
        };
        let named = json!({ "taskId": id });
        let following = self.follow(&begun["task"], &named, waiting);
        // However often it says that it works on it.
        let followed = tokio::time::timeout(LONGEST_CALL, following).await;
        match followed.unwrap_or(Err(CallError::TimedOut(LONGEST_CALL))) {
            Err(error @ (CallError::Interrupted | CallError::TimedOut(_))) => {
                // Nobody waits for it any more; if it is not heard, the server forgets it in time.
                let cancel = CancellationToken::new();
                let (known, timeout) = (waiting.known, waiting.timeout);
                let waiting = Waiting { known, timeout, cancel: &cancel };
                let told = self.plain(request("tasks/cancel", named), &waiting);
                tokio::time::timeout(Duration::from_secs(1), told).await.ok();
                Err(error)
            }
            other => other,
        }
    }

    async fn follow(
        &self,
        begun: &Value,
        named: &Value,
        waiting: &Waiting<'_>,
    ) -> Result<Value, CallError> {
        let mut state = begun.clone();
        loop {
            // One that needs something says what for while its result is waited for.
            if !matches!(state["status"].as_str(), Some("working" | "submitted")) {
                return self.plain(request("tasks/result", named.clone()), waiting).await;
            }
            if let Some((desk, words)) =
                waiting.known.call.desk.as_ref().zip(state["statusMessage"].as_str())
            {
                desk.progress.update(words);
            }
            let pause = state["pollInterval"].as_u64().unwrap_or(USUAL_PAUSE_MS);
            let pause = pause.clamp(*PAUSES_MS.start(), *PAUSES_MS.end());
            tokio::select! {
                () = tokio::time::sleep(Duration::from_millis(pause)) => {}
                () = waiting.cancel.cancelled() => return Err(CallError::Interrupted),
                () = self.ended.cancelled() => return Err(CallError::Ended),
            }
            state = self.plain(request("tasks/get", named.clone()), waiting).await?;
        }
    }
}

#[cfg(test)]
#[path = "tasks_tests.rs"]
mod tests;
