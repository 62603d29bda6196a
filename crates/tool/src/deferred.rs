//! Tools that are too many to be shown: the model finds them by searching and calls them through one
//! door, so that the list it was given at the start never has to change.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::access::Plan;
use crate::registry::{Registered, Registry, Source, WeakRegistry};
use crate::tool::{PlanContext, Planned, RunContext, Tool, ToolError, ToolOutput};

pub(crate) const SEARCH: &str = "tool_search";
pub(crate) const CALL: &str = "tool_call";

/// Tools that one search shows when nobody says how many.
const USUAL_MATCHES: usize = 5;
const MOST_MATCHES: usize = 25;

/// What a name counts for against a description when both hold the word.
const NAME_WEIGHT: usize = 4;

impl Registry {
    /// Adds the two tools with which deferred ones are reached. They are listed only for a model that
    /// has something deferred.
    pub fn with_search(self) -> Self {
        let search = ToolSearch { registry: self.downgrade() };
        self.register_from(Source::Hidden, Arc::new(search));
        self.register_from(Source::Hidden, Arc::new(ToolCall));
        self
    }
}

struct ToolSearch {
    registry: WeakRegistry,
}

#[derive(Deserialize, JsonSchema)]
struct Search {
    /// What the tool should do, in a few words, or its exact name.
    query: String,
    /// How many tools to show at most (5 if not given).
    limit: Option<usize>,
}

impl Tool for ToolSearch {
    type Arguments = Search;
    type Prepared = Search;

    fn name(&self) -> &str {
        SEARCH
    }

    fn description(&self) -> &str {
        "Finds more tools by name or purpose: there are some that are not in your list. Shows each with its parameters; call one with tool_call."
    }

    async fn plan(&self, search: Search, _: &PlanContext) -> Planned<Search> {
        Planned::ready(Plan::new(format!("find tools for {:?}", search.query), Vec::new()), search)
    }

    async fn run(&self, search: Search, context: RunContext) -> Result<ToolOutput, ToolError> {
        let mut all = self.registry.upgrade().map(|r| r.all()).unwrap_or_default();
        // What can never be called need not be found.
        let gate = context.pipeline.gate();
        all.retain(|entry| !gate.always_denies(entry.tool.permission()));
        let limit = search.limit.unwrap_or(USUAL_MATCHES).clamp(1, MOST_MATCHES);
        let found = find(&all, &search.query, limit);
        if found.is_empty() {
            let names: Vec<&str> = searchable(&all).map(|t| t.definition.name.as_str()).collect();
            let text = format!("No tool fits {:?}. There are: {}.", search.query, names.join(", "));
            return Ok(ToolOutput::text(text).titled("no match"));
        }
        let shown: Vec<Value> = found
            .iter()
            .map(|t| {
                let d = &t.definition;
                json!({ "name": d.name, "description": d.description, "parameters": d.parameters })
            })
            .collect();
        let text = shown.iter().map(Value::to_string).collect::<Vec<_>>().join("\n");
        let title = format!("{} found", found.len());
        Ok(ToolOutput::text(text).titled(title))
    }
}

fn searchable(all: &[Arc<Registered>]) -> impl Iterator<Item = &Arc<Registered>> {
    all.iter().filter(|t| !matches!(t.source, Source::Hidden | Source::BuiltIn))
}

/// The best first: an exact name, then by how many of the words are found and where.
fn find<'a>(all: &'a [Arc<Registered>], query: &str, limit: usize) -> Vec<&'a Arc<Registered>> {
    let query = query.to_lowercase();
    let words: Vec<&str> = query.split(|c: char| !c.is_alphanumeric()).collect();
    let words: Vec<&str> = words.into_iter().filter(|w| w.len() > 1).collect();
    let score = |tool: &Registered| {
        let name = tool.definition.name.to_lowercase();
        if name == query.trim() {
            return usize::MAX;
        }
        let description = tool.definition.description.to_lowercase();
        let of = |word: &&str| {
            usize::from(name.contains(*word)) * NAME_WEIGHT
                + usize::from(description.contains(*word))
        };
        words.iter().map(of).sum()
    };
    let mut scored: Vec<_> =
        searchable(all).map(|t| (score(t), t)).filter(|(score, _)| *score > 0).collect();
    // Stable: equals stay in the order of their names.
    scored.sort_by_key(|(score, _)| std::cmp::Reverse(*score));
    scored.into_iter().take(limit).map(|(_, tool)| tool).collect()
}

/// Never runs itself: a call of it is read as the call that it holds.
struct ToolCall;

#[derive(Deserialize, JsonSchema)]
struct Wrapped {
    /// The tool to call.
    name: String,
    /// Its arguments.
    #[serde(default)]
    arguments: serde_json::Map<String, Value>,
}

impl Tool for ToolCall {
    type Arguments = Wrapped;
    type Prepared = ();

    fn name(&self) -> &str {
        CALL
    }

    fn description(&self) -> &str {
        "Calls a tool that tool_search has shown."
    }

    async fn plan(&self, wrapped: Wrapped, _: &PlanContext) -> Planned<()> {
        let Wrapped { name, arguments } = wrapped;
        let text = format!("{name} with {} arguments was not unwrapped.", arguments.len());
        Planned::failed(Plan::new(name, Vec::new()), ToolError::for_model(text))
    }

    async fn run(&self, (): (), _: RunContext) -> Result<ToolOutput, ToolError> {
        Err(ToolError::for_model("There is nothing to call."))
    }
}

/// The call inside a `tool_call`: name and arguments as text.
pub(crate) fn unwrap(arguments: &Value) -> Option<(String, String)> {
    let name = arguments.get("name")?.as_str()?.trim().to_owned();
    let inner = match arguments.get("arguments") {
        None | Some(Value::Null) => String::new(),
        // Written as text by some models; it is read like any other arguments.
        Some(Value::String(text)) => text.clone(),
        Some(value) => value.to_string(),
    };
    (!name.is_empty() && name != CALL).then_some((name, inner))
}
