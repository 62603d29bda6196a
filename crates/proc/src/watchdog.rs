//! A second process that outlives ours by a moment. When we are killed outright (SIGKILL, the
//! out-of-memory killer) no code of ours runs any more; the watchdog sees its pipe close and ends
//! what we had started: the groups it was told of, and whatever carries our cookie.
//!
//! It is forked, not executed: it shares our memory pages and costs next to nothing. Between fork
//! and exit it only makes system calls on memory of its own stack, because other threads of ours
//! may have held any lock at the moment of the fork.

use std::fs::File;
use std::io::Write;
use std::os::fd::{FromRawFd, IntoRawFd};
use std::sync::{Mutex, OnceLock, PoisonError};

use crate::registry::{COOKIE, COOKIE_VARIABLE};

pub(crate) enum Message {
    Added(i32),
    Gone(i32),
}

struct Watchdog {
    pipe: Mutex<File>,
    pid: i32,
}

static WATCHDOG: OnceLock<Option<Watchdog>> = OnceLock::new();

/// Groups that the watchdog can hold. More at once are still found by their cookie.
const GROUPS_CAP: usize = 4096;

/// Descriptors that are closed one by one where the kernel cannot close a range.
const DESCRIPTORS_CAP: i32 = 65_536;

pub(crate) fn start() {
    WATCHDOG.get_or_init(launch);
}

pub(crate) fn pid() -> Option<i32> {
    WATCHDOG.get()?.as_ref().map(|w| w.pid)
}

pub(crate) fn tell(message: Message) {
    let Some(Some(watchdog)) = WATCHDOG.get() else { return };
    let number = match message {
        Message::Added(group) => group,
        Message::Gone(group) => -group,
    };
    let mut pipe = watchdog.pipe.lock().unwrap_or_else(PoisonError::into_inner);
    // A watchdog that somebody killed cannot be told anything; the other guards remain.
    pipe.write_all(&number.to_ne_bytes()).ok();
}

#[cfg(target_os = "linux")]
fn launch() -> Option<Watchdog> {
    let cookie = format!("{COOKIE_VARIABLE}={}\0", *COOKIE).into_bytes();
    let mut ends = [0; 2];
    // SAFETY: `ends` has room for the two descriptors that `pipe2` writes.
    if unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) } != 0 {
        return None;
    }
    let [read_end, write_end] = ends;
    // SAFETY: both descriptors were just made and belong to nobody else.
    let (reader, writer) = unsafe { (File::from_raw_fd(read_end), File::from_raw_fd(write_end)) };
    // SAFETY: the child calls only `watch`, which keeps to async-signal-safe system calls.
    match unsafe { libc::fork() } {
        -1 => None,
        0 => unsafe { watch(reader.into_raw_fd(), &cookie) },
        pid => Some(Watchdog { pipe: Mutex::new(writer), pid }),
    }
}

#[cfg(not(target_os = "linux"))]
fn launch() -> Option<Watchdog> {
    None
}

/// SAFETY: to be called in a freshly forked child only; allocates nothing and takes no lock.
#[cfg(target_os = "linux")]
unsafe fn watch(pipe: i32, cookie: &[u8]) -> ! {
    unsafe {
        libc::setsid();
        for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT, libc::SIGPIPE] {
            libc::signal(signal, libc::SIG_IGN);
        }
        // Whatever else is open must close when our parent closes it: a held pipe would hang a
        // reader. Keep only ours, at 0.
        libc::dup2(pipe, 0);
        if libc::syscall(libc::SYS_close_range, 1u32, u32::MAX, 0u32) != 0 {
            // Kernels before 5.9 do not have it.
            for descriptor in 1..DESCRIPTORS_CAP {
                libc::close(descriptor);
            }
        }

        let mut groups = [0i32; GROUPS_CAP];
        let mut bytes = [0u8; 4];
        let mut filled = 0;
        loop {
            let got = libc::read(0, bytes[filled..].as_mut_ptr().cast(), 4 - filled);
            if got < 0 && *libc::__errno_location() == libc::EINTR {
                continue;
            }
            if got <= 0 {
                break;
            }
            filled += got.cast_unsigned();
            if filled < 4 {
                continue;
            }
            filled = 0;
            let number = i32::from_ne_bytes(bytes);
            let (from, to) = if number > 0 { (0, number) } else { (-number, 0) };
            if let Some(slot) = groups.iter_mut().find(|g| **g == from) {
                *slot = to;
            }
        }
        for group in groups {
            if group > 1 {
                libc::kill(-group, libc::SIGKILL);
            }
        }
        // Daemons leave their group; they are found by what they inherited. Twice, because a
        // process may fork while we look.
        for _ in 0..2 {
            kill_carriers(cookie);
        }
        libc::_exit(0)
    }
}

