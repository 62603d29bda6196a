//! The thread that has the terminal: reads keys, takes in what happens, draws at most sixty times a
//! second, and waits for nothing else. A key is read first and shown before anything else is taken in;
//! a terminal that takes nothing holds up the drawing and nobody's work.

mod lend;

use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tokio::sync::mpsc::UnboundedSender;

use crate::app::{App, Effect, Input, Order};
use crate::files::Files;
use crate::input::{Decoder, Typed};
use crate::mailbox::{Inbox, Mailbox, Message};
use crate::picture::Canvas;
use crate::prefs::Places;
use crate::screen::Screen;
use crate::style::{Depth, Line, Style};
use crate::terminal::Terminal;

/// Between two paintings; nobody sees more.
const FRAME: Duration = Duration::from_millis(16);
/// After a key, since a person waits for it.
const KEY_FRAME: Duration = Duration::from_millis(4);
/// How long a lone escape may be the beginning of something.
const ESCAPE: Duration = Duration::from_millis(30);
/// How long messages are taken in before a picture is due: one may be a whole page.
const BATCH: Duration = Duration::from_millis(4);
/// Messages that are taken in before keys are looked for again.
const STRIDE: usize = 8;
/// Finished rows that may wait to be written before whoever makes them waits too.
const BACKLOG_ROWS: usize = 1_000;
/// On less there is nothing to be seen.
const COLUMNS_LEAST: usize = 4;
const ROWS_LEAST: usize = 2;

pub struct Shell {
    inbox: Inbox,
    orders: UnboundedSender<Order>,
    mailbox: Mailbox,
    app: App,
    screen: Screen,
    full: Option<Screen>,
    terminal: Terminal,
    decoder: Decoder,
    files: Option<Files>,
    places: Option<Places>,
    begun: Instant,
    painted: Instant,
    dirty: bool,
    /// A key was taken in that is not on the screen yet.
    keyed: bool,
    /// Messages are known to wait.
    more: bool,
    /// Columns and rows as the terminal has them.
    size: (usize, usize),
    /// A new size was seen before the news of it came.
    foreseen: bool,
    /// We stood still by our own will and are about to be told that we go on.
    stopped: bool,
    depth: Depth,
}

/// What there is to do.
struct Ready {
    typed: bool,
    told: bool,
    room: bool,
}

impl Shell {
    /// Enters the terminal and paints; nothing has been loaded yet.
    pub fn begin(
        terminal: Terminal,
        mailbox: Mailbox,
        inbox: Inbox,
        orders: UnboundedSender<Order>,
    ) -> std::io::Result<Self> {
        let (columns, rows) = terminal.size();
        let env = |name: &str| std::env::var(name).ok();
        let depth = Depth::from_env(&env);
        let begun = Instant::now();
        let mut shell = Self {
            inbox,
            orders,
            mailbox,
            app: App::new(columns, rows),
            screen: Screen::new(depth, columns),
            full: None,
            terminal,
            decoder: Decoder::default(),
            files: None,
            places: None,
            begun,
            painted: begun,
            dirty: true,
            keyed: false,
            more: false,
            size: (columns, rows),
            foreseen: false,
            stopped: false,
            depth,
        };
        shell.screen.set_height(rows);
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        shell.app.begun_at = since.ok().and_then(|since| u64::try_from(since.as_millis()).ok());
        shell.paint()?;
        Ok(shell)
    }

    /// Until the person leaves or the terminal is gone.
    pub fn run(mut self) -> std::io::Result<()> {
        let mut bytes = vec![0_u8; 64 << 10];
        let mut escape: Option<Instant> = None;
        loop {
            let ready = self.wait(escape)?;
            if ready.room {
                self.terminal.flush()?;
            }
            if ready.typed {
                let count = match self.terminal.read(&mut bytes) {
                    Ok(0) => break,
                    Ok(count) => count,
                    Err(problem) if is_passing(&problem) => 0,
                    Err(problem) => return Err(problem),
                };
                let typed = self.decoder.push(&bytes[..count]);
                escape = self.decoder.waits().then(|| Instant::now() + ESCAPE);
                if !self.typed(typed)? {
                    break;
                }
            } else if escape.is_some_and(|at| at <= Instant::now()) {
                escape = None;
                let rest = self.decoder.rest();
                if !self.typed(rest)? {
                    break;
                }
            }
            if self.keyed {
                self.paint_when_due()?;
            }
            if (ready.told || self.more) && self.may_take() && !self.take_messages()? {
                break;
            }
            if self.pause().is_some_and(|pause| pause.is_zero()) {
                self.give(Input::Tick)?;
            }
            self.paint_when_due()?;
        }
        self.leave()
    }

