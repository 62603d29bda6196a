//! Drives the engine for the interface: orders in, news out. Everything here goes through the
//! library's front door.

mod after;
mod lists;
mod mention;
mod own_command;
mod past;
mod write_out;

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::mpsc;
use toolwright::llm::Content;
use toolwright::permission::Mode;
use toolwright::session::{QueueKind, TurnStatus};
use toolwright::{
    CancellationToken, Desk, DeskOptions, Engine, Event, Handover, Jobs, Questions, Selection,
    SessionChoice, SetupError, TurnEnd, Workbench,
};

use crate::Start;
use crate::app::{Facts, Input, News, Order};
use crate::blocks::Level;
use crate::mailbox::Mailbox;

/// Events that the screen may lag behind before the loop waits for it.
const EVENTS_AHEAD: usize = 256;

pub(crate) struct Host {
    start: Start,
    bench: Workbench,
    ui: Mailbox,
    orders: mpsc::UnboundedReceiver<Order>,
    desk: Option<Table>,
    /// What the person chose, for the next time a session is opened.
    model: Option<String>,
    agent: Option<String>,
    session: SessionChoice,
    fork: bool,
    /// Ids of what waits, oldest first.
    queue: Vec<u64>,
    /// What the person ran by themselves, for the model to know with the next prompt.
    aside: Arc<Mutex<Vec<String>>>,
}

/// A desk with its two ends of the events.
struct Table {
    engine: Engine,
    questions: Arc<Questions>,
    jobs: Jobs,
    handover: Handover,
    sender: mpsc::Sender<Event>,
    events: mpsc::Receiver<Event>,
}

impl Host {
    pub(crate) fn new(
        start: Start,
        bench: Workbench,
        ui: Mailbox,
        orders: mpsc::UnboundedReceiver<Order>,
    ) -> Self {
        let (model, agent) = (start.model.clone(), start.agent.clone());
        let (session, fork) = (start.session.clone(), start.fork);
        Self {
            start,
            bench,
            ui,
            orders,
            desk: None,
            model,
            agent,
            session,
            fork,
            queue: Vec::new(),
            aside: Arc::default(),
        }
    }

    /// Works until the interface is gone.
    pub(crate) async fn run(mut self) -> Result<(), SetupError> {
        self.introduce().await?;
        if self.session != SessionChoice::New {
            self.open().await?;
        }
        if let Some(prompt) = self.start.prompt.take() {
            self.tell(News::Draft(prompt)).await;
        }
        while let Some(order) = self.orders.recv().await {
            self.obey(order).await;
        }
        if let Some(mut table) = self.desk.take() {
            table.jobs.end_all();
            let farewell = std::time::Duration::from_secs(1);
            tokio::time::timeout(farewell, table.engine.close()).await.ok();
        }
        Ok(())
    }

    async fn tell(&self, news: News) {
        // Nobody is there to hear it when the interface is gone.
        self.ui.send(Input::News(Box::new(news))).await.ok();
    }

    async fn say(&self, level: Level, text: impl Into<String>, advice: Option<&str>) {
        let advice = advice.map(str::to_owned);
        self.tell(News::Say { level, text: text.into(), advice }).await;
    }

    async fn introduce(&mut self) -> Result<(), SetupError> {
        let bench = &self.bench;
        let agent = bench.agent(self.agent.as_deref())?;
        let home = bench.paths.home.display().to_string();
        let all = toolwright::config::Agent::all(&bench.config.settings, &home);
        let primary = |a: &&toolwright::config::Agent| {
            a.mode != toolwright::config::AgentMode::Subagent && !a.hidden
        };
        let pair = |a: &toolwright::config::Agent| (a.name.clone(), a.description.clone());
        let mut facts = Facts {
            agent: agent.name.clone(),
            agents: all.iter().filter(primary).map(pair).collect(),
            workers: bench.workers().iter().map(pair).collect(),
            skills: bench
                .skills
                .iter()
                .map(|s| (s.name.clone(), s.description.clone().unwrap_or_default()))
                .collect(),
            directory: self.directory(),
            branch: self.branch(),
            warnings: bench.config.warnings.clone(),
            sandbox: Some(short(&bench.protection.describe())),
            mode: self.start.auto.then(|| Mode::Auto.to_string()),
            ..Facts::default()
        };
        match bench.choose_model(self.model.as_deref(), &agent, None).await {
            Ok(chosen) => {
                facts.model = chosen.model.origin().to_string();
                facts.window = chosen.window.map(u64::from);
                facts.demo = chosen.why == Selection::Demo;
            }
            // A session may have a model of its own.
            Err(problem) if self.session == SessionChoice::New => {
                facts.warnings.push(problem.to_string())
            }
            Err(_) => {}
        }
        self.tell(News::Ready(facts)).await;
        Ok(())
    }

