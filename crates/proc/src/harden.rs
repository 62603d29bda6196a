//! This process holds keys: nobody else of the same user should be able to look into it.

/// Switches it off, for a debugger or a profiler.
pub const HARDENING_VARIABLE: &str = "TOOLWRIGHT_HARDENING";

/// No core dumps, and no other process of the same user may trace this one or read its memory and
/// environment. Children are not concerned. Called first thing in `main`.
pub fn harden() {
    if std::env::var_os(HARDENING_VARIABLE).is_some_and(|value| value == "off") {
        return;
    }
    // Where one of them fails, the process is as safe as any other.
    let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    let mut now = none;
    // SAFETY: both calls take a structure of ours that lives through them.
    unsafe {
        if libc::getrlimit(libc::RLIMIT_CORE, &raw mut now) == 0 {
            // The hard limit stays: a child that wants dumps may ask for them.
            let wanted = libc::rlimit { rlim_max: now.rlim_max, ..none };
            libc::setrlimit(libc::RLIMIT_CORE, &raw const wanted);
        }
    }
    #[cfg(target_os = "linux")]
    // SAFETY: takes integers only.
    unsafe {
        libc::prctl(libc::PR_SET_DUMPABLE, 0, 0, 0, 0);
    }
    #[cfg(target_os = "macos")]
    // SAFETY: takes integers and no address.
    unsafe {
        libc::ptrace(libc::PT_DENY_ATTACH, 0, std::ptr::null_mut(), 0);
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn afterwards_there_are_no_dumps_and_no_tracing_and_children_are_as_ever() {
        // SAFETY: integers, and a structure that lives through the call.
        let dumpable = || unsafe { libc::prctl(libc::PR_GET_DUMPABLE, 0, 0, 0, 0) };
        assert_eq!(dumpable(), 1);
        harden();
        assert_eq!(dumpable(), 0);
        let mut core = libc::rlimit { rlim_cur: 1, rlim_max: 1 };
        // SAFETY: as above.
        unsafe { libc::getrlimit(libc::RLIMIT_CORE, &raw mut core) };
        assert_eq!(core.rlim_cur, 0);
        // What belongs to root here belongs to the child's own user there: it can be traced.
        let owner = std::process::Command::new("stat").args(["-c", "%u", "/proc/self"]).output();
        // SAFETY: takes nothing.
        let own = unsafe { libc::geteuid() }.to_string();
        assert_eq!(String::from_utf8(owner.unwrap().stdout).unwrap().trim(), own);
    }
}
