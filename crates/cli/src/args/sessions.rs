//! Sessions, what they cost, and their way in and out.

use super::*;

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Sessions {
    #[command(subcommand)]
    pub action: Option<SessionsAction>,
    /// One JSON array instead of a table
    #[arg(long)]
    pub json: bool,
    /// Those of all folders
    #[arg(long)]
    pub all: bool,
    /// Only those in which these words were said or these files were touched
    #[arg(long, value_name = "TEXT")]
    pub search: Option<String>,
    /// Only so many, the newest
    #[arg(short = 'n', long, value_name = "N", visible_alias = "max-count")]
    pub limit: Option<std::num::NonZeroUsize>,
    /// Those that were put away
    #[arg(long)]
    pub archived: bool,
}

#[derive(Debug, Subcommand)]
pub enum SessionsAction {
    /// Make the index again from the files
    Reindex,
    /// Remove a session for good, with what was kept for it
    Delete {
        /// The session, or a beginning of its id
        #[arg(required = true)]
        id: Vec<String>,
    },
    /// Put a session away: it is not listed and not pruned any more
    Archive {
        #[arg(required = true)]
        id: Vec<String>,
    },
    /// List an archived session again
    Unarchive {
        #[arg(required = true)]
        id: Vec<String>,
    },
    /// Give a session a name
    Rename {
        id: String,
        #[arg(required = true)]
        title: Vec<String>,
    },
    /// Remove sessions that were not used for long, archived ones aside
    Prune {
        /// How long: 90d, 12w, 36h
        #[arg(long, value_name = "AGE", default_value = "90d")]
        older_than: String,
        /// Say what would go, and remove nothing
        #[arg(long)]
        dry_run: bool,
        /// Those of all folders
        #[arg(long)]
        all: bool,
    },
}

#[derive(Debug, Args)]
pub struct Export {
    /// The session, or a beginning of its id; the one used last without it
    pub id: Option<String>,
    /// OpenCode's JSON, a Markdown document, or one HTML page
    #[arg(long, value_enum, default_value_t = ExportFormat::Json)]
    pub format: ExportFormat,
    /// The file to write; standard output without it
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Without what was said, read and written: only who did what when, and its cost
    #[arg(long)]
    pub sanitize: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ExportFormat {
    Json,
    #[value(alias = "md")]
    Markdown,
    Html,
}

#[derive(Debug, Args)]
#[command(after_help = IMPORT_HELP)]
pub struct Import {
    /// Files, or folders in which to look for them; - for standard input
    #[arg(required = true)]
    pub paths: Vec<PathBuf>,
    /// Keep them in this folder, wherever they come from
    #[arg(long)]
    pub here: bool,
    /// Once more, even if it was imported before
    #[arg(long)]
    pub again: bool,
    /// One JSON array instead of text
    #[arg(long)]
    pub json: bool,
}

pub(super) const IMPORT_HELP: &str = "\
What it takes:
  OpenCode      opencode export ID > session.json
  Codex         ~/.codex/sessions/YYYY/MM/DD/rollout-*.jsonl
  Claude Code   ~/.claude/projects/FOLDER/*.jsonl
  pi            ~/.pi/agent/sessions/FOLDER/*.jsonl
  Toolwright    tw export";

#[derive(Debug, Args)]
pub struct Stats {
    /// One JSON object instead of tables
    #[arg(long)]
    pub json: bool,
    /// Only the last days, today included
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub days: Option<u32>,
    /// Only this table
    #[arg(long, value_enum)]
    pub by: Option<StatsBy>,
    /// Only sessions of this folder
    #[arg(long, conflicts_with = "all")]
    pub here: bool,
    /// Sessions of all folders, which is usual
    #[arg(long)]
    pub all: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum StatsBy {
    Day,
    Model,
    Project,
    Tool,
}
