//! Starting a child and looking after it until it has ended.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::pipe;
use tokio::process::{ChildStdin, Command};
use tokio::task::JoinHandle;

use crate::registry::{self, COOKIE, COOKIE_VARIABLE};
use crate::sys;

/// How long a group may take to end after SIGTERM before it gets SIGKILL.
const TERM_GRACE: Duration = Duration::from_secs(2);

/// What to start. Standard input is empty unless bytes are given: a child that waits for a person
/// would wait for ever.
#[derive(Debug, Clone)]
pub struct Spec {
    pub program: PathBuf,
    pub arguments: Vec<OsString>,
    pub directory: PathBuf,
    /// Set on top of our own environment.
    pub environment: BTreeMap<String, String>,
    /// Variables of ours that the child must not see.
    pub withheld: Vec<String>,
    input: Input,
    separate_errors: bool,
}

/// What it can read.
#[derive(Debug, Clone)]
enum Input {
    Nothing,
    /// All that it can read, at once.
    Bytes(Vec<u8>),
    /// Whatever the owner writes to [`Child::input`].
    Open,
}

#[derive(Debug, thiserror::Error)]
#[error("cannot start {program} in {directory}: {source}")]
pub struct SpawnError {
    program: String,
    directory: String,
    source: std::io::Error,
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
    input: Option<ChildStdin>,
    output: Option<pipe::Receiver>,
    errors: Option<pipe::Receiver>,
    /// Ends by itself once the child has read everything or closed its end.
    feeding: Option<JoinHandle<()>>,
    group: i32,
    ended: Option<Ended>,
}

impl Spec {
    pub fn new(program: impl Into<PathBuf>, directory: impl Into<PathBuf>) -> Self {
        Self {
            program: program.into(),
            arguments: Vec::new(),
            directory: directory.into(),
            environment: BTreeMap::new(),
            withheld: Vec::new(),
            input: Input::Nothing,
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

    /// Standard error goes to [`Child::errors`] instead of into the output.
    pub fn separate_errors(mut self) -> Self {
        self.separate_errors = true;
        self
    }

    /// For a child that is talked with: [`Child::input`] stays open, and what it says is not mixed
    /// with its errors.
    pub fn conversation(mut self) -> Self {
        self.input = Input::Open;
        self.separate_errors()
    }

    /// Starts it. The death signal is tied to the thread that calls this, so it must be called on
    /// a thread that lives as long as the program: the runtime's own, never a blocking-pool thread.
    pub fn spawn(&self) -> Result<Child, SpawnError> {
        registry::prepare();
        let parent = std::process::id().cast_signed();
        let mut command = Command::new(&self.program);
        command
            .args(&self.arguments)
            .current_dir(&self.directory)
            .envs(&self.environment)
            .env(COOKIE_VARIABLE, COOKIE.as_str())
            .stdin(match self.input {
                Input::Nothing => Stdio::null(),
                Input::Bytes(_) | Input::Open => Stdio::piped(),
            });
        for name in &self.withheld {
            command.env_remove(name);
        }
        // SAFETY: the hook makes async-signal-safe system calls only.
        unsafe { command.pre_exec(move || sys::become_own_session(parent)) };
        let failed = |source| SpawnError {
            program: self.program.display().to_string(),
            directory: self.directory.display().to_string(),
            source,
        };
        let (output, writer) = new_pipe().map_err(failed)?;
        let errors = if self.separate_errors {
            let (errors, error_writer) = new_pipe().map_err(failed)?;
            command.stderr(error_writer);
            Some(errors)
        } else {
            // One pipe for both, so that what is written stays in the order in which it was written.
            command.stderr(writer.try_clone().map_err(failed)?);
            None
        };
        command.stdout(writer);
        let mut child = command.spawn().map_err(failed)?;
        // A child is the leader of the group that `setsid` made. It has an id until it is waited for.
        let group = child.id().map_or(0, u32::cast_signed);
        registry::add(group);
        let (input, feeding) = match (child.stdin.take(), &self.input) {
            (Some(stdin), Input::Bytes(bytes)) => {
                (None, Some(tokio::spawn(feed(stdin, bytes.clone()))))
            }
            (stdin, _) => (stdin, None),
        };
        Ok(Child { child, input, output: Some(output), errors, feeding, group, ended: None })
    }
}

fn new_pipe() -> std::io::Result<(pipe::Receiver, std::io::PipeWriter)> {
    let (reader, writer) = std::io::pipe()?;
    Ok((pipe::Receiver::from_owned_fd(reader.into())?, writer))
}

/// Beside everything else, because a child may write before it reads, or never read at all.
async fn feed(mut stdin: ChildStdin, bytes: Vec<u8>) {
    // A child that does not want to hear it all is no fault (this process ignores SIGPIPE).
    stdin.write_all(&bytes).await.ok();
}

impl Child {
    /// Where to write what it reads, with [`Spec::conversation`]. Dropping it ends the input.
    pub fn input(&mut self) -> Option<ChildStdin> {
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
        self.ended = Some(ended);
        registry::sweep();
        ended
    }

    /// Whether processes of its group go on after it.
    pub fn left_something(&self) -> bool {
        self.ended.is_some() && sys::group_exists(self.group)
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

    /// Ends the whole group at once.
    pub async fn kill(&mut self) -> Ended {
        sys::signal_group(self.group, libc::SIGKILL);
        self.wait().await
    }

    /// Ends the whole group: SIGTERM, a little time, SIGKILL.
    pub async fn end(&mut self) -> Ended {
        sys::signal_group(self.group, libc::SIGTERM);
        if tokio::time::timeout(TERM_GRACE, self.wait()).await.is_err() {
            sys::signal_group(self.group, libc::SIGKILL);
        }
        let ended = self.wait().await;
        // The leader may have ended while others of its group ignore SIGTERM.
        sys::signal_group(self.group, libc::SIGKILL);
        registry::sweep();
        ended
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if self.ended.is_none() {
            sys::signal_group(self.group, libc::SIGKILL);
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
