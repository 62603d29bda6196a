//! Toolwright as a library: an agent loop that plans, decides, runs and records tool calls.
//!
//! [`Agent::builder`] gives an agent with the tools you register (see `examples/weather.rs`);
//! [`Workbench`] gives the whole coding agent for a folder, with its configuration, rules, tools
//! and sessions (see `examples/coding_agent.rs`).

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod addresses;
mod agent;
mod approvals;
mod auth;
mod choose;
mod commands;
mod configured;
mod feedback;
mod given;
mod hooks;
mod housekeeping;
mod keyring;
mod mcp;
mod packages;
mod planning;
mod plugins;
mod sandbox;
mod scripts;
mod secrets;
mod station;
mod titles;
mod undo;
mod workbench;

pub use agent::{Agent, AgentBuilder, AskError};
pub use approvals::{Approvals, KeptApproval};
pub use auth::{Credentials, Kept};
pub use choose::{Chosen, Environment, ModelError, Selection, choose_model};
pub use commands::NotSaid;
pub use feedback::{LanguageServer, NoProgram};
pub use keyring::{Keyring, KeyringError};
pub use packages::{PackageError, Packages};
pub use planning::Handover;
pub use sandbox::{Protection, prefer_sandbox};
pub use undo::{Reverse, ReverseError};
pub use workbench::{Desk, DeskOptions, SessionChoice, SetupError, Workbench};

pub use schemars::JsonSchema;
pub use serde::Deserialize;
pub use tokio_util::sync::CancellationToken;
pub use toolwright_config as config;
pub use toolwright_engine::{
    Answer, AnswerError, Budget, Engine, Event, Hook, Hooks, Inbox, Keeper, OnFailure,
    PermissionGate, Point, Purse, Questions, TurnEnd, Verdict,
};
pub use toolwright_llm as llm;
pub use toolwright_mcp as mcp_servers;
pub use toolwright_permission as permission;
pub use toolwright_proc::sandbox::{
    BRIDGE_COMMAND, available as sandbox_layers, run_bridge, set_helper,
};
pub use toolwright_proc::{end_everything, harden, put_back_late};
pub use toolwright_session as session;
pub use toolwright_tool as tool;
pub use toolwright_tool::{Registry, Tool, ToolError, ToolOutput, tool_fn};
pub use toolwright_tools::{JobInfo, Jobs};
