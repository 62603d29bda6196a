//! The crash harness. A scripted session with edits, commands, parallel calls, sub-agents and notes is
//! ended outright at a point of its life, then taken up again, or undone at once. Whatever the point:
//! nothing that was shown is missing, no effect happened twice or unannounced, every request is a valid
//! history, the session loads, the index says what the log says, and all of it can be undone and redone,
//! byte for byte. It happens in a plain folder, in a repository with changes, and behind an undo.
//! `harness_back.rs` does the same to an undo, a redo and the making of the index, `harness_power.rs`
//! takes away what a power cut may take.
//!
//! Usually at every named place and at a few dozen random points; `TOOLWRIGHT_CRASH_POINTS=1000` for
//! as many as one likes, `TOOLWRIGHT_CRASH_SEED` for others than the last time.

use std::collections::{BTreeMap, HashSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use toolwright::session::{Counted, FAIL_POINTS, Index, Item, Listed, Session, Store, Wanted};
use toolwright_testkit::{
    Answer, Captured, Finished, Folder, ModelServer, Reply, Wire, eventually,
};

use crate::folder;
use crate::harness_shown::{Shown, begun, completed, said, words};
use crate::undo::{everything, git};

/// Random points of a usual run.
const POINTS: usize = 60;

/// Of all points, those of the work itself; the others are in `harness_back.rs`.
const WORK_SHARE: f64 = 0.6;

/// How a process comes to its end.
#[derive(Debug, Clone)]
pub(crate) enum End {
    /// At this pass of this place.
    At(String, u64),
    /// From outside, after so many microseconds.
    Killed(u64),
    /// By itself.
    Never,
}

/// Where it happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Setting {
    Plain,
    /// A repository with something staged, something changed and something new.
    Repository,
    /// In a session whose only message was undone.
    AfterUndo,
}

/// What happens behind the end.
#[derive(Debug, Clone)]
enum Then {
    TakenUp,
    /// Misfortunes come in pairs: whoever takes it up dies too.
    DiesAgain(End),
    /// The person does not go on but back.
    Undone,
}

pub(crate) fn main_steps() -> Vec<Reply> {
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
pub(crate) struct Script {
    steps: Vec<Reply>,
    pub(crate) next: AtomicUsize,
    pub(crate) problems: Mutex<Vec<String>>,
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
        let next = self.next.fetch_add(1, Ordering::Relaxed);
        self.steps.get(next).cloned().unwrap_or_else(|| Reply::default().say("shown-7")).into()
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
        if n == 0 && !ids(message, "tool_result", "tool_use_id").is_empty() {
            return Some("it begins with a result".to_owned());
        }
        if next.as_ref().is_some_and(|results| *results != calls) {
            return Some(format!("calls {calls:?} have results {next:?}"));
        }
        if message["content"].as_array().is_some_and(Vec::is_empty) {
            return Some("a message says nothing".to_owned());
        }
        if !calls.is_empty() && next.as_ref() != Some(&calls) {
            return Some(format!("calls {calls:?} have results {next:?}"));
        }
        if let Some(twice) = calls.into_iter().find(|id| !seen.insert(id.clone())) {
            return Some(format!("{twice} was called twice"));
        }
    }
    None
}

pub(crate) struct Stage {
    pub(crate) folder: Folder,
    pub(crate) script: Arc<Script>,
    _server: ModelServer,
}

