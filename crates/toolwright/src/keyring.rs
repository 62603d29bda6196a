//! The system's keyring, through the command that comes with it: `secret-tool` for the Secret Service
//! of Linux desktops, `security` on macOS. A key goes in by standard input, never as an argument that
//! others could read in the list of processes.

use std::path::PathBuf;
use std::time::Duration;

use tokio::io::AsyncReadExt;
use toolwright_proc::{Ended, Spec};

/// How long an answer may take. A locked keyring asks its owner; one that hangs must not hang us.
const DEADLINE: Duration = Duration::from_secs(5);

/// Bytes of an answer; a key is some hundred at most.
const ANSWER_CAP_BYTES: u64 = 16 << 10;

/// What our entries are filed under.
const SERVICE: &str = "toolwright";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    SecretService,
    MacOs,
}

#[derive(Debug, Clone)]
pub struct Keyring {
    kind: Kind,
    program: PathBuf,
    deadline: Duration,
}

#[derive(Debug, thiserror::Error)]
pub enum KeyringError {
    #[error("the system's keyring did not answer within {} s", .0.as_secs_f32())]
    TooSlow(Duration),
    #[error("the system's keyring refused ({program} ended with {how})")]
    Refused { program: String, how: String },
    #[error("the system's keyring cannot be used: {0}")]
    Unusable(String),
    #[error("the system's keyring has no key for {0}")]
    Empty(String),
}

impl Keyring {
    /// The one of this machine, if there is one that could answer: a command alone is not enough where
    /// no session bus runs. `TOOLWRIGHT_KEYRING=off` keeps keys in the file.
    pub fn find(env: &dyn Fn(&str) -> Option<String>) -> Option<Self> {
        if env("TOOLWRIGHT_KEYRING").as_deref() == Some("off") {
            return None;
        }
        let on_path = |name: &str| {
            let path = env("PATH")?;
            std::env::split_paths(&path).map(|folder| folder.join(name)).find(|p| p.is_file())
        };
        let (kind, program) = if cfg!(target_os = "macos") {
            (Kind::MacOs, on_path("security")?)
        } else {
            let bus = env("DBUS_SESSION_BUS_ADDRESS").is_some_and(|address| !address.is_empty());
            let socket = || env("XDG_RUNTIME_DIR").map(|folder| PathBuf::from(folder).join("bus"));
            if !bus && !socket().is_some_and(|socket| socket.exists()) {
                return None;
            }
            (Kind::SecretService, on_path("secret-tool")?)
        };
        Some(Self { kind, program, deadline: DEADLINE })
    }

    pub async fn store(&self, provider: &str, key: &str) -> Result<(), KeyringError> {
        let (arguments, input) = match self.kind {
            Kind::SecretService => {
                let label = format!("Toolwright key for {provider}");
                let words = ["store", "--label", &label, "service", SERVICE, "provider", provider];
                (owned(&words), key.to_owned())
            }
            Kind::MacOs => {
                // Its own command language, on standard input; in hexadecimal nothing needs quotes.
                let hex: String = key.bytes().map(|byte| format!("{byte:02x}")).collect();
                let line = format!("add-generic-password -U -s {SERVICE} -a {provider} -X {hex}\n");
                (owned(&["-i"]), line)
            }
        };
        self.run(arguments, input).await.map(drop)
    }

    pub async fn look_up(&self, provider: &str) -> Result<String, KeyringError> {
        let arguments = match self.kind {
            Kind::SecretService => owned(&["lookup", "service", SERVICE, "provider", provider]),
            Kind::MacOs => owned(&["find-generic-password", "-s", SERVICE, "-a", provider, "-w"]),
        };
        let answer = self.run(arguments, String::new()).await?;
        match answer.trim() {
            "" => Err(KeyringError::Empty(provider.to_owned())),
            key => Ok(key.to_owned()),
        }
    }

    pub async fn remove(&self, provider: &str) -> Result<(), KeyringError> {
        let arguments = match self.kind {
            Kind::SecretService => owned(&["clear", "service", SERVICE, "provider", provider]),
            Kind::MacOs => owned(&["delete-generic-password", "-s", SERVICE, "-a", provider]),
        };
        self.run(arguments, String::new()).await.map(drop)
    }

