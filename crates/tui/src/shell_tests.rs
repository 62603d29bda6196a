use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::*;
use crate::app::News;
use crate::blocks::Level;
use crate::mailbox::{Summons, mailbox};

/// What a terminal's modes were is kept in one place for the whole process.
static ALONE: Mutex<()> = Mutex::new(());

/// The thread with a terminal of its own, whose other side nobody reads before a test does.
struct Room {
    master: File,
    slave: OwnedFd,
    mailbox: Mailbox,
    orders: UnboundedReceiver<Order>,
    screen: vt100::Parser,
    written: String,
    start: Option<(Inbox, UnboundedSender<Order>)>,
    thread: Option<JoinHandle<std::io::Result<()>>>,
    _alone: MutexGuard<'static, ()>,
}

impl Room {
    fn new(columns: u16, rows: u16) -> Self {
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&master).and_then(|()| unlockpt(&master)).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap();
        let slave =
            File::options().read(true).write(true).open(name.to_str().unwrap()).unwrap().into();
        let (mailbox, inbox) = mailbox().unwrap();
        let (sender, orders) = unbounded_channel();
        let size = |n: u16| std::num::NonZero::new(n).unwrap();
        let room = Self {
            master: File::from(master),
            slave,
            mailbox,
            orders,
            screen: vt100::Parser::new(size(rows.max(2)), size(columns.max(8)), 100),
            written: String::new(),
            start: Some((inbox, sender)),
            thread: None,
            _alone: alone,
        };
        room.resize(columns, rows);
        room
    }

    fn resize(&self, columns: u16, rows: u16) {
        let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&self.slave, size).unwrap();
    }

    fn start(&mut self) {
        self.start_after("");
    }

    /// With these keys typed before it looks for any.
    fn start_after(&mut self, keys: &str) {
        let (inbox, orders) = self.start.take().unwrap();
        let end = || self.slave.try_clone().unwrap();
        let terminal = Terminal::enter_on(end(), end()).unwrap();
        if !keys.is_empty() {
            self.keys(keys);
            let input = PollFd::from_borrowed_fd(self.slave.as_fd(), PollFlags::IN);
            poll(&mut [input], None).unwrap();
        }
        let mailbox = self.mailbox.clone();
        self.thread = Some(std::thread::spawn(move || {
            Shell::begin(terminal, mailbox, inbox, orders).and_then(Shell::run)
        }));
    }

    fn say(&self, text: String) {
        self.mailbox.leave(Message::Input(Input::News(Box::new(News::Say {
            level: Level::Quiet,
            text,
            advice: None,
        }))));
    }

    fn keys(&self, text: &str) {
        (&self.master).write_all(text.as_bytes()).unwrap();
    }

    /// Reads until it is to be seen; a picture at a time.
    fn wait_for(&mut self, text: &str) {
        let mut bytes = [0; 4096];
        let mut picture = Vec::new();
        while !self.shown().contains(text) {
            let count = (&self.master).read(&mut bytes).unwrap();
            picture.extend_from_slice(&bytes[..count]);
            // Only whole pictures: the next one may be on its way already.
            while let Some(end) = picture.windows(8).position(|w| w == b"\x1b[?2026l") {
                let rest = picture.split_off(end + 8);
                let whole = std::mem::replace(&mut picture, rest);
                self.written.push_str(&String::from_utf8_lossy(&whole));
                self.screen.process(&whole);
                if self.shown().contains(text) {
                    return;
                }
            }
        }
    }

    fn shown(&self) -> String {
        self.screen.screen().contents()
    }

    fn is_raw(&self) -> bool {
        !tcgetattr(&self.slave).unwrap().local_modes.contains(LocalModes::ICANON)
    }

    fn order(&mut self) -> Order {
        self.orders.blocking_recv().unwrap()
    }

    fn end(&mut self) -> std::io::Result<()> {
        self.mailbox.summon(Summons::Quit);
        self.thread.take().unwrap().join().unwrap()
    }
}

/// The highest number of the messages that are to be seen.
fn newest(shown: &str) -> usize {
    let numbers = shown.split("message ").skip(1);
    let numbers = numbers.filter_map(|rest| rest.split_whitespace().next()?.parse().ok());
    numbers.max().unwrap_or(0)
}