impl Stage {
    pub(crate) fn new(steps: Vec<Reply>) -> Self {
        let (next, problems) = (AtomicUsize::new(0), Mutex::default());
        let script = Arc::new(Script { steps, next, problems });
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

    pub(crate) fn set_in(setting: Setting) -> Self {
        match setting {
            Setting::Plain => Self::new(main_steps()),
            Setting::Repository => {
                let stage = Self::new(main_steps());
                let work = stage.folder.work();
                git(&work, "git init -q; git add -A; git commit -qm first");
                git(&work, "echo s > staged; git add staged; echo c > staged; echo n > new");
                stage
            }
            Setting::AfterUndo => {
                let alpha = json!({"filePath": "alpha.txt", "content": "alpha\n"});
                let shell = json!({"command": "echo x >> edited.txt; mkdir d; ln -s x d/l"});
                let mut steps = vec![
                    Reply::default().call("write", alpha).with_id("a1"),
                    Reply::default().call("bash", shell).with_id("a2"),
                    Reply::default().say("shown-0"),
                ];
                steps.extend(main_steps());
                let stage = Self::new(steps);
                let before = everything(&stage.folder.work());
                stage.run(&["alpha"], &End::Never, false).expect(0);
                stage.tw(&["undo"], &End::Never, false).expect(0);
                assert_eq!(everything(&stage.folder.work()), before);
                stage
            }
        }
    }

    /// The work that is ended, for people or for programs.
    fn work(&self, setting: Setting, json: bool, end: &End) -> Finished {
        let mut arguments = match setting {
            Setting::AfterUndo => vec!["-c", "Do it all"],
            Setting::Plain | Setting::Repository => vec!["Do it all"],
        };
        if json {
            arguments.extend(["--format", "json"]);
        }
        self.run(&arguments, end, false)
    }

    pub(crate) fn run(&self, more: &[&str], end: &End, trace: bool) -> Finished {
        self.tw(&[&["run", "--auto", "-m", "anthropic/m"], more].concat(), end, trace)
    }

    /// Any command, with its end.
    pub(crate) fn tw(&self, arguments: &[&str], end: &End, trace: bool) -> Finished {
        let trace = [("TOOLWRIGHT_FAIL_TRACE", "trace")].into_iter().filter(|_| trace);
        self.ended(arguments, end, &trace.collect::<Vec<_>>())
    }

    /// The files are for what the process tells of itself.
    pub(crate) fn ended(&self, arguments: &[&str], end: &End, files: &[(&str, &str)]) -> Finished {
        let mut command = self.folder.command(arguments);
        if let End::At(place, count) = end {
            command.env("TOOLWRIGHT_FAIL_AT", format!("{place}:{count}"));
        }
        for (variable, name) in files {
            command.env(variable, self.folder.root().join(name));
        }
        let child = toolwright_testkit::Child::spawn(command);
        if let End::Killed(after) = end {
            // Not a wait for anything: the point itself is a matter of chance.
            std::thread::park_timeout(std::time::Duration::from_micros(*after));
            child.signal_if_alive("KILL");
        }
        let ended = child.wait();
        // Somebody who comes back later than what is left of the process takes to go.
        let work = std::fs::canonicalize(self.folder.work()).unwrap();
        eventually("the end of all that was started", || is_deserted(&work).then_some(()));
        ended
    }

    pub(crate) fn store(&self) -> Store {
        Store::new(self.folder.root().join("data/toolwright/sessions"))
    }

    pub(crate) fn session(&self) -> Option<Session> {
        let store = self.store();
        let directory = std::fs::canonicalize(self.folder.work()).unwrap();
        match store.peek_latest(&directory) {
            Ok(session) => Some(session),
            Err(toolwright::session::OpenError::NoneYet(_)) => None,
            Err(error) => panic!("the session does not load: {error}"),
        }
    }

    /// The index as it was left and brought up to date says the same as one that is made anew, and
    /// that is what the log says.
    pub(crate) fn check_index(&self, about: &str) {
        let store = self.store();
        let kept = told(&mut Index::open(&store).unwrap());
        let anew = told(&mut Index::rebuild(&store).unwrap());
        assert_eq!(kept, anew, "{about}: the index is not what the files say");
        let Some(session) = self.session() else { return };
        let listed = anew.0.iter().find(|listed| listed.id == session.header.session);
        let listed = listed.unwrap_or_else(|| panic!("{about}: the session is not in the index"));
        let is_message = |item: &&Item| match item {
            Item::Prompt(_) => true,
            Item::Note(_) => false,
            Item::Step(step) => step.finish.is_some(),
        };
        let messages = session.items().iter().filter(is_message).count() as u64;
        assert_eq!((listed.messages, &listed.title), (messages, &session.title()), "{about}");
    }

    /// What the logs tell of files, for whoever has to find out.
    fn changes(&self) -> String {
        let mut told = Vec::new();
        for file in self.store().files() {
            let text = std::fs::read_to_string(&file).unwrap_or_default();
            for line in text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
                let state = |state: &Value| match state["kind"].as_str() {
                    Some("file") => format!("{} bytes", state["len"]),
                    other => other.unwrap_or("?").to_owned(),
                };
                let data = &line["data"];
                for change in data["changes"].as_array().into_iter().flatten() {
                    let path = change["path"].as_str().unwrap_or_default();
                    let name = path.rsplit('/').next().unwrap_or_default();
                    let (before, after) = (state(&change["before"]), state(&change["after"]));
                    let what = &data["by"];
                    told.push(format!("{} {name}: {before} -> {after} {what}", data["at"]));
                }
            }
        }
        told.sort();
        told.join("\n")
    }

