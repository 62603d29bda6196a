//! One session at work: takes prompts, runs turns, keeps the record.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use toolwright_llm::{Content, Effort, Model, Origin, Price, Request, Sampling, ToolChoice};
use toolwright_permission::Mode;
use toolwright_session::{Call, Entry, EntryId, LogError, MoveReason, Session, Slot, fail_point};
use toolwright_tool::{Pipeline, Registry};

use crate::agent_loop::{Clock, Over, SystemClock, World, compact_now, run_turn};
use crate::budget::Budget;
use crate::event::{Event, TurnEnd};
use crate::hooks::{Hooks, Point};
use crate::inbox::{Command, Inbox};
use crate::journal::Record;
use crate::offer::{ChooseTools, ToolList};
use crate::room::{RoomOptions, Tally};
use crate::settle::turn_end;
use crate::title::{FindNamer, Titler};

/// How long a cancelled turn waits for somebody to take its last event.
const LAST_WORD: Duration = Duration::from_millis(500);

pub struct EngineOptions {
    pub agent: String,
    /// For a new session; an old one goes on with its own.
    pub system: String,
    /// Everything in the registry, unless told otherwise.
    pub tools: ChooseTools,
    pub max_output_tokens: Option<u32>,
    pub sampling: Sampling,
    pub effort: Option<Effort>,
    /// What the provider is to hold the answer to, in place of a final-answer tool.
    pub output_schema: Option<Arc<serde_json::Value>>,
    pub price: Option<Price>,
    pub budget: Budget,
    pub clock: Arc<dyn Clock>,
    pub hooks: Arc<Hooks>,
    pub room: RoomOptions,
    /// Gives the model that names new sessions; they are called by their first prompt without it.
    pub namer: Option<FindNamer>,
}

impl EngineOptions {
    pub fn new(system: impl Into<String>) -> Self {
        Self {
            agent: "build".to_owned(),
            system: system.into(),
            tools: Arc::new(Registry::definitions),
            max_output_tokens: None,
            sampling: Sampling::default(),
            effort: None,
            output_schema: None,
            price: None,
            budget: Budget::default(),
            clock: Arc::new(SystemClock),
            hooks: Arc::default(),
            room: RoomOptions::default(),
            namer: None,
        }
    }
}

/// What another agent brings with it. Model, tools and rules are looked after by whoever has them.
pub struct AgentChange {
    pub agent: String,
    pub system: String,
    pub sampling: Sampling,
    pub effort: Option<Effort>,
    /// Model calls for one prompt.
    pub steps: usize,
}

pub struct Engine {
    model: Arc<dyn Model>,
    pub(crate) pipeline: Pipeline,
    pub(crate) record: Record,
    template: Request,
    tools: ToolList,
    budget: Budget,
    price: Option<Price>,
    clock: Arc<dyn Clock>,
    agent: String,
    hooks: Arc<Hooks>,
    room: RoomOptions,
    tally: Tally,
    inbox: Arc<Inbox>,
    /// What hooks want the model to know with the next prompt.
    context: Vec<String>,
    pub(crate) titler: Titler,
    /// Jobs of an earlier process, of which the model has not been told.
    lost_jobs: BTreeMap<String, String>,
}

/// Calls that have no result.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Left {
    /// Those that may have changed something.
    Effects,
    All,
}

impl Engine {
    /// Takes up a session, new or old. Calls that an earlier process left in the middle of an effect
    /// get their answer in the record now, so that it stays the same for ever.
    pub async fn new(
        model: Arc<dyn Model>,
        pipeline: Pipeline,
        mut record: Record,
        options: EngineOptions,
    ) -> Result<Self, LogError> {
        settle_open_calls(&mut record, Left::Effects)?;
        let lost_jobs = record.session().standing().jobs().clone();
        let EngineOptions { agent, system, hooks, .. } = options;
        let is_new = record.session().items().is_empty();
        let system = brief(&mut record, &hooks, model.origin(), &agent, system).await?;
        let mut context = Vec::new();
        if hooks.any(Point::SessionStart) {
            let source = if is_new { "startup" } else { "resume" };
            let ran = hooks.run(Point::SessionStart, &json!({ "source": source }), json!({})).await;
            context = ran.context;
        }
        let (tools, listed) = ToolList::new(options.tools, pipeline.registry(), &hooks).await;
        let template = Request {
            system: system.into(),
            turns: Vec::new(),
            tools: listed,
            tool_choice: ToolChoice::Auto,
            max_output_tokens: options.max_output_tokens,
            sampling: options.sampling,
            effort: options.effort,
            output_schema: options.output_schema,
            headers: Vec::new(),
        };
        let inbox = Arc::new(Inbox::behind(record.session().queued()));
        Ok(Self {
            model,
            pipeline,
            record,
            template,
            tools,
            budget: options.budget,
            price: options.price,
            clock: options.clock,
            agent,
            hooks,
            room: options.room,
            tally: Tally::default(),
            inbox,
            context,
            titler: Titler::new(options.namer),
            lost_jobs,
        })
    }

