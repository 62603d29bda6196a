//! Looking back, times, todos after an undo, commands that people know from elsewhere.

use super::*;

fn command(desk: &mut Desk, line: &str) {
    desk.write(line);
    desk.escape();
    desk.enter();
}

fn page(desk: &mut Desk) -> Vec<String> {
    desk.app.frame().live.iter().map(Line::text).collect()
}

/// Slash commands of the reference, with what they are called there.
const KNOWN: &[&str] = &[
    "new",
    "clear",
    "sessions",
    "resume",
    "continue",
    "models",
    "mo",
    "agents",
    "variants",
    "mcps",
    "themes",
    "connect",
    "status",
    "debug",
    "help",
    "skills",
    "exit",
    "quit",
    "q",
    "editor",
    "undo",
    "redo",
    "compact",
    "summarize",
    "share",
    "rename",
    "timeline",
    "fork",
    "copy",
    "export",
    "timestamps",
    "toggle-timestamps",
    "thinking",
    "toggle-thinking",
    "diff",
    "details",
];

#[test]
fn every_command_that_people_know_does_something_or_says_why_not() {
    for name in KNOWN {
        let mut desk = Desk::new(80, 24);
        assert!(desk.app.slash(name), "/{name}");
        assert!(!desk.shown().contains("There is no"), "/{name}: {}", desk.shown());
    }
    for name in ["unshare", "org", "orgs", "switch-org", "workspaces", "warp", "move"] {
        let mut desk = Desk::new(80, 24);
        assert!(desk.app.slash(name), "/{name}");
        let shown = desk.shown();
        assert!(shown.contains(&format!("There is no /{name}: ")), "{shown}");
    }
}

#[test]
fn times_are_shown_when_they_are_wanted() {
    let mut desk = Desk::new(60, 16);
    desk.app.begun_at = Some(1_700_000_000_000);
    desk.write("one");
    desk.enter();
    desk.news(News::Idle);
    assert!(!desk.shown().contains(':'), "{}", desk.shown());
    command(&mut desk, "/timestamps");
    desk.write("two");
    desk.enter();
    let shown = desk.shown();
    // The hour depends on where one is, the minute hardly ever.
    assert!(shown.lines().any(|row| row.starts_with("┃ ") && row.contains(":13")), "{shown}");
    let saved = desk.others.iter().any(|e| matches!(e, Effect::Save(prefs) if prefs.stamps));
    assert!(saved);
    desk.news(News::Idle);
    let (id, title) = ("ses_1".to_owned(), String::new());
    let blocks = vec![Block::user("long ago", Some(1_600_000_000_000))];
    desk.news(News::Session { id, title, blocks, left_out: 0 });
    assert!(desk.shown().contains("┃ 2020-09-13 "), "{}", desk.shown());
}

#[test]
fn what_is_to_be_done_is_what_the_conversation_says_after_going_back() {
    let mut desk = Desk::new(60, 16);
    let todos = |status: &str| json!({"todos": [{"status": status, "content": "test it"}]});
    let block = |status: &str| {
        let done = Done::from(&outcome("todowrite", "", "", todos(status)));
        let (tool, summary, progress) = ("todowrite".to_owned(), String::new(), String::new());
        Block::Call(Call { tool, summary, progress, started: Duration::ZERO, done: Some(done) })
    };
    desk.event(started(0, "todowrite", ""));
    desk.event(settled(0, outcome("todowrite", "", "", todos("in_progress"))));
    assert_eq!(desk.app.todos[0].0, "in_progress");
    desk.news(News::Rewound(vec![block("pending")]));
    assert_eq!(desk.app.todos[0].0, "pending");
    desk.news(News::Rewound(Vec::new()));
    assert!(desk.app.todos.is_empty());
}

#[test]
fn an_emptied_list_is_empty() {
    let mut desk = Desk::new(60, 16);
    let open = json!({"todos": [{"status": "in_progress", "content": "test it"}]});
    let (open, none) = (|| outcome("todowrite", "", "", open.clone()), json!({"todos": []}));
    let emptied = || outcome("todowrite", "", "", none.clone());
    desk.event(started(0, "todowrite", ""));
    desk.event(settled(0, open()));
    assert_eq!(desk.app.todos.len(), 1);
    desk.event(started(1, "todowrite", ""));
    desk.event(settled(1, emptied()));
    assert!(desk.app.todos.is_empty());
    let block = |outcome: &Outcome| {
        let (tool, summary, progress) = (outcome.tool.clone(), String::new(), String::new());
        let done = Some(Done::from(outcome));
        Block::Call(Call { tool, summary, progress, started: Duration::ZERO, done })
    };
    // One that failed has written nothing, and other tools write none.
    let failed = Outcome { ending: Ending::Failed, ..emptied() };
    let other = Outcome { tool: "mine".to_owned(), ..emptied() };
    desk.news(News::Rewound([&open(), &failed, &other].map(block).into()));
    assert_eq!(desk.app.todos.len(), 1);
    desk.news(News::Rewound([&open(), &emptied()].map(block).into()));
    assert!(desk.app.todos.is_empty());
}

