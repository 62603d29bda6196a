//! Trying a sandbox takes a few milliseconds, at every start. That one worked is remembered until
//! the machine or the program changes; that none did is not, because people mend that.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use super::Bubblewrap;

static FILE: OnceLock<PathBuf> = OnceLock::new();

/// Names the file in which it is remembered; it must lie where no child can write.
pub fn remember_in(file: PathBuf) {
    // The first word counts.
    FILE.set(file).ok();
}

pub(super) fn recall(program: &Path) -> Option<Bubblewrap> {
    let text = fs::read_to_string(FILE.get()?).ok()?;
    let (key, closes_users) = text.rsplit_once('\n')?;
    let known = key == circumstances(program)?;
    known.then(|| Bubblewrap {
        program: program.to_owned(),
        is_setuid: false,
        closes_users: closes_users == "true",
    })
}

pub(super) fn keep(found: &Bubblewrap) {
    let (Some(file), Some(key)) = (FILE.get(), circumstances(&found.program)) else { return };
    // One that gets its powers from its file is rare enough to be tried each time.
    if found.is_setuid {
        return;
    }
    // What is not remembered is tried again.
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder).ok();
    }
    fs::write(file, format!("{key}\n{}", found.closes_users)).ok();
}

/// Everything that decides whether it works, as far as it can be seen.
fn circumstances(program: &Path) -> Option<String> {
    let data = fs::metadata(program).ok()?;
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let spaces = fs::read_link("/proc/self/ns/user").ok()?;
    let mounts = fs::read_link("/proc/self/ns/mnt").ok()?;
    // SAFETY: takes nothing.
    let user = unsafe { libc::geteuid() };
    let program = (program, data.ino(), data.mtime(), data.ctime(), data.mode());
    Some(format!("{:?}", (program, boot.trim(), spaces, mounts, user)))
}
