//! What was said and done: an append-only log per session, and the state that it folds to.
//!
//! The same [`Session::apply`] runs while a session is live and when it is loaded, so memory and
//! file cannot disagree. A call and its result are one [`Call`] with a [`Slot`] that only moves
//! forward: there is no way to hold, load or send a call without a result.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod branches;
mod chronicle;
mod entry;
pub mod export;
mod fail;
mod fold;
pub mod held;
mod id;
pub mod images;
pub mod import;
mod index;
mod line;
mod lock;
mod log;
#[cfg(test)]
mod log_tests;
mod message;
mod pack;
mod retention;
mod standing;
mod step;
mod store;
mod tending;
mod title;
mod tree;
#[cfg(test)]
mod tree_tests;

pub use branches::Branch;
pub use chronicle::{Chronicle, Shortening, Span, Timing};
pub use entry::{
    CallPlace, DeltaKind, Entry, Header, Imported, MoveReason, QueueKind, Queued, TitledBy,
    Touched, TurnStatus,
};
pub use fail::{FAIL_POINTS, fail_point};
pub use fold::{Compaction, Item, Place, Prompt, Session, title_of};
pub use id::{EntryId, Mark, NoEntryId};
pub use index::{Counted, FOUND_END, FOUND_START, Index, IndexError, Listed, SpentKind, Wanted};
pub use log::{Log, LogError, Notice, SyncHandle};
pub use message::NotFound;
pub use retention::Retention;
pub use standing::Standing;
pub use step::{Call, Ending, Outcome, ReplyPart, Slot, Step, StepBlock};
pub use store::{OpenError, Store, Summary};
pub use title::shortened;
pub use tree::Tree;
