//! Reading a patch that was written gives the same patch; reading anything else gives an answer.

use proptest::prelude::*;

use super::grammar::{Hunk, HunkLine, Patch, Section};

/// Any line that a patch can hold: no line end in it, nor a carriage return at its end.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        Just(String::new()),
        Just("*** End Patch".to_owned()),
        Just("*** End of File".to_owned()),
        Just("@@ x".to_owned()),
        "[^\n\r]{0,12}",
    ]
}

fn path() -> impl Strategy<Value = String> {
    "[^\n\r\\s][^\n\r]{0,8}"
        .prop_map(|path| path.trim().to_owned())
        .prop_filter("empty", |p| !p.is_empty())
}

fn header() -> impl Strategy<Value = String> {
    "[^\n\r]{0,6}[^\n\r\\s]".prop_filter("blank", |header| !header.trim().is_empty())
}

fn hunk() -> impl Strategy<Value = Hunk> {
    let line = (0..3_u8, text()).prop_map(|(kind, text)| match kind {
        0 => HunkLine::Keep(text),
        1 => HunkLine::Remove(text),
        _ => HunkLine::Add(text),
    });
    let headers = prop::collection::vec(header(), 0..3);
    (headers, prop::collection::vec(line, 1..6), any::<bool>())
        .prop_map(|(headers, lines, is_at_end)| Hunk { headers, lines, is_at_end })
}

fn section() -> impl Strategy<Value = Section> {
    let update = (path(), prop::option::of(path()), prop::collection::vec(hunk(), 1..4));
    prop_oneof![
        (path(), prop::collection::vec(text(), 0..5))
            .prop_map(|(path, lines)| Section::Add { path, lines }),
        path().prop_map(|path| Section::Delete { path }),
        update.prop_map(|(path, move_to, hunks)| Section::Update { path, move_to, hunks }),
    ]
}

proptest! {
    #[test]
    fn what_is_written_is_read_as_it_was(sections in prop::collection::vec(section(), 1..5)) {
        let patch = Patch { sections };
        let text = patch.to_string();
        let read = Patch::parse(&text);
        prop_assert_eq!(read.as_ref(), Ok(&patch), "{}", text);
        // Also in a here-document.
        prop_assert_eq!(Patch::parse(&format!("<<'EOF'\n{text}EOF\n")), Ok(patch));
    }

    #[test]
    fn anything_is_read_or_refused(
        lines in prop::collection::vec(prop_oneof![
            Just("*** Begin Patch".to_owned()), Just("*** End Patch".to_owned()),
            Just("*** Update File: a".to_owned()), Just("*** Move to: b".to_owned()),
            Just("*** Add File: c".to_owned()), Just("*** End of File".to_owned()),
            Just("<<EOF".to_owned()), Just("EOF".to_owned()), Just("@@".to_owned()), ".{0,6}",
        ], 0..12),
    ) {
        let framed = format!("*** Begin Patch\n{}\n*** End Patch", lines.join("\n"));
        for text in [lines.join("\n"), framed] {
            if let Ok(patch) = Patch::parse(&text) {
                prop_assert_eq!(Patch::parse(&patch.to_string()), Ok(patch));
            }
        }
    }
}
