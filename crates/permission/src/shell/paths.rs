//! The paths that common commands name. What a command writes that is not known here is still asked
//! about: it is the command itself that rules are about.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::finds::{self, Extent};
use super::parse::Raw;
use super::word::Word;
use super::{Touch, TouchKind};

use TouchKind::{ChangeTree, DeleteTree, Read, Write};

/// Programs whose words (but options) are paths that they change.
const WRITERS: &[&str] = &[
    "rm",
    "rmdir",
    "mv",
    "mkdir",
    "touch",
    "tee",
    "truncate",
    "shred",
    "unlink",
    "mkfifo",
    "mknod",
    "setfacl",
    "chattr",
    "unzip",
    "gunzip",
    "gzip",
    "bzip2",
    "xz",
    "zstd",
    "patch",
    "srm",
    "sponge",
    "trash",
    "trash-put",
    "rimraf",
    "del",
    "mkdirp",
    "fallocate",
    "split",
    "ed",
    "ex",
    "vi",
    "vim",
    "nano",
    "emacs",
    "zip",
    "7z",
    "ar",
];

/// Programs that read what they name, but for the last of it.
const COPIERS: &[&str] = &["cp", "ln", "rsync", "scp", "install", "link", "ditto"];

/// Programs whose words (but options) are paths that they read.
const READERS: &[&str] = &[
    "cat",
    "head",
    "tail",
    "less",
    "more",
    "wc",
    "stat",
    "file",
    "ls",
    "du",
    "tac",
    "nl",
    "od",
    "xxd",
    "hexdump",
    "strings",
    "cksum",
    "md5sum",
    "sha1sum",
    "sha256sum",
    "sha512sum",
    "base64",
    "base32",
    "basenc",
    "diff3",
    "sdiff",
    "paste",
    "join",
    "comm",
    "fold",
    "fmt",
    "pr",
    "rev",
    "column",
    "expand",
    "unexpand",
    "shuf",
    "zcat",
    "bzcat",
    "xzcat",
    "zless",
    "diff",
    "cmp",
    "tree",
    "readlink",
    "realpath",
    "cd",
    "pushd",
    "chdir",
    "source",
    ".",
    "sort",
    "uniq",
    "cut",
    "bat",
    "sh",
    "bash",
    "zsh",
    "dash",
    "python",
    "python3",
    "node",
    "perl",
    "ruby",
];

/// Programs that read what they name behind a pattern or a program of their own.
const SEARCHERS: &[&str] = &["grep", "egrep", "fgrep", "rg", "ag", "awk", "gawk", "jq", "sed"];

/// Programs that delete trees when told to.
const REMOVERS: &[&str] = &["rm", "srm", "grm", "rimraf", "trash", "trash-put", "del"];

/// Options that name a path which is written; also attached (`-oFILE`, `--output=FILE`).
const WRITING_OPTIONS: &[(&str, &[&str])] = &[
    (
        "curl",
        &["-o", "--output", "-D", "--dump-header", "-c", "--cookie-jar", "--trace", "--output-dir"],
    ),
    ("wget", &["-O", "--output-document", "-o", "--output-file", "-P", "--directory-prefix", "-a"]),
    ("sort", &["-o", "--output", "-T", "--temporary-directory"]),
    ("tar", &["-C", "--directory", "-f", "--file"]),
    ("bsdtar", &["-C", "-f"]),
    ("unzip", &["-d"]),
    ("cp", &["-t", "--target-directory"]),
    ("mv", &["-t", "--target-directory"]),
    ("ln", &["-t", "--target-directory"]),
    ("install", &["-t", "--target-directory"]),
    ("gcc", &["-o"]),
    ("cc", &["-o"]),
    ("clang", &["-o"]),
    ("rustc", &["-o", "--out-dir"]),
    ("go", &["-o", "-C"]),
    ("patch", &["-o", "--output", "-d", "--directory"]),
    ("openssl", &["-out"]),
    ("ssh-keygen", &["-f"]),
    ("pandoc", &["-o", "--output"]),
    ("tree", &["-o"]),
    ("make", &["-C", "--directory"]),
    ("git", &["-C", "--output", "--git-dir", "--work-tree", "--separate-git-dir"]),
    ("find", &["-fprint", "-fprint0", "-fprintf", "-fls"]),
    ("uniq", &[]),
    ("dot", &["-o"]),
    ("strace", &["-o"]),
    ("time", &["-o"]),
    ("cargo", &["--target-dir", "-C"]),
    ("npm", &["--prefix"]),
    ("pip", &["-t", "--target", "--prefix"]),
];

