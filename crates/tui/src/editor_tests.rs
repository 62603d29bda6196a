use super::*;

fn editor(text: &str) -> Editor {
    let mut editor = Editor::default();
    editor.insert_text(text);
    editor
}

#[test]
fn words_lines_and_characters_are_moved_over_and_deleted() {
    let mut e = editor("one two\nthree");
    e.go_word_left();
    assert_eq!(e.before_cursor().len(), 8);
    e.left();
    e.kill_word_back();
    assert_eq!(e.text(), "one \nthree");
    e.yank();
    assert_eq!(e.text(), "one two\nthree");
    e.go_line_start();
    e.kill_to_end();
    assert_eq!(e.text(), "\nthree");
    e.kill_to_end();
    assert_eq!(e.text(), "three");
    e.undo();
    e.undo();
    assert_eq!(e.text(), "one two\nthree");
    e.redo();
    assert_eq!(e.text(), "\nthree");
}

#[test]
fn kills_in_a_row_come_back_together() {
    let mut e = editor("alpha beta gamma");
    e.kill_word_back();
    e.kill_word_back();
    assert_eq!(e.text(), "alpha ");
    e.yank();
    assert_eq!(e.text(), "alpha beta gamma");
}

#[test]
fn typing_is_undone_by_the_word() {
    let mut e = Editor::default();
    "ab cd".chars().for_each(|c| e.insert(c));
    e.undo();
    assert_eq!(e.text(), "ab ");
    e.undo();
    assert_eq!(e.text(), "ab");
    e.undo();
    assert_eq!(e.text(), "");
}

#[test]
fn characters_of_several_code_points_are_one() {
    let mut e = editor("a👨‍👩‍👧b");
    e.left();
    e.backspace();
    assert_eq!(e.text(), "ab");
    let mut e = editor("e");
    e.insert('\u{301}');
    e.insert('x');
    e.backspace();
    e.backspace();
    assert_eq!(e.text(), "");
}

#[test]
fn long_pastes_are_one_word_until_they_are_sent() {
    let mut e = editor("see ");
    e.paste("a\nb\nc\nd\ne\nf");
    assert_eq!(e.text(), "see [Paste 1: 6 lines]");
    assert_eq!(e.whole(), "see a\nb\nc\nd\ne\nf");
    e.backspace();
    assert_eq!(e.text(), "see ");
    e.paste("short");
    assert_eq!(e.take(), "see short");
    assert!(e.is_empty());
}

#[test]
fn up_and_down_keep_their_column_and_stop_at_the_ends() {
    let mut e = editor("abcdef\nx\nabcdef");
    assert!(e.up(20));
    assert!(e.up(20));
    assert_eq!(e.before_cursor().len(), 6);
    assert!(!e.up(20));
    assert!(e.down(20) && e.down(20) && !e.down(20));
    assert_eq!(e.before_cursor().len(), 15);
}

#[test]
fn rows_are_broken_by_width() {
    let e = editor("漢字漢字ab\n");
    let layout = e.layout(5);
    assert_eq!(layout.rows, ["漢字", "漢字a", "b", ""]);
    assert_eq!((layout.row, layout.column), (3, 0));
}

#[test]
fn what_is_typed_cannot_move_the_terminals_cursor() {
    assert_eq!(editor("a\x1b[2Jb\tc").text(), "a[2Jb  c");
}
