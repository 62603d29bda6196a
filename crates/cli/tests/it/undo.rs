//! Taking back what a session did, through the command line.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use toolwright_testkit::{Answer, Captured, Folder, ModelServer, Reply, Wire};

use crate::{folder, results};

const MODEL: &str = "anthropic/m";

fn run(folder: &Folder, prompt: &str) {
    folder.tw(&["run", "--auto", "-c", "-m", MODEL, prompt]).expect(0);
}

fn first_run(folder: &Folder, prompt: &str) {
    folder.tw(&["run", "--auto", "-m", MODEL, prompt]).expect(0);
}

fn bash(command: &str) -> Value {
    json!({ "command": command })
}

fn write(path: &str, content: &str) -> Value {
    json!({"filePath": path, "content": content})
}

fn json_of(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|e| panic!("{e}: {text}"))
}

/// Everything below a folder: kind, mode, content.
pub(crate) fn everything(root: &Path) -> BTreeMap<PathBuf, String> {
    let mut found = BTreeMap::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap().flatten() {
            let path = entry.path();
            let data = fs::symlink_metadata(&path).unwrap();
            let mode = data.permissions().mode() & 0o7777;
            let what = if data.is_symlink() {
                format!("-> {}", fs::read_link(&path).unwrap().display())
            } else if data.is_dir() {
                folders.push(path.clone());
                format!("folder {mode:o}")
            } else {
                format!("{mode:o} {:?}", fs::read(&path).unwrap())
            };
            found.insert(path.strip_prefix(root).unwrap().to_owned(), what);
        }
    }
    found
}