    async fn run(&self, arguments: Vec<String>, input: String) -> Result<String, KeyringError> {
        // What is said on standard error (warnings of a toolkit) must not become part of a key.
        let mut spec = Spec::new(&self.program, "/").stdin(input).separate_errors();
        spec.arguments.extend(arguments.into_iter().map(Into::into));
        let unusable = |error: &dyn std::fmt::Display| KeyringError::Unusable(error.to_string());
        let mut child = spec.spawn().map_err(|e| unusable(&e))?;
        let output = child.output();
        let answer = async {
            let mut text = String::new();
            if let Some(output) = output {
                output
                    .take(ANSWER_CAP_BYTES)
                    .read_to_string(&mut text)
                    .await
                    .map_err(|e| unusable(&e))?;
            }
            match child.wait().await {
                Ended::Exit(0) => Ok(text),
                Ended::Exit(code) => Err(self.refused(format!("exit status {code}"))),
                Ended::Signal(signal) => Err(self.refused(format!("signal {signal}"))),
            }
        };
        // Dropping the child ends it.
        tokio::time::timeout(self.deadline, answer)
            .await
            .unwrap_or(Err(KeyringError::TooSlow(self.deadline)))
    }

    fn refused(&self, how: String) -> KeyringError {
        KeyringError::Refused { program: self.program.display().to_string(), how }
    }
}

fn owned(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// Stands in for a key that is in the keyring until it is needed. No variable can hold such a text.
pub(crate) fn placeholder(provider: &str) -> String {
    format!("\0keyring {provider}")
}

/// The provider under which a placeholder's key is kept.
pub(crate) fn behind_placeholder(key: &str) -> Option<&str> {
    key.strip_prefix("\0keyring ")
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn fake(script: &str) -> (tempfile::TempDir, Keyring) {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("secret-tool");
        std::fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
        let deadline = Duration::from_millis(200);
        (folder, Keyring { kind: Kind::SecretService, program, deadline })
    }

    #[tokio::test]
    async fn a_keyring_that_hangs_is_given_up() {
        let (_folder, ring) = fake("exec sleep 1000");
        let error = ring.look_up("anthropic").await.unwrap_err();
        assert!(matches!(error, KeyringError::TooSlow(_)), "{error}");
    }

    #[tokio::test]
    async fn warnings_are_no_part_of_a_key_and_an_empty_answer_is_none() {
        let (_folder, mut ring) = fake("echo 'a toolkit warns' >&2; printf sk-1");
        ring.deadline = DEADLINE;
        assert_eq!(ring.look_up("anthropic").await.unwrap(), "sk-1");
        let (_folder, mut ring) = fake("exit 0");
        ring.deadline = DEADLINE;
        assert!(matches!(ring.look_up("x").await, Err(KeyringError::Empty(_))));
    }

    #[tokio::test]
    async fn a_key_is_never_an_argument_and_may_hold_any_character() {
        let (folder, mut ring) =
            fake(r#"cd "$(dirname "$0")"; echo "$@" > arguments; cat > input"#);
        ring.deadline = DEADLINE;
        let key = "sk-\"quoted\" \\ and more";
        for kind in [Kind::SecretService, Kind::MacOs] {
            ring.kind = kind;
            ring.store("anthropic", key).await.unwrap();
            let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
            assert!(!read("arguments").contains("quoted"), "{kind:?}");
            match kind {
                Kind::SecretService => assert_eq!(read("input"), key),
                Kind::MacOs => assert!(read("input").contains("-X 736b2d22"), "{}", read("input")),
            }
        }
    }

    #[test]
    fn without_a_session_bus_there_is_no_keyring() {
        let (folder, _) = fake("exit 0");
        let path = folder.path().display().to_string();
        let runtime = tempfile::tempdir().unwrap();
        let found = |bus: Option<&str>, off: bool| {
            let env = |name: &str| match name {
                "PATH" => Some(path.clone()),
                "DBUS_SESSION_BUS_ADDRESS" => bus.map(str::to_owned),
                "XDG_RUNTIME_DIR" => Some(runtime.path().display().to_string()),
                "TOOLWRIGHT_KEYRING" => off.then(|| "off".to_owned()),
                _ => None,
            };
            Keyring::find(&env).is_some()
        };
        if cfg!(target_os = "linux") {
            assert!(found(Some("unix:path=/x"), false));
            assert!(!found(None, false) && !found(Some(""), false));
        }
        assert!(!found(Some("unix:path=/x"), true));
    }
}
