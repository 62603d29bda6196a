//! The door: judges by rules, and asks a person where the rules say so.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::sync::{mpsc, oneshot};
use toolwright_permission::{Action, Approval, Judgement, Policy, Request};
use toolwright_tool::{Decision, DeniedBy, Gate, Question};

use crate::event::{Answer, Event};

/// Questions that wait for a person.
#[derive(Default)]
pub struct Questions {
    next: AtomicU64,
    waiting: Mutex<HashMap<u64, oneshot::Sender<Answer>>>,
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

pub struct PermissionGate {
    policy: Mutex<Policy>,
    questions: Arc<Questions>,
    /// Where questions are announced; nobody to ask without it.
    asker: Option<mpsc::Sender<Event>>,
    /// One question at a time, in the order in which calls come to it.
    turn: tokio::sync::Mutex<()>,
}

impl PermissionGate {
    pub fn new(policy: Policy, asker: Option<mpsc::Sender<Event>>) -> Self {
        Self {
            policy: Mutex::new(policy),
            questions: Arc::default(),
            asker,
            turn: tokio::sync::Mutex::new(()),
        }
    }

    pub fn questions(&self) -> Arc<Questions> {
        Arc::clone(&self.questions)
    }

    /// Whether a tool with this permission key need not be offered at all.
    pub fn always_denies(&self, permission: &str) -> bool {
        lock(&self.policy).always_denies(permission)
    }

    /// The strictest judgement over all requests.
    fn judge(&self, requests: &[Request]) -> Judgement {
        let policy = lock(&self.policy);
        let strictest = requests.iter().map(|r| policy.judge(r)).max_by_key(|j| j.action);
        strictest.unwrap_or_else(|| Judgement {
            action: Action::Allow,
            rule: None,
            from: "plan".to_owned(),
            why: "it touches nothing".to_owned(),
        })
    }

    async fn ask(&self, question: &Question, judgement: Judgement) -> Decision {
        let Some(asker) = &self.asker else {
            return Decision::Deny {
                by: DeniedBy::Nobody,
                message: format!(
                    "Permission denied: {} needs a person's approval ({}), and nobody can be asked in this run.",
                    question.summary, judgement.why
                ),
            };
        };
        let _turn = self.turn.lock().await;
        // An answer to the question before may cover this one.
        if self.judge(&question.requests).action == Action::Allow {
            return Decision::Allow { why: "approved earlier in this session".to_owned() };
        }
        let (id, answer) = self.questions.open();
        let event = Event::Question { id, question: question.clone() };
        if asker.send(event).await.is_err() {
            let message = "Permission denied: nobody can be asked any more.".to_owned();
            return Decision::Deny { by: DeniedBy::Nobody, message };
        }
        match answer.await {
            Ok(Answer::Once) => Decision::Allow { why: "approved by the user".to_owned() },
            Ok(Answer::Always) => {
                let mut policy = lock(&self.policy);
                for Request { permission, always, .. } in &question.requests {
                    let approval =
                        Approval { permission: permission.clone(), pattern: always.clone() };
                    policy.approve(approval);
                }
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
            match judgement.action {
                Action::Allow => Decision::Allow { why: judgement.why },
                Action::Deny => Decision::Deny {
                    by: DeniedBy::Rule,
                    message: format!(
                        "Permission denied: {} ({}).",
                        question.summary, judgement.why
                    ),
                },
                Action::Ask => self.ask(question, judgement).await,
            }
        }
        .boxed()
    }

    fn allows_silently(&self, requests: &[Request]) -> bool {
        self.judge(requests).action == Action::Allow
    }
}
