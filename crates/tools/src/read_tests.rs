//! Reading: windows, encodings, notebooks, instructions, and what cannot be read.

use std::cell::Cell;

use proptest::prelude::*;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::lines::LineReader;
use super::text::Window;
use super::*;
use crate::tests::{Open, Place};

/// Hands over a few bytes at a time, and counts them.
struct Pieces<'a> {
    rest: &'a [u8],
    sizes: &'a [usize],
    at: usize,
    read: &'a Cell<usize>,
}

impl io::Read for Pieces<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let size = self.sizes[self.at % self.sizes.len()].min(buffer.len());
        self.at += 1;
        let got = self.rest.by_ref().take(size as u64).read(buffer)?;
        self.read.set(self.read.get() + got);
        Ok(got)
    }
}

fn window(bytes: &[u8], sizes: &[usize], offset: u64, limit: usize) -> (Window, usize) {
    let read = Cell::new(0);
    let source = Pieces { rest: bytes, sizes, at: 0, read: &read };
    let mut reader = LineReader::new(source, &|| false);
    (Window::collect(&mut reader, offset, limit).unwrap(), read.get())
}

proptest! {
    #[test]
    fn any_window_is_the_same_slice_of_the_file(
        lines in proptest::collection::vec("[a-z äß]{0,12}\r?", 0..40),
        ends in any::<bool>(),
        offset in 1_u64..50,
        limit in 0_usize..50,
        sizes in proptest::collection::vec(1_usize..40, 1..6),
    ) {
        let mut text = lines.join("\n");
        if ends {
            text.push('\n');
        }
        // As an independent judge: what `str::lines` takes for lines.
        let all: Vec<&str> = text.lines().map(|l| l.strip_suffix('\r').unwrap_or(l)).collect();
        let expected: Vec<&str> =
            all.iter().skip(offset as usize - 1).take(limit).copied().collect();
        let (window, _) = window(text.as_bytes(), &sizes, offset, limit);
        prop_assert_eq!(&window.shown, &expected);
        prop_assert_eq!(window.total_lines(), all.len() as u64);
    }

    #[test]
    fn no_bytes_make_reading_fail(bytes in proptest::collection::vec(any::<u8>(), 0..300), offset in 1_u64..9) {
        let (window, _) = window(&bytes, &[7], offset, 2);
        prop_assert!(window.shown.len() <= 2);
    }
}

#[test]
fn reading_ends_where_the_answer_is_full() {
    let text = ("x".repeat(80) + "\n").repeat(50_000);
    let (window, read) = window(text.as_bytes(), &[usize::MAX], 1, 2_000);
    assert_eq!(window.shown.len(), (50 << 10) / 81);
    assert!(read < text.len() / 2, "{read} of {}", text.len());
}

#[test]
fn a_line_longer_than_everything_takes_little_memory_and_is_cut() {
    let text = "😀".repeat(1 << 20) + "\nnext";
    let (window, _) = window(text.as_bytes(), &[usize::MAX], 1, 10);
    // Two UTF-16 units each.
    assert_eq!(window.shown[0], "😀".repeat(1_000) + "... (line truncated to 2000 chars)");
    assert_eq!(window.shown[1], "next");
}

#[test]
fn a_file_that_grows_is_still_itself_and_any_other_change_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("f");
    let epoch = std::time::SystemTime::UNIX_EPOCH;
    let state = |content: &str, seconds: u64| {
        fs::write(&path, content).unwrap();
        let file = File::options().write(true).open(&path).unwrap();
        file.set_modified(epoch + std::time::Duration::from_secs(seconds)).unwrap();
        fs::metadata(&path).unwrap()
    };
    let before = state("one\n", 1);
    assert!(!was_rewritten(&before, &state("one\n", 1)));
    assert!(!was_rewritten(&before, &state("one\ntwo\n", 2)), "grown");
    assert!(was_rewritten(&before, &state("two\n", 2)), "rewritten");
    assert!(was_rewritten(&before, &state("on", 2)), "cut");
}

fn utf16(text: &str, order: fn(u16) -> [u8; 2]) -> Vec<u8> {
    "\u{FEFF}".encode_utf16().chain(text.encode_utf16()).flat_map(order).collect()
}

