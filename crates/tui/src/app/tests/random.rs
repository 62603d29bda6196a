//! Anything in any order: nothing panics, and everything that is drawn fits.

use super::*;

struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % sides.max(1) as u64) as usize
    }

    fn words(&mut self) -> String {
        const WORDS: &[&str] = &[
            "a",
            "word",
            "\n",
            "\n\n",
            "```rs\n",
            "```",
            "# ",
            "- ",
            "1. ",
            "| a | b |\n|---|---|\n",
            "**",
            "`",
            "漢字",
            "👩‍👩‍👧",
            "\u{202e}",
            "\x1b[2J",
            "\t",
            "\r\n",
            "e\u{301}",
            "> ",
            "/",
            "@",
            "!",
            "العربية",
            "[x](y)",
            "@@ -1,2 +1,3 @@\n",
            "--- a\n+++ b\n",
            "+new\n",
            "-old\n",
            " ",
            "\0",
        ];
        let count = self.roll(12);
        (0..count).map(|_| WORDS[self.roll(WORDS.len())]).collect()
    }

    fn key(&mut self) -> Key {
        let codes = [
            Code::Enter,
            Code::Tab,
            Code::Backspace,
            Code::Escape,
            Code::Up,
            Code::Down,
            Code::Left,
            Code::Right,
            Code::Home,
            Code::End,
            Code::PageUp,
            Code::PageDown,
            Code::Delete,
            Code::F(1),
            Code::F(2),
        ];
        let chars = [
            'a', 'b', 'c', 'd', 'e', 'f', 'k', 'l', 'n', 'o', 'p', 'r', 't', 'u', 'w', 'x', 'y',
            'q', '1', '2', '/', '@', '!', '[', ']', ' ', '漢', 'é', '\u{301}', '🦀', 'N', 'G',
        ];
        let code = match self.roll(3) {
            0 => codes[self.roll(codes.len())],
            _ => Code::Char(chars[self.roll(chars.len())]),
        };
        let one_in = |dice: &mut Self, n| dice.roll(n) == 0;
        Key { code, ctrl: one_in(self, 5), alt: one_in(self, 12), shift: one_in(self, 12) }
    }

    fn outcome(&mut self) -> Outcome {
        let tools = ["bash", "read", "edit", "task", "todowrite", "question", "mcp_x", "grep", ""];
        let endings = [
            Ending::Completed,
            Ending::Failed,
            Ending::Denied,
            Ending::Skipped,
            Ending::Interrupted,
        ];
        let (diff, todo) = (self.words(), self.words());
        let details = match self.roll(4) {
            0 => json!({"diff": diff, "additions": 1, "deletions": 2}),
            1 => json!({"todos": [{"content": todo, "status": "in_progress"}]}),
            2 => json!({"exit": 3}),
            _ => json!(null),
        };
        let tool = tools[self.roll(tools.len())];
        let (title, output) = (self.words(), self.words().repeat(self.roll(9)));
        Outcome { ending: endings[self.roll(5)], ..super::outcome(tool, &title, &output, details) }
    }

    fn event(&mut self) -> Event {
        let position = self.roll(4);
        match self.roll(20) {
            0 => Event::StepStarted,
            1..=4 => Event::Text { delta: self.words() },
            5 => Event::TextDone { text: self.words() },
            6 => Event::Reasoning { delta: self.words() },
            7 => Event::ReasoningDone { text: self.words() },
            8 => Event::CallAnnounced { name: self.words() },
            9 => started(position, "bash", &self.words()),
            10 => Event::CallProgress { position, text: self.words().repeat(self.roll(6)) },
            11 => settled(position, self.outcome()),
            12 => {
                let (summary, preview) = (self.words(), Some(self.words().repeat(self.roll(8))));
                let question = Question { summary, preview, ..question() };
                let offer = if self.roll(2) == 0 { offer() } else { Default::default() };
                Event::Question { id: self.roll(9) as u64, question, offer }
            }
            13 => Event::Inquiry { id: self.roll(9) as u64, inquiry: inquiry(self.roll(2) == 0) },
            14 => Event::QuestionClosed { id: self.roll(9) as u64 },
            15 => Event::Notice { text: self.words() },
            16 => Event::Delivered { id: self.roll(4) as u64 },
            17 => Event::Withdrawn { id: self.roll(4) as u64 },
            18 => Event::Compacting { reason: self.words() },
            _ => {
                ended([TurnStatus::Done, TurnStatus::Failed, TurnStatus::Interrupted][self.roll(3)])
            }
        }
    }

    fn news(&mut self) -> News {
        let kinds = [
            Kind::Models,
            Kind::Sessions,
            Kind::Jobs,
            Kind::Providers,
            Kind::Servers,
            Kind::Permissions,
        ];
        match self.roll(17) {
            0..=2 => News::Idle,
            3 => News::Queued {
                id: self.roll(4) as u64,
                kind: [QueueKind::Steer, QueueKind::FollowUp][self.roll(2)],
                text: self.words(),
            },
            4 => {
                let row = Row { label: self.words(), about: self.words(), value: "v".to_owned() };
                News::Rows { kind: kinds[self.roll(6)], rows: vec![row; self.roll(12)] }
            }
            5 => News::Preview { value: "v".to_owned(), text: self.words() },
            6 => News::Say { level: Level::Problem, text: self.words(), advice: None },
            7 => News::Page { title: self.words(), text: self.words().repeat(8) },
            8 => News::ShellStarted(self.words()),
            9 => News::ShellDone(Box::new(Done::from(&self.outcome()))),
            10 => {
                let blocks = (0..self.roll(8)).map(|_| Block::Text(self.words())).collect();
                let (id, title) = (self.words(), self.words());
                News::Session { id, title, blocks, left_out: self.roll(3) }
            }
            11 => News::NotTaken { id: self.roll(9) as u64, problem: self.words() },
            12 => News::Trust(crate::app::Trust {
                folder: self.words(),
                changed: vec![self.words(); self.roll(3)],
                wants: vec![(self.words(), self.words()); self.roll(20)],
            }),
            13 => {
                let blocks = (0..self.roll(5)).map(|_| Block::Text(self.words())).collect();
                News::Child { id: "v".to_owned(), title: self.words(), blocks }
            }
            14 => News::Searched { query: "a".to_owned(), rows: Vec::new() },
            15 => News::Offered {
                resources: vec![(self.words(), self.words()); self.roll(3)],
                prompts: vec![(self.words(), self.words()); self.roll(3)],
            },
            _ => News::Draft(self.words()),
        }
    }
}

