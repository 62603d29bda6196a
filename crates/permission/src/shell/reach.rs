//! What a command may reach that rules are not told of: unusual programs and options that write or delete,
//! and other names of the same place. It counts for what nobody can want, and for nothing else, so it may
//! say too much where that hurts nobody.

use super::finds::{self, Extent};
use super::parse::{Input, Raw};
use super::paths::{self, Class};
use super::word::Word;
use super::wrappers;
use super::{Touch, TouchKind, inline};

use TouchKind::{ChangeTree, DeleteTree, Read, Write};

/// What Toolwright's own folders are called, and those that it shares with OpenCode.
const OWN: &[&str] = &["toolwright", "opencode"];

/// Names below folders that are noted.
const NAMES_CAP: usize = 64;

/// Programs that only read or say what they are given, beside those that are known as readers.
const SAYS: &[&str] = &[
    "",
    "echo",
    "printf",
    "test",
    "[",
    "true",
    "false",
    ":",
    "export",
    "local",
    "declare",
    "read",
    "readonly",
    "typeset",
    "set",
    "unset",
    "which",
    "type",
    "man",
    "tw",
    "toolwright",
    "opencode",
    "basename",
    "dirname",
    "namei",
    "getfacl",
    "lsattr",
    "ack",
    "eza",
    "exa",
    "yq",
    "view",
    "find",
    "fd",
    "fdfind",
    "awk",
    "gawk",
    "mawk",
    "cd",
    "pushd",
    "popd",
    "xdg-open",
    "open",
    "b2sum",
    "shasum",
    "md5",
    "zgrep",
    "tar",
    "bsdtar",
    "colordiff",
    "delta",
    "lsof",
    "fuser",
    "alias",
    "umask",
    "return",
    "exit",
    "trap",
    "kill",
    "sleep",
    "wait",
    "jobs",
    "df",
    "mount",
    "date",
];

/// Programs of other languages, that may do anything with what they are given.
fn is_language(name: &str) -> bool {
    let name = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    matches!(name, "perl" | "python" | "ruby" | "node" | "php")
}

/// Whether a program of this name does nothing to what it is given that would count here.
pub(super) fn only_reads(name: &str) -> bool {
    let (class, options) = paths::class(name);
    SAYS.contains(&name) && !matches!(name, "tar" | "bsdtar" | "awk" | "gawk" | "tw" | "toolwright")
        || matches!(class, Class::Reader | Class::Searcher)
            && options.is_empty()
            && !is_language(name)
            && !matches!(name, "sed" | "awk" | "gawk" | "xxd" | "shuf")
}

pub(super) fn of(name: &str, raw: &Raw, touches: &[Touch]) -> Vec<Touch> {
    let mut found: Vec<Touch> = touches
        .iter()
        .filter(|touch| touch.kind != Read)
        .filter_map(|touch| Some(Touch { path: by_another_name(&touch.path)?, ..touch.clone() }))
        .collect();
    let mut add = |word: &Word, path: &str, kind: TouchKind| {
        found.extend(paths::named(word.paths_of(path), word, kind, raw));
    };
    bundled(name, raw, &mut add);
    if may_write(name, raw) {
        own(raw, &mut add);
    }
    unusual(name, raw, &mut add);
    if is_language(name) {
        let text = match &raw.input {
            Input::Text(text) => Some(Word { text: Some(text.clone()), ..Word::default() }),
            _ => None,
        };
        for word in raw.words.iter().skip(1).chain(&text) {
            for (path, kind) in inline::touched(word.text()) {
                let named = Word { home: true, ..Word::default() };
                add(&named, path, kind);
            }
        }
    }
    if name == "find" {
        found.extend(called(raw));
    }
    found
}

/// `/proc/self/root/x` is `/x`, and `/proc/self/cwd` is here.
fn by_another_name(path: &str) -> Option<String> {
    let (_, behind) = path.strip_prefix("/proc/")?.split_once('/')?;
    let (place, rest) = behind.split_once('/').unwrap_or((behind, ""));
    match place {
        "cwd" => Some(format!("./{rest}")),
        // Behind it the home folder may have been put in.
        "root" if rest.starts_with('~') => Some(rest.to_owned()),
        "root" => Some(format!("/{rest}")),
        _ => behind.strip_prefix("root~").map(|rest| format!("~{rest}")),
    }
}

