//! What a hook is for, as people write it: names, or a regular expression over names.

use fancy_regex::Regex;
use serde::Deserialize;

/// Names must fit whole; an expression is looked for, as in the agent that this form comes from.
#[derive(Debug, Clone, Deserialize)]
#[serde(try_from = "String")]
pub struct Matcher(Kind);

#[derive(Debug, Clone)]
enum Kind {
    Everything,
    Names(Vec<String>),
    /// Kept whole, with what was written.
    Expression(Box<Regex>),
}

impl Default for Matcher {
    fn default() -> Self {
        Self(Kind::Everything)
    }
}

impl TryFrom<String> for Matcher {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let text = text.trim();
        let is_name = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
        if text.is_empty() || text == "*" {
            return Ok(Self::default());
        }
        if text.chars().all(|c| is_name(c) || c == '|' || c == ' ') {
            let names = text.split('|').map(|name| name.trim().to_owned());
            return Ok(Self(Kind::Names(names.collect())));
        }
        match Regex::new(text) {
            Ok(regex) => Ok(Self(Kind::Expression(Box::new(regex)))),
            Err(error) => Err(format!("{text:?} is not a regular expression: {error}")),
        }
    }
}

impl Matcher {
    pub fn fits(&self, name: &str) -> bool {
        match &self.0 {
            Kind::Everything => true,
            Kind::Names(names) => names.iter().any(|known| known == name),
            // An expression that cannot be decided stands before something that should be looked at.
            Kind::Expression(regex) => regex.is_match(name).unwrap_or(true),
        }
    }
}

impl std::fmt::Display for Matcher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.0 {
            Kind::Everything => f.write_str("*"),
            Kind::Names(names) => f.write_str(&names.join("|")),
            Kind::Expression(regex) => f.write_str(regex.as_str()),
        }
    }
}
