//! A planned call: decided, run within its time, and fitted to the budget.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::json;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use toolwright_session::images::{Changed, Reach, Ticket};
use toolwright_session::{Ending, Outcome};

use crate::access::{Access, Extent, Plan};
use crate::cache::{Before, Cache};
use crate::door::Door;
use crate::fit::fit;
use crate::pipeline::{
    Decision, DeniedBy, Pipeline, Question, Ready, Update, failed, not_started, outcome, skipped,
};
use crate::progress::Progress;
use crate::registry::Source;
use crate::tool::{MayRead, RunContext, RunOnce, ToolError, ToolOutput};
use crate::workspace::Files;

/// How long a cancelled tool may take to hand over what it has.
const CANCEL_GRACE: Duration = Duration::from_millis(500);

/// How far a tool may overrun its time before it is told to stop: one that keeps its own time ends
/// by itself and says more.
const DEADLINE_SLACK: Duration = Duration::from_secs(2);

/// Who a running call belongs to, and whom it tells.
pub(crate) struct Scope<'a> {
    pub(crate) step: usize,
    pub(crate) position: usize,
    pub(crate) cancel: &'a CancellationToken,
    pub(crate) skip: &'a CancellationToken,
    pub(crate) updates: &'a mpsc::Sender<Update>,
    /// Where the tool says how far it is; somebody else passes it on if `tells` is not set.
    pub(crate) progress: Progress,
    pub(crate) tells: bool,
}

impl Pipeline {
    /// Decide, run, fit. Always ends in an outcome; a fatal fault is also told as an update.
    pub(crate) async fn perform(&self, ready: Ready, scope: &Scope<'_>) -> Outcome {
        let ready = match self.take_prepared(ready) {
            Ok(ready) => ready,
            Err(outcome) => return outcome,
        };
        if let Some(text) = self.outputs.secrets().refuse_loss(&ready.plan) {
            let title = ready.plan.summary.clone();
            return Outcome { title, ..failed(&ready.tool, text) };
        }
        let question = self.question(&ready, scope.position);
        let decision = tokio::select! {
            decision = self.gate.decide(&question) => decision,
            () = scope.cancel.cancelled() => return not_started(&ready.tool),
            () = scope.skip.cancelled() => return skipped(&ready.tool),
        };
        if scope.skip.is_cancelled() {
            return skipped(&ready.tool);
        }
        let why = match decision {
            Decision::Allow { why } => why,
            Decision::Deny { by, message } => return denied(&ready.tool, &ready.plan, by, message),
        };
        let reach = ready.plan.reach(&self.workspace, ready.source == Source::BuiltIn);
        let kept = tokio::select! {
            kept = self.keep_before(reach) => kept,
            () = scope.cancel.cancelled() => return not_started(&ready.tool),
        };
        let (ticket, changes) = kept.unzip();
        let changes = changes.unwrap_or_default();
        if !self.announce(&ready.tool, &ready.plan, why, changes, scope).await {
            // Nothing has happened, which is known only from here on; what others did meanwhile is told.
            let outcome = not_started(&ready.tool);
            self.keep_after(ticket, &outcome, scope).await;
            return outcome;
        }
        let (outcome, answer) = self.execute(ready, scope).await;
        self.keep_after(ticket, &outcome, scope).await;
        if let Some(answer) = answer {
            self.keep_answer(answer, &outcome);
        }
        outcome
    }

    /// Remembers an answer that the model gets.
    pub(crate) fn keep_answer(&self, answer: KeepAnswer, outcome: &Outcome) {
        let KeepAnswer { tool, arguments, step, before } = answer;
        if let Some(cache) = &self.cache {
            cache.keep(&tool, &arguments, step, before, outcome);
        }
    }

    pub(crate) fn question(&self, ready: &Prepared, position: usize) -> Question {
        Question {
            position,
            tool: ready.tool.clone(),
            arguments: ready.arguments.clone(),
            summary: ready.plan.summary.clone(),
            requests: ready.plan.requests(&self.workspace),
            preview: ready.plan.preview(),
            hint: ready.hint,
        }
    }

    /// A call that cannot work ends here, with what may be told of why.
    pub(crate) fn take_prepared(&self, ready: Ready) -> Result<Prepared, Outcome> {
        let Ready { call, tool, repairs, plan, source, arguments, hint, run } = ready;
        match run {
            Ok(run) => Ok(Prepared { call, tool, repairs, plan, source, arguments, hint, run }),
            Err(error) => Err(self.explain_failed_plan(&tool, &plan, error)),
        }
    }

    /// What the call may change is kept as it is. Nothing, where it changes nothing.
    async fn keep_before(&self, reach: Reach) -> Option<(Ticket, Vec<Changed>)> {
        let keeper = self.keeper.as_ref().filter(|_| !reach.is_nothing())?;
        Some(keeper.before(reach).await)
    }

