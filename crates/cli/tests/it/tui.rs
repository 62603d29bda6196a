//! The terminal interface through a real terminal, against the scripted model.

use serde_json::json;
use toolwright_testkit::{
    Answer, Folder, ModelServer, Reply, Terminal, eventually, processes_with,
};

use crate::tui_kit::{MODEL, last_words, leave, place};
use crate::{folder, results};

fn start(folder: &Folder, arguments: &[&str]) -> Terminal {
    let all: Vec<&str> = MODEL.iter().chain(arguments).copied().collect();
    let terminal = Terminal::start(folder, &all, 90, 30);
    terminal.wait_for("anthropic/m");
    terminal
}

#[test]
fn a_prompt_is_sent_and_its_answer_streams_into_the_scrollback() {
    let reply = Reply::default().say("## Hello\n\nThis is **bold**").say(" and `code`.\n");
    let server = ModelServer::start([Answer::from(reply)]);
    let folder = place(&server);
    let mut terminal = start(&folder, &[]);
    terminal.keys("What is this?\r");
    terminal.wait_for("This is bold and code.");
    terminal.wait_for("Ask anything");
    let screen = terminal.screen();
    assert!(screen.contains("┃ What is this?") && screen.contains("Hello"), "{screen}");
    assert!(last_words(&server).contains("What is this?"));
    leave(&mut terminal);
    eventually("the terminal as it was", || terminal.is_restored().then_some(()));
    assert!(terminal.screen().contains("Go on with: tw -s ses_"));
}

#[test]
fn nothing_is_kept_of_a_start_without_a_word() {
    let server = ModelServer::start([]);
    let folder = place(&server);
    let mut terminal = start(&folder, &[]);
    terminal.keys("\x03\x03");
    assert_eq!(terminal.wait(), Some(0));
    assert!(folder.session_files().is_empty());
    assert!(server.requests().is_empty());
}

#[test]
fn an_edit_is_asked_about_with_its_diff_and_done_when_agreed_to() {
    let edit = json!({"filePath": "a.txt", "oldString": "one", "newString": "two"});
    let server = ModelServer::start([
        Answer::call("read", json!({"filePath": "a.txt"})),
        Answer::call("edit", edit),
        Answer::text("Changed."),
    ]);
    let folder = place(&server).file("a.txt", "one\n");
    let mut terminal = start(&folder, &[]);
    terminal.keys("change it\r");
    terminal.wait_for("Yes, once");
    let screen = terminal.screen();
    assert!(screen.contains("1 - one") && screen.contains("1 + two"), "{screen}");
    assert!(screen.contains("asked because"), "{screen}");
    assert_eq!(folder.read("a.txt"), "one\n");
    terminal.keys("y");
    terminal.wait_for("Changed.");
    assert_eq!(folder.read("a.txt"), "two\n");
    leave(&mut terminal);
}

#[test]
fn a_refusal_with_words_reaches_the_model() {
    let server = ModelServer::start([
        Answer::call("bash", json!({"command": "touch never"})),
        Answer::text("As you wish."),
    ]);
    let folder = place(&server);
    let terminal = start(&folder, &[]);
    terminal.keys("go\r");
    terminal.wait_for("No, and say what to do instead");
    terminal.keys("wuse mkdir\r");
    terminal.wait_for("As you wish.");
    let result = &results(&server.last_request())[0];
    assert!(result.contains("The user said: use mkdir"), "{result}");
    assert_eq!(folder.read("never"), "");
    assert!(!folder.work().join("never").exists());
}

#[test]
fn words_said_while_it_works_steer_it_and_queued_ones_follow() {
    let wait = json!({"command": "touch begun; while [ ! -e go ]; do sleep 0.02; done"});
    let server = ModelServer::start([
        Answer::call("bash", wait),
        Answer::text("Steered."),
        Answer::text("Followed."),
    ]);
    let folder = place(&server);
    let terminal = start(&folder, &["--auto"]);
    terminal.keys("work\r");
    eventually("the command", || folder.work().join("begun").exists().then_some(()));
    terminal.keys("left please\r");
    terminal.wait_for("next: left please");
    terminal.keys("then rest\x1b\r");
    terminal.wait_for("later: then rest");
    folder.write("go", "");
    terminal.wait_for("Followed.");
    let texts: Vec<String> = server.requests().iter().map(|r| r.body.to_string()).collect();
    assert!(texts[1].contains("left please") && !texts[1].contains("then rest"), "{texts:?}");
    assert!(texts[2].contains("then rest"));
    terminal.wait_for("┃ then rest");
}

