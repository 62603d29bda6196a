//! Guards of the loop, each shown firing, and the odd things that models do.

use serde_json::json;
use toolwright_testkit::{Answer, ModelServer, Reply, Wire};

use crate::{assert_history_is_valid, folder, results};

fn same() -> Answer {
    Answer::call("bash", json!({"command": "echo same"}))
}

#[test]
fn a_model_that_repeats_itself_is_told_and_then_stopped_where_nobody_can_be_asked() {
    let server = ModelServer::start(vec![same(); 8]);
    let folder = folder()
        .user_config(r#"{"permission":{"bash":"allow"}}"#)
        .with_model(&server, Wire::Anthropic);
    let run = folder.tw(&["run", "-m", "anthropic/m", "go"]).expect(1);
    assert!(run.stderr.contains("goes round in circles"), "{}", run.stderr);
    assert_eq!(server.requests().len(), 4);
    let told = server.last_request().messages().last().unwrap().to_string();
    assert!(told.contains("the same bash call 3 times"), "{told}");
}

#[test]
fn with_auto_a_circle_still_comes_to_an_end_unless_a_rule_allows_it() {
    let server = ModelServer::start(vec![same(); 20]);
    let folder = folder().with_model(&server, Wire::Anthropic);
    folder.tw(&["run", "--auto", "-m", "anthropic/m", "go"]).expect(1);
    assert_eq!(server.requests().len(), 7);

    let mut script = vec![same(); 12];
    script.push(Answer::text("Done."));
    let server = ModelServer::start(script);
    let folder = self::folder()
        .user_config(r#"{"permission":{"doom_loop":"allow"}}"#)
        .with_model(&server, Wire::Anthropic);
    folder.tw(&["run", "--auto", "-m", "anthropic/m", "go"]).expect(0);
}

#[test]
fn doing_something_new_in_between_is_no_circle() {
    let mut script = Vec::new();
    for n in 0..6 {
        script.push(same());
        script.push(Answer::call("write", json!({"filePath": "a.txt", "content": n.to_string()})));
    }
    script.push(Answer::text("Done."));
    let server = ModelServer::start(script);
    let folder = folder().with_model(&server, Wire::Anthropic);
    let run = folder.tw(&["run", "--auto", "-m", "anthropic/m", "go"]).expect(0);
    assert!(!run.stderr.contains("repeats itself"), "{}", run.stderr);
}

#[test]
fn an_answer_that_is_cut_or_empty_is_asked_to_go_on() {
    let server = ModelServer::start([
        Answer::from(Reply::default().say("Half of ").finish("max_tokens")),
        Answer::from(Reply::default()),
        Answer::text("the answer."),
    ]);
    let folder = folder().with_model(&server, Wire::Anthropic);
    folder.tw(&["run", "-m", "anthropic/m", "go"]).expect(0);
    let requests = server.requests();
    assert!(String::from_utf8_lossy(&requests[1].raw).contains("cut at the output limit"));
    assert!(String::from_utf8_lossy(&requests[2].raw).contains("Your answer was empty"));
    assert_history_is_valid(&requests[2]);
}

#[test]
fn a_repeated_read_is_answered_as_unchanged_until_the_file_changes() {
    let read = || Answer::call("read", json!({"filePath": "a.txt"}));
    let server = ModelServer::start([
        read(),
        read(),
        Answer::call(
            "edit",
            json!({"filePath": "a.txt", "oldString": "mark", "newString": "MARK"}),
        ),
        read(),
        Answer::text("Done."),
    ]);
    let content = format!("mark\n{}", "a line\n".repeat(100));
    let folder = folder().file("a.txt", &content).with_model(&server, Wire::Anthropic);
    folder.tw(&["run", "--auto", "-m", "anthropic/m", "go"]).expect(0);
    let all = results(&server.last_request());
    assert!(all[0].contains("1: mark"), "{}", all[0]);
    assert!(all[1].starts_with("Unchanged since step 1"), "{}", all[1]);
    assert!(all[3].contains("1: MARK"), "{}", all[3]);

    let server = ModelServer::start([read(), read(), Answer::text("Done.")]);
    let folder = self::folder()
        .user_config(r#"{"tool_cache":false}"#)
        .file("a.txt", &content)
        .with_model(&server, Wire::Anthropic);
    folder.tw(&["run", "-m", "anthropic/m", "go"]).expect(0);
    assert!(results(&server.last_request())[1].contains("1: mark"));
}

#[test]
fn a_hundred_and_twenty_eight_calls_in_one_message_get_their_results_in_order() {
    let reply = (0..128).fold(Reply::default(), |reply, n| {
        reply.call("bash", json!({"command": format!("echo number {n}")})).with_id(&format!("c{n}"))
    });
    let server = ModelServer::start([reply.into(), Answer::text("Done.")]);
    let folder = folder().with_model(&server, Wire::Anthropic);
    folder.tw(&["run", "--auto", "-m", "anthropic/m", "go"]).expect(0);
    let last = server.last_request();
    assert_history_is_valid(&last);
    let all = results(&last);
    assert_eq!(all.len(), 128);
    assert!(all.iter().enumerate().all(|(n, r)| r.contains(&format!("number {n}\n"))));
}

#[test]
fn calls_without_a_name_with_doubled_ids_or_for_unknown_tools_are_answered_and_the_loop_goes_on() {
    let server = ModelServer::start([
        Reply::default()
            .raw_call("", "{}")
            .raw_call("read", r#"{"filePath": "a.txt"}"#)
            .with_id("twin")
            .raw_call("read", r#"{"filePath": "a.txt"}"#)
            .with_id("twin")
            .raw_call("teleport", "{}")
            .raw_call("read", r#"{"filePath": "#)
            .finish("some_new_reason")
            .into(),
        Answer::text("Done."),
    ]);
    let folder = folder().file("a.txt", "hello\n").with_model(&server, Wire::Anthropic);
    let run = folder.tw(&["run", "--format", "json", "-m", "anthropic/m", "go"]).expect(0);
    let last = server.last_request();
    assert_history_is_valid(&last);
    let all = results(&last);
    assert!(all[0].contains("names no tool"), "{all:?}");
    assert!(all[1].contains("1: hello") && all[2].contains("hello"), "{all:?}");
    assert!(all[3].contains("There is no tool named \"teleport\""), "{all:?}");
    assert!(all[4].contains("not a JSON object"), "{all:?}");
    let lines = run.lines();
    let invalid = lines.iter().filter(|l| l["part"]["tool"] == "invalid").count();
    assert_eq!(invalid, 3, "no name, no such tool, no arguments");
}

#[test]
fn a_call_that_takes_too_long_is_stopped_and_what_it_had_is_kept() {
    let server = ModelServer::start([
        Answer::call("bash", json!({"command": "echo early; sleep 60", "timeout": 300})),
        Answer::text("Done."),
    ]);
    let folder = folder().with_model(&server, Wire::Anthropic);
    folder.tw(&["run", "--auto", "-m", "anthropic/m", "go"]).expect(0);
    let result = &results(&server.last_request())[0];
    assert!(result.contains("early"), "{result}");
}

#[test]
fn a_person_decides_whether_a_circle_goes_on() {
    for (reply, requests, status) in [("once", 7, 1), ("reject", 4, 1)] {
        let server = ModelServer::start(vec![same(); 20]);
        let folder = folder()
            .user_config(r#"{"permission":{"bash":"allow"}}"#)
            .with_model(&server, Wire::Anthropic);
        let mut run =
            folder.converse(&["run", "--format", "json", "--commands", "-m", "anthropic/m", "go"]);
        run.wait_for("doom_loop");
        run.say(&format!(r#"{{"type":"answer","id":0,"reply":"{reply}"}}"#));
        run.wait().expect(status);
        assert_eq!(server.requests().len(), requests, "{reply}");
    }
}

#[test]
fn a_circle_of_two_calls_is_a_circle_and_one_message_is_not() {
    let call = |word: &str| Answer::call("bash", json!({"command": format!("echo {word}")}));
    let script: Vec<Answer> = (0..40).map(|n| call(if n % 2 == 0 { "a" } else { "b" })).collect();
    let server = ModelServer::start(script);
    let folder = folder().with_model(&server, Wire::Anthropic);
    let run = folder.tw(&["run", "--auto", "-m", "anthropic/m", "go"]).expect(1);
    assert!(run.stderr.contains("goes round in circles"), "{}", run.stderr);

    let many = (0..8).fold(Reply::default(), |reply, n| {
        reply.call("bash", json!({"command": "echo same"})).with_id(&format!("c{n}"))
    });
    let server = ModelServer::start([many.into(), Answer::text("Done.")]);
    let folder = self::folder().with_model(&server, Wire::Anthropic);
    folder.tw(&["run", "--auto", "-m", "anthropic/m", "go"]).expect(0);
}

#[test]
fn a_reading_call_that_was_cut_at_the_token_limit_is_not_completed_by_guessing() {
    let server = ModelServer::start([
        Reply::default()
            .raw_call("read", r#"{"filePath":"a.txt","limit":1"#)
            .finish("max_tokens")
            .into(),
        Answer::text("Done."),
    ]);
    let folder = folder().file("a.txt", "one\ntwo\n").with_model(&server, Wire::Anthropic);
    folder.tw(&["run", "-m", "anthropic/m", "go"]).expect(0);
    let result = &results(&server.last_request())[0];
    assert!(result.contains("reached its token limit"), "{result}");
}
