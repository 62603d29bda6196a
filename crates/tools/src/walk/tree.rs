//! Goes through a tree on all cores and shows each file once. Ignore files are respected, inside a
//! repository or not; `.git` is never entered, links are not followed.
//!
//! Our own instead of the walker of the `ignore` crate, because files are looked at through their open
//! folder (the kernel need not look up the whole path for each) and their paths are made only where
//! something asks for them.

use std::ffi::{CString, OsStr};
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, openat, statat};
use toolwright_session::held::open_folder;

use super::rules::{Present, Rules};
use super::{Stopped, Unreadable};

/// Files of one folder that are handed to another thread at once.
const SHARE: usize = 64;

/// More would wait for each other more than they would help.
const THREADS_CAP: usize = 8;

/// What is gone through, and how.
pub(crate) struct Tree<'a> {
    pub(crate) root: &'a Path,
    /// Whether names that begin with a dot are shown.
    pub(crate) hidden: bool,
    /// How far down.
    pub(crate) depth: Option<usize>,
    pub(crate) stopped: &'a Stopped,
    pub(crate) unreadable: &'a Unreadable,
}

/// Looks at files; one for each thread.
pub(crate) trait Visitor: Send {
    /// Whether links, pipes and the like are shown too.
    const SHOWS_ALL: bool = false;

    /// Whether it wants to look at a file that is not left out. Asked before the ignore files are.
    fn wants(&mut self, path: &Path) -> bool;
    /// Whether it wants what is in a folder.
    fn enters(&mut self, _path: &Path) -> bool {
        true
    }
    fn file(&mut self, found: &Found<'_>);
}

/// A file that was found.
pub(crate) struct Found<'a> {
    folder: &'a OwnedFd,
    name: &'a CString,
    path: &'a Path,
}

impl Found<'_> {
    pub(crate) fn path(&self) -> &Path {
        self.path
    }

    /// When it was last changed.
    pub(crate) fn changed(&self) -> io::Result<SystemTime> {
        let data = statat(self.folder, self.name.as_c_str(), AtFlags::SYMLINK_NOFOLLOW)?;
        let nanos = u32::try_from(data.st_mtime_nsec).unwrap_or(0);
        let since = |seconds: i64| Duration::from_secs(seconds.unsigned_abs());
        let second = match data.st_mtime {
            seconds if seconds < 0 => SystemTime::UNIX_EPOCH.checked_sub(since(seconds)),
            seconds => SystemTime::UNIX_EPOCH.checked_add(since(seconds)),
        };
        let moment = second.and_then(|second| second.checked_add(Duration::new(0, nanos)));
        Ok(moment.unwrap_or(SystemTime::UNIX_EPOCH))
    }

    /// Opens it for reading without ever waiting; what took its place meanwhile is not followed.
    pub(crate) fn open(&self) -> io::Result<File> {
        let how =
            OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = openat(self.folder, self.name.as_c_str(), how, Mode::empty())?;
        Ok(File::from(file))
    }
}

enum Work {
    Folder { path: PathBuf, depth: usize, rules: Arc<Rules> },
    Files(Arc<Opened>, Vec<CString>),
}

struct Opened {
    path: PathBuf,
    folder: OwnedFd,
    rules: Arc<Rules>,
}

