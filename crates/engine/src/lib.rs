//! The loop: a prompt goes in, events come out, and in between a model and tools take turns until
//! the work is done. `agent_loop` holds the loop itself and does no I/O; [`Engine`] wires it up.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod agent_loop;
mod answer;
mod answer_form;
mod budget;
mod calls;
mod context;
mod doom;
mod engine;
mod event;
mod gate;
mod hooks;
mod inbox;
mod journal;
mod listen;
mod offer;
mod questions;
mod room;
mod rulebook;
mod settle;
mod task;
mod title;
mod transcript;
mod undo;

pub use agent_loop::{Clock, SystemClock};
pub use budget::{Budget, Purse};
pub use context::{Context, system_prompt};
pub use engine::{AgentChange, Engine, EngineOptions};
pub use event::{Answer, Denial, Event, TurnEnd};
pub use gate::PermissionGate;
pub use hooks::{Hook, Hooks, OnFailure, Point, Verdict};
pub use inbox::Inbox;
pub use journal::{Journal, Record, Unrecorded};
pub use offer::ChooseTools;
pub use questions::{AnswerError, Keeper, Questions};
pub use room::RoomOptions;
pub use task::{Crew, Order, Task, Worker};
pub use title::{FindNamer, Namer};
