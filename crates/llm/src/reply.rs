//! Puts an answer together from its events.

use serde_json::Value;

use crate::{Event, Finish, Usage};

/// An answer as far as it has arrived.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Reply {
    pub blocks: Vec<ReplyBlock>,
    pub usage: Usage,
    pub finish: Option<Finish>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct ReplyBlock {
    pub kind: ReplyKind,
    /// The maker's own data (a signature, an item's id): goes back unchanged, to the maker only.
    pub opaque: Option<Value>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum ReplyKind {
    Text(String),
    Reasoning(String),
    Refusal(String),
    Call {
        id: String,
        name: String,
        arguments: String,
    },
    /// Done by the provider; `opaque` is what it did.
    ServerTool {
        kind: String,
        id: Option<String>,
        name: Option<String>,
    },
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
                if let ReplyKind::Text(text) = self.kind(*block, || ReplyKind::Text(String::new()))
                {
                    text.push_str(delta);
                }
            }
            Event::Reasoning { block, delta } => {
                let empty = || ReplyKind::Reasoning(String::new());
                if let ReplyKind::Reasoning(text) = self.kind(*block, empty) {
                    text.push_str(delta);
                }
            }
            Event::Refusal { block, delta } => {
                let empty = || ReplyKind::Refusal(String::new());
                if let ReplyKind::Refusal(text) = self.kind(*block, empty) {
                    text.push_str(delta);
                }
            }
            Event::CallStart { block, id, name } => {
                self.kind(*block, || ReplyKind::Call {
                    id: id.clone(),
                    name: name.clone(),
                    arguments: String::new(),
                });
            }
            Event::CallArguments { block, delta } => {
                let found = self.blocks.iter_mut().rfind(|b| b.number == *block);
                if let Some(ReplyKind::Call { arguments, .. }) = found.map(|b| &mut b.block.kind) {
                    arguments.push_str(delta);
                }
            }
            Event::CallReplace { block, id: new_id, name: new_name, arguments: whole } => {
                let found = self.blocks.iter_mut().rfind(|b| b.number == *block);
                if let Some(ReplyKind::Call { id, name, arguments }) =
                    found.map(|b| &mut b.block.kind)
                {
                    id.clone_from(new_id);
                    if let Some(whole) = whole {
                        arguments.clone_from(whole);
                    }
                    if let Some(new_name) = new_name {
                        name.clone_from(new_name);
                    }
                }
            }
            Event::ServerTool { block, kind, id, name, opaque } => {
                let (kind, id, name) = (kind.clone(), id.clone(), name.clone());
                let kind = ReplyKind::ServerTool { kind, id, name };
                let block_now = ReplyBlock { kind, opaque: Some(opaque.clone()) };
                self.blocks.push(Building { number: *block, block: block_now, ended: true });
            }
            Event::BlockEnd { block, opaque } => self.end(*block, opaque.as_ref()),
            Event::Usage { usage, .. } => self.usage = *usage,
            Event::Finish(finish) => self.finish = Some(finish.clone()),
            // Retries only come while nothing has arrived, so there is nothing to take back.
            Event::Started { .. }
            | Event::Notice(_)
            | Event::Retrying { .. }
            | Event::Failed(_) => {}
        }
    }

    pub fn usage(&self) -> Usage {
        self.usage
    }

    /// Id, name and arguments of the call in this block, if it is whole and is the answer's call
    /// number `position`.
    pub fn whole_call(&self, block: u32, position: usize) -> Option<(&str, &str, &str)> {
        let calls = self.blocks.iter().filter(|b| matches!(b.block.kind, ReplyKind::Call { .. }));
        let found = calls.into_iter().nth(position).filter(|b| b.ended && b.number == block)?;
        match &found.block.kind {
            ReplyKind::Call { id, name, arguments } => Some((id, name, arguments)),
            _ => None,
        }
    }

    /// The answer. Calls whose block never ended are left out: they must not run.
    pub fn build(self) -> Reply {
        let whole = |b: &Building| b.ended || !matches!(b.block.kind, ReplyKind::Call { .. });
        Reply {
            blocks: self.blocks.into_iter().filter(whole).map(|b| b.block).collect(),
            usage: self.usage,
            finish: self.finish,
        }
    }

    fn kind(&mut self, number: u32, make: impl FnOnce() -> ReplyKind) -> &mut ReplyKind {
        // Deltas nearly always belong to the newest block: look from the end.
        let at = self.blocks.iter().rposition(|b| b.number == number).unwrap_or_else(|| {
            let block = ReplyBlock { kind: make(), opaque: None };
            self.blocks.push(Building { number, block, ended: false });
            self.blocks.len() - 1
        });
        &mut self.blocks[at].block.kind
    }

    fn end(&mut self, number: u32, opaque: Option<&Value>) {
        let found = self.blocks.iter_mut().rfind(|b| b.number == number);
        match (found, opaque) {
            (Some(building), opaque) => {
                building.ended = true;
                if opaque.is_some() {
                    building.block.opaque = opaque.cloned();
                }
            }
            // Redacted thinking has no text and still must go back.
            (None, Some(opaque)) => {
                let kind = ReplyKind::Reasoning(String::new());
                let block = ReplyBlock { kind, opaque: Some(opaque.clone()) };
                self.blocks.push(Building { number, block, ended: true });
            }
            (None, None) => {}
        }
    }
}
