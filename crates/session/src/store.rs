//! Where sessions live: one folder per project, one file per session, and beside it a folder for
//! what was too large for the log.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use crate::entry::{Entry, Header, MoveReason};
use crate::fold::{Session, title_of};
use crate::id::EntryId;
use crate::line::FORMAT;
use crate::log::{Log, LogError, Notice};
use crate::message::NotFound;
use crate::tending::{expand, header_of};
use crate::tree::Tree;

#[derive(Debug, Clone)]
pub struct Store {
    root: PathBuf,
}

#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("there is no session {0}; `tw sessions --all` lists them")]
    Unknown(String),
    #[error("{given} fits several sessions: {}", found.join(", "))]
    Ambiguous { given: String, found: Vec<String> },
    #[error("there is no session in {0} to continue; start one with `tw run \"…\"`")]
    NoneYet(PathBuf),
    #[error(transparent)]
    NotFound(#[from] NotFound),
    #[error(transparent)]
    Log(#[from] LogError),
}

/// A line of the list of sessions.
#[derive(Debug, Clone)]
pub struct Summary {
    pub id: String,
    pub title: String,
    pub directory: String,
    pub updated: SystemTime,
    pub path: PathBuf,
}

impl Store {
    /// `root` is the folder that holds all sessions; it is made when the first one is.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    pub fn create(&self, directory: &Path, made_by: &str) -> Result<(Log, Session), LogError> {
        let header = header(directory.display().to_string(), made_by);
        self.begin(header)
    }

    /// A session for an agent that works for another. It is not listed beside its parent.
    pub fn create_child(&self, parent: &Header, made_by: &str) -> Result<(Log, Session), LogError> {
        let own = header(parent.directory.clone(), made_by);
        self.begin(Header { parent: Some(parent.session.clone()), ..own })
    }

    /// Opens by id, or by a beginning of one that fits no other.
    pub fn open(&self, id: &str) -> Result<(Log, Session, Vec<Notice>), OpenError> {
        load(&self.find(id)?)
    }

    /// The session of this folder that was used last.
    pub fn open_latest(&self, directory: &Path) -> Result<(Log, Session, Vec<Notice>), OpenError> {
        load(&self.newest(directory)?)
    }

    /// As [`Self::peek`], the one used last in this folder.
    pub fn peek_latest(&self, directory: &Path) -> Result<Session, OpenError> {
        Ok(Log::peek(&self.newest(directory)?, Session::whole)?)
    }

    /// Reads a session that may be in use, without changing it, with all that its branch holds.
    pub fn peek(&self, id: &str) -> Result<Session, OpenError> {
        Ok(Log::peek(&self.find(id)?, Session::whole)?)
    }

    /// As [`Self::peek`], with what a model is sent only.
    pub fn glance(&self, id: &str) -> Result<Session, OpenError> {
        Ok(Log::peek(&self.find(id)?, Session::new)?)
    }

    /// As [`Self::glance`], the one used last in this folder.
    pub fn glance_latest(&self, directory: &Path) -> Result<Session, OpenError> {
        Ok(Log::peek(&self.newest(directory)?, Session::new)?)
    }

    /// The tree of a session that may be in use.
    pub fn tree(&self, id: &str) -> Result<Tree, OpenError> {
        Ok(Tree::of(&self.find(id)?)?)
    }

    /// Copies a session's current branch under a new id; the original is left alone and may be in
    /// use.
    pub fn fork(&self, original: &Session, made_by: &str) -> Result<(Log, Session), OpenError> {
        self.fork_at(original, None, made_by)
    }

    /// As [`Self::fork`], up to an entry that may stand anywhere in the original.
    pub fn fork_at(
        &self,
        original: &Session,
        target: Option<EntryId>,
        made_by: &str,
    ) -> Result<(Log, Session), OpenError> {
        let source = self.find(&original.header.session)?;
        let mut tree = Tree::scan(&source)?;
        if tree.format > FORMAT {
            return Err(LogError::Newer { path: source, found: tree.format }.into());
        }
        let leaf = match target {
            None => tree.leaf(),
            Some(id) => {
                let none = || LogError::NoEntry { path: source.clone(), id };
                tree.find(id).ok_or_else(none)?
            }
        };
        let own = header(original.header.directory.clone(), made_by);
        let forked_from = Some(original.header.session.clone());
        let (log, session) = self.begin(Header { forked_from, ..own })?;
        let path = log.path().to_owned();
        let copied = copy(&mut tree, leaf, log, session);
        if copied.is_err() {
            // Half a copy would be taken for a session.
            fs::remove_file(&path).ok();
        }
        Ok(copied?)
    }

    /// Newest first. With a directory: that project's only.
    pub fn list(&self, directory: Option<&Path>) -> Vec<Summary> {
        let mut found: Vec<Summary> = match directory {
            Some(directory) => {
                session_files(&self.project(directory)).filter_map(|p| summary(&p)).collect()
            }
            None => self.all_files().filter_map(|p| summary(&p)).collect(),
        };
        found.sort_by_key(|s| std::cmp::Reverse(s.updated));
        found
    }

    /// The folder for a session's large outputs, beside its file. Not made here.
    pub fn outputs(log: &Log) -> PathBuf {
        log.path().with_extension("outputs")
    }

    /// The files of the agents that worked for a session, and for those in turn.
    pub fn workers(&self, session: &Header) -> Vec<PathBuf> {
        let folder = self.project(Path::new(&session.directory)).join(CHILDREN);
        let mut files: Vec<(PathBuf, Header)> = session_files(&folder)
            .filter_map(|path| Some((path.clone(), header_of(&path)?)))
            .collect();
        let mut found = Vec::new();
        let mut employers = vec![session.session.clone()];
        while let Some(employer) = employers.pop() {
            let works = |header: &Header| header.parent.as_ref() == Some(&employer);
            for (path, header) in files.extract_if(.., |(_, header)| works(header)) {
                employers.push(header.session);
                found.push(path);
            }
        }
        found
    }

    pub(crate) fn newest(&self, directory: &Path) -> Result<PathBuf, OpenError> {
        let mut files: Vec<PathBuf> = session_files(&self.project(directory)).collect();
        files.sort_by_key(|path| std::cmp::Reverse(modified(path)));
        // One that was cut off before its first line was whole holds nothing to go on with.
        let begun = files.into_iter().find(|path| has_a_line(path));
        begun.ok_or_else(|| OpenError::NoneYet(directory.to_owned()))
    }

    /// The file in which a session is kept.
    pub(crate) fn file_of(&self, header: &Header) -> PathBuf {
        let mut folder = self.project(Path::new(&header.directory));
        if header.parent.is_some() {
            folder.push(CHILDREN);
        }
        folder.join(format!("{}.jsonl", header.session))
    }

    /// Whether some process has the session open.
    pub fn is_in_use(&self, session: &Header) -> bool {
        let file = fs::File::open(self.file_of(session));
        file.is_ok_and(|file| matches!(file.try_lock_shared(), Err(fs::TryLockError::WouldBlock)))
    }

    fn begin(&self, header: Header) -> Result<(Log, Session), LogError> {
        let mut log = Log::create(&self.file_of(&header))?;
        self.close_to_others();
        if let Err(error) = log.append(&Entry::Session(header.clone())) {
            // One without a first line is of no use to anybody.
            fs::remove_file(log.path()).ok();
            return Err(error);
        }
        Ok((log, Session::new(header)))
    }

    /// It may be from before it was made private.
    fn close_to_others(&self) {
        use std::os::unix::fs::PermissionsExt;
        let is_open = fs::metadata(&self.root).is_ok_and(|m| m.permissions().mode() & 0o077 != 0);
        if is_open {
            // Where somebody else owns it, that is their decision.
            fs::set_permissions(&self.root, fs::Permissions::from_mode(0o700)).ok();
        }
    }

    pub(crate) fn find(&self, id: &str) -> Result<PathBuf, OpenError> {
        let named = |path: &PathBuf| id_of(path).to_owned();
        let mut fitting: Vec<PathBuf> =
            self.all_files().filter(|p| !id.is_empty() && id_of(p).starts_with(id)).collect();
        if fitting.is_empty() && !id.is_empty() {
            fitting.extend(self.all_children().filter(|p| id_of(p).starts_with(id)));
        }
        if let Some(exact) = fitting.iter().position(|p| id_of(p) == id) {
            return Ok(fitting.swap_remove(exact));
        }
        match fitting.len() {
            0 => Err(OpenError::Unknown(id.to_owned())),
            1 => Ok(fitting.swap_remove(0)),
            _ => Err(OpenError::Ambiguous {
                given: id.to_owned(),
                found: fitting.iter().take(5).map(named).collect(),
            }),
        }
    }

    /// The files of all sessions, those of agents that worked for others too, in the order in which
    /// the sessions began.
    pub fn files(&self) -> Vec<PathBuf> {
        let mut files: Vec<PathBuf> = self.all_files().chain(self.all_children()).collect();
        // Ids begin with the time.
        files.sort_by(|a, b| id_of(a).cmp(id_of(b)));
        files
    }

    fn all_files(&self) -> impl Iterator<Item = PathBuf> {
        let projects = fs::read_dir(&self.root).into_iter().flatten().flatten();
        projects.flat_map(|project| session_files(&project.path()).collect::<Vec<_>>())
    }

    fn all_children(&self) -> impl Iterator<Item = PathBuf> {
        let projects = fs::read_dir(&self.root).into_iter().flatten().flatten();
        projects.flat_map(|p| session_files(&p.path().join(CHILDREN)).collect::<Vec<_>>())
    }

    /// Readable, and unique by a hash where two paths would read alike.
    pub(crate) fn project(&self, directory: &Path) -> PathBuf {
        const READABLE_CHARS: usize = 80;
        let text = directory.display().to_string();
        let hash = crc32fast::hash(text.as_bytes());
        let readable: String = text
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() || c == '.' { c } else { '-' })
            .collect();
        let tail = readable.trim_matches('-');
        let start = tail.len().saturating_sub(READABLE_CHARS);
        self.root.join(format!("{}-{hash:08x}", &tail[start..]))
    }
}

