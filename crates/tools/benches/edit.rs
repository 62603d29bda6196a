//! What an edit in the middle of a 50 MB file costs, through the whole pipeline, beside `cp` of the
//! same file in the same folder. Neither waits for the disk (no `fsync`); a rename over an existing file
//! makes some file systems write at once, which `cp` alone does not, so that is shown too.
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
use toolwright_session::images::{Images, Keeper, Quota, Watch};
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

async fn edit(pipeline: &Pipeline, file: &str, old: &str, new: &str) -> Duration {
    let arguments = json!({"filePath": file, "oldString": old, "newString": new});
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

/// A copy that takes the place of a file: what an edit does, without looking for anything.
fn replace(from: &Path, to: &Path) -> Duration {
    let beside = to.with_extension("new");
    let started = Instant::now();
    assert!(Command::new("cp").arg(from).arg(&beside).status().unwrap().success());
    fs::rename(&beside, to).unwrap();
    started.elapsed()
}

fn median(mut times: Vec<Duration>) -> f64 {
    times.sort();
    times[times.len() / 2].as_secs_f64() * 1e3
}

/// Allows everything in this folder; with before-images where somebody keeps them.
fn pipeline(folder: &Path, work: &Path, keeper: Option<Keeper>) -> Pipeline {
    let registry = Registry::default();
    register_all(&registry, BashOptions::default(), &Feedback::default());
    let workspace = Arc::new(Workspace::new(work).unwrap());
    let options = PipelineOptions { keeper, ..PipelineOptions::new(folder.join("outputs")) };
    Pipeline::new(registry, workspace, Arc::new(Open), options)
}

fn main() {
    let folder = tempfile::tempdir().unwrap();
    let work = folder.path().join("w");
    fs::create_dir(&work).unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    for (name, end) in [("LF", "\n"), ("CRLF", "\r\n")] {
        let line = |n: usize| format!("line {n} of a file that is large enough to be felt{end}");
        let mut content: String = (0..450_000).map(line).collect();
        content.push_str(&format!("    the needle, version 0{end}"));
        content.extend((450_000..900_000).map(line));
        let large = work.join("large.txt");
        // Each session changes its own file: another's changes would have to be read first.
        for name in ["large.txt", "kept.txt"] {
            fs::write(work.join(name), &content).unwrap();
        }
        let (data, images) = (folder.path().join("data"), folder.path().join("images"));
        let images = Images::new(images, &data, Quota::of(None, None));
        let watch = Watch::new(&work, images, &data, folder.path());
        let plain = pipeline(folder.path(), &work, None);
        let undoable = pipeline(folder.path(), &work, Some(Keeper::new(watch, None)));
        let mut times: [Vec<Duration>; 5] = Default::default();
        let (mut version, mut kept) = (0, 0);
        // One after the other, so that each sees the same machine. A copy comes before each edit: a file
        // that was written a moment ago is read more carefully.
        for _ in 0..ROUNDS {
            let mut next = |blanks: &str| {
                version += 1;
                let old = format!("the{blanks}needle, version {}", version - 1);
                (old, format!("the needle, version {version}"))
            };
            times[0].push(copy(&large, &work.join("copy.txt")));
            let (old, new) = next(" ");
            times[2].push(runtime.block_on(edit(&plain, "large.txt", &old, &new)));
            times[1].push(replace(&large, &work.join("old.txt")));
            let (old, new) = next("  ");
            times[3].push(runtime.block_on(edit(&plain, "large.txt", &old, &new)));
            times[0].push(copy(&large, &work.join("copy.txt")));
            let (old, new) = (format!("version {kept}"), format!("version {}", kept + 1));
            times[4].push(runtime.block_on(edit(&undoable, "kept.txt", &old, &new)));
            kept += 1;
        }
        let [cp, moved, exact, tolerant, undoable] = times.map(median);
        println!("{name}, {} MB: cp {cp:.1} ms", content.len() / 1_000_000);
        let rows = [
            ("cp and rename over a file", moved),
            ("edit, exact", exact),
            ("edit, found by its words", tolerant),
            ("edit, exact, kept for undo", undoable),
        ];
        for (what, took) in rows {
            println!("  {what:<28} {took:>7.1} ms  {:.2} x cp", took / cp);
        }
    }
}
