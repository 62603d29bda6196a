//! One append-only file of JSON lines. Each line has an id, its parent's id, a time and a checksum;
//! it is in the file before anyone is told of it.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::entry::Entry;

/// Raised when a change makes older programs misread the file.
const FORMAT: u32 = 1;

/// What closes each line: the CRC-32 of everything before it.
const CHECKSUM_KEY: &str = ",\"crc\":\"";

#[derive(Debug, thiserror::Error)]
pub enum LogError {
    #[error("cannot write the session file {path}: {source}")]
    Write { path: PathBuf, source: io::Error },
    #[error("cannot read the session file {path}: {source}")]
    Read { path: PathBuf, source: io::Error },
    #[error("the session file {path} is in use by another process")]
    Locked { path: PathBuf },
    #[error(
        "the session file {path} was written by a newer version (format {found}, known: {FORMAT})"
    )]
    Newer { path: PathBuf, found: u32 },
    #[error("{path} is no session file: its first line is not a session header")]
    NoHeader { path: PathBuf },
}

/// Something odd that was found and dealt with while opening; a person should hear of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    /// The file ended in the middle of a line (a crash or a full disk); the rest was kept beside.
    TornTail { bytes: usize, kept_in: PathBuf },
    /// A line's checksum does not fit its content.
    Damaged { line: usize },
}

impl std::fmt::Display for Notice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::TornTail { bytes, kept_in } => write!(
                f,
                "the session file ended in an unfinished line ({bytes} bytes), which was moved to {}",
                kept_in.display()
            ),
            Self::Damaged { line } => {
                write!(f, "line {line} of the session file is damaged and was skipped")
            }
        }
    }
}

/// The file of one session, held by this process alone.
#[derive(Debug)]
pub struct Log {
    file: File,
    path: PathBuf,
    length: u64,
    last_id: Option<String>,
    ids: ulid::Generator,
}

/// Writes one line with its checksum. A short one goes out in one piece; a long one (an answer of
/// megabytes) as it is made, so that it is never in memory twice.
struct LineWriter<'a> {
    file: &'a File,
    buffer: Vec<u8>,
    sum: crc32fast::Hasher,
    written: u64,
}

impl<'a> LineWriter<'a> {
    const FLUSH_BYTES: usize = 64 << 10;

    fn new(file: &'a File) -> Self {
        Self { file, buffer: Vec::with_capacity(512), sum: crc32fast::Hasher::new(), written: 0 }
    }

    /// Everything but the last `keep` bytes.
    fn send(&mut self, keep: usize) -> io::Result<()> {
        let ready = self.buffer.len().saturating_sub(keep);
        self.sum.update(&self.buffer[..ready]);
        self.file.write_all(&self.buffer[..ready])?;
        self.written += ready as u64;
        self.buffer.drain(..ready);
        Ok(())
    }

    /// Takes the bracket that closes the object off, puts the checksum in and closes it again.
    fn close(mut self) -> io::Result<u64> {
        self.buffer.pop();
        self.sum.update(&self.buffer);
        let sum = self.sum.clone().finalize();
        self.buffer.extend_from_slice(format!("{CHECKSUM_KEY}{sum:08x}\"}}\n").as_bytes());
        self.file.write_all(&self.buffer)?;
        Ok(self.written + self.buffer.len() as u64)
    }
}

impl Write for LineWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() > Self::FLUSH_BYTES {
            // The last byte may be the bracket that `close` has to take off.
            self.send(1)?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[derive(Serialize)]
struct LineOut<'a> {
    v: u32,
    id: &'a str,
    parent: Option<&'a str>,
    time: u64,
    #[serde(flatten)]
    entry: &'a Entry,
}

#[derive(Deserialize)]
struct LineIn<'a> {
    #[serde(default)]
    v: u32,
    id: String,
    #[serde(rename = "type")]
    kind: String,
    #[serde(borrow)]
    data: &'a RawValue,
}

