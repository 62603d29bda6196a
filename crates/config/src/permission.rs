//! The `permission` key: OpenCode's forms, and examples that a rule may carry.

use schemars::JsonSchema;
use serde::Deserialize;
use toolwright_permission::{Action, Rule, analyse, matches};

use crate::schema::ActionWord;
use crate::settings::{AgentSettings, Ordered, Settings};

/// One action for everything, or keys with an action or with patterns, in written order: the order
/// decides.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "expected \"allow\", \"ask\" or \"deny\", or an object of them")]
pub enum PermissionSettings {
    All(#[schemars(with = "ActionWord")] Action),
    Keys(Ordered<KeySettings>),
}

#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(
    untagged,
    expecting = "expected \"allow\", \"ask\" or \"deny\", or an object of patterns with them"
)]
pub enum KeySettings {
    All(#[schemars(with = "ActionWord")] Action),
    Patterns(Ordered<PatternSettings>),
}

#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(
    untagged,
    expecting = "expected \"allow\", \"ask\" or \"deny\", or an object with \"action\", \"match\" and \"not_match\""
)]
pub enum PatternSettings {
    Plain(#[schemars(with = "ActionWord")] Action),
    Shown(ShownRule),
}

/// A rule with examples of what it is meant for, checked when it is read.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ShownRule {
    #[schemars(with = "ActionWord")]
    pub action: Action,
    #[serde(rename = "match", default)]
    pub fits: Vec<String>,
    #[serde(rename = "not_match", default)]
    pub does_not_fit: Vec<String>,
}

impl PatternSettings {
    pub fn action(&self) -> Action {
        match self {
            Self::Plain(action) | Self::Shown(ShownRule { action, .. }) => *action,
        }
    }
}

/// An example that its rule contradicts: where it stands, and what is wrong.
pub(crate) type WrongExample = (Vec<String>, String);

impl PermissionSettings {
    pub fn rules(&self, home: &str) -> Vec<Rule> {
        match self {
            Self::All(action) => vec![Rule::new("*", "*", *action, home)],
            Self::Keys(Ordered(keys)) => keys
                .iter()
                .flat_map(|(key, settings)| match settings {
                    KeySettings::All(action) => vec![Rule::new(key, "*", *action, home)],
                    KeySettings::Patterns(Ordered(patterns)) => patterns
                        .iter()
                        .map(|(pattern, settings)| Rule::new(key, pattern, settings.action(), home))
                        .collect(),
                })
                .collect(),
        }
    }

    fn wrong_example(&self, home: &str) -> Option<WrongExample> {
        let Self::Keys(Ordered(keys)) = self else { return None };
        keys.iter().find_map(|(key, settings)| {
            let KeySettings::Patterns(Ordered(patterns)) = settings else { return None };
            patterns.iter().find_map(|(pattern, settings)| {
                let PatternSettings::Shown(shown) = settings else { return None };
                let rule = Rule::new(key, pattern, shown.action, home);
                let (list, at, what) = shown.contradiction(&rule, home)?;
                let examples = if list == "match" { &shown.fits } else { &shown.does_not_fit };
                let place = vec![key.clone(), pattern.clone(), list.to_owned(), at.to_string()];
                let message = format!(
                    "the rule {key} \"{pattern}\" {what} its {list} example \"{}\"",
                    examples[at]
                );
                Some((place, message))
            })
        })
    }
}

impl ShownRule {
    fn contradiction(
        &self,
        rule: &Rule,
        home: &str,
    ) -> Option<(&'static str, usize, &'static str)> {
        let fits = |example: &String| fits(rule, example, home);
        let missed = self.fits.iter().position(|example| !fits(example));
        let caught = self.does_not_fit.iter().position(&fits);
        missed
            .map(|at| ("match", at, "does not match"))
            .or(caught.map(|at| ("not_match", at, "matches")))
    }
}

/// As a call would be judged: a command line by each command in it, a path with its home written out.
fn fits(rule: &Rule, example: &str, home: &str) -> bool {
    let written = Rule::new("", example, rule.action, home).pattern;
    if rule.permission != "bash" {
        return matches(&written, &rule.pattern);
    }
    let commands = analyse(example).commands;
    commands.iter().any(|command| matches(&command.text, &rule.pattern))
        || matches(example.trim(), &rule.pattern)
}

/// The first example in a file that its rule contradicts.
pub(crate) fn wrong_example(settings: &Settings, home: &str) -> Option<WrongExample> {
    let of = |path: &[&str], permission: &Option<PermissionSettings>| {
        let (inner, message) = permission.as_ref()?.wrong_example(home)?;
        let mut place: Vec<String> = path.iter().map(|part| (*part).to_owned()).collect();
        place.extend(inner);
        Some((place, message))
    };
    of(&["permission"], &settings.permission).or_else(|| {
        let of_agent = |(name, agent): (&String, &AgentSettings)| {
            of(&["agent", name, "permission"], &agent.permission)
        };
        settings.agent.iter().find_map(of_agent)
    })
}
