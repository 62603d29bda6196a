//! What can be asked of the index.

use std::collections::{HashMap, HashSet};

use rusqlite::{Connection, Result, Row, named_params};
use toolwright_llm::Usage;

use super::read::SpentKind;

/// Stand around what was found in a [`Listed::snippet`].
pub const FOUND_START: char = '\u{2}';
pub const FOUND_END: char = '\u{3}';

/// Which sessions are wanted.
#[derive(Debug, Clone, Default)]
pub struct Wanted {
    /// Those of this folder only.
    pub directory: Option<String>,
    /// Those in which this was said.
    pub search: Option<String>,
    /// Those that were put away, instead of the others.
    pub archived: bool,
    pub limit: Option<usize>,
}

/// A line of the list of sessions. Times are in milliseconds since 1970.
#[derive(Debug, Clone, PartialEq)]
pub struct Listed {
    pub id: String,
    pub path: String,
    pub title: String,
    pub directory: String,
    pub parent: Option<String>,
    pub created: u64,
    pub updated: u64,
    /// Prompts and answers.
    pub messages: u64,
    pub usage: Usage,
    /// US dollars, where the prices were known.
    pub cost: f64,
    pub models: Vec<String>,
    pub archived: bool,
    /// What was found where, if the title does not show it.
    pub snippet: Option<String>,
}

/// Something that counts.
#[derive(Debug, Clone, PartialEq)]
pub struct Counted {
    pub session: String,
    /// Whether the session is a person's own and not part of another's work.
    pub own: bool,
    pub directory: String,
    pub time: u64,
    pub kind: SpentKind,
    /// The model of a step, the tool of a call.
    pub name: String,
    pub failed: bool,
    pub usage: Usage,
    pub cost: Option<f64>,
}

/// Newest first.
pub(super) fn list(connection: &Connection, wanted: &Wanted) -> Result<Vec<Listed>> {
    let hits = match wanted.search.as_deref().map(str::trim).filter(|text| !text.is_empty()) {
        Some(text) => Some(search(connection, text)?),
        None => None,
    };
    let mut select = connection.prepare(
        "SELECT *, (SELECT group_concat(name, char(10)) FROM
             (SELECT DISTINCT name FROM spent WHERE session = sessions.id AND kind = 1 AND name <> ''))
             AS models
         FROM sessions WHERE parent IS NULL AND archived = :archived
             AND (:directory IS NULL OR directory = :directory)
         ORDER BY updated DESC, id DESC",
    )?;
    let mut rows = select.query(named_params! {
        ":archived": wanted.archived, ":directory": wanted.directory,
    })?;
    let mut out = Vec::new();
    let limit = wanted.limit.unwrap_or(usize::MAX);
    while let Some(row) = rows.next()? {
        if out.len() >= limit {
            break;
        }
        let mut listed = listed(row)?;
        if let Some(hits) = &hits {
            let in_title = shows(&listed.title, wanted.search.as_deref().unwrap_or_default());
            match hits.get(&listed.id) {
                Some(_) if in_title => {}
                Some(hit) => listed.snippet = Some(hit.snippet(connection)?),
                None if in_title => {}
                None => continue,
            }
        }
        out.push(listed);
    }
    Ok(out)
}

/// The session that was imported from there.
pub(super) fn imported(connection: &Connection, source: &str) -> Result<Option<String>> {
    let mut select = connection.prepare("SELECT id FROM sessions WHERE source = ?1 ORDER BY id")?;
    let mut rows = select.query([source])?;
    rows.next()?.map(|row| row.get(0)).transpose()
}

