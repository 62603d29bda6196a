//! Markdown as rows of a terminal.

use pulldown_cmark::{Alignment, CodeBlockKind, Event, HeadingLevel, Options, Parser, Tag, TagEnd};

use crate::highlight::Highlighter;
use crate::style::{Line, Style};
use crate::theme::Theme;
use crate::width;

/// Columns that a table's cell has at least, before the table becomes a list.
const CELL_LEAST: usize = 6;

/// Renders whole Markdown; no blank lines around it.
pub fn render(source: &str, columns: usize, theme: &Theme) -> Vec<Line> {
    let options =
        Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let source = width::harmless(source);
    let mut out = Renderer::new(columns, theme);
    for event in Parser::new_ext(&source, options) {
        out.event(event);
    }
    out.flush();
    out.lines
}

/// A line of code as it stands in a block, folded where it is too long.
pub fn code_line(text: &str, columns: usize, code: &mut Highlighter, theme: &Theme) -> Vec<Line> {
    let mut line = Line::plain("  ");
    line.extend(code.line(&width::harmless(text), theme));
    width::wrap(&line, columns, 4)
}

struct Renderer<'a> {
    columns: usize,
    theme: &'a Theme,
    lines: Vec<Line>,
    /// The paragraph that is being put together.
    line: Line,
    styles: Vec<Style>,
    /// Numbers of the lists around us; nothing for bullets.
    lists: Vec<Option<u64>>,
    /// The mark that the next row of an item begins with.
    mark: Option<Line>,
    quotes: usize,
    /// A blank row belongs before the next block.
    gap: bool,
    code: Option<(Highlighter, String)>,
    link: Option<String>,
    table: Option<Table>,
}

#[derive(Default)]
struct Table {
    aligned: Vec<Alignment>,
    rows: Vec<Vec<Line>>,
}

impl<'a> Renderer<'a> {
    fn new(columns: usize, theme: &'a Theme) -> Self {
        Self {
            columns,
            theme,
            lines: Vec::new(),
            line: Line::empty(),
            styles: Vec::new(),
            lists: Vec::new(),
            mark: None,
            quotes: 0,
            gap: false,
            code: None,
            link: None,
            table: None,
        }
    }

    fn style(&self) -> Style {
        self.styles.last().copied().unwrap_or_default()
    }

