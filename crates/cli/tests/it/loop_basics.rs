use serde_json::{Value, json};
use toolwright_testkit::{Answer, ModelServer, Reply, Wire};

use crate::{assert_history_is_valid, folder, results};

#[test]
fn a_whole_turn_reads_edits_runs_and_answers_on_every_wire() {
    for wire in Wire::ALL {
        let model = wire.model();
        let server = ModelServer::start([
            Reply::default().say("Reading.").call("read", json!({"filePath": "a.txt"})).into(),
            Answer::call(
                "edit",
                json!({"filePath": "a.txt", "oldString": "one", "newString": "two"}),
            ),
            Answer::call("bash", json!({"command": "cat a.txt; exit 3"})),
            Answer::text("All done."),
        ]);
        let folder = folder().file("a.txt", "one\n").with_model(&server, wire);
        let run = folder.tw(&["run", "--auto", "-m", model, "Change", "it"]).expect(0);
        assert_eq!(run.stdout, "Reading.\nAll done.\n");
        assert!(run.stderr.contains("✓ read a.txt"), "{}", run.stderr);
        assert!(run.stderr.contains("✓ edit a.txt – +1 −1"), "{}", run.stderr);
        assert!(run.stderr.contains("✗ bash cat a.txt; exit 3 – exit code 3"), "{}", run.stderr);
        assert_eq!(folder.read("a.txt"), "two\n");
        let requests = server.requests();
        assert_eq!(requests.len(), 4);
        let last = String::from_utf8_lossy(&requests[3].raw).into_owned();
        for expected in ["Change it", "1: one", "Edit applied successfully.", "two\\n[exit code 3]"]
        {
            assert!(last.contains(expected), "{expected} in {last}");
        }
        let key = match wire {
            Wire::Anthropic => ("x-api-key", "test-key"),
            Wire::Gemini => ("x-goog-api-key", "test-key"),
            Wire::Chat | Wire::Responses => ("authorization", "Bearer test-key"),
        };
        assert_eq!(requests[0].header(key.0), Some(key.1));
        if wire == Wire::Anthropic {
            assert_history_is_valid(&requests[3]);
        }
    }
}

#[test]
fn json_lines_tell_the_whole_run_and_close_with_a_result() {
    let server = ModelServer::start([
        Reply::default().say("Look").say("ing.").call("bash", json!({"command": "echo hi"})).into(),
        Answer::text("Done."),
    ]);
    let folder = folder().with_model(&server, Wire::Anthropic);
    let run =
        folder.tw(&["run", "--auto", "--format", "json", "-m", "anthropic/m", "go"]).expect(0);
    let lines = run.lines();
    let kinds: Vec<&str> = lines.iter().map(|l| l["type"].as_str().unwrap()).collect();
    let without_deltas: Vec<&str> = kinds.iter().copied().filter(|k| *k != "text_delta").collect();
    assert_eq!(
        without_deltas,
        [
            "session",
            "step_start",
            "text",
            "step_finish",
            "tool_start",
            "tool_use",
            "step_start",
            "text",
            "step_finish",
            "result"
        ]
    );
    let session = &lines[0]["sessionID"];
    assert!(lines.iter().all(|l| l["sessionID"] == *session && l["timestamp"].is_u64()));
    let deltas: String = lines
        .iter()
        .filter(|l| l["type"] == "text_delta")
        .map(|l| l["delta"].as_str().unwrap())
        .collect();
    assert_eq!(deltas, "Looking.Done.");
    let tool = lines.iter().find(|l| l["type"] == "tool_use").unwrap();
    assert_eq!(tool["part"]["state"]["status"], "completed");
    assert_eq!(tool["part"]["state"]["input"], json!({"command": "echo hi"}));
    let result = lines.last().unwrap();
    assert_eq!(result["status"], "done");
    assert_eq!(result["text"], "Done.");
    assert_eq!(result["steps"], 2);
    assert_eq!(result["tokens"]["output"], 40);
    assert_eq!(result["denials"], json!([]));
}

#[test]
fn any_split_of_the_stream_gives_the_same_run() {
    for size in [1, 7] {
        let server = ModelServer::start([
            Reply::default()
                .say("Grüße ")
                .call("bash", json!({"command": "echo ä"}))
                .split(size)
                .into(),
            Reply::default().say("Fertig – ✓").split(size).into(),
        ]);
        let folder = folder().with_model(&server, Wire::Anthropic);
        let run = folder.tw(&["run", "--auto", "-m", "anthropic/m", "go"]).expect(0);
        assert_eq!(run.stdout, "Grüße \nFertig – ✓\n");
        assert!(results(&server.last_request())[0].starts_with("ä\n"));
    }
}

