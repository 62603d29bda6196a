//! What is refused whatever the rules say and whoever agrees, as far as the text alone tells. Deleting
//! whole trees is judged where the workspace is known.

use super::parse::Raw;
use super::word::Word;
use super::{Touch, TouchKind};

/// Programs that make file systems or change partitions, whatever they are given.
pub(super) fn is_maker(name: &str) -> bool {
    name.starts_with("mkfs") || is_partitioner(name)
}

fn is_partitioner(name: &str) -> bool {
    matches!(
        name,
        "wipefs"
            | "mkswap"
            | "mke2fs"
            | "mkdosfs"
            | "mkntfs"
            | "newfs"
            | "blkdiscard"
            | "sgdisk"
            | "gdisk"
            | "cfdisk"
            | "mdadm"
            | "pvcreate"
            | "vgremove"
            | "lvremove"
            | "zpool"
            | "sfdisk"
            | "fdisk"
            | "parted"
            | "partx"
    )
}

/// Words with which such a program only looks.
const LOOKS: &[&str] = &[
    "-l",
    "--list",
    "-p",
    "--print",
    "print",
    "-n",
    "--no-act",
    "--help",
    "-h",
    "--version",
    "-V",
    "-d",
    "--dump",
    "-V",
    "status",
    "list",
    "get",
    "--detail",
    "-J",
    "--json",
];

pub(super) fn of(name: &str, raw: &Raw, touches: &[Touch]) -> Option<String> {
    let looks = || raw.words.iter().skip(1).any(|word| LOOKS.contains(&word.text()));
    let formats = matches!(
        (name, raw.words.get(1).map(Word::text)),
        ("cryptsetup", Some("luksFormat" | "erase")) | ("nvme", Some("format" | "sanitize"))
    ) || name == "hdparm"
        && raw.words.iter().any(|w| w.text().starts_with("--security-erase"))
        || name == "badblocks" && raw.words.iter().any(|w| matches!(w.text(), "-w" | "-n"));
    if name.starts_with("mkfs") || is_partitioner(name) && !looks() || formats {
        return Some(format!("it makes a file system or changes partitions: {}", raw.text));
    }
    let script =
        matches!(name, "perl" | "python" | "python3" | "python2" | "ruby" | "node" | "php");
    let forks = |word: &Word| {
        let text = word.text();
        text.contains("fork")
            && (text.contains("while") || text.contains("for ") || text.contains("loop"))
    };
    if script && raw.words.iter().skip(1).any(forks) {
        return Some(format!("it starts itself again without end: {}", raw.text));
    }
    let raw_write = touches.iter().find(|t| t.kind != TouchKind::Read && is_raw_device(&t.path));
    raw_write.map(|touch| format!("it writes to the device {}", touch.path))
}

/// Whether a path is a disk, a partition or the machine's memory.
pub fn is_raw_device(path: &str) -> bool {
    const DISKS: &[&str] = &[
        "sd", "nvme", "hd", "vd", "xvd", "mmcblk", "disk", "mapper/", "dm-", "loop", "md", "nbd",
        "ram", "zram", "sr", "rdisk", "mem", "kmem", "port", "block/",
    ];
    let clean = path.replace("/./", "/").replace("//", "/");
    let Some(device) = clean.strip_prefix("/dev/") else { return false };
    DISKS.iter().any(|disk| device.starts_with(disk))
}

/// Who calls whom among a line's functions, and whether beside others.
#[derive(Default)]
pub(super) struct Calls {
    edges: Vec<(String, String, bool)>,
}

/// Calls that are followed: more make no other circle that anybody writes.
const CALLS_CAP: usize = 64;

impl Calls {
    /// Notes a call from inside a function. A script that starts itself twice needs none.
    pub(super) fn note(&mut self, raw: &Raw, beside: bool, inside: &[String]) {
        let Some(first) = raw.words.first() else { return };
        let script =
            matches!(first.source.trim_matches('"'), "$0" | "./$0" | "${0}" | "$BASH_SOURCE");
        let caller = if script { Some("$0") } else { inside.last().map(String::as_str) };
        let callee = if script { Some("$0") } else { first.text.as_deref() };
        if let (Some(caller), Some(callee)) = (caller, callee)
            && self.edges.len() < CALLS_CAP
        {
            self.edges.push((caller.to_owned(), callee.to_owned(), beside));
        }
    }

    pub(super) fn count(&self) -> usize {
        self.edges.len()
    }

    /// The calls noted since then turned out to run beside others.
    pub(super) fn beside_since(&mut self, count: usize) {
        let since = self.edges.get_mut(count..).unwrap_or_default();
        since.iter_mut().for_each(|(_, _, beside)| *beside = true);
    }

    /// A function that calls itself in a pipe or in the background, directly or through others, takes
    /// all processes that there are.
    pub(super) fn bomb(&self) -> Option<String> {
        let bomb =
            self.edges.iter().filter(|(_, _, beside)| *beside).find(|(caller, callee, _)| {
                let mut reached = vec![callee.as_str()];
                let mut at = 0;
                while let Some(from) = reached.get(at).copied() {
                    let next = self.edges.iter().filter(|(caller, ..)| caller == from);
                    let next: Vec<&str> = next
                        .map(|(_, to, _)| to.as_str())
                        .filter(|to| !reached.contains(to))
                        .collect();
                    reached.extend(next);
                    at += 1;
                }
                reached.contains(&caller.as_str())
            });
        bomb.map(|(caller, ..)| format!("it starts itself again without end: {caller}"))
    }
}
