//! How Claude Code calls our tools and their arguments.

use serde_json::{Map, Value};
use toolwright_tool::Workspace;

/// Ours and theirs.
const TOOLS: &[(&str, &str)] = &[
    ("bash", "Bash"),
    // Words typed into a command are commands, a patch is an edit: hooks that watch those see these.
    ("bash_input", "Bash"),
    ("apply_patch", "Edit"),
    ("read", "Read"),
    ("edit", "Edit"),
    ("multiedit", "MultiEdit"),
    ("write", "Write"),
    ("glob", "Glob"),
    ("grep", "Grep"),
    ("list", "LS"),
    ("task", "Task"),
    ("webfetch", "WebFetch"),
    ("websearch", "WebSearch"),
    ("todowrite", "TodoWrite"),
];

/// Ours and theirs.
const ARGUMENTS: &[(&str, &str)] = &[
    ("filePath", "file_path"),
    ("oldString", "old_string"),
    ("newString", "new_string"),
    ("replaceAll", "replace_all"),
];

/// Types into a command that runs: to a hook that watches commands, its words are one.
const TYPES: &str = "bash_input";
const COMMAND: &str = "command";

/// What their hooks expect to be absolute.
const PATH: &str = "file_path";

/// The name there; ours, where they have no such tool.
pub(super) fn tool(own: &str, servers: &[String]) -> String {
    if let Some((_, theirs)) = TOOLS.iter().find(|(ours, _)| *ours == own) {
        return (*theirs).to_owned();
    }
    let of_server = |server: &String| {
        let prefix: String = server.chars().map(plain).collect();
        let name = own.strip_prefix(prefix.as_str())?.strip_prefix('_')?;
        Some((prefix.len(), format!("mcp__{prefix}__{name}")))
    };
    // One server's name may begin like another's.
    let longest = servers.iter().filter_map(of_server).max_by_key(|(length, _)| *length);
    longest.map_or_else(|| own.to_owned(), |(_, name)| name)
}

/// As in the names of MCP tools.
fn plain(c: char) -> char {
    if c.is_ascii_alphanumeric() || c == '_' || c == '-' { c } else { '_' }
}

fn is_ours(tool: &str) -> bool {
    TOOLS.iter().any(|(ours, _)| *ours == tool)
}

/// Arguments in their words. Those of tools that we did not bring are left alone.
pub(super) fn arguments(tool: &str, arguments: &Value, workspace: &Workspace) -> Value {
    if !is_ours(tool) {
        return arguments.clone();
    }
    let mut told = renamed(arguments, &|key| find(key, |(ours, theirs)| (ours, theirs)));
    if let Some(path) = told.get(PATH).and_then(Value::as_str) {
        told[PATH] = workspace.resolve(path).display().to_string().into();
    }
    if tool == TYPES
        && let Some(text) = told.get("text").cloned()
    {
        told[COMMAND] = text;
    }
    told
}

/// Back into ours. What is still as `told` is as it was in `original`.
pub(super) fn arguments_back(tool: &str, changed: &Value, told: &Value, original: &Value) -> Value {
    let back = |key: &str| find(key, |(ours, theirs)| (theirs, ours));
    let known = |key: &str| is_ours(tool).then(|| back(key)).flatten();
    let mut ours = if is_ours(tool) { renamed(changed, &back) } else { changed.clone() };
    for (key, value) in changed.as_object().into_iter().flatten() {
        let own = known(key).unwrap_or(key);
        if told.get(key) == Some(value)
            && let Some(before) = original.get(own)
        {
            ours[own] = before.clone();
        }
    }
    if tool == TYPES
        && let Some(entries) = ours.as_object_mut()
    {
        let command = entries.remove(COMMAND);
        if command.as_ref() != told.get(COMMAND) {
            entries.extend(command.map(|command| ("text".to_owned(), command)));
        }
    }
    ours
}

type Pair = (&'static str, &'static str);

fn find(key: &str, order: fn(Pair) -> Pair) -> Option<&'static str> {
    ARGUMENTS.iter().map(|pair| order(*pair)).find(|(from, _)| *from == key).map(|(_, to)| to)
}

fn renamed(value: &Value, name: &dyn Fn(&str) -> Option<&'static str>) -> Value {
    match value {
        Value::Object(entries) => {
            let rename = |(key, value): (&String, &Value)| {
                (name(key).unwrap_or(key).to_owned(), renamed(value, name))
            };
            Value::Object(entries.iter().map(rename).collect::<Map<_, _>>())
        }
        Value::Array(items) => items.iter().map(|item| renamed(item, name)).collect(),
        other => other.clone(),
    }
}
