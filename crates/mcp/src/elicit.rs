//! A server that wants something from the person: its form becomes questions, its address a link that
//! the person opens or does not.

use rmcp::model::{ElicitRequestParams, ElicitResult, ElicitationAction};
use serde_json::{Map, Number, Value};
use toolwright_tool::{Choice, Door, Inquiry, InquiryItem, Unanswered};

/// How often a form is shown again because of an answer that does not fit.
const TRIES: usize = 3;

const YES: &str = "Yes";
const NO: &str = "No";
const OPENED: &str = "I have opened it";
const DECLINE: &str = "Decline";

pub(crate) async fn answer(server: &str, door: &Door, params: ElicitRequestParams) -> ElicitResult {
    match params {
        ElicitRequestParams::FormElicitationParams { message, requested_schema, .. } => {
            // Read as data: what the SDK does not know yet is still a question.
            let schema = serde_json::to_value(requested_schema).unwrap_or_default();
            form(server, door, &message, &schema).await
        }
        ElicitRequestParams::UrlElicitationParams { message, url, .. } => {
            address(server, door, &message, &url).await
        }
        _ => ElicitResult::new(ElicitationAction::Decline),
    }
}

async fn form(server: &str, door: &Door, message: &str, schema: &Value) -> ElicitResult {
    let fields = fields(schema);
    let mut problem = String::new();
    for _ in 0..TRIES {
        let lead = format!("The MCP server {server} asks: {message}{problem}");
        let inquiry = Inquiry { items: items(&lead, &fields) };
        let replies = match door.inquire(&inquiry).await {
            Ok(replies) => replies,
            Err(Unanswered::Dismissed) => return ElicitResult::new(ElicitationAction::Cancel),
            Err(Unanswered::Nobody) => return ElicitResult::new(ElicitationAction::Decline),
        };
        if fields.is_empty() {
            let agreed = replies.first().is_some_and(|words| words.iter().any(|w| w == YES));
            let action =
                if agreed { ElicitationAction::Accept } else { ElicitationAction::Decline };
            return ElicitResult::new(action).with_content(Value::Object(Map::new()));
        }
        match read(&fields, &replies) {
            Ok(content) => {
                let content = Value::Object(content);
                return ElicitResult::new(ElicitationAction::Accept).with_content(content);
            }
            Err(wrong) => problem = format!("\n({wrong})"),
        }
    }
    ElicitResult::new(ElicitationAction::Cancel)
}

async fn address(server: &str, door: &Door, message: &str, url: &str) -> ElicitResult {
    let question = format!(
        "The MCP server {server} asks you to open this address: {message}\n{url}\nOpen it only if you know where it leads."
    );
    let options = [OPENED, DECLINE].map(choice).to_vec();
    let header = server.to_owned();
    let item = InquiryItem { question, header, options, multiple: false, custom: false };
    let action = match door.inquire(&Inquiry { items: vec![item] }).await {
        Ok(replies) if replies.iter().flatten().any(|word| word == OPENED) => {
            ElicitationAction::Accept
        }
        Ok(_) | Err(Unanswered::Nobody) => ElicitationAction::Decline,
        Err(Unanswered::Dismissed) => ElicitationAction::Cancel,
    };
    ElicitResult::new(action)
}

fn choice(label: &str) -> Choice {
    Choice { label: label.to_owned(), description: String::new() }
}

/// One field of a form.
struct Field {
    name: String,
    question: String,
    kind: Kind,
    default: Option<Value>,
    required: bool,
}

enum Kind {
    Text,
    Number,
    Integer,
    Truth,
    /// Values with what people see.
    Choice {
        options: Vec<(String, String)>,
        several: bool,
    },
}

fn fields(schema: &Value) -> Vec<Field> {
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    let properties = schema["properties"].as_object().into_iter().flatten();
    let field = |(name, own): (&String, &Value)| {
        let words = own["description"].as_str().or(own["title"].as_str()).unwrap_or(name);
        Field {
            name: name.clone(),
            question: words.to_owned(),
            kind: kind(own),
            default: own.get("default").filter(|value| !value.is_null()).cloned(),
            required: required.iter().any(|known| known == name.as_str()),
        }
    };
    properties.map(field).collect()
}

fn kind(own: &Value) -> Kind {
    let several = own["type"] == "array";
    let values = if several { &own["items"] } else { own };
    let named = |list: &Value| -> Option<Vec<(String, String)>> {
        let pair = |entry: &Value| {
            let value = entry["const"].as_str()?;
            Some((value.to_owned(), entry["title"].as_str().unwrap_or(value).to_owned()))
        };
        list.as_array()?.iter().map(pair).collect()
    };
    let plain = || -> Option<Vec<(String, String)>> {
        let values = values["enum"].as_array()?.iter().filter_map(Value::as_str);
        let names = own["enumNames"].as_array().cloned().unwrap_or_default();
        let name = |n: usize, value: &str| {
            names.get(n).and_then(Value::as_str).unwrap_or(value).to_owned()
        };
        Some(values.enumerate().map(|(n, v)| (v.to_owned(), name(n, v))).collect())
    };
    let options = named(&values["oneOf"]).or_else(|| named(&values["anyOf"])).or_else(plain);
    match (options, own["type"].as_str()) {
        (Some(options), _) => Kind::Choice { options, several },
        (None, Some("boolean")) => Kind::Truth,
        (None, Some("integer")) => Kind::Integer,
        (None, Some("number")) => Kind::Number,
        (None, _) => Kind::Text,
    }
}

