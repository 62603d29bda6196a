//! What questions look like.

use super::{Ask, Drawn, What};
use crate::diff;
use crate::highlight::Highlighter;
use crate::style::{Line, Style};
use crate::theme::Theme;
use crate::width::{self, harmless};
use toolwright::tool::Question;

/// Rows of a preview that can be looked at.
const PREVIEW_ROWS: usize = 2_000;
/// Rows of it that are shown unasked.
const USUAL_ROWS: usize = 16;
/// Rows of a question in words.
const HEAD_ROWS: usize = 4;
/// Rows of the answer under the cursor.
const ROW_ROWS: usize = 4;
/// Rules that are named.
const REASONS: usize = 3;

impl Ask {
    /// Its rows, at most `height` of them, and where the cursor stands while words are written.
    pub(crate) fn draw(
        &self,
        columns: usize,
        height: usize,
        behind: usize,
        theme: &Theme,
    ) -> (Vec<Line>, Option<(usize, usize)>) {
        let mut head = self.head(columns, theme);
        if behind > 0
            && let Some(last) = head.last_mut()
        {
            last.push(format!(" (+{behind} more)"), theme.muted());
            *last = width::cut_line(last, columns);
        }
        let most = if height < 16 { 2 } else { ROW_ROWS };
        let mut below = self.rows(columns, most, theme);
        let words = self.words.as_ref().map(|w| w.editor.layout(columns.saturating_sub(4)));
        let written = words.as_ref().map_or(0, |w| w.rows.len());
        if let Some(keys) = self.keys().filter(|_| height > 8 + below.len() + written) {
            let keys = width::cut(&keys, columns.saturating_sub(2));
            below.push(Line::styled(format!("  {keys}"), theme.muted()));
        }
        if let Some(problem) = &self.problem {
            let text = format!("  {problem}");
            below.extend(width::wrap(&Line::styled(text, Style::fg(theme.error)), columns, 2));
        }
        let room = height.saturating_sub(1 + head.len() + below.len() + written).max(1);
        let mut lines = head;
        lines.extend(self.body(
            columns,
            if self.expanded { room } else { room.min(USUAL_ROWS) },
            theme,
        ));
        lines.extend(below);
        let mut cursor = None;
        if let Some(layout) = words {
            cursor = Some((lines.len() + layout.row, 4 + layout.column));
            for (n, row) in layout.rows.iter().enumerate() {
                let mark = if n == 0 { "  › " } else { "    " };
                let mark = Line::styled(mark, Style::fg(theme.primary));
                lines.push(mark.with(row, Style::default()));
            }
        }
        (lines, cursor)
    }

    /// What it is about: one row, or all of what somebody asks in words.
    fn head(&self, columns: usize, theme: &Theme) -> Vec<Line> {
        let (mark, bold) = (Style::fg(theme.warning).bold(), Style::default().bold());
        let title = self.title();
        let rows = match self.what {
            What::Inquiry(_) => {
                let first = title.lines().next().unwrap_or_default().to_owned();
                width::wrap(&Line::styled(first, bold), columns.saturating_sub(2).max(1), 0)
            }
            What::Permission(_) | What::Trust(_) => {
                let title = self.without_preview(&width::flat(&title));
                vec![Line::styled(width::cut(&title, columns.saturating_sub(14)), bold)]
            }
        };
        let first = |n: usize| if n == 0 { "? " } else { "  " };
        let rows = rows.into_iter().take(HEAD_ROWS).enumerate();
        rows.map(|(n, row)| Line::styled(first(n), mark).joined(row)).collect()
    }

    /// A command stands below in full: the title need not say it as well.
    fn without_preview(&self, title: &str) -> String {
        let What::Permission(own) = &self.what else { return title.to_owned() };
        let preview = width::flat(own.question.preview.as_deref().unwrap_or_default());
        let preview = preview.trim();
        let told = title.trim_end().trim_end_matches('…').trim_end();
        if preview.is_empty() || own.question.tool != "bash" {
            return title.to_owned();
        }
        // Around it, the agent that wants it may be named, and what is special about it.
        match told.split_once(preview) {
            Some(("", after)) => format!("Run this{after}?"),
            Some((before, after)) => format!("{before}run this{after}?"),
            None if preview.starts_with(told) => "Run this?".to_owned(),
            None => title.to_owned(),
        }
    }

    /// Keys that the rows do not name.
    fn keys(&self) -> Option<String> {
        use super::Purpose;
        let text = match (self.words.as_ref().map(|words| words.purpose), &self.what) {
            (Some(Purpose::Pattern), _) => {
                "* stands for anything · one pattern a line · enter agrees · esc back".to_owned()
            }
            (Some(Purpose::Refusal), _) => "enter sends it · esc back".to_owned(),
            (Some(Purpose::Own { .. }), What::Inquiry(items))
                if items.now().is_some_and(|item| item.options.is_empty()) =>
            {
                "enter answers, empty too · esc does not answer".to_owned()
            }
            (Some(Purpose::Own { .. }), _) => "enter answers · esc back".to_owned(),
            (None, What::Permission(own)) if own.can_be_kept() => {
                "←→ how far · tab how long · e your own pattern · esc no".to_owned()
            }
            (None, What::Permission(_)) => "this can only be allowed once · esc no".to_owned(),
            (None, What::Inquiry(items)) => {
                let mut keys = Vec::new();
                if items.takes_several() {
                    keys.push("space marks");
                }
                if self.address().is_some() {
                    keys.push("ctrl+o opens the address · ctrl+y copies it");
                }
                if items.place().0 > 1 {
                    keys.push("← the one before");
                }
                if keys.is_empty() {
                    keys.push("a number or enter answers");
                }
                keys.push("esc does not answer");
                keys.join(" · ")
            }
            (None, What::Trust(_)) => "esc asks again the next time".to_owned(),
        };
        Some(text)
    }

