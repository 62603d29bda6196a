//! What is allowed when nobody has said anything.

use crate::rule::{Action, Layer, LayerKind, Rule};
use crate::wildcard::matches;

/// Names of files that usually hold secrets, and folders that keep keys. `*.env.example` is meant to
/// be read.
const SECRET_NAMES: &[&str] = &[
    "*.env",
    "*.env.*",
    "*.env-*",
    "*.env_*",
    "*.env~",
    "*.envrc",
    "*.pem",
    "*.key",
    "*.p12",
    "*.pfx",
    "*.p8",
    "*id_rsa*",
    "*id_dsa*",
    "*id_ed25519*",
    "*id_ecdsa*",
    "*.ssh/*",
    "*.aws/*",
    "*.gnupg/*",
    "*.kube/config",
    "*.docker/config.json",
    "*.netrc",
    "*.git-credentials",
    "*.pgpass",
    "*.pypirc",
];
const NOT_SECRET: &[&str] = &["*.env.example", "*.env.sample", "*.env.template", "*.pub"];

/// Reading the workspace is free; writing, running and leaving it ask.
pub fn shipped_defaults() -> Layer {
    use Action::{Allow, Ask};
    let plain = [
        ("*", Ask),
        ("read", Allow),
        ("glob", Allow),
        ("grep", Allow),
        ("list", Allow),
        ("lsp", Allow),
        // Whoever works for another is judged by itself, call for call.
        ("task", Allow),
        // A list and a text that the model reads: nothing outside the session changes.
        ("todowrite", Allow),
        ("skill", Allow),
        ("edit", Ask),
        ("bash", Ask),
        // A session's own jobs: what may be run may be looked at and ended.
        ("bash_output", Allow),
        ("bash_kill", Allow),
        ("external_directory", Ask),
    ];
    let mut rules: Vec<Rule> = plain.iter().map(|(key, action)| rule(key, "*", *action)).collect();
    rules.extend(SECRET_NAMES.iter().map(|pattern| rule("read", pattern, Ask)));
    rules.extend(NOT_SECRET.iter().map(|pattern| rule("read", pattern, Allow)));
    Layer { kind: LayerKind::Defaults, origin: "shipped defaults".to_owned(), rules }
}

/// Whether the shipped rules ask before a file of this name is read.
pub fn is_secret_name(path: &str) -> bool {
    let fits = |patterns: &[&str]| patterns.iter().any(|pattern| matches(path, pattern));
    fits(SECRET_NAMES) && !fits(NOT_SECRET)
}

fn rule(permission: &str, pattern: &str, action: Action) -> Rule {
    Rule { permission: permission.to_owned(), pattern: pattern.to_owned(), action }
}
