//! What is known about the workspace, on disk while commands run: should the process be killed, the next
//! one can still tell what the command had changed. The file is a cache of one moment; it is written
//! anew by each process that looks at the workspace.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

use super::known::{Known, Table};
use super::state::raw_path;
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
}

/// Of no use any more, unless a command is left alone.
impl Drop for Memory {
    fn drop(&mut self) {
        if !self.open {
            fs::remove_file(&self.path).ok();
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
        Self { path, file: None, open: false }
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
        beside.persist(&self.path).map_err(|e| e.error)?;
        OpenOptions::new().append(true).open(&self.path)
    }

    pub(super) fn set(&mut self, path: &Path, known: Option<&Known>) {
        let path = path.to_owned();
        self.add(&match known {
            Some(known) => Line::Set(path, known.clone()),
            None => Line::Gone(path),
        });
    }

    pub(super) fn begin(&mut self, turn: EntryId, what: &str) {
        self.open = true;
        self.add(&Line::Begin { turn, what: what.to_owned() });
    }

    pub(super) fn end(&mut self) {
        self.open = false;
        self.add(&Line::End);
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
        if put(&mut bytes, line).is_ok()
            && self.file.as_mut().is_some_and(|file| file.write_all(&bytes).is_err())
        {
            self.file = None;
        }
    }

    /// What was known when a command began that never came to its end. The file is taken away.
    pub(super) fn take(path: &Path) -> Option<Remembered> {
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
        // One that stays is only read again in vain.
        fs::remove_file(path).ok();
        open.map(|(turn, what)| Remembered { table, turn, what, died })
    }
}

fn put(to: &mut impl Write, line: &Line) -> io::Result<()> {
    serde_json::to_writer(&mut *to, line)?;
    to.write_all(b"\n")
}
