//! Files that are dropped on a terminal arrive as a paste of their paths; those that can be attached become
//! mentions.

/// What stands for the paths in the prompt, if the text is nothing but paths of images or PDFs.
pub fn attachments(text: &str) -> Option<String> {
    let text = text.trim();
    if text.is_empty() || text.len() > 4_096 || text.contains('\n') {
        return None;
    }
    let paths = words(text)?;
    let fits = |path: &String| is_full(path) && is_attachment(path);
    (!paths.is_empty() && paths.iter().all(fits))
        .then(|| paths.iter().map(|path| mention(path)).collect::<Vec<_>>().join(" "))
}

/// A path behind `@`; in quotes where it has a space.
pub fn mention(path: &str) -> String {
    match path.contains(char::is_whitespace) {
        true => format!("@\"{path}\""),
        false => format!("@{path}"),
    }
}

fn is_full(path: &str) -> bool {
    path.starts_with('/') || path.starts_with("~/")
}

fn is_attachment(path: &str) -> bool {
    let extension = path.rsplit('.').next().unwrap_or_default().to_ascii_lowercase();
    matches!(extension.as_str(), "png" | "jpg" | "jpeg" | "gif" | "webp" | "pdf")
}

/// As a shell would split it: quotes, backslashes; and `file://` addresses as some terminals give them.
fn words(text: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let (mut word, mut open, mut any) = (String::new(), None, false);
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match (open, c) {
            (Some(quote), c) if c == quote => open = None,
            (None, '\'' | '"') => (open, any) = (Some(c), true),
            (None | Some('"'), '\\') => word.push(chars.next()?),
            (None, ' ' | '\t') => {
                if any || !word.is_empty() {
                    words.push(std::mem::take(&mut word));
                }
                any = false;
            }
            (_, c) => word.push(c),
        }
    }
    if open.is_some() {
        return None;
    }
    if any || !word.is_empty() {
        words.push(word);
    }
    Some(words.into_iter().map(|word| from_address(&word).unwrap_or(word)).collect())
}

fn from_address(word: &str) -> Option<String> {
    let path = word.strip_prefix("file://")?;
    let path = path.strip_prefix("localhost").unwrap_or(path);
    let mut bytes = Vec::new();
    let mut rest = path.bytes();
    while let Some(byte) = rest.next() {
        match byte {
            b'%' => {
                let digit = |b: Option<u8>| (b? as char).to_digit(16);
                let (high, low) = (digit(rest.next())?, digit(rest.next())?);
                bytes.push(u8::try_from(high * 16 + low).ok()?);
            }
            byte => bytes.push(byte),
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_images_become_mentions_however_a_terminal_writes_them() {
        for (text, expected) in [
            ("/tmp/a.png", Some("@/tmp/a.png")),
            ("'/tmp/a b.png' ", Some("@\"/tmp/a b.png\"")),
            ("/tmp/a\\ b.PNG", Some("@\"/tmp/a b.PNG\"")),
            ("\"/tmp/a.png\" /tmp/b.jpg", Some("@/tmp/a.png @/tmp/b.jpg")),
            ("file:///tmp/a%20b.webp", Some("@\"/tmp/a b.webp\"")),
            ("~/x.pdf", Some("@~/x.pdf")),
            ("/tmp/a.rs", None),
            ("see /tmp/a.png", None),
            ("a.png", None),
            ("/tmp/a.png\n/tmp/b.png", None),
            ("'/tmp/a.png", None),
            ("file:///tmp/%zz.png", None),
            ("", None),
        ] {
            assert_eq!(attachments(text).as_deref(), expected, "{text:?}");
        }
    }
}
