//! The reader for what people and models write most: words, quotes, expansions and substitutions of
//! the simple kinds, redirections, pipes and lists here; loops, conditions, `case`, groups, tests and
//! functions in `direct_forms.rs`; variables and what sets them in `direct_sets.rs`. It reads them as bash
//! does, in one pass, and gives up on a line as soon as it is not certain of it: the grammar (`walk.rs`)
//! then reads the whole line instead. Where both can read a line they must find the same in it; tests and
//! a fuzz target hold them to that.

use super::parse::{Input, Parsed, Raw, Redirect};
use super::word::Word;
use super::{Folder, When, floor};

/// How deep substitutions, subshells and loops may stand in each other. Deeper is left to the grammar.
const DEPTH_CAP: usize = 16;

/// Changes of the folder that are followed here; more are left to the grammar, which says so.
const FOLDERS_CAP: usize = 16;

/// First words that make something else of a line than a simple command, or that the grammar has names
/// of its own for.
pub(super) fn is_reserved(word: &str) -> bool {
    matches!(
        word,
        "!" | "["
            | "[["
            | "]"
            | "]]"
            | "{"
            | "}"
            | "case"
            | "coproc"
            | "declare"
            | "do"
            | "done"
            | "elif"
            | "else"
            | "esac"
            | "export"
            | "fi"
            | "for"
            | "function"
            | "if"
            | "in"
            | "local"
            | "readonly"
            | "select"
            | "then"
            | "time"
            | "typeset"
            | "unset"
            | "unsetenv"
            | "until"
            | "while"
    )
}

/// The commands of a line, unless there is anything in it that this reader does not know.
pub(super) fn parse(line: &str, folders: &[Folder]) -> Option<Parsed> {
    let mut reader = Direct {
        line,
        at: 0,
        parsed: Parsed::default(),
        folders: folders.to_vec(),
        variables: Vec::new(),
        piped: false,
        depth: 0,
        open: 0,
        seen: 0,
        unsure: 0,
        functions: Vec::new(),
        calls: floor::Calls::default(),
        beside: 0,
    };
    reader.statements(&[])?;
    reader.peek().is_none().then_some(())?;
    // Nothing but comments is nothing to be certain of.
    (reader.seen > 0).then_some(())?;
    let mut parsed = reader.parsed;
    parsed.floor = reader.calls.bomb();
    if parsed.commands.is_empty() {
        let only_sets = Raw { text: line.trim().to_owned(), ..Raw::default() };
        parsed.commands.push(only_sets);
    }
    Some(parsed)
}

/// Where a statement stands among those that it is joined with.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    /// Alone, or in front of a list or a pipe.
    First,
    /// Behind `&&`, `||` or `|`.
    Joined,
}

