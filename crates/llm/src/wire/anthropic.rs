//! Anthropic Messages, reading.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::{Value, json};

use super::{Codec, broke_off, unreadable};
use crate::event::{push_arguments, push_reasoning, push_text};
use crate::{Event, Failure, FailureKind, Finish, FinishReason, SseEvent, Usage};

#[derive(Deserialize)]
struct Frame<'a> {
    #[serde(rename = "type", borrow, default)]
    kind: Cow<'a, str>,
    #[serde(default)]
    index: u64,
    #[serde(borrow)]
    delta: Option<Delta<'a>>,
    content_block: Option<Value>,
    message: Option<Value>,
    usage: Option<Value>,
    error: Option<Value>,
}

#[derive(Deserialize)]
struct Delta<'a> {
    #[serde(rename = "type", borrow, default)]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    text: Option<Cow<'a, str>>,
    #[serde(borrow)]
    thinking: Option<Cow<'a, str>>,
    #[serde(borrow)]
    partial_json: Option<Cow<'a, str>>,
    #[serde(borrow)]
    signature: Option<Cow<'a, str>>,
    #[serde(borrow)]
    stop_reason: Option<Cow<'a, str>>,
}

#[derive(Default)]
pub(super) struct AnthropicCodec {
    message_id: Option<String>,
    open: Vec<OpenBlock>,
    next_block: u32,
    usage: Usage,
    stop_reason: Option<String>,
}

struct OpenBlock {
    index: u64,
    block: u32,
    kind: BlockKind,
    signature: String,
}

#[derive(Clone, Copy, PartialEq)]
enum BlockKind {
    Text,
    Thinking,
    Call,
    /// Blocks that need no action of ours (a provider's own tools and their results).
    Other,
}

impl Codec for AnthropicCodec {
    fn event(&mut self, event: SseEvent<'_>, out: &mut Vec<Event>) {
        let frame: Frame<'_> = match serde_json::from_str(event.data) {
            Ok(frame) => frame,
            // An event of a kind that we do not know may look any way it likes.
            Err(error) => match serde_json::from_str::<Value>(event.data) {
                Ok(value) if !is_known(&value, event.name) => return,
                _ => return out.push(unreadable(event.data, &error)),
            },
        };
        // Some compatible servers leave `type` out of the data and only name the event.
        let kind = if frame.kind.is_empty() { event.name } else { frame.kind.as_ref() };
        match kind {
            "message_start" => self.message_start(frame.message.as_ref(), out),
            "content_block_start" => self.block_start(frame.index, frame.content_block, out),
            "content_block_delta" => {
                if let Some(delta) = &frame.delta {
                    self.block_delta(frame.index, delta, out);
                }
            }
            "content_block_stop" => self.block_stop(frame.index, out),
            "message_delta" => {
                if let Some(reason) = frame.delta.and_then(|d| d.stop_reason) {
                    self.stop_reason = Some(reason.into_owned());
                }
                self.take_usage(frame.usage.as_ref(), out);
            }
            "message_stop" => self.close(out),
            "error" => {
                let error = frame.error.unwrap_or(Value::Null);
                out.push(Event::Failed(Failure::from_error_object(&error)));
            }
            // `ping` and whatever is invented later.
            _ => {}
        }
    }

    fn end(&mut self, out: &mut Vec<Event>) {
        if self.stop_reason.is_some() { self.close(out) } else { out.push(broke_off()) }
    }
}

impl AnthropicCodec {
    fn message_start(&mut self, message: Option<&Value>, out: &mut Vec<Event>) {
        let Some(message) = message else { return };
        let id = message.get("id").and_then(Value::as_str).unwrap_or_default();
        match &self.message_id {
            Some(first) if first == id => return,
            Some(first) => {
                let text = format!("a second message ({id}) started inside the first ({first})");
                return out.push(Event::Failed(Failure::new(FailureKind::Protocol, text)));
            }
            None => self.message_id = Some(id.to_owned()),
        }
        self.take_usage(message.get("usage"), out);
        // Some servers put what they have so far into the start.
        for (index, block) in
            message.get("content").and_then(Value::as_array).into_iter().flatten().enumerate()
        {
            let index = index as u64;
            self.block_start(index, Some(block.clone()), out);
            self.block_stop(index, out);
        }
    }

