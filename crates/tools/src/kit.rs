//! One call through the whole pipeline, for tests of tools that touch no files of the workspace.

use std::sync::{Arc, Mutex};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use toolwright_permission::Request;
use toolwright_session::{Ending, Outcome};
use toolwright_tool::{
    AnyTool, CallRequest, Decision, DeniedBy, Gate, Inquiry, Pipeline, PipelineOptions, Question,
    Registry, Replies, Source, Unanswered, Update, Workspace,
};

/// One call to its end, with nobody to record it.
pub(crate) async fn one_call(
    pipeline: &Pipeline,
    tool: &str,
    arguments: Value,
    cancel: CancellationToken,
) -> Outcome {
    let (sender, mut updates) = mpsc::channel(8);
    let (name, arguments) = (tool.to_owned(), arguments.to_string());
    let call = CallRequest { name, arguments, ..CallRequest::default() };
    let running = pipeline.run_calls(vec![call], cancel, sender);
    let watching = async {
        let mut settled = None;
        while let Some(update) = updates.recv().await {
            match update {
                Update::Starting { go, .. } => go.send(()).unwrap(),
                Update::Settled { outcome, .. } => settled = Some(outcome),
                Update::Progress { .. } | Update::Changed(_) => {}
                Update::Fatal { message } => panic!("{message}"),
            }
        }
        settled.unwrap()
    };
    tokio::join!(running, watching).1
}

/// Remembers what it was asked, refuses what it is told to, and answers inquiries from a list.
#[derive(Default)]
pub(crate) struct Door {
    pub(crate) asked: Mutex<Vec<Request>>,
    pub(crate) refused: Vec<String>,
    pub(crate) replies: Mutex<Vec<Result<Replies, Unanswered>>>,
    pub(crate) inquiries: Mutex<Vec<Inquiry>>,
}

impl Gate for Door {
    fn decide<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Decision> {
        self.asked.lock().unwrap().extend(question.requests.iter().cloned());
        let refused = question.requests.iter().find(|r| self.refused.contains(&r.pattern));
        std::future::ready(match refused {
            Some(request) => Decision::Deny {
                by: DeniedBy::Rule,
                message: format!("no {} {}", request.permission, request.pattern),
            },
            None => Decision::Allow { why: "test".into() },
        })
        .boxed()
    }

    fn allows_silently(&self, _: &[Request]) -> bool {
        true
    }

    fn inquire<'a>(&'a self, inquiry: &'a Inquiry) -> BoxFuture<'a, Result<Replies, Unanswered>> {
        self.inquiries.lock().unwrap().push(inquiry.clone());
        let mut replies = self.replies.lock().unwrap();
        let reply = if replies.is_empty() { Err(Unanswered::Nobody) } else { replies.remove(0) };
        std::future::ready(reply).boxed()
    }
}

pub(crate) struct Kit {
    pub(crate) door: Arc<Door>,
    pub(crate) folder: tempfile::TempDir,
    pub(crate) registry: Registry,
}

impl Kit {
    pub(crate) fn new(tools: impl IntoIterator<Item = Arc<dyn AnyTool>>) -> Self {
        Self::behind(Door::default(), tools)
    }

    pub(crate) fn behind(door: Door, tools: impl IntoIterator<Item = Arc<dyn AnyTool>>) -> Self {
        let registry = Registry::default();
        for tool in tools {
            registry.register_from(Source::BuiltIn, tool);
        }
        Self { door: Arc::new(door), folder: tempfile::tempdir().unwrap(), registry }
    }

    pub(crate) async fn call(&self, tool: &str, arguments: Value) -> Outcome {
        let workspace = Arc::new(Workspace::new(self.folder.path()).unwrap());
        let options = PipelineOptions::new(self.folder.path().join(".outputs"));
        let gate = Arc::clone(&self.door) as _;
        let pipeline = Pipeline::new(self.registry.clone(), workspace, gate, options);
        one_call(&pipeline, tool, arguments, CancellationToken::new()).await
    }

    pub(crate) async fn ok(&self, tool: &str, arguments: Value) -> Outcome {
        let outcome = self.call(tool, arguments).await;
        assert_eq!(outcome.ending, Ending::Completed, "{}", outcome.output);
        outcome
    }

    pub(crate) async fn error(&self, tool: &str, arguments: Value) -> String {
        let outcome = self.call(tool, arguments).await;
        assert_ne!(outcome.ending, Ending::Completed, "{}", outcome.output);
        outcome.output
    }

    pub(crate) fn asked(&self) -> Vec<(String, String)> {
        let asked = self.door.asked.lock().unwrap();
        asked.iter().map(|r| (r.permission.clone(), r.pattern.clone())).collect()
    }
}
