//! What models, tools, files and people write never reaches the terminal as something that it obeys.

use serde_json::json;
use toolwright_testkit::{Answer, ModelServer, Reply, Terminal, Wire, eventually};

use crate::folder;

/// Everything that a terminal could be made to do, with a mark by which it is known again: it would
/// retitle, write the clipboard, move, clear, answer, link, and turn the writing round.
const EVIL: &str = "\x1b]2;EVIL\x07\x1b]52;c;RVZJTA==\x07\x1b[66;66H\x1b[666m\x1b[6n\x1b[c\x1bP+q666\x1b\\\
    \x1b]8;;http://evil\x1b\\x\x1b]8;;\x1b\\\u{9b}666m\u{9d}2;EVIL\u{9c}\x07\x08\x0b\x0c\x0e\x7f\x1bc\u{202e}evil\u{2066}";

/// The sequences that are ours, without their numbers.
fn is_ours(sequence: &str) -> bool {
    let Some(last) = sequence.chars().last() else { return false };
    let inner = &sequence[..sequence.len() - 1];
    let modes = ["?2004", "?1004", "?2026", "?25", "?7", "?1049"];
    match last {
        'h' | 'l' => modes.contains(&inner),
        'm' => !inner.contains("666") && inner.chars().all(|c| c.is_ascii_digit() || c == ';'),
        'A' | 'B' | 'G' | 'L' | 'M' => inner.chars().all(|c| c.is_ascii_digit()),
        'J' | 'K' | 'H' => ["", "2"].contains(&inner),
        'u' => [">1", "<", "=1"].contains(&inner),
        't' => ["22;2", "23;2"].contains(&inner),
        _ => false,
    }
}

/// The first thing in what was written that is not ours.
fn foreign(output: &str) -> Option<String> {
    let mut rest = output;
    while let Some(at) = rest.find(|c: char| !matches!(c, '\r' | '\n') && is_obeyed(c)) {
        let found = &rest[at..];
        let shown = || Some(format!("{:?}", found.chars().take(40).collect::<String>()));
        if let Some(sequence) = found.strip_prefix("\x1b[") {
            let end = sequence.find(|c: char| matches!(c, '@'..='~'))? + 1;
            if !is_ours(&sequence[..end]) {
                return shown();
            }
            rest = &sequence[end..];
        } else if let Some(title) = found.strip_prefix("\x1b]2;") {
            let end = title.find('\x07')?;
            if title[..end].contains(is_obeyed) {
                return shown();
            }
            rest = &title[end + 1..];
        } else if let Some(after) = found.strip_prefix('\x07') {
            // A bell, for a person who is needed.
            rest = after;
        } else {
            return shown();
        }
    }
    None
}