    fn block_start(&mut self, index: u64, block: Option<Value>, out: &mut Vec<Event>) {
        let content = block.unwrap_or(Value::Null);
        let text = |key: &str| content.get(key).and_then(Value::as_str).unwrap_or_default();
        let kind = match text("type") {
            "text" => BlockKind::Text,
            "thinking" => BlockKind::Thinking,
            "tool_use" => BlockKind::Call,
            _ => BlockKind::Other,
        };
        let block = self.next_block;
        self.next_block += 1;
        match kind {
            BlockKind::Text => push_text(out, block, text("text")),
            BlockKind::Thinking => push_reasoning(out, block, text("thinking")),
            BlockKind::Call => {
                let (id, name) = (text("id").to_owned(), text("name").to_owned());
                out.push(Event::CallStart { block, id, name });
                // Not streamed: the arguments stand in the start itself.
                if let Some(input) = content.get("input").filter(|i| !is_empty(i)) {
                    push_arguments(out, block, &input.to_string());
                }
            }
            BlockKind::Other if text("type") == "redacted_thinking" => {
                let opaque = Some(json!({ "redacted": text("data") }));
                out.push(Event::BlockEnd { block, opaque });
            }
            BlockKind::Other => {}
        }
        let signature = text("signature").to_owned();
        self.open.push(OpenBlock { index, block, kind, signature });
    }

    fn block_delta(&mut self, index: u64, delta: &Delta<'_>, out: &mut Vec<Event>) {
        // A delta for a block that was never started opens it: some servers skip the start.
        if !self.open.iter().any(|b| b.index == index) {
            let kind = match delta.kind.as_ref() {
                "text_delta" => "text",
                "thinking_delta" | "signature_delta" => "thinking",
                _ => return,
            };
            self.block_start(index, Some(json!({ "type": kind })), out);
        }
        let Some(open) = self.open.iter_mut().rfind(|b| b.index == index) else { return };
        match (delta.kind.as_ref(), open.kind) {
            ("text_delta", BlockKind::Text) => {
                push_text(out, open.block, delta.text.as_deref().unwrap_or_default());
            }
            ("thinking_delta", BlockKind::Thinking) => {
                push_reasoning(out, open.block, delta.thinking.as_deref().unwrap_or_default());
            }
            ("signature_delta", BlockKind::Thinking) => {
                open.signature.push_str(delta.signature.as_deref().unwrap_or_default());
            }
            ("input_json_delta", BlockKind::Call) => {
                push_arguments(out, open.block, delta.partial_json.as_deref().unwrap_or_default());
            }
            _ => {}
        }
    }

    fn block_stop(&mut self, index: u64, out: &mut Vec<Event>) {
        let Some(at) = self.open.iter().rposition(|b| b.index == index) else { return };
        let open = self.open.remove(at);
        if open.kind == BlockKind::Other {
            return;
        }
        let signed = !open.signature.is_empty();
        let opaque = signed.then(|| json!({ "signature": open.signature }));
        out.push(Event::BlockEnd { block: open.block, opaque });
    }

    fn take_usage(&mut self, usage: Option<&Value>, out: &mut Vec<Event>) {
        let Some(usage) = usage else { return };
        let set = |key: &str, field: &mut u64| {
            if let Some(number) = usage.get(key).and_then(Value::as_u64) {
                *field = number;
            }
        };
        set("input_tokens", &mut self.usage.input);
        set("output_tokens", &mut self.usage.output);
        set("cache_read_input_tokens", &mut self.usage.cache_read);
        set("cache_creation_input_tokens", &mut self.usage.cache_write);
        let thinking = usage.pointer("/output_tokens_details/thinking_tokens");
        if let Some(thinking) = thinking.and_then(Value::as_u64) {
            self.usage.reasoning = thinking;
        }
        out.push(Event::Usage(self.usage));
    }

    fn close(&mut self, out: &mut Vec<Event>) {
        let raw = self.stop_reason.take().unwrap_or_default();
        let reason = match raw.as_str() {
            "end_turn" | "stop_sequence" | "pause_turn" => FinishReason::Stop,
            "tool_use" => FinishReason::ToolCalls,
            "max_tokens" | "model_context_window_exceeded" => FinishReason::Length,
            "refusal" => FinishReason::ContentFilter,
            _ => FinishReason::Unknown,
        };
        out.push(Event::Finish(Finish { reason, raw }));
    }
}

fn is_known(frame: &Value, name: &str) -> bool {
    const KNOWN: &[&str] = &[
        "message_start",
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
        "error",
    ];
    KNOWN.contains(&frame.get("type").and_then(Value::as_str).unwrap_or(name))
}

fn is_empty(input: &Value) -> bool {
    input.is_null() || input.as_object().is_some_and(serde_json::Map::is_empty)
}
