//! Contents of files, each kept once under the name of its hash, compressed, inside a quota.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, BufReader, Read, Write};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use super::quota;
use super::state::Hash;
use crate::fail::fail_point;

/// Fast, and most of what a higher level would save on source code.
const COMPRESSION_LEVEL: i32 = 1;

/// Contents up to this size are looked at in memory, so that one that is kept already costs no write.
const SMALL_BYTES: usize = 1 << 20;

/// A single file may take this part of the quota: one disk image must not drive out everything else.
const LARGEST_SHARE: u64 = 8;

/// What may be kept, over all sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quota {
    pub bytes: u64,
    pub age: Duration,
}

impl Default for Quota {
    fn default() -> Self {
        Self { bytes: 2 << 30, age: Duration::from_secs(30 * 24 * 60 * 60) }
    }
}

impl Quota {
    /// The usual, where nothing is given.
    pub fn of(days: Option<u64>, bytes: Option<u64>) -> Self {
        let usual = Self::default();
        let age = |days: u64| Duration::from_secs(days.saturating_mul(24 * 60 * 60));
        Self { bytes: bytes.unwrap_or(usual.bytes), age: days.map_or(usual.age, age) }
    }
}

/// Why a content is not kept.
#[derive(Debug, thiserror::Error)]
pub enum KeepError {
    #[error("larger than the {largest} bytes that are kept of one file")]
    TooLarge { largest: u64 },
    #[error("the room for before-images ({quota} bytes) is used up")]
    Full { quota: u64 },
    #[error("{0}")]
    Io(#[from] io::Error),
}

/// The store. Clones share it.
#[derive(Debug, Clone)]
pub struct Images {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    root: PathBuf,
    /// Whose logs say which contents are still wanted.
    sessions: PathBuf,
    quota: Quota,
    account: Mutex<Account>,
}

#[derive(Debug, Default)]
struct Account {
    /// Bytes on disk, once they have been counted.
    used: Option<u64>,
    /// What this process relies on, and how many files have it.
    pinned: HashMap<Hash, usize>,
    /// Room was looked for and not found; there is no use in looking again for each file.
    in_vain: bool,
}

/// A content on its way into the store.
pub(crate) struct Incoming<'a> {
    images: &'a Images,
    hasher: blake3::Hasher,
    encoder: zstd::Encoder<'static, tempfile::NamedTempFile>,
    len: u64,
}

impl Images {
    /// `root` is made when the first content is kept.
    pub fn new(root: impl Into<PathBuf>, sessions: impl Into<PathBuf>, quota: Quota) -> Self {
        let (root, sessions) = (root.into(), sessions.into());
        let account = Mutex::default();
        Self { shared: Arc::new(Shared { root, sessions, quota, account }) }
    }

    pub(crate) fn quota(&self) -> Quota {
        self.shared.quota
    }

    pub(crate) fn largest(&self) -> u64 {
        self.shared.quota.bytes / LARGEST_SHARE
    }

    pub fn contains(&self, hash: &Hash) -> bool {
        self.path(hash).exists()
    }

    /// Keeps what can be read. `durable`: it survives a power cut once this returns.
    pub(crate) fn keep(
        &self,
        mut from: impl Read,
        durable: bool,
    ) -> Result<(Hash, u64), KeepError> {
        let mut head = Vec::new();
        from.by_ref().take(SMALL_BYTES as u64).read_to_end(&mut head)?;
        if head.len() < SMALL_BYTES {
            let hash = Hash::from(blake3::hash(&head));
            if self.is_fresh(&hash) {
                return Ok((hash, head.len() as u64));
            }
        }
        let mut incoming = self.incoming()?;
        incoming.push(&head)?;
        let mut piece = vec![0; if head.len() < SMALL_BYTES { 0 } else { 256 << 10 }];
        drop(head);
        while !piece.is_empty() {
            match from.read(&mut piece)? {
                0 => break,
                count => incoming.push(&piece[..count])?,
            }
        }
        incoming.finish(durable)
    }