    fn directory(&self) -> String {
        let directory = self.bench.workspace.directory();
        match directory.strip_prefix(&self.bench.paths.home) {
            Ok(rest) if rest.as_os_str().is_empty() => "~".to_owned(),
            Ok(rest) => format!("~/{}", rest.display()),
            Err(_) => directory.display().to_string(),
        }
    }

    /// Read off the repository's own file; no process for one word.
    fn branch(&self) -> Option<String> {
        let git = self.bench.workspace.worktree().join(".git");
        let folder = match std::fs::read_to_string(&git) {
            Ok(text) => std::path::PathBuf::from(text.strip_prefix("gitdir:")?.trim()),
            Err(_) => git,
        };
        let head = std::fs::read_to_string(folder.join("HEAD")).ok()?;
        let head = head.trim();
        Some(match head.strip_prefix("ref: refs/heads/") {
            Some(branch) => branch.to_owned(),
            None => head.chars().take(8).collect(),
        })
    }

    /// Opens or begins the session; nothing is on disk before somebody said something.
    async fn open(&mut self) -> Result<(), SetupError> {
        if self.desk.is_some() {
            return Ok(());
        }
        let (sender, events) = mpsc::channel(EVENTS_AHEAD);
        let desk = self
            .bench
            .desk(DeskOptions {
                model: self.model.clone(),
                agent: self.agent.clone(),
                session: self.session.clone(),
                fork: self.fork,
                mode: self.start.auto.then_some(Mode::Auto),
                asker: Some(sender.clone()),
                ..DeskOptions::default()
            })
            .await?;
        let Desk { engine, questions, jobs, agent, notices, handover, .. } = desk;
        for notice in notices {
            self.say(Level::Notice, notice, None).await;
        }
        let id = engine.session().header.session.clone();
        let (blocks, left_out) = past::blocks(engine.session());
        let title = if blocks.is_empty() { String::new() } else { engine.session().title() };
        self.tell(News::Session { id: id.clone(), title, blocks, left_out }).await;
        self.tell(News::Agent(agent.name.clone())).await;
        self.agent = Some(agent.name);
        let model = engine.model().to_string();
        self.model = Some(model);
        self.tell_model().await;
        (self.session, self.fork) = (SessionChoice::Id(id), false);
        self.queue = engine.session().queued().iter().map(|queued| queued.id).collect();
        for queued in engine.session().queued() {
            let text = past::text_of(&queued.content);
            self.tell(News::Queued { id: queued.id, kind: queued.kind, text }).await;
        }
        self.desk = Some(Table { engine, questions, jobs, handover, sender, events });
        Ok(())
    }

    async fn tell_model(&self) {
        let Some(model) = self.model.clone() else { return };
        let Ok(agent) = self.bench.agent(self.agent.as_deref()) else { return };
        let chosen = self.bench.choose_model(Some(&model), &agent, None).await;
        let window = chosen.ok().and_then(|chosen| chosen.window).map(u64::from);
        self.tell(News::Model { model, window }).await;
    }

