//! Landlock: rules on files, ports and signals that a process takes upon itself for good.
//!
//! The rules are collected before the fork; after it one call puts them in force, so nothing is
//! allocated between fork and exec and no helper program is needed.

use std::fs;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::{Fence, LANDLOCK_SCOPES};

const EXECUTE: u64 = 1;
const WRITE_FILE: u64 = 1 << 1;
const READ_FILE: u64 = 1 << 2;
const READ_DIR: u64 = 1 << 3;
/// Removing and making files and folders, everything but devices.
const CHANGE_DIR: u64 = 0b1_0111_1011 << 4;
const MAKE_CHAR: u64 = 1 << 6;
const MAKE_BLOCK: u64 = 1 << 11;
const REFER: u64 = 1 << 13;
const TRUNCATE: u64 = 1 << 14;
const IOCTL_DEV: u64 = 1 << 15;

const READ: u64 = EXECUTE | READ_FILE | READ_DIR;
const WRITE: u64 = READ | WRITE_FILE | CHANGE_DIR | REFER | TRUNCATE;
/// What can be said of something that is no folder.
const OF_FILE: u64 = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV;

const SCOPE_ABSTRACT_SOCKETS: u64 = 1;
const SCOPE_SIGNALS: u64 = 1 << 1;

/// The first version that knows control calls on devices.
const KNOWS_IOCTL: u32 = 5;

/// Devices that belong to every program.
const DEVICES: &[&str] = &[
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
    "/dev/ptmx",
    "/dev/pts",
    "/dev/shm",
    "/dev/fd",
    "/dev/stdin",
    "/dev/stdout",
    "/dev/stderr",
];

#[repr(C)]
struct Handled {
    files: u64,
    network: u64,
    scopes: u64,
}

#[repr(C, packed)]
struct Beneath {
    allowed: u64,
    parent: i32,
}

const RULE_PATH_BENEATH: i32 = 1;
const ASK_VERSION: u32 = 1;

#[derive(Debug)]
pub(super) struct Rules(OwnedFd);

/// The version of the kernel's interface, 0 without one.
pub(super) fn version() -> u32 {
    // SAFETY: with this flag the kernel takes no pointer.
    let version = unsafe {
        libc::syscall(
            libc::SYS_landlock_create_ruleset,
            std::ptr::null::<Handled>(),
            0usize,
            ASK_VERSION,
        )
    };
    u32::try_from(version).unwrap_or(0)
}

/// All that the fence says of files, and that signals stay inside.
pub(super) fn rules(fence: &Fence, version: u32) -> io::Result<Rules> {
    let ioctl = if version >= KNOWS_IOCTL { IOCTL_DEV } else { 0 };
    let files = WRITE | MAKE_CHAR | MAKE_BLOCK | ioctl;
    let rules = Rules::new(&Handled { files, network: 0, scopes: scopes(version) }, version)?;
    // Names of files are no secret that is worth breaking every `ls ~` for.
    rules.allow(Path::new("/"), READ_DIR)?;
    for path in readable(Path::new("/"), &fence.unreadable) {
        rules.allow(&path, READ)?;
    }
    for path in DEVICES {
        rules.allow(Path::new(path), READ | WRITE_FILE | TRUNCATE | CHANGE_DIR | ioctl)?;
    }
    for path in &fence.writable {
        rules.allow(path, WRITE)?;
    }
    Ok(rules)
}

/// Nothing on files: only that abstract sockets and signals of others are out of reach. Not even
/// that on older kernels.
pub(super) fn scopes_only() -> io::Result<Option<Rules>> {
    let version = version();
    if version < LANDLOCK_SCOPES {
        return Ok(None);
    }
    Rules::new(&Handled { files: 0, network: 0, scopes: scopes(version) }, version).map(Some)
}

fn scopes(version: u32) -> u64 {
    if version >= LANDLOCK_SCOPES { SCOPE_ABSTRACT_SOCKETS | SCOPE_SIGNALS } else { 0 }
}

