//! Which of the lines are the current conversation.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::super::build::text;

/// The line that the program itself says it stands at, unless something was said after that.
fn leaf<'a>(lines: &'a [Value], places: &HashMap<&str, usize>) -> Option<&'a str> {
    let last = |line: &Value| line["message"].is_object() && line["isSidechain"] != true;
    let newest = lines.iter().rposition(last)?;
    let said = lines[newest..].iter().rev().find(|line| line["type"] == "last-prompt")?;
    said["leafUuid"].as_str().filter(|leaf| places.contains_key(leaf))
}

/// Written where notes took the place of what came before. Versions differ in where they say so.
pub(super) fn is_boundary(line: &Value) -> bool {
    line["subtype"] == "compact_boundary" || line["type"] == "compact_boundary"
}

/// The ancestors of the last line, and what belongs to them without being one: other blocks of the same
/// answers, and the results of their calls.
pub(super) fn branch<'a>(lines: &[Value], told: &[&'a Value]) -> Vec<&'a Value> {
    let parent_of: HashMap<&str, &str> = lines
        .iter()
        .filter_map(|line| {
            let parent = line["parentUuid"].as_str().or(line["logicalParentUuid"].as_str())?;
            Some((line["uuid"].as_str()?, parent))
        })
        .collect();
    let places: HashMap<&str, usize> = lines
        .iter()
        .enumerate()
        .filter_map(|(n, line)| Some((line["uuid"].as_str()?, n)))
        .collect();
    let numbers: Vec<usize> =
        told.iter().filter_map(|line| places.get(text(&line["uuid"])).copied()).collect();
    // The newest line of this conversation before that one.
    let before = |uuid: &str| -> Option<&str> {
        let own = places.get(uuid)?;
        let earlier = numbers.iter().rev().find(|number| *number < own)?;
        lines[*earlier]["uuid"].as_str()
    };
    let mut on: HashSet<&str> = HashSet::new();
    // The program speaks of its own conversation, not of its agents'.
    let is_side = told.first().is_some_and(|line| line["isSidechain"] == true);
    let said = if is_side { None } else { leaf(lines, &places) };
    let mut next = said.or(told.last().map(|line| text(&line["uuid"])));
    while let Some(at) = next
        && on.insert(at)
    {
        let shortened = places.get(at).is_some_and(|number| begins_with_notes(&lines[*number]));
        next = match parent_of.get(at).copied() {
            Some(parent) if places.contains_key(parent) => Some(parent),
            // Some lines never reached the file; others begin anew behind notes.
            Some(_) => before(at),
            None if shortened => before(at),
            None => None,
        };
    }
    let is_on = |line: &&&Value| on.contains(text(&line["uuid"]));
    let answers: HashSet<&str> =
        told.iter().filter(is_on).filter_map(|line| line["message"]["id"].as_str()).collect();
    let mut wanted = HashSet::new();
    for line in told {
        let same = line["message"]["id"].as_str().is_some_and(|id| answers.contains(id));
        let parts = line["message"]["content"].as_array().into_iter().flatten();
        if same {
            let calls = parts.clone().filter(|part| part["type"] == "tool_use");
            wanted.extend(calls.map(|part| text(&part["id"])));
        }
    }
    let belongs = |line: &&&Value| {
        let mut parts = line["message"]["content"].as_array().into_iter().flatten();
        let same = line["message"]["id"].as_str().is_some_and(|id| answers.contains(id));
        same || parts.any(|part| {
            part["type"] == "tool_result" && wanted.contains(text(&part["tool_use_id"]))
        })
    };
    told.iter().filter(|line| is_on(line) || belongs(line)).copied().collect()
}

/// Whether what came before it was replaced by notes.
fn begins_with_notes(line: &Value) -> bool {
    line["isCompactSummary"] == true || is_boundary(line)
}
