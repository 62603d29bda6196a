//! Bytes from a terminal become keys and pastes. Pure: any split of the bytes gives the same, except
//! that an escape which nothing follows is only known to be one after a moment ([`Decoder::rest`]).

use crate::key::{Code, Key};

/// A paste beyond this is no prompt; the rest of it is dropped.
const PASTE_CAP_BYTES: usize = 4 << 20;
/// Longer sequences are not keys.
const SEQUENCE_CAP_BYTES: usize = 64;
/// What a terminal may answer to a question nobody asked is skipped up to here.
const STRING_CAP_BYTES: usize = 4096;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Typed {
    Key(Key),
    Paste(String),
    Focus(bool),
}

#[derive(Default)]
pub struct Decoder {
    pending: Vec<u8>,
    paste: Option<Vec<u8>>,
}

const PASTE_BEGIN: &[u8] = b"\x1b[200~";
const PASTE_END: &[u8] = b"\x1b[201~";

enum Step {
    /// This many bytes were used, for this.
    Used(usize, Option<Typed>),
    /// A paste begins after this many bytes.
    Paste(usize),
    More,
}

impl Decoder {
    pub fn push(&mut self, bytes: &[u8]) -> Vec<Typed> {
        self.pending.extend_from_slice(bytes);
        let mut out = Vec::new();
        self.decode(&mut out, false);
        out
    }

    /// Whether something waits that may be whole already.
    pub fn waits(&self) -> bool {
        self.paste.is_none() && !self.pending.is_empty()
    }

    /// Nothing follows: what waits is what it looks like.
    pub fn rest(&mut self) -> Vec<Typed> {
        let mut out = Vec::new();
        self.decode(&mut out, true);
        out
    }

    fn decode(&mut self, out: &mut Vec<Typed>, last: bool) {
        let mut at = 0;
        while at < self.pending.len() {
            if let Some(paste) = &mut self.paste {
                let bytes = &self.pending[at..];
                match find(bytes, PASTE_END) {
                    Some(end) => {
                        keep(paste, &bytes[..end]);
                        let text = String::from_utf8_lossy(paste).replace("\r\n", "\n");
                        out.push(Typed::Paste(text.replace('\r', "\n")));
                        self.paste = None;
                        at += end + PASTE_END.len();
                    }
                    None => {
                        // The end may have begun.
                        let keep_back = PASTE_END.len().min(bytes.len() + 1) - 1;
                        let take = bytes.len() - keep_back;
                        keep(paste, &bytes[..take]);
                        at += take;
                        break;
                    }
                }
                continue;
            }
            match step(&self.pending[at..], last) {
                Step::Used(count, typed) => {
                    out.extend(typed);
                    at += count.max(1);
                }
                Step::Paste(count) => {
                    self.paste = Some(Vec::new());
                    at += count;
                }
                Step::More => break,
            }
        }
        self.pending.drain(..at.min(self.pending.len()));
    }
}

fn keep(paste: &mut Vec<u8>, bytes: &[u8]) {
    let room = PASTE_CAP_BYTES.saturating_sub(paste.len());
    paste.extend_from_slice(&bytes[..bytes.len().min(room)]);
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|window| window == wanted)
}

fn key(code: Code) -> Option<Typed> {
    Some(Typed::Key(Key::plain(code)))
}

fn step(bytes: &[u8], last: bool) -> Step {
    match bytes[0] {
        0x1b => escape(bytes, last),
        byte => match control(byte) {
            Some(found) => Step::Used(1, Some(Typed::Key(found))),
            None => character(bytes, last),
        },
    }
}

fn control(byte: u8) -> Option<Key> {
    Some(match byte {
        b'\r' => Key::plain(Code::Enter),
        // What ctrl+j sends; some terminals send it for shift+enter too.
        b'\n' => Key::ctrl('j'),
        b'\t' => Key::plain(Code::Tab),
        0x7f => Key::plain(Code::Backspace),
        0x08 => Key { ctrl: true, ..Key::plain(Code::Backspace) },
        0 => Key::ctrl(' '),
        0x1c => Key::ctrl('\\'),
        0x1d => Key::ctrl(']'),
        0x1e => Key::ctrl('^'),
        0x1f => Key::ctrl('-'),
        n @ 1..=26 => Key::ctrl((b'a' + n - 1) as char),
        _ => return None,
    })
}

