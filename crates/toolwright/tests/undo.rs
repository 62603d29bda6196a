//! Random workspaces, random calls and commands, and back: byte for byte, modes and links too.
//!
//! `TOOLWRIGHT_UNDO_RUNS` says how many runs each kind of workspace gets, `TOOLWRIGHT_UNDO_SEED` the number
//! of the first one, `TOOLWRIGHT_UNDO_SHOW` shows what is done.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};

use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use toolwright::llm::{Content, Event as ModelEvent, Finish, FinishReason, Model, Origin, Request};
use toolwright::permission::{Action, Layer, LayerKind, Policy, Rule};
use toolwright::session::images::{Images, Keeper, Quota, Report, UndoOptions, Watch};
use toolwright::session::{Ending, Item, MoveReason, Store, TurnStatus};
use toolwright::tool::{Pipeline, PipelineOptions, Registry, Workspace};
use toolwright::{CancellationToken, Engine, PermissionGate};
use toolwright_engine::{EngineOptions, Record};
use toolwright_tools::{BashOptions, Feedback, Nearby, StaleEdits};

/// Runs of each kind of workspace: six kinds, 600 together.
const RUNS: u64 = 100;

/// A fixed sequence that is different for each run.
struct Dice(u64);

impl Dice {
    fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from((self.0 >> 11) % limit as u64).unwrap()
    }

    fn pick<'a, T>(&mut self, list: &'a [T]) -> &'a T {
        &list[self.below(list.len())]
    }

    /// A name that is not ignored.
    fn ours(&mut self) -> &'static str {
        let ignored = |name: &str| name.ends_with(".log") || name.starts_with("build");
        loop {
            let name = *self.pick::<&str>(NAMES);
            if !ignored(name) {
                return name;
            }
        }
    }

    fn text(&mut self) -> String {
        let words = ["alpha", "beta", "a", "\n", "line\r\n", "ü", "\t", "0123456789"];
        (0..self.below(9)).map(|_| *self.pick(&words)).collect()
    }
}

/// Answers each request with the next of its scripted calls, and with a word when there are none.
struct Scripted {
    origin: Origin,
    steps: Mutex<Vec<Vec<(String, Value)>>>,
}

impl Model for Scripted {
    fn origin(&self) -> &Origin {
        &self.origin
    }

    fn stream(&self, _: Request) -> BoxStream<'static, ModelEvent> {
        let mut steps = self.steps.lock().unwrap();
        let calls = if steps.is_empty() { Vec::new() } else { steps.remove(0) };
        let mut events = Vec::new();
        for (block, (name, arguments)) in (0..).zip(&calls) {
            events.extend([
                ModelEvent::CallStart { block, id: String::new(), name: name.clone() },
                ModelEvent::CallArguments { block, delta: arguments.to_string() },
                ModelEvent::BlockEnd { block, opaque: None },
            ]);
        }
        if calls.is_empty() {
            events.push(ModelEvent::Text { block: 0, delta: "Done.".into() });
            events.push(ModelEvent::BlockEnd { block: 0, opaque: None });
        }
        let reason = if calls.is_empty() { FinishReason::Stop } else { FinishReason::ToolCalls };
        events.push(ModelEvent::Finish(Finish { reason, raw: String::new() }));
        futures_util::stream::iter(events).boxed()
    }
}

struct Rig {
    _root: tempfile::TempDir,
    work: PathBuf,
    engine: Engine,
    model: Arc<Scripted>,
}

