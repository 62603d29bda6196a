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
