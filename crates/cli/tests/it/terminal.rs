//! What a person can do in the terminal interface, through a real terminal, against the scripted model.

use serde_json::json;
use toolwright_testkit::{Answer, Folder, ModelServer, Reply, Terminal, eventually};

use crate::mcp::{config, fake};
use crate::results;
use crate::tui_kit::{MODEL, last_words, leave, place};

fn start(folder: &Folder, arguments: &[&str]) -> Terminal {
    let all: Vec<&str> = MODEL.iter().chain(arguments).copied().collect();
    Terminal::start(folder, &all, 100, 34)
}

fn ready(folder: &Folder, arguments: &[&str]) -> Terminal {
    let terminal = start(folder, arguments);
    terminal.wait_for("anthropic/m");
    terminal
}

#[test]
fn a_new_folder_is_asked_about_once_and_then_its_commands_work() {
    let server = ModelServer::start([Answer::text("Greeted."), Answer::text("Again.")]);
    let own = json!({"command": {"greet": {"template": "Say hello to $ARGUMENTS, see @a.txt"}}});
    let folder = place(&server).file("opencode.json", &own.to_string()).file("a.txt", "the list\n");
    let mut terminal = start(&folder, &[]);
    terminal.wait_for("? Do you trust");
    terminal.wait_for("opencode.json: command");
    terminal.keys("y");
    terminal.wait_for("anthropic/m");
    terminal.keys("/greet Bob\r");
    terminal.wait_for("Greeted.");
    assert!(terminal.screen().contains("┃ /greet Bob"));
    let said = last_words(&server);
    assert!(said.contains("Say hello to Bob") && said.contains("the list"), "{said}");
    leave(&mut terminal);
    let mut terminal = ready(&folder, &[]);
    assert!(!terminal.screen().contains("Do you trust"));
    leave(&mut terminal);
}

#[test]
fn a_folder_that_is_refused_brings_nothing_and_is_not_asked_about_again() {
    let server = ModelServer::start([]);
    let own = json!({"command": {"greet": {"template": "Say hello"}}});
    let folder = place(&server).file("opencode.json", &own.to_string());
    let mut terminal = start(&folder, &[]);
    terminal.wait_for("? Do you trust");
    terminal.keys("\r");
    terminal.wait_for("anthropic/m");
    terminal.keys("/greet\r");
    terminal.wait_for("There is no command /greet");
    leave(&mut terminal);
    let mut terminal = ready(&folder, &[]);
    assert!(!terminal.screen().contains("Do you trust"));
    leave(&mut terminal);
}

#[test]
fn an_approval_for_the_project_is_kept_seen_and_taken_back() {
    let touch = |name: &str| Answer::call("bash", json!({"command": format!("touch {name}")}));
    let server = ModelServer::start([
        touch("one"),
        Answer::text("First done."),
        touch("one"),
        Answer::text("Second done."),
        touch("one"),
        Answer::text("Third done."),
    ]);
    let folder = place(&server);
    let mut terminal = ready(&folder, &[]);
    terminal.keys("go\r");
    terminal.wait_for("Yes, always in this session");
    terminal.keys("\t");
    terminal.wait_for("Yes, always in this project: just bash touch one");
    terminal.keys("a");
    terminal.wait_for("First done.");
    leave(&mut terminal);
    let mut terminal = ready(&folder, &[]);
    terminal.keys("again\r");
    terminal.wait_for("Second done.");
    terminal.keys("/permissions\r");
    terminal.wait_for("agreed  just bash touch one");
    assert!(terminal.screen().contains("shipped defaults"), "{}", terminal.screen());
    terminal.keys("\x04");
    terminal.wait_until("it to go", |screen| !screen.contains("agreed  just bash touch one"));
    terminal.keys("\x1b");
    terminal.wait_for("Ask anything");
    terminal.keys("and again\r");
    terminal.wait_for("Yes, once");
    terminal.keys("y");
    terminal.wait_for("Third done.");
    leave(&mut terminal);
}

