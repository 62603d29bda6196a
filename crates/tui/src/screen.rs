//! What stands on the terminal, and the fewest bytes that make it what it should be.
//!
//! The live area is the last rows of the output. Lines that are finished are written where its top
//! was and never touched again; the rest of the rows are compared with what stands there already.
//! Nothing is ever asked of the terminal, and no scroll regions are used: multiplexers lose what
//! scrolls out of those.

use std::collections::VecDeque;

use crate::style::{Color, Depth, Line, Placed, Style, change};
use crate::width;

const BEGIN: &str = "\x1b[?2026h";
const END: &str = "\x1b[?2026l";

pub struct Screen {
    depth: Depth,
    /// The terminal's width, and the one that it had when the rows were written.
    columns: usize,
    written: usize,
    /// The terminal's height; nothing, where nobody has said it.
    height: usize,
    /// The rows of the live area as they stand there.
    rows: Vec<Line>,
    /// Where the cursor is, counted from the live area's first row.
    row: usize,
    column: usize,
    hidden: bool,
    /// What came before the live area is not as it was: everything is written anew.
    stale: bool,
    /// Line feeds so far: from the terminal's height on, the last row is the terminal's last.
    fed: usize,
    /// Blank rows on top of the live area, which hold it where it is until something needs them.
    pad: usize,
    held: bool,
    /// The last rows that were written for good.
    past: VecDeque<Line>,
}

impl Screen {
    pub fn new(depth: Depth, columns: usize) -> Self {
        Self {
            depth,
            columns,
            written: columns,
            height: 0,
            rows: Vec::new(),
            row: 0,
            column: 0,
            hidden: false,
            stale: false,
            fed: 0,
            pad: 0,
            held: false,
            past: VecDeque::new(),
        }
    }

    /// The terminal has another width.
    pub fn resize(&mut self, columns: usize) {
        if columns != self.columns {
            self.columns = columns;
            self.stale = true;
        }
    }

    /// Rows can be moved by the terminal itself where its height is known.
    pub fn set_height(&mut self, rows: usize) {
        if rows > self.height {
            // Where the last row is now, only the terminal knows.
            self.fed = 0;
        }
        self.height = rows;
    }

    /// The next picture may have fewer rows and ends in the same one, if that is the terminal's last:
    /// what is left free is above it, where the next finished rows come, and not below.
    pub fn hold(&mut self) {
        self.held = true;
    }

    /// Blank rows that the next picture begins with.
    fn padding(&mut self, rows: usize) -> usize {
        let held = std::mem::take(&mut self.held) && self.height > 0 && self.fed + 1 >= self.height;
        let free = if self.stale { 0 } else { self.rows.len().saturating_sub(rows) };
        self.pad = if held { free } else { self.pad.min(free) };
        self.pad
    }

