//! From text to simple commands, by the grammar of bash, and to the folders that each may run in.

use std::cell::RefCell;

use tree_sitter::{Node, Parser};

use super::word::{Variables, Word, Words};
use super::{Folder, When};

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
    /// Where the line has gone before it.
    pub(crate) folders: Vec<Folder>,
    /// What it reads, where the line itself says so.
    pub(crate) input: Input,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) enum Input {
    #[default]
    Elsewhere,
    Text(String),
    /// A text that the shell computes.
    Computed,
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
        let text = self.words.first().map(Word::text).unwrap_or_default();
        text.contains('/')
    }

    /// What a person would see, of a command that was found inside another.
    pub(crate) fn inside(&self, words: &[Word]) -> Self {
        let text = words.iter().map(|w| w.source.as_str()).collect::<Vec<_>>().join(" ");
        let folders = self.folders.clone();
        let open_ended = self.open_ended;
        Self { text, words: words.to_vec(), open_ended, folders, ..Self::default() }
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

impl Parsed {
    fn problem(&mut self, problem: &str) {
        if !self.problems.iter().any(|known| known == problem) {
            self.problems.push(problem.to_owned());
        }
    }
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
    "PWD",
    "CDPATH",
    "PYTHONPATH",
    "PYTHONSTARTUP",
    "PERL5OPT",
    "RUBYOPT",
    "NODE_OPTIONS",
    "JAVA_TOOL_OPTIONS",
    "GLOBIGNORE",
    "TMPDIR",
    "LESSOPEN",
    "LESSCLOSE",
];

fn is_powerful(name: &str) -> bool {
    POWERFUL.contains(&name)
        || ["LD_", "DYLD_", "GIT_", "BASH_", "XDG_", "RIPGREP_"].iter().any(|p| name.starts_with(p))
}

/// Bytes of a line that is looked at. A longer one is a file in disguise.
const LINE_CAP_BYTES: usize = 64 << 10;

/// Levels of a tree that are looked at: nobody nests deeper, and the stack has an end.
const DEPTH_CAP: usize = 200;

/// Brackets of all kinds that may stand open at once. The grammar tries several readings of each, and
/// the time for that grows with the square of their number.
const OPEN_CAP: usize = 400;

/// Changes of the folder that are followed in one line.
const FOLDERS_CAP: usize = 16;

thread_local! {
    /// Made once: a parser holds buffers that are worth keeping.
    static PARSER: RefCell<Option<Parser>> = const { RefCell::new(None) };
}

pub(crate) fn parse(line: &str, folders: &[Folder]) -> Parsed {
    let mut parsed = Parsed::default();
    let cap = |what: &str| {
        let text = line.chars().take(80).collect::<String>();
        let commands = vec![Raw { text, folders: folders.to_vec(), ..Raw::default() }];
        Parsed { commands, problems: vec![what.to_owned()], ..Parsed::default() }
    };
    if line.len() > LINE_CAP_BYTES {
        return cap("it is too long to be judged");
    }
    if line.bytes().filter(|b| matches!(b, b'(' | b'{' | b'`' | b'<')).count() > OPEN_CAP {
        return cap("it is nested too deeply to be judged");
    }
    // Characters that a terminal shows as nothing, or as something else, are not for shells.
    let odd = |c: char| c.is_control() && !matches!(c, '\n' | '\t') || is_unseen(c);
    if line.chars().any(odd) {
        parsed.problem("it holds characters that cannot be seen");
    }
    let Some(tree) = tree_of(line) else {
        parsed.problem("it could not be parsed");
        return parsed;
    };
    if tree.root_node().has_error() {
        parsed.problem("it could not be parsed as a whole");
    }
    let variables = Variables::new();
    let folders = folders.to_vec();
    let (functions, calls) = (Vec::new(), super::floor::Calls::default());
    let (depth, beside, around) = (0, 0, None);
    let mut walk =
        Walk { line, parsed, variables, folders, functions, calls, depth, beside, around };
    walk.visit(tree.root_node());
    let floor = walk.calls.bomb();
    let mut parsed = walk.parsed;
    parsed.floor = floor;
    if parsed.commands.is_empty() && !line.trim().is_empty() && parsed.problems.is_empty() {
        let only_sets = Raw { text: line.trim().to_owned(), ..Raw::default() };
        parsed.commands.push(only_sets);
    }
    parsed
}

fn tree_of(line: &str) -> Option<tree_sitter::Tree> {
    // The grammar's scanner hands characters to C functions that are defined for bytes only, and reads
    // out of bounds for others. To a shell they are letters like any other.
    let shadow: Vec<u8> = line.bytes().map(|b| if b.is_ascii() { b } else { b'x' }).collect();
    PARSER.with_borrow_mut(|parser| {
        if parser.is_none() {
            let mut new = Parser::new();
            new.set_language(&tree_sitter_bash::LANGUAGE.into()).ok()?;
            *parser = Some(new);
        }
        let parser = parser.as_mut()?;
        parser.reset();
        parser.parse(&shadow, None)
    })
}

/// Blanks that are none to a shell, and what has no shape of its own.
pub(crate) fn is_unseen(c: char) -> bool {
    matches!(
        c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{2800}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}'
            | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}'
    ) || !c.is_ascii() && c.is_whitespace()
}

