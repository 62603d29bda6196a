//! What words of a line may stand for, as far as the line itself holds it: not what they are.

use std::collections::HashMap;

use super::finds::{self, Extent};
use super::guess::{command_of, is_assignment};
use super::loose::{self, Loose, Statement, behind};
use super::parse::Raw;
use super::paths;
use super::word::Word;

/// Values of one word, of all that may be read or handed over, and how deep they may be made of others.
const VALUES_CAP: usize = 16;
const POOL_CAP: usize = 64;

/// Pieces of a word that is looked at: nobody writes more, and each makes all that stand before it anew.
const PARTS_CAP: usize = 64;
const DEPTH_CAP: usize = 4;

/// The user's name, wherever it is put in.
const USER: &str = "$USER";

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Candidate {
    pub(super) text: String,
    /// It was found below this, or all of it was.
    pub(super) extent: Option<Extent>,
}

impl Candidate {
    pub(super) fn plain(text: &str) -> Self {
        Self { text: text.to_owned(), extent: None }
    }
}

/// A piece of a word.
enum Part {
    Text(String),
    /// A variable, and what is made of it.
    Variable(String, String),
    Command(String),
}

#[derive(Default)]
pub(super) struct Values {
    /// What each may be set to, as written.
    variables: HashMap<String, Vec<String>>,
    /// What `$1` and `$@` may be.
    positional: Vec<Candidate>,
    /// What may be read from a pipe or a text.
    pool: Vec<Candidate>,
    /// Variables that are read.
    read: Vec<String>,
}

/// Whether the shell computes a part of it.
pub(super) fn is_computed(word: &str) -> bool {
    let named_home = word
        .strip_prefix('~')
        .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_'));
    named_home
        || word.starts_with("<(")
        || word.contains(['$', '`']) && !(word.starts_with('\'') && word.ends_with('\''))
}

impl Values {
    pub(super) fn gather(&mut self, read: &Loose<'_>) {
        for (name, words) in &read.lists {
            words.iter().for_each(|word| self.set(name, word));
        }
        let mut before: Option<&Statement<'_>> = None;
        for statement in &read.statements {
            let words = &statement.words;
            let is_declared = |word: &&&str| {
                matches!(**word, "export" | "local" | "declare" | "readonly" | "typeset")
                    || is_assignment(word)
                    || matches!(**word, "do" | "then" | "else" | "{" | "if" | "while")
            };
            for word in words.iter().take_while(is_declared) {
                if let Some((name, value)) = word.split_once('=') {
                    self.set(name.trim_end_matches('+'), value);
                }
            }
            let command = command_of(words);
            match command {
                ["for" | "select", name, "in", list @ ..] => {
                    list.iter().for_each(|word| self.set(name, word));
                }
                ["for", name] => self.set(name, "\"$@\""),
                ["set", "--", list @ ..] => {
                    let list: Vec<Candidate> = list.iter().flat_map(|word| self.of(word)).collect();
                    self.positional.extend(list);
                }
                ["read" | "mapfile" | "readarray", names @ ..] => {
                    let names = names.iter().take(POOL_CAP).map(|name| (*name).to_owned());
                    self.read.extend(names);
                    self.read.dedup();
                    self.read.truncate(POOL_CAP);
                }
                [name, list @ ..] if read.functions.contains(name) => {
                    let list: Vec<Candidate> = list.iter().flat_map(|word| self.of(word)).collect();
                    self.positional.extend(list);
                }
                _ => {}
            }
            // `function f { …; }`
            if let ["function", name, ..] = words.as_slice() {
                let calls = read.statements.iter().map(|one| command_of(&one.words));
                let calls = calls.filter(|call| call.first() == Some(name));
                let list: Vec<Candidate> = calls
                    .flat_map(|call| call[1..].iter())
                    .flat_map(|word| self.of(word))
                    .collect();
                self.positional.extend(list);
            }
            let inputs = self.words_of_inputs(statement);
            self.pool.extend(inputs);
            if let Some(before) = before.filter(|one| one.end == Some(loose::End::Pipe)) {
                let given = self.given_by(before);
                self.pool.extend(given);
            }
            self.pool.truncate(POOL_CAP);
            self.positional.truncate(POOL_CAP);
            before = Some(statement);
        }
    }

    fn set(&mut self, name: &str, value: &str) {
        let values = self.variables.entry(name.to_owned()).or_default();
        if values.len() < VALUES_CAP && !values.iter().any(|known| known == value) {
            values.push(value.to_owned());
        }
    }

    pub(super) fn with_positional(&mut self, more: Vec<Candidate>) -> Vec<Candidate> {
        let mut all = more;
        all.extend(self.positional.iter().cloned());
        std::mem::replace(&mut self.positional, all)
    }

