//! The list of tools that a model is shown, kept still: what joins is put at the end, what changes
//! stays in its place, so that as little as possible of the prompt moves.

use std::sync::Arc;

use toolwright_llm::{Request, ToolDefinition};
use toolwright_tool::Registry;

/// Chooses from the registry what a session's model is shown.
pub type ChooseTools = Arc<dyn Fn(&Registry) -> Vec<ToolDefinition> + Send + Sync>;

pub(crate) struct ToolList {
    choose: ChooseTools,
    version: u64,
}

impl ToolList {
    pub(crate) fn new(choose: ChooseTools, registry: &Registry) -> (Self, Arc<[ToolDefinition]>) {
        let version = registry.version();
        let tools = choose(registry);
        (Self { choose, version }, tools.into())
    }

    /// Brings a request's list up to date, if tools have come or gone.
    pub(crate) fn refresh(&mut self, registry: &Registry, template: &mut Request) {
        let version = registry.version();
        if version == self.version {
            return;
        }
        self.version = version;
        let mut wanted = (self.choose)(registry);
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
