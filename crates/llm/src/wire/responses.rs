//! OpenAI Responses, reading. Items are told apart by `output_index`; one provider changes their
//! ids in every event, and others leave the index out.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::{Codec, Str, broke_off, optional_text, text_of, unreadable};
use crate::event::{push_arguments, push_reasoning, push_text};
use crate::{Event, Failure, Finish, FinishReason, SseEvent, Usage};

#[derive(Default)]
pub(super) struct ResponsesCodec {
    items: Vec<Item>,
    next_block: u32,
    started: bool,
    finish: Option<String>,
    any_call: bool,
    error: Option<Value>,
}

/// Events that say the whole text once more; the finished item is the one that counts.
fn repeats_what_was_streamed(data: &str) -> bool {
    const REPEATS: &[&str] = &[
        "{\"type\":\"response.output_text.done\"",
        "{\"type\":\"response.content_part.done\"",
        "{\"type\":\"response.reasoning_text.done\"",
        "{\"type\":\"response.reasoning_summary_text.done\"",
        "{\"type\":\"response.reasoning_summary_part.done\"",
    ];
    REPEATS.iter().any(|start| data.starts_with(start))
}

/// From here on it is worth not to read what is known.
const LARGE_BYTES: usize = 64 << 10;

#[derive(Deserialize)]
struct EndFrame<'a> {
    #[serde(rename = "type", borrow)]
    kind: Str<'a>,
    #[serde(borrow)]
    response: BTreeMap<&'a str, &'a RawValue>,
}

/// The frame of a finished item without its content.
#[derive(Deserialize)]
struct DoneFrame<'a> {
    #[serde(rename = "type", borrow)]
    kind: Str<'a>,
    output_index: Option<u64>,
    #[serde(borrow)]
    item: DoneItem<'a>,
}

#[derive(Deserialize)]
struct DoneItem<'a> {
    #[serde(rename = "type", borrow)]
    kind: Str<'a>,
    #[serde(borrow)]
    id: Option<Str<'a>>,
    #[serde(borrow)]
    content: Option<Vec<&'a RawValue>>,
}

/// The events that make up most of a stream, read without copying.
#[derive(Deserialize)]
struct TextDelta<'a> {
    #[serde(rename = "type", borrow)]
    kind: Option<Str<'a>>,
    output_index: Option<u64>,
    content_index: Option<u64>,
    summary_index: Option<u64>,
    #[serde(borrow)]
    item_id: Option<Str<'a>>,
    #[serde(borrow)]
    delta: Option<Str<'a>>,
}

impl TextDelta<'_> {
    fn part_kind(&self) -> Option<PartKind> {
        match self.kind.as_deref()? {
            "response.output_text.delta" => Some(PartKind::Text),
            "response.reasoning_summary_text.delta" => Some(PartKind::Summary),
            "response.reasoning_text.delta" => Some(PartKind::Reasoning),
            _ => None,
        }
    }
}

struct Item {
    index: Option<u64>,
    id: String,
    kind: String,
    /// Text parts and summary parts of the item, by their kind and number.
    parts: Vec<(PartKind, u64, u32)>,
    call_id: String,
    name: String,
    /// The block of a call, and its arguments so far.
    call: Option<(u32, String)>,
    done: bool,
}

#[derive(Clone, Copy, PartialEq)]
enum PartKind {
    Text,
    Refusal,
    Summary,
    Reasoning,
}

