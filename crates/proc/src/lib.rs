//! The one door for child processes.
//!
//! Every child gets its own session and group, no terminal of ours, a deadline, a death signal and an entry
//! in the registry; it is ended on abort, on drop and when this process ends, whatever ends it. See
//! [`Spec`] for starting one, [`Child`] for looking after it and [`end_everything`] for the exit.

// This crate talks to the kernel: `pre_exec`, `kill`, `prctl` and `fork` have no safe form.
#![allow(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod child;
mod environment;
mod find;
mod harden;
mod ran;
mod registry;
pub mod sandbox;
mod sys;
mod terminal;
mod watchdog;

pub use child::{Child, Ended, Remains, SpawnError, Spec, TerminalSize};
pub use environment::{is_withheld, names_a_secret};
pub use find::{find_program, is_executable};
pub use harden::{HARDENING_VARIABLE, harden};
pub use ran::{Bounds, Ran};
pub use registry::{descendants, end_everything, put_back_late};
