//! Codex's rollout files: JSON lines of `{timestamp, type, payload}`. The conversation is in the
//! `response_item` lines; events repeat it for display and are read only for what they alone know.

use std::collections::HashMap;

use serde_json::{Value, json};
use toolwright_llm::{Content, Failure, FailureKind, Origin, Usage};

use super::build::{Answer, Builder, Piece, Result as Settled, about, media, stop, text, time};
use super::{Foreign, ImportError};
use crate::step::{Ending, ReplyPart};

const AGENT: &str = "build";

/// What Codex puts into a person's mouth: surroundings and instructions.
const FRAMES: &[&str] = &[
    "<environment_context>",
    "<user_instructions>",
    "<permissions instructions>",
    "<skills_instructions>",
    "<collaboration_mode>",
    "<turn_aborted>",
    "<skill>",
    "<subagent_notification>",
    "# AGENTS.md instructions",
];

/// A command that the person ran, with its output.
const OWN_COMMAND: &str = "<user_shell_command>";

pub(super) fn is_codex(lines: &[Value]) -> bool {
    lines.iter().take(5).any(|line| {
        line["type"] == "session_meta"
            || (line["type"] == "response_item" && line["payload"].is_object())
    }) || is_old(lines)
}

/// The first versions wrote the items without anything around them.
fn is_old(lines: &[Value]) -> bool {
    let first = &lines[0];
    first["id"].is_string()
        && first["timestamp"].is_string()
        && first.get("type").is_none()
        && lines.iter().skip(1).take(5).any(|line| line["type"] == "message")
}

struct Reader {
    builder: Builder,
    model: Origin,
    /// Each answer has its own record of what it cost; without them the sums are looked at.
    has_records: bool,
    total: u64,
    instructions: usize,
    /// What calls changed in files, by the call.
    diffs: HashMap<String, String>,
}

pub(super) fn read(lines: &[Value]) -> Result<Foreign, ImportError> {
    let model = Origin { provider: "openai".to_owned(), model: String::new() };
    let has_records = lines.iter().any(|line| line["type"] == "token_usage_record");
    let (builder, diffs) = Default::default();
    let mut reader = Reader { builder, model, has_records, total: 0, instructions: 0, diffs };
    if is_old(lines) {
        reader.meta(&lines[0]);
    }
    for line in lines {
        reader.line(line);
    }
    let Reader { mut builder, instructions, .. } = reader;
    for _ in 0..instructions {
        builder.left_out("messages with Codex's own instructions");
    }
    Foreign::of(builder, "codex")
}

impl Reader {
    fn line(&mut self, line: &Value) {
        let at = time(&line["timestamp"]);
        let payload = &line["payload"];
        match text(&line["type"]) {
            "session_meta" => self.meta(payload),
            "turn_context" => {
                if let Some(model) = payload["model"].as_str() {
                    model.clone_into(&mut self.model.model);
                }
                if let Some(cwd) =
                    payload["cwd"].as_str().filter(|_| self.builder.directory.is_empty())
                {
                    cwd.clone_into(&mut self.builder.directory);
                }
            }
            "response_item" => self.item(at, payload),
            "compacted" => self.compacted(at, payload),
            "token_usage_record" => {
                let usage = usage_of(&payload["usage"]);
                self.used(usage);
            }
            "event_msg" => self.event(at, payload),
            "world_state" => {}
            // The first versions.
            "message"
            | "reasoning"
            | "function_call"
            | "function_call_output"
            | "local_shell_call" => self.item(at, line),
            "" => {}
            other => self.builder.left_out(format!("lines of the kind \"{other}\"")),
        }
    }

    fn meta(&mut self, meta: &Value) {
        // A copied session repeats the line of its original behind its own.
        if !self.builder.id.is_empty() {
            return;
        }
        text(&meta["id"]).clone_into(&mut self.builder.id);
        text(&meta["cwd"]).clone_into(&mut self.builder.directory);
        self.builder.created = time(&meta["timestamp"]);
        if let Some(provider) = meta["model_provider"].as_str() {
            provider.clone_into(&mut self.model.provider);
        }
    }

