//! Commands that only read and print: a short list, because whatever is not on it is asked about.

use super::parse::Raw;

/// Whether the rules that ship need not ask about this command. What it reads is judged like any
/// other reading.
pub(super) fn is_harmless(name: &str, raw: &Raw) -> bool {
    // Options may come from elsewhere, another program may hide under the name, a variable may change
    // what it does.
    if raw.open_ended || raw.is_path() || !raw.assigned.is_empty() || name.is_empty() {
        return false;
    }
    if raw.redirects.iter().any(|r| r.writes && r.to.text.as_deref() != Some("/dev/null")) {
        return false;
    }
    let Some(arguments) = raw.arguments() else { return false };
    if arguments.iter().any(|word| leaves_workspace(word)) {
        return false;
    }
    let several = raw.words.iter().any(|word| word.pattern);
    match name {
        "cd" | "pwd" | "true" | "false" | "whoami" | "id" | "uname" | "nproc" | "arch" | "test"
        | "[" | ":" => true,
        // Names and sizes only: a pattern may stand for anything, and no option does harm.
        "ls" | "du" | "df" | "echo" | "basename" | "dirname" | "which" | "printf" => {
            name != "printf" || !arguments.iter().any(|a| a.starts_with("-v"))
        }
        // A pattern could stand for a file that is not for everybody.
        "cat" | "head" | "wc" | "stat" | "nl" | "tac" | "cut" | "tr" | "cksum" | "md5sum"
        | "sha1sum" | "sha256sum" | "sha512sum" | "file" | "cmp" => {
            !several && !has_long_writer(&arguments)
        }
        "tail" => {
            !several
                && !arguments
                    .iter()
                    .any(|a| a.starts_with("-f") || a.starts_with("-F") || a.starts_with("--f"))
        }
        "uniq" => !several && arguments.iter().filter(|a| !a.starts_with('-')).count() <= 1,
        "sort" => {
            const SAFE: &[&str] = &["-r", "-n", "-u", "-h", "-rn", "-nr", "-V", "-f"];
            !several && arguments.iter().all(|a| !a.starts_with('-') || SAFE.contains(a))
        }
        "git" => !several && is_reading_git(&arguments),
        "cargo" | "rustc" | "node" | "npm" | "python3" | "python" | "go" | "gcc" | "make"
        | "rustup" | "java" => {
            matches!(arguments.as_slice(), ["--version" | "-V"] | ["version"])
        }
        _ => false,
    }
}

fn has_long_writer(arguments: &[&str]) -> bool {
    arguments.iter().any(|a| {
        a.starts_with("--files0-from")
            || a.starts_with("--c") && a.contains("heck")
            || a.starts_with("-C")
    })
}

fn is_reading_git(arguments: &[&str]) -> bool {
    let Some((subcommand, rest)) = arguments.split_first() else { return false };
    // Git takes any unambiguous beginning of an option: `--outp=x` is `--output=x`.
    const HARMFUL: &[&str] = &["--o", "--ext", "--textc", "--no-i", "--exec", "--upl", "--rec"];
    let harmful = |a: &&str| HARMFUL.iter().any(|p| a.starts_with(p)) && *a != "--oneline";
    if rest.iter().any(harmful) {
        return false;
    }
    match *subcommand {
        "status" | "log" | "diff" | "show" | "rev-parse" | "ls-files" | "describe" | "shortlog"
        | "blame" | "--version" => true,
        // With a name it would make or delete one.
        "branch" => rest.iter().all(|a| {
            matches!(*a, "-a" | "-r" | "-v" | "-vv" | "--list" | "--all" | "--show-current")
        }),
        "remote" => matches!(rest, [] | ["-v"]),
        _ => false,
    }
}

/// A path that could point out of the workspace. A tilde inside a word is not expanded.
fn leaves_workspace(word: &str) -> bool {
    let value = word.rsplit_once('=').map_or(word, |(_, value)| value);
    value.starts_with('/') && value != "/dev/null"
        || value.starts_with('~')
        || value.split('/').any(|part| part == "..")
}
