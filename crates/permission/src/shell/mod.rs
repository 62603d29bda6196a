//! What a shell command would do, as far as its text tells: each simple command in it, the paths they
//! name, and what cannot be known. Nothing is run and nothing is looked up.
//!
//! What is not understood is never taken for harmless: a line that does not parse, a command that is
//! computed, a script in another language, and whatever two readers of the line read differently
//! (`direct.rs`, or `walk.rs` by the grammar of bash, and `plain.rs` by a few rules of its own).

mod arity;
mod deep;
mod direct;
mod direct_forms;
mod direct_sets;
mod direct_word;
mod floor;
mod grammar;
mod harmless;
mod mentions;
mod parse;
mod paths;
mod plain;
mod print;
mod rough;
mod runners;
mod spelled;
mod walk;
mod word;
mod wrappers;

#[cfg(test)]
mod tests;

use parse::{Raw, Reader};

pub use floor::is_raw_device;
pub use mentions::mentions;
pub use print::reprint;
pub use word::Word;

/// How deep a command may hide in others (`sh -c "sh -c …"`) before it counts as unknown.
const DEPTH: usize = 4;

/// Commands of a line that are looked at one by one.
const COMMANDS_CAP: usize = 1_000;

/// A command line, taken apart.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Analysis {
    pub commands: Vec<ShellCommand>,
    /// What cannot be judged, each with its reason.
    pub unknown: Vec<String>,
    /// Something in it changes what its commands mean: none of them is harmless.
    pub tainted: bool,
    /// Something that nobody can want, whatever the rules say.
    pub floor: Option<String>,
    /// What a part of it may write or delete that could not be taken apart: not what it does, but enough to
    /// refuse what nobody can want.
    pub rough: Vec<Touch>,
}

/// One simple command of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShellCommand {
    /// As rules see it: its own text, with redirections and variables before it.
    pub text: String,
    /// As it would be written plainly, if that is something else.
    pub spelled: Option<String>,
    /// The pattern that a person who says "always" would agree to.
    pub always: String,
    /// Reads only, prints, and can neither run something else nor be turned into something else by
    /// its arguments. What it reads is in `touches`, all of it.
    pub harmless: bool,
    /// A program that takes orders from files of the folder that it runs in.
    pub obeys_folder: Option<Obeys>,
    /// Changes the folder and does nothing else: rules are not asked about it.
    pub only_moves: bool,
    pub touches: Vec<Touch>,
    /// Where the line has gone before this command, one after the other.
    pub folders: Vec<Folder>,
}

/// Whose orders a program takes where it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Obeys {
    /// A repository's configuration and hooks.
    Git,
    /// A file that chooses the version of the tool chain.
    Toolchain,
}

/// A path that a command names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Touch {
    /// As written, unquoted; relative to `folders`. `~` is the home folder.
    pub path: String,
    pub kind: TouchKind,
    /// The shell looks for what matches it.
    pub pattern: bool,
    /// The folders that the line has changed to before, one after the other.
    pub folders: Vec<Folder>,
    /// Of a folder, what is below it is read too.
    pub below: Option<Below>,
}

/// What of a folder a command reads that looks through all of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Below {
    /// Also what begins with a dot.
    pub hidden: bool,
    /// Only what is called like one of these; everything if there is none.
    pub only: Vec<String>,
    /// Links in it are followed.
    pub links: bool,
}

/// A folder that a line changes to.
#[derive(Debug, Clone, Eq)]
pub struct Folder {
    pub path: String,
    pub when: When,
    /// It stood behind a condition: sure only as long as that is known to hold.
    pub(crate) conditional: bool,
}

/// How it came to be sure is of no account to whoever looks at a whole line.
impl PartialEq for Folder {
    fn eq(&self, other: &Self) -> bool {
        (&self.path, self.when) == (&other.path, other.when)
    }
}

impl Folder {
    pub(crate) fn new(path: String, when: When) -> Self {
        Self { path, when, conditional: false }
    }
}