pub(super) struct Direct<'a> {
    pub(super) line: &'a str,
    pub(super) at: usize,
    pub(super) parsed: Parsed,
    pub(super) folders: Vec<Folder>,
    /// What the line itself has set: the value, or nothing where it is not known.
    pub(super) variables: Vec<(&'a str, Option<String>)>,
    /// It stands behind a `|`.
    pub(super) piped: bool,
    depth: usize,
    /// Brackets around, that a `)` may close.
    pub(super) open: usize,
    /// Statements read so far.
    pub(super) seen: usize,
    /// Statements around that may not run, or not in this shell: what they set is not known behind them.
    pub(super) unsure: usize,
    /// The function that is being read, if there is one.
    pub(super) functions: Vec<String>,
    pub(super) calls: floor::Calls,
    /// Statements around that run beside others, or again and again.
    pub(super) beside: usize,
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

    pub(super) fn blanks(&mut self) {
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
    pub(super) fn lines(&mut self) -> Option<()> {
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

    /// The word of small letters, or the sign of the shell's own, that stands here alone.
    pub(super) fn keyword(&self) -> &'a str {
        let rest = self.line.get(self.at..).unwrap_or_default();
        let length = match self.peek() {
            Some(b'{' | b'}' | b'!' | b'[') => 1 + usize::from(rest.starts_with("[[")),
            _ => rest.bytes().take_while(u8::is_ascii_lowercase).count(),
        };
        if self.is_word_end(length) { &rest[..length] } else { "" }
    }

    pub(super) fn expect(&mut self, keyword: &str) -> Option<()> {
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
        let (known, before) = (self.folders.len(), self.seen);
        self.open += 1;
        self.unsure += 1;
        self.deeper(|reader| reader.statements(&[]))?;
        self.unsure -= 1;
        self.open -= 1;
        self.eat(")").then_some(())?;
        self.folders.truncate(known);
        (self.seen > before).then_some(())
    }

    /// Statements one after the other, up to one of these words, a `)` or the end: none of them knows
    /// how the one before ended.
    pub(super) fn statements(&mut self, until: &[&str]) -> Option<()> {
        loop {
            self.lines()?;
            if self.peek().is_none() || self.peek() == Some(b')') && self.open > 0 {
                return until.is_empty().then_some(());
            }
            if !until.is_empty() && until.contains(&self.keyword()) {
                return Some(());
            }
            // An item of a `case` may be empty, and ends with two signs.
            let in_case = until.first() == Some(&"esac");
            if in_case && self.peek() == Some(b';') {
                return matches!(self.peek_at(1), Some(b';' | b'&')).then_some(());
            }
            let (known, set) = (self.folders.len(), self.variables.len());
            let defines = self.function()?;
            if !defines {
                self.list()?;
            }
            self.blanks();
            let mut background = false;
            match self.peek() {
                None | Some(b'#' | b'\n') => {}
                Some(b')') if self.open > 0 => {}
                Some(b';') if !matches!(self.peek_at(1), Some(b';' | b'&')) => self.at += 1,
                Some(b';') if in_case => {}
                Some(b'&') if !defines && !matches!(self.peek_at(1), Some(b'&' | b'>')) => {
                    self.at += 1;
                    background = true;
                    self.forget_since(set);
                    // What follows runs beside it: whether it calls itself is left to the grammar.
                    self.functions.is_empty().then_some(())?;
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
        self.pipeline(Standing::First)?;
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
            self.unsure += 1;
            self.pipeline(Standing::Joined)?;
            self.unsure -= 1;
            for folder in self.folders.get_mut(middle..).unwrap_or_default() {
                folder.conditional = true;
            }
            if or {
                self.perhaps(known);
            }
        }
    }

    fn pipeline(&mut self, standing: Standing) -> Option<()> {
        let (known, piped) = (self.folders.len(), self.piped);
        let (set, calls) = (self.variables.len(), self.calls.count());
        self.statement(standing)?;
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
            self.forget_since(set);
            self.unsure += 1;
            self.statement(Standing::Joined)?;
            self.unsure -= 1;
            // A function that is defined in a pipe does not call itself there.
            if !self.functions.is_empty() {
                self.calls.beside_since(calls);
            }
            self.perhaps(known);
        }
    }

    /// What was gone into since then was perhaps not.
    pub(super) fn perhaps(&mut self, known: usize) {
        let gone = self.folders.get_mut(known..).unwrap_or_default();
        gone.iter_mut().for_each(|folder| folder.when = When::Perhaps);
    }

    /// The name of a variable.
    pub(super) fn name(&mut self) -> Option<&'a str> {
        let rest = self.line.get(self.at..)?;
        let length = rest.bytes().take_while(|b| b.is_ascii_alphanumeric() || *b == b'_').count();
        let name = &rest[..length];
        self.at += length;
        (!name.is_empty() && !name.as_bytes()[0].is_ascii_digit()).then_some(name)
    }

    pub(super) fn command(&mut self) -> Option<()> {
        let start = self.at;
        // What is found inside its words stands behind it.
        let place = self.parsed.commands.len();
        let (folders, piped) = (self.folders.clone(), self.piped);
        let mut raw = Raw { folders, piped, ..Raw::default() };
        self.parsed.commands.push(Raw::default());
        let set = self.variables.len();
        let mut certain = true;
        while let Some(set) = self.assignment()? {
            raw.assigned.push(set.name.to_owned());
            certain &= set.before_command;
            self.blanks();
        }
        if !raw.assigned.is_empty() && self.ends_simple() {
            // It only sets variables, for the rest of the line.
            self.parsed.commands.remove(place);
            return Some(());
        }
        certain.then_some(())?;
        // For this command alone: what later ones see depends on the shell and the command.
        self.forget_since(set);
        let first = self.word()?;
        let simple = first.text.is_some()
            && !first.pattern
            && !first.home
            && !is_reserved(&first.source)
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
                Some(b'<') if self.peek_at(1) == Some(b'(') => {
                    let word = self.process()?;
                    raw.words.push(word);
                }
                Some(b'<') if self.line[self.at..].starts_with("<<<") => {
                    (raw.input == Input::Elsewhere).then_some(())?;
                    raw.input = self.here_string()?;
                }
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
        self.calls.note(&raw, self.beside > 0, &self.functions);
        self.forget(&raw);
        *self.parsed.commands.get_mut(place)? = raw;
        Some(())
    }

    /// `<(command)`: a word that nobody can know.
    fn process(&mut self) -> Option<Word> {
        let start = self.at;
        self.at += 2;
        self.enclosed()?;
        self.is_word_end(0).then_some(())?;
        let source = self.line.get(start..self.at)?.to_owned();
        Some(Word { source, ..Word::default() })
    }

    /// `<<< word`
    fn here_string(&mut self) -> Option<Input> {
        self.at += 3;
        self.blanks();
        let before = self.seen;
        let word = self.word()?;
        (self.seen == before && !word.pattern).then_some(())?;
        Some(word.text.map_or(Input::Computed, Input::Text))
    }

    /// Whether digits here are a descriptor in front of `<` or `>`.
    pub(super) fn is_descriptor(&self) -> bool {
        let rest = &self.line.as_bytes()[self.at..];
        let digits = rest.iter().take_while(|b| b.is_ascii_digit()).count();
        matches!(rest.get(digits), Some(b'<' | b'>'))
    }

    /// A redirection; nothing inside where it only names another descriptor.
    pub(super) fn redirect(&mut self) -> Option<Option<Redirect>> {
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
        let before = self.seen;
        let to: Word = self.word()?;
        (self.seen == before).then_some(())?;
        Some(Some(Redirect { to, writes }))
    }
}

#[cfg(test)]
#[path = "direct_tests.rs"]
mod tests;
