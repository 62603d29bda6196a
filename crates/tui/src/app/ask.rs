//! Questions to the person: may this be done, and which of these is meant.

use std::cell::RefCell;

use toolwright::Answer;
use toolwright::permission::{Extent, Grant, Scope};
use toolwright::tool::{Inquiry, InquiryItem, Question};

use super::{App, Order};
use crate::diff;
use crate::editor::Editor;
use crate::highlight::Highlighter;
use crate::key::{Code, Key};
use crate::style::{Line, Style};
use crate::theme::Theme;
use crate::width::{self, harmless};

/// Rows of a preview that can be looked at.
const PREVIEW_ROWS: usize = 2_000;

pub(crate) struct Ask {
    id: u64,
    what: What,
    selected: usize,
    /// Words that are being written.
    words: Option<Editor>,
    /// The first row of the preview that is shown.
    top: usize,
    expanded: bool,
    /// The preview as it was drawn last: a long diff is not drawn for each turn of a spinner.
    drawn: RefCell<Option<Drawn>>,
}

struct Drawn {
    columns: usize,
    theme: String,
    rows: Vec<Line>,
}

enum What {
    Permission { question: Question, why: Option<String>, choices: Vec<Choice> },
    Inquiry { items: Vec<InquiryItem>, at: usize, replies: Vec<Vec<String>>, marked: Vec<bool> },
}

/// One way to answer. More of them (for this project, for ever) are more rows here.
struct Choice {
    key: char,
    label: String,
    give: Give,
}

#[derive(Clone, PartialEq)]
enum Give {
    Answer(Answer),
    /// No, with words.
    Words,
}

impl Ask {
    pub(crate) fn permission(id: u64, question: Question, why: Option<String>) -> Self {
        let mut scope: Vec<String> = Vec::new();
        for request in question.requests.iter().filter(|request| !request.advisory) {
            let text = match request.always.as_str() {
                "*" => format!("every {}", request.permission),
                always => format!("{} {always}", request.permission),
            };
            if !scope.contains(&text) {
                scope.push(text);
            }
        }
        let choice = |key, label: String, give| Choice { key, label, give };
        let choices = vec![
            choice('y', "Yes, once".to_owned(), Give::Answer(Answer::Once)),
            choice(
                'a',
                format!("Yes, always in this session: {}", width::flat(&scope.join(", "))),
                Give::Answer(Answer::always()),
            ),
            choice(
                'p',
                "Yes, just this, always in this project".to_owned(),
                Give::Answer(Answer::Always(Grant {
                    scope: Scope::Project,
                    extent: Some(Extent::Exact),
                    ..Grant::default()
                })),
            ),
            choice('n', "No".to_owned(), Give::Answer(Answer::Reject { message: None })),
            choice('w', "No, and say what to do instead".to_owned(), Give::Words),
        ];
        Self::new(id, What::Permission { question, why, choices })
    }

    pub(crate) fn inquiry(id: u64, inquiry: Inquiry) -> Self {
        let marked = vec![false; inquiry.items.first().map_or(0, |item| item.options.len())];
        let what = What::Inquiry { items: inquiry.items, at: 0, replies: Vec::new(), marked };
        Self::new(id, what)
    }

    fn new(id: u64, what: What) -> Self {
        Self {
            id,
            what,
            selected: 0,
            words: None,
            top: 0,
            expanded: false,
            drawn: RefCell::new(None),
        }
    }

    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    pub(crate) fn title(&self) -> String {
        match &self.what {
            What::Permission { question, .. } => harmless(&question.summary),
            What::Inquiry { items, at, .. } => {
                items.get(*at).map(|item| harmless(&item.question)).unwrap_or_default()
            }
        }
    }

    fn count(&self) -> usize {
        match &self.what {
            What::Permission { choices, .. } => choices.len(),
            What::Inquiry { items, at, .. } => {
                items.get(*at).map_or(0, |item| item.options.len() + usize::from(item.custom))
            }
        }
    }

