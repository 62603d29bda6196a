//! Vim's keys for the prompt: normal and insert mode, motions, operators, counts. Knows an editor and
//! no interface.

use crate::editor::Editor;
use crate::key::{Code, Key};

/// Nobody means more.
const COUNT_CAP: usize = 999;

#[derive(Debug, Default)]
pub struct Vim {
    on: bool,
    normal: bool,
    count: usize,
    operator: Option<char>,
    /// A key that another one has to follow: `g`, `r`.
    pending: Option<char>,
    register: String,
}

/// What became of a key.
#[derive(Debug, PartialEq, Eq)]
pub enum Did {
    /// It is not ours.
    Nothing,
    Taken,
    /// Beyond the first and the last row are other prompts.
    Older,
    Newer,
}

/// Where a motion leads, and whether an operator takes whole lines or the last character too.
struct Motion {
    to: usize,
    lines: bool,
    inclusive: bool,
}

impl Vim {
    pub fn new(on: bool) -> Self {
        Self { on, ..Self::default() }
    }

    pub fn is_on(&self) -> bool {
        self.on
    }

    pub fn word(&self) -> Option<&'static str> {
        self.on.then_some(if self.normal { "normal" } else { "insert" })
    }

    pub fn key(&mut self, key: Key, editor: &mut Editor, columns: usize) -> Did {
        if !self.normal {
            if key != Key::plain(Code::Escape) {
                return Did::Nothing;
            }
            self.normal = true;
            let start = line_start(editor.text(), editor.cursor());
            if editor.cursor() > start {
                editor.left();
            }
            return Did::Taken;
        }
        if key == Key::ctrl('r') {
            (0..self.take_count()).for_each(|_| editor.redo());
            return Did::Taken;
        }
        let c = match key.code {
            Code::Char(c) if !key.ctrl && !key.alt => c,
            Code::Escape if self.is_waiting() => {
                self.forget();
                return Did::Taken;
            }
            Code::Backspace => 'h',
            Code::Left => 'h',
            Code::Right => 'l',
            Code::Up => 'k',
            Code::Down => 'j',
            Code::Home => '0',
            Code::End => '$',
            Code::Delete => 'x',
            _ => return Did::Nothing,
        };
        let did = self.normal_key(c, editor, columns);
        if self.normal {
            stay_on_text(editor);
        }
        did
    }

    fn is_waiting(&self) -> bool {
        self.count > 0 || self.operator.is_some() || self.pending.is_some()
    }

    fn forget(&mut self) {
        (self.count, self.operator, self.pending) = (0, None, None);
    }

    fn take_count(&mut self) -> usize {
        std::mem::take(&mut self.count).max(1)
    }

    fn insert(&mut self) {
        self.normal = false;
        self.forget();
    }

    fn normal_key(&mut self, c: char, editor: &mut Editor, columns: usize) -> Did {
        if let Some(digit) = c.to_digit(10).filter(|d| *d > 0 || self.count > 0)
            && self.pending.is_none()
        {
            self.count = (self.count * 10 + digit as usize).min(COUNT_CAP);
            return Did::Taken;
        }
        match (self.pending.take(), c) {
            (Some('r'), c) => {
                let at = editor.cursor();
                let count = self.take_count();
                for n in 0..count {
                    let at = editor.cursor();
                    let end = editor.right_of(at);
                    if editor.text()[at..end].is_empty() || editor.text()[at..end] == *"\n" {
                        break;
                    }
                    editor.cut(at, end);
                    editor.insert_text(&c.to_string());
                    if n + 1 == count {
                        editor.go_to(at);
                    }
                }
                if count == 1 {
                    editor.go_to(at);
                }
                return Did::Taken;
            }
            (Some('g'), 'g') => {
                return self.go(Motion { to: 0, lines: true, inclusive: false }, editor);
            }
            (Some(_), _) => {
                self.forget();
                return Did::Taken;
            }
            (None, 'g' | 'r') => {
                self.pending = Some(c);
                return Did::Taken;
            }
            (None, _) => {}
        }
        if let Some(motion) = self.motion(c, editor) {
            return self.go(motion, editor);
        }
        match (self.operator, c) {
            (None, 'd' | 'c' | 'y') => self.operator = Some(c),
            (Some(own), _) if own == c => self.on_lines(own, editor),
            (Some(_), _) => self.forget(),
            (None, 'j' | 'k') => return self.rows(c == 'j', editor, columns),
            (None, _) => self.command(c, editor),
        }
        Did::Taken
    }

    fn rows(&mut self, down: bool, editor: &mut Editor, columns: usize) -> Did {
        for n in 0..self.take_count() {
            let moved = if down { editor.down(columns) } else { editor.up(columns) };
            if !moved {
                return match (n, down) {
                    (0, true) => Did::Newer,
                    (0, false) => Did::Older,
                    _ => Did::Taken,
                };
            }
        }
        Did::Taken
    }

    fn motion(&self, c: char, editor: &Editor) -> Option<Motion> {
        let (text, at, count) = (editor.text(), editor.cursor(), self.count.max(1));
        let repeat = |step: &dyn Fn(usize) -> usize| (0..count).fold(at, |at, _| step(at));
        let (start, end) = (line_start(text, at), line_end(text, at));
        let motion = |to, inclusive| Some(Motion { to, lines: false, inclusive });
        match c {
            'h' => motion(repeat(&|at| editor.left_of(at).max(start)), false),
            'l' | ' ' => motion(repeat(&|at| editor.right_of(at).min(end)), false),
            // Changing a word leaves the space behind it.
            'w' if self.operator == Some('c') && !at_space(text, at) => {
                motion(repeat(&|at| word_end(text, at)), true)
            }
            'w' => {
                let to = repeat(&|at| word_next(text, at));
                // The last word of a line ends with the line.
                let to =
                    if self.operator.is_some() && count == 1 { to.min(end.max(at)) } else { to };
                motion(to, false)
            }
            'b' => motion(repeat(&|at| word_back(text, at)), false),
            'e' => motion(repeat(&|at| word_end(text, at)), true),
            '0' => motion(start, false),
            '^' => {
                let line = &text[start..end];
                motion(start + (line.len() - line.trim_start().len()), false)
            }
            '$' => motion(end, false),
            'G' => Some(Motion { to: text.len(), lines: true, inclusive: false }),
            'j' | 'k' if self.operator.is_some() => {
                let step = |at: usize| match c {
                    'j' => (line_end(text, at) + 1).min(text.len()),
                    _ => line_start(text, at).saturating_sub(1),
                };
                Some(Motion { to: repeat(&step), lines: true, inclusive: false })
            }
            _ => None,
        }
    }

    fn go(&mut self, motion: Motion, editor: &mut Editor) -> Did {
        let operator = self.operator.take();
        self.forget();
        let Some(operator) = operator else {
            editor.go_to(motion.to);
            return Did::Taken;
        };
        let at = editor.cursor();
        let (mut from, mut to) = (at.min(motion.to), at.max(motion.to));
        if motion.inclusive {
            to = editor.right_of(to);
        }
        if motion.lines {
            (from, to) = (line_start(editor.text(), from), line_end(editor.text(), to));
            self.take_lines(operator, from, to, editor);
        } else {
            self.take(operator, from, to, editor);
        }
        Did::Taken
    }

    fn take(&mut self, operator: char, from: usize, to: usize, editor: &mut Editor) {
        self.register = editor.text()[from..to].to_owned();
        if operator == 'y' {
            return editor.go_to(from);
        }
        editor.cut(from, to);
        if operator == 'c' {
            self.insert();
        }
    }

    /// `dd`, `yy`, `cc`, with a count.
    fn on_lines(&mut self, operator: char, editor: &mut Editor) {
        let count = self.take_count();
        self.operator = None;
        let from = line_start(editor.text(), editor.cursor());
        let mut to = line_end(editor.text(), from);
        for _ in 1..count {
            if to < editor.text().len() {
                to = line_end(editor.text(), to + 1);
            }
        }
        self.take_lines(operator, from, to, editor);
    }

    fn take_lines(&mut self, operator: char, from: usize, to: usize, editor: &mut Editor) {
        self.register = format!("{}\n", &editor.text()[from..to]);
        match operator {
            'y' => {}
            'c' => {
                editor.cut(from, to);
                editor.go_to(from);
                self.insert();
            }
            _ => {
                // With the line goes its break, or the one before it.
                let (from, to) = match to < editor.text().len() {
                    true => (from, to + 1),
                    false => (from.saturating_sub(1), to),
                };
                editor.cut(from, to);
                editor.go_to(line_start(editor.text(), from));
            }
        }
    }

    fn command(&mut self, c: char, editor: &mut Editor) {
        let at = editor.cursor();
        let (start, end) = (line_start(editor.text(), at), line_end(editor.text(), at));
        match c {
            'i' => self.insert(),
            'I' => {
                editor.go_to(start);
                self.insert();
            }
            'a' => {
                editor.go_to(editor.right_of(at).min(end));
                self.insert();
            }
            'A' => {
                editor.go_to(end);
                self.insert();
            }
            'o' => {
                editor.go_to(end);
                editor.insert('\n');
                self.insert();
            }
            'O' => {
                editor.go_to(start);
                editor.insert('\n');
                editor.go_to(start);
                self.insert();
            }
            'x' => {
                let to = (0..self.take_count()).fold(at, |to, _| editor.right_of(to).min(end));
                self.take('d', at, to, editor);
            }
            'X' => {
                let from = (0..self.take_count()).fold(at, |to, _| editor.left_of(to).max(start));
                self.take('d', from, at, editor);
            }
            's' => self.take('c', at, editor.right_of(at).min(end), editor),
            'D' => self.take('d', at, end, editor),
            'C' => self.take('c', at, end, editor),
            'Y' => self.on_lines('y', editor),
            'S' => self.on_lines('c', editor),
            'p' | 'P' => self.put(c == 'p', editor),
            'u' => (0..self.take_count()).for_each(|_| editor.undo()),
            // What a prompt may begin with is written at once.
            '/' | '!' | '@' if editor.is_empty() => {
                self.insert();
                editor.insert(c);
            }
            _ => self.forget(),
        }
        self.count = 0;
    }

    fn put(&mut self, behind: bool, editor: &mut Editor) {
        let count = self.take_count();
        let text = self.register.repeat(count);
        let at = editor.cursor();
        let (start, end) = (line_start(editor.text(), at), line_end(editor.text(), at));
        match (text.strip_suffix('\n'), behind) {
            (Some(lines), true) => {
                editor.go_to(end);
                editor.insert_text(&format!("\n{lines}"));
                editor.go_to(end + 1);
            }
            (Some(_), false) => {
                editor.go_to(start);
                editor.insert_text(&text);
                editor.go_to(start);
            }
            (None, _) => {
                if behind {
                    editor.go_to(editor.right_of(at).min(end));
                }
                editor.insert_text(&text);
                editor.left();
            }
        }
    }
}