    fn item(&mut self, at: u64, item: &Value) {
        match text(&item["type"]) {
            "message" => match text(&item["role"]) {
                "user" => self.user(at, item),
                "assistant" => {
                    let said = joined(&item["content"]);
                    self.part(at, ReplyPart::Text { text: said, opaque: None });
                }
                _ => self.instructions += 1,
            },
            "reasoning" => {
                let thought = [joined(&item["summary"]), joined(&item["content"])];
                let thought: Vec<&str> =
                    thought.iter().map(String::as_str).filter(|text| !text.is_empty()).collect();
                if item["encrypted_content"].is_string() {
                    self.builder
                        .left_out("encrypted reasonings, which only their own program can send");
                }
                if !thought.is_empty() {
                    self.part(
                        at,
                        ReplyPart::Reasoning { text: thought.join("\n\n"), opaque: None },
                    );
                }
            }
            "function_call" => self.call(at, item, text(&item["arguments"]).to_owned()),
            // Free text, in the argument that our own tool of that name takes.
            "custom_tool_call" => {
                let key = if item["name"] == "apply_patch" { "patchText" } else { "input" };
                self.call(at, item, json!({ key: item["input"] }).to_string());
            }
            "local_shell_call" => {
                let mut named = item.clone();
                named["name"] = json!("local_shell");
                self.call(at, &named, item["action"].to_string());
            }
            "function_call_output" | "custom_tool_call_output" | "local_shell_call_output" => {
                self.result(at, item);
            }
            "web_search_call" | "image_generation_call" | "tool_search_call" => {
                let name = text(&item["type"]).trim_end_matches("_call").to_owned();
                self.part(at, ReplyPart::ServerTool { name, opaque: item.clone() });
            }
            // States of the folder, and lists of tools: nothing that was said.
            "ghost_snapshot" | "tool_search_output" => {}
            "compaction" | "compaction_summary" | "context_compaction" => {
                self.builder.left_out("notes that only Codex's server can read");
            }
            other => self.builder.left_out(format!("items of the kind \"{other}\"")),
        }
    }

    fn user(&mut self, at: u64, item: &Value) {
        let mut content = Vec::new();
        for part in item["content"].as_array().into_iter().flatten() {
            match text(&part["type"]) {
                "input_image" => match media(text(&part["image_url"]), None) {
                    Some(media) => content.push(Content::Media(media)),
                    None => self.builder.left_out("images that are not in the file"),
                },
                _ => {
                    let said = text(&part["text"]);
                    if said.trim_start().starts_with(OWN_COMMAND) {
                        self.builder.note(at, said);
                    } else if FRAMES.iter().any(|frame| said.trim_start().starts_with(frame)) {
                        self.instructions += 1;
                    } else if !said.is_empty() {
                        content.push(Content::text(said));
                    }
                }
            }
        }
        if !content.is_empty() {
            let model = self.model.clone();
            self.builder.prompt(at, content, AGENT, &model);
        }
    }

    /// A part of the answer that is open: one that has no results yet.
    fn part(&mut self, at: u64, part: ReplyPart) {
        let open = self.builder.last_answer().is_some_and(|answer| {
            let said = |part: &ReplyPart| matches!(part, ReplyPart::Text { .. });
            // Two texts without a call between them are two answers.
            let two = said(&part) && answer.parts.last().is_some_and(said);
            answer.results.is_empty() && answer.usage == Usage::default() && !two
        });
        if !open {
            self.builder.pieces.push(Piece::Answer(Answer::new(at, self.model.clone())));
        }
        if let Some(answer) = self.builder.last_answer() {
            answer.end = at;
            answer.finish =
                (!matches!(part, ReplyPart::Reasoning { .. })).then(stop).or(answer.finish.take());
            answer.parts.push(part);
        }
    }

    fn call(&mut self, at: u64, item: &Value, arguments: String) {
        let id = item["call_id"].as_str().or(item["id"].as_str()).unwrap_or_default().to_owned();
        let name = text(&item["name"]).to_owned();
        self.part(at, ReplyPart::Call { id, name, arguments, opaque: None });
        if let Some(answer) = self.builder.last_answer() {
            answer.finish = None;
        }
    }

    fn result(&mut self, at: u64, item: &Value) {
        let id = text(&item["call_id"]);
        let output = &item["output"];
        let mut images = Vec::new();
        let said = match output {
            Value::String(said) => unwrapped(said),
            Value::Array(parts) => {
                for part in parts.iter().filter(|part| part["type"] == "input_image") {
                    images.extend(media(text(&part["image_url"]), None));
                }
                joined(output)
            }
            Value::Object(_) => joined(&output["content"]),
            _ => String::new(),
        };
        let failed = output["success"] == false || exit_code(&said).is_some_and(|code| code != 0);
        let call = self.builder.pieces.iter().rev().find_map(|piece| match piece {
            Piece::Answer(answer) => answer.parts.iter().find_map(|part| match part {
                ReplyPart::Call { id: own, name, arguments, .. } if own == id => {
                    Some((name.clone(), arguments.clone(), answer.end))
                }
                _ => None,
            }),
            _ => None,
        });
        let (name, arguments, began) = call.unwrap_or_default();
        let mut result = Settled::new(id, at, &name, said, failed);
        result.start = began;
        result.outcome.duration_ms = at.saturating_sub(began);
        let arguments: Value = serde_json::from_str(&arguments).unwrap_or_default();
        result.outcome.title = about(&arguments).unwrap_or(name);
        result.outcome.attachments = images;
        if let Some(diff) = self.diffs.remove(id) {
            result.outcome.details = json!({ "diff": diff });
        }
        if result.outcome.output == "aborted" {
            result.outcome.ending = Ending::Interrupted;
        }
        self.builder.result(result);
    }

