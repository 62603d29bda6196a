//! Mends what models commonly get wrong in a call, in a fixed order, and says what it mended.
//! What cannot be mended with certainty is left as it is: guessing is for the model.

use serde_json::Value;

use crate::registry::Registry;

/// Names that models trained with other agents use.
const ALIASES: &[(&str, &str)] = &[
    ("readfile", "read"),
    ("view", "read"),
    ("viewfile", "read"),
    ("openfile", "read"),
    ("cat", "read"),
    ("writefile", "write"),
    ("createfile", "write"),
    ("editfile", "edit"),
    ("strreplace", "edit"),
    ("strreplaceeditor", "edit"),
    ("strreplacebasededittool", "edit"),
    ("replace", "edit"),
    ("patch", "apply_patch"),
    ("shell", "bash"),
    ("shellcommand", "bash"),
    ("runcommand", "bash"),
    ("runshellcommand", "bash"),
    ("execcommand", "bash"),
    ("execute", "bash"),
    ("terminal", "bash"),
    ("search", "grep"),
    ("searchfiles", "grep"),
    ("ripgrep", "grep"),
    ("find", "glob"),
    ("findfiles", "glob"),
    ("listfiles", "list"),
    ("listdir", "list"),
    ("listdirectory", "list"),
    ("ls", "list"),
];

/// Namespaces that models put before a name.
const PREFIXES: &[&str] =
    &["functions.", "function.", "tools.", "tool.", "default_api.", "default_api:"];

/// The registered name that `name` means, if there is one.
pub(crate) fn tool_name(name: &str, registry: &Registry) -> Option<String> {
    if registry.contains(name) {
        return Some(name.to_owned());
    }
    let bare = PREFIXES.iter().find_map(|p| name.strip_prefix(p)).unwrap_or(name).trim();
    let wanted = fold(bare);
    let same = registry.names().into_iter().find(|known| fold(known) == wanted);
    same.or_else(|| {
        let (_, target) = ALIASES.iter().find(|(alias, _)| *alias == wanted)?;
        registry.contains(target).then(|| (*target).to_owned())
    })
}

