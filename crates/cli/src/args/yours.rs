//! What people keep in their folders.

use super::*;

#[derive(Debug, Args)]
pub struct Agents {
    #[command(subcommand)]
    pub action: Option<AgentAction>,
    /// One JSON array instead of text
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Subcommand)]
pub enum AgentAction {
    /// List those that can work here
    List {
        /// One JSON array instead of text
        #[arg(long)]
        json: bool,
    },
    /// Write a new one as a Markdown file
    Create(AgentCreate),
}

#[derive(Debug, Args)]
pub struct AgentCreate {
    /// Its name
    pub name: String,
    /// When to use it, for people and for the agents that give it work
    #[arg(long, value_name = "TEXT")]
    pub description: String,
    /// Who may choose it
    #[arg(long, value_enum, default_value_t = NewMode::All)]
    pub mode: NewMode,
    /// Its model, as PROVIDER/MODEL
    #[arg(short, long, value_name = "P/M")]
    pub model: Option<String>,
    /// What it is told; a place to fill in without it
    #[arg(long, value_name = "TEXT")]
    pub prompt: Option<String>,
    /// It changes no file and runs no command
    #[arg(long)]
    pub read_only: bool,
    /// For all projects instead of this one
    #[arg(long)]
    pub global: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum NewMode {
    /// A person
    Primary,
    /// Other agents
    Subagent,
    /// Both
    All,
}

impl NewMode {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Primary => "primary",
            Self::Subagent => "subagent",
            Self::All => "all",
        }
    }
}

#[derive(Debug, Args)]
pub struct Plugins {
    #[command(subcommand)]
    pub action: PluginAction,
}

#[derive(Debug, Subcommand)]
pub enum PluginAction {
    /// Fetch a package from npm, pinned to its version; nothing of it is run for that
    Install {
        /// Its name, with or without @VERSION
        name: String,
    },
    /// Remove one
    Remove {
        /// Its name
        name: String,
    },
    /// Say which are there
    List {
        /// One JSON array instead of text
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Args)]
pub struct ConfigArguments {
    /// One value a line, with the file that it came from
    #[arg(long)]
    pub show_origin: bool,
    /// The JSON Schema of the settings, for editors
    #[arg(long, conflicts_with = "show_origin")]
    pub schema: bool,
}

#[derive(Debug, Args)]
pub struct Init {
    /// What it should pay attention to
    pub focus: Vec<String>,
    /// The model, as PROVIDER/MODEL
    #[arg(short, long, value_name = "P/M")]
    pub model: Option<String>,
    /// Allow what would be asked
    #[arg(long)]
    pub auto: bool,
}