    /// What a key does; an order where the question is answered.
    fn key(&mut self, key: Key) -> Option<Order> {
        if let Some(words) = &mut self.words {
            match key.code {
                Code::Escape => self.words = None,
                Code::Enter if !key.alt && !key.shift => {
                    let text = words.take();
                    self.words = None;
                    return self.said(text.trim());
                }
                _ => edit(words, key),
            }
            return None;
        }
        let count = self.count();
        match key.code {
            Code::Up => self.selected = self.selected.checked_sub(1).unwrap_or(count.max(1) - 1),
            Code::Down | Code::Tab => self.selected = (self.selected + 1) % count.max(1),
            Code::PageUp => self.top = self.top.saturating_sub(10),
            Code::PageDown => self.top = self.top.saturating_add(10).min(100_000),
            Code::Char('f') if key.ctrl => self.expanded = !self.expanded,
            Code::Enter => return self.choose(self.selected),
            Code::Escape => return Some(self.dismiss()),
            Code::Char('c') if key.ctrl => return Some(self.dismiss()),
            Code::Char(' ') => self.toggle(self.selected),
            Code::Char(c) if !key.ctrl && !key.alt => return self.letter(c),
            _ => {}
        }
        None
    }

    fn letter(&mut self, c: char) -> Option<Order> {
        match &self.what {
            What::Permission { choices, .. } => {
                let number = c.to_digit(10).and_then(|n| (n as usize).checked_sub(1));
                let at = choices
                    .iter()
                    .position(|choice| choice.key == c.to_ascii_lowercase())
                    .or(number.filter(|n| *n < choices.len()))?;
                self.choose(at)
            }
            What::Inquiry { .. } => {
                let at = (c.to_digit(10)? as usize).checked_sub(1)?;
                if at >= self.count() {
                    return None;
                }
                self.selected = at;
                if self.takes_several() {
                    self.toggle(at);
                    return None;
                }
                self.choose(at)
            }
        }
    }

    fn takes_several(&self) -> bool {
        match &self.what {
            What::Inquiry { items, at, .. } => items.get(*at).is_some_and(|item| item.multiple),
            What::Permission { .. } => false,
        }
    }

    fn toggle(&mut self, at: usize) {
        if let What::Inquiry { marked, .. } = &mut self.what
            && let Some(mark) = marked.get_mut(at)
        {
            *mark = !*mark;
        }
    }

    fn choose(&mut self, at: usize) -> Option<Order> {
        match &self.what {
            What::Permission { choices, .. } => match &choices.get(at)?.give {
                Give::Answer(answer) => Some(Order::Answer(self.id, answer.clone())),
                Give::Words => {
                    self.words = Some(Editor::default());
                    None
                }
            },
            What::Inquiry { items, at: item, marked, .. } => {
                let options = items.get(*item).map_or(&[][..], |item| item.options.as_slice());
                if at >= options.len() {
                    self.words = Some(Editor::default());
                    return None;
                }
                let several = self.takes_several() && marked.iter().any(|mark| *mark);
                let chosen = match several {
                    true => {
                        let both = options.iter().zip(marked);
                        both.filter(|(_, mark)| **mark).map(|(o, _)| o.label.clone()).collect()
                    }
                    false => vec![options[at].label.clone()],
                };
                self.reply(chosen)
            }
        }
    }

    fn said(&mut self, words: &str) -> Option<Order> {
        match &self.what {
            What::Permission { .. } => {
                let message = (!words.is_empty()).then(|| words.to_owned());
                Some(Order::Answer(self.id, Answer::Reject { message }))
            }
            What::Inquiry { .. } if words.is_empty() => None,
            What::Inquiry { .. } => self.reply(vec![words.to_owned()]),
        }
    }

    /// The next of several questions, or all answers.
    fn reply(&mut self, chosen: Vec<String>) -> Option<Order> {
        let What::Inquiry { items, at, replies, marked } = &mut self.what else { return None };
        replies.push(chosen);
        *at += 1;
        self.selected = 0;
        match items.get(*at) {
            Some(item) => {
                *marked = vec![false; item.options.len()];
                None
            }
            None => Some(Order::Reply(self.id, Some(std::mem::take(replies)))),
        }
    }