/// The paths that a word names, seen from where the command runs.
pub(super) fn of_word(word: &Word, kind: TouchKind, raw: &Raw) -> Vec<Touch> {
    named(word.paths(), word, kind, raw)
}

pub(super) fn named(paths: Vec<String>, word: &Word, kind: TouchKind, raw: &Raw) -> Vec<Touch> {
    let touch = |path: String| Touch {
        path,
        kind,
        pattern: word.pattern,
        folders: raw.folders.clone(),
        below: None,
    };
    paths.into_iter().filter(|path| !path.is_empty()).map(touch).collect()
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    Remover,
    Copier,
    Writer,
    Reader,
    Searcher,
    Other,
}

/// What is known of a program by its name, looked up once for each command.
static PROGRAMS: LazyLock<HashMap<&str, (Class, &'static [&'static str])>> = LazyLock::new(|| {
    let mut all: HashMap<&str, (Class, &'static [&'static str])> = HashMap::new();
    let lists = [
        (Class::Searcher, SEARCHERS),
        (Class::Reader, READERS),
        (Class::Writer, WRITERS),
        (Class::Copier, COPIERS),
        (Class::Remover, REMOVERS),
    ];
    for (class, names) in lists {
        all.extend(names.iter().map(|name| (*name, (class, &[][..]))));
    }
    for (name, options) in WRITING_OPTIONS {
        all.entry(name).or_insert((Class::Other, &[])).1 = options;
    }
    all
});

/// What is known of a program, and its options that name what is written.
pub(super) fn class(name: &str) -> (Class, &'static [&'static str]) {
    PROGRAMS.get(name).copied().unwrap_or((Class::Other, &[]))
}

/// Whether a program of this name is known to change or delete what it names.
pub(super) fn destroys(name: &str) -> bool {
    let class = PROGRAMS.get(name).map(|(class, _)| *class);
    matches!(class, Some(Class::Remover | Class::Writer | Class::Copier))
        || matches!(name, "chmod" | "chown" | "chgrp" | "find" | "dd" | "sed")
}

