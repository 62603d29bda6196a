//! What an edit in the middle of a 50 MB file costs, through the whole pipeline, beside `cp` of the
//! same file in the same folder.
//!
//!     cargo bench -p toolwright-tools --bench edit

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::json;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use toolwright_permission::Request;
use toolwright_session::Ending;
use toolwright_tool::{
    CallRequest, Decision, Gate, Pipeline, PipelineOptions, Question, Registry, Update, Workspace,
};
use toolwright_tools::{BashOptions, Feedback, register_all};

const ROUNDS: usize = 15;

struct Open;

impl Gate for Open {
    fn decide<'a>(&'a self, _: &'a Question) -> BoxFuture<'a, Decision> {
        std::future::ready(Decision::Allow { why: "bench".into() }).boxed()
    }

    fn allows_silently(&self, _: &[Request]) -> bool {
        true
    }
}

async fn edit(pipeline: &Pipeline, old: &str, new: &str) -> Duration {
    let arguments = json!({"filePath": "large.txt", "oldString": old, "newString": new});
    let call = CallRequest {
        name: "edit".into(),
        arguments: arguments.to_string(),
        ..CallRequest::default()
    };
    let started = Instant::now();
    let (sender, mut updates) = mpsc::channel(8);
    let running = pipeline.run_calls(vec![call], CancellationToken::new(), sender);
    let watching = async {
        while let Some(update) = updates.recv().await {
            match update {
                Update::Starting { go, .. } => go.send(()).unwrap(),
                Update::Settled { outcome, .. } => {
                    assert_eq!(outcome.ending, Ending::Completed, "{}", outcome.output);
                }
                Update::Progress { .. } | Update::Changed(_) => {}
                Update::Fatal { message } => panic!("{message}"),
            }
        }
    };
    tokio::join!(running, watching);
    started.elapsed()
}

fn copy(from: &Path, to: &Path) -> Duration {
    let started = Instant::now();
    assert!(Command::new("cp").arg(from).arg(to).status().unwrap().success());
    let took = started.elapsed();
    fs::remove_file(to).unwrap();
    took
}

fn median(mut times: Vec<Duration>) -> f64 {
    times.sort();
    times[times.len() / 2].as_secs_f64() * 1e3
}

fn main() {
    let folder = tempfile::tempdir().unwrap();
    let work = folder.path().join("w");
    fs::create_dir(&work).unwrap();
    for (name, end) in [("LF", "\n"), ("CRLF", "\r\n")] {
        let line = |n: usize| format!("line {n} of a file that is large enough to be felt{end}");
        let mut content: String = (0..450_000).map(line).collect();
        content.push_str(&format!("    the needle, version 0{end}"));
        content.extend((450_000..900_000).map(line));
        fs::write(work.join("large.txt"), &content).unwrap();
        let registry = Registry::default();
        register_all(&registry, BashOptions::default(), &Feedback::default());
        let workspace = Arc::new(Workspace::new(&work).unwrap());
        let options = PipelineOptions::new(folder.path().join("outputs"));
        let pipeline = Pipeline::new(registry, workspace, Arc::new(Open), options);
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let (mut exact, mut tolerant, mut copies) = (Vec::new(), Vec::new(), Vec::new());
        // One after the other, so that each sees the same machine.
        for n in 0..ROUNDS {
            copies.push(copy(&work.join("large.txt"), &work.join("copy.txt")));
            let next = format!("version {}", 2 * n + 1);
            exact.push(runtime.block_on(edit(&pipeline, &format!("version {}", 2 * n), &next)));
            let (old, new) =
                (format!("the  needle, {next}"), format!("the needle, version {}", 2 * n + 2));
            tolerant.push(runtime.block_on(edit(&pipeline, &old, &new)));
        }
        let (exact, tolerant, cp) = (median(exact), median(tolerant), median(copies));
        println!(
            "{name}, {} MB: cp {cp:.1} ms; edit {exact:.1} ms ({:.2} × cp); edit found by its words {tolerant:.1} ms ({:.2} × cp)",
            content.len() / 1_000_000,
            exact / cp,
            tolerant / cp
        );
    }
}
