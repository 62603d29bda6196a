//! The stages of one call, and the door at which it is decided.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use toolwright_permission::Request;
use toolwright_session::{Ending, Outcome};

use crate::access::{Access, Extent, Plan};
use crate::fit::{OUTPUT_CAP_BYTES, Outputs, fit};
use crate::mask::Secrets;
use crate::registry::{Registered, Registry};
use crate::repair;
use crate::tool::{
    ErasedPlan, MayRead, PlanContext, Progress, RunContext, RunOnce, ToolError, ToolOutput,
};
use crate::validate::invalid_arguments;
use crate::workspace::{Files, Workspace};

/// How long a call may take when nobody says otherwise.
const DEFAULT_DEADLINE: Duration = Duration::from_secs(120);

/// How long a tool may look at its arguments. Planning only reads.
const PLAN_LIMIT: Duration = Duration::from_secs(30);

/// How long a cancelled tool may take to hand over what it has.
const CANCEL_GRACE: Duration = Duration::from_millis(500);

/// A call as the model made it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallRequest {
    pub name: String,
    pub arguments: String,
    /// The answer was cut off at the token limit: its end may be missing.
    pub cut: bool,
}

/// What whoever decides needs to know about a call.
#[derive(Debug, Clone)]
pub struct Question {
    pub position: usize,
    pub tool: String,
    pub summary: String,
    pub requests: Vec<Request>,
    /// The diff or the command.
    pub preview: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    Allow { why: String },
    Deny { by: DeniedBy, message: String },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeniedBy {
    Rule,
    Person,
    /// It would have been asked, and nobody was there.
    Nobody,
}

impl DeniedBy {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Rule => "rule",
            Self::Person => "person",
            Self::Nobody => "nobody",
        }
    }
}

/// Decides about calls before they touch anything.
pub trait Gate: Send + Sync {
    fn decide<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Decision>;
    /// Whether all of this is allowed without asking anybody.
    fn allows_silently(&self, requests: &[Request]) -> bool;
}

/// What happens to calls while they run.
#[derive(Debug)]
pub enum Update {
    /// Allowed and about to run. It waits until `go` says yes: whoever records this first has it
    /// on disk before the effect.
    Starting {
        position: usize,
        tool: String,
        summary: String,
        effects: bool,
        decision: String,
        go: oneshot::Sender<()>,
    },
    Progress {
        position: usize,
        text: String,
    },
    /// The call's end. Exactly one per call.
    Settled {
        position: usize,
        outcome: Outcome,
    },
    /// A fault that is not the model's: the turn cannot go on.
    Fatal {
        message: String,
    },
}

#[derive(Debug, Clone)]
pub struct PipelineOptions {
    /// Where large outputs go.
    pub outputs: PathBuf,
    pub deadline: Duration,
    /// Calls of one message run one after the other.
    pub serial: bool,
    /// What no outcome may show.
    pub secrets: Secrets,
}

impl PipelineOptions {
    pub fn new(outputs: impl Into<PathBuf>) -> Self {
        let secrets = Secrets::default();
        Self { outputs: outputs.into(), deadline: DEFAULT_DEADLINE, serial: false, secrets }
    }
}

/// The stages, over a registry and a gate.
#[derive(Clone)]
pub struct Pipeline {
    pub(crate) registry: Arc<Registry>,
    pub(crate) gate: Arc<dyn Gate>,
    workspace: Arc<Workspace>,
    plan_context: Arc<PlanContext>,
    pub(crate) outputs: Outputs,
    deadline: Duration,
    pub(crate) serial: bool,
}

/// A call that has been read and planned.
pub(crate) struct Ready {
    pub(crate) tool: String,
    pub(crate) repairs: Vec<String>,
    pub(crate) plan: Plan,
    pub(crate) run: Result<RunOnce, ToolError>,
}

/// A call that has been read: what is needed to plan it, again if need be.
#[derive(Clone)]
pub(crate) struct Readable {
    entry: Arc<Registered>,
    arguments: Value,
    repairs: Vec<String>,
}

impl Pipeline {
    pub fn new(
        registry: Arc<Registry>,
        workspace: Arc<Workspace>,
        gate: Arc<dyn Gate>,
        options: PipelineOptions,
    ) -> Self {
        let plan_context = Arc::new(PlanContext { workspace: Arc::clone(&workspace) });
        let PipelineOptions { outputs, deadline, serial, secrets } = options;
        let outputs = Outputs::new(outputs).masking(secrets);
        Self { registry, gate, workspace, plan_context, outputs, deadline, serial }
    }

    pub fn registry(&self) -> &Arc<Registry> {
        &self.registry
    }

