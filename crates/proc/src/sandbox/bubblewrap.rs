//! bubblewrap: a child with a view of its own, of files, processes and (where it is closed) network.

use std::ffi::{OsStr, OsString};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::mounted::Wanted;
use super::{Fence, Network, memory, roots};

/// What root keeps of its powers where it must stay root to write other people's files: those that
/// are about files, which the mounts limit.
const FILE_CAPABILITIES: &[&str] =
    &["CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FOWNER", "CAP_FSETID", "CAP_SETGID", "CAP_SETUID"];

/// Parts of `/proc` that change the machine and go by who somebody is, not by what they may do. The
/// program covers them only where their folder can be written, which that of the first never can.
const MACHINE: &[&str] = &[
    "/proc/sys",
    "/proc/sysrq-trigger",
    "/proc/irq",
    "/proc/bus",
    "/proc/fs",
    "/proc/acpi",
    "/proc/asound",
    "/proc/driver",
    "/proc/dynamic_debug",
    "/proc/mtrr",
    "/proc/scsi",
];

/// Where the program is looked for, as far as they are on PATH: those that only the machine's owner
/// fills. It runs unfenced, and other folders of PATH may belong to what is being worked on.
const PLACES: &[&str] = &[
    "/usr/bin",
    "/usr/local/bin",
    "/bin",
    "/usr/sbin",
    "/sbin",
    "/run/wrappers/bin",
    "/run/current-system/sw/bin",
    "/nix/var/nix/profiles/default/bin",
    "/home/linuxbrew/.linuxbrew/bin",
];

/// Nothing can be changed below these.
const STORES: &[&str] = &["/nix/store", "/gnu/store"];

/// The program, and what it can do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bubblewrap {
    pub program: PathBuf,
    /// It gets its powers from its file's mode; then nothing may be given up before it runs.
    pub(super) is_setuid: bool,
    /// It knows how to refuse further user namespaces.
    pub(super) closes_users: bool,
}

impl Bubblewrap {
    /// Found on PATH and seen to work: in containers it often is there and may not do its work.
    pub(super) fn probe() -> Option<Self> {
        let program = find(&std::env::var_os("PATH")?)?;
        if let Some(known) = memory::recall(&program) {
            return Some(known);
        }
        let is_setuid = std::fs::metadata(&program).ok()?.permissions().mode() & 0o4000 != 0;
        let newest = Self { program, is_setuid, closes_users: true };
        let mut ways = [newest.clone(), Self { closes_users: false, ..newest }].into_iter();
        let found = ways.find(Self::works)?;
        memory::keep(&found);
        Some(found)
    }

    fn works(&self) -> bool {
        let mut command = Command::new(&self.program);
        command.args(arguments(&Fence::default(), self, &[])).arg("--").arg(&self.program);
        command.arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    }
}

fn find(path: &OsStr) -> Option<PathBuf> {
    crate::find_program("bwrap", path, &|folder| !is_of_machine(folder))
}

fn is_of_machine(folder: &Path) -> bool {
    PLACES.iter().any(|place| folder == Path::new(place))
        || STORES.iter().any(|store| folder.starts_with(store))
}

/// Whether a mount can hold this path: it is there, and neither it nor what leads to it is a link. A
/// folder on the way is mounted too, and must not be somebody else's.
pub(super) fn can_cover(path: &Path) -> bool {
    roots::is_real(path)
}

