//! Shapes that Claude Code's files have had over its versions.

use std::fs;

use serde_json::{Value, json};

use super::tests::{lines, said, steps, taken, taken_from};
use super::*;
use crate::step::Ending;

const TIME: &str = "2026-01-02T03:04:05.000Z";

fn line(uuid: &str, parent: &str, kind: &str, rest: Value) -> Value {
    let parent = if parent.is_empty() { Value::Null } else { json!(parent) };
    let mut line = json!({ "uuid": uuid, "parentUuid": parent, "type": kind, "sessionId": "s-1",
        "cwd": "/elsewhere", "isSidechain": false, "timestamp": TIME });
    for (name, value) in rest.as_object().unwrap() {
        line[name] = value.clone();
    }
    line
}

fn user(uuid: &str, parent: &str, content: Value) -> Value {
    line(uuid, parent, "user", json!({ "message": { "role": "user", "content": content } }))
}

fn answer(uuid: &str, parent: &str, part: Value) -> Value {
    let message = json!({ "id": format!("msg-{uuid}"), "role": "assistant", "model": "claude-x",
        "content": [part], "stop_reason": "end_turn", "usage": { "input_tokens": 1, "output_tokens": 2 } });
    line(uuid, parent, "assistant", json!({ "message": message }))
}

fn text(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}

fn call(id: &str, name: &str, input: Value) -> Value {
    json!({ "type": "tool_use", "id": id, "name": name, "input": input })
}

fn result(uuid: &str, parent: &str, id: &str, content: Value, told: Value) -> Value {
    let part = json!({ "type": "tool_result", "tool_use_id": id, "content": content });
    let mut line = user(uuid, parent, json!([part]));
    line["toolUseResult"] = told;
    line
}

fn attachment(uuid: &str, parent: &str, attachment: Value) -> Value {
    line(uuid, parent, "attachment", json!({ "attachment": attachment }))
}

#[test]
fn what_the_program_wrote_in_a_persons_name_is_told_from_what_the_person_said() {
    let mut caveat =
        user("c", "a1", json!("<local-command-caveat>Do not answer</local-command-caveat>"));
    caveat["isMeta"] = json!(true);
    let mut expanded = user("k2", "k", json!("Review what changed."));
    expanded["isMeta"] = json!(true);
    let bytes = lines(&[
        user("u", "", json!("Hello")),
        answer("a1", "u", text("Hi.")),
        caveat,
        user(
            "m",
            "c",
            json!(
                "<command-name>/model</command-name>\n<command-message>model</command-message>\n<command-args></command-args>"
            ),
        ),
        user(
            "m2",
            "m",
            json!(
                "<local-command-stdout>\u{1b}]0;title\u{7}Set model to \u{1b}[1mx\u{1b}[22m</local-command-stdout>"
            ),
        ),
        user("b", "m2", json!("<bash-input>ls</bash-input>")),
        user("b2", "b", json!("<bash-stdout>a.txt</bash-stdout><bash-stderr></bash-stderr>")),
        user(
            "k",
            "b2",
            json!(
                "<command-message>review is running</command-message>\n<command-name>/review</command-name>\n<command-args>the last commit</command-args>"
            ),
        ),
        expanded,
        answer("a2", "k2", text("Reviewed.")),
        user("i", "a2", json!([{ "type": "text", "text": "[Request interrupted by user]" }])),
        user(
            "p",
            "i",
            json!([{ "type": "text", "text": "<system-reminder>A hook says so.</system-reminder>" },
                              { "type": "text", "text": "Go on" }]),
        ),
        answer("a3", "p", text("Done.")),
    ]);
    let taken = taken(&bytes);
    assert_eq!(
        said(&taken.session),
        [
            "> Hello",
            "Hi.",
            "# The user ran /model",
            "# Set model to x",
            "# The user ran this command:\n$ ls",
            "# a.txt",
            "> /review the last commit",
            "# Review what changed.",
            "Reviewed.",
            "# [Request interrupted by user]",
            "> Go on",
            "# <system-reminder>A hook says so.</system-reminder>",
            "Done.",
        ]
    );
    assert_eq!(taken.session.title(), "Hello");
}