pub(super) fn touches(name: &str, raw: &Raw) -> Vec<Touch> {
    let mut found: Vec<Touch> = Vec::new();
    let mut add = |word: &Word, kind: TouchKind| found.extend(of_word(word, kind, raw));
    for redirect in &raw.redirects {
        add(&redirect.to, if redirect.writes { Write } else { Read });
    }
    let (class, options) = class(name);
    let (named_words, valued) = operands(raw, options);
    let has = |short: char, long: &str| has_option(raw, short, long);
    match name {
        name if class == Class::Remover => {
            // A computed word may be the option.
            let tree = has('r', "--recursive")
                || has('R', "--recursive")
                || name != "rm" && name != "srm"
                || raw.words.iter().skip(1).any(|word| word.text.is_none());
            let kind = if tree { DeleteTree } else { Write };
            named_words.iter().for_each(|word| add(word, kind));
        }
        // The first word says how, not what.
        "chmod" | "chown" | "chgrp" => {
            let kind = if has('R', "--recursive") { ChangeTree } else { Write };
            changed(name, raw).into_iter().for_each(|word| add(word, kind));
        }
        "mv" => {
            let last = named_words.len().saturating_sub(1);
            for (at, word) in named_words.iter().enumerate() {
                add(word, if at == last && valued.is_empty() { Write } else { ChangeTree });
            }
        }
        "sed" if has('i', "--in-place") => {
            of_sed(raw).into_iter().for_each(|word| add(word, Write));
        }
        "dd" | "dcfldd" | "dc3dd" => {
            for word in &raw.words {
                let (kind, path) = match word.text().split_once('=') {
                    Some(("of", path)) => (Write, path),
                    Some(("if", path)) => (Read, path),
                    _ => continue,
                };
                found.extend(named(word.paths_of(path), word, kind, raw));
            }
        }
        "find" => {
            let starts = starts(raw);
            let kind = what_find_does(raw);
            match (starts.is_empty(), kind) {
                (true, Read) => {}
                (true, kind) => add(&Word { text: Some(".".to_owned()), ..Word::default() }, kind),
                (false, kind) => starts.iter().for_each(|word| add(word, kind)),
            }
        }
        "tar" | "bsdtar" => tar(raw, &mut add),
        "uniq" => {
            let (first, rest) = named_words.split_at(1.min(named_words.len()));
            first.iter().for_each(|word| add(word, Read));
            rest.iter().for_each(|word| add(word, Write));
        }
        _ if class == Class::Copier => {
            let last = named_words.len().saturating_sub(1);
            for (at, word) in named_words.iter().enumerate() {
                add(word, if at == last && valued.is_empty() { Write } else { Read });
            }
        }
        _ if class == Class::Writer => named_words.iter().for_each(|word| add(word, Write)),
        _ if class == Class::Reader => named_words.iter().for_each(|word| add(word, Read)),
        _ if class == Class::Searcher => {
            named_words.iter().skip(1).for_each(|word| add(word, Read));
        }
        _ => {}
    }
    for (word, path) in valued {
        found.extend(named(word.paths_of(path), word, Write, raw));
    }
    found.retain(|touch| touch.path != "/dev/null");
    found
}

/// An archive by the letters of the first word (`xzf FILE`, `-cf FILE`); what it unpacks lands here.
fn tar(raw: &Raw, add: &mut dyn FnMut(&Word, TouchKind)) {
    let Some(first) = raw.words.get(1).filter(|word| !word.text().starts_with("--")) else {
        return;
    };
    let makes = first.text().contains(['c', 'r', 'u', 'A']);
    if first.text().contains('f')
        && let Some(archive) = raw.words.get(2)
    {
        add(archive, if makes { Write } else { Read });
    }
    if first.text().contains('x') && !raw.words.iter().any(|word| word.text().starts_with("-C")) {
        add(&Word { text: Some(".".to_owned()), ..Word::default() }, Write);
    }
}

/// Where `find` starts: behind how it follows links, in front of what it looks for.
pub(super) fn starts(raw: &Raw) -> Vec<&Word> {
    let follows = |word: &&Word| matches!(word.text(), "-H" | "-L" | "-P" | "-O1" | "-O2" | "-O3");
    let is_start = |word: &&Word| !word.text().starts_with(['-', '(', '!', ',']);
    raw.words.iter().skip(1).skip_while(follows).take_while(is_start).collect()
}

/// The words that are no options, and the values of some options.
fn operands<'a>(raw: &'a Raw, options: &[&str]) -> (Vec<&'a Word>, Vec<(&'a Word, &'a str)>) {
    let (mut plain, mut valued) = (Vec::new(), Vec::new());
    let mut rest = raw.words.iter().skip(1);
    while let Some(word) = rest.next() {
        let text = word.text();
        if text == "--" {
            plain.extend(rest);
            break;
        }
        if options.contains(&text) {
            valued.extend(rest.next().map(|value| (value, value.text())));
            continue;
        }
        let attached = options.iter().find_map(|option| {
            let rest = text.strip_prefix(option)?;
            if option.starts_with("--") { rest.strip_prefix('=') } else { Some(rest) }
        });
        match attached {
            Some(value) => valued.push((word, value)),
            None if text.starts_with('-') && text != "-" => {}
            None => plain.push(word),
        }
    }
    (plain, valued)
}

