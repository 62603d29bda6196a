//! Session files of other programs as sessions of ours. What has no place here is named in a notice.

mod build;
mod claude;
#[cfg(test)]
mod claude_tests;
mod codex;
mod database;
mod opencode;
mod pi;
mod source;
#[cfg(test)]
mod source_tests;
mod stored;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use serde_json::Value;

use crate::entry::{Entry, Header, Imported, TitledBy};
use crate::id::now;
use crate::log::{Log, LogError};
use crate::store::Store;
use crate::title::shortened;
use build::Builder;

pub use source::Source;

#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    #[error(
        "this is no session that can be imported; known are OpenCode's export (JSON), its database and its folder of sessions, and the session files (JSON lines) of Codex, Claude Code and pi"
    )]
    Unknown,
    #[error("there is nothing in this session: no prompt and no answer")]
    Empty,
    #[error("the file ends in the middle or is damaged: {0}")]
    Damaged(String),
    #[error("it cannot be read: {0}")]
    Io(#[from] std::io::Error),
    #[error("its database cannot be read: {0}")]
    Database(#[from] rusqlite::Error),
}

/// A session that was read and is not kept yet.
#[derive(Debug)]
pub struct Foreign {
    /// The program that made it.
    pub from: &'static str,
    /// Its id there.
    pub id: String,
    /// The folder that it was about.
    pub directory: String,
    pub title: Option<String>,
    /// Milliseconds since 1970.
    pub created: u64,
    /// What could not be taken over.
    pub notices: Vec<String>,
    /// The sessions of agents that worked for it.
    pub children: Vec<Foreign>,
    entries: Vec<(u64, Entry)>,
}

/// What a session holds, in numbers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Contents {
    pub prompts: usize,
    pub answers: usize,
    pub calls: usize,
}

impl Foreign {
    fn of(builder: Builder, from: &'static str) -> Result<Self, ImportError> {
        let Builder { id, directory, title, created, .. } = &builder;
        let mut foreign = Self {
            from,
            id: id.clone(),
            directory: directory.clone(),
            title: title.clone(),
            created: *created,
            notices: Vec::new(),
            children: Vec::new(),
            entries: Vec::new(),
        };
        (foreign.entries, foreign.notices) = builder.entries();
        match foreign.entries.is_empty() {
            true => Err(ImportError::Empty),
            false => Ok(foreign),
        }
    }

    /// Takes an agent's session in. The call that gave the work was answered with the agent's id.
    fn employ(&mut self, worker: Foreign) {
        let outcomes = self.entries.iter_mut().filter_map(|(_, entry)| match entry {
            Entry::CallSettled { outcome, .. } => Some(outcome),
            _ => None,
        });
        let mut gave = outcomes.filter(|o| o.tool.ends_with("spawn_agent"));
        if let Some(outcome) = gave.find(|o| o.output.contains(&worker.id)) {
            outcome.details = serde_json::json!({ "sessionId": worker.id });
        }
        self.children.push(worker);
    }

    pub fn contents(&self) -> Contents {
        let count =
            |wanted: fn(&Entry) -> bool| self.entries.iter().filter(|(_, e)| wanted(e)).count();
        Contents {
            prompts: count(|entry| matches!(entry, Entry::Prompt { .. })),
            answers: count(|entry| matches!(entry, Entry::StepStarted { .. })),
            calls: count(|entry| matches!(entry, Entry::CallSettled { .. })),
        }
    }
}

/// Reads a session of whatever program wrote it.
pub fn read(bytes: &[u8]) -> Result<Foreign, ImportError> {
    read_with(bytes, &[])
}

/// The same, with the files of agents that worked for it, where a program keeps those apart.
pub fn read_with(bytes: &[u8], workers: &[Vec<u8>]) -> Result<Foreign, ImportError> {
    let text = String::from_utf8_lossy(bytes);
    let text = text.trim_start_matches('\u{feff}').trim();
    if let Ok(whole) = serde_json::from_str::<Value>(text)
        && whole["info"].is_object()
        && whole["messages"].is_array()
    {
        return opencode::read(&whole);
    }
    let (lines, broken) = json_lines(text);
    if lines.is_empty() {
        // It began as JSON and did not come to its end.
        return match text.starts_with('{') && text.contains("\"messages\"") {
            true => Err(ImportError::Damaged("it is no whole JSON document".to_owned())),
            false => Err(ImportError::Unknown),
        };
    }
    let workers = workers.iter().map(|bytes| json_lines(&String::from_utf8_lossy(bytes)).0);
    let workers: Vec<Vec<Value>> = workers.filter(|lines| !lines.is_empty()).collect();
    let mut foreign = if pi::is_pi(&lines) {
        pi::read(&lines)?
    } else if codex::is_codex(&lines) {
        let mut foreign = codex::read(&lines)?;
        workers.iter().flat_map(|lines| codex::read(lines)).for_each(|w| foreign.employ(w));
        foreign
    } else if claude::is_claude(&lines) {
        claude::read(&lines, &workers)?
    } else {
        return Err(ImportError::Unknown);
    };
    foreign.notices.extend(match broken {
        0 => None,
        1 => Some("1 line could not be read and is missing".to_owned()),
        count => Some(format!("{count} lines could not be read and are missing")),
    });
    Ok(foreign)
}

