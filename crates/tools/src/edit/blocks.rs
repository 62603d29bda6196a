//! The matchers that know a block by its first and last line.

use std::ops::Range;

use super::lines::{Effort, Lines, trim, wanted_lines};

/// How alike the lines between the anchors must be on average.
const SIMILARITY: f64 = 0.65;

/// Cells of one comparison of two lines; longer ones are the same or not.
const COMPARE_CAP_CELLS: usize = 4_000_000;

/// The lines between the first and the last wanted line, as far as there are such.
fn anchored<'a>(
    lines: &Lines<'_>,
    wanted: &[&'a str],
    effort: &mut Effort,
    furthest: usize,
) -> Vec<Range<usize>> {
    let (Some(first), Some(last)) = (wanted.first(), wanted.last()) else { return Vec::new() };
    let (first, last): (&'a str, &'a str) = (trim(first), trim(last));
    let mut found = Vec::new();
    for start in 0..lines.count() {
        if !effort.spend(lines.line(start).len()) {
            break;
        }
        if trim(lines.line(start)) != first {
            continue;
        }
        let until = lines.count().min(start.saturating_add(furthest));
        for end in start + 2..until {
            if !effort.spend(lines.line(end).len()) {
                return found;
            }
            if trim(lines.line(end)) == last {
                found.push(start..end + 1);
                break;
            }
        }
    }
    found
}

/// The first and the last line are the same, and what is between them is much alike.
pub(crate) fn block_anchor(lines: &Lines<'_>, old: &str, effort: &mut Effort) -> Vec<Range<usize>> {
    if old.split('\n').count() < 3 {
        return Vec::new();
    }
    let wanted = wanted_lines(old);
    let slack = (wanted.len() / 4).max(1);
    let blocks = anchored(lines, &wanted, effort, wanted.len() + slack);
    let blocks = blocks.into_iter().filter(|block| block.len().abs_diff(wanted.len()) <= slack);
    let mut best: Vec<Range<usize>> = Vec::new();
    let mut most = SIMILARITY;
    for block in blocks {
        let Some(alike) = similarity(lines, &block, &wanted, effort) else { break };
        if alike > most {
            best.clear();
        }
        if alike >= most {
            most = alike;
            best.push(lines.span(block));
        }
    }
    best
}

fn similarity(
    lines: &Lines<'_>,
    block: &Range<usize>,
    wanted: &[&str],
    effort: &mut Effort,
) -> Option<f64> {
    let own = block.start + 1..block.end - 1;
    let middle = wanted.get(1..wanted.len() - 1).unwrap_or_default();
    let pairs = own.len().min(middle.len());
    if pairs == 0 {
        // Nothing was said about what is between: it must be nothing, or it would be lost unseen.
        let empty = own.into_iter().all(|at| trim(lines.line(at)).is_empty());
        return Some(if empty { 1.0 } else { 0.0 });
    }
    let mut sum = 0.0;
    for (at, line) in own.zip(middle) {
        sum += line_similarity(trim(lines.line(at)), trim(line), effort)?;
    }
    Some(sum / pairs as f64)
}

/// From 0 to 1 by the number of changed characters; two empty lines say nothing.
fn line_similarity(own: &str, wanted: &str, effort: &mut Effort) -> Option<f64> {
    if own == wanted {
        return Some(if own.is_empty() { 0.0 } else { 1.0 });
    }
    let (own, wanted): (Vec<u16>, Vec<u16>) =
        (own.encode_utf16().collect(), wanted.encode_utf16().collect());
    let cells = own.len().saturating_mul(wanted.len());
    if cells > COMPARE_CAP_CELLS {
        return Some(0.0);
    }
    if !effort.spend(cells) {
        return None;
    }
    let distance = strsim::generic_levenshtein(&own, &wanted);
    Some(1.0 - distance as f64 / own.len().max(wanted.len()) as f64)
}

/// The first and the last line are the same, as many lines are between them, and half of those are
/// the same too.
pub(crate) fn context_aware(
    lines: &Lines<'_>,
    old: &str,
    effort: &mut Effort,
) -> Vec<Range<usize>> {
    if old.split('\n').count() < 3 {
        return Vec::new();
    }
    let wanted = wanted_lines(old);
    let blocks = anchored(lines, &wanted, effort, wanted.len());
    let fits = |block: &Range<usize>| {
        let own = block.clone().map(|at| trim(lines.line(at)));
        let pairs = own.zip(wanted.iter().map(|line| trim(line)));
        let between = pairs.skip(1).take(block.len().saturating_sub(2));
        let (mut full, mut same) = (0, 0);
        for (own, line) in between.filter(|(a, b)| !a.is_empty() || !b.is_empty()) {
            full += 1;
            same += usize::from(own == line);
        }
        block.len() == wanted.len() && same * 2 >= full
    };
    blocks.into_iter().filter(fits).map(|block| lines.span(block)).collect()
}
