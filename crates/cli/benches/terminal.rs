//! What the terminal interface costs, through a real terminal: until the first picture and the first key,
//! a key's way to the screen at rest, while a model streams and a command prints, and while a model
//! streams without a pause; bytes written for each character of an answer, memory with a long session,
//! and processor time for each key, each picture and at rest, which say the same on a busy machine.
//! Run with `cargo bench -p toolwright-cli --bench terminal`.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::time::{Duration, Instant};

use serde_json::json;
use toolwright::llm::{Content, Finish, FinishReason, Origin, Usage};
use toolwright::session::{Entry, ReplyPart, Store, TurnStatus};
use toolwright_testkit::{After, Answer, Folder, ModelServer, Reply, Terminal, Wire};

const STARTS: usize = 9;
const MESSAGES: usize = 10_000;
const KEYS: usize = 300;

fn folder(server: &ModelServer) -> Folder {
    Folder::new(env!("CARGO_BIN_EXE_tw")).with_model(server, Wire::Anthropic)
}

fn median(mut all: Vec<f64>) -> f64 {
    all.sort_by(f64::total_cmp);
    all[all.len() / 2]
}

fn milliseconds(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1e3
}

fn main() {
    let server = ModelServer::start([]);
    let place = folder(&server);
    starts("start", &place, &["-m", "anthropic/m"]);
    let place = folder(&server);
    long_session(&place);
    starts("start with 10,000 messages", &place, &["-c"]);
    rest(&place);
    stream();
    keys_at_rest();
    keys_in_a_flood(
        "a key at 2,000 deltas a second beside a command at full speed",
        After::ForeverAt(2_000),
        true,
    );
    keys_in_a_flood("a key while a model streams without a pause", After::Forever, false);
}

fn starts(name: &str, place: &Folder, arguments: &[&str]) {
    let (mut pictures, mut keys) = (Vec::new(), Vec::new());
    for _ in 0..STARTS {
        let begun = Instant::now();
        let terminal = Terminal::start(place, arguments, 120, 40);
        terminal.see(|screen| screen.contains('›'));
        pictures.push(milliseconds(begun));
        terminal.keys("þ");
        terminal.see(|screen| screen.contains("› þ"));
        keys.push(milliseconds(begun));
    }
    let (picture, key) = (median(pictures), median(keys));
    println!(
        "{name}: first picture {picture:.1} ms ({:.2} of 30), first key {key:.1} ms ({:.2} of 50)",
        picture / 30.0,
        key / 50.0
    );
}

fn long_session(place: &Folder) {
    let store = Store::new(place.root().join("data/toolwright/sessions"));
    let directory = place.work().canonicalize().unwrap();
    let (mut log, _) = store.create(&directory, "bench").unwrap();
    let model = Origin { provider: "anthropic".to_owned(), model: "m".to_owned() };
    for n in 0..MESSAGES / 2 {
        let content = vec![Content::text(format!("prompt number {n}"))];
        let (agent, model) = ("build".to_owned(), model.clone());
        log.append(&Entry::Prompt {
            content,
            agent,
            model: model.clone(),
            steer: false,
            queued: None,
        })
        .unwrap();
        log.append(&Entry::StepStarted { model }).unwrap();
        let text = format!("Answer {n}. {}", "Some **words** of an answer. ".repeat(20));
        let parts = vec![ReplyPart::Text { text, opaque: None }];
        let finish = Finish { reason: FinishReason::Stop, raw: "end_turn".to_owned() };
        log.append(&Entry::Reply { parts, usage: Usage::default(), finish, cost: None }).unwrap();
        log.append(&Entry::TurnEnded { status: TurnStatus::Done }).unwrap();
    }
}

