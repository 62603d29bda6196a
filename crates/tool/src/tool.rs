//! What a tool is: typed for its author, erased for the registry.

use std::future::Future;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use toolwright_llm::Media;
use toolwright_session::Session;

use crate::access::Plan;
use crate::door::Door;
use crate::fit::Outputs;
use crate::pipeline::Pipeline;
use crate::progress::Progress;
use crate::workspace::{Files, Workspace};

/// A tool. `plan` looks at the arguments and declares what the call would touch; `run` does it.
///
/// `plan` may read (to compute a diff) and must change nothing. `run` reaches files only through
/// [`RunContext::files`], returns soon after `cancel` fires with what it has, and may panic without
/// harm to anyone else.
pub trait Tool: Send + Sync + 'static {
    type Arguments: DeserializeOwned + JsonSchema + Send + 'static;
    /// What `plan` found out and `run` needs.
    type Prepared: Send + 'static;

    fn name(&self) -> &str;
    /// For the model: short, in our own words.
    fn description(&self) -> &str;

    /// The key that rules for this tool are written with; `edit` covers all that writes files.
    fn permission(&self) -> &str {
        self.name()
    }

    /// Whether a model is offered it; `has` tells which other tools there are.
    fn suits(&self, _model: &str, _has: &dyn Fn(&str) -> bool) -> bool {
        true
    }

    /// The tool's own words for arguments that do not fit its schema.
    fn explain_invalid(&self, _problems: &[String], _arguments: &Value) -> Option<String> {
        None
    }

    /// The conversation no longer holds what earlier calls gave.
    fn forget(&self) {}

    /// The conversation is another from here on (something was undone, say): what is remembered of it
    /// becomes what `session` says.
    fn recall(&self, _session: &Session) {}

    fn plan(
        &self,
        arguments: Self::Arguments,
        context: &PlanContext,
    ) -> impl Future<Output = Planned<Self::Prepared>> + Send;

    fn run(
        &self,
        prepared: Self::Prepared,
        context: RunContext,
    ) -> impl Future<Output = Result<ToolOutput, ToolError>> + Send;
}

/// A plan, and what came of making it. A call that cannot work still says what it looked at, so
/// that its error is only shown where reading that is allowed.
pub struct Planned<P> {
    pub plan: Plan,
    pub prepared: Result<P, ToolError>,
}

impl<P> Planned<P> {
    pub fn ready(plan: Plan, prepared: P) -> Self {
        Self { plan, prepared: Ok(prepared) }
    }

    pub fn failed(plan: Plan, error: ToolError) -> Self {
        Self { plan, prepared: Err(error) }
    }
}

/// The two ways in which a tool can fail.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ToolError {
    /// Something that the model can act on.
    #[error("{0}")]
    ForModel(String),
    /// A fault of ours or of the machine: the turn ends and a person is told.
    #[error("{0}")]
    Fatal(String),
}

impl ToolError {
    pub fn for_model(text: impl Into<String>) -> Self {
        Self::ForModel(text.into())
    }
}

/// What a call gives.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ToolOutput {
    /// For the model.
    pub output: String,
    /// For people, in one line.
    pub title: String,
    /// For people and programs; never sent to the model.
    pub details: Value,
    pub attachments: Vec<Media>,
    /// The output is within the budget already and says where the rest is.
    pub fitted: bool,
    /// The tool was stopped; `output` is what it had.
    pub interrupted: bool,
    /// It went wrong; `output` says how. For errors that have details or a cost.
    pub failed: bool,
    /// US dollars that it spent on models of its own.
    pub cost: Option<f64>,
}

impl ToolOutput {
    pub fn text(output: impl Into<String>) -> Self {
        Self { output: output.into(), ..Self::default() }
    }

    pub fn titled(mut self, title: impl Into<String>) -> Self {
        self.title = title.into();
        self
    }

    pub fn with_details(mut self, details: Value) -> Self {
        self.details = details;
        self
    }
}