    /// What makes the cursor be seen or not as it was, after another screen.
    pub fn cursor_again(&self) -> &'static str {
        if self.hidden { "\x1b[?25l" } else { "\x1b[?25h" }
    }

    /// A whole screen: what was written last and what waits to be, with `live` below it.
    pub fn covered(
        &self,
        waiting: Vec<Line>,
        live: Vec<Line>,
        cursor: Option<(usize, usize)>,
    ) -> (Vec<Line>, Option<(usize, usize)>) {
        let room = self.height.saturating_sub(live.len());
        let past = self.past.iter().cloned().chain(waiting);
        let mut rows: Vec<Line> = past.map(|line| width::cut_line(&line, self.columns)).collect();
        rows.drain(..rows.len().saturating_sub(room));
        let above = rows.len();
        rows.extend(live);
        (rows, cursor.map(|(row, column)| (row + above, column)))
    }

    fn remember(&mut self, finished: &[Line]) {
        let from = finished.len().saturating_sub(self.height);
        let plain = |line: &Line| Line { spans: line.spans.clone(), placed: None };
        self.past.extend(finished[from..].iter().map(plain));
        let over = self.past.len().saturating_sub(self.height);
        self.past.drain(..over);
    }

    /// The rows may no longer stand where they did: everything is written anew.
    pub fn distrust(&mut self) {
        self.stale = true;
    }

    /// Rows that are too long for a narrower terminal were folded by it; however often its size has
    /// changed since they were written, only the last one counts.
    fn unfold(&mut self) {
        let columns = self.columns.max(1);
        if columns < self.written {
            let folded = |line: &Line| line.width().div_ceil(columns).max(1);
            let above: usize = self.rows.iter().take(self.row).map(folded).sum();
            self.row = above + self.column / columns;
            self.column %= columns;
        }
    }

    /// Something else has written to the terminal: begin at the cursor, in a new row.
    pub fn forget(&mut self) {
        self.rows.clear();
        (self.row, self.column) = (0, 0);
        self.stale = false;
        self.hidden = false;
        (self.fed, self.pad) = (0, 0);
    }

    /// Writes `finished` for good and `live` below it. `cursor` is a row and a column of `live`.
    /// Nothing is returned where nothing changes.
    pub fn paint(
        &mut self,
        finished: &[Line],
        live: Vec<Line>,
        cursor: Option<(usize, usize)>,
    ) -> Option<String> {
        let mut out = Writer::new(self.depth, self.columns);
        let pad = self.padding(finished.len() + live.len());
        let mut live = live;
        live.splice(0..0, std::iter::repeat_n(Line::empty(), pad));
        let cursor = cursor.map(|(row, column)| (row + pad, column));
        self.remember(finished);
        if self.stale {
            self.unfold();
        }
        self.written = self.columns;
        let mut place = (self.row, self.column);
        let mut old = std::mem::take(&mut self.rows);
        if !self.stale {
            let new: Vec<&Line> = finished.iter().chain(&live).collect();
            let before = old.len();
            shift(&mut out, &mut place, &mut old, &new, self.height);
            self.fed += old.len().saturating_sub(before);
        }
        let mut exists = old.len().max(1);
        if self.stale {
            let rows = exists.max(place.0 + 1);
            out.go(&mut place, (0, 0), rows);
            out.clear("\x1b[J");
            exists = 1;
        }
        let empty = Line::empty();
        let stood = |row: usize| if self.stale { &empty } else { old.get(row).unwrap_or(&empty) };
        let total = finished.len() + live.len();
        let mut fed = 0;
        let mut placed: Option<(usize, &Placed)> = None;
        for (row, line) in finished.iter().chain(&live).enumerate() {
            // A row below it is there: nothing moves when it is drawn.
            if let Some((first, art)) = placed.take_if(|(first, art)| row > *first + art.art.rows) {
                out.art(&mut place, first, art, exists, self.height);
            }
            // All of its rows are for good, or it would lie over some that are not.
            let whole = |own: &&Placed| row + own.art.rows <= finished.len();
            if let Some(own) = line.placed.as_ref().filter(whole) {
                placed = Some((row, own));
            }
            let before = stood(row);
            if row < exists && line == before {
                continue;
            }
            while exists <= row {
                let column = place.1;
                out.go(&mut place, (exists - 1, column), exists);
                out.clear("\r\n");
                place = (exists, 0);
                exists += 1;
                fed += 1;
            }
            out.row(&mut place, row, before, line, exists);
        }
        if let Some((first, art)) = placed {
            out.art(&mut place, first, art, exists, self.height);
        }
        self.fed += fed;
        if total.max(1) < old.len() && !self.stale {
            out.go(&mut place, (total.max(1), 0), exists);
            out.clear("\x1b[J");
        }
        self.stale = false;
        let moved = !out.text.is_empty();
        if let Some((row, column)) = cursor {
            let target = (finished.len() + row, column);
            out.go(&mut place, target, exists.max(total));
        } else if place.0 < finished.len() && !live.is_empty() {
            // From here on places are counted from the live area's first row.
            out.go(&mut place, (finished.len(), 0), exists.max(total));
        }
        out.style(Style::default());
        let hide = cursor.is_none();
        let mut text = out.text;
        if moved && !hide && !self.hidden {
            text = format!("\x1b[?25l{text}\x1b[?25h");
        }
        if hide != self.hidden {
            text.push_str(if hide { "\x1b[?25l" } else { "\x1b[?25h" });
            self.hidden = hide;
        }
        self.rows = live;
        self.row = place.0.saturating_sub(finished.len());
        self.column = place.1;
        (!text.is_empty()).then(|| format!("{BEGIN}{text}{END}"))
    }

    /// Leaves the live area behind, with the cursor below it.
    pub fn leave(&mut self) -> String {
        let mut out = Writer::new(self.depth, self.columns);
        let last = self.rows.len().saturating_sub(1);
        let mut place = (self.row, self.column);
        out.go(&mut place, (last, 0), self.rows.len());
        out.text.push_str("\r\n\x1b[?25h");
        self.forget();
        out.text
    }
}

