//! What a model's answer consists of, as it arrives.

use serde::{Deserialize, Serialize};
use std::time::Duration;

use crate::Failure;

/// One piece of an answer. `block` numbers the answer's blocks from 0 in order of appearance.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    Text {
        block: u32,
        delta: String,
    },
    Reasoning {
        block: u32,
        delta: String,
    },
    CallStart {
        block: u32,
        id: String,
        name: String,
    },
    CallArguments {
        block: u32,
        delta: String,
    },
    /// The whole call, where the finished item differs from what was streamed.
    CallReplace {
        block: u32,
        id: String,
        name: Option<String>,
        arguments: Option<String>,
    },
    /// The provider's words for not answering.
    Refusal {
        block: u32,
        delta: String,
    },
    /// Something that the provider did by itself (a search, a computation): shown and replayed to
    /// it, never run by us.
    ServerTool {
        block: u32,
        kind: String,
        id: Option<String>,
        name: Option<String>,
        /// The provider's own item.
        opaque: serde_json::Value,
    },
    /// Who answers, by the server's own account.
    Started {
        id: Option<String>,
        model: Option<String>,
    },
    /// The block is whole. A call whose block never ends must not run.
    BlockEnd {
        block: u32,
        opaque: Option<serde_json::Value>,
    },
    /// The totals so far, as understood and as sent; a later one replaces an earlier one.
    Usage {
        usage: Usage,
        raw: serde_json::Value,
    },
    /// Something that a person should know.
    Notice(String),
    /// Nothing of the answer had arrived; the request will be sent again after `delay`.
    Retrying {
        attempt: u32,
        delay: Duration,
        cause: Failure,
    },
    Finish(Finish),
    Failed(Failure),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finish {
    pub reason: FinishReason,
    /// The wire's own word.
    pub raw: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FinishReason {
    Stop,
    ToolCalls,
    /// Cut at the output limit.
    Length,
    ContentFilter,
    /// The provider interrupted its own work (a long search) and wants to be asked to go on.
    Pause,
    /// A word we do not know; the answer is taken as it is.
    Unknown,
}

/// Tokens, normalised: `input` is fresh input only, `output` includes reasoning.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    pub input: u64,
    pub output: u64,
    pub reasoning: u64,
    pub cache_read: u64,
    pub cache_write: u64,
}

impl std::ops::AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        self.input = self.input.saturating_add(other.input);
        self.output = self.output.saturating_add(other.output);
        self.reasoning = self.reasoning.saturating_add(other.reasoning);
        self.cache_read = self.cache_read.saturating_add(other.cache_read);
        self.cache_write = self.cache_write.saturating_add(other.cache_write);
    }
}

/// Appends a text delta, growing the event before it where it continues the same block, so that
/// the number of events follows the number of network reads and not the number of tokens.
pub(crate) fn push_text(out: &mut Vec<Event>, block: u32, text: &str) {
    match out.last_mut() {
        Some(Event::Text { block: last, delta }) if *last == block => delta.push_str(text),
        _ if text.is_empty() => {}
        _ => out.push(Event::Text { block, delta: text.to_owned() }),
    }
}

pub(crate) fn push_reasoning(out: &mut Vec<Event>, block: u32, text: &str) {
    match out.last_mut() {
        Some(Event::Reasoning { block: last, delta }) if *last == block => delta.push_str(text),
        _ if text.is_empty() => {}
        _ => out.push(Event::Reasoning { block, delta: text.to_owned() }),
    }
}

pub(crate) fn push_arguments(out: &mut Vec<Event>, block: u32, json: &str) {
    match out.last_mut() {
        Some(Event::CallArguments { block: last, delta }) if *last == block => delta.push_str(json),
        _ if json.is_empty() => {}
        _ => out.push(Event::CallArguments { block, delta: json.to_owned() }),
    }
}
