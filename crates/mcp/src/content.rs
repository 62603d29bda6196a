//! What a server gives, as text and attachments for the model. Read from plain JSON: a block of a kind
//! that nobody knows must not take the others with it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use toolwright_llm::Media;
use toolwright_tool::{Outputs, ToolError, ToolOutput};

/// Bytes of a resource that is attached.
const RESOURCE_CAP_BYTES: usize = 10 << 20;

/// Bytes of structured content that programs are told beside the text.
const STRUCTURED_CAP_BYTES: usize = 64 << 10;

/// What models look at.
const ATTACHABLE: &[&str] =
    &["application/pdf", "image/gif", "image/jpeg", "image/png", "image/webp"];

/// The answer to a call of `tool`.
pub(crate) fn output(
    result: &Value,
    server: &str,
    tool: &str,
    outputs: &Outputs,
) -> Result<ToolOutput, ToolError> {
    let blocks = result["content"].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut gathered = Gathered::new(outputs);
    for block in blocks {
        gathered.block(block);
    }
    let structured = result.get("structuredContent").filter(|value| !value.is_null());
    if let Some(structured) = structured
        && gathered.texts.is_empty()
        && gathered.attachments.is_empty()
    {
        gathered.texts.push(structured.to_string());
    }
    if result["isError"] == true {
        let text = gathered.text();
        let text = if text.is_empty() { "MCP tool returned an error".to_owned() } else { text };
        return Err(ToolError::ForModel(text));
    }
    let mut details = json!({ "mcp": { "server": server, "tool": tool } });
    if let Some(structured) = structured.filter(|s| s.to_string().len() <= STRUCTURED_CAP_BYTES) {
        details["mcp"]["structured"] = structured.clone();
    }
    Ok(gathered.output().with_details(details))
}

/// What a resource holds, each part with its name.
pub(crate) fn resource(result: &Value, outputs: &Outputs) -> Option<ToolOutput> {
    let contents = result["contents"].as_array().filter(|contents| !contents.is_empty())?;
    let mut gathered = Gathered::new(outputs);
    for content in contents {
        match content["text"].as_str() {
            Some(text) => {
                let uri = content["uri"].as_str().unwrap_or_default();
                let mime = content["mimeType"].as_str().unwrap_or("text/plain");
                gathered.texts.push(format!("Resource: {uri}\nMIME: {mime}\n{text}"));
            }
            None => gathered.embedded(content),
        }
    }
    Some(gathered.output())
}

struct Gathered<'a> {
    outputs: &'a Outputs,
    texts: Vec<String>,
    attachments: Vec<Media>,
}

impl<'a> Gathered<'a> {
    fn new(outputs: &'a Outputs) -> Self {
        Self { outputs, texts: Vec::new(), attachments: Vec::new() }
    }

    fn text(&self) -> String {
        let said = self.texts.iter().map(|t| t.trim_end()).filter(|t| !t.trim().is_empty());
        said.collect::<Vec<_>>().join("\n\n")
    }

    fn output(self) -> ToolOutput {
        let text = self.text();
        let text = match (text.is_empty(), self.attachments.len()) {
            (false, _) => text,
            (true, 0) => "(The tool gave nothing.)".to_owned(),
            (true, count) => format!("({count} attached)"),
        };
        ToolOutput { attachments: self.attachments, ..ToolOutput::text(text) }
    }

    fn block(&mut self, block: &Value) {
        let text = |key: &str| block[key].as_str().unwrap_or_default();
        match text("type") {
            "text" => self.texts.push(text("text").to_owned()),
            "image" => self.image(text("mimeType"), text("data")),
            "audio" => {
                let kept = self.keep(text("data"), text("mimeType"));
                self.texts.push(format!("(sound, {}{kept})", text("mimeType")));
            }
            "resource" => self.embedded(&block["resource"]),
            "resource_link" => {
                let about = [("name", "name"), ("description", "about"), ("mimeType", "type")];
                let known = about.iter().filter(|(key, _)| !text(key).is_empty());
                let words: Vec<_> =
                    known.map(|(key, word)| format!("{word}: {}", text(key))).collect();
                self.texts.push(format!("Resource: {} ({})", text("uri"), words.join(", ")));
            }
            "" => {}
            other => {
                self.texts.push(format!("(content of a kind that is not known here: {other})"));
            }
        }
    }

    fn image(&mut self, mime: &str, base64: &str) {
        self.attachments.push(Media { mime: mime.to_owned(), base64: base64.into(), name: None });
    }

