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
    let above = folder.ancestors().skip(1).take_while(|above| workspace.contains(above));
    let back: Vec<String> = above.flat_map(brought_back).collect();
    let mut folders = VecDeque::from([(folder.to_owned(), back)]);
    let mut entries = 0;
    while let Some((folder, mut back)) = folders.pop_front() {
        if !below.hidden {
            back.extend(brought_back(&folder));
        }
        // What cannot be listed cannot be searched.
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            entries += 1;
            if entries > ENTRIES_CAP || found.len() >= SECRETS_CAP {
                return found;
            }
            let name = entry.file_name();
            let name = name.to_string_lossy();
            let path = entry.path();
            let is_back = || back.iter().any(|glob| floor::may_match(glob, &name));
            if name.starts_with('.') && !below.hidden && !is_back() {
                continue;
            }
            match entry.file_type() {
                Ok(kind) if kind.is_dir() && !is_left_out(&name, workspace) => {
                    folders.push_back((path, back.clone()));
                }
                // Most searches do not follow links.
                Ok(kind) if kind.is_symlink() && below.links => {
                    let real = workspace.resolve_in(&folder, &name);
                    if !workspace.contains(&real) || is_asked(&real, workspace) {
                        found.push(real);
                    }
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

/// Names that a file beside the others brings back: they are searched even where they are hidden
/// (`!.env`).
fn brought_back(folder: &Path) -> Vec<String> {
    let small = |file: &PathBuf| fs::metadata(file).is_ok_and(|data| data.len() < IGNORE_CAP_BYTES);
    let files = IGNORES.iter().map(|name| folder.join(name)).filter(small);
    let texts: Vec<String> = files.filter_map(|file| fs::read_to_string(file).ok()).collect();
    let lines = texts.iter().flat_map(|text| text.lines()).filter_map(|l| l.strip_prefix('!'));
    let last =
        |glob: &str| glob.trim_end().trim_end_matches('/').rsplit('/').next().map(str::to_owned);
    lines.filter_map(last).collect()
}

const IGNORES: [&str; 3] = [".gitignore", ".ignore", ".rgignore"];
const IGNORE_CAP_BYTES: u64 = 256 << 10;

fn is_read(name: &str, below: &Below) -> bool {
    let name = name.to_lowercase();
    below.only.is_empty()
        || below.only.iter().any(|glob| {
            let last = glob.trim_end().rsplit('/').next().unwrap_or_default().to_lowercase();
            last.is_empty() || floor::may_match(&last, &name)
        })
}
