//! Turns that are aborted at some moment, with real commands, a real log and a model over HTTP.

// The test looks at what is left, the benchmark at the time.
#![allow(dead_code)]

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::json;
use tokio::sync::mpsc;
use toolwright::config::Settings;
use toolwright::llm::Content;
use toolwright::permission::{Action, Layer, LayerKind, Policy, Rule};
use toolwright::session::{Session, Store, TurnStatus};
use toolwright::tool::{Pipeline, PipelineOptions, Registry, Workspace};
use toolwright::{CancellationToken, Engine, Event, PermissionGate, choose_model};
use toolwright_engine::{EngineOptions, Record};
use toolwright_testkit::{Answer, Captured, ModelServer, Reply};

/// A model that streams, reads, runs commands that would go on for a long time, and never comes to
/// an end by itself.
pub fn restless(marker: &str) -> ModelServer {
    let marker = marker.to_owned();
    ModelServer::answering(move |request: &Captured| {
        let steps = request.messages().len() / 2;
        match steps % 3 {
            0 => Reply::default()
                .say("Looking around.")
                .call("read", json!({"filePath": "a.txt"}))
                .call("glob", json!({"pattern": "*"}))
                .into(),
            1 => Reply::default()
                .call(
                    "bash",
                    json!({"command": format!("echo {marker}; (sleep 0.003; true) | cat")}),
                )
                .call("write", json!({"filePath": "b.txt", "content": steps.to_string()}))
                .into(),
            _ => {
                let command = format!("echo {marker}; sleep 300 & sleep 300");
                Answer::call("bash", json!({"command": command}))
            }
        }
    })
}

/// Where turns are aborted.
pub struct Place {
    folder: tempfile::TempDir,
    server: ModelServer,
}

pub struct Aborted {
    /// From the abort to the last event.
    pub took: Duration,
    pub status: TurnStatus,
    /// Calls in the record that have no result.
    pub open_calls: usize,
}

impl Place {
    pub fn new(marker: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::create_dir(folder.path().join("work")).expect("a workspace");
        std::fs::write(folder.path().join("work/a.txt"), "a line\n".repeat(200)).expect("a file");
        Self { folder, server: restless(marker) }
    }

    async fn engine(&self) -> Engine {
        let provider = json!({"anthropic": {"options": {
            "baseURL": self.server.url(), "apiKey": "test-key", "retries": 0,
        }}});
        let settings: Settings =
            serde_json::from_value(json!({ "provider": provider })).expect("settings");
        let chosen = choose_model(Some("anthropic/m"), &settings, &|_| None, None, None).await;
        let rule = Rule { permission: "*".into(), pattern: "*".into(), action: Action::Allow };
        let layer = Layer { kind: LayerKind::Session, origin: "test".into(), rules: vec![rule] };
        let gate = PermissionGate::new(Policy::new(vec![layer]), None);
        let work = self.folder.path().join("work");
        let workspace = Arc::new(Workspace::new(&work).expect("a workspace"));
        let registry = Registry::default();
        let feedback = toolwright_tools::Feedback::default();
        toolwright_tools::register_all(
            &registry,
            toolwright_tools::BashOptions::default(),
            &feedback,
        );
        let options = PipelineOptions::new(self.folder.path().join("outputs"));
        let pipeline = Pipeline::new(registry, workspace, Arc::new(gate), options);
        let store = Store::new(self.folder.path().join("sessions"));
        let (log, session) = store.create(&work, "test").expect("a session");
        let record = Record::new(session, log);
        let model = chosen.expect("a model").model;
        Engine::new(model, pipeline, record, EngineOptions::new("Be.")).await.expect("an engine")
    }

    /// Begins a turn and aborts it after `delay`.
    pub async fn abort_after(&self, delay: Duration) -> Aborted {
        let mut engine = self.engine().await;
        let cancel = CancellationToken::new();
        let (sender, mut events) = mpsc::channel(64);
        let turn = engine.prompt(vec![Content::text("go")], &cancel, &sender);
        let watching = async {
            while let Some(event) = events.recv().await {
                if matches!(event, Event::TurnEnded(_)) {
                    return Instant::now();
                }
            }
            Instant::now()
        };
        let aborting = async {
            tokio::time::sleep(delay).await;
            cancel.cancel();
            Instant::now()
        };
        let (end, ended, aborted) = tokio::join!(turn, watching, aborting);
        let took = ended.saturating_duration_since(aborted);
        let open_calls = open_calls(engine.session());
        Aborted { took, status: end.status, open_calls }
    }
}

fn open_calls(session: &Session) -> usize {
    let steps = session.steps_of_turn();
    steps.flat_map(|s| s.calls()).filter(|call| call.outcome().is_none()).count()
}
