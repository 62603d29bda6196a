//! Commands that run other commands: looked through.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::parse::{Input, Raw};
use super::word::Word;
use super::{Folder, When};

pub(super) enum Inside {
    Command(Box<Raw>),
    /// A script in the same language.
    Line(String),
    /// It runs something, and nobody can tell what.
    Unknown(String),
}

/// Wrappers, with their options that take a word of their own.
const WRAPPERS: &[(&str, &[&str])] = &[
    ("env", &["-u", "--unset", "-C", "--chdir", "-S", "--split-string", "-P"]),
    (
        "sudo",
        &[
            "-u",
            "-g",
            "-h",
            "-p",
            "-C",
            "-r",
            "-t",
            "-U",
            "-D",
            "-R",
            "-T",
            "--user",
            "--group",
            "--chdir",
            "--prompt",
            "--host",
            "--close-from",
            "--role",
            "--type",
            "--other-user",
            "--chroot",
            "--command-timeout",
        ],
    ),
    ("doas", &["-u", "-C"]),
    ("run0", &["-u", "-D"]),
    ("pkexec", &["--user"]),
    ("nice", &["-n", "--adjustment"]),
    ("ionice", &["-c", "-n", "-p", "--class", "--classdata"]),
    ("chrt", &["-p"]),
    ("taskset", &[]),
    ("nohup", &[]),
    ("setsid", &[]),
    ("stdbuf", &["-i", "-o", "-e", "--input", "--output", "--error"]),
    ("time", &["-f", "-o", "--format", "--output"]),
    ("timeout", &["-s", "--signal", "-k", "--kill-after"]),
    ("gtimeout", &["-s", "--signal", "-k", "--kill-after"]),
    ("command", &[]),
    ("builtin", &[]),
    ("exec", &["-a"]),
    ("noglob", &[]),
    ("nocorrect", &[]),
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
            "--max-lines",
            "--max-chars",
            "--eof",
            "--process-slot-var",
        ],
    ),
    (
        "parallel",
        &["-j", "--jobs", "-a", "--arg-file", "-I", "-n", "-N", "-d", "--delimiter", "--timeout"],
    ),
    ("watch", &["-n", "--interval"]),
    ("busybox", &[]),
    ("toybox", &[]),
    ("chronic", &[]),
    ("unbuffer", &[]),
    ("caffeinate", &["-t", "-w"]),
    ("strace", &["-o", "-e", "-p", "-s", "-u", "-E", "-P", "--output", "--trace", "--user"]),
    ("ltrace", &["-o", "-e", "-p", "-s", "-u"]),
    ("valgrind", &[]),
    ("fakeroot", &[]),
    ("chroot", &[]),
    ("flock", &["-w", "-E", "--timeout", "--wait"]),
    (
        "unshare",
        &["-S", "-G", "-R", "-w", "--setuid", "--setgid", "--root", "--wd", "--propagation"],
    ),
    (
        "setpriv",
        &[
            "--reuid",
            "--regid",
            "--ruid",
            "--euid",
            "--rgid",
            "--egid",
            "--groups",
            "--inh-caps",
            "--ambient-caps",
            "--bounding-set",
            "--securebits",
            "--pdeathsig",
            "--selinux-label",
            "--apparmor-profile",
        ],
    ),
    ("nsenter", &["-t", "--target", "-S", "-G", "--setuid", "--setgid"]),
    ("runuser", &["-u", "--user", "-g", "--group", "-G", "--supp-group", "-s", "--shell"]),
    ("prlimit", &["-p", "--pid", "-o", "--output"]),
    ("setarch", &["-p", "--pid"]),
    ("linux32", &[]),
    ("linux64", &[]),
    ("choom", &["-n", "--adjust", "-p", "--pid"]),
    ("dbus-run-session", &["--config-file", "--dbus-daemon"]),
    ("dbus-launch", &[]),
    ("xvfb-run", &["-n", "--server-num", "-s", "--server-args", "-e", "-f", "-p", "-w"]),
    ("numactl", &["-N", "-C", "-m", "-i", "-p", "--cpunodebind", "--physcpubind", "--membind"]),
    ("eatmydata", &[]),
    ("faketime", &["-f"]),
    ("rlwrap", &[]),
    ("systemd-inhibit", &["--what", "--who", "--why", "--mode"]),
    ("cgexec", &["-g"]),
    ("catchsegv", &[]),
    ("proxychains", &[]),
    ("torsocks", &[]),
    ("entr", &[]),
    ("ssh-agent", &["-t", "-a"]),
    (
        "systemd-run",
        &[
            "-p",
            "--property",
            "-u",
            "--unit",
            "--slice",
            "--uid",
            "--gid",
            "--description",
            "--nice",
            "-E",
            "--setenv",
            "--working-directory",
            "-M",
            "--machine",
            "-H",
            "--host",
        ],
    ),
    ("firejail", &[]),
    ("coproc", &[]),
];

