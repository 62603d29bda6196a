//! Anthropic Messages, reading.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{Codec, Str, broke_off, optional_text, text_of, unreadable};
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
    /// Of an error that has no object of its own.
    #[serde(rename = "detail", borrow)]
    text: Option<Str<'a>>,
}

#[derive(Deserialize)]
struct Delta<'a> {
    #[serde(rename = "type", borrow, default)]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    text: Option<Str<'a>>,
    #[serde(borrow)]
    thinking: Option<Str<'a>>,
    #[serde(borrow)]
    partial_json: Option<Str<'a>>,
    #[serde(borrow)]
    signature: Option<Str<'a>>,
    #[serde(borrow)]
    stop_reason: Option<Str<'a>>,
    citation: Option<Value>,
}

#[derive(Default)]
pub(super) struct AnthropicCodec {
    message_id: Option<String>,
    open: Vec<OpenBlock>,
    next_block: u32,
    usage: Usage,
    raw_usage: Map<String, Value>,
    stop_reason: Option<String>,
    /// A stop reason came: what is missing is only the closing mark.
    closed_by: Option<String>,
}

struct OpenBlock {
    index: u64,
    block: u32,
    kind: BlockKind,
    signature: String,
    citations: Vec<Value>,
    /// The block as it began, where it is replayed as a whole.
    raw: Value,
    input: String,
}

#[derive(Clone, Copy, PartialEq)]
enum BlockKind {
    Text,
    Thinking,
    Call,
    Redacted,
    /// Blocks that need no action of ours: a provider's own tools and their results.
    Other,
}

impl Codec for AnthropicCodec {
    fn event(&mut self, event: SseEvent<'_>, out: &mut Vec<Event>) {
        let frame: Frame<'_> = match serde_json::from_str(event.data) {
            Ok(frame) => frame,
            // An event of a kind that we do not know may look any way it likes.
            Err(error) => match serde_json::from_str::<Value>(event.data) {
                Ok(value) if !is_known(&value, event.name) => return,
                Ok(value) => {
                    let text = mend(value).to_string();
                    return match serde_json::from_str::<Frame<'_>>(&text) {
                        Ok(frame) => self.frame(frame, event.name, out),
                        Err(_) => out.push(unreadable(event.data, &error)),
                    };
                }
                Err(_) => return out.push(unreadable(event.data, &error)),
            },
        };
        self.frame(frame, event.name, out);
    }

    fn body(&mut self, body: Value, out: &mut Vec<Event>) {
        let error = body.get("error").filter(|e| !e.is_null());
        if error.is_some() || body.get("content").is_none() {
            let error = error.unwrap_or(&body);
            return out.push(Event::Failed(Failure::from_error_object(error)));
        }
        self.message_start(Some(&body), out);
        self.stop_reason = optional_text(&body, "stop_reason");
        self.end(out);
    }

    fn finish_word(&self) -> Option<String> {
        self.stop_reason.clone().or_else(|| self.closed_by.clone())
    }

    fn end(&mut self, out: &mut Vec<Event>) {
        if self.stop_reason.is_some() { self.close(out) } else { out.push(broke_off()) }
    }
}

