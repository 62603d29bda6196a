//! Replaces text in a file and touches no byte outside the match.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use toolwright_tool::{Access, Plan, PlanContext, Planned, RunContext, Tool, ToolError, ToolOutput};

use crate::diff::{Change, change};

pub struct Edit;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Arguments {
    /// The file to change: absolute, or relative to the working directory.
    file_path: String,
    /// The text to replace, exactly as it stands in the file. Empty to create a new file.
    old_string: String,
    /// The text to put in its place.
    new_string: String,
    /// Replace every occurrence instead of exactly one.
    #[serde(default)]
    replace_all: bool,
}

pub struct Prepared {
    path: PathBuf,
    shown: String,
    old: Option<Vec<u8>>,
    new: Vec<u8>,
    count: usize,
    change: Change,
}

/// Positions that an error about several matches names.
const CANDIDATES_SHOWN: usize = 10;

impl Tool for Edit {
    type Arguments = Arguments;
    type Prepared = Prepared;

    fn name(&self) -> &str {
        "edit"
    }

    fn description(&self) -> &str {
        include_str!("edit.md")
    }

    async fn plan(&self, arguments: Arguments, context: &PlanContext) -> Planned<Prepared> {
        let path = context.workspace.resolve(&arguments.file_path);
        let shown = context.workspace.relative(&path);
        let declare = |diff: String| {
            let access = Access::Write { path: path.clone(), diff };
            Plan::new(format!("edit {shown}"), vec![access])
        };
        let made = read_existing(&path).and_then(|old| {
            let (new, count) = apply(&shown, old.as_deref(), &arguments)?;
            Ok((old, new, count))
        });
        match made {
            Ok((old, new, count)) => {
                let change = change(&shown, old.as_deref().unwrap_or_default(), &new);
                let plan = declare(change.patch.clone());
                Planned::ready(plan, Prepared { path, shown, old, new, count, change })
            }
            Err(error) => Planned::failed(declare(String::new()), error),
        }
    }

    async fn run(&self, call: Prepared, context: RunContext) -> Result<ToolOutput, ToolError> {
        let Prepared { path, shown, old, new, count, change } = call;
        let files = context.files;
        let target = path.clone();
        let name = shown.clone();
        crate::walk::blocking(move || {
            if read_existing(&target)? != old {
                let text = format!("{name} was changed by something else just now; read it again and retry.");
                return Err(ToolError::for_model(text));
            }
            files.write(&target, &new)
        })
        .await?;
        let details = json!({
            "filepath": path, "diff": change.patch, "matcher": "exact", "replacements": count,
            "additions": change.additions, "deletions": change.deletions,
        });
        let text = match count {
            0 => format!("Edit applied successfully. Created {shown}."),
            1 => "Edit applied successfully.".to_owned(),
            n => format!("Edit applied successfully. Replaced {n} occurrences."),
        };
        Ok(ToolOutput::text(text).titled(shown).with_details(details))
    }
}

/// The new content and the number of replacements (0 for a new file).
fn apply(
    shown: &str,
    old: Option<&[u8]>,
    arguments: &Arguments,
) -> Result<(Vec<u8>, usize), ToolError> {
    let Arguments { old_string, new_string, replace_all, .. } = arguments;
    if old_string == new_string {
        let text = "oldString and newString are identical: nothing would change.";
        return Err(ToolError::for_model(text));
    }
    let content = match (old, old_string.is_empty()) {
        (None, true) => return Ok((new_string.clone().into_bytes(), 0)),
        (None, false) => {
            return Err(ToolError::for_model(format!("File {shown} not found. To create it, pass an empty oldString.")));
        }
        (Some(_), true) => {
            let text = format!(
                "oldString cannot be empty: {shown} exists. Give the text to replace, or use write to replace the whole file."
            );
            return Err(ToolError::for_model(text));
        }
        (Some(content), false) => content,
    };
    let (wanted, replacement) = in_file_line_ends(content, old_string, new_string);
    let found = occurrences(content, wanted.as_bytes());
    match found.len() {
        0 => Err(ToolError::for_model(format!(
            "Could not find oldString in {shown}. It must match the file exactly, with its indentation and line \
             breaks; read the file and copy the text without the line numbers."
        ))),
        1 => Ok((replace(content, &found, wanted.len(), replacement.as_bytes()), 1)),
        n if *replace_all => Ok((replace(content, &found, wanted.len(), replacement.as_bytes()), n)),
        n => {
            let lines = line_numbers(content, &found);
            let shown_lines = lines.iter().take(CANDIDATES_SHOWN).map(usize::to_string);
            let list = shown_lines.collect::<Vec<_>>().join(", ");
            let more = if n > CANDIDATES_SHOWN { ", …" } else { "" };
            Err(ToolError::for_model(format!(
                "Found multiple matches for oldString in {shown}: {n}, at lines {list}{more}. Include more of the \
                 surrounding lines to make it unique, or set replaceAll."
            )))
        }
    }
}