#[test]
fn a_pattern_that_does_not_cover_the_call_is_refused_and_asked_for_again() {
    let server = ModelServer::start([
        Answer::call("bash", json!({"command": "touch one"})),
        Answer::text("Done it."),
    ]);
    let folder = place(&server);
    let terminal = ready(&folder, &[]);
    terminal.keys("go\r");
    terminal.wait_for("Yes, once");
    terminal.keys("e\x15rm *\r");
    terminal.wait_for("does not cover touch one");
    assert!(!folder.work().join("one").exists());
    terminal.keys("e\x15touch *\r");
    terminal.wait_for("Done it.");
    assert!(folder.work().join("one").exists());
}

#[test]
fn the_mode_is_changed_with_a_key_before_and_while_it_works() {
    let edit = |old: &str, new: &str| {
        Answer::call("edit", json!({"filePath": "a.txt", "oldString": old, "newString": new}))
    };
    let server = ModelServer::start([
        Answer::call("read", json!({"filePath": "a.txt"})),
        edit("one", "two"),
        Answer::text("Changed once."),
        edit("two", "three"),
        Answer::text("Changed twice."),
        edit("three", "four"),
        Answer::text("Not changed."),
    ]);
    let folder = place(&server).file("a.txt", "one\n");
    let terminal = ready(&folder, &[]);
    terminal.keys("\x1b[Z");
    terminal.wait_for("accept-edits");
    terminal.keys("go\r");
    terminal.wait_for("Changed once.");
    assert_eq!(folder.read("a.txt"), "two\n");
    terminal.wait_for("Ask anything");
    terminal.keys("/mode ask\r");
    terminal.wait_for("ask: as the rules say");
    terminal.keys("again\r");
    terminal.wait_for("Yes, once");
    // What waits is decided by the new mode.
    terminal.keys("y");
    terminal.wait_for("Changed twice.");
    terminal.wait_for("Ask anything");
    terminal.keys("/mode plan\r");
    terminal.wait_for("plan · anthropic/m · plan");
    terminal.keys("once more\r");
    terminal.wait_for("Not changed.");
    assert_eq!(folder.read("a.txt"), "three\n");
    assert!(results(&server.last_request()).last().unwrap().contains("denied"));
}

#[test]
fn a_server_asks_the_person_and_shows_how_it_stands() {
    let server = ModelServer::start([
        Answer::call("fake_ask", json!({})),
        Answer::text("Told it."),
        Answer::call("fake_ask_url", json!({})),
        Answer::text("Opened it."),
        Answer::text("Greeted."),
    ]);
    let mut entry = fake(&[]);
    entry["required"] = json!(true);
    let broken = json!({"type": "local", "command": ["/nowhere/at-all"]});
    let servers = config(json!({"fake": entry, "broken": broken}));
    let folder = place(&server).user_config(&servers);
    let terminal = ready(&folder, &["--auto"]);
    terminal.keys("go\r");
    terminal.wait_for("The MCP server fake asks: Which one?");
    terminal.keys("2");
    terminal.wait_for("question 2 of 2");
    terminal.keys("27\r");
    terminal.wait_for("Told it.");
    let told = results(&server.last_request()).last().unwrap().clone();
    assert!(told.contains("green") && told.contains('7'), "{told}");
    terminal.wait_for("Ask anything");
    terminal.keys("go on\r");
    terminal.wait_for("https://example.com/sign");
    terminal.wait_for("ctrl+o opens the address");
    terminal.keys("1");
    terminal.wait_for("Opened it.");
    assert!(results(&server.last_request()).last().unwrap().contains("accept"));
    terminal.wait_for("Ask anything");
    terminal.keys("/mcp\r");
    terminal.wait_for("✓ fake");
    terminal.wait_for("✗ broken");
    terminal.wait_for("failed");
    terminal.keys("fake\r");
    terminal.wait_for("· fake  disabled");
    terminal.keys("\r");
    terminal.wait_for("✓ fake");
    terminal.keys("\x1b");
    terminal.wait_for("Ask anything");
    terminal.keys("see @fake:");
    terminal.wait_for("@fake:fake://notes");
    terminal.keys("\x03");
    terminal.wait_for("Ask anything");
    terminal.keys("/fake:greet Bob\r");
    terminal.wait_for("Greeted.");
    assert!(last_words(&server).contains("Say hello to Bob."), "{}", last_words(&server));
    terminal.wait_for("Ask anything");
    terminal.keys("/doctor\r");
    terminal.wait_for("Doctor");
    terminal.wait_for("git repository");
    terminal.keys("\x1b");
    terminal.wait_for("Ask anything");
}

