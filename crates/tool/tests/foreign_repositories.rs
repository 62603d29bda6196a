//! Lines that look like reading, where a folder or a link makes them something else.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use toolwright_permission::{Action, Policy, shipped_defaults};
use toolwright_tool::{Access, Plan, Workspace};

struct Place {
    _folder: tempfile::TempDir,
    root: PathBuf,
}

impl Place {
    /// A repository with one commit.
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(folder.path()).unwrap().join("work");
        fs::create_dir(&root).unwrap();
        let place = Self { _folder: folder, root };
        place.git(&["init", "-q"]);
        place.write("a.txt", "a\n");
        place.git(&["add", "a.txt"]);
        place.git(&["commit", "-qm", "one"]);
        place
    }

    fn git(&self, args: &[&str]) {
        self.git_in(&self.root, args);
    }

    fn git_in(&self, folder: &Path, args: &[&str]) {
        let done = Command::new("git")
            .args(["-c", "user.name=A", "-c", "user.email=a@example.org"])
            .args(args)
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .current_dir(folder)
            .status();
        assert!(done.unwrap().success(), "git {args:?}");
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn decide(&self, command: &str) -> Action {
        let workspace = Workspace::new(&self.root).unwrap();
        let access = Access::Execute { command: command.to_owned(), directory: self.root.clone() };
        let requests = Plan::new("", vec![access]).requests(&workspace);
        let policy = Policy::new(vec![shipped_defaults()]);
        requests.iter().map(|r| policy.judge(r).action).max().unwrap_or(Action::Allow)
    }
}

const HOSTILE: &str = "[core]\n\tfsmonitor = touch made\n";

#[test]
fn looking_at_an_ordinary_repository_is_allowed() {
    let place = Place::new();
    for command in ["git status", "git log -p", "git show HEAD:a.txt", "git diff -U3"] {
        assert_eq!(place.decide(command), Action::Allow, "{command}");
    }
}

#[test]
fn a_folder_that_git_takes_for_a_repository_is_asked_about() {
    let place = Place::new();
    place.write("fix/HEAD", "ref: refs/heads/main\n");
    place.write("fix/commondir", "x\n");
    place.write("fix/x/config", HOSTILE);
    for command in ["git -C fix show", "cd fix && git log -p"] {
        assert_eq!(place.decide(command), Action::Ask, "{command}");
    }
}

#[test]
fn a_repository_inside_that_the_index_knows_is_looked_at_too() {
    let place = Place::new();
    let inner = place.root.join("sub");
    fs::create_dir(&inner).unwrap();
    place.git_in(&inner, &["init", "-q"]);
    place.write("sub/b.txt", "b\n");
    place.git_in(&inner, &["add", "b.txt"]);
    place.git_in(&inner, &["commit", "-qm", "inner"]);
    place.git(&["-c", "advice.addEmbeddedRepo=false", "add", "sub"]);
    assert_eq!(place.decide("git status"), Action::Allow);
    place.write("sub/.git/config", HOSTILE);
    assert_eq!(place.decide("git status"), Action::Ask);
    assert_eq!(place.decide("git diff"), Action::Ask);
    fs::remove_dir_all(&inner).unwrap();
    assert_eq!(place.decide("git status"), Action::Allow);
}

#[test]
fn going_up_from_a_link_is_judged_by_name_and_by_place() {
    let place = Place::new();
    fs::create_dir_all(place.root.join("a/b")).unwrap();
    fs::write(place.root.join("x"), "x").unwrap();
    symlink("a/b", place.root.join("l")).unwrap();
    for command in ["cd l && cd ../.. && cat x", "cd l/../.. && ls", "cd l && cd .. && cd .. && ls"]
    {
        assert_eq!(place.decide(command), Action::Ask, "{command}");
    }
    assert_eq!(place.decide("cd l && ls"), Action::Allow);
    assert_eq!(place.decide("cd a/b && cd ../.. && cat x"), Action::Allow);
}

#[test]
fn options_that_swallow_no_word_are_read_as_git_reads_them() {
    let place = Place::new();
    for command in [
        "git log -U --output=a.txt -p",
        "git log --unified --output=a.txt -p",
        "git diff -L --output=a.txt",
        "git branch --abbrev -D --abbrev feature",
        "git branch --abbrev newname",
        "git blame --abbrev --contents=/etc/passwd a.txt",
        "git log --format --output=x%",
        "git log --since --output=x",
        "git -C a show HEAD:.env",
        "tree -Ix -- -o a.txt",
        "tree -Px -o a.txt",
        "awk 1 -F /etc/passwd",
        "awk '{print}' -f a.txt",
    ] {
        assert_eq!(place.decide(command), Action::Ask, "{command}");
    }
    for command in [
        "git log --since 2.days",
        "git log -n 3 --format=%h",
        "git log --max-count 3",
        "tree -I target -L 2",
        "awk -F : '{print $1}' a.txt",
        "tail -n -3 a.txt",
    ] {
        assert_eq!(place.decide(command), Action::Allow, "{command}");
    }
}