    /// Waits for a key, a message or the time; for as long as nothing moves.
    fn wait(&mut self, escape: Option<Instant>) -> std::io::Result<Ready> {
        let mut limit: Option<Duration> = None;
        let mut at_most = |time: Duration| limit = Some(limit.map_or(time, |own| own.min(time)));
        let behind = self.terminal.is_behind();
        let listens = self.may_take();
        let since = self.painted.elapsed();
        if self.more && listens {
            at_most(Duration::ZERO);
        }
        if !listens {
            at_most(if behind { self.terminal.patience() } else { FRAME.saturating_sub(since) });
        }
        if self.dirty && !behind {
            at_most(self.due().saturating_sub(since));
        }
        if let Some(pause) = self.pause() {
            at_most(pause);
        }
        if let Some(at) = escape {
            at_most(at.saturating_duration_since(Instant::now()));
        }
        let limit = limit.map(|time| Timespec {
            tv_sec: time.as_secs().try_into().unwrap_or(i64::MAX),
            tv_nsec: time.subsec_nanos().into(),
        });
        let told = if listens { PollFlags::IN } else { PollFlags::empty() };
        let mut fds = [
            PollFd::from_borrowed_fd(self.terminal.input(), PollFlags::IN),
            PollFd::from_borrowed_fd(self.inbox.bell(), told),
            PollFd::from_borrowed_fd(self.terminal.out(), PollFlags::OUT),
        ];
        // Room is of interest only to somebody who has something to write.
        let count = if behind { 3 } else { 2 };
        match poll(&mut fds[..count], limit.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(problem) => return Err(problem.into()),
        }
        let ready = |fd: &PollFd<'_>| !fd.revents().is_empty();
        let room = behind && ready(&fds[2]);
        Ok(Ready { typed: ready(&fds[0]), told: ready(&fds[1]), room })
    }

    /// How long after a picture the next one may come.
    fn due(&self) -> Duration {
        if self.keyed {
            KEY_FRAME
        } else if self.has_backlog(0) {
            Duration::ZERO
        } else {
            FRAME
        }
    }

    /// Until something that moves by itself has to be drawn again. Where nothing can be drawn,
    /// nothing moves.
    fn pause(&self) -> Option<Duration> {
        let pause = self.app.pause().filter(|_| !self.terminal.is_behind() && !self.is_tiny());
        pause.map(|pause| pause.saturating_sub(self.painted.elapsed()))
    }

    fn has_backlog(&self, rows: usize) -> bool {
        // The other screen shows none of them.
        self.full.is_none() && !self.is_tiny() && self.app.backlog() > rows
    }

    fn is_tiny(&self) -> bool {
        self.size.0 < COLUMNS_LEAST || self.size.1 < ROWS_LEAST
    }

    /// Whether it is time to take messages in: not while a key waits to be seen or rows wait to be
    /// written, unless the terminal takes nothing anyway; and where all were taken in, not before the
    /// next picture is due, so that a stream wakes nobody more often than it can be seen.
    fn may_take(&self) -> bool {
        if self.terminal.is_stuck() {
            return true;
        }
        let in_time = self.more || self.painted.elapsed() >= FRAME;
        in_time && !self.keyed && !self.has_backlog(BACKLOG_ROWS)
    }

