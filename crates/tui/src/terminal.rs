//! The terminal's modes: entered once, and left however the program ends; and what is written to it,
//! without ever waiting for it.

use std::fs::File;
use std::io::{ErrorKind, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};

/// Pastes as one, focus told, keys without doubt where the terminal can.
const ENTER: &str = "\x1b[?2004h\x1b[?1004h\x1b[>1u";
/// The same where it was entered before and something may have changed it.
const AGAIN: &str = "\x1b[?2004h\x1b[?1004h\x1b[=1u";
const LEAVE: &str = "\x1b[<u\x1b[?1004l\x1b[?2004l\x1b[?2026l\x1b[?7h\x1b[m\x1b[?25h";
const OTHER_SCREEN: &str = "\x1b[?1049h";
const OWN_SCREEN: &str = "\x1b[?1049l";
const KEEP_TITLE: &str = "\x1b[22;2t";
const OLD_TITLE: &str = "\x1b[23;2t";

/// A terminal that has taken nothing for so long may take nothing for hours.
const STUCK: Duration = Duration::from_millis(250);
/// How long the last words may take; the modes are set back in any case.
const FAREWELL: Duration = Duration::from_millis(300);
/// A title or a bell that finds so much before it is not worth waiting for.
const WAITING_CAP_BYTES: usize = 4 << 20;

/// What has to be undone. In one place for all threads: whoever ends the program undoes it.
static ENTERED: Mutex<Option<Entered>> = Mutex::new(None);

struct Entered {
    modes: Termios,
    input: OwnedFd,
    out: File,
    full: bool,
    titled: bool,
}

pub struct Terminal {
    input: OwnedFd,
    out: File,
    /// What the terminal has not taken yet, from `at` on.
    waiting: Vec<u8>,
    at: usize,
    /// When it last took something, or had nothing to take.
    moved: Instant,
}

impl Terminal {
    /// Raw mode and the rest. Fails where there is no terminal.
    pub fn enter() -> std::io::Result<Self> {
        let input = rustix::io::dup(std::io::stdin().as_fd())?;
        let out = rustix::io::dup(std::io::stdout().as_fd())?;
        Self::enter_on(input, out)
    }

    pub fn enter_on(input: OwnedFd, out: OwnedFd) -> std::io::Result<Self> {
        let out = patient(&out).unwrap_or_else(|| File::from(out));
        let moved = Instant::now();
        let mut terminal = Self { input, out, waiting: Vec::new(), at: 0, moved };
        terminal.enter_again()?;
        Ok(terminal)
    }

    /// After something else had the terminal.
    pub fn enter_again(&mut self) -> std::io::Result<()> {
        let modes = tcgetattr(&self.input)?;
        set_raw(&self.input, &modes)?;
        let (input, out) = (self.input.try_clone()?, self.out.try_clone()?);
        *entered() = Some(Entered { modes, input, out, full: false, titled: false });
        self.write(ENTER)
    }

    /// Where the process stood still and somebody may have changed the modes meanwhile; what they were
    /// at first stays known.
    pub fn insist(&mut self) -> std::io::Result<()> {
        let full = entered().as_ref().is_some_and(|entered| entered.full);
        set_raw(&self.input, &tcgetattr(&self.input)?)?;
        self.write(AGAIN)?;
        if full { self.write(OTHER_SCREEN) } else { Ok(()) }
    }

    pub fn input(&self) -> BorrowedFd<'_> {
        self.input.as_fd()
    }

    pub fn out(&self) -> BorrowedFd<'_> {
        self.out.as_fd()
    }

    /// Past the buffer that standard input has of its own: `poll` knows nothing of it.
    pub fn read(&self, bytes: &mut [u8]) -> std::io::Result<usize> {
        Ok(rustix::io::read(&self.input, bytes)?)
    }

    /// Takes it for writing; what the terminal does not take now goes out with [`Self::flush`].
    pub fn write(&mut self, text: &str) -> std::io::Result<()> {
        if self.waiting.len() - self.at < WAITING_CAP_BYTES {
            if !self.is_behind() {
                self.moved = Instant::now();
            }
            self.waiting.extend_from_slice(text.as_bytes());
        }
        self.flush()
    }

    /// As much as it takes without waiting.
    pub fn flush(&mut self) -> std::io::Result<()> {
        while self.is_behind() {
            match self.out.write(&self.waiting[self.at..]) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(count) => {
                    self.at += count;
                    self.moved = Instant::now();
                }
                Err(problem) if problem.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(problem) if problem.kind() == ErrorKind::Interrupted => {}
                Err(problem) => return Err(problem),
            }
        }
        self.waiting.clear();
        self.at = 0;
        Ok(())
    }

    /// Waits for it, but not for long.
    pub fn drain(&mut self) -> std::io::Result<()> {
        let until = Instant::now() + FAREWELL;
        self.flush()?;
        while self.is_behind() && wait_for_room(self.out.as_fd(), until)? {
            self.flush()?;
        }
        Ok(())
    }

    /// Whether it has not taken everything yet.
    pub fn is_behind(&self) -> bool {
        self.at < self.waiting.len()
    }

    /// How long it may still take before it counts as stuck; nothing, where it is.
    pub fn patience(&self) -> Duration {
        STUCK.saturating_sub(self.moved.elapsed())
    }

    pub fn is_stuck(&self) -> bool {
        self.is_behind() && self.patience().is_zero()
    }

    /// To the other screen or back from it.
    pub fn set_full(&mut self, full: bool) -> std::io::Result<()> {
        let changed = match entered().as_mut() {
            Some(entered) => std::mem::replace(&mut entered.full, full) != full,
            None => false,
        };
        match (changed, full) {
            (true, true) => self.write(OTHER_SCREEN),
            (true, false) => self.write(OWN_SCREEN),
            (false, _) => Ok(()),
        }
    }

    pub fn title(&mut self, title: &str) -> std::io::Result<()> {
        let first = match entered().as_mut() {
            Some(entered) => !std::mem::replace(&mut entered.titled, true),
            None => false,
        };
        let keep = if first { KEEP_TITLE } else { "" };
        let title = crate::width::flat(title);
        self.write(&format!("{keep}\x1b]2;{title}\x07"))
    }

    /// Columns and rows.
    pub fn size(&self) -> (usize, usize) {
        match tcgetwinsize(&self.out) {
            Ok(size) if size.ws_col > 0 && size.ws_row > 0 => {
                (usize::from(size.ws_col), usize::from(size.ws_row))
            }
            _ => (80, 24),
        }
    }
}

