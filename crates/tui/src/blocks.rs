//! The pieces of a conversation, and what each looks like.

use std::time::Duration;

use serde_json::Value;
use toolwright::session::{Ending, Outcome};

use crate::diff;
use crate::markdown;
use crate::picture::{Means, Picture};
use crate::style::{Line, Style};
use crate::theme::Theme;
use crate::width::{self, harmless};

/// Rows of a command's output, of a diff and of anything else that are shown unasked.
const OUTPUT_ROWS: usize = 5;
const DIFF_ROWS: usize = 24;
const OTHER_ROWS: usize = 3;
/// Rows when everything is asked for.
const ALL_ROWS: usize = 2_000;
/// Lines at the end of a command's result among which its exit code is.
const STATUS_LINES: usize = 3;
/// When a call began that nobody here saw begin: long after everything.
pub const UNSEEN: Duration = Duration::from_secs(u64::MAX / 2);
/// Bytes of an output that are kept for the transcript; the log has the rest.
const KEPT_BYTES: usize = 16 << 10;

#[derive(Debug, Clone, PartialEq)]
pub enum Block {
    /// What the person said, and when, in milliseconds since 1970.
    User {
        text: String,
        at: Option<u64>,
    },
    Text(String),
    Thought {
        text: String,
        seconds: u64,
    },
    Call(Call),
    Note {
        level: Level,
        text: String,
        advice: Option<String>,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    Quiet,
    Notice,
    Problem,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    pub tool: String,
    pub summary: String,
    /// What it last said of itself while it ran.
    pub progress: String,
    pub started: Duration,
    pub done: Option<Done>,
}

/// What people see of an outcome.
#[derive(Debug, Clone, PartialEq)]
pub struct Done {
    pub ending: Ending,
    pub title: String,
    pub output: String,
    pub exit: Option<i64>,
    pub diff: Option<String>,
    pub changed: Option<(u64, u64)>,
    /// The list as this call has left it; an empty one is a list too.
    pub todos: Option<Vec<(String, String)>>,
    pub duration: Duration,
    pub facts: Vec<String>,
    /// It goes on in the background: what it said of that is for the model.
    pub goes_on: bool,
    /// The session of an agent that did the work.
    pub child: Option<String>,
    pub pictures: Vec<Picture>,
}

impl From<&Outcome> for Done {
    fn from(outcome: &Outcome) -> Self {
        let details = &outcome.details;
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let todo = |value: &Value| (text(&value["status"]), text(&value["content"]));
        let wrote = outcome.tool == "todowrite" && outcome.ending == Ending::Completed;
        let todos = details["todos"].as_array().filter(|_| wrote);
        let number = |name: &str| details[name].as_u64();
        let mut facts = Vec::new();
        facts.extend(number("count").map(|n| format!("{n} found")));
        facts.extend(number("matches").map(|n| match n {
            1 => "1 match".to_owned(),
            n => format!("{n} matches"),
        }));
        facts.extend(number("calls").map(|n| counted(n as usize, "call")));
        if let Some(cost) = outcome.cost.filter(|cost| *cost > 0.0) {
            facts.push(format!("${cost:.3}"));
        }
        if details["running"] == true {
            facts.push("in the background".to_owned());
        }
        Self {
            ending: outcome.ending,
            title: harmless(&outcome.title),
            output: match answers(outcome) {
                Some(pairs) => pairs,
                None => middle_out(&harmless(&outcome.output), KEPT_BYTES),
            },
            exit: details["exit"].as_i64(),
            diff: details["diff"].as_str().filter(|d| !d.is_empty()).map(str::to_owned),
            changed: number("additions").zip(number("deletions")),
            todos: todos.map(|todos| todos.iter().map(todo).collect()),
            duration: Duration::from_millis(outcome.duration_ms),
            facts,
            goes_on: details["running"] == true,
            child: (outcome.tool == "task").then(|| text(&details["sessionId"])),
            pictures: Vec::new(),
        }
    }
}

/// What was asked and what was answered, a line each: the result is written for the model.
fn answers(outcome: &Outcome) -> Option<String> {
    let questions = outcome.details["questions"].as_array()?;
    let answers = outcome.details["answers"].as_array()?;
    let line = |(at, question): (usize, &Value)| {
        let labels = answers.get(at).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let labels: Vec<&str> = labels.iter().filter_map(Value::as_str).collect();
        let answer = if labels.is_empty() { "(no answer)".to_owned() } else { labels.join(", ") };
        width::flat(&format!("{} → {answer}", question.as_str().unwrap_or_default()))
    };
    Some(questions.iter().enumerate().map(line).collect::<Vec<_>>().join("\n"))
}

/// The beginning and the end of a text that is too long.
fn middle_out(text: &str, limit: usize) -> String {
    if text.len() <= limit {
        return text.to_owned();
    }
    let mut head = limit / 2;
    while !text.is_char_boundary(head) {
        head -= 1;
    }
    let mut tail = text.len() - limit / 2;
    while !text.is_char_boundary(tail) {
        tail += 1;
    }
    format!("{}\n…\n{}", &text[..head], &text[tail..])
}

/// How blocks are to be shown.
#[derive(Clone, Copy)]
pub struct View<'a> {
    pub columns: usize,
    pub theme: &'a Theme,
    /// All of a call's output.
    pub details: bool,
    /// The model's reasoning in full.
    pub thinking: bool,
    pub pictures: Means,
    pub now: Duration,
    /// What time it is, where it is to be seen when something was said; in milliseconds since 1970.
    pub clock: Option<u64>,
}

