//! The whole conversation on a screen of its own, with folding and search; or that of an agent that works
//! for this one.

use std::collections::BTreeSet;

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
    /// Blocks that are shown the other way round than the rest.
    turned: BTreeSet<usize>,
    /// The block that was gone to.
    at: Option<usize>,
    child: Option<Child>,
    search: Option<Editor>,
    query: String,
    /// Drawn for this width and as many blocks; made again when either changes.
    rows: Vec<Line>,
    /// The first row of each block.
    starts: Vec<usize>,
    made_for: (usize, usize, bool),
}

/// An agent that works for this one.
struct Child {
    id: String,
    title: String,
    blocks: Vec<Block>,
}

impl App {
    pub(super) fn open_transcript(&mut self) {
        self.show_transcript(None);
    }

    pub(super) fn open_transcript_of(&mut self, id: String, title: String, blocks: Vec<Block>) {
        self.show_transcript(Some(Child { id, title, blocks }));
    }

    /// The changes of this conversation, whole, one behind the other.
    pub(super) fn show_changes(&mut self) {
        let changes = self.blocks.iter().filter(|block| match block {
            Block::Call(call) => call.done.as_ref().is_some_and(|done| done.diff.is_some()),
            _ => false,
        });
        let blocks: Vec<Block> = changes.cloned().collect();
        if blocks.is_empty() {
            return self.hint("nothing was changed by a tool that shows its changes");
        }
        // Named like no session is.
        self.open_transcript_of("changes".to_owned(), "Changes".to_owned(), blocks);
        if let Some(transcript) = &mut self.transcript {
            (transcript.unfolded, transcript.top) = (true, 0);
        }
    }

    fn show_transcript(&mut self, child: Option<Child>) {
        let mut transcript = Transcript {
            top: usize::MAX,
            unfolded: false,
            turned: BTreeSet::new(),
            at: None,
            child,
            search: None,
            query: String::new(),
            rows: Vec::new(),
            starts: Vec::new(),
            made_for: (0, usize::MAX, false),
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
            (Code::Char('['), _) => transcript.go_block(top, page, false),
            (Code::Char(']'), _) => transcript.go_block(top, page, true),
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
            (Code::Enter, _) => {
                let at = transcript.at.or_else(|| transcript.block_at(top)).unwrap_or(0);
                if let Some(Block::Call(call)) = transcript.blocks(&self.blocks).get(at)
                    && let Some(id) = call.child()
                {
                    // Closed, so that the other can be opened.
                    return self.order(super::Order::Child(id));
                }
                transcript.turn(at);
                transcript.at = Some(at);
                transcript.make(&self.blocks, self.view());
                transcript.starts.get(at).map_or(top, |start| top.min(*start))
            }
            (Code::Tab | Code::Char('o'), _) => {
                // The block at the top stays there.
                let block = transcript.block_at(top);
                transcript.unfolded = !transcript.unfolded;
                transcript.turned.clear();
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
        let wanted = (columns, transcript.blocks(&self.blocks).len(), transcript.unfolded);
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
        let marked = transcript.at.and_then(|at| transcript.starts.get(at).copied());
        if let Some(line) = marked.and_then(|row| lines.get_mut(row.checked_sub(top)?)) {
            line.spans.iter_mut().for_each(|span| span.style.reverse = true);
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
                let fold = if transcript.unfolded { "o fold all" } else { "o unfold all" };
                let whose = transcript.child.as_ref().map(|child| format!("{} · ", child.title));
                let text = format!(
                    "{}{last}/{} · q close · / search · [ ] blocks · enter unfold · {fold}",
                    whose.unwrap_or_default(),
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
    pub(super) fn child_id(&self) -> Option<&str> {
        self.child.as_ref().map(|child| child.id.as_str())
    }

    /// The same agent, some work later.
    pub(super) fn renew(&mut self, blocks: Vec<Block>) {
        if let Some(child) = &mut self.child {
            child.blocks = blocks;
            self.made_for.1 = usize::MAX;
        }
    }

    fn blocks<'a>(&'a self, own: &'a [Block]) -> &'a [Block] {
        self.child.as_ref().map_or(own, |child| child.blocks.as_slice())
    }

    fn turn(&mut self, at: usize) {
        if !self.turned.remove(&at) {
            self.turned.insert(at);
        }
        self.made_for.1 = usize::MAX;
    }

    /// Draws what is not drawn yet; everything, where the width or the folding changed.
    fn make(&mut self, own: &[Block], view: View<'_>) {
        let child = self.child.take();
        let blocks = child.as_ref().map_or(own, |child| child.blocks.as_slice());
        let (columns, count, unfolded) = self.made_for;
        let goes_on = columns == view.columns && unfolded == self.unfolded && count <= blocks.len();
        let from = if goes_on { count } else { 0 };
        if from == 0 {
            self.rows.clear();
            self.starts.clear();
        }
        for (n, block) in blocks.iter().enumerate().skip(from) {
            let whole = self.unfolded != self.turned.contains(&n);
            self.starts.push(self.rows.len());
            self.rows.extend(block.render(View { details: whole, thinking: whole, ..view }));
            self.rows.push(Line::empty());
        }
        self.made_for = (view.columns, blocks.len(), self.unfolded);
        self.child = child;
    }

    fn block_at(&self, row: usize) -> Option<usize> {
        self.starts.iter().rposition(|start| *start <= row)
    }

    /// Marks the block before or after and gives the row to begin with, so that it can be seen.
    fn go_block(&mut self, top: usize, page: usize, forward: bool) -> usize {
        let last = self.starts.len().saturating_sub(1);
        let at = match (self.at.or_else(|| self.block_at(top)), forward) {
            (None, _) => return top,
            (Some(at), true) => (at + 1).min(last),
            (Some(at), false) => at.saturating_sub(1),
        };
        self.at = Some(at);
        let start = self.starts.get(at).copied().unwrap_or(top);
        match start >= top && start + 1 < top + page {
            true => top,
            false => start,
        }
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