/// Programs that run what follows one of their own words.
const RUNNERS: &[(&str, &[&str])] = &[
    ("poetry", &["run"]),
    ("pipenv", &["run"]),
    ("uv", &["run"]),
    ("rye", &["run"]),
    ("bundle", &["exec"]),
    ("mise", &["exec", "x"]),
    ("direnv", &["exec"]),
    ("perf", &["stat", "record"]),
    ("npm", &["exec"]),
    ("pnpm", &["exec"]),
];

type Known = (Option<&'static [&'static str]>, Option<&'static [&'static str]>);

/// The words behind which a program runs others, and the options of a wrapper that take a word.
static BY_NAME: LazyLock<HashMap<&str, Known>> = LazyLock::new(|| {
    let mut all: HashMap<&str, Known> = HashMap::new();
    for (name, words) in RUNNERS {
        all.entry(name).or_default().0 = Some(words);
    }
    for (name, takes) in WRAPPERS {
        all.entry(name).or_default().1 = Some(takes);
    }
    all
});

/// Whether a program of this name runs what it is given, and that is looked at by itself.
pub(super) fn is_known(name: &str) -> bool {
    is_shell(name)
        || BY_NAME.get(name).is_some_and(|(_, takes)| takes.is_some())
        || matches!(name, "eval" | "trap" | "su" | "hyperfine" | "nix-shell")
}

pub(super) fn is_shell(name: &str) -> bool {
    matches!(name, "sh" | "bash" | "dash" | "zsh" | "ksh" | "ash" | "mksh" | "fish" | "rbash")
}

pub(super) fn inside(name: &str, raw: &Raw) -> Vec<Inside> {
    if is_shell(name) {
        return shell(raw);
    }
    match name {
        "eval" => line_of(raw.words.get(1..).unwrap_or_default(), raw),
        "trap" => match raw.words.get(1) {
            Some(Word { text: Some(line), .. }) if raw.words.len() > 2 => {
                vec![Inside::Line(line.clone())]
            }
            _ => Vec::new(),
        },
        "su" | "runuser" | "script" | "flock" if has_option(raw, "-c", "--command") => {
            after_option(raw, "-c", "--command")
        }
        "nix-shell" => after_option(raw, "--run", "--command"),
        "hyperfine" => line_of(raw.words.get(1..).unwrap_or_default(), raw),
        "find" | "fd" | "fdfind" => find(raw),
        "git" => git(raw),
        _ => {
            let (runs, takes) = BY_NAME.get(name).copied().unwrap_or_default();
            if runs.is_some_and(|words| raw.words.get(1).is_some_and(|w| words.contains(&w.text())))
            {
                let rest = raw.words.get(2..).unwrap_or_default();
                let skip = rest.iter().take_while(|w| w.text().starts_with('-')).count();
                return command(raw, rest.get(skip..).unwrap_or_default());
            }
            match takes {
                Some(takes) => wrapped(name, raw, takes),
                None => Vec::new(),
            }
        }
    }
}

