use std::num::NonZero;
use std::path::Path;
use std::time::Duration;

use serde_json::json;
use toolwright::llm::{Finish, FinishReason, Usage};
use toolwright::permission::{Asked, Extent, Grant, Offer, Request, Scope, Suggestion};
use toolwright::session::{Ending, Outcome, QueueKind, TurnStatus};
use toolwright::tool::{Choice, Hint, Inquiry, InquiryItem, Question};
use toolwright::{Answer, Event, TurnEnd};

use super::*;
use crate::blocks::Done;
use crate::key::Code;
use crate::screen::Screen;
use crate::style::Depth;

/// The interface with a terminal to look at.
struct Desk {
    app: App,
    screen: Screen,
    terminal: vt100::Parser,
    now: Duration,
    orders: Vec<Order>,
    others: Vec<Effect>,
    bytes: String,
    /// What lies over the terminal, on its other screen.
    over: Option<vt100::Parser>,
}

fn size(n: usize) -> NonZero<u16> {
    NonZero::new(n as u16).unwrap()
}

impl Desk {
    fn new(columns: usize, rows: usize) -> Self {
        Self::with_depth(columns, rows, Depth::True)
    }

    fn with_depth(columns: usize, rows: usize, depth: Depth) -> Self {
        let mut desk = Self {
            app: App::new(columns, rows),
            screen: Screen::new(depth, columns),
            terminal: vt100::Parser::new(size(rows), size(columns), 1_000),
            now: Duration::ZERO,
            orders: Vec::new(),
            others: Vec::new(),
            bytes: String::new(),
            over: None,
        };
        desk.screen.set_height(rows);
        let pair = |name: &str, about: &str| (name.to_owned(), about.to_owned());
        desk.news(News::Ready(Facts {
            model: "anthropic/m".to_owned(),
            agent: "build".to_owned(),
            agents: vec![pair("build", "does the work"), pair("plan", "plans it")],
            workers: vec![pair("explore", "looks around")],
            skills: vec![pair("release", "how to release")],
            directory: "~/project".to_owned(),
            branch: Some("main".to_owned()),
            window: Some(200_000),
            ..Facts::default()
        }));
        desk
    }

    fn give(&mut self, input: Input) {
        self.now += Duration::from_millis(7);
        for effect in self.app.update(self.now, input) {
            match effect {
                Effect::Order(order) => self.orders.push(order),
                other => self.others.push(other),
            }
        }
    }

    fn news(&mut self, news: News) {
        self.give(Input::News(Box::new(news)));
    }

    fn event(&mut self, event: Event) {
        self.give(Input::Engine(Box::new(event)));
    }

    fn press(&mut self, key: Key) {
        self.give(Input::Key(key));
    }

    fn enter(&mut self) {
        self.press(Key::plain(Code::Enter));
    }

    fn escape(&mut self) {
        self.press(Key::plain(Code::Escape));
    }

    fn write(&mut self, text: &str) {
        text.chars().for_each(|c| self.press(Key::char(c)));
    }

    fn paint(&mut self) {
        let frame = self.app.frame();
        assert!(frame.live.len() <= self.app.rows, "{} rows", frame.live.len());
        for line in frame.live.iter().chain(&frame.finished) {
            let (wide, room) = (line.width(), self.app.columns.max(16));
            assert!(wide <= room, "{wide} > {room}: {:?}", line.text());
            assert!(!line.text().chars().any(char::is_control), "{:?}", line.text());
        }
        if let Some((row, _)) = frame.cursor {
            assert!(row < frame.live.len());
        }
        self.over = None;
        if let Some(waiting) = frame.over {
            let (rows, columns) = self.terminal.screen().size();
            let (live, cursor) = self.screen.covered(waiting, frame.live, frame.cursor);
            let mut full = Screen::new(Depth::True, usize::from(columns.get()));
            let mut other = vt100::Parser::new(rows, columns, 0);
            other.process(full.paint(&[], live, cursor).unwrap_or_default().as_bytes());
            self.over = Some(other);
            return;
        }
        if frame.hold {
            self.screen.hold();
        }
        if !frame.full
            && let Some(out) = self.screen.paint(&frame.finished, frame.live, frame.cursor)
        {
            self.terminal.process(out.as_bytes());
            self.bytes = out;
        }
    }