    fn compacted(&mut self, at: u64, payload: &Value) {
        let summary = text(&payload["message"]).to_owned();
        if summary.is_empty() {
            self.builder.left_out("notes that only Codex's server can read");
            return;
        }
        let keep_from = self.builder.items();
        let (reason, usage, cost) = ("imported".to_owned(), Usage::default(), None);
        self.builder.pieces.push(Piece::Shortened {
            time: at,
            summary,
            keep_from,
            reason,
            usage,
            cost,
        });
    }

    fn event(&mut self, at: u64, event: &Value) {
        match text(&event["type"]) {
            "token_count" if !self.has_records => {
                let info = &event["info"];
                let total = info["total_token_usage"]["total_tokens"].as_u64().unwrap_or(0);
                // The same sums come again when only limits changed.
                if total > self.total {
                    self.total = total;
                    let usage = usage_of(&info["last_token_usage"]);
                    self.used(usage);
                }
            }
            "item_completed" if event["item"]["type"] == "FileChange" => {
                let item = &event["item"];
                self.changed(text(&item["id"]), diff_of(&item["changes"]));
            }
            "patch_apply_begin" | "patch_apply_end" => {
                let diff = diff_of(&event["changes"]);
                self.changed(text(&event["call_id"]), diff);
            }
            "thread_rolled_back" => self.rolled_back(event["num_turns"].as_u64().unwrap_or(0)),
            "thread_name_updated" => {
                self.builder.title = event["thread_name"].as_str().map(str::to_owned);
            }
            "error" => {
                let failure = Failure::new(FailureKind::Server, text(&event["message"]));
                let mut answer = Answer::new(at, self.model.clone());
                answer.failure = Some(failure);
                self.builder.pieces.push(Piece::Answer(answer));
            }
            _ => {}
        }
    }

    /// The result may be there already, or come later.
    fn changed(&mut self, call: &str, diff: String) {
        let answers = self.builder.pieces.iter_mut().rev().filter_map(|piece| match piece {
            Piece::Answer(answer) => Some(answer),
            _ => None,
        });
        let settled = answers.flat_map(|answer| &mut answer.results).find(|r| r.call == call);
        match settled {
            Some(result) => result.outcome.details = json!({ "diff": diff }),
            None => drop(self.diffs.insert(call.to_owned(), diff)),
        }
    }

    /// The person went back: what they said last, and what followed, no longer counts.
    fn rolled_back(&mut self, turns: u64) {
        for _ in 0..turns {
            let prompt = |piece: &Piece| matches!(piece, Piece::Prompt { .. });
            let Some(at) = self.builder.pieces.iter().rposition(prompt) else { return };
            self.builder.pieces.truncate(at);
            self.builder.left_out("turns that were taken back");
        }
    }

    fn used(&mut self, usage: Usage) {
        let answers = self.builder.pieces.iter_mut().rev().find_map(|piece| match piece {
            Piece::Answer(answer) => Some(answer),
            _ => None,
        });
        if let Some(answer) = answers {
            answer.usage += usage;
        }
    }
}

/// One diff of all files that a patch changed.
fn diff_of(changes: &Value) -> String {
    let mut out = String::new();
    for (path, change) in changes.as_object().into_iter().flatten() {
        let mark = |sign: char, content: &Value| {
            let lines = text(content).lines().map(|line| format!("{sign}{line}\n"));
            lines.collect::<String>()
        };
        let lines = match text(&change["type"]) {
            "add" => mark('+', &change["content"]),
            "delete" => mark('-', &change["content"]),
            _ => text(&change["unified_diff"]).to_owned(),
        };
        out.push_str(&format!("--- {path}\n+++ {path}\n{lines}"));
    }
    out
}

/// OpenAI's input includes what came from the cache.
fn usage_of(tokens: &Value) -> Usage {
    let number = |key: &str| tokens[key].as_u64().unwrap_or(0);
    let (read, write) = (number("cached_input_tokens"), number("cache_write_input_tokens"));
    Usage {
        input: number("input_tokens").saturating_sub(read + write),
        output: number("output_tokens"),
        reasoning: number("reasoning_output_tokens"),
        cache_read: read,
        cache_write: write,
    }
}

fn joined(content: &Value) -> String {
    let texts = content.as_array().into_iter().flatten().filter_map(|part| part["text"].as_str());
    texts.collect::<Vec<_>>().join("\n")
}

/// Some versions wrapped a command's output in JSON: `{"output": …, "metadata": {"exit_code": …}}`.
fn unwrapped(said: &str) -> String {
    let inner: Option<Value> =
        said.starts_with('{').then(|| serde_json::from_str(said).ok()).flatten();
    match inner {
        Some(inner) if inner["output"].is_string() && inner["metadata"]["exit_code"].is_i64() => {
            format!("Exit code: {}\n{}", inner["metadata"]["exit_code"], text(&inner["output"]))
        }
        _ => said.to_owned(),
    }
}

/// Told in the first lines of a command's output.
fn exit_code(said: &str) -> Option<i64> {
    said.lines().take(5).find_map(|line| {
        let rest =
            line.strip_prefix("Process exited with code ").or(line.strip_prefix("Exit code: "));
        rest?.trim().parse().ok()
    })
}
