//! Sessions as programs store them, and newer lines of Codex and pi.

use std::fs;
use std::path::Path;

use rusqlite::{Connection, params};
use serde_json::{Value, json};

use super::tests::{lines, said, steps, taken, taken_from};
use super::*;

fn put(path: &Path, value: &Value) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, value.to_string()).unwrap();
}

fn info(id: &str, parent: Option<&str>) -> Value {
    let mut info = json!({ "id": id, "slug": "calm-sea", "directory": "/elsewhere", "title": format!("About {id}"),
        "version": "1.0", "time": { "created": 1000, "updated": 2000 } });
    if let Some(parent) = parent {
        info["parentID"] = json!(parent);
    }
    info
}

fn asked(id: &str) -> Value {
    json!({ "id": id, "role": "user", "time": { "created": 1000 }, "agent": "build",
            "model": { "providerID": "p", "modelID": "m" } })
}

fn answered(id: &str) -> Value {
    json!({ "id": id, "role": "assistant", "time": { "created": 1100, "completed": 1200 }, "providerID": "p",
            "modelID": "m", "mode": "build", "cost": 0.5, "finish": "tool-calls",
            "tokens": { "input": 1, "output": 2, "reasoning": 0, "cache": { "read": 0, "write": 0 } } })
}

fn text(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}

fn task(child: &str) -> Value {
    json!({ "type": "tool", "tool": "task", "callID": "c1", "state": { "status": "completed",
        "input": { "prompt": "Count" }, "output": "11", "title": "Count", "metadata": { "sessionId": child },
        "time": { "start": 1100, "end": 1200 } } })
}

/// What all three ways of storing it must give.
fn is_whole(path: &Path) {
    let mut sources = Source::find(path).unwrap();
    assert_eq!(sources.len(), 1, "an agent's session comes with its employer's: {path:?}");
    let taken = taken_from(&sources.remove(0).read().unwrap());
    assert_eq!(said(&taken.session), ["> Go", "Counting.", "+ task {\"prompt\":\"Count\"} = 11"]);
    assert_eq!(taken.session.title(), "About ses_1");
    let children = taken.store.children(&taken.session.header);
    assert_eq!(said(&children[0].session), ["> Count"]);
    let call = steps(&taken.session)[0].calls().next().unwrap();
    let named = &call.outcome().unwrap().details["sessionId"];
    assert_eq!(named, &json!(children[0].session.header.session));
}

#[test]
fn opencodes_folders_of_small_files_are_sessions() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("storage");
    let part = |message: &str, n: usize| root.join(format!("part/{message}/prt_{n}.json"));
    put(&root.join("session/project/ses_1.json"), &info("ses_1", None));
    put(&root.join("session/project/ses_2.json"), &info("ses_2", Some("ses_1")));
    put(&root.join("message/ses_1/msg_1.json"), &asked("msg_1"));
    put(&root.join("message/ses_1/msg_2.json"), &answered("msg_2"));
    put(&root.join("message/ses_2/msg_3.json"), &asked("msg_3"));
    put(&part("msg_1", 1), &text("Go"));
    put(&part("msg_2", 1), &text("Counting."));
    put(&part("msg_2", 2), &task("ses_2"));
    put(&part("msg_3", 1), &text("Count"));
    is_whole(folder.path());
    is_whole(&root);
}

#[test]
fn opencodes_first_folders_are_sessions_too() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("project/some-project/storage/session");
    let part = |at: &str, n: usize| root.join(format!("part/{at}/prt_{n}.json"));
    put(&root.join("info/ses_1.json"), &info("ses_1", None));
    put(&root.join("info/ses_2.json"), &info("ses_2", Some("ses_1")));
    put(
        &root.join("message/ses_1/msg_1.json"),
        &json!({ "id": "msg_1", "role": "user", "time": { "created": 1000 } }),
    );
    put(&root.join("message/ses_1/msg_2.json"), &answered("msg_2"));
    put(&root.join("message/ses_2/msg_3.json"), &asked("msg_3"));
    put(&part("ses_1/msg_1", 1), &text("Go"));
    put(&part("ses_1/msg_2", 1), &text("Counting."));
    put(&part("ses_1/msg_2", 2), &task("ses_2"));
    put(&part("ses_2/msg_3", 1), &text("Count"));
    is_whole(folder.path());
}

