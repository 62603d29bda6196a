//! What a step costs us, early and late in a long session, without the bytes that a provider is sent:
//! the model is in memory. Run with `cargo bench -p toolwright-engine --bench turns`.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../tests/it/support.rs"]
#[allow(dead_code)]
mod support;

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use schemars::JsonSchema;
use serde::Deserialize;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use toolwright_engine::{Engine, EngineOptions, PermissionGate, Record};
use toolwright_llm::{Content, FinishReason};
use toolwright_session::Store;
use toolwright_tool::{Pipeline, PipelineOptions, Registry, Workspace, tool_fn};

const STEPS: usize = 2_100;
const WINDOW: usize = 100;

#[derive(Deserialize, JsonSchema)]
struct Number {
    number: u32,
}

fn main() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let starts: Arc<Mutex<Vec<Instant>>> = Arc::default();
    let seen = Arc::clone(&starts);
    let model = support::Scripted::new(move |n, _| {
        seen.lock().unwrap().push(Instant::now());
        if n == STEPS {
            let end = support::finish(FinishReason::Stop);
            return support::all([&support::text(0, "Done.")[..], &[end]].concat());
        }
        let call = support::call(1, "count", &format!("{{\"number\":{n}}}"));
        let end = [support::usage(100), support::finish(FinishReason::ToolCalls)];
        support::all([&support::text(0, "Counting.")[..], &call, &end].concat())
    });
    let folder = tempfile::tempdir().unwrap();
    runtime.block_on(async {
        let registry = Registry::default();
        registry.register(tool_fn("count", "Counts.", |a: Number| {
            std::future::ready(Ok(format!("{} {}", a.number, "some output ".repeat(40))))
        }));
        let workspace = Arc::new(Workspace::new(folder.path()).unwrap());
        let gate = Arc::new(PermissionGate::new(support::allow_all(), None));
        let options = PipelineOptions::new(folder.path().join("outputs"));
        let pipeline = Pipeline::new(registry, workspace, gate, options);
        let (log, session) = Store::new(folder.path()).create(folder.path(), "bench").unwrap();
        let mut options = EngineOptions::new("Be.");
        options.budget.steps = STEPS + 10;
        let record = Record::new(session, log);
        let mut engine = Engine::new(Arc::new(model), pipeline, record, options).await.unwrap();
        let (sender, mut events) = mpsc::channel(1024);
        let cancel = CancellationToken::new();
        let prompt = engine.prompt(vec![Content::text("go")], &cancel, &sender);
        let drain = async { while events.recv().await.is_some() {} };
        tokio::select! {
            _ = prompt => {}
            () = drain => {}
        }
    });
    let starts = starts.lock().unwrap();
    let took: Vec<Duration> = starts.windows(2).map(|pair| pair[1] - pair[0]).collect();
    // The median of a window: this machine may be busy with other things.
    let at = |step: usize| {
        let mut window = took[step - WINDOW / 2..step + WINDOW / 2].to_vec();
        window.sort();
        window[window.len() / 2].as_secs_f64() * 1e6
    };
    let early = at(50);
    println!("step       own time   of step 50");
    for step in [50, 250, 500, 1_000, 2_000] {
        println!("{step:5}   {:8.0} µs   {:.2}", at(step), at(step) / early);
    }
}
