use serde_json::{Value, json};

use crate::folder;

#[test]
fn the_tools_are_listed_with_their_schemas() {
    let folder = folder();
    let list: Value =
        serde_json::from_str(&folder.tw(&["tools", "--json"]).expect(0).stdout).unwrap();
    let names: Vec<&str> =
        list.as_array().unwrap().iter().map(|t| t["name"].as_str().unwrap()).collect();
    for name in [
        "apply_patch",
        "bash",
        "bash_input",
        "bash_kill",
        "bash_output",
        "edit",
        "glob",
        "grep",
        "list",
        "multiedit",
        "question",
        "read",
        "todowrite",
        "webfetch",
        "write",
    ] {
        assert!(names.contains(&name), "{name}: {names:?}");
    }
    assert!(names.is_sorted(), "{names:?}");
    let tool = |name: &str| list.as_array().unwrap().iter().find(|t| t["name"] == name).unwrap();
    let write = &tool("write")["parameters"];
    assert_eq!(write["required"], json!(["filePath", "content"]));
    let edit = &tool("edit")["parameters"];
    // One edit, or a list of them.
    assert_eq!(edit["required"], json!(["filePath"]));
    assert_eq!(edit["properties"]["oldString"]["type"], "string");
    assert_eq!(edit["properties"]["edits"]["type"], "array");
    assert_eq!(edit["properties"]["replaceAll"]["type"], "boolean");
    let text = folder.tw(&["tools"]).expect(0).stdout;
    assert!(text.contains("· filePath (string)"), "{text}");
}

#[test]
fn one_call_goes_through_the_whole_pipeline_with_its_status() {
    let folder = folder().file("a.txt", "hello\n");
    let call = |arguments: &[&str]| {
        let mut all = vec!["tools", "call"];
        all.extend(arguments);
        folder.tw(&all)
    };
    assert!(call(&["read", r#"{"filePath":"a.txt"}"#]).expect(0).stdout.contains("1: hello"));
    assert!(
        call(&["READ", r#"{"filePath":"a.txt",}"#]).expect(0).stdout.contains("Note on your call")
    );
    assert!(call(&["read", "{}"]).expect(1).stdout.contains("invalid arguments"));
    assert!(call(&["nothing", "{}"]).expect(1).stdout.contains("no tool named"));
    let write = r#"{"filePath":"b.txt","content":"x"}"#;
    assert!(call(&["write", write]).expect(3).stdout.contains("Permission denied"));
    let outcome: Value =
        serde_json::from_str(&call(&["write", write, "--auto", "--json"]).expect(0).stdout)
            .unwrap();
    assert_eq!(outcome["ending"], "completed");
    assert_eq!(folder.read("b.txt"), "x");
}

#[test]
fn arguments_may_come_on_standard_input() {
    use std::io::Write;
    let folder = folder();
    let mut command = folder.command(&["tools", "call", "bash", "-", "--auto"]);
    let mut child = command.stdin(std::process::Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(br#"{"command":"echo from stdin"}"#).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "from stdin\n[exit code 0]\n");
}

#[test]
fn debug_decode_prints_what_a_body_means() {
    let folder = folder()
        .file(
            "chat.sse",
            "data: {\"choices\":[{\"delta\":{\"content\":\"hi\"},\"finish_reason\":\"stop\"}]}\n\n",
        )
        .file("error.json", "{\"error\":{\"message\":\"invalid x-api-key\"}}");
    let run = folder.tw(&["debug", "decode", "--wire", "openai-chat", "chat.sse"]).expect(0);
    let summary: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!((&summary["text"], &summary["outcome"]), (&json!("hi"), &json!("complete")));
    let run = folder
        .tw(&["debug", "decode", "--wire", "anthropic-messages", "--status", "401", "error.json"])
        .expect(0);
    let summary: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(summary["error_class"], "auth");
    let run = folder.tw(&["debug", "decode", "--wire", "morse", "chat.sse"]).expect(2);
    assert!(run.stderr.contains("known: anthropic-messages"), "{}", run.stderr);
}