impl Codec for ResponsesCodec {
    fn event(&mut self, event: SseEvent<'_>, out: &mut Vec<Event>) {
        if event.data.trim() == "[DONE]" {
            return;
        }
        if event.data.contains("text.delta\"")
            && let Ok(delta) = serde_json::from_str::<TextDelta<'_>>(event.data)
            && let Some(kind) = delta.part_kind()
        {
            return self.say(kind, &delta, out);
        }
        if let Some(response) = self.large_ending(event.data) {
            return self.close(&response, out);
        }
        if repeats_what_was_streamed(event.data) || self.ends_streamed_message(event.data, out) {
            return;
        }
        let frame: Value = match serde_json::from_str(event.data) {
            Ok(frame) => frame,
            Err(error) => return out.push(unreadable(event.data, &error)),
        };
        let kind = match text_of(&frame, "type") {
            "" => event.name,
            kind => kind,
        };
        match kind {
            "response.created" | "response.in_progress" | "response.queued" => {
                self.start(frame.get("response"), out);
            }
            "response.output_item.added" => {
                if let Some(item) = frame.get("item") {
                    self.open(index_of(&frame), item, out);
                }
            }
            "response.refusal.delta" => {
                if let Ok(delta) = serde_json::from_str::<TextDelta<'_>>(event.data) {
                    self.say(PartKind::Refusal, &delta, out);
                }
            }
            "response.function_call_arguments.delta" | "response.custom_tool_call_input.delta" => {
                self.arguments(&frame, out);
            }
            "response.output_item.done" => {
                if let Some(item) = frame.get("item") {
                    let at = self.open(index_of(&frame), item, out);
                    self.done(at, item, out);
                }
            }
            "response.completed" | "response.incomplete" | "response.failed" => {
                self.start(frame.get("response"), out);
                let mut response = frame.get("response").cloned().unwrap_or_default();
                if !response.is_object() {
                    response = json!({});
                }
                // What the event is called says how it ended where the response does not.
                if text_of(&response, "status").is_empty() {
                    response["status"] = kind.trim_start_matches("response.").into();
                }
                if response.get("error").is_none_or(Value::is_null) {
                    let error = frame.get("error").filter(|e| !e.is_null()).or(self.error.as_ref());
                    response["error"] = error.cloned().unwrap_or_default();
                }
                self.close(&response, out);
            }
            "error" => {
                // `response.failed` follows and says more; if it does not, this is what we know.
                self.error = Some(frame.get("error").unwrap_or(&frame).clone());
            }
            _ => {}
        }
    }

    fn body(&mut self, body: Value, out: &mut Vec<Event>) {
        if !body.get("output").is_some_and(Value::is_array) {
            let error = body.get("error").filter(|e| !e.is_null()).unwrap_or(&body);
            return out.push(Event::Failed(Failure::from_error_object(error)));
        }
        self.start(Some(&body), out);
        self.close(&body, out);
    }

    fn end(&mut self, out: &mut Vec<Event>) {
        out.push(match &self.error {
            Some(error) => Event::Failed(Failure::from_error_object(error)),
            None => broke_off(),
        });
    }

    fn finish_word(&self) -> Option<String> {
        self.finish.clone()
    }
}

impl ResponsesCodec {
    fn start(&mut self, response: Option<&Value>, out: &mut Vec<Event>) {
        if let Some(response) = response
            && !std::mem::replace(&mut self.started, true)
        {
            let (id, model) = (optional_text(response, "id"), optional_text(response, "model"));
            out.push(Event::Started { id, model });
        }
    }

    /// A closing event that repeats a large answer, without the answer, if all of it is known.
    fn large_ending(&self, data: &str) -> Option<Value> {
        let known = !self.items.is_empty() && self.items.iter().all(|item| item.done);
        if data.len() < LARGE_BYTES || !known {
            return None;
        }
        let mut frame: EndFrame<'_> = serde_json::from_str(data).ok()?;
        if !matches!(&*frame.kind, "response.completed" | "response.incomplete") {
            return None;
        }
        let output = frame.response.remove("output")?;
        // More than we have seen must be read after all.
        let count = serde_json::from_str::<Vec<&RawValue>>(output.get()).ok()?.len();
        if count > self.items.len() {
            return None;
        }
        let read = |raw: &RawValue| serde_json::from_str::<Value>(raw.get()).unwrap_or_default();
        let fields = frame.response.into_iter().map(|(key, raw)| (key.to_owned(), read(raw)));
        Some(Value::Object(fields.collect()))
    }

