//! A session without what was said in it: who worked how long with which tools at what cost stays.

use serde_json::{Map, Value, json};

use super::json::OWN;

/// What was said, read and written is replaced by a note of its kind; names of tools and models, times,
/// tokens and costs stay.
pub fn sanitized(mut form: Value) -> Value {
    let session = text(&form["info"]["id"]);
    let info = &mut form["info"];
    info["title"] = redacted("session-title", &session);
    info["directory"] = redacted("session-directory", &session);
    if let Some(info) = info.as_object_mut() {
        for key in ["metadata", "path", "summary", "revert", "permission"] {
            info.remove(key);
        }
    }
    for message in form["messages"].as_array_mut().into_iter().flatten() {
        clean_info(&mut message["info"]);
        message["parts"].as_array_mut().into_iter().flatten().for_each(clean_part);
    }
    let children = form.get_mut("children").and_then(Value::as_array_mut);
    for child in children.into_iter().flatten() {
        *child = sanitized(child.take());
    }
    form
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn redacted(kind: &str, id: &str) -> Value {
    json!(format!("[redacted:{kind}:{id}]"))
}

fn clean_info(info: &mut Value) {
    let id = text(&info["id"]);
    if info.get("path").is_some() {
        info["path"] = json!({ "cwd": redacted("cwd", &id), "root": redacted("root", &id) });
    }
    if let Some(data) = info.pointer_mut("/error/data").and_then(Value::as_object_mut) {
        data.retain(|key, _| matches!(key.as_str(), "isRetryable" | "statusCode" | "providerID"));
        data.insert("message".to_owned(), redacted("error", &id));
    }
    for key in ["summary", "system", "structured", "metadata"] {
        if info.get(key).is_some_and(|value| !value.is_boolean())
            && let Some(info) = info.as_object_mut()
        {
            info.remove(key);
        }
    }
}

fn clean_part(part: &mut Value) {
    let id = text(&part["id"]);
    let kind = text(&part["type"]);
    for key in ["text", "prompt", "description", "filename", "url", "name", "source", "files"] {
        if part.get(key).is_some() {
            part[key] = redacted(if key == "text" { &kind } else { key }, &id);
        }
    }
    if kind == "tool" {
        clean_state(&mut part["state"], &id);
    }
    let ending = part.pointer(&format!("/metadata/{OWN}/outcome/ending")).cloned();
    let by_provider = part["metadata"]["providerExecuted"] == true;
    if let Some(part) = part.as_object_mut() {
        part.remove("metadata");
        if let Some(ending) = ending {
            let own = json!({ OWN: { "outcome": { "ending": ending } } });
            part.insert("metadata".to_owned(), own);
        } else if by_provider {
            part.insert("metadata".to_owned(), json!({ "providerExecuted": true }));
        }
    }
}

fn clean_state(state: &mut Value, id: &str) {
    let Some(state) = state.as_object_mut() else { return };
    state.insert("input".to_owned(), json!({ "redacted": redacted("tool-input", id) }));
    for key in ["output", "error", "title", "raw"] {
        if state.contains_key(key) {
            state.insert(key.to_owned(), redacted(&format!("tool-{key}"), id));
        }
    }
    state.insert("metadata".to_owned(), Value::Object(Map::new()));
    state.remove("attachments");
}
