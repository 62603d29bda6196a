//! Sockets of other programs that have a place in the file system (docker, ssh-agent, dbus, tmux):
//! whoever reaches one acts with that program's powers.
//!
//! The kernel lists those of one network by the names under which they were made. Those of other networks
//! are in the lists of their processes; those that were renamed are looked for where programs put them.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};

use super::Fence;

/// More than any desktop has; each costs a mount.
const CAP: usize = 512;

/// Where programs put their sockets, beside the temporary folders.
const PLACES: &[&str] = &["/run", "/tmp"];
/// Looked into in each of those, for each command: the folders nearest to the top.
const FOLDERS_CAP: usize = 200;
const DEPTH_CAP: usize = 3;

/// Those that are there now and are not of this program's own children. Fails where they cannot be known:
/// then none could be hidden.
pub(super) fn bound(fence: &Fence) -> io::Result<Vec<PathBuf>> {
    let mut listed = paths(&fs::read("/proc/net/unix")?);
    let others = of_other_networks();
    listed.extend(others.foreign);
    let is_socket =
        |path: &PathBuf| fs::symlink_metadata(path).is_ok_and(|data| data.file_type().is_socket());
    let mut found: Vec<PathBuf> = listed
        .into_iter()
        .filter_map(|path| fs::canonicalize(path).ok())
        .filter(is_socket)
        .collect();
    let ours = |path: &PathBuf| {
        others.own.contains(path) && fence.writable.iter().any(|root| path.starts_with(root))
    };
    found.extend(lying_about().into_iter().filter(|path| !ours(path) && is_alive(path)));
    found.retain(|path| !fence.unreadable.iter().any(|hidden| path.starts_with(hidden)));
    found.sort();
    found.dedup();
    if found.len() > CAP {
        let many = format!("there are more than {CAP} sockets of other programs to be hidden");
        return Err(io::Error::other(many));
    }
    Ok(found)
}

/// The eighth column, which may hold anything. What begins with `@` has no place.
fn paths(listed: &[u8]) -> Vec<PathBuf> {
    let path = |line: &[u8]| {
        let mut rest = line;
        for _ in 0..7 {
            rest = rest.trim_ascii_start();
            rest = &rest[rest.iter().position(|byte| *byte == b' ')? + 1..];
        }
        rest.starts_with(b"/").then(|| PathBuf::from(OsStr::from_bytes(rest)))
    };
    let mut found: Vec<_> = listed.split(|byte| *byte == b'\n').filter_map(path).collect();
    found.sort();
    found.dedup();
    found
}

#[derive(Default)]
struct Others {
    foreign: Vec<PathBuf>,
    /// Of our own children, which may talk with each other.
    own: HashSet<PathBuf>,
}

/// By the processes that can be looked at; the rest are not of our user, and guard their sockets by that.
fn of_other_networks() -> Others {
    let mut others = Others::default();
    let Ok(ours) = fs::read_link("/proc/self/ns/net") else { return others };
    let mut seen = HashSet::from([ours]);
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let name = entry.file_name();
        if !name.as_bytes().iter().all(u8::is_ascii_digit) {
            continue;
        }
        let process = Path::new("/proc").join(name);
        let Ok(network) = fs::read_link(process.join("ns/net")) else { continue };
        if seen.contains(&network) {
            continue;
        }
        // Where the process has gone meanwhile, another one of that network is asked.
        let Ok(listed) = fs::read(process.join("net/unix")) else { continue };
        seen.insert(network);
        if is_our_child(&process) {
            others.own.extend(paths(&listed));
        } else {
            others.foreign.extend(paths(&listed));
        }
    }
    others
}

fn is_our_child(process: &Path) -> bool {
    let mut process = process.to_owned();
    // Deeper than any family.
    for _ in 0..64 {
        let status = fs::read_to_string(process.join("status")).unwrap_or_default();
        let parent = status.lines().find_map(|line| line.strip_prefix("PPid:")).unwrap_or("0");
        match parent.trim().parse::<u32>() {
            Ok(parent) if parent == std::process::id() => return true,
            Ok(0) | Err(_) => return false,
            Ok(parent) => process = PathBuf::from(format!("/proc/{parent}")),
        }
    }
    false
}

/// From the top down, so that what is left out lies deep.
fn lying_about() -> Vec<PathBuf> {
    let named = ["XDG_RUNTIME_DIR", "TMPDIR"].map(|name| std::env::var_os(name).map(PathBuf::from));
    let places = PLACES.iter().map(PathBuf::from).chain(named.into_iter().flatten());
    let mut places: Vec<_> = places.filter_map(|place| fs::canonicalize(place).ok()).collect();
    places.sort();
    places.dedup();
    let mut found = Vec::new();
    for place in places {
        let mut level = vec![place];
        let mut left = FOLDERS_CAP;
        for _ in 0..=DEPTH_CAP {
            let mut next = Vec::new();
            for folder in level {
                if left == 0 {
                    break;
                }
                left -= 1;
                for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
                    match entry.file_type() {
                        Ok(kind) if kind.is_dir() => next.push(entry.path()),
                        Ok(kind) if kind.is_socket() => found.push(entry.path()),
                        _ => {}
                    }
                }
            }
            level = next;
        }
    }
    found
}

/// Whether somebody listens: asked in a way that whoever does notices nothing of, because it is of another
/// kind or needs no answer. One that nobody has any more is a name that may be removed.
fn is_alive(path: &Path) -> bool {
    let asked = UnixDatagram::unbound().and_then(|socket| socket.connect(path));
    let gone = [io::ErrorKind::ConnectionRefused, io::ErrorKind::NotFound];
    asked.map_or_else(|error| !gone.contains(&error.kind()), |()| true)
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn places_are_read_off_the_kernels_list_whatever_bytes_stand_in_it() {
        let listed = b"\
Num       RefCount Protocol Flags    Type St Inode Path
ffff8880: 00000002 00000000 00010000 0001 01 12345 /run/docker.sock
ffff8881: 00000003 00000000 00000000 0001 03 12346 /run/docker.sock
ffff8882: 00000003 00000000 00000000 0001 03 12347
ffff8883: 00000002 00000000 00010000 0001 01    9 @/tmp/.X11-unix/X0
ffff8885: 00000002 00000000 00010000 0001 01    9 @\xff\xfe
ffff8884: 00000002 00000000 00010000 0001 01 12348 /home/x/a place/s
";
        let wanted = ["/home/x/a place/s", "/run/docker.sock"].map(PathBuf::from);
        assert_eq!(paths(listed), wanted);
    }

    #[test]
    fn a_socket_is_alive_while_somebody_has_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let listener = UnixListener::bind(&path).unwrap();
        assert!(is_alive(&path));
        listener.set_nonblocking(true).unwrap();
        assert_eq!(listener.accept().unwrap_err().kind(), io::ErrorKind::WouldBlock);
        drop(listener);
        assert!(!is_alive(&path));
    }
}
