//! The parameters of a server's tool in a form that every model's API takes.

use serde_json::{Map, Value, json};

/// How deep references are followed. A type that holds itself has no end.
const DEPTH_CAP: usize = 12;

/// Schemas in one tool. References that fan out would grow without end.
const NODES_CAP: usize = 2_000;

/// Keys that say nothing about values.
const DROPPED: &[&str] =
    &["$schema", "$id", "$anchor", "$comment", "$defs", "definitions", "$dynamicAnchor"];

/// Always an object with properties; nothing in it points elsewhere.
pub(crate) fn sanitise(schema: &Map<String, Value>) -> Value {
    let root = Value::Object(schema.clone());
    let mut walk = Walk { root: &root, nodes: 0 };
    let mut clean = walk.clean(&root, 0);
    let object = match &mut clean {
        Value::Object(object) => object,
        _ => return empty(),
    };
    // Some APIs refuse a choice at the top: its parts are offered together.
    for key in ["anyOf", "oneOf", "allOf"] {
        let Some(Value::Array(choices)) = object.shift_remove(key) else { continue };
        let mut required: Option<Vec<Value>> = None;
        for choice in &choices {
            for (name, property) in choice["properties"].as_object().into_iter().flatten() {
                let known = object.entry("properties").or_insert_with(|| json!({}));
                if let Some(known) = known.as_object_mut() {
                    known.entry(name).or_insert_with(|| property.clone());
                }
            }
            let own = choice["required"].as_array().cloned().unwrap_or_default();
            required = Some(match (required, key) {
                (None, _) => own,
                (Some(all), "allOf") => [all, own].concat(),
                (Some(all), _) => all.into_iter().filter(|name| own.contains(name)).collect(),
            });
        }
        if let Some(more) = required.filter(|more| !more.is_empty()) {
            let known = object.entry("required").or_insert_with(|| json!([]));
            if let Some(known) = known.as_array_mut() {
                let new: Vec<Value> = more.into_iter().filter(|v| !known.contains(v)).collect();
                known.extend(new);
            }
        }
    }
    object.insert("type".into(), "object".into());
    if !object.get("properties").is_some_and(Value::is_object) {
        object.insert("properties".into(), json!({}));
    }
    let known: Vec<String> = object["properties"]
        .as_object()
        .map(|properties| properties.keys().cloned().collect())
        .unwrap_or_default();
    if let Some(required) = object.get_mut("required") {
        match required.as_array_mut() {
            Some(names) => {
                names.retain(|name| name.as_str().is_some_and(|n| known.iter().any(|k| k == n)));
            }
            None => *required = json!([]),
        }
    }
    clean
}

fn empty() -> Value {
    json!({ "type": "object", "properties": {} })
}

struct Walk<'a> {
    root: &'a Value,
    nodes: usize,
}

impl Walk<'_> {
    fn clean(&mut self, schema: &Value, depth: usize) -> Value {
        self.nodes += 1;
        if depth > DEPTH_CAP || self.nodes > NODES_CAP {
            return json!({});
        }
        let object = match schema {
            Value::Object(object) => object,
            Value::Bool(_) => return json!({}),
            _ => return json!({}),
        };
        if let Some(pointer) = object.get("$ref").and_then(Value::as_str) {
            let target = pointer.strip_prefix('#').and_then(|p| self.root.pointer(p));
            let mut target = match target {
                Some(target) => {
                    let target = target.clone();
                    self.clean(&target, depth + 1)
                }
                // Elsewhere: nothing is fetched for a schema.
                None => json!({}),
            };
            // What stands beside a reference adds to it.
            if let Some(into) = target.as_object_mut() {
                for key in ["description", "default", "title"] {
                    if let Some(value) = object.get(key) {
                        into.insert(key.to_owned(), value.clone());
                    }
                }
            }
            return target;
        }
        let mut out = Map::new();
        for (key, value) in object {
            if DROPPED.contains(&key.as_str()) {
                continue;
            }
            let value = match (key.as_str(), value) {
                ("properties" | "patternProperties", Value::Object(properties)) => {
                    let clean = properties
                        .iter()
                        .map(|(name, inner)| (name.clone(), self.clean(inner, depth + 1)));
                    Value::Object(clean.collect())
                }
                ("anyOf" | "oneOf" | "allOf" | "prefixItems", Value::Array(choices)) => {
                    choices.iter().map(|choice| self.clean(choice, depth + 1)).collect()
                }
                ("items", Value::Array(tuple)) => {
                    tuple.iter().map(|item| self.clean(item, depth + 1)).collect()
                }
                ("items" | "not" | "contains" | "propertyNames", inner) => {
                    self.clean(inner, depth + 1)
                }
                ("additionalProperties", Value::Object(_)) => self.clean(value, depth + 1),
                (_, other) => other.clone(),
            };
            out.insert(key.clone(), value);
        }
        // An array of nothing in particular is refused by some.
        let is_array = out.get("type").is_some_and(|kind| kind == "array");
        if is_array && !out.contains_key("items") && !out.contains_key("prefixItems") {
            out.insert("items".into(), json!({}));
        }
        Value::Object(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(value: Value) -> Value {
        sanitise(value.as_object().unwrap())
    }

    #[test]
    fn whatever_a_server_says_the_parameters_are_an_object() {
        for schema in [
            json!({}),
            json!({"type": "string"}),
            json!({"type": "object"}),
            json!({"type": ["object", "null"], "properties": null, "required": "x"}),
            json!({"properties": []}),
            json!({"$ref": "#/nowhere"}),
            json!({"$ref": "https://example.com/schema.json"}),
        ] {
            let clean = of(schema.clone());
            assert_eq!(clean["type"], "object", "{schema}");
            assert_eq!(clean["properties"], json!({}), "{schema}");
        }
    }

    #[test]
    fn references_are_put_in_and_circles_end() {
        let clean = of(json!({
            "$schema": "http://json-schema.org/draft-07/schema#",
            "type": "object",
            "properties": {
                "place": { "$ref": "#/$defs/Place", "description": "where" },
                "tree": { "$ref": "#/definitions/Node" },
            },
            "required": ["place", "gone"],
            "$defs": { "Place": { "type": "object", "properties": { "x": { "type": "number" } } } },
            "definitions": { "Node": { "type": "object", "properties": {
                "left": { "$ref": "#/definitions/Node" }, "right": { "$ref": "#/definitions/Node" } } } },
        }));
        assert_eq!(clean["properties"]["place"]["properties"]["x"]["type"], "number");
        assert_eq!(clean["properties"]["place"]["description"], "where");
        assert_eq!(clean["required"], json!(["place"]));
        let text = clean.to_string();
        assert!(!text.contains("$ref") && !text.contains("$defs") && text.len() < 200_000);
    }

    #[test]
    fn a_choice_at_the_top_becomes_one_object() {
        let clean = of(json!({"anyOf": [
            {"type": "object", "properties": {"a": {"type": "string"}, "b": {}}, "required": ["a", "b"]},
            {"type": "object", "properties": {"a": {"type": "string"}, "c": {}}, "required": ["a"]},
        ]}));
        assert_eq!(clean["required"], json!(["a"]));
        assert_eq!(clean["properties"].as_object().unwrap().len(), 3);
    }
}