#[test]
fn a_command_stands_once_in_its_question() {
    let ask_of = |tool: &str, summary: &str, preview: &str| {
        let mut desk = Desk::new(80, 24);
        let (summary, preview) = (summary.to_owned(), Some(preview.to_owned()));
        let question = Question { tool: tool.to_owned(), summary, preview, ..question() };
        desk.event(Event::Question { id: 1, question, offer: Offer::default() });
        desk.shown()
    };
    let ask = |summary: &str, preview: &str| ask_of("bash", summary, preview);
    let shown = ask("touch /etc/a", "touch /etc/a");
    assert_eq!(shown.matches("touch /etc/a").count(), 1, "{shown}");
    assert!(shown.contains("? Run this?"), "{shown}");
    let shown = ask("ls outside the sandbox, which stopped it", "ls");
    assert!(shown.contains("? Run this outside the sandbox, which stopped it?"), "{shown}");
    let shown = ask("explore: ls", "ls");
    assert!(shown.contains("? explore: run this?"), "{shown}");
    let shown = ask_of("fake_ask", "fake_ask {}", "{}");
    assert!(shown.contains("? fake_ask {}"), "{shown}");
    let shown = ask_of("edit", "edit main.rs", "@@ -1 +1 @@\n-a\n+b\n");
    assert!(shown.contains("? edit main.rs"), "{shown}");
}

#[test]
fn what_is_counted_is_counted_right() {
    let output = |n: usize| (0..n).map(|n| format!("row {n}\n")).collect::<String>();
    for (count, expected) in [(5, None), (6, Some("… 1 line above")), (7, Some("… 2 lines above"))]
    {
        let mut desk = Desk::new(60, 20);
        desk.event(started(0, "bash", "seq"));
        desk.event(settled(0, outcome("bash", "", &output(count), json!({"exit": 0}))));
        let shown = desk.shown();
        assert_eq!(shown.contains("above"), expected.is_some(), "{shown}");
        assert!(expected.is_none_or(|text| shown.contains(text)), "{shown}");
    }
}

/// Many blocks, of which only those that are looked at may cost anything.
fn long(count: usize) -> Desk {
    let mut desk = Desk::new(60, 12);
    let blocks =
        (0..count).map(|n| Block::Text(format!("answer {n}\n\nand more of {n}"))).collect();
    let (id, title) = ("ses_1".to_owned(), String::new());
    desk.news(News::Session { id, title, blocks, left_out: 0 });
    desk.paint();
    desk.press(Key::ctrl('t'));
    desk
}

#[test]
fn the_transcript_draws_only_what_is_looked_at() {
    let mut desk = long(10_000);
    let rows = page(&mut desk);
    assert!(rows.iter().any(|row| row == "and more of 9999"), "{rows:?}");
    assert!(rows[11].starts_with("10000/10000"), "{rows:?}");
    let drawn = |desk: &Desk| desk.app.transcript.as_ref().unwrap().drawn();
    assert!(drawn(&desk) < 20, "{}", drawn(&desk));
    desk.write("/more of 777");
    desk.enter();
    let rows = page(&mut desk);
    assert!(rows.iter().any(|row| row == "and more of 777"), "{rows:?}");
    // Round and round: 7770 to 7779 have it too.
    desk.write("n");
    let rows = page(&mut desk);
    assert!(rows.iter().any(|row| row == "and more of 7770"), "{rows:?}");
    desk.write("NN");
    let rows = page(&mut desk);
    assert!(rows.iter().any(|row| row == "and more of 7779"), "{rows:?}");
    assert!(drawn(&desk) < 60, "{}", drawn(&desk));
    desk.write("/no such words");
    desk.enter();
    assert!(page(&mut desk)[11].contains("is nowhere"), "{:?}", page(&mut desk));
}