impl Terminal {
    /// The pixels of a cell, where the terminal has told the system.
    pub fn cell(&self) -> Option<(u32, u32)> {
        let size = tcgetwinsize(&self.out).ok()?;
        let one =
            |all: u16, count: u16| Some(u32::from(all.checked_div(count)?)).filter(|n| *n > 1);
        Some((one(size.ws_xpixel, size.ws_col)?, one(size.ws_ypixel, size.ws_row)?))
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        restore();
    }
}

fn set_raw(input: &OwnedFd, modes: &Termios) -> std::io::Result<()> {
    let mut raw = modes.clone();
    raw.make_raw();
    Ok(tcsetattr(input, OptionalActions::Now, &raw)?)
}

/// The same terminal, opened again so that writing to it never waits: that is a property of the open
/// file, and the one we were given belongs to the shell too. Where there is no way to it (no `/proc`),
/// the one we have must do, and writing may wait.
fn patient(out: &OwnedFd) -> Option<File> {
    let number = out.as_raw_fd();
    let not_ours = rustix::pty::OpenptFlags::NOCTTY.bits().cast_signed();
    let path = format!("/proc/self/fd/{number}");
    let file = File::options().write(true).custom_flags(not_ours).open(path).ok()?;
    rustix::io::ioctl_fionbio(&file, true).ok()?;
    Some(file)
}

/// Whether there may be room now; not, when the time is over.
fn wait_for_room(out: BorrowedFd<'_>, until: Instant) -> std::io::Result<bool> {
    let left = until.saturating_duration_since(Instant::now());
    if left.is_zero() {
        return Ok(false);
    }
    let limit = Timespec { tv_sec: 0, tv_nsec: i64::from(left.subsec_nanos()) };
    match poll(&mut [PollFd::from_borrowed_fd(out, PollFlags::OUT)], Some(&limit)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(true),
        Err(problem) => Err(problem.into()),
    }
}

fn entered() -> std::sync::MutexGuard<'static, Option<Entered>> {
    ENTERED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes the terminal what it was. Does nothing the second time; a terminal that is gone is no
/// longer in need of it, and one that takes nothing gets its modes back without the words.
pub fn restore() {
    let Some(before) = entered().take() else { return };
    let mut text = String::new();
    if before.full {
        text.push_str(OWN_SCREEN);
    }
    text.push_str(LEAVE);
    if before.titled {
        text.push_str(OLD_TITLE);
    }
    let until = Instant::now() + FAREWELL;
    let mut left = text.as_bytes();
    while !left.is_empty() {
        match (&before.out).write(left) {
            Ok(0) => break,
            Ok(count) => left = &left[count..],
            Err(problem) if problem.kind() == ErrorKind::Interrupted => {}
            Err(problem) if problem.kind() == ErrorKind::WouldBlock => {
                if !wait_for_room(before.out.as_fd(), until).unwrap_or(false) {
                    break;
                }
            }
            Err(_) => break,
        }
    }
    tcsetattr(&before.input, OptionalActions::Now, &before.modes).ok();
}

/// A panic on the thread that draws leaves a terminal that can be read. Others are told by whoever
/// ran what panicked; their words would only be written over the screen.
pub fn watch_for_panics(drawing: &'static str) {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        let own = std::thread::current().name() == Some(drawing);
        if own {
            restore();
        }
        if own || entered().is_none() {
            usual(info);
        }
    }));
}