/// Walks `/proc` without allocating.
///
/// SAFETY: async-signal-safe system calls on stack memory only.
#[cfg(target_os = "linux")]
unsafe fn kill_carriers(cookie: &[u8]) {
    unsafe {
        let own = libc::getpid();
        let directory =
            libc::open(c"/proc".as_ptr(), libc::O_RDONLY | libc::O_DIRECTORY | libc::O_CLOEXEC);
        if directory < 0 {
            return;
        }
        let mut entries = [0u8; 16 << 10];
        loop {
            let got =
                libc::syscall(libc::SYS_getdents64, directory, entries.as_mut_ptr(), entries.len());
            if got <= 0 {
                break;
            }
            let mut at = 0usize;
            while at + 19 < got.cast_unsigned() as usize {
                // struct linux_dirent64: u64 inode, i64 offset, u16 length, u8 type, name.
                let length = u16::from_ne_bytes([entries[at + 16], entries[at + 17]]) as usize;
                let name = &entries[at + 19..at + length];
                if let Some(pid) = parse_pid(name)
                    && pid != own
                    && carries(name, cookie)
                {
                    libc::kill(pid, libc::SIGKILL);
                }
                at += length.max(1);
            }
        }
        libc::close(directory);
    }
}

#[cfg(target_os = "linux")]
fn parse_pid(name: &[u8]) -> Option<i32> {
    let digits = name.split(|b| *b == 0).next()?;
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0i32, |number, digit| {
        let digit = digit.is_ascii_digit().then(|| i32::from(digit - b'0'))?;
        number.checked_mul(10)?.checked_add(digit)
    })
}

/// Whether `/proc/PID/environ` holds the cookie (which ends in the NUL that closes a variable).
///
/// SAFETY: async-signal-safe system calls on stack memory only.
#[cfg(target_os = "linux")]
unsafe fn carries(pid: &[u8], cookie: &[u8]) -> bool {
    let mut path = [0u8; 40];
    let digits = pid.split(|b| *b == 0).next().unwrap_or_default();
    let parts: [&[u8]; 3] = [b"/proc/", digits, b"/environ"];
    let mut end = 0;
    for part in parts {
        let Some(room) = path.get_mut(end..end + part.len()) else { return false };
        room.copy_from_slice(part);
        end += part.len();
    }
    unsafe {
        let file = libc::open(path.as_ptr().cast(), libc::O_RDONLY | libc::O_CLOEXEC);
        if file < 0 {
            return false;
        }
        // A window of the environment; what could be a cookie's beginning is carried over.
        let mut window = [0u8; 8 << 10];
        let mut kept = 0usize;
        let mut found = false;
        loop {
            let got = libc::read(file, window[kept..].as_mut_ptr().cast(), window.len() - kept);
            if got <= 0 {
                break;
            }
            let filled = kept + got.cast_unsigned();
            if window[..filled].windows(cookie.len()).any(|w| w == cookie) {
                found = true;
                break;
            }
            kept = filled.min(cookie.len());
            window.copy_within(filled - kept..filled, 0);
        }
        libc::close(file);
        found
    }
}
