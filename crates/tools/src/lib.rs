//! The built-in tools, one module each, with its description for the model in Markdown beside it.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod bash;
mod diff;
mod edit;
mod feedback;
mod formatter;
mod glob;
mod grep;
mod lsp;
mod read;
mod walk;
mod write;

pub use bash::{Bash, BashOptions};
pub use edit::Edit;
pub use feedback::{After, Edited, Feedback, Occasion};
pub use formatter::{FormatterEntry, FormatterSetting, Formatters};
pub use glob::Glob;
pub use grep::Grep;
pub use lsp::Lsp;
pub use read::Read;
pub use write::Write;

use std::sync::Arc;

use toolwright_tool::{AnyTool, Registry, Source};

/// All of them, ready to be offered; `lsp` where language servers are turned on.
pub fn register_all(registry: &Registry, bash: BashOptions, feedback: &Feedback) {
    let tools: [Arc<dyn AnyTool>; 6] = [
        Arc::new(Bash::new(bash)),
        Arc::new(Edit::new(feedback.clone())),
        Arc::new(Glob),
        Arc::new(Grep),
        Arc::new(Read),
        Arc::new(Write::new(feedback.clone())),
    ];
    for tool in tools {
        registry.register_from(Source::BuiltIn, tool);
    }
    if feedback.servers().is_some() {
        registry.register_from(Source::BuiltIn, Arc::new(Lsp::new(feedback.clone())));
    }
}

#[cfg(test)]
mod tests;
