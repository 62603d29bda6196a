//! What the index keeps of one session, gathered line by line. Reading on from where it was left gives
//! the same as reading all.

use std::path::Path;

use toolwright_llm::{Content, Usage};

use crate::entry::Entry;
use crate::fold::title_of;
use crate::line::{self, Head};
use crate::log::LogError;
use crate::step::{Ending, ReplyPart};
use crate::tree::{Lines, Tree};

/// Of one text; the rest of a longer one is not found.
const TEXT_CAP_BYTES: usize = 64 << 10;

/// The state of a session as far as its file has been read.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Row {
    /// Of the file, when it was read.
    pub(super) size: i64,
    pub(super) read_to: u64,
    pub(super) last_line: String,
    /// How that line ends: if it does so no more, all must be read again.
    pub(super) seam: String,
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

/// One line that is sound.
struct Line<'a> {
    head: Head<'a>,
    bytes: &'a [u8],
}

/// Reads a whole file, as the log does.
pub(super) fn read_all(path: &Path) -> Result<Found, LogError> {
    let tree = Tree::scan(path)?;
    let mut on_branch = vec![false; tree.nodes().len()];
    tree.branch(tree.leaf()).into_iter().for_each(|number| on_branch[number] = true);
    let mut found = Found::default();
    let mut lines = Lines::open(path)?;
    for (node, on) in tree.nodes().iter().zip(on_branch).filter(|(node, _)| !node.damaged) {
        let bytes = lines.read(node)?;
        let Some(head) = Head::of(bytes) else { continue };
        head.id.clone_into(&mut found.row.last_line);
        found.row.seam = seam(bytes);
        found.add(&Line { head, bytes }, on);
    }
    found.row.read_to = tree.whole;
    Ok(found)
}

/// Reads on behind `row`. Nothing where the new lines do not follow in one branch: then all must be
/// read again.
pub(super) fn read_on(row: Row, bytes: &[u8]) -> Option<Found> {
    let mut found = Found { row, ..Found::default() };
    let mut rest = bytes;
    while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
        let bytes = &rest[..end];
        let head = Head::of(bytes).filter(|_| line::is_sound(bytes));
        rest = &rest[end + 1..];
        match head {
            // As the log takes it: damaged if something follows, torn otherwise.
            None if rest.is_empty() => break,
            None => return None,
            Some(head) if head.parent != Some(found.row.last_line.as_str()) => return None,
            Some(head) => {
                head.id.clone_into(&mut found.row.last_line);
                found.row.seam = seam(bytes);
                found.add(&Line { head, bytes }, true);
                found.row.read_to += end as u64 + 1;
            }
        }
    }
    Some(found)
}

/// The end of a line: its checksum.
pub(super) const SEAM_BYTES: usize = 16;

fn seam(line: &[u8]) -> String {
    String::from_utf8_lossy(&line[line.len().saturating_sub(SEAM_BYTES)..]).into_owned()
}

impl Found {
    fn add(&mut self, line: &Line<'_>, on_branch: bool) {
        let Head { kind, time, .. } = line.head;
        // Looking after a session is not using it.
        if !matches!(kind, "titled" | "archived" | "imported") {
            self.row.updated = self.row.updated.max(time);
        }
        // Most lines are parts of answers that come again as a whole.
        if matches!(kind, "delta" | "brief" | "note") {
            return;
        }
        let Some(entry) = line::entry(line.bytes) else { return };
        match entry {
            Entry::Session(header) if self.row.created == 0 => {
                self.row.directory = header.directory;
                self.row.parent = header.parent;
                self.row.forked_from = header.forked_from;
                self.row.created = time;
            }
            Entry::Prompt { content, .. } => {
                self.row.messages += u64::from(on_branch);
                if on_branch && self.row.prompt_title.is_none() {
                    self.row.prompt_title = Some(title_of(&content));
                }
                self.text("prompt", time, content.iter().filter_map(text_of));
                self.spent(line, SpentKind::Prompt, String::new(), Usage::default(), None);
            }
            Entry::StepStarted { model } => self.row.last_model = model.to_string(),
            Entry::Reply { parts, usage, cost, .. } => {
                self.row.messages += u64::from(on_branch);
                let texts = parts.iter().filter_map(|part| match part {
                    ReplyPart::Text { text, .. } => Some(text.as_str()),
                    _ => None,
                });
                self.text("answer", time, texts);
                self.step(line, usage, cost);
            }
            Entry::StepFailed { usage, .. } => self.step(line, usage, None),
            Entry::Compacted { usage, cost, .. } => self.step(line, usage, cost),
            Entry::CallStarted { tool, summary, touched, .. } => {
                let paths = touched.reads.iter().chain(&touched.writes).map(String::as_str);
                self.text("call", time, [tool.as_str(), &summary].into_iter().chain(paths));
            }
            Entry::CallSettled { outcome, .. } => {
                self.text("result", time, [outcome.title.as_str()]);
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

    fn step(&mut self, line: &Line<'_>, usage: Usage, cost: Option<f64>) {
        self.money(usage, cost);
        self.spent(line, SpentKind::Step, self.row.last_model.clone(), usage, cost);
    }

    fn money(&mut self, usage: Usage, cost: Option<f64>) {
        self.row.usage += usage;
        self.row.cost += cost.unwrap_or(0.0);
    }

    fn spent(
        &mut self,
        line: &Line<'_>,
        kind: SpentKind,
        name: String,
        usage: Usage,
        cost: Option<f64>,
    ) {
        // What a copy has in common with its original: not the ids and times before it, nor the checksum.
        let start = line.bytes.windows(8).position(|window| window == b"\"type\":\"").unwrap_or(0);
        let data = &line.bytes[start..line.bytes.len().saturating_sub(SEAM_BYTES)];
        let print = (i64::from(crc32fast::hash(data)) << 24) ^ (data.len() as i64);
        let time = line.head.time;
        self.spent.push(Spent { time, kind, print, name, failed: false, usage, cost });
    }

    fn text<'a>(
        &mut self,
        kind: &'static str,
        time: u64,
        texts: impl IntoIterator<Item = &'a str>,
    ) {
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