    pub(crate) fn incoming(&self) -> Result<Incoming<'_>, KeepError> {
        let folder = self.shared.root.join("tmp");
        let new = || tempfile::Builder::new().prefix("in-").tempfile_in(&folder);
        let file = match new() {
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                fs::create_dir_all(&folder)?;
                new()?
            }
            file => file?,
        };
        let encoder = zstd::Encoder::new(file, COMPRESSION_LEVEL)?;
        Ok(Incoming { images: self, hasher: blake3::Hasher::new(), encoder, len: 0 })
    }

    /// Writes a content, checked against its name: what was damaged is not given out.
    pub(crate) fn copy_to(&self, hash: &Hash, to: &mut impl Write) -> io::Result<u64> {
        let file = File::open(self.path(hash))?;
        let mut decoder = zstd::Decoder::new(BufReader::new(file))?;
        let mut hasher = blake3::Hasher::new();
        let mut piece = vec![0; 128 << 10];
        let mut len = 0;
        loop {
            let count = decoder.read(&mut piece)?;
            if count == 0 {
                break;
            }
            hasher.update(&piece[..count]);
            to.write_all(&piece[..count])?;
            len += count as u64;
        }
        if Hash::from(hasher.finalize()) != *hash {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the before-image is damaged"));
        }
        Ok(len)
    }

    /// It must not be cleared away while this process lives.
    pub(crate) fn pin(&self, hash: Hash) {
        *self.account().pinned.entry(hash).or_default() += 1;
    }

    /// Takes one [`Self::pin`] back.
    pub(crate) fn unpin(&self, hash: &Hash) {
        let mut account = self.account();
        if let Some(count) = account.pinned.get_mut(hash) {
            *count -= 1;
            if *count == 0 {
                account.pinned.remove(hash);
                account.in_vain = false;
            }
        }
    }

    /// Bytes on disk.
    pub fn used(&self) -> u64 {
        let mut account = self.account();
        *account.used.get_or_insert_with(|| quota::total(&self.shared.root))
    }

    /// Removes what is older than the quota allows, and the oldest until the rest fits.
    pub fn sweep(&self, now: SystemTime) {
        let mut account = self.account();
        let left = self.clear(&account.pinned, self.shared.quota.bytes, now);
        account.used = Some(left);
        account.in_vain = false;
    }

    /// As [`Self::sweep`], at most once a day, whoever asks.
    pub fn sweep_if_due(&self, now: SystemTime) {
        const DAY: Duration = Duration::from_secs(24 * 60 * 60);
        let stamp = self.shared.root.join(".last-sweep");
        let last = fs::metadata(&stamp).and_then(|data| data.modified());
        let rested = last.ok().and_then(|last| now.duration_since(last).ok());
        if rested.is_some_and(|rested| rested < DAY) || !self.shared.root.exists() {
            return;
        }
        // First, so that nobody else begins as well.
        if File::create(&stamp).is_ok() {
            self.sweep(now);
        }
    }

    fn clear(&self, pinned: &HashMap<Hash, usize>, bytes: u64, now: SystemTime) -> u64 {
        let Shared { root, sessions, quota, .. } = &*self.shared;
        quota::clear(root, sessions, pinned, Quota { bytes, ..*quota }, now)
    }

    /// Makes sure that `more` bytes fit.
    fn make_room(&self, more: u64) -> Result<(), KeepError> {
        let quota = self.shared.quota.bytes;
        let mut account = self.account();
        let used = *account.used.get_or_insert_with(|| quota::total(&self.shared.root));
        if used.saturating_add(more) <= quota {
            return Ok(());
        }
        if !account.in_vain {
            // A little more than is needed: the next file wants room too.
            let wanted = (quota - quota / 10).saturating_sub(more);
            let left = self.clear(&account.pinned, wanted, SystemTime::now());
            account.used = Some(left);
            account.in_vain = left.saturating_add(more) > quota;
        }
        if account.in_vain { Err(KeepError::Full { quota }) } else { Ok(()) }
    }

    /// Whether it is kept; if it is, it counts as new from now on.
    fn is_fresh(&self, hash: &Hash) -> bool {
        let Ok(file) = File::open(self.path(hash)) else { return false };
        // One that cannot be touched only goes a little earlier.
        file.set_modified(SystemTime::now()).ok();
        true
    }

    fn path(&self, hash: &Hash) -> PathBuf {
        let name = hash.to_string();
        self.shared.root.join(&name[..2]).join(name)
    }

    fn account(&self) -> MutexGuard<'_, Account> {
        self.shared.account.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Incoming<'_> {
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Result<(), KeepError> {
        self.len += bytes.len() as u64;
        let largest = self.images.largest();
        if self.len > largest {
            return Err(KeepError::TooLarge { largest });
        }
        self.hasher.update(bytes);
        self.encoder.write_all(bytes)?;
        Ok(())
    }

    pub(crate) fn finish(self, durable: bool) -> Result<(Hash, u64), KeepError> {
        let Self { images, hasher, encoder, len } = self;
        let hash = Hash::from(hasher.finalize());
        let file = encoder.finish()?;
        if images.is_fresh(&hash) {
            return Ok((hash, len));
        }
        let bytes = file.as_file().metadata()?.len();
        images.make_room(bytes)?;
        fail_point("image.half");
        if durable {
            file.as_file().sync_data()?;
        }
        let path = images.path(&hash);
        if let Err(failed) = file.persist(&path) {
            // The folder is made when the first of its images comes.
            let folder = path.parent().filter(|_| failed.error.kind() == io::ErrorKind::NotFound);
            fs::create_dir_all(folder.ok_or(failed.error)?)?;
            failed.file.persist(&path).map_err(|e| e.error)?;
        }
        let mut account = images.account();
        account.used = account.used.map(|used| used + bytes);
        Ok((hash, len))
    }
}

#[cfg(test)]
#[path = "store_tests.rs"]
mod tests;
