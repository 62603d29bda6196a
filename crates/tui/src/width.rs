//! How wide text is on a terminal, and how it is fitted: by what people see as one character.

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::style::{Line, Span, Style};

/// Columns of a whole text.
pub fn of(text: &str) -> usize {
    if text.is_ascii() {
        return text.len();
    }
    // Finding what belongs together costs; most text has nothing that could.
    let mut all = 0;
    for c in text.chars() {
        match c.width() {
            Some(1) => all += 1,
            Some(2) if c < EMOJI => all += 2,
            _ => return text.graphemes(true).map(grapheme).sum(),
        }
    }
    all
}

/// From here on characters join.
const EMOJI: char = '\u{1f000}';

/// Columns of one grapheme; terminals draw none wider than two.
pub fn grapheme(text: &str) -> usize {
    match text.as_bytes() {
        [b' '..=b'~'] => 1,
        _ => text.width().min(2),
    }
}

/// Whether terminals agree on where each character of it stands.
pub fn is_certain(text: &str) -> bool {
    text.is_ascii() || text.chars().all(|c| c.width() == Some(1))
}

/// The columns it can take on a terminal that draws each part of a joined character by itself.
pub fn at_most(text: &str) -> usize {
    text.chars().map(|c| c.width().unwrap_or(1)).sum()
}

/// Stands where something was that a terminal would have obeyed.
pub const INSTEAD: char = '\u{fffd}';

/// Whether a terminal only draws it.
pub fn is_inert(c: char) -> bool {
    !c.is_control() && !is_turning(c)
}

/// Text from a model or a tool must not move the cursor, set a title or turn the writing round.
/// Lines stay lines; tabs become blanks.
pub fn harmless(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut column = 0;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\n' => {
                out.push('\n');
                column = 0;
                continue;
            }
            '\r' if chars.peek() == Some(&'\n') => continue,
            '\t' => {
                let blanks = 4 - column % 4;
                out.extend(std::iter::repeat_n(' ', blanks));
                column += blanks;
                continue;
            }
            c if !is_inert(c) => out.push(INSTEAD),
            c => out.push(c),
        }
        column += 1;
    }
    out
}

/// The same in one line.
pub fn flat(text: &str) -> String {
    harmless(text).replace('\n', " ")
}

/// Marks that change the direction of what follows, beyond their own line even.
fn is_turning(c: char) -> bool {
    matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{2028}' | '\u{2029}')
}

/// The beginning that fits, with a mark where something was left out.
pub fn cut(text: &str, width: usize) -> String {
    if of(text) <= width {
        return text.to_owned();
    }
    if width == 0 {
        return String::new();
    }
    let mut out = String::new();
    let mut used = 0;
    for part in text.graphemes(true) {
        let wide = grapheme(part);
        if used + wide > width - 1 {
            break;
        }
        used += wide;
        out.push_str(part);
    }
    out.push('…');
    out
}

/// The end that fits, for paths.
pub fn cut_front(text: &str, width: usize) -> String {
    if of(text) <= width {
        return text.to_owned();
    }
    if width == 0 {
        return String::new();
    }
    let mut kept = Vec::new();
    let mut used = 0;
    for part in text.graphemes(true).rev() {
        let wide = grapheme(part);
        if used + wide > width - 1 {
            break;
        }
        used += wide;
        kept.push(part);
    }
    kept.reverse();
    format!("…{}", kept.concat())
}

/// A line cut to `width`.
pub fn cut_line(line: &Line, width: usize) -> Line {
    if line.width() <= width {
        return line.clone();
    }
    let mut out = Line::empty();
    let mut left = width;
    for span in &line.spans {
        let wide = of(&span.text);
        if wide >= left {
            let more = if wide == left { format!("{}x", span.text) } else { span.text.clone() };
            out.push(cut(&more, left), span.style);
            return out;
        }
        left -= wide;
        out.push(span.text.clone(), span.style);
    }
    out
}

