//! Several calls as one, over the real tools.

use std::fs;
use std::sync::Arc;

use serde_json::json;
use toolwright_session::Ending;
use toolwright_tool::{AnyTool, BatchTool};

use crate::kit::{Door, Kit};
use crate::{Bash, BashOptions, Edit, Question, Read, Seen, StaleEdits, Todos, Write};

fn kit(door: Door) -> Kit {
    let tools: [Arc<dyn AnyTool>; 6] = [
        Arc::new(BatchTool),
        Arc::new(Bash::new(BashOptions::default())),
        Arc::new(Edit::new(Seen::new(StaleEdits::default()))),
        Arc::new(Read::default()),
        Arc::new(Write::new(Seen::new(StaleEdits::default()))),
        Arc::new(Question),
    ];
    Kit::behind(door, tools.into_iter().chain(Todos::default().tools()))
}

fn call(tool: &str, parameters: serde_json::Value) -> serde_json::Value {
    json!({"tool": tool, "parameters": parameters})
}

#[tokio::test]
async fn calls_that_conflict_keep_their_order_and_results_stand_in_order() {
    let kit = kit(Door::default());
    let edit = |old: &str, new: &str| {
        call("edit", json!({"filePath": "a.txt", "oldString": old, "newString": new}))
    };
    let outcome = kit
        .ok(
            "batch",
            json!({"tool_calls": [
                call("write", json!({"filePath": "a.txt", "content": "one"})),
                edit("one", "two"),
                edit("two", "three"),
                call("read", json!({"filePath": "a.txt"})),
            ]}),
        )
        .await;
    assert_eq!(fs::read_to_string(kit.folder.path().join("a.txt")).unwrap(), "three");
    assert!(outcome.output.starts_with("All 4 tools executed successfully."));
    let last =
        outcome.output.split("<result call=\"4\" tool=\"read\" status=\"completed\">").nth(1);
    assert!(last.unwrap().contains("1: three"), "{}", outcome.output);
    assert_eq!(outcome.title, "Batch execution (4/4 successful)");
    assert_eq!(outcome.details["tools"], json!(["write", "edit", "edit", "read"]));
}

#[tokio::test]
async fn one_that_fails_is_only_its_own_result() {
    let kit = kit(Door::default());
    fs::write(kit.folder.path().join("there"), "x").unwrap();
    let outcome = kit
        .ok(
            "batch",
            json!({"tool_calls": [
                call("read", json!({"filePath": "missing"})),
                call("no_such_tool", json!({})),
                call("read", json!({"path": 7})),
                call("batch", json!({"tool_calls": []})),
                call("Read", json!({"filePath": "there"})),
            ]}),
        )
        .await;
    assert!(outcome.output.starts_with("Executed 1/5 tools successfully. 4 failed."));
    for part in ["File not found", "There is no tool named \"no_such_tool\"", "1: x"] {
        assert!(outcome.output.contains(part), "{part}: {}", outcome.output);
    }
    assert_eq!(outcome.details["failed"], 4);
    let nested = kit.call(
        "batch",
        json!({"tool_calls": [
            call("batch", json!({"tool_calls": [call("read", json!({"filePath": "there"}))]})),
        ]}),
    );
    let nested = nested.await;
    assert!(nested.output.contains("not allowed in batch. Disallowed tools: batch"));
}

#[tokio::test]
async fn what_all_of_them_touch_is_asked_for_once_and_together() {
    let kit = kit(Door::default());
    fs::write(kit.folder.path().join("r"), "x").unwrap();
    kit.ok(
        "batch",
        json!({"tool_calls": [
            call("read", json!({"filePath": "r"})),
            call("write", json!({"filePath": "w", "content": "x"})),
            call("bash", json!({"command": "make it"})),
        ]}),
    )
    .await;
    let asked: Vec<String> = kit.asked().into_iter().map(|(key, p)| format!("{key} {p}")).collect();
    assert_eq!(asked, ["read r", "edit w", "bash make it"]);
}

#[tokio::test]
async fn one_refusal_refuses_the_whole_and_says_which() {
    let kit = kit(Door { refused: vec!["w".into()], ..Door::default() });
    let outcome = kit
        .call(
            "batch",
            json!({"tool_calls": [
                call("bash", json!({"command": "touch ran"})),
                call("write", json!({"filePath": "w", "content": "x"})),
            ]}),
        )
        .await;
    assert_eq!(outcome.ending, Ending::Denied);
    assert_eq!(outcome.output, "no edit w");
    assert!(!kit.folder.path().join("ran").exists(), "nothing ran");
}

#[tokio::test]
async fn at_most_25_run() {
    let kit = kit(Door::default());
    let calls: Vec<_> = (0..27)
        .map(|n| call("write", json!({"filePath": format!("f{n}"), "content": ""})))
        .collect();
    let outcome = kit.ok("batch", json!({ "tool_calls": calls })).await;
    assert!(outcome.output.starts_with("Executed 25/27 tools successfully. 2 failed."));
    assert_eq!(outcome.output.matches("Maximum of 25 tools allowed in batch").count(), 2);
    assert!(!kit.folder.path().join("f25").exists());
}

#[tokio::test]
async fn wrong_arguments_are_answered_with_the_form() {
    let kit = kit(Door::default());
    for arguments in [json!({"tool_calls": []}), json!({}), json!({"tool_calls": [{"x": 1}]})] {
        let error = kit.error("batch", arguments).await;
        assert!(error.starts_with("Invalid parameters for tool 'batch':\n  - "), "{error}");
        assert!(error.contains("Expected payload format:\n  {\"tool_calls\": ["), "{error}");
    }
}

#[tokio::test]
async fn a_question_in_a_batch_reaches_the_person() {
    let door = Door {
        replies: std::sync::Mutex::new(vec![Ok(vec![vec!["yes".into()]])]),
        ..Door::default()
    };
    let kit = kit(door);
    let ask = json!({"questions": [{"question": "Go?", "header": "", "options": []}]});
    let outcome = kit.ok("batch", json!({"tool_calls": [call("question", ask)]})).await;
    assert!(outcome.output.contains("\"Go?\"=\"yes\""), "{}", outcome.output);
}
