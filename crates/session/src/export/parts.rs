//! The export form as what people look at, for Markdown and HTML alike.

use serde_json::Value;

use super::json::OWN;

/// One thing to show.
pub(super) enum Shown<'a> {
    Text(&'a str),
    Reasoning(&'a str),
    /// Said to the model by the program.
    Note(&'a str),
    File {
        mime: &'a str,
        name: &'a str,
        url: &'a str,
    },
    Tool(Tool<'a>),
    /// What came before is sent to the model as notes.
    Shortened,
    Other(&'a str),
}

pub(super) struct Tool<'a> {
    pub(super) name: &'a str,
    pub(super) title: &'a str,
    pub(super) mark: &'static str,
    pub(super) failed: bool,
    /// Of a command.
    pub(super) exit: Option<i64>,
    pub(super) input: &'a Value,
    pub(super) output: &'a str,
    pub(super) diff: Option<&'a str>,
    pub(super) milliseconds: u64,
    pub(super) files: Vec<Shown<'a>>,
    /// The session of the agent that did this work.
    pub(super) child: Option<&'a str>,
}

pub(super) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// The parts of a message that are worth showing, in order.
pub(super) fn shown(message: &Value) -> impl Iterator<Item = Shown<'_>> {
    message["parts"].as_array().into_iter().flatten().filter_map(part)
}

fn part(part: &Value) -> Option<Shown<'_>> {
    Some(match text(&part["type"]) {
        "text" if part["synthetic"] == true => Shown::Note(text(&part["text"])),
        "text" | "reasoning" if text(&part["text"]).trim().is_empty() => return None,
        "text" => Shown::Text(text(&part["text"])),
        "reasoning" => Shown::Reasoning(text(&part["text"])),
        "file" => file(part),
        "tool" => Shown::Tool(tool(part)),
        "compaction" => Shown::Shortened,
        "step-start" | "step-finish" | "snapshot" | "patch" => return None,
        other => Shown::Other(other),
    })
}

fn file(part: &Value) -> Shown<'_> {
    let name = part["filename"].as_str().unwrap_or("attached");
    Shown::File { mime: text(&part["mime"]), name, url: text(&part["url"]) }
}

fn tool(part: &Value) -> Tool<'_> {
    let state = &part["state"];
    let outcome = &part["metadata"][OWN]["outcome"];
    let done = state["status"] == "completed";
    let metadata = &state["metadata"];
    let mark = match text(&outcome["ending"]) {
        "denied" => "⊘",
        "skipped" | "interrupted" => "–",
        // A command that did not do what it was to do is no success to people.
        _ if metadata["exit"].as_i64().is_some_and(|exit| exit != 0) => "✗",
        _ if done => "✓",
        _ if state["metadata"]["interrupted"] == true => "–",
        _ => "✗",
    };
    let time = |key: &str| state["time"][key].as_u64().unwrap_or(0);
    let passed = time("end").saturating_sub(time("start"));
    let title = state["title"].as_str().or(outcome["title"].as_str()).unwrap_or_default();
    Tool {
        name: text(&part["tool"]),
        title,
        mark,
        failed: !done || mark == "✗",
        exit: metadata["exit"].as_i64(),
        input: &state["input"],
        output: text(if done { &state["output"] } else { &state["error"] }),
        diff: metadata["diff"].as_str().filter(|diff| !diff.trim().is_empty()),
        milliseconds: outcome["duration_ms"].as_u64().unwrap_or(passed),
        files: state["attachments"].as_array().into_iter().flatten().map(file).collect(),
        child: metadata["sessionId"].as_str().or(metadata["session"].as_str()),
    }
}

/// The nested session with this id.
pub(super) fn child<'a>(form: &'a Value, id: &str) -> Option<&'a Value> {
    form["children"].as_array()?.iter().find(|child| child["info"]["id"] == id)
}

/// Nested sessions that no call names.
pub(super) fn orphans(form: &Value) -> impl Iterator<Item = &Value> {
    let named: Vec<&str> = form["messages"]
        .as_array()
        .into_iter()
        .flatten()
        .flat_map(shown)
        .filter_map(|shown| match shown {
            Shown::Tool(tool) => tool.child,
            _ => None,
        })
        .collect();
    let children = form["children"].as_array().into_iter().flatten();
    children.filter(move |child| !named.contains(&text(&child["info"]["id"])))
}

/// A date as people read it, in this machine's time zone.
pub(super) fn date(milliseconds: &Value) -> String {
    let stamp = milliseconds.as_i64().and_then(|ms| jiff::Timestamp::from_millisecond(ms).ok());
    stamp.map_or_else(String::new, |stamp| {
        stamp.to_zoned(jiff::tz::TimeZone::system()).strftime("%Y-%m-%d %H:%M").to_string()
    })
}

pub(super) fn duration(milliseconds: u64) -> String {
    match milliseconds {
        0..1_000 => format!("{milliseconds} ms"),
        1_000..60_000 => format!("{:.1} s", milliseconds as f64 / 1e3),
        _ => format!("{} min {} s", milliseconds / 60_000, milliseconds % 60_000 / 1_000),
    }
}

/// 1234567 as 1,234,567.
pub(super) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// What the session cost, in words.
pub(super) fn bill(info: &Value) -> String {
    let tokens = &info["tokens"];
    let number = |value: &Value| value.as_u64().unwrap_or(0);
    let input = number(&tokens["input"])
        + number(&tokens["cache"]["read"])
        + number(&tokens["cache"]["write"]);
    let output = number(&tokens["output"]) + number(&tokens["reasoning"]);
    let mut bill = format!("{} tokens in, {} out", grouped(input), grouped(output));
    if let Some(cost) = info["cost"].as_f64().filter(|cost| *cost > 0.0) {
        bill.push_str(&format!(", ${cost:.4}"));
    }
    bill
}

/// Who said this.
pub(super) fn voice(info: &Value) -> String {
    if info["role"] == "user" {
        return "User".to_owned();
    }
    let known = [&info["agent"], &info["modelID"]].into_iter().map(text);
    let known: Vec<&str> = known.filter(|word| !word.is_empty()).collect();
    if known.is_empty() { "Assistant".to_owned() } else { known.join(" · ") }
}

/// Who said this and how long it took.
pub(super) fn speaker(info: &Value) -> String {
    if info["role"] == "user" {
        return voice(info);
    }
    let time = |key: &str| info["time"][key].as_u64();
    let took = match (time("created"), time("completed")) {
        (Some(start), Some(end)) => format!(" · {}", duration(end.saturating_sub(start))),
        _ => String::new(),
    };
    format!("Assistant ({}{took})", voice(info))
}
