//! The thread that has the terminal: reads keys, takes in what happens, draws at most sixty times a
//! second, and waits for nothing else.

use std::io::Read;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tokio::sync::mpsc::UnboundedSender;

use crate::app::{App, Effect, Input, Order};
use crate::files::Files;
use crate::input::{Decoder, Typed};
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
/// Until a stopped process has stopped.
const STANDSTILL: Duration = Duration::from_millis(100);
/// How long messages are taken in before keys are looked at again: one may be a whole page.
const BATCH: Duration = Duration::from_millis(4);
const MESSAGES_AHEAD: usize = 1_024;

pub enum Message {
    Input(Input),
    /// The terminal has another size.
    Resized,
    Places(Places, std::path::PathBuf),
    Quit,
}

/// Where others leave messages for the thread.
#[derive(Clone)]
pub struct Mailbox {
    messages: SyncSender<Message>,
    bell: Arc<UnixStream>,
    rung: Arc<AtomicBool>,
}

impl Mailbox {
    /// Waits while the thread is far behind.
    pub fn send(&self, message: Message) {
        if self.messages.send(message).is_ok() {
            self.ring();
        }
    }

    /// Does not wait: for what must get through and may be said twice.
    pub fn try_send(&self, message: Message) -> bool {
        let sent = !matches!(self.messages.try_send(message), Err(TrySendError::Full(_)));
        self.ring();
        sent
    }

    fn ring(&self) {
        if !self.rung.swap(true, Ordering::SeqCst) {
            use std::io::Write;
            // Full means that it has been rung often enough.
            (&*self.bell).write_all(b"!").ok();
        }
    }
}

pub struct Shell {
    messages: Receiver<Message>,
    bell: UnixStream,
    rung: Arc<AtomicBool>,
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
    keyed: bool,
    depth: Depth,
}

/// The thread's mailbox, and what it needs to begin.
pub fn mailbox() -> std::io::Result<(Mailbox, Receiver<Message>, UnixStream)> {
    let (messages, received) = sync_channel(MESSAGES_AHEAD);
    let (ours, theirs) = UnixStream::pair()?;
    ours.set_nonblocking(true)?;
    theirs.set_nonblocking(true)?;
    let mailbox = Mailbox { messages, bell: Arc::new(ours), rung: Arc::default() };
    Ok((mailbox, received, theirs))
}

impl Shell {
    /// Enters the terminal and paints; nothing has been loaded yet.
    pub fn begin(
        mailbox: Mailbox,
        messages: Receiver<Message>,
        bell: UnixStream,
        orders: UnboundedSender<Order>,
    ) -> std::io::Result<Self> {
        let terminal = Terminal::enter()?;
        let (columns, rows) = Terminal::size();
        let env = |name: &str| std::env::var(name).ok();
        let depth = Depth::from_env(&env);
        let begun = Instant::now();
        let mut shell = Self {
            messages,
            bell,
            rung: Arc::clone(&mailbox.rung),
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
            depth,
        };
        shell.paint()?;
        Ok(shell)
    }

