//! A file's content as models write it: without byte-order mark, lines ended by a line feed. Places
//! found in the view are mapped back to the file's own bytes.

use std::borrow::Cow;
use std::ops::Range;

use memchr::memmem;

use crate::rewrite::BOM;

pub(crate) struct View<'a> {
    pub(crate) bytes: Cow<'a, [u8]>,
    /// Places of the line feeds before which a carriage return was left out.
    returns: Vec<usize>,
    /// Bytes of the mark.
    skipped: usize,
}

/// How the lines of a text end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ends {
    Lf,
    CrLf,
}

impl Ends {
    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::Lf => "\n",
            Self::CrLf => "\r\n",
        }
    }

    /// The text with these line ends, whatever it had.
    pub(crate) fn put_into(self, text: &str) -> String {
        let plain = with_line_feeds(text);
        match self {
            Self::Lf => plain.into_owned(),
            Self::CrLf => plain.replace('\n', "\r\n"),
        }
    }
}

pub(crate) fn with_line_feeds(text: &str) -> Cow<'_, str> {
    if text.contains("\r\n") { text.replace("\r\n", "\n").into() } else { text.into() }
}

impl<'a> View<'a> {
    pub(crate) fn of(content: &'a [u8]) -> Self {
        let body = content.strip_prefix(BOM).unwrap_or(content);
        Self::of_body(body, content.len() - body.len())
    }

    /// Of what follows the so many bytes of a mark.
    pub(crate) fn of_body(body: &'a [u8], skipped: usize) -> Self {
        let mut returns = Vec::new();
        let mut kept = Vec::new();
        let mut from = 0;
        for at in memmem::find_iter(body, b"\r\n") {
            kept.extend_from_slice(&body[from..at]);
            returns.push(kept.len());
            from = at + 1;
        }
        if returns.is_empty() {
            return Self { bytes: body.into(), returns, skipped };
        }
        kept.extend_from_slice(&body[from..]);
        Self { bytes: kept.into(), returns, skipped }
    }

    pub(crate) fn has_mark(&self) -> bool {
        self.skipped > 0
    }

    /// The bytes of the file that a part of the view stands for.
    pub(crate) fn in_file(&self, part: &Range<usize>) -> Range<usize> {
        let place = |at: usize| self.skipped + at + self.returns.partition_point(|r| *r < at);
        place(part.start)..place(part.end)
    }

    /// The line ends for what replaces a part: those of the part if it has them all alike; else CRLF
    /// where the file has any.
    pub(crate) fn ends_for(&self, part: &Range<usize>) -> Ends {
        self.ends_within(part, !self.returns.is_empty())
    }

    /// As [`Self::ends_for`], of a view that does not show the whole file.
    pub(crate) fn ends_within(&self, part: &Range<usize>, file_has_returns: bool) -> Ends {
        if !file_has_returns {
            return Ends::Lf;
        }
        let feeds = memchr::memchr_iter(b'\n', &self.bytes[part.clone()]).count();
        let first = self.returns.partition_point(|r| *r < part.start);
        let returns = self.returns.partition_point(|r| *r < part.end) - first;
        if feeds > 0 && returns == 0 { Ends::Lf } else { Ends::CrLf }
    }

    /// The number of the line that a place is in, from 1.
    pub(crate) fn line_of(&self, at: usize) -> usize {
        1 + memchr::memchr_iter(b'\n', &self.bytes[..at]).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_in_the_view_are_places_in_the_file() {
        let content = b"\xEF\xBB\xBFa\r\nbc\nd\r\n\r\ne";
        let view = View::of(content);
        assert_eq!(view.bytes.as_ref(), b"a\nbc\nd\n\ne");
        let cases: &[(Range<usize>, &[u8])] = &[
            (0..1, b"a"),
            (0..2, b"a\r\n"),
            (1..2, b"\r\n"),
            (2..4, b"bc"),
            (0..9, b"a\r\nbc\nd\r\n\r\ne"),
            (6..8, b"\r\n\r\n"),
        ];
        for (part, expected) in cases {
            assert_eq!(&content[view.in_file(part)], *expected, "{part:?}");
        }
    }

    #[test]
    fn what_is_put_in_ends_its_lines_as_its_place_does() {
        let cases: &[(&[u8], Range<usize>, Ends)] = &[
            (b"a\nb\n", 0..1, Ends::Lf),
            (b"a\r\nb\r\n", 0..1, Ends::CrLf),
            (b"a\r\nb\nc\n", 2..5, Ends::Lf),
            (b"a\r\nb\nc\n", 2..3, Ends::CrLf),
            (b"a\r\nb\nc\n", 0..5, Ends::CrLf),
        ];
        for (content, part, ends) in cases {
            assert_eq!(View::of(content).ends_for(part), *ends, "{content:?} {part:?}");
        }
    }
}