#[test]
fn calls_of_one_message_run_side_by_side_and_answer_in_order() {
    // Each waits for the other's file: run one after the other they would both time out.
    let meet = |own: &str, other: &str| json!({"command": format!("touch {own}; until [ -e {other} ]; do :; done; echo {own}"), "timeout": 30000});
    let server = ModelServer::start([
        Reply::default().call("bash", meet("a", "b")).call("bash", meet("b", "a")).into(),
        Answer::text("ok"),
    ]);
    let folder = folder().with_model(&server, Wire::Anthropic);
    folder.tw(&["run", "--auto", "-m", "anthropic/m", "go"]).expect(0);
    let request = server.last_request();
    assert_history_is_valid(&request);
    assert_eq!(results(&request), ["a\n[exit code 0]", "b\n[exit code 0]"]);
}

#[test]
fn edits_of_one_file_in_one_message_apply_one_after_the_other() {
    let edit =
        |old: &str, new: &str| json!({"filePath": "n.txt", "oldString": old, "newString": new});
    let server = ModelServer::start([
        Reply::default()
            .call("edit", edit("1", "2"))
            .call("edit", edit("2", "3"))
            .call("bash", json!({"command": "cat n.txt"}))
            .into(),
        Answer::text("ok"),
    ]);
    let folder = folder().file("n.txt", "1").with_model(&server, Wire::Anthropic);
    folder.tw(&["run", "--auto", "-m", "anthropic/m", "go"]).expect(0);
    assert_eq!(folder.read("n.txt"), "3");
    assert_eq!(results(&server.last_request())[2], "3\n[exit code 0]");
}

#[test]
fn bad_calls_come_back_with_what_is_wrong_and_the_loop_goes_on() {
    let server = ModelServer::start([
        Reply::default()
            .raw_call("read", "{\"filePath\": \"a.txt\"")
            .raw_call("Read_File", "{\"filePath\": \"a.txt\", \"limit\": \"1\"}")
            .raw_call("read", "{\"filePath\": 5, \"limit\": \"many\"}")
            .raw_call("read", "not json at all")
            .raw_call("teleport", "{}")
            .raw_call("", "{}")
            .into(),
        Answer::text("ok"),
    ]);
    let folder = folder().file("a.txt", "hello\n").with_model(&server, Wire::Anthropic);
    folder.tw(&["run", "-m", "anthropic/m", "go"]).expect(0);
    let request = server.last_request();
    assert_history_is_valid(&request);
    let results = results(&request);
    assert!(
        results[0].contains("1: hello")
            && results[0].contains("added the missing closing brackets"),
        "{}",
        results[0]
    );
    assert!(results[1].contains("took \"Read_File\" as read"), "{}", results[1]);
    assert!(
        results[2].contains("[\"limit\"]") && results[2].contains("Please rewrite the input"),
        "{}",
        results[2]
    );
    assert!(
        results[3].contains("not a JSON object") && results[3].contains("not json at all"),
        "{}",
        results[3]
    );
    assert!(results[4].contains("no tool named \"teleport\""), "{}", results[4]);
    assert!(results[5].contains("names no tool"), "{}", results[5]);
    let sent: Vec<Value> = request.messages()[1]["content"].as_array().unwrap().clone();
    assert_eq!(sent[3]["input"], json!({"malformed_arguments": "not json at all"}));
}

#[test]
fn a_call_cut_at_the_token_limit_does_not_run() {
    let server = ModelServer::start([
        Reply::default()
            .raw_call("bash", "{\"command\":\"touch ran\",\"x\":[1")
            .finish("max_tokens")
            .into(),
        Answer::text("ok"),
    ]);
    let folder = folder().with_model(&server, Wire::Anthropic);
    folder.tw(&["run", "--auto", "-m", "anthropic/m", "go"]).expect(0);
    assert!(!folder.work().join("ran").exists());
    assert!(results(&server.last_request())[0].contains("reached its token limit"));
}