    async fn obey(&mut self, order: Order) {
        match order {
            Order::Prompt(text) => self.prompt(text).await,
            // The turn that it was meant for has just ended.
            Order::Steer(text) | Order::FollowUp(text) => {
                let (id, kind) = (u64::MAX, QueueKind::FollowUp);
                self.tell(News::Queued { id, kind, text: text.clone() }).await;
                self.tell(News::Delivered(id)).await;
                self.prompt(text).await;
            }
            Order::Withdraw(id) => {
                self.queue.retain(|own| *own != id);
                if let Some(table) = &self.desk {
                    table.engine.inbox().withdraw(id);
                }
            }
            Order::Abort => self.tell(News::Idle).await,
            Order::Answer(id, answer) => {
                if let Some(table) = &self.desk {
                    // Nobody waits any more: there is nothing to tell.
                    table.questions.answer(id, answer).ok();
                }
            }
            Order::Reply(id, replies) => {
                if let Some(table) = &self.desk {
                    table.questions.reply(id, replies);
                }
            }
            Order::New => {
                self.close().await;
                (self.session, self.fork) = (SessionChoice::New, false);
            }
            Order::Open { id, fork } => {
                self.close().await;
                (self.session, self.fork) = (SessionChoice::Id(id), fork);
                (self.model, self.agent) = (None, None);
                if let Err(problem) = self.open().await {
                    self.say(Level::Problem, problem.to_string(), None).await;
                    (self.session, self.fork) = (SessionChoice::New, false);
                }
            }
            Order::Model(model) => self.change_model(model).await,
            Order::Agent(name) => {
                self.close().await;
                self.agent = Some(name.clone());
                self.tell(News::Agent(name)).await;
            }
            Order::Compact => self.compact().await,
            Order::Key { provider, key } => self.keep_key(&provider, &key).await,
            other => self.look_up(other).await,
        }
    }

    /// What can be done whether a turn runs or not.
    async fn look_up(&mut self, order: Order) {
        match order {
            Order::Shell(command) => self.shell(command),
            Order::List(kind) => {
                let jobs = self.desk.as_ref().map(|table| table.jobs.clone());
                let rows = lists::rows(&self.bench, kind, jobs.as_ref());
                self.tell(News::Rows { kind, rows }).await;
            }
            Order::Preview(value) => {
                let text = lists::preview(&self.bench, &value);
                self.tell(News::Preview { value, text }).await;
            }
            Order::EndJobs => {
                if let Some(table) = &self.desk {
                    table.jobs.end_all();
                    self.say(Level::Quiet, "Background jobs ended", None).await;
                }
            }
            Order::Status => {
                let session = self.desk.as_ref().map(|table| table.engine.session());
                let text = lists::status(&self.bench, session);
                self.tell(News::Page { title: "Status".to_owned(), text }).await;
            }
            Order::Export(name) => {
                let said = match &self.desk {
                    None => Err("there is nothing to write yet".to_owned()),
                    Some(table) => write_out::to_file(
                        table.engine.session(),
                        self.bench.workspace.directory(),
                        name.as_deref(),
                    ),
                };
                match said {
                    Ok(path) => self.say(Level::Quiet, format!("Written to {path}"), None).await,
                    Err(problem) => self.say(Level::Problem, problem, None).await,
                }
            }
            Order::Undo | Order::Redo | Order::Back(_) => {
                let step = match order {
                    Order::Undo => after::Step::Undo,
                    Order::Redo => after::Step::Redo,
                    Order::Back(n) => after::Step::BackTo(n),
                    _ => return,
                };
                let engine = self.desk.as_mut().map(|table| &mut table.engine);
                match after::step(&self.bench, engine, step).await {
                    Ok(text) => self.say(Level::Quiet, text, None).await,
                    Err(problem) => self.say(Level::Notice, problem, None).await,
                }
            }
            _ => {}
        }
    }

    /// Leaves the session; it can be opened again.
    async fn close(&mut self) {
        if let Some(mut table) = self.desk.take() {
            table.engine.close().await;
        }
        self.queue.clear();
    }

    async fn change_model(&mut self, model: String) {
        let Ok(agent) = self.bench.agent(self.agent.as_deref()) else { return };
        match self.bench.choose_model(Some(&model), &agent, None).await {
            Ok(chosen) => {
                let model = chosen.model.origin().to_string();
                let window = chosen.window.map(u64::from);
                self.close().await;
                self.model = Some(model.clone());
                self.tell(News::Model { model, window }).await;
            }
            Err(problem) => self.say(Level::Problem, problem.to_string(), None).await,
        }
    }

