//! Checks arguments against the tool's schema and tells the model everything that is wrong at once.

use serde_json::Value;

/// Characters of the received arguments that are shown back.
const RECEIVED_CHARS: usize = 800;

/// Characters of a schema fragment that are shown with an error.
const FRAGMENT_CHARS: usize = 300;

pub(crate) struct Validator {
    /// A schema that is itself broken (a custom tool's) checks nothing; the type still does.
    compiled: Option<jsonschema::Validator>,
    schema: Value,
}

impl Validator {
    pub(crate) fn compile(schema: &Value) -> Self {
        Self { compiled: jsonschema::validator_for(schema).ok(), schema: schema.clone() }
    }

    /// All that is wrong, or nothing if the arguments are valid.
    pub(crate) fn problems(&self, arguments: &Value) -> Option<Vec<String>> {
        let validator = self.compiled.as_ref()?;
        let errors: Vec<String> = validator
            .iter_errors(arguments)
            .map(|error| {
                let place = bracket_path(error.instance_path().as_str());
                let fragment = self.fragment(error.schema_path().as_str());
                format!("{place}: {error} (expected: {fragment})")
            })
            .collect();
        (!errors.is_empty()).then_some(errors)
    }

    /// The part of the schema that was violated, without the violated keyword itself.
    fn fragment(&self, schema_path: &str) -> String {
        let parent = schema_path.rsplit_once('/').map_or("", |(parent, _)| parent);
        let part = self.schema.pointer(parent).unwrap_or(&self.schema);
        cut(&part.to_string(), FRAGMENT_CHARS)
    }
}

/// What the model is told about arguments that do not fit.
pub(crate) fn invalid_arguments(tool: &str, detail: &str, received: &str) -> String {
    format!(
        "The {tool} tool was called with invalid arguments: {detail}.\n\
         Please rewrite the input so that it satisfies the expected schema. Received: {}",
        cut(received, RECEIVED_CHARS)
    )
}

/// `/questions/0/text` as `["questions"][0]["text"]`.
fn bracket_path(pointer: &str) -> String {
    if pointer.is_empty() {
        return "(arguments)".to_owned();
    }
    let part = |part: &str| {
        let part = part.replace("~1", "/").replace("~0", "~");
        if part.parse::<usize>().is_ok() { format!("[{part}]") } else { format!("[\"{part}\"]") }
    };
    pointer.split('/').skip(1).map(part).collect()
}

fn cut(text: &str, characters: usize) -> String {
    match text.char_indices().nth(characters) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn all_errors_are_told_at_once_with_path_fragment_and_what_was_received() {
        let schema = json!({"type":"object","required":["name"],"properties":{
            "name":{"type":"string"},"n":{"type":"integer","minimum":1},
            "list":{"type":"array","items":{"type":"string"}}}});
        let validator = Validator::compile(&schema);
        let received = json!({"n":0,"list":["a",5]});
        let problems = validator.problems(&received).unwrap();
        assert_eq!(problems.len(), 3);
        let text = invalid_arguments("demo", &problems.join("; "), &received.to_string());
        for part in [
            "demo tool was called with invalid arguments: ",
            "\"name\"",
            "[\"n\"]",
            "[\"list\"][1]",
            "\"minimum\":1",
            "Please rewrite the input",
            "{\"n\":0",
        ] {
            assert!(text.contains(part), "{part} in {text}");
        }
        assert_eq!(validator.problems(&json!({"name":"x"})), None);
    }
}
