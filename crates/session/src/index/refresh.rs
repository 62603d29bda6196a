//! Bringing the index to where the files are. Only what changed is read, and of a file that grew only
//! what is new.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::UNIX_EPOCH;

use rusqlite::{Connection, Result, Transaction, TransactionBehavior, named_params, params};
use toolwright_llm::Usage;

use super::read::{Found, Row, read_all, read_on};
use crate::fail::fail_point;
use crate::store::{Store, id_of};

/// Files between two commits: others may write in between, and what is done stays done.
const BATCH: usize = 64;

/// How a file looked when it was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Look {
    size: i64,
    /// Nanoseconds since 1970.
    modified: i64,
}

struct Known {
    path: String,
    look: Look,
}

/// `stop` ends it between two files.
pub(super) fn refresh(connection: &mut Connection, store: &Store, stop: &AtomicBool) -> Result<()> {
    let known = known(connection)?;
    let files = store.files();
    let there: HashSet<&str> = files.iter().map(|path| id_of(path)).collect();
    let gone: Vec<&String> = known.keys().filter(|id| !there.contains(id.as_str())).collect();
    let changed: Vec<(&PathBuf, Look)> = files
        .iter()
        .filter_map(|path| Some((path, look(path)?)))
        .filter(|(path, look)| {
            let known = known.get(id_of(path));
            known
                .is_none_or(|known| known.look != *look || Path::new(&known.path) != path.as_path())
        })
        .collect();
    if !gone.is_empty() {
        let change = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        gone.into_iter().try_for_each(|id| forget(&change, id))?;
        change.commit()?;
    }
    for batch in changed.chunks(BATCH) {
        let change = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        for (path, look) in batch {
            if stop.load(Ordering::Relaxed) {
                break;
            }
            update(&change, path, *look)?;
            fail_point("index.half");
        }
        change.commit()?;
        fail_point("index.done");
    }
    Ok(())
}

fn known(connection: &Connection) -> Result<HashMap<String, Known>> {
    let mut select = connection.prepare("SELECT id, path, size, modified FROM sessions")?;
    let rows = select.query_map([], |row| {
        let look = Look { size: row.get(2)?, modified: row.get(3)? };
        Ok((row.get(0)?, Known { path: row.get(1)?, look }))
    })?;
    rows.collect()
}

fn look(path: &Path) -> Option<Look> {
    let data = fs::metadata(path).ok()?;
    let modified = data.modified().ok()?.duration_since(UNIX_EPOCH).unwrap_or_default();
    let clamp = |n: u128| i64::try_from(n).unwrap_or(i64::MAX);
    Some(Look { size: clamp(data.len().into()), modified: clamp(modified.as_nanos()) })
}

/// A file that cannot be read is as good as none, until it changes.
fn update(change: &Transaction<'_>, path: &Path, look: Look) -> Result<()> {
    let id = id_of(path);
    // As it is now: another process may have read it meanwhile.
    let before = row_of(change, id)?;
    let grown = before.and_then(|(at, row)| {
        let same = Path::new(&at) == path && path.extension().is_some_and(|x| x == "jsonl");
        // One that did not grow was written over.
        let grew = look.size > row.size;
        let bytes = (same && grew).then(|| rest_of(path, &row))??;
        read_on(row, &bytes)
    });
    if let Some(found) = grown {
        return add(change, id, path, look, &found);
    }
    forget(change, id)?;
    match read_all(path) {
        Ok(found) => add(change, id, path, look, &found),
        Err(_) => Ok(()),
    }
}

/// What stands behind the part that was read, if that is as it was.
fn rest_of(path: &Path, row: &Row) -> Option<Vec<u8>> {
    let mut file = File::open(path).ok()?;
    // The line break as well.
    let seam = row.seam.len() as u64 + 1;
    file.seek(SeekFrom::Start(row.read_to.checked_sub(seam)?)).ok()?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).ok()?;
    let rest = bytes.strip_prefix(row.seam.as_bytes())?.strip_prefix(b"\n")?;
    Some(rest.to_vec())
}

