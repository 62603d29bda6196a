//! Commands that only read and print: short lists of programs, of their options and of what their small
//! languages may say. Whatever is not on a list is asked about.

mod git;
mod options;
mod scripts;
mod table;

use super::parse::Raw;
use super::plain;
use super::word::{self, Word};
use super::{Obeys, Touch, TouchKind};

/// What a harmless command reads, all of it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Harmless {
    pub(super) reads: Vec<Touch>,
    pub(super) obeys: Option<Obeys>,
    /// It goes into another folder itself.
    pub(super) into: Option<String>,
}

/// Whether both readers of a line find the same commands with the same words in it.
pub(super) fn reads_alike(line: &str, commands: &[Raw]) -> bool {
    let Some(mut plain) = plain::commands(line) else { return false };
    // The grammar knows `[ … ]` by itself and does not call it a command.
    let mut tame = true;
    plain.retain(|command| {
        let is_test = command.words.first().is_some_and(|word| word.source == "[");
        tame &= !is_test || asks_only(command);
        !is_test
    });
    tame && plain.len() == commands.len()
        && plain.iter().zip(commands).all(|(plain, raw)| {
            let reads: Vec<&Word> =
                raw.redirects.iter().filter(|r| !r.writes).map(|r| &r.to).collect();
            raw.assigned.is_empty()
                && same(&plain.words, &raw.words.iter().collect::<Vec<_>>())
                && same(&plain.inputs, &reads)
        })
}

/// Whether `[ … ]` asks about the workspace's own files, or about none.
fn asks_only(command: &plain::Plain<'_>) -> bool {
    let word = |word: &plain::PlainWord<'_>| Word {
        text: Some(word.text.clone()),
        pattern: word.pattern,
        source: word.source.to_owned(),
        ..Word::default()
    };
    let words: Vec<Word> = command.words.iter().map(word).collect();
    let inside = |word: &&Word| {
        let text = word.text();
        !text.starts_with(['/', '~']) && !text.split('/').any(|part| part == "..")
    };
    match words.as_slice() {
        [_, asked @ .., end] if end.text() == "]" => {
            scripts::test(asked).is_some_and(|files| files.iter().all(inside))
        }
        _ => false,
    }
}

fn same(plain: &[plain::PlainWord<'_>], words: &[&Word]) -> bool {
    plain.len() == words.len()
        && plain.iter().zip(words).all(|(plain, word)| {
            plain.source == word.source
                && word.text.as_ref() == Some(&plain.text)
                && plain.pattern == word.pattern
        })
}

/// What a command of a plain line reads, if it is harmless.
pub(super) fn judge(name: &str, raw: &Raw) -> Option<Harmless> {
    // Options may come from elsewhere, another program may hide under the name.
    if raw.open_ended || raw.is_path() || !raw.assigned.is_empty() {
        return None;
    }
    let nowhere = |word: &Word| word.text.as_deref() == Some("/dev/null");
    if raw.redirects.iter().any(|r| r.writes && !nowhere(&r.to)) {
        return None;
    }
    let words = raw.words.get(1..).unwrap_or_default();
    // What is a pattern in it and what a letter is no longer told by its text.
    if words.iter().any(|word| word.pattern && word::quotes_pattern(&word.source)) {
        return None;
    }
    let reads = |paths: Vec<&Word>| Harmless {
        reads: paths
            .into_iter()
            .flat_map(|w| super::paths::of_word(w, TouchKind::Read, raw))
            .collect(),
        ..Harmless::default()
    };
    match name {
        "git" => git::judge(words, raw),
        "find" => scripts::find(words).map(reads),
        "sed" => scripts::sed(words).map(reads),
        "awk" | "gawk" | "mawk" => scripts::awk(words).map(reads),
        "jq" => scripts::jq(words).map(reads),
        "xxd" => table::xxd(words).map(reads),
        "test" => scripts::test(words).map(reads),
        "printf" => scripts::printf(words).then(Harmless::default),
        "echo" => (!words.iter().any(|word| word.pattern)).then(Harmless::default),
        "command" => match words {
            [option, names @ ..] if matches!(option.text(), "-v" | "-V") => {
                (!names.iter().any(|word| word.pattern)).then(Harmless::default)
            }
            _ => None,
        },
        _ => {
            if let Some(obeys) = table::tells_version(name, words) {
                return Some(Harmless { obeys, ..Harmless::default() });
            }
            table::paths(name, words).map(reads)
        }
    }
}