fn is_obeyed(c: char) -> bool {
    c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[test]
fn the_judge_knows_what_is_foreign() {
    assert_eq!(foreign("a\x1b[1;31mb\x1b[m\r\n\x1b[?2026h\x1b]2;tw · x\x07漢"), None);
    for evil in ["\x1b[666m", "\x1b[6n", "\x1b]52;c;x\x07", "\u{9b}2J", "\x08", "\x1bc", "\u{202e}"]
    {
        assert!(foreign(evil).is_some(), "{evil:?}");
    }
    assert!(foreign(EVIL).is_some());
}

#[test]
fn escape_sequences_of_models_tools_and_files_never_reach_the_terminal() {
    let name = "a\x1b]2;EVIL\x07\x1b[666m.txt";
    let options = json!([{"label": EVIL, "description": EVIL}, {"label": "blue"}]);
    let question = json!({"question": EVIL, "header": EVIL, "options": options});
    let command =
        format!("printf '%b' '\\033]2;EVIL\\007\\033[666m\\0302\\0233666m evil output'; # {EVIL}");
    let server = ModelServer::start([
        Answer::from(
            Reply::default()
                .say(&format!(
                    "# {EVIL}\n\n- {EVIL}\n\n| {EVIL} | b |\n|--|--|\n| {EVIL} | 2 |\n\n"
                ))
                .say(&format!("```{EVIL}\n{EVIL}\n```\n\n[{EVIL}]({EVIL}) `{EVIL}` <{EVIL}>\n"))
                .call("glob", json!({"pattern": "*"})),
        ),
        Answer::call("bash", json!({"command": command, "description": EVIL})),
        Answer::call("write", json!({"filePath": "b.txt", "content": format!("{EVIL}\n")})),
        Answer::call("edit", json!({"filePath": name, "oldString": "one", "newString": EVIL})),
        Answer::call("nonsense\x1b[666m", json!({EVIL: EVIL})),
        Answer::call(
            "todowrite",
            json!({"todos": [{"content": EVIL, "status": "in_progress", "priority": "high", "id": "1"}]}),
        ),
        Answer::call("question", json!({"questions": [question]})),
        Answer::text("The end of it."),
    ]);
    let folder = folder().with_model(&server, Wire::Anthropic).file(name, "one\n");
    let config = json!({"instructions": [], "nonsense\u{1b}[666m": EVIL});
    let folder = folder.user_config(&config.to_string());
    let terminal = Terminal::start(&folder, &["-m", "anthropic/m"], 90, 30);
    terminal.wait_for("Ask anything");
    // Into the prompt, as a paste and behind an at sign (where such a name is not even offered).
    terminal.keys("look at @a");
    terminal.wait_for("› look at @a");
    terminal.keys("\x1b");
    terminal.keys(&format!("\x1b[200~{EVIL}\x1b[201~\r"));
    // Whatever it asks, the answer is yes or the second option, once for each step of the model: said too often,
    // it lands in the prompt, and what is being typed there keeps the next question waiting.
    let mut answered = 0;
    eventually("the end", || {
        let screen = terminal.screen();
        if screen.contains("The end of it.") {
            return Some(());
        }
        let step = server.requests().len();
        if step != answered {
            if screen.contains("Yes, once") {
                answered = step;
                terminal.keys("y");
            } else if screen.contains("blue") {
                answered = step;
                terminal.keys("2");
            }
        }
        None
    });
    terminal.keys("\x14");
    terminal.wait_for("q close");
    terminal.keys("o");
    terminal.wait_for("o fold");
    terminal.keys("gq\x15/sessions\r");
    terminal.wait_for("›");
    let output = String::from_utf8(terminal.output()).expect("whole characters");
    assert_eq!(foreign(&output), None);
    assert!(!output.contains("\x1b]52;"));
    assert!(output.contains("evil output"), "the command was shown");
}

/// Scripts that are written in both directions, joined, combined, wide, or not to be seen at all.
const MIXED: &[&str] = &[
    "漢字かな交じり文 と 한국어",
    "👩‍👩‍👧‍👦 👩🏽‍💻 🇩🇪🇯🇵 ❤️ 1️⃣",
    "עברית وعربية mixed with ltr",
    "Z͑ͫ̓ͪ̂ͫ̽͏̴̙̤̞͉͚̯̞̠͍A̴̵̜̰͔ͫ͗͢L e\u{301}",
    "tab\tin\tbetween",
    "zero\u{200b}width\u{feff}and\u{2060}joiner\u{ad}soft",
    "नमस्ते ไทย ភាសាខ្មែរ",
];

#[test]
fn scripts_of_all_kinds_leave_the_picture_in_order() {
    let text = MIXED.iter().map(|line| format!("- {line} END\n")).collect::<String>();
    let output = MIXED.iter().map(|line| format!("{line} OUT\n")).collect::<String>();
    let server = ModelServer::start([
        Answer::from(
            Reply::default().say(&text).call("bash", json!({"command": "cat mixed.txt"})).split(3),
        ),
        Answer::text("The end of it."),
    ]);
    let folder = folder()
        .with_model(&server, Wire::Anthropic)
        .file("mixed.txt", &output)
        .file("漢字 👩‍💻 עברית.txt", "x");
    let terminal = Terminal::start(&folder, &["-m", "anthropic/m", "--auto"], 60, 40);
    terminal.wait_for("Ask anything");
    terminal.keys("go\r");
    terminal.wait_for("The end of it.");
    terminal.wait_for("Ask anything");
    let screen = terminal.screen();
    assert_eq!(screen.lines().filter(|row| row.ends_with(" END")).count(), MIXED.len(), "{screen}");
    // Each row of the answer begins where it should: nothing ran over from the row before.
    assert_eq!(screen.lines().filter(|row| row.starts_with("• ")).count(), MIXED.len(), "{screen}");
    terminal.keys("漢字 👩‍💻 e\u{301} עברית");
    terminal.wait_until("what was typed", |screen| {
        screen.contains("› 漢字") && screen.contains("עברית")
    });
    terminal.keys("\x15@漢");
    terminal.wait_for("עברית.txt");
    let output = String::from_utf8(terminal.output()).expect("whole characters");
    assert_eq!(foreign(&output), None);
}