pub struct PlanContext {
    pub workspace: Arc<Workspace>,
    /// How long a call may take that does not say so itself.
    pub deadline: Duration,
    /// For a tool that plans other calls.
    pub(crate) pipeline: Pipeline,
}

/// What a running call may use.
pub struct RunContext {
    pub workspace: Arc<Workspace>,
    pub files: Files,
    pub cancel: CancellationToken,
    pub progress: Progress,
    /// Whether a file that a search came upon may be shown without asking anybody.
    pub may_read: MayRead,
    pub outputs: Outputs,
    /// For what the plan could not know.
    pub door: Door,
    /// How long the call may take; the tool ends by itself and keeps what it has.
    pub deadline: Duration,
    /// For a tool that makes other calls.
    pub(crate) pipeline: Pipeline,
}

pub type MayRead = Arc<dyn Fn(&Path) -> bool + Send + Sync>;

pub(crate) type RunFuture = BoxFuture<'static, Result<ToolOutput, ToolError>>;
pub(crate) type RunOnce = Box<dyn FnOnce(RunContext) -> RunFuture + Send>;

/// A plan whose types are forgotten.
pub struct ErasedPlan {
    pub(crate) plan: Plan,
    pub(crate) run: Result<RunOnce, ToolError>,
}

impl ErasedPlan {
    /// For a tool whose arguments are only known while the program runs.
    pub fn new<R, F>(plan: Plan, run: Result<R, ToolError>) -> Self
    where
        R: FnOnce(RunContext) -> F + Send + 'static,
        F: Future<Output = Result<ToolOutput, ToolError>> + Send + 'static,
    {
        let run = run.map(|run| -> RunOnce { Box::new(move |context| run(context).boxed()) });
        Self { plan, run }
    }
}

/// A tool whose types are forgotten: what the registry holds.
pub trait AnyTool: Send + Sync {
    fn name(&self) -> &str;
    fn description(&self) -> &str;
    fn permission(&self) -> &str;
    fn schema(&self) -> Value;

    fn suits(&self, _model: &str, _has: &dyn Fn(&str) -> bool) -> bool {
        true
    }

    fn explain_invalid(&self, _problems: &[String], _arguments: &Value) -> Option<String> {
        None
    }

    fn forget(&self) {}

    fn recall(&self, _session: &Session) {}

    /// Fails with text for the model where validated arguments still do not fit the type.
    fn plan(
        self: Arc<Self>,
        arguments: Value,
        context: Arc<PlanContext>,
    ) -> BoxFuture<'static, Result<ErasedPlan, ToolError>>;
}

impl<T: Tool> AnyTool for T {
    fn name(&self) -> &str {
        Tool::name(self)
    }

    fn description(&self) -> &str {
        Tool::description(self)
    }

    fn permission(&self) -> &str {
        Tool::permission(self)
    }

    fn schema(&self) -> Value {
        crate::schema::of::<T::Arguments>()
    }

    fn suits(&self, model: &str, has: &dyn Fn(&str) -> bool) -> bool {
        Tool::suits(self, model, has)
    }

    fn explain_invalid(&self, problems: &[String], arguments: &Value) -> Option<String> {
        Tool::explain_invalid(self, problems, arguments)
    }

    fn forget(&self) {
        Tool::forget(self);
    }

    fn recall(&self, session: &Session) {
        Tool::recall(self, session);
    }

    fn plan(
        self: Arc<Self>,
        arguments: Value,
        context: Arc<PlanContext>,
    ) -> BoxFuture<'static, Result<ErasedPlan, ToolError>> {
        async move {
            let arguments: T::Arguments = serde_json::from_value(arguments)
                .map_err(|e| ToolError::for_model(format!("The arguments do not fit: {e}.")))?;
            let Planned { plan, prepared } = Tool::plan(self.as_ref(), arguments, &context).await;
            let run = prepared.map(|prepared| -> RunOnce {
                Box::new(move |context| async move { self.run(prepared, context).await }.boxed())
            });
            Ok(ErasedPlan { plan, run })
        }
        .boxed()
    }
}
