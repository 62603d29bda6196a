//! The stages of one call, and the door at which it is decided.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use toolwright_permission::{Mode, Request};
use toolwright_session::images::{Changed, Keeper};
use toolwright_session::{Ending, Outcome, Session, Touched};

use crate::access::Plan;
use crate::cache::Cache;
use crate::deferred;
use crate::door::{Inquiry, Replies, Unanswered};
use crate::fit::{OutputCaps, Outputs};
use crate::hooks::{Before, CallHooks, Hint, HookedCall};
use crate::image::ImageLimits;
use crate::mask::Secrets;
use crate::perform::crashed;
use crate::registry::{Registered, Registry, Source};
use crate::repair;
use crate::tool::{ErasedPlan, PlanContext, RunOnce, ToolError};
use crate::validate::invalid_arguments;
use crate::workspace::Workspace;

/// How long a call may take when nobody says otherwise.
const DEFAULT_DEADLINE: Duration = Duration::from_secs(120);

/// How long a tool may look at its arguments. Planning only reads.
const PLAN_LIMIT: Duration = Duration::from_secs(30);

/// A call as the model made it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CallRequest {
    pub id: String,
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
    pub arguments: Value,
    pub summary: String,
    pub requests: Vec<Request>,
    /// The diff or the command.
    pub preview: Option<String>,
    pub hint: Hint,
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
    /// Asks a person something that is no permission.
    fn inquire<'a>(&'a self, _inquiry: &'a Inquiry) -> BoxFuture<'a, Result<Replies, Unanswered>> {
        Box::pin(std::future::ready(Err(Unanswered::Nobody)))
    }
    /// Whether nothing under this key can ever be allowed.
    fn always_denies(&self, _permission: &str) -> bool {
        false
    }
    /// How much is done without a question, where there are modes.
    fn mode(&self) -> Option<Mode> {
        None
    }
    /// Whether a rule says so, and not merely somebody who was asked.
    fn allows_by_rule(&self, _request: &Request) -> bool {
        false
    }
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
        touched: Touched,
        decision: String,
        /// What it is about to change, and what was seen meanwhile.
        changes: Vec<Changed>,
        go: oneshot::Sender<()>,
    },
    Progress {
        position: usize,
        text: String,
        /// Something that must survive the call, for a model that never gets its result.
        keep: bool,
    },
    /// What the call did to files.
    Changed(Box<Changed>),
    /// The call's end. Exactly one per call.
    Settled { position: usize, outcome: Outcome },
    /// A fault that is not the model's: the turn cannot go on.
    Fatal { message: String },
}

#[derive(Clone)]
pub struct PipelineOptions {
    /// Where large outputs go.
    pub outputs: PathBuf,
    pub deadline: Duration,
    /// Calls of one message run one after the other.
    pub serial: bool,
    /// A repeated call that only reads is answered as unchanged while that is true.
    pub cache: bool,
    pub hooks: Option<Arc<dyn CallHooks>>,
    /// What no outcome may show.
    pub secrets: Secrets,
    /// What of an outcome reaches the model.
    pub caps: OutputCaps,
    pub images: ImageLimits,
    /// Notes what calls do to files, so that it can be undone.
    pub keeper: Option<Keeper>,
}

impl PipelineOptions {
    pub fn new(outputs: impl Into<PathBuf>) -> Self {
        Self {
            outputs: outputs.into(),
            deadline: DEFAULT_DEADLINE,
            serial: false,
            cache: true,
            hooks: None,
            secrets: Secrets::default(),
            caps: OutputCaps::default(),
            images: ImageLimits::default(),
            keeper: None,
        }
    }
}

/// The stages, over a registry and a gate.
#[derive(Clone)]
pub struct Pipeline {
    pub(crate) registry: Registry,
    pub(crate) gate: Arc<dyn Gate>,
    pub(crate) workspace: Arc<Workspace>,
    pub(crate) outputs: Outputs,
    pub(crate) images: ImageLimits,
    pub(crate) deadline: Duration,
    pub(crate) serial: bool,
    pub(crate) cache: Option<Arc<Cache>>,
    pub(crate) hooks: Option<Arc<dyn CallHooks>>,
    pub(crate) keeper: Option<Keeper>,
}

/// A call that has been read and planned.
pub(crate) struct Ready {
    pub(crate) call: HookedCall,
    pub(crate) arguments: Value,
    pub(crate) hint: Hint,
    pub(crate) tool: String,
    pub(crate) repairs: Vec<String>,
    pub(crate) plan: Plan,
    pub(crate) source: Source,
    pub(crate) run: Result<RunOnce, ToolError>,
}

/// A call that has been read: what is needed to plan it, again if need be.
#[derive(Clone)]
pub(crate) struct Readable {
    call: HookedCall,
    entry: Arc<Registered>,
    arguments: Value,
    repairs: Vec<String>,
    hint: Hint,
}

impl Pipeline {
    /// Who looks at calls from here on.
    pub fn show_calls_to(&mut self, hooks: Option<Arc<dyn CallHooks>>) {
        self.hooks = hooks;
    }

    pub fn new(
        registry: Registry,
        workspace: Arc<Workspace>,
        gate: Arc<dyn Gate>,
        options: PipelineOptions,
    ) -> Self {
        let PipelineOptions {
            outputs,
            deadline,
            serial,
            cache,
            hooks,
            secrets,
            caps,
            images,
            keeper,
        } = options;
        let outputs = Outputs::new(outputs).masking(secrets).within(caps);
        let cache = cache.then(Arc::default);
        Self { registry, gate, workspace, outputs, images, deadline, serial, cache, hooks, keeper }
    }

    /// Who notes what calls do to files.
    pub fn keeper(&self) -> Option<&Keeper> {
        self.keeper.as_ref()
    }

