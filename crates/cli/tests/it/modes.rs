//! How much is done without a question, in one word for the whole run.

use serde_json::{Value, json};
use toolwright_testkit::{Answer, Folder, ModelServer, Reply, Wire};

use crate::{folder, results};

const TALK: [&str; 7] = ["run", "--format", "json", "--commands", "-m", "anthropic/m", "go"];

fn write(path: &str) -> Answer {
    Answer::call("write", json!({"filePath": path, "content": "x"}))
}

fn bash(command: &str) -> Answer {
    Answer::call("bash", json!({ "command": command }))
}

fn exists(folder: &Folder, path: &str) -> bool {
    folder.work().join(path).exists()
}

fn begun(lines: &[Value]) -> Value {
    lines.iter().find(|line| line["type"] == "session").unwrap().clone()
}

#[test]
fn accept_edits_changes_files_of_the_workspace_and_asks_about_the_rest() {
    let server = ModelServer::start([
        write("a.txt"),
        write(".git/hooks/pre-commit"),
        write("../outside.txt"),
        bash("touch made"),
        Answer::text("ok"),
    ]);
    let folder = folder().with_model(&server, Wire::Anthropic);
    folder.tw(&["run", "--mode", "accept-edits", "-m", "anthropic/m", "go"]).expect(3);
    assert!(exists(&folder, "a.txt"));
    assert!(!exists(&folder, ".git/hooks/pre-commit") && !exists(&folder, "made"));
    assert!(!folder.root().join("outside.txt").exists());
}