fn fold(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// The closest registered names, for "did you mean".
pub(crate) fn known_names(registry: &Registry) -> String {
    registry.names().join(", ")
}

pub(crate) struct Arguments {
    pub(crate) value: Value,
    pub(crate) repairs: Vec<String>,
}

/// Why arguments could not be read, with where.
#[derive(Debug)]
pub(crate) struct Unreadable(pub(crate) String);

/// Reads arguments, mending fences, doubled encoding, trailing commas and missing ends. `cut` says
/// that the answer was cut off: then missing ends are missing content and are not made up.
pub(crate) fn arguments(text: &str, cut: bool) -> Result<Arguments, Unreadable> {
    let trimmed = text.trim();
    if trimmed.is_empty() && cut {
        return Err(Unreadable("nothing of them arrived".to_owned()));
    }
    if trimmed.is_empty() {
        return Ok(Arguments { value: Value::Object(serde_json::Map::new()), repairs: Vec::new() });
    }
    let first = match serde_json::from_str::<Value>(trimmed) {
        Ok(value) => return unwrap_string(value),
        Err(error) => error,
    };
    let mut repairs = Vec::new();
    let mut candidate = trimmed.to_owned();
    if let Some(inner) = strip_fence(&candidate) {
        candidate = inner;
        repairs.push("removed the code fence around the arguments".to_owned());
    }
    if let Some(mended) = mend(&candidate, cut) {
        candidate = mended.text;
        repairs.extend(mended.repairs);
    }
    match serde_json::from_str::<Value>(&candidate) {
        Ok(value) if !repairs.is_empty() => {
            let inner = unwrap_string(value)?;
            repairs.extend(inner.repairs);
            Ok(Arguments { value: inner.value, repairs })
        }
        _ => Err(Unreadable(format!("{first}"))),
    }
}

/// Some models send the object as a string that holds JSON.
fn unwrap_string(value: Value) -> Result<Arguments, Unreadable> {
    match value {
        Value::Object(_) => Ok(Arguments { value, repairs: Vec::new() }),
        Value::String(inner) => match serde_json::from_str::<Value>(&inner) {
            Ok(value @ Value::Object(_)) => {
                let repairs = vec!["read the arguments out of a string".to_owned()];
                Ok(Arguments { value, repairs })
            }
            _ => Err(Unreadable("expected a JSON object, got a string".to_owned())),
        },
        other => Err(Unreadable(format!("expected a JSON object, got {}", kind(&other)))),
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

fn strip_fence(text: &str) -> Option<String> {
    let inner = text.strip_prefix("```")?.strip_suffix("```")?;
    let inner = inner.strip_prefix("json").unwrap_or(inner);
    Some(inner.trim().to_owned())
}

struct Mended {
    text: String,
    repairs: Vec<String>,
}

/// One pass over the text outside strings: drops commas before a closing bracket and adds what is
/// missing at the end.
fn mend(text: &str, cut: bool) -> Option<Mended> {
    let mut out = String::with_capacity(text.len() + 8);
    let mut open = Vec::new();
    let mut in_string = false;
    let mut escaped = false;
    let mut dropped_comma = false;
    for c in text.chars() {
        if in_string {
            out.push(c);
            match c {
                _ if escaped => escaped = false,
                '\\' => escaped = true,
                '"' => in_string = false,
                _ => {}
            }
            continue;
        }
        match c {
            '"' => in_string = true,
            '{' => open.push('}'),
            '[' => open.push(']'),
            '}' | ']' => {
                dropped_comma |= drop_trailing_comma(&mut out);
                // A bracket that closes nothing cannot be mended with certainty.
                if open.pop() != Some(c) {
                    return None;
                }
            }
            _ => {}
        }
        out.push(c);
    }
    let mut repairs = Vec::new();
    if dropped_comma {
        repairs.push("removed a trailing comma".to_owned());
    }
    if in_string || !open.is_empty() {
        // Inside a string nothing says how it was to go on.
        if cut || in_string {
            return None;
        }
        drop_trailing_comma(&mut out);
        out.extend(open.iter().rev());
        repairs.push("added the missing closing brackets".to_owned());
    }
    Some(Mended { text: out, repairs })
}

fn drop_trailing_comma(out: &mut String) -> bool {
    let kept = out.trim_end();
    let Some(kept) = kept.strip_suffix(',') else { return false };
    let length = kept.len();
    out.truncate(length);
    true
}

/// Turns scalars of the wrong type into the right one where nothing is lost: `"5"` for a number,
/// `"true"` for a boolean, `5` for a string, a JSON array inside a string.
pub(crate) fn coerce(value: &mut Value, schema: &Value) -> Vec<String> {
    let mut repairs = Vec::new();
    coerce_at(value, schema, "", &mut repairs);
    repairs
}

/// Names of arguments that models trained with other agents use, by what they mean here. A name is
/// only taken for another where the tool has the one and not the other.
const ARGUMENT_ALIASES: &[(&str, &[&str])] = &[
    ("filePath", &["path", "file", "filename", "targetfile", "absolutepath"]),
    ("oldString", &["oldstr", "oldtext", "old", "search"]),
    ("newString", &["newstr", "newtext", "new", "replacement"]),
    ("content", &["filetext", "contents", "text", "codeedit"]),
    ("command", &["cmd", "script", "commandline"]),
    ("pattern", &["query", "regex", "globpattern"]),
    ("workdir", &["cwd", "dir", "directory", "workingdirectory"]),
];

/// Gives arguments the names that the tool knows them by: another spelling, or another agent's word.
fn rename_arguments(
    object: &mut serde_json::Map<String, Value>,
    properties: &serde_json::Map<String, Value>,
    repairs: &mut Vec<String>,
) {
    let unknown: Vec<String> =
        object.keys().filter(|key| !properties.contains_key(*key)).cloned().collect();
    for key in unknown {
        let folded = fold(&key);
        let means = |known: &&String| {
            let aliases = ARGUMENT_ALIASES.iter().find(|(name, _)| name == known);
            fold(known) == folded
                || aliases.is_some_and(|(_, words)| words.contains(&folded.as_str()))
        };
        let Some(known) = properties.keys().filter(|k| !object.contains_key(*k)).find(means) else {
            continue;
        };
        if let Some(value) = object.remove(&key) {
            object.insert(known.clone(), value);
            repairs.push(format!("took the argument {key} as {known}"));
        }
    }
}

fn coerce_at(value: &mut Value, schema: &Value, path: &str, repairs: &mut Vec<String>) {
    if let (Value::Object(object), Some(properties)) =
        (&mut *value, schema.get("properties").and_then(Value::as_object))
    {
        if path.is_empty() {
            rename_arguments(object, properties, repairs);
        }
        let required = schema.get("required").and_then(Value::as_array);
        let is_required = |key: &str| required.is_some_and(|r| r.iter().any(|k| k == key));
        let nulls: Vec<String> = object
            .iter()
            .filter(|(key, value)| {
                value.is_null() && !is_required(key) && properties.contains_key(*key)
            })
            .map(|(key, _)| key.clone())
            .collect();
        // An optional value given as null is one that was not given.
        for key in nulls {
            object.shift_remove(&key);
        }
        for (key, schema) in properties {
            if let Some(value) = object.get_mut(key) {
                coerce_at(value, schema, &format!("{path}[\"{key}\"]"), repairs);
            }
        }
        return;
    }
    if let (Value::Array(items), Some(schema)) = (&mut *value, schema.get("items")) {
        for (n, item) in items.iter_mut().enumerate() {
            coerce_at(item, schema, &format!("{path}[{n}]"), repairs);
        }
        return;
    }
    let Some(wanted) = schema.get("type").and_then(Value::as_str) else { return };
    if let Some(right) = converted(value, wanted) {
        repairs.push(format!("read {path} as {wanted}"));
        *value = right;
        coerce_at(value, schema, path, repairs);
    }
}

fn converted(value: &Value, wanted: &str) -> Option<Value> {
    match (wanted, value) {
        ("integer", Value::String(text)) => text.trim().parse::<i64>().ok().map(Value::from),
        ("integer", Value::Number(number)) if number.is_f64() => {
            let whole = number.as_f64().filter(|f| f.fract() == 0.0 && f.abs() < 9e15)?;
            format!("{whole:.0}").parse::<i64>().ok().map(Value::from)
        }
        ("number", Value::String(text)) => text
            .trim()
            .parse::<f64>()
            .ok()
            .and_then(serde_json::Number::from_f64)
            .map(Value::Number),
        ("boolean", Value::String(text)) => match text.trim() {
            "true" | "True" => Some(Value::Bool(true)),
            "false" | "False" => Some(Value::Bool(false)),
            _ => None,
        },
        ("string", Value::Number(number)) => Some(Value::String(number.to_string())),
        ("string", Value::Bool(flag)) => Some(Value::String(flag.to_string())),
        ("array", Value::String(text)) => {
            serde_json::from_str::<Value>(text).ok().filter(Value::is_array)
        }
        ("object", Value::String(text)) => {
            serde_json::from_str::<Value>(text).ok().filter(Value::is_object)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn arguments_are_mended_only_where_it_is_certain() {
        let good = [
            ("", json!({})),
            ("  ", json!({})),
            (r#"{"a":1}"#, json!({"a":1})),
            ("```json\n{\"a\":1}\n```", json!({"a":1})),
            (r#"{"a":[1,2,],}"#, json!({"a":[1,2]})),
            (r#"{"a":{"b":1}"#, json!({"a":{"b":1}})),
            (r#"{"a":[1,2"#, json!({"a":[1,2]})),
            (r#"{"a":1,"#, json!({"a":1})),
            (r#""{\"a\":1}""#, json!({"a":1})),
        ];
        for (text, expected) in good {
            assert_eq!(arguments(text, false).unwrap().value, expected, "{text}");
        }
        for text in [
            r#"{"a":"unfinished"#,
            r#"{"a":1]"#,
            "[1]",
            "5",
            "null",
            "not json",
            r#"{"a":}"#,
            r#"{"a""#,
        ] {
            assert!(arguments(text, false).is_err(), "{text}");
        }
    }

    #[test]
    fn a_cut_answer_is_never_completed_by_guessing() {
        assert!(arguments(r#"{"path":"a","lines":[1"#, true).is_err());
        assert!(arguments(r#"{"a":1,}"#, true).is_ok());
    }

    #[test]
    fn every_mended_thing_is_said() {
        let mended = arguments("```json\n{\"a\":[1,],\"b\":{\n```", false).unwrap();
        assert_eq!(mended.repairs.len(), 3, "{:?}", mended.repairs);
    }

    #[test]
    fn scalars_are_coerced_where_nothing_is_lost() {
        let schema = json!({"type":"object","required":["s"],"properties":{
            "n":{"type":"integer"},"f":{"type":"number"},"b":{"type":"boolean"},"s":{"type":"string"},
            "l":{"type":"array","items":{"type":"integer"}},"o":{"type":"string"}}});
        let mut value =
            json!({"n":"5","f":"1.5","b":"true","s":7,"l":"[\"1\",2]","o":null,"x":null});
        let repairs = coerce(&mut value, &schema);
        assert_eq!(value, json!({"n":5,"f":1.5,"b":true,"s":"7","l":[1,2],"x":null}));
        assert_eq!(repairs.len(), 6, "{repairs:?}");
        let mut wrong = json!({"n":"five","b":"yes"});
        assert!(coerce(&mut wrong, &schema).is_empty());
        assert_eq!(wrong, json!({"n":"five","b":"yes"}));
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused_without_a_panic(text in "[{}\\[\\],:\"a1\\\\` \n]{0,40}") {
            for cut in [false, true] {
                if let Ok(read) = arguments(&text, cut) {
                    prop_assert!(read.value.is_object());
                }
            }
        }
    }
}
