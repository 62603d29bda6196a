//! The door: judges by rules, and asks a person where the rules say so.

use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::json;
use tokio::sync::mpsc;
use tokio::sync::oneshot::error::TryRecvError;
use toolwright_permission::{Action, Approval, Judgement, Mode, Offer, Policy, Request, Scope};
use toolwright_tool::{Decision, DeniedBy, Gate, Hint, Inquiry, Question, Replies, Unanswered};

use crate::event::Event;
use crate::hooks::{Hooks, Point};
use crate::questions::{Keeper, Questions, Settled};
use crate::rulebook::Rulebook;

/// Whoever can be asked, by an agent and by all who work for it.
struct Person {
    questions: Arc<Questions>,
    /// Where questions are announced; nobody to ask without it.
    asker: Option<mpsc::Sender<Event>>,
}

/// A question that is no longer waited for is taken off the table, however that came.
struct Closing<'a> {
    person: &'a Person,
    id: u64,
}

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        let open = self.person.questions.close(self.id);
        if let Some(asker) = self.person.asker.as_ref().filter(|_| open) {
            // A face that is behind hears of it by the end of the call.
            asker.try_send(Event::QuestionClosed { id: self.id }).ok();
        }
    }
}

pub struct PermissionGate {
    rules: Arc<Rulebook>,
    person: Arc<Person>,
    hooks: Arc<Hooks>,
    /// Who asks, where it is not the agent that the person talks to.
    who: Option<String>,
}

impl PermissionGate {
    pub fn new(policy: Policy, asker: Option<mpsc::Sender<Event>>) -> Self {
        let person = Arc::new(Person { questions: Arc::default(), asker });
        let rules = Arc::new(Rulebook::new(policy, None));
        Self { rules, person, hooks: Arc::default(), who: None }
    }

    pub fn with_hooks(mut self, hooks: Arc<Hooks>) -> Self {
        self.hooks = hooks;
        self
    }

    /// Lets people agree to something for longer than this run.
    pub fn with_keeper(self, keeper: Arc<dyn Keeper>) -> Self {
        self.person.questions.set_keeper(keeper);
        self
    }

    /// The door of an agent that works for this one: both sets of rules apply, and its questions go
    /// to the same person.
    pub fn below(self: &Arc<Self>, policy: Policy, who: &str) -> Self {
        Self {
            rules: Arc::new(Rulebook::new(policy, Some(Arc::clone(&self.rules)))),
            person: Arc::clone(&self.person),
            hooks: Arc::clone(&self.hooks),
            who: Some(who.to_owned()),
        }
    }

    /// Goes on under other rules. What the person agreed to before still holds where these ask.
    pub fn change_rules(&self, policy: Policy) {
        let mut current = self.rules.policy();
        *current = policy.keeping_approvals_of(&current);
        drop(current);
        self.person.questions.judge_again();
    }

    /// What was agreed to, for longer than this run or not.
    pub fn approvals(&self) -> Vec<Approval> {
        self.rules.policy().approvals().to_vec()
    }

    /// What a person agreed to under another door of the same run.
    pub fn approve(&self, approvals: &[Approval]) {
        self.rules.approve(approvals);
    }

    /// Takes back what was agreed to. Whoever keeps it for longer is told by whoever asks for this.
    pub fn forget(&self, approval: &Approval) {
        self.rules.policy().forget(approval);
    }

    /// How much is done without a question, here and by all who work for this agent.
    pub fn mode(&self) -> Mode {
        self.rules.mode()
    }

    /// Changes it at once, for what waits to be answered too. Returns the mode before.
    pub fn set_mode(&self, mode: Mode) -> Mode {
        let before = self.rules.policy().stance().mode.set(mode);
        if before != mode {
            self.person.questions.judge_again();
            if let Some(asker) = &self.person.asker {
                // Who is behind can ask what the mode is.
                asker.try_send(Event::ModeChanged { mode }).ok();
            }
        }
        before
    }

