//! The tools by name, from wherever they come. Registering a taken name replaces it; a registry can
//! change while sessions use it, and its clones change with it.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use toolwright_llm::ToolDefinition;

use crate::tool::{AnyTool, Tool};
use crate::validate::Validator;

/// Who brought a tool. What is not built in can be deferred where there is too much of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Source {
    BuiltIn,
    #[default]
    Custom,
    Plugin,
    Mcp,
    /// Can be called and is not in any list.
    Hidden,
}

/// A handle: clones share what they hold.
#[derive(Default, Clone)]
pub struct Registry {
    shelf: Arc<RwLock<Shelf>>,
}

#[derive(Default, Clone)]
struct Shelf {
    /// Sorted, so that a model sees the same list each time.
    tools: BTreeMap<String, Arc<Registered>>,
    version: u64,
}

pub(crate) struct Registered {
    pub(crate) tool: Arc<dyn AnyTool>,
    pub(crate) definition: ToolDefinition,
    pub(crate) source: Source,
    validator: OnceLock<Validator>,
}

impl Registered {
    /// Compiled when the tool is first called, once.
    pub(crate) fn validator(&self) -> &Validator {
        self.validator.get_or_init(|| Validator::compile(&self.definition.parameters))
    }

    /// About how many tokens its definition takes in a request: four characters are one.
    fn weight(&self) -> usize {
        let ToolDefinition { name, description, parameters } = &self.definition;
        (name.len() + description.len() + parameters.to_string().len()) / 4
    }
}

/// Whom a list of tools is for.
pub struct Audience<'a> {
    pub model: &'a str,
    /// Whether everything with this permission key is denied: what can never run is not offered.
    pub denied: &'a dyn Fn(&str) -> bool,
    /// Tokens that the definitions may take together; what does not fit is deferred.
    pub budget_tokens: Option<usize>,
}

/// What a model is told about the tools.
#[derive(Debug, Clone, Default)]
pub struct Offer {
    pub definitions: Vec<ToolDefinition>,
    /// Names that are found through `tool_search` instead.
    pub deferred: Vec<String>,
}

impl Registry {
    pub fn register(&self, tool: impl Tool) -> &Self {
        self.register_from(Source::Custom, Arc::new(tool))
    }

    pub fn register_from(&self, source: Source, tool: Arc<dyn AnyTool>) -> &Self {
        let definition = ToolDefinition {
            name: tool.name().to_owned(),
            description: tool.description().trim().to_owned(),
            parameters: tool.schema(),
        };
        let name = definition.name.clone();
        let entry = Registered { tool, definition, source, validator: OnceLock::new() };
        let mut shelf = self.write();
        shelf.tools.insert(name, Arc::new(entry));
        shelf.version += 1;
        drop(shelf);
        self
    }

    /// Puts a tool of this one into another, if there is such a tool.
    pub fn lend(&self, name: &str, other: &Self) -> bool {
        let found = self.read().tools.get(name).map(|own| (own.source, Arc::clone(&own.tool)));
        found.map(|(source, tool)| other.register_from(source, tool)).is_some()
    }

    pub fn unregister(&self, name: &str) -> bool {
        let mut shelf = self.write();
        let removed = shelf.tools.remove(name).is_some();
        shelf.version += u64::from(removed);
        removed
    }

    /// A copy that goes its own way.
    pub fn fork(&self) -> Self {
        let shelf = self.read().clone();
        Self { shelf: Arc::new(RwLock::new(shelf)) }
    }

    /// Grows with each change.
    pub fn version(&self) -> u64 {
        self.read().version
    }

    pub fn contains(&self, name: &str) -> bool {
        self.read().tools.contains_key(name)
    }

    /// Whether calls of some tool, of ours or of others, are judged by this permission key.
    pub fn is_judged_by(&self, permission: &str) -> bool {
        self.read().tools.values().any(|t| t.tool.permission() == permission)
    }

    /// Who brought the tool with this name.
    pub fn source_of(&self, name: &str) -> Option<Source> {
        self.read().tools.get(name).map(|t| t.source)
    }

    /// All that can be listed, sorted.
    pub fn names(&self) -> Vec<String> {
        let shelf = self.read();
        let listed = shelf.tools.iter().filter(|(_, t)| t.source != Source::Hidden);
        listed.map(|(name, _)| name.clone()).collect()
    }

    /// Everything that can be listed, for people.
    pub fn definitions(&self) -> Vec<ToolDefinition> {
        let shelf = self.read();
        let listed = shelf.tools.values().filter(|t| t.source != Source::Hidden);
        listed.map(|t| t.definition.clone()).collect()
    }

    /// The list for a model: what it can use, what may ever run, and no more than fits.
    pub fn offer(&self, audience: &Audience<'_>) -> Offer {
        let shelf = self.read();
        let visible: Vec<&Arc<Registered>> = shelf
            .tools
            .values()
            .filter(|t| t.source != Source::Hidden)
            .filter(|t| t.tool.suits(audience.model, &|name| shelf.tools.contains_key(name)))
            .filter(|t| !(audience.denied)(t.tool.permission()))
            .collect();
        let total: usize = visible.iter().map(|t| t.weight()).sum();
        let Some(budget) = audience.budget_tokens.filter(|budget| total > *budget) else {
            let definitions = visible.iter().map(|t| t.definition.clone()).collect();
            return Offer { definitions, deferred: Vec::new() };
        };
        let own = |t: &&Arc<Registered>| t.source == Source::BuiltIn;
        let mut used: usize = visible.iter().copied().filter(own).map(|t| t.weight()).sum();
        let mut offer = Offer::default();
        for tool in visible {
            // A large one does not keep the small ones behind it out.
            let fits = own(&tool) || used + tool.weight() <= budget;
            if fits && !own(&tool) {
                used += tool.weight();
            }
            if fits {
                offer.definitions.push(tool.definition.clone());
            } else {
                offer.deferred.push(tool.definition.name.clone());
            }
        }
        if !offer.deferred.is_empty() {
            let finders = [crate::deferred::SEARCH, crate::deferred::CALL];
            let finders = finders.iter().filter_map(|name| shelf.tools.get(*name));
            offer.definitions.extend(finders.map(|t| t.definition.clone()));
        }
        offer
    }

    pub(crate) fn get(&self, name: &str) -> Option<Arc<Registered>> {
        self.read().tools.get(name).cloned()
    }

    pub(crate) fn all(&self) -> Vec<Arc<Registered>> {
        self.read().tools.values().cloned().collect()
    }

    /// For those who look at a registry without keeping it.
    pub fn downgrade(&self) -> WeakRegistry {
        WeakRegistry(Arc::downgrade(&self.shelf))
    }

    fn read(&self) -> RwLockReadGuard<'_, Shelf> {
        self.shelf.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Shelf> {
        self.shelf.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// For tools that look at the registry which holds them, and for who brings tools to it later.
#[derive(Clone)]
pub struct WeakRegistry(std::sync::Weak<RwLock<Shelf>>);

impl WeakRegistry {
    pub fn upgrade(&self) -> Option<Registry> {
        self.0.upgrade().map(|shelf| Registry { shelf })
    }
}
