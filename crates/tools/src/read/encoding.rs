//! Which bytes are which characters.

use std::borrow::Cow;
use std::fs::File;
use std::io::Read;

use encoding_rs_io::DecodeReaderBytesBuilder;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Encoding {
    /// Or something that is taken for it, line by line.
    Utf8,
    Utf16LittleEndian,
    Utf16BigEndian,
}

impl Encoding {
    /// By the mark at the beginning; UTF-16 without one cannot be told from binary data.
    pub(super) fn of(sample: &[u8]) -> Self {
        match sample {
            [0xFF, 0xFE, ..] => Self::Utf16LittleEndian,
            [0xFE, 0xFF, ..] => Self::Utf16BigEndian,
            _ => Self::Utf8,
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Utf8 => "utf-8",
            Self::Utf16LittleEndian => "utf-16le",
            Self::Utf16BigEndian => "utf-16be",
        }
    }

    /// The file as UTF-8, piece by piece, without the mark.
    pub(super) fn decode(self, file: &mut File) -> Box<dyn Read + '_> {
        match self {
            Self::Utf8 => Box::new(file),
            Self::Utf16LittleEndian | Self::Utf16BigEndian => {
                let mut builder = DecodeReaderBytesBuilder::new();
                Box::new(builder.bom_sniffing(true).strip_bom(true).build(file))
            }
        }
    }
}

/// Why a line's characters are not certain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Doubt {
    Latin1,
    /// UTF-8 with bytes that are not.
    Damaged,
}

/// A line's characters. One that is not UTF-8 is taken for Latin-1 where nothing in it says
/// otherwise, so that its umlauts can be read.
pub(super) fn characters(line: &[u8], cut: bool) -> (Cow<'_, str>, Option<Doubt>) {
    let error = match std::str::from_utf8(line) {
        Ok(text) => return (Cow::Borrowed(text), None),
        Err(error) => error,
    };
    if cut && error.error_len().is_none() {
        let whole = &line[..error.valid_up_to()];
        return (String::from_utf8_lossy(whole), None);
    }
    let is_utf8_elsewhere = line.utf8_chunks().any(|chunk| !chunk.valid().is_ascii());
    if is_utf8_elsewhere {
        (String::from_utf8_lossy(line), Some(Doubt::Damaged))
    } else {
        let text: String = line.iter().map(|&byte| char::from(byte)).collect();
        (Cow::Owned(text), Some(Doubt::Latin1))
    }
}
