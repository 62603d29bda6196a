//! Where a repository keeps its state: a `.git` folder, or the folder that a `.git` file names (a
//! worktree, a submodule). Only ever read.

use std::fs;
use std::path::{Path, PathBuf};

/// A repository whose files stand below `root`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Repository {
    pub(super) root: PathBuf,
    /// Its own state: HEAD, the index.
    pub(super) folder: PathBuf,
    /// What worktrees share: objects, refs, the list of excluded files.
    pub(super) common: PathBuf,
}

impl Repository {
    pub(super) fn at(root: &Path) -> Option<Self> {
        let dot_git = root.join(".git");
        let folder = if dot_git.is_dir() {
            dot_git
        } else {
            let text = fs::read_to_string(&dot_git).ok()?;
            root.join(text.strip_prefix("gitdir:")?.trim())
        };
        if !folder.join("HEAD").exists() {
            return None;
        }
        let common = match fs::read_to_string(folder.join("commondir")) {
            Ok(text) => folder.join(text.trim()),
            Err(_) => folder.clone(),
        };
        Some(Self { root: root.to_owned(), folder, common })
    }

    /// What is checked out: the branch and its commit, as far as that can be read.
    pub(super) fn head(&self) -> Option<String> {
        let head = fs::read_to_string(self.folder.join("HEAD")).ok()?;
        let head = head.trim();
        let Some(name) = head.strip_prefix("ref: ") else { return Some(head.to_owned()) };
        let loose = fs::read_to_string(self.common.join(name)).ok();
        let commit = loose.or_else(|| {
            let packed = fs::read_to_string(self.common.join("packed-refs")).ok()?;
            let line = packed.lines().find(|l| l.split(' ').nth(1) == Some(name))?;
            line.split(' ').next().map(str::to_owned)
        });
        let commit = commit.as_deref().map_or("no commit yet", str::trim);
        Some(format!("{} at {commit}", name.strip_prefix("refs/heads/").unwrap_or(name)))
    }
}
