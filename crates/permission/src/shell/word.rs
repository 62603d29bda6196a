//! Words as programs get them, as far as a line's own text tells.

use std::collections::HashMap;

use tree_sitter::Node;

/// A word of a command as the program would get it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Word {
    /// Nothing where the shell computes it.
    pub text: Option<String>,
    /// The shell may make several words of it: `*`, `?`, `{a,b}`.
    pub pattern: bool,
    pub source: String,
    /// Counts when the beginning of a command is compared with others.
    pub token: bool,
    /// A tilde at its beginning, or behind an equals sign, is the home folder and not a letter.
    pub home: bool,
}

impl Word {
    pub(crate) fn text(&self) -> &str {
        self.text.as_deref().unwrap_or_default()
    }

    /// The paths that it names: a leading `~` is the home folder, what is called `~` is `./~`.
    pub(crate) fn paths(&self) -> Vec<String> {
        let Some(text) = &self.text else { return Vec::new() };
        self.paths_of(text)
    }

    /// As [`Self::paths`], for a part of its text (`of=PATH`, `--output=PATH`).
    pub(crate) fn paths_of(&self, part: &str) -> Vec<String> {
        let part = match part.starts_with('~') && !self.home {
            true => format!("./{part}"),
            false => part.to_owned(),
        };
        match self.pattern && part.contains('{') {
            true if quotes(&self.source, "{},") => vec![part, ANYTHING.to_owned()],
            true => braces(&part),
            false => vec![part],
        }
    }
}

/// Values that a line gives to variables itself; nothing for those that it computes.
pub(crate) type Variables = HashMap<String, Option<String>>;

/// Reads words off a tree.
pub(crate) struct Words<'a> {
    pub(crate) line: &'a str,
    pub(crate) variables: &'a Variables,
}

/// A piece of a word, its value and what the shell may still make of it.
#[derive(Default)]
struct Piece {
    text: Option<String>,
    pattern: bool,
    home: bool,
}

impl Piece {
    fn literal(text: impl Into<String>) -> Self {
        Self { text: Some(text.into()), ..Self::default() }
    }
}

