//! From text to simple commands, by the grammar of bash.

use tree_sitter::{Node, Parser};

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
}

impl Word {
    pub(crate) fn literal(text: &str) -> Self {
        Self { text: Some(text.to_owned()), pattern: false, source: text.to_owned(), token: true }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Redirect {
    pub(crate) to: Word,
    pub(crate) writes: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Raw {
    pub(crate) text: String,
    pub(crate) words: Vec<Word>,
    /// Names of variables that are set for it.
    pub(crate) assigned: Vec<String>,
    pub(crate) redirects: Vec<Redirect>,
    /// More words come from elsewhere (`xargs`, `find`).
    pub(crate) open_ended: bool,
}

impl Raw {
    /// The program's name without its folder; nothing if it is not known.
    pub(crate) fn program(&self) -> Option<String> {
        let first = self.words.first()?;
        let text = first.text.as_ref().filter(|_| !first.pattern)?;
        Some(text.rsplit('/').next().unwrap_or(text).to_owned())
    }

    /// Whether the program is named by a path, and so may be anything under a known name.
    pub(crate) fn is_path(&self) -> bool {
        let text = self.words.first().and_then(|w| w.text.as_deref()).unwrap_or_default();
        let system = ["/bin/", "/usr/bin/", "/usr/local/bin/"];
        text.contains('/') && !system.iter().any(|folder| text.starts_with(folder))
    }

    /// The words after the program's name that are known; nothing if one of them is not.
    pub(crate) fn arguments(&self) -> Option<Vec<&str>> {
        self.words.iter().skip(1).map(|word| word.text.as_deref()).collect()
    }
}

#[derive(Debug, Default)]
pub(crate) struct Parsed {
    pub(crate) commands: Vec<Raw>,
    pub(crate) problems: Vec<String>,
    pub(crate) floor: Option<String>,
    /// A variable or a definition changes what other commands of the line do.
    pub(crate) tainted: bool,
}

/// Variables that change what other programs do.
const POWERFUL: &[&str] = &[
    "PATH",
    "IFS",
    "ENV",
    "BASH_ENV",
    "SHELLOPTS",
    "BASHOPTS",
    "PROMPT_COMMAND",
    "PS4",
    "PAGER",
    "EDITOR",
    "VISUAL",
    "BROWSER",
    "SHELL",
    "HOME",
    "PYTHONPATH",
    "PYTHONSTARTUP",
    "PERL5OPT",
    "RUBYOPT",
    "NODE_OPTIONS",
    "JAVA_TOOL_OPTIONS",
];

fn is_powerful(name: &str) -> bool {
    POWERFUL.contains(&name) || ["LD_", "DYLD_", "GIT_"].iter().any(|p| name.starts_with(p))
}

/// Bytes of a line that is looked at. A longer one is a file in disguise.
const LINE_CAP_BYTES: usize = 64 << 10;

/// Levels of a tree that are looked at: nobody nests deeper, and the stack has an end.
const DEPTH_CAP: usize = 200;

pub(crate) fn parse(line: &str) -> Parsed {
    let mut parsed = Parsed::default();
    if line.len() > LINE_CAP_BYTES {
        let text = line.chars().take(80).collect::<String>();
        parsed.problems.push("it is too long to be judged".to_owned());
        parsed.commands.push(Raw { text, ..Raw::default() });
        return parsed;
    }
    // The grammar's scanner hands characters to C functions that are defined for bytes only, and reads
    // out of bounds for others. To a shell they are letters like any other.
    let shadow: String = line
        .chars()
        .map(|c| if c.is_ascii() { c.to_string() } else { "x".repeat(c.len_utf8()) })
        .collect();
    let mut parser = Parser::new();
    let tree = parser
        .set_language(&tree_sitter_bash::LANGUAGE.into())
        .ok()
        .and_then(|()| parser.parse(&shadow, None));
    let Some(tree) = tree else {
        parsed.problems.push("it could not be parsed".to_owned());
        return parsed;
    };
    if tree.root_node().has_error() {
        parsed.problems.push("it could not be parsed as a whole".to_owned());
    }
    // Characters that a terminal shows as nothing, or as something else, are not for shells.
    let odd = |c: char| c.is_control() && !matches!(c, '\n' | '\t' | '\r') || is_invisible(c);
    if line.chars().any(odd) {
        parsed.problems.push("it holds characters that cannot be seen".to_owned());
    }
    Walk { line, parsed: &mut parsed, functions: Vec::new(), depth: 0 }.visit(tree.root_node());
    if parsed.commands.is_empty() && !line.trim().is_empty() && parsed.problems.is_empty() {
        let only_sets = Raw { text: line.trim().to_owned(), ..Raw::default() };
        parsed.commands.push(only_sets);
    }
    parsed
}

fn is_invisible(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}' | '\u{ad}')
}

struct Walk<'a> {
    line: &'a str,
    parsed: &'a mut Parsed,
    functions: Vec<String>,
    depth: usize,
}

impl Walk<'_> {
    fn text(&self, node: Node<'_>) -> &str {
        self.line.get(node.byte_range()).unwrap_or_default()
    }