/// The folder of a project in which sub-agents' sessions are kept.
pub(crate) const CHILDREN: &str = "children";

/// Ids sort by the time at which sessions began, also within one millisecond.
fn new_id() -> ulid::Ulid {
    static IDS: Mutex<Option<ulid::Generator>> = Mutex::new(None);
    let mut ids = IDS.lock().unwrap_or_else(PoisonError::into_inner);
    let next = ids.get_or_insert_with(ulid::Generator::new).generate();
    next.unwrap_or_else(|_| ulid::Ulid::generate())
}

fn header(directory: String, made_by: &str) -> Header {
    let session = format!("ses_{}", new_id().to_string().to_lowercase());
    let made_by = made_by.to_owned();
    Header { session, directory, made_by, forked_from: None, parent: None }
}

/// Writes a branch behind the first line of a new session.
fn copy(
    tree: &mut Tree,
    leaf: usize,
    mut log: Log,
    mut session: Session,
) -> Result<(Log, Session), LogError> {
    let mut written = Ok(());
    tree.read(&tree.branch(leaf)[1..], |entry, _| {
        if written.is_ok() {
            written = log.append(&entry).map(|mark| session.apply(entry, mark));
        }
    })?;
    written?;
    if let Some(note) = tree.left_behind(leaf)? {
        let moved = Entry::Moved { from: None, why: MoveReason::Branched, note: Some(note) };
        let mark = log.append(&moved)?;
        session.apply(moved, mark);
    }
    Ok((log, session))
}

