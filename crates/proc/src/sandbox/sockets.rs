//! Sockets of other programs that have a place in the file system (docker, ssh-agent, dbus, tmux):
//! whoever reaches one acts with that program's powers.

use std::os::unix::fs::FileTypeExt;
use std::path::PathBuf;

use super::Fence;

/// More than any desktop has; each costs a mount.
const CAP: usize = 256;

/// Those that are bound now on this machine's network, by the kernel's own list.
pub(super) fn bound(fence: &Fence) -> Vec<PathBuf> {
    let listed = std::fs::read_to_string("/proc/net/unix").unwrap_or_default();
    let mut found: Vec<PathBuf> = paths(&listed)
        .into_iter()
        .filter_map(|path| std::fs::canonicalize(path).ok())
        .filter(|path| std::fs::metadata(path).is_ok_and(|data| data.file_type().is_socket()))
        .filter(|path| !fence.unreadable.iter().any(|hidden| path.starts_with(hidden)))
        .collect();
    found.sort();
    found.dedup();
    found.truncate(CAP);
    found
}

/// The eighth column, which may hold spaces. What begins with `@` has no place.
fn paths(listed: &str) -> Vec<PathBuf> {
    let path = |line: &str| {
        let mut rest = line;
        for _ in 0..7 {
            rest = rest.trim_start().split_once(' ')?.1;
        }
        rest.starts_with('/').then(|| PathBuf::from(rest))
    };
    let mut found: Vec<_> = listed.lines().filter_map(path).collect();
    found.sort();
    found.dedup();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_read_off_the_kernels_list() {
        let listed = "\
Num       RefCount Protocol Flags    Type St Inode Path
ffff8880: 00000002 00000000 00010000 0001 01 12345 /run/docker.sock
ffff8881: 00000003 00000000 00000000 0001 03 12346 /run/docker.sock
ffff8882: 00000003 00000000 00000000 0001 03 12347
ffff8883: 00000002 00000000 00010000 0001 01    9 @/tmp/.X11-unix/X0
ffff8884: 00000002 00000000 00010000 0001 01 12348 /home/x/a place/s
";
        let wanted = ["/home/x/a place/s", "/run/docker.sock"].map(PathBuf::from);
        assert_eq!(paths(listed), wanted);
    }
}
