//! Questions: how far a yes reaches, trust, forms of servers, and hands that are still writing.

use super::*;
use crate::app::Trust;

fn asking(columns: usize, rows: usize) -> Desk {
    let mut desk = Desk::new(columns, rows);
    desk.write("go");
    desk.enter();
    desk.event(Event::Question { id: 7, question: question(), offer: offer() });
    desk
}

fn tab() -> Key {
    Key::plain(Code::Tab)
}

#[test]
fn a_yes_reaches_as_far_and_lasts_as_long_as_the_person_says() {
    use Extent::{Exact, Prefix, Tool};
    use Scope::{Everywhere, Project, Session};
    let (left, right) = (Key::plain(Code::Left), Key::plain(Code::Right));
    for (keys, scope, extent) in [
        (vec![], Session, Tool),
        (vec![right], Session, Exact),
        (vec![left], Session, Prefix),
        // What is kept for long is kept narrow, unless somebody says how far.
        (vec![tab()], Project, Exact),
        (vec![tab(), tab()], Everywhere, Exact),
        (vec![tab(), tab(), tab()], Session, Tool),
        (vec![tab().shift()], Everywhere, Exact),
        (vec![left, tab()], Project, Prefix),
    ] {
        let mut desk = asking(80, 24);
        keys.iter().for_each(|key| desk.press(*key));
        desk.press(Key::char('a'));
        assert_eq!(desk.orders[1], Order::Answer(7, always(scope, extent)), "{keys:?}");
    }
}

#[test]
fn the_choices_look_right_in_every_size() {
    for (columns, rows) in [(80, 24), (120, 40), (40, 12)] {
        let mut desk = asking(columns, rows);
        desk.press(tab());
        desk.matches(&format!("permission-project-{columns}x{rows}"));
    }
}

#[test]
fn a_pattern_of_ones_own_is_sent_and_asked_for_again_if_it_is_not_taken() {
    let mut desk = asking(80, 24);
    desk.press(Key::char('e'));
    desk.press(Key::ctrl('u'));
    desk.write("*.rs");
    desk.enter();
    let grant = |patterns: Vec<String>| Grant { scope: Scope::Session, extent: None, patterns };
    let own = Answer::Always(grant(vec!["*.rs".to_owned()]));
    assert_eq!(desk.orders[1], Order::Answer(7, own));
    assert!(desk.app.asks.is_empty());
    let problem = "this \"always\" is not taken: the pattern does not cover main.c".to_owned();
    desk.news(News::NotTaken { id: 7, problem });
    desk.matches("permission-not-taken-80x24");
    desk.press(Key::char('y'));
    assert_eq!(desk.orders[2], Order::Answer(7, Answer::Once));
}

#[test]
fn what_can_only_be_allowed_once_offers_nothing_else() {
    let mut desk = Desk::new(60, 20);
    desk.event(Event::Question { id: 1, question: question(), offer: Offer::default() });
    assert!(!desk.shown().contains("always"), "{}", desk.shown());
    for key in [Key::char('a'), Key::char('e'), tab(), Key::plain(Code::Left)] {
        desk.press(key);
    }
    assert!(desk.orders.is_empty());
    desk.press(Key::char('n'));
    assert_eq!(desk.orders, [Order::Answer(1, Answer::Reject { message: None })]);
}

#[test]
fn every_rule_that_asks_is_named() {
    let mut desk = Desk::new(80, 24);
    let mut offer = offer();
    for (n, permission) in ["bash", "webfetch", "external_directory"].iter().enumerate() {
        let mut more = offer.asked[0].clone();
        more.permission = (*permission).to_owned();
        more.why = format!("ask by rule {n}");
        offer.asked.push(more);
    }
    desk.event(Event::Question { id: 1, question: question(), offer });
    desk.matches("permission-rules-80x24");
}

fn trust(changed: &[&str]) -> Trust {
    let wants = [
        (".opencode/opencode.json", "mcp servers, permission rules that allow"),
        (".opencode/plugin/notify.ts", "a plugin"),
    ];
    Trust {
        folder: "/home/me/project".to_owned(),
        changed: changed.iter().map(|file| (*file).to_owned()).collect(),
        wants: wants.iter().map(|(file, what)| ((*file).to_owned(), (*what).to_owned())).collect(),
    }
}

