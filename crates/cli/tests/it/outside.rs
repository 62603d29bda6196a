//! What comes from outside the workspace: pages, searches, skills.

use serde_json::json;
use toolwright_testkit::{Answer, Captured, ModelServer, Wire};

use crate::{folder, results};

const RUN: [&str; 5] = ["run", "--auto", "-m", "anthropic/m", "go"];

fn offered(request: &Captured, name: &str) -> Option<String> {
    let tools = request.body["tools"].as_array().cloned().unwrap_or_default();
    let tool = tools.iter().find(|tool| tool["name"] == name)?;
    Some(tool["description"].as_str().unwrap().to_owned())
}

#[test]
fn this_machine_is_not_fetched_and_the_settings_can_allow_it() {
    let other = ModelServer::start([]);
    let fetch = || Answer::call("webfetch", json!({"url": other.url()}));
    let server = ModelServer::start([fetch(), Answer::text("No."), fetch(), Answer::text("Yes.")]);
    let folder = folder().with_model(&server, Wire::Anthropic);
    folder.tw(&RUN).expect(0);
    assert!(results(&server.last_request())[0].contains("webfetch.allow_private"));
    // A project that is not trusted cannot allow it for itself.
    folder.write("toolwright.json", r#"{"webfetch": {"allow_private": true}}"#);
    let untrusted = folder.tw(&RUN).expect(0);
    assert!(untrusted.stderr.contains("webfetch"), "{}", untrusted.stderr);
    assert!(results(&server.last_request())[0].contains("webfetch.allow_private"));
    server.then(fetch());
    server.then(Answer::text("Now."));
    folder.tw(&["run", "--trust", "--auto", "-m", "anthropic/m", "go"]).expect(0);
    let result = &results(&server.last_request())[0];
    assert!(!result.contains("allow_private"), "{result}");
}

#[test]
fn fetching_asks_and_nobody_is_there() {
    let server = ModelServer::start([
        Answer::call("webfetch", json!({"url": "https://example.org/"})),
        Answer::text("Not allowed."),
    ]);
    let folder = folder().with_model(&server, Wire::Anthropic);
    folder.tw(&["run", "-m", "anthropic/m", "go"]);
    let result = &results(&server.last_request())[0];
    assert!(result.contains("fetch https://example.org/ needs a person's approval"), "{result}");
}

#[test]
fn searching_is_offered_where_there_is_a_key() {
    let search = || Answer::call("websearch", json!({"query": "rust"}));
    let server = ModelServer::start([search(), Answer::text("Off.")]);
    let without = folder().with_model(&server, Wire::Anthropic);
    without.tw(&RUN).expect(0);
    assert_eq!(offered(&server.last_request(), "websearch"), None);
    assert_eq!(offered(&server.last_request(), "codesearch"), None);
    assert!(results(&server.last_request())[0].contains("EXA_API_KEY"));
    let server = ModelServer::start([Answer::text("Hello.")]);
    let with = folder().with_model(&server, Wire::Anthropic).env("BRAVE_API_KEY", "a-brave-key");
    with.tw(&RUN).expect(0);
    assert!(offered(&server.last_request(), "websearch").unwrap().contains("it is 2"));
    assert!(offered(&server.last_request(), "codesearch").is_some());
}

#[test]
fn a_skill_of_the_project_is_listed_and_loaded() {
    let server = ModelServer::start([
        Answer::call("skill", json!({"name": "release"})),
        Answer::text("Loaded."),
    ]);
    let head = "---\nname: release\ndescription: How releases are made here.\n---\nTag, then push.";
    let folder = folder()
        .with_model(&server, Wire::Anthropic)
        .file(".claude/skills/release/SKILL.md", head)
        .file(".claude/skills/release/check.sh", "exit 0")
        .file(".claude/skills/bad/SKILL.md", "---\nname: Bad Name\n---\n");
    let run = folder.tw(&["run", "-m", "anthropic/m", "go"]).expect(0);
    assert!(run.stderr.contains("Bad Name"), "{}", run.stderr);
    let request = server.last_request();
    let listed = offered(&request, "skill").unwrap();
    assert!(listed.contains("release: How releases are made here."), "{listed}");
    let result = &results(&request)[0];
    assert!(result.contains("Tag, then push.") && result.contains("check.sh</file>"), "{result}");
}

#[test]
fn without_skills_and_with_all_of_them_denied_there_is_no_such_tool() {
    let server = ModelServer::start([Answer::text("Hi."), Answer::text("Hi.")]);
    let folder = folder().with_model(&server, Wire::Anthropic);
    folder.tw(&RUN).expect(0);
    assert_eq!(offered(&server.last_request(), "skill"), None);
    folder.write(".claude/skills/a/SKILL.md", "---\nname: a\ndescription: A.\n---\nA");
    folder.write("toolwright.json", r#"{"permission": {"skill": {"a": "deny"}}}"#);
    folder.tw(&RUN).expect(0);
    assert_eq!(offered(&server.last_request(), "skill"), None);
}

#[test]
fn several_calls_as_one_are_offered_where_that_is_switched_on() {
    let calls = json!([
        {"tool": "todowrite", "parameters": {"todos": [{"content": "in a batch"}]}},
        {"tool": "read", "parameters": {"filePath": "a.txt"}},
    ]);
    let batch = || Answer::call("batch", json!({ "tool_calls": calls }));
    let server = ModelServer::start([batch(), Answer::text("None.")]);
    let folder = folder().with_model(&server, Wire::Anthropic).file("a.txt", "content of a");
    folder.tw(&RUN).expect(0);
    assert_eq!(offered(&server.last_request(), "batch"), None);
    assert!(results(&server.last_request())[0].contains("There is no tool named \"batch\""));
    for answer in
        [batch(), Answer::text("Read."), Answer::call("todoread", json!({})), Answer::text("Kept.")]
    {
        server.then(answer);
    }
    folder.write("toolwright.json", r#"{"experimental": {"batch_tool": true}}"#);
    folder.tw(&["run", "--trust", "-m", "anthropic/m", "go"]).expect(0);
    assert!(offered(&server.last_request(), "batch").is_some());
    assert!(results(&server.last_request())[0].contains("1: content of a"));
    folder.tw(&["run", "--trust", "-c", "and the list?"]).expect(0);
    let list = &results(&server.last_request())[1];
    assert!(list.contains("in a batch"), "{list}");
}
