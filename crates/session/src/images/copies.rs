//! Copies of small files that a command may change, many to a frame in one file: a file for each of them
//! would take longer to make than all of them to read. They serve one look at one workspace; what a
//! command did change goes from here into the store of before-images.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use serde::{Deserialize, Serialize};

use super::known::{Content, Difference, Known};
use super::scan::{Facts, Kind, ScanError};
use super::state::Hash;
use super::store::Images;
use crate::held::PRIVATE_FILE;

/// Larger files are kept one by one.
pub(super) const COPY_CAP_BYTES: u64 = 128 << 10;

/// Bytes of files in one frame. One of them is read as a whole to get at a single file.
const FRAME_BYTES: usize = 512 << 10;

/// As for images: fast, and most of what more time would save.
const COMPRESSION_LEVEL: i32 = 1;

/// Files that one thread takes at a time.
const SHARE: usize = 128;

/// More do not make a disk faster.
const THREADS_CAP: usize = 8;

/// Where a copy stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Copied {
    pub(super) hash: Hash,
    /// Of the frame, in the file.
    at: u64,
    bytes: u32,
    /// Of the copy, in the frame.
    from: u32,
    len: u32,
}

#[derive(Debug)]
pub(super) struct Copies {
    file: File,
    end: AtomicU64,
}

impl Copies {
    /// Beside the file in which what is known is kept, where there is one.
    pub(super) fn path(memory: &Path) -> PathBuf {
        memory.with_extension("copies")
    }

    pub(super) fn create(path: Option<&Path>) -> io::Result<Self> {
        let file = match path {
            None => tempfile::tempfile()?,
            Some(path) => {
                std::fs::create_dir_all(path.parent().unwrap_or(Path::new(".")))?;
                let mut how = OpenOptions::new();
                let how = how.read(true).write(true).create(true).truncate(true);
                how.mode(PRIVATE_FILE).open(path)?
            }
        };
        Ok(Self { file, end: AtomicU64::new(0) })
    }

    /// Those that a process left that was killed.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        let end = AtomicU64::new(file.metadata()?.len());
        Ok(Self { file, end })
    }

    /// Checked against its name: what was damaged is not given out.
    pub(super) fn read(&self, copy: &Copied) -> io::Result<Vec<u8>> {
        let damaged = || io::Error::new(io::ErrorKind::InvalidData, "the copy is damaged");
        let mut frame = vec![0; copy.bytes as usize];
        self.file.read_exact_at(&mut frame, copy.at)?;
        let raw = zstd::bulk::decompress(&frame, FRAME_BYTES + COPY_CAP_BYTES as usize)?;
        let (from, len) = (copy.from as usize, copy.len as usize);
        let bytes = raw.get(from..from + len).ok_or_else(damaged)?;
        match Hash::from(blake3::hash(bytes)) == copy.hash {
            true => Ok(bytes.to_vec()),
            false => Err(damaged()),
        }
    }

    /// Keeps what is told of in the log where undo finds it.
    pub(super) fn move_to(&self, images: &Images, known: &mut Known) {
        let Content::Copy(copy) = known.content else { return };
        let kept = self.read(&copy).map_err(|e| e.to_string()).and_then(|bytes| {
            images.keep(bytes.as_slice(), true).map_err(|error| error.to_string())
        });
        known.content = match kept {
            Ok((hash, _)) => Content::Image(hash),
            Err(why) => Content::Unkept(format!("its content was not kept: {why}")),
        };
    }

    /// Captures files, each at most once looked at, on as many threads as there are processors.
    pub(super) fn capture_all(
        &self,
        files: &[(PathBuf, Facts)],
        images: &Images,
        stop: &AtomicBool,
    ) -> Result<Vec<(PathBuf, Known)>, ScanError> {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let threads = processors.min(THREADS_CAP).min(files.len().div_ceil(SHARE)).max(1);
        let next = AtomicUsize::new(0);
        let work = || {
            let mut gatherer = Gatherer::new(self, images)?;
            loop {
                let from = next.fetch_add(SHARE, Ordering::Relaxed);
                let Some(share) = files.get(from..(from + SHARE).min(files.len())) else { break };
                if share.is_empty() {
                    break;
                }
                for (path, facts) in share {
                    if stop.load(Ordering::Relaxed) {
                        return Err(ScanError::Stopped);
                    }
                    gatherer.take(path, *facts);
                }
            }
            Ok(gatherer.finish())
        };
        let parts: Vec<Result<_, ScanError>> = std::thread::scope(|scope| {
            let others: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
            let own = work();
            let crashed = || ScanError::Io(io::Error::other("a thread that read files crashed"));
            let others = others.into_iter().map(|o| o.join().unwrap_or_else(|_| Err(crashed())));
            others.chain([own]).collect()
        });
        let mut all = Vec::with_capacity(files.len());
        for part in parts {
            all.extend(part?);
        }
        Ok(all)
    }
}

