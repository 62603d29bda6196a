//! Where one agent works: its model, rules, tools, session and limits, put together into an engine.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use toolwright_config::Agent;
use toolwright_engine::{
    Budget, ChooseTools, Crew, Engine, EngineOptions, Hooks, Order, PermissionGate, Purse, Record,
    RoomOptions, Task, Worker,
};
use toolwright_llm::{Effort, Sampling};
use toolwright_permission::Stance;
use toolwright_session::images::Keeper;
use toolwright_session::{Header, Log, LogError, OpenError, Session, Store};
use toolwright_tool::{Audience, FinalAnswer, Registry, Source};
use toolwright_tools::{Jobs, Todos};

use crate::choose::{Chosen, Selection, named};
use crate::configured::register_skills;
use crate::mcp::SessionModel;
use crate::planning;
use crate::titles;
use crate::workbench::Workbench;

/// How deep agents may give work to agents when nobody says otherwise: those who work for others do
/// it themselves.
const USUAL_DEPTH: u32 = 1;

/// The part of a model's window that descriptions of tools may take.
const TOOLS_SHARE: u64 = 10;

/// Tools that only ask a person: of no use where nobody is there.
const ASKING_TOOLS: &[&str] = &["question", "plan_enter", "plan_exit"];

pub(crate) struct Station {
    pub(crate) agent: Agent,
    pub(crate) chosen: Chosen,
    pub(crate) gate: Arc<PermissionGate>,
    pub(crate) hooks: Arc<Hooks>,
    pub(crate) registry: Registry,
    pub(crate) log: Log,
    pub(crate) session: Session,
    pub(crate) budget: Budget,
    pub(crate) effort: Option<Effort>,
    /// What the provider is to hold the answer to.
    pub(crate) output_schema: Option<Arc<serde_json::Value>>,
    /// How many agents stand above this one.
    pub(crate) depth: u32,
    pub(crate) stance: Stance,
    /// Shared with those who work for it.
    pub(crate) keeper: Option<Keeper>,
}

impl Station {
    /// Whoever gives this one's work to others, if it may.
    pub(crate) fn employer(&self, bench: &Workbench) -> Option<Employer> {
        let most = bench.config.settings.subagent_depth.unwrap_or(USUAL_DEPTH);
        (self.depth < most).then(|| Employer {
            bench: bench.clone(),
            header: self.session.header.clone(),
            chosen: self.chosen.clone(),
            gate: Arc::clone(&self.gate),
            hooks: Arc::clone(&self.hooks),
            purse: Arc::clone(&self.budget.purse),
            depth: self.depth,
            stance: self.stance.clone(),
            keeper: self.keeper.clone(),
        })
    }

    pub(crate) async fn engine(self, bench: &Workbench) -> Result<Engine, LogError> {
        let settings = &bench.config.settings;
        let employer = self.employer(bench);
        let Self { agent, chosen, gate, hooks, registry, log, session, budget, .. } = self;
        if let Some(employer) = employer {
            employer.register(&registry);
        }
        let skills = bench.skills_for(&|name| !gate.denies_outright("skill", name));
        register_skills(&registry, skills);
        let (worktree, id) = (bench.workspace.worktree(), &session.header.session);
        let plan_file = planning::plan_file(worktree, id);
        if self.depth == 0 {
            planning::register(&registry, bench, &agent.name, &plan_file);
        }
        for tool in Todos::restore(&session).tools() {
            registry.register_from(Source::BuiltIn, tool);
        }
        let namer = (self.depth == 0).then(|| titles::find_namer(bench, &chosen)).flatten();
        bench.mcp.attach(&registry, Some(SessionModel::new(&chosen, &budget.purse) as _));
        let pipeline = bench.pipeline(registry, &gate, &hooks, Store::outputs(&log), self.keeper);
        let room = &settings.compaction;
        let usual = RoomOptions::default();
        let options = EngineOptions {
            agent: agent.name.clone(),
            tools: choose_tools(&chosen, gate, self.output_schema.is_some()),
            max_output_tokens: chosen.max_output_tokens,
            sampling: sampling_of(&agent),
            effort: effort_of(self.effort, &agent),
            output_schema: self.output_schema,
            price: chosen.price.clone(),
            budget,
            hooks,
            room: RoomOptions {
                window: chosen.window.map(u64::from),
                reserved: room
                    .reserved
                    .or(chosen.max_output_tokens.map(u64::from).map(|n| n.min(usual.reserved)))
                    .unwrap_or(usual.reserved),
                auto: room.auto.unwrap_or(usual.auto),
                prune: room.prune.unwrap_or(usual.prune),
                keep: room.preserve_recent_tokens,
            },
            namer,
            ..EngineOptions::new(planning::system(bench, &agent, &plan_file))
        };
        // Work for others leaves the looking after old outputs to whoever gave it.
        let record = match session.header.parent {
            None => Record::new(session, bench.journal(log)),
            Some(_) => Record::new(session, log),
        };
        Engine::new(chosen.model, pipeline, record, options).await
    }
}

