//! The tools by name. Registering a taken name replaces it.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use toolwright_llm::ToolDefinition;

use crate::tool::{AnyTool, Tool};
use crate::validate::Validator;

#[derive(Default, Clone)]
pub struct Registry {
    /// Sorted, so that a model sees the same list each time.
    tools: BTreeMap<String, Arc<Registered>>,
}

pub(crate) struct Registered {
    pub(crate) tool: Arc<dyn AnyTool>,
    pub(crate) definition: ToolDefinition,
    validator: OnceLock<Validator>,
}

impl Registered {
    /// Compiled when the tool is first called, once.
    pub(crate) fn validator(&self) -> &Validator {
        self.validator.get_or_init(|| Validator::compile(&self.definition.parameters))
    }
}

impl Registry {
    pub fn register(&mut self, tool: impl Tool) -> &mut Self {
        self.register_any(Arc::new(tool))
    }

    pub fn register_any(&mut self, tool: Arc<dyn AnyTool>) -> &mut Self {
        let definition = ToolDefinition {
            name: tool.name().to_owned(),
            description: tool.description().trim().to_owned(),
            parameters: tool.schema(),
        };
        let name = definition.name.clone();
        let entry = Registered { tool, definition, validator: OnceLock::new() };
        self.tools.insert(name, Arc::new(entry));
        self
    }

    pub fn unregister(&mut self, name: &str) -> bool {
        self.tools.remove(name).is_some()
    }

    pub fn contains(&self, name: &str) -> bool {
        self.tools.contains_key(name)
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.tools.keys().map(String::as_str)
    }

    /// For a model: all tools whose permission key `offered` accepts.
    pub fn definitions(&self, offered: impl Fn(&str) -> bool) -> Vec<ToolDefinition> {
        let visible = self.tools.values().filter(|t| offered(t.tool.permission()));
        visible.map(|t| t.definition.clone()).collect()
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Arc<Registered>> {
        self.tools.get(name)
    }
}
