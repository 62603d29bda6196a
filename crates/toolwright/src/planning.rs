//! Planning as a state of the session: which agent works, where its plan is, and how one takes over
//! from the other.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use toolwright_config::{Agent, AgentError};
use toolwright_engine::{AgentChange, Engine, Hooks, PermissionGate};
use toolwright_llm::{Content, Effort};
use toolwright_permission::{Mode, Stance};
use toolwright_session::{LogError, Session};
use toolwright_tool::{Registry, Source};
use toolwright_tools::{
    BUILD_AGENT, Jobs, PLAN_AGENT, PLAN_ENTER, PLAN_EXIT, PlanEnter, PlanExit, agreed_agent,
};

use crate::mcp;
use crate::station::{Employer, effort_of, sampling_of};
use crate::workbench::Workbench;

/// Where a session's plan is written: beside the project's other files for agents.
pub(crate) fn plan_file(worktree: &Path, session: &str) -> PathBuf {
    let folder = if worktree.join(".opencode").is_dir() { ".opencode" } else { ".toolwright" };
    worktree.join(folder).join("plans").join(format!("{session}.md"))
}

/// All that an agent is told before the first prompt, whether it begins or takes over.
pub(crate) fn system(bench: &Workbench, agent: &Agent, file: &Path) -> String {
    mcp::with_instructions(with_note(bench.system(agent), agent, file), &bench.mcp)
}

/// The plan agent is told how to plan, unless it was given a prompt of its own.
fn with_note(system: String, agent: &Agent, file: &Path) -> String {
    if agent.name != PLAN_AGENT || agent.prompt.is_some() {
        return system;
    }
    let note = include_str!("planning.md").trim();
    format!("{system}\n\n{}", note.replace("{file}", &file.display().to_string()))
}

/// The way from the agent at work to the other, where both can be chosen.
pub(crate) fn register(registry: &Registry, bench: &Workbench, agent: &str, file: &Path) {
    registry.unregister(PLAN_ENTER);
    registry.unregister(PLAN_EXIT);
    let file = bench.workspace.relative(file);
    let can_be = |name: &str| bench.agent(Some(name)).is_ok();
    match agent {
        BUILD_AGENT if can_be(PLAN_AGENT) => {
            registry.register_from(Source::BuiltIn, Arc::new(PlanEnter { file }));
        }
        PLAN_AGENT if can_be(BUILD_AGENT) => {
            registry.register_from(Source::BuiltIn, Arc::new(PlanExit { file }));
        }
        _ => {}
    }
}

/// Lets one agent take over from another between turns.
pub struct Handover {
    pub(crate) bench: Workbench,
    pub(crate) gate: Arc<PermissionGate>,
    pub(crate) hooks: Arc<Hooks>,
    pub(crate) registry: Registry,
    /// Gives work to other agents, where this one may.
    pub(crate) employer: Option<Employer>,
    pub(crate) jobs: Jobs,
    /// Tools that people wrote, as they were found last.
    pub(crate) own_tools: Vec<String>,
    pub(crate) log: PathBuf,
    pub(crate) outputs: PathBuf,
    pub(crate) stance: Stance,
    /// The mode that a plan was begun in: carrying it out goes on in that.
    pub(crate) before_planning: Mutex<Option<Mode>>,
    /// What the person asked for, whoever works.
    pub(crate) steps: Option<u32>,
    pub(crate) effort: Option<Effort>,
    pub(crate) usual_steps: usize,
}

impl Handover {
    /// If the person agreed to another agent in the turn that has ended: that agent takes over, and
    /// what it is to be told is returned as the prompt of the next turn.
    pub async fn follow(&self, engine: &mut Engine) -> Result<Option<Vec<Content>>, LogError> {
        let Some(name) = agreed_agent(engine.session()) else { return Ok(None) };
        let Ok(agent) = self.bench.agent(Some(&name)) else { return Ok(None) };
        let file = plan_file(self.bench.workspace.worktree(), &engine.session().header.session);
        let mut policy = self.bench.policy(&agent, &self.stance);
        policy.allow_outputs(&self.outputs);
        let steps = self.steps.or(agent.steps).or(self.bench.config.settings.steps);
        engine
            .change_agent(AgentChange {
                agent: agent.name.clone(),
                system: system(&self.bench, &agent, &file),
                sampling: sampling_of(&agent),
                effort: effort_of(self.effort, &agent),
                steps: steps.map_or(self.usual_steps, |n| n as usize),
            })
            .await?;
        self.gate.change_rules(policy);
        self.change_mode(&agent.name);
        register(&self.registry, &self.bench, &agent.name, &file);
        Ok(Some(vec![Content::text(told(&agent.name, &self.bench.workspace.relative(&file)))]))
    }

    /// Who agreed to a plan first has agreed to nothing else until it is there; who agreed to the
    /// plan goes on as before.
    fn change_mode(&self, agent: &str) {
        let mut before = self.before_planning.lock().unwrap_or_else(PoisonError::into_inner);
        if agent == PLAN_AGENT {
            let mode = self.gate.set_mode(Mode::Plan);
            *before = Some(mode).filter(|mode| *mode != Mode::Plan).or(*before);
        } else if self.gate.mode() == Mode::Plan {
            self.gate.set_mode(before.take().unwrap_or_default());
        }
    }
}

fn told(agent: &str, file: &str) -> String {
    if agent == PLAN_AGENT {
        format!("Plan this first. Write the plan to {file} and change nothing else.")
    } else {
        format!("The plan in {file} is approved. You may change files now: carry the plan out.")
    }
}

/// The mode that a session was left in. Not `auto`: who wants no questions says so each time. What a
/// person agreed to just before the end counts, even if nobody lived to see it.
pub(crate) fn kept_mode(session: &Session) -> Option<Mode> {
    let left: Option<Mode> = session.mode().and_then(|word| word.parse().ok());
    match agreed_agent(session).as_deref() {
        Some(PLAN_AGENT) => Some(Mode::Plan),
        Some(_) if left == Some(Mode::Plan) => None,
        _ => left.filter(|mode| *mode != Mode::Auto),
    }
}

/// With whom a session goes on where nobody is named: in the mode `plan` with the agent that plans, where
/// there is one; else with whoever was agreed to, or worked last. A plan that is left by another mode
/// is left by its agent too.
pub(crate) fn agent_for(
    bench: &Workbench,
    before: Option<&Session>,
    mode: Mode,
) -> Result<Agent, AgentError> {
    if mode == Mode::Plan
        && let Ok(agent) = bench.agent(Some(PLAN_AGENT))
    {
        return Ok(agent);
    }
    let worked = before.and_then(|session| {
        agreed_agent(session).or_else(|| session.last_prompt().map(|p| p.agent.clone()))
    });
    let was_planning = before.and_then(Session::mode) == Some(Mode::Plan.as_str());
    let worked = worked.filter(|name| !(was_planning && name == PLAN_AGENT));
    bench.agent(worked.as_deref())
}
