//! Puts what was read into entries of ours. However odd the source, the history is valid: every call has
//! one result, ids of calls are unique, and turns come to an end.

use std::collections::{BTreeMap, HashSet};

use serde_json::Value;
use toolwright_llm::{Content, Failure, Finish, FinishReason, Media, Origin, Usage};

use crate::entry::{CallPlace, Entry, Touched, TurnStatus};
use crate::step::{Ending, Outcome, ReplyPart};

/// One answer with its results.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) model: Origin,
    pub(super) parts: Vec<ReplyPart>,
    pub(super) usage: Usage,
    pub(super) cost: Option<f64>,
    /// Nothing for an answer that never became whole.
    pub(super) finish: Option<Finish>,
    pub(super) failure: Option<Failure>,
    pub(super) results: Vec<Result>,
}

/// What became of a call.
#[derive(Debug)]
pub(super) struct Result {
    pub(super) call: String,
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) outcome: Outcome,
    pub(super) touched: Touched,
    /// No longer sent to a model.
    pub(super) pruned: bool,
}

impl Answer {
    pub(super) fn new(time: u64, model: Origin) -> Self {
        Self {
            start: time,
            end: time,
            model,
            parts: Vec::new(),
            usage: Usage::default(),
            cost: None,
            finish: None,
            failure: None,
            results: Vec::new(),
        }
    }

    pub(super) fn has_calls(&self) -> bool {
        self.parts.iter().any(|part| matches!(part, ReplyPart::Call { .. }))
    }

    fn has_call(&self, id: &str) -> bool {
        self.parts.iter().any(|part| matches!(part, ReplyPart::Call { id: own, .. } if own == id))
    }
}

impl Result {
    pub(super) fn new(call: &str, time: u64, tool: &str, output: String, is_error: bool) -> Self {
        let outcome = Outcome {
            ending: if is_error { Ending::Failed } else { Ending::Completed },
            tool: tool.to_owned(),
            output,
            title: tool.to_owned(),
            details: Value::Null,
            attachments: Vec::new(),
            duration_ms: 0,
            cost: None,
        };
        let touched = Touched::default();
        Self { call: call.to_owned(), start: time, end: time, outcome, touched, pruned: false }
    }
}

#[derive(Debug)]
pub(super) enum Piece {
    Prompt {
        time: u64,
        content: Vec<Content>,
        agent: String,
        model: Origin,
        steer: bool,
    },
    Note {
        time: u64,
        text: String,
    },
    Answer(Answer),
    Shortened {
        time: u64,
        summary: String,
        keep_from: usize,
        reason: String,
        usage: Usage,
        cost: Option<f64>,
    },
}

#[derive(Debug, Default)]
pub(super) struct Builder {
    pub(super) id: String,
    pub(super) directory: String,
    pub(super) title: Option<String>,
    pub(super) created: u64,
    pub(super) pieces: Vec<Piece>,
    /// What was left out, counted by its name.
    pub(super) left_out: BTreeMap<String, usize>,
}

impl Builder {
    pub(super) fn left_out(&mut self, what: impl Into<String>) {
        *self.left_out.entry(what.into()).or_default() += 1;
    }

    pub(super) fn prompt(&mut self, time: u64, content: Vec<Content>, agent: &str, model: &Origin) {
        let (agent, model) = (agent.to_owned(), model.clone());
        self.pieces.push(Piece::Prompt { time, content, agent, model, steer: false });
    }

    pub(super) fn note(&mut self, time: u64, text: impl Into<String>) {
        let text = text.into();
        if !text.trim().is_empty() {
            self.pieces.push(Piece::Note { time, text });
        }
    }

    /// How many items of a session the pieces so far make.
    pub(super) fn items(&self) -> usize {
        self.pieces.iter().filter(|piece| !matches!(piece, Piece::Shortened { .. })).count()
    }

    pub(super) fn last_answer(&mut self) -> Option<&mut Answer> {
        match self.pieces.last_mut() {
            Some(Piece::Answer(answer)) => Some(answer),
            _ => None,
        }
    }

