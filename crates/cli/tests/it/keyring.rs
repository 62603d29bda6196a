//! Keys in the system's keyring, with a `secret-tool` that keeps them in a folder.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use serde_json::json;
use toolwright_testkit::{Answer, Child, Finished, Folder, ModelServer, Wire};

use crate::folder;

const KEY: &str = "sk-ant-secret-0123456789";

/// `script` is what the command does for its first argument, with its own folder in `$ring`.
fn with_keyring(folder: Folder, script: &str) -> Folder {
    let ring = folder.root().join("ring");
    std::fs::create_dir_all(&ring).unwrap();
    let program = ring.join("secret-tool");
    let place = ring.display();
    let text = format!("#!/bin/sh\nring={place}\necho \"$@\" >> $ring/asked\n{script}\n");
    std::fs::write(&program, text).unwrap();
    std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
    let path = format!("{place}:{}", std::env::var("PATH").unwrap());
    folder.env("PATH", &path).env("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nowhere")
}

const WORKS: &str = r#"case "$1" in
    store) cat > $ring/key;;
    lookup) cat $ring/key;;
    clear) rm $ring/key;;
esac"#;

fn login(folder: &Folder) -> Finished {
    let mut command = folder.command(&["auth", "login", "anthropic"]);
    let (reader, mut writer) = std::io::pipe().unwrap();
    writeln!(writer, "{KEY}").unwrap();
    drop(writer);
    command.stdin(Stdio::from(reader));
    Child::spawn(command).wait()
}

fn asked(folder: &Folder) -> String {
    std::fs::read_to_string(folder.root().join("ring/asked")).unwrap_or_default()
}

fn stored(folder: &Folder) -> String {
    std::fs::read_to_string(folder.root().join("data/toolwright/auth.json")).unwrap()
}

#[test]
fn a_key_goes_to_the_keyring_and_is_fetched_only_when_it_is_needed() {
    let folder = with_keyring(folder(), WORKS);
    let run = login(&folder).expect(0);
    assert!(run.stderr.contains("the system's keyring"), "{}", run.stderr);
    assert!(!stored(&folder).contains(KEY) && stored(&folder).contains("keyring"));
    assert_eq!(std::fs::read_to_string(folder.root().join("ring/key")).unwrap(), KEY);
    assert!(!asked(&folder).contains(KEY), "a key stands in no process list: {}", asked(&folder));

    let list = folder.tw(&["auth", "list"]).expect(0).stdout;
    assert_eq!(list, "anthropic        stored (keyring)\n");
    folder.tw(&["run", "-m", "demo", "hi"]).expect(0);
    folder.tw(&["doctor"]).expect(0);
    let lookups = |folder: &Folder| asked(folder).matches("lookup").count();
    assert_eq!(lookups(&folder), 1, "only the doctor looks, at the model that would be used");

    let peek = json!({"command": "cat ../ring/key", "description": "Look"});
    let server = ModelServer::start([Answer::call("bash", peek), Answer::text("Hello.")]);
    let folder = folder.env("ANTHROPIC_BASE_URL", &server.url());
    folder.tw(&["run", "--auto", "hi"]).expect(0);
    assert_eq!(server.last_request().header("x-api-key"), Some(KEY));
    let results = crate::results(&server.last_request());
    assert!(results[0].contains("[masked: stored key of anthropic]"), "{results:?}");
    assert_eq!(lookups(&folder), 2);

    let server = ModelServer::start([Answer::text("Hello.")]);
    let folder = folder.env("ANTHROPIC_API_KEY", "another").with_model(&server, Wire::Chat);
    folder.tw(&["run", "-m", Wire::Chat.model(), "hi"]).expect(0);
    assert_eq!(lookups(&folder), 2, "another provider's key is not looked for");

    folder.tw(&["auth", "logout", "anthropic"]).expect(0);
    assert!(!folder.root().join("ring/key").exists());
    assert!(!stored(&folder).contains("anthropic"));
}

#[test]
fn a_keyring_that_refuses_leaves_the_key_in_the_file_and_says_so() {
    let folder = with_keyring(folder(), "exit 1");
    let run = login(&folder).expect(0);
    assert!(run.stderr.contains("keyring refused"), "{}", run.stderr);
    assert!(stored(&folder).contains(KEY));
    let file = std::fs::metadata(folder.root().join("data/toolwright/auth.json")).unwrap();
    assert_eq!(file.permissions().mode() & 0o777, 0o600);
}

#[test]
fn without_a_session_bus_the_file_is_used_silently() {
    let folder = with_keyring(folder(), WORKS).env("DBUS_SESSION_BUS_ADDRESS", "");
    let run = login(&folder).expect(0);
    assert!(!run.stderr.contains("keyring"), "{}", run.stderr);
    assert!(stored(&folder).contains(KEY) && asked(&folder).is_empty());
}

#[test]
fn a_key_that_the_keyring_lost_is_an_error_that_says_what_to_do() {
    let folder = with_keyring(folder(), "[ $1 = store ]");
    login(&folder).expect(0);
    let run = folder.tw(&["run", "hi"]).expect(2);
    for words in ["keyring", "ANTHROPIC_API_KEY", "tw auth login anthropic"] {
        assert!(run.stderr.contains(words), "{words}: {}", run.stderr);
    }
}

#[test]
fn entries_of_other_programs_in_the_store_stay() {
    let folder = folder();
    let path = folder.root().join("data/toolwright");
    std::fs::create_dir_all(&path).unwrap();
    std::fs::write(path.join("auth.json"), r#"{"x": {"type": "oauth", "refresh": "r"}}"#).unwrap();
    login(&folder).expect(0);
    assert!(stored(&folder).contains("oauth") && stored(&folder).contains(KEY));
}
