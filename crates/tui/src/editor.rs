//! The text that is being written: moves by what people see as one character, remembers what it was,
//! and shows long pastes as one word.

use unicode_segmentation::UnicodeSegmentation;

use crate::width;

/// Steps back that are remembered.
const UNDO_CAP: usize = 200;
/// A paste of more lines or characters than this is shown as one word.
const FOLD_LINES: usize = 4;
const FOLD_CHARS: usize = 600;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct State {
    text: String,
    cursor: usize,
}

#[derive(Debug, Default)]
pub struct Editor {
    now: State,
    undo: Vec<State>,
    redo: Vec<State>,
    /// What kind of change the newest is: typing goes into one step.
    last: Change,
    killed: String,
    pastes: Vec<(String, String)>,
    /// The column that up and down keep to.
    wish: Option<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Change {
    #[default]
    None,
    Type,
    Kill,
    Other,
}

/// The text in rows, with the cursor's place among them.
#[derive(Debug, PartialEq, Eq)]
pub struct Layout {
    pub rows: Vec<String>,
    pub row: usize,
    pub column: usize,
}

impl Editor {
    pub fn text(&self) -> &str {
        &self.now.text
    }

    pub fn is_empty(&self) -> bool {
        self.now.text.is_empty()
    }

    /// The text with the pastes in full.
    pub fn whole(&self) -> String {
        let mut text = self.now.text.clone();
        for (word, paste) in &self.pastes {
            text = text.replace(word, paste);
        }
        text
    }

    pub fn before_cursor(&self) -> &str {
        &self.now.text[..self.now.cursor]
    }

    pub fn cursor(&self) -> usize {
        self.now.cursor
    }

    /// Puts the cursor there; not inside of a character.
    pub fn go_to(&mut self, at: usize) {
        let mut at = at.min(self.now.text.len());
        while !self.now.text.is_char_boundary(at) {
            at -= 1;
        }
        self.go(at);
        self.settle();
    }

    /// Takes a part out; can be undone.
    pub fn cut(&mut self, from: usize, to: usize) -> String {
        let to = to.min(self.now.text.len());
        let whole = |at: usize| self.now.text.is_char_boundary(at);
        if from >= to || !whole(from) || !whole(to) {
            return String::new();
        }
        let text = self.now.text[from..to].to_owned();
        self.delete(from, to, Change::Other);
        text
    }

    /// Replaces everything; can be undone.
    pub fn set(&mut self, text: &str) {
        self.keep(Change::Other);
        self.now.text = clean(text);
        self.now.cursor = self.now.text.len();
    }

    /// Takes the whole text out and forgets how it came to be.
    pub fn take(&mut self) -> String {
        let text = self.whole();
        let killed = std::mem::take(&mut self.killed);
        *self = Self { killed, ..Self::default() };
        text
    }

    /// Replaces what stands between `from` and the cursor.
    pub fn complete(&mut self, from: usize, text: &str) {
        self.keep(Change::Other);
        let (from, text) = (from.min(self.now.cursor), clean(text));
        // Whoever remembers a place may remember one of another text.
        if !self.now.text.is_char_boundary(from) {
            return;
        }
        self.now.text.replace_range(from..self.now.cursor, &text);
        self.now.cursor = from + text.len();
    }

    pub fn insert(&mut self, c: char) {
        let change = if c.is_whitespace() { Change::Other } else { Change::Type };
        self.keep(change);
        self.now.text.insert(self.now.cursor, c);
        self.now.cursor += c.len_utf8();
        self.settle();
    }

    pub fn insert_text(&mut self, text: &str) {
        self.keep(Change::Other);
        let text = clean(text);
        self.now.text.insert_str(self.now.cursor, &text);
        self.now.cursor += text.len();
        self.settle();
    }

    /// A paste: as it is, or as one word that stands for it.
    pub fn paste(&mut self, text: &str) {
        let text = clean(text);
        let lines = text.lines().count();
        if lines <= FOLD_LINES && text.chars().count() <= FOLD_CHARS {
            return self.insert_text(&text);
        }
        let number = self.pastes.len() + 1;
        let word = format!("[Paste {number}: {lines} lines]");
        self.keep(Change::Other);
        self.now.text.insert_str(self.now.cursor, &word);
        self.now.cursor += word.len();
        self.pastes.push((word, text));
    }

