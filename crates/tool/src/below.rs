//! What a command reads that looks through a whole folder: the files in it that are asked about.

use std::collections::VecDeque;
use std::fs;
use std::path::{Path, PathBuf};

use toolwright_permission::{Below, is_secret_name, matches};

use crate::floor;
use crate::workspace::Workspace;

/// Entries that are looked at, those further up first: secrets lie near the top, and a command must not
/// wait for its own judgement.
const ENTRIES_CAP: usize = 10_000;

/// Files that are named in the question.
const SECRETS_CAP: usize = 16;

/// Folders full of other people's files: what looks like a key there is one for tests.
const FOREIGN: &[&str] = &[".git", "node_modules", "target", ".venv", "venv", "vendor"];

/// Files below a folder that a search through it would print lines of, and that the shipped rules ask
/// about, or rules that people wrote.
pub(crate) fn secrets(folder: &Path, below: &Below, workspace: &Workspace) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = VecDeque::from([folder.to_owned()]);
    let mut entries = 0;
    while let Some(folder) = folders.pop_front() {
        // What cannot be listed cannot be searched.
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            entries += 1;
            if entries > ENTRIES_CAP || found.len() >= SECRETS_CAP {
                return found;
            }
            let name = entry.file_name();
            let name = name.to_string_lossy();
            if name.starts_with('.') && !below.hidden {
                continue;
            }
            let path = entry.path();
            // Links are not followed by a search.
            match entry.file_type() {
                Ok(kind) if kind.is_dir() && !is_left_out(&name, workspace) => {
                    folders.push_back(path);
                }
                Ok(kind)
                    if kind.is_file() && is_read(&name, below) && is_asked(&path, workspace) =>
                {
                    found.push(path);
                }
                _ => {}
            }
        }
    }
    found.sort();
    found
}

/// Whether somebody wants to be asked before it is read. The rules themselves say so in the end.
pub(crate) fn is_asked(path: &Path, workspace: &Workspace) -> bool {
    let relative = workspace.relative(path);
    let full = path.to_string_lossy();
    let covers = |pattern: &String| matches(&relative, pattern) || matches(&full, pattern);
    is_secret_name(&relative) || workspace.minded().iter().any(covers)
}

/// Folders that nobody looks into, but for those that somebody wrote a rule about.
fn is_left_out(name: &str, workspace: &Workspace) -> bool {
    FOREIGN.contains(&name) && !workspace.minded().iter().any(|pattern| pattern.contains(name))
}

fn is_read(name: &str, below: &Below) -> bool {
    let last = |glob: &str| glob.rsplit('/').next().unwrap_or_default().to_owned();
    below.only.is_empty() || below.only.iter().any(|glob| floor::may_match(&last(glob), name))
}
