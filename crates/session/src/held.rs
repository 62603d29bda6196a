//! Files by their real paths, without a link on the way: a path that was looked at and agreed to may
//! lead elsewhere a moment later, because a command that runs beside us put a link there.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// What people said, and what their files hold, is nobody else's business.
pub const PRIVATE_FILE: u32 = 0o600;

/// Makes a folder, and what is missing above it, for nobody but its owner.
pub fn private_folder(folder: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

/// A folder held open. What is done through it happens in that folder, whatever its name leads to by
/// now.
#[derive(Debug)]
pub struct Held {
    _folder: Option<File>,
    through: PathBuf,
}

impl Held {
    /// `folder` is a real path: with a link on the way it fails ([`is_elsewhere`]).
    pub fn open(folder: &Path) -> io::Result<Self> {
        system::hold(folder)
    }

    /// As [`Self::open`]; what is missing on the way is made.
    pub fn make(folder: &Path) -> io::Result<Self> {
        match (Self::open(folder), folder.parent(), folder.file_name()) {
            (Err(error), Some(parent), Some(name)) if error.kind() == io::ErrorKind::NotFound => {
                let above = Self::make(parent)?;
                match fs::create_dir(above.join(name)) {
                    Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
                    _ => Self::open(folder),
                }
            }
            (opened, ..) => opened,
        }
    }

    /// The path of something in it; good for as long as it is held.
    pub fn join(&self, name: &OsStr) -> PathBuf {
        self.through.join(name)
    }

    /// The folder itself, as long as it is held.
    pub fn path(&self) -> &Path {
        &self.through
    }
}

/// Opens a real path for reading and never waits: a pipe without a writer would block an ordinary
/// `open` for good. Where it is a link, or one stands on the way, it fails ([`is_elsewhere`]).
pub fn open_real(path: &Path) -> io::Result<File> {
    system::open(path)
}

/// Opens a folder for listing, by a real path.
pub fn open_folder(path: &Path) -> io::Result<File> {
    system::open_folder(path)
}

/// Whether opening failed because the path leads elsewhere.
pub fn is_elsewhere(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::ELOOP)
}

fn elsewhere() -> io::Error {
    io::Error::from_raw_os_error(libc::ELOOP)
}

#[cfg(target_os = "linux")]
mod system {
    use super::*;
    use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat2};
    use rustix::io::Errno;
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::OpenOptionsExt;

    pub(super) fn hold(folder: &Path) -> io::Result<Held> {
        let file = open_with(folder, OFlags::PATH | OFlags::DIRECTORY)?;
        let through = descriptor(&file);
        Ok(Held { _folder: Some(file), through })
    }

    pub(super) fn open(path: &Path) -> io::Result<File> {
        open_with(path, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY)
    }

    pub(super) fn open_folder(path: &Path) -> io::Result<File> {
        open_with(path, OFlags::RDONLY | OFlags::DIRECTORY)
    }

    fn open_with(path: &Path, flags: OFlags) -> io::Result<File> {
        let all = flags | OFlags::CLOEXEC;
        match openat2(CWD, path, all, Mode::empty(), ResolveFlags::NO_SYMLINKS) {
            Ok(opened) => Ok(opened.into()),
            // Not in this kernel, or forbidden to us by whoever fenced this process in.
            Err(Errno::NOSYS | Errno::PERM) => open_and_compare(path, flags),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Opens it, and asks the kernel what has been opened.
    pub(super) fn open_and_compare(path: &Path, flags: OFlags) -> io::Result<File> {
        let flags = (flags | OFlags::NOFOLLOW).bits().cast_signed();
        let file = fs::OpenOptions::new().read(true).custom_flags(flags).open(path)?;
        if fs::read_link(descriptor(&file))? == path { Ok(file) } else { Err(elsewhere()) }
    }

    fn descriptor(file: &File) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()))
    }
}

/// Other systems have no name for an open folder: there a look before has to do.
#[cfg(not(target_os = "linux"))]
mod system {
    use super::*;
    use std::os::unix::fs::OpenOptionsExt;

    pub(super) fn hold(folder: &Path) -> io::Result<Held> {
        let is_real = fs::canonicalize(folder)? == folder;
        let through = folder.to_owned();
        if is_real { Ok(Held { _folder: None, through }) } else { Err(elsewhere()) }
    }

    pub(super) fn open_folder(path: &Path) -> io::Result<File> {
        hold(path)?;
        File::open(path)
    }

    pub(super) fn open(path: &Path) -> io::Result<File> {
        hold(path.parent().unwrap_or(Path::new("/")))?;
        let flags = libc::O_NONBLOCK | libc::O_NOCTTY | libc::O_NOFOLLOW;
        fs::OpenOptions::new().read(true).custom_flags(flags).open(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::os::unix::fs::symlink;

    /// A folder `real` with a file, and a link `link` to it.
    fn place() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(folder.path()).unwrap();
        fs::create_dir(root.join("real")).unwrap();
        fs::write(root.join("real/file"), "inside").unwrap();
        symlink(root.join("real"), root.join("link")).unwrap();
        (folder, root)
    }

    #[test]
    fn a_real_path_opens_and_a_link_anywhere_on_the_way_does_not() {
        let (_folder, root) = place();
        let mut text = String::new();
        open_real(&root.join("real/file")).unwrap().read_to_string(&mut text).unwrap();
        assert_eq!(text, "inside");
        symlink("file", root.join("real/other")).unwrap();
        for wrong in ["link/file", "real/other"] {
            assert!(is_elsewhere(&open_real(&root.join(wrong)).unwrap_err()), "{wrong}");
        }
        assert!(is_elsewhere(&Held::open(&root.join("link")).unwrap_err()));
        assert!(is_elsewhere(&Held::make(&root.join("link/new/folder")).unwrap_err()));
        assert!(!root.join("real/new").exists());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_kernel_without_the_call_refuses_the_same_links() {
        use rustix::fs::OFlags;
        let (_folder, root) = place();
        let open = |path: &str| system::open_and_compare(&root.join(path), OFlags::NONBLOCK);
        assert!(open("real/file").is_ok());
        assert!(is_elsewhere(&open("link/file").unwrap_err()));
        symlink("file", root.join("real/other")).unwrap();
        assert!(is_elsewhere(&open("real/other").unwrap_err()));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_held_folder_stays_the_same_when_its_name_leads_elsewhere() {
        let (_folder, root) = place();
        let held = Held::make(&root.join("deep/er")).unwrap();
        fs::rename(root.join("deep/er"), root.join("moved")).unwrap();
        symlink(root.join("real"), root.join("deep/er")).unwrap();
        fs::write(held.join(OsStr::new("new")), "x").unwrap();
        assert!(root.join("moved/new").exists());
        assert!(!root.join("real/new").exists());
    }

    #[test]
    fn a_pipe_does_not_keep_the_opener_waiting() {
        let (_folder, root) = place();
        let made = std::process::Command::new("mkfifo").arg(root.join("pipe")).status().unwrap();
        assert!(made.success());
        assert!(open_real(&root.join("pipe")).is_ok());
    }
}
