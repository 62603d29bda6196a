//! Claude Code's session files: JSON lines that form a tree by `uuid` and `parentUuid`. An answer comes as
//! one line for each of its blocks, with the same message id; results of parallel calls hang on different
//! lines, so they are found by their calls and not by the branch.

use std::collections::{HashMap, HashSet};

use serde_json::Value;
use toolwright_llm::{Content, Failure, FailureKind, Finish, FinishReason, Media, Origin, Usage};

use super::build::{Answer, Builder, Piece, Result as Settled, about, text, time};
use super::{Foreign, ImportError};
use crate::step::ReplyPart;

const AGENT: &str = "build";

/// What the program itself writes where a model would answer.
const NO_MODEL: &str = "<synthetic>";

pub(super) fn is_claude(lines: &[Value]) -> bool {
    lines.iter().any(|line| {
        line["uuid"].is_string()
            && matches!(text(&line["type"]), "user" | "assistant")
            && line["message"].is_object()
    })
}

pub(super) fn read(lines: &[Value]) -> Result<Foreign, ImportError> {
    let told: Vec<&Value> = lines
        .iter()
        .filter(|line| {
            line["uuid"].is_string() && line.get("message").is_some_and(Value::is_object)
        })
        .collect();
    let beside = |line: &&&Value| line["isSidechain"] == true;
    let main: Vec<&Value> = told.iter().filter(|line| !beside(line)).copied().collect();
    let side: Vec<&Value> = told.iter().filter(beside).copied().collect();
    let (own, others) = if main.is_empty() { (side, Vec::new()) } else { (main, side) };
    let mut foreign = conversation(lines, &own)?;
    foreign.title = title(lines);
    for worker in workers(&others) {
        match conversation(lines, &worker) {
            Ok(child) => foreign.children.push(child),
            Err(ImportError::Empty) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(foreign)
}

/// The newest name that a person or the program gave.
fn title(lines: &[Value]) -> Option<String> {
    let named = lines.iter().rev().find_map(|line| match text(&line["type"]) {
        "custom-title" => line["customTitle"].as_str(),
        _ => None,
    });
    let made = lines.iter().rev().find_map(|line| match text(&line["type"]) {
        "ai-title" => line["aiTitle"].as_str(),
        "summary" => line["summary"].as_str(),
        _ => None,
    });
    named.or(made).map(str::to_owned)
}

/// Each work for the main conversation by itself: a line without a parent begins one.
fn workers<'a>(side: &[&'a Value]) -> Vec<Vec<&'a Value>> {
    let mut of: HashMap<&str, usize> = HashMap::new();
    let mut found: Vec<Vec<&Value>> = Vec::new();
    for line in side {
        let known = line["parentUuid"].as_str().and_then(|parent| of.get(parent).copied());
        let at = known.unwrap_or_else(|| {
            found.push(Vec::new());
            found.len() - 1
        });
        of.insert(text(&line["uuid"]), at);
        found[at].push(line);
    }
    found
}

struct Reader<'a> {
    builder: Builder,
    /// By the message's id: an answer has several lines.
    open: Option<&'a str>,
    results: HashMap<&'a str, (&'a Value, &'a Value)>,
    model: Origin,
}

fn conversation(lines: &[Value], told: &[&Value]) -> Result<Foreign, ImportError> {
    let first = told.first().copied().unwrap_or(&Value::Null);
    let builder = Builder {
        id: text(&first["sessionId"]).to_owned(),
        directory: text(&first["cwd"]).to_owned(),
        created: time(&first["timestamp"]),
        ..Builder::default()
    };
    let results = told.iter().flat_map(|line| {
        let parts = line["message"]["content"].as_array().into_iter().flatten();
        let results = parts.filter(|part| part["type"] == "tool_result");
        results.map(|part| (text(&part["tool_use_id"]), (part, *line)))
    });
    let mut reader = Reader {
        builder,
        open: None,
        results: results.collect(),
        model: Origin { provider: "anthropic".to_owned(), model: String::new() },
    };
    let branch = branch(lines, told);
    let behind = told.len() - branch.len();
    let first_model = told.iter().map(|line| text(&line["message"]["model"]));
    let mut models = first_model.filter(|model| !model.is_empty() && *model != NO_MODEL);
    if let Some(model) = models.next() {
        model.clone_into(&mut reader.model.model);
    }
    for line in branch {
        match text(&line["type"]) {
            "user" => reader.user(line),
            "assistant" => reader.assistant(line),
            _ => {}
        }
    }
    for _ in 0..behind {
        reader.builder.left_out("lines of branches that were left behind");
    }
    Foreign::of(reader.builder, "claude-code")
}

