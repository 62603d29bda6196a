//! What tests through the seam need: a scripted model over real HTTP, a folder to work in, and a
//! driver for the built binary. Nothing here is a mock of our own code.

// This crate is only ever linked into tests: a broken expectation should fail loudly.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod answer;
mod child;
mod folder;
pub mod mcp_server;
mod server;
mod terminal;

pub use answer::{After, Answer, Reply};
pub use child::{Child, Finished};
pub use folder::Folder;
pub use server::{Captured, ModelServer, Wire};
pub use terminal::Terminal;

use std::time::{Duration, Instant};

/// How long anything may take before a test fails. Generous: machines are shared.
const PATIENCE: Duration = Duration::from_secs(60);

/// Waits until `check` gives something. For states that nobody announces (a file that appears, a
/// process that goes away).
pub fn eventually<T>(what: &str, mut check: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = check() {
            return found;
        }
        assert!(start.elapsed() < PATIENCE, "waited in vain for: {what}");
        std::thread::park_timeout(Duration::from_millis(2));
    }
}

/// Living processes whose command line contains `marker`. Zombies do not count.
pub fn processes_with(marker: &str) -> Vec<String> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries
        .filter_map(|entry| {
            let path = entry.path();
            let line = std::fs::read(path.join("cmdline")).ok()?;
            let line = String::from_utf8_lossy(&line).replace('\0', " ");
            let stat = std::fs::read_to_string(path.join("stat")).ok()?;
            let alive = !stat.rsplit_once(") ")?.1.starts_with(['Z', 'X']);
            (alive && line.contains(marker)).then(|| format!("{} {line}", path.display()))
        })
        .collect()
}
