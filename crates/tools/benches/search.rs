//! Searching and reading beside the tools that people know, in one run on the same files:
//! grep and glob over 30,000 files beside `rg`, lines in the middle of a large file beside `sed`.
//!
//!     cargo bench -p toolwright-tools --bench search
//!
//! `TW_BENCH_FILE_BYTES` makes the large file smaller than its usual gigabyte.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fs;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use toolwright_permission::Request;
use toolwright_tool::{
    CallRequest, Decision, Gate, Pipeline, PipelineOptions, Question, Registry, Update, Workspace,
};
use toolwright_tools::{BashOptions, Feedback, register_all};

const FILES: usize = 30_000;
const RUNS: usize = 9;

struct Open;

impl Gate for Open {
    fn decide<'a>(&'a self, _: &'a Question) -> BoxFuture<'a, Decision> {
        std::future::ready(Decision::Allow { why: "bench".into() }).boxed()
    }

    fn allows_silently(&self, _: &[Request]) -> bool {
        true
    }
}

fn main() {
    let folder = tempfile::tempdir().unwrap();
    let tree = folder.path().join("tree");
    make_tree(&tree);
    let large = tree.join("large.txt");
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let pipeline = pipeline(folder.path(), &tree);
    let call = |tool: &str, arguments: Value| runtime.block_on(call(&pipeline, tool, arguments));
    let threads = std::thread::available_parallelism().map_or(2, usize::from).to_string();
    let rg = |arguments: &[&str]| {
        let mut command = Command::new("rg");
        command.args(["--no-config", "--threads", &threads]).args(arguments).current_dir(&tree);
        command
    };
    println!("{FILES} files, {threads} threads, the fastest of {RUNS} runs each\n");
    let cases = [
        (
            "grep, few matches",
            "grep",
            json!({"pattern": "needle_[0-9]+"}),
            vec!["--hidden", "-n", "needle_[0-9]+", "."],
        ),
        (
            "grep, no match",
            "grep",
            json!({"pattern": "nowhere to be found"}),
            vec!["--hidden", "-n", "nowhere to be found", "."],
        ),
        (
            "grep, a match in each file",
            "grep",
            json!({"pattern": "fn function_0"}),
            vec!["--hidden", "-n", "fn function_0", "."],
        ),
        (
            "grep, counted",
            "grep",
            json!({"pattern": "let value", "output": "count"}),
            vec!["--hidden", "-c", "let value", "."],
        ),
        (
            "glob, a third of the files",
            "glob",
            json!({"pattern": "**/*.rs"}),
            vec!["--files", "-g", "**/*.rs"],
        ),
        (
            "glob, one file",
            "glob",
            json!({"pattern": "file_12345.*"}),
            vec!["--files", "-g", "file_12345.*"],
        ),
        (
            "glob, all files",
            "glob",
            json!({"pattern": "**/file_*"}),
            vec!["--files", "-g", "**/file_*"],
        ),
    ];
    for (name, tool, arguments, theirs) in cases {
        compare(name, "rg", || call(tool, arguments.clone()), || rg(&theirs));
    }
    make_large(&large);
    let read = json!({"filePath": "large.txt", "offset": 1_000_000, "limit": 101});
    compare(
        "read, lines 1,000,000-1,000,100",
        "sed",
        || call("read", read.clone()),
        || {
            let mut command = Command::new("sed");
            command.args(["-n", "1000000,1000100p;1000100q"]).arg(&large);
            command
        },
    );
}

