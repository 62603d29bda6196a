//! A second reading of a line, by few rules of our own: commands of plain words in pipes and lists,
//! and nothing else. Only what both this and the grammar read, and read alike, can be harmless: whatever
//! one of them misunderstands, the other does not know or sees otherwise.

/// A command: its words, and the files that it reads by `<`.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Plain<'a> {
    pub(crate) words: Vec<PlainWord<'a>>,
    pub(crate) inputs: Vec<PlainWord<'a>>,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct PlainWord<'a> {
    pub(crate) source: &'a str,
    pub(crate) text: String,
    pub(crate) pattern: bool,
}

/// The commands of a line that is plain.
pub(crate) fn commands(line: &str) -> Option<Vec<Plain<'_>>> {
    if super::parse::has_unseen(line) {
        return None;
    }
    let mut reader = Reader { line, at: 0 };
    let mut found = Vec::new();
    let mut current = Plain::default();
    // Whether a command must follow: behind `|`, `&&` and `||`.
    let mut owed = false;
    loop {
        reader.blanks();
        let Some(next) = reader.peek() else { break };
        match next {
            '#' => reader.comment()?,
            '\n' | ';' => {
                reader.take();
                if current.words.is_empty() {
                    // Lines may be empty, statements may not; a newline may follow an operator.
                    (next == '\n' && current.inputs.is_empty()).then_some(())?;
                } else {
                    found.push(std::mem::take(&mut current));
                    owed = false;
                }
            }
            '|' | '&' => {
                if reader.eat("&>") {
                    reader.blanks();
                    reader.nowhere()?;
                    continue;
                }
                let operator = ["||", "&&", "|"].into_iter().find(|o| reader.eat(o))?;
                (operator != "|" || reader.peek() != Some('&')).then_some(())?;
                (!current.words.is_empty()).then_some(())?;
                found.push(std::mem::take(&mut current));
                owed = true;
            }
            '<' => {
                reader.take();
                reader.blanks();
                current.inputs.push(reader.word()?);
            }
            '>' => reader.output()?,
            '0'..='9' if reader.descriptor() => {
                reader.take();
                reader.output()?;
            }
            _ => current.words.push(reader.word()?),
        }
    }
    match (current.words.is_empty(), owed) {
        (false, _) => found.push(current),
        (true, true) => return None,
        (true, false) => (current.inputs.is_empty()).then_some(())?,
    }
    (!found.is_empty()).then_some(found)
}

struct Reader<'a> {
    line: &'a str,
    at: usize,
}

impl<'a> Reader<'a> {
    fn rest(&self) -> &'a str {
        self.line.get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn take(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += c.len_utf8();
        Some(c)
    }

    fn eat(&mut self, text: &str) -> bool {
        let fits = self.rest().starts_with(text);
        self.at += if fits { text.len() } else { 0 };
        fits
    }

    fn blanks(&mut self) {
        while self.eat(" ") || self.eat("\t") || self.eat("\\\n") {}
    }

    /// To the end of the line. One that ends in a backslash is nothing to rely on.
    fn comment(&mut self) -> Option<()> {
        let text = self.rest().split('\n').next().unwrap_or_default();
        self.at += text.len();
        (!text.ends_with('\\')).then_some(())
    }

    /// Whether a number here is one in front of `>`.
    fn descriptor(&self) -> bool {
        self.rest().as_bytes().get(1) == Some(&b'>')
    }

    /// Output that goes to where other output goes, or nowhere.
    fn output(&mut self) -> Option<()> {
        if self.eat(">&1") || self.eat(">&2") {
            return self.ends_word();
        }
        (self.eat(">>") || self.eat(">")).then_some(())?;
        (!matches!(self.peek(), Some('|' | '&' | '('))).then_some(())?;
        self.blanks();
        self.nowhere()
    }

    fn nowhere(&mut self) -> Option<()> {
        self.eat("/dev/null").then_some(())?;
        self.ends_word()
    }

    fn ends_word(&self) -> Option<()> {
        matches!(self.peek(), None | Some(' ' | '\t' | '\n' | ';' | '|' | '&')).then_some(())
    }

