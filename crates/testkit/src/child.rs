//! A running program whose output can be waited for.

use std::io::Read;
use std::process::Command;
use std::sync::{Arc, Mutex};

use crate::eventually;

pub struct Child {
    child: std::process::Child,
    stdout: Arc<Mutex<Vec<u8>>>,
    stderr: Arc<Mutex<Vec<u8>>>,
    readers: Vec<std::thread::JoinHandle<()>>,
}

/// How a program ended and what it said.
#[derive(Debug, Clone)]
pub struct Finished {
    /// `None` if a signal ended it.
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Finished {
    /// The lines of `--format json`.
    pub fn lines(&self) -> Vec<serde_json::Value> {
        let parse = |line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
        self.stdout.lines().map(parse).collect()
    }

    /// Fails the test with everything that is known.
    pub fn expect(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "stdout:\n{}\nstderr:\n{}", self.stdout, self.stderr);
        assert!(!self.stderr.contains("panicked"), "{}", self.stderr);
        self
    }
}

impl Child {
    pub fn spawn(mut command: Command) -> Self {
        let mut child = command.spawn().unwrap_or_else(|e| panic!("cannot start {command:?}: {e}"));
        let (stdout, stderr) = (Arc::default(), Arc::default());
        let readers = vec![
            collect(child.stdout.take().expect("piped"), &stdout),
            collect(child.stderr.take().expect("piped"), &stderr),
        ];
        Self { child, stdout, stderr, readers }
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Writes a line to standard input; see [`crate::Folder::converse`].
    pub fn say(&mut self, line: &str) {
        use std::io::Write;
        let input = self.child.stdin.as_mut().expect("an open standard input");
        writeln!(input, "{line}").and_then(|()| input.flush()).expect("somebody who listens");
    }

    /// Nothing more will be said.
    pub fn end_input(&mut self) {
        drop(self.child.stdin.take());
    }

    /// Waits until standard output contains `text`.
    pub fn wait_for(&self, text: &str) {
        eventually(&format!("{text:?} on standard output"), || {
            let so_far = self.stdout.lock().unwrap().clone();
            String::from_utf8_lossy(&so_far).contains(text).then_some(())
        });
    }

    /// The whole lines of `--format json` that were printed until now.
    pub fn lines_so_far(&self) -> Vec<serde_json::Value> {
        let so_far = self.stdout.lock().unwrap().clone();
        let text = String::from_utf8_lossy(&so_far);
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        let parse = |line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
        whole.lines().map(parse).collect()
    }

    /// Waits until standard error has a word that begins and ends like this, and gives it.
    pub fn wait_for_error(&self, start: &str, end: &str) -> String {
        eventually(&format!("{start}…{end} on standard error"), || {
            let so_far = self.stderr.lock().unwrap().clone();
            let text = String::from_utf8_lossy(&so_far).into_owned();
            // Only whole lines: the rest of a word may still be coming.
            let whole = &text[..=text.rfind('\n')?];
            whole
                .split_whitespace()
                .find(|word| word.starts_with(start) && word.ends_with(end))
                .map(str::to_owned)
        })
    }

    /// SIGKILL, and gone.
    pub fn kill(mut self) {
        self.child.kill().expect("a running process");
        self.child.wait().expect("its end");
    }

    /// As [`Self::signal`], to a program that may have come to its end.
    pub fn signal_if_alive(&self, name: &str) {
        // Its number is not given away before it was waited for.
        let kill = Command::new("kill").arg(format!("-{name}")).arg(self.id().to_string()).output();
        kill.expect("the command kill");
    }

    pub fn signal(&self, name: &str) {
        let status =
            Command::new("kill").arg(format!("-{name}")).arg(self.id().to_string()).status();
        assert!(status.is_ok_and(|s| s.success()), "kill -{name}");
    }

    pub fn wait(mut self) -> Finished {
        let code = eventually("the end of the program", || {
            self.child.try_wait().expect("a child").map(|status| status.code())
        });
        for reader in self.readers {
            reader.join().expect("its output");
        }
        let text =
            |bytes: &Mutex<Vec<u8>>| String::from_utf8_lossy(&bytes.lock().unwrap()).into_owned();
        Finished { code, stdout: text(&self.stdout), stderr: text(&self.stderr) }
    }
}

fn collect(
    mut from: impl Read + Send + 'static,
    into: &Arc<Mutex<Vec<u8>>>,
) -> std::thread::JoinHandle<()> {
    let into = Arc::clone(into);
    std::thread::spawn(move || {
        let mut buffer = [0; 8192];
        while let Ok(count) = from.read(&mut buffer) {
            if count == 0 {
                break;
            }
            into.lock().unwrap().extend_from_slice(&buffer[..count]);
        }
    })
}