impl Log {
    /// Makes a new file and locks it. The file must not exist.
    pub(crate) fn create(path: &Path) -> Result<Self, LogError> {
        let failed = |source| LogError::Write { path: path.to_owned(), source };
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(failed)?;
        }
        let file = OpenOptions::new().append(true).create_new(true).open(path).map_err(failed)?;
        lock(&file, path)?;
        Ok(Self::over(file, path, 0))
    }

    /// Opens a file, locks it, and gives its entries in order. A torn tail is cut off.
    pub(crate) fn open(path: &Path) -> Result<(Self, Vec<Entry>, Vec<Notice>), LogError> {
        let failed = |source| LogError::Read { path: path.to_owned(), source };
        let mut file = OpenOptions::new().read(true).append(true).open(path).map_err(failed)?;
        lock(&file, path)?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(failed)?;
        let contents = read_lines(path, &bytes)?;
        let mut log = Self::over(file, path, contents.whole as u64);
        log.last_id = contents.last_id;
        let mut notices = contents.notices;
        if contents.whole < bytes.len() {
            notices.push(log.cut_tail(&bytes[contents.whole..])?);
        }
        Ok((log, contents.entries, notices))
    }

    /// Reads a file without locking or changing it.
    pub(crate) fn peek(path: &Path) -> Result<Vec<Entry>, LogError> {
        let bytes = crate::lines::read_file(path)
            .map_err(|source| LogError::Read { path: path.to_owned(), source })?;
        Ok(read_lines(path, &bytes)?.entries)
    }

    fn over(file: File, path: &Path, length: u64) -> Self {
        let ids = ulid::Generator::new();
        Self { file, path: path.to_owned(), length, last_id: None, ids }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Puts one entry behind the others. After an error the file is as it was before.
    pub fn append(&mut self, entry: &Entry) -> Result<(), LogError> {
        let time = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |d| u64::try_from(d.as_millis()).unwrap_or(u64::MAX));
        self.append_at(entry, time)
    }

    /// As [`Self::append`], for something that happened at another time (milliseconds since 1970).
    pub(crate) fn append_at(&mut self, entry: &Entry, time: u64) -> Result<(), LogError> {
        // The generator only fails after 2^80 ids in one millisecond; a fresh one serves as well.
        let id = self.ids.generate().unwrap_or_else(|_| ulid::Ulid::generate()).to_string();
        let line = LineOut { v: FORMAT, id: &id, parent: self.last_id.as_deref(), time, entry };
        let mut writer = LineWriter::new(&self.file);
        let written = serde_json::to_writer(&mut writer, &line).map_err(io::Error::from);
        let result = written.and_then(|()| writer.close());
        let length = match result {
            Ok(length) => length,
            Err(source) => {
                // A half-written line must not stand in front of the next one. If even this fails, the
                // next open cuts it off.
                self.file.set_len(self.length).ok();
                return Err(LogError::Write { path: self.path.clone(), source });
            }
        };
        self.length += length;
        self.last_id = Some(id);
        Ok(())
    }

    /// A handle whose `sync_data` makes everything appended so far survive a power cut. It may be
    /// called on another thread.
    pub fn sync_handle(&self) -> Result<File, LogError> {
        self.file.try_clone().map_err(|source| LogError::Write { path: self.path.clone(), source })
    }

    #[cfg(test)]
    pub(crate) fn break_for_test(&mut self) {
        self.file = File::open(&self.path).unwrap();
    }

    fn cut_tail(&mut self, tail: &[u8]) -> Result<Notice, LogError> {
        let failed = |source| LogError::Write { path: self.path.clone(), source };
        let kept_in = self.path.with_extension(format!("jsonl.torn-{}", self.length));
        std::fs::write(&kept_in, tail).map_err(failed)?;
        self.file.set_len(self.length).map_err(failed)?;
        self.file.seek(SeekFrom::End(0)).map_err(failed)?;
        Ok(Notice::TornTail { bytes: tail.len(), kept_in })
    }
}

/// How often a lock is tried again, and how long is waited in between: a sweep of old outputs holds
/// it for a moment, and nobody should be told of another process because of that.
const LOCK_TRIES: u32 = 3;
const LOCK_PAUSE: Duration = Duration::from_millis(5);

