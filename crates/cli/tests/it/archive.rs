//! Sessions that nobody works on: found, listed, put away, removed, written out and taken in.

use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};
use toolwright_testkit::{Answer, Folder, ModelServer, Reply, Wire};

use crate::{assert_history_is_valid, folder, results};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

fn list(folder: &Folder, more: &[&str]) -> Vec<Value> {
    let arguments: Vec<&str> = ["sessions", "--json"].iter().chain(more).copied().collect();
    serde_json::from_str(&folder.tw(&arguments).expect(0).stdout).unwrap()
}

fn first_id(folder: &Folder) -> String {
    list(folder, &[])[0]["id"].as_str().unwrap().to_owned()
}

fn index(folder: &Folder) -> PathBuf {
    folder.root().join("data/toolwright/sessions/index.sqlite")
}

/// A turn with a call, an edit and an answer.
fn worked(folder: &Folder, server: &ModelServer, prompt: &str) {
    server.then(
        Reply::default()
            .say("Let me look.")
            .call("write", json!({"filePath": "a.txt", "content": "one\n"})),
    );
    server.then(Answer::text("The zebra is **striped**."));
    folder.tw(&["run", "--auto", "-m", "anthropic/m", prompt]).expect(0);
}

#[test]
fn what_was_said_is_found_and_an_index_that_is_gone_or_broken_is_made_again() {
    let server = ModelServer::start([]);
    let folder = folder().with_model(&server, Wire::Anthropic);
    // Nothing is due: housekeeping brings the index up to date once a day.
    std::fs::create_dir_all(index(&folder).parent().unwrap()).unwrap();
    std::fs::write(index(&folder).with_file_name(".last-sweep"), "").unwrap();
    worked(&folder, &server, "Look around");
    assert!(!index(&folder).exists(), "a run neither needs nor makes it");
    let found = folder.tw(&["sessions", "--search", "zebra"]).expect(0).stdout;
    assert!(found.contains("Look around") && found.contains("The zebra is"), "{found}");
    assert!(index(&folder).is_file());
    let by_path = list(&folder, &["--search", "a.txt"]);
    assert_eq!(by_path.len(), 1);
    assert!(by_path[0]["snippet"].as_str().unwrap().contains("a.txt"), "{by_path:?}");
    let row = &list(&folder, &[])[0];
    assert_eq!((&row["messages"], &row["models"]), (&json!(3), &json!(["anthropic/m"])));

    std::fs::write(index(&folder), "no database at all".repeat(500)).unwrap();
    assert_eq!(folder.tw(&["sessions", "--search", "zebra"]).expect(0).stdout, found);
    let run = folder.tw(&["sessions", "reindex"]).expect(0);
    assert!(run.stderr.contains("Read 1 session."), "{}", run.stderr);
    for end in ["", "-wal", "-shm"] {
        std::fs::remove_file(format!("{}{end}", index(&folder).display())).ok();
    }
    std::fs::create_dir(index(&folder)).unwrap();
    assert_eq!(folder.tw(&["sessions", "--search", "zebra"]).expect(0).stdout, found);
    worked(&folder, &server, "Again");
    assert_eq!(list(&folder, &["--limit", "1"])[0]["title"], "Again");
}

#[test]
fn after_a_kill_the_index_tells_what_the_log_tells() {
    let server = ModelServer::start([]);
    let folder = folder().with_model(&server, Wire::Anthropic);
    worked(&folder, &server, "One");
    list(&folder, &[]);
    server.then(Reply::default().say("Half an answer").hold_after_text());
    let child = folder.start(&["run", "-c", "Two"]);
    child.wait_for("Half an answer");
    let during = list(&folder, &[]);
    child.kill();
    let after = list(&folder, &[]);
    folder.tw(&["sessions", "reindex"]).expect(0);
    assert_eq!(after, list(&folder, &[]));
    assert_eq!((&during[0]["messages"], &after[0]["messages"]), (&json!(4), &json!(4)));
    assert_eq!(list(&folder, &["--search", "Two"]).len(), 1);
}

