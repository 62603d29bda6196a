//! The matchers that compare lines and windows of lines.

use std::borrow::Cow;
use std::ops::Range;

use super::matchers::occurrences;

/// A text and its lines, without their ends.
pub(crate) struct Lines<'a> {
    pub(crate) text: &'a str,
    pub(crate) parts: Vec<Range<usize>>,
}

impl<'a> Lines<'a> {
    pub(crate) fn of(text: &'a str) -> Self {
        let mut parts = Vec::new();
        let mut start = 0;
        for end in memchr::memchr_iter(b'\n', text.as_bytes()) {
            parts.push(start..end);
            start = end + 1;
        }
        parts.push(start..text.len());
        Self { text, parts }
    }

    pub(crate) fn line(&self, at: usize) -> &'a str {
        self.parts.get(at).map_or("", |part| &self.text[part.clone()])
    }

    pub(crate) fn count(&self) -> usize {
        self.parts.len()
    }

    /// From the first to the last of these lines, without the end of the last.
    pub(crate) fn span(&self, lines: Range<usize>) -> Range<usize> {
        self.parts[lines.start].start..self.parts[lines.end - 1].end
    }

    /// Where windows of so many lines begin.
    fn windows(&self, size: usize) -> Range<usize> {
        0..(self.count() + 1).saturating_sub(size)
    }
}

/// What may still be compared. A file of equal lines against a long text would take for ever; when
/// this is used up, what was not looked at was not found.
pub(crate) struct Effort {
    left: u64,
}

/// Bytes that may be compared in any file: a moment.
const EFFORT_BASE: u64 = 50_000_000;

/// How often each byte of a file may be looked at beyond that: all matchers, each a few times.
const EFFORT_PER_BYTE: u64 = 20;

/// What a comparison costs besides its bytes.
const EFFORT_PER_COMPARISON: u64 = 16;

impl Effort {
    pub(crate) fn for_text(text: &str) -> Self {
        Self { left: EFFORT_BASE + EFFORT_PER_BYTE * text.len() as u64 }
    }

    /// Whether there was enough left.
    pub(crate) fn spend(&mut self, amount: usize) -> bool {
        let amount = amount as u64 + EFFORT_PER_COMPARISON;
        let enough = self.left >= amount;
        self.left = self.left.saturating_sub(amount);
        enough
    }
}

/// Blank as JavaScript has it: the byte-order mark is, the next-line character is not.
pub(crate) fn is_blank(c: char) -> bool {
    c == '\u{feff}' || (c.is_whitespace() && c != '\u{85}')
}

pub(crate) fn trim(text: &str) -> &str {
    text.trim_matches(is_blank)
}

/// The lines of the wanted text, without the empty one after its last line end.
pub(crate) fn wanted_lines(old: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = old.split('\n').collect();
    if lines.len() > 1 && lines.last() == Some(&"") {
        lines.pop();
    }
    lines
}

/// Windows whose lines are equal to the wanted ones, as `same` sees it.
fn equal_windows(
    lines: &Lines<'_>,
    wanted: &[&str],
    effort: &mut Effort,
    same: impl Fn(&str, &str) -> bool,
) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    for start in lines.windows(wanted.len()) {
        let mut equal = true;
        for (at, line) in wanted.iter().enumerate() {
            let own = lines.line(start + at);
            if !effort.spend(own.len()) {
                return found;
            }
            if !same(own, line) {
                equal = false;
                break;
            }
        }
        if equal {
            found.push(lines.span(start..start + wanted.len()));
        }
    }
    found
}

/// All lines are equal but for the blanks at their ends.
pub(crate) fn line_trimmed(lines: &Lines<'_>, old: &str, effort: &mut Effort) -> Vec<Range<usize>> {
    equal_windows(lines, &wanted_lines(old), effort, |own, wanted| trim(own) == trim(wanted))
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(is_blank).filter(|word| !word.is_empty())
}

