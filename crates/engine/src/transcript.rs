//! A conversation as text, for whoever takes notes on it, and the notes in the form in which a model
//! goes on with them.

use std::collections::BTreeSet;

use toolwright_llm::Content;
use toolwright_session::{Ending, Item, Session, StepBlock};

/// Characters of one tool's output in a transcript.
const OUTPUT_CHARS: usize = 2_000;

/// Characters of the user's last words that are kept verbatim.
const PROMPT_CHARS: usize = 8_000;

/// Files that are listed by name.
const FILES_CAP: usize = 100;

/// The items as text of at most `cap` characters; the middle goes first.
pub(crate) fn render(items: &[Item], cap: usize) -> String {
    let parts: Vec<String> =
        items.iter().map(|item| one(item, OUTPUT_CHARS.min(cap / 8))).collect();
    let text = parts.into_iter().filter(|p| !p.is_empty()).collect::<Vec<_>>().join("\n\n");
    if text.len() <= cap {
        return text;
    }
    let head = floor(&text, cap / 4);
    let tail = ceiling(&text, text.len() - cap / 4 * 3);
    format!("{}\n\n[… left out for length …]\n\n{}", &text[..head], &text[tail..])
}

fn one(item: &Item, output_chars: usize) -> String {
    match item {
        Item::Prompt(prompt) => format!("[User]: {}", content_text(&prompt.content)),
        Item::Note(text) => format!("[Note to the agent]: {text}"),
        Item::Step(step) if step.finish.is_none() => String::new(),
        Item::Step(step) => {
            let mut parts = Vec::new();
            for block in &step.whole().blocks {
                match block {
                    StepBlock::Text { text, .. } => parts.push(format!("[Agent]: {text}")),
                    StepBlock::Reasoning { .. } => {}
                    StepBlock::ServerTool { name, .. } => {
                        parts.push(format!("[Agent used the provider's tool]: {name}"));
                    }
                    StepBlock::Call(call) => {
                        let arguments = cut(&call.arguments, output_chars);
                        parts.push(format!("[Agent called]: {}({arguments})", call.name));
                        let Some(outcome) = call.outcome() else { continue };
                        let word =
                            if outcome.ending == Ending::Completed { "Result" } else { "Error" };
                        let output =
                            if call.is_pruned() { "(left out)" } else { outcome.output.as_str() };
                        parts.push(format!("[{word}]: {}", cut(output, output_chars)));
                    }
                }
            }
            parts.join("\n")
        }
    }
}

fn content_text(content: &[Content]) -> String {
    let one = |c: &Content| match c {
        Content::Text { text } => text.clone(),
        Content::Media(media) => {
            format!("[Attached {}: {}]", media.mime, media.name.as_deref().unwrap_or("unnamed"))
        }
    };
    content.iter().map(one).collect::<Vec<_>>().join("\n")
}

/// Notes without a model: what was asked, and the last that was said.
pub(crate) fn digest(earlier: Option<&str>, items: &[Item]) -> String {
    const PROMPTS: usize = 20;
    const EARLIER_CHARS: usize = 8_000;
    let prompts: Vec<String> = items
        .iter()
        .filter_map(|item| match item {
            Item::Prompt(prompt) => Some(cut(&content_text(&prompt.content), 500)),
            Item::Note(_) | Item::Step(_) => None,
        })
        .collect();
    let said = items.iter().rev().find_map(|item| match item {
        Item::Step(step) => step.whole().blocks.iter().rev().find_map(|block| match block {
            StepBlock::Text { text, .. } if !text.trim().is_empty() => Some(cut(text, 2_000)),
            _ => None,
        }),
        Item::Prompt(_) | Item::Note(_) => None,
    });
    let newest = &prompts[prompts.len().saturating_sub(PROMPTS)..];
    let mut text = String::from("## Goal\nWhat the user asked for, oldest first:\n");
    newest.iter().for_each(|prompt| text.push_str(&format!("- {prompt}\n")));
    if let Some(earlier) = earlier {
        text.push_str(&format!("## Earlier notes\n{}\n", cut(earlier, EARLIER_CHARS)));
    }
    if let Some(said) = said {
        text.push_str(&format!("## Under way\nThe last that the agent said:\n{said}\n"));
    }
    text
}

/// The user's newest words, to be repeated as they were.
pub(crate) fn last_prompt(items: &[Item]) -> Option<String> {
    items.iter().rev().find_map(|item| match item {
        Item::Prompt(prompt) => Some(cut(&content_text(&prompt.content), PROMPT_CHARS)),
        Item::Note(_) | Item::Step(_) => None,
    })
}

/// The files that calls declared.
#[derive(Default)]
pub(crate) struct Files {
    read: BTreeSet<String>,
    changed: BTreeSet<String>,
}

impl Files {
    /// Of the session up to this item.
    pub(crate) fn of(session: &Session, until: usize) -> Self {
        let (read, changed) = session.standing().forgotten_files();
        let mut files = Self { read: read.clone(), changed: changed.clone() };
        for item in &session.items()[session.remembered_from().min(until)..until] {
            let Item::Step(step) = item else { continue };
            for call in step.calls() {
                let done = call.outcome().is_some_and(|o| o.ending == Ending::Completed);
                if !done {
                    continue;
                }
                files.read.extend(call.touched().reads.iter().cloned());
                files.changed.extend(call.touched().writes.iter().cloned());
            }
        }
        let changed = &files.changed;
        files.read.retain(|path| !changed.contains(path));
        files
    }
}

/// What a model finds in place of the beginning.
pub(crate) fn summary(notes: &str, files: &Files, prompt: Option<String>) -> String {
    let mut text = format!(
        "The conversation so far was too long to be kept whole. These notes stand for its beginning:\n\n\
         <notes>\n{}\n</notes>",
        notes.trim()
    );
    for (what, paths) in [("changed", &files.changed), ("read", &files.read)] {
        if paths.is_empty() {
            continue;
        }
        let listed: Vec<&str> = paths.iter().take(FILES_CAP).map(String::as_str).collect();
        text.push_str(&format!("\n\nFiles {what} so far: {}", listed.join(", ")));
        if paths.len() > FILES_CAP {
            text.push_str(&format!(" and {} more", paths.len() - FILES_CAP));
        }
    }
    if let Some(prompt) = prompt {
        text.push_str(&format!("\n\nThe user's last message, word for word:\n{prompt}"));
    }
    text.push_str("\n\nGo on with the work from where it stands.");
    text
}

fn cut(text: &str, characters: usize) -> String {
    match text.char_indices().nth(characters) {
        Some((at, _)) => format!("{}… [cut]", &text[..at]),
        None => text.to_owned(),
    }
}

fn floor(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

fn ceiling(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at += 1;
    }
    at
}