/// Whether a command behind a change of the folder runs there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// It runs only if the change worked: `cd x && …`.
    Surely,
    /// The change works if there is such a folder: `cd x; …`.
    IfThere,
    /// The change may not have been tried: `a && cd x; …`.
    Perhaps,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TouchKind {
    Read,
    Write,
    /// Deletes a folder with everything in it.
    DeleteTree,
    /// Takes a folder away, or changes it with everything in it.
    ChangeTree,
}

/// Takes a command line apart.
pub fn analyse(line: &str) -> Analysis {
    analyse_by(line, Reader::First)
}

/// What the two readers make of a line that both can read as a whole, to be compared: nothing of a line
/// that one of them gives up on. Where the grammar is less sure of a folder, so is the first of both: it
/// takes `a && b | c` for a pipe with a list in it, now and then.
pub fn readings(line: &str) -> Option<(Analysis, Analysis)> {
    let read = direct::parse(line, &[]).filter(|_| !parse::has_unseen(line))?;
    let tree = parse::parse(line, &[], Reader::Grammar);
    let all = |raw: &Raw| -> Vec<Word> {
        raw.words.iter().chain(raw.redirects.iter().map(|redirect| &redirect.to)).cloned().collect()
    };
    let gives_up = |(own, other): (&Raw, &Raw)| {
        all(own).iter().zip(all(other)).any(|(own, other)| {
            own.text.is_some() != other.text.is_some() || other.pattern != own.pattern
        })
    };
    if !tree.problems.is_empty() || read.commands.iter().zip(&tree.commands).any(gives_up) {
        return None;
    }
    let mut direct = analyse_by(line, Reader::First);
    let mut grammar = analyse_by(line, Reader::Grammar);
    // It may give up on a line inside the line: `bash -c 'x\@'`.
    let unread = |problem: &String| problem == parse::UNREAD || !direct.unknown.contains(problem);
    if grammar.unknown.iter().any(unread) {
        return None;
    }
    let weaken = |own: &mut [Folder], other: &[Folder]| {
        let unsure = own.iter_mut().zip(other).filter(|(_, other)| other.when == When::Perhaps);
        unsure.for_each(|(own, _)| own.when = When::Perhaps);
    };
    for (own, other) in direct.commands.iter_mut().zip(&mut grammar.commands) {
        weaken(&mut own.folders, &other.folders);
        // The grammar is not asked what stands behind a pipe.
        other.touches.retain(|touch| touch.below.is_none() || own.touches.contains(touch));
        for (own, other) in own.touches.iter_mut().zip(&other.touches) {
            weaken(&mut own.folders, &other.folders);
        }
    }
    Some((direct, grammar))
}

fn analyse_by(line: &str, reader: Reader) -> Analysis {
    let mut analysis = Analysis::default();
    let parsed = parse::parse(line, &[], reader);
    let alike = harmless::reads_alike(line, &parsed.commands);
    look_at(parsed, alike, (DEPTH, reader), &mut analysis);
    if analysis.tainted || !analysis.unknown.is_empty() || analysis.floor.is_some() {
        analysis.commands.iter_mut().for_each(|command| command.harmless = false);
    }
    analysis
}

/// How many levels more are looked at, and who reads them.
type Deeper = (usize, Reader);

fn look_at(parsed: parse::Parsed, alike: bool, depth: Deeper, analysis: &mut Analysis) {
    for problem in parsed.problems {
        note(problem, analysis);
    }
    analysis.floor = analysis.floor.take().or(parsed.floor);
    analysis.tainted |= parsed.tainted;
    analysis.rough.extend(parsed.rough);
    for raw in parsed.commands {
        look_at_command(&raw, alike, depth, analysis);
    }
}

/// What is not looked at any more may still be something that nobody can want.
fn look_roughly(raw: &Raw, why: String, analysis: &mut Analysis) {
    note(why, analysis);
    let rough = rough::look(&raw.text, &raw.folders);
    analysis.floor = analysis.floor.take().or(rough.floor);
    analysis.rough.extend(rough.touches);
}

fn note(problem: String, analysis: &mut Analysis) {
    if !analysis.unknown.contains(&problem) {
        analysis.unknown.push(problem);
    }
}

