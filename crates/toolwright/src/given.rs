//! What a session's conversation holds already and need not be given again.

use std::path::PathBuf;

use toolwright_session::{Call, Item, Session, StepBlock};

/// The instruction files that came with earlier reads which a model still sees.
pub(crate) fn given_instructions(session: &Session) -> Vec<PathBuf> {
    let blocks = session.items().iter().skip(session.sent_from()).flat_map(|item| match item {
        Item::Step(step) => step.blocks.as_slice(),
        Item::Prompt(_) | Item::Note(_) => &[],
    });
    let calls = blocks.filter_map(|block| match block {
        StepBlock::Call(call) if !call.is_pruned() => Some(call),
        _ => None,
    });
    calls.filter_map(Call::outcome).flat_map(loaded).collect()
}

fn loaded(outcome: &toolwright_session::Outcome) -> Vec<PathBuf> {
    let paths = outcome.details["loaded"].as_array();
    paths.into_iter().flatten().filter_map(|path| path.as_str()).map(PathBuf::from).collect()
}