    /// The rows on the terminal.
    fn shown(&mut self) -> String {
        self.paint();
        let columns = self.app.columns as u16;
        let terminal = self.over.as_ref().unwrap_or(&self.terminal);
        let rows = terminal.screen().rows(0, columns).map(|r| r.trim_end().to_owned());
        let mut rows: Vec<String> = rows.collect();
        while rows.last().is_some_and(String::is_empty) {
            rows.pop();
        }
        rows.join("\n") + "\n"
    }

    /// Compares what is shown with the file of that name.
    fn matches(&mut self, name: &str) {
        let shown = self.shown();
        compare(name, &shown);
    }
}

/// `UPDATE_SNAPSHOTS=1` writes what is instead.
fn compare(name: &str, text: &str) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("snapshots");
    let path = folder.join(format!("{name}.txt"));
    if std::env::var_os("UPDATE_SNAPSHOTS").is_some() {
        std::fs::write(&path, text).unwrap();
        return;
    }
    let wanted = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(text, wanted, "{name} looks different; UPDATE_SNAPSHOTS=1 accepts it\n{text}");
}

fn outcome(tool: &str, title: &str, output: &str, details: serde_json::Value) -> Outcome {
    Outcome {
        ending: Ending::Completed,
        tool: tool.to_owned(),
        output: output.to_owned(),
        title: title.to_owned(),
        details,
        attachments: Vec::new(),
        duration_ms: 1_500,
        cost: None,
    }
}

fn started(position: usize, tool: &str, summary: &str) -> Event {
    let (call, tool, summary) = ("c".to_owned(), tool.to_owned(), summary.to_owned());
    Event::CallStarted { position, call, tool, summary }
}

fn settled(position: usize, outcome: Outcome) -> Event {
    Event::CallSettled { position, call: "c".to_owned(), arguments: String::new(), outcome }
}

fn ended(status: TurnStatus) -> Event {
    Event::TurnEnded(TurnEnd {
        status,
        problem: (status == TurnStatus::Failed).then(|| "the key is not valid".to_owned()),
        advice: (status == TurnStatus::Failed).then_some("Check it with tw auth list."),
        answer: "".into(),
        usage: Usage::default(),
        cost: None,
        steps: 2,
        denials: Vec::new(),
    })
}

fn text(delta: &str) -> Event {
    Event::Text { delta: delta.to_owned() }
}

fn question() -> Question {
    let request = |permission: &str, always: &str| Request {
        permission: permission.to_owned(),
        pattern: "main.rs".to_owned(),
        always: always.to_owned(),
        ..Request::default()
    };
    Question {
        position: 0,
        tool: "edit".to_owned(),
        arguments: json!({}),
        summary: "edit main.rs".to_owned(),
        requests: vec![request("edit", "*")],
        preview: Some("--- a/main.rs\n+++ b/main.rs\n@@ -1,2 +1,2 @@\n fn main() {\n-    old(1);\n+    new(1);\n".to_owned()),
        hint: Hint::Nothing,
    }
}

fn offer() -> Offer {
    let suggestion = |extent, pattern: &str| Suggestion { extent, pattern: pattern.to_owned() };
    let asked = Asked {
        permission: "edit".to_owned(),
        pattern: "main.rs".to_owned(),
        rule: None,
        from: "shipped defaults".to_owned(),
        why: "ask by the rule edit \"*\" of shipped defaults".to_owned(),
        suggestions: vec![
            suggestion(Extent::Exact, "main.rs"),
            suggestion(Extent::Prefix, "src/*"),
            suggestion(Extent::Tool, "*"),
        ],
    };
    Offer { why: String::new(), asked: vec![asked], scopes: Scope::ALL.to_vec() }
}

fn always(scope: Scope, extent: Extent) -> Answer {
    Answer::Always(Grant { scope, extent: Some(extent), patterns: Vec::new() })
}