    /// All that was done can be taken back and done again.
    fn check_undo(&self, before: &Files, about: &str) {
        let work = self.folder.work();
        let Some(session) = self.session().filter(|session| session.prompts().next().is_some())
        else {
            assert_eq!(everything(&work), *before, "{about}: nothing was said and something done");
            return;
        };
        let after = everything(&work);
        let undone = self.tw(&["undo"], &End::Never, false);
        let text = format!("{about}: {}{}", undone.stdout, undone.stderr);
        assert_eq!(undone.code, Some(0), "{text}{}", self.changes());
        assert_eq!(everything(&work), *before, "{text}");
        assert_eq!(self.session().unwrap().prompts().count(), 0, "{text}");
        let redone = self.tw(&["redo"], &End::Never, false);
        let text = format!("{about}: {}{}", redone.stdout, redone.stderr);
        assert_eq!(redone.code, Some(0), "{text}");
        assert_eq!(everything(&work), after, "{text}");
        assert_eq!(self.session().unwrap().items(), session.items(), "{text}");
        self.check_index(about);
    }

    /// Undone at once: nobody has taken it up, and what was cut off is taken back as it is.
    fn check_undo_at_once(&self, before: &Files, about: &str) {
        let work = self.folder.work();
        let prompted = |session: &Session| session.prompts().next().is_some();
        if !self.session().as_ref().is_some_and(prompted) {
            assert_eq!(everything(&work), *before, "{about}: nothing was said and something done");
            return;
        }
        // What a killed write left beside its file is nobody's.
        let is_left = |name: &std::ffi::OsStr| name.to_string_lossy().starts_with(".tw-");
        let mut after = everything(&work);
        after.retain(|path, _| !path.file_name().is_some_and(is_left));
        let undone = self.tw(&["undo"], &End::Never, false);
        let text = format!("{about}: {}{}", undone.stdout, undone.stderr);
        assert_eq!(undone.code, Some(0), "{text}{}", self.changes());
        assert_eq!(everything(&work), *before, "{text}");
        self.check_index(about);
        let redone = self.tw(&["redo"], &End::Never, false);
        let text = format!("{about}: {}{}", redone.stdout, redone.stderr);
        assert_eq!(redone.code, Some(0), "{text}");
        assert_eq!(everything(&work), after, "{text}");
        let on = self.run(&["-c", "Go on"], &End::Never, false);
        assert_eq!(on.code, Some(0), "{about}: {}{}", on.stdout, on.stderr);
    }

