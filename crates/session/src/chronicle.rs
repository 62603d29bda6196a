//! A session with the times and ids of what is in it: what exports and lists need and the loop does
//! not.

use std::path::Path;

use crate::entry::Entry;
use crate::fold::{Item, Session};
use crate::lines::{is_branchless, lines, on_branch, read_file};
use crate::log::LogError;

/// When something of a session began and ended, in milliseconds since 1970.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Span {
    pub start: u64,
    pub end: Option<u64>,
}

/// What is known of an item beside itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mark {
    /// The id of the line that made it.
    pub id: String,
    pub span: Span,
    /// Of each of its calls.
    pub calls: Vec<Span>,
}

/// The notes that took the place of the beginning.
#[derive(Debug, Clone, PartialEq)]
pub struct Shortening {
    pub id: String,
    pub time: u64,
    /// How many items stood before it.
    pub at: usize,
    pub keep_from: usize,
    pub summary: String,
    pub reason: String,
    pub usage: toolwright_llm::Usage,
    pub cost: Option<f64>,
}

#[derive(Debug, Clone)]
pub struct Chronicle {
    pub session: Session,
    /// One for each item.
    pub marks: Vec<Mark>,
    pub shortenings: Vec<Shortening>,
    pub created: u64,
    pub updated: u64,
}

impl Chronicle {
    /// Reads a file that may be in use, without changing it.
    pub(crate) fn read(path: &Path) -> Result<Self, LogError> {
        let failed = |source| LogError::Read { path: path.to_owned(), source };
        let bytes = read_file(path).map_err(failed)?;
        let (lines, _) = lines(&bytes);
        let on = on_branch(&lines);
        let on = lines.iter().zip(on).filter(|(line, on)| *on || is_branchless(line.kind));
        let on_branch = on.map(|(line, _)| line);
        let mut entries = on_branch.filter_map(|line| Some((line, line.entry()?)));
        let Some((line, Entry::Session(header))) = entries.next() else {
            return Err(LogError::NoHeader { path: path.to_owned() });
        };
        let mut chronicle = Self {
            session: Session::new(header),
            marks: Vec::new(),
            shortenings: Vec::new(),
            created: line.time,
            updated: line.time,
        };
        entries.for_each(|(line, entry)| chronicle.add(line.id, line.time, entry));
        Ok(chronicle)
    }

    fn add(&mut self, id: &str, time: u64, entry: Entry) {
        match &entry {
            // Looking after a session is not using it.
            Entry::Titled { .. } | Entry::Archived { .. } | Entry::Imported(_) => {}
            _ => self.updated = self.updated.max(time),
        }
        match &entry {
            Entry::Reply { .. } | Entry::StepFailed { .. } => {
                self.last_mark(|mark| mark.span.end = Some(time));
            }
            Entry::CallStarted { call, .. } => {
                let call = *call;
                self.last_mark(|mark| {
                    if let Some(span) = mark.calls.get_mut(call) {
                        span.start = time;
                    }
                });
            }
            Entry::CallSettled { call, .. } => {
                let call = *call;
                self.last_mark(|mark| {
                    if let Some(span) = mark.calls.get_mut(call) {
                        span.end.get_or_insert(time);
                    }
                });
            }
            Entry::Compacted { summary, keep_from, reason, usage, cost } => {
                self.shortenings.push(Shortening {
                    id: id.to_owned(),
                    time,
                    at: self.marks.len(),
                    keep_from: *keep_from,
                    summary: summary.clone(),
                    reason: reason.clone(),
                    usage: *usage,
                    cost: *cost,
                });
            }
            _ => {}
        }
        self.session.apply(entry);
        let items = self.session.items();
        if items.len() > self.marks.len() {
            let span = Span { start: time, end: None };
            self.marks.push(Mark { id: id.to_owned(), span, calls: Vec::new() });
        }
        // The calls are there once the answer is.
        if let (Some(Item::Step(step)), Some(mark)) = (items.last(), self.marks.last_mut())
            && mark.calls.is_empty()
        {
            mark.calls = step.calls().map(|_| Span { start: time, end: None }).collect();
        }
    }

    fn last_mark(&mut self, change: impl FnOnce(&mut Mark)) {
        if let Some(mark) = self.marks.last_mut() {
            change(mark);
        }
    }
}
