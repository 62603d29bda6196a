//! What a computed word may be, for the sake of what nobody can want: the words that a line itself holds
//! (of loops, lists, functions, texts and pipes) are tried one by one where something is written or
//! deleted. A guess can only refuse: what is asked and what is allowed does not depend on it.

use super::finds::Extent;
use super::loose::{self, End, Loose, Statement};
use super::parse::{Raw, Redirect};
use super::rough::{self, Rough};
use super::values::{self, Candidate, Values, is_computed};
use super::word::{Word, is_brace};
use super::wrappers::{self, Inside};
use super::{Analysis, Folder, Touch, TouchKind, When, analyse_within, floor, paths, reach};

/// Levels of scripts in scripts that are looked at here.
pub(super) const LEVELS: usize = 2;

/// What one line may cost: commands that are tried, scripts that are taken apart, places that are noted.
const TRIES_CAP: usize = 256;
const SCRIPTS_CAP: usize = 4;
const TOUCHES_CAP: usize = 256;

/// Bytes of a script that is taken apart; a longer one is looked through.
const SCRIPT_CAP_BYTES: usize = 16 << 10;

/// Words that are tried for one that is computed.
const VARIANTS_CAP: usize = 16;

/// Words of a command that is tried with all of them.
const WORDS_CAP: usize = 64;

/// How deep commands may stand in each other.
const DEPTH_CAP: usize = 5;

/// Where nothing is: a folder that nobody knows.
const NOWHERE: &str = "/dev/null";

const FOLDERS_CAP: usize = 4;

pub(super) fn add(line: &str, levels: usize, analysis: &mut Analysis) {
    let harmless = analysis.commands.iter().all(|command| command.harmless || command.only_moves);
    if levels == 0 || analysis.floor.is_some() || harmless || !is_worth(line) {
        return;
    }
    let mut guess = Guess {
        values: Values::default(),
        links: Vec::new(),
        found: Rough::default(),
        tries: 0,
        scripts: 0,
        levels,
    };
    guess.line(line, &[], DEPTH_CAP);
    analysis.floor = analysis.floor.take().or(guess.found.floor);
    let known = analysis.rough.len();
    for touch in guess.found.touches {
        if !analysis.rough[..known].contains(&touch) {
            analysis.rough.push(touch);
        }
    }
}

/// Whether anything in it is computed, handed on or run from a text.
fn is_worth(line: &str) -> bool {
    const SIGNS: &[&str] = &["$", "`", "|", "<<", "<(", "~", " -x", " -X", "exec", "&", "ln "];
    const RUNS: &[&str] = &["tmux", "screen", "env "];
    line.len() <= super::parse::LINE_CAP_BYTES
        && line.bytes().filter(|b| matches!(b, b'(' | b'{' | b'`' | b'<')).count() < 200
        && SIGNS.iter().chain(RUNS).any(|sign| line.contains(sign))
}

struct Guess {
    values: Values,
    /// Links that the line makes, and where they lead.
    links: Vec<(String, String)>,
    found: Rough,
    tries: usize,
    scripts: usize,
    levels: usize,
}

/// What a command gets from the one before it, or from the line.
#[derive(Default, Clone)]
struct Feed {
    candidates: Vec<Candidate>,
    texts: Vec<String>,
}

impl Guess {
    fn line(&mut self, line: &str, folders: &[Folder], depth: usize) {
        let read = loose::read(line);
        self.values.gather(&read);
        self.gather_links(&read);
        if let Some(at) = endless(&read) {
            let why = format!("it starts programs without end: {}", at.join(" "));
            self.found.floor.get_or_insert(why);
        }
        let mut folders = folders.to_vec();
        let mut around = Vec::new();
        let mut before: Option<&Statement<'_>> = None;
        for statement in &read.statements {
            let piped = before.filter(|before| before.end == Some(End::Pipe));
            self.statement(statement, piped, &folders, depth);
            self.inside_of(statement, &folders, depth);
            self.follow(statement, &mut folders);
            match statement.end {
                Some(End::Open) => around.push(folders.len()),
                Some(End::Close) => folders.truncate(around.pop().unwrap_or(folders.len())),
                _ => {}
            }
            before = Some(statement);
        }
    }

