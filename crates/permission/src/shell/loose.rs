//! A line taken apart loosely, for guesses alone: statements, their words as they are written, and what
//! stands between them. It never gives up and never says that it is sure.

/// Statements of a line that are looked at.
const STATEMENTS_CAP: usize = 512;

/// What stands behind a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Pipe,
    And,
    Background,
    /// `(` and `)`
    Open,
    Close,
    Other,
}

#[derive(Debug, Default)]
pub(super) struct Statement<'l> {
    /// As written, quotes and all.
    pub(super) words: Vec<&'l str>,
    /// Where it writes to, as written.
    pub(super) written: Vec<&'l str>,
    /// What it reads: a word behind `<` or `<<<`, or a text.
    pub(super) read: Vec<&'l str>,
    pub(super) texts: Vec<&'l str>,
    pub(super) end: Option<End>,
}

#[derive(Debug, Default)]
pub(super) struct Loose<'l> {
    pub(super) statements: Vec<Statement<'l>>,
    pub(super) functions: Vec<&'l str>,
    /// `name=(words)`
    pub(super) lists: Vec<(&'l str, Vec<&'l str>)>,
}

pub(super) fn read(line: &str) -> Loose<'_> {
    let mut reader = Reader { line, at: 0, now: Statement::default(), pending: Vec::new() };
    let mut all = Loose::default();
    while reader.step(&mut all) && all.statements.len() < STATEMENTS_CAP {}
    reader.close(End::Other, &mut all);
    all
}

struct Reader<'l> {
    line: &'l str,
    at: usize,
    now: Statement<'l>,
    /// The ends of texts that begin behind this line.
    pending: Vec<&'l str>,
}

impl<'l> Reader<'l> {
    fn peek(&self, ahead: usize) -> Option<u8> {
        self.line.as_bytes().get(self.at + ahead).copied()
    }

    fn close(&mut self, end: End, all: &mut Loose<'l>) {
        self.now.end = Some(end);
        all.statements.push(std::mem::take(&mut self.now));
    }

    fn blanks(&mut self) {
        while matches!(self.peek(0), Some(b' ' | b'\t' | b'\r'))
            || self.peek(0) == Some(b'\\') && self.peek(1) == Some(b'\n')
        {
            self.at += 1 + usize::from(self.peek(0) == Some(b'\\'));
        }
    }

    fn step(&mut self, all: &mut Loose<'l>) -> bool {
        self.blanks();
        let Some(byte) = self.peek(0) else { return false };
        let next = self.peek(1);
        match byte {
            b'#' => self.at += self.line[self.at..].find('\n').unwrap_or(self.line.len() - self.at),
            b'\n' => {
                self.at += 1;
                self.documents();
                self.close(End::Other, all);
            }
            b';' => {
                self.at += 1;
                self.close(End::Other, all);
            }
            b'&' if next == Some(b'&') => {
                self.at += 2;
                self.close(End::And, all);
            }
            b'&' if next == Some(b'>') => self.redirect(),
            b'&' => {
                self.at += 1;
                self.close(End::Background, all);
            }
            b'|' if next == Some(b'|') => {
                self.at += 2;
                self.close(End::Other, all);
            }
            b'|' => {
                self.at += 1 + usize::from(next == Some(b'&'));
                self.close(End::Pipe, all);
            }
            b'(' => self.bracket(all),
            b')' => {
                self.at += 1;
                self.close(End::Close, all);
            }
            b'<' | b'>' if next == Some(b'(') => {
                let word = self.word();
                self.now.words.push(word);
            }
            b'<' | b'>' => self.redirect(),
            _ => {
                let word = self.word();
                let descriptor = matches!(self.peek(0), Some(b'<' | b'>'))
                    && word.bytes().all(|b| b.is_ascii_digit());
                if !descriptor {
                    self.now.words.push(word);
                }
            }
        }
        true
    }

    /// A subshell, a function's name or a list.
    fn bracket(&mut self, all: &mut Loose<'l>) {
        let inner = self.line[self.at + 1..].trim_start();
        if let Some(last) = self.now.words.last().copied() {
            if inner.starts_with(')') {
                all.functions.push(last);
                self.now.words.clear();
                self.at = self.line.len() - inner.len() + 1;
                return;
            }
            if let Some(name) = last.strip_suffix('=') {
                self.at += 1;
                let mut words = Vec::new();
                while !matches!(self.peek(0), None | Some(b')')) {
                    match self.peek(0) {
                        Some(b' ' | b'\t' | b'\n' | b';' | b'&' | b'|' | b'(') => self.at += 1,
                        _ => words.push(self.word()),
                    }
                }
                self.at += 1;
                all.lists.push((name.trim_end_matches('+'), words));
                return;
            }
        }
        if self.peek(1) == Some(b'(') {
            // Arithmetic.
            let end =
                self.line[self.at..].find("))").map_or(self.line.len(), |end| self.at + end + 2);
            self.now.words.extend(self.line.get(self.at..end));
            self.at = end;
            return;
        }
        self.at += 1;
        self.close(End::Open, all);
    }