    async fn keep_after(&self, ticket: Option<Ticket>, outcome: &Outcome, scope: &Scope<'_>) {
        let (Some(keeper), Some(ticket)) = (&self.keeper, ticket) else { return };
        if let Some(changed) = keeper.after(ticket, lingers(&outcome.details)).await {
            // A receiver that is gone has no use for it.
            scope.updates.send(Update::Changed(Box::new(changed))).await.ok();
        }
    }

    /// Tells that the call is about to run and waits for the word. Not, if nobody records it: then
    /// nothing may happen.
    pub(crate) async fn announce(
        &self,
        tool: &str,
        plan: &Plan,
        decision: String,
        changes: Vec<Changed>,
        scope: &Scope<'_>,
    ) -> bool {
        let (go, may_go) = oneshot::channel();
        let starting = Update::Starting {
            position: scope.position,
            tool: tool.to_owned(),
            summary: self.outputs.secrets().mask(&plan.summary).into_owned(),
            effects: plan.has_effects(),
            touched: plan.touched(&self.workspace),
            decision,
            changes,
            go,
        };
        scope.updates.send(starting).await.is_ok()
            && may_go.await.is_ok()
            && !scope.cancel.is_cancelled()
    }

    /// The effect, and what is needed to remember its answer.
    pub(crate) async fn execute(
        &self,
        ready: Prepared,
        scope: &Scope<'_>,
    ) -> (Outcome, Option<KeepAnswer>) {
        let started = Instant::now();
        let Prepared { call, tool, repairs, plan, arguments, run, .. } = ready;
        let known = self.cache.as_ref().and_then(|cache| {
            let (text, title) = cache.unchanged(&tool, &arguments)?;
            let details = json!({ "cached": true });
            Some(Outcome { details, ..outcome(Ending::Completed, &tool, text, &title) })
        });
        if let Some(known) = known {
            return (known, None);
        }
        let before = self.cache.as_ref().and_then(|_| Cache::before(&plan));
        let limit = plan.time_limit.unwrap_or(self.deadline);
        let door = Door {
            gate: Arc::clone(&self.gate),
            workspace: Arc::clone(&self.workspace),
            tool: tool.clone(),
            position: scope.position,
            denied: Arc::default(),
        };
        let context = RunContext {
            workspace: Arc::clone(&self.workspace),
            files: Files::declared(&plan),
            cancel: scope.cancel.child_token(),
            progress: scope.progress.clone(),
            may_read: self.may_read(),
            outputs: self.outputs.clone(),
            door: door.clone(),
            deadline: limit,
            pipeline: self.clone(),
        };
        let mut outcome = match self.run(run, context, scope).await {
            Ran::Output(output) => self.fitted(&tool, &plan, output),
            Ran::Error(ToolError::ForModel(text)) => {
                let text = fit(text, &self.outputs).text;
                match door.denied() {
                    Some(by) => denied(&tool, &plan, by, text),
                    None => Outcome { title: plan.summary.clone(), ..failed(&tool, text) },
                }
            }
            Ran::Error(ToolError::Fatal(message)) => {
                let message = self.outputs.secrets().mask(&message).into_owned();
                let told = Update::Fatal { message: message.clone() };
                scope.updates.send(told).await.ok();
                failed(&tool, format!("The tool could not run: {message}"))
            }
            Ran::Crashed(text) => failed(&tool, crashed(&tool, text)),
            Ran::TimedOut { had } => {
                let text =
                    format!("The call took longer than {} s and was stopped.", limit.as_secs());
                let text = with_what_it_had(text, had);
                Outcome { title: plan.summary.clone(), ..failed(&tool, text) }
            }
            Ran::Unresponsive { had } => {
                let text = "The call was stopped and did not hand over what it had.".to_owned();
                let ending = Ending::Interrupted;
                Outcome { ending, ..failed(&tool, with_what_it_had(text, had)) }
            }
        };
        crate::image::fit_attachments(&mut outcome, self.images, scope.cancel).await;
        outcome.duration_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        if let Some(hooks) = &self.hooks {
            let as_it_was = outcome.clone();
            let before = outcome.output.clone();
            outcome = tokio::select! {
                biased;
                // What has happened is told even if nobody is there to look at it.
                () = scope.cancel.cancelled() => as_it_was,
                looked = hooks.after(&call, &arguments, outcome) => self.fitted_again(looked, &before),
            };
        }
        if !repairs.is_empty() {
            outcome.output.push_str(&format!("\n\n(Note on your call: {}.)", repairs.join("; ")));
        }
        // What a hook looks at is never answered from memory.
        let before = before.filter(|_| self.hooks.is_none());
        let step = scope.step;
        (outcome, before.map(|before| KeepAnswer { tool, arguments, step, before }))
    }

