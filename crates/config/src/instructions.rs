//! The rules that people write for agents: AGENTS.md and its relatives.

use std::path::{Path, PathBuf};

use toolwright_permission::is_secret_name;

use crate::paths::Paths;

/// Characters of one file that reach the model.
const FILE_CAP_CHARS: usize = 32_000;

/// The first name with any file wins; all its files up to the repository's root are used.
const NAMES: &[&str] = &["AGENTS.md", "CLAUDE.md", "CONTEXT.md"];

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Instruction {
    pub path: PathBuf,
    pub text: String,
}

/// The user's own first, then the project's from the root down.
pub fn find_instructions(paths: &Paths, directory: &Path, worktree: &Path) -> Vec<Instruction> {
    let own = [
        paths.config.join("toolwright/AGENTS.md"),
        paths.config.join("opencode/AGENTS.md"),
        paths.home.join(".claude/CLAUDE.md"),
    ];
    let mut found: Vec<Instruction> = own.into_iter().find_map(read).into_iter().collect();
    let mut folders: Vec<&Path> =
        directory.ancestors().take_while(|folder| folder.starts_with(worktree)).collect();
    folders.reverse();
    let project = NAMES.iter().find_map(|name| {
        let inside = |path: &PathBuf| {
            // A link out of the repository would show the model a file that nobody decided about.
            let real = std::fs::canonicalize(path).ok();
            let root = std::fs::canonicalize(worktree).ok();
            // One to a secret inside it too.
            let is_secret = |real: &Path| {
                real.file_name() != path.file_name() && is_secret_name(&real.to_string_lossy())
            };
            real.zip(root).is_some_and(|(real, root)| real.starts_with(root) && !is_secret(&real))
        };
        let paths = folders.iter().map(|folder| folder.join(name)).filter(inside);
        let files: Vec<_> = paths.filter_map(read).collect();
        (!files.is_empty()).then_some(files)
    });
    found.extend(project.into_iter().flatten());
    found
}

/// Files of one setting, and folders that are looked into for it.
const CONFIGURED_FILES: usize = 100;
const CONFIGURED_FOLDERS: usize = 2_000;

/// The files that the setting `instructions` names: paths and globs, seen from the folder and those
/// above it up to the repository's root. Addresses on the network are left to whoever fetches.
pub fn configured_instructions(
    patterns: &[String],
    paths: &Paths,
    directory: &Path,
    worktree: &Path,
) -> Vec<Instruction> {
    let mut files: Vec<PathBuf> = Vec::new();
    for pattern in patterns.iter().filter(|pattern| !is_address(pattern)) {
        let bases: Vec<PathBuf> = if let Some(below) = pattern.strip_prefix("~/") {
            vec![paths.home.join(below)]
        } else {
            let above = directory.ancestors().take_while(|folder| folder.starts_with(worktree));
            above.map(|folder| folder.join(pattern)).collect()
        };
        for base in bases {
            let mut found = expand(&base);
            found.retain(|file| !files.contains(file));
            files.extend(found);
        }
    }
    files.into_iter().take(CONFIGURED_FILES).filter_map(read).collect()
}

pub fn is_address(pattern: &str) -> bool {
    pattern.starts_with("http://") || pattern.starts_with("https://")
}

/// A path with stars, as the files that it means. Without `**` a star stays within its folder.
fn expand(pattern: &Path) -> Vec<PathBuf> {
    let text = pattern.display().to_string();
    let Some(star) = text.find(['*', '?', '[', '{']) else {
        return if pattern.is_file() { vec![pattern.to_owned()] } else { Vec::new() };
    };
    let root = text[..star].rfind('/').map_or("/", |cut| &text[..cut]).to_owned();
    let depth = if text.contains("**") { usize::MAX } else { text[star..].matches('/').count() };
    let wanted = text.replace("**/", "*");
    let mut found = Vec::new();
    let mut folders = vec![(PathBuf::from(&root), 0)];
    let mut looked = 0;
    while let Some((folder, level)) = folders.pop() {
        looked += 1;
        let Ok(entries) = std::fs::read_dir(&folder) else { continue };
        for entry in entries.flatten() {
            let path = entry.path();
            let hidden = entry.file_name().to_string_lossy().starts_with('.');
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            if is_folder && level < depth && looked < CONFIGURED_FOLDERS {
                let skipped = hidden || entry.file_name() == "node_modules";
                if !skipped {
                    folders.push((path, level + 1));
                }
            } else if path.is_file()
                && toolwright_permission::matches(&path.display().to_string(), &wanted)
            {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

fn read(path: PathBuf) -> Option<Instruction> {
    if !path.is_file() {
        return None;
    }
    let bytes = crate::bounded::read(&path).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    let text = match text.char_indices().nth(FILE_CAP_CHARS) {
        Some((at, _)) => format!("{}\n(cut: the file is longer)", &text[..at]),
        None => text.into_owned(),
    };
    Some(Instruction { path, text })
}
