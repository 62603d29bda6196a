//! A session in OpenCode's export form: `{info, messages: [{info, parts}]}`. What that form has no place
//! for stands under `metadata.toolwright`, where others leave it alone and our import finds it.

use serde_json::{Map, Value, json};
use toolwright_llm::{Content, FailureKind, FinishReason, Media, Usage};

use crate::chronicle::{Chronicle, Shortening, Span, Timing};
use crate::fold::{Item, Place, Prompt};
use crate::step::{Call, Ending, Outcome, Slot, Step, StepBlock};

/// What our own data is kept under.
pub(crate) const OWN: &str = "toolwright";

/// The messages of one session, with ids that sort as they stand.
struct Writer<'a> {
    chronicle: &'a Chronicle,
    session: String,
    messages: Vec<Value>,
    /// The person's message that answers belong to.
    asked: String,
    agent: String,
}

pub(super) fn form(chronicle: &Chronicle) -> Value {
    let session = &chronicle.session;
    let mut writer = Writer {
        chronicle,
        session: session.header.session.clone(),
        messages: Vec::new(),
        asked: String::new(),
        agent: String::new(),
    };
    let mut shortenings = chronicle.shortenings.iter().peekable();
    for (at, item) in session.items().iter().enumerate() {
        while let Some(shortening) = shortenings.next_if(|shortening| shortening.at <= at) {
            writer.shortening(shortening);
        }
        let (Some(place), Some(timing)) = (session.places().get(at), chronicle.timings.get(at))
        else {
            continue;
        };
        match item {
            Item::Prompt(prompt) => writer.prompt(prompt, place),
            Item::Note(text) => writer.note(text, place),
            Item::Step(step) => writer.step(step, place, timing),
        }
    }
    shortenings.for_each(|shortening| writer.shortening(shortening));
    json!({ "info": info(chronicle), "messages": writer.messages })
}

fn info(chronicle: &Chronicle) -> Value {
    let session = &chronicle.session;
    let header = &session.header;
    let mut info = json!({
        "id": header.session,
        // Not told apart by it: two words that a person can say.
        "slug": "imported-session",
        "projectID": "global",
        "directory": header.directory,
        "title": session.title(),
        "version": header.made_by,
        "cost": cost_of(chronicle),
        "tokens": tokens(&session.usage()),
        "time": { "created": chronicle.created, "updated": chronicle.updated },
    });
    if let Some(prompt) = session.last_prompt() {
        info["agent"] = json!(prompt.agent);
        info["model"] = json!({ "id": prompt.model.model, "providerID": prompt.model.provider });
    }
    if let Some(parent) = &header.parent {
        info["parentID"] = json!(parent);
    }
    let mut own = Map::new();
    if let Some(title) = session.given_title() {
        own.insert("title".to_owned(), json!(title));
    }
    if let Some(original) = &header.forked_from {
        own.insert("forked_from".to_owned(), json!(original));
    }
    if !own.is_empty() {
        info["metadata"] = json!({ OWN: own });
    }
    info
}

fn cost_of(chronicle: &Chronicle) -> f64 {
    let steps = chronicle.session.items().iter().filter_map(|item| match item {
        Item::Step(step) => step.cost,
        _ => None,
    });
    steps.chain(chronicle.shortenings.iter().filter_map(|s| s.cost)).sum()
}

/// OpenCode counts reasoning apart from output.
fn tokens(usage: &Usage) -> Value {
    json!({
        "input": usage.input, "output": usage.output.saturating_sub(usage.reasoning),
        "reasoning": usage.reasoning,
        "cache": { "read": usage.cache_read, "write": usage.cache_write },
    })
}

fn message_id(id: impl std::fmt::Display) -> String {
    format!("msg_{id}")
}

