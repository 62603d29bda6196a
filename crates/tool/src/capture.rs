//! Takes in a stream of any length in bounded memory: its head and its tail are kept, the whole
//! goes to a file as it arrives. Neither has a secret in it.

use std::collections::VecDeque;
use std::fs::File;
use std::io::Write;
use std::path::PathBuf;

use crate::fit::{OUTPUT_CAP_BYTES, OUTPUT_CAP_LINES, Outputs, head, tail, whole_is_in};
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
    head: Vec<u8>,
    tail: VecDeque<u8>,
    total_bytes: u64,
    newlines: u64,
    file: Option<(File, PathBuf)>,
    file_error: Option<String>,
    last_byte: u8,
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
            head: Vec::new(),
            tail: VecDeque::new(),
            total_bytes: 0,
            newlines: 0,
            file: None,
            file_error: None,
            last_byte: b'\n',
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
        let before = self.total_bytes;
        self.total_bytes += bytes.len() as u64;

        if self.file.is_none() && self.file_error.is_none() && self.over_budget() {
            match self.outputs.create() {
                Ok(file) => self.file = Some(file),
                Err(error) => self.file_error = Some(error.to_string()),
            }
            // Until now everything was in the head.
            let so_far = std::mem::take(&mut self.head);
            self.write_file(0, &so_far);
            self.head = so_far;
        }
        self.write_file(before, bytes);

        let room = END_CAP_BYTES.saturating_sub(self.head.len()).min(bytes.len());
        let (first, rest) = bytes.split_at(room);
        self.head.extend_from_slice(first);
        let rest = &rest[rest.len().saturating_sub(END_CAP_BYTES)..];
        let excess = (self.tail.len() + rest.len()).saturating_sub(END_CAP_BYTES);
        self.tail.drain(..excess.min(self.tail.len()));
        self.tail.extend(rest);
    }

    /// The last `bytes` of what came, for showing while it runs.
    pub fn recent(&self, bytes: usize) -> String {
        let from_tail = self.tail.len().min(bytes);
        let from_head = (bytes - from_tail).min(self.head.len());
        let contiguous = self.total_bytes <= (END_CAP_BYTES * 2) as u64;
        let mut recent = Vec::with_capacity(from_tail + from_head);
        if contiguous {
            recent.extend_from_slice(&self.head[self.head.len() - from_head..]);
        }
        recent.extend(self.tail.iter().skip(self.tail.len() - from_tail));
        String::from_utf8_lossy(&recent).into_owned()
    }

    pub fn finish(mut self) -> Captured {
        let held = self.mask.finish();
        self.take_in(&held);
        let total_lines = self.newlines + u64::from(self.last_byte != b'\n');
        let mut kept = std::mem::take(&mut self.head);
        let kept_head = kept.len();
        kept.extend(std::mem::take(&mut self.tail));
        if !self.over_budget() {
            let text = String::from_utf8_lossy(&kept).into_owned();
            return Captured { text, cut: false, path: None, total_bytes: self.total_bytes };
        }
        let whole = kept.len() as u64 == self.total_bytes;
        let all = String::from_utf8_lossy(&kept).into_owned();
        let (front, back) = if whole {
            (all.clone(), all)
        } else {
            let front = String::from_utf8_lossy(&kept[..kept_head]).into_owned();
            (front, String::from_utf8_lossy(&kept[kept_head..]).into_owned())
        };
        let (first, first_lines) = head(&front, OUTPUT_CAP_LINES / 2, OUTPUT_CAP_BYTES / 2);
        let (last, last_lines) = tail(&back, OUTPUT_CAP_LINES / 2, OUTPUT_CAP_BYTES / 2);
        let resume = (total_lines + 1).saturating_sub(last_lines as u64);
        let rest = match (&self.file, &self.file_error) {
            (Some((_, path)), None) if self.total_bytes > FILE_CAP_BYTES => {
                format!("The first {} MiB of it are in {}.", FILE_CAP_BYTES >> 20, path.display())
            }
            (Some((_, path)), None) => whole_is_in(path),
            (_, error) => {
                let error = error.as_deref().unwrap_or("no file");
                format!("The rest could not be kept: {error}.")
            }
        };
        let notice = format!(
            "(Output cut: lines 1-{first_lines} and {resume}-{total_lines} of {total_lines} are shown, \
             {} bytes in all. {rest})",
            self.total_bytes
        );
        let text = format!("{}\n\n{notice}\n\n{last}", first.trim_end_matches('\n'));
        let path = self.file.take().map(|(_, path)| path);
        Captured { text, cut: true, path, total_bytes: self.total_bytes }
    }

    fn over_budget(&self) -> bool {
        self.total_bytes > OUTPUT_CAP_BYTES as u64 || self.newlines > OUTPUT_CAP_LINES as u64
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn captured(folder: &std::path::Path, pieces: &[&[u8]]) -> Captured {
        let mut capture = Capture::new(Outputs::new(folder));
        pieces.iter().for_each(|piece| capture.push(piece));
        capture.finish()
    }

    #[test]
    fn a_long_stream_shows_both_ends_with_true_line_numbers_and_keeps_the_whole() {
        let folder = tempfile::tempdir().unwrap();
        let whole: String = (1..=100_000).map(|n| format!("line {n}\n")).collect();
        let pieces: Vec<&[u8]> = whole.as_bytes().chunks(4_096).collect();
        let result = captured(folder.path(), &pieces);
        assert!(result.text.starts_with("line 1\nline 2\n"));
        assert!(result.text.ends_with("line 99999\nline 100000\n"));
        let notice = result.text.lines().find(|l| l.starts_with("(Output cut")).unwrap();
        assert!(notice.contains("lines 1-1000 and 99001-100000 of 100000"), "{notice}");
        assert!(result.text.len() <= OUTPUT_CAP_BYTES + 500);
        assert_eq!(std::fs::read_to_string(result.path.unwrap()).unwrap(), whole);
    }

    #[test]
    fn memory_stays_bounded_whatever_comes() {
        let folder = tempfile::tempdir().unwrap();
        let mut capture = Capture::new(Outputs::new(folder.path()));
        for _ in 0..300 {
            capture.push(&[b'x'; 100_000]);
        }
        assert!(capture.head.capacity() + capture.tail.capacity() < 600 << 10);
        assert_eq!(capture.finish().total_bytes, 30_000_000);
    }

    proptest! {
        #[test]
        fn any_split_of_the_bytes_gives_the_same_text(
            bytes in proptest::collection::vec(prop_oneof![Just(b'\n'), any::<u8>()], 0..3_000),
            repeat in 1usize..40,
            size in 1usize..700,
        ) {
            let folder = tempfile::tempdir().unwrap();
            let bytes = bytes.repeat(repeat);
            // The file's name differs from run to run.
            let strip = |mut c: Captured| {
                if let Some(path) = c.path.take() {
                    c.text = c.text.replace(&path.display().to_string(), "FILE");
                }
                c
            };
            let whole = strip(captured(folder.path(), &[&bytes]));
            let pieces: Vec<_> = bytes.chunks(size).collect();
            prop_assert_eq!(strip(captured(folder.path(), &pieces)), whole);
        }
    }
}
