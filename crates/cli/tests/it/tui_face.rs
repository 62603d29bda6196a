//! The terminal interface: images, the clipboard, what lies over the prompt, and resources in words that steer.

use std::os::unix::fs::PermissionsExt;

use serde_json::json;
use toolwright_testkit::{Answer, Folder, ModelServer, Terminal, Wire, eventually};

use crate::mcp::{config, fake};
use crate::tui_kit::{MODEL, place};

/// A picture of two colours, as large as it is said.
fn png(width: u32, height: u32) -> Vec<u8> {
    let image = image::RgbImage::from_fn(width, height, |x, _| {
        image::Rgb(if x < width / 2 { [255, 0, 0] } else { [0, 0, 255] })
    });
    let mut bytes = std::io::Cursor::new(Vec::new());
    image.write_to(&mut bytes, image::ImageFormat::Png).unwrap();
    bytes.into_inner()
}

fn tool(folder: &Folder, name: &str, script: &str) {
    let path = folder.root().join("bin").join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// With programs of the test's own before all others.
fn with_tools(folder: Folder) -> Folder {
    let bin = folder.root().join("bin");
    let path = std::env::var("PATH").unwrap_or_default();
    folder.env("PATH", &format!("{}:{path}", bin.display()))
}

#[test]
fn a_terminal_that_draws_images_gets_the_image_itself_and_the_text_goes_on_below() {
    for (term, begin, end) in
        [("xterm-kitty", "\x1b_Ga=T,f=100", "\x1b\\"), ("foot", "\x1bP0;1;0q", "\x1b\\")]
    {
        let server = ModelServer::start([
            Answer::call("read", json!({"filePath": "a.png"})),
            Answer::text("A picture of two colours."),
        ]);
        let folder = place(&server).env("TERM", term);
        folder.write_bytes("a.png", &png(100, 100));
        let terminal = Terminal::start(&folder, &MODEL, 80, 24);
        terminal.wait_for("anthropic/m");
        terminal.keys("look at it\r");
        terminal.wait_for("A picture of two colours.");
        terminal.wait_for("Ask anything");
        let output = String::from_utf8(terminal.output()).unwrap();
        let at = output.find(begin).unwrap_or_else(|| panic!("{term}: {output:?}"));
        assert!(output[at..].contains(end));
        // A hundred pixels are five rows of twenty, with nothing in them.
        let screen = terminal.screen();
        let rows: Vec<&str> = screen.lines().map(str::trim).collect();
        let label = rows.iter().position(|row| row.contains("image: a.png, 100×100 png")).unwrap();
        assert!(rows[label + 1..label + 6].iter().all(|row| row.is_empty()), "{screen}");
        assert_eq!(rows[label + 7], "A picture of two colours.", "{screen}");
        // Not again for the transcript, which is drawn anew all the time.
        terminal.keys("\x14");
        terminal.wait_for("q close");
        terminal.wait_for("▀▀▀▀");
        let output = String::from_utf8(terminal.output()).unwrap();
        assert_eq!(output.matches(begin).count(), 1);
    }
}

#[test]
fn an_image_in_the_clipboard_is_attached_and_text_is_pasted() {
    let server = ModelServer::start([Answer::text("Seen."), Answer::text("Read.")]);
    let folder = with_tools(place(&server)).env("WAYLAND_DISPLAY", "wayland-9");
    let picture = folder.root().join("clip.png");
    std::fs::write(&picture, png(20, 20)).unwrap();
    let script = format!(
        "case \"$*\" in *image/png*) [ -e {0} ] && exec cat {0}; exit 1;; *) echo 'words of the clipboard';; esac",
        picture.display()
    );
    tool(&folder, "wl-paste", &script);
    let terminal = Terminal::start(&folder, &MODEL, 100, 30);
    terminal.wait_for("anthropic/m");
    terminal.keys("what is \x16");
    terminal.wait_for("/pasted/");
    terminal.keys("\r");
    terminal.wait_for("Seen.");
    let said = server.last_request().messages().last().cloned().unwrap_or_default();
    assert!(said.to_string().contains("image/png"), "{said}");
    std::fs::remove_file(&picture).unwrap();
    terminal.wait_for("Ask anything");
    terminal.keys("\x16");
    terminal.wait_for("› words of the clipboard");
}

#[test]
fn a_clipboard_program_that_hangs_holds_up_no_other() {
    let server = ModelServer::start([]);
    let folder = with_tools(place(&server)).env("WAYLAND_DISPLAY", "w").env("DISPLAY", ":9");
    let (picture, begun) = (folder.root().join("clip.png"), folder.root().join("begun"));
    std::fs::write(&picture, png(20, 20)).unwrap();
    // The first has its image once the second was asked, who has words only.
    let wait = format!("while [ ! -e {} ]; do sleep 0.02; done", begun.display());
    let image =
        format!("case \"$*\" in *image/png*) {wait}; exec cat {};; esac", picture.display());
    tool(&folder, "wl-paste", &image);
    let words =
        format!("case \"$*\" in *image/png*) exit 1;; esac; touch {}; echo words", begun.display());
    tool(&folder, "xclip", &words);
    let terminal = Terminal::start(&folder, &MODEL, 100, 30);
    terminal.wait_for("anthropic/m");
    terminal.keys("\x16");
    terminal.wait_for("/pasted/");
}

#[test]
fn a_clipboard_that_cannot_be_read_is_told_and_holds_up_nothing() {
    let server = ModelServer::start([]);
    let folder = with_tools(place(&server)).env("WAYLAND_DISPLAY", "wayland-9");
    tool(&folder, "wl-paste", "exit 1");
    let terminal = Terminal::start(&folder, &MODEL, 100, 30);
    terminal.wait_for("anthropic/m");
    terminal.keys("\x16");
    terminal.wait_for("the clipboard has no image and no text");
    terminal.keys("still here");
    terminal.wait_for("› still here");
}

#[test]
fn a_resource_in_words_that_steer_is_read_too() {
    let wait = json!({"command": "touch begun; while [ ! -e go ]; do sleep 0.02; done"});
    let server = ModelServer::start([Answer::call("bash", wait), Answer::text("Steered.")]);
    let mut entry = fake(&["ok"]);
    entry["required"] = json!(true);
    let folder = place(&server).user_config(&config(json!({ "fake": entry })));
    let folder = folder.with_model(&server, Wire::Anthropic);
    let terminal = Terminal::start(&folder, &["-m", "anthropic/m", "--auto"], 100, 30);
    terminal.wait_for("anthropic/m");
    terminal.keys("work\r");
    eventually("the command", || folder.work().join("begun").exists().then_some(()));
    terminal.keys("mind @fake:fake://notes, please\r");
    terminal.wait_for("next: mind @fake");
    folder.write("go", "");
    terminal.wait_for("Steered.");
    let body = server.last_request().body.to_string();
    assert!(body.contains("the content of fake://notes"), "{body}");
}

#[test]
fn words_that_come_while_an_opening_fails_begin_the_next_turn() {
    let server = ModelServer::start([Answer::text("Heard.")]);
    let folder = place(&server);
    let late = |name: &str| {
        let file = folder.root().join(name).display().to_string();
        fake(&["wait_for_file", &file])
    };
    let servers = json!({ "first": late("first"), "second": late("second") });
    let folder = folder.user_config(&config(servers)).with_model(&server, Wire::Anthropic);
    let begin = |name: &str| std::fs::write(folder.root().join(name), "").unwrap();
    let terminal = Terminal::start(&folder, &["-m", "anthropic/m", "--auto"], 100, 30);
    terminal.wait_for("anthropic/m");
    terminal.keys("/first:nothing\r");
    terminal.wait_for("enter steers");
    terminal.keys("mind @second:fake://notes, please");
    terminal.wait_for("notes, please");
    terminal.keys("\r");
    terminal.wait_for("enter steers");
    begin("first");
    terminal.wait_for("has no prompt");
    begin("second");
    terminal.wait_for("Heard.");
    let body = server.last_request().body.to_string();
    assert!(body.contains("the content of fake://notes"), "{body}");
}

/// An answer that is longer than the screen.
fn sixty_lines() -> Answer {
    Answer::text(&(1..=60).map(|n| format!("line {n}\n\n")).collect::<String>())
}

fn after_sixty_lines(folder: &Folder) -> Terminal {
    let terminal = Terminal::start(folder, &MODEL, 80, 24);
    terminal.wait_for("anthropic/m");
    terminal.keys("count\r");
    terminal.wait_for("line 60");
    terminal.wait_for("Ask anything");
    terminal
}

#[test]
fn a_list_lies_over_the_screen_and_leaves_it_as_it_was() {
    let server = ModelServer::start([sixty_lines()]);
    let folder = place(&server);
    let terminal = after_sixty_lines(&folder);
    let before = terminal.screen();
    for keys in ["\x18m", "\x1bOP"] {
        terminal.keys(keys);
        terminal.wait_until("something over it", |screen| screen.contains("esc close"));
        terminal.keys("\x1b");
        terminal.wait_for("Ask anything");
        assert_eq!(terminal.screen(), before);
    }
}

#[test]
fn the_prompt_stays_in_the_last_rows_when_a_question_is_answered() {
    let server = ModelServer::start([
        sixty_lines(),
        Answer::call("bash", json!({"command": "touch /etc/never"})),
        Answer::text("As you like."),
    ]);
    let folder = place(&server);
    let terminal = after_sixty_lines(&folder);
    terminal.keys("touch\r");
    terminal.wait_for("Yes, once");
    terminal.keys("n");
    terminal.wait_for("As you like.");
    terminal.wait_for("Ask anything");
    let screen = terminal.screen();
    let rows: Vec<&str> = screen.lines().collect();
    assert!(rows[22].contains("Ask anything") && rows[23].contains("anthropic/m"), "{screen}");
}

#[test]
fn a_session_that_goes_on_says_how_full_it_is_and_nothing_that_was_taken_back() {
    let wait = json!({"command": "touch begun; sleep 4713"});
    let server = ModelServer::start([Answer::text("Here."), Answer::call("bash", wait)]);
    let folder = place(&server);
    let mut terminal = Terminal::start(&folder, &["-m", "anthropic/m", "--auto"], 100, 30);
    terminal.wait_for("anthropic/m");
    terminal.keys("hello\r");
    terminal.wait_for("Here.");
    terminal.wait_for("Ask anything");
    terminal.keys("work\r");
    eventually("the command", || folder.work().join("begun").exists().then_some(()));
    terminal.keys("not now\r");
    terminal.wait_for("next: not now");
    // Esc gives it back; then it is thrown away.
    terminal.keys("\x1b");
    terminal.wait_for("› not now");
    terminal.keys("\x03");
    terminal.wait_for("Ask anything");
    terminal.keys("\x04");
    assert_eq!(terminal.wait(), Some(0));
    let again = Terminal::start(&folder, &["-c"], 100, 30);
    again.wait_for("Here.");
    again.wait_until("the tokens in the row below", |screen| {
        let status = screen.lines().rfind(|row| row.contains("anthropic/m · "));
        let tokens = status.and_then(|row| row.split(" · ").nth(2));
        tokens.is_some_and(|text| text.starts_with(|c: char| c.is_ascii_digit()))
    });
    assert!(!again.screen().contains("next: "), "{}", again.screen());
}