/// Whether what it names may be written by it.
fn may_write(name: &str, raw: &Raw) -> bool {
    if name == "git" {
        const READS: &[&str] =
            &["commit", "log", "show", "grep", "diff", "blame", "status", "tag", "branch", "add"];
        return !raw.words.iter().skip(1).any(|word| READS.contains(&word.text()));
    }
    let (class, _) = paths::class(name);
    is_language(name)
        || matches!(class, Class::Other | Class::Writer | Class::Remover)
            && !SAYS.contains(&name)
            && !wrappers::is_known(name)
        || class == Class::Copier
}

/// Words that may be in Toolwright's own folders.
fn own(raw: &Raw, add: &mut dyn FnMut(&Word, &str, TouchKind)) {
    let is_own = |text: &str| OWN.iter().any(|own| text.contains(own));
    let there = raw.folders.iter().any(|folder| is_own(&folder.path));
    let (class, _) = paths::class(raw.program().unwrap_or_default());
    for word in raw.words.iter().skip(1) {
        let text = word.text();
        let option = text.starts_with('-');
        // What a copier is given by itself is judged as what it reads and where it goes.
        if class == Class::Copier && !option || !there && !is_own(text) {
            continue;
        }
        let value = text.split_once('=').map(|(_, value)| value);
        let attached = text.find(['/', '~']).filter(|_| option).map(|at| &text[at..]);
        for part in [Some(text).filter(|_| !option), value, attached].into_iter().flatten() {
            if !super::is_raw_device(part) {
                add(word, part, Write);
            }
        }
    }
}

/// Options that name what is written where they stand behind others (`-sLo FILE`) or are cut short.
fn bundled(name: &str, raw: &Raw, add: &mut dyn FnMut(&Word, &str, TouchKind)) {
    let more: &[&str] = match name {
        "shuf" => &["-o", "--output"],
        "gpg" => &["-o", "--output"],
        "rsync" => &["-T", "--temp-dir", "--backup-dir", "--partial-dir", "--log-file"],
        _ => &[],
    };
    let options = paths::class(name).1.iter().chain(more);
    let options: Vec<&str> = options.copied().collect();
    if options.is_empty() {
        return;
    }
    // `cp -t /dev sda`
    let into = |folder: &Word, path: &str, add: &mut dyn FnMut(&Word, &str, TouchKind)| {
        let plain = raw.words.iter().skip(1).filter(|word| !word.text().starts_with('-'));
        for name in plain.filter_map(|word| word.text().rsplit('/').next()) {
            add(folder, &format!("{path}/{name}"), Write);
        }
    };
    for (at, word) in raw.words.iter().enumerate().skip(1) {
        let text = word.text();
        let next = raw.words.get(at + 1);
        if text.starts_with("--") {
            let (option, value) = text.split_once('=').map_or((text, None), |(o, v)| (o, Some(v)));
            if option.len() > 3 && options.iter().any(|known| known.starts_with(option)) {
                let value =
                    value.map(|value| (word, value)).or(next.map(|next| (next, next.text())));
                let Some((word, value)) = value else { continue };
                add(word, value, Write);
                if option.starts_with("--t") {
                    into(word, value, add);
                }
            }
            continue;
        }
        let Some(letters) = text.strip_prefix('-') else { continue };
        let short = options.iter().filter(|option| !option.starts_with("--") && option.len() == 2);
        for letter in short.filter_map(|option| option.chars().nth(1)) {
            let Some((_, value)) = letters.split_once(letter) else { continue };
            let attached = Some((word, value)).filter(|_| !value.is_empty());
            let value = attached.or(next.map(|next| (next, next.text())));
            let Some((word, value)) = value else { continue };
            add(word, value, Write);
            if letter == 't' {
                into(word, value, add);
            }
        }
    }
}

