//! What patches do to a folder, and what they say.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};
use toolwright_tool::{Audience, Registry};
use toolwright_tools::{BashOptions, Feedback, register_all};

use crate::support::{Session, is_root};

fn patch(body: &str) -> Value {
    json!({ "patchText": format!("*** Begin Patch\n{body}\n*** End Patch") })
}

#[tokio::test]
async fn updates_change_the_lines_they_name_and_no_others() {
    let cases: &[(&str, &str, &str, &str)] = &[
        ("two chunks", "1\n2\n3\n4\n5\n", "@@\n-1\n+one\n@@\n-5\n+five", "one\n2\n3\n4\nfive\n"),
        ("between context", "a\nb\n", "@@\n a\n+x\n b", "a\nx\nb\n"),
        (
            "second of two by header",
            "fn a\nx=10\nfn b\nx=10\n",
            "@@ fn b\n-x=10\n+x=11",
            "fn a\nx=10\nfn b\nx=11\n",
        ),
        (
            "headers one below the other",
            "class A\n def f\n  1\nclass B\n def f\n  1\n",
            "@@ class B\n@@  def f\n-  1\n+  2",
            "class A\n def f\n  1\nclass B\n def f\n  2\n",
        ),
        ("addition after its header", "a\nb\nc\n", "@@ a\n+x", "a\nx\nb\nc\n"),
        ("addition without header", "a\nb\n", "@@\n+x\n+y", "a\nb\nx\ny\n"),
        ("addition, then a change above it", "a\nb\n", "@@\n+x\n@@\n-a\n+A", "A\nb\nx\n"),
        ("into an empty file", "", "@@\n+First line", "First line\n"),
        ("trailing blanks in the file", "a  \nb\t\nc\n", "@@\n a\n-b\n+B\n c", "a  \nB\nc\n"),
        ("other indent in the file", "\ta\n\tb\n", "@@\n   a\n-  b\n+  B", "\ta\n  B\n"),
        (
            "typographic marks in the file",
            "“x” — y…\nkeep’s\n",
            "@@\n-\"x\" - y...\n+z\n keep's",
            "z\nkeep’s\n",
        ),
        ("the last of two at the end", "e\nx\ne\n", "@@\n-e\n+E\n*** End of File", "e\nx\nE\n"),
        (
            "a hunk after the end of a file marker",
            "a\nb\n",
            "@@\n-a\n+A\n@@\n-b\n+B\n*** End of File",
            "A\nB\n",
        ),
        ("no final newline", "a\nb", "@@\n-a\n+A", "A\nb\n"),
        ("no final newline, appended", "a\nb", "@@\n b\n+c", "a\nb\nc\n"),
        ("no final newline, last line goes", "a\nb", "@@\n a\n-b", "a\n"),
        ("all lines go", "a\nb\n", "@@\n-a\n-b", ""),
        (
            "line ends of the file",
            "a\r\nb\r\nc\r\n",
            "@@\n a\n-b\n+B1\n+B2\n c\n+d",
            "a\r\nB1\r\nB2\r\nc\r\nd\r\n",
        ),
        ("mixed line ends", "a\r\nb\nc\r\n", "@@\n a\n-b\n+B\n c", "a\r\nB\nc\r\n"),
        ("after a byte-order mark", "\u{feff}a\nb\n", "@@\n+x\n a", "\u{feff}x\na\nb\n"),
        ("a blank line before the next section", "a\nb\n", "@@\n-a\n+A\n\n", "A\nb\n"),
        ("no header at first", "a\nb\n", "-a\n+A\n b", "A\nb\n"),
    ];
    for (what, before, hunks, after) in cases {
        let session = Session::new(&[("f", before.as_bytes())]);
        let outcome =
            session.ok("apply_patch", patch(&format!("*** Update File: f\n{hunks}"))).await;
        assert_eq!(String::from_utf8(session.bytes("f")).unwrap(), *after, "{what}");
        assert_eq!(outcome.output, "Success. Updated the following files:\nM f", "{what}");
    }
}

