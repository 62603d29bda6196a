//! Commands read off the tree that the grammar of bash makes of a line.

use tree_sitter::Node;

use super::direct_sets::{is_among, is_set_in, sets};
use super::grammar::{loses, tree_of};
use super::parse::{Input, Parsed, Raw, Redirect, TOO_DEEP, UNREAD, is_powerful};
use super::word::{Variables, Word, Words, has_bare_blank, is_stretched};
use super::{Folder, When};

/// Levels of a tree that are looked at: nobody nests deeper, and the stack has an end.
const DEPTH_CAP: usize = 200;

/// Changes of the folder that are followed in one line.
const FOLDERS_CAP: usize = 16;

/// The commands of a line, in addition to what is known of it already.
pub(super) fn walk(line: &str, folders: &[Folder], mut parsed: Parsed) -> Parsed {
    let Some(tree) = tree_of(line) else {
        parsed.problem(UNREAD);
        return parsed;
    };
    if tree.root_node().has_error() {
        parsed.problem(UNREAD);
    }
    let variables = Variables::new();
    let (functions, calls) = (Vec::new(), super::floor::Calls::default());
    let (depth, beside, unsure, around, stretched) = (0, 0, 0, None, false);
    let mut walk = Walk {
        line,
        parsed,
        variables,
        folders: folders.to_vec(),
        functions,
        calls,
        depth,
        beside,
        unsure,
        around,
        stretched,
    };
    walk.visit(tree.root_node());
    let floor = walk.calls.bomb();
    let is_whole = !tree.root_node().has_error() && !walk.stretched;
    let mut parsed = walk.parsed;
    parsed.floor = floor;
    if !is_whole {
        super::rough::add_fragments(line, &mut parsed);
    }
    if parsed.problems.iter().any(|problem| problem == UNREAD || problem == TOO_DEEP) {
        parsed.look_roughly(line, folders);
    }
    if parsed.commands.is_empty() && !line.trim().is_empty() && parsed.problems.is_empty() {
        let only_sets = Raw { text: line.trim().to_owned(), ..Raw::default() };
        parsed.commands.push(only_sets);
    }
    parsed
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
    /// Statements around it that may not run, or not in this shell: what they set is not known behind them.
    unsure: usize,
    /// The redirected statement whose command is looked at next. Asking a node for what stands around it
    /// would search the whole tree.
    around: Option<Node<'t>>,
    /// A test took commands behind it for its own.
    stretched: bool,
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
            self.parsed.problem(TOO_DEEP);
            return;
        }
        let unsure = usize::from(is_unsure(node));
        self.depth += 1;
        self.unsure += unsure;
        self.visit_one(node);
        self.unsure -= unsure;
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
                self.forget_what_changes(node);
                self.parsed.tainted = true;
                let beside = std::mem::take(&mut self.beside);
                self.children(node);
                self.beside = beside;
                self.functions.pop();
                self.perhaps(known);
            }
            "test_command" if is_stretched(self.text(node)) => {
                self.stretched = true;
                self.parsed.problem(UNREAD);
                self.children(node);
            }
            "redirected_statement" => self.redirected(node),
            "list" => self.list(node),
            // Where these go, the rest of the line does not follow.
            "subshell" | "command_substitution" | "process_substitution" => {
                // `$(< file)` reads it without a command.
                let mut cursor = node.walk();
                let reads = node.named_children(&mut cursor).any(|c| c.kind() == "file_redirect");
                if reads {
                    self.redirect_of_group(node);
                }
                self.children(node);
                self.folders.truncate(known);
            }
            // In most shells the same; in some the last of a pipe is the shell itself.
            "pipeline" => {
                self.beside += 1;
                let (around, last) = (self.around.take(), last_statement(node));
                let mut cursor = node.walk();
                for child in node.named_children(&mut cursor) {
                    self.around = around.filter(|_| Some(child) == last);
                    self.visit(child);
                    self.perhaps(known);
                }
                self.beside -= 1;
            }
            "if_statement" | "case_statement" | "elif_clause" | "else_clause" | "case_item" => {
                self.branches(node);
                self.perhaps(known);
            }
            "for_statement" | "while_statement" | "c_style_for_statement" => {
                self.forget_what_changes(node);
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

    /// What is set further on counts from the start where it is run again, or only later.
    fn forget_what_changes(&mut self, node: Node<'t>) {
        let rest = self.line.get(node.start_byte()..).unwrap_or_default();
        let changed = self.variables.iter_mut().filter(|(name, _)| is_set_in(rest, name));
        changed.for_each(|(_, value)| *value = None);
    }

    /// What was gone into since then was perhaps not.
    fn perhaps(&mut self, known: usize) {
        let gone = self.folders.get_mut(known..).unwrap_or_default();
        gone.iter_mut().for_each(|folder| folder.when = When::Perhaps);
    }

    /// As [`Self::children`], where one of several ways is taken.
    fn branches(&mut self, node: Node<'t>) {
        self.statements(node, self.folders.len());
    }

    fn children(&mut self, node: Node<'t>) {
        self.statements(node, usize::MAX);
    }

    /// Statements one after the other: none of them knows how the one before ended. In front of another
    /// way that a condition may take, where the ones before it went since `since` was perhaps not gone.
    fn statements(&mut self, node: Node<'t>, since: usize) {
        let mut cursor = node.walk();
        let children: Vec<Node<'t>> = node.children(&mut cursor).collect();
        let is_and = |at: usize| children.get(at).is_some_and(|n| n.kind() == "&");
        for (at, child) in children.iter().enumerate().filter(|(_, child)| child.is_named()) {
            if matches!(child.kind(), "elif_clause" | "else_clause") {
                self.perhaps(since);
            }
            let known = self.folders.len();
            let background = is_and(at + 1);
            let beside = background || at > 0 && is_and(at - 1);
            self.beside += usize::from(beside);
            self.unsure += usize::from(background);
            self.visit(*child);
            self.unsure -= usize::from(background);
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

    /// What stands inside a command. Variables that are set for it alone were looked at.
    fn inside(&mut self, node: Node<'t>) {
        let mut cursor = node.walk();
        for child in node.named_children(&mut cursor) {
            match child.kind() {
                "variable_assignment" => self.children(child),
                _ => self.visit(child),
            }
        }
    }

    /// `a && b`, `a || b`: what stands on the right runs only if the left ended as it should.
    fn list(&mut self, node: Node<'t>) {
        let known = self.folders.len();
        let (around, last) = (self.around.take(), last_statement(node));
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
            let unsure = usize::from(!operator.is_empty());
            self.around = around.filter(|_| Some(child) == last);
            self.unsure += unsure;
            self.visit(child);
            self.unsure -= unsure;
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
        let named = self.text(node.child_by_field_name("name")?);
        // A part of a list: the first of it is the variable itself.
        let whole = !named.contains('[');
        let name = named.split('[').next().unwrap_or_default().to_owned();
        if is_powerful(&name) {
            self.parsed.tainted = true;
        }
        let value = node.child_by_field_name("value").map(|value| self.words().word(value));
        let first = !self.variables.contains_key(&name);
        // A value is good for the rest of the line if it is set for sure, and nothing else ever sets it.
        let plain = first && whole && self.unsure == 0 && !self.text(node).contains("+=");
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
        self.distrust_gaps(node);
        let text = self.text(node).to_owned();
        let first = text.split_whitespace().next().unwrap_or_default().to_owned();
        let word =
            Word { text: Some(first.clone()), source: first, token: true, ..Word::default() };
        let folders = self.folders.clone();
        // Another name for a variable sets it unseen.
        if text.contains(" -n") {
            self.variables.values_mut().for_each(|value| *value = None);
        }
        self.parsed.commands.push(Raw { text, words: vec![word], folders, ..Raw::default() });
        if node.kind() == "unset_command" {
            let mut cursor = node.walk();
            let names = node.named_children(&mut cursor).map(|name| self.text(name).to_owned());
            let names: Vec<String> = names.collect();
            self.variables.extend(names.into_iter().map(|name| (name, None)));
        }
        self.children(node);
    }

    /// The grammar hangs the redirections of a line's last command on all of the line, and takes the
    /// words that follow one for more places to write to.
    fn redirected(&mut self, node: Node<'t>) {
        if loses(self.line, node) {
            self.parsed.problem(UNREAD);
        }
        let body = node.child_by_field_name("body");
        match body {
            Some(body) if last_command(body).is_some() => {
                self.around = Some(node);
                self.visit(body);
                self.around = None;
            }
            Some(_) => {
                self.redirect_of_group(node);
                return self.children(node);
            }
            None => return self.redirect_before(node),
        }
        let mut cursor = node.walk();
        for child in node.named_children(&mut cursor).filter(|c| Some(*c) != body) {
            self.visit(child);
        }
    }

    /// `{ …; } > file` and the like: the redirection belongs to no single command.
    fn redirect_of_group(&mut self, node: Node<'t>) {
        let Redirects { found, more, .. } = self.redirects(node);
        if !more.is_empty() {
            self.parsed.problem("words follow a redirection");
        }
        let text = self.text(node).trim().to_owned();
        let folders = self.folders.clone();
        self.parsed.commands.push(Raw { text, redirects: found, folders, ..Raw::default() });
    }

    /// `> file command`: what follows the file is the command.
    fn redirect_before(&mut self, node: Node<'t>) {
        let Redirects { found, more, input } = self.redirects(node);
        let text = self.text(node).trim().to_owned();
        let folders = self.folders.clone();
        let raw = Raw { text, words: more, redirects: found, folders, input, ..Raw::default() };
        self.take(raw, node);
    }

    /// A word in front of a redirection (`-n2>x`) is taken for the descriptor, and a descriptor (`0<x`) for
    /// a word.
    fn distrust_descriptor(&mut self, node: Node<'t>) {
        let before = self.line.get(..node.start_byte()).unwrap_or_default();
        let digits = before.trim_end_matches(|c: char| c.is_ascii_digit());
        let alone =
            digits.len() < before.len() && digits.ends_with([' ', '\t', '\n', ';', '|', '&']);
        let descriptor = node.child_by_field_name("descriptor").map(|node| self.text(node));
        if descriptor.is_some_and(|text| text.contains('-')) || descriptor.is_none() && alone {
            self.parsed.problem(UNREAD);
        }
    }

    /// The grammar now and then takes the next line for more words of a command, and one word for two:
    /// then nothing that it says is to be relied on.
    fn distrust_gaps(&mut self, node: Node<'t>) {
        let is_word = |child: &Node<'t>| {
            child.is_named()
                && !matches!(
                    child.kind(),
                    "file_redirect" | "herestring_redirect" | "file_descriptor" | "subshell"
                )
        };
        let mut cursor = node.walk();
        let (mut end, mut after_word) = (node.start_byte(), false);
        for child in node.children(&mut cursor) {
            let gap = self.line.get(end..child.start_byte()).unwrap_or_default();
            end = child.end_byte();
            let joins = gap.replace("\\\n", "").contains('\n');
            let splits = gap.is_empty() && after_word && is_word(&child);
            after_word = is_word(&child);
            // A line end before a backslash is taken for a letter of the next word.
            let text = self.text(child);
            let begins = text.starts_with(char::is_whitespace);
            // `] ]` is taken for one word.
            let holds = child.kind() == "word" && has_bare_blank(text);
            if joins || splits || begins || holds {
                self.parsed.problem(UNREAD);
            }
        }
    }

    fn command(&mut self, node: Node<'t>) {
        self.distrust_gaps(node);
        let mut raw = Raw { folders: self.folders.clone(), ..Raw::default() };
        let around = self.around.take();
        let end = around.unwrap_or(node).end_byte();
        raw.text = self.line.get(node.start_byte()..end).unwrap_or_default().trim().to_owned();
        let mut more = Vec::new();
        if let Some(around) = around {
            let behind = self.redirects(around);
            (raw.redirects, raw.input, more) = (behind.found, behind.input, behind.more);
        }
        let before = self.redirects(node);
        raw.redirects.extend(before.found);
        if before.input != Input::Elsewhere {
            raw.input = before.input;
        }
        raw.words.extend(before.more);
        let mut cursor = node.walk();
        for child in node.children(&mut cursor) {
            match child.kind() {
                "variable_assignment" => {
                    // For this command alone: its own words do not see it, and what later ones see
                    // depends on the shell and the command.
                    let before = self.variables.clone();
                    let name = self.assignment(child);
                    self.variables = before;
                    raw.assigned.extend(name);
                }
                "file_redirect" | "comment" | "heredoc_redirect" | "herestring_redirect" => {}
                "command_name" => {
                    let inner = child.named_child(0).unwrap_or(child);
                    raw.words.push(self.words().word(inner));
                }
                _ => raw.words.push(self.words().word(child)),
            }
        }
        raw.words.append(&mut more);
        for name in &raw.assigned {
            self.variables.insert(name.clone(), None);
        }
        self.take(raw, node);
    }

    /// A simple command with all that was found of it, then what stands inside its words.
    fn take(&mut self, raw: Raw, node: Node<'t>) {
        self.calls.note(&raw, self.beside > 0, &self.functions);
        let (moved, set) = (super::moves(&raw), sets(&raw));
        self.parsed.commands.push(raw);
        self.inside(node);
        match set {
            None => {}
            Some(None) => self.variables.values_mut().for_each(|value| *value = None),
            Some(Some(names)) => {
                let known = self.variables.iter_mut().filter(|(own, _)| is_among(&names, own));
                known.for_each(|(_, value)| *value = None);
                self.variables.extend(names.into_iter().map(|name| (name, None)));
            }
        }
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

    /// The redirections right under a node, those behind a `<<END` included.
    fn redirects(&mut self, node: Node<'t>) -> Redirects {
        let mut all = Redirects::default();
        let mut cursor = node.walk();
        for child in node.named_children(&mut cursor) {
            match child.kind() {
                "file_redirect" => {
                    self.distrust_gaps(child);
                    self.distrust_descriptor(child);
                    self.redirect(child, &mut all);
                }
                "herestring_redirect" => all.input = self.input(child),
                "heredoc_redirect" => {
                    all.input = self.input(child);
                    let mut cursor = child.walk();
                    for inner in child.named_children(&mut cursor) {
                        match inner.kind() {
                            "file_redirect" => self.redirect(inner, &mut all),
                            "herestring_redirect" => all.input = self.input(inner),
                            _ => {}
                        }
                    }
                    let mut cursor = child.walk();
                    let words = child.children_by_field_name("argument", &mut cursor);
                    all.more.extend(words.map(|word| self.words().word(word)));
                }
                _ => {}
            }
        }
        all
    }

    fn redirect(&self, node: Node<'t>, all: &mut Redirects) {
        let operator = self.text(node).trim_start_matches(|c: char| c.is_ascii_digit());
        let mut cursor = node.walk();
        let mut words =
            node.children_by_field_name("destination", &mut cursor).map(|n| self.words().word(n));
        // `>&-` closes a descriptor and goes nowhere.
        let closes = operator.starts_with(">&-") || operator.starts_with("<&-");
        if !closes && let Some(to) = words.next() {
            // `2>&1` names a descriptor, not a file.
            let is_descriptor = (operator.starts_with(">&") || operator.starts_with("<&"))
                && to.text.as_ref().is_some_and(|t| t == "-" || t.parse::<u32>().is_ok());
            if !is_descriptor {
                let both = operator.starts_with("<>");
                if both {
                    all.found.push(Redirect { to: to.clone(), writes: false });
                }
                let writes = both || !operator.starts_with('<');
                all.found.push(Redirect { to, writes });
            }
        }
        all.more.extend(words);
    }
}

/// Whether what stands in it may not run, or not in this shell.
fn is_unsure(node: Node<'_>) -> bool {
    matches!(
        node.kind(),
        "function_definition"
            | "subshell"
            | "command_substitution"
            | "process_substitution"
            | "pipeline"
            | "if_statement"
            | "case_statement"
            | "for_statement"
            | "while_statement"
            | "c_style_for_statement"
    )
}

/// What stands behind a command.
#[derive(Debug, Default)]
struct Redirects {
    found: Vec<Redirect>,
    /// Words that follow a redirection, and belong to the command.
    more: Vec<Word>,
    input: Input,
}

/// The statement of a pipe or a list that a redirection behind it belongs to.
fn last_statement(node: Node<'_>) -> Option<Node<'_>> {
    let mut cursor = node.walk();
    node.named_children(&mut cursor).filter(|child| child.kind() != "comment").last()
}

/// The simple command that a redirection behind a statement belongs to, if it is one.
fn last_command(node: Node<'_>) -> Option<Node<'_>> {
    let mut at = node;
    for _ in 0..DEPTH_CAP {
        match at.kind() {
            "command" => return Some(at),
            "pipeline" | "list" => at = last_statement(at)?,
            _ => return None,
        }
    }
    None
}
