//! The files and folders that people write: settings, agents, rules.
//!
//! OpenCode's forms are read as they are. A wrong type is an error that names file, line and column;
//! an unknown key is a warning that names the nearest known one.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod agent;
mod bounded;
mod changed;
mod command;
mod commands_name;
mod edit;
mod file;
mod folders;
mod front_matter;
mod hooks;
mod instructions;
mod load;
mod matcher;
mod mcp;
mod named;
mod nested;
mod paths;
mod permission;
mod sandbox;
mod schema;
mod settings;
mod skills;
mod stamp;
mod state_file;
mod substitute;
mod texts;
mod tool_settings;
mod trust;
mod yaml;

pub use agent::{Agent, AgentError};
pub use command::{Command, CommandError, Piece, mentions};
pub use commands_name::files_named;
pub use edit::set_entry;
pub use file::{ConfigError, rule_line};
pub use folders::{ConfigFolder, PLUGIN_FOLDERS, TOOL_FOLDERS, config_folders};
pub use hooks::{CommandHook, FailingHook, HookEvent};
pub use instructions::{Instruction, configured_instructions, find_instructions, is_address};
pub use load::{Config, Environment, LeftOut, Source};
pub use matcher::Matcher;
pub use mcp::{
    McpKind, McpOrigin, McpSandbox, McpSandboxWord, McpSettings, OauthSetting, OauthSettings,
    reaches_beyond,
};
pub use paths::Paths;
pub use permission::{KeySettings, PatternSettings, PermissionSettings, ShownRule};
pub use sandbox::{NetworkWord, SandboxLayer, SandboxMode, SandboxNetwork, SandboxSettings};
pub use schema::{SCHEMA_ADDRESS, schema};
pub use settings::{
    AgentMode, AgentSettings, CommandSettings, CompactionSettings, FormatterSettings,
    ModelSettings, Ordered, ProviderOptions, ProviderSettings, ServerSettings, Settings,
    StaleEdits, Switchable, ToolOutputSettings,
};
pub use skills::{Skill, Skills, find_skills};
pub use stamp::Stamp;
pub use state_file::StateFile;
pub use tool_settings::{
    ExperimentalSettings, SkillsSettings, WebfetchSettings, WebsearchSettings,
};
pub use trust::{Trust, TrustEntry, TrustState, print_of};

#[cfg(test)]
mod hooks_tests;
#[cfg(test)]
mod permission_tests;
#[cfg(test)]
mod schema_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod trust_tests;