pub(crate) fn git(folder: &Path, line: &str) {
    let script = format!("set -e; {line}");
    let output = Command::new("sh")
        .args(["-c", &script])
        .current_dir(folder)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .envs([("GIT_AUTHOR_NAME", "T"), ("GIT_AUTHOR_EMAIL", "t@example.org")])
        .envs([("GIT_COMMITTER_NAME", "T"), ("GIT_COMMITTER_EMAIL", "t@example.org")])
        .output()
        .unwrap();
    assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Edits, a new file, and all that a shell does to files, some of it side by side.
fn busy_model() -> ModelServer {
    ModelServer::start([
        Reply::default()
            .call("write", write("new/deep/file", "new\n"))
            .call("edit", json!({"filePath": "a.txt", "oldString": "one", "newString": "two"}))
            .into(),
        Answer::call(
            "bash",
            bash(
                "rm gone; mv moved elsewhere; chmod 755 mode; ln -sfn a.txt link; sed -i s/x/y/ sed; mkdir empty; rmdir was-empty; rm -r tree; echo z > ignored.log",
            ),
        ),
        Reply::default().call("bash", bash("echo p > p")).call("bash", bash("echo q > q")).into(),
        Answer::text("Done."),
    ])
}

fn lively(folder: Folder) -> Folder {
    let names = ["gone", "moved", "mode", "sed", "tree/x", "tree/deeper/y", "ignored.log"];
    let folder = names.iter().fold(folder.file("a.txt", "one\n"), |f, name| f.file(name, "x\n"));
    folder.write(".gitignore", "*.log\n");
    fs::create_dir(folder.work().join("was-empty")).unwrap();
    std::os::unix::fs::symlink("gone", folder.work().join("link")).unwrap();
    folder
}

#[test]
fn edits_and_commands_in_a_plain_folder_are_undone_and_redone() {
    let server = busy_model();
    let folder = lively(folder()).with_model(&server, Wire::Anthropic);
    let mut before = everything(&folder.work());
    first_run(&folder, "change it all");
    let after = everything(&folder.work());
    assert_eq!(folder.read("a.txt"), "two\n");

    let dry = folder.tw(&["undo", "--dry-run"]).expect(0);
    assert!(dry.stdout.contains("would be undone: change it all"), "{}", dry.stdout);
    assert_eq!(everything(&folder.work()), after, "a dry run changes nothing");

    let done = folder.tw(&["undo"]).expect(0);
    assert!(done.stdout.contains("undone: change it all"), "{}", done.stdout);
    assert!(
        done.stdout.contains("a.txt") && done.stdout.contains("outside the workspace"),
        "{}",
        done.stdout
    );
    before.insert("ignored.log".into(), after[Path::new("ignored.log")].clone());
    assert_eq!(everything(&folder.work()), before);
    assert!(!folder.tw(&["show"]).expect(0).stdout.contains("change it all"));
    let again = folder.tw(&["undo"]).expect(2);
    assert!(again.stderr.contains("nothing to undo"), "{}", again.stderr);

    let redone = json_of(&folder.tw(&["redo", "--json"]).expect(0).stdout);
    assert_eq!(redone["messages"], json!(["change it all"]));
    assert_eq!(redone["complete"], true);
    assert_eq!(everything(&folder.work()), after);
    assert!(folder.tw(&["show"]).expect(0).stdout.contains("change it all"));
    folder.tw(&["redo"]).expect(2);
}

#[test]
fn a_dirty_repository_keeps_its_head_its_index_and_its_stashes() {
    let server = busy_model();
    let folder = lively(folder()).with_model(&server, Wire::Anthropic);
    let work = folder.work();
    git(
        &work,
        "git init -q; git add -A; git commit -qm first; echo s > stashed; git stash -qu
         echo staged > a.txt; git add a.txt; echo one > a.txt; echo one > untracked",
    );
    let before = everything(&work);
    first_run(&folder, "change it all");
    server.then(Answer::call(
        "bash",
        bash("git -c user.name=T -c user.email=t@e.org commit -qam more && git rm -q --cached sed"),
    ));
    server.then(Answer::text("Committed."));
    run(&folder, "commit it");
    let repository = everything(&work.join(".git"));
    let undone = folder.tw(&["undo", "--to", "1"]).expect(0);
    assert!(
        undone.stdout.contains("git went from main at")
            || undone.stdout.contains("git went from master at"),
        "{}",
        undone.stdout
    );
    assert_eq!(everything(&work.join(".git")), repository, "HEAD, index, stash, objects");
    let files = |all: BTreeMap<PathBuf, String>| -> BTreeMap<PathBuf, String> {
        let ours = |path: &PathBuf| !path.starts_with(".git") && !path.ends_with("ignored.log");
        all.into_iter().filter(|(path, _)| ours(path)).collect()
    };
    assert_eq!(files(everything(&work)), files(before));
}

#[test]
fn to_an_earlier_message_by_number_and_by_id_and_on_from_there() {
    let server = ModelServer::start([]);
    for number in 1..=3 {
        server.then(Answer::call("write", write("a.txt", &number.to_string())));
        server.then(Answer::text("ok"));
    }
    let folder = folder().with_model(&server, Wire::Anthropic);
    first_run(&folder, "say 1");
    run(&folder, "say 2");
    run(&folder, "say 3");
    let list = json_of(&folder.tw(&["undo", "--list", "--json"]).expect(0).stdout);
    assert_eq!(list[1]["title"], "say 2");
    let wrong = folder.tw(&["undo", "--to", "99"]).expect(2);
    assert!(wrong.stderr.contains("no message 99"), "{}", wrong.stderr);
    let answer = folder.tw(&["undo", "--to", "2"]).expect(2);
    assert!(answer.stderr.contains("no message of yours"), "{}", answer.stderr);
    folder.tw(&["undo", "--to", list[1]["id"].as_str().unwrap()]).expect(0);
    assert_eq!(folder.read("a.txt"), "1");
    folder.tw(&["redo"]).expect(0);
    assert_eq!(folder.read("a.txt"), "3");
    folder.tw(&["undo", "--to", &list[1]["number"].to_string()]).expect(0);
    // The conversation goes on from there, and the model does not hear of the rest.
    server.then(Answer::text("ok"));
    run(&folder, "say something else");
    let said = server.last_request().body["messages"].to_string();
    assert!(said.contains("say 1") && !said.contains("say 2"), "{said}");
    assert_eq!(folder.read("a.txt"), "1");
}

#[test]
fn what_somebody_changed_since_is_left_alone_and_told_with_its_versions() {
    let server = ModelServer::start([
        Answer::call("write", write("a.txt", "by us\n")),
        Answer::call("write", write("b.txt", "by us\n")),
        Answer::text("ok"),
    ]);
    let folder = folder().file("a.txt", "before\n").with_model(&server, Wire::Anthropic);
    // The tools want a file to be read before it is overwritten.
    fs::write(folder.work().join("c.txt"), "").unwrap();
    fs::remove_file(folder.work().join("a.txt")).unwrap();
    first_run(&folder, "go");
    folder.write("a.txt", "theirs\n");
    let told = folder.tw(&["undo"]).expect(1);
    assert_eq!(folder.read("a.txt"), "theirs\n");
    assert!(!folder.work().join("b.txt").exists(), "the rest is undone");
    assert!(told.stdout.contains("changed since by somebody else"), "{}", told.stdout);
    let left =
        told.stdout.lines().find_map(|l| l.split_once("after: ")?.1.split_once(" (")).unwrap();
    assert_eq!(fs::read_to_string(left.1.trim_end_matches(')')).unwrap(), "by us\n");
}

#[test]
fn files_and_conversation_apart() {
    let server =
        ModelServer::start([Answer::call("write", write("a.txt", "x")), Answer::text("ok")]);
    let folder = folder().with_model(&server, Wire::Anthropic);
    first_run(&folder, "go");
    folder.tw(&["undo", "--files"]).expect(0);
    assert!(!folder.work().join("a.txt").exists());
    assert!(folder.tw(&["show"]).expect(0).stdout.contains("> go"));
    folder.tw(&["redo"]).expect(0);
    assert_eq!(folder.read("a.txt"), "x");
    folder.tw(&["undo", "--conversation"]).expect(0);
    assert_eq!(folder.read("a.txt"), "x");
    assert!(!folder.tw(&["show"]).expect(0).stdout.contains("> go"));
    folder.tw(&["undo", "--conversation", "--files"]).expect(2);
}

#[test]
fn what_sub_agents_did_goes_with_the_turn() {
    let said = |request: &Captured| request.messages()[0]["content"].to_string();
    let server = ModelServer::answering(move |request| {
        let seen = results(request).len();
        match (said(request), seen) {
            (s, 0) if s.contains("piece one") => Reply::default()
                .call("write", write("one", "1"))
                .call("bash", bash("rm a.txt; echo 1 > by-one"))
                .into(),
            (s, 0) if s.contains("piece two") => Answer::call("write", write("two", "2")),
            (s, _) if s.contains("piece") => Answer::text("ok"),
            (_, 0) => {
                let task = |prompt: &str| json!({"description": "d", "prompt": prompt, "subagent_type": "general"});
                Reply::default()
                    .call("task", task("piece one"))
                    .call("task", task("piece two"))
                    .call("bash", bash("echo own > own"))
                    .into()
            }
            _ => Answer::text("done"),
        }
    });
    let folder = folder().file("a.txt", "x\n").with_model(&server, Wire::Anthropic);
    let before = everything(&folder.work());
    first_run(&folder, "go");
    let after = everything(&folder.work());
    assert_eq!(after.len(), 4, "{after:?}");
    let undone = folder.tw(&["undo"]).expect(0);
    assert_eq!(everything(&folder.work()), before, "{}", undone.stdout);
    folder.tw(&["redo"]).expect(0);
    assert_eq!(everything(&folder.work()), after);
}

#[test]
fn a_session_in_use_is_not_undone_by_another_process() {
    let server = ModelServer::start([Reply::default().say("Working").hold_after_text().into()]);
    let folder = folder().with_model(&server, Wire::Anthropic);
    let running = folder.start(&["run", "-m", MODEL, "go"]);
    running.wait_for("Working");
    let refused = folder.tw(&["undo"]).expect(1);
    assert!(refused.stderr.contains("in use by another process"), "{}", refused.stderr);
    running.kill();
}

#[test]
fn a_command_that_was_running_when_everything_was_killed_is_undone_too() {
    let server = ModelServer::start([
        Answer::call("write", write("b.txt", "new")),
        Answer::call("bash", bash("rm a.txt; echo half > half; echo READY > ready; exec sleep 60")),
    ]);
    let folder = folder().file("a.txt", "x\n").with_model(&server, Wire::Anthropic);
    let before = everything(&folder.work());
    let running = folder.start(&["run", "--auto", "-m", MODEL, "go"]);
    toolwright_testkit::eventually("the command", || {
        folder.work().join("ready").exists().then_some(())
    });
    running.kill();
    let undone = folder.tw(&["undo"]).expect(0);
    assert_eq!(everything(&folder.work()), before, "{}", undone.stdout);
}

#[test]
fn an_undo_that_is_killed_anywhere_goes_as_far_as_it_was_to_go_when_it_is_asked_again() {
    let mut died = 0;
    for count in 1.. {
        let server = ModelServer::start([
            Answer::call("write", write("a.txt", "first")),
            Answer::text("ok"),
            Answer::call("bash", bash("rm b.txt; mkdir d; echo x > d/c.txt")),
            Answer::text("ok"),
        ]);
        let folder = folder().file("b.txt", "b\n").with_model(&server, Wire::Anthropic);
        first_run(&folder, "alpha");
        let before = everything(&folder.work());
        run(&folder, "beta");
        let after = everything(&folder.work());
        let mut command = folder.command(&["undo"]);
        command.env("TOOLWRIGHT_FAIL_AT", format!("any:{count}"));
        let killed = toolwright_testkit::Child::spawn(command).wait();
        if killed.code.is_some() {
            killed.expect(0);
            break;
        }
        died += 1;
        // Killed behind its last word, it was done.
        if !folder.tw(&["show"]).expect(0).stdout.contains("beta") {
            assert_eq!(everything(&folder.work()), before, "killed at {count}");
            continue;
        }
        let again = folder.tw(&["undo"]).expect(0);
        assert!(!again.stdout.contains("alpha"), "{}", again.stdout);
        assert_eq!(everything(&folder.work()), before, "killed at {count}: {}", again.stdout);
        let shown = folder.tw(&["show"]).expect(0).stdout;
        assert!(shown.contains("alpha") && !shown.contains("beta"), "{shown}");
        folder.tw(&["redo"]).expect(0);
        assert_eq!(everything(&folder.work()), after, "killed at {count}");
    }
    assert!(died >= 6, "{died}");
}

#[test]
fn a_torn_end_of_the_log_is_told_and_hinders_nothing() {
    let server =
        ModelServer::start([Answer::call("write", write("a.txt", "x")), Answer::text("ok")]);
    let folder = folder().with_model(&server, Wire::Anthropic);
    first_run(&folder, "go");
    let file = folder.session_files().pop().unwrap();
    let mut whole = fs::read(&file).unwrap();
    whole.extend_from_slice(b"{\"v\":1,\"id\":\"torn");
    fs::write(&file, whole).unwrap();
    let undone = folder.tw(&["undo"]).expect(0);
    assert!(undone.stderr.contains("unfinished line"), "{}", undone.stderr);
    assert!(!folder.work().join("a.txt").exists());
}

#[test]
fn it_can_be_turned_off_and_an_untrusted_folder_cannot_set_the_quota() {
    let script =
        || ModelServer::start([Answer::call("bash", bash("echo x > a.txt")), Answer::text("ok")]);
    let server = script();
    let off = folder().user_config(r#"{"snapshot": false}"#).with_model(&server, Wire::Anthropic);
    first_run(&off, "go");
    assert!(!off.session_text().contains("\"changed\""));
    assert!(!off.root().join("data/toolwright/images").exists());
    let undone = off.tw(&["undo"]).expect(1);
    assert!(undone.stdout.contains("the setting snapshot is false"), "{}", undone.stdout);
    assert_eq!(off.read("a.txt"), "x\n", "only the conversation could go");
    let server = script();
    let folder = folder()
        .file("toolwright.json", r#"{"undo": {"quota_bytes": 1}}"#)
        .with_model(&server, Wire::Anthropic);
    first_run(&folder, "go");
    folder.tw(&["undo"]).expect(0);
    assert!(!folder.work().join("a.txt").exists());
}

#[test]
fn what_a_plugin_wrote_between_calls_goes_back_too() {
    let server = ModelServer::start([Answer::text("Done.")]);
    let plugin = r#"
import { writeFileSync, appendFileSync, unlinkSync } from "fs"
import { writeFile } from "fs/promises"
export const P = async () => ({
  "chat.message": async () => {
    writeFileSync("new/file.txt".replace("/", "-"), "made")
    appendFileSync("log.txt", "more\n")
    unlinkSync("old.txt")
    await Promise.all(["p", "q"].map((name) => writeFile(name + ".txt", name)))
  },
})"#;
    let folder = folder()
        .with_model(&server, Wire::Anthropic)
        .file(".toolwright/plugin/p.ts", plugin)
        .file("log.txt", "first\n")
        .file("old.txt", "old")
        .file("p.txt", "before");
    folder.tw(&["run", "--trust", "--auto", "-m", "anthropic/m", "go"]).expect(0);
    assert_eq!(folder.read("log.txt"), "first\nmore\n");
    assert_eq!((folder.read("p.txt"), folder.read("q.txt")), ("p".into(), "q".into()));
    assert!(!folder.work().join("old.txt").exists());
    folder.tw(&["undo"]).expect(0);
    assert_eq!(folder.read("log.txt"), "first\n");
    assert_eq!((folder.read("old.txt"), folder.read("p.txt")), ("old".into(), "before".into()));
    for made in ["new-file.txt", "q.txt"] {
        assert!(!folder.work().join(made).exists(), "{made}");
    }
    folder.tw(&["redo"]).expect(0);
    assert_eq!(folder.read("q.txt"), "q");
}

#[test]
fn what_a_plugin_wrote_behind_the_last_answer_goes_back_too() {
    let server = ModelServer::start([
        Answer::call("bash", bash("echo more >> a.txt")),
        Answer::text("Done."),
    ]);
    let plugin = r#"
import { writeFileSync } from "fs"
export const P = async () => ({
  event: async ({ event }) => { if (event.type === "session.idle") writeFileSync("idle.txt", "idle") },
  "tool.execute.after": async () => writeFileSync("after.txt", "after"),
  dispose: async () => writeFileSync("left.txt", "left"),
})"#;
    let folder = folder()
        .with_model(&server, Wire::Anthropic)
        .file(".toolwright/plugin/p.ts", plugin)
        .file("left.txt", "before")
        .file("a.txt", "first\n");
    folder.tw(&["run", "--trust", "--auto", "-m", MODEL, "go"]).expect(0);
    assert_eq!((folder.read("idle.txt"), folder.read("left.txt")), ("idle".into(), "left".into()));
    let kept = everything(&folder.root().join("data/toolwright"));
    let copies = |path: &&PathBuf| path.to_string_lossy().contains("tool_workspace");
    assert_eq!(kept.keys().find(copies), None, "copies of files go with the process");
    folder.tw(&["undo"]).expect(0);
    assert_eq!(
        (folder.read("left.txt"), folder.read("a.txt")),
        ("before".into(), "first\n".into())
    );
    for made in ["idle.txt", "after.txt"] {
        assert!(!folder.work().join(made).exists(), "{made}");
    }
}
