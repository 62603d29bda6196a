//! A list to choose from: narrowed by what is written, with a look at what is under the cursor.

use crate::editor::Editor;
use crate::fuzzy;
use crate::key::{Code, Key};
use crate::style::{Line, Style};
use crate::theme::Theme;
use crate::width::{self, harmless};

/// Rows of what is under the cursor.
const PREVIEW_ROWS: usize = 6;

/// Columns below which names come first.
const NARROW: usize = 60;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Models,
    Agents,
    Sessions,
    Themes,
    Commands,
    Messages,
    Jobs,
    Providers,
    Servers,
    Permissions,
    Keys,
    Skills,
    Modes,
    Efforts,
    /// Agents that work for this one.
    Children,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Row {
    pub label: String,
    pub about: String,
    pub value: String,
}

pub(crate) struct Picker {
    pub(super) kind: Kind,
    pub(super) rows: Vec<Row>,
    pub(super) query: Editor,
    /// Indexes of the rows that fit, best first.
    fitting: Vec<usize>,
    selected: usize,
    /// Nothing has been told yet.
    waiting: bool,
    preview: Option<(String, String)>,
    /// What is used now: the list begins there.
    pub(super) used: Option<String>,
    /// The theme that was used before looking at others.
    pub(super) before: Option<Theme>,
    /// What goes away when the same key is pressed again.
    pub(super) doomed: Option<String>,
}

impl Picker {
    pub(super) fn new(kind: Kind, rows: Option<Vec<Row>>) -> Self {
        let waiting = rows.is_none();
        let mut picker = Self {
            kind,
            rows: Vec::new(),
            query: Editor::default(),
            fitting: Vec::new(),
            selected: 0,
            waiting,
            preview: None,
            used: None,
            before: None,
            doomed: None,
        };
        if let Some(rows) = rows {
            picker.fill(rows);
        }
        picker
    }

    pub(super) fn fill(&mut self, rows: Vec<Row>) {
        let clean = |text: String| width::flat(&text);
        let row = |r: Row| Row { label: clean(r.label), about: clean(r.about), value: r.value };
        self.rows = rows.into_iter().map(row).collect();
        self.waiting = false;
        self.narrow();
    }

    /// Goes to what is used now, where nobody has gone anywhere yet.
    pub(super) fn go_to_used(&mut self) {
        let is_used =
            |n: &usize| self.used.as_ref().is_some_and(|used| self.rows[*n].value == *used);
        if self.selected == 0
            && self.query.is_empty()
            && let Some(at) = self.fitting.iter().position(is_used)
        {
            self.selected = at;
        }
    }

    pub(super) fn preview(&mut self, value: &str, text: &str) {
        self.preview = Some((value.to_owned(), harmless(text)));
    }

    /// Rows that have what was written come before those that only have its letters.
    fn narrow(&mut self) {
        let query = self.query.text().trim().to_lowercase();
        let rank = |row: &Row| {
            let (label, about) = (row.label.to_lowercase(), row.about.to_lowercase());
            if query.is_empty() || label.starts_with(&query) {
                return Some((0, 0));
            }
            if label.contains(&query) {
                return Some((1, 0));
            }
            let has = |word: &str| label.contains(word) || about.contains(word);
            if query.split_whitespace().all(has) {
                return Some((2, 0));
            }
            fuzzy::score(&query, &label).map(|score| (3, -score))
        };
        let ranked = self.rows.iter().enumerate().filter_map(|(n, row)| Some((rank(row)?, n)));
        let mut fitting: Vec<((i32, i32), usize)> = ranked.collect();
        fitting.sort_unstable();
        self.fitting = fitting.into_iter().map(|(_, n)| n).collect();
        self.selected = self.selected.min(self.fitting.len().saturating_sub(1));
    }

    pub(super) fn current(&self) -> Option<&Row> {
        self.rows.get(*self.fitting.get(self.selected)?)
    }

    fn title(&self) -> (&'static str, &'static str) {
        match self.kind {
            Kind::Models => ("Models", "enter use · ctrl+f favourite · esc close"),
            Kind::Agents => ("Agents", "enter use · esc close"),
            Kind::Sessions => {
                ("Sessions", "enter open · ctrl+o copy · ctrl+r rename · ctrl+d delete · esc close")
            }
            Kind::Themes => ("Themes", "enter use · esc back"),
            Kind::Commands => ("Commands", "enter run · esc close"),
            Kind::Messages => (
                "Back to",
                "enter edit it again · ctrl+u undo files too · ctrl+o in a copy · esc close",
            ),
            Kind::Jobs => ("Background jobs", "ctrl+k end all · esc close"),
            Kind::Providers => ("Connect", "enter give a key · esc close"),
            Kind::Servers => {
                ("MCP servers", "enter on or off · ctrl+s sign in · ctrl+o sign out · esc close")
            }
            Kind::Permissions => ("Permissions", "ctrl+d take back what was agreed to · esc close"),
            Kind::Keys => ("Keys", "enter press another · ctrl+d the usual one · esc close"),
            Kind::Skills => ("Skills", "enter use · esc close"),
            Kind::Modes => ("Mode", "enter use · esc close"),
            Kind::Efforts => ("Effort", "enter use · esc close"),
            Kind::Children => ("Agents at work", "enter look at it · esc close"),
        }
    }

