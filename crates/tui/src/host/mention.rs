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

async fn expand(bench: &Workbench, text: &str) -> Vec<Content> {
    let mut content = vec![Content::text(text)];
    let mut seen: Vec<&str> = Vec::new();
    for name in names(text) {
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

/// What stands behind each `@`; in quotes, it may have spaces.
fn names(text: &str) -> Vec<&str> {
    let mut names = Vec::new();
    let mut rest = text;
    let mut fresh = true;
    while let Some(at) = rest.find('@') {
        let begins = match rest[..at].chars().next_back() {
            Some(c) => c.is_whitespace(),
            None => fresh,
        };
        rest = &rest[at + 1..];
        fresh = false;
        if !begins {
            continue;
        }
        if let Some((name, behind)) = rest.strip_prefix('"').and_then(|r| r.split_once('"')) {
            names.push(name);
            rest = behind;
            continue;
        }
        let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
        names.push(rest[..end].trim_end_matches([',', '.', ':', ';', '?', '!', ')']));
        rest = &rest[end..];
    }
    names
}

impl super::Host {
    /// What the person said, with the files and agents that they mention.
    pub(super) async fn expand(&self, text: &str) -> Vec<Content> {
        expand(&self.bench, text).await
    }
}

/// A file as a part of the prompt. The person named it, so it is theirs to show. One that is too
/// large or no file stays a name.
async fn attach(bench: &Workbench, name: &str) -> Option<Vec<Content>> {
    let (path, lines) = match name.split_once('#') {
        Some((path, lines)) => (path, range(lines)),
        None => (name, None),
    };
    let place = match path.strip_prefix("~/") {
        Some(below) => bench.paths.home.join(below),
        None => bench.workspace.resolve(path),
    };
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_behind_at_signs_are_found_with_and_without_quotes() {
        let text = "see @a.rs, @\"my file.png\" and me@b or (@c) @d#1-2. @";
        assert_eq!(names(text), ["a.rs", "my file.png", "d#1-2", ""]);
        assert_eq!(names("@x"), ["x"]);
        assert_eq!(names("a\n@x\t@y"), ["x", "y"]);
    }
}
