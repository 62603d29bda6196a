//! A look at the workspace: what stands where, by what a directory tells and without reading a file.
//! What the ignore files exclude is not entered and only remembered by name.

use std::collections::{BTreeSet, HashMap};
use std::fs::{self, DirEntry, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder, gitconfig_excludes_path};
use serde::{Deserialize, Serialize};

use super::place::Repository;
use crate::held::{Held, is_elsewhere};

/// More than this is no workspace that anybody wants to wait for.
pub(super) const ENTRIES_CAP: usize = 400_000;

/// What tells that a file is still the one that was captured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Facts {
    pub(super) kind: Kind,
    pub(super) mode: u32,
    pub(super) len: u64,
    pub(super) mtime: i64,
    pub(super) ctime: i64,
    pub(super) inode: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Kind {
    File,
    Link,
    Folder,
    /// A pipe, a socket, a device.
    Other,
}

impl Facts {
    pub(super) fn of(data: &Metadata) -> Self {
        let kind = match data.file_type() {
            kind if kind.is_file() => Kind::File,
            kind if kind.is_symlink() => Kind::Link,
            kind if kind.is_dir() => Kind::Folder,
            _ => Kind::Other,
        };
        let nanos = |seconds: i64, nanos: i64| seconds.wrapping_mul(1_000_000_000) + nanos;
        let facts = Self {
            kind,
            mode: data.mode() & 0o7777,
            len: data.len(),
            mtime: nanos(data.mtime(), data.mtime_nsec()),
            ctime: nanos(data.ctime(), data.ctime_nsec()),
            inode: data.ino(),
        };
        match kind {
            // A folder's times and size change with what is in it, which is seen by itself.
            Kind::Folder => Self { len: 0, mtime: 0, ctime: 0, inode: 0, ..facts },
            _ => facts,
        }
    }

    pub(super) fn at(path: &Path) -> io::Result<Option<Self>> {
        match fs::symlink_metadata(path) {
            Ok(data) => Ok(Some(Self::of(&data))),
            Err(e)
                if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) =>
            {
                Ok(None)
            }
            Err(e) => Err(e),
        }
    }

    /// As [`Self::at`], of what stands there itself. What a link on the way leads to stands elsewhere: a
    /// folder that was moved away and left a link behind no longer has its files.
    pub(super) fn in_place(path: &Path) -> io::Result<Option<Self>> {
        match Held::open(path.parent().unwrap_or(Path::new("/"))) {
            Err(error) if is_elsewhere(&error) => Ok(None),
            _ => Self::at(path),
        }
    }
}

/// What one look found.
#[derive(Debug, Default)]
pub(super) struct Scan {
    pub(super) entries: HashMap<PathBuf, Facts>,
    /// What was left out because of an ignore file.
    pub(super) ignored: BTreeSet<PathBuf>,
    pub(super) repositories: Vec<Repository>,
}

#[derive(Debug, thiserror::Error)]
pub(super) enum ScanError {
    #[error("there are more than {ENTRIES_CAP} files")]
    TooMany,
    #[error("it was interrupted")]
    Stopped,
    #[error("{0}")]
    Io(#[from] io::Error),
}

/// Looks at everything below `root` but what is below `leave_out`: our own data.
pub(super) fn scan(
    root: &Path,
    leave_out: &[PathBuf],
    stop: &AtomicBool,
) -> Result<Scan, ScanError> {
    let mut scan = Scan::default();
    let mut scanner = Scanner { found: &mut scan, leave_out, stop };
    let rules = Rules::of_root(root, &mut scanner.found.repositories);
    scanner.folder(root, &rules)?;
    Ok(scan)
}

struct Scanner<'a> {
    found: &'a mut Scan,
    leave_out: &'a [PathBuf],
    stop: &'a AtomicBool,
}

impl Scanner<'_> {
    fn folder(&mut self, folder: &Path, rules: &Rules<'_>) -> Result<(), ScanError> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(ScanError::Stopped);
        }
        let entries: Vec<DirEntry> = match fs::read_dir(folder) {
            Ok(entries) => entries.flatten().collect(),
            // What we may not look into is not ours to bring back.
            Err(e) if gone_or_closed(&e) => return Ok(()),
            Err(e) => return Err(e.into()),
        };
        let own = entries.iter().any(|entry| entry.file_name() == ".gitignore");
        let rules = if own { rules.below(folder) } else { Rules { own: None, above: Some(rules) } };
        for entry in entries {
            let path = entry.path();
            if self.leave_out.contains(&path) {
                continue;
            }
            let Ok(data) = entry.metadata() else { continue };
            if entry.file_name() == ".git" {
                // Where it is a file it only says where a submodule's or a worktree's state is.
                if data.is_file() {
                    self.found.entries.insert(path, Facts::of(&data));
                }
                continue;
            }
            if rules.ignore(&path, data.is_dir()) {
                self.found.ignored.insert(path);
                continue;
            }
            let facts = Facts::of(&data);
            self.found.entries.insert(path.clone(), facts);
            if self.found.entries.len() > ENTRIES_CAP {
                return Err(ScanError::TooMany);
            }
            if facts.kind == Kind::Folder {
                match Repository::at(&path) {
                    // A repository inside has rules of its own, and those around it end there.
                    Some(inner) => {
                        let rules = Rules::of_repository(&inner);
                        self.found.repositories.push(inner);
                        self.folder(&path, &rules)?;
                    }
                    None => self.folder(&path, &rules)?,
                }
            }
        }
        Ok(())
    }
}

fn gone_or_closed(error: &io::Error) -> bool {
    use io::ErrorKind::{NotADirectory, NotFound, PermissionDenied};
    matches!(error.kind(), NotFound | NotADirectory | PermissionDenied)
}

/// Ignore rules, the innermost first.
struct Rules<'a> {
    own: Option<Gitignore>,
    above: Option<&'a Rules<'a>>,
}

impl Rules<'_> {
    fn of_root(root: &Path, repositories: &mut Vec<Repository>) -> Rules<'static> {
        match Repository::at(root) {
            Some(repository) => {
                let rules = Rules::of_repository(&repository);
                repositories.push(repository);
                rules
            }
            None => Rules { own: build(root, gitconfig_excludes_path().as_slice()), above: None },
        }
    }

    /// What a person and a repository exclude outside its files. The later of two lines wins, so the
    /// repository's own comes last.
    fn of_repository(repository: &Repository) -> Rules<'static> {
        let mut files: Vec<PathBuf> = gitconfig_excludes_path().into_iter().collect();
        files.push(repository.common.join("info/exclude"));
        Rules { own: build(&repository.root, &files), above: None }
    }

    fn below<'a>(&'a self, folder: &Path) -> Rules<'a> {
        Rules { own: build(folder, &[folder.join(".gitignore")]), above: Some(self) }
    }

    fn ignore(&self, path: &Path, is_folder: bool) -> bool {
        let mut rules = Some(self);
        while let Some(here) = rules {
            match here.own.as_ref().map(|own| own.matched(path, is_folder)) {
                Some(Match::Ignore(_)) => return true,
                Some(Match::Whitelist(_)) => return false,
                Some(Match::None) | None => rules = here.above,
            }
        }
        false
    }
}

fn build(root: &Path, files: &[PathBuf]) -> Option<Gitignore> {
    let mut builder = GitignoreBuilder::new(root);
    let mut any = false;
    for file in files.iter().filter(|file| file.is_file()) {
        // A line that makes no sense is left out, as git does.
        builder.add(file);
        any = true;
    }
    if any { builder.build().ok() } else { None }
}

#[cfg(test)]
#[path = "scan_tests.rs"]
mod tests;
