//! Server-sent events from any split of the bytes.
//!
//! Three things that ready-made readers lack together: an event that the end of input cuts off
//! before its blank line is still delivered, an event's size is capped, and NUL or invalid UTF-8
//! is replaced instead of ending the stream.

/// Bytes that one event may have. Larger than any answer block seen; small enough that a server
/// that never ends its line cannot fill the memory.
pub const EVENT_CAP_BYTES: usize = 32 << 20;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SseEvent<'a> {
    pub name: &'a str,
    pub data: &'a str,
}

#[derive(Debug, Default)]
pub struct SseReader {
    /// The unfinished line.
    line: Vec<u8>,
    /// A CR was the last byte seen: an LF right after it belongs to the same line end.
    after_cr: bool,
    started: bool,
    name: String,
    data: Vec<u8>,
    has_data: bool,
}

#[derive(Debug, PartialEq, Eq)]
pub struct EventTooLarge;

impl SseReader {
    /// Takes bytes and hands each event that they complete to `on_event`.
    pub fn push(
        &mut self,
        bytes: &[u8],
        on_event: &mut dyn FnMut(SseEvent<'_>),
    ) -> Result<(), EventTooLarge> {
        let mut rest = bytes;
        while !rest.is_empty() {
            if std::mem::take(&mut self.after_cr) && rest[0] == b'\n' {
                rest = &rest[1..];
                continue;
            }
            let Some(end) = rest.iter().position(|b| matches!(b, b'\n' | b'\r')) else {
                self.line.extend_from_slice(rest);
                return self.check_size();
            };
            self.after_cr = rest[end] == b'\r';
            if self.line.is_empty() {
                self.take_line(&rest[..end], on_event);
            } else {
                let mut line = std::mem::take(&mut self.line);
                line.extend_from_slice(&rest[..end]);
                self.take_owned_line(line, on_event);
            }
            rest = &rest[end + 1..];
            self.check_size()?;
        }
        Ok(())
    }

    /// The input has ended: delivers what was left without its closing blank line.
    pub fn finish(&mut self, on_event: &mut dyn FnMut(SseEvent<'_>)) {
        if !self.line.is_empty() {
            let line = std::mem::take(&mut self.line);
            self.take_line(&line, on_event);
        }
        self.dispatch(on_event);
    }

    fn check_size(&self) -> Result<(), EventTooLarge> {
        if self.line.len() + self.data.len() > EVENT_CAP_BYTES {
            Err(EventTooLarge)
        } else {
            Ok(())
        }
    }

    /// A line that came in several pieces. A large one (a whole answer in one event) becomes the data
    /// as it is instead of being copied.
    fn take_owned_line(&mut self, mut line: Vec<u8>, on_event: &mut dyn FnMut(SseEvent<'_>)) {
        const LARGE_BYTES: usize = 64 << 10;
        if line.len() > LARGE_BYTES && self.started && !self.has_data && line.starts_with(b"data:")
        {
            let prefix = if line.get(5) == Some(&b' ') { 6 } else { 5 };
            line.drain(..prefix);
            self.data = line;
            self.has_data = true;
            return;
        }
        self.take_line(&line, on_event);
        line.clear();
        line.shrink_to(LARGE_BYTES);
        self.line = line;
    }

    fn take_line(&mut self, line: &[u8], on_event: &mut dyn FnMut(SseEvent<'_>)) {
        let mut line = line;
        if !std::mem::replace(&mut self.started, true) {
            line = line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line);
        }
        if line.is_empty() {
            self.dispatch(on_event);
            return;
        }
        let colon = line.iter().position(|b| *b == b':').unwrap_or(line.len());
        let value = line.get(colon + 1..).unwrap_or_default();
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match &line[..colon] {
            b"data" => {
                if std::mem::replace(&mut self.has_data, true) {
                    self.data.push(b'\n');
                }
                self.data.extend_from_slice(value);
            }
            b"event" => {
                self.name.clear();
                self.name.push_str(&String::from_utf8_lossy(value));
            }
            // Comments (an empty name), ids, retry hints and unknown fields mean nothing to us.
            _ => {}
        }
    }

    fn dispatch(&mut self, on_event: &mut dyn FnMut(SseEvent<'_>)) {
        if std::mem::take(&mut self.has_data) {
            let data = String::from_utf8_lossy(&self.data);
            on_event(SseEvent { name: &self.name, data: &data });
            self.data.clear();
            // One huge event must not keep its memory for the rest of the stream.
            self.data.shrink_to(64 << 10);
        }
        self.name.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(pieces: &[&[u8]]) -> Vec<(String, String)> {
        let mut reader = SseReader::default();
        let mut found = Vec::new();
        let mut keep = |e: SseEvent<'_>| found.push((e.name.to_owned(), e.data.to_owned()));
        for piece in pieces {
            reader.push(piece, &mut keep).unwrap();
        }
        reader.finish(&mut keep);
        found
    }

    fn event(name: &str, data: &str) -> (String, String) {
        (name.to_owned(), data.to_owned())
    }

    #[test]
    fn line_ends_comments_and_missing_spaces_are_understood() {
        let cases: &[(&str, Vec<(String, String)>)] = &[
            ("data: a\n\n", vec![event("", "a")]),
            ("data:a\r\n\r\n", vec![event("", "a")]),
            ("event: x\rdata: a\r\r", vec![event("x", "a")]),
            ("\u{feff}data: a\n\n", vec![event("", "a")]),
            (": comment\n\ndata: a\n\n", vec![event("", "a")]),
            ("data: a\ndata: b\n\n", vec![event("", "a\nb")]),
            ("event: lonely\n\ndata: a\n\n", vec![event("", "a")]),
            ("data: {\"u\":\"\u{2028}\"}\n\n", vec![event("", "{\"u\":\"\u{2028}\"}")]),
            ("data\n\n", vec![event("", "")]),
        ];
        for (input, expected) in cases {
            assert_eq!(&read(&[input.as_bytes()]), expected, "{input:?}");
        }
    }

    #[test]
    fn an_event_cut_by_the_end_of_input_is_delivered() {
        assert_eq!(read(&[b"data: a\n\nevent: e\ndata: b"]), vec![event("", "a"), event("e", "b")]);
    }

    #[test]
    fn an_event_without_end_is_refused_before_it_fills_the_memory() {
        let mut reader = SseReader::default();
        let piece = vec![b'x'; 1 << 20];
        let result = (0..64).try_for_each(|_| reader.push(&piece, &mut |_| {}));
        assert_eq!(result, Err(EventTooLarge));
        assert!(reader.line.len() <= EVENT_CAP_BYTES + piece.len());
    }

    proptest! {
        #[test]
        fn any_split_gives_the_same_events(
            text in "(data|event|:|x)(: ?[a-zé\u{2028}\u{0}]{0,6})?(\r\n|\n|\r){1,3}|(data: z\n\n){1,4}",
            more in proptest::collection::vec(any::<u8>(), 0..60),
            cuts in proptest::collection::vec(0usize..200, 0..8),
        ) {
            let mut bytes = text.into_bytes();
            bytes.extend(more);
            let whole = read(&[&bytes]);
            let mut cuts: Vec<_> = cuts.into_iter().map(|c| c.min(bytes.len())).collect();
            cuts.sort_unstable();
            let mut pieces = Vec::new();
            let mut start = 0;
            for cut in cuts {
                pieces.push(&bytes[start..cut]);
                start = cut;
            }
            pieces.push(&bytes[start..]);
            prop_assert_eq!(read(&pieces), whole.clone());
            let single: Vec<_> = bytes.chunks(1).collect();
            prop_assert_eq!(read(&single), whole);
        }
    }
}
