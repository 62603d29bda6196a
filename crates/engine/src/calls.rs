//! The calls of one answer run, and what becomes of them is recorded.

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use toolwright_llm::FinishReason;
use toolwright_session::{Entry, Outcome, Session, fail_point};
use toolwright_tool::{Batch, CallRequest, EarlyCalls, Update};

use crate::agent_loop::{Over, Turn};
use crate::doom::Circle;
use crate::event::Event;

impl Turn<'_> {
    /// Those of the newest reply's calls that an earlier process never came to, or that only read.
    pub(crate) async fn run_open_calls(&mut self) -> Result<(), Over> {
        let (places, calls) = open_calls(self.world.record.session());
        self.run_some_calls(places, calls, EarlyCalls::default()).await
    }

    /// Runs the newest reply's calls and records what becomes of them.
    pub(crate) async fn run_calls(
        &mut self,
        calls: Vec<CallRequest>,
        early: EarlyCalls,
    ) -> Result<(), Over> {
        self.run_some_calls((0..calls.len()).collect(), calls, early).await
    }

    /// `places` says which of the reply's calls each one is.
    async fn run_some_calls(
        &mut self,
        places: Vec<usize>,
        calls: Vec<CallRequest>,
        early: EarlyCalls,
    ) -> Result<(), Over> {
        let stop = self.world.cancel.child_token();
        let skip = CancellationToken::new();
        // Somebody spoke while the answer was still coming.
        if self.has_steer() {
            skip.cancel();
        }
        self.guard.begin_step();
        let (sender, mut updates) = mpsc::channel(64);
        let pipeline = self.world.pipeline.clone();
        let step = self.world.record.session().step_count();
        let mut effects = vec![false; places.iter().max().map_or(0, |last| last + 1)];
        let batch = Batch { step, calls, early, skip: skip.clone() };
        let running = pipeline.run_calls(batch, stop.clone(), sender);
        tokio::pin!(running);
        let mut finished = false;
        let mut broken = None;
        let mut batch = Vec::new();
        loop {
            tokio::select! {
                biased;
                () = self.time_is_up.cancelled(), if !stop.is_cancelled() => stop.cancel(),
                () = self.world.inbox.arrived(), if broken.is_none() => {
                    match self.take_in().await {
                        Ok(()) if self.has_steer() => skip.cancel(),
                        Ok(()) => {}
                        Err(over) => {
                            stop.cancel();
                            broken = Some(over);
                        }
                    }
                }
                count = updates.recv_many(&mut batch, 64) => {
                    if count == 0 {
                        break;
                    }
                    // After a fault nothing new may start, but what runs is still seen to its end.
                    let nothing_new = broken.is_some();
                    let updates = batch.drain(..).map(|update| placed(update, &places));
                    let result = self.take_updates(updates, &mut effects, nothing_new).await;
                    if let Err(over) = result {
                        stop.cancel();
                        broken = broken.or(Some(over));
                    }
                }
                () = &mut running, if !finished => finished = true,
            }
        }
        broken.map_or(Ok(()), Err)
    }

    /// Records a batch of updates; starts what was recorded with one sync for all of it.
    async fn take_updates(
        &mut self,
        batch: impl Iterator<Item = Update>,
        has_effects: &mut [bool],
        nothing_new: bool,
    ) -> Result<(), Over> {
        let mut starting = Vec::new();
        let mut any_effects = false;
        let mut result = Ok(());
        for update in batch {
            match update {
                Update::Starting {
                    position,
                    tool,
                    summary,
                    effects,
                    touched,
                    decision,
                    changes,
                    go,
                } => {
                    // Dropping `go` tells the call not to start.
                    if nothing_new || result.is_err() {
                        continue;
                    }
                    if let Some(known) = has_effects.get_mut(position) {
                        *known = effects;
                    }
                    let entry = Entry::CallStarted {
                        call: position,
                        tool: tool.clone(),
                        summary: summary.clone(),
                        effects,
                        decision,
                        touched,
                    };
                    let told: Vec<u64> = changes.iter().map(|changed| changed.at).collect();
                    let changes = changes.into_iter().map(Entry::Changed);
                    let mut entries = std::iter::once(entry).chain(changes);
                    match entries.try_for_each(|entry| self.world.record.add(entry)) {
                        Ok(()) => {
                            told.into_iter().for_each(|at| self.noted(at));
                            any_effects |= effects;
                            starting.push((position, tool, summary, go));
                        }
                        Err(error) => result = Err(error.into()),
                    }
                }
                Update::Progress { position, text, keep: false } => {
                    self.emit(Event::CallProgress { position, text }).await;
                }
                Update::Progress { position, text, keep: true } => {
                    let entry = Entry::CallNoted { call: position, text };
                    if let Err(error) = self.world.record.add(entry) {
                        result = Err(error.into());
                    }
                }
                Update::Settled { position, outcome } => {
                    let effects = has_effects.get(position).copied().unwrap_or(false);
                    if let Err(over) = self.settle(position, outcome, effects).await {
                        result = Err(over);
                    }
                }
                Update::Changed(changed) => {
                    let at = changed.at;
                    match self.world.record.add(Entry::Changed(*changed)) {
                        Ok(()) => self.noted(at),
                        Err(error) => result = Err(error.into()),
                    }
                }
                Update::Fatal { message } => result = Err(Over::Broken(message)),
            }
        }
        result?;
        if any_effects {
            fail_point("call.recorded");
            self.world.record.sync().await?;
            fail_point("call.synced");
        }
        for (position, tool, summary, go) in starting {
            let call = self.call_id(position);
            self.emit(Event::CallStarted { position, call, tool, summary }).await;
            // A call that was cancelled meanwhile no longer waits for this.
            go.send(()).ok();
        }
        Ok(())
    }

    /// What became of files is on record.
    fn noted(&self, at: u64) {
        if let Some(keeper) = self.world.pipeline.keeper() {
            keeper.noted(at);
        }
    }

    async fn settle(
        &mut self,
        position: usize,
        outcome: Outcome,
        effects: bool,
    ) -> Result<(), Over> {
        fail_point("call.done");
        let entry = Entry::CallSettled { call: position, outcome: outcome.clone() };
        self.world.record.add(entry)?;
        fail_point("call.settled");
        let step = self.world.record.session().last_step();
        let call = step.and_then(|s| s.calls().nth(position));
        let (id, arguments) = call.map(|c| (c.id.clone(), c.arguments.clone())).unwrap_or_default();
        let circle = self.guard.saw(&arguments, &outcome, effects);
        if circle.as_ref().map(Circle::times) > self.circle.as_ref().map(Circle::times) {
            self.circle = circle;
        }
        self.emit(Event::CallSettled { position, call: id, arguments, outcome }).await;
        Ok(())
    }

    fn call_id(&self, position: usize) -> String {
        let step = self.world.record.session().last_step();
        step.and_then(|s| s.calls().nth(position)).map(|c| c.id.clone()).unwrap_or_default()
    }
}

/// The calls of the newest reply that have no result, with their places in it.
fn open_calls(session: &Session) -> (Vec<usize>, Vec<CallRequest>) {
    let Some(step) = session.last_step() else { return Default::default() };
    let cut = step.finish.as_ref().is_some_and(|f| f.reason == FinishReason::Length);
    let open = step.calls().enumerate().filter(|(_, call)| call.outcome().is_none());
    let request = |(place, call): (usize, &toolwright_session::Call)| {
        let (id, name) = (call.id.clone(), call.name.clone());
        (place, CallRequest { id, name, arguments: call.arguments.clone(), cut })
    };
    open.map(request).unzip()
}

/// An update with the place of its call in the reply.
fn placed(update: Update, places: &[usize]) -> Update {
    let mut update = update;
    match &mut update {
        Update::Starting { position, .. }
        | Update::Progress { position, .. }
        | Update::Settled { position, .. } => *position = places[*position],
        Update::Changed(_) | Update::Fatal { .. } => {}
    }
    update
}