#[test]
fn duplicate_and_missing_call_ids_are_told_apart() {
    let server = ModelServer::start([
        Reply::default()
            .call("bash", json!({"command": "echo 1"}))
            .with_id("same")
            .call("bash", json!({"command": "echo 2"}))
            .with_id("same")
            .call("bash", json!({"command": "echo 3"}))
            .with_id("")
            .into(),
        Answer::text("ok"),
    ]);
    let folder = folder().with_model(&server, Wire::Anthropic);
    folder.tw(&["run", "--auto", "-m", "anthropic/m", "go"]).expect(0);
    let request = server.last_request();
    assert_history_is_valid(&request);
    assert_eq!(results(&request), ["1\n[exit code 0]", "2\n[exit code 0]", "3\n[exit code 0]"]);
}

#[test]
fn running_out_of_steps_ends_with_a_summary_and_status_4() {
    let look = || Answer::call("glob", json!({"pattern": "*"}));
    let server = ModelServer::start([look(), look(), Answer::text("Summary: looked twice.")]);
    let folder = folder().with_model(&server, Wire::Anthropic);
    let run = folder.tw(&["run", "--max-steps", "2", "-m", "anthropic/m", "go"]).expect(4);
    assert!(run.stdout.ends_with("Summary: looked twice.\n"), "{}", run.stdout);
    assert!(run.stderr.contains("the budget ran out (steps)"), "{}", run.stderr);
    let last = server.last_request();
    assert_eq!(last.body["tool_choice"], json!({"type": "none"}));
    assert!(last.body["tools"].as_array().is_some_and(|t| !t.is_empty()));
    assert_history_is_valid(&last);
}

#[test]
fn running_out_of_time_stops_the_tool_and_ends_with_a_summary() {
    let server = ModelServer::start([
        Answer::call("bash", json!({"command": "echo started; sleep 600"})),
        Answer::text("Out of time."),
    ]);
    let folder = folder().with_model(&server, Wire::Anthropic);
    let run = folder.tw(&["run", "--auto", "--timeout", "1", "-m", "anthropic/m", "go"]).expect(4);
    assert_eq!(run.stdout, "Out of time.\n");
    let request = server.last_request();
    assert_history_is_valid(&request);
    assert!(results(&request)[0].contains("started"), "what it had printed is kept");
}

#[test]
fn each_request_starts_with_the_messages_of_the_one_before() {
    let server = ModelServer::start([
        Answer::call("bash", json!({"command": "echo 1"})),
        Answer::call("bash", json!({"command": "echo 2"})),
        Answer::text("ok"),
    ]);
    let folder = folder().with_model(&server, Wire::Chat);
    folder.tw(&["run", "--auto", "-m", "openai-chat/m", "go"]).expect(0);
    let requests = server.requests();
    for pair in requests.windows(2) {
        // Up to the bracket that closes the messages.
        let before = pair[0].raw.strip_suffix(b"]}").expect("messages come last");
        assert!(pair[1].raw.starts_with(before));
    }
}

#[test]
fn standard_input_and_files_join_the_prompt() {
    use std::io::Write;
    let server = ModelServer::start([Answer::text("ok")]);
    let folder = folder().file("note.txt", "attached words\n").with_model(&server, Wire::Anthropic);
    let mut command = folder.command(&["run", "-m", "anthropic/m", "Review", "-f", "note.txt"]);
    command.stdin(std::process::Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"piped words\n").unwrap();
    assert!(child.wait_with_output().unwrap().status.success());
    let content = server.last_request().messages()[0]["content"].clone();
    assert_eq!(content[0]["text"], "Review\n\npiped words");
    assert!(content[1]["text"].as_str().unwrap().contains("attached words"));
}

#[test]
fn our_own_keys_are_not_passed_to_commands() {
    let server = ModelServer::start([
        Answer::call("bash", json!({"command": "echo key=$ANTHROPIC_API_KEY"})),
        Answer::text("ok"),
    ]);
    let folder = folder().with_model(&server, Wire::Anthropic);
    folder.tw(&["run", "--auto", "-m", "anthropic/m", "go"]).expect(0);
    assert_eq!(results(&server.last_request())[0], "key=\n[exit code 0]");
}

#[test]
fn interrupting_ends_at_once_with_130_and_a_session_that_goes_on() {
    let server = ModelServer::start([Reply::default().say("Half an ").hold_after_text().into()]);
    let folder = folder().with_model(&server, Wire::Anthropic);
    let child = folder.start(&["run", "-m", "anthropic/m", "Say something"]);
    child.wait_for("Half an ");
    child.signal("INT");
    let run = child.wait().expect(130);
    assert!(run.stderr.contains("go on with: tw run -c"), "{}", run.stderr);
    server.then(Answer::text("whole answer"));
    folder.tw(&["run", "-c", "-m", "anthropic/m"]).expect(0);
    let request = server.last_request();
    assert_eq!(request.messages().len(), 1, "the half answer is for people only");
    assert!(folder.tw(&["show"]).expect(0).stdout.contains("Half an"));
}

