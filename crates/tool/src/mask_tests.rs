use std::sync::LazyLock;

use base64::Engine as _;
use proptest::prelude::*;
use serde_json::json;

use super::*;

const KEY: &str = "sk-Ab3/x+9\"Zq";

fn secrets() -> Secrets {
    Secrets::new([("KEY", KEY), ("SHORT", "1234567"), ("LONGER", "sk-Ab3/x+9\"Zq-and-more")])
}

#[test]
fn each_secret_is_replaced_by_its_name_and_the_longest_wins() {
    let masked =
        secrets().mask("a sk-Ab3/x+9\"Zq b sk-Ab3/x+9\"Zq-and-more c 1234567").into_owned();
    assert_eq!(masked, "a [masked: KEY] b [masked: LONGER] c 1234567");
}

#[test]
fn what_holds_no_secret_is_not_copied() {
    assert!(matches!(secrets().mask("nothing here"), Cow::Borrowed("nothing here")));
    assert!(matches!(Secrets::default().mask(KEY), Cow::Borrowed(KEY)));
}

#[test]
fn the_usual_encodings_of_a_secret_are_found_too() {
    let secrets = Secrets::new([("KEY", KEY)]);
    let basic = |text: &str| STANDARD.encode(text);
    for text in [
        json!(KEY).to_string(),
        "url?key=sk-Ab3%2Fx%2B9%22Zq".to_owned(),
        "url?key=sk-Ab3%2fx%2b9%22Zq".to_owned(),
        "url?key=sk-Ab3/x%2B9%22Zq".to_owned(),
        basic(KEY),
        basic(&format!("{KEY}\n")),
        basic(&format!("u:{KEY}")),
        basic(&format!("user:{KEY}")),
        basic(&format!("users:{KEY}:more")),
        URL_SAFE.encode(format!("?>?>:{KEY}>")),
    ] {
        assert!(secrets.mask(&text).contains("[masked: KEY]"), "{text}");
    }
}

#[test]
fn a_long_secret_that_a_tool_has_cut_is_not_shown_by_more_than_half() {
    let key = "sk-0123456789abcdefghijABCDEFGHIJ9876543210";
    let secrets = Secrets::new([("KEY", key)]);
    for cut in key.len() / 2..key.len() {
        assert!(secrets.mask(&format!("{}...", &key[..cut])).starts_with("[masked: KEY]"));
        assert!(secrets.mask(&key[key.len() - cut - 1..]).ends_with("[masked: KEY]"));
    }
}

#[test]
fn texts_inside_a_value_are_masked_and_the_rest_stays() {
    let mut value = json!({ "a": [1, null, KEY], "b": { KEY: true, "c": "-" }, "d": 2.5 });
    secrets().mask_value(&mut value);
    let mark = "[masked: KEY]";
    assert_eq!(value, json!({ "a": [1, null, mark], "b": { mark: true, "c": "-" }, "d": 2.5 }));
}

#[test]
fn the_debug_form_names_secrets_and_does_not_show_them() {
    assert_eq!(format!("{:?}", secrets()), r#"Secrets(["KEY", "LONGER"])"#);
}

#[test]
fn a_change_that_would_put_a_mark_where_the_secret_stood_is_noticed() {
    let secrets = secrets();
    let lost = format!(" port=1\n-key={KEY}\n+key=[masked: KEY]\n");
    assert_eq!(secrets.lost_in(&lost), Some("[masked: KEY]"));
    let mentioned = "-see the docs\n+see [masked: KEY] in the docs\n";
    assert_eq!(secrets.lost_in(mentioned), None);
    let removed_on_purpose = format!("-key={KEY}\n+key=\n");
    assert_eq!(secrets.lost_in(&removed_on_purpose), None);
}

#[test]
fn a_stream_shows_at_once_what_cannot_become_a_secret() {
    let mut stream = MaskStream::new(secrets());
    assert_eq!(&*stream.push(b"Password: "), b"Password: ");
    assert_eq!(&*stream.push(b"it is sk-"), b"it is ");
    assert_eq!(&*stream.push(b"lamp\n"), b"sk-lamp\n");
}

#[test]
fn a_stream_that_ends_inside_a_long_secret_does_not_show_it() {
    let key = "sk-0123456789abcdefghijABCDEFGHIJ9876543210";
    let mut stream = MaskStream::new(Secrets::new([("KEY", key)]));
    assert_eq!(&*stream.push(&key.as_bytes()[..40]), b"");
    assert!(String::from_utf8(stream.finish()).unwrap().starts_with("[masked: KEY]"));
}

fn streamed(secrets: &Secrets, pieces: &[&[u8]]) -> Vec<u8> {
    let mut stream = MaskStream::new(secrets.clone());
    let mut shown = Vec::new();
    pieces.iter().for_each(|piece| shown.extend_from_slice(&stream.push(piece)));
    shown.extend(stream.finish());
    shown
}

proptest! {
    /// Secrets that begin, end and contain each other, in text made of little else.
    #[test]
    fn any_split_of_a_stream_gives_what_the_whole_gives(
        parts in proptest::collection::vec(
            prop_oneof![
                Just("abababab"), Just("ababababc"), Just("babababa-"), Just("ab"), Just("c"),
                Just("xababababcx"), Just("\n"), Just("ü"),
            ],
            0..60,
        ),
        size in 1usize..40,
    ) {
        static SECRETS: LazyLock<Secrets> = LazyLock::new(|| Secrets::new([
            ("A", "abababab"), ("B", "ababababc"), ("C", "babababa-"), ("D", "xababababcx"),
            ("E", "cababababab-abababab-ababababab-ababab"),
        ]));
        let secrets = &*SECRETS;
        let text = parts.concat();
        let whole = secrets.mask(&text).into_owned().into_bytes();
        let pieces: Vec<_> = text.as_bytes().chunks(size).collect();
        prop_assert_eq!(streamed(secrets, &pieces), whole);
    }
}

#[test]
fn a_secret_that_comes_in_two_pieces_is_neither_in_the_kept_ends_nor_in_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let outputs = crate::Outputs::new(folder.path()).masking(secrets());
    let mut capture = crate::Capture::new(outputs);
    let (front, back) = KEY.split_at(5);
    for n in 0..9_000 {
        capture.push(format!("line {n} {front}").as_bytes());
        assert!(!capture.recent(4_000).contains(front));
        capture.push(format!("{back} end\n").as_bytes());
    }
    let captured = capture.finish();
    let file = std::fs::read_to_string(captured.path.unwrap()).unwrap();
    assert_eq!(file.matches("[masked: KEY] end\n").count(), 9_000);
    for text in [&file, &captured.text] {
        assert!(text.contains("[masked: KEY]") && !text.contains(KEY));
    }
}