/// One as OpenCode makes it, with a session in it and one of an agent.
fn database(path: &Path) -> Connection {
    let database = Connection::open(path).unwrap();
    database
        .execute_batch(
            "create table session (id text, project_id text, parent_id text, slug text, directory text, title text,
                version text, revert text, time_created integer, time_updated integer);
             create table message (id text, session_id text, time_created integer, time_updated integer, data text);
             create table part (id text, message_id text, session_id text, time_created integer, data text);",
        )
        .unwrap();
    for (id, parent) in [("ses_1", None), ("ses_2", Some("ses_1"))] {
        let row = "insert into session values (?1, 'p', ?2, 's', '/elsewhere', ?3, '1', null, 1000, 2000)";
        database.execute(row, params![id, parent, format!("About {id}")]).unwrap();
    }
    database
}

#[test]
fn opencodes_database_holds_sessions() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("opencode.db");
    let database = database(&path);
    let message = |session: &str, value: Value| {
        let row = "insert into message values (?1, ?2, ?3, 0, ?4)";
        let time = value["time"]["created"].as_i64();
        database
            .execute(row, params![value["id"].as_str(), session, time, value.to_string()])
            .unwrap();
    };
    let part = |id: &str, message: &str, value: Value| {
        let row = "insert into part values (?1, ?2, '', 0, ?3)";
        database.execute(row, params![id, message, value.to_string()]).unwrap();
    };
    message("ses_1", answered("msg_2"));
    message("ses_1", asked("msg_1"));
    message("ses_2", asked("msg_3"));
    part("prt_2", "msg_2", task("ses_2"));
    part("prt_1", "msg_2", text("Counting."));
    part("prt_1", "msg_1", text("Go"));
    part("prt_1", "msg_3", text("Count"));
    is_whole(&path);
    is_whole(folder.path());
    // Some other program's.
    let other = folder.path().join("other.db");
    Connection::open(&other).unwrap().execute_batch("create table t (id text)").unwrap();
    assert!(matches!(Source::find(&other), Err(ImportError::Unknown)));
}

#[test]
fn rows_that_hold_anything_but_a_message_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("opencode.db");
    let database = database(&path);
    let message = |id: &str, data: &str| {
        let row = "insert into message values (?1, 'ses_1', 1000, 0, ?2)";
        database.execute(row, params![id, data]).unwrap();
    };
    let odd = ["[]", "[1]", "\"text\"", "7", "true", "null", "", "{\"half\":"];
    odd.iter().enumerate().for_each(|(n, data)| message(&format!("msg_{n}"), data));
    message("msg_9", &asked("msg_9").to_string());
    for data in [text("Go").to_string(), "[]".to_owned(), "{".to_owned()] {
        let row = "insert into part values ('prt', 'msg_9', 'ses_1', 0, ?1)";
        database.execute(row, params![data]).unwrap();
    }
    let taken = taken_from(&Source::find(&path).unwrap().remove(0).read().unwrap());
    assert_eq!(said(&taken.session), ["> Go"]);
    let left_out =
        ["left out: 8 messages that cannot be read", "left out: 2 parts that cannot be read"];
    assert_eq!(taken.notices, left_out);
}

/// OpenCode's folders, with one session of one prompt for each name.
fn store(root: &Path, sessions: &[&str]) {
    for id in sessions {
        put(&root.join(format!("session/project/{id}.json")), &info(id, None));
        put(&root.join(format!("message/{id}/msg_{id}.json")), &asked(&format!("msg_{id}")));
        put(&root.join(format!("part/msg_{id}/prt_1.json")), &text("Go"));
    }
}

fn names(sources: &[Source]) -> Vec<String> {
    sources.iter().map(|source| stored::id_of(&source.name).to_owned()).collect()
}

#[test]
fn damaged_and_foreign_files_in_opencodes_folders_do_not_refuse_a_session() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    store(root, &["ses_1"]);
    for foreign in ["session/project", "message/ses_1", "part/msg_ses_1"] {
        fs::write(root.join(foreign).join(".DS_Store"), "\0\0").unwrap();
        fs::create_dir(root.join(foreign).join("folder.json")).unwrap();
    }
    fs::write(root.join("part/msg_ses_1/prt_2.json"), "").unwrap();
    fs::write(root.join("message/ses_1/msg_2.json"), "{\"id\":").unwrap();
    fs::write(root.join("session/project/ses_9.json"), "").unwrap();
    let mut sources = Source::find(root).unwrap();
    assert_eq!(names(&sources), ["ses_1", "ses_9"]);
    // Nothing tells what it was: that is said, and the other one is taken.
    assert!(matches!(sources.remove(1).read(), Err(ImportError::Damaged(_))));
    let taken = taken_from(&sources.remove(0).read().unwrap());
    assert_eq!(said(&taken.session), ["> Go"]);
    let left_out =
        ["left out: 1 messages that cannot be read", "left out: 1 parts that cannot be read"];
    assert_eq!(taken.notices, left_out);
}

