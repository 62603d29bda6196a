use serde_json::{Value, json};
use toolwright_testkit::{Answer, ModelServer, Wire};

use crate::{assert_history_is_valid, folder};

#[test]
fn sessions_are_listed_shown_continued_and_copied() {
    let server = ModelServer::start([
        Answer::call("glob", json!({"pattern": "*"})),
        Answer::text("First answer."),
        Answer::text("Second answer."),
        Answer::text("Third answer."),
    ]);
    let folder = folder().with_model(&server, Wire::Anthropic);
    folder.tw(&["run", "-m", "anthropic/m", "The first prompt\nwith more lines"]).expect(0);
    let list: Value =
        serde_json::from_str(&folder.tw(&["sessions", "--json"]).expect(0).stdout).unwrap();
    let id = list[0]["id"].as_str().unwrap().to_owned();
    assert_eq!(list[0]["title"], "The first prompt");

    folder.tw(&["run", "-s", &id, "-m", "anthropic/m", "The second prompt"]).expect(0);
    let request = server.last_request();
    assert_history_is_valid(&request);
    assert_eq!(request.messages().len(), 5);

    folder.tw(&["run", "-s", &id, "--fork", "-m", "anthropic/m", "On a copy"]).expect(0);
    let table = folder.tw(&["sessions"]).expect(0).stdout;
    assert_eq!(table.lines().count(), 2, "{table}");
    let shown = folder.tw(&["show", &id]).expect(0).stdout;
    for part in
        ["> The first prompt", "✓ glob", "First answer.", "> The second prompt", "Second answer."]
    {
        assert!(shown.contains(part), "{part} in {shown}");
    }
    assert!(!shown.contains("On a copy"));
    assert!(folder.tw(&["show"]).expect(0).stdout.contains(&format!("a copy of {id}")));
    assert_eq!(folder.tw(&["sessions", "--search", "FIRST"]).expect(0).stdout.lines().count(), 2);
    assert_eq!(folder.tw(&["sessions", "--search", "nothing like it"]).expect(0).stdout, "");
}

#[test]
fn a_copy_that_cannot_be_written_whole_leaves_nothing_behind() {
    let server = ModelServer::start([Answer::text("Read.")]);
    let folder = folder().with_model(&server, Wire::Anthropic);
    let prompt = "many words ".repeat(8_000);
    folder.tw(&["run", "-m", "anthropic/m", &prompt]).expect(0);
    // No file may grow beyond 32 KiB, which is told as a failed write.
    let limited = "trap '' XFSZ; ulimit -f 32; exec \"$0\" run -c --fork \"On a copy\"";
    let mut command = std::process::Command::new("bash");
    command.args(["-c", limited, env!("CARGO_BIN_EXE_tw")]);
    folder.settle(&mut command);
    let output = command.output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && told.contains("cannot write"), "{told}");
    assert_eq!(server.requests().len(), 1, "nobody was asked");
    assert_eq!(folder.session_files().len(), 1);
}

#[test]
fn the_system_prompt_is_frozen_for_a_session() {
    let server = ModelServer::start([Answer::text("a"), Answer::text("b")]);
    let folder = folder().file("AGENTS.md", "Rule one.").with_model(&server, Wire::Anthropic);
    folder.tw(&["run", "-m", "anthropic/m", "one"]).expect(0);
    folder.write("AGENTS.md", "Rule two.");
    folder.tw(&["run", "-c", "-m", "anthropic/m", "two"]).expect(0);
    let systems: Vec<Value> = server.requests().iter().map(|r| r.body["system"].clone()).collect();
    assert_eq!(systems[0], systems[1]);
    assert!(systems[0].to_string().contains("Rule one."));
}

#[test]
fn ten_processes_with_a_session_each_do_not_get_in_each_others_way() {
    let server = ModelServer::answering(|request| match request.messages().len() {
        steps if steps < 11 => Answer::call("bash", json!({"command": format!("echo {steps}")})),
        _ => Answer::text("done"),
    });
    let folder = folder().with_model(&server, Wire::Anthropic);
    let children: Vec<_> =
        (0..10).map(|_| folder.start(&["run", "--auto", "-m", "anthropic/m", "go"])).collect();
    // And somebody looks at the list of them meanwhile.
    for _ in 0..3 {
        folder.tw(&["sessions", "--json", "--search", "go"]).expect(0);
    }
    for child in children {
        let run = child.wait();
        for word in ["in use", "locked"] {
            assert!(!run.stderr.contains(word), "{}", run.stderr);
        }
        run.expect(0);
    }
    assert_eq!(folder.session_files().len(), 10);
}

#[test]
fn what_is_shown_tells_a_command_that_failed_and_what_is_to_be_done_and_both_go_back_with_an_undo()
{
    let todos = |names: &[&str]| {
        let list: Vec<Value> =
            names.iter().map(|name| json!({"content": name, "status": "in_progress"})).collect();
        Answer::call("todowrite", json!({ "todos": list }))
    };
    let server = ModelServer::start([
        todos(&["first"]),
        Answer::text("Noted."),
        todos(&["first", "second"]),
        Answer::call("bash", json!({"command": "exit 3"})),
        Answer::text("Noted too."),
        Answer::text("Again."),
    ]);
    let folder = folder().with_model(&server, Wire::Anthropic);
    folder.tw(&["run", "--auto", "-m", "anthropic/m", "one"]).expect(0);
    folder.tw(&["run", "--auto", "-c", "-m", "anthropic/m", "two"]).expect(0);
    let shown = folder.tw(&["show"]).expect(0).stdout;
    assert!(shown.contains("✗ bash") && shown.contains("exit code 3"), "{shown}");
    assert!(shown.ends_with("To do:\n  ▸ first\n  ▸ second\n"), "{shown}");
    folder.tw(&["undo"]).expect(0);
    let shown = folder.tw(&["show"]).expect(0).stdout;
    assert!(shown.ends_with("To do:\n  ▸ first\n"), "{shown}");
    folder.tw(&["redo"]).expect(0);
    assert!(folder.tw(&["show"]).expect(0).stdout.contains("▸ second"));
    folder.tw(&["sessions", "-n", "0"]).expect(2);
}