    /// Whether not even the floor holds.
    pub fn allows_everything(&self) -> bool {
        self.rules.policy().stance().everything
    }

    pub fn questions(&self) -> Arc<Questions> {
        Arc::clone(&self.person.questions)
    }

    /// Whether there is a person who could be asked something.
    pub fn can_ask(&self) -> bool {
        self.person.asker.is_some()
    }

    /// Whether a tool with this permission key need not be offered at all.
    pub fn always_denies(&self, permission: &str) -> bool {
        let mut rules = Some(&self.rules);
        while let Some(here) = rules {
            if here.policy().always_denies(permission) {
                return true;
            }
            rules = here.above();
        }
        false
    }

    /// Adds to the shipped defaults, here and above; what people wrote still has its say.
    pub fn allow_by_default(&self, permission: &str) {
        let mut rules = Some(&self.rules);
        while let Some(here) = rules {
            here.policy().allow_by_default(permission, "*");
            rules = here.above();
        }
    }

    /// Lets this agent, and those for whom it works, look at what was too large for its answers.
    pub fn allow_outputs(&self, folder: &std::path::Path) {
        let mut rules = Some(&self.rules);
        while let Some(here) = rules {
            here.policy().allow_outputs(folder);
            rules = here.above();
        }
    }

    /// Whether the rules refuse this, whoever asks.
    pub fn denies_outright(&self, permission: &str, pattern: &str) -> bool {
        let (permission, pattern) = (permission.to_owned(), pattern.to_owned());
        let always = pattern.clone();
        let request =
            Request { permission, pattern, always, read_only: true, ..Request::default() };
        self.rules.judge(&[request]).action == Action::Deny
    }

    /// What the hooks say to a question, if they say something.
    async fn ask_hooks(&self, question: &Question) -> Option<Decision> {
        if !self.hooks.any(Point::PermissionAsk) {
            return None;
        }
        let permissions: Vec<_> = question.requests.iter().map(|r| json!(r)).collect();
        let input = json!({
            "tool": question.tool, "args": question.arguments, "summary": question.summary,
            "permissions": permissions,
        });
        let ran = self.hooks.run(Point::PermissionAsk, &input, json!({ "status": "ask" })).await;
        match (ran.block, ran.output["status"].as_str()) {
            (Some(reason), _) => Some(denied_by_rule(question, &reason)),
            (None, Some("deny")) => Some(denied_by_rule(question, "by a hook")),
            (None, Some("allow")) => Some(Decision::Allow { why: "approved by a hook".to_owned() }),
            (None, _) => None,
        }
    }

    async fn ask(&self, question: &Question, why: String) -> Decision {
        if let Some(decision) = self.ask_hooks(question).await {
            return decision;
        }
        let nobody = || Decision::Deny {
            by: DeniedBy::Nobody,
            message: format!(
                "Permission denied: {} needs a person's approval ({why}), and nobody can be asked in this run.",
                question.summary
            ),
        };
        let is_deserted = || self.person.questions.is_deserted();
        let Some(asker) = self.person.asker.as_ref().filter(|_| !is_deserted()) else {
            return nobody();
        };
        let (id, mut settled) = self.person.questions.open(question, &self.rules);
        let _closed = Closing { person: &self.person, id };
        // Settled before anybody heard of it.
        match settled.try_recv() {
            Ok(settled) => return decision(question, settled),
            Err(TryRecvError::Empty) => {}
            // Whoever could have answered has just left.
            Err(TryRecvError::Closed) => return nobody(),
        }
        let mut shown = question.clone();
        if let Some(who) = &self.who {
            shown.summary = format!("[{who}] {}", shown.summary);
        }
        let asked = self.rules.asked(&question.requests);
        let offer = Offer { why: why.clone(), asked, scopes: self.person.questions.scopes() };
        if asker.send(Event::Question { id, question: shown, offer }).await.is_err() {
            let message = "Permission denied: nobody can be asked any more.".to_owned();
            return Decision::Deny { by: DeniedBy::Nobody, message };
        }
        let Ok(settled) = settled.await else {
            asker.send(Event::QuestionClosed { id }).await.ok();
            return nobody();
        };
        // Whoever gave no answer to this one must hear that none is wanted any more.
        if let Settled::Allowed { .. } | Settled::Denied { .. } | Settled::WithAnother = settled {
            asker.send(Event::QuestionClosed { id }).await.ok();
        }
        decision(question, settled)
    }
}

