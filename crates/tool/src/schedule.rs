//! Runs the calls of one message: side by side, except where their accesses conflict.

use std::collections::HashMap;
use std::sync::Arc;

use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use toolwright_session::Outcome;

use crate::access::Access;
use crate::early::{EarlyCall, EarlyCalls, Running};
use crate::perform::Scope;
use crate::pipeline::{
    CallRequest, Pipeline, Readable, Ready, Update, failed, not_started, skipped,
};
use crate::progress::Progress;

/// The calls of one message.
#[derive(Default)]
pub struct Batch {
    /// The number of the step, for what refers to it later.
    pub step: usize,
    pub calls: Vec<CallRequest>,
    /// Those of them that were begun already.
    pub early: EarlyCalls,
    /// Calls that have not begun when this fires are answered as skipped; the others go on.
    pub skip: CancellationToken,
}

impl From<Vec<CallRequest>> for Batch {
    fn from(calls: Vec<CallRequest>) -> Self {
        Self { calls, ..Self::default() }
    }
}

/// What later calls need to know of an earlier one.
struct Lane {
    accesses: Vec<Access>,
    done: watch::Sender<bool>,
}

enum First {
    /// Runs already.
    Early(EarlyCall, Arc<Running>),
    Planned(Readable, Result<Ready, Outcome>),
    /// It will never run.
    Over(Outcome),
}

impl Pipeline {
    /// Runs `calls` and tells about them through `updates`; each gets exactly one
    /// [`Update::Settled`]. A call that conflicts with an earlier one waits for it and is planned
    /// again afterwards, because the earlier one may have changed what it looks at.
    pub async fn run_calls(
        &self,
        batch: impl Into<Batch>,
        cancel: CancellationToken,
        updates: mpsc::Sender<Update>,
    ) {
        let Batch { step, calls, early, skip } = batch.into();
        let mut early = early.into_calls();
        let mut lanes: Vec<Lane> = Vec::with_capacity(calls.len());
        let mut firsts = Vec::with_capacity(calls.len());
        let mut dropped = false;
        for call in &calls {
            let begun = early.next();
            dropped |= begun.as_ref().is_some_and(|begun| !begun.is(call));
            let begun = begun.filter(|begun| begun.is(call));
            let (first, accesses) = self.first(call, begun, &cancel).await;
            lanes.push(Lane { accesses, done: watch::Sender::new(false) });
            firsts.push(first);
        }
        if dropped || early.next().is_some() {
            // What they had given never reaches the model.
            self.forget_answers();
        }
        let lanes: Arc<[Lane]> = lanes.into();
        let mut tasks = JoinSet::new();
        let mut positions = HashMap::new();
        for (position, first) in firsts.into_iter().enumerate() {
            let task = CallTask {
                pipeline: self.clone(),
                step,
                position,
                name: calls[position].name.clone(),
                lanes: Arc::clone(&lanes),
                cancel: cancel.clone(),
                skip: skip.clone(),
                updates: updates.clone(),
            };
            let handle = tasks.spawn(task.run(first));
            positions.insert(handle.id(), position);
        }
        while let Some(joined) = tasks.join_next_with_id().await {
            // The tasks catch what tools do. Should one of them break all the same, its call still
            // gets its one result.
            let Err(crash) = joined else { continue };
            let Some(position) = positions.get(&crash.id()).copied() else { continue };
            let text = format!("The call could not be finished: {crash}.");
            let outcome = failed(&calls[position].name, text);
            updates.send(Update::Settled { position, outcome }).await.ok();
        }
    }

    async fn first(
        &self,
        call: &CallRequest,
        begun: Option<EarlyCall>,
        cancel: &CancellationToken,
    ) -> (First, Vec<Access>) {
        if let Some(mut begun) = begun {
            if let Some(running) = begun.running(cancel).await {
                let accesses = running.plan.accesses.clone();
                return (First::Early(begun, running), accesses);
            }
            if let Some((readable, ready)) = begun.take_plan() {
                let accesses = ready.plan.accesses.clone();
                return (First::Planned(readable, Ok(ready)), accesses);
            }
        }
        match self.first_plan(call, cancel).await {
            Ok((readable, ready)) => {
                let accesses = ready.as_ref().map_or(Vec::new(), |r| r.plan.accesses.clone());
                (First::Planned(readable, ready), accesses)
            }
            Err(outcome) => (First::Over(outcome), Vec::new()),
        }
    }
}

