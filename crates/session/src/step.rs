//! One answer of a model with a result slot for each of its calls.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use toolwright_llm::{
    Block, CallResult, Content, Failure, Finish, Media, Opaque, Origin, Turn, Usage,
};

use crate::entry::Touched;
use crate::pack::Held;

/// A part of a reply as it is logged: calls have no result yet.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ReplyPart {
    Text {
        text: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        opaque: Opaque,
    },
    Reasoning {
        text: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        opaque: Opaque,
    },
    /// What the provider did by itself.
    ServerTool { name: String, opaque: serde_json::Value },
    Call {
        id: String,
        name: String,
        /// The model's own bytes, whatever they are.
        arguments: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        opaque: Opaque,
    },
}

/// Of a session at work, a step that was sent holds its words in what was sent: see [`Step::whole`].
#[derive(Debug, Clone)]
pub struct Step {
    pub model: Origin,
    pub blocks: Vec<StepBlock>,
    pub usage: Usage,
    /// US dollars, where the price was known.
    pub cost: Option<f64>,
    /// Set once the answer is whole. Without it the step is shown to people and sent to no model.
    pub finish: Option<Finish>,
    pub failure: Option<Box<Failure>>,
    /// What calls spent that are no longer in memory.
    pub(crate) forgotten_cost: f64,
    /// What a model is sent of it, once that can no longer change.
    pub(crate) sent: Option<Arc<Turn>>,
    /// Whether its words are there only.
    pub(crate) packed: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub enum StepBlock {
    Text { text: String, opaque: Opaque },
    Reasoning { text: String, opaque: Opaque },
    ServerTool { name: String, opaque: serde_json::Value },
    Call(Call),
}

/// A call and what became of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    pub id: String,
    pub name: String,
    pub arguments: String,
    pub(crate) opaque: Opaque,
    pub(crate) slot: Slot,
    touched: Touched,
    /// What it said of itself while it ran.
    noted: String,
    pruned: bool,
    pub(crate) held: Held,
}

/// What stands in a request where an output was.
const PRUNED: &str = "[The output was removed to save room. Call the tool again if it is needed.]";

/// Where a call's result will stand. Born pending, moves forward only.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Slot {
    #[default]
    Pending,
    Running {
        summary: String,
        effects: bool,
    },
    Settled(Outcome),
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    pub ending: Ending,
    /// The name of the tool that ran, after repair.
    pub tool: String,
    /// What the model sees.
    pub output: String,
    /// What people see in one line.
    pub title: String,
    /// For people and programs; never sent to a model.
    #[serde(default, skip_serializing_if = "serde_json::Value::is_null")]
    pub details: serde_json::Value,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<Media>,
    #[serde(default)]
    pub duration_ms: u64,
    /// US dollars that the call itself spent on models.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    Completed,
    /// The tool says what went wrong, or the call was not valid.
    Failed,
    Denied,
    /// Not started because something else came first.
    Skipped,
    /// Stopped while it ran; `output` holds what it had produced.
    Interrupted,
}

impl Call {
    pub(crate) fn opaque(&self) -> Option<&serde_json::Value> {
        self.opaque.as_ref()
    }

    pub fn slot(&self) -> &Slot {
        &self.slot
    }

    pub fn outcome(&self) -> Option<&Outcome> {
        match &self.slot {
            Slot::Settled(outcome) => Some(outcome),
            Slot::Pending | Slot::Running { .. } => None,
        }
    }

    /// The paths that it declared, once it was about to run.
    pub fn touched(&self) -> &Touched {
        &self.touched
    }

    /// Whether its output is no longer sent.
    pub fn is_pruned(&self) -> bool {
        self.pruned
    }

    /// Its output is not sent from here on.
    pub(crate) fn prune(&mut self) {
        self.pruned = true;
    }

    /// Lets go of an output that is not sent.
    pub(crate) fn forget_output(&mut self) {
        if let Slot::Settled(outcome) = &mut self.slot {
            outcome.output = String::new();
            outcome.attachments = Vec::new();
        }
    }

