//! A session put on the desk: opened or made, with everything that works on it.

use super::*;

/// Which session a turn belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionChoice {
    New,
    /// The one used last in this folder.
    Latest,
    Id(String),
}

pub struct DeskOptions {
    pub model: Option<String>,
    pub agent: Option<String>,
    pub session: SessionChoice,
    /// Work on a copy of the session.
    pub fork: bool,
    /// Go on from this message of it, a number or an id: in place of a prompt, behind an answer.
    pub from: Option<String>,
    /// How much is done without a question; without it, as the session had it or the configuration
    /// says.
    pub mode: Option<Mode>,
    /// Not even the floor holds. For machines that can be thrown away.
    pub everything: bool,
    /// Rules for this run alone; they may tighten, and loosen what the others ask about.
    pub rules: Vec<Rule>,
    /// Where questions go; nobody can be asked without it.
    pub asker: Option<mpsc::Sender<Event>>,
    pub steps: Option<u32>,
    pub time: Option<std::time::Duration>,
    /// US dollars.
    pub cost: Option<f64>,
    pub effort: Option<toolwright_llm::Effort>,
    /// Keeps what goes over the wire.
    pub trace: Option<Trace>,
    /// The form that the final answer must have.
    pub answer_form: Option<FinalAnswer>,
}

impl Default for DeskOptions {
    fn default() -> Self {
        Self {
            model: None,
            agent: None,
            session: SessionChoice::New,
            fork: false,
            from: None,
            mode: None,
            everything: false,
            rules: Vec::new(),
            asker: None,
            steps: None,
            time: None,
            cost: None,
            effort: None,
            trace: None,
            answer_form: None,
        }
    }
}

/// A session ready to be worked on.
pub struct Desk {
    pub engine: Engine,
    pub questions: Arc<Questions>,
    /// The door: which mode it is in, and how to change that.
    pub gate: Arc<PermissionGate>,
    /// Commands that run in the background.
    pub jobs: Jobs,
    pub agent: Agent,
    pub chosen: crate::Selection,
    pub notices: Vec<String>,
    /// For when the person agrees to another agent.
    pub handover: Handover,
    /// What holds its commands.
    pub protection: Protection,
}

impl Workbench {
    /// Opens or makes a session and puts everything on the desk.
    pub async fn desk(&self, options: DeskOptions) -> Result<Desk, SetupError> {
        if self.is_prepared {
            return self.laid_out(options).await;
        }
        let mut prepared = self.clone();
        let notices = prepared.prepare(options.mode).await;
        let mut desk = prepared.laid_out(options).await?;
        desk.notices.extend(notices);
        Ok(desk)
    }

