//! Clearing away: what is too old goes, then what nobody refers to, then the oldest.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::state::Hash;
use super::store::Quota;

struct Kept {
    path: PathBuf,
    hash: Hash,
    modified: SystemTime,
    bytes: u64,
}

/// Bytes of everything that is kept.
pub(super) fn total(root: &Path) -> u64 {
    kept(root).iter().map(|file| file.bytes).sum()
}

/// Returns the bytes that are left.
pub(super) fn clear(
    root: &Path,
    sessions: &Path,
    pinned: &HashMap<Hash, usize>,
    quota: Quota,
    now: SystemTime,
) -> u64 {
    clear_unfinished(root, now);
    let mut files = kept(root);
    let mut total: u64 = files.iter().map(|file| file.bytes).sum();
    let too_old = |file: &Kept| now.duration_since(file.modified).is_ok_and(|age| age > quota.age);
    if total <= quota.bytes && !files.iter().any(too_old) {
        return total;
    }
    let wanted = if total > quota.bytes { referenced(sessions) } else { HashSet::new() };
    files.retain(|file| !pinned.contains_key(&file.hash));
    files.sort_by_key(|file| (!too_old(file), wanted.contains(&file.hash), file.modified));
    for file in files {
        if total <= quota.bytes && !too_old(&file) {
            break;
        }
        if fs::remove_file(&file.path).is_ok() {
            total -= file.bytes;
        }
    }
    total
}

/// What a process that died was about to keep.
fn clear_unfinished(root: &Path, now: SystemTime) {
    const HOUR: std::time::Duration = std::time::Duration::from_secs(60 * 60);
    for entry in fs::read_dir(root.join("tmp")).into_iter().flatten().flatten() {
        let modified = entry.metadata().and_then(|data| data.modified());
        if modified.is_ok_and(|then| now.duration_since(then).is_ok_and(|age| age > HOUR)) {
            fs::remove_file(entry.path()).ok();
        }
    }
}

fn kept(root: &Path) -> Vec<Kept> {
    let folders = fs::read_dir(root).into_iter().flatten().flatten();
    let folders = folders.filter(|folder| folder.file_name().len() == 2);
    let files = folders.flat_map(|folder| fs::read_dir(folder.path()).into_iter().flatten());
    let file = |entry: fs::DirEntry| {
        let hash = Hash::parse(entry.file_name().to_str()?)?;
        let data = entry.metadata().ok()?;
        Some(Kept { path: entry.path(), hash, modified: data.modified().ok()?, bytes: data.len() })
    };
    files.flatten().filter_map(file).collect()
}

/// A log's bytes, also those of an old one that has been compressed; nothing of other files.
fn log_bytes(path: &Path) -> Option<Vec<u8>> {
    let name = path.file_name()?.to_str()?;
    if name.ends_with(".jsonl.zst") {
        return zstd::decode_all(fs::File::open(path).ok()?).ok();
    }
    name.ends_with(".jsonl").then(|| fs::read(path).unwrap_or_default())
}

/// The contents that some log speaks of. Logs are searched as bytes: they may be long.
fn referenced(sessions: &Path) -> HashSet<Hash> {
    const KEY: &[u8] = b"\"hash\":\"";
    let mut found = HashSet::new();
    let mut folders = vec![sessions.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                folders.push(path);
            } else if let Some(bytes) = log_bytes(&path) {
                let mut rest = bytes.as_slice();
                while let Some(at) = memchr::memmem::find(rest, KEY) {
                    rest = &rest[at + KEY.len()..];
                    let name = rest.get(..64).and_then(|name| std::str::from_utf8(name).ok());
                    found.extend(name.and_then(Hash::parse));
                }
            }
        }
    }
    found
}
