use serde_json::{Value, json};

use crate::file;
use crate::nested::INSIDE;
use crate::schema::{ALIASES, LEFT_ALONE, schema};
use crate::settings::KNOWN_KEYS;

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/toolwright.schema.json");

#[test]
fn the_schema_that_is_checked_in_is_that_of_the_types() {
    let kept: Value = serde_json::from_str(&std::fs::read_to_string(FILE).unwrap_or_default())
        .unwrap_or_default();
    assert!(
        kept == schema(),
        "docs/toolwright.schema.json is stale; make it anew with:  cargo run -q -p toolwright-cli -- config --schema > docs/toolwright.schema.json"
    );
}

fn load(value: &Value) -> Result<Vec<String>, String> {
    let text = serde_json::to_string_pretty(value).unwrap();
    let parsed = file::parse(std::path::Path::new("/x.json"), &text, None);
    parsed.map(|parsed| parsed.warnings).map_err(|e| e.to_string())
}

#[test]
fn the_keys_at_the_top_are_those_that_loading_knows() {
    let schema = schema();
    let mut own: Vec<&str> =
        schema["properties"].as_object().unwrap().keys().map(String::as_str).collect();
    let mut known = KNOWN_KEYS.to_vec();
    own.sort_unstable();
    known.sort_unstable();
    assert_eq!(own, known);
}

#[test]
fn the_keys_inside_are_those_of_the_types_and_slips_are_named_with_their_place() {
    let schema = schema();
    for (way, name, keys) in INSIDE {
        let properties = schema["$defs"][*name]["properties"].as_object().unwrap();
        let mut own: Vec<&str> = properties.keys().map(String::as_str).collect();
        let mut known = keys.to_vec();
        own.sort_unstable();
        known.sort_unstable();
        assert_eq!(own, known, "{way:?}");
    }
    let text = "{\n  \"agent\": { \"a\": { \"descripton\": \"x\", \"color\": \"red\", \"top_k\": 9 } },\n  \"mcp\": { \"s\": { \"type\": \"local\", \"comand\": [] } },\n  \"modle\": \"a/b\"\n}";
    let parsed =
        file::parse(std::path::Path::new("/x.json"), text, None).map_err(|e| e.to_string());
    assert_eq!(
        parsed.map(|parsed| parsed.warnings),
        Ok(vec![
            "/x.json:4:3: unknown key \"modle\"; did you mean \"model\"?".to_owned(),
            "/x.json:2:21: unknown key \"descripton\" in agent.a; did you mean \"description\"?"
                .to_owned(),
            "/x.json:3:36: unknown key \"comand\" in mcp.s; did you mean \"command\"?".to_owned(),
        ])
    );
}

/// One place of the settings: the way to it, and what stands in each of the places on the way.
#[derive(Clone)]
struct Walk<'a> {
    schema: &'a Value,
    found: Vec<(Vec<String>, &'a Value)>,
}