impl Writer<'_> {
    fn push(&mut self, id: &str, mut info: Value, parts: Vec<Value>) {
        info["id"] = json!(id);
        info["sessionID"] = json!(self.session);
        let parts = parts.into_iter().enumerate().map(|(number, mut part)| {
            part["id"] = json!(format!("prt_{}{number:05}", id.trim_start_matches("msg_")));
            part["sessionID"] = json!(self.session);
            part["messageID"] = json!(id);
            let own = part["id"].as_str().unwrap_or_default().to_owned();
            let files = part.pointer_mut("/state/attachments").and_then(Value::as_array_mut);
            for (number, file) in files.into_iter().flatten().enumerate() {
                file["id"] = json!(format!("{own}{number:03}"));
                file["sessionID"] = json!(self.session);
                file["messageID"] = json!(id);
            }
            part
        });
        let parts: Vec<Value> = parts.collect();
        self.messages.push(json!({ "info": info, "parts": parts }));
    }

    fn user_info(&self, time: u64) -> Value {
        let model = self.chronicle.session.last_prompt().map(|prompt| &prompt.model);
        json!({
            "role": "user", "time": { "created": time }, "agent": self.agent,
            "model": {
                "providerID": model.map_or("", |m| &m.provider),
                "modelID": model.map_or("", |m| &m.model),
            },
        })
    }

    fn prompt(&mut self, prompt: &Prompt, place: &Place) {
        let id = message_id(place.id);
        prompt.agent.clone_into(&mut self.agent);
        let mut info = self.user_info(place.time);
        info["model"] =
            json!({ "providerID": prompt.model.provider, "modelID": prompt.model.model });
        let mut parts: Vec<Value> = prompt.content.iter().map(content_part).collect();
        if prompt.steer {
            match parts.first_mut() {
                Some(part) => part["metadata"] = json!({ OWN: { "steer": true } }),
                None => parts.push(json!({ "type": "text", "text": "" })),
            }
        } else {
            self.asked.clone_from(&id);
        }
        self.push(&id, info, parts);
    }

    fn note(&mut self, text: &str, place: &Place) {
        let info = self.user_info(place.time);
        let part = json!({ "type": "text", "text": text, "synthetic": true });
        self.push(&message_id(place.id), info, vec![part]);
    }

    fn answer_info(&self, model: &toolwright_llm::Origin, span: Span) -> Value {
        let directory = &self.chronicle.session.header.directory;
        let mut time = json!({ "created": span.start });
        if let Some(end) = span.end {
            time["completed"] = json!(end);
        }
        json!({
            "role": "assistant", "parentID": self.asked, "mode": self.agent, "agent": self.agent,
            "modelID": model.model, "providerID": model.provider,
            "path": { "cwd": directory, "root": directory },
            "time": time, "cost": 0, "tokens": tokens(&Usage::default()),
        })
    }

    fn step(&mut self, step: &Step, place: &Place, timing: &Timing) {
        let last = timing.calls.iter().filter_map(|call| call.end).max();
        let span = Span { start: timing.span.start, end: timing.span.end.max(last) };
        let mut info = self.answer_info(&step.model, span);
        info["cost"] = json!(step.cost.unwrap_or(0.0));
        info["tokens"] = tokens(&step.usage);
        let mut parts = vec![json!({ "type": "step-start" })];
        let mut calls = timing.calls.iter();
        for block in &step.blocks {
            parts.push(match block {
                StepBlock::Text { text, opaque } => {
                    let time = json!({ "start": span.start, "end": timing.span.end });
                    with_opaque(json!({ "type": "text", "text": text, "time": time }), opaque)
                }
                StepBlock::Reasoning { text, opaque } => {
                    let time = json!({ "start": span.start, "end": timing.span.end });
                    with_opaque(json!({ "type": "reasoning", "text": text, "time": time }), opaque)
                }
                StepBlock::ServerTool { name, opaque } => {
                    let time =
                        json!({ "start": span.start, "end": span.end.unwrap_or(span.start) });
                    json!({
                        "type": "tool", "tool": name, "callID": format!("server_{}", parts.len()),
                        "state": { "status": "completed", "input": {}, "output": "", "title": name,
                                   "metadata": {}, "time": time },
                        "metadata": { "providerExecuted": true, OWN: { "opaque": opaque } },
                    })
                }
                StepBlock::Call(call) => call_part(call, calls.next().copied().unwrap_or_default()),
            });
        }
        if let Some(finish) = &step.finish {
            let reason = finish_word(finish.reason);
            info["finish"] = json!(reason);
            let mut part = json!({
                "type": "step-finish", "reason": reason,
                "cost": step.cost.unwrap_or(0.0), "tokens": tokens(&step.usage),
            });
            let own = json!({ "finish": finish, "priced": step.cost.is_some() });
            part["metadata"] = json!({ OWN: own });
            parts.push(part);
        }
        if let Some(failure) = &step.failure {
            let name = match failure.kind {
                FailureKind::Auth => "ProviderAuthError",
                FailureKind::ContextOverflow => "ContextOverflowError",
                FailureKind::Refused => "ContentFilterError",
                _ => "APIError",
            };
            let mut data = json!({
                "message": failure.message, "providerID": step.model.provider,
                "isRetryable": failure.is_transient(),
                "metadata": { OWN: serde_json::to_string(failure).unwrap_or_default() },
            });
            if let Some(status) = failure.status {
                data["statusCode"] = json!(status);
            }
            info["error"] = json!({ "name": name, "data": data });
        } else if step.finish.is_none() {
            info["error"] =
                json!({ "name": "MessageAbortedError", "data": { "message": "Aborted" } });
        }
        self.push(&message_id(place.id), info, parts);
    }

    /// As OpenCode writes it down: the wish to shorten, and the notes as an answer to it.
    fn shortening(&mut self, shortening: &Shortening) {
        let items = self.chronicle.session.places();
        let asked = message_id(shortening.id);
        let mut part = json!({ "type": "compaction", "auto": shortening.reason != "asked" });
        if let Some(place) = items.get(shortening.keep_from) {
            part["tail_start_id"] = json!(message_id(place.id));
        }
        let info = self.user_info(shortening.time);
        self.push(&asked, info, vec![part]);
        let last = self.chronicle.session.last_prompt().map(|prompt| prompt.model.clone());
        let nobody = || toolwright_llm::Origin { provider: String::new(), model: String::new() };
        let model = last.unwrap_or_else(nobody);
        let span = Span { start: shortening.time, end: Some(shortening.time) };
        let mut info = self.answer_info(&model, span);
        info["parentID"] = json!(asked);
        info["summary"] = json!(true);
        info["finish"] = json!("stop");
        info["cost"] = json!(shortening.cost.unwrap_or(0.0));
        info["tokens"] = tokens(&shortening.usage);
        let own = json!({
            "keep_from": shortening.keep_from, "reason": shortening.reason,
            "priced": shortening.cost.is_some(),
        });
        let text = json!({ "type": "text", "text": shortening.summary, "metadata": { OWN: own } });
        // Behind the wish, before whatever comes next.
        self.push(&format!("{asked}s"), info, vec![text]);
    }
}

