//! Branches of a session: said differently, gone back to, named, copied.

use serde_json::{Value, json};
use toolwright_testkit::{Answer, Captured, Folder, ModelServer, Wire};

use crate::{assert_history_is_valid, folder};

fn run(folder: &Folder, more: &[&str]) {
    folder.tw(&[&["run", "--auto", "-m", "anthropic/m"], more].concat()).expect(0);
}

fn raw(request: &Captured) -> String {
    String::from_utf8_lossy(&request.raw).into_owned()
}

fn tree(folder: &Folder) -> Value {
    serde_json::from_str(&folder.tw(&["tree", "--json"]).expect(0).stdout).unwrap()
}

fn two_prompts(server: &ModelServer) -> Folder {
    let folder = folder().with_model(server, Wire::Anthropic);
    run(&folder, &["The first prompt"]);
    run(&folder, &["-c", "The second prompt"]);
    folder
}

#[test]
fn an_earlier_prompt_is_said_differently_and_the_model_never_sees_what_was_left() {
    let server = ModelServer::start([
        Answer::text("First answer."),
        Answer::call("write", json!({"filePath": "left.txt", "content": "x"})),
        Answer::text("Second answer."),
        Answer::text("Another answer."),
        Answer::text("Back again."),
    ]);
    let folder = two_prompts(&server);
    let shown = folder.tw(&["show"]).expect(0).stdout;
    assert!(shown.contains("#3 "), "{shown}");
    run(&folder, &["-c", "--from", "3", "Said differently"]);
    let request = server.last_request();
    assert_history_is_valid(&request);
    let text = raw(&request);
    assert!(text.contains("First answer.") && text.contains("Said differently"), "{text}");
    assert!(!text.contains("The second prompt\"") && !text.contains("Second answer."), "{text}");
    assert!(text.contains("changed left.txt"), "files are as they are, and it is told: {text}");

    let found = tree(&folder);
    let left = &found["branches"][1];
    assert_eq!(left["title"], "The second prompt", "{found}");
    assert_eq!((&left["current"], &left["steps"]), (&json!(false), &json!(2)), "{found}");
    assert_eq!(left["changed"], json!(["left.txt"]));
    let id = left["id"].as_str().unwrap().to_owned();
    folder.tw(&["tree", "label", &id[id.len() - 8..], "first try"]).expect(0);
    let listed = folder.tw(&["tree"]).expect(0).stdout;
    for part in ["#1    The first prompt", "[first try] The second prompt", "Said differently"] {
        assert!(listed.contains(part), "{part} in {listed}");
    }

    let switched = folder.tw(&["tree", "switch", "first try"]).expect(0);
    assert!(switched.stderr.contains("now on"), "{}", switched.stderr);
    let shown = folder.tw(&["show"]).expect(0).stdout;
    assert!(shown.contains("Second answer.") && !shown.contains("Another answer."), "{shown}");
    let idle = folder.tw(&["run", "-c", "-m", "anthropic/m"]).expect(2);
    assert!(idle.stderr.contains("nothing left to do"), "{}", idle.stderr);
    run(&folder, &["-c", "Go on here"]);
    let text = raw(&server.last_request());
    assert!(text.contains("Second answer.") && !text.contains("Another answer."), "{text}");
    let again =
        folder.tw(&["tree", "switch", &tree(&folder)["branches"][0]["id"].as_str().unwrap()[18..]]);
    assert!(again.expect(0).stderr.contains("on that branch already"));
}

