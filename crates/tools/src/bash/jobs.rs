//! The commands of one session that go on while the model does something else.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toolwright_proc::Ended;
use toolwright_tool::{Captured, OUTPUT_CAP_BYTES, ToolError, ToolOutput};

use super::running::{Finish, Running};
use super::sandboxed;

/// Jobs that may run at once.
pub const JOBS_CAP: usize = 32;

/// Ended jobs that can still be looked at; the oldest go first.
const ENDED_CAP: usize = 32;

/// What the id of every job begins with.
const PREFIX: &str = "job_";

/// Room for what is said about an output that was cut.
pub(super) const NOTICE_BYTES: usize = 2 << 10;

/// Shared by the tools of one session; when the last of them is gone, so are the jobs.
#[derive(Clone)]
pub struct Jobs {
    shared: Arc<Mutex<Table>>,
    /// Sets the ids of this process apart from those that an earlier one has told the model.
    mark: Arc<str>,
}

#[derive(Default)]
struct Table {
    jobs: BTreeMap<u32, Arc<Job>>,
    /// Calls that may become jobs.
    reserved: usize,
    last: u32,
}

pub struct Job {
    pub(crate) id: String,
    pub(crate) command: String,
    pub(crate) running: Running,
    started: Instant,
    /// Bytes that had come when it was last looked at.
    seen: Mutex<u64>,
}

/// A place for a command that may become a job.
pub(crate) struct Place {
    jobs: Jobs,
}

/// A job, for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobInfo {
    pub id: String,
    pub command: String,
    pub age: Duration,
    /// As a shell would report it; `None` while it runs.
    pub exit: Option<i32>,
    /// Where its whole output is, once it has been looked at.
    pub output: Option<PathBuf>,
}

impl Default for Jobs {
    fn default() -> Self {
        let mut number = RandomState::new().build_hasher().finish();
        let letters = b"abcdefghijkmnpqrstuvwxyz23456789";
        let letter = |_| {
            let letter = letters[usize::try_from(number % 32).unwrap_or_default()];
            number /= 32;
            char::from(letter)
        };
        let mark: String = (0..4).map(letter).collect();
        Self { shared: Arc::default(), mark: mark.into() }
    }
}

impl Jobs {
    /// All that can be looked at, the oldest first.
    pub fn list(&self) -> Vec<JobInfo> {
        let info = |job: &Arc<Job>| JobInfo {
            id: job.id.clone(),
            command: job.command.clone(),
            age: job.started.elapsed(),
            exit: job.running.news().finish.map(|finish| finish.exit_code()),
            output: job.running.capture().path(),
        };
        self.lock().jobs.values().map(info).collect()
    }

    /// Those that run.
    pub fn running(&self) -> Vec<JobInfo> {
        self.list().into_iter().filter(|job| job.exit.is_none()).collect()
    }

    /// Ends them all. Their processes are gone when the program's end has been waited for.
    pub fn end_all(&self) {
        self.lock().jobs.clear();
    }

    pub(crate) fn reserve(&self) -> Result<Place, ToolError> {
        let mut table = self.lock();
        let running = table.jobs.values().filter(|job| job.is_running());
        let ids: Vec<_> = running.map(|job| job.id.clone()).collect();
        if ids.len() + table.reserved >= JOBS_CAP {
            return Err(ToolError::for_model(format!(
                "{JOBS_CAP} jobs are running already, no more can be started. End one with bash_kill first: {}.",
                ids.join(", ")
            )));
        }
        table.reserved += 1;
        Ok(Place { jobs: self.clone() })
    }

    pub(crate) fn find(&self, id: &str) -> Result<Arc<Job>, ToolError> {
        let id = id.trim();
        let table = self.lock();
        if let Some(job) = table.jobs.values().find(|job| job.id == id) {
            return Ok(Arc::clone(job));
        }
        let known: Vec<_> = table.jobs.values().map(|job| job.id.as_str()).collect();
        let known = match known.as_slice() {
            [] => "There are no jobs now.".to_owned(),
            known => format!("The jobs are: {}.", known.join(", ")),
        };
        let mark = id.strip_prefix(PREFIX).and_then(|rest| rest.rsplit_once('_')).map(|r| r.0);
        let text = match mark {
            Some(mark) if mark == &*self.mark => {
                format!("The job {id} has ended and is no longer kept. {known}")
            }
            Some(_) => format!(
                "The job {id} is not running any more: that job died with the process that ran it. \
                 Start the command again if it is still needed. {known}"
            ),
            None => format!("There is no job {id}. {known}"),
        };
        Err(ToolError::for_model(text))
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place {
    pub(crate) fn fill(self, command: String, running: Running, started: Instant) -> Arc<Job> {
        let mut table = self.jobs.lock();
        table.last += 1;
        let number = table.last;
        let id = format!("{PREFIX}{}_{number}", self.jobs.mark);
        let job = Arc::new(Job { id, command, running, started, seen: Mutex::new(0) });
        table.jobs.insert(number, Arc::clone(&job));
        let ended: Vec<u32> =
            table.jobs.iter().filter(|(_, job)| !job.is_running()).map(|(n, _)| *n).collect();
        for number in ended.iter().take(ended.len().saturating_sub(ENDED_CAP)) {
            table.jobs.remove(number);
        }
        drop(table);
        job
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.jobs.lock().reserved -= 1;
    }
}

impl Job {
    pub(crate) fn is_running(&self) -> bool {
        self.running.news().finish.is_none()
    }

    /// Bytes that had come at the last look.
    pub(crate) fn seen(&self) -> u64 {
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is new since the last look, with how things stand.
    pub(crate) fn look(&self) -> ToolOutput {
        let news = self.running.news();
        let captured = self.running.take();
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner) = news.bytes;
        let state = match news.finish {
            None => format!("running for {} s", self.started.elapsed().as_secs()),
            Some(finish) => how_it_ended(&finish),
        };
        let mut details = details(&captured, news.finish.map(|finish| finish.exit_code()));
        details["job"] = json!(self.id);
        details["running"] = json!(news.finish.is_none());
        let text =
            with_line(captured.text, "(no new output)", &format!("job {}: {state}", self.id));
        let mut output = output(text).titled(self.command.clone()).with_details(details);
        if news.finish.is_some() {
            sandboxed::tell(&mut output, &self.running.take_put_back());
        }
        output
    }
}

pub(super) fn how_it_ended(finish: &Finish) -> String {
    let how = match finish.how {
        Ended::Exit(code) => format!("exit code {code}"),
        Ended::Signal(signal) => format!("ended by signal {signal}"),
    };
    let left = "; it left something running in the background, which ends with this session";
    if finish.left_running { format!("{how}{left}") } else { how }
}

pub(super) fn details(captured: &Captured, exit: Option<i32>) -> Value {
    json!({
        "exit": exit, "truncated": captured.cut, "outputPath": captured.path,
        "bytes": captured.total_bytes,
    })
}

/// The text with a last line of ours.
pub(super) fn with_line(mut text: String, empty: &str, line: &str) -> String {
    if text.is_empty() {
        text.push_str(empty);
    }
    if !text.ends_with('\n') {
        text.push('\n');
    }
    text.push_str(&format!("[{line}]"));
    text
}

pub(super) fn output(text: String) -> ToolOutput {
    // Bytes that are no text grow when they are shown.
    let fitted = text.len() <= OUTPUT_CAP_BYTES + NOTICE_BYTES;
    ToolOutput { fitted, ..ToolOutput::text(text) }
}