    async fn keep_key(&mut self, provider: &str, key: &str) {
        let variable = |name: &str| std::env::var(name).ok();
        let keyring = toolwright::Keyring::find(&variable);
        let kept = self.bench.credentials().keep(provider, key, keyring.as_ref()).await;
        match kept {
            Ok(_) => {
                self.say(Level::Quiet, format!("The key for {provider} is kept"), None).await;
                (self.model, self.desk) = (None, None);
                let Ok(agent) = self.bench.agent(self.agent.as_deref()) else { return };
                if let Ok(chosen) = self.bench.choose_model(None, &agent, None).await {
                    let model = chosen.model.origin().to_string();
                    let window = chosen.window.map(u64::from);
                    self.tell(News::Model { model, window }).await;
                }
            }
            Err(problem) => {
                self.say(Level::Problem, format!("The key cannot be kept: {problem}"), None).await;
            }
        }
    }

    async fn prompt(&mut self, text: String) {
        if let Err(problem) = self.open().await {
            self.say(Level::Problem, problem.to_string(), Some("/models and /connect help.")).await;
            return self.tell(News::Idle).await;
        }
        let mut content = mention::expand(&self.bench, &text).await;
        let aside = std::mem::take(&mut *self.aside.lock().unwrap_or_else(PoisonError::into_inner));
        content.extend(aside.into_iter().map(Content::text));
        self.turns(Some(content)).await;
    }

    /// A turn, and those that follow from it.
    async fn turns(&mut self, content: Option<Vec<Content>>) {
        let Some(mut table) = self.desk.take() else { return };
        let cancel = CancellationToken::new();
        let mut next = content;
        let mut ended: Option<TurnStatus> = None;
        loop {
            let is_done = ended.is_none_or(|status| status == TurnStatus::Done);
            if next.is_none() && ended.is_some() && (is_done || ended == Some(TurnStatus::Denied)) {
                match table.handover.follow(&mut table.engine).await {
                    Ok(Some(told)) => next = Some(told),
                    Ok(None) => {}
                    Err(problem) => self.say(Level::Problem, problem.to_string(), None).await,
                }
                if next.is_some() {
                    self.agent = table.engine.session().last_prompt().map(|p| p.agent.clone());
                }
            }
            let follows = next.is_none() && is_done && !self.queue.is_empty();
            if next.is_none() && !follows {
                break;
            }
            if follows && let Some(id) = (!self.queue.is_empty()).then(|| self.queue.remove(0)) {
                self.tell(News::Delivered(id)).await;
            }
            let Table { engine, questions, jobs, sender, events, .. } = &mut table;
            let inbox = engine.inbox();
            let mut gone = false;
            let turn = async {
                match next.take() {
                    Some(content) => Some(engine.prompt(content, &cancel, sender).await),
                    None => engine.follow_up(&cancel, sender).await,
                }
            };
            let mut turn = Box::pin(turn);
            let end: Option<TurnEnd> = loop {
                tokio::select! {
                    biased;
                    order = self.orders.recv(), if !gone => match order {
                        None => {
                            gone = true;
                            cancel.cancel();
                        }
                        Some(order) => {
                            self.meanwhile(order, &inbox, questions, jobs, &cancel).await;
                        }
                    },
                    event = events.recv() => {
                        if let Some(event) = event {
                            self.pass_on(event).await;
                        }
                    }
                    end = &mut turn => break end,
                }
            };
            drop(turn);
            while let Ok(event) = table.events.try_recv() {
                self.pass_on(event).await;
            }
            ended = end.map(|end| end.status);
            if ended.is_none() || cancel.is_cancelled() {
                break;
            }
        }
        self.desk = Some(table);
        self.tell(News::Branch(self.branch())).await;
        self.tell(News::Idle).await;
    }

