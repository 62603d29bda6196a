//! OpenAI Chat Completions, reading. The format has many dialects; what they disagree on is
//! written beside the line that tolerates it.

use serde_json::Value;

use super::chat_frames::{CallDelta, Choice, Chunk, Delta, FunctionDelta, Text, mend, read_usage};
use super::chat_plain::PlainChunk;
use super::{Codec, Str, broke_off, unreadable};
use crate::event::{push_arguments, push_reasoning, push_text};
use crate::{Event, Failure, Finish, FinishReason, SseEvent};

#[derive(Default)]
pub(super) struct ChatCodec {
    next_block: u32,
    /// The text or reasoning block that deltas go on with.
    current: Option<(Kind, u32)>,
    calls: Vec<CallState>,
    finish: Option<String>,
    closed_by: Option<String>,
    /// The answer's id and the model's name.
    maker: (Option<String>, Option<String>),
    /// Where the text of a whole answer goes.
    text_block: Option<u32>,
    /// OpenRouter's reasoning items, put together; they go back as they came.
    details: Vec<Value>,
    reasoning_block: Option<u32>,
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Text,
    Reasoning,
    Refusal,
}

struct CallState {
    index: Option<u64>,
    id: String,
    name: String,
    block: u32,
    ended: bool,
}

impl Codec for ChatCodec {
    fn event(&mut self, event: SseEvent<'_>, out: &mut Vec<Event>) {
        if event.data.trim() == "[DONE]" {
            return self.close(out);
        }
        if let Ok(chunk) = serde_json::from_str::<PlainChunk<'_>>(event.data) {
            return self.plain_chunk(chunk, out);
        }
        let error = match serde_json::from_str::<Chunk<'_>>(event.data) {
            Ok(chunk) => return self.chunk(chunk, out),
            Err(error) => error,
        };
        // One field of an odd type must not cost the whole answer.
        let mended =
            serde_json::from_str::<Value>(event.data).ok().map(|v| mend(v, true).to_string());
        match mended.as_deref().map(serde_json::from_str::<Chunk<'_>>) {
            Some(Ok(chunk)) => self.chunk(chunk, out),
            _ => out.push(unreadable(event.data, &error)),
        }
    }

    fn body(&mut self, body: Value, out: &mut Vec<Event>) {
        let answered = body.get("choices").is_some_and(Value::is_array);
        let error = body.get("error").filter(|e| !e.is_null());
        if !answered || error.is_some() {
            let error = error.unwrap_or(&body);
            return out.push(Event::Failed(Failure::from_error_object(error)));
        }
        let text = mend(body, false).to_string();
        match serde_json::from_str::<Chunk<'_>>(&text) {
            Ok(chunk) => {
                // An answer that came whole has a text, be it empty.
                if chunk.choices.as_ref().is_some_and(|choices| !choices.is_empty()) {
                    self.text_block = Some(self.take_block());
                    let block = self.text_block.unwrap_or_default();
                    out.push(Event::Text { block, delta: String::new() });
                }
                self.chunk(chunk, out);
            }
            Err(error) => return out.push(unreadable(&text, &error)),
        }
        if !out.iter().any(|event| matches!(event, Event::Failed(_))) {
            self.end_blocks(out);
            self.close(out);
        }
    }

    fn finish_word(&self) -> Option<String> {
        self.finish.clone().or_else(|| self.closed_by.clone()).filter(|word| !word.is_empty())
    }

    fn end(&mut self, out: &mut Vec<Event>) {
        // Without `[DONE]` the finish reason is the end; without both the answer is cut.
        if self.finish.is_some() { self.close(out) } else { out.push(broke_off()) }
    }
}

