//! Starting a child and looking after it until it has ended.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::pipe;
use tokio::process::{ChildStdin, Command};
use tokio::task::JoinHandle;

use crate::environment;
use crate::registry::{self, COOKIE, COOKIE_VARIABLE, MARK_VARIABLE, Reach};
use crate::sandbox::{Cell, Guard, PutBack, Sandbox};
use crate::sys;
use crate::terminal::Terminal;

/// How long a group may take to end after SIGTERM before it gets SIGKILL.
const TERM_GRACE: Duration = Duration::from_secs(2);

/// How long the program around a command is waited for when the command has ended: a guard that is not
/// needed any more must not outlive it until the next one.
const GOING_STEPS: usize = 20;
const GOING_BLINDLY: usize = 3;
const GOING_STEP: Duration = Duration::from_millis(1);

/// What a sandbox hides may be gone before it is hidden, as sockets of others come and go. Then nothing was
/// started, and it can be tried again.
const ATTEMPTS: usize = 3;

/// What to start. Standard input is empty unless something else is said: a child that waits for a
/// person would wait for ever.
#[derive(Debug, Clone)]
pub struct Spec {
    pub program: PathBuf,
    pub arguments: Vec<OsString>,
    pub directory: PathBuf,
    /// Set on top of our own environment.
    pub environment: BTreeMap<String, String>,
    /// Variables of ours that the child must not see, beside those that no child sees.
    pub withheld: Vec<String>,
    /// Variables that it sees although their names say that they are secret.
    pub passed: Vec<String>,
    sandbox: Option<Arc<Sandbox>>,
    input: Input,
    separate_errors: bool,
}

#[derive(Debug, Clone)]
enum Input {
    Empty,
    /// All that it can read.
    Bytes(Vec<u8>),
    /// What is written to [`Child::input`], until that is dropped.
    Open,
    /// A terminal of its own, for all three streams.
    Terminal(TerminalSize),
}

/// Characters that a terminal shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TerminalSize {
    pub columns: u16,
    pub rows: u16,
}

/// What nearly every program was made to fit into.
impl Default for TerminalSize {
    fn default() -> Self {
        Self { columns: 80, rows: 24 }
    }
}

#[derive(Debug, thiserror::Error)]
#[error("cannot start {program} in {directory}: {source}")]
pub struct SpawnError {
    program: String,
    directory: String,
    source: io::Error,
}

/// How a child ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    Exit(i32),
    Signal(i32),
}

/// A running child. Dropping it ends its whole group.
pub struct Child {
    child: tokio::process::Child,
    input: Option<pipe::Sender>,
    output: Option<pipe::Receiver>,
    errors: Option<pipe::Receiver>,
    /// Ends by itself once the child has read everything or closed its end.
    feeding: Option<JoinHandle<()>>,
    group: i32,
    /// By which what it starts is known.
    mark: String,
    ended: Option<Ended>,
    reach: Reach,
    guard: Option<Arc<Guard>>,
    /// What it changed although it was protected.
    put_back: PutBack,
    /// Lives as long as the child.
    _cell: Option<Cell>,
}

impl Spec {
    pub fn new(program: impl Into<PathBuf>, directory: impl Into<PathBuf>) -> Self {
        Self {
            program: program.into(),
            arguments: Vec::new(),
            directory: directory.into(),
            environment: BTreeMap::new(),
            withheld: Vec::new(),
            passed: Vec::new(),
            sandbox: None,
            input: Input::Empty,
            separate_errors: false,
        }
    }