impl Block {
    pub fn user(text: impl Into<String>, at: Option<u64>) -> Self {
        Self::User { text: text.into(), at }
    }

    pub fn note(level: Level, text: impl Into<String>) -> Self {
        Self::Note { level, text: text.into(), advice: None }
    }

    pub fn render(&self, view: View<'_>) -> Vec<Line> {
        match self {
            Self::User { text, at } => said(text, *at, view),
            Self::Text(text) => markdown::render(text, view.columns, view.theme),
            Self::Thought { text, seconds } => thought(text, *seconds, view),
            Self::Call(call) => call.render(view),
            Self::Note { level, text, advice } => note(*level, text, advice.as_deref(), view),
        }
    }

    /// Everything in it that can be searched for.
    pub fn text(&self) -> String {
        match self {
            Self::User { text, .. } | Self::Text(text) | Self::Thought { text, .. } => text.clone(),
            Self::Call(call) => {
                let done = call.done.as_ref();
                let output = done.map(|d| d.output.as_str()).unwrap_or_default();
                let diff = done.and_then(|d| d.diff.as_deref()).unwrap_or_default();
                format!("{} {}\n{output}\n{diff}", call.tool, call.summary)
            }
            Self::Note { text, .. } => text.clone(),
        }
    }
}

fn said(text: &str, at: Option<u64>, view: View<'_>) -> Vec<Line> {
    let theme = view.theme;
    let mut lines = Vec::new();
    if let Some(time) = view.clock.and_then(|now| local_time(at?, now)) {
        let bar = Line::styled("┃ ", Style::fg(theme.primary));
        lines.push(bar.with(width::cut(&time, view.columns.saturating_sub(2)), theme.muted()));
    }
    for text in harmless(text.trim_end()).split('\n') {
        let line = Line::styled(text, Style::default().bold());
        for row in width::wrap(&line, view.columns.saturating_sub(2), 0) {
            let mut out = Line::styled("┃ ", Style::fg(theme.primary));
            out.extend(row);
            lines.push(out);
        }
    }
    lines
}

/// By the clock of the place; with the day where it is another one.
fn local_time(at: u64, now: u64) -> Option<String> {
    let zoned = |time: u64| {
        let stamp = jiff::Timestamp::from_millisecond(i64::try_from(time).ok()?).ok()?;
        Some(stamp.to_zoned(jiff::tz::TimeZone::system()))
    };
    let (at, now) = (zoned(at)?, zoned(now)?);
    let form = if at.date() == now.date() { "%H:%M" } else { "%Y-%m-%d %H:%M" };
    Some(at.strftime(form).to_string())
}

