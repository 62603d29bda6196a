//! Lists to choose from: models, agents, sessions, themes, commands, messages, jobs.

use super::{App, Effect, Order, Overlay};
use crate::blocks::Block;
use crate::editor::Editor;
use crate::fuzzy;
use crate::key::{Code, Key};
use crate::style::{Line, Style};
use crate::theme::Theme;
use crate::width::{self, harmless};

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
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Row {
    pub label: String,
    pub about: String,
    pub value: String,
}

pub(crate) struct Picker {
    pub(super) kind: Kind,
    rows: Vec<Row>,
    query: Editor,
    /// Indexes of the rows that fit, best first.
    fitting: Vec<usize>,
    selected: usize,
    /// Nothing has been told yet.
    waiting: bool,
    preview: Option<(String, String)>,
    /// The theme that was used before looking at others.
    before: Option<Theme>,
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
            before: None,
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

    pub(super) fn preview(&mut self, value: &str, text: &str) {
        self.preview = Some((value.to_owned(), harmless(text)));
    }

    fn narrow(&mut self) {
        let text = |row: &Row| format!("{} {}", row.label, row.about);
        let texts: Vec<String> = self.rows.iter().map(text).collect();
        let query = self.query.text().to_lowercase();
        let all = texts.iter().enumerate().map(|(n, text)| (text.as_str(), n));
        self.fitting = fuzzy::best(&query, all, usize::MAX);
        self.selected = self.selected.min(self.fitting.len().saturating_sub(1));
    }

    fn current(&self) -> Option<&Row> {
        self.rows.get(*self.fitting.get(self.selected)?)
    }

    fn title(&self) -> (&'static str, &'static str) {
        match self.kind {
            Kind::Models => ("Models", "enter use · ctrl+f favourite · esc close"),
            Kind::Agents => ("Agents", "enter use · esc close"),
            Kind::Sessions => ("Sessions", "enter open · ctrl+o copy and open · esc close"),
            Kind::Themes => ("Themes", "enter use · esc back"),
            Kind::Commands => ("Commands", "enter run · esc close"),
            Kind::Messages => ("Back to", "enter edit it again · esc close"),
            Kind::Jobs => ("Background jobs", "ctrl+k end all · esc close"),
            Kind::Providers => ("Connect", "enter give a key · esc close"),
        }
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
        let room = columns.saturating_sub(head.width() + 2);
        head.push(format!("  {}", width::cut(keys, room)), muted);
        let mut lines = vec![width::cut_line(&head, columns)];
        let preview = self.preview_rows(columns, theme);
        let room = height.saturating_sub(1 + preview.len()).clamp(1, 12);
        if self.fitting.is_empty() {
            let text = match (self.waiting, self.rows.is_empty()) {
                (true, _) => "…",
                (false, true) => "there is nothing here",
                (false, false) => "nothing fits",
            };
            lines.push(Line::styled(format!("  {text}"), muted));
        }
        let top = self.selected.saturating_sub(room.saturating_sub(1));
        let widest = self.fitting.iter().skip(top).take(room);
        let widest = widest.filter_map(|n| self.rows.get(*n)).map(|r| width::of(&r.label)).max();
        let label_room = widest.unwrap_or(0).min(columns * 2 / 3);
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
        let rows = text.lines().take(6);
        let bar = || Line::styled("  │ ", Style::fg(theme.border));
        let room = columns.saturating_sub(4);
        rows.map(|row| bar().with(width::cut(row, room), theme.muted())).collect()
    }
}

impl App {
    pub(super) fn pick(&mut self, kind: Kind) {
        let rows = match kind {
            Kind::Models | Kind::Sessions | Kind::Jobs | Kind::Providers => {
                self.order(Order::List(kind));
                None
            }
            Kind::Agents => Some(self.agent_rows()),
            Kind::Themes => Some(self.theme_rows()),
            Kind::Commands => Some(self.command_rows()),
            Kind::Messages => Some(self.message_rows()),
        };
        let mut picker = Picker::new(kind, rows);
        if kind == Kind::Themes {
            picker.before = Some(self.theme.clone());
        }
        (self.menu, self.hint) = (None, None);
        self.overlay = Some(Overlay::Picker(picker));
        self.look();
    }

    /// What a list was waiting for. Favourite and recent models come first.
    pub(super) fn listed(&mut self, kind: Kind, mut rows: Vec<Row>) {
        if kind == Kind::Models {
            let (favourites, recent) = (&self.prefs.favourites, &self.prefs.recent);
            for row in rows.iter_mut().filter(|row| favourites.contains(&row.value)) {
                row.label = format!("★ {}", row.label);
            }
            let rank = |row: &Row| match recent.iter().position(|own| *own == row.value) {
                _ if favourites.contains(&row.value) => 0,
                Some(n) => n + 1,
                None => usize::MAX,
            };
            rows.sort_by_key(rank);
        }
        if let Some(Overlay::Picker(picker)) = &mut self.overlay
            && picker.kind == kind
        {
            picker.fill(rows);
            self.look();
        }
    }

