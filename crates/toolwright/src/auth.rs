//! Keys that a user has given us to keep: in the system's keyring where there is one, else in a file
//! that only the user can read. The file says in both cases that there is a key.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};
use toolwright_config::StateFile;

use crate::keyring::{Keyring, KeyringError};

/// The store. Reading one that is not there gives nothing; a broken one is an error, so that no key
/// is lost by writing over it. In OpenCode's form: `{"anthropic": {"type": "api", "key": "…"}}`; entries
/// of other kinds are left as they are.
#[derive(Debug, Clone)]
pub struct Credentials {
    file: StateFile,
}

/// Where a key is.
#[derive(Clone, PartialEq, Eq)]
pub enum Kept {
    InFile(String),
    InKeyring,
}

impl Credentials {
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { file: StateFile::new(path) }
    }

    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// What there is by provider. The keyring is not looked at.
    pub fn all(&self) -> io::Result<BTreeMap<String, Kept>> {
        let all: Map<String, Value> = self.file.read()?;
        Ok(all.into_iter().filter_map(|(id, entry)| Some((id, kept(&entry)?))).collect())
    }

    pub fn get(&self, provider: &str) -> io::Result<Option<Kept>> {
        Ok(self.all()?.remove(provider))
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
        self.file.change(|all: &mut Map<String, Value>| {
            all.insert(provider.to_owned(), entry);
        })?;
        Ok((kept, problem))
    }

    /// Forgets a key. Where it was, if there was one; the keyring's own entry is the caller's matter.
    pub fn forget(&self, provider: &str) -> io::Result<Option<Kept>> {
        // Where there is none, nothing is written.
        if self.get(provider)?.is_none() {
            return Ok(None);
        }
        let taken = self.file.change(|all: &mut Map<String, Value>| all.shift_remove(provider))?;
        Ok(taken.as_ref().and_then(kept))
    }
}

/// The type of an entry whose key is in the keyring.
const IN_KEYRING: &str = "keyring";

fn kept(entry: &Value) -> Option<Kept> {
    match entry.get("type").and_then(Value::as_str) {
        Some(IN_KEYRING) => Some(Kept::InKeyring),
        _ => entry.get("key").and_then(Value::as_str).map(|key| Kept::InFile(key.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_that_are_kept_at_the_same_time_are_all_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("auth.json");
        std::fs::write(&path, r#"{"other":{"type":"oauth","refresh":"r"}}"#).unwrap();
        std::thread::scope(|scope| {
            for n in 0..16 {
                let store = Credentials::new(&path);
                scope.spawn(move || {
                    let (id, key) = (format!("p{n}"), format!("k{n}"));
                    let keeping = store.keep(&id, &key, None);
                    let kept = futures_util::FutureExt::now_or_never(keeping).unwrap();
                    assert!(kept.is_ok());
                });
            }
        });
        let store = Credentials::new(&path);
        assert_eq!(store.all().unwrap().len(), 16);
        assert!(store.forget("p3").unwrap().is_some() && store.forget("p3").unwrap().is_none());
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.contains("refresh") && !text.contains("\"k3\""), "{text}");
        std::fs::write(&path, "{").unwrap();
        assert!(store.get("p1").is_err(), "a broken store is not an empty one");
        assert!(store.forget("p1").is_err());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "{");
    }
}
