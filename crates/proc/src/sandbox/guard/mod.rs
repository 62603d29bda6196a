//! For what a layer cannot forbid: remembers how protected files were and puts them back when the
//! child has ended. What is there instead is kept elsewhere, so that nobody's work is lost.
//!
//! The child may have put links in the way, and this process is not fenced: every step goes through
//! folders that are held open since before the child began, one name at a time, and follows no link.
//! What cannot be put back is said; nothing is passed over in silence.

mod aside;
mod folder;
mod restore;
mod state;
mod way;

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Instant;

use super::Fence;
pub use aside::keep_aside_in;
use restore::Restore;
use state::{Budget, State};
use way::{Way, Ways};

/// Directly inside these, what we write ourselves while commands run.
const PLANS_IN: &[&str] = &[".toolwright", ".opencode"];
const PLANS: &str = "plans";

/// What became of protected files that a command changed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PutBack {
    /// As they were again.
    pub restored: Vec<PathBuf>,
    /// Not as they were.
    pub failed: Vec<PathBuf>,
    /// Too large to be watched, or not to be: what was done to them is not known.
    pub unwatched: Vec<PathBuf>,
    /// Where that lies now which the command had made there.
    pub aside: Vec<PathBuf>,
}

impl PutBack {
    pub fn is_empty(&self) -> bool {
        self.restored.is_empty() && self.failed.is_empty() && self.unwatched.is_empty()
    }

    /// What was found later counts: what is right now may have been wrong before.
    pub fn add(&mut self, later: Self) {
        let Self { restored, failed, unwatched, aside } = later;
        self.failed.retain(|path| failed.contains(path) || !restored.contains(path));
        let lists = [
            (&mut self.restored, restored),
            (&mut self.failed, failed),
            (&mut self.unwatched, unwatched),
            (&mut self.aside, aside),
        ];
        for (own, more) in lists {
            own.extend(more);
            own.sort();
            own.dedup();
        }
    }
}

#[derive(Debug)]
pub(crate) struct Guard {
    kept: Vec<Arc<Kept>>,
    /// Folders in which a child can write, none inside another.
    roots: Vec<PathBuf>,
    unwatched: Vec<PathBuf>,
    /// By the clock that processes' starts are told in.
    started: u64,
}

#[derive(Debug)]
struct Kept {
    path: PathBuf,
    memory: Mutex<Arc<Memory>>,
    since: Instant,
}

/// How it was, and how to get there.
#[derive(Debug)]
struct Memory {
    way: Way,
    was: State,
}

/// All that is remembered for children that live, the oldest first.
static LIVING: Mutex<Vec<Weak<Kept>>> = Mutex::new(Vec::new());

/// One at a time: two that put the same file back would be in each other's way.
static RESTORING: Mutex<()> = Mutex::new(());

/// Files that this program wrote itself, because a person agreed to it while a child was running.
static OURS: Mutex<Vec<(Instant, PathBuf)>> = Mutex::new(Vec::new());
const OURS_CAP: usize = 1_000;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Tells that a file was written by this program and not by a child: it is not put back.
pub fn changed_by_us(path: &Path) {
    let mut ours = lock(&OURS);
    if ours.len() >= OURS_CAP {
        ours.remove(0);
    }
    ours.push((Instant::now(), path.to_owned()));
}

fn ours_since(since: Instant) -> Vec<PathBuf> {
    lock(&OURS).iter().filter(|(when, _)| *when >= since).map(|(_, path)| path.clone()).collect()
}

impl Guard {
    /// Remembers what is protected inside the writable folders and not covered otherwise. Fails where
    /// that cannot be done: then nothing is to be started.
    pub(super) fn of(fence: &Fence, covered: fn(&Path) -> bool) -> io::Result<Option<Self>> {
        let roots = outermost(&fence.writable);
        let (kept, unwatched) = remember(fence, &roots, covered, true)?;
        if kept.is_empty() && unwatched.is_empty() {
            return Ok(None);
        }
        let mut living = lock(&LIVING);
        living.retain(|kept| kept.strong_count() > 0);
        living.extend(kept.iter().map(Arc::downgrade));
        Ok(Some(Self { kept, roots, unwatched, started: crate::sys::now_in_ticks() }))
    }

    /// When it began, as the start of a process is told.
    pub(crate) fn started(&self) -> u64 {
        self.started
    }

    /// Puts everything back, and says what had been changed.
    pub(crate) fn restore(&self) -> PutBack {
        let _alone = lock(&RESTORING);
        let mut done = PutBack { unwatched: self.unwatched.clone(), ..PutBack::default() };
        for kept in &self.kept {
            let memory = Arc::clone(&lock(&kept.memory));
            let ours = ours_since(kept.since);
            let mut restore = Restore::new(&self.roots, &ours);
            restore.put_back(&kept.path, &memory);
            if restore.done != PutBack::default() {
                kept.hand_on(&memory);
            }
            done.add(restore.done);
        }
        done
    }
}

impl Kept {
    /// Those who began later have remembered what was not right. What was there before the first
    /// child that lives is what counts.
    fn hand_on(&self, memory: &Arc<Memory>) {
        let living: Vec<_> = lock(&LIVING).iter().filter_map(Weak::upgrade).collect();
        for later in living.iter().filter(|kept| kept.since > self.since) {
            if later.path == self.path {
                *lock(&later.memory) = Arc::clone(memory);
            }
        }
    }
}

/// What could not be watched: too large, or not to be read.
pub(super) fn unwatched(fence: &Fence, covered: fn(&Path) -> bool) -> io::Result<Vec<PathBuf>> {
    remember(fence, &outermost(&fence.writable), covered, false).map(|(_, unwatched)| unwatched)
}

type Remembered = (Vec<Arc<Kept>>, Vec<PathBuf>);

fn remember(
    fence: &Fence,
    roots: &[PathBuf],
    covered: fn(&Path) -> bool,
    reads: bool,
) -> io::Result<Remembered> {
    let mut ways = Ways::new(roots);
    for path in &fence.read_only {
        ways.add(path, covered)?;
    }
    let mut kept = Vec::new();
    let mut unwatched = std::mem::take(&mut ways.closed);
    let mut budget = Budget::new(reads);
    // Whatever the others need: git runs programs before anybody looks.
    let mut all: Vec<_> = ways.into_all().collect();
    all.sort_by_key(|(path, _)| !is_git(path));
    for (path, way) in all {
        let was = match way.place() {
            Some((parent, name)) => budget.remember(parent, name, plans_in(&path)),
            None => State::Absent,
        };
        if matches!(was, State::Unwatched) {
            unwatched.push(path);
            continue;
        }
        let memory = Mutex::new(Arc::new(Memory { way, was }));
        kept.push(Arc::new(Kept { path, memory, since: Instant::now() }));
    }
    Ok((kept, unwatched))
}

/// What is inside another is held by that.
fn outermost(writable: &[PathBuf]) -> Vec<PathBuf> {
    let is_inner = |path: &Path| writable.iter().any(|own| own != path && path.starts_with(own));
    let mut roots: Vec<_> = writable.iter().filter(|path| !is_inner(path)).cloned().collect();
    roots.sort();
    roots.dedup();
    roots
}

fn is_git(path: &Path) -> bool {
    path.components().any(|part| part.as_os_str() == ".git")
}

fn plans_in(path: &Path) -> Option<&'static str> {
    let name = path.file_name().unwrap_or(OsStr::new(""));
    PLANS_IN.iter().any(|own| name == *own).then_some(PLANS)
}

#[cfg(test)]
mod tests;
