//! What `edit`, `multiedit` and `write` do to files, and what they say.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use crate::support::Session;

fn edit(old: &str, new: &str) -> Value {
    json!({ "filePath": "f", "oldString": old, "newString": new })
}

fn everywhere(old: &str, new: &str) -> Value {
    json!({ "filePath": "f", "oldString": old, "newString": new, "replaceAll": true })
}

#[tokio::test]
async fn each_matcher_finds_its_place_and_is_named() {
    let cases: &[(&str, &str, &str, &str, &str)] = &[
        ("exact", "one two\n", "two", "2", "one 2\n"),
        ("line-trimmed", "\tif x:\n\t\ty()\n", "if x:\n  y()\n", "pass", "pass\n"),
        ("line-trimmed", "a  \nb\t\nc\n", "a\nb", "x", "x\nc\n"),
        (
            "block-anchor",
            "fn f() {\n    let total = 10;\n    total\n}\nrest\n",
            "fn f() {\n    let total = 11;\n    total\n}",
            "fn f() {}",
            "fn f() {}\nrest\n",
        ),
        ("block-anchor", "a\n\nb\nc\n", "a\nb\n", "x", "x\nc\n"),
        ("whitespace-normalized", "foo   bar baz\n", "foo bar", "qux", "qux baz\n"),
        ("whitespace-normalized", "call( a,\t b )\n", "call( a, b )", "x", "x\n"),
        ("whitespace-normalized", "z\nf( a,  b\n   , c)\n", "f( a,\nb , c)", "x", "z\nx\n"),
        ("escape-normalized", "a\nb\n", "a\\nb", "x", "x\n"),
        ("escape-normalized", "p(\"a\\tb\")\n", "p(\"a\tb\")", "x", "x\n"),
        ("escape-normalized", "1\n2\n3\n4\n5\n", "1\\n2\\n3\\n4\\n5", "x", "x\n"),
        ("trimmed-boundary", "x one\ntwo y\n", "\none\ntwo\n", "2", "x 2 y\n"),
        (
            "context-aware",
            "begin\n  same line\n  quite another thing here\nend\n",
            "begin\n  same line\n  x\nend",
            "y",
            "y\n",
        ),
    ];
    for (matcher, before, old, new, after) in cases {
        let session = Session::new(&[("f", before.as_bytes())]);
        let outcome = session.ok("edit", edit(old, new)).await;
        assert_eq!(String::from_utf8(session.bytes("f")).unwrap(), *after, "{matcher}: {old:?}");
        assert_eq!(outcome.details["matcher"], *matcher, "{old:?}");
        assert!(outcome.output.starts_with("Edit applied successfully."));
        assert_eq!(outcome.output.contains(matcher), *matcher != "exact", "{}", outcome.output);
    }
}

#[tokio::test]
async fn what_is_not_certain_is_refused_and_changes_nothing() {
    let repeated = "x\n".repeat(40) + "y\n";
    let cases: &[(&str, &str, &str)] = &[
        // The same words with other blanks are as good a match, not a way to tell them apart.
        ("  foo\n\tfoo\n", "foo", "Found multiple matches for oldString in f: 2, at lines 1, 2."),
        ("  a\n  b\n--\n    a\n    b\n", "a\nb", "at lines 1, 4 (none exactly; by line-trimmed)"),
        ("a  b a   b\n", "a b", "Found multiple matches"),
        // Nothing but blanks is nowhere, unless it is exactly there.
        ("a\n\nb\n", "  ", "Could not find oldString"),
        ("a\n", "\t", "Could not find oldString"),
        // First and last line are not enough.
        (
            "def f():\n  one\n  two\n  three\n  four\nend\n",
            "def f():\n  other\nend",
            "Could not find oldString",
        ),
        ("def f():\n  one\nend\n", "def f():\n  wholly different\nend", "Could not find oldString"),
        ("a\nunseen\nb\n", "a\nb\n", "Could not find oldString"),
        ("say “hi”\n", "say \"hi\"", "Could not find oldString"),
        ("cafe\u{301}\n", "caf\u{e9}", "Could not find oldString"),
        (&repeated, "x\n", "40, at lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, …."),
    ];
    for (before, old, expected) in cases {
        let session = Session::new(&[("f", before.as_bytes())]);
        let error = session.error("edit", edit(old, "new")).await;
        assert!(error.contains(expected), "{old:?}: {error}");
        assert_eq!(session.bytes("f"), before.as_bytes());
    }
}

