//! Commands that look as if they only read the workspace, in folders that were made to be misread.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use toolwright_permission::{Action, Policy, shipped_defaults};
use toolwright_tool::{Access, Containment, Plan, Workspace};

struct Place {
    _folder: tempfile::TempDir,
    root: PathBuf,
    workspace: Workspace,
}

fn place(files: &[(&str, &str)]) -> Place {
    let folder = tempfile::tempdir().unwrap();
    let root = fs::canonicalize(folder.path()).unwrap().join("work");
    fs::create_dir_all(&root).unwrap();
    fs::write(root.with_file_name("outside.txt"), "x").unwrap();
    let place = Place { workspace: Workspace::new(&root).unwrap(), _folder: folder, root };
    place.add(files);
    let home = place.root.with_file_name("home");
    Place { workspace: Workspace::new(&place.root).unwrap().at_home(home), ..place }
}

impl Place {
    fn add(&self, files: &[(&str, &str)]) {
        for (path, text) in files {
            let path = self.root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
    }

    fn decide_in(&self, workspace: &Workspace, command: &str) -> Action {
        let directory = workspace.directory().to_owned();
        let access = Access::Execute { command: command.to_owned(), directory };
        let policy = Policy::new(vec![shipped_defaults()]);
        let requests = Plan::new("", vec![access]).requests(workspace);
        requests.iter().map(|r| policy.judge(r).action).max().unwrap_or(Action::Allow)
    }

    #[track_caller]
    fn all(&self, action: Action, commands: &[&str]) {
        for command in commands {
            assert_eq!(self.decide_in(&self.workspace, command), action, "{command}");
        }
    }
}

/// A repository without anything odd.
const PLAIN: &[(&str, &str)] = &[
    (".git/HEAD", "ref: refs/heads/main\n"),
    (".git/config", "[core]\n\tbare = false\n"),
    (".git/objects/x", ""),
    (".git/refs/x", ""),
    ("README.md", "x\n"),
    ("src/main.rs", "x\n"),
];

const RUNS: &str = "[core]\n\tfsmonitor = touch x\n";

#[test]
fn git_is_led_to_a_configuration_by_the_very_bytes_that_it_reads() {
    for pointer in ["gitdir: real \n", "gitdir:  real\n", "gitdir: real\t\n", "gitdir:real\n"] {
        let place = place(PLAIN);
        place.add(&[
            ("ev/.git", pointer),
            ("ev/real/HEAD", "ref: refs/heads/main\n"),
            ("ev/real/config", ""),
            ("ev/real /config", RUNS),
            ("ev/ real/config", RUNS),
            ("ev/real\t/config", RUNS),
        ]);
        place.all(Action::Ask, &["git -C ev status", "cd ev && git status"]);
    }
    for common in [&b"x \n"[..], b"x\t\n", b"\xff\n", b"x\ny\n"] {
        let place = place(PLAIN);
        place.add(&[("x/config", ""), (".git/x/config", "")]);
        place.all(Action::Allow, &["git status"]);
        fs::write(place.root.join(".git/commondir"), common).unwrap();
        for folder in [b"x ".to_vec(), vec![0xff]] {
            let folder = place.root.join(".git").join(OsString::from_vec(folder));
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join("config"), RUNS).unwrap();
        }
        // What is not there orders nothing, and what cannot be read may order anything.
        let expected = if common == b"x\t\n" { Action::Allow } else { Action::Ask };
        assert_eq!(place.decide_in(&place.workspace, "git status"), expected, "{common:?}");
    }
}

#[test]
fn a_folder_called_git_that_is_no_repository_is_passed_over() {
    let place = place(PLAIN);
    place.add(&[
        ("bare/HEAD", "ref: refs/heads/main\n"),
        ("bare/objects/x", ""),
        ("bare/config", RUNS),
    ]);
    fs::create_dir_all(place.root.join("bare/.git")).unwrap();
    fs::create_dir_all(place.root.join("sub/.git")).unwrap();
    place.all(Action::Ask, &["cd bare && git status"]);
    place.all(Action::Allow, &["cd sub && git status"]);
    place.add(&[
        ("sub/.git/HEAD", "nonsense"),
        ("sub/.git/objects/x", ""),
        ("sub/.git/refs/x", ""),
    ]);
    place.add(&[(".git/config", RUNS)]);
    place.all(Action::Ask, &["cd sub && git status", "git status"]);
}