fn inquiry(multiple: bool) -> Inquiry {
    let choice = |label: &str, description: &str| Choice {
        label: label.to_owned(),
        description: description.to_owned(),
    };
    let item = InquiryItem {
        question: "Which colour?".to_owned(),
        header: "Colour".to_owned(),
        options: vec![choice("red", "warm"), choice("blue", "cold")],
        multiple,
        custom: true,
    };
    Inquiry { items: vec![item.clone(), InquiryItem { multiple: false, ..item }] }
}

const PATCH: &str = "--- a/main.rs\n+++ b/main.rs\n@@ -1,2 +1,3 @@\n fn main() {\n-    old(1);\n+    new(1);\n+    more();\n";

/// A turn with a bit of everything, in the middle of its work.
fn busy(desk: &mut Desk) {
    desk.write("Fix the greeting");
    desk.enter();
    desk.event(Event::StepStarted);
    desk.event(Event::Reasoning { delta: "**Looking at it**\nIt is in main.".to_owned() });
    desk.event(Event::ReasoningDone { text: "**Looking at it**\nIt is in main.".to_owned() });
    desk.event(text(
        "## Plan\n\nI'll **look**, then edit:\n\n- read `main.rs`\n- 漢字 and 👩‍💻 stay whole\n",
    ));
    desk.event(Event::TextDone { text: String::new() });
    desk.event(started(0, "read", "main.rs"));
    desk.event(settled(0, outcome("read", "main.rs", "fn main() {}", json!({}))));
    desk.event(started(1, "edit", "main.rs"));
    let details = json!({"diff": PATCH, "additions": 2, "deletions": 1});
    desk.event(settled(1, outcome("edit", "main.rs", "done", details)));
    let todos = json!({"todos": [
        {"content": "edit", "status": "completed"}, {"content": "test it", "status": "in_progress"}]});
    desk.event(started(2, "todowrite", "2 todos"));
    desk.event(settled(2, outcome("todowrite", "1 todos", "[]", todos)));
    desk.event(started(3, "bash", "cargo test"));
    let lines: Vec<String> = (1..9).map(|n| format!("test {n} ... ok")).collect();
    desk.event(Event::CallProgress { position: 3, text: lines.join("\n") });
}

#[test]
fn a_turn_at_work_looks_right_in_every_size() {
    for (columns, rows) in [(80, 40), (120, 50), (40, 20)] {
        let mut desk = Desk::new(columns, rows);
        busy(&mut desk);
        desk.matches(&format!("busy-{columns}x{rows}"));
    }
}

#[test]
fn going_back_takes_the_list_of_things_to_do_back_too() {
    let mut desk = Desk::new(80, 40);
    busy(&mut desk);
    assert!(!desk.app.todos.is_empty());
    desk.news(News::Rewound(Vec::new()));
    assert!(desk.app.todos.is_empty());
}

#[test]
fn a_turn_that_has_ended_looks_right() {
    let mut desk = Desk::new(80, 50);
    busy(&mut desk);
    let failed = outcome("bash", "cargo test", "boom\n[exit code 1]", json!({"exit": 1}));
    desk.event(settled(3, failed));
    desk.event(started(4, "task", "explore: look around"));
    let report = outcome("task", "look around", "<task>", json!({"calls": 4}));
    desk.event(settled(4, Outcome { cost: Some(0.012), ..report }));
    let denied = outcome("bash", "rm -rf /", "The user said no", json!({}));
    desk.event(settled(5, Outcome { ending: Ending::Denied, ..denied }));
    desk.event(text("It is `done`:\n\n```rust\nfn main() { greet(\"you\"); }\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n"));
    let usage = Usage { input: 12_000, output: 300, ..Usage::default() };
    let finish = Finish { reason: FinishReason::Stop, raw: String::new() };
    desk.event(Event::StepEnded { usage, finish, cost: Some(0.0312) });
    desk.event(ended(TurnStatus::Failed));
    desk.news(News::Idle);
    desk.matches("ended-80x50");
}

