//! A session that was, as blocks.

use toolwright::llm::Content;
use toolwright::session::{Item, Session, Slot, StepBlock};

use crate::blocks::{Block, Call, Done, Level, UNSEEN};

/// Blocks that are made of a long session; what came before them is in its log.
const CAP: usize = 4_000;

pub(super) fn text_of(content: &[Content]) -> String {
    let texts: Vec<&str> = content
        .iter()
        .map(|part| match part {
            Content::Text { text } => text.as_str(),
            Content::Media(_) => "[attachment]",
        })
        .collect();
    texts.join("\n")
}

/// The last of them, and how many came before.
pub(super) fn blocks(session: &Session) -> (Vec<Block>, usize) {
    let mut blocks = Vec::new();
    let mut left_out = 0;
    for (item, place) in session.items().iter().zip(session.places()) {
        match item {
            Item::Prompt(prompt) => {
                blocks.push(Block::user(said(&prompt.content), Some(place.time)));
            }
            // Ours to the model, not to people.
            Item::Note(_) => {}
            Item::Step(step) => {
                for block in &step.blocks {
                    match block {
                        StepBlock::Text { text, .. } if !text.trim().is_empty() => {
                            blocks.push(Block::Text(text.clone()));
                        }
                        StepBlock::Reasoning { text, .. } if !text.trim().is_empty() => {
                            blocks.push(Block::Thought { text: text.clone(), seconds: 0 });
                        }
                        StepBlock::Call(call) => blocks.push(Block::Call(called(call))),
                        _ => {}
                    }
                }
                if let Some(failure) = &step.failure {
                    blocks.push(Block::note(Level::Problem, failure.message.clone()));
                }
            }
        }
        if blocks.len() > CAP * 2 {
            blocks.drain(..CAP);
            left_out += CAP;
        }
    }
    if blocks.len() > CAP {
        let more = blocks.len() - CAP;
        blocks.drain(..more);
        left_out += more;
    }
    (blocks, left_out)
}

/// What the person said, without the files that came with it.
pub(super) fn said(content: &[Content]) -> String {
    let own = content.iter().filter(|part| match part {
        Content::Text { text } => !text.starts_with("<file path="),
        Content::Media(_) => true,
    });
    text_of(&own.cloned().collect::<Vec<_>>())
}

fn called(call: &toolwright::session::Call) -> Call {
    let done = call.outcome().map(Done::from);
    let summary = match call.slot() {
        Slot::Running { summary, .. } => summary.clone(),
        Slot::Pending => String::new(),
        Slot::Settled(outcome) => match outcome.tool.as_str() {
            "bash" => serde_json::from_str::<serde_json::Value>(&call.arguments)
                .ok()
                .and_then(|v| v["command"].as_str().map(str::to_owned))
                .unwrap_or_else(|| outcome.title.clone()),
            _ => outcome.title.clone(),
        },
    };
    let tool = call.outcome().map_or_else(|| call.name.clone(), |outcome| outcome.tool.clone());
    Call { tool, summary, progress: String::new(), started: UNSEEN, done }
}
