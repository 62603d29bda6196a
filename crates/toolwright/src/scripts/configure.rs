//! Plugins that change the settings (`config`) or bring models (`provider`): asked once, before anything
//! is made of the settings.

use std::path::Path;
use std::sync::{Arc, PoisonError};

use serde_json::Value;
use toolwright_config::find_skills;
use toolwright_engine::PermissionGate;
use toolwright_permission::{Mode, Stance};
use toolwright_script::Configured;

use super::Scripts;
use crate::mcp;
use crate::workbench::Workbench;

/// Hooks for which a plugin is run before a session begins.
const CONFIGURING: &[&str] = &["config", "provider"];

/// What plugins are not shown of the settings, by the names on the way to it; a star is any name.
const SECRET: &[&[&str]] = &[
    &["provider", "*", "options", "apiKey"],
    &["provider", "*", "options", "headers"],
    &["mcp", "*", "headers"],
    &["mcp", "*", "environment"],
    &["mcp", "*", "oauth"],
    &["websearch", "apiKey"],
];

impl Workbench {
    /// Lets plugins change the settings, where some want to. Gives what went wrong; the settings stay as
    /// they were then. A second time does nothing. [`Self::desk`] does it by itself: this is for
    /// whoever looks at the settings before.
    pub async fn prepare(&mut self, mode: Option<Mode>) -> Vec<String> {
        if std::mem::replace(&mut self.is_prepared, true) {
            return Vec::new();
        }
        let (scripts, told) = Scripts::find(self);
        let Ok(agent) = self.agent(None) else { return Vec::new() };
        if scripts.plugins.is_empty() {
            self.keep_scripts(scripts, told);
            return Vec::new();
        }
        let stance = Stance::from(self.mode_of(None, mode));
        let gate = Arc::new(PermissionGate::new(self.policy(&agent, &stance), None));
        scripts.stand_under(&gate);
        let mut notices = Vec::new();
        for plugin in &scripts.plugins {
            let (shown, hidden) = without_secrets(&self.config.value);
            scripts.show_settings(shown);
            // What fails here is said when its tools are asked for.
            let Ok(described) = plugin.describe(scripts.memory.as_deref()).await else { continue };
            if !described.hooks.iter().any(|hook| CONFIGURING.contains(&hook.as_str())) {
                continue;
            }
            let path = plugin.script().path().to_owned();
            let said = |problem: String| format!("{}: {problem}", path.display());
            match plugin.configure().await {
                Ok(Configured { mut settings, problems }) => {
                    notices.extend(problems.into_iter().map(said));
                    put_back(&mut settings, hidden);
                    if let Err(problem) = self.take_over(settings, &path) {
                        notices.push(said(format!(
                            "what its hook config makes of the settings is not used: {problem}"
                        )));
                    }
                }
                Err(error) => notices.push(said(format!("it cannot change the settings: {error}"))),
            }
        }
        scripts.show_settings(without_secrets(&self.config.value).0);
        self.keep_scripts(scripts, told);
        notices
    }

    /// The first session goes on with the plugins that were begun here.
    fn keep_scripts(&self, scripts: Scripts, told: Vec<String>) {
        *self.begun.lock().unwrap_or_else(PoisonError::into_inner) = Some((scripts, told));
    }

    pub(crate) fn scripts(&self) -> (Scripts, Vec<String>) {
        let begun = self.begun.lock().unwrap_or_else(PoisonError::into_inner).take();
        begun.unwrap_or_else(|| {
            let (scripts, told) = Scripts::find(self);
            scripts.show_settings(without_secrets(&self.config.value).0);
            (scripts, told)
        })
    }

    fn take_over(&mut self, value: Value, by: &Path) -> Result<(), String> {
        if value == self.config.value {
            return Ok(());
        }
        let home = self.paths.home.display().to_string();
        let mut config = self.config.changed(value, by, &home)?;
        if config.value.get("skills") != self.config.value.get("skills") {
            let (directory, worktree) = (self.workspace.directory(), self.workspace.worktree());
            let paths = &config.settings.skills.paths;
            self.skills = find_skills(&self.paths, directory, worktree, paths).found.into();
        }
        if config.value.get("mcp") != self.config.value.get("mcp") {
            self.mcp =
                mcp::servers(&mut config, &self.workspace, self.credentials(), &self.protection)?;
        }
        self.config = config;
        Ok(())
    }
}

type Hidden = Vec<(Vec<String>, Value)>;

pub(super) fn without_secrets(value: &Value) -> (Value, Hidden) {
    let (mut shown, mut hidden) = (value.clone(), Vec::new());
    for path in SECRET {
        take(&mut shown, path, &mut Vec::new(), &mut hidden);
    }
    (shown, hidden)
}

fn take(value: &mut Value, path: &[&str], before: &mut Vec<String>, hidden: &mut Hidden) {
    let (Some(map), [first, rest @ ..]) = (value.as_object_mut(), path) else { return };
    let keys: Vec<String> =
        map.keys().filter(|key| *first == "*" || key == first).cloned().collect();
    for key in keys {
        before.push(key.clone());
        if rest.is_empty() {
            hidden.extend(map.shift_remove(&key).map(|value| (before.clone(), value)));
        } else if let Some(inner) = map.get_mut(&key) {
            take(inner, rest, before, hidden);
        }
        before.pop();
    }
}

/// What is still there gets its secrets again, unless it was given others.
fn put_back(value: &mut Value, hidden: Hidden) {
    for (path, secret) in hidden {
        let Some((last, folders)) = path.split_last() else { continue };
        let holder = folders.iter().try_fold(&mut *value, |value, key| value.get_mut(key));
        if let Some(holder) = holder.and_then(Value::as_object_mut) {
            holder.entry(last.clone()).or_insert(secret);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn plugins_see_no_keys_and_cannot_lose_them() {
        let own = json!({
            "model": "a/b",
            "provider": { "a": { "options": { "apiKey": "k", "baseURL": "u" } }, "b": {} },
            "mcp": { "m": { "headers": { "x": "secret" } }, "n": { "environment": { "T": "t" } } },
        });
        let (mut shown, hidden) = without_secrets(&own);
        let text = shown.to_string();
        assert!(!text.contains("\"k\"") && !text.contains("secret") && !text.contains("\"t\""));
        assert_eq!(shown["provider"]["a"]["options"]["baseURL"], "u");
        shown["mcp"].as_object_mut().unwrap().remove("m");
        shown["mcp"]["n"]["environment"] = json!({ "T": "theirs" });
        put_back(&mut shown, hidden);
        assert_eq!(shown["provider"]["a"]["options"]["apiKey"], "k");
        assert!(shown["mcp"].get("m").is_none());
        assert_eq!(shown["mcp"]["n"]["environment"]["T"], "theirs");
    }
}