/// Programs with ways of their own to write or delete.
fn unusual(name: &str, raw: &Raw, add: &mut dyn FnMut(&Word, &str, TouchKind)) {
    let words = raw.words.get(1..).unwrap_or_default();
    let plain: Vec<&Word> = words.iter().filter(|word| !word.text().starts_with('-')).collect();
    let has = |wanted: &str| words.iter().any(|word| word.text() == wanted);
    let begins = |begin: &str| words.iter().any(|word| word.text().starts_with(begin));
    let short = |letter: char| paths::has_option(raw, letter, "--");
    let mut all = |words: &[&Word], kind: TouchKind| {
        words.iter().for_each(|word| add(word, word.text(), kind));
    };
    let last = plain.last().copied();
    match name {
        "xxd" | "ddrescue" | "dd_rescue" => all(plain.get(1..).unwrap_or_default(), Write),
        "qemu-img" if has("convert") || has("dd") => all(last.as_slice(), Write),
        "perl" | "ruby" if short('i') => all(&plain, Write),
        "awk" | "gawk" if has("inplace") => all(&plain, Write),
        "ln" | "link" => all(plain.get(..1).unwrap_or_default(), Write),
        "cp" if short('l') || begins("--link") => all(&plain, Write),
        "rsync" if begins("--del") => all(last.as_slice(), DeleteTree),
        "wipe" | "gvfs-trash" => all(&plain, DeleteTree),
        "gio" if has("trash") || has("remove") => all(&plain, DeleteTree),
        "tar" | "bsdtar" if has("--remove-files") => all(&plain, DeleteTree),
        "zip" if short('m') || has("--move") => {
            all(plain.get(1..).unwrap_or_default(), DeleteTree);
        }
        "chattr" | "setfacl" if short('R') => all(&plain, ChangeTree),
        "cmake" if has("-E") => {
            let at = words.iter().position(|word| word.text() == "-E").unwrap_or_default();
            let told = words.get(at + 1).map(Word::text);
            if matches!(told, Some("rm" | "remove_directory" | "remove")) {
                let named: Vec<&Word> = words.iter().skip(at + 2).collect();
                all(&named, DeleteTree);
            }
        }
        "npx" | "bunx" | "pnpx" | "pnpm" | "yarn" | "bun" | "npm" => {
            let removes = |word: &&Word| {
                let package = word.text().rsplit('/').next().unwrap_or_default();
                let package = package.split('@').next().unwrap_or_default();
                matches!(package, "rimraf" | "del-cli" | "del" | "trash" | "trash-cli" | "rm-cli")
            };
            if let Some(at) = plain.iter().position(removes) {
                all(plain.get(at + 1..).unwrap_or_default(), DeleteTree);
            }
        }
        _ => {}
    }
    // What is unpacked beside Toolwright's own folders may lie in them.
    let into = match name {
        "tar" | "bsdtar" => {
            let first = words.first().map(Word::text).unwrap_or_default();
            let unpacks = first.contains('x') && !first.starts_with("--")
                || begins("--extract")
                || begins("-x");
            let at = words.iter().position(|word| {
                let text = word.text();
                text == "--directory" || text.ends_with('C') && text.starts_with('-')
            });
            at.filter(|_| unpacks || short('x')).and_then(|at| words.get(at + 1))
        }
        "unzip" => {
            let at = words.iter().position(|word| word.text() == "-d");
            at.and_then(|at| words.get(at + 1))
        }
        "rsync" => last,
        _ => None,
    };
    if let Some(into) = into {
        for own in OWN {
            add(into, &format!("{}/{own}", into.text().trim_end_matches('/')), Write);
        }
    }
}

/// What `find` deletes or changes by name, wherever it is below.
fn called(raw: &Raw) -> Vec<Touch> {
    let texts: Vec<&str> = raw.words.iter().skip(1).map(Word::text).collect();
    let acts = |word: &&str| matches!(*word, "-delete" | "-exec" | "-execdir" | "-ok" | "-okdir");
    if !texts.iter().any(acts) || finds::extent(&texts, true) != Extent::Some {
        return Vec::new();
    }
    let destroys = texts.contains(&"-delete")
        || texts.iter().any(|word| paths::destroys(word.rsplit('/').next().unwrap_or_default()));
    let starts = paths::starts(raw).into_iter().filter(|_| destroys);
    let starts: Vec<String> = starts.flat_map(Word::paths).collect();
    named_below(&starts, &texts, raw)
}

/// The names that `find` looks for, as patterns below where it starts.
pub(super) fn named_below(starts: &[String], texts: &[&str], raw: &Raw) -> Vec<Touch> {
    let names = texts.windows(2).filter(|pair| matches!(pair[0], "-name" | "-iname"));
    let names: Vec<&str> = names.map(|pair| pair[1]).collect();
    let pairs = starts.iter().flat_map(|start| names.iter().map(move |name| (start, name)));
    let touch = |(start, name): (&String, &&str)| Touch {
        path: format!("{}/**/{name}", start.trim_end_matches('/')),
        kind: Write,
        pattern: true,
        folders: raw.folders.clone(),
        below: None,
    };
    pairs.map(touch).take(NAMES_CAP).collect()
}
