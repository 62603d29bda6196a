//! Diffs for people who decide, and for the record.

use std::ops::Range;
use std::time::{Duration, Instant};

use memchr::{memchr, memchr_iter, memrchr};
use similar::{ChangeTag, TextDiff};

use crate::edit::excerpt::Excerpt;
use crate::rewrite::{BOM, Splice, pieces};

/// Bytes of a diff that are kept. Nobody decides by reading more.
const DIFF_CAP_BYTES: usize = 64 << 10;

/// A diff that takes longer is made coarser: it must not hold up the call.
const DIFF_TIME: Duration = Duration::from_millis(100);

/// Bytes of one changed place that are compared line by line.
const PLACE_CAP_BYTES: usize = 4 << 20;

/// Unchanged lines shown around a change.
const CONTEXT_LINES: usize = 4;

#[derive(Debug, Clone, Default)]
pub(crate) struct Change {
    pub(crate) patch: String,
    pub(crate) additions: usize,
    pub(crate) deletions: usize,
}

/// The changes to `old` as a unified patch. Only their surroundings are looked at, so that it costs
/// what the change costs and not what the file does. Bytes that are no text are shown replaced.
pub(crate) fn change(shown: &str, old: &[u8], splices: &[Splice]) -> Change {
    let mut making = Making::default();
    making.add(old, 0, splices);
    making.finish(shown)
}

/// As [`change`], of a file of which only the lines around the changes are known.
pub(crate) fn change_within(shown: &str, around: &[Excerpt], splices: &[Splice]) -> Change {
    let mut making = Making::default();
    let mut rest = splices;
    for Excerpt { start, line, bytes, .. } in around {
        let inside = rest.partition_point(|splice| splice.range.start < start + bytes.len());
        let (own, later) = rest.split_at(inside);
        rest = later;
        making.is_first = *start == 0;
        making.add(bytes, *line, &shifted(own, *start));
    }
    making.finish(shown)
}

/// A patch that grows.
struct Making {
    change: Change,
    started: Instant,
    /// Lines that the new file has more than the old one so far.
    moved: isize,
    hidden: usize,
    /// Whether what is added begins the file.
    is_first: bool,
}

impl Default for Making {
    fn default() -> Self {
        let (change, started) = (Change::default(), Instant::now());
        Self { change, started, moved: 0, hidden: 0, is_first: true }
    }
}

impl Making {
    /// Adds the changes to a part of the file that begins after so many lines.
    fn add(&mut self, old: &[u8], mut line: usize, splices: &[Splice]) {
        let Self { change, .. } = self;
        let mut counted = 0;
        for (window, within) in windows(old, splices) {
            line += memchr_iter(b'\n', &old[counted..window.start]).count();
            counted = window.start;
            let (before, after) = both(old, &window, within, self.is_first);
            let full =
                change.patch.len() > DIFF_CAP_BYTES || self.started.elapsed() > DIFF_TIME * 2;
            let (additions, deletions) = if full || before.len().max(after.len()) > PLACE_CAP_BYTES
            {
                self.hidden += 1;
                (lines(&after), lines(&before))
            } else {
                let places = (line, line.saturating_add_signed(self.moved));
                hunks(&mut change.patch, &before, &after, places)
            };
            change.additions += additions;
            change.deletions += deletions;
            self.moved += additions.cast_signed() - deletions.cast_signed();
        }
    }

    fn finish(self, shown: &str) -> Change {
        let Self { mut change, hidden, .. } = self;
        cut(&mut change.patch);
        if hidden > 0 {
            change.patch.push_str(&format!("… {hidden} more changed places are not shown\n"));
        }
        if !change.patch.is_empty() {
            let line = "=".repeat(67);
            let head = format!("Index: {shown}\n{line}\n--- {shown}\n+++ {shown}\n");
            change.patch.insert_str(0, &head);
        }
        change
    }
}

/// The changes as they are seen from a place in the file.
fn shifted(splices: &[Splice], start: usize) -> Vec<Splice> {
    let one = |Splice { range, new }: &Splice| Splice {
        range: range.start - start..range.end - start,
        new: new.clone(),
    };
    splices.iter().map(one).collect()
}

/// The changed places with their surroundings, those that touch taken together.
fn windows<'a>(old: &[u8], splices: &'a [Splice]) -> Vec<(Range<usize>, &'a [Splice])> {
    let mut found: Vec<(Range<usize>, Range<usize>)> = Vec::new();
    for (at, Splice { range, .. }) in splices.iter().enumerate() {
        let mut start = range.start;
        for _ in 0..=CONTEXT_LINES {
            let above = &old[..start.saturating_sub(1)];
            start = memrchr(b'\n', above).map_or(0, |newline| newline + 1);
        }
        let mut end = range.end;
        for _ in 0..=CONTEXT_LINES {
            end = memchr(b'\n', &old[end..]).map_or(old.len(), |newline| end + newline + 1);
        }
        match found.last_mut() {
            Some((window, members)) if start <= window.end => {
                window.end = end.max(window.end);
                members.end = at + 1;
            }
            _ => found.push((start..end, at..at + 1)),
        }
    }
    found.into_iter().map(|(window, members)| (window, &splices[members])).collect()
}

fn both(old: &[u8], window: &Range<usize>, splices: &[Splice], is_first: bool) -> (String, String) {
    let shifted = shifted(splices, window.start);
    let is_first = is_first && window.start == 0;
    let before = &old[window.clone()];
    let after: Vec<u8> = pieces(before, &shifted).collect::<Vec<_>>().concat();
    let text = |bytes: &[u8]| {
        let bytes = bytes.strip_prefix(BOM).filter(|_| is_first).unwrap_or(bytes);
        String::from_utf8_lossy(bytes).into_owned()
    };
    (text(before), text(&after))
}

/// Adds the hunks of one place that begins after so many lines of the old and the new file.
fn hunks(
    patch: &mut String,
    before: &str,
    after: &str,
    (old_line, new_line): (usize, usize),
) -> (usize, usize) {
    let diff = TextDiff::configure().timeout(DIFF_TIME).diff_lines(before, after);
    let (mut additions, mut deletions) = (0, 0);
    for group in diff.grouped_ops(CONTEXT_LINES) {
        let (Some(first), Some(last)) = (group.first(), group.last()) else { continue };
        let part = |first: Range<usize>, last: Range<usize>, above: usize| {
            let count = last.end - first.start;
            format!("{},{count}", above + first.start + usize::from(count > 0))
        };
        let old = part(first.old_range(), last.old_range(), old_line);
        let new = part(first.new_range(), last.new_range(), new_line);
        patch.push_str(&format!("@@ -{old} +{new} @@\n"));
        for line in group.iter().flat_map(|op| diff.iter_changes(op)) {
            let sign = match line.tag() {
                ChangeTag::Equal => ' ',
                ChangeTag::Delete => {
                    deletions += 1;
                    '-'
                }
                ChangeTag::Insert => {
                    additions += 1;
                    '+'
                }
            };
            patch.push(sign);
            patch.push_str(line.value());
            if !line.value().ends_with('\n') {
                patch.push_str("\n\\ No newline at end of file\n");
            }
        }
    }
    (additions, deletions)
}

fn lines(text: &str) -> usize {
    text.lines().count()
}

fn cut(patch: &mut String) {
    if patch.len() <= DIFF_CAP_BYTES {
        return;
    }
    let end = patch.floor_char_boundary(DIFF_CAP_BYTES);
    let hidden = patch.len() - end;
    patch.truncate(end);
    patch.push_str(&format!("\n… {hidden} more bytes of the diff are not shown\n"));
}
