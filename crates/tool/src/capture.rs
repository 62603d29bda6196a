//! Takes in a stream of any length in bounded memory: its head and its tail are kept, the whole
//! goes to a file as it arrives. Neither has a secret in it.

use std::collections::VecDeque;
use std::fs::File;
use std::io::Write;
use std::path::PathBuf;

use crate::fit::{OutputCaps, Outputs, head, tail, whole_is_in};
use crate::mask::MaskStream;

/// Bytes kept of each end while the stream runs. Head and tail are what people read first: the
/// command's own banner, and the error it ended on.
const END_CAP_BYTES: usize = 64 << 10;

/// Bytes of a stream that are written to its file. A command that prints for ever must not fill
/// the disk.
const FILE_CAP_BYTES: u64 = 256 << 20;

pub struct Capture {
    mask: MaskStream,
    outputs: Outputs,
    /// What was taken already: it is in the file only.
    taken: Taken,
    head: Vec<u8>,
    tail: VecDeque<u8>,
    total_bytes: u64,
    newlines: u64,
    file: Option<(File, PathBuf)>,
    file_error: Option<String>,
    last_byte: u8,
    closed: bool,
}

#[derive(Default, Clone, Copy)]
struct Taken {
    bytes: u64,
    newlines: u64,
}

/// What a stream came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Captured {
    /// Within the budget, with a notice where it was cut.
    pub text: String,
    pub cut: bool,
    pub path: Option<PathBuf>,
    pub total_bytes: u64,
}

impl Capture {
    pub fn new(outputs: Outputs) -> Self {
        Self {
            mask: MaskStream::new(outputs.secrets().clone()),
            outputs,
            taken: Taken::default(),
            head: Vec::new(),
            tail: VecDeque::new(),
            total_bytes: 0,
            newlines: 0,
            file: None,
            file_error: None,
            last_byte: b'\n',
            closed: false,
        }
    }

    pub fn push(&mut self, bytes: &[u8]) {
        let shown = self.mask.push(bytes);
        self.take_in(&shown);
    }

    fn take_in(&mut self, bytes: &[u8]) {
        let Some(last) = bytes.last() else { return };
        self.last_byte = *last;
        self.newlines += bytes.iter().filter(|b| **b == b'\n').count() as u64;
        let before = self.taken.bytes + self.total_bytes;
        self.total_bytes += bytes.len() as u64;

        if self.over_budget() {
            self.keep_whole();
        }
        self.write_file(before, bytes);

        let end_cap = self.end_cap();
        let room = end_cap.saturating_sub(self.head.len()).min(bytes.len());
        let (first, rest) = bytes.split_at(room);
        self.head.extend_from_slice(first);
        let rest = &rest[rest.len().saturating_sub(end_cap)..];
        let excess = (self.tail.len() + rest.len()).saturating_sub(end_cap);
        self.tail.drain(..excess.min(self.tail.len()));
        self.tail.extend(rest);
    }

    /// From here on, if not before, everything goes to the file: a stream that is taken in parts is
    /// whole nowhere else.
    pub fn keep_whole(&mut self) {
        if self.file.is_some() || self.file_error.is_some() {
            return;
        }
        match self.outputs.create() {
            Ok(file) => self.file = Some(file),
            Err(error) => self.file_error = Some(error.to_string()),
        }
        // Until now everything was in the head.
        let so_far = std::mem::take(&mut self.head);
        self.write_file(0, &so_far);
        self.head = so_far;
    }

    /// What came since the last time, of a stream that goes on. A character of which only the
    /// beginning has come is left for the next time.
    pub fn take(&mut self) -> Captured {
        self.keep_whole();
        let rest = if self.closed { Vec::new() } else { self.split_character() };
        let captured = self.text();
        self.taken.bytes += self.total_bytes;
        self.taken.newlines += self.newlines;
        self.total_bytes = rest.len() as u64;
        self.newlines = 0;
        self.head = rest;
        captured
    }

    /// Takes off the beginning of a character at the end.
    fn split_character(&mut self) -> Vec<u8> {
        let end: Vec<u8> =
            self.tail.iter().rev().chain(self.head.iter().rev()).take(3).copied().collect();
        let count = incomplete_at_end(&end);
        let mut rest = Vec::with_capacity(count);
        for _ in 0..count {
            rest.extend(self.tail.pop_back().or_else(|| self.head.pop()));
        }
        rest.reverse();
        self.total_bytes -= rest.len() as u64;
        rest
    }

    /// Bytes kept of each end. Half of what is shown comes from each, so this is enough and some more, for
    /// bytes that are no text.
    fn end_cap(&self) -> usize {
        END_CAP_BYTES.max(self.outputs.caps().bytes)
    }