fn run(seed: u64, count: usize) {
    let mut dice = Dice(seed);
    let mut desk = Desk::new(80, 24);
    if dice.roll(2) == 0 {
        desk.app.vim = Vim::new(true);
    }
    for n in 0..count {
        let input = match dice.roll(40) {
            0..=17 => Input::Key(dice.key()),
            18 => Input::Paste(dice.words().repeat(dice.roll(10))),
            19 => {
                let (columns, rows) = (1 + dice.roll(130), 1 + dice.roll(50));
                Input::Resize { columns, rows }
            }
            20..=33 => Input::Engine(Box::new(dice.event())),
            34..=36 => Input::News(Box::new(dice.news())),
            37 => Input::Found { token: desk.app.token, paths: vec![dice.words(), dice.words()] },
            38 => Input::Edited(Ok(dice.words())),
            _ => Input::Tick,
        };
        let resized = matches!(input, Input::Resize { .. });
        desk.give(input);
        if resized {
            desk.screen.resize(desk.app.columns);
            desk.terminal.screen_mut().set_size(size(desk.app.rows), size(desk.app.columns));
        }
        if resized || n % 12 == 0 {
            desk.paint();
        }
        desk.orders.clear();
        desk.others.clear();
        // What piles up in a long run is not what is looked for here.
        if n % 5_000 == 0 {
            desk.app.blocks.clear();
        }
    }
}

/// A hundred thousand in all, in parts that can run side by side.
macro_rules! parts {
    ($($name:ident $seed:literal,)*) => { $(
        #[test]
        fn $name() {
            run(0x9e37_79b9_7f4a_7c15_u64.wrapping_mul($seed), 20_000);
        }
    )* };
}

parts! {
    random_events_neither_panic_nor_draw_outside_1 1,
    random_events_neither_panic_nor_draw_outside_2 2,
    random_events_neither_panic_nor_draw_outside_3 3,
    random_events_neither_panic_nor_draw_outside_4 4,
    random_events_neither_panic_nor_draw_outside_5 5,
}
