//! Statements that hold others: loops, conditions, `case`, groups, tests and functions. As the rest of the
//! direct reader, it gives up on whatever it is not certain of.

use super::direct::{Direct, Standing, is_reserved};
use super::parse::Raw;

impl<'a> Direct<'a> {
    pub(super) fn statement(&mut self, standing: Standing) -> Option<()> {
        self.seen += 1;
        let (start, place) = (self.at, self.parsed.commands.len());
        let known = self.folders.len();
        match self.keyword() {
            "" if self.peek() == Some(b'(') => {
                (self.peek_at(1) != Some(b'(')).then_some(())?;
                self.at += 1;
                self.enclosed()?;
            }
            "for" | "select" => self.inside(Self::for_loop)?,
            "while" | "until" => self.inside(Self::while_loop)?,
            "if" => self.inside(Self::condition)?,
            "case" => self.inside(Self::case)?,
            "{" => self.deeper(Self::group)?,
            "[" | "[[" => self.test()?,
            "!" => return self.negated(),
            "export" | "local" | "readonly" | "declare" | "typeset" | "unset" => {
                return self.declaration();
            }
            _ => return self.command(),
        }
        // Where it goes in a group that is redirected or joined is left to the grammar.
        let moved = self.folders.len() > known;
        (!moved || standing == Standing::First).then_some(())?;
        self.ends_group(start, place, known, standing)
    }

    /// Reads something whose statements may not run.
    fn inside(&mut self, read: impl FnOnce(&mut Self) -> Option<()>) -> Option<()> {
        self.unsure += 1;
        let found = self.deeper(read);
        self.unsure -= 1;
        found
    }

    /// Whether a simple statement ends here.
    pub(super) fn ends_simple(&self) -> bool {
        match self.peek() {
            None | Some(b';' | b'\n' | b'|' | b'#') => true,
            Some(b'&') => self.peek_at(1) != Some(b'>'),
            Some(b')') => self.open > 0,
            _ => false,
        }
    }

    /// Behind a bracket or a closing word: redirections of the whole, that belong to no single command.
    fn ends_group(
        &mut self,
        start: usize,
        place: usize,
        known: usize,
        standing: Standing,
    ) -> Option<()> {
        let mut redirects = Vec::new();
        let mut end = None;
        loop {
            self.blanks();
            let descriptor = matches!(self.peek(), Some(b'0'..=b'9')) && self.is_descriptor();
            let sign = match self.peek() {
                Some(b'<' | b'>') => true,
                Some(b'&') => self.peek_at(1) == Some(b'>'),
                _ => descriptor,
            };
            if !sign {
                break;
            }
            redirects.extend(self.redirect()?);
            end = Some(self.at);
        }
        self.ends_simple().then_some(())?;
        let Some(end) = end else { return Some(()) };
        // The grammar hangs them on all that is joined, and `cd` in it would not be followed.
        (standing == Standing::First && self.folders.len() == known).then_some(())?;
        let text = self.line.get(start..end)?.trim().to_owned();
        let folders = self.folders.clone();
        self.parsed.commands.insert(place, Raw { text, redirects, folders, ..Raw::default() });
        Some(())
    }

    /// `for name in words`, and its sister with numbers.
    fn for_loop(&mut self) -> Option<()> {
        let known = self.folders.len();
        self.forget_what_changes();
        self.beside += 1;
        self.at += self.keyword().len();
        self.blanks();
        if self.eat("((") {
            self.arithmetic(b";")?;
            self.blanks();
            self.eat(";");
        } else {
            let name = self.name()?;
            self.set_unknown(name);
            self.blanks();
            self.expect("in")?;
            self.blanks();
            while !matches!(self.peek(), None | Some(b';' | b'\n' | b'#')) {
                self.word()?;
                self.blanks();
            }
            matches!(self.peek(), Some(b';' | b'\n')).then(|| self.at += 1)?;
        }
        self.lines()?;
        self.body(known)?;
        self.beside -= 1;
        Some(())
    }

    fn while_loop(&mut self) -> Option<()> {
        let known = self.folders.len();
        self.forget_what_changes();
        self.at += self.keyword().len();
        self.beside += 1;
        self.some_statements(&["do"])?;
        self.body(known)?;
        self.beside -= 1;
        Some(())
    }

    fn body(&mut self, known: usize) -> Option<()> {
        self.expect("do")?;
        self.some_statements(&["done"])?;
        // It would go on from where it went: left to the grammar, which says so.
        (self.folders.len() == known).then_some(())?;
        self.expect("done")
    }

    fn condition(&mut self) -> Option<()> {
        let known = self.folders.len();
        self.expect("if")?;
        loop {
            self.some_statements(&["then"])?;
            self.expect("then")?;
            self.some_statements(&["elif", "else", "fi"])?;
            self.perhaps(known);
            if self.expect("elif").is_none() {
                break;
            }
        }
        if self.expect("else").is_some() {
            self.some_statements(&["fi"])?;
            self.perhaps(known);
        }
        self.expect("fi")
    }

    /// `case word in a|b) …;; esac`
    fn case(&mut self) -> Option<()> {
        let known = self.folders.len();
        // In a substitution the bracket behind a pattern has been read in more than one way.
        (self.open == 0).then_some(())?;
        self.expect("case")?;
        self.blanks();
        self.word()?;
        self.blanks();
        self.expect("in")?;
        loop {
            self.lines()?;
            if self.expect("esac").is_some() {
                return Some(());
            }
            self.patterns()?;
            self.statements(&["esac"])?;
            self.perhaps(known);
            let closed = self.eat(";;&") || self.eat(";;") || self.eat(";&");
            if !closed {
                return self.expect("esac");
            }
        }
    }

