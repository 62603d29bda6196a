//! The crash harness on the way back: a session that did everything is undone, redone and listed, and
//! the process that does so is ended at a point of its life. Asked again, or taken up with something
//! new, it comes to its end: files are byte for byte what they were, or nothing had begun.

use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::json;
use toolwright::session::FAIL_POINTS;
use toolwright_testkit::Reply;

use crate::harness::{Dice, End, Files, Stage, main_steps, named, number, points};
use crate::undo::everything;

/// Of all points, those on the way back.
const BACK_SHARE: f64 = 0.4;

/// What is ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Act {
    Undo,
    Redo,
    List,
    Reindex,
}

impl Act {
    fn arguments(self) -> &'static [&'static str] {
        match self {
            Self::Undo => &["undo"],
            Self::Redo => &["redo"],
            Self::List => &["sessions", "--all", "--json"],
            Self::Reindex => &["sessions", "reindex"],
        }
    }
}

/// How it is taken up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Then {
    AskedAgain,
    /// With a prompt, by somebody who does not know.
    Prompted,
}

/// A session with two messages, and the way back to each of its moments.
struct Scenery {
    stage: Stage,
    before: Files,
    after: Files,
}

impl Scenery {
    fn new() -> Self {
        let alpha = json!({"filePath": "alpha.txt", "content": "alpha\n"});
        let shell = json!({"command": "mkdir -p d/e; echo x > d/x; ln -s x d/link; echo gone > d/e/f; chmod 600 d/x"});
        let mut steps = vec![
            Reply::default().call("write", alpha).with_id("a1").call("bash", shell).with_id("a2"),
            Reply::default().say("shown-0"),
        ];
        steps.extend(main_steps());
        let last = steps.len() - 1;
        // More for an undo to do: modes, links, folders that go and come.
        let shell = json!({"command": "chmod 755 alpha.txt; rm -r d/e; ln -sfn ../alpha.txt d/link; mkdir -p n/m; echo n > n/m/n; mv d/x moved"});
        steps.insert(last, Reply::default().call("bash", shell).with_id("c70"));
        let stage = Stage::new(steps);
        stage.run(&["alpha"], &End::Never, false).expect(0);
        // An index that knows of the first message only.
        stage.tw(&["sessions", "--all"], &End::Never, false).expect(0);
        let before = everything(&stage.folder.work());
        stage.run(&["-c", "Do it all"], &End::Never, false).expect(0);
        let after = everything(&stage.folder.work());
        let own = Self { stage, before, after };
        own.save("done");
        own.stage.tw(&["undo"], &End::Never, false).expect(0);
        assert_eq!(everything(&own.stage.folder.work()), own.before);
        own.save("undone");
        own
    }

    fn shell(&self, line: &str) {
        let root = self.stage.folder.root();
        let status = Command::new("sh").args(["-ec", line]).current_dir(root).status().unwrap();
        assert!(status.success(), "{line}");
    }

    fn save(&self, moment: &str) {
        self.shell(&format!("mkdir {moment}; cp -a work data {moment}/"));
    }

    /// Everything as it was at a moment.
    fn go_to(&self, act: Act) {
        let moment = if act == Act::Redo { "undone" } else { "done" };
        self.shell(&format!("rm -rf work data trace; cp -a {moment}/work {moment}/data ."));
        let steps = main_steps().len() + 3;
        self.stage.script.next.store(steps, Ordering::Relaxed);
    }

    /// The places that it passes when nobody disturbs it.
    fn places(&self, act: Act) -> Vec<String> {
        self.go_to(act);
        self.stage.tw(act.arguments(), &End::Never, true).expect(0);
        let trace = self.stage.folder.root().join("trace");
        let trace = std::fs::read_to_string(trace).unwrap();
        trace.lines().map(str::to_owned).collect()
    }

    fn messages(&self) -> usize {
        self.stage.session().unwrap().prompts().count()
    }

    fn assert_files(&self, expected: &Files, about: &str) {
        assert_eq!(everything(&self.stage.folder.work()), *expected, "{about}");
    }