    fn redirect(&mut self) {
        let rest = &self.line[self.at..];
        let sign = rest.bytes().take_while(|b| matches!(b, b'<' | b'>' | b'&' | b'|')).count();
        let sign = &rest[..sign.min(3)];
        self.at += sign.len();
        let document = sign == "<<";
        if document && self.peek(0) == Some(b'-') {
            self.at += 1;
        }
        self.blanks();
        if matches!(self.peek(0), None | Some(b'\n' | b';' | b'|')) {
            return;
        }
        let word = self.word();
        match sign {
            "<<" => self.pending.push(word),
            "<<<" | "<" => self.now.read.push(word),
            _ if word == "-" || word.bytes().all(|b| b.is_ascii_digit()) => {}
            _ => self.now.written.push(word),
        }
    }

    /// The texts that were announced, behind the end of the line.
    fn documents(&mut self) {
        for end in std::mem::take(&mut self.pending) {
            let end = end.trim_matches(['\'', '"', '\\']);
            let start = self.at;
            let mut stop = self.line.len();
            while self.at < self.line.len() {
                let one = self.line[self.at..].split('\n').next().unwrap_or_default();
                let here = self.at;
                self.at = (self.at + one.len() + 1).min(self.line.len());
                if one.trim() == end {
                    stop = here;
                    break;
                }
            }
            self.now.texts.extend(self.line.get(start..stop));
            // It belongs to the first of a pipe just as well: whoever asks looks at both.
        }
    }

    fn word(&mut self) -> &'l str {
        let start = self.at;
        let bytes = self.line.as_bytes();
        if matches!(bytes.get(self.at), Some(b'<' | b'>')) && bytes.get(self.at + 1) == Some(&b'(')
        {
            self.at = behind_bracket(bytes, self.at + 1);
        }
        while let Some(byte) = bytes.get(self.at) {
            match byte {
                b' ' | b'\t' | b'\n' | b'\r' | b';' | b'|' | b'&' | b'(' | b')' | b'<' | b'>' => {
                    break;
                }
                _ => self.at = behind(bytes, self.at),
            }
        }
        self.at = self.at.min(bytes.len());
        if self.at == start {
            self.at += 1;
        }
        while !self.line.is_char_boundary(self.at) {
            self.at += 1;
        }
        self.line.get(start..self.at).unwrap_or_default()
    }
}

/// Behind a letter, or the quotes or the expansion that begins there.
pub(super) fn behind(bytes: &[u8], at: usize) -> usize {
    let find = |from: usize, wanted: u8| {
        let rest = bytes.get(from..).unwrap_or_default();
        rest.iter().position(|b| *b == wanted).map_or(bytes.len(), |found| from + found + 1)
    };
    match bytes.get(at) {
        None => bytes.len(),
        Some(b'\\') => (at + 2).min(bytes.len()),
        Some(b'\'') => find(at + 1, b'\''),
        Some(b'`') => find(at + 1, b'`'),
        Some(b'"') => {
            let mut at = at + 1;
            while let Some(byte) = bytes.get(at) {
                match byte {
                    b'"' => return at + 1,
                    b'\'' => at += 1,
                    _ => at = behind(bytes, at),
                }
            }
            bytes.len()
        }
        Some(b'$') => match bytes.get(at + 1) {
            Some(b'(') => behind_bracket(bytes, at + 1),
            Some(b'{') => {
                let mut at = at + 2;
                while let Some(byte) = bytes.get(at) {
                    match byte {
                        b'}' => return at + 1,
                        _ => at = behind(bytes, at),
                    }
                }
                bytes.len()
            }
            Some(b'\'') => {
                let mut at = at + 2;
                while let Some(byte) = bytes.get(at) {
                    match byte {
                        b'\\' => at += 2,
                        b'\'' => return at + 1,
                        _ => at += 1,
                    }
                }
                bytes.len()
            }
            _ => at + 1,
        },
        Some(_) => at + 1,
    }
}

fn behind_bracket(bytes: &[u8], open: usize) -> usize {
    let (mut at, mut depth) = (open, 0_usize);
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'(' => {
                depth += 1;
                at += 1;
            }
            b')' => {
                depth -= 1;
                at += 1;
                if depth == 0 {
                    return at;
                }
            }
            _ => at = behind(bytes, at),
        }
    }
    bytes.len()
}