#[test]
fn a_key_is_shown_before_any_message_that_waits() {
    let mut room = Room::new(80, 24);
    for n in 1..=500 {
        room.say(format!("message {n}"));
    }
    room.start_after("þ");
    room.wait_for("› þ");
    assert_eq!(newest(&room.shown()), 0, "{}", room.shown());
    room.wait_for("message 500");
    room.end().unwrap();
}

#[test]
fn a_key_in_the_middle_of_a_flood_lets_no_more_than_a_stride_of_messages_pass() {
    let mut room = Room::new(80, 24);
    for n in 1..=400 {
        room.say(format!("message {n}"));
        if n == 100 {
            let (master, slave) =
                (room.master.try_clone().unwrap(), room.slave.try_clone().unwrap());
            room.mailbox.leave(Message::Do(Box::new(move || {
                (&master).write_all("þ".as_bytes()).unwrap();
                let input = PollFd::from_borrowed_fd(slave.as_fd(), PollFlags::IN);
                poll(&mut [input], None).unwrap();
            })));
        }
    }
    room.start();
    room.wait_for("› þ");
    let passed = newest(&room.shown());
    assert!((100..=100 + STRIDE).contains(&passed), "{passed} messages");
    room.wait_for("message 400");
    room.end().unwrap();
}

#[test]
fn a_terminal_that_takes_nothing_holds_up_neither_the_engine_nor_the_keys() {
    let mut room = Room::new(80, 24);
    room.start();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    // Far more than any buffer between here and there holds.
    runtime.block_on(async {
        for n in 1..=20_000 {
            let news =
                News::Say { level: Level::Quiet, text: format!("message {n}"), advice: None };
            room.mailbox.send(Input::News(Box::new(news))).await.unwrap();
        }
    });
    room.keys("are you there\r");
    assert_eq!(room.order(), Order::Prompt("are you there".to_owned()));
    // Once it is read again, everything is as it should be; what was too much is said to be.
    room.wait_for("message 20000");
    assert!(room.written.contains("rows were not shown"));
    assert!(room.written.contains("are you there"));
    room.end().unwrap();
}

#[test]
fn the_modes_come_back_from_a_terminal_that_takes_nothing() {
    let mut room = Room::new(80, 24);
    room.start();
    for n in 1..=5_000 {
        room.say(format!("message {n}"));
    }
    room.keys("are you there\r");
    room.order();
    assert!(room.is_raw());
    room.end().unwrap();
    assert!(!room.is_raw());
}

#[test]
fn a_terminal_of_one_cell_is_survived_and_a_larger_one_drawn_on() {
    let mut room = Room::new(1, 1);
    room.start_after("þ\r");
    for n in 1..=50 {
        room.say(format!("message {n}"));
    }
    assert_eq!(room.order(), Order::Prompt("þ".to_owned()));
    for (columns, rows) in [(2, 1), (1, 9), (3, 2), (80, 24)] {
        room.resize(columns, rows);
        room.mailbox.summon(Summons::Resized);
    }
    room.screen
        .screen_mut()
        .set_size(std::num::NonZero::new(24).unwrap(), std::num::NonZero::new(80).unwrap());
    room.wait_for("message 50");
    assert!(room.written.matches("message ").count() >= 50, "{}", room.written);
    room.end().unwrap();
}

#[test]
fn standing_still_and_going_on_draws_everything_again() {
    let mut room = Room::new(60, 12);
    room.start();
    room.keys("draft");
    room.wait_for("› draft");
    room.screen.process(b"\x1b[2J\x1b[H$ something else was here");
    room.mailbox.summon(Summons::Resumed);
    room.wait_for("› draft");
    assert!(room.shown().contains("something else was here"));
    assert!(room.is_raw());
    room.end().unwrap();
    assert!(!room.is_raw());
}

#[test]
fn the_end_of_the_input_ends_it() {
    let mut room = Room::new(60, 12);
    room.start();
    room.wait_for("starting");
    let thread = room.thread.take().unwrap();
    let Room { master, slave, .. } = room;
    drop((master, slave));
    // Whatever it says of a terminal that is gone, it ends.
    thread.join().unwrap().ok();
}