impl Words<'_> {
    pub(crate) fn source(&self, node: Node<'_>) -> &str {
        self.line.get(node.byte_range()).unwrap_or_default()
    }

    pub(crate) fn word(&self, node: Node<'_>) -> Word {
        let source = self.source(node).to_owned();
        let token = matches!(
            node.kind(),
            "word" | "string" | "raw_string" | "concatenation" | "command_name"
        );
        let Piece { text, pattern, home } = self.value(node, "");
        Word { text, pattern, source, token, home }
    }

    /// The text that the shell makes of a word behind `before`, and whether it may become several.
    fn value(&self, node: Node<'_>, before: &str) -> Piece {
        let source = self.source(node);
        let at_start = before.is_empty() || before.ends_with(['=', ':']);
        match node.kind() {
            "word" | "number" | "command_name" | "special_variable_name" => {
                let pattern = has_pattern(source) || is_brace(source);
                let tilde = at_start && source.starts_with('~') || source.contains("=~");
                let user = source.split('/').next().unwrap_or_default();
                if at_start && source.starts_with('~') && user != "~" {
                    // Somebody else's home, or a folder of the shell's own list.
                    return Piece::default();
                }
                Piece { text: Some(unescape(source)), pattern, home: tilde }
            }
            "raw_string" => Piece {
                text: source
                    .strip_prefix('\'')
                    .and_then(|s| s.strip_suffix('\''))
                    .map(str::to_owned),
                ..Piece::default()
            },
            "ansi_c_string" => Piece { text: ansi_c(source), ..Piece::default() },
            "translated_string" => match node.named_child(0) {
                Some(string) => self.value(string, before),
                None => Piece::default(),
            },
            "string" => self.quoted(node, before),
            "simple_expansion" | "expansion" | "command_substitution" => {
                self.expanded(source, before, false)
            }
            "concatenation" => {
                let mut whole = Piece::literal("");
                whole.pattern = is_brace(source);
                let mut cursor = node.walk();
                let mut end = node.start_byte();
                for child in node.named_children(&mut cursor) {
                    // What stands between two pieces is a letter of the word too (a lone `$` or `{`).
                    let gap = self.line.get(end..child.start_byte()).unwrap_or_default();
                    end = child.end_byte();
                    let before = format!("{}{gap}", whole.text.as_deref().unwrap_or("x"));
                    let piece = self.value(child, &before);
                    whole.pattern |= piece.pattern || gap.contains('[');
                    whole.home |= piece.home;
                    whole.text = whole.text.zip(piece.text).map(|(text, more)| text + gap + &more);
                }
                let gap = self.line.get(end..node.end_byte()).unwrap_or_default();
                whole.text = whole.text.map(|text| text + gap);
                whole
            }
            "extglob_pattern" | "regex" | "brace_expression" => {
                Piece { text: Some(source.to_owned()), pattern: true, home: false }
            }
            _ => Piece::default(),
        }
    }

    /// The content of a double-quoted string, if nothing in it is computed.
    fn quoted(&self, node: Node<'_>, before: &str) -> Piece {
        let (Some(start), Some(end)) = (
            node.start_byte().checked_add(1),
            node.end_byte().checked_sub(1).filter(|end| *end > node.start_byte()),
        ) else {
            return Piece::default();
        };
        let mut whole = Piece::literal("");
        let mut at = start;
        let mut cursor = node.walk();
        for child in node.named_children(&mut cursor) {
            let gap = self.line.get(at..child.start_byte()).unwrap_or_default();
            at = child.end_byte();
            let text = whole.text.as_deref().unwrap_or("x");
            let piece = match child.kind() {
                "string_content" => {
                    Piece { text: in_quotes(self.source(child)), ..Piece::default() }
                }
                _ => self.expanded(self.source(child), &format!("{before}{text}{gap}"), true),
            };
            whole.home |= piece.home;
            whole.text = whole.text.zip(piece.text).map(|(text, more)| text + gap + &more);
        }
        let gap = self.line.get(at..end).unwrap_or_default();
        whole.text = whole.text.zip(in_quotes(gap)).map(|(text, more)| text + &more);
        whole
    }

    /// What an expansion gives, for the few that can be told.
    fn expanded(&self, source: &str, before: &str, is_quoted: bool) -> Piece {
        let at_start = before.is_empty() || before.ends_with(['=', ':']);
        let command = source
            .strip_prefix("$(")
            .and_then(|s| s.strip_suffix(')'))
            .or_else(|| source.strip_prefix('`').and_then(|s| s.strip_suffix('`')));
        if let Some(command) = command {
            // Where it stands; of a repository, the top is as far up as it goes.
            return match command.trim() {
                "pwd" | "pwd -P" | "git rev-parse --show-toplevel" if at_start => {
                    Piece::literal(".")
                }
                _ => Piece::default(),
            };
        }
        let name = source.trim_start_matches('$').trim_start_matches('{').trim_end_matches('}');
        match self.variables.get(name) {
            Some(Some(value)) => {
                let splits = value.chars().any(char::is_whitespace) || value.is_empty();
                if !is_quoted && splits {
                    return Piece::default();
                }
                let pattern = !is_quoted && value.contains(['*', '?', '[']);
                let home = value.starts_with('~') && at_start;
                Piece { text: Some(value.clone()), pattern, home }
            }
            Some(None) => Piece::default(),
            None if at_start && is_home(name) => {
                Piece { text: Some("~".to_owned()), pattern: false, home: true }
            }
            None if at_start && name == "PWD" => Piece::literal("."),
            None => Piece::default(),
        }
    }
}

/// The home folder, also where something is said for the case that there is none (`${HOME:?}`).
fn is_home(name: &str) -> bool {
    name.strip_prefix("HOME").is_some_and(|rest| {
        rest.is_empty()
            || matches!(rest, "%/" | "%%/")
            || rest.starts_with([':', '?', '-']) && !rest.starts_with(":+")
    })
}

/// A star, a question mark or a bracket without a backslash before it.
fn has_pattern(source: &str) -> bool {
    let mut characters = source.chars();
    while let Some(c) = characters.next() {
        match c {
            '\\' => drop(characters.next()),
            '*' | '?' | '[' => return true,
            _ => {}
        }
    }
    false
}

pub(crate) fn is_brace(source: &str) -> bool {
    source.contains('{') && (source.contains(',') || source.contains(".."))
}

