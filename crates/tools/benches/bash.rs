//! What a bash call costs over starting a shell by hand, and what a gigabyte of output adds to
//! memory. Run with `cargo bench -p toolwright-tools --bench bash`.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::json;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use toolwright_permission::Request;
use toolwright_tool::{
    CallRequest, Decision, Gate, Pipeline, PipelineOptions, Question, Registry, Update, Workspace,
};
use toolwright_tools::{BashOptions, Feedback, register_all};

const ROUNDS: usize = 300;

struct Open;

impl Gate for Open {
    fn decide<'a>(&'a self, _: &'a Question) -> BoxFuture<'a, Decision> {
        std::future::ready(Decision::Allow { why: "bench".into() }).boxed()
    }

    fn allows_silently(&self, _: &[Request]) -> bool {
        true
    }
}

async fn call(pipeline: &Pipeline, command: &str) -> String {
    let (sender, mut updates) = mpsc::channel(8);
    let arguments = json!({ "command": command, "timeout": 600_000 }).to_string();
    let call = CallRequest { id: String::new(), name: "bash".into(), arguments, cut: false };
    let running = pipeline.run_calls(vec![call], CancellationToken::new(), sender);
    let watching = async {
        let mut text = String::new();
        while let Some(update) = updates.recv().await {
            match update {
                Update::Starting { go, .. } => go.send(()).unwrap(),
                Update::Settled { outcome, .. } => text = outcome.output,
                Update::Progress { .. } | Update::Changed(_) | Update::Fatal { .. } => {}
            }
        }
        text
    };
    tokio::join!(running, watching).1
}

fn plain(folder: &std::path::Path) {
    let mut command = std::process::Command::new("/bin/sh");
    assert!(command.args(["-c", "true"]).current_dir(folder).status().unwrap().success());
}

fn main() {
    let folder = tempfile::tempdir().unwrap();
    let workspace = Arc::new(Workspace::new(folder.path()).unwrap());
    let registry = Registry::default();
    let options = BashOptions { shell: Some("/bin/sh".to_owned()), ..BashOptions::default() };
    register_all(&registry, options, &Feedback::default());
    let outputs = PipelineOptions::new(folder.path().join("outputs"));
    let pipeline = Pipeline::new(registry, workspace, Arc::new(Open), outputs);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();

    let (mut by_hand, mut by_tool) = (Vec::new(), Vec::new());
    // In turns, so that whatever else the machine does falls on both.
    for round in 0..ROUNDS + 10 {
        let start = Instant::now();
        plain(folder.path());
        let middle = Instant::now();
        let text = runtime.block_on(call(&pipeline, "true"));
        assert_eq!(text, "(no output)\n[exit code 0]");
        if round >= 10 {
            by_hand.push(middle - start);
            by_tool.push(middle.elapsed());
        }
    }
    let at = |times: &mut Vec<Duration>, share: f64| {
        times.sort();
        times[((times.len() - 1) as f64 * share) as usize].as_secs_f64() * 1e3
    };
    for (name, share) in [("median", 0.5), ("90 %", 0.9)] {
        let (hand, tool) = (at(&mut by_hand, share), at(&mut by_tool, share));
        println!(
            "{name}: sh -c {hand:.2} ms, bash call {tool:.2} ms, over it {:.2} ms",
            tool - hand
        );
    }

    // From here on the peak is that of the flood.
    std::fs::write("/proc/self/clear_refs", "5").unwrap();
    let before = memory("VmRSS");
    let start = Instant::now();
    let text = runtime.block_on(call(&pipeline, "head -c 1000000000 /dev/zero | tr '\\0' x"));
    assert!(text.contains("1000000000 bytes in all"), "{}", &text[text.len() - 300..]);
    let grown = memory("VmHWM") - before;
    println!("1 GB of output: {:.1} s, memory grew by {grown} KiB", start.elapsed().as_secs_f64());
}

fn memory(name: &str) -> i64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with(name)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}