    /// Gives a result to the newest answer that made the call and has none yet.
    pub(super) fn result(&mut self, result: Result) {
        let answers = self.pieces.iter_mut().rev().filter_map(|piece| match piece {
            Piece::Answer(answer) => Some(answer),
            _ => None,
        });
        let mut open = answers.filter(|answer| {
            answer.has_call(&result.call) && answer.results.iter().all(|r| r.call != result.call)
        });
        match open.next() {
            Some(answer) => answer.results.push(result),
            None => {
                drop(open);
                self.left_out("results of calls that are not in the file");
            }
        }
    }

    /// The entries in order, and what is missing among them.
    pub(super) fn entries(self) -> (Vec<(u64, Entry)>, Vec<String>) {
        let mut writer = Writer::default();
        for piece in self.pieces {
            writer.piece(piece);
        }
        writer.end_turn();
        let mut notices: Vec<String> =
            self.left_out.iter().map(|(what, count)| format!("left out: {count} {what}")).collect();
        notices.extend(match writer.unanswered {
            0 => None,
            1 => Some("1 call had no result and counts as interrupted".to_owned()),
            count => Some(format!("{count} calls had no result and count as interrupted")),
        });
        (writer.entries, notices)
    }
}

#[derive(Default)]
struct Writer {
    entries: Vec<(u64, Entry)>,
    items: usize,
    time: u64,
    ids: HashSet<String>,
    unanswered: usize,
    /// How the turn would end if nothing followed.
    open: Option<TurnStatus>,
    pruned: Vec<CallPlace>,
}

impl Writer {
    /// Times never go back: order in the file is order in time.
    fn push(&mut self, time: u64, entry: Entry) {
        self.time = self.time.max(time);
        self.entries.push((self.time, entry));
    }

    fn end_turn(&mut self) {
        if let Some(status) = self.open.take() {
            self.push(self.time, Entry::TurnEnded { status });
        }
        if !self.pruned.is_empty() {
            let calls = std::mem::take(&mut self.pruned);
            self.push(self.time, Entry::Pruned { calls });
        }
    }

    fn piece(&mut self, piece: Piece) {
        match piece {
            Piece::Prompt { time, content, agent, model, steer } => {
                if !steer {
                    self.end_turn();
                }
                self.items += 1;
                self.push(time, Entry::Prompt { content, agent, model, steer, queued: None });
                self.open = Some(TurnStatus::Interrupted);
            }
            Piece::Note { time, text } => {
                self.items += 1;
                self.push(time, Entry::Note { text });
            }
            Piece::Answer(answer) => self.answer(answer),
            Piece::Shortened { time, summary, keep_from, reason, usage, cost } => {
                let keep_from = keep_from.min(self.items);
                self.push(time, Entry::Compacted { summary, keep_from, reason, usage, cost });
            }
        }
    }

    fn answer(&mut self, answer: Answer) {
        let item = self.items;
        self.items += 1;
        let Answer { start, end, model, mut parts, usage, cost, finish, failure, results } = answer;
        self.push(start, Entry::StepStarted { model });
        if let Some(failure) = failure {
            self.shown(end, &parts);
            self.push(end, Entry::StepFailed { failure, usage });
            self.open = Some(TurnStatus::Failed);
            return;
        }
        let calls = parts.iter().any(|part| matches!(part, ReplyPart::Call { .. }));
        let Some(finish) = finish.or_else(|| calls.then(called)) else {
            self.shown(end, &parts);
            self.open = Some(TurnStatus::Interrupted);
            return;
        };
        let asked = self.unique(&mut parts);
        self.push(end, Entry::Reply { parts, usage, finish, cost });
        self.open = Some(if calls { TurnStatus::Interrupted } else { TurnStatus::Done });
        let mut results = results;
        for (call, (id, tool)) in asked.into_iter().enumerate() {
            let found = results.iter().position(|result| result.call == id);
            let result = match found {
                Some(at) => results.swap_remove(at),
                None => {
                    self.unanswered += 1;
                    interrupted(&id, end, &tool)
                }
            };
            let summary = result.outcome.title.clone();
            let (tool, touched) = (result.outcome.tool.clone(), result.touched);
            let (effects, decision) = (false, "imported".to_owned());
            self.push(
                result.start,
                Entry::CallStarted { call, tool, summary, effects, decision, touched },
            );
            self.push(result.end, Entry::CallSettled { call, outcome: result.outcome });
            if result.pruned {
                self.pruned.push(CallPlace { item, call });
            }
        }
    }

