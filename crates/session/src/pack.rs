//! A step that was sent is in memory once: its words stand in the turn that models are sent, and the
//! step itself keeps what nobody is sent. [`Step::whole`] puts both together again.

use std::borrow::Cow;
use std::sync::Arc;

use toolwright_llm::{Block, CallResult, Content, Origin, Turn};

use crate::step::{Call, Slot, Step, StepBlock};

/// Which parts of a call stand in the turn only.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Held {
    id: bool,
    name: bool,
    arguments: bool,
    opaque: bool,
    tool: bool,
    output: bool,
}

impl Step {
    /// The step with all that it says. Of a session that is at work, steps that were sent are empty
    /// without this.
    pub fn whole(&self) -> Cow<'_, Self> {
        match &self.sent {
            Some(turn) if self.packed => Cow::Owned(self.put_together(turn)),
            _ => Cow::Borrowed(self),
        }
    }

    /// What a model is sent of it, made once. Only for a step that can no longer change.
    pub(crate) fn settled_turn(&mut self) -> Option<Arc<Turn>> {
        if self.sent.is_none() {
            self.sent = self.to_turn().map(Arc::new);
        }
        self.sent.clone()
    }

    /// Lets go of what its turn says as well.
    pub(crate) fn pack(&mut self) {
        let Some(turn) = self.sent.clone().filter(|_| !self.packed) else { return };
        let Turn::Assistant { origin, blocks } = turn.as_ref() else { return };
        if blocks.len() != self.blocks.len() || *origin != self.model {
            return;
        }
        let own = std::mem::take(&mut self.blocks);
        let kept = own.into_iter().zip(blocks).filter_map(|(own, sent)| match own {
            StepBlock::Text { .. } | StepBlock::Reasoning { .. } => None,
            StepBlock::ServerTool { name, .. } => {
                Some(StepBlock::ServerTool { name, opaque: serde_json::Value::Null })
            }
            StepBlock::Call(mut call) => {
                call.pack(sent);
                Some(StepBlock::Call(call))
            }
        });
        self.blocks = kept.collect();
        // They are made in place, and there are many of them.
        self.blocks.shrink_to_fit();
        self.model = Origin { provider: String::new(), model: String::new() };
        self.packed = true;
    }

    /// As it was before it was sent: what is sent of it will be made anew.
    pub(crate) fn unpack(&mut self) {
        if let Cow::Owned(whole) = self.whole() {
            *self = whole;
        }
        self.sent = None;
    }

    fn put_together(&self, turn: &Turn) -> Self {
        let Turn::Assistant { origin, blocks: sent } = turn else { return self.clone() };
        let mut own = self.blocks.iter().cloned();
        let blocks = sent.iter().filter_map(|block| match block {
            Block::Text { text, opaque } => {
                Some(StepBlock::Text { text: text.clone(), opaque: opaque.clone() })
            }
            Block::Reasoning { text, opaque } => {
                Some(StepBlock::Reasoning { text: text.clone(), opaque: opaque.clone() })
            }
            Block::ServerTool { opaque } => match own.next()? {
                StepBlock::ServerTool { name, .. } => {
                    Some(StepBlock::ServerTool { name, opaque: opaque.clone() })
                }
                other => Some(other),
            },
            Block::Call { .. } => match own.next()? {
                StepBlock::Call(mut call) => {
                    call.unpack(block);
                    Some(StepBlock::Call(call))
                }
                other => Some(other),
            },
        });
        let blocks = blocks.collect();
        let (model, sent, packed) = (origin.clone(), None, false);
        let Self { usage, cost, ref finish, ref failure, forgotten_cost, .. } = *self;
        let (finish, failure) = (finish.clone(), failure.clone());
        Self { model, blocks, usage, cost, finish, failure, forgotten_cost, sent, packed }
    }
}

/// Steps are the same if they say the same, wherever their words are kept.
impl PartialEq for Step {
    fn eq(&self, other: &Self) -> bool {
        let (own, other) = (self.whole(), other.whole());
        own.model == other.model
            && own.blocks == other.blocks
            && own.usage == other.usage
            && own.cost == other.cost
            && own.finish == other.finish
            && own.failure == other.failure
            && own.forgotten_cost == other.forgotten_cost
    }
}

/// Empties `own` where the turn has the same.
fn give_away<T: Default + PartialEq>(own: &mut T, is_same: bool) -> bool {
    let gives = is_same && *own != T::default();
    if gives {
        *own = T::default();
    }
    gives
}

fn output_of(result: &CallResult) -> Option<&str> {
    match result.content.first()? {
        Content::Text { text } => Some(text),
        Content::Media(_) => None,
    }
}

