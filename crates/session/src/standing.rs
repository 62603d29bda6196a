//! What stays true of a session when the steps that made it so are no longer in memory.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::entry::Touched;
use crate::step::{Ending, Outcome};

/// How deep calls can lie in the details of others.
const DEPTH_CAP: usize = 4;

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Standing {
    jobs: BTreeMap<String, String>,
    todos: Option<Value>,
    reads: BTreeSet<String>,
    writes: BTreeSet<String>,
}

impl Standing {
    /// The jobs whose end is not on record, by id, with what they are.
    pub fn jobs(&self) -> &BTreeMap<String, String> {
        &self.jobs
    }

    /// The newest list of things to do.
    pub fn todos(&self) -> Option<&Value> {
        self.todos.as_ref()
    }

    /// Files that calls read and changed whose steps are no longer in memory.
    pub fn forgotten_files(&self) -> (&BTreeSet<String>, &BTreeSet<String>) {
        (&self.reads, &self.writes)
    }

    pub(crate) fn saw(&mut self, outcome: &Outcome) {
        if outcome.ending != Ending::Skipped {
            self.saw_details(&outcome.title, &outcome.details, DEPTH_CAP);
        }
    }

    fn saw_details(&mut self, title: &str, details: &Value, depth: usize) {
        if let Some(job) = details["job"].as_str() {
            if details["running"] == true {
                self.jobs.insert(job.to_owned(), title.to_owned());
            } else {
                self.jobs.remove(job);
            }
        }
        if details["todos"].is_array() {
            self.todos = Some(details["todos"].clone());
        }
        // Several calls in one.
        let inner = details["details"].as_array().filter(|_| depth > 0);
        for call in inner.into_iter().flatten() {
            let title = call["title"].as_str().unwrap_or(title);
            self.saw_details(title, &call["details"], depth - 1);
        }
    }

    pub(crate) fn jobs_ended(&mut self, jobs: &[String]) {
        self.jobs.retain(|id, _| !jobs.contains(id));
    }

    pub(crate) fn forget_files(&mut self, touched: &Touched) {
        self.reads.extend(touched.reads.iter().cloned());
        self.writes.extend(touched.writes.iter().cloned());
    }
}
