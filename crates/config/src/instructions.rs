//! The rules that people write for agents: AGENTS.md and its relatives.

use std::path::{Path, PathBuf};

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
            real.zip(root).is_some_and(|(real, root)| real.starts_with(root))
        };
        let paths = folders.iter().map(|folder| folder.join(name)).filter(inside);
        let files: Vec<_> = paths.filter_map(read).collect();
        (!files.is_empty()).then_some(files)
    });
    found.extend(project.into_iter().flatten());
    found
}

fn read(path: PathBuf) -> Option<Instruction> {
    if !path.is_file() {
        return None;
    }
    let bytes = std::fs::read(&path).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    let text = match text.char_indices().nth(FILE_CAP_CHARS) {
        Some((at, _)) => format!("{}\n(cut: the file is longer)", &text[..at]),
        None => text.into_owned(),
    };
    Some(Instruction { path, text })
}