#[tokio::test]
async fn errors_show_the_places_that_were_meant() {
    let before =
        "fn a() {\n    let x = 1;\n    go(x);\n}\n\nfn b() {\n    let y = 2;\n    go(y);\n}\n";
    let session = Session::new(&[("f", before.as_bytes())]);
    let old = "fn b() {\n    let y = 3;\n    run(z, z, z, z, z);\n}";
    let error = session.error("edit", edit(old, "")).await;
    let expected = "The closest part is lines 6-9 ('-' is in the file, '+' is your oldString):\n\
                    \x20    6 fn b() {\n-    7     let y = 2;\n-    8     go(y);\n+          let y = 3;\n\
                    +          run(z, z, z, z, z);\n     9 }";
    assert!(error.ends_with(expected), "{error}");
    let error = session.error("edit", edit("let total_of_y = 2", "")).await;
    assert!(!error.contains("closest"), "nothing is like it: {error}");
    let error = session.error("edit", edit("    let yy = 22;", "")).await;
    assert!(error.contains("-    7     let y = 2;\n+          let yy = 22;"), "{error}");
    let error = session.error("edit", edit("go(", "")).await;
    assert!(error.ends_with("\n\n3:     go(x);\n8:     go(y);"), "{error}");
}

#[tokio::test]
async fn replace_all_means_every_occurrence_of_the_matched_text() {
    let cases: &[(&str, &str, &str, &str, usize)] = &[
        ("foo bar foo baz foo\n", "foo", "qux", "qux bar qux baz qux\n", 3),
        ("a\r\nb\r\na\r\nb\r\n", "a\nb", "x\ny", "x\r\ny\r\nx\r\ny\r\n", 2),
        ("p $& q\n", "$&", "$$ $1 $`", "p $$ $1 $` q\n", 1),
        ("aaaa\n", "aa", "b", "bb\n", 2),
        ("f( a )\n  f( a )\n", "f(  a  )", "g", "g\n  g\n", 2),
    ];
    for (before, old, new, after, count) in cases {
        let session = Session::new(&[("f", before.as_bytes())]);
        let outcome = session.ok("edit", everywhere(old, new)).await;
        assert_eq!(String::from_utf8(session.bytes("f")).unwrap(), *after);
        assert_eq!(outcome.details["replacements"], *count);
    }
}

#[tokio::test]
async fn replace_all_names_the_places_that_it_left() {
    let session = Session::new(&[("f", b"\tfoo( a )\nfoo(a )\n    foo( a )\n foo(  a  )\n")]);
    let outcome = session.ok("edit", everywhere("foo(   a )", "g")).await;
    assert_eq!(session.bytes("f"), b"g\nfoo(a )\n    foo( a )\n foo(  a  )\n");
    let expected = " Not replaced, because their blanks differ: lines 3, 4.";
    assert!(outcome.output.ends_with(expected), "{}", outcome.output);
}

#[tokio::test]
async fn line_ends_mark_mode_and_encoding_stay() {
    let cases: &[(&[u8], &str, &str, &[u8])] = &[
        (b"a\r\nb\r\n", "a\nb", "x\ny\nz", b"x\r\ny\r\nz\r\n"),
        (b"a\nb\n", "a\r\nb", "x\r\ny", b"x\ny\n"),
        (b"a\r\nb\nc\n", "b\nc", "x\ny", b"a\r\nx\ny\n"),
        (b"a\r\nb\nc\n", "b", "x\ny", b"a\r\nx\r\ny\nc\n"),
        (b"\xEF\xBB\xBFone\ntwo", "one", "1", b"\xEF\xBB\xBF1\ntwo"),
        (b"\xEF\xBB\xBFone\n", "\u{feff}one", "\u{feff}1", b"\xEF\xBB\xBF1\n"),
        (b"\xEF\xBB\xBF  one\n", "one \n", "1", b"\xEF\xBB\xBF1\n"),
        (b"lone\rreturn\n", "lone", "x\ny", b"x\ny\rreturn\n"),
        (b"latin \xe4 text\n", "text", "TEXT", b"latin \xe4 TEXT\n"),
        (b"nul\0 here\n", "here", "x", b"nul\0 x\n"),
        (b"  a\r\n  b\r\nc", "a\nb", "x\ny", b"x\r\ny\r\nc"),
    ];
    for (before, old, new, after) in cases {
        let session = Session::new(&[("f", before)]);
        fs::set_permissions(session.path("f"), fs::Permissions::from_mode(0o751)).unwrap();
        let outcome = session.ok("edit", edit(old, new)).await;
        assert_eq!(session.bytes("f"), *after, "{old:?} in {}", before.escape_ascii());
        assert_eq!(fs::metadata(session.path("f")).unwrap().permissions().mode() & 0o777, 0o751);
        let diff = outcome.details["diff"].as_str().unwrap();
        assert!(diff.starts_with("Index: f\n====") && !diff.contains('\u{feff}'), "{diff}");
    }
}

