//! What a program says to a run while it works: one JSON object a line on standard input.

use std::io::BufRead;
use std::sync::Arc;

use serde::Deserialize;
use toolwright::llm::Content;
use toolwright::{Answer, CancellationToken, Inbox, Questions};

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

/// Takes commands for as long as standard input has any, on a thread of its own: reading cannot be
/// interrupted, and the run must be.
pub fn listen(inbox: Arc<Inbox>, questions: Arc<Questions>, cancel: CancellationToken) {
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines() {
            let Ok(line) = line else { break };
            if line.trim().is_empty() {
                continue;
            }
            match serde_json::from_str(&line) {
                Ok(command) => obey(command, &inbox, &questions, &cancel),
                Err(error) => {
                    note(&format!("tw: this command is not understood ({error}): {line}"))
                }
            }
        }
    });
}

fn obey(command: Command, inbox: &Inbox, questions: &Questions, cancel: &CancellationToken) {
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
            cancel.cancel();
            true
        }
        Command::Reply { id, answers } => {
            questions.reply(id, answers);
            true
        }
        Command::Answer { id, reply, message } => {
            let answer = match reply {
                Reply::Once => Answer::Once,
                Reply::Always => Answer::Always,
                Reply::Reject => Answer::Reject { message },
            };
            questions.answer(id, answer);
            true
        }
    };
    if !taken {
        note("tw: too many messages wait already; this one was not taken");
    }
}