    pub fn agent(&self) -> &str {
        &self.agent
    }

    pub fn model(&self) -> &Origin {
        self.model.origin()
    }

    /// Goes on as another agent, from the next prompt on. Between turns only.
    pub async fn change_agent(&mut self, change: AgentChange) -> Result<(), LogError> {
        let AgentChange { agent, system, sampling, effort, steps } = change;
        let origin = self.model.origin();
        let system = brief(&mut self.record, &self.hooks, origin, &agent, system).await?;
        self.template.system = system.into();
        self.template.sampling = sampling;
        self.template.effort = effort;
        self.budget.steps = steps;
        self.agent = agent;
        Ok(())
    }

    /// Calls are shown to the hooks as they are now. Between turns only, after they were replaced.
    pub fn hooks_replaced(&mut self) {
        let watching = self.hooks.watch_calls().then(|| Arc::clone(&self.hooks) as _);
        self.pipeline.show_calls_to(watching);
    }

    pub fn session(&self) -> &Session {
        self.record.session()
    }

    /// Goes on behind another entry of the record, as if nothing had come after it. Between turns
    /// only.
    pub async fn move_to(&mut self, target: EntryId, why: MoveReason) -> Result<(), LogError> {
        self.record.move_to(target, why)?;
        self.begin_elsewhere().await
    }

    /// The conversation is another: whatever was remembered of it becomes what the record says.
    pub(crate) async fn begin_elsewhere(&mut self) -> Result<(), LogError> {
        settle_open_calls(&mut self.record, Left::All)?;
        let system = self.template.system.to_string();
        let origin = self.model.origin();
        let system = brief(&mut self.record, &self.hooks, origin, &self.agent, system).await?;
        self.template.system = system.into();
        self.tally = Tally::default();
        self.pipeline.recall(self.record.session());
        Ok(())
    }

    /// Where messages can be left while a turn runs.
    pub fn inbox(&self) -> Arc<Inbox> {
        Arc::clone(&self.inbox)
    }

    /// Runs a turn for a new prompt. The last event is always [`Event::TurnEnded`] with what is
    /// returned.
    pub async fn prompt(
        &mut self,
        content: Vec<Content>,
        cancel: &CancellationToken,
        events: &mpsc::Sender<Event>,
    ) -> TurnEnd {
        self.begin(content, None, cancel, events).await
    }

    /// Runs a turn for the oldest message that waits, if one does.
    pub async fn follow_up(
        &mut self,
        cancel: &CancellationToken,
        events: &mpsc::Sender<Event>,
    ) -> Option<TurnEnd> {
        for command in self.inbox.take() {
            let entry = match command {
                Command::Say(message) => Entry::Queued(message),
                Command::Withdraw(id) => Entry::Unqueued { id },
                Command::Compact => continue,
            };
            if let Err(error) = self.record.add(entry) {
                return Some(self.end(Over::from(error), cancel, events).await);
            }
        }
        let next = self.record.session().queued().first()?.clone();
        Some(self.begin(next.content, Some(next.id), cancel, events).await)
    }

    async fn begin(
        &mut self,
        content: Vec<Content>,
        queued: Option<u64>,
        cancel: &CancellationToken,
        events: &mpsc::Sender<Event>,
    ) -> TurnEnd {
        let looked = tokio::select! {
            biased;
            looked = self.show_to_hooks(content) => {
                looked.map_err(|reason| Over::Broken(format!("a hook refused the prompt: {reason}")))
            }
            () = cancel.cancelled() => Err(Over::Interrupted),
        };
        let content = match looked {
            Ok(content) => content,
            Err(over) => return self.refuse(over, queued, cancel, events).await,
        };
        if let Err(error) = self.keep_mode() {
            return self.end(Over::from(error), cancel, events).await;
        }
        let model = self.model.origin().clone();
        let agent = self.agent.clone();
        let prompt = Entry::Prompt { content, agent, model, steer: false, queued };
        let settled = settle_open_calls(&mut self.record, Left::All);
        let told = settled.and_then(|()| self.tell_of_what_was_left());
        if let Err(error) = told.and_then(|()| self.record.add(prompt)) {
            return self.end(Over::from(error), cancel, events).await;
        }
        fail_point("prompt.kept");
        // What works for somebody else lives on what that one has.
        if self.record.session().header.parent.is_none() {
            self.budget.purse.refill();
        }
        self.titler.begin(self.record.session());
        let end = self.resume(cancel, events).await;
        if let Some(title) = self.titler.take_if_there().await {
            self.record.add(title).ok();
        }
        end
    }

