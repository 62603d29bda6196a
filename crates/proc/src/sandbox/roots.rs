//! The folders that children may write, held open since the fence was drawn. A name can be made to mean
//! another folder, by a child that still runs; a descriptor cannot.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::Fence;

/// None of them lies in another one, except below what that one protects: whoever may write a folder
/// may rename what is in it.
#[derive(Debug, Default)]
pub struct Roots(Vec<Root>);

#[derive(Debug)]
pub(super) struct Root {
    /// Real, without a link on the way.
    pub(super) path: PathBuf,
    /// Where it cannot be opened it cannot be written either.
    pub(super) file: File,
}

impl Roots {
    /// Of what is there. To be held before the first child runs.
    pub fn hold(fence: &Fence) -> Self {
        let real = fence.writable.iter().filter_map(|path| fs::canonicalize(path).ok());
        let mut all: Vec<PathBuf> = real.collect();
        all.sort();
        all.dedup();
        let is_part_of = |path: &Path, other: &PathBuf| {
            let shut = |own: &PathBuf| own.starts_with(other) && path.starts_with(own);
            path != other && path.starts_with(other) && !fence.read_only.iter().any(shut)
        };
        let alone = |path: &&PathBuf| !all.iter().any(|other| is_part_of(path, other));
        let hold = |path: &PathBuf| Some(Root { path: path.clone(), file: open(path).ok()? });
        Self(all.iter().filter(alone).filter_map(hold).collect())
    }

    /// Those that are there. Fails where a name means another folder than it did: what would be opened
    /// to the child is nothing that anybody agreed to.
    pub(super) fn check(&self) -> io::Result<Vec<&Root>> {
        let mut found = Vec::new();
        for root in &self.0 {
            match open(&root.path) {
                Ok(now) if is_same(&now, &root.file)? => found.push(root),
                // Removed from outside, as caches are: there is nothing to write to.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                _ => return Err(changed(&root.path)),
            }
        }
        Ok(found)
    }
}

fn changed(path: &Path) -> io::Error {
    io::Error::other(format!(
        "{} is not what it was when the sandbox was set up, so nothing is started that could write \
         there; where you replaced it yourself, start again",
        path.display()
    ))
}

fn is_same(one: &File, other: &File) -> io::Result<bool> {
    let (one, other) = (one.metadata()?, other.metadata()?);
    Ok((one.dev(), one.ino()) == (other.dev(), other.ino()))
}

/// Whether this way to it has no link in it.
pub(super) fn is_real(path: &Path) -> bool {
    open(path).is_ok()
}

/// The thing itself, where no link lies on the way, without reading it.
#[cfg(target_os = "linux")]
pub(super) fn open(path: &Path) -> io::Result<File> {
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::OpenOptionsExt;

    let name = std::ffi::CString::new(path.as_os_str().as_bytes())?;
    let flags = libc::O_PATH | libc::O_CLOEXEC;
    // SAFETY: zeroes are a valid value of it.
    let mut how: libc::open_how = unsafe { std::mem::zeroed() };
    how.flags = u64::from(flags.cast_unsigned());
    how.resolve = libc::RESOLVE_NO_SYMLINKS;
    // SAFETY: the kernel reads the name and `how`, which live through the call and have these sizes.
    let opened = unsafe {
        libc::syscall(
            libc::SYS_openat2,
            libc::AT_FDCWD,
            name.as_ptr(),
            &raw const how,
            size_of::<libc::open_how>(),
        )
    };
    if let Some(opened) = i32::try_from(opened).ok().filter(|opened| *opened >= 0) {
        // SAFETY: it was just made and belongs to nobody else.
        return Ok(unsafe { std::os::fd::FromRawFd::from_raw_fd(opened) });
    }
    match io::Error::last_os_error() {
        // Not in this kernel, or forbidden to us: opened by name, and the kernel asked what that was.
        error if matches!(error.raw_os_error(), Some(libc::ENOSYS | libc::EPERM)) => {
            let file = fs::OpenOptions::new()
                .read(true)
                .custom_flags(flags | libc::O_NOFOLLOW)
                .open(path)?;
            let really = fs::read_link(Path::new("/proc/self/fd").join(descriptor(&file)))?;
            let is_link = file.metadata()?.is_symlink();
            if really == path && !is_link { Ok(file) } else { Err(elsewhere()) }
        }
        error => Err(error),
    }
}

#[cfg(target_os = "linux")]
fn descriptor(file: &File) -> String {
    std::os::fd::AsRawFd::as_raw_fd(file).to_string()
}

#[cfg(not(target_os = "linux"))]
pub(super) fn open(path: &Path) -> io::Result<File> {
    let file = File::open(path)?;
    if fs::canonicalize(path)? == path { Ok(file) } else { Err(elsewhere()) }
}

fn elsewhere() -> io::Error {
    io::Error::other("a link lies on the way")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_root_in_another_is_part_of_it_unless_something_protected_lies_between() {
        let folder = tempfile::tempdir().unwrap();
        let top = fs::canonicalize(folder.path()).unwrap();
        for name in ["a/b/c", "a/shut/open", "ab", "d"] {
            fs::create_dir_all(top.join(name)).unwrap();
        }
        std::os::unix::fs::symlink(top.join("a/b"), top.join("link")).unwrap();
        let names = ["a/b/c", "a/shut/open", "ab", "a", "link", "absent", "a"];
        let fence = Fence {
            writable: names.map(|name| top.join(name)).into(),
            read_only: vec![top.join("a/shut")],
            ..Fence::default()
        };
        let roots = Roots::hold(&fence);
        let paths: Vec<_> = roots.0.iter().map(|root| root.path.clone()).collect();
        assert_eq!(paths, ["a", "a/shut/open", "ab"].map(|name| top.join(name)));
        assert_eq!(roots.check().unwrap().len(), 3);
        fs::remove_dir(top.join("ab")).unwrap();
        assert_eq!(roots.check().unwrap().len(), 2);
        // The same folder by way of a link is not the same.
        fs::rename(top.join("a"), top.join("moved")).unwrap();
        std::os::unix::fs::symlink(top.join("moved"), top.join("a")).unwrap();
        let error = roots.check().unwrap_err().to_string();
        assert!(error.starts_with(&format!("{} is not what it was", top.join("a").display())));
    }
}