/// Rules can only allow, and what they allow holds for everything below. So what lies around the
/// unreadable is allowed piece by piece.
fn readable(folder: &Path, unreadable: &[PathBuf]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let Ok(entries) = fs::read_dir(folder) else { return found };
    for entry in entries.flatten() {
        let (path, Ok(kind)) = (entry.path(), entry.file_type()) else { continue };
        // A link is judged by where it leads; devices are named one by one.
        let passed = kind.is_symlink() || kind.is_block_device() || path == Path::new("/dev");
        if passed || unreadable.contains(&path) {
            continue;
        }
        if kind.is_dir() && unreadable.iter().any(|hidden| hidden.starts_with(&path)) {
            found.extend(readable(&path, unreadable));
        } else {
            found.push(path);
        }
    }
    found
}

impl Rules {
    fn new(handled: &Handled, version: u32) -> io::Result<Self> {
        // Older kernels take a shorter form.
        let size = match version {
            0..=3 => 8usize,
            4..LANDLOCK_SCOPES => 16,
            _ => size_of::<Handled>(),
        };
        // SAFETY: the kernel reads `size` bytes of `handled`, which has that many.
        let made = unsafe {
            libc::syscall(libc::SYS_landlock_create_ruleset, &raw const *handled, size, 0u32)
        };
        let descriptor = i32::try_from(made).ok().filter(|made| *made >= 0);
        let descriptor = descriptor.ok_or_else(io::Error::last_os_error)?;
        // SAFETY: it was just made and belongs to nobody else.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(descriptor) }))
    }

    /// What cannot be opened stays forbidden, which is no error.
    fn allow(&self, path: &Path, access: u64) -> io::Result<()> {
        let flags = libc::O_PATH | libc::O_CLOEXEC;
        let Ok(file) = fs::OpenOptions::new().read(true).custom_flags(flags).open(path) else {
            return Ok(());
        };
        let is_folder = file.metadata().is_ok_and(|data| data.is_dir());
        let allowed = if is_folder { access } else { access & OF_FILE };
        let rule = Beneath { allowed, parent: file.as_raw_fd() };
        // SAFETY: the kernel copies the rule, which lives through the call.
        let done = unsafe {
            libc::syscall(
                libc::SYS_landlock_add_rule,
                self.0.as_raw_fd(),
                RULE_PATH_BENEATH,
                &raw const rule,
                0u32,
            )
        };
        match done {
            0 => Ok(()),
            _ => match io::Error::last_os_error() {
                // A kind of file that no rule can be about.
                error if error.raw_os_error() == Some(libc::EBADFD) => Ok(()),
                error => Err(error),
            },
        }
    }

    /// In force for this process and all that it starts. One system call.
    pub(super) fn restrict(&self) -> io::Result<()> {
        // SAFETY: takes a descriptor and flags.
        let done =
            unsafe { libc::syscall(libc::SYS_landlock_restrict_self, self.0.as_raw_fd(), 0u32) };
        if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_around_the_unreadable_stays_readable() {
        let folder = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(folder.path()).unwrap();
        for name in ["home/.ssh", "home/.config/browser", "home/.config/editor", "usr"] {
            fs::create_dir_all(root.join(name)).unwrap();
        }
        fs::write(root.join("home/.netrc"), "").unwrap();
        fs::write(root.join("home/notes"), "").unwrap();
        std::os::unix::fs::symlink(root.join("home/.ssh"), root.join("home/keys")).unwrap();
        let hidden = ["home/.ssh", "home/.config/browser", "home/.netrc"];
        let hidden: Vec<_> = hidden.map(|name| root.join(name)).into();
        let mut found = readable(&root, &hidden);
        found.sort();
        let wanted = ["home/.config/editor", "home/notes", "usr"];
        assert_eq!(found, wanted.map(|name| root.join(name)));
    }

    #[test]
    fn rights_are_those_of_the_kernels_interface() {
        // From the header: remove folder and file, make char, folder, regular, socket, fifo, block,
        // link.
        let all = (1 << 4) | (1 << 5) | (1 << 7) | (1 << 8) | (1 << 9) | (1 << 10) | (1 << 12);
        assert_eq!(CHANGE_DIR, all);
        assert_eq!(CHANGE_DIR & (MAKE_CHAR | MAKE_BLOCK), 0);
    }
}
