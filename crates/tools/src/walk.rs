//! Walking a tree as ripgrep does, off the runtime's threads.

use std::path::Path;

use globset::GlobMatcher;
use ignore::{WalkBuilder, WalkParallel};
use toolwright_tool::ToolError;

/// Runs file work on the blocking pool.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ToolError> + Send + 'static,
) -> Result<T, ToolError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(crash) => Err(ToolError::Fatal(format!("a file operation crashed: {crash}"))),
    }
}

/// A glob without a slash is about the name, one with a slash about the path.
pub(crate) fn fits(glob: &GlobMatcher, relative: &Path) -> bool {
    let name = relative.file_name().unwrap_or_default();
    if glob.glob().glob().contains('/') { glob.is_match(relative) } else { glob.is_match(name) }
}

/// Ignore files are respected, inside a repository or not; `.git` is never entered.
pub(crate) fn walker(root: &Path, hidden: bool) -> WalkParallel {
    let threads = std::thread::available_parallelism().map_or(2, usize::from).min(8);
    WalkBuilder::new(root)
        .hidden(!hidden)
        .require_git(false)
        .follow_links(false)
        .threads(threads)
        .filter_entry(|entry| entry.file_name() != ".git")
        .build_parallel()
}
