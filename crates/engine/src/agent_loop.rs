//! The loop, whole, without I/O: model, tools, clock, inbox and record come in, events go out.
//!
//! One *step* is a request, its answer, and one settled slot per call of the answer. A *turn* is the
//! steps from a prompt to an answer without calls. Between two steps is the *boundary*: what people
//! said meanwhile is delivered there, and room is made. Whatever happens in between (a failure, an
//! abort, a budget that runs out), the record stays one that can be sent to any model.
//!
//! The stages of a step are told in files of their own: `listen` (the answer arrives), `calls` (its
//! calls run), `room` (the conversation is shortened).

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde_json::json;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use toolwright_llm::{
    Content, Failure, FailureKind, Finish, FinishReason, Model, Price, Reply, Request, ToolChoice,
};
use toolwright_permission::Request as PermissionRequest;
use toolwright_session::{Entry, LogError, QueueKind, TurnStatus, fail_point};
use toolwright_tool::{CallRequest, Decision, EarlyCalls, FinalAnswer, Hint, Pipeline, Question};

use crate::answer::{Oddity, call_requests, reply_parts};
use crate::answer_form;
use crate::budget::Budget;
use crate::doom::{Circle, DoomGuard};
use crate::event::Event;
use crate::hooks::{Hooks, Point};
use crate::inbox::{Command, Inbox};
use crate::journal::Record;
use crate::offer::ToolList;
use crate::room::{RoomOptions, Tally};

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

/// How often a model is told to use the form it was asked for.
const REMINDERS: u32 = 2;

/// How often in a row an answer that was cut or empty is asked to go on.
const NUDGES: u32 = 3;

/// How often in a row a hook may send the model back to work.
const SENT_BACK: u32 = 5;

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
    pub inbox: &'a Inbox,
    pub hooks: &'a Hooks,
    /// The request without its turns.
    pub template: &'a mut Request,
    pub tools: &'a mut ToolList,
    pub budget: &'a Budget,
    pub price: Option<&'a Price>,
    pub agent: &'a str,
    pub room: &'a RoomOptions,
    pub tally: &'a mut Tally,
    /// Jobs of an earlier process, of which the model has not been told.
    pub lost_jobs: &'a mut BTreeMap<String, String>,
}

/// Why a turn is over.
pub(crate) enum Over {
    Done,
    Failed(Failure),
    /// Our own machinery failed: the log, a tool's inside.
    Broken(String),
    /// The model goes round in circles.
    Circling(String),
    OutOfBudget(&'static str),
    Interrupted,
}

impl Over {
    pub(crate) fn status(&self) -> TurnStatus {
        match self {
            Self::Done => TurnStatus::Done,
            Self::Failed(_) | Self::Broken(_) | Self::Circling(_) => TurnStatus::Failed,
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
    let mut turn = Turn::new(world, time_is_up.clone());
    tokio::select! {
        over = turn.run() => over,
        over = alarm => over,
    }
}

/// Makes room once, because somebody asked for it.
pub(crate) async fn compact_now(world: World<'_>) -> Result<bool, Over> {
    Turn::new(world, CancellationToken::new()).compact("asked for").await
}

pub(crate) struct Turn<'a> {
    pub(crate) world: World<'a>,
    pub(crate) time_is_up: CancellationToken,
    /// The newest step's way to the disk, under way beside the next request.
    syncing: Option<AbortOnDropHandle<Result<(), LogError>>>,
    pub(crate) guard: DoomGuard,
    pub(crate) circle: Option<Circle>,
    /// How often the model was told to give its answer in a form.
    reminders: u32,
    nudges: u32,
    sent_back: u32,
    /// Room was made for an overflow and no answer has come since.
    overflowed: bool,
    /// Somebody asked for room.
    wants_room: bool,
}

/// What a step leaves to do.
enum StepEnd {
    Answered,
    MoreToDo,
    TimeIsUp,
}

impl<'a> Turn<'a> {
    fn new(world: World<'a>, time_is_up: CancellationToken) -> Self {
        Self {
            world,
            time_is_up,
            syncing: None,
            guard: DoomGuard::default(),
            circle: None,
            reminders: 0,
            nudges: 0,
            sent_back: 0,
            overflowed: false,
            wants_room: false,
        }
    }

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
        if self.has_open_calls() {
            self.go_on_with_calls().await?;
        }
        self.tell_of_lost_jobs()?;
        let mut steps = 0;
        while steps < self.world.budget.steps {
            self.boundary().await?;
            let end = match self.step(ToolChoice::Auto).await {
                Err(Over::Failed(failure)) if self.can_make_room_for(&failure) => {
                    self.overflowed = true;
                    // The request never counted: it gave no answer.
                    match self.compact("the context is full").await? {
                        true => continue,
                        false => return Err(Over::Failed(failure)),
                    }
                }
                end => end?,
            };
            self.overflowed = false;
            steps += 1;
            match end {
                StepEnd::Answered if self.goes_on().await? => {}
                StepEnd::Answered => return Ok(Over::Done),
                StepEnd::MoreToDo => {}
                StepEnd::TimeIsUp => return self.close("time").await,
            }
            if self.world.budget.purse.is_empty() {
                return self.close("money").await;
            }
        }
        self.close("steps").await
    }

