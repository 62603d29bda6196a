//! Variables: what sets them, and what is known of them for the rest of a line.

use super::direct::Direct;
use super::parse::{Raw, is_powerful};
use super::word::Word;

/// A variable that was set.
pub(super) struct Set<'a> {
    pub(super) name: &'a str,
    /// It may as well stand in front of a command.
    pub(super) before_command: bool,
}

/// Commands that set the variables that they name.
const SETTERS: &[&str] = &["read", "mapfile", "readarray", "getopts", "printf", "unset"];

/// Commands that may set any.
const RUNNERS: &[&str] = &["eval", "source", ".", "let"];

/// What a command may set: the words that may be names, or nothing inside for all there are.
pub(super) fn sets(raw: &Raw) -> Option<Option<Vec<String>>> {
    let wrapper = |word: &&Word| matches!(word.text(), "command" | "builtin");
    let mut words = raw.words.iter().skip_while(wrapper);
    let name = words.next()?.text();
    if RUNNERS.contains(&name) {
        return Some(None);
    }
    // What it prints may well be computed.
    if name == "printf" && !words.clone().next().is_some_and(|word| word.text().starts_with("-v")) {
        return None;
    }
    SETTERS.contains(&name).then(|| words.map(|word| word.text.clone()).collect())
}

/// Whether a variable is among the words that may be names, also attached to an option (`printf -vNAME`).
pub(super) fn is_among(names: &[String], own: &str) -> bool {
    names.iter().any(|name| name == own || name.starts_with('-') && name.ends_with(own))
}

/// Whether a text may set a variable: its name stands in it, and not as something to be replaced.
pub(super) fn is_set_in(text: &str, name: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.match_indices(name).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let behind = text[at + name.len()..].chars().next();
        !before.is_some_and(|c| is_part(c) || matches!(c, '$' | '{'))
            && !behind.is_some_and(is_part)
    })
}

impl<'a> Direct<'a> {
    pub(super) fn set_unknown(&mut self, name: &'a str) {
        match self.variables.iter_mut().find(|(own, _)| *own == name) {
            Some((_, value)) => *value = None,
            None => self.variables.push((name, None)),
        }
    }

    /// What is set further on counts from the start where it is run again, or only later.
    pub(super) fn forget_what_changes(&mut self) {
        let rest = self.line.get(self.at..).unwrap_or_default();
        let changed = self.variables.iter_mut().filter(|(name, _)| is_set_in(rest, name));
        changed.for_each(|(_, value)| *value = None);
    }

    /// What was set since then is not known any more.
    pub(super) fn forget_since(&mut self, count: usize) {
        let since = self.variables.get_mut(count..).unwrap_or_default();
        since.iter_mut().for_each(|(_, value)| *value = None);
    }

    /// What a command sets is not known behind it.
    pub(super) fn forget(&mut self, raw: &Raw) {
        match sets(raw) {
            None => {}
            Some(None) => self.forget_since(0),
            Some(Some(names)) => {
                for (own, value) in &mut self.variables {
                    if is_among(&names, own) {
                        *value = None;
                    }
                }
                // What the line has not set has a meaning of its own in two cases.
                for own in ["HOME", "PWD"] {
                    if is_among(&names, own) {
                        self.set_unknown(own);
                    }
                }
            }
        }
    }

    /// Notes what a variable is from here on. A value is good for the rest of the line if it is set
    /// for sure, and nothing else ever sets it.
    fn set(&mut self, name: &'a str, value: Option<Word>, adds: bool) {
        self.parsed.tainted |= is_powerful(name);
        let first = !self.variables.iter().any(|(own, _)| *own == name);
        let plain = first && self.unsure == 0 && !adds;
        let text = match value {
            Some(word) if plain => word.paths().into_iter().next().filter(|_| !word.pattern),
            None if plain => Some(String::new()),
            _ => None,
        };
        self.set_unknown(name);
        if let Some((_, value)) = self.variables.iter_mut().find(|(own, _)| *own == name) {
            *value = text;
        }
    }

