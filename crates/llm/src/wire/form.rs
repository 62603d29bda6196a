//! A JSON Schema for the answer itself, in the form that a provider enforces. Each takes a part of
//! JSON Schema and refuses the whole request over the rest, so a schema that holds anything else is
//! not sent: the answer is then asked for another way.

use serde_json::{Map, Value};

use super::Wire;

/// What a provider's enforcement understands.
struct Dialect {
    /// Keywords that hold no schemas.
    keywords: &'static [&'static str],
    formats: &'static [&'static str],
    /// Whether a property may be left out of an answer.
    optional: bool,
    references: bool,
}

const COMMON_FORMATS: &[&str] =
    &["date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"];

const OPENAI: Dialect = Dialect {
    keywords: &[
        "type",
        "title",
        "description",
        "enum",
        "const",
        "pattern",
        "minimum",
        "maximum",
        "exclusiveMinimum",
        "exclusiveMaximum",
        "multipleOf",
        "minItems",
        "maxItems",
    ],
    formats: COMMON_FORMATS,
    optional: false,
    references: true,
};

const ANTHROPIC: Dialect = Dialect {
    keywords: &["type", "title", "description", "enum", "const"],
    formats: COMMON_FORMATS,
    optional: true,
    references: false,
};

const GEMINI: Dialect = Dialect {
    keywords: &[
        "type",
        "title",
        "description",
        "enum",
        "minimum",
        "maximum",
        "minItems",
        "maxItems",
        "propertyOrdering",
    ],
    formats: &["date-time", "date", "time"],
    optional: true,
    references: false,
};

/// Says something to people only.
const REMARKS: &[&str] = &["$schema", "$id", "$comment", "default", "examples"];

/// Levels of nesting that every one of them takes.
const DEPTH_CAP: usize = 5;

/// The schema as it is sent, or nothing where the model or the schema does not permit it. What fits
/// the one that is sent also fits the one that was given.
pub(super) fn native(wire: Wire, model: &str, schema: &Value) -> Option<Value> {
    let dialect = match wire {
        Wire::OpenaiChat | Wire::OpenaiResponses => &OPENAI,
        // Earlier models have no such thing, and other makers' models behind the wire neither.
        Wire::AnthropicMessages if super::anthropic_encode::version(model) >= (4, 5) => &ANTHROPIC,
        // Earlier ones refuse it beside tools, and the open models behind the wire have none.
        Wire::Gemini
            if model.starts_with("gemini-")
                && !["gemini-1", "gemini-2"].iter().any(|old| model.starts_with(old)) =>
        {
            &GEMINI
        }
        Wire::AnthropicMessages | Wire::Gemini => return None,
    };
    let is_object = schema.get("type").and_then(Value::as_str) == Some("object");
    if is_object && !schema.get("anyOf").is_some_and(Value::is_array) {
        dialect.translate(schema, 0)
    } else {
        None
    }
}

impl Dialect {
    fn translate(&self, schema: &Value, depth: usize) -> Option<Value> {
        let object = schema.as_object().filter(|_| depth <= DEPTH_CAP)?;
        let mut out = Map::new();
        for (key, value) in object {
            let kept = match key.as_str() {
                word if REMARKS.contains(&word) => continue,
                word if self.keywords.contains(&word) => value.clone(),
                "format" => self.formats.contains(&value.as_str()?).then(|| value.clone())?,
                "properties" | "$defs" if key == "properties" || self.references => {
                    let inner = value.as_object()?.iter();
                    let inner = inner.map(|(name, schema)| {
                        Some((name.clone(), self.translate(schema, depth + 1)?))
                    });
                    Value::Object(inner.collect::<Option<_>>()?)
                }
                "$ref" if self.references && value.as_str()?.starts_with("#/$defs/") => {
                    value.clone()
                }
                "items" => self.translate(value, depth + 1)?,
                "anyOf" => {
                    let choices = value.as_array()?.iter().map(|s| self.translate(s, depth + 1));
                    Value::Array(choices.collect::<Option<_>>()?)
                }
                "required" => value.clone(),
                // Set below.
                "additionalProperties" if *value == Value::Bool(false) => continue,
                _ => return None,
            };
            out.insert(key.clone(), kept);
        }
        if object.get("type").is_some_and(is_object_type) || object.contains_key("properties") {
            self.close(&mut out)?;
        }
        Some(Value::Object(out))
    }