fn listed(row: &Row<'_>) -> Result<Listed> {
    let number = |name: &str| row.get::<_, i64>(name).map(i64::cast_unsigned);
    let given: Option<String> = row.get("given_title")?;
    let title = given.map_or_else(|| row.get::<_, Option<String>>("prompt_title"), |t| Ok(Some(t)));
    let models: Option<String> = row.get("models")?;
    Ok(Listed {
        id: row.get("id")?,
        path: row.get("path")?,
        title: title?.unwrap_or_else(|| "(empty session)".to_owned()),
        directory: row.get("directory")?,
        parent: row.get("parent")?,
        created: number("created")?,
        updated: number("updated")?,
        messages: number("messages")?,
        usage: usage(row)?,
        cost: row.get("cost")?,
        models: models.unwrap_or_default().lines().map(str::to_owned).collect(),
        archived: row.get("archived")?,
        snippet: None,
    })
}

fn usage(row: &Row<'_>) -> Result<Usage> {
    let number = |name: &str| row.get::<_, i64>(name).map(i64::cast_unsigned);
    Ok(Usage {
        input: number("input")?,
        output: number("output")?,
        reasoning: number("reasoning")?,
        cache_read: number("cache_read")?,
        cache_write: number("cache_write")?,
    })
}

/// Whether all words stand in the title.
fn shows(title: &str, words: &str) -> bool {
    let title = title.to_lowercase();
    words.to_lowercase().split_whitespace().all(|word| title.contains(word))
}

/// Where a session says it best.
struct Hit {
    rowid: i64,
    /// The question for the full text, or the letters where that knows no such word.
    query: Option<String>,
    letters: String,
}

impl Hit {
    fn snippet(&self, connection: &Connection) -> Result<String> {
        if let Some(query) = &self.query {
            return connection.query_row(
                "SELECT snippet(texts, 0, char(2), char(3), '…', 14) FROM texts
                 WHERE texts MATCH ?1 AND rowid = ?2",
                (query, self.rowid),
                |row| row.get(0),
            );
        }
        let body: String = connection.query_row(
            "SELECT body FROM texts WHERE rowid = ?1",
            [self.rowid],
            |row| row.get(0),
        )?;
        Ok(around(&body, &self.letters))
    }
}

/// By session; what an agent said for another counts as said in the other's session.
fn search(connection: &Connection, text: &str) -> Result<HashMap<String, Hit>> {
    let query = question(text);
    let rows: Vec<(i64, String)> = match &query {
        Some(query) => connection
            .prepare(
                // Not by numbers alone: they tell in which order files were read.
                "SELECT texts.rowid, session FROM texts JOIN pieces ON pieces.rowid = texts.rowid
                 WHERE texts MATCH ?1 ORDER BY rank, time, session, texts.rowid",
            )?
            .query_map([query], |row| Ok((row.get(0)?, row.get(1)?)))?
            .collect::<Result<_>>()?,
        None => Vec::new(),
    };
    // Parts of words, and languages that do not part them.
    let (rows, query) = if rows.is_empty() {
        let like =
            format!("%{}%", text.replace('\\', "\\\\").replace('%', "\\%").replace('_', "\\_"));
        let rows = connection
            .prepare(
                "SELECT texts.rowid, session FROM texts JOIN pieces ON pieces.rowid = texts.rowid
                 WHERE body LIKE ?1 ESCAPE '\\' ORDER BY time DESC, session, texts.rowid DESC",
            )?
            .query_map([like], |row| Ok((row.get(0)?, row.get(1)?)))?
            .collect::<Result<_>>()?;
        (rows, None)
    } else {
        (rows, query)
    };
    let parents = parents(connection)?;
    let mut hits = HashMap::new();
    for (rowid, session) in rows {
        let root = root_of(&parents, session);
        let hit = || Hit { rowid, query: query.clone(), letters: text.to_owned() };
        hits.entry(root).or_insert_with(hit);
    }
    Ok(hits)
}

/// Each word, or its beginning, in any order.
fn question(text: &str) -> Option<String> {
    let words = text.split_whitespace().filter(|w| w.chars().any(char::is_alphanumeric));
    let quoted: Vec<String> =
        words.map(|word| format!("\"{}\"*", word.replace('"', "\"\""))).collect();
    (!quoted.is_empty()).then(|| quoted.join(" "))
}