    fn word(&mut self) -> Option<PlainWord<'a>> {
        let start = self.at;
        let mut text = String::new();
        let mut pattern = false;
        while let Some(c) = self.peek() {
            match c {
                ' ' | '\t' | '\n' | ';' | '|' | '&' => break,
                '\'' => {
                    self.take();
                    let inner = self.rest().split_once('\'')?.0;
                    self.at += inner.len() + 1;
                    text.push_str(inner);
                }
                '"' => {
                    self.take();
                    self.quoted(&mut text)?;
                }
                '\\' => {
                    self.take();
                    match self.take()? {
                        '\n' => {}
                        // What a backslash makes of letters is left to those who know.
                        c if c.is_ascii_punctuation() || c == ' ' => text.push(c),
                        _ => return None,
                    }
                }
                // Not at the beginning: some shells look programs and folders up by it.
                '=' | '~' if text.is_empty() && self.at > start => return None,
                '=' if text.is_empty() => return None,
                '*' | '?' | '[' => {
                    pattern = true;
                    text.extend(self.take());
                }
                '{' => {
                    let inner = self.rest().split_once('}')?.0;
                    (!inner.contains([',', ' ', '\'', '"', '\\', '$', '`', '\n'])).then_some(())?;
                    (!inner.contains("..")).then_some(())?;
                    text.extend(self.take());
                }
                '}' | ']' | '~' | '=' | '!' | '#' | '%' | '+' | ',' | '-' | '.' | '/' | ':'
                | '@' | '^' | '_' => text.extend(self.take()),
                // Letters to a shell, and operators to whoever reads over them.
                '；' | '｜' | '＆' | '＞' | '＜' | '＄' | '｀' => return None,
                c if c.is_ascii_alphanumeric() || !c.is_ascii() => text.extend(self.take()),
                _ => return None,
            }
        }
        let source = self.line.get(start..self.at)?;
        (!source.is_empty()).then_some(PlainWord { source, text, pattern })
    }

    fn quoted(&mut self, text: &mut String) -> Option<()> {
        loop {
            match self.take()? {
                '"' => return Some(()),
                '`' => return None,
                // A dollar is itself where nothing can follow it.
                '$' => {
                    matches!(self.peek(), Some('"' | ' ' | '|' | ')' | '/')).then_some(())?;
                    text.push('$');
                }
                '\\' => match self.take()? {
                    c @ ('"' | '\\' | '$' | '`') => text.push(c),
                    '\n' => {}
                    c => text.extend(['\\', c]),
                },
                c => text.push(c),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Option<Vec<Vec<String>>> {
        let words = |plain: Plain<'_>| plain.words.into_iter().map(|w| w.text).collect();
        commands(line).map(|found| found.into_iter().map(words).collect())
    }

    #[test]
    fn plain_lines_are_read() {
        for (line, expected) in [
            ("ls", vec![vec!["ls"]]),
            ("ls -la 'a b' \"c d\" e\\ f", vec![vec!["ls", "-la", "a b", "c d", "e f"]]),
            (
                "a | b && c || d; e\nf",
                vec![vec!["a"], vec!["b"], vec!["c"], vec!["d"], vec!["e"], vec!["f"]],
            ),
            ("a 2>/dev/null 2>&1 | b > /dev/null", vec![vec!["a"], vec!["b"]]),
            ("a &>/dev/null", vec![vec!["a"]]),
            ("a < in b", vec![vec!["a", "b"]]),
            ("# what follows\na # b\n\nb", vec![vec!["a"], vec!["b"]]),
            ("a \\\n  b", vec![vec!["a", "b"]]),
            ("a &&\n b", vec![vec!["a"], vec!["b"]]),
            ("rg \"a\\.b$\" x#y", vec![vec!["rg", "a\\.b$", "x#y"]]),
            ("git show stash@{0} HEAD^", vec![vec!["git", "show", "stash@{0}", "HEAD^"]]),
            ("a 12 3>/dev/null", vec![vec!["a", "12"]]),
        ] {
            let expected: Vec<Vec<String>> =
                expected.into_iter().map(|c| c.into_iter().map(str::to_owned).collect()).collect();
            assert_eq!(words(line), Some(expected), "{line:?}");
        }
    }

    #[test]
    fn everything_else_is_not() {
        for line in [
            "",
            " ",
            "#",
            "a $x",
            "a \"$x\"",
            "a \"${x}\"",
            "a `b`",
            "a $(b)",
            "a > b",
            "a >> b",
            "a 2> b",
            "a &",
            "a & b",
            "a |& b",
            "a;; b",
            "; a",
            "a | | b",
            "a |",
            "a &&",
            "(a)",
            "{ a; }x$",
            "a <(b)",
            "a << b",
            "a <<< b",
            "a <> b",
            "a <& 3",
            "a >& b",
            "a >&3",
            "a >| /dev/null",
            "a 'b",
            "a \"b",
            "a\\",
            "a \\n",
            "a {b,c}",
            "a {1..3}",
            "a\rb",
            "a\0",
            "a =b",
            "a ''~",
            "a $'b'",
            "a $\"b\"",
            "a >/dev/nullx",
            "a >/dev/null/../x",
            "a\u{a0}b",
            "a # b\\\n c",
            "a \u{200b}",
            "< a",
            "a &>b",
            "a >/dev/null$x",
            "a 2>&1x",
        ] {
            assert_eq!(commands(line), None, "{line:?}");
        }
    }
}
