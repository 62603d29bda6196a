//! The jobs of a session, as its log tells of them: commands that went on beside the conversation.

use serde_json::Value;
use toolwright::session::{Item, Session, Slot, StepBlock};

use crate::terminal::one_line;

/// Characters of a command that are shown.
const COMMAND_CHARS: usize = 80;

struct Job {
    id: String,
    command: String,
    /// As it was when it was last looked at; nothing while it ran.
    exit: Option<i64>,
}

/// A line for each, the oldest first; empty where there are none. `in_use` says whether a process has the
/// session open: jobs do not outlive it.
pub fn report(session: &Session, in_use: bool) -> String {
    let mut jobs: Vec<Job> = Vec::new();
    for item in session.items() {
        let Item::Step(step) = item else { continue };
        for block in &step.blocks {
            let StepBlock::Call(call) = block else { continue };
            if let Slot::Settled(outcome) = call.slot() {
                note(&mut jobs, &outcome.title, &outcome.details);
            }
        }
    }
    if jobs.is_empty() {
        return String::new();
    }
    let unended = session.standing().jobs();
    let mut text = "\nJobs:\n".to_owned();
    for Job { id, command, exit } in jobs {
        let state = match exit {
            Some(code) => format!("ended, exit code {code}"),
            None if in_use && unended.contains_key(&id) => "running".to_owned(),
            None => "ended with its session".to_owned(),
        };
        text.push_str(&format!("  {id}  {state}  {}\n", one_line(&command, COMMAND_CHARS)));
    }
    text
}

fn note(jobs: &mut Vec<Job>, title: &str, details: &Value) {
    if let Some(id) = details["job"].as_str() {
        let exit = details["exit"].as_i64().filter(|_| details["running"] != true);
        match jobs.iter_mut().find(|job| job.id == id) {
            Some(job) => job.exit = exit,
            None => jobs.push(Job { id: id.to_owned(), command: title.to_owned(), exit }),
        }
    }
    // Several calls in one.
    for call in details["details"].as_array().into_iter().flatten() {
        let title = call["title"].as_str().unwrap_or(title);
        note(jobs, title, &call["details"]);
    }
}
