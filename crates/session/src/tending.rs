//! Looking after sessions that nobody works on: renaming, archiving, removing, and making old files small.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use crate::chronicle::Chronicle;
use crate::entry::{Entry, Header, TitledBy};
use crate::held::PRIVATE_FILE;
use crate::lock::lock;
use crate::log::LogError;
use crate::store::{CHILDREN, OpenError, Store, id_of};
use crate::title::shortened;
use toolwright_llm::Usage;

/// A session that nobody used for so long is seldom wanted again soon.
const COMPRESS_AFTER: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// Where more effort stops paying for text of this kind.
const COMPRESSION_LEVEL: i32 = 9;

impl Store {
    /// A session with the times of what is in it, without opening it for work.
    pub fn chronicle(&self, id: &str) -> Result<Chronicle, OpenError> {
        Ok(Chronicle::read(&self.find(id)?)?)
    }

    /// As [`Self::chronicle`], the one used last in this folder.
    pub fn latest_chronicle(&self, directory: &Path) -> Result<Chronicle, OpenError> {
        Ok(Chronicle::read(&self.newest(directory)?)?)
    }

    /// The sessions of agents that worked for this one, in the order in which they began.
    pub fn children(&self, parent: &Header) -> Vec<Chronicle> {
        let mut found = self.children_files(Path::new(&parent.directory), &parent.session);
        found.sort_by(|a, b| id_of(a).cmp(id_of(b)));
        found.iter().filter_map(|path| Chronicle::read(path).ok()).collect()
    }

    fn children_files(&self, directory: &Path, parent: &str) -> Vec<PathBuf> {
        let folder = self.project(directory).join(CHILDREN);
        let files = crate::store::session_files(&folder);
        let own = |path: &PathBuf| {
            header_of(path).is_some_and(|header| header.parent.as_deref() == Some(parent))
        };
        files.filter(own).collect()
    }

    /// Gives a session a name. Nothing is given back but its id.
    pub fn rename(&self, id: &str, title: &str) -> Result<String, OpenError> {
        let title = shortened(title);
        let (usage, cost, model) = (Usage::default(), None, None);
        self.remark(id, &Entry::Titled { title, by: TitledBy::Person, usage, cost, model })
    }

    /// Puts a session away, or takes it out again.
    pub fn archive(&self, id: &str, archived: bool) -> Result<String, OpenError> {
        self.remark(id, &Entry::Archived { archived })
    }

    /// Says something about a session without using it: it does not become the one used last.
    fn remark(&self, id: &str, entry: &Entry) -> Result<String, OpenError> {
        let used = modified(&self.find(id)?);
        let (mut log, session, _) = self.open(id)?;
        log.append(entry)?;
        if let Some(used) = used {
            // Only the order of a list depends on it.
            log.set_used(used).ok();
        }
        Ok(session.header.session)
    }

    /// Removes a session for good, with the outputs that were kept for it and the sessions of agents that
    /// worked for it. One that is in use stays.
    pub fn delete(&self, id: &str) -> Result<String, OpenError> {
        let path = self.find(id)?;
        let id = id_of(&path).to_owned();
        let _held = hold(&path)?;
        if let Some(header) = header_of(&path) {
            for child in self.workers(&header) {
                let _held = hold(&child)?;
                remove_all(&child)?;
            }
        }
        remove_all(&path)?;
        Ok(id)
    }

    /// Compresses the files of sessions that nobody used for a week. What is in use, or cannot be
    /// written, is left; `stop` ends it between two files.
    pub(crate) fn compress_old(&self, now: SystemTime, stop: &AtomicBool) {
        for path in self.files() {
            if stop.load(Ordering::Relaxed) {
                return;
            }
            let old = modified(&path).and_then(|used| now.duration_since(used).ok());
            let plain = path.extension().is_some_and(|extension| extension == "jsonl");
            if plain && old.is_some_and(|age| age > COMPRESS_AFTER) {
                // It is as good as before.
                compress(&path).ok();
            }
        }
    }
}