impl AnthropicCodec {
    fn frame(&mut self, frame: Frame<'_>, name: &str, out: &mut Vec<Event>) {
        // Some compatible servers leave `type` out of the data and only name the event.
        let kind = if frame.kind.is_empty() { name } else { frame.kind.as_ref() };
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
                    self.stop_reason = Some(reason.0.into_owned());
                }
                self.take_usage(frame.usage.as_ref(), out);
            }
            "message_stop" => self.close(out),
            "error" | "" if frame.error.is_some() || kind == "error" => {
                let error =
                    frame.error.unwrap_or_else(|| json!({ "message": frame.text.as_deref() }));
                out.push(Event::Failed(Failure::from_error_object(&error)));
            }
            // `ping` and whatever is invented later.
            _ => {}
        }
    }

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
        let (id, model) = (optional_text(message, "id"), optional_text(message, "model"));
        out.push(Event::Started { id, model });
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
        let text = |key: &str| text_of(&content, key);
        let kind = match text("type") {
            "text" => BlockKind::Text,
            "thinking" => BlockKind::Thinking,
            "redacted_thinking" => BlockKind::Redacted,
            "tool_use" => BlockKind::Call,
            _ => BlockKind::Other,
        };
        let block = self.next_block;
        self.next_block += 1;
        match kind {
            // A block may stay empty; it was there all the same.
            BlockKind::Text => {
                out.push(Event::Text { block, delta: text("text").to_owned() });
            }
            BlockKind::Thinking => push_reasoning(out, block, text("thinking")),
            BlockKind::Call => {
                let (id, name) = (text("id").to_owned(), text("name").to_owned());
                out.push(Event::CallStart { block, id, name });
                // Not streamed: the arguments stand in the start itself.
                if let Some(input) = content.get("input").filter(|i| !is_empty(i)) {
                    push_arguments(out, block, &input.to_string());
                }
            }
            BlockKind::Redacted | BlockKind::Other => {}
        }
        let signature = text("signature").to_owned();
        let citations = content.get("citations").and_then(Value::as_array).cloned();
        let raw = match kind {
            BlockKind::Redacted | BlockKind::Other => content,
            _ => Value::Null,
        };
        let citations = citations.unwrap_or_default();
        let input = String::new();
        self.open.push(OpenBlock { index, block, kind, signature, citations, raw, input });
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
            ("citations_delta", BlockKind::Text) => open.citations.extend(delta.citation.clone()),
            ("input_json_delta", BlockKind::Other) => {
                open.input.push_str(delta.partial_json.as_deref().unwrap_or_default());
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
        let block = open.block;
        let opaque = match open.kind {
            BlockKind::Other => return self.server_block(open, out),
            BlockKind::Redacted => Some(json!({ "redacted": text_of(&open.raw, "data") })),
            BlockKind::Text if !open.citations.is_empty() => {
                Some(json!({ "citations": open.citations }))
            }
            BlockKind::Thinking if !open.signature.is_empty() => {
                Some(json!({ "signature": open.signature }))
            }
            BlockKind::Text | BlockKind::Thinking | BlockKind::Call => None,
        };
        out.push(Event::BlockEnd { block, opaque });
    }

    fn server_block(&mut self, open: OpenBlock, out: &mut Vec<Event>) {
        let mut raw = open.raw;
        if let Ok(input) = serde_json::from_str::<Value>(&open.input)
            && let Some(object) = raw.as_object_mut()
        {
            object.insert("input".to_owned(), input);
        }
        let (kind, id) = (text_of(&raw, "type").to_owned(), optional_text(&raw, "id"));
        let name = optional_text(&raw, "name");
        out.push(Event::ServerTool { block: open.block, kind, id, name, opaque: raw });
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
        for (key, value) in usage.as_object().into_iter().flatten() {
            if !value.is_null() || !self.raw_usage.contains_key(key) {
                self.raw_usage.insert(key.clone(), value.clone());
            }
        }
        out.push(Event::Usage { usage: self.usage, raw: Value::Object(self.raw_usage.clone()) });
    }

    fn close(&mut self, out: &mut Vec<Event>) {
        let raw = self.stop_reason.take().unwrap_or_default();
        self.closed_by = Some(raw.clone());
        let reason = match raw.as_str() {
            "end_turn" | "stop_sequence" => FinishReason::Stop,
            "pause_turn" => FinishReason::Pause,
            "tool_use" => FinishReason::ToolCalls,
            "max_tokens" | "model_context_window_exceeded" => FinishReason::Length,
            "refusal" => FinishReason::ContentFilter,
            _ => FinishReason::Unknown,
        };
        out.push(Event::Finish(Finish { reason, raw }));
    }
}

/// The same frame with what has an odd type left out.
fn mend(mut frame: Value) -> Value {
    if let Some(object) = frame.as_object_mut() {
        if !object.get("index").is_some_and(Value::is_u64) {
            object.shift_remove("index");
        }
        if !object.get("delta").is_some_and(Value::is_object) {
            object.shift_remove("delta");
        }
        for key in ["type", "detail"] {
            if !object.get(key).is_some_and(Value::is_string) {
                object.shift_remove(key);
            }
        }
        if let Some(delta) = object.get_mut("delta").and_then(Value::as_object_mut) {
            delta.retain(|key, value| value.is_string() || key == "citation");
        }
    }
    frame
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
