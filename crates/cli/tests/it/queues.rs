//! What is said while the model is at work: seen at the next boundary, or after the turn.

use serde_json::json;
use toolwright_testkit::{Answer, ModelServer, Reply, Wire};

use crate::{assert_history_is_valid, folder, results};

const TALK: [&str; 8] =
    ["run", "--auto", "--format", "json", "--commands", "-m", "anthropic/m", "go"];

#[test]
fn a_steer_lets_what_runs_finish_and_skips_what_has_not_begun() {
    let server = ModelServer::start([
        Reply::default()
            .call("bash", json!({"command": "echo began; until [ -e go ]; do sleep 0.01; done"}))
            .call("write", json!({"filePath": "late.txt", "content": "x"}))
            .into(),
        Answer::text("As you wish."),
    ]);
    let folder = folder().with_model(&server, Wire::Anthropic);
    let mut run = folder.converse(&TALK);
    run.wait_for("tool_start");
    run.say(r#"{"type":"steer","text":"stop writing files"}"#);
    run.wait_for("\"queued\"");
    folder.write("go", "");
    let run = run.wait().expect(0);
    assert!(!folder.work().join("late.txt").exists());
    let second = server.last_request();
    assert_history_is_valid(&second);
    let results = results(&second);
    assert!(results[0].contains("began"), "{results:?}");
    assert!(results[1].contains("skipped"), "{results:?}");
    let last = second.messages().last().unwrap().to_string();
    assert!(last.contains("stop writing files"), "{last}");
    let kinds: Vec<String> =
        run.lines().iter().map(|l| l["type"].as_str().unwrap().to_owned()).collect();
    assert!(kinds.contains(&"delivered".to_owned()));
    assert_eq!(kinds.iter().filter(|k| *k == "result").count(), 1, "one turn");
}

#[test]
fn a_steer_during_the_answer_keeps_the_turn_going() {
    let server = ModelServer::start([
        Reply::default()
            .call("bash", json!({"command": "until [ -e go ]; do sleep 0.01; done"}))
            .into(),
        Answer::text("First answer."),
        Answer::text("Second answer."),
    ]);
    let folder = folder().with_model(&server, Wire::Anthropic);
    let mut run = folder.converse(&TALK);
    run.wait_for("tool_start");
    run.say(r#"{"type":"follow_up","text":"and then this"}"#);
    run.wait_for("\"queued\"");
    folder.write("go", "");
    let run = run.wait().expect(0);
    let requests = server.requests();
    assert_eq!(requests.len(), 3);
    let second = String::from_utf8_lossy(&requests[1].raw).into_owned();
    assert!(!second.contains("and then this"), "a follow-up waits for the end of the turn");
    let third = String::from_utf8_lossy(&requests[2].raw).into_owned();
    assert!(third.contains("First answer.") && third.contains("and then this"));
    let ends = run.lines().iter().filter(|l| l["type"] == "result").count();
    assert_eq!(ends, 2, "two turns");
}

#[test]
fn a_message_that_waits_survives_a_kill_and_is_said_later() {
    let server = ModelServer::start([Reply::default().say("Hm").hold_after_text().into()]);
    let folder = folder().with_model(&server, Wire::Anthropic);
    let mut run = folder.converse(&TALK);
    run.wait_for("text_delta");
    run.say(r#"{"type":"follow_up","text":"do not forget me"}"#);
    run.wait_for("\"queued\"");
    run.kill();
    server.then(Answer::text("Went on."));
    server.then(Answer::text("Not forgotten."));
    let again = folder.tw(&["run", "--auto", "-c"]).expect(0);
    assert!(again.stdout.contains("Not forgotten."), "{}", again.stdout);
    let last = String::from_utf8_lossy(&server.last_request().raw).into_owned();
    assert!(last.contains("do not forget me"));
}

#[test]
fn a_message_can_be_taken_back_while_it_waits() {
    let server = ModelServer::start([
        Reply::default()
            .call("bash", json!({"command": "until [ -e go ]; do sleep 0.01; done"}))
            .into(),
        Answer::text("Done."),
    ]);
    let folder = folder().with_model(&server, Wire::Anthropic);
    let mut run = folder.converse(&TALK);
    run.wait_for("tool_start");
    run.say(r#"{"type":"follow_up","text":"never mind"}"#);
    run.wait_for("\"queued\"");
    run.say(r#"{"type":"withdraw","id":0}"#);
    run.wait_for("withdrawn");
    folder.write("go", "");
    run.wait().expect(0);
    assert_eq!(server.requests().len(), 2);
}

#[test]
fn a_program_can_answer_questions_and_abort() {
    let server = ModelServer::start([
        Answer::call("write", json!({"filePath": "a.txt", "content": "x"})),
        Answer::call("write", json!({"filePath": "b.txt", "content": "x"})),
        Reply::default().say("Hm").hold_after_text().into(),
    ]);
    let folder = folder().with_model(&server, Wire::Anthropic);
    let mut run =
        folder.converse(&["run", "--format", "json", "--commands", "-m", "anthropic/m", "go"]);
    run.wait_for("\"question\"");
    run.say(r#"{"type":"answer","id":0,"reply":"once"}"#);
    run.wait_for("\"id\":1");
    run.say(r#"{"type":"answer","id":1,"reply":"reject","message":"not this one"}"#);
    run.wait_for("text_delta");
    run.say("nonsense");
    run.say(r#"{"type":"abort"}"#);
    let run = run.wait().expect(130);
    assert!(folder.work().join("a.txt").exists());
    assert!(!folder.work().join("b.txt").exists());
    assert!(results(&server.last_request())[1].contains("not this one"));
    assert!(run.stderr.contains("this command is not understood"), "{}", run.stderr);
}

#[test]
fn what_is_said_while_the_answer_streams_skips_its_calls() {
    // The call's last event comes only when the steer is known to wait.
    let server = ModelServer::start([
        Reply::default()
            .say("I will now write.")
            .call("write", json!({"filePath": "a.txt", "content": "x"}))
            .pause_after_text()
            .into(),
        Answer::text("As you wish."),
    ]);
    let folder = folder().with_model(&server, Wire::Anthropic);
    let mut run = folder.converse(&TALK);
    run.wait_for("text_delta");
    run.say(r#"{"type":"steer","text":"do not"}"#);
    run.wait_for("\"queued\"");
    server.resume();
    run.wait().expect(0);
    assert!(!folder.work().join("a.txt").exists());
    assert!(results(&server.last_request())[0].contains("skipped"));
}
