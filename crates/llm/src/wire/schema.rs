//! Tool schemas in the forms that providers take.

use serde_json::{Map, Value, json};

/// Keys that Gemini's subset of JSON Schema knows.
const GEMINI_KEYS: &[&str] = &[
    "type",
    "format",
    "title",
    "description",
    "nullable",
    "enum",
    "items",
    "maxItems",
    "minItems",
    "properties",
    "required",
    "minimum",
    "maximum",
    "minLength",
    "maxLength",
    "pattern",
    "anyOf",
    "default",
    "propertyOrdering",
];

/// Gemini refuses a request over one unknown keyword: what it does not know is left out, what can be
/// said another way is.
pub(super) fn for_gemini(schema: &Value) -> Value {
    let Value::Object(object) = schema else {
        // `true` means anything.
        return json!({ "type": "string" });
    };
    let mut out = Map::new();
    for (key, value) in object.iter().filter(|(key, _)| GEMINI_KEYS.contains(&key.as_str())) {
        let value = match (key.as_str(), value) {
            ("properties", Value::Object(properties)) => {
                let inner = properties.iter().map(|(name, s)| (name.clone(), for_gemini(s)));
                Value::Object(inner.collect())
            }
            ("items", Value::Array(tuple)) => tuple.first().map_or(Value::Null, for_gemini),
            ("items", inner) => for_gemini(inner),
            ("anyOf", Value::Array(choices)) => {
                Value::Array(choices.iter().map(for_gemini).collect())
            }
            // Only strings can be enumerated.
            ("enum", Value::Array(values)) => Value::Array(
                values
                    .iter()
                    .map(|v| v.as_str().map_or_else(|| json!(v.to_string()), |s| json!(s)))
                    .collect(),
            ),
            (_, other) => other.clone(),
        };
        out.insert(key.clone(), value);
    }
    if let Some(choices) = object.get("oneOf").and_then(Value::as_array) {
        out.insert("anyOf".into(), Value::Array(choices.iter().map(for_gemini).collect()));
    }
    if let Some(constant) = object.get("const") {
        let text = constant.as_str().map_or_else(|| constant.to_string(), str::to_owned);
        out.insert("enum".into(), json!([text]));
    }
    split_types(&mut out);
    keep_known_format(&mut out);
    if out.contains_key("enum") {
        out.insert("type".into(), json!("string"));
    }
    let kind = out.get("type").and_then(Value::as_str).unwrap_or_default().to_owned();
    if kind == "array" && out.get("items").is_none_or(Value::is_null) {
        out.insert("items".into(), json!({ "type": "string" }));
    }
    if kind != "object" {
        out.shift_remove("properties");
        out.shift_remove("required");
    } else {
        keep_known_required(&mut out);
    }
    Value::Object(out)
}

/// `["string", "null"]` is a nullable string; several types are a choice.
fn split_types(out: &mut Map<String, Value>) {
    let Some(Value::Array(types)) = out.get("type") else { return };
    let nullable = types.iter().any(|t| t == "null");
    let others: Vec<Value> = types.iter().filter(|t| *t != "null").cloned().collect();
    match others.as_slice() {
        [only] => {
            out.insert("type".into(), only.clone());
        }
        several => {
            let choices: Vec<Value> = several.iter().map(|t| json!({ "type": t })).collect();
            out.shift_remove("type");
            out.insert("anyOf".into(), Value::Array(choices));
        }
    }
    if nullable {
        out.insert("nullable".into(), json!(true));
    }
}

/// Other formats are refused with the whole request.
fn keep_known_format(out: &mut Map<String, Value>) {
    let kind = out.get("type").and_then(Value::as_str).unwrap_or_default();
    let format = out.get("format").and_then(Value::as_str).unwrap_or_default();
    let known = matches!(
        (kind, format),
        ("string", "enum" | "date-time")
            | ("integer", "int32" | "int64")
            | ("number", "float" | "double")
    );
    if !known {
        out.shift_remove("format");
    }
    // A leaf of no type is refused too.
    if !out.contains_key("type") && !out.contains_key("anyOf") && !out.contains_key("enum") {
        let kind = if out.contains_key("properties") { "object" } else { "string" };
        out.insert("type".into(), json!(kind));
    }
}

fn keep_known_required(out: &mut Map<String, Value>) {
    let known: Vec<String> = out
        .get("properties")
        .and_then(Value::as_object)
        .map(|p| p.keys().cloned().collect())
        .unwrap_or_default();
    if let Some(Value::Array(required)) = out.get_mut("required") {
        required.retain(|name| name.as_str().is_some_and(|n| known.iter().any(|k| k == n)));
    }
}
