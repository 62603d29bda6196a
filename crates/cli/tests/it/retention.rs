//! Old outputs go by themselves, and never on the way to the first request.

use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use serde_json::json;
use toolwright_testkit::{Answer, Folder, ModelServer, Wire};

use crate::{folder, results};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// An output of 100 bytes that some session of another folder left behind so long ago.
fn old_output(folder: &Folder, name: &str, age: Duration) -> PathBuf {
    let outputs = folder.root().join("data/toolwright/sessions/elsewhere/ses_1.outputs");
    std::fs::create_dir_all(&outputs).unwrap();
    let path = outputs.join(name);
    std::fs::write(&path, [b'x'; 100]).unwrap();
    let file = std::fs::File::options().write(true).open(&path).unwrap();
    file.set_modified(SystemTime::now() - age).unwrap();
    path
}

/// Ends when all of these are gone: the sweep runs beside the calls.
fn wait_until_gone(files: &[&PathBuf]) -> Answer {
    let tests: Vec<String> = files.iter().map(|f| format!("[ -e '{}' ]", f.display())).collect();
    let command = format!("while {}; do sleep 0.02; done; echo gone", tests.join(" || "));
    Answer::call("bash", json!({ "command": command, "timeout": 20_000 }))
}

#[test]
fn outputs_beyond_age_and_quota_are_removed_while_a_run_works() {
    let folder = folder().user_config(
        r#"{"tool_output": {"retention_days": 3, "retention_bytes": 150}, "permission": "allow"}"#,
    );
    let too_old = old_output(&folder, "tool_1.txt", DAY * 4);
    let too_much = old_output(&folder, "tool_2.txt", DAY * 2);
    let kept = old_output(&folder, "tool_3.txt", DAY);
    let server = ModelServer::start([wait_until_gone(&[&too_old, &too_much]), Answer::text("ok")]);
    let folder = folder.with_model(&server, Wire::Anthropic);
    folder.tw(&["run", "-m", "anthropic/m", "go"]).expect(0);
    let result = &results(&server.last_request())[0];
    assert!(result.starts_with("gone"), "{result}");
    assert!(kept.exists());
    // Not twice a day.
    let late = old_output(&folder, "tool_4.txt", DAY * 9);
    server.then(Answer::text("ok"));
    folder.tw(&["run", "-m", "anthropic/m", "go"]).expect(0);
    assert!(late.exists());
}

#[test]
fn nothing_is_swept_before_the_first_answer_and_a_repository_cannot_ask_for_it() {
    let server = ModelServer::start([Answer::status(400, "no")]);
    let folder = folder()
        .file("toolwright.json", r#"{"tool_output": {"retention_days": 0, "retention_bytes": 0}}"#)
        .with_model(&server, Wire::Anthropic);
    let old = old_output(&folder, "tool_1.txt", DAY * 30);
    let recent = old_output(&folder, "tool_2.txt", DAY);
    folder.tw(&["run", "-m", "anthropic/m", "go"]).expect(1);
    assert!(old.exists(), "no answer came");
    server.then(wait_until_gone(&[&old]));
    server.then(Answer::text("ok"));
    let run = folder.tw(&["run", "--auto", "-m", "anthropic/m", "go"]).expect(0);
    assert!(recent.exists(), "a folder that is not trusted has shortened the time");
    assert!(run.stderr.contains("tool_output.retention_days"), "{}", run.stderr);
}