#[test]
fn colours_follow_what_the_terminal_can_show() {
    for (name, depth) in [
        ("none", Depth::None),
        ("16", Depth::Sixteen),
        ("256", Depth::Indexed),
        ("true", Depth::True),
    ] {
        let mut desk = Desk::with_depth(40, 12, depth);
        desk.app.theme = Theme::built_in("tokyonight", true).unwrap();
        desk.write("x");
        desk.enter();
        desk.event(text("a `b` **c**\n\n```rs\nfn x() {}\n```\n"));
        desk.event(Event::TextDone { text: String::new() });
        desk.paint();
        let bytes = desk.bytes.replace('\x1b', "␛").replace("\r\n", "⏎\n");
        compare(&format!("colours-{name}"), &format!("{bytes}\n"));
    }
}

#[test]
fn a_permission_is_asked_with_the_diff_the_rule_and_the_choices() {
    let mut desk = Desk::new(80, 30);
    desk.write("go");
    desk.enter();
    desk.event(Event::Question { id: 7, question: question(), offer: offer() });
    desk.event(Event::Question { id: 8, question: question(), offer: offer() });
    desk.matches("permission-80x30");
    assert!(desk.others.contains(&Effect::Attention("edit main.rs".to_owned())));
    desk.press(Key::char('a'));
    desk.press(Key::char('w'));
    desk.write("not that one");
    desk.matches("permission-words-80x30");
    desk.enter();
    let message = Some("not that one".to_owned());
    let always = always(Scope::Session, Extent::Tool);
    assert_eq!(
        desk.orders[1..],
        [Order::Answer(7, always), Order::Answer(8, Answer::Reject { message })]
    );
    assert!(desk.app.asks.is_empty());
}

#[test]
fn a_question_that_nobody_waits_for_any_more_goes_away() {
    let mut desk = Desk::new(60, 20);
    desk.event(Event::Question { id: 3, question: question(), offer: Offer::default() });
    desk.event(Event::QuestionClosed { id: 3 });
    desk.write("y");
    assert!(desk.orders.is_empty());
    assert_eq!(desk.app.editor.text(), "y");
}

#[test]
fn questions_take_options_several_of_them_and_own_words() {
    let mut desk = Desk::new(60, 20);
    desk.event(Event::Inquiry { id: 1, inquiry: inquiry(true) });
    desk.write("12");
    desk.matches("inquiry-60x20");
    desk.enter();
    desk.write("3");
    desk.write("green");
    desk.enter();
    let both = vec!["red".to_owned(), "blue".to_owned()];
    assert_eq!(desk.orders, [Order::Reply(1, Some(vec![both, vec!["green".to_owned()]]))]);
    desk.event(Event::Inquiry { id: 2, inquiry: inquiry(false) });
    desk.escape();
    assert_eq!(desk.orders[1], Order::Reply(2, None));
}

#[test]
fn enter_steers_alt_enter_queues_and_escape_gives_the_text_back() {
    let mut desk = Desk::new(60, 20);
    desk.write("go");
    desk.enter();
    desk.write("faster");
    desk.enter();
    desk.write("and then rest");
    desk.press(Key::plain(Code::Enter).alt());
    assert_eq!(
        desk.orders,
        [
            Order::Prompt("go".to_owned()),
            Order::Steer("faster".to_owned()),
            Order::FollowUp("and then rest".to_owned())
        ]
    );
    let queued = |id, kind, text: &str| News::Queued { id, kind, text: text.to_owned() };
    desk.news(queued(0, QueueKind::Steer, "faster"));
    desk.news(queued(1, QueueKind::FollowUp, "and then rest"));
    desk.matches("queue-60x20");
    desk.press(Key::plain(Code::Up));
    assert_eq!(desk.app.editor.text(), "and then rest");
    assert_eq!(desk.orders.pop(), Some(Order::Withdraw(1)));
    desk.press(Key::ctrl('c'));
    desk.news(queued(1, QueueKind::FollowUp, "and then rest"));
    desk.event(Event::Delivered { id: 0 });
    desk.escape();
    desk.event(ended(TurnStatus::Interrupted));
    desk.news(News::Idle);
    assert_eq!(desk.orders[3..], [Order::Abort, Order::Withdraw(1)]);
    assert_eq!(desk.app.editor.text(), "and then rest");
    assert!(desk.shown().contains("┃ faster"));
}