/// Whether `find` deletes what it finds, and everything.
fn what_find_does(raw: &Raw) -> TouchKind {
    let texts: Vec<&str> = raw.words.iter().skip(1).map(Word::text).collect();
    let removes = |pair: &[&str]| {
        matches!(pair[0], "-exec" | "-execdir" | "-ok" | "-okdir")
            && REMOVERS.contains(&pair[1].rsplit('/').next().unwrap_or_default())
    };
    let deletes = texts.contains(&"-delete");
    let Some(at) = texts.windows(2).position(removes).or(deletes.then_some(0)) else {
        return Read;
    };
    let recursive = !deletes && texts[at..].iter().any(|word| is_recursive(word));
    match finds::extent(&texts, recursive) {
        Extent::Some => Write,
        Extent::Most => ChangeTree,
        Extent::All => DeleteTree,
    }
}

/// Whether a word makes `rm` take whole folders.
pub(super) fn is_recursive(word: &str) -> bool {
    let bundled = word.starts_with('-') && !word.starts_with("--") && word.contains(['r', 'R']);
    bundled || word.len() > 2 && "--recursive".starts_with(word)
}

/// The words of `chmod` and its kin behind the one that says how.
fn changed<'a>(name: &str, raw: &'a Raw) -> Vec<&'a Word> {
    // `-w` is a mode, `-R` is not.
    let is_option = |text: &str| {
        text.starts_with("--")
            || text.strip_prefix('-').is_some_and(|letters| {
                name != "chmod" || letters.chars().all(|c| "RcfvhHLP".contains(c))
            })
    };
    let words = raw.words.get(1..).unwrap_or_default();
    let referred = words.iter().any(|word| {
        let option = word.text().split('=').next().unwrap_or_default();
        option.len() > 4 && "--reference".starts_with(option)
    });
    let plain = words.iter().filter(|word| !is_option(word.text()));
    plain.skip(usize::from(!referred)).collect()
}

/// The files of `sed`: the first word is its program, unless an option brought one.
fn of_sed(raw: &Raw) -> Vec<&Word> {
    let (mut plain, mut brought) = (Vec::new(), false);
    let mut rest = raw.words.iter().skip(1);
    while let Some(word) = rest.next() {
        let text = word.text();
        if text == "--" {
            plain.extend(rest);
            break;
        }
        if let Some(long) = text.strip_prefix("--") {
            let (name, value) = long.split_once('=').map_or((long, None), |(n, v)| (n, Some(v)));
            let brings = name.len() > 1
                && ["expression", "file"].iter().any(|option| option.starts_with(name));
            brought |= brings;
            if brings && value.is_none() {
                rest.next();
            }
            continue;
        }
        let Some(letters) = text.strip_prefix('-').filter(|letters| !letters.is_empty()) else {
            plain.push(word);
            continue;
        };
        // Behind an `i` stands the ending of the copies.
        let taking = letters.find(['e', 'f', 'i', 'l']);
        if let Some(at) = taking.filter(|at| !letters[*at..].starts_with('i')) {
            brought |= !letters[at..].starts_with('l');
            if at + 1 == letters.len() {
                rest.next();
            }
        }
    }
    plain.into_iter().skip(usize::from(!brought)).collect()
}

pub(super) fn has_option(raw: &Raw, short: char, long: &str) -> bool {
    raw.words.iter().skip(1).map(Word::text).any(|text| {
        let bundled = text.starts_with('-') && !text.starts_with("--") && text.contains(short);
        // Programs take any unambiguous beginning of a long option.
        let name = text.split('=').next().unwrap_or_default();
        let spelled = name.len() > 2 && long.starts_with(name) && name.starts_with("--");
        bundled || spelled
    })
}
