//! Puts back what was remembered, one protected name at a time.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::folder::{Folder, id_of};
use super::state::{CAP_FILES, State, is_skipped};
use super::way::Way;
use super::{Memory, PutBack, aside, is_git, plans_in};

pub(super) struct Restore<'a> {
    roots: &'a [PathBuf],
    /// Written by this program meanwhile.
    ours: &'a [PathBuf],
    pub(super) done: PutBack,
}

/// What became of a folder that stood on the way.
enum Return {
    Done,
    /// It is on no disk any more.
    Gone,
    Failed,
}

/// The root below which something is: what cannot go elsewhere stays in it.
struct At<'a> {
    path: &'a Path,
    folder: &'a Folder,
}

impl<'a> Restore<'a> {
    pub(super) fn new(roots: &'a [PathBuf], ours: &'a [PathBuf]) -> Self {
        Self { roots, ours, done: PutBack::default() }
    }

    pub(super) fn put_back(&mut self, path: &Path, memory: &Memory) {
        let Some(root) = memory.way.folders.first() else { return };
        let root = At { path: &memory.way.root, folder: root };
        let Some(name) = memory.way.names.last() else { return };
        if let Some(parent) = self.lead(path, memory, &root) {
            self.entry(&parent, name, &memory.was, path, plans_in(path), &root);
        }
    }

    /// To the folder that holds the name. Folders that were moved are moved back; there is none where
    /// there is nothing to be put back, or no way.
    fn lead(&mut self, path: &Path, memory: &Memory, root: &At<'_>) -> Option<Arc<Folder>> {
        let Way { folders, names, .. } = &memory.way;
        let mut parent = Arc::clone(folders.first()?);
        let mut shown = root.path.to_owned();
        for (index, name) in names[..names.len() - 1].iter().enumerate() {
            shown.push(name);
            let Ok(now) = parent.opened(|| parent.look(name)) else {
                return self.fail(path);
            };
            if let Some(own) = folders.get(index + 1) {
                if now.as_ref().is_some_and(|data| id_of(data) == own.id) {
                    parent = Arc::clone(own);
                    continue;
                }
                match self.return_folder(own, &parent, name, root) {
                    Return::Done => {
                        self.done.restored.push(shown.clone());
                        parent = Arc::clone(own);
                        continue;
                    }
                    Return::Failed => return self.fail(&shown),
                    Return::Gone => {}
                }
            }
            let was_there = folders.get(index + 1);
            let inner = match now {
                Some(data) if data.is_dir() => parent.opened(|| parent.inner(name)),
                // A link leads to a place where the protected name may be.
                Some(data) if data.is_symlink() || was_there.is_some() => {
                    if self.away(&parent, name, root).is_err() {
                        return self.fail(path);
                    }
                    self.done.restored.push(path.to_owned());
                    self.again(&parent, name, memory, path, was_there)?
                }
                _ => self.again(&parent, name, memory, path, was_there)?,
            };
            match inner {
                Ok(inner) => parent = Arc::new(inner),
                Err(_) => return self.fail(path),
            }
        }
        Some(parent)
    }

    /// Makes a folder on the way once more, where what was in it is missed. A repository that was removed
    /// runs nothing.
    fn again(
        &mut self,
        parent: &Folder,
        name: &OsStr,
        memory: &Memory,
        path: &Path,
        was: Option<&Arc<Folder>>,
    ) -> Option<io::Result<Folder>> {
        let is_missed = !matches!(memory.was, State::Absent) && !is_git(path);
        let mode = was.map_or(Ok(0o755), |was| was.mode());
        is_missed.then(|| mode.and_then(|mode| parent.opened(|| parent.make(name, mode))))
    }

    /// The folder may have been moved, and something else put in its place.
    fn return_folder(
        &mut self,
        own: &Folder,
        parent: &Folder,
        name: &OsStr,
        root: &At<'_>,
    ) -> Return {
        let Some(place) = own.whereabouts() else { return Return::Gone };
        let Some((holder, now)) = self.find(own, &place) else {
            // It is where no child can have put it, so it stays there; but nothing takes its place.
            self.away(parent, name, root).ok();
            return Return::Failed;
        };
        // First out of the way: what stands in its place may be around it.
        let between = OsString::from(format!(".{}", aside::random()));
        let back = holder
            .rename(&now, parent, &between)
            .and_then(|()| self.away(parent, name, root))
            .and_then(|()| parent.rename(&between, parent, name))
            .and_then(|()| parent.opened(|| parent.look(name)));
        match back {
            Ok(Some(data)) if id_of(&data) == own.id => Return::Done,
            _ => Return::Failed,
        }
    }

    /// The folder that holds it, by a way without links from one that children can write.
    fn find(&self, own: &Folder, place: &Path) -> Option<(Folder, OsString)> {
        let root = self.roots.iter().find(|root| place.starts_with(root))?;
        let name = place.file_name()?;
        let mut holder = Folder::open(root).ok()?;
        for part in place.parent()?.strip_prefix(root).ok()? {
            holder = holder.opened(|| holder.inner(part)).ok()?;
        }
        let found = holder.opened(|| holder.look(name)).ok()??;
        (id_of(&found) == own.id).then(|| (holder, name.to_owned()))
    }