    pub fn arg(mut self, argument: impl Into<OsString>) -> Self {
        self.arguments.push(argument.into());
        self
    }

    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.environment.insert(name.to_owned(), value.to_owned());
        self
    }

    /// What it reads on standard input, until the end.
    pub fn stdin(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.input = Input::Bytes(bytes.into());
        self
    }

    /// It reads what is written to [`Child::input`].
    pub fn open_input(mut self) -> Self {
        self.input = Input::Open;
        self
    }

    /// It gets a terminal of its own; what is typed goes to [`Child::input`].
    pub fn terminal(mut self, size: TerminalSize) -> Self {
        self.input = Input::Terminal(size);
        self
    }

    /// It runs inside this sandbox. Where that cannot be, it does not run at all.
    pub fn fenced(mut self, sandbox: Arc<Sandbox>) -> Self {
        self.sandbox = Some(sandbox);
        self
    }

    /// The same outside any sandbox.
    pub fn unfenced(mut self) -> Self {
        self.sandbox = None;
        self
    }

    pub fn is_fenced(&self) -> bool {
        self.sandbox.is_some()
    }

    /// It runs inside the sandbox that is found, if there is one.
    pub fn fenced_by(self, find: Option<&crate::sandbox::Find>) -> Result<Self, String> {
        match find.map(crate::sandbox::Find::find).transpose()?.flatten() {
            Some(sandbox) => Ok(self.fenced(sandbox)),
            None => Ok(self),
        }
    }

    /// Standard error goes to [`Child::errors`] instead of into the output.
    pub fn separate_errors(mut self) -> Self {
        self.separate_errors = true;
        self
    }

    /// For a child that is talked with: [`Child::input`] stays open, and what it says is not mixed
    /// with its errors.
    pub fn conversation(self) -> Self {
        self.open_input().separate_errors()
    }

    /// Starts it. The death signal is tied to the thread that calls this, so it must be called on
    /// a thread that lives as long as the program: the runtime's own, never a blocking-pool thread.
    pub fn spawn(&self) -> Result<Child, SpawnError> {
        for _ in 1..ATTEMPTS {
            if let (child, true) = self.start()? {
                return Ok(child);
            }
        }
        self.start().map(|(child, _)| child)
    }

    /// Also whether it has begun: its sandbox may have ended before.
    fn start(&self) -> Result<(Child, bool), SpawnError> {
        registry::prepare();
        let parent = std::process::id().cast_signed();
        let failed = |source| SpawnError {
            program: self.program.display().to_string(),
            directory: self.directory.display().to_string(),
            source,
        };
        let prepared = self.sandbox.as_ref().map(|sandbox| sandbox.prepare(&self.directory));
        let mut cell = prepared.transpose().map_err(failed)?;
        let wrapper = cell.as_mut().and_then(|cell| cell.wrapper.take());
        let stays = cell.as_ref().is_some_and(|cell| cell.stays);
        let reach = if stays { Reach::Inside } else { Reach::Whole };
        let mut command = match wrapper {
            None => Command::new(&self.program),
            Some((wrapper, arguments)) => {
                let mut command = Command::new(wrapper);
                command.args(arguments).arg(&self.program);
                command
            }
        };
        command.args(&self.arguments).current_dir(&self.directory);
        self.set_environment(&mut command, cell.as_ref());
        let mark = registry::next_mark();
        command.env(MARK_VARIABLE, &mark);
        let has_terminal = matches!(self.input, Input::Terminal(_));
        let enter = cell.as_mut().map(|cell| std::mem::take(&mut cell.enter)).unwrap_or_default();
        let enter = move || {
            sys::become_own_session(parent, has_terminal)?;
            enter.apply()
        };
        // SAFETY: the hook makes async-signal-safe system calls only, on memory that is there.
        unsafe { command.pre_exec(enter) };
        let streams = self.connect(&mut command).map_err(failed)?;
        let mut child = command.spawn().map_err(failed)?;
        // Our own copies of the child's ends: while they are open, its output has no end.
        drop(command);
        // A child is the leader of the group that `setsid` made. It has an id until it is waited for.
        let group = child.id().map_or(0, u32::cast_signed);
        let guard = cell.as_mut().and_then(|cell| cell.guard.take()).map(Arc::new);
        registry::add(group, guard.clone());
        let feeding = match (child.stdin.take(), &self.input) {
            (Some(stdin), Input::Bytes(bytes)) => Some(tokio::spawn(feed(stdin, bytes.clone()))),
            _ => None,
        };
        let Streams { input, output, errors } = streams;
        #[cfg(target_os = "linux")]
        let meeting = cell.as_mut().and_then(|cell| cell.meeting.take());
        let child = Child {
            child,
            input,
            output: Some(output),
            errors,
            feeding,
            group,
            mark,
            ended: None,
            reach,
            guard,
            put_back: PutBack::default(),
            _cell: cell,
        };
        // A few milliseconds, in which the child would not have begun either. One that must not begin
        // is ended when it is dropped.
        #[cfg(target_os = "linux")]
        let begun = meeting.map_or(Ok(true), |meeting| meeting.meet().map_err(failed))?;
        #[cfg(not(target_os = "linux"))]
        let begun = true;
        Ok((child, begun))
    }

    /// Ours, without what no child sees, then what was set for this one.
    fn set_environment(&self, command: &mut Command, cell: Option<&Cell>) {
        for name in environment::withheld(&self.passed, cell.is_some()) {
            command.env_remove(name);
        }
        for name in self.withheld.iter().filter(|name| !self.passed.contains(name)) {
            command.env_remove(name);
        }
        command.envs(&self.environment);
        if let Some(cell) = cell {
            command.envs(cell.environment.iter().map(|(name, value)| (name, value)));
        }
        command.env(COOKIE_VARIABLE, COOKIE.as_str());
    }

    /// Gives the child its three streams and keeps our ends.
    fn connect(&self, command: &mut Command) -> io::Result<Streams> {
        let input = match &self.input {
            Input::Terminal(size) => {
                let Terminal { keyboard, screen, other_end } = Terminal::open(*size)?;
                command.stdin(other_end.try_clone()?).stdout(other_end.try_clone()?);
                command.stderr(other_end);
                return Ok(Streams { input: Some(keyboard), output: screen, errors: None });
            }
            Input::Open => {
                let (reader, writer) = io::pipe()?;
                command.stdin(reader);
                Some(pipe::Sender::from_owned_fd(writer.into())?)
            }
            Input::Bytes(_) => {
                command.stdin(Stdio::piped());
                None
            }
            Input::Empty => {
                command.stdin(Stdio::null());
                None
            }
        };
        let (output, writer) = new_pipe()?;
        let errors = if self.separate_errors {
            let (errors, error_writer) = new_pipe()?;
            command.stderr(error_writer);
            Some(errors)
        } else {
            // One pipe for both, so that what is written stays in the order in which it was written.
            command.stderr(writer.try_clone()?);
            None
        };
        command.stdout(writer);
        Ok(Streams { input, output, errors })
    }
}

