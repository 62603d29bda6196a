//! A small JSON file of our own: read whole, changed by one process at a time, replaced at once.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;

#[derive(Debug, Clone)]
pub struct StateFile {
    path: PathBuf,
}

impl StateFile {
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Nothing, where there is no file. A broken one is an error: it is not written over.
    pub fn read<T: DeserializeOwned + Default>(&self) -> io::Result<T> {
        let text = match fs::read_to_string(&self.path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(T::default()),
            Err(error) => return Err(self.about(&error)),
        };
        serde_json::from_str(&text).map_err(|error| self.about(&error.into()))
    }

    /// Reads, changes and replaces it; two processes do so one after the other. A crash leaves the
    /// old file or the new one.
    pub fn change<T, R>(&self, change: impl FnOnce(&mut T) -> R) -> io::Result<R>
    where
        T: DeserializeOwned + Serialize + Default,
    {
        let write = || -> io::Result<R> {
            if let Some(folder) = self.path.parent() {
                fs::create_dir_all(folder)?;
            }
            let open = || {
                let mut options = fs::OpenOptions::new();
                options.write(true).create(true).mode(0o600);
                options
            };
            let lock = open().truncate(false).open(self.path.with_extension("lock"))?;
            lock.lock()?;
            let mut state: T = self.read()?;
            let result = change(&mut state);
            let beside = self.path.with_extension("json.new");
            let mut file = open().truncate(true).open(&beside)?;
            file.write_all(serde_json::to_string_pretty(&state)?.as_bytes())?;
            file.sync_all()?;
            fs::rename(&beside, &self.path)?;
            Ok(result)
        };
        write().map_err(|error| self.about(&error))
    }

    fn about(&self, error: &io::Error) -> io::Error {
        let text = error.to_string();
        let path = self.path.display().to_string();
        if text.starts_with(&path) {
            return io::Error::new(error.kind(), text);
        }
        io::Error::new(error.kind(), format!("{path}: {text}"))
    }
}
