//! What a plugin does between calls is judged by its agent's rules, like a call of its own.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::Value;
use toolwright_engine::PermissionGate;
use toolwright_script::Guard;
use toolwright_tool::{Decision, Gate, Hint, Plan, Question, Workspace};

/// Where whoever decides for an agent's plugins stands: somebody provisional, until the agent is there.
#[derive(Clone, Default)]
pub(super) struct Post(Arc<Mutex<Weak<PermissionGate>>>);

impl Post {
    pub(super) fn set(&self, gate: &Arc<PermissionGate>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Arc::downgrade(gate);
    }

    fn get(&self) -> Option<Arc<PermissionGate>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).upgrade()
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
}

impl Guard for GateGuard {
    fn ask<'a>(&'a self, plan: Plan) -> BoxFuture<'a, Result<(), String>> {
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
                Decision::Allow { .. } => Ok(()),
                Decision::Deny { message, .. } => Err(message),
            }
        }
        .boxed()
    }
}