#[test]
fn agents_at_work_are_looked_at_and_their_questions_come_in_order() {
    let said =
        |request: &toolwright_testkit::Captured| request.messages()[0]["content"].to_string();
    let task = |prompt: &str| json!({"description": "make it", "prompt": prompt, "subagent_type": "general"});
    let touch = |name: &str| Answer::call("bash", json!({"command": format!("touch {name}")}));
    let server = ModelServer::answering(move |request| {
        let turns = request.messages().len();
        match said(request) {
            s if s.contains("piece one") && turns == 1 => touch("one"),
            s if s.contains("piece two") && turns == 1 => touch("two"),
            s if s.contains("piece") => Answer::text("The piece is done."),
            _ if turns == 1 => Reply::default()
                .call("task", task("piece one"))
                .call("task", task("piece two"))
                .into(),
            _ => Answer::text("All is done."),
        }
    });
    let folder = place(&server);
    let terminal = ready(&folder, &[]);
    terminal.keys("go\r");
    terminal.wait_for("(+1 more)");
    terminal.wait_for("? [general] run this?");
    terminal.keys("y");
    terminal.wait_until("the other question", |screen| {
        screen.contains("? [general] run this?") && !screen.contains("(+1 more)")
    });
    terminal.keys("y");
    terminal.wait_for("All is done.");
    assert!(folder.work().join("one").exists() && folder.work().join("two").exists());
    terminal.wait_for("Ask anything");
    terminal.keys("/subagents\r");
    terminal.wait_for("Agents at work");
    terminal.keys("\r");
    terminal.wait_for("q close");
    terminal.wait_for("The piece is done.");
    terminal.wait_for("$ touch");
    terminal.keys("q");
    terminal.wait_for("Ask anything");
}

#[test]
fn a_conversation_is_named_and_written_out_in_the_form_that_is_asked_for() {
    let server = ModelServer::start([Answer::text("An answer.")]);
    let folder = place(&server);
    let terminal = ready(&folder, &[]);
    terminal.keys("a question\r");
    terminal.wait_for("An answer.");
    terminal.wait_for("Ask anything");
    terminal.keys("/rename About it all\r");
    terminal.wait_for("Named: About it all");
    for name in ["talk.md", "talk.html", "talk.json"] {
        terminal.keys(&format!("/export {name}\r"));
        eventually("the file", || folder.read(name).contains("An answer.").then_some(()));
    }
    assert!(folder.read("talk.md").starts_with("# About it all"), "{}", folder.read("talk.md"));
    assert!(folder.read("talk.html").starts_with("<!"));
    let form: serde_json::Value = serde_json::from_str(&folder.read("talk.json")).unwrap();
    assert_eq!(form["info"]["title"], "About it all");
    terminal.keys("/export talk.md\r");
    terminal.wait_for("talk.md is there already");
    terminal.keys("/share\r");
    terminal.wait_for(".html");
    terminal.keys("/sessions\r");
    terminal.wait_for("› About it all");
}

