//! A repository's index, read: which files it knows, by which object, and how they looked when they
//! were last known to be that object. Read here and not through git, because git would run the programs
//! that a repository's configuration names, and rewrite the file as it reads it.

use std::fs;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use super::scan::{Facts, Kind};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Tracked {
    /// Below the repository's root.
    pub(super) path: PathBuf,
    pub(super) object: String,
    seen: Seen,
}

/// What the index remembers of a file. Parts of it are cut to 32 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Seen {
    ctime: (u32, u32),
    mtime: (u32, u32),
    inode: u32,
    mode: u32,
    len: u32,
}

#[derive(Debug, Default)]
pub(super) struct Index {
    pub(super) files: Vec<Tracked>,
    /// When it was written: what changed since within the clock's tick may look unchanged.
    written: i64,
}

const REGULAR: u32 = 0o100_000;
const TYPE_BITS: u32 = 0o170_000;
const EMBEDDED: u32 = 0o160_000;

/// The folders that a repository's index takes for repositories of their own, below its root; nothing
/// where the index is in a form that is not known here. `folder` is the git folder.
pub fn embedded_repositories(folder: &Path) -> io::Result<Option<Vec<PathBuf>>> {
    if Facts::at(&folder.join("index"))?.is_none() {
        return Ok(Some(Vec::new()));
    }
    let index = Index::read(folder)?;
    Ok(index.map(|index| index.embedded().map(Path::to_owned).collect()))
}

impl Index {
    /// Nothing, where there is none or it is in a form that is not known here.
    pub(super) fn read(folder: &Path) -> io::Result<Option<Self>> {
        let path = folder.join("index");
        let Some(facts) = Facts::at(&path)? else { return Ok(None) };
        let bytes = fs::read(&path)?;
        let object_bytes = object_bytes(folder);
        Ok(parse(&bytes, object_bytes).map(|files| Self { files, written: facts.mtime }))
    }

    /// The folders that it takes for repositories of their own.
    fn embedded(&self) -> impl Iterator<Item = &Path> {
        let is_link = |file: &&Tracked| file.seen.mode & TYPE_BITS == EMBEDDED;
        self.files.iter().filter(is_link).map(|file| file.path.as_path())
    }

    /// Whether the file is, by all that is known, the object that the index names.
    pub(super) fn is_clean(&self, tracked: &Tracked, facts: &Facts) -> bool {
        let seen = &tracked.seen;
        let cut = |nanos: i64| {
            let (seconds, rest) =
                (nanos.div_euclid(1_000_000_000), nanos.rem_euclid(1_000_000_000));
            // As git keeps them.
            (seconds as u32, rest as u32)
        };
        seen.mode & TYPE_BITS == REGULAR
            && facts.kind == Kind::File
            && facts.mtime < self.written
            && facts.ctime < self.written
            && seen.mtime == cut(facts.mtime)
            && seen.ctime == cut(facts.ctime)
            && seen.inode == facts.inode as u32
            && seen.len == facts.len as u32
    }
}

/// SHA-1, unless the repository says otherwise.
fn object_bytes(folder: &Path) -> usize {
    let common = fs::read_to_string(folder.join("commondir"));
    let common = common.map_or_else(
        |_| folder.to_owned(),
        |text| folder.join(text.trim_end_matches(['\n', '\r'])),
    );
    let config = fs::read_to_string(common.join("config")).unwrap_or_default().to_lowercase();
    let compact: String = config.split_whitespace().collect();
    if compact.contains("objectformat=sha256") { 32 } else { 20 }
}

fn parse(bytes: &[u8], object_bytes: usize) -> Option<Vec<Tracked>> {
    let mut at = Cursor { bytes, at: 0 };
    if at.take(4)? != b"DIRC" {
        return None;
    }
    let version = at.number()?;
    if !(2..=4).contains(&version) {
        return None;
    }
    let count = at.number()? as usize;
    let mut files = Vec::with_capacity(count.min(1 << 20));
    let mut previous: Vec<u8> = Vec::new();
    for _ in 0..count {
        let start = at.at;
        let ctime = (at.number()?, at.number()?);
        let mtime = (at.number()?, at.number()?);
        let (_device, inode, mode) = (at.number()?, at.number()?, at.number()?);
        let (_user, _group, len) = (at.number()?, at.number()?, at.number()?);
        let object = hex(at.take(object_bytes)?);
        let flags = at.short()?;
        if flags & 0x4000 != 0 {
            at.short()?;
        }
        let path = if version == 4 {
            let strip = at.offset()?;
            let keep = previous.len().checked_sub(strip)?;
            previous.truncate(keep);
            previous.extend_from_slice(at.until_nul()?);
            previous.clone()
        } else {
            let path = at.until_nul()?.to_vec();
            // Entries are padded to eight bytes, with one NUL at least, which has been taken.
            let length = at.at - 1 - start;
            at.at = start + (length + 8) / 8 * 8;
            path
        };
        // A conflict has several, none of which is the file.
        if (flags >> 12) & 3 != 0 && mode & TYPE_BITS != EMBEDDED {
            continue;
        }
        let path = PathBuf::from(std::ffi::OsString::from_vec(path));
        files.push(Tracked { path, object, seen: Seen { ctime, mtime, inode, mode, len } });
    }
    // With a shared index the entries are elsewhere and this is only the difference.
    if has_extension(bytes.get(at.at..bytes.len().checked_sub(object_bytes)?)?, b"link") {
        return None;
    }
    Some(files)
}

fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |four: u8| char::from(DIGITS[usize::from(four & 15)]);
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(*byte)]).collect()
}

fn has_extension(mut rest: &[u8], wanted: &[u8]) -> bool {
    while rest.len() >= 8 {
        let length = u32::from_be_bytes([rest[4], rest[5], rest[6], rest[7]]) as usize;
        if &rest[..4] == wanted {
            return true;
        }
        rest = rest.get(8 + length..).unwrap_or_default();
    }
    false
}

struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let taken = self.bytes.get(self.at..self.at.checked_add(count)?)?;
        self.at += count;
        Some(taken)
    }

    fn number(&mut self) -> Option<u32> {
        Some(u32::from_be_bytes(self.take(4)?.try_into().ok()?))
    }

    fn short(&mut self) -> Option<u16> {
        Some(u16::from_be_bytes(self.take(2)?.try_into().ok()?))
    }

    fn until_nul(&mut self) -> Option<&'a [u8]> {
        let rest = self.bytes.get(self.at..)?;
        let length = memchr::memchr(0, rest)?;
        self.at += length + 1;
        Some(&rest[..length])
    }

    /// Git's numbers of several bytes: seven bits each, and one is added for each byte that follows.
    fn offset(&mut self) -> Option<usize> {
        let mut byte = *self.take(1)?.first()?;
        let mut value = usize::from(byte & 0x7f);
        while byte & 0x80 != 0 {
            byte = *self.take(1)?.first()?;
            value = (value.checked_add(1)?.checked_mul(128)?) | usize::from(byte & 0x7f);
        }
        Some(value)
    }
}

#[cfg(test)]
#[path = "index_tests.rs"]
mod tests;
