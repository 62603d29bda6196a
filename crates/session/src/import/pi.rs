//! pi's session files: JSON lines that form a tree by `id` and `parentId`. The branch of the last line is
//! taken.

use std::collections::HashMap;

use serde_json::Value;
use toolwright_llm::{Content, Failure, FailureKind, Finish, FinishReason, Media, Origin, Usage};

use super::build::{Answer, Builder, Piece, Result as Settled, about, text, time};
use super::{Foreign, ImportError};
use crate::step::ReplyPart;

const AGENT: &str = "build";

pub(super) fn is_pi(lines: &[Value]) -> bool {
    lines[0]["type"] == "session" && lines[0]["cwd"].is_string() && lines[0].get("v").is_none()
}

pub(super) fn read(lines: &[Value]) -> Result<Foreign, ImportError> {
    let header = &lines[0];
    let mut builder = Builder {
        id: text(&header["id"]).to_owned(),
        directory: text(&header["cwd"]).to_owned(),
        created: time(&header["timestamp"]),
        ..Builder::default()
    };
    let entries = &lines[1..];
    let branch = branch(entries);
    let behind = entries.len() - branch.len();
    let mut model = Origin { provider: String::new(), model: String::new() };
    // Where each entry begins, for what names one.
    let mut begins: HashMap<&str, usize> = HashMap::new();
    // The first version counted, with the header.
    let mut counted = vec![0];
    let mut calls: HashMap<String, (String, u64)> = HashMap::new();
    for entry in branch {
        begins.insert(text(&entry["id"]), builder.items());
        counted.push(builder.items());
        let at = time(&entry["timestamp"]);
        match text(&entry["type"]) {
            "message" => message(&mut builder, &entry["message"], at, &mut model, &mut calls),
            "model_change" => {
                model.provider = text(&entry["provider"]).to_owned();
                model.model = text(&entry["modelId"]).to_owned();
            }
            "compaction" => {
                let kept =
                    entry["firstKeptEntryId"].as_str().and_then(|id| begins.get(id).copied());
                let number = entry["firstKeptEntryIndex"].as_u64();
                let kept = kept.or(number.and_then(|n| counted.get(n as usize).copied()));
                let keep_from = kept.unwrap_or_else(|| builder.items());
                builder.pieces.push(Piece::Shortened {
                    time: at,
                    summary: text(&entry["summary"]).to_owned(),
                    keep_from,
                    reason: "imported".to_owned(),
                    usage: Usage::default(),
                    cost: None,
                });
            }
            "branch_summary" => builder.note(at, text(&entry["summary"])),
            "custom_message" => builder.note(at, words(&entry["content"])),
            "session_info" => builder.title = entry["name"].as_str().map(str::to_owned),
            "thinking_level_change" | "label" => {}
            "custom" => builder.left_out("states of extensions"),
            other => builder.left_out(format!("entries of the kind \"{other}\"")),
        }
    }
    for _ in 0..behind {
        builder.left_out("entries of branches that were left behind");
    }
    Foreign::of(builder, "pi")
}

/// From the root to the last entry. The first version knew no tree.
fn branch(entries: &[Value]) -> Vec<&Value> {
    let places: HashMap<&str, usize> =
        entries.iter().enumerate().filter_map(|(n, e)| Some((e["id"].as_str()?, n))).collect();
    if places.len() < entries.len() {
        return entries.iter().collect();
    }
    let mut chain = Vec::new();
    let mut next = entries.len().checked_sub(1);
    while let Some(at) = next {
        chain.push(&entries[at]);
        let parent = entries[at]["parentId"].as_str().and_then(|id| places.get(id).copied());
        next = parent.filter(|parent| *parent < at);
    }
    chain.reverse();
    chain
}