/// A line, or a part of one, that has the words of the wanted text with any blanks between them.
pub(crate) fn whitespace_in_lines(
    lines: &Lines<'_>,
    old: &str,
    effort: &mut Effort,
) -> Vec<Range<usize>> {
    let wanted: Vec<&str> = words(old).collect();
    let mut found = Vec::new();
    for part in &lines.parts {
        let line = &lines.text[part.clone()];
        if !effort.spend(line.len()) {
            break;
        }
        if words(line).eq(wanted.iter().copied()) {
            found.push(part.clone());
            continue;
        }
        let mut from = 0;
        while let Some(within) = words_in(line, from, &wanted, effort) {
            from = within.end;
            found.push(part.start + within.start..part.start + within.end);
        }
    }
    found
}

/// The first place at or after `from` where the words stand one after the other.
fn words_in(line: &str, from: usize, wanted: &[&str], effort: &mut Effort) -> Option<Range<usize>> {
    let (first, rest) = wanted.split_first()?;
    let mut from = from;
    loop {
        let start = from + line.get(from..)?.find(first)?;
        if !effort.spend(start - from) {
            return None;
        }
        let mut end = start + first.len();
        let follows = rest.iter().all(|word| {
            let next = line[end..].trim_start_matches(is_blank);
            let is_apart = next.len() < line.len() - end;
            end = line.len() - next.len() + word.len();
            is_apart && next.starts_with(word)
        });
        if follows {
            return Some(start..end);
        }
        from = start + first.chars().next().map_or(1, char::len_utf8);
    }
}

/// As many lines that have the same words together.
pub(crate) fn whitespace_across_lines(
    lines: &Lines<'_>,
    old: &str,
    effort: &mut Effort,
) -> Vec<Range<usize>> {
    let size = old.split('\n').count();
    if size < 2 {
        return Vec::new();
    }
    let wanted: Vec<&str> = words(old).collect();
    let mut found = Vec::new();
    for start in lines.windows(size) {
        let span = lines.span(start..start + size);
        // Words are compared only as far as they are equal.
        let mut own = words(&lines.text[span.clone()]);
        let mut used = 0;
        let equal = wanted.iter().all(|word| {
            used += word.len();
            own.next() == Some(*word)
        }) && own.next().is_none();
        if !effort.spend(used) {
            break;
        }
        if equal {
            found.push(span);
        }
    }
    found
}

/// Bytes of blanks that all lines which are not blank begin with.
fn common_indent<'a>(lines: impl Iterator<Item = &'a str>) -> usize {
    let full = lines.filter(|line| !trim(line).is_empty());
    let indent = |line: &str| line.len() - line.trim_start_matches(is_blank).len();
    full.map(indent).min().unwrap_or(0)
}

/// The same once what all lines are indented by is taken off.
pub(crate) fn indentation_flexible(
    lines: &Lines<'_>,
    old: &str,
    effort: &mut Effort,
) -> Vec<Range<usize>> {
    let wanted: Vec<&str> = old.split('\n').collect();
    let indent = common_indent(wanted.iter().copied());
    let without = |line: &'_ str, indent: usize| -> Option<String> {
        if trim(line).is_empty() {
            Some(line.to_owned())
        } else {
            line.get(indent..).map(str::to_owned)
        }
    };
    let mut found = Vec::new();
    for start in lines.windows(wanted.len()) {
        let own = start..start + wanted.len();
        if !effort.spend(lines.line(start).len()) {
            break;
        }
        // Most windows differ in their first line.
        if trim(lines.line(start)) != trim(wanted[0])
            || !effort.spend(lines.span(own.clone()).len())
        {
            continue;
        }
        let own_indent = common_indent(own.clone().map(|at| lines.line(at)));
        let equal = own
            .clone()
            .zip(&wanted)
            .all(|(at, line)| without(lines.line(at), own_indent) == without(line, indent));
        if equal {
            found.push(lines.span(own));
        }
    }
    found
}

