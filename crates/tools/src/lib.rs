//! The built-in tools, one module each, with its description for the model in Markdown beside it.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod bash;
mod diff;
mod edit;
mod glob;
mod grep;
mod plan_mode;
mod question;
mod read;
mod skill;
mod todo;
mod walk;
mod web;
mod write;

pub use bash::{Bash, BashOptions};
pub use edit::Edit;
pub use glob::Glob;
pub use grep::Grep;
pub use plan_mode::{
    BUILD_AGENT, PLAN_AGENT, PLAN_ENTER, PLAN_EXIT, PlanEnter, PlanExit, agreed_agent,
};
pub use question::Question;
pub use read::Read;
pub use skill::{Skill, SkillTool};
pub use todo::{Todo, Todos};
pub use web::{CodeSearch, SearchOptions, SearchProvider, WebFetch, WebFetchOptions, WebSearch};
pub use write::Write;

use std::sync::Arc;

use toolwright_tool::{AnyTool, Registry, Source};

/// All of them, ready to be offered.
pub fn register_all(registry: &Registry, bash: BashOptions) {
    let tools: [Arc<dyn AnyTool>; 8] = [
        Arc::new(Bash::new(bash)),
        Arc::new(Edit),
        Arc::new(Glob),
        Arc::new(Grep),
        Arc::new(Question),
        Arc::new(Read),
        Arc::new(WebFetch::default()),
        Arc::new(Write),
    ];
    for tool in tools.into_iter().chain(Todos::default().tools()) {
        registry.register_from(Source::BuiltIn, tool);
    }
}

#[cfg(test)]
mod batch_tests;
#[cfg(test)]
mod kit;
#[cfg(test)]
mod person_tests;
#[cfg(test)]
mod skill_tests;
#[cfg(test)]
mod tests;
