//! Instructions that lie beside what is read: given with the first file that they apply to, once.

use std::collections::HashSet;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use toolwright_session::held::open_real;
use toolwright_tool::{MayRead, Workspace};

use crate::names::show;

/// In each folder the first of these that is there.
const NAMES: &[&str] = &["AGENTS.md", "CLAUDE.md", "CONTEXT.md"];

/// Bytes of instructions that one call adds to its answer.
const CALL_CAP_BYTES: usize = 32 << 10;

/// What a session has been given. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct Nearby {
    in_prompt: Arc<HashSet<PathBuf>>,
    given: Arc<Mutex<HashSet<PathBuf>>>,
}

pub(super) struct Instruction {
    pub(super) path: PathBuf,
    text: String,
}

impl Nearby {
    /// What the prompt holds already, and what the conversation does.
    pub fn knowing(
        in_prompt: impl IntoIterator<Item = PathBuf>,
        given: impl IntoIterator<Item = PathBuf>,
    ) -> Self {
        let real = |path: PathBuf| std::fs::canonicalize(&path).unwrap_or(path);
        Self {
            in_prompt: Arc::new(in_prompt.into_iter().map(real).collect()),
            given: Arc::new(Mutex::new(given.into_iter().map(real).collect())),
        }
    }

    /// The conversation was made shorter: what it held may be needed again.
    pub(super) fn forget(&self) {
        self.given.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// The instructions for `file` that were not given yet; they count as given from now on. Those
    /// above the working directory are the prompt's business.
    pub(super) fn claim(
        &self,
        file: &Path,
        workspace: &Workspace,
        may_read: &MayRead,
    ) -> Vec<Instruction> {
        let directory = workspace.directory();
        let folders = file
            .ancestors()
            .skip(1)
            .take_while(|folder| folder.starts_with(directory) && *folder != directory);
        let mut left = CALL_CAP_BYTES;
        let mut found = Vec::new();
        for folder in folders {
            let named = NAMES.iter().map(|name| folder.join(name)).find(|path| path.is_file());
            // A link out of the workspace would show a file that nobody decided about.
            let real = named.and_then(|path| std::fs::canonicalize(path).ok());
            let Some(path) = real.filter(|real| real.starts_with(directory)) else { continue };
            if path == file || left == 0 || !may_read(&path) {
                continue;
            }
            let mut given = self.given.lock().unwrap_or_else(PoisonError::into_inner);
            if given.contains(&path) || self.in_prompt.contains(&path) {
                continue;
            }
            let Some(text) = beginning(&path, left) else { continue };
            given.insert(path.clone());
            left = left.saturating_sub(text.len());
            found.push(Instruction { path, text });
        }
        found
    }
}

fn beginning(path: &Path, cap: usize) -> Option<String> {
    let mut bytes = Vec::new();
    let file = open_real(path).ok()?;
    file.take(cap as u64 + 1).read_to_end(&mut bytes).ok()?;
    let long = bytes.len() > cap;
    bytes.truncate(cap);
    let mut text = String::from_utf8_lossy(&bytes).into_owned();
    if long {
        text.push_str("\n(cut: the file is longer)");
    }
    Some(text)
}

pub(super) fn reminder(found: &[Instruction]) -> String {
    let each = found.iter().map(|i| format!("Instructions from: {}\n{}", show(&i.path), i.text));
    let text = each.collect::<Vec<_>>().join("\n\n");
    format!("\n\n<system-reminder>\n{text}\n</system-reminder>")
}
