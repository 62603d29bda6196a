//! One append-only file of JSON lines. Each line has an id, its parent's id, a time and a checksum;
//! it is in the file before anyone is told of it.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use crate::entry::{Entry, Header, MoveReason};
use crate::fail::{fail_point, synced};
use crate::fold::Session;
use crate::held::{PRIVATE_FILE, private_folder};
use crate::id::{EntryId, Mark, now};
use crate::line::{self, FORMAT};
use crate::lock::lock;
use crate::tree::Tree;

#[derive(Debug, thiserror::Error)]
pub enum LogError {
    #[error("cannot write the session file {path}: {source}")]
    Write { path: PathBuf, source: io::Error },
    #[error("cannot read the session file {path}: {source}")]
    Read { path: PathBuf, source: io::Error },
    #[error("the session file {path} is in use by another process{}", number(owner))]
    Locked { path: PathBuf, owner: Option<u32> },
    #[error(
        "the session file {path} was written by a newer version (format {found}, known: {FORMAT})"
    )]
    Newer { path: PathBuf, found: u32 },
    #[error("{path} is no session file: its first line is not a session header")]
    NoHeader { path: PathBuf },
    #[error("the session file {path} holds no entry {id}")]
    NoEntry { path: PathBuf, id: EntryId },
    #[error("this conversation is kept in no file: there is nothing to go back to")]
    NotKept,
}

fn number(owner: &Option<u32>) -> String {
    owner.map(|pid| format!(" ({pid})")).unwrap_or_default()
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
    leaf: Option<EntryId>,
    ids: ulid::Generator,
    /// Its name is not on the disk for certain.
    is_new: bool,
}

/// See [`Log::sync_handle`].
#[derive(Debug)]
pub struct SyncHandle {
    file: File,
    path: PathBuf,
    length: u64,
    /// Of a new file, its name has to survive too.
    folder: Option<PathBuf>,
}

impl SyncHandle {
    pub fn sync(&self) -> io::Result<()> {
        self.file.sync_data()?;
        if let Some(folder) = &self.folder {
            // A file system that cannot sync folders keeps names in its own way.
            File::open(folder).and_then(|folder| folder.sync_all()).ok();
        }
        synced(&self.path, self.length);
        Ok(())
    }
}

impl Log {
    /// Makes a new file and locks it. The file must not exist.
    pub(crate) fn create(path: &Path) -> Result<Self, LogError> {
        let failed = |source| LogError::Write { path: path.to_owned(), source };
        if let Some(folder) = path.parent() {
            private_folder(folder).map_err(failed)?;
        }
        let mut how = OpenOptions::new();
        let how = how.append(true).create_new(true).mode(PRIVATE_FILE);
        let file = how.open(path).map_err(failed)?;
        lock(&file, path)?;
        fail_point("log.created");
        Ok(Self { is_new: true, ..Self::over(file, path, 0) })
    }

    /// Opens a file, locks it, and gives the session that its current branch folds to. A torn tail is
    /// cut off.
    pub(crate) fn open(path: &Path) -> Result<(Self, Session, Vec<Notice>), LogError> {
        let failed = |source| LogError::Read { path: path.to_owned(), source };
        let file = OpenOptions::new().read(true).append(true).open(path).map_err(failed)?;
        lock(&file, path)?;
        let tree = Tree::scan(path)?;
        if tree.format > FORMAT {
            return Err(LogError::Newer { path: path.to_owned(), found: tree.format });
        }
        let session = tree.fold(tree.leaf(), Session::new)?;
        let length = file.metadata().map_err(failed)?.len();
        let mut log = Self::over(file, path, tree.whole);
        log.leaf = tree.id(tree.leaf());
        let mut notices = tree.notices;
        if tree.whole < length {
            notices.push(log.cut_tail()?);
        }
        Ok((log, session, notices))
    }

    /// Reads a file without locking or changing it. One of a newer version is read as far as it is
    /// understood.
    pub(crate) fn peek(path: &Path, new: fn(Header) -> Session) -> Result<Session, LogError> {
        let tree = Tree::scan(path)?;
        let mut session = tree.fold(tree.leaf(), new)?;
        session.newer_format = Some(tree.format).filter(|format| *format > FORMAT);
        Ok(session)
    }

