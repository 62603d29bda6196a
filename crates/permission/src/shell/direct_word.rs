//! Words, read letter by letter.

use super::direct::Direct;
use super::word::{Word, is_brace};

/// What a word was put together from so far.
struct Building {
    /// Nothing where the shell computes a part of it.
    text: Option<String>,
    pattern: bool,
    home: bool,
    pieces: usize,
    /// One of the pieces is an expansion.
    expands: bool,
    /// Signs without quotes that are letters here and something else elsewhere.
    brackets: usize,
}

impl Building {
    /// What stands before the next piece; something that is computed is not nothing.
    fn at_start(&self) -> bool {
        self.text.as_ref().is_some_and(|text| text.is_empty() || text.ends_with(['=', ':']))
    }

    fn push(&mut self, c: char) {
        if let Some(text) = &mut self.text {
            text.push(c);
        }
    }

    fn push_str(&mut self, more: &str) {
        if let Some(text) = &mut self.text {
            text.push_str(more);
        }
    }
}

impl<'a> Direct<'a> {
    pub(super) fn word(&mut self) -> Option<Word> {
        let start = self.at;
        let mut word = Building {
            text: Some(String::new()),
            pattern: false,
            home: false,
            pieces: 0,
            expands: false,
            brackets: 0,
        };
        // Some shells look programs up by the one; the other begins a comment.
        (!matches!(self.peek(), Some(b'=' | b'#'))).then_some(())?;
        while !self.is_word_end(0) {
            word.pieces += 1;
            match self.peek()? {
                b'\'' => {
                    let rest = self.line.get(self.at + 1..)?;
                    let inner = rest.split_once('\'')?.0;
                    self.at += inner.len() + 2;
                    word.push_str(inner);
                }
                b'"' => self.quoted(&mut word)?,
                b'$' => {
                    word.expands = true;
                    self.expansion(&mut word, false)?;
                }
                _ => self.run(start, &mut word)?,
            }
        }
        match self.peek() {
            Some(b'(') => return None,
            Some(b')') if self.open == 0 => return None,
            // `{name}>` is a redirection with a name.
            Some(b'<' | b'>') if self.line[..self.at].ends_with('}') => return None,
            _ => {}
        }
        let source = self.line.get(start..self.at)?;
        (!source.is_empty()).then_some(())?;
        let alone = word.pieces == 1;
        // Brackets beside quotes and backslashes are where readers differ.
        let has_bracket = word.brackets > 0;
        (!has_bracket || alone && !source.contains('\\')).then_some(())?;
        let token = !(alone && (word.expands || is_number(source)));
        let source = source.to_owned();
        Some(Word { text: word.text, pattern: word.pattern, source, token, home: word.home })
    }

