//! Many sub-agents at once beside one: time and memory. Each answer of the scripted model takes a
//! quarter of a second, as a fast real one would. Run with `cargo bench -p toolwright --bench
//! subagents` after `cargo build --release`.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::json;
use toolwright_testkit::{Answer, Captured, Folder, ModelServer, Reply, Wire, eventually};

const THINKING: Duration = Duration::from_millis(250);

fn model(count: usize) -> ModelServer {
    ModelServer::answering(move |request: &Captured| {
        std::thread::sleep(THINKING);
        let first = request.messages()[0]["content"].to_string();
        let turns = request.messages().len();
        match (first.contains("piece"), turns) {
            (true, 1) => Answer::call("read", json!({"filePath": "a.txt"})),
            (true, 3) => Answer::call("grep", json!({"pattern": "line"})),
            (true, _) => Answer::text("The report."),
            (false, 1) => {
                let task = |n| {
                    json!({"description": "a piece", "subagent_type": "explore",
                        "prompt": format!("piece {n}")})
                };
                (0..count).fold(Reply::default(), |reply, n| reply.call("task", task(n))).into()
            }
            _ => Answer::text("All reports are in."),
        }
    })
}

/// Seconds, and the highest resident memory in MB.
fn measure(binary: &str, count: usize) -> (f64, f64) {
    let server = model(count);
    let folder = Folder::new(binary)
        .file("a.txt", &"a line\n".repeat(500))
        .with_model(&server, Wire::Anthropic);
    let began = Instant::now();
    let run = folder.start(&["run", "-m", "anthropic/m", "go"]);
    let status = PathBuf::from(format!("/proc/{}/status", run.id()));
    let mut peak = 0.0_f64;
    eventually("the end of the run", || {
        let text = std::fs::read_to_string(&status).unwrap_or_default();
        let line = text.lines().find_map(|l| l.strip_prefix("VmHWM:"));
        let kilobytes = line.and_then(|l| l.trim().trim_end_matches(" kB").parse::<f64>().ok());
        peak = peak.max(kilobytes.unwrap_or(0.0) / 1e3);
        kilobytes.is_none().then_some(())
    });
    let took = began.elapsed().as_secs_f64();
    run.wait().expect(0);
    (took, peak)
}

fn main() {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../target"),
        PathBuf::from,
    );
    let binary = target.join("release/tw");
    let binary = binary.to_str().expect("a path");
    println!("sub-agents   seconds   of one   memory");
    let (one, _) = measure(binary, 1);
    for count in [1, 50, 200] {
        let (took, peak) = measure(binary, count);
        println!("{count:10}   {took:7.2}   {:6.2}   {peak:.0} MB", took / one);
    }
}
