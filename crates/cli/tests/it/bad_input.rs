//! Bad input is the normal case: one clear message with cause and next step, the right status,
//! nothing lost.

use serde_json::json;
use toolwright_testkit::{Answer, Child, Folder, ModelServer, Reply, Wire};

use crate::folder;

/// No pause between tries in tests: what is tried again is covered where retries are.
const NO_RETRIES: &str = r#"{"provider":{"anthropic":{"options":{"retries":0}},"openai-chat":{"options":{"retries":0}}}}"#;

const RUN: &[&str] = &["run", "-m", "anthropic/m", "Keep this prompt"];

fn fails(folder: &Folder, code: i32, expected: &[&str]) {
    let run = folder.tw(RUN).expect(code);
    for part in expected {
        assert!(run.stderr.contains(part), "{part:?} in:\n{}", run.stderr);
    }
    assert!(folder.session_text().contains("Keep this prompt"), "the prompt is not lost");
}

fn with_answer(answer: Answer) -> (ModelServer, Folder) {
    let server = ModelServer::start([answer]);
    let folder = folder().user_config(NO_RETRIES).with_model(&server, Wire::Anthropic);
    (server, folder)
}

#[test]
fn a_refused_key() {
    let body =
        r#"{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"}}"#;
    let (_server, folder) = with_answer(Answer::status(401, body));
    fails(&folder, 1, &["status 401: invalid x-api-key", "Check the API key", "tw doctor"]);
}

#[test]
fn a_base_url_that_does_not_answer() {
    // A port that was just free and that nobody listens on.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let url = format!("http://127.0.0.1:{port}");
    let folder = folder()
        .user_config(NO_RETRIES)
        .env("ANTHROPIC_BASE_URL", &url)
        .env("ANTHROPIC_API_KEY", "x");
    fails(&folder, 1, &["cannot reach", &url, "refused", "Check the address"]);
}

#[test]
fn a_base_url_that_is_no_url() {
    let folder = folder()
        .user_config(NO_RETRIES)
        .env("ANTHROPIC_BASE_URL", "nonsense")
        .env("ANTHROPIC_API_KEY", "x");
    fails(&folder, 1, &["nonsense/v1/messages cannot be used", "base URL"]);
}

#[test]
fn a_server_that_sends_garbage() {
    for (body, expected) in [
        (
            &b"<html><body>Welcome to nginx</body></html>"[..],
            "it starts with: <html><body>Welcome to nginx",
        ),
        (&b"data: {broken\n\n"[..], "not valid JSON"),
        (&b"\x00\xff\xfe\x80"[..], "no event stream"),
        (&b""[..], "without sending an answer"),
    ] {
        let (_server, folder) = with_answer(Answer::Raw(body.to_vec()));
        fails(&folder, 1, &[expected, "base URL"]);
    }
}

#[test]
fn a_server_that_hangs_up() {
    let (_server, folder) = with_answer(Answer::Close);
    fails(&folder, 1, &["cannot reach", "Check the address"]);
}

#[test]
fn a_server_that_stops_in_the_middle_of_an_event() {
    let server =
        ModelServer::start([Reply::default().say("The beginning").cut_after_text().into()]);
    let folder = folder().user_config(NO_RETRIES).with_model(&server, Wire::Anthropic);
    let run = folder.tw(RUN).expect(1);
    assert_eq!(run.stdout, "The beginning\n", "what came is shown");
    assert!(run.stderr.contains("tw run -c"), "{}", run.stderr);
    server.then(Answer::text("whole"));
    assert_eq!(folder.tw(&["run", "-c", "-m", "anthropic/m"]).expect(0).stdout, "whole\n");
}

#[test]
fn a_server_in_trouble_is_tried_again_and_the_tries_are_shown() {
    let headers = vec![("retry-after-ms".to_owned(), "1".to_owned())];
    let busy = || Answer::Status {
        status: 529,
        headers: headers.clone(),
        body: r#"{"error":{"message":"Overloaded"}}"#.into(),
    };
    let server = ModelServer::start([busy(), busy(), Answer::text("at last")]);
    let folder = folder().with_model(&server, Wire::Anthropic);
    let run = folder.tw(RUN).expect(0);
    assert_eq!(run.stdout, "at last\n");
    assert!(
        run.stderr.contains("Overloaded; try 2") && run.stderr.contains("try 3"),
        "{}",
        run.stderr
    );
}

