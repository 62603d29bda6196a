//! Splits thinking that a model writes into its text, between `<think>` and `</think>`, as servers do
//! that know nothing of reasoning.

use crate::Event;
use crate::event::{push_reasoning, push_text};

const OPEN: &str = "<think>";
const CLOSE: &str = "</think>";

/// Where in the answer we are. Only an answer that *begins* with the mark is split: the same word
/// later in a text is text.
#[derive(Debug, Default)]
pub(crate) enum ThinkSplitter {
    #[default]
    Start,
    /// The beginning of the text, which may become the mark.
    Undecided(u32, String),
    /// Inside; what may be the beginning of the closing mark is held back.
    Thinking(u32, String),
    /// Behind the thoughts; the blank lines there are not part of the answer.
    Behind,
    Text,
}

impl ThinkSplitter {
    /// Passes events through, with thoughts taken out of the text. Blocks are renumbered to make
    /// room for the thoughts' own.
    pub(crate) fn split(&mut self, events: Vec<Event>) -> Vec<Event> {
        let mut out = Vec::with_capacity(events.len());
        for event in events {
            match event {
                Event::Text { block, delta } => self.text(block, &delta, &mut out),
                Event::BlockEnd { .. } | Event::CallStart { .. } | Event::Finish(_) => {
                    self.flush(&mut out);
                    out.push(event);
                }
                other => out.push(other),
            }
        }
        out
    }

    fn text(&mut self, block: u32, delta: &str, out: &mut Vec<Event>) {
        match std::mem::replace(self, Self::Text) {
            Self::Text => push_text(out, block, delta),
            Self::Behind => self.behind(block, delta, out),
            Self::Start => self.decide(block, delta.to_owned(), out),
            Self::Undecided(block, held) => self.decide(block, held + delta, out),
            Self::Thinking(block, held) => self.think(block, held + delta, out),
        }
    }

    fn decide(&mut self, block: u32, held: String, out: &mut Vec<Event>) {
        let start = held.trim_start();
        if let Some(thought) = start.strip_prefix(OPEN) {
            self.think(block, thought.to_owned(), out);
        } else if OPEN.starts_with(start) {
            *self = Self::Undecided(block, held);
        } else {
            push_text(out, block, &held);
        }
    }

    fn think(&mut self, block: u32, held: String, out: &mut Vec<Event>) {
        if let Some((thought, rest)) = held.split_once(CLOSE) {
            push_reasoning(out, thoughts(block), thought);
            out.push(Event::BlockEnd { block: thoughts(block), opaque: None });
            self.behind(block, rest, out);
            return;
        }
        // Hold back what may be the beginning of the closing mark.
        let keep = (1..CLOSE.len()).rev().find(|n| held.ends_with(&CLOSE[..*n])).unwrap_or(0);
        push_reasoning(out, thoughts(block), &held[..held.len() - keep]);
        *self = Self::Thinking(block, held[held.len() - keep..].to_owned());
    }

    fn behind(&mut self, block: u32, text: &str, out: &mut Vec<Event>) {
        let text = text.trim_start();
        *self = if text.is_empty() { Self::Behind } else { Self::Text };
        push_text(out, block, text);
    }

    fn flush(&mut self, out: &mut Vec<Event>) {
        match std::mem::replace(self, Self::Text) {
            Self::Undecided(block, held) => push_text(out, block, &held),
            Self::Thinking(block, held) => {
                push_reasoning(out, thoughts(block), &held);
                out.push(Event::BlockEnd { block: thoughts(block), opaque: None });
            }
            Self::Start => *self = Self::Start,
            Self::Behind | Self::Text => {}
        }
    }
}

/// A number that no block of the answer has.
fn thoughts(block: u32) -> u32 {
    u32::MAX - block
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Finish, FinishReason, ReplyBuilder, ReplyKind};

    fn split(text: &str, size: usize) -> (String, String) {
        let mut splitter = ThinkSplitter::default();
        let mut builder = ReplyBuilder::default();
        let characters: Vec<char> = text.chars().collect();
        let mut events: Vec<Event> = characters
            .chunks(size)
            .map(|c| Event::Text { block: 0, delta: c.iter().collect() })
            .collect();
        events.push(Event::Finish(Finish { reason: FinishReason::Stop, raw: String::new() }));
        for event in events {
            splitter.split(vec![event]).iter().for_each(|e| builder.apply(e));
        }
        let (mut said, mut thought) = (String::new(), String::new());
        for block in builder.build().blocks {
            match block.kind {
                ReplyKind::Text(text) => said.push_str(&text),
                ReplyKind::Reasoning(text) => thought.push_str(&text),
                _ => {}
            }
        }
        (thought, said)
    }

    #[test]
    fn thoughts_at_the_beginning_are_taken_out_whatever_the_split() {
        for (text, thought, said) in [
            ("<think>hm</think>\n\nyes", "hm", "yes"),
            ("\n<think>a </thi b</think>c", "a </thi b", "c"),
            ("no <think>x</think>", "", "no <think>x</think>"),
            ("<thin", "", "<thin"),
            ("<think>never closed", "never closed", ""),
            ("<think></think>", "", ""),
            ("<b>bold</b>", "", "<b>bold</b>"),
            ("", "", ""),
        ] {
            for size in [1, 2, 3, 100] {
                assert_eq!(
                    split(text, size),
                    (thought.to_owned(), said.to_owned()),
                    "{text} by {size}"
                );
            }
        }
    }
}