fn command(raw: &Raw, words: &[Word]) -> Vec<Inside> {
    if words.is_empty() {
        return Vec::new();
    }
    vec![Inside::Command(Box::new(raw.inside(words)))]
}

fn unknown(what: &str, raw: &Raw) -> Vec<Inside> {
    vec![Inside::Unknown(format!("{what}: {}", raw.text))]
}

fn wrapped(name: &str, raw: &Raw, takes: &[&str]) -> Vec<Inside> {
    let mut at = 1;
    let mut folder = None;
    let mut computed = false;
    while let Some(word) = raw.words.get(at) {
        let Some(text) = word.text.as_deref() else {
            computed = true;
            at += 1;
            continue;
        };
        if text == "--" {
            at += 1;
            break;
        }
        let may_set = matches!(name, "env" | "sudo" | "doas" | "systemd-run");
        let sets = may_set && text.contains('=') && !text.starts_with('-');
        let split = name == "env"
            && (text.starts_with("-S")
                || text.starts_with("--s")
                || text.contains('S') && text.starts_with('-') && !text.starts_with("--"));
        if split {
            return unknown("what it runs is taken apart by env", raw);
        }
        if !text.starts_with('-') && !sets {
            break;
        }
        let moves = matches!((name, text), ("env", "-C" | "--chdir") | ("sudo", "-D" | "--chdir"));
        if moves {
            folder = raw.words.get(at + 1).and_then(|word| word.paths().into_iter().next());
        }
        let attached = match name {
            "env" => text.strip_prefix("--chdir=").or_else(|| text.strip_prefix("-C")),
            "sudo" => text.strip_prefix("--chdir=").or_else(|| text.strip_prefix("-D")),
            "systemd-run" => text.strip_prefix("--working-directory="),
            _ => None,
        };
        if let Some(to) = attached.filter(|to| !to.is_empty()) {
            folder = word.paths_of(to).into_iter().next();
        }
        if name == "command" && text.contains(['v', 'V']) {
            return Vec::new();
        }
        at += if takes.contains(&text) { 2 } else { 1 };
    }
    if computed {
        return unknown("what it runs is computed", raw);
    }
    // A limit is a number or two, the kind of a machine a word of its own.
    let valued = |word: &&Word| {
        let text = word.text();
        match name {
            "prlimit" => text.bytes().all(|b| b.is_ascii_digit() || b == b':'),
            "setarch" => {
                matches!(text, "x86_64" | "i386" | "i686" | "linux32" | "linux64")
                    || text.starts_with("arm")
                    || text.starts_with("aarch")
            }
            "faketime" => true,
            _ => false,
        }
    };
    while raw.words.get(at).filter(valued).is_some() {
        at += 1;
        if name == "faketime" {
            break;
        }
        let option = |word: &&Word| word.text().starts_with('-');
        while raw.words.get(at).filter(option).is_some() {
            at += 1;
        }
    }
    // These have a word of their own before the command.
    at += usize::from(matches!(
        name,
        "timeout" | "gtimeout" | "chroot" | "flock" | "taskset" | "chrt"
    ));
    let words = raw.words.get(at..).unwrap_or_default();
    if words.is_empty() {
        // These start a shell of their own, that reads from elsewhere.
        let shell = matches!(name, "sudo" | "doas" | "su" | "chroot" | "unshare" | "fakeroot");
        return if shell { unknown("what it runs comes from elsewhere", raw) } else { Vec::new() };
    }
    if matches!(name, "watch" | "parallel") {
        return line_of(words, raw);
    }
    let mut inner = raw.inside(words);
    inner.open_ended |= name == "xargs";
    inner.input = raw.input.clone();
    inner.folders.extend(folder.map(|path| Folder::new(path, When::Surely)));
    vec![Inside::Command(Box::new(inner))]
}

