//! Files that others name: what trusted settings include and enter, and what scripts import. Whoever
//! trusts a folder trusts them as they are, like the files that name them.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::file;
use crate::substitute::files_in;

const SCRIPT_ENDINGS: &[&str] = &["js", "ts", "mjs", "mts", "cjs", "cts"];

/// What an import without an ending, or of a folder, may stand for.
const MEANT: &[&str] = &["", ".ts", ".js", ".mjs", ".cjs", ".mts", ".cts"];
const INDEXES: &[&str] = &["index.ts", "index.js", "index.mjs", "index.cjs"];

/// A larger file is no script that a person has read.
const SCRIPT_CAP_BYTES: u64 = 4 << 20;

/// Files in all; more cannot be trusted for good anyway.
const FILES_CAP: usize = 2_001;

/// Adds what the settings among `files` include with `{file:…}` and name as plugins. What is the user's
/// own, outside of the repository, is theirs to change.
pub(crate) fn add_named(files: &mut Vec<PathBuf>, worktree: &Path) {
    let mut named = Vec::new();
    for path in files.iter().filter(|path| has_ending(path, &["json", "jsonc"])) {
        let Ok(text) = crate::bounded::read_to_string(path) else { continue };
        let Ok(document) = file::read::<Value>(path, &text, None) else { continue };
        let folder = path.parent().unwrap_or(Path::new("/"));
        let included = files_in(&document.settings).into_iter();
        let entered = document.settings["plugin"].as_array().into_iter().flatten();
        let entered = entered.filter_map(|spec| spec.as_str().or_else(|| spec[0].as_str()));
        let entered = entered.map(|name| name.strip_prefix("file://").unwrap_or(name));
        let is_path = |name: &&str| name.starts_with('.') || name.starts_with('/');
        let all = included.filter(|name| !name.starts_with("~/")).chain(entered.filter(is_path));
        let of_others =
            |name: &&str| name.starts_with('/') && !Path::new(name).starts_with(worktree);
        // As they stand: where a link leads to is the system's matter, when it is read.
        named.extend(all.filter(|name| !of_others(name)).map(|name| folder.join(name)));
    }
    for path in named {
        match path.is_dir() {
            true => collect_scripts(&path, files),
            false => add(path, files),
        }
    }
}

/// Adds what the scripts among `files` import by relative paths, and what those import.
pub(crate) fn add_imported(files: &mut Vec<PathBuf>) {
    let mut seen: BTreeSet<PathBuf> = files.iter().cloned().collect();
    let mut at = 0;
    while at < files.len() && files.len() < FILES_CAP {
        let path = files[at].clone();
        at += 1;
        let small = || fs::metadata(&path).is_ok_and(|data| data.len() <= SCRIPT_CAP_BYTES);
        if !has_ending(&path, SCRIPT_ENDINGS) || !small() {
            continue;
        }
        let text = crate::bounded::read(&path).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        // What is imported is looked for from where the script is, and from where it really is.
        let real = fs::canonicalize(&path).ok().filter(|real| *real != path);
        let folders: Vec<PathBuf> =
            [Some(path), real].iter().flatten().filter_map(|p| Some(p.parent()?.into())).collect();
        // Every text that looks like a relative path: which of them are imports need not be known.
        let is_relative = |text: &&str| text.starts_with("./") || text.starts_with("../");
        for name in text.split(['"', '\'', '`']).filter(is_relative) {
            let found = folders.iter().filter_map(|folder| script_at(&folder.join(name)));
            files.extend(found.filter(|file| seen.insert(file.clone())));
        }
    }
}

/// A plugin that is a folder: its manifest and its scripts. Packages below it are installed by the user.
fn collect_scripts(folder: &Path, files: &mut Vec<PathBuf>) {
    add(folder.join("package.json"), files);
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if files.len() >= FILES_CAP {
            return;
        }
        let (path, kind) = (entry.path(), entry.file_type());
        match kind {
            Ok(kind) if kind.is_dir() && entry.file_name() != "node_modules" => {
                collect_scripts(&path, files);
            }
            _ if has_ending(&path, SCRIPT_ENDINGS) => add(path, files),
            _ => {}
        }
    }
}

fn add(path: PathBuf, files: &mut Vec<PathBuf>) {
    if !files.contains(&path) {
        files.push(path);
    }
}

pub(crate) fn script_at(path: &Path) -> Option<PathBuf> {
    let with = |ending: &&str| {
        let mut name = path.as_os_str().to_owned();
        name.push(ending);
        PathBuf::from(name)
    };
    let direct = MEANT.iter().map(with);
    let compiled = path.extension().filter(|e| *e == "js").map(|_| path.with_extension("ts"));
    let index = INDEXES.iter().map(|name| path.join(name));
    let mut all = direct.chain(compiled).chain(index);
    all.find(|file| file.is_file() && has_ending(file, SCRIPT_ENDINGS))
}

fn has_ending(path: &Path, endings: &[&str]) -> bool {
    path.extension().and_then(|e| e.to_str()).is_some_and(|e| endings.contains(&e))
}
