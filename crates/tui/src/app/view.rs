//! What is to be seen, as rows.

use toolwright::permission::Mode;
use toolwright::session::QueueKind;

use super::{App, Live, Overlay, menu};
use crate::blocks::{self, Block, View};
use crate::keymap::Action;
use crate::style::{Line, Style};
use crate::width;

const SPINNER: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];

/// Finished rows that are given out at once, in screens and at least: a flood of them must not hold
/// up a key.
const ROUNDS: usize = 4;
const ROUND_LEAST: usize = 200;

/// Columns of the folder's name that are worth showing.
const DIRECTORY_LEAST: usize = 8;

/// What the terminal is to show.
pub(crate) struct Frame {
    /// Rows that are written once and scroll away.
    pub finished: Vec<Line>,
    pub live: Vec<Line>,
    /// Row and column in `live`.
    pub cursor: Option<(usize, usize)>,
    /// `live` is a screen of its own.
    pub full: bool,
    /// `live` is drawn over what stands there, which comes back unchanged; with the finished rows that
    /// wait for that.
    pub over: Option<Vec<Line>>,
    /// Its last row stays where it is, if it is the terminal's last.
    pub hold: bool,
}

impl App {
    /// Finished rows that no frame has given out yet.
    pub fn backlog(&self) -> usize {
        self.finished.len()
    }

    /// The state as rows. What is finished is given out once.
    pub fn frame(&mut self) -> Frame {
        if self.transcript.is_some() {
            let (live, cursor) = self.draw_transcript();
            let finished = Vec::new();
            return Frame { finished, live, cursor, full: true, over: None, hold: false };
        }
        let columns = self.width();
        // Some were made for another width.
        let cut = |line: Line| {
            if line.width() > columns { width::cut_line(&line, columns) } else { line }
        };
        let large = matches!(self.overlay, Some(Overlay::Picker(_) | Overlay::Page { .. }));
        let over = large.then(|| {
            let from = self.finished.len().saturating_sub(self.rows);
            self.finished[from..].iter().cloned().map(cut).collect()
        });
        let count = self.finished.len().min((ROUNDS * self.rows).max(ROUND_LEAST));
        let count = if large { 0 } else { self.without_cutting(count) };
        let finished = self.finished.drain(..count).map(cut).collect();
        let most = self.rows.saturating_sub(1).max(1);
        let (below, cursor) = self.below(columns, most);
        let room = most.saturating_sub(below.len());
        let mut live = self.above(columns, room);
        let shift = live.len();
        live.extend(below);
        live.truncate(most);
        let live: Vec<Line> = live.iter().map(|line| width::cut_line(line, columns)).collect();
        let cursor = cursor.map(|(row, column)| (row + shift, column));
        let cursor = cursor.filter(|(row, _)| *row < live.len());
        let cursor = cursor.map(|(row, column)| (row, column.min(self.columns - 1)));
        // A menu below the prompt comes and goes while one writes: the prompt stays where it is then.
        let menu = self.menu.is_some();
        let had_menu = std::mem::replace(&mut self.had_menu, menu);
        let hold = !large && !menu && !had_menu;
        Frame { finished, live, cursor, full: false, over, hold }
    }

    /// So many finished rows, or a few more: a picture that the terminal draws is not taken apart.
    fn without_cutting(&self, count: usize) -> usize {
        let near =
            self.finished.iter().enumerate().take(count).rev().take(crate::picture::ROWS_MOST);
        let ends = near.filter_map(|(n, line)| Some(n + line.placed.as_ref()?.art.rows));
        ends.max().unwrap_or(0).clamp(count, self.finished.len().max(count))
    }

    pub(super) fn editor_columns(&self) -> usize {
        self.width().saturating_sub(2).max(2)
    }

