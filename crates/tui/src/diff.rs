//! A patch for people: line numbers, colours, and within changed lines a mark on what changed.

use crate::style::{Color, Line, Style};
use crate::theme::Theme;
use crate::width;

enum Row<'a> {
    File(&'a str),
    Gap,
    Same(usize, &'a str),
    Removed(usize, &'a str),
    Added(usize, &'a str),
    Note(&'a str),
}

/// At most `limit` rows of it, cut to `columns`, with a last one that says how many are missing.
pub fn render(patch: &str, columns: usize, limit: usize, theme: &Theme) -> Vec<Line> {
    let rows = read(patch);
    let last = rows.iter().fold(0, |most, row| match row {
        Row::Same(n, _) | Row::Removed(n, _) | Row::Added(n, _) => most.max(*n),
        Row::File(_) | Row::Gap | Row::Note(_) => most,
    });
    let digits = last.to_string().len().max(2);
    let muted = theme.muted();
    let mut lines = Vec::new();
    let mut at = 0;
    while at < rows.len() && lines.len() < limit {
        match &rows[at] {
            Row::File(name) => {
                let name = width::cut_front(&width::harmless(name), columns);
                lines.push(Line::styled(name, Style::default().bold()));
            }
            Row::Gap => lines.push(Line::styled(format!("{:>digits$} ⋮", ""), muted)),
            Row::Note(text) => lines.push(Line::styled(width::harmless(text), muted)),
            Row::Same(n, text) => {
                let mut line = Line::styled(format!("{n:>digits$}   "), muted);
                line.push(width::harmless(text), Style::default());
                lines.push(line);
            }
            Row::Removed(..) | Row::Added(..) => {
                let removed = run(&rows[at..], |row| matches!(row, Row::Removed(..)));
                let added = run(&rows[at + removed..], |row| matches!(row, Row::Added(..)));
                lines.extend(changed(&rows[at..at + removed + added], removed, digits, theme));
                at += removed + added;
                continue;
            }
        }
        at += 1;
    }
    // A change is drawn as one; what goes beyond the limit is counted like the rest.
    let missing = rows.len() - at + lines.len().saturating_sub(limit);
    lines.truncate(limit);
    if missing > 0 {
        lines.push(Line::styled(format!("{:>digits$} … {missing} more lines", ""), muted));
    }
    lines.iter().map(|line| width::cut_line(line, columns)).collect()
}

fn run(rows: &[Row<'_>], is: impl Fn(&Row<'_>) -> bool) -> usize {
    rows.iter().take_while(|row| is(row)).count()
}

/// Removed lines and what stands in their place; where they pair up, what differs is marked.
fn changed(rows: &[Row<'_>], removed: usize, digits: usize, theme: &Theme) -> Vec<Line> {
    let pairs = removed * 2 == rows.len();
    let text = |row: &Row<'_>| match row {
        Row::Removed(_, text) | Row::Added(_, text) => width::harmless(text),
        _ => String::new(),
    };
    let mut lines = Vec::new();
    for (n, row) in rows.iter().enumerate() {
        let (number, sign, colour, mark) = match row {
            Row::Removed(number, _) => (number, '-', theme.removed, theme.removed_mark),
            Row::Added(number, _) => (number, '+', theme.added, theme.added_mark),
            _ => continue,
        };
        let other = if n < removed { n + removed } else { n - removed };
        let own = text(row);
        let mut line = Line::styled(format!("{number:>digits$} "), theme.muted());
        line.push(format!("{sign} "), Style::fg(colour));
        let plain = Style::fg(colour);
        match pairs.then(|| differs(&own, &text(&rows[other]))).flatten() {
            Some((from, to)) => {
                line.push(&own[..from], plain);
                line.push(&own[from..to], marked(plain, mark));
                line.push(&own[to..], plain);
            }
            None => line.push(own, plain),
        }
        lines.push(line);
    }
    lines
}

fn marked(style: Style, mark: Color) -> Style {
    // On a colour of the terminal's own nothing else is sure to be readable.
    match mark {
        Color::Rgb(..) => style.on(mark),
        Color::Default | Color::Index(_) => style.reverse(),
    }
}

/// The part of `own` that is not in `other`, unless nearly all of it is.
fn differs(own: &str, other: &str) -> Option<(usize, usize)> {
    let same = |(a, b): &(char, char)| a == b;
    let front: usize =
        own.chars().zip(other.chars()).take_while(same).map(|(c, _)| c.len_utf8()).sum();
    let (own_rest, other_rest) = (&own[front..], &other[front..]);
    let back = own_rest.chars().rev().zip(other_rest.chars().rev()).take_while(same);
    let back: usize = back.map(|(c, _)| c.len_utf8()).sum();
    let to = own.len() - back;
    let kept = front + back;
    (front < to && kept * 3 > own.len()).then_some((front, to))
}

fn read(patch: &str) -> Vec<Row<'_>> {
    let mut rows: Vec<Row<'_>> = Vec::new();
    let (mut old, mut new) = (0, 0);
    // Lines of the hunk that are still to come: a removed line may look like anything.
    let (mut old_left, mut new_left) = (0_usize, 0_usize);
    let files = patch.lines().filter(|line| line.starts_with("+++ ")).count();
    for line in patch.lines() {
        if old_left + new_left > 0 {
            let text = line.get(1..).unwrap_or_default();
            match line.as_bytes().first() {
                Some(b'+') => {
                    rows.push(Row::Added(new, text));
                    (new, new_left) = (new + 1, new_left.saturating_sub(1));
                    continue;
                }
                Some(b'-') => {
                    rows.push(Row::Removed(old, text));
                    (old, old_left) = (old + 1, old_left.saturating_sub(1));
                    continue;
                }
                Some(b' ') | None => {
                    rows.push(Row::Same(new, text));
                    (old, new) = (old + 1, new + 1);
                    (old_left, new_left) = (old_left.saturating_sub(1), new_left.saturating_sub(1));
                    continue;
                }
                _ => {}
            }
        }
        if let Some(numbers) = line.strip_prefix("@@ ") {
            if matches!(rows.last(), Some(Row::Same(..) | Row::Added(..) | Row::Removed(..))) {
                rows.push(Row::Gap);
            }
            ((old, old_left), (new, new_left)) = places(numbers);
        } else if let Some(name) = line.strip_prefix("+++ ") {
            if files > 1 {
                rows.push(Row::File(name.trim().trim_start_matches("b/")));
            }
        } else if !["--- ", "\\", "===", "Index: ", "diff ", "index "]
            .iter()
            .any(|p| line.starts_with(p))
        {
            rows.push(Row::Note(line));
        }
    }
    rows
}

/// Where a hunk begins and how long it is, on both sides: `-12,3 +12,4 @@`.
fn places(numbers: &str) -> ((usize, usize), (usize, usize)) {
    let mut parts = numbers.split(' ').map(|part| {
        let mut digits = part.trim_start_matches(['-', '+']).split(',');
        let mut next = || digits.next().and_then(|n| n.parse().ok()).unwrap_or(1);
        (next(), next())
    });
    (parts.next().unwrap_or((1, 1)), parts.next().unwrap_or((1, 1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATCH: &str = "--- a/x.rs\n+++ b/x.rs\n@@ -9,3 +9,3 @@\n one\n-let total = 1;\n+let total = 2;\n two\n@@ -40,1 +40,2 @@\n three\n+four\n";

    fn texts(lines: &[Line]) -> Vec<String> {
        lines.iter().map(Line::text).collect()
    }

    #[test]
    fn lines_have_their_numbers_and_what_changed_in_them_is_marked() {
        let theme = Theme::built_in("nord", true).unwrap();
        let lines = render(PATCH, 60, 50, &theme);
        assert_eq!(
            texts(&lines),
            [
                " 9   one",
                "10 - let total = 1;",
                "10 + let total = 2;",
                "11   two",
                "   ⋮",
                "40   three",
                "41 + four"
            ]
        );
        let marked = lines[2].spans.iter().find(|s| s.style.bg != Color::Default).unwrap();
        assert_eq!(marked.text, "2");
    }

    #[test]
    fn what_is_too_long_is_counted_and_what_is_too_wide_is_cut() {
        let lines = render(PATCH, 14, 2, &Theme::default());
        assert_eq!(texts(&lines), [" 9   one", "10 - let tota…", "   … 5 more l…"]);
        assert!(render("no patch at all", 20, 5, &Theme::default()).len() == 1);
    }
}
