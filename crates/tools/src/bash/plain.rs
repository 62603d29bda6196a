//! Takes out of a stream what only a terminal understands: colours, cursor moves, titles, links.
//! Text is left as it is, whatever its encoding.

use std::borrow::Cow;

/// Bytes of a title, link or picture before it is taken for text after all: one that never ends
/// must not swallow the rest of an output.
const STRING_CAP_BYTES: usize = 4 << 10;

const ESCAPE: u8 = 0x1b;
const BELL: u8 = 0x07;

pub(crate) struct Plain {
    state: State,
    manner: Manner,
    /// A carriage return was the last byte; what follows decides what it meant.
    returned: bool,
}

/// Where the stream comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Manner {
    /// Its bytes mean what they say; only sequences are taken out.
    Pipe,
    /// Lines end in two bytes, and other control characters are instructions too.
    Terminal,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Text,
    Escape,
    /// `ESC [`, up to a letter.
    Control,
    /// `ESC ]` and its like, up to a bell or `ESC \`.
    String {
        length: usize,
    },
    StringEscape {
        length: usize,
    },
}

impl Plain {
    pub(crate) fn new(manner: Manner) -> Self {
        Self { state: State::Text, manner, returned: false }
    }

    pub(crate) fn push<'b>(&mut self, bytes: &'b [u8]) -> Cow<'b, [u8]> {
        let untouched =
            self.state == State::Text && self.manner == Manner::Pipe && !bytes.contains(&ESCAPE);
        if untouched {
            return Cow::Borrowed(bytes);
        }
        let mut plain = Vec::with_capacity(bytes.len());
        for byte in bytes {
            self.step(*byte, &mut plain);
        }
        Cow::Owned(plain)
    }

    fn step(&mut self, byte: u8, plain: &mut Vec<u8>) {
        self.state = match (self.state, byte) {
            (State::Text, ESCAPE) => State::Escape,
            (State::Text, _) => {
                self.text(byte, plain);
                State::Text
            }
            // A new sequence ends one that was not finished.
            (State::Escape | State::Control, ESCAPE) => State::Escape,
            (State::Escape, b'[') => State::Control,
            (State::Escape, b']' | b'P' | b'X' | b'^' | b'_') => State::String { length: 0 },
            // Character sets and the like: more bytes before the last one.
            (State::Escape, b' '..=b'/') => State::Escape,
            (State::Escape, b'0'..=b'~') => State::Text,
            (State::Control, b' '..=b'?') => State::Control,
            (State::Control, b'@'..=b'~') => State::Text,
            (State::Escape | State::Control, _) => {
                self.text(byte, plain);
                State::Text
            }
            (State::String { .. }, BELL) => State::Text,
            (State::String { length }, ESCAPE) => State::StringEscape { length },
            (State::StringEscape { .. }, b'\\') => State::Text,
            (State::String { length } | State::StringEscape { length }, _) => {
                // A title has no second line: this one was never ended.
                if byte == b'\n' || length >= STRING_CAP_BYTES {
                    self.text(byte, plain);
                    State::Text
                } else {
                    State::String { length: length + 1 }
                }
            }
        };
    }

    fn text(&mut self, byte: u8, plain: &mut Vec<u8>) {
        if self.manner == Manner::Pipe {
            return plain.push(byte);
        }
        match byte {
            b'\r' => self.returned = true,
            b'\n' => {
                self.returned = false;
                plain.push(b'\n');
            }
            b'\t' | b' '..=b'~' | 0x80.. => {
                // Going back to the start of a line writes over it; here it becomes another line.
                if std::mem::take(&mut self.returned) {
                    plain.push(b'\n');
                }
                plain.push(byte);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn plain(manner: Manner, pieces: &[&[u8]]) -> Vec<u8> {
        let mut filter = Plain::new(manner);
        pieces.iter().flat_map(|piece| filter.push(piece).into_owned()).collect()
    }

    #[test]
    fn sequences_go_and_text_stays() {
        let cases: &[(&[u8], &[u8])] = &[
            (b"plain", b"plain"),
            (b"\x1b[1;31mred\x1b[0m", b"red"),
            (b"\x1b[?25l\x1b[2J\x1b[10;20Hat", b"at"),
            (b"\x1b]0;title\x07text", b"text"),
            (b"\x1b]8;;http://a\x1b\\link\x1b]8;;\x1b\\", b"link"),
            (b"\x1bPq#0;2\x1b\\after", b"after"),
            (b"\x1b(B\x1b=\x1b>\x1b7x", b"x"),
            (b"\x1b[31\x1b[32mgreen", b"green"),
            (b"\x1b[12\nline", b"\nline"),
            (b"\x1b]never ended\nnext line", b"\nnext line"),
            (b"caf\xc3\xa9 \xff\xfe", b"caf\xc3\xa9 \xff\xfe"),
            (b"at the end\x1b", b"at the end"),
        ];
        for (bytes, wanted) in cases {
            for manner in [Manner::Pipe, Manner::Terminal] {
                let got = plain(manner, &[bytes]);
                assert_eq!(got, *wanted, "{manner:?} {}", String::from_utf8_lossy(bytes));
            }
        }
    }

    #[test]
    fn a_terminals_lines_end_in_one_byte_and_a_pipes_bytes_are_left_alone() {
        let bytes = b"one\r\ntwo\r\r\n10%\r20%\r\n\x07\x00end\x08";
        assert_eq!(plain(Manner::Terminal, &[bytes]), b"one\ntwo\n10%\n20%\nend");
        assert_eq!(plain(Manner::Pipe, &[bytes]), bytes);
    }

    #[test]
    fn a_string_that_never_ends_does_not_swallow_the_rest() {
        let mut bytes = b"\x1b]".to_vec();
        bytes.extend([b'x'; 3 * STRING_CAP_BYTES]);
        assert!(plain(Manner::Pipe, &[&bytes]).len() > STRING_CAP_BYTES);
    }

    proptest! {
        #[test]
        fn any_split_gives_the_same_and_no_escape_is_left(
            bytes in proptest::collection::vec(
                prop_oneof![Just(ESCAPE), Just(b'['), Just(b']'), Just(b'\r'), Just(b'\n'), any::<u8>()],
                0..400,
            ),
            size in 1usize..50,
        ) {
            for manner in [Manner::Pipe, Manner::Terminal] {
                let whole = plain(manner, &[&bytes]);
                prop_assert!(!whole.contains(&ESCAPE));
                let pieces: Vec<_> = bytes.chunks(size).collect();
                prop_assert_eq!(plain(manner, &pieces), whole);
            }
        }
    }
}
