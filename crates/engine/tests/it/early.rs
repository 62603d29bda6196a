//! Calls that only read begin while the model is still talking; others wait for the whole answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use schemars::JsonSchema;
use serde::Deserialize;
use tokio::sync::{Notify, mpsc};
use tokio_util::sync::CancellationToken;
use toolwright_llm::{Content, FinishReason};
use toolwright_session::{Entry, TurnStatus};
use toolwright_tool::{
    Access, Extent, Plan, PlanContext, Planned, Registry, RunContext, Tool, ToolError, ToolOutput,
};

use crate::support::{Scripted, after, all, bench, call, finish, text};

/// Reads or changes something, and says that it ran.
struct Probe {
    name: &'static str,
    changes: bool,
    ran: Arc<Notify>,
    has_run: Arc<AtomicBool>,
    /// Whether it was told that the conversation does not hold what it gave.
    has_forgotten: Arc<AtomicBool>,
}

#[derive(Deserialize, JsonSchema)]
struct Nothing {}

impl Tool for Probe {
    type Arguments = Nothing;
    type Prepared = ();

    fn name(&self) -> &str {
        self.name
    }

    fn description(&self) -> &str {
        "for tests"
    }

    fn forget(&self) {
        self.has_forgotten.store(true, Ordering::SeqCst);
    }

    async fn plan(&self, _: Nothing, context: &PlanContext) -> Planned<()> {
        let path = context.workspace.resolve("some-file");
        let access = if self.changes {
            Access::Write { path, diff: String::new() }
        } else {
            Access::Read { path, extent: Extent::Single }
        };
        Planned::ready(Plan::new(self.name, vec![access]), ())
    }

    async fn run(&self, (): (), _: RunContext) -> Result<ToolOutput, ToolError> {
        self.has_run.store(true, Ordering::SeqCst);
        self.ran.notify_one();
        Ok(ToolOutput::text(format!("{} ran", self.name)))
    }
}

fn probe(name: &'static str, changes: bool) -> (Probe, Arc<Notify>, Arc<AtomicBool>) {
    let (ran, has_run) = (Arc::new(Notify::new()), Arc::new(AtomicBool::new(false)));
    let (seen, has_forgotten) = (Arc::clone(&has_run), Arc::default());
    let tool = Probe { name, changes, ran: Arc::clone(&ran), has_run: seen, has_forgotten };
    (tool, ran, has_run)
}

#[tokio::test]
async fn a_call_that_only_reads_runs_while_the_model_still_talks() {
    let (reader, ran, _) = probe("look", false);
    let registry = Registry::default();
    registry.register(reader);
    // The model ends its answer only once the tool has run: without an early start it never would.
    let model = Scripted::new(move |n, _| match n {
        0 => {
            let end = [&text(1, "and so on")[..], &[finish(FinishReason::ToolCalls)]].concat();
            after(call(0, "look", "{}").to_vec(), Arc::clone(&ran), end)
        }
        _ => all([&text(0, "Done.")[..], &[finish(FinishReason::Stop)]].concat()),
    });
    let mut bench = bench(model, registry).await;
    let (sender, _events) = mpsc::channel(1024);
    let end =
        bench.engine.prompt(vec![Content::text("go")], &CancellationToken::new(), &sender).await;
    assert_eq!(end.status, TurnStatus::Done);
    // Nothing is told of the call before the answer that holds it is on record.
    let journal = bench.journal.0.lock().unwrap();
    let kinds: Vec<&str> = journal
        .iter()
        .filter_map(|entry| match entry {
            Entry::Reply { .. } => Some("reply"),
            Entry::CallStarted { .. } => Some("started"),
            Entry::CallSettled { .. } => Some("settled"),
            _ => None,
        })
        .collect();
    assert_eq!(kinds, ["reply", "started", "settled", "reply"]);
}

#[tokio::test]
async fn a_call_that_changes_something_and_those_behind_it_wait_for_the_whole_answer() {
    let (writer, _, wrote) = probe("change", true);
    let (reader, _, looked) = probe("look", false);
    let registry = Registry::default();
    registry.register(writer).register(reader);
    let (wrote_seen, looked_seen) = (Arc::clone(&wrote), Arc::clone(&looked));
    let model = Scripted::new(move |n, _| match n {
        0 => {
            let (wrote, looked) = (Arc::clone(&wrote_seen), Arc::clone(&looked_seen));
            let calls = [call(0, "change", "{}"), call(1, "look", "{}")].concat();
            let pause = futures_util::stream::once(async move {
                // Everything that could begin gets the time to begin.
                for _ in 0..100 {
                    tokio::task::yield_now().await;
                }
                assert!(!wrote.load(Ordering::SeqCst) && !looked.load(Ordering::SeqCst));
                finish(FinishReason::ToolCalls)
            });
            use futures_util::StreamExt;
            futures_util::stream::iter(calls).chain(pause).boxed()
        }
        _ => all([&text(0, "Done.")[..], &[finish(FinishReason::Stop)]].concat()),
    });
    let mut bench = bench(model, registry).await;
    let (sender, _events) = mpsc::channel(1024);
    let end =
        bench.engine.prompt(vec![Content::text("go")], &CancellationToken::new(), &sender).await;
    assert_eq!(end.status, TurnStatus::Done);
    assert!(wrote.load(Ordering::SeqCst) && looked.load(Ordering::SeqCst));
}

#[tokio::test]
async fn what_a_call_gave_to_an_answer_that_never_became_whole_counts_as_not_given() {
    let (reader, ran, _) = probe("look", false);
    let forgotten = Arc::clone(&reader.has_forgotten);
    let registry = Registry::default();
    registry.register(reader);
    // The stream breaks off once the tool has run.
    let model = Scripted::new(move |_, _| {
        after(call(0, "look", "{}").to_vec(), Arc::clone(&ran), Vec::new())
    });
    let mut bench = bench(model, registry).await;
    let (sender, _events) = mpsc::channel(1024);
    let end =
        bench.engine.prompt(vec![Content::text("go")], &CancellationToken::new(), &sender).await;
    assert_eq!(end.status, TurnStatus::Failed);
    assert!(forgotten.load(Ordering::SeqCst));
}
