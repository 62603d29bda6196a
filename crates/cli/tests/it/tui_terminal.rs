//! What terminals, shells and their people do to the interface: stop it, starve it, shrink it, and
//! leave it colours or none.

use serde_json::json;
use toolwright_testkit::{
    Answer, Folder, ModelServer, Reply, Terminal, eventually, processes_with,
};

use crate::folder;
use crate::tui_kit::{MODEL, place};

/// `tw` as a job of a shell.
fn in_a_shell(folder: &Folder) -> Terminal {
    let terminal = Terminal::shell(folder, 90, 30);
    let own = format!("--dir={}", folder.work().display());
    terminal.keys(&format!("{} -m anthropic/m {own}\r", env!("CARGO_BIN_EXE_tw")));
    terminal.wait_for("Ask anything");
    terminal.keys("draft");
    terminal.wait_for("› draft");
    terminal
}

fn assert_the_shell_has_it(terminal: &Terminal) {
    terminal.wait_for("Stopped");
    terminal
        .keys("clear; stty -a | grep -q -- -icanon && echo still ra''w || echo coo''ked again\r");
    terminal.wait_for("cooked again");
}

fn assert_it_goes_on(terminal: &Terminal) {
    terminal.keys("fg\r");
    terminal.wait_for("› draft");
    terminal.keys(" and more");
    terminal.wait_for("› draft and more");
    terminal.keys("\x15\x04");
    // What is typed before that is ours.
    terminal.wait_until("the shell's prompt", |screen| screen.trim_end().ends_with(['#', '$']));
    terminal.keys("echo the shell is ba''ck\r");
    terminal.wait_for("the shell is back");
}

#[test]
fn ctrl_z_gives_the_terminal_to_the_shell_and_fg_takes_it_back() {
    let server = ModelServer::start([]);
    let folder = place(&server);
    let terminal = in_a_shell(&folder);
    terminal.keys("\x1a");
    assert_the_shell_has_it(&terminal);
    assert_it_goes_on(&terminal);
}

#[test]
fn a_stop_that_others_ask_for_gives_the_terminal_back_too() {
    let server = ModelServer::start([]);
    let folder = place(&server);
    let terminal = in_a_shell(&folder);
    let own = format!("--dir={}", folder.work().display());
    let found = processes_with(&own);
    let found = found.iter().find(|line| !line.contains("bash")).unwrap();
    let id = found.trim_start_matches("/proc/").split(' ').next().unwrap();
    std::process::Command::new("kill").args(["-TSTP", id]).status().unwrap();
    assert_the_shell_has_it(&terminal);
    assert_it_goes_on(&terminal);
}

#[test]
fn ctrl_z_without_a_shell_behind_it_does_not_end_in_a_standstill() {
    let server = ModelServer::start([]);
    let folder = place(&server);
    let terminal = Terminal::start(&folder, &MODEL, 90, 30);
    terminal.wait_for("Ask anything");
    terminal.keys("\x1astill here");
    terminal.wait_for("› still here");
}

#[test]
fn a_stop_that_cannot_be_heard_is_made_up_for_when_it_goes_on() {
    let server = ModelServer::start([]);
    let folder = place(&server);
    let terminal = in_a_shell(&folder);
    let own = format!("--dir={}", folder.work().display());
    let found = processes_with(&own);
    let found = found.iter().find(|line| !line.contains("bash")).unwrap();
    let id = found.trim_start_matches("/proc/").split(' ').next().unwrap();
    std::process::Command::new("kill").args(["-STOP", id]).status().unwrap();
    // Shells set their own modes and leave ours behind.
    terminal.wait_for("Stopped");
    terminal.keys("stty sane; clear; echo hello from the sh''ell\r");
    terminal.wait_for("hello from the shell");
    assert_it_goes_on(&terminal);
}

#[test]
fn output_that_nobody_takes_holds_up_neither_the_work_nor_the_end_of_it() {
    let text = "many words of an answer that nobody reads\n\n".repeat(6_000);
    let touch = json!({"command": "touch done"});
    let server = ModelServer::start([
        Answer::from(Reply::default().say(&text).call("bash", touch)),
        Answer::text("The last words."),
    ]);
    let folder = place(&server);
    let mut terminal = Terminal::start(&folder, &["-m", "anthropic/m", "--auto"], 90, 30);
    terminal.wait_for("Ask anything");
    terminal.hold();
    terminal.keys("go\r");
    eventually("the work", || folder.work().join("done").exists().then_some(()));
    eventually("the second request", || (server.requests().len() > 1).then_some(()));
    // Whoever reads on sees how it ended, and can go on.
    terminal.read_on();
    terminal.wait_for("The last words.");
    terminal.wait_for("Ask anything");
    terminal.hold();
    terminal.signal("TERM");
    assert_eq!(terminal.wait(), Some(130));
    assert!(terminal.has_old_modes());
    terminal.read_on();
}

#[test]
fn a_signal_ends_it_in_the_middle_of_output_that_nobody_takes() {
    let text = "many words of an answer that nobody reads\n\n".repeat(20_000);
    let server = ModelServer::start([Answer::from(Reply::default().say(&text).hold_after_text())]);
    let folder = place(&server);
    let mut terminal = Terminal::start(&folder, &MODEL, 90, 30);
    terminal.wait_for("Ask anything");
    terminal.hold();
    terminal.keys("go\r");
    eventually("the request", || (!server.requests().is_empty()).then_some(()));
    terminal.signal("TERM");
    assert_eq!(terminal.wait(), Some(130));
    assert!(terminal.has_old_modes());
    terminal.read_on();
}

