//! Rules, modes and trust.

use super::*;

#[derive(Debug, Args)]
pub struct Permission {
    #[command(subcommand)]
    pub action: PermissionAction,
}

#[derive(Debug, Subcommand)]
pub enum PermissionAction {
    /// Say how a shell command or a tool call would be decided, and by which rule
    Check(PermissionCheck),
    /// List all rules with the files they come from, and what was agreed to
    List {
        /// One JSON object instead of text
        #[arg(long)]
        json: bool,
        /// The agent whose rules apply
        #[arg(short, long, value_name = "NAME")]
        agent: Option<String>,
    },
    /// Forget something that was agreed to
    #[command(group = clap::ArgGroup::new("which").required(true))]
    Forget {
        /// Its id, as tw permission list shows it; may be repeated
        #[arg(group = "which")]
        ids: Vec<String>,
        /// All that was agreed to, in all projects
        #[arg(long, group = "which")]
        all: bool,
    },
}

#[derive(Debug, Args)]
pub struct PermissionCheck {
    /// One JSON object instead of text
    #[arg(long)]
    pub json: bool,
    /// The agent whose rules apply
    #[arg(short, long, value_name = "NAME")]
    pub agent: Option<String>,
    /// How much is done without a question
    #[arg(long, value_enum)]
    pub mode: Option<Mode>,
    /// A call of this tool; its arguments as a JSON object follow
    #[arg(long, value_name = "NAME")]
    pub tool: Option<String>,
    /// The command, or the tool's arguments
    #[arg(value_name = "COMMAND|JSON")]
    pub subject: String,
}

/// How much is done without a question.
#[derive(Debug, Args)]
pub struct StanceArguments {
    /// How much is done without a question
    #[arg(long, value_enum)]
    pub mode: Option<Mode>,
    /// Allow what would be asked; what is denied stays denied
    #[arg(
        long,
        visible_alias = "yolo",
        alias = "dangerously-skip-permissions",
        conflicts_with = "mode"
    )]
    pub auto: bool,
    /// Allow everything, even what is never allowed. For machines that can be thrown away
    #[arg(long, conflicts_with_all = ["mode", "auto"])]
    pub dangerously_allow_everything: bool,
}

impl StanceArguments {
    /// The mode that was named, if one was.
    pub fn mode(&self) -> Option<toolwright::permission::Mode> {
        let auto = self.auto.then_some(toolwright::permission::Mode::Auto);
        auto.or(self.mode.map(Into::into))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Mode {
    /// As the rules say
    Ask,
    /// Files of the workspace are changed without a question
    AcceptEdits,
    /// Nothing is changed, and nothing is run but what only reads
    Plan,
    /// What would be asked is allowed
    Auto,
}

impl From<Mode> for toolwright::permission::Mode {
    fn from(mode: Mode) -> Self {
        match mode {
            Mode::Ask => Self::Ask,
            Mode::AcceptEdits => Self::AcceptEdits,
            Mode::Plan => Self::Plan,
            Mode::Auto => Self::Auto,
        }
    }
}

#[derive(Debug, Args)]
#[command(after_help = TRUST_HELP)]
pub struct Trust {
    /// The folder; the current one without it. What counts is the root of its repository
    pub path: Option<PathBuf>,
    /// List the folders that somebody decided about
    #[arg(long, conflicts_with_all = ["path", "revoke"])]
    pub list: bool,
    /// Forget what was said about the folder
    #[arg(long)]
    pub revoke: bool,
    /// One JSON array instead of text (with --list)
    #[arg(long, requires = "list")]
    pub json: bool,
}

pub(super) const TRUST_HELP: &str = "\
A trusted folder's own configuration may choose models, allow calls and run hooks. It is asked about
again when one of those files changes.";
