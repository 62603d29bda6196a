//! Taking in sessions of other programs: what cannot be taken holds up nothing else, and nothing is taken
//! twice.

use serde_json::{Value, json};
use toolwright_testkit::Folder;

use crate::folder;

/// An export of OpenCode with one prompt in it.
fn export(id: &str) -> String {
    let message = json!({ "id": "msg_1", "role": "user", "time": { "created": 1000 } });
    let parts = json!([{ "type": "text", "text": "Go" }]);
    let info = json!({ "id": id, "directory": "/gone", "time": { "created": 1000 } });
    json!({ "info": info, "messages": [{ "info": message, "parts": parts }] }).to_string()
}

fn count(folder: &Folder) -> usize {
    let listed = folder.tw(&["sessions", "--json"]).expect(0).stdout;
    serde_json::from_str::<Vec<Value>>(&listed).unwrap().len()
}

#[test]
fn what_cannot_be_imported_does_not_hold_up_the_rest() {
    let folder = folder()
        .file("one.json", &export("ses_1"))
        .file("two.json", &export("ses_2"))
        .file("nothing/package.json", "{}");
    std::fs::create_dir(folder.work().join("empty")).unwrap();
    folder.write_bytes("corrupt.db", &[b"SQLite format 3\0".as_slice(), &[7; 5000]].concat());

    let paths = ["missing.json", "nothing", "empty", "corrupt.db", "one.json"];
    let run = folder.tw(&[&["import"], paths.as_slice()].concat()).expect(1);
    for told in [
        "cannot read missing.json",
        "no session was found in nothing",
        "no session was found in empty",
        "cannot import corrupt.db: its database cannot be read",
    ] {
        assert!(run.stderr.contains(told), "{told}: {}", run.stderr);
    }
    assert!(run.stdout.contains("1 prompt, 0 answers, 0 calls\n"), "{}", run.stdout);
    assert_eq!(count(&folder), 1);
    let listed = folder.tw(&["sessions"]).expect(0).stdout;
    assert!(listed.contains("(1 message)"), "{listed}");

    // What was taken before is told.
    let run = folder.tw(&["import", "--json", "two.json", "corrupt.db", "empty"]).expect(1);
    let rows: Vec<Value> = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!((rows.len(), &rows[0]["original"]), (1, &json!("ses_2")));
    assert_eq!(count(&folder), 2);
}

#[test]
fn one_session_in_two_places_is_imported_once() {
    let folder = folder().file("a.json", &export("ses_1")).file("b.json", &export("ses_1"));
    for (again, kept) in [(false, 1), (true, 2)] {
        let again = if again { &["--again"][..] } else { &[] };
        let arguments = [&["import", "--json"], again, &["a.json", "b.json", "a.json"]].concat();
        let run = folder.tw(&arguments).expect(0);
        let rows: Vec<Value> = serde_json::from_str(&run.stdout).unwrap();
        let new: Vec<&Value> = rows.iter().map(|row| &row["new"]).collect();
        assert_eq!(new, [true, false, false]);
        assert_eq!((&rows[1]["id"], &rows[2]["id"]), (&rows[0]["id"], &rows[0]["id"]));
        assert!(run.stderr.contains("b.json is the same session: ses_"), "{}", run.stderr);
        assert_eq!(count(&folder), kept);
    }
    // Those that no id tells from each other are two.
    let folder = crate::folder().file("a.json", &export("")).file("b.json", &export(""));
    folder.tw(&["import", "a.json", "b.json"]).expect(0);
    assert_eq!(count(&folder), 2);
}

#[test]
fn agents_files_are_found_beside_a_name_without_a_folder() {
    let line = |agent: Option<&str>| {
        let content = json!("Count");
        let line = json!({
            "uuid": "u", "parentUuid": null, "type": "user", "sessionId": "s-1", "cwd": "/gone",
            "isSidechain": agent.is_some(), "agentId": agent, "timestamp": "2026-01-02T03:04:05.000Z",
            "message": { "role": "user", "content": content },
        });
        format!("{line}\n")
    };
    let folder = folder().file("s-1.jsonl", &line(None)).file("agent-x.jsonl", &line(Some("x")));
    let run = folder.tw(&["import", "s-1.jsonl"]).expect(0);
    assert!(run.stdout.contains("1 session of an agent"), "{}", run.stdout);
}

#[test]
fn nothing_that_another_program_kept_steers_the_terminal_or_turns_its_text_round() {
    let evil = "a\u{1b}]0;b\u{7}c\u{202e}d\u{9b}2Je";
    let call = |tool: &str, output: &str, title: &str| {
        let state = json!({ "status": "completed", "input": {}, "output": output, "title": title,
            "metadata": { "todos": [{ "content": evil, "status": "pending" }] }, "time": { "start": 1, "end": 2 } });
        json!({ "type": "tool", "tool": tool, "callID": tool, "state": state })
    };
    let file = json!({ "type": "file", "mime": evil, "filename": evil, "url": "data:image/\u{202e};base64,AAAA" });
    let asked = json!({ "id": "msg_1", "role": "user", "time": { "created": 1 } });
    let told =
        json!({ "id": "msg_2", "role": "assistant", "time": { "created": 1 }, "finish": "stop" });
    let form = json!({
        "info": { "id": evil, "title": evil, "directory": evil, "time": { "created": 1 } },
        "messages": [
            { "info": asked, "parts": [{ "type": "text", "text": evil }, file] },
            { "info": told, "parts": [{ "type": "text", "text": evil }, call("todowrite", evil, evil),
                call(evil, evil, evil)] },
        ],
    });
    let folder = folder().file("a.json", &form.to_string());
    let is_harmful = |c: char| {
        (c.is_control() && c != '\n')
            || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    for arguments in
        [["import", "a.json"].as_slice(), &["show"], &["sessions"], &["tree"], &["stats"]]
    {
        let run = folder.tw(arguments).expect(0);
        let shown = run.stdout + &run.stderr;
        assert!(!shown.contains(is_harmful), "{arguments:?}: {shown:?}");
        assert!(!shown.is_empty(), "{arguments:?}");
    }
    assert!(folder.tw(&["show"]).expect(0).stdout.contains("To do:"));
}