    fn push_style(&mut self, change: impl Fn(Style) -> Style) {
        let style = change(self.style());
        self.styles.push(style);
    }

    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) => match &mut self.code {
                Some((_, code)) => code.push_str(&text),
                None => {
                    let style = self.style();
                    self.line.push(text.into_string(), style);
                }
            },
            Event::Code(text) => {
                let style = Style { fg: self.theme.code, ..self.style() };
                self.line.push(text.into_string(), style);
            }
            Event::Html(text) | Event::InlineHtml(text) => {
                for (n, part) in text.split('\n').enumerate() {
                    if n > 0 {
                        self.flush();
                    }
                    self.line.push(part.to_owned(), Style::default());
                }
            }
            Event::SoftBreak => {
                let style = self.style();
                self.line.push(" ", style);
            }
            Event::HardBreak => self.flush(),
            Event::Rule => {
                self.begin();
                let rule = "─".repeat(self.columns.min(24));
                self.lines.push(Line::styled(rule, Style::fg(self.theme.border)));
                self.gap = true;
            }
            Event::TaskListMarker(done) => {
                self.line.push(if done { "☑ " } else { "☐ " }, Style::fg(self.theme.list));
            }
            Event::FootnoteReference(text) | Event::InlineMath(text) | Event::DisplayMath(text) => {
                let style = self.style();
                self.line.push(text.into_string(), style);
            }
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Paragraph | Tag::HtmlBlock => self.begin(),
            Tag::Heading { level, .. } => {
                self.begin();
                let style = Style::fg(self.theme.heading).bold();
                let style = if level == HeadingLevel::H1 { style.underline() } else { style };
                self.styles.push(style);
            }
            Tag::BlockQuote(_) => {
                self.begin();
                self.quotes += 1;
            }
            Tag::CodeBlock(kind) => {
                self.begin();
                let name = match &kind {
                    CodeBlockKind::Fenced(name) => name.to_string(),
                    CodeBlockKind::Indented => String::new(),
                };
                self.code = Some((Highlighter::new(&name), String::new()));
            }
            Tag::List(number) => {
                self.flush();
                if self.lists.is_empty() {
                    self.begin();
                }
                self.lists.push(number);
            }
            Tag::Item => {
                self.begin();
                let mark = match self.lists.last_mut() {
                    Some(Some(number)) => {
                        let mark = format!("{number}. ");
                        *number += 1;
                        mark
                    }
                    _ => "• ".to_owned(),
                };
                self.mark = Some(Line::styled(mark, Style::fg(self.theme.list)));
            }
            Tag::Emphasis => self.push_style(Style::italic),
            Tag::Strong => self.push_style(Style::bold),
            Tag::Strikethrough => self.push_style(Style::strike),
            Tag::Link { dest_url, .. } => {
                self.link = Some(dest_url.to_string());
                let colour = self.theme.link;
                self.push_style(|style| Style { fg: colour, underline: true, ..style });
            }
            Tag::Image { dest_url, .. } => {
                self.link = Some(dest_url.to_string());
                self.line.push("image: ", Style::fg(self.theme.muted));
                self.push_style(|style| style);
            }
            Tag::Table(aligned) => {
                self.begin();
                self.table = Some(Table { aligned, rows: Vec::new() });
            }
            Tag::TableHead | Tag::TableRow => {
                if let Some(table) = &mut self.table {
                    table.rows.push(Vec::new());
                }
            }
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph | TagEnd::HtmlBlock => {
                self.flush();
                self.gap = true;
            }
            TagEnd::Heading(_) => {
                self.flush();
                self.styles.pop();
                self.gap = true;
            }
            TagEnd::BlockQuote(_) => {
                self.flush();
                self.quotes = self.quotes.saturating_sub(1);
                self.gap = true;
            }
            TagEnd::CodeBlock => self.end_code(),
            TagEnd::List(_) => {
                self.flush();
                self.lists.pop();
                self.gap = self.gap || self.lists.is_empty();
            }
            TagEnd::Item => {
                self.flush();
                // An item without a word is still one.
                if self.mark.is_some() {
                    self.line.push(" ", Style::default());
                    self.flush();
                }
            }
            TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough => {
                self.styles.pop();
            }
            TagEnd::Link | TagEnd::Image => {
                self.styles.pop();
                if let Some(url) = self.link.take()
                    && !url.is_empty()
                    && !self.line.text().ends_with(&url)
                {
                    self.line.push(format!(" ({url})"), Style::fg(self.theme.muted));
                }
            }
            TagEnd::TableCell => {
                let cell = std::mem::take(&mut self.line);
                if let Some(row) = self.table.as_mut().and_then(|t| t.rows.last_mut()) {
                    row.push(cell);
                }
            }
            TagEnd::Table => {
                if let Some(table) = self.table.take() {
                    let columns = self.columns.saturating_sub(self.indent());
                    for line in table.render(columns, self.theme) {
                        self.lines.push(self.prefixed(line));
                    }
                }
                self.gap = true;
            }
            _ => {}
        }
    }

    fn end_code(&mut self) {
        let Some((mut highlighter, text)) = self.code.take() else { return };
        let columns = self.columns.saturating_sub(self.indent());
        for line in text.trim_end_matches('\n').split('\n') {
            for row in code_line(line, columns, &mut highlighter, self.theme) {
                self.lines.push(self.prefixed(row));
            }
        }
        self.gap = true;
    }

    /// A new block: what was before it ends, with a blank row where there belongs one.
    fn begin(&mut self) {
        self.flush();
        if std::mem::take(&mut self.gap) && !self.lines.is_empty() && self.mark.is_none() {
            let blank = self.quote_marks();
            self.lines.push(blank);
        }
    }

    fn indent(&self) -> usize {
        let depth = self.lists.len();
        let marks: usize = self.lists.iter().map(|n| if n.is_some() { 3 } else { 2 }).sum();
        if depth == 0 { self.quotes * 2 } else { marks + self.quotes * 2 }
    }

    fn quote_marks(&self) -> Line {
        let mut line = Line::empty();
        for _ in 0..self.quotes {
            line.push("│ ", Style::fg(self.theme.quote));
        }
        line
    }

    fn prefixed(&self, line: Line) -> Line {
        let mut out = self.quote_marks();
        let blanks = self.indent() - self.quotes * 2;
        out.push(" ".repeat(blanks), Style::default());
        out.extend(line);
        out
    }

    /// Ends the paragraph.
    fn flush(&mut self) {
        if self.table.is_some() || self.line.spans.is_empty() {
            return;
        }
        let line = std::mem::take(&mut self.line);
        let indent = self.indent();
        let columns = self.columns.saturating_sub(indent).max(4);
        let rows = width::wrap(&line, columns, 0);
        for row in rows {
            match self.mark.take() {
                Some(mark) => {
                    let mut out = self.quote_marks();
                    let blanks = (indent - self.quotes * 2).saturating_sub(mark.width());
                    out.push(" ".repeat(blanks), Style::default());
                    out.extend(mark);
                    out.extend(row);
                    self.lines.push(out);
                }
                None => self.lines.push(self.prefixed(row)),
            }
        }
    }
}