#[test]
fn ctrl_c_clears_then_interrupts_then_leaves() {
    let mut desk = Desk::new(60, 20);
    desk.write("text");
    desk.press(Key::ctrl('c'));
    assert!(desk.app.editor.is_empty());
    desk.press(Key::ctrl('c'));
    assert!(!desk.others.contains(&Effect::Quit));
    desk.press(Key::ctrl('c'));
    assert!(desk.others.contains(&Effect::Quit));
}

#[test]
fn menus_complete_commands_files_and_agents() {
    let mut desk = Desk::new(70, 20);
    desk.write("/mod");
    desk.matches("menu-commands-70x20");
    desk.enter();
    assert_eq!(desk.orders, [Order::List(Kind::Models)]);
    desk.escape();
    desk.write("see @ma");
    let token = desk.others.iter().rev().find_map(|effect| match effect {
        Effect::Find { token, query } if query == "ma" => Some(*token),
        _ => None,
    });
    let paths = vec!["src/main.rs".to_owned(), "README.md".to_owned()];
    desk.give(Input::Found { token: 0, paths: vec!["stale".to_owned()] });
    desk.give(Input::Found { token: token.unwrap(), paths });
    desk.matches("menu-files-70x20");
    desk.press(Key::plain(Code::Tab));
    assert_eq!(desk.app.editor.text(), "see @src/main.rs ");
    desk.write("@expl");
    desk.enter();
    assert_eq!(desk.app.editor.text(), "see @src/main.rs @explore ");
}

#[test]
fn commands_do_what_they_say_and_unknown_ones_say_so() {
    let mut desk = Desk::new(80, 24);
    for (text, order) in [
        ("/compact", Order::Compact),
        ("/undo", Order::Undo),
        ("/export notes.md", Order::Export(Some("notes.md".to_owned()))),
        ("! ls -l", Order::Shell("ls -l".to_owned())),
        ("/usr/bin is what?", Order::Prompt("/usr/bin is what?".to_owned())),
    ] {
        desk.give(Input::Paste(text.to_owned()));
        desk.enter();
        assert_eq!(desk.orders.pop(), Some(order), "{text}");
        desk.news(News::Idle);
    }
    desk.give(Input::Paste("/exprot".to_owned()));
    desk.enter();
    assert!(desk.shown().contains("There is no command /exprot"), "{}", desk.shown());
    desk.give(Input::Paste("/release now".to_owned()));
    desk.enter();
    assert_eq!(desk.orders, [Order::Prompt("Use the skill \"release\". now".to_owned())]);
}

#[test]
fn lists_narrow_as_one_writes_and_themes_are_seen_before_they_are_chosen() {
    let mut desk = Desk::new(80, 24);
    let before = desk.app.theme.clone();
    desk.press(Key::ctrl('x'));
    desk.press(Key::char('t'));
    desk.write("nord");
    assert_eq!(desk.app.theme.name, "nord");
    desk.matches("themes-80x24");
    desk.escape();
    assert_eq!(desk.app.theme, before);
    desk.press(Key::ctrl('x'));
    desk.press(Key::char('t'));
    desk.write("dracula");
    desk.enter();
    assert!(
        matches!(desk.others.last(), Some(Effect::Save(p)) if p.theme.as_deref() == Some("dracula"))
    );
    desk.press(Key::plain(Code::Tab));
    assert_eq!(desk.orders, [Order::Agent("plan".to_owned())]);
}

#[test]
fn a_session_that_goes_on_shows_its_end_and_the_transcript_all_of_it() {
    let mut desk = Desk::new(60, 12);
    let call = Call {
        tool: "bash".to_owned(),
        summary: "seq 3".to_owned(),
        progress: String::new(),
        started: Duration::ZERO,
        done: Some(Done::from(&outcome("bash", "", "1\n2\n3\n[exit code 0]", json!({"exit": 0})))),
    };
    let mut blocks: Vec<Block> =
        (0..40).map(|n| Block::user(format!("prompt number {n}"), None)).collect();
    blocks.push(Block::Call(call));
    let (id, title) = ("ses_1".to_owned(), "Numbers".to_owned());
    desk.news(News::Session { id, title, blocks, left_out: 5 });
    assert!(desk.shown().contains("prompt number 39"));
    assert!(desk.others.contains(&Effect::Title("tw · Numbers".to_owned())));
    desk.press(Key::ctrl('t'));
    desk.write("/number 7");
    desk.enter();
    let frame = desk.app.frame();
    assert!(frame.full);
    assert!(frame.live.iter().any(|line| line.text() == "┃ prompt number 7"));
    desk.press(Key::char('q'));
    assert!(!desk.app.frame().full);
    assert_eq!(desk.app.farewell().unwrap(), "Go on with: tw -s ses_1");
}

