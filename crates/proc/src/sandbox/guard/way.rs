//! The way to a protected name: from a folder that nobody inside can move, through folders that are held
//! open. Links on the way are protected themselves, and so is what they lead to.

use std::collections::{BTreeMap, VecDeque};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use super::aside;
use super::folder::Folder;

/// As many as the kernel follows.
const LINKS_CAP: usize = 40;

#[derive(Debug)]
pub(super) struct Way {
    pub(super) root: PathBuf,
    /// The root, and those on the way that were there.
    pub(super) folders: Vec<Arc<Folder>>,
    /// From the root to the protected name itself, which is the last.
    pub(super) names: Vec<OsString>,
}

impl Way {
    /// The folder that holds the name, if it was there.
    pub(super) fn place(&self) -> Option<(&Folder, &OsStr)> {
        let whole = self.folders.len() == self.names.len();
        let (folder, name) = (self.folders.last()?, self.names.last()?);
        whole.then_some((folder, name.as_os_str()))
    }
}

/// All of them together: what lies on several is opened once.
pub(super) struct Ways<'a> {
    roots: &'a [PathBuf],
    held: BTreeMap<PathBuf, Arc<Folder>>,
    found: BTreeMap<PathBuf, Way>,
    /// Not to be looked into.
    pub(super) closed: Vec<PathBuf>,
}

impl<'a> Ways<'a> {
    pub(super) fn new(roots: &'a [PathBuf]) -> Self {
        Self { roots, held: BTreeMap::new(), found: BTreeMap::new(), closed: Vec::new() }
    }

    pub(super) fn into_all(self) -> impl Iterator<Item = (PathBuf, Way)> {
        self.found.into_iter()
    }

    /// The path, every link on it, and where they lead; each as far as a child could change it.
    pub(super) fn add(&mut self, path: &Path, covered: fn(&Path) -> bool) -> io::Result<()> {
        // A root is a real path: what is before its end need not be looked at.
        let root = self.roots.iter().find(|root| path.starts_with(root));
        let mut real = root.cloned().unwrap_or_else(|| PathBuf::from("/"));
        let rest = path.strip_prefix(&real).unwrap_or(path);
        let mut pending: VecDeque<OsString> = parts(rest).collect();
        let mut links = 0;
        while let Some(name) = pending.pop_front() {
            if name == ".." {
                real.pop();
                continue;
            }
            let next = real.join(&name);
            if !fs::symlink_metadata(&next).is_ok_and(|data| data.is_symlink()) {
                real = next;
                continue;
            }
            links += 1;
            if links > LINKS_CAP {
                return Err(io::Error::from_raw_os_error(libc::ELOOP));
            }
            let to = fs::read_link(&next)?;
            self.hold(&next)?;
            if to.is_absolute() {
                real = PathBuf::from("/");
            }
            for part in parts(&to).collect::<Vec<_>>().into_iter().rev() {
                pending.push_front(part);
            }
        }
        if links == 0 && covered(path) { Ok(()) } else { self.hold(&real) }
    }

    fn hold(&mut self, path: &Path) -> io::Result<()> {
        let Some(root) = self.roots.iter().find(|root| path.starts_with(root)) else {
            return Ok(());
        };
        let rest = path.strip_prefix(root).unwrap_or(path);
        let names: Vec<OsString> = parts(rest).collect();
        // Protected as a whole and writable as a whole is nothing to be held to, and in our own folder we
        // write all the time.
        let Some((_, on_the_way)) = names.split_last().filter(|_| !aside::is_own(path)) else {
            self.closed.push(path.to_owned());
            return Ok(());
        };
        if self.found.contains_key(path) {
            return Ok(());
        }
        let mut folder = match self.held.get(root) {
            Some(held) => Arc::clone(held),
            None => match Folder::open(root) {
                Ok(opened) => self.keep(root.clone(), opened),
                // Nobody inside can make it.
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
                Err(error) => {
                    let root = root.display();
                    return Err(io::Error::other(format!("{root} cannot be held: {error}")));
                }
            },
        };
        let mut folders = vec![Arc::clone(&folder)];
        let mut place = root.clone();
        for name in on_the_way {
            place.push(name);
            folder = match self.held.get(&place) {
                Some(held) => Arc::clone(held),
                None => match folder.inner(name) {
                    Ok(opened) => self.keep(place.clone(), opened),
                    Err(error) if is_no_folder(&error) => break,
                    Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                        self.closed.push(path.to_owned());
                        return Ok(());
                    }
                    Err(error) => return Err(error),
                },
            };
            folders.push(Arc::clone(&folder));
        }
        self.found.insert(path.to_owned(), Way { root: root.clone(), folders, names });
        Ok(())
    }

    fn keep(&mut self, path: PathBuf, folder: Folder) -> Arc<Folder> {
        let folder = Arc::new(folder);
        self.held.insert(path, Arc::clone(&folder));
        folder
    }
}

fn parts(path: &Path) -> impl Iterator<Item = OsString> {
    path.components().filter_map(|part| match part {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        _ => None,
    })
}

/// Nothing, or something that holds no names.
pub(super) fn is_no_folder(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
        || error.raw_os_error() == Some(libc::ELOOP)
}
