//! `@` in a prompt: files come with it, agents are pointed out to the model.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use toolwright::Workbench;
use toolwright::llm::{Content, Media};
use toolwright::tool::{ImageSource, attachable_bytes, fit_image};

/// Bytes of text that come with a prompt; larger files are named, and the model reads what it needs.
const TEXT_CAP_BYTES: u64 = 64 << 10;
/// Files of one prompt.
const FILES_CAP: usize = 20;

pub(super) async fn expand(bench: &Workbench, text: &str) -> Vec<Content> {
    let mut content = vec![Content::text(text)];
    let mut seen: Vec<&str> = Vec::new();
    for word in text.split_whitespace() {
        let Some(name) = word.strip_prefix('@') else { continue };
        let name = name.trim_end_matches([',', '.', ':', ';', '?', '!', ')']);
        if name.is_empty() || seen.contains(&name) || seen.len() >= FILES_CAP {
            continue;
        }
        seen.push(name);
        if bench.workers().iter().any(|worker| worker.name == name) {
            let told = format!("Use the task tool with the agent \"{name}\" for this.");
            content.push(Content::text(told));
            continue;
        }
        if let Some(attached) = attach(bench, name).await {
            content.extend(attached);
        }
    }
    content
}

/// A file as a part of the prompt. The person named it, so it is theirs to show. One that is too
/// large or no file stays a name.
async fn attach(bench: &Workbench, name: &str) -> Option<Vec<Content>> {
    let (path, lines) = match name.split_once('#') {
        Some((path, lines)) => (path, range(lines)),
        None => (name, None),
    };
    let place = bench.workspace.resolve(path);
    let data = std::fs::metadata(&place).ok()?;
    if !data.is_file() || data.len() > attachable_bytes("image/").max(TEXT_CAP_BYTES) {
        return None;
    }
    let bytes = std::fs::read(&place).ok()?;
    let file = place.file_name().map(|n| n.to_string_lossy().into_owned());
    match Media::mime_of(&bytes) {
        Some(mime) if mime.starts_with("image/") => {
            let source = ImageSource::File { bytes, name: file };
            let fitted = fit_image(source, bench.image_limits()).await.ok()?;
            let note = fitted.note.map(Content::text);
            Some(std::iter::once(Content::Media(fitted.media)).chain(note).collect())
        }
        Some(mime) if bytes.len() as u64 <= attachable_bytes(mime) => {
            let base64 = STANDARD.encode(bytes).into();
            Some(vec![Content::Media(Media { mime: mime.into(), base64, name: file })])
        }
        Some(_) => None,
        None => {
            let text = String::from_utf8(bytes).ok()?;
            let text = match lines {
                Some((from, to)) => {
                    let count = to.saturating_sub(from) + 1;
                    let kept = text.lines().skip(from.saturating_sub(1)).take(count);
                    kept.collect::<Vec<_>>().join("\n")
                }
                None => text,
            };
            if text.len() as u64 > TEXT_CAP_BYTES {
                return None;
            }
            Some(vec![Content::text(format!("<file path=\"{path}\">\n{text}\n</file>"))])
        }
    }
}

/// `10-20`, `L10-20` or `10`.
fn range(text: &str) -> Option<(usize, usize)> {
    let text = text.trim_start_matches('L');
    let (from, to) = text.split_once('-').unwrap_or((text, text));
    Some((from.parse().ok()?, to.trim_start_matches('L').parse().ok()?))
}
