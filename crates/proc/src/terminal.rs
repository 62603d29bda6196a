//! A terminal for a child that wants one: we hold the side with keyboard and screen.

use std::fs::File;
use std::io;

use tokio::net::unix::pipe;

use crate::child::TerminalSize;

pub(crate) struct Terminal {
    pub(crate) keyboard: pipe::Sender,
    pub(crate) screen: pipe::Receiver,
    /// The child's side.
    pub(crate) other_end: File,
}

impl Terminal {
    #[cfg(target_os = "linux")]
    pub(crate) fn open(size: TerminalSize) -> io::Result<Self> {
        use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
        use std::os::unix::fs::OpenOptionsExt;

        // Closed on exec from the first moment: another child that is started meanwhile must not
        // hold it.
        let flags = libc::O_RDWR | libc::O_NOCTTY | libc::O_CLOEXEC | libc::O_NONBLOCK;
        // SAFETY: takes flags, gives a descriptor or -1.
        let ours = unsafe { libc::posix_openpt(flags) };
        if ours < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: it was just made and belongs to nobody else.
        let ours = unsafe { OwnedFd::from_raw_fd(ours) };
        let window =
            libc::winsize { ws_row: size.rows, ws_col: size.columns, ws_xpixel: 0, ws_ypixel: 0 };
        let mut name = [0u8; 64];
        // SAFETY: the descriptor is open; `name` and `window` live through the calls, and the length
        // given is that of `name`.
        unsafe {
            if libc::unlockpt(ours.as_raw_fd()) != 0 {
                return Err(io::Error::last_os_error());
            }
            let problem = libc::ptsname_r(ours.as_raw_fd(), name.as_mut_ptr().cast(), name.len());
            if problem != 0 {
                return Err(io::Error::from_raw_os_error(problem));
            }
            if libc::ioctl(ours.as_raw_fd(), libc::TIOCSWINSZ, &raw const window) != 0 {
                return Err(io::Error::last_os_error());
            }
        }
        let name: Vec<u8> = name.into_iter().take_while(|byte| *byte != 0).collect();
        let other_end = std::fs::OpenOptions::new()
            .read(true)
            .write(true)
            // It must not become our own terminal.
            .custom_flags(libc::O_NOCTTY)
            .open(String::from_utf8_lossy(&name).as_ref())?;
        let keyboard = pipe::Sender::from_owned_fd_unchecked(ours.try_clone()?)?;
        let screen = pipe::Receiver::from_owned_fd_unchecked(ours)?;
        Ok(Self { keyboard, screen, other_end })
    }

    #[cfg(not(target_os = "linux"))]
    pub(crate) fn open(_: TerminalSize) -> io::Result<Self> {
        Err(io::Error::new(io::ErrorKind::Unsupported, "terminals are made on Linux only so far"))
    }
}
