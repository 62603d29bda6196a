//! Work that is given to other agents.

use serde_json::{Value, json};
use toolwright_testkit::{Answer, Captured, ModelServer, Reply, Wire};

use crate::{assert_history_is_valid, folder, results};

fn task(agent: &str, prompt: &str) -> Value {
    json!({"description": "look around", "prompt": prompt, "subagent_type": agent})
}

fn said(request: &Captured) -> String {
    request.messages()[0]["content"].to_string()
}

fn tools(request: &Captured) -> Vec<String> {
    let tools = request.body["tools"].as_array().cloned().unwrap_or_default();
    tools.iter().map(|t| t["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn agents_work_side_by_side_in_sessions_of_their_own_and_report() {
    let server = ModelServer::answering(|request| {
        let turns = request.messages().len();
        match said(request) {
            s if s.contains("piece one") && turns == 1 => {
                Answer::call("read", json!({"filePath": "a.txt"}))
            }
            s if s.contains("piece one") => Answer::text("One is done."),
            s if s.contains("piece two") => Answer::text("Two is done."),
            _ if turns == 1 => Reply::default()
                .call("task", task("explore", "piece one"))
                .call("task", task("general", "piece two"))
                .into(),
            _ => Answer::text("Both are done."),
        }
    });
    let folder = folder().file("a.txt", "hello\n").with_model(&server, Wire::Anthropic);
    let run = folder.tw(&["run", "--format", "json", "-m", "anthropic/m", "go"]).expect(0);
    let last = server.requests().into_iter().rfind(|r| said(r).contains("go")).unwrap();
    assert_history_is_valid(&last);
    let reports = results(&last);
    assert!(reports[0].contains("<task_result>\nOne is done.\n</task_result>"), "{reports:?}");
    assert!(reports[1].contains("Two is done."), "{reports:?}");
    // The searcher changes nothing, and neither gives work away itself.
    let one = server.requests().into_iter().find(|r| said(r).contains("piece one")).unwrap();
    assert!(!tools(&one).contains(&"edit".to_owned()) && !tools(&one).contains(&"task".to_owned()));
    let two = server.requests().into_iter().find(|r| said(r).contains("piece two")).unwrap();
    assert!(tools(&two).contains(&"edit".to_owned()));
    // The child can be looked at by its id, and is no session to go on with.
    let lines = run.lines();
    let call = lines.iter().find(|l| l["type"] == "tool_use").unwrap();
    let child = call["part"]["state"]["metadata"]["sessionId"].as_str().unwrap();
    let shown = folder.tw(&["show", child]).expect(0);
    assert!(shown.stdout.contains("piece"), "{}", shown.stdout);
    let listed = folder.tw(&["sessions", "--json"]).expect(0);
    let listed: Value = serde_json::from_str(&listed.stdout).unwrap();
    assert_eq!(listed.as_array().unwrap().len(), 1);
}

#[test]
fn a_worker_may_do_only_what_both_it_and_its_employer_may_do() {
    let server =
        ModelServer::answering(|request| match (said(request), request.messages().len()) {
            (s, 1) if s.contains("write it") => {
                Answer::call("write", json!({"filePath": "a.txt", "content": "x"}))
            }
            (s, _) if s.contains("write it") => Answer::text("I could not."),
            (_, 1) => Answer::call("task", task("general", "write it")),
            _ => Answer::text("Too bad."),
        });
    let folder = folder()
        .user_config(r#"{"agent":{"general":{"permission":{"edit":"allow"}}}}"#)
        .with_model(&server, Wire::Anthropic);
    folder.tw(&["run", "--auto", "-a", "plan", "-m", "anthropic/m", "go"]).expect(0);
    assert!(!folder.work().join("a.txt").exists());
    let worker = server.requests().into_iter().rfind(|r| said(r).contains("write it")).unwrap();
    assert!(results(&worker)[0].contains("denied"), "{:?}", results(&worker));
}

#[test]
fn a_workers_question_reaches_whoever_answers_the_employers() {
    let server =
        ModelServer::answering(|request| match (said(request), request.messages().len()) {
            (s, 1) if s.contains("write it") => {
                Answer::call("write", json!({"filePath": "a.txt", "content": "x"}))
            }
            (s, _) if s.contains("write it") => Answer::text("Written."),
            (_, 1) => Answer::call("task", task("general", "write it")),
            _ => Answer::text("Done."),
        });
    let folder = folder().with_model(&server, Wire::Anthropic);
    let mut run =
        folder.converse(&["run", "--format", "json", "--commands", "-m", "anthropic/m", "go"]);
    run.wait_for("[general] write a.txt");
    run.say(r#"{"type":"answer","id":0,"reply":"once"}"#);
    run.wait().expect(0);
    assert_eq!(folder.read("a.txt"), "x");
}

#[test]
fn work_goes_on_by_its_id_and_a_failure_is_a_failure_with_what_it_had() {
    let server = ModelServer::start([
        Answer::call("task", task("general", "begin")),
        Reply::default().say("Half a").cut_after_text().into(),
        Answer::status(400, r#"{"error":{"message":"no more"}}"#),
    ]);
    let folder = folder().with_model(&server, Wire::Anthropic);
    server.then(Answer::text("It failed."));
    let run = folder.tw(&["run", "--format", "json", "-m", "anthropic/m", "go"]);
    let lines = run.lines();
    let call = lines.iter().find(|l| l["type"] == "tool_use").unwrap();
    let error = call["part"]["state"]["error"].as_str().unwrap();
    assert!(error.contains("<task_error>"), "{error}");
    let id = error.split('"').nth(1).unwrap().to_owned();

    let mut again = task("general", "go on");
    again["task_id"] = id.into();
    let server = ModelServer::start([
        Answer::call("task", again),
        Answer::text("Finished after all."),
        Answer::text("Good."),
    ]);
    let folder = folder.with_model(&server, Wire::Anthropic);
    folder.tw(&["run", "-c", "-m", "anthropic/m", "once more"]).expect(0);
    let worker = &server.requests()[1];
    assert!(said(worker).contains("begin"), "the worker remembers: {}", said(worker));
    assert!(results(&server.last_request()).last().unwrap().contains("Finished after all."));
}

#[test]
fn an_unknown_agent_is_named_with_those_there_are() {
    let server =
        ModelServer::start([Answer::call("task", task("wizard", "x")), Answer::text("ok")]);
    let folder = folder().with_model(&server, Wire::Anthropic);
    folder.tw(&["run", "-m", "anthropic/m", "go"]).expect(0);
    let result = &results(&server.last_request())[0];
    assert!(
        result.contains("Unknown agent type: wizard") && result.contains("explore"),
        "{result}"
    );
}

#[test]
fn an_abort_ends_the_workers_too() {
    let server = ModelServer::start([
        Answer::call("task", task("general", "x")),
        Reply::default().say("Working").hold_after_text().into(),
    ]);
    let folder = folder().with_model(&server, Wire::Anthropic);
    let run = folder.start(&["run", "-m", "anthropic/m", "go"]);
    server.wait_for_request();
    server.wait_for_request();
    run.signal("INT");
    run.wait().expect(130);
    server.then(Answer::text("ok"));
    folder.tw(&["run", "-c", "more"]).expect(0);
    assert_history_is_valid(&server.last_request());
}

#[test]
fn what_a_worker_was_denied_is_not_told_as_success() {
    let server =
        ModelServer::answering(|request| match (said(request), request.messages().len()) {
            (s, 1) if s.contains("write it") => {
                Answer::call("write", json!({"filePath": "a.txt", "content": "x"}))
            }
            (s, _) if s.contains("write it") => Answer::text("I could not."),
            (_, 1) => Answer::call("task", task("general", "write it")),
            _ => Answer::text("Too bad."),
        });
    let folder = folder().with_model(&server, Wire::Anthropic);
    let run = folder.tw(&["run", "-m", "anthropic/m", "go"]).expect(3);
    assert!(run.stderr.contains("denied: write"), "{}", run.stderr);
    let report = results(&server.last_request()).pop().unwrap();
    assert!(
        report.contains("state=\"denied\"") && report.contains("Denied on the way"),
        "{report}"
    );
}

#[test]
fn a_worker_can_read_what_was_too_large_for_its_own_answer() {
    let server = ModelServer::answering(|request| {
        let turns = request.messages().len();
        match (said(request), turns) {
            (s, 1) if s.contains("count") => {
                Answer::call("bash", json!({"command": "seq 1 30000"}))
            }
            (s, 3) if s.contains("count") => {
                let result = results(request).pop().unwrap();
                let path = result.split_whitespace().find(|w| w.contains(".outputs/")).unwrap();
                let path = path.trim_end_matches(['.', ')', ',', ':']).to_owned();
                Answer::call("read", json!({"filePath": path, "offset": 29_999}))
            }
            (s, _) if s.contains("count") => Answer::text("Counted."),
            (_, 1) => Answer::call("task", task("general", "count")),
            _ => Answer::text("Done."),
        }
    });
    let folder = folder()
        .user_config(r#"{"permission":{"bash":"allow"}}"#)
        .with_model(&server, Wire::Anthropic);
    folder.tw(&["run", "-m", "anthropic/m", "go"]).expect(0);
    let worker = server.requests().into_iter().rfind(|r| said(r).contains("count")).unwrap();
    assert!(results(&worker)[1].contains("30000"), "{}", results(&worker)[1]);
}
