//! The lines of a session's file for those who read it beside the loop: with ids and times, and with
//! the branch that is current.

use std::collections::HashMap;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::entry::Entry;

const CHECKSUM_KEY: &[u8] = b",\"crc\":\"";

/// One line, its content not looked at yet.
#[derive(Debug, Deserialize)]
pub(crate) struct RawLine<'a> {
    pub(crate) id: &'a str,
    #[serde(default)]
    pub(crate) parent: Option<&'a str>,
    #[serde(default)]
    pub(crate) time: u64,
    #[serde(rename = "type")]
    pub(crate) kind: &'a str,
    #[serde(borrow)]
    pub(crate) data: &'a RawValue,
}

impl RawLine<'_> {
    /// Nothing for a kind from a later version.
    pub(crate) fn entry(&self) -> Option<Entry> {
        #[derive(Serialize)]
        struct Tagged<'a> {
            r#type: &'a str,
            data: &'a RawValue,
        }
        let tagged = serde_json::to_string(&Tagged { r#type: self.kind, data: self.data }).ok()?;
        serde_json::from_str(&tagged).ok()
    }
}

/// The whole lines of `bytes` whose checksum fits, and where the last whole line ends. What is damaged
/// or torn is left out.
pub(crate) fn lines(bytes: &[u8]) -> (Vec<RawLine<'_>>, usize) {
    let mut found = Vec::new();
    let mut at = 0;
    let mut end = 0;
    for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
        at += piece.len();
        let Some(line) = piece.strip_suffix(b"\n") else { break };
        if let Some(line) = checked(line).and_then(|line| serde_json::from_slice(line).ok()) {
            found.push(line);
            end = at;
        } else if at < bytes.len() {
            // In the middle: damaged for good. At the end it may be torn, and be cut off one day.
            end = at;
        }
    }
    (found, end)
}

fn checked(line: &[u8]) -> Option<&[u8]> {
    let at = line.len().checked_sub(CHECKSUM_KEY.len() + 10)?;
    let (body, rest) = line.split_at(at);
    let sum = rest.strip_prefix(CHECKSUM_KEY)?.strip_suffix(b"\"}")?;
    let sum = u32::from_str_radix(std::str::from_utf8(sum).ok()?, 16).ok()?;
    (crc32fast::hash(body) == sum).then_some(line)
}

/// Which lines are on the current branch: the ancestors of the last one. A line whose parent is gone
/// follows the one before it.
pub(crate) fn on_branch(lines: &[RawLine<'_>]) -> Vec<bool> {
    let places: HashMap<&str, usize> = lines.iter().enumerate().map(|(n, l)| (l.id, n)).collect();
    let mut on = vec![false; lines.len()];
    let mut next = lines.len().checked_sub(1);
    while let Some(at) = next {
        on[at] = true;
        let parent = lines[at].parent.and_then(|parent| places.get(parent).copied());
        // Ancestors stand before; anything else would be a circle.
        next = parent.filter(|parent| *parent < at).or_else(|| at.checked_sub(1));
    }
    on
}

/// The bytes of a session's file, be it compressed or not.
pub(crate) fn read_file(path: &Path) -> io::Result<Vec<u8>> {
    let bytes = std::fs::read(path)?;
    if path.extension().is_some_and(|extension| extension == "zst") {
        return zstd::decode_all(bytes.as_slice());
    }
    Ok(bytes)
}

/// Kinds that speak of the session as a whole: they count wherever they stand.
pub(crate) fn is_branchless(kind: &str) -> bool {
    matches!(kind, "titled" | "archived" | "imported")
}
