//! What people change in their files while a program runs: it counts from the next prompt on. What cannot
//! be used is said once, and everything stays as it was.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use serde_json::Value;
use toolwright_config::{Config, Paths, Stamp, Trust, TrustState};
use toolwright_engine::{AgentChange, Engine};
use toolwright_tool::Workspace;

use super::{SetupError, Workbench};
use crate::configured;
use crate::mcp;
use crate::planning::{self, Handover};
use crate::station::{effort_of, sampling_of};

type Environment<'a> = &'a dyn Fn(&str) -> Option<String>;

/// How the files stood when a workbench was opened.
pub(super) struct Read {
    stamp: Stamp,
    /// What the project's own files held that are used because somebody trusts them.
    trusted: BTreeMap<String, String>,
    /// The settings before anybody changed them.
    value: Value,
    /// Something newer that was refused.
    refused: Mutex<Option<Stamp>>,
}

impl Read {
    pub(super) fn now(
        paths: &Paths,
        workspace: &Workspace,
        config: &Config,
        trusted: bool,
        env: Environment<'_>,
    ) -> Self {
        let (directory, worktree) = (workspace.directory(), workspace.worktree());
        let skills = &config.settings.skills.paths;
        let prints = || Trust::new(paths).fingerprints(directory, worktree);
        Self {
            stamp: Stamp::take(paths, directory, worktree, skills, &config.included, env),
            trusted: if trusted { prints() } else { BTreeMap::new() },
            value: config.value.clone(),
            refused: Mutex::default(),
        }
    }
}

impl Workbench {
    /// This folder as its files say now, if they have changed since. What cannot be used is an error the
    /// first time; asked again about the same files, there is nothing new. Its MCP servers are not
    /// started: [`Self::take_servers`] comes once it is certain that this is what counts.
    pub fn renewed(&self) -> Result<Option<Self>, SetupError> {
        let (directory, worktree) = (self.workspace.directory(), self.workspace.worktree());
        let skills = &self.config.settings.skills.paths;
        let included = &self.config.included;
        let now = Stamp::take(&self.paths, directory, worktree, skills, included, &self.env);
        if now == self.read.stamp {
            return Ok(None);
        }
        let mut refused = self.read.refused.lock().unwrap_or_else(PoisonError::into_inner);
        if refused.replace(now.clone()) == Some(now) {
            return Ok(None);
        }
        drop(refused);
        self.check_trust()?;
        let mut next = Self::open(directory, self.is_trusted)?;
        let same = |keys: &[&str]| {
            keys.iter().all(|key| next.read.value.get(key) == self.read.value.get(key))
        };
        // What runs goes on running, unless it is what has changed.
        let (keeps_helpers, keeps_watch) =
            (same(&["lsp", "formatter"]), same(&["snapshot", "undo"]));
        if keeps_helpers {
            next.feedback = self.feedback.clone();
        }
        if keeps_watch {
            next.watch = self.watch.clone();
        }
        next.unlocked.clone_from(&self.unlocked);
        Ok(Some(next))
    }

    /// The MCP servers of `before` become those of this folder: what its settings have not changed goes
    /// on running. Says whether anything is another.
    pub async fn take_servers(&mut self, before: &Self) -> bool {
        let is_other = before.mcp.change_to(&self.mcp).await;
        self.mcp = before.mcp.clone();
        is_other
    }

    /// An agent can write to the project's files too: what they would run counts only if a person has
    /// agreed to just that.
    fn check_trust(&self) -> Result<(), SetupError> {
        if !self.is_trusted {
            return Ok(());
        }
        let (directory, worktree) = (self.workspace.directory(), self.workspace.worktree());
        let store = self.trust_store();
        if store.state(directory, worktree) == TrustState::Trusted {
            return Ok(());
        }
        let now = store.fingerprints(directory, worktree);
        let known = &self.read.trusted;
        let changed = now.iter().filter(|(file, print)| known.get(*file) != Some(*print));
        let files: Vec<String> = changed.map(|(file, _)| file.clone()).collect();
        if files.is_empty() { Ok(()) } else { Err(SetupError::Untrusted { files }) }
    }
}

impl Handover {
    pub fn bench(&self) -> &Workbench {
        &self.bench
    }

    /// Lets the session go on with what people have changed in their files, if they have; for the
    /// beginning of a prompt. Gives what there is to say; nothing where nothing has changed. After an
    /// error everything is as it was.
    pub async fn refresh(
        &mut self,
        engine: &mut Engine,
    ) -> Result<Option<Vec<String>>, SetupError> {
        let Some(mut next) = self.bench.renewed()? else { return Ok(None) };
        let agent = next.agent(Some(engine.agent()))?;
        let known = &self.bench.config.warnings;
        let news = |warning: &&String| !known.contains(warning);
        let mut notices: Vec<String> = next.config.warnings.iter().filter(news).cloned().collect();
        notices.extend(next.prepare(Some(self.gate.mode())).await);
        let mut policy = next.policy(&agent, &self.stance);
        policy.allow_outputs(&self.outputs);
        self.gate.change_rules(policy);
        self.change_tools(engine, &next, &mut notices).await;
        if next.take_servers(&self.bench).await {
            // The session has begun, so it goes on without one that is not there.
            let missing = next.mcp.settle(mcp::PATIENCE).await.err();
            notices
                .extend(missing.map_or_else(|| mcp::notices(&next.mcp), |problem| vec![problem]));
        }
        let steps = self.steps.or(agent.steps).or(next.config.settings.steps);
        let plan = planning::plan_file(next.workspace.worktree(), &engine.session().header.session);
        let change = AgentChange {
            agent: agent.name.clone(),
            // The session's own is frozen; this is for an agent that has not spoken yet.
            system: planning::system(&next, &agent, &plan),
            sampling: sampling_of(&agent),
            effort: effort_of(self.effort, &agent),
            steps: steps.map_or(self.usual_steps, |n| n as usize),
        };
        engine.change_agent(change).await?;
        self.bench = next;
        Ok(Some(notices))
    }

    /// Tools and hooks that people wrote, and those of ours that are told something by the settings.
    async fn change_tools(
        &mut self,
        engine: &mut Engine,
        next: &Workbench,
        notices: &mut Vec<String>,
    ) {
        let (scripts, told) = next.scripts();
        notices.extend(told);
        let session = engine.session();
        let id = session.header.session.clone();
        let mut hooks = next.hooks(session, &self.log, None);
        hooks.extend(scripts.hooks(&id));
        // What took the place of one of ours gives it back.
        let ours = next.registry_for(&self.jobs, Some(session), Some(&self.hooks));
        for name in self.own_tools.drain(..) {
            if !ours.lend(&name, &self.registry) {
                self.registry.unregister(&name);
            }
        }
        let skills = next.skills_for(&|name| !self.gate.denies_outright("skill", name));
        configured::register(&self.registry, &next.config, skills, &next.env);
        if let Some(mut employer) = self.employer.clone() {
            employer.bench = next.clone();
            employer.register(&self.registry);
        }
        let agent = engine.agent().to_owned();
        let registered = scripts.register(&self.registry, &self.gate, &id, &agent).await;
        let (names, said) = registered;
        self.own_tools = names;
        notices.extend(said);
        self.hooks.replace(hooks);
        engine.hooks_replaced();
        scripts.talk_to(engine.inbox());
        scripts.noted_by(engine.keeper());
    }
}