/// The lines that can be read, and the number of those that cannot.
fn json_lines(text: &str) -> (Vec<Value>, usize) {
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    let read: Vec<_> = lines.map(serde_json::from_str::<Value>).collect();
    let broken = read.iter().filter(|line| line.is_err()).count();
    (read.into_iter().flatten().collect(), broken)
}

impl Store {
    /// Keeps an imported session as one of ours, in `directory`. Gives its id.
    pub fn keep(
        &self,
        foreign: &Foreign,
        directory: &Path,
        made_by: &str,
    ) -> Result<String, LogError> {
        let id = id_at(foreign.created);
        let kept = self.keep_below(foreign, directory, made_by, &id, None);
        if kept.is_err() {
            // Half a session would be taken for one that is here.
            self.delete(&id).ok();
        }
        kept
    }

    fn keep_below(
        &self,
        foreign: &Foreign,
        directory: &Path,
        made_by: &str,
        id: &str,
        parent: Option<&Header>,
    ) -> Result<String, LogError> {
        let header = Header {
            session: id.to_owned(),
            directory: directory.display().to_string(),
            made_by: made_by.to_owned(),
            forked_from: None,
            parent: parent.map(|parent| parent.session.clone()),
        };
        let mut log = Log::create(&self.file_of(&header))?;
        log.append_at(&Entry::Session(header.clone()), foreign.created)?;
        let imported = Imported {
            from: foreign.from.to_owned(),
            id: foreign.id.clone(),
            notices: foreign.notices.clone(),
        };
        log.append_at(&Entry::Imported(imported), foreign.created)?;
        if let Some(title) = foreign.title.as_deref().filter(|title| !title.trim().is_empty()) {
            let title = shortened(title);
            let (usage, cost, model) = Default::default();
            let titled = Entry::Titled { title, by: TitledBy::Import, usage, cost, model };
            log.append_at(&titled, foreign.created)?;
        }
        // A call that gave work to another agent names the agent's session.
        let ids: Vec<String> = foreign.children.iter().map(|child| id_at(child.created)).collect();
        let names = foreign.children.iter().map(|child| child.id.as_str());
        let children: HashMap<&str, &String> = names.zip(&ids).collect();
        for (time, entry) in &foreign.entries {
            match renamed(entry, &children) {
                Some(renamed) => log.append_at(&renamed, *time)?,
                None => log.append_at(entry, *time)?,
            };
        }
        // Importing is not using: it does not become the session used last.
        let last = foreign.entries.last().map_or(foreign.created, |(time, _)| *time);
        let used = UNIX_EPOCH + Duration::from_millis(last.min(now()));
        let synced = log.sync_handle()?.sync();
        synced.map_err(|source| LogError::Write { path: log.path().to_owned(), source })?;
        log.set_used(used)?;
        for (child, id) in foreign.children.iter().zip(&ids) {
            self.keep_below(child, directory, made_by, id, Some(&header))?;
        }
        Ok(header.session)
    }
}

/// The result of such a call, with the name that the agent's session has here.
fn renamed(entry: &Entry, children: &HashMap<&str, &String>) -> Option<Entry> {
    let Entry::CallSettled { call, outcome } = entry else { return None };
    let id = children.get(outcome.details["sessionId"].as_str()?)?;
    let mut outcome = outcome.clone();
    outcome.details["sessionId"] = Value::String((*id).clone());
    Some(Entry::CallSettled { call: *call, outcome })
}

/// An id that sorts by the time at which the session began.
fn id_at(created: u64) -> String {
    let id = ulid::Ulid::from_parts(created, ulid::Ulid::generate().random());
    format!("ses_{}", id.to_string().to_lowercase())
}