#[tokio::test]
async fn encodings_are_decoded_or_flagged() {
    let little = utf16("grün\r\n𝄞 two\n", u16::to_le_bytes);
    let big = utf16("grün\n𝄞 two", u16::to_be_bytes);
    let cases: &[(&[u8], &str, &str, &str)] = &[
        (b"\xEF\xBB\xBFone\ntwo", "1: one\n2: two\n\n(End", "", "utf-8"),
        (&little, "1: grün\n2: 𝄞 two\n\n(End", "(Decoded from UTF-16LE.)", "utf-16le"),
        (&big, "1: grün\n2: 𝄞 two\n\n(End", "(Decoded from UTF-16BE.)", "utf-16be"),
        (
            b"a\ngr\xfcn\n",
            "1: a\n2: grün\n",
            "(Not valid UTF-8 from line 2 on: shown as Latin-1.",
            "latin-1",
        ),
        ("ü\u{0}".as_bytes().split_at(2).0, "1: ü\n", "", "utf-8"),
        (
            b"\xc3\xbc and \xff\n",
            "1: ü and \u{FFFD}\n",
            "(Line 1 has bytes that are not valid UTF-8",
            "invalid utf-8",
        ),
        (b"", "\n\n(End of file - total 0 lines)", "", "utf-8"),
    ];
    for (bytes, text, note, encoding) in cases {
        let place = Place::new(&[("f", bytes)]);
        let outcome = place.call("read", json!({"filePath": "f"})).await;
        assert!(
            outcome.output.contains(text) && outcome.output.contains(note),
            "{}",
            outcome.output
        );
        assert_eq!(
            outcome.output.contains("(Not valid")
                || outcome.output.contains("(Line ")
                || outcome.output.contains("(Decoded"),
            !note.is_empty()
        );
        assert_eq!(outcome.details["display"]["encoding"], *encoding);
    }
}

#[tokio::test]
async fn what_is_binary_is_decided_as_everywhere() {
    let cases: &[(&str, &[u8], bool)] = &[
        ("module.wasm", b"text", true),
        ("hello.txt", b"hello\0world", true),
        ("odd.txt", &[1, 2, 3, 65, 66, 67], true),
        ("some.txt", &[1, 65, 66, 67, 68, 69], false),
        ("empty.bin", b"", false),
        ("a.bmp", b"text", false),
        ("a.tiff", b"text", false),
        ("a.avif", b"text", false),
        ("a.fbs", b"table x {}", false),
        ("a.svg", b"<svg/>", false),
    ];
    for (name, bytes, binary) in cases {
        let place = Place::new(&[(name, bytes)]);
        let outcome = place.call("read", json!({"filePath": name})).await;
        assert_eq!(outcome.output.starts_with("Cannot read binary file"), *binary, "{name}");
        assert!(outcome.attachments.is_empty());
    }
}

#[tokio::test]
async fn folders_are_paged_in_the_order_of_names() {
    let names: Vec<String> = (1..=10).map(|n| format!("file-{n}.txt")).collect();
    let files: Vec<(&str, &[u8])> = names.iter().map(|n| (n.as_str(), b"" as &[u8])).collect();
    let place = Place::new(&files);
    let page = place.call("read", json!({"filePath": ".", "offset": 6, "limit": 5})).await;
    let expected =
        "<entries>\nfile-5.txt\nfile-6.txt\nfile-7.txt\nfile-8.txt\nfile-9.txt\n\n(10 entries)";
    assert!(page.output.contains(expected), "{}", page.output);
    assert_eq!(page.details["truncated"], false);
    assert_eq!(page.details["display"]["totalEntries"], 10);
    let first = place.ok("read", json!({"filePath": ".", "limit": 2})).await;
    assert!(first.contains("file-1.txt\nfile-10.txt\n\n(Showing 2 of 10 entries. Use 'offset' parameter to read beyond entry 2)"), "{first}");
    let place = Place::new(&[
        ("b.txt", b""),
        ("A.txt", b""),
        ("a.txt", b""),
        ("_x", b""),
        ("1", b""),
        ("d/x", b""),
    ]);
    std::os::unix::fs::symlink(place.path("d"), place.path("link")).unwrap();
    let listing = place.ok("read", json!({"filePath": "."})).await;
    assert!(listing.contains("<entries>\n_x\n1\na.txt\nA.txt\nb.txt\nd/\nlink/\n\n"), "{listing}");
}

#[tokio::test]
async fn a_missing_path_says_what_may_have_been_meant() {
    let place = Place::new(&[("src/config.rs", b""), ("src/main.rs", b"")]);
    let cases = [
        ("src/conf", "Did you mean one of these?\n", "src/config.rs"),
        ("src/mian.rs", "Did you mean one of these?\n", "src/main.rs"),
        ("src/deep/down/x.rs", "The nearest folder that exists is ", "/src"),
        ("src/nothing-like-it", "File not found: ", "src/nothing-like-it"),
    ];
    for (path, says, named) in cases {
        let error = place.error("read", json!({"filePath": path})).await;
        assert!(error.contains(says) && error.ends_with(named), "{error}");
    }
}

