//! Looking for lines in a file that is too large to be held: it is gone through in blocks, and only
//! the lines around what was found are kept.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use memchr::memmem::Finder;
use memchr::{memchr_iter, memrchr};

/// Bytes looked at in one go: they stay in the processor's cache while they are gone through.
const BLOCK_BYTES: usize = 256 << 10;

/// Bytes of one line, and of all that is kept. Beyond that holding the whole file is simpler.
const LINE_CAP_BYTES: usize = 4 << 20;
const KEPT_CAP_BYTES: u64 = 8 << 20;

/// Lines with something that was looked for. More say that it was too common to look for.
const HITS_CAP: usize = 1_000;

/// Some whole lines of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Excerpt {
    /// Where it begins, in bytes and in lines.
    pub(crate) start: usize,
    pub(crate) line: usize,
    pub(crate) bytes: Vec<u8>,
    /// Nothing follows it.
    pub(crate) is_end: bool,
}

/// What going through a file has shown.
#[derive(Debug, Default)]
pub(crate) struct Scan {
    pub(crate) hits: Vec<Hit>,
    /// Whether a line ends with a carriage return.
    pub(crate) has_returns: bool,
}

/// The beginning of a line that has what was looked for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Hit {
    start: u64,
    line: usize,
}

/// The lines that hold `needle`, which has no line end. Nothing if there are too many, or lines that
/// are too long.
pub(crate) fn scan(file: &File, needle: &[u8]) -> io::Result<Option<Scan>> {
    let finder = Finder::new(needle);
    let mut scan = Scan::default();
    let mut line = 0;
    let whole = each_block(file, |block, at| {
        scan.has_returns |= has_returns(block);
        let mut counted = 0;
        for place in finder.find_iter(block) {
            let start = memrchr(b'\n', &block[..place]).map_or(0, |end| end + 1);
            line += memchr_iter(b'\n', &block[counted..start]).count();
            counted = start;
            let hit = Hit { start: at + start as u64, line };
            if scan.hits.last().is_none_or(|last| last.start != hit.start) {
                scan.hits.push(hit);
            }
            if scan.hits.len() > HITS_CAP {
                return false;
            }
        }
        line += memchr_iter(b'\n', &block[counted..]).count();
        true
    })?;
    Ok(whole.then_some(scan))
}

/// Most files have none: one byte is faster to look for than two.
fn has_returns(block: &[u8]) -> bool {
    memchr_iter(b'\r', block).any(|at| block.get(at + 1) == Some(&b'\n'))
}

/// Whether the whole file is text.
pub(crate) fn is_utf8(file: &File) -> io::Result<bool> {
    // Most text is ASCII, and that is told faster.
    each_block(file, |block, _| block.is_ascii() || str::from_utf8(block).is_ok())
}

/// Goes through a file in blocks of whole lines until `look` has seen enough; says whether it has seen
/// all.
fn each_block(file: &File, mut look: impl FnMut(&[u8], u64) -> bool) -> io::Result<bool> {
    let mut buffer = vec![0; BLOCK_BYTES];
    let (mut held, mut at) = (0, 0_u64);
    loop {
        if held == buffer.len() {
            if held >= LINE_CAP_BYTES {
                return Ok(false);
            }
            buffer.resize(held * 2, 0);
        }
        let got = match file.read_at(&mut buffer[held..], at + held as u64) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            got => got?,
        };
        let filled = held + got;
        let end = match got {
            0 => filled,
            _ => memrchr(b'\n', &buffer[held..filled]).map_or(0, |end| held + end + 1),
        };
        if end > 0 && !look(&buffer[..end], at) {
            return Ok(false);
        }
        if got == 0 {
            return Ok(true);
        }
        buffer.copy_within(end..filled, 0);
        held = filled - end;
        at += end as u64;
    }
}

/// The lines of the hits with so many lines before and after them, those that touch taken together.
/// Nothing if that is too much.
pub(crate) fn around(file: &File, hits: &[Hit], lines: usize) -> io::Result<Option<Vec<Excerpt>>> {
    let mut parts: Vec<(u64, u64, usize)> = Vec::new();
    let length = file.metadata()?.len();
    for hit in hits {
        let Some((start, above)) = back(file, hit.start, lines)? else { return Ok(None) };
        let Some(end) = forth(file, hit.start, lines, length)? else { return Ok(None) };
        match parts.last_mut() {
            Some((_, known, _)) if start <= *known => *known = end.max(*known),
            _ => parts.push((start, end, hit.line - above)),
        }
    }
    if parts.iter().map(|(start, end, _)| end - start).sum::<u64>() > KEPT_CAP_BYTES {
        return Ok(None);
    }
    let excerpt = |(start, end, line): (u64, u64, usize)| {
        let mut bytes = vec![0; usize::try_from(end - start).unwrap_or(0)];
        file.read_exact_at(&mut bytes, start)?;
        let start = usize::try_from(start).map_err(io::Error::other)?;
        Ok(Excerpt { start, line, bytes, is_end: end >= length })
    };
    parts.into_iter().map(excerpt).collect::<io::Result<_>>().map(Some)
}

/// Where the line begins that is so many lines above the one that begins at `from`, and how many there
/// were.
fn back(file: &File, from: u64, lines: usize) -> io::Result<Option<(u64, usize)>> {
    let mut block = vec![0; 8 << 10];
    let mut seen = 0;
    let mut end = from;
    while end > 0 {
        if from - end > LINE_CAP_BYTES as u64 {
            return Ok(None);
        }
        let size = block.len().min(usize::try_from(end).unwrap_or(usize::MAX));
        let begin = end - size as u64;
        file.read_exact_at(&mut block[..size], begin)?;
        let mut until = size;
        while let Some(at) = memrchr(b'\n', &block[..until]) {
            seen += 1;
            if seen == lines + 1 {
                return Ok(Some((begin + at as u64 + 1, lines)));
            }
            until = at;
        }
        end = begin;
    }
    Ok(Some((0, seen)))
}

/// Where the line ends that is so many lines below the one that begins at `from`.
fn forth(file: &File, from: u64, lines: usize, length: u64) -> io::Result<Option<u64>> {
    let mut block = vec![0; 8 << 10];
    let mut left = lines + 1;
    let mut begin = from;
    while begin < length {
        if begin - from > LINE_CAP_BYTES as u64 {
            return Ok(None);
        }
        let size = block.len().min(usize::try_from(length - begin).unwrap_or(usize::MAX));
        file.read_exact_at(&mut block[..size], begin)?;
        for at in memchr_iter(b'\n', &block[..size]) {
            left -= 1;
            if left == 0 {
                return Ok(Some(begin + at as u64 + 1));
            }
        }
        begin += size as u64;
    }
    Ok(Some(length))
}
