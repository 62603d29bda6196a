//! How a protected name was, as far as that fits into memory.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use super::folder::{Folder, Id, id_of, mode_of};

/// Of one protected path: enough for any folder of hooks or agents, and read in a few milliseconds.
pub(super) const CAP_FILES: usize = 1_000;
const CAP_BYTES: u64 = 4 << 20;
const CAP_DEPTH: usize = 8;

/// Of all protected paths together.
const CAP_ALL_FILES: usize = 4_000;
const CAP_ALL_BYTES: u64 = 16 << 20;

/// Clocks of file systems go in steps of up to ten milliseconds: a file that changed this short a time
/// ago can change once more without a newer time.
const SETTLED: Duration = Duration::from_millis(100);

#[derive(Debug)]
pub(super) enum State {
    Absent,
    File(Copy),
    Link(PathBuf),
    Folder {
        mode: u32,
        entries: BTreeMap<OsString, State>,
    },
    /// A pipe, a socket, a device: only whether it is the same is known.
    Other(Id),
    /// Too much, or not to be read.
    Unwatched,
}

#[derive(Debug)]
pub(super) struct Copy {
    stamp: Stamp,
    is_settled: bool,
    pub(super) bytes: Vec<u8>,
    pub(super) mode: u32,
    pub(super) owner: (u32, u32),
}

/// Changes with every change: nobody but root can set the second time back.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    file: Id,
    size: u64,
    times: [i64; 4],
    mode: u32,
}

/// What may be remembered.
pub(super) struct Budget {
    files: usize,
    bytes: u64,
    /// Whether contents are wanted, or only whether they would fit.
    reads: bool,
}

impl Budget {
    pub(super) fn new(reads: bool) -> Self {
        Self { files: CAP_ALL_FILES, bytes: CAP_ALL_BYTES, reads }
    }

    /// Remembers one protected path within its part of the budget. `skip` is a folder directly inside
    /// that is none of our business.
    pub(super) fn remember(&mut self, parent: &Folder, name: &OsStr, skip: Option<&str>) -> State {
        let files = self.files.min(CAP_FILES);
        let bytes = self.bytes.min(CAP_BYTES);
        let mut part = Self { files, bytes, reads: self.reads };
        let state = part.state(parent, name, skip, 0).unwrap_or(State::Unwatched);
        self.files -= files - part.files;
        self.bytes -= bytes - part.bytes;
        state
    }

    fn state(
        &mut self,
        parent: &Folder,
        name: &OsStr,
        skip: Option<&str>,
        depth: usize,
    ) -> io::Result<State> {
        let Some(data) = parent.look(name)? else { return Ok(State::Absent) };
        if self.files == 0 || depth > CAP_DEPTH {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.files -= 1;
        if data.is_symlink() {
            return fs::read_link(parent.at(name)).map(State::Link);
        }
        if data.is_dir() {
            let folder = parent.inner(name)?;
            let mut entries = BTreeMap::new();
            for name in folder.names(self.files + 1)? {
                if !is_skipped(&folder, &name, skip)? {
                    let state = self.state(&folder, &name, None, depth + 1)?;
                    entries.insert(name, state);
                }
            }
            return Ok(State::Folder { mode: mode_of(&data), entries });
        }
        if !data.is_file() {
            return Ok(State::Other(id_of(&data)));
        }
        if data.len() > self.bytes {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.bytes -= data.len();
        let bytes = if self.reads { parent.read(name, data.len())? } else { Vec::new() };
        Ok(State::File(Copy::new(&data, bytes)))
    }
}

/// A real folder of the name that is left alone; a link would lead anywhere.
pub(super) fn is_skipped(folder: &Folder, name: &OsStr, skip: Option<&str>) -> io::Result<bool> {
    match skip.filter(|skip| name == *skip) {
        Some(_) => Ok(folder.look(name)?.is_some_and(|data| data.is_dir())),
        None => Ok(false),
    }
}

impl Copy {
    fn new(data: &Metadata, bytes: Vec<u8>) -> Self {
        let changed = u64::try_from(data.ctime()).unwrap_or_default();
        let changed = SystemTime::UNIX_EPOCH + Duration::from_secs(changed);
        let changed = changed + Duration::from_nanos(data.ctime_nsec().unsigned_abs());
        // A time to come is as good as none.
        let is_settled = changed.elapsed().is_ok_and(|age| age > SETTLED);
        let owner = (data.uid(), data.gid());
        Self { stamp: Stamp::of(data), is_settled, bytes, mode: mode_of(data), owner }
    }

    /// Sizes are compared before anything is read.
    pub(super) fn is_same(&self, parent: &Folder, name: &OsStr, now: &Metadata) -> bool {
        let size = self.bytes.len() as u64;
        let is_untouched = self.is_settled && Stamp::of(now) == self.stamp;
        let could_be = mode_of(now) == self.mode && now.len() == size;
        is_untouched
            || (could_be
                && parent.opened(|| parent.read(name, size)).is_ok_and(|bytes| bytes == self.bytes))
    }
}

impl Stamp {
    pub(super) fn of(data: &Metadata) -> Self {
        Self {
            file: id_of(data),
            size: data.len(),
            times: [data.mtime(), data.mtime_nsec(), data.ctime(), data.ctime_nsec()],
            mode: data.mode(),
        }
    }
}