/// What the model is shown: nothing that can never run, and no more than fits. Where its provider holds
/// the answer to a form, no tool for that is shown beside it.
fn choose_tools(chosen: &Chosen, gate: Arc<PermissionGate>, native_form: bool) -> ChooseTools {
    let model = chosen.model.origin().model.clone();
    let share = chosen.window.map(|w| u64::from(w) / TOOLS_SHARE);
    let budget_tokens = share.and_then(|tokens| usize::try_from(tokens).ok());
    Arc::new(move |registry| {
        let hidden = |key: &str| native_form && key == FinalAnswer::NAME;
        let unasked = |key: &str| ASKING_TOOLS.contains(&key) && !gate.can_ask();
        let denied = |key: &str| gate.always_denies(key) || hidden(key) || unasked(key);
        registry.offer(&Audience { model: &model, denied: &denied, budget_tokens }).definitions
    })
}

pub(crate) fn sampling_of(agent: &Agent) -> Sampling {
    Sampling {
        temperature: agent.temperature,
        top_p: agent.top_p,
        seed: agent.seed,
        stop: agent.stop.clone(),
    }
}

pub(crate) fn effort_of(asked: Option<Effort>, agent: &Agent) -> Option<Effort> {
    asked.or_else(|| named_effort(agent.effort.as_deref()?))
}

/// A word that is no effort (another agent's variant) leaves it to the provider.
fn named_effort(word: &str) -> Option<Effort> {
    serde_json::from_value(serde_json::Value::String(word.to_lowercase())).ok()
}

/// An agent as the one for whom others work.
#[derive(Clone)]
pub(crate) struct Employer {
    pub(crate) bench: Workbench,
    header: Header,
    chosen: Chosen,
    gate: Arc<PermissionGate>,
    hooks: Arc<Hooks>,
    purse: Arc<Purse>,
    depth: u32,
    stance: Stance,
    keeper: Option<Keeper>,
}

impl Employer {
    pub(crate) fn register(self, registry: &Registry) {
        registry.register_from(Source::BuiltIn, Arc::new(Task::new(Arc::new(self))));
    }

    async fn station(&self, order: &Order) -> Result<Station, String> {
        let bench = &self.bench;
        let agent = bench.workers().into_iter().find(|agent| agent.name == order.agent);
        let agent = agent.ok_or_else(|| format!("There is no agent {}.", order.agent))?;
        let chosen = match &agent.model {
            None => self.chosen.clone(),
            Some(spec) => {
                let env = |name: &str| bench.variable(name);
                let refreshed = bench.refreshed_models();
                let settings = &bench.config.settings;
                named(spec, settings, &env, refreshed.as_deref(), None, Selection::Configured)
                    .await
                    .map_err(|e| format!("The agent {} cannot work: {e}.", agent.name))?
            }
        };
        let (log, session) = self.session(order)?;
        let mut policy = bench.policy(&agent, &self.stance);
        policy.allow_outputs(&Store::outputs(&log));
        self.gate.allow_outputs(&Store::outputs(&log));
        // Whoever gave the work was told what cannot be used.
        let (scripts, _) = bench.scripts();
        let mut own = bench.hooks(&session, log.path(), Some(&agent.name));
        own.extend(scripts.hooks(&session.header.session));
        let hooks = Arc::new(self.hooks.below(own));
        let gate = self.gate.below(policy, &agent.name).with_hooks(Arc::clone(&hooks));
        let gate = Arc::new(gate);
        let registry = bench.registry_for(&Jobs::default(), Some(&session), Some(&hooks));
        scripts.noted_by(self.keeper.as_ref());
        scripts.register(&registry, &gate, &session.header.session, &agent.name).await;
        let usual = Budget::default();
        let steps = agent.steps.or(bench.config.settings.steps);
        Ok(Station {
            chosen,
            gate,
            hooks,
            registry,
            log,
            session,
            budget: Budget {
                steps: steps.map_or(usual.steps, |n| n as usize),
                time: None::<Duration>,
                purse: Arc::clone(&self.purse),
            },
            effort: None,
            output_schema: None,
            depth: self.depth + 1,
            stance: self.stance.clone(),
            keeper: self.keeper.clone(),
            agent,
        })
    }

    /// A new session, or that of earlier work for the same agent.
    fn session(&self, order: &Order) -> Result<(Log, Session), String> {
        let store = self.bench.store();
        let own = |session: &Session| session.header.parent.as_ref() == Some(&self.header.session);
        match order.task_id.as_deref().map(|id| store.open(id)) {
            Some(Ok((log, session, _))) if own(&session) => return Ok((log, session)),
            Some(Err(OpenError::Log(LogError::Locked { .. }))) => {
                return Err("That work is still going on.".to_owned());
            }
            // An id that names no work of this session's: the work is new.
            _ => {}
        }
        let made_by = env!("CARGO_PKG_VERSION");
        store
            .create_child(&self.header, made_by)
            .map_err(|e| format!("Cannot begin the work: {e}."))
    }
}

impl Crew for Employer {
    fn workers(&self) -> Vec<Worker> {
        let allowed = |agent: &Agent| !self.gate.denies_outright("task", &agent.name);
        let workers = self.bench.workers().into_iter().filter(allowed);
        workers.map(|a| Worker { name: a.name, description: a.description }).collect()
    }

    fn hire(&self, order: Order) -> BoxFuture<'static, Result<Engine, String>> {
        let employer = self.clone();
        async move {
            let station = employer.station(&order).await?;
            let engine = station.engine(&employer.bench).await;
            engine.map_err(|e| format!("Cannot begin the work: {e}."))
        }
        .boxed()
    }
}
