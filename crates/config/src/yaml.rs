//! The heads of Markdown files, as the YAML that they are. Aliases are refused: a small file of an
//! unknown repository could unfold into gigabytes with them.

use saphyr_parser::{Event, Parser, ScalarStyle};
use serde_json::{Map, Number, Value};

/// Deeper than anybody writes.
const DEPTH: usize = 32;

/// The value of a text, or what is wrong with it and in which of its lines.
pub(crate) fn parse(text: &str) -> Result<Value, String> {
    let mut events = Events { parser: Parser::new_from_str(text) };
    loop {
        match events.next()? {
            Event::StreamStart | Event::DocumentStart(_) | Event::Nothing => {}
            Event::StreamEnd | Event::DocumentEnd => return Ok(Value::Object(Map::new())),
            first => return events.value(first, 0),
        }
    }
}

/// As [`parse`]; what people write without the quotes that it would need is read as they meant it.
pub(crate) fn parse_kindly(text: &str) -> Result<Value, String> {
    parse(text).or_else(|problem| parse(&quoted(text)).map_err(|_| problem))
}

/// `description: Use this: it helps` is one text.
fn quoted(text: &str) -> String {
    let line = |line: &str| match line.split_once(": ") {
        Some((key, value))
            if value.contains(": ")
                && !value.trim_start().starts_with(['"', '\'', '{', '[', '|', '>']) =>
        {
            format!("{key}: {}", Value::String(value.trim().to_owned()))
        }
        _ => line.to_owned(),
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

struct Events<'a> {
    parser: Parser<'a, saphyr_parser::StrInput<'a>>,
}

impl<'a> Events<'a> {
    fn next(&mut self) -> Result<Event<'a>, String> {
        match self.parser.next() {
            Some(Ok((event, _))) => Ok(event),
            Some(Err(error)) => Err(format!("line {}: {}", error.marker().line(), error.info())),
            None => Ok(Event::StreamEnd),
        }
    }

    fn value(&mut self, first: Event<'a>, depth: usize) -> Result<Value, String> {
        if depth > DEPTH {
            return Err("it is nested too deeply".to_owned());
        }
        match first {
            Event::Scalar(text, style, _, _) => Ok(scalar(&text, style)),
            Event::SequenceStart(..) => {
                let mut list = Vec::new();
                loop {
                    match self.next()? {
                        Event::SequenceEnd => return Ok(Value::Array(list)),
                        item => list.push(self.value(item, depth + 1)?),
                    }
                }
            }
            Event::MappingStart(..) => {
                let mut map = Map::new();
                loop {
                    let key = match self.next()? {
                        Event::MappingEnd => return Ok(Value::Object(map)),
                        Event::Scalar(text, ..) => text.into_owned(),
                        _ => return Err("a key must be a plain word".to_owned()),
                    };
                    let next = self.next()?;
                    map.insert(key, self.value(next, depth + 1)?);
                }
            }
            Event::Alias(_) => Err("anchors and aliases are not read".to_owned()),
            _ => Err("it ends too early".to_owned()),
        }
    }
}

fn scalar(text: &str, style: ScalarStyle) -> Value {
    if style != ScalarStyle::Plain {
        return Value::String(text.to_owned());
    }
    match text {
        "" | "~" | "null" => Value::Null,
        "true" | "True" => Value::Bool(true),
        "false" | "False" => Value::Bool(false),
        _ => {
            let whole = text.parse::<i64>().ok().map(Number::from);
            let looks = text.starts_with(|c: char| c.is_ascii_digit() || c == '-' || c == '.');
            let part = || text.parse::<f64>().ok().filter(|_| looks).and_then(Number::from_f64);
            whole.or_else(part).map_or_else(|| Value::String(text.to_owned()), Value::Number)
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn heads_as_people_write_them() {
        let text = "description: >\n  Reviews\n  code\nmode: subagent\ntemperature: 0.1\nsteps: 5\ntools:\n  write: false\n  \"my_*\": true\npermission: {edit: deny, bash: {\"git *\": allow}}\nlist: [a, b]\nmodel: anthropic/claude\nempty:\n";
        assert_eq!(
            parse(text).unwrap(),
            json!({
                "description": "Reviews code\n", "mode": "subagent", "temperature": 0.1, "steps": 5,
                "tools": { "write": false, "my_*": true },
                "permission": { "edit": "deny", "bash": { "git *": "allow" } },
                "list": ["a", "b"], "model": "anthropic/claude", "empty": null,
            })
        );
        assert_eq!(parse("").unwrap(), json!({}));
    }

    #[test]
    fn a_colon_in_a_sentence_is_forgiven_and_an_alias_is_not() {
        let kind = parse_kindly("description: Use this: it helps\nmode: all").unwrap();
        assert_eq!(kind, json!({ "description": "Use this: it helps", "mode": "all" }));
        assert!(parse("a: &x [1]\nb: *x").unwrap_err().contains("aliases"));
        assert!(parse("a: [1").unwrap_err().contains("line"), "{:?}", parse("a: [1"));
    }
}