    fn has_open_calls(&self) -> bool {
        let step = self.world.record.session().last_step();
        step.is_some_and(|step| step.calls().any(|call| call.outcome().is_none()))
    }

    /// A turn that was cut off between an answer and its results: questions are asked again, and what
    /// had not begun begins.
    async fn go_on_with_calls(&mut self) -> Result<(), Over> {
        self.run_open_calls().await?;
        self.start_sync().await?;
        match self.world.cancel.is_cancelled() {
            true => Err(Over::Interrupted),
            false => Ok(()),
        }
    }

    /// Jobs end with their process; a model that waits for one should know.
    fn tell_of_lost_jobs(&mut self) -> Result<(), Over> {
        let lost = std::mem::take(self.world.lost_jobs);
        if lost.is_empty() {
            return Ok(());
        }
        let named: Vec<String> = lost.iter().map(|(id, what)| format!("{id} ({what})")).collect();
        let text = format!(
            "These jobs are not running any more, they ended with the process that ran them: {}. \
             Start a command again if it is still needed.",
            named.join(", ")
        );
        self.world.record.add(Entry::JobsEnded { jobs: lost.into_keys().collect() })?;
        self.world.record.add(Entry::Note { text })?;
        Ok(())
    }

    fn can_make_room_for(&self, failure: &Failure) -> bool {
        failure.kind == FailureKind::ContextOverflow && !self.overflowed && self.world.room.auto
    }

    /// Between two steps: what was said meanwhile is delivered, and room is made where it is needed.
    async fn boundary(&mut self) -> Result<(), Over> {
        self.take_in().await?;
        if let Some(reason) = self.world.hooks.take_stop() {
            return Err(Over::Broken(format!("a hook stopped the turn: {reason}")));
        }
        self.deliver_steers().await?;
        let World { tools, pipeline, template, hooks, .. } = &mut self.world;
        tools.refresh(pipeline.registry(), template, hooks).await;
        for text in self.world.hooks.take_notices() {
            self.emit(Event::Notice { text }).await;
        }
        let asked = std::mem::take(&mut self.wants_room);
        if asked {
            self.compact("asked for").await?;
        } else {
            self.make_room().await?;
        }
        Ok(())
    }

    /// Whether something keeps the turn going although the model has answered.
    async fn goes_on(&mut self) -> Result<bool, Over> {
        self.take_in().await?;
        if self.has_steer() {
            return Ok(true);
        }
        if !self.world.hooks.any(Point::Stop) || self.sent_back >= SENT_BACK {
            return Ok(false);
        }
        let answer = crate::settle::answer(self.world.record.session());
        let input = json!({ "answer": answer.as_ref(), "stop_hook_active": self.sent_back > 0 });
        let ran = tokio::select! {
            ran = self.world.hooks.run(Point::Stop, &input, json!({})) => ran,
            () = self.world.cancel.cancelled() => return Err(Over::Interrupted),
        };
        let Some(reason) = ran.block else { return Ok(false) };
        self.sent_back += 1;
        self.world.record.add(Entry::Note { text: reason })?;
        Ok(true)
    }

    /// Records what came in while nobody looked.
    pub(crate) async fn take_in(&mut self) -> Result<(), Over> {
        for command in self.world.inbox.take() {
            match command {
                Command::Say(message) => {
                    let (id, kind) = (message.id, message.kind);
                    self.world.record.add(Entry::Queued(message))?;
                    self.emit(Event::Queued { id, kind }).await;
                }
                Command::Withdraw(id) => {
                    if self.world.record.session().queued().iter().any(|m| m.id == id) {
                        self.world.record.add(Entry::Unqueued { id })?;
                        self.emit(Event::Withdrawn { id }).await;
                    }
                }
                Command::Compact => self.wants_room = true,
            }
        }
        Ok(())
    }