/// The ancestors of the last line, and what belongs to them without being one: other blocks of the same
/// answers, and the results of their calls.
fn branch<'a>(lines: &[Value], told: &[&'a Value]) -> Vec<&'a Value> {
    let parent_of: HashMap<&str, &str> = lines
        .iter()
        .filter_map(|line| {
            let parent = line["parentUuid"].as_str().or(line["logicalParentUuid"].as_str())?;
            Some((line["uuid"].as_str()?, parent))
        })
        .collect();
    let places: HashMap<&str, usize> = lines
        .iter()
        .enumerate()
        .filter_map(|(n, line)| Some((line["uuid"].as_str()?, n)))
        .collect();
    let numbers: Vec<usize> =
        told.iter().filter_map(|line| places.get(text(&line["uuid"])).copied()).collect();
    // The newest line of this conversation before that one.
    let before = |uuid: &str| -> Option<&str> {
        let own = places.get(uuid)?;
        let earlier = numbers.iter().rev().find(|number| *number < own)?;
        lines[*earlier]["uuid"].as_str()
    };
    let mut on: HashSet<&str> = HashSet::new();
    let mut next = told.last().map(|line| text(&line["uuid"]));
    while let Some(at) = next
        && on.insert(at)
    {
        let shortened = places.get(at).is_some_and(|number| begins_with_notes(&lines[*number]));
        next = match parent_of.get(at).copied() {
            Some(parent) if places.contains_key(parent) => Some(parent),
            // Some lines never reached the file; others begin anew behind notes.
            Some(_) => before(at),
            None if shortened => before(at),
            None => None,
        };
    }
    let is_on = |line: &&&Value| on.contains(text(&line["uuid"]));
    let answers: HashSet<&str> =
        told.iter().filter(is_on).filter_map(|line| line["message"]["id"].as_str()).collect();
    let mut wanted = HashSet::new();
    for line in told {
        let same = line["message"]["id"].as_str().is_some_and(|id| answers.contains(id));
        let parts = line["message"]["content"].as_array().into_iter().flatten();
        if same {
            let calls = parts.clone().filter(|part| part["type"] == "tool_use");
            wanted.extend(calls.map(|part| text(&part["id"])));
        }
    }
    let belongs = |line: &&&Value| {
        let mut parts = line["message"]["content"].as_array().into_iter().flatten();
        let same = line["message"]["id"].as_str().is_some_and(|id| answers.contains(id));
        same || parts.any(|part| {
            part["type"] == "tool_result" && wanted.contains(text(&part["tool_use_id"]))
        })
    };
    told.iter().filter(|line| is_on(line) || belongs(line)).copied().collect()
}

/// Whether what came before it was replaced by notes.
fn begins_with_notes(line: &Value) -> bool {
    line["isCompactSummary"] == true || line["subtype"] == "compact_boundary"
}

/// Whether a program wrote it in a person's place.
fn is_note(line: &Value) -> bool {
    let by = line["origin"]["kind"].as_str();
    line["isMeta"] == true || by.is_some_and(|by| !matches!(by, "human" | "user"))
}

impl<'a> Reader<'a> {
    fn user(&mut self, line: &'a Value) {
        let at = time(&line["timestamp"]);
        let content = self.content(&line["message"]["content"]);
        // Results stand with their calls.
        if content.is_empty() {
            return;
        }
        self.open = None;
        let said = || {
            let texts = content.iter().filter_map(|part| match part {
                Content::Text { text } => Some(text.as_str()),
                Content::Media(_) => None,
            });
            texts.collect::<Vec<_>>().join("\n")
        };
        if line["isCompactSummary"] == true {
            let keep_from = self.builder.items();
            let (summary, reason) = (said(), "imported".to_owned());
            let (usage, cost) = (Usage::default(), None);
            let piece = Piece::Shortened { time: at, summary, keep_from, reason, usage, cost };
            self.builder.pieces.push(piece);
        } else if is_note(line) {
            let text = said();
            self.builder.note(at, text);
        } else {
            let model = self.model.clone();
            self.builder.prompt(at, content, AGENT, &model);
        }
    }

    fn content(&mut self, value: &Value) -> Vec<Content> {
        let parts = match value {
            Value::String(said) => return vec![Content::text(said.clone())],
            Value::Array(parts) => parts,
            _ => return Vec::new(),
        };
        let mut found = Vec::new();
        for part in parts {
            match text(&part["type"]) {
                "text" => found.push(Content::text(text(&part["text"]))),
                "image" | "document" => match inline(part) {
                    Some(media) => found.push(Content::Media(media)),
                    None => self.builder.left_out("images and documents that are not in the file"),
                },
                "tool_result" => {}
                other => self.builder.left_out(format!("parts of the kind \"{other}\"")),
            }
        }
        found
    }

