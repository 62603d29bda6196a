//! Lines that are too long, too deep or too tangled to be taken apart. They are asked about; and because
//! nobody may be there who asks back, they are still looked through for what nobody can want: quotes are
//! dropped, and whatever stands behind the name of a program that destroys counts as its words.

use super::parse::{Parsed, Raw, Redirect};
use super::word::{Word, is_brace};
use super::{Folder, Touch, TouchKind, When, floor, makers, paths};

/// Pieces of a line in doubt that are looked at by themselves.
const FRAGMENTS_CAP: usize = 64;

/// Places of one line that are noted. Where there are more, nobody can say what it does.
const TOUCHES_CAP: usize = 1_024;

/// Changes of the folder that are followed.
const FOLDERS_CAP: usize = 4;

/// What a line may destroy.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Rough {
    pub(crate) touches: Vec<Touch>,
    pub(crate) floor: Option<String>,
}

pub(super) fn look(line: &str, folders: &[Folder]) -> Rough {
    let mut found = Rough::default();
    let mut folders = folders.to_vec();
    let plain: String = line.chars().filter(|c| !matches!(c, '\'' | '"' | '\\')).collect();
    for statement in plain.split(['\n', ';', '|', '&', '(', ')', '`']) {
        let words: Vec<&str> = statement.split_whitespace().collect();
        for (at, word) in words.iter().enumerate() {
            let name = word.rsplit('/').next().unwrap_or_default();
            let behind = words.get(at..).unwrap_or_default();
            match name {
                "cd" | "pushd" => follow(behind, &mut folders),
                _ if paths::destroys(name) || makers::is_maker(name) => {
                    note(name, &raw(behind, &folders), &mut found);
                }
                _ => {}
            }
            if let Some(to) = written(word, behind) {
                let redirects = vec![Redirect { to: as_word(to), writes: true }];
                let raw = Raw { redirects, folders: folders.clone(), ..Raw::default() };
                note("", &raw, &mut found);
            }
        }
    }
    found
}

/// It may be there from here on.
fn follow(words: &[&str], folders: &mut Vec<Folder>) {
    let to = words.iter().skip(1).find(|word| !word.starts_with('-'));
    if let Some(to) = to.filter(|to| !to.contains('$') && folders.len() < FOLDERS_CAP) {
        folders.push(Folder::new((*to).to_owned(), When::Perhaps));
    }
}

/// Where a redirection writes to.
fn written<'l>(word: &'l str, behind: &[&'l str]) -> Option<&'l str> {
    let (_, to) = word.rsplit_once('>')?;
    match to.is_empty() {
        true => behind.get(1).copied(),
        false => Some(to),
    }
}

fn raw(words: &[&str], folders: &[Folder]) -> Raw {
    let words: Vec<&str> = words.iter().copied().take_while(|word| !word.contains('>')).collect();
    let text = words.join(" ");
    let words = words.iter().map(|word| as_word(word)).collect();
    Raw { text, words, folders: folders.to_vec(), ..Raw::default() }
}

fn as_word(text: &str) -> Word {
    let pattern = text.contains(['*', '?', '[']) || is_brace(text);
    let known = (!text.contains('$')).then(|| text.to_owned());
    Word { text: known, pattern, source: text.to_owned(), home: true, ..Word::default() }
}

fn note(name: &str, raw: &Raw, found: &mut Rough) {
    let touches = paths::touches(name, raw);
    found.floor = found.floor.take().or_else(|| floor::of(name, raw, &touches));
    for touch in touches.into_iter().filter(|touch| touch.kind != TouchKind::Read) {
        if found.touches.len() == TOUCHES_CAP {
            let why = "it writes or deletes in more places than can be looked at";
            found.floor.get_or_insert_with(|| why.to_owned());
            return;
        }
        if !found.touches.contains(&touch) {
            found.touches.push(touch);
        }
    }
}

/// What the grammar lost of a line that it could not read as a whole (`cat <<E; rm x`) and that is plain
/// when it is read by itself. The line is in doubt as it is: this can only make it worse.
pub(super) fn add_fragments(line: &str, parsed: &mut Parsed) {
    // Below a `<<` there may be text that nobody runs.
    let read = if line.contains("<<") { line.lines().next().unwrap_or_default() } else { line };
    for fragment in read.split(['\n', ';', '|', '&']).take(FRAGMENTS_CAP) {
        let found = super::direct::parse(fragment.trim(), &[]);
        for raw in found.into_iter().flat_map(|found| found.commands) {
            if !parsed.commands.iter().any(|known| known.text.ends_with(&raw.text)) {
                parsed.commands.push(raw);
            }
        }
    }
}
