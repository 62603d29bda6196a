//! What users type.

mod permission;
mod sessions;
mod yours;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

pub use permission::{Permission, PermissionAction, PermissionCheck, StanceArguments, Trust};
pub use sessions::{Export, ExportFormat, Import, Sessions, SessionsAction, Stats, StatsBy};
pub use yours::{AgentAction, AgentCreate, Agents, ConfigArguments, Init, PluginAction, Plugins};

/// An agent that calls tools: it plans, decides, runs and records each call.
#[derive(Debug, Parser)]
#[command(name = "tw", version, about, max_term_width = 100, disable_help_subcommand = true)]
#[command(args_conflicts_with_subcommands = true)]
#[command(
    after_help = "Start with:  tw                                  the terminal interface in this folder\n             tw run \"What is this project?\"     one prompt\nTrouble?     tw doctor"
)]
pub struct Arguments {
    #[command(subcommand)]
    pub command: Option<Command>,
    #[command(flatten)]
    pub interface: Interface,
    #[command(flatten)]
    pub shared: Shared,
}

/// `tw` without a command: the terminal interface.
#[derive(Debug, Args)]
#[command(next_help_heading = "Without a command: the terminal interface")]
pub struct Interface {
    /// The model, as PROVIDER/MODEL
    #[arg(short, long, value_name = "P/M")]
    pub model: Option<String>,
    /// The agent that works
    #[arg(short, long, value_name = "NAME")]
    pub agent: Option<String>,
    /// Go on with the session used last in this folder
    #[arg(short = 'c', long = "continue", conflicts_with = "session")]
    pub resume: bool,
    /// Go on with this session
    #[arg(short, long, value_name = "ID")]
    pub session: Option<String>,
    /// Work on a copy of the session (with -c or -s)
    #[arg(long)]
    pub fork: bool,
    /// Put this text into the prompt
    #[arg(long, value_name = "TEXT")]
    pub prompt: Option<String>,
    /// Allow what would be asked; what is denied stays denied
    #[arg(long, visible_alias = "yolo", alias = "dangerously-skip-permissions")]
    pub auto: bool,
}

