//! Claude Code's session files: JSON lines that form a tree by `uuid` and `parentUuid`. An answer comes as
//! one line for each of its blocks, with the same message id; results of parallel calls hang on different
//! lines, so they are found by their calls and not by the branch.

mod branch;
mod said;

use std::collections::{HashMap, HashSet};

use serde_json::{Value, json};
use toolwright_llm::{Content, Failure, FailureKind, Finish, FinishReason, Media, Origin, Usage};

use super::build::{Answer, Builder, Piece, Result as Settled, about, text, time};
use super::{Foreign, ImportError};
use crate::step::{Ending, ReplyPart};
use branch::{branch, is_boundary};
use said::{Said, diff_of, is_output, meaning, words};

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

/// `beside` are the lines of files that agents wrote who worked for this session.
pub(super) fn read(lines: &[Value], beside: &[Vec<Value>]) -> Result<Foreign, ImportError> {
    let told = told(lines);
    let is_side = |line: &&&Value| line["isSidechain"] == true;
    let main: Vec<&Value> = told.iter().filter(|line| !is_side(line)).copied().collect();
    let side: Vec<&Value> = told.iter().filter(is_side).copied().collect();
    let (own, others) = if main.is_empty() { (side, Vec::new()) } else { (main, side) };
    let mut work = workers(&others);
    let mut from: Vec<&[Value]> = vec![lines; work.len()];
    for file in beside {
        work.push(self::told(file));
        from.push(file);
    }
    // What each was asked, for calls that do not name whom they asked.
    let asked: HashMap<&str, &str> =
        work.iter().filter_map(|w| Some((words(w.first()?), id_of(w)))).collect();
    let mut foreign = conversation(lines, &own, &asked)?;
    foreign.title = title(lines);
    for (worker, lines) in work.iter().zip(from) {
        match conversation(lines, worker, &HashMap::new()) {
            Ok(child) => foreign.children.push(child),
            Err(ImportError::Empty) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(foreign)
}

/// The lines that say something, each once: a session that was taken up again may repeat some.
fn told(lines: &[Value]) -> Vec<&Value> {
    let mut seen = HashSet::new();
    let says = |line: &&Value| line["message"].is_object() || line["attachment"].is_object();
    let told = lines.iter().filter(says);
    told.filter(|line| line["uuid"].as_str().is_some_and(|uuid| seen.insert(uuid))).collect()
}

/// The id of an agent's work, or of a session. One that goes on with another begins with a line of that.
fn id_of<'a>(told: &[&'a Value]) -> &'a str {
    let (first, last) = (told.first().copied(), told.last().copied());
    let (first, last) = (first.unwrap_or(&Value::Null), last.unwrap_or(&Value::Null));
    match first["isSidechain"] == true {
        true => first["agentId"].as_str().unwrap_or_else(|| text(&first["uuid"])),
        false => text(&last["sessionId"]),
    }
}

