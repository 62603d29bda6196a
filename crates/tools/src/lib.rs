//! The built-in tools, one module each, with its description for the model in Markdown beside it.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod bash;
mod diff;
mod edit;
mod glob;
mod grep;
mod read;
mod walk;
mod write;

pub use bash::{Bash, BashOptions};
pub use edit::Edit;
pub use glob::Glob;
pub use grep::Grep;
pub use read::Read;
pub use write::Write;

use toolwright_tool::Registry;

/// All of them, ready to be offered.
pub fn register_all(registry: &mut Registry, bash: BashOptions) {
    registry
        .register(Bash::new(bash))
        .register(Edit)
        .register(Glob)
        .register(Grep)
        .register(Read)
        .register(Write);
}

#[cfg(test)]
mod tests;