fn character(bytes: &[u8], last: bool) -> Step {
    let length = match bytes[0] {
        0..=0x7f => 1,
        0xc0..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf7 => 4,
        _ => return Step::Used(1, None),
    };
    if bytes.len() < length {
        return if last { Step::Used(bytes.len(), None) } else { Step::More };
    }
    match std::str::from_utf8(&bytes[..length]).ok().and_then(|text| text.chars().next()) {
        Some(c) if !c.is_control() => Step::Used(length, Some(Typed::Key(Key::char(c)))),
        Some(_) => Step::Used(length, None),
        None => Step::Used(1, None),
    }
}

fn escape(bytes: &[u8], last: bool) -> Step {
    let Some(second) = bytes.get(1) else {
        return if last { Step::Used(1, key(Code::Escape)) } else { Step::More };
    };
    match second {
        b'[' => sequence(bytes, last),
        b'O' => match bytes.get(2) {
            None if last => Step::Used(2, Some(Typed::Key(Key::char('O').alt()))),
            None => Step::More,
            Some(name) => Step::Used(3, named(*name).map(|code| Typed::Key(Key::plain(code)))),
        },
        b']' | b'P' | b'_' | b'^' | b'X' => string(bytes, last),
        0x1b => Step::Used(1, key(Code::Escape)),
        byte => match control(*byte) {
            Some(found) => Step::Used(2, Some(Typed::Key(found.alt()))),
            None => match character(&bytes[1..], last) {
                Step::Used(count, Some(Typed::Key(found))) => {
                    let code = match found.code {
                        Code::Char(c) => Code::Char(c.to_ascii_lowercase()),
                        code => code,
                    };
                    let shift = code != found.code;
                    let found = Key { code, shift, ..found };
                    Step::Used(count + 1, Some(Typed::Key(found.alt())))
                }
                Step::Used(count, other) => Step::Used(count + 1, other),
                other => other,
            },
        },
    }
}

/// An answer of the terminal; nobody asked.
fn string(bytes: &[u8], last: bool) -> Step {
    let bell = bytes.iter().position(|b| *b == 7).map(|n| n + 1);
    let ended = find(&bytes[2..], b"\x1b\\").map(|n| n + 4);
    match (bell, ended) {
        (Some(a), Some(b)) => Step::Used(a.min(b), None),
        (Some(n), None) | (None, Some(n)) => Step::Used(n, None),
        // Alt and one of these letters is a key, once nothing follows.
        (None, None) if last && bytes.len() == 2 => {
            Step::Used(2, Some(Typed::Key(Key::char(bytes[1] as char).alt())))
        }
        (None, None) if last || bytes.len() > STRING_CAP_BYTES => Step::Used(bytes.len(), None),
        (None, None) => Step::More,
    }
}

fn named(byte: u8) -> Option<Code> {
    Some(match byte {
        b'A' => Code::Up,
        b'B' => Code::Down,
        b'C' => Code::Right,
        b'D' => Code::Left,
        b'H' => Code::Home,
        b'F' => Code::End,
        b'P' => Code::F(1),
        b'Q' => Code::F(2),
        b'R' => Code::F(3),
        b'S' => Code::F(4),
        b'M' => Code::Enter,
        _ => return None,
    })
}

fn sequence(bytes: &[u8], last: bool) -> Step {
    let ends = |b: &u8| matches!(b, 0x40..=0x7e);
    let Some(end) = bytes[2..].iter().position(ends).map(|n| n + 2) else {
        let hopeless = last || bytes.len() > SEQUENCE_CAP_BYTES;
        return match (hopeless, bytes.len()) {
            (true, 2) => Step::Used(2, Some(Typed::Key(Key::char('[').alt()))),
            (true, count) => Step::Used(count.min(SEQUENCE_CAP_BYTES), None),
            (false, _) => Step::More,
        };
    };
    if bytes[..=end] == *PASTE_BEGIN {
        return Step::Paste(end + 1);
    }
    // The old mouse protocol brings three bytes more.
    if end == 2 && bytes[2] == b'M' {
        return if bytes.len() < 6 && !last {
            Step::More
        } else {
            Step::Used(6.min(bytes.len()), None)
        };
    }
    Step::Used(end + 1, meaning(&bytes[2..end], bytes[end]))
}

fn meaning(parameters: &[u8], last: u8) -> Option<Typed> {
    let text = std::str::from_utf8(parameters).ok()?;
    let numbers: Vec<u32> =
        text.split(';').map(|p| p.split(':').next().unwrap_or(p).parse().unwrap_or(0)).collect();
    let number = |n: usize| numbers.get(n).copied().unwrap_or(0);
    let code = match last {
        b'I' if text.is_empty() => return Some(Typed::Focus(true)),
        b'O' if text.is_empty() => return Some(Typed::Focus(false)),
        b'Z' => return Some(Typed::Key(Key::plain(Code::Tab).shift())),
        b'u' => from_point(number(0))?,
        b'~' if number(0) == 27 => {
            return Some(Typed::Key(modified(from_point(number(2))?, number(1))));
        }
        b'~' => match number(0) {
            1 | 7 => Code::Home,
            2 => Code::Insert,
            3 => Code::Delete,
            4 | 8 => Code::End,
            5 => Code::PageUp,
            6 => Code::PageDown,
            n @ 11..=15 => Code::F((n - 10) as u8),
            n @ 17..=21 => Code::F((n - 11) as u8),
            n @ 23..=24 => Code::F((n - 12) as u8),
            _ => return None,
        },
        byte => named(byte)?,
    };
    Some(Typed::Key(modified(code, number(1))))
}