    /// With a prompt and not before: until then nothing is left to do.
    fn tell_of_what_was_left(&mut self) -> Result<(), LogError> {
        match self.record.session().left_behind().map(str::to_owned) {
            Some(text) => self.record.add(Entry::Note { text }),
            None => Ok(()),
        }
    }

    /// A prompt that never became one: what waited for its time waits no longer, and nothing of the
    /// turn before it is told again.
    async fn refuse(
        &mut self,
        over: Over,
        queued: Option<u64>,
        cancel: &CancellationToken,
        events: &mpsc::Sender<Event>,
    ) -> TurnEnd {
        let withdrawn = match (&over, queued) {
            (Over::Broken(_), Some(id)) => self.record.add(Entry::Unqueued { id }),
            _ => Ok(()),
        };
        let over = withdrawn.err().map_or(over, Over::from);
        let end = TurnEnd::before_it_began(&over);
        self.tell_last(&end, cancel, events).await;
        end
    }

    /// The mode belongs to the session: whoever takes it up later finds it as it was left.
    fn keep_mode(&mut self) -> Result<(), LogError> {
        let Some(mode) = self.pipeline.gate().mode() else { return Ok(()) };
        let known = self.record.session().mode().unwrap_or(Mode::default().as_str());
        if known == mode.as_str() {
            return Ok(());
        }
        self.record.add(Entry::Mode { mode: mode.to_string() })
    }

    /// Goes on with a turn that was cut off: calls that had not begun, or that only read, run now.
    pub async fn resume(
        &mut self,
        cancel: &CancellationToken,
        events: &mpsc::Sender<Event>,
    ) -> TurnEnd {
        crate::undo::begin_turn(&self.pipeline, self.record.session());
        let over = run_turn(self.world(cancel, events)).await;
        self.end(over, cancel, events).await
    }

    /// Replaces the beginning of the conversation by notes on it. Not, if there is nothing to
    /// replace.
    pub async fn compact(
        &mut self,
        cancel: &CancellationToken,
        events: &mpsc::Sender<Event>,
    ) -> Result<bool, TurnEnd> {
        if let Err(error) = settle_open_calls(&mut self.record, Left::All) {
            return Err(turn_end(self.record.session(), &Over::from(error)));
        }
        let made = compact_now(self.world(cancel, events)).await;
        self.tell_notices(events).await;
        made.map_err(|over| turn_end(self.record.session(), &over))
    }

    /// Tells the hooks that whoever worked with this session leaves it. Gives what people should know. The
    /// session can be taken up again.
    pub async fn close(&mut self) -> Vec<String> {
        // The first is what people need: a full disk shows in every write after it.
        let mut problem = None;
        let mut keep = |kept: Result<(), LogError>| problem = problem.take().or(kept.err());
        // What was taken back after the last turn must not be said when the session is taken up again.
        for command in self.inbox.take() {
            let queued = self.record.session().queued();
            let entry = match command {
                Command::Say(message) => Entry::Queued(message),
                Command::Withdraw(id) if queued.iter().any(|m| m.id == id) => {
                    Entry::Unqueued { id }
                }
                Command::Withdraw(_) | Command::Compact => continue,
            };
            keep(self.record.add(entry));
        }
        // Each time, because whoever waits for those who listen may lose patience.
        keep(self.note_later_changes().await);
        self.hooks.catch_up().await;
        keep(self.note_later_changes().await);
        // Only a name: a session without one is as good.
        if let Some(title) = self.titler.take().await {
            self.record.add(title).ok();
        }
        if self.hooks.any(Point::SessionEnd) {
            self.hooks.run(Point::SessionEnd, &json!({ "reason": "other" }), json!({})).await;
            keep(self.note_later_changes().await);
        }
        let problem = problem.map(|error| error.to_string());
        self.hooks.take_notices().into_iter().chain(problem).collect()
    }

    async fn tell_notices(&self, events: &mpsc::Sender<Event>) {
        for text in self.hooks.take_notices() {
            // A listener that is gone does not want to know.
            events.send(Event::Notice { text }).await.ok();
        }
    }

