//! Commands that run other commands: looked through.

use super::parse::{Raw, Word};

pub(super) enum Inside {
    Nothing,
    Command(Box<Raw>),
    /// A script in the same language.
    Line(String),
    /// It runs something, and nobody can tell what.
    Unknown(String),
}

/// Wrappers, with their options that take a word of their own.
const WRAPPERS: &[(&str, &[&str])] = &[
    ("env", &["-u", "--unset", "-C", "--chdir", "-S", "--split-string"]),
    ("sudo", &["-u", "-g", "-h", "-p", "-C", "-r", "-t", "-U", "-D", "-R", "-T"]),
    ("doas", &["-u", "-C"]),
    ("nice", &["-n", "--adjustment"]),
    ("ionice", &["-c", "-n", "-p"]),
    ("nohup", &[]),
    ("setsid", &[]),
    ("stdbuf", &["-i", "-o", "-e"]),
    ("time", &["-f", "-o"]),
    ("timeout", &["-s", "--signal", "-k", "--kill-after"]),
    ("command", &[]),
    ("builtin", &[]),
    ("exec", &["-a"]),
    (
        "xargs",
        &[
            "-I",
            "-n",
            "-P",
            "-L",
            "-d",
            "-E",
            "-s",
            "-a",
            "--arg-file",
            "--delimiter",
            "--max-args",
            "--max-procs",
            "--replace",
        ],
    ),
    ("watch", &["-n", "--interval"]),
    ("busybox", &[]),
    ("chronic", &[]),
    ("unbuffer", &[]),
    ("caffeinate", &["-t", "-w"]),
    ("strace", &["-o", "-e", "-p", "-s", "-u"]),
    ("chroot", &[]),
    ("flock", &["-w", "-E"]),
];

const SHELLS: &[&str] = &["sh", "bash", "dash", "zsh", "ksh", "ash", "mksh", "fish"];

pub(super) fn inside(name: &str, raw: &Raw) -> Inside {
    if SHELLS.contains(&name) {
        return shell(raw);
    }
    match name {
        "eval" => line_of(raw.words.get(1..).unwrap_or_default(), raw),
        "su" => after_option(raw, "-c"),
        "find" | "fd" | "fdfind" => find(raw),
        _ => match WRAPPERS.iter().find(|(wrapper, _)| *wrapper == name) {
            Some((_, takes)) => wrapped(name, raw, takes),
            None => Inside::Nothing,
        },
    }
}

fn wrapped(name: &str, raw: &Raw, takes: &[&str]) -> Inside {
    let mut at = 1;
    while let Some(word) = raw.words.get(at) {
        let Some(text) = word.text.as_deref() else {
            return Inside::Unknown(format!("what it runs is computed: {}", raw.text));
        };
        if text == "--" {
            at += 1;
            break;
        }
        let sets = name == "env" && text.contains('=') && !text.starts_with('-');
        let split = name == "env" && (text == "-S" || text.starts_with("--split-string"));
        if split {
            return Inside::Unknown(format!("what it runs is taken apart by env: {}", raw.text));
        }
        if !text.starts_with('-') && !sets {
            break;
        }
        at += if takes.contains(&text) { 2 } else { 1 };
    }
    // These have a word of their own before the command.
    at += usize::from(matches!(name, "timeout" | "chroot" | "flock"));
    let words: Vec<Word> = raw.words.get(at..).unwrap_or_default().to_vec();
    if words.is_empty() {
        return Inside::Nothing;
    }
    if name == "watch" {
        return line_of(&words, raw);
    }
    let text = words.iter().map(|w| w.source.as_str()).collect::<Vec<_>>().join(" ");
    let open_ended = name == "xargs" || raw.open_ended;
    Inside::Command(Box::new(Raw { text, words, open_ended, ..Raw::default() }))
}

fn shell(raw: &Raw) -> Inside {
    let mut rest = raw.words.iter().enumerate().skip(1);
    let script = rest.find(|(_, word)| {
        let text = word.text.as_deref().unwrap_or_default();
        text.starts_with('-') && !text.starts_with("--") && text.contains('c')
    });
    match script {
        Some((at, _)) => match raw.words.get(at + 1) {
            Some(Word { text: Some(line), .. }) => Inside::Line(line.clone()),
            _ => Inside::Unknown(format!("the script is computed: {}", raw.text)),
        },
        // A script of a file or of a pipe: rules are about the shell that runs it.
        None => Inside::Nothing,
    }
}

fn after_option(raw: &Raw, option: &str) -> Inside {
    let at = raw.words.iter().position(|word| word.text.as_deref() == Some(option));
    match at.and_then(|at| raw.words.get(at + 1)).map(|word| word.text.clone()) {
        Some(Some(line)) => Inside::Line(line),
        Some(None) => Inside::Unknown(format!("the script is computed: {}", raw.text)),
        None => Inside::Nothing,
    }
}

fn line_of(words: &[Word], raw: &Raw) -> Inside {
    let known: Option<Vec<&str>> = words.iter().map(|word| word.text.as_deref()).collect();
    match known {
        Some(known) if !known.is_empty() => Inside::Line(known.join(" ")),
        Some(_) => Inside::Nothing,
        None => Inside::Unknown(format!("what it runs is computed: {}", raw.text)),
    }
}

fn find(raw: &Raw) -> Inside {
    let runs = |word: &Word| {
        let text = word.text.as_deref().unwrap_or_default();
        matches!(
            text,
            "-exec" | "-execdir" | "-ok" | "-okdir" | "-x" | "--exec" | "-X" | "--exec-batch"
        )
    };
    let Some(at) = raw.words.iter().position(runs) else { return Inside::Nothing };
    let ends = |word: &&Word| !matches!(word.text.as_deref(), Some(";" | "+"));
    let words: Vec<Word> = raw.words[at + 1..].iter().take_while(ends).cloned().collect();
    let text = words.iter().map(|w| w.source.as_str()).collect::<Vec<_>>().join(" ");
    Inside::Command(Box::new(Raw { text, words, open_ended: true, ..Raw::default() }))
}