    /// Commands in the words of a statement: `x=$(rm -rf "$d")`.
    fn inside_of(&mut self, statement: &Statement<'_>, folders: &[Folder], depth: usize) {
        const SIGNS: &[&str] = &["rm", ">", "mv", "dd ", "find", "tee", "ch", "xargs", "sh", "mk"];
        if depth <= 1 {
            return;
        }
        for word in statement.words.iter().filter(|word| word.contains(['`', '('])) {
            for inner in values::commands_in(word) {
                if SIGNS.iter().any(|sign| inner.contains(sign)) {
                    self.line(&inner, folders, depth - 1);
                }
            }
        }
    }

    fn follow(&self, statement: &Statement<'_>, folders: &mut Vec<Folder>) {
        let words = command_of(&statement.words);
        if !matches!(words.first(), Some(&("cd" | "pushd"))) {
            return;
        }
        let to = words.iter().skip(1).find(|word| !word.starts_with('-') || **word == "-");
        let to = to.map_or_else(|| vec![Candidate::plain("~")], |to| self.values.of(to));
        let when = match statement.end {
            Some(End::And) => When::Surely,
            Some(End::Other) => When::IfThere,
            _ => When::Perhaps,
        };
        let (to, when) = match to.first() {
            Some(to) if to.text != "-" => (to.text.clone(), when),
            _ => (NOWHERE.to_owned(), When::Surely),
        };
        if folders.len() < FOLDERS_CAP {
            folders.push(Folder::new(to, when));
        }
    }

    fn gather_links(&mut self, read: &Loose<'_>) {
        for statement in &read.statements {
            let words = command_of(&statement.words);
            if words.first() != Some(&"ln") {
                continue;
            }
            let plain: Vec<&str> =
                words.iter().skip(1).copied().filter(|word| !word.starts_with('-')).collect();
            let (Some(target), Some(link)) = (plain.first(), plain.get(1)) else { continue };
            let targets = self.values.of(target);
            let links = self.values.of(link);
            if let (Some(target), Some(link)) = (targets.first(), links.first()) {
                let link = link.text.trim_end_matches('/').to_owned();
                self.links.push((link, target.text.clone()));
            }
        }
    }

    fn statement(
        &mut self,
        statement: &Statement<'_>,
        piped: Option<&Statement<'_>>,
        folders: &[Folder],
        depth: usize,
    ) {
        if self.tries > TRIES_CAP || self.found.touches.len() >= TOUCHES_CAP {
            return;
        }
        let words = command_of(&statement.words);
        // What only reads or says what it is given.
        let first = words.first().copied().unwrap_or_default();
        if statement.written.is_empty() && !is_telling(first) && reach::only_reads(first) {
            return;
        }
        let computed = words.iter().chain(&statement.written).any(|word| is_computed(word));
        if !computed && self.links.is_empty() && !words.iter().any(|word| is_telling(word)) {
            return;
        }
        let mut feed = Feed::default();
        if let Some(before) = piped {
            feed.candidates.extend(self.values.given_by(before));
            feed.texts.extend(self.values.texts_of(before));
        }
        let own = self.values.inputs(statement);
        feed.texts.extend(own.iter().map(|own| own.text.clone()));
        feed.texts.extend(statement.texts.iter().map(|text| (*text).to_owned()));
        feed.candidates.extend(self.values.words_of_inputs(statement));
        let moved_back = words.iter().any(|word| word.contains("OLDPWD"));
        let folders = match moved_back {
            true => &folders[..folders.len().saturating_sub(1)],
            false => folders,
        };
        for to in &statement.written {
            for candidate in self.values.of(to).into_iter().take(VARIANTS_CAP) {
                let redirect = Redirect { to: word_of(&candidate.text), writes: true };
                let raw = Raw { redirects: vec![redirect], ..raw_of(Vec::new(), folders) };
                self.judge("", &raw, None);
            }
        }
        for (raw, extent) in self.variants(words, folders) {
            self.command(&raw, &feed, extent, (depth, computed));
        }
    }

