//! The crash harness. A scripted session with edits, commands, parallel calls, sub-agents and notes is
//! ended outright at a point of its life, then taken up again. Whatever the point: nothing that was
//! shown is missing, no effect happened twice, every request is a valid history, the session loads.
//!
//! Usually at every named place and at a few dozen random points; `TOOLWRIGHT_CRASH_POINTS=1000` for
//! as many as one likes, `TOOLWRIGHT_CRASH_SEED` for others than the last time.

use std::collections::{BTreeMap, HashSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use toolwright::session::{FAIL_POINTS, Item, Session, StepBlock, Store};
use toolwright_testkit::{Answer, Captured, Finished, Folder, ModelServer, Reply, Wire};

use crate::folder;

/// Random points of a usual run.
const POINTS: usize = 60;

/// How a process comes to its end.
#[derive(Debug, Clone)]
enum End {
    /// At this pass of this place.
    At(String, u64),
    /// From outside, after so many microseconds.
    Killed(u64),
    /// By itself.
    Never,
}

fn main_steps() -> Vec<Reply> {
    let echo = |n: u32| json!({"command": format!("echo e{n} >> effects.log")});
    let edit = |n: u32| json!({"filePath": "edited.txt", "oldString": "END", "newString": format!("e{n}\nEND")});
    let task =
        json!({"description": "some work", "prompt": "child work e60", "subagent_type": "general"});
    let write = json!({"filePath": "written.txt", "content": "w"});
    vec![
        Reply::default().say("shown-1 ").say("shown-2").call("bash", echo(10)).with_id("c10"),
        Reply::default()
            .say("shown-3")
            .call("bash", echo(20))
            .with_id("c20")
            .call("read", json!({"filePath": "edited.txt"}))
            .with_id("c21")
            .call("bash", echo(22))
            .with_id("c22"),
        Reply::default().call("edit", edit(30)).with_id("c30").call("write", write).with_id("c31"),
        // Nearly fills the window: notes are taken behind it.
        Reply::default().say("shown-4").call("edit", edit(40)).with_id("c40").input_tokens(17_000),
        Reply::default().call("task", task).with_id("c60").call("bash", echo(61)).with_id("c61"),
        Reply::default().say("shown-5 ").say("shown-6"),
    ]
}

/// The model: the next of its answers to whoever asks, however often it was asked before.
struct Script {
    next: AtomicUsize,
    problems: Mutex<Vec<String>>,
}

impl Script {
    fn answer(&self, request: &Captured) -> Answer {
        if let Some(problem) = invalid(request) {
            self.problems.lock().unwrap().push(problem);
        }
        let text = String::from_utf8_lossy(&request.raw).into_owned();
        if request.body["tools"].as_array().is_none_or(Vec::is_empty) {
            return Answer::text("The notes.");
        }
        let first = request.messages()[0].to_string();
        if first.contains("child work e60") && !first.contains("Do it all") {
            let echo = json!({"command": "echo e60 >> effects.log"});
            return match text.contains("tool_result") {
                false => {
                    Reply::default().say("child-says").call("bash", echo).with_id("c_child").into()
                }
                true => Answer::text("child done"),
            };
        }
        let steps = main_steps();
        let next = self.next.fetch_add(1, Ordering::Relaxed);
        steps.get(next).cloned().unwrap_or_else(|| Reply::default().say("shown-7")).into()
    }
}

/// What is wrong with a request's calls and results.
fn invalid(request: &Captured) -> Option<String> {
    let ids = |message: &Value, kind: &str, key: &str| -> Vec<String> {
        let parts = message["content"].as_array().cloned().unwrap_or_default();
        let wanted = parts.iter().filter(|part| part["type"] == kind);
        wanted.map(|part| part[key].as_str().unwrap_or_default().to_owned()).collect()
    };
    let messages = request.messages();
    let mut seen = HashSet::new();
    for (n, message) in messages.iter().enumerate() {
        let calls = ids(message, "tool_use", "id");
        let next = messages.get(n + 1).map(|next| ids(next, "tool_result", "tool_use_id"));
        if !calls.is_empty() && next.as_ref() != Some(&calls) {
            return Some(format!("calls {calls:?} have results {next:?}"));
        }
        if let Some(twice) = calls.into_iter().find(|id| !seen.insert(id.clone())) {
            return Some(format!("{twice} was called twice"));
        }
    }
    None
}

struct Stage {
    folder: Folder,
    script: Arc<Script>,
    _server: ModelServer,
}

impl Stage {
    fn new() -> Self {
        let script = Arc::new(Script { next: AtomicUsize::new(0), problems: Mutex::default() });
        let model = Arc::clone(&script);
        let server = ModelServer::answering(move |request| model.answer(request));
        let config = json!({
            "provider": {"anthropic": {"models": {"m": {"limit": {"context": 20000, "output": 4000}}}}},
            "compaction": {"preserve_recent_tokens": 20},
        });
        let folder = folder()
            .user_config(&config.to_string())
            .file("edited.txt", "BEGIN\nEND\n")
            .with_model(&server, Wire::Anthropic);
        Self { folder, script, _server: server }
    }

    fn run(&self, more: &[&str], end: &End, trace: bool) -> Finished {
        let arguments = [&["run", "--auto", "-m", "anthropic/m"], more].concat();
        let mut command = self.folder.command(&arguments);
        if let End::At(place, count) = end {
            command.env("TOOLWRIGHT_FAIL_AT", format!("{place}:{count}"));
        }
        if trace {
            command.env("TOOLWRIGHT_FAIL_TRACE", self.folder.root().join("trace"));
        }
        let child = toolwright_testkit::Child::spawn(command);
        if let End::Killed(after) = end {
            // Not a wait for anything: the point itself is a matter of chance.
            std::thread::park_timeout(std::time::Duration::from_micros(*after));
            child.signal_if_alive("KILL");
        }
        child.wait()
    }

    fn session(&self) -> Option<Session> {
        let store = Store::new(self.folder.root().join("data/toolwright/sessions"));
        let directory = std::fs::canonicalize(self.folder.work()).unwrap();
        match store.peek_latest(&directory) {
            Ok(session) => Some(session),
            Err(toolwright::session::OpenError::NoneYet(_)) => None,
            Err(error) => panic!("the session does not load: {error}"),
        }
    }

    /// Taken up until it is done, and everything checked that must hold.
    fn check(&self, killed: &Finished, about: &str) {
        let problem = |text: String| -> ! { panic!("{about}: {text}\nstderr: {}", killed.stderr) };
        let shown = words(&killed.stdout);
        let kept = self.session().map(|session| words(&said(&session))).unwrap_or_default();
        if let Some(lost) = shown.iter().find(|word| !kept.contains(*word)) {
            problem(format!("{lost} was shown and is not in the session, which has {kept:?}"));
        }
        let again = self.run(&["-c"], &End::Never, false);
        match again.code {
            Some(0) => {}
            // Nothing had been said, or nothing was left to do.
            Some(2) if again.stderr.contains("no session in") => return,
            Some(2) if again.stderr.contains("nothing left to do") => {}
            code => problem(format!("went on with {code:?}: {}{}", again.stdout, again.stderr)),
        }
        let problems = self.script.problems.lock().unwrap();
        if let Some(first) = problems.first() {
            problem(first.clone());
        }
        let effects =
            format!("{}{}", self.folder.read("effects.log"), self.folder.read("edited.txt"));
        let mut times: BTreeMap<&str, u32> = BTreeMap::new();
        effects
            .lines()
            .filter(|l| l.starts_with('e'))
            .for_each(|l| *times.entry(l).or_default() += 1);
        if let Some((effect, n)) = times.iter().find(|(_, n)| **n > 1) {
            problem(format!("{effect} happened {n} times"));
        }
        let session = self.session().unwrap_or_else(|| problem("the session is gone".to_owned()));
        let after = words(&said(&session));
        if let Some(lost) = kept.iter().find(|word| !after.contains(*word)) {
            problem(format!("{lost} was lost when the session was taken up"));
        }
        // What the model was told is done, is done.
        for (id, output) in completed(&session) {
            let effect = format!("e{}", id.trim_start_matches('c'));
            let echoes = ["e10", "e20", "e22", "e30", "e40", "e61"].contains(&effect.as_str());
            if echoes && !times.contains_key(effect.as_str()) {
                problem(format!("{effect} was told as done and never happened: {output}"));
            }
        }
        if !session.interrupted_calls().is_empty() || session.is_cut_off() {
            problem("the session was left open".to_owned());
        }
    }
}

fn said(session: &Session) -> String {
    let mut out = String::new();
    for item in session.items() {
        let Item::Step(step) = item else { continue };
        for block in &step.blocks {
            if let StepBlock::Text { text, .. } = block {
                out.push_str(&format!("{text} "));
            }
        }
    }
    out
}

/// The pieces of answers that are in a text.
fn words(text: &str) -> HashSet<String> {
    let words = text.split_whitespace().filter(|word| word.starts_with("shown-"));
    words.map(str::to_owned).collect()
}

fn completed(session: &Session) -> Vec<(String, String)> {
    let steps = session.items().iter().filter_map(|item| match item {
        Item::Step(step) => Some(step),
        Item::Prompt(_) | Item::Note(_) => None,
    });
    let done = |call: &toolwright::session::Call| {
        let outcome = call.outcome()?;
        let completed = outcome.ending == toolwright::session::Ending::Completed;
        completed.then(|| (call.id.clone(), outcome.output.clone()))
    };
    steps.flat_map(|step| step.calls()).filter_map(done).collect()
}

/// A small generator: the same seed gives the same points.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit.max(1)
    }
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// The places that a whole run passes, in order.
fn places() -> Vec<String> {
    let stage = Stage::new();
    let whole = stage.run(&["Do it all"], &End::Never, true).expect(0);
    assert_eq!(words(&whole.stdout).len(), 6, "{}", whole.stdout);
    stage.check(&whole, "a whole run");
    assert!(stage.folder.session_text().contains("\"type\":\"compacted\""));
    let trace = std::fs::read_to_string(stage.folder.root().join("trace")).unwrap();
    trace.lines().map(str::to_owned).collect()
}

