//! The files and folders that people write: settings, agents, rules.
//!
//! OpenCode's forms are read as they are. A wrong type is an error that names file, line and column;
//! an unknown key is a warning that names the nearest known one.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod agent;
mod edit;
mod file;
mod front_matter;
mod hooks;
mod instructions;
mod load;
mod matcher;
mod mcp;
mod paths;
mod settings;
mod skills;
mod tool_settings;

pub use agent::{Agent, AgentError};
pub use edit::set_entry;
pub use file::ConfigError;
pub use hooks::{CommandHook, HookEvent};
pub use instructions::{Instruction, find_instructions};
pub use load::{Config, Environment, Source};
pub use matcher::Matcher;
pub use mcp::{McpKind, McpOrigin, McpSettings, OauthSetting, OauthSettings, reaches_beyond};
pub use paths::Paths;
pub use settings::{
    AgentMode, AgentSettings, CompactionSettings, FormatterSettings, ModelSettings, Ordered,
    PermissionSettings, ProviderOptions, ProviderSettings, ServerSettings, Settings, StaleEdits,
    Switchable, ToolOutputSettings,
};
pub use skills::{Skill, Skills, find_skills};
pub use tool_settings::{
    ExperimentalSettings, SkillsSettings, WebfetchSettings, WebsearchSettings,
};

#[cfg(test)]
mod hooks_tests;
#[cfg(test)]
mod tests;
