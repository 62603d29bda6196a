//! Landlock: rules on files, ports and signals that a process takes upon itself for good.
//!
//! The rules are collected before the fork; after it one call puts them in force, so nothing is
//! allocated between fork and exec and no helper program is needed.

use std::fs;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::roots::{self, Root};
use super::{Fence, LANDLOCK_SCOPES};

/// Entries of folders that lead to something unreadable; each costs two system calls, for each child.
const PIECES_CAP: usize = 2_000;

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
pub(super) fn rules(fence: &Fence, roots: &[&Root], version: u32) -> io::Result<Rules> {
    let ioctl = if version >= KNOWS_IOCTL { IOCTL_DEV } else { 0 };
    let files = WRITE | MAKE_CHAR | MAKE_BLOCK | ioctl;
    let rules = Rules::new(&Handled { files, network: 0, scopes: scopes(version) }, version)?;
    let hidden = hidden(fence, roots);
    // Names of files are no secret that is worth breaking every `ls ~` for.
    rules.allow(Path::new("/"), READ_DIR)?;
    for path in around(Path::new("/"), &hidden, &mut usize::MAX.clone()).unwrap_or_default() {
        rules.allow(&path, READ)?;
    }
    for path in DEVICES {
        // Some are links, and all of them the machine's own.
        if let Ok(file) = fs::OpenOptions::new().read(true).custom_flags(PLACE).open(path) {
            rules.add(&file, READ | WRITE_FILE | TRUNCATE | ioctl)?;
        }
    }
    for root in roots {
        match pieces(root, &hidden) {
            Pieces::Whole | Pieces::TooMany => rules.add(&root.file, WRITE)?,
            Pieces::Some(pieces) => {
                for path in pieces {
                    rules.allow(&path, WRITE)?;
                }
            }
        }
    }
    Ok(rules)
}

/// What should be unreadable and is not: it lies where a child may write, and is not there yet, or there
/// is too much around it.
pub(super) fn unheld(fence: &Fence, roots: &[&Root]) -> Vec<PathBuf> {
    let hidden = hidden(fence, roots);
    let mut open: Vec<PathBuf> = Vec::new();
    for root in roots {
        let inside = fence.unreadable.iter().map(|path| real(path));
        let inside = inside.filter(|path| path.starts_with(&root.path));
        match pieces(root, &hidden) {
            Pieces::Some(_) => {}
            Pieces::Whole | Pieces::TooMany => open.extend(inside),
        }
    }
    open
}

/// What must be led around: what is unreadable and there. In a folder that has such a thing in it, also
/// what is not there yet: where nothing can be made, that cannot be made either.
fn hidden(fence: &Fence, roots: &[&Root]) -> Vec<PathBuf> {
    let there = fence.unreadable.iter().filter_map(|path| fs::canonicalize(path).ok());
    let mut hidden: Vec<PathBuf> = there.collect();
    let shut = |root: &&&Root| hidden.iter().any(|path| path.starts_with(&root.path));
    let shut: Vec<_> = roots.iter().filter(shut).collect();
    let absent = fence.unreadable.iter().map(|path| real(path));
    let absent = absent.filter(|path| shut.iter().any(|root| path.starts_with(&root.path)));
    let absent: Vec<_> = absent.collect();
    hidden.extend(absent);
    hidden
}

/// Without links, as far as it is there; its last name may be one.
fn real(path: &Path) -> PathBuf {
    let mut rest = Vec::new();
    let mut folder = path;
    loop {
        let (Some(parent), Some(name)) = (folder.parent(), folder.file_name()) else {
            return path.to_owned();
        };
        rest.push(name);
        folder = parent;
        if let Ok(real) = fs::canonicalize(folder) {
            return rest.iter().rev().fold(real, |path, name| path.join(name));
        }
    }
}

enum Pieces {
    Whole,
    Some(Vec<PathBuf>),
    TooMany,
}

/// What a child may write of a root. Folders that lead to something unreadable stay as they are: whoever
/// may rename things in them gives what is unreadable another name.
fn pieces(root: &Root, hidden: &[PathBuf]) -> Pieces {
    if hidden.contains(&root.path) {
        return Pieces::Some(Vec::new());
    }
    if !hidden.iter().any(|path| path.starts_with(&root.path)) {
        return Pieces::Whole;
    }
    around(&root.path, hidden, &mut PIECES_CAP.clone()).map_or(Pieces::TooMany, Pieces::Some)
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
/// unreadable is allowed piece by piece. Nothing where there are more than are `left`.
fn around(folder: &Path, unreadable: &[PathBuf], left: &mut usize) -> Option<Vec<PathBuf>> {
    let mut found = Vec::new();
    let Ok(entries) = fs::read_dir(folder) else { return Some(found) };
    for entry in entries.flatten() {
        *left = left.checked_sub(1)?;
        let (path, Ok(kind)) = (entry.path(), entry.file_type()) else { continue };
        // A link is judged by where it leads; devices are named one by one.
        let passed = kind.is_symlink() || kind.is_block_device() || path == Path::new("/dev");
        if passed || unreadable.contains(&path) {
            continue;
        }
        if kind.is_dir() && unreadable.iter().any(|hidden| hidden.starts_with(&path)) {
            found.extend(around(&path, unreadable, left)?);
        } else {
            found.push(path);
        }
    }
    Some(found)
}

/// Opened to name it, not to read it.
const PLACE: i32 = libc::O_PATH | libc::O_CLOEXEC;

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

    /// What cannot be opened stays forbidden, which is no error; so does what has become a link.
    fn allow(&self, path: &Path, access: u64) -> io::Result<()> {
        roots::open(path).map_or(Ok(()), |file| self.add(&file, access))
    }

    fn add(&self, file: &fs::File, access: u64) -> io::Result<()> {
        let is_folder = file.metadata().is_ok_and(|data| data.is_dir());
        let allowed = if is_folder { access } else { access & OF_FILE };
        match self.add_descriptor(file.as_raw_fd(), allowed) {
            // A kind of file that no rule can be about.
            Err(error) if error.raw_os_error() == Some(libc::EBADFD) => Ok(()),
            done => done,
        }
    }

    /// The child's own terminal, which is not there yet when the rules are made. Async-signal-safe.
    pub(super) fn allow_terminal(&self) -> io::Result<()> {
        // SAFETY: takes an integer.
        if unsafe { libc::isatty(0) } == 0 {
            return Ok(());
        }
        match self.add_descriptor(0, READ_FILE | WRITE_FILE | IOCTL_DEV) {
            // Before control calls were known.
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
                self.add_descriptor(0, READ_FILE | WRITE_FILE)
            }
            done => done,
        }
    }

    fn add_descriptor(&self, parent: i32, allowed: u64) -> io::Result<()> {
        let rule = Beneath { allowed, parent };
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
        if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
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
        let mut found = around(&root, &hidden, &mut 9).unwrap();
        found.sort();
        let wanted = ["home/.config/editor", "home/notes", "usr"];
        assert_eq!(found, wanted.map(|name| root.join(name)));
        assert_eq!(around(&root, &hidden, &mut 8), None);
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
