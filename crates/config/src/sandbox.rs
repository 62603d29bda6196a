//! Settings of the sandbox under commands, and what a folder that is not trusted may say about it.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SandboxSettings {
    /// Whether to use one; the best that works here, unless said otherwise.
    pub enabled: Option<Enabled>,
    pub network: Option<SandboxNetwork>,
    /// Folders that commands may write to, beside the workspace, the temporary folder and caches.
    pub writable: Vec<String>,
    /// What is not hidden although it is among the usual key stores.
    pub readable: Vec<String>,
    /// What is hidden beside them.
    pub unreadable: Vec<String>,
    /// Variables that commands see although their names say that they are secret.
    pub environment: Vec<String>,
    /// Whether the caches of package managers and compilers are writable; they are.
    pub caches: Option<bool>,
    pub layer: Option<SandboxLayer>,
    /// What the administrator of the machine says about `enabled`: neither the command line nor the
    /// environment lifts it.
    #[serde(skip)]
    pub managed: Option<Enabled>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "expected true, false or \"auto\"")]
pub enum Enabled {
    Switch(bool),
    Word(EnabledWord),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum EnabledWord {
    Auto,
    On,
    Off,
}

/// What is wanted of the sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SandboxMode {
    /// The best that works here, and none where none does.
    #[default]
    Auto,
    /// Nothing runs without.
    On,
    Off,
}

impl From<Enabled> for SandboxMode {
    fn from(enabled: Enabled) -> Self {
        match enabled {
            Enabled::Switch(true) | Enabled::Word(EnabledWord::On) => Self::On,
            Enabled::Switch(false) | Enabled::Word(EnabledWord::Off) => Self::Off,
            Enabled::Word(EnabledWord::Auto) => Self::Auto,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "expected \"off\", \"on\" or a list of hosts")]
pub enum SandboxNetwork {
    Word(NetworkWord),
    Hosts(Vec<String>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum NetworkWord {
    Off,
    On,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SandboxLayer {
    Auto,
    Bubblewrap,
    Landlock,
}

/// Lists of which every file's entries count.
pub(crate) const ADDED_UP: &[&str] = &["writable", "readable", "unreadable", "environment"];

fn tightens(key: &str, value: &Value) -> bool {
    match key {
        "enabled" => *value == json!(true) || *value == json!("on"),
        "network" => *value == json!("off"),
        "caches" => *value == json!(false),
        "unreadable" => true,
        _ => false,
    }
}

/// Takes out of a file's settings what would loosen the fence that the machine's administrator drew.
/// What they said nothing about stays. Gives the names of what was taken out.
pub(crate) fn keep_managed(settings: &mut Value, managed: &Value) -> Vec<String> {
    let own = settings.get_mut("sandbox").and_then(Value::as_object_mut);
    let (Some(own), Some(managed)) = (own, managed.as_object()) else { return Vec::new() };
    let lifted: Vec<String> = own
        .iter()
        .filter(|(key, value)| managed.contains_key(*key) && !tightens(key, value))
        .map(|(key, _)| key.clone())
        .collect();
    for key in &lifted {
        own.shift_remove(key);
    }
    lifted.into_iter().map(|key| format!("sandbox.{key}")).collect()
}

/// Leaves only what makes the fence tighter. Gives the names of what was taken out.
pub(crate) fn only_tightening(settings: &mut Map<String, Value>) -> Vec<String> {
    let Some(sandbox) = settings.get_mut("sandbox").and_then(Value::as_object_mut) else {
        return Vec::new();
    };
    let loosening: Vec<String> = sandbox
        .iter()
        .filter(|(key, value)| !tightens(key, value))
        .map(|(k, _)| k.clone())
        .collect();
    for key in &loosening {
        sandbox.shift_remove(key);
    }
    loosening.into_iter().map(|key| format!("sandbox.{key}")).collect()
}
