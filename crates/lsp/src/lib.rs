//! Language servers: which one a file belongs to, talking with it, and keeping it alive.
//!
//! [`Servers`] is the whole face of this crate: it starts servers when a file of theirs is first
//! looked at, keeps one per project root, starts a crashed one again a few times, and ends them all
//! when it is dropped. A server never breaks or holds up whoever asks: every wait has a limit, and
//! what goes wrong is told once, in words.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod client;
mod connection;
mod diagnostics;
mod find;
mod hear;
mod language;
mod query;
mod servers;
mod table;
mod text;
mod uri;
mod wait;
mod wire;

pub use diagnostics::{Diagnostic, Severity};
pub use find::{NoProgram, Options, Place};
pub use query::{AskError, Query};
pub use servers::{Report, Servers, Status, Timing};
pub use table::{Entry, Server, Setting, configured};
pub use text::{FileEdit, TextError, apply_edits, file_edits};

#[cfg(test)]
mod tests;