impl ChatCodec {
    fn plain_chunk(&mut self, chunk: PlainChunk<'_>, out: &mut Vec<Event>) {
        self.note_maker(chunk.id, chunk.model, out);
        let [choice] = chunk.choices;
        if choice.index.unwrap_or(0) != 0 {
            return;
        }
        let delta = choice.delta;
        let thoughts = [delta.reasoning_content, delta.reasoning];
        if let Some(text) = thoughts.into_iter().flatten().find(|text| !text.is_empty()) {
            self.say(Kind::Reasoning, &text, out);
        }
        if let Some(text) = delta.content {
            self.say(Kind::Text, &text, out);
        }
        for call in delta.tool_calls.into_iter().flatten() {
            let arguments = Some(Text::Plain(call.function.arguments.0));
            let function = Some(FunctionDelta { name: None, arguments, input: None });
            self.call(CallDelta { index: Some(call.index), id: None, function, custom: None }, out);
        }
        if let Some(reason) = choice.finish_reason.filter(|reason| !reason.is_empty()) {
            self.finish = Some(reason.0.into_owned());
        }
    }

    fn chunk(&mut self, chunk: Chunk<'_>, out: &mut Vec<Event>) {
        if let Some(error) = chunk.error.filter(|e| !e.is_null()) {
            if let Some(usage) = chunk.usage.filter(|u| u.is_object()) {
                out.push(Event::Usage { usage: read_usage(&usage), raw: *usage });
            }
            let reason = chunk.choices.into_iter().flatten().find_map(|c| c.finish_reason);
            self.finish = reason.map(|reason| reason.0.into_owned()).or(self.finish.take());
            return out.push(Event::Failed(Failure::from_error_object(&error)));
        }
        self.note_maker(plain(chunk.id), plain(chunk.model), out);
        // Only the first choice is ours: we never ask for more.
        let ours = |c: &Choice<'_>| c.index.unwrap_or(0) == 0;
        for choice in chunk.choices.into_iter().flatten().filter(ours) {
            if let Some(delta) = choice.delta {
                self.delta(delta, out);
            }
            if let Some(usage) = choice.usage.filter(|u| u.is_object()) {
                out.push(Event::Usage { usage: read_usage(&usage), raw: *usage });
            }
            if let Some(error) = choice.error.filter(|e| !e.is_null()) {
                self.finish = choice.finish_reason.map(|r| r.0.into_owned()).or(self.finish.take());
                return out.push(Event::Failed(Failure::from_error_object(&error)));
            }
            // Some servers send it empty with every chunk.
            if let Some(reason) = choice.finish_reason.filter(|reason| !reason.is_empty()) {
                self.finish = Some(reason.0.into_owned());
            }
        }
        let groq = chunk.x_groq.and_then(|mut x| x.get_mut("usage").map(Value::take).map(Box::new));
        if let Some(usage) = chunk.usage.or(groq).filter(|u| u.is_object()) {
            out.push(Event::Usage { usage: read_usage(&usage), raw: *usage });
        }
    }

