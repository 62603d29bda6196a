//! Who works: a prompt, a model, limits and rules under a name.

use toolwright_permission::{Action, Layer, LayerKind, PLAN_FILES, Rule};

use crate::settings::{AgentMode, AgentSettings, Settings, switched};

#[derive(Debug, Clone)]
pub struct Agent {
    pub name: String,
    pub description: String,
    pub mode: AgentMode,
    pub hidden: bool,
    /// Replaces the standard prompt.
    pub prompt: Option<String>,
    pub model: Option<String>,
    pub temperature: Option<f32>,
    pub top_p: Option<f32>,
    pub seed: Option<i64>,
    pub stop: Vec<String>,
    pub effort: Option<String>,
    pub steps: Option<u32>,
    pub layer: Option<Layer>,
}

#[derive(Debug, thiserror::Error)]
#[error("there is no agent named \"{name}\"; known agents: {}", known.join(", "))]
pub struct AgentError {
    pub name: String,
    pub known: Vec<String>,
}

impl Agent {
    /// Those that can be chosen, the default first.
    pub fn all(settings: &Settings, home: &str) -> Vec<Self> {
        let mut agents = vec![build(), plan(), general(), explore()];
        for (name, own) in &settings.agent {
            let at = agents.iter().position(|a| a.name == *name);
            match (at, own.disable) {
                (Some(at), true) => {
                    agents.remove(at);
                }
                (None, true) => {}
                (Some(at), false) => agents[at].change(own, home),
                (None, false) => {
                    let mut agent = named(name, "", AgentMode::All);
                    agent.change(own, home);
                    agents.push(agent);
                }
            }
        }
        agents
    }

    /// By name; without one, the configured default or the first.
    pub fn choose(
        settings: &Settings,
        home: &str,
        wanted: Option<&str>,
    ) -> Result<Self, AgentError> {
        let mut agents = Self::all(settings, home);
        agents.retain(|agent| agent.mode != AgentMode::Subagent);
        let wanted = wanted.or(settings.default_agent.as_deref()).unwrap_or("build");
        match agents.iter().position(|a| a.name == wanted) {
            Some(at) => Ok(agents.swap_remove(at)),
            None => Err(AgentError {
                name: wanted.to_owned(),
                known: agents.into_iter().map(|a| a.name).collect(),
            }),
        }
    }

    /// Those that other agents can give work to, by name.
    pub fn workers(settings: &Settings, home: &str) -> Vec<Self> {
        let mut agents = Self::all(settings, home);
        agents.retain(|agent| agent.mode != AgentMode::Primary && !agent.hidden);
        agents.sort_by(|a, b| a.name.cmp(&b.name));
        agents
    }

    fn change(&mut self, own: &AgentSettings, home: &str) {
        let set = |old: &mut Option<String>, new: &Option<String>| {
            if new.is_some() {
                old.clone_from(new);
            }
        };
        set(&mut self.prompt, &own.prompt);
        set(&mut self.model, &own.model);
        set(&mut self.effort, &own.effort);
        if let Some(description) = &own.description {
            self.description.clone_from(description);
        }
        self.mode = own.mode.unwrap_or(self.mode);
        self.hidden |= own.hidden;
        self.temperature = own.temperature.or(self.temperature);
        self.top_p = own.top_p.or(self.top_p);
        self.seed = own.seed.or(self.seed);
        if !own.stop.is_empty() {
            self.stop.clone_from(&own.stop);
        }
        self.steps = own.steps.or(self.steps);
        let mut rules = switched(&own.tools);
        rules.extend(own.permission.as_ref().map_or(Vec::new(), |p| p.rules(home)));
        if !rules.is_empty() {
            let empty = || Layer {
                kind: LayerKind::Agent,
                origin: format!("agent {}", self.name),
                rules: Vec::new(),
            };
            self.layer.get_or_insert_with(empty).rules.extend(rules);
        }
    }
}

fn named(name: &str, description: &str, mode: AgentMode) -> Agent {
    Agent {
        name: name.to_owned(),
        description: description.to_owned(),
        mode,
        hidden: false,
        prompt: None,
        model: None,
        temperature: None,
        top_p: None,
        seed: None,
        stop: Vec::new(),
        effort: None,
        steps: None,
        layer: None,
    }
}

fn build() -> Agent {
    let description = "Works on the project: reads, changes files, runs commands.";
    named("build", description, AgentMode::Primary)
}

fn plan() -> Agent {
    let description = "Looks and thinks, and changes no file but its plan.";
    let mut layer = layer("plan", &[("edit", Action::Deny)]);
    for pattern in PLAN_FILES {
        let (permission, pattern) = ("edit".to_owned(), (*pattern).to_owned());
        layer.rules.push(Rule { permission, pattern, action: Action::Allow });
    }
    let layer = Some(layer);
    Agent { layer, ..named("plan", description, AgentMode::Primary) }
}

fn general() -> Agent {
    let description =
        "Does a piece of work of several steps by itself: research, or a change that stands alone.";
    let refused = ["todowrite", "question"].map(|key| (key, Action::Deny));
    let layer = Some(layer("general", &refused));
    Agent { layer, ..named("general", description, AgentMode::Subagent) }
}

fn explore() -> Agent {
    let description = "Searches and reads to answer a question about the code, and changes nothing. Say how thorough it should be.";
    let refused = ["edit", "task", "todowrite", "question"].map(|key| (key, Action::Deny));
    let layer = Some(layer("explore", &refused));
    let prompt = Some(include_str!("prompts/explore.md").trim().to_owned());
    Agent { layer, prompt, ..named("explore", description, AgentMode::Subagent) }
}

fn layer(agent: &str, rules: &[(&str, Action)]) -> Layer {
    let rule = |(key, action): &(&str, Action)| Rule {
        permission: (*key).to_owned(),
        pattern: "*".to_owned(),
        action: *action,
    };
    let origin = format!("agent {agent}");
    Layer { kind: LayerKind::Agent, origin, rules: rules.iter().map(rule).collect() }
}
