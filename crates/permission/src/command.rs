//! Recognises plain commands that only read. Anything with an operator, an expansion or a word
//! that it does not know is not plain: it is left to the rules.

/// The parts of a command line that rules are matched against: everything between operators, and
/// what substitutions run. It splits inside quotes too, which can only make the answer stricter.
pub fn pieces(command: &str) -> Vec<String> {
    let operators = [';', '&', '|', '\n', '\r', '(', ')', '{', '}', '`'];
    let found = command.split(operators).map(|piece| piece.trim().trim_end_matches('$').trim());
    let pieces: Vec<String> = found.filter(|p| !p.is_empty()).map(str::to_owned).collect();
    if pieces.is_empty() { vec![command.trim().to_owned()] } else { pieces }
}

/// The words that a plain read-only command names besides its options: what it would read.
pub fn named_by_plain_command(command: &str) -> Option<Vec<String>> {
    let words = plain_words(command).filter(|_| is_plain_read_only(command))?;
    Some(words.into_iter().skip(1).filter(|word| !word.starts_with('-')).collect())
}

/// Whether `command` is a single simple command that reads and cannot write, run something else
/// or look outside the workspace.
pub fn is_plain_read_only(command: &str) -> bool {
    let Some(words) = plain_words(command) else { return false };
    let Some((program, arguments)) = words.split_first() else { return false };
    if arguments.iter().any(|word| leaves_workspace(word)) {
        return false;
    }
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match program.as_str() {
        "pwd" | "true" | "false" | "whoami" | "id" | "uname" | "nproc" | "arch" => true,
        "ls" | "cat" | "head" | "wc" | "stat" | "du" | "df" | "echo" | "basename" | "dirname"
        | "which" | "cksum" | "md5sum" | "sha256sum" => true,
        "tail" => !arguments.iter().any(|a| a.starts_with("-f") || a.starts_with("--follow")),
        "git" => is_reading_git(&arguments),
        "cargo" | "rustc" | "node" | "npm" | "python3" | "python" | "go" | "gcc" | "make" => {
            matches!(arguments.as_slice(), ["--version" | "-V"] | ["version"])
        }
        _ => false,
    }
}

fn is_reading_git(arguments: &[&str]) -> bool {
    let Some((subcommand, rest)) = arguments.split_first() else { return false };
    // Git takes any unambiguous beginning of an option: `--outp=x` is `--output=x`.
    let writes =
        |a: &&str| a.starts_with("--ou") || a.starts_with("--ext") || a.starts_with("--textc");
    if rest.iter().any(writes) {
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

/// A path that could point out of the workspace. A symlink inside it still can; the sandbox and the
/// real analysis look at that, and reading is all that such a command can do.
fn leaves_workspace(word: &str) -> bool {
    let value = word.rsplit_once('=').map_or(word, |(_, value)| value);
    value.starts_with('/') || value.starts_with('~') || value.split('/').any(|part| part == "..")
}

/// Splits a command into words, or gives up on anything that the shell would interpret.
fn plain_words(command: &str) -> Option<Vec<String>> {
    const SAFE: &str = "-_./,:=+@%^";
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut characters = command.trim().chars();
    while let Some(c) = characters.next() {
        match c {
            ' ' | '\t' => words.extend(word.take()),
            '\'' | '"' => {
                let word = word.get_or_insert_default();
                loop {
                    match characters.next()? {
                        end if end == c => break,
                        '$' | '`' | '\\' | '!' if c == '"' => return None,
                        '\n' | '\r' | '\0' => return None,
                        other => word.push(other),
                    }
                }
            }
            c if c.is_ascii_alphanumeric() || SAFE.contains(c) => {
                word.get_or_insert_default().push(c);
            }
            _ => return None,
        }
    }
    words.extend(word);
    // `NAME=value command` sets a variable that may change what the command does.
    let assignment = words.first().is_some_and(|w| w.contains('='));
    (!words.is_empty() && !assignment).then_some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_reading_commands_are_recognised() {
        for command in [
            "ls",
            "ls -la src",
            "cat README.md",
            "git status",
            "git log --oneline -5",
            "git diff HEAD~1 -- src/main.rs",
            "git show HEAD",
            "head -n 20 'a file.txt'",
            "wc -l src/lib.rs",
            "echo \"hello world\"",
            "git branch -a",
            "cargo --version",
            "  pwd  ",
            "git show HEAD:src/x.rs",
        ] {
            // `HEAD~1` holds a tilde that the shell does not expand, but a simple reading cannot tell.
            let expected = !command.contains('~');
            assert_eq!(is_plain_read_only(command), expected, "{command}");
        }
    }

    #[test]
    fn a_command_line_is_judged_piece_by_piece() {
        for (line, expected) in [
            ("ls", &["ls"][..]),
            ("  rm -rf x ", &["rm -rf x"]),
            ("cd . && rm -rf x", &["cd .", "rm -rf x"]),
            ("git log $(rm x) | sh; true &", &["git log", "rm x", "sh", "true"]),
            ("echo `rm x`\nls", &["echo", "rm x", "ls"]),
            (";", &[";"]),
        ] {
            assert_eq!(pieces(line), expected, "{line}");
        }
    }

    #[test]
    fn nothing_that_could_write_run_or_leave_is_plain() {
        for command in [
            "",
            "ls; rm x",
            "ls && rm x",
            "ls | sh",
            "ls > x",
            "cat < x",
            "ls &",
            "$(rm x)",
            "`rm x`",
            "ls $HOME",
            "echo \"$(rm x)\"",
            "cat /etc/passwd",
            "cat ../x",
            "cat ~/.ssh/config",
            "ls\nrm x",
            "git -c alias.x=!sh x",
            "git push",
            "git branch new",
            "git diff --output=x",
            "git log --ext-diff",
            "tree -o x",
            "tail -f x",
            "GIT_DIR=x git status",
            "rm x",
            "env",
            "find . -delete",
            "sudo ls",
            "bash -c ls",
            "ls *",
            "ls ?",
            "ls {a,b}",
            "cat 'unclosed",
            "cat \\x",
            "!!",
            "# comment",
            "ls (x)",
            "git log --output x",
            "git diff --outp=x",
            "git diff --no-index a --output=/etc/x",
            "cat --x=/etc/passwd",
            "./ls",
            "\u{ff4c}s",
            "time ls",
        ] {
            assert!(!is_plain_read_only(command), "{command:?}");
        }
    }
}
