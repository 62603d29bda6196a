//! What is said when a session is left.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use toolwright_engine::{Engine, EngineOptions, Journal, PermissionGate, Record};
use toolwright_llm::Content;
use toolwright_session::{Entry, LogError, Mark, Session};
use toolwright_tool::{Pipeline, PipelineOptions, Registry, Workspace};

use crate::support::{Scripted, all, allow_all, header};

/// Takes entries until the disk is full.
struct Filling(Arc<AtomicBool>);

impl Journal for Filling {
    fn append(&mut self, _: &Entry) -> Result<Mark, LogError> {
        match self.0.load(Ordering::Relaxed) {
            false => Ok(Mark::default()),
            true => {
                let source = std::io::ErrorKind::StorageFull.into();
                Err(LogError::Write { path: "/log".into(), source })
            }
        }
    }

    fn sync(&mut self) -> BoxFuture<'static, Result<(), LogError>> {
        std::future::ready(Ok(())).boxed()
    }
}

#[tokio::test]
async fn a_message_that_waits_and_cannot_be_kept_is_complained_of_once() {
    let full = Arc::new(AtomicBool::new(false));
    let workspace = Arc::new(Workspace::new(&std::env::temp_dir()).unwrap());
    let gate = Arc::new(PermissionGate::new(allow_all(), None));
    let options = PipelineOptions::new(std::env::temp_dir().join("tw-test-outputs"));
    let pipeline = Pipeline::new(Registry::default(), workspace, gate, options);
    let record = Record::new(Session::new(header()), Filling(Arc::clone(&full)));
    let model = Arc::new(Scripted::new(|_, _| all(Vec::new())));
    let options = EngineOptions::new("Be.");
    let mut engine = Engine::new(model, pipeline, record, options).await.unwrap();
    full.store(true, Ordering::Relaxed);
    for text in ["later", "and then"] {
        engine.inbox().follow_up(vec![Content::text(text)]).unwrap();
    }
    let said = engine.close().await;
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(said[0].starts_with("cannot write the session file /log: "), "{said:?}");
}