fn with_opaque(mut part: Value, opaque: &Option<Value>) -> Value {
    if part["time"]["end"].is_null()
        && let Some(time) = part["time"].as_object_mut()
    {
        time.remove("end");
    }
    if let Some(opaque) = opaque {
        part["metadata"] = json!({ OWN: { "opaque": opaque } });
    }
    part
}

fn content_part(content: &Content) -> Value {
    match content {
        Content::Text { text } => json!({ "type": "text", "text": text }),
        Content::Media(media) => file_part(media),
    }
}

fn file_part(media: &Media) -> Value {
    let url = format!("data:{};base64,{}", media.mime, media.base64);
    let mut part = json!({ "type": "file", "mime": media.mime, "url": url });
    if let Some(name) = &media.name {
        part["filename"] = json!(name);
    }
    part
}

/// The words are OpenCode's.
fn finish_word(reason: FinishReason) -> &'static str {
    match reason {
        FinishReason::Stop => "stop",
        FinishReason::ToolCalls => "tool-calls",
        FinishReason::Length => "length",
        FinishReason::ContentFilter => "content-filter",
        FinishReason::Pause | FinishReason::Unknown => "unknown",
    }
}

fn call_part(call: &Call, span: Span) -> Value {
    let parsed: Option<Value> = serde_json::from_str(&call.arguments).ok();
    let input = match parsed {
        Some(Value::Object(input)) => Value::Object(input),
        Some(other) => json!({ "value": other }),
        None => json!({ "value": call.arguments }),
    };
    let mut own = Map::new();
    let written = input.to_string();
    if written != call.arguments {
        own.insert("arguments".to_owned(), json!(call.arguments));
    }
    if let Some(opaque) = call.opaque() {
        own.insert("opaque".to_owned(), opaque.clone());
    }
    if !call.touched().is_empty() {
        own.insert("touched".to_owned(), json!(call.touched()));
    }
    let mut tool = call.name.clone();
    let state = match call.slot() {
        Slot::Settled(outcome) => {
            if outcome.tool != call.name {
                own.insert("asked_for".to_owned(), json!(call.name));
                tool.clone_from(&outcome.tool);
            }
            own.insert("outcome".to_owned(), rest_of(outcome));
            settled(outcome, input, span, call.is_pruned())
        }
        Slot::Pending | Slot::Running { .. } => json!({
            "status": "error", "input": input, "error": "Tool execution aborted",
            "metadata": { "interrupted": true },
            "time": { "start": span.start, "end": span.end.unwrap_or(span.start) },
        }),
    };
    let mut part = json!({ "type": "tool", "tool": tool, "callID": call.id, "state": state });
    part["metadata"] = json!({ OWN: own });
    part
}

/// What the form has no place for.
fn rest_of(outcome: &Outcome) -> Value {
    let mut rest = json!({ "ending": outcome.ending, "duration_ms": outcome.duration_ms });
    if let Some(cost) = outcome.cost {
        rest["cost"] = json!(cost);
    }
    if !outcome.details.is_object() && !outcome.details.is_null() {
        rest["details"] = outcome.details.clone();
    }
    if outcome.ending != Ending::Completed {
        rest["title"] = json!(outcome.title);
    }
    if outcome.details.is_null() {
        rest["no_details"] = json!(true);
    }
    rest
}

fn settled(outcome: &Outcome, input: Value, span: Span, pruned: bool) -> Value {
    let details = if outcome.details.is_object() { outcome.details.clone() } else { json!({}) };
    let end = span.end.unwrap_or(span.start);
    let mut time = json!({ "start": span.start, "end": end });
    if pruned {
        time["compacted"] = json!(end);
    }
    let attachments: Vec<Value> = outcome.attachments.iter().map(file_part).collect();
    let mut state = match outcome.ending {
        Ending::Completed => json!({
            "status": "completed", "input": input, "output": outcome.output,
            "title": outcome.title, "metadata": details, "time": time,
        }),
        ending => {
            let mut metadata = details;
            if ending == Ending::Interrupted {
                metadata["interrupted"] = json!(true);
            }
            json!({
                "status": "error", "input": input, "error": outcome.output, "metadata": metadata,
                "time": time,
            })
        }
    };
    if !attachments.is_empty() {
        state["attachments"] = json!(attachments);
    }
    state
}
