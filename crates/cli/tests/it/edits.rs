//! Files changed through the whole program: what models are offered, what is refused, what is kept.

use std::process::Command;

use serde_json::json;
use toolwright_testkit::{Answer, ModelServer, Wire};

use crate::{folder, results};

const PATCH: &str = "*** Begin Patch\n*** Update File: a.txt\n@@\n-one\n+1\n*** Add File: secret/key\n+x\n*** End Patch";

#[test]
fn a_file_that_a_command_changed_must_be_read_again_unless_that_is_switched_off() {
    let script = || {
        [
            Answer::call("read", json!({"filePath": "a.txt"})),
            Answer::call("bash", json!({"command": "echo two >> a.txt"})),
            Answer::call(
                "edit",
                json!({"filePath": "a.txt", "oldString": "one", "newString": "1"}),
            ),
            Answer::text("Done."),
        ]
    };
    let server = ModelServer::start(script());
    let strict = folder().file("a.txt", "one\n").with_model(&server, Wire::Anthropic);
    strict.tw(&["run", "--auto", "-m", "anthropic/m", "go"]).expect(0);
    let told = &results(&server.last_request())[2];
    assert!(told.contains("File a.txt has been modified since it was last read"), "{told}");
    assert_eq!(strict.read("a.txt"), "one\ntwo\n");

    let server = ModelServer::start(script());
    let lenient = folder()
        .user_config(r#"{"stale_edits":"allow"}"#)
        .file("a.txt", "one\n")
        .with_model(&server, Wire::Anthropic);
    lenient.tw(&["run", "--auto", "-m", "anthropic/m", "go"]).expect(0);
    assert_eq!(lenient.read("a.txt"), "1\ntwo\n");

    let wrong = folder().user_config(r#"{"stale_edits":"perhaps"}"#);
    let run = wrong.tw(&["run", "-m", "demo", "go"]).expect(2);
    assert!(run.stderr.contains("stale_edits"), "{}", run.stderr);
}

#[test]
fn a_patch_style_model_gets_apply_patch_and_others_get_edit() {
    for (model, is_offered) in [("openai-chat/gpt-5", true), ("openai-chat/gpt-4o", false)] {
        let server = ModelServer::start([Answer::text("Done.")]);
        let folder = folder().with_model(&server, Wire::Chat);
        folder.tw(&["run", "-m", model, "go"]).expect(0);
        let request = String::from_utf8_lossy(&server.last_request().raw).into_owned();
        let has = |name: &str| request.contains(&format!("\"name\":\"{name}\""));
        assert_eq!(has("apply_patch"), is_offered, "{model}");
        assert_eq!((has("edit"), has("write")), (!is_offered, !is_offered), "{model}");
    }
}

#[test]
fn a_patch_is_denied_as_a_whole_if_one_of_its_files_is() {
    let call = json!({ "patchText": PATCH }).to_string();
    let denied = folder()
        .user_config(r#"{"permission":{"edit":{"*":"allow","secret/*":"deny"}}}"#)
        .file("a.txt", "one\n");
    denied.tw(&["tools", "call", "apply_patch", &call]).expect(3);
    assert_eq!((denied.read("a.txt"), denied.read("secret/key")), ("one\n".into(), String::new()));

    let allowed = folder().user_config(r#"{"permission":{"edit":"allow"}}"#).file("a.txt", "one\n");
    let run = allowed.tw(&["tools", "call", "apply_patch", &call]).expect(0);
    assert!(
        run.stdout.contains("Success. Updated the following files:\nM a.txt\nA secret/key"),
        "{}",
        run.stdout
    );
    assert_eq!((allowed.read("a.txt"), allowed.read("secret/key")), ("1\n".into(), "x\n".into()));
}

#[test]
fn a_disk_that_fills_up_leaves_every_file_as_it_was() {
    let large = "x".repeat(60_000);
    let patch = format!(
        "*** Begin Patch\n*** Update File: a.txt\n@@\n-one\n+1\n*** Update File: b.txt\n@@\n-two\n+{large}\n*** End Patch"
    );
    let calls = [
        ("write", json!({"filePath": "b.txt", "content": large})),
        ("edit", json!({"filePath": "b.txt", "oldString": "two", "newString": large})),
        ("apply_patch", json!({ "patchText": patch })),
    ];
    for (tool, arguments) in calls {
        let folder = folder()
            .user_config(r#"{"permission":{"edit":"allow"}}"#)
            .file("a.txt", "one\n")
            .file("b.txt", "two\n");
        // No file may grow beyond 32 KiB, which is told as a failed write.
        let limited = "trap '' XFSZ; ulimit -f 32; exec \"$0\" tools call \"$@\"";
        let mut command = Command::new("bash");
        command.args(["-c", limited, env!("CARGO_BIN_EXE_tw"), tool, &arguments.to_string()]);
        folder.settle(&mut command);
        let output = command.output().unwrap();
        let told = String::from_utf8_lossy(&output.stdout).into_owned()
            + &String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{tool}: {told}");
        assert!(told.contains("Cannot write") && told.contains("b.txt"), "{tool}: {told}");
        assert_eq!((folder.read("a.txt"), folder.read("b.txt")), ("one\n".into(), "two\n".into()));
        let names = std::fs::read_dir(folder.work()).unwrap().count();
        assert_eq!(names, 2, "{tool}: no temporary file is left");
    }
}