fn status(id: u32, name: &str) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap();
    let line = text.lines().find(|line| line.starts_with(name)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

fn ticks(id: u32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap();
    let fields: Vec<&str> = text.rsplit_once(") ").unwrap().1.split(' ').collect();
    fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
}

fn rest(place: &Folder) {
    let terminal = Terminal::start(place, &["-c"], 120, 40);
    terminal.wait_for("Answer 4999");
    std::thread::sleep(Duration::from_secs(1));
    let memory = status(terminal.id(), "VmRSS") as f64 / 1024.0;
    let anonymous = status(terminal.id(), "RssAnon") as f64 / 1024.0;
    let (before, bytes) = (ticks(terminal.id()), terminal.bytes());
    std::thread::sleep(Duration::from_secs(10));
    let used = (ticks(terminal.id()) - before) as f64 / 100.0 / 10.0;
    println!(
        "10,000 messages at rest: {memory:.0} MB resident ({:.2} of 80), {anonymous:.0} MB of it its own; {:.2} % of a processor, {} bytes written",
        memory / 80.0,
        used * 100.0,
        terminal.bytes() - bytes
    );
}

fn stream() {
    let paragraph = "The quick brown fox jumps over the lazy dog, and `code()` returns **what** it was given.\n\n- a point\n- another\n\n```py\nfor n in range(10):\n    print(n)\n```\n\n";
    let text = paragraph.repeat(1_200);
    let mut reply = Reply::default();
    let chars: Vec<char> = text.chars().collect();
    for part in chars.chunks(20) {
        reply = reply.say(&part.iter().collect::<String>());
    }
    let server = ModelServer::start([Answer::from(reply.say("\n\nThe end of it."))]);
    let place = folder(&server);
    let terminal = Terminal::start(&place, &["-m", "anthropic/m"], 120, 40);
    terminal.wait_for("anthropic/m");
    let (bytes, before, begun) = (terminal.bytes(), ticks(terminal.id()), Instant::now());
    terminal.keys("go\r");
    terminal.wait_for("The end of it.");
    let written = terminal.bytes() - bytes;
    println!(
        "an answer of {} characters: {:.2} bytes written for each, {:.2} s, {:.2} s of processor",
        chars.len(),
        written as f64 / chars.len() as f64,
        begun.elapsed().as_secs_f64(),
        (ticks(terminal.id()) - before) as f64 / 100.0
    );
}

/// Nanoseconds of processor time of all its threads, without the ticks' coarseness.
fn processor(id: u32) -> u64 {
    let tasks = std::fs::read_dir(format!("/proc/{id}/task")).unwrap().flatten();
    let times = tasks.filter_map(|task| {
        let text = std::fs::read_to_string(task.path().join("schedstat")).ok()?;
        text.split(' ').next()?.parse::<u64>().ok()
    });
    times.sum()
}

/// How often the screen was written to.
fn pictures(terminal: &Terminal) -> usize {
    let output = terminal.output();
    output.windows(8).filter(|window| *window == b"\x1b[?2026h").count()
}

fn keys(name: &str, terminal: &Terminal) {
    let mut times = Vec::new();
    let (before, begun, drawn) = (processor(terminal.id()), Instant::now(), pictures(terminal));
    for n in 0..KEYS {
        let c = ['þ', 'ð', 'ø', 'æ', 'ß', 'ñ', 'å', 'ö'][n % 8];
        let wanted = format!("› {c}");
        let begun = Instant::now();
        terminal.keys(&c.to_string());
        terminal.see(|screen| screen.contains(&wanted));
        times.push(milliseconds(begun));
        terminal.keys("\x15");
        terminal.see(|screen| !screen.contains(&wanted));
    }
    let used = (processor(terminal.id()) - before) as f64 / 1e3;
    let (took, drawn) = (milliseconds(begun), pictures(terminal) - drawn);
    times.sort_by(f64::total_cmp);
    let at = |hundredths: usize| times[times.len() * hundredths / 100];
    println!(
        "{name}: {:.1} ms, 99 of 100 within {:.1} ms ({:.2} of 16), the slowest {:.1} ms; {:.0} µs of processor for each picture, {:.1} % of one",
        at(50),
        at(99),
        at(99) / 16.0,
        times[times.len() - 1],
        used / drawn.max(1) as f64,
        used / 10.0 / took,
    );
}

fn keys_at_rest() {
    let server = ModelServer::start([]);
    let place = folder(&server);
    let terminal = Terminal::start(&place, &["-m", "anthropic/m"], 120, 40);
    terminal.wait_for("anthropic/m");
    keys("a key at rest", &terminal);
}

/// The same few words without end, and `yes` beside them.
fn keys_in_a_flood(name: &str, after: After, command: bool) {
    let event = |value: serde_json::Value| {
        format!("event: {}\ndata: {value}\n\n", value["type"].as_str().unwrap()).into_bytes()
    };
    let usage = json!({"input_tokens": 1, "output_tokens": 1});
    let message = json!({"id": "m", "type": "message", "role": "assistant", "content": [], "model": "m", "usage": usage});
    let delta = json!({"type": "text_delta", "text": "some words of it\n\n"});
    let pieces = vec![
        event(json!({"type": "message_start", "message": message})),
        event(
            json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
        ),
        event(json!({"type": "content_block_delta", "index": 0, "delta": delta})),
    ];
    let server = ModelServer::start([Answer::Pieces { pieces, after }]);
    let place = folder(&server);
    let terminal = Terminal::start(&place, &["-m", "anthropic/m"], 120, 40);
    terminal.wait_for("anthropic/m");
    if command {
        terminal.keys("! yes\r");
        terminal.wait_for("lines above");
    }
    terminal.keys("go\r");
    terminal.wait_for("some words of it");
    keys(name, &terminal);
}
