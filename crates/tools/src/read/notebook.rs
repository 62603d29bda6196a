//! Notebooks as their cells: sources and what they printed, without the JSON and the pictures.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read as _, Seek};

use serde::Deserialize;
use serde::de::IgnoredAny;

/// Bytes of a notebook that is taken apart; most of a large one is pictures, and beyond this the
/// file is shown as the text that it is.
const NOTEBOOK_CAP_BYTES: u64 = 64 << 20;

/// Characters shown of one output. A cell can print for hours.
const OUTPUT_CHARS: usize = 10_000;

#[derive(Deserialize)]
struct Notebook {
    cells: Vec<Cell>,
}

#[derive(Deserialize)]
struct Cell {
    cell_type: String,
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    execution_count: Option<u64>,
    #[serde(default)]
    source: Text,
    #[serde(default)]
    outputs: Vec<Output>,
}

#[derive(Deserialize)]
struct Output {
    #[serde(default)]
    text: Text,
    #[serde(default)]
    data: BTreeMap<String, Data>,
    #[serde(default)]
    ename: Option<String>,
    #[serde(default)]
    evalue: Option<String>,
}

/// A string, or its lines.
#[derive(Deserialize)]
#[serde(untagged)]
enum Text {
    Whole(String),
    Lines(Vec<String>),
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Data {
    Text(Text),
    Other(IgnoredAny),
}

impl Default for Text {
    fn default() -> Self {
        Self::Whole(String::new())
    }
}

impl Text {
    fn join(&self) -> String {
        match self {
            Self::Whole(text) => text.clone(),
            Self::Lines(lines) => lines.concat(),
        }
    }
}

/// Nothing if it is not a notebook of the form that is in use, or too large: then it is text.
pub(super) fn render(file: &mut File, size: u64) -> io::Result<Option<String>> {
    if size > NOTEBOOK_CAP_BYTES {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    file.rewind()?;
    file.take(NOTEBOOK_CAP_BYTES + 1).read_to_end(&mut bytes)?;
    let Ok(notebook) = serde_json::from_slice::<Notebook>(&bytes) else { return Ok(None) };
    let mut text = String::new();
    for (position, cell) in notebook.cells.iter().enumerate() {
        cell.write(position, &mut text);
    }
    Ok(Some(text))
}

impl Cell {
    fn write(&self, position: usize, text: &mut String) {
        let id = match &self.id {
            Some(id) => id.escape_debug().to_string(),
            None => format!("cell-{position}"),
        };
        let count = self.execution_count.map(|n| format!(" execution_count=\"{n}\""));
        let count = count.unwrap_or_default();
        let kind = self.cell_type.escape_debug();
        text.push_str(&format!("<cell id=\"{id}\" type=\"{kind}\"{count}>\n"));
        push_lines(text, &self.source.join());
        for output in &self.outputs {
            text.push_str("<output>\n");
            output.write(text);
            text.push_str("</output>\n");
        }
        text.push_str("</cell>\n");
    }
}

impl Output {
    fn write(&self, text: &mut String) {
        push_lines(text, &cut(self.text.join()));
        if let Some(name) = &self.ename {
            push_lines(text, &format!("{name}: {}", self.evalue.as_deref().unwrap_or_default()));
        }
        match self.data.get("text/plain").or_else(|| self.data.get("text/markdown")) {
            Some(Data::Text(plain)) => push_lines(text, &cut(plain.join())),
            Some(Data::Other(_)) | None => {}
        }
        for mime in self.data.keys().filter(|mime| mime.starts_with("image/")) {
            push_lines(text, &format!("({mime}, not shown)"));
        }
    }
}

fn push_lines(text: &mut String, lines: &str) {
    text.push_str(lines);
    if !lines.is_empty() && !lines.ends_with('\n') {
        text.push('\n');
    }
}

fn cut(mut output: String) -> String {
    if let Some((at, _)) = output.char_indices().nth(OUTPUT_CHARS) {
        output.truncate(at);
        output.push_str("\n(cut: the output is longer)");
    }
    output
}