/// What a command changed is kept from here on, whatever becomes of the copies.
pub(super) async fn keep_copies(
    mut differences: Vec<Difference>,
    copies: Option<Arc<Copies>>,
    images: &Images,
) -> Vec<Difference> {
    let is_copy = |known: &Known| matches!(known.content, Content::Copy(_));
    if !differences.iter().any(|d| d.before.as_ref().is_some_and(is_copy)) {
        return differences;
    }
    let images = images.clone();
    let work = move || {
        let copied = differences.iter_mut().filter_map(|d| d.before.as_mut());
        for known in copied.filter(|known| is_copy(known)) {
            match &copies {
                Some(copies) => copies.move_to(&images, known),
                None => known.content = Content::Unkept("its copy is gone".to_owned()),
            }
        }
        differences
    };
    tokio::task::spawn_blocking(work).await.unwrap_or_default()
}

/// A file whose frame is not written yet.
struct Waiting {
    path: PathBuf,
    facts: Facts,
    fresh: bool,
    hash: Hash,
    from: u32,
    len: u32,
}

/// Fills frames, one thread's.
struct Gatherer<'a> {
    copies: &'a Copies,
    images: &'a Images,
    compressor: zstd::bulk::Compressor<'static>,
    raw: Vec<u8>,
    waiting: Vec<Waiting>,
    done: Vec<(PathBuf, Known)>,
}

impl<'a> Gatherer<'a> {
    fn new(copies: &'a Copies, images: &'a Images) -> Result<Self, ScanError> {
        let compressor = zstd::bulk::Compressor::new(COMPRESSION_LEVEL)?;
        let raw = Vec::with_capacity(FRAME_BYTES + COPY_CAP_BYTES as usize);
        Ok(Self { copies, images, compressor, raw, waiting: Vec::new(), done: Vec::new() })
    }

    fn take(&mut self, path: &Path, facts: Facts) {
        let small = facts.kind == Kind::File && facts.len <= COPY_CAP_BYTES;
        if small && self.gather(path).unwrap_or(false) {
            if self.raw.len() >= FRAME_BYTES {
                self.write();
            }
            return;
        }
        let known = super::known::capture_or_note(path, facts, self.images);
        self.done.extend(known.map(|known| (path.to_owned(), known)));
    }

    /// Whether it could be read, and is as small as it looked.
    fn gather(&mut self, path: &Path) -> io::Result<bool> {
        let now = super::known::now_nanos();
        let file = super::known::open(path)?;
        let mut facts = Facts::of(&file.metadata()?);
        if facts.kind != Kind::File || facts.len > COPY_CAP_BYTES {
            return Ok(false);
        }
        let from = self.raw.len();
        let read = file.take(COPY_CAP_BYTES + 1).read_to_end(&mut self.raw);
        let len = self.raw.len() - from;
        if read.is_err() || len as u64 > COPY_CAP_BYTES {
            self.raw.truncate(from);
            return Ok(false);
        }
        let hash = Hash::from(blake3::hash(&self.raw[from..]));
        // What was written meanwhile is part of it.
        facts.len = len as u64;
        let fresh = super::known::is_fresh(&facts, now);
        let (from, len) = (from as u32, len as u32);
        self.waiting.push(Waiting { path: path.to_owned(), facts, fresh, hash, from, len });
        Ok(true)
    }

    fn write(&mut self) {
        let written = self.compressor.compress(&self.raw).and_then(|frame| {
            let at = self.copies.end.fetch_add(frame.len() as u64, Ordering::Relaxed);
            self.copies.file.write_all_at(&frame, at)?;
            let bytes = u32::try_from(frame.len()).map_err(io::Error::other)?;
            Ok((at, bytes))
        });
        for Waiting { path, facts, fresh, hash, from, len } in self.waiting.drain(..) {
            let content = match &written {
                Ok((at, bytes)) => {
                    Content::Copy(Copied { hash, at: *at, bytes: *bytes, from, len })
                }
                Err(error) => Content::Unkept(format!("its content was not kept: {error}")),
            };
            self.done.push((path, Known { facts, content, fresh }));
        }
        self.raw.clear();
    }

    fn finish(mut self) -> Vec<(PathBuf, Known)> {
        if !self.waiting.is_empty() {
            self.write();
        }
        self.done
    }
}
