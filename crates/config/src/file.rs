//! One settings file: JSON with comments, substitutions, and errors that say where.

use std::path::{Path, PathBuf};

use jsonc_parser::ast;
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};
use serde::de::DeserializeOwned;
use serde_json::Value;
use toolwright_permission::Rule;

use crate::load::Environment;
use crate::nested;
use crate::settings::{KNOWN_KEYS, Settings};
use crate::substitute::{files_in, meant, substitute};

#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error("{}:{line}:{column}: {message}", path.display())]
    Invalid { path: PathBuf, line: usize, column: usize, message: String },
    #[error("{variable} names {}, and there is no such file", path.display())]
    NotThere { variable: &'static str, path: PathBuf },
    #[error("cannot read {}: {source}", path.display())]
    Unreadable { path: PathBuf, source: std::io::Error },
}

/// A file as read: its settings, the plain value for merging, and what to warn of.
pub(crate) struct Parsed {
    pub(crate) settings: Settings,
    pub(crate) value: Value,
    pub(crate) warnings: Vec<String>,
    /// Files whose texts stand in it.
    pub(crate) included: Vec<PathBuf>,
}

/// JSON with comments and trailing commas, and nothing looser: a missing comma is more often a slip
/// than a wish.
pub(crate) const JSONC: ParseOptions = ParseOptions {
    allow_comments: true,
    allow_trailing_commas: true,
    allow_loose_object_property_names: false,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};

/// A file of ours. Without `env` (one that is not trusted) nothing is substituted: it must not make
/// us read variables or files for it.
pub(crate) fn parse(
    path: &Path,
    text: &str,
    env: Option<Environment<'_>>,
) -> Result<Parsed, ConfigError> {
    let Document { settings, value, keys, slips, included } = read(path, text, env)?;
    let said = |((line, column), words): ((usize, usize), String)| {
        format!("{}:{line}:{column}: {words}", path.display())
    };
    let unknown = keys.into_iter().filter_map(|(key, place)| Some((place, unknown_key(&key)?)));
    let warnings = unknown.chain(slips).map(said).collect();
    Ok(Parsed { settings, value, warnings, included })
}

/// What `T` knows of a file, and the file itself.
pub(crate) struct Document<T> {
    pub(crate) settings: T,
    value: Value,
    /// What stands at the top, with line and column.
    keys: Vec<(String, (usize, usize))>,
    /// What stands further inside and is almost right.
    slips: Vec<((usize, usize), String)>,
    /// Files whose texts stand in it now.
    pub(crate) included: Vec<PathBuf>,
}

/// Keys that `T` does not have may hold anything.
pub(crate) fn read<T: DeserializeOwned + Default>(
    path: &Path,
    text: &str,
    env: Option<Environment<'_>>,
) -> Result<Document<T>, ConfigError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let at = |offset: usize, message: String| {
        let (line, column) = position(text, offset);
        ConfigError::Invalid { path: path.to_owned(), line, column, message }
    };
    let parsed = parse_to_ast(text, &CollectOptions::default(), &JSONC)
        .map_err(|e| at(e.range().start, format!("not valid JSON: {}", e.kind())))?;
    let Some(tree) = parsed.value else {
        let value = Value::Object(serde_json::Map::new());
        let (keys, slips, included) = (Vec::new(), Vec::new(), Vec::new());
        return Ok(Document { settings: T::default(), value, keys, slips, included });
    };
    let Some(top) = tree.as_object() else {
        return Err(at(0, "expected an object of settings".to_owned()));
    };
    let place = |property: &ast::ObjectProp<'_>| {
        (property.name.as_str().to_owned(), position(text, property.range.start))
    };
    let keys = top.properties.iter().map(place).collect();
    let slips = nested::slips(top).into_iter();
    let slips = slips.map(|(at, words)| (position(text, at), words)).collect();
    let mut value = Value::from(tree.clone());
    let mut included = Vec::new();
    if let Some(env) = env {
        included = files_in(&value).into_iter().map(|name| meant(name, path, env)).collect();
        substitute(&mut value, path, env)
            .map_err(|(pointer, message)| at(offset_of(&tree, &pointer), message))?;
    }
    let settings = serde_path_to_error::deserialize(&value).map_err(|error| {
        let pointer: Vec<String> = error.path().iter().map(ToString::to_string).collect();
        at(offset_of(&tree, &pointer), format!("{}: {}", error.path(), in_words(error.inner())))
    })?;
    Ok(Document { settings, value, keys, slips, included })
}