    pub(crate) fn has_steer(&self) -> bool {
        let queued = self.world.record.session().queued();
        queued.iter().any(|message| message.kind == QueueKind::Steer)
    }

    async fn deliver_steers(&mut self) -> Result<(), Over> {
        let steers = self.world.record.session().queued().iter();
        let steers: Vec<_> = steers.filter(|m| m.kind == QueueKind::Steer).cloned().collect();
        for message in steers {
            let content = match self.show_steer_to_hooks(message.content).await {
                Ok(content) => content,
                Err(reason) => {
                    self.world.record.add(Entry::Unqueued { id: message.id })?;
                    self.emit(Event::Withdrawn { id: message.id }).await;
                    let text = format!("a hook refused what was said: {reason}");
                    self.emit(Event::Notice { text }).await;
                    continue;
                }
            };
            let prompt = Entry::Prompt {
                content,
                agent: self.world.agent.to_owned(),
                model: self.world.model.origin().clone(),
                steer: true,
                queued: Some(message.id),
            };
            self.world.record.add(prompt)?;
            crate::undo::begin_turn(self.world.pipeline, self.world.record.session());
            self.emit(Event::Delivered { id: message.id }).await;
        }
        Ok(())
    }

    /// As a prompt is shown to them; an abort is seen by the step that follows.
    async fn show_steer_to_hooks(&self, content: Vec<Content>) -> Result<Vec<Content>, String> {
        let about = json!({
            "agent": self.world.agent, "model": self.world.model.origin().to_string(),
        });
        tokio::select! {
            looked = crate::hooks::show_prompt(self.world.hooks, &about, content.clone()) => looked,
            () = self.world.cancel.cancelled() => Ok(content),
            () = self.time_is_up.cancelled() => Ok(content),
        }
    }

    fn wants_final_answer(&self) -> bool {
        answer_form::is_wanted(self.world.template)
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
        let text = answer_form::reminder(self.world.template);
        self.world.record.add(Entry::Note { text })?;
        Ok(StepEnd::MoreToDo)
    }

    /// The budget is used up: one last answer, without tools, so that the work so far is not lost.
    async fn close(&mut self, what: &'static str) -> Result<Over, Over> {
        let text = format!(
            "The budget for this turn is used up ({what}). Do not call tools. Summarise what was done, \
             what is left to do, and what the user should do next."
        );
        self.world.record.add(Entry::Note { text })?;
        let time_is_up = CancellationToken::new();
        self.time_is_up = time_is_up.clone();
        let patience = self.world.clock.sleep(SUMMARY_TIME);
        let alarm = async {
            patience.await;
            // Not dropped from outside: what was said until then is kept.
            time_is_up.cancel();
            std::future::pending::<Result<StepEnd, Over>>().await
        };
        let end = tokio::select! {
            end = self.step(ToolChoice::None) => end,
            end = alarm => end,
        };
        end.map(|_| Over::OutOfBudget(what))
    }

    async fn step(&mut self, tool_choice: ToolChoice) -> Result<StepEnd, Over> {
        if self.world.cancel.is_cancelled() {
            return Err(Over::Interrupted);
        }
        let model = self.world.model.origin().clone();
        let turns = self.world.record.session_mut().turns();
        let mut request = Request { turns, tool_choice, ..self.world.template.clone() };
        self.show_request(&mut request).await;
        self.world.record.add(Entry::StepStarted { model })?;
        self.emit(Event::StepStarted).await;
        let may_start_early = tool_choice == ToolChoice::Auto;
        let Some((reply, early)) = self.listen(request, may_start_early).await? else {
            return Ok(StepEnd::TimeIsUp);
        };
        fail_point("step.heard");
        let Reply { blocks, usage, finish } = reply;
        let finish = finish.unwrap_or(Finish { reason: FinishReason::Unknown, raw: String::new() });
        let mut parts = reply_parts(blocks, self.world.record.session());
        if self.wants_final_answer() && tool_choice == ToolChoice::Auto {
            parts = answer_form::adopt(parts, self.world.record.session().step_count());
        }
        self.show_texts(&mut parts).await;
        let cost = self.world.price.map(|price| price.of(&usage));
        self.world.budget.purse.spend(cost.unwrap_or(0.0));
        let calls = call_requests(&parts, finish.reason == FinishReason::Length);
        let oddity = Oddity::of(&parts, finish.reason);
        self.world.record.add(Entry::Reply { parts, usage, finish: finish.clone(), cost })?;
        self.emit_blocks().await;
        let reason = finish.reason;
        self.emit(Event::StepEnded { usage, finish, cost }).await;
        if calls.is_empty() && reason == FinishReason::Pause {
            return Ok(StepEnd::MoreToDo);
        }
        if calls.is_empty() {
            return self.answered(oddity, tool_choice);
        }
        if tool_choice == ToolChoice::None {
            // It was told not to; the slots are answered as not started.
            return Ok(StepEnd::Answered);
        }
        self.nudges = 0;
        self.do_calls(calls, early).await
    }