#[test]
fn a_session_that_opencode_took_over_from_an_earlier_version_is_found_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("opencode.db");
    drop(database(&path));
    store(&folder.path().join("storage"), &["ses_1", "ses_3"]);
    store(&folder.path().join("project/some-project/storage"), &["ses_3", "ses_4"]);
    let sources = Source::find(folder.path()).unwrap();
    assert_eq!(names(&sources), ["ses_1", "ses_3", "ses_4"]);
    assert!(sources[0].name.starts_with(&path), "the newest form of it");
    assert!(sources[1].name.starts_with(folder.path().join("storage")));
    // A database that cannot be read stands in nobody's way.
    fs::write(&path, [b"SQLite format 3\0".as_slice(), &[7; 5000]].concat()).unwrap();
    let mut sources = Source::find(folder.path()).unwrap();
    assert_eq!(names(&sources), ["opencode", "ses_1", "ses_3", "ses_4"]);
    assert!(matches!(sources.remove(0).read(), Err(ImportError::Database(_))));
    assert_eq!(sources.remove(0).read().unwrap().id, "ses_1");
}

#[test]
fn to_read_one_session_no_other_is_looked_at() {
    let folder = tempfile::tempdir().unwrap();
    store(folder.path(), &["ses_1", "ses_2", "ses_3"]);
    let path = |id: &str| folder.path().join(format!("session/project/{id}.json"));
    put(&path("ses_2"), &info("ses_2", Some("ses_1")));
    let mut sources = Source::find(folder.path()).unwrap();
    assert_eq!(names(&sources), ["ses_1", "ses_3"]);
    // Who worked for whom was read when they were found.
    put(&path("ses_3"), &info("ses_3", Some("ses_1")));
    let children = sources.remove(0).read().unwrap().children;
    assert_eq!(children.iter().map(|child| child.id.as_str()).collect::<Vec<_>>(), ["ses_2"]);
}

#[test]
fn what_was_undone_in_opencode_is_not_taken() {
    let mut info = info("ses_1", None);
    info["revert"] = json!({ "messageID": "msg_2" });
    let message = |id: &str, said: &str| json!({ "info": asked(id), "parts": [text(said)] });
    let form = json!({ "info": info, "messages": [message("msg_1", "One"), message("msg_2", "Two"), message("msg_3", "Three")] });
    let taken = taken(form.to_string().as_bytes());
    assert_eq!(said(&taken.session), ["> One"]);
    assert_eq!(taken.notices, ["left out: 2 messages that were undone"]);
}

fn codex(kind: &str, payload: Value) -> Value {
    json!({ "timestamp": "2026-01-02T03:04:05.000Z", "type": kind, "payload": payload })
}

fn spoken(role: &str, said: &str) -> Value {
    let kind = if role == "user" { "input_text" } else { "output_text" };
    let content = json!([{ "type": kind, "text": said }]);
    codex("response_item", json!({ "type": "message", "role": role, "content": content }))
}

#[test]
fn turns_that_were_taken_back_in_codex_are_gone_and_changes_are_found_wherever_they_are_told() {
    let patch = json!({ "type": "custom_tool_call", "call_id": "c1", "name": "apply_patch", "input": "*** Begin Patch" });
    let done = json!({ "type": "custom_tool_call_output", "call_id": "c1", "output": "ok" });
    let changes = json!({ "a.txt": { "type": "add", "content": "one\n" } });
    let end =
        json!({ "type": "patch_apply_end", "call_id": "c1", "success": true, "changes": changes });
    for late in [false, true] {
        let mut all = vec![
            codex(
                "session_meta",
                json!({ "id": "x", "timestamp": "2026-01-02T03:04:05.000Z", "cwd": "/e", "source": "cli" }),
            ),
            codex("turn_context", json!({ "model": "gpt-x", "cwd": "/e" })),
            spoken("user", "<environment_context>\n</environment_context>"),
            codex("response_item", json!({ "type": "ghost_snapshot", "ghost_commit": {} })),
            spoken("user", "One"),
            codex("response_item", patch.clone()),
        ];
        let rest = [codex("event_msg", end.clone()), codex("response_item", done.clone())];
        all.extend(if late { [rest[1].clone(), rest[0].clone()] } else { rest });
        all.extend([
            spoken("assistant", "First."),
            spoken("user", "Two"),
            spoken("assistant", "Second."),
            spoken("user", "Three"),
            codex("event_msg", json!({ "type": "turn_aborted", "reason": "interrupted" })),
            codex("event_msg", json!({ "type": "thread_rolled_back", "num_turns": 2 })),
            spoken("user", "<user_shell_command>\nls\n</user_shell_command>"),
            spoken("user", "Four"),
            spoken("assistant", "Fourth."),
        ]);
        let taken = taken(&lines(&all));
        assert_eq!(
            said(&taken.session),
            [
                "> One",
                "+ apply_patch {\"patchText\":\"*** Begin Patch\"} = ok",
                "First.",
                "# <user_shell_command>\nls\n</user_shell_command>",
                "> Four",
                "Fourth."
            ]
        );
        let call = steps(&taken.session)[0].calls().next().unwrap();
        assert_eq!(call.outcome().unwrap().details["diff"], "--- a.txt\n+++ a.txt\n+one\n");
    }
}