#[test]
fn an_unknown_model_is_sent_as_given_and_the_servers_words_are_shown() {
    let body = r#"{"error":{"type":"not_found_error","message":"model: no-such-model"}}"#;
    let server = ModelServer::start([Answer::status(404, body)]);
    let folder = folder().with_model(&server, Wire::Anthropic);
    let run = folder.tw(&["run", "-m", "anthropic/no-such-model", "hi"]).expect(1);
    assert!(
        run.stderr.contains("model: no-such-model")
            && run.stderr.contains("Check the model's name"),
        "{}",
        run.stderr
    );
    assert_eq!(server.last_request().body["model"], "no-such-model");
}

#[test]
fn names_that_do_not_exist_are_usage_errors_with_a_hint() {
    let folder = folder().env("ANTHROPIC_API_KEY", "x");
    for (arguments, expected) in [
        (&["run", "-m", "anthropc/m", "hi"][..], "did you mean \"anthropic\"?"),
        (&["run", "-m", "claude", "hi"][..], "write the model as PROVIDER/MODEL"),
        (&["run", "-m", "groq/m", "hi"][..], "set GROQ_API_KEY"),
        (&["run", "-a", "nobody", "hi"][..], "known agents: build, plan"),
        (&["run", "-s", "ses_nowhere", "hi"][..], "there is no session ses_nowhere"),
        (&["run", "-c", "hi"][..], "no session in"),
        (&["run", "--fork", "hi"][..], "add -c or -s"),
        (&["run"][..], "give a prompt"),
        (&["run", "-f", "nowhere.txt", "hi"][..], "cannot attach nowhere.txt"),
        (&["run", "--dir", "/nowhere/at/all", "hi"][..], "cannot work in /nowhere/at/all"),
        (&["show", "ses_nowhere"][..], "there is no session"),
        (&["frobnicate"][..], "unrecognized subcommand"),
        (&["run", "--max-steps", "0", "hi"][..], "--max-steps"),
    ] {
        let run = folder.tw(arguments).expect(2);
        assert!(run.stderr.contains(expected), "{arguments:?}: {}", run.stderr);
    }
    assert!(folder.session_files().is_empty(), "nothing was begun");
}

#[test]
fn a_configuration_file_with_a_mistake() {
    let folder =
        folder().file("toolwright.json", "{\n  \"model\": \"anthropic/m\"\n  \"steps\": 5\n}\n");
    let run = folder.tw(RUN).expect(2);
    assert!(
        run.stderr.contains("toolwright.json:2:25: not valid JSON: Expected comma"),
        "{}",
        run.stderr
    );
    folder.write("toolwright.json", "{\"steps\": \"many\"}");
    let run = folder.tw(RUN).expect(2);
    assert!(run.stderr.contains("toolwright.json:1:11: steps: invalid type"), "{}", run.stderr);
}

/// Runs `tw` where `path` is a file system of its own, mounted with `options`. Nothing if this
/// machine does not let us mount, which is said.
fn in_mount(
    folder: &Folder,
    path: &str,
    options: &str,
    arguments: &[&str],
) -> Option<toolwright_testkit::Finished> {
    let script = format!("mount -t tmpfs -o {options} tmpfs {path} && exec \"$@\"");
    let may_mount = |flags: &[&str]| {
        let mut probe = std::process::Command::new("unshare");
        probe.args(flags).args(["sh", "-c", &format!("mount -t tmpfs tmpfs {path}")]);
        probe.output().is_ok_and(|o| o.status.success())
    };
    let flags =
        [&["--mount"][..], &["--map-root-user", "--mount"][..]].into_iter().find(|f| may_mount(f));
    let Some(flags) = flags else {
        println!("skipped: this machine does not allow mounting a tmpfs");
        return None;
    };
    let mut command = std::process::Command::new("unshare");
    command.args(flags).args(["sh", "-c", &script, "sh", env!("CARGO_BIN_EXE_tw")]).args(arguments);
    folder.settle(&mut command);
    Some(Child::spawn(command).wait())
}

#[test]
fn a_full_disk_is_told_and_the_run_stops_before_it_does_more() {
    let server = ModelServer::start([
        Answer::call("bash", json!({"command": "head -c 200000 /dev/zero | tr '\\0' x"})),
        Answer::call("write", json!({"filePath": "after.txt", "content": "x"})),
        Answer::text("never"),
    ]);
    let folder = folder().with_model(&server, Wire::Anthropic);
    let data = folder.root().join("data").display().to_string();
    let arguments = ["run", "--auto", "-m", "anthropic/m", "fill it"];
    let Some(run) = in_mount(&folder, &data, "size=40k", &arguments) else { return };
    let run = run.expect(1);
    assert!(run.stderr.contains("cannot write the session file"), "{}", run.stderr);
    assert!(run.stderr.contains("No space left on device"), "{}", run.stderr);
    assert!(!folder.work().join("after.txt").exists());
}

