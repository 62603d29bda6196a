//! Drives the engine for the interface: orders in, news out. Everything here goes through the
//! library's front door.

mod after;
mod beside;
mod choose;
mod clipboard;
mod facts;
pub(crate) mod lists;
mod mention;
mod opening;
mod own_command;
mod past;
mod preview;
mod renew;
mod rules;
mod servers;
mod steer;
mod trust;
mod write_out;

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::mpsc;
use tokio::task::JoinSet;
use toolwright::llm::Content;
use toolwright::permission::{Approval, Mode, Scope};
use toolwright::session::{QueueKind, TurnStatus};
use toolwright::{
    CancellationToken, Desk, DeskOptions, Engine, Event, Handover, Jobs, PermissionGate, Questions,
    SessionChoice, SetupError, TurnEnd, Workbench,
};

use crate::Start;
use crate::app::{Going, Input, News, Order};
use crate::blocks::Level;
use crate::mailbox::Mailbox;
use crate::picture::Picture;
use opening::Opening;
use steer::Steering;

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
    /// The message that a copy goes on from.
    from: Option<String>,
    /// Ids of what waits, oldest first.
    queue: Vec<u64>,
    /// What the person ran by themselves, for the model to know with the next prompt.
    aside: Arc<Mutex<Vec<String>>>,
    mode: Option<Mode>,
    effort: Option<toolwright::llm::Effort>,
    /// Who worked before a plan was wanted.
    before_plan: Option<Option<String>>,
    signing_in: Option<tokio::task::AbortHandle>,
    /// What was agreed to in the session that is at rest.
    agreed: Vec<Approval>,
    /// What people have been told already.
    noticed: HashSet<String>,
    /// What is to be looked at next, and whether somebody is at it.
    wanted: Arc<Mutex<preview::Wanted>>,
    /// What goes on beside everything else.
    tasks: Mutex<JoinSet<()>>,
}

/// What is needed of a desk whether a turn runs or not.
#[derive(Clone, Copy)]
struct Around<'a> {
    jobs: &'a Jobs,
    gate: &'a PermissionGate,
}

/// A turn at work, for those who have something to say to it.
struct AtWork<'a, 's> {
    steering: &'s mut Steering<'a>,
    inbox: &'a toolwright::Inbox,
    questions: &'a Questions,
    around: Around<'a>,
    cancel: &'a CancellationToken,
}

