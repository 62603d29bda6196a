//! The whole conversation on a screen of its own, with folding and search; or that of an agent that works
//! for this one.

use std::collections::{BTreeSet, HashMap};

use super::App;
use crate::blocks::{Block, View};
use crate::editor::Editor;
use crate::key::{Code, Key};
use crate::style::{Line, Style};
use crate::width;

/// Blocks whose rows are kept: what was looked at just now is looked at again.
const KEPT: usize = 400;

/// A row: that of a block with this number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
struct Spot {
    block: usize,
    row: usize,
}

pub(crate) struct Transcript {
    /// The first row that is shown; none where it is the last page, whatever comes.
    top: Option<Spot>,
    unfolded: bool,
    /// Blocks that are shown the other way round than the rest.
    turned: BTreeSet<usize>,
    /// The block that was gone to.
    at: Option<usize>,
    child: Option<Child>,
    search: Option<Editor>,
    query: String,
    /// Where what is searched for was found last; nothing is, where it is nowhere.
    found: Option<Spot>,
    nowhere: bool,
    /// Rows of blocks that were looked at. Only those are ever made: a conversation may be long.
    rows: HashMap<usize, Vec<Line>>,
    made_for: usize,
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
            (transcript.unfolded, transcript.top) = (true, Some(Spot::default()));
        }
    }

    fn show_transcript(&mut self, child: Option<Child>) {
        self.transcript = Some(Transcript {
            top: None,
            unfolded: false,
            turned: BTreeSet::new(),
            at: None,
            child,
            search: None,
            query: String::new(),
            found: None,
            nowhere: false,
            rows: HashMap::new(),
            made_for: 0,
        });
        self.menu = None;
    }

    /// Nothing lies over the conversation any more.
    pub fn uncover(&mut self) {
        (self.transcript, self.overlay) = (None, None);
    }

    pub(super) fn transcript_key(&mut self, key: Key) {
        let page = self.rows.saturating_sub(1).max(1);
        let Some(mut transcript) = self.transcript.take() else { return };
        let child = transcript.child.take();
        let blocks = child.as_ref().map_or(self.blocks.as_slice(), |child| &child.blocks);
        let mut look = Look { own: &mut transcript, blocks, view: self.passing_view(), page };
        let did = look.key(key);
        transcript.child = child;
        match did {
            Did::Stay => self.transcript = Some(transcript),
            Did::Close => {}
            // Closed, so that the other can be opened.
            Did::Child(id) => self.order(super::Order::Child(id)),
        }
    }

    /// A whole screen of it.
    pub(super) fn draw_transcript(&mut self) -> (Vec<Line>, Option<(usize, usize)>) {
        let Some(mut transcript) = self.transcript.take() else { return (Vec::new(), None) };
        let page = self.rows.saturating_sub(1).max(1);
        let child = transcript.child.take();
        let blocks = child.as_ref().map_or(self.blocks.as_slice(), |child| &child.blocks);
        let whose = child.as_ref().map(|child| format!("{} · ", child.title)).unwrap_or_default();
        let mut look = Look { own: &mut transcript, blocks, view: self.passing_view(), page };
        let drawn = look.draw(&whose);
        transcript.child = child;
        self.transcript = Some(transcript);
        drawn
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
            self.rows.clear();
        }
    }

    /// The oldest blocks of the conversation are gone: the others have other numbers.
    pub(super) fn shift(&mut self, gone: usize) {
        if self.child.is_some() {
            return;
        }
        let moved = |spot: Spot| Some(Spot { block: spot.block.checked_sub(gone)?, ..spot });
        self.top = self.top.map(|top| moved(top).unwrap_or_default());
        self.found = self.found.and_then(moved);
        self.at = self.at.and_then(|at| at.checked_sub(gone));
        self.turned = self.turned.iter().filter_map(|at| at.checked_sub(gone)).collect();
        self.rows.clear();
    }

    /// The conversation is another.
    pub(super) fn replaced(&mut self) {
        if self.child.is_none() {
            (self.found, self.at) = (None, None);
            self.turned.clear();
            self.rows.clear();
        }
    }

    /// Blocks whose rows were made.
    #[cfg(test)]
    pub(super) fn drawn(&self) -> usize {
        self.rows.len()
    }

    fn turn(&mut self, at: usize) {
        if !self.turned.remove(&at) {
            self.turned.insert(at);
        }
        self.rows.remove(&at);
    }
}

/// What became of a key.
enum Did {
    Stay,
    Close,
    Child(String),
}

/// A look at it: with the blocks that there are now and for the size that there is now.
struct Look<'a> {
    own: &'a mut Transcript,
    blocks: &'a [Block],
    view: View<'a>,
    page: usize,
}