    fn dismiss(&self) -> Order {
        match self.what {
            What::Permission { .. } => Order::Answer(self.id, Answer::Reject { message: None }),
            What::Inquiry { .. } => Order::Reply(self.id, None),
        }
    }

    /// Its rows, at most `height` of them, and where the cursor stands while words are written.
    pub(crate) fn draw(
        &self,
        columns: usize,
        height: usize,
        behind: usize,
        theme: &Theme,
    ) -> (Vec<Line>, Option<(usize, usize)>) {
        let mark = Style::fg(theme.warning).bold();
        let mut head = Line::styled("? ", mark);
        head.push(
            width::cut(&width::flat(&self.title()), columns.saturating_sub(14)),
            Style::default().bold(),
        );
        if behind > 0 {
            head.push(format!(" (+{behind} more)"), theme.muted());
        }
        let below = self.choices(columns, theme);
        let words = self.words.as_ref().map(|words| words.layout(columns.saturating_sub(4)));
        let taken = 2 + below.len() + words.as_ref().map_or(0, |w| w.rows.len());
        let room = height.saturating_sub(taken).max(1);
        let mut lines = vec![head];
        lines.extend(self.body(columns, if self.expanded { room } else { room.min(16) }, theme));
        lines.extend(below);
        let mut cursor = None;
        if let Some(layout) = words {
            cursor = Some((lines.len() + layout.row, 4 + layout.column));
            for (n, row) in layout.rows.iter().enumerate() {
                let mark = if n == 0 { "  › " } else { "    " };
                lines
                    .push(Line::styled(mark, Style::fg(theme.primary)).with(row, Style::default()));
            }
        }
        (lines, cursor)
    }

    fn body(&self, columns: usize, room: usize, theme: &Theme) -> Vec<Line> {
        let muted = theme.muted();
        let mut lines = Vec::new();
        match &self.what {
            What::Permission { question, why, .. } => {
                let inner = columns.saturating_sub(2);
                let mut drawn = self.drawn.borrow_mut();
                let fits = |d: &Drawn| d.columns == inner && d.theme == theme.name;
                let drawn = match drawn.take().filter(fits) {
                    Some(drawn_before) => drawn.insert(drawn_before),
                    None => drawn.insert(Drawn {
                        columns: inner,
                        theme: theme.name.clone(),
                        rows: preview(question, inner, theme),
                    }),
                };
                let all = drawn.rows.len();
                let room = room.saturating_sub(usize::from(why.is_some())).max(1);
                let top = self.top.min(all.saturating_sub(room));
                let mut shown = drawn.rows[top..(top + room).min(all)].to_vec();
                if all > room {
                    let text = format!(
                        "rows {}–{} of {all} · pageup/pagedown · ctrl+f for more",
                        top + 1,
                        top + shown.len()
                    );
                    shown.pop();
                    shown.push(Line::styled(width::cut(&text, inner), muted));
                }
                lines = shown;
                if let Some(why) = why {
                    lines.push(Line::styled(width::cut(&width::flat(why), inner), muted));
                }
            }
            What::Inquiry { items, at, .. } => {
                if items.len() > 1 {
                    let text = format!("question {} of {}", at + 1, items.len());
                    lines.push(Line::styled(text, muted));
                }
                if let Some(item) = items.get(*at) {
                    let rows = harmless(&item.question);
                    if width::of(&rows) + 14 > columns || rows.contains('\n') {
                        for row in rows.lines() {
                            lines.extend(width::wrap(&Line::plain(row), columns - 2, 0));
                        }
                    }
                }
                lines.truncate(room);
            }
        }
        lines.into_iter().map(|line| Line::plain("  ").joined(line)).collect()
    }