    /// Whether what became of it is asked for after its output is forgotten: what was denied, and what
    /// a person agreed to.
    pub(crate) fn is_remembered(&self) -> bool {
        let Some(outcome) = self.outcome() else { return true };
        let details = &outcome.details;
        outcome.ending == Ending::Denied
            || details["denials"].as_array().is_some_and(|list| !list.is_empty())
            || details.get("switch_agent").is_some()
    }

    pub(crate) fn note(&mut self, text: &str) {
        if !self.noted.is_empty() {
            self.noted.push(' ');
        }
        self.noted.push_str(text);
    }

    /// Pending to running. A slot that has moved on stays where it is.
    pub(crate) fn start(&mut self, summary: String, effects: bool, touched: Touched) {
        self.touched = touched;
        if self.slot == Slot::Pending {
            self.slot = Slot::Running { summary, effects };
        }
    }

    /// To settled, once: a late second result is dropped.
    pub(crate) fn settle(&mut self, outcome: Outcome) {
        if !matches!(self.slot, Slot::Settled(_)) {
            self.slot = Slot::Settled(outcome);
        }
    }

    /// What a slot that never settled says to the model, with all that is known.
    pub(crate) fn unsettled_text(&self) -> String {
        let mut text = match &self.slot {
            Slot::Running { summary, effects: true } => {
                let mut text = format!(
                    "This call was interrupted and its outcome is unknown. It was about to: {summary}."
                );
                if !self.touched.writes.is_empty() {
                    text.push_str(&format!(
                        " It may have changed: {}.",
                        listed(&self.touched.writes)
                    ));
                }
                text.push_str(" Look at the present state before doing it again.");
                text
            }
            Slot::Running { effects: false, .. } => "This call was interrupted before it gave a \
                result. It only reads; call it again if the result is needed."
                .to_owned(),
            Slot::Pending | Slot::Settled(_) => {
                "This call was not started: the run was interrupted before its turn came."
                    .to_owned()
            }
        };
        if !self.noted.is_empty() {
            text.push_str(&format!(" {}", self.noted));
        }
        text
    }

    /// What the model is told. A slot that never settled is its own answer, with the same bytes
    /// each time it is sent.
    fn result(&self) -> CallResult {
        match &self.slot {
            Slot::Pending | Slot::Running { .. } => {
                CallResult { content: vec![Content::text(self.unsettled_text())], is_error: true }
            }
            Slot::Settled(outcome) if self.pruned => {
                let is_error = outcome.ending != Ending::Completed;
                CallResult { content: vec![Content::text(PRUNED)], is_error }
            }
            Slot::Settled(outcome) => {
                let mut content = vec![Content::text(outcome.output.clone())];
                content.extend(outcome.attachments.iter().cloned().map(Content::Media));
                CallResult { content, is_error: outcome.ending != Ending::Completed }
            }
        }
    }
}

impl Step {
    pub(crate) fn new(model: Origin) -> Self {
        Self {
            model,
            blocks: Vec::new(),
            usage: Usage::default(),
            cost: None,
            finish: None,
            failure: None,
            forgotten_cost: 0.0,
            sent: None,
            packed: false,
        }
    }

    /// US dollars that its calls spent on models themselves.
    pub fn calls_cost(&self) -> f64 {
        let known = self.calls().filter_map(|call| call.outcome()?.cost);
        self.forgotten_cost + known.sum::<f64>()
    }

    /// Lets go of what was said and done, except for what is counted and asked for later.
    pub(crate) fn forget(&mut self) {
        self.unpack();
        let before = self.calls_cost();
        let kept = std::mem::take(&mut self.blocks).into_iter().filter_map(|block| match block {
            StepBlock::Call(mut call) if call.is_remembered() => {
                call.forget_output();
                (call.arguments, call.opaque) = (String::new(), None);
                Some(StepBlock::Call(call))
            }
            _ => None,
        });
        self.blocks = kept.collect();
        self.blocks.shrink_to_fit();
        // Small, but there are many of them, and each keeps a page of memory from being given back.
        self.model = Origin { provider: String::new(), model: String::new() };
        if let Some(finish) = &mut self.finish {
            finish.raw = String::new();
        }
        self.forgotten_cost = 0.0;
        self.forgotten_cost = before - self.calls_cost();
    }

