//! How long large outputs are kept. They are copies of what tools said, often the larger part of all
//! that we write, and seldom wanted after a few days.

use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use crate::index::Index;
use crate::store::{CHILDREN, Store};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Files younger than this are never removed, whatever the limits: somebody may be about to read
/// what was just written.
const YOUNG: Duration = Duration::from_secs(60 * 60);

/// What every output's file begins with. Nothing else is ever removed.
const PREFIX: &str = "tool_";

/// Says by its time when the last sweep began.
const STAMP: &str = ".last-sweep";

/// How much is kept, over all sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    pub age: Duration,
    pub bytes: u64,
}

impl Default for Retention {
    /// A week of work, and what nobody misses on any disk.
    fn default() -> Self {
        Self { age: DAY * 7, bytes: 1 << 30 }
    }
}

impl Retention {
    /// The usual, where nothing is given.
    pub fn of(days: Option<u64>, bytes: Option<u64>) -> Self {
        let usual = Self::default();
        let age = |days: u64| Duration::from_secs(days.saturating_mul(DAY.as_secs()));
        Self { age: days.map_or(usual.age, age), bytes: bytes.unwrap_or(usual.bytes) }
    }
}

struct Kept {
    path: PathBuf,
    modified: SystemTime,
    bytes: u64,
    /// Which folder it is in, by number.
    folder: usize,
}

struct Folder {
    /// The session whose outputs these are.
    log: PathBuf,
    /// Looked at when the first of its files is to go.
    in_use: Option<bool>,
}

impl Store {
    /// Sweeps, unless that was done within a day. What cannot be read or removed is left; `stop` ends
    /// it between two files.
    pub fn sweep_if_due(&self, retention: Retention, now: SystemTime, stop: &AtomicBool) {
        let stamp = self.root().join(STAMP);
        let last = fs::metadata(&stamp).and_then(|data| data.modified());
        // A stamp from the future is as good as none.
        let rested = last.ok().and_then(|last| now.duration_since(last).ok());
        if rested.is_some_and(|rested| rested < DAY) {
            return;
        }
        // First, so that it is not tried again and again where it cannot work, and so that no other
        // process begins as well. Without a stamp there would be no end to it.
        if File::create(&stamp).and_then(|file| file.set_modified(now)).is_ok() {
            self.sweep(retention, now, stop);
            self.compress_old(now, stop);
            // A list that is asked for later finds most of its work done. It is only a cache.
            Index::open_until(self, stop).ok();
        }
    }

    /// Removes outputs that are too old, then the oldest until the rest is small enough. Those of a
    /// session that is in use stay.
    fn sweep(&self, retention: Retention, now: SystemTime, stop: &AtomicBool) {
        let (mut folders, mut files) = self.kept_outputs();
        files.sort_by_key(|file| file.modified);
        let mut total = files.iter().fold(0, |sum: u64, file| sum.saturating_add(file.bytes));
        for file in &files {
            if stop.load(Ordering::Relaxed) {
                return;
            }
            let age = now.duration_since(file.modified).unwrap_or_default();
            // The others are younger still.
            if age < YOUNG || (age <= retention.age && total <= retention.bytes) {
                break;
            }
            let folder = &mut folders[file.folder];
            let in_use = *folder.in_use.get_or_insert_with(|| is_in_use(&folder.log));
            if !in_use && fs::remove_file(&file.path).is_ok() {
                total = total.saturating_sub(file.bytes);
                // Only where it was the last one.
                file.path.parent().map(fs::remove_dir);
            }
        }
    }

    fn kept_outputs(&self) -> (Vec<Folder>, Vec<Kept>) {
        let (mut folders, mut files) = (Vec::new(), Vec::new());
        let projects = entries(self.root()).flat_map(|project| {
            // Those of agents that worked for others lie one deeper.
            let deeper = entries(&project.path().join(CHILDREN));
            entries(&project.path()).chain(deeper)
        });
        for entry in projects {
            let path = entry.path();
            // Links are not followed.
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            if !is_folder || path.extension().is_none_or(|extension| extension != "outputs") {
                continue;
            }
            let folder = folders.len();
            files.extend(entries(&path).filter_map(|entry| kept(&entry, folder)));
            folders.push(Folder { log: path.with_extension("jsonl"), in_use: None });
        }
        (folders, files)
    }
}

fn entries(folder: &Path) -> impl Iterator<Item = fs::DirEntry> + use<> {
    fs::read_dir(folder).into_iter().flatten().flatten()
}

fn kept(entry: &fs::DirEntry, folder: usize) -> Option<Kept> {
    let data = entry.metadata().ok().filter(fs::Metadata::is_file)?;
    let ours = entry.file_name().to_string_lossy().starts_with(PREFIX);
    let modified = data.modified().ok()?;
    ours.then(|| Kept { path: entry.path(), modified, bytes: data.len(), folder })
}

/// A living process holds the lock of the session that it works on. It is tried for a moment only.
fn is_in_use(log: &Path) -> bool {
    match File::open(log) {
        Ok(file) => match file.try_lock() {
            Ok(()) => false,
            Err(TryLockError::WouldBlock | TryLockError::Error(_)) => true,
        },
        // Outputs of a session that is gone are nobody's.
        Err(error) => error.kind() != std::io::ErrorKind::NotFound,
    }
}

#[cfg(test)]
#[path = "retention_tests.rs"]
mod tests;
