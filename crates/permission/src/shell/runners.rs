//! Options by which programs run other programs. Whoever allowed `git *` did not mean
//! `git -c core.pager=…`: such a command is in doubt whatever its name is.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::parse::Raw;
use super::word::Word;

/// Program and the beginnings of words that make it run something.
const RUNNERS: &[(&str, &[&str])] = &[
    (
        "git",
        &[
            "-c",
            "--config-env",
            "--exec-path",
            "--upload-pack",
            "--receive-pack",
            "-u",
            "-O",
            "--open-files-in-pager",
            "--ext-diff",
            "--extcmd",
            "ext::",
        ],
    ),
    (
        "tar",
        &[
            "--to-command",
            "--checkpoint-action",
            "-I",
            "--use-compress-program",
            "--rsh-command",
            "-F",
            "--info-script",
            "--new-volume-script",
        ],
    ),
    ("bsdtar", &["--use-compress-program"]),
    ("rg", &["--pre", "--hostname-bin", "-z", "--search-zip"]),
    ("sort", &["--compress-program"]),
    ("rsync", &["-e", "--rsh", "--rsync-path"]),
    ("ssh", &["-o", "-F"]),
    ("scp", &["-S", "-o", "-F"]),
    ("sftp", &["-S", "-o", "-F"]),
    ("zip", &["-T", "--unzip-command"]),
    ("man", &["-P", "--pager", "-H", "--html"]),
    ("less", &["+"]),
    ("vim", &["-c", "+", "-S", "--cmd", "-s", "-u"]),
    ("vi", &["-c", "+", "-S", "--cmd", "-u"]),
    ("nvim", &["-c", "+", "-S", "--cmd", "-l", "-u", "--headless"]),
    ("ex", &["-c", "+", "-S", "--cmd"]),
    ("emacs", &["--eval", "-eval", "-f", "--funcall", "-l", "--load", "--script", "--batch"]),
    ("curl", &["-K", "--config", "--engine", "--netrc-file"]),
    ("wget", &["--use-askpass", "--config", "-e", "--execute"]),
    ("make", &["SHELL=", "--eval", "-f", "-E"]),
    ("gcc", &["-wrapper", "-B", "-fplugin", "-specs", "@"]),
    ("clang", &["-fplugin", "-B", "-Xclang", "-load"]),
    ("rustc", &["-C", "-Clinker", "--codegen"]),
    ("cargo", &["--config"]),
    ("npm", &["--script-shell", "--node-options"]),
    ("node", &["-r", "--require", "--import", "--loader", "-e", "--eval", "-p", "--print"]),
    ("python", &["-c", "-m"]),
    ("python3", &["-c", "-m"]),
    ("perl", &["-e", "-E", "-M", "-m", "-n", "-p"]),
    ("ruby", &["-e", "-r"]),
    ("php", &["-r", "-d"]),
    ("lua", &["-e", "-l"]),
    ("docker", &["--entrypoint"]),
    ("ip", &["netns"]),
    ("openssl", &["-engine", "-provider"]),
    ("gdb", &["-ex", "--eval-command", "-x", "--command", "-iex"]),
    ("tcpdump", &["-z", "--postrotate-command"]),
    ("split", &["--filter"]),
    ("mysql", &["-e", "--execute", "--pager"]),
    ("psql", &["-c", "--command", "-f"]),
    ("sqlite3", &[".shell", ".system", "-cmd", "-init"]),
    ("nmap", &["--script", "--interactive"]),
    ("pip", &["--global-option", "--install-option"]),
    ("dpkg", &["--pre-invoke", "--post-invoke"]),
    ("apt", &["-o", "--option"]),
    ("apt-get", &["-o", "--option"]),
    ("ansible", &["-m", "-a"]),
    ("tmux", &["new", "new-session", "send-keys", "run-shell", "respawn-pane", "split-window"]),
    ("screen", &["-X", "-dm", "-d"]),
    ("socat", &["EXEC:", "SYSTEM:", "exec:", "system:"]),
    ("nc", &["-e", "-c", "--exec", "--sh-exec"]),
    ("ncat", &["-e", "-c", "--exec", "--sh-exec", "--lua-exec"]),
];

static BY_NAME: LazyLock<HashMap<&str, &[&str]>> =
    LazyLock::new(|| RUNNERS.iter().copied().collect());

/// Programs whose words are programs in languages of their own.
const LANGUAGES: &[&str] = &["awk", "gawk", "mawk", "nawk"];

pub(super) fn runs(name: &str, raw: &Raw) -> Option<String> {
    let words = raw.words.get(1..).unwrap_or_default();
    let doubt = |word: &Word| format!("it may run another program by {}", word.source);
    if let Some(marks) = BY_NAME.get(name) {
        let marked = |word: &&Word| marks.iter().any(|mark| is_marked(word.text(), mark, name));
        return words.iter().find(marked).map(doubt);
    }
    if LANGUAGES.contains(&name) {
        let reaches = |word: &&Word| {
            let text = word.text();
            text.contains("system")
                || text.contains('|')
                || text.contains("getline")
                || text.contains("@load")
        };
        return words.iter().find(reaches).map(doubt);
    }
    if name == "sed" {
        let executes = |word: &&Word| {
            let text = word.text();
            !text.starts_with('-')
                && (text.ends_with('e') && text.contains('s')
                    || text.starts_with('e')
                    || text.contains(";e"))
        };
        return words.iter().find(executes).map(doubt);
    }
    None
}

/// Short options may stand in a bundle, long ones may be cut short.
fn is_marked(text: &str, mark: &str, program: &str) -> bool {
    if let Some(letter) = mark.strip_prefix('-').filter(|rest| rest.chars().count() == 1) {
        // Git's subcommands use letters in other ways: only as written.
        if program == "git" || program == "rustc" {
            return text == mark && program == "git" && mark != "-u"
                || text.starts_with(mark) && mark != "-u" && mark != "-c";
        }
        let bundle = text.strip_prefix('-').filter(|rest| !rest.starts_with('-'));
        return bundle.is_some_and(|bundle| bundle.contains(letter));
    }
    if mark.starts_with("--") {
        let name = text.split('=').next().unwrap_or_default();
        return name.len() > 3 && (name.starts_with(mark) || mark.starts_with(name));
    }
    text.starts_with(mark)
}
