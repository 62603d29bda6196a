//! What a program says to a run while it works: one JSON object a line on standard input.

use std::io::BufRead;
use std::sync::Arc;

use serde::Deserialize;
use tokio::sync::mpsc;
use toolwright::llm::Content;
use toolwright::permission::{Extent, Grant, Mode, Scope};
use toolwright::{Answer, CancellationToken, Event, Inbox, PermissionGate, Questions};

use crate::terminal::note;

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
enum Command {
    /// Seen by the model at the next boundary.
    Steer {
        text: String,
    },
    /// A turn of its own after this one.
    FollowUp {
        text: String,
    },
    Withdraw {
        id: u64,
    },
    Compact {},
    Abort {},
    Answer {
        id: u64,
        reply: Reply,
        message: Option<String>,
        /// For how long an `always` is meant.
        #[serde(default)]
        scope: Scope,
        /// How far it reaches, or patterns of one's own.
        extent: Option<Extent>,
        pattern: Option<String>,
        #[serde(default)]
        patterns: Vec<String>,
    },
    Mode {
        mode: Mode,
    },
    /// Labels or words for each question of an inquiry; none at all dismisses it.
    Reply {
        id: u64,
        answers: Option<Vec<Vec<String>>>,
    },
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Reply {
    Once,
    Always,
    Reject,
}

/// Whom commands are for.
pub struct Listener {
    pub inbox: Arc<Inbox>,
    pub questions: Arc<Questions>,
    pub gate: Arc<PermissionGate>,
    pub cancel: CancellationToken,
    pub events: mpsc::Sender<Event>,
}

impl Listener {
    /// Takes commands for as long as standard input has any, on a thread of its own: reading cannot
    /// be interrupted, and the run must be.
    pub fn listen(self) {
        std::thread::spawn(move || {
            for line in std::io::stdin().lock().lines() {
                let Ok(line) = line else { break };
                if line.trim().is_empty() {
                    continue;
                }
                match serde_json::from_str(&line) {
                    Ok(command) => self.obey(command),
                    Err(error) => {
                        note(&format!("tw: this command is not understood ({error}): {line}"))
                    }
                }
            }
        });
    }

    fn obey(&self, command: Command) {
        let inbox = &self.inbox;
        let taken = match command {
            Command::Steer { text } => inbox.steer(vec![Content::text(text)]).is_some(),
            Command::FollowUp { text } => inbox.follow_up(vec![Content::text(text)]).is_some(),
            Command::Withdraw { id } => {
                inbox.withdraw(id);
                true
            }
            Command::Compact {} => {
                inbox.compact();
                true
            }
            Command::Abort {} => {
                self.cancel.cancel();
                true
            }
            Command::Mode { mode } => {
                self.gate.set_mode(mode);
                true
            }
            Command::Reply { id, answers } => {
                self.questions.reply(id, answers);
                true
            }
            Command::Answer { id, reply, message, scope, extent, pattern, mut patterns } => {
                patterns.extend(pattern);
                let answer = match reply {
                    Reply::Once => Answer::Once,
                    Reply::Always => Answer::Always(Grant { scope, extent, patterns }),
                    Reply::Reject => Answer::Reject { message },
                };
                if let Err(error) = self.questions.answer(id, answer) {
                    // Whoever answers reads the events: there it can be seen that it was not taken.
                    let text = format!("the answer to question {id} was not taken: {error}");
                    self.events.blocking_send(Event::Notice { text }).ok();
                }
                true
            }
        };
        if !taken {
            note("tw: too many messages wait already; this one was not taken");
        }
    }
}
