//! The loop, whole, without I/O: model, tools, clock and record come in, events go out.
//!
//! One *step* is a request, its answer, and one settled slot per call of the answer. A *turn* is the
//! steps from a prompt to an answer without calls. Whatever happens in between (a failure, an abort,
//! a budget that runs out), the record stays one that can be sent to any model.

use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use toolwright_llm::{
    Event as ModelEvent, Failure, FailureKind, Finish, FinishReason, Model, Price, Reply,
    ReplyBlock, ReplyBuilder, ReplyKind, Request, ToolChoice,
};
use toolwright_session::{
    DeltaKind, Entry, LogError, Outcome, ReplyPart, Session, StepBlock, TurnStatus,
};
use toolwright_tool::{CallRequest, FinalAnswer, Pipeline, Update};

use crate::event::Event;
use crate::journal::Record;

/// Time, as the loop sees it; tests turn it by hand.
pub trait Clock: Send + Sync {
    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()>;
}

pub struct SystemClock;

impl Clock for SystemClock {
    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        Box::pin(tokio::time::sleep(duration))
    }
}

/// What a turn may cost. Running out of it ends with a summary, not with a cut.
#[derive(Debug, Clone, Copy)]
pub struct Budget {
    /// Requests to the model.
    pub steps: usize,
    pub time: Option<Duration>,
    /// US dollars; counts only where the price is known.
    pub cost: Option<f64>,
}

impl Default for Budget {
    fn default() -> Self {
        Self { steps: 200, time: None, cost: None }
    }
}

/// Bytes of one answer. A model that repeats itself for ever must not fill memory and disk.
const REPLY_CAP_BYTES: usize = 32 << 20;

/// How often a model is told to use the form it was asked for.
const REMINDERS: u32 = 2;

/// How long the closing summary may take once the time is up.
const SUMMARY_TIME: Duration = Duration::from_secs(30);

/// Everything that the loop works with.
pub(crate) struct World<'a> {
    pub model: &'a dyn Model,
    pub pipeline: &'a Pipeline,
    pub record: &'a mut Record,
    pub clock: &'a dyn Clock,
    pub events: &'a mpsc::Sender<Event>,
    pub cancel: &'a CancellationToken,
    /// The request without its turns.
    pub template: &'a Request,
    pub budget: Budget,
    pub price: Option<&'a Price>,
}

/// Why a turn is over.
pub(crate) enum Over {
    Done,
    Failed(Failure),
    /// Our own machinery failed: the log, a tool's inside.
    Broken(String),
    OutOfBudget(&'static str),
    Interrupted,
}

impl Over {
    pub(crate) fn status(&self) -> TurnStatus {
        match self {
            Self::Done => TurnStatus::Done,
            Self::Failed(_) | Self::Broken(_) => TurnStatus::Failed,
            Self::OutOfBudget(_) => TurnStatus::OutOfBudget,
            Self::Interrupted => TurnStatus::Interrupted,
        }
    }
}

impl From<LogError> for Over {
    fn from(error: LogError) -> Self {
        Self::Broken(error.to_string())
    }
}

/// Runs steps until the turn is over. The prompt stands in the record already.
pub(crate) async fn run_turn(world: World<'_>) -> Over {
    let time_is_up = CancellationToken::new();
    let limit = world.budget.time.map(|time| world.clock.sleep(time));
    let alarm = async {
        if let Some(limit) = limit {
            limit.await;
            time_is_up.cancel();
        }
        // The steps see the token and come to their end by themselves.
        std::future::pending::<Over>().await
    };
    let mut turn =
        Turn { world, time_is_up: time_is_up.clone(), syncing: None, spent: 0.0, reminders: 0 };
    tokio::select! {
        over = turn.run() => over,
        over = alarm => over,
    }
}

struct Turn<'a> {
    world: World<'a>,
    time_is_up: CancellationToken,
    /// The newest step's way to the disk, under way beside the next request.
    syncing: Option<AbortOnDropHandle<Result<(), LogError>>>,
    /// US dollars.
    spent: f64,
    /// How often the model was told to give its answer in a form.
    reminders: u32,
}

/// What a step leaves to do.
enum StepEnd {
    Answered,
    MoreToDo,
    TimeIsUp,
}

