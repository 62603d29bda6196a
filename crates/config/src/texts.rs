//! Agents and commands that are written as Markdown files: the head holds the settings, the text below
//! is the prompt or the template.

use std::path::Path;

use serde_json::{Map, Value};

use crate::folders::ConfigFolder;
use crate::yaml;

/// A file that is larger is no prompt.
const FILE_CAP_BYTES: u64 = 1 << 20;

/// What the files of a folder say, in the form of the settings, with what is wrong with some of them.
pub(crate) fn read(folder: &ConfigFolder) -> (Value, Vec<String>) {
    let (mut agents, mut commands, mut warnings) = (Map::new(), Map::new(), Vec::new());
    let mut add = |names: &[&str], into: &mut Map<String, Value>, text_key: &str, primary: bool| {
        for (name, path) in folder.texts(names) {
            match definition(&path, text_key) {
                Ok(mut definition) => {
                    if primary {
                        definition.insert("mode".to_owned(), "primary".into());
                    }
                    let own = definition.shift_remove("name");
                    let name = own.as_ref().and_then(Value::as_str).unwrap_or(&name).to_owned();
                    into.insert(name, Value::Object(definition));
                }
                Err(problem) => {
                    warnings.push(format!("{}: it is not used: {problem}", path.display()))
                }
            }
        }
    };
    add(&["mode", "modes"], &mut agents, "prompt", true);
    add(&["agent", "agents"], &mut agents, "prompt", false);
    add(&["command", "commands"], &mut commands, "template", false);
    let mut value = Map::new();
    for (key, found) in [("agent", agents), ("command", commands)] {
        if !found.is_empty() {
            value.insert(key.to_owned(), Value::Object(found));
        }
    }
    (Value::Object(value), warnings)
}

fn definition(path: &Path, text_key: &str) -> Result<Map<String, Value>, String> {
    let size = std::fs::metadata(path).map_err(|e| e.to_string())?.len();
    if size > FILE_CAP_BYTES {
        return Err(format!("it has more than {} KiB", FILE_CAP_BYTES >> 10));
    }
    let bytes = std::fs::read(path).map_err(|e| e.to_string())?;
    let text = String::from_utf8(bytes).map_err(|_| "it is not UTF-8".to_owned())?;
    let (head, body) = match crate::front_matter::cut(&text) {
        Some((head, body)) => {
            (yaml::parse_kindly(head).map_err(|e| format!("its head is not right: {e}"))?, body)
        }
        None => (Value::Object(Map::new()), text.as_str()),
    };
    let Value::Object(mut map) = head else {
        return Err("its head is not a list of keys and values".to_owned());
    };
    if !body.trim().is_empty() {
        map.insert(text_key.to_owned(), Value::String(body.trim().to_owned()));
    }
    Ok(map)
}