    /// Some servers name themselves late, others change their id on the way: the first name counts.
    fn note_maker(&mut self, id: Option<Str<'_>>, model: Option<Str<'_>>, out: &mut Vec<Event>) {
        let learned = |known: &mut Option<String>, given: Option<Str<'_>>| match given {
            Some(text) if known.as_ref().is_none_or(String::is_empty) => {
                let new = !text.is_empty();
                *known = Some(text.0.into_owned());
                new
            }
            _ => false,
        };
        let unknown = self.maker.0.is_none();
        let new_id = learned(&mut self.maker.0, id);
        if learned(&mut self.maker.1, model) || new_id || unknown {
            let (id, model) = self.maker.clone();
            out.push(Event::Started { id, model });
        }
    }

    fn delta(&mut self, delta: Delta<'_>, out: &mut Vec<Event>) {
        // The same thought may stand under several names: take it once.
        let named = [delta.reasoning_content, plain(delta.reasoning), delta.reasoning_text];
        let details = delta.reasoning_details.as_deref().and_then(Value::as_array);
        for detail in details.into_iter().flatten() {
            self.keep_detail(detail);
        }
        match named.into_iter().flatten().find(|text| !text.is_empty()) {
            Some(text) => self.say(Kind::Reasoning, &text, out),
            None => {
                for detail in details.into_iter().flatten() {
                    let text = detail.get("text").or_else(|| detail.get("summary"));
                    self.say(
                        Kind::Reasoning,
                        text.and_then(Value::as_str).unwrap_or_default(),
                        out,
                    );
                }
            }
        }
        match delta.content {
            Some(Text::Plain(text)) => self.say(Kind::Text, &text, out),
            Some(Text::Other(parts)) => self.say_parts(&parts, out),
            None => {}
        }
        if let Some(text) = delta.refusal {
            self.say(Kind::Refusal, &text, out);
        }
        // Some servers send it empty in every answer.
        let empty = |f: &FunctionDelta<'_>| {
            let said = |text: &Text<'_>| !matches!(text, Text::Plain(text) if text.is_empty());
            f.name.as_ref().is_none_or(|name| name.is_empty())
                && !f.arguments.as_ref().is_some_and(said)
        };
        if let Some(function) = delta.function_call.filter(|f| !empty(f)) {
            let function = Some(*function);
            self.call(CallDelta { index: Some(0), id: None, function, custom: None }, out);
        }
        for call in delta.tool_calls.into_iter().flatten() {
            self.call(call, out);
        }
    }

    fn say(&mut self, kind: Kind, text: &str, out: &mut Vec<Event>) {
        if text.is_empty() {
            return;
        }
        let block = match (self.current, self.text_block) {
            (_, Some(block)) if kind == Kind::Text => block,
            (Some((current, block)), _) if current == kind => block,
            _ => {
                self.end_current(out);
                let block = self.take_block();
                self.current = Some((kind, block));
                block
            }
        };
        match kind {
            Kind::Text => push_text(out, block, text),
            Kind::Reasoning => {
                self.reasoning_block.get_or_insert(block);
                push_reasoning(out, block, text);
            }
            Kind::Refusal => out.push(Event::Refusal { block, delta: text.to_owned() }),
        }
    }

    /// Pieces of one item have the same kind and index: texts are joined, the rest is the latest.
    fn keep_detail(&mut self, detail: &Value) {
        let same = |kept: &&mut Value| {
            let differs = |key| {
                let (a, b) = (kept.get(key), detail.get(key));
                a.is_some_and(|v| !v.is_null()) && b.is_some_and(|v| !v.is_null()) && a != b
            };
            kept.get("type") == detail.get("type")
                && kept.get("index") == detail.get("index")
                && !differs("id")
        };
        let Some(kept) = self.details.iter_mut().rfind(same).and_then(Value::as_object_mut) else {
            return self.details.push(detail.clone());
        };
        for (key, value) in detail.as_object().into_iter().flatten() {
            match (kept.get_mut(key), value) {
                (Some(Value::String(old)), Value::String(more))
                    if matches!(key.as_str(), "text" | "summary" | "data") =>
                {
                    old.push_str(more);
                }
                (_, Value::Null) => {}
                _ => {
                    kept.insert(key.clone(), value.clone());
                }
            }
        }
    }

    fn say_parts(&mut self, parts: &Value, out: &mut Vec<Event>) {
        for part in parts.as_array().into_iter().flatten() {
            let thinking = part.get("type").and_then(Value::as_str) == Some("thinking");
            let kind = if thinking { Kind::Reasoning } else { Kind::Text };
            match part.get("text").or_else(|| part.get("thinking")) {
                Some(Value::String(text)) => self.say(kind, text, out),
                Some(nested) => {
                    for text in nested.as_array().into_iter().flatten() {
                        let text = text.get("text").and_then(Value::as_str).unwrap_or_default();
                        self.say(kind, text, out);
                    }
                }
                None => {}
            }
        }
    }

    fn call(&mut self, delta: CallDelta<'_>, out: &mut Vec<Event>) {
        self.end_current(out);
        let function = delta.function.or(delta.custom.map(|custom| *custom));
        let name = function.as_ref().and_then(|f| f.name.as_deref()).unwrap_or_default();
        let id = delta.id.as_deref().unwrap_or_default();
        let at = match self.find(delta.index, id, name) {
            Some(at) => {
                self.complete_call(at, id, name, out);
                at
            }
            // Arguments that belong to no call: nothing to add them to.
            None if name.is_empty() && id.is_empty() && delta.index.is_none() => return,
            None => {
                self.end_calls(out);
                let block = self.take_block();
                out.push(Event::CallStart { block, id: id.to_owned(), name: name.to_owned() });
                let (id, name) = (id.to_owned(), name.to_owned());
                self.calls.push(CallState { index: delta.index, id, name, block, ended: false });
                self.calls.len() - 1
            }
        };
        let block = self.calls[at].block;
        match function.and_then(|f| f.arguments.or(f.input)) {
            Some(Text::Plain(json)) => push_arguments(out, block, &json),
            Some(Text::Other(object)) => push_arguments(out, block, &object.to_string()),
            None => {}
        }
    }

    /// A name or an id that comes after the call's first delta.
    fn complete_call(&mut self, at: usize, id: &str, name: &str, out: &mut Vec<Event>) {
        let call = &mut self.calls[at];
        let new_id = call.id.is_empty() && !id.is_empty();
        let new_name = call.name.is_empty() && !name.is_empty();
        if new_id {
            id.clone_into(&mut call.id);
        }
        if new_name {
            name.clone_into(&mut call.name);
        }
        if new_id || new_name {
            let (block, id, name) = (call.block, call.id.clone(), Some(call.name.clone()));
            out.push(Event::CallReplace { block, id, name, arguments: None });
        }
    }

    /// The call that a delta goes on with. The index decides, but the same index with a new id and
    /// a name is another call; without an index the id decides; without both, the last one goes on.
    fn find(&self, index: Option<u64>, id: &str, name: &str) -> Option<usize> {
        let open = |c: &CallState| !c.ended;
        match index {
            Some(_) => {
                let at = self.calls.iter().rposition(|c| open(c) && c.index == index)?;
                let known = &self.calls[at].id;
                let another =
                    !id.is_empty() && !name.is_empty() && !known.is_empty() && known != id;
                (!another).then_some(at)
            }
            None if !id.is_empty() => self.calls.iter().rposition(|c| open(c) && c.id == id),
            None if name.is_empty() => self.calls.iter().rposition(open),
            None => None,
        }
    }

    fn take_block(&mut self) -> u32 {
        let block = self.next_block;
        self.next_block += 1;
        block
    }

    fn end_current(&mut self, out: &mut Vec<Event>) {
        if let Some((_, block)) = self.current.take() {
            out.push(Event::BlockEnd { block, opaque: None });
        }
    }

    /// Calls without an index arrive one after the other: a new one ends those before it. Calls
    /// with an index may interleave and end with the answer.
    fn end_calls(&mut self, out: &mut Vec<Event>) {
        for call in self.calls.iter_mut().filter(|c| !c.ended && c.index.is_none()) {
            call.ended = true;
            out.push(Event::BlockEnd { block: call.block, opaque: None });
        }
    }

    fn end_blocks(&mut self, out: &mut Vec<Event>) {
        self.end_current(out);
        if !self.details.is_empty() {
            let block = self.reasoning_block.unwrap_or_else(|| {
                let block = self.next_block;
                self.next_block += 1;
                block
            });
            let details = std::mem::take(&mut self.details);
            let opaque = Some(serde_json::json!({ "reasoning_details": details }));
            out.push(Event::BlockEnd { block, opaque });
        }
        for call in self.calls.iter_mut().filter(|c| !c.ended) {
            call.ended = true;
            out.push(Event::BlockEnd { block: call.block, opaque: None });
        }
    }

    fn close(&mut self, out: &mut Vec<Event>) {
        // Not with the finish reason: calls and signatures may still come behind it.
        self.end_blocks(out);
        let Some(raw) = self.finish.take() else {
            // `[DONE]` without a reason: the server says that it is done, so what came is whole.
            self.closed_by = Some(String::new());
            let reason = FinishReason::Unknown;
            return out.push(Event::Finish(Finish { reason, raw: String::new() }));
        };
        self.closed_by = Some(raw.clone());
        let reason = match raw.as_str() {
            "stop" | "eos" | "end_turn" => FinishReason::Stop,
            "tool_calls" | "function_call" => FinishReason::ToolCalls,
            "length" | "max_tokens" => FinishReason::Length,
            "content_filter" => FinishReason::ContentFilter,
            _ => FinishReason::Unknown,
        };
        out.push(Event::Finish(Finish { reason, raw }));
    }
}

fn plain(text: Option<Text<'_>>) -> Option<Str<'_>> {
    match text {
        Some(Text::Plain(text)) => Some(Str(text)),
        _ => None,
    }
}
