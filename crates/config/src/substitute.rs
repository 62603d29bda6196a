//! `{env:NAME}` and `{file:path}` inside of strings: which there are, and what takes their place.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::load::Environment;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Piece<'a> {
    Words(&'a str),
    Variable(&'a str),
    File(&'a str),
}

fn pieces(text: &str) -> Vec<Piece<'_>> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find('{')
        && let Some(length) = rest[start..].find('}')
    {
        let end = start + length;
        let inner = &rest[start + 1..end];
        found.push(Piece::Words(&rest[..start]));
        found.push(match (inner.strip_prefix("env:"), inner.strip_prefix("file:")) {
            (Some(name), _) => Piece::Variable(name.trim()),
            (_, Some(path)) => Piece::File(path.trim()),
            _ => Piece::Words(&rest[start..=end]),
        });
        rest = &rest[end + 1..];
    }
    found.push(Piece::Words(rest));
    found
}

/// The files that the strings of a value include, as they are named there.
pub(crate) fn files_in(value: &Value) -> Vec<&str> {
    let file = |piece| match piece {
        Piece::File(name) => Some(name),
        Piece::Words(_) | Piece::Variable(_) => None,
    };
    match value {
        Value::String(text) => pieces(text).into_iter().filter_map(file).collect(),
        Value::Array(items) => items.iter().flat_map(files_in).collect(),
        Value::Object(entries) => entries.values().flat_map(files_in).collect(),
        _ => Vec::new(),
    }
}

/// Where a file is that `file` names.
pub(crate) fn meant(name: &str, file: &Path, env: Environment<'_>) -> PathBuf {
    match name.strip_prefix("~/") {
        Some(rest) => PathBuf::from(env("HOME").unwrap_or_default()).join(rest),
        None => file.parent().unwrap_or(Path::new(".")).join(name),
    }
}

/// What is wrong, behind the way to where it is.
pub(crate) type Misplaced = (Vec<String>, String);

/// Replaces all of them. `file` is where the value stands.
pub(crate) fn substitute(
    value: &mut Value,
    file: &Path,
    env: Environment<'_>,
) -> Result<(), Misplaced> {
    walk(value, &mut Vec::new(), &|text| expand(text, file, env))
}

fn walk(
    value: &mut Value,
    place: &mut Vec<String>,
    expand: &dyn Fn(&str) -> Result<String, String>,
) -> Result<(), Misplaced> {
    match value {
        Value::String(text) if text.contains('{') => {
            *text = expand(text).map_err(|message| (place.clone(), message))?;
        }
        Value::Array(items) => {
            for (n, item) in items.iter_mut().enumerate() {
                place.push(n.to_string());
                walk(item, place, expand)?;
                place.pop();
            }
        }
        Value::Object(entries) => {
            for (key, item) in entries.iter_mut() {
                place.push(key.clone());
                walk(item, place, expand)?;
                place.pop();
            }
        }
        _ => {}
    }
    Ok(())
}

fn expand(text: &str, file: &Path, env: Environment<'_>) -> Result<String, String> {
    let mut out = String::new();
    for piece in pieces(text) {
        match piece {
            Piece::Words(words) => out.push_str(words),
            // A variable that is not set is empty, as in a shell.
            Piece::Variable(name) => out.push_str(&env(name).unwrap_or_default()),
            Piece::File(name) => {
                let full = meant(name, file, env);
                let text = crate::bounded::read_to_string(&full)
                    .map_err(|e| format!("{{file:{name}}}: cannot read {}: {e}", full.display()))?;
                out.push_str(text.trim());
            }
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_read_is_what_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("settings.json");
        std::fs::write(folder.path().join("a"), " words\n").unwrap();
        let env = |name: &str| (name == "SET").then(|| "value".to_owned());
        for (text, expected, files) in [
            ("", "", &[][..]),
            ("{file:a}", "words", &["a"]),
            ("x{ file:a}{file: a }y{file:./a}", "x{ file:a}wordsywords", &["a", "./a"]),
            ("{env:SET}-{env:NONE}-{env: SET }", "value--value", &[]),
            // The first brace that is closed counts, and one that is not is none.
            ("{x{file:a}", "{x{file:a}", &[]),
            ("{file:a} {file:a", "words {file:a", &["a"]),
            ("}{}{äöü}{", "}{}{äöü}{", &[]),
        ] {
            let mut value = json!({ "k": [text] });
            assert_eq!(files_in(&value), files, "{text}");
            substitute(&mut value, &file, &env).unwrap();
            assert_eq!(value["k"][0], expected, "{text}");
        }
        let mut value = json!({ "k": ["", "{file:none}"] });
        let (place, message) = substitute(&mut value, &file, &env).unwrap_err();
        assert_eq!(place, ["k", "1"]);
        assert!(message.starts_with("{file:none}: cannot read"), "{message}");
    }
}
