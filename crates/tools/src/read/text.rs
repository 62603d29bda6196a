//! A window of lines, numbered, with a word on what lies beyond it.

use std::io::{self, Read};

use serde_json::json;
use tokio_util::sync::CancellationToken;
use toolwright_tool::{ToolError, ToolOutput};

use super::encoding::{Doubt, Encoding, characters};
use super::lines::LineReader;
use super::{PREVIEW, Prepared, failed};
use crate::names::show;

/// Characters shown of a line, in UTF-16 units. Minified files have lines of megabytes.
const LINE_CHARS: usize = 2_000;
/// Bytes read of one line: enough for the characters that are shown.
const LINE_BYTES: usize = LINE_CHARS * 4 + 4;
/// Bytes of text in one answer.
const TEXT_CAP_BYTES: usize = 50 << 10;
/// Bytes that are counted past the last shown line to tell the file's number of lines.
const COUNT_CAP_BYTES: u64 = 64 << 20;

pub(super) fn show_file(
    call: &Prepared,
    source: impl Read,
    encoding: Encoding,
    cancel: &CancellationToken,
) -> Result<ToolOutput, ToolError> {
    let stopped = || cancel.is_cancelled();
    let mut reader = LineReader::new(source, &stopped);
    match Window::collect(&mut reader, call.offset, call.limit) {
        Ok(window) => {
            let note = window.note(encoding);
            window.report(call, "file", encoding.name(), note)
        }
        Err(_) if cancel.is_cancelled() => Ok(interrupted()),
        Err(error) => Err(failed(&call.path)(error)),
    }
}

pub(super) fn show_cells(
    call: &Prepared,
    cells: &str,
    cancel: &CancellationToken,
) -> Result<ToolOutput, ToolError> {
    let stopped = || cancel.is_cancelled();
    let mut reader = LineReader::new(cells.as_bytes(), &stopped);
    let note = "(A notebook, shown as its cells: the lines are numbered as shown here. The file itself is JSON; to change it, edit that or use a script.)";
    match Window::collect(&mut reader, call.offset, call.limit) {
        Ok(window) => window.report(call, "notebook", "utf-8", Some(note.to_owned())),
        Err(_) if cancel.is_cancelled() => Ok(interrupted()),
        Err(error) => Err(failed(&call.path)(error)),
    }
}

fn interrupted() -> ToolOutput {
    let details = json!({ "truncated": true });
    let output = ToolOutput::text("(Reading was stopped.)").with_details(details);
    ToolOutput { interrupted: true, ..output }
}

pub(super) struct Window {
    pub(super) shown: Vec<String>,
    first: u64,
    /// Lines of the file, as far as they were counted.
    total: u64,
    counted_all: bool,
    stopped: Stopped,
    doubt: Option<(u64, Doubt)>,
}

#[derive(PartialEq)]
enum Stopped {
    End,
    Limit,
    Bytes,
}

impl Window {
    pub(super) fn collect<R: Read>(
        reader: &mut LineReader<'_, R>,
        offset: u64,
        limit: usize,
    ) -> io::Result<Self> {
        let mut window = Self {
            shown: Vec::new(),
            first: offset,
            total: reader.skip(offset - 1)?,
            counted_all: true,
            stopped: Stopped::End,
            doubt: None,
        };
        let mut bytes = 0;
        let mut line = Vec::new();
        while window.shown.len() < limit {
            let Some(whole) = reader.next(&mut line, LINE_BYTES)? else { return Ok(window) };
            let number = window.total + 1;
            let (text, doubt) = show_line(&line, number == 1, whole);
            bytes += text.len() + 1;
            if bytes > TEXT_CAP_BYTES && !window.shown.is_empty() {
                window.counted_all = false;
                window.stopped = Stopped::Bytes;
                return Ok(window);
            }
            window.doubt = window.doubt.or(doubt.map(|doubt| (number, doubt)));
            window.total = number;
            window.shown.push(text);
        }
        let (more, all) = reader.count_rest(COUNT_CAP_BYTES)?;
        if more > 0 || !all {
            window.stopped = Stopped::Limit;
        }
        window.total += more;
        window.counted_all = all;
        Ok(window)
    }

    #[cfg(test)]
    pub(super) fn total_lines(&self) -> u64 {
        self.total
    }

    /// What the model must know before it takes the characters for the file's.
    fn note(&self, encoding: Encoding) -> Option<String> {
        match (encoding, self.doubt) {
            (Encoding::Utf8, None) => None,
            (Encoding::Utf8, Some((line, Doubt::Latin1))) => Some(format!(
                "(Not valid UTF-8 from line {line} on: shown as Latin-1. Its bytes differ from what you see.)"
            )),
            (Encoding::Utf8, Some((line, Doubt::Damaged))) => Some(format!(
                "(Line {line} has bytes that are not valid UTF-8, shown as \u{FFFD}.)"
            )),
            (other, _) => Some(format!("(Decoded from {}.)", other.name().to_uppercase())),
        }
    }

    fn report(
        self,
        call: &Prepared,
        kind: &str,
        encoding: &str,
        note: Option<String>,
    ) -> Result<ToolOutput, ToolError> {
        let Self { shown, first, total, counted_all, stopped, doubt } = self;
        let empty_file = total == 0 && first == 1;
        let beyond = if call.limit > 0 { shown.is_empty() } else { first > total };
        if beyond && !empty_file {
            let text = format!("Offset {first} is out of range for this file ({total} lines)");
            return Err(ToolError::for_model(text));
        }
        let last = (first + shown.len() as u64).saturating_sub(1);
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
        let path = show(&call.path);
        let mut text = format!("<path>{path}</path>\n<type>{kind}</type>\n<content>\n");
        for (number, line) in (first..).zip(&shown) {
            text.push_str(&format!("{number}: {line}\n"));
        }
        text.push_str(&format!("\n{footer}\n"));
        text.extend(note.map(|note| note + "\n"));
        text.push_str("</content>");
        let truncated = stopped != Stopped::End;
        let encoding = match doubt {
            None => encoding,
            Some((_, Doubt::Latin1)) => "latin-1",
            Some((_, Doubt::Damaged)) => "invalid utf-8",
        };
        let preview = shown.iter().take(PREVIEW).map(String::as_str).collect::<Vec<_>>();
        let details = json!({
            "preview": preview.join("\n"),
            "truncated": truncated,
            "display": {
                "type": kind, "path": call.path.display().to_string(), "text": shown.join("\n"),
                "lineStart": first, "lineEnd": last, "totalLines": total, "truncated": truncated,
                "encoding": encoding,
            },
        });
        Ok(ToolOutput { fitted: true, ..ToolOutput::text(text).with_details(details) })
    }
}

fn show_line(line: &[u8], is_first: bool, whole: bool) -> (String, Option<Doubt>) {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let line = if is_first { line.strip_prefix(crate::rewrite::BOM).unwrap_or(line) } else { line };
    let (text, doubt) = characters(line, !whole);
    let mut units = 0;
    let cut = text.char_indices().find(|(_, c)| {
        units += c.len_utf16();
        units > LINE_CHARS
    });
    let text = match cut {
        Some((at, _)) => format!("{}... (line truncated to {LINE_CHARS} chars)", &text[..at]),
        None if !whole => format!("{text}... (line truncated to {LINE_CHARS} chars)"),
        None => text.into_owned(),
    };
    (text, doubt)
}