fn denied_by_rule(question: &Question, why: &str) -> Decision {
    let message = format!("Permission denied: {} ({why}).", question.summary);
    Decision::Deny { by: DeniedBy::Rule, message }
}

fn decision(question: &Question, settled: Settled) -> Decision {
    let rejected = |words: &str| Decision::Deny {
        by: DeniedBy::Person,
        message: format!("The user rejected permission for {}.{words}", question.summary),
    };
    let allowed = |why: &str| Decision::Allow { why: why.to_owned() };
    match settled {
        Settled::Once => allowed("approved by the user"),
        Settled::Always(Scope::Session) => allowed("approved by the user for this session"),
        Settled::Always(Scope::Project) => allowed("approved by the user for this project"),
        Settled::Always(Scope::Everywhere) => allowed("approved by the user for all projects"),
        Settled::Allowed { why } => Decision::Allow { why },
        Settled::Denied { why } => denied_by_rule(question, &why),
        Settled::Rejected { message: None } => rejected(""),
        Settled::Rejected { message: Some(words) } => rejected(&format!(" The user said: {words}")),
        Settled::WithAnother => {
            rejected(" They rejected another call of the same step, and all that waited with it.")
        }
    }
}

impl Gate for PermissionGate {
    fn decide<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Decision> {
        async move {
            let Judgement { action, why, .. } = self.rules.judge(&question.requests);
            match (action, question.hint) {
                (Action::Deny, _) => denied_by_rule(question, &why),
                (Action::Ask, Hint::Allow) => {
                    Decision::Allow { why: "approved by a hook".to_owned() }
                }
                (Action::Ask, _) => self.ask(question, why).await,
                (Action::Allow, Hint::Ask) => self.ask(question, "a hook asks".to_owned()).await,
                (Action::Allow, Hint::Failed) if !self.rules.takes_ask_as_allow() => {
                    self.ask(question, "a hook that guards it has failed".to_owned()).await
                }
                (Action::Allow, _) => Decision::Allow { why },
            }
        }
        .boxed()
    }

    fn inquire<'a>(&'a self, inquiry: &'a Inquiry) -> BoxFuture<'a, Result<Replies, Unanswered>> {
        async move {
            let questions = &self.person.questions;
            let asker = self.person.asker.as_ref().filter(|_| !questions.is_deserted());
            let asker = asker.ok_or(Unanswered::Nobody)?;
            let (id, replies) = questions.open_inquiry();
            let _closed = Closing { person: &self.person, id };
            let event = Event::Inquiry { id, inquiry: inquiry.clone() };
            asker.send(event).await.map_err(|_| Unanswered::Nobody)?;
            match replies.await {
                Ok(Some(replies)) => Ok(replies),
                Err(_) if questions.is_deserted() => {
                    asker.send(Event::QuestionClosed { id }).await.ok();
                    Err(Unanswered::Nobody)
                }
                Ok(None) | Err(_) => Err(Unanswered::Dismissed),
            }
        }
        .boxed()
    }

    fn allows_silently(&self, requests: &[Request]) -> bool {
        self.rules.judge(requests).action == Action::Allow
    }

    fn always_denies(&self, permission: &str) -> bool {
        Self::always_denies(self, permission)
    }

    fn mode(&self) -> Option<Mode> {
        Some(Self::mode(self))
    }

    fn allows_by_rule(&self, request: &Request) -> bool {
        let mut rules = Some(&self.rules);
        while let Some(here) = rules {
            if !here.policy().allows_by_rule(request) {
                return false;
            }
            rules = here.above();
        }
        true
    }
}
