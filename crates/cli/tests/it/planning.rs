//! Planning as a state of the session: what may be written in it, and how it is left and entered.

use serde_json::{Value, json};
use toolwright_testkit::{Answer, Captured, Folder, ModelServer, Reply, Wire};

use crate::{assert_history_is_valid, folder, results};

fn offers(request: &Captured, name: &str) -> bool {
    let tools = request.body["tools"].as_array().cloned().unwrap_or_default();
    tools.iter().any(|tool| tool["name"] == name)
}

fn system(request: &Captured) -> String {
    request.body["system"].to_string()
}

/// The agents of the prompts, and those whose system prompt was frozen, in order.
fn agents(folder: &Folder, kind: &str) -> Vec<String> {
    let text = folder.session_text();
    let entries = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let entries = entries.filter(|e| e.to_string().contains(&format!("\"type\":\"{kind}\"")));
    let agent = |e: Value| {
        let data = e.get("entry").unwrap_or(&e);
        data["data"]["agent"].as_str().unwrap_or_default().to_owned()
    };
    entries.map(agent).collect()
}

fn talk(agent: &str) -> [&str; 9] {
    ["run", "--format", "json", "--commands", "--agent", agent, "-m", "anthropic/m", "go"]
}

fn write(path: &str) -> Answer {
    Answer::call("write", json!({"filePath": path, "content": "# Plan"}))
}

#[test]
fn the_plan_agent_writes_its_plan_and_nothing_else() {
    let paths = [
        ".toolwright/plans/a.md",
        ".opencode/plans/a.md",
        "src/main.rs",
        ".toolwright/plans/../../b.md",
        ".toolwright/plans/a.sh",
    ];
    let server = ModelServer::start(paths.map(write));
    server.then(Answer::text("Done."));
    let folder = folder().with_model(&server, Wire::Anthropic);
    folder.tw(&["run", "--auto", "--agent", "plan", "-m", "anthropic/m", "go"]);
    for (path, allowed) in paths.iter().zip([true, true, false, false, false]) {
        assert_eq!(folder.work().join(path).exists(), allowed, "{path}");
    }
    let request = server.last_request();
    assert!(results(&request)[2].contains("Permission denied"), "{:?}", results(&request));
    assert!(system(&request).contains("# Planning"), "{}", system(&request));
    assert!(!offers(&request, "plan_exit"), "nobody can be asked");
}

#[test]
fn after_a_yes_the_build_agent_goes_on_with_the_same_session() {
    let server = ModelServer::start([
        Answer::call("plan_exit", json!({})),
        Answer::text("Waiting."),
        write("result.txt"),
        Answer::text("Built."),
    ]);
    let folder = folder().with_model(&server, Wire::Anthropic);
    let mut arguments = talk("plan").to_vec();
    arguments.insert(1, "--auto");
    let mut run = folder.converse(&arguments);
    run.wait_for("\"inquiry\"");
    run.say(r#"{"type":"reply","id":0,"answers":[["Yes"]]}"#);
    let run = run.wait().expect(0);
    assert!(folder.work().join("result.txt").exists(), "the build agent may write");
    let requests = server.requests();
    assert!(offers(&requests[0], "plan_exit") && !offers(&requests[0], "plan_enter"));
    assert!(!offers(&requests[2], "plan_exit") && offers(&requests[2], "plan_enter"));
    assert!(system(&requests[1]).contains("# Planning"));
    assert!(!system(&requests[2]).contains("# Planning"));
    let said = String::from_utf8_lossy(&requests[2].raw).into_owned();
    assert!(said.contains("is approved") && said.contains("Waiting."), "{said}");
    assert_history_is_valid(&server.last_request());
    assert_eq!(run.lines().iter().filter(|l| l["type"] == "result").count(), 2, "two turns");
    assert_eq!(agents(&folder, "prompt"), ["plan", "build"]);
    assert_eq!(agents(&folder, "brief"), ["plan", "build"]);
    // Whoever takes the session up later goes on building.
    server.then(Answer::text("Still building."));
    folder.tw(&["run", "-c", "more"]).expect(0);
    assert_eq!(agents(&folder, "prompt"), ["plan", "build", "build"]);
    assert_eq!(agents(&folder, "brief"), ["plan", "build"], "frozen once");
}

#[test]
fn after_a_no_the_plan_agent_stays() {
    let server = ModelServer::start([
        Answer::call("plan_exit", json!({})),
        write("result.txt"),
        Answer::text("Refined."),
    ]);
    let folder = folder().with_model(&server, Wire::Anthropic);
    let mut run = folder.converse(&talk("plan"));
    run.wait_for("\"inquiry\"");
    run.say(r#"{"type":"reply","id":0,"answers":[["No"]]}"#);
    run.wait();
    let results = results(&server.last_request());
    assert!(results[0].starts_with("The user dismissed this question"), "{results:?}");
    assert!(!folder.work().join("result.txt").exists());
    assert_eq!(agents(&folder, "prompt"), ["plan"]);
}

#[test]
fn the_build_agent_can_ask_to_plan_first_and_comes_back() {
    let server = ModelServer::start([
        Answer::call("plan_enter", json!({})),
        Answer::text("Waiting."),
        Reply::default()
            .call("write", json!({"filePath": "early.txt", "content": "x"}))
            .call("plan_exit", json!({}))
            .into(),
        Answer::text("Waiting again."),
        Answer::text("Built."),
    ]);
    let folder = folder().with_model(&server, Wire::Anthropic);
    let mut run = folder.converse(&talk("build"));
    run.wait_for("\"inquiry\"");
    run.say(r#"{"type":"reply","id":0,"answers":[["Yes"]]}"#);
    run.wait_for("Switch to the build agent and begin");
    run.say(r#"{"type":"reply","id":1,"answers":[["Yes"]]}"#);
    run.wait();
    assert!(!folder.work().join("early.txt").exists(), "planning changes nothing");
    assert_eq!(agents(&folder, "prompt"), ["build", "plan", "build"]);
    assert_eq!(agents(&folder, "brief"), ["build", "plan", "build"]);
}
