//! Runs the calls of one message: side by side, except where their accesses conflict.

use std::collections::HashMap;
use std::sync::Arc;

use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use toolwright_session::Outcome;

use crate::access::Access;
use crate::pipeline::{CallRequest, Pipeline, Readable, Ready, Update, failed, not_started};

/// What later calls need to know of an earlier one.
struct Lane {
    accesses: Vec<Access>,
    done: watch::Sender<bool>,
}

impl Pipeline {
    /// Runs `calls` and tells about them through `updates`; each gets exactly one
    /// [`Update::Settled`]. A call that conflicts with an earlier one waits for it and is planned
    /// again afterwards, because the earlier one may have changed what it looks at.
    pub async fn run_calls(
        &self,
        calls: Vec<CallRequest>,
        cancel: CancellationToken,
        updates: mpsc::Sender<Update>,
    ) {
        let mut lanes: Vec<Lane> = Vec::with_capacity(calls.len());
        let mut planned = Vec::with_capacity(calls.len());
        for call in &calls {
            let first = self.first_plan(call, &cancel).await;
            let accesses = match &first {
                Ok((_, Ok(ready))) => ready.plan.accesses.clone(),
                Ok((_, Err(_))) | Err(_) => Vec::new(),
            };
            lanes.push(Lane { accesses, done: watch::Sender::new(false) });
            planned.push(first);
        }
        let lanes: Arc<[Lane]> = lanes.into();
        let mut tasks = JoinSet::new();
        let mut positions = HashMap::new();
        for (position, first) in planned.into_iter().enumerate() {
            let task = CallTask {
                pipeline: self.clone(),
                position,
                lanes: Arc::clone(&lanes),
                cancel: cancel.clone(),
                updates: updates.clone(),
            };
            let name = calls[position].name.clone();
            let handle = tasks.spawn(async move { task.run(&name, first).await });
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

    async fn first_plan(
        &self,
        call: &CallRequest,
        cancel: &CancellationToken,
    ) -> Result<(Readable, Result<Ready, Outcome>), Outcome> {
        let readable = self.read(call)?;
        let ready = self.plan(&readable, cancel).await;
        Ok((readable, ready))
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
    position: usize,
    lanes: Arc<[Lane]>,
    cancel: CancellationToken,
    updates: mpsc::Sender<Update>,
}

impl CallTask {
    async fn run(self, name: &str, first: Result<(Readable, Result<Ready, Outcome>), Outcome>) {
        // However this ends, those that wait for it must not wait for ever.
        let _done = SetOnDrop(&self.lanes[self.position].done);
        let outcome = match first {
            Err(outcome) => outcome,
            Ok(_) if self.cancel.is_cancelled() => not_started(name),
            Ok((readable, ready)) => self.proceed(readable, ready).await,
        };
        let outcome = self.pipeline.outputs.secrets().mask_outcome(outcome);
        let settled = Update::Settled { position: self.position, outcome };
        // A receiver that is gone has no use for it.
        self.updates.send(settled).await.ok();
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
                }
            }
            if !waited {
                break;
            }
            ready = self.pipeline.plan(&readable, &self.cancel).await;
        }
        match ready {
            Ok(ready) => {
                self.pipeline.perform(self.position, ready, &self.cancel, &self.updates).await
            }
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