#[test]
fn whatever_the_point_at_which_it_dies_nothing_is_lost_and_nothing_happens_twice() {
    let passed = places();
    let mut ends = Vec::new();
    for place in FAIL_POINTS {
        let times = passed.iter().filter(|name| name == place).count() as u64;
        assert!(times > 0, "the scripted session never comes to {place}");
        ends.extend([1, times.div_ceil(2), times].map(|n| End::At((*place).to_owned(), n)));
    }
    let mut dice = Dice(number("TOOLWRIGHT_CRASH_SEED").unwrap_or(7));
    let points = number("TOOLWRIGHT_CRASH_POINTS").map_or(POINTS, |n| n as usize);
    for _ in 0..points {
        ends.push(match dice.below(3) {
            0 => End::Killed(dice.below(1_200_000)),
            _ => End::At("any".to_owned(), 1 + dice.below(passed.len() as u64)),
        });
    }
    // Two at a time: more only get in each other's way.
    let queue = Mutex::new(ends.into_iter());
    let died = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let Some(end) = queue.lock().unwrap().next() else { return };
                    let stage = Stage::new();
                    let killed = stage.run(&["Do it all"], &end, false);
                    if killed.code.is_none() {
                        died.fetch_add(1, Ordering::Relaxed);
                    }
                    stage.check(&killed, &format!("{end:?}"));
                }
            });
        }
    });
    eprintln!("{} of them died", died.load(Ordering::Relaxed));
    assert!(died.load(Ordering::Relaxed) >= FAIL_POINTS.len() * 3);
}
