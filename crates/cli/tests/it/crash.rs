//! SIGKILL at every stage of a turn: nothing that was shown is lost, nothing happens twice.

use serde_json::json;
use toolwright_testkit::{Answer, Folder, ModelServer, Reply, Wire, eventually, processes_with};

use crate::{assert_history_is_valid, folder, results};

const RUN: &[&str] = &["run", "--auto", "-m", "anthropic/m", "The original prompt"];

fn go_on(folder: &Folder, server: &ModelServer) -> toolwright_testkit::Captured {
    server.then(Answer::text("Went on."));
    let run = folder.tw(&["run", "--auto", "-c", "-m", "anthropic/m", "Go on"]).expect(0);
    assert_eq!(run.stdout, "Went on.\n");
    let request = server.last_request();
    assert_history_is_valid(&request);
    let text = String::from_utf8_lossy(&request.raw).into_owned();
    assert!(text.contains("The original prompt"), "{text}");
    assert!(text.contains("Go on"), "{text}");
    request
}

fn wait_for_entry(folder: &Folder, kind: &str) {
    let wanted = format!("\"type\":\"{kind}\"");
    eventually(kind, || folder.session_text().contains(&wanted).then_some(()));
}

#[test]
fn killed_before_the_request() {
    let server = ModelServer::start([Answer::Silence]);
    let folder = folder().with_model(&server, Wire::Anthropic);
    let child = folder.start(RUN);
    server.wait_for_request();
    wait_for_entry(&folder, "prompt");
    child.kill();
    let request = go_on(&folder, &server);
    assert_eq!(request.messages().len(), 2);
}

#[test]
fn killed_in_the_middle_of_the_answer() {
    let server =
        ModelServer::start([Reply::default().say("Shown before the end").hold_after_text().into()]);
    let folder = folder().with_model(&server, Wire::Anthropic);
    let child = folder.start(RUN);
    child.wait_for("Shown before the end");
    child.kill();
    assert!(folder.tw(&["show"]).expect(0).stdout.contains("Shown before the end"));
    let request = go_on(&folder, &server);
    assert!(
        !String::from_utf8_lossy(&request.raw).contains("Shown before"),
        "half an answer is not sent"
    );
}

#[test]
fn killed_while_one_tool_runs_and_another_waits_for_it() {
    let marker = format!("sleep 98765.{}", std::process::id());
    let command = format!("echo once >> log; (setsid {marker} &); {marker}");
    let server = ModelServer::start([Reply::default()
        .say("Working.")
        .call("bash", json!({"command": command}))
        .call("write", json!({"filePath": "later.txt", "content": "x"}))
        .into()]);
    let folder = folder().with_model(&server, Wire::Anthropic);
    let child = folder.start(RUN);
    eventually("the command's effect", || folder.read("log").contains("once").then_some(()));
    eventually("both sleeps", || (processes_with(&marker).len() >= 2).then_some(()));
    child.kill();
    eventually("no process left", || processes_with(&marker).is_empty().then_some(()));

    let request = go_on(&folder, &server);
    let results = results(&request);
    assert!(
        results[0].contains("its outcome is unknown") && results[0].contains("echo once"),
        "{}",
        results[0]
    );
    assert!(results[1].contains("was not started"), "{}", results[1]);
    assert_eq!(folder.read("log"), "once\n");
    assert!(!folder.work().join("later.txt").exists());

    // The synthetic answers are the same bytes each time they are sent.
    let again = go_on(&folder, &server);
    assert_eq!(self::results(&again), results);
}

#[test]
fn killed_after_a_tool() {
    let server = ModelServer::start([
        Answer::call("bash", json!({"command": "echo once >> log; cat log"})),
        Reply::default().say("Thinking").hold_after_text().into(),
    ]);
    let folder = folder().with_model(&server, Wire::Anthropic);
    let child = folder.start(RUN);
    child.wait_for("Thinking");
    child.kill();
    let request = go_on(&folder, &server);
    assert_eq!(results(&request), ["once\n[exit code 0]"]);
    assert_eq!(folder.read("log"), "once\n");
}

#[test]
fn a_turn_that_was_killed_is_finished_without_a_new_prompt() {
    let server = ModelServer::start([
        Answer::call("write", json!({"filePath": "a.txt", "content": "x"})),
        Answer::Silence,
    ]);
    let folder = folder().with_model(&server, Wire::Anthropic);
    let child = folder.start(RUN);
    server.wait_for_request();
    wait_for_entry(&folder, "call_settled");
    child.kill();
    server.then(Answer::text("Finished."));
    let run = folder.tw(&["run", "--auto", "-c", "-m", "anthropic/m"]).expect(0);
    assert_eq!(run.stdout, "Finished.\n");
    let request = server.last_request();
    assert_history_is_valid(&request);
    assert_eq!(request.messages().len(), 3);
    let run = folder.tw(&["run", "-c", "-m", "anthropic/m"]).expect(2);
    assert!(run.stderr.contains("nothing left to do"), "{}", run.stderr);
}

#[test]
fn a_log_cut_at_any_byte_opens_and_says_so() {
    let server = ModelServer::start([
        Answer::call("bash", json!({"command": "echo hi"})),
        Answer::text("Done."),
    ]);
    let folder = folder().with_model(&server, Wire::Anthropic);
    folder.tw(RUN).expect(0);
    let file = folder.session_files().pop().unwrap();
    let whole = std::fs::read(&file).unwrap();
    let header = whole.iter().position(|b| *b == b'\n').unwrap() + 1;
    // A process each: a sample of the cuts here, all of them in the session crate's own test.
    for cut in
        [header, header + 1, whole.len() / 3, whole.len() / 2, whole.len() - 2, whole.len() - 1]
    {
        std::fs::write(&file, &whole[..cut]).unwrap();
        server.then(Answer::text("Went on."));
        let run = folder.tw(&["run", "--auto", "-c", "-m", "anthropic/m", "Go on"]).expect(0);
        assert_history_is_valid(&server.last_request());
        let torn = whole[cut - 1] != b'\n';
        assert_eq!(run.stderr.contains("unfinished line"), torn, "cut at {cut}: {}", run.stderr);
    }
}

#[test]
fn a_session_in_use_is_refused_with_a_way_out() {
    let server = ModelServer::start([Reply::default().say("busy").hold_after_text().into()]);
    let folder = folder().with_model(&server, Wire::Anthropic);
    let child = folder.start(RUN);
    child.wait_for("busy");
    let run = folder.tw(&["run", "-c", "-m", "anthropic/m", "me too"]).expect(1);
    assert!(
        run.stderr.contains("in use by another process") && run.stderr.contains("--fork"),
        "{}",
        run.stderr
    );
    server.then(Answer::text("On a copy."));
    let run = folder.tw(&["run", "-c", "--fork", "-m", "anthropic/m", "me too"]).expect(0);
    assert_eq!(run.stdout, "On a copy.\n");
    assert_eq!(server.last_request().messages().len(), 2);
    assert_eq!(folder.session_files().len(), 2);
    child.kill();
}
