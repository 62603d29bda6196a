//! Questions and what a yes means: how far it reaches, for how long, and what it settles.

use serde_json::{Value, json};
use toolwright_testkit::{Answer, Child, Folder, ModelServer, Reply, Wire, eventually};

use crate::{folder, results};

const TALK: [&str; 7] = ["run", "--format", "json", "--commands", "-m", "anthropic/m", "go"];
const RUN: [&str; 4] = ["run", "-m", "anthropic/m", "go"];

fn bash(command: &str) -> Answer {
    Answer::call("bash", json!({ "command": command }))
}

fn exists(folder: &Folder, path: &str) -> bool {
    folder.work().join(path).exists()
}

fn questions(lines: &[Value]) -> Vec<Value> {
    lines.iter().filter(|line| line["type"] == "question").cloned().collect()
}

/// What was printed by the time that so many questions wait.
fn wait_for_questions(run: &Child, count: usize) -> Vec<Value> {
    eventually("questions", || {
        let lines = run.lines_so_far();
        (questions(&lines).len() == count).then_some(lines)
    })
}

fn listed(folder: &Folder) -> Value {
    let run = folder.tw(&["permission", "list", "--json"]).expect(0);
    serde_json::from_str(&run.stdout).unwrap()
}

#[test]
fn an_always_for_the_project_is_kept_listed_and_forgotten() {
    let server = ModelServer::start([bash("touch one"), Answer::text("ok")]);
    let folder = folder().with_model(&server, Wire::Anthropic);
    let mut run = folder.converse(&TALK);
    run.wait_for("\"question\"");
    run.say(r#"{"type":"answer","id":0,"reply":"always","scope":"project","extent":"prefix"}"#);
    let run = run.wait().expect(0);
    let question = &questions(&run.lines())[0];
    assert_eq!(question["scopes"], json!(["session", "project", "everywhere"]));
    let asked = &question["asked"][0];
    assert_eq!(asked["from"], "shipped defaults");
    assert_eq!(
        asked["suggestions"],
        json!([
            {"extent": "exact", "pattern": "touch one"},
            {"extent": "prefix", "pattern": "touch *"},
            {"extent": "tool", "pattern": "*"},
        ])
    );
    // Another process does not ask again, for the same kind of command.
    let again = || {
        server.then(bash("touch two"));
        server.then(Answer::text("ok"));
    };
    again();
    folder.tw(&RUN).expect(0);
    assert!(exists(&folder, "two"));
    // A deny stays one, in another project it does not count, and neither does it for what cannot be known.
    let check = |arguments: &[&str]| -> Value {
        let arguments = [&["permission", "check", "--json"], arguments].concat();
        serde_json::from_str(&folder.tw(&arguments).expect(0).stdout).unwrap()
    };
    assert_eq!(check(&["touch x"])["why"], "approved for this project");
    assert_eq!(check(&["touch x > y"])["decision"], "ask");
    assert_eq!(check(&["touch $(cat x"])["decision"], "ask");
    let other = folder.root().join("other");
    std::fs::create_dir(&other).unwrap();
    let elsewhere = ["--dir", other.to_str().unwrap(), "touch x"];
    assert_eq!(check(&elsewhere)["decision"], "ask");
    let kept = listed(&folder)["approvals"].clone();
    assert_eq!(
        (&kept[0]["pattern"], &kept[0]["command"]),
        (&json!("touch *"), &json!("touch one"))
    );
    assert!(kept[0]["time"].as_u64().unwrap() > 0, "{kept}");
    let text = folder.tw(&["permission", "list"]).expect(0).stdout;
    assert!(text.contains("a1") && text.contains("touch *"), "{text}");
    folder.tw(&["permission", "forget", "a9"]).expect(2);
    folder.tw(&["permission", "forget"]).expect(2);
    folder.tw(&["permission", "forget", "a1"]).expect(0);
    again();
    folder.tw(&RUN).expect(3);
}

#[test]
fn what_was_agreed_to_everywhere_lifts_no_deny() {
    let server = ModelServer::start([bash("touch one"), Answer::text("ok")]);
    let folder = folder().with_model(&server, Wire::Anthropic);
    let mut run = folder.converse(&TALK);
    run.wait_for("\"question\"");
    run.say(r#"{"type":"answer","id":0,"reply":"always","scope":"everywhere","extent":"tool"}"#);
    run.wait().expect(0);
    let folder = folder.user_config(r#"{"permission":{"bash":{"rm *":"deny"}}}"#);
    let check = |command: &str| -> Value {
        let run = folder.tw(&["permission", "check", "--json", command]).expect(0);
        serde_json::from_str(&run.stdout).unwrap()
    };
    assert_eq!(check("make all")["why"], "approved for all projects");
    assert_eq!(check("rm x")["decision"], "deny");
    assert_eq!(check("rm -rf ~")["decision"], "deny");
    assert_eq!(check("$TOOL all")["decision"], "ask", "what cannot be known is asked each time");
    folder.tw(&["permission", "forget", "--all"]).expect(0);
    assert_eq!(check("make all")["decision"], "ask");
}

#[test]
fn a_pattern_that_does_not_fit_the_question_is_refused_and_the_question_still_waits() {
    let server = ModelServer::start([bash("touch one"), Answer::text("ok")]);
    let folder = folder().with_model(&server, Wire::Anthropic);
    let mut run = folder.converse(&TALK);
    run.wait_for("\"question\"");
    run.say(r#"{"type":"answer","id":0,"reply":"always","pattern":"cargo *"}"#);
    run.wait_for("does not cover touch one");
    assert!(!exists(&folder, "one"));
    run.say(r#"{"type":"answer","id":7,"reply":"once"}"#);
    run.wait_for("no question with the id 7 waits");
    run.say(r#"{"type":"answer","id":0,"reply":"always","pattern":"touch *"}"#);
    run.wait().expect(0);
    assert!(exists(&folder, "one"));
    assert_eq!(listed(&folder)["approvals"], json!([]), "for this session alone");
}

#[test]
fn all_questions_are_announced_and_an_always_settles_those_that_it_covers() {
    let calls = Reply::default()
        .call("bash", json!({"command": "touch one"}))
        .call("bash", json!({"command": "touch two"}))
        .call("bash", json!({"command": "mkdir three"}));
    let server = ModelServer::start([calls.into(), Answer::text("ok")]);
    let folder = folder().with_model(&server, Wire::Anthropic);
    let mut run = folder.converse(&TALK);
    let lines = wait_for_questions(&run, 3);
    let id_of = |summary: &str| {
        let asked = questions(&lines);
        asked.iter().find(|q| q["summary"].as_str().unwrap().contains(summary)).unwrap()["id"]
            .clone()
    };
    let answer = |id: &Value, reply: &str, pattern: Option<&str>| {
        json!({"type": "answer", "id": id, "reply": reply, "pattern": pattern}).to_string()
    };
    run.say(&answer(&id_of("touch two"), "always", Some("touch *")));
    run.wait_for("\"question_closed\"");
    run.say(&answer(&id_of("mkdir"), "once", None));
    let run = run.wait().expect(0);
    assert!(["one", "two", "three"].iter().all(|path| exists(&folder, path)));
    let closed: Vec<Value> = run
        .lines()
        .iter()
        .filter(|line| line["type"] == "question_closed")
        .map(|line| line["id"].clone())
        .collect();
    assert_eq!(closed, [id_of("touch one")]);
}

#[test]
fn a_reject_ends_what_waits_in_the_same_step_and_its_words_reach_the_model() {
    let calls = Reply::default()
        .call("bash", json!({"command": "touch one"}))
        .call("bash", json!({"command": "touch two"}));
    let server = ModelServer::start([calls.into(), bash("touch three"), Answer::text("ok")]);
    let folder = folder().with_model(&server, Wire::Anthropic);
    let mut run = folder.converse(&TALK);
    let lines = wait_for_questions(&run, 2);
    let one = questions(&lines).iter().position(|q| q["summary"] == "touch one").unwrap();
    let id = questions(&lines)[one]["id"].clone();
    let reject = json!({"type": "answer", "id": id, "reply": "reject", "message": "use mkdir"});
    run.say(&reject.to_string());
    // The next step asks anew.
    run.wait_for("\"id\":2");
    run.say(r#"{"type":"answer","id":2,"reply":"once"}"#);
    run.wait().expect(0);
    assert!(!exists(&folder, "one") && !exists(&folder, "two") && exists(&folder, "three"));
    let results = results(&server.last_request());
    assert!(results[0].ends_with("The user said: use mkdir"), "{results:?}");
    assert!(results[1].contains("rejected another call of the same step"), "{results:?}");
}

#[test]
fn a_reject_leaves_the_workers_of_the_agent_their_own_questions() {
    let task = json!({"description": "d", "prompt": "work", "subagent_type": "general"});
    let server = ModelServer::answering(move |request| {
        let said = request.messages()[0]["content"].to_string();
        let turns = request.messages().len();
        match (said.contains("work"), turns) {
            (true, 1) => bash("touch by-worker"),
            (false, 1) => Reply::default()
                .call("task", task.clone())
                .call("bash", json!({"command": "touch own"}))
                .into(),
            _ => Answer::text("ok"),
        }
    });
    let folder = folder().with_model(&server, Wire::Anthropic);
    let mut run = folder.converse(&TALK);
    let lines = wait_for_questions(&run, 2);
    let id_of = |part: &str| {
        let asked = questions(&lines);
        asked.iter().find(|q| q["summary"].as_str().unwrap().contains(part)).unwrap()["id"].clone()
    };
    let answer = |id: Value, reply: &str| json!({"type": "answer", "id": id, "reply": reply});
    run.say(&answer(id_of("touch own"), "reject").to_string());
    run.say(&answer(id_of("by-worker"), "once").to_string());
    run.wait();
    assert!(exists(&folder, "by-worker") && !exists(&folder, "own"));
}

/// A terminal to sit at, where the machine has one to lend.
fn at_a_terminal(folder: &Folder, arguments: &str) -> Option<Child> {
    let found = std::process::Command::new("script").arg("--version").output();
    if !found.is_ok_and(|out| String::from_utf8_lossy(&out.stdout).contains("util-linux")) {
        println!("skipped: no script(1) of util-linux on this machine");
        return None;
    }
    let mut command = std::process::Command::new("script");
    folder.settle(&mut command);
    let line = format!("{} {arguments}", env!("CARGO_BIN_EXE_tw"));
    command.args(["-qefc", &line, "/dev/null"]).env("TERM", "dumb");
    command.stdin(std::process::Stdio::piped());
    Some(Child::spawn(command))
}

#[test]
fn at_a_terminal_one_question_comes_after_the_other_with_its_reason_and_choices() {
    let calls = Reply::default()
        .call("bash", json!({"command": "touch one"}))
        .call("bash", json!({"command": "touch two"}))
        .call("bash", json!({"command": "mkdir three"}));
    let server = ModelServer::start([calls.into(), Answer::text("All done.")]);
    let folder = folder().with_model(&server, Wire::Anthropic);
    let Some(mut run) = at_a_terminal(&folder, "run -m anthropic/m go") else { return };
    run.wait_for("[o]nce  [a]lways");
    run.say("a");
    run.wait_for("what begins like it");
    run.say("cargo * p");
    run.wait_for("does not cover");
    run.say("3 p");
    let run = run.wait();
    assert!(run.stdout.contains("by the rule bash \"*\" of shipped defaults"), "{}", run.stdout);
    assert!(run.stdout.contains("All done."), "{}", run.stdout);
    assert_eq!(run.stdout.matches("[o]nce").count(), 1, "the others were covered: {}", run.stdout);
    assert!(["one", "two", "three"].iter().all(|path| exists(&folder, path)));
    assert_eq!(listed(&folder)["approvals"][0]["scope"], "project");
}

#[test]
fn at_a_terminal_a_folder_is_asked_about_once_and_again_when_it_changed() {
    let server = ModelServer::start((0..4).map(|_| Answer::text("ok")));
    let config = |rule: &str| format!(r#"{{"permission":{{"bash":"{rule}"}},"username":"x"}}"#);
    let folder =
        folder().file("opencode.json", &config("allow")).with_model(&server, Wire::Anthropic);
    let Some(mut run) = at_a_terminal(&folder, "run -m anthropic/m go") else { return };
    run.wait_for("Do you trust");
    run.say("");
    let run = run.wait();
    assert!(run.stdout.contains("permission rules that allow"), "{}", run.stdout);
    let run = at_a_terminal(&folder, "run -m anthropic/m go").unwrap().wait();
    assert!(!run.stdout.contains("Do you trust"), "no is an answer: {}", run.stdout);
    folder.write("opencode.json", &config("allow").replace("\"x\"", "\"y\""));
    let mut run = at_a_terminal(&folder, "run -m anthropic/m go").unwrap();
    run.wait_for("Do you trust");
    run.say("y");
    run.wait();
    let run = folder.tw(&["permission", "check", "--json", "make"]).expect(0);
    assert!(run.stdout.contains("\"decision\":\"allow\""), "{}", run.stdout);
    let run = at_a_terminal(&folder, "run -m anthropic/m go").unwrap().wait();
    assert!(!run.stdout.contains("trust"), "{}", run.stdout);
}
