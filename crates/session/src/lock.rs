//! A session's file belongs to one process at a time.

use std::fs::{File, TryLockError};
use std::path::Path;
use std::time::Duration;

use crate::log::LogError;

/// How often a lock is tried again, and how long is waited in between: a sweep of old outputs holds
/// it for a moment, and nobody should be told of another process because of that.
const TRIES: u32 = 3;
const PAUSE: Duration = Duration::from_millis(5);

pub(crate) fn lock(file: &File, path: &Path) -> Result<(), LogError> {
    let mut tried = file.try_lock();
    for _ in 0..TRIES {
        if !matches!(tried, Err(TryLockError::WouldBlock)) {
            break;
        }
        std::thread::sleep(PAUSE);
        tried = file.try_lock();
    }
    match tried {
        // A file that was compressed or removed meanwhile is nobody's.
        Ok(()) if !is_at(file, path) => {
            Err(LogError::Locked { path: path.to_owned(), owner: None })
        }
        Ok(()) => Ok(()),
        Err(TryLockError::WouldBlock) => {
            Err(LogError::Locked { path: path.to_owned(), owner: owner(file) })
        }
        Err(TryLockError::Error(source)) => Err(LogError::Write { path: path.to_owned(), source }),
    }
}

/// Whether this is the file that the path names.
pub(crate) fn is_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let place = |data: std::fs::Metadata| (data.dev(), data.ino());
    let there = std::fs::metadata(path).map(place).ok();
    there.is_some() && there == file.metadata().map(place).ok()
}

/// The process that holds the lock, where the system tells: its list has lines such as
/// `1: FLOCK  ADVISORY  WRITE 4711 fe:00:5728503 0 EOF`.
#[cfg(target_os = "linux")]
fn owner(file: &File) -> Option<u32> {
    use std::os::unix::fs::MetadataExt;
    let inode = file.metadata().ok()?.ino().to_string();
    // The list is given out in pieces, and one that changes in between loses lines.
    (0..LISTINGS).find_map(|_| owner_in(&std::fs::read_to_string("/proc/locks").ok()?, &inode))
}

#[cfg(target_os = "linux")]
const LISTINGS: usize = 10;

#[cfg(target_os = "linux")]
fn owner_in(locks: &str, inode: &str) -> Option<u32> {
    locks.lines().find_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [_, "FLOCK", _, _, pid, place, ..] = words.as_slice() else { return None };
        let is_ours = place.rsplit(':').next() == Some(inode);
        // One of another container has no number here.
        is_ours.then(|| pid.parse().ok().filter(|pid| *pid > 0)).flatten()
    })
}

#[cfg(not(target_os = "linux"))]
fn owner(_: &File) -> Option<u32> {
    None
}