#[test]
fn a_disk_that_is_full_from_the_start() {
    let folder = folder().env("ANTHROPIC_API_KEY", "x");
    let data = folder.root().join("data").display().to_string();
    let Some(run) = in_mount(&folder, &data, "size=4k,nr_inodes=1", RUN) else { return };
    let run = run.expect(1);
    assert!(
        run.stderr.contains("cannot write the session file")
            && run.stderr.contains("Free some space"),
        "{}",
        run.stderr
    );
}

#[test]
fn a_disk_that_fills_up_mid_write_leaves_every_file_as_it_was() {
    let large = "x".repeat(3 << 20);
    let update = format!(
        "*** Begin Patch\n*** Update File: small\n@@\n-old\n+new\n*** Add File: added\n+{large}\n*** End Patch"
    );
    let make = "yes line | head -c 5000000 >large; echo needle >>large; echo old >small; sleep 0.1";
    let look = "cat small; tail -n 1 large; wc -c <large; ls -A";
    let server = ModelServer::start([
        Answer::call("bash", json!({ "command": make })),
        Answer::call("write", json!({"filePath": "small", "content": large})),
        Answer::call("edit", json!({"filePath": "small", "oldString": "old", "newString": large})),
        Answer::call(
            "edit",
            json!({"filePath": "large", "oldString": "needle", "newString": "pin"}),
        ),
        Answer::call("apply_patch", json!({ "patchText": update })),
        Answer::call("bash", json!({ "command": look })),
        Answer::text("It is full."),
    ]);
    let folder = folder().with_model(&server, Wire::Anthropic);
    let work = folder.work().display().to_string();
    let arguments = ["run", "--auto", "--dir", &work, "-m", "anthropic/m", "fill it"];
    let Some(run) = in_mount(&folder, &work, "size=7m", &arguments) else { return };
    run.expect(0);
    let results = crate::results(&server.last_request());
    for failed in &results[1..5] {
        assert!(failed.contains("No space left on device"), "{failed}");
    }
    let names = results[5].split_whitespace().collect::<Vec<_>>();
    assert_eq!(names[..5], ["old", "needle", "5000007", "large", "small"], "{}", results[5]);
}

#[test]
fn a_workspace_that_cannot_be_written() {
    let server = ModelServer::start([
        Answer::call("write", json!({"filePath": "a.txt", "content": "x"})),
        Answer::text("It cannot be written."),
    ]);
    let folder = folder().with_model(&server, Wire::Anthropic);
    let work = folder.work().display().to_string();
    let arguments = ["run", "--auto", "--dir", &work, "-m", "anthropic/m", "write it"];
    let Some(run) = in_mount(&folder, &work, "ro", &arguments) else { return };
    let run = run.expect(0);
    assert!(
        run.stderr.contains("✗ write") && run.stderr.contains("Read-only file system"),
        "{}",
        run.stderr
    );
    assert!(crate::results(&server.last_request())[0].contains("Cannot write"));
}

#[test]
fn a_reader_that_goes_away_ends_the_run() {
    let server = ModelServer::start([
        Answer::call("bash", json!({"command": "echo 1"})),
        Answer::call("bash", json!({"command": "touch too-far"})),
        Answer::text("never"),
    ]);
    let folder = folder().with_model(&server, Wire::Anthropic);
    let mut command =
        folder.command(&["run", "--auto", "--format", "json", "-m", "anthropic/m", "go"]);
    let mut child = command.spawn().unwrap();
    drop(child.stdout.take());
    let code = child.wait().unwrap().code();
    assert!(matches!(code, Some(1 | 130)), "{code:?}");
    assert!(!folder.work().join("too-far").exists());
}

#[test]
fn a_key_that_the_server_repeats_is_not_shown() {
    let body = r#"{"error":{"message":"Received=test-key, expected to start with sk-"}}"#;
    let (_server, folder) = with_answer(Answer::status(401, body));
    let run = folder.tw(RUN).expect(1);
    assert!(
        run.stderr.contains("Received=***") && !run.stderr.contains("test-key"),
        "{}",
        run.stderr
    );
    assert!(!folder.session_text().contains("test-key"));
}
