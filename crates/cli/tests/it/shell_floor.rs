//! What no mode allows, and what needs no question, through the built binary.

use serde_json::{Value, json};
use toolwright_testkit::{Answer, ModelServer, Wire};

use crate::{folder, results};

#[test]
fn not_even_auto_lets_a_tool_change_our_settings_or_delete_the_workspace() {
    let folder = folder().user_config(r#"{"permission":"allow"}"#).file("a.txt", "a");
    let settings = folder.root().join("home/.config/toolwright/toolwright.json");
    let path = settings.display().to_string();
    let patch = format!("*** Begin Patch\n*** Delete File: {path}\n*** End Patch");
    let edit = json!({"filePath": path, "oldString": "allow", "newString": "deny"});
    let calls = [
        Answer::call("write", json!({"filePath": path, "content": "{}"})),
        Answer::call("edit", edit),
        Answer::call("apply_patch", json!({"patchText": patch})),
        Answer::call("bash", json!({"command": "echo {} > ~/.config/toolwright/toolwright.json"})),
        Answer::call("bash", json!({"command": "rm -rf \"$PWD\""})),
        Answer::call("bash", json!({"command": "cd .. && rm -rf *"})),
        Answer::text("I could not."),
    ];
    let count = calls.len() - 1;
    let server = ModelServer::start(calls);
    let folder = folder.with_model(&server, Wire::Anthropic);
    folder.tw(&["run", "--auto", "-m", "anthropic/m", "go"]);
    let results = results(&server.last_request());
    assert_eq!(results.len(), count);
    for result in results {
        assert!(result.contains("never allowed"), "{result}");
    }
    assert_eq!(std::fs::read_to_string(settings).unwrap(), r#"{"permission":"allow"}"#);
    assert_eq!(folder.read("a.txt"), "a");
}

#[test]
fn a_check_explains_what_is_allowed_asked_and_refused() {
    let folder = folder().file("a.txt", "a").file("src/b.txt", "b");
    for (command, decision, why) in [
        ("cat a.txt | head -3", "allow", "only reads"),
        ("cd src && cat *.txt", "allow", "only reads"),
        ("cat ../x", "ask", "external_directory"),
        ("rg --pre ./x a", "ask", "bash"),
        ("grep -r x .", "allow", "only reads"),
        ("rm -rf ~", "deny", "deletes"),
        ("rm >/dev/null -rf ~", "deny", "deletes"),
        ("cat <<E > ~/.config/opencode/opencode.json\n{}\nE", "deny", "settings"),
        (":(){ :|:& };:", "deny", "without end"),
        ("echo x > ~/.config/opencode/opencode.json", "deny", "settings"),
    ] {
        let run = folder.tw(&["permission", "check", "--json", command]).expect(0);
        let told: Value = serde_json::from_str(&run.stdout).unwrap();
        assert_eq!(told["decision"], decision, "{command}: {told}");
        assert!(run.stdout.contains(why), "{command}: {told}");
    }
}