#[test]
fn what_was_said_while_it_worked_and_files_beside_a_prompt_are_taken() {
    let bytes = lines(&[
        json!({ "type": "queue-operation", "operation": "enqueue", "content": "And the tests" }),
        user("u", "", json!("Look at @a.txt")),
        attachment(
            "f",
            "u",
            json!({ "type": "file", "filename": "/w/a.txt", "displayPath": "a.txt",
            "content": { "type": "text", "file": { "filePath": "/w/a.txt", "content": "one\n" } } }),
        ),
        attachment("d", "f", json!({ "type": "deferred_tools_delta", "addedNames": ["X"] })),
        answer("a1", "d", call("t1", "Read", json!({ "file_path": "a.txt" }))),
        result(
            "r1",
            "a1",
            "t1",
            json!("one"),
            json!({ "type": "text", "file": { "content": "one" } }),
        ),
        attachment(
            "q",
            "r1",
            json!({ "type": "queued_command", "commandMode": "prompt",
            "prompt": "And the tests", "origin": { "kind": "human" } }),
        ),
        attachment(
            "n",
            "q",
            json!({ "type": "queued_command", "commandMode": "task-notification",
            "prompt": "<task-notification>over</task-notification>" }),
        ),
        answer("a2", "n", text("Both.")),
    ]);
    let taken = taken(&bytes);
    assert_eq!(
        said(&taken.session),
        [
            "> Look at @a.txt",
            "# The file a.txt:\none\n",
            "+ Read {\"file_path\":\"a.txt\"} = one",
            "> And the tests",
            "# <task-notification>over</task-notification>",
            "Both.",
        ]
    );
    assert_eq!(taken.notices, ["left out: 1 attachments with Claude Code's own surroundings"]);
}

#[test]
fn an_edit_shows_its_change_and_a_refusal_is_one() {
    let patch = json!([{ "oldStart": 1, "oldLines": 1, "newStart": 1, "newLines": 1, "lines": ["-a", "+b"] }]);
    let mut refused = result("r2", "a2", "t2", json!("No."), json!("User rejected tool use"));
    refused["message"]["content"][0]["is_error"] = json!(true);
    let bytes = lines(&[
        user("u", "", json!("Edit")),
        answer("a1", "u", call("t1", "Edit", json!({ "file_path": "f" }))),
        result(
            "r1",
            "a1",
            "t1",
            json!("Edited."),
            json!({ "filePath": "f", "originalFile": "a\n", "structuredPatch": patch }),
        ),
        answer("a2", "r1", call("t2", "Bash", json!({ "command": "rm f" }))),
        refused,
        answer("a3", "r2", call("t3", "Write", json!({ "file_path": "g", "content": "x" }))),
        result(
            "r3",
            "a3",
            "t3",
            json!("Written."),
            json!({ "type": "create", "filePath": "g", "content": "x\ny\n", "structuredPatch": [] }),
        ),
    ]);
    let taken = taken(&bytes);
    let steps = steps(&taken.session);
    let outcome = |at: usize| steps[at].calls().next().unwrap().outcome().unwrap();
    assert_eq!(
        outcome(0).details,
        json!({ "filePath": "f", "diff": "--- f\n+++ f\n@@ -1,1 +1,1 @@\n-a\n+b\n" })
    );
    assert_eq!(outcome(1).ending, Ending::Denied);
    assert_eq!(outcome(2).details["diff"], "--- g\n+++ g\n@@ -0,0 +1,2 @@\n+x\n+y\n");
}

#[test]
fn notes_that_leave_the_last_messages_as_they_are_keep_them() {
    let mut notes = user("n", "b", json!("Notes."));
    notes["isCompactSummary"] = json!(true);
    let bytes = lines(&[
        user("u", "", json!("One")),
        answer("a1", "u", text("First.")),
        user("u2", "a1", json!("Two")),
        answer("a2", "u2", text("Second.")),
        json!({ "uuid": "b", "parentUuid": null, "logicalParentUuid": "a2", "type": "compact_boundary",
                "timestamp": TIME, "isSidechain": false,
                "compactMetadata": { "trigger": "auto", "preservedSegment": { "headUuid": "u2", "anchorUuid": "n", "tailUuid": "a2" } } }),
        notes,
        answer("a3", "n", text("Third.")),
    ]);
    let taken = taken(&bytes);
    assert_eq!(said(&taken.session), ["> One", "First.", "> Two", "Second.", "Third."]);
    let compaction = taken.session.compaction().unwrap();
    assert_eq!((compaction.summary.as_str(), compaction.keep_from), ("Notes.", 2));
}

#[test]
fn thinking_that_is_not_shown_and_lines_that_are_repeated_leave_no_trace() {
    let bytes = lines(&[
        user("u", "", json!("One")),
        user("u", "", json!("One")),
        answer("a1", "u", json!({ "type": "thinking", "thinking": "", "signature": "x" })),
        answer("a2", "a1", text("First.")),
        line(
            "e",
            "a2",
            "assistant",
            json!({ "message": { "id": "x", "role": "assistant", "model": "<synthetic>",
            "content": [{ "type": "text", "text": "No response requested." }] } }),
        ),
        json!({ "uuid": "s", "parentUuid": "e", "type": "system", "subtype": "turn_duration", "durationMs": 5 }),
        user("u2", "s", json!("Left")),
        json!({ "type": "summary", "summary": "Another session", "leafUuid": "elsewhere" }),
        json!({ "type": "last-prompt", "lastPrompt": "One", "leafUuid": "e" }),
    ]);
    let taken = taken(&bytes);
    assert_eq!(said(&taken.session), ["> One", "First."], "the program says where it stands");
    assert_eq!(taken.session.title(), "One", "a name of another session is none");
}

