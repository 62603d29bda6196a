//! What is refused whatever the rules say and whoever agrees, as far as the text alone tells. Deleting
//! whole trees is judged where the workspace is known.

use super::parse::Raw;
use super::word::Word;
use super::{Touch, TouchKind, makers, own};

pub(super) fn of(name: &str, raw: &Raw, touches: &[Touch]) -> Option<String> {
    if makers::makes(name, raw) {
        return Some(format!("it makes a file system or changes partitions: {}", raw.text));
    }
    if let Some(why) = own::refusal(name, raw) {
        return Some(why);
    }
    // `python3.11` is python.
    let language = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    let script = matches!(language, "perl" | "python" | "ruby" | "node" | "php");
    let forks = |word: &Word| {
        const LOOPS: &[&str] = &["while", "for ", "loop", "redo", "until", "goto"];
        let text = word.text();
        text.contains("fork") && LOOPS.iter().any(|again| text.contains(again))
    };
    if script && raw.words.iter().skip(1).any(forks) {
        return Some(format!("it starts itself again without end: {}", raw.text));
    }
    let raw_write = touches.iter().find(|t| t.kind != TouchKind::Read && is_raw_device(&t.path));
    raw_write.map(|touch| format!("it writes to the device {}", touch.path))
}

/// Whether a path is a disk, a partition or the machine's memory, or stops the machine when it is written.
pub fn is_raw_device(path: &str) -> bool {
    const DISKS: &[&str] = &[
        "sd", "nvme", "hd", "vd", "xvd", "mmcblk", "disk", "mapper/", "dm-", "loop", "md", "nbd",
        "ram", "zram", "sr", "rdisk", "mem", "kmem", "port", "block/",
    ];
    let clean = path.replace("/./", "/").replace("//", "/");
    if clean == "/proc/sysrq-trigger" {
        return true;
    }
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
        // By the name that the shell keeps for it, or in a text that is run.
        let itself = first.source.contains("FUNCNAME") && first.source.contains('$');
        let callee = if itself { caller } else { callee };
        if let (Some(caller), Some(callee)) = (caller, callee)
            && self.edges.len() < CALLS_CAP
        {
            let again = callee == "eval"
                && raw.words.iter().skip(1).any(|word| {
                    let text = word.text();
                    let calls = text.split(|c: char| !c.is_alphanumeric() && !":_-.".contains(c));
                    text.contains(['|', '&']) && calls.into_iter().any(|call| call == caller)
                });
            let callee = if again { caller } else { callee };
            self.edges.push((caller.to_owned(), callee.to_owned(), beside || again));
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
