//! What sessions cost, read off their files line by line: a file of any length takes the memory of
//! its longest line.

use std::collections::HashMap;
use std::fs::File;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, BufRead, BufReader};
use std::path::Path;

use serde::Deserialize;
use serde_json::value::RawValue;
use toolwright_llm::{Origin, Usage};

use crate::entry::Header;

/// Something that counts, with its time in milliseconds since 1970.
#[derive(Debug, Clone, PartialEq)]
pub struct Spent {
    pub time: u64,
    pub what: Spending,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Spending {
    Prompt,
    /// An answer, be it one that broke off, or notes that made room. The cost is in US dollars, where the price was known.
    Step {
        model: Option<Origin>,
        usage: Usage,
        cost: Option<f64>,
    },
    /// A call that came to its end, whatever that was.
    Call,
}

/// Reads files in the order in which their sessions began, so that what a copied session repeats of
/// its original is not counted twice.
#[derive(Debug, Default)]
pub struct SpendingReader {
    /// By session: a hash of each thing that counted, in order.
    read: HashMap<String, Vec<u64>>,
}

#[derive(Deserialize)]
struct Line<'a> {
    time: u64,
    #[serde(rename = "type")]
    kind: &'a str,
    #[serde(borrow)]
    data: &'a RawValue,
}

#[derive(Deserialize)]
struct Answer {
    usage: Usage,
    #[serde(default)]
    cost: Option<f64>,
}

impl SpendingReader {
    /// Hands what counts in one file to `take`, and says whether the session is a person's own and not
    /// part of another's work. Lines that cannot be read count for nothing.
    pub fn read(&mut self, path: &Path, take: &mut dyn FnMut(Spent)) -> io::Result<bool> {
        let mut reader = BufReader::new(File::open(path)?);
        let mut bytes = Vec::new();
        let mut session = String::new();
        let mut original = Vec::new();
        let mut hashes: Vec<u64> = Vec::new();
        let mut copied = false;
        let mut at = 0;
        let mut model = None;
        let mut own = true;
        loop {
            bytes.clear();
            if reader.read_until(b'\n', &mut bytes)? == 0 {
                break;
            }
            let Ok(Line { time, kind, data }) = serde_json::from_slice::<Line<'_>>(&bytes) else {
                continue;
            };
            let data = data.get();
            if kind == "session" {
                if let Ok(header) = serde_json::from_str::<Header>(data) {
                    session = header.session;
                    own = header.parent.is_none();
                    let from = header.forked_from.and_then(|from| self.read.get(&from));
                    copied = from.is_some();
                    original = from.cloned().unwrap_or_default();
                }
                continue;
            }
            if kind == "step_started" {
                #[derive(Deserialize)]
                struct Started {
                    model: Origin,
                }
                model = serde_json::from_str::<Started>(data).ok().map(|started| started.model);
                continue;
            }
            let Some(what) = spending(kind, data, &model) else { continue };
            let hash = hash_of(kind, data);
            // A copy begins with one branch of the original, in its order; after the first difference
            // all is its own.
            let again = original[at..].iter().position(|known| copied && *known == hash);
            copied = again.is_some();
            at += again.map_or(0, |again| again + 1);
            hashes.push(hash);
            if !copied {
                take(Spent { time, what });
            }
        }
        self.read.insert(session, hashes);
        Ok(own)
    }
}

fn spending(kind: &str, data: &str, model: &Option<Origin>) -> Option<Spending> {
    Some(match kind {
        "prompt" => Spending::Prompt,
        "call_settled" => Spending::Call,
        "reply" | "step_failed" | "compacted" => {
            let Answer { usage, cost } = serde_json::from_str(data).ok()?;
            Spending::Step { model: model.clone(), usage, cost }
        }
        _ => return None,
    })
}

fn hash_of(kind: &str, data: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    (kind, data).hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Entry, Store};
    use toolwright_llm::{Content, Finish, FinishReason};

    fn origin() -> Origin {
        Origin { provider: "p".to_owned(), model: "m".to_owned() }
    }

    fn turn(prompt: &str, output: u64) -> [Entry; 3] {
        let usage = Usage { output, ..Usage::default() };
        let finish = Finish { reason: FinishReason::Stop, raw: "stop".to_owned() };
        [
            Entry::Prompt {
                content: vec![Content::text(prompt)],
                agent: "build".to_owned(),
                model: origin(),
                steer: false,
                queued: None,
            },
            Entry::StepStarted { model: origin() },
            Entry::Reply { parts: Vec::new(), usage, finish, cost: Some(0.5) },
        ]
    }

    fn session_start(session: &crate::Session, store: &Store) -> crate::EntryId {
        let loaded = store.peek(&session.header.session).unwrap();
        loaded.places()[0].before.unwrap()
    }

    #[test]
    fn copies_count_once_work_for_others_counts_and_garbage_does_not() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::new(folder.path());
        let (mut log, session) = store.create(Path::new("/x"), "test").unwrap();
        for entry in turn("one", 1) {
            log.append(&entry).unwrap();
        }
        // Said differently: the copy holds the newer branch, and the older one was paid for too.
        let first = session_start(&session, &store);
        log.move_to(first, crate::MoveReason::Branched).unwrap();
        for entry in turn("one again", 1000) {
            log.append(&entry).unwrap();
        }
        let (mut copy, _) = store.fork(&session, "test").unwrap();
        for entry in turn("two", 10) {
            copy.append(&entry).unwrap();
        }
        let (mut child, _) = store.create_child(&session.header, "test").unwrap();
        for entry in turn("three", 100) {
            child.append(&entry).unwrap();
        }
        let text = std::fs::read_to_string(log.path()).unwrap();
        std::fs::write(log.path(), format!("{text}not json\n{{\"time\":1,\"type\":\"re")).unwrap();

        let mut reader = SpendingReader::default();
        let (mut prompts, mut output, mut cost, mut own) = (0, 0, 0.0, 0);
        for path in store.files() {
            let is_own = reader
                .read(&path, &mut |spent| match spent.what {
                    Spending::Prompt => prompts += 1,
                    Spending::Step { model, usage, cost: paid } => {
                        assert_eq!(model, Some(origin()));
                        output += usage.output;
                        cost += paid.unwrap();
                    }
                    Spending::Call => {}
                })
                .unwrap();
            own += usize::from(is_own);
        }
        assert_eq!((prompts, output, own), (4, 1111, 2));
        assert!((cost - 2.0_f64).abs() < 1e-9);
    }
}
