//! The built-in tools, one module each, with its description for the model in Markdown beside it.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod bash;
mod diff;
mod edit;
mod glob;
mod grep;
mod list;
mod names;
mod read;
mod recency;
mod walk;
mod write;

pub use bash::{Bash, BashOptions};
pub use edit::Edit;
pub use glob::Glob;
pub use grep::Grep;
pub use list::List;
pub use read::{Nearby, Read};
pub use write::Write;

use std::sync::Arc;

use toolwright_tool::{AnyTool, Registry, Source};

/// All of them, ready to be offered.
pub fn register_all(registry: &Registry, bash: BashOptions) {
    let tools: [Arc<dyn AnyTool>; 7] = [
        Arc::new(Bash::new(bash)),
        Arc::new(Edit),
        Arc::new(Glob),
        Arc::new(Grep),
        Arc::new(List),
        Arc::new(Read::default()),
        Arc::new(Write),
    ];
    for tool in tools {
        registry.register_from(Source::BuiltIn, tool);
    }
}

#[cfg(test)]
mod hostile_tests;
#[cfg(test)]
mod search_tests;
#[cfg(test)]
mod tests;
