//! The settings that are read, as types. Keys of OpenCode's that have no meaning here yet are
//! known by name and left alone.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use toolwright_permission::{Action, Mode, Rule};

use crate::hooks::HookSettings;
use crate::mcp::McpSettings;
use crate::permission::PermissionSettings;
use crate::sandbox::SandboxSettings;
use crate::schema::ModeWord;
use crate::tool_settings::{
    ExperimentalSettings, SkillsSettings, WebfetchSettings, WebsearchSettings,
};

/// Every key that may stand at the top of a file.
pub(crate) const KNOWN_KEYS: &[&str] = &[
    "$schema",
    "shell",
    "shell_login",
    "logLevel",
    "server",
    "model",
    "small_model",
    "default_agent",
    "subagent_depth",
    "username",
    "agent",
    "mode",
    "command",
    "provider",
    "enabled_providers",
    "disabled_providers",
    "mcp",
    "permission",
    "permission_mode",
    "tools",
    "instructions",
    "plugin",
    "skills",
    "references",
    "reference",
    "formatter",
    "lsp",
    "snapshot",
    "undo",
    "share",
    "autoshare",
    "autoupdate",
    "watcher",
    "attachment",
    "tool_output",
    "compaction",
    "enterprise",
    "layout",
    "experimental",
    "theme",
    "keybinds",
    "tui",
    "steps",
    "serial_tools",
    "tool_cache",
    "tool_timeout",
    "stale_edits",
    "hooks",
    "webfetch",
    "websearch",
    "sandbox",
];

#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Settings {
    pub model: Option<String>,
    /// The model for small matters: names of sessions. An empty one means none.
    pub small_model: Option<String>,
    pub default_agent: Option<String>,
    pub shell: Option<String>,
    /// Whether commands also see what a login shell sets.
    pub shell_login: Option<bool>,
    pub agent: BTreeMap<String, AgentSettings>,
    /// The older word for agents that people talk to.
    pub mode: BTreeMap<String, AgentSettings>,
    pub command: BTreeMap<String, CommandSettings>,
    pub provider: BTreeMap<String, ProviderSettings>,
    pub permission: Option<PermissionSettings>,
    /// How much is done without a question when nobody says.
    #[schemars(with = "Option<ModeWord>")]
    pub permission_mode: Option<Mode>,
    pub instructions: Vec<String>,
    /// Model calls for one prompt before a run must come to its end.
    pub steps: Option<u32>,
    /// Calls of one message run one after the other.
    pub serial_tools: Option<bool>,
    /// Whether a repeated read of something unchanged is answered as unchanged.
    pub tool_cache: Option<bool>,
    /// Seconds that a tool call may take, where it does not say itself.
    pub tool_timeout: Option<u64>,
    /// What happens to a change of a file that is no longer as the session has read it.
    pub stale_edits: Option<StaleEdits>,
    pub compaction: CompactionSettings,
    /// How deep agents may give work to other agents.
    pub subagent_depth: Option<u32>,
    pub tool_output: ToolOutputSettings,
    pub attachment: AttachmentSettings,
    /// Whether before-images are kept at all.
    pub snapshot: Option<bool>,
    pub undo: UndoSettings,
    pub tools: BTreeMap<String, bool>,
    pub webfetch: WebfetchSettings,
    pub websearch: WebsearchSettings,
    pub sandbox: SandboxSettings,
    pub skills: SkillsSettings,
    #[serde(default)]
    pub plugin: Vec<PluginSpec>,
    pub experimental: ExperimentalSettings,
    /// Language servers; off unless somebody turns them on.
    pub lsp: Option<Switchable<ServerSettings>>,
    /// Programs that bring files into shape after an edit; off unless somebody turns them on.
    pub formatter: Option<Switchable<FormatterSettings>>,
    /// MCP servers by name.
    pub mcp: BTreeMap<String, McpSettings>,
    /// As one file has them; those of all files are in [`crate::Config::hooks`].
    pub(crate) hooks: Option<HookSettings>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum StaleEdits {
    Error,
    Allow,
}

/// All on or off, or on with changes by name, in written order.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "expected true, false or an object of entries by name")]
pub enum Switchable<T> {
    All(bool),
    With(Ordered<T>),
}

#[derive(Debug, Clone, PartialEq, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ServerSettings {
    pub disabled: bool,
    pub command: Option<Vec<String>>,
    pub extensions: Option<Vec<String>>,
    pub env: BTreeMap<String, String>,
    pub initialization: Option<serde_json::Value>,
}

#[derive(Debug, Clone, PartialEq, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub struct FormatterSettings {
    pub disabled: bool,
    pub command: Option<Vec<String>>,
    pub environment: BTreeMap<String, String>,
    pub extensions: Option<Vec<String>>,
}

#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CompactionSettings {
    /// Make room without being asked.
    pub auto: Option<bool>,
    /// Leave out old outputs first.
    pub prune: Option<bool>,
    /// Tokens kept free for the answer.
    pub reserved: Option<u64>,
    /// Tokens of the newest steps that stay as they are.
    pub preserve_recent_tokens: Option<u64>,
}

