//! Reads files of any size without loading them, lists folders, hands over images and documents.

mod encoding;
mod folder;
mod lines;
mod missing;
mod nearby;
mod notebook;
mod text;

use std::fs::{self, File};
use std::io::{self, Read as _, Seek};
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use toolwright_llm::Media;
use toolwright_session::Session;
use toolwright_tool::{
    Access, Extent, Plan, PlanContext, Planned, RunContext, Tool, ToolError, ToolOutput,
    attachable_bytes,
};

use crate::names::show;
use crate::seen::Seen;
use crate::walk::blocking;
use encoding::Encoding;
pub use nearby::Nearby;

/// One for each session: it remembers which nearby instructions were given.
#[derive(Default)]
pub struct Read {
    nearby: Nearby,
    seen: Seen,
}

impl Read {
    pub fn new(nearby: Nearby) -> Self {
        Self { nearby, seen: Seen::default() }
    }

    /// What is read is remembered as seen.
    pub fn noting(mut self, seen: Seen) -> Self {
        self.seen = seen;
        self
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Arguments {
    /// The file or folder: absolute, or relative to the working directory.
    file_path: String,
    /// The first line (or entry), counted from 1.
    #[serde(default)]
    offset: Option<u64>,
    /// How many lines (or entries); 2000 unless given.
    #[serde(default)]
    limit: Option<u64>,
}

#[derive(Clone)]
pub struct Prepared {
    path: PathBuf,
    shown: String,
    /// Counted from 1.
    offset: u64,
    limit: usize,
}

const DEFAULT_LINES: u64 = 2_000;
/// Bytes that are looked at to tell text from other data.
const SAMPLE_BYTES: usize = 4096;
/// Lines or entries that people are shown of a result.
const PREVIEW: usize = 20;

impl Tool for Read {
    type Arguments = Arguments;
    type Prepared = Prepared;

    fn name(&self) -> &str {
        "read"
    }

    fn description(&self) -> &str {
        include_str!("read.md")
    }

    fn forget(&self) {
        self.nearby.forget();
    }

    fn recall(&self, _: &Session) {
        self.seen.forget_all();
    }

    async fn plan(&self, arguments: Arguments, context: &PlanContext) -> Planned<Prepared> {
        let path = context.workspace.resolve(&arguments.file_path);
        let shown = context.workspace.relative(&path);
        let access = Access::Read { path: path.clone(), extent: Extent::Single };
        let offset = arguments.offset.unwrap_or(1).max(1);
        let limit = arguments.limit.unwrap_or(DEFAULT_LINES);
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let plan = Plan::new(format!("read {shown}"), vec![access]);
        Planned::ready(plan, Prepared { path, shown, offset, limit })
    }

    async fn run(&self, call: Prepared, context: RunContext) -> Result<ToolOutput, ToolError> {
        // What is read is often changed next: its language server has until then to start.
        self.seen.feedback().warm(&call.path);
        let (nearby, seen) = (self.nearby.clone(), self.seen.clone());
        blocking(move || {
            seen.note(&call.path);
            let (output, data) = read(&call, &context)?;
            Ok(finish(&call, data, output, &nearby, &context))
        })
        .await
    }
}

/// The way out of every read that succeeded: here it is known what was read, and in which state
/// (`data`, as of the moment it was opened; nothing for folders).
fn finish(
    call: &Prepared,
    data: Option<fs::Metadata>,
    mut output: ToolOutput,
    nearby: &Nearby,
    context: &RunContext,
) -> ToolOutput {
    let found = match data {
        Some(_) => nearby.claim(&call.path, &context.workspace, &context.may_read),
        None => Vec::new(),
    };
    let loaded: Vec<String> = found.iter().map(|i| i.path.display().to_string()).collect();
    output.details["loaded"] = json!(loaded);
    if !found.is_empty() {
        output.output.push_str(&nearby::reminder(&found));
    }
    output.titled(call.shown.clone())
}

fn read(
    call: &Prepared,
    context: &RunContext,
) -> Result<(ToolOutput, Option<fs::Metadata>), ToolError> {
    let path = &call.path;
    let data = match fs::metadata(path) {
        Ok(data) => data,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(missing::explain(path));
        }
        Err(error) => return Err(failed(path)(error)),
    };
    context.files.check_read(path)?;
    if data.is_dir() {
        return folder::list(call).map(|output| (output, None));
    }
    // Opening a device can already do something, so it is looked at first and again when open.
    regular(path, &data)?;
    let mut file = context.files.open(path)?;
    let before = file.metadata().map_err(failed(path))?;
    regular(path, &before)?;
    let output = read_file(call, &mut file, &before, context)?;
    let after = file.metadata().map_err(failed(path))?;
    if was_rewritten(&before, &after) {
        let text = format!("{} changed while it was being read. Read it again.", show(path));
        return Err(ToolError::for_model(text));
    }
    Ok((output, Some(before)))
}

fn regular(path: &Path, data: &fs::Metadata) -> Result<(), ToolError> {
    if data.is_file() {
        return Ok(());
    }
    let text = format!(
        "{} is neither a file nor a folder (a pipe, socket or device): it cannot be read.",
        show(path)
    );
    Err(ToolError::for_model(text))
}

/// A log that grows while it is read is still itself; anything else is not what was shown.
fn was_rewritten(before: &fs::Metadata, after: &fs::Metadata) -> bool {
    let touched = before.modified().ok() != after.modified().ok();
    after.len() < before.len() || (after.len() == before.len() && touched)
}

fn failed(path: &Path) -> impl Fn(io::Error) -> ToolError + '_ {
    move |error| ToolError::for_model(format!("Cannot read {}: {error}", show(path)))
}

