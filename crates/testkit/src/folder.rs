//! A workspace and a home of a test's own.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::child::Child;
use crate::server::{ModelServer, Wire};

pub struct Folder {
    root: tempfile::TempDir,
    environment: Vec<(String, String)>,
    binary: PathBuf,
}

impl Folder {
    /// `binary` is the built `tw`: `env!("CARGO_BIN_EXE_tw")`.
    pub fn new(binary: &str) -> Self {
        let root =
            tempfile::Builder::new().prefix("tw-test-").tempdir().expect("a temporary folder");
        for name in ["work", "home", "data"] {
            std::fs::create_dir(root.path().join(name)).expect("a folder");
        }
        Self { root, environment: Vec::new(), binary: PathBuf::from(binary) }
    }

    /// With a file in the workspace.
    pub fn file(self, path: &str, text: &str) -> Self {
        self.write(path, text);
        self
    }

    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Uses this server for the wire's provider.
    pub fn with_model(self, server: &ModelServer, wire: Wire) -> Self {
        let (url, key) = match wire {
            Wire::Anthropic => ("ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY"),
            Wire::Chat | Wire::Responses => ("OPENAI_BASE_URL", "OPENAI_API_KEY"),
            Wire::Gemini => ("GEMINI_BASE_URL", "GEMINI_API_KEY"),
        };
        self.env(url, &server.url()).env(key, "test-key")
    }

    pub fn root(&self) -> &Path {
        self.root.path()
    }

    pub fn work(&self) -> PathBuf {
        self.root.path().join("work")
    }

    pub fn write(&self, path: &str, text: &str) {
        let path = self.work().join(path);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("folders");
        std::fs::write(path, text).expect("a file");
    }

    pub fn read(&self, path: &str) -> String {
        std::fs::read_to_string(self.work().join(path)).unwrap_or_default()
    }

    /// A file that is no text.
    pub fn write_bytes(&self, path: &str, bytes: &[u8]) {
        std::fs::write(self.work().join(path), bytes).expect("a file");
    }

    /// The user's own configuration.
    pub fn user_config(self, text: &str) -> Self {
        let folder = self.root.path().join("home/.config/toolwright");
        std::fs::create_dir_all(&folder).expect("folders");
        std::fs::write(folder.join("toolwright.json"), text).expect("a file");
        self
    }

    /// Every session file, oldest first.
    pub fn session_files(&self) -> Vec<PathBuf> {
        let projects = std::fs::read_dir(self.root.path().join("data/toolwright/sessions"));
        let projects = projects.into_iter().flatten().flatten();
        let mut found: Vec<PathBuf> = projects
            .flat_map(|p| std::fs::read_dir(p.path()).into_iter().flatten().flatten())
            .map(|e| e.path())
            .filter(|p| p.extension().is_some_and(|x| x == "jsonl"))
            .collect();
        found.sort();
        found
    }

    pub fn session_text(&self) -> String {
        let file = self.session_files().pop();
        file.map(|f| std::fs::read_to_string(f).unwrap_or_default()).unwrap_or_default()
    }

    /// `tw` in the workspace with an environment that holds nothing of the machine's but PATH.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.binary);
        command.args(arguments);
        self.settle(&mut command);
        command
    }

    /// Gives a command (of another program too) this folder's environment.
    pub fn settle(&self, command: &mut Command) {
        let root = self.root.path();
        command
            .current_dir(self.work())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", root.join("home"))
            .env("XDG_DATA_HOME", root.join("data"))
            .env("TOOLWRIGHT_MANAGED_DIR", root.join("etc"))
            .env("TOOLWRIGHT_LOCAL_SERVERS", "off")
            .env("TOOLWRIGHT_SHELL_LOGIN", "off")
            // What is asked about must not depend on what this machine can hold; tests of the sandbox
            // set this again.
            .env("TOOLWRIGHT_SANDBOX", "off")
            .env("LANG", "C.UTF-8")
            .envs(self.environment.iter().map(|(n, v)| (n, v)))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
    }

    /// Runs to the end.
    pub fn tw(&self, arguments: &[&str]) -> crate::Finished {
        self.start(arguments).wait()
    }

    /// As [`Self::start`], with a standard input that can be written to.
    pub fn converse(&self, arguments: &[&str]) -> Child {
        let mut command = self.command(arguments);
        command.stdin(Stdio::piped());
        Child::spawn(command)
    }

    pub fn start(&self, arguments: &[&str]) -> Child {
        Child::spawn(self.command(arguments))
    }
}