#[tokio::test]
async fn what_is_not_utf_8_is_refused_where_it_would_be_mixed() {
    let wide: Vec<u8> = b"\xFF\xFE"
        .iter()
        .copied()
        .chain("ab\n".encode_utf16().flat_map(u16::to_le_bytes))
        .collect();
    let cases: &[(&[u8], &str, &str, &str)] = &[
        (&wide, "a", "b", "is encoded as UTF-16"),
        (b"latin \xe4\n", "latin", "l\u{e4}tin", "not encoded as UTF-8"),
        (b"latin  \xe4\n", "latin x", "y", "only the very same bytes match"),
    ];
    for (before, old, new, expected) in cases {
        let session = Session::new(&[("f", before)]);
        let error = session.error("edit", edit(old, new)).await;
        assert!(error.contains(expected), "{error}");
        assert_eq!(session.bytes("f"), *before);
    }
}

#[tokio::test]
async fn several_edits_are_applied_in_order_or_not_at_all() {
    for tool in ["edit", "multiedit"] {
        let session = Session::new(&[("f", b"one\ntwo\nthree\n")]);
        let edits = json!([
            {"oldString": "one", "newString": "1\n1b"},
            {"oldString": "1b\ntwo", "newString": "2"},
            {"oldString": "  three", "newString": "3"},
        ]);
        let outcome = session.ok(tool, json!({ "filePath": "f", "edits": edits })).await;
        assert_eq!(session.bytes("f"), b"1\n2\n3\n");
        let expected = "Edit applied successfully.\n1. line 1\n2. line 2\n3. line 3 (line-trimmed)";
        assert_eq!(outcome.output, expected);
        assert_eq!(outcome.details["edits"][2]["matcher"], "line-trimmed");

        let edits = json!([
            {"oldString": "1", "newString": "one"},
            {"oldString": "nowhere", "newString": "x"},
        ]);
        let error = session.error(tool, json!({ "filePath": "f", "edits": edits })).await;
        assert!(
            error.starts_with("Edit 2 of 2 failed and none was applied. Could not find"),
            "{error}"
        );
        assert_eq!(session.bytes("f"), b"1\n2\n3\n");

        let edits = json!([
            {"oldString": "", "newString": "first\n"},
            {"oldString": "first", "newString": "1st"},
        ]);
        session.ok(tool, json!({ "filePath": "new/g", "edits": edits })).await;
        assert_eq!(session.bytes("new/g"), b"1st\n");

        let edits = json!([{"oldString": "a", "newString": "a"}]);
        let error = session.error(tool, json!({ "filePath": "f", "edits": edits })).await;
        assert!(error.contains("identical"), "{error}");
    }
}

#[tokio::test]
async fn edit_takes_the_forms_that_models_send_and_says_what_is_missing() {
    let session = Session::new(&[("f", b"a b c\n")]);
    let both = json!({
        "filePath": "f", "oldString": "a", "newString": "1",
        "edits": [{"oldString": "b", "newString": "2"}],
    });
    session.ok("edit", both).await;
    let filled = json!({
        "filePath": "f", "oldString": "", "newString": "", "replaceAll": false,
        "edits": [{"oldString": "c", "newString": "3"}],
    });
    session.ok("edit", filled).await;
    assert_eq!(session.bytes("f"), b"1 2 3\n");
    let cases = [
        (json!({"filePath": "f"}), "Give oldString and newString, or a list of edits."),
        (json!({"filePath": "f", "oldString": "a"}), "Give oldString and newString"),
        (json!({"filePath": "", "oldString": "a", "newString": "b"}), "filePath is required"),
        (json!({"filePath": "f", "oldString": "", "newString": ""}), "identical"),
        (json!({"filePath": "none", "oldString": "a", "newString": "a"}), "identical"),
        (json!({"filePath": "none", "oldString": "a", "newString": "b"}), "File none not found"),
        (
            json!({"filePath": ".", "oldString": "a", "newString": "b"}),
            "Path is a directory, not a file",
        ),
        (json!({"filePath": "f", "oldString": "", "newString": "b"}), "oldString cannot be empty"),
    ];
    for (arguments, expected) in cases {
        let error = session.error("edit", arguments).await;
        assert!(error.contains(expected), "{error}");
    }
    let error = session.error("multiedit", json!({"filePath": "f", "edits": []})).await;
    assert!(error.contains("empty"), "{error}");
    assert_eq!(session.bytes("f"), b"1 2 3\n");
}

