//! What is known about the workspace's files, and what has become different.

use std::collections::{BTreeSet, HashMap};
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use super::copies::{Copied, Copies};
use super::place::Repository;
use super::scan::{Facts, Kind, Scan, ScanError};
use super::state::{Hash, State, raw_path};
use super::store::{Images, KeepError};

/// A file that changed this shortly before it was looked at may change again without its times
/// showing it: clocks of file systems tick in milliseconds. Such a file is read again next time.
const TICK_NANOS: i64 = 100_000_000;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Known {
    pub(super) facts: Facts,
    pub(super) content: Content,
    /// The facts alone do not tell whether it is still the same.
    pub(super) fresh: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Content {
    Folder,
    Link(#[serde(with = "raw_path")] PathBuf),
    Image(Hash),
    /// In the file of copies.
    Copy(Copied),
    /// The file is clean, and a repository has its content.
    Object(Object),
    Unkept(String),
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(super) struct Object {
    #[serde(with = "raw_path")]
    pub(super) repository: PathBuf,
    pub(super) name: String,
}

/// A path that is no longer as it was known.
#[derive(Debug)]
pub(super) struct Difference {
    pub(super) path: PathBuf,
    pub(super) before: Option<Known>,
    pub(super) after: Option<Known>,
}

#[derive(Debug, Default)]
pub(super) struct Table {
    pub(super) entries: HashMap<PathBuf, Known>,
    pub(super) ignored: BTreeSet<PathBuf>,
    pub(super) repositories: Vec<Repository>,
}

impl Known {
    /// Reads what stands at the path. Nothing, if nothing does.
    pub(super) fn capture(path: &Path, images: &Images, durable: bool) -> io::Result<Option<Self>> {
        let Some(facts) = Facts::at(path)? else { return Ok(None) };
        let now = now_nanos();
        let (facts, content) = match facts.kind {
            Kind::Folder => (facts, Content::Folder),
            Kind::Link => (facts, Content::Link(fs::read_link(path)?)),
            Kind::Other => (facts, Content::Unkept("it is no file".to_owned())),
            Kind::File => match open(path) {
                Ok(file) => {
                    // Those of the file that is read, whatever has come in its place.
                    let mut facts = Facts::of(&file.metadata()?);
                    let content = read(file, &mut facts, images, durable);
                    (facts, content)
                }
                Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
                Err(e) => (facts, Content::Unkept(format!("it cannot be read: {e}"))),
            },
        };
        let fresh = is_fresh(&facts, now);
        Ok(Some(Self { facts, content, fresh }))
    }

    /// Something whose facts cannot be told either.
    pub(super) fn unreadable(error: &io::Error) -> Self {
        let facts = Facts { kind: Kind::Other, mode: 0, len: 0, mtime: 0, ctime: 0, inode: 0 };
        let content = Content::Unkept(format!("it cannot be read: {error}"));
        Self { facts, content, fresh: true }
    }

    /// As the log tells it. What a repository has must be taken from it first.
    pub(super) fn state(&self, taken: &HashMap<Object, (Hash, u64)>) -> State {
        let Facts { mode, len, .. } = self.facts;
        match &self.content {
            Content::Folder => State::Folder { mode },
            Content::Link(target) => State::Link { target: target.clone() },
            Content::Image(hash) => State::File { hash: *hash, mode, len },
            Content::Copy(copy) => State::File { hash: copy.hash, mode, len },
            Content::Object(object) => match taken.get(object) {
                Some((hash, len)) => State::File { hash: *hash, mode, len: *len },
                None => self.unkept("the repository no longer has what it was"),
            },
            Content::Unkept(why) => self.unkept(why),
        }
    }

    fn unkept(&self, why: &str) -> State {
        State::Unkept { mark: mark_of(&self.facts), why: why.to_owned() }
    }

    /// Whether it is the same for whoever looks at the file.
    fn is_like(&self, other: &Self) -> bool {
        let same_content = match (&self.content, &other.content) {
            (Content::Unkept(_), _) | (_, Content::Unkept(_)) => self.facts == other.facts,
            (own, others) => own == others || own.hash().is_some_and(|h| others.hash() == Some(h)),
        };
        let link = self.facts.kind == Kind::Link;
        same_content && (link || self.facts.mode == other.facts.mode)
    }

    pub(super) fn image(&self) -> Option<Hash> {
        match &self.content {
            Content::Image(hash) => Some(*hash),
            _ => None,
        }
    }
}

impl Content {
    /// Where it is known by its hash.
    fn hash(&self) -> Option<Hash> {
        match self {
            Self::Image(hash) => Some(*hash),
            Self::Copy(copy) => Some(copy.hash),
            Self::Folder | Self::Link(_) | Self::Object(_) | Self::Unkept(_) => None,
        }
    }
}

/// Whether a file changed so shortly before it was looked at that it may change unseen.
pub(super) fn is_fresh(facts: &Facts, now: i64) -> bool {
    facts.kind == Kind::File && facts.mtime.max(facts.ctime) >= now - TICK_NANOS
}

/// Tells whether something that is not kept is still the same.
pub(super) fn mark_of(facts: &Facts) -> String {
    let Facts { len, mtime, inode, mode, .. } = facts;
    format!("{len}-{mtime}-{inode}-{mode:o}")
}

pub(super) fn now_nanos() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(now.as_nanos()).unwrap_or(i64::MAX)
}

/// Never waits: something else may stand there by now.
pub(super) fn open(path: &Path) -> io::Result<File> {
    let flags = libc::O_NONBLOCK | libc::O_NOFOLLOW | libc::O_NOCTTY;
    OpenOptions::new().read(true).custom_flags(flags).open(path)
}

/// What was written meanwhile is part of it: the length is that of what was read.
fn read(file: File, facts: &mut Facts, images: &Images, durable: bool) -> Content {
    if facts.kind != Kind::File {
        return Content::Unkept("it is no file".to_owned());
    }
    let largest = images.largest();
    let kept = if facts.len > largest {
        Err(KeepError::TooLarge { largest })
    } else {
        images.keep(file, durable)
    };
    match kept {
        Ok((hash, len)) => {
            facts.len = len;
            Content::Image(hash)
        }
        Err(error) => Content::Unkept(format!("its content was not kept: {error}")),
    }
}

impl Table {
    /// The first look: everything is captured, but for what `clean` says a repository has. What does
    /// not fit into `budget` bytes is known to be there and no more.
    pub(super) fn begin(
        scan: Scan,
        mut clean: HashMap<PathBuf, Object>,
        (images, copies): (&Images, &Copies),
        mut budget: u64,
        stop: &AtomicBool,
    ) -> Result<Self, ScanError> {
        let mut table = Self {
            entries: HashMap::with_capacity(scan.entries.len()),
            ignored: scan.ignored,
            repositories: scan.repositories,
        };
        // The small ones first: they are what people write.
        let mut found: Vec<(PathBuf, Facts)> = scan.entries.into_iter().collect();
        found.sort_by_key(|(_, facts)| facts.len);
        let mut wanted = Vec::new();
        for (path, facts) in found {
            let is_file = facts.kind == Kind::File;
            // One that is too large by itself is told so.
            let is_beyond = is_file && facts.len > budget && facts.len <= images.largest();
            let content = match clean.remove(&path) {
                Some(object) => Content::Object(object),
                None if is_beyond => {
                    let why = "there is too much in the workspace to keep a copy of each file";
                    Content::Unkept(why.to_owned())
                }
                None => {
                    if is_file {
                        budget = budget.saturating_sub(facts.len);
                    }
                    wanted.push((path, facts));
                    continue;
                }
            };
            table.set(&path, Some(Known { facts, content, fresh: false }), images);
        }
        for (path, known) in copies.capture_all(&wanted, images, stop)? {
            table.set(&path, Some(known), images);
        }
        Ok(table)
    }

    /// A later look: only what looks different is read.
    pub(super) fn renew(&mut self, scan: Scan, images: &Images) -> Vec<Difference> {
        let mut differences = Vec::new();
        for (path, facts) in &scan.entries {
            differences.extend(self.look(path, *facts, images));
        }
        let missing: Vec<PathBuf> =
            self.entries.keys().filter(|path| !scan.entries.contains_key(*path)).cloned().collect();
        for path in missing {
            match Facts::in_place(&path) {
                // Ignore rules changed: it stays what it was.
                Ok(Some(facts)) => differences.extend(self.look(&path, facts, images)),
                // Not to be looked at for now.
                Err(_) => {}
                Ok(None) => {
                    let before = self.set(&path, None, images);
                    differences.push(Difference { path, before, after: None });
                }
            }
        }
        // What was ignored once may have been there all the time.
        self.ignored.extend(scan.ignored);
        self.repositories = scan.repositories;
        differences
    }

    /// What has become of one path that is there.
    fn look(&mut self, path: &Path, facts: Facts, images: &Images) -> Option<Difference> {
        let known = self.entries.get(path);
        if known.is_some_and(|known| known.facts == facts && !known.fresh) {
            return None;
        }
        // It was there before and nobody knows what it was: it only was not looked at.
        let adopted = known.is_none() && self.was_ignored(path);
        let after = capture_or_note(path, facts, images);
        let before = self.set(path, after.clone(), images);
        let same = match (&before, &after) {
            (Some(before), Some(after)) => before.is_like(after),
            (None, None) => true,
            _ => false,
        };
        (!same && !adopted).then(|| Difference { path: path.to_owned(), before, after })
    }

    /// Puts what is known now in place of what was.
    pub(super) fn set(
        &mut self,
        path: &Path,
        known: Option<Known>,
        images: &Images,
    ) -> Option<Known> {
        if let Some(hash) = known.as_ref().and_then(Known::image) {
            images.pin(hash);
        }
        let before = match known {
            Some(known) => self.entries.insert(path.to_owned(), known),
            None => self.entries.remove(path),
        };
        if let Some(hash) = before.as_ref().and_then(Known::image) {
            images.unpin(&hash);
        }
        before
    }

    fn was_ignored(&self, path: &Path) -> bool {
        path.ancestors().any(|folder| self.ignored.contains(folder))
    }
}

pub(super) fn capture_or_note(path: &Path, facts: Facts, images: &Images) -> Option<Known> {
    Known::capture(path, images, false).unwrap_or_else(|e| {
        let content = Content::Unkept(format!("it cannot be read: {e}"));
        Some(Known { facts, content, fresh: false })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::images::Quota;

    #[test]
    fn a_file_that_grows_while_it_is_read_has_the_length_of_what_was_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f");
        fs::write(&path, "e1\n").unwrap();
        let mut facts = Facts::at(&path).unwrap().unwrap();
        fs::write(&path, "e1\ne2\n").unwrap();
        let images = Images::new(folder.path(), folder.path(), Quota::default());
        let content = read(open(&path).unwrap(), &mut facts, &images, false);
        let state = Known { facts, content, fresh: true }.state(&HashMap::new());
        assert_eq!(state, crate::images::restore::current(&path, &images));
    }
}