    /// Closes a message whose text has been streamed, without reading the text again. Some answers
    /// have megabytes.
    fn ends_streamed_message(&mut self, data: &str, out: &mut Vec<Event>) -> bool {
        if data.len() < LARGE_BYTES {
            return false;
        }
        let Ok(frame) = serde_json::from_str::<DoneFrame<'_>>(data) else { return false };
        let id = frame.item.id.as_deref().unwrap_or_default();
        let is_message =
            &*frame.kind == "response.output_item.done" && &*frame.item.kind == "message";
        let parts = frame.item.content.as_ref().map_or(0, Vec::len);
        match self.find(frame.output_index, id) {
            Some(at) if is_message && parts > 0 && self.items[at].parts.len() >= parts => {
                self.items[at].done = true;
                self.end_parts(at, (!id.is_empty()).then(|| json!({ "id": id })), out);
                true
            }
            _ => false,
        }
    }

    /// The item that a frame is about. By its index; without one by its id; without both the last.
    fn find(&self, index: Option<u64>, id: &str) -> Option<usize> {
        match index {
            Some(_) => self.items.iter().rposition(|item| item.index == index),
            None if !id.is_empty() => self.items.iter().rposition(|item| item.id == id),
            None => self.items.len().checked_sub(1),
        }
    }

    fn open(&mut self, index: Option<u64>, item: &Value, out: &mut Vec<Event>) -> usize {
        let id = text_of(item, "id").to_owned();
        if let Some(at) = self.find(index, &id)
            && (index.is_some() || !id.is_empty())
        {
            return at;
        }
        let kind = text_of(item, "type").to_owned();
        let call = is_ours(item).then(|| {
            let block = self.take_block();
            self.any_call = true;
            let name = match text_of(item, "name") {
                // Provider-defined tools have no name but their kind.
                "" => kind.trim_end_matches("_call").to_owned(),
                name => name.to_owned(),
            };
            out.push(Event::CallStart { block, id: call_id(item), name });
            (block, String::new())
        });
        let (call_id, name) = (call_id(item), text_of(item, "name").to_owned());
        let parts = Vec::new();
        self.items.push(Item { index, id, kind, parts, call_id, name, call, done: false });
        self.items.len() - 1
    }

    fn say(&mut self, kind: PartKind, delta: &TextDelta<'_>, out: &mut Vec<Event>) {
        let id = delta.item_id.as_deref().unwrap_or_default();
        let at = match self.find(delta.output_index, id) {
            Some(at) => at,
            // A delta before its item: some servers leave the opening out.
            None => {
                let usual = match kind {
                    PartKind::Text | PartKind::Refusal => "message",
                    PartKind::Summary | PartKind::Reasoning => "reasoning",
                };
                let item = json!({ "type": usual, "id": id });
                self.open(delta.output_index, &item, out)
            }
        };
        let number = match kind {
            PartKind::Summary => delta.summary_index,
            _ => delta.content_index,
        };
        let block = self.part(at, kind, number.unwrap_or(0));
        self.push_part(kind, block, delta.delta.as_deref().unwrap_or_default(), out);
    }

    fn push_part(&self, kind: PartKind, block: u32, text: &str, out: &mut Vec<Event>) {
        match kind {
            PartKind::Text => push_text(out, block, text),
            PartKind::Refusal if text.is_empty() => {}
            PartKind::Refusal => out.push(Event::Refusal { block, delta: text.to_owned() }),
            PartKind::Summary | PartKind::Reasoning => push_reasoning(out, block, text),
        }
    }

    fn part(&mut self, at: usize, kind: PartKind, number: u64) -> u32 {
        let known = self.items[at].parts.iter().find(|(k, n, _)| *k == kind && *n == number);
        if let Some((_, _, block)) = known {
            return *block;
        }
        let block = self.take_block();
        self.items[at].parts.push((kind, number, block));
        block
    }

    fn arguments(&mut self, frame: &Value, out: &mut Vec<Event>) {
        let Some(at) = self.find(index_of(frame), text_of(frame, "item_id")) else { return };
        if let Some((block, so_far)) = &mut self.items[at].call {
            let delta = text_of(frame, "delta");
            so_far.push_str(delta);
            push_arguments(out, *block, delta);
        }
    }