    pub(super) fn restore_positional(&mut self, before: Vec<Candidate>) {
        self.positional = before;
    }

    /// What a word may stand for; nothing where nobody knows.
    pub(super) fn of(&self, source: &str) -> Vec<Candidate> {
        self.deep(source, DEPTH_CAP)
    }

    fn deep(&self, source: &str, depth: usize) -> Vec<Candidate> {
        if depth == 0 {
            return Vec::new();
        }
        let parts = parts(source);
        if parts.len() > PARTS_CAP {
            return Vec::new();
        }
        let mut all = vec![Candidate::plain("")];
        for part in parts {
            let choices = match part {
                Part::Text(text) => vec![Candidate::plain(&text)],
                Part::Variable(name, made) => self.variable(&name, &made, depth - 1),
                Part::Command(inner) => self.printed(&inner, depth - 1),
            };
            let joined = all.iter().flat_map(|begin| {
                choices.iter().map(move |end| Candidate {
                    text: format!("{}{}", begin.text, end.text),
                    extent: begin.extent.max(end.extent),
                })
            });
            all = joined.take(VALUES_CAP).collect();
        }
        all.into_iter().filter_map(with_home).collect()
    }

    fn variable(&self, name: &str, made: &str, depth: usize) -> Vec<Candidate> {
        let fixed = match name {
            "HOME" => Some("~"),
            "PWD" | "OLDPWD" => Some("."),
            "USER" | "LOGNAME" => Some(USER),
            "XDG_CONFIG_HOME" => Some("~/.config"),
            "XDG_DATA_HOME" => Some("~/.local/share"),
            "XDG_STATE_HOME" => Some("~/.local/state"),
            _ => None,
        };
        let numbered = !name.is_empty() && name.bytes().all(|b| b.is_ascii_digit())
            || matches!(name, "@" | "*");
        let mut base: Vec<Candidate> = match self.variables.get(name) {
            Some(values) => values.iter().flat_map(|value| self.deep(value, depth)).collect(),
            None if numbered => self.positional.clone(),
            None => fixed.map(Candidate::plain).into_iter().collect(),
        };
        if self.read.iter().any(|own| own == name) || name == "REPLY" {
            base.extend(self.pool.iter().cloned());
        }
        let default = [":-", ":=", "-", "="].iter().find_map(|sign| made.strip_prefix(sign));
        if let Some(default) = default {
            base.extend(self.deep(default, depth));
        }
        if let Some(other) = made.strip_prefix(":+").or_else(|| made.strip_prefix('+')) {
            return self.deep(other, depth);
        }
        if matches!(made, "%/*" | "%/*/" | "%%/*") {
            base.iter_mut().for_each(|value| value.text.push_str("/.."));
        }
        base.dedup();
        base.truncate(VALUES_CAP);
        base
    }

    /// What a command prints that stands in a word.
    fn printed(&self, inner: &str, depth: usize) -> Vec<Candidate> {
        if depth == 0 {
            return Vec::new();
        }
        let read = loose::read(inner);
        let statements: Vec<&Statement<'_>> =
            read.statements.iter().filter(|one| !one.words.is_empty()).collect();
        match statements.as_slice() {
            // `cd x && pwd`
            [first, last] if first.words.first() == Some(&"cd") && last.words[0] == "pwd" => {
                first.words.get(1).map(|to| self.deep(to, depth)).unwrap_or_default()
            }
            [one] => match self.printed_by(one) {
                Some(whole) => vec![whole],
                None => self.given_by_deep(one, depth),
            },
            _ => Vec::new(),
        }
    }

    /// The words of `echo`, which may become one.
    fn printed_by(&self, one: &Statement<'_>) -> Option<Candidate> {
        let command = command_of(&one.words);
        let says = matches!(command.first(), Some(&("echo" | "printf")));
        let texts = self.texts_of(one);
        let text = texts.first().filter(|_| says && texts.len() == 1)?;
        Some(Candidate::plain(text.trim()))
    }

    /// What a command hands on to the next, word by word.
    pub(super) fn given_by(&self, statement: &Statement<'_>) -> Vec<Candidate> {
        self.given_by_deep(statement, DEPTH_CAP)
    }