/// Breaks a line at blanks so that each row fits; rows after the first begin with `hang` blanks. A
/// word that is too long for a row is broken wherever it must be.
pub fn wrap(line: &Line, width: usize, hang: usize) -> Vec<Line> {
    let width = width.max(1);
    let hang = if hang + 4 > width { 0 } else { hang };
    if line.width() <= width {
        return vec![line.clone()];
    }
    let mut rows = Vec::new();
    let mut row = Row::default();
    let mut word = Row::default();
    for Span { text, style } in &line.spans {
        for part in text.graphemes(true) {
            let wide = grapheme(part);
            if part == " " {
                row.take(&mut word);
                if row.width < width {
                    row.push(part, 1, *style);
                }
                continue;
            }
            word.push(part, wide, *style);
            let start = if rows.is_empty() { 0 } else { hang };
            if row.width + word.width > width {
                if row.width > start {
                    rows.push(row.finish());
                    row = Row::hanging(hang);
                }
                // Longer than a whole row.
                if row.width + word.width > width {
                    let last = word.pop();
                    row.take(&mut word);
                    rows.push(row.finish());
                    row = Row::hanging(hang);
                    word.extend(last);
                }
            }
        }
    }
    row.take(&mut word);
    rows.push(row.finish());
    rows
}

#[derive(Default)]
struct Row {
    parts: Vec<(String, usize, Style)>,
    width: usize,
}

impl Row {
    fn hanging(blanks: usize) -> Self {
        let mut row = Self::default();
        if blanks > 0 {
            row.push(&" ".repeat(blanks), blanks, Style::default());
        }
        row
    }

    fn push(&mut self, text: &str, width: usize, style: Style) {
        self.width += width;
        self.parts.push((text.to_owned(), width, style));
    }

    fn extend(&mut self, part: Option<(String, usize, Style)>) {
        if let Some((text, width, style)) = part {
            self.push(&text, width, style);
        }
    }

    fn pop(&mut self) -> Option<(String, usize, Style)> {
        let part = self.parts.pop()?;
        self.width -= part.1;
        Some(part)
    }

    fn take(&mut self, other: &mut Self) {
        self.width += other.width;
        self.parts.append(&mut other.parts);
        other.width = 0;
    }

    /// Without the blanks at its end.
    fn finish(&mut self) -> Line {
        let mut parts = std::mem::take(&mut self.parts);
        while parts.last().is_some_and(|(text, _, style)| text == " " && *style == Style::default())
        {
            parts.pop();
        }
        self.width = 0;
        let mut line = Line::empty();
        for (text, _, style) in parts {
            line.push(text, style);
        }
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(text: &str, width: usize, hang: usize) -> Vec<String> {
        wrap(&Line::plain(text), width, hang).iter().map(Line::text).collect()
    }

    #[test]
    fn lines_break_at_blanks_and_long_words_anywhere() {
        assert_eq!(rows("one two three", 8, 0), ["one two", "three"]);
        assert_eq!(rows("one two three", 8, 2), ["one two", "  three"]);
        assert_eq!(rows("abcdefghij", 4, 0), ["abcd", "efgh", "ij"]);
        assert_eq!(rows("a abcdefghij", 6, 0), ["a", "abcdef", "ghij"]);
        assert_eq!(rows("", 4, 0), [""]);
    }

    #[test]
    fn wide_characters_count_as_two_and_stay_whole() {
        assert_eq!(of("漢字"), 4);
        assert_eq!(of("👨‍👩‍👧"), 2);
        assert_eq!(of("é"), 1);
        assert_eq!(rows("漢字漢字", 5, 0), ["漢字", "漢字"]);
        assert_eq!(cut("漢字漢字", 5), "漢字…");
        assert_eq!(cut_front("a/long/path.rs", 8), "…path.rs");
    }

    #[test]
    fn every_row_fits_whatever_the_text_is() {
        for text in ["漢", "a漢b", "👩🏽‍💻 x", "   ", "العربية نص", "a\u{301}b"]
        {
            for width in 2..8 {
                for row in rows(text, width, 1) {
                    assert!(of(&row) <= width, "{text:?} at {width}: {row:?}");
                }
            }
        }
    }

    #[test]
    fn control_characters_and_turning_marks_do_nothing() {
        assert_eq!(harmless("a\x1b[2Jb\r\nc\td"), "a\u{fffd}[2Jb\nc   d");
        assert_eq!(harmless("x\u{202e}y"), "x\u{fffd}y");
    }
}
