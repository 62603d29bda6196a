//! The built-in tools, one module each, with its description for the model in Markdown beside it.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod apply_patch;
mod bash;
mod diff;
mod edit;
mod feedback;
mod formatter;
mod glob;
mod grep;
mod list;
mod lsp;
mod multiedit;
mod names;
mod plan_mode;
mod question;
mod read;
mod recency;
mod rewrite;
mod seen;
mod skill;
mod todo;
mod walk;
mod web;
mod write;

pub use apply_patch::ApplyPatch;
pub use bash::{
    AfterCommand, AskVariables, Bash, BashInput, BashKill, BashOptions, BashOutput, JOBS_CAP,
    JobInfo, Jobs, Ran,
};
pub use edit::Edit;
pub use feedback::{After, Before, Edited, Feedback, Occasion};
pub use formatter::{FormatterEntry, FormatterSetting, Formatters};
pub use glob::Glob;
pub use grep::Grep;
pub use list::List;
pub use lsp::Lsp;
pub use multiedit::MultiEdit;
pub use plan_mode::{
    BUILD_AGENT, PLAN_AGENT, PLAN_ENTER, PLAN_EXIT, PlanEnter, PlanExit, agreed_agent,
};
pub use question::Question;
pub use read::{Nearby, Read};
pub use seen::{Seen, StaleEdits};
pub use skill::{Skill, SkillTool};
pub use todo::{Todo, Todos};
pub use web::{CodeSearch, SearchOptions, SearchProvider, WebFetch, WebFetchOptions, WebSearch};
pub use write::Write;

use std::sync::Arc;

use toolwright_tool::{AnyTool, Registry, Source};

/// All of them, ready to be offered.
pub fn register_all(registry: &Registry, bash: BashOptions, feedback: &Feedback) {
    let tools: [Arc<dyn AnyTool>; 9] = [
        Arc::new(BashInput(bash.jobs.clone())),
        Arc::new(BashKill(bash.jobs.clone())),
        Arc::new(BashOutput(bash.jobs.clone())),
        Arc::new(Bash::new(bash)),
        Arc::new(Glob),
        Arc::new(Grep),
        Arc::new(List),
        Arc::new(Question),
        Arc::new(WebFetch::default()),
    ];
    for tool in tools.into_iter().chain(Todos::default().tools()) {
        registry.register_from(Source::BuiltIn, tool);
    }
    register_file_tools(registry, StaleEdits::default(), feedback, Nearby::default());
}

/// What reads and changes files, with one memory of what was seen; replaces what is registered.
pub fn register_file_tools(
    registry: &Registry,
    stale: StaleEdits,
    feedback: &Feedback,
    nearby: Nearby,
) {
    let seen = Seen::new(stale).followed_by(feedback.clone());
    let tools: [Arc<dyn AnyTool>; 5] = [
        Arc::new(ApplyPatch::new(seen.clone())),
        Arc::new(Edit::new(seen.clone())),
        Arc::new(MultiEdit::new(seen.clone())),
        Arc::new(Read::new(nearby).noting(seen.clone())),
        Arc::new(Write::new(seen)),
    ];
    for tool in tools {
        registry.register_from(Source::BuiltIn, tool);
    }
    if feedback.servers().is_some() {
        registry.register_from(Source::BuiltIn, Arc::new(Lsp::new(feedback.clone())));
    }
}

#[cfg(test)]
mod batch_tests;
#[cfg(test)]
mod hostile_tests;
#[cfg(test)]
mod kit;
#[cfg(test)]
mod person_tests;
#[cfg(test)]
mod search_tests;
#[cfg(test)]
mod skill_tests;
#[cfg(test)]
mod tests;