    /// After a hook: what it made of the output, or added to it, is held to the same limits.
    fn fitted_again(&self, mut outcome: Outcome, before: &str) -> Outcome {
        let output = std::mem::take(&mut outcome.output);
        outcome.output = match output.strip_prefix(before) {
            Some("") => output,
            Some(added) => format!("{before}{}", fit(added.to_owned(), &self.outputs).text),
            None => fit(output, &self.outputs).text,
        };
        outcome
    }

    /// In a task of its own, so that a panic stays in it. A tool that misses its time is told to
    /// stop; one that does not react to that is dropped.
    async fn run(&self, run: RunOnce, context: RunContext, scope: &Scope<'_>) -> Ran {
        let limit = context.deadline.saturating_add(DEADLINE_SLACK);
        let (stop, progress) = (context.cancel.clone(), context.progress.clone());
        let task = AbortOnDropHandle::new(tokio::spawn(run(context)));
        tokio::pin!(task);
        let (joined, timed_out) = tokio::select! {
            biased;
            joined = &mut task => (Some(joined), false),
            () = scope.cancel.cancelled() => {
                (tokio::time::timeout(CANCEL_GRACE, &mut task).await.ok(), false)
            }
            () = tokio::time::sleep(limit) => {
                stop.cancel();
                (tokio::time::timeout(CANCEL_GRACE, &mut task).await.ok(), true)
            }
            () = progress.pass_on(scope.position, scope.updates), if scope.tells => (None, false),
        };
        match joined {
            Some(Ok(Ok(output))) if timed_out => Ran::TimedOut { had: output.output },
            Some(Ok(Ok(output))) => Ran::Output(output),
            Some(Ok(Err(error))) => Ran::Error(error),
            Some(Err(crash)) => Ran::Crashed(crash),
            None if timed_out => Ran::TimedOut { had: progress.newest() },
            None => Ran::Unresponsive { had: progress.newest() },
        }
    }

    fn fitted(&self, tool: &str, plan: &Plan, output: ToolOutput) -> Outcome {
        let ToolOutput {
            output,
            title,
            mut details,
            attachments,
            fitted,
            interrupted,
            failed,
            cost,
        } = output;
        let mut text = self.outputs.secrets().mask(&output).into_owned();
        // A mark may be longer than what it stands for.
        if !fitted || text.len() > output.len().max(self.outputs.caps().bytes) {
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
            ending: match (interrupted, failed) {
                (true, _) => Ending::Interrupted,
                (false, true) => Ending::Failed,
                (false, false) => Ending::Completed,
            },
            title: if title.is_empty() { plan.summary.clone() } else { title },
            details,
            attachments,
            cost,
            ..outcome(Ending::Completed, tool, text, "")
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

/// An answer that may be referred to later.
pub(crate) struct KeepAnswer {
    tool: String,
    arguments: serde_json::Value,
    step: usize,
    before: Before,
}

/// A call that can run.
pub(crate) struct Prepared {
    pub(crate) call: crate::hooks::HookedCall,
    pub(crate) tool: String,
    pub(crate) repairs: Vec<String>,
    pub(crate) plan: Plan,
    pub(crate) source: Source,
    pub(crate) arguments: serde_json::Value,
    pub(crate) hint: crate::hooks::Hint,
    pub(crate) run: RunOnce,
}

/// Whether something goes on that the call began, or that one of its calls did.
fn lingers(details: &serde_json::Value) -> bool {
    let parts = details["details"].as_array();
    details["running"] == true
        || details["leftRunning"] == true
        || parts.is_some_and(|parts| parts.iter().any(|part| lingers(&part["details"])))
}

enum Ran {
    Output(ToolOutput),
    Error(ToolError),
    Crashed(tokio::task::JoinError),
    TimedOut { had: String },
    Unresponsive { had: String },
}

fn with_what_it_had(mut text: String, had: String) -> String {
    if !had.is_empty() {
        text.push_str(&format!(" What it had produced until then:\n{had}"));
    }
    text
}

pub(crate) fn crashed(tool: &str, crash: tokio::task::JoinError) -> String {
    let reason = match crash.try_into_panic() {
        Ok(payload) => {
            let text = payload.downcast_ref::<&str>().map(|s| (*s).to_owned());
            text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_default()
        }
        Err(_) => "it was stopped".to_owned(),
    };
    format!("The {tool} tool crashed: {reason}. This is a fault of the tool, not of the call.")
}

fn denied(tool: &str, plan: &Plan, by: DeniedBy, message: String) -> Outcome {
    let details = json!({ "denied_by": by.as_str() });
    Outcome { details, ..outcome(Ending::Denied, tool, message, &plan.summary) }
}