    pub fn calls(&self) -> impl Iterator<Item = &Call> {
        self.blocks.iter().filter_map(|block| match block {
            StepBlock::Call(call) => Some(call),
            StepBlock::Text { .. } | StepBlock::Reasoning { .. } | StepBlock::ServerTool { .. } => {
                None
            }
        })
    }

    pub(crate) fn call_mut(&mut self, position: usize) -> Option<&mut Call> {
        self.blocks
            .iter_mut()
            .filter_map(|block| match block {
                StepBlock::Call(call) => Some(call),
                StepBlock::Text { .. }
                | StepBlock::Reasoning { .. }
                | StepBlock::ServerTool { .. } => None,
            })
            .nth(position)
    }

    pub(crate) fn set_parts(&mut self, parts: Vec<ReplyPart>) {
        let block = |part| match part {
            ReplyPart::Text { text, opaque } => StepBlock::Text { text, opaque },
            ReplyPart::Reasoning { text, opaque } => StepBlock::Reasoning { text, opaque },
            ReplyPart::ServerTool { name, opaque } => StepBlock::ServerTool { name, opaque },
            ReplyPart::Call { id, name, arguments, opaque } => {
                let (slot, touched, noted) = (Slot::Pending, Touched::default(), String::new());
                let (pruned, held) = (false, Held::default());
                let call = Call { id, name, arguments, opaque, slot, touched, noted, pruned, held };
                StepBlock::Call(call)
            }
        };
        self.blocks = parts.into_iter().map(block).collect();
    }

    /// The step as a model sees it, or nothing if its answer never became whole.
    pub(crate) fn to_turn(&self) -> Option<Turn> {
        self.finish.as_ref()?;
        let blocks = self.blocks.iter().map(|block| match block {
            StepBlock::Text { text, opaque } => {
                Block::Text { text: text.clone(), opaque: opaque.clone() }
            }
            StepBlock::ServerTool { opaque, .. } => Block::ServerTool { opaque: opaque.clone() },
            StepBlock::Reasoning { text, opaque } => {
                Block::Reasoning { text: text.clone(), opaque: opaque.clone() }
            }
            StepBlock::Call(call) => Block::Call {
                opaque: call.opaque.clone(),
                id: call.id.clone(),
                name: sendable_name(&call.name),
                arguments: sendable_arguments(&call.arguments),
                result: call.result(),
            },
        });
        Some(Turn::Assistant { origin: self.model.clone(), blocks: blocks.collect() })
    }
}

/// The first few paths, by name.
fn listed(paths: &[String]) -> String {
    const SHOWN: usize = 20;
    let mut text = paths.iter().take(SHOWN).map(String::as_str).collect::<Vec<_>>().join(", ");
    if paths.len() > SHOWN {
        text.push_str(&format!(" and {} more", paths.len() - SHOWN));
    }
    text
}

/// Providers accept letters, digits, `_` and `-`; a model may have written anything.
fn sendable_name(name: &str) -> String {
    let clean: String = name
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' })
        .take(64)
        .collect();
    if clean.is_empty() { "unnamed".to_owned() } else { clean }
}

/// Providers want an object. What was none goes back inside one, so that the model sees its own
/// mistake.
fn sendable_arguments(arguments: &str) -> Box<RawValue> {
    let text = arguments.trim();
    let as_sent =
        text.starts_with('{').then(|| RawValue::from_string(text.to_owned()).ok()).flatten();
    as_sent.unwrap_or_else(|| {
        let wrapped = if text.is_empty() {
            serde_json::json!({})
        } else {
            serde_json::json!({ "malformed_arguments": text })
        };
        serde_json::value::to_raw_value(&wrapped).unwrap_or_else(|_| RawValue::NULL.to_owned())
    })
}
