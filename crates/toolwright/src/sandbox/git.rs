//! What git obeys in a work tree: every file that says which programs it runs, or where to look for such a
//! file, in the repository itself, its submodules, its other work trees and the repositories inside it.

use std::collections::{BTreeSet, VecDeque};
use std::fs;
use std::path::{Path, PathBuf};

use toolwright_config::files_named;
use toolwright_session::images::embedded_repositories;

/// In a git folder: what git runs, and what says what else it runs. `commondir` sends it to another folder
/// for all of that.
pub(super) const GIT_SETTINGS: &[&str] = &["hooks", "config", "config.worktree", "commondir"];

/// Repositories and work trees that are protected like the one around them.
const REPOSITORIES_CAP: usize = 128;

/// Folders that are looked into for repositories inside a work tree, the nearest first, and names in them: a
/// look takes some milliseconds for as many, and there is one after every command.
const FOLDERS_CAP: usize = 5_000;
const NAMES_CAP: usize = 100_000;

/// Not looked into: large, and kept out of the index by nearly everybody, without which git does not enter
/// what is inside. What the index does name is found by it.
const LARGE: &[&str] = &["node_modules", "target"];

/// Files of settings that include one another.
const INCLUDE_DEPTH: usize = 5;

/// A longer file of settings is nobody's work.
const SETTINGS_CAP_BYTES: u64 = 1 << 20;

/// Settings whose values are names and addresses, not programs.
const PLAIN: &[&str] =
    &["remote", "branch", "user", "author", "committer", "submodule", "url", "color", "advice"];

/// Everything that git obeys, by paths that may not be real, inside and outside of `worktree`. `settings` are
/// the files of the user's and of the machine's.
pub(super) fn obeyed(worktree: &Path, home: &Path, settings: &[PathBuf]) -> Vec<PathBuf> {
    let mut search =
        Search { home, found: Vec::new(), seen: BTreeSet::new(), trees: BTreeSet::new() };
    search.work_tree(worktree);
    for place in inside(worktree) {
        match place {
            Place::WorkTree(folder) => search.work_tree(&folder),
            Place::Repository(folder) => search.repository(&folder, worktree),
        }
    }
    for file in settings {
        search.settings(file, worktree, INCLUDE_DEPTH);
    }
    search.found
}

/// A place that git would take for its own.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Place {
    /// A folder with a `.git`.
    WorkTree(PathBuf),
    /// A git folder by another name.
    Repository(PathBuf),
}

/// Those at or below a folder, as far as they are looked for, and those that its index names.
pub(super) fn inside(worktree: &Path) -> Vec<Place> {
    let mut found = Vec::new();
    // All there is holds files that are none, and more than can be looked at.
    let root = worktree.parent().map(|_| worktree.to_owned());
    let mut left: VecDeque<PathBuf> = root.into_iter().collect();
    let (mut folders, mut names) = (0, 0);
    while let Some(folder) = left.pop_front() {
        folders += 1;
        if folders > FOLDERS_CAP || names > NAMES_CAP {
            break;
        }
        // Not by its name among the others: there may be more of them than are looked at.
        if exists(&folder.join(".git")) {
            found.push(Place::WorkTree(folder.clone()));
        }
        let (mut has_head, mut has_more) = (false, false);
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            names += 1;
            if names > NAMES_CAP {
                break;
            }
            let name = entry.file_name();
            has_head |= name == "HEAD";
            has_more |= name == "objects" || name == "commondir";
            let is_passed = name == ".git" || LARGE.iter().any(|large| name == *large);
            if !is_passed && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                left.push_back(entry.path());
            }
        }
        if has_head && has_more {
            found.push(Place::Repository(folder));
        }
    }
    let named = git_folder(&worktree.join(".git")).map(|folder| embedded(&folder));
    let named = named.into_iter().flatten().map(|path| worktree.join(path));
    found.extend(named.filter(|path| exists(&path.join(".git"))).map(Place::WorkTree));
    found.sort();
    found.dedup();
    found
}

fn embedded(git: &Path) -> Vec<PathBuf> {
    embedded_repositories(git).ok().flatten().unwrap_or_default()
}

/// The git folder that a `.git` is or leads to.
pub(super) fn git_folder(git: &Path) -> Option<PathBuf> {
    let real = fs::canonicalize(git).ok()?;
    if real.is_dir() {
        return Some(real);
    }
    let text = read(&real)?;
    let to = text.strip_prefix("gitdir:")?.trim();
    fs::canonicalize(git.parent()?.join(to)).ok().filter(|folder| folder.is_dir())
}

/// The folder that a git folder shares its settings with, if that is another one.
pub(super) fn shared_folder(folder: &Path) -> Option<PathBuf> {
    let to = read(&folder.join("commondir"))?;
    fs::canonicalize(folder.join(to.trim())).ok()
}

fn exists(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok()
}

fn read(file: &Path) -> Option<String> {
    let data = fs::metadata(file).ok()?;
    let fits = data.is_file() && data.len() <= SETTINGS_CAP_BYTES;
    let bytes = fs::read(file).ok().filter(|_| fits)?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

struct Search<'a> {
    home: &'a Path,
    found: Vec<PathBuf>,
    /// Git folders and files of settings.
    seen: BTreeSet<PathBuf>,
    trees: BTreeSet<PathBuf>,
}

