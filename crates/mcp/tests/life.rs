//! The life of a server: tries, failures, and what keeps a call alive.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use toolwright_mcp::{Launch, Options, Reach, ServerSpec, ServerState, Servers, TRIES};
use toolwright_permission::Request;
use toolwright_session::{Ending, Outcome};
use toolwright_testkit::mcp_server::program;
use toolwright_tool::{
    CallRequest, Decision, Gate, Pipeline, PipelineOptions, Question, Registry, Update, Workspace,
};

struct Yes;

impl Gate for Yes {
    fn decide<'a>(&'a self, _: &'a Question) -> BoxFuture<'a, Decision> {
        async { Decision::Allow { why: String::new() } }.boxed()
    }

    fn allows_silently(&self, _: &[Request]) -> bool {
        true
    }
}

fn servers(folder: &Path, arguments: &[&str], timeout: Duration) -> Servers {
    let mut command = vec![program("fake_mcp_server").display().to_string()];
    command.extend(arguments.iter().map(|word| (*word).to_owned()));
    let launch = Launch::Local {
        command,
        directory: folder.to_owned(),
        environment: Default::default(),
        reach: Reach::Free,
    };
    let spec = ServerSpec {
        name: "fake".to_owned(),
        launch,
        enabled: true,
        required: false,
        timeout,
        origin: String::new(),
    };
    Servers::new(Options { servers: vec![spec], ..Options::default() })
}

fn pipeline(folder: &Path, servers: &Servers) -> Pipeline {
    let registry = Registry::default();
    servers.attach(&registry, None);
    let workspace = Arc::new(Workspace::new(folder).unwrap());
    let options = PipelineOptions::new(folder.join("outputs"));
    Pipeline::new(registry, workspace, Arc::new(Yes), options)
}

/// The outcome, and how often it said how far it was. `on_progress` hears the count.
async fn call(
    pipeline: &Pipeline,
    tool: &str,
    arguments: Value,
    cancel: &CancellationToken,
    mut on_progress: impl FnMut(usize),
) -> Outcome {
    let call = CallRequest {
        id: "1".to_owned(),
        name: tool.to_owned(),
        arguments: arguments.to_string(),
        cut: false,
    };
    let (sender, mut updates) = mpsc::channel(16);
    let running = pipeline.run_calls(vec![call], cancel.clone(), sender);
    let watching = async {
        let (mut settled, mut count) = (None, 0);
        while let Some(update) = updates.recv().await {
            match update {
                Update::Starting { go, .. } => go.send(()).unwrap(),
                Update::Settled { outcome, .. } => settled = Some(outcome),
                Update::Progress { text, .. } => {
                    assert!(text.contains(" of 100: working"), "{text}");
                    count += 1;
                    on_progress(count);
                }
                Update::Changed(_) => {}
                Update::Fatal { message } => panic!("{message}"),
            }
        }
        settled.unwrap()
    };
    tokio::join!(running, watching).1
}

async fn until(servers: &Servers, what: impl Fn(&toolwright_mcp::ServerStatus) -> bool) {
    let waiting = async {
        while !what(&servers.status()[0]) {
            tokio::task::yield_now().await;
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), waiting).await.expect("in time");
}

#[tokio::test]
async fn a_server_that_fails_at_first_is_tried_again_and_its_tools_come() {
    let folder = tempfile::tempdir().unwrap();
    let servers = servers(folder.path(), &["die_times", "tries", "2"], Duration::from_secs(30));
    let pipeline = pipeline(folder.path(), &servers);
    servers.start();
    until(&servers, |status| status.state == ServerState::Connected).await;
    assert!(pipeline.registry().contains("fake_echo"));
    assert_eq!(std::fs::read_to_string(folder.path().join("tries")).unwrap().len(), 3);
    servers.close().await;
}

#[tokio::test]
async fn a_row_of_crashes_ends_with_a_message_and_a_call_tries_once_more() {
    let folder = tempfile::tempdir().unwrap();
    let tries = || std::fs::read_to_string(folder.path().join("tries")).unwrap_or_default().len();
    let servers = servers(folder.path(), &["die_times", "tries", "99"], Duration::from_secs(30));
    servers.start();
    until(&servers, |status| {
        status.reason.as_ref().is_some_and(|reason| reason.contains("is not tried again"))
    })
    .await;
    let status = &servers.status()[0];
    assert_eq!(status.state, ServerState::Failed);
    let reason = status.reason.as_deref().unwrap();
    assert!(reason.contains("it exited with code 4") && reason.contains("5 times"), "{reason}");
    assert_eq!(status.last_words, ["not yet"]);
    assert_eq!(tries(), TRIES as usize);
    servers.try_again("fake").await;
    assert_eq!(tries(), TRIES as usize + 1);
    servers.close().await;
}

#[tokio::test]
async fn signs_of_life_keep_a_call_alive_beyond_its_time() {
    let folder = tempfile::tempdir().unwrap();
    let timeout = Duration::from_secs(2);
    let servers = servers(folder.path(), &["ok"], timeout);
    let pipeline = pipeline(folder.path(), &servers);
    servers.start();
    servers.settle_all().await;
    let file = folder.path().join("enough");
    let began = std::time::Instant::now();
    let arguments = json!({ "file": file });
    let outcome = call(&pipeline, "fake_progress", arguments, &CancellationToken::new(), |_| {
        // Only after its time is the server let go.
        if began.elapsed() > timeout * 2 {
            std::fs::write(&file, "").unwrap();
        }
    })
    .await;
    assert_eq!(outcome.ending, Ending::Completed, "{}", outcome.output);
    assert!(outcome.output.starts_with("done"), "{}", outcome.output);
    servers.close().await;
}

#[tokio::test]
async fn a_call_that_is_interrupted_is_told_to_the_server() {
    let folder = tempfile::tempdir().unwrap();
    let servers = servers(folder.path(), &["ok"], Duration::from_secs(30));
    let pipeline = pipeline(folder.path(), &servers);
    servers.start();
    servers.settle_all().await;
    let cancel = CancellationToken::new();
    let file = json!({ "file": folder.path().join("never") });
    let outcome = call(&pipeline, "fake_progress", file, &cancel, |_| cancel.cancel()).await;
    assert_eq!(outcome.ending, Ending::Interrupted, "{}", outcome.output);
    let fresh = CancellationToken::new();
    // The word goes out beside the next calls, not before them.
    let heard = async {
        while call(&pipeline, "fake_cancelled", json!({}), &fresh, |_| {}).await.output == "[]" {}
    };
    tokio::time::timeout(Duration::from_secs(60), heard).await.expect("the server heard of it");
    servers.close().await;
}

#[tokio::test]
async fn whoever_is_dropped_takes_the_processes_along() {
    let folder = tempfile::tempdir().unwrap();
    let marker = format!("mark-drop-{}", std::process::id());
    let servers = servers(folder.path(), &["fork", &marker], Duration::from_secs(30));
    servers.start();
    servers.settle_all().await;
    assert!(!toolwright_testkit::processes_with(&marker).is_empty());
    drop(servers);
    let gone = async {
        while !toolwright_testkit::processes_with(&marker).is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), gone).await.expect("no process left");
}
