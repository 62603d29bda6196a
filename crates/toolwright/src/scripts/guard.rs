//! What a plugin does between calls is judged by its agent's rules, like a call of its own.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::Value;
use toolwright_engine::PermissionGate;
use toolwright_script::Guard;
use toolwright_session::images::{Keeper, Ticket};
use toolwright_tool::{Access, Decision, Gate, Hint, Plan, Question, Workspace};

/// Where whoever decides for an agent's plugins stands: somebody provisional, until the agent is there.
#[derive(Clone, Default)]
pub(super) struct Post(Arc<Mutex<Posted>>);

#[derive(Default)]
struct Posted {
    gate: Weak<PermissionGate>,
    /// Notes what they do to files, so that it can be undone.
    keeper: Option<Keeper>,
}

impl Post {
    pub(super) fn set(&self, gate: &Arc<PermissionGate>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).gate = Arc::downgrade(gate);
    }

    pub(super) fn set_keeper(&self, keeper: Option<Keeper>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).keeper = keeper;
    }

    fn get(&self) -> Option<Arc<PermissionGate>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).gate.upgrade()
    }

    fn keeper(&self) -> Option<Keeper> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).keeper.clone()
    }
}

/// Changes of files that a plugin makes at the moment.
#[derive(Default)]
struct Open {
    /// Files that were asked about and are not done with.
    asked: usize,
    tickets: Vec<Ticket>,
}

pub(super) struct GateGuard {
    post: Post,
    workspace: Arc<Workspace>,
    name: String,
    open: Mutex<Open>,
}

impl GateGuard {
    pub(super) fn new(post: &Post, workspace: Arc<Workspace>, file: &Path) -> Self {
        let name = file.file_stem().map(|s| s.to_string_lossy().into_owned()).unwrap_or_default();
        Self {
            post: post.clone(),
            workspace,
            name: format!("plugin {name}"),
            open: Mutex::default(),
        }
    }

    /// Files as they are before a plugin writes to them. Whole folders, and what its commands do, are
    /// not looked at: that would cost more than most hooks do.
    async fn keep(&self, plan: &Plan) {
        let reach = plan.reach(&self.workspace, true);
        let plain = !reach.anything && !reach.is_nothing();
        let plain = plain && !reach.writes.iter().any(|path| path.is_dir());
        let ticket = match self.post.keeper().filter(|_| plain) {
            Some(keeper) => Some(keeper.before_aside(reach).await),
            None => None,
        };
        self.open.lock().unwrap_or_else(PoisonError::into_inner).tickets.extend(ticket);
    }

    /// Those that are over: all, once nothing is under way.
    fn end(&self) -> Vec<Ticket> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.asked = open.asked.saturating_sub(1);
        if open.asked == 0 { std::mem::take(&mut open.tickets) } else { Vec::new() }
    }
}

impl Guard for GateGuard {
    fn ask<'a>(&'a self, plan: Plan) -> BoxFuture<'a, Result<(), String>> {
        async move {
            if plan.accesses.iter().any(|access| matches!(access, Access::Write { .. })) {
                self.open.lock().unwrap_or_else(PoisonError::into_inner).asked += 1;
            }
            let gate = self.post.get();
            let gate = gate.ok_or_else(|| "there is nobody who could allow it yet".to_owned())?;
            let question = Question {
                position: 0,
                tool: self.name.clone(),
                arguments: Value::Null,
                summary: format!("[{}] {}", self.name, plan.summary),
                requests: plan.requests(&self.workspace),
                preview: plan.preview(),
                hint: Hint::Nothing,
            };
            match gate.decide(&question).await {
                Decision::Allow { .. } => {
                    self.keep(&plan).await;
                    Ok(())
                }
                Decision::Deny { message, .. } => Err(message),
            }
        }
        .boxed()
    }

    fn done(&self) -> BoxFuture<'_, ()> {
        let (over, keeper) = (self.end(), self.post.keeper());
        async move {
            for ticket in over {
                if let Some(keeper) = &keeper {
                    keeper.after_aside(ticket).await;
                }
            }
        }
        .boxed()
    }
}
