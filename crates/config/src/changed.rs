//! Settings that somebody changed after they were read: a plugin.

use std::path::Path;

use serde_json::Value;
use toolwright_permission::{Layer, LayerKind};

use crate::load::Config;
use crate::mcp::{self, McpOrigin};
use crate::settings::{Settings, switched};

impl Config {
    /// The same with `value` in place of what the files said; `by` is who says so. Rules that it brings
    /// count as the project's: they lift nothing that is the user's.
    pub fn changed(&self, value: Value, by: &Path, home: &str) -> Result<Self, String> {
        let mut value = value;
        // What fences programs in is not theirs to say.
        match (value.as_object_mut(), self.value.get("sandbox")) {
            (Some(map), Some(own)) => drop(map.insert("sandbox".to_owned(), own.clone())),
            (Some(map), None) => drop(map.remove("sandbox")),
            (None, _) => {}
        }
        let mut settings: Settings = serde_path_to_error::deserialize(&value)
            .map_err(|e| format!("{}: {}", e.path(), e.inner()))?;
        settings.sandbox.clone_from(&self.settings.sandbox);
        let mut config = Self { settings, value, ..self.clone() };
        let is_new = |key: &str| config.value.get(key) != self.value.get(key);
        let mut rules = Vec::new();
        if is_new("tools") {
            rules.extend(switched(&config.settings.tools));
        }
        if is_new("permission") {
            rules.extend(config.settings.permission.as_ref().map_or(Vec::new(), |p| p.rules(home)));
        }
        if !rules.is_empty() {
            let (kind, origin) = (LayerKind::Project, by.display().to_string());
            config.layers.push(Layer { kind, origin, rules });
        }
        let servers = config.value.get("mcp").and_then(Value::as_object);
        for (name, entry) in servers.into_iter().flatten() {
            if self.value["mcp"].get(name) != Some(entry) && mcp::defines(entry) {
                let origin = McpOrigin { path: by.to_owned(), kind: LayerKind::Project };
                config.mcp_origins.insert(name.clone(), origin);
            }
        }
        Ok(config)
    }
}
