//! What a command does against being put right again, and what a program says to be let out, through
//! the whole of `tw`.

use std::fs;
use std::path::Path;

use serde_json::json;
use toolwright_testkit::{Answer, Folder, ModelServer, Wire};

use crate::{folder, results};

const RUN: [&str; 4] = ["run", "-m", "anthropic/m", "go"];
const AUTO: [&str; 5] = ["run", "--auto", "-m", "anthropic/m", "go"];

fn fenced(layer: &str) -> Folder {
    let folder = folder();
    let temp = folder.root().join("temp");
    fs::create_dir(&temp).unwrap();
    folder
        .user_config(&format!(r#"{{"sandbox": {{"layer": "{layer}"}}}}"#))
        .env("TOOLWRIGHT_SANDBOX", "on")
        .env("TMPDIR", temp.to_str().unwrap())
        .file(".git/HEAD", "ref: refs/heads/main\n")
        .file(".git/config", "[core]\n")
}

fn layers() -> Vec<&'static str> {
    toolwright::sandbox_layers().iter().map(|layer| layer.name()).collect()
}

/// What the model is told of a script that nothing can be seen of beforehand.
fn told(folder: Folder, run: &[&str], script: &str, code: i32) -> (Folder, String) {
    let call = json!({"command": "sh a.sh"});
    let server = ModelServer::start([Answer::call("bash", call), Answer::text("ok")]);
    let folder = folder.file("a.sh", script).with_model(&server, Wire::Anthropic);
    folder.tw(run).expect(code);
    let told = results(&server.last_request())[0].clone();
    (folder, told)
}

#[test]
fn names_that_were_taken_hold_up_nothing_and_what_was_made_lies_outside_the_fence() {
    for layer in layers() {
        let script = "for n in opencode.json .git/commondir; do
            touch $n.stopped-by-sandbox
            for i in $(seq 99); do touch $n.stopped-by-sandbox-$i; done
            echo evil > $n
            done";
        let (folder, told) = told(fenced(layer), &RUN, script, 0);
        for name in ["opencode.json", ".git/commondir"] {
            assert!(!folder.work().join(name).exists(), "{layer}: {name}");
            assert!(told.contains(name), "{layer}: {told}");
        }
        assert!(told.contains("as they were") && !told.contains("NOT"), "{layer}: {told}");
        let (_, aside) = told.split_once("lies in: ").unwrap();
        let aside = Path::new(aside.split(".]").next().unwrap());
        assert!(!aside.starts_with(folder.work()), "{layer}: {told}");
        let kept = fs::read_dir(aside).unwrap().flatten();
        let texts = kept.map(|file| fs::read_to_string(file.path()).unwrap());
        assert_eq!(texts.collect::<Vec<_>>(), ["evil\n", "evil\n"], "{layer}: {told}");
    }
}

/// Where mounts cannot forbid it, a folder that is too large to be remembered opens the fence: then
/// commands are asked about.
#[test]
fn what_is_too_large_to_be_put_back_is_asked_about() {
    if !layers().contains(&"landlock") {
        return;
    }
    let folder =
        (0..1001).fold(fenced("landlock"), |folder, n| folder.file(&format!(".git/hooks/{n}"), ""));
    let (folder, told) = told(folder, &RUN, "echo x > made", 3);
    assert!(told.contains("nobody can be asked"), "{told}");
    assert!(!folder.work().join("made").exists());
}

/// A program says what it likes.
#[test]
fn a_refusal_that_a_program_only_tells_of_does_not_let_it_out_by_itself() {
    for layer in layers() {
        let script = "touch ../made || { echo \"touch: cannot touch '../x': Read-only file system\"; exit 1; }";
        let (folder, told) = told(fenced(layer), &AUTO, script, 3);
        assert!(told.contains("The sandbox stopped it"), "{layer}: {told}");
        assert!(told.contains("outside: true"), "{layer}: {told}");
        assert!(!folder.root().join("made").exists(), "{layer}");
        // What the model asks for is what --auto is for.
        let call = json!({"command": "sh a.sh", "outside": true});
        let server = ModelServer::start([Answer::call("bash", call), Answer::text("ok")]);
        let folder = folder.with_model(&server, Wire::Anthropic);
        folder.tw(&AUTO).expect(0);
        assert!(folder.root().join("made").exists(), "{layer}");
    }
}

/// Where our own folder is in reach we cannot tell our writing from a command's.
#[test]
fn our_own_folder_is_not_put_back_under_our_hands() {
    if !layers().contains(&"landlock") {
        return;
    }
    let folder = fenced("landlock")
        .user_config(r#"{"sandbox": {"layer": "landlock", "writable": ["../data"]}}"#);
    let (folder, told) = told(folder, &AUTO, "echo be''gun", 0);
    assert!(told.starts_with("begun") && told.contains("Not watched"), "{told}");
    let shown = folder.tw(&["show"]).expect(0).stdout;
    assert!(shown.contains("sh a.sh") && shown.contains("ok"), "{shown}");
    let call = json!({"command": "sh a.sh"});
    let server = ModelServer::start([Answer::call("bash", call), Answer::text("ok")]);
    folder.with_model(&server, Wire::Anthropic).tw(&RUN).expect(3);
}
