//! One session at work: takes prompts, runs turns, keeps the record.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use toolwright_llm::{
    Content, Effort, Model, Origin, Price, Request, Sampling, ToolChoice, ToolDefinition,
};
use toolwright_session::{Entry, LogError, Session};
use toolwright_tool::Pipeline;

use crate::agent_loop::{Budget, Clock, Over, SystemClock, World, run_turn};
use crate::event::{Event, TurnEnd};
use crate::journal::Record;
use crate::settle::turn_end;

/// How long a cancelled turn waits for somebody to take its last event.
const LAST_WORD: Duration = Duration::from_millis(500);

pub struct EngineOptions {
    pub agent: String,
    /// For a new session; an old one goes on with its own.
    pub system: String,
    pub tools: Vec<ToolDefinition>,
    pub max_output_tokens: Option<u32>,
    pub sampling: Sampling,
    pub effort: Option<Effort>,
    pub price: Option<Price>,
    pub budget: Budget,
    pub clock: Arc<dyn Clock>,
}

impl EngineOptions {
    pub fn new(system: impl Into<String>, tools: Vec<ToolDefinition>) -> Self {
        Self {
            agent: "build".to_owned(),
            system: system.into(),
            tools,
            max_output_tokens: None,
            sampling: Sampling::default(),
            effort: None,
            price: None,
            budget: Budget::default(),
            clock: Arc::new(SystemClock),
        }
    }
}

pub struct Engine {
    model: Arc<dyn Model>,
    pipeline: Pipeline,
    record: Record,
    template: Request,
    budget: Budget,
    price: Option<Price>,
    clock: Arc<dyn Clock>,
    agent: String,
}

impl Engine {
    /// Takes up a session, new or old. Calls that an earlier process left open get their answer in
    /// the record now, so that it stays the same for ever.
    pub fn new(
        model: Arc<dyn Model>,
        pipeline: Pipeline,
        mut record: Record,
        options: EngineOptions,
    ) -> Result<Self, LogError> {
        let EngineOptions {
            agent,
            system,
            tools,
            max_output_tokens,
            sampling,
            effort,
            price,
            budget,
            clock,
        } = options;
        settle_open_calls(&mut record)?;
        let frozen = record.session().system_prompt(&agent).map(str::to_owned);
        let system = match frozen {
            Some(frozen) => frozen,
            None => {
                record.add(Entry::Brief { agent: agent.clone(), system: system.clone() })?;
                system
            }
        };
        let template = Request {
            system: system.into(),
            turns: Vec::new(),
            tools: tools.into(),
            tool_choice: ToolChoice::Auto,
            max_output_tokens,
            sampling,
            effort,
        };
        Ok(Self { model, pipeline, record, template, budget, price, clock, agent })
    }

    pub fn model(&self) -> &Origin {
        self.model.origin()
    }

    pub fn session(&self) -> &Session {
        self.record.session()
    }

    /// Runs a turn for a new prompt. The last event is always [`Event::TurnEnded`] with what is
    /// returned.
    pub async fn prompt(
        &mut self,
        content: Vec<Content>,
        cancel: &CancellationToken,
        events: &mpsc::Sender<Event>,
    ) -> TurnEnd {
        let model = self.model.origin().clone();
        let prompt = Entry::Prompt { content, agent: self.agent.clone(), model };
        match self.record.add(prompt) {
            Ok(()) => self.resume(cancel, events).await,
            Err(error) => self.end(Over::from(error), cancel, events).await,
        }
    }

    /// Goes on with a turn that was cut off.
    pub async fn resume(
        &mut self,
        cancel: &CancellationToken,
        events: &mpsc::Sender<Event>,
    ) -> TurnEnd {
        let over = run_turn(World {
            model: self.model.as_ref(),
            pipeline: &self.pipeline,
            record: &mut self.record,
            clock: self.clock.as_ref(),
            events,
            cancel,
            template: &self.template,
            budget: self.budget,
            price: self.price.as_ref(),
        })
        .await;
        self.end(over, cancel, events).await
    }

    async fn end(
        &mut self,
        mut over: Over,
        cancel: &CancellationToken,
        events: &mpsc::Sender<Event>,
    ) -> TurnEnd {
        if let Err(error) = settle_open_calls(&mut self.record) {
            over = Over::from(error);
        }
        let mut end = turn_end(self.record.session(), &over);
        if let Err(error) = self.record.add(Entry::TurnEnded { status: end.status }) {
            // Keep the first problem: a full disk shows in every write after it.
            end = match over {
                Over::Broken(_) => end,
                _ => turn_end(self.record.session(), &Over::from(error)),
            };
        }
        let last = Event::TurnEnded(end.clone());
        tokio::select! {
            biased;
            // A listener that is gone has what is returned.
            _ = events.send(last) => {}
            // One that does not read while it cancels must not hold us up.
            () = async { cancel.cancelled().await; tokio::time::sleep(LAST_WORD).await } => {}
        }
        end
    }
}

fn settle_open_calls(record: &mut Record) -> Result<(), LogError> {
    for (call, outcome) in record.session().interrupted_calls() {
        record.add(Entry::CallSettled { call, outcome })?;
    }
    Ok(())
}
