//! What a model is shown when its text was not found, or found more than once: the lines of the file
//! that it may have meant, with their numbers.

use std::collections::HashMap;
use std::ops::Range;

use similar::{ChangeTag, TextDiff};

use super::lines::{Effort, Lines, trim, wanted_lines};
use super::view::View;

/// Lines of a difference that are shown.
const SHOWN_LINES: usize = 30;

/// Characters of a line that are shown.
const SHOWN_CHARS: usize = 160;

/// Places that an error about several matches shows.
const SHOWN_PLACES: usize = 10;

/// Lines that are compared letter by letter where no line is the same.
const COMPARED_LINES: usize = 20_000;

/// Below this a line is not alike at all.
const ALIKE: f64 = 0.5;

/// The part of the file most like `old`, as a difference from it.
pub(crate) fn closest(view: &View<'_>, old: &str, whose: &str) -> Option<String> {
    let lines = Lines::of(str::from_utf8(&view.bytes).ok()?);
    let wanted = wanted_lines(old);
    let start = by_equal_lines(&lines, &wanted).or_else(|| by_alike_line(&lines, &wanted))?;
    let end = (start + wanted.len()).min(lines.count());
    // What is shown is soon full; a difference of many lines would take long.
    let compared = SHOWN_LINES * 2;
    let own: Vec<&str> = (start..end).take(compared).map(|at| lines.line(at)).collect();
    let wanted = &wanted[..wanted.len().min(compared)];
    let head = format!(
        "The closest part is lines {}-{end} ('-' is in the file, '+' is {whose}):",
        start + 1
    );
    let mut shown = vec![head];
    let mut number = start;
    let diff = TextDiff::from_slices(&own, wanted);
    for change in diff.iter_all_changes() {
        let (sign, in_file) = match change.tag() {
            ChangeTag::Equal => (' ', true),
            ChangeTag::Delete => ('-', true),
            ChangeTag::Insert => ('+', false),
        };
        number += usize::from(in_file);
        let place = if in_file { number.to_string() } else { String::new() };
        if shown.len() <= SHOWN_LINES {
            shown.push(format!("{sign}{place:>5} {}", cut(change.value())));
        }
    }
    Some(shown.join("\n"))
}

/// Where most of the wanted lines stand, but for blanks at their ends.
fn by_equal_lines(lines: &Lines<'_>, wanted: &[&str]) -> Option<usize> {
    let mut places: HashMap<&str, Vec<usize>> = HashMap::new();
    for (at, line) in wanted.iter().enumerate().filter(|(_, line)| !trim(line).is_empty()) {
        let known = places.entry(trim(line)).or_default();
        // A line that is repeated says little about where it belongs.
        if known.len() < 4 {
            known.push(at);
        }
    }
    let mut votes: HashMap<usize, usize> = HashMap::new();
    for own in 0..lines.count() {
        for at in places.get(trim(lines.line(own))).into_iter().flatten() {
            // A lone brace is everywhere: long lines count for more.
            let weight = trim(lines.line(own)).len().min(40);
            *votes.entry(own.saturating_sub(*at)).or_default() += weight;
        }
    }
    let best = votes.into_iter().max_by_key(|(start, votes)| (*votes, std::cmp::Reverse(*start)));
    best.filter(|(_, votes)| *votes > 3).map(|(start, _)| start)
}

/// Where the line stands that is most like the longest wanted one.
fn by_alike_line(lines: &Lines<'_>, wanted: &[&str]) -> Option<usize> {
    let (at, longest) = wanted.iter().enumerate().max_by_key(|(_, line)| trim(line).len())?;
    let longest = trim(longest);
    let mut effort = Effort::for_text(lines.text);
    let mut best: Option<(f64, usize)> = None;
    for own in 0..lines.count().min(COMPARED_LINES) {
        let line = trim(lines.line(own));
        let (short, long) = (line.len().min(longest.len()), line.len().max(longest.len()));
        // Too different in length to be alike.
        if short * 2 < long || long > 2_000 || !effort.spend(short * long) {
            continue;
        }
        let alike = strsim::normalized_levenshtein(line, longest);
        if alike > best.map_or(ALIKE, |(most, _)| most) {
            best = Some((alike, own));
        }
    }
    best.map(|(_, own)| own.saturating_sub(at))
}

/// The places with their line numbers and how they begin.
pub(crate) fn candidates(view: &View<'_>, parts: &[Range<usize>]) -> (String, String) {
    let (mut line, mut from) = (1, 0);
    let mut numbers = Vec::new();
    let mut beginnings = Vec::new();
    for part in parts.iter().take(SHOWN_PLACES) {
        let above = &view.bytes[from..part.start];
        line += memchr::memchr_iter(b'\n', above).count();
        from = part.start;
        let start = memchr::memrchr(b'\n', &view.bytes[..from]).map_or(0, |at| at + 1);
        let rest = &view.bytes[start..];
        let end = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
        let text = String::from_utf8_lossy(&rest[..end.min(SHOWN_CHARS * 4)]).into_owned();
        numbers.push(line.to_string());
        beginnings.push(format!("{line}: {}", cut(&text)));
    }
    if parts.len() > SHOWN_PLACES {
        numbers.push("…".to_owned());
    }
    (numbers.join(", "), beginnings.join("\n"))
}

fn cut(line: &str) -> String {
    match line.char_indices().nth(SHOWN_CHARS) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line.to_owned(),
    }
}