impl<'a> Walk<'a> {
    fn resolve(&self, form: &'a Value) -> &'a Value {
        match form["$ref"].as_str() {
            Some(name) => self.resolve(self.schema.pointer(name.trim_start_matches('#')).unwrap()),
            None => form,
        }
    }

    /// Objects that a form can be.
    fn objects(&self, form: &'a Value) -> Vec<&'a Value> {
        let form = self.resolve(form);
        let choices = form["anyOf"].as_array().into_iter().flatten();
        let inner = choices.flat_map(|choice| self.objects(choice));
        let own = form["properties"].is_object() || form["additionalProperties"].is_object();
        own.then_some(form).into_iter().chain(inner).collect()
    }

    fn go(&mut self, form: &'a Value, path: &[String]) {
        if path.len() > 7 {
            return;
        }
        for object in self.objects(form) {
            for (key, inner) in object["properties"].as_object().into_iter().flatten() {
                let mut path = path.to_vec();
                path.push(key.clone());
                self.found.push((path.clone(), inner));
                self.go(inner, &path);
            }
            if object["additionalProperties"].is_object() {
                let mut path = path.to_vec();
                path.push("some".to_owned());
                let inner = &object["additionalProperties"];
                self.found.push((path.clone(), inner));
                self.go(inner, &path);
            }
        }
    }
}

fn at(path: &[String], value: Value) -> Value {
    path.iter().rev().fold(value, |inner, key| json!({ key.as_str(): inner }))
}

/// Every key of the schema, at any depth, is one that loading reads: what is of the wrong type there is an error.
#[test]
fn every_key_of_the_schema_is_read() {
    let schema = schema();
    let mut walk = Walk { schema: &schema, found: Vec::new() };
    walk.go(&schema, &[]);
    assert!(walk.found.len() > 120, "{}", walk.found.len());
    let left_alone =
        |path: &[String]| path[0] == "$schema" || LEFT_ALONE.iter().any(|(key, _)| *key == path[0]);
    let mut unread = Vec::new();
    for (path, form) in walk.found.iter().filter(|(path, _)| !left_alone(path)) {
        let form = walk.resolve(form);
        // What may hold anything is read by whoever it is for.
        let anything = form.as_bool() == Some(true)
            || form
                .as_object()
                .is_some_and(|o| o.keys().all(|k| k == "description" || k == "default"));
        if anything {
            continue;
        }
        // A list of lists of lists is nothing that anybody reads.
        if load(&at(path, json!([[[[]]]]))).is_ok() {
            unread.push(path.join("."));
        }
    }
    assert_eq!(unread, Vec::<String>::new());
}

#[test]
fn both_take_and_refuse_the_same_files() {
    let schema = schema();
    let validator = jsonschema::validator_for(&schema).unwrap();
    for good in [
        json!({}),
        json!({ "$schema": "https://opencode.ai/config.json", "theme": "x", "logLevel": "INFO" }),
        json!({ "agent": { "a": { "maxSteps": 3, "variant": "high", "mode": "primary", "color": "#fff", "permission": { "edit": "deny", "bash": { "git *": "allow", "rm *": { "action": "deny", "match": ["rm x"] } } } } } }),
        json!({ "mcp": { "a": { "type": "stdio", "command": ["x"] }, "b": { "type": "remote", "url": "u", "oauth": false }, "c": { "enabled": false } } }),
        json!({ "lsp": true, "formatter": { "x": { "command": ["y"], "extensions": [".z"] } } }),
        json!({ "plugin": ["./a.js", ["b", { "c": 1 }]], "instructions": ["x"], "permission": "ask" }),
        json!({ "sandbox": { "enabled": "auto", "network": ["x.org"] }, "permission_mode": "accept-edits" }),
        json!({ "hooks": { "PreToolUse": [{ "matcher": "Bash", "hooks": [{ "type": "command", "command": "x", "timeout": 5 }] }] } }),
        json!({ "provider": { "x": { "npm": "y", "options": { "baseURL": "z", "apiKey": "k", "timeout": false }, "models": { "m": { "limit": { "context": 1 } } } } } }),
    ] {
        assert!(
            validator.is_valid(&good),
            "{good}: {:?}",
            validator.iter_errors(&good).map(|e| e.to_string()).collect::<Vec<_>>()
        );
        assert_eq!(load(&good), Ok(Vec::new()), "{good}");
    }
    for bad in [
        json!({ "model": 1 }),
        json!({ "steps": "many" }),
        json!({ "agent": { "a": { "mode": "sideways" } } }),
        json!({ "permission": { "edit": "perhaps" } }),
        json!({ "mcp": { "a": { "type": "pigeon" } } }),
        json!({ "sandbox": { "layer": "cake" } }),
        json!({ "permission_mode": "yolo" }),
    ] {
        assert!(!validator.is_valid(&bad), "{bad}");
        assert!(load(&bad).is_err(), "{bad}");
    }
    // A slip: editors underline it, loading warns.
    let slip = json!({ "modle": "a/b" });
    assert!(!validator.is_valid(&slip));
    assert!(load(&slip).unwrap()[0].contains("did you mean \"model\"?"));
}

/// Names that serde reads beside those of the fields, which the schema cannot learn from the types.
#[test]
fn no_other_name_is_read_than_those_of_the_schema() {
    let sources = [
        include_str!("settings.rs"),
        include_str!("tool_settings.rs"),
        include_str!("sandbox.rs"),
        include_str!("permission.rs"),
    ];
    let named: Vec<&str> = sources
        .iter()
        .flat_map(|text| text.split("alias = \"").skip(1))
        .filter_map(|rest| rest.split('"').next())
        .collect();
    let known: Vec<&str> = ALIASES.iter().map(|(_, alias, _)| *alias).collect();
    assert_eq!(named, known);
    for text in sources {
        assert!(!text.contains("flatten)"), "what is flattened is not in the schema");
    }
}