    /// The file, if there is one.
    pub fn path(&self) -> Option<PathBuf> {
        self.file.as_ref().map(|(_, path)| path.clone())
    }

    /// The last `bytes` of what came, for showing while it runs.
    pub fn recent(&self, bytes: usize) -> String {
        let from_tail = self.tail.len().min(bytes);
        let from_head = (bytes - from_tail).min(self.head.len());
        let contiguous = self.total_bytes <= (self.end_cap() * 2) as u64;
        let mut recent = Vec::with_capacity(from_tail + from_head);
        if contiguous {
            recent.extend_from_slice(&self.head[self.head.len() - from_head..]);
        }
        recent.extend(self.tail.iter().skip(self.tail.len() - from_tail));
        String::from_utf8_lossy(&recent).into_owned()
    }

    pub fn finish(mut self) -> Captured {
        self.close();
        self.text()
    }

    /// Nothing more will come: what was held back is decided.
    pub fn close(&mut self) {
        let held = self.mask.finish();
        self.take_in(&held);
        self.closed = true;
    }

    /// What came since the last time, of a stream of which nothing more is wanted.
    pub fn text(&mut self) -> Captured {
        let before = self.taken.newlines;
        let total_lines = before + self.newlines + u64::from(self.last_byte != b'\n');
        let mut kept = std::mem::take(&mut self.head);
        let kept_head = kept.len();
        kept.extend(std::mem::take(&mut self.tail));
        if !self.over_budget() {
            let text = String::from_utf8_lossy(&kept).into_owned();
            let path = self.path();
            return Captured { text, cut: false, path, total_bytes: self.total_bytes };
        }
        let whole = kept.len() as u64 == self.total_bytes;
        let all = String::from_utf8_lossy(&kept).into_owned();
        let (front, back) = if whole {
            (all.clone(), all)
        } else {
            let front = String::from_utf8_lossy(&kept[..kept_head]).into_owned();
            (front, String::from_utf8_lossy(&kept[kept_head..]).into_owned())
        };
        let OutputCaps { lines, bytes } = self.outputs.caps();
        let (first, first_lines) = head(&front, lines / 2, bytes / 2);
        let (last, last_lines) = tail(&back, lines / 2, bytes / 2);
        let resume = (total_lines + 1).saturating_sub(last_lines as u64);
        let rest = match (&self.file, &self.file_error) {
            (Some((_, path)), None) if self.taken.bytes + self.total_bytes > FILE_CAP_BYTES => {
                format!("The first {} MiB of it are in {}.", FILE_CAP_BYTES >> 20, path.display())
            }
            (Some((_, path)), None) => whole_is_in(path),
            (_, error) => {
                let error = error.as_deref().unwrap_or("no file");
                format!("The rest could not be kept: {error}.")
            }
        };
        let notice = format!(
            "(Output cut: lines {}-{} and {resume}-{total_lines} of {total_lines} are shown, \
             {} bytes in all. {rest})",
            before + 1,
            before + first_lines as u64,
            self.total_bytes
        );
        let text = format!("{}\n\n{notice}\n\n{last}", first.trim_end_matches('\n'));
        let path = self.path();
        Captured { text, cut: true, path, total_bytes: self.total_bytes }
    }

    fn over_budget(&self) -> bool {
        let OutputCaps { lines, bytes } = self.outputs.caps();
        self.total_bytes > bytes as u64 || self.newlines > lines as u64
    }

    fn write_file(&mut self, before: u64, bytes: &[u8]) {
        let Some((file, _)) = &mut self.file else { return };
        if self.file_error.is_some() {
            return;
        }
        let room = usize::try_from(FILE_CAP_BYTES.saturating_sub(before)).unwrap_or(usize::MAX);
        if let Err(error) = file.write_all(&bytes[..bytes.len().min(room)]) {
            self.file_error = Some(error.to_string());
        }
    }
}

/// How many of the last bytes (`end`, the last first) begin a character that needs more.
fn incomplete_at_end(end: &[u8]) -> usize {
    let Some(at) = end.iter().position(|byte| *byte >= 0xC0) else { return 0 };
    let begins_right = end[..at].iter().all(|byte| (0x80..0xC0).contains(byte));
    let needed = match end[at] {
        0xC2..=0xDF => 2,
        0xE0..=0xEF => 3,
        0xF0..=0xF4 => 4,
        _ => 0,
    };
    if begins_right && at + 1 < needed { at + 1 } else { 0 }
}

#[cfg(test)]
#[path = "capture_tests.rs"]
mod tests;