    /// An object holds what is listed and nothing else, which is narrower than what was asked for and
    /// fits it.
    fn close(&self, out: &mut Map<String, Value>) -> Option<()> {
        let properties = out.get("properties")?.as_object()?;
        let required = out.get("required").and_then(Value::as_array);
        let is_required = |name: &String| required.is_some_and(|r| r.iter().any(|v| v == name));
        if !self.optional && !properties.keys().all(is_required) {
            return None;
        }
        out.insert("additionalProperties".to_owned(), Value::Bool(false));
        Some(())
    }
}

fn is_object_type(kind: &Value) -> bool {
    kind == "object" || kind.as_array().is_some_and(|kinds| kinds.iter().any(|k| k == "object"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const MODEL: [(Wire, &str); 4] = [
        (Wire::OpenaiChat, "gpt-5.5"),
        (Wire::OpenaiResponses, "gpt-5.5"),
        (Wire::AnthropicMessages, "claude-sonnet-5"),
        (Wire::Gemini, "gemini-3.5-flash"),
    ];

    #[test]
    fn a_plain_schema_is_closed_and_taken_everywhere() {
        let schema = json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object", "required": ["name", "tags"],
            "properties": {
                "name": {"type": ["string", "null"], "description": "Who.", "default": "x"},
                "tags": {"type": "array", "items": {"anyOf": [{"type": "string"}, {"type": "integer"}]}},
            },
        });
        for (wire, model) in MODEL {
            let sent = native(wire, model, &schema).unwrap_or_else(|| panic!("{wire:?}"));
            assert_eq!(sent["additionalProperties"], false, "{wire:?}");
            assert!(
                sent.get("$schema").is_none()
                    && sent["properties"]["name"].get("default").is_none()
            );
        }
    }

    #[test]
    fn what_a_provider_would_refuse_is_not_sent_to_it() {
        let object = |schema: Value| json!({"type": "object", "required": ["a"], "properties": {"a": schema}});
        let (chat, claude, gemini) = (MODEL[0], MODEL[2], MODEL[3]);
        let cases = [
            (object(json!({"type": "integer", "minimum": 1})), vec![chat, gemini]),
            (object(json!({"type": "string", "minLength": 1})), vec![]),
            (object(json!({"type": "string", "format": "uri"})), vec![]),
            (object(json!({"type": "object"})), vec![]),
            (object(json!({"oneOf": [{"type": "string"}]})), vec![]),
            (
                object(
                    json!({"type": "object", "additionalProperties": {"type": "string"}, "properties": {}}),
                ),
                vec![],
            ),
            (
                json!({"type": "object", "properties": {"a": {"type": "string"}}}),
                vec![claude, gemini],
            ),
            (json!({"type": "array", "items": {"type": "string"}}), vec![]),
            (
                json!({
                    "type": "object", "required": ["a"], "properties": {"a": {"$ref": "#/$defs/x"}},
                    "$defs": {"x": {"type": "string"}},
                }),
                vec![chat],
            ),
            (json!(true), vec![]),
        ];
        for (schema, taken) in cases {
            for (wire, model) in [chat, claude, gemini] {
                let expected = taken.iter().any(|(w, _)| *w == wire);
                assert_eq!(native(wire, model, &schema).is_some(), expected, "{wire:?}: {schema}");
            }
        }
    }

    #[test]
    fn earlier_models_are_asked_another_way() {
        let schema = json!({"type": "object", "properties": {}});
        for (wire, model) in [
            (Wire::AnthropicMessages, "claude-opus-4-1-20250805"),
            (Wire::AnthropicMessages, "kimi-k2"),
            (Wire::Gemini, "gemini-2.5-pro"),
            (Wire::Gemini, "gemma-3-27b-it"),
        ] {
            assert!(native(wire, model, &schema).is_none(), "{model}");
        }
    }

    #[test]
    fn a_schema_nested_deeper_than_providers_take_is_not_sent() {
        let mut schema = json!({"type": "string"});
        for _ in 0..50 {
            schema = json!({"type": "array", "items": schema});
        }
        let schema = json!({"type": "object", "required": ["a"], "properties": {"a": schema}});
        assert!(native(Wire::OpenaiChat, "gpt-5.5", &schema).is_none());
    }
}
