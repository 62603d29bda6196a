//! A session is taken up after its process died: what had not begun is done, what is known is said.

use serde_json::json;
use toolwright_testkit::{Answer, ModelServer, Reply, Wire, eventually};

use crate::{assert_history_is_valid, folder, results};

const RUN: &[&str] = &["run", "--auto", "-m", "anthropic/m", "The original prompt"];
const GO_ON: &[&str] = &["run", "--auto", "-c", "-m", "anthropic/m"];

#[test]
fn calls_that_had_not_begun_run_and_the_one_in_between_does_not_run_twice() {
    let marker = format!("sleep 97653.{}", std::process::id());
    let command = format!("echo once >> log; {marker}");
    let server = ModelServer::start([Reply::default()
        .call("bash", json!({"command": command}))
        .call("write", json!({"filePath": "later.txt", "content": "x"}))
        .call("read", json!({"filePath": "log"}))
        .into()]);
    let folder = folder().file("log", "").with_model(&server, Wire::Anthropic);
    let child = folder.start(RUN);
    eventually("the command's effect", || folder.read("log").contains("once").then_some(()));
    child.kill();
    server.then(Answer::text("Went on."));
    folder.tw(GO_ON).expect(0);
    let request = server.last_request();
    assert_history_is_valid(&request);
    let results = results(&request);
    assert!(results[0].contains("its outcome is unknown"), "{}", results[0]);
    assert!(!results[1].contains("was not started"), "{}", results[1]);
    assert!(results[2].contains("once"), "{}", results[2]);
    assert_eq!((folder.read("log").as_str(), folder.read("later.txt").as_str()), ("once\n", "x"));
    assert_eq!(server.requests().len(), 2, "nobody asked the model to say it again");
}

#[test]
fn a_question_that_waited_is_asked_again() {
    let server = ModelServer::start([
        Answer::call("write", json!({"filePath": "a.txt", "content": "x"})),
        Answer::text("Written."),
    ]);
    let folder = folder()
        .user_config(r#"{"permission":{"edit":"ask"}}"#)
        .with_model(&server, Wire::Anthropic);
    let talk = ["run", "--format", "json", "--commands", "-m", "anthropic/m"];
    let child = folder.converse(&[&talk[..], &["Write it"]].concat());
    child.wait_for("\"type\":\"question\"");
    child.kill();
    assert!(!folder.work().join("a.txt").exists());
    let mut again = folder.converse(&[&talk[..], &["-c"]].concat());
    again.wait_for("\"type\":\"question\"");
    again.say(r#"{"type":"answer","id":0,"reply":"once"}"#);
    let again = again.wait().expect(0);
    assert_eq!(folder.read("a.txt"), "x", "{}", again.stdout);
    assert_eq!(server.requests().len(), 2);
    assert_history_is_valid(&server.last_request());
}

#[test]
fn work_that_was_given_away_is_named_with_the_id_to_go_on_with() {
    let task = json!({"description": "some work", "prompt": "dig", "subagent_type": "general"});
    let server = ModelServer::start([
        Answer::call("task", task),
        Reply::default().say("Digging").hold_after_text().into(),
    ]);
    let folder = folder().with_model(&server, Wire::Anthropic);
    let child = folder.start(RUN);
    server.wait_for_request();
    server.wait_for_request();
    eventually("the worker's id", || folder.session_text().contains("call_noted").then_some(()));
    child.kill();
    server.then(Answer::text("Went on."));
    folder.tw(GO_ON).expect(0);
    let result = results(&server.last_request()).pop().unwrap();
    assert!(result.contains("its outcome is unknown"), "{result}");
    let id = result.split('"').find(|word| word.starts_with("ses_")).expect("an id").to_owned();
    assert!(folder.tw(&["show", &id]).expect(0).stdout.contains("dig"), "{result}");
}

#[test]
fn jobs_that_died_with_their_process_are_named_once() {
    let command = format!("sleep 96543.{}", std::process::id());
    let server = ModelServer::start([
        Answer::call("bash", json!({"command": command, "run_in_background": true})),
        Answer::text("It runs."),
        Answer::text("I see."),
        Answer::text("Yes."),
    ]);
    let folder = folder().with_model(&server, Wire::Anthropic);
    folder.tw(RUN).expect(0);
    folder.tw(&[GO_ON, &["How is it?"]].concat()).expect(0);
    folder.tw(&[GO_ON, &["And now?"]].concat()).expect(0);
    let request = server.last_request();
    assert_history_is_valid(&request);
    let text = String::from_utf8_lossy(&request.raw).into_owned();
    assert_eq!(text.matches("are not running any more").count(), 1, "{text}");
    let told = text.split("are not running any more").nth(1).unwrap();
    assert!(told.contains(&command), "{told}");
}

#[test]
fn what_an_interrupted_call_had_declared_is_said() {
    let server = ModelServer::start([Answer::call(
        "bash",
        json!({"command": "echo x > declared.txt; sleep 95432"}),
    )]);
    let folder = folder().with_model(&server, Wire::Anthropic);
    let child = folder.start(RUN);
    eventually("its effect", || folder.work().join("declared.txt").exists().then_some(()));
    child.kill();
    server.then(Answer::text("Went on."));
    folder.tw(GO_ON).expect(0);
    let result = results(&server.last_request()).pop().unwrap();
    assert!(result.contains("outcome is unknown") && result.contains("declared.txt"), "{result}");
}
