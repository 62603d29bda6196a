//! One replacement in a file that is not held: every match contains certain words of the wanted text
//! as they are, so only the lines around those words are given to the matchers.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;

use super::apply::{Applied, LEFT_SHOWN, Replacement, is_plain, is_wide, own_text};
use super::excerpt::{Excerpt, around, is_utf8, scan};
use super::lines::{is_blank, trim, unescape, wanted_lines};
use super::matchers::{Hit, Miss, find_exact, find_tolerant};
use super::view::View;
use crate::rewrite::{BOM, Splice};

/// Words that are tried, the longest first, until one is rare enough.
const WORDS_TRIED: usize = 8;

/// Lines around a change that its diff shows, and one more.
const LEAST_LINES_AROUND: usize = 6;

/// A change that is found, and what the file has around it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Made {
    pub(crate) splices: Vec<Splice>,
    pub(crate) applied: Applied,
    pub(crate) around: Vec<Excerpt>,
}

/// The change that the replacement makes. Nothing where it cannot be told in this way; then the file
/// has to be held, which also tells what is wrong.
pub(crate) fn apply_large(file: &File, replacement: &Replacement) -> Option<Made> {
    // A file that cannot be read is an error there too, with its reason.
    try_apply(file, replacement).ok().flatten()
}

fn try_apply(file: &File, replacement: &Replacement) -> io::Result<Option<Made>> {
    let Replacement { old, new, all } = replacement;
    let mut head = [0; BOM.len()];
    let got = file.read_at(&mut head, 0)?;
    let head = &head[..got];
    if replacement.check().is_err() || old.is_empty() || is_wide(head) {
        return Ok(None);
    }
    // What is no text is only changed exactly, and ASCII by ASCII.
    let plain = is_plain(old) && is_plain(new);
    if !plain && !is_utf8(file)? {
        return Ok(None);
    }
    let has_mark = head.starts_with(BOM);
    let (old, new) = (own_text(old, has_mark), own_text(new, has_mark));
    let Some(line) = old.split('\n').max_by_key(|line| line.len()) else { return Ok(None) };
    let Some(places) = Places::of(file, line, &old)? else { return Ok(None) };
    match places.change(&old, &new, |text, old| find_exact(text, old, *all)) {
        Err(Miss::Nowhere) => {}
        made => return Ok(made.ok().flatten()),
    }
    if trim(&old).is_empty() || (plain && !is_utf8(file)?) {
        return Ok(None);
    }
    for word in words_of_every_match(&old) {
        if let Some(places) = Places::of(file, &word, &old)? {
            let made = places.change(&old, &new, |text, old| find_tolerant(text, old, *all));
            return Ok(made.ok().flatten());
        }
    }
    Ok(None)
}

/// Words that a match has as they are, whatever matcher finds it, the longest first: without blanks, and
/// without what an escape may stand for. Of a block only the first and the last line need be the same.
fn words_of_every_match(old: &str) -> Vec<String> {
    let lines = wanted_lines(old);
    let is_block = old.split('\n').count() >= 3;
    let lines: Vec<&str> = match lines.as_slice() {
        [first, .., last] if is_block => vec![first, last],
        all => all.to_vec(),
    };
    let parts = |c: char| is_blank(c) || "'\"`\\$".contains(c);
    let words = lines.iter().flat_map(|line| {
        let meant = unescape(line);
        meant.split(parts).filter(|word| !word.is_empty()).map(str::to_owned).collect::<Vec<_>>()
    });
    let mut words: Vec<String> = words.collect();
    words.sort_by_key(|word| std::cmp::Reverse(word.len()));
    words.dedup();
    words.truncate(WORDS_TRIED);
    words
}

/// Where matches can be.
struct Places {
    excerpts: Vec<Excerpt>,
    /// Whether any line of the file ends with a carriage return.
    has_returns: bool,
}

impl Places {
    fn of(file: &File, word: &str, old: &str) -> io::Result<Option<Self>> {
        let Some(found) = scan(file, word.as_bytes())? else { return Ok(None) };
        let lines = |text: &str| text.split('\n').count();
        // A block may be longer than what was asked for by a quarter.
        let reach = lines(old).max(lines(&unescape(old))) * 5 / 4 + 2;
        let excerpts = around(file, &found.hits, reach.max(LEAST_LINES_AROUND))?;
        Ok(excerpts.map(|excerpts| Self { excerpts, has_returns: found.has_returns }))
    }