/// What moving rows costs, about, in bytes: less is not worth it.
const SHIFT_COST: usize = 16;

/// Where rows came in or went in the middle, those below are moved by the terminal instead of being
/// written again. Line feeds at the end make room first, so that what leaves at the top goes into the
/// scrollback as ever, and what falls off at the bottom is blank.
fn shift(
    out: &mut Writer,
    place: &mut (usize, usize),
    old: &mut Vec<Line>,
    new: &[&Line],
    height: usize,
) {
    let (before, after) = (old.len(), new.len());
    if before == 0 || before == after || before.max(after) > height {
        return;
    }
    let count = before.abs_diff(after);
    let grows = after > before;
    // How many rows at the top stay; those below go down or up.
    let most = before.min(after);
    let top: Vec<usize> = (0..most).map(|n| difference(&old[n], new[n])).collect();
    let ends = |n: usize| difference(&old[before - 1 - n], new[after - 1 - n]);
    let bottom: Vec<usize> = (0..most).map(ends).collect();
    let unmoved: usize = top.iter().sum();
    let mut best = (unmoved, most);
    let (mut above, mut below) = (unmoved, 0);
    for keep in (0..most).rev() {
        above -= top[keep];
        below += bottom[most - 1 - keep];
        if above + below < best.0 {
            best = (above + below, keep);
        }
    }
    let (cost, keep) = best;
    // What is new has to be written either way, in place of something else or not.
    if keep == most || cost + SHIFT_COST >= unmoved {
        return;
    }
    if grows {
        out.go(place, (before - 1, place.1), before);
        out.clear(&"\n".repeat(count));
        place.0 += count;
        out.go(place, (keep, 0), after);
        out.clear(&format!("\r\x1b[{count}L"));
        let room = std::iter::repeat_n(Line::empty(), count);
        old.splice(keep..keep, room);
    } else {
        out.go(place, (keep, 0), before);
        out.clear(&format!("\r\x1b[{count}M"));
        old.drain(keep..keep + count);
    }
    *place = (keep, 0);
}

/// About how many cells have to be written to make one of the other.
fn difference(old: &Line, new: &Line) -> usize {
    if old == new {
        return 0;
    }
    let chars = |line: &Line| line.spans.iter().map(|s| s.text.len()).sum::<usize>();
    let same = old.spans.iter().zip(&new.spans).take_while(|(a, b)| a == b);
    let same: usize = same.map(|(a, _)| a.text.len()).sum();
    chars(new).max(chars(old)).saturating_sub(same).max(1)
}

struct Writer {
    text: String,
    style: Style,
    depth: Depth,
    columns: usize,
}

impl Writer {
    fn new(depth: Depth, columns: usize) -> Self {
        Self { text: String::new(), style: Style::default(), depth, columns }
    }

    /// The only way for text to the terminal. Lines hold nothing that it would obey; should one ever
    /// do, it ends here.
    fn put(&mut self, text: &str) {
        if text.chars().all(width::is_inert) {
            self.text.push_str(text);
        } else {
            let inert = |c| if width::is_inert(c) { c } else { width::INSTEAD };
            self.text.extend(text.chars().map(inert));
        }
    }

