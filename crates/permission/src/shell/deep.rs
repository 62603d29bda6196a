//! Commands that read everything below a folder without naming it: what of it they read.

use super::parse::Raw;
use super::word::Word;
use super::{Below, Touch, TouchKind};

/// Kinds of files that `rg -t` chooses and that nobody keeps secrets in.
const PLAIN_TYPES: &[&str] = &[
    "c",
    "cpp",
    "cs",
    "css",
    "go",
    "html",
    "java",
    "js",
    "json",
    "kotlin",
    "lua",
    "markdown",
    "md",
    "php",
    "py",
    "python",
    "ruby",
    "rust",
    "sass",
    "sql",
    "swift",
    "toml",
    "ts",
    "typescript",
    "yaml",
];

/// Marks what a command reads with everything below it. A folder that it does not even name is added.
pub(super) fn mark(name: &str, raw: &Raw, touches: &mut Vec<Touch>) {
    let Some(below) = below(name, raw) else { return };
    let reads = |touch: &&mut Touch| touch.kind == TouchKind::Read;
    touches.iter_mut().filter(reads).for_each(|touch| touch.below = Some(below.clone()));
    // Where something comes through a pipe, only `grep -r` looks around all the same.
    let looks_around = name != "diff" && (name != "rg" || !raw.piped);
    if looks_around && !touches.iter().any(|touch| touch.kind == TouchKind::Read) {
        touches.push(Touch {
            path: ".".to_owned(),
            kind: TouchKind::Read,
            pattern: false,
            folders: raw.folders.clone(),
            below: Some(below),
        });
    }
}

fn below(name: &str, raw: &Raw) -> Option<Below> {
    let words = raw.words.get(1..).unwrap_or_default();
    // What stands behind is no option, whatever it looks like.
    let words = words.split(|word| word.text() == "--").next().unwrap_or_default();
    let texts = || words.iter().map(Word::text);
    let short = |text: &str, letters: &[char]| {
        text.starts_with('-') && !text.starts_with("--") && text.contains(letters)
    };
    match name {
        "grep" | "egrep" | "fgrep" => {
            // Programs take any unambiguous beginning of a long option.
            let recursive = |text: &str| {
                short(text, &['r', 'R'])
                    || is_cut(text, "--recursive")
                    || is_cut(text, "--dereference-recursive")
            };
            texts()
                .any(recursive)
                .then(|| Below { hidden: true, only: values(words, "", "--include") })
        }
        "rg" => {
            let lists = |text: &str| matches!(text, "--files" | "--type-list" | "--version");
            let types: Vec<String> = values(words, "-t", "--type");
            let plain =
                !types.is_empty() && types.iter().all(|t| PLAIN_TYPES.contains(&t.as_str()));
            if plain || texts().any(lists) {
                return None;
            }
            let hidden = texts().any(|text| {
                short(text, &['.', 'u']) || text == "--hidden" || text == "--unrestricted"
            });
            let mut only = values(words, "-g", "--glob");
            only.extend(values(words, "", "--iglob"));
            only.retain(|glob| !glob.starts_with('!'));
            Some(Below { hidden, only })
        }
        "diff" => Some(Below { hidden: true, only: Vec::new() }),
        // Otherwise it looks through what the repository holds, and that is no secret in it.
        "git" => {
            let untracked = texts().any(|text| text == "grep")
                && texts().any(|text| is_cut(text, "--untracked"));
            untracked.then(|| Below { hidden: true, only: Vec::new() })
        }
        _ => None,
    }
}

/// A long option, or a beginning of it.
fn is_cut(text: &str, option: &str) -> bool {
    text.len() > 4 && option.starts_with(text)
}

/// The values of an option, attached or behind it.
fn values(words: &[Word], short: &str, long: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (at, word) in words.iter().enumerate() {
        let text = word.text();
        let behind = || words.get(at + 1).map(|word| word.text().to_owned());
        if text == long || !short.is_empty() && text == short {
            found.extend(behind());
        } else if let Some(value) = text.strip_prefix(long).and_then(|rest| rest.strip_prefix('='))
        {
            found.push(value.to_owned());
        } else if !short.is_empty()
            && let Some(value) = text.strip_prefix(short)
        {
            found.push(value.to_owned());
        }
    }
    found
}