    /// The command with each of the words that a computed one may be.
    fn variants(&self, words: &[&str], folders: &[Folder]) -> Vec<(Raw, Option<Extent>)> {
        if words.is_empty() || matches!(words[0], "for" | "case" | "select" | "function" | "done") {
            return Vec::new();
        }
        let columns: Vec<Vec<Candidate>> = words.iter().map(|word| self.values.of(word)).collect();
        // Of a long list the first tells.
        let most = if words.len() > WORDS_CAP { 2 } else { VARIANTS_CAP };
        let count = columns.iter().map(Vec::len).max().unwrap_or_default().min(most);
        (0..count)
            .map(|at| {
                let mut made = Vec::new();
                let mut extent = None;
                for (word, column) in words.iter().zip(&columns) {
                    let candidate = column.get(at).or(column.last());
                    let Some(candidate) = candidate.filter(|_| !word.starts_with("<(")) else {
                        let source = (*word).to_owned();
                        made.push(Word { source, ..Word::default() });
                        continue;
                    };
                    extent = extent.max(candidate.extent);
                    // A star in quotes is a letter, unless it came from elsewhere.
                    let quotes = |q: &char| word.starts_with(*q) && word.ends_with(*q);
                    let quoted = ['"', '\''].iter().any(quotes);
                    match (quoted, is_computed(word)) {
                        (true, false) => {
                            made.push(Word { pattern: false, ..word_of(&candidate.text) });
                        }
                        (false, true) => {
                            made.extend(candidate.text.split_whitespace().map(word_of));
                        }
                        _ => made.push(word_of(&candidate.text)),
                    }
                }
                (raw_of(made, folders), extent)
            })
            .collect()
    }

    fn command(
        &mut self,
        raw: &Raw,
        feed: &Feed,
        extent: Option<Extent>,
        (depth, computed): (usize, bool),
    ) {
        self.tries += 1;
        if depth == 0 || self.tries > TRIES_CAP {
            return;
        }
        let name = raw.program().unwrap_or_default().to_owned();
        self.judge(&name, raw, extent);
        let deeper = (depth - 1, computed);
        let words: Vec<&str> = raw.words.iter().map(Word::text).collect();
        match name.as_str() {
            "tmux" | "screen" => return self.terminal(raw, depth),
            "at" | "batch" => return self.run_all(&feed.texts, &raw.folders),
            "." | "source" => return self.sourced(raw, feed),
            "env" if words.iter().any(|word| word.starts_with("-S") || word.starts_with("--s")) => {
                let split = |word: &str| word.starts_with("-S") || word.starts_with("--s");
                let at = words.iter().position(|word| split(word)).unwrap_or_default();
                let first = words[at].trim_start_matches("-S");
                let first = first.split_once('=').map_or(first, |(_, first)| first);
                let first = if first.starts_with("--") { "" } else { first };
                let rest = words.get(at + 1..).unwrap_or_default().join(" ");
                return self.run(&format!("{first} {rest}"), &raw.folders);
            }
            _ if wrappers::is_shell(&name) && !words.iter().any(|word| is_script_option(word)) => {
                return self.sourced(raw, feed);
            }
            _ => {}
        }
        let found = match name.as_str() {
            "find" | "fd" | "fdfind" => self.values.found_by(raw),
            "xargs" | "parallel" => {
                let files = raw.words.iter().filter(|word| word.source.starts_with("<("));
                let listed = files.flat_map(|word| self.values.of(&word.source));
                feed.candidates.iter().cloned().chain(listed).collect()
            }
            _ => Vec::new(),
        };
        let hands_on = matches!(name.as_str(), "find" | "fd" | "fdfind" | "xargs" | "parallel");
        for inside in wrappers::inside(&name, raw) {
            match inside {
                Inside::Command(inner) if hands_on => {
                    for candidate in found.iter().take(VARIANTS_CAP) {
                        let given = given(&name, raw, &inner, candidate);
                        self.command(&given, feed, candidate.extent, (depth - 1, true));
                    }
                }
                Inside::Command(inner) => self.command(&inner, feed, extent, deeper),
                Inside::Line(line) if wrappers::is_shell(&name) => {
                    let at = raw.words.iter().position(|word| word.text() == line);
                    let behind = at.and_then(|at| raw.words.get(at + 1..)).unwrap_or_default();
                    let behind = behind
                        .iter()
                        .map(|word| Candidate { text: word.text().to_owned(), extent });
                    let behind: Vec<Candidate> = behind.collect();
                    let before = self.values.with_positional(behind);
                    if computed {
                        self.run(&line, &raw.folders);
                    }
                    self.line(&line, &raw.folders, depth - 1);
                    self.values.restore_positional(before);
                }
                Inside::Line(line) => {
                    for candidate in found.iter().take(VARIANTS_CAP).filter(|_| hands_on) {
                        let line = format!("{} {}", line.replace("{}", ""), candidate.text);
                        self.run(&line, &raw.folders);
                    }
                    if computed {
                        self.run(&line, &raw.folders);
                    }
                    self.line(&line, &raw.folders, depth - 1);
                }
                Inside::Unknown(_) => {}
            }
        }
    }