/// The fence (of real paths) as arguments, up to but without the command.
pub(super) fn arguments(fence: &Fence, options: &Bubblewrap, mounts: &[Mount]) -> Vec<OsString> {
    let mut all: Vec<OsString> = Vec::new();
    let mut add = |words: &[&str]| all.extend(words.iter().map(OsString::from));
    // In a namespace with one user in it, files of others cannot be written even by root.
    if is_root() && fence.writable.iter().any(|folder| belongs_to_another(folder)) {
        add(&["--cap-drop", "ALL"]);
        FILE_CAPABILITIES.iter().for_each(|name| add(&["--cap-add", name]));
    } else {
        add(&["--unshare-user", "--cap-drop", "ALL"]);
        if options.closes_users {
            add(&["--disable-userns"]);
        }
    }
    add(&["--unshare-pid", "--unshare-ipc"]);
    if fence.network != Network::On {
        add(&["--unshare-net"]);
    }
    add(&["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]);
    for path in machine() {
        all.extend(["--ro-bind", path, path].map(OsString::from));
    }
    all.extend(mounts.iter().flat_map(Mount::arguments));
    all
}

fn machine() -> impl Iterator<Item = &'static str> {
    MACHINE.iter().copied().filter(|path| Path::new(path).exists())
}

/// What must be there when all of it is done.
pub(super) fn wanted(mounts: &[Mount]) -> Wanted {
    let mut wanted = Wanted::default();
    wanted.read_only.extend(machine().map(PathBuf::from));
    for mount in mounts {
        match mount.kind {
            Kind::Writable => wanted.writable.push(mount.path.clone()),
            _ => wanted.read_only.push(mount.path.clone()),
        }
    }
    wanted
}

/// From the outside in, so that the more exact says the last word. What is read-only can be covered.
pub(super) fn mounts(fence: &Fence, sockets: &[PathBuf]) -> Vec<Mount> {
    let root_of = |path: &Path| {
        let around = fence.writable.iter().filter(|root| path.starts_with(root));
        around.max_by_key(|root| root.components().count())
    };
    let mut found: Vec<Mount> = Vec::new();
    let mut add = |kind: Kind, path: &Path| {
        let mount = Mount { depth: path.components().count(), kind, path: path.to_owned() };
        if !found.contains(&mount) {
            found.push(mount);
        }
    };
    for path in &fence.writable {
        add(Kind::Writable, path);
    }
    let protected = &fence.read_only;
    for path in protected.iter().chain(&fence.unreadable) {
        let Some(root) = root_of(path) else { continue };
        // A folder on the way must not be moved away and made anew: what is mounted cannot be.
        for between in path.ancestors().skip(1).take_while(|folder| *folder != root.as_path()) {
            add(Kind::Writable, between);
        }
    }
    for path in protected.iter().filter(|path| root_of(path).is_some()) {
        add(Kind::ReadOnly, path);
    }
    for path in &fence.unreadable {
        add(if path.is_dir() { Kind::HiddenFolder } else { Kind::HiddenFile }, path);
    }
    let is_hidden = |path: &PathBuf| fence.unreadable.iter().any(|own| path.starts_with(own));
    for path in sockets.iter().filter(|path| !is_hidden(path)) {
        add(Kind::HiddenFile, path);
    }
    found.sort();
    found
}

/// In the order in which they must be made.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Mount {
    depth: usize,
    kind: Kind,
    path: PathBuf,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Writable,
    ReadOnly,
    HiddenFolder,
    HiddenFile,
}

impl Mount {
    fn arguments(&self) -> Vec<OsString> {
        let path = self.path.clone().into_os_string();
        match self.kind {
            Kind::Writable => vec!["--bind".into(), path.clone(), path],
            Kind::ReadOnly => vec!["--ro-bind".into(), path.clone(), path],
            Kind::HiddenFolder => {
                let mut words: Vec<OsString> =
                    ["--perms", "0000", "--tmpfs"].map(OsString::from).into();
                words.extend([path.clone(), "--remount-ro".into(), path]);
                words
            }
            // A device that may not be opened: whoever tries is told so.
            Kind::HiddenFile => vec!["--ro-bind".into(), "/dev/null".into(), path],
        }
    }
}

fn is_root() -> bool {
    // SAFETY: takes nothing and cannot fail.
    unsafe { libc::geteuid() == 0 }
}

fn belongs_to_another(folder: &Path) -> bool {
    // A folder for everybody (the temporary one) belongs to root already.
    std::fs::metadata(folder).is_ok_and(|data| data.uid() != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_is_the_machines_own_and_not_the_workspaces() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("bwrap");
        std::fs::write(&program, "#!/bin/sh\n").unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        let path = |second: &str| std::env::join_paths([folder.path(), Path::new(second)]).unwrap();
        assert_eq!(find(&path("/nowhere")), None);
        assert_ne!(find(&path("/usr/bin")), Some(program));
        assert!(!is_of_machine(Path::new("/usr/src/app/node_modules/.bin")));
        assert!(is_of_machine(Path::new("/nix/store/x-bubblewrap/bin")));
    }
}