/// Without the backslashes that protect single characters outside of quotes.
pub(crate) fn unescape(source: &str) -> String {
    let mut text = String::with_capacity(source.len());
    let mut characters = source.chars();
    while let Some(c) = characters.next() {
        match c {
            '\\' => match characters.next() {
                Some('\n') | None => {}
                Some(next) => text.push(next),
            },
            c => text.push(c),
        }
    }
    text
}

/// The literal part of a double-quoted string.
pub(crate) fn in_quotes(source: &str) -> Option<String> {
    let mut text = String::with_capacity(source.len());
    let mut characters = source.chars();
    while let Some(c) = characters.next() {
        match c {
            '\\' => match characters.next() {
                Some(next @ ('"' | '\\' | '$' | '`')) => text.push(next),
                Some('\n') => {}
                Some(next) => text.extend(['\\', next]),
                None => text.push('\\'),
            },
            '`' => return None,
            c => text.push(c),
        }
    }
    Some(text)
}

/// `$'…'`, where it holds nothing but what every shell knows.
fn ansi_c(source: &str) -> Option<String> {
    let inner = source.strip_prefix("$'")?.strip_suffix('\'')?;
    let mut bytes: Vec<u8> = Vec::with_capacity(inner.len());
    let mut rest = inner.chars().peekable();
    let digits = |rest: &mut std::iter::Peekable<std::str::Chars<'_>>, radix: u32, most: usize| {
        let mut value = None;
        for _ in 0..most {
            let Some(digit) = rest.peek().and_then(|c| c.to_digit(radix)) else { break };
            rest.next();
            value = Some(value.unwrap_or(0_u32) * radix + digit);
        }
        value
    };
    while let Some(c) = rest.next() {
        let mut push = |c: char| bytes.extend(c.encode_utf8(&mut [0; 4]).as_bytes());
        if c != '\\' {
            push(c);
            continue;
        }
        match rest.peek()? {
            'x' => {
                rest.next();
                bytes.push(u8::try_from(digits(&mut rest, 16, 2)?).ok()?);
            }
            'u' | 'U' => {
                let most = if rest.next() == Some('u') { 4 } else { 8 };
                let c = char::from_u32(digits(&mut rest, 16, most)?)?;
                bytes.extend(c.encode_utf8(&mut [0; 4]).as_bytes());
            }
            '0'..='7' => bytes.push(u8::try_from(digits(&mut rest, 8, 3)?).ok()?),
            _ => match rest.next()? {
                'n' => push('\n'),
                't' => push('\t'),
                'r' => push('\r'),
                'a' => push('\u{7}'),
                'b' => push('\u{8}'),
                'e' | 'E' => push('\u{1b}'),
                'f' => push('\u{c}'),
                'v' => push('\u{b}'),
                c @ ('\\' | '\'' | '"' | '?') => push(c),
                _ => return None,
            },
        }
    }
    // A shell ends the word at a NUL.
    (!bytes.contains(&0)).then_some(())?;
    String::from_utf8(bytes).ok()
}

/// Words that a brace expression may become, at most.
const BRACES_CAP: usize = 256;

/// What a word may name that cannot be told: everything lies below it.
const ANYTHING: &str = "/";

/// `{a,b}` in all combinations, behind the text as it is. Where there are too many to be told apart, one of
/// them may be anything.
fn braces(text: &str) -> Vec<String> {
    let mut found = vec![text.to_owned()];
    let mut open = vec![text.to_owned()];
    while let Some(next) = open.pop() {
        match first_brace(&next) {
            Some((before, choices, after)) => {
                let choices = choices.iter().rev();
                open.extend(choices.map(|choice| [before, choice, after].concat()));
            }
            None if next == text => {}
            None => found.push(next),
        }
        if found.len() + open.len() > BRACES_CAP {
            return vec![text.to_owned(), ANYTHING.to_owned()];
        }
    }
    found
}

/// Whether quotes or a backslash take its meaning from something that makes patterns.
pub(super) fn quotes_pattern(source: &str) -> bool {
    quotes(source, "*?[]!^-{},")
}