    /// A shell that reads its script from elsewhere: a pipe, a text, another command.
    fn sourced(&mut self, raw: &Raw, feed: &Feed) {
        let words = raw.words.get(1..).unwrap_or_default();
        let process = words.iter().find_map(|word| {
            word.source.strip_prefix("<(").and_then(|inner| inner.strip_suffix(')'))
        });
        if let Some(inner) = process {
            let texts = self.values.texts_in(inner);
            return self.run_all(&texts, &raw.folders);
        }
        let file = words.iter().find(|word| !word.text().starts_with('-'));
        let shell = raw.program().is_some_and(wrappers::is_shell);
        let reads = words.iter().any(|word| word.text().starts_with("-s"));
        let own = file.is_none_or(|file| matches!(file.text(), "/dev/stdin" | "/dev/fd/0"));
        if own || shell && reads {
            self.run_all(&feed.texts, &raw.folders);
        }
    }

    /// Words that a terminal runs or types.
    fn terminal(&mut self, raw: &Raw, depth: usize) {
        for word in raw.words.iter().skip(1).filter(|word| word.text().contains(' ')) {
            self.run(word.text(), &raw.folders);
        }
        let runs = |word: &Word| {
            let name = word.text().rsplit('/').next().unwrap_or_default();
            paths::destroys(name) || wrappers::is_shell(name) || wrappers::is_known(name)
        };
        if let Some(at) = raw.words.iter().skip(1).position(runs) {
            let inner = raw.inside(raw.words.get(at + 1..).unwrap_or_default());
            self.command(&inner, &Feed::default(), None, (depth - 1, true));
        }
    }

    fn run_all(&mut self, scripts: &[String], folders: &[Folder]) {
        scripts.iter().for_each(|script| self.run(script, folders));
    }

    /// Takes a script apart as if the line had said it.
    fn run(&mut self, script: &str, folders: &[Folder]) {
        self.scripts += 1;
        if self.scripts > SCRIPTS_CAP {
            return;
        }
        if script.len() > SCRIPT_CAP_BYTES {
            let rough = rough::look(script, folders);
            self.found.floor = self.found.floor.take().or(rough.floor);
            return rough.touches.into_iter().for_each(|touch| self.note(touch));
        }
        let analysis = analyse_within(script, self.levels - 1);
        if let Some(why) = analysis.floor {
            self.found.floor.get_or_insert(why);
        }
        let touches = analysis.commands.into_iter().flat_map(|command| command.touches);
        for mut touch in touches.chain(analysis.rough) {
            touch.folders.splice(0..0, folders.iter().cloned());
            self.note(touch);
        }
    }

    fn judge(&mut self, name: &str, raw: &Raw, extent: Option<Extent>) {
        let mut touches = paths::touches(name, raw);
        if let Some(why) = floor::of(name, raw, &touches) {
            self.found.floor.get_or_insert(why);
        }
        touches.extend(reach::of(name, raw, &touches));
        for mut touch in touches {
            if let Some(extent) = extent {
                touch.kind = widened(name, touch.kind, extent);
            }
            for (link, target) in &self.links {
                let rest = touch.path.strip_prefix(link.as_str());
                if let Some(rest) = rest.filter(|rest| rest.starts_with('/')) {
                    let path = format!("{target}{rest}");
                    let led = Touch { path, ..touch.clone() };
                    if led.kind != TouchKind::Read && self.found.touches.len() < TOUCHES_CAP {
                        self.found.touches.push(led);
                    }
                }
            }
            self.note(touch);
        }
    }

    fn note(&mut self, touch: Touch) {
        let counts = touch.kind != TouchKind::Read && self.found.touches.len() < TOUCHES_CAP;
        if counts && !self.found.touches.contains(&touch) {
            self.found.touches.push(touch);
        }
    }
}

