//! The reader for what people and models write most: words, quotes, expansions and substitutions of
//! the simple kinds, redirections, pipes, lists, subshells, `for`, `while`, `until` and `if`. It reads
//! them as bash does, in one pass, and gives up on a line as soon as it is not certain of it: the grammar
//! (`walk.rs`) then reads the whole line instead. Where both can read a line they must find the
//! same in it; tests and a fuzz target hold them to that.

use super::parse::{Parsed, Raw, Redirect, is_powerful};
use super::word::Word;
use super::{Folder, When};

/// How deep substitutions, subshells and loops may stand in each other. Deeper is left to the grammar.
const DEPTH_CAP: usize = 16;

/// Changes of the folder that are followed here; more are left to the grammar, which says so.
const FOLDERS_CAP: usize = 16;

/// First words that make something else of a line than a simple command, or that the grammar has names
/// of its own for.
const NOT_SIMPLE: &[&str] = &[
    "!", "[", "[[", "]", "]]", "{", "}", "case", "coproc", "declare", "do", "done", "elif", "else",
    "esac", "export", "fi", "function", "in", "local", "readonly", "select", "then", "time",
    "typeset", "unset", "unsetenv",
];

/// The commands of a line, unless there is anything in it that this reader does not know.
pub(super) fn parse(line: &str, folders: &[Folder]) -> Option<Parsed> {
    let mut reader = Direct {
        line,
        at: 0,
        parsed: Parsed::default(),
        folders: folders.to_vec(),
        changed: Vec::new(),
        piped: false,
        depth: 0,
        open: 0,
    };
    reader.statements(&[])?;
    reader.peek().is_none().then_some(())?;
    (!reader.parsed.commands.is_empty()).then_some(reader.parsed)
}

pub(super) struct Direct<'a> {
    pub(super) line: &'a str,
    pub(super) at: usize,
    parsed: Parsed,
    folders: Vec<Folder>,
    /// Variables that no longer are what they were when the line began.
    pub(super) changed: Vec<&'a str>,
    /// It stands behind a `|`.
    piped: bool,
    depth: usize,
    /// Brackets around, that a `)` may close.
    pub(super) open: usize,
}

impl<'a> Direct<'a> {
    pub(super) fn peek(&self) -> Option<u8> {
        self.line.as_bytes().get(self.at).copied()
    }

    pub(super) fn peek_at(&self, ahead: usize) -> Option<u8> {
        self.line.as_bytes().get(self.at + ahead).copied()
    }

    pub(super) fn eat(&mut self, text: &str) -> bool {
        let fits = self.line.as_bytes()[self.at..].starts_with(text.as_bytes());
        self.at += if fits { text.len() } else { 0 };
        fits
    }

    fn blanks(&mut self) {
        loop {
            match self.peek() {
                Some(b' ' | b'\t') => self.at += 1,
                Some(b'\\') if self.peek_at(1) == Some(b'\n') => self.at += 2,
                _ => return,
            }
        }
    }

    /// To the end of the line. One that ends in a backslash is nothing to rely on.
    fn comment(&mut self) -> Option<()> {
        let rest = self.line.get(self.at..)?;
        let text = rest.split('\n').next().unwrap_or_default();
        self.at += text.len();
        (!text.ends_with('\\')).then_some(())
    }

    /// Blanks, empty lines and comments.
    fn lines(&mut self) -> Option<()> {
        loop {
            self.blanks();
            match self.peek() {
                Some(b'\n') => self.at += 1,
                Some(b'#') => self.comment()?,
                _ => return Some(()),
            }
        }
    }

    /// Whether a word would end here.
    pub(super) fn is_word_end(&self, ahead: usize) -> bool {
        matches!(
            self.peek_at(ahead),
            None | Some(b' ' | b'\t' | b'\n' | b';' | b'|' | b'&' | b'<' | b'>' | b'(' | b')')
        )
    }