/// The folder that a command changes to, if it does: nothing inside where that is not known.
fn moves(raw: &Raw) -> Option<Option<String>> {
    let wrapper = |word: &&Word| matches!(word.text(), "command" | "builtin" | "--");
    let words: Vec<&Word> = raw.words.iter().skip_while(wrapper).collect();
    let (first, rest) = words.split_first()?;
    let name = first.text();
    if !matches!(name, "cd" | "chdir" | "pushd" | "popd") {
        return None;
    }
    // Not every shell knows it.
    if name == "chdir" {
        return Some(None);
    }
    // With any other option it stays where it is, or nobody knows.
    let option = |word: &&&Word| name == "cd" && matches!(word.text(), "-P" | "-L" | "-e");
    let mut rest: Vec<&&Word> = rest.iter().skip_while(option).collect();
    if rest.first().is_some_and(|word| word.text() == "--") {
        rest.remove(0);
    } else if rest.iter().any(|word| word.text().starts_with('-')) {
        return Some(None);
    }
    Some(match rest.as_slice() {
        [] if name == "cd" => Some("~".to_owned()),
        [folder] if name != "popd" && folder.text.is_some() && !folder.pattern => {
            let numbered = folder.text().starts_with(['-', '+']);
            folder.paths().into_iter().next().filter(|_| !numbered)
        }
        _ => None,
    })
}

fn look_at_command(raw: &Raw, alike: bool, depth: Deeper, analysis: &mut Analysis) {
    if analysis.commands.len() >= COMMANDS_CAP {
        return look_roughly(raw, "it holds too many commands to be judged".to_owned(), analysis);
    }
    let name = raw.program();
    if name.is_none() && !raw.words.is_empty() {
        note(format!("which program runs is computed: {}", raw.text), analysis);
    }
    let name = name.unwrap_or_default();
    analysis.tainted |= matches!(
        name,
        "alias"
            | "unalias"
            | "trap"
            | "enable"
            | "hash"
            | "shopt"
            | "set"
            | "setopt"
            | "bind"
            | "complete"
    );
    let only_moves = matches!(name, "cd" | "chdir" | "pushd" | "popd")
        && raw.redirects.is_empty()
        && raw.assigned.is_empty()
        && !raw.is_path();
    let harmless = if alike && !only_moves { harmless::judge(name, raw) } else { None };
    let mut folders = raw.folders.clone();
    let (is_harmless, obeys_folder, mut touches): (bool, Option<Obeys>, Vec<Touch>) = match harmless
    {
        Some(harmless) => {
            folders.extend(harmless.into.map(|path| Folder::new(path, When::Surely)));
            let redirects =
                raw.redirects.iter().flat_map(|r| paths::of_word(&r.to, TouchKind::Read, raw));
            let reads = redirects.filter(|touch| touch.path != "/dev/null").collect::<Vec<_>>();
            (true, harmless.obeys, reads.into_iter().chain(harmless.reads).collect())
        }
        None => {
            let touches = paths::touches(name, raw);
            analysis.floor = analysis.floor.take().or_else(|| floor::of(name, raw, &touches));
            (false, None, touches)
        }
    };
    deep::mark(name, raw, &mut touches);
    analysis.commands.push(ShellCommand {
        text: raw.text.clone(),
        spelled: spelled::plainly(raw),
        always: arity::always(raw),
        harmless: is_harmless,
        obeys_folder,
        only_moves,
        touches,
        folders,
    });
    if is_harmless || only_moves {
        return;
    }
    if let Some(why) = runners::runs(name, raw) {
        note(why, analysis);
    }
    let (levels, reader) = depth;
    for inside in wrappers::inside(name, raw) {
        let deeper = (levels.saturating_sub(1), reader);
        match inside {
            _ if levels == 0 => {
                let why = format!("too many commands inside each other: {}", raw.text);
                look_roughly(raw, why, analysis);
            }
            wrappers::Inside::Command(inner) => look_at_command(&inner, false, deeper, analysis),
            wrappers::Inside::Line(line) => {
                look_at(parse::parse(&line, &raw.folders, reader), false, deeper, analysis);
            }
            wrappers::Inside::Unknown(why) => note(why, analysis),
        }
    }
}
