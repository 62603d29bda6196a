//! Agents and commands that are written as Markdown files: the head holds the settings, the text below
//! is the prompt or the template.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use crate::folders::ConfigFolder;
use crate::yaml;

/// A file that is larger is no prompt.
const FILE_CAP_BYTES: u64 = 1 << 20;

/// One of them.
pub(crate) struct Text {
    /// The settings' name for what it is.
    pub(crate) group: &'static str,
    pub(crate) name: String,
    pub(crate) path: PathBuf,
    pub(crate) value: Value,
}

/// What the files of a folder say, in the form of the settings, with what is wrong with some of them.
pub(crate) fn read(folder: &ConfigFolder) -> (Vec<Text>, Vec<String>) {
    let (mut texts, mut warnings) = (Vec::new(), Vec::new());
    let mut add = |names: &[&str], group: &'static str, text_key: &str, primary: bool| {
        for (name, path) in folder.texts(names) {
            match definition(&path, text_key) {
                Ok(mut definition) => {
                    if primary {
                        definition.insert("mode".to_owned(), "primary".into());
                    }
                    let own = definition.shift_remove("name");
                    let name = own.as_ref().and_then(Value::as_str).unwrap_or(&name).to_owned();
                    texts.push(Text { group, name, path, value: Value::Object(definition) });
                }
                Err(problem) => {
                    warnings.push(format!("{}: it is not used: {problem}", path.display()))
                }
            }
        }
    };
    add(&["mode", "modes"], "agent", "prompt", true);
    add(&["agent", "agents"], "agent", "prompt", false);
    add(&["command", "commands"], "command", "template", false);
    (texts, warnings)
}

fn definition(path: &Path, text_key: &str) -> Result<Map<String, Value>, String> {
    let size = std::fs::metadata(path).map_err(|e| e.to_string())?.len();
    if size > FILE_CAP_BYTES {
        return Err(format!("it has more than {} KiB", FILE_CAP_BYTES >> 10));
    }
    let bytes = crate::bounded::read(path).map_err(|e| e.to_string())?;
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
