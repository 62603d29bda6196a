//! A model's answer in the record's form, and what is odd about it.

use toolwright_llm::{
    Event as ModelEvent, Failure, FailureKind, FinishReason, ReplyBlock, ReplyKind,
};
use toolwright_session::{ReplyPart, Session};
use toolwright_tool::CallRequest;

/// How an answer without calls ended, where that is no proper end.
pub(crate) enum Oddity {
    /// Cut at the output limit: it can be asked to go on.
    Cut,
    /// Nothing was said, perhaps something was thought.
    Empty,
    Refused,
}

impl Oddity {
    pub(crate) fn of(parts: &[ReplyPart], reason: FinishReason) -> Option<Self> {
        let said =
            |p: &ReplyPart| matches!(p, ReplyPart::Text { text, .. } if !text.trim().is_empty());
        match reason {
            FinishReason::ContentFilter => Some(Self::Refused),
            FinishReason::Length => Some(Self::Cut),
            _ if !parts.iter().any(said) => Some(Self::Empty),
            _ => None,
        }
    }

    /// What the model is told, where telling it can help.
    pub(crate) fn note(&self) -> Option<&'static str> {
        match self {
            Self::Cut => Some(
                "Your answer was cut at the output limit. Go on exactly where it stopped, without \
                 repeating anything.",
            ),
            Self::Empty => Some(
                "Your answer was empty. Go on with the work, or give your answer in words if it is done.",
            ),
            Self::Refused => None,
        }
    }

    pub(crate) fn failure(&self) -> Failure {
        match self {
            Self::Cut => {
                let text = "the answer was cut at the model's output limit";
                Failure::new(FailureKind::Truncated, text)
            }
            Self::Empty => Failure::new(FailureKind::Truncated, "the model gave an empty answer"),
            Self::Refused => Failure::new(FailureKind::Refused, "the provider refused to answer"),
        }
    }
}

/// The reply in the record's form, with call ids that are there and differ from all in the session.
pub(crate) fn reply_parts(blocks: Vec<ReplyBlock>, session: &Session) -> Vec<ReplyPart> {
    let step = session.step_count();
    let mut seen: Vec<String> = Vec::new();
    let part = |block: ReplyBlock| {
        let opaque = block.opaque;
        Some(match block.kind {
            // Nothing was said and nothing hangs on it.
            ReplyKind::Text(text) if text.is_empty() && opaque.is_none() => return None,
            ReplyKind::Text(text) => ReplyPart::Text { text, opaque },
            // To people and to later requests, a refusal is what was said.
            ReplyKind::Refusal(text) => ReplyPart::Text { text, opaque },
            ReplyKind::Reasoning(text) => ReplyPart::Reasoning { text, opaque },
            ReplyKind::ServerTool { kind, name, .. } => {
                let opaque = opaque.unwrap_or_default();
                ReplyPart::ServerTool { name: name.unwrap_or(kind), opaque }
            }
            ReplyKind::Call { id, name, arguments } => {
                let number = seen.len();
                let id = match id {
                    id if id.is_empty() => format!("call_{step}_{number}"),
                    id if seen.contains(&id) || session.has_call(&id) => {
                        format!("{id}_{step}_{number}")
                    }
                    id => id,
                };
                seen.push(id.clone());
                ReplyPart::Call { id, name, arguments, opaque }
            }
        })
    };
    blocks.into_iter().filter_map(part).collect()
}

/// What any event costs, so that endless small ones come to an end too.
const EVENT_BYTES: usize = 64;

pub(crate) fn size_of_delta(event: &ModelEvent) -> usize {
    match event {
        ModelEvent::Text { delta, .. }
        | ModelEvent::Reasoning { delta, .. }
        | ModelEvent::Refusal { delta, .. }
        | ModelEvent::CallArguments { delta, .. } => delta.len() + EVENT_BYTES,
        ModelEvent::CallReplace { arguments, .. } => {
            arguments.as_ref().map_or(0, String::len) + EVENT_BYTES
        }
        ModelEvent::ServerTool { opaque, .. } => opaque.to_string().len() + EVENT_BYTES,
        _ => EVENT_BYTES,
    }
}

pub(crate) fn call_requests(parts: &[ReplyPart], cut: bool) -> Vec<CallRequest> {
    let call = |part: &ReplyPart| match part {
        ReplyPart::Call { id, name, arguments, .. } => Some(CallRequest {
            id: id.clone(),
            name: name.clone(),
            arguments: arguments.clone(),
            cut,
        }),
        _ => None,
    };
    parts.iter().filter_map(call).collect()
}
