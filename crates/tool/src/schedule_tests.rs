//! The pipeline with tools of the tests' own: order, waiting, panics, cancellation.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use tokio::sync::{Notify, mpsc};
use tokio_util::sync::CancellationToken;
use toolwright_permission::Request;
use toolwright_session::{Ending, Outcome};

use crate::{
    Access, CallRequest, Decision, DeniedBy, Extent, Gate, Pipeline, PipelineOptions, Plan,
    PlanContext, Planned, Question, Registry, RunContext, Tool, ToolError, ToolOutput, Update,
    Workspace,
};

#[derive(Deserialize, JsonSchema)]
struct Step {
    name: String,
    #[serde(default)]
    reads: Vec<String>,
    #[serde(default)]
    writes: Vec<String>,
    #[serde(default)]
    shell: bool,
    /// What it does when it runs.
    #[serde(default)]
    act: String,
}

/// Declares what it is told to and logs its start and end.
#[derive(Default)]
struct Stage {
    log: Arc<Mutex<Vec<String>>>,
    gate: Arc<Notify>,
}

impl Tool for Stage {
    type Arguments = Step;
    type Prepared = Step;

    fn name(&self) -> &str {
        "stage"
    }

    fn description(&self) -> &str {
        "for tests"
    }

    async fn plan(&self, step: Step, context: &PlanContext) -> Planned<Step> {
        let path = |name: &String| context.workspace.resolve(name);
        let mut accesses: Vec<Access> = step
            .reads
            .iter()
            .map(|name| Access::Read { path: path(name), extent: Extent::Single })
            .chain(
                step.writes
                    .iter()
                    .map(|name| Access::Write { path: path(name), diff: String::new() }),
            )
            .collect();
        if step.shell {
            let directory = context.workspace.directory().to_owned();
            accesses.push(Access::Execute { command: "x".into(), directory });
        }
        self.log.lock().unwrap().push(format!("plan {}", step.name));
        let plan = Plan::new(step.name.clone(), accesses);
        if step.act == "panic in plan" {
            panic!("plan went wrong");
        }
        Planned::ready(plan, step)
    }

    async fn run(&self, step: Step, context: RunContext) -> Result<ToolOutput, ToolError> {
        self.log.lock().unwrap().push(format!("start {}", step.name));
        match step.act.as_str() {
            "panic" => panic!("boom"),
            "wait" => self.gate.notified().await,
            "release" => self.gate.notify_one(),
            "hang" => context.cancel.cancelled().await,
            "ignore cancel" => std::future::pending().await,
            "sneak" => context.files.write(&PathBuf::from("/tmp/undeclared"), b"x")?,
            "fail" => return Err(ToolError::for_model("no luck")),
            _ => {}
        }
        self.log.lock().unwrap().push(format!("end {}", step.name));
        let interrupted = context.cancel.is_cancelled();
        Ok(ToolOutput { interrupted, ..ToolOutput::text(step.name) })
    }
}

struct Open;

impl Gate for Open {
    fn decide<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Decision> {
        let decision = if question.summary == "forbidden" {
            Decision::Deny { by: DeniedBy::Rule, message: "no".into() }
        } else {
            Decision::Allow { why: "test".into() }
        };
        std::future::ready(decision).boxed()
    }

    fn allows_silently(&self, _: &[Request]) -> bool {
        true
    }
}

struct Bench {
    pipeline: Pipeline,
    log: Arc<Mutex<Vec<String>>>,
    cancel: CancellationToken,
    _folder: tempfile::TempDir,
}

impl Bench {
    fn new(serial: bool) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let stage = Stage::default();
        let log = Arc::clone(&stage.log);
        let registry = Registry::default();
        registry.register(stage);
        let mut options = PipelineOptions::new(folder.path().join("outputs"));
        options.serial = serial;
        let workspace = Arc::new(Workspace::new(folder.path()).unwrap());
        let pipeline = Pipeline::new(registry, workspace, Arc::new(Open), options);
        Self { pipeline, log, cancel: CancellationToken::new(), _folder: folder }
    }

    /// Runs the steps; `at_start` is called for each call that is about to run.
    async fn run(
        &self,
        steps: &[serde_json::Value],
        mut at_start: impl FnMut(usize),
    ) -> Vec<Outcome> {
        let call = |step: &serde_json::Value| CallRequest {
            id: String::new(),
            name: "stage".into(),
            arguments: step.to_string(),
            cut: false,
        };
        let (sender, mut updates) = mpsc::channel(8);
        let running = self.pipeline.run_calls(
            steps.iter().map(call).collect::<Vec<_>>(),
            self.cancel.clone(),
            sender,
        );
        let mut outcomes: Vec<Option<Outcome>> = vec![None; steps.len()];
        let watching = async {
            while let Some(update) = updates.recv().await {
                match update {
                    Update::Starting { position, go, .. } => {
                        at_start(position);
                        go.send(()).unwrap();
                    }
                    Update::Settled { position, outcome } => {
                        assert!(outcomes[position].replace(outcome).is_none(), "settled twice");
                    }
                    Update::Progress { .. } | Update::Changed(_) | Update::Fatal { .. } => {}
                }
            }
        };
        tokio::join!(running, watching);
        outcomes.into_iter().map(|o| o.expect("an outcome for each call")).collect()
    }

    fn log(&self) -> Vec<String> {
        self.log.lock().unwrap().iter().filter(|l| !l.starts_with("plan")).cloned().collect()
    }
}