/// Files as versions of the program laid them down: beside the session, and in a folder of its name.
#[test]
fn the_files_of_agents_go_with_the_session_that_they_worked_for() {
    let worker = |agent: &str, said: &str| {
        let mut asked = user("w1", "", json!(said));
        let mut told = answer("w2", "w1", text("Counted."));
        for line in [&mut asked, &mut told] {
            line["isSidechain"] = json!(true);
            line["agentId"] = json!(agent);
        }
        lines(&[asked, told])
    };
    let main = lines(&[
        user("u", "", json!("Count")),
        answer("a1", "u", call("t1", "Task", json!({ "prompt": "Count words" }))),
        result(
            "r1",
            "a1",
            "t1",
            json!([{ "type": "text", "text": "11" }]),
            json!({ "agentId": "one" }),
        ),
        answer("a2", "r1", call("t2", "Agent", json!({ "prompt": "Count lines" }))),
        result("r2", "a2", "t2", json!("2"), Value::Null),
        answer("a3", "r2", text("Done.")),
    ]);
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::create_dir_all(at("s-1/subagents")).unwrap();
    fs::write(at("s-1.jsonl"), &main).unwrap();
    fs::write(at("s-1/subagents/agent-one.jsonl"), worker("one", "Count words")).unwrap();
    fs::write(at("agent-two.jsonl"), worker("two", "Count lines")).unwrap();
    fs::write(at("s-1/notes.json"), "{}").unwrap();
    for path in [folder.path().to_owned(), at("s-1.jsonl")] {
        let sources = Source::find(&path).unwrap();
        let found: Vec<Foreign> = sources.into_iter().flat_map(Source::read).collect();
        assert_eq!(found.len(), 1, "{path:?}");
        let taken = taken_from(&found[0]);
        let children = taken.store.children(&taken.session.header);
        assert_eq!(children.len(), 2);
        let named = steps(&taken.session).into_iter().flat_map(|step| step.calls());
        let named: Vec<Value> =
            named.map(|c| c.outcome().unwrap().details["sessionId"].clone()).collect();
        for child in &children {
            assert!(named.contains(&json!(child.session.header.session)), "{named:?}");
        }
    }
    // By itself it is a session too, and not the one that it worked for.
    let alone = read(&worker("one", "Count words")).unwrap();
    assert_eq!(alone.id, "one");
}

#[test]
fn a_first_line_without_end_is_not_read_to_learn_whose_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let work = |id: &str, prompt: &str| {
        let mut asked = user(id, "", json!(prompt));
        asked["isSidechain"] = json!(true);
        asked["agentId"] = json!(id);
        fs::write(at(&format!("agent-{id}.jsonl")), lines(&[asked])).unwrap();
    };
    fs::write(at("s-1.jsonl"), lines(&[user("u", "", json!("Count"))])).unwrap();
    work("one", "Count words");
    work("two", &"words ".repeat(3 << 20));
    let sources = Source::find(folder.path()).unwrap();
    let names: Vec<_> = sources.iter().map(|source| source.name.clone()).collect();
    assert_eq!(names, [at("s-1.jsonl"), at("agent-two.jsonl")]);
}

#[test]
fn a_session_that_goes_on_in_another_file_has_that_files_id() {
    let mut later = answer("a", "u", text("Hi."));
    later["sessionId"] = json!("s-2");
    let foreign = read(&lines(&[user("u", "", json!("Hello")), later])).unwrap();
    assert_eq!(foreign.id, "s-2");
}

#[test]
fn agents_in_the_same_file_are_taken_wherever_the_program_says_it_stands() {
    let mut asked = user("w1", "", json!("Count words"));
    let mut told = answer("w2", "w1", text("Eleven."));
    for line in [&mut asked, &mut told] {
        line["isSidechain"] = json!(true);
    }
    let taken = taken(&lines(&[
        user("u", "", json!("Count")),
        answer("a1", "u", call("t1", "Task", json!({ "prompt": "Count words" }))),
        asked,
        told,
        result("r1", "a1", "t1", json!("11"), Value::Null),
        answer("a2", "r1", text("Done.")),
        json!({ "type": "last-prompt", "lastPrompt": "Count", "leafUuid": "a2" }),
    ]));
    assert_eq!(said(&taken.session).last().unwrap(), "Done.");
    let children = taken.store.children(&taken.session.header);
    assert_eq!(said(&children[0].session), ["> Count words", "Eleven."]);
    let call = steps(&taken.session)[0].calls().next().unwrap();
    let named = &call.outcome().unwrap().details["sessionId"];
    assert_eq!(named, &json!(children[0].session.header.session));
}
