//! A file that something else changed since it was read is not overwritten unseen.

use std::fs::{self, File};
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};
use toolwright_tools::StaleEdits;

use crate::support::Session;

fn changes() -> [(&'static str, Value); 5] {
    let patch = "*** Begin Patch\n*** Update File: f\n@@\n-mine\n+new\n*** End Patch";
    [
        ("edit", json!({"filePath": "f", "oldString": "mine", "newString": "new"})),
        (
            "multiedit",
            json!({"filePath": "f", "edits": [{"oldString": "mine", "newString": "new"}]}),
        ),
        ("write", json!({"filePath": "f", "content": "new\n"})),
        ("apply_patch", json!({"patchText": patch})),
        ("apply_patch", json!({"patchText": "*** Begin Patch\n*** Delete File: f\n*** End Patch"})),
    ]
}

#[tokio::test]
async fn what_changed_since_it_was_read_must_be_read_again() {
    for (tool, arguments) in changes() {
        let session = Session::new(&[("f", b"mine\n")]);
        session.ok("read", json!({"filePath": "f"})).await;
        fs::write(session.path("f"), "mine\nand theirs\n").unwrap();
        let error = session.error(tool, arguments.clone()).await;
        assert!(
            error.contains("File f has been modified since it was last read"),
            "{tool}: {error}"
        );
        assert_eq!(session.bytes("f"), b"mine\nand theirs\n");
        session.ok("read", json!({"filePath": "f"})).await;
        session.ok(tool, arguments).await;
    }
}

#[tokio::test]
async fn a_file_that_was_never_read_or_only_touched_may_be_changed() {
    for (tool, arguments) in changes() {
        let session = Session::new(&[("f", b"mine\n")]);
        fs::write(session.path("f"), "mine\n").unwrap();
        session.ok(tool, arguments.clone()).await;

        let session = Session::new(&[("f", b"mine\n")]);
        session.ok("read", json!({"filePath": "f"})).await;
        let later = SystemTime::now() + Duration::from_secs(60);
        File::options().write(true).open(session.path("f")).unwrap().set_modified(later).unwrap();
        session.ok(tool, arguments).await;
    }
}

#[tokio::test]
async fn what_the_session_wrote_itself_it_has_seen() {
    let session = Session::new(&[]);
    session.ok("write", json!({"filePath": "f", "content": "a b c"})).await;
    for (old, new) in [("a", "1"), ("b", "2")] {
        session.ok("edit", json!({"filePath": "f", "oldString": old, "newString": new})).await;
    }
    fs::write(session.path("f"), "theirs c").unwrap();
    let error =
        session.error("edit", json!({"filePath": "f", "oldString": "c", "newString": "3"})).await;
    assert!(error.contains("modified since it was last read"), "{error}");
}

#[tokio::test]
async fn it_can_be_switched_off() {
    for (tool, arguments) in changes() {
        let session = Session::with(&[("f", b"mine\n")], StaleEdits::Allow, |_| {});
        session.ok("read", json!({"filePath": "f"})).await;
        fs::write(session.path("f"), "mine\nand theirs\n").unwrap();
        session.ok(tool, arguments).await;
    }
}

#[tokio::test]
async fn what_changes_between_decision_and_writing_is_noticed_whatever_is_set() {
    for (tool, arguments) in changes() {
        let meanwhile = |folder: &std::path::Path| fs::write(folder.join("f"), "theirs").unwrap();
        let session = Session::with(&[("f", b"mine\n")], StaleEdits::Allow, meanwhile);
        let error = session.error(tool, arguments.clone()).await;
        assert!(error.contains("f was changed by something else just now"), "{tool}: {error}");
        assert_eq!(session.bytes("f"), b"theirs");

        let vanish = |folder: &std::path::Path| fs::remove_file(folder.join("f")).unwrap();
        let session = Session::with(&[("f", b"mine\n")], StaleEdits::Error, vanish);
        let error = session.error(tool, arguments).await;
        assert!(error.contains("f was changed by something else just now"), "{tool}: {error}");
        assert!(session.tree().is_empty());
    }
}