#[test]
fn undo_gives_the_message_back_to_be_written_anew() {
    let server = ModelServer::start([
        Answer::call("write", json!({"filePath": "new.txt", "content": "x\n"})),
        Answer::text("Written."),
    ]);
    let folder = place(&server);
    let terminal = ready(&folder, &["--auto"]);
    terminal.keys("write it\r");
    terminal.wait_for("Written.");
    terminal.wait_for("Ask anything");
    terminal.keys("/undo\r");
    terminal.wait_for("Undone");
    terminal.wait_for("› write it");
    assert!(!folder.work().join("new.txt").exists());
    terminal.keys("\x03/redo\r");
    terminal.wait_for("Done again");
    assert!(folder.work().join("new.txt").exists());
}

#[test]
fn an_image_that_is_dropped_is_attached_whatever_it_is_called() {
    let server = ModelServer::start([Answer::text("A picture.")]);
    let folder = place(&server);
    // Four red pixels.
    let png: &[u8] = &[
        137, 80, 78, 71, 13, 10, 26, 10, 0, 0, 0, 13, 73, 72, 68, 82, 0, 0, 0, 2, 0, 0, 0, 2, 8, 2,
        0, 0, 0, 253, 212, 154, 115, 0, 0, 0, 16, 73, 68, 65, 84, 120, 156, 99, 248, 207, 192, 0,
        68, 12, 16, 10, 0, 31, 238, 3, 253, 139, 95, 20, 212, 0, 0, 0, 0, 73, 69, 78, 68, 174, 66,
        96, 130,
    ];
    folder.write_bytes("my picture.png", png);
    let path = folder.work().join("my picture.png");
    let terminal = ready(&folder, &[]);
    terminal.keys(&format!("look at \x1b[200~'{}'\x1b[201~", path.display()));
    terminal.wait_for("my picture.png");
    terminal.keys("\r");
    terminal.wait_for("A picture.");
    let said = last_words(&server);
    assert!(said.contains("\"type\":\"image\"") && said.contains("image/png"), "{said}");
}

#[test]
fn a_copy_goes_on_from_an_earlier_message() {
    let write = |text: &str| Answer::call("write", json!({"filePath": "a.txt", "content": text}));
    let server = ModelServer::start([
        Answer::text("First answer."),
        write("x\n"),
        Answer::text("Written it."),
        Answer::text("Another way."),
    ]);
    let folder = place(&server);
    let terminal = ready(&folder, &["--auto"]);
    terminal.keys("the first\r");
    terminal.wait_for("First answer.");
    terminal.wait_for("Ask anything");
    terminal.keys("the second\r");
    terminal.wait_for("Written it.");
    terminal.wait_for("Ask anything");
    terminal.keys("/timeline\r");
    terminal.wait_for("› the second");
    terminal.keys("\x0f");
    terminal.wait_for("› the second");
    eventually("the copy", || (folder.session_files().len() == 2).then_some(()));
    assert_eq!(folder.read("a.txt"), "x\n");
    terminal.keys("\x15the third\r");
    terminal.wait_for("Another way.");
    let body = server.last_request().body.to_string();
    // A note may name what is no part of it.
    assert!(body.contains("the first") && !body.contains("\"text\":\"the second"), "{body}");
}

#[test]
fn going_back_with_files_takes_them_back_too() {
    let server = ModelServer::start([
        Answer::call("write", json!({"filePath": "a.txt", "content": "x\n"})),
        Answer::text("Written it."),
    ]);
    let folder = place(&server);
    let terminal = ready(&folder, &["--auto"]);
    terminal.keys("make it\r");
    terminal.wait_for("Written it.");
    terminal.wait_for("Ask anything");
    // Another agent has the session now, and it is taken up for this.
    terminal.keys("\t");
    terminal.wait_for("plan · anthropic/m");
    terminal.keys("/timeline\r");
    terminal.wait_for("› make it");
    terminal.keys("\x15");
    terminal.wait_for("Gone back to before");
    eventually("the file to go", || (!folder.work().join("a.txt").exists()).then_some(()));
}