fn from_point(point: u32) -> Option<Code> {
    Some(match point {
        13 | 57414 => Code::Enter,
        9 => Code::Tab,
        27 => Code::Escape,
        8 | 127 => Code::Backspace,
        // Keys that only modify, and those that play music.
        57344..=63743 => return None,
        point => Code::Char(char::from_u32(point).filter(|c| !c.is_control())?),
    })
}

fn modified(code: Code, modifiers: u32) -> Key {
    let bits = modifiers.saturating_sub(1);
    let mut key = Key::plain(code);
    (key.shift, key.alt, key.ctrl) = (bits & 1 != 0, bits & 2 != 0, bits & 4 != 0);
    if let Code::Char(c) = code
        && key.shift
        && !key.ctrl
        && !key.alt
    {
        key.code = Code::Char(c.to_uppercase().next().unwrap_or(c));
        key.shift = false;
    }
    key
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(bytes: &[u8]) -> Vec<Typed> {
        let mut decoder = Decoder::default();
        let mut out = decoder.push(bytes);
        out.extend(decoder.rest());
        out
    }

    #[test]
    fn keys_are_known_by_their_bytes() {
        for (bytes, key) in [
            (&b"a"[..], Key::char('a')),
            ("é".as_bytes(), Key::char('é')),
            (b"\x03", Key::ctrl('c')),
            (b"\r", Key::plain(Code::Enter)),
            (b"\x1b\r", Key::plain(Code::Enter).alt()),
            (b"\x1b[13;2u", Key::plain(Code::Enter).shift()),
            (b"\x1b[27;2;13~", Key::plain(Code::Enter).shift()),
            (b"\x1b[27u", Key::plain(Code::Escape)),
            (b"\x1b[99;5u", Key::ctrl('c')),
            (b"\x1b", Key::plain(Code::Escape)),
            (b"\x1b[A", Key::plain(Code::Up)),
            (b"\x1bOA", Key::plain(Code::Up)),
            (b"\x1b[1;5C", Key { ctrl: true, ..Key::plain(Code::Right) }),
            (b"\x1b[Z", Key::plain(Code::Tab).shift()),
            (b"\x1b[3~", Key::plain(Code::Delete)),
            (b"\x1b[12~", Key::plain(Code::F(2))),
            (b"\x1bb", Key::char('b').alt()),
            (b"\x1bF", Key::char('f').alt().shift()),
            (b"\x7f", Key::plain(Code::Backspace)),
            (b"\x1f", Key::ctrl('-')),
        ] {
            assert_eq!(all(bytes), [Typed::Key(key)], "{bytes:?}");
        }
    }

    #[test]
    fn any_split_of_the_bytes_gives_the_same() {
        let text = "a\x1b[200~two\r\nlines \x1b[A in it\x1b[201~\x1b[1;5C漢\x1b]11;rgb:0/0/0\x1b\\z\x1b[13;2u";
        let bytes = text.as_bytes();
        let whole = all(bytes);
        assert_eq!(whole[1], Typed::Paste("two\nlines \x1b[A in it".to_owned()));
        for at in 0..bytes.len() {
            let mut decoder = Decoder::default();
            let mut out = decoder.push(&bytes[..at]);
            out.extend(decoder.push(&bytes[at..]));
            out.extend(decoder.rest());
            assert_eq!(out, whole, "split at {at}");
        }
        let mut decoder = Decoder::default();
        let out: Vec<Typed> = bytes.iter().flat_map(|b| decoder.push(&[*b])).collect();
        assert_eq!(out, whole);
    }

    #[test]
    fn garbage_gives_no_key_and_never_holds_up_what_follows() {
        for garbage in [&b"\xff\xfe"[..], b"\x1b[99999999999999999X", b"\x1b[?1;2c", b"\x1b[M!!!"] {
            let mut bytes = garbage.to_vec();
            bytes.push(b'q');
            assert_eq!(all(&bytes), [Typed::Key(Key::char('q'))], "{garbage:?}");
        }
    }
}