    /// What was shown is kept, and what happened was announced.
    pub(crate) fn check_kept(&self, shown: &Shown, about: &str) -> HashSet<String> {
        let session = self.session();
        let kept = session.as_ref().map(|session| words(&said(session))).unwrap_or_default();
        if let Some(lost) = shown.words.iter().find(|word| !kept.contains(*word)) {
            panic!("{about}: {lost} was shown and is not in the session, which has {kept:?}");
        }
        let begun = session.as_ref().map(begun).unwrap_or_default();
        if let Some(lost) = shown.begun.iter().find(|id| !begun.contains(*id)) {
            panic!("{about}: {lost} was shown to begin; the session knows of {begun:?}");
        }
        let completed = session.as_ref().map(completed).unwrap_or_default();
        if let Some(lost) = shown.results.iter().find(|result| !completed.contains(result)) {
            panic!("{about}: the result {lost:?} was shown; the session has {completed:?}");
        }
        for effect in self.effects().keys() {
            let id = effect.replacen('e', "c", 1);
            assert!(begun.contains(&id), "{about}: {effect} happened, and {id} had not begun");
        }
        kept
    }

    /// How often each effect happened.
    fn effects(&self) -> BTreeMap<String, u32> {
        let text = format!("{}{}", self.folder.read("effects.log"), self.folder.read("edited.txt"));
        let mut times = BTreeMap::new();
        for line in text.lines().filter(|line| line.starts_with('e')) {
            *times.entry(line.to_owned()).or_default() += 1;
        }
        times
    }

    /// Whatever else: nothing happened twice, and no request was odd.
    pub(crate) fn check_effects(&self, about: &str) -> BTreeMap<String, u32> {
        let problems = self.script.problems.lock().unwrap();
        assert!(problems.is_empty(), "{about}: {problems:?}");
        let times = self.effects();
        if let Some((effect, n)) = times.iter().find(|(_, n)| **n > 1) {
            panic!("{about}: {effect} happened {n} times");
        }
        times
    }

