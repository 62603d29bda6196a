//! The door: judges by rules, and asks a person where the rules say so.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::json;
use tokio::sync::{mpsc, oneshot};
use toolwright_permission::{Action, Approval, Judgement, Policy, Request};
use toolwright_tool::{Decision, DeniedBy, Gate, Hint, Inquiry, Question, Replies, Unanswered};

use crate::event::{Answer, Event};
use crate::hooks::{Hooks, Point};

/// Questions that wait for a person.
#[derive(Default)]
pub struct Questions {
    next: AtomicU64,
    waiting: Mutex<HashMap<u64, oneshot::Sender<Answer>>>,
    inquiries: Mutex<HashMap<u64, oneshot::Sender<Option<Replies>>>>,
}

impl Questions {
    /// Answers a waiting question. An id that is unknown or was answered already does nothing.
    pub fn answer(&self, id: u64, answer: Answer) {
        let waiting = lock(&self.waiting).remove(&id);
        if let Some(sender) = waiting {
            // The asker may have been cancelled meanwhile.
            sender.send(answer).ok();
        }
    }

    /// Answers a waiting inquiry; nothing means that the person does not want to.
    pub fn reply(&self, id: u64, replies: Option<Replies>) {
        let waiting = lock(&self.inquiries).remove(&id);
        if let Some(sender) = waiting {
            sender.send(replies).ok();
        }
    }

    fn open_inquiry(&self) -> (u64, oneshot::Receiver<Option<Replies>>) {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let (sender, receiver) = oneshot::channel();
        lock(&self.inquiries).insert(id, sender);
        (id, receiver)
    }

    fn open(&self) -> (u64, oneshot::Receiver<Answer>) {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let (sender, receiver) = oneshot::channel();
        lock(&self.waiting).insert(id, sender);
        (id, receiver)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whoever can be asked, by an agent and by all who work for it.
struct Person {
    questions: Arc<Questions>,
    /// Where questions are announced; nobody to ask without it.
    asker: Option<mpsc::Sender<Event>>,
    /// One question at a time, in the order in which calls come to it.
    turn: tokio::sync::Mutex<()>,
}

/// A question that is no longer waited for is taken off the table, however that came.
struct Closing<'a> {
    person: &'a Person,
    id: u64,
}

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        let questions = &self.person.questions;
        let open = lock(&questions.waiting).remove(&self.id).is_some()
            | lock(&questions.inquiries).remove(&self.id).is_some();
        if let Some(asker) = self.person.asker.as_ref().filter(|_| open) {
            // A face that is behind hears of it by the end of the call.
            asker.try_send(Event::QuestionClosed { id: self.id }).ok();
        }
    }
}

pub struct PermissionGate {
    policy: Mutex<Policy>,
    person: Arc<Person>,
    hooks: Arc<Hooks>,
    /// For whom this agent works: what it may not do, this one may not do either.
    above: Option<Arc<PermissionGate>>,
    /// Who asks, where it is not the agent that the person talks to.
    who: Option<String>,
}

impl PermissionGate {
    pub fn new(policy: Policy, asker: Option<mpsc::Sender<Event>>) -> Self {
        let questions = Arc::default();
        let person = Arc::new(Person { questions, asker, turn: tokio::sync::Mutex::new(()) });
        let policy = Mutex::new(policy);
        Self { policy, person, hooks: Arc::default(), above: None, who: None }
    }

    pub fn with_hooks(mut self, hooks: Arc<Hooks>) -> Self {
        self.hooks = hooks;
        self
    }

    /// The door of an agent that works for this one: both sets of rules apply, and its questions go
    /// to the same person.
    pub fn below(self: &Arc<Self>, policy: Policy, who: &str) -> Self {
        Self {
            policy: Mutex::new(policy),
            person: Arc::clone(&self.person),
            hooks: Arc::clone(&self.hooks),
            above: Some(Arc::clone(self)),
            who: Some(who.to_owned()),
        }
    }

    /// Goes on under other rules. What the person agreed to before still holds where these ask.
    pub fn change_rules(&self, policy: Policy) {
        let mut current = lock(&self.policy);
        *current = policy.keeping_approvals_of(&current);
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
        lock(&self.policy).always_denies(permission)
            || self.above.as_ref().is_some_and(|above| above.always_denies(permission))
    }

    /// Adds to the shipped defaults, here and above; what people wrote still has its say.
    pub fn allow_by_default(&self, permission: &str) {
        lock(&self.policy).allow_by_default(permission, "*");
        if let Some(above) = &self.above {
            above.allow_by_default(permission);
        }
    }

    /// Lets this agent, and those for whom it works, look at what was too large for its answers.
    pub fn allow_outputs(&self, folder: &std::path::Path) {
        lock(&self.policy).allow_outputs(folder);
        if let Some(above) = &self.above {
            above.allow_outputs(folder);
        }
    }

    /// Whether the rules refuse this, whoever asks.
    pub fn denies_outright(&self, permission: &str, pattern: &str) -> bool {
        let (permission, pattern) = (permission.to_owned(), pattern.to_owned());
        let always = pattern.clone();
        let request = Request { permission, pattern, always, ..Request::default() };
        self.judge(&[request]).action == Action::Deny
    }