#[test]
fn a_repository_outside_is_looked_at_only_if_it_knows_this_folder() {
    let place = place(PLAIN);
    let other = place.root.with_file_name("other");
    let inside = other.join(".git/worktrees/tree");
    fs::create_dir_all(&inside).unwrap();
    fs::write(other.join(".git/config"), "[core]\n\tbare = false\n").unwrap();
    fs::write(inside.join("commondir"), "../..\n").unwrap();
    let tree = place.root.join("tree");
    place.add(&[("tree/.git", &format!("gitdir: {}\n", inside.display()))]);
    place.all(Action::Ask, &["git -C tree log -p"]);
    fs::write(inside.join("gitdir"), format!("{}\n", tree.join(".git").display())).unwrap();
    place.all(Action::Allow, &["git -C tree log -p"]);
}

#[test]
fn ordinary_repositories_are_looked_at_without_a_question() {
    let place = place(PLAIN);
    place.add(&[
        (".git/config", "[core]\n\thooksPath = .husky/_\n\tfsmonitor = true\n"),
        (".husky/_/pre-commit", "x"),
        (".git/modules/lib/config", "[core]\n\tworktree = ../../../lib\n"),
        ("lib/.git", "gitdir: ../.git/modules/lib\n"),
    ]);
    place.all(Action::Allow, &["git status", "git log --oneline -5", "git diff"]);
    place.add(&[(".husky/_/post-index-change", "x")]);
    place.all(Action::Ask, &["git status"]);
}

#[test]
fn a_program_that_the_workspace_brings_is_not_the_one_that_is_known() {
    let place = place(PLAIN);
    place.add(&[(".venv/bin/jq", "#!/bin/sh\n"), (".venv/bin/pip", "#!/bin/sh\n")]);
    let with = |path: String| place.workspace.clone().searching(OsStr::new(&path));
    let own = with(format!("{}:/usr/bin", place.root.join(".venv/bin").display()));
    for command in ["jq . README.md", "pip --version"] {
        assert_eq!(place.decide_in(&own, command), Action::Ask, "{command}");
    }
    assert_eq!(place.decide_in(&own, "cat README.md"), Action::Allow);
    assert_eq!(place.decide_in(&with("bin:/usr/bin".to_owned()), "cat README.md"), Action::Ask);
    assert_eq!(place.decide_in(&with("/usr/bin".to_owned()), "jq . README.md"), Action::Allow);
}

#[test]
fn options_are_read_as_the_programs_read_them() {
    let place = place(PLAIN);
    place.add(&[(".env", "S"), ("5", "x"), ("args", "x")]);
    place.all(
        Action::Ask,
        &[
            "xxd -pl 5 README.md",
            "xxd README.md -p",
            "xxd README.md --",
            "xxd -ps README.md out.hex",
            "xxd -ps .env",
            "xxd -ps /etc/passwd",
            "tree -Lo 1 out.txt",
            "tree -Ll 2 .",
            "tree --filelimit -L /etc/apt",
            "column -t -n -s .env",
            "strings -n @args",
            "strings -e @args README.md",
            "strings *",
            "git log -1 --format='%+G?' x",
            "git log -1 --format='% GK' x",
            "git for-each-ref --sort=signature:grade",
            "git branch --sort=signature",
            "git tag -l --sort=signature",
            "git whatchanged",
        ],
    );
    place.all(
        Action::Allow,
        &[
            "xxd README.md",
            "xxd -ps README.md",
            "xxd -l 16 README.md",
            "tree -aL 2 .",
            "tree -L 2 -I target",
            "column -t README.md",
            "strings README.md",
            "git branch --sort=-committerdate",
            "git log -1 --format='%h %s'",
        ],
    );
}