#[test]
fn a_storm_of_sizes_while_it_streams_ends_in_one_right_picture() {
    let text = "some words of an answer, 漢字 and more of it\n\n".repeat(400);
    let server = ModelServer::start([Answer::from(Reply::default().say(&text).split(512))]);
    let folder = place(&server);
    let terminal = Terminal::start(&folder, &MODEL, 90, 30);
    terminal.wait_for("Ask anything");
    terminal.keys("go\r");
    for n in 0..400_u16 {
        terminal.resize(1 + n * 37 % 140, 1 + n * 17 % 45);
    }
    terminal.resize(90, 30);
    terminal.keys("after the storm");
    terminal.wait_for("› after the storm");
    terminal.wait_until("the end of the turn", |screen| !screen.contains("esc interrupts"));
    terminal.keys("!");
    terminal.wait_until("one prompt at the bottom", |screen| {
        let rows: Vec<&str> = screen.lines().collect();
        let prompts = rows.iter().filter(|row| row.starts_with("› after the storm!")).count();
        prompts == 1 && rows.iter().any(|row| row.contains("anthropic/m"))
    });
}

#[test]
fn a_terminal_of_one_cell_is_survived() {
    let server = ModelServer::start([Answer::text("An answer that was not to be seen.")]);
    let folder = place(&server);
    let mut terminal = Terminal::start(&folder, &MODEL, 1, 1);
    // Keys before that would be read by the terminal's own editor.
    eventually("its modes", || (!terminal.has_old_modes()).then_some(()));
    terminal.keys("go\r");
    eventually("the request", || (!server.requests().is_empty()).then_some(()));
    terminal.resize(80, 24);
    terminal.wait_for("An answer that was not to be seen.");
    terminal.wait_for("Ask anything");
    terminal.resize(1, 1);
    terminal.keys("\x04");
    assert_eq!(terminal.wait(), Some(0));
    eventually("the terminal as it was", || terminal.is_restored().then_some(()));
}

#[test]
fn without_an_input_or_on_a_dumb_terminal_it_says_what_to_do_instead() {
    let folder = folder();
    let terminal = Terminal::shell(&folder, 100, 30);
    let own = env!("CARGO_BIN_EXE_tw");
    let dumb = ("TERM=dumb", "", "TERM=dumb");
    let cases =
        [("", "<&-", "this is no terminal"), ("", "</dev/null", "this is no terminal"), dumb];
    for (n, (before, after, words)) in cases.into_iter().enumerate() {
        terminal.keys(&format!("clear; {before} {own} {after}; echo stat''us of {n}: $?\r"));
        terminal.wait_for(&format!("status of {n}: 2"));
        let screen = terminal.screen();
        assert!(screen.contains(words) && screen.contains("tw run"), "{screen}");
    }
}

/// The parameters of every change of colour or style.
fn styles(output: &[u8]) -> Vec<Vec<u32>> {
    let text = String::from_utf8_lossy(output);
    let mut found = Vec::new();
    for part in text.split("\x1b[").skip(1) {
        let end = part.find(|c: char| !c.is_ascii_digit() && c != ';').unwrap_or(part.len());
        if part[end..].starts_with('m') {
            found.push(part[..end].split(';').map(|n| n.parse().unwrap_or(0)).collect());
        }
    }
    found
}

#[test]
fn colours_are_those_that_the_terminal_says_it_has() {
    let edit = json!({"filePath": "a.rs", "oldString": "one", "newString": "two"});
    let cases: [(&str, &[(&str, &str)]); 4] = [
        ("none", &[("TERM", "xterm-256color"), ("NO_COLOR", "1")]),
        ("16", &[("TERM", "linux")]),
        ("256", &[("TERM", "screen-256color")]),
        ("true", &[("TERM", "xterm-256color"), ("COLORTERM", "truecolor")]),
    ];
    for (name, environment) in cases {
        let server = ModelServer::start([
            Answer::call("read", json!({"filePath": "a.rs"})),
            Answer::call("edit", edit.clone()),
            Answer::text("A `word` and\n\n```rs\nfn main() { \"x\" }\n```\n\nThe end."),
        ]);
        let mut folder = place(&server).file("a.rs", "one\n");
        for (key, value) in environment {
            folder = folder.env(key, value);
        }
        // One that names colours beyond the terminal's own.
        let config = folder.root().join("home/.config/toolwright");
        std::fs::create_dir_all(&config).unwrap();
        std::fs::write(config.join("tui.json"), r#"{"theme": "nord"}"#).unwrap();
        let terminal = Terminal::start(&folder, &["-m", "anthropic/m", "--auto"], 90, 30);
        terminal.wait_for("Ask anything");
        terminal.keys("go\r");
        terminal.wait_for("The end.");
        let styles = styles(&terminal.output());
        assert!(styles.iter().any(|s| s.contains(&1)), "{name}: nothing is bold");
        let is = |test: &dyn Fn(&[u32]) -> bool| styles.iter().any(|s| test(s));
        let sixteen = |n: &u32| matches!(n, 30..=37 | 40..=47 | 90..=97 | 100..=107);
        // A long colour is 38 or 48 with 5 or 2 behind it.
        let long =
            |s: &[u32], kind: u32| s.windows(2).any(|w| matches!(w[0], 38 | 48) && w[1] == kind);
        match name {
            "none" => {
                assert!(!is(&|s| long(s, 2) || long(s, 5) || s.iter().any(sixteen)), "{styles:?}")
            }
            "16" => {
                assert!(!is(&|s| long(s, 2) || long(s, 5)), "{styles:?}");
                assert!(is(&|s| s.iter().any(sixteen)));
            }
            "256" => assert!(!is(&|s| long(s, 2)) && is(&|s| long(s, 5)), "{styles:?}"),
            _ => assert!(is(&|s| long(s, 2)), "{styles:?}"),
        }
    }
}
