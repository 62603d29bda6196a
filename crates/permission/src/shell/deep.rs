//! Commands that read everything below a folder without naming it: what of it they read.

use super::parse::Raw;
use super::word::Word;
use super::{Below, Touch, TouchKind};

/// Kinds of files that `rg -t` chooses, and how they end.
const TYPES: &[(&str, &[&str])] = &[
    ("c", &["*.c", "*.h"]),
    ("cpp", &["*.c*", "*.h*"]),
    ("cs", &["*.cs"]),
    ("css", &["*.css", "*.scss"]),
    ("go", &["*.go"]),
    ("html", &["*.htm*", "*.ejs"]),
    ("java", &["*.java", "*.jsp*", "*.properties"]),
    ("js", &["*.js", "*.jsx", "*.?js", "*.vue"]),
    ("json", &["*.json*", "*.sarif"]),
    ("kotlin", &["*.kt*"]),
    ("lua", &["*.lua"]),
    ("markdown", &["*.md*", "*.m*down"]),
    ("md", &["*.md*", "*.m*down"]),
    ("php", &["*.php*"]),
    ("py", &["*.py*"]),
    ("python", &["*.py*"]),
    ("ruby", &["*.rb*", "*.gemspec"]),
    ("rust", &["*.rs"]),
    ("sass", &["*.sass", "*.scss"]),
    ("sql", &["*.sql", "*.psql"]),
    ("swift", &["*.swift"]),
    ("toml", &["*.toml"]),
    ("ts", &["*.ts", "*.tsx", "*.?ts"]),
    ("typescript", &["*.ts", "*.tsx", "*.?ts"]),
    ("yaml", &["*.yaml", "*.yml"]),
];

/// Marks what a command reads with everything below it. A folder that it does not even name is added.
pub(super) fn mark(name: &str, raw: &Raw, touches: &mut Vec<Touch>) {
    let Some(below) = below(name, raw) else { return };
    let reads = |touch: &&mut Touch| touch.kind == TouchKind::Read;
    touches.iter_mut().filter(reads).for_each(|touch| touch.below = Some(below.clone()));
    // Where something comes through a pipe, only `grep -r` looks around all the same.
    let looks_around = name != "diff" && (name != "rg" || !raw.piped) && !compares(name, raw);
    // What it is handed is not where it looks; and git knows names that are none on the disk.
    let handed: Vec<String> = raw.redirects.iter().flat_map(|r| r.to.paths()).collect();
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '.' | '_' | '-' | '/' | ' ');
    let odd = |path: &str| name == "git" && !path.chars().all(plain);
    let named = |touch: &Touch| {
        touch.kind == TouchKind::Read && !handed.contains(&touch.path) && !odd(&touch.path)
    };
    if looks_around && !touches.iter().any(named) {
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
            texts().any(recursive).then(|| Below {
                hidden: true,
                only: values(words, "", "--include"),
                links: false,
            })
        }
        "rg" => {
            let lists = |text: &str| matches!(text, "--files" | "--type-list" | "--version");
            if texts().any(lists) {
                return None;
            }
            let mut only = values(words, "-g", "--glob");
            only.extend(values(words, "", "--iglob"));
            only.retain(|glob| !glob.starts_with('!'));
            let hidden = texts().any(|text| {
                short(text, &['.', 'u']) || text == "--hidden" || text == "--unrestricted"
            });
            // A name that is asked for is found even where it is hidden.
            let hidden = hidden || !only.is_empty();
            if only.is_empty() {
                only = endings(words);
            }
            Some(Below { hidden, only, links: false })
        }
        "diff" => Some(Below { hidden: true, only: Vec::new(), links: true }),
        "git" if compares(name, raw) => Some(Below { hidden: true, only: Vec::new(), links: true }),
        // Otherwise it looks through what the repository holds, and that is no secret in it.
        "git" => {
            let untracked = texts().any(|text| text == "grep")
                && texts().any(|text| is_cut(text, "--untracked"));
            untracked.then(|| Below { hidden: true, only: Vec::new(), links: false })
        }
        _ => None,
    }
}

/// `git diff a b` compares two folders where there is no repository, or they lie outside of it.
fn compares(name: &str, raw: &Raw) -> bool {
    let mut words = raw.words.iter().map(Word::text).skip_while(|text| *text != "diff");
    name == "git" && words.next().is_some() && words.filter(|w| !w.starts_with('-')).count() > 1
}

/// How files end that `rg -t` chooses; nothing where a kind is not known, or may not be the only one.
fn endings(words: &[Word]) -> Vec<String> {
    let types: Vec<String> = values(words, "-t", "--type");
    let hides = |text: &str| {
        text.starts_with('-')
            && !text.starts_with("--")
            && text.get(2..).is_some_and(|t| t.contains('t'))
    };
    let attached = |text: &str| types.iter().any(|t| text.strip_prefix("-t") == Some(t.as_str()));
    if words.iter().any(|word| hides(word.text()) && !attached(word.text())) {
        return Vec::new();
    }
    let known = |name: &String| TYPES.iter().find(|(own, _)| own == name).map(|(_, ends)| *ends);
    let found: Option<Vec<&[&str]>> = types.iter().map(known).collect();
    found.into_iter().flatten().flatten().map(|end| (*end).to_owned()).collect()
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
