//! Keys inside of settings that are almost right. Others may stand there: OpenCode's, which mean nothing here, and
//! what a provider takes. But one that is nearly ours is a slip, and what it was to say would be lost.

use jsonc_parser::ast;

/// A group of settings, the type that reads it, and its keys. A star stands for any name.
pub(crate) const INSIDE: &[(&[&str], &str, &[&str])] = &[
    (
        &["agent", "*"],
        "AgentSettings",
        &[
            "model",
            "prompt",
            "description",
            "temperature",
            "top_p",
            "seed",
            "stop",
            "effort",
            "steps",
            "disable",
            "mode",
            "hidden",
            "permission",
            "tools",
            "variant",
            "maxSteps",
        ],
    ),
    (
        &["command", "*"],
        "CommandSettings",
        &["template", "description", "agent", "model", "subtask"],
    ),
    (
        &["mcp", "*"],
        "McpSettings",
        &[
            "type",
            "command",
            "cwd",
            "environment",
            "url",
            "headers",
            "oauth",
            "enabled",
            "timeout",
            "required",
            "sandbox",
        ],
    ),
    (&["provider", "*"], "ProviderSettings", &["name", "npm", "api", "env", "options", "models"]),
    (
        &["sandbox"],
        "SandboxSettings",
        &[
            "enabled",
            "network",
            "writable",
            "readable",
            "unreadable",
            "environment",
            "caches",
            "layer",
        ],
    ),
    (
        &["compaction"],
        "CompactionSettings",
        &["auto", "prune", "reserved", "preserve_recent_tokens"],
    ),
    (&["undo"], "UndoSettings", &["quota_bytes", "retention_days"]),
    (&["skills"], "SkillsSettings", &["paths"]),
    (&["experimental"], "ExperimentalSettings", &["batch_tool", "code_mode", "mcp_timeout"]),
];

/// What providers take and others' settings have: near to a key of ours, and no slip.
const OF_OTHERS: &[&str] = &["top_k", "top_a"];

/// Shorter words are near to everything.
const SHORTEST: usize = 4;

/// Slips, each with where it stands and what was probably meant.
pub(crate) fn slips(top: &ast::Object<'_>) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (way, _, keys) in INSIDE {
        walk(top, way, &mut Vec::new(), keys, &mut found);
    }
    found
}

fn walk<'a>(
    at: &'a ast::Object<'_>,
    way: &[&str],
    been: &mut Vec<&'a str>,
    keys: &[&str],
    found: &mut Vec<(usize, String)>,
) {
    let Some((step, rest)) = way.split_first() else {
        for property in &at.properties {
            let key = property.name.as_str();
            if let Some(nearest) = nearest(key, keys) {
                let place = been.join(".");
                let words =
                    format!("unknown key \"{key}\" in {place}; did you mean \"{nearest}\"?");
                found.push((property.range.start, words));
            }
        }
        return;
    };
    for property in at.properties.iter().filter(|p| *step == "*" || p.name.as_str() == *step) {
        if let Some(inner) = property.value.as_object() {
            been.push(property.name.as_str());
            walk(inner, rest, been, keys, found);
            been.pop();
        }
    }
}

fn nearest<'k>(key: &str, keys: &[&'k str]) -> Option<&'k str> {
    if key.len() < SHORTEST || keys.contains(&key) || OF_OTHERS.contains(&key) {
        return None;
    }
    let far = |known: &&str| strsim::damerau_levenshtein(known, key);
    keys.iter()
        .copied()
        .min_by_key(far)
        .filter(|known| far(known) <= if key.len() < 7 { 1 } else { 2 })
}