#[test]
fn a_copy_begins_at_any_message() {
    let server = ModelServer::start([
        Answer::text("First answer."),
        Answer::text("Second answer."),
        Answer::text("On a copy."),
    ]);
    let folder = two_prompts(&server);
    run(&folder, &["-c", "--fork", "--from", "2", "Behind the first answer"]);
    let text = raw(&server.last_request());
    assert!(text.contains("First answer.") && !text.contains("The second prompt"), "{text}");
    assert_eq!(folder.session_files().len(), 2);
    let listed = folder.tw(&["sessions"]).expect(0).stdout;
    let original = listed.lines().last().unwrap().split_whitespace().next().unwrap().to_owned();
    let shown = folder.tw(&["show", &original]).expect(0).stdout;
    assert!(shown.contains("Second answer."), "the original is left alone: {shown}");
}

#[test]
fn what_cannot_be_found_is_said_with_where_to_look() {
    let server = ModelServer::start([Answer::text("First answer."), Answer::text("Second.")]);
    let folder = two_prompts(&server);
    for (arguments, expected) in [
        (&["run", "-c", "--from", "99", "x"][..], "no message 99"),
        (&["run", "-c", "--from", "1"], "--from needs a prompt"),
        (&["run", "--from", "1", "x"], "add -c or -s ID"),
        (&["tree", "switch", "nowhere"], "no branch nowhere"),
        (&["tree", "-s", "ses_none"], "no session ses_none"),
    ] {
        let run = folder.tw(arguments).expect(2);
        assert!(run.stderr.contains(expected), "{arguments:?}: {}", run.stderr);
    }
    assert_eq!(server.requests().len(), 2);
}

#[test]
fn a_session_of_a_newer_version_is_shown_and_not_gone_on_with() {
    let server = ModelServer::start([Answer::text("First answer."), Answer::text("Second.")]);
    let folder = two_prompts(&server);
    let file = folder.session_files().pop().unwrap();
    let text = std::fs::read_to_string(&file).unwrap();
    let line =
        r#"{"v":99,"id":"01X","parent":null,"time":1,"type":"x","data":{},"crc":"b552ca70"}"#;
    std::fs::write(&file, format!("{text}{line}\n")).unwrap();
    let shown = folder.tw(&["show"]).expect(0);
    assert!(shown.stdout.contains("Second.") && shown.stderr.contains("newer version"));
    for more in [&["-c"][..], &["-c", "--fork"]] {
        let run = folder.tw(&[&["run", "-m", "anthropic/m", "more"], more].concat()).expect(1);
        assert!(run.stderr.contains("newer version"), "{}", run.stderr);
        assert!(run.stderr.contains("Update tw"), "{}", run.stderr);
    }
    assert_eq!(folder.session_files().len(), 1, "no half a copy is left");
}

#[test]
fn a_branch_is_found_by_what_was_its_end_and_its_name_can_be_taken_away_later() {
    let server = ModelServer::start(["One.", "Two.", "Three.", "Four."].map(Answer::text));
    let folder = folder().with_model(&server, Wire::Anthropic);
    let run = |more: &[&str]| {
        let arguments: Vec<&str> =
            ["run", "-m", "anthropic/m"].iter().chain(more).copied().collect();
        folder.tw(&arguments).expect(0);
    };
    let branches = || -> Vec<Value> {
        let json = folder.tw(&["tree", "--json"]).expect(0).stdout;
        let tree: Value = serde_json::from_str(&json).unwrap();
        tree["branches"].as_array().unwrap().clone()
    };
    run(&["first"]);
    run(&["-c", "--from", "1", "second"]);
    let old = branches().into_iter().find(|branch| branch["current"] == false).unwrap();
    let id = old["id"].as_str().unwrap().to_owned();
    folder.tw(&["tree", "label", &id, "first try"]).expect(0);
    folder.tw(&["tree", "switch", "first try"]).expect(0);
    run(&["-c", "third"]);
    // It has gone on, and its old end still means it.
    folder.tw(&["tree", "switch", &id]).expect(0);
    let current = || branches().into_iter().find(|branch| branch["current"] == true).unwrap();
    assert_eq!(current()["label"], "first try");
    folder.tw(&["tree", "label", &id]).expect(0);
    assert_eq!(current()["label"], Value::Null);
}