    pub fn gate(&self) -> &Arc<dyn Gate> {
        &self.gate
    }

    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// The model can no longer look at earlier results: they must be given again.
    pub fn forget_answers(&self) {
        if let Some(cache) = &self.cache {
            cache.clear();
        }
        self.registry.all().iter().for_each(|entry| entry.tool.forget());
    }

    /// The conversation is another from here on: nothing is remembered but what it says.
    pub fn recall(&self, session: &Session) {
        self.forget_answers();
        self.registry.all().iter().for_each(|entry| entry.tool.recall(session));
    }

    /// Read, looked at by the hooks, and planned for the first time.
    pub(crate) async fn first_plan(
        &self,
        call: &CallRequest,
        cancel: &CancellationToken,
    ) -> Result<(Readable, Result<Ready, Outcome>), Outcome> {
        let mut readable = self.read(call)?;
        if let Some(hooks) = &self.hooks {
            let looked = tokio::select! {
                looked = hooks.before(&readable.call, readable.arguments.clone()) => looked,
                () = cancel.cancelled() => return Err(not_started(&readable.call.tool)),
            };
            match looked {
                Before::Block { reason } => return Err(blocked(&readable.call.tool, reason)),
                Before::Go { arguments, hint, context } => {
                    readable.hint = hint;
                    readable.call.context = context;
                    if arguments != readable.arguments {
                        readable.arguments = arguments;
                        readable.check()?;
                    }
                }
            }
        }
        let ready = self.plan(&readable, cancel).await;
        Ok((readable, ready))
    }

    /// What a call would touch, without anybody being asked and without running it. An error is what
    /// the model would get.
    pub async fn look_at(&self, call: &CallRequest) -> Result<Plan, Outcome> {
        let readable = self.read(call)?;
        let ready = self.plan(&readable, &CancellationToken::new()).await?;
        Ok(ready.plan)
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
            return Err(invalid(&call.name, text));
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
            invalid(&name, invalid_arguments(&name, &detail, &call.arguments))
        })?;
        if name == deferred::CALL {
            return match deferred::unwrap(&read.value) {
                Some((name, arguments)) => {
                    self.read(&CallRequest { name, arguments, ..call.clone() })
                }
                None => Err(failed(&name, "Say which tool to call, as \"name\".".to_owned())),
            };
        }
        let mut arguments = read.value;
        repairs.extend(read.repairs);
        repairs.extend(repair::coerce(&mut arguments, &entry.definition.parameters));
        let hooked = HookedCall { id: call.id.clone(), tool: name, context: Vec::new() };
        let readable = Readable { call: hooked, entry, arguments, repairs, hint: Hint::default() };
        readable.check()?;
        Ok(readable)
    }

    pub(crate) async fn plan(
        &self,
        call: &Readable,
        cancel: &CancellationToken,
    ) -> Result<Ready, Outcome> {
        let tool = call.entry.definition.name.clone();
        let context = Arc::new(PlanContext {
            workspace: Arc::clone(&self.workspace),
            deadline: self.deadline,
            pipeline: self.clone(),
        });
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
            Ok(Ok(ErasedPlan { plan, run })) => Ok(Ready {
                call: call.call.clone(),
                arguments: call.arguments.clone(),
                hint: call.hint,
                tool,
                repairs: call.repairs.clone(),
                plan,
                source: call.entry.source,
                run,
            }),
            Ok(Err(error)) => Err(failed(
                &tool,
                invalid_arguments(&tool, &error.to_string(), &call.arguments.to_string()),
            )),
            Err(crash) => Err(failed(&tool, crashed(&tool, crash))),
        }
    }
}

impl Readable {
    /// The tool that it is a call of, by its real name.
    pub(crate) fn tool(&self) -> &str {
        &self.entry.definition.name
    }

    /// What is wrong with the arguments, if anything, in the tool's own words where it has them.
    fn check(&self) -> Result<(), Outcome> {
        let tool = &self.call.tool;
        let Some(problems) = self.entry.validator().problems(&self.arguments) else {
            return Ok(());
        };
        let text = self.entry.tool.explain_invalid(&problems, &self.arguments);
        let text = text.unwrap_or_else(|| {
            invalid_arguments(tool, &problems.join("; "), &self.arguments.to_string())
        });
        Err(failed(tool, text))
    }
}

pub(crate) fn outcome(ending: Ending, tool: &str, output: String, title: &str) -> Outcome {
    Outcome {
        ending,
        tool: tool.to_owned(),
        output,
        title: title.to_owned(),
        details: Value::Null,
        attachments: Vec::new(),
        duration_ms: 0,
        cost: None,
    }
}

pub(crate) fn failed(tool: &str, text: String) -> Outcome {
    outcome(Ending::Failed, tool, text, "")
}

pub(crate) fn not_started(tool: &str) -> Outcome {
    let text = "This call was not started: the run was interrupted before its turn came.";
    outcome(Ending::Skipped, tool, text.to_owned(), "not started")
}

pub(crate) fn skipped(tool: &str) -> Outcome {
    let text = "This call was skipped: the user sent a new message before it began.";
    outcome(Ending::Skipped, tool, text.to_owned(), "skipped")
}

/// A call that is no call: nothing that could be run was named, or its arguments cannot be read.
fn invalid(tool: &str, text: String) -> Outcome {
    let details = json!({ "tool": tool, "error": text });
    Outcome { details, ..outcome(Ending::Failed, "invalid", text, "Invalid Tool") }
}

fn blocked(tool: &str, reason: String) -> Outcome {
    let text = format!("A hook blocked this call: {reason}");
    let details = json!({ "denied_by": "hook" });
    Outcome { details, ..outcome(Ending::Denied, tool, text, "blocked by a hook") }
}