#[tokio::test]
async fn notebooks_come_as_cells_and_what_is_none_as_text() {
    let notebook = json!({
        "cells": [
            {"cell_type": "markdown", "id": "intro", "source": ["# Title\n", "words"]},
            {"cell_type": "code", "execution_count": 3, "source": "print(1)", "outputs": [
                {"output_type": "stream", "text": ["1\n"]},
                {"output_type": "display_data", "data": {"image/png": "AAAA", "text/plain": "<Figure>"}},
                {"output_type": "error", "ename": "ValueError", "evalue": "bad", "traceback": []},
                {"output_type": "execute_result", "data": {"application/json": {"a": 1}}}
            ]}
        ],
        "nbformat": 4
    });
    let text = notebook.to_string();
    let place = Place::new(&[("n.ipynb", text.as_bytes()), ("broken.ipynb", b"{\"cells\": 1}")]);
    let cells = place.ok("read", json!({"filePath": "n.ipynb"})).await;
    let expected = "<type>notebook</type>\n<content>\n\
        1: <cell id=\"intro\" type=\"markdown\">\n2: # Title\n3: words\n4: </cell>\n\
        5: <cell id=\"cell-1\" type=\"code\" execution_count=\"3\">\n6: print(1)\n\
        7: <output>\n8: 1\n9: </output>\n10: <output>\n11: <Figure>\n12: (image/png, not shown)\n13: </output>\n\
        14: <output>\n15: ValueError: bad\n16: </output>\n17: <output>\n18: </output>\n19: </cell>\n\n(End of file - total 19 lines)";
    assert!(cells.contains(expected), "{cells}");
    let part = place.ok("read", json!({"filePath": "n.ipynb", "offset": 6, "limit": 1})).await;
    assert!(part.contains("\n6: print(1)\n\n(Showing lines 6-6 of 19."), "{part}");
    let text = place.ok("read", json!({"filePath": "broken.ipynb"})).await;
    assert!(text.contains("1: {\"cells\": 1}"), "{text}");
}

async fn read_in(pipeline: &toolwright_tool::Pipeline, path: &str) -> (String, Value) {
    let arguments = json!({"filePath": path});
    let outcome = Place::call_in(pipeline, "read", arguments, CancellationToken::new()).await;
    (outcome.output, outcome.details["loaded"].clone())
}

#[tokio::test]
async fn nearby_instructions_come_once_with_the_first_file_they_apply_to() {
    let place = Place::new(&[
        ("AGENTS.md", b"root rules"),
        ("sub/AGENTS.md", b"sub rules"),
        ("sub/CLAUDE.md", b"not these"),
        ("sub/nested/test.txt", b"x"),
        ("sub/nested/other.txt", b"y"),
        ("only/CLAUDE.md", b"claude rules"),
        ("only/f", b""),
    ]);
    let pipeline = place.pipeline(std::sync::Arc::new(Open));
    let (output, loaded) = read_in(&pipeline, "sub/nested/test.txt").await;
    let path = place.path("sub/AGENTS.md");
    let path = path.display();
    let reminder = format!(
        "</content>\n\n<system-reminder>\nInstructions from: {path}\nsub rules\n</system-reminder>"
    );
    assert!(output.ends_with(&reminder), "{output}");
    assert_eq!(loaded, json!([path.to_string()]));
    let (output, loaded) = read_in(&pipeline, "sub/nested/other.txt").await;
    assert!(!output.contains("rules") && loaded == json!([]), "{output}");
    let (output, _) = read_in(&pipeline, "only/CLAUDE.md").await;
    assert!(!output.contains("system-reminder"), "the file itself: {output}");
    let (output, _) = read_in(&pipeline, "only/f").await;
    assert!(output.contains("claude rules"), "{output}");
}

#[test]
fn instructions_out_of_the_workspace_or_given_or_forbidden_are_left_out() {
    let place = Place::new(&[
        ("a/f", b""),
        ("b/f", b""),
        ("b/AGENTS.md", b"b"),
        ("c/f", b""),
        ("c/AGENTS.md", b"c"),
    ]);
    let outside = place.folder.path().join("secret");
    fs::write(&outside, "secret").unwrap();
    std::os::unix::fs::symlink(&outside, place.path("a/AGENTS.md")).unwrap();
    let workspace = toolwright_tool::Workspace::new(&place.path("")).unwrap();
    let forbidden = place.path("c/AGENTS.md");
    let may_read: toolwright_tool::MayRead = std::sync::Arc::new(move |path| path != forbidden);
    let nearby = Nearby::knowing([place.path("b/AGENTS.md")], []);
    for file in ["a/f", "b/f", "c/f"] {
        assert!(nearby.claim(&place.path(file), &workspace, &may_read).is_empty(), "{file}");
    }
    let fresh = Nearby::default();
    let again = || fresh.claim(&place.path("b/f"), &workspace, &may_read).len();
    assert_eq!((again(), again()), (1, 0));
    fresh.forget();
    nearby.forget();
    assert_eq!(again(), 1, "the conversation no longer holds it");
    assert!(nearby.claim(&place.path("b/f"), &workspace, &may_read).is_empty(), "the prompt does");
}