    /// Repair and validation. What stays wrong becomes the call's outcome.
    pub(crate) fn read(&self, call: &CallRequest) -> Result<Readable, Outcome> {
        let Some(name) = repair::tool_name(&call.name, &self.registry) else {
            let known = repair::known_names(&self.registry);
            let text = if call.name.trim().is_empty() {
                format!("The call names no tool. The tools are: {known}.")
            } else {
                format!("There is no tool named {:?}. The tools are: {known}.", call.name)
            };
            return Err(failed(&call.name, text));
        };
        let Some(entry) = self.registry.get(&name) else {
            return Err(failed(&name, format!("There is no tool named {name:?}.")));
        };
        let mut repairs = Vec::new();
        if name != call.name {
            repairs.push(format!("took {:?} as {name}", call.name));
        }
        let read = repair::arguments(&call.arguments, call.cut).map_err(|repair::Unreadable(why)| {
            let detail = if call.cut {
                format!("the arguments are incomplete, because the answer reached its token limit ({why})")
            } else {
                format!("the arguments are not a JSON object ({why})")
            };
            failed(&name, invalid_arguments(&name, &detail, &call.arguments))
        })?;
        let mut arguments = read.value;
        repairs.extend(read.repairs);
        repairs.extend(repair::coerce(&mut arguments, &entry.definition.parameters));
        if let Some(text) = entry.validator().problems(&name, &arguments) {
            return Err(failed(&name, text));
        }
        Ok(Readable { entry: Arc::clone(entry), arguments, repairs })
    }

    pub(crate) async fn plan(
        &self,
        call: &Readable,
        cancel: &CancellationToken,
    ) -> Result<Ready, Outcome> {
        let tool = call.entry.definition.name.clone();
        let context = Arc::clone(&self.plan_context);
        let planning = Arc::clone(&call.entry.tool).plan(call.arguments.clone(), context);
        // In a task of its own, because a tool that panics must not take the turn with it.
        let task = AbortOnDropHandle::new(tokio::spawn(planning));
        let planned = tokio::select! {
            planned = task => planned,
            () = cancel.cancelled() => return Err(not_started(&tool)),
            () = tokio::time::sleep(PLAN_LIMIT) => {
                let text = format!("Planning the call took longer than {} s.", PLAN_LIMIT.as_secs());
                return Err(failed(&tool, text));
            }
        };
        match planned {
            Ok(Ok(ErasedPlan { plan, run })) => {
                Ok(Ready { tool, repairs: call.repairs.clone(), plan, run })
            }
            Ok(Err(error)) => Err(failed(
                &tool,
                invalid_arguments(&tool, &error.to_string(), &call.arguments.to_string()),
            )),
            Err(crash) => Err(failed(&tool, crashed(&tool, crash))),
        }
    }

    /// Decide, run, fit. Always ends in an outcome; a fatal fault is also told as an update.
    pub(crate) async fn perform(
        &self,
        position: usize,
        ready: Ready,
        cancel: &CancellationToken,
        updates: &mpsc::Sender<Update>,
    ) -> Outcome {
        let Ready { tool, repairs, plan, run } = ready;
        let run = match run {
            Ok(run) => run,
            Err(error) => return self.explain_failed_plan(&tool, &plan, error),
        };
        if let Some(text) = self.outputs.secrets().refuse_loss(&plan) {
            return Outcome { title: plan.summary.clone(), ..failed(&tool, text) };
        }
        let question = Question {
            position,
            tool: tool.clone(),
            summary: plan.summary.clone(),
            requests: plan.requests(&self.workspace),
            preview: plan.preview(),
        };
        let decision = tokio::select! {
            decision = self.gate.decide(&question) => decision,
            () = cancel.cancelled() => return not_started(&tool),
        };
        let why = match decision {
            Decision::Allow { why } => why,
            Decision::Deny { by, message } => return denied(&tool, &plan, by, message),
        };
        let (go, may_go) = oneshot::channel();
        let starting = Update::Starting {
            position,
            tool: tool.clone(),
            summary: self.outputs.secrets().mask(&plan.summary).into_owned(),
            effects: plan.has_effects(),
            decision: why,
            go,
        };
        // Nobody who records: nothing may happen.
        if updates.send(starting).await.is_err() || may_go.await.is_err() || cancel.is_cancelled() {
            return not_started(&tool);
        }
        let started = Instant::now();
        let context = RunContext {
            workspace: Arc::clone(&self.workspace),
            files: Files::declared(&plan),
            cancel: cancel.clone(),
            progress: Progress {
                sender: updates.clone(),
                position,
                secrets: self.outputs.secrets().clone(),
            },
            may_read: self.may_read(),
            outputs: self.outputs.clone(),
            deadline: self.deadline,
        };
        let mut outcome = match self.run(run, context, cancel).await {
            Ran::Output(output) => self.fitted(&tool, &plan, output),
            Ran::Error(ToolError::ForModel(text)) => {
                let text = fit(text, &self.outputs).text;
                Outcome { title: plan.summary.clone(), ..failed(&tool, text) }
            }
            Ran::Error(ToolError::Fatal(message)) => {
                let message = self.outputs.secrets().mask(&message).into_owned();
                let told = Update::Fatal { message: message.clone() };
                updates.send(told).await.ok();
                failed(&tool, format!("The tool could not run: {message}"))
            }
            Ran::Crashed(text) => failed(&tool, crashed(&tool, text)),
            Ran::Unresponsive => Outcome {
                ending: Ending::Interrupted,
                ..failed(
                    &tool,
                    "The call was stopped and did not hand over what it had.".to_owned(),
                )
            },
        };
        crate::image::fit_attachments(&mut outcome, cancel).await;
        outcome.duration_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        if !repairs.is_empty() {
            outcome.output.push_str(&format!("\n\n(Note on your call: {}.)", repairs.join("; ")));
        }
        outcome
    }

