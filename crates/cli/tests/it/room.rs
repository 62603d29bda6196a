//! A conversation that grows beyond the model's window.

use serde_json::{Value, json};
use toolwright_testkit::{Answer, Captured, Folder, ModelServer, Reply, Wire};

use crate::{assert_history_is_valid, folder, results};

/// A model of 20,000 tokens, of which 5,000 are kept free.
fn small_window(server: &ModelServer, more: &str) -> Folder {
    let config = json!({
        "provider": {"anthropic": {"models": {"m": {"limit": {"context": 20000, "output": 4000}}}}},
    });
    let mut config: Value = config;
    let more: Value = serde_json::from_str(more).unwrap();
    config.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    folder().user_config(&config.to_string()).with_model(server, Wire::Anthropic)
}

fn text(request: &Captured) -> String {
    String::from_utf8_lossy(&request.raw).into_owned()
}

#[test]
fn a_full_context_is_replaced_by_notes_inside_a_tool_loop_and_the_log_keeps_everything() {
    let server = ModelServer::start([
        Answer::call("read", json!({"filePath": "a.txt"})),
        Answer::from(
            Reply::default()
                .call("write", json!({"filePath": "b.txt", "content": "x"}))
                .input_tokens(16_500),
        ),
        Answer::text("## Goal\nThe notes."),
        Answer::text("Done."),
    ]);
    let folder = small_window(&server, r#"{"compaction":{"preserve_recent_tokens":20}}"#)
        .file("a.txt", &"a line of some length that is read\n".repeat(400));
    let run = folder.tw(&["run", "--auto", "-m", "anthropic/m", "the great task"]).expect(0);
    assert!(run.stderr.contains("making notes: the context is nearly full"), "{}", run.stderr);
    assert_eq!(run.stdout, "Done.\n", "the notes are not shown");
    let requests = server.requests();
    assert_eq!(requests.len(), 4);
    // Who takes notes sees the conversation as text and has no tools.
    assert!(requests[2].body["tools"].as_array().is_none_or(Vec::is_empty));
    for part in ["the great task", "[Agent called]: read", "a line of some length"] {
        assert!(text(&requests[2]).contains(part), "{part}");
    }
    // And then it goes on with the notes, the newest step, and the files by name.
    let last = &requests[3];
    assert_history_is_valid(last);
    for part in
        ["The notes.", "Files changed so far: b.txt", "Files read so far: a.txt", "the great task"]
    {
        assert!(text(last).contains(part), "{part} in {}", text(last));
    }
    assert!(!text(last).contains("a line of some length"));
    assert!(folder.session_text().contains("a line of some length"));
    // A load sees the same conversation.
    server.then(Answer::text("Again."));
    folder.tw(&["run", "-c", "more"]).expect(0);
    let again = server.last_request();
    assert!(text(&again).contains("The notes.") && !text(&again).contains("a line of some length"));
    assert_history_is_valid(&again);
}

#[test]
fn an_overflow_is_answered_by_making_room_once_and_only_once() {
    let overflow = || {
        let body = json!({"type": "error", "error": {"type": "invalid_request_error",
            "message": "prompt is too long: 210000 tokens > 200000 maximum"}});
        Answer::status(400, &body.to_string())
    };
    let server = ModelServer::start([
        Answer::call("glob", json!({"pattern": "*"})),
        overflow(),
        Answer::text("Short notes."),
        Answer::text("Done."),
    ]);
    let folder = folder().with_model(&server, Wire::Anthropic);
    let run = folder.tw(&["run", "--auto", "-m", "anthropic/m", "go"]).expect(0);
    assert_eq!(run.stdout, "Done.\n");
    assert!(text(&server.last_request()).contains("Short notes."));

    let server = ModelServer::start([
        Answer::call("glob", json!({"pattern": "*"})),
        overflow(),
        Answer::text("Short notes."),
        overflow(),
    ]);
    let folder = self::folder().with_model(&server, Wire::Anthropic);
    let run = folder.tw(&["run", "--auto", "-m", "anthropic/m", "go"]).expect(1);
    assert_eq!(server.requests().len(), 4, "never twice for the same overflow");
    assert!(run.stderr.contains("too long"), "{}", run.stderr);
}

#[test]
fn notes_that_do_not_fit_themselves_are_made_without_the_model() {
    let overflow = || Answer::status(400, r#"{"error":{"message":"prompt is too long"}}"#);
    let server = ModelServer::start([
        Answer::call("glob", json!({"pattern": "*"})),
        overflow(),
        overflow(),
        overflow(),
        overflow(),
        Answer::text("Done."),
    ]);
    let folder = folder().with_model(&server, Wire::Anthropic);
    folder.tw(&["run", "--auto", "-m", "anthropic/m", "the great task"]).expect(0);
    assert!(text(&server.last_request()).contains("What the user asked for, oldest first"));
}

#[test]
fn superseded_and_old_outputs_are_left_out_before_a_model_is_asked() {
    let read = |tokens| {
        Answer::from(
            Reply::default().call("read", json!({"filePath": "a.txt"})).input_tokens(tokens),
        )
    };
    let edit = |n: u32| {
        Answer::call(
            "edit",
            json!({"filePath": "a.txt", "oldString": format!("mark {n}"), "newString": format!("mark {}", n + 1)}),
        )
    };
    let server = ModelServer::start([
        read(10),
        edit(1),
        read(10),
        edit(2),
        read(14_500),
        Answer::text("Done."),
    ]);
    let folder = small_window(&server, "{}")
        .file("a.txt", &format!("mark 1\n{}", "twenty letters here\n".repeat(500)));
    let run = folder.tw(&["run", "--auto", "-m", "anthropic/m", "go"]).expect(0);
    assert!(run.stderr.contains("2 old outputs left out"), "{}", run.stderr);
    let last = server.last_request();
    assert_history_is_valid(&last);
    let results = results(&last);
    assert!(results[0].contains("removed to save room"), "{}", results[0]);
    assert!(results[2].contains("removed to save room"), "{}", results[2]);
    assert!(results[4].contains("mark 3"), "the newest stays: {}", results[4]);
}

#[test]
fn a_session_can_be_shortened_on_demand() {
    let server = ModelServer::start([
        Answer::text("A long answer."),
        Answer::text("Notes on demand."),
        Answer::text("More."),
    ]);
    let folder = folder().with_model(&server, Wire::Anthropic);
    folder.tw(&["run", "-m", "anthropic/m", "go"]).expect(0);
    let run = folder.tw(&["compact"]).expect(0);
    assert!(run.stdout.contains("shortened from about"), "{}", run.stdout);
    folder.tw(&["run", "-c", "more"]).expect(0);
    let last = text(&server.last_request());
    assert!(last.contains("Notes on demand.") && !last.contains("A long answer."), "{last}");
}

#[test]
fn making_room_can_be_turned_off() {
    let server = ModelServer::start([
        Answer::from(Reply::default().call("glob", json!({"pattern": "*"})).input_tokens(19_000)),
        Answer::text("Done."),
    ]);
    let folder = small_window(&server, r#"{"compaction":{"auto":false}}"#);
    folder.tw(&["run", "--auto", "-m", "anthropic/m", "go"]).expect(0);
    assert_eq!(server.requests().len(), 2);
}

#[test]
fn a_kill_while_notes_are_taken_loses_nothing_and_they_are_taken_again() {
    let server = ModelServer::start([
        Answer::from(Reply::default().call("glob", json!({"pattern": "*"})).input_tokens(19_000)),
        Reply::default().say("## Goal").hold_after_text().into(),
    ]);
    let folder = small_window(&server, "{}");
    let run = folder.start(&["run", "--auto", "-m", "anthropic/m", "the great task"]);
    server.wait_for_request();
    server.wait_for_request();
    run.kill();
    server.then(Answer::text("The notes."));
    server.then(Answer::text("Done."));
    let again = folder.tw(&["run", "--auto", "-c"]).expect(0);
    assert_eq!(again.stdout, "Done.\n");
    let last = server.last_request();
    assert_history_is_valid(&last);
    assert!(text(&last).contains("The notes.") && text(&last).contains("the great task"));
}

#[test]
fn a_message_that_nobody_has_answered_is_never_turned_into_notes() {
    let server = ModelServer::start([
        Answer::from(Reply::default().say("First.").input_tokens(15_900)),
        Answer::text("The notes."),
        Answer::text("Second."),
    ]);
    let folder = small_window(&server, "{}");
    folder.tw(&["run", "-m", "anthropic/m", "one"]).expect(0);
    let long = format!("{} and what is the question?", "a line of a log ".repeat(2_500));
    folder.tw(&["run", "-c", &long]).expect(0);
    let requests = server.requests();
    assert_eq!(requests.len(), 3);
    let last = text(&requests[2]);
    assert!(last.contains("The notes.") && last.contains("and what is the question?"), "{last}");
}

#[test]
fn where_making_room_does_not_help_it_is_not_done_at_every_step() {
    let full = |n: u32| {
        let call = json!({"pattern": format!("*{n}")});
        Answer::from(Reply::default().call("glob", call).input_tokens(16_500))
    };
    let mut script: Vec<Answer> = vec![full(0), Answer::text("The notes.")];
    script.extend((1..8).map(full));
    script.push(Answer::text("Done."));
    let server = ModelServer::start(script);
    let folder = small_window(&server, "{}");
    let run = folder.tw(&["run", "--auto", "-m", "anthropic/m", "go"]).expect(0);
    assert_eq!(run.stderr.matches("making notes").count(), 1, "{}", run.stderr);
    assert_eq!(run.stderr.matches("window is nearly filled").count(), 1, "{}", run.stderr);
}

#[test]
fn a_damaged_line_of_a_shortened_session_loses_that_line_only() {
    let server = ModelServer::start([
        Answer::text("A long answer."),
        Answer::text("Notes."),
        Answer::text("More."),
    ]);
    let folder = folder().with_model(&server, Wire::Anthropic);
    folder.tw(&["run", "-m", "anthropic/m", "a prompt to damage"]).expect(0);
    folder.tw(&["compact"]).expect(0);
    let file = &folder.session_files()[0];
    let damaged = std::fs::read_to_string(file).unwrap().replacen("to damage", "to damagX", 1);
    std::fs::write(file, damaged).unwrap();
    let run = folder.tw(&["run", "-c", "hello again"]).expect(0);
    assert!(run.stderr.contains("damaged"), "{}", run.stderr);
    assert!(text(&server.last_request()).contains("hello again"));
}
