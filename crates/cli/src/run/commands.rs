//! What a program says to a run while it works: one JSON object a line on standard input.

use std::io::{BufRead, Read};
use std::sync::Arc;

use serde::Deserialize;
use tokio::sync::mpsc;
use toolwright::llm::Content;
use toolwright::permission::{Extent, Grant, Mode, Scope};
use toolwright::{Answer, CancellationToken, Event, Inbox, PermissionGate, Questions};

use crate::terminal::{note, one_line};

/// Bytes of one command: as much as a prompt may have.
const LINE_CAP_BYTES: u64 = 1 << 20;

/// Characters of a bad line that are shown.
const SHOWN_CHARS: usize = 200;

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

fn read(line: &[u8]) -> Result<Option<Command>, String> {
    if line.trim_ascii().is_empty() {
        return Ok(None);
    }
    let shown = || one_line(&String::from_utf8_lossy(line), SHOWN_CHARS);
    serde_json::from_slice(line).map(Some).map_err(|error| format!("({error}): {}", shown()))
}

/// Nothing at the end. One that is too long is read to its end and not kept.
fn next_line(input: &mut impl BufRead) -> Option<Result<Vec<u8>, String>> {
    let mut line = Vec::new();
    let count = input.by_ref().take(LINE_CAP_BYTES).read_until(b'\n', &mut line).ok()?;
    if count == 0 {
        return None;
    }
    if line.len() as u64 == LINE_CAP_BYTES && !line.ends_with(b"\n") {
        input.skip_until(b'\n').ok()?;
        return Some(Err(format!("(it has more than {} KiB)", LINE_CAP_BYTES >> 10)));
    }
    Some(Ok(line))
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
    /// be interrupted, and the run must be. Behind its end there is nobody to answer questions.
    pub fn listen(self) {
        std::thread::spawn(move || {
            let mut input = std::io::stdin().lock();
            while let Some(line) = next_line(&mut input) {
                match line.and_then(|line| read(&line)) {
                    Ok(Some(command)) => self.obey(command),
                    Ok(None) => {}
                    Err(problem) => note(&format!("tw: this command is not understood {problem}")),
                }
            }
            self.questions.nobody_answers();
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bad_line_takes_no_other_with_it() {
        let cap = usize::try_from(LINE_CAP_BYTES).unwrap();
        let mut bytes = b"\n{\"type\":\"\xff\"}\n".to_vec();
        bytes.extend(vec![b'x'; 3 * cap]);
        bytes.extend(b"\n{\"type\":\"abort\"}");
        let mut input = std::io::Cursor::new(bytes);
        let mut next = || next_line(&mut input).map(|line| line.and_then(|line| read(&line)));
        assert!(matches!(next(), Some(Ok(None))));
        assert!(matches!(next(), Some(Err(problem)) if problem.contains('\u{fffd}')));
        assert!(matches!(next(), Some(Err(problem)) if problem.contains("1024 KiB")));
        assert!(matches!(next(), Some(Ok(Some(Command::Abort {})))));
        assert!(next().is_none());
    }
}
