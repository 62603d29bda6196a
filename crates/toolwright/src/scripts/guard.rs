//! What a plugin does between calls is judged by its agent's rules, like a call of its own.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::Value;
use toolwright_engine::PermissionGate;
use toolwright_script::{Guard, Permit};
use toolwright_session::images::Keeper;
use toolwright_tool::{Decision, Gate, Hint, Plan, Question, Workspace};

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

pub(super) struct GateGuard {
    post: Post,
    workspace: Arc<Workspace>,
    name: String,
}

impl GateGuard {
    pub(super) fn new(post: &Post, workspace: Arc<Workspace>, file: &Path) -> Self {
        let name = file.file_stem().map(|s| s.to_string_lossy().into_owned()).unwrap_or_default();
        Self { post: post.clone(), workspace, name: format!("plugin {name}") }
    }

    /// Files as they are before a plugin writes to them. Whole folders, and what its commands do, are
    /// not looked at: that would cost more than most hooks do.
    async fn keep(&self, plan: &Plan) -> Permit {
        let reach = plan.reach(&self.workspace, true);
        let plain = !reach.anything && !reach.is_nothing();
        let plain = plain && !reach.writes.iter().any(|path| path.is_dir());
        let Some(keeper) = self.post.keeper().filter(|_| plain) else { return Permit::default() };
        let ticket = keeper.before_aside(reach).await;
        Permit::with_end(async move { keeper.after_aside(ticket).await })
    }
}

impl Guard for GateGuard {
    fn ask<'a>(&'a self, plan: Plan) -> BoxFuture<'a, Result<Permit, String>> {
        async move {
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
                Decision::Allow { .. } => Ok(self.keep(&plan).await),
                Decision::Deny { message, .. } => Err(message),
            }
        }
        .boxed()
    }
}

#[cfg(test)]
#[path = "guard_tests.rs"]
mod tests;
