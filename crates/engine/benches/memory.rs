//! Memory of a long session: resident after 100 steps and after 10,000, with a conversation that is
//! shortened again and again, and with one that is never. Run with
//! `cargo bench -p toolwright-engine --bench memory`.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../tests/it/support.rs"]
#[allow(dead_code)]
mod support;

use std::sync::{Arc, Mutex};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use toolwright_engine::{Engine, EngineOptions, Journal, PermissionGate, Record};
use toolwright_llm::{Content, Event as ModelEvent, FinishReason, Model, Origin, Request};
use toolwright_session::{Entry, Log, LogError, Mark, Store};
use toolwright_tool::{Pipeline, PipelineOptions, Registry, Workspace, tool_fn};

const EARLY: usize = 100;
const LATE: usize = 10_000;
const WINDOW_TOKENS: u64 = 40_000;

/// Which of the two this process is.
const WINDOW: &str = "TOOLWRIGHT_BENCH_WINDOW";

#[derive(Deserialize, JsonSchema)]
struct Number {
    number: u32,
}

type Answering = Box<dyn Fn(&Request) -> BoxStream<'static, ModelEvent> + Send + Sync>;

/// A model that keeps nothing of what it is asked.
struct Forgetful {
    origin: Origin,
    answer: Answering,
}

impl Forgetful {
    fn new(
        answer: impl Fn(&Request) -> BoxStream<'static, ModelEvent> + Send + Sync + 'static,
    ) -> Self {
        let origin = Origin { provider: "bench".into(), model: "m".into() };
        Self { origin, answer: Box::new(answer) }
    }
}

impl Model for Forgetful {
    fn origin(&self) -> &Origin {
        &self.origin
    }

    fn stream(&self, request: Request) -> BoxStream<'static, ModelEvent> {
        (self.answer)(&request)
    }
}

/// The file as it is, without waiting for the disk at every step.
struct Unsynced(Log);

impl Journal for Unsynced {
    fn append(&mut self, entry: &Entry) -> Result<Mark, LogError> {
        self.0.append(entry)
    }

    fn sync(&mut self) -> BoxFuture<'static, Result<(), LogError>> {
        std::future::ready(Ok(())).boxed()
    }
}

fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// A process for each: what one leaves behind must not count for the other.
fn main() {
    match std::env::var(WINDOW).ok().map(|window| window.parse().ok()) {
        Some(window) => work(window),
        None => {
            for (what, window) in [("shortened", WINDOW_TOKENS.to_string()), ("whole", "-".into())]
            {
                println!("the conversation is {what}:");
                let program = std::env::current_exe().unwrap();
                let status = std::process::Command::new(program).env(WINDOW, window).status();
                assert!(status.unwrap().success());
            }
        }
    }
}

fn work(window: Option<u64>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let seen: Arc<Mutex<Vec<(usize, u64, usize)>>> = Arc::default();
    let notes = Arc::clone(&seen);
    let steps = Mutex::new(0);
    let model = Forgetful::new(move |request| {
        if request.tools.is_empty() {
            let end = support::finish(FinishReason::Stop);
            return support::all([&support::text(0, "Notes on the work.")[..], &[end]].concat());
        }
        let mut step = steps.lock().unwrap();
        *step += 1;
        let is_noted = [EARLY, 1_000, LATE].contains(&*step);
        // A conversation that is never shortened is only measured where it is noted.
        let measured = is_noted || window.is_some();
        let turns = request.turns.iter().filter(|_| measured);
        let bytes: usize = turns.map(|turn| format!("{turn:?}").len()).sum();
        if is_noted {
            notes.lock().unwrap().push((*step, resident_kib(), bytes / 1024));
        }
        if *step == LATE {
            let end = support::finish(FinishReason::Stop);
            return support::all([&support::text(0, "Done.")[..], &[end]].concat());
        }
        let call = support::call(1, "count", &format!("{{\"number\":{step}}}"));
        let tokens = bytes as u64 / 4;
        let end = [support::usage(tokens), support::finish(FinishReason::ToolCalls)];
        support::all([&support::text(0, "Counting.")[..], &call, &end].concat())
    });
    let folder = tempfile::tempdir().unwrap();
    runtime.block_on(async {
        let registry = Registry::default();
        registry.register(tool_fn("count", "Counts.", |a: Number| {
            std::future::ready(Ok(format!("{} {}", a.number, "some output ".repeat(160))))
        }));
        let workspace = Arc::new(Workspace::new(folder.path()).unwrap());
        let gate = Arc::new(PermissionGate::new(support::allow_all(), None));
        let options = PipelineOptions::new(folder.path().join("outputs"));
        let pipeline = Pipeline::new(registry, workspace, gate, options);
        let (log, session) = Store::new(folder.path()).create(folder.path(), "bench").unwrap();
        let mut options = EngineOptions::new("Be.");
        options.budget.steps = LATE + 10;
        options.room.window = window;
        let record = Record::new(session, Unsynced(log));
        let mut engine = Engine::new(Arc::new(model), pipeline, record, options).await.unwrap();
        let (sender, mut events) = mpsc::channel(1024);
        let cancel = CancellationToken::new();
        let prompt = engine.prompt(vec![Content::text("go")], &cancel, &sender);
        let drain = async { while events.recv().await.is_some() {} };
        tokio::select! {
            _ = prompt => {}
            () = drain => {}
        }
        println!("items: {}", engine.session().items().len());
    });
    let seen = seen.lock().unwrap();
    let early = seen[0].1;
    println!("step    resident   of step {EARLY}   conversation");
    for (step, kib, conversation) in seen.iter() {
        let ratio = *kib as f64 / early as f64;
        println!("{step:6} {kib:6} KiB   {ratio:.2}        {conversation} KiB");
    }
    let (_, late, conversation) = seen[seen.len() - 1];
    let allowed = 2 * early + conversation as u64;
    println!(
        "limit: 2 × the early one and the conversation: {:.2} of it",
        late as f64 / allowed as f64
    );
}
