//! Whether it was the fence that a command ran into. We know what we forbade: what a command says
//! is only taken as a hint of where to look.

use std::fmt;
use std::path::{Component, Path, PathBuf};

use super::{Network, Sandbox};

/// What the fence stopped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stopped {
    Write(PathBuf),
    Read(PathBuf),
    Network,
}

impl fmt::Display for Stopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Write(path) => write!(f, "writing {}", path.display()),
            Self::Read(path) => write!(f, "reading {}", path.display()),
            Self::Network => f.write_str("the network"),
        }
    }
}

/// How programs say that they were refused.
const REFUSED: &[&str] = &[
    "permission denied",
    "read-only file system",
    "operation not permitted",
    "device or resource busy",
    "invalid cross-device link",
    "eacces",
    "eperm",
    "erofs",
    "ebusy",
];

/// How programs say that there is no network.
const OFFLINE: &[&str] = &[
    "could not resolve host",
    "couldn't resolve host",
    "temporary failure in name resolution",
    "name or service not known",
    "network is unreachable",
    "network unreachable",
    "failed to lookup address",
    "dns error",
    "getaddrinfo",
    "enetunreach",
    "eai_again",
    "enotfound",
];

/// Lines at the end of an output that are looked at.
const LINES: usize = 200;

pub(super) fn find(sandbox: &Sandbox, directory: &Path, output: &str) -> Option<Stopped> {
    let lines: Vec<&str> = output.lines().rev().take(LINES).collect();
    for line in &lines {
        let lower = line.to_lowercase();
        if !REFUSED.iter().any(|phrase| lower.contains(phrase)) {
            continue;
        }
        if let Some(stopped) = paths(line).find_map(|path| judge(sandbox, directory, &path)) {
            return Some(stopped);
        }
    }
    let offline = |line: &&str| {
        let lower = line.to_lowercase();
        OFFLINE.iter().any(|phrase| lower.contains(phrase))
    };
    let closed = sandbox.network() != Network::On;
    (closed && lines.iter().any(offline)).then_some(Stopped::Network)
}

/// Whether the fence forbids what could be done without it.
fn judge(sandbox: &Sandbox, directory: &Path, text: &str) -> Option<Stopped> {
    let home = || std::env::var_os("HOME").map(PathBuf::from);
    let path = match text.strip_prefix("~/") {
        Some(inside) => home()?.join(inside),
        None => directory.join(text),
    };
    let path = plain(&path);
    // Where it leads: a link in the workspace may leave it.
    let existing = path.ancestors().find(|folder| folder.exists())?;
    let real = std::fs::canonicalize(existing).ok()?;
    let real = match path.strip_prefix(existing) {
        Ok(rest) if !rest.as_os_str().is_empty() => real.join(rest),
        _ => real,
    };
    let fence = sandbox.found().ok()?;
    if fence.unreadable.iter().any(|hidden| real.starts_with(hidden)) {
        return Some(Stopped::Read(path));
    }
    // Nobody writes there, and what is said of it is about something else.
    let is_kernels = ["/proc", "/sys", "/dev"].iter().any(|own| real.starts_with(own));
    let forbidden = !fence.allows_write(&real) && !is_kernels;
    let possible = can_write(existing);
    (forbidden && possible).then_some(Stopped::Write(path))
}

fn can_write(path: &Path) -> bool {
    use std::os::unix::ffi::OsStrExt;
    let Ok(path) = std::ffi::CString::new(path.as_os_str().as_bytes()) else { return false };
    // SAFETY: the string ends in NUL and lives through the call.
    unsafe { libc::access(path.as_ptr(), libc::W_OK) == 0 }
}

/// Without `.` and `..`, and without looking at the disk.
fn plain(path: &Path) -> PathBuf {
    let mut clean = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                clean.pop();
            }
            other => clean.push(other),
        }
    }
    clean
}

/// Whatever in a line may be a path: first what is quoted, then words.
fn paths(line: &str) -> impl Iterator<Item = String> {
    let is_quote = |c: char| matches!(c, '\'' | '"' | '`' | '‘' | '’' | '“' | '”');
    let quoted: Vec<String> = line.split(is_quote).skip(1).step_by(2).map(str::to_owned).collect();
    let trim = |word: &str| {
        word.trim_matches(|c: char| {
            is_quote(c) || matches!(c, ':' | ',' | ';' | '(' | ')' | '[' | ']')
        })
        .to_owned()
    };
    let words: Vec<String> = line.split_whitespace().map(trim).collect();
    quoted.into_iter().chain(words).filter(|word| {
        !word.is_empty() && (word.contains('/') || word.contains('.')) && !word.contains("://")
    })
}
