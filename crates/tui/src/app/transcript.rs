//! The whole conversation on a screen of its own, with folding and search.

use super::App;
use crate::blocks::{Block, View};
use crate::editor::Editor;
use crate::key::{Code, Key};
use crate::style::{Line, Style};
use crate::width;

pub(crate) struct Transcript {
    /// The first row that is shown.
    top: usize,
    unfolded: bool,
    search: Option<Editor>,
    query: String,
    /// Drawn for this width and as many blocks; made again when either changes.
    rows: Vec<Line>,
    /// The first row of each block.
    starts: Vec<usize>,
    made_for: (usize, usize, bool),
}

impl App {
    pub(super) fn open_transcript(&mut self) {
        let made_for = (0, usize::MAX, false);
        let mut transcript = Transcript {
            top: usize::MAX,
            unfolded: false,
            search: None,
            query: String::new(),
            rows: Vec::new(),
            starts: Vec::new(),
            made_for,
        };
        transcript.make(&self.blocks, self.view());
        self.transcript = Some(transcript);
        self.menu = None;
    }

    pub fn close_transcript(&mut self) {
        self.transcript = None;
    }

    pub(super) fn transcript_key(&mut self, key: Key) {
        let page = self.rows.saturating_sub(2).max(1);
        let Some(mut transcript) = self.transcript.take() else { return };
        if let Some(search) = &mut transcript.search {
            match key.code {
                Code::Escape => transcript.search = None,
                Code::Enter => {
                    transcript.query = search.text().to_owned();
                    transcript.search = None;
                    transcript.find(true, page);
                }
                _ => super::ask::edit(search, key),
            }
            self.transcript = Some(transcript);
            return;
        }
        let most = transcript.rows.len().saturating_sub(page);
        let top = transcript.top.min(most);
        transcript.top = match (key.code, key.ctrl) {
            (Code::Escape | Code::Char('q'), _) | (Code::Char('c' | 't'), true) => return,
            (Code::Up | Code::Char('k'), _) => top.saturating_sub(1),
            (Code::Down | Code::Char('j'), _) => (top + 1).min(most),
            (Code::PageUp | Code::Char('b'), _) => top.saturating_sub(page),
            (Code::PageDown | Code::Char(' ' | 'f'), _) => (top + page).min(most),
            (Code::Char('u'), _) => top.saturating_sub(page / 2),
            (Code::Char('d'), _) => (top + page / 2).min(most),
            (Code::Home | Code::Char('g'), _) => 0,
            (Code::End | Code::Char('G'), _) => usize::MAX,
            (Code::Char('['), _) => transcript.block_before(top),
            (Code::Char(']'), _) => transcript.block_after(top).min(most),
            (Code::Char('/'), _) => {
                transcript.search = Some(Editor::default());
                top
            }
            (Code::Char('n'), _) => {
                transcript.find(true, page);
                transcript.top
            }
            (Code::Char('N'), _) => {
                transcript.find(false, page);
                transcript.top
            }
            (Code::Enter | Code::Tab | Code::Char('o'), _) => {
                // The block at the top stays there.
                let block = transcript.starts.iter().rposition(|start| *start <= top);
                transcript.unfolded = !transcript.unfolded;
                transcript.make(&self.blocks, self.view());
                block.and_then(|n| transcript.starts.get(n).copied()).unwrap_or(top)
            }
            _ => top,
        };
        self.transcript = Some(transcript);
    }

    /// A whole screen of it.
    pub(super) fn draw_transcript(&mut self) -> (Vec<Line>, Option<(usize, usize)>) {
        let Some(mut transcript) = self.transcript.take() else { return (Vec::new(), None) };
        let columns = self.width();
        let wanted = (columns, self.blocks.len(), transcript.unfolded);
        if transcript.made_for != wanted {
            transcript.make(&self.blocks, self.view());
        }
        let page = self.rows.saturating_sub(2).max(1);
        let most = transcript.rows.len().saturating_sub(page);
        let top = transcript.top.min(most);
        let mut lines: Vec<Line> = transcript.rows.iter().skip(top).take(page).cloned().collect();
        if !transcript.query.is_empty() {
            let wanted = transcript.query.to_lowercase();
            for line in &mut lines {
                if line.text().to_lowercase().contains(&wanted) {
                    line.spans.iter_mut().for_each(|span| span.style.underline = true);
                }
            }
        }
        lines.resize(page, Line::empty());
        let mut cursor = None;
        let foot = match &transcript.search {
            Some(search) => {
                cursor = Some((page, 1 + width::of(search.before_cursor())));
                Line::plain(format!("/{}", search.text()))
            }
            None => {
                let last = (top + page).min(transcript.rows.len());
                let fold = if transcript.unfolded { "o fold" } else { "o unfold" };
                let text = format!(
                    "{last}/{} · / search · n N next · [ ] blocks · {fold} · q close",
                    transcript.rows.len()
                );
                Line::styled(text, Style::fg(self.theme.primary))
            }
        };
        lines.push(foot);
        let lines = lines.iter().map(|line| width::cut_line(line, columns)).collect();
        self.transcript = Some(transcript);
        (lines, cursor)
    }
}

impl Transcript {
    /// Draws what is not drawn yet; everything, where the width or the folding changed.
    fn make(&mut self, blocks: &[Block], view: View<'_>) {
        let view = View { details: self.unfolded, thinking: self.unfolded, ..view };
        let (columns, count, unfolded) = self.made_for;
        let goes_on = columns == view.columns && unfolded == self.unfolded && count <= blocks.len();
        let from = if goes_on { count } else { 0 };
        if from == 0 {
            self.rows.clear();
            self.starts.clear();
        }
        for block in &blocks[from..] {
            self.starts.push(self.rows.len());
            self.rows.extend(block.render(view));
            self.rows.push(Line::empty());
        }
        self.made_for = (view.columns, blocks.len(), self.unfolded);
    }

    fn block_before(&self, top: usize) -> usize {
        self.starts.iter().rev().find(|start| **start < top).copied().unwrap_or(0)
    }

    fn block_after(&self, top: usize) -> usize {
        self.starts.iter().find(|start| **start > top).copied().unwrap_or(usize::MAX)
    }

    /// Goes to the next row that has what is searched for, round and round.
    fn find(&mut self, forward: bool, page: usize) {
        if self.query.is_empty() || self.rows.is_empty() {
            return;
        }
        let wanted = self.query.to_lowercase();
        let fits = |n: &usize| self.rows[*n].text().to_lowercase().contains(&wanted);
        let count = self.rows.len();
        let top = self.top.min(count.saturating_sub(page));
        let found = if forward {
            (top + 1..count).chain(0..=top.min(count - 1)).find(fits)
        } else {
            (0..top).rev().chain((top..count).rev()).find(fits)
        };
        if let Some(row) = found {
            self.top = row;
        }
    }
}