    /// `NAME=value`, `NAME+=value` and `NAME=(…)`. Nothing is consumed where there is none.
    pub(super) fn assignment(&mut self) -> Option<Option<Set<'a>>> {
        let rest = self.line.get(self.at..)?;
        let length = rest.bytes().take_while(|b| b.is_ascii_alphanumeric() || *b == b'_').count();
        if length == 0 || rest.as_bytes()[0].is_ascii_digit() {
            return Some(None);
        }
        let adds = match rest.as_bytes().get(length) {
            Some(b'=') => false,
            Some(b'+') if rest.as_bytes().get(length + 1) == Some(&b'=') => true,
            // `a[0]=b`
            Some(b'[') => return None,
            _ => return Some(None),
        };
        let name = &rest[..length];
        // The shell's own, and no variable to the grammar.
        (name != "_").then_some(())?;
        self.at += length + 1 + usize::from(adds);
        if self.peek() == Some(b'(') {
            self.array()?;
            self.set(name, Some(Word::default()), adds);
            return Some(Some(Set { name, before_command: false }));
        }
        if self.is_word_end(0) {
            let ends = matches!(self.peek(), None | Some(b'\n' | b';' | b' '));
            ends.then(|| self.set(name, None, adds))?;
            return Some(Some(Set { name, before_command: !adds && self.peek() == Some(b' ') }));
        }
        let value = self.word()?;
        self.set(name, Some(value), adds);
        Some(Some(Set { name, before_command: !adds }))
    }

    /// The words of a list: nobody can know what is made of them.
    fn array(&mut self) -> Option<()> {
        self.at += 1;
        self.open += 1;
        loop {
            self.lines()?;
            if self.eat(")") {
                break;
            }
            // `[name]=value`
            (self.peek() != Some(b'[')).then_some(())?;
            self.word()?;
        }
        self.open -= 1;
        self.is_word_end(0).then_some(())
    }

    /// `export`, `local`, `unset` and their like: they set what later commands see.
    pub(super) fn declaration(&mut self) -> Option<()> {
        let start = self.at;
        let keyword = self.keyword();
        let word = Word {
            text: Some(keyword.to_owned()),
            source: keyword.to_owned(),
            token: true,
            ..Word::default()
        };
        self.at += keyword.len();
        let folders = self.folders.clone();
        let place = self.parsed.commands.len();
        self.parsed.commands.push(Raw { words: vec![word], folders, ..Raw::default() });
        let mut end = self.at;
        loop {
            let before = self.at;
            self.blanks();
            if self.ends_simple() {
                break;
            }
            (self.at > before).then_some(())?;
            if self.eat("-") {
                // Others make something else of the name than a variable.
                let letters = self.name()?;
                letters
                    .bytes()
                    .all(|b| matches!(b, b'r' | b'x' | b'a' | b'A' | b'g'))
                    .then_some(())?;
            } else if keyword == "unset" {
                let name = self.name()?;
                self.set_unknown(name);
            } else if self.assignment()?.is_none() {
                self.name()?;
            }
            self.is_word_end(0).then_some(())?;
            end = self.at;
        }
        self.parsed.commands.get_mut(place)?.text = self.line.get(start..end)?.trim().to_owned();
        Some(())
    }

    /// The inside of `((…))`, behind its opening and up to and with its end: numbers, names and signs.
    pub(super) fn arithmetic(&mut self, also: &[u8]) -> Option<()> {
        let from = self.at;
        let mut open = 0_usize;
        let mut names = Vec::new();
        loop {
            match self.peek()? {
                b')' if open > 0 => {
                    open -= 1;
                    self.at += 1;
                }
                b')' => {
                    let text = self.line.get(from..self.at)?;
                    if changes_something(text) {
                        names.into_iter().for_each(|name| self.set_unknown(name));
                    }
                    return self.eat("))").then_some(());
                }
                b'(' => {
                    open += 1;
                    self.at += 1;
                }
                b'$' => {
                    self.at += 1;
                    self.name()?;
                }
                byte if byte.is_ascii_alphabetic() || byte == b'_' => names.push(self.name()?),
                byte if byte.is_ascii_digit() || also.contains(&byte) => self.at += 1,
                b' ' | b'+' | b'-' | b'*' | b'/' | b'%' | b'<' | b'>' | b'=' | b'!' | b'&'
                | b'|' | b'^' | b'~' | b'?' | b':' | b',' => self.at += 1,
                _ => return None,
            }
        }
    }
}

/// Whether a computation sets a variable: `=` that does not compare, `++` and `--`.
fn changes_something(text: &str) -> bool {
    let bytes = text.as_bytes();
    let sets = |at: usize| {
        let before = at.checked_sub(1).and_then(|at| bytes.get(at));
        bytes[at] == b'='
            && bytes.get(at + 1) != Some(&b'=')
            && !matches!(before, Some(b'=' | b'!' | b'<' | b'>'))
    };
    text.contains("++")
        || text.contains("--")
        || (0..bytes.len()).any(sets)
        || text.contains("<<=")
        || text.contains(">>=")
}
