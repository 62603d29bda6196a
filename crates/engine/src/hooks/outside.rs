//! Points that lie outside of the loop: whoever drives it asks there.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value, json};
use toolwright_llm::Content;

use super::{Hooks, Point, parts_of, taken_parts};

impl Hooks {
    /// A command as hooks leave it, or why it must not be said.
    pub async fn show_command(
        &self,
        command: &str,
        arguments: &str,
        content: Vec<Content>,
    ) -> Result<Vec<Content>, String> {
        if !self.any(Point::CommandBefore) {
            return Ok(content);
        }
        let input = json!({ "command": command, "arguments": arguments });
        let output = json!({ "parts": parts_of(&content) });
        let mut ran = self.run(Point::CommandBefore, &input, output).await;
        match ran.block {
            Some(reason) => Err(reason),
            None => Ok(taken_parts(ran.output["parts"].take()).unwrap_or(content)),
        }
    }

    /// What a shell command in this folder is to see beside its environment.
    pub async fn shell_variables(&self, directory: &Path) -> BTreeMap<String, String> {
        if !self.any(Point::ShellEnv) {
            return BTreeMap::new();
        }
        let input = json!({ "cwd": directory });
        let ran = self.run(Point::ShellEnv, &input, json!({ "env": {} })).await;
        let variables = ran.output["env"].as_object().into_iter().flatten();
        let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let named = |(name, _): &(&String, &Value)| !name.is_empty() && !name.contains(['=', '\0']);
        let usable = variables.filter(named).filter(|(_, value)| !value.is_null());
        usable.map(|(name, value)| (name.clone(), text(value).replace('\0', ""))).collect()
    }
}