    /// The strictest judgement over all requests, here and above.
    fn judge(&self, requests: &[Request]) -> Judgement {
        let policy = lock(&self.policy);
        let strictest = requests.iter().map(|r| policy.judge(r)).max_by_key(|j| j.action);
        drop(policy);
        let own = strictest.unwrap_or_else(|| Judgement {
            action: Action::Allow,
            rule: None,
            from: "plan".to_owned(),
            why: "it touches nothing".to_owned(),
        });
        match self.above.as_ref().map(|above| above.judge(requests)) {
            Some(above) if above.action > own.action => above,
            _ => own,
        }
    }

    /// What somebody agreed to holds above too: it was the same person.
    fn approve(&self, requests: &[Request]) {
        let mut policy = lock(&self.policy);
        for Request { permission, always, .. } in requests {
            policy.approve(Approval { permission: permission.clone(), pattern: always.clone() });
        }
        drop(policy);
        if let Some(above) = &self.above {
            above.approve(requests);
        }
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
        let denied = |reason: String| Decision::Deny {
            by: DeniedBy::Rule,
            message: format!("Permission denied: {} ({reason}).", question.summary),
        };
        match (ran.block, ran.output["status"].as_str()) {
            (Some(reason), _) => Some(denied(reason)),
            (None, Some("deny")) => Some(denied("by a hook".to_owned())),
            (None, Some("allow")) => Some(Decision::Allow { why: "approved by a hook".to_owned() }),
            (None, _) => None,
        }
    }

    async fn ask(&self, question: &Question, why: String) -> Decision {
        if let Some(decision) = self.ask_hooks(question).await {
            return decision;
        }
        let Some(asker) = &self.person.asker else {
            return Decision::Deny {
                by: DeniedBy::Nobody,
                message: format!(
                    "Permission denied: {} needs a person's approval ({why}), and nobody can be asked in this run.",
                    question.summary
                ),
            };
        };
        let _turn = self.person.turn.lock().await;
        // An answer to the question before may cover this one.
        if question.hint != Hint::Ask && self.judge(&question.requests).action == Action::Allow {
            return Decision::Allow { why: "approved earlier in this session".to_owned() };
        }
        let (id, answer) = self.person.questions.open();
        let _closed = Closing { person: &self.person, id };
        let mut shown = question.clone();
        if let Some(who) = &self.who {
            shown.summary = format!("[{who}] {}", shown.summary);
        }
        if asker.send(Event::Question { id, question: shown }).await.is_err() {
            let message = "Permission denied: nobody can be asked any more.".to_owned();
            return Decision::Deny { by: DeniedBy::Nobody, message };
        }
        match answer.await {
            Ok(Answer::Once) => Decision::Allow { why: "approved by the user".to_owned() },
            Ok(Answer::Always) => {
                self.approve(&question.requests);
                Decision::Allow { why: "approved by the user for this session".to_owned() }
            }
            Ok(Answer::Reject { message }) => {
                let words = message.map_or(String::new(), |m| format!(" The user said: {m}"));
                let message =
                    format!("The user rejected permission for {}.{words}", question.summary);
                Decision::Deny { by: DeniedBy::Person, message }
            }
            Err(_) => {
                let message = "Permission denied: the question was dropped.".to_owned();
                Decision::Deny { by: DeniedBy::Nobody, message }
            }
        }
    }
}

impl Gate for PermissionGate {
    fn decide<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Decision> {
        async move {
            let judgement = self.judge(&question.requests);
            match (judgement.action, question.hint) {
                (Action::Deny, _) => Decision::Deny {
                    by: DeniedBy::Rule,
                    message: format!(
                        "Permission denied: {} ({}).",
                        question.summary, judgement.why
                    ),
                },
                (Action::Ask, Hint::Allow) => {
                    Decision::Allow { why: "approved by a hook".to_owned() }
                }
                (Action::Ask, _) => self.ask(question, judgement.why).await,
                (Action::Allow, Hint::Ask) => self.ask(question, "a hook asks".to_owned()).await,
                (Action::Allow, _) => Decision::Allow { why: judgement.why },
            }
        }
        .boxed()
    }

    fn inquire<'a>(&'a self, inquiry: &'a Inquiry) -> BoxFuture<'a, Result<Replies, Unanswered>> {
        async move {
            let asker = self.person.asker.as_ref().ok_or(Unanswered::Nobody)?;
            let _turn = self.person.turn.lock().await;
            let (id, replies) = self.person.questions.open_inquiry();
            let _closed = Closing { person: &self.person, id };
            let event = Event::Inquiry { id, inquiry: inquiry.clone() };
            asker.send(event).await.map_err(|_| Unanswered::Nobody)?;
            match replies.await {
                Ok(Some(replies)) => Ok(replies),
                Ok(None) | Err(_) => Err(Unanswered::Dismissed),
            }
        }
        .boxed()
    }

    fn allows_silently(&self, requests: &[Request]) -> bool {
        self.judge(requests).action == Action::Allow
    }

    fn allows_by_rule(&self, request: &Request) -> bool {
        lock(&self.policy).allows_by_rule(request)
            && self.above.as_ref().is_none_or(|above| above.allows_by_rule(request))
    }
}