fn lock(file: &File, path: &Path) -> Result<(), LogError> {
    let mut tried = file.try_lock();
    for _ in 0..LOCK_TRIES {
        if !matches!(tried, Err(TryLockError::WouldBlock)) {
            break;
        }
        std::thread::sleep(LOCK_PAUSE);
        tried = file.try_lock();
    }
    match tried {
        // A file that was compressed or removed meanwhile is nobody's.
        Ok(()) if !is_at(file, path) => Err(LogError::Locked { path: path.to_owned() }),
        Ok(()) => Ok(()),
        Err(TryLockError::WouldBlock) => Err(LogError::Locked { path: path.to_owned() }),
        Err(TryLockError::Error(source)) => Err(LogError::Write { path: path.to_owned(), source }),
    }
}

pub(crate) fn is_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let place = |data: std::fs::Metadata| (data.dev(), data.ino());
    let there = std::fs::metadata(path).map(place).ok();
    there.is_some() && there == file.metadata().map(place).ok()
}

struct Contents {
    entries: Vec<Entry>,
    notices: Vec<Notice>,
    /// Bytes up to the end of the last whole line.
    whole: usize,
    last_id: Option<String>,
}

fn read_lines(path: &Path, bytes: &[u8]) -> Result<Contents, LogError> {
    let mut contents =
        Contents { entries: Vec::new(), notices: Vec::new(), whole: 0, last_id: None };
    for (number, piece) in bytes.split_inclusive(|b| *b == b'\n').enumerate() {
        let is_last = contents.whole + piece.len() == bytes.len();
        let whole_line = piece.strip_suffix(b"\n").and_then(checked);
        match whole_line.and_then(|line| serde_json::from_slice::<LineIn<'_>>(line).ok()) {
            Some(line) if line.v > FORMAT => {
                return Err(LogError::Newer { path: path.to_owned(), found: line.v });
            }
            Some(line) => {
                // A kind from a later version is kept in the file and means nothing to us.
                if let Some(entry) = parse_entry(&line) {
                    contents.entries.push(entry);
                }
                contents.last_id = Some(line.id);
            }
            // The end of the file may be torn anywhere; cut from the first bad byte of it.
            None if is_last => return with_header(path, contents),
            None => {
                contents.notices.push(Notice::Damaged { line: number + 1 });
                contents.entries.extend(stand_in(piece));
            }
        }
        contents.whole += piece.len();
    }
    with_header(path, contents)
}

fn with_header(path: &Path, contents: Contents) -> Result<Contents, LogError> {
    match contents.entries.first() {
        Some(Entry::Session(_)) => Ok(contents),
        _ => Err(LogError::NoHeader { path: path.to_owned() }),
    }
}

/// What stands for a damaged line, so that what counts items still counts the same.
fn stand_in(line: &[u8]) -> Option<Entry> {
    const HEAD_BYTES: usize = 256;
    let head = String::from_utf8_lossy(&line[..line.len().min(HEAD_BYTES)]).into_owned();
    let kind = head.split("\"type\":\"").nth(1)?.split('"').next()?.to_owned();
    let is_item = matches!(kind.as_str(), "prompt" | "note" | "step_started");
    let text = "(An entry of this session was damaged on disk and is left out.)".to_owned();
    is_item.then_some(Entry::Note { text })
}

/// The line, if its checksum fits.
fn checked(line: &[u8]) -> Option<&[u8]> {
    let at = line.len().checked_sub(CHECKSUM_KEY.len() + 10)?;
    let (body, rest) = line.split_at(at);
    let sum = rest.strip_prefix(CHECKSUM_KEY.as_bytes())?.strip_suffix(b"\"}")?;
    let sum = u32::from_str_radix(std::str::from_utf8(sum).ok()?, 16).ok()?;
    (crc32fast::hash(body) == sum).then_some(line)
}

fn parse_entry(line: &LineIn<'_>) -> Option<Entry> {
    #[derive(Serialize)]
    struct Tagged<'a> {
        r#type: &'a str,
        data: &'a RawValue,
    }
    // Deltas are the bulk of a file and matter only at its end: see `Session::apply`.
    let tagged = serde_json::to_string(&Tagged { r#type: &line.kind, data: line.data }).ok()?;
    serde_json::from_str(&tagged).ok()
}
