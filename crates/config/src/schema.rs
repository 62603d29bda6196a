//! The settings as a JSON Schema, for editors: made of the types that read them, so that both know the same
//! keys. `docs/toolwright.schema.json` is what this gives.

use schemars::{JsonSchema, Schema, SchemaGenerator, schema_for};
use serde_json::{Map, Value, json};

use crate::settings::{Ordered, Settings};

/// Where the schema can be had.
pub const SCHEMA_ADDRESS: &str =
    "https://raw.githubusercontent.com/toolwright/toolwright/main/docs/toolwright.schema.json";

/// Keys that may stand at the top of a file and are left alone: OpenCode's, which mean nothing here, or
/// another file's. With what they would hold.
pub(crate) const LEFT_ALONE: &[(&str, &str)] = &[
    ("logLevel", r#"{"enum": ["DEBUG", "INFO", "WARN", "ERROR"]}"#),
    ("server", r#"{"type": "object"}"#),
    ("username", r#"{"type": "string"}"#),
    ("enabled_providers", r#"{"type": "array", "items": {"type": "string"}}"#),
    ("disabled_providers", r#"{"type": "array", "items": {"type": "string"}}"#),
    ("references", r#"{"type": "object"}"#),
    ("reference", r#"{"type": "object"}"#),
    ("share", r#"{"enum": ["manual", "auto", "disabled"]}"#),
    ("autoshare", r#"{"type": "boolean"}"#),
    ("autoupdate", r#"{"anyOf": [{"type": "boolean"}, {"const": "notify"}]}"#),
    ("watcher", r#"{"type": "object"}"#),
    ("enterprise", r#"{"type": "object"}"#),
    ("layout", r#"{"enum": ["auto", "stretch"]}"#),
    ("theme", r#"{"type": "string"}"#),
    ("keybinds", r#"{"type": "object"}"#),
    ("tui", r#"{"type": "object"}"#),
];

/// Other names under which keys are read: the type that has them, the name, and the key that it stands for.
pub(crate) const ALIASES: &[(&str, &str, &str)] =
    &[("AgentSettings", "variant", "effort"), ("AgentSettings", "maxSteps", "steps")];

/// Words that are read beside those of a type.
const FURTHER_WORDS: &[(&str, &[&str])] =
    &[("McpKind", &["stdio", "http", "streamable-http", "streamableHttp"])];

pub fn schema() -> Value {
    let mut schema = schema_for!(Settings).to_value();
    for (name, alias, key) in ALIASES {
        let properties = schema.pointer_mut(&format!("/$defs/{name}/properties"));
        if let Some(properties) = properties.and_then(Value::as_object_mut)
            && let Some(own) = properties.get(*key).cloned()
        {
            properties.insert((*alias).to_owned(), own);
        }
    }
    for (name, words) in FURTHER_WORDS {
        let own = schema.pointer_mut(&format!("/$defs/{name}")).map(Value::take);
        if let Some(own) = own {
            let about = own["description"].clone();
            schema["$defs"][*name] = json!({ "anyOf": [own, { "enum": words }] });
            if about.is_string() {
                schema["$defs"][*name]["description"] = about;
            }
        }
    }
    if let Some(properties) = schema["properties"].as_object_mut() {
        properties.insert("$schema".to_owned(), json!({ "type": "string" }));
        for (key, form) in LEFT_ALONE {
            let mut form: Value = serde_json::from_str(form).unwrap_or_default();
            form["description"] = "Known and without effect here.".into();
            properties.insert((*key).to_owned(), form);
        }
        properties.sort_keys();
    }
    schema["title"] = "Settings of Toolwright".into();
    schema["$id"] = SCHEMA_ADDRESS.into();
    // A slip of the pen is worth a line under it.
    schema["additionalProperties"] = false.into();
    without_needless(&mut schema);
    schema
}

/// Widths of numbers are our own affair.
fn without_needless(value: &mut Value) {
    match value {
        Value::Object(map) => {
            let is_number = |map: &Map<String, Value>| {
                map.get("format").is_some_and(|format| {
                matches!(format.as_str(), Some(f) if f.starts_with("uint") || f.starts_with("int") || f == "float" || f == "double")
            })
            };
            if is_number(map) {
                map.shift_remove("format");
            }
            map.values_mut().for_each(without_needless);
        }
        Value::Array(list) => list.iter_mut().for_each(without_needless),
        _ => {}
    }
}

impl<T: JsonSchema> JsonSchema for Ordered<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        format!("OrderedOf{}", T::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let inner = generator.subschema_for::<T>();
        schemars::json_schema!({ "type": "object", "additionalProperties": inner })
    }
}

/// What is decided.
#[derive(JsonSchema)]
#[schemars(rename = "Action", rename_all = "lowercase")]
#[allow(dead_code)]
pub(crate) enum ActionWord {
    Allow,
    Ask,
    Deny,
}

/// How much is done without a question.
#[derive(JsonSchema)]
#[schemars(rename = "Mode", rename_all = "kebab-case")]
#[allow(dead_code)]
pub(crate) enum ModeWord {
    Ask,
    AcceptEdits,
    Plan,
    Auto,
}