    fn entry(
        &mut self,
        parent: &Folder,
        name: &OsStr,
        was: &State,
        shown: &Path,
        skip: Option<&str>,
        root: &At<'_>,
    ) {
        if self.ours.iter().any(|own| shown.starts_with(own)) {
            return;
        }
        let Ok(now) = parent.opened(|| parent.look(name)) else {
            self.fail::<()>(shown);
            return;
        };
        let is_same = match (was, &now) {
            (State::Unwatched, _) | (State::Absent, None) => true,
            (State::File(copy), Some(data)) if data.is_file() => copy.is_same(parent, name, data),
            (State::Link(to), Some(data)) if data.is_symlink() => {
                parent.opened(|| fs::read_link(parent.at(name))).is_ok_and(|now| now == *to)
            }
            (State::Other(id), Some(data)) => id_of(data) == *id,
            (State::Folder { mode, entries }, Some(data)) if data.is_dir() => {
                match self.within(parent, name, entries, shown, skip, root) {
                    Ok(true) => return self.set_mode(parent, name, *mode, shown),
                    // What cannot be looked into cannot be left there.
                    Ok(false) | Err(_) => false,
                }
            }
            // What we made ourselves stays; what is beside it does not.
            (State::Absent, Some(data))
                if data.is_dir() && self.holds_ours(parent, name, shown, skip) =>
            {
                match self.within(parent, name, &BTreeMap::new(), shown, skip, root) {
                    Ok(true) => return,
                    Ok(false) | Err(_) => false,
                }
            }
            _ => false,
        };
        if !is_same {
            self.replace(parent, name, was, shown, now.as_ref(), root);
        }
    }

    fn holds_ours(&self, parent: &Folder, name: &OsStr, shown: &Path, skip: Option<&str>) -> bool {
        let holds_plans = |skip| {
            let folder = parent.opened(|| parent.inner(name));
            let is_there = |folder: Folder| {
                folder.opened(|| is_skipped(&folder, OsStr::new(skip), Some(skip)))
            };
            folder.and_then(is_there).is_ok_and(|found| found)
        };
        self.ours.iter().any(|own| own.starts_with(shown)) || skip.is_some_and(holds_plans)
    }

    /// Says no where so much was added that the whole is better made anew.
    fn within(
        &mut self,
        parent: &Folder,
        name: &OsStr,
        entries: &BTreeMap<OsString, State>,
        shown: &Path,
        skip: Option<&str>,
        root: &At<'_>,
    ) -> io::Result<bool> {
        let folder = parent.opened(|| parent.inner(name))?;
        let cap = entries.len() + CAP_FILES;
        let names = folder.opened(|| folder.names(cap + 1))?;
        if names.len() > cap {
            return Ok(false);
        }
        for (name, was) in entries {
            self.entry(&folder, name, was, &shown.join(name), None, root);
        }
        for name in names.iter().filter(|name| !entries.contains_key(*name)) {
            if !folder.opened(|| is_skipped(&folder, name, skip))? {
                self.entry(&folder, name, &State::Absent, &shown.join(name), None, root);
            }
        }
        Ok(true)
    }

    fn set_mode(&mut self, parent: &Folder, name: &OsStr, mode: u32, shown: &Path) {
        let folder = parent.opened(|| parent.inner(name));
        match folder.and_then(|folder| Ok((folder.mode()? != mode, folder))) {
            Ok((false, _)) => {}
            Ok((true, folder)) if folder.set_mode(mode).is_ok() => {
                self.done.restored.push(shown.to_owned());
            }
            _ => {
                self.fail::<()>(shown);
            }
        }
    }

    fn replace(
        &mut self,
        parent: &Folder,
        name: &OsStr,
        was: &State,
        shown: &Path,
        now: Option<&Metadata>,
        root: &At<'_>,
    ) {
        let cleared = if now.is_some() { self.away(parent, name, root) } else { Ok(()) };
        if cleared.and_then(|()| make(parent, name, was)).is_ok() {
            self.done.restored.push(shown.to_owned());
        } else {
            self.fail::<()>(shown);
        }
    }

    fn away(&mut self, parent: &Folder, name: &OsStr, root: &At<'_>) -> io::Result<()> {
        if parent.opened(|| parent.look(name))?.is_none() {
            return Ok(());
        }
        let place = aside::take(parent, name, (root.path, root.folder), self.roots)?;
        self.done.aside.extend(place);
        Ok(())
    }

    fn fail<T>(&mut self, path: &Path) -> Option<T> {
        self.done.failed.push(path.to_owned());
        None
    }
}

/// Makes it as it was; nothing is there.
fn make(parent: &Folder, name: &OsStr, was: &State) -> io::Result<()> {
    match was {
        State::Absent | State::Unwatched => Ok(()),
        State::File(copy) => {
            parent.opened(|| parent.write(name, &copy.bytes, copy.mode, copy.owner))
        }
        State::Link(to) => parent.opened(|| symlink(to, parent.at(name))),
        State::Folder { mode, entries } => {
            let folder = parent.opened(|| parent.make(name, 0o700))?;
            for (name, was) in entries {
                make(&folder, name, was)?;
            }
            folder.set_mode(*mode)
        }
        State::Other(_) => Err(io::ErrorKind::Unsupported.into()),
    }
}
