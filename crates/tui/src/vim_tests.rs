use super::*;

/// What becomes of a text under these keys, beginning in insert mode at its end; `⎋` is escape, `^R` is
/// ctrl+r. The cursor stands where the bar is.
fn after(text: &str, keys: &str) -> String {
    let mut editor = Editor::default();
    editor.set(text);
    let mut vim = Vim::new(true);
    let mut keys = keys.chars().peekable();
    while let Some(c) = keys.next() {
        let key = match c {
            '⎋' => Key::plain(Code::Escape),
            '^' if keys.peek() == Some(&'R') => {
                keys.next();
                Key::ctrl('r')
            }
            c => Key::char(c),
        };
        if vim.key(key, &mut editor, 80) == Did::Nothing
            && let Some(c) = key.typed()
        {
            editor.insert(c);
        }
    }
    let mut shown = editor.text().to_owned();
    shown.insert(editor.cursor(), '|');
    shown
}

#[test]
fn motions_operators_and_counts_do_what_hands_expect() {
    for (text, keys, expected) in [
        ("one two", "⎋", "one tw|o"),
        ("one two", "⎋0", "|one two"),
        ("one two three", "⎋0w", "one |two three"),
        ("one two three", "⎋02w", "one two |three"),
        ("one two three", "⎋b", "one two |three"),
        ("one two three", "⎋2b", "one |two three"),
        ("one two", "⎋0e", "on|e two"),
        ("one two", "⎋0ee", "one tw|o"),
        ("one two", "⎋0$", "one tw|o"),
        ("one two", "⎋0ll", "on|e two"),
        ("one two", "⎋03lhh", "o|ne two"),
        ("a\nb\nc", "⎋gg", "|a\nb\nc"),
        ("a\nb\nc", "⎋ggG", "a\nb\n|c"),
        ("one", "⎋0x", "|ne"),
        ("one", "⎋02x", "|e"),
        ("one two", "⎋0dw", "|two"),
        ("one two three", "⎋02dw", "|three"),
        ("one two three", "⎋0d2w", "|three"),
        ("one two", "⎋0de", "| two"),
        ("one two", "⎋db", "one |o"),
        ("one two", "⎋0wD", "one| "),
        ("one two", "⎋0wCsix", "one six|"),
        ("one two", "⎋0cwsix", "six| two"),
        ("a\nb\nc", "⎋kdd", "a\n|c"),
        ("a\nb\nc", "⎋dd", "a\n|b"),
        ("a\nb\nc", "⎋gg2dd", "|c"),
        ("a", "⎋dd", "|"),
        ("a\nb", "⎋ggyyGp", "a\nb\n|a"),
        ("a\nb", "⎋yyggP", "|b\na\nb"),
        ("ab", "⎋0xp", "b|a"),
        ("a\nb", "⎋ggccnew", "new|\nb"),
        ("a\nb", "⎋ggonew", "a\nnew|\nb"),
        ("a\nb", "⎋Onew", "a\nnew|\nb"),
        ("one two", "⎋0aX", "oX|ne two"),
        ("one two", "⎋0AX", "one twoX|"),
        ("one two", "⎋IX", "X|one two"),
        ("one two", "⎋0dwu", "|one two"),
        ("one two", "⎋0dwu^R", "|two"),
        ("one", "⎋0rX", "|Xne"),
        ("a.b c", "⎋0w", "a|.b c"),
        ("漢字 é", "⎋0x", "|字 é"),
        ("one", "⎋0d⎋x", "|ne"),
        ("", "⎋/x", "/x|"),
    ] {
        let wanted = match expected {
            // The cursor stays on the text.
            "one| " => "one| ".to_owned(),
            other => other.to_owned(),
        };
        assert_eq!(after(text, keys), wanted, "{text:?} {keys}");
    }
}

#[test]
fn beyond_the_first_and_the_last_row_are_other_prompts() {
    let mut editor = Editor::default();
    editor.set("a\nb");
    let mut vim = Vim::new(true);
    vim.key(Key::plain(Code::Escape), &mut editor, 80);
    assert_eq!(vim.word(), Some("normal"));
    assert_eq!(vim.key(Key::char('j'), &mut editor, 80), Did::Newer);
    assert_eq!(vim.key(Key::char('k'), &mut editor, 80), Did::Taken);
    assert_eq!(vim.key(Key::char('k'), &mut editor, 80), Did::Older);
    assert_eq!(vim.key(Key::plain(Code::Enter), &mut editor, 80), Did::Nothing);
    assert_eq!(vim.key(Key::plain(Code::Escape), &mut editor, 80), Did::Nothing);
}
