//! A folder's own entries, in the order in which people expect names.

use std::fs::{self, DirEntry};
use std::path::Path;

use serde_json::json;
use toolwright_tool::{ToolError, ToolOutput};

use super::{PREVIEW, Prepared};
use crate::names::show;

pub(super) fn list(call: &Prepared) -> Result<ToolOutput, ToolError> {
    let path = show(&call.path);
    let failed = |e| ToolError::for_model(format!("Cannot list {path}: {e}"));
    let mut entries: Vec<DirEntry> = fs::read_dir(&call.path).map_err(failed)?.flatten().collect();
    entries.sort_by_cached_key(|entry| collation(&entry.file_name().to_string_lossy()));
    let total = entries.len();
    let first = usize::try_from(call.offset - 1).unwrap_or(usize::MAX).min(total);
    let window = &entries[first..total.min(first.saturating_add(call.limit))];
    let shown: Vec<String> = window.iter().map(name).collect();
    let last = first + shown.len();
    let truncated = last < total;
    let footer = if truncated {
        let count = shown.len();
        format!(
            "(Showing {count} of {total} entries. Use 'offset' parameter to read beyond entry {last})"
        )
    } else {
        format!("({total} entries)")
    };
    let text = format!(
        "<path>{path}</path>\n<type>directory</type>\n<entries>\n{}\n\n{footer}\n</entries>",
        shown.join("\n")
    );
    let preview = &shown[..shown.len().min(PREVIEW)];
    let details = json!({
        "preview": preview.join("\n"),
        "truncated": truncated,
        "display": {
            "type": "directory", "path": path, "entries": shown, "offset": call.offset,
            "totalEntries": total, "truncated": truncated,
        },
    });
    Ok(ToolOutput::text(text).with_details(details))
}

fn name(entry: &DirEntry) -> String {
    let own = entry.file_type().ok();
    // Links to folders are entered like folders.
    let is_folder = match own {
        Some(kind) if kind.is_symlink() => entry.path().is_dir(),
        kind => kind.is_some_and(|kind| kind.is_dir()),
    };
    let name = entry.file_name();
    let name = show(Path::new(&name));
    if is_folder { format!("{name}/") } else { name.into_owned() }
}

/// Punctuation before digits before letters, letters without regard to case at first.
fn collation(name: &str) -> (Vec<(u8, u32)>, Vec<bool>, String) {
    const PUNCTUATION: &str = "_-,;:!?.'\"()[]{}@*/\\&#%`^+<=>|~$";
    let weigh = |c: char| match PUNCTUATION.find(c) {
        Some(at) => (0, at as u32),
        None if c.is_ascii_digit() => (2, u32::from(c)),
        None if c.is_alphanumeric() => (3, u32::from(c)),
        None => (1, u32::from(c)),
    };
    let weights = name.chars().flat_map(char::to_lowercase).map(weigh).collect();
    (weights, name.chars().map(char::is_uppercase).collect(), name.to_owned())
}
