//! What a shell command would do, as far as its text tells: each simple command in it, the paths they
//! name, and what cannot be known. Nothing is run and nothing is looked up.
//!
//! What is not understood is never taken for harmless: a line that does not parse, a command that is
//! computed, a script in another language.

mod arity;
mod harmless;
mod parse;
mod paths;
mod wrappers;

#[cfg(test)]
mod tests;

use parse::Raw;

pub use parse::Word;

/// How deep a command may hide in others (`sh -c "sh -c …"`) before it counts as unknown.
const DEPTH: usize = 4;

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
}

/// One simple command of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShellCommand {
    /// As rules see it: its own text, with redirections and variables before it.
    pub text: String,
    /// The pattern that a person who says "always" would agree to.
    pub always: String,
    /// Reads only, prints, and can neither run something else nor be turned into something else by
    /// its arguments. What it reads is in `touches`.
    pub harmless: bool,
    /// Changes the folder and does nothing else: rules are not asked about it.
    pub only_moves: bool,
    pub touches: Vec<Touch>,
}

/// A path that a command names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Touch {
    /// As written, unquoted; relative to `folders`.
    pub path: String,
    pub kind: TouchKind,
    /// The folders that the line has changed to before, one after the other.
    pub folders: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TouchKind {
    Read,
    Write,
    /// Deletes a folder with everything in it.
    DeleteTree,
}

/// Takes a command line apart.
pub fn analyse(line: &str) -> Analysis {
    let mut analysis = Analysis::default();
    look_at(line, &mut Vec::new(), DEPTH, &mut analysis);
    analysis
}

fn look_at(line: &str, folders: &mut Vec<String>, depth: usize, analysis: &mut Analysis) {
    let parsed = parse::parse(line);
    analysis.unknown.extend(parsed.problems);
    analysis.floor = analysis.floor.take().or(parsed.floor);
    analysis.tainted |= parsed.tainted;
    for raw in parsed.commands {
        look_at_command(&raw, folders, depth, analysis);
    }
}

fn look_at_command(raw: &Raw, folders: &mut Vec<String>, depth: usize, analysis: &mut Analysis) {
    let name = raw.program();
    if name.is_none() && !raw.words.is_empty() {
        analysis.unknown.push(format!("which program runs is computed: {}", raw.text));
    }
    let name = name.unwrap_or_default();
    analysis.tainted |= matches!(name.as_str(), "alias" | "trap" | "enable" | "hash");
    let touches = paths::touches(raw, folders);
    let only_moves = matches!(name.as_str(), "cd" | "chdir" | "pushd" | "popd")
        && raw.redirects.is_empty()
        && raw.assigned.is_empty();
    analysis.floor = analysis.floor.take().or_else(|| paths::floor(&name, raw));
    analysis.commands.push(ShellCommand {
        text: raw.text.clone(),
        always: arity::always(raw),
        harmless: harmless::is_harmless(&name, raw),
        only_moves,
        touches,
    });
    if only_moves {
        match raw.words.get(1) {
            Some(Word { text: Some(folder), pattern: false, .. }) if name != "popd" => {
                folders.push(folder.clone());
            }
            None if name == "cd" => folders.push("~".to_owned()),
            _ => {
                analysis.unknown.push("the folder that it changes to is not known".to_owned());
                folders.push("/".to_owned());
            }
        }
        return;
    }
    match wrappers::inside(&name, raw) {
        wrappers::Inside::Nothing => {}
        _ if depth == 0 => {
            analysis.unknown.push(format!("too many commands inside each other: {}", raw.text));
        }
        wrappers::Inside::Command(inner) => look_at_command(&inner, folders, depth - 1, analysis),
        // A shell of its own: where it goes, the rest of the line does not follow.
        wrappers::Inside::Line(line) => {
            look_at(&line, &mut folders.clone(), depth - 1, analysis);
        }
        wrappers::Inside::Unknown(why) => analysis.unknown.push(why),
    }
}
