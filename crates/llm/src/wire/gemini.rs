//! Google Gemini, reading. A stream has no closing event: the finish reason says that the answer is
//! whole, the end of input that nothing follows.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::{Codec, Str, broke_off, optional_text, text_of, unreadable};
use crate::event::{push_arguments, push_reasoning, push_text};
use crate::{Event, Failure, Finish, FinishReason, SseEvent, Usage};

#[derive(Default)]
pub(super) struct GeminiCodec {
    next_block: u32,
    /// The text or thought that goes on, with its signature if one came.
    current: Option<Current>,
    /// A call whose arguments come in pieces.
    open_call: Option<OpenCall>,
    started: bool,
    any_call: bool,
    finish: Option<String>,
    /// The newest usage of a plain chunk, not understood yet.
    usage: String,
}

/// A chunk that only says something: most of a stream, read without copying. Anything else in it
/// makes it an ordinary one.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PlainChunk<'a> {
    #[serde(borrow)]
    candidates: [PlainCandidate<'a>; 1],
    #[serde(rename = "responseId", borrow)]
    id: Option<Str<'a>>,
    #[serde(rename = "modelVersion", borrow)]
    model: Option<Str<'a>>,
    #[serde(rename = "usageMetadata", borrow)]
    usage: Option<&'a RawValue>,
    #[serde(rename = "createTime")]
    _created: Option<serde::de::IgnoredAny>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PlainCandidate<'a> {
    #[serde(borrow)]
    content: PlainContent<'a>,
    index: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PlainContent<'a> {
    #[serde(borrow)]
    parts: [PlainPart<'a>; 1],
    #[serde(rename = "role")]
    _role: Option<serde::de::IgnoredAny>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PlainPart<'a> {
    #[serde(borrow)]
    text: Str<'a>,
    #[serde(default)]
    thought: bool,
}

struct Current {
    thought: bool,
    block: u32,
    signature: Option<Value>,
}

struct OpenCall {
    block: u32,
    arguments: Value,
    signature: Option<Value>,
    /// The path whose string goes on in the next piece.
    growing: Option<String>,
}

impl Codec for GeminiCodec {
    fn event(&mut self, event: SseEvent<'_>, out: &mut Vec<Event>) {
        if event.data.trim() == "[DONE]" {
            return;
        }
        if let Ok(plain) = serde_json::from_str::<PlainChunk<'_>>(event.data) {
            return self.plain_chunk(&plain, out);
        }
        match serde_json::from_str::<Value>(event.data) {
            Ok(chunk) => self.chunk(&chunk, out),
            Err(error) => out.push(unreadable(event.data, &error)),
        }
    }

    fn body(&mut self, body: Value, out: &mut Vec<Event>) {
        // Without `alt=sse` a stream is an array of chunks.
        match &body {
            Value::Array(chunks) => chunks.iter().for_each(|chunk| self.chunk(chunk, out)),
            chunk => self.chunk(chunk, out),
        }
        if !out.iter().any(|event| matches!(event, Event::Failed(_))) {
            self.end(out);
        }
    }

    fn end(&mut self, out: &mut Vec<Event>) {
        self.end_current(out);
        self.tell_usage(out);
        let Some(raw) = self.finish.clone() else { return out.push(broke_off()) };
        let reason = match raw.as_str() {
            "STOP" if self.any_call => FinishReason::ToolCalls,
            "STOP" => FinishReason::Stop,
            "MAX_TOKENS" => FinishReason::Length,
            "SAFETY" | "RECITATION" | "BLOCKLIST" | "PROHIBITED_CONTENT" | "SPII"
            | "IMAGE_SAFETY" | "LANGUAGE" => FinishReason::ContentFilter,
            word if word.starts_with("blocked:") => FinishReason::ContentFilter,
            _ => FinishReason::Unknown,
        };
        out.push(Event::Finish(Finish { reason, raw }));
    }

    fn finish_word(&self) -> Option<String> {
        self.finish.clone()
    }
}

impl GeminiCodec {
    fn plain_chunk(&mut self, chunk: &PlainChunk<'_>, out: &mut Vec<Event>) {
        if !std::mem::replace(&mut self.started, true) {
            let owned = |text: &Option<Str<'_>>| text.as_ref().map(|t| t.to_string());
            out.push(Event::Started { id: owned(&chunk.id), model: owned(&chunk.model) });
        }
        for candidate in chunk.candidates.iter().filter(|c| c.index.unwrap_or(0) == 0) {
            for part in &candidate.content.parts {
                self.say(part.thought, &part.text, None, out);
            }
        }
        if let Some(usage) = chunk.usage {
            // Only the last one counts; it is understood when it is needed.
            self.usage.clear();
            self.usage.push_str(usage.get());
        }
    }