struct Walk<'a, 't> {
    line: &'a str,
    parsed: Parsed,
    variables: Variables,
    folders: Vec<Folder>,
    functions: Vec<String>,
    calls: super::floor::Calls,
    depth: usize,
    /// Statements around it that run beside others, or again and again.
    beside: usize,
    /// The redirected statement whose command is looked at next. Asking a node for what stands around it
    /// would search the whole tree.
    around: Option<Node<'t>>,
}

impl<'t> Walk<'_, 't> {
    fn words(&self) -> Words<'_> {
        Words { line: self.line, variables: &self.variables }
    }

    fn text(&self, node: Node<'t>) -> &str {
        self.line.get(node.byte_range()).unwrap_or_default()
    }

    fn visit(&mut self, node: Node<'t>) {
        // A leaf holds no commands.
        if node.child_count() == 0 {
            return;
        }
        if self.depth >= DEPTH_CAP {
            self.parsed.problem("it is nested too deeply");
            return;
        }
        self.depth += 1;
        self.visit_one(node);
        self.depth -= 1;
    }

    fn visit_one(&mut self, node: Node<'t>) {
        let known = self.folders.len();
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
                let beside = std::mem::take(&mut self.beside);
                self.children(node);
                self.beside = beside;
                self.functions.pop();
                self.perhaps(known);
            }
            "redirected_statement" if redirects_nothing_known(node) => {
                self.redirect_of_group(node);
                self.children(node);
            }
            "redirected_statement" => {
                let body = node.child_by_field_name("body");
                if let Some(body) = body {
                    self.around = Some(node);
                    self.visit(body);
                    self.around = None;
                }
                let mut cursor = node.walk();
                for child in node.named_children(&mut cursor).filter(|c| Some(*c) != body) {
                    self.visit(child);
                }
            }
            "list" => self.list(node),
            // Where these go, the rest of the line does not follow.
            "subshell" | "command_substitution" | "process_substitution" => {
                self.children(node);
                self.folders.truncate(known);
            }
            // In most shells the same; in some the last of a pipe is the shell itself.
            "pipeline" => {
                self.beside += 1;
                let mut cursor = node.walk();
                for child in node.named_children(&mut cursor) {
                    self.visit(child);
                    self.perhaps(known);
                }
                self.beside -= 1;
            }
            "if_statement" | "case_statement" | "elif_clause" | "else_clause" | "case_item" => {
                self.children(node);
                self.perhaps(known);
            }
            "for_statement" | "while_statement" | "c_style_for_statement" => {
                if let Some(variable) = node.child_by_field_name("variable") {
                    let name = self.text(variable).to_owned();
                    self.variables.insert(name, None);
                }
                self.beside += 1;
                self.children(node);
                self.beside -= 1;
                if self.folders.len() > known {
                    self.parsed.problem("it changes its folder over and over");
                    self.perhaps(known);
                }
            }
            "heredoc_redirect" | "heredoc_body" | "herestring_redirect" => self.children(node),
            _ => self.children(node),
        }
    }

    /// What was gone into since then was perhaps not.
    fn perhaps(&mut self, known: usize) {
        let gone = self.folders.get_mut(known..).unwrap_or_default();
        gone.iter_mut().for_each(|folder| folder.when = When::Perhaps);
    }

    /// Statements one after the other: none of them knows how the one before ended.
    fn children(&mut self, node: Node<'t>) {
        let mut cursor = node.walk();
        let children: Vec<Node<'t>> = node.children(&mut cursor).collect();
        let is_and = |at: usize| children.get(at).is_some_and(|n| n.kind() == "&");
        for (at, child) in children.iter().enumerate().filter(|(_, child)| child.is_named()) {
            let known = self.folders.len();
            let background = is_and(at + 1);
            let beside = background || at > 0 && is_and(at - 1);
            self.beside += usize::from(beside);
            self.visit(*child);
            self.beside -= usize::from(beside);
            for folder in self.folders.get_mut(known..).unwrap_or_default() {
                folder.when = match folder.when {
                    _ if folder.conditional || background => When::Perhaps,
                    When::Surely => When::IfThere,
                    when => when,
                };
            }
        }
    }

    /// `a && b`, `a || b`: what stands on the right runs only if the left ended as it should.
    fn list(&mut self, node: Node<'t>) {
        let known = self.folders.len();
        let mut cursor = node.walk();
        let mut operator = "";
        for child in node.children(&mut cursor) {
            if !child.is_named() {
                operator = child.kind();
                continue;
            }
            if operator == "||" {
                self.perhaps(known);
            }
            let middle = self.folders.len();
            self.visit(child);
            if !operator.is_empty() {
                let gone = self.folders.get_mut(middle..).unwrap_or_default();
                gone.iter_mut().for_each(|folder| folder.conditional = true);
            }
            if operator == "||" {
                self.perhaps(known);
            }
        }
    }

    fn assignment(&mut self, node: Node<'t>) -> Option<String> {
        let name = self.text(node.child_by_field_name("name")?).to_owned();
        if is_powerful(&name) {
            self.parsed.tainted = true;
        }
        let value = node.child_by_field_name("value").map(|value| self.words().word(value));
        let first = !self.variables.contains_key(&name);
        // A value is good for the rest of the line if nothing else ever sets it.
        let plain = first && self.depth <= 3 && !self.text(node).contains("+=");
        let value = match value {
            Some(word) if plain => word.paths().into_iter().next().filter(|_| !word.pattern),
            None if plain => Some(String::new()),
            _ => None,
        };
        self.variables.insert(name.clone(), value);
        Some(name)
    }

    /// `export`, `declare`, `local`: they set what later commands see.
    fn declaration(&mut self, node: Node<'t>) {
        let text = self.text(node).to_owned();
        let first = text.split_whitespace().next().unwrap_or_default().to_owned();
        let word =
            Word { text: Some(first.clone()), source: first, token: true, ..Word::default() };
        let folders = self.folders.clone();
        self.parsed.commands.push(Raw { text, words: vec![word], folders, ..Raw::default() });
        self.children(node);
    }

    /// `{ …; } > file` and the like: the redirection belongs to no single command.
    fn redirect_of_group(&mut self, node: Node<'t>) {
        let redirects = self.redirects(node);
        let text = self.text(node).trim().to_owned();
        let folders = self.folders.clone();
        self.parsed.commands.push(Raw { text, redirects, folders, ..Raw::default() });
    }

    fn command(&mut self, node: Node<'t>) {
        let mut raw = Raw { folders: self.folders.clone(), ..Raw::default() };
        let around = self.around.take();
        raw.text = self.text(around.unwrap_or(node)).trim().to_owned();
        if let Some(around) = around {
            raw.redirects = self.redirects(around);
            let mut cursor = around.walk();
            for child in around.named_children(&mut cursor) {
                if matches!(child.kind(), "heredoc_redirect" | "herestring_redirect") {
                    raw.input = self.input(child);
                }
            }
        }
        raw.redirects.extend(self.redirects(node));
        let mut cursor = node.walk();
        for child in node.named_children(&mut cursor) {
            match child.kind() {
                "variable_assignment" => {
                    // For this command alone: its own words do not see it.
                    let before = self.variables.clone();
                    raw.assigned.extend(self.assignment(child));
                    self.variables = before;
                }
                "file_redirect" | "comment" => {}
                "heredoc_redirect" | "herestring_redirect" => raw.input = self.input(child),
                "command_name" => {
                    let inner = child.named_child(0).unwrap_or(child);
                    raw.words.push(self.words().word(inner));
                }
                _ => raw.words.push(self.words().word(child)),
            }
        }
        self.calls.note(&raw, self.beside > 0, &self.functions);
        let moved = super::moves(&raw);
        self.parsed.commands.push(raw);
        self.children(node);
        match moved {
            Some(_) if self.folders.len() >= FOLDERS_CAP => {
                self.parsed.problem("it changes its folder too often");
            }
            Some(Some(path)) => self.folders.push(Folder::new(path, When::Surely)),
            Some(None) => {
                self.parsed.problem("the folder that it changes to is not known");
                self.folders.push(Folder::new("/".to_owned(), When::Perhaps));
            }
            None => {}
        }
    }

    /// The text of `<<END` and `<<<`.
    fn input(&self, node: Node<'t>) -> Input {
        let mut cursor = node.walk();
        for child in node.named_children(&mut cursor) {
            match child.kind() {
                "heredoc_body" => {
                    let mut cursor = child.walk();
                    let plain =
                        child.named_children(&mut cursor).all(|c| c.kind() == "heredoc_content");
                    let text = self.text(child).to_owned();
                    return if plain { Input::Text(text) } else { Input::Computed };
                }
                _ if node.kind() == "herestring_redirect" => {
                    let text = self.words().word(child).text;
                    return text.map_or(Input::Computed, Input::Text);
                }
                _ => {}
            }
        }
        Input::Computed
    }

    fn redirects(&mut self, node: Node<'t>) -> Vec<Redirect> {
        let mut cursor = node.walk();
        let redirects: Vec<Node<'_>> =
            node.named_children(&mut cursor).filter(|n| n.kind() == "file_redirect").collect();
        let mut found = Vec::new();
        for redirect in redirects {
            let Some(to) = redirect.child_by_field_name("destination") else { continue };
            let operator = self.text(redirect);
            let operator = operator.trim_start_matches(|c: char| c.is_ascii_digit());
            let to = self.words().word(to);
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
}

/// A redirection around something else than one simple command.
fn redirects_nothing_known(node: Node<'_>) -> bool {
    let body = node.child_by_field_name("body");
    body.is_none_or(|body| body.kind() != "command")
}
