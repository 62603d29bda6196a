//! The kinds of log entries. A kind is never removed and a field's meaning never changes: files
//! from years ago must open.

use serde::{Deserialize, Serialize};
use toolwright_llm::{Content, Failure, Finish, Origin, Usage};

use crate::id::EntryId;
use crate::images::{Changed, Reversal};
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
        /// Said while the turn was under way: the turn goes on with it.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        steer: bool,
        /// The queued message that this is.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        queued: Option<u64>,
    },
    /// A message that came while the model was at work and waits for its time.
    Queued(Queued),
    /// A queued message was taken back.
    Unqueued {
        id: u64,
    },
    /// Outputs that are no longer sent to a model; people still see them.
    Pruned {
        calls: Vec<CallPlace>,
    },
    /// What came before `keep_from` is sent to a model as `summary` from here on.
    Compacted {
        summary: String,
        /// The first item of the session that is still sent as it was.
        keep_from: usize,
        reason: String,
        #[serde(default)]
        usage: Usage,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost: Option<f64>,
    },
    /// The system prompt, frozen for the rest of the session: changing it would void the provider's
    /// cache of everything behind it.
    Brief {
        agent: String,
        system: String,
    },
    /// From here on this much is done without a question.
    Mode {
        mode: String,
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
        #[serde(default, skip_serializing_if = "Touched::is_empty")]
        touched: Touched,
    },
    /// Something about a running call that must survive it, for a model that never gets its result.
    CallNoted {
        call: usize,
        text: String,
    },
    CallSettled {
        call: usize,
        outcome: Outcome,
    },
    /// Jobs that ended with the process that ran them.
    JobsEnded {
        jobs: Vec<String>,
    },
    TurnEnded {
        status: TurnStatus,
    },
    /// What follows continues this entry's parent, which need not be the line before it. What was the
    /// end until then is left behind.
    Moved {
        /// The last entry of what was left.
        from: Option<EntryId>,
        why: MoveReason,
        /// What the model should know of what was left; it is told with the next prompt.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        note: Option<String>,
    },
    /// What a call did to files, or is about to do: written before a declared effect.
    Changed(Changed),
    /// Changes are about to be taken back, or made again.
    Reversing(Reversal),
    /// All of it was done that could be.
    Reversed,
    /// A name for an entry, wherever in the file it stands. An empty one takes the name away.
    Labelled {
        target: EntryId,
        label: String,
    },
    /// What the session is called from here on.
    Titled {
        title: String,
        by: TitledBy,
        /// What asking for it cost.
        #[serde(default)]
        usage: Usage,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost: Option<f64>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<Origin>,
    },
    /// Put away, or taken out again: an archived session is not in the usual list.
    Archived {
        archived: bool,
    },
    /// Everything before the next prompt of a person was made by another program.
    Imported(Imported),
}

/// Why a session goes on elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MoveReason {
    /// To say something else at an earlier place.
    Branched,
    /// To another branch, as it was left.
    Switched,
    Undone,
    Redone,
    /// One that a later version invented.
    #[serde(other)]
    Other,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TitledBy {
    Person,
    Model,
    /// The program that the session was imported from.
    Import,
}

/// Where an imported session came from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Imported {
    /// The program.
    pub from: String,
    /// Its own id of the session.
    pub id: String,
    /// What could not be taken over.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Queued {
    pub id: u64,
    pub kind: QueueKind,
    pub content: Vec<Content>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QueueKind {
    /// Seen by the model at the next boundary.
    Steer,
    /// A turn of its own after this one.
    FollowUp,
}

/// Where a call stands: the item of the session, and the call of its step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallPlace {
    pub item: usize,
    pub call: usize,
}

/// The paths that a call declared.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Touched {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub reads: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub writes: Vec<String>,
}

impl Touched {
    pub fn is_empty(&self) -> bool {
        self.reads.is_empty() && self.writes.is_empty()
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Header {
    pub session: String,
    pub directory: String,
    /// Version of the program that made the file.
    pub made_by: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forked_from: Option<String>,
    /// The session whose agent gave this one its work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
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