    fn change(
        self,
        old: &str,
        new: &str,
        find: impl FnOnce(&[u8], &str) -> Result<Hit, Miss>,
    ) -> Result<Option<Made>, Miss> {
        let Self { excerpts, has_returns } = self;
        let views: Vec<View<'_>> = excerpts.iter().map(view).collect();
        let (text, starts) = joined(&excerpts, &views, old);
        let hit = find(&text, old)?;
        let place = |part: &Range<usize>| -> Option<(usize, Range<usize>)> {
            let at = starts.partition_point(|start| *start <= part.start).checked_sub(1)?;
            let part = part.start - starts[at]..part.end - starts[at];
            (part.end <= views[at].bytes.len()).then_some((at, part))
        };
        let line =
            |(at, part): (usize, Range<usize>)| excerpts[at].line + views[at].line_of(part.start);
        let splice = |(at, part): (usize, Range<usize>)| {
            let new = views[at].ends_within(&part, has_returns).put_into(new).into_bytes();
            let range = views[at].in_file(&part);
            let shift = excerpts[at].start;
            Splice { range: range.start + shift..range.end + shift, new }
        };
        let all = |parts: &[Range<usize>]| parts.iter().map(place).collect::<Option<Vec<_>>>();
        let left = &hit.left[..hit.left.len().min(LEFT_SHOWN)];
        let (Some(parts), Some(left)) = (all(&hit.parts), all(left)) else { return Ok(None) };
        let Some(first) = parts.first().cloned() else { return Ok(None) };
        let applied = Applied {
            matcher: Some(hit.matcher),
            count: parts.len(),
            line: line(first),
            left: left.into_iter().map(line).collect(),
        };
        let splices = parts.into_iter().map(splice).collect();
        drop(views);
        Ok(Some(Made { splices, applied, around: excerpts }))
    }
}

fn view(excerpt: &Excerpt) -> View<'_> {
    // Only the file's first bytes can be its mark.
    if excerpt.start == 0 { View::of(&excerpt.bytes) } else { View::of_body(&excerpt.bytes, 0) }
}