    pub fn undo(&mut self) {
        if let Some(state) = self.undo.pop() {
            self.redo.push(std::mem::replace(&mut self.now, state));
            self.last = Change::None;
        }
    }

    pub fn redo(&mut self) {
        if let Some(state) = self.redo.pop() {
            self.undo.push(std::mem::replace(&mut self.now, state));
            self.last = Change::None;
        }
    }

    pub fn backspace(&mut self) {
        let from = self.left_of(self.now.cursor);
        self.delete(from, self.now.cursor, Change::Other);
    }

    pub fn delete_forward(&mut self) {
        let to = self.right_of(self.now.cursor);
        self.delete(self.now.cursor, to, Change::Other);
    }

    pub fn kill_word_back(&mut self) {
        let from = self.word_left();
        self.kill(from, self.now.cursor, true);
    }

    pub fn kill_word_forward(&mut self) {
        let to = self.word_right();
        self.kill(self.now.cursor, to, false);
    }

    pub fn kill_to_start(&mut self) {
        let start = self.line_start();
        let from = if start == self.now.cursor { start.saturating_sub(1) } else { start };
        self.kill(from, self.now.cursor, true);
    }

    pub fn kill_to_end(&mut self) {
        let end = self.line_end();
        let to = if end == self.now.cursor { (end + 1).min(self.now.text.len()) } else { end };
        self.kill(self.now.cursor, to, false);
    }

    pub fn yank(&mut self) {
        let text = self.killed.clone();
        self.insert_text(&text);
    }

    /// Swaps the two characters around the cursor.
    pub fn transpose(&mut self) {
        let cursor = match self.now.cursor == self.now.text.len() {
            true => self.left_of(self.now.cursor),
            false => self.now.cursor,
        };
        let (left, right) = (self.left_of(cursor), self.right_of(cursor));
        if left == cursor || right == cursor {
            return;
        }
        self.keep(Change::Other);
        let swapped = format!("{}{}", &self.now.text[cursor..right], &self.now.text[left..cursor]);
        self.now.text.replace_range(left..right, &swapped);
        self.now.cursor = right;
        self.settle();
    }

    pub fn left(&mut self) {
        self.go(self.left_of(self.now.cursor));
    }

    pub fn right(&mut self) {
        self.go(self.right_of(self.now.cursor));
    }

    pub fn go_word_left(&mut self) {
        self.go(self.word_left());
    }

    pub fn go_word_right(&mut self) {
        self.go(self.word_right());
    }

    pub fn go_line_start(&mut self) {
        self.go(self.line_start());
    }

    pub fn go_line_end(&mut self) {
        self.go(self.line_end());
    }

    pub fn go_start(&mut self) {
        self.go(0);
    }

    pub fn go_end(&mut self) {
        self.go(self.now.text.len());
    }

    /// One row up; not, if there is none.
    pub fn up(&mut self, columns: usize) -> bool {
        let layout = self.layout(columns);
        layout.row > 0 && self.go_row(columns, layout.row - 1, layout.column)
    }

    pub fn down(&mut self, columns: usize) -> bool {
        let layout = self.layout(columns);
        layout.row + 1 < layout.rows.len() && self.go_row(columns, layout.row + 1, layout.column)
    }

    pub fn layout(&self, columns: usize) -> Layout {
        let places = self.places(columns);
        let mut rows = Vec::with_capacity(places.len());
        let (mut row, mut column) = (0, 0);
        for (n, (from, to)) in places.iter().enumerate() {
            let text = &self.now.text[*from..*to];
            rows.push(text.to_owned());
            if *from <= self.now.cursor && self.now.cursor <= *to {
                (row, column) = (n, width::of(&self.now.text[*from..self.now.cursor]));
            }
        }
        Layout { rows, row, column }
    }

    /// From where to where each row goes.
    fn places(&self, columns: usize) -> Vec<(usize, usize)> {
        let columns = columns.max(2);
        let mut places = Vec::new();
        let mut at = 0;
        for line in self.now.text.split('\n') {
            let (mut from, mut used) = (at, 0);
            for (offset, part) in line.grapheme_indices(true) {
                let wide = width::grapheme(part);
                if used + wide > columns {
                    places.push((from, at + offset));
                    (from, used) = (at + offset, 0);
                }
                used += wide;
            }
            places.push((from, at + line.len()));
            at += line.len() + 1;
        }
        places
    }

