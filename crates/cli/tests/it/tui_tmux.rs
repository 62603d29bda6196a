//! Whole dialogues in a real multiplexer: what people see there is what tmux says it shows, and what
//! has scrolled by is in its own history, once.

use std::path::PathBuf;
use std::process::Command;

use serde_json::json;
use toolwright_testkit::{Answer, Folder, ModelServer, Reply, eventually};

use crate::results;
use crate::tui_kit::place;

/// A server of our own with one window.
struct Tmux {
    socket: PathBuf,
}

impl Tmux {
    /// Nothing, where tmux is not installed.
    fn start(folder: &Folder, arguments: &str, columns: u16, rows: u16) -> Option<Self> {
        if Command::new("tmux").arg("-V").output().is_err() {
            eprintln!("tmux is not installed: not looked at");
            return None;
        }
        let tmux = Self { socket: folder.root().join("tmux") };
        let mut command = tmux.command();
        folder.settle(&mut command);
        command.env("TERM", "xterm-256color");
        let (columns, rows) = (columns.to_string(), rows.to_string());
        command.args(["-f", "/dev/null", "new-session", "-d", "-x", &columns, "-y", &rows]);
        command.args(["-c", &folder.work().display().to_string()]);
        let shell = "exec bash --norc --noprofile -i";
        assert!(command.arg(shell).status().unwrap().success(), "a tmux server");
        tmux.run(&["set", "-g", "history-limit", "5000"]);
        tmux.say(&format!("clear; {} -m anthropic/m {arguments}", env!("CARGO_BIN_EXE_tw")));
        tmux.keys(&["Enter"]);
        tmux.wait_for("Ask anything");
        Some(tmux)
    }

    fn command(&self) -> Command {
        let mut command = Command::new("tmux");
        command.arg("-S").arg(&self.socket);
        command
    }

    fn run(&self, arguments: &[&str]) -> String {
        let output = self.command().args(arguments).output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn say(&self, text: &str) {
        self.run(&["send-keys", "-l", text]);
    }

    /// Keys by tmux's names for them.
    fn keys(&self, names: &[&str]) {
        let all: Vec<&str> = std::iter::once("send-keys").chain(names.iter().copied()).collect();
        self.run(&all);
    }

    fn screen(&self) -> String {
        self.run(&["capture-pane", "-p"])
    }

    /// What is to be seen and all that scrolled by, with folded rows joined.
    fn history(&self) -> String {
        self.run(&["capture-pane", "-p", "-J", "-S", "-"])
    }

    /// Resizes the window and waits until the program can know of it: tmux folds the rows at once, and
    /// tells those inside a quarter of a second later.
    fn resize(&self, columns: &str, rows: &str) {
        self.run(&["resize-window", "-x", columns, "-y", rows]);
        let terminal = self.run(&["display", "-p", "#{pane_tty}"]);
        let told = format!("{rows} {columns}");
        eventually("the terminal's new size", || {
            let size = Command::new("stty").args(["-F", terminal.trim(), "size"]).output().unwrap();
            (String::from_utf8_lossy(&size.stdout).trim() == told).then_some(())
        });
    }

    fn wait_for(&self, text: &str) {
        let mut last = String::new();
        let waited = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            eventually(text, || {
                last = self.screen();
                last.contains(text).then_some(())
            });
        }));
        assert!(waited.is_ok(), "waited in vain for {text:?}; tmux shows\n{last}");
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        self.run(&["kill-server"]);
    }
}

#[test]
fn a_prompt_a_long_answer_and_a_permission_in_tmux() {
    let long: String = (1..=120).map(|n| format!("line {n:03} of the answer\n\n")).collect();
    let edit = json!({"filePath": "a.txt", "oldString": "one", "newString": "two"});
    let server = ModelServer::start([
        Answer::from(
            Reply::default().say(&long).call("read", json!({"filePath": "a.txt"})).split(40),
        ),
        Answer::call("edit", edit),
        Answer::text("It is changed."),
    ]);
    let folder = place(&server).file("a.txt", "one\n");
    let Some(tmux) = Tmux::start(&folder, "", 100, 30) else { return };
    tmux.say("change it");
    tmux.keys(&["Enter"]);
    tmux.wait_for("Yes, once");
    let screen = tmux.screen();
    assert!(screen.contains("1 - one") && screen.contains("1 + two"), "{screen}");
    assert_eq!(folder.read("a.txt"), "one\n");
    tmux.say("y");
    tmux.wait_for("It is changed.");
    tmux.wait_for("Ask anything");
    assert_eq!(folder.read("a.txt"), "two\n");
    let history = tmux.history();
    for n in 1..=120 {
        let line = format!("line {n:03} of the answer");
        assert_eq!(history.matches(&line).count(), 1, "{line} in\n{history}");
    }
    assert_eq!(history.matches("┃ change it").count(), 1, "{history}");
    assert_eq!(history.matches("Ask anything").count(), 1, "{history}");
}