    fn visit(&mut self, node: Node<'_>) {
        if self.depth >= DEPTH_CAP {
            if self.parsed.problems.len() < 8 {
                self.parsed.problems.push("it is nested too deeply".to_owned());
            }
            return;
        }
        self.depth += 1;
        self.visit_one(node);
        self.depth -= 1;
    }

    fn visit_one(&mut self, node: Node<'_>) {
        match node.kind() {
            "command" => self.command(node),
            "declaration_command" | "unset_command" => self.declaration(node),
            "variable_assignment" => {
                self.assignment(node);
                self.children(node);
            }
            "function_definition" => {
                let name = node.child_by_field_name("name").map(|n| self.text(n).to_owned());
                self.functions.extend(name);
                self.parsed.tainted = true;
                self.children(node);
                self.functions.pop();
            }
            "redirected_statement" if redirects_nothing_known(node) => {
                self.redirect_of_group(node);
                self.children(node);
            }
            _ => self.children(node),
        }
    }

    fn children(&mut self, node: Node<'_>) {
        let mut cursor = node.walk();
        for child in node.named_children(&mut cursor) {
            self.visit(child);
        }
    }

    fn assignment(&mut self, node: Node<'_>) -> Option<String> {
        let name = self.text(node.child_by_field_name("name")?).to_owned();
        if is_powerful(&name) {
            self.parsed.tainted = true;
        }
        Some(name)
    }

    /// `export`, `declare`, `local`: they set what later commands see.
    fn declaration(&mut self, node: Node<'_>) {
        let text = self.text(node).to_owned();
        let words = text.split_whitespace().take(1).map(Word::literal).collect();
        self.parsed.commands.push(Raw { text, words, ..Raw::default() });
        self.children(node);
    }

    /// `{ …; } > file` and the like: the redirection belongs to no single command.
    fn redirect_of_group(&mut self, node: Node<'_>) {
        let redirects = self.redirects(node);
        let text = self.text(node).trim().to_owned();
        self.parsed.commands.push(Raw { text, redirects, ..Raw::default() });
    }

    fn command(&mut self, node: Node<'_>) {
        let mut raw = Raw::default();
        let around = node.parent().filter(|parent| parent.kind() == "redirected_statement");
        raw.text = self.text(around.unwrap_or(node)).trim().to_owned();
        if let Some(around) = around {
            raw.redirects = self.redirects(around);
        }
        raw.redirects.extend(self.redirects(node));
        let mut cursor = node.walk();
        for child in node.named_children(&mut cursor) {
            match child.kind() {
                "variable_assignment" => raw.assigned.extend(self.assignment(child)),
                "file_redirect" | "heredoc_redirect" | "herestring_redirect" | "comment" => {}
                "command_name" => {
                    if let Some(inner) = child.named_child(0) {
                        raw.words.push(self.word(inner));
                    } else {
                        raw.words.push(self.word(child));
                    }
                }
                _ => raw.words.push(self.word(child)),
            }
        }
        if raw
            .words
            .first()
            .and_then(|w| w.text.as_ref())
            .is_some_and(|n| self.functions.contains(n))
        {
            let name = raw.text.clone();
            self.parsed.floor = Some(format!("a function that calls itself without end: {name}"));
        }
        self.parsed.commands.push(raw);
        self.children(node);
    }