fn thought(text: &str, seconds: u64, view: View<'_>) -> Vec<Line> {
    let muted = view.theme.muted().italic();
    let first = text.trim().lines().next().unwrap_or_default();
    let title = harmless(first.trim_matches(['*', '#', ' ']));
    let time = if seconds > 0 { format!(" · {seconds} s") } else { String::new() };
    if !view.thinking {
        let room = view.columns.saturating_sub(10 + width::of(&time));
        return vec![Line::styled(format!("Thought: {}{time}", width::cut(&title, room)), muted)];
    }
    let mut lines = vec![Line::styled(format!("Thought{time}"), muted)];
    for line in harmless(text.trim()).split('\n') {
        let line = Line::styled(format!("  {line}"), muted);
        lines.extend(width::wrap(&line, view.columns, 2));
    }
    lines
}

fn note(level: Level, text: &str, advice: Option<&str>, view: View<'_>) -> Vec<Line> {
    let theme = view.theme;
    let (mark, style) = match level {
        Level::Quiet => ("· ", theme.muted()),
        Level::Notice => ("! ", Style::fg(theme.warning)),
        Level::Problem => ("✗ ", Style::fg(theme.error)),
    };
    let mut lines = Vec::new();
    for (n, part) in harmless(text.trim_end()).split('\n').enumerate() {
        let mark = if n == 0 { mark } else { "  " };
        lines.extend(width::wrap(&Line::styled(format!("{mark}{part}"), style), view.columns, 2));
    }
    if let Some(advice) = advice {
        let line = Line::styled(format!("  {}", width::flat(advice)), theme.muted());
        lines.extend(width::wrap(&line, view.columns, 2));
    }
    lines
}

/// A tool's name for people.
pub fn label(tool: &str) -> &str {
    match tool {
        "bash" => "$",
        "read" => "Read",
        "write" => "Write",
        "edit" | "multiedit" => "Edit",
        "apply_patch" | "patch" => "Patch",
        "glob" => "Glob",
        "grep" => "Grep",
        "list" => "List",
        "webfetch" => "Fetch",
        "websearch" => "Search",
        "task" => "Agent",
        "todowrite" | "todoread" => "Todos",
        "question" => "Question",
        "skill" => "Skill",
        other => other,
    }
}

impl Call {
    fn render(&self, view: View<'_>) -> Vec<Line> {
        let mut lines = vec![self.headline(view)];
        let inner = View { columns: view.columns.saturating_sub(4).max(8), ..view };
        let body = match &self.done {
            None => self.running(inner),
            Some(done) => {
                let mut body = self.settled(done, inner);
                for picture in &done.pictures {
                    body.extend(picture.render(inner.columns, inner.pictures, inner.theme));
                }
                body
            }
        };
        for (n, line) in body.into_iter().enumerate() {
            let mark = if n == 0 { "  └ " } else { "    " };
            let mut out = Line::styled(mark, view.theme.muted());
            out.extend(line);
            lines.push(out);
        }
        lines
    }