impl Tree<'_> {
    /// Shows everything to the visitors that `make` makes, and gives them back.
    pub(crate) fn walk<V: Visitor>(&self, make: impl Fn() -> V + Sync) -> Vec<V> {
        let queue = Queue::default();
        let rules = Rules::above(self.root);
        queue.add([Work::Folder { path: self.root.to_owned(), depth: 0, rules }]);
        let work = || {
            let mut visitor = make();
            while let Some((work, _busy)) = queue.next(self.stopped) {
                match work {
                    Work::Folder { path, depth, rules } => {
                        self.folder(path, depth, &rules, &mut visitor, &queue);
                    }
                    Work::Files(opened, names) => self.files(&opened, &names, &mut visitor),
                }
            }
            visitor
        };
        let threads = std::thread::available_parallelism().map_or(2, usize::from).min(THREADS_CAP);
        std::thread::scope(|scope| {
            let others: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
            let mut visitors = vec![work()];
            for other in others {
                match other.join() {
                    Ok(visitor) => visitors.push(visitor),
                    Err(panic) => std::panic::resume_unwind(panic),
                }
            }
            visitors
        })
    }

    fn folder<V: Visitor>(
        &self,
        path: PathBuf,
        depth: usize,
        above: &Arc<Rules>,
        visitor: &mut V,
        queue: &Queue,
    ) {
        let listed = match list(&path, depth > 0, V::SHOWS_ALL) {
            Ok(listed) => listed,
            Err(error) => return self.unreadable.note(&path, &error),
        };
        let Listed { folder, folders, mut files, present } = listed;
        let rules = above.below(&path, present);
        let mut spelled = Spelled::below(&path);
        let deeper = self.depth.is_none_or(|most| depth + 1 < most);
        let folders = folders.iter().filter(|_| deeper).filter_map(|name| {
            let path = spelled.with(name);
            let shown = self.shows(&rules, path, name, true) && visitor.enters(path);
            shown.then(|| Work::Folder {
                path: path.to_owned(),
                depth: depth + 1,
                rules: Arc::clone(&rules),
            })
        });
        let folders: Vec<Work> = folders.collect();
        let opened = Arc::new(Opened { path, folder, rules });
        let own = files.split_off(files.len().saturating_sub(SHARE));
        let mut shared = Vec::with_capacity(files.len() / SHARE + 1);
        while !files.is_empty() {
            let part = files.split_off(files.len().saturating_sub(SHARE));
            shared.push(Work::Files(Arc::clone(&opened), part));
        }
        // What is added last is taken first, so that few folders are open at once.
        queue.add(folders.into_iter().chain(shared));
        self.files(&opened, &own, visitor);
    }

    fn files(&self, opened: &Opened, names: &[CString], visitor: &mut impl Visitor) {
        let Opened { path, folder, rules } = opened;
        let mut spelled = Spelled::below(path);
        for name in names {
            if self.stopped.is_set() {
                return;
            }
            let path = spelled.with(name);
            if visitor.wants(path) && self.shows(rules, path, name, false) {
                visitor.file(&Found { folder, name, path });
            }
        }
    }

    fn shows(&self, rules: &Rules, path: &Path, name: &CString, is_folder: bool) -> bool {
        let name = name.as_bytes();
        if name == b".git" {
            return false;
        }
        let found =
            if rules.is_empty() { ignore::Match::None } else { rules.judge(path, is_folder) };
        match found {
            ignore::Match::None => self.hidden || !name.starts_with(b"."),
            ignore::Match::Ignore(()) => false,
            ignore::Match::Whitelist(()) => true,
        }
    }
}

/// Paths of what is in one folder, made in one place.
struct Spelled {
    path: PathBuf,
    is_fresh: bool,
}

impl Spelled {
    fn below(folder: &Path) -> Self {
        Self { path: folder.to_owned(), is_fresh: true }
    }

    fn with(&mut self, name: &CString) -> &Path {
        let name = OsStr::from_bytes(name.as_bytes());
        if std::mem::take(&mut self.is_fresh) {
            self.path.push(name);
        } else {
            self.path.set_file_name(name);
        }
        &self.path
    }
}

struct Listed {
    folder: OwnedFd,
    folders: Vec<CString>,
    files: Vec<CString>,
    present: Present,
}

fn list(path: &Path, is_below: bool, all: bool) -> io::Result<Listed> {
    let folder: OwnedFd = if is_below {
        // What is below a real folder is real, unless somebody has put a link there meanwhile.
        open_folder(path)?.into()
    } else {
        let how = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        openat(CWD, path, how, Mode::empty())?
    };
    let (mut folders, mut files) = (Vec::new(), Vec::new());
    let mut present = Present::default();
    for entry in Dir::read_from(&folder)? {
        let entry = entry?;
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        present.note(name.to_bytes());
        let kind = match entry.file_type() {
            // Some file systems do not say.
            FileType::Unknown => match statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(data) => FileType::from_raw_mode(data.st_mode),
                Err(_) => continue,
            },
            kind => kind,
        };
        match kind {
            FileType::Directory => folders.push(name.to_owned()),
            FileType::RegularFile => files.push(name.to_owned()),
            _ if all => files.push(name.to_owned()),
            _ => {}
        }
    }
    Ok(Listed { folder, folders, files, present })
}

/// What is still to be gone through.
#[derive(Default)]
struct Queue {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    work: Vec<Work>,
    /// Threads that may still add something.
    busy: usize,
}

/// A thread at work. That it has ended is told even if it panicked.
struct Busy<'a>(&'a Queue);

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.busy -= 1;
        if state.busy == 0 && state.work.is_empty() {
            self.0.changed.notify_all();
        }
    }
}

impl Queue {
    fn add(&self, work: impl IntoIterator<Item = Work>) {
        let mut state = self.lock();
        let known = state.work.len();
        state.work.extend(work);
        if state.work.len() > known {
            self.changed.notify_all();
        }
    }

    /// The next thing to do; nothing when all is done, or no longer wanted.
    fn next(&self, stopped: &Stopped) -> Option<(Work, Busy<'_>)> {
        let mut state = self.lock();
        loop {
            if stopped.is_set() {
                state.work.clear();
            }
            if let Some(work) = state.work.pop() {
                state.busy += 1;
                return Some((work, Busy(self)));
            }
            if state.busy == 0 {
                self.changed.notify_all();
                return None;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