    fn agent_rows(&self) -> Vec<Row> {
        let row = |(name, about): &(String, String)| Row {
            label: name.clone(),
            about: about.clone(),
            value: name.clone(),
        };
        self.facts.agents.iter().map(row).collect()
    }

    fn theme_rows(&self) -> Vec<Row> {
        let own = self.prefs.themes.keys().map(|name| (name.clone(), "your own"));
        let built_in = Theme::names().into_iter().map(|name| (name.to_owned(), ""));
        own.chain(built_in)
            .map(|(name, about)| Row { label: name.clone(), about: about.to_owned(), value: name })
            .collect()
    }

    fn message_rows(&self) -> Vec<Row> {
        let said = self.blocks.iter().filter_map(|block| match block {
            Block::User(text) => Some(text),
            _ => None,
        });
        let mut rows: Vec<Row> = said
            .enumerate()
            .map(|(n, text)| Row {
                label: text.trim().lines().next().unwrap_or_default().to_owned(),
                about: String::new(),
                value: n.to_string(),
            })
            .collect();
        rows.reverse();
        rows
    }

    pub(super) fn picker_key(&mut self, key: Key) {
        let Some(Overlay::Picker(picker)) = &mut self.overlay else { return };
        let count = picker.fitting.len();
        let last = count.saturating_sub(1);
        match (key.code, key.ctrl) {
            (Code::Escape, _) | (Code::Char('c'), true) => {
                if let Some(before) = picker.before.take() {
                    self.theme = before;
                }
                self.overlay = None;
                return;
            }
            (Code::Up, _) | (Code::Char('p'), true) => {
                picker.selected = picker.selected.checked_sub(1).unwrap_or(last);
            }
            (Code::Down, _) | (Code::Char('n'), true) => {
                picker.selected = if picker.selected >= last { 0 } else { picker.selected + 1 };
            }
            (Code::PageUp, _) => picker.selected = picker.selected.saturating_sub(10),
            (Code::PageDown, _) => picker.selected = (picker.selected + 10).min(last),
            (Code::Home, _) => picker.selected = 0,
            (Code::End, _) => picker.selected = last,
            (Code::Enter, _) => return self.picked(false),
            (Code::Char('o'), true) if picker.kind == Kind::Sessions => return self.picked(true),
            (Code::Char('f'), true) if picker.kind == Kind::Models => return self.favour(),
            (Code::Char('k'), true) if picker.kind == Kind::Jobs => {
                self.overlay = None;
                self.order(Order::EndJobs);
                return;
            }
            _ => {
                super::ask::edit(&mut picker.query, key);
                picker.selected = 0;
                picker.narrow();
            }
        }
        self.look();
    }

    /// What is under the cursor is looked at.
    fn look(&mut self) {
        let Some(Overlay::Picker(picker)) = &self.overlay else { return };
        let Some(row) = picker.current() else { return };
        let value = row.value.clone();
        match picker.kind {
            Kind::Sessions => self.order(Order::Preview(value)),
            Kind::Themes => {
                if let Some(theme) = self.prefs.theme_named(&value) {
                    self.theme = theme;
                }
            }
            _ => {}
        }
    }

    fn picked(&mut self, other: bool) {
        let Some(Overlay::Picker(picker)) = self.overlay.take() else { return };
        let Some(row) = picker.current() else { return };
        let value = row.value.clone();
        match picker.kind {
            Kind::Models => {
                self.prefs.recent.retain(|model| *model != value);
                self.prefs.recent.insert(0, value.clone());
                self.prefs.recent.truncate(10);
                self.save();
                self.order(Order::Model(value));
            }
            Kind::Agents => self.order(Order::Agent(value)),
            Kind::Sessions => self.order(Order::Open { id: value, fork: other }),
            Kind::Themes => {
                self.prefs.theme = Some(value);
                self.save();
            }
            Kind::Commands => self.run_command(&value, ""),
            Kind::Messages => {
                let Ok(n) = value.parse::<usize>() else { return };
                let said = self.blocks.iter().filter_map(|block| match block {
                    Block::User(text) => Some(text.clone()),
                    _ => None,
                });
                if let Some(text) = said.into_iter().nth(n) {
                    self.editor.set(&text);
                    self.order(Order::Back(n));
                }
            }
            Kind::Jobs => {}
            Kind::Providers => {
                let what = format!("Key for {}", row.label);
                let editor = Editor::default();
                self.overlay = Some(Overlay::Line { what, provider: value, editor });
            }
        }
    }

    fn favour(&mut self) {
        let Some(Overlay::Picker(picker)) = &self.overlay else { return };
        let Some(value) = picker.current().map(|row| row.value.clone()) else { return };
        match self.prefs.favourites.iter().position(|model| *model == value) {
            Some(at) => {
                self.prefs.favourites.remove(at);
                self.hint("no favourite any more");
            }
            None => {
                self.prefs.favourites.push(value);
                self.hint("a favourite now: f2 goes from one to the next");
            }
        }
        self.save();
    }

    pub(super) fn save(&mut self) {
        let prefs = self.prefs.clone();
        self.effect(Effect::Save(prefs));
    }
}
