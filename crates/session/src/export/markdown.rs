//! A session as a Markdown document.

use serde_json::Value;

use super::ansi;
use super::parts::{Shown, Tool, bill, child, date, duration, orphans, shown, speaker, text};

/// The whole conversation, from the export form.
pub fn document(form: &Value) -> String {
    let mut out = String::new();
    write(form, 1, &mut out);
    out
}

/// Headings beyond the sixth level are none.
fn heading(level: usize) -> String {
    "#".repeat(level.min(6))
}

fn write(form: &Value, level: usize, out: &mut String) {
    let info = &form["info"];
    out.push_str(&format!("{} {}\n\n", heading(level), one_line(text(&info["title"]))));
    let facts = [
        ("Session", text(&info["id"]).to_owned()),
        ("Folder", text(&info["directory"]).to_owned()),
        ("Created", date(&info["time"]["created"])),
        ("Updated", date(&info["time"]["updated"])),
        ("Used", bill(info)),
    ];
    for (name, fact) in facts {
        out.push_str(&format!("- **{name}:** {}\n", one_line(&fact)));
    }
    let messages = form["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut last = String::new();
    for message in messages {
        let who = speaker(&message["info"]);
        let is_note = shown(message).all(|part| matches!(part, Shown::Note(_)));
        // Steps of one turn stand under one heading as far as they say the same of themselves.
        if who != last && !is_note {
            out.push_str(&format!("\n---\n\n{} {who}\n", heading(level + 1)));
            who.clone_into(&mut last);
        }
        for part in shown(message) {
            out.push('\n');
            write_part(form, part, level, out);
        }
        if let Some(problem) = message["info"]["error"]["data"]["message"].as_str() {
            out.push_str(&format!("\n> **Failed:** {}\n", one_line(problem)));
        }
    }
    for orphan in orphans(form) {
        out.push('\n');
        write(orphan, level + 2, out);
    }
}

fn write_part(form: &Value, part: Shown<'_>, level: usize, out: &mut String) {
    match part {
        Shown::Text(said) => out.push_str(&format!("{}\n", said.trim_end())),
        Shown::Reasoning(thought) => {
            out.push_str(&format!("_Thinking:_\n\n{}\n", quoted(thought)));
        }
        Shown::Note(note) => out.push_str(&format!("_Note to the model:_\n\n{}\n", quoted(note))),
        Shown::File { mime, name, .. } => {
            out.push_str(&format!("_Attached: {} ({mime})_\n", one_line(name)));
        }
        Shown::Shortened => out.push_str("_From here on, notes stand for the beginning._\n"),
        Shown::Other(kind) => out.push_str(&format!("_({kind})_\n")),
        Shown::Tool(tool) => write_tool(form, &tool, level, out),
    }
}

fn write_tool(form: &Value, tool: &Tool<'_>, level: usize, out: &mut String) {
    let title = one_line(tool.title);
    out.push_str(&format!(
        "**{} {}** {title} ({})\n",
        tool.mark,
        one_line(tool.name),
        duration(tool.milliseconds)
    ));
    let input = serde_json::to_string_pretty(tool.input).unwrap_or_default();
    out.push_str(&format!("\nInput:\n\n{}", fenced("json", &input)));
    if let Some(diff) = tool.diff {
        out.push_str(&format!("\nChange:\n\n{}", fenced("diff", diff)));
    }
    if !tool.output.trim().is_empty() {
        let name = if tool.failed { "Error" } else { "Output" };
        out.push_str(&format!("\n{name}:\n\n{}", fenced("", &ansi::plain(tool.output))));
    }
    for file in &tool.files {
        if let Shown::File { mime, name, .. } = file {
            out.push_str(&format!("\n_Attached: {} ({mime})_\n", one_line(name)));
        }
    }
    if let Some(work) = tool.child.and_then(|id| child(form, id)) {
        out.push('\n');
        write(work, level + 2, out);
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn quoted(text: &str) -> String {
    text.trim_end().lines().map(|line| format!("> {line}")).collect::<Vec<_>>().join("\n")
}

/// A fence that is longer than any inside.
fn fenced(language: &str, text: &str) -> String {
    let mut longest = 2;
    let mut run = 0;
    for letter in text.chars() {
        run = if letter == '`' { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    let fence = "`".repeat(longest + 1);
    format!("{fence}{language}\n{}\n{fence}\n", text.trim_end_matches('\n'))
}
