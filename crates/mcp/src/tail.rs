//! The last that a server said besides the protocol: standard error, log messages, noise.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

/// Lines that are kept. What went wrong stands at the end.
const LINES_CAP: usize = 20;

/// Bytes of a line that are kept.
const LINE_CAP_BYTES: usize = 400;

#[derive(Debug, Default)]
pub(crate) struct Tail {
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    lines: VecDeque<String>,
    unfinished: Vec<u8>,
}

impl Tail {
    /// Takes bytes as they come. A line without end takes no more room than a short one.
    pub(crate) fn push(&self, bytes: &[u8]) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        for piece in bytes.split_inclusive(|b| *b == b'\n') {
            let room = LINE_CAP_BYTES.saturating_sub(kept.unfinished.len());
            kept.unfinished.extend_from_slice(&piece[..piece.len().min(room)]);
            if piece.ends_with(b"\n") {
                let line = std::mem::take(&mut kept.unfinished);
                kept.add(&line);
            }
        }
    }

    pub(crate) fn line(&self, text: &str) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let end = text.len().min(LINE_CAP_BYTES);
        kept.add(&text.as_bytes()[..end]);
    }

    pub(crate) fn clear(&self) {
        *self.kept.lock().unwrap_or_else(PoisonError::into_inner) = Kept::default();
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let mut lines: Vec<String> = kept.lines.iter().cloned().collect();
        let rest = printable(&kept.unfinished);
        if !rest.is_empty() {
            lines.push(rest);
        }
        lines
    }
}

impl Kept {
    fn add(&mut self, line: &[u8]) {
        let line = printable(line);
        if line.is_empty() {
            return;
        }
        if self.lines.len() == LINES_CAP {
            self.lines.pop_front();
        }
        self.lines.push_back(line);
    }
}

/// Without what would move a terminal's cursor.
fn printable(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    text.chars().filter(|c| !c.is_control() || *c == '\t').collect::<String>().trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_is_kept_whatever_the_split_and_the_length() {
        let tail = Tail::default();
        for n in 0..100 {
            tail.push(b"li");
            tail.push(format!("ne {n}\n").as_bytes());
        }
        tail.push(&vec![b'x'; 1 << 20]);
        let lines = tail.lines();
        assert_eq!(lines.len(), LINES_CAP + 1);
        assert_eq!((lines[0].as_str(), lines[19].as_str()), ("line 80", "line 99"));
        assert_eq!(lines[20].len(), LINE_CAP_BYTES);
    }

    #[test]
    fn nothing_in_it_moves_a_cursor() {
        let tail = Tail::default();
        tail.push(b"\x1b[2Jred\r\n\n  \n\xff\xfe\n");
        assert_eq!(tail.lines(), ["[2Jred", "\u{fffd}\u{fffd}"]);
    }
}