/// What is done to files that were found is done to the folder that they were found in, as far as they are
/// all of it.
fn widened(name: &str, kind: TouchKind, extent: Extent) -> TouchKind {
    let deletes = matches!(name, "rm" | "unlink" | "shred" | "rmdir" | "srm" | "truncate");
    match (kind, extent) {
        (TouchKind::Read, _) => TouchKind::Read,
        (_, Extent::Some) => TouchKind::Write,
        (TouchKind::Write, Extent::All) if deletes => TouchKind::DeleteTree,
        (TouchKind::Write, _) | (_, Extent::Most) => TouchKind::ChangeTree,
        (kind, Extent::All) => kind,
    }
}

/// The command that gets what was found: in place of `{}`, or behind its own words.
fn given(name: &str, raw: &Raw, inner: &Raw, candidate: &Candidate) -> Raw {
    let texts: Vec<&str> = raw.words.iter().map(Word::text).collect();
    let named = texts.windows(2).find(|pair| matches!(pair[0], "-I" | "--replace"));
    let attached = texts
        .iter()
        .find_map(|word| word.strip_prefix("-I").or_else(|| word.strip_prefix("--replace=")));
    let own = match name {
        "xargs" => named.map(|pair| pair[1]).or(attached).filter(|own| !own.is_empty()),
        _ => None,
    };
    let place = own.unwrap_or("{}");
    let mut words: Vec<Word> = inner
        .words
        .iter()
        .map(|word| match word.text().contains(place) {
            true => word_of(&word.text().replace(place, &candidate.text)),
            false => word.clone(),
        })
        .collect();
    let placed = inner.words.iter().any(|word| word.text().contains(place));
    if !placed && name != "find" {
        words.push(word_of(&candidate.text));
    }
    let mut given = raw.inside(&words);
    given.folders.clone_from(&inner.folders);
    given
}

fn raw_of(words: Vec<Word>, folders: &[Folder]) -> Raw {
    let text = words.iter().map(|word| word.source.as_str()).collect::<Vec<_>>().join(" ");
    Raw { text, words, folders: folders.to_vec(), ..Raw::default() }
}

fn word_of(text: &str) -> Word {
    let pattern = text.contains(['*', '?', '[']) || is_brace(text);
    let (text, source) = (Some(text.to_owned()), text.to_owned());
    Word { text, pattern, source, home: true, ..Word::default() }
}

fn is_script_option(word: &str) -> bool {
    word.starts_with('-') && !word.starts_with("--") && word.contains('c')
}

/// Programs that run what they get from elsewhere, or hand it on.
fn is_telling(word: &str) -> bool {
    let name = word.rsplit('/').next().unwrap_or_default();
    matches!(
        name,
        "xargs"
            | "parallel"
            | "find"
            | "fd"
            | "fdfind"
            | "tmux"
            | "screen"
            | "at"
            | "batch"
            | "trap"
            | "eval"
            | "source"
            | "."
            | "env"
    ) || wrappers::is_shell(name)
}

/// The words of a simple command, behind what the shell says itself and the variables set for it.
pub(super) fn command_of<'s, 'l>(words: &'s [&'l str]) -> &'s [&'l str] {
    let words = match words {
        ["function", _, rest @ ..] => rest,
        words => words,
    };
    let skips = |word: &&&str| {
        matches!(
            **word,
            "do" | "then" | "else" | "elif" | "if" | "while" | "until" | "{" | "}" | "!" | "time"
        ) || is_assignment(word)
    };
    let skipped = words.iter().take_while(skips).count();
    words.get(skipped..).unwrap_or_default()
}

pub(super) fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        let name = name.trim_end_matches('+');
        !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
    })
}

/// The head of a loop that never ends and does nothing but start programs beside itself.
fn endless<'l>(read: &'l Loose<'l>) -> Option<&'l [&'l str]> {
    let all = &read.statements;
    let forever = |statement: &Statement<'_>| {
        matches!(
            statement.words.as_slice(),
            ["while", "true" | ":" | "1" | "((1))"] | ["until", "false"] | ["for", "((;;))"]
        )
    };
    let at = all.iter().position(forever)?;
    let body = all.get(at + 1..)?.iter().take_while(|one| one.words.first() != Some(&"done"));
    let mut started = 0;
    for statement in body.filter(|one| !command_of(&one.words).is_empty()) {
        match statement.end {
            Some(End::Background) => started += 1,
            _ => return None,
        }
    }
    (started > 0).then_some(all.get(at)?.words.as_slice())
}