    fn over(file: File, path: &Path, length: u64) -> Self {
        let ids = ulid::Generator::new();
        Self { file, path: path.to_owned(), length, leaf: None, ids, is_new: false }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The entry that the next one continues.
    pub fn leaf(&self) -> Option<EntryId> {
        self.leaf
    }

    /// Puts one entry behind the others. After an error the file is as it was before.
    pub fn append(&mut self, entry: &Entry) -> Result<Mark, LogError> {
        self.append_to(self.leaf, entry)
    }

    /// Goes on behind `target`, which may stand anywhere in the file. What was the end until now is
    /// left behind; its last entry is in the record. Gives the session as it is there.
    ///
    /// Files stay as they are: where they were changed on the way that is left, the model is told so
    /// with the next prompt, unless the move is part of an undo, which looks after files itself.
    pub fn move_to(&mut self, target: EntryId, why: MoveReason) -> Result<Session, LogError> {
        let mut tree = Tree::scan(&self.path)?;
        let none = || LogError::NoEntry { path: self.path.clone(), id: target };
        let place = tree.find(target).ok_or_else(none)?;
        let mut session = tree.fold(place, Session::new)?;
        let note = match why {
            MoveReason::Branched | MoveReason::Switched => tree.left_behind(place)?,
            MoveReason::Undone | MoveReason::Redone | MoveReason::Other => None,
        };
        let moved = Entry::Moved { from: self.leaf, why, note };
        let mark = self.append_to(Some(target), &moved)?;
        session.apply(moved, mark);
        Ok(session)
    }

    /// Says when the session was used last, where that is not now.
    pub(crate) fn set_used(&self, time: std::time::SystemTime) -> Result<(), LogError> {
        let failed = |source| LogError::Write { path: self.path.clone(), source };
        self.file.set_modified(time).map_err(failed)
    }

    /// As [`Self::append`], for something that happened at another time (milliseconds since 1970).
    pub(crate) fn append_at(&mut self, entry: &Entry, time: u64) -> Result<Mark, LogError> {
        self.append_with(self.leaf, entry, time)
    }

    fn append_to(&mut self, parent: Option<EntryId>, entry: &Entry) -> Result<Mark, LogError> {
        self.append_with(parent, entry, now())
    }

    fn append_with(
        &mut self,
        parent: Option<EntryId>,
        entry: &Entry,
        time: u64,
    ) -> Result<Mark, LogError> {
        // The generator only fails after 2^80 ids in one millisecond; a fresh one serves as well.
        let id = self.ids.generate().unwrap_or_else(|_| ulid::Ulid::generate());
        let mark = Mark { id: EntryId::new(id), parent, time };
        fail_point("append.before");
        match line::write(&self.file, &mark, entry) {
            Ok(length) => {
                fail_point("append.after");
                self.length += length;
                self.leaf = Some(mark.id);
                Ok(mark)
            }
            Err(source) => {
                // A half-written line must not stand in front of the next one. If even this fails, the
                // next open cuts it off.
                self.file.set_len(self.length).ok();
                Err(LogError::Write { path: self.path.clone(), source })
            }
        }
    }

    /// What makes everything appended so far survive a power cut. It may be used on another thread.
    pub fn sync_handle(&mut self) -> Result<SyncHandle, LogError> {
        let failed = |source| LogError::Write { path: self.path.clone(), source };
        let file = self.file.try_clone().map_err(failed)?;
        let folder = std::mem::take(&mut self.is_new).then(|| self.path.parent()).flatten();
        let (path, folder) = (self.path.clone(), folder.map(Path::to_owned));
        Ok(SyncHandle { file, path, length: self.length, folder })
    }

    #[cfg(test)]
    pub(crate) fn break_for_test(&mut self) {
        self.file = File::open(&self.path).unwrap();
    }

    fn cut_tail(&mut self) -> Result<Notice, LogError> {
        let failed = |source| LogError::Write { path: self.path.clone(), source };
        let mut tail = Vec::new();
        self.file.seek(SeekFrom::Start(self.length)).map_err(failed)?;
        self.file.read_to_end(&mut tail).map_err(failed)?;
        let kept_in = self.path.with_extension(format!("jsonl.torn-{}", self.length));
        let mut how = OpenOptions::new();
        let how = how.write(true).create(true).truncate(true).mode(PRIVATE_FILE);
        how.open(&kept_in).and_then(|mut file| file.write_all(&tail)).map_err(failed)?;
        self.file.set_len(self.length).map_err(failed)?;
        self.file.seek(SeekFrom::End(0)).map_err(failed)?;
        Ok(Notice::TornTail { bytes: tail.len(), kept_in })
    }
}
