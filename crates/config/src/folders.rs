//! Folders in which people keep what is theirs: agents, commands, tools, plugins. Outermost first, so
//! that what comes later is nearer and wins.

use std::path::{Path, PathBuf};

use toolwright_permission::LayerKind;

use crate::paths::Paths;

/// Where tools and plugins are kept.
pub const TOOL_FOLDERS: &[&str] = &["tool", "tools"];
pub const PLUGIN_FOLDERS: &[&str] = &["plugin", "plugins"];

/// Files of one kind that are looked at in all.
const FILES_CAP: usize = 1_000;

/// Folders below are looked into so far.
const DEPTH: usize = 8;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigFolder {
    pub path: PathBuf,
    /// The user's own, or the project's: of the latter nothing is run before it is trusted.
    pub kind: LayerKind,
}

/// Those that exist.
pub fn config_folders(paths: &Paths, directory: &Path, worktree: &Path) -> Vec<ConfigFolder> {
    let own = ["opencode", "toolwright"].map(|name| paths.config.join(name));
    let own = own.into_iter().map(|path| ConfigFolder { path, kind: LayerKind::User });
    let mut above: Vec<&Path> =
        directory.ancestors().take_while(|folder| folder.starts_with(worktree)).collect();
    above.reverse();
    let project = above.into_iter().flat_map(|folder| {
        [".opencode", ".toolwright"]
            .map(|name| ConfigFolder { path: folder.join(name), kind: LayerKind::Project })
    });
    own.chain(project).filter(|folder| folder.path.is_dir()).collect()
}

impl ConfigFolder {
    /// The files directly in the folders with these names, sorted; those with one of the endings.
    pub fn files(&self, names: &[&str], endings: &[&str]) -> Vec<PathBuf> {
        self.all_files(names).into_iter().filter(|path| has_ending(path, endings)).collect()
    }

    /// As [`Self::files`], whatever they end in.
    pub fn all_files(&self, names: &[&str]) -> Vec<PathBuf> {
        let mut found = Vec::new();
        for name in names {
            let Ok(entries) = std::fs::read_dir(self.path.join(name)) else { continue };
            let files = entries.flatten().map(|entry| entry.path()).filter(|path| path.is_file());
            found.extend(files.take(FILES_CAP));
        }
        found.sort();
        found
    }

    /// Markdown files in and below the folders with these names, each with its name below that folder
    /// without the ending.
    pub fn texts(&self, names: &[&str]) -> Vec<(String, PathBuf)> {
        let mut found = Vec::new();
        for name in names {
            // A project's links lead where nobody has looked when the folder was trusted.
            let follow = self.kind != LayerKind::Project;
            walk(&self.path.join(name), ("", 0), follow, &mut found);
        }
        found.sort();
        found
    }
}

fn has_ending(path: &Path, endings: &[&str]) -> bool {
    let ending = path.extension().and_then(|e| e.to_str()).unwrap_or_default();
    // Declarations hold nothing to run.
    let declares = path.to_str().is_some_and(|p| p.ends_with(".d.ts") || p.ends_with(".d.mts"));
    endings.contains(&ending) && !declares
}

fn walk(
    folder: &Path,
    (before, depth): (&str, usize),
    follow: bool,
    found: &mut Vec<(String, PathBuf)>,
) {
    if depth > DEPTH {
        return;
    }
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        if found.len() >= FILES_CAP {
            return;
        }
        let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
        if path.is_dir() {
            let is_link = entry.file_type().is_ok_and(|kind| kind.is_symlink());
            if follow || !is_link {
                walk(&path, (&format!("{before}{name}/"), depth + 1), follow, found);
            }
        } else if let Some(stem) = name.strip_suffix(".md") {
            found.push((format!("{before}{stem}"), path));
        }
    }
}
