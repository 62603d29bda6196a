//! The tables. A change of their meaning raises [`VERSION`]: an index of another version is thrown
//! away and made again.

use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, Result};

use crate::held::PRIVATE_FILE;

const VERSION: i64 = 1;

/// How long another process may hold the index before we do without what it writes.
const PATIENCE: Duration = Duration::from_secs(2);

const TABLES: &str = "
CREATE TABLE sessions (
    id TEXT PRIMARY KEY,
    path TEXT NOT NULL,
    size INTEGER NOT NULL,
    modified INTEGER NOT NULL,
    read_to INTEGER NOT NULL,
    last_line TEXT NOT NULL,
    seam TEXT NOT NULL,
    last_model TEXT NOT NULL,
    directory TEXT NOT NULL,
    parent TEXT,
    forked_from TEXT,
    source TEXT,
    given_title TEXT,
    prompt_title TEXT,
    created INTEGER NOT NULL,
    updated INTEGER NOT NULL,
    messages INTEGER NOT NULL,
    input INTEGER NOT NULL,
    output INTEGER NOT NULL,
    reasoning INTEGER NOT NULL,
    cache_read INTEGER NOT NULL,
    cache_write INTEGER NOT NULL,
    cost REAL NOT NULL,
    archived INTEGER NOT NULL
) STRICT;
CREATE INDEX sessions_by_folder ON sessions (directory, updated);

CREATE TABLE spent (
    session TEXT NOT NULL,
    number INTEGER NOT NULL,
    time INTEGER NOT NULL,
    kind INTEGER NOT NULL,
    print INTEGER NOT NULL,
    name TEXT NOT NULL,
    failed INTEGER NOT NULL,
    input INTEGER NOT NULL,
    output INTEGER NOT NULL,
    reasoning INTEGER NOT NULL,
    cache_read INTEGER NOT NULL,
    cache_write INTEGER NOT NULL,
    cost REAL,
    PRIMARY KEY (session, number)
) STRICT, WITHOUT ROWID;

CREATE TABLE pieces (
    rowid INTEGER PRIMARY KEY,
    session TEXT NOT NULL,
    kind TEXT NOT NULL,
    time INTEGER NOT NULL
) STRICT;
CREATE INDEX pieces_by_session ON pieces (session);
CREATE VIRTUAL TABLE texts USING fts5(body, tokenize = 'unicode61 remove_diacritics 2');
";

/// Opens the file, or a place in memory, with the tables in it. An index of another version is emptied.
pub(super) fn connect(path: Option<&Path>) -> Result<Connection> {
    let mut connection = match path {
        Some(path) => {
            // What was said is in it: for nobody but its owner. SQLite tells what is wrong with it.
            let mut how = OpenOptions::new();
            how.append(true).create(true).mode(PRIVATE_FILE).open(path).ok();
            Connection::open(path)?
        }
        None => Connection::open_in_memory()?,
    };
    connection.busy_timeout(PATIENCE)?;
    // It can be made again: what a power cut takes is no loss.
    connection.execute_batch(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF; PRAGMA temp_store = MEMORY;",
    )?;
    if version(&connection)? != VERSION {
        let change =
            connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
        // Another process may have been quicker.
        if version(&change)? != VERSION {
            for table in ["texts", "pieces", "spent", "sessions"] {
                change.execute_batch(&format!("DROP TABLE IF EXISTS {table};"))?;
            }
            change.execute_batch(TABLES)?;
            change.pragma_update(None, "user_version", VERSION)?;
        }
        change.commit()?;
    }
    Ok(connection)
}

fn version(connection: &Connection) -> Result<i64> {
    connection.query_row("PRAGMA user_version", [], |row| row.get(0))
}
