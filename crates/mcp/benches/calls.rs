//! What a call of a tool costs over the bare exchange of two lines with the same server.
//!
//!     cargo build --release -p toolwright-mcp --examples && cargo bench -p toolwright-mcp --bench calls

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::json;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use toolwright_mcp::{Launch, Options, ServerSpec, Servers, USUAL_TIMEOUT};
use toolwright_permission::Request;
use toolwright_testkit::mcp_server::program;
use toolwright_tool::{
    CallRequest, Decision, Gate, Pipeline, PipelineOptions, Question, Registry, Update, Workspace,
};

const CALLS: u32 = 2_000;

/// More than a call may cost over the bare exchange.
const LIMIT: Duration = Duration::from_millis(2);

struct Yes;

impl Gate for Yes {
    fn decide<'a>(&'a self, _: &'a Question) -> BoxFuture<'a, Decision> {
        async { Decision::Allow { why: String::new() } }.boxed()
    }

    fn allows_silently(&self, _: &[Request]) -> bool {
        true
    }
}

/// Two lines through two pipes, and nothing else.
fn bare() -> Duration {
    let mut child = Command::new(program("fake_mcp_server"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the server");
    let mut input = child.stdin.take().expect("a pipe");
    let mut output = BufReader::new(child.stdout.take().expect("a pipe"));
    let started = Instant::now();
    for id in 0..CALLS {
        let params = json!({"name": "echo", "arguments": {"text": "x"}});
        let line = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params});
        writeln!(input, "{line}").expect("somebody who reads");
        let mut answer = String::new();
        output.read_line(&mut answer).expect("an answer");
    }
    let took = started.elapsed() / CALLS;
    child.kill().expect("a running child");
    child.wait().expect("its end");
    took
}

/// Repaired, validated, planned, decided, called and fitted.
async fn whole() -> Duration {
    let folder = tempfile::tempdir().expect("a folder");
    let launch = Launch::Local {
        command: vec![program("fake_mcp_server").display().to_string()],
        directory: folder.path().to_owned(),
        environment: Default::default(),
        reach: Default::default(),
    };
    let servers = Servers::new(Options {
        servers: vec![ServerSpec {
            name: "fake".to_owned(),
            launch,
            enabled: true,
            required: true,
            timeout: USUAL_TIMEOUT,
            origin: String::new(),
        }],
        ..Options::default()
    });
    let registry = Registry::default();
    servers.attach(&registry, None);
    servers.start();
    servers.settle(Duration::ZERO).await.expect("a server");
    let workspace = Arc::new(Workspace::new(folder.path()).expect("a folder"));
    let mut options = PipelineOptions::new(folder.path().join("outputs"));
    options.cache = false;
    let pipeline = Pipeline::new(registry, workspace, Arc::new(Yes), options);
    let started = Instant::now();
    for id in 0..CALLS {
        let call = CallRequest {
            id: id.to_string(),
            name: "fake_echo".to_owned(),
            arguments: json!({"text": "x"}).to_string(),
            cut: false,
        };
        let (sender, mut updates) = mpsc::channel(16);
        let watching = async {
            while let Some(update) = updates.recv().await {
                match update {
                    Update::Starting { go, .. } => go.send(()).expect("a caller"),
                    Update::Settled { outcome, .. } => assert_eq!(outcome.output, "x"),
                    _ => {}
                }
            }
        };
        let running = pipeline.run_calls(vec![call], CancellationToken::new(), sender);
        tokio::join!(running, watching);
    }
    let took = started.elapsed() / CALLS;
    servers.close().await;
    took
}

fn main() {
    let bare = bare();
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let whole = runtime.block_on(whole());
    let more = whole.saturating_sub(bare);
    let ratio = whole.as_secs_f64() / bare.as_secs_f64();
    println!("bare {bare:?}, whole {whole:?}: {more:?} more, {ratio:.1} times");
    assert!(more < LIMIT, "a call costs {more:?} over the bare exchange");
}
