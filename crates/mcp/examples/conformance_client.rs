//! The client that the protocol's own conformance suite drives: our library, with nobody to ask and
//! a browser that agrees to everything. The last argument is the server's address.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use toolwright_mcp::{
    Launch, Oauth, OauthSpec, Options, RemoteKind, ServerSpec, ServerState, Servers, Vault,
    begin_sign_in,
};
use toolwright_permission::Request;
use toolwright_session::Outcome;
use toolwright_tool::{
    CallRequest, Decision, Gate, Inquiry, Pipeline, PipelineOptions, Question, Registry, Replies,
    Unanswered, Update, Workspace,
};

/// How often signing in is tried for one call: a server that is never content must not hold us.
const SIGN_INS: usize = 3;

const NAME: &str = "s";

#[derive(Default)]
struct Memory(Arc<Mutex<Option<String>>>);

impl Vault for Memory {
    fn load(&self, _: &str) -> BoxFuture<'static, Result<Option<String>, String>> {
        let kept = self.0.lock().ok().and_then(|kept| kept.clone());
        async move { Ok(kept) }.boxed()
    }

    fn save(&self, _: &str, text: String) -> BoxFuture<'static, Result<(), String>> {
        if let Ok(mut kept) = self.0.lock() {
            *kept = Some(text);
        }
        async { Ok(()) }.boxed()
    }

    fn clear(&self, _: &str) -> BoxFuture<'static, Result<(), String>> {
        if let Ok(mut kept) = self.0.lock() {
            *kept = None;
        }
        async { Ok(()) }.boxed()
    }
}

/// Allows everything, and leaves every question empty.
struct Yes;

impl Gate for Yes {
    fn decide<'a>(&'a self, _: &'a Question) -> BoxFuture<'a, Decision> {
        async { Decision::Allow { why: "a test".to_owned() } }.boxed()
    }

    fn allows_silently(&self, _: &[Request]) -> bool {
        true
    }

    fn inquire<'a>(&'a self, inquiry: &'a Inquiry) -> BoxFuture<'a, Result<Replies, Unanswered>> {
        let empty = vec![Vec::new(); inquiry.items.len()];
        async { Ok(empty) }.boxed()
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let url = std::env::args().next_back().unwrap_or_default();
    let result = run(url).await;
    if let Err(problem) = result {
        eprintln!("{problem}");
        std::process::exit(1);
    }
}

async fn run(url: String) -> Result<(), String> {
    let context = std::env::var("MCP_CONFORMANCE_CONTEXT").unwrap_or_default();
    let context: Value = serde_json::from_str(&context).unwrap_or_default();
    let text = |key: &str| context[key].as_str().map(str::to_owned);
    let oauth = OauthSpec {
        client_id: text("client_id"),
        client_secret: text("client_secret"),
        ..OauthSpec::default()
    };
    let vault: Arc<dyn Vault> = Arc::new(Memory::default());
    let servers = Servers::new(Options {
        servers: vec![ServerSpec {
            name: NAME.to_owned(),
            launch: Launch::Remote {
                url: url.clone(),
                headers: BTreeMap::new(),
                oauth: Oauth::On(oauth.clone()),
                kind: RemoteKind::Find,
            },
            enabled: true,
            required: false,
            timeout: Duration::from_secs(20),
            origin: "the suite".to_owned(),
        }],
        vault: Some(Arc::clone(&vault)),
        ..Options::default()
    });
    let registry = Registry::default();
    servers.attach(&registry, None);
    servers.start();
    servers.settle_all().await;
    let mut sign_ins = 0;
    while state(&servers) == Some(ServerState::NeedsAuth) && sign_ins < SIGN_INS {
        sign_ins += 1;
        sign_in(&servers, &url, &oauth, &vault).await?;
        servers.try_again(NAME).await;
    }
    let Some(status) = servers.status().pop() else { return Err("no server".to_owned()) };
    if status.state != ServerState::Connected {
        return Err(format!("{}: {}", status.state.as_str(), status.reason.unwrap_or_default()));
    }
    let folder = std::env::temp_dir();
    let workspace = Arc::new(Workspace::new(&folder).map_err(|e| e.to_string())?);
    let options = PipelineOptions::new(folder.join("conformance.outputs"));
    let pipeline = Pipeline::new(registry, workspace, Arc::new(Yes), options);
    for tool in status.tools {
        let arguments = match tool.as_str() {
            "s_add_numbers" => json!({"a": 5, "b": 3}),
            _ => json!({}),
        };
        let mut outcome = call(&pipeline, &tool, &arguments).await?;
        while outcome.output.contains("tw mcp auth") && sign_ins < SIGN_INS {
            sign_ins += 1;
            sign_in(&servers, &url, &oauth, &vault).await?;
            outcome = call(&pipeline, &tool, &arguments).await?;
        }
        println!("{tool}: {:?} {}", outcome.ending, outcome.output);
    }
    servers.close().await;
    Ok(())
}

fn state(servers: &Servers) -> Option<ServerState> {
    servers.status().pop().map(|status| status.state)
}

async fn sign_in(
    servers: &Servers,
    url: &str,
    oauth: &OauthSpec,
    vault: &Arc<dyn Vault>,
) -> Result<(), String> {
    let challenge = servers.challenge(NAME);
    let sign_in = begin_sign_in(NAME, url, oauth, vault, challenge).await?;
    let place = sign_in.url().to_owned();
    let browser = async {
        let client = reqwest::Client::builder().build().map_err(|e| e.to_string())?;
        client.get(place).send().await.map(drop).map_err(|e| e.to_string())
    };
    let (went, finished) = tokio::join!(browser, sign_in.finish());
    went.and(finished)
}

async fn call(pipeline: &Pipeline, tool: &str, arguments: &Value) -> Result<Outcome, String> {
    let call = CallRequest {
        id: "1".to_owned(),
        name: tool.to_owned(),
        arguments: arguments.to_string(),
        cut: false,
    };
    let (sender, mut updates) = mpsc::channel(16);
    let running = pipeline.run_calls(vec![call], CancellationToken::new(), sender);
    let watching = async {
        let mut settled = None;
        while let Some(update) = updates.recv().await {
            match update {
                Update::Starting { go, .. } => {
                    go.send(()).ok();
                }
                Update::Settled { outcome, .. } => settled = Some(outcome),
                Update::Progress { .. } | Update::Fatal { .. } | Update::Changed(_) => {}
            }
        }
        settled
    };
    tokio::join!(running, watching).1.ok_or_else(|| "no outcome".to_owned())
}
