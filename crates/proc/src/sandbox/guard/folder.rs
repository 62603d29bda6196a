//! A folder held open, and what is done in it. Names have one part and are never followed where they
//! are links: what happens, happens in this folder, wherever it is by now.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};

/// Device and number: the same for as long as it is held.
pub(super) type Id = (u64, u64);

/// What the owner of a folder needs to change it.
const OWNER: u32 = 0o700;

#[derive(Debug)]
pub(super) struct Folder {
    file: File,
    pub(super) id: Id,
}

pub(super) fn id_of(data: &Metadata) -> Id {
    (data.dev(), data.ino())
}

pub(super) fn mode_of(data: &Metadata) -> u32 {
    data.mode() & 0o7777
}

impl Folder {
    /// By a real path: a link on the way is an error.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let mut folder = Self::of(Path::new("/"))?;
        for part in path.components() {
            match part {
                Component::RootDir => {}
                Component::Normal(name) => folder = folder.inner(name)?,
                _ => return Err(io::ErrorKind::InvalidInput.into()),
            }
        }
        Ok(folder)
    }

    /// A folder in this one, and no link to one.
    pub(super) fn inner(&self, name: &OsStr) -> io::Result<Self> {
        Self::of(&self.at(name))
    }

    fn of(path: &Path) -> io::Result<Self> {
        let file = pinned(path, libc::O_DIRECTORY)?;
        let id = id_of(&file.metadata()?);
        Ok(Self { file, id })
    }

    /// The path of a name in it; good for as long as it is held.
    pub(super) fn at(&self, name: impl AsRef<Path>) -> PathBuf {
        handle(&self.file).join(name)
    }

    pub(super) fn look(&self, name: &OsStr) -> io::Result<Option<Metadata>> {
        match fs::symlink_metadata(self.at(name)) {
            Ok(data) => Ok(Some(data)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub(super) fn mode(&self) -> io::Result<u32> {
        Ok(mode_of(&self.file.metadata()?))
    }

    pub(super) fn set_mode(&self, mode: u32) -> io::Result<()> {
        fs::set_permissions(handle(&self.file), fs::Permissions::from_mode(mode))
    }

    /// Its names, and no more than `cap` of them.
    pub(super) fn names(&self, cap: usize) -> io::Result<Vec<OsString>> {
        let entries = fs::read_dir(handle(&self.file))?.take(cap);
        entries.map(|entry| entry.map(|entry| entry.file_name())).collect()
    }

    /// What is in a file of this size. Anything else, a pipe that nobody writes to or a file without an
    /// end, is an error at once.
    pub(super) fn read(&self, name: &OsStr, size: u64) -> io::Result<Vec<u8>> {
        let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY | libc::O_CLOEXEC;
        let file = OpenOptions::new().read(true).custom_flags(flags).open(self.at(name))?;
        let data = file.metadata()?;
        if !data.is_file() || data.len() != size {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let mut bytes = Vec::new();
        file.take(size + 1).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// A new file; nothing may be there.
    pub(super) fn write(
        &self,
        name: &OsStr,
        bytes: &[u8],
        mode: u32,
        owner: (u32, u32),
    ) -> io::Result<()> {
        let new = OpenOptions::new().write(true).create_new(true).mode(0o600).open(self.at(name));
        let mut file = new?;
        file.write_all(bytes)?;
        // Only root can give files away, and only root writes those of others.
        std::os::unix::fs::fchown(&file, Some(owner.0), Some(owner.1)).ok();
        file.set_permissions(fs::Permissions::from_mode(mode))
    }

    pub(super) fn make(&self, name: &OsStr, mode: u32) -> io::Result<Self> {
        fs::create_dir(self.at(name))?;
        let made = self.inner(name)?;
        made.set_mode(mode)?;
        Ok(made)
    }

    /// Renames something in this folder to a name in another, where nothing of that name may matter.
    pub(super) fn rename(&self, name: &OsStr, to: &Self, new: &OsStr) -> io::Result<()> {
        let rename = || fs::rename(self.at(name), to.at(new));
        // A folder that changes its parent is itself written to.
        match self.opened(|| self.inner(name)) {
            Ok(moved) => self.opened(|| to.opened(|| moved.opened(rename))),
            Err(_) => self.opened(|| to.opened(rename)),
        }
    }

    /// For good. What is inside a folder is not looked for through links.
    pub(super) fn remove(&self, name: &OsStr) -> io::Result<()> {
        self.opened(|| match self.look(name)? {
            None => Ok(()),
            Some(data) if data.is_dir() => fs::remove_dir_all(self.at(name)),
            Some(_) => fs::remove_file(self.at(name)),
        })
    }

    /// Does it, and once more with the modes that it needs if those were taken from the folder.
    pub(super) fn opened<T>(&self, act: impl Fn() -> io::Result<T>) -> io::Result<T> {
        match act() {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                let mode = self.mode()?;
                if mode & OWNER == OWNER {
                    return Err(error);
                }
                self.set_mode(mode | OWNER)?;
                let done = act();
                self.set_mode(mode)?;
                done
            }
            done => done,
        }
    }

    /// Where it is now. Nowhere, if it was removed.
    pub(super) fn whereabouts(&self) -> Option<PathBuf> {
        let is_there = self.file.metadata().is_ok_and(|data| data.nlink() > 0);
        fs::read_link(handle(&self.file)).ok().filter(|_| is_there)
    }
}

/// What was a program must not be taken for one.
pub(super) fn disarm(folder: &Folder, name: &OsStr) {
    let Ok(file) = pinned(&folder.at(name), 0) else { return };
    if file.metadata().is_ok_and(|data| data.is_file()) {
        // It lies where nobody runs it; this is for those who look at it.
        fs::set_permissions(handle(&file), fs::Permissions::from_mode(0o600)).ok();
    }
}

/// Opens the thing itself, not what it leads to.
fn pinned(path: &Path, flags: i32) -> io::Result<File> {
    let flags = flags | libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_CLOEXEC;
    #[cfg(target_os = "linux")]
    let flags = flags | libc::O_PATH;
    OpenOptions::new().read(true).custom_flags(flags).open(path)
}

/// A link that the kernel keeps to what is open.
fn handle(file: &File) -> PathBuf {
    Path::new("/proc/self/fd").join(file.as_raw_fd().to_string())
}
