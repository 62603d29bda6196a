//! Commands that people have as hooks for another agent, run as they are.

use serde_json::{Value, json};
use toolwright_testkit::{Answer, Folder, ModelServer, Reply, Wire, processes_with};

use crate::{assert_history_is_valid, folder, results};

const RUN: [&str; 4] = ["run", "-m", "anthropic/m", "go"];

/// A settings file with one command.
fn settings(event: &str, matcher: &str, command: &str) -> String {
    let hook = json!({ "type": "command", "command": command, "timeout": 30 });
    json!({ "hooks": { event: [{ "matcher": matcher, "hooks": [hook] }] } }).to_string()
}

/// A folder whose user has this hook for Claude Code.
fn with_hook(server: &ModelServer, event: &str, matcher: &str, command: &str) -> Folder {
    with_settings(server, &settings(event, matcher, command))
}

fn with_settings(server: &ModelServer, text: &str) -> Folder {
    let folder = folder().with_model(server, Wire::Anthropic);
    let own = folder.root().join("home/.claude");
    std::fs::create_dir_all(&own).unwrap();
    std::fs::write(own.join("settings.json"), text).unwrap();
    folder
}

fn bash(command: &str) -> Answer {
    Answer::call("bash", json!({ "command": command }))
}

/// What hooks wrote down, one event a line.
fn told(folder: &Folder) -> Vec<Value> {
    folder.read("told").lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Writes down what it is told.
const TELL: &str = "cat >> told; echo >> told";

#[test]
fn status_2_blocks_a_call_and_the_model_sees_the_reason() {
    let server = ModelServer::start([bash("touch made"), Answer::text("ok")]);
    let check = "grep -q 'touch made' && echo 'no new files' >&2 && exit 2";
    let folder = with_hook(&server, "PreToolUse", "Bash", check);
    folder.tw(&["run", "--auto", "-m", "anthropic/m", "go"]).expect(3);
    assert!(!folder.work().join("made").exists());
    let request = server.last_request();
    assert_history_is_valid(&request);
    assert_eq!(results(&request), ["A hook blocked this call: no new files"]);
}

#[test]
fn a_hook_is_told_of_a_call_in_the_form_it_knows_and_only_of_those_it_is_for() {
    let server = ModelServer::start([
        Answer::call("read", json!({ "filePath": "a.txt" })),
        Answer::call("write", json!({ "filePath": "b.txt", "content": "x" })),
        Answer::text("ok"),
    ]);
    let folder = with_hook(&server, "PreToolUse", "Edit|Write", TELL).file("a.txt", "x");
    folder.tw(&["run", "--auto", "-m", "anthropic/m", "go"]).expect(0);
    let told = told(&folder);
    assert_eq!(told.len(), 1, "{told:?}");
    let work = folder.work().canonicalize().unwrap();
    assert_eq!(told[0]["tool_name"], "Write");
    assert_eq!(told[0]["tool_input"]["file_path"], json!(work.join("b.txt")));
    assert_eq!(told[0]["cwd"], json!(work));
    let session = told[0]["session_id"].as_str().unwrap();
    let log = folder.session_files()[0].clone();
    assert!(log.to_string_lossy().contains(session));
    assert_eq!(told[0]["transcript_path"], json!(log.canonicalize().unwrap()));
}

#[test]
fn updated_input_is_what_runs() {
    let server = ModelServer::start([bash("echo one"), Answer::text("ok")]);
    let command = r#"echo '{"hookSpecificOutput":{"hookEventName":"PreToolUse","updatedInput":{"command":"echo two"}}}'"#;
    let folder = with_hook(&server, "PreToolUse", "Bash", command);
    folder.tw(&["run", "--auto", "-m", "anthropic/m", "go"]).expect(0);
    assert_eq!(results(&server.last_request()), ["two\n[exit code 0]"]);
}

#[test]
fn updated_input_that_does_not_fit_the_tool_comes_back_as_an_error() {
    let server = ModelServer::start([bash("touch made"), Answer::text("ok")]);
    let command = r#"echo '{"hookSpecificOutput":{"updatedInput":{"command":5}}}'"#;
    let folder = with_hook(&server, "PreToolUse", "Bash", command);
    folder.tw(&["run", "--auto", "-m", "anthropic/m", "go"]).expect(0);
    assert!(!folder.work().join("made").exists());
    let result = &results(&server.last_request())[0];
    assert!(result.contains("command"), "{result}");
}

#[test]
fn a_hook_that_allows_stands_in_for_a_person_and_never_lifts_a_deny() {
    let server = ModelServer::start([bash("touch made"), bash("rm made"), Answer::text("ok")]);
    let allow = r#"echo '{"hookSpecificOutput":{"permissionDecision":"allow"}}'"#;
    let folder = with_hook(&server, "PreToolUse", "Bash", allow)
        .user_config(r#"{"permission":{"bash":{"rm *":"deny"}}}"#);
    folder.tw(&RUN).expect(3);
    assert!(folder.work().join("made").exists(), "nobody was there to ask");
    let results = results(&server.last_request());
    assert!(results[1].contains("Permission denied"), "{}", results[1]);
}

#[test]
fn a_request_for_permission_can_be_answered_by_a_hook() {
    for (behaviour, code) in [("allow", 0), ("deny", 3)] {
        let server = ModelServer::start([bash("touch made"), Answer::text("ok")]);
        let command = format!(
            r#"cat > asked; echo '{{"hookSpecificOutput":{{"decision":{{"behavior":"{behaviour}","message":"not now"}}}}}}'"#
        );
        let folder = with_hook(&server, "PermissionRequest", "Bash", &command);
        folder.tw(&RUN).expect(code);
        assert_eq!(folder.work().join("made").exists(), behaviour == "allow");
        let asked: Value = serde_json::from_str(&folder.read("asked")).unwrap();
        assert_eq!(asked["tool_input"], json!({ "command": "touch made" }));
        let denied = results(&server.last_request())[0].contains("not now");
        assert_eq!(denied, behaviour == "deny");
    }
}

#[test]
fn what_a_hook_says_to_a_prompt_reaches_the_model() {
    let server = ModelServer::start([Answer::text("ok")]);
    let folder = with_hook(&server, "UserPromptSubmit", "", "grep -o '\"prompt\":\"go\"'");
    folder.tw(&RUN).expect(0);
    let content = server.last_request().messages()[0]["content"].clone();
    assert_eq!(content[0]["text"], "go");
    assert_eq!(content[1]["text"], "\"prompt\":\"go\"");
}

#[test]
fn a_prompt_that_is_refused_is_never_sent() {
    let server = ModelServer::start([]);
    let folder = with_hook(&server, "UserPromptSubmit", "", "echo 'no secrets' >&2; exit 2");
    let run = folder.tw(&RUN).expect(1);
    assert!(run.stderr.contains("no secrets"), "{}", run.stderr);
    assert!(server.requests().is_empty());
    assert!(!folder.session_text().contains("\"go\""), "nor kept");
}

#[test]
fn what_a_session_starts_with_is_told_with_the_first_prompt() {
    let server = ModelServer::start([Answer::text("ok"), Answer::text("ok")]);
    let folder = with_hook(&server, "SessionStart", "startup", "echo 'the branch is main'");
    folder.tw(&RUN).expect(0);
    folder.tw(&["run", "-c", "more"]).expect(0);
    let messages = server.last_request().messages().to_vec();
    assert_eq!(messages[0]["content"][1]["text"], "the branch is main");
    assert_eq!(messages[2]["content"].as_array().map(Vec::len), Some(1), "resumed, not started");
}

#[test]
fn a_stop_hook_sends_the_model_back_once() {
    let server = ModelServer::start([Answer::text("Done."), Answer::text("Really done.")]);
    let check = "grep -q '\"stop_hook_active\":true' || { echo 'run the tests' >&2; exit 2; }";
    let folder = with_hook(&server, "Stop", "", check);
    let run = folder.tw(&RUN).expect(0);
    assert!(run.stdout.ends_with("Really done.\n"), "{}", run.stdout);
    let requests = server.requests();
    assert_eq!(requests.len(), 2);
    assert!(String::from_utf8_lossy(&requests[1].raw).contains("run the tests"));
}

#[test]
fn what_a_hook_thinks_of_a_result_is_told_to_the_model() {
    let server = ModelServer::start([
        Reply::default()
            .call("write", json!({ "filePath": "a.rs", "content": "x" }))
            .call("read", json!({ "filePath": "missing" }))
            .into(),
        Answer::text("ok"),
    ]);
    let lint = "grep -q '\"success\":true' && echo 'does not compile' >&2 && exit 2";
    let folder = with_hook(&server, "PostToolUse", "*", lint);
    folder.tw(&["run", "--auto", "-m", "anthropic/m", "go"]).expect(0);
    let results = results(&server.last_request());
    assert!(results[0].ends_with("(A hook says: does not compile)"), "{}", results[0]);
    assert!(!results[1].contains("hook"), "a failed call is another event: {}", results[1]);
}

#[test]
fn a_hook_can_end_the_turn() {
    let server = ModelServer::start([bash("echo hi")]);
    let command = r#"echo '{"continue":false,"stopReason":"that is enough"}'"#;
    let folder = with_hook(&server, "PostToolUse", "", command);
    let run = folder.tw(&["run", "--auto", "-m", "anthropic/m", "go"]).expect(1);
    assert!(run.stderr.contains("a hook stopped the turn: that is enough"), "{}", run.stderr);
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn a_hanging_hook_ends_at_its_timeout_and_leaves_no_process() {
    let marker = format!("sleep 87651.{}", std::process::id());
    let server = ModelServer::start([bash("touch made"), bash("touch more"), Answer::text("ok")]);
    let hook = json!({
        "type": "command", "command": format!("{marker} & {marker}"), "timeout": 0.3,
        "on_failure": "block",
    });
    let text = json!({ "hooks": { "PreToolUse": [{ "hooks": [hook] }] } }).to_string();
    let folder = with_settings(&server, &text);
    let run = folder.tw(&["run", "--auto", "-m", "anthropic/m", "go"]).expect(3);
    assert_eq!(processes_with(&marker), Vec::<String>::new());
    assert!(!folder.work().join("made").exists(), "its failing counts as a refusal");
    assert!(run.stderr.contains("it took longer than 0.3 s"), "{}", run.stderr);
}

#[test]
fn a_hook_that_fails_is_reported_and_does_not_stand_in_the_way() {
    let server = ModelServer::start([bash("echo hi"), Answer::text("ok")]);
    let folder = with_hook(&server, "PreToolUse", "", "no-such-program-anywhere");
    let run = folder.tw(&["run", "--auto", "-m", "anthropic/m", "go"]).expect(0);
    assert!(run.stderr.contains("exit status 127"), "{}", run.stderr);
    assert_eq!(results(&server.last_request()), ["hi\n[exit code 0]"]);
}

#[test]
fn an_abort_does_not_wait_for_a_hook() {
    for event in ["UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop", "SessionEnd"] {
        let marker = format!("sleep 87652.{}", std::process::id());
        let script = match event {
            "PreToolUse" | "PostToolUse" => vec![bash("echo hi")],
            _ => vec![Answer::text("ok")],
        };
        let server = ModelServer::start(script);
        let folder = with_hook(&server, event, "", &format!("touch running; {marker}"));
        let child = folder.start(&["run", "--auto", "-m", "anthropic/m", "go"]);
        toolwright_testkit::eventually("the hook", || {
            folder.work().join("running").exists().then_some(())
        });
        let pressed = std::time::Instant::now();
        child.signal("INT");
        let code = if event == "SessionEnd" { 0 } else { 130 };
        child.wait().expect(code);
        // Far less than the thirty seconds that the hook has.
        assert!(pressed.elapsed().as_secs() < 15, "{event}");
        assert_eq!(processes_with(&marker), Vec::<String>::new(), "{event}");
    }
}

#[test]
fn a_projects_hooks_need_trust_and_the_run_says_so() {
    let file = settings("PreToolUse", "Bash", "echo refused >&2; exit 2");
    for path in [".claude/settings.json", ".claude/settings.local.json", "toolwright.json"] {
        let server = ModelServer::start([
            bash("echo hi"),
            Answer::text("ok"),
            bash("echo hi"),
            Answer::text("ok"),
        ]);
        let folder = folder().with_model(&server, Wire::Anthropic).file(path, &file);
        let run = folder.tw(&["run", "--auto", "-m", "anthropic/m", "go"]).expect(0);
        assert!(run.stderr.contains("not used: hooks"), "{}", run.stderr);
        assert_eq!(results(&server.last_request()), ["hi\n[exit code 0]"]);
        folder.tw(&["run", "--auto", "--trust", "-m", "anthropic/m", "go"]).expect(3);
        assert!(results(&server.last_request())[0].contains("refused"));
    }
}

#[test]
fn commands_run_in_the_order_written_and_the_same_one_once() {
    let server = ModelServer::start([bash("echo hi"), Answer::text("ok")]);
    let write =
        |word: &str| json!({ "type": "command", "command": format!("echo {word} >> order") });
    let text = json!({ "hooks": { "PreToolUse": [
        { "matcher": "Bash", "hooks": [write("one"), write("two")] },
        { "matcher": "*", "hooks": [write("one"), write("three")] },
    ] } });
    let folder = with_settings(&server, &text.to_string());
    folder.tw(&["run", "--auto", "-m", "anthropic/m", "go"]).expect(0);
    assert_eq!(folder.read("order"), "one\ntwo\nthree\n");
}

#[test]
fn an_agent_that_works_for_another_has_its_own_end() {
    let work = json!({ "description": "Look", "prompt": "look", "subagent_type": "general" });
    let server = ModelServer::start([
        Answer::call("task", work),
        Answer::text("I looked."),
        Answer::text("It looked."),
    ]);
    let tell = json!([{ "hooks": [{ "type": "command", "command": TELL }] }]);
    let text = json!({ "hooks": {
        "Stop": tell, "SubagentStop": tell, "UserPromptSubmit": tell, "SessionStart": tell,
        "SubagentStart": tell, "SessionEnd": tell,
    } });
    let folder = with_settings(&server, &text.to_string());
    folder.tw(&["run", "--auto", "-m", "anthropic/m", "go"]).expect(0);
    let told = told(&folder);
    let names: Vec<_> = told.iter().map(|e| e["hook_event_name"].as_str().unwrap()).collect();
    assert_eq!(
        names,
        ["SessionStart", "UserPromptSubmit", "SubagentStart", "SubagentStop", "Stop", "SessionEnd"]
    );
    assert_eq!(told[3]["agent_type"], "general");
    assert_eq!(told[3]["last_assistant_message"], "I looked.");
    assert_ne!(told[3]["session_id"], told[4]["session_id"]);
    assert_eq!(told[4]["session_id"], told[0]["session_id"]);
}

#[test]
fn what_hooks_report_of_an_agent_that_nobody_watches_is_shown() {
    let work = json!({ "description": "Look", "prompt": "look", "subagent_type": "general" });
    let server = ModelServer::start([
        Answer::call("task", work),
        Answer::call("glob", json!({ "pattern": "*" })),
        Answer::text("I looked."),
        Answer::text("It looked."),
    ]);
    let folder = with_hook(&server, "PreToolUse", "Glob", "echo 'out of order' >&2; exit 1");
    let run = folder.tw(&["run", "--auto", "-m", "anthropic/m", "go"]).expect(0);
    assert!(run.stderr.contains("exit status 1: out of order"), "{}", run.stderr);
}

#[test]
fn compaction_is_announced_and_what_a_session_starts_with_is_told_again() {
    let server = ModelServer::start([
        Answer::text("hello"),
        Answer::text("notes on it"),
        Answer::text("ok"),
    ]);
    let text = json!({ "hooks": {
        "PreCompact": [{ "matcher": "manual", "hooks": [{ "type": "command", "command": TELL }] }],
        "SessionStart": [{ "matcher": "compact", "hooks": [{ "type": "command", "command": "echo remember the goal" }] }],
    } });
    let folder = with_settings(&server, &text.to_string());
    folder.tw(&RUN).expect(0);
    folder.tw(&["compact", "-m", "anthropic/m"]).expect(0);
    assert_eq!(told(&folder)[0]["trigger"], "manual");
    folder.tw(&["run", "-c", "go on"]).expect(0);
    let request = server.last_request();
    let sent = String::from_utf8_lossy(&request.raw).into_owned();
    assert!(sent.contains("notes on it") && sent.contains("remember the goal"), "{sent}");
    assert_history_is_valid(&request);
}

#[test]
fn a_hook_that_speaks_to_the_person_is_shown() {
    let server = ModelServer::start([Answer::text("ok")]);
    let folder = with_hook(&server, "Stop", "", r#"echo '{"systemMessage":"look at the logs"}'"#);
    let run = folder.tw(&RUN).expect(0);
    assert!(run.stderr.contains("! look at the logs"), "{}", run.stderr);
}

#[test]
fn doctor_lists_the_hooks_and_what_is_wrong_with_their_files() {
    let server = ModelServer::start([]);
    let folder = with_hook(&server, "PreToolUse", "Bash|Edit", "check-it");
    let run = folder.tw(&["doctor"]).expect(0);
    assert!(run.stdout.contains("PreToolUse Bash|Edit: check-it ("), "{}", run.stdout);
    let broken = with_settings(&server, "{\n \"hooks\": 5 }");
    let run = broken.tw(&["doctor"]).expect(1);
    assert!(run.stdout.contains("settings.json:2:11: hooks: "), "{}", run.stdout);
}