#[tokio::test]
async fn independent_calls_run_side_by_side() {
    let bench = Bench::new(false);
    // The first can only end if the second runs beside it.
    let steps = [
        json!({"name": "a", "writes": ["a"], "act": "wait"}),
        json!({"name": "b", "writes": ["b"], "act": "release"}),
    ];
    let outcomes = bench.run(&steps, |_| {}).await;
    assert_eq!(outcomes[0].output, "a");
    assert_eq!(outcomes[1].output, "b");
}

#[tokio::test]
async fn a_conflicting_call_waits_and_is_planned_again() {
    for (first, second) in [
        (json!({"name": "a", "writes": ["f"]}), json!({"name": "b", "writes": ["f"]})),
        (json!({"name": "a", "writes": ["f"]}), json!({"name": "b", "reads": ["f"]})),
        (json!({"name": "a", "reads": ["f"]}), json!({"name": "b", "writes": ["f"]})),
        (json!({"name": "a", "writes": ["d/f"]}), json!({"name": "b", "reads": ["d"]})),
        (json!({"name": "a", "shell": true}), json!({"name": "b", "writes": ["f"]})),
        (json!({"name": "a", "writes": ["f"]}), json!({"name": "b", "shell": true})),
    ] {
        let bench = Bench::new(false);
        bench.run(&[first.clone(), second.clone()], |_| {}).await;
        assert_eq!(bench.log(), ["start a", "end a", "start b", "end b"], "{first} {second}");
        let plans = bench.log.lock().unwrap().iter().filter(|l| *l == "plan b").count();
        assert_eq!(plans, 2, "{first} {second}");
    }
}

#[tokio::test]
async fn reads_and_shells_do_not_wait_for_each_other() {
    for (first, second) in [
        (
            json!({"name": "a", "reads": ["f"], "act": "wait"}),
            json!({"name": "b", "reads": ["f"], "act": "release"}),
        ),
        (
            json!({"name": "a", "shell": true, "act": "wait"}),
            json!({"name": "b", "shell": true, "act": "release"}),
        ),
        (
            json!({"name": "a", "shell": true, "act": "wait"}),
            json!({"name": "b", "reads": ["f"], "act": "release"}),
        ),
    ] {
        let outcomes = Bench::new(false).run(&[first, second], |_| {}).await;
        assert!(outcomes.iter().all(|o| o.ending == Ending::Completed));
    }
}

#[tokio::test]
async fn serial_mode_keeps_the_order_of_the_calls() {
    let bench = Bench::new(true);
    let steps: Vec<_> = (0..5).map(|n| json!({"name": n.to_string(), "reads": ["x"]})).collect();
    bench.run(&steps, |_| {}).await;
    let starts: Vec<_> = bench.log().into_iter().filter(|l| l.starts_with("start")).collect();
    assert_eq!(starts, ["start 0", "start 1", "start 2", "start 3", "start 4"]);
}

#[tokio::test]
async fn a_panic_in_a_tool_is_a_result_and_the_others_go_on() {
    let steps = [
        json!({"name": "a", "act": "panic"}),
        json!({"name": "b", "act": "panic in plan"}),
        json!({"name": "c"}),
        json!({"name": "d", "act": "fail"}),
    ];
    let outcomes = Bench::new(false).run(&steps, |_| {}).await;
    assert!(outcomes[0].output.contains("crashed: boom"), "{}", outcomes[0].output);
    assert!(outcomes[1].output.contains("plan went wrong"), "{}", outcomes[1].output);
    assert_eq!(outcomes[2].ending, Ending::Completed);
    assert_eq!((outcomes[3].ending, outcomes[3].output.as_str()), (Ending::Failed, "no luck"));
}

#[tokio::test]
async fn what_was_not_declared_cannot_be_touched() {
    let outcomes = Bench::new(false).run(&[json!({"name": "a", "act": "sneak"})], |_| {}).await;
    assert_eq!(outcomes[0].ending, Ending::Failed);
    assert!(outcomes[0].output.contains("did not declare"), "{}", outcomes[0].output);
}

#[tokio::test]
async fn cancelling_ends_what_runs_and_starts_nothing_more() {
    let bench = Bench::new(false);
    let cancel = bench.cancel.clone();
    let steps = [
        json!({"name": "a", "writes": ["f"], "act": "hang"}),
        json!({"name": "b", "writes": ["f"]}),
        json!({"name": "c", "act": "ignore cancel"}),
    ];
    let mut started = 0;
    let outcomes = bench
        .run(&steps, |_| {
            started += 1;
            if started == 2 {
                cancel.cancel();
            }
        })
        .await;
    let endings: Vec<_> = outcomes.iter().map(|o| o.ending).collect();
    assert!(matches!(endings[0], Ending::Interrupted | Ending::Skipped), "{endings:?}");
    assert_eq!(endings[1], Ending::Skipped);
    assert!(matches!(endings[2], Ending::Interrupted | Ending::Skipped), "{endings:?}");
    assert!(!bench.log().contains(&"start b".to_owned()));
}

#[tokio::test]
async fn a_denied_call_never_starts() {
    let bench = Bench::new(false);
    let outcomes = bench.run(&[json!({"name": "forbidden"})], |_| panic!("started")).await;
    assert_eq!(outcomes[0].ending, Ending::Denied);
    assert_eq!(outcomes[0].details["denied_by"], "rule");
    assert!(bench.log().is_empty());
}

#[tokio::test]
async fn a_hundred_and_twenty_eight_calls_each_get_one_result() {
    let steps: Vec<_> = (0..128)
        .map(|n| json!({"name": n.to_string(), "writes": [format!("f{}", n % 7)]}))
        .collect();
    let outcomes = Bench::new(false).run(&steps, |_| {}).await;
    let names: Vec<_> = outcomes.iter().map(|o| o.output.clone()).collect();
    assert_eq!(names, (0..128).map(|n| n.to_string()).collect::<Vec<_>>());
}