#[tokio::test]
async fn what_does_not_fit_is_refused_with_the_place() {
    let head = "apply_patch verification failed: ";
    let cases: &[(&str, &str)] = &[
        ("*** Update File: f\n@@ nowhere\n-a\n+b", "Failed to find context 'nowhere' in f"),
        ("*** Update File: f\n@@\n-x\n+b", "Failed to find expected lines in f:\nx"),
        ("*** Update File: f\n@@\n-c\n+C\n@@\n-a\n+A", "Failed to find expected lines in f:\na"),
        ("*** Update File: f\n@@\n-a\n\n-c", "Failed to find expected lines in f:\na\n\nc"),
        ("*** Update File: f\n@@\n-a\n+A\n*** End of File", "Failed to find expected lines"),
        ("*** Update File: none\n@@\n-a\n+b", "Failed to read file to update: none"),
        ("*** Update File: d\n@@\n-a\n+b", "Failed to read file to update: d"),
        ("*** Delete File: none", "Failed to read file to delete: none"),
        ("*** Delete File: d", "Path is a directory"),
        ("*** Add File: d\n+x", "Path is a directory"),
        ("*** Add File: f/below\n+x", "Not a directory"),
        ("*** Delete File: f\n*** Update File: f\n@@\n-a\n+b", "Failed to read file to update: f"),
        ("*** Update File: f", "line 2: the update of f has no hunk"),
        ("*** Update File: f\n*** Move to: g", "line 2: the update of f has no hunk"),
        ("*** Update File: f\n@@", "hunk is empty"),
        ("*** Update File: f\n@@\n-a\n+A\nb", "line 6: a hunk must start with '@@', this is 'b'."),
        ("*** Frobnicate File: f", "line 2: '*** Frobnicate File: f' is not a section header"),
        ("*** Add File:\n+x", "line 2: the path is missing"),
        ("*** Add File: g\n+a\nb", "line 4: 'b' is not a section header"),
        ("*** Update File: latin\n@@\n-a\n+b", "latin is not encoded as UTF-8"),
    ];
    let session = Session::new(&[("f", b"a\nb\nc\n"), ("d/x", b""), ("latin", b"a \xe4\n")]);
    let before = session.tree();
    for (body, expected) in cases {
        // Together with what would work: that must not happen either.
        for body in [(*body).to_owned(), format!("*** Add File: new/file\n+x\n{body}")] {
            let error = session.error("apply_patch", patch(&body)).await;
            let expected =
                expected.replace("line 2", "").replace("line 4", "").replace("line 6", "");
            assert!(error.starts_with(head) && error.contains(&expected), "{body}\n{error}");
            assert_eq!(session.tree(), before, "{body}");
            assert!(!session.path("new").exists());
        }
        let error = session.error("apply_patch", patch(body)).await;
        assert!(error.contains(expected), "{body}\n{error}");
    }
    for (text, expected) in [
        ("", "patchText is required"),
        (" \n", "patchText is required"),
        ("just words", "apply_patch verification failed: Invalid patch format"),
        ("*** Begin Patch\n*** End Patch", "patch rejected: empty patch"),
        ("*** End Patch\n*** Begin Patch", "Invalid patch format"),
        ("words\n*** Begin Patch\n*** Add File: x\n+x\n*** End Patch", "Invalid patch format"),
        ("*** Begin Patch\n*** Add File: x\n+x", "Invalid patch format"),
    ] {
        let error = session.error("apply_patch", json!({ "patchText": text })).await;
        assert!(error.contains(expected), "{text:?}: {error}");
    }
    assert_eq!(session.tree(), before);
}

#[tokio::test]
async fn a_failed_match_shows_the_closest_lines() {
    let session = Session::new(&[("f", b"one\nlet total = 1;\nthree\n")]);
    let error = session
        .error("apply_patch", patch("*** Update File: f\n@@\n one\n-let total = 2;\n three"))
        .await;
    assert!(error.contains("-    2 let total = 1;\n+      let total = 2;"), "{error}");
}

