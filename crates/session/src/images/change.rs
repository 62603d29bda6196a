//! What the log says about files: what a call did to them, and what was taken back.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::state::{State, raw_path};
use crate::id::EntryId;

/// What a call did to files, or is about to do.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Changed {
    /// The message of the conversation's owner in whose turn this happened. An agent that works for
    /// another notes the other's.
    pub turn: EntryId,
    /// Microseconds since 1970, and never the same twice: the order of what several agents did.
    pub at: u64,
    pub by: Cause,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<Change>,
    /// What cannot be brought back, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lost: Vec<Lost>,
    /// Repositories in which another commit is checked out than before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub heads: Vec<HeadMoved>,
}

impl Changed {
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty() && self.lost.is_empty() && self.heads.is_empty()
    }
}

/// Who did it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Cause {
    /// The call, in one line.
    pub what: String,
    /// It may have done more than can be seen from the workspace.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub undeclared: bool,
    /// It went on in the background; the change was seen later.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub background: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    #[serde(with = "raw_path")]
    pub path: PathBuf,
    pub before: State,
    /// Missing while it is about to happen; the same change follows with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<State>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lost {
    #[serde(with = "raw_path")]
    pub path: PathBuf,
    pub why: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeadMoved {
    #[serde(with = "raw_path")]
    pub repository: PathBuf,
    pub before: String,
    pub after: String,
}

/// Files are about to be brought back, or forth again. Written before the first of them is touched.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reversal {
    pub kind: ReversalKind,
    pub at: u64,
    /// What each path is now and shall be.
    pub changes: Vec<Change>,
    /// Where the conversation goes on, if it moves: the entry behind which it stands then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation: Option<EntryId>,
    /// The end of the conversation when this began.
    pub leaf: EntryId,
    /// The first message that is taken back.
    pub turn: EntryId,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReversalKind {
    Undo,
    Redo,
}