/// Our ends.
struct Streams {
    input: Option<pipe::Sender>,
    output: pipe::Receiver,
    errors: Option<pipe::Receiver>,
}

fn new_pipe() -> io::Result<(pipe::Receiver, io::PipeWriter)> {
    let (reader, writer) = io::pipe()?;
    Ok((pipe::Receiver::from_owned_fd(reader.into())?, writer))
}

/// Beside everything else, because a child may write before it reads, or never read at all.
async fn feed(mut stdin: ChildStdin, bytes: Vec<u8>) {
    // A child that does not want to hear it all is no fault (this process ignores SIGPIPE).
    stdin.write_all(&bytes).await.ok();
}

impl Child {
    /// What it reads, with [`Spec::open_input`] or [`Spec::terminal`].
    pub fn input(&mut self) -> Option<pipe::Sender> {
        self.input.take()
    }

    /// What it writes to standard output, and to standard error unless that was separated. It ends
    /// when all writers are gone, which may be later than the child if it left something in the
    /// background.
    pub fn output(&mut self) -> Option<pipe::Receiver> {
        self.output.take()
    }

    /// What it writes to standard error, with [`Spec::separate_errors`].
    pub fn errors(&mut self) -> Option<pipe::Receiver> {
        self.errors.take()
    }

    /// Waits for the child itself; processes that it left in the background may go on.
    pub async fn wait(&mut self) -> Ended {
        if let Some(ended) = self.ended {
            return ended;
        }
        let ended = match self.child.wait().await {
            Ok(status) => {
                use std::os::unix::process::ExitStatusExt;
                match (status.code(), status.signal()) {
                    (Some(code), _) => Ended::Exit(code),
                    (None, signal) => Ended::Signal(signal.unwrap_or(libc::SIGKILL)),
                }
            }
            // Somebody else took its status: it is gone, how is not known.
            Err(_) => Ended::Signal(libc::SIGKILL),
        };
        // Whoever stops waiting here waits again.
        self.let_go().await;
        self.ended = Some(ended);
        self.settle();
        ended
    }