fn message(
    builder: &mut Builder,
    message: &Value,
    written: u64,
    model: &mut Origin,
    calls: &mut HashMap<String, (String, u64)>,
) {
    let at = message.get("timestamp").map_or(written, time);
    match text(&message["role"]) {
        "user" => {
            let content = content(&message["content"]);
            builder.prompt(at, content, AGENT, model);
        }
        "assistant" => assistant(builder, message, at, written, model, calls),
        "toolResult" => {
            let id = text(&message["toolCallId"]);
            let tool = text(&message["toolName"]);
            let (title, began) = calls.get(id).cloned().unwrap_or_else(|| (tool.to_owned(), at));
            let is_error = message["isError"] == true;
            let mut result = Settled::new(id, at, tool, words(&message["content"]), is_error);
            result.start = began;
            result.outcome.duration_ms = at.saturating_sub(began);
            result.outcome.title = title;
            result.outcome.attachments = images(&message["content"]).collect();
            if let Some(details) = message.get("details").filter(|details| details.is_object()) {
                result.outcome.details = details.clone();
            }
            builder.result(result);
        }
        // A command that the person ran.
        "bashExecution" if message["excludeFromContext"] == true => {
            builder.left_out("commands of the person that no model was to see");
        }
        "bashExecution" => {
            let (command, output) = (text(&message["command"]), text(&message["output"]));
            builder.note(at, format!("The user ran this command:\n$ {command}\n{output}"));
        }
        "custom" | "hookMessage" => builder.note(at, words(&message["content"])),
        "branchSummary" | "compactionSummary" => builder.note(at, text(&message["summary"])),
        other => builder.left_out(format!("messages of the unknown role \"{other}\"")),
    }
}

fn assistant(
    builder: &mut Builder,
    message: &Value,
    start: u64,
    end: u64,
    model: &mut Origin,
    calls: &mut HashMap<String, (String, u64)>,
) {
    if let (Some(provider), Some(id)) = (message["provider"].as_str(), message["model"].as_str()) {
        *model = Origin { provider: provider.to_owned(), model: id.to_owned() };
    }
    let mut answer = Answer::new(start, model.clone());
    answer.end = end.max(start);
    for part in message["content"].as_array().into_iter().flatten() {
        match text(&part["type"]) {
            "text" => {
                let text = text(&part["text"]).to_owned();
                answer.parts.push(ReplyPart::Text { text, opaque: None });
            }
            "thinking" => {
                if part["thinkingSignature"].is_string() {
                    builder.left_out("signatures of reasoning");
                }
                let text = text(&part["thinking"]).to_owned();
                answer.parts.push(ReplyPart::Reasoning { text, opaque: None });
            }
            "toolCall" => {
                let (id, name) = (text(&part["id"]).to_owned(), text(&part["name"]).to_owned());
                let title = about(&part["arguments"]).unwrap_or_else(|| name.clone());
                calls.insert(id.clone(), (title, answer.end));
                let arguments = part["arguments"].to_string();
                answer.parts.push(ReplyPart::Call { id, name, arguments, opaque: None });
            }
            other => builder.left_out(format!("parts of the kind \"{other}\"")),
        }
    }
    let number = |key: &str| message["usage"][key].as_u64().unwrap_or(0);
    answer.usage = Usage {
        input: number("input"),
        output: number("output"),
        reasoning: number("reasoning"),
        cache_read: number("cacheRead"),
        cache_write: number("cacheWrite"),
    };
    answer.cost = message["usage"]["cost"]["total"].as_f64().filter(|cost| *cost > 0.0);
    let word = text(&message["stopReason"]);
    let reason = match word {
        "stop" => Some(FinishReason::Stop),
        "length" => Some(FinishReason::Length),
        "toolUse" => Some(FinishReason::ToolCalls),
        "error" | "aborted" => None,
        _ => Some(FinishReason::Unknown),
    };
    answer.finish = reason.map(|reason| Finish { reason, raw: word.to_owned() });
    if word == "error" && !answer.has_calls() {
        let said = message["errorMessage"].as_str().unwrap_or("the provider failed");
        answer.failure = Some(Failure::new(FailureKind::Server, said));
    }
    builder.pieces.push(Piece::Answer(answer));
}

fn content(value: &Value) -> Vec<Content> {
    match value {
        Value::String(said) => vec![Content::text(said.clone())],
        Value::Array(parts) => parts
            .iter()
            .filter_map(|part| match text(&part["type"]) {
                "image" => image(part).map(Content::Media),
                _ => part["text"].as_str().map(Content::text),
            })
            .collect(),
        _ => Vec::new(),
    }
}

fn words(value: &Value) -> String {
    let parts = content(value);
    let texts = parts.iter().filter_map(|part| match part {
        Content::Text { text } => Some(text.as_str()),
        Content::Media(_) => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

fn images(value: &Value) -> impl Iterator<Item = Media> {
    value.as_array().into_iter().flatten().filter(|part| part["type"] == "image").filter_map(image)
}

fn image(part: &Value) -> Option<Media> {
    let (mime, data) = (part["mimeType"].as_str()?, part["data"].as_str()?);
    Some(Media { mime: mime.to_owned(), base64: data.into(), name: None })
}