/// Turn by turn, so that what else the machine does meets both alike.
fn compare(name: &str, other: &str, ours: impl Fn() -> usize, theirs: impl Fn() -> Command) {
    let time = |work: &dyn Fn()| {
        let started = Instant::now();
        work();
        started.elapsed()
    };
    let run = || {
        let output = theirs().stdin(Stdio::null()).output();
        output.unwrap_or_else(|e| panic!("{other} is needed beside this: {e}"));
    };
    let (mut best_ours, mut best_theirs) = (Duration::MAX, Duration::MAX);
    let before = ticks();
    for _ in 0..RUNS {
        best_ours = best_ours.min(time(&|| assert!(ours() > 0)));
        best_theirs = best_theirs.min(time(&run));
    }
    let ratio = best_ours.as_secs_f64() / best_theirs.as_secs_f64();
    let milliseconds = |d: Duration| d.as_secs_f64() * 1000.0;
    let after = ticks();
    let work = (after.0 - before.0) as f64 / (after.1 - before.1).max(1) as f64;
    println!(
        "{name:<34} {:>8.1} ms   {other} {:>8.1} ms   {ratio:.2} x   {work:.2} x the processor time",
        milliseconds(best_ours),
        milliseconds(best_theirs)
    );
}

/// Processor time of this process and of its ended children, in the kernel's ticks. Tells more than the
/// clock where the machine has other work.
fn ticks() -> (u64, u64) {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit_once(") ").map_or("", |(_, rest)| rest).split(' ');
    let times: Vec<u64> = fields.skip(11).take(4).filter_map(|f| f.parse().ok()).collect();
    match times[..] {
        [user, system, children_user, children_system] => {
            (user + system, children_user + children_system)
        }
        _ => (0, 0),
    }
}

fn pipeline(folder: &Path, tree: &Path) -> Pipeline {
    let registry = Registry::default();
    register_all(&registry, BashOptions::default(), &Feedback::default());
    let workspace = Arc::new(Workspace::new(tree).unwrap());
    let mut options = PipelineOptions::new(folder.join("outputs"));
    options.cache = false;
    Pipeline::new(registry, workspace, Arc::new(Open), options)
}

async fn call(pipeline: &Pipeline, tool: &str, arguments: Value) -> usize {
    let (sender, mut updates) = mpsc::channel(8);
    let call = CallRequest {
        id: String::new(),
        name: tool.into(),
        arguments: arguments.to_string(),
        cut: false,
    };
    let running = pipeline.run_calls(vec![call], CancellationToken::new(), sender);
    let watching = async {
        let mut length = 0;
        while let Some(update) = updates.recv().await {
            match update {
                Update::Starting { go, .. } => go.send(()).unwrap(),
                Update::Settled { outcome, .. } => length = outcome.output.len(),
                Update::Progress { .. } | Update::Changed(_) => {}
                Update::Fatal { message } => panic!("{message}"),
            }
        }
        length
    };
    tokio::join!(running, watching).1
}

/// Like a large project: folders three deep, three kinds of files, some of them with a match.
fn make_tree(tree: &Path) {
    fs::create_dir_all(tree).unwrap();
    fs::write(tree.join(".gitignore"), "ignored/\n*.tmp\n").unwrap();
    for n in 0..FILES {
        let folder = tree.join(format!("crate_{}/module_{}", n / 1000, n / 50 % 20));
        if n % 50 == 0 {
            fs::create_dir_all(&folder).unwrap();
        }
        let extension = ["rs", "ts", "md"][n % 3];
        let mut text = String::new();
        for line in 0..40 {
            text.push_str(&format!("pub fn function_{line}() {{ let value = {}; }}\n", n * line));
        }
        if n % 1000 == 0 {
            text.push_str(&format!("// needle_{n}\n"));
        }
        fs::write(folder.join(format!("file_{n}.{extension}")), text).unwrap();
    }
}

fn make_large(path: &Path) {
    let bytes = std::env::var("TW_BENCH_FILE_BYTES").ok().and_then(|b| b.parse().ok());
    let bytes: u64 = bytes.unwrap_or(1 << 30);
    let mut file = BufWriter::with_capacity(1 << 20, fs::File::create(path).unwrap());
    let (mut written, mut number) = (0, 0_u64);
    while written < bytes {
        let line = format!("{number:012} the quick brown fox jumps over the lazy dog, once more\n");
        file.write_all(line.as_bytes()).unwrap();
        written += line.len() as u64;
        number += 1;
    }
    file.flush().unwrap();
}
