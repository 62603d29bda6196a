//! Random keys, pastes and sizes through a real terminal, while the scripted model answers at random.
//! Not a part of every run: `FUZZ_SECONDS=600 cargo nextest run --run-ignored only tui_fuzz`. FUZZ_SEED goes
//! another way, FUZZ_BIN takes another build of the program.

use std::time::{Duration, Instant};

use serde_json::json;
use toolwright_testkit::{Answer, Folder, ModelServer, Reply, Terminal, Wire, eventually};

struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % sides as u64) as usize
    }

    /// A key or a paste. Nothing that stops the process (ctrl+z) or runs commands (`!`).
    fn typed(&mut self) -> String {
        const KEYS: &[&str] = &[
            "\r",
            "\r",
            "\t",
            "\x7f",
            "\x1b",
            "\x1b[A",
            "\x1b[B",
            "\x1b[C",
            "\x1b[D",
            "\x1b[H",
            "\x1b[F",
            "\x1b[5~",
            "\x1b[6~",
            "\x1b[3~",
            "\x1b\r",
            "\x1b[Z",
            "\x1b[13;2u",
            "\x01",
            "\x02",
            "\x05",
            "\x06",
            "\x0b",
            "\x0c",
            "\x0e",
            "\x0f",
            "\x10",
            "\x12",
            "\x14",
            "\x15",
            "\x16",
            "\x17",
            "\x18",
            "\x19",
            "\x1f",
            "\x1bb",
            "\x1bf",
            "\x1bd",
            "/",
            "@",
            "y",
            "a",
            "n",
            "w",
            "q",
            " ",
            "1",
            "2",
            "m",
            "t",
            "s",
            "漢",
            "é",
            "👩‍👧",
            "\u{301}",
            "word ",
            "/models",
            "/help",
            "/themes",
            "/timestamps",
            "/sessions",
            "\x1bOP",
            "/new",
            "@src",
            "\x1b[I",
            "\x1b[O",
            "\x1b[200~",
            "\x1b[201~",
            "\x1bO",
            "\x1b[",
            "\x1b]0;x",
            "\x07",
            "\u{202e}",
        ];
        match self.roll(30) {
            0 => format!("\x1b[200~{}\x1b[201~", "pasted text 漢字\r".repeat(self.roll(12))),
            _ => KEYS[self.roll(KEYS.len())].to_owned(),
        }
    }
}

fn answer(dice: &mut Dice) -> Answer {
    match dice.roll(5) {
        0 => Answer::call("read", json!({"filePath": "a.txt"})),
        1 => Answer::call(
            "edit",
            json!({"filePath": "a.txt", "oldString": "one", "newString": "one"}),
        ),
        2 => Answer::call("bash", json!({"command": "echo hello"})),
        3 => {
            let options = json!([{"label": "red"}, {"label": "blue"}]);
            let question = json!({"question": "Which?", "header": "W", "options": options});
            Answer::call("question", json!({"questions": [question]}))
        }
        _ => {
            let text = "# Head\n\nSome **text** with `code`:\n\n```rs\nfn x() {}\n```\n\n| a | b |\n|--|--|\n| 1 | 2 |\n";
            Answer::from(Reply::default().say(&text.repeat(1 + dice.roll(8))).split(64))
        }
    }
}

#[test]
#[ignore = "takes as long as it is told to"]
fn random_keys_through_a_terminal_neither_panic_nor_wedge() {
    let seconds = std::env::var("FUZZ_SECONDS").ok().and_then(|s| s.parse().ok()).unwrap_or(180);
    let until = Instant::now() + Duration::from_secs(seconds);
    let answers = std::sync::Mutex::new(Dice(0x1234_5678_9abc_def1));
    let server = ModelServer::answering(move |_| answer(&mut answers.lock().unwrap()));
    let binary = std::env::var("FUZZ_BIN").unwrap_or(env!("CARGO_BIN_EXE_tw").to_owned());
    let folder = Folder::new(&binary)
        .with_model(&server, Wire::Anthropic)
        .env("EDITOR", "true")
        .file("a.txt", "one\n");
    let seed: u64 = std::env::var("FUZZ_SEED").ok().and_then(|s| s.parse().ok()).unwrap_or(1);
    let mut dice = Dice(0x0dd0_1234_5678_9abc_u64.wrapping_mul(seed));
    let (mut events, mut starts) = (0_u64, 0);
    while Instant::now() < until {
        let mut terminal = Terminal::start(&folder, &["-m", "anthropic/m", "--auto"], 80, 24);
        starts += 1;
        eventually("a first picture", || (terminal.bytes() > 0).then_some(()));
        let mut ended = None;
        let mut size = (80, 24);
        while ended.is_none() && Instant::now() < until {
            let mut keys = String::new();
            for _ in 0..1 + dice.roll(300) {
                keys.push_str(&dice.typed());
                events += 1;
            }
            terminal.keys(&keys);
            let before = terminal.bytes();
            // On the smallest nothing is drawn; they come and go.
            if dice.roll(4) == 0 {
                terminal.resize(1 + dice.roll(6) as u16, 1 + dice.roll(3) as u16);
                events += 1;
            }
            let last = size;
            while size == last {
                size = (4 + dice.roll(156) as u16, 2 + dice.roll(52) as u16);
            }
            terminal.resize(size.0, size.1);
            events += 1;
            // Whatever it is doing, another size is drawn.
            ended = eventually("an answer to another size", || match terminal.ended() {
                Some(code) => Some(Some(code)),
                None => (terminal.bytes() > before).then_some(None),
            });
        }
        if let Some(code) = ended {
            assert_eq!(code, Some(0), "after {events} events:\n{}", terminal.screen());
        }
    }
    println!("{events} events, {starts} starts");
}