/// The excerpts as one text, and where each begins in it. A line between them that the wanted text does
/// not have keeps matches from reaching over what is left out.
fn joined(excerpts: &[Excerpt], views: &[View<'_>], old: &str) -> (Vec<u8>, Vec<usize>) {
    let nuls = old.split(|c| c != '\0').map(str::len).max().unwrap_or(0);
    let between = [vec![0; nuls + 1], b"\n".to_vec()].concat();
    let (mut text, mut starts) = (Vec::new(), Vec::new());
    for (excerpt, view) in excerpts.iter().zip(views) {
        starts.push(text.len());
        text.extend_from_slice(&view.bytes);
        if !excerpt.is_end {
            text.extend_from_slice(&between);
        }
    }
    (text, starts)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use proptest::prelude::*;

    use super::super::apply::apply_all;
    use super::super::matchers::EXACT;
    use super::*;
    use crate::diff::{change, change_within};

    fn file(content: &[u8]) -> File {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(content).unwrap();
        file
    }

    fn line() -> impl Strategy<Value = String> {
        prop_oneof![
            1 => Just(String::new()),
            1 => Just("{".to_owned()),
            1 => Just("  }".to_owned()),
            6 => "[ \t]{0,3}[abcdé“]{1,4}( {1,2}[ab\\\\n'x]{1,3}){0,2}[ ]{0,1}",
        ]
    }

    fn content() -> impl Strategy<Value = String> {
        let ended = (line(), prop_oneof![3 => Just("\n"), 1 => Just("\r\n")]);
        (any::<bool>(), prop::collection::vec(ended, 0..60), any::<bool>()).prop_map(
            |(mark, lines, open)| {
                let mut text = if mark { "\u{feff}".to_owned() } else { String::new() };
                lines.iter().for_each(|(line, end)| text.extend([line.as_str(), end]));
                if open {
                    text.truncate(text.trim_end_matches(['\r', '\n']).len());
                }
                text
            },
        )
    }

    /// A part of the content, with something changed.
    fn wanted(content: String) -> impl Strategy<Value = (String, String)> {
        let lines = content.split_inclusive('\n').count();
        (0..=lines, 1..8_usize, 0..9_u8, 0..3_usize).prop_map(move |(from, count, twist, cut)| {
            let part: String = content.split_inclusive('\n').skip(from).take(count).collect();
            let part: String = part.chars().skip(cut).collect();
            let part = match twist {
                0 => part,
                1 => part.replace("\r\n", "\n"),
                2 => part.replace(' ', "  "),
                3 => format!("\n{part}\n"),
                4 => part.replace('\n', "\\n"),
                5 => part.lines().map(str::trim).collect::<Vec<_>>().join("\n"),
                6 => part.trim_end().replacen('a', "b", 1),
                7 => part.replace('\'', "\\'"),
                _ => part.trim().to_owned(),
            };
            (content.clone(), part)
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

        /// What is found without holding the file is what is found with it.
        #[test]
        fn a_large_file_is_changed_as_a_small_one_is(
            (content, old) in content().prop_flat_map(wanted),
            new in "[xyz]{1,2}(\n[xyz]{1,2}){0,2}",
            all in any::<bool>(),
        ) {
            let replacement = Replacement { old, new, all };
            let held = apply_all("f", Some(content.as_bytes()), std::slice::from_ref(&replacement));
            let Some(made) = apply_large(&file(content.as_bytes()), &replacement) else {
                return Ok(());
            };
            let (splices, applied) = held.map_err(|e| TestCaseError::fail(e.to_string()))?;
            prop_assert_eq!(&made.splices, &splices);
            prop_assert_eq!(&[made.applied][..], &applied);
            let shown = change_within("f", &made.around, &splices);
            let whole = change("f", content.as_bytes(), &splices);
            prop_assert_eq!(shown.patch, whole.patch);
            prop_assert_eq!((shown.additions, shown.deletions), (whole.additions, whole.deletions));
        }
    }

    /// The property would hold for a function that never finds anything.
    #[test]
    fn matches_of_all_kinds_are_found_without_holding_the_file() {
        let lines: String = (0..20_000).map(|n| format!("    line {n} \\'x\\' \tend\n")).collect();
        let cases = [
            ("line 777 \\'x\\' \tend\n    line 778", EXACT),
            ("line 777 \\'x\\' \tend\nline 778 \\'x\\' \tend", "line-trimmed"),
            ("line 777   \\'x\\'", "whitespace-normalized"),
            ("    line 777 'x' \\tend", "escape-normalized"),
            ("\nline 777 \\'x\\' \tend\n    line 778 \\'x\\'\n", "trimmed-boundary"),
            (
                "line 777 \\'x\\' \tend\nlime 778 \\'x\\' \tend\nline 779 \\'x\\' \tend",
                "block-anchor",
            ),
        ];
        for ends in ["\n", "\r\n"] {
            let content = lines.replace('\n', ends);
            for (old, matcher) in cases {
                let replacement = Replacement { old: old.into(), new: "new\n".into(), all: false };
                let made = apply_large(&file(content.as_bytes()), &replacement);
                let Some(made) = made else { panic!("{matcher} was not found") };
                assert_eq!(made.applied.matcher, Some(matcher));
                assert_eq!(made.applied.line, 778, "{matcher}");
                let held = apply_all("f", Some(content.as_bytes()), &[replacement]).unwrap();
                assert_eq!(made.splices, held.0, "{matcher}");
            }
        }
    }

    #[test]
    fn what_is_everywhere_nowhere_or_no_text_is_left_to_the_other_way() {
        let many = "the same line\n".repeat(5_000);
        let binary = [many.as_bytes(), b"\xff needle \xff"].concat();
        let long = [b"x".repeat(9 << 20), b" needle".to_vec()].concat();
        let cases: [(&[u8], &str, bool); 6] = [
            (many.as_bytes(), "the same line", false),
            (many.as_bytes(), "missing", false),
            (many.as_bytes(), " \n ", false),
            (&binary, "needle", true),
            (&binary, "a  needle", false),
            (&long, "needle", false),
        ];
        for (content, old, found) in cases {
            let replacement = Replacement { old: old.into(), new: "new".into(), all: false };
            assert_eq!(apply_large(&file(content), &replacement).is_some(), found, "{old:?}");
        }
    }
}