#[tokio::test]
async fn one_patch_adds_deletes_updates_and_moves() {
    let session = Session::new(&[
        ("gone", b"x\n"),
        ("f", b"a\n"),
        ("old", b"m\nn\n"),
        ("there/new", b"in the way\n"),
    ]);
    fs::set_permissions(session.path("old"), fs::Permissions::from_mode(0o755)).unwrap();
    fs::remove_file(session.path("there/new")).unwrap();
    let body = "*** Add File: deep/added\n+1\n+2\n*** Delete File: gone\n*** Update File: f\n@@\n-a\n+A\n\
                *** Update File: old\n*** Move to: there/new\n@@\n m\n-n\n+N\n";
    let outcome = session.ok("apply_patch", patch(body)).await;
    assert_eq!(
        outcome.output,
        "Success. Updated the following files:\nA deep/added\nD gone\nM f\nM there/new"
    );
    let tree = session.tree();
    let names: Vec<&str> = tree.keys().map(String::as_str).collect();
    assert_eq!(names, ["deep/added", "f", "there/new"]);
    assert_eq!(session.bytes("deep/added"), b"1\n2\n");
    assert_eq!(session.bytes("there/new"), b"m\nN\n");
    assert_eq!(
        fs::metadata(session.path("there/new")).unwrap().permissions().mode() & 0o777,
        0o755
    );
    let files = outcome.details["files"].as_array().unwrap();
    let kinds: Vec<&str> = files.iter().map(|f| f["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["add", "delete", "update", "move"]);
    assert_eq!(files[3]["relativePath"], "there/new");
    assert_eq!(files[3]["filePath"], json!(session.path("old")));
    assert_eq!(files[3]["movePath"], json!(session.path("there/new")));
    assert_eq!((&files[3]["additions"], &files[3]["deletions"]), (&json!(1), &json!(1)));
    assert_eq!(outcome.details["diff"].as_str().unwrap().matches("Index: ").count(), 4);
}

#[tokio::test]
async fn sections_see_what_those_before_them_did() {
    let cases: &[(&str, &[(&str, &str)])] = &[
        ("*** Delete File: f\n*** Add File: f\n+new", &[("f", "new\n"), ("g", "g\n")]),
        (
            "*** Update File: f\n@@\n-1\n+one\n*** Update File: f\n@@\n-2\n+two",
            &[("f", "one\ntwo\n"), ("g", "g\n")],
        ),
        (
            "*** Add File: n\n+a\n*** Update File: n\n@@\n-a\n+b",
            &[("f", "1\n2\n"), ("g", "g\n"), ("n", "b\n")],
        ),
        ("*** Update File: f\n*** Move to: g\n@@\n-1\n+one", &[("g", "one\n2\n")]),
        ("*** Update File: f\n*** Move to: f\n@@\n-1\n+one", &[("f", "one\n2\n"), ("g", "g\n")]),
        ("*** Update File: f\n*** Move to: ./f\n@@\n-1\n+one", &[("f", "one\n2\n"), ("g", "g\n")]),
        ("*** Add File: n\n+a\n*** Delete File: n", &[("f", "1\n2\n"), ("g", "g\n")]),
        ("*** Delete File: f\n*** Add File: f/below\n+x", &[("f", "1\n2\n"), ("g", "g\n")]),
    ];
    for (body, after) in cases {
        let session = Session::new(&[("f", b"1\n2\n"), ("g", b"g\n")]);
        let outcome = session.call("apply_patch", patch(body)).await;
        let tree: Vec<(String, String)> = session
            .tree()
            .into_iter()
            .map(|(name, content)| (name, String::from_utf8(content).unwrap()))
            .collect();
        let after: Vec<(String, String)> =
            after.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect();
        assert_eq!(tree, after, "{body}\n{}", outcome.output);
    }
}

#[tokio::test]
async fn wrapped_and_padded_patches_are_understood() {
    let plain = "*** Begin Patch\n*** Update File: f\n@@\n-a\n+b\n*** End Patch";
    let texts = [
        format!("<<'EOF'\n{plain}\nEOF"),
        format!("<<EOF\n{plain}\nEOF\n"),
        format!("cat <<\"TAG\"\n{plain}\nTAG"),
        format!("apply_patch <<'PATCH'\n{plain}\nPATCH"),
        format!("\n\n{plain}\n\n"),
        plain.replace('\n', "\r\n"),
        plain.replace("*** Begin Patch", "  *** Begin Patch  ").replace("*** End", " *** End"),
        plain.replace("*** Update File: f", " *** Update File:   f  "),
        plain.replace("*** Update File: f", "*** Update File:f"),
        plain.replace("@@", "@@ "),
    ];
    for text in texts {
        let session = Session::new(&[("f", b"a\n")]);
        session.ok("apply_patch", json!({ "patchText": text })).await;
        assert_eq!(session.bytes("f"), b"b\n", "{text}");
    }
}

#[tokio::test]
async fn a_write_that_fails_midway_is_taken_back() {
    // Between plan and run the second target's folder becomes a file.
    let block = |folder: &std::path::Path| fs::write(folder.join("z"), "in the way").unwrap();
    let session = Session::with(
        &[("a", b"1\n"), ("gone", b"x\n"), ("m", b"move\n")],
        toolwright_tools::StaleEdits::Error,
        block,
    );
    fs::set_permissions(session.path("gone"), fs::Permissions::from_mode(0o640)).unwrap();
    let body = "*** Update File: a\n@@\n-1\n+2\n*** Delete File: gone\n*** Add File: new/deep/file\n+x\n\
                *** Update File: m\n*** Move to: moved/m\n@@\n-move\n+moved\n*** Add File: z/file\n+x";
    let error = session.error("apply_patch", patch(body)).await;
    assert!(error.contains("z/file"), "{error}");
    let tree = session.tree();
    let names: Vec<&str> = tree.keys().map(String::as_str).collect();
    assert_eq!(names, ["a", "gone", "m", "z"], "{error}");
    assert_eq!((session.bytes("a"), session.bytes("gone")), (b"1\n".to_vec(), b"x\n".to_vec()));
    assert_eq!(fs::metadata(session.path("gone")).unwrap().permissions().mode() & 0o777, 0o640);
    assert!(!session.path("new").exists() && !session.path("moved").exists());
}

#[tokio::test]
async fn a_folder_that_cannot_be_written_leaves_all_files_as_they_were() {
    if is_root() {
        println!("skipped: root may write everywhere");
        return;
    }
    let session = Session::new(&[("a", b"1\n"), ("locked/f", b"1\n")]);
    let lock = |mode| fs::set_permissions(session.path("locked"), fs::Permissions::from_mode(mode));
    lock(0o555).unwrap();
    let body = "*** Update File: a\n@@\n-1\n+2\n*** Update File: locked/f\n@@\n-1\n+2";
    let error = session.error("apply_patch", patch(body)).await;
    lock(0o755).unwrap();
    assert!(error.contains("No file was changed."), "{error}");
    assert_eq!((session.bytes("a"), session.bytes("locked/f")), (b"1\n".to_vec(), b"1\n".to_vec()));
}

#[test]
fn patch_style_models_are_offered_patches_in_place_of_edits() {
    let registry = Registry::default();
    register_all(&registry, BashOptions::default(), &Feedback::default());
    let offered = |model: &str| {
        let audience = Audience { model, denied: &|_| false, budget_tokens: None };
        let names = registry.offer(&audience).definitions.into_iter().map(|d| d.name);
        names
            .filter(|n| ["apply_patch", "edit", "write", "multiedit"].contains(&n.as_str()))
            .collect::<Vec<_>>()
    };
    for model in ["gpt-5", "openai/gpt-5.1-codex", "gpt-6-mini"] {
        assert_eq!(offered(model), ["apply_patch"], "{model}");
    }
    for model in ["claude-sonnet", "gpt-4o", "gpt-4.1", "gpt-oss-120b", "gemini-pro", "o3"] {
        assert_eq!(offered(model), ["edit", "write"], "{model}");
    }
    let audience = Audience { model: "gpt-5", denied: &|key| key == "edit", budget_tokens: None };
    let names: Vec<String> =
        registry.offer(&audience).definitions.into_iter().map(|d| d.name).collect();
    assert!(!names.iter().any(|n| n == "apply_patch" || n == "edit"), "{names:?}");
}