    fn go_row(&mut self, columns: usize, row: usize, column: usize) -> bool {
        let places = self.places(columns);
        let Some((from, to)) = places.get(row).copied() else { return false };
        let wish = self.wish.unwrap_or(column);
        let mut used = 0;
        let mut at = from;
        for part in self.now.text[from..to].graphemes(true) {
            let wide = width::grapheme(part);
            if used + wide > wish {
                break;
            }
            used += wide;
            at += part.len();
        }
        self.go(at);
        self.wish = Some(wish);
        true
    }

    fn go(&mut self, cursor: usize) {
        self.now.cursor = cursor;
        self.last = Change::None;
        self.wish = None;
    }

    /// Remembers the state before a change.
    fn keep(&mut self, change: Change) {
        self.wish = None;
        let merges = change == Change::Type && self.last == Change::Type;
        self.last = change;
        self.redo.clear();
        if merges {
            return;
        }
        if self.undo.len() == UNDO_CAP {
            self.undo.remove(0);
        }
        self.undo.push(self.now.clone());
    }

    fn delete(&mut self, from: usize, to: usize, change: Change) {
        if from >= to {
            return;
        }
        self.keep(change);
        self.now.text.replace_range(from..to, "");
        self.now.cursor = from;
        self.settle();
    }

    fn kill(&mut self, from: usize, to: usize, back: bool) {
        if from >= to {
            return;
        }
        let text = self.now.text[from..to].to_owned();
        // Kills in a row are yanked together.
        self.killed = match (self.last == Change::Kill, back) {
            (true, true) => format!("{text}{}", self.killed),
            (true, false) => format!("{}{text}", self.killed),
            (false, _) => text,
        };
        self.delete(from, to, Change::Kill);
    }

    /// A change may have joined characters around the cursor.
    fn settle(&mut self) {
        let cursor = self.now.cursor;
        let inside = |(at, part): &(usize, &str)| *at < cursor && cursor < at + part.len();
        if self.now.text.is_ascii() {
            return;
        }
        if let Some((at, part)) = self.now.text.grapheme_indices(true).find(inside) {
            self.now.cursor = at + part.len();
        }
    }

    pub fn left_of(&self, at: usize) -> usize {
        let before = &self.now.text[..at];
        if let Some((word, _)) = self.pastes.iter().find(|(word, _)| before.ends_with(word)) {
            return at - word.len();
        }
        before.grapheme_indices(true).next_back().map_or(at, |(n, _)| n)
    }

    pub fn right_of(&self, at: usize) -> usize {
        let after = &self.now.text[at..];
        if let Some((word, _)) = self.pastes.iter().find(|(word, _)| after.starts_with(word)) {
            return at + word.len();
        }
        after.graphemes(true).next().map_or(at, |part| at + part.len())
    }

    fn word_left(&self) -> usize {
        let before = &self.now.text[..self.now.cursor];
        let end = before.trim_end_matches(|c: char| !is_word(c));
        let start = end.trim_end_matches(is_word);
        // A folded paste goes as a whole.
        match self.pastes.iter().find(|(word, _)| before.trim_end().ends_with(word)) {
            Some((word, _)) => before.trim_end().len() - word.len(),
            None => start.len(),
        }
    }

    fn word_right(&self) -> usize {
        let after = &self.now.text[self.now.cursor..];
        let word = after.trim_start_matches(|c: char| !is_word(c));
        let rest = word.trim_start_matches(is_word);
        self.now.text.len() - rest.len()
    }

    fn line_start(&self) -> usize {
        self.now.text[..self.now.cursor].rfind('\n').map_or(0, |n| n + 1)
    }

    fn line_end(&self) -> usize {
        let after = &self.now.text[self.now.cursor..];
        after.find('\n').map_or(self.now.text.len(), |n| self.now.cursor + n)
    }
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Text that can be shown as it is.
fn clean(text: &str) -> String {
    width::harmless(text).replace('\u{fffd}', "")
}

#[cfg(test)]
#[path = "editor_tests.rs"]
mod tests;