/// The text with `\n`, `\t`, `\"` and the like undone.
pub(crate) fn unescape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        let mut ahead = rest.clone();
        let meant = match (c, ahead.next()) {
            ('\\', Some('n' | '\n')) => '\n',
            ('\\', Some('t')) => '\t',
            ('\\', Some('r')) => '\r',
            ('\\', Some(plain @ ('\'' | '"' | '`' | '\\' | '$'))) => plain,
            _ => {
                out.push(c);
                continue;
            }
        };
        out.push(meant);
        rest = ahead;
    }
    if out.contains("\r\n") { out.replace("\r\n", "\n") } else { out }
}

/// What the wanted text says once its escapes are undone.
pub(crate) fn unescaped(lines: &Lines<'_>, old: &str, _: &mut Effort) -> Vec<Range<usize>> {
    let meant = unescape(old);
    if trim(&meant).is_empty() {
        return Vec::new();
    }
    occurrences(lines.text.as_bytes(), meant.as_bytes())
}

/// Windows that say the same once the file's own escapes are undone.
pub(crate) fn escaped_in_file(
    lines: &Lines<'_>,
    old: &str,
    effort: &mut Effort,
) -> Vec<Range<usize>> {
    let meant = unescape(old);
    let wanted: Vec<&str> = meant.split('\n').collect();
    equal_windows(lines, &wanted, effort, |own, wanted| {
        let own: Cow<'_, str> = if own.contains('\\') { unescape(own).into() } else { own.into() };
        own == wanted
    })
}

/// Without the blanks around the whole.
pub(crate) fn trimmed_boundary(lines: &Lines<'_>, old: &str, _: &mut Effort) -> Vec<Range<usize>> {
    let inner = trim(old);
    if inner.len() == old.len() {
        return Vec::new();
    }
    occurrences(lines.text.as_bytes(), inner.as_bytes())
}

/// Windows that are the same without the blanks around them.
pub(crate) fn trimmed_windows(
    lines: &Lines<'_>,
    old: &str,
    effort: &mut Effort,
) -> Vec<Range<usize>> {
    let inner = trim(old);
    let size = old.split('\n').count();
    let mut found = Vec::new();
    if inner.len() == old.len() {
        return found;
    }
    for start in lines.windows(size) {
        let span = lines.span(start..start + size);
        if span.len() < inner.len() {
            continue;
        }
        if !effort.spend(span.len()) {
            break;
        }
        if trim(&lines.text[span.clone()]) == inner {
            found.push(span);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    /// These two find nothing that those before them have not found; they keep their place in the
    /// order.
    #[test]
    fn windows_are_compared_without_their_common_indent_and_without_the_blanks_around() {
        let text = "if a:\n        one\n\n          two\nend\n";
        let lines = Lines::of(text);
        let found = |search: fn(&Lines<'_>, &str, &mut Effort) -> Vec<Range<usize>>, old: &str| {
            search(&lines, old, &mut Effort::for_text(text))
                .into_iter()
                .map(|part| &text[part])
                .collect::<Vec<_>>()
        };
        let block = "        one\n\n          two";
        assert_eq!(found(indentation_flexible, "  one\n\n    two"), [block]);
        assert!(found(indentation_flexible, "  one\n\n  two").is_empty());
        assert_eq!(found(trimmed_windows, "one\n\n          two "), [block]);
        assert!(found(trimmed_windows, "one").is_empty());
    }

    #[test]
    fn escapes_are_undone_once() {
        let cases = [
            (r"a\nb", "a\nb"),
            (r"a\\nb", r"a\nb"),
            (r"\t\'\`\$\q", "\t'`$\\q"),
            ("end\\", "end\\"),
            (r"\r\n", "\n"),
        ];
        for (text, expected) in cases {
            assert_eq!(unescape(text), expected, "{text}");
        }
    }
}