    async fn pass_on(&mut self, event: Event) {
        if let Event::Delivered { id } | Event::Withdrawn { id } = &event {
            self.queue.retain(|own| own != id);
        }
        match event {
            Event::Question { id, question, offer } => {
                let why = Some(format!("asked because: {}", offer.why));
                self.tell(News::Asked { id, question, why }).await;
            }
            event => {
                self.ui.send(Input::Engine(Box::new(event))).await.ok();
            }
        }
    }

    /// Orders while a turn runs.
    async fn meanwhile(
        &mut self,
        order: Order,
        inbox: &toolwright::Inbox,
        questions: &Questions,
        jobs: &Jobs,
        cancel: &CancellationToken,
    ) {
        match order {
            Order::Steer(text) | Order::Prompt(text) => {
                let content = mention::expand(&self.bench, &text).await;
                self.queued(inbox.steer(content), QueueKind::Steer, text).await;
            }
            Order::FollowUp(text) => {
                let content = mention::expand(&self.bench, &text).await;
                self.queued(inbox.follow_up(content), QueueKind::FollowUp, text).await;
            }
            Order::Withdraw(id) => inbox.withdraw(id),
            Order::Abort => cancel.cancel(),
            Order::Answer(id, answer) => {
                if let Err(problem) = questions.answer(id, answer) {
                    self.say(Level::Notice, problem.to_string(), None).await;
                }
            }
            Order::Reply(id, replies) => questions.reply(id, replies),
            Order::Compact => inbox.compact(),
            Order::EndJobs => jobs.end_all(),
            Order::List(kind) => {
                let rows = lists::rows(&self.bench, kind, Some(jobs));
                self.tell(News::Rows { kind, rows }).await;
            }
            Order::New
            | Order::Open { .. }
            | Order::Model(_)
            | Order::Agent(_)
            | Order::Key { .. }
            | Order::Undo
            | Order::Redo
            | Order::Back(_)
            | Order::Export(_)
            | Order::Status => {
                self.say(Level::Notice, "Not while a turn runs; esc interrupts it", None).await;
            }
            other @ (Order::Shell(_) | Order::Preview(_)) => self.look_up(other).await,
        }
    }

    async fn queued(&mut self, id: Option<u64>, kind: QueueKind, text: String) {
        match id {
            Some(id) => {
                self.queue.push(id);
                self.tell(News::Queued { id, kind, text }).await;
            }
            None => self.say(Level::Problem, "Too many messages wait already", None).await,
        }
    }

    async fn compact(&mut self) {
        let Some(mut table) = self.desk.take() else {
            return self.say(Level::Quiet, "There is nothing to shorten yet", None).await;
        };
        self.tell(News::Working).await;
        let cancel = CancellationToken::new();
        let Table { engine, sender, events, .. } = &mut table;
        let mut making = Box::pin(engine.compact(&cancel, sender));
        let mut gone = false;
        let made = loop {
            tokio::select! {
                made = &mut making => break made,
                event = events.recv() => if let Some(event) = event {
                    self.pass_on(event).await;
                },
                order = self.orders.recv(), if !gone => match order {
                    Some(Order::Abort) => cancel.cancel(),
                    None => {
                        gone = true;
                        cancel.cancel();
                    }
                    Some(_) => self.say(Level::Notice, "Not while notes are made", None).await,
                },
            }
        };
        drop(making);
        while let Ok(event) = table.events.try_recv() {
            self.pass_on(event).await;
        }
        match made {
            Ok(true) => {}
            Ok(false) => self.say(Level::Quiet, "There is nothing to shorten yet", None).await,
            Err(end) => {
                let text = end.problem.unwrap_or_else(|| "Interrupted".to_owned());
                self.say(Level::Problem, text, end.advice).await;
            }
        }
        self.desk = Some(table);
        self.tell(News::Idle).await;
    }
}

/// What holds commands, in a word.
fn short(sandbox: &str) -> String {
    match sandbox.split([',', '(']).next().unwrap_or_default().trim() {
        "none" => "no sandbox".to_owned(),
        layer => layer.to_owned(),
    }
}