#[test]
fn sessions_are_archived_removed_and_pruned_by_a_beginning_of_their_id() {
    let server = ModelServer::start([]);
    let folder = folder().with_model(&server, Wire::Anthropic);
    worked(&folder, &server, "Keep");
    let kept = first_id(&folder);
    worked(&folder, &server, "Remove");
    let removed = first_id(&folder);

    folder.tw(&["sessions", "archive", &kept]).expect(0);
    assert_eq!(list(&folder, &[]).len(), 1);
    assert_eq!(list(&folder, &["--archived"])[0]["id"], kept.as_str());
    folder.tw(&["sessions", "unarchive", &kept]).expect(0);
    assert_eq!(list(&folder, &[])[0]["id"], removed.as_str(), "it was not used");

    assert!(folder.tw(&["sessions", "delete", "ses_"]).expect(2).stderr.contains("fits several"));
    folder.tw(&["sessions", "delete", "nothing"]).expect(2);
    let beginning = &removed[..removed.len() - 2];
    folder.tw(&["sessions", "delete", beginning]).expect(0);
    assert_eq!(list(&folder, &[]).len(), 1);
    assert_eq!(folder.session_files().len(), 1);

    // One that is in use stays.
    server.then(Reply::default().say("Busy").hold_after_text());
    let child = folder.start(&["run", "-s", &kept, "More"]);
    child.wait_for("Busy");
    let refused = folder.tw(&["sessions", "delete", &kept]).expect(1);
    assert!(refused.stderr.contains("in use"), "{}", refused.stderr);
    child.kill();

    let dry = folder.tw(&["sessions", "prune", "--older-than", "0h", "--dry-run"]).expect(0);
    assert!(dry.stderr.contains("Would remove") && dry.stderr.contains(&kept), "{}", dry.stderr);
    assert!(folder.tw(&["sessions", "prune"]).expect(0).stderr.contains("No session is that old"));
    assert_eq!(folder.session_files().len(), 1);
    folder.tw(&["sessions", "prune", "--older-than", "soon"]).expect(2);
    folder.tw(&["sessions", "prune", "--older-than", "0h"]).expect(0);
    assert_eq!(folder.session_files().len(), 0);
}

#[test]
fn a_session_of_last_week_is_compressed_beside_the_work_and_goes_on_as_it_was() {
    let server = ModelServer::start([]);
    let folder = folder().with_model(&server, Wire::Anthropic);
    worked(&folder, &server, "Old");
    let old = folder.session_files().pop().unwrap();
    let id = first_id(&folder);
    let file = std::fs::File::options().append(true).open(&old).unwrap();
    file.set_modified(SystemTime::now() - 8 * DAY).unwrap();
    drop(file);
    std::fs::remove_file(folder.root().join("data/toolwright/sessions/.last-sweep")).unwrap();
    let command = format!("while [ -e '{}' ]; do sleep 0.02; done; echo gone", old.display());
    server.then(Answer::call("bash", json!({ "command": command, "timeout": 20_000 })));
    server.then(Answer::text("ok"));
    folder.tw(&["run", "--auto", "-m", "anthropic/m", "New"]).expect(0);
    assert!(results(&server.last_request())[0].starts_with("gone"));
    assert!(old.with_extension("jsonl.zst").is_file());

    assert!(folder.tw(&["show", &id]).expect(0).stdout.contains("striped"));
    assert_eq!(list(&folder, &["--search", "Old"]).len(), 1);
    assert!(folder.tw(&["export", &id]).expect(0).stdout.contains("striped"));
    server.then(Answer::text("Went on."));
    folder.tw(&["run", "-s", &id, "Go on"]).expect(0);
    assert_history_is_valid(&server.last_request());
    assert_eq!(server.last_request().messages().len(), 5);
    assert!(old.is_file() && !old.with_extension("jsonl.zst").exists());
}

#[test]
fn a_session_is_written_out_with_the_work_of_others_and_taken_in_again() {
    let server = ModelServer::answering(|request| {
        let said = request.messages()[0]["content"].to_string();
        match request.messages().len() {
            _ if said.contains("a piece") => Answer::text("The piece is </script> done."),
            1 => Answer::call(
                "task",
                json!({"description": "look", "prompt": "a piece", "subagent_type": "general"}),
            ),
            3 => Answer::text("All done."),
            _ => Answer::text("Went on."),
        }
    });
    let folder = folder().with_model(&server, Wire::Anthropic);
    folder.tw(&["run", "-m", "anthropic/m", "Give it away"]).expect(0);
    let form: Value = serde_json::from_str(&folder.tw(&["export"]).expect(0).stdout).unwrap();
    assert_eq!(form["messages"].as_array().unwrap().len(), 3);
    assert_eq!(form["children"].as_array().unwrap().len(), 1);

    let wrote = folder.tw(&["export", "--format", "html", "-o", "s.html"]).expect(0);
    assert!(wrote.stdout.is_empty() && wrote.stderr.contains("s.html"));
    let page = folder.read("s.html");
    assert!(page.contains("Work of an agent") && page.contains("&lt;/script&gt;"), "{page}");
    assert!(!page.contains("<script"));
    let text = folder.tw(&["export", "--format", "markdown"]).expect(0).stdout;
    assert!(text.contains("# Give it away") && text.contains("The piece is"), "{text}");
    let clean = folder.tw(&["export", "--sanitize"]).expect(0).stdout;
    assert!(!clean.contains("piece") && clean.contains("[redacted:"), "{clean}");
    folder.tw(&["export", "ses_unknown"]).expect(2);
    folder.tw(&["export", "-o", "no/such/folder/x.json"]).expect(1);

    folder.tw(&["export", "-o", "s.json"]).expect(0);
    let taken = folder.tw(&["import", "--json", "s.json"]).expect(0);
    let taken: Value = serde_json::from_str(&taken.stdout).unwrap();
    assert_eq!((&taken[0]["calls"], &taken[0]["children"]), (&json!(1), &json!(1)));
    let again = folder.tw(&["import", "s.json"]).expect(0);
    assert!(again.stderr.contains("is here already"), "{}", again.stderr);
    assert_eq!(list(&folder, &[]).len(), 2);
    let id = taken[0]["id"].as_str().unwrap();
    folder.tw(&["run", "-s", id, "Go on"]).expect(0);
    let request = server.last_request();
    assert_history_is_valid(&request);
    assert_eq!(request.messages().len(), 5);
}