    fn style(&mut self, style: Style) {
        change(&mut self.text, self.style, style, self.depth);
        self.style = style;
    }

    /// What makes empty cells: many terminals fill them with the colour that is set.
    fn clear(&mut self, sequence: &str) {
        if self.style.bg != Color::Default {
            self.style(Style::default());
        }
        self.text.push_str(sequence);
    }

    /// A picture over rows that are blank there; left out where it no longer fits.
    fn art(
        &mut self,
        place: &mut (usize, usize),
        row: usize,
        placed: &Placed,
        exists: usize,
        height: usize,
    ) {
        let Placed { art, column } = placed;
        if column + art.columns > self.columns || exists < row + art.rows {
            return;
        }
        // Its first row must still be on the screen.
        if height > 0 && exists - row > height {
            return;
        }
        self.go(place, (row, *column), exists);
        self.style(Style::default());
        self.text.push_str("\x1b7");
        self.text.push_str(art.bytes());
        self.text.push_str("\x1b8");
    }

    /// Moves among rows that exist.
    fn go(&mut self, place: &mut (usize, usize), target: (usize, usize), exists: usize) {
        let target = (target.0.min(exists.saturating_sub(1)), target.1);
        let number = |n: usize| if n == 1 { String::new() } else { n.to_string() };
        if target.0 == place.0 + 1 && target.1 == 0 {
            self.text.push_str("\r\n");
            *place = target;
            return;
        }
        if target.0 > place.0 {
            self.text.push_str(&format!("\x1b[{}B", number(target.0 - place.0)));
        } else if target.0 < place.0 {
            self.text.push_str(&format!("\x1b[{}A", number(place.0 - target.0)));
        }
        if target.1 == 0 && place.1 != 0 {
            self.text.push('\r');
        } else if target.1 != place.1 {
            self.text.push_str(&format!("\x1b[{}G", target.1 + 1));
        }
        *place = target;
    }

    /// Makes `line` of what stands in a row.
    fn row(
        &mut self,
        place: &mut (usize, usize),
        row: usize,
        before: &Line,
        line: &Line,
        exists: usize,
    ) {
        let certain = |l: &Line| l.spans.iter().all(|s| width::is_certain(&s.text));
        let (old_width, new_width) = (before.width(), line.width());
        if !(certain(before) && certain(line)) {
            self.go(place, (row, 0), exists);
            // Terminals differ about such characters: what stood there goes first.
            if old_width > 0 {
                self.style(Style::default());
                self.text.push_str("\x1b[K");
            }
            // Some draw one character where others draw several: such a row must not run into the next.
            let widest: usize = line.spans.iter().map(|s| width::at_most(&s.text)).sum();
            let held = widest > self.columns;
            if held {
                self.text.push_str("\x1b[?7l");
            }
            for span in &line.spans {
                self.style(span.style);
                self.put(&span.text);
            }
            if held {
                self.text.push_str("\x1b[?7h");
            }
            // Where the cursor is now depends on the terminal; the next move must say a column.
            self.text.push('\r');
            place.1 = 0;
            return;
        }
        let (old, new) = (cells(before), cells(line));
        let same = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
        let mut end = new.len();
        if old.len() == new.len() {
            while end > same && old[end - 1] == new[end - 1] {
                end -= 1;
            }
        }
        // Blanks at the end are what a cleared row has.
        self.go(place, (row, same), exists);
        for (c, style) in &new[same..end] {
            self.style(*style);
            self.text.push(if width::is_inert(*c) { *c } else { width::INSTEAD });
        }
        place.1 = end;
        if old_width > new_width {
            self.style(Style::default());
            self.text.push_str("\x1b[K");
        }
    }
}

fn cells(line: &Line) -> Vec<(char, Style)> {
    line.spans.iter().flat_map(|s| s.text.chars().map(|c| (c, s.style))).collect()
}

#[cfg(test)]
#[path = "screen_tests.rs"]
mod tests;
