//! Positions and edits as the protocol counts them: lines from 0, and within a line UTF-16 units.

use std::path::PathBuf;

use serde_json::Value;

use crate::uri;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TextError {
    #[error("the server wants to create, rename or delete files, which is not supported")]
    FileOperation,
    #[error("the server wants to change {0}, which is no file of this machine")]
    NotAFile(String),
    #[error("the server's edits overlap")]
    Overlap,
    #[error("the server's answer is not in the form of the protocol")]
    Malformed,
}

/// What a server wants to change in one file.
#[derive(Debug, Clone, PartialEq)]
pub struct FileEdit {
    pub path: PathBuf,
    pub edits: Vec<Value>,
}

/// Where a text ends.
pub(crate) fn end_of(text: &str) -> (u32, u32) {
    let lines = line_starts(text);
    let last = lines.last().copied().unwrap_or(0);
    let units = text[last..].chars().map(char::len_utf16).sum::<usize>();
    (count(lines.len() - 1), count(units))
}

fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// A line ends with LF, CRLF or CR.
fn line_starts(text: &str) -> Vec<usize> {
    let bytes = text.as_bytes();
    let ends = bytes.iter().enumerate().filter(|(at, byte)| match byte {
        b'\n' => true,
        b'\r' => bytes.get(at + 1) != Some(&b'\n'),
        _ => false,
    });
    std::iter::once(0).chain(ends.map(|(at, _)| at + 1)).collect()
}

/// The byte that a position means. One beyond the end of its line means that end; one in the middle
/// of a character its beginning.
fn offset(text: &str, starts: &[usize], line: u64, character: u64) -> usize {
    let line = usize::try_from(line).unwrap_or(usize::MAX);
    let Some(start) = starts.get(line).copied() else { return text.len() };
    let end = starts.get(line + 1).copied().unwrap_or(text.len());
    let content = text[start..end].trim_end_matches(['\n', '\r']);
    let mut units = 0;
    for (at, letter) in content.char_indices() {
        units += letter.len_utf16() as u64;
        if units > character {
            return start + at;
        }
    }
    start + content.len()
}

/// The text with all `edits` made; they mean positions in the text as it is.
pub fn apply_edits(text: &str, edits: &[Value]) -> Result<String, TextError> {
    let starts = line_starts(text);
    let place = |position: &Value| {
        let line = position["line"].as_u64()?;
        Some(offset(text, &starts, line, position["character"].as_u64()?))
    };
    let mut ordered = Vec::with_capacity(edits.len());
    for edit in edits {
        let from = place(&edit["range"]["start"]).ok_or(TextError::Malformed)?;
        let to = place(&edit["range"]["end"]).ok_or(TextError::Malformed)?;
        let new = edit["newText"].as_str().ok_or(TextError::Malformed)?;
        if to < from {
            return Err(TextError::Malformed);
        }
        ordered.push((from, to, new));
    }
    // Stable: what is inserted at one place keeps the order in which the server gave it.
    ordered.sort_by_key(|(from, to, _)| (*from, *to));
    let mut changed = String::with_capacity(text.len());
    let mut done = 0;
    for (from, to, new) in ordered {
        if from < done {
            return Err(TextError::Overlap);
        }
        changed.push_str(&text[done..from]);
        changed.push_str(new);
        done = to;
    }
    changed.push_str(&text[done..]);
    Ok(changed)
}

