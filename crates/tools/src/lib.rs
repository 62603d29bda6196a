//! The built-in tools, one module each, with its description for the model in Markdown beside it.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod apply_patch;
mod bash;
mod diff;
mod edit;
mod glob;
mod grep;
mod multiedit;
mod read;
mod rewrite;
mod seen;
mod walk;
mod write;

pub use apply_patch::ApplyPatch;
pub use bash::{Bash, BashOptions};
pub use edit::Edit;
pub use glob::Glob;
pub use grep::Grep;
pub use multiedit::MultiEdit;
pub use read::Read;
pub use seen::{Seen, StaleEdits};
pub use write::Write;

use std::sync::Arc;

use toolwright_tool::{AnyTool, Registry, Source};

/// All of them, ready to be offered.
pub fn register_all(registry: &Registry, bash: BashOptions) {
    let tools: [Arc<dyn AnyTool>; 3] = [Arc::new(Bash::new(bash)), Arc::new(Glob), Arc::new(Grep)];
    for tool in tools {
        registry.register_from(Source::BuiltIn, tool);
    }
    register_file_tools(registry, StaleEdits::default());
}

/// What reads and changes files, with one memory of what was seen; replaces what is registered.
pub fn register_file_tools(registry: &Registry, stale: StaleEdits) {
    let seen = Seen::new(stale);
    let tools: [Arc<dyn AnyTool>; 5] = [
        Arc::new(ApplyPatch::new(seen.clone())),
        Arc::new(Edit::new(seen.clone())),
        Arc::new(MultiEdit::new(seen.clone())),
        Arc::new(Read::new(seen.clone())),
        Arc::new(Write::new(seen)),
    ];
    for tool in tools {
        registry.register_from(Source::BuiltIn, tool);
    }
}

#[cfg(test)]
mod tests;