/// The newest name that a person or the program gave.
fn title(lines: &[Value]) -> Option<String> {
    let named = lines.iter().rev().find_map(|line| match text(&line["type"]) {
        "custom-title" => line["customTitle"].as_str(),
        _ => None,
    });
    // A file may begin with names of other sessions: each says of which line it speaks.
    let own = |line: &Value| match line["leafUuid"].as_str() {
        Some(leaf) => lines.iter().any(|line| line["uuid"] == leaf),
        None => true,
    };
    let made = lines.iter().rev().find_map(|line| match text(&line["type"]) {
        "ai-title" => line["aiTitle"].as_str(),
        "summary" if own(line) => line["summary"].as_str(),
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
    /// Who did the work, by what was asked.
    asked: &'a HashMap<&'a str, &'a str>,
    /// The item that each line belongs to, for notes that stand for some of them.
    items: HashMap<&'a str, usize>,
}

fn conversation<'a>(
    lines: &'a [Value],
    told: &[&'a Value],
    asked: &'a HashMap<&'a str, &'a str>,
) -> Result<Foreign, ImportError> {
    let first = told.first().copied().unwrap_or(&Value::Null);
    let builder = Builder {
        id: id_of(told).to_owned(),
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
        asked,
        items: HashMap::new(),
    };
    let boundaries: HashMap<&str, &Value> = lines
        .iter()
        .filter(|line| is_boundary(line))
        .filter_map(|line| Some((line["uuid"].as_str()?, line)))
        .collect();
    let branch = branch(lines, told);
    let behind = told.len() - branch.len();
    let first_model = told.iter().map(|line| text(&line["message"]["model"]));
    let mut models = first_model.filter(|model| !model.is_empty() && *model != NO_MODEL);
    if let Some(model) = models.next() {
        model.clone_into(&mut reader.model.model);
    }
    for (at, line) in branch.iter().enumerate() {
        let next = branch.get(at + 1).is_some_and(|next| is_output(words(next)));
        match text(&line["type"]) {
            "user" => {
                reader.begins(line);
                let boundary = boundaries.get(text(&line["parentUuid"])).copied();
                reader.user(line, next, boundary);
            }
            "assistant" => reader.assistant(line),
            "attachment" => reader.attachment(line),
            _ => {}
        }
    }
    for _ in 0..behind {
        reader.builder.left_out("lines of branches that were left behind");
    }
    Foreign::of(reader.builder, "claude-code")
}

/// Whether a program wrote it in a person's place.
fn is_note(line: &Value) -> bool {
    let by = line["origin"]["kind"].as_str();
    line["isMeta"] == true || by.is_some_and(|by| !matches!(by, "human" | "user"))
}

impl<'a> Reader<'a> {
    fn begins(&mut self, line: &'a Value) {
        self.items.insert(text(&line["uuid"]), self.builder.items());
    }

    fn user(&mut self, line: &'a Value, is_local: bool, boundary: Option<&Value>) {
        let at = time(&line["timestamp"]);
        let content = self.content(&line["message"]["content"]);
        // Results stand with their calls.
        if content.is_empty() {
            return;
        }
        self.open = None;
        if line["isCompactSummary"] == true {
            return self.shortened(at, joined(&content), boundary);
        }
        if is_note(line) {
            if let Said::Note(text) | Said::Prompt(text) = meaning(&joined(&content), is_local) {
                self.builder.note(at, text);
            }
            return;
        }
        let mut said = Vec::new();
        let mut notes = Vec::new();
        for part in content {
            match part {
                Content::Text { text } => match meaning(&text, is_local) {
                    Said::Prompt(text) => said.push(Content::text(text)),
                    Said::Note(text) => notes.push(text),
                    Said::Nothing => {}
                },
                media @ Content::Media(_) => said.push(media),
            }
        }
        if !said.is_empty() {
            let model = self.model.clone();
            self.builder.prompt(at, said, AGENT, &model);
        }
        self.builder.note(at, notes.join("\n\n"));
    }

    /// Newer versions leave the last messages as they are, and say which.
    fn shortened(&mut self, at: u64, summary: String, boundary: Option<&Value>) {
        let kept = boundary.map(|line| &line["compactMetadata"]).and_then(|metadata| {
            let head = metadata["preservedSegment"]["headUuid"].as_str();
            head.or(metadata["preservedMessages"]["uuids"][0].as_str())
        });
        let kept = kept.and_then(|head| self.items.get(head).copied());
        let keep_from = kept.unwrap_or_else(|| self.builder.items());
        let (usage, cost, reason) = (Usage::default(), None, "imported".to_owned());
        let piece = Piece::Shortened { time: at, summary, keep_from, reason, usage, cost };
        self.builder.pieces.push(piece);
    }

    /// Said while the model worked, or put beside a prompt by the program.
    fn attachment(&mut self, line: &'a Value) {
        let at = time(&line["timestamp"]);
        let attached = &line["attachment"];
        match text(&attached["type"]) {
            "queued_command" => {
                let content = self.content(&attached["prompt"]);
                let by = attached["origin"]["kind"].as_str().unwrap_or("human");
                let mode = attached["commandMode"].as_str().unwrap_or("prompt");
                let is_prompt = by == "human" && mode == "prompt" && attached["isMeta"] != true;
                if content.is_empty() {
                } else if is_prompt {
                    self.open = None;
                    let (agent, model) = (AGENT.to_owned(), self.model.clone());
                    let steer = Piece::Prompt { time: at, content, agent, model, steer: true };
                    self.builder.pieces.push(steer);
                } else {
                    self.builder.note(at, joined(&content));
                }
            }
            "file" => {
                let file = &attached["content"]["file"];
                let name = attached["displayPath"].as_str().unwrap_or(text(&attached["filename"]));
                match file["content"].as_str() {
                    Some(inside) => self.builder.note(at, format!("The file {name}:\n{inside}")),
                    None => self.builder.left_out("files that were put beside a prompt"),
                }
            }
            _ => self.builder.left_out("attachments with Claude Code's own surroundings"),
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
                "document" if part["source"]["type"] == "text" => {
                    found.push(Content::text(text(&part["source"]["data"])));
                }
                // A tool that was found by its name.
                "tool_reference" => found.push(Content::text(text(&part["tool_name"]))),
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
            self.open = None;
            // In place of an answer to what the program did by itself.
            if said == "No response requested." {
                return;
            }
            answer.failure = Some(Failure::new(FailureKind::Server, said));
            self.builder.pieces.push(Piece::Answer(answer));
            return;
        }
        text(&message["model"]).clone_into(&mut self.model.model);
        let id = message["id"].as_str().unwrap_or_else(|| text(&line["uuid"]));
        if self.open != Some(id) {
            self.builder.pieces.push(Piece::Answer(Answer::new(at, self.model.clone())));
            self.open = Some(id);
        }
        self.items.insert(text(&line["uuid"]), self.builder.items().saturating_sub(1));
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
            answer.cost = line["costUSD"].as_f64().filter(|cost| *cost > 0.0).or(answer.cost);
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
                // Newer models think unseen: there is only what signs it.
                if text(&part["thinking"]).trim().is_empty() {
                    return None;
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
        let told = &line["toolUseResult"];
        if told == "User rejected tool use" || line["toolDenialKind"].is_string() {
            result.outcome.ending = Ending::Denied;
        }
        result.outcome.details = details(told);
        let worker = told["agentId"].as_str().or_else(|| {
            let asked = input["prompt"].as_str()?;
            self.asked.get(asked).copied()
        });
        if let Some(worker) = worker {
            if !result.outcome.details.is_object() {
                result.outcome.details = json!({});
            }
            result.outcome.details["sessionId"] = json!(worker);
        }
        Some(result)
    }
}

fn joined(content: &[Content]) -> String {
    let texts = content.iter().filter_map(|part| match part {
        Content::Text { text } => Some(text.as_str()),
        Content::Media(_) => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

/// What a call noted of itself beside its result, without what only repeats whole files or the result.
fn details(told: &Value) -> Value {
    let Some(fields) = told.as_object() else { return Value::Null };
    const REPEATED: &[&str] =
        &["originalFile", "file", "content", "stdout", "stderr", "structuredPatch", "prompt"];
    let mut fields = fields.clone();
    fields.retain(|name, _| !REPEATED.contains(&name.as_str()));
    if let Some(diff) = diff_of(told) {
        fields.insert("diff".to_owned(), json!(diff));
    }
    Value::Object(fields)
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
