//! The kinds of log entries. A kind is never removed and a field's meaning never changes: files
//! from years ago must open.

use serde::{Deserialize, Serialize};
use toolwright_llm::{Content, Failure, Finish, Origin, Usage};

use crate::step::{Outcome, ReplyPart};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", content = "data", rename_all = "snake_case")]
pub enum Entry {
    /// Always the first entry of a file.
    Session(Header),
    Prompt {
        content: Vec<Content>,
        agent: String,
        model: Origin,
    },
    /// The system prompt, frozen for the rest of the session: changing it would void the provider's
    /// cache of everything behind it.
    Brief {
        agent: String,
        system: String,
    },
    /// Something that we tell the model between its steps; not a person's words.
    Note {
        text: String,
    },
    /// A request is about to be sent.
    StepStarted {
        model: Origin,
    },
    /// Part of an answer that was shown before the answer was whole. Only read back when the
    /// `reply` that repeats it never came.
    Delta {
        kind: DeltaKind,
        text: String,
    },
    /// The whole answer. Its calls are pending from here on.
    Reply {
        parts: Vec<ReplyPart>,
        usage: Usage,
        finish: Finish,
        /// US dollars, where the price was known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost: Option<f64>,
    },
    /// The answer never became whole.
    StepFailed {
        failure: Failure,
        usage: Usage,
    },
    /// The call at this position of the reply is about to run: written before its effect.
    CallStarted {
        call: usize,
        tool: String,
        summary: String,
        /// Whether it may change something; a call that only reads is harmless to repeat.
        effects: bool,
        decision: String,
    },
    CallSettled {
        call: usize,
        outcome: Outcome,
    },
    TurnEnded {
        status: TurnStatus,
    },
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Header {
    pub session: String,
    pub directory: String,
    /// Version of the program that made the file.
    pub made_by: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forked_from: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeltaKind {
    Text,
    Reasoning,
}

/// How a turn (a prompt and all steps that answer it) came to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnStatus {
    Done,
    Failed,
    Denied,
    OutOfBudget,
    Interrupted,
}