    /// Whether the process died of it.
    fn act(&self, act: Act, end: &End, then: Then) -> bool {
        self.go_to(act);
        let killed = self.stage.tw(act.arguments(), end, false);
        let about = format!("{act:?}, {end:?}, {then:?}");
        match act {
            Act::List | Act::Reindex => self.assert_files(&self.after, &about),
            Act::Undo | Act::Redo => self.take_up(act, then, &about),
        }
        let problems = self.stage.script.problems.lock().unwrap();
        assert!(problems.is_empty(), "{about}: {problems:?}");
        self.stage.check_index(&about);
        killed.code.is_none()
    }

    fn take_up(&self, act: Act, then: Then, about: &str) {
        let (from, to) = match act {
            Act::Undo => (&self.after, &self.before),
            _ => (&self.before, &self.after),
        };
        let reached = if act == Act::Undo { 1 } else { 2 };
        let is_done = self.messages() == reached;
        if is_done {
            self.assert_files(to, about);
        }
        match then {
            Then::Prompted => {
                let run = self.stage.run(&["-c", "Go on"], &End::Never, false);
                assert_eq!(run.code, Some(0), "{about}: {}", run.stderr);
                let finished = run.stderr.contains("brought to its end");
                let (files, messages) = match is_done || finished {
                    true => (to, reached),
                    // It had not begun.
                    false => (from, 3 - reached),
                };
                self.assert_files(files, &format!("{about}: {}", run.stderr));
                assert_eq!(self.messages(), messages + 1, "{about}: {}", run.stderr);
            }
            Then::AskedAgain => {
                if !is_done {
                    let again = self.stage.tw(act.arguments(), &End::Never, false);
                    let text = format!("{about}: {}{}", again.stdout, again.stderr);
                    assert_eq!(again.code, Some(0), "{text}");
                    self.assert_files(to, &text);
                    assert_eq!(self.messages(), reached, "{text}");
                }
                let other = if act == Act::Undo { Act::Redo } else { Act::Undo };
                let back = self.stage.tw(other.arguments(), &End::Never, false);
                let text = format!("{about}, and back: {}{}", back.stdout, back.stderr);
                assert_eq!(back.code, Some(0), "{text}");
                self.assert_files(from, &text);
                assert_eq!(self.messages(), 3 - reached, "{text}");
            }
        }
    }
}

#[test]
fn an_undo_a_redo_and_the_index_come_to_their_end_whatever_ends_them() {
    const ACTS: [Act; 4] = [Act::Undo, Act::Redo, Act::List, Act::Reindex];
    let scenery = Scenery::new();
    let mut points_of = Vec::new();
    let mut dice = Dice(number("TOOLWRIGHT_CRASH_SEED").unwrap_or(7));
    let passed = ACTS.map(|act| scenery.places(act));
    for (act, passed) in ACTS.iter().zip(&passed) {
        let own = if matches!(act, Act::Undo | Act::Redo) { "undo." } else { "index." };
        for place in FAIL_POINTS.iter().filter(|place| place.starts_with(own)) {
            let named = named(place, passed).into_iter();
            points_of.extend(named.flat_map(|end| {
                [Then::AskedAgain, Then::Prompted].map(|then| (*act, end.clone(), then))
            }));
        }
    }
    let at_places = points_of.len();
    for _ in 0..points(BACK_SHARE) {
        let at = dice.below(ACTS.len() as u64) as usize;
        let end = match dice.below(3) {
            0 => End::Killed(dice.below(150_000)),
            _ => End::At("any".to_owned(), 1 + dice.below(passed[at].len() as u64)),
        };
        let then = if dice.below(2) == 0 { Then::AskedAgain } else { Then::Prompted };
        points_of.push((ACTS[at], end, then));
    }
    let all = points_of.len();
    let queue = Mutex::new(points_of.into_iter());
    let died = AtomicUsize::new(0);
    let work = |scenery: &Scenery| {
        loop {
            let Some((act, end, then)) = queue.lock().unwrap().next() else { return };
            let is_dead = scenery.act(act, &end, then);
            died.fetch_add(usize::from(is_dead), Ordering::Relaxed);
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(|| work(&Scenery::new()));
        work(&scenery);
    });
    eprintln!("{all} points, {} of them died", died.load(Ordering::Relaxed));
    assert!(died.load(Ordering::Relaxed) >= at_places);
}