    fn nothing(&self) -> &'static str {
        match self.kind {
            Kind::Servers => "no MCP server is configured: tw mcp add NAME -- COMMAND adds one",
            Kind::Jobs => "nothing runs in the background",
            Kind::Skills => "no skill is installed",
            Kind::Sessions => "no session in this folder yet",
            _ => "there is nothing here",
        }
    }

    /// Moves among the rows; whether the key was for that.
    pub(super) fn moved(&mut self, key: Key) -> bool {
        let last = self.fitting.len().saturating_sub(1);
        self.selected = match (key.code, key.ctrl) {
            (Code::Up, _) | (Code::Char('p'), true) => self.selected.checked_sub(1).unwrap_or(last),
            (Code::Down, _) | (Code::Char('n'), true) => {
                if self.selected >= last {
                    0
                } else {
                    self.selected + 1
                }
            }
            (Code::PageUp, _) => self.selected.saturating_sub(10),
            (Code::PageDown, _) => (self.selected + 10).min(last),
            (Code::Home, _) => 0,
            (Code::End, _) => last,
            _ => return false,
        };
        true
    }

    pub(super) fn write(&mut self, key: Key) {
        super::ask::edit(&mut self.query, key);
        self.selected = 0;
        self.narrow();
    }

    /// Further rows, behind those that are there.
    pub(super) fn add(&mut self, rows: Vec<Row>) {
        let new =
            rows.into_iter().filter(|row| !self.rows.iter().any(|own| own.value == row.value));
        let all: Vec<Row> = self.rows.iter().cloned().chain(new).collect();
        self.fill(all);
    }

    pub(super) fn draw(
        &self,
        columns: usize,
        height: usize,
        theme: &Theme,
    ) -> (Vec<Line>, Option<(usize, usize)>) {
        let (title, keys) = self.title();
        let muted = theme.muted();
        let mut head = Line::styled(format!("{title} "), Style::fg(theme.primary).bold());
        let start = head.width();
        head.push(self.query.text(), Style::default());
        let cursor = start + width::of(self.query.before_cursor());
        let preview = self.preview_rows(columns, theme);
        let room = height.saturating_sub(1 + preview.len()).clamp(1, 12);
        let count = match self.fitting.len() > room {
            true => format!("  {}/{}", self.selected + 1, self.fitting.len()),
            false => String::new(),
        };
        let beside = columns.saturating_sub(head.width() + 2 + count.len());
        head.push(format!("  {}{count}", width::cut(keys, beside)), muted);
        let mut lines = vec![width::cut_line(&head, columns)];
        if self.fitting.is_empty() {
            let text = match (self.waiting, self.rows.is_empty()) {
                (true, _) => "…",
                (false, true) => self.nothing(),
                (false, false) => "nothing fits",
            };
            lines.push(Line::styled(format!("  {text}"), muted));
        }
        let top = self.selected.saturating_sub(room.saturating_sub(1));
        let widest = self.fitting.iter().skip(top).take(room);
        let widest = widest.filter_map(|n| self.rows.get(*n)).map(|r| width::of(&r.label)).max();
        // Where there is little room, names that can be told apart matter more than what is said of them.
        let narrow = columns < NARROW && self.kind == Kind::Models;
        let most = if narrow { columns.saturating_sub(4) } else { columns * 2 / 3 };
        let label_room = widest.unwrap_or(0).min(most);
        for (n, index) in self.fitting.iter().enumerate().skip(top).take(room) {
            let Some(row) = self.rows.get(*index) else { continue };
            let on = n == self.selected;
            let style = if on { Style::fg(theme.primary).bold() } else { Style::default() };
            let label = width::cut(&row.label, label_room);
            let gap = label_room.saturating_sub(width::of(&label)) + 2;
            let mut line = Line::styled(if on { "› " } else { "  " }, style).with(label, style);
            if !row.about.is_empty() {
                line.push(" ".repeat(gap), Style::default());
                line.push(row.about.clone(), muted);
            }
            if self.used.as_ref() == Some(&row.value) {
                line.push(if row.about.is_empty() { "  · used now" } else { " · used now" }, muted);
            }
            lines.push(width::cut_line(&line, columns));
        }
        lines.extend(preview);
        (lines, Some((0, cursor.min(columns.saturating_sub(1)))))
    }

    fn preview_rows(&self, columns: usize, theme: &Theme) -> Vec<Line> {
        let Some((value, text)) = &self.preview else { return Vec::new() };
        if self.current().is_none_or(|row| row.value != *value) {
            return Vec::new();
        }
        let bar = || Line::styled("  │ ", Style::fg(theme.border));
        let room = columns.saturating_sub(4).max(1);
        let lines = text.lines().map(|row| Line::styled(row, theme.muted()));
        let rows = lines.flat_map(|line| width::wrap(&line, room, 2)).take(PREVIEW_ROWS);
        rows.map(|row| bar().joined(row)).collect()
    }
}
