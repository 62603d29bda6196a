//! Whether a provider would take a tool: one bad definition would have every request refused.

use serde_json::Value;
use toolwright_script::Definition;

const NAME_CHARS: usize = 64;

/// Deeper than this nobody means it.
const DEPTH: usize = 32;

const TYPES: &[&str] = &["object", "array", "string", "number", "integer", "boolean", "null"];

/// Why it cannot be offered, if it cannot.
pub(super) fn unusable(definition: &Definition) -> Option<String> {
    let Definition { name, parameters, .. } = definition;
    if !is_name(name) {
        return Some(format!(
            "its tool \"{name}\" is not used: a name has 1 to {NAME_CHARS} letters, digits, _ and -"
        ));
    }
    let problem = if parameters["type"] != "object" {
        Some("its arguments are no object of named values".to_owned())
    } else if parameters
        .as_object()
        .is_some_and(|p| p.contains_key("anyOf") || p.contains_key("oneOf"))
    {
        Some("its arguments are a choice: put the choice into one of them".to_owned())
    } else {
        wrong(parameters, "args", 0)
    };
    problem.map(|problem| format!("its tool {name} is not used, no model would take it: {problem}"))
}

fn is_name(name: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    !name.is_empty() && name.len() <= NAME_CHARS && name.chars().all(fits)
}

fn wrong(form: &Value, at: &str, depth: usize) -> Option<String> {
    if depth > DEPTH {
        return Some(format!("{at} is nested too deeply"));
    }
    let form = match form {
        Value::Bool(_) => return None,
        Value::Object(form) => form,
        other => return Some(format!("{at} is no schema but {other}")),
    };
    let is_type = |word: &Value| word.as_str().is_some_and(|word| TYPES.contains(&word));
    match form.get("type") {
        Some(Value::Array(words)) if !words.is_empty() && words.iter().all(is_type) => {}
        Some(word) if !is_type(word) => return Some(format!("{at} has the type {word}")),
        _ => {}
    }
    for (key, is_right) in [
        ("properties", Value::is_object as fn(&Value) -> bool),
        ("required", Value::is_array),
        ("enum", Value::is_array),
    ] {
        if let Some(value) = form.get(key).filter(|value| !is_right(value)) {
            return Some(format!("\"{key}\" of {at} is {value}"));
        }
    }
    for (name, inner) in form.get("properties").and_then(Value::as_object).into_iter().flatten() {
        let fits = |c: char| c.is_ascii_alphanumeric() || "_.-$".contains(c);
        if depth == 0 && (name.is_empty() || name.len() > NAME_CHARS || !name.chars().all(fits)) {
            return Some(format!("the name \"{name}\" of an argument"));
        }
        if let Some(problem) = wrong(inner, &format!("{at}.{name}"), depth + 1) {
            return Some(problem);
        }
    }
    let lists = ["anyOf", "oneOf", "allOf", "prefixItems"].iter().filter_map(|key| form.get(*key));
    let choices = lists.filter_map(Value::as_array).flatten();
    let items = form.get("items").into_iter().filter(|items| items.is_object());
    let rest = form.get("additionalProperties").into_iter().filter(|rest| rest.is_object());
    choices.chain(items).chain(rest).find_map(|inner| wrong(inner, at, depth + 1))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_no_provider_takes_is_known() {
        let of = |parameters: Value| {
            let (name, description) = ("t".to_owned(), String::new());
            unusable(&Definition { name, description, parameters })
        };
        for good in [
            json!({ "type": "object", "properties": {} }),
            json!({ "type": "object", "properties": { "a": {}, "b": { "type": ["string", "null"] }, "c": { "anyOf": [{ "type": "string" }, { "const": 1 }] } }, "required": ["a"] }),
            json!({ "type": "object", "properties": { "a": { "type": "array", "items": { "type": "object", "additionalProperties": { "type": "number" } } } } }),
        ] {
            assert_eq!(of(good.clone()), None, "{good}");
        }
        for bad in [
            json!({ "type": "string" }),
            json!({ "type": "object", "anyOf": [] }),
            json!({ "type": "object", "properties": [] }),
            json!({ "type": "object", "properties": { "a": "string" } }),
            json!({ "type": "object", "properties": { "a": { "type": "text" } } }),
            json!({ "type": "object", "properties": { "a b": {} } }),
            json!({ "type": "object", "properties": { "a": { "type": "array", "items": { "type": 1 } } } }),
        ] {
            assert!(of(bad.clone()).is_some(), "{bad}");
        }
    }
}