    /// What is going on: unfinished blocks, what waits, what is done just now.
    fn above(&self, columns: usize, room: usize) -> Vec<Line> {
        let mut foot = Vec::new();
        for waiting in &self.queue {
            let when = match waiting.kind {
                QueueKind::Steer => "next",
                QueueKind::FollowUp => "later",
            };
            let line = Line::styled(format!("  {when}: "), self.theme.muted())
                .with(width::flat(&waiting.text), Style::default().italic());
            foot.push(width::cut_line(&line, columns));
        }
        if foot.len() > 4 {
            let more = foot.len() - 3;
            foot.truncate(3);
            foot.push(Line::styled(format!("  … {more} more wait"), self.theme.muted()));
        }
        if self.busy {
            foot.push(self.activity_line(columns));
        }
        let mut lines = self.unfinished(columns);
        if !self.busy && !foot.is_empty() && (!lines.is_empty() || !self.spaced) {
            lines.push(Line::empty());
        }
        if lines.is_empty() && foot.is_empty() {
            if !self.spaced {
                lines.push(Line::empty());
            }
        } else {
            // The last blank row stands between all this and the prompt.
            foot.push(Line::empty());
        }
        let fits = room.saturating_sub(foot.len());
        if lines.len() > fits {
            lines.drain(..lines.len() - fits);
        }
        lines.extend(foot);
        if lines.len() > room {
            lines.drain(..lines.len() - room);
        }
        lines
    }

    fn unfinished(&self, columns: usize) -> Vec<Line> {
        let mut lines: Vec<Line> = Vec::new();
        let mut spaced = self.spaced;
        let mut close = self.close;
        for live in &self.live {
            let (block, apart) = match live {
                Live::Text { flow, .. } => (flow.tail(columns, &self.theme), !flow.has_begun()),
                Live::Thought { text, .. } => (self.thinking_now(text, columns), true),
                Live::Call { call, .. } => {
                    let block = Block::Call(call.clone()).render(self.passing_view());
                    let joins = block.len() == 1 && close;
                    close = block.len() == 1;
                    (block, !joins)
                }
            };
            if block.is_empty() {
                continue;
            }
            if apart && !spaced {
                lines.push(Line::empty());
            }
            spaced = false;
            lines.extend(block);
        }
        if self.busy && (!lines.is_empty() || !self.spaced) {
            lines.push(Line::empty());
        }
        lines
    }

    fn thinking_now(&self, text: &str, columns: usize) -> Vec<Line> {
        let view = View { thinking: true, ..self.view() };
        let shown = if self.prefs.thinking { 12 } else { 3 };
        // The last lines only: it may be long, and it is drawn again and again.
        let start = text.trim_end().rmatch_indices('\n').nth(shown).map_or(0, |(at, _)| at + 1);
        let rows = Block::Thought { text: text[start..].to_owned(), seconds: 0 }.render(view);
        let count = rows.len();
        let rows = rows.into_iter().skip(count.saturating_sub(shown));
        rows.map(|row| width::cut_line(&row, columns)).collect()
    }

    fn activity_line(&self, columns: usize) -> Line {
        if self.asks.iter().any(super::Ask::is_of_turn) && !self.aborted {
            // Nothing moves but the person.
            let line = Line::styled("⠿ Waiting for you", Style::fg(self.theme.warning));
            return width::cut_line(&line, columns);
        }
        let took = self.now.saturating_sub(self.since);
        let frame = SPINNER[(self.now.as_millis() / 100) as usize % SPINNER.len()];
        let mut line = Line::styled(format!("{frame} "), Style::fg(self.theme.accent));
        line.push(width::flat(&self.activity), Style::fg(self.theme.accent));
        let doing = self.todos.iter().find(|(status, _)| status == "in_progress");
        if let Some((_, text)) = doing {
            let done = self.todos.iter().filter(|(status, _)| status == "completed").count();
            let text = width::flat(text);
            line.push(format!(" · {done}/{} {text}", self.todos.len()), Style::default());
        }
        let mut hint = if self.aborted { "" } else { " · esc interrupts" }.to_owned();
        if self
            .live
            .iter()
            .any(|live| matches!(live, Live::Call { call, .. } if call.child().is_some()))
        {
            hint = format!("{hint} · {} looks at agents", self.keymap.keys_of(Action::Children));
        }
        let time = format!(" · {}{hint}", whole_seconds(took.as_secs()));
        let mut line = width::cut_line(&line, columns.saturating_sub(width::of(&time)));
        line.push(time, self.theme.muted());
        width::cut_line(&line, columns)
    }

