//! What the index keeps of one session, gathered line by line. Reading on from where it was left gives
//! the same as reading all.

use toolwright_llm::{Content, Usage};

use crate::entry::Entry;
use crate::fold::title_of;
use crate::lines::{RawLine, is_branchless, lines, on_branch};
use crate::step::{Ending, ReplyPart};

/// Of one text; the rest of a longer one is not found.
const TEXT_CAP_BYTES: usize = 64 << 10;

/// The state of a session as far as its file has been read.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Row {
    pub(super) read_to: u64,
    pub(super) last_line: String,
    /// Of the step that is open.
    pub(super) last_model: String,
    pub(super) directory: String,
    pub(super) parent: Option<String>,
    pub(super) forked_from: Option<String>,
    /// The program that it was imported from, and its id there.
    pub(super) source: Option<String>,
    pub(super) given_title: Option<String>,
    pub(super) prompt_title: Option<String>,
    pub(super) created: u64,
    pub(super) updated: u64,
    /// Prompts and answers of the current branch.
    pub(super) messages: u64,
    pub(super) usage: Usage,
    pub(super) cost: f64,
    pub(super) archived: bool,
}

/// The numbers are in the file: see `schema.rs`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpentKind {
    Prompt = 0,
    Step = 1,
    Call = 2,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Spent {
    pub(super) time: u64,
    pub(super) kind: SpentKind,
    /// Tells a copy from what is new in a copied session.
    pub(super) print: i64,
    /// The model of a step, the tool of a call.
    pub(super) name: String,
    pub(super) failed: bool,
    pub(super) usage: Usage,
    pub(super) cost: Option<f64>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Piece {
    pub(super) kind: &'static str,
    pub(super) time: u64,
    pub(super) body: String,
}

/// What a stretch of a file adds.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) row: Row,
    pub(super) spent: Vec<Spent>,
    pub(super) pieces: Vec<Piece>,
}

/// Reads a whole file. Nothing if it is no session.
pub(super) fn read_all(bytes: &[u8]) -> Option<Found> {
    let (lines, end) = lines(bytes);
    let on = on_branch(&lines);
    let first = lines.first().filter(|line| line.kind == "session")?;
    let Some(Entry::Session(header)) = first.entry() else { return None };
    let row = Row {
        directory: header.directory,
        parent: header.parent,
        forked_from: header.forked_from,
        created: first.time,
        updated: first.time,
        ..Row::default()
    };
    let mut found = Found { row, ..Found::default() };
    for (line, on) in lines.iter().zip(on) {
        found.add(line, on);
    }
    found.row.read_to = end as u64;
    found.row.last_line = lines.last().map(|line| line.id.to_owned()).unwrap_or_default();
    Some(found)
}

/// Reads on behind `row`. Nothing where the new lines do not follow in one branch: then all must be
/// read again.
pub(super) fn read_on(row: Row, bytes: &[u8]) -> Option<Found> {
    let (lines, end) = lines(bytes);
    let mut last = row.last_line.clone();
    let mut found = Found { row, ..Found::default() };
    for line in &lines {
        if line.parent != Some(last.as_str()) {
            return None;
        }
        found.add(line, true);
        line.id.clone_into(&mut last);
    }
    found.row.read_to += end as u64;
    found.row.last_line = last;
    Some(found)
}

impl Found {
    fn add(&mut self, line: &RawLine<'_>, on_branch: bool) {
        if !is_branchless(line.kind) {
            self.row.updated = self.row.updated.max(line.time);
        }
        // Most lines are parts of answers that come again as a whole.
        if matches!(line.kind, "session" | "delta" | "brief" | "note") {
            return;
        }
        let Some(entry) = line.entry() else { return };
        match entry {
            Entry::Prompt { content, .. } => {
                self.row.messages += u64::from(on_branch);
                if on_branch && self.row.prompt_title.is_none() {
                    self.row.prompt_title = Some(title_of(&content));
                }
                self.text("prompt", line.time, content.iter().filter_map(text_of));
                self.spent(line, SpentKind::Prompt, String::new(), Usage::default(), None);
            }
            Entry::StepStarted { model } => self.row.last_model = model.to_string(),
            Entry::Reply { parts, usage, cost, .. } => {
                self.row.messages += u64::from(on_branch);
                let texts = parts.iter().filter_map(|part| match part {
                    ReplyPart::Text { text, .. } => Some(text.as_str()),
                    _ => None,
                });
                self.text("answer", line.time, texts);
                self.step(line, usage, cost);
            }
            Entry::StepFailed { usage, .. } => self.step(line, usage, None),
            Entry::Compacted { usage, cost, .. } => self.step(line, usage, cost),
            Entry::CallStarted { tool, summary, touched, .. } => {
                let paths = touched.reads.iter().chain(&touched.writes).map(String::as_str);
                self.text("call", line.time, [tool.as_str(), &summary].into_iter().chain(paths));
            }
            Entry::CallSettled { outcome, .. } => {
                self.text("result", line.time, [outcome.title.as_str()]);
                let failed = outcome.ending != Ending::Completed;
                self.spent(line, SpentKind::Call, outcome.tool, Usage::default(), None);
                if let Some(spent) = self.spent.last_mut() {
                    spent.failed = failed;
                }
            }
            Entry::Titled { title, usage, cost, model, .. } => {
                self.row.given_title = Some(title);
                if usage != Usage::default() {
                    let name = model.map(|model| model.to_string()).unwrap_or_default();
                    self.money(usage, cost);
                    self.spent(line, SpentKind::Step, name, usage, cost);
                }
            }
            Entry::Archived { archived } => self.row.archived = archived,
            Entry::Imported(from) => self.row.source = Some(format!("{}:{}", from.from, from.id)),
            _ => {}
        }
    }

    fn step(&mut self, line: &RawLine<'_>, usage: Usage, cost: Option<f64>) {
        self.money(usage, cost);
        self.spent(line, SpentKind::Step, self.row.last_model.clone(), usage, cost);
    }

    fn money(&mut self, usage: Usage, cost: Option<f64>) {
        self.row.usage += usage;
        self.row.cost += cost.unwrap_or(0.0);
    }

    fn spent(
        &mut self,
        line: &RawLine<'_>,
        kind: SpentKind,
        name: String,
        usage: Usage,
        cost: Option<f64>,
    ) {
        let data = line.data.get().as_bytes();
        let print = (i64::from(crc32fast::hash(data)) << 24) ^ (data.len() as i64);
        self.spent.push(Spent { time: line.time, kind, print, name, failed: false, usage, cost });
    }

    fn text<'a>(&mut self, kind: &'static str, time: u64, texts: impl IntoIterator<Item = &'a str>) {
        let mut body = String::new();
        for text in texts.into_iter().map(str::trim).filter(|text| !text.is_empty()) {
            if !body.is_empty() {
                body.push('\n');
            }
            let room = TEXT_CAP_BYTES.saturating_sub(body.len());
            body.push_str(&text[..text.floor_char_boundary(room)]);
        }
        if !body.is_empty() {
            self.pieces.push(Piece { kind, time, body });
        }
    }
}

fn text_of(content: &Content) -> Option<&str> {
    match content {
        Content::Text { text } => Some(text),
        Content::Media(media) => media.name.as_deref(),
    }
}
