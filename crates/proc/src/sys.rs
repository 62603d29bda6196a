//! Thin, named wrappers around the system calls that the other modules need.

use std::io;

/// Sends `signal` to every process of the group. A group that is gone is not an error.
pub(crate) fn signal_group(group: i32, signal: i32) {
    // SAFETY: `kill` takes two integers and touches no memory of ours. A group of 0 or 1 would mean
    // "my own group" or "everybody": never sent.
    if group > 1 {
        unsafe { libc::kill(-group, signal) };
    }
}

pub(crate) fn group_exists(group: i32) -> bool {
    // SAFETY: as above; signal 0 only asks.
    group > 1 && unsafe { libc::kill(-group, 0) } == 0
}

pub(crate) fn signal_process(pid: i32, signal: i32) {
    if pid > 1 {
        // SAFETY: as above.
        unsafe { libc::kill(pid, signal) };
    }
}

/// Orphans of our children become our own children instead of init's, so that they can be found.
pub(crate) fn adopt_orphans() {
    #[cfg(target_os = "linux")]
    // SAFETY: PR_SET_CHILD_SUBREAPER takes integers only.
    unsafe {
        libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    }
}

/// Takes an ended child that nobody else waits for out of the process table.
pub(crate) fn reap(pid: i32) {
    // SAFETY: a null status pointer is allowed; WNOHANG never blocks.
    unsafe { libc::waitpid(pid, std::ptr::null_mut(), libc::WNOHANG) };
}

/// What a child does between fork and exec: leave our session and terminal, and die with us. One
/// whose standard input is a terminal takes that as its own. Only async-signal-safe calls are
/// allowed here.
pub(crate) fn become_own_session(parent: i32, has_terminal: bool) -> io::Result<()> {
    // SAFETY: all of these are async-signal-safe and take integers only.
    unsafe {
        if libc::setsid() == -1 {
            return Err(io::Error::last_os_error());
        }
        if has_terminal && libc::ioctl(0, libc::TIOCSCTTY as _, 0) == -1 {
            return Err(io::Error::last_os_error());
        }
        #[cfg(target_os = "linux")]
        {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL, 0, 0, 0);
            // The parent may have died before the signal was set: then nobody will send it.
            if libc::getppid() != parent {
                libc::_exit(1);
            }
        }
        #[cfg(not(target_os = "linux"))]
        let _ = parent;
        // Rust ignores SIGPIPE in this process; children expect the default.
        libc::signal(libc::SIGPIPE, libc::SIG_DFL);
        Ok(())
    }
}

/// Whatever is open from `first` on closes when the child becomes another program: what we were
/// started with is nothing that we may pass on. Async-signal-safe.
#[cfg(target_os = "linux")]
pub(crate) fn close_on_exec_from(first: u32) {
    const CLOEXEC: u32 = 4;
    /// Looked at one by one where the kernel knows no ranges.
    const DESCRIPTORS_CAP: i32 = 4096;
    // SAFETY: integers only.
    unsafe {
        if libc::syscall(libc::SYS_close_range, first, u32::MAX, CLOEXEC) != 0 {
            for descriptor in first.cast_signed()..DESCRIPTORS_CAP {
                libc::fcntl(descriptor, libc::F_SETFD, libc::FD_CLOEXEC);
            }
        }
    }
}

/// Async-signal-safe.
#[cfg(target_os = "linux")]
pub(crate) fn keep_on_exec(descriptor: i32) -> io::Result<()> {
    // SAFETY: integers only.
    match unsafe { libc::fcntl(descriptor, libc::F_SETFD, 0) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// Nothing that this process starts can gain powers. Async-signal-safe.
#[cfg(target_os = "linux")]
pub(crate) fn no_new_privileges() -> io::Result<()> {
    // SAFETY: integers only.
    match unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Root keeps what it needs for files, which rules limit, and gives up the rest. Others have nothing
/// to give up. Async-signal-safe.
#[cfg(target_os = "linux")]
pub(crate) fn drop_capabilities() -> io::Result<()> {
    #[repr(C)]
    struct Header {
        version: u32,
        pid: i32,
    }
    #[repr(C)]
    #[derive(Clone, Copy, Default)]
    struct Data {
        effective: u32,
        permitted: u32,
        inheritable: u32,
    }
    /// chown, override modes, act as owner, keep set-id bits, become another group or user.
    const KEPT: u32 = 1 | (1 << 1) | (1 << 3) | (1 << 4) | (1 << 6) | (1 << 7);
    let mut header = Header { version: 0x2008_0522, pid: 0 };
    let mut data = [Data::default(); 2];
    // SAFETY: the kernel reads and writes these structures only, which have its form.
    let done = unsafe {
        if libc::syscall(libc::SYS_capget, &raw mut header, data.as_mut_ptr()) != 0 {
            -1
        } else {
            let kept = data[0].permitted & KEPT;
            let effective = data[0].effective & KEPT;
            data = [Data { effective, permitted: kept, inheritable: 0 }, Data::default()];
            libc::syscall(libc::SYS_capset, &raw mut header, data.as_ptr())
        }
    };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// This process ends when its parent, which must be `parent`, does.
#[cfg(target_os = "linux")]
pub(crate) fn end_with(parent: i32) {
    // SAFETY: integers only.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL, 0, 0, 0);
        if libc::getppid() != parent {
            libc::_exit(0);
        }
    }
}

/// Somebody waits for the end of what is written there.
#[cfg(target_os = "linux")]
pub(crate) fn let_go_of_streams() {
    // SAFETY: a constant string, and integers.
    unsafe {
        let nothing = libc::open(c"/dev/null".as_ptr(), libc::O_RDWR | libc::O_CLOEXEC);
        if nothing >= 0 {
            for stream in 0..3 {
                libc::dup2(nothing, stream);
            }
        }
    }
}

/// Since the machine was started, as `/proc/PID/stat` tells when a process was.
pub(crate) fn now_in_ticks() -> u64 {
    #[cfg(target_os = "linux")]
    {
        let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: the kernel writes that structure only.
        let per_second = unsafe {
            libc::clock_gettime(libc::CLOCK_BOOTTIME, &raw mut now);
            libc::sysconf(libc::_SC_CLK_TCK)
        };
        let per_second = u64::try_from(per_second).unwrap_or(100).max(1);
        let (seconds, nanos) = (now.tv_sec.cast_unsigned(), now.tv_nsec.cast_unsigned());
        seconds * per_second + nanos * per_second / 1_000_000_000
    }
    #[cfg(not(target_os = "linux"))]
    0
}