    /// In a task of its own, so that a panic stays in it. The tool keeps its own deadline; a tool
    /// that misses it, or does not react to `cancel`, is dropped.
    async fn run(&self, run: RunOnce, context: RunContext, cancel: &CancellationToken) -> Ran {
        const DEADLINE_SLACK: Duration = Duration::from_secs(600);
        let limit = self.deadline + DEADLINE_SLACK;
        let task = AbortOnDropHandle::new(tokio::spawn(run(context)));
        tokio::pin!(task);
        let joined = tokio::select! {
            joined = &mut task => joined,
            () = tokio::time::sleep(limit) => return Ran::Unresponsive,
            () = cancel.cancelled() => match tokio::time::timeout(CANCEL_GRACE, &mut task).await {
                Ok(joined) => joined,
                Err(_) => return Ran::Unresponsive,
            },
        };
        match joined {
            Ok(Ok(output)) => Ran::Output(output),
            Ok(Err(error)) => Ran::Error(error),
            Err(crash) => Ran::Crashed(crash),
        }
    }

    fn fitted(&self, tool: &str, plan: &Plan, output: ToolOutput) -> Outcome {
        let ToolOutput { output, title, mut details, attachments, fitted, interrupted } = output;
        let mut text = self.outputs.secrets().mask(&output).into_owned();
        // A mark may be longer than what it stands for.
        if !fitted || text.len() > output.len().max(OUTPUT_CAP_BYTES) {
            let result = fit(text, &self.outputs);
            text = result.text;
            if let Some(path) = result.path {
                if !details.is_object() {
                    details =
                        if details.is_null() { json!({}) } else { json!({ "value": details }) };
                }
                details["outputPath"] = json!(path);
                details["truncated"] = json!(true);
            }
        }
        Outcome {
            ending: if interrupted { Ending::Interrupted } else { Ending::Completed },
            tool: tool.to_owned(),
            output: text,
            title: if title.is_empty() { plan.summary.clone() } else { title },
            details,
            attachments,
            duration_ms: 0,
        }
    }

    fn may_read(&self) -> MayRead {
        let (gate, workspace) = (Arc::clone(&self.gate), Arc::clone(&self.workspace));
        Arc::new(move |path| {
            let access = Access::Read { path: path.to_owned(), extent: Extent::Single };
            gate.allows_silently(&Plan::new("", vec![access]).requests(&workspace))
        })
    }

    /// An error may quote the file it is about; that is only told where reading it is allowed.
    fn explain_failed_plan(&self, tool: &str, plan: &Plan, error: ToolError) -> Outcome {
        let requests = plan.as_reads().requests(&self.workspace);
        let text = if self.gate.allows_silently(&requests) {
            error.to_string()
        } else {
            format!(
                "The call would fail; why is not told, because it concerns what may not be read ({}).",
                plan.summary
            )
        };
        Outcome { title: plan.summary.clone(), ..failed(tool, fit(text, &self.outputs).text) }
    }
}

enum Ran {
    Output(ToolOutput),
    Error(ToolError),
    Crashed(tokio::task::JoinError),
    Unresponsive,
}

fn crashed(tool: &str, crash: tokio::task::JoinError) -> String {
    let reason = match crash.try_into_panic() {
        Ok(payload) => {
            let text = payload.downcast_ref::<&str>().map(|s| (*s).to_owned());
            text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_default()
        }
        Err(_) => "it was stopped".to_owned(),
    };
    format!("The {tool} tool crashed: {reason}. This is a fault of the tool, not of the call.")
}

fn outcome(ending: Ending, tool: &str, output: String, title: &str) -> Outcome {
    Outcome {
        ending,
        tool: tool.to_owned(),
        output,
        title: title.to_owned(),
        details: Value::Null,
        attachments: Vec::new(),
        duration_ms: 0,
    }
}

pub(crate) fn failed(tool: &str, text: String) -> Outcome {
    outcome(Ending::Failed, tool, text, "")
}

pub(crate) fn not_started(tool: &str) -> Outcome {
    let text = "This call was not started: the run was interrupted before its turn came.";
    outcome(Ending::Skipped, tool, text.to_owned(), "not started")
}

fn denied(tool: &str, plan: &Plan, by: DeniedBy, message: String) -> Outcome {
    let details = json!({ "denied_by": by.as_str() });
    Outcome { details, ..outcome(Ending::Denied, tool, message, &plan.summary) }
}
