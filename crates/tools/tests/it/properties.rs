//! Whatever the file and whatever is asked: what was not matched is not touched, and what fails
//! changes nothing.

use proptest::prelude::*;
use serde_json::json;
use toolwright_session::Ending;

use crate::support::Session;

fn line() -> impl Strategy<Value = String> {
    prop_oneof![
        Just(String::new()),
        Just("{".to_owned()),
        Just("  }".to_owned()),
        "[ \t]{0,3}[abé“]{1,3}( {1,2}[ab\\\\]{1,2}){0,2}[ ]{0,1}",
    ]
}

/// A file of few different lines, with any line ends, perhaps a mark and perhaps no last line end.
fn content() -> impl Strategy<Value = String> {
    let ended = (line(), prop_oneof![3 => Just("\n"), 1 => Just("\r\n")]);
    (any::<bool>(), prop::collection::vec(ended, 0..12), any::<bool>()).prop_map(
        |(mark, lines, open)| {
            let mut text = if mark { "\u{feff}".to_owned() } else { String::new() };
            lines.iter().for_each(|(line, end)| text.extend([line.as_str(), end]));
            if open {
                text.truncate(text.trim_end_matches(['\r', '\n']).len());
            }
            text
        },
    )
}

/// Something near to what is there: a part of it, with blanks or line ends changed.
fn wanted(content: String) -> impl Strategy<Value = (String, String)> {
    let count = content.chars().count();
    (0..=count, 0..=count, 0..6_u8).prop_map(move |(a, b, twist)| {
        let part: String = content.chars().skip(a.min(b)).take(a.abs_diff(b)).collect();
        let part = match twist {
            0 => part,
            1 => part.replace("\r\n", "\n"),
            2 => part.replace(' ', "  "),
            3 => format!("\n{part}\n"),
            4 => part.replace('\n', "\\n"),
            _ => part.replace('a', "b"),
        };
        (content.clone(), part)
    })
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

/// Bytes that both have at their beginnings and, beyond those, at their ends.
fn common(a: &[u8], b: &[u8]) -> (usize, usize) {
    let start = a.iter().zip(b).take_while(|(a, b)| a == b).count();
    let rest = a[start..].iter().rev().zip(b[start..].iter().rev());
    (start, rest.take_while(|(a, b)| a == b).count())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn an_edit_changes_nothing_outside_its_match(
        (content, old) in content().prop_flat_map(wanted),
        new in "[xyz]{1,2}(\n[xyz]{1,2}){0,2}",
        all in any::<bool>(),
    ) {
        let session = Session::new(&[("f", content.as_bytes())]);
        let arguments =
            json!({"filePath": "f", "oldString": old, "newString": new, "replaceAll": all});
        let outcome = runtime().block_on(session.call("edit", arguments));
        let after = session.bytes("f");
        if outcome.ending != Ending::Completed {
            prop_assert_eq!(after, content.as_bytes());
            return Ok(());
        }
        // The new text has letters that the file has not: what is left of it are the matches' outsides,
        // which must stand in the file in this order, byte for byte.
        let text = String::from_utf8(after.clone()).unwrap();
        let forms = [new.replace('\n', "\r\n"), new.clone()];
        let mut outsides = vec![text];
        for form in &forms {
            outsides = outsides
                .iter()
                .flat_map(|part| part.split(form.as_str()).map(str::to_owned).collect::<Vec<_>>())
                .collect();
        }
        let count = outcome.details["replacements"].as_u64().unwrap() as usize;
        prop_assert_eq!(outsides.len(), count + 1);
        prop_assert!(content.starts_with(outsides.first().unwrap().as_str()));
        prop_assert!(content.ends_with(outsides.last().unwrap().as_str()));
        let mut from = 0;
        for outside in &outsides {
            let at = content[from..].find(outside.as_str());
            prop_assert!(at.is_some(), "{:?} of {:?} in {:?}", outside, outsides, content);
            from += at.unwrap() + outside.len();
        }
        if count == 1 {
            // The mark and the line ends around the one match are as they were.
            let (start, end) = common(content.as_bytes(), &after);
            prop_assert!(start >= outsides[0].len() && end + start >= outsides[1].len());
        }
    }

    #[test]
    fn a_patch_is_applied_whole_or_not_at_all(
        first in content(),
        second in content(),
        hunks in prop::collection::vec(prop::collection::vec((0..3_u8, line()), 1..5), 1..3),
        moves in any::<bool>(),
        at_end in any::<bool>(),
    ) {
        let session = Session::new(&[("a", first.as_bytes()), ("b", second.as_bytes())]);
        let before = session.tree();
        let mut body = "*** Add File: new/c\n+c\n*** Update File: a\n".to_owned();
        if moves {
            body.push_str("*** Move to: b\n");
        }
        for hunk in &hunks {
            body.push_str("@@\n");
            for (kind, line) in hunk {
                body.push_str([" ", "-", "+"][usize::from(*kind)]);
                body.push_str(line);
                body.push('\n');
            }
        }
        if at_end {
            body.push_str("*** End of File\n");
        }
        let text = format!("*** Begin Patch\n{body}*** End Patch\n");
        let outcome = runtime().block_on(session.call("apply_patch", json!({"patchText": text})));
        let after = session.tree();
        if outcome.ending != Ending::Completed {
            prop_assert_eq!(after, before);
            prop_assert!(!session.path("new").exists());
            return Ok(());
        }
        prop_assert_eq!(&after["new/c"], b"c\n");
        prop_assert_eq!(after.contains_key("a"), !moves);
        let (changed, was) = if moves { (&after["b"], &first) } else { (&after["a"], &first) };
        let changed = String::from_utf8(changed.clone()).unwrap();
        prop_assert_eq!(changed.starts_with('\u{feff}'), was.starts_with('\u{feff}'));
        // As many lines as there were, less the removed ones, plus the added ones.
        let count = |kind: u8| hunks.iter().flatten().filter(|(k, _)| *k == kind).count();
        let lines = |text: &str| text.trim_start_matches('\u{feff}').split_inclusive('\n').count();
        let dropped = hunks.iter().flatten().filter(|(k, line)| *k == 1 && line.is_empty()).count();
        prop_assert!(lines(&changed) + count(1) >= lines(was) + count(2).saturating_sub(dropped));
        prop_assert!(lines(&changed) + count(1) <= lines(was) + count(2) + dropped);
    }
}