/// Whether quotes or a backslash take its meaning from one of these signs: the text no longer tells.
fn quotes(source: &str, signs: &str) -> bool {
    let mut quote = None;
    let mut characters = source.chars();
    while let Some(c) = characters.next() {
        match (quote, c) {
            (None | Some('"'), '\\') => {
                let letter = characters.next();
                if letter.is_some_and(|c| signs.contains(c)) {
                    return true;
                }
            }
            (None, '\'' | '"') => quote = Some(c),
            (Some(open), c) if c == open => quote = None,
            (Some(_), c) if signs.contains(c) => return true,
            _ => {}
        }
    }
    false
}

/// The first expression with commas in it: what stands before, its choices, what stands behind.
fn first_brace(text: &str) -> Option<(&str, Vec<&str>, &str)> {
    for (open, _) in text.match_indices('{') {
        let mut depth = 0_usize;
        let mut cuts = vec![open];
        for (at, byte) in text.bytes().enumerate().skip(open) {
            match byte {
                b'{' => depth += 1,
                b',' if depth == 1 => cuts.push(at),
                b'}' => {
                    depth -= 1;
                    if depth == 0 {
                        cuts.push(at);
                        break;
                    }
                }
                _ => {}
            }
        }
        if depth == 0 && cuts.len() > 2 {
            let choices = cuts.windows(2).map(|pair| &text[pair[0] + 1..pair[1]]);
            let end = cuts.last().map_or(text.len(), |end| end + 1);
            return Some((&text[..open], choices.collect(), &text[end..]));
        }
    }
    None
}

/// Whether there is a blank that no backslash stands before.
pub(super) fn has_bare_blank(word: &str) -> bool {
    let mut escaped = false;
    word.chars().any(|letter| {
        let bare = letter.is_whitespace() && !escaped;
        escaped = letter == '\\' && !escaped;
        bare
    })
}

/// Whether what the grammar takes for a test (`[ … ]`, `[[ … ]]`) holds what no test can hold: it now and
/// then ends one at a later bracket, and the commands between are lost.
pub(super) fn is_stretched(test: &str) -> bool {
    let double = test.starts_with("[[");
    let close = if double { "]]" } else { "]" };
    let inner = test.strip_suffix(close).unwrap_or(test);
    let ends = |rest: &str| rest.is_empty() || rest.starts_with([';', '&', '|', ')', '<', '>']);
    let closes = inner.split_whitespace().any(|word| word.strip_prefix(close).is_some_and(ends));
    let joins = ["&&", "||", ";", "|", "&", "\n"].iter().any(|sign| inner.contains(sign));
    closes || joins && !double
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn braces_become_all_their_words() {
        let words = |text: &str| braces(text).into_iter().skip(1).collect::<Vec<_>>();
        assert_eq!(words("{/,x}"), ["/", "x"]);
        assert_eq!(words("a{b,c}d"), ["abd", "acd"]);
        assert_eq!(words("{a,{b,c}}"), ["a", "b", "c"]);
        assert_eq!(words("{a}"), [] as [&str; 0]);
        assert_eq!(words(&"{a,b}".repeat(40)), [ANYTHING]);
        assert_eq!(words(&"{a,b}".repeat(7)).len(), 128);
        assert_eq!(words("{a,b"), [] as [&str; 0]);
    }

    #[test]
    fn words_in_the_manner_of_c_are_read() {
        assert_eq!(ansi_c("$'\\x72\\155 \\u2f'").as_deref(), Some("rm /"));
        assert_eq!(ansi_c("$'a\\'b'").as_deref(), Some("a'b"));
        assert_eq!(ansi_c("$'a\\0b'"), None);
        assert_eq!(ansi_c("$'\\cA'"), None);
    }

    #[test]
    fn a_test_that_holds_what_no_test_can_is_stretched() {
        for (text, expected) in [
            ("[ -d / ] && rm -rf / || true ]", true),
            ("[ -d / && rm x ]", true),
            ("[ a ]; rm x ]", true),
            ("[ a\nrm x ]", true),
            ("[[ -d / ]] && rm -rf / || x ]]", true),
            ("[[ a ]]; rm x ]]", true),
            ("[ -d / ]", false),
            ("[ \"$a\" = b -a ! -f c ]", false),
            ("[[ $a == b && -f c || -d d ]]", false),
            ("[[ $a =~ ^[[:alpha:]]+$ ]]", false),
        ] {
            assert_eq!(is_stretched(text), expected, "{text}");
        }
    }
}