    /// An answer without calls.
    fn answered(
        &mut self,
        oddity: Option<Oddity>,
        tool_choice: ToolChoice,
    ) -> Result<StepEnd, Over> {
        let Some(oddity) = oddity else {
            let in_words = self.wants_final_answer() && tool_choice == ToolChoice::Auto;
            return if in_words { self.insist_on_final_answer() } else { Ok(StepEnd::Answered) };
        };
        self.nudges += 1;
        match oddity.note().filter(|_| self.nudges <= NUDGES && tool_choice == ToolChoice::Auto) {
            Some(note) => {
                self.world.record.add(Entry::Note { text: note.to_owned() })?;
                Ok(StepEnd::MoreToDo)
            }
            None => Err(Over::Failed(oddity.failure())),
        }
    }

    async fn do_calls(
        &mut self,
        calls: Vec<CallRequest>,
        early: EarlyCalls,
    ) -> Result<StepEnd, Over> {
        self.run_calls(calls, early).await?;
        self.start_sync().await?;
        if self.has_final_answer() {
            return Ok(StepEnd::Answered);
        }
        if self.world.cancel.is_cancelled() {
            return Err(Over::Interrupted);
        }
        if let Some(circle) = self.circle.take() {
            self.break_circle(circle).await?;
        }
        Ok(if self.time_is_up.is_cancelled() { StepEnd::TimeIsUp } else { StepEnd::MoreToDo })
    }

    /// First the model is told, then a person decides, then it is over.
    async fn break_circle(&mut self, circle: Circle) -> Result<(), Over> {
        let (Circle::Tell { tool, times }
        | Circle::Ask { tool, times }
        | Circle::Stop { tool, times }) = &circle;
        let summary = format!("{tool}: the same call with the same result, {times} times");
        let request = PermissionRequest {
            permission: "doom_loop".to_owned(),
            pattern: tool.clone(),
            always: tool.clone(),
            read_only: true,
            ..PermissionRequest::default()
        };
        let gate = self.world.pipeline.gate();
        // A rule that allows it is the switch to turn this guard off.
        if gate.allows_by_rule(&request) {
            return Ok(());
        }
        match &circle {
            Circle::Tell { .. } => {}
            Circle::Stop { .. } => return Err(Over::Circling(summary)),
            Circle::Ask { tool, .. } => {
                let question = Question {
                    position: 0,
                    tool: tool.clone(),
                    arguments: serde_json::Value::Null,
                    summary: summary.clone(),
                    requests: vec![request],
                    preview: None,
                    hint: Hint::Nothing,
                };
                let decision = tokio::select! {
                    decision = gate.decide(&question) => decision,
                    () = self.world.cancel.cancelled() => return Err(Over::Interrupted),
                    // The closing summary comes next; nobody has to decide any more.
                    () = self.time_is_up.cancelled() => return Ok(()),
                };
                if let Decision::Deny { .. } = decision {
                    return Err(Over::Circling(summary));
                }
            }
        }
        self.emit(Event::Notice { text: format!("the model repeats itself: {summary}") }).await;
        self.world.record.add(Entry::Note { text: circle.note() })?;
        Ok(())
    }

    /// Never outlasts an abort: a face that reads slowly must not hold up the loop.
    pub(crate) async fn emit(&self, event: Event) {
        if self.world.hooks.any(Point::Event) {
            self.world.hooks.tell(&event);
        }
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