fn read_file(
    call: &Prepared,
    file: &mut File,
    data: &fs::Metadata,
    context: &RunContext,
) -> Result<ToolOutput, ToolError> {
    let failed = failed(&call.path);
    let mut sample = Vec::with_capacity(SAMPLE_BYTES);
    file.by_ref().take(SAMPLE_BYTES as u64).read_to_end(&mut sample).map_err(&failed)?;
    file.rewind().map_err(&failed)?;
    if let Some(mime) = Media::mime_of(&sample) {
        return attach(call, file, mime, data.len());
    }
    let encoding = Encoding::of(&sample);
    if encoding == Encoding::Utf8 && is_binary(&call.path, &sample) {
        let text = format!("Cannot read binary file: {}", show(&call.path));
        return Err(ToolError::for_model(text));
    }
    if call.path.extension().is_some_and(|e| e == "ipynb")
        && let Some(cells) = notebook::render(file, data.len()).map_err(&failed)?
    {
        return text::show_cells(call, &cells, &context.cancel);
    }
    file.rewind().map_err(&failed)?;
    text::show_file(call, encoding.decode(file), encoding, &context.cancel)
}

fn attach(
    call: &Prepared,
    file: &mut File,
    mime: &str,
    size: u64,
) -> Result<ToolOutput, ToolError> {
    let cap = attachable_bytes(mime);
    let mut bytes = Vec::new();
    if size <= cap {
        // It may have grown since.
        file.take(cap + 1).read_to_end(&mut bytes).map_err(failed(&call.path))?;
    }
    if size.max(bytes.len() as u64) > cap {
        let limit = cap >> 10;
        let path = show(&call.path);
        let text = format!("{path} has {size} bytes; at most {limit} KiB can be shown.");
        return Err(ToolError::for_model(text));
    }
    let name = call.path.file_name().map(|n| n.to_string_lossy().into_owned());
    let media = Media { mime: mime.to_owned(), base64: STANDARD.encode(bytes).into(), name };
    let kind = if mime.starts_with("image/") { "Image" } else { "PDF" };
    let text = format!("{kind} read successfully");
    let display = json!({ "type": "media", "path": call.path, "mime": mime, "bytes": size });
    let details = json!({ "preview": text, "truncated": false, "display": display });
    Ok(ToolOutput { attachments: vec![media], ..ToolOutput::text(text).with_details(details) })
}

fn is_binary(path: &Path, sample: &[u8]) -> bool {
    const BINARY: &[&str] = &[
        "zip", "tar", "gz", "exe", "dll", "so", "class", "jar", "war", "7z", "doc", "docx", "xls",
        "xlsx", "ppt", "pptx", "odt", "ods", "odp", "bin", "dat", "obj", "o", "a", "lib", "wasm",
        "pyc", "pyo",
    ];
    let extension = path.extension().unwrap_or_default().to_string_lossy().to_lowercase();
    if sample.is_empty() {
        return false;
    }
    let odd = sample.iter().filter(|b| matches!(b, 0..=8 | 14..=31)).count();
    BINARY.contains(&extension.as_str()) || sample.contains(&0) || odd * 10 > sample.len() * 3
}

#[cfg(test)]
#[path = "read_tests.rs"]
mod tests;
