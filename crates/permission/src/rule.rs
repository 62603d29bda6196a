//! Rules and the layers they come in.

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    Allow,
    Ask,
    Deny,
}

impl std::fmt::Display for Action {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        })
    }
}

/// `permission` and `pattern` are wildcards; see [`crate::matches`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Rule {
    pub permission: String,
    pub pattern: String,
    pub action: Action,
}

impl Rule {
    /// A leading `~` or `$HOME` in the pattern means the home folder.
    pub fn new(permission: &str, pattern: &str, action: Action, home: &str) -> Self {
        let rest = |prefix: &str| {
            let rest = pattern.strip_prefix(prefix)?;
            (rest.is_empty() || rest.starts_with('/')).then_some(rest)
        };
        let pattern = match rest("~").or_else(|| rest("$HOME")) {
            Some(rest) => format!("{home}{rest}"),
            None => pattern.to_owned(),
        };
        Self { permission: permission.to_owned(), pattern, action }
    }
}

/// Where rules come from, from the outermost to the innermost. An inner layer may tighten what an
/// outer one says, and loosen *ask*, but never lift *deny*.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LayerKind {
    Defaults,
    Managed,
    User,
    Project,
    Agent,
    Session,
}

#[derive(Debug, Clone)]
pub struct Layer {
    pub kind: LayerKind,
    /// The file, or a word for what is not a file.
    pub origin: String,
    pub rules: Vec<Rule>,
}