    /// The word of small letters that stands here alone.
    fn keyword(&self) -> &'a str {
        let rest = self.line.get(self.at..).unwrap_or_default();
        let length = rest.bytes().take_while(u8::is_ascii_lowercase).count();
        if self.is_word_end(length) { &rest[..length] } else { "" }
    }

    fn expect(&mut self, keyword: &str) -> Option<()> {
        (self.keyword() == keyword).then(|| self.at += keyword.len())
    }

    /// Runs something one level deeper.
    pub(super) fn deeper<T>(&mut self, read: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        (self.depth < DEPTH_CAP).then_some(())?;
        self.depth += 1;
        let found = read(self);
        self.depth -= 1;
        found
    }

    /// `( … )` and `$( … )`, behind their opening. Where they go, the rest of the line does not follow.
    pub(super) fn enclosed(&mut self) -> Option<()> {
        let (known, before) = (self.folders.len(), self.parsed.commands.len());
        self.open += 1;
        self.deeper(|reader| reader.statements(&[]))?;
        self.open -= 1;
        self.eat(")").then_some(())?;
        self.folders.truncate(known);
        (self.parsed.commands.len() > before).then_some(())
    }

    /// Statements one after the other, up to one of these words, a `)` or the end: none of them knows
    /// how the one before ended.
    fn statements(&mut self, until: &[&str]) -> Option<()> {
        loop {
            self.lines()?;
            if self.peek().is_none() || self.peek() == Some(b')') && self.open > 0 {
                return until.is_empty().then_some(());
            }
            if !until.is_empty() && until.contains(&self.keyword()) {
                return Some(());
            }
            let known = self.folders.len();
            self.list()?;
            self.blanks();
            let mut background = false;
            match self.peek() {
                None | Some(b'#' | b'\n') => {}
                Some(b')') if self.open > 0 => {}
                Some(b';') if self.peek_at(1) != Some(b';') => self.at += 1,
                Some(b'&') if !matches!(self.peek_at(1), Some(b'&' | b'>')) => {
                    self.at += 1;
                    background = true;
                    // `a &; b` is no shell's.
                    self.blanks();
                    (self.peek() != Some(b';')).then_some(())?;
                }
                _ => return None,
            }
            for folder in self.folders.get_mut(known..).unwrap_or_default() {
                folder.when = match folder.when {
                    _ if folder.conditional || background => When::Perhaps,
                    When::Surely => When::IfThere,
                    when => when,
                };
            }
        }
    }

    /// `a && b || c`: what stands on the right runs only if the left ended as it should.
    fn list(&mut self) -> Option<()> {
        let known = self.folders.len();
        self.pipeline()?;
        loop {
            self.blanks();
            let or = match (self.peek(), self.peek_at(1)) {
                (Some(b'&'), Some(b'&')) => false,
                (Some(b'|'), Some(b'|')) => true,
                _ => return Some(()),
            };
            self.at += 2;
            self.lines()?;
            if or {
                self.perhaps(known);
            }
            let middle = self.folders.len();
            self.pipeline()?;
            for folder in self.folders.get_mut(middle..).unwrap_or_default() {
                folder.conditional = true;
            }
            if or {
                self.perhaps(known);
            }
        }
    }

    fn pipeline(&mut self) -> Option<()> {
        let (known, piped) = (self.folders.len(), self.piped);
        self.statement()?;
        loop {
            self.blanks();
            if self.peek() != Some(b'|') || self.peek_at(1) == Some(b'|') {
                self.piped = piped;
                return Some(());
            }
            (self.peek_at(1) != Some(b'&')).then_some(())?;
            self.at += 1;
            self.perhaps(known);
            self.lines()?;
            self.piped = true;
            self.statement()?;
            self.perhaps(known);
        }
    }

    /// What was gone into since then was perhaps not.
    fn perhaps(&mut self, known: usize) {
        let gone = self.folders.get_mut(known..).unwrap_or_default();
        gone.iter_mut().for_each(|folder| folder.when = When::Perhaps);
    }

    fn statement(&mut self) -> Option<()> {
        if self.peek() == Some(b'(') {
            (self.peek_at(1) != Some(b'(')).then_some(())?;
            self.at += 1;
            self.enclosed()?;
            return self.ends_statement();
        }
        let known = self.folders.len();
        match self.keyword() {
            "for" => self.deeper(Self::for_loop)?,
            "while" | "until" => self.deeper(Self::while_loop)?,
            "if" => self.deeper(Self::condition)?,
            _ => return self.command(),
        }
        // Where it goes in a loop or under a condition is left to the grammar.
        (self.folders.len() == known).then_some(())?;
        self.ends_statement()
    }

    /// Behind a bracket or a closing word: a redirection of the whole is left to the grammar.
    fn ends_statement(&mut self) -> Option<()> {
        self.blanks();
        match self.peek() {
            None | Some(b';' | b'\n' | b'|' | b'#') => Some(()),
            Some(b'&') => (self.peek_at(1) != Some(b'>')).then_some(()),
            Some(b')') => (self.open > 0).then_some(()),
            _ => None,
        }
    }

    fn for_loop(&mut self) -> Option<()> {
        self.expect("for")?;
        self.blanks();
        let name = self.name()?;
        self.changed.push(name);
        self.blanks();
        self.expect("in")?;
        self.blanks();
        while !matches!(self.peek(), None | Some(b';' | b'\n' | b'#')) {
            self.word()?;
            self.blanks();
        }
        matches!(self.peek(), Some(b';' | b'\n')).then(|| self.at += 1)?;
        self.lines()?;
        self.body()
    }

    fn while_loop(&mut self) -> Option<()> {
        self.at += self.keyword().len();
        self.some_statements(&["do"])?;
        self.body()
    }

    fn body(&mut self) -> Option<()> {
        self.expect("do")?;
        self.some_statements(&["done"])?;
        self.expect("done")
    }

    fn condition(&mut self) -> Option<()> {
        self.expect("if")?;
        loop {
            self.some_statements(&["then"])?;
            self.expect("then")?;
            self.some_statements(&["elif", "else", "fi"])?;
            if self.expect("elif").is_none() {
                break;
            }
        }
        if self.expect("else").is_some() {
            self.some_statements(&["fi"])?;
        }
        self.expect("fi")
    }

    fn some_statements(&mut self, until: &[&str]) -> Option<()> {
        let before = self.parsed.commands.len();
        // A word must stand between: `if;` and `do;` are no shell's.
        matches!(self.peek(), Some(b' ' | b'\t' | b'\n')).then_some(())?;
        self.statements(until)?;
        (self.parsed.commands.len() > before).then_some(())
    }

    /// The name of a variable.
    pub(super) fn name(&mut self) -> Option<&'a str> {
        let rest = self.line.get(self.at..)?;
        let length = rest.bytes().take_while(|b| b.is_ascii_alphanumeric() || *b == b'_').count();
        let name = &rest[..length];
        self.at += length;
        (!name.is_empty() && !name.as_bytes()[0].is_ascii_digit()).then_some(name)
    }

    fn command(&mut self) -> Option<()> {
        let start = self.at;
        // What is found inside its words stands behind it.
        let place = self.parsed.commands.len();
        let (folders, piped) = (self.folders.clone(), self.piped);
        let mut raw = Raw { folders, piped, ..Raw::default() };
        self.parsed.commands.push(Raw::default());
        while let Some(name) = self.assignment()? {
            self.parsed.tainted |= is_powerful(name);
            self.changed.push(name);
            raw.assigned.push(name.to_owned());
            self.blanks();
        }
        let first = self.word()?;
        let simple = first.text.is_some()
            && !first.pattern
            && !first.home
            && !NOT_SIMPLE.contains(&first.source.as_str())
            && first.source.is_ascii()
            && !first.source.contains('=')
            && first.source.starts_with(|c: char| {
                c.is_ascii_alphabetic() || matches!(c, '.' | '/' | '_' | ':' | '\\' | '\'' | '"')
            });
        simple.then_some(())?;
        raw.words.push(first);
        let mut end = self.at;
        loop {
            self.blanks();
            match self.peek() {
                None | Some(b'\n' | b';' | b'|' | b'#' | b')') => break,
                Some(b'&') if self.peek_at(1) != Some(b'>') => break,
                Some(b'(') => return None,
                Some(b'<' | b'>' | b'&') => raw.redirects.extend(self.redirect()?),
                Some(b'0'..=b'9') if self.is_descriptor() => {
                    raw.redirects.extend(self.redirect()?);
                }
                _ => {
                    let word = self.word()?;
                    raw.words.push(word);
                }
            }
            end = self.at;
        }
        raw.text = self.line.get(start..end)?.trim().to_owned();
        match super::moves(&raw) {
            Some(Some(path)) if self.folders.len() < FOLDERS_CAP => {
                self.folders.push(Folder::new(path, When::Surely));
            }
            Some(_) => return None,
            None => {}
        }
        *self.parsed.commands.get_mut(place)? = raw;
        Some(())
    }

    /// `NAME=value` before a command, where the value is a plain one: the name. Nothing is consumed
    /// where there is none.
    fn assignment(&mut self) -> Option<Option<&'a str>> {
        let rest = self.line.get(self.at..)?;
        let length = rest.bytes().take_while(|b| b.is_ascii_alphanumeric() || *b == b'_').count();
        if length == 0 || rest.as_bytes()[0].is_ascii_digit() {
            return Some(None);
        }
        match rest.as_bytes().get(length) {
            Some(b'=') => {}
            // `a+=b`, `a[0]=b`
            Some(b'+') if rest.as_bytes().get(length + 1) == Some(&b'=') => return None,
            Some(b'[') => return None,
            _ => return Some(None),
        }
        let plain = |b: &u8| {
            b.is_ascii_alphanumeric()
                || matches!(b, b'_' | b'.' | b'/' | b':' | b'@' | b'%' | b'+' | b',' | b'-')
        };
        let value = rest.as_bytes()[length + 1..].iter().take_while(|b| plain(b)).count();
        (value > 0).then_some(())?;
        self.at += length + 1 + value;
        matches!(self.peek(), Some(b' ' | b'\t')).then_some(())?;
        rest.get(..length).map(Some)
    }

    /// Whether digits here are a descriptor in front of `<` or `>`.
    fn is_descriptor(&self) -> bool {
        let rest = &self.line.as_bytes()[self.at..];
        let digits = rest.iter().take_while(|b| b.is_ascii_digit()).count();
        matches!(rest.get(digits), Some(b'<' | b'>'))
    }

    /// A redirection; nothing inside where it only names another descriptor.
    fn redirect(&mut self) -> Option<Option<Redirect>> {
        let both = self.eat("&");
        while !both && matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        let writes = self.peek() == Some(b'>');
        self.at += 1;
        match (writes, self.peek()) {
            (true, Some(b'>')) => self.at += 1,
            (true, Some(b'|')) if !both => self.at += 1,
            (true, Some(b'&')) if !both => {
                self.at += 1;
                let digits = self.line.as_bytes()[self.at..].iter();
                let digits = digits.take_while(|b| b.is_ascii_digit()).count();
                self.at += digits;
                return (digits > 0 && digits < 4 && self.is_word_end(0)).then_some(None);
            }
            _ => {}
        }
        // `<<`, `<&`, `<>`, `>(` and whatever else there is.
        (!matches!(self.peek(), Some(b'<' | b'>' | b'&' | b'|' | b'('))).then_some(())?;
        self.blanks();
        let before = self.parsed.commands.len();
        let to: Word = self.word()?;
        (self.parsed.commands.len() == before).then_some(())?;
        Some(Some(Redirect { to, writes }))
    }
}

#[cfg(test)]
#[path = "direct_tests.rs"]
mod tests;