/// A desk with its two ends of the events.
struct Table {
    engine: Engine,
    questions: Arc<Questions>,
    gate: Arc<PermissionGate>,
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
        let mode = start.auto.then_some(Mode::Auto);
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
            from: None,
            queue: Vec::new(),
            aside: Arc::default(),
            mode,
            effort: None,
            before_plan: None,
            signing_in: None,
            agreed: Vec::new(),
            noticed: HashSet::new(),
            wanted: Arc::default(),
            tasks: Mutex::default(),
        }
    }

    /// Works until the interface is gone.
    pub(crate) async fn run(mut self) -> Result<(), SetupError> {
        let later = self.ask_for_trust().await?;
        self.introduce().await?;
        if self.session != SessionChoice::New {
            self.open().await?;
        }
        if let Some(prompt) = self.start.prompt.take() {
            self.tell(News::Draft(prompt)).await;
        }
        for order in later {
            self.obey(order).await;
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
                from: self.from.clone(),
                mode: self.mode,
                effort: self.effort,
                asker: Some(sender.clone()),
                ..DeskOptions::default()
            })
            .await?;
        let Desk { engine, questions, gate, jobs, agent, notices, handover, .. } = desk;
        for notice in notices {
            if !self.noticed.insert(notice.clone()) {
                continue;
            }
            // Here it can be done without another terminal.
            let advice = notice.contains("tw mcp auth").then_some("/mcp and ctrl+s sign you in.");
            self.say(Level::Notice, notice, advice).await;
        }
        gate.approve(&std::mem::take(&mut self.agreed));
        self.mode = Some(gate.mode());
        self.tell(News::Mode(gate.mode())).await;
        let id = engine.session().header.session.clone();
        let (blocks, left_out) = past::blocks(engine.session());
        let title = if blocks.is_empty() { String::new() } else { engine.session().title() };
        self.tell(News::Session { id: id.clone(), title, blocks, left_out }).await;
        self.tell(News::Spent(lists::spent(engine.session()))).await;
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
        self.desk = Some(Table { engine, questions, gate, jobs, handover, sender, events });
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
                self.agreed.clear();
                (self.session, self.fork) = (SessionChoice::New, false);
            }
            Order::Open { id, fork } => {
                self.close().await;
                self.agreed.clear();
                (self.session, self.fork) = (SessionChoice::Id(id), fork);
                (self.model, self.agent) = (None, None);
                // It goes on in its own; that nothing is asked is said each time.
                self.mode = self.mode.filter(|mode| *mode == Mode::Auto);
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
            Order::Command { name, arguments } => self.command(&name, arguments).await,
            Order::Mode(mode) => self.change_mode(mode).await,
            Order::Effort(effort) => {
                self.close().await;
                self.effort = effort;
            }
            Order::Rename { id, title } => self.rename(id, title).await,
            Order::List(kind) => self.list(kind, self.around()).await,
            Order::Forget(value) => self.forget(&value, self.around()).await,
            Order::Key { provider, key } => self.keep_key(&provider, &key).await,
            other => self.look_up(other).await,
        }
    }

    /// What can be done whether a turn runs or not.
    async fn look_up(&mut self, order: Order) {
        match order {
            Order::Shell(command) => self.shell(command),
            Order::Preview(value) => self.preview(value),
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
            Order::Export(name) => self.write_out(name, "md").await,
            Order::Share(name) => self.write_out(name, "html").await,
            Order::Delete(id) => self.delete(&id).await,
            Order::Search(query) => self.search(query),
            Order::Connect(name) => self.connect(name),
            Order::SignIn(name) => self.sign_in(name),
            Order::SignOut(name) => self.sign_out(name),
            Order::OpenAddress(address) => servers::open_address(&address),
            Order::Offered => self.offered(),
            Order::Child(id) => self.child(id).await,
            Order::Doctor => self.doctor(),
            Order::Clipboard => self.clipboard(),
            Order::Back(number, Going::InACopy) => self.copy_from(number).await,
            Order::Undo | Order::Redo | Order::Back(..) => {
                self.take_up().await;
                let step = match order {
                    Order::Undo => after::Step::Undo,
                    Order::Redo => after::Step::Redo,
                    Order::Back(n, going) => after::Step::BackTo(n, going == Going::WithFiles),
                    _ => return,
                };
                let engine = self.desk.as_mut().map(|table| &mut table.engine);
                match after::step(&self.bench, engine, step).await {
                    Ok((text, draft)) => {
                        self.say(Level::Quiet, text, None).await;
                        self.rewound(draft).await;
                    }
                    Err(problem) => self.say(Level::Notice, problem, None).await,
                }
            }
            _ => {}
        }
    }

    fn around(&self) -> Option<Around<'_>> {
        self.desk.as_ref().map(|table| Around { jobs: &table.jobs, gate: &table.gate })
    }

    async fn write_out(&self, name: Option<String>, usual: &str) {
        let SessionChoice::Id(id) = &self.session else {
            return self.say(Level::Problem, "There is nothing to write yet", None).await;
        };
        match write_out::to_file(&self.bench, id, name.as_deref(), usual) {
            Ok(path) => self.say(Level::Quiet, format!("Written to {path}"), None).await,
            Err(problem) => self.say(Level::Problem, problem, None).await,
        }
    }

    /// Leaves the session; it can be opened again.
    async fn close(&mut self) {
        if let Some(mut table) = self.desk.take() {
            self.agreed = table.gate.approvals();
            self.agreed.retain(|approval| approval.scope == Scope::Session);
            table.engine.close().await;
        }
        self.queue.clear();
    }

    async fn prompt(&mut self, text: String) {
        self.renew().await;
        if let Err(problem) = self.open().await {
            self.say(Level::Problem, problem.to_string(), Some("/models and /connect help.")).await;
            return self.tell(News::Idle).await;
        }
        let mut content = self.expand(&text).await;
        let aside = std::mem::take(&mut *self.aside.lock().unwrap_or_else(PoisonError::into_inner));
        content.extend(aside.into_iter().map(Content::text));
        self.turns(Some(Opening::Said(content, text))).await;
    }

    /// A turn, and those that follow from it.
    async fn turns(&mut self, opening: Option<Opening>) {
        let Some(mut table) = self.desk.take() else { return };
        let cancel = CancellationToken::new();
        let mut next = opening;
        let mut ended: Option<TurnStatus> = None;
        loop {
            let is_done = ended.is_none_or(|status| status == TurnStatus::Done);
            if next.is_none() && ended.is_some() && (is_done || ended == Some(TurnStatus::Denied)) {
                match table.handover.follow(&mut table.engine).await {
                    Ok(Some(told)) => next = Some(Opening::Said(told, String::new())),
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
            let Table { engine, questions, gate, jobs, handover, sender, events } = &mut table;
            let inbox = engine.inbox();
            let mut gone = false;
            let turn = async {
                match next.take() {
                    Some(opening) => {
                        let content = tokio::select! {
                            content = opening.content(handover, &cancel, sender) => content,
                            () = cancel.cancelled() => Err("Interrupted".to_owned()),
                        };
                        match content {
                            Ok(content) => Some(engine.prompt(content, &cancel, sender).await),
                            Err(text) => {
                                sender.send(Event::Notice { text }).await.ok();
                                None
                            }
                        }
                    }
                    None => engine.follow_up(&cancel, sender).await,
                }
            };
            let mut turn = Box::pin(turn);
            let mut steering = Steering::new(handover, &cancel);
            let end: Option<TurnEnd> = loop {
                tokio::select! {
                    biased;
                    order = self.orders.recv(), if !gone => match order {
                        None => {
                            gone = true;
                            cancel.cancel();
                        }
                        Some(order) => {
                            let around = Around { jobs, gate };
                            let (inbox, cancel, steering) = (&inbox, &cancel, &mut steering);
                            let at_work = AtWork { steering, inbox, questions, around, cancel };
                            self.meanwhile(order, at_work).await;
                        }
                    },
                    message = steering.next() => self.deliver(message, &inbox).await,
                    event = events.recv() => {
                        if let Some(event) = event {
                            self.pass_on(event).await;
                        }
                    }
                    end = &mut turn => break end,
                }
            };
            drop(turn);
            let late = steering.left();
            while let Ok(event) = table.events.try_recv() {
                self.pass_on(event).await;
            }
            next = self.said_late(late, cancel.is_cancelled()).await;
            ended = end.map(|end| end.status);
            // What could not begin takes nothing along that was said meanwhile.
            if cancel.is_cancelled() || (ended.is_none() && next.is_none()) {
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
        if let Event::ModeChanged { mode } = &event {
            self.mode = Some(*mode);
        }
        if let Event::CallSettled { call, outcome, .. } = &event
            && outcome.attachments.iter().any(|media| media.mime.starts_with("image/"))
        {
            let (call, all) = (call.clone(), outcome.attachments.clone());
            let canvas = self.ui.canvas();
            let small =
                move || all.iter().take(4).filter_map(|media| Picture::of(media, canvas)).collect();
            let pictures = tokio::task::spawn_blocking(small).await.unwrap_or_default();
            self.tell(News::Pictures { call, pictures }).await;
        }
        self.ui.send(Input::Engine(Box::new(event))).await.ok();
    }

    /// Orders while a turn runs.
    async fn meanwhile(&mut self, order: Order, at_work: AtWork<'_, '_>) {
        let AtWork { steering, inbox, questions, around, cancel } = at_work;
        match order {
            Order::Steer(text) | Order::Prompt(text) => {
                let content = self.expand(&text).await;
                steering.push(QueueKind::Steer, text, content);
            }
            Order::FollowUp(text) => {
                let content = self.expand(&text).await;
                steering.push(QueueKind::FollowUp, text, content);
            }
            Order::Withdraw(id) => inbox.withdraw(id),
            Order::Abort => cancel.cancel(),
            Order::Answer(id, answer) => {
                if let Err(problem) = questions.answer(id, answer) {
                    self.tell(News::NotTaken { id, problem: problem.to_string() }).await;
                }
            }
            Order::Reply(id, replies) => questions.reply(id, replies),
            Order::Compact => inbox.compact(),
            Order::EndJobs => around.jobs.end_all(),
            Order::List(kind) => self.list(kind, Some(around)).await,
            Order::Forget(value) => self.forget(&value, Some(around)).await,
            Order::Mode(mode) => {
                self.mode = Some(mode);
                around.gate.set_mode(mode);
            }
            // Answered before anything else.
            Order::Trust(_) => {}
            Order::Rename { id: Some(id), title } => self.rename(Some(id), title).await,
            Order::New
            | Order::Open { .. }
            | Order::Model(_)
            | Order::Agent(_)
            | Order::Key { .. }
            | Order::Undo
            | Order::Redo
            | Order::Back(..)
            | Order::Command { .. }
            | Order::Effort(_)
            | Order::Rename { id: None, .. }
            | Order::Status => {
                self.say(Level::Notice, "Not while a turn runs; esc interrupts it", None).await;
            }
            other => self.look_up(other).await,
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
