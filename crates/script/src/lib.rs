//! Tools and plugins written in JavaScript and TypeScript, in an embedded engine.
//!
//! A [`Script`] is a file; it says what it offers ([`Described`]) and is called through [`ScriptTool`]
//! and [`Script::hook`]. Each runs on a thread of its own, inside limits for memory and time, and reaches
//! files, processes and the network only through its [`Guard`].

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod ask;
mod engine;
mod execute;
mod host;
mod memory;
mod modules;
mod parts;
mod patience;
mod program;
mod realm;
mod resolve;
mod script;
mod source;
mod tool;
mod written;

pub use execute::{EXECUTE, ExecuteTool};
pub use host::{Client, Guard, Host, HostOptions, Permit};
pub use patience::Limit;
pub use program::{Program, ProgramTool};
pub use realm::{CallTerms, ScriptError};
pub use script::{Configured, Definition, Described, Kind, Script};
pub use tool::ScriptTool;
