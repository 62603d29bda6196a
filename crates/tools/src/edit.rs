//! Replaces text in a file and touches no byte outside the match.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use toolwright_tool::{
    Access, Plan, PlanContext, Planned, RunContext, Tool, ToolError, ToolOutput,
};

use crate::diff::{Change, change};
use crate::feedback::{Edited, Feedback, Occasion};

pub struct Edit {
    feedback: Feedback,
}

impl Edit {
    pub fn new(feedback: Feedback) -> Self {
        Self { feedback }
    }
}

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

/// Bytes of a file that is edited in memory.
const FILE_CAP_BYTES: u64 = 256 << 20;

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
        let declare = {
            let (path, shown) = (path.clone(), shown.clone());
            move |diff: String| {
                Plan::new(format!("edit {shown}"), vec![Access::Write { path: path.clone(), diff }])
            }
        };
        let made = crate::walk::blocking(move || {
            let old = read_existing(&path)?;
            let (new, count) = apply(&shown, old.as_deref(), &arguments)?;
            let change = change(&shown, old.as_deref().unwrap_or_default(), &new);
            Ok(Prepared { path, shown, old, new, count, change })
        });
        match made.await {
            Ok(prepared) => Planned::ready(declare(prepared.change.patch.clone()), prepared),
            Err(error) => Planned::failed(declare(String::new()), error),
        }
    }

    async fn run(&self, call: Prepared, context: RunContext) -> Result<ToolOutput, ToolError> {
        let Prepared { path, shown, old, new, count, change } = call;
        let files = context.files.clone();
        let target = path.clone();
        let name = shown.clone();
        let old = crate::walk::blocking(move || {
            unchanged_since_plan(&target, &name, old.as_deref())?;
            files.write(&target, &new).map(|()| old)
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
        let output = ToolOutput::text(text).titled(shown.clone()).with_details(details);
        let edited = [Edited { path, shown, old }];
        Ok(self.feedback.complete(output, &edited, Occasion::Edit, &context).await)
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
            return Err(ToolError::for_model(format!(
                "File {shown} not found. To create it, pass an empty oldString."
            )));
        }
        (Some(_), true) => {
            let text = format!(
                "oldString cannot be empty: {shown} exists. Give the text to replace, or use write to replace the whole file."
            );
            return Err(ToolError::for_model(text));
        }
        (Some(content), false) => content,
    };
    let (wanted, replacement) = in_file_line_ends(content, old_string, new_string)
        .unwrap_or_else(|| (old_string.clone(), String::new()));
    let found = occurrences(content, wanted.as_bytes());
    match found.len() {
        0 => Err(ToolError::for_model(format!(
            "Could not find oldString in {shown}. It must match the file exactly, with its indentation and line \
             breaks; read the file and copy the text without the line numbers."
        ))),
        1 => Ok((replace(content, &found, wanted.len(), replacement.as_bytes()), 1)),
        n if *replace_all => {
            Ok((replace(content, &found, wanted.len(), replacement.as_bytes()), n))
        }
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

/// The strings with the line ends of the file: as they are if they are found so, else with CRLF, else
/// with LF. The new text ends its lines as the file does.
fn in_file_line_ends(content: &[u8], old: &str, new: &str) -> Option<(String, String)> {
    let lf = |text: &str| text.replace("\r\n", "\n");
    let crlf = |text: &str| lf(text).replace('\n', "\r\n");
    let found = |text: &str| !occurrences(content, text.as_bytes()).is_empty();
    let old = [old.to_owned(), crlf(old), lf(old)].into_iter().find(|text| found(text))?;
    let new =
        if is_crlf(content) || (old.contains("\r\n") && !old.replace("\r\n", "").contains('\n')) {
            crlf(new)
        } else if !content.contains(&b'\r') {
            lf(new)
        } else {
            new.to_owned()
        };
    Some((old, new))
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

/// A person may take their time to decide; what they decided about must still be so.
pub(crate) fn unchanged_since_plan(
    path: &Path,
    shown: &str,
    old: Option<&[u8]>,
) -> Result<(), ToolError> {
    if read_existing(path)?.as_deref() == old {
        return Ok(());
    }
    let text = format!("{shown} was changed by something else just now; read it again and retry.");
    Err(ToolError::for_model(text))
}

/// The content of a regular file, or nothing where there is none. A device or a pipe would never
/// end; a folder is not a file.
pub(crate) fn read_existing(path: &Path) -> Result<Option<Vec<u8>>, ToolError> {
    let failed =
        |e: io::Error| ToolError::for_model(format!("Cannot read {}: {e}", path.display()));
    match fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(failed(error)),
        Ok(data) if data.is_dir() => Err(ToolError::for_model(format!(
            "Path is a directory, not a file: {}",
            path.display()
        ))),
        Ok(data) if !data.is_file() => {
            Err(ToolError::for_model(format!("{} is not a regular file.", path.display())))
        }
        Ok(data) if data.len() > FILE_CAP_BYTES => {
            let limit = FILE_CAP_BYTES >> 20;
            let text =
                format!("{} has more than {limit} MiB; change it with a command.", path.display());
            Err(ToolError::for_model(text))
        }
        Ok(_) => fs::read(path).map(Some).map_err(failed),
    }
}