    /// What stands in front of an item, with its bracket.
    fn patterns(&mut self) -> Option<()> {
        self.eat("(");
        self.open += 1;
        loop {
            self.blanks();
            self.word()?;
            self.blanks();
            if !self.eat("|") {
                break;
            }
        }
        self.open -= 1;
        self.eat(")").then_some(())
    }

    /// `{ …; }`
    fn group(&mut self) -> Option<()> {
        self.expect("{")?;
        self.some_statements(&["}"])?;
        self.expect("}")
    }

    /// `! command`, where it goes nowhere and is not redirected: the grammar hangs that on the sign.
    fn negated(&mut self) -> Option<()> {
        let (known, place) = (self.folders.len(), self.parsed.commands.len());
        self.expect("!")?;
        matches!(self.peek(), Some(b' ' | b'\t')).then_some(())?;
        self.blanks();
        match self.keyword() {
            "[" | "[[" => {
                self.test()?;
                self.blanks();
                self.ends_simple().then_some(())?;
            }
            _ => self.command()?,
        }
        let command = self.parsed.commands.get(place);
        let redirected = command.is_some_and(|raw| raw.text.contains(['<', '>']));
        (self.folders.len() == known && !redirected).then_some(())
    }

    /// `[ … ]` and `[[ … ]]`: they run nothing but what is substituted in them.
    fn test(&mut self) -> Option<()> {
        let double = self.keyword() == "[[";
        let close = if double { "]]" } else { "]" };
        self.at += close.len();
        let mut words = 0;
        loop {
            let before = self.at;
            self.blanks();
            (self.at > before).then_some(())?;
            if self.line[self.at..].starts_with(close) && self.is_word_end(close.len()) {
                self.at += close.len();
                return (words > 0).then_some(());
            }
            words += 1;
            if let Some(length) = self.operator(double) {
                self.at += length;
                continue;
            }
            if double && self.eat("=~") {
                self.blanks();
                self.plain_regex()?;
                continue;
            }
            self.word()?;
        }
    }

    /// The length of a word that compares or joins, in a test.
    fn operator(&self, double: bool) -> Option<usize> {
        let all: &[&str] =
            if double { &["==", "!=", "=", "!", "&&", "||"] } else { &["==", "!=", "=", "!"] };
        let rest = self.line.as_bytes().get(self.at..)?;
        let fits = |operator: &&&str| {
            rest.starts_with(operator.as_bytes())
                && matches!(rest.get(operator.len()), Some(b' ' | b'\t'))
        };
        all.iter().find(fits).map(|operator| operator.len())
    }

    /// An expression of the plainest kind: no quotes, brackets that group, or expansions.
    fn plain_regex(&mut self) -> Option<()> {
        let rest = self.line.as_bytes().get(self.at..)?;
        let plain = |b: &&u8| {
            b.is_ascii_alphanumeric()
                || matches!(b, b'^' | b'.' | b'+' | b'*' | b'-' | b'_' | b'[' | b']' | b'/' | b':')
        };
        let mut length = rest.iter().take_while(plain).count();
        (length > 0).then_some(())?;
        length += usize::from(rest.get(length) == Some(&b'$'));
        matches!(rest.get(length), Some(b' ' | b'\t')).then(|| self.at += length)
    }

    /// `name() { …; }` and `function name { …; }`: whether there was one. Nothing is consumed otherwise.
    pub(super) fn function(&mut self) -> Option<bool> {
        let rest = self.line.get(self.at..)?;
        let spelled = self.keyword() == "function";
        let skipped = if spelled { "function".len() } else { 0 };
        let gap = if spelled { blank(&rest[skipped..]) } else { 0 };
        let named = &rest[skipped + gap..];
        let plain = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-');
        let length = named.bytes().take_while(plain).count();
        let name = &named[..length];
        let behind = &named[length..];
        let brackets = blank(behind);
        let has_brackets = behind[brackets..].starts_with("()");
        if !spelled && (length == 0 || !has_brackets) {
            return Some(false);
        }
        self.forget_what_changes();
        // One in another, or under a name of the shell's own, is left to the grammar.
        let fits = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && !is_reserved(name)
            && self.functions.is_empty();
        fits.then_some(())?;
        self.at += skipped + gap + length;
        if has_brackets {
            self.at += brackets + 2;
        }
        let from = self.at;
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n')) {
            self.at += 1;
        }
        (has_brackets || self.at > from).then_some(())?;
        let known = self.folders.len();
        self.seen += 1;
        self.parsed.tainted = true;
        self.functions.push(name.to_owned());
        let beside = std::mem::take(&mut self.beside);
        let piped = std::mem::take(&mut self.piped);
        self.inside(Self::group)?;
        self.piped = piped;
        self.beside = beside;
        self.functions.pop();
        self.perhaps(known);
        self.blanks();
        let alone = matches!(self.peek(), None | Some(b';' | b'\n' | b'#'));
        (alone || self.peek() == Some(b')') && self.open > 0).then_some(true)
    }

    pub(super) fn some_statements(&mut self, until: &[&str]) -> Option<()> {
        let before = self.seen;
        // A word must stand between: `if;` and `do;` are no shell's.
        matches!(self.peek(), Some(b' ' | b'\t' | b'\n')).then_some(())?;
        self.statements(until)?;
        (self.seen > before).then_some(())
    }
}

/// How many blanks a text begins with.
fn blank(text: &str) -> usize {
    text.bytes().take_while(|b| matches!(b, b' ' | b'\t')).count()
}
