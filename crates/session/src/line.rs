//! One line of a session's file: how it is written, checked and read.
//!
//! `{"v":1,"id":"…","parent":"…","time":…,"type":"…","data":{…},"crc":"…"}`

use std::fs::File;
use std::io::{self, Write};

use serde::{Deserialize, Serialize};

use crate::entry::Entry;
use crate::fail::fail_after;
use crate::id::{EntryId, Mark};

/// Raised when a change makes older programs misread the file. A line carries the version that it
/// needs, so that they refuse only files in which something is beyond them.
///
/// 1: one line after the other. 2: an entry may continue any other (`moved`).
pub(crate) const FORMAT: u32 = 2;

/// What closes each line: the CRC-32 of everything before it.
const CHECKSUM_KEY: &str = ",\"crc\":\"";

/// The version from which on an entry is understood.
fn needs(entry: &Entry) -> u32 {
    match entry {
        Entry::Moved { .. } => 2,
        _ => 1,
    }
}

#[derive(Serialize)]
struct LineOut<'a> {
    v: u32,
    id: EntryId,
    parent: Option<EntryId>,
    time: u64,
    #[serde(flatten)]
    entry: &'a Entry,
}

/// Puts a line at the end of the file and tells its length.
pub(crate) fn write(file: &File, mark: &Mark, entry: &Entry) -> io::Result<u64> {
    let &Mark { id, parent, time } = mark;
    let line = LineOut { v: needs(entry), id, parent, time, entry };
    let mut writer = LineWriter::new(file);
    serde_json::to_writer(&mut writer, &line).map_err(io::Error::from)?;
    writer.close()
}

/// Writes one line with its checksum. A short one goes out in one piece; a long one (an answer of
/// megabytes) as it is made, so that it is never in memory twice.
struct LineWriter<'a> {
    file: &'a File,
    buffer: Vec<u8>,
    sum: crc32fast::Hasher,
    written: u64,
}

impl<'a> LineWriter<'a> {
    const FLUSH_BYTES: usize = 64 << 10;

    fn new(file: &'a File) -> Self {
        Self { file, buffer: Vec::with_capacity(512), sum: crc32fast::Hasher::new(), written: 0 }
    }

    /// Everything but the last `keep` bytes.
    fn send(&mut self, keep: usize) -> io::Result<()> {
        let ready = self.buffer.len().saturating_sub(keep);
        self.sum.update(&self.buffer[..ready]);
        self.file.write_all(&self.buffer[..ready])?;
        self.written += ready as u64;
        self.buffer.drain(..ready);
        Ok(())
    }

    /// Takes the bracket that closes the object off, puts the checksum in and closes it again.
    fn close(mut self) -> io::Result<u64> {
        self.buffer.pop();
        self.sum.update(&self.buffer);
        let sum = self.sum.clone().finalize();
        self.buffer.extend_from_slice(format!("{CHECKSUM_KEY}{sum:08x}\"}}\n").as_bytes());
        fail_after("append.half", || {
            self.file.write_all(&self.buffer[..self.buffer.len() / 2]).ok();
        });
        self.file.write_all(&self.buffer)?;
        Ok(self.written + self.buffer.len() as u64)
    }
}

impl Write for LineWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() > Self::FLUSH_BYTES {
            // The last byte may be the bracket that `close` has to take off.
            self.send(1)?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Whether the checksum fits the line, which comes without its line break.
pub(crate) fn is_sound(line: &[u8]) -> bool {
    let sum = || {
        let at = line.len().checked_sub(CHECKSUM_KEY.len() + 10)?;
        let (body, rest) = line.split_at(at);
        let sum = rest.strip_prefix(CHECKSUM_KEY.as_bytes())?.strip_suffix(b"\"}")?;
        let sum = u32::from_str_radix(std::str::from_utf8(sum).ok()?, 16).ok()?;
        Some(crc32fast::hash(body) == sum)
    };
    sum().unwrap_or(false)
}

/// What stands before the entry itself. Enough to place the line in the tree.
#[derive(Debug, PartialEq, Eq, Deserialize)]
pub(crate) struct Head<'a> {
    #[serde(default)]
    pub v: u32,
    pub id: &'a str,
    #[serde(default)]
    pub parent: Option<&'a str>,
    #[serde(default)]
    pub time: u64,
    #[serde(rename = "type")]
    pub kind: &'a str,
}

impl<'a> Head<'a> {
    /// The usual order of the keys needs a look at the first few bytes only.
    pub(crate) fn of(line: &'a [u8]) -> Option<Self> {
        Self::quick(line).or_else(|| serde_json::from_slice(line).ok())
    }

    fn quick(line: &'a [u8]) -> Option<Self> {
        /// Longer than any head that we write.
        const HEAD_BYTES: usize = 192;
        let head = &line[..line.len().min(HEAD_BYTES)];
        let head = match std::str::from_utf8(head) {
            Ok(text) => text,
            // Cut in the middle of a character, or no text behind it.
            Err(error) => std::str::from_utf8(&head[..error.valid_up_to()]).ok()?,
        };
        let (v, rest) = head.strip_prefix("{\"v\":")?.split_once(",\"id\":\"")?;
        let (id, rest) = rest.split_once("\",\"parent\":")?;
        let (parent, rest) = rest.split_once(",\"time\":")?;
        let (time, rest) = rest.split_once(",\"type\":\"")?;
        let (kind, _) = rest.split_once('"')?;
        let parent = match parent {
            "null" => None,
            quoted => Some(quoted.strip_prefix('"')?.strip_suffix('"')?),
        };
        Some(Self { v: v.parse().ok()?, id, parent, time: time.parse().ok()?, kind })
    }
}

/// The entry, or nothing if it is of a kind that a later version invented.
pub(crate) fn entry(line: &[u8]) -> Option<Entry> {
    serde_json::from_slice(line).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_read_in_any_order_and_from_damaged_lines_where_it_is_whole() {
        let usual = br#"{"v":1,"id":"A","parent":null,"time":7,"type":"note","data":{"text":"x"}"#;
        let odd = br#"{"type":"note","id":"A","time":7,"v":1,"data":{},"more":1}"#;
        let head = Head { v: 1, id: "A", parent: None, time: 7, kind: "note" };
        assert_eq!(Head::of(usual), Some(head));
        assert_eq!(Head::of(odd), Head::of(usual));
        for cut in 0..usual.len() {
            let head = Head::of(&usual[..cut]);
            assert!(head.is_none() || head == Head::of(usual), "{cut}");
        }
        assert_eq!(Head::of(b"{\"v\":1,\"id\":\"\xff"), None);
    }
}