/// How long outputs are kept that were too large to show, over all sessions.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ToolOutputSettings {
    /// Of one output, what reaches the model.
    pub max_lines: Option<u64>,
    pub max_bytes: Option<u64>,
    pub retention_days: Option<u64>,
    pub retention_bytes: Option<u64>,
}

/// How long before-images are kept, over all sessions.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub struct UndoSettings {
    pub quota_bytes: Option<u64>,
    pub retention_days: Option<u64>,
}

#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub struct AttachmentSettings {
    pub image: ImageSettings,
}

/// What is sent of an image.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ImageSettings {
    pub auto_resize: Option<bool>,
    pub max_width: Option<u32>,
    pub max_height: Option<u32>,
    pub max_base64_bytes: Option<u64>,
}

#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub struct AgentSettings {
    pub model: Option<String>,
    pub prompt: Option<String>,
    pub description: Option<String>,
    pub temperature: Option<f32>,
    pub top_p: Option<f32>,
    pub seed: Option<i64>,
    /// Texts that end the answer.
    pub stop: Vec<String>,
    /// How hard to think: off, minimal, low, medium, high or max.
    #[serde(alias = "variant")]
    pub effort: Option<String>,
    #[serde(alias = "maxSteps")]
    pub steps: Option<u32>,
    pub disable: bool,
    /// Who may choose it: `primary`, `subagent` or `all`.
    pub mode: Option<AgentMode>,
    pub hidden: bool,
    pub permission: Option<PermissionSettings>,
    /// The older way to write rules: tools that are on or off.
    pub tools: BTreeMap<String, bool>,
}

/// Rules for tools that are switched on or off. All that writes files is one key.
pub(crate) fn switched(tools: &BTreeMap<String, bool>) -> Vec<Rule> {
    let rule = |(name, on): (&String, &bool)| Rule {
        permission: match name.as_str() {
            "write" | "edit" | "patch" | "multiedit" | "apply_patch" => "edit".to_owned(),
            other => other.to_owned(),
        },
        pattern: "*".to_owned(),
        action: if *on { Action::Allow } else { Action::Deny },
    };
    tools.iter().map(rule).collect()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum AgentMode {
    /// People talk to it.
    Primary,
    /// Other agents give it work.
    Subagent,
    All,
}

#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ProviderSettings {
    pub name: Option<String>,
    /// The package that OpenCode would load tells which wire format is spoken.
    pub npm: Option<String>,
    pub api: Option<String>,
    pub env: Vec<String>,
    pub options: ProviderOptions,
    pub models: BTreeMap<String, ModelSettings>,
}

#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct ProviderOptions {
    #[serde(rename = "baseURL")]
    pub base_url: Option<String>,
    pub api_key: Option<String>,
    pub headers: BTreeMap<String, String>,
    /// Tries after the first while nothing of an answer has come.
    pub retries: Option<u32>,
    /// Milliseconds until the first event of an answer.
    pub header_timeout: Option<u64>,
    /// Milliseconds between two events.
    pub chunk_timeout: Option<u64>,
    /// A file with certificates to believe besides the system's own.
    pub ca_file: Option<String>,
    /// Whether the server can hold an answer to a JSON Schema beside tools.
    pub structured_output: Option<bool>,
}

#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ModelSettings {
    /// The name that is sent, where it differs from the key.
    pub id: Option<String>,
    pub limit: Option<ModelLimit>,
    /// In models.dev's form; read by whoever knows prices.
    pub cost: Option<serde_json::Value>,
}

#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ModelLimit {
    pub context: Option<u32>,
    pub output: Option<u32>,
}

/// A map that remembers the order in which its keys were written.
#[derive(Debug, Clone, PartialEq)]
pub struct Ordered<T>(pub Vec<(String, T)>);

impl<T> Default for Ordered<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Ordered<T> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor<T>(std::marker::PhantomData<T>);
        impl<'de, T: Deserialize<'de>> serde::de::Visitor<'de> for Visitor<T> {
            type Value = Ordered<T>;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: serde::de::MapAccess<'de>>(
                self,
                mut map: A,
            ) -> Result<Self::Value, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(Ordered(entries))
            }
        }
        deserializer.deserialize_map(Visitor(std::marker::PhantomData))
    }
}

/// A prompt that is kept under a name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CommandSettings {
    pub template: Option<String>,
    pub description: Option<String>,
    pub agent: Option<String>,
    pub model: Option<String>,
    pub subtask: Option<bool>,
}

/// A plugin: a file or a package, with or without options of its own.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum PluginSpec {
    Plain(String),
    WithOptions(String, Value),
}

impl PluginSpec {
    pub fn name(&self) -> &str {
        match self {
            Self::Plain(name) | Self::WithOptions(name, _) => name,
        }
    }

    pub fn options(&self) -> Value {
        match self {
            Self::Plain(_) => Value::Null,
            Self::WithOptions(_, options) => options.clone(),
        }
    }
}