#[test]
fn a_move_that_may_fail_leaves_the_rest_of_the_line_where_it_is() {
    let place = place(PLAIN);
    place.add(&[(".env", "S"), ("src/x", "")]);
    place.all(
        Action::Ask,
        &[
            "chdir src; cat .env",
            "cd -q src; cat .env",
            "cd -s src; cat ../outside.txt",
            "cd -L -q src; cat ../outside.txt",
            "cd -- -- src; cat .env",
            "pushd -P src; cat .env",
            "pushd -q src; cat x",
        ],
    );
    place.all(Action::Allow, &["cd -P src; cat x", "cd -- src; cat x", "cd -L src && cat x"]);
}

#[test]
fn searches_are_followed_to_the_secrets_that_they_would_print() {
    let place = place(PLAIN);
    place.add(&[(".env", "S"), ("docs/a.md", "x"), (".docker/config.json", "x")]);
    place.all(
        Action::Ask,
        &[
            "grep -r S < README.md",
            "git grep --untracked S < README.md",
            "git grep --untracked S -- ':!foo'",
            "git grep --untracked S -- '\\.env'",
            "cat .[!]x]nv",
            "cat .[^]x]nv",
            "cat .[a\"]\"e]nv",
            "grep -r --include='\\.env' S .",
            "grep -r --include='[\\].]env' S .",
            "rg -g '.env' S",
            "rg -g '.e*' S",
            "rg -g '\\.env' S",
            "rg -g '.env ' S",
            "rg --iglob .ENV S",
            "rg -tjson auths .docker",
            "cd src && git show HEAD:.env",
            "git show HEAD:gone/.env",
            "git diff docs src/../.",
            "cat .?/outside.txt",
            "cat .*/.env",
        ],
    );
    place.all(
        Action::Allow,
        &[
            "rg S",
            "rg -t rust S",
            "rg -g '*.md' S",
            "grep -r S docs",
            "git grep --untracked S docs",
        ],
    );
    place.add(&[(".gitignore", "target\n!.keep\n")]);
    place.all(Action::Allow, &["rg S"]);
    place.add(&[(".gitignore", "target\n!.env\n")]);
    place.all(Action::Ask, &["rg S"]);
}

#[test]
fn links_that_lead_out_are_found_where_programs_follow_them() {
    let place = place(PLAIN);
    place.add(&[("a/x", "x"), ("b/x", "x"), ("[x]z", "x")]);
    place.all(Action::Allow, &["diff a b", "cat a/*"]);
    symlink("../../outside.txt", place.root.join("a/leads")).unwrap();
    place.all(Action::Ask, &["diff a b", "diff -N a b"]);
    symlink("../../outside.txt", place.root.join("b").join(OsString::from_vec(vec![0xff])))
        .unwrap();
    place.all(Action::Ask, &["cat b/*"]);
    place.add(&[("envs/dev", "S"), ("lk/x", "")]);
    symlink("../envs/dev", place.root.join("lk/.env")).unwrap();
    place.all(Action::Ask, &["cat lk/.env"]);
    place.all(Action::Allow, &["cat envs/dev"]);
    symlink("../outside.txt", place.root.join("[x]y")).unwrap();
    place.all(Action::Ask, &["cat \\[x\\]?"]);
}

#[test]
fn in_a_fence_a_file_counts_however_it_is_named() {
    let place = place(PLAIN);
    place.add(&[(".env", "S")]);
    let fence = || Containment { is_closed: true, ..Containment::default() };
    let fenced = place.workspace.clone().contained(fence);
    for command in [
        "cat $(echo .env)",
        "cat `echo .env`",
        "git diff --no-index /dev/null .env",
        "git hash-object -w .env",
        "git show HEAD:.env",
        "touch .env; python3 -c \"print(open('.env').read())\"",
        "mv .env notes.txt && cat notes.txt",
        "gzip -c .env",
        "zip x.zip .env",
        "vim -es +p +q .env",
        "gzip -c /etc/passwd",
        "tar cf - /etc/passwd",
        "python3 -c \"open('/etc/passwd')\"",
        "grep --file=README.md /etc/passwd",
        "curl file:///etc/passwd",
    ] {
        assert_eq!(place.decide_in(&fenced, command), Action::Ask, "{command}");
    }
    for command in ["rm .env", "touch .env", "chmod 600 .env", "/usr/bin/env make", "echo see .env"]
    {
        assert_eq!(place.decide_in(&fenced, command), Action::Allow, "{command}");
    }
    assert!(Path::new("/etc/passwd").exists());
}
