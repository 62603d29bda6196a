//! OpenCode's database. It is only looked at.

use std::path::Path;
use std::sync::{Mutex, PoisonError};

use rusqlite::{Connection, OpenFlags, Row, params};
use serde_json::{Map, Value, json};

use super::ImportError;

pub(super) struct Database(Mutex<Connection>);

impl Database {
    pub(super) fn open(path: &Path) -> Result<Self, ImportError> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(path, flags)?;
        let tables = "select count(*) from sqlite_master where type = 'table' and name in ('session', 'message', 'part')";
        let found: i64 = connection.query_row(tables, [], |row| row.get(0))?;
        if found < 3 {
            return Err(ImportError::Unknown);
        }
        Ok(Self(Mutex::new(connection)))
    }

    /// The sessions of people, the oldest first. Those of agents come with them.
    pub(super) fn sessions(&self) -> Result<Vec<String>, ImportError> {
        let query =
            "select id from session where coalesce(parent_id, '') = ?1 order by time_created, id";
        self.strings(query, "")
    }

    /// As OpenCode would export it.
    pub(super) fn form(&self, session: &str, depth: usize) -> Result<Value, ImportError> {
        let infos = self.rows("select * from session where id = ?1", session)?;
        let info = infos.first().ok_or(ImportError::Empty)?;
        let number = |key: &str| info.get(key).cloned().unwrap_or_default();
        let info = json!({
            "id": session, "slug": number("slug"), "directory": number("directory"),
            "title": number("title"), "version": number("version"), "revert": read(&number("revert")),
            "time": { "created": number("time_created"), "updated": number("time_updated") },
        });
        let query = "select id, data from message where session_id = ?1 order by time_created, id";
        let mut messages = Vec::new();
        for row in self.rows(query, session)? {
            let id = row.get("id").cloned().unwrap_or_default();
            let mut message = read(row.get("data").unwrap_or(&Value::Null));
            // What is no message is for whoever reads it to count.
            if let Some(message) = message.as_object_mut() {
                message.insert("id".to_owned(), id.clone());
            }
            let query = "select data from part where message_id = ?1 order by id";
            let parts = self.rows(query, id.as_str().unwrap_or_default())?;
            let parts = parts.iter().map(|row| read(row.get("data").unwrap_or(&Value::Null)));
            messages.push(json!({ "info": message, "parts": parts.collect::<Vec<_>>() }));
        }
        let mut children = Vec::new();
        if depth > 0 {
            let query = "select id from session where parent_id = ?1 order by time_created, id";
            for child in self.strings(query, session)? {
                children.push(self.form(&child, depth - 1)?);
            }
        }
        Ok(json!({ "info": info, "messages": messages, "children": children }))
    }

    fn strings(&self, query: &str, key: &str) -> Result<Vec<String>, ImportError> {
        let rows = self.rows(query, key)?;
        Ok(rows.iter().filter_map(|row| row.get("id")?.as_str().map(str::to_owned)).collect())
    }

    fn rows(&self, query: &str, key: &str) -> Result<Vec<Map<String, Value>>, ImportError> {
        let connection = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut statement = connection.prepare(query)?;
        let names: Vec<String> = statement.column_names().map(str::to_owned).collect();
        let rows = statement.query_map(params![key], |row| Ok(fields(row, &names)))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }
}

fn fields(row: &Row<'_>, names: &[String]) -> Map<String, Value> {
    use rusqlite::types::ValueRef;
    let field = |(at, name): (usize, &String)| {
        let value = match row.get_ref(at) {
            Ok(ValueRef::Integer(number)) => json!(number),
            Ok(ValueRef::Real(number)) => json!(number),
            Ok(ValueRef::Text(text)) => json!(String::from_utf8_lossy(text)),
            Ok(ValueRef::Null | ValueRef::Blob(_)) | Err(_) => Value::Null,
        };
        (name.clone(), value)
    };
    names.iter().enumerate().map(field).collect()
}

/// JSON that a column holds as text.
fn read(column: &Value) -> Value {
    column.as_str().and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
}
