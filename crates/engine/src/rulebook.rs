//! One agent's rules, and those of the agents that it works for: the strictest word counts.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use toolwright_permission::{
    Action, Approval, Asked, Grant, Judgement, Mode, Policy, Request, agree,
};

pub(crate) struct Rulebook {
    policy: Mutex<Policy>,
    /// For whom this agent works: what that one may not do, this one may not do either.
    above: Option<Arc<Rulebook>>,
}

impl Rulebook {
    pub(crate) fn new(policy: Policy, above: Option<Arc<Self>>) -> Self {
        Self { policy: Mutex::new(policy), above }
    }

    pub(crate) fn policy(&self) -> MutexGuard<'_, Policy> {
        self.policy.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn above(&self) -> Option<&Arc<Self>> {
        self.above.as_ref()
    }

    pub(crate) fn mode(&self) -> Mode {
        self.policy().stance().mode.get()
    }

    /// Whether what would be asked is allowed all the same.
    pub(crate) fn takes_ask_as_allow(&self) -> bool {
        let stance = self.policy().stance().clone();
        stance.everything || stance.mode.get() == Mode::Auto
    }

    /// What is said about one request, here and above.
    fn judge_one(&self, request: &Request) -> Judgement {
        let own = self.policy().judge(request);
        match self.above.as_ref().map(|above| above.judge_one(request)) {
            Some(above) if above.action > own.action => above,
            _ => own,
        }
    }

    /// The strictest judgement over all requests; of several the first that is about the call itself.
    pub(crate) fn judge(&self, requests: &[Request]) -> Judgement {
        let judged = requests.iter().map(|request| (!request.advisory, self.judge_one(request)));
        let strictest = judged.rev().max_by_key(|(own, judgement)| (judgement.action, *own));
        strictest.map(|(_, judgement)| judgement).unwrap_or_else(|| Judgement {
            action: Action::Allow,
            rule: None,
            from: "plan".to_owned(),
            why: "it touches nothing".to_owned(),
        })
    }

    /// The requests that somebody has to decide about, with the reasons.
    fn open(&self, requests: &[Request]) -> Vec<(Request, Judgement)> {
        let judged = requests.iter().map(|request| (request.clone(), self.judge_one(request)));
        judged.filter(|(_, judgement)| judgement.action == Action::Ask).collect()
    }

    pub(crate) fn asked(&self, requests: &[Request]) -> Vec<Asked> {
        self.open(requests).into_iter().map(|(request, j)| Asked::new(&request, j)).collect()
    }

    /// What a grant for these requests comes to, or why it cannot be given.
    pub(crate) fn agree(
        &self,
        requests: &[Request],
        grant: &Grant,
        home: &str,
    ) -> Result<Vec<Approval>, String> {
        let open: Vec<Request> = self.open(requests).into_iter().map(|(r, _)| r).collect();
        agree(&open, grant, home)
    }

    /// What somebody agreed to holds above too: it was the same person.
    pub(crate) fn approve(&self, approvals: &[Approval]) {
        let mut policy = self.policy();
        approvals.iter().for_each(|approval| policy.approve(approval.clone()));
        drop(policy);
        if let Some(above) = &self.above {
            above.approve(approvals);
        }
    }
}