impl Rig {
    async fn new(root: tempfile::TempDir, work: PathBuf) -> Self {
        let data = root.path().join("data");
        let store = Store::new(data.join("sessions"));
        let workspace = Arc::new(Workspace::new(&work).unwrap());
        let images = Images::new(data.join("images"), data.join("sessions"), Quota::default());
        let home = root.path().join("home");
        let watch = Watch::new(workspace.worktree(), images, &data, &home);
        let (log, session) = store.create(&work, "test").unwrap();
        let memory = Store::outputs(&log).join("tool_workspace");
        let rule = Rule { permission: "*".into(), pattern: "*".into(), action: Action::Allow };
        let layer = Layer { kind: LayerKind::Session, origin: "test".into(), rules: vec![rule] };
        let gate = PermissionGate::new(Policy::new(vec![layer]), None);
        let registry = Registry::default();
        let bash = BashOptions { shell: Some("/bin/sh".into()), ..BashOptions::default() };
        let feedback = Feedback::default();
        toolwright_tools::register_all(&registry, bash, &feedback);
        let nearby = Nearby::knowing([], []);
        toolwright_tools::register_file_tools(&registry, StaleEdits::Allow, &feedback, nearby);
        let mut options = PipelineOptions::new(Store::outputs(&log));
        options.keeper = Some(Keeper::new(watch, Some(memory)));
        let pipeline = Pipeline::new(registry, workspace, Arc::new(gate), options);
        let origin = Origin { provider: "test".into(), model: "m".into() };
        let model = Arc::new(Scripted { origin, steps: Mutex::default() });
        let record = Record::new(session, log);
        let options = EngineOptions::new("Be.");
        let engine = Engine::new(Arc::clone(&model) as _, pipeline, record, options).await.unwrap();
        Self { _root: root, work, engine, model }
    }

    /// One message, answered by these calls, step by step.
    async fn turn(&mut self, steps: Vec<Vec<(String, Value)>>) {
        *self.model.steps.lock().unwrap() = steps;
        let (sender, mut events) = mpsc::channel(64);
        let drain = tokio::spawn(async move { while events.recv().await.is_some() {} });
        let content = vec![Content::text("go on")];
        let end = self.engine.prompt(content, &CancellationToken::new(), &sender).await;
        assert_eq!(end.status, TurnStatus::Done, "{end:?}");
        drop(sender);
        drain.await.unwrap();
    }

    async fn undo(&mut self, messages_left: usize) -> Report {
        let to = self.engine.session().prompts().nth(messages_left).unwrap().1.id;
        let options = UndoOptions { to: Some(to), ..UndoOptions::default() };
        self.engine.undo(&options, &[]).await.unwrap()
    }
}

fn content(mode: u32, bytes: &[u8]) -> String {
    const SHOWN: usize = 60;
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(SHOWN)]).into_owned();
    let sum = bytes.iter().fold(7_u64, |sum, byte| sum.wrapping_mul(31) ^ u64::from(*byte));
    format!("file {mode:o} {:?} {sum:x}", text)
}

/// Everything below a folder that is neither ignored nor a repository's own, or all the rest.
fn look(root: &Path, ours: bool) -> BTreeMap<PathBuf, String> {
    fn walk(root: &Path, folder: &Path, inside: bool, found: &mut Vec<(bool, PathBuf, String)>) {
        for entry in fs::read_dir(folder).unwrap().flatten() {
            let path = entry.path();
            let name = entry.file_name().to_string_lossy().into_owned();
            let data = fs::symlink_metadata(&path).unwrap();
            let git = name == ".git" && data.is_dir();
            let left_out = inside || git || name.ends_with(".log") || name == "build";
            let mode = data.permissions().mode() & 0o7777;
            let what = if data.is_symlink() {
                format!("-> {}", fs::read_link(&path).unwrap().display())
            } else if data.is_dir() {
                format!("folder {mode:o}")
            } else {
                content(mode, &fs::read(&path).unwrap())
            };
            found.push((left_out, path.strip_prefix(root).unwrap().to_owned(), what));
            if data.is_dir() {
                walk(root, &path, left_out, found);
            }
        }
    }
    let mut found = Vec::new();
    walk(root, root, false, &mut found);
    let wanted = found.into_iter().filter(|(left_out, ..)| *left_out != ours);
    wanted.map(|(_, path, what)| (path, what)).collect()
}

