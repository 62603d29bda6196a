//! Messages as bytes: a header that tells the length, then JSON.

use serde_json::Value;

/// Bytes of one message. The largest that servers send in earnest (all symbols of a large project)
/// stay far below; one that says more has lost its way.
const MESSAGE_CAP_BYTES: usize = 64 << 20;

/// Bytes between two messages that are no message: some servers greet on standard output.
const NOISE_CAP_BYTES: usize = 64 << 10;

/// A header is two short lines.
const HEADER_CAP_BYTES: usize = 4 << 10;

const LENGTH: &[u8] = b"content-length:";

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum WireError {
    #[error("it announced a message of {0} bytes, more than {MESSAGE_CAP_BYTES}")]
    TooLarge(usize),
    #[error("it wrote something to its standard output that is not the protocol")]
    Noise,
}

pub(crate) fn encode(message: &Value) -> Vec<u8> {
    let body = message.to_string();
    format!("Content-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

/// Cuts what arrives into messages, however it was split on the way.
#[derive(Default)]
pub(crate) struct Decoder {
    buffer: Vec<u8>,
    /// The header has been read; so many bytes make the body.
    body: Option<usize>,
    noise: usize,
}

impl Decoder {
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// The next whole message. After an error there is no way back into step.
    pub(crate) fn next(&mut self) -> Result<Option<Vec<u8>>, WireError> {
        let length = match self.body {
            Some(length) => length,
            None => match self.header()? {
                Some(length) => length,
                None => return Ok(None),
            },
        };
        self.body = Some(length);
        if self.buffer.len() < length {
            return Ok(None);
        }
        self.body = None;
        let rest = self.buffer.split_off(length);
        Ok(Some(std::mem::replace(&mut self.buffer, rest)))
    }

    fn header(&mut self) -> Result<Option<usize>, WireError> {
        loop {
            let found =
                self.buffer.windows(LENGTH.len()).position(|w| w.eq_ignore_ascii_case(LENGTH));
            let Some(at) = found else {
                // The beginning of the word may be there already.
                self.pass_over(self.buffer.len().saturating_sub(LENGTH.len() - 1))?;
                return Ok(None);
            };
            let Some((length, end)) = read_header(&self.buffer[at..]) else {
                if self.buffer.len() - at < HEADER_CAP_BYTES {
                    self.pass_over(at)?;
                    return Ok(None);
                }
                self.pass_over(at + LENGTH.len())?;
                continue;
            };
            let Some(length) = length else {
                self.pass_over(at + LENGTH.len())?;
                continue;
            };
            if length > MESSAGE_CAP_BYTES {
                return Err(WireError::TooLarge(length));
            }
            self.buffer.drain(..at + end);
            self.noise = 0;
            return Ok(Some(length));
        }
    }

    fn pass_over(&mut self, count: usize) -> Result<(), WireError> {
        self.buffer.drain(..count);
        self.noise += count;
        if self.noise > NOISE_CAP_BYTES { Err(WireError::Noise) } else { Ok(()) }
    }
}

/// The length that a whole header tells, if it tells one, and where the header ends.
fn read_header(bytes: &[u8]) -> Option<(Option<usize>, usize)> {
    let bytes = &bytes[..bytes.len().min(HEADER_CAP_BYTES)];
    let end =
        |mark: &[u8]| bytes.windows(mark.len()).position(|w| w == mark).map(|at| at + mark.len());
    let end = match (end(b"\r\n\r\n"), end(b"\n\n")) {
        (Some(a), Some(b)) => a.min(b),
        (a, b) => a.or(b)?,
    };
    let line = bytes[LENGTH.len()..].split(|b| *b == b'\n').next().unwrap_or_default();
    let length = std::str::from_utf8(line).ok().and_then(|text| text.trim().parse().ok());
    Some((length, end))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn all(chunks: &[&[u8]]) -> Result<Vec<String>, WireError> {
        let (mut decoder, mut found) = (Decoder::default(), Vec::new());
        for chunk in chunks {
            decoder.push(chunk);
            while let Some(body) = decoder.next()? {
                found.push(String::from_utf8_lossy(&body).into_owned());
            }
        }
        Ok(found)
    }

    #[test]
    fn messages_are_found_among_other_headers_and_noise() {
        let cases: &[(&[u8], &[&str])] = &[
            (b"Content-Length: 2\r\n\r\n{}", &["{}"]),
            (b"content-length:2\r\n\r\n{}Content-Length: 1\r\n\r\n7", &["{}", "7"]),
            (b"Content-Type: x\r\nContent-Length: 2\r\n\r\n{}", &["{}"]),
            (b"Content-Length: 2\r\nContent-Type: x\r\n\r\n{}", &["{}"]),
            (b"Content-Length: 2\n\n{}", &["{}"]),
            (b"Starting up...\nready\nContent-Length: 2\r\n\r\n{}", &["{}"]),
            (b"Content-Length: many\r\n\r\n{}Content-Length: 2\r\n\r\n[]", &["[]"]),
            (b"Content-Length: 0\r\n\r\nContent-Length: 1\r\n\r\n1", &["", "1"]),
            (b"Content-Length: 5\r\n\r\n{}", &[]),
            (b"Content-Le", &[]),
        ];
        for (bytes, expected) in cases {
            assert_eq!(all(&[bytes]).unwrap(), *expected, "{}", String::from_utf8_lossy(bytes));
        }
    }

    #[test]
    fn a_server_that_has_lost_its_way_is_not_followed() {
        let announced = b"Content-Length: 99999999999\r\n\r\n";
        assert_eq!(all(&[announced]), Err(WireError::TooLarge(99_999_999_999)));
        assert_eq!(all(&[&vec![b'x'; NOISE_CAP_BYTES + 100]]), Err(WireError::Noise));
        let endless = b"Content-Length: x".repeat(HEADER_CAP_BYTES * 2);
        assert_eq!(all(&[&endless]), Err(WireError::Noise));
    }

    proptest! {
        #[test]
        fn any_split_gives_the_same_messages(
            words in proptest::collection::vec(".{0,40}", 1..6),
            cuts in proptest::collection::vec(any::<proptest::sample::Index>(), 0..8),
        ) {
            let bodies: Vec<_> = words.iter().map(|word| json!({ "word": word })).collect();
            let bytes: Vec<u8> = bodies.iter().flat_map(encode).collect();
            let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len())).collect();
            cuts.extend([0, bytes.len()]);
            cuts.sort_unstable();
            let chunks: Vec<&[u8]> = cuts.windows(2).map(|w| &bytes[w[0]..w[1]]).collect();
            let expected: Vec<String> = bodies.iter().map(Value::to_string).collect();
            prop_assert_eq!(all(&chunks).unwrap(), expected);
        }

        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            all(&[b"Content-Length: 3\r\n", &bytes]).ok();
        }
    }
}