#[test]
fn plan_changes_and_runs_nothing_whatever_the_rules_allow_and_brings_its_agent() {
    let task = json!({"description": "d", "prompt": "work", "subagent_type": "general"});
    let server = ModelServer::answering(move |request| {
        let said = request.messages()[0]["content"].to_string();
        let turns = request.messages().len();
        match (said.contains("work"), turns) {
            (true, 1) => write("by-worker.txt"),
            (false, 1) => Reply::default()
                .call("read", json!({"filePath": "there.txt"}))
                .call("bash", json!({"command": "ls"}))
                .call("bash", json!({"command": "touch made"}))
                .call("bash", json!({"command": "echo x > redirected"}))
                .call("write", json!({"filePath": "a.txt", "content": "x"}))
                .call("write", json!({"filePath": ".toolwright/plans/p.md", "content": "# Plan"}))
                .call("task", task.clone())
                .into(),
            _ => Answer::text("ok"),
        }
    });
    let folder = folder()
        .user_config(r#"{"permission":"allow"}"#)
        .file("there.txt", "words")
        .with_model(&server, Wire::Anthropic);
    let run = folder.tw(&["run", "--format", "json", "--mode", "plan", "-m", "anthropic/m", "go"]);
    let session = begun(&run.lines());
    assert_eq!((&session["mode"], &session["agent"]), (&json!("plan"), &json!("plan")));
    for path in ["made", "redirected", "a.txt", "by-worker.txt"] {
        assert!(!exists(&folder, path), "{path}");
    }
    assert!(exists(&folder, ".toolwright/plans/p.md"));
    let last = server.requests().into_iter().rfind(|r| r.messages().len() == 3).unwrap();
    let own = results(&last);
    assert!(own.iter().any(|r| r.contains("words")), "reading is free: {own:?}");
    assert!(own.iter().any(|r| r.contains("the mode is plan")), "{own:?}");
}

#[test]
fn a_session_goes_on_in_its_mode_but_never_in_auto() {
    let server = ModelServer::start([
        write("a.txt"),
        Answer::text("ok"),
        write("b.txt"),
        Answer::text("ok"),
        write("c.txt"),
        Answer::text("ok"),
    ]);
    let folder = folder().with_model(&server, Wire::Anthropic);
    folder.tw(&["run", "--mode", "accept-edits", "-m", "anthropic/m", "go"]).expect(0);
    folder.tw(&["run", "-c", "more"]).expect(0);
    assert!(exists(&folder, "b.txt"), "the mode belongs to the session");
    folder.tw(&["run", "-c", "--mode", "ask", "more"]).expect(3);
    assert!(!exists(&folder, "c.txt"), "another one can be named");
    server.then(write("d.txt"));
    server.then(Answer::text("ok"));
    server.then(write("e.txt"));
    server.then(Answer::text("ok"));
    folder.tw(&["run", "--auto", "-m", "anthropic/m", "go"]).expect(0);
    folder.tw(&["run", "-c", "more"]).expect(3);
    assert!(exists(&folder, "d.txt") && !exists(&folder, "e.txt"), "auto is said each time");
}

#[test]
fn a_change_of_mode_decides_about_what_waits() {
    for (mode, written) in [("auto", true), ("accept-edits", true), ("plan", false)] {
        let server = ModelServer::start([write("a.txt"), Answer::text("ok")]);
        let folder = folder().with_model(&server, Wire::Anthropic);
        let mut run = folder.converse(&TALK);
        run.wait_for("\"question\"");
        run.say(&json!({"type": "mode", "mode": mode}).to_string());
        let run = run.wait();
        assert_eq!(exists(&folder, "a.txt"), written, "{mode}");
        let lines = run.lines();
        let has = |kind: &str| lines.iter().any(|line| line["type"] == kind);
        assert!(has("question_closed") && has("mode"), "{}", run.stdout);
    }
}

#[test]
fn the_configuration_may_name_a_mode_and_the_command_line_another() {
    let server = ModelServer::start([
        write("a.txt"),
        Answer::text("ok"),
        write("b.txt"),
        Answer::text("ok"),
    ]);
    let folder = folder()
        .user_config(r#"{"permission_mode":"accept-edits"}"#)
        .with_model(&server, Wire::Anthropic);
    folder.tw(&["run", "-m", "anthropic/m", "go"]).expect(0);
    folder.tw(&["run", "--mode", "ask", "-m", "anthropic/m", "go"]).expect(3);
    let wrong = r#"{"permission_mode":"yolo"}"#;
    let run = folder.user_config(wrong).tw(&["run", "-m", "anthropic/m", "go"]).expect(2);
    assert!(run.stderr.contains("permission_mode") && run.stderr.contains("accept-edits"));
}

#[test]
fn a_plan_that_is_agreed_to_ends_its_mode() {
    let server = ModelServer::start([
        Answer::call("plan_enter", json!({})),
        Answer::text("Waiting."),
        bash("touch early"),
        Answer::call("plan_exit", json!({})),
        Answer::text("Waiting again."),
        bash("touch late"),
        Answer::text("Built."),
    ]);
    let folder = folder().with_model(&server, Wire::Anthropic);
    let mut arguments = TALK.to_vec();
    arguments.insert(1, "--auto");
    let mut run = folder.converse(&arguments);
    run.wait_for("\"inquiry\"");
    run.say(r#"{"type":"reply","id":0,"answers":[["Yes"]]}"#);
    run.wait_for("Switch to the build agent and begin");
    run.say(r#"{"type":"reply","id":1,"answers":[["Yes"]]}"#);
    let run = run.wait().expect(0);
    assert!(!exists(&folder, "early"), "planning runs nothing, even with --auto");
    assert!(exists(&folder, "late"), "and the mode from before goes on");
    let lines = run.lines();
    let modes: Vec<&Value> =
        lines.iter().filter(|l| l["type"] == "mode").map(|l| &l["mode"]).collect();
    assert_eq!(modes, [&json!("plan"), &json!("auto")]);
}

#[test]
fn everything_lifts_the_floor_loudly_and_no_administrators_word() {
    let call = |folder: &Folder, flag: &str, command: &str| {
        folder.tw(&["tools", "call", flag, "bash", &json!({ "command": command }).to_string()])
    };
    let folder = folder().file("x", "x").user_config(r#"{"permission":{"bash":"deny"}}"#);
    let managed = folder.root().join("etc/toolwright");
    std::fs::create_dir_all(&managed).unwrap();
    let rules = r#"{"permission":{"bash":{"shutdown*":"deny"}}}"#;
    std::fs::write(managed.join("toolwright.json"), rules).unwrap();
    let everything = "--dangerously-allow-everything";
    let fork = "true || { :(){ :|:& };:; }";
    let denied = call(&folder, "--auto", fork).expect(3);
    assert!(denied.stdout.contains("never allowed"), "{}", denied.stdout);
    let run = call(&folder, everything, fork).expect(0);
    assert!(run.stderr.contains("EVERYTHING IS ALLOWED"), "{}", run.stderr);
    call(&folder, everything, "shutdown now").expect(3);
    let server = ModelServer::start([bash("touch made"), Answer::text("ok")]);
    let folder = folder.with_model(&server, Wire::Anthropic);
    let run = folder.tw(&["run", "--format", "json", everything, "-m", "anthropic/m", "go"]);
    let run = run.expect(0);
    assert_eq!(begun(&run.lines())["everythingAllowed"], true);
    assert!(exists(&folder, "made") && run.stderr.contains("EVERYTHING IS ALLOWED"));
    folder.tw(&["run", "--auto", everything, "go"]).expect(2);
}