#[test]
fn escape_interrupts_at_once_and_gives_back_what_was_queued() {
    let wait = json!({"command": "echo $$ > pid; sleep 4712"});
    let server = ModelServer::start([Answer::call("bash", wait), Answer::text("Again.")]);
    let folder = place(&server);
    let terminal = start(&folder, &["--auto"]);
    terminal.keys("work\r");
    eventually("the command", || (!folder.read("pid").is_empty()).then_some(()));
    terminal.keys("later on\x1b\r");
    terminal.wait_for("later: later on");
    terminal.keys("\x1b");
    terminal.wait_for("Interrupted");
    terminal.wait_for("› later on");
    let process = format!("/proc/{}", folder.read("pid").trim());
    eventually("its end", || (!std::path::Path::new(&process).exists()).then_some(()));
    terminal.keys("\r");
    terminal.wait_for("Again.");
}

#[test]
fn a_session_is_taken_up_again_by_name_and_from_the_list() {
    let server =
        ModelServer::start([Answer::text("First answer."), Answer::text("Second answer.")]);
    let folder = place(&server);
    folder.tw(&["run", "-m", "anthropic/m", "remember me"]).expect(0);
    let mut terminal = start(&folder, &["-c"]);
    terminal.wait_for("┃ remember me");
    terminal.wait_for("First answer.");
    terminal.keys("and now?\r");
    terminal.wait_for("Second answer.");
    assert!(server.last_request().body.to_string().contains("remember me"));
    leave(&mut terminal);
    assert_eq!(folder.session_files().len(), 1);
    let terminal = start(&folder, &[]);
    terminal.keys("/sessions\r");
    terminal.wait_for("› remember me");
    terminal.wait_for("│ Second answer.");
    terminal.keys("\r");
    terminal.wait_for("┃ and now?");
}

#[test]
fn questions_of_the_model_are_answered_in_the_terminal() {
    let options = json!([{"label": "red", "description": "warm"}, {"label": "blue"}]);
    let question = json!({"question": "Which colour?", "header": "Colour", "options": options});
    let server = ModelServer::start([
        Answer::call("question", json!({"questions": [question]})),
        Answer::text("Blue it is."),
    ]);
    let folder = place(&server);
    let terminal = start(&folder, &[]);
    terminal.keys("ask me\r");
    terminal.wait_for("? Which colour?");
    terminal.keys("2");
    terminal.wait_for("Blue it is.");
    assert!(results(&server.last_request())[0].contains("\"Which colour?\"=\"blue\""));
}

#[test]
fn files_behind_an_at_sign_and_own_commands_come_with_the_prompt() {
    let server = ModelServer::start([Answer::text("Seen.")]);
    let folder = place(&server).file("notes/plan.md", "the secret plan\n");
    let terminal = start(&folder, &[]);
    terminal.keys("! echo from-my-shell\r");
    terminal.wait_for("$ echo from-my-shell");
    terminal.wait_for("└ from-my-shell");
    terminal.keys("look at @plan");
    terminal.wait_for("› notes/plan.md");
    terminal.keys("\t");
    terminal.wait_for("@notes/plan.md");
    terminal.keys("\r");
    terminal.wait_for("Seen.");
    let said = last_words(&server);
    assert!(said.contains("the secret plan") && said.contains("from-my-shell"), "{said}");
}

#[test]
fn pastes_are_folded_and_sent_whole() {
    let server = ModelServer::start([Answer::text("Long.")]);
    let folder = place(&server);
    let terminal = start(&folder, &[]);
    let lines: Vec<String> = (0..40).map(|n| format!("pasted line {n}")).collect();
    terminal.keys(&format!("\x1b[200~{}\x1b[201~", lines.join("\r")));
    terminal.wait_for("[Paste 1: 40 lines]");
    terminal.keys("\r");
    terminal.wait_for("Long.");
    assert!(last_words(&server).contains("pasted line 39"));
}

#[test]
fn the_transcript_has_a_screen_of_its_own_and_gives_the_old_one_back() {
    let server = ModelServer::start([Answer::text("An answer to find.")]);
    let folder = place(&server);
    let terminal = start(&folder, &[]);
    terminal.keys("a prompt\r");
    terminal.wait_for("An answer to find.");
    terminal.wait_for("Ask anything");
    let before = terminal.screen();
    terminal.keys("\x14");
    terminal.wait_for("q close");
    assert!(terminal.screen().contains("An answer to find."));
    terminal.keys("q");
    terminal.wait_until("the screen as it was", |screen| screen == before);
}