#[test]
fn escape_twice_offers_the_earlier_messages() {
    let mut desk = Desk::new(60, 16);
    for prompt in ["first", "second"] {
        desk.write(prompt);
        desk.enter();
        desk.news(News::Idle);
    }
    desk.escape();
    desk.escape();
    desk.matches("back-60x16");
    desk.press(Key::ctrl('u'));
    assert_eq!(desk.orders.last(), Some(&Order::Back(0, Going::WithFiles)));
    desk.press(Key::ctrl('c'));
    desk.escape();
    desk.escape();
    desk.press(Key::plain(Code::Down));
    desk.enter();
    assert_eq!(desk.app.editor.text(), "first");
    assert_eq!(desk.orders.last(), Some(&Order::Back(1, Going::WordsOnly)));
}

#[test]
fn older_prompts_come_back_with_up_and_with_a_search() {
    let mut desk = Desk::new(60, 16);
    for prompt in ["alpha one", "beta two"] {
        desk.write(prompt);
        desk.enter();
        desk.news(News::Idle);
    }
    desk.write("draft");
    let (up, down) = (Key::plain(Code::Up), Key::plain(Code::Down));
    desk.press(up);
    desk.press(up);
    assert_eq!(desk.app.editor.text(), "alpha one");
    desk.press(down);
    desk.press(down);
    assert_eq!(desk.app.editor.text(), "draft");
    desk.press(Key::ctrl('r'));
    desk.write("one");
    desk.enter();
    assert_eq!(desk.app.editor.text(), "alpha one");
}

#[test]
fn nothing_moves_where_nothing_happens() {
    let mut desk = Desk::new(60, 16);
    assert_eq!(desk.app.pause(), None);
    desk.write("go");
    desk.enter();
    assert!(desk.app.pause().is_some());
    desk.news(News::Idle);
    assert_eq!(desk.app.pause(), None);
}

#[test]
fn a_command_of_ones_own_that_never_ends_holds_up_nothing_that_is_said() {
    let mut desk = Desk::new(60, 20);
    desk.write("go");
    desk.enter();
    desk.news(News::ShellStarted("yes".to_owned()));
    desk.news(News::ShellSaid("y\ny".to_owned()));
    for n in 0..50 {
        desk.event(text(&format!("line {n} ")));
        desk.event(text("of it\n\n"));
    }
    desk.paint();
    // All but the last line is finished, and the command stands below it.
    assert_eq!(desk.app.live.len(), 2);
    let shown = desk.shown();
    assert!(
        shown.contains("line 48 of it\n\nline 49 of it") && shown.contains("○ $ yes"),
        "{shown}"
    );
    assert!(shown.find("line 49 of it") < shown.find("○ $ yes"), "{shown}");
}

#[test]
fn text_of_models_and_tools_cannot_touch_the_terminal() {
    let mut desk = Desk::new(60, 20);
    let evil = "\x1b]0;owned\x07\x1b[2Jx\u{202e}y";
    desk.write("go");
    desk.enter();
    desk.event(text(evil));
    desk.event(started(0, "bash", evil));
    desk.event(Event::CallProgress { position: 0, text: evil.to_owned() });
    desk.paint();
    desk.event(settled(0, outcome("bash", evil, evil, json!({"diff": evil}))));
    desk.event(Event::Notice { text: evil.to_owned() });
    let asked = Question { summary: evil.to_owned(), preview: Some(evil.to_owned()), ..question() };
    desk.event(Event::Question { id: 1, question: asked, offer: Offer::default() });
    desk.paint();
    assert!(!desk.bytes.contains("\x1b]0;") && !desk.bytes.contains('\x07'));
}

mod dialogs;
mod looking;
mod questions;
mod random;