#[tokio::test]
async fn a_match_far_larger_than_the_text_is_refused() {
    let middle: String = (0..40).map(|n| format!("{n}{}\n", " ".repeat(60))).collect();
    let before = format!("start\n{middle}stop\n");
    let session = Session::new(&[("f", before.as_bytes())]);
    let words: Vec<String> = (0..40).map(|n| n.to_string()).collect();
    // The words of forty lines in one line: the window of as many lines is found only by its words.
    let old = format!("start {} stop", words.join(" "));
    let error = session.error("edit", edit(&old, "x")).await;
    assert!(error.contains("Could not find"), "{error}");
    let wide = format!("a{}b\nc\n", " ".repeat(900));
    let session = Session::new(&[("f", wide.as_bytes())]);
    let error = session.error("edit", edit("a b\n c", "x")).await;
    assert!(error.starts_with("Refusing replacement because the matched span"), "{error}");
    assert_eq!(session.bytes("f"), wide.as_bytes());
}

#[tokio::test]
async fn two_edits_of_one_file_in_one_message_are_both_there() {
    let session = Session::new(&[("f", b"one\ntwo\n")]);
    let outcomes = session.calls(&[("edit", edit("one", "1")), ("edit", edit("two", "2"))]).await;
    assert!(outcomes.iter().all(|o| o.output.starts_with("Edit applied")), "{outcomes:?}");
    assert_eq!(session.bytes("f"), b"1\n2\n");
}

#[tokio::test]
async fn write_keeps_every_byte_it_is_given() {
    let session = Session::new(&[("marked", b"\xEF\xBB\xBFold\n")]);
    let cases: &[(&str, &str, &[u8], bool)] = &[
        ("crlf", "a\r\nb\n", b"a\r\nb\n", false),
        ("nul", "a\0b", b"a\0b", false),
        ("empty", "", b"", false),
        ("empty", "now\n", b"now\n", true),
        ("deep/er/file", "x", b"x", false),
        ("marked", "new", b"\xEF\xBB\xBFnew", true),
        ("marked", "\u{feff}again", b"\xEF\xBB\xBFagain", true),
    ];
    for (name, content, expected, exists) in cases {
        let outcome = session.ok("write", json!({"filePath": name, "content": content})).await;
        assert_eq!(session.bytes(name), *expected, "{name}");
        assert_eq!(outcome.details["exists"], *exists, "{name}");
        assert!(outcome.output.starts_with("Wrote file successfully."));
        assert_eq!(outcome.title, *name);
        assert!(!outcome.details["diff"].as_str().unwrap().contains('\u{feff}'));
    }
    let outcome = session.ok("write", json!({"filePath": "empty", "content": "now\nmore\n"})).await;
    let line = "=".repeat(67);
    let expected =
        format!("Index: empty\n{line}\n--- empty\n+++ empty\n@@ -1,1 +1,2 @@\n now\n+more\n");
    assert_eq!(outcome.details["diff"], expected);
    assert_eq!(
        (&outcome.details["additions"], &outcome.details["deletions"]),
        (&json!(1), &json!(0))
    );
}

#[tokio::test]
async fn diffs_show_each_changed_place_with_its_lines() {
    let before: String = (1..=60).map(|n| format!("line {n}\n")).collect::<String>() + "last";
    let session = Session::new(&[("f", before.as_bytes())]);
    let edits = json!([
        {"oldString": "line 10\n", "newString": ""},
        {"oldString": "line 50\n", "newString": "line 50\nline 50b\n"},
        {"oldString": "last", "newString": "LAST"},
    ]);
    let outcome = session.ok("edit", json!({"filePath": "f", "edits": edits})).await;
    let diff = outcome.details["diff"].as_str().unwrap();
    for part in [
        "@@ -6,9 +6,8 @@\n line 6\n line 7\n line 8\n line 9\n-line 10\n line 11\n",
        "@@ -47,8 +46,9 @@\n line 47\n",
        "+line 50b\n line 51\n",
        "-last\n\\ No newline at end of file\n+LAST\n\\ No newline at end of file\n",
    ] {
        assert!(diff.contains(part), "{part}\nin\n{diff}");
    }
    assert_eq!(
        (&outcome.details["additions"], &outcome.details["deletions"]),
        (&json!(2), &json!(2))
    );
    assert_eq!(outcome.details["filediff"]["patch"], outcome.details["diff"]);
}
