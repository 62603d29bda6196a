//! A program in a terminal of its own, with somebody who types and looks.

use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::process::{Command, Stdio};
use std::sync::{Arc, Condvar, Mutex};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Termios, Winsize, tcgetattr, tcsetwinsize};

use crate::{Folder, eventually};

pub struct Terminal {
    child: std::process::Child,
    master: Option<File>,
    slave: OwnedFd,
    seen: Arc<(Mutex<Seen>, Condvar)>,
    before: Termios,
}

struct Seen {
    screen: vt100::Parser,
    bytes: u64,
    /// Everything that was written, as it was; the beginning of it.
    raw: Vec<u8>,
    /// Nothing is read for the time being.
    held: bool,
}

/// Bytes of the output that are kept as they were.
const RAW_CAP_BYTES: usize = 8 << 20;

impl Terminal {
    /// Runs `tw` in this folder in a terminal of that size.
    pub fn start(folder: &Folder, arguments: &[&str], columns: u16, rows: u16) -> Self {
        Self::run(folder, folder.command(arguments), columns, rows)
    }

    /// A shell with job control in this folder, for what only a shell does to a program.
    pub fn shell(folder: &Folder, columns: u16, rows: u16) -> Self {
        let mut command = Command::new("bash");
        command.args(["--norc", "--noprofile", "-i"]);
        Self::run(folder, command, columns, rows)
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
        if !own.get_envs().any(|(name, _)| name == "TERM") {
            own.env("TERM", "xterm-256color").env("COLORTERM", "truecolor");
        }
        own.stdin(stdio()).stdout(stdio()).stderr(stdio());
        let child = own.spawn().expect("setsid of util-linux");
        // Somebody who types must not wait for a program that reads no more.
        rustix::io::ioctl_fionbio(&master, true).expect("a terminal");
        let size = |n| std::num::NonZero::new(n).expect("a size");
        let screen = vt100::Parser::new(size(rows), size(columns), 10_000);
        let seen = Seen { screen, bytes: 0, raw: Vec::new(), held: false };
        let seen = Arc::new((Mutex::new(seen), Condvar::new()));
        let mut reader = File::from(master.as_fd().try_clone_to_owned().expect("a handle"));
        let writing = Arc::clone(&seen);
        std::thread::spawn(move || {
            let mut buffer = [0; 65_536];
            loop {
                let count = match reader.read(&mut buffer) {
                    Ok(0) => break,
                    Ok(count) => count,
                    Err(problem) if problem.kind() == ErrorKind::WouldBlock => {
                        ready(&reader, PollFlags::IN);
                        continue;
                    }
                    Err(_) => break,
                };
                let (seen, let_go) = &*writing;
                let mut seen = seen.lock().unwrap();
                seen.bytes += count as u64;
                seen.screen.process(&buffer[..count]);
                if seen.raw.len() < RAW_CAP_BYTES {
                    seen.raw.extend_from_slice(&buffer[..count]);
                }
                let_go.notify_all();
                while seen.held {
                    seen = let_go.wait(seen).unwrap();
                }
            }
        });
        Self { child, master: Some(File::from(master)), slave: slave.into(), seen, before }
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    pub fn keys(&self, text: &str) {
        let mut master = self.master.as_ref().expect("an open terminal");
        let mut left = text.as_bytes();
        while !left.is_empty() {
            match master.write(left) {
                Ok(count) => left = &left[count..],
                Err(problem) if problem.kind() == ErrorKind::WouldBlock => {
                    // One that has just ended reads no more; whoever waits for something notices.
                    if !ready(master, PollFlags::OUT) && self.has_ended() {
                        return;
                    }
                }
                Err(_) => return,
            }
        }
    }

    /// Also where nobody has asked how.
    fn has_ended(&self) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.id())).unwrap_or_default();
        stat.rsplit_once(") ").is_none_or(|(_, rest)| rest.starts_with(['Z', 'X']))
    }

    /// The rows that are to be seen.
    pub fn screen(&self) -> String {
        let seen = self.seen.0.lock().unwrap();
        let (_, columns) = seen.screen.screen().size();
        let rows = seen.screen.screen().rows(0, columns.get()).map(|row| row.trim_end().to_owned());
        rows.collect::<Vec<_>>().join("\n")
    }

    /// How many bytes were written so far.
    pub fn bytes(&self) -> u64 {
        self.seen.0.lock().unwrap().bytes
    }

    /// What was written so far, byte for byte.
    pub fn output(&self) -> Vec<u8> {
        self.seen.0.lock().unwrap().raw.clone()
    }

    /// Takes nothing more from the program (but what is being taken), as a terminal that was stopped
    /// or a connection that hangs.
    pub fn hold(&self) {
        self.seen.0.lock().unwrap().held = true;
    }

    pub fn read_on(&self) {
        self.seen.0.lock().unwrap().held = false;
        self.seen.1.notify_all();
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

    /// Returns the moment the screen is like that: for those who measure how long it took.
    pub fn see(&self, is_so: impl Fn(&str) -> bool) {
        let begun = std::time::Instant::now();
        let (seen, news) = &*self.seen;
        let mut seen = seen.lock().unwrap();
        while !is_so(&seen.screen.screen().contents()) {
            assert!(begun.elapsed() < crate::PATIENCE, "{}", seen.screen.screen().contents());
            seen = news.wait_timeout(seen, std::time::Duration::from_secs(1)).unwrap().0;
        }
    }

    pub fn resize(&self, columns: u16, rows: u16) {
        let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        let of = |n| std::num::NonZero::new(n).expect("a size");
        self.seen.0.lock().unwrap().screen.screen_mut().set_size(of(rows), of(columns));
        tcsetwinsize(&self.slave, size).expect("another size");
    }

    /// Whether the terminal's modes are what they were; it may still show what it did.
    pub fn has_old_modes(&self) -> bool {
        let now = tcgetattr(&self.slave).expect("its modes");
        now.local_modes == self.before.local_modes
            && now.input_modes == self.before.input_modes
            && now.output_modes == self.before.output_modes
    }

    /// Whether the terminal is as it was before.
    pub fn is_restored(&self) -> bool {
        let seen = self.seen.0.lock().unwrap();
        let screen = seen.screen.screen();
        self.has_old_modes()
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

/// Waits a moment for it.
fn ready(file: &File, what: PollFlags) -> bool {
    let moment = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
    let count = poll(&mut [PollFd::from_borrowed_fd(file.as_fd(), what)], Some(&moment));
    count.is_ok_and(|count| count > 0)
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // A test that failed must leave nothing behind.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