    fn tell_usage(&mut self, out: &mut Vec<Event>) {
        let kept = std::mem::take(&mut self.usage);
        if let Ok(usage @ Value::Object(_)) = serde_json::from_str::<Value>(&kept) {
            out.push(Event::Usage { usage: read_usage(&usage), raw: usage });
        }
    }

    fn chunk(&mut self, chunk: &Value, out: &mut Vec<Event>) {
        if let Some(error) = chunk.get("error").filter(|e| !e.is_null()) {
            self.tell_usage(out);
            return out.push(Event::Failed(Failure::from_error_object(error)));
        }
        if !std::mem::replace(&mut self.started, true) {
            let id = optional_text(chunk, "responseId");
            out.push(Event::Started { id, model: optional_text(chunk, "modelVersion") });
        }
        let blocked = chunk.pointer("/promptFeedback/blockReason").and_then(Value::as_str);
        if let Some(reason) = blocked {
            self.finish = Some(format!("blocked:{reason}"));
        }
        let candidates = chunk.get("candidates").and_then(Value::as_array);
        let first = |c: &&Value| c.get("index").and_then(Value::as_u64).unwrap_or(0) == 0;
        for candidate in candidates.into_iter().flatten().filter(first) {
            let parts = candidate.pointer("/content/parts").and_then(Value::as_array);
            for part in parts.into_iter().flatten() {
                self.part(part, out);
            }
            if let Some(reason) = optional_text(candidate, "finishReason") {
                self.finish = Some(reason);
            }
        }
        if let Some(usage) = chunk.get("usageMetadata").filter(|u| u.is_object()) {
            self.usage.clear();
            out.push(Event::Usage { usage: read_usage(usage), raw: usage.clone() });
        }
    }

    fn part(&mut self, part: &Value, out: &mut Vec<Event>) {
        let there = |key: &str| part.get(key).filter(|value| !value.is_null());
        let signature = there("thoughtSignature").cloned();
        if let Some(call) = there("functionCall") {
            return self.call(call, signature, out);
        }
        if let Some(text) = part.get("text").and_then(Value::as_str) {
            let thought = part.get("thought").and_then(Value::as_bool).unwrap_or(false);
            return self.say(thought, text, signature, out);
        }
        let server = ["executableCode", "codeExecutionResult", "toolCall", "toolResponse"];
        if let Some(kind) = server.into_iter().find(|key| there(key).is_some()) {
            self.end_current(out);
            let item = &part[kind];
            let name = optional_text(item, "name").or_else(|| optional_text(item, "toolType"));
            let (block, id) = (self.take_block(), optional_text(item, "id"));
            let kind = kind.to_owned();
            out.push(Event::ServerTool { block, kind, id, name, opaque: part.clone() });
        } else if signature.is_some() {
            // A signature alone belongs to what was said before it.
            self.say(false, "", signature, out);
        }
    }

    fn say(&mut self, thought: bool, text: &str, signature: Option<Value>, out: &mut Vec<Event>) {
        let same = self.current.as_ref().is_some_and(|c| c.thought == thought);
        if !same {
            if text.is_empty() && signature.is_none() {
                return;
            }
            // An empty part only carries the signature of what came before.
            if text.is_empty() && self.current.is_some() {
                if let Some(current) = &mut self.current {
                    current.signature = signature.or(current.signature.take());
                }
                return;
            }
            self.end_current(out);
            let block = self.take_block();
            self.current = Some(Current { thought, block, signature: None });
        }
        let Some(current) = &mut self.current else { return };
        if signature.is_some() {
            current.signature = signature;
        }
        let block = current.block;
        if thought { push_reasoning(out, block, text) } else { push_text(out, block, text) }
    }

    fn call(&mut self, call: &Value, signature: Option<Value>, out: &mut Vec<Event>) {
        let goes_on = call.get("willContinue").and_then(Value::as_bool).unwrap_or(false);
        let name = text_of(call, "name");
        if self.open_call.is_none() || !name.is_empty() {
            self.end_call(out);
            self.end_current(out);
            let block = self.take_block();
            self.any_call = true;
            let id = text_of(call, "id").to_owned();
            out.push(Event::CallStart { block, id, name: name.to_owned() });
            let arguments = call.get("args").filter(|a| a.is_object()).cloned();
            let arguments = arguments.unwrap_or_else(|| Value::Object(Map::new()));
            self.open_call = Some(OpenCall { block, arguments, signature: None, growing: None });
        }
        let Some(open) = &mut self.open_call else { return };
        if signature.is_some() {
            open.signature = signature;
        }
        let pieces = call.get("partialArgs").and_then(Value::as_array);
        for piece in pieces.into_iter().flatten() {
            open.add(piece);
        }
        if !goes_on {
            self.end_call(out);
        }
    }