pub(super) fn forget(change: &Connection, id: &str) -> Result<()> {
    change.execute(
        "DELETE FROM texts WHERE rowid IN (SELECT rowid FROM pieces WHERE session = ?1)",
        [id],
    )?;
    for table in ["pieces", "spent"] {
        change.execute(&format!("DELETE FROM {table} WHERE session = ?1"), [id])?;
    }
    change.execute("DELETE FROM sessions WHERE id = ?1", [id])?;
    Ok(())
}

fn row_of(change: &Connection, id: &str) -> Result<Option<(String, Row)>> {
    let mut select = change.prepare("SELECT * FROM sessions WHERE id = ?1")?;
    let mut rows = select.query([id])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    let number = |name: &str| row.get::<_, i64>(name).map(i64::cast_unsigned);
    let state = Row {
        read_to: number("read_to")?,
        size: row.get("size")?,
        last_line: row.get("last_line")?,
        seam: row.get("seam")?,
        last_model: row.get("last_model")?,
        directory: row.get("directory")?,
        parent: row.get("parent")?,
        forked_from: row.get("forked_from")?,
        source: row.get("source")?,
        given_title: row.get("given_title")?,
        prompt_title: row.get("prompt_title")?,
        created: number("created")?,
        updated: number("updated")?,
        messages: number("messages")?,
        usage: Usage {
            input: number("input")?,
            output: number("output")?,
            reasoning: number("reasoning")?,
            cache_read: number("cache_read")?,
            cache_write: number("cache_write")?,
        },
        cost: row.get("cost")?,
        archived: row.get("archived")?,
    };
    Ok(Some((row.get("path")?, state)))
}

fn add(change: &Connection, id: &str, path: &Path, look: Look, found: &Found) -> Result<()> {
    let row = &found.row;
    let path = path.to_string_lossy();
    change.execute(
        "INSERT OR REPLACE INTO sessions VALUES (:id, :path, :size, :modified, :read_to, :last_line, :seam,
         :last_model, :directory, :parent, :forked_from, :source, :given_title, :prompt_title, :created,
         :updated, :messages, :input, :output, :reasoning, :cache_read, :cache_write, :cost, :archived)",
        named_params! {
            ":id": id, ":path": path, ":size": look.size, ":modified": look.modified,
            ":read_to": row.read_to.cast_signed(), ":last_line": row.last_line, ":seam": row.seam,
            ":last_model": row.last_model, ":directory": row.directory, ":parent": row.parent,
            ":forked_from": row.forked_from, ":source": row.source,
            ":given_title": row.given_title, ":prompt_title": row.prompt_title,
            ":created": row.created.cast_signed(), ":updated": row.updated.cast_signed(),
            ":messages": row.messages.cast_signed(),
            ":input": row.usage.input.cast_signed(), ":output": row.usage.output.cast_signed(),
            ":reasoning": row.usage.reasoning.cast_signed(),
            ":cache_read": row.usage.cache_read.cast_signed(),
            ":cache_write": row.usage.cache_write.cast_signed(),
            ":cost": row.cost, ":archived": row.archived,
        },
    )?;
    add_spent(change, id, found)?;
    let mut piece =
        change.prepare("INSERT INTO pieces (session, kind, time) VALUES (?1, ?2, ?3)")?;
    let mut text = change.prepare("INSERT INTO texts (rowid, body) VALUES (?1, ?2)")?;
    for found in &found.pieces {
        piece.execute(params![id, found.kind, found.time.cast_signed()])?;
        text.execute(params![change.last_insert_rowid(), found.body])?;
    }
    Ok(())
}

fn add_spent(change: &Connection, id: &str, found: &Found) -> Result<()> {
    let next: i64 = change.query_row(
        "SELECT coalesce(max(number) + 1, 0) FROM spent WHERE session = ?1",
        [id],
        |row| row.get(0),
    )?;
    let mut insert = change.prepare(
        "INSERT INTO spent VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)",
    )?;
    for (number, spent) in (next..).zip(&found.spent) {
        insert.execute(params![
            id,
            number,
            spent.time.cast_signed(),
            spent.kind as i64,
            spent.print,
            spent.name,
            spent.failed,
            spent.usage.input.cast_signed(),
            spent.usage.output.cast_signed(),
            spent.usage.reasoning.cast_signed(),
            spent.usage.cache_read.cast_signed(),
            spent.usage.cache_write.cast_signed(),
            spent.cost,
        ])?;
    }
    Ok(())
}