    /// Where the person writes or chooses, and the status below it.
    fn below(&self, columns: usize, most: usize) -> (Vec<Line>, Option<(usize, usize)>) {
        let status = self.status(columns);
        let height = most.saturating_sub(1).max(1);
        let (mut lines, cursor) = match (&self.overlay, self.asks.front()) {
            (Some(open), _) => self.draw_overlay(open, columns, height),
            (None, Some(ask)) if !self.held => {
                ask.draw(columns, height, self.asks.len() - 1, &self.theme)
            }
            (None, _) => self.prompt_rows(columns, height),
        };
        lines.truncate(height);
        lines.push(status);
        (lines, cursor)
    }

    fn prompt_rows(&self, columns: usize, height: usize) -> (Vec<Line>, Option<(usize, usize)>) {
        if let Some(search) = &self.history.search {
            let head = format!("search: {}", search.query.text());
            let at = 8 + width::of(search.query.before_cursor());
            let found = search.found.map(|at| self.history.entry(at));
            let line = Line::styled(head, Style::fg(self.theme.primary));
            let found = width::flat(found.unwrap_or_default());
            let lines =
                vec![width::cut_line(&line, columns), Line::plain(width::cut(&found, columns))];
            return (lines, Some((0, at.min(columns))));
        }
        let layout = self.editor.layout(self.editor_columns());
        let most = (self.rows / 3).max(6).min(height);
        let top = layout.row.saturating_sub(most.saturating_sub(1));
        let shell = self.editor.text().starts_with('!');
        let colour = if shell { self.theme.warning } else { self.theme.primary };
        let mut lines = Vec::new();
        for (n, row) in layout.rows.iter().enumerate().skip(top).take(most) {
            let mark = if n == 0 { "› " } else { "  " };
            let mut line = Line::styled(mark, Style::fg(colour).bold());
            line.push(row, Style::default());
            lines.push(line);
        }
        if self.editor.is_empty() {
            let text = if self.busy {
                "enter steers, alt+enter queues, up takes back"
            } else {
                "Ask anything. @ file, / command, ! shell"
            };
            if let Some(line) = lines.first_mut() {
                line.push(width::cut(text, columns.saturating_sub(2)), self.theme.muted());
            }
        }
        let cursor = (layout.row - top, 2 + layout.column);
        if let Some(open) = &self.menu {
            lines.extend(self.menu_rows(open, columns, height.saturating_sub(lines.len())));
        }
        (lines, Some(cursor))
    }

    fn menu_rows(&self, open: &super::Menu, columns: usize, room: usize) -> Vec<Line> {
        let room = room.min(menu::ROWS);
        let top = open.selected.saturating_sub(room.saturating_sub(1));
        let shown = || open.items.iter().enumerate().skip(top).take(room);
        let label = shown().map(|(_, item)| width::of(&item.label)).max().unwrap_or(0);
        let label = label.min(columns * 2 / 3);
        let rows = shown().map(|(n, item)| {
            let on = n == open.selected;
            let style = if on { Style::fg(self.theme.primary).bold() } else { Style::default() };
            let name = width::cut_front(&width::flat(&item.label), label);
            let gap = label.saturating_sub(width::of(&name)) + 2;
            let mut line = Line::styled(if on { "› " } else { "  " }, style).with(name, style);
            if !item.about.is_empty() {
                line.push(" ".repeat(gap), Style::default());
                line.push(width::flat(&item.about), self.theme.muted());
            }
            width::cut_line(&line, columns)
        });
        rows.collect()
    }