#[test]
fn another_size_is_drawn_anew() {
    let server = ModelServer::start([Answer::text("word ".repeat(60).trim())]);
    let folder = place(&server);
    let terminal = start(&folder, &[]);
    terminal.resize(50, 20);
    terminal.keys("go\r");
    terminal.wait_until("rows of the new width", |screen| {
        screen.lines().any(|line| line.len() > 40 && line.len() < 50 && line.starts_with("word"))
    });
    terminal.resize(120, 40);
    terminal.keys("wide");
    terminal.wait_for("› wide");
}

#[test]
fn a_wrong_configuration_and_a_missing_terminal_are_told_with_status_2() {
    let folder = folder().user_config("{ \"model\": 7 }");
    let mut terminal = Terminal::start(&folder, &[], 90, 30);
    assert_eq!(terminal.wait(), Some(2));
    eventually("the problem", || terminal.screen().contains("toolwright.json").then_some(()));
    assert!(terminal.is_restored());
    let folder = crate::folder();
    let piped = folder.tw(&[]).expect(2);
    assert!(piped.stderr.contains("tw run \"What is this project?\""), "{}", piped.stderr);
    let folder = crate::folder();
    let mut unknown = Terminal::start(&folder, &["-s", "nothing"], 90, 30);
    assert_eq!(unknown.wait(), Some(2));
    eventually("the problem", || unknown.screen().contains("there is no session").then_some(()));
}

#[test]
fn a_panic_while_drawing_leaves_a_terminal_that_works() {
    let server = ModelServer::start([]);
    let folder = place(&server).env("TOOLWRIGHT_TUI_PANIC", "1");
    let mut terminal = start(&folder, &[]);
    terminal.keys("x");
    assert_eq!(terminal.wait(), Some(1));
    eventually("the terminal as it was", || terminal.is_restored().then_some(()));
    eventually("the panic", || terminal.screen().contains("panicked").then_some(()));
}

#[test]
fn signals_and_a_lost_terminal_leave_no_process() {
    for how in ["TERM", "HUP", "hang up", "KILL"] {
        let marker = format!("471{}", how.len());
        let wait =
            json!({"command": format!("echo x > begun; sleep {marker}9.{}", std::process::id())});
        let server = ModelServer::start([Answer::call("bash", wait)]);
        let folder = place(&server);
        let mut terminal = start(&folder, &["--auto"]);
        terminal.keys("work\r");
        eventually("the command", || folder.work().join("begun").exists().then_some(()));
        let sleeping = format!("sleep {marker}9.{}", std::process::id());
        match how {
            "hang up" => terminal.hang_up(),
            name => terminal.signal(name),
        }
        let status = terminal.wait();
        assert_eq!(status, if how == "KILL" { None } else { Some(130) }, "{how}");
        eventually("no process", || processes_with(&sleeping).is_empty().then_some(()));
        if how == "TERM" {
            eventually("the terminal as it was", || terminal.is_restored().then_some(()));
        }
    }
}

#[test]
fn the_demo_model_answers_where_there_is_no_key_and_says_what_to_do() {
    let folder = folder();
    let terminal = Terminal::start(&folder, &[], 100, 40);
    terminal.wait_for("the built-in demo model answers");
    terminal.wait_for("/connect");
    terminal.keys("hello\r");
    terminal.wait_for("This was the demo model");
}

#[test]
fn keys_and_themes_of_the_person_are_used() {
    let server = ModelServer::start([]);
    let folder = place(&server);
    let config = folder.root().join("home/.config/opencode");
    std::fs::create_dir_all(&config).unwrap();
    std::fs::write(config.join("tui.json"), r#"{"keybinds": {"help_show": "ctrl+g"}}"#).unwrap();
    let terminal = start(&folder, &[]);
    terminal.keys("\x07");
    terminal.wait_for("esc closes");
    terminal.keys("\x1b");
    terminal.wait_for("Ask anything");
    terminal.keys("/themes\r");
    terminal.wait_for("dracula");
    terminal.keys("dracula\r");
    let state = folder.root().join("data/toolwright/tui.json");
    eventually("the choice", || {
        std::fs::read_to_string(&state).unwrap_or_default().contains("dracula").then_some(())
    });
}