    /// Until the person leaves or the terminal is gone.
    pub fn run(mut self) -> std::io::Result<()> {
        let mut bytes = vec![0_u8; 64 << 10];
        let mut escape: Option<Instant> = None;
        loop {
            let (typed, told) = self.wait(escape)?;
            if typed {
                let count = match std::io::stdin().lock().read_raw(&mut bytes) {
                    Ok(0) => break,
                    Ok(count) => count,
                    Err(problem) if problem.kind() == std::io::ErrorKind::Interrupted => 0,
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
            if told && !self.take_messages()? {
                break;
            }
            let due = if self.keyed { KEY_FRAME } else { FRAME };
            if self.app.pause().is_some_and(|pause| self.painted.elapsed() >= pause) {
                self.give(Input::Tick)?;
            }
            if self.dirty && self.painted.elapsed() >= due {
                self.paint()?;
            }
        }
        self.leave()
    }

    /// Waits for a key, a message or the time; for as long as nothing moves.
    fn wait(&mut self, escape: Option<Instant>) -> std::io::Result<(bool, bool)> {
        let mut limit: Option<Duration> = None;
        let mut at_most = |time: Duration| limit = Some(limit.map_or(time, |own| own.min(time)));
        let since = self.painted.elapsed();
        if self.dirty {
            at_most(if self.keyed { KEY_FRAME } else { FRAME }.saturating_sub(since));
        }
        if let Some(pause) = self.app.pause() {
            at_most(pause.saturating_sub(since));
        }
        if let Some(at) = escape {
            at_most(at.saturating_duration_since(Instant::now()));
        }
        // Whole milliseconds, so that it does not wake a moment too early again and again.
        let limit = limit.map(|time| Timespec {
            tv_sec: time.as_secs() as i64,
            tv_nsec: i64::from(time.subsec_nanos()).min(998_999_999) + 1_000_000,
        });
        let stdin = std::io::stdin();
        let mut fds = [
            PollFd::from_borrowed_fd(stdin.as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(self.bell.as_fd(), PollFlags::IN),
        ];
        match poll(&mut fds, limit.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(problem) => return Err(problem.into()),
        }
        let ready = |fd: &PollFd<'_>| !fd.revents().is_empty();
        Ok((ready(&fds[0]), ready(&fds[1])))
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

    fn take_messages(&mut self) -> std::io::Result<bool> {
        let mut bell = [0_u8; 64];
        while (&self.bell).read(&mut bell).is_ok_and(|count| count == bell.len()) {}
        self.rung.store(false, Ordering::SeqCst);
        let begun = Instant::now();
        loop {
            if begun.elapsed() >= BATCH {
                // There may be more.
                self.mailbox.ring();
                break;
            }
            let Ok(message) = self.messages.try_recv() else { break };
            let goes_on = match message {
                Message::Input(input) => self.give(input)?,
                Message::Resized => {
                    let (columns, rows) = Terminal::size();
                    self.screen.resize(columns);
                    if let Some(full) = &mut self.full {
                        full.resize(columns + 1);
                        full.resize(columns);
                    }
                    self.give(Input::Resize { columns, rows })?
                }
                Message::Places(places, root) => {
                    self.settle_in(places, root);
                    true
                }
                Message::Quit => false,
            };
            if !goes_on {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn settle_in(&mut self, places: Places, root: std::path::PathBuf) {
        let env = |name: &str| std::env::var(name).ok();
        self.app.settle_in(places.load(&env));
        self.places = Some(places);
        let mailbox = self.mailbox.clone();
        let answer =
            move |token, paths| mailbox.send(Message::Input(Input::Found { token, paths }));
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

    fn paint(&mut self) -> std::io::Result<()> {
        let frame = self.app.frame();
        (self.dirty, self.keyed) = (false, false);
        self.painted = Instant::now();
        let out = if frame.full {
            self.terminal.set_full(true)?;
            let columns = self.app.columns;
            let depth = self.depth;
            let full = match &mut self.full {
                Some(full) => full,
                None => {
                    self.terminal.write("\x1b[H\x1b[2J")?;
                    self.full.insert(Screen::new(depth, columns))
                }
            };
            full.paint(&[], frame.live, frame.cursor)
        } else {
            if self.full.take().is_some() {
                self.terminal.set_full(false)?;
            }
            self.screen.paint(&frame.finished, frame.live, frame.cursor)
        };
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

    /// Gives the terminal to somebody else for a while.
    fn lend<T>(&mut self, work: impl FnOnce() -> T) -> std::io::Result<T> {
        // What stands there now is drawn again afterwards.
        if let Some(out) = self.screen.paint(&[], vec![Line::empty()], Some((0, 0))) {
            self.terminal.write(&out)?;
        }
        crate::terminal::restore();
        let result = work();
        self.terminal.enter_again()?;
        self.screen.forget();
        let (columns, rows) = Terminal::size();
        self.screen = Screen::new(self.depth, columns);
        self.app.update(self.begun.elapsed(), Input::Resize { columns, rows });
        self.dirty = true;
        Ok(result)
    }

    fn suspend(&mut self) -> std::io::Result<()> {
        self.lend(|| {
            rustix::process::kill_current_process_group(rustix::process::Signal::TSTP).ok();
            // It takes a moment until all threads stand still; what comes after this line must come
            // after the process goes on, or the shell's modes would win.
            std::thread::sleep(STANDSTILL);
        })
    }

    fn open_editor(&mut self, text: &str) -> std::io::Result<()> {
        let edited = self.lend(|| edit(text))?;
        self.app.update(self.begun.elapsed(), Input::Edited(edited));
        Ok(())
    }

    fn leave(mut self) -> std::io::Result<()> {
        let frame = self.app.frame();
        if frame.full || self.full.take().is_some() {
            self.terminal.set_full(false)?;
        }
        let mut last = Vec::new();
        if let Some(text) = self.app.farewell() {
            last.push(Line::empty());
            last.push(Line::styled(text, Style::default().dim()));
        }
        let finished = if frame.full { Vec::new() } else { frame.finished };
        if let Some(out) = self.screen.paint(&finished, last, None) {
            self.terminal.write(&out)?;
        }
        let below = self.screen.leave();
        self.terminal.write(&below)
    }
}

/// The person's own editor, in our terminal: it needs that terminal and our session, which a child of
/// `proc` is kept from having.
fn edit(text: &str) -> Result<String, String> {
    let set = |name: &str| std::env::var(name).ok().filter(|value| !value.trim().is_empty());
    let command = set("VISUAL").or_else(|| set("EDITOR")).unwrap_or_else(|| "vi".to_owned());
    let mut words = command.split_whitespace();
    let program = words.next().unwrap_or("vi");
    let file = std::env::temp_dir().join(format!("tw-prompt-{}.md", std::process::id()));
    let failed = |problem: std::io::Error| format!("cannot use {}: {problem}", file.display());
    write_private(&file, text).map_err(failed)?;
    let status = std::process::Command::new(program).args(words).arg(&file).status();
    let edited = match status {
        Ok(status) if status.success() => std::fs::read_to_string(&file).map_err(failed),
        Ok(status) => Err(format!("{program} ended with {status}; the text is as it was")),
        Err(problem) => Err(format!("cannot start {program}: {problem}; set $EDITOR")),
    };
    std::fs::remove_file(&file).ok();
    edited.map_err(|problem| problem.to_string())
}

fn write_private(file: &std::path::Path, text: &str) -> std::io::Result<()> {
    use std::io::Write;
    use std::os::unix::fs::OpenOptionsExt;
    std::fs::remove_file(file).ok();
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true).mode(0o600).open(file)?.write_all(text.as_bytes())
}

trait ReadRaw {
    fn read_raw(self, bytes: &mut [u8]) -> std::io::Result<usize>;
}

impl ReadRaw for std::io::StdinLock<'static> {
    /// Past the buffer that standard input has of its own: `poll` knows nothing of it.
    fn read_raw(self, bytes: &mut [u8]) -> std::io::Result<usize> {
        Ok(rustix::io::read(self.as_fd(), bytes)?)
    }
}