    /// The program around a command goes a moment later than the command.
    async fn let_go(&self) {
        for step in 0..GOING_STEPS {
            if self.reach == Reach::Inside {
                registry::reap_orphans();
            }
            // Looking through all processes takes longer than it usually takes to go.
            let is_going = self.reach == Reach::Inside
                && sys::group_exists(self.group)
                && (step < GOING_BLINDLY
                    || !registry::has_more_than_a_wrapper(self.group, self.reach));
            if !is_going {
                return;
            }
            tokio::time::sleep(GOING_STEP).await;
        }
    }

    /// Puts right what it changed, for good once nothing of it is left.
    fn settle(&mut self) {
        let Some(guard) = self.guard.take() else { return registry::sweep() };
        let is_over = registry::release(self.group, &guard);
        self.put_back.add(guard.restore());
        if !is_over {
            self.guard = Some(guard);
        }
    }

    /// What became of protected files that it had changed.
    pub fn put_back(&self) -> &PutBack {
        &self.put_back
    }

    /// Whether processes of its group go on after it.
    pub fn left_something(&self) -> bool {
        self.ended.is_some()
            && sys::group_exists(self.group)
            && registry::has_more_than_a_wrapper(self.group, self.reach)
    }

    /// Takes what is still written and drops it. Without a reader, a process left in the background
    /// would die of its next word. The reading ends with the last writer, at the latest when this
    /// program ends and ends them all.
    pub fn keep_reading(&self, mut output: pipe::Receiver) {
        tokio::spawn(async move {
            let mut sink = [0; 4096];
            while output.read(&mut sink).await.is_ok_and(|count| count > 0) {}
        });
    }

    /// Ends the whole group at once, and whatever left it.
    pub async fn kill(&mut self) -> Ended {
        registry::signal_session(self.group, libc::SIGKILL, Reach::Whole);
        let ended = self.wait().await;
        registry::kill_strays(self.group, &self.mark);
        self.settle();
        ended
    }

    /// Ends the whole group, and whatever left it: SIGTERM, a little time, SIGKILL.
    pub async fn end(&mut self) -> Ended {
        registry::signal_session(self.group, libc::SIGTERM, self.reach);
        registry::signal_strays(self.group, &self.mark, libc::SIGTERM);
        if tokio::time::timeout(TERM_GRACE, self.wait()).await.is_err() {
            self.kill_all();
        }
        let ended = self.wait().await;
        // The leader may have ended while others of its group ignore SIGTERM.
        self.kill_all();
        self.settle();
        ended
    }

    fn kill_all(&self) {
        registry::signal_session(self.group, libc::SIGKILL, Reach::Whole);
        registry::kill_strays(self.group, &self.mark);
    }

    /// What can still be ended when the child itself has ended.
    pub fn remains(&self) -> Remains {
        Remains { group: self.group, mark: self.mark.clone() }
    }
}

/// What a child has left in the background.
#[derive(Debug, Clone)]
pub struct Remains {
    group: i32,
    mark: String,
}

impl Remains {
    /// Ends it at once.
    pub fn end(&self) {
        // The number of a group that is gone may be somebody else's.
        if registry::is_known(self.group) {
            registry::signal_session(self.group, libc::SIGKILL, Reach::Whole);
        }
        registry::kill_strays(self.group, &self.mark);
        registry::sweep();
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if self.ended.is_none() {
            self.kill_all();
        }
        // Something left in the background may hold the other end without ever reading.
        if let Some(feeding) = &self.feeding {
            feeding.abort();
        }
    }
}

#[cfg(test)]
#[path = "child_tests.rs"]
mod tests;
