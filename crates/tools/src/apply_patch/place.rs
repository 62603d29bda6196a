//! Where the hunks of an update belong in a file, and what they change there. Lines that a hunk keeps
//! stay as the file has them.

use std::ops::Range;

use super::grammar::{Hunk, HunkLine};
use crate::edit::closest::closest;
use crate::edit::lines::Effort;
use crate::edit::view::{Ends, View};
use crate::rewrite::{BOM, Splice};

/// The lines of a file.
struct Lines<'a> {
    text: &'a str,
    /// With their ends.
    parts: Vec<Range<usize>>,
    /// Where the first begins: after a byte-order mark.
    start: usize,
}

impl<'a> Lines<'a> {
    fn of(text: &'a str) -> Self {
        let start = if text.as_bytes().starts_with(BOM) { BOM.len() } else { 0 };
        let mut at = start;
        let part = |line: &str| {
            at += line.len();
            at - line.len()..at
        };
        let parts = text[start..].split_inclusive('\n').map(part).collect();
        Self { text, parts, start }
    }

    /// Without its end.
    fn line(&self, at: usize) -> &'a str {
        let Some(part) = self.parts.get(at) else { return "" };
        let whole = &self.text[part.clone()];
        let line = whole.strip_suffix('\n').unwrap_or(whole);
        if line.len() < whole.len() { line.strip_suffix('\r').unwrap_or(line) } else { line }
    }

    fn end_of(&self, at: usize) -> Option<Ends> {
        let whole = &self.text[self.parts.get(at)?.clone()];
        match (whole.ends_with("\r\n"), whole.ends_with('\n')) {
            (true, _) => Some(Ends::CrLf),
            (false, true) => Some(Ends::Lf),
            (false, false) => None,
        }
    }

    /// Where a line begins; behind the last, the end of the file.
    fn begin(&self, at: usize) -> usize {
        match self.parts.get(at) {
            Some(part) => part.start,
            None => self.parts.last().map_or(self.start, |last| last.end),
        }
    }

    fn count(&self) -> usize {
        self.parts.len()
    }
}

/// How two lines may differ and still be the same, from strict to lenient.
const PASSES: [fn(&str, &str) -> bool; 4] = [
    |own, wanted| own == wanted,
    |own, wanted| own.trim_end() == wanted.trim_end(),
    |own, wanted| own.trim() == wanted.trim(),
    |own, wanted| plain(own.trim()) == plain(wanted.trim()),
];

/// With typographic quotes, dashes and blanks made plain.
fn plain(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    for c in line.chars() {
        match c {
            '\u{2018}'..='\u{201b}' => out.push('\''),
            '\u{201c}'..='\u{201f}' => out.push('"'),
            '\u{2010}'..='\u{2015}' | '\u{2212}' => out.push('-'),
            '\u{2026}' => out.push_str("..."),
            '\u{a0}' | '\u{2002}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}' => {
                out.push(' ');
            }
            other => out.push(other),
        }
    }
    out
}

/// The first place at or after `from` where all wanted lines stand; the whole file is searched
/// strictly before it is searched leniently.
fn seek(lines: &Lines<'_>, wanted: &[&str], from: usize, at_end: bool) -> Option<usize> {
    let last = lines.count().checked_sub(wanted.len())?;
    let from = if at_end { last.max(from) } else { from };
    let mut effort = Effort::for_text(lines.text);
    PASSES.iter().find_map(|same| {
        let mut fits = |start: usize| {
            wanted.iter().enumerate().all(|(at, line)| {
                let own = lines.line(start + at);
                effort.spend(own.len()) && same(own, line)
            })
        };
        (from..last + 1).find(|start| fits(*start))
    })
}

