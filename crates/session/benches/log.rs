//! What the log costs: appending an entry, and loading 100,000 of them, all on one branch and with most
//! of them left behind. Run with `cargo bench -p toolwright-session --bench log`.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::Path;
use std::time::{Duration, Instant};

use toolwright_llm::{Content, Finish, FinishReason, Origin, Usage};
use toolwright_session::{
    Ending, Entry, EntryId, Log, MoveReason, Outcome, ReplyPart, Session, Store, Touched,
};

const ENTRIES: usize = 100_000;
const APPEND_LIMIT: Duration = Duration::from_micros(100);
const LOAD_LIMIT: Duration = Duration::from_secs(1);

fn model() -> Origin {
    Origin { provider: "p".into(), model: "m".into() }
}

/// Ten entries: a prompt, pieces of an answer, the answer with a call, and its result.
fn turn(number: usize) -> Vec<Entry> {
    let call = ReplyPart::Call {
        id: format!("call_{number}"),
        name: "bash".into(),
        arguments: "{\"command\":\"cargo test\"}".into(),
        opaque: None,
    };
    let outcome = Outcome {
        ending: Ending::Completed,
        tool: "bash".into(),
        output: "some output of a command\n".repeat(20),
        title: "cargo test".into(),
        details: serde_json::json!({"exit": 0, "truncated": false}),
        attachments: Vec::new(),
        duration_ms: 1,
        cost: None,
    };
    let delta = |n| Entry::Delta {
        kind: toolwright_session::DeltaKind::Text,
        text: format!("a piece of an answer, number {n} "),
    };
    let mut entries = vec![
        Entry::Prompt {
            content: vec![Content::text("Please do the next thing.")],
            agent: "build".into(),
            model: model(),
            steer: false,
            queued: None,
        },
        Entry::StepStarted { model: model() },
    ];
    entries.extend((0..5).map(delta));
    entries.push(Entry::Reply {
        parts: vec![ReplyPart::Text { text: "said ".repeat(40), opaque: None }, call],
        usage: Usage { input: 10, output: 5, ..Usage::default() },
        finish: Finish { reason: FinishReason::ToolCalls, raw: "tool_use".into() },
        cost: Some(0.001),
    });
    entries.push(Entry::CallStarted {
        call: 0,
        tool: "bash".into(),
        summary: "cargo test".into(),
        effects: true,
        decision: "allowed".into(),
        touched: Touched::default(),
    });
    entries.push(Entry::CallSettled { call: 0, outcome });
    entries
}

/// The processor time that this process has used, in the system's own ticks.
fn processor_time() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = stat.rsplit_once(") ").unwrap().1.split(' ').collect();
    let ticks: u64 = fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap();
    Duration::from_millis(ticks * 10)
}

fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

fn fill(log: &mut Log, turns: usize) -> EntryId {
    for number in 0..turns {
        for entry in turn(number) {
            log.append(&entry).unwrap();
        }
    }
    log.leaf().unwrap()
}

fn load(store: &Store, id: &str, what: &str) {
    let before = resident_kib();
    let started = Instant::now();
    let session = store.glance(id).unwrap();
    let took = started.elapsed();
    let ratio = took.as_secs_f64() / LOAD_LIMIT.as_secs_f64();
    let grown = resident_kib().saturating_sub(before);
    let items = session.items().len();
    println!("load {what:24} {took:8.0?}  {ratio:.2} of 1 s   {items:6} items, {grown:6} KiB more");
}

fn main() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::new(folder.path());
    let create = || store.create(Path::new("/work"), "bench").unwrap();

    let (mut log, linear): (Log, Session) = create();
    let (processor, started) = (processor_time(), Instant::now());
    fill(&mut log, ENTRIES / 10);
    let each = |time: Duration| time / u32::try_from(ENTRIES).unwrap();
    let (used, took) = (each(processor_time() - processor), each(started.elapsed()));
    let ratio = used.as_secs_f64() / APPEND_LIMIT.as_secs_f64();
    println!(
        "append: {used:.1?} of processor time each, {ratio:.2} of 100 µs ({took:.1?} by the clock)"
    );
    drop(log);

    // The same number of entries, of which a tenth is on the branch.
    let (mut log, branched) = create();
    let kept = fill(&mut log, ENTRIES / 100);
    for _ in 0..9 {
        fill(&mut log, ENTRIES / 100);
        log.move_to(kept, MoveReason::Undone).unwrap();
    }
    drop(log);
    load(&store, &branched.header.session, "a tenth on the branch");
    load(&store, &linear.header.session, "all on one branch");
}
