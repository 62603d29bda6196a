//! What is known about the workspace, on disk while commands run: should the process be killed, the next
//! one can still tell what the command had changed. The file is a cache of one moment; it is written
//! anew by each process that looks at the workspace.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

use super::copies::Copies;
use super::known::{Known, Table};
use super::state::raw_path;
use crate::fail::fail_point;
use crate::id::EntryId;

/// How often a process says that it lives while a command runs.
const BEAT: Duration = Duration::from_secs(1);

/// How long after that the command may have gone on: a busy machine, and the end of its processes.
const GRACE: Duration = Duration::from_secs(3);

#[derive(Debug)]
pub(super) struct Memory {
    path: PathBuf,
    /// Once the whole table is in it. A file that cannot be written is done without.
    file: Option<File>,
    /// A command runs.
    open: bool,
    /// None runs any more, and the file does not say so yet.
    ended: bool,
    /// What the file must not say before the log does, by the moment under which it is told there: a
    /// process that is killed in between must find it different once more.
    waiting: Vec<(u64, Vec<u8>)>,
}

/// Of no use any more, unless a command is left alone, or what it did is not on record.
impl Drop for Memory {
    fn drop(&mut self) {
        if !self.open && self.waiting.is_empty() {
            Self::discard(&self.path);
        }
    }
}

#[derive(Serialize, Deserialize)]
enum Line {
    Set(#[serde(with = "raw_path")] PathBuf, Known),
    Gone(#[serde(with = "raw_path")] PathBuf),
    Ignored(#[serde(with = "raw_path")] PathBuf),
    /// A command runs from here on.
    Begin {
        turn: EntryId,
        what: String,
    },
    /// No command runs.
    End,
}

/// What a process that was killed left.
pub(super) struct Remembered {
    pub(super) table: Table,
    pub(super) turn: EntryId,
    pub(super) what: String,
    /// When the process was alive for the last time, and a little more.
    pub(super) died: SystemTime,
}

impl Memory {
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path, file: None, open: false, ended: false, waiting: Vec::new() }
    }

    pub(super) fn write_all(&mut self, table: &Table) {
        self.file = self.rewrite(table).ok();
    }

    /// First beside the old one: a half-written table would be worse than none.
    fn rewrite(&self, table: &Table) -> io::Result<File> {
        let folder = self.path.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(folder)?;
        let mut beside = BufWriter::new(tempfile::NamedTempFile::new_in(folder)?);
        for (path, known) in &table.entries {
            put(&mut beside, &Line::Set(path.clone(), known.clone()))?;
        }
        for path in &table.ignored {
            put(&mut beside, &Line::Ignored(path.clone()))?;
        }
        let beside = beside.into_inner().map_err(io::IntoInnerError::into_error)?;
        fail_point("look.half");
        beside.persist(&self.path).map_err(|e| e.error)?;
        OpenOptions::new().append(true).open(&self.path)
    }

    /// `at` is the moment under which the log tells of it: see [`Self::noted`].
    pub(super) fn set(&mut self, path: &Path, known: Option<&Known>, at: u64) {
        let path = path.to_owned();
        let line = match known {
            Some(known) => Line::Set(path, known.clone()),
            None => Line::Gone(path),
        };
        let mut bytes = Vec::new();
        if put(&mut bytes, &line).is_ok() {
            self.waiting.push((at, bytes));
        }
    }

    pub(super) fn begin(&mut self, turn: EntryId, what: &str) {
        (self.open, self.ended) = (true, false);
        self.add(&Line::Begin { turn, what: what.to_owned() });
    }

    pub(super) fn end(&mut self) {
        (self.open, self.ended) = (false, true);
        self.settle();
    }

    /// What the log tells under this moment is on record, or there was nothing to tell.
    pub(super) fn noted(&mut self, at: u64) {
        let (ready, waiting) =
            std::mem::take(&mut self.waiting).into_iter().partition(|w| w.0 == at);
        self.waiting = waiting;
        let ready: Vec<(u64, Vec<u8>)> = ready;
        let lines: Vec<u8> = ready.into_iter().flat_map(|(_, line)| line).collect();
        self.write(&lines);
        self.settle();
    }

    fn settle(&mut self) {
        if self.ended && self.waiting.is_empty() {
            self.ended = false;
            self.add(&Line::End);
        }
    }

    /// Says again and again that this process lives.
    pub(super) fn heartbeat(&self) -> Option<impl Future<Output = ()> + Send + use<>> {
        let file = self.file.as_ref()?.try_clone().ok()?;
        Some(async move {
            while file.set_modified(SystemTime::now()).is_ok() {
                tokio::time::sleep(BEAT).await;
            }
        })
    }

    fn add(&mut self, line: &Line) {
        let mut bytes = Vec::new();
        if put(&mut bytes, line).is_ok() {
            self.write(&bytes);
        }
    }

    fn write(&mut self, bytes: &[u8]) {
        if self.file.as_mut().is_some_and(|file| file.write_all(bytes).is_err()) {
            self.file = None;
        }
    }

    /// What was known when a command began that never came to its end. The file stays until that is
    /// on record: whoever reads it may be killed too.
    pub(super) fn read(path: &Path) -> Option<Remembered> {
        let text = fs::read(path).ok()?;
        let died = fs::metadata(path).and_then(|data| data.modified()).ok()? + GRACE;
        let mut table = Table::default();
        let mut open = None;
        // A last line that is cut off was never relied on.
        for line in text.split_inclusive(|byte| *byte == b'\n') {
            let Ok(line) = serde_json::from_slice(line) else { break };
            match line {
                Line::Set(path, known) => {
                    table.entries.insert(path, known);
                }
                Line::Gone(path) => {
                    table.entries.remove(&path);
                }
                Line::Ignored(path) => {
                    table.ignored.insert(path);
                }
                Line::Begin { turn, what } => open = Some((turn, what)),
                Line::End => open = None,
            }
        }
        if open.is_none() {
            Self::discard(path);
        }
        open.map(|(turn, what)| Remembered { table, turn, what, died })
    }

    /// Takes the file away, and the copies that it speaks of.
    pub(super) fn discard(path: &Path) {
        // One that stays is only read again in vain.
        fs::remove_file(path).ok();
        fs::remove_file(Copies::path(path)).ok();
    }
}

fn put(to: &mut impl Write, line: &Line) -> io::Result<()> {
    serde_json::to_writer(&mut *to, line)?;
    to.write_all(b"\n")
}