#[test]
fn a_session_of_another_program_is_taken_in_and_goes_on_with_a_model_that_is_here() {
    let server = ModelServer::start([Answer::text("Went on.")]);
    let folder = folder().with_model(&server, Wire::Anthropic);
    let lines = [
        json!({"timestamp": "2026-01-02T03:04:05Z", "type": "session_meta", "payload": {"id": "x-1", "cwd": "/no/such/folder", "model_provider": "theirs"}}),
        json!({"timestamp": "2026-01-02T03:04:06Z", "type": "turn_context", "payload": {"model": "big"}}),
        json!({"timestamp": "2026-01-02T03:04:07Z", "type": "response_item", "payload": {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "List it"}]}}),
        json!({"timestamp": "2026-01-02T03:04:08Z", "type": "response_item", "payload": {"type": "function_call", "name": "shell", "arguments": "{\"command\":[\"ls\"]}", "call_id": "a"}}),
    ];
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    folder.write("theirs/2026/rollout.jsonl", &text);
    folder.write("theirs/other.json", "{\"nothing\": 1}");
    let taken = folder.tw(&["import", "theirs"]).expect(0);
    assert!(taken.stdout.contains("Imported from codex"), "{}", taken.stdout);
    for told in ["1 call had no result", "/no/such/folder is no folder here"] {
        assert!(taken.stderr.contains(told), "{told}: {}", taken.stderr);
    }
    let id = first_id(&folder);
    folder.tw(&["run", "-s", &id, "-m", "anthropic/m", "Go on"]).expect(0);
    let request = server.last_request();
    assert_history_is_valid(&request);
    assert!(results(&request)[0].contains("interrupted"), "{:?}", results(&request));
    assert!(folder.tw(&["show", &id]).expect(0).stdout.contains("imported from codex x-1"));

    folder.write("bad.json", "{\"info\":");
    let bad = folder.tw(&["import", "bad.json"]).expect(1);
    assert!(bad.stderr.contains("cannot import bad.json"), "{}", bad.stderr);
    folder.tw(&["import", "missing.json"]).expect(1);
    assert!(folder.tw(&["import", "https://x.example/s"]).expect(2).stderr.contains("curl"));
}

#[test]
fn a_folder_of_claude_code_gives_one_session_with_its_agents_and_a_folder_without_any_is_said_to_be_one()
 {
    let line = |uuid: &str, parent: Value, role: &str, content: Value, agent: Option<&str>| {
        let mut line = json!({
            "uuid": uuid, "parentUuid": parent, "type": role, "sessionId": "s-1", "cwd": "/gone",
            "isSidechain": agent.is_some(), "timestamp": "2026-01-02T03:04:05.000Z",
            "message": { "id": uuid, "role": role, "model": "claude-x", "content": content },
        });
        if let Some(agent) = agent {
            line["agentId"] = json!(agent);
        }
        line
    };
    let call =
        json!([{ "type": "tool_use", "id": "t1", "name": "Task", "input": { "prompt": "Count" } }]);
    let result = json!([{ "type": "tool_result", "tool_use_id": "t1", "content": "11" }]);
    let mut answered = line("r", json!("a"), "user", result, None);
    answered["toolUseResult"] = json!({ "agentId": "x" });
    let main = [
        line("u", Value::Null, "user", json!("Count the words"), None),
        line("a", json!("u"), "assistant", call, None),
        answered,
    ];
    let work = [
        line("w", Value::Null, "user", json!("Count"), Some("x")),
        line(
            "v",
            json!("w"),
            "assistant",
            json!([{ "type": "text", "text": "Eleven." }]),
            Some("x"),
        ),
    ];
    let text = |lines: &[Value]| lines.iter().map(|line| format!("{line}\n")).collect::<String>();
    let folder = folder()
        .file("theirs/s-1.jsonl", &text(&main))
        // Sorted before the session that it belongs to.
        .file("theirs/agent-x.jsonl", &text(&work))
        .file("other/package.json", "{}");
    let taken = folder.tw(&["import", "theirs"]).expect(0);
    assert!(taken.stdout.contains("1 call, 1 session of an agent"), "{}", taken.stdout);
    assert_eq!(list(&folder, &[]).len(), 1);
    let again = folder.tw(&["import", "theirs/s-1.jsonl"]).expect(0);
    assert!(again.stderr.contains("is here already"), "{}", again.stderr);
    let page = folder.tw(&["export", "--format", "html"]).expect(0).stdout;
    assert!(page.contains("Eleven."), "the work stands in the call");
    let none = folder.tw(&["import", "other"]).expect(1);
    assert!(none.stderr.contains("no session was found in other"), "{}", none.stderr);
}
