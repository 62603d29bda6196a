//! Calls that are begun while the model is still talking: those that only read, are allowed without
//! a question, and have nothing but such calls before them. Nothing is told of them until the whole
//! answer is on record.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use toolwright_session::Outcome;

use crate::access::Plan;
use crate::hooks::Hint;
use crate::perform::{KeepAnswer, Scope};
use crate::pipeline::{CallRequest, Pipeline, Readable, Ready, Update};
use crate::progress::Progress;

/// The calls of one answer so far, in order. Dropping it ends them.
#[derive(Default)]
pub struct EarlyCalls {
    begun: Vec<EarlyCall>,
}

pub(crate) struct EarlyCall {
    request: CallRequest,
    verdict: watch::Receiver<Verdict>,
    stop: CancellationToken,
    planned: PlanSlot,
    task: AbortOnDropHandle<Option<EarlyEnd>>,
}

/// Whether a call runs early; later ones may only if all before them do.
#[derive(Clone, Default)]
enum Verdict {
    #[default]
    Open,
    Runs(Arc<Running>),
    Waits,
}

/// A call under way.
pub(crate) struct Running {
    pub(crate) tool: String,
    pub(crate) plan: Plan,
    pub(crate) progress: Progress,
}

/// What came of a call that ran early.
pub(crate) struct EarlyEnd {
    pub(crate) outcome: Outcome,
    /// A fault that is not the model's.
    pub(crate) fatal: Option<Update>,
    /// To be remembered once the model has got it.
    pub(crate) answer: Option<KeepAnswer>,
}

impl EarlyCalls {
    /// Begins the answer's next call if it can be begun. `step` is what a later repeat will be
    /// referred to.
    pub fn begin(
        &mut self,
        pipeline: &Pipeline,
        request: CallRequest,
        step: usize,
        cancel: &CancellationToken,
    ) {
        let before = self.begun.last().map(|call| call.verdict.clone());
        let (sender, verdict) = watch::channel(Verdict::Open);
        let (pipeline, stop) = (pipeline.clone(), cancel.child_token());
        let cancel = stop.clone();
        let position = self.begun.len();
        let call = request.clone();
        let planned = PlanSlot::default();
        let slot = Arc::clone(&planned);
        let task = tokio::spawn(async move {
            let attempt = Attempt { pipeline, call, step, position, cancel, slot };
            let end = attempt.go(before, &sender).await;
            if end.is_none() {
                sender.send_replace(Verdict::Waits);
            }
            end
        });
        let task = AbortOnDropHandle::new(task);
        self.begun.push(EarlyCall { request, verdict, stop, planned, task });
    }

    pub fn len(&self) -> usize {
        self.begun.len()
    }

    pub fn is_empty(&self) -> bool {
        self.begun.is_empty()
    }

    pub(crate) fn into_calls(self) -> impl Iterator<Item = EarlyCall> {
        self.begun.into_iter()
    }
}

/// What was planned for a call that waits for the whole answer.
type PlanSlot = Arc<Mutex<Option<(Readable, Ready)>>>;

struct Attempt {
    pipeline: Pipeline,
    call: CallRequest,
    step: usize,
    position: usize,
    cancel: CancellationToken,
    slot: PlanSlot,
}

impl Attempt {
    async fn go(
        &self,
        before: Option<watch::Receiver<Verdict>>,
        verdict: &watch::Sender<Verdict>,
    ) -> Option<EarlyEnd> {
        // A hook is told of calls that happen; this one may never be on record.
        if self.pipeline.serial || self.pipeline.hooks.is_some() {
            return None;
        }
        // What has to be mended may be the beginning of something else: the end of the answer tells.
        serde_json::from_str::<&serde_json::value::RawValue>(&self.call.arguments).ok()?;
        let pipeline = &self.pipeline;
        let readable = pipeline.read(&self.call).ok()?;
        let ready = pipeline.plan(&readable, &self.cancel).await.ok()?;
        if !ready.plan.only_looks() || ready.hint != Hint::Nothing {
            // It is not planned again when its time comes: nothing of this answer has run before it.
            *self.slot.lock().unwrap_or_else(PoisonError::into_inner) = Some((readable, ready));
            return None;
        }
        let ready = pipeline.take_prepared(ready).ok()?;
        let question = pipeline.question(&ready, self.position);
        if !pipeline.gate.allows_silently(&question.requests) {
            return None;
        }
        if let Some(mut before) = before {
            let decided = before.wait_for(|v| !matches!(v, Verdict::Open)).await.ok()?;
            if matches!(*decided, Verdict::Waits) {
                return None;
            }
        }
        let progress = Progress::masking(pipeline.outputs.secrets().clone());
        let (tool, plan) = (ready.tool.clone(), ready.plan.clone());
        let running = Running { tool, plan, progress: progress.clone() };
        verdict.send_replace(Verdict::Runs(Arc::new(running)));
        let skip = CancellationToken::new();
        // What is told of it comes when it is on record.
        let (updates, mut kept) = mpsc::channel(1);
        let tells = false;
        let scope = Scope {
            step: self.step,
            position: self.position,
            cancel: &self.cancel,
            skip: &skip,
            updates: &updates,
            progress,
            tells,
        };
        let (outcome, kept_answer) = pipeline.execute(ready, &scope).await;
        Some(EarlyEnd { outcome, fatal: kept.try_recv().ok(), answer: kept_answer })
    }
}

impl EarlyCall {
    /// Whether it is this call of the whole answer. Its id may have been made later.
    pub(crate) fn is(&self, call: &CallRequest) -> bool {
        !call.cut && self.request.name == call.name && self.request.arguments == call.arguments
    }

    /// What it does, if it runs; nothing if it is to be run like any other.
    pub(crate) async fn running(&mut self, cancel: &CancellationToken) -> Option<Arc<Running>> {
        let decided = tokio::select! {
            decided = self.verdict.wait_for(|v| !matches!(v, Verdict::Open)) => decided.ok()?,
            () = cancel.cancelled() => return None,
        };
        match &*decided {
            Verdict::Runs(running) => Some(Arc::clone(running)),
            Verdict::Open | Verdict::Waits => None,
        }
    }

    /// What was planned for it while the model still talked.
    pub(crate) fn take_plan(&self) -> Option<(Readable, Ready)> {
        self.planned.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Its end; sooner if `cancel` fires, with what it had.
    pub(crate) async fn end(self, cancel: &CancellationToken) -> Option<EarlyEnd> {
        let Self { stop, task, .. } = self;
        tokio::pin!(task);
        tokio::select! {
            ended = &mut task => ended.ok().flatten(),
            () = cancel.cancelled() => {
                stop.cancel();
                task.await.ok().flatten()
            }
        }
    }
}