    fn headline(&self, view: View<'_>) -> Line {
        let theme = view.theme;
        let bad_exit = self.done.as_ref().and_then(|d| d.exit).filter(|code| *code != 0);
        let (mark, style) = match self.done.as_ref().map(|done| done.ending) {
            None => ("○", Style::fg(theme.info)),
            Some(Ending::Completed) if bad_exit.is_some() => ("●", Style::fg(theme.warning)),
            Some(Ending::Completed) => ("●", Style::fg(theme.success)),
            Some(Ending::Failed) => ("✗", Style::fg(theme.error)),
            Some(Ending::Denied) => ("⊘", Style::fg(theme.warning)),
            Some(Ending::Skipped | Ending::Interrupted) => ("–", theme.muted()),
        };
        let name = label(&self.tool);
        let mut notes = Vec::new();
        if let Some(done) = &self.done {
            if let Some((added, removed)) = done.changed {
                notes.push(format!("+{added} −{removed}"));
            }
            notes.extend(bad_exit.map(|code| format!("exit {code}")));
            notes.extend(done.facts.iter().cloned());
            match done.ending {
                Ending::Skipped => notes.push("not started".to_owned()),
                Ending::Interrupted => notes.push("interrupted".to_owned()),
                Ending::Denied => notes.push("denied".to_owned()),
                Ending::Completed | Ending::Failed => {}
            }
            if done.duration >= Duration::from_secs(1) {
                notes.push(seconds(done.duration));
            }
        } else if view.now > self.started + Duration::from_secs(1) {
            notes.push(seconds(view.now - self.started));
        }
        let notes =
            if notes.is_empty() { String::new() } else { format!(" · {}", notes.join(" · ")) };
        let room = view.columns.saturating_sub(3 + width::of(name) + width::of(&notes));
        let mut line = Line::styled(format!("{mark} "), style);
        line.push(name, Style::default().bold());
        let about = width::cut(&self.about(), room);
        if !about.is_empty() {
            line.push(format!(" {about}"), Style::default());
        }
        line.push(notes, theme.muted());
        line
    }

    fn todos(&self) -> &[(String, String)] {
        self.done.as_ref().and_then(|done| done.todos.as_deref()).unwrap_or_default()
    }

    /// What the call is about, without the tool's own name.
    pub fn about(&self) -> String {
        let title = self.done.as_ref().map(|d| d.title.as_str()).filter(|t| !t.is_empty());
        let text = match self.tool.as_str() {
            "bash" | "task" => &self.summary,
            "todowrite" if !self.todos().is_empty() => {
                let todos = self.todos();
                let done = todos.iter().filter(|(status, _)| status == "completed").count();
                return format!("{done} of {} done", todos.len());
            }
            _ => title.unwrap_or(&self.summary),
        };
        let text = harmless(text.trim());
        let mut lines = text.lines();
        let first = lines.next().unwrap_or_default();
        let first = first.strip_prefix(&format!("{} ", self.tool)).unwrap_or(first);
        if lines.next().is_some() { format!("{first} …") } else { first.to_owned() }
    }

    /// The session of the agent that does or did the work.
    pub fn child(&self) -> Option<String> {
        match &self.done {
            Some(done) => done.child.clone().filter(|id| !id.is_empty()),
            None if self.tool == "task" => Self::child_in(&self.progress).map(str::to_owned),
            None => None,
        }
    }

    /// The session that a report of progress names.
    pub fn child_in(progress: &str) -> Option<&str> {
        let rest = progress.strip_prefix("task_id ")?;
        rest.split([',', ' ', '\n']).next().filter(|id| !id.is_empty())
    }

    /// What an agent is at.
    pub fn doing(&self) -> String {
        let text = harmless(self.progress.trim_end());
        let now = text.split_once(", ").map_or("", |(_, now)| now);
        // Some calls say themselves which tool they are of.
        match now.split_once("now ").map(|(before, call)| (before, call.split_once(' '))) {
            Some((before, Some((tool, about)))) if about.starts_with(&format!("{tool} ")) => {
                format!("{before}now {about}")
            }
            _ => now.to_owned(),
        }
    }

    fn running(&self, view: View<'_>) -> Vec<Line> {
        let muted = view.theme.muted();
        let text = harmless(self.progress.trim_end());
        let shown = match self.tool.as_str() {
            "task" => self.doing(),
            _ => text,
        };
        tail(&shown, OUTPUT_ROWS, view.columns, muted)
    }