    async fn laid_out(&self, options: DeskOptions) -> Result<Desk, SetupError> {
        self.protection.begin(&self.paths.data);
        let before = match options.session {
            SessionChoice::New => None,
            SessionChoice::Latest => Some(self.store().glance_latest(self.workspace.directory())?),
            SessionChoice::Id(ref id) => Some(self.store().glance(id)?),
        };
        // In the background, beside all that follows.
        self.mcp.start();
        let mode = self.mode_of(before.as_ref(), options.mode);
        // A session goes on with the agent and the model that it had, unless others are named.
        let agent = match &options.agent {
            Some(name) => self.agent(Some(name))?,
            None => agent_for(self, before.as_ref(), mode)?,
        };
        let is_imported = before.as_ref().is_some_and(|session| session.imported().is_some());
        let before = before.as_ref().and_then(Session::last_prompt);
        let had = before.map(|p| p.model.to_string());
        // An imported session names a model of another program's configuration.
        let had = had.filter(|spec| !is_imported || self.has_provider(spec));
        let wanted = options.model.as_deref().or(had.as_deref());
        let chosen = self.choose_model(wanted, &agent, options.trace).await?;
        self.mcp.settle(mcp::PATIENCE).await.map_err(SetupError::McpRequired)?;
        let (mut log, mut session, mut notices) =
            self.open_session(&options.session, options.fork, options.from.as_deref())?;
        let keeper = self.keeper(&log);
        notices.extend(self.settle_files(&mut log, &mut session, keeper.as_ref()).await?);
        let stance = Stance {
            mode: ModeCell::new(mode),
            everything: options.everything,
            rules: options.rules,
        };
        let mut policy = self.policy(&agent, &stance);
        // What was too large for an answer is ours, and the model is told to look there.
        policy.allow_outputs(&Store::outputs(&log));
        let (scripts, told) = self.scripts();
        let mut all_hooks = self.hooks(&session, log.path(), None);
        all_hooks.extend(scripts.hooks(&session.header.session));
        let hooks = Arc::new(Hooks::new(all_hooks));
        let gate = PermissionGate::new(policy, options.asker)
            .with_hooks(Arc::clone(&hooks))
            .with_keeper(Arc::new(self.approvals()));
        let gate = Arc::new(gate);
        let questions = gate.questions();
        let jobs = Jobs::default();
        let own_jobs = jobs.clone();
        let keeper = keeper.map(|k| k.with_jobs(move || !own_jobs.running().is_empty()));
        let registry = self.registry_for(&jobs, Some(&session), Some(&hooks));
        // Where the provider holds the answer to the form, the tool only takes what was said.
        let mut output_schema = None;
        if let Some(form) = options.answer_form {
            let schema = form.schema();
            output_schema = chosen.model.takes_form(&schema).then(|| Arc::new(schema));
            registry.register_from(Source::BuiltIn, Arc::new(form));
        }
        let steps = options.steps.or(agent.steps).or(self.config.settings.steps);
        let budget = Budget {
            steps: steps.map_or(Budget::default().steps, |n| n as usize),
            time: options.time,
            purse: Purse::new(options.cost),
        };
        notices.extend(told);
        let id = &session.header.session;
        let (own_tools, said) = scripts.register(&registry, &gate, id, &agent.name).await;
        notices.extend(said);
        notices.extend(mcp::notices(&self.mcp));
        if options.cost.is_some() && chosen.price.is_none() {
            notices
                .push("the price of this model is not known: --max-cost cannot be kept".to_owned());
        }
        let why = chosen.why.clone();
        let (log_path, outputs) = (log.path().to_owned(), Store::outputs(&log));
        let station = Station {
            agent: agent.clone(),
            chosen,
            gate: Arc::clone(&gate),
            hooks,
            registry: registry.clone(),
            log,
            session,
            budget,
            effort: options.effort,
            output_schema,
            depth: 0,
            stance: stance.clone(),
            keeper,
        };
        let handover = Handover {
            bench: self.clone(),
            gate: Arc::clone(&gate),
            hooks: Arc::clone(&station.hooks),
            registry,
            employer: station.employer(self),
            jobs: jobs.clone(),
            own_tools,
            log: log_path,
            outputs,
            stance,
            before_planning: std::sync::Mutex::default(),
            steps: options.steps,
            effort: options.effort,
            usual_steps: Budget::default().steps,
        };
        // What a session was told once stays as it was.
        if station.session.system_prompt(&agent.name).is_none() {
            notices.extend(self.fetch_instructions().await);
        }
        let engine = station.engine(self).await?;
        scripts.talk_to(engine.inbox());
        scripts.noted_by(engine.keeper());
        self.protection.check().map_err(SetupError::Sandbox)?;
        let protection = self.protection.clone();
        Ok(Desk {
            engine,
            questions,
            gate,
            jobs,
            agent,
            chosen: why,
            notices,
            handover,
            protection,
        })
    }

    /// A session goes on in the mode that it had, unless another is named.
    pub(crate) fn mode_of(&self, before: Option<&Session>, named: Option<Mode>) -> Mode {
        let kept = before.and_then(kept_mode);
        named.or(kept).or(self.config.settings.permission_mode).unwrap_or_default()
    }

    fn open_session(
        &self,
        choice: &SessionChoice,
        fork: bool,
        from: Option<&str>,
    ) -> Result<(Log, Session, Vec<String>), SetupError> {
        let store = self.store();
        let directory = self.workspace.directory();
        let made_by = env!("CARGO_PKG_VERSION");
        if fork {
            let original = match choice {
                SessionChoice::Id(id) => store.glance(id)?,
                SessionChoice::New | SessionChoice::Latest => store.glance_latest(directory)?,
            };
            let target = from.map(|from| target(&original, from)).transpose()?;
            let (log, session) = store.fork_at(&original, target, made_by)?;
            return Ok((log, session, Vec::new()));
        }
        let (mut log, mut session, notices) = match choice {
            SessionChoice::New => {
                let (log, session) = store.create(directory, made_by)?;
                (log, session, Vec::new())
            }
            SessionChoice::Latest => store.open_latest(directory)?,
            SessionChoice::Id(id) => store.open(id)?,
        };
        if let Some(from) = from {
            session = log.move_to(target(&session, from)?, MoveReason::Branched)?;
        }
        Ok((log, session, notices.iter().map(ToString::to_string).collect()))
    }
}
