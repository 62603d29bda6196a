//! Keys that a user has given us to keep: a file that only the user can read.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

/// The store. Reading one that is not there gives nothing; a broken one is an error, so that no key
/// is lost by writing over it.
#[derive(Debug, Clone)]
pub struct Credentials {
    path: PathBuf,
}

impl Credentials {
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    pub fn path(&self) -> &PathBuf {
        &self.path
    }

    /// Keys by provider, in OpenCode's form: `{"anthropic": {"type": "api", "key": "…"}}`.
    pub fn all(&self) -> io::Result<BTreeMap<String, String>> {
        let text = match fs::read_to_string(&self.path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(BTreeMap::new()),
            Err(error) => return Err(error),
        };
        let stored: BTreeMap<String, Stored> = serde_json::from_str(&text)?;
        let keys = stored.into_iter().filter_map(|(id, s)| s.key.map(|key| (id, key)));
        Ok(keys.collect())
    }

    pub fn get(&self, provider: &str) -> Option<String> {
        self.all().ok()?.remove(provider)
    }

    pub fn set(&self, provider: &str, key: &str) -> io::Result<()> {
        let mut all = self.all()?;
        all.insert(provider.to_owned(), key.to_owned());
        self.write(&all)
    }

    /// Whether there was one.
    pub fn remove(&self, provider: &str) -> io::Result<bool> {
        let mut all = self.all()?;
        let was_there = all.remove(provider).is_some();
        if was_there {
            self.write(&all)?;
        }
        Ok(was_there)
    }

    fn write(&self, all: &BTreeMap<String, String>) -> io::Result<()> {
        if let Some(folder) = self.path.parent() {
            fs::create_dir_all(folder)?;
        }
        let entry = |(id, key): (&String, &String)| {
            (id.clone(), Stored { kind: "api".to_owned(), key: Some(key.clone()) })
        };
        let stored: BTreeMap<String, Stored> = all.iter().map(entry).collect();
        let beside = self.path.with_extension("json.new");
        // Private from the first byte on.
        let mut file = fs::OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&beside)?;
        file.write_all(serde_json::to_string_pretty(&stored)?.as_bytes())?;
        file.sync_all()?;
        fs::rename(&beside, &self.path)
    }
}

#[derive(serde::Serialize, serde::Deserialize)]
struct Stored {
    #[serde(rename = "type", default)]
    kind: String,
    key: Option<String>,
}