    fn given_by_deep(&self, statement: &Statement<'_>, depth: usize) -> Vec<Candidate> {
        let command = command_of(&statement.words);
        let command = match command {
            ["sudo" | "command", rest @ ..] => rest,
            other => other,
        };
        let Some((name, rest)) = command.split_first() else { return Vec::new() };
        let of = |words: &[&str]| -> Vec<Candidate> {
            let plain = words.iter().filter(|word| !word.starts_with('-'));
            plain.flat_map(|word| self.deep(word, depth)).take(POOL_CAP).collect()
        };
        let above = |values: Vec<Candidate>| {
            let up = values
                .into_iter()
                .map(|value| Candidate { text: format!("{}/..", value.text), ..value });
            up.collect()
        };
        match *name {
            "echo" | "printf" | "cat" => {
                let texts = self.texts_of(statement);
                let words = texts.iter().flat_map(|text| text.split_whitespace());
                words.map(Candidate::plain).take(VALUES_CAP).collect()
            }
            "pwd" => vec![Candidate::plain(".")],
            "git" if rest == ["rev-parse", "--show-toplevel"] => vec![Candidate::plain(".")],
            "whoami" => vec![Candidate::plain(USER)],
            "id" if rest == ["-un"] => vec![Candidate::plain(USER)],
            "dirname" => above(of(rest)),
            "realpath" | "readlink" => of(rest),
            "ls" => {
                let named = of(rest);
                if named.is_empty() { vec![Candidate::plain("*")] } else { named }
            }
            "find" | "fd" | "fdfind" => {
                let words = command.iter().map(|word| {
                    let value = self.deep(word, depth).into_iter().next();
                    let text = value.map(|value| value.text);
                    Word { text, source: (*word).to_owned(), home: true, ..Word::default() }
                });
                self.found_by(&Raw { words: words.collect(), ..Raw::default() })
            }
            _ => Vec::new(),
        }
    }

    /// Where `find` and `fd` look, and how much of it they find.
    pub(super) fn found_by(&self, raw: &Raw) -> Vec<Candidate> {
        let texts: Vec<&str> = raw.words.iter().skip(1).map(Word::text).collect();
        let (extent, mut starts) = match raw.program() {
            Some("find") => {
                let acts = texts.iter().position(|word| matches!(*word, "-exec" | "-execdir"));
                let behind = acts.map(|at| &texts[at..]);
                let recursive = behind.is_none_or(|words| {
                    words.iter().any(|word| paths::is_recursive(word) || word.contains("rm -"))
                });
                let starts = paths::starts(raw).into_iter().map(Word::text).collect();
                (finds::extent(&texts, recursive), starts)
            }
            _ => finds::fd(&texts),
        };
        if starts.is_empty() {
            starts.push(".");
        }
        let below = |start: &str| Candidate { text: start.to_owned(), extent: Some(extent) };
        let mut found: Vec<Candidate> = starts.iter().map(|start| below(start)).collect();
        let names = texts.windows(2).filter(|pair| matches!(pair[0], "-name" | "-iname"));
        for name in names.map(|pair| pair[1]).filter(|_| extent == Extent::Some) {
            let paths =
                starts.iter().map(|start| format!("{}/**/{name}", start.trim_end_matches('/')));
            found.extend(paths.map(|text| Candidate { text, extent: Some(extent) }).take(POOL_CAP));
            if found.len() > POOL_CAP {
                break;
            }
        }
        found.truncate(POOL_CAP);
        found
    }

    /// The texts that a command prints, whole.
    pub(super) fn texts_of(&self, statement: &Statement<'_>) -> Vec<String> {
        let command = command_of(&statement.words);
        let Some((name, rest)) = command.split_first() else { return Vec::new() };
        let words = |rest: &[&str]| -> Vec<String> {
            let value = |word: &&str| self.of(word).into_iter().map(|value| value.text);
            rest.iter().flat_map(value).collect()
        };
        match *name {
            "echo" => {
                let options =
                    rest.iter().take_while(|word| matches!(**word, "-n" | "-e" | "-ne" | "-en"));
                vec![words(&rest[options.count()..]).join(" ")]
            }
            "printf" => {
                let said = words(rest).join(" ").replace("\\n", "\n");
                vec![said.replace("%s", "").replace("%q", "")]
            }
            "cat" => {
                let own = self.inputs(statement).into_iter().map(|own| own.text);
                own.chain(statement.texts.iter().map(|text| (*text).to_owned())).collect()
            }
            _ => Vec::new(),
        }
    }

    /// As [`Self::texts_of`], for the last command of a line.
    pub(super) fn texts_in(&self, inner: &str) -> Vec<String> {
        let read = loose::read(inner);
        let last = read.statements.iter().rev().find(|one| !one.words.is_empty());
        last.map(|last| self.texts_of(last)).unwrap_or_default()
    }

    /// What a statement reads from the line itself.
    pub(super) fn inputs(&self, statement: &Statement<'_>) -> Vec<Candidate> {
        let words = statement.read.iter().flat_map(|word| match word.strip_prefix("<(") {
            Some(inner) => self.printed(inner.trim_end_matches(')'), DEPTH_CAP),
            None => self.of(word),
        });
        words.collect()
    }

