//! Exit statuses: a contract that scripts depend on.

use toolwright::session::{IndexError, LogError, OpenError, TurnStatus};
use toolwright::{ModelError, SetupError};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    Done,
    Failed,
    /// Bad usage or configuration.
    BadUsage,
    /// Something was denied and the model gave up, or nobody could be asked.
    Denied,
    OutOfBudget,
    Interrupted,
}

impl Exit {
    pub fn code(self) -> i32 {
        match self {
            Self::Done => 0,
            Self::Failed => 1,
            Self::BadUsage => 2,
            Self::Denied => 3,
            Self::OutOfBudget => 4,
            Self::Interrupted => 130,
        }
    }
}

impl From<TurnStatus> for Exit {
    fn from(status: TurnStatus) -> Self {
        match status {
            TurnStatus::Done => Self::Done,
            TurnStatus::Failed => Self::Failed,
            TurnStatus::Denied => Self::Denied,
            TurnStatus::OutOfBudget => Self::OutOfBudget,
            TurnStatus::Interrupted => Self::Interrupted,
        }
    }
}

/// What stopped a command before it could do its work.
#[derive(Debug)]
pub struct Problem {
    pub exit: Exit,
    pub text: String,
}

impl Problem {
    pub fn usage(text: impl Into<String>) -> Self {
        Self { exit: Exit::BadUsage, text: text.into() }
    }

    pub fn failed(text: impl Into<String>) -> Self {
        Self { exit: Exit::Failed, text: text.into() }
    }
}

impl From<SetupError> for Problem {
    fn from(error: SetupError) -> Self {
        match error {
            SetupError::Log(error) => error.into(),
            SetupError::Session(error) => error.into(),
            SetupError::McpRequired(_) => Self::failed(error.to_string()),
            SetupError::Directory { .. }
            | SetupError::Config(_)
            | SetupError::Feedback(_)
            | SetupError::Sandbox(_)
            | SetupError::Mcp(_)
            | SetupError::Untrusted { .. }
            | SetupError::Agent(_)
            | SetupError::Model(_) => Self::usage(error.to_string()),
        }
    }
}

impl From<ModelError> for Problem {
    fn from(error: ModelError) -> Self {
        Self::usage(error.to_string())
    }
}

impl From<OpenError> for Problem {
    fn from(error: OpenError) -> Self {
        match error {
            OpenError::Log(error) => error.into(),
            OpenError::Unknown(_)
            | OpenError::Ambiguous { .. }
            | OpenError::NoneYet(_)
            | OpenError::NotFound(_) => Self::usage(error.to_string()),
        }
    }
}

impl From<IndexError> for Problem {
    fn from(error: IndexError) -> Self {
        Self::failed(error.to_string())
    }
}

impl From<LogError> for Problem {
    fn from(error: LogError) -> Self {
        let next = match &error {
            LogError::Write { .. } => {
                "Free some space or check its permissions; XDG_DATA_HOME moves where sessions are kept."
            }
            LogError::Read { .. } => "Check its permissions.",
            LogError::Locked { .. } => {
                "Wait for the other process, or work on a copy: tw run -s ID --fork."
            }
            LogError::Newer { .. } => {
                "Update tw to go on with it; `tw show` prints what this one can read."
            }
            LogError::NoEntry { .. } => "`tw show` prints the ids of its messages.",
            LogError::NotKept => "Start a session that is kept.",
            LogError::NoHeader { .. } => "Move it out of the way to get rid of this message.",
        };
        Self::failed(format!("{error}\n    {next}"))
    }
}
