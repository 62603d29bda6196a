//! Reads files of any size without loading them, lists folders, hands over images and documents.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read as _, Seek};
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use tokio_util::sync::CancellationToken;
use toolwright_llm::Media;
use toolwright_tool::{
    Access, Extent, Files, Plan, PlanContext, Planned, RunContext, Tool, ToolError, ToolOutput,
    attachable_bytes,
};

use crate::seen::Seen;
use crate::walk::blocking;

#[derive(Default)]
pub struct Read {
    seen: Seen,
}

impl Read {
    pub fn new(seen: Seen) -> Self {
        Self { seen }
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Arguments {
    /// The file or folder: absolute, or relative to the working directory.
    file_path: String,
    /// The first line (or entry), counted from 1.
    #[serde(default)]
    offset: Option<u32>,
    /// How many lines (or entries); 2000 unless given.
    #[serde(default)]
    limit: Option<u32>,
}

pub struct Prepared {
    path: PathBuf,
    shown: String,
    offset: usize,
    limit: usize,
}

const DEFAULT_LINES: u32 = 2_000;
/// Characters shown of a line. Minified files have lines of megabytes.
const LINE_CHARS: usize = 2_000;
/// Bytes of text in one answer.
const TEXT_CAP_BYTES: usize = 50 << 10;
/// Bytes that are looked at to tell text from other data.
const SAMPLE_BYTES: usize = 4096;
/// Bytes that are counted past the last shown line to tell the file's number of lines.
const COUNT_CAP_BYTES: u64 = 64 << 20;

impl Tool for Read {
    type Arguments = Arguments;
    type Prepared = Prepared;

    fn name(&self) -> &str {
        "read"
    }

    fn description(&self) -> &str {
        include_str!("read.md")
    }

    async fn plan(&self, arguments: Arguments, context: &PlanContext) -> Planned<Prepared> {
        let path = context.workspace.resolve(&arguments.file_path);
        let shown = context.workspace.relative(&path);
        let access = Access::Read { path: path.clone(), extent: Extent::Single };
        let offset = arguments.offset.unwrap_or(1).max(1) as usize;
        let limit = arguments.limit.unwrap_or(DEFAULT_LINES) as usize;
        let plan = Plan::new(format!("read {shown}"), vec![access]);
        Planned::ready(plan, Prepared { path, shown, offset, limit })
    }

    async fn run(&self, call: Prepared, context: RunContext) -> Result<ToolOutput, ToolError> {
        let (files, cancel) = (context.files, context.cancel);
        let seen = self.seen.clone();
        blocking(move || {
            seen.note(&call.path);
            read(&call, &files, &cancel)
        })
        .await
    }
}

fn read(
    call: &Prepared,
    files: &Files,
    cancel: &CancellationToken,
) -> Result<ToolOutput, ToolError> {
    let path = &call.path;
    let data = match fs::metadata(path) {
        Ok(data) => data,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(missing(path)),
        Err(error) => {
            return Err(ToolError::for_model(format!("Cannot read {}: {error}", path.display())));
        }
    };
    files.check_read(path)?;
    let output = if data.is_dir() {
        list(call)?
    } else if data.is_file() {
        read_file(call, files, data.len(), cancel)?
    } else {
        let text = format!("{} is neither a file nor a folder.", path.display());
        return Err(ToolError::for_model(text));
    };
    Ok(output.titled(call.shown.clone()))
}

/// Names in the same folder that contain the wanted one or are contained in it.
fn missing(path: &Path) -> ToolError {
    let wanted = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
    let folder = path.parent().unwrap_or(path);
    let names = fs::read_dir(folder).into_iter().flatten().flatten().map(|e| e.file_name());
    let similar = names.map(|n| n.to_string_lossy().into_owned()).filter(|name| {
        let name = name.to_lowercase();
        name.contains(&wanted) || wanted.contains(&name)
    });
    let mut similar: Vec<String> =
        similar.map(|name| folder.join(name).display().to_string()).collect();
    similar.sort();
    similar.truncate(3);
    let mut text = format!("File not found: {}", path.display());
    if !similar.is_empty() {
        text.push_str(&format!("\n\nDid you mean one of these?\n{}", similar.join("\n")));
    }
    ToolError::for_model(text)
}

fn list(call: &Prepared) -> Result<ToolOutput, ToolError> {
    let failed = |e| ToolError::for_model(format!("Cannot list {}: {e}", call.path.display()));
    let mut entries: Vec<String> = fs::read_dir(&call.path)
        .map_err(failed)?
        .flatten()
        .map(|entry| {
            let name = entry.file_name().to_string_lossy().into_owned();
            // Links to folders are entered like folders.
            if entry.path().is_dir() { format!("{name}/") } else { name }
        })
        .collect();
    entries.sort_by_cached_key(|name| (name.to_lowercase(), name.clone()));
    let total = entries.len();
    let first = (call.offset - 1).min(total);
    let shown = &entries[first..total.min(first.saturating_add(call.limit))];
    let last = first + shown.len();
    let footer = if last < total {
        let count = shown.len();
        format!(
            "(Showing {count} of {total} entries. Use 'offset' parameter to read beyond entry {last})"
        )
    } else {
        format!("({total} entries)")
    };
    let text = format!(
        "<path>{}</path>\n<type>directory</type>\n<entries>\n{}\n\n{footer}\n</entries>",
        call.path.display(),
        shown.join("\n")
    );
    let details = json!({ "type": "directory", "entries": shown.len(), "totalEntries": total, "truncated": last < total });
    Ok(ToolOutput::text(text).with_details(details))
}

fn read_file(
    call: &Prepared,
    files: &Files,
    size: u64,
    cancel: &CancellationToken,
) -> Result<ToolOutput, ToolError> {
    let failed =
        |e: io::Error| ToolError::for_model(format!("Cannot read {}: {e}", call.path.display()));
    let mut file = files.open(&call.path)?;
    let mut sample = Vec::with_capacity(SAMPLE_BYTES);
    file.by_ref().take(SAMPLE_BYTES as u64).read_to_end(&mut sample).map_err(failed)?;
    file.rewind().map_err(failed)?;
    if let Some(mime) = Media::mime_of(&sample) {
        return attach(call, &mut file, mime, size);
    }
    if is_binary(&call.path, &sample) {
        let text = format!("Cannot read binary file: {}", call.path.display());
        return Err(ToolError::for_model(text));
    }
    let lines = Lines::collect(file, call.offset, call.limit, cancel).map_err(failed)?;
    lines.report(call)
}

fn attach(
    call: &Prepared,
    file: &mut File,
    mime: &str,
    size: u64,
) -> Result<ToolOutput, ToolError> {
    let cap = attachable_bytes(mime);
    if size > cap {
        let limit = cap >> 10;
        let text =
            format!("{} has {size} bytes; at most {limit} KiB can be shown.", call.path.display());
        return Err(ToolError::for_model(text));
    }
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)
        .map_err(|e| ToolError::for_model(format!("Cannot read {}: {e}", call.path.display())))?;
    let name = call.path.file_name().map(|n| n.to_string_lossy().into_owned());
    let media = Media { mime: mime.to_owned(), base64: STANDARD.encode(bytes).into(), name };
    let kind = if mime.starts_with("image/") { "Image" } else { "PDF" };
    let details = json!({ "type": "media", "mime": mime, "bytes": size });
    Ok(ToolOutput {
        attachments: vec![media],
        ..ToolOutput::text(format!("{kind} read successfully")).with_details(details)
    })
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

struct Lines {
    shown: Vec<String>,
    first: usize,
    /// Lines of the file, as far as they were counted.
    total: usize,
    counted_all: bool,
    stopped: Stopped,
}

#[derive(PartialEq)]
enum Stopped {
    End,
    Limit,
    Bytes,
}

impl Lines {
    fn collect(
        file: File,
        offset: usize,
        limit: usize,
        cancel: &CancellationToken,
    ) -> io::Result<Self> {
        let mut reader = BufReader::with_capacity(128 << 10, file);
        let mut total = 0;
        while total + 1 < offset && reader.skip_until(b'\n')? > 0 {
            total += 1;
            if total % 4096 == 0 && cancel.is_cancelled() {
                return Err(io::ErrorKind::Interrupted.into());
            }
        }
        let mut lines = Self {
            shown: Vec::new(),
            first: offset,
            total,
            counted_all: true,
            stopped: Stopped::End,
        };
        let mut bytes = 0;
        let mut line = Vec::new();
        while lines.shown.len() < limit {
            // A line may be longer than memory: keep what can be shown, skip the rest.
            line.clear();
            let got = (&mut reader).take(LINE_BYTES as u64).read_until(b'\n', &mut line)?;
            if got == 0 {
                return Ok(lines);
            }
            let mut long = false;
            if line.last() != Some(&b'\n') && got == LINE_BYTES {
                long = true;
                reader.skip_until(b'\n')?;
            }
            lines.total += 1;
            let text = show_line(&line, lines.total == 1, long);
            bytes += text.len() + 1;
            if bytes > TEXT_CAP_BYTES && !lines.shown.is_empty() {
                lines.total -= 1;
                lines.counted_all = false;
                lines.stopped = Stopped::Bytes;
                return Ok(lines);
            }
            lines.shown.push(text);
        }
        let mut counted = 0;
        loop {
            match reader.skip_until(b'\n')? {
                0 => break,
                got => {
                    lines.stopped = Stopped::Limit;
                    lines.total += 1;
                    counted += got as u64;
                }
            }
            if counted > COUNT_CAP_BYTES || cancel.is_cancelled() {
                lines.counted_all = false;
                break;
            }
        }
        Ok(lines)
    }

    fn report(self, call: &Prepared) -> Result<ToolOutput, ToolError> {
        let Self { shown, first, total, counted_all, stopped } = self;
        let empty_file = total == 0 && first == 1;
        if shown.is_empty() && call.limit > 0 && !empty_file {
            let text = format!("Offset {first} is out of range for this file ({total} lines)");
            return Err(ToolError::for_model(text));
        }
        let last = (first + shown.len()).saturating_sub(1);
        let next = last + 1;
        let footer = match stopped {
            Stopped::End => format!("(End of file - total {total} lines)"),
            Stopped::Bytes => {
                format!(
                    "(Output capped at 50 KB. Showing lines {first}-{last}. Use offset={next} to continue.)"
                )
            }
            Stopped::Limit => {
                let of = if counted_all { total.to_string() } else { format!("more than {total}") };
                format!("(Showing lines {first}-{last} of {of}. Use offset={next} to continue.)")
            }
        };
        let mut text =
            format!("<path>{}</path>\n<type>file</type>\n<content>\n", call.path.display());
        for (n, line) in shown.iter().enumerate() {
            text.push_str(&format!("{}: {line}\n", first + n));
        }
        text.push_str(&format!("\n{footer}\n</content>"));
        let details = json!({
            "type": "file", "lineStart": first, "lineEnd": last, "totalLines": total,
            "truncated": stopped != Stopped::End,
        });
        Ok(ToolOutput { fitted: true, ..ToolOutput::text(text).with_details(details) })
    }
}

/// Bytes read of one line: enough for the characters that are shown.
const LINE_BYTES: usize = LINE_CHARS * 4 + 4;

fn show_line(line: &[u8], is_first: bool, long: bool) -> String {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let line = if is_first { line.strip_prefix(crate::rewrite::BOM).unwrap_or(line) } else { line };
    let text = String::from_utf8_lossy(line);
    match text.char_indices().nth(LINE_CHARS) {
        Some((at, _)) => format!("{}... (line truncated to {LINE_CHARS} chars)", &text[..at]),
        None if long => format!("{text}... (line truncated to {LINE_CHARS} chars)"),
        None => text.into_owned(),
    }
}