impl Search<'_> {
    fn is_new(&mut self, path: &Path) -> bool {
        self.seen.len() < REPOSITORIES_CAP && self.seen.insert(path.to_owned())
    }

    fn work_tree(&mut self, root: &Path) {
        let git = root.join(".git");
        let has_room = self.trees.len() < REPOSITORIES_CAP;
        if !exists(&git) || !has_room || !self.trees.insert(root.to_owned()) {
            return;
        }
        if !fs::symlink_metadata(&git).is_ok_and(|data| data.is_dir()) {
            // Whoever changes it leads git to settings of their own.
            self.found.push(git.clone());
        }
        let Some(folder) = git_folder(&git) else { return };
        self.repository(&folder, root);
        for path in embedded(&folder) {
            self.work_tree(&root.join(path));
        }
    }

    /// `root` is what its settings mean relative paths from.
    fn repository(&mut self, folder: &Path, root: &Path) {
        if !self.is_new(folder) {
            return;
        }
        self.found.extend(GIT_SETTINGS.iter().map(|name| folder.join(name)));
        for name in ["config", "config.worktree"] {
            self.settings(&folder.join(name), root, INCLUDE_DEPTH);
        }
        if let Some(shared) = shared_folder(folder) {
            self.repository(&shared, root);
        }
        let mut inner = Vec::new();
        add_inner(&folder.join("modules"), 3, &mut inner);
        for module in inner {
            let own = work_tree_of(&module);
            own.iter().for_each(|own| self.work_tree(own));
            self.repository(&module, own.as_deref().unwrap_or(root));
        }
        let mut inner = Vec::new();
        add_inner(&folder.join("worktrees"), 0, &mut inner);
        for linked in inner {
            let git = read(&linked.join("gitdir")).map(|to| linked.join(to.trim()));
            let own = git.as_deref().and_then(Path::parent);
            own.iter().for_each(|own| self.work_tree(own));
            self.repository(&linked, own.unwrap_or(root));
        }
    }

    fn settings(&mut self, file: &Path, root: &Path, depth: usize) {
        for Setting { section, key, value } in parse(&read(file).unwrap_or_default()) {
            match (section.as_str(), key.as_str()) {
                ("include" | "includeif", "path") => {
                    let to = self.placed(&value, file.parent().unwrap_or(root));
                    if depth > 0 && self.is_new(&to) {
                        self.settings(&to, root, depth - 1);
                    }
                    self.found.push(to);
                }
                ("core", "hookspath") => {
                    let mut to = self.placed(&value, root);
                    // Those inside only call those beside it.
                    if to.ends_with(".husky/_") {
                        to.pop();
                    }
                    self.found.push(to);
                }
                (section, _) if PLAIN.contains(&section) => {}
                _ => self.found.extend(files_named(&value, root, &[])),
            }
        }
    }

    fn placed(&self, value: &str, folder: &Path) -> PathBuf {
        match value.strip_prefix("~/") {
            Some(inside) => self.home.join(inside),
            None => folder.join(value.trim_end_matches('/')),
        }
    }
}

/// Where a submodule's files are.
pub(super) fn work_tree_of(module: &Path) -> Option<PathBuf> {
    let text = read(&module.join("config"))?;
    let is_own = |s: &Setting| s.section == "core" && s.key == "worktree";
    let to = parse(&text).into_iter().find(is_own)?.value;
    fs::canonicalize(module.join(to)).ok()
}

/// What git keeps of submodules (whose names may have slashes) and of further work trees.
fn add_inner(folder: &Path, depth: usize, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if found.len() > REPOSITORIES_CAP || !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            continue;
        }
        if path.join("HEAD").exists() {
            found.push(path);
        } else if depth > 0 {
            add_inner(&path, depth - 1, found);
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
struct Setting {
    section: String,
    key: String,
    value: String,
}

/// The settings of a file, as git reads them; what is wrong in it is passed over.
fn parse(text: &str) -> Vec<Setting> {
    let mut found = Vec::new();
    let mut section = String::new();
    let text = text.replace("\\\r\n", "").replace("\\\n", "");
    for line in text.lines() {
        let mut line = line.trim();
        if let Some(head) = line.strip_prefix('[') {
            let Some((head, rest)) = head.split_once(']') else { continue };
            let name = head.split([' ', '\t', '.', '"']).next().unwrap_or_default();
            section = name.to_lowercase();
            line = rest.trim();
        }
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        let (key, value) = line.split_once('=').unwrap_or((line, ""));
        let key = key.trim().to_lowercase();
        found.push(Setting { section: section.clone(), key, value: plain(value.trim()) });
    }
    found
}

/// Without quotes, escapes and a comment behind it.
fn plain(value: &str) -> String {
    let mut text = String::new();
    let mut quoted = false;
    let mut letters = value.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '"' => quoted = !quoted,
            '\\' => text.extend(letters.next()),
            '#' | ';' if !quoted => break,
            _ => text.push(letter),
        }
    }
    text.trim_end().to_owned()
}

#[cfg(test)]
#[path = "git_tests.rs"]
mod tests;
