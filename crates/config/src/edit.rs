//! Changes to a settings file that leave everything else in it, comments included, as it is.

use jsonc_parser::cst::{CstInputValue, CstRootNode};
use serde_json::Value;

use crate::file::JSONC;

/// The text with `section.name` set to `value`, or without it. Fails with what is wrong with the text.
pub fn set_entry(
    text: &str,
    section: &str,
    name: &str,
    value: Option<&Value>,
) -> Result<String, String> {
    let text = if text.trim().is_empty() { "{}" } else { text };
    let root = CstRootNode::parse(text, &JSONC).map_err(|e| format!("not valid JSON: {e}"))?;
    let top = root.object_value().ok_or("expected an object of settings")?;
    match value {
        Some(value) => {
            let entries = top
                .object_value_or_create(section)
                .ok_or_else(|| format!("\"{section}\" is not an object"))?;
            entries.ensure_multiline();
            match entries.get(name) {
                Some(entry) => entry.set_value(input(value)),
                None => {
                    entries.append(name, input(value));
                }
            }
            top.ensure_multiline();
        }
        None => {
            let entry = top.object_value(section).and_then(|entries| entries.get(name));
            entry.ok_or_else(|| format!("there is no {section}.{name}"))?.remove();
        }
    }
    let mut out = root.to_string();
    if !out.ends_with('\n') {
        out.push('\n');
    }
    Ok(out)
}

fn input(value: &Value) -> CstInputValue {
    match value {
        Value::Null => CstInputValue::Null,
        Value::Bool(truth) => CstInputValue::Bool(*truth),
        Value::Number(number) => CstInputValue::Number(number.to_string()),
        Value::String(text) => CstInputValue::String(text.clone()),
        Value::Array(items) => CstInputValue::Array(items.iter().map(input).collect()),
        Value::Object(entries) => CstInputValue::Object(
            entries.iter().map(|(key, value)| (key.clone(), input(value))).collect(),
        ),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_people_wrote_stays_as_they_wrote_it() {
        let text = "{\n  // my model\n  \"model\": \"a/b\", // the good one\n  \"mcp\": {\n    \"old\": { \"enabled\": false },\n  },\n}\n";
        let added = set_entry(text, "mcp", "new", Some(&json!({"command": ["x"]}))).unwrap();
        assert!(added.contains("// my model\n  \"model\": \"a/b\", // the good one"), "{added}");
        assert!(added.contains("\"old\": { \"enabled\": false }"), "{added}");
        let changed = set_entry(&added, "mcp", "new", Some(&json!({"enabled": true}))).unwrap();
        assert!(!changed.contains("command"), "{changed}");
        let removed = set_entry(&changed, "mcp", "new", None).unwrap();
        assert!(!removed.contains("new") && removed.contains("the good one"), "{removed}");
        assert!(set_entry(&removed, "mcp", "new", None).is_err());
        assert!(set_entry("{", "mcp", "x", None).is_err());
        assert!(set_entry("{\"mcp\": 1}", "mcp", "x", Some(&json!({}))).is_err());
    }

    #[test]
    fn an_empty_file_becomes_one_that_is_read() {
        let made = set_entry("", "mcp", "a", Some(&json!({"url": "http://x"}))).unwrap();
        let read: Value = serde_json::from_str(&made).unwrap();
        assert_eq!(read, json!({"mcp": {"a": {"url": "http://x"}}}));
    }
}
