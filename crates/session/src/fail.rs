//! Places at which a test can end the process outright, as a crash or a power cut would. They exist in
//! builds without optimisation only; elsewhere they are nothing.
//!
//! `TOOLWRIGHT_FAIL_AT=name:count` ends the process when it comes to that place for the `count`th
//! time; the name `any` counts all places. `TOOLWRIGHT_FAIL_TRACE=file` writes down the names of the
//! places that were passed.

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

#[cfg(debug_assertions)]
mod at {
    use std::io::Write;
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU64, Ordering};

    struct Wish {
        /// The place and the pass of it at which to end.
        end: Option<(String, u64)>,
        trace: Option<std::path::PathBuf>,
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

    pub(super) fn is_due(name: &str) -> bool {
        let Some(wish) = WISH.get_or_init(wish) else { return false };
        if let Some(path) = &wish.trace {
            let file = std::fs::OpenOptions::new().create(true).append(true).open(path);
            // A trace that cannot be written shows in the test that reads it.
            file.and_then(|mut file| writeln!(file, "{name}")).ok();
        }
        let Some((wanted, count)) = &wish.end else { return false };
        let counts = wanted == "any" || wanted == name;
        counts && wish.passed.fetch_add(1, Ordering::Relaxed) + 1 == *count
    }
}
