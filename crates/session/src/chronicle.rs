//! A session with the times of what is in it: what exports need and the loop does not.

use std::path::Path;

use crate::entry::Entry;
use crate::fold::{Item, Session};
use crate::id::{EntryId, Mark};
use crate::log::LogError;
use crate::tree::Tree;

/// When something began and ended, in milliseconds since 1970.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Span {
    pub start: u64,
    pub end: Option<u64>,
}

/// When an item and its calls were.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Timing {
    pub span: Span,
    pub calls: Vec<Span>,
}

/// The notes that took the place of the beginning.
#[derive(Debug, Clone, PartialEq)]
pub struct Shortening {
    pub id: EntryId,
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
    pub timings: Vec<Timing>,
    pub shortenings: Vec<Shortening>,
    pub created: u64,
    pub updated: u64,
}

impl Chronicle {
    /// Reads a file that may be in use, without changing it.
    pub(crate) fn read(path: &Path) -> Result<Self, LogError> {
        let tree = Tree::scan(path)?;
        let mut chronicle: Option<Self> = None;
        tree.read(&tree.counting(tree.leaf()), |entry, mark| match (&mut chronicle, entry) {
            (Some(chronicle), entry) => chronicle.add(entry, mark),
            (None, Entry::Session(header)) => {
                chronicle = Some(Self {
                    session: Session::whole(header),
                    timings: Vec::new(),
                    shortenings: Vec::new(),
                    created: mark.time,
                    updated: mark.time,
                });
            }
            (None, _) => {}
        })?;
        chronicle.ok_or_else(|| LogError::NoHeader { path: path.to_owned() })
    }

    fn add(&mut self, entry: Entry, mark: Mark) {
        let time = mark.time;
        match &entry {
            // Looking after a session is not using it.
            Entry::Titled { .. } | Entry::Archived { .. } | Entry::Imported(_) => {}
            _ => self.updated = self.updated.max(time),
        }
        match &entry {
            Entry::Reply { .. } | Entry::StepFailed { .. } => {
                if let Some(timing) = self.timings.last_mut() {
                    timing.span.end = Some(time);
                }
            }
            Entry::CallStarted { call, .. } => self.call(*call, |span| span.start = time),
            Entry::CallSettled { call, .. } => self.call(*call, |span| {
                span.end.get_or_insert(time);
            }),
            Entry::Compacted { summary, keep_from, reason, usage, cost } => {
                self.shortenings.push(Shortening {
                    id: mark.id,
                    time,
                    at: self.timings.len(),
                    keep_from: *keep_from,
                    summary: summary.clone(),
                    reason: reason.clone(),
                    usage: *usage,
                    cost: *cost,
                });
            }
            _ => {}
        }
        self.session.apply(entry, mark);
        let items = self.session.items();
        if items.len() > self.timings.len() {
            let span = Span { start: time, end: None };
            self.timings.push(Timing { span, calls: Vec::new() });
        }
        // The calls are there once the answer is.
        if let (Some(Item::Step(step)), Some(timing)) = (items.last(), self.timings.last_mut())
            && timing.calls.is_empty()
        {
            timing.calls = step.calls().map(|_| Span { start: time, end: None }).collect();
        }
    }

    fn call(&mut self, call: usize, change: impl FnOnce(&mut Span)) {
        let calls = self.timings.last_mut().map(|timing| &mut timing.calls);
        if let Some(span) = calls.and_then(|calls| calls.get_mut(call)) {
            change(span);
        }
    }
}