    /// Letters without quotes.
    fn run(&mut self, start: usize, word: &mut Building) -> Option<()> {
        let from = self.at;
        if self.peek() == Some(b'~') {
            // Elsewhere it is a letter, in some shells and some places.
            (from == start).then_some(())?;
            let rest = self.line.get(from..)?;
            let user = rest.bytes().take_while(|b| !is_special(*b) && *b != b'/').count();
            match user {
                1 => word.home = true,
                // Somebody else's home, or a folder of the shell's own list.
                _ => {
                    let name = rest.get(1..user)?;
                    let plain =
                        |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'+');
                    name.bytes().all(plain).then_some(())?;
                    word.text = None;
                }
            }
        }
        while let Some(byte) = self.peek() {
            match byte {
                b'\\' => {
                    let escaped = self.line.get(self.at + 1..)?.chars().next()?;
                    // Line ends and tabs, a blank in front, and what stands behind a quote are where
                    // readers differ.
                    let fits = escaped.is_ascii_punctuation()
                        || escaped.is_ascii_alphanumeric()
                        || escaped == ' ' && self.at > from;
                    (fits && (self.at > from || from == start)).then_some(())?;
                    word.push(escaped);
                    self.at += 1 + escaped.len_utf8();
                }
                b'{' => {
                    word.brackets += 1;
                    // `{}` and `@{0}` are no choice of words, `{a,b}` is a plain one.
                    let letter = |b: &&u8| {
                        b.is_ascii_alphanumeric() || matches!(b, b',' | b'.' | b'_' | b'-' | b'/')
                    };
                    let inner = self.line.as_bytes()[self.at + 1..].iter();
                    let inner = inner.take_while(letter).count();
                    (self.peek_at(inner + 1) == Some(b'}')).then_some(())?;
                    let text = self.line.get(self.at..self.at + inner + 2)?;
                    let plain = text.contains(',') && !text.contains("..")
                        || text
                            .bytes()
                            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'{' | b'}'));
                    plain.then_some(())?;
                    word.push_str(text);
                    self.at += text.len();
                }
                b'*' | b'?' | b'[' => {
                    word.brackets += usize::from(byte == b'[');
                    word.pattern = true;
                    word.push(char::from(byte));
                    self.at += 1;
                }
                b'~' if self.at > from && self.line.as_bytes()[self.at - 1] == b'=' => return None,
                b'/' | b'.' | b'_' | b'-' | b'+' | b',' | b':' | b'@' | b'%' | b'^' | b'='
                | b'!' | b'#' | b']' | b'~' => {
                    word.brackets += usize::from(matches!(byte, b']' | b'#' | b'!'));
                    word.push(char::from(byte));
                    self.at += 1;
                }
                _ if byte.is_ascii_alphanumeric() => {
                    word.push(char::from(byte));
                    self.at += 1;
                }
                _ if !byte.is_ascii() => {
                    let c = self.line.get(self.at..)?.chars().next()?;
                    word.push(c);
                    self.at += c.len_utf8();
                }
                _ => break,
            }
        }
        word.pattern |= is_brace(self.line.get(from..self.at)?);
        // Whatever else there is: a backtick, a lone bracket.
        let next = self.peek().is_none_or(|b| matches!(b, b'\'' | b'"' | b'$') || is_end(b));
        (next && self.at > from).then_some(())
    }

    fn quoted(&mut self, word: &mut Building) -> Option<()> {
        self.at += 1;
        loop {
            let c = self.line.get(self.at..)?.chars().next()?;
            match c {
                '"' => {
                    self.at += 1;
                    return Some(());
                }
                '`' => return None,
                '$' => match self.peek_at(1)? {
                    // A dollar is itself where nothing can follow it.
                    b'"' | b' ' | b'|' | b')' | b'/' => {
                        word.push('$');
                        self.at += 1;
                    }
                    _ => self.expansion(word, true)?,
                },
                '\\' => {
                    let next = self.line.get(self.at + 1..)?.chars().next()?;
                    match next {
                        '"' | '\\' | '$' | '`' => word.push(next),
                        '\n' => {}
                        _ => {
                            word.push('\\');
                            word.push(next);
                        }
                    }
                    self.at += 1 + next.len_utf8();
                }
                c => {
                    word.push(c);
                    self.at += c.len_utf8();
                }
            }
        }
    }

    /// `$name`, `${name}`, `$1`, `$((1))` and `$(command)`, with the value of the few that can be told.
    fn expansion(&mut self, word: &mut Building, is_quoted: bool) -> Option<()> {
        let from = self.at;
        self.at += 1;
        let name = match self.peek()? {
            b'(' if self.peek_at(1) == Some(b'(') => {
                self.at += 2;
                self.arithmetic(b"")?;
                word.text = None;
                return Some(());
            }
            b'(' => {
                self.at += 1;
                self.enclosed()?;
                let inner = self.line.get(from + 2..self.at - 1)?;
                // Where it stands; of a repository, the top is as far up as it goes.
                let here =
                    matches!(inner.trim(), "pwd" | "pwd -P" | "git rev-parse --show-toplevel");
                match here && word.at_start() {
                    true => word.push('.'),
                    false => word.text = None,
                }
                return Some(());
            }
            b'{' => {
                self.at += 1;
                let counts = self.eat("#");
                let name = self.name()?;
                if counts || self.peek() != Some(b'}') {
                    self.computed(name)?;
                    word.text = None;
                }
                self.eat("}").then_some(())?;
                name
            }
            b'0'..=b'9' | b'@' | b'?' | b'#' | b'*' | b'$' | b'!' => {
                self.at += 1;
                // `$10` and the like: where one ends is known, what follows not to everybody.
                (!self.peek().is_some_and(|b| b.is_ascii_alphanumeric() || b == b'_'))
                    .then_some(())?;
                ""
            }
            _ => self.name()?,
        };
        let at_start = word.at_start();
        match self.variables.iter().find(|(own, _)| *own == name) {
            Some((_, Some(value))) => {
                let splits = value.is_empty() || value.chars().any(char::is_whitespace);
                if splits && !is_quoted {
                    word.text = None;
                }
                word.pattern |= !is_quoted && value.contains(['*', '?', '[']);
                word.home |= value.starts_with('~') && at_start;
                word.push_str(value);
            }
            None if name == "HOME" && at_start => {
                word.push('~');
                word.home = true;
            }
            None if name == "PWD" && at_start => word.push('.'),
            _ => word.text = None,
        }
        Some(())
    }

    /// What the shell makes of a variable behind its name: `[@]`, `:-text`, `%.*`. Nobody can know it. What
    /// may set or run something, or is known by its name, is left to the grammar.
    fn computed(&mut self, name: &str) -> Option<()> {
        (!matches!(name, "HOME" | "PWD")).then_some(())?;
        let rest = self.line.as_bytes().get(self.at..)?;
        if let Some(inner) = rest.strip_prefix(b"[") {
            let length = match inner.first()? {
                b'@' | b'*' => 1,
                _ => inner.iter().take_while(|b| b.is_ascii_digit()).count(),
            };
            self.at += 1 + length;
            return (length > 0 && self.eat("]")).then_some(());
        }
        let plain = |b: &&u8| {
            b.is_ascii_alphanumeric()
                || matches!(
                    b,
                    b':' | b'-' | b'+' | b'?' | b'#' | b'%' | b'/' | b'.' | b',' | b'_' | b'*'
                )
        };
        self.at += rest.iter().take_while(plain).count();
        Some(())
    }
}

fn is_end(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b';' | b'|' | b'&' | b'<' | b'>' | b'(' | b')')
}

fn is_special(byte: u8) -> bool {
    is_end(byte) || matches!(byte, b'\'' | b'"' | b'$' | b'`')
}

/// What the grammar calls a number, and so no word that says what a command is.
fn is_number(source: &str) -> bool {
    let digits = source.strip_prefix('-').unwrap_or(source);
    let digits = digits.strip_prefix("0x").unwrap_or(digits);
    let (base, rest) = digits.split_once('#').map_or((digits, None), |(a, b)| (a, Some(b)));
    let is_digits = !base.is_empty() && base.bytes().all(|b| b.is_ascii_digit());
    let fits = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'@' | b'_');
    is_digits && rest.is_none_or(|rest| !rest.is_empty() && rest.bytes().all(fits))
}