/// Models write LF. Where the text is only found with the file's CRLF, both strings get it, so that
/// the new lines end as their neighbours do.
fn in_file_line_ends(content: &[u8], old: &str, new: &str) -> (String, String) {
    let as_given = || (old.to_owned(), new.to_owned());
    let lf_only = old.contains('\n') && !old.contains('\r');
    if !lf_only && !(new.contains('\n') && !new.contains('\r') && is_crlf(content)) {
        return as_given();
    }
    let crlf = |text: &str| text.replace("\r\n", "\n").replace('\n', "\r\n");
    if lf_only && !occurrences(content, old.as_bytes()).is_empty() {
        return as_given();
    }
    (if lf_only { crlf(old) } else { old.to_owned() }, crlf(new))
}

/// Whether every line of the file ends in CRLF.
fn is_crlf(content: &[u8]) -> bool {
    let mut ends = content.iter().enumerate().filter(|(_, b)| **b == b'\n').peekable();
    ends.peek().is_some() && ends.all(|(at, _)| at > 0 && content[at - 1] == b'\r')
}

fn occurrences(content: &[u8], wanted: &[u8]) -> Vec<usize> {
    let mut found = Vec::new();
    let finder = |from: usize| -> Option<usize> {
        let first = *wanted.first()?;
        let mut at = from;
        while at + wanted.len() <= content.len() {
            at += content[at..=content.len() - wanted.len()].iter().position(|b| *b == first)?;
            if content[at..].starts_with(wanted) {
                return Some(at);
            }
            at += 1;
        }
        None
    };
    let mut from = 0;
    while let Some(at) = finder(from) {
        found.push(at);
        from = at + wanted.len();
    }
    found
}

fn replace(content: &[u8], found: &[usize], length: usize, new: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(content.len() + found.len() * new.len());
    let mut from = 0;
    for at in found {
        out.extend_from_slice(&content[from..*at]);
        out.extend_from_slice(new);
        from = at + length;
    }
    out.extend_from_slice(&content[from..]);
    out
}

fn line_numbers(content: &[u8], found: &[usize]) -> Vec<usize> {
    let (mut line, mut from) = (1, 0);
    let number = |at: &usize| {
        line += content[from..*at].iter().filter(|b| **b == b'\n').count();
        from = *at;
        line
    };
    found.iter().map(number).collect()
}

/// The content of a regular file, or nothing where there is none. A device or a pipe would never
/// end; a folder is not a file.
pub(crate) fn read_existing(path: &Path) -> Result<Option<Vec<u8>>, ToolError> {
    let failed = |e: io::Error| ToolError::for_model(format!("Cannot read {}: {e}", path.display()));
    match fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(failed(error)),
        Ok(data) if data.is_dir() => {
            Err(ToolError::for_model(format!("Path is a directory, not a file: {}", path.display())))
        }
        Ok(data) if !data.is_file() => {
            Err(ToolError::for_model(format!("{} is not a regular file.", path.display())))
        }
        Ok(_) => fs::read(path).map(Some).map_err(failed),
    }
}
