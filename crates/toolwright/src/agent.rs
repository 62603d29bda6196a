//! An agent in a few lines, for programs that bring their own tools.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use toolwright_config::Settings;
use toolwright_engine::{
    Budget, Engine, EngineOptions, Event, Hook, Hooks, PermissionGate, Record, TurnEnd, Unrecorded,
};
use toolwright_llm::{Content, Model};
use toolwright_permission::{Action, Layer, LayerKind, Policy, Rule, shipped_defaults};
use toolwright_session::{Header, LogError, Session, TurnStatus};
use toolwright_tool::{Pipeline, PipelineOptions, Registry, Tool, Workspace};

use crate::choose::{ModelError, choose_model};
use crate::secrets;

/// Events that a slow listener may lag behind before the loop waits for it.
const EVENTS_AHEAD: usize = 256;

#[derive(Debug, thiserror::Error)]
pub enum AskError {
    #[error(transparent)]
    Model(#[from] ModelError),
    #[error("cannot use the folder {}: {source}", directory.display())]
    Directory { directory: PathBuf, source: std::io::Error },
    #[error(transparent)]
    Log(#[from] LogError),
    #[error("the turn ended as {status:?}: {problem}")]
    Turn { status: TurnStatus, problem: String },
}

#[derive(Default)]
pub struct AgentBuilder {
    registry: Registry,
    rules: Vec<Rule>,
    model: Option<Arc<dyn Model>>,
    model_name: Option<String>,
    system: String,
    directory: Option<PathBuf>,
    budget: Budget,
    hooks: Vec<Arc<dyn Hook>>,
}

impl AgentBuilder {
    /// Adds somebody who looks in: before and after calls, prompts and requests.
    pub fn hook(mut self, hook: impl Hook + 'static) -> Self {
        self.hooks.push(Arc::new(hook));
        self
    }

    /// Adds a tool and allows its calls; what it does is the program's own business.
    pub fn tool(self, tool: impl Tool) -> Self {
        let key = Tool::permission(&tool).to_owned();
        self.registry.register(tool);
        self.rule(&key, "*", Action::Allow)
    }

    /// Adds a rule in the words of the configuration: the last that matches wins.
    pub fn rule(mut self, permission: &str, pattern: &str, action: Action) -> Self {
        let (permission, pattern) = (permission.to_owned(), pattern.to_owned());
        self.rules.push(Rule { permission, pattern, action });
        self
    }

    /// `PROVIDER/MODEL`. Without it: what the environment has a key for.
    pub fn model(mut self, name: &str) -> Self {
        self.model_name = Some(name.to_owned());
        self
    }

    pub fn with_model(mut self, model: Arc<dyn Model>) -> Self {
        self.model = Some(model);
        self
    }

    pub fn system(mut self, prompt: &str) -> Self {
        prompt.clone_into(&mut self.system);
        self
    }

    /// Where relative paths start; the current folder without it.
    pub fn directory(mut self, directory: impl Into<PathBuf>) -> Self {
        self.directory = Some(directory.into());
        self
    }

    pub fn budget(mut self, budget: Budget) -> Self {
        self.budget = budget;
        self
    }

    pub async fn build(self) -> Result<Agent, AskError> {
        let env = |name: &str| std::env::var(name).ok();
        let model = match self.model {
            Some(model) => model,
            None => {
                choose_model(self.model_name.as_deref(), &Settings::default(), &env, None, None)
                    .await?
                    .model
            }
        };
        let directory = self.directory.unwrap_or_else(|| PathBuf::from("."));
        let workspace = Workspace::new(&directory)
            .map_err(|source| AskError::Directory { directory: directory.clone(), source })?
            .guarding(toolwright_config::Paths::from_env(&env).own());
        let outputs = tempfile::Builder::new()
            .prefix("toolwright-")
            .tempdir()
            .map_err(|source| AskError::Directory { directory: std::env::temp_dir(), source })?;
        let own =
            Layer { kind: LayerKind::Session, origin: "the program".into(), rules: self.rules };
        let policy = Policy::new(vec![shipped_defaults(), own]);
        let hooks = Arc::new(Hooks::new(self.hooks));
        let gate = PermissionGate::new(policy, None).with_hooks(Arc::clone(&hooks));
        let gate = Arc::new(gate);
        let mut options = PipelineOptions::new(outputs.path());
        options.secrets = secrets::collect(&Settings::default(), &env, BTreeMap::new());
        if hooks.watch_calls() {
            options.hooks = Some(Arc::clone(&hooks) as _);
        }
        let registry = self.registry;
        let header = Header {
            session: "in memory".to_owned(),
            directory: workspace.directory().display().to_string(),
            made_by: env!("CARGO_PKG_VERSION").to_owned(),
            forked_from: None,
            parent: None,
        };
        let pipeline = Pipeline::new(registry, Arc::new(workspace), gate, options);
        let record = Record::new(Session::new(header), Unrecorded);
        let mut engine_options = EngineOptions::new(self.system);
        engine_options.budget = self.budget;
        engine_options.hooks = hooks;
        let engine = Engine::new(model, pipeline, record, engine_options).await?;
        Ok(Agent { engine, _outputs: outputs })
    }
}

/// A conversation in memory.
pub struct Agent {
    engine: Engine,
    /// Removed with the agent.
    _outputs: tempfile::TempDir,
}

impl Agent {
    pub fn builder() -> AgentBuilder {
        AgentBuilder::default()
    }

    /// Asks and waits for the answer.
    pub async fn ask(&mut self, prompt: &str) -> Result<String, AskError> {
        let (sender, mut events) = mpsc::channel(EVENTS_AHEAD);
        let cancel = CancellationToken::new();
        let turn = self.prompt(vec![Content::text(prompt)], &cancel, &sender);
        let drain = async {
            while let Some(event) = events.recv().await {
                if matches!(event, Event::TurnEnded(_)) {
                    break;
                }
            }
        };
        let (end, ()) = tokio::join!(turn, drain);
        match end.status {
            TurnStatus::Done => Ok(end.answer.to_string()),
            status => Err(AskError::Turn {
                status,
                problem: end.problem.unwrap_or_else(|| end.answer.to_string()),
            }),
        }
    }

    /// The same with events as they happen and a way to stop.
    pub async fn prompt(
        &mut self,
        content: Vec<Content>,
        cancel: &CancellationToken,
        events: &mpsc::Sender<Event>,
    ) -> TurnEnd {
        self.engine.prompt(content, cancel, events).await
    }
}
