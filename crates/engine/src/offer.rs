//! The list of tools that a model is shown, kept still: what joins is put at the end, what changes
//! stays in its place, so that as little as possible of the prompt moves.

use std::sync::Arc;

use toolwright_llm::{Request, ToolDefinition};
use toolwright_tool::Registry;

use crate::hooks::Hooks;

/// Chooses from the registry what a session's model is shown.
pub type ChooseTools = Arc<dyn Fn(&Registry) -> Vec<ToolDefinition> + Send + Sync>;

pub(crate) struct ToolList {
    choose: ChooseTools,
    version: u64,
}

impl ToolList {
    pub(crate) async fn new(
        choose: ChooseTools,
        registry: &Registry,
        hooks: &Hooks,
    ) -> (Self, Arc<[ToolDefinition]>) {
        let version = registry.version();
        let mut tools = choose(registry);
        hooks.show_tools(&mut tools).await;
        (Self { choose, version }, tools.into())
    }

    /// Brings a request's list up to date, if tools have come or gone.
    pub(crate) async fn refresh(
        &mut self,
        registry: &Registry,
        template: &mut Request,
        hooks: &Hooks,
    ) {
        let version = registry.version();
        if version == self.version {
            return;
        }
        self.version = version;
        let mut wanted = (self.choose)(registry);
        hooks.show_tools(&mut wanted).await;
        let mut list = Vec::with_capacity(wanted.len());
        for old in template.tools.iter() {
            if let Some(at) = wanted.iter().position(|new| new.name == old.name) {
                list.push(wanted.remove(at));
            }
        }
        list.append(&mut wanted);
        template.tools = list.into();
    }
}
