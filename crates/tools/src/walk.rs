//! Walking a tree as ripgrep does, off the runtime's threads.

mod rules;
mod tree;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use ignore::overrides::{Override, OverrideBuilder};
use tokio_util::sync::CancellationToken;
use toolwright_tool::ToolError;

use crate::names::show;
pub(crate) use tree::{Found, Tree, Visitor};

/// Runs file work on the blocking pool.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ToolError> + Send + 'static,
) -> Result<T, ToolError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(crash) => Err(ToolError::Fatal(format!("a file operation crashed: {crash}"))),
    }
}

/// Whether work is still wanted. Asking a token takes a lock that all threads of a search would
/// meet at, for each file and each match.
#[derive(Clone, Default)]
pub(crate) struct Stopped(Arc<AtomicBool>);

impl Stopped {
    pub(crate) fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    pub(crate) fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// As [`blocking`], with a word to the work when it is no longer wanted.
pub(crate) async fn blocking_until<T: Send + 'static>(
    cancel: CancellationToken,
    work: impl FnOnce(&Stopped) -> Result<T, ToolError> + Send + 'static,
) -> Result<T, ToolError> {
    let stopped = Stopped::default();
    let own = stopped.clone();
    let working = blocking(move || work(&own));
    tokio::pin!(working);
    tokio::select! {
        done = &mut working => return done,
        () = cancel.cancelled() => stopped.set(),
    }
    working.await
}

/// A glob as `rg --glob` reads it: without a slash it is about names anywhere, with one about paths
/// below the root; a leading `!` turns it round.
pub(crate) struct Filter(Override);

impl Filter {
    pub(crate) fn new(root: &Path, globs: &[String]) -> Result<Self, String> {
        let mut builder = OverrideBuilder::new(root);
        for glob in globs {
            let glob = glob.strip_prefix("./").unwrap_or(glob);
            // A folder's name stands for what is in it; a `#` is no comment here.
            let glob = match glob.strip_suffix('/') {
                Some(folder) => format!("{folder}/**"),
                None => glob.to_owned(),
            };
            let glob = if glob.starts_with('#') { format!("\\{glob}") } else { glob };
            builder.add(&glob).map_err(|e| e.to_string())?;
        }
        builder.build().map(Self).map_err(|e| e.to_string())
    }

    pub(crate) fn accepts(&self, file: &Path) -> bool {
        !self.0.matched(file, false).is_ignore()
    }

    /// Whether a glob that is turned round names this very file or folder.
    pub(crate) fn excludes(&self, path: &Path, is_folder: bool) -> bool {
        self.0.matched(path, is_folder).is_ignore()
    }
}

/// What could not be looked at. Something that vanished meanwhile is not missed.
#[derive(Default)]
pub(crate) struct Unreadable(Mutex<Option<(usize, String)>>);

impl Unreadable {
    pub(crate) fn note(&self, path: &Path, error: &std::io::Error) {
        if error.kind() != std::io::ErrorKind::NotFound {
            self.add(format!("{}: {error}", show(path)));
        }
    }

    fn add(&self, first: String) {
        let mut noted = self.0.lock().unwrap_or_else(|e| e.into_inner());
        match noted.as_mut() {
            Some((count, _)) => *count += 1,
            None => *noted = Some((1, first)),
        }
    }

    /// A sentence for the model, if there is anything to say.
    pub(crate) fn sentence(&self) -> Option<String> {
        let noted = self.0.lock().unwrap_or_else(|e| e.into_inner());
        let (count, first) = noted.as_ref()?;
        Some(match count {
            1 => format!("(One path could not be read: {first})"),
            count => format!("({count} paths could not be read, for example {first})"),
        })
    }
}

/// How far below the root a glob can fit at all, where that can be told.
pub(crate) fn depth_of(glob: &str) -> Option<usize> {
    let glob = glob.strip_prefix("./").unwrap_or(glob);
    let anchored = glob.trim_end_matches('/').contains('/');
    let certain = anchored && !glob.contains("**") && !glob.contains(['{', '[', '\\']);
    let parts = glob.split('/').filter(|part| !part.is_empty()).count();
    (certain && !glob.starts_with('!') && !glob.ends_with('/')).then_some(parts)
}

/// The folder that a pattern's first, literal parts name, and the rest of the pattern. For patterns
/// that begin outside the searched folder: `/etc/**/*.conf`, `../other/*.rs`.
pub(crate) fn split_literal(pattern: &str) -> (PathBuf, String) {
    let special = |part: &str| part.contains(['*', '?', '[', '{', '\\', '!']);
    let parts: Vec<&str> = pattern.split('/').collect();
    let literal = parts.iter().take_while(|part| !special(part)).count().min(parts.len() - 1);
    let folder = match parts[..literal].join("/") {
        folder if folder.is_empty() && pattern.starts_with('/') => "/".to_owned(),
        folder => folder,
    };
    (PathBuf::from(folder), parts[literal..].join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_deep_a_glob_reaches() {
        let cases = [
            ("*.rs", None),
            ("/*.rs", Some(1)),
            ("src/*.rs", Some(2)),
            ("./src/*/x", Some(3)),
            ("src/**", None),
            ("src/", None),
            ("!a/b", None),
            ("{a/b,c/d/e}", None),
        ];
        for (glob, depth) in cases {
            assert_eq!(depth_of(glob), depth, "{glob}");
        }
    }

    #[test]
    fn where_a_pattern_outside_begins() {
        let cases = [
            ("/etc/**/*.conf", "/etc", "**/*.conf"),
            ("../a/b.rs", "../a", "b.rs"),
            ("/*.rs", "/", "*.rs"),
            ("/x", "/", "x"),
        ];
        for (pattern, folder, rest) in cases {
            assert_eq!(split_literal(pattern), (PathBuf::from(folder), rest.to_owned()));
        }
    }
}