    fn choices(&self, columns: usize, theme: &Theme) -> Vec<Line> {
        let mut lines = Vec::new();
        let mut row = |n: usize, label: String, about: String| {
            let on = n == self.selected && self.words.is_none();
            let mark = if on { "› " } else { "  " };
            let style = if on { Style::fg(theme.primary).bold() } else { Style::default() };
            let line = Line::styled(mark, style).with(label, style).with(about, theme.muted());
            lines.push(width::cut_line(&line, columns));
        };
        match &self.what {
            What::Permission { choices, .. } => {
                for (n, choice) in choices.iter().enumerate() {
                    row(n, format!("{} ", choice.key), choice.label.clone());
                }
            }
            What::Inquiry { items, at, marked, .. } => {
                let Some(item) = items.get(*at) else { return Vec::new() };
                for (n, option) in item.options.iter().enumerate() {
                    let box_ = match (item.multiple, marked.get(n)) {
                        (true, Some(true)) => "[x] ",
                        (true, _) => "[ ] ",
                        (false, _) => "",
                    };
                    let label = format!("{}. {box_}{} ", n + 1, width::flat(&option.label));
                    row(n, label, width::flat(&option.description));
                }
                if item.custom {
                    let n = item.options.len();
                    row(n, format!("{}. ", n + 1), "say it in your own words".to_owned());
                }
            }
        }
        lines
    }
}

/// What would happen: the diff, the command, or else the arguments.
fn preview(question: &Question, columns: usize, theme: &Theme) -> Vec<Line> {
    let preview = question.preview.as_deref().unwrap_or_default();
    let mut lines = Vec::new();
    if preview.contains("@@ ") {
        lines.extend(diff::render(preview, columns, PREVIEW_ROWS, theme));
    } else if !preview.is_empty() {
        let mut shell = Highlighter::new("sh");
        for line in harmless(preview).lines().take(PREVIEW_ROWS) {
            lines.extend(width::wrap(&shell.line(line, theme), columns, 2));
        }
    } else if !question.arguments.is_null() {
        let text = width::flat(&question.arguments.to_string());
        lines.extend(width::wrap(&Line::styled(text, theme.muted()), columns, 2));
    }
    lines
}

/// Editing of one line in a dialog.
pub(super) fn edit(editor: &mut Editor, key: Key) {
    match (key.code, key.ctrl, key.alt) {
        (Code::Char(c), false, false) => editor.insert(c),
        (Code::Char('a'), true, _) | (Code::Home, ..) => editor.go_line_start(),
        (Code::Char('e'), true, _) | (Code::End, ..) => editor.go_line_end(),
        (Code::Char('u'), true, _) => editor.kill_to_start(),
        (Code::Char('k'), true, _) => editor.kill_to_end(),
        (Code::Char('w'), true, _) => editor.kill_word_back(),
        (Code::Char('y'), true, _) => editor.yank(),
        (Code::Char('b'), true, _) | (Code::Left, false, false) => editor.left(),
        (Code::Char('f'), true, _) | (Code::Right, false, false) => editor.right(),
        (Code::Left, ..) => editor.go_word_left(),
        (Code::Right, ..) => editor.go_word_right(),
        (Code::Backspace, false, false) => editor.backspace(),
        (Code::Backspace, ..) => editor.kill_word_back(),
        (Code::Delete, ..) => editor.delete_forward(),
        (Code::Enter, ..) => editor.insert('\n'),
        _ => {}
    }
}

impl Line {
    pub(crate) fn joined(mut self, other: Line) -> Self {
        self.extend(other);
        self
    }
}

impl App {
    pub(super) fn ask_key(&mut self, key: Key) {
        let Some(ask) = self.asks.front_mut() else { return };
        let Some(order) = ask.key(key) else { return };
        // Ctrl+C on a question is a wish to stop, not only to refuse.
        if key == Key::ctrl('c') {
            self.interrupt();
        }
        self.asks.pop_front();
        self.order(order);
    }

    pub(super) fn ask_paste(&mut self, text: &str) {
        if let Some(words) = self.asks.front_mut().and_then(|ask| ask.words.as_mut()) {
            words.insert_text(text);
        }
    }
}
