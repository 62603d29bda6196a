//! A program in a terminal of its own, with somebody who types and looks.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Termios, Winsize, tcgetattr, tcsetwinsize};

use crate::{Folder, eventually};

pub struct Terminal {
    child: std::process::Child,
    master: Option<File>,
    slave: OwnedFd,
    seen: Arc<Mutex<Seen>>,
    before: Termios,
}

struct Seen {
    screen: vt100::Parser,
    bytes: u64,
}

impl Terminal {
    /// Runs `tw` in this folder in a terminal of that size.
    pub fn start(folder: &Folder, arguments: &[&str], columns: u16, rows: u16) -> Self {
        Self::run(folder, folder.command(arguments), columns, rows)
    }

    fn run(folder: &Folder, command: Command, columns: u16, rows: u16) -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
        grantpt(&master).and_then(|()| unlockpt(&master)).expect("its other side");
        let name = ptsname(&master, Vec::new()).expect("its name");
        let name = name.to_str().expect("a path").to_owned();
        let slave = File::options().read(true).write(true).open(name).expect("its other side");
        let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&slave, size).expect("a size");
        let before = tcgetattr(&slave).expect("its modes");
        let stdio = || Stdio::from(slave.try_clone().expect("a handle"));
        // A session of its own whose terminal this is; the process stays the same one.
        let mut own = Command::new("setsid");
        own.arg("--ctty").arg(command.get_program()).args(command.get_args());
        folder.settle(&mut own);
        own.env("TERM", "xterm-256color").env("COLORTERM", "truecolor");
        own.stdin(stdio()).stdout(stdio()).stderr(stdio());
        let child = own.spawn().expect("setsid of util-linux");
        let size = |n| std::num::NonZero::new(n).expect("a size");
        let screen = vt100::Parser::new(size(rows), size(columns), 10_000);
        let seen = Arc::new(Mutex::new(Seen { screen, bytes: 0 }));
        let mut reader = File::from(master.as_fd().try_clone_to_owned().expect("a handle"));
        let writing = Arc::clone(&seen);
        std::thread::spawn(move || {
            let mut buffer = [0; 65_536];
            while let Ok(count) = reader.read(&mut buffer) {
                if count == 0 {
                    break;
                }
                let mut seen = writing.lock().unwrap();
                seen.bytes += count as u64;
                seen.screen.process(&buffer[..count]);
            }
        });
        Self { child, master: Some(File::from(master)), slave: slave.into(), seen, before }
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    pub fn keys(&self, text: &str) {
        let mut master = self.master.as_ref().expect("an open terminal");
        // One that has just ended reads no more; whoever waits for something notices.
        master.write_all(text.as_bytes()).ok();
    }

    /// The rows that are to be seen.
    pub fn screen(&self) -> String {
        let seen = self.seen.lock().unwrap();
        let (_, columns) = seen.screen.screen().size();
        let rows = seen.screen.screen().rows(0, columns.get()).map(|row| row.trim_end().to_owned());
        rows.collect::<Vec<_>>().join("\n")
    }

    /// How many bytes were written so far.
    pub fn bytes(&self) -> u64 {
        self.seen.lock().unwrap().bytes
    }

    pub fn wait_for(&self, text: &str) {
        self.wait_until(&format!("{text:?} on the screen"), |screen| screen.contains(text));
    }

    pub fn wait_until(&self, what: &str, is_so: impl Fn(&str) -> bool) {
        let mut last = String::new();
        let waited = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            eventually(what, || {
                last = self.screen();
                is_so(&last).then_some(())
            });
        }));
        assert!(waited.is_ok(), "waited in vain for {what}; the screen is\n{last}");
    }

    pub fn resize(&self, columns: u16, rows: u16) {
        let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        let of = |n| std::num::NonZero::new(n).expect("a size");
        self.seen.lock().unwrap().screen.screen_mut().set_size(of(rows), of(columns));
        tcsetwinsize(&self.slave, size).expect("another size");
    }

    /// Whether the terminal is as it was before.
    pub fn is_restored(&self) -> bool {
        let now = tcgetattr(&self.slave).expect("its modes");
        let seen = self.seen.lock().unwrap();
        let screen = seen.screen.screen();
        now.local_modes == self.before.local_modes
            && now.input_modes == self.before.input_modes
            && now.output_modes == self.before.output_modes
            && !screen.bracketed_paste()
            && !screen.alternate_screen()
            && !screen.hide_cursor()
    }

    pub fn signal(&self, name: &str) {
        let status =
            Command::new("kill").arg(format!("-{name}")).arg(self.id().to_string()).status();
        assert!(status.is_ok_and(|s| s.success()), "kill -{name}");
    }

    /// Whether the program has ended, and how.
    pub fn ended(&mut self) -> Option<Option<i32>> {
        self.child.try_wait().expect("a child").map(|status| status.code())
    }

    /// Takes the terminal away from the program.
    pub fn hang_up(&mut self) {
        self.signal("HUP");
        self.master = None;
    }

    /// The exit status; `None` where a signal ended it.
    pub fn wait(&mut self) -> Option<i32> {
        eventually("the end of the program", || {
            self.child.try_wait().expect("a child").map(|status| status.code())
        })
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // A test that failed must leave nothing behind.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