    /// The item is whole; what it says now is the last word.
    fn done(&mut self, at: usize, item: &Value, out: &mut Vec<Event>) {
        if std::mem::replace(&mut self.items[at].done, true) {
            return;
        }
        // A server that opened an item as one thing and closed it as another means the latter.
        text_of(item, "type").clone_into(&mut self.items[at].kind);
        if let Some((block, so_far)) = self.items[at].call.take() {
            // A call that the answer broke off in must not run: it never ends.
            if text_of(item, "status") == "incomplete" {
                return;
            }
            let whole = call_arguments(item);
            let whole = if whole.is_empty() { so_far.clone() } else { whole };
            let (id, name) = (call_id(item), text_of(item, "name"));
            let renamed = id != self.items[at].call_id || name != self.items[at].name;
            match whole.strip_prefix(so_far.as_str()) {
                Some(rest) if !renamed => push_arguments(out, block, rest),
                _ => {
                    let name = (!name.is_empty()).then(|| name.to_owned());
                    out.push(Event::CallReplace { block, id, name, arguments: Some(whole) });
                }
            }
            let opaque = Some(json!({ "item": slim(item) }));
            return out.push(Event::BlockEnd { block, opaque });
        }
        match self.items[at].kind.as_str() {
            "message" => self.message_done(at, item, out),
            "reasoning" => self.reasoning_done(at, item, out),
            kind => {
                let (kind, block) = (kind.to_owned(), self.take_block());
                let (id, name) = (optional_text(item, "id"), optional_text(item, "name"));
                out.push(Event::ServerTool { block, kind, id, name, opaque: item.clone() });
            }
        }
    }

    fn message_done(&mut self, at: usize, item: &Value, out: &mut Vec<Event>) {
        let content = item.get("content").and_then(Value::as_array);
        for (number, part) in content.into_iter().flatten().enumerate() {
            let (kind, text) = match text_of(part, "type") {
                "refusal" => (PartKind::Refusal, text_of(part, "refusal")),
                _ => (PartKind::Text, text_of(part, "text")),
            };
            self.part_done(at, kind, number as u64, text, out);
        }
        let opaque = text_of(item, "id");
        let opaque = (!opaque.is_empty()).then(|| json!({ "id": opaque }));
        self.end_parts(at, opaque, out);
    }

    fn reasoning_done(&mut self, at: usize, item: &Value, out: &mut Vec<Event>) {
        for (key, kind) in [("summary", PartKind::Summary), ("content", PartKind::Reasoning)] {
            let parts = item.get(key).and_then(Value::as_array);
            for (number, part) in parts.into_iter().flatten().enumerate() {
                self.part_done(at, kind, number as u64, text_of(part, "text"), out);
            }
        }
        if self.items[at].parts.is_empty() {
            // Encrypted only: nothing to show, and it still must go back.
            let block = self.take_block();
            self.items[at].parts.push((PartKind::Summary, 0, block));
        }
        self.end_parts(at, Some(json!({ "item": slim(item) })), out);
    }

    /// Text that was not streamed stands in the finished item only.
    fn part_done(
        &mut self,
        at: usize,
        kind: PartKind,
        number: u64,
        text: &str,
        out: &mut Vec<Event>,
    ) {
        let streamed = self.items[at].parts.iter().any(|(k, n, _)| *k == kind && *n == number);
        if streamed {
            return;
        }
        if !text.is_empty() {
            let block = self.part(at, kind, number);
            self.push_part(kind, block, text, out);
        } else if kind == PartKind::Text {
            // A block may stay empty; it was there all the same.
            let block = self.part(at, kind, number);
            out.push(Event::Text { block, delta: String::new() });
        }
    }

    /// The item's own data hangs on its first part; the others are parts of the same item.
    fn end_parts(&mut self, at: usize, mut opaque: Option<Value>, out: &mut Vec<Event>) {
        for (_, _, block) in &self.items[at].parts {
            out.push(Event::BlockEnd { block: *block, opaque: opaque.take() });
        }
    }