#[test]
fn a_new_folder_is_trusted_by_a_clear_yes_only() {
    for (columns, rows) in [(80, 24), (40, 12)] {
        let mut desk = Desk::new(columns, rows);
        desk.news(News::Trust(trust(&[])));
        desk.matches(&format!("trust-{columns}x{rows}"));
    }
    for (key, answer) in [
        (Key::char('y'), Some(true)),
        (Key::char('n'), Some(false)),
        (Key::plain(Code::Enter), Some(false)),
        (Key::plain(Code::Escape), None),
    ] {
        let mut desk = Desk::new(80, 24);
        desk.news(News::Trust(trust(&["opencode.json"])));
        assert!(desk.shown().contains("changed since: opencode.json"));
        desk.news(News::Idle);
        desk.press(key);
        assert_eq!(desk.orders, [Order::Trust(answer)]);
    }
}

fn item(question: &str, options: &[&str]) -> InquiryItem {
    let choice = |label: &&str| Choice { label: (*label).to_owned(), description: String::new() };
    InquiryItem {
        question: question.to_owned(),
        header: String::new(),
        options: options.iter().map(choice).collect(),
        multiple: false,
        custom: options.is_empty(),
    }
}

#[test]
fn a_form_of_a_server_is_filled_in_field_by_field() {
    let mut desk = Desk::new(60, 16);
    let lead = "The MCP server docs asks: Who are you?\nYour name";
    let items = vec![item(lead, &[]), item("Sure?", &["Yes", "No"]), item("Age", &[])];
    desk.event(Event::Inquiry { id: 3, inquiry: Inquiry { items } });
    desk.matches("form-60x16");
    desk.write("Ann");
    desk.enter();
    // Back to the first, and on again.
    desk.press(Key::plain(Code::Left));
    desk.write("Anna");
    desk.enter();
    desk.write("2");
    desk.enter();
    let replies = vec![vec!["Anna".to_owned()], vec!["No".to_owned()], Vec::new()];
    assert_eq!(desk.orders, [Order::Reply(3, Some(replies))]);
    let items = vec![item("Name", &[])];
    desk.event(Event::Inquiry { id: 4, inquiry: Inquiry { items } });
    desk.escape();
    assert_eq!(desk.orders[1], Order::Reply(4, None));
}

#[test]
fn an_address_that_a_server_wants_opened_can_be_opened_and_copied() {
    let mut desk = Desk::new(60, 16);
    let text = "The MCP server docs asks you to open this address: sign the form\nhttps://example.org/form?id=1234567890&state=abcdefghijklmnopqrstuvwxyz\nOpen it only if you know where it leads.";
    let items = vec![item(text, &["I have opened it", "Decline"])];
    desk.event(Event::Inquiry { id: 3, inquiry: Inquiry { items } });
    desk.matches("address-60x16");
    desk.press(Key::ctrl('o'));
    desk.press(Key::ctrl('y'));
    let address =
        "https://example.org/form?id=1234567890&state=abcdefghijklmnopqrstuvwxyz".to_owned();
    assert_eq!(desk.orders, [Order::OpenAddress(address.clone())]);
    assert!(desk.others.contains(&Effect::Copy(address)));
    desk.write("1");
    let opened = vec![vec!["I have opened it".to_owned()]];
    assert_eq!(desk.orders[1], Order::Reply(3, Some(opened)));
}

#[test]
fn letters_of_a_word_that_is_being_written_answer_nothing() {
    let mut desk = Desk::new(60, 16);
    desk.write("go");
    desk.enter();
    desk.write("and ma");
    desk.event(Event::Question { id: 7, question: question(), offer: offer() });
    assert!(desk.shown().contains("a question waits"), "{}", desk.shown());
    desk.write("y");
    assert_eq!(desk.app.editor.text(), "and may");
    assert_eq!(desk.orders.len(), 1);
    desk.now += Duration::from_secs(1);
    desk.give(Input::Tick);
    assert!(desk.shown().contains("Yes, once"));
    desk.write("y");
    assert_eq!(desk.orders[1], Order::Answer(7, Answer::Once));
    assert_eq!(desk.app.editor.text(), "and may");
}

#[test]
fn a_question_behind_a_dialog_says_that_it_waits() {
    let mut desk = Desk::new(60, 16);
    desk.press(Key::ctrl('p'));
    desk.event(Event::Question { id: 7, question: question(), offer: offer() });
    assert!(desk.shown().contains("a question waits behind this: esc"));
    desk.escape();
    desk.press(Key::char('y'));
    assert_eq!(desk.orders, [Order::Answer(7, Answer::Once)]);
}