/// The changes that the hunks make to `text`, or why one does not fit.
pub(crate) fn place(shown: &str, text: &str, hunks: &[Hunk]) -> Result<Vec<Splice>, String> {
    let lines = Lines::of(text);
    let mut changes: Vec<LineChange> = Vec::new();
    let mut position = 0;
    for hunk in hunks {
        for header in &hunk.headers {
            let found = seek(&lines, &[header], position, false);
            position =
                1 + found.ok_or_else(|| format!("Failed to find context '{header}' in {shown}"))?;
        }
        let (hunk_lines, start) =
            find_hunk(&lines, hunk, position).ok_or_else(|| not_found(shown, text, &hunk.lines))?;
        let mut now = start;
        let mut open: Option<LineChange> = None;
        for line in hunk_lines {
            let change = match line {
                HunkLine::Keep(_) => {
                    changes.extend(open.take());
                    now += 1;
                    continue;
                }
                _ => {
                    open.get_or_insert_with(|| LineChange { removed: now..now, added: Vec::new() })
                }
            };
            match line {
                HunkLine::Add(text) => change.added.push(text),
                HunkLine::Remove(_) | HunkLine::Keep(_) => {
                    now += 1;
                    change.removed.end = now;
                }
            }
        }
        changes.extend(open);
        // An addition at the end leaves what is before it to the hunks that follow.
        if !old_lines(&hunk.lines).is_empty() {
            position = now;
        }
    }
    changes.sort_by_key(|change| change.removed.start);
    Ok(splices(&lines, &changes))
}

/// Lines that are replaced by others.
struct LineChange<'a> {
    removed: Range<usize>,
    added: Vec<&'a str>,
}

fn old_lines(lines: &[HunkLine]) -> Vec<&str> {
    let old = lines.iter().filter_map(|line| match line {
        HunkLine::Keep(text) | HunkLine::Remove(text) => Some(text.as_str()),
        HunkLine::Add(_) => None,
    });
    old.collect()
}

/// The lines of the hunk that count, and where they belong.
fn find_hunk<'h>(
    lines: &Lines<'_>,
    hunk: &'h Hunk,
    position: usize,
) -> Option<(Vec<&'h HunkLine>, usize)> {
    let mut kept: Vec<&HunkLine> = hunk.lines.iter().collect();
    let mut old = old_lines(&hunk.lines);
    if old.is_empty() {
        // Nothing to look for: after its header, or at the end.
        let at = if hunk.headers.is_empty() || hunk.is_at_end { lines.count() } else { position };
        return Some((kept, at));
    }
    loop {
        if let Some(start) = seek(lines, &old, position, hunk.is_at_end) {
            return Some((kept, start));
        }
        // Empty lines at the end may only have been the distance to what follows in the patch.
        if old.len() < 2 || !old.pop()?.is_empty() {
            return None;
        }
        let last = kept.iter().rposition(|line| !matches!(line, HunkLine::Add(_)))?;
        let was_removed = matches!(kept.remove(last), HunkLine::Remove(_));
        if was_removed && matches!(kept.last(), Some(HunkLine::Add(text)) if text.is_empty()) {
            kept.pop();
        }
    }
}

fn splices(lines: &Lines<'_>, changes: &[LineChange<'_>]) -> Vec<Splice> {
    let usual = lines.end_of(0).unwrap_or(Ends::Lf);
    let count = lines.count();
    // A last line without an end gets one, unless it goes.
    let is_open = count > 0 && lines.end_of(count - 1).is_none();
    let mut owes_end =
        is_open && !changes.iter().any(|change| change.removed.contains(&(count - 1)));
    let mut splices = Vec::with_capacity(changes.len() + 1);
    for LineChange { removed, added } in changes {
        let mut new = Vec::new();
        if removed.start == count && owes_end {
            new.extend_from_slice(usual.text().as_bytes());
            owes_end = false;
        }
        for (at, line) in added.iter().enumerate() {
            // As the line ended that it stands for, or the one before, or the one after.
            let instead = (removed.start + at).min(removed.end.saturating_sub(1));
            let near =
                if removed.is_empty() { removed.start.checked_sub(1) } else { Some(instead) };
            let end = near
                .and_then(|near| lines.end_of(near))
                .or_else(|| lines.end_of(removed.start.checked_sub(1)?))
                .or_else(|| lines.end_of(removed.end))
                .unwrap_or(usual);
            new.extend_from_slice(line.as_bytes());
            new.extend_from_slice(end.text().as_bytes());
        }
        splices.push(Splice { range: lines.begin(removed.start)..lines.begin(removed.end), new });
    }
    if owes_end {
        let end = lines.begin(count);
        splices.push(Splice { range: end..end, new: usual.text().as_bytes().to_vec() });
    }
    splices
}

fn not_found(shown: &str, text: &str, lines: &[HunkLine]) -> String {
    let old = old_lines(lines).join("\n");
    let near = closest(&View::of(text.as_bytes()), &old, "in your patch");
    let near = near.map(|near| format!("\n\n{near}")).unwrap_or_default();
    format!("Failed to find expected lines in {shown}:\n{old}{near}")
}
