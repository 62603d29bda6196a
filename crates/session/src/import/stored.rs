//! OpenCode's folders of small files, as they were before its database.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::ImportError;
use super::build::text;
use super::source::entries;

pub(super) struct Stored {
    messages: PathBuf,
    parts: PathBuf,
    /// The parts of a message lie in a folder of its session.
    by_session: bool,
    /// The sessions of agents, by the id of the one that they worked for.
    workers: HashMap<String, Vec<PathBuf>>,
}

impl Stored {
    /// Both layouts: `session/PROJECT`, `message`, `part`; and before that all of it below `session`. With
    /// the files of the sessions of people; those of agents come with them.
    pub(super) fn open(root: &Path) -> Option<(Self, Vec<PathBuf>)> {
        let sessions = root.join("session");
        let old = sessions.join("info");
        let by_session = old.is_dir();
        let base = if by_session { sessions.clone() } else { root.to_owned() };
        let (messages, parts) = (base.join("message"), base.join("part"));
        if !messages.is_dir() {
            return None;
        }
        let folders = if by_session { vec![old] } else { entries(&sessions) };
        let files = folders.iter().flat_map(|folder| documents(folder));
        let by_id: BTreeMap<String, PathBuf> =
            files.map(|file| (id_of(&file).to_owned(), file)).collect();
        let mut own = Vec::new();
        let mut workers: HashMap<String, Vec<PathBuf>> = HashMap::new();
        for file in by_id.into_values() {
            // One that cannot be read says so when it is.
            let info = json(&file).unwrap_or_default();
            match text(&info["parentID"]) {
                "" => own.push(file),
                parent => workers.entry(parent.to_owned()).or_default().push(file),
            }
        }
        Some((Self { messages, parts, by_session, workers }, own))
    }

    /// As OpenCode would export it. What cannot be read of it stands there as nothing, to be counted.
    pub(super) fn form(&self, session: &Path, depth: usize) -> Result<Value, ImportError> {
        let info = json(session)?;
        let id = id_of(session);
        let mut messages = Vec::new();
        for file in documents(&self.messages.join(id)) {
            let parts = match self.by_session {
                true => self.parts.join(id).join(id_of(&file)),
                false => self.parts.join(id_of(&file)),
            };
            let parts = documents(&parts).into_iter().map(|file| json(&file).unwrap_or_default());
            let parts: Vec<Value> = parts.collect();
            let message = json(&file).unwrap_or_default();
            messages.push(serde_json::json!({ "info": message, "parts": parts }));
        }
        let mut children = Vec::new();
        if depth > 0 {
            for worker in self.workers.get(id).into_iter().flatten() {
                children.push(self.form(worker, depth - 1)?);
            }
        }
        Ok(serde_json::json!({ "info": info, "messages": messages, "children": children }))
    }
}

/// Files are named after what they hold.
pub(super) fn id_of(file: &Path) -> &str {
    file.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default()
}

/// Other programs leave files of theirs in any folder.
fn documents(folder: &Path) -> Vec<PathBuf> {
    let is_document = |file: &PathBuf| file.extension().is_some_and(|x| x == "json");
    entries(folder).into_iter().filter(|file| is_document(file) && file.is_file()).collect()
}

fn json(file: &Path) -> Result<Value, ImportError> {
    let damaged = |e: serde_json::Error| ImportError::Damaged(e.to_string());
    serde_json::from_slice(&fs::read(file)?).map_err(damaged)
}