#[test]
fn pis_first_version_counts_what_it_keeps() {
    let message = |role: &str, said: &str| {
        json!({ "type": "message", "timestamp": "2026-01-02T03:04:05.000Z",
        "message": { "role": role, "content": [{ "type": "text", "text": said }], "provider": "p", "model": "m",
                     "stopReason": "stop", "timestamp": 1000 } })
    };
    let taken = taken(&lines(&[
        json!({ "type": "session", "id": "x", "timestamp": "2026-01-02T03:04:05.000Z", "cwd": "/e" }),
        message("user", "One"),
        message("assistant", "First."),
        message("user", "Two"),
        message("assistant", "Second."),
        json!({ "type": "compaction", "timestamp": "2026-01-02T03:04:05.000Z", "summary": "Notes.", "firstKeptEntryIndex": 3 }),
        message("user", "Three"),
    ]));
    assert_eq!(said(&taken.session).len(), 5);
    assert_eq!(taken.session.compaction().unwrap().keep_from, 2);
}

#[test]
fn an_import_that_fails_halfway_leaves_nothing_behind() {
    let message = |id: &str| json!({ "info": asked(id), "parts": [text("Go")] });
    let child = json!({ "info": info("ses_2", None), "messages": [message("msg_2")] });
    let form =
        json!({ "info": info("ses_1", None), "messages": [message("msg_1")], "children": [child] });
    let foreign = read(form.to_string().as_bytes()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let store = Store::new(folder.path().join("sessions"));
    let (log, _) = store.create(Path::new("/here"), "test").unwrap();
    // Where the sessions of agents would be.
    let place = log.path().with_file_name("children");
    fs::write(&place, "").unwrap();
    store.keep(&foreign, Path::new("/here"), "test").unwrap_err();
    assert_eq!(store.list(None).len(), 1, "the one that was there");
    fs::remove_file(&place).unwrap();
    store.keep(&foreign, Path::new("/here"), "test").unwrap();
    assert_eq!(store.list(None).len(), 2);
}

#[test]
fn codexs_agents_go_with_whoever_gave_the_work() {
    let meta = |id: &str, source: Value| {
        codex(
            "session_meta",
            json!({ "id": id, "timestamp": "2026-01-02T03:04:05.000Z", "cwd": "/e", "source": source }),
        )
    };
    let below = |id: &str| json!({ "subagent": { "thread_spawn": { "parent_thread_id": id, "depth": 1 } } });
    let spawn = json!({ "type": "function_call", "name": "spawn_agent", "arguments": "{}", "call_id": "c1" });
    let told = json!({ "type": "function_call_output", "call_id": "c1", "output": "{\"agent_id\":\"th-2\"}" });
    let folder = tempfile::tempdir().unwrap();
    let put = |name: &str, all: &[Value]| fs::write(folder.path().join(name), lines(all)).unwrap();
    put(
        "rollout-b.jsonl",
        &[
            meta("th-1", json!("cli")),
            spoken("user", "Count"),
            codex("response_item", spawn),
            codex("response_item", told),
        ],
    );
    put(
        "rollout-a.jsonl",
        &[meta("th-2", below("th-1")), spoken("user", "Words"), spoken("assistant", "11")],
    );
    put("rollout-c.jsonl", &[meta("th-3", below("th-2")), spoken("user", "Letters")]);
    put("rollout-d.jsonl", &[meta("th-4", below("gone")), spoken("user", "Alone")]);
    let sources = Source::find(folder.path()).unwrap();
    let found: Vec<Foreign> = sources.into_iter().map(|source| source.read().unwrap()).collect();
    assert_eq!(found.iter().map(|f| f.id.as_str()).collect::<Vec<_>>(), ["th-1", "th-4"]);
    let taken = taken_from(&found[0]);
    let children = taken.store.children(&taken.session.header);
    assert_eq!(children.len(), 2);
    let call = steps(&taken.session)[0].calls().next().unwrap();
    let named = call.outcome().unwrap().details["sessionId"].as_str().unwrap().to_owned();
    let child = children.iter().find(|child| child.session.header.session == named).unwrap();
    assert_eq!(said(&child.session), ["> Words", "11"]);
}
