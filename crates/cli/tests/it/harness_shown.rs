//! What a process of the crash harness has shown, and what its session says of it.

use std::collections::HashSet;

use serde_json::Value;
use toolwright::session::{Call, Ending, Item, Session, Slot, Step, StepBlock};

/// What whoever watched has seen: pieces of answers, calls that began, and results.
#[derive(Debug, Default)]
pub(crate) struct Shown {
    pub(crate) words: HashSet<String>,
    pub(crate) begun: HashSet<String>,
    pub(crate) results: Vec<(String, String)>,
}

impl Shown {
    /// On standard output, for people or for programs.
    pub(crate) fn on(stdout: &str) -> Self {
        let mut shown = Self::default();
        let for_people = stdout.lines().filter(|line| !line.starts_with('{'));
        let mut text: String = for_people.flat_map(|line| [line, "\n"]).collect();
        // A last line that is cut off was not shown.
        for line in stdout.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
            let string = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            match line["type"].as_str() {
                Some("text_delta") => text.push_str(&string(&line["delta"])),
                Some("tool_start") => {
                    shown.begun.insert(string(&line["callID"]));
                }
                Some("tool_use") => {
                    let part = &line["part"];
                    if part["state"]["status"] == "completed" {
                        let output = string(&part["state"]["output"]);
                        shown.results.push((string(&part["callID"]), output));
                    }
                }
                _ => text.push(' '),
            }
        }
        shown.words = words(&text);
        shown
    }
}

/// The pieces of answers that are in a text.
pub(crate) fn words(text: &str) -> HashSet<String> {
    let words = text.split_whitespace().filter(|word| word.starts_with("shown-"));
    words.map(str::to_owned).collect()
}

fn steps(session: &Session) -> impl Iterator<Item = &Step> {
    session.items().iter().filter_map(|item| match item {
        Item::Step(step) => Some(step),
        Item::Prompt(_) | Item::Note(_) => None,
    })
}

pub(crate) fn said(session: &Session) -> String {
    let texts = steps(session).flat_map(|step| &step.blocks).filter_map(|block| match block {
        StepBlock::Text { text, .. } => Some(format!("{text} ")),
        _ => None,
    });
    texts.collect()
}

pub(crate) fn completed(session: &Session) -> Vec<(String, String)> {
    let done = |call: &Call| {
        let outcome = call.outcome().filter(|outcome| outcome.ending == Ending::Completed)?;
        Some((call.id.clone(), outcome.output.clone()))
    };
    steps(session).flat_map(Step::calls).filter_map(done).collect()
}

/// The calls that the session says have begun.
pub(crate) fn begun(session: &Session) -> HashSet<String> {
    let begun = |call: &&Call| match call.slot() {
        Slot::Pending => false,
        Slot::Running { .. } => true,
        Slot::Settled(outcome) => outcome.ending != Ending::Skipped,
    };
    steps(session).flat_map(Step::calls).filter(begun).map(|call| call.id.clone()).collect()
}