    fn end_call(&mut self, out: &mut Vec<Event>) {
        let Some(open) = self.open_call.take() else { return };
        push_arguments(out, open.block, &open.arguments.to_string());
        let opaque = open.signature.map(|s| json!({ "thoughtSignature": s }));
        out.push(Event::BlockEnd { block: open.block, opaque });
    }

    fn end_current(&mut self, out: &mut Vec<Event>) {
        if let Some(current) = self.current.take() {
            let opaque = current.signature.map(|s| json!({ "thoughtSignature": s }));
            out.push(Event::BlockEnd { block: current.block, opaque });
        }
    }

    fn take_block(&mut self) -> u32 {
        let block = self.next_block;
        self.next_block += 1;
        block
    }
}

impl OpenCall {
    /// One piece of the arguments: a value, or the next part of a string, at a JSON path.
    fn add(&mut self, piece: &Value) {
        let path = text_of(piece, "jsonPath");
        let goes_on = piece.get("willContinue").and_then(Value::as_bool).unwrap_or(false);
        let appends = self.growing.as_deref() == Some(path);
        let Some(place) = place_at(&mut self.arguments, path) else { return };
        if let Some(text) = piece.get("stringValue").and_then(Value::as_str) {
            match place {
                Value::String(old) if appends => old.push_str(text),
                place => *place = Value::String(text.to_owned()),
            }
        } else if let Some(value) = piece.get("numberValue").or_else(|| piece.get("boolValue")) {
            *place = whole_number(value);
        } else if piece.get("nullValue").is_some() {
            *place = Value::Null;
        }
        self.growing = goes_on.then(|| path.to_owned());
    }
}

/// Numbers come as floats; `5.0` was meant as `5`.
fn whole_number(value: &Value) -> Value {
    match value.as_f64() {
        Some(number) if number.fract() == 0.0 && number.abs() < 9e15 && !value.is_i64() => {
            format!("{number:.0}").parse::<i64>().map_or_else(|_| value.clone(), Value::from)
        }
        _ => value.clone(),
    }
}

/// Steps of a path. Real arguments are a few deep; a value that is nested without end could not
/// even be dropped.
const PATH_CAP: usize = 64;

/// The place that `$.a.b[0]['c']` names, made where it is missing. An array grows by one at a time.
fn place_at<'a>(root: &'a mut Value, path: &str) -> Option<&'a mut Value> {
    let mut place = root;
    for (depth, step) in path_steps(path).into_iter().enumerate() {
        if depth >= PATH_CAP {
            return None;
        }
        place = match step {
            Step::Index(index) => {
                if !place.is_array() {
                    *place = Value::Array(Vec::new());
                }
                let items = place.as_array_mut()?;
                if index == items.len() {
                    items.push(Value::Null);
                }
                items.get_mut(index)?
            }
            Step::Key(key) => {
                if !place.is_object() {
                    *place = Value::Object(Map::new());
                }
                place.as_object_mut()?.entry(key).or_insert(Value::Null)
            }
        };
    }
    Some(place)
}

enum Step {
    Key(String),
    Index(usize),
}

fn path_steps(path: &str) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut rest = path.strip_prefix('$').unwrap_or(path);
    while !rest.is_empty() && steps.len() <= PATH_CAP {
        if let Some(inner) = rest.strip_prefix('[') {
            let quoted = inner.strip_prefix('\'').and_then(|i| i.split_once("']"));
            let quoted =
                quoted.or_else(|| inner.strip_prefix('"').and_then(|i| i.split_once("\"]")));
            if let Some((key, after)) = quoted {
                steps.push(Step::Key(key.to_owned()));
                rest = after;
                continue;
            }
            let (index, after) = inner.split_once(']').unwrap_or((inner, ""));
            steps.push(match index.parse() {
                Ok(index) => Step::Index(index),
                Err(_) => Step::Key(index.to_owned()),
            });
            rest = after;
        } else {
            let name = rest.strip_prefix('.').unwrap_or(rest);
            let end = name.find(['.', '[']).unwrap_or(name.len());
            if end > 0 {
                steps.push(Step::Key(name[..end].to_owned()));
            }
            rest = &name[end..];
        }
    }
    steps
}

fn read_usage(usage: &Value) -> Usage {
    let number = |key: &str| usage.get(key).and_then(Value::as_u64).unwrap_or(0);
    let cache_read = number("cachedContentTokenCount");
    let prompt = number("promptTokenCount").saturating_add(number("toolUsePromptTokenCount"));
    let reasoning = number("thoughtsTokenCount");
    Usage {
        input: prompt.saturating_sub(cache_read),
        // Thoughts are counted beside the answer.
        output: number("candidatesTokenCount").saturating_add(reasoning),
        reasoning,
        cache_read,
        cache_write: 0,
    }
}