    /// As [`Self::inputs`], with the texts, word by word.
    pub(super) fn words_of_inputs(&self, statement: &Statement<'_>) -> Vec<Candidate> {
        let whole = self.inputs(statement);
        let lines = statement.texts.iter().flat_map(|text| text.split_whitespace());
        let lines = lines.map(Candidate::plain);
        let split = whole.iter().flat_map(|whole| {
            let words = whole.text.split_whitespace();
            words.map(|text| Candidate { text: text.to_owned(), extent: whole.extent })
        });
        split.chain(lines).take(VALUES_CAP).collect()
    }
}

/// A home folder that was spelled by the user's name; nothing where the name stands elsewhere.
fn with_home(value: Candidate) -> Option<Candidate> {
    if !value.text.contains(USER) {
        return Some(value);
    }
    let rest = ["/home/$USER", "/Users/$USER", "~$USER"]
        .iter()
        .find_map(|begin| value.text.strip_prefix(begin))?;
    Some(Candidate { text: format!("~{rest}"), ..value })
}

fn parts(source: &str) -> Vec<Part> {
    let mut found = Vec::new();
    let mut text = String::new();
    let mut rest = source;
    if let Some(inner) = source.strip_prefix("<(") {
        return vec![Part::Command(inner.trim_end_matches(')').to_owned())];
    }
    // Somebody's home may be one's own.
    if let Some(named) = source.strip_prefix('~') {
        let name = named.find('/').unwrap_or(named.len());
        let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
        if named[..name].chars().all(is_name) {
            text.push('~');
            rest = &named[name..];
        }
    }
    pieces(rest, false, &mut text, &mut found);
    found.push(Part::Text(text));
    found
}

/// The commands whose output is put into a word.
pub(super) fn commands_in(word: &str) -> Vec<String> {
    let command = |part: Part| match part {
        Part::Command(inner) => Some(inner),
        Part::Text(_) | Part::Variable(..) => None,
    };
    parts(word).into_iter().filter_map(command).collect()
}

fn pieces(mut rest: &str, quoted: bool, text: &mut String, found: &mut Vec<Part>) {
    while let Some(c) = rest.chars().next() {
        let end = match c {
            '\'' if quoted => 1,
            '\\' | '\'' | '"' | '`' | '$' => {
                let name = |c: char| !c.is_ascii_alphanumeric() && c != '_';
                match rest[1..].chars().next() {
                    Some(n) if c == '$' && (n.is_ascii_alphabetic() || n == '_') => {
                        rest[1..].find(name).map_or(rest.len(), |end| end + 1)
                    }
                    Some('@' | '*' | '#' | '?' | '0'..='9') if c == '$' => 2,
                    _ => behind(rest.as_bytes(), 0),
                }
            }
            c => c.len_utf8(),
        };
        let Some(piece) = rest.get(..end) else { return };
        rest = &rest[end..];
        let mut take = |part: Part| {
            found.push(Part::Text(std::mem::take(text)));
            found.push(part);
        };
        match c {
            '\'' if !quoted => {
                let inner = piece.trim_matches('\'');
                if text.is_empty() && inner.starts_with('~') {
                    text.push_str("./");
                }
                text.push_str(inner);
            }
            '"' => {
                let inner = piece.strip_prefix('"').unwrap_or(piece);
                let inner = inner.strip_suffix('"').unwrap_or(inner);
                if text.is_empty() && found.is_empty() && inner.starts_with('~') {
                    text.push_str("./");
                }
                pieces(inner, true, text, found);
            }
            '\\' => text.extend(piece.chars().skip(1)),
            '`' => take(Part::Command(piece.trim_matches('`').to_owned())),
            '$' if piece.starts_with("$((") => take(Part::Variable(String::new(), String::new())),
            '$' if piece.starts_with("$(") => {
                let inner = &piece[2..];
                take(Part::Command(inner.strip_suffix(')').unwrap_or(inner).to_owned()));
            }
            '$' if piece.starts_with("${") => {
                let inner = &piece[2..];
                let inner = inner.strip_suffix('}').unwrap_or(inner);
                let special = inner.starts_with(['@', '*']);
                let end = inner.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
                let end = if special { 1 } else { end.unwrap_or(inner.len()) };
                let (name, made) = inner.split_at(end);
                let made = made.strip_prefix("[@]").or_else(|| made.strip_prefix("[*]"));
                let made = made.unwrap_or(&inner[end..]);
                take(Part::Variable(name.to_owned(), made.to_owned()));
            }
            '$' if piece.starts_with("$'") => {
                text.push_str(piece[2..].strip_suffix('\'').unwrap_or_default());
            }
            '$' if piece.len() > 1 => take(Part::Variable(piece[1..].to_owned(), String::new())),
            _ => text.push_str(piece),
        }
    }
}