struct SetOnDrop<'a>(&'a watch::Sender<bool>);

impl Drop for SetOnDrop<'_> {
    fn drop(&mut self) {
        self.0.send_replace(true);
    }
}

struct CallTask {
    pipeline: Pipeline,
    step: usize,
    position: usize,
    name: String,
    lanes: Arc<[Lane]>,
    cancel: CancellationToken,
    skip: CancellationToken,
    updates: mpsc::Sender<Update>,
}

impl CallTask {
    async fn run(self, first: First) {
        // However this ends, those that wait for it must not wait for ever.
        let _done = SetOnDrop(&self.lanes[self.position].done);
        let outcome = match first {
            First::Over(outcome) => outcome,
            _ if self.cancel.is_cancelled() => not_started(&self.name),
            First::Early(begun, running) => self.take_over(begun, &running).await,
            First::Planned(readable, ready) => self.proceed(readable, ready).await,
        };
        let outcome = self.pipeline.outputs.secrets().mask_outcome(outcome);
        let settled = Update::Settled { position: self.position, outcome };
        // A receiver that is gone has no use for it.
        self.updates.send(settled).await.ok();
    }

    fn scope(&self) -> Scope<'_> {
        Scope {
            step: self.step,
            position: self.position,
            cancel: &self.cancel,
            skip: &self.skip,
            updates: &self.updates,
            progress: Progress::masking(self.pipeline.outputs.secrets().clone()),
            tells: true,
        }
    }

    /// A call that ran ahead of its record: told now, in the usual order.
    async fn take_over(&self, begun: EarlyCall, running: &Running) -> Outcome {
        let Running { tool, plan, progress } = running;
        let why = "it only reads".to_owned();
        if !self.pipeline.announce(tool, plan, why, Vec::new(), &self.scope()).await {
            return not_started(tool);
        }
        let ended = tokio::select! {
            ended = begun.end(&self.cancel) => ended,
            () = progress.pass_on(self.position, &self.updates) => None,
        };
        let Some(end) = ended else {
            return failed(tool, "The call could not be finished.".to_owned());
        };
        if let Some(fatal) = end.fatal {
            self.updates.send(fatal).await.ok();
        }
        if let Some(answer) = end.answer {
            self.pipeline.keep_answer(answer, &end.outcome);
        }
        end.outcome
    }

    async fn proceed(&self, readable: Readable, mut ready: Result<Ready, Outcome>) -> Outcome {
        loop {
            let mut waited = false;
            for earlier in self.blockers(&ready) {
                let mut done = self.lanes[earlier].done.subscribe();
                if *done.borrow() {
                    continue;
                }
                waited = true;
                tokio::select! {
                    // The sender lives in the lanes that we hold: it cannot be gone.
                    _ = done.wait_for(|done| *done) => {}
                    () = self.cancel.cancelled() => return not_started(&tool_of(&ready)),
                    () = self.skip.cancelled() => return skipped(&tool_of(&ready)),
                }
            }
            if !waited {
                break;
            }
            ready = self.pipeline.plan(&readable, &self.cancel).await;
        }
        match ready {
            Ok(ready) => self.pipeline.perform(ready, &self.scope()).await,
            Err(outcome) => outcome,
        }
    }

    /// The earlier calls that this one has to wait for, done or not.
    fn blockers(&self, ready: &Result<Ready, Outcome>) -> Vec<usize> {
        let earlier = 0..self.position;
        if self.pipeline.serial {
            return earlier.collect();
        }
        match ready {
            Ok(Ready { plan, run: Ok(_), .. }) => {
                earlier.filter(|n| plan.conflicts_with(&self.lanes[*n].accesses)).collect()
            }
            // It failed on what it saw; an earlier call may be about to change that.
            _ => {
                earlier.filter(|n| self.lanes[*n].accesses.iter().any(Access::may_change)).collect()
            }
        }
    }
}

fn tool_of(ready: &Result<Ready, Outcome>) -> String {
    match ready {
        Ok(ready) => ready.tool.clone(),
        Err(outcome) => outcome.tool.clone(),
    }
}