/// Folders that could not go because something ignored is in them by now.
fn excused(report: &Report, work: &Path) -> Vec<PathBuf> {
    assert!(report.conflicts.is_empty() && report.lost.is_empty(), "{report:#?}");
    let failed = report.failed.iter();
    let failed =
        failed.inspect(|f| assert!(f.why.contains("something else is in it"), "{report:#?}"));
    let kept = report.kept_folders.iter().chain(failed.map(|f| &f.path));
    kept.map(|path| path.strip_prefix(work).unwrap().to_owned()).collect()
}

fn assert_restored(work: &Path, was: &BTreeMap<PathBuf, String>, report: &Report, run: &str) {
    let (mut is, mut was) = (look(work, true), was.clone());
    for path in excused(report, work) {
        is.remove(&path);
        was.remove(&path);
    }
    assert_same(&is, &was, &format!("{run}: {report:#?}"));
}

fn assert_same(is: &BTreeMap<PathBuf, String>, was: &BTreeMap<PathBuf, String>, why: &str) {
    let paths: std::collections::BTreeSet<&PathBuf> = is.keys().chain(was.keys()).collect();
    let odd = paths.into_iter().filter(|path| is.get(*path) != was.get(*path));
    let odd: Vec<_> = odd.map(|path| (path, is.get(path), was.get(path))).collect();
    assert!(odd.is_empty(), "{why}\n(path, is, was): {odd:#?}");
}

fn git(folder: &Path, arguments: &[&str]) {
    let output = Command::new("git")
        .args([
            "-c",
            "user.name=T",
            "-c",
            "user.email=t@example.org",
            "-c",
            "init.defaultBranch=main",
        ])
        .args(["-c", "protocol.file.allow=always", "-c", "commit.gpgsign=false"])
        .args(arguments)
        .current_dir(folder)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "git {arguments:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
}

const NAMES: &[&str] = &[
    "a",
    "b.txt",
    "c",
    "d",
    "d/e",
    "d/f",
    "g/h/i",
    "g/h",
    "sp ace",
    "ümlaut",
    "x.log",
    "d/y.log",
    "build",
    "build/o",
    "sub/s",
    "sub/t/u",
    "new\nline",
    "back\\slash",
    "*[a]",
    ".hid/den",
];

/// No text, and still a name.
const RAW_NAME: &[u8] = b"r\xffw";