fn load(path: &Path) -> Result<(Log, Session, Vec<Notice>), OpenError> {
    let is_small = path.extension().is_some_and(|extension| extension == "zst");
    let path = if is_small { expand(path)? } else { path.to_owned() };
    Ok(Log::open(&path)?)
}

fn has_a_line(path: &Path) -> bool {
    use std::io::{BufRead, BufReader};
    let is_small = path.extension().is_some_and(|extension| extension == "zst");
    let mut line = Vec::new();
    let read = fs::File::open(path).and_then(|f| BufReader::new(f).read_until(b'\n', &mut line));
    // What cannot be read is for whoever opens it to say.
    is_small || read.is_err() || line.ends_with(b"\n")
}

/// Files of sessions, old ones compressed. Where a crash left both forms, the open one counts.
pub(crate) fn session_files(folder: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|e| e.path()).filter(|path| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        name.ends_with(".jsonl")
            || (name.ends_with(".jsonl.zst") && !path.with_extension("").exists())
    })
}

pub(crate) fn id_of(path: &Path) -> &str {
    let name = path.file_name().and_then(|s| s.to_str()).unwrap_or_default();
    name.split_once('.').map_or(name, |(id, _)| id)
}

fn modified(path: &Path) -> SystemTime {
    fs::metadata(path).and_then(|m| m.modified()).unwrap_or(SystemTime::UNIX_EPOCH)
}

/// Reads the beginning of a file only: the header and the first prompt stand there.
fn summary(path: &Path) -> Option<Summary> {
    use std::io::{BufRead, BufReader, Read};
    #[derive(serde::Deserialize)]
    struct Line {
        #[serde(flatten)]
        entry: Entry,
    }
    let file = fs::File::open(path).ok()?;
    let is_small = path.extension().is_some_and(|extension| extension == "zst");
    let reader: Box<dyn Read> =
        if is_small { Box::new(zstd::Decoder::new(file).ok()?) } else { Box::new(file) };
    let mut lines = BufReader::new(reader).split(b'\n').map_while(Result::ok);
    let mut next = || serde_json::from_slice::<Line>(&lines.next()?).ok().map(|l| l.entry);
    let Some(Entry::Session(header)) = next() else { return None };
    let prompt = (0..4).find_map(|_| match next()? {
        Entry::Prompt { content, .. } => Some(title_of(&content)),
        _ => None,
    });
    let title = prompt.unwrap_or_else(|| "(empty session)".to_owned());
    Some(Summary {
        id: header.session,
        title,
        directory: header.directory,
        updated: modified(path),
        path: path.to_owned(),
    })
}
