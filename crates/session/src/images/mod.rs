//! Before-images: what files were before calls changed them, kept so that it can be undone.
//!
//! [`Images`] keeps contents, named by their hash, inside a quota. [`Keeper`] notes what a call does to
//! files: declared writes exactly, and for what a command may do, the difference between two looks at
//! the workspace. [`Scene`] brings files back. Nothing here ever writes to a repository's own state.

mod aside;
mod beside;
mod change;
mod copies;
mod find;
mod git;
mod index;
mod keeper;
mod killed;
mod known;
mod memory;
mod objects;
mod place;
mod plan;
mod quota;
mod restore;
mod scan;
mod state;
mod store;
mod undo;

#[cfg(test)]
mod keeper_tests;
#[cfg(test)]
mod undo_tests;

pub use beside::beside;
pub use change::{Cause, Change, Changed, HeadMoved, Lost, Reversal, ReversalKind};
pub use find::clear_unfinished;
pub use index::embedded_repositories;
pub use keeper::{Keeper, Reach, Ticket, Watch};
pub use state::{Hash, State};
pub use store::{Images, KeepError, Quota};
pub use undo::{Conflict, Report, Restored, Scene, UndoError, UndoOptions, Undone};
