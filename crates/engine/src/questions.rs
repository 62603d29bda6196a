//! Questions that wait for a person: announced as they come, answered in any order. An answer is
//! taken whole before whoever gave it goes on: the others that it settles no longer wait then.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use tokio::sync::oneshot;
use toolwright_permission::{Action, Approval, Request, Scope};
use toolwright_tool::{Hint, Question, Replies};

use crate::event::Answer;
use crate::rulebook::Rulebook;

/// Keeps what was agreed to beyond this run.
pub trait Keeper: Send + Sync {
    /// All of them or none.
    fn keep(&self, approvals: &[Approval]) -> Result<(), String>;
    fn home(&self) -> String;
}

/// Why an answer was not taken. The question still waits, unless it never did.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AnswerError {
    #[error("no question with the id {0} waits for an answer")]
    NotWaiting(u64),
    #[error("this \"always\" is not taken: {0}")]
    Refused(String),
    #[error("the approval cannot be kept: {0}")]
    NotKept(String),
}

/// What became of a question.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Settled {
    Once,
    Always(Scope),
    Rejected {
        message: Option<String>,
    },
    /// The person rejected another call of the same step.
    WithAnother,
    /// The rules have changed since it was asked.
    Allowed {
        why: String,
    },
    Denied {
        why: String,
    },
}

struct Waiting {
    sender: oneshot::Sender<Settled>,
    requests: Vec<Request>,
    hint: Hint,
    rules: Arc<Rulebook>,
}

#[derive(Default)]
pub struct Questions {
    next: AtomicU64,
    /// Whoever could have answered is gone.
    deserted: AtomicBool,
    waiting: Mutex<BTreeMap<u64, Waiting>>,
    inquiries: Mutex<BTreeMap<u64, oneshot::Sender<Option<Replies>>>>,
    keeper: OnceLock<Arc<dyn Keeper>>,
}

impl Questions {
    /// Answers a waiting question, and those that are settled with it.
    pub fn answer(&self, id: u64, answer: Answer) -> Result<(), AnswerError> {
        let mut waiting = lock(&self.waiting);
        let question = waiting.get(&id).ok_or(AnswerError::NotWaiting(id))?;
        let rules = Arc::clone(&question.rules);
        let settled = match answer {
            Answer::Once => Settled::Once,
            Answer::Always(grant) => {
                let home = self.keeper.get().map(|keeper| keeper.home()).unwrap_or_default();
                let approvals =
                    rules.agree(&question.requests, &grant, &home).map_err(AnswerError::Refused)?;
                if grant.scope != Scope::Session {
                    self.keep(&approvals)?;
                }
                rules.approve(&approvals);
                match approvals.is_empty() {
                    // There was nothing that could be agreed to for longer.
                    true => Settled::Once,
                    false => Settled::Always(grant.scope),
                }
            }
            Answer::Reject { message } => Settled::Rejected { message },
        };
        let is_always = matches!(settled, Settled::Always(_));
        let is_rejected = matches!(settled, Settled::Rejected { .. });
        settle(&mut waiting, id, settled);
        if is_always {
            judge_again(&mut waiting);
        }
        if is_rejected {
            // An agent asks in one step at a time; those who work for it have steps of their own.
            let same =
                |(id, other): (&u64, &Waiting)| Arc::ptr_eq(&other.rules, &rules).then_some(*id);
            let others: Vec<u64> = waiting.iter().filter_map(same).collect();
            others.into_iter().for_each(|id| settle(&mut waiting, id, Settled::WithAnother));
        }
        Ok(())
    }

    /// Answers a waiting inquiry; nothing means that the person does not want to.
    pub fn reply(&self, id: u64, replies: Option<Replies>) {
        let waiting = lock(&self.inquiries).remove(&id);
        if let Some(sender) = waiting {
            sender.send(replies).ok();
        }
    }

    /// Whether somebody still wants an answer to this.
    pub fn is_waiting(&self, id: u64) -> bool {
        lock(&self.waiting).contains_key(&id) || lock(&self.inquiries).contains_key(&id)
    }

    /// Nobody answers any more: what waits is dropped, and nothing waits from now on.
    pub fn nobody_answers(&self) {
        let (mut waiting, mut inquiries) = (lock(&self.waiting), lock(&self.inquiries));
        self.deserted.store(true, Ordering::SeqCst);
        waiting.clear();
        inquiries.clear();
    }

    pub(crate) fn is_deserted(&self) -> bool {
        self.deserted.load(Ordering::SeqCst)
    }

    pub(crate) fn set_keeper(&self, keeper: Arc<dyn Keeper>) {
        // There is one for all who ask the same person.
        self.keeper.set(keeper).ok();
    }

    /// For how long something can be agreed to.
    pub(crate) fn scopes(&self) -> Vec<Scope> {
        match self.keeper.get() {
            Some(_) => Scope::ALL.to_vec(),
            None => vec![Scope::Session],
        }
    }

    fn keep(&self, approvals: &[Approval]) -> Result<(), AnswerError> {
        let Some(keeper) = self.keeper.get() else {
            return Err(AnswerError::NotKept("there is no store for it in this run".to_owned()));
        };
        if approvals.is_empty() {
            return Ok(());
        }
        keeper.keep(approvals).map_err(AnswerError::NotKept)
    }

    /// The rules or the mode have changed: what they decide now need not be asked.
    pub(crate) fn judge_again(&self) {
        judge_again(&mut lock(&self.waiting));
    }

    pub(crate) fn open_inquiry(&self) -> (u64, oneshot::Receiver<Option<Replies>>) {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let (sender, receiver) = oneshot::channel();
        let mut inquiries = lock(&self.inquiries);
        if !self.is_deserted() {
            inquiries.insert(id, sender);
        }
        drop(inquiries);
        (id, receiver)
    }

    pub(crate) fn open(
        &self,
        question: &Question,
        rules: &Arc<Rulebook>,
    ) -> (u64, oneshot::Receiver<Settled>) {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let (sender, receiver) = oneshot::channel();
        let (requests, hint, rules) = (question.requests.clone(), question.hint, Arc::clone(rules));
        let mut waiting = lock(&self.waiting);
        if !self.is_deserted() {
            waiting.insert(id, Waiting { sender, requests, hint, rules });
        }
        // An answer may have come between the judgement and now.
        judge_again(&mut waiting);
        (id, receiver)
    }

    /// Takes a question off the table; whether it was still there.
    pub(crate) fn close(&self, id: u64) -> bool {
        lock(&self.waiting).remove(&id).is_some() | lock(&self.inquiries).remove(&id).is_some()
    }
}

fn settle(waiting: &mut BTreeMap<u64, Waiting>, id: u64, settled: Settled) {
    if let Some(question) = waiting.remove(&id) {
        // The asker may have been cancelled meanwhile.
        question.sender.send(settled).ok();
    }
}

fn judge_again(waiting: &mut BTreeMap<u64, Waiting>) {
    let decided = waiting.iter().filter_map(|(id, question)| {
        let judgement = question.rules.judge(&question.requests);
        let free = match question.hint {
            Hint::Nothing | Hint::Allow => true,
            Hint::Failed => question.rules.takes_ask_as_allow(),
            Hint::Ask => false,
        };
        match judgement.action {
            Action::Allow if free => Some((*id, Settled::Allowed { why: judgement.why })),
            Action::Deny => Some((*id, Settled::Denied { why: judgement.why })),
            Action::Allow | Action::Ask => None,
        }
    });
    let decided: Vec<_> = decided.collect();
    decided.into_iter().for_each(|(id, settled)| settle(waiting, id, settled));
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
