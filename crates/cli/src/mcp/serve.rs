//! `tw mcp serve`: our own tools for other programs.

use std::sync::Arc;

use futures_util::FutureExt;
use tokio::sync::mpsc;
use toolwright::llm::Content;
use toolwright::mcp_servers::{AGENT, Offering, RunAgent, serve_http, serve_pipes};
use toolwright::permission::{Mode, Stance};
use toolwright::session::TurnStatus;
use toolwright::{CancellationToken, DeskOptions, PermissionGate, Workbench};

use crate::exit::{Exit, Problem};
use crate::mcp::args::Serve;
use crate::terminal::note;

/// What only looks.
const READ_ONLY: &[&str] = &["glob", "grep", "list", "lsp", "read", "webfetch", "websearch"];

/// Events of an agent that nobody reads.
const EVENTS_AHEAD: usize = 64;

pub async fn serve(bench: &Workbench, options: Serve) -> Result<Exit, Problem> {
    // Standard output belongs to the protocol.
    super::warn(bench);
    let agent = bench.agent(None).map_err(toolwright::SetupError::from)?;
    let mode = if options.auto { Mode::Auto } else { Mode::default() };
    let stance = Stance::from(mode);
    let gate = Arc::new(PermissionGate::new(bench.policy(&agent, &stance), None));
    let outputs = bench.paths.sessions().join("without-session/calls.outputs");
    let registry = bench.registry();
    let names = registry.names();
    let is_read_only = |name: &str| READ_ONLY.contains(&name);
    let wanted: Vec<String> = match &options.tools {
        None => names.iter().filter(|name| is_read_only(name)).cloned().collect(),
        Some(list) if list.iter().any(|name| name == "all") => names,
        Some(list) => {
            let unknown = list.iter().find(|name| *name != AGENT && !names.contains(name));
            if let Some(unknown) = unknown {
                let known = names.join(", ");
                return Err(Problem::usage(format!(
                    "there is no tool {unknown:?}; known: {known}"
                )));
            }
            list.iter().filter(|name| *name != AGENT).cloned().collect()
        }
    };
    let asked =
        |name: &str| options.tools.as_ref().is_some_and(|all| all.iter().any(|n| n == name));
    let with_agent = options.tools.is_none() || asked(AGENT) || asked("all");
    let offering = Offering {
        pipeline: bench.pipeline(registry, &gate, &Arc::default(), outputs, None),
        tools: wanted.into_iter().map(|name| (name.clone(), is_read_only(&name))).collect(),
        agent: with_agent.then(|| agent_of(bench, options.auto)),
    };
    let cancel = CancellationToken::new();
    let served = async {
        match options.http {
            None => serve_pipes(offering, tokio::io::stdin(), tokio::io::stdout()).await,
            Some(address) => {
                let ready = |address| note(&format!("Listening at http://{address}/mcp"));
                serve_http(offering, address, cancel.clone(), ready).await
            }
        }
    };
    tokio::select! {
        served = served => served.map(|()| Exit::Done).map_err(Problem::failed),
        _ = tokio::signal::ctrl_c() => Ok(Exit::Interrupted),
    }
}

/// A whole agent with a session of its own for each task. Nobody can be asked: what would be asked is
/// denied, unless everything is allowed.
fn agent_of(bench: &Workbench, auto: bool) -> RunAgent {
    let bench = bench.clone();
    Arc::new(move |prompt, cancel| {
        let bench = bench.clone();
        async move {
            let mode = auto.then_some(Mode::Auto);
            let options = DeskOptions { mode, ..DeskOptions::default() };
            let mut desk = bench.desk(options).await.map_err(|e| e.to_string())?;
            let (sender, mut events) = mpsc::channel(EVENTS_AHEAD);
            let end = {
                let turn = desk.engine.prompt(vec![Content::text(prompt)], &cancel, &sender);
                tokio::pin!(turn);
                loop {
                    tokio::select! {
                        end = &mut turn => break end,
                        Some(_) = events.recv() => {}
                    }
                }
            };
            desk.engine.close().await;
            match end.status {
                TurnStatus::Done => Ok(end.answer.to_string()),
                _ => {
                    let why = end.problem.as_deref().unwrap_or("it did not come to its end");
                    Err(format!("{}\n({why})", end.answer).trim().to_owned())
                }
            }
        }
        .boxed()
    })
}