/// What serde says of a wrong value, in the words of who writes settings instead of Rust.
fn in_words(error: &serde_json::Error) -> String {
    let said = error.to_string();
    let Some((found, expected)) = said.rsplit_once(", expected ") else { return said };
    let expected = match expected {
        "a map" => "an object",
        "a sequence" => "a list",
        "a boolean" => "true or false",
        "usize" | "u8" | "u16" | "u32" | "u64" => "a whole number that is not negative",
        "i8" | "i16" | "i32" | "i64" => "a whole number",
        "f32" | "f64" => "a number",
        other if other.starts_with("struct ") => "an object",
        _ => return said,
    };
    format!("{found}, expected {expected}")
}

/// An error about the value that `path` leads to in `text`.
pub(crate) fn invalid_at(
    path: &Path,
    text: &str,
    place: &[String],
    message: String,
) -> ConfigError {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let tree = parse_to_ast(text, &CollectOptions::default(), &JSONC).ok().and_then(|p| p.value);
    let offset = tree.map_or(0, |tree| offset_of(&tree, place));
    let (line, column) = position(text, offset);
    ConfigError::Invalid { path: path.to_owned(), line, column, message }
}

/// Where a rule stands in a file of settings, as far as it can be found again: the last of those that
/// read alike counts, as it does for decisions. `agent` names the agent whose rules are meant.
pub fn rule_line(path: &Path, agent: Option<&str>, rule: &Rule, home: &str) -> Option<usize> {
    let text = crate::bounded::read_to_string(path).ok()?;
    let parsed = parse_to_ast(&text, &CollectOptions::default(), &JSONC).ok()?;
    let tree = parsed.value?;
    let mut top = tree.as_object()?;
    if let Some(agent) = agent {
        top = top.get("agent")?.value.as_object()?.get(agent)?.value.as_object()?;
    }
    let line = |property: &ast::ObjectProp<'_>| position(&text, property.range.start).0;
    let property = top.get("permission").or_else(|| top.get("tools"))?;
    let Some(keys) = property.value.as_object() else { return Some(line(property)) };
    let key = keys.properties.iter().rev().find(|p| p.name.as_str() == rule.permission)?;
    let Some(patterns) = key.value.as_object() else { return Some(line(key)) };
    let is_it = |written: &&ast::ObjectProp<'_>| {
        Rule::new("", written.name.as_str(), rule.action, home).pattern == rule.pattern
    };
    patterns.properties.iter().rev().find(is_it).map(line)
}

fn unknown_key(key: &str) -> Option<String> {
    if KNOWN_KEYS.contains(&key) {
        return None;
    }
    let nearest = KNOWN_KEYS.iter().min_by_key(|known| strsim::damerau_levenshtein(known, key))?;
    let close = strsim::damerau_levenshtein(nearest, key) <= 3;
    let hint = if close { format!("; did you mean \"{nearest}\"?") } else { String::new() };
    Some(format!("unknown key \"{key}\"{hint}"))
}

/// Where the value that `path` leads to starts; as far as it leads.
fn offset_of(tree: &ast::Value<'_>, path: &[String]) -> usize {
    use jsonc_parser::common::Ranged;
    let mut node = tree;
    for part in path {
        let next = match node {
            ast::Value::Object(object) => object.get(part).map(|p| &p.value),
            ast::Value::Array(array) => {
                let index = part.trim_matches(['[', ']']).parse::<usize>().ok();
                index.and_then(|i| array.elements.get(i))
            }
            _ => None,
        };
        match next {
            Some(next) => node = next,
            None => break,
        }
    }
    node.range().start
}

/// Line and column as editors count them.
fn position(text: &str, offset: usize) -> (usize, usize) {
    let before = text.get(..offset).unwrap_or(text);
    let line = before.bytes().filter(|b| *b == b'\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    (line, column)
}