/// A workspace edit by file, in either of its two forms.
pub fn file_edits(edit: &Value) -> Result<Vec<FileEdit>, TextError> {
    let mut files: Vec<FileEdit> = Vec::new();
    let mut add = |address: &str, edits: &Value| {
        let path = uri::to_path(address).ok_or_else(|| TextError::NotAFile(address.to_owned()))?;
        let edits = edits.as_array().ok_or(TextError::Malformed)?.clone();
        match files.iter_mut().find(|file| file.path == path) {
            Some(file) => file.edits.extend(edits),
            None => files.push(FileEdit { path, edits }),
        }
        Ok(())
    };
    if let Some(changes) = edit["documentChanges"].as_array() {
        for change in changes {
            if change.get("kind").is_some() {
                return Err(TextError::FileOperation);
            }
            let address = change["textDocument"]["uri"].as_str().ok_or(TextError::Malformed)?;
            add(address, &change["edits"])?;
        }
    } else {
        for (address, edits) in edit["changes"].as_object().into_iter().flatten() {
            add(address, edits)?;
        }
    }
    files.retain(|file| !file.edits.is_empty());
    Ok(files)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn edit(from: (u64, u64), to: (u64, u64), new: &str) -> Value {
        json!({ "range": {
            "start": { "line": from.0, "character": from.1 },
            "end": { "line": to.0, "character": to.1 },
        }, "newText": new })
    }

    #[test]
    fn edits_land_where_utf_16_puts_them() {
        // The emoji is one character, two UTF-16 units and four bytes.
        let cases = [
            ("let a = 1;", vec![edit((0, 4), (0, 5), "b")], "let b = 1;"),
            ("x(\"🦀\", a)", vec![edit((0, 8), (0, 9), "b")], "x(\"🦀\", b)"),
            ("🦀a🦀a", vec![edit((0, 5), (0, 6), "c"), edit((0, 2), (0, 3), "b")], "🦀b🦀c"),
            ("🦀", vec![edit((0, 1), (0, 2), "")], ""),
            ("one\r\ntwo\rthree\nfour", vec![edit((2, 0), (3, 4), "X")], "one\r\ntwo\rX"),
            ("one\ntwo", vec![edit((0, 99), (1, 0), " ")], "one two"),
            ("one", vec![edit((9, 0), (9, 0), "!")], "one!"),
            ("ab", vec![edit((0, 1), (0, 1), "1"), edit((0, 1), (0, 1), "2")], "a12b"),
            ("é\u{0301}z", vec![edit((0, 2), (0, 3), "y")], "é\u{0301}y"),
        ];
        for (text, edits, expected) in cases {
            assert_eq!(apply_edits(text, &edits).unwrap(), expected, "{text}");
        }
    }

    #[test]
    fn edits_that_make_no_sense_are_refused() {
        let overlapping = [edit((0, 0), (0, 3), "x"), edit((0, 2), (0, 4), "y")];
        assert_eq!(apply_edits("abcdef", &overlapping), Err(TextError::Overlap));
        assert_eq!(apply_edits("ab", &[edit((0, 2), (0, 1), "")]), Err(TextError::Malformed));
        assert_eq!(apply_edits("ab", &[json!({ "newText": "x" })]), Err(TextError::Malformed));
    }

    #[test]
    fn both_forms_of_a_workspace_edit_are_read_and_file_operations_refused() {
        let one = edit((0, 0), (0, 1), "x");
        let expected =
            vec![FileEdit { path: PathBuf::from("/a b"), edits: vec![one.clone(), one.clone()] }];
        let changes = json!({ "changes": { "file:///a%20b": [one, one], "file:///c": [] } });
        assert_eq!(file_edits(&changes).unwrap(), expected);
        let document =
            json!({ "textDocument": { "uri": "file:///a%20b", "version": 1 }, "edits": [one] });
        assert_eq!(
            file_edits(&json!({ "documentChanges": [document, document] })).unwrap(),
            expected
        );
        let create = json!({ "documentChanges": [{ "kind": "create", "uri": "file:///n" }] });
        assert_eq!(file_edits(&create), Err(TextError::FileOperation));
        let other = json!({ "changes": { "jar:///x": [one] } });
        assert_eq!(file_edits(&other), Err(TextError::NotAFile("jar:///x".into())));
        assert_eq!(file_edits(&Value::Null).unwrap(), vec![]);
    }

    #[test]
    fn the_end_of_a_text_is_counted_in_utf_16() {
        let cases = [("", (0, 0)), ("a\n", (1, 0)), ("a\n🦀b", (1, 3)), ("a\r\nb", (1, 1))];
        for (text, expected) in cases {
            assert_eq!(end_of(text), expected, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn replacing_the_whole_text_by_its_end_position_leaves_nothing(text in "(\\PC|\r|\n){0,40}") {
            let (line, character) = end_of(&text);
            let all = edit((0, 0), (line.into(), character.into()), "new");
            prop_assert_eq!(apply_edits(&text, &[all]).unwrap(), "new");
        }

        #[test]
        fn any_position_is_a_place_between_characters(
            text in "(\\PC|\r|\n){0,40}", line in 0u64..8, character in 0u64..50,
        ) {
            let mark = edit((line, character), (line, character), "\u{1}");
            let marked = apply_edits(&text, &[mark]).unwrap();
            prop_assert_eq!(marked.replacen('\u{1}', "", 1).len(), text.len());
        }
    }
}
