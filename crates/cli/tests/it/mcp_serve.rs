//! `tw mcp serve`: our tools for other programs, over pipes and over HTTP.

use serde_json::{Value, json};
use toolwright_testkit::{Answer, ModelServer, Wire};

use crate::folder;

fn hello() -> String {
    json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18",
        "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}})
    .to_string()
}

fn call(id: u64, tool: &str, arguments: Value) -> String {
    let params = json!({"name": tool, "arguments": arguments});
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}).to_string()
}

#[test]
fn what_only_reads_is_offered_and_an_agent_and_nothing_else() {
    let server = ModelServer::start([Answer::text("The answer is 4.")]);
    let folder = folder().file("a.txt", "one\n").with_model(&server, Wire::Anthropic);
    let mut run = folder.converse(&["mcp", "serve"]);
    run.say(&hello());
    run.say(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    run.say(r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#);
    run.say(&call(3, "read", json!({"filePath": "a.txt"})));
    run.wait_for("1: one");
    run.say(&call(4, "write", json!({"filePath": "b.txt", "content": "x"})));
    run.wait_for("there is no tool");
    run.say(&call(5, "agent", json!({"prompt": "What is 2 + 2?"})));
    run.wait_for("The answer is 4.");
    run.signal("INT");
    let run = run.wait();
    let list: Value = run
        .stdout
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .find(|line| line["id"] == 2)
        .unwrap();
    let names: Vec<_> = list["result"]["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|t| t["name"].as_str().unwrap())
        .collect();
    for name in ["agent", "grep", "read"] {
        assert!(names.contains(&name), "{names:?}");
    }
    for name in ["bash", "edit", "write"] {
        assert!(!names.contains(&name), "{names:?}");
    }
    assert!(!folder.work().join("b.txt").exists());
}

#[test]
fn rules_hold_for_others_too_and_unknown_tools_are_named() {
    let folder = folder();
    let mut run = folder.converse(&["mcp", "serve", "--tools", "bash"]);
    run.say(&hello());
    run.say(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    run.say(&call(2, "bash", json!({"command": "touch made"})));
    run.wait_for("nobody can be asked");
    run.signal("INT");
    run.wait();
    assert!(!folder.work().join("made").exists());
    let run = folder.tw(&["mcp", "serve", "--tools", "nothing"]).expect(2);
    assert!(run.stderr.contains("there is no tool \"nothing\""), "{}", run.stderr);
    let run = folder.tw(&["mcp", "serve", "--http", "0.0.0.0:0"]).expect(1);
    assert!(run.stderr.contains("no password"), "{}", run.stderr);
}

#[test]
fn over_http_we_are_a_server_of_our_own() {
    let serving = folder().file("a.txt", "served\n");
    let child = serving.start(&["mcp", "serve", "--http", "127.0.0.1:0"]);
    let url = child.wait_for_error("http://", "/mcp");
    let config = json!({"mcp": {"own": {"type": "remote", "url": url}}}).to_string();
    let client = folder().user_config(&config);
    let arguments = json!({"filePath": "a.txt"}).to_string();
    let run = client.tw(&["mcp", "call", "own", "read", &arguments, "--auto"]).expect(0);
    assert!(run.stdout.contains("1: served"), "{}", run.stdout);
    child.signal("INT");
    child.wait();
}
