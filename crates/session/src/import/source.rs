//! Where other programs keep their sessions: a file, a file with those of its agents beside it, a folder
//! of small files, or a database.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;

use super::build::text;
use super::database::Database;
use super::stored::{Stored, id_of};
use super::{Foreign, ImportError, opencode, read_with};

/// Folders within folders that are looked through.
const DEPTH_CAP: usize = 8;

/// What is read of a file to learn whose it is. The first line of an agent is what it was asked, images
/// and all.
const FIRST_LINE_CAP_BYTES: u64 = 16 << 20;

/// One session that could be imported.
pub struct Source {
    /// What people know it by.
    pub name: PathBuf,
    kind: Kind,
}

enum Kind {
    File { workers: Vec<PathBuf> },
    Stored(Arc<Stored>),
    Row { database: Arc<Database>, session: String },
    Unreadable(ImportError),
}

impl Source {
    /// What is to be found at a path. A folder may hold anything; what is no session is passed over when
    /// it is read.
    pub fn find(path: &Path) -> Result<Vec<Self>, ImportError> {
        if !path.is_dir() {
            return match is_database(path) {
                true => rows(path),
                false => Ok(vec![Self::file(path)]),
            };
        }
        let mut found = Vec::new();
        for name in entries(path).into_iter().filter(|file| is_named_database(file)) {
            match rows(&name) {
                Ok(rows) => found.extend(rows),
                Err(ImportError::Unknown) => {}
                Err(error) => found.push(Self { name, kind: Kind::Unreadable(error) }),
            }
        }
        // A later version takes over the sessions of an earlier one, and leaves those where they were.
        let mut known: HashSet<String> = found.iter().filter_map(row_of).collect();
        let inner =
            entries(&path.join("project")).into_iter().map(|project| project.join("storage"));
        for root in [path.to_owned(), path.join("storage")].into_iter().chain(inner) {
            let Some((stored, own)) = Stored::open(&root) else { continue };
            let stored = Arc::new(stored);
            let new = own.into_iter().filter(|file| known.insert(id_of(file).to_owned()));
            found.extend(new.map(|name| Self { name, kind: Kind::Stored(Arc::clone(&stored)) }));
        }
        if !found.is_empty() {
            return Ok(found);
        }
        let mut files = Vec::new();
        walk(path, DEPTH_CAP, &mut files);
        files.sort();
        Ok(grouped(files))
    }

    fn file(path: &Path) -> Self {
        // A name alone is in the folder where we are.
        let named = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = named.unwrap_or(Path::new("."));
        let own = id_of(path);
        let works = |file: &PathBuf| {
            is_agents(file) && id_of(file) != own && employer(file).as_deref() == Some(own)
        };
        let beside = entries(folder).into_iter().chain(entries(&agents_of(path)));
        let workers = beside.filter(works).collect();
        Self { name: path.to_owned(), kind: Kind::File { workers } }
    }

    pub fn read(self) -> Result<Foreign, ImportError> {
        match self.kind {
            Kind::File { workers } => {
                let bytes = match self.name.to_str() {
                    Some("-") => {
                        let mut bytes = Vec::new();
                        io::stdin().lock().read_to_end(&mut bytes).map(|_| bytes)
                    }
                    _ => fs::read(&self.name),
                }?;
                // One that is gone by now is missing, and no more.
                let workers: Vec<Vec<u8>> = workers.iter().flat_map(fs::read).collect();
                read_with(&bytes, &workers)
            }
            Kind::Stored(stored) => opencode::read(&stored.form(&self.name, DEPTH_CAP)?),
            Kind::Row { database, session } => opencode::read(&database.form(&session, DEPTH_CAP)?),
            Kind::Unreadable(error) => Err(error),
        }
    }
}

pub(super) fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

fn walk(folder: &Path, depth: usize, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let Ok(kind) = entry.file_type() else { continue };
        let named = path.extension().is_some_and(|x| x == "json" || x == "jsonl");
        // Links are not followed.
        if kind.is_dir() && depth > 0 {
            walk(&path, depth - 1, files);
        } else if kind.is_file() && named {
            files.push(path);
        }
    }
}