impl Call {
    fn pack(&mut self, sent: &Block) {
        let Block::Call { opaque, id, name, arguments, result } = sent else { return };
        let asked_for = self.is_remembered();
        let same = self.id == *id;
        self.held.id = give_away(&mut self.id, same);
        let same = self.name == *name;
        self.held.name = give_away(&mut self.name, same);
        let same = self.arguments == arguments.get();
        self.held.arguments = give_away(&mut self.arguments, same);
        let same = self.opaque == *opaque;
        self.held.opaque = give_away(&mut self.opaque, same);
        if let Slot::Settled(outcome) = &mut self.slot {
            let same = outcome.tool == *name && !asked_for;
            self.held.tool = give_away(&mut outcome.tool, same);
            let same = output_of(result) == Some(outcome.output.as_str());
            self.held.output = give_away(&mut outcome.output, same);
        }
    }

    fn unpack(&mut self, sent: &Block) {
        let Block::Call { opaque, id, name, arguments, result } = sent else { return };
        let held = std::mem::take(&mut self.held);
        if held.id {
            self.id.clone_from(id);
        }
        if held.name {
            self.name.clone_from(name);
        }
        if held.arguments {
            arguments.get().clone_into(&mut self.arguments);
        }
        if held.opaque {
            self.opaque.clone_from(opaque);
        }
        if let Slot::Settled(outcome) = &mut self.slot {
            if held.tool {
                outcome.tool.clone_from(name);
            }
            if held.output {
                output_of(result).unwrap_or_default().clone_into(&mut outcome.output);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use toolwright_llm::{Finish, FinishReason};

    use super::*;
    use crate::step::{Ending, Outcome, ReplyPart};

    fn outcome(output: &str) -> Outcome {
        Outcome {
            ending: Ending::Completed,
            tool: "bash".into(),
            output: output.into(),
            title: "t".into(),
            details: json!({"exit": 0}),
            attachments: Vec::new(),
            duration_ms: 1,
            cost: Some(0.5),
        }
    }

    fn step(names: &[(&str, &str, &str)]) -> Step {
        let mut step = Step::new(Origin { provider: "p".into(), model: "m".into() });
        let call = |(name, arguments, _): &(&str, &str, &str)| ReplyPart::Call {
            id: format!("id_{name}"),
            name: (*name).into(),
            arguments: (*arguments).into(),
            opaque: Some(json!("signed")),
        };
        let mut parts = vec![
            ReplyPart::Reasoning { text: "hm".into(), opaque: Some(json!({"s": 1})) },
            ReplyPart::ServerTool { name: "search".into(), opaque: json!([1]) },
            ReplyPart::Text { text: "said".into(), opaque: None },
        ];
        parts.extend(names.iter().map(call));
        step.set_parts(parts);
        step.finish = Some(Finish { reason: FinishReason::ToolCalls, raw: "x".into() });
        for (position, (_, _, output)) in names.iter().enumerate() {
            step.call_mut(position).unwrap().settle(outcome(output));
        }
        step
    }

    #[test]
    fn a_step_that_was_packed_is_put_together_as_it_was_whatever_a_model_wrote() {
        let long = "a long output ".repeat(100);
        let calls: &[(&str, &str, &str)] = &[
            ("bash", "{\"a\":1}", &long),
            ("", "", ""),
            ("unnamed", "{}", "x"),
            ("odd name", " {\"a\": 1} ", "[The output was removed"),
            ("broken", "{\"a\":", "no JSON"),
        ];
        let own = step(calls);
        let mut packed = own.clone();
        let sent = packed.settled_turn().unwrap();
        packed.pack();
        assert!(packed.packed && packed.blocks.len() == 6, "texts are gone");
        assert!(!format!("{:?}", packed.blocks).contains("a long output"));
        assert_eq!(packed, own);
        assert_eq!(packed.whole().blocks, own.blocks);
        assert!(Arc::ptr_eq(&packed.settled_turn().unwrap(), &sent), "it is not made again");
        // What people count on stays where it is.
        assert_eq!(packed.calls_cost(), own.calls_cost());
        assert_eq!(packed.calls().next().unwrap().outcome().unwrap().details, json!({"exit": 0}));
        packed.unpack();
        assert_eq!((packed.blocks.len(), packed.packed), (8, false));
        let (mut forgotten, mut same) = (own.clone(), own);
        forgotten.settled_turn();
        forgotten.pack();
        forgotten.forget();
        same.forget();
        assert_eq!(forgotten, same);
    }
}