    fn body(&self, columns: usize, room: usize, theme: &Theme) -> Vec<Line> {
        let inner = columns.saturating_sub(2).max(1);
        let muted = theme.muted();
        let mut lines = Vec::new();
        match &self.what {
            What::Permission(own) => {
                let mut reasons = own.reasons();
                if reasons.len() > REASONS {
                    let more = reasons.len() - REASONS + 1;
                    reasons.truncate(REASONS - 1);
                    reasons.push(format!("and {more} more"));
                }
                if let Some(first) = reasons.first_mut() {
                    *first = format!("asked because: {first}");
                }
                reasons.truncate(room.saturating_sub(1));
                lines = self.preview(&own.question, inner, room - reasons.len(), theme);
                let reasons = reasons.iter().map(|text| width::cut(text, inner));
                lines.extend(reasons.map(|text| Line::styled(text, muted)));
            }
            What::Inquiry(items) => {
                let (at, count) = items.place();
                if count > 1 {
                    lines.push(Line::styled(format!("question {at} of {count}"), muted));
                }
                let text = items.now().map(|item| harmless(&item.question)).unwrap_or_default();
                for row in text.lines().skip(1) {
                    lines.extend(width::wrap(&Line::plain(row), inner, 0));
                }
                lines = self.window(lines, inner, room, theme);
            }
            What::Trust(trust) => {
                let lead = match trust.changed.is_empty() {
                    true => "Its own files want to do more than tighten rules:".to_owned(),
                    false => {
                        format!("You did before; changed since: {}", trust.changed.join(", "))
                    }
                };
                lines.extend(width::wrap(&Line::plain(width::flat(&lead)), inner, 0));
                for (file, wants) in &trust.wants {
                    let text = width::flat(&format!("· {file}: {wants}"));
                    lines.extend(width::wrap(&Line::styled(text, muted), inner, 2));
                }
                lines = self.window(lines, inner, room, theme);
            }
        }
        lines.into_iter().map(|line| Line::plain("  ").joined(line)).collect()
    }

    fn preview(&self, question: &Question, inner: usize, room: usize, theme: &Theme) -> Vec<Line> {
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
        self.window(drawn.rows.iter(), inner, room, theme)
    }

    /// As many rows as there is room for, with what to press for the others.
    fn window<L: std::borrow::Borrow<Line>>(
        &self,
        rows: impl IntoIterator<Item = L, IntoIter: ExactSizeIterator>,
        inner: usize,
        room: usize,
        theme: &Theme,
    ) -> Vec<Line> {
        let rows = rows.into_iter();
        let (all, room) = (rows.len(), room.max(1));
        let top = self.top.min(all.saturating_sub(room));
        let shown = rows.skip(top).take(room);
        let mut shown: Vec<Line> = shown.map(|line| line.borrow().clone()).collect();
        if all > room {
            let text = format!(
                "rows {}–{} of {all} · pageup/pagedown · ctrl+f for more",
                top + 1,
                top + shown.len()
            );
            shown.pop();
            shown.push(Line::styled(width::cut(&text, inner), theme.muted()));
        }
        shown
    }

    fn rows(&self, columns: usize, most: usize, theme: &Theme) -> Vec<Line> {
        let mut lines = Vec::new();
        let mut row = |n: usize, label: String, about: &str| {
            let on = n == self.selected && self.words.is_none();
            let mark = if on { "› " } else { "  " };
            let style = if on { Style::fg(theme.primary).bold() } else { Style::default() };
            let about_style = if on { Style::fg(theme.primary) } else { theme.muted() };
            let hang = 2 + width::of(&label);
            let line = Line::styled(mark, style).with(label, style).with(about, about_style);
            // What one is about to say is read to its end.
            match on {
                true => lines.extend(width::wrap(&line, columns, hang).into_iter().take(most)),
                false => lines.push(width::cut_line(&line, columns)),
            }
        };
        match &self.what {
            What::Permission(own) => {
                for (n, choice) in own.rows().iter().enumerate() {
                    row(n, format!("{} ", choice.key), &choice.label);
                }
            }
            What::Inquiry(items) => {
                let Some(item) = items.now() else { return Vec::new() };
                for (n, option) in item.options.iter().enumerate() {
                    let box_ = match (item.multiple, items.is_marked(n)) {
                        (true, true) => "[x] ",
                        (true, false) => "[ ] ",
                        (false, _) => "",
                    };
                    let label = format!("{}. {box_}{}  ", n + 1, width::flat(&option.label));
                    row(n, label, &width::flat(&option.description));
                }
                if item.custom && !item.options.is_empty() {
                    let n = item.options.len();
                    row(n, format!("{}. ", n + 1), "say it in your own words");
                }
            }
            What::Trust(_) => {
                row(0, "y ".to_owned(), "Yes, use them");
                row(1, "n ".to_owned(), "No, only what tightens rules");
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
