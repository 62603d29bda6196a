//! Lists and what can be done in them; modes; commands of one's own; agents that work for this one.

use toolwright::permission::Mode;

use super::*;
use crate::app::OwnCommand;

fn row(label: &str, about: &str, value: &str) -> Row {
    Row { label: label.to_owned(), about: about.to_owned(), value: value.to_owned() }
}

fn command(desk: &mut Desk, text: &str) {
    desk.give(Input::Paste(text.to_owned()));
    desk.enter();
}

fn led(desk: &mut Desk, key: Key) {
    desk.press(Key::ctrl('x'));
    desk.press(key);
}

#[test]
fn the_mode_goes_round_with_a_key_and_is_seen_below_the_prompt() {
    let mut desk = Desk::new(80, 12);
    let backtab = Key::plain(Code::Tab).shift();
    let mut seen = Vec::new();
    for _ in 0..4 {
        desk.press(backtab);
        match desk.orders.pop() {
            Some(Order::Mode(mode)) => seen.push(mode),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(seen, [Mode::AcceptEdits, Mode::Plan, Mode::Auto, Mode::Ask]);
    desk.press(backtab);
    desk.matches("mode-hint-80x12");
    desk.now += Duration::from_secs(4);
    desk.give(Input::Tick);
    desk.matches("mode-80x12");
    command(&mut desk, "/mode plan");
    assert_eq!(desk.orders.pop(), Some(Order::Mode(Mode::Plan)));
    command(&mut desk, "/mode");
    desk.matches("modes-80x12");
    desk.write("auto");
    desk.enter();
    assert_eq!(desk.orders.pop(), Some(Order::Mode(Mode::Auto)));
    command(&mut desk, "/mode yolo");
    assert!(desk.shown().contains("there is no mode \"yolo\""));
    desk.event(Event::ModeChanged { mode: Mode::Ask });
    assert_eq!(desk.app.facts.mode, Mode::Ask);
}

#[test]
fn servers_are_connected_signed_in_at_and_looked_at() {
    let mut desk = Desk::new(80, 16);
    command(&mut desk, "/mcp");
    assert_eq!(desk.orders, [Order::List(Kind::Servers)]);
    let rows = vec![
        row("✓ docs", "connected, 2 tools", "mcp:docs"),
        row("✗ mail", "needs sign-in", "mcp:mail"),
    ];
    desk.news(News::Rows { kind: Kind::Servers, rows });
    assert_eq!(desk.orders.pop(), Some(Order::Preview("mcp:docs".to_owned())));
    let text = "runs   docs-server --stdio\nfrom   ~/.config/toolwright/toolwright.json\ntools  docs_search, docs_read";
    desk.news(News::Preview { value: "mcp:docs".to_owned(), text: text.to_owned() });
    desk.matches("servers-80x16");
    desk.enter();
    assert_eq!(desk.orders.pop(), Some(Order::Connect("docs".to_owned())));
    desk.press(Key::plain(Code::Down));
    desk.press(Key::ctrl('s'));
    assert!(desk.orders.contains(&Order::SignIn("mail".to_owned())));
    desk.press(Key::ctrl('o'));
    assert!(desk.orders.contains(&Order::SignOut("mail".to_owned())));
    desk.press(Key::char(' '));
    assert!(desk.orders.contains(&Order::Connect("mail".to_owned())));
}

#[test]
fn what_was_agreed_to_is_taken_back_and_rules_are_not() {
    let mut desk = Desk::new(80, 16);
    command(&mut desk, "/permissions");
    let rows = vec![
        row("agreed  bash git push *", "this session", "session:0"),
        row("agreed  just bash make", "this project", "kept:a1"),
        row("deny    bash rm *", "~/.config/toolwright/toolwright.json:4", "rule"),
        row("ask     edit *", "shipped defaults", "rule"),
    ];
    desk.news(News::Rows { kind: Kind::Permissions, rows });
    desk.matches("permissions-80x16");
    desk.press(Key::plain(Code::Down));
    desk.press(Key::ctrl('d'));
    assert_eq!(desk.orders[1..], [Order::Forget("kept:a1".to_owned())]);
    desk.press(Key::plain(Code::Down));
    desk.press(Key::ctrl('d'));
    assert_eq!(desk.orders.len(), 2);
    assert!(desk.shown().contains("in the file that they stand in"));
}

#[test]
fn sessions_are_renamed_copied_searched_and_deleted_on_a_second_word() {
    let mut desk = Desk::new(80, 16);
    led(&mut desk, Key::char('l'));
    let rows = vec![row("Fix the parser", "2 h ago", "ses_1"), row("Notes", "3 days ago", "ses_2")];
    desk.news(News::Rows { kind: Kind::Sessions, rows: rows.clone() });
    desk.press(Key::ctrl('d'));
    desk.matches("delete-80x16");
    // Another key in between takes it back.
    desk.press(Key::plain(Code::Down));
    desk.press(Key::ctrl('d'));
    assert!(!desk.orders.iter().any(|order| matches!(order, Order::Delete(_))));
    desk.press(Key::ctrl('d'));
    assert!(desk.orders.contains(&Order::Delete("ses_2".to_owned())));
    assert!(!desk.shown().contains("Notes"));
    desk.press(Key::ctrl('r'));
    desk.write(" again");
    desk.matches("rename-80x16");
    desk.enter();
    let (id, title) = (Some("ses_1".to_owned()), "Fix the parser again".to_owned());
    assert!(desk.orders.contains(&Order::Rename { id, title }));
    desk.news(News::Rows { kind: Kind::Sessions, rows });
    desk.write("xyz");
    assert!(desk.orders.contains(&Order::Search("xyz".to_owned())));
    assert!(desk.shown().contains("nothing fits"));
    let found = vec![row("Old things", "… said xyz there …", "ses_3")];
    desk.news(News::Searched { query: "xy".to_owned(), rows: found.clone() });
    assert!(!desk.shown().contains("Old things"));
    desk.news(News::Searched { query: "xyz".to_owned(), rows: found });
    assert!(desk.shown().contains("› Old things"));
    desk.press(Key::ctrl('o'));
    let copied = Order::Open { id: "ses_3".to_owned(), fork: true };
    assert_eq!(desk.orders.last(), Some(&copied));
}

#[test]
fn the_session_at_work_is_not_deleted_and_can_be_named() {
    let mut desk = Desk::new(80, 16);
    let (id, title) = ("ses_1".to_owned(), "One".to_owned());
    desk.news(News::Session { id, title, blocks: Vec::new(), left_out: 0 });
    led(&mut desk, Key::char('l'));
    desk.news(News::Rows { kind: Kind::Sessions, rows: vec![row("One", "", "ses_1")] });
    desk.press(Key::ctrl('d'));
    desk.press(Key::ctrl('d'));
    assert!(!desk.orders.iter().any(|order| matches!(order, Order::Delete(_))));
    desk.escape();
    command(&mut desk, "/rename Two of them");
    let title = "Two of them".to_owned();
    assert_eq!(desk.orders.last(), Some(&Order::Rename { id: None, title: title.clone() }));
    desk.news(News::Renamed(title));
    assert!(desk.others.contains(&Effect::Title("tw · Two of them".to_owned())));
    command(&mut desk, "/rename");
    assert!(desk.shown().contains("New name Two of them"));
}

#[test]
fn keys_are_changed_by_pressing_them_and_given_back() {
    let mut desk = Desk::new(80, 16);
    command(&mut desk, "/keys");
    desk.write("themes");
    desk.matches("keys-80x16");
    desk.enter();
    assert!(desk.shown().contains("Key for \"themes\""));
    desk.press(Key::plain(Code::F(5)));
    desk.escape();
    desk.press(Key::plain(Code::F(5)));
    assert!(desk.shown().contains("Themes"));
    desk.escape();
    let saved = desk.others.iter().rev().find_map(|effect| match effect {
        Effect::Save(prefs) => Some(prefs.keys.clone()),
        _ => None,
    });
    assert_eq!(saved.unwrap().get("theme_list").map(String::as_str), Some("f5"));
    command(&mut desk, "/keys");
    desk.write("themes");
    desk.press(Key::ctrl('d'));
    desk.escape();
    led(&mut desk, Key::char('t'));
    assert!(desk.shown().contains("Themes"));
    desk.escape();
    // With the leader key before it.
    command(&mut desk, "/keys");
    desk.write("background jobs");
    desk.enter();
    led(&mut desk, Key::char('w'));
    desk.escape();
    led(&mut desk, Key::char('w'));
    assert_eq!(desk.orders.last(), Some(&Order::List(Kind::Jobs)));
}

#[test]
fn commands_that_people_wrote_are_offered_and_sent() {
    let mut desk = Desk::new(80, 16);
    let own = |name: &str, about: &str, takes_words| OwnCommand {
        name: name.to_owned(),
        about: about.to_owned(),
        takes_words,
    };
    desk.app.facts.commands =
        vec![own("deploy", "to the cloud", true), own("init", "write AGENTS.md", false)];
    desk.app.facts.prompts = vec![("docs:ask".to_owned(), "ask the docs".to_owned())];
    desk.write("/depl");
    desk.matches("menu-own-80x16");
    desk.enter();
    assert_eq!(desk.app.editor.text(), "/deploy ");
    desk.write("now");
    desk.enter();
    let ordered = |name: &str, arguments: &str| Order::Command {
        name: name.to_owned(),
        arguments: arguments.to_owned(),
    };
    assert_eq!(desk.orders, [ordered("deploy", "now")]);
    assert!(desk.shown().contains("┃ /deploy now"));
    desk.write("/init");
    desk.enter();
    assert_eq!(desk.orders.len(), 1, "not while a turn runs");
    desk.news(News::Idle);
    desk.write("/init");
    desk.enter();
    assert_eq!(desk.orders.pop(), Some(ordered("init", "")));
    desk.news(News::Idle);
    command(&mut desk, "/docs:ask why");
    assert_eq!(desk.orders.pop(), Some(ordered("docs:ask", "why")));
}

#[test]
fn what_servers_offer_is_asked_for_once_and_completes() {
    let mut desk = Desk::new(80, 16);
    desk.app.facts.servers = true;
    desk.write("see @no");
    desk.write("t");
    assert_eq!(desk.orders, [Order::Offered]);
    let pair = |name: &str, about: &str| (name.to_owned(), about.to_owned());
    let resources = vec![pair("docs:note://1", "the first note")];
    desk.news(News::Offered { resources, prompts: vec![pair("docs:ask", "ask the docs")] });
    assert!(desk.shown().contains("@docs:note://1"), "{}", desk.shown());
    desk.press(Key::plain(Code::Tab));
    assert_eq!(desk.app.editor.text(), "see @docs:note://1 ");
}

#[test]
fn an_agent_at_work_is_a_line_that_can_be_opened() {
    let mut desk = Desk::new(80, 20);
    desk.write("look around");
    desk.enter();
    desk.event(started(0, "task", "explore: find the parser"));
    let progress = "task_id ses_child, 3 calls, now grep fn parse".to_owned();
    desk.event(Event::CallProgress { position: 0, text: progress.clone() });
    desk.matches("agent-80x20");
    led(&mut desk, Key::plain(Code::Down));
    assert_eq!(desk.orders.pop(), Some(Order::Child("ses_child".to_owned())));
    let blocks = vec![Block::user("Find the parser", None), Block::Text("Looking.".to_owned())];
    let child = |blocks| News::Child {
        id: "ses_child".to_owned(),
        title: "find the parser".to_owned(),
        blocks,
    };
    desk.news(child(blocks.clone()));
    let frame = desk.app.frame();
    assert!(frame.full);
    let shown: Vec<String> = frame.live.iter().map(Line::text).collect();
    compare("agent-open-80x20", &format!("{}\n", shown.join("\n")));
    // It goes on while somebody looks.
    desk.event(Event::CallProgress { position: 0, text: progress });
    assert_eq!(desk.orders.pop(), Some(Order::Child("ses_child".to_owned())));
    let more = blocks.into_iter().chain([Block::Text("Found it.".to_owned())]).collect();
    desk.news(child(more));
    assert!(desk.app.frame().live.iter().any(|line| line.text() == "Found it."));
    desk.press(Key::char('q'));
    assert!(!desk.app.frame().full);
    // Once it is done it can still be looked at.
    let report =
        outcome("task", "find the parser", "<task>", json!({"sessionId": "ses_child", "calls": 4}));
    desk.event(settled(0, report));
    desk.news(News::Idle);
    command(&mut desk, "/subagents");
    assert_eq!(desk.orders.pop(), Some(Order::Child("ses_child".to_owned())));
}

#[test]
fn one_block_of_the_transcript_is_unfolded_by_itself() {
    let mut desk = Desk::new(60, 24);
    let call = |name: &str| {
        let output: String = (1..9).map(|n| format!("{name} {n}\n")).collect();
        Block::Call(Call {
            tool: "mcp_x".to_owned(),
            summary: name.to_owned(),
            progress: String::new(),
            started: Duration::ZERO,
            done: Some(Done::from(&outcome("mcp_x", name, &output, json!({})))),
        })
    };
    let blocks = vec![call("one"), call("two")];
    let (id, title) = ("ses_1".to_owned(), String::new());
    desk.news(News::Session { id, title, blocks, left_out: 0 });
    desk.press(Key::ctrl('t'));
    let text = |desk: &mut Desk| -> String {
        desk.app.frame().live.iter().map(|line| line.text() + "\n").collect()
    };
    assert!(!text(&mut desk).contains("one 8"));
    desk.write("[");
    desk.enter();
    let shown = text(&mut desk);
    assert!(shown.contains("one 8") && !shown.contains("two 8"), "{shown}");
    desk.write("]");
    desk.enter();
    assert!(text(&mut desk).contains("two 8"));
    desk.write("o");
    desk.write("o");
    assert!(!text(&mut desk).contains("one 8"));
}

#[test]
fn the_first_start_says_what_to_do_in_three_lines_and_enter_does_it() {
    for (columns, rows) in [(80, 16), (40, 16)] {
        let mut desk = Desk::new(columns, rows);
        let facts = Facts { demo: true, model: "demo/demo".to_owned(), ..desk.app.facts.clone() };
        desk.news(News::Ready(facts));
        desk.matches(&format!("first-{columns}x{rows}"));
        desk.enter();
        assert_eq!(desk.orders, [Order::List(Kind::Providers)]);
    }
    let mut desk = Desk::new(80, 16);
    let local = Some("Ollama".to_owned());
    let facts = Facts { local, model: "ollama/qwen".to_owned(), ..desk.app.facts.clone() };
    desk.news(News::Ready(facts));
    assert!(desk.shown().contains("Ollama runs on this machine"));
    desk.enter();
    assert!(desk.orders.is_empty());
}

#[test]
fn vim_keys_are_for_those_who_want_them() {
    let mut desk = Desk::new(80, 12);
    desk.write("one two");
    desk.escape();
    desk.write("x");
    assert_eq!(desk.app.editor.text(), "one twox");
    desk.press(Key::ctrl('c'));
    command(&mut desk, "/vim");
    desk.write("one two");
    desk.escape();
    desk.write("0dw");
    assert_eq!(desk.app.editor.text(), "two");
    desk.matches("vim-80x12");
    desk.enter();
    assert_eq!(desk.orders, [Order::Prompt("two".to_owned())]);
    assert!(matches!(desk.others.iter().find(|e| matches!(e, Effect::Save(_))),
        Some(Effect::Save(prefs)) if prefs.vim == Some(true)));
}

#[test]
fn images_are_shown_where_there_are_colours() {
    let mut desk = Desk::new(60, 20);
    desk.app.prefs.pictures = crate::picture::Means::Blocks;
    desk.write("look");
    desk.enter();
    desk.event(started(0, "read", "a.png"));
    let image = image::RgbImage::from_pixel(8, 4, image::Rgb([200, 10, 10]));
    let mut bytes = std::io::Cursor::new(Vec::new());
    image.write_to(&mut bytes, image::ImageFormat::Png).unwrap();
    use base64::Engine as _;
    let base64 = base64::engine::general_purpose::STANDARD.encode(bytes.into_inner()).into();
    let media = toolwright::llm::Media { mime: "image/png".into(), base64, name: None };
    let pictures = crate::picture::Picture::of(&media, crate::picture::Canvas::default())
        .into_iter()
        .collect();
    desk.news(News::Pictures { call: "c".to_owned(), pictures });
    desk.event(settled(0, outcome("read", "a.png", "", json!({}))));
    desk.matches("image-60x20");
}

#[test]
fn changes_are_shown_together_and_the_effort_is_chosen() {
    let mut desk = Desk::new(60, 20);
    command(&mut desk, "/diff");
    assert!(desk.shown().contains("nothing was changed"));
    busy(&mut desk);
    desk.news(News::Idle);
    command(&mut desk, "/changes");
    let frame = desk.app.frame();
    let text: Vec<String> = frame.live.iter().map(Line::text).collect();
    assert!(frame.full && text[0].starts_with("● Edit main.rs"), "{text:?}");
    assert!(!text.iter().any(|row| row.contains("Plan")), "{text:?}");
    desk.press(Key::char('q'));
    desk.orders.clear();
    command(&mut desk, "/effort high");
    command(&mut desk, "/variants");
    desk.write("usual");
    desk.enter();
    command(&mut desk, "/effort lots");
    let high = Some(toolwright::llm::Effort::High);
    assert_eq!(desk.orders, [Order::Effort(high), Order::Effort(None)]);
    assert!(desk.shown().contains("there is no effort \"lots\""));
}