    fn redirects(&mut self, node: Node<'_>) -> Vec<Redirect> {
        let mut cursor = node.walk();
        let redirects: Vec<Node<'_>> =
            node.named_children(&mut cursor).filter(|n| n.kind() == "file_redirect").collect();
        let mut found = Vec::new();
        for redirect in redirects {
            let Some(to) = redirect.child_by_field_name("destination") else { continue };
            let operator = self.text(redirect);
            let operator = operator.trim_start_matches(|c: char| c.is_ascii_digit());
            let to = self.word(to);
            // `2>&1` names a descriptor, not a file.
            let is_descriptor = (operator.starts_with(">&") || operator.starts_with("<&"))
                && to.text.as_ref().is_some_and(|t| t == "-" || t.parse::<u32>().is_ok());
            if !is_descriptor {
                found.push(Redirect {
                    to,
                    writes: !operator.starts_with('<') || operator.starts_with("<>"),
                });
            }
        }
        found
    }

    fn word(&self, node: Node<'_>) -> Word {
        let source = self.text(node).to_owned();
        let token = matches!(
            node.kind(),
            "word" | "string" | "raw_string" | "concatenation" | "command_name"
        );
        let (text, pattern) = self.value(node);
        Word { text, pattern, source, token }
    }

    /// The text that the shell makes of a word, and whether it may become several.
    fn value(&self, node: Node<'_>) -> (Option<String>, bool) {
        let source = self.text(node);
        match node.kind() {
            "word" | "number" | "command_name" | "special_variable_name" => {
                let pattern = source.contains(['*', '?', '[']) || is_brace(source);
                (Some(unescape(source)), pattern)
            }
            "raw_string" => (
                source.strip_prefix('\'').and_then(|s| s.strip_suffix('\'')).map(str::to_owned),
                false,
            ),
            "string" => (self.quoted(node), false),
            "simple_expansion" if matches!(source, "$HOME") => (Some("~".to_owned()), false),
            "expansion" if matches!(source, "${HOME}") => (Some("~".to_owned()), false),
            "concatenation" => {
                let mut text = Some(String::new());
                let mut pattern = is_brace(source);
                let mut cursor = node.walk();
                for child in node.named_children(&mut cursor) {
                    let (part, several) = self.value(child);
                    pattern |= several;
                    text = text.zip(part).map(|(text, part)| text + &part);
                }
                (text, pattern)
            }
            "extglob_pattern" | "regex" | "brace_expression" => (Some(source.to_owned()), true),
            _ => (None, false),
        }
    }

    /// The content of a double-quoted string, if nothing in it is computed.
    fn quoted(&self, node: Node<'_>) -> Option<String> {
        let inner = self.text(node).strip_prefix('"')?.strip_suffix('"')?;
        let mut cursor = node.walk();
        let plain = node.named_children(&mut cursor).all(|child| {
            child.kind() == "string_content" || matches!(self.text(child), "$HOME" | "${HOME}")
        });
        if !plain {
            return None;
        }
        let inner = inner.replace("${HOME}", "~").replace("$HOME", "~");
        let mut text = String::new();
        let mut characters = inner.chars();
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
}

/// A redirection around something else than one simple command.
fn redirects_nothing_known(node: Node<'_>) -> bool {
    let body = node.child_by_field_name("body");
    body.is_none_or(|body| body.kind() != "command")
}

fn is_brace(source: &str) -> bool {
    source.contains('{') && (source.contains(',') || source.contains(".."))
}

fn unescape(source: &str) -> String {
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