fn parents(connection: &Connection) -> Result<HashMap<String, String>> {
    let mut select =
        connection.prepare("SELECT id, parent FROM sessions WHERE parent IS NOT NULL")?;
    select.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
}

fn root_of(parents: &HashMap<String, String>, session: String) -> String {
    let mut at = session;
    let mut seen = HashSet::new();
    while let Some(parent) = parents.get(&at)
        && seen.insert(at.clone())
    {
        at.clone_from(parent);
    }
    at
}

fn around(body: &str, letters: &str) -> String {
    const BESIDE_CHARS: usize = 40;
    let lower = body.to_lowercase();
    // Where case changes lengths, the marks are left out.
    let at = (lower.len() == body.len()).then(|| lower.find(&letters.to_lowercase())).flatten();
    let Some(at) = at.filter(|at| body.is_char_boundary(*at)) else {
        return body.chars().take(2 * BESIDE_CHARS).collect();
    };
    let end = body.ceil_char_boundary(at + letters.len());
    let before: String = body[..at].chars().rev().take(BESIDE_CHARS).collect();
    let before: String = before.chars().rev().collect();
    let after: String = body[end..].chars().take(BESIDE_CHARS).collect();
    let (head, tail) = (
        if before.len() < at { "…" } else { "" },
        if after.len() < body.len() - end { "…" } else { "" },
    );
    format!("{head}{before}{FOUND_START}{}{FOUND_END}{after}{tail}", &body[at..end])
}

/// Hands everything that counts to `take`. What a copied session repeats of its original counts once.
pub(super) fn spending(connection: &Connection, take: &mut dyn FnMut(Counted)) -> Result<()> {
    let mut originals: HashMap<String, Vec<i64>> = connection
        .prepare("SELECT DISTINCT forked_from FROM sessions WHERE forked_from IS NOT NULL")?
        .query_map([], |row| Ok((row.get(0)?, Vec::new())))?
        .collect::<Result<_>>()?;
    let mut select = connection.prepare(
        "SELECT spent.*, parent, forked_from, directory FROM spent
         JOIN sessions ON sessions.id = spent.session ORDER BY session, number",
    )?;
    let mut rows = select.query([])?;
    let mut copy = Copy::default();
    while let Some(row) = rows.next()? {
        let session: String = row.get("session")?;
        let print: i64 = row.get("print")?;
        if copy.session != session {
            // Ids begin with the time: the original was there first.
            let from: Option<String> = row.get("forked_from")?;
            let rest = from.and_then(|from| originals.get(&from).cloned());
            copy = Copy { session: session.clone(), rest: rest.unwrap_or_default(), at: 0 };
        }
        if let Some(prints) = originals.get_mut(&session) {
            prints.push(print);
        }
        if copy.repeats(print) {
            continue;
        }
        let kind = match row.get::<_, i64>("kind")? {
            0 => SpentKind::Prompt,
            1 => SpentKind::Step,
            _ => SpentKind::Call,
        };
        take(Counted {
            session,
            own: row.get::<_, Option<String>>("parent")?.is_none(),
            directory: row.get("directory")?,
            time: row.get::<_, i64>("time")?.cast_unsigned(),
            kind,
            name: row.get("name")?,
            failed: row.get("failed")?,
            usage: usage(row)?,
            cost: row.get("cost")?,
        });
    }
    Ok(())
}

/// A copied session begins with a branch of its original; after the first difference all is its own.
#[derive(Default)]
struct Copy {
    session: String,
    rest: Vec<i64>,
    at: usize,
}

impl Copy {
    fn repeats(&mut self, print: i64) -> bool {
        let found = self.rest.get(self.at..).and_then(|rest| rest.iter().position(|p| *p == print));
        match found {
            Some(further) => self.at += further + 1,
            None => self.rest.clear(),
        }
        found.is_some()
    }
}
