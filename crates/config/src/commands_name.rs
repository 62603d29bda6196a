//! Files that commands of hooks and of local MCP servers name: they are run outside of every fence, so
//! whoever trusts the command trusts them as they are.

use std::fs;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};

use serde_json::Value;

use crate::file;
use crate::named::script_at;

/// What stands for the project in a hook's command. Longer names first.
const PROJECT: &[&str] = &[
    "${CLAUDE_PROJECT_DIR}",
    "$CLAUDE_PROJECT_DIR",
    "${TOOLWRIGHT_PROJECT_DIR}",
    "$TOOLWRIGHT_PROJECT_DIR",
    "$(git rev-parse --show-toplevel)",
    "$(pwd)",
    "${PWD}",
    "$PWD",
];

/// Words of one command; a longer one is nobody's work.
const WORDS_CAP: usize = 500;

/// How programs are called that others read and run.
const ENDINGS: &[&str] = &[
    "sh", "bash", "zsh", "fish", "py", "pyz", "rb", "pl", "php", "lua", "js", "mjs", "cjs", "ts",
    "mts", "cts", "tsx", "jar", "exe", "awk", "jq", "ps1",
];

/// The programs inside `project` that a command's words name, seen from it and from `folders`; not what
/// is only data for them. A word that plainly is the path of a script counts also where nothing is there yet:
/// somebody could put it there.
pub fn files_named(command: &str, project: &Path, folders: &[&Path]) -> Vec<PathBuf> {
    let mut words: Vec<String> = Vec::new();
    let command = &without_outputs(command);
    for word in shell_words(command).into_iter().chain(plain_words(command)).take(WORDS_CAP) {
        let word = placed(&word, project);
        // `--config=x.js` names a file too.
        let value = word.split_once('=').map(|(_, value)| value.to_owned());
        words.extend(value.into_iter().chain([word]));
    }
    let mut from: Vec<PathBuf> = folders.iter().map(|folder| folder.to_path_buf()).collect();
    from.push(project.to_owned());
    // `cd tools && ./check.sh`
    let entered: Vec<PathBuf> = words
        .iter()
        .flat_map(|word| from.iter().map(|folder| clean(&folder.join(word))).collect::<Vec<_>>())
        .filter(|path| path.starts_with(project) && path != project && path.is_dir())
        .collect();
    from.extend(entered);
    let mut found = Vec::new();
    for word in words.iter().filter(|word| !word.is_empty()) {
        let is_path = ["./", "../", "/"].iter().any(|front| word.starts_with(front));
        for path in from.iter().map(|folder| clean(&folder.join(word))) {
            if !path.starts_with(project) || found.contains(&path) {
                continue;
            }
            match fs::metadata(&path) {
                Ok(data) if data.is_file() => {
                    found.extend(is_program(&path, &data).then_some(path));
                }
                Ok(_) => found.extend(script_at(&path)),
                Err(_) => match script_at(&path) {
                    Some(script) => found.push(script),
                    None if is_path && has_ending(&path) => found.push(path),
                    None => {}
                },
            }
        }
    }
    found.sort();
    found.dedup();
    found
}

fn has_ending(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ENDINGS.iter().any(|known| ending == *known))
}

fn is_program(path: &Path, data: &fs::Metadata) -> bool {
    let begins = || {
        let mut front = [0; 2];
        fs::File::open(path).and_then(|mut file| file.read_exact(&mut front)).is_ok()
            && front == *b"#!"
    };
    has_ending(path) || data.permissions().mode() & 0o111 != 0 || begins()
}

/// What a command writes changes with every run, and is nothing that it runs.
fn without_outputs(command: &str) -> String {
    let mut pieces = command.split('>');
    let mut kept = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let target = piece.trim_start();
        let end = target.find(|c: char| c.is_whitespace() || ";|&)".contains(c));
        kept.push(' ');
        kept.push_str(end.map_or("", |end| &target[end..]));
    }
    kept
}