#[test]
fn answers_that_are_no_answer_are_no_success() {
    for (reply, expected) in [
        (Reply::default(), "empty answer"),
        (Reply::default().say("Half of").finish("max_tokens"), "output limit"),
        (Reply::default().say("I can't").finish("refusal"), "refused"),
    ] {
        // It is asked to go on a few times, and that helps nothing.
        let server = ModelServer::start(vec![Answer::from(reply); 4]);
        let folder = folder().with_model(&server, Wire::Anthropic);
        let run = folder.tw(&["run", "-m", "anthropic/m", "go"]).expect(1);
        assert!(run.stderr.contains(expected), "{}", run.stderr);
        let asked = if expected == "refused" { 1 } else { 4 };
        assert_eq!(server.requests().len(), asked, "{expected}");
    }
}

#[test]
fn a_session_goes_on_with_its_own_agent_and_model() {
    let server = ModelServer::start([Answer::text("a"), Answer::text("b")]);
    let folder = folder().with_model(&server, Wire::Chat);
    folder.tw(&["run", "-a", "plan", "-m", "openai-chat/special", "one"]).expect(0);
    folder.tw(&["run", "-c", "two"]).expect(0);
    let request = server.last_request();
    assert_eq!(request.body["model"], "special");
    let system = request.messages()[0].to_string();
    assert!(system.contains("You plan and change nothing"), "still the same agent: {system}");
}

#[test]
fn openai_falls_back_to_chat_where_there_is_no_responses_route_and_says_so_once() {
    let server = ModelServer::start([
        Answer::status(404, "page not found"),
        Answer::call("glob", json!({"pattern": "*"})),
        Answer::text("ok"),
    ]);
    let folder = folder().with_model(&server, Wire::Responses);
    let run = folder.tw(&["run", "-m", "openai/m", "go"]).expect(0);
    assert_eq!(run.stdout, "ok\n");
    assert_eq!(run.stderr.matches("no Responses route").count(), 1, "{}", run.stderr);
    let paths: Vec<String> = server.requests().iter().map(|r| r.path.clone()).collect();
    assert_eq!(paths, ["/v1/responses", "/v1/chat/completions", "/v1/chat/completions"]);
}

#[test]
fn signatures_and_encrypted_reasoning_go_back_to_their_maker() {
    let server =
        ModelServer::start([Answer::call("glob", json!({"pattern": "*"})), Answer::text("ok")]);
    let folder = folder().with_model(&server, Wire::Gemini);
    folder.tw(&["run", "-m", "google/m", "go"]).expect(0);
    let request = server.last_request();
    let part = &request.body["contents"][1]["parts"][0];
    assert_eq!(part["thoughtSignature"], "sig", "{part}");
    let response = &request.body["contents"][2]["parts"][0]["functionResponse"];
    assert_eq!(response["name"], "glob");
}

#[test]
fn a_session_can_change_its_model_at_any_step() {
    let look = || Answer::call("glob", json!({"pattern": "*"}));
    let server = ModelServer::start(Wire::ALL.iter().flat_map(|_| [look(), Answer::text("ok")]));
    let folder = Wire::ALL.iter().fold(folder(), |folder, wire| folder.with_model(&server, *wire));
    folder.tw(&["run", "-m", Wire::ALL[0].model(), "go"]).expect(0);
    for wire in &Wire::ALL[1..] {
        folder.tw(&["run", "-c", "-m", wire.model(), "go on"]).expect(0);
    }
    assert_eq!(server.requests().len(), 8);
    folder.tw(&["run", "-c", "-m", Wire::ALL[0].model(), "back"]).expect(1);
    assert_history_is_valid(&server.last_request());
}

#[test]
fn a_provider_that_pauses_is_asked_to_go_on() {
    let server = ModelServer::start([
        Reply::default().say("Searching").finish("pause_turn").into(),
        Answer::text(" and done."),
    ]);
    let folder = folder().with_model(&server, Wire::Anthropic);
    folder.tw(&["run", "-m", "anthropic/m", "go"]).expect(0);
    assert_eq!(server.requests().len(), 2);
    assert_eq!(server.last_request().messages().len(), 2);
}