    fn settled(&self, done: &Done, view: View<'_>) -> Vec<Line> {
        let theme = view.theme;
        let rows = |usual: usize| if view.details { ALL_ROWS } else { usual };
        if matches!(done.ending, Ending::Failed | Ending::Denied) {
            let style =
                Style::fg(if done.ending == Ending::Failed { theme.error } else { theme.warning });
            // What went wrong is read to its end.
            let said = without_status(done.output.trim());
            let lines = head(&said, rows(OTHER_ROWS), usize::MAX, style);
            let most = rows(2 * OTHER_ROWS);
            return lines.iter().flat_map(|l| width::wrap(l, view.columns, 2)).take(most).collect();
        }
        if let Some(diff) = &done.diff {
            return diff::render(diff, view.columns, rows(DIFF_ROWS), theme);
        }
        match self.tool.as_str() {
            "bash" if done.goes_on && !view.details => Vec::new(),
            "bash" => {
                let output = without_status(&done.output);
                if view.details {
                    head(&output, ALL_ROWS, view.columns, theme.muted())
                } else {
                    tail(&output, OUTPUT_ROWS, view.columns, theme.muted())
                }
            }
            "todowrite" => self.todos().iter().map(|(s, text)| todo(s, text, view)).collect(),
            "question" => {
                let rows = done.output.lines().flat_map(|line| {
                    width::wrap(&Line::styled(line, theme.muted()), view.columns, 2)
                });
                rows.collect()
            }
            "read" | "glob" | "grep" | "list" | "webfetch" | "websearch" | "skill" | "todoread"
            | "lsp" | "task"
                if !view.details =>
            {
                Vec::new()
            }
            _ => head(done.output.trim_end(), rows(OTHER_ROWS), view.columns, theme.muted()),
        }
    }
}

pub fn todo(status: &str, text: &str, view: View<'_>) -> Line {
    let theme = view.theme;
    let (mark, style) = match status {
        "completed" => ("☑ ", theme.muted().strike()),
        "in_progress" => ("▸ ", Style::fg(theme.accent).bold()),
        "cancelled" => ("☒ ", theme.muted().strike()),
        _ => ("☐ ", Style::default()),
    };
    let text = width::cut(&width::flat(text), view.columns.saturating_sub(2));
    Line::styled(mark, Style::fg(theme.accent)).with(text, style)
}

/// Lines that a command's result ends with for the model; people see the exit code above.
fn without_status(output: &str) -> String {
    let output = output.trim_end();
    let lines: Vec<&str> = output.lines().collect();
    let from = lines.len().saturating_sub(STATUS_LINES);
    let told = |(n, line): (usize, &&str)| {
        n >= from && line.starts_with("[exit code ") || *line == "(no output)" && n < STATUS_LINES
    };
    let kept = lines.iter().enumerate().filter(|pair| !told(*pair)).map(|(_, line)| *line);
    kept.collect::<Vec<_>>().join("\n")
}

/// The last rows of a text.
fn tail(text: &str, rows: usize, columns: usize, style: Style) -> Vec<Line> {
    let text = text.trim_end();
    if text.is_empty() {
        return Vec::new();
    }
    let all: Vec<&str> = text.lines().collect();
    let from = all.len().saturating_sub(rows);
    let mut lines = Vec::new();
    if from > 0 {
        lines.push(Line::styled(format!("… {} above", counted(from, "line")), style));
    }
    let shown = all[from..].iter().map(|line| Line::styled(width::cut(line, columns), style));
    lines.extend(shown);
    lines
}

fn head(text: &str, rows: usize, columns: usize, style: Style) -> Vec<Line> {
    if text.trim().is_empty() {
        return Vec::new();
    }
    let all: Vec<&str> = text.lines().collect();
    let shown = all.iter().take(rows);
    let mut lines: Vec<Line> =
        shown.map(|line| Line::styled(width::cut(line, columns), style)).collect();
    if all.len() > rows {
        lines.push(Line::styled(format!("… {}", counted(all.len() - rows, "more line")), style));
    }
    lines
}

/// One of them, or so many.
pub fn counted(count: usize, one: &str) -> String {
    if count == 1 { format!("1 {one}") } else { format!("{count} {one}s") }
}

pub fn seconds(time: Duration) -> String {
    let all = time.as_secs();
    match all {
        0..10 => format!("{:.1} s", time.as_secs_f32()),
        10..60 => format!("{all} s"),
        60..3600 => format!("{} min {:02} s", all / 60, all % 60),
        _ => format!("{} h {:02} min", all / 3600, all / 60 % 60),
    }
}
