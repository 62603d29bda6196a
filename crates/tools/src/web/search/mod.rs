//! `websearch` and `codesearch`: one question to whichever service is configured.

mod exa;
mod lists;
mod service;

use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use toolwright_tool::{
    Access, Plan, PlanContext, Planned, RunContext, Tool, ToolError, ToolOutput,
};

use service::{Depth, Freshness, Inquiry, ask};
pub use service::{SearchOptions, SearchProvider};

const WEB: &str = "websearch";
const CODE: &str = "codesearch";

const WEB_LIMIT: Duration = Duration::from_secs(25);
const CODE_LIMIT: Duration = Duration::from_secs(30);

/// Searches the web.
pub struct WebSearch {
    provider: Option<Arc<dyn SearchProvider>>,
    description: String,
}

impl WebSearch {
    /// `year` is told to the model, which knows another one.
    pub fn new(provider: Option<Arc<dyn SearchProvider>>, year: i16) -> Self {
        let description = include_str!("websearch.md").replace("{year}", &year.to_string());
        Self { provider, description }
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WebArguments {
    /// What to look for.
    query: String,
    /// How many results; 8 unless given.
    #[serde(default)]
    num_results: Option<u32>,
    /// fallback takes kept pages first; preferred fetches them anew.
    #[serde(default)]
    livecrawl: Freshness,
    /// auto, fast or deep.
    #[serde(default, rename = "type")]
    depth: Depth,
    /// How much text of the results is wanted, in characters.
    #[serde(default)]
    context_max_characters: Option<u32>,
}

const USUAL_RESULTS: u32 = 8;
const MOST_RESULTS: u32 = 50;

/// What is looked for, with the service that is asked if there is one.
pub struct Prepared {
    inquiry: Inquiry,
    provider: Arc<dyn SearchProvider>,
}

impl Tool for WebSearch {
    type Arguments = WebArguments;
    type Prepared = Prepared;

    fn name(&self) -> &str {
        WEB
    }

    fn description(&self) -> &str {
        &self.description
    }

    async fn plan(&self, arguments: WebArguments, _: &PlanContext) -> Planned<Prepared> {
        let WebArguments { query, num_results, livecrawl, depth, context_max_characters } =
            arguments;
        let inquiry = Inquiry {
            results: num_results.unwrap_or(USUAL_RESULTS).clamp(1, MOST_RESULTS),
            livecrawl,
            depth,
            characters: context_max_characters,
            code_tokens: None,
            query,
        };
        prepare(WEB, "search the web", inquiry, self.provider.clone(), WEB_LIMIT)
    }

    async fn run(&self, call: Prepared, context: RunContext) -> Result<ToolOutput, ToolError> {
        let label = format!("{} Web Search", call.provider.name());
        let text = search(WEB, &call, WEB_LIMIT, &context).await?;
        let text = text
            .unwrap_or_else(|| "No search results found. Please try a different query.".to_owned());
        Ok(ToolOutput::text(text)
            .titled(format!("{label}: {}", call.inquiry.query))
            .with_details(json!({ "provider": call.provider.id() })))
    }
}

/// Searches code and its documentation.
pub struct CodeSearch {
    provider: Option<Arc<dyn SearchProvider>>,
}

impl CodeSearch {
    pub fn new(provider: Option<Arc<dyn SearchProvider>>) -> Self {
        Self { provider }
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CodeArguments {
    /// What to look for: a library, an API, a task.
    query: String,
    /// How many tokens of text to return, 1000 to 50000; 5000 unless given.
    #[serde(default)]
    tokens_num: Option<f64>,
}

const USUAL_TOKENS: u32 = 5_000;
const TOKENS: std::ops::RangeInclusive<u32> = 1_000..=50_000;

impl Tool for CodeSearch {
    type Arguments = CodeArguments;
    type Prepared = Prepared;

    fn name(&self) -> &str {
        CODE
    }

    fn description(&self) -> &str {
        include_str!("codesearch.md")
    }

    async fn plan(&self, arguments: CodeArguments, _: &PlanContext) -> Planned<Prepared> {
        let CodeArguments { query, tokens_num } = arguments;
        // The cast bounds what no token count is.
        let tokens = tokens_num.map_or(USUAL_TOKENS, |n| n as u32);
        let tokens = tokens.clamp(*TOKENS.start(), *TOKENS.end());
        let inquiry = Inquiry { code_tokens: Some(tokens), ..Inquiry::usual(query) };
        prepare(CODE, "search code", inquiry, self.provider.clone(), CODE_LIMIT)
    }

    async fn run(&self, call: Prepared, context: RunContext) -> Result<ToolOutput, ToolError> {
        let text = search(CODE, &call, CODE_LIMIT, &context).await?;
        let text = text.unwrap_or_else(|| {
            "Nothing was found. Try another query, with the library's name or other words for the task."
                .to_owned()
        });
        Ok(ToolOutput::text(text)
            .titled(format!("Code search: {}", call.inquiry.query))
            .with_details(json!({ "provider": call.provider.id() })))
    }
}

fn prepare(
    permission: &'static str,
    what: &str,
    inquiry: Inquiry,
    provider: Option<Arc<dyn SearchProvider>>,
    limit: Duration,
) -> Planned<Prepared> {
    let access = Access::Fetch { permission, url: inquiry.query.clone() };
    let plan = Plan::new(format!("{what} for {:?}", inquiry.query), vec![access]);
    let failed =
        |text: String| Planned::failed(Plan::new(what, Vec::new()), ToolError::for_model(text));
    let Some(provider) = provider else {
        return failed(format!(
            "{permission} is off: no search service is configured. The user can set EXA_API_KEY, \
             BRAVE_API_KEY or TAVILY_API_KEY, or websearch (provider, apiKey, baseURL) in the settings."
        ));
    };
    if inquiry.query.trim().is_empty() {
        return failed("query is empty: say what to look for.".to_owned());
    }
    // Ours is the better word for what took too long.
    let plan = plan.within(limit + Duration::from_secs(5));
    Planned::ready(plan, Prepared { inquiry, provider })
}

/// What was found as text, or nothing.
async fn search(
    tool: &str,
    call: &Prepared,
    limit: Duration,
    context: &RunContext,
) -> Result<Option<String>, ToolError> {
    let asked = tokio::select! {
        asked = tokio::time::timeout(limit, ask(call.provider.as_ref(), &call.inquiry)) => asked,
        () = context.cancel.cancelled() => {
            return Err(ToolError::for_model("Interrupted before the service answered."));
        }
    };
    let found = asked.map_err(|_| ToolError::for_model(format!("{tool} request timed out")))?;
    found.map_err(ToolError::ForModel)
}