#[test]
fn an_open_transcript_shows_the_same_when_the_oldest_blocks_go() {
    let mut desk = long(BLOCKS_CAP);
    desk.write("/more of 7777");
    desk.enter();
    let before = page(&mut desk);
    assert!(before.iter().any(|row| row == "and more of 7777"), "{before:?}");
    desk.news(News::Say { level: Level::Quiet, text: "one more".to_owned(), advice: None });
    let after = page(&mut desk);
    assert_eq!(after[..11], before[..11]);
    desk.press(Key::plain(Code::PageDown));
    let rows = page(&mut desk);
    assert!(rows.iter().any(|row| row == "answer 7780"), "{rows:?}");
    desk.press(Key::plain(Code::Home));
    assert_eq!(page(&mut desk)[0], format!("answer {}", BLOCKS_CAP / 4));
    desk.news(News::Rewound(vec![Block::user("another", None)]));
    let rows = page(&mut desk);
    assert!(rows.iter().any(|row| row.contains("another")), "{rows:?}");
}

#[test]
fn the_transcript_goes_up_and_down_by_rows_pages_and_blocks() {
    let mut desk = long(20);
    desk.press(Key::plain(Code::Home));
    assert_eq!(page(&mut desk)[..3], ["answer 0", "", "and more of 0"]);
    desk.press(Key::plain(Code::Down));
    desk.press(Key::plain(Code::Down));
    assert_eq!(page(&mut desk)[0], "and more of 0");
    desk.press(Key::plain(Code::Up));
    desk.press(Key::plain(Code::PageDown));
    desk.press(Key::plain(Code::PageUp));
    assert_eq!(page(&mut desk)[1], "and more of 0");
    desk.press(Key::plain(Code::End));
    let end = page(&mut desk);
    desk.press(Key::plain(Code::Down));
    assert_eq!(page(&mut desk), end);
    desk.write("[");
    for _ in 0..30 {
        desk.write("[");
    }
    assert_eq!(page(&mut desk)[0], "answer 0");
    for _ in 0..30 {
        desk.write("]");
    }
    assert!(page(&mut desk).iter().any(|row| row == "answer 19"));
    desk.give(Input::Resize { columns: 20, rows: 8 });
    assert!(page(&mut desk).iter().any(|row| row == "answer 19"));
}

#[test]
fn a_search_unfolds_what_has_it() {
    let mut desk = Desk::new(60, 24);
    let output: String = (1..40).map(|n| format!("needle-{n}\n")).collect();
    let done = Some(Done::from(&outcome("mcp_x", "one", &output, json!({}))));
    let (tool, summary, progress) = ("mcp_x".to_owned(), "one".to_owned(), String::new());
    let call = Block::Call(Call { tool, summary, progress, started: Duration::ZERO, done });
    let (id, title) = ("ses_1".to_owned(), String::new());
    desk.news(News::Session { id, title, blocks: vec![call], left_out: 0 });
    desk.press(Key::ctrl('t'));
    assert!(!page(&mut desk).iter().any(|row| row.contains("needle-33")));
    desk.write("/needle-33");
    desk.enter();
    assert!(page(&mut desk).iter().any(|row| row.contains("needle-33")));
}

#[test]
fn reasoning_is_shown_once_although_it_is_told_again_at_the_end() {
    let mut desk = Desk::new(60, 20);
    desk.write("go");
    desk.enter();
    let told = |text: &str| Event::ReasoningDone { text: text.to_owned() };
    desk.event(Event::StepStarted);
    desk.event(Event::Reasoning { delta: "**Weighing**".to_owned() });
    desk.event(text("An answer."));
    desk.event(told("**Weighing**"));
    desk.event(Event::TextDone { text: String::new() });
    assert_eq!(desk.shown().matches("Weighing").count(), 1, "{}", desk.shown());
    // Where it did not stream, it is told only then.
    desk.event(Event::StepStarted);
    desk.event(told("**Deciding**"));
    assert_eq!(desk.shown().matches("Deciding").count(), 1, "{}", desk.shown());
}

#[test]
fn what_waits_behind_a_list_is_written_when_the_program_is_left() {
    let mut desk = Desk::new(60, 20);
    command(&mut desk, "/themes");
    desk.event(Event::Notice { text: "something was said".to_owned() });
    let frame = desk.app.frame();
    assert!(frame.over.is_some() && frame.finished.is_empty());
    assert!(desk.app.backlog() > 0);
    desk.app.uncover();
    let frame = desk.app.frame();
    assert!(frame.over.is_none() && frame.finished.iter().any(|l| l.text().contains("was said")));
    assert_eq!(desk.app.backlog(), 0);
}
