//! What faces are told, and what they may answer.

use std::sync::Arc;
use std::time::Duration;

use toolwright_llm::{Failure, Finish, Usage};
use toolwright_permission::{Grant, Mode, Offer};
use toolwright_session::{Outcome, QueueKind, TurnStatus};
use toolwright_tool::{Inquiry, Question};

/// Everything that a face needs to show a turn. By the time an event is sent, what it tells is in
/// the session's log.
#[derive(Debug, Clone)]
pub enum Event {
    StepStarted,
    Text {
        delta: String,
    },
    Reasoning {
        delta: String,
    },
    /// A block of text (not its deltas) once it is whole.
    TextDone {
        text: String,
    },
    ReasoningDone {
        text: String,
    },
    /// The model has begun to write a call; its arguments are still coming.
    CallAnnounced {
        name: String,
    },
    CallStarted {
        position: usize,
        call: String,
        tool: String,
        summary: String,
    },
    CallProgress {
        position: usize,
        text: String,
    },
    CallSettled {
        position: usize,
        call: String,
        /// As the model wrote them.
        arguments: String,
        outcome: Outcome,
    },
    /// Somebody has to decide; see [`crate::Questions::answer`].
    Question {
        id: u64,
        question: Question,
        /// Why it is asked, and what "always" could mean.
        offer: Offer,
    },
    /// Somebody has to answer; see [`crate::Questions::reply`].
    Inquiry {
        id: u64,
        inquiry: Inquiry,
    },
    /// A question or an inquiry that nobody waits for any more.
    QuestionClosed {
        id: u64,
    },
    /// Somebody changed how much is done without a question.
    ModeChanged {
        mode: Mode,
    },
    Retrying {
        attempt: u32,
        delay: Duration,
        cause: Failure,
    },
    /// Something that a person should know and need not act on.
    Notice {
        text: String,
    },
    /// A message waits for its time.
    Queued {
        id: u64,
        kind: QueueKind,
    },
    /// A queued message was taken back.
    Withdrawn {
        id: u64,
    },
    /// A queued message is now part of the conversation.
    Delivered {
        id: u64,
    },
    /// Old outputs are no longer sent to the model.
    Pruned {
        outputs: usize,
        tokens: u64,
    },
    /// Notes on the beginning of the conversation are being made.
    Compacting {
        reason: String,
    },
    /// The notes stand in its place now; the numbers are tokens, about.
    Compacted {
        before: u64,
        after: u64,
    },
    StepEnded {
        usage: Usage,
        finish: Finish,
        /// US dollars, where the price is known.
        cost: Option<f64>,
    },
    /// The last event of a turn.
    TurnEnded(TurnEnd),
    /// Nothing is left to do: sent by whoever drives turns, after the last of them.
    Idle,
}

/// How a turn ended, with what a caller needs to report it truthfully.
#[derive(Debug, Clone)]
pub struct TurnEnd {
    pub status: TurnStatus,
    /// Why, where it did not end well.
    pub problem: Option<String>,
    pub advice: Option<&'static str>,
    /// The last text of the model.
    pub answer: Arc<str>,
    pub usage: Usage,
    /// US dollars, where the price of every step was known.
    pub cost: Option<f64>,
    pub steps: usize,
    pub denials: Vec<Denial>,
}

#[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
pub struct Denial {
    pub tool: String,
    pub summary: String,
    /// `rule`, `person` or `nobody`.
    pub by: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    Once,
    /// Also for what is like it, as far and for as long as the grant says.
    Always(Grant),
    Reject {
        message: Option<String>,
    },
}

impl Answer {
    /// What is usual for the tool, while this run goes on.
    pub fn always() -> Self {
        Self::Always(Grant::default())
    }
}
