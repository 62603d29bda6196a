//! A list of all sessions that can be searched and added up. It is a cache: the files are the truth, and
//! whatever is wrong with it (gone, damaged, another version, in use) is answered by making it again, in
//! memory if need be. Nothing here is on the way of a run.

mod query;
mod read;
mod refresh;
mod schema;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use rusqlite::Connection;

pub use query::{Counted, FOUND_END, FOUND_START, Listed, Wanted};
pub use read::SpentKind;

use crate::store::Store;

#[derive(Debug, thiserror::Error)]
#[error("cannot read the index of sessions: {0}")]
pub struct IndexError(#[from] rusqlite::Error);

pub struct Index {
    connection: Connection,
    store: Store,
}

impl Index {
    /// The index of a store, brought to where the files are.
    pub fn open(store: &Store) -> Result<Self, IndexError> {
        Self::open_until(store, &AtomicBool::new(false))
    }

    /// As [`Self::open`]; `stop` ends the reading of files early.
    pub fn open_until(store: &Store, stop: &AtomicBool) -> Result<Self, IndexError> {
        let path = store.index_file();
        // No sessions, no file.
        let path = store.root().is_dir().then_some(path);
        let kept = path.as_deref().and_then(|path| open_file(path, store, stop));
        let connection = match kept {
            Some(connection) => connection,
            None => in_memory(store, stop)?,
        };
        Ok(Self { connection, store: store.clone() })
    }

    /// Throws the old index away and reads all files.
    pub fn rebuild(store: &Store) -> Result<Self, IndexError> {
        remove(&store.index_file());
        Self::open(store)
    }

    pub fn list(&mut self, wanted: &Wanted) -> Result<Vec<Listed>, IndexError> {
        self.ask(|connection| query::list(connection, wanted))
    }

    /// How many sessions there are, those of agents that worked for others too.
    pub fn count(&mut self) -> Result<u64, IndexError> {
        self.ask(|c| c.query_row("SELECT count(*) FROM sessions", [], |row| row.get::<_, i64>(0)))
            .map(i64::cast_unsigned)
    }

    /// The session that was imported from this program, where it had this id.
    pub fn imported(&mut self, from: &str, id: &str) -> Result<Option<String>, IndexError> {
        let source = format!("{from}:{id}");
        self.ask(|connection| query::imported(connection, &source))
    }

    /// Everything that counts, session by session.
    pub fn spending(&mut self) -> Result<Vec<Counted>, IndexError> {
        self.ask(|connection| {
            let mut all = Vec::new();
            query::spending(connection, &mut |counted| all.push(counted))?;
            Ok(all)
        })
    }

    /// What cannot be read is made again, once.
    fn ask<T>(
        &mut self,
        question: impl Fn(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, IndexError> {
        match question(&self.connection) {
            Ok(answer) => Ok(answer),
            Err(_) => {
                self.connection = in_memory(&self.store, &AtomicBool::new(false))?;
                remove(&self.store.index_file());
                Ok(question(&self.connection)?)
            }
        }
    }
}

impl Store {
    pub(crate) fn index_file(&self) -> PathBuf {
        self.root().join("index.sqlite")
    }
}

/// The file, made again once if it is of no use. Nothing if it is of none even then.
fn open_file(path: &Path, store: &Store, stop: &AtomicBool) -> Option<Connection> {
    let attempt = || {
        let mut connection = schema::connect(Some(path))?;
        refresh::refresh(&mut connection, store, stop)?;
        Ok(connection)
    };
    match attempt() {
        Ok(connection) => Some(connection),
        // Somebody else writes: what is broken is not the file.
        Err(error) if is_busy(&error) => None,
        Err(_) => {
            remove(path);
            attempt().ok()
        }
    }
}

fn in_memory(store: &Store, stop: &AtomicBool) -> rusqlite::Result<Connection> {
    let mut connection = schema::connect(None)?;
    refresh::refresh(&mut connection, store, stop)?;
    Ok(connection)
}

fn is_busy(error: &rusqlite::Error) -> bool {
    use rusqlite::ErrorCode::{DatabaseBusy, DatabaseLocked};
    matches!(error.sqlite_error_code(), Some(DatabaseBusy | DatabaseLocked))
}

/// With what SQLite keeps beside it. What is not there need not go.
fn remove(path: &Path) {
    for end in ["", "-wal", "-shm"] {
        let mut name = path.as_os_str().to_owned();
        name.push(end);
        std::fs::remove_file(PathBuf::from(name)).ok();
    }
}