    fn typed(&mut self, typed: Vec<Typed>) -> std::io::Result<bool> {
        self.keyed |= !typed.is_empty();
        for typed in typed {
            let input = match typed {
                Typed::Key(key) => Input::Key(key),
                Typed::Paste(text) => Input::Paste(text),
                Typed::Focus(focused) => Input::Focus(focused),
            };
            #[cfg(debug_assertions)]
            if std::env::var_os("TOOLWRIGHT_TUI_PANIC").is_some() {
                std::hint::black_box(Vec::<u8>::new())[0] = 1;
            }
            if !self.give(input)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether a key waits to be read.
    fn is_typing(&self) -> bool {
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        let input = PollFd::from_borrowed_fd(self.terminal.input(), PollFlags::IN);
        poll(&mut [input], Some(&now)).is_ok_and(|count| count > 0)
    }

    fn take_messages(&mut self) -> std::io::Result<bool> {
        self.inbox.hush();
        self.more = false;
        if !self.answer_summons()? {
            return Ok(false);
        }
        let begun = Instant::now();
        let mut taken = 0;
        while let Some(message) = self.inbox.take() {
            let goes_on = match message {
                Message::Input(input) => self.give(input)?,
                Message::Places(places, root) => {
                    self.settle_in(places, root);
                    true
                }
                #[cfg(test)]
                Message::Do(work) => {
                    work();
                    true
                }
            };
            if !goes_on {
                return Ok(false);
            }
            taken += 1;
            let enough = begun.elapsed() >= BATCH || self.has_backlog(BACKLOG_ROWS);
            if enough || (taken % STRIDE == 0 && self.is_typing()) {
                self.more = true;
                break;
            }
        }
        Ok(true)
    }

    /// Whether it goes on.
    fn answer_summons(&mut self) -> std::io::Result<bool> {
        let summoned = self.inbox.summoned();
        if summoned.suspend {
            self.suspend()?;
        }
        if summoned.resumed && !std::mem::take(&mut self.stopped) {
            self.resume()?;
        }
        // Drawn for already: once more, late, could meet a terminal that is about to change again.
        if summoned.resized {
            let known = std::mem::take(&mut self.foreseen) && self.terminal.size() == self.size;
            if !known {
                self.take_size()?;
            }
        }
        Ok(!summoned.quit)
    }

    /// Everything is drawn for the size that the terminal has now.
    fn take_size(&mut self) -> std::io::Result<()> {
        self.size = self.terminal.size();
        let (columns, rows) = self.size;
        for screen in std::iter::once(&mut self.screen).chain(&mut self.full) {
            screen.resize(columns);
            screen.set_height(rows);
            screen.distrust();
        }
        self.tell_canvas();
        self.give(Input::Resize { columns, rows }).map(drop)
    }

    /// Whoever makes pictures has to know for what.
    fn tell_canvas(&self) {
        let (means, (columns, rows)) = (self.app.prefs.pictures, self.size);
        self.mailbox.set_canvas(Canvas { means, columns, rows, cell: self.terminal.cell() });
    }

    fn settle_in(&mut self, places: Places, root: std::path::PathBuf) {
        let env = |name: &str| std::env::var(name).ok();
        self.app.settle_in(places.load(&env));
        self.tell_canvas();
        self.places = Some(places);
        let mailbox = self.mailbox.clone();
        let answer =
            move |token, paths| mailbox.leave(Message::Input(Input::Found { token, paths }));
        self.files = Some(Files::new(root, Box::new(answer)));
        self.dirty = true;
    }

    /// Whether it goes on.
    fn give(&mut self, input: Input) -> std::io::Result<bool> {
        let effects = self.app.update(self.begun.elapsed(), input);
        self.dirty = true;
        for effect in effects {
            match effect {
                Effect::Quit => return Ok(false),
                Effect::Order(order) => {
                    // Whoever obeys is gone only when we are about to be.
                    self.orders.send(order).ok();
                }
                Effect::OpenEditor(text) => self.open_editor(&text)?,
                Effect::Suspend => self.suspend()?,
                Effect::Redraw => self.redraw()?,
                Effect::Attention(text) => self.attention(&text)?,
                Effect::Title(title) => self.terminal.title(&title)?,
                Effect::Find { token, query } => {
                    if let Some(files) = &self.files {
                        files.find(token, query);
                    }
                }
                Effect::Remember(text) => {
                    if let Some(places) = &self.places {
                        places.remember(&text);
                    }
                }
                Effect::Copy(text) => {
                    use base64::Engine as _;
                    let text = base64::engine::general_purpose::STANDARD.encode(text);
                    self.terminal.write(&format!("\x1b]52;c;{text}\x07"))?;
                }
                Effect::Save(prefs) => {
                    if let Some(places) = &self.places {
                        // What cannot be kept is set anew the next time; it is no reason to stop.
                        places.save(&prefs).ok();
                    }
                }
            }
        }
        Ok(true)
    }

    fn paint_when_due(&mut self) -> std::io::Result<()> {
        let due = self.dirty && self.painted.elapsed() >= self.due();
        if due && !self.terminal.is_behind() { self.paint() } else { Ok(()) }
    }

    fn paint(&mut self) -> std::io::Result<()> {
        if self.terminal.size() != self.size {
            // A key may be here before the news of it.
            self.take_size()?;
            self.foreseen = true;
        }
        (self.dirty, self.keyed) = (false, false);
        self.painted = Instant::now();
        if self.is_tiny() {
            // It is told when it grows.
            return Ok(());
        }
        let frame = self.app.frame();
        let out = if frame.full || frame.over.is_some() {
            let full = match &mut self.full {
                Some(full) => full,
                None => {
                    self.terminal.set_full(true)?;
                    self.terminal.write("\x1b[?25h\x1b[H\x1b[2J")?;
                    self.full.insert(Screen::new(self.depth, self.app.columns))
                }
            };
            let (live, cursor) = match frame.over {
                Some(waiting) => self.screen.covered(waiting, frame.live, frame.cursor),
                None => (frame.live, frame.cursor),
            };
            full.paint(&[], live, cursor)
        } else {
            if self.full.take().is_some() {
                self.terminal.set_full(false)?;
                self.terminal.write(self.screen.cursor_again())?;
            }
            if frame.hold {
                self.screen.hold();
            }
            self.screen.paint(&frame.finished, frame.live, frame.cursor)
        };
        self.dirty = self.has_backlog(0);
        match out {
            Some(out) => self.terminal.write(&out),
            None => Ok(()),
        }
    }

    fn redraw(&mut self) -> std::io::Result<()> {
        self.terminal.write("\x1b[H\x1b[2J")?;
        self.screen.forget();
        self.full = None;
        Ok(())
    }

    fn attention(&mut self, text: &str) -> std::io::Result<()> {
        let notify = if self.app.is_focused() {
            String::new()
        } else {
            let clean: String = text.chars().filter(|c| !c.is_control()).take(120).collect();
            format!("\x1b]9;tw: {clean}\x07")
        };
        self.terminal.write(&format!("{notify}\x07"))
    }

    fn leave(mut self) -> std::io::Result<()> {
        if self.full.take().is_some() {
            self.terminal.set_full(false)?;
        }
        self.app.uncover();
        // A blank row at least, so that nothing of the prompt stays.
        let mut last = vec![Line::empty()];
        if let Some(text) = self.app.farewell() {
            last.push(Line::styled(text, Style::default().dim()));
        }
        loop {
            let frame = self.app.frame();
            let over = self.app.backlog() == 0;
            let live = if over { std::mem::take(&mut last) } else { vec![Line::empty()] };
            if let Some(out) = self.screen.paint(&frame.finished, live, None) {
                self.terminal.write(&out)?;
            }
            if over {
                break;
            }
        }
        let below = self.screen.leave();
        self.terminal.write(&below)?;
        self.terminal.drain()
    }
}

/// Whether reading may go well the next time.
fn is_passing(problem: &std::io::Error) -> bool {
    matches!(problem.kind(), std::io::ErrorKind::Interrupted | std::io::ErrorKind::WouldBlock)
}

#[cfg(test)]
#[path = "shell_tests.rs"]
mod tests;