fn shell(raw: &Raw) -> Vec<Inside> {
    let words = raw.words.get(1..).unwrap_or_default();
    let script = words.iter().position(|word| {
        let text = word.text();
        text.starts_with('-') && !text.starts_with("--") && text.contains('c')
    });
    if let Some(at) = script {
        // Other options may stand between it and the script.
        let rest = words.get(at + 1..).unwrap_or_default();
        return match rest.iter().find(|word| !word.text().starts_with('-') || word.text.is_none()) {
            Some(Word { text: Some(line), .. }) => vec![Inside::Line(line.clone())],
            _ => unknown("the script is computed", raw),
        };
    }
    let file = words.iter().any(|word| word.text.is_none() || !word.text().starts_with('-'));
    match &raw.input {
        // A script of a file: rules are about the shell that runs it.
        _ if file => Vec::new(),
        Input::Text(line) => vec![Inside::Line(line.clone())],
        Input::Computed => unknown("the script is computed", raw),
        Input::Elsewhere if words.iter().any(|word| word.text().starts_with("--")) => Vec::new(),
        Input::Elsewhere => unknown("the script comes from elsewhere", raw),
    }
}

fn has_option(raw: &Raw, short: &str, long: &str) -> bool {
    position(raw, short, long).is_some()
}

fn position(raw: &Raw, short: &str, long: &str) -> Option<usize> {
    let letter = short.trim_start_matches('-');
    raw.words.iter().skip(1).position(|word| {
        let text = word.text();
        let bundled = letter.len() == 1
            && text.starts_with('-')
            && !text.starts_with("--")
            && text.ends_with(letter);
        bundled || text == short || text == long || text.starts_with(&format!("{long}="))
    })
}

fn after_option(raw: &Raw, short: &str, long: &str) -> Vec<Inside> {
    let Some(at) = position(raw, short, long) else { return Vec::new() };
    if let Some((_, line)) = raw.words.get(at + 1).and_then(|w| w.text().split_once('=')) {
        return vec![Inside::Line(line.to_owned())];
    }
    match raw.words.get(at + 2).map(|word| word.text.clone()) {
        Some(Some(line)) => vec![Inside::Line(line)],
        Some(None) => unknown("the script is computed", raw),
        None => Vec::new(),
    }
}

fn line_of(words: &[Word], raw: &Raw) -> Vec<Inside> {
    let known: Option<Vec<&str>> = words.iter().map(|word| word.text.as_deref()).collect();
    match known {
        Some(known) if !known.is_empty() => vec![Inside::Line(known.join(" "))],
        Some(_) => Vec::new(),
        None => unknown("what it runs is computed", raw),
    }
}

fn find(raw: &Raw) -> Vec<Inside> {
    const RUNS: &[&str] =
        &["-exec", "-execdir", "-ok", "-okdir", "-x", "--exec", "-X", "--exec-batch"];
    let mut found = Vec::new();
    let mut rest = raw.words.as_slice();
    while let Some(at) = rest.iter().position(|word| RUNS.contains(&word.text())) {
        rest = &rest[at + 1..];
        let ends = |word: &&Word| !matches!(word.text(), ";" | "+") || word.text.is_none();
        let words: Vec<Word> = rest.iter().take_while(ends).cloned().collect();
        rest = &rest[words.len()..];
        let mut inner = raw.inside(&words);
        inner.open_ended = true;
        found.push(Inside::Command(Box::new(inner)));
    }
    found
}

/// What git is told to run: an alias with `!`, `submodule foreach`, `bisect run`, `rebase --exec`.
fn git(raw: &Raw) -> Vec<Inside> {
    let mut found = Vec::new();
    for (at, word) in raw.words.iter().enumerate().skip(1) {
        let text = word.text();
        let after = raw.words.get(at + 1..).unwrap_or_default();
        if let Some((key, script)) = text.split_once("=!")
            && key.contains("alias.")
        {
            found.push(Inside::Line(script.to_owned()));
        }
        match (text, raw.words.get(at.saturating_sub(1)).map(Word::text)) {
            ("foreach", Some("submodule")) | ("run", Some("bisect")) => {
                found.extend(line_of(after, raw))
            }
            ("--exec" | "-x", _) => found.extend(line_of(&after[..1.min(after.len())], raw)),
            _ => {}
        }
    }
    found
}
