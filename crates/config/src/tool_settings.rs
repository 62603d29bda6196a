//! Settings of single tools.

use schemars::JsonSchema;
use serde::Deserialize;

/// Which private addresses `webfetch` may fetch.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub struct WebfetchSettings {
    pub allow_private: bool,
    pub allow_hosts: Vec<String>,
}

/// Which service answers `websearch` and `codesearch`.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct WebsearchSettings {
    /// exa, brave, tavily, searxng or custom.
    pub provider: Option<String>,
    pub api_key: Option<String>,
    /// The variable that holds the key.
    pub env: Option<String>,
    #[serde(rename = "baseURL")]
    pub base_url: Option<String>,
}

#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SkillsSettings {
    /// Further folders with skills.
    pub paths: Vec<String>,
}

#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ExperimentalSettings {
    /// Whether the tool `batch` is offered.
    pub batch_tool: bool,
    /// Whether the tool `execute` is offered: a program of the model's that calls tools.
    pub code_mode: bool,
    /// Milliseconds for calls of MCP tools whose server does not say.
    pub mcp_timeout: Option<u64>,
}
