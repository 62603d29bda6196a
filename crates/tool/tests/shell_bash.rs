//! A second opinion from bash itself: what the table allows runs no program, with no words, but those that
//! were read, and leaves the workspace as it was. The programs are stand-ins that write down how they were
//! called. Skipped, and said, where there is no bash.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use toolwright_permission::reprint;

/// Programs that the table allows, and some that it must not reach.
const PROGRAMS: &[&str] = &[
    "ls",
    "cat",
    "head",
    "tail",
    "wc",
    "sort",
    "uniq",
    "cut",
    "tr",
    "diff",
    "stat",
    "file",
    "sha256sum",
    "du",
    "df",
    "git",
    "rg",
    "grep",
    "find",
    "fd",
    "tree",
    "sed",
    "awk",
    "jq",
    "which",
    "cargo",
    "rustc",
    "node",
    "python3",
    "date",
    "whoami",
    "uname",
    "basename",
    "rm",
    "sh",
    "bash",
    "touch",
    "tee",
    "xargs",
    "env",
];

fn bash() -> Option<PathBuf> {
    ["/bin/bash", "/usr/bin/bash"].iter().map(PathBuf::from).find(|path| path.exists())
}

/// How programs were called by a line, each once.
fn calls(bash: &Path, root: &Path, line: &str) -> BTreeSet<String> {
    let log = root.join("log");
    fs::write(&log, "").unwrap();
    Command::new(bash)
        .args(["--norc", "--noprofile", "-c", line])
        .current_dir(root.join("work"))
        .env_clear()
        .env("PATH", root.join("bin"))
        .env("LOG", &log)
        .env("HOME", root.join("work"))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .unwrap();
    fs::read_to_string(&log)
        .unwrap()
        .split('\u{1}')
        .map(|call| call.trim_start_matches('\u{1f}').to_owned())
        .collect()
}

fn files(folder: &Path) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    for entry in fs::read_dir(folder).unwrap().flatten() {
        if entry.file_type().unwrap().is_dir() {
            found.extend(files(&entry.path()));
        }
        found.insert(entry.path());
    }
    found
}

#[test]
fn what_is_allowed_runs_what_was_read_and_nothing_else() {
    let Some(bash) = bash() else {
        println!("skipped: there is no bash");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    for name in ["bin", "work/src", "work/sub"] {
        fs::create_dir_all(root.join(name)).unwrap();
    }
    for name in ["a.txt", "b.txt", "README.md", "src/main.rs", "src/lib.rs"] {
        fs::write(root.join("work").join(name), "a\n").unwrap();
    }
    for name in PROGRAMS {
        let path = root.join("bin").join(name);
        fs::write(&path, "#!/bin/sh\nprintf '%s\\037' \"$0\" \"$@\" '\u{1}' >> \"$LOG\"\n")
            .unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let before = files(&root.join("work"));
    let text = include_str!("shell_table.txt");
    let allowed = text.lines().filter(|row| row.starts_with("allow"));
    let mut ran = 0;
    for row in allowed {
        let line = row.splitn(3, " |").nth(2).unwrap().trim_start();
        let line = line.replace('␤', "\n").replace('⇥', "\t");
        let printed = reprint(&line).expect("what is allowed is read as a whole");
        let (wanted, found) = (calls(&bash, root, &printed), calls(&bash, root, &line));
        ran += found.len();
        assert!(found.is_subset(&wanted), "{line:?} ran {found:?}, read was {wanted:?}");
        assert_eq!(files(&root.join("work")), before, "{line:?}");
    }
    assert!(ran > 100, "the stand-ins were called");
    // That the stand-ins and the comparison work at all.
    let hidden = calls(&bash, root, "ls;r''m x");
    assert!(hidden.iter().any(|call| call.contains("/rm\u{1f}x")), "{hidden:?}");
}
