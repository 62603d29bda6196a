//! Where in a file the text stands that a model means. A matcher only finds; what it finds is
//! replaced as it is, and nothing around it.
//!
//! They are tried in this order, and the first that finds anything decides: `exact`, `line-trimmed`,
//! `block-anchor`, `whitespace-normalized`, `indentation-flexible`, `escape-normalized`,
//! `trimmed-boundary`, `context-aware`. The ninth, `multi-occurrence`, is every exact occurrence for
//! `replaceAll`, which the first gives already.

use std::ops::Range;

use memchr::memmem;

use super::blocks::{block_anchor, context_aware};
use super::lines::{
    Effort, Lines, escaped_in_file, indentation_flexible, line_trimmed, trim, trimmed_boundary,
    trimmed_windows, unescape, unescaped, whitespace_across_lines, whitespace_in_lines,
};

pub(crate) const EXACT: &str = "exact";

type Search = fn(&Lines<'_>, &str, &mut Effort) -> Vec<Range<usize>>;

const TOLERANT: &[(&str, Search)] = &[
    ("line-trimmed", line_trimmed),
    ("block-anchor", block_anchor),
    ("whitespace-normalized", whitespace_in_lines),
    ("whitespace-normalized", whitespace_across_lines),
    ("indentation-flexible", indentation_flexible),
    (ESCAPES, unescaped),
    (ESCAPES, escaped_in_file),
    ("trimmed-boundary", trimmed_boundary),
    ("trimmed-boundary", trimmed_windows),
    ("context-aware", context_aware),
];

const ESCAPES: &str = "escape-normalized";

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Hit {
    pub(crate) matcher: &'static str,
    /// In order, apart from each other.
    pub(crate) parts: Vec<Range<usize>>,
    /// What the matcher would have taken too, but for its text: not the same as that of the parts.
    pub(crate) left: Vec<Range<usize>>,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Miss {
    Nowhere,
    /// Several places, and nothing says which.
    Ambiguous(Hit),
    /// What was found is far larger than what was asked for.
    Disproportionate(Range<usize>),
}

/// Finds `old` in a text. Neither may have carriage returns before line feeds.
pub(crate) fn find(text: &[u8], old: &str, all: bool) -> Result<Hit, Miss> {
    match find_exact(text, old, all) {
        Err(Miss::Nowhere) => find_tolerant(text, old, all),
        found => found,
    }
}

pub(crate) fn find_exact(text: &[u8], old: &str, all: bool) -> Result<Hit, Miss> {
    let exact = occurrences(text, old.as_bytes());
    if exact.is_empty() { Err(Miss::Nowhere) } else { decide(EXACT, exact, Vec::new(), all) }
}

/// As [`find`], where `old` does not stand as it is.
pub(crate) fn find_tolerant(text: &[u8], old: &str, all: bool) -> Result<Hit, Miss> {
    // Blank text would match anywhere; bytes that are no text are only matched as they are.
    let Ok(text) = str::from_utf8(text) else { return Err(Miss::Nowhere) };
    if trim(old).is_empty() {
        return Err(Miss::Nowhere);
    }
    let lines = Lines::of(text);
    let mut effort = Effort::for_text(text);
    for (matcher, search) in TOLERANT {
        let parts = search(&lines, old, &mut effort);
        let Some(first) = parts.first() else { continue };
        let asked = if *matcher == ESCAPES { unescape(old) } else { old.to_owned() };
        if is_disproportionate(&text[first.clone()], &asked) {
            return Err(Miss::Disproportionate(first.clone()));
        }
        // The same text elsewhere is as good a match, also where a line goes on around it.
        let same = occurrences(text.as_bytes(), text[first.clone()].as_bytes());
        let others = parts.iter().filter(|part| !same.contains(part)).cloned().collect();
        let parts = if all || parts.len() == 1 { same } else { parts };
        return decide(matcher, parts, others, all);
    }
    Err(Miss::Nowhere)
}

fn decide(
    matcher: &'static str,
    parts: Vec<Range<usize>>,
    left: Vec<Range<usize>>,
    all: bool,
) -> Result<Hit, Miss> {
    let is_sure = all || parts.len() == 1;
    let hit = Hit { matcher, parts, left };
    if is_sure { Ok(hit) } else { Err(Miss::Ambiguous(hit)) }
}

pub(crate) fn occurrences(text: &[u8], wanted: &[u8]) -> Vec<Range<usize>> {
    if wanted.is_empty() {
        return Vec::new();
    }
    memmem::find_iter(text, wanted).map(|at| at..at + wanted.len()).collect()
}

/// A tolerant match that swallows much more than was shown to it would delete what the model has
/// never mentioned.
fn is_disproportionate(found: &str, asked: &str) -> bool {
    let lines = |text: &str| text.split('\n').count();
    let length = |text: &str| trim(text).encode_utf16().count();
    let (found_lines, asked_lines) = (lines(found), lines(asked));
    if found_lines >= (asked_lines + 3).max(asked_lines * 2) {
        return true;
    }
    let asked_length = length(asked);
    asked_lines > 1 && length(found) > (asked_length + 500).max(asked_length * 4)
}