    /// Taken up until it is done, and everything checked that must hold.
    pub(crate) fn check(&self, kept: &HashSet<String>, about: &str) {
        let problem = |text: String| -> ! { panic!("{about}: {text}") };
        let again = self.run(&["-c"], &End::Never, false);
        match again.code {
            Some(0) => {}
            // Nothing had been said, or nothing was left to do.
            Some(2) if again.stderr.contains("no session in") => return,
            Some(2) if again.stderr.contains("nothing left to do") => {}
            code => problem(format!("went on with {code:?}: {}{}", again.stdout, again.stderr)),
        }
        let times = self.check_effects(about);
        let session = self.session().unwrap_or_else(|| problem("the session is gone".to_owned()));
        let after = words(&said(&session));
        if let Some(lost) = kept.iter().find(|word| !after.contains(*word)) {
            problem(format!("{lost} was lost when the session was taken up"));
        }
        // What the model was told is done, is done.
        for (id, output) in completed(&session) {
            let effect = id.replacen('c', "e", 1);
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

pub(crate) type Files = BTreeMap<std::path::PathBuf, String>;

/// What an index can be asked for.
type Told = (Vec<Listed>, Vec<Counted>, u64, Vec<Vec<Listed>>);

fn told(index: &mut Index) -> Told {
    let mut find = |search: Option<&str>| {
        let search = search.map(str::to_owned);
        index.list(&Wanted { search, ..Wanted::default() }).unwrap()
    };
    let all = find(None);
    let found = ["shown", "edited.txt", "effects", "child", "alpha"].map(|word| find(Some(word)));
    (all, index.spending().unwrap(), index.count().unwrap(), found.to_vec())
}

/// Whether no process works in a folder.
fn is_deserted(folder: &std::path::Path) -> bool {
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let mut places =
        processes.filter_map(|process| std::fs::read_link(process.path().join("cwd")).ok());
    !places.any(|place| place.starts_with(folder))
}

/// A small generator: the same seed gives the same points.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit.max(1)
    }
}

pub(crate) fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// So many random points, of all that are wanted.
pub(crate) fn points(share: f64) -> usize {
    let all = number("TOOLWRIGHT_CRASH_POINTS").map_or(POINTS, |n| n as usize);
    (all as f64 * share).round() as usize
}

/// The first, a middle and the last time that a place is passed.
pub(crate) fn named(place: &str, passed: &[String]) -> [End; 3] {
    let times = passed.iter().filter(|name| *name == place).count() as u64;
    assert!(times > 0, "the scripted session never comes to {place}");
    [1, times.div_ceil(2), times].map(|n| End::At(place.to_owned(), n))
}

/// The places that a whole run passes, in order.
pub(crate) fn places() -> Vec<String> {
    let stage = Stage::new(main_steps());
    let before = everything(&stage.folder.work());
    let whole = stage.run(&["Do it all"], &End::Never, true).expect(0);
    assert_eq!(words(&whole.stdout).len(), 6, "{}", whole.stdout);
    let kept = stage.check_kept(&Shown::on(&whole.stdout), "a whole run");
    stage.check(&kept, "a whole run");
    assert!(stage.folder.session_text().contains("\"type\":\"compacted\""));
    stage.check_undo(&before, "a whole run");
    let trace = std::fs::read_to_string(stage.folder.root().join("trace")).unwrap();
    trace.lines().map(str::to_owned).collect()
}

#[test]
fn whatever_the_point_at_which_it_dies_nothing_is_lost_and_nothing_happens_twice() {
    let passed = places();
    let mut ends = Vec::new();
    let own = |place: &&&str| !place.starts_with("undo.") && !place.starts_with("index.");
    for place in FAIL_POINTS.iter().filter(own) {
        ends.extend(named(place, &passed));
    }
    let at_places = ends.len();
    let plain = |(n, end)| (Setting::Plain, n % 2 == 0, end, Then::TakenUp);
    let mut ends: Vec<(Setting, bool, End, Then)> =
        ends.into_iter().enumerate().map(plain).collect();
    let mut dice = Dice(number("TOOLWRIGHT_CRASH_SEED").unwrap_or(7));
    for _ in 0..points(WORK_SHARE) {
        let mut any = || End::At("any".to_owned(), 1 + dice.below(passed.len() as u64));
        let (first, second) = (any(), any());
        let first = if dice.below(3) == 0 { End::Killed(dice.below(1_200_000)) } else { first };
        let setting = match dice.below(4) {
            0 => Setting::Repository,
            1 => Setting::AfterUndo,
            _ => Setting::Plain,
        };
        let then = match dice.below(5) {
            0 => Then::DiesAgain(second),
            1 => Then::Undone,
            _ => Then::TakenUp,
        };
        ends.push((setting, dice.below(2) == 0, first, then));
    }
    let all = ends.len();
    // Two at a time: more only get in each other's way.
    let queue = Mutex::new(ends.into_iter());
    let died = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let Some(point) = queue.lock().unwrap().next() else { return };
                    died.fetch_add(usize::from(live_and_die(&point)), Ordering::Relaxed);
                }
            });
        }
    });
    eprintln!("{all} points, {} of them died", died.load(Ordering::Relaxed));
    assert!(died.load(Ordering::Relaxed) >= at_places);
}

/// Whether the process died of it.
fn live_and_die(point: &(Setting, bool, End, Then)) -> bool {
    let (setting, json, end, then) = point;
    let about = format!("{point:?}");
    let stage = Stage::set_in(*setting);
    let before = everything(&stage.folder.work());
    let killed = stage.work(*setting, *json, end);
    let about = format!("{about}\nstderr: {}\n", killed.stderr);
    let mut kept = stage.check_kept(&Shown::on(&killed.stdout), &about);
    if let Then::DiesAgain(end) = then {
        let second = stage.run(&["-c"], end, false);
        let still = stage.check_kept(&Shown::on(&second.stdout), &about);
        assert!(still.is_superset(&kept), "{about}: of {kept:?} there is {still:?}");
        kept = still;
    }
    // So that what is new later is read on behind what was there.
    Index::open(&stage.store()).unwrap();
    match then {
        Then::Undone => {
            stage.check_undo_at_once(&before, &about);
            stage.check_effects(&about);
            stage.check_index(&about);
        }
        Then::TakenUp | Then::DiesAgain(_) => {
            stage.check(&kept, &about);
            stage.check_index(&about);
            stage.check_undo(&before, &about);
        }
    }
    killed.code.is_none()
}
