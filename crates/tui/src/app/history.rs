//! Prompts that were written before, and finding one again.

use super::App;
use crate::editor::Editor;
use crate::key::{Code, Key};

/// Prompts that are remembered.
pub(crate) const CAP: usize = 1_000;

pub(crate) struct History {
    /// Oldest first.
    entries: Vec<String>,
    at: Option<usize>,
    /// What was being written before looking back.
    draft: String,
    pub(super) search: Option<Search>,
}

pub(crate) struct Search {
    pub(super) query: Editor,
    pub(super) found: Option<usize>,
}

impl History {
    pub(crate) fn new(entries: Vec<String>) -> Self {
        Self { entries, at: None, draft: String::new(), search: None }
    }

    pub(super) fn add(&mut self, text: &str) {
        self.at = None;
        if self.entries.last().is_some_and(|last| last == text) {
            return;
        }
        if self.entries.len() >= CAP {
            self.entries.remove(0);
        }
        self.entries.push(text.to_owned());
    }

    /// The one before, with what is being written kept for the way back.
    pub(super) fn older(&mut self, current: &str) -> Option<String> {
        let at = match self.at {
            None => {
                self.draft = current.to_owned();
                self.entries.len().checked_sub(1)?
            }
            Some(at) => at.checked_sub(1)?,
        };
        self.at = Some(at);
        self.entries.get(at).cloned()
    }

    pub(super) fn newer(&mut self) -> Option<String> {
        let at = self.at? + 1;
        match self.entries.get(at) {
            Some(text) => {
                self.at = Some(at);
                Some(text.clone())
            }
            None => {
                self.at = None;
                Some(std::mem::take(&mut self.draft))
            }
        }
    }

    pub(super) fn leave(&mut self) {
        self.at = None;
    }

    fn find(&self, query: &str, before: usize) -> Option<usize> {
        if query.is_empty() {
            return None;
        }
        let query = query.to_lowercase();
        let before = before.min(self.entries.len());
        self.entries[..before].iter().rposition(|text| text.to_lowercase().contains(&query))
    }

    pub(super) fn entry(&self, at: usize) -> &str {
        self.entries.get(at).map_or("", String::as_str)
    }
}

impl App {
    pub(super) fn start_search(&mut self) {
        self.history.search = Some(Search { query: Editor::default(), found: None });
        self.menu = None;
    }

    /// Keys while older prompts are searched.
    pub(super) fn search_key(&mut self, key: Key) {
        let Some(mut search) = self.history.search.take() else { return };
        let again = key == Key::ctrl('r');
        match key.code {
            Code::Escape => return,
            Code::Char('c' | 'g') if key.ctrl => return,
            Code::Enter | Code::Tab | Code::Right => {
                if let Some(at) = search.found {
                    let text = self.history.entry(at).to_owned();
                    self.editor.set(&text);
                }
                return;
            }
            _ if again => {}
            _ => super::ask::edit(&mut search.query, key),
        }
        let before = match search.found {
            Some(at) if again => at,
            _ => usize::MAX,
        };
        let found = self.history.find(search.query.text(), before);
        search.found = if again { found.or(search.found) } else { found };
        self.history.search = Some(search);
    }
}