/// In normal mode the cursor stands on a character and not behind the last.
fn stay_on_text(editor: &mut Editor) {
    let at = editor.cursor();
    let (start, end) = (line_start(editor.text(), at), line_end(editor.text(), at));
    if at == end && at > start {
        editor.go_to(editor.left_of(at));
    }
}

fn line_start(text: &str, at: usize) -> usize {
    text[..at].rfind('\n').map_or(0, |n| n + 1)
}

fn line_end(text: &str, at: usize) -> usize {
    text[at..].find('\n').map_or(text.len(), |n| at + n)
}

/// Words, punctuation, and what stands between them.
fn class(c: char) -> u8 {
    match c {
        c if c.is_whitespace() => 0,
        c if c.is_alphanumeric() || c == '_' => 1,
        _ => 2,
    }
}

fn at_space(text: &str, at: usize) -> bool {
    text[at..].chars().next().is_none_or(char::is_whitespace)
}

fn word_next(text: &str, at: usize) -> usize {
    let rest = &text[at..];
    let Some(first) = rest.chars().next() else { return at };
    let own = class(first);
    let behind = rest.trim_start_matches(|c| own != 0 && class(c) == own);
    text.len() - behind.trim_start().len()
}

fn word_back(text: &str, at: usize) -> usize {
    let before = text[..at].trim_end();
    let Some(last) = before.chars().next_back() else { return 0 };
    before.trim_end_matches(|c| class(c) == class(last)).len()
}

/// The last character of the word that one is in, or of the next.
fn word_end(text: &str, at: usize) -> usize {
    let skip = text[at..].chars().next().map_or(0, char::len_utf8);
    let rest = text[at + skip..].trim_start();
    let Some(first) = rest.chars().next() else { return last_char(text) };
    let behind = rest.trim_start_matches(|c| class(c) == class(first));
    let end = text.len() - behind.len();
    end - text[..end].chars().next_back().map_or(0, char::len_utf8)
}

fn last_char(text: &str) -> usize {
    text.len() - text.chars().next_back().map_or(0, char::len_utf8)
}

#[cfg(test)]
#[path = "vim_tests.rs"]
mod tests;
