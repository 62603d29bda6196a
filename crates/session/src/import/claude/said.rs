//! What a line in a person's name says: much of it was written by the program in their place.

use serde_json::Value;

use super::super::build::text;
use crate::export::ansi::plain;

/// What a text of a person's line is.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Said {
    Prompt(String),
    Note(String),
    /// Meant for the program itself.
    Nothing,
}

/// Tags around what the program told the model, where nothing else is said.
const TOLD: &[&str] =
    &["system-reminder", "task-notification", "user-prompt-submit-hook", "user-memory-input"];

/// `is_local`: the command was carried out by the program, and no model was asked.
pub(super) fn meaning(said: &str, is_local: bool) -> Said {
    let trimmed = said.trim();
    if let Some(command) = inner(trimmed, "command-name") {
        let arguments = inner(trimmed, "command-args").unwrap_or_default();
        let name = command.trim_start_matches('/');
        let line = format!("/{name} {arguments}").trim().to_owned();
        return if is_local {
            Said::Note(format!("The user ran {line}"))
        } else {
            Said::Prompt(line)
        };
    }
    if trimmed.starts_with("<local-command-caveat>") {
        return Said::Nothing;
    }
    if is_output(trimmed) {
        let parts = ["local-command-stdout", "local-command-stderr", "bash-stdout", "bash-stderr"];
        let parts = parts.iter().filter_map(|tag| inner(trimmed, tag));
        let words: Vec<String> = parts
            .map(|text| plain(text).trim().to_owned())
            .filter(|text| !text.is_empty())
            .collect();
        return if words.is_empty() { Said::Nothing } else { Said::Note(words.join("\n")) };
    }
    if let Some(command) = inner(trimmed, "bash-input") {
        return Said::Note(format!("The user ran this command:\n$ {command}"));
    }
    let told = |tag: &str| {
        trimmed.starts_with(&format!("<{tag}>")) && trimmed.ends_with(&format!("</{tag}>"))
    };
    if TOLD.iter().any(|tag| told(tag)) || trimmed.starts_with("[Request interrupted by user") {
        return Said::Note(trimmed.to_owned());
    }
    Said::Prompt(said.to_owned())
}

/// What a command of the person printed.
pub(super) fn is_output(said: &str) -> bool {
    let said = said.trim_start();
    ["<local-command-std", "<bash-stdout>", "<bash-stderr>"].iter().any(|tag| said.starts_with(tag))
}

/// The words of a line that has nothing but words.
pub(super) fn words(line: &Value) -> &str {
    let content = &line["message"]["content"];
    content.as_str().unwrap_or_else(|| text(&content[0]["text"]))
}

fn inner<'a>(said: &'a str, tag: &str) -> Option<&'a str> {
    let (_, rest) = said.split_once(&format!("<{tag}>"))?;
    Some(rest.split_once(&format!("</{tag}>"))?.0.trim())
}

/// A diff from what an edit noted of itself.
pub(super) fn diff_of(details: &Value) -> Option<String> {
    let path = details["filePath"].as_str()?;
    let mut out = format!("--- {path}\n+++ {path}\n");
    let hunks = details["structuredPatch"].as_array().map(Vec::as_slice).unwrap_or_default();
    for hunk in hunks {
        let number = |key: &str| hunk[key].as_u64().unwrap_or(0);
        let (old, new) =
            ((number("oldStart"), number("oldLines")), (number("newStart"), number("newLines")));
        out.push_str(&format!("@@ -{},{} +{},{} @@\n", old.0, old.1, new.0, new.1));
        for line in hunk["lines"].as_array().into_iter().flatten() {
            out.push_str(&format!("{}\n", text(line)));
        }
    }
    // A new file has no hunks: all of it is new.
    if hunks.is_empty() && details["type"] == "create" {
        let lines: Vec<&str> = text(&details["content"]).lines().collect();
        out.push_str(&format!("@@ -0,0 +1,{} @@\n", lines.len()));
        lines.iter().for_each(|line| out.push_str(&format!("+{line}\n")));
    }
    out.contains("@@").then_some(out)
}