    fn close(&mut self, response: &Value, out: &mut Vec<Event>) {
        // One provider changes its ids on the way; the last one is the one to ask for.
        self.started = false;
        self.start(Some(response).filter(|r| r.get("id").is_some()), out);
        // Items that no event closed may stand in the response itself.
        let output = response.get("output").and_then(Value::as_array);
        // In an answer that came whole two items may have one id; in a stream it is the same item.
        let streamed = !self.items.is_empty();
        for (index, item) in output.into_iter().flatten().enumerate() {
            let known = self.items.iter().position(|i| i.index == Some(index as u64));
            let by_id = || {
                let id = text_of(item, "id");
                self.items.iter().position(|i| streamed && !id.is_empty() && i.id == id)
            };
            match known.or_else(by_id) {
                // What the provider did itself and never finished is nothing to tell.
                Some(at) if is_ours(item) || !self.items[at].parts.is_empty() => {
                    self.done(at, item, out);
                }
                Some(_) => {}
                None if self.items.iter().all(|i| i.index.is_some()) => {
                    let at = self.open(Some(index as u64), item, out);
                    self.done(at, item, out);
                }
                None => {}
            }
        }
        if let Some(usage) = response.get("usage").filter(|u| u.is_object()) {
            out.push(Event::Usage { usage: read_usage(usage), raw: usage.clone() });
        }
        let status = text_of(response, "status");
        let why = response.pointer("/incomplete_details/reason").and_then(Value::as_str);
        let raw = match (status, why) {
            ("incomplete", Some(why)) => format!("incomplete:{why}"),
            ("", _) => "completed".to_owned(),
            (status, _) => status.to_owned(),
        };
        self.finish = Some(raw.clone());
        if status == "failed" {
            let error = response.get("error").unwrap_or(&Value::Null);
            return out.push(Event::Failed(Failure::from_error_object(error)));
        }
        let reason = match raw.as_str() {
            "completed" if self.any_call => FinishReason::ToolCalls,
            "completed" => FinishReason::Stop,
            "incomplete:max_output_tokens" => FinishReason::Length,
            "incomplete:content_filter" => FinishReason::ContentFilter,
            _ => FinishReason::Unknown,
        };
        out.push(Event::Finish(Finish { reason, raw }));
    }

    fn take_block(&mut self) -> u32 {
        let block = self.next_block;
        self.next_block += 1;
        block
    }
}

fn index_of(frame: &Value) -> Option<u64> {
    frame.get("output_index").and_then(Value::as_u64)
}

/// Whether an item is a call that the client runs.
fn is_ours(item: &Value) -> bool {
    match text_of(item, "type") {
        "function_call" | "custom_tool_call" | "local_shell_call" | "shell_call"
        | "apply_patch_call" | "computer_call" => true,
        "tool_search_call" => text_of(item, "execution") == "client",
        _ => false,
    }
}

fn call_id(item: &Value) -> String {
    match text_of(item, "call_id") {
        "" => text_of(item, "id").to_owned(),
        id => id.to_owned(),
    }
}

fn call_arguments(item: &Value) -> String {
    for key in ["arguments", "input", "action", "operation"] {
        match item.get(key) {
            Some(Value::String(text)) => return text.clone(),
            Some(Value::Null) | None => {}
            Some(object) => return object.to_string(),
        }
    }
    String::new()
}

/// The item without what only makes it larger.
fn slim(item: &Value) -> Value {
    let mut item = item.clone();
    if let Some(object) = item.as_object_mut() {
        object.shift_remove("status");
    }
    item
}

fn read_usage(usage: &Value) -> Usage {
    let number = |path: &str| usage.pointer(path).and_then(Value::as_u64).unwrap_or(0);
    let cache_read = number("/input_tokens_details/cached_tokens");
    Usage {
        input: number("/input_tokens").saturating_sub(cache_read),
        output: number("/output_tokens"),
        reasoning: number("/output_tokens_details/reasoning_tokens"),
        cache_read,
        cache_write: 0,
    }
}