/// Those that a file of settings names for what runs outside the fence.
pub(crate) fn named_in(settings: &Path, directory: &Path, worktree: &Path) -> Vec<PathBuf> {
    if !settings.is_file() {
        return Vec::new();
    }
    let Ok(text) = fs::read_to_string(settings) else { return Vec::new() };
    let Ok(document) = file::read::<Value>(settings, &text, None) else { return Vec::new() };
    let value = document.settings;
    let folder = settings.parent().unwrap_or(worktree);
    let own = match folder.file_name().and_then(|name| name.to_str()) {
        Some(".claude" | ".opencode" | ".toolwright") => folder.parent().unwrap_or(folder),
        _ => folder,
    };
    let mut found = Vec::new();
    let mut commands = Vec::new();
    hook_commands(&value["hooks"], &mut commands);
    for command in commands {
        found.extend(files_named(command, own, &[directory]));
        found.extend(files_named(command, worktree, &[directory]));
    }
    for servers in [&value["mcp"], &value["mcpServers"]] {
        for server in servers.as_object().into_iter().flat_map(|servers| servers.values()) {
            // One that runs inside the fence can do no more than who writes its files.
            if server.get("sandbox").is_some_and(|inside| *inside != false) {
                continue;
            }
            let from = directory.join(server["cwd"].as_str().unwrap_or_default());
            let mut words = Vec::new();
            for key in ["command", "args"] {
                match &server[key] {
                    Value::String(word) => words.push(word.as_str()),
                    Value::Array(all) => words.extend(all.iter().filter_map(Value::as_str)),
                    _ => {}
                }
            }
            for word in words {
                found.extend(files_named(word, worktree, &[&from]));
            }
        }
    }
    found
}

fn hook_commands<'a>(value: &'a Value, found: &mut Vec<&'a str>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| hook_commands(item, found)),
        Value::Object(entries) => {
            for (key, entry) in entries {
                match entry.as_str() {
                    Some(text) if key == "command" => found.push(text),
                    _ => hook_commands(entry, found),
                }
            }
        }
        _ => {}
    }
}

fn placed(word: &str, project: &Path) -> String {
    let project = project.display().to_string();
    PROJECT.iter().fold(word.to_owned(), |word, name| word.replace(name, &project))
}

/// As a shell takes a line apart, as far as files are concerned.
fn shell_words(command: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quote = None;
    for letter in command.chars() {
        match (quote, letter) {
            (Some(open), _) if letter == open => quote = None,
            (None, '"' | '\'') => quote = Some(letter),
            (None, _) if letter.is_whitespace() || ";|&<>".contains(letter) => {
                words.push(String::new());
            }
            _ => words.last_mut().into_iter().for_each(|word| word.push(letter)),
        }
    }
    words
}

/// Also what stands inside quotes: `sh -c "./a.sh && ./b.sh"`.
fn plain_words(command: &str) -> Vec<String> {
    let is_end = |letter: char| letter.is_whitespace() || "\"'`;|&<>(){}".contains(letter);
    // The braces of a variable are none of a group.
    let command = command.replace("${CLAUDE_PROJECT_DIR}", "$CLAUDE_PROJECT_DIR");
    let command = command.replace("${TOOLWRIGHT_PROJECT_DIR}", "$TOOLWRIGHT_PROJECT_DIR");
    command.split(is_end).map(str::to_owned).collect()
}

/// Without `.` and `..`; where links lead is asked by those who use it.
fn clean(path: &Path) -> PathBuf {
    let mut clean = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                clean.pop();
            }
            other => clean.push(other),
        }
    }
    clean
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_a_command_are_found_as_files() {
        let folder = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(folder.path()).unwrap().join("my project");
        for (file, text) in [
            (".claude/hooks/check.sh", ""),
            ("tools/lint.py", ""),
            ("tools/run", "#!/bin/sh"),
            ("a.js", ""),
            ("server/index.js", ""),
            ("state.json", "{}"),
            ("hook.log", ""),
        ] {
            fs::create_dir_all(root.join(file).parent().unwrap()).unwrap();
            fs::write(root.join(file), text).unwrap();
        }
        for (command, wanted) in [
            ("\"$CLAUDE_PROJECT_DIR\"/.claude/hooks/check.sh", vec![".claude/hooks/check.sh"]),
            ("${CLAUDE_PROJECT_DIR}/.claude/hooks/check.sh -x", vec![".claude/hooks/check.sh"]),
            ("python3 tools/lint.py --all", vec!["tools/lint.py"]),
            ("cd tools && ./run", vec!["tools/run"]),
            ("sh -c 'python3 tools/lint.py; node a'", vec!["a.js", "tools/lint.py"]),
            ("node server", vec!["server/index.js"]),
            ("eslint --config=a.js", vec!["a.js"]),
            // Not there yet, and plainly a script; what a server writes is not.
            ("./new.sh", vec!["new.sh"]),
            ("./server.db ./notes", vec![]),
            ("tools/run state.json ./more.json >> ./hook.log 2>a.js", vec!["tools/run"]),
            ("npm run test", vec![]),
            ("/usr/bin/env true", vec![]),
            ("cat ../outside.sh", vec![]),
            ("", vec![]),
        ] {
            let found = files_named(command, &root, &[]);
            let wanted: Vec<_> = wanted.iter().map(|file| root.join(file)).collect();
            assert_eq!(found, wanted, "{command}");
        }
    }
}
