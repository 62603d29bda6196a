//! The coding agent for one folder: configuration, rules, tools and sessions, put together.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};

use futures_util::FutureExt;
use tokio::sync::mpsc;
use toolwright_config::{
    Agent, AgentError, Config, ConfigError, Instruction, Paths, Skill, StaleEdits, Trust,
    TrustState, configured_instructions, find_instructions, find_skills,
};
use toolwright_engine::{
    Budget, Context, Engine, Event, Hook, Hooks, PermissionGate, Purse, Questions, system_prompt,
};
use toolwright_llm::{PROVIDERS, Trace, provider};
use toolwright_mcp::{Servers, SignIn, Vault, begin_sign_in};
use toolwright_permission::{Mode, ModeCell, Policy, Rule, Stance, shipped_defaults};
use toolwright_session::images::{Keeper, Watch};
use toolwright_session::{
    EntryId, Log, LogError, MoveReason, NotFound, OpenError, Retention, Session, Store,
};
use toolwright_tool::{
    AnyTool, FinalAnswer, ImageLimits, OutputCaps, Pipeline, PipelineOptions, Registry, Secrets,
    Source, Workspace,
};
use toolwright_tools::{AskVariables, BashOptions, Feedback, Jobs, Nearby};

use crate::approvals::Approvals;
use crate::auth::{Credentials, Kept};
use crate::choose::{Chosen, ModelError, choose_model};
use crate::configured;
use crate::given::given_instructions;
use crate::hooks::{Place, command_hooks};
use crate::housekeeping::Housekeeper;
use crate::keyring;
use crate::mcp;
use crate::planning::{Handover, agent_for, kept_mode};
use crate::sandbox::Protection;
use crate::scripts::Scripts;
use crate::secrets;
use crate::station::Station;

mod desk;
mod renew;

pub use desk::{Desk, DeskOptions, SessionChoice};