#[test]
fn steering_and_interrupting_in_tmux() {
    let wait = json!({"command": "touch begun; while [ ! -e go ]; do sleep 0.02; done"});
    let server = ModelServer::start([
        Answer::call("bash", wait),
        Answer::from(
            Reply::default().say("Steered, and now it goes on for ever").hold_after_text(),
        ),
        Answer::text("Another answer."),
    ]);
    let folder = place(&server);
    let Some(tmux) = Tmux::start(&folder, "--auto", 80, 24) else { return };
    tmux.say("work");
    tmux.keys(&["Enter"]);
    eventually("the command", || folder.work().join("begun").exists().then_some(()));
    tmux.say("left please");
    tmux.keys(&["Enter"]);
    tmux.wait_for("next: left please");
    tmux.say("then rest");
    tmux.keys(&["M-Enter"]);
    tmux.wait_for("later: then rest");
    folder.write("go", "");
    tmux.wait_for("┃ left please");
    tmux.wait_for("goes on for ever");
    assert!(server.last_request().body.to_string().contains("left please"));
    tmux.keys(&["Escape"]);
    tmux.wait_for("Interrupted");
    tmux.wait_for("› then rest");
    tmux.keys(&["Enter"]);
    tmux.wait_for("Another answer.");
    assert!(server.last_request().body.to_string().contains("then rest"));
}

#[test]
fn undoing_leaving_and_resuming_in_tmux() {
    let edit = json!({"filePath": "a.txt", "oldString": "one", "newString": "two"});
    let server = ModelServer::start([
        Answer::call("read", json!({"filePath": "a.txt"})),
        Answer::call("edit", edit),
        Answer::text("It is changed."),
        Answer::text("I remember nothing of it."),
    ]);
    let folder = place(&server).file("a.txt", "one\n");
    let Some(tmux) = Tmux::start(&folder, "--auto", 100, 30) else { return };
    tmux.say("an order to begin with");
    tmux.keys(&["Enter"]);
    tmux.wait_for("It is changed.");
    tmux.wait_for("Ask anything");
    assert_eq!(folder.read("a.txt"), "two\n");
    tmux.say("/undo");
    tmux.keys(&["Enter"]);
    tmux.wait_for("1 file as before");
    assert_eq!(folder.read("a.txt"), "one\n");
    // What was said is there to be said again.
    tmux.wait_for("› an order to begin with");
    tmux.keys(&["C-u"]);
    tmux.wait_for("Ask anything");
    tmux.say("/redo");
    tmux.keys(&["Enter"]);
    tmux.wait_for("Done again");
    assert_eq!(folder.read("a.txt"), "two\n");
    tmux.keys(&["C-d"]);
    tmux.wait_for("Go on with: tw -s ses_");
    tmux.say(&format!("clear; {} -c", env!("CARGO_BIN_EXE_tw")));
    tmux.keys(&["Enter"]);
    tmux.wait_for("┃ an order to begin with");
    tmux.wait_for("Ask anything");
    tmux.say("and now?");
    tmux.keys(&["Enter"]);
    tmux.wait_for("I remember nothing of it.");
    let request = server.last_request();
    assert!(request.body.to_string().contains("an order to begin with"));
    assert_eq!(results(&request).len(), 2);
}

#[test]
fn other_sizes_and_the_transcript_in_tmux() {
    let long: String =
        (1..=60).map(|n| format!("- point {n:03} of the answer, and some words more\n")).collect();
    let server = ModelServer::start([Answer::text(&long)]);
    let folder = place(&server);
    let Some(tmux) = Tmux::start(&folder, "", 100, 30) else { return };
    tmux.say("tell me");
    tmux.keys(&["Enter"]);
    tmux.wait_for("point 060");
    tmux.wait_for("Ask anything");
    tmux.keys(&["C-t"]);
    tmux.wait_for("q close");
    tmux.keys(&["g"]);
    tmux.wait_for("┃ tell me");
    tmux.keys(&["q"]);
    tmux.wait_for("Ask anything");
    for (columns, rows) in [("60", "20"), ("100", "30"), ("40", "12"), ("120", "40")] {
        tmux.resize(columns, rows);
        tmux.say("x");
        tmux.wait_for("› x");
        tmux.keys(&["C-u"]);
        tmux.wait_for("Ask anything");
        let screen = tmux.screen();
        assert_eq!(screen.matches("› ").count(), 1, "{columns}x{rows}:\n{screen}");
        assert!(screen.contains("point 060"), "{columns}x{rows}:\n{screen}");
    }
}