impl Table {
    fn render(&self, columns: usize, theme: &Theme) -> Vec<Line> {
        let count = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        if count == 0 {
            return Vec::new();
        }
        let between = 3 * (count - 1);
        if columns < between + CELL_LEAST * count {
            return self.as_list(columns, theme);
        }
        let mut widths: Vec<usize> = (0..count)
            .map(|n| self.rows.iter().filter_map(|row| row.get(n)).map(Line::width).max())
            .map(|widest| widest.unwrap_or(0).max(1))
            .collect();
        // The widest give first.
        while widths.iter().sum::<usize>() + between > columns {
            let Some(widest) = widths.iter_mut().max() else { break };
            *widest -= 1;
        }
        let mut lines = Vec::new();
        for (n, row) in self.rows.iter().enumerate() {
            let cells: Vec<Vec<Line>> = (0..count)
                .map(|c| width::wrap(row.get(c).unwrap_or(&Line::empty()), widths[c], 0))
                .collect();
            let height = cells.iter().map(Vec::len).max().unwrap_or(1);
            for at in 0..height {
                let mut line = Line::empty();
                for (c, cell) in cells.iter().enumerate() {
                    if c > 0 {
                        line.push(" │ ", Style::fg(theme.border));
                    }
                    let text = cell.get(at).cloned().unwrap_or_default();
                    let room = widths[c].saturating_sub(text.width());
                    let before = match self.aligned.get(c) {
                        Some(Alignment::Right) => room,
                        Some(Alignment::Center) => room / 2,
                        _ => 0,
                    };
                    line.push(" ".repeat(before), Style::default());
                    for span in text.spans {
                        let bold = span.style.bold || n == 0;
                        line.push(span.text, Style { bold, ..span.style });
                    }
                    if c + 1 < count {
                        line.push(" ".repeat(room - before), Style::default());
                    }
                }
                lines.push(line);
            }
            if n == 0 {
                let parts: Vec<String> = widths.iter().map(|w| "─".repeat(*w)).collect();
                lines.push(Line::styled(parts.join("─┼─"), Style::fg(theme.border)));
            }
        }
        lines
    }

    /// For a place that is too narrow: each cell in a row of its own, behind its column's name.
    fn as_list(&self, columns: usize, theme: &Theme) -> Vec<Line> {
        let Some((head, rows)) = self.rows.split_first() else { return Vec::new() };
        let mut lines = Vec::new();
        for row in rows {
            for (n, cell) in row.iter().enumerate() {
                let mut line = Line::empty();
                if let Some(name) = head.get(n) {
                    line.push(format!("{}: ", name.text()), Style::fg(theme.muted));
                }
                line.extend(cell.clone());
                lines.extend(width::wrap(&line, columns.max(4), 2));
            }
            lines.push(Line::empty());
        }
        lines.pop();
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(source: &str, columns: usize) -> Vec<String> {
        let lines = render(source, columns, &Theme::default());
        lines.iter().map(|l| l.text().trim_end().to_owned()).collect()
    }

    #[test]
    fn blocks_look_like_what_they_are() {
        let source = "# Title\n\nSome *words* and `code`.\nMore.\n\n- one\n- two\n  1. deep\n  2. er\n- [x] done\n\n> said\n\n---\n";
        assert_eq!(
            rows(source, 40),
            [
                "Title",
                "",
                "Some words and code. More.",
                "",
                "• one",
                "• two",
                "  1. deep",
                "  2. er",
                "• ☑ done",
                "",
                "│ said",
                "",
                "────────────────────────"
            ]
        );
    }

    #[test]
    fn lists_hang_and_loose_ones_have_room() {
        assert_eq!(rows("- one two three\n\n- four", 9), ["• one two", "  three", "", "• four"]);
        assert_eq!(rows("9. a\n10. b", 20), ["9. a", "10. b"]);
    }

    #[test]
    fn tables_are_aligned_folded_or_listed_by_the_room_there_is() {
        let source = "| a | long name |\n|--:|---|\n| 1 | some words here |\n";
        assert_eq!(
            rows(source, 40),
            ["a │ long name", "──┼────────────────", "1 │ some words here"]
        );
        assert_eq!(
            rows(source, 16),
            ["a │ long name", "──┼─────────────", "1 │ some words", "  │ here"]
        );
        assert_eq!(rows(source, 12), ["a: 1", "long name:", "  some words", "  here"]);
    }

    #[test]
    fn code_keeps_its_lines_and_links_say_where_they_lead() {
        assert_eq!(rows("```rs\nfn a() {\n    b\n}\n```", 40), ["  fn a() {", "      b", "  }"]);
        assert_eq!(rows("[here](http://x.y)", 40), ["here (http://x.y)"]);
        assert_eq!(rows("<http://x.y>", 40), ["http://x.y"]);
    }

    #[test]
    fn any_text_at_any_width_is_drawn_within_it() {
        let source = "# 漢字漢字漢字\n\n1. a\n   - b `c` **d\n> q\n> - z\n\n|x|\n|-|\n|漢字漢字漢字|\n\n```\nlong code line that goes on\n```\n<b>hi</b>";
        for columns in 1..40 {
            for line in render(source, columns, &Theme::default()) {
                assert!(columns < 16 || line.width() <= columns, "{columns}: {:?}", line.text());
            }
        }
    }
}