#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    #[error("cannot work in {}: {source}", directory.display())]
    Directory { directory: PathBuf, source: std::io::Error },
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The settings `lsp` and `formatter` name something that cannot work.
    #[error("{0}")]
    Feedback(String),
    /// One is required and none works.
    #[error("{0}")]
    Sandbox(String),
    /// The setting `mcp` names something that cannot work.
    #[error("{0}")]
    Mcp(String),
    /// A server without which nothing is to begin.
    #[error("{0}")]
    McpRequired(String),
    /// Files that run something are not those that were agreed to.
    #[error("{} changed since this folder was trusted; look at them, then run  tw trust", files.join(", "))]
    Untrusted { files: Vec<String> },
    #[error(transparent)]
    Agent(#[from] AgentError),
    #[error(transparent)]
    Model(#[from] ModelError),
    #[error(transparent)]
    Session(#[from] OpenError),
    #[error(transparent)]
    Log(#[from] LogError),
}

/// Scripts that were found, and what is to be said about them.
pub(crate) type Begun = (Scripts, Vec<String>);

/// A folder with everything that applies in it.
#[derive(Clone)]
pub struct Workbench {
    pub paths: Paths,
    pub workspace: Arc<Workspace>,
    pub config: Config,
    pub skills: Arc<[Skill]>,
    /// What was said about this folder before; whether its own configuration is used is in
    /// [`Self::is_trusted`].
    pub trust: TrustState,
    pub is_trusted: bool,
    env: fn(&str) -> Option<String>,
    secrets: Arc<OnceLock<Secrets>>,
    /// The key that the keyring gave for the model in use, by its provider.
    unlocked: Arc<OnceLock<(String, String)>>,
    /// Shared by all sessions and sub-agents of this folder.
    feedback: Feedback,
    /// What holds its commands.
    pub protection: Protection,
    /// What is known about the folder's files, for undo.
    watch: Watch,
    /// Shared in the same way; started with the first session.
    pub mcp: Servers,
    /// Whether plugins have changed the settings, as far as they want to.
    pub(crate) is_prepared: bool,
    /// How the files stood that all this was read from.
    read: Arc<renew::Read>,
    /// What was begun for that.
    pub(crate) begun: Arc<Mutex<Option<Begun>>>,
}

impl Workbench {
    /// Reads what applies in `directory`. `trusted` lets the folder's own configuration do more
    /// than tighten rules; so does what the user said about it before.
    pub fn open(directory: &Path, trusted: bool) -> Result<Self, SetupError> {
        let env: fn(&str) -> Option<String> = |name| std::env::var(name).ok();
        let workspace = Workspace::new(directory)
            .map_err(|source| SetupError::Directory { directory: directory.to_owned(), source })?;
        let paths = Paths::from_env(&env);
        let workspace = workspace.guarding(paths.own());
        let trust = Trust::new(&paths).state(workspace.directory(), workspace.worktree());
        let trusted = trusted || trust == TrustState::Trusted;
        let mut config =
            Config::load(&paths, workspace.directory(), workspace.worktree(), trusted, &env)?;
        if let TrustState::Changed { files, was_trusted: true } = &trust
            && !config.left_out.is_empty()
        {
            let files = files.join(", ");
            config.warnings.push(format!("you trusted this folder; changed since: {files}"));
        }
        if let Err(problem) = Approvals::new(&paths, workspace.worktree()).here() {
            config.warnings.push(format!("kept approvals are not used: {problem}"));
        }
        let (secrets, unlocked) = (Arc::default(), Arc::default());
        if let Err(problem) = configured::search_provider(&config.settings.websearch, &env) {
            config.warnings.push(problem);
        }
        let (directory, worktree) = (workspace.directory(), workspace.worktree());
        let skills = find_skills(&paths, directory, worktree, &config.settings.skills.paths);
        config.warnings.extend(skills.warnings);
        let skills = skills.found.into();
        let protection = Protection::new(&config, &paths, &workspace, &env);
        let held = protection.clone();
        let workspace = workspace.minding(&written_rules(&config, &paths));
        let workspace = Arc::new(workspace.contained(move || held.containment()));
        let feedback =
            crate::feedback::feedback(&config.settings, &workspace, trusted, &protection, &env)
                .map_err(SetupError::Feedback)?;
        let credentials = Credentials::new(paths.data.join("auth.json"));
        if let Err(problem) = credentials.all() {
            config.warnings.push(format!("the stored keys are not used: {problem}"));
        }
        let mcp = mcp::servers(&mut config, &workspace, credentials, &protection)
            .map_err(SetupError::Mcp)?;
        let is_trusted = trusted;
        let watch = crate::undo::watch(&paths, &workspace, &config.settings);
        let read = Arc::new(renew::Read::now(&paths, &workspace, &config, trusted, &env));
        Ok(Self {
            skills,
            paths,
            workspace,
            config,
            trust,
            is_trusted,
            env,
            secrets,
            unlocked,
            feedback,
            protection,
            watch,
            mcp,
            is_prepared: false,
            read,
            begun: Arc::default(),
        })
    }

    /// Which folders the user trusts.
    pub fn trust_store(&self) -> Trust {
        Trust::new(&self.paths)
    }

    /// What people agreed to for longer than a run, as far as it counts here.
    pub fn approvals(&self) -> Approvals {
        Approvals::new(&self.paths, self.workspace.worktree())
    }

    pub fn store(&self) -> Store {
        Store::new(self.paths.sessions())
    }

    pub fn agent(&self, name: Option<&str>) -> Result<Agent, AgentError> {
        Agent::choose(&self.config.settings, &self.paths.home.display().to_string(), name)
    }

    /// The rules for an agent, taken as strictly as the run says.
    pub fn policy(&self, agent: &Agent, stance: &Stance) -> Policy {
        let mut layers = vec![shipped_defaults()];
        layers.extend(self.config.layers.iter().cloned());
        layers.extend(agent.layer.clone());
        let mut policy = Policy::new(layers).with_stance(stance.clone());
        // A store that cannot be read was named when the folder was opened.
        let kept = self.approvals().here().unwrap_or_default();
        kept.into_iter().for_each(|kept| policy.approve(kept.approval));
        // A skill names files that lie with it.
        for folder in self.skills.iter().filter_map(|skill| skill.location.parent()) {
            // As paths are judged: by where a link leads.
            let real = std::fs::canonicalize(folder);
            policy.allow_outputs(real.as_deref().unwrap_or(folder));
        }
        policy
    }

    /// The built-in tools, with jobs of their own.
    pub fn registry(&self) -> Registry {
        self.registry_for(&Jobs::default(), None, None)
    }

    /// Puts the tools that people wrote beside those of a registry; gives what could not be used and why.
    pub async fn add_scripts(
        &self,
        registry: &Registry,
        gate: &Arc<PermissionGate>,
        agent: &str,
    ) -> Vec<String> {
        let (scripts, mut notices) = self.scripts();
        notices.extend(scripts.register(registry, gate, "", agent).await.1);
        notices
    }

    /// The built-in tools for a session that may have begun long ago; their jobs are `jobs`.
    pub(crate) fn registry_for(
        &self,
        jobs: &Jobs,
        session: Option<&Session>,
        hooks: Option<&Arc<Hooks>>,
    ) -> Registry {
        let registry = Registry::default().with_search();
        let withheld = secrets::key_variables(&self.config.settings).map(str::to_owned);
        let login = (self.env)("TOOLWRIGHT_SHELL_LOGIN").is_none_or(|value| value != "off");
        let bash = BashOptions {
            shell: self.config.settings.shell.clone(),
            withheld: withheld.collect(),
            login_environment: login && self.config.settings.shell_login.unwrap_or(true),
            jobs: jobs.clone(),
            passed: self.config.settings.sandbox.environment.clone(),
            sandbox: self.protection.as_find(),
            variables: hooks.map(shell_variables),
            after: self.protection.after_command(),
        };
        toolwright_tools::register_all(&registry, bash, &self.feedback);
        configured::register(&registry, &self.config, self.skills_for(&|_| true), &self.env);
        let stale = match self.config.settings.stale_edits {
            Some(StaleEdits::Allow) => toolwright_tools::StaleEdits::Allow,
            _ => toolwright_tools::StaleEdits::Error,
        };
        let in_prompt = self.instructions();
        let given = session.map(given_instructions).unwrap_or_default();
        let nearby = Nearby::knowing(in_prompt.into_iter().map(|i| i.path), given);
        toolwright_tools::register_file_tools(&registry, stale, &self.feedback, nearby);
        registry
    }

    /// The skills that `allowed` lets pass, as the tool takes them.
    pub(crate) fn skills_for(
        &self,
        allowed: &dyn Fn(&str) -> bool,
    ) -> Vec<toolwright_tools::Skill> {
        let skills = self.skills.iter().filter(|skill| allowed(&skill.name)).cloned();
        let own = |Skill { name, description, location }| toolwright_tools::Skill {
            name,
            description,
            location,
        };
        skills.map(own).collect()
    }

    pub async fn choose_model(
        &self,
        asked: Option<&str>,
        agent: &Agent,
        trace: Option<Trace>,
    ) -> Result<Chosen, ModelError> {
        let asked = asked.or(agent.model.as_deref());
        let refreshed = self.refreshed_models();
        let env = |name: &str| self.variable(name);
        let settings = &self.config.settings;
        let chosen = choose_model(asked, settings, &env, refreshed.as_deref(), trace).await?;
        if let Some(unlocked) = chosen.unlocked.clone() {
            // One that is there already is that of the model in use.
            self.unlocked.set(unlocked).ok();
        }
        Ok(chosen)
    }

    /// The environment, with the stored keys where it has none. For a key in the keyring something
    /// stands in that says so: looking takes time, and may ask the user to unlock it.
    pub fn variable(&self, name: &str) -> Option<String> {
        let set = (self.env)(name).filter(|value| !value.trim().is_empty());
        set.or_else(|| {
            let row = PROVIDERS.iter().find(|p| p.key_variables.first() == Some(&name))?;
            // A broken store was said when the folder was opened.
            match self.credentials().get(row.id).ok()?? {
                Kept::InFile(key) => Some(key),
                Kept::InKeyring => Some(keyring::placeholder(row.id)),
            }
        })
    }

    /// Whether a model's provider is one of the configuration, or known and has a key.
    fn has_provider(&self, spec: &str) -> bool {
        let id = spec.split('/').next().unwrap_or_default();
        let env = |name: &str| self.variable(name);
        let has_key = || provider(id).is_some_and(|row| row.key_from(&env).is_some());
        self.config.settings.provider.contains_key(id) || has_key()
    }

    pub fn credentials(&self) -> Credentials {
        Credentials::new(self.paths.data.join("auth.json"))
    }

    /// The list that `tw models --refresh` fetched, if it did.
    pub fn refreshed_models(&self) -> Option<String> {
        std::fs::read_to_string(self.models_file()).ok()
    }

    pub fn models_file(&self) -> PathBuf {
        self.paths.data.join("models.json")
    }

    /// The pipeline for one session's calls, with `outputs` for what is too large.
    pub fn pipeline(
        &self,
        registry: Registry,
        gate: &Arc<PermissionGate>,
        hooks: &Arc<Hooks>,
        outputs: PathBuf,
        keeper: Option<Keeper>,
    ) -> Pipeline {
        let settings = &self.config.settings;
        let mut options = PipelineOptions::new(outputs);
        options.serial = settings.serial_tools.unwrap_or(false);
        options.cache = settings.tool_cache.unwrap_or(true);
        options.secrets = self.secrets().clone();
        let shown = &settings.tool_output;
        options.caps = OutputCaps::of(shown.max_lines, shown.max_bytes);
        options.images = self.image_limits();
        options.keeper = keeper;
        if let Some(seconds) = settings.tool_timeout {
            options.deadline = std::time::Duration::from_secs(seconds);
        }
        if hooks.watch_calls() {
            options.hooks = Some(Arc::clone(hooks) as _);
        }
        let workspace = Arc::clone(&self.workspace);
        Pipeline::new(registry, workspace, Arc::clone(gate) as _, options)
    }

    /// Variables of ours that no program of others needs to see: the keys that there are.
    pub fn withheld_variables(&self) -> Vec<String> {
        secrets::key_variables(&self.config.settings).map(str::to_owned).collect()
    }

    /// What no output may show, collected once.
    pub(crate) fn secrets(&self) -> &Secrets {
        self.secrets.get_or_init(|| {
            // A store that cannot be read gives no keys, to us no more than to anybody.
            let stored = self.credentials().all().unwrap_or_default();
            let in_file = stored.into_iter().filter_map(|(id, kept)| match kept {
                Kept::InFile(key) => Some((id, key)),
                Kept::InKeyring => None,
            });
            let stored = in_file.chain(self.unlocked.get().cloned()).collect();
            secrets::collect(&self.config.settings, &self.env, stored)
        })
    }

    /// What is sent of images. One edge counts for both: models scale by the longer one.
    pub fn image_limits(&self) -> ImageLimits {
        let (image, usual) = (&self.config.settings.attachment.image, ImageLimits::default());
        let edges = [image.max_width, image.max_height].into_iter().flatten();
        let bytes = image.max_base64_bytes.and_then(|bytes| usize::try_from(bytes).ok());
        ImageLimits {
            edge_px: edges.min().unwrap_or(usual.edge_px),
            base64_bytes: bytes.map_or(usual.base64_bytes, |bytes| bytes.min(5 << 20)),
            scales: image.auto_resize.unwrap_or(usual.scales),
        }
    }

    /// A session's log that looks after old outputs, once the first answer is there.
    pub(crate) fn journal(&self, log: Log) -> Housekeeper {
        let kept = &self.config.settings.tool_output;
        let retention = Retention::of(kept.retention_days, kept.retention_bytes);
        Housekeeper::new(log, self.store(), retention, self.watch.images().clone())
    }

    pub(crate) fn watch(&self) -> &Watch {
        &self.watch
    }

    /// The agents that others can give work to.
    pub fn workers(&self) -> Vec<Agent> {
        Agent::workers(&self.config.settings, &self.paths.home.display().to_string())
    }

    /// The hooks of a session that is kept in `log`; of one in which `worker` works for another
    /// agent, if it does.
    pub fn hooks(&self, session: &Session, log: &Path, worker: Option<&str>) -> Vec<Arc<dyn Hook>> {
        let servers = self.config.value["mcp"].as_object();
        let place = Place {
            session: session.header.session.clone(),
            transcript: log.to_owned(),
            workspace: Arc::clone(&self.workspace),
            worker: worker.map(str::to_owned),
            servers: servers.map(|s| s.keys().cloned().collect()).unwrap_or_default(),
            passed: self.config.settings.sandbox.environment.clone(),
            withheld: self.withheld_variables(),
        };
        command_hooks(&self.config.hooks, place)
    }

    /// The rules that people wrote for agents here, each file once.
    fn instructions(&self) -> Vec<Instruction> {
        let (directory, worktree) = (self.workspace.directory(), self.workspace.worktree());
        let mut found = find_instructions(&self.paths, directory, worktree);
        let patterns = &self.config.settings.instructions;
        let configured = configured_instructions(patterns, &self.paths, directory, worktree);
        for more in configured.into_iter().chain(self.fetched_instructions()) {
            if !found.iter().any(|known| known.path == more.path) {
                found.push(more);
            }
        }
        found
    }

    pub(crate) fn system(&self, agent: &Agent) -> String {
        let (directory, worktree) = (self.workspace.directory(), self.workspace.worktree());
        let instructions: Vec<_> = self
            .instructions()
            .into_iter()
            .map(|i| (i.path.display().to_string(), i.text))
            .collect();
        system_prompt(&Context {
            directory,
            worktree,
            date: &jiff::Zoned::now().date().to_string(),
            instructions: &instructions,
            agent_prompt: agent.prompt.as_deref(),
        })
    }

    /// Prepares signing in at an MCP server.
    pub async fn sign_in(&self, server: &str) -> Result<SignIn, String> {
        let (url, oauth) = self.mcp.oauth(server)?;
        let vault: Arc<dyn Vault> = Arc::new(mcp::TokenVault::new(self.credentials()));
        begin_sign_in(server, &url, &oauth, &vault, self.mcp.challenge(server)).await
    }

    /// Forgets what signing in gave.
    pub async fn sign_out(&self, server: &str) -> Result<(), String> {
        mcp::TokenVault::new(self.credentials()).clear(server).await
    }
}

/// What hooks want commands to see.
fn shell_variables(hooks: &Arc<Hooks>) -> AskVariables {
    let hooks = Arc::clone(hooks);
    Arc::new(move |directory| {
        let hooks = Arc::clone(&hooks);
        async move { hooks.shell_variables(&directory).await }.boxed()
    })
}

fn target(session: &Session, from: &str) -> Result<EntryId, OpenError> {
    let message = session.find_message(from)?;
    // Every message stands behind the file's first line.
    session.target_of(message).ok_or_else(|| NotFound::NoMessage(from.to_owned()).into())
}

/// All rules that people wrote, those of every agent among them.
fn written_rules(config: &Config, paths: &Paths) -> Vec<Rule> {
    let home = paths.home.display().to_string();
    let layers = config.layers.iter().flat_map(|layer| layer.rules.iter().cloned());
    let agents = config.settings.agent.values().filter_map(|agent| agent.permission.as_ref());
    layers.chain(agents.flat_map(|permission| permission.rules(&home))).collect()
}
