//! Keys that a user has given us to keep: in the system's keyring where there is one, else in a file
//! that only the user can read. The file says in both cases that there is a key.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

use serde_json::{Map, Value, json};

use crate::keyring::{Keyring, KeyringError};

/// The store. Reading one that is not there gives nothing; a broken one is an error, so that no key
/// is lost by writing over it.
#[derive(Debug, Clone)]
pub struct Credentials {
    path: PathBuf,
}

/// Where a key is.
#[derive(Clone, PartialEq, Eq)]
pub enum Kept {
    InFile(String),
    InKeyring,
}

impl Credentials {
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    pub fn path(&self) -> &PathBuf {
        &self.path
    }

    /// What there is by provider. The keyring is not looked at.
    pub fn all(&self) -> io::Result<BTreeMap<String, Kept>> {
        let kept = |(id, entry): (String, Value)| {
            let key = entry.get("key").and_then(Value::as_str);
            match entry.get("type").and_then(Value::as_str) {
                Some(IN_KEYRING) => Some((id, Kept::InKeyring)),
                _ => key.map(|key| (id, Kept::InFile(key.to_owned()))),
            }
        };
        Ok(self.read()?.into_iter().filter_map(kept).collect())
    }

    pub fn get(&self, provider: &str) -> Option<Kept> {
        self.all().ok()?.remove(provider)
    }

    /// Keeps a key as safely as this machine can, and says why it is in the file if the keyring that
    /// there is did not take it.
    pub async fn keep(
        &self,
        provider: &str,
        key: &str,
        keyring: Option<&Keyring>,
    ) -> io::Result<(Kept, Option<KeyringError>)> {
        let in_file = || Kept::InFile(key.to_owned());
        let (kept, problem) = match keyring {
            None => (in_file(), None),
            Some(keyring) => match keyring.store(provider, key).await {
                Ok(()) => (Kept::InKeyring, None),
                Err(problem) => (in_file(), Some(problem)),
            },
        };
        let entry = match &kept {
            Kept::InFile(key) => json!({ "type": "api", "key": key }),
            Kept::InKeyring => json!({ "type": IN_KEYRING }),
        };
        let mut all = self.read()?;
        all.insert(provider.to_owned(), entry);
        self.write(&all)?;
        Ok((kept, problem))
    }

    /// Forgets a key. Where it was, if there was one; the keyring's own entry is the caller's matter.
    pub fn forget(&self, provider: &str) -> io::Result<Option<Kept>> {
        let kept = self.all()?.remove(provider);
        if kept.is_some() {
            let mut all = self.read()?;
            all.shift_remove(provider);
            self.write(&all)?;
        }
        Ok(kept)
    }

    /// In OpenCode's form: `{"anthropic": {"type": "api", "key": "…"}}`. Entries of other kinds are left
    /// as they are.
    fn read(&self) -> io::Result<Map<String, Value>> {
        match fs::read_to_string(&self.path) {
            Ok(text) => Ok(serde_json::from_str(&text)?),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Map::new()),
            Err(error) => Err(error),
        }
    }

    fn write(&self, all: &Map<String, Value>) -> io::Result<()> {
        if let Some(folder) = self.path.parent() {
            fs::create_dir_all(folder)?;
        }
        let beside = self.path.with_extension("json.new");
        // Private from the first byte on.
        let mut file = fs::OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&beside)?;
        file.write_all(serde_json::to_string_pretty(all)?.as_bytes())?;
        file.sync_all()?;
        fs::rename(&beside, &self.path)
    }
}

/// The type of an entry whose key is in the keyring.
const IN_KEYRING: &str = "keyring";