/// Files of agents go with the session that they worked for, where that is here too.
fn grouped(files: Vec<PathBuf>) -> Vec<Source> {
    let (agents, others): (Vec<PathBuf>, Vec<PathBuf>) =
        files.into_iter().partition(|file| is_agents(file));
    let mut of: HashMap<PathBuf, Vec<PathBuf>> = HashMap::new();
    let mut alone = Vec::new();
    let others = rollouts(others, &mut of);
    for file in agents {
        let session = employer(&file).map(|id| format!("{id}.jsonl"));
        let above = file.ancestors().skip(1).take(3);
        let mut homes = above.filter_map(|folder| Some(folder.join(session.as_ref()?)));
        match homes.find(|home| others.contains(home)) {
            Some(home) => of.entry(home).or_default().push(file),
            None => alone.push(file),
        }
    }
    let with = |name: PathBuf| {
        let workers = of.remove(&name).unwrap_or_default();
        Source { name, kind: Kind::File { workers } }
    };
    others.into_iter().chain(alone).map(with).collect()
}

/// Codex keeps them all side by side, and each says who gave it its work.
fn rollouts(files: Vec<PathBuf>, of: &mut HashMap<PathBuf, Vec<PathBuf>>) -> Vec<PathBuf> {
    let mut employers: HashMap<PathBuf, String> = HashMap::new();
    let mut places: HashMap<String, PathBuf> = HashMap::new();
    for file in &files {
        let name = file.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if !name.starts_with("rollout-") {
            continue;
        }
        let Some(line) = first_line(file) else { continue };
        let meta = &line["payload"];
        places.insert(text(&meta["id"]).to_owned(), file.clone());
        let parent = &meta["source"]["subagent"]["thread_spawn"]["parent_thread_id"];
        if let Some(parent) = parent.as_str().or(meta["parent_thread_id"].as_str()) {
            employers.insert(file.clone(), parent.to_owned());
        }
    }
    let mut own = Vec::new();
    for file in files {
        // Work that was given on belongs to whoever gave it first.
        let mut home = &file;
        for _ in 0..DEPTH_CAP {
            let above = employers.get(home).and_then(|id| places.get(id));
            home = above.unwrap_or(home);
        }
        if *home == file {
            own.push(file);
        } else {
            of.entry(home.clone()).or_default().push(file);
        }
    }
    own
}

/// Where Claude Code keeps what agents did for a session.
fn agents_of(session: &Path) -> PathBuf {
    session.with_extension("").join("subagents")
}

fn is_agents(file: &Path) -> bool {
    let name = file.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    name.starts_with("agent-") && name.ends_with(".jsonl")
}

/// The session that an agent's file says it belongs to.
fn employer(file: &Path) -> Option<String> {
    first_line(file)?["sessionId"].as_str().map(str::to_owned)
}

fn first_line(file: &Path) -> Option<Value> {
    let mut first = Vec::new();
    let capped = File::open(file).ok()?.take(FIRST_LINE_CAP_BYTES);
    BufReader::new(capped).read_until(b'\n', &mut first).ok()?;
    serde_json::from_slice(&first).ok()
}

fn is_named_database(file: &Path) -> bool {
    let name = file.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    name.starts_with("opencode") && name.ends_with(".db") && is_database(file)
}

fn is_database(file: &Path) -> bool {
    const MAGIC: &[u8; 16] = b"SQLite format 3\0";
    let mut head = [0; 16];
    let read = fs::metadata(file).is_ok_and(|data| data.is_file())
        && File::open(file).and_then(|mut file| file.read_exact(&mut head)).is_ok();
    read && head == *MAGIC
}

fn row_of(source: &Source) -> Option<String> {
    match &source.kind {
        Kind::Row { session, .. } => Some(session.clone()),
        Kind::File { .. } | Kind::Stored(_) | Kind::Unreadable(_) => None,
    }
}

fn rows(path: &Path) -> Result<Vec<Source>, ImportError> {
    let database = Arc::new(Database::open(path)?);
    let row = |session: String| Source {
        name: path.join(&session),
        kind: Kind::Row { database: Arc::clone(&database), session },
    };
    Ok(database.sessions()?.into_iter().map(row).collect())
}
