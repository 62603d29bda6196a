//! The few lines of `key: value` above a Markdown text. Only what such lines hold in practice is
//! read: a whole YAML reader would let an unknown file make us expand its aliases for ever.

/// The top-level values and the text below, or nothing where there is no such head.
pub(crate) fn split(text: &str) -> Option<(Vec<(String, String)>, &str)> {
    cut(text).map(|(head, body)| (values(head), body))
}

/// The head and the text below, as they stand.
pub(crate) fn cut(text: &str) -> Option<(&str, &str)> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let rest = text.strip_prefix("---")?;
    let rest = rest.strip_prefix("\r\n").or_else(|| rest.strip_prefix('\n'))?;
    let mut head_end = 0;
    for line in rest.split_inclusive('\n') {
        if line.trim_end() == "---" {
            let body = &rest[head_end + line.len()..];
            return Some((&rest[..head_end], body));
        }
        head_end += line.len();
    }
    None
}

fn values(head: &str) -> Vec<(String, String)> {
    let lines: Vec<&str> = head.lines().map(str::trim_end).collect();
    let mut found = Vec::new();
    let mut at = 0;
    while at < lines.len() {
        let line = lines[at];
        at += 1;
        let is_top = line.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
        let Some((key, value)) = line.split_once(':').filter(|_| is_top) else { continue };
        let inner = |line: &&&str| line.is_empty() || line.starts_with([' ', '\t']);
        let more: Vec<&str> = lines[at..].iter().take_while(inner).copied().collect();
        at += more.len();
        found.push((key.trim().to_owned(), scalar(value.trim(), &more)));
    }
    found
}

/// A value with the indented lines that belong to it.
fn scalar(first: &str, more: &[&str]) -> String {
    let more = || more.iter().map(|line| line.trim());
    match first.chars().next() {
        Some('|') => more().collect::<Vec<_>>().join("\n").trim().to_owned(),
        Some('>') => more().collect::<Vec<_>>().join(" ").trim().to_owned(),
        Some(quote @ ('"' | '\'')) => {
            let text = std::iter::once(first).chain(more()).collect::<Vec<_>>().join(" ");
            unquote(&text, quote)
        }
        _ => {
            let first = first.split_once(" #").map_or(first, |(value, _)| value.trim_end());
            std::iter::once(first).chain(more()).collect::<Vec<_>>().join(" ").trim().to_owned()
        }
    }
}

fn unquote(text: &str, quote: char) -> String {
    let mut value = String::new();
    let mut letters = text.chars().skip(1).peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '\'' if quote == '\'' && letters.peek() == Some(&'\'') => {
                letters.next();
                value.push('\'');
            }
            '\\' if quote == '"' => match letters.next() {
                Some('n') => value.push('\n'),
                Some('t') => value.push('\t'),
                Some(other) => value.push(other),
                None => {}
            },
            letter if letter == quote => break,
            letter => value.push(letter),
        }
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_as_people_write_them() {
        for (head, expected) in [
            ("description: plain words", "plain words"),
            ("description: with: a colon", "with: a colon"),
            ("description: text # a comment", "text"),
            ("description: \"quoted: \\\"x\\\"\"", "quoted: \"x\""),
            ("description: 'it''s'", "it's"),
            ("description: >-\n  folded\n  lines\nother: x", "folded lines"),
            ("description: |\n  kept\n  lines", "kept\nlines"),
            ("description: begun\n  and continued", "begun and continued"),
            ("metadata:\n  description: inner\ndescription: outer", "outer"),
            ("description:", ""),
        ] {
            let text = format!("---\n{head}\n---\nbody");
            let (values, body) = split(&text).unwrap();
            let value = values.into_iter().find(|(key, _)| key == "description").unwrap().1;
            assert_eq!((value.as_str(), body), (expected, "body"), "{head}");
        }
        for text in ["", "body", "---\nname: x\n", "--- \nname: x\n---", "----\n---\n"] {
            assert!(split(text).is_none(), "{text:?}");
        }
        assert_eq!(split("\u{feff}---\r\nname: x\r\n---\r\nb\r\n").unwrap().1, "b\r\n");
    }

    proptest::proptest! {
        #[test]
        fn no_text_breaks_it(text in "(---|[a-z:'\"|> \\\\#\n]){0,80}") {
            split(&text);
        }
    }
}