    fn assistant(&mut self, line: &'a Value) {
        let at = time(&line["timestamp"]);
        let message = &line["message"];
        if line["isApiErrorMessage"] == true || message["model"] == NO_MODEL {
            let mut answer = Answer::new(at, self.model.clone());
            let said = message["content"][0]["text"].as_str().unwrap_or("the provider failed");
            answer.failure = Some(Failure::new(FailureKind::Server, said));
            self.builder.pieces.push(Piece::Answer(answer));
            self.open = None;
            return;
        }
        text(&message["model"]).clone_into(&mut self.model.model);
        let id = message["id"].as_str().unwrap_or_else(|| text(&line["uuid"]));
        if self.open != Some(id) {
            self.builder.pieces.push(Piece::Answer(Answer::new(at, self.model.clone())));
            self.open = Some(id);
        }
        let parts = message["content"].as_array().map(Vec::as_slice).unwrap_or_default();
        let mut results = Vec::new();
        for part in parts {
            let part = self.part(part, at, &mut results);
            if let (Some(part), Some(answer)) = (part, self.builder.last_answer()) {
                answer.parts.push(part);
            }
        }
        if let Some(answer) = self.builder.last_answer() {
            answer.end = at;
            // Each line of an answer repeats its sums; the last one knows them all.
            answer.usage = usage_of(&message["usage"]);
            answer.finish = Some(finish_of(text(&message["stop_reason"])));
            answer.results.extend(results);
        }
    }

    fn part(&mut self, part: &Value, at: u64, results: &mut Vec<Settled>) -> Option<ReplyPart> {
        Some(match text(&part["type"]) {
            "text" => ReplyPart::Text { text: text(&part["text"]).to_owned(), opaque: None },
            "thinking" => {
                if part["signature"].is_string() {
                    self.builder.left_out("signatures of reasoning");
                }
                ReplyPart::Reasoning { text: text(&part["thinking"]).to_owned(), opaque: None }
            }
            "redacted_thinking" => {
                self.builder.left_out("reasonings that only their provider can read");
                return None;
            }
            "tool_use" => {
                let (id, name) = (text(&part["id"]).to_owned(), text(&part["name"]).to_owned());
                results.extend(self.settled(&id, &name, &part["input"], at));
                let arguments = part["input"].to_string();
                ReplyPart::Call { id, name, arguments, opaque: None }
            }
            "server_tool_use" | "web_search_tool_result" => {
                let name = part["name"].as_str().unwrap_or("web_search").to_owned();
                ReplyPart::ServerTool { name, opaque: part.clone() }
            }
            other => {
                self.builder.left_out(format!("parts of the kind \"{other}\""));
                return None;
            }
        })
    }

    fn settled(&mut self, id: &str, name: &str, input: &Value, began: u64) -> Option<Settled> {
        let (part, line) = *self.results.get(id)?;
        let content = self.content(&part["content"]);
        let (mut words, mut images) = (Vec::new(), Vec::new());
        for part in content {
            match part {
                Content::Text { text } => words.push(text),
                Content::Media(media) => images.push(media),
            }
        }
        let at = time(&line["timestamp"]);
        let mut result = Settled::new(id, at, name, words.join("\n"), part["is_error"] == true);
        result.start = began;
        result.outcome.duration_ms = at.saturating_sub(began);
        result.outcome.title = about(input).unwrap_or_else(|| name.to_owned());
        result.outcome.attachments = images;
        if let Some(details) = line.get("toolUseResult").filter(|details| details.is_object()) {
            result.outcome.details = details.clone();
        }
        Some(result)
    }
}

fn inline(part: &Value) -> Option<Media> {
    let source = &part["source"];
    let (mime, data) = (source["media_type"].as_str()?, source["data"].as_str()?);
    (source["type"] == "base64").then(|| Media {
        mime: mime.to_owned(),
        base64: data.into(),
        name: part["title"].as_str().map(str::to_owned),
    })
}

fn usage_of(usage: &Value) -> Usage {
    let number = |key: &str| usage[key].as_u64().unwrap_or(0);
    Usage {
        input: number("input_tokens"),
        output: number("output_tokens"),
        reasoning: 0,
        cache_read: number("cache_read_input_tokens"),
        cache_write: number("cache_creation_input_tokens"),
    }
}

/// Lines that were written while the answer still came have no word for its end.
fn finish_of(word: &str) -> Finish {
    let reason = match word {
        "" | "end_turn" | "stop_sequence" => FinishReason::Stop,
        "tool_use" => FinishReason::ToolCalls,
        "max_tokens" => FinishReason::Length,
        "refusal" => FinishReason::ContentFilter,
        "pause_turn" => FinishReason::Pause,
        _ => FinishReason::Unknown,
    };
    Finish { reason, raw: if word.is_empty() { "end_turn".to_owned() } else { word.to_owned() } }
}