impl Look<'_> {
    fn key(&mut self, key: Key) -> Did {
        self.refresh();
        if let Some(search) = &mut self.own.search {
            match key.code {
                Code::Escape => self.own.search = None,
                Code::Enter => {
                    self.own.query = search.text().to_owned();
                    (self.own.search, self.own.found) = (None, None);
                    self.find(true);
                }
                _ => super::ask::edit(search, key),
            }
            return Did::Stay;
        }
        let (top, page) = (self.top(), self.page);
        self.own.nowhere = false;
        let next = match (key.code, key.ctrl) {
            (Code::Escape | Code::Char('q'), _) | (Code::Char('c' | 't'), true) => {
                return Did::Close;
            }
            (Code::Up | Code::Char('k'), _) => self.above(top, 1),
            (Code::Down | Code::Char('j'), _) => self.below(top, 1),
            (Code::PageUp | Code::Char('b'), _) => self.above(top, page),
            (Code::PageDown | Code::Char(' ' | 'f'), _) => self.below(top, page),
            (Code::Char('u'), _) => self.above(top, page / 2),
            (Code::Char('d'), _) => self.below(top, page / 2),
            (Code::Home | Code::Char('g'), _) => Spot::default(),
            (Code::End | Code::Char('G'), _) => self.end(),
            (Code::Char('['), _) => self.go_block(top, false),
            (Code::Char(']'), _) => self.go_block(top, true),
            (Code::Char('/'), _) => {
                self.own.search = Some(Editor::default());
                top
            }
            (Code::Char(way @ ('n' | 'N')), _) => {
                self.find(way == 'n');
                return Did::Stay;
            }
            (Code::Enter, _) => {
                let at = self.own.at.unwrap_or(top.block);
                if let Some(Block::Call(call)) = self.blocks.get(at)
                    && let Some(id) = call.child()
                {
                    return Did::Child(id);
                }
                self.own.turn(at);
                self.own.at = Some(at);
                top.min(Spot { block: at, row: 0 })
            }
            (Code::Tab | Code::Char('o'), _) => {
                // The block at the top stays there.
                self.own.unfolded = !self.own.unfolded;
                self.own.turned.clear();
                self.own.rows.clear();
                Spot { row: 0, ..top }
            }
            _ => top,
        };
        self.go(next);
        Did::Stay
    }

    /// What was made for another width is of no use.
    fn refresh(&mut self) {
        if self.own.made_for != self.view.columns || self.own.rows.len() > KEPT {
            self.own.rows.clear();
            self.own.made_for = self.view.columns;
        }
    }

    /// The rows of a block, the blank one behind it too.
    fn rows(&mut self, block: usize) -> &[Line] {
        let whole = self.own.unfolded != self.own.turned.contains(&block);
        let view = View { details: whole, thinking: whole, ..self.view };
        let made = || {
            let mut rows = self.blocks.get(block).map(|b| b.render(view)).unwrap_or_default();
            rows.push(Line::empty());
            rows
        };
        self.own.rows.entry(block).or_insert_with(made)
    }

    fn above(&mut self, mut from: Spot, mut count: usize) -> Spot {
        while count > from.row && from.block > 0 {
            count -= from.row;
            from.block -= 1;
            from.row = self.rows(from.block).len();
        }
        from.row = from.row.saturating_sub(count);
        from
    }

    fn below(&mut self, mut from: Spot, mut count: usize) -> Spot {
        while from.block < self.blocks.len() {
            let left = self.rows(from.block).len().saturating_sub(from.row);
            if count < left {
                from.row += count;
                break;
            }
            count -= left;
            from = Spot { block: from.block + 1, row: 0 };
        }
        from
    }

    /// The first row of the last page.
    fn end(&mut self) -> Spot {
        self.above(Spot { block: self.blocks.len(), row: 0 }, self.page)
    }

    fn top(&mut self) -> Spot {
        let end = self.end();
        let Some(mut top) = self.own.top.filter(|top| *top < end) else { return end };
        // It may have been folded since.
        top.row = top.row.min(self.rows(top.block).len().saturating_sub(1));
        top
    }

    fn go(&mut self, spot: Spot) {
        self.own.top = (spot < self.end()).then_some(spot);
    }

    /// Marks the block before or after and gives the row to begin with, so that it can be seen.
    fn go_block(&mut self, top: Spot, forward: bool) -> Spot {
        let at = self.own.at.unwrap_or(top.block);
        let last = self.blocks.len().saturating_sub(1);
        let at = if forward { (at + 1).min(last) } else { at.saturating_sub(1) };
        self.own.at = Some(at);
        let start = Spot { block: at, row: 0 };
        let bottom = self.below(top, self.page.saturating_sub(1));
        if start >= top && start < bottom { top } else { start }
    }

    /// Goes to the next row that has what is searched for, round and round. Blocks that do not have it are not
    /// even drawn; one that has it folded away is unfolded.
    fn find(&mut self, forward: bool) {
        let wanted = self.own.query.to_lowercase();
        let count = self.blocks.len();
        if wanted.is_empty() || count == 0 {
            return;
        }
        let top = self.top();
        let from = self.own.found.unwrap_or(top);
        // The block it begins in comes first, as far as it lies ahead, and once more at the end.
        let mut order: Vec<usize> = match forward {
            true => (from.block..count).chain(0..from.block).collect(),
            false => {
                (0..=from.block.min(count - 1)).rev().chain((from.block..count).rev()).collect()
            }
        };
        order.push(from.block.min(count - 1));
        let first_time = self.own.found.is_none();
        for (n, block) in order.into_iter().enumerate() {
            if !self.blocks[block].text().to_lowercase().contains(&wanted) {
                continue;
            }
            let ahead = |row: usize| match (n == 0 && block == from.block, forward) {
                (false, _) => true,
                (true, true) => row > from.row || (first_time && row == from.row),
                (true, false) => row < from.row,
            };
            if let Some(row) = self.row_with(block, &wanted, forward, &ahead) {
                let spot = Spot { block, row };
                (self.own.found, self.own.at, self.own.nowhere) = (Some(spot), None, false);
                let bottom = self.below(top, self.page.saturating_sub(1));
                if spot < top || spot >= bottom {
                    // Some rows above it, to know where one is.
                    let shown = self.above(spot, self.page / 3);
                    self.go(shown);
                }
                return;
            }
        }
        self.own.nowhere = true;
    }

    fn row_with(
        &mut self,
        block: usize,
        wanted: &str,
        forward: bool,
        ahead: &dyn Fn(usize) -> bool,
    ) -> Option<usize> {
        let has = |line: &Line| line.text().to_lowercase().contains(wanted);
        if !self.rows(block).iter().any(has) {
            self.own.turn(block);
            if !self.rows(block).iter().any(has) {
                // Broken over two rows, or it never is drawn: the block is as near as one gets.
                self.own.turn(block);
                return ahead(0).then_some(0);
            }
        }
        let mut fitting = self.rows(block).iter().enumerate().filter(|(_, line)| has(line));
        let mut fitting: Vec<usize> = fitting.by_ref().map(|(n, _)| n).collect();
        fitting.retain(|row| ahead(*row));
        if forward { fitting.first().copied() } else { fitting.last().copied() }
    }

    fn draw(&mut self, whose: &str) -> (Vec<Line>, Option<(usize, usize)>) {
        self.refresh();
        let (top, page, columns) = (self.top(), self.page, self.view.columns);
        let wanted = self.own.query.to_lowercase();
        let mut lines: Vec<Line> = Vec::new();
        let mut spot = top;
        while lines.len() < page && spot.block < self.blocks.len() {
            let (at, found) = (self.own.at, self.own.found);
            let marked = at == Some(spot.block);
            for (n, row) in self.rows(spot.block).iter().enumerate().skip(spot.row) {
                let here = found == Some(Spot { block: spot.block, row: n });
                let mut line = with_marks(row, &wanted, here);
                if marked && n == 0 {
                    line.spans.iter_mut().for_each(|span| span.style.reverse = true);
                }
                lines.push(line);
            }
            spot = Spot { block: spot.block + 1, row: 0 };
        }
        lines.truncate(page);
        lines.resize(page, Line::empty());
        let mut cursor = None;
        let theme = self.view.theme;
        let foot = match &self.own.search {
            Some(search) => {
                cursor = Some((page, (1 + width::of(search.before_cursor())).min(columns)));
                Line::plain(format!("/{}", search.text()))
            }
            None if self.own.nowhere => {
                let text = format!("\"{}\" is nowhere in this conversation", self.own.query);
                Line::styled(width::flat(&text), Style::fg(theme.warning))
            }
            None => {
                let fold = if self.own.unfolded { "o fold all" } else { "o unfold all" };
                let n = if self.own.query.is_empty() { "" } else { " · n next" };
                let text = format!(
                    "{whose}{}/{} · q close · / search{n} · [ ] blocks · enter unfold · {fold}",
                    spot.block.min(self.blocks.len()),
                    self.blocks.len()
                );
                Line::styled(text, Style::fg(theme.primary))
            }
        };
        lines.push(foot);
        (lines.iter().map(|line| width::cut_line(line, columns)).collect(), cursor)
    }
}

/// A row in which what is searched for can be seen: where one has gone to, reversed.
fn with_marks(line: &Line, wanted: &str, here: bool) -> Line {
    let text = line.text();
    let lower = text.to_lowercase();
    // Some letters are longer when they are small: places in one are none in the other then.
    if wanted.is_empty() || lower.len() != text.len() {
        return line.clone();
    }
    let hits: Vec<(usize, usize)> =
        lower.match_indices(wanted).map(|(at, hit)| (at, at + hit.len())).collect();
    if hits.is_empty() {
        return line.clone();
    }
    let mut out = Line::empty();
    let mut at = 0;
    for span in &line.spans {
        for c in span.text.chars() {
            let mut style = span.style;
            if hits.iter().any(|(from, to)| (*from..*to).contains(&at)) {
                (style.underline, style.reverse) = (true, here);
            }
            out.push(c.to_string(), style);
            at += c.len_utf8();
        }
    }
    out
}