    /// What was seen of an answer that never became whole.
    fn shown(&mut self, time: u64, parts: &[ReplyPart]) {
        use crate::entry::DeltaKind;
        for part in parts {
            let (kind, text) = match part {
                ReplyPart::Text { text, .. } => (DeltaKind::Text, text.clone()),
                ReplyPart::Reasoning { text, .. } => (DeltaKind::Reasoning, text.clone()),
                ReplyPart::ServerTool { .. } | ReplyPart::Call { .. } => continue,
            };
            self.push(time, Entry::Delta { kind, text });
        }
    }

    /// The calls by the ids that the source gave them. In the session each is unique.
    fn unique(&mut self, parts: &mut [ReplyPart]) -> Vec<(String, String)> {
        let mut asked = Vec::new();
        for part in parts {
            let ReplyPart::Call { id, name, .. } = part else { continue };
            asked.push((id.clone(), name.clone()));
            let mut number = 1;
            let own = if id.is_empty() { "call".to_owned() } else { id.clone() };
            id.clone_from(&own);
            while !self.ids.insert(id.clone()) {
                number += 1;
                *id = format!("{own}_{number}");
            }
        }
        asked
    }
}

fn called() -> Finish {
    Finish { reason: FinishReason::ToolCalls, raw: "tool_calls".to_owned() }
}

fn interrupted(call: &str, time: u64, tool: &str) -> Result {
    let text = "This call was interrupted and its outcome is unknown. Look at the present state before \
                doing it again.";
    let mut result = Result::new(call, time, tool, text.to_owned(), true);
    result.outcome.ending = Ending::Interrupted;
    result
}

pub(super) fn stop() -> Finish {
    Finish { reason: FinishReason::Stop, raw: "stop".to_owned() }
}

pub(super) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// A number of milliseconds, or a date as programs write it.
pub(super) fn time(value: &Value) -> u64 {
    match value {
        Value::Number(number) => number.as_f64().map_or(0, |n| n.max(0.0) as u64),
        Value::String(date) => date
            .parse::<jiff::Timestamp>()
            .map_or(0, |stamp| u64::try_from(stamp.as_millisecond()).unwrap_or(0)),
        _ => 0,
    }
}

/// An image or a document from `data:MIME;base64,…`.
pub(super) fn media(url: &str, name: Option<&str>) -> Option<Media> {
    let (head, base64) = url.strip_prefix("data:")?.split_once(',')?;
    let mime = head.strip_suffix(";base64")?;
    let mime = mime.split(';').next().unwrap_or_default().to_owned();
    Some(Media { mime, base64: base64.into(), name: name.map(str::to_owned) })
}

/// What a call is about, in one line, from the arguments that tools have in common.
pub(super) fn about(arguments: &Value) -> Option<String> {
    let patch = arguments["patchText"].as_str().or(arguments["input"].as_str()).unwrap_or_default();
    let files = patch
        .lines()
        .filter_map(|line| line.strip_prefix("*** ")?.split_once(" File: ").map(|(_, path)| path));
    let files = files.collect::<Vec<_>>().join(", ");
    if !files.is_empty() {
        return Some(crate::title::shortened(&files));
    }
    const KEYS: &[&str] = &[
        "command",
        "cmd",
        "filePath",
        "file_path",
        "path",
        "pattern",
        "query",
        "url",
        "description",
    ];
    let found = KEYS.iter().find_map(|key| match &arguments[*key] {
        Value::String(text) => Some(text.clone()),
        Value::Array(words) => {
            Some(words.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" "))
        }
        _ => None,
    })?;
    let line = found.lines().next().unwrap_or_default().trim().to_owned();
    (!line.is_empty()).then(|| crate::title::shortened(&line))
}
