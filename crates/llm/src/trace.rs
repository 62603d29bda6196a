//! Keeps requests and raw answers for people who debug a provider. Keys are masked before anything
//! is written.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use reqwest::header::HeaderMap;
use serde_json::{Value, json};

#[derive(Debug)]
pub struct Trace {
    folder: PathBuf,
    next: AtomicU32,
}

/// The file that an answer is kept in. What cannot be written is left out: a trace must not break
/// the run that it watches.
pub(crate) struct Answer(Option<fs::File>);

impl Trace {
    /// Makes the folder; fails where that is not possible.
    pub fn new(folder: &Path) -> std::io::Result<Self> {
        fs::create_dir_all(folder)?;
        let folder = fs::canonicalize(folder)?;
        Ok(Self { folder, next: AtomicU32::new(1) })
    }

    pub(crate) fn begin(&self, url: &str, headers: &HeaderMap, body: &[u8]) -> Answer {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let shown: serde_json::Map<String, Value> = headers
            .iter()
            .map(|(name, value)| {
                let text = value.to_str().unwrap_or("(not text)");
                let text = if value.is_sensitive() { "***" } else { text };
                (name.as_str().to_owned(), json!(text))
            })
            .collect();
        let body: Value = serde_json::from_slice(body).unwrap_or_default();
        let request = json!({ "url": url, "headers": shown, "body": body });
        let file = self.folder.join(format!("{number:04}.request.json"));
        fs::write(file, format!("{request:#}\n")).ok();
        Answer(fs::File::create(self.folder.join(format!("{number:04}.response"))).ok())
    }
}

impl Answer {
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        if let Some(file) = &mut self.0
            && file.write_all(bytes).is_err()
        {
            self.0 = None;
        }
    }
}