fn items(lead: &str, fields: &[Field]) -> Vec<InquiryItem> {
    if fields.is_empty() {
        let options = [YES, NO].map(choice).to_vec();
        let (question, header) = (lead.to_owned(), "MCP".to_owned());
        return vec![InquiryItem { question, header, options, multiple: false, custom: false }];
    }
    let item = |(n, field): (usize, &Field)| {
        let lead = if n == 0 { format!("{lead}\n") } else { String::new() };
        let optional = if field.required { "" } else { " (may be left empty)" };
        let default = field.default.as_ref().map(shown);
        let usual = default.as_ref().map_or(String::new(), |d| format!(" [{d}]"));
        let options: Vec<Choice> = match &field.kind {
            Kind::Choice { options, .. } => options.iter().map(|(_, name)| choice(name)).collect(),
            Kind::Truth => [YES, NO].map(choice).to_vec(),
            Kind::Text | Kind::Number | Kind::Integer => {
                default.iter().map(|d| choice(d)).collect()
            }
        };
        InquiryItem {
            question: format!("{lead}{}{usual}{optional}", field.question),
            header: field.name.clone(),
            multiple: matches!(field.kind, Kind::Choice { several: true, .. }),
            custom: matches!(field.kind, Kind::Text | Kind::Number | Kind::Integer),
            options,
        }
    };
    fields.iter().enumerate().map(item).collect()
}

fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Bool(truth) => (if *truth { YES } else { NO }).to_owned(),
        other => other.to_string(),
    }
}

/// The values that were meant. What was left empty is the default, where there is one.
fn read(fields: &[Field], replies: &[Vec<String>]) -> Result<Map<String, Value>, String> {
    let mut content = Map::new();
    for (n, field) in fields.iter().enumerate() {
        let words: Vec<&str> = replies
            .get(n)
            .into_iter()
            .flatten()
            .map(|word| word.trim())
            .filter(|word| !word.is_empty())
            .collect();
        if words.is_empty() {
            match &field.default {
                Some(default) => {
                    content.insert(field.name.clone(), default.clone());
                }
                None if field.required => return Err(format!("{} is needed", field.name)),
                None => {}
            }
            continue;
        }
        content.insert(field.name.clone(), value(field, &words)?);
    }
    Ok(content)
}

fn value(field: &Field, words: &[&str]) -> Result<Value, String> {
    let first = words.first().copied().unwrap_or_default();
    let wrong = |wanted: &str| format!("{}: {first:?} is not {wanted}", field.name);
    Ok(match &field.kind {
        Kind::Text => words.join(", ").into(),
        Kind::Truth => match first.to_lowercase().as_str() {
            "yes" | "true" | "y" => true.into(),
            "no" | "false" | "n" => false.into(),
            _ => return Err(wrong("yes or no")),
        },
        Kind::Integer => first.parse::<i64>().map_err(|_| wrong("a whole number"))?.into(),
        Kind::Number => {
            let number = first.parse::<f64>().ok().and_then(Number::from_f64);
            Value::Number(number.ok_or_else(|| wrong("a number"))?)
        }
        Kind::Choice { options, several } => {
            let find = |word: &&str| {
                let own = options.iter().find(|(value, name)| name == word || value == word);
                own.map(|(value, _)| Value::from(value.clone()))
            };
            let chosen: Option<Vec<Value>> = words.iter().map(find).collect();
            let chosen = chosen.ok_or_else(|| wrong("one of the choices"))?;
            match (several, chosen) {
                (true, chosen) => chosen.into(),
                (false, chosen) => chosen.into_iter().next().unwrap_or_default(),
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn replies(words: &[&[&str]]) -> Vec<Vec<String>> {
        words.iter().map(|list| list.iter().map(|w| (*w).to_owned()).collect()).collect()
    }

    fn schema() -> Value {
        json!({
            "properties": {
                "age": { "type": "integer", "default": 30 },
                "colours": { "type": "array", "items": { "enum": ["r", "g"] } },
                "level": { "oneOf": [{ "const": "hi", "title": "High" }, { "const": "lo", "title": "Low" }] },
                "name": { "type": "string", "description": "Your name" },
                "score": { "type": "number" },
                "sure": { "type": "boolean", "default": true },
            },
            "required": ["name"],
        })
    }

    #[test]
    fn a_form_becomes_questions_and_answers_become_its_values() {
        let fields = fields(&schema());
        let items = items("lead", &fields);
        assert_eq!(items.len(), 6);
        assert_eq!(items[0].question, "lead\nage [30] (may be left empty)");
        assert!(items[1].multiple && !items[1].custom);
        let labels: Vec<_> = items[2].options.iter().map(|c| c.label.as_str()).collect();
        assert_eq!(labels, ["High", "Low"]);
        let content =
            read(&fields, &replies(&[&["7"], &["g", "r"], &["Low"], &["Ann"], &["1.5"], &["No"]]));
        let expected = json!({"age": 7, "colours": ["g", "r"], "level": "lo", "name": "Ann", "score": 1.5, "sure": false});
        assert_eq!(Value::Object(content.unwrap()), expected);
    }

    #[test]
    fn what_is_left_empty_is_the_default_and_what_is_needed_is_said() {
        let fields = fields(&schema());
        let content = read(&fields, &replies(&[&[], &[], &[], &["Ann"]])).unwrap();
        assert_eq!(Value::Object(content), json!({"age": 30, "name": "Ann", "sure": true}));
        assert_eq!(read(&fields, &[]).unwrap_err(), "name is needed");
        let wrong = read(&fields, &replies(&[&["old"], &[], &[], &["Ann"]])).unwrap_err();
        assert_eq!(wrong, "age: \"old\" is not a whole number");
    }
}
