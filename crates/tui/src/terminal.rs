//! The terminal's modes: entered once, and left however the program ends.

use std::fs::File;
use std::io::Write;
use std::os::fd::AsFd;
use std::sync::{Mutex, PoisonError};

use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};

/// Pastes as one, focus told, keys without doubt where the terminal can.
const ENTER: &str = "\x1b[?2004h\x1b[?1004h\x1b[>1u";
const LEAVE: &str = "\x1b[<u\x1b[?1004l\x1b[?2004l\x1b[?2026l\x1b[m\x1b[?25h";
const OTHER_SCREEN: &str = "\x1b[?1049h";
const OWN_SCREEN: &str = "\x1b[?1049l";
const KEEP_TITLE: &str = "\x1b[22;2t";
const OLD_TITLE: &str = "\x1b[23;2t";

/// What has to be undone. In one place for all threads: whoever ends the program undoes it.
static ENTERED: Mutex<Option<Entered>> = Mutex::new(None);

struct Entered {
    modes: Termios,
    full: bool,
    titled: bool,
}

pub struct Terminal {
    out: File,
}

impl Terminal {
    /// Raw mode and the rest. Fails where there is no terminal.
    pub fn enter() -> std::io::Result<Self> {
        let out = File::from(rustix::io::dup(std::io::stdout().as_fd())?);
        let mut terminal = Self { out };
        terminal.enter_again()?;
        Ok(terminal)
    }

    /// After something else had the terminal.
    pub fn enter_again(&mut self) -> std::io::Result<()> {
        let modes = tcgetattr(std::io::stdin().as_fd())?;
        let mut raw = modes.clone();
        raw.make_raw();
        tcsetattr(std::io::stdin().as_fd(), OptionalActions::Now, &raw)?;
        *entered() = Some(Entered { modes, full: false, titled: false });
        self.write(ENTER)
    }

    pub fn write(&mut self, text: &str) -> std::io::Result<()> {
        self.out.write_all(text.as_bytes())
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
        self.write(&format!("{keep}\x1b]2;{title}\x07"))
    }

    /// Columns and rows.
    pub fn size() -> (usize, usize) {
        match tcgetwinsize(std::io::stdout().as_fd()) {
            Ok(size) if size.ws_col > 0 && size.ws_row > 0 => {
                (usize::from(size.ws_col), usize::from(size.ws_row))
            }
            _ => (80, 24),
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        restore();
    }
}

fn entered() -> std::sync::MutexGuard<'static, Option<Entered>> {
    ENTERED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes the terminal what it was. Does nothing the second time; a terminal that is gone is no
/// longer in need of it.
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
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).ok();
    tcsetattr(std::io::stdin().as_fd(), OptionalActions::Now, &before.modes).ok();
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