/// Holds a session's lock, so that nobody can begin to work on it.
fn hold(path: &Path) -> Result<File, LogError> {
    let failed = |source| LogError::Read { path: path.to_owned(), source };
    let file = File::open(path).map_err(failed)?;
    lock(&file, path)?;
    Ok(file)
}

/// Reads the first line only.
pub(crate) fn header_of(path: &Path) -> Option<Header> {
    let file = File::open(path).ok()?;
    let is_small = path.extension().is_some_and(|extension| extension == "zst");
    let mut reader: Box<dyn BufRead> = if is_small {
        Box::new(BufReader::new(zstd::Decoder::new(file).ok()?))
    } else {
        Box::new(BufReader::new(file))
    };
    let mut line = Vec::new();
    reader.read_until(b'\n', &mut line).ok()?;
    match crate::line::entry(line.trim_ascii_end())? {
        Entry::Session(header) => Some(header),
        _ => None,
    }
}

fn remove_all(path: &Path) -> Result<(), LogError> {
    let failed = |source| LogError::Write { path: path.to_owned(), source };
    let folder = path.parent().unwrap_or(Path::new("."));
    let id = id_of(path);
    // The file last: as long as it is there, the rest can be found again.
    for entry in fs::read_dir(folder).map_err(failed)?.flatten() {
        let beside = entry.path();
        let name = entry.file_name();
        let ours = name.to_str().and_then(|name| name.strip_prefix(id));
        if beside == path || !ours.is_some_and(|rest| rest.starts_with('.')) {
            continue;
        }
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        let removed =
            if is_folder { fs::remove_dir_all(&beside) } else { fs::remove_file(&beside) };
        removed.map_err(failed)?;
    }
    fs::remove_file(path).map_err(failed)
}

fn modified(path: &Path) -> Option<SystemTime> {
    fs::metadata(path).and_then(|data| data.modified()).ok()
}

/// Makes `X.jsonl` into `X.jsonl.zst`. There is at least one whole file at any time.
pub(crate) fn compress(path: &Path) -> io::Result<PathBuf> {
    let held = hold(path).map_err(io::Error::other)?;
    let used = held.metadata()?.modified()?;
    let packed = zstd::encode_all(&held, COMPRESSION_LEVEL)?;
    let target = path.with_extension("jsonl.zst");
    put(&target, &packed, used)?;
    fs::remove_file(path)?;
    Ok(target)
}

/// Makes `X.jsonl.zst` into `X.jsonl` again.
pub(crate) fn expand(path: &Path) -> Result<PathBuf, LogError> {
    let plain = path.with_extension("");
    let failed = |source| LogError::Read { path: path.to_owned(), source };
    let held = match hold(path) {
        Ok(held) => held,
        // Somebody else was quicker.
        Err(_) if plain.exists() => return Ok(plain),
        Err(error) => return Err(error),
    };
    if !plain.exists() {
        let used = held.metadata().and_then(|data| data.modified()).map_err(failed)?;
        let bytes = zstd::decode_all(&held).map_err(failed)?;
        put(&plain, &bytes, used).map_err(failed)?;
    }
    fs::remove_file(path).map_err(failed)?;
    Ok(plain)
}

/// A file appears whole or not at all.
fn put(target: &Path, bytes: &[u8], used: SystemTime) -> io::Result<()> {
    let mut name = target.as_os_str().to_owned();
    name.push(".part");
    let part = PathBuf::from(name);
    // What was left of an attempt may be open to others.
    fs::remove_file(&part).ok();
    let mut how = OpenOptions::new();
    let file = how.write(true).create_new(true).mode(PRIVATE_FILE).open(&part)?;
    let written = (&file)
        .write_all(bytes)
        .and_then(|()| file.set_modified(used))
        .and_then(|()| file.sync_all())
        .and_then(|()| fs::rename(&part, target));
    if written.is_err() {
        fs::remove_file(&part).ok();
    }
    written
}

#[cfg(test)]
#[path = "tending_tests.rs"]
mod tests;