    /// A resource inside of a result.
    fn embedded(&mut self, resource: &Value) {
        if let Some(text) = resource["text"].as_str() {
            self.texts.push(text.to_owned());
            return;
        }
        let Some(blob) = resource["blob"].as_str() else { return };
        let mime = resource["mimeType"].as_str().unwrap_or("application/octet-stream");
        let uri = resource["uri"].as_str().unwrap_or_default();
        let size = blob.len() / 4 * 3;
        let why = if !ATTACHABLE.contains(&mime) {
            "unsupported type"
        } else if size > RESOURCE_CAP_BYTES {
            "exceeds limit"
        } else {
            let name = uri.rsplit('/').next().filter(|name| !name.is_empty());
            self.attachments.push(Media {
                mime: mime.to_owned(),
                base64: blob.into(),
                name: name.map(str::to_owned),
            });
            return;
        };
        let kept = self.keep(blob, mime);
        self.texts.push(format!(
            "[Binary MCP resource omitted: {uri}, {mime}, {size} bytes: {why}{kept}]"
        ));
    }

    /// Puts bytes that no model looks at where a person or a command can.
    fn keep(&self, base64: &str, mime: &str) -> String {
        static COUNTER: AtomicU64 = AtomicU64::new(0);
        let Ok(bytes) = STANDARD.decode(base64) else { return "; it is broken".to_owned() };
        let end: String = mime.rsplit('/').next().unwrap_or_default().chars().take(16).collect();
        let end = crate::name::plain(&end);
        let millis = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_millis());
        let number = COUNTER.fetch_add(1, Ordering::Relaxed);
        let path = self.outputs.folder().join(format!("mcp_{millis:x}_{number}.{end}"));
        let written = std::fs::create_dir_all(self.outputs.folder())
            .and_then(|()| std::fs::write(&path, &bytes));
        match written {
            Ok(()) => format!("; kept in {}", path.display()),
            Err(error) => format!("; it could not be kept: {error}"),
        }
    }
}

/// The beginning of a text, between characters.
pub(crate) fn cut(text: &str, cap: usize) -> String {
    if text.len() <= cap {
        return text.to_owned();
    }
    let mut end = cap;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}…", &text[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outputs() -> (tempfile::TempDir, Outputs) {
        let folder = tempfile::tempdir().unwrap();
        let outputs = Outputs::new(folder.path().join("o"));
        (folder, outputs)
    }

    #[test]
    fn every_kind_of_content_is_told() {
        let (_folder, outputs) = outputs();
        let result = json!({"content": [
            {"type": "text", "text": "one"},
            {"type": "image", "mimeType": "image/png", "data": "AAAA"},
            {"type": "audio", "mimeType": "audio/wav", "data": "AAAA"},
            {"type": "resource", "resource": {"uri": "a://b", "text": "two"}},
            {"type": "resource", "resource": {"uri": "a://c.pdf", "mimeType": "application/pdf", "blob": "AAAA"}},
            {"type": "resource", "resource": {"uri": "a://d", "mimeType": "application/zip", "blob": "AAAA"}},
            {"type": "resource_link", "uri": "a://e", "name": "e", "description": "about it"},
            {"type": "hologram", "data": "x"},
            17,
        ], "structuredContent": {"n": 1}});
        let output = output(&result, "s", "t", &outputs).unwrap();
        let expected = [
            "one",
            "two",
            "(sound, audio/wav; kept in ",
            "[Binary MCP resource omitted: a://d, application/zip, 3 bytes: unsupported type; kept in ",
            "Resource: a://e (name: e, about: about it)",
            "not known here: hologram",
        ];
        for part in expected {
            assert!(output.output.contains(part), "{part} in {}", output.output);
        }
        let mimes: Vec<_> = output.attachments.iter().map(|a| a.mime.as_str()).collect();
        assert_eq!(mimes, ["image/png", "application/pdf"]);
        assert_eq!(output.attachments[1].name.as_deref(), Some("c.pdf"));
        assert_eq!(output.details["mcp"]["structured"]["n"], 1);
        assert_eq!(std::fs::read_dir(outputs.folder()).unwrap().count(), 2);
    }

    #[test]
    fn structured_content_alone_is_the_text_and_content_wins_over_it() {
        let (_folder, outputs) = outputs();
        let of = |result: Value| output(&result, "s", "t", &outputs).map(|o| o.output);
        assert_eq!(of(json!({"structuredContent": {"a": 1}})).unwrap(), "{\"a\":1}");
        let both = json!({"content": [{"type": "text", "text": "x"}], "structuredContent": 1});
        assert_eq!(of(both).unwrap(), "x");
        assert_eq!(of(json!({})).unwrap(), "(The tool gave nothing.)");
    }

    #[test]
    fn an_error_is_an_error_with_its_words() {
        let (_folder, outputs) = outputs();
        let result = json!({"isError": true, "content": [
            {"type": "text", "text": "no"}, {"type": "text", "text": " "}, {"type": "text", "text": "way"}]});
        assert_eq!(output(&result, "s", "t", &outputs), Err(ToolError::for_model("no\n\nway")));
        let empty = output(&json!({"isError": true}), "s", "t", &outputs);
        assert_eq!(empty, Err(ToolError::for_model("MCP tool returned an error")));
    }
}