impl Turn<'_> {
    async fn run(&mut self) -> Over {
        let over = match self.steps().await {
            Ok(over) | Err(over) => over,
        };
        match self.finish_sync().await {
            Ok(()) => over,
            Err(broken) => broken,
        }
    }

    async fn steps(&mut self) -> Result<Over, Over> {
        // From here on the prompt survives a power cut.
        self.world.record.sync().await?;
        for _ in 0..self.world.budget.steps {
            match self.step(ToolChoice::Auto).await? {
                StepEnd::Answered => return Ok(Over::Done),
                StepEnd::MoreToDo if self.is_spent() => return self.close("money").await,
                StepEnd::MoreToDo => {}
                StepEnd::TimeIsUp => return self.close("time").await,
            }
        }
        self.close("steps").await
    }

    fn wants_final_answer(&self) -> bool {
        self.world.template.tools.iter().any(|tool| tool.name == FinalAnswer::NAME)
    }

    fn has_final_answer(&self) -> bool {
        let step = self.world.record.session().last_step();
        let outcomes = step.into_iter().flat_map(|s| s.calls()).filter_map(|c| c.outcome());
        outcomes.into_iter().any(|o| FinalAnswer::captured(&o.details).is_some())
    }

    /// The model answered in words where a form was asked for: told so, a few times.
    fn insist_on_final_answer(&mut self) -> Result<StepEnd, Over> {
        self.reminders += 1;
        if self.reminders > REMINDERS {
            let text = "the model did not give its answer in the form that was asked for";
            return Err(Over::Failed(Failure::new(FailureKind::Protocol, text)));
        }
        let text = format!(
            "Give your answer by calling the {} tool, with arguments that fit its schema.",
            FinalAnswer::NAME
        );
        self.world.record.add(Entry::Note { text })?;
        Ok(StepEnd::MoreToDo)
    }

    fn is_spent(&self) -> bool {
        self.world.budget.cost.is_some_and(|budget| self.spent >= budget)
    }

    /// The budget is used up: one last answer, without tools, so that the work so far is not lost.
    async fn close(&mut self, what: &'static str) -> Result<Over, Over> {
        let text = format!(
            "The budget for this turn is used up ({what}). Do not call tools. Summarise what was done, \
             what is left to do, and what the user should do next."
        );
        self.world.record.add(Entry::Note { text })?;
        self.time_is_up = CancellationToken::new();
        let patience = self.world.clock.sleep(SUMMARY_TIME);
        let over = Over::OutOfBudget(what);
        tokio::select! {
            end = self.step(ToolChoice::None) => end.map(|_| over),
            () = patience => Ok(over),
        }
    }

    async fn step(&mut self, tool_choice: ToolChoice) -> Result<StepEnd, Over> {
        if self.world.cancel.is_cancelled() {
            return Err(Over::Interrupted);
        }
        let model = self.world.model.origin().clone();
        let turns = self.world.record.session_mut().turns();
        let request = Request { turns, tool_choice, ..self.world.template.clone() };
        self.world.record.add(Entry::StepStarted { model })?;
        self.emit(Event::StepStarted).await;
        let Some(reply) = self.listen(request).await? else { return Ok(StepEnd::TimeIsUp) };
        let Reply { blocks, usage, finish } = reply;
        let finish = finish.unwrap_or(Finish { reason: FinishReason::Unknown, raw: String::new() });
        let parts = reply_parts(blocks, self.world.record.session());
        let cost = self.world.price.map(|price| price.of(&usage));
        self.spent += cost.unwrap_or(0.0);
        let calls = call_requests(&parts, finish.reason == FinishReason::Length);
        let odd = odd_ending(&parts, finish.reason);
        self.world.record.add(Entry::Reply { parts, usage, finish: finish.clone(), cost })?;
        self.emit_blocks().await;
        let reason = finish.reason;
        self.emit(Event::StepEnded { usage, finish, cost }).await;

        if calls.is_empty() && reason == FinishReason::Pause {
            return Ok(StepEnd::MoreToDo);
        }
        if calls.is_empty() {
            return match odd {
                None if self.wants_final_answer() && tool_choice == ToolChoice::Auto => {
                    self.insist_on_final_answer()
                }
                None => Ok(StepEnd::Answered),
                Some(failure) => Err(Over::Failed(failure)),
            };
        }
        if tool_choice == ToolChoice::None {
            // It was told not to; the slots are answered as not started.
            return Ok(StepEnd::Answered);
        }
        self.run_calls(calls).await?;
        self.start_sync().await?;
        if self.has_final_answer() {
            return Ok(StepEnd::Answered);
        }
        if self.world.cancel.is_cancelled() {
            return Err(Over::Interrupted);
        }
        Ok(if self.time_is_up.is_cancelled() { StepEnd::TimeIsUp } else { StepEnd::MoreToDo })
    }

    /// Takes in one answer. Nothing if the time ran out before it was whole.
    async fn listen(&mut self, request: Request) -> Result<Option<Reply>, Over> {
        let mut builder = ReplyBuilder::default();
        let heard = self.hear(request, &mut builder).await;
        match heard {
            Ok(true) => Ok(Some(builder.build())),
            unfinished => {
                self.keep_partial(builder);
                unfinished.map(|_| None)
            }
        }
    }

    /// What was shown of an answer that never became whole.
    fn keep_partial(&mut self, builder: ReplyBuilder) {
        for block in builder.build().blocks {
            let (kind, text) = match block.kind {
                ReplyKind::Text(text) | ReplyKind::Refusal(text) => (DeltaKind::Text, text),
                ReplyKind::Reasoning(text) => (DeltaKind::Reasoning, text),
                ReplyKind::Call { .. } | ReplyKind::ServerTool { .. } => continue,
            };
            if !text.is_empty() {
                self.world.record.fold_only(Entry::Delta { kind, text });
            }
        }
    }

    /// Whether the answer became whole; not, if the time ran out.
    async fn hear(&mut self, request: Request, builder: &mut ReplyBuilder) -> Result<bool, Over> {
        let mut stream = self.world.model.stream(request);
        let mut heard = 0;
        loop {
            let event = tokio::select! {
                biased;
                () = self.world.cancel.cancelled() => return Err(Over::Interrupted),
                () = self.time_is_up.cancelled() => return Ok(false),
                event = stream.next() => event,
            };
            let Some(event) = event else {
                // Against the contract; treated as what it looks like.
                let text = "the model's stream stopped without an end";
                return Err(Over::Failed(Failure::new(FailureKind::Truncated, text)));
            };
            builder.apply(&event);
            heard += size_of_delta(&event);
            if heard > REPLY_CAP_BYTES {
                let text = format!("the answer grew beyond {} MiB", REPLY_CAP_BYTES >> 20);
                let failure = Failure::new(FailureKind::Protocol, text);
                let usage = builder.usage();
                self.world.record.add(Entry::StepFailed { failure: failure.clone(), usage })?;
                return Err(Over::Failed(failure));
            }
            match event {
                ModelEvent::Text { delta, .. } if delta.is_empty() => {}
                ModelEvent::Text { delta, .. } | ModelEvent::Refusal { delta, .. } => {
                    self.delta(DeltaKind::Text, delta).await?;
                }
                ModelEvent::Notice(text) => self.emit(Event::Notice { text }).await,
                ModelEvent::Reasoning { delta, .. } => {
                    self.delta(DeltaKind::Reasoning, delta).await?;
                }
                ModelEvent::CallStart { name, .. } => {
                    self.emit(Event::CallAnnounced { name }).await;
                }
                ModelEvent::Retrying { attempt, delay, cause } => {
                    self.emit(Event::Retrying { attempt, delay, cause }).await;
                }
                ModelEvent::Failed(failure) => {
                    let usage = builder.usage();
                    self.world.record.add(Entry::StepFailed { failure: failure.clone(), usage })?;
                    return Err(Over::Failed(failure));
                }
                ModelEvent::Finish(_) => return Ok(true),
                ModelEvent::CallArguments { .. }
                | ModelEvent::CallReplace { .. }
                | ModelEvent::ServerTool { .. }
                | ModelEvent::Started { .. }
                | ModelEvent::BlockEnd { .. }
                | ModelEvent::Usage { .. } => {}
            }
        }
    }

    async fn delta(&mut self, kind: DeltaKind, text: String) -> Result<(), Over> {
        let entry = Entry::Delta { kind, text };
        self.world.record.log_only(&entry)?;
        let Entry::Delta { text, .. } = entry else { return Ok(()) };
        self.emit(match kind {
            DeltaKind::Text => Event::Text { delta: text },
            DeltaKind::Reasoning => Event::Reasoning { delta: text },
        })
        .await;
        Ok(())
    }

    /// Runs the newest reply's calls and records what becomes of them.
    async fn run_calls(&mut self, calls: Vec<CallRequest>) -> Result<(), Over> {
        let stop = self.world.cancel.child_token();
        let (sender, mut updates) = mpsc::channel(64);
        let pipeline = self.world.pipeline.clone();
        let running = pipeline.run_calls(calls, stop.clone(), sender);
        tokio::pin!(running);
        let mut finished = false;
        let mut broken = None;
        let mut batch = Vec::new();
        loop {
            tokio::select! {
                biased;
                () = self.time_is_up.cancelled(), if !stop.is_cancelled() => stop.cancel(),
                count = updates.recv_many(&mut batch, 64) => {
                    if count == 0 {
                        break;
                    }
                    // After a fault nothing new may start, but what runs is still seen to its end.
                    let result = self.take_updates(batch.drain(..), broken.is_some()).await;
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
        nothing_new: bool,
    ) -> Result<(), Over> {
        let mut starting = Vec::new();
        let mut any_effects = false;
        let mut result = Ok(());
        for update in batch {
            match update {
                Update::Starting { position, tool, summary, effects, decision, go } => {
                    // Dropping `go` tells the call not to start.
                    if nothing_new || result.is_err() {
                        continue;
                    }
                    let entry = Entry::CallStarted {
                        call: position,
                        tool: tool.clone(),
                        summary: summary.clone(),
                        effects,
                        decision,
                    };
                    match self.world.record.add(entry) {
                        Ok(()) => {
                            any_effects |= effects;
                            starting.push((position, tool, summary, go));
                        }
                        Err(error) => result = Err(error.into()),
                    }
                }
                Update::Progress { position, text } => {
                    self.emit(Event::CallProgress { position, text }).await;
                }
                Update::Settled { position, outcome } => {
                    let entry = Entry::CallSettled { call: position, outcome: outcome.clone() };
                    match self.world.record.add(entry) {
                        Ok(()) => self.emit_settled(position, outcome).await,
                        Err(error) => result = Err(error.into()),
                    }
                }
                Update::Fatal { message } => result = Err(Over::Broken(message)),
            }
        }
        result?;
        if any_effects {
            self.world.record.sync().await?;
        }
        for (position, tool, summary, go) in starting {
            let call = self.call_id(position);
            self.emit(Event::CallStarted { position, call, tool, summary }).await;
            // A call that was cancelled meanwhile no longer waits for this.
            go.send(()).ok();
        }
        Ok(())
    }

    fn call_id(&self, position: usize) -> String {
        let step = self.world.record.session().last_step();
        step.and_then(|s| s.calls().nth(position)).map(|c| c.id.clone()).unwrap_or_default()
    }

    async fn emit_settled(&self, position: usize, outcome: Outcome) {
        let step = self.world.record.session().last_step();
        let call = step.and_then(|s| s.calls().nth(position));
        let (id, arguments) = call.map(|c| (c.id.clone(), c.arguments.clone())).unwrap_or_default();
        self.emit(Event::CallSettled { position, call: id, arguments, outcome }).await;
    }

    /// The texts of the newest answer, whole, from where they are kept.
    async fn emit_blocks(&self) {
        let blocks = self.world.record.session().last_step().map_or(0, |step| step.blocks.len());
        for at in 0..blocks {
            let event = match self.world.record.session().last_step().map(|s| &s.blocks[at]) {
                Some(StepBlock::Text { text, .. }) => Event::TextDone { text: text.clone() },
                Some(StepBlock::Reasoning { text, .. }) if !text.is_empty() => {
                    Event::ReasoningDone { text: text.clone() }
                }
                _ => continue,
            };
            self.emit(event).await;
        }
    }

    /// Never outlasts an abort: a face that reads slowly must not hold up the loop.
    async fn emit(&self, event: Event) {
        tokio::select! {
            biased;
            // A face that is gone has no use for events; the record has everything.
            _ = self.world.events.send(event) => {}
            () = self.world.cancel.cancelled() => {}
        }
    }

    async fn start_sync(&mut self) -> Result<(), Over> {
        self.finish_sync().await?;
        self.syncing = Some(AbortOnDropHandle::new(tokio::spawn(self.world.record.sync())));
        Ok(())
    }

    async fn finish_sync(&mut self) -> Result<(), Over> {
        let Some(sync) = self.syncing.take() else { return Ok(()) };
        match sync.await {
            Ok(result) => Ok(result?),
            Err(crash) => Err(Over::Broken(format!("saving the session crashed: {crash}"))),
        }
    }
}

/// What is wrong with an answer that ends a turn, if anything: it is kept and shown, but it is no
/// success.
fn odd_ending(parts: &[ReplyPart], reason: FinishReason) -> Option<Failure> {
    let said = |p: &ReplyPart| matches!(p, ReplyPart::Text { text, .. } if !text.trim().is_empty());
    let failure = |kind, text: &str| Some(Failure::new(kind, text));
    match reason {
        FinishReason::ContentFilter => {
            failure(FailureKind::Refused, "the provider refused to answer")
        }
        FinishReason::Length => {
            failure(FailureKind::Truncated, "the answer was cut at the model's output limit")
        }
        _ if !parts.iter().any(said) => {
            failure(FailureKind::Truncated, "the model gave an empty answer")
        }
        _ => None,
    }
}

/// The reply in the record's form, with call ids that are there and differ from all in the session.
fn reply_parts(blocks: Vec<ReplyBlock>, session: &Session) -> Vec<ReplyPart> {
    let step = session.step_count();
    let mut seen: Vec<String> = Vec::new();
    let part = |block: ReplyBlock| {
        let opaque = block.opaque;
        Some(match block.kind {
            // Nothing was said and nothing hangs on it.
            ReplyKind::Text(text) if text.is_empty() && opaque.is_none() => return None,
            ReplyKind::Text(text) => ReplyPart::Text { text, opaque },
            // To people and to later requests, a refusal is what was said.
            ReplyKind::Refusal(text) => ReplyPart::Text { text, opaque },
            ReplyKind::Reasoning(text) => ReplyPart::Reasoning { text, opaque },
            ReplyKind::ServerTool { kind, name, .. } => {
                let opaque = opaque.unwrap_or_default();
                ReplyPart::ServerTool { name: name.unwrap_or(kind), opaque }
            }
            ReplyKind::Call { id, name, arguments } => {
                let number = seen.len();
                let id = match id {
                    id if id.is_empty() => format!("call_{step}_{number}"),
                    id if seen.contains(&id) || session.has_call(&id) => {
                        format!("{id}_{step}_{number}")
                    }
                    id => id,
                };
                seen.push(id.clone());
                ReplyPart::Call { id, name, arguments, opaque }
            }
        })
    };
    blocks.into_iter().filter_map(part).collect()
}

/// What any event costs, so that endless small ones come to an end too.
const EVENT_BYTES: usize = 64;

fn size_of_delta(event: &ModelEvent) -> usize {
    match event {
        ModelEvent::Text { delta, .. }
        | ModelEvent::Reasoning { delta, .. }
        | ModelEvent::Refusal { delta, .. }
        | ModelEvent::CallArguments { delta, .. } => delta.len() + EVENT_BYTES,
        ModelEvent::CallReplace { arguments, .. } => {
            arguments.as_ref().map_or(0, String::len) + EVENT_BYTES
        }
        ModelEvent::ServerTool { opaque, .. } => opaque.to_string().len() + EVENT_BYTES,
        _ => EVENT_BYTES,
    }
}

fn call_requests(parts: &[ReplyPart], cut: bool) -> Vec<CallRequest> {
    let call = |part: &ReplyPart| match part {
        ReplyPart::Call { name, arguments, .. } => {
            Some(CallRequest { name: name.clone(), arguments: arguments.clone(), cut })
        }
        _ => None,
    };
    parts.iter().filter_map(call).collect()
}
