//! The paths that common commands name, and what nobody can want to be done to some of them.

use super::parse::{Raw, Word};
use super::{Touch, TouchKind};

/// Programs whose words (but options) are paths that they change.
const WRITERS: &[&str] = &[
    "rm", "rmdir", "mv", "cp", "mkdir", "touch", "chmod", "chown", "chgrp", "ln", "tee",
    "truncate", "shred", "install", "unlink", "mkfifo", "mknod", "rsync", "setfacl", "chattr",
    "unzip", "gunzip", "gzip", "patch",
];

/// Programs whose words (but options) are paths that they read.
const READERS: &[&str] = &[
    "cat",
    "head",
    "tail",
    "less",
    "more",
    "wc",
    "stat",
    "file",
    "ls",
    "du",
    "tac",
    "nl",
    "od",
    "xxd",
    "hexdump",
    "strings",
    "cksum",
    "md5sum",
    "sha1sum",
    "sha256sum",
    "sha512sum",
    "base64",
    "diff",
    "cmp",
    "tree",
    "readlink",
    "realpath",
    "cd",
    "pushd",
    "chdir",
];

pub(super) fn touches(raw: &Raw, folders: &[String]) -> Vec<Touch> {
    let mut found = Vec::new();
    let mut add = |word: &Word, kind: TouchKind| {
        if let Some(path) = word.text.as_ref().filter(|p| !p.is_empty() && *p != "/dev/null") {
            found.push(Touch { path: path.clone(), kind, folders: folders.to_vec() });
        }
    };
    for redirect in &raw.redirects {
        add(&redirect.to, if redirect.writes { TouchKind::Write } else { TouchKind::Read });
    }
    let name = raw.program().unwrap_or_default();
    let plain = |word: &&Word| !word.text.as_deref().unwrap_or_default().starts_with('-');
    let named: Vec<&Word> = raw.words.iter().skip(1).filter(plain).collect();
    let has = |short: char, long: &str| has_option(raw, short, long);
    match name.as_str() {
        "rm" if has('r', "--recursive") || has('R', "--recursive") => {
            named.iter().for_each(|word| add(word, TouchKind::DeleteTree));
        }
        // The first word says how, not what.
        "chmod" | "chown" | "chgrp" => {
            named.iter().skip(1).for_each(|word| add(word, TouchKind::Write));
        }
        "sed" if has('i', "--in-place") => {
            named.iter().skip(1).for_each(|word| add(word, TouchKind::Write));
        }
        "dd" => {
            for word in &raw.words {
                let text = word.text.as_deref().unwrap_or_default();
                let (kind, path) = match text.split_once('=') {
                    Some(("of", path)) => (TouchKind::Write, path),
                    Some(("if", path)) => (TouchKind::Read, path),
                    _ => continue,
                };
                add(&Word::literal(path), kind);
            }
        }
        "find" => {
            let starts = named.iter().take_while(|w| !w.source.starts_with(['-', '(', '!']));
            let deletes = raw.words.iter().any(|w| w.text.as_deref() == Some("-delete"));
            let kind = if deletes { TouchKind::Write } else { TouchKind::Read };
            starts.for_each(|word| add(word, kind));
        }
        "git" => {
            let at = raw.words.iter().position(|w| w.text.as_deref() == Some("-C"));
            if let Some(folder) = at.and_then(|at| raw.words.get(at + 1)) {
                add(folder, TouchKind::Write);
            }
        }
        "tar" => {
            let at = raw.words.iter().position(|w| w.text.as_deref() == Some("-C"));
            if let Some(folder) = at.and_then(|at| raw.words.get(at + 1)) {
                add(folder, TouchKind::Write);
            }
        }
        name if WRITERS.contains(&name) => {
            named.iter().for_each(|word| add(word, TouchKind::Write))
        }
        name if READERS.contains(&name) => named.iter().for_each(|word| add(word, TouchKind::Read)),
        _ => {}
    }
    found
}

fn has_option(raw: &Raw, short: char, long: &str) -> bool {
    raw.words.iter().skip(1).filter_map(|word| word.text.as_deref()).any(|text| {
        let bundled = text.starts_with('-') && !text.starts_with("--") && text.contains(short);
        // Programs take any unambiguous beginning of a long option.
        let spelled = text.len() > 3 && (text.starts_with(long) || long.starts_with(text));
        bundled || spelled
    })
}

/// What is refused whatever the rules say and whoever agrees. Deleting whole trees is judged where the
/// workspace is known.
pub(super) fn floor(name: &str, raw: &Raw) -> Option<String> {
    let device = |path: &str| {
        let disks = [
            "/dev/sd",
            "/dev/nvme",
            "/dev/hd",
            "/dev/vd",
            "/dev/xvd",
            "/dev/mmcblk",
            "/dev/disk",
            "/dev/mapper",
            "/dev/dm-",
            "/dev/loop",
            "/dev/mem",
            "/dev/kmem",
            "/dev/port",
        ];
        disks.iter().any(|disk| path.starts_with(disk))
    };
    if name.starts_with("mkfs")
        || matches!(name, "wipefs" | "mkswap" | "fdisk" | "sfdisk" | "parted")
    {
        return Some(format!("it makes a file system or changes partitions: {}", raw.text));
    }
    let writes = touches(raw, &[]).into_iter().filter(|t| t.kind != TouchKind::Read);
    let raw_write = writes.into_iter().find(|t| device(&t.path));
    raw_write.map(|touch| format!("it writes to the device {}", touch.path))
}