    /// One row: who answers, how full it is, what it cost, where we are.
    fn status(&self, columns: usize) -> Line {
        let muted = self.theme.muted();
        if let Some((hint, _)) = &self.hint {
            return Line::styled(width::cut(hint, columns), Style::fg(self.theme.warning));
        }
        if self.leader {
            let text = format!(
                "{} …  e editor · m models · l sessions · n new · a agents · t themes",
                self.keymap.leader
            );
            return Line::styled(width::cut(&text, columns), Style::fg(self.theme.warning));
        }
        if !self.ready {
            let text = if self.asks.is_empty() { "starting …" } else { "" };
            return Line::styled(text, muted);
        }
        if !self.asks.is_empty() && (self.overlay.is_some() || self.held) {
            let text = match self.held {
                true => "a question waits: stop writing for a moment",
                false => "a question waits behind this: esc",
            };
            return Line::styled(width::cut(text, columns), Style::fg(self.theme.warning));
        }
        let facts = &self.facts;
        let mut parts: Vec<(String, Style)> = vec![
            (facts.agent.clone(), Style::fg(self.theme.secondary)),
            (facts.model.clone(), muted),
        ];
        // The usual one goes without saying.
        let colour = match facts.mode {
            Mode::Ask => None,
            Mode::AcceptEdits => Some(self.theme.info),
            Mode::Plan => Some(self.theme.secondary),
            Mode::Auto => Some(self.theme.warning),
        };
        parts.extend(colour.map(|colour| (facts.mode.to_string(), Style::fg(colour))));
        parts.extend(self.vim_word().map(|word| (word.to_owned(), Style::fg(self.theme.accent))));
        if self.used > 0 {
            let used = thousands(self.used);
            let text = match facts.window.filter(|window| *window > 0) {
                Some(window) => format!("{used} ({} %)", self.used * 100 / window),
                None => used,
            };
            let full = facts.window.is_some_and(|window| self.used * 10 > window * 8);
            parts.push((text, if full { Style::fg(self.theme.warning) } else { muted }));
        }
        if self.cost > 0.0 {
            let more = if self.cost_known { "" } else { "+" };
            parts.push((format!("${:.2}{more}", self.cost), muted));
        }
        let wide = |parts: &[(String, Style)]| -> usize {
            parts.iter().map(|(text, _)| width::of(&width::flat(text)) + 3).sum::<usize>()
        };
        // Where there is little room: first goes what never changes, of a path its beginning.
        while parts.len() > 2 && wide(&parts) > columns + 3 {
            parts.pop();
        }
        let mut left = (columns + 3).saturating_sub(wide(&parts));
        let branch = facts.branch.as_ref().map(|branch| (branch.clone(), muted));
        let branch = branch.filter(|branch| wide(std::slice::from_ref(branch)) <= left);
        left -= branch.as_ref().map_or(0, |branch| wide(std::slice::from_ref(branch)));
        let directory = width::cut_front(&width::flat(&facts.directory), left.saturating_sub(3));
        let fits = width::of(&directory) >= DIRECTORY_LEAST || directory == facts.directory;
        let directory = Some((directory, muted)).filter(|_| fits);
        left -= directory.as_ref().map_or(0, |own| wide(std::slice::from_ref(own)));
        let sandbox = facts.sandbox.as_ref().map(|sandbox| (sandbox.clone(), muted));
        let sandbox = sandbox.filter(|sandbox| wide(std::slice::from_ref(sandbox)) <= left);
        parts.extend(sandbox.into_iter().chain(directory).chain(branch));
        let mut line = Line::empty();
        for (n, (text, style)) in parts.into_iter().enumerate() {
            if n > 0 {
                line.push(" · ", muted);
            }
            line.push(width::flat(&text), style);
        }
        width::cut_line(&line, columns)
    }

    /// What is left on the terminal when we go.
    pub fn farewell(&self) -> Option<String> {
        let (id, _) = self.session.as_ref()?;
        Some(format!("Go on with: tw -s {id}"))
    }
}

fn thousands(n: u64) -> String {
    match n {
        0..1_000 => n.to_string(),
        1_000..1_000_000 => format!("{:.1}k", n as f64 / 1e3),
        _ => format!("{:.1}M", n as f64 / 1e6),
    }
}

fn whole_seconds(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds} s"),
        _ => blocks::seconds(std::time::Duration::from_secs(seconds)),
    }
}
