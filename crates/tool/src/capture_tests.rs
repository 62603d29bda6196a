use super::*;
use proptest::prelude::*;

fn captured(folder: &std::path::Path, pieces: &[&[u8]]) -> Captured {
    let mut capture = Capture::new(Outputs::new(folder));
    pieces.iter().for_each(|piece| capture.push(piece));
    capture.finish()
}

#[test]
fn a_long_stream_shows_both_ends_with_true_line_numbers_and_keeps_the_whole() {
    let folder = tempfile::tempdir().unwrap();
    let whole: String = (1..=100_000).map(|n| format!("line {n}\n")).collect();
    let pieces: Vec<&[u8]> = whole.as_bytes().chunks(4_096).collect();
    let result = captured(folder.path(), &pieces);
    assert!(result.text.starts_with("line 1\nline 2\n"));
    assert!(result.text.ends_with("line 99999\nline 100000\n"));
    let notice = result.text.lines().find(|l| l.starts_with("(Output cut")).unwrap();
    assert!(notice.contains("lines 1-1000 and 99001-100000 of 100000"), "{notice}");
    assert!(result.text.len() <= crate::OUTPUT_CAP_BYTES + 500);
    assert_eq!(std::fs::read_to_string(result.path.unwrap()).unwrap(), whole);
}

#[test]
fn memory_stays_bounded_whatever_comes() {
    let folder = tempfile::tempdir().unwrap();
    let mut capture = Capture::new(Outputs::new(folder.path()));
    for _ in 0..300 {
        capture.push(&[b'x'; 100_000]);
    }
    assert!(capture.head.capacity() + capture.tail.capacity() < 600 << 10);
    assert_eq!(capture.finish().total_bytes, 30_000_000);
}

proptest! {
    #[test]
    fn any_split_of_the_bytes_gives_the_same_text(
        bytes in proptest::collection::vec(prop_oneof![Just(b'\n'), any::<u8>()], 0..3_000),
        repeat in 1usize..40,
        size in 1usize..700,
    ) {
        let folder = tempfile::tempdir().unwrap();
        let bytes = bytes.repeat(repeat);
        // The file's name differs from run to run.
        let strip = |mut c: Captured| {
            if let Some(path) = c.path.take() {
                c.text = c.text.replace(&path.display().to_string(), "FILE");
            }
            c
        };
        let whole = strip(captured(folder.path(), &[&bytes]));
        let pieces: Vec<_> = bytes.chunks(size).collect();
        prop_assert_eq!(strip(captured(folder.path(), &pieces)), whole);
    }
}

/// Pushes the pieces and takes what came after each.
fn in_parts(folder: &std::path::Path, pieces: &[&[u8]]) -> (Vec<Captured>, Captured) {
    let mut capture = Capture::new(Outputs::new(folder));
    let mut take = |piece: &&[u8]| {
        capture.push(piece);
        capture.take()
    };
    let parts = pieces.iter().map(&mut take).collect();
    (parts, capture.finish())
}

#[test]
fn what_is_taken_in_parts_has_the_numbers_of_the_whole() {
    let folder = tempfile::tempdir().unwrap();
    let first = "first\n".repeat(10);
    let second: String = (11..=5_000).map(|n| format!("line {n}\n")).collect();
    let (parts, rest) = in_parts(folder.path(), &[first.as_bytes(), second.as_bytes(), b"end"]);
    assert_eq!(parts[0].text, first);
    assert!(parts[1].text.contains("lines 11-1010 and 4001-5000 of 5000"), "{}", parts[1].text);
    assert_eq!((parts[2].text.as_str(), rest.text.as_str()), ("end", ""));
    let whole = std::fs::read_to_string(rest.path.unwrap()).unwrap();
    assert_eq!(whole, first + &second + "end");
}

#[test]
fn a_character_that_is_cut_by_taking_is_shown_whole_the_next_time() {
    let folder = tempfile::tempdir().unwrap();
    for letter in ["ä", "€", "😀"] {
        for cut in 1..letter.len() {
            let (front, back) = letter.as_bytes().split_at(cut);
            let (parts, _) = in_parts(folder.path(), &[front, back]);
            let texts: Vec<_> = parts.iter().map(|part| part.text.as_str()).collect();
            assert_eq!(texts, ["", letter], "{letter} cut at {cut}");
        }
    }
    // What can never become a character is shown at once.
    let (parts, _) = in_parts(folder.path(), &[b"a\xff", b"b\x80"]);
    assert_eq!(parts[0].text, "a\u{fffd}");
    assert_eq!(parts[1].text, "b\u{fffd}");
}

proptest! {
    #[test]
    fn parts_together_are_the_whole(
        text in "[ab\n€😀]{0,200}",
        size in 1usize..9,
    ) {
        let folder = tempfile::tempdir().unwrap();
        let pieces: Vec<_> = text.as_bytes().chunks(size).collect();
        let (parts, rest) = in_parts(folder.path(), &pieces);
        let joined: String = parts.iter().map(|part| part.text.as_str()).collect();
        prop_assert_eq!(joined + &rest.text, text);
    }
}
