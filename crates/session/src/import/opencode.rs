//! OpenCode's export: `{info, messages: [{info, parts}]}`, by OpenCode itself or by our own export, whose
//! additions are read back.

use std::collections::HashMap;

use serde_json::{Map, Value};
use toolwright_llm::{Content, Failure, FailureKind, Finish, FinishReason, Origin, Usage};

use super::build::{Answer, Builder, Piece, Result as Settled, media, text, time};
use super::{Foreign, ImportError};
use crate::export::OWN;
use crate::step::{Ending, Outcome, ReplyPart};

pub(super) fn read(whole: &Value) -> Result<Foreign, ImportError> {
    let info = &whole["info"];
    let given = &info["metadata"][OWN]["title"];
    let ours = is_ours(whole);
    let title = if ours { given.as_str() } else { info["title"].as_str() };
    let mut builder = Builder {
        id: text(&info["id"]).to_owned(),
        directory: text(&info["directory"]).to_owned(),
        title: title.filter(|title| !is_default(title)).map(str::to_owned),
        created: time(&info["time"]["created"]),
        ..Builder::default()
    };
    // Where each message begins, for what names one.
    let mut begins: HashMap<&str, usize> = HashMap::new();
    let messages = whole["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
    // Gone back to before this one, and nothing was said since.
    let back_to = whole["info"]["revert"]["messageID"].as_str();
    let undone = messages.iter().position(|m| back_to.is_some_and(|id| m["info"]["id"] == id));
    for _ in undone.unwrap_or(messages.len())..messages.len() {
        builder.left_out("messages that were undone");
    }
    for message in &messages[..undone.unwrap_or(messages.len())] {
        let (info, parts) = (&message["info"], &message["parts"]);
        if !info.is_object() {
            builder.left_out("messages that cannot be read");
            continue;
        }
        begins.insert(text(&info["id"]), builder.items());
        let parts = parts.as_array().map(Vec::as_slice).unwrap_or_default();
        match text(&info["role"]) {
            "user" => user(&mut builder, info, parts, &begins),
            "assistant" => assistant(&mut builder, info, parts),
            other => builder.left_out(format!("messages of the unknown role \"{other}\"")),
        }
    }
    let mut foreign = Foreign::of(builder, if ours { OWN } else { "opencode" })?;
    for child in whole["children"].as_array().into_iter().flatten() {
        match read(child) {
            Ok(child) => foreign.children.push(child),
            Err(ImportError::Empty) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(foreign)
}

/// Ids of ours are not those of OpenCode.
fn is_ours(whole: &Value) -> bool {
    let first = whole["messages"].get(0).map(|message| text(&message["info"]["id"]).len());
    let ulid = "msg_".len() + 26;
    text(&whole["info"]["slug"]) == "imported-session" && first.is_none_or(|length| length == ulid)
}

/// What OpenCode calls a session that has no name yet.
fn is_default(title: &str) -> bool {
    title.starts_with("New session - ") || title.starts_with("Child session - ")
}

fn user(builder: &mut Builder, info: &Value, parts: &[Value], begins: &HashMap<&str, usize>) {
    let created = time(&info["time"]["created"]);
    let model = Origin {
        provider: text(&info["model"]["providerID"]).to_owned(),
        model: text(&info["model"]["modelID"]).to_owned(),
    };
    let mut content = Vec::new();
    let mut notes = Vec::new();
    let mut steer = false;
    for part in parts {
        steer |= part["metadata"][OWN]["steer"] == true;
        match text(&part["type"]) {
            // Shown, and sent to no model.
            "text" if part["ignored"] == true => {}
            "text" if part["synthetic"] == true => notes.push(text(&part["text"])),
            "text" => content.push(Content::text(text(&part["text"]))),
            "file" => match media(text(&part["url"]), part["filename"].as_str()) {
                Some(media) => content.push(Content::Media(media)),
                None => builder.left_out("attached files that are not in the export"),
            },
            "agent" => content.push(Content::text(format!("@{}", text(&part["name"])))),
            "subtask" => content.push(Content::text(text(&part["prompt"]))),
            "compaction" => {
                let tail = part["tail_start_id"].as_str().and_then(|id| begins.get(id).copied());
                let keep_from = tail.unwrap_or_else(|| builder.items());
                builder.pieces.push(Piece::Shortened {
                    time: created,
                    summary: String::new(),
                    keep_from,
                    reason: if part["auto"] == true { "full" } else { "asked" }.to_owned(),
                    usage: Usage::default(),
                    cost: None,
                });
                return;
            }
            other => strange(builder, other),
        }
    }
    if !content.is_empty() || notes.is_empty() {
        let agent = info["agent"].as_str().or(info["mode"].as_str()).unwrap_or("build").to_owned();
        builder.pieces.push(Piece::Prompt { time: created, content, agent, model, steer });
    }
    // One item a message: what names a message must find it.
    if !notes.is_empty() {
        builder.note(created, notes.join("\n\n"));
    }
}

fn assistant(builder: &mut Builder, info: &Value, parts: &[Value]) {
    let start = time(&info["time"]["created"]);
    let end = info["time"].get("completed").map_or(start, time).max(start);
    let own_cost = info["cost"].as_f64().unwrap_or(0.0);
    if info["summary"] == true {
        let texts = parts.iter().filter(|part| part["type"] == "text");
        let joined = texts.clone().map(|part| text(&part["text"])).collect::<Vec<_>>().join("\n\n");
        let own = texts.map(|part| &part["metadata"][OWN]).next().unwrap_or(&Value::Null);
        if let Some(Piece::Shortened { summary, keep_from, reason, usage, cost, .. }) =
            builder.pieces.last_mut()
        {
            *summary = joined;
            *usage = usage_of(&info["tokens"]);
            *cost = price(own_cost, &own["priced"]);
            if let Some(kept) = own["keep_from"].as_u64() {
                *keep_from = kept as usize;
            }
            if let Some(why) = own["reason"].as_str() {
                why.clone_into(reason);
            }
            return;
        }
    }
    let model = Origin {
        provider: text(&info["providerID"]).to_owned(),
        model: text(&info["modelID"]).to_owned(),
    };
    let mut answer = Answer::new(start, model);
    answer.usage = usage_of(&info["tokens"]);
    answer.end = reply_time(parts, end);
    let mut finish = info["finish"].as_str().map(finish_of);
    let mut priced = &Value::Null;
    for part in parts {
        let opaque = part["metadata"][OWN].get("opaque").cloned();
        match text(&part["type"]) {
            "text" => {
                let text = text(&part["text"]).to_owned();
                answer.parts.push(ReplyPart::Text { text, opaque });
            }
            "reasoning" => {
                if opaque.is_none() && part["metadata"].is_object() {
                    builder.left_out("signatures of reasoning");
                }
                let text = text(&part["text"]).to_owned();
                answer.parts.push(ReplyPart::Reasoning { text, opaque });
            }
            "tool" if part["metadata"]["providerExecuted"] == true => {
                let name = text(&part["tool"]).to_owned();
                let opaque = opaque.unwrap_or_else(|| part["state"].clone());
                answer.parts.push(ReplyPart::ServerTool { name, opaque });
            }
            "tool" => tool(builder, &mut answer, part, opaque),
            "step-finish" => {
                let own = &part["metadata"][OWN];
                priced = &own["priced"];
                match serde_json::from_value::<Finish>(own["finish"].clone()) {
                    Ok(said) => finish = Some(said),
                    Err(_) => finish = finish.or_else(|| Some(finish_of(text(&part["reason"])))),
                }
            }
            "step-start" | "snapshot" | "patch" => {}
            other => strange(builder, other),
        }
    }
    answer.cost = price(own_cost, priced);
    answer.finish = finish;
    if info["error"].is_object() {
        answer.failure = failure(&info["error"]);
        // Whole, and then something failed: what was said counts.
        if answer.finish.is_some() || answer.has_calls() {
            answer.failure = None;
        }
    }
    builder.pieces.push(Piece::Answer(answer));
}

fn strange(builder: &mut Builder, kind: &str) {
    match kind {
        "" => builder.left_out("parts that cannot be read"),
        kind => builder.left_out(format!("parts of the kind \"{kind}\"")),
    }
}

/// When the answer was whole and its calls could begin.
fn reply_time(parts: &[Value], end: u64) -> u64 {
    let ends = parts.iter().filter(|part| part["type"] == "text" || part["type"] == "reasoning");
    let said = ends.filter_map(|part| part["time"].get("end")).map(time).max();
    let calls = parts.iter().filter(|part| part["type"] == "tool");
    let called = calls.map(|part| time(&part["state"]["time"]["start"])).min();
    said.or(called).unwrap_or(end).min(end)
}

fn tool(builder: &mut Builder, answer: &mut Answer, part: &Value, opaque: Option<Value>) {
    let own = &part["metadata"][OWN];
    let state = &part["state"];
    let id = text(&part["callID"]).to_owned();
    let tool = text(&part["tool"]).to_owned();
    let name = own["asked_for"].as_str().unwrap_or(&tool).to_owned();
    let arguments = match own["arguments"].as_str() {
        Some(bytes) => bytes.to_owned(),
        None => state["input"].to_string(),
    };
    answer.parts.push(ReplyPart::Call { id: id.clone(), name, arguments, opaque });
    let is_error = match text(&state["status"]) {
        "completed" => false,
        "error" => true,
        // It never came to its end.
        _ => return,
    };
    let rest = &own["outcome"];
    if is_error && rest.is_null() && own.is_object() {
        return;
    }
    let said: Option<Ending> = serde_json::from_value(rest["ending"].clone()).ok();
    let stopped = state["metadata"]["interrupted"] == true;
    let usual = match (is_error, stopped) {
        (false, _) => Ending::Completed,
        (true, false) => Ending::Failed,
        (true, true) => Ending::Interrupted,
    };
    let ending = said.unwrap_or(usual);
    let start = time(&state["time"]["start"]);
    let end = state["time"].get("end").map_or(start, time);
    let title = match (state["title"].as_str(), rest["title"].as_str()) {
        (_, Some(title)) | (Some(title), None) => title.to_owned(),
        (None, None) => super::build::about(&state["input"]).unwrap_or_else(|| tool.clone()),
    };
    let outcome = Outcome {
        ending,
        tool,
        output: text(if is_error { &state["error"] } else { &state["output"] }).to_owned(),
        title,
        details: details(state, rest, ending),
        attachments: attachments(builder, &state["attachments"]),
        duration_ms: rest["duration_ms"].as_u64().unwrap_or(end.saturating_sub(start)),
        cost: rest["cost"].as_f64(),
    };
    let touched = serde_json::from_value(own["touched"].clone()).unwrap_or_default();
    let pruned = state["time"].get("compacted").is_some();
    answer.results.push(Settled { call: id, start, end, outcome, touched, pruned });
}

fn details(state: &Value, rest: &Value, ending: Ending) -> Value {
    if let Some(details) = rest.get("details") {
        return details.clone();
    }
    if rest["no_details"] == true {
        return Value::Null;
    }
    let mut details = state["metadata"].as_object().cloned().unwrap_or_else(Map::new);
    if ending == Ending::Interrupted {
        details.remove("interrupted");
    }
    Value::Object(details)
}

fn attachments(builder: &mut Builder, list: &Value) -> Vec<toolwright_llm::Media> {
    let mut found = Vec::new();
    for file in list.as_array().into_iter().flatten() {
        match media(text(&file["url"]), file["filename"].as_str()) {
            Some(media) => found.push(media),
            None => builder.left_out("attachments that are not in the export"),
        }
    }
    found
}

/// OpenCode writes zero where the price is not known.
fn price(cost: f64, priced: &Value) -> Option<f64> {
    (priced == &Value::Bool(true) || cost > 0.0).then_some(cost)
}

fn usage_of(tokens: &Value) -> Usage {
    let number = |value: &Value| value.as_u64().unwrap_or(0);
    let reasoning = number(&tokens["reasoning"]);
    Usage {
        input: number(&tokens["input"]),
        output: number(&tokens["output"]) + reasoning,
        reasoning,
        cache_read: number(&tokens["cache"]["read"]),
        cache_write: number(&tokens["cache"]["write"]),
    }
}

fn finish_of(word: &str) -> Finish {
    let reason = match word {
        "stop" => FinishReason::Stop,
        "tool-calls" => FinishReason::ToolCalls,
        "length" => FinishReason::Length,
        "content-filter" => FinishReason::ContentFilter,
        _ => FinishReason::Unknown,
    };
    Finish { reason, raw: word.to_owned() }
}

/// Nothing for an answer that a person stopped.
fn failure(error: &Value) -> Option<Failure> {
    let data = &error["data"];
    if let Some(own) = data["metadata"][OWN].as_str()
        && let Ok(failure) = serde_json::from_str(own)
    {
        return Some(failure);
    }
    let kind = match text(&error["name"]) {
        "MessageAbortedError" => return None,
        "ProviderAuthError" => FailureKind::Auth,
        "ContextOverflowError" => FailureKind::ContextOverflow,
        "ContentFilterError" => FailureKind::Refused,
        "MessageOutputLengthError" => FailureKind::Truncated,
        _ => FailureKind::Server,
    };
    let message = match text(&data["message"]) {
        "" => text(&error["name"]),
        message => message,
    };
    let status = data["statusCode"].as_u64().and_then(|status| u16::try_from(status).ok());
    Some(Failure { status, ..Failure::new(kind, message) })
}
