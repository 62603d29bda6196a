//! Puts an answer together from its events.

use crate::{Event, Finish, Usage};

/// An answer as far as it has arrived.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Reply {
    pub blocks: Vec<ReplyBlock>,
    pub usage: Usage,
    pub finish: Option<Finish>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum ReplyBlock {
    Text(String),
    Reasoning { text: String, opaque: Option<serde_json::Value> },
    Call { id: String, name: String, arguments: String },
}

#[derive(Debug, Default)]
pub struct ReplyBuilder {
    blocks: Vec<Building>,
    usage: Usage,
    finish: Option<Finish>,
}

#[derive(Debug)]
struct Building {
    number: u32,
    block: ReplyBlock,
    ended: bool,
}

impl ReplyBuilder {
    pub fn apply(&mut self, event: &Event) {
        match event {
            Event::Text { block, delta } => {
                let slot = self.block(*block, || ReplyBlock::Text(String::new()));
                if let ReplyBlock::Text(text) = slot {
                    text.push_str(delta);
                }
            }
            Event::Reasoning { block, delta } => {
                let empty = || ReplyBlock::Reasoning { text: String::new(), opaque: None };
                if let ReplyBlock::Reasoning { text, .. } = self.block(*block, empty) {
                    text.push_str(delta);
                }
            }
            Event::CallStart { block, id, name } => {
                self.block(*block, || ReplyBlock::Call {
                    id: id.clone(),
                    name: name.clone(),
                    arguments: String::new(),
                });
            }
            Event::CallArguments { block, delta } => {
                let found = self.blocks.iter_mut().find(|b| b.number == *block);
                if let Some(Building { block: ReplyBlock::Call { arguments, .. }, .. }) = found {
                    arguments.push_str(delta);
                }
            }
            Event::BlockEnd { block, opaque } => self.end(*block, opaque.as_ref()),
            Event::Usage(usage) => self.usage = *usage,
            Event::Finish(finish) => self.finish = Some(finish.clone()),
            // Only sent while nothing has arrived, so there is nothing to take back.
            Event::Retrying { .. } | Event::Failed(_) => {}
        }
    }

    /// The answer. Calls whose block never ended are left out: they must not run.
    pub fn build(self) -> Reply {
        let whole = |b: &Building| b.ended || !matches!(b.block, ReplyBlock::Call { .. });
        Reply {
            blocks: self.blocks.into_iter().filter(whole).map(|b| b.block).collect(),
            usage: self.usage,
            finish: self.finish,
        }
    }

    fn block(&mut self, number: u32, make: impl FnOnce() -> ReplyBlock) -> &mut ReplyBlock {
        // Deltas nearly always belong to the newest block: look from the end.
        let at = self.blocks.iter().rposition(|b| b.number == number).unwrap_or_else(|| {
            self.blocks.push(Building { number, block: make(), ended: false });
            self.blocks.len() - 1
        });
        &mut self.blocks[at].block
    }

    fn end(&mut self, number: u32, opaque: Option<&serde_json::Value>) {
        let found = self.blocks.iter_mut().rfind(|b| b.number == number);
        match (found, opaque) {
            (Some(building), opaque) => {
                building.ended = true;
                if let ReplyBlock::Reasoning { opaque: kept, .. } = &mut building.block {
                    *kept = opaque.cloned();
                }
            }
            // Redacted thinking has no text and still must go back.
            (None, Some(opaque)) => self.blocks.push(Building {
                number,
                block: ReplyBlock::Reasoning { text: String::new(), opaque: Some(opaque.clone()) },
                ended: true,
            }),
            (None, None) => {}
        }
    }
}
