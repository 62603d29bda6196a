//! The little that is needed to look right on a terminal and plain elsewhere.

use std::fmt::Display;
use std::io::{IsTerminal, Write};

use toolwright::session::export::turns_text;

/// Escape sequences for one stream, or nothing where they would be noise.
#[derive(Debug, Clone, Copy)]
pub struct Style {
    colour: bool,
}

impl Style {
    /// For standard error, where everything but the answer goes.
    pub fn for_stderr() -> Self {
        let plain = std::env::var_os("NO_COLOR").is_some_and(|v| !v.is_empty())
            || std::env::var_os("TERM").is_some_and(|v| v == "dumb");
        Self { colour: !plain && std::io::stderr().is_terminal() }
    }

    pub fn for_stdout() -> Self {
        Self { colour: Self::for_stderr().colour && std::io::stdout().is_terminal() }
    }

    fn paint(self, code: &str, text: &str) -> String {
        let text = harmless(text);
        if self.colour { format!("\x1b[{code}m{text}\x1b[0m") } else { text }
    }

    pub fn dim(self, text: &str) -> String {
        self.paint("2", text)
    }

    pub fn bold(self, text: &str) -> String {
        self.paint("1", text)
    }

    pub fn good(self, text: &str) -> String {
        self.paint("32", text)
    }

    pub fn bad(self, text: &str) -> String {
        self.paint("31", text)
    }

    pub fn attention(self, text: &str) -> String {
        self.paint("33", text)
    }

    /// A diff with its added and removed lines coloured.
    pub fn diff(self, patch: &str) -> String {
        let line = |line: &str| match line.as_bytes().first() {
            Some(b'+') => self.good(line),
            Some(b'-') => self.bad(line),
            Some(b'@') => self.dim(line),
            _ => line.to_owned(),
        };
        patch.lines().map(line).collect::<Vec<_>>().join("\n")
    }
}

/// Text from a model or a tool must not move the cursor or set the title of somebody's terminal, and must
/// not read as what it is not.
pub fn harmless(text: &str) -> String {
    let is_harmful = |c: char| (c.is_control() && c != '\n' && c != '\t') || turns_text(c);
    if text.contains(is_harmful) {
        text.replace("\r\n", "\n").replace(is_harmful, "\u{fffd}")
    } else {
        text.to_owned()
    }
}

/// The first line, short enough for one row.
pub fn one_line(text: &str, limit: usize) -> String {
    let text = harmless(text);
    let line = text.trim().lines().next().unwrap_or_default();
    let cut = line.chars().count() > limit || text.trim().lines().nth(1).is_some();
    let mut short: String = line.chars().take(limit).collect();
    if cut {
        short.push('…');
    }
    short
}

/// One of them, or so many.
pub fn counted<N: PartialEq + From<u8> + Display>(count: N, one: &str) -> String {
    if count == N::from(1) { format!("1 {one}") } else { format!("{count} {one}s") }
}

/// What [`Style`] writes, without its first character.
const OURS: &[&str] = &["[0m", "[1m", "[2m", "[31m", "[32m", "[33m"];

/// As [`harmless`], for a line that may have been styled.
fn harmless_but_styled(line: &str) -> String {
    let mut parts = line.split('\x1b');
    let mut out = harmless(parts.next().unwrap_or_default());
    for part in parts {
        let ours = OURS.iter().any(|sequence| part.starts_with(sequence));
        out.push(if ours { '\x1b' } else { '\u{fffd}' });
        out.push_str(&harmless(part));
    }
    out
}

/// A line on standard error, often with words of others in it. Where nobody reads it, nothing is lost
/// that could be told elsewhere.
pub fn note(line: &str) {
    writeln!(std::io::stderr(), "{}", harmless_but_styled(line)).ok();
}

/// Prints to standard output; a reader that went away ends the command quietly.
pub fn print(text: &str) {
    let mut out = std::io::stdout().lock();
    if out.write_all(text.as_bytes()).and_then(|()| out.flush()).is_err() {
        std::process::exit(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_of_ours_pass_and_nothing_else_does() {
        let styled = Style { colour: true }.attention("! a\x1b]0;title\x07b\x1b[2Jc");
        assert_eq!(styled, "\x1b[33m! a\u{fffd}]0;title\u{fffd}b\u{fffd}[2Jc\x1b[0m");
        assert_eq!(harmless_but_styled(&styled), styled);
        assert_eq!(harmless_but_styled("a\x1b[2J\u{9b}b\n"), "a\u{fffd}[2J\u{fffd}b\n");
        assert_eq!(harmless("a\u{202e}b\u{2066}c\r\n\td"), "a\u{fffd}b\u{fffd}c\n\td");
    }
}
