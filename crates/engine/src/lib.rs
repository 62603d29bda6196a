//! The loop: a prompt goes in, events come out, and in between a model and tools take turns until
//! the work is done. `agent_loop` holds the loop itself and does no I/O; [`Engine`] wires it up.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod agent_loop;
mod context;
mod engine;
mod event;
mod gate;
mod journal;
mod settle;

pub use agent_loop::{Budget, Clock, SystemClock};
pub use context::{Context, system_prompt};
pub use engine::{Engine, EngineOptions};
pub use event::{Answer, Denial, Event, TurnEnd};
pub use gate::{PermissionGate, Questions};
pub use journal::{Journal, Record, Unrecorded};