#[derive(Debug, Args)]
pub struct Shared {
    /// Work in this folder instead of the current one
    #[arg(long, global = true, value_name = "PATH")]
    pub dir: Option<PathBuf>,
    /// Trust this folder: its own configuration may do more than tighten rules
    #[arg(long, global = true)]
    pub trust: bool,
    /// Run commands in an OS sandbox: the best that works here, only with one, or without
    #[arg(long, global = true, value_enum, value_name = "WHEN")]
    pub sandbox: Option<Sandbox>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Sandbox {
    Auto,
    On,
    Off,
}

impl From<Sandbox> for toolwright::config::SandboxMode {
    fn from(sandbox: Sandbox) -> Self {
        match sandbox {
            Sandbox::Auto => Self::Auto,
            Sandbox::On => Self::On,
            Sandbox::Off => Self::Off,
        }
    }
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Answer one prompt without a terminal interface
    #[command(after_help = RUN_HELP)]
    Run(Box<Run>),
    /// List the sessions of this folder, search and look after them
    Sessions(Sessions),
    /// Print a session
    Show(Show),
    /// Write a session as JSON, Markdown or one HTML page
    Export(Export),
    /// Take over sessions of OpenCode, Codex, Claude Code and pi
    Import(Import),
    /// Show a session's branches, switch between them, name them
    Tree(Tree),
    /// Shorten a session: notes take the place of its beginning for the model
    Compact(Compact),
    /// Take back what was done since a message: files and conversation
    #[command(after_help = UNDO_HELP)]
    Undo(Undo),
    /// Make again what was undone last
    Redo(Redo),
    /// Say what was spent, by day, model, project and tool
    Stats(Stats),
    /// Keep, list and remove keys
    Auth(Auth),
    /// List the models with their limits and prices
    Models(Models),
    /// List the tools, or call one through the whole pipeline
    Tools(Tools),
    /// Servers of tools: add, list, sign in, call; or be one
    Mcp(crate::mcp::args::Mcp),
    /// List the agents, or make a new one
    Agent(Agents),
    /// Install, list and remove packages with plugins
    Plugin(Plugins),
    /// Print the settings that apply here
    Config(ConfigArguments),
    /// Write or improve this project's AGENTS.md
    Init(Init),
    /// Explain what the rules decide, list them, forget approvals
    Permission(Permission),
    /// Trust a folder's own configuration, or stop doing so
    Trust(Trust),
    /// Say what was found on this machine and what to do next
    Doctor,
    /// Look at what goes over the wire
    Debug(Debug),
    /// Print a completion script for a shell
    Completions { shell: clap_complete::Shell },
}

const RUN_HELP: &str = "\
Standard input is appended to the prompt:  git diff | tw run \"Review this\"
Exit status: 0 done, 1 failed, 2 bad usage or configuration, 3 denied, 4 out of budget, 130 interrupted";

#[derive(Debug, Parser)]
#[command(name = "run")]
pub struct Run {
    /// What to do; several words are joined
    pub prompt: Vec<String>,
    /// The model, as PROVIDER/MODEL
    #[arg(short, long, value_name = "P/M")]
    pub model: Option<String>,
    /// The agent that works
    #[arg(short, long, value_name = "NAME")]
    pub agent: Option<String>,
    /// Go on with the session used last in this folder
    #[arg(short = 'c', long = "continue", conflicts_with = "session")]
    pub resume: bool,
    /// Go on with this session
    #[arg(short, long, value_name = "ID")]
    pub session: Option<String>,
    /// Work on a copy of the session (with -c or -s)
    #[arg(long)]
    pub fork: bool,
    /// Go on from an earlier message of it: in place of a prompt, behind an answer (with -c or -s)
    #[arg(long, value_name = "MESSAGE", long_help = FROM_HELP)]
    pub from: Option<String>,
    /// Attach a file; may be repeated
    #[arg(short, long = "file", value_name = "PATH")]
    pub files: Vec<PathBuf>,
    /// Run this command of yours; the prompt is its arguments
    #[arg(long, value_name = "NAME")]
    pub command: Option<String>,
    /// How to print: for people or for programs
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub format: Format,
    #[command(flatten)]
    pub stance: StanceArguments,
    /// End with a summary after this many model calls
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub max_steps: Option<u32>,
    /// End with a summary after this many seconds
    #[arg(long, value_name = "SECS", value_parser = clap::value_parser!(u64).range(1..))]
    pub timeout: Option<u64>,
    /// End with a summary once this much is spent, where prices are known
    #[arg(long, value_name = "USD")]
    pub max_cost: Option<f64>,
    /// How hard the model should think
    #[arg(long, value_enum, value_name = "LEVEL")]
    pub effort: Option<Effort>,
    /// Ask for an answer that fits the JSON Schema in this file; it is printed as JSON
    #[arg(long, value_name = "FILE")]
    pub output_schema: Option<PathBuf>,
    /// Keep each request and raw answer in this folder, without keys
    #[arg(long, value_name = "DIR")]
    pub trace: Option<PathBuf>,
    /// Show the model's reasoning too
    #[arg(long)]
    pub thinking: bool,
    /// Take commands from standard input while working: one JSON object a line
    #[arg(long, long_help = COMMANDS_HELP)]
    pub commands: bool,
}

const FROM_HELP: &str = "\
Go on from an earlier message of the session (with -c or -s): in place of a prompt, behind an answer.
`tw show` tells the number and the id of each message. What came after it is left behind and can be
gone back to (`tw tree`); with --fork it is left out of the copy. Files stay as they are.";

const COMMANDS_HELP: &str = "\
Take commands from standard input while working, one JSON object a line:
  {\"type\":\"steer\",\"text\":\"…\"}       say something that the model sees at the next boundary
  {\"type\":\"follow_up\",\"text\":\"…\"}   say something when this turn is over
  {\"type\":\"withdraw\",\"id\":N}         take a message back that still waits
  {\"type\":\"answer\",\"id\":N,\"reply\":\"once|always|reject\",\"message\":\"…\",
   \"scope\":\"session|project|everywhere\",\"extent\":\"exact|prefix|tool\",\"pattern\":\"…\"}
  {\"type\":\"mode\",\"mode\":\"ask|accept-edits|plan|auto\"}
  {\"type\":\"reply\",\"id\":N,\"answers\":[[\"…\"]]}
  {\"type\":\"compact\"}  {\"type\":\"abort\"}";

#[derive(Debug, Args)]
pub struct Tree {
    #[command(subcommand)]
    pub action: Option<TreeAction>,
    /// The session, or a beginning of its id; the one used last without it
    #[arg(short, long, global = true, value_name = "ID")]
    pub session: Option<String>,
    /// One JSON object instead of text
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Subcommand)]
pub enum TreeAction {
    /// Go on with another branch from now on; files stay as they are
    Switch {
        /// Its name, its id, or the end of one
        branch: String,
    },
    /// Give a branch a name; without one, take it away
    Label {
        /// Its id, or the end of one
        branch: String,
        #[arg(default_value = "")]
        name: String,
    },
}

#[derive(Debug, Args)]
pub struct Compact {
    /// The session, or a beginning of its id; the one used last without it
    pub id: Option<String>,
    /// The model that writes the notes, as PROVIDER/MODEL
    #[arg(short, long, value_name = "P/M")]
    pub model: Option<String>,
}

const UNDO_HELP: &str = "\
Without --to, the last message and all that followed it is taken back. A file that was changed since
by somebody else is left alone and named. Repositories keep their HEAD, index and stashes.
Exit status: 0 done, 1 not all of it could be taken back, 2 nothing to undo";

#[derive(Debug, Args)]
pub struct Undo {
    /// The session, or a beginning of its id; the one used last without it
    pub id: Option<String>,
    /// To before this message: its number or its id, as --list shows them
    #[arg(long, value_name = "MESSAGE")]
    pub to: Option<String>,
    /// Only the files; the conversation stays
    #[arg(long, conflicts_with = "conversation")]
    pub files: bool,
    /// Only the conversation; the files stay
    #[arg(long)]
    pub conversation: bool,
    /// Say what would be done, and do nothing
    #[arg(long)]
    pub dry_run: bool,
    /// List the messages that can be gone back to
    #[arg(long, conflicts_with_all = ["to", "files", "conversation", "dry_run"])]
    pub list: bool,
    /// One JSON object instead of text
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct Redo {
    /// The session, or a beginning of its id; the one used last without it
    pub id: Option<String>,
    /// Say what would be done, and do nothing
    #[arg(long)]
    pub dry_run: bool,
    /// One JSON object instead of text
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Effort {
    Off,
    Minimal,
    Low,
    Medium,
    High,
    Max,
}

#[derive(Debug, Args)]
pub struct Auth {
    #[command(subcommand)]
    pub action: AuthAction,
}

#[derive(Debug, Subcommand)]
pub enum AuthAction {
    /// Keep a key; it is read from standard input
    Login { provider: String },
    /// Remove a kept key
    Logout { provider: String },
    /// Say which keys there are and where they come from
    List,
}

#[derive(Debug, Args)]
pub struct Models {
    /// Only those of this provider
    pub provider: Option<String>,
    /// Those of providers without a key too
    #[arg(long)]
    pub all: bool,
    /// One JSON array instead of text
    #[arg(long)]
    pub json: bool,
    /// Fetch the newest list first
    #[arg(long)]
    pub refresh: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    #[value(alias = "default")]
    Text,
    Json,
}

#[derive(Debug, Args)]
pub struct Show {
    /// The session, or a beginning of its id; the one used last without it
    pub id: Option<String>,
}

#[derive(Debug, Args)]
pub struct Tools {
    #[command(subcommand)]
    pub action: Option<ToolsAction>,
    /// One JSON array instead of text
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Subcommand)]
pub enum ToolsAction {
    /// Run one call: repaired, validated, planned, decided, run and fitted as in a session
    Call(ToolCall),
}

#[derive(Debug, Args)]
#[command(after_help = "Exit status: 0 done, 1 tool error, 3 denied")]
pub struct ToolCall {
    /// The tool
    pub name: String,
    /// Its arguments as a JSON object, or - to read them from standard input
    pub arguments: String,
    #[command(flatten)]
    pub stance: StanceArguments,
    /// The agent whose rules apply
    #[arg(short, long, value_name = "NAME")]
    pub agent: Option<String>,
    /// The whole outcome as one JSON object
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct Debug {
    #[command(subcommand)]
    pub action: DebugAction,
}

#[derive(Debug, Subcommand)]
pub enum DebugAction {
    /// Print what we make of a provider's response body, streamed or not, as one JSON object
    Decode {
        /// The wire format: anthropic-messages, openai-chat, openai-responses or gemini
        #[arg(long, value_name = "WIRE")]
        wire: String,
        /// The HTTP status that the body came with
        #[arg(long, value_name = "N", default_value_t = 200)]
        status: u16,
        /// The file with the body, or - for standard input
        file: PathBuf,
    },
}