fn populate(work: &Path, dice: &mut Dice) {
    fs::create_dir_all(work).unwrap();
    fs::write(work.join(".gitignore"), "*.log\nbuild\n").unwrap();
    for name in NAMES {
        let path = work.join(name);
        if path.symlink_metadata().is_ok() || dice.below(3) == 0 {
            continue;
        }
        if fs::create_dir_all(path.parent().unwrap()).is_err() {
            continue;
        }
        match dice.below(6) {
            0 => fs::create_dir(&path).unwrap(),
            1 => symlink(dice.ours(), &path).unwrap(),
            _ => {
                fs::write(&path, dice.text()).unwrap();
                let mode = *dice.pick(&[0o644, 0o755, 0o600, 0o444, 0o4755]);
                fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            }
        }
    }
    if dice.below(2) == 0 {
        fs::write(work.join(std::ffi::OsStr::from_bytes(RAW_NAME)), dice.text()).unwrap();
    }
    if dice.below(4) == 0 {
        // More than is looked at in one piece.
        let bytes: Vec<u8> = (0..1_300_000_u32).map(|n| (n.wrapping_mul(n) >> 9) as u8).collect();
        fs::write(work.join("large"), bytes).unwrap();
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    Plain,
    Clean,
    Dirty,
    Submodule,
    Worktree,
    /// A folder of a repository, whose other folders are within reach.
    Below,
}

/// The folder to work in.
fn workspace(root: &Path, kind: Kind, dice: &mut Dice) -> PathBuf {
    let work = root.join("work");
    fs::create_dir(&work).unwrap();
    if kind == Kind::Plain {
        populate(&work, dice);
        return work;
    }
    git(&work, &["init", "-q"]);
    fs::write(work.join("tracked.txt"), "tracked\n").unwrap();
    if kind == Kind::Submodule {
        let other = root.join("other");
        fs::create_dir(&other).unwrap();
        git(&other, &["init", "-q"]);
        fs::write(other.join("s"), "in the submodule\n").unwrap();
        fs::create_dir(other.join("t")).unwrap();
        fs::write(other.join("t/u"), "deeper\n").unwrap();
        git(&other, &["add", "-A"]);
        git(&other, &["commit", "-qm", "first"]);
        git(&work, &["submodule", "--quiet", "add", "../other", "sub"]);
    }
    if kind != Kind::Worktree {
        populate(&work, dice);
    }
    git(&work, &["add", "-A"]);
    git(&work, &["commit", "-qm", "first"]);
    match kind {
        Kind::Dirty => {
            // Something staged, something changed behind that, something stashed, something new.
            fs::write(work.join("staged"), dice.text()).unwrap();
            git(&work, &["stash", "-q", "-u"]);
            fs::write(work.join("staged"), "staged\n").unwrap();
            git(&work, &["add", "staged"]);
            fs::write(work.join("staged"), "and changed\n").unwrap();
            fs::write(work.join("tracked.txt"), dice.text()).unwrap();
            fs::write(work.join("new"), dice.text()).unwrap();
            work
        }
        Kind::Worktree => {
            let beside = root.join("beside");
            git(&work, &["worktree", "add", "-q", beside.to_str().unwrap()]);
            populate(&beside, dice);
            git(&beside, &["add", "-A"]);
            git(&beside, &["commit", "-qm", "second"]);
            beside
        }
        Kind::Below => {
            let below = work.join("below");
            populate(&below, dice);
            below
        }
        Kind::Plain | Kind::Clean | Kind::Submodule => work,
    }
}

fn quoted(name: &str) -> String {
    format!("'{name}'")
}

fn command(kind: Kind, dice: &mut Dice) -> String {
    let mut parts = Vec::new();
    for _ in 0..=dice.below(3) {
        let mut name = || {
            let name = *dice.pick::<&str>(NAMES);
            let above = kind == Kind::Below && dice.below(2) == 0;
            quoted(&if above { format!("../{name}") } else { name.to_owned() })
        };
        let (p, q) = (name(), name());
        let git = kind != Kind::Plain;
        parts.push(match dice.below(if git { 33 } else { 21 }) {
            0 => format!("printf '{}' > {p}", ["x", "yy", "alpha\\n"][dice.below(3)]),
            1 => format!("printf more >> {p}"),
            2 => format!("rm -rf {p}"),
            3 => format!("mv {p} {q}"),
            4 => format!("cp -rp {p} {q}"),
            5 => format!("chmod {} {p}", dice.pick(&["600", "755", "644", "700", "4711", "1777"])),
            6 => format!("ln -sfn '{}' {p}", dice.ours()),
            7 => format!("mkdir -p {p}"),
            8 => format!("sed -i s/a/b/ {p}"),
            9 => format!("touch {p}"),
            10 => format!("rmdir {p}"),
            11 => format!("truncate -s {} {p}", dice.below(4)),
            12 => format!("ln -f {p} {q}"),
            // As long as before and as old as ever.
            13 => format!("printf Z | dd of={p} bs=1 conv=notrunc; touch -d @1000000000 {p}"),
            14 => format!("cp -p {p} t.tmp && printf Y | dd of=t.tmp bs=1 conv=notrunc; touch -r {p} t.tmp; mv t.tmp {p}"),
            15 => format!("printf '\\000\\377\\r\\n' > {p}"),
            16 => "printf more >> \"$(printf 'r\\377w')\"".to_owned(),
            17 => format!("head -c {} large >> {p}", dice.pick(&["70000", "1100000"])),
            18 => format!("rm -rf large; mv {p} large"),
            19 => format!("mv {p} {q} && ln -s \"$PWD\"/{q} {p}"),
            20 => format!("d={p}; d=${{d%%/*}}; mv \"$d\" else && ln -s else \"$d\""),
            21 => "git add -A".to_owned(),
            22 => "git -c user.name=T -c user.email=t@e.org commit -qam more".to_owned(),
            23 => "git checkout -q -- .".to_owned(),
            24 => "git -c user.name=T -c user.email=t@e.org stash -q".to_owned(),
            25 => "git stash pop -q".to_owned(),
            // What is tracked is no longer ignored: it would be ours.
            26 => format!("git mv {p} {}", quoted(dice.ours())),
            27 => "git reset -q --hard".to_owned(),
            28 => format!("git checkout -q -b branch{}", dice.below(100)),
            29 => "git clean -fdq".to_owned(),
            30 => "git gc -q --prune=now".to_owned(),
            31 => format!("git -C sub reset -q --hard; git -C sub rm -qf {q}"),
            _ => format!("git rm -q --cached {p}"),
        });
    }
    format!("({}) >/dev/null 2>&1; true", parts.join("; "))
}

fn call(kind: Kind, dice: &mut Dice) -> (String, Value) {
    // Declared writes of ignored files are taken back too; what commands do to them is not.
    let path = dice.ours();
    match dice.below(5) {
        0 => ("write".into(), json!({"filePath": path, "content": dice.text()})),
        1 => {
            let edit =
                json!({"filePath": path, "oldString": "a", "newString": "AA", "replaceAll": true});
            ("edit".into(), edit)
        }
        2 => {
            let patch = format!("*** Begin Patch\n*** Add File: {path}\n+one\n+two\n*** End Patch");
            ("apply_patch".into(), json!({ "patchText": patch }))
        }
        _ => ("bash".into(), json!({"command": command(kind, dice)})),
    }
}

/// In memory where that can be had: what is written there need not wait for a disk.
fn folder() -> tempfile::TempDir {
    let mut builder = tempfile::Builder::new();
    builder.prefix("tw-undo-");
    builder.tempdir_in("/dev/shm").or_else(|_| builder.tempdir()).unwrap()
}

async fn run(kind: Kind, seed: u64) -> usize {
    let mut dice = Dice::new(seed);
    let root = folder();
    let real = fs::canonicalize(root.path()).unwrap();
    let work = workspace(&real, kind, &mut dice);
    let mut rig = Rig::new(root, work).await;
    let work = match kind {
        Kind::Below => real.join("work"),
        _ => rig.work.clone(),
    };
    let mut states = vec![look(&work, true)];
    for _ in 0..=dice.below(3) {
        let steps = (0..=dice.below(3)).map(|_| {
            let calls = 1 + dice.below(2);
            (0..calls).map(|_| call(kind, &mut dice)).collect()
        });
        let steps: Vec<Vec<(String, Value)>> = steps.collect();
        if std::env::var_os("TOOLWRIGHT_UNDO_SHOW").is_some() {
            eprintln!("{kind:?} {seed}: {steps:#?}");
        }
        rig.turn(steps).await;
        states.push(look(&work, true));
    }
    let done = rig.engine.session().items().iter().filter_map(|item| match item {
        Item::Step(step) => Some(
            step.calls()
                .filter(|c| c.outcome().is_some_and(|o| o.ending == Ending::Completed))
                .count(),
        ),
        _ => None,
    });
    let done = done.sum();
    // Back in jumps, forth again, and back to the beginning.
    let theirs = look(&work, false);
    let last = states.len() - 1;
    let middle = dice.below(last);
    let run = format!("{kind:?} {seed}");
    let report = rig.undo(middle).await;
    assert_restored(&work, &states[middle], &report, &run);
    assert_eq!(rig.engine.session().prompts().count(), middle);
    let report = rig.engine.redo(false, &[]).await.unwrap();
    assert_restored(&work, &states[last], &report, &format!("{run}, redo"));
    assert_eq!(rig.engine.session().prompts().count(), last);
    let report = rig.undo(0).await;
    assert_restored(&work, &states[0], &report, &run);
    assert_same(&look(&work, false), &theirs, &format!("{run}: what is not ours was touched"));
    done
}

/// The whole output of the newest call that ran.
fn newest_output(engine: &Engine) -> String {
    let items = engine.session().items().iter().rev();
    let mut outputs = items.filter_map(|item| match item {
        Item::Step(step) => step.whole().calls().last()?.outcome().map(|o| o.output.clone()),
        _ => None,
    });
    outputs.next().unwrap()
}

#[tokio::test]
async fn after_an_undo_tools_remember_what_the_conversation_says() {
    let root = folder();
    let work = fs::canonicalize(root.path()).unwrap().join("work");
    fs::create_dir(&work).unwrap();
    fs::write(work.join("a.txt"), "one\n").unwrap();
    let mut rig = Rig::new(root, work).await;
    let todos = |names: &[&str]| {
        let list: Vec<Value> = names.iter().map(|name| json!({"content": name})).collect();
        vec![vec![("todowrite".to_owned(), json!({ "todos": list }))]]
    };
    let look = || vec![vec![("todoread".to_owned(), json!({}))]];
    rig.turn(todos(&["first"])).await;
    rig.turn(todos(&["first", "second"])).await;
    rig.undo(1).await;
    rig.turn(look()).await;
    let list = newest_output(&rig.engine);
    assert!(list.contains("first") && !list.contains("second"), "{list}");
    // To before anything was said: no list at all.
    rig.undo(0).await;
    rig.turn(look()).await;
    assert_eq!(newest_output(&rig.engine), "[]");
    // And by a move that touches no file.
    let place = *rig.engine.session().places().last().unwrap();
    rig.turn(todos(&["third"])).await;
    rig.engine.move_to(place.last, MoveReason::Branched).await.unwrap();
    rig.turn(look()).await;
    assert_eq!(newest_output(&rig.engine), "[]");
}

fn runs(kind: Kind) {
    let count = std::env::var("TOOLWRIGHT_UNDO_RUNS").ok().and_then(|n| n.parse().ok());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let first = std::env::var("TOOLWRIGHT_UNDO_SEED").ok().and_then(|n| n.parse().ok());
    let (first, count) = (first.unwrap_or(1), count.unwrap_or(RUNS));
    let mut done = 0;
    for seed in first..first + count {
        let ran = std::panic::AssertUnwindSafe(|| runtime.block_on(run(kind, seed)));
        done += std::panic::catch_unwind(ran).unwrap_or_else(|problem| {
            eprintln!("to see it again: TOOLWRIGHT_UNDO_RUNS=1 TOOLWRIGHT_UNDO_SEED={seed}");
            std::panic::resume_unwind(problem)
        });
    }
    eprintln!("{kind:?}: {count} runs, {done} calls came to their end");
    // Calls that all fail would prove nothing.
    assert!(done > 0);
}

#[test]
fn random_changes_of_a_plain_folder_are_undone_byte_for_byte() {
    runs(Kind::Plain);
}

#[test]
fn random_changes_of_a_clean_repository_are_undone_byte_for_byte() {
    runs(Kind::Clean);
}

#[test]
fn random_changes_of_a_dirty_repository_are_undone_byte_for_byte() {
    runs(Kind::Dirty);
}

#[test]
fn random_changes_around_a_submodule_are_undone_byte_for_byte() {
    runs(Kind::Submodule);
}

#[test]
fn random_changes_in_a_worktree_are_undone_byte_for_byte() {
    runs(Kind::Worktree);
}

#[test]
fn random_changes_below_the_root_of_a_repository_are_undone_byte_for_byte() {
    runs(Kind::Below);
}
