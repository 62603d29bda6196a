//! Lines of a stream of any length, in one buffer.

use std::io::{self, Read};

use memchr::{memchr, memchr_iter};

/// Large enough that the calls to the system do not matter, small enough for the processor's cache.
const BUFFER_BYTES: usize = 256 << 10;

pub(super) struct LineReader<'a, R> {
    source: R,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// Asked before each piece; whoever says yes ends the reading.
    stopped: &'a dyn Fn() -> bool,
}

impl<'a, R: Read> LineReader<'a, R> {
    pub(super) fn new(source: R, stopped: &'a dyn Fn() -> bool) -> Self {
        Self { source, buffer: vec![0; BUFFER_BYTES], start: 0, end: 0, stopped }
    }

    /// What is in the buffer, or the next piece; empty at the end.
    fn piece(&mut self) -> io::Result<&[u8]> {
        while self.start == self.end {
            if (self.stopped)() {
                return Err(io::Error::other(STOPPED));
            }
            match self.source.read(&mut self.buffer) {
                Ok(0) => break,
                Ok(got) => (self.start, self.end) = (0, got),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(&self.buffer[self.start..self.end])
    }

    /// Passes over lines; fewer if the stream ends before.
    pub(super) fn skip(&mut self, lines: u64) -> io::Result<u64> {
        let mut skipped = 0;
        let mut within_line = false;
        while skipped < lines {
            let piece = self.piece()?;
            let Some(last) = piece.last() else { return Ok(skipped + u64::from(within_line)) };
            let wanted = usize::try_from(lines - skipped).unwrap_or(usize::MAX);
            within_line = *last != b'\n';
            let ends = memchr_iter(b'\n', piece).count();
            if ends < wanted {
                skipped += ends as u64;
                self.start = self.end;
            } else {
                let at = memchr_iter(b'\n', piece).nth(wanted - 1).unwrap_or(piece.len() - 1);
                self.start += at + 1;
                return Ok(lines);
            }
        }
        Ok(skipped)
    }

    /// The next line's beginning with its end mark, at most `cap` bytes of it; whether that is the
    /// whole line. Nothing at the end.
    pub(super) fn next(&mut self, line: &mut Vec<u8>, cap: usize) -> io::Result<Option<bool>> {
        line.clear();
        let mut whole = true;
        let mut any = false;
        loop {
            let piece = self.piece()?;
            if piece.is_empty() {
                return Ok(any.then_some(whole));
            }
            any = true;
            let end = memchr(b'\n', piece);
            let length = end.map_or(piece.len(), |at| at + 1);
            let room = cap - line.len();
            let kept = length.min(room);
            whole &= kept == length;
            line.extend_from_slice(&piece[..kept]);
            self.start += length;
            if end.is_some() {
                return Ok(Some(whole));
            }
        }
    }

    /// Counts what is left, as long as it takes no more than `cap` bytes. Tells whether that was all.
    pub(super) fn count_rest(&mut self, cap: u64) -> io::Result<(u64, bool)> {
        let (mut lines, mut bytes, mut within_line) = (0, 0, false);
        loop {
            let piece = self.piece()?;
            let Some(last) = piece.last() else {
                return Ok((lines + u64::from(within_line), true));
            };
            within_line = *last != b'\n';
            lines += memchr_iter(b'\n', piece).count() as u64;
            bytes += piece.len() as u64;
            self.start = self.end;
            if bytes > cap {
                return Ok((lines, false));
            }
        }
    }
}

const STOPPED: &str = "the call was stopped";
