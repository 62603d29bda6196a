//! Places at which a test can end the process outright, as a crash or a power cut would. They exist in
//! builds without optimisation only; elsewhere they are nothing.
//!
//! `TOOLWRIGHT_FAIL_AT=name:count` ends the process when it comes to that place for the `count`th
//! time; the name `any` counts all places. `TOOLWRIGHT_FAIL_TRACE=file` writes down the names of the
//! places that were passed, `TOOLWRIGHT_FAIL_SYNCED=file` how much of each log is on the disk for certain:
//! a power cut may take the rest.

/// Every place there is. Whoever adds one adds it here: the crash harness goes to all of them.
pub const FAIL_POINTS: &[&str] = &[
    "log.created",
    "append.before",
    "append.half",
    "append.after",
    "prompt.kept",
    "step.heard",
    "call.recorded",
    "call.synced",
    "call.done",
    "call.settled",
    "room.noted",
    "turn.ended",
    "look.half",
    "image.half",
    "write.half",
    "undo.planned",
    "undo.file",
    "undo.half",
    "undo.restored",
    "undo.done",
    "index.half",
    "index.done",
];

/// Ends the process here, if a test wants that.
#[inline]
pub fn fail_point(name: &'static str) {
    #[cfg(debug_assertions)]
    if at::is_due(name) {
        std::process::abort();
    }
    #[cfg(not(debug_assertions))]
    let _ignored = name;
}

/// As [`fail_point`], with something half done before the end.
#[inline]
pub(crate) fn fail_after(name: &'static str, half: impl FnOnce()) {
    #[cfg(debug_assertions)]
    if at::is_due(name) {
        half();
        std::process::abort();
    }
    #[cfg(not(debug_assertions))]
    let _ignored = (name, half);
}

/// So much of a log survives a power cut from now on.
#[inline]
pub(crate) fn synced(path: &std::path::Path, length: u64) {
    #[cfg(debug_assertions)]
    at::synced(path, length);
    #[cfg(not(debug_assertions))]
    let _ignored = (path, length);
}

#[cfg(debug_assertions)]
mod at {
    use std::io::Write;
    use std::path::{Path, PathBuf};
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU64, Ordering};

    struct Wish {
        /// The place and the pass of it at which to end.
        end: Option<(String, u64)>,
        trace: Option<PathBuf>,
        passed: AtomicU64,
    }

    static WISH: OnceLock<Option<Wish>> = OnceLock::new();

    fn wish() -> Option<Wish> {
        let end = std::env::var("TOOLWRIGHT_FAIL_AT").ok().and_then(|text| {
            let (name, count) = text.split_once(':')?;
            Some((name.to_owned(), count.parse().ok()?))
        });
        let trace = std::env::var_os("TOOLWRIGHT_FAIL_TRACE").map(Into::into);
        let wanted = end.is_some() || trace.is_some();
        wanted.then(|| Wish { end, trace, passed: AtomicU64::new(0) })
    }

    fn note(file: &Path, line: &str) {
        let file = std::fs::OpenOptions::new().create(true).append(true).open(file);
        // A trace that cannot be written shows in the test that reads it.
        file.and_then(|mut file| file.write_all(format!("{line}\n").as_bytes())).ok();
    }

    static SYNCED: OnceLock<Option<PathBuf>> = OnceLock::new();

    pub(super) fn synced(path: &Path, length: u64) {
        let wanted = || std::env::var_os("TOOLWRIGHT_FAIL_SYNCED").map(Into::into);
        if let Some(file) = SYNCED.get_or_init(wanted) {
            note(file, &format!("{length} {}", path.display()));
        }
    }

    pub(super) fn is_due(name: &str) -> bool {
        let Some(wish) = WISH.get_or_init(wish) else { return false };
        if let Some(path) = &wish.trace {
            note(path, name);
        }
        let Some((wanted, count)) = &wish.end else { return false };
        let counts = wanted == "any" || wanted == name;
        counts && wish.passed.fetch_add(1, Ordering::Relaxed) + 1 == *count
    }
}