    fn world<'a>(
        &'a mut self,
        cancel: &'a CancellationToken,
        events: &'a mpsc::Sender<Event>,
    ) -> World<'a> {
        World {
            model: self.model.as_ref(),
            pipeline: &self.pipeline,
            record: &mut self.record,
            clock: self.clock.as_ref(),
            events,
            cancel,
            inbox: &self.inbox,
            hooks: &self.hooks,
            template: &mut self.template,
            tools: &mut self.tools,
            budget: &self.budget,
            price: self.price.as_ref(),
            agent: &self.agent,
            room: &self.room,
            tally: &mut self.tally,
            lost_jobs: &mut self.lost_jobs,
        }
    }

    /// A prompt as the hooks leave it, or why it must not be said.
    async fn show_to_hooks(&mut self, content: Vec<Content>) -> Result<Vec<Content>, String> {
        let about = json!({ "agent": self.agent, "model": self.model.origin().to_string() });
        let mut content = crate::hooks::show_prompt(&self.hooks, &about, content).await?;
        // Only what becomes a prompt tells it: a refused one leaves it to the next.
        content.extend(std::mem::take(&mut self.context).into_iter().map(Content::text));
        Ok(content)
    }

    async fn end(
        &mut self,
        mut over: Over,
        cancel: &CancellationToken,
        events: &mpsc::Sender<Event>,
    ) -> TurnEnd {
        let settled = settle_open_calls(&mut self.record, Left::All);
        if let Err(error) = settled.and_then(|()| self.keep_mode()) {
            over = Over::from(error);
        }
        if let Err(error) = self.note_later_changes().await {
            over = Over::from(error);
        }
        // A wish to end this turn says nothing about the next one.
        self.hooks.take_stop();
        let mut end = turn_end(self.record.session(), &over);
        if let Err(error) = self.record.add(Entry::TurnEnded { status: end.status }) {
            // Keep the first problem: a full disk shows in every write after it.
            end = match over {
                Over::Broken(_) => end,
                _ => turn_end(self.record.session(), &Over::from(error)),
            };
        }
        fail_point("turn.ended");
        // Whoever hears of the end may pull the plug.
        let synced = self.record.sync().await;
        if let Some(error) = synced.err().filter(|_| end.problem.is_none()) {
            end = turn_end(self.record.session(), &Over::from(error));
        }
        self.tell_last(&end, cancel, events).await;
        end
    }

    async fn tell_last(
        &self,
        end: &TurnEnd,
        cancel: &CancellationToken,
        events: &mpsc::Sender<Event>,
    ) {
        let mut last: Vec<Event> =
            self.hooks.take_notices().into_iter().map(|text| Event::Notice { text }).collect();
        last.push(Event::TurnEnded(end.clone()));
        for event in last {
            if self.hooks.any(Point::Event) {
                self.hooks.tell(&event);
            }
            tokio::select! {
                biased;
                // A listener that is gone has what is returned.
                _ = events.send(event) => {}
                // One that does not read while it cancels must not hold us up.
                () = async { cancel.cancelled().await; tokio::time::sleep(LAST_WORD).await } => {}
            }
        }
    }
}

/// The system prompt that is frozen for this agent; frozen now, if it takes over here.
async fn brief(
    record: &mut Record,
    hooks: &Hooks,
    model: &Origin,
    agent: &str,
    system: String,
) -> Result<String, LogError> {
    if let Some(frozen) = record.session().system_prompt(agent) {
        return Ok(frozen.to_owned());
    }
    let about = json!({ "agent": agent, "model": model.to_string() });
    let system = transform_system(hooks, &about, system).await;
    record.add(Entry::Brief { agent: agent.to_owned(), system: system.clone() })?;
    Ok(system)
}

async fn transform_system(hooks: &Hooks, about: &Value, system: String) -> String {
    if !hooks.any(Point::SystemTransform) {
        return system;
    }
    let ran = hooks.run(Point::SystemTransform, about, json!({ "system": [system] })).await;
    let parts = ran.output["system"].as_array().cloned().unwrap_or_default();
    let parts: Vec<&str> = parts.iter().filter_map(Value::as_str).collect();
    if parts.is_empty() { system } else { parts.join("\n\n") }
}

fn settle_open_calls(record: &mut Record, left: Left) -> Result<(), LogError> {
    let has_effects = |call: &Call| matches!(call.slot(), Slot::Running { effects: true, .. });
    for (call, outcome) in record.session().interrupted_calls() {
        let step = record.session().last_step();
        let may_have_done = step.and_then(|s| s.calls().nth(call)).is_some_and(has_effects);
        if left == Left::All || may_have_done {
            record.add(Entry::CallSettled { call, outcome })?;
        }
    }
    Ok(())
}
