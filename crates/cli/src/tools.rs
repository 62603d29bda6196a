//! `tw tools`: the tools, and one call through the whole pipeline.

use std::io::Read;
use std::sync::Arc;

use serde_json::{Value, json};
use tokio::sync::mpsc;
use toolwright::permission::{ModeCell, Stance};
use toolwright::session::{Ending, Outcome};
use toolwright::tool::{CallRequest, Update};
use toolwright::{CancellationToken, PermissionGate, Registry, Workbench};

use crate::args::{Shared, ToolCall, Tools, ToolsAction};
use crate::exit::{Exit, Problem};
use crate::run::{EVERYTHING, directory};
use crate::terminal::{Style, harmless, note, print};

pub async fn tools(shared: &Shared, options: Tools) -> Result<Exit, Problem> {
    let workbench = Workbench::open(&directory(shared), shared.trust)?;
    match options.action {
        Some(ToolsAction::Call(call)) => {
            let registry = workbench.registry();
            // What is not ours may be a server's.
            if !registry.contains(&call.name) && !workbench.mcp.is_empty() {
                workbench.mcp.attach(&registry, None);
                workbench.mcp.start();
                workbench.mcp.settle_all().await;
            }
            let called = run_one(&workbench, registry, call).await;
            workbench.mcp.close().await;
            called
        }
        None => {
            list(&workbench, options.json).await?;
            Ok(Exit::Done)
        }
    }
}

async fn list(workbench: &Workbench, as_json: bool) -> Result<(), Problem> {
    let agent = workbench.agent(None).map_err(toolwright::SetupError::from)?;
    let gate = Arc::new(PermissionGate::new(workbench.policy(&agent, &Stance::default()), None));
    let registry = workbench.registry();
    add_scripts(workbench, &registry, &gate, &agent.name).await;
    let definitions = registry.definitions();
    if as_json {
        let all: Vec<Value> = definitions
            .iter()
            .map(|d| json!({ "name": d.name, "description": d.description, "parameters": d.parameters }))
            .collect();
        print(&format!("{}\n", Value::Array(all)));
        return Ok(());
    }
    let mut out = String::new();
    for definition in &definitions {
        out.push_str(&format!("{}\n", definition.name));
        for line in definition.description.lines() {
            out.push_str(&format!("    {line}\n"));
        }
        let properties = definition.parameters["properties"].as_object();
        let required = definition.parameters["required"].as_array();
        for (name, schema) in properties.into_iter().flatten() {
            let kind = schema["type"].as_str().unwrap_or("any");
            let is_required = required.is_some_and(|r| r.iter().any(|k| k == name.as_str()));
            let optional = if is_required { "" } else { ", optional" };
            let about = schema["description"].as_str().unwrap_or_default();
            out.push_str(&format!("    · {name} ({kind}{optional}): {about}\n"));
        }
        out.push('\n');
    }
    print(&out);
    Ok(())
}

/// The tools that people wrote, beside ours; what is wrong with one is said.
async fn add_scripts(
    workbench: &Workbench,
    registry: &Registry,
    gate: &Arc<PermissionGate>,
    agent: &str,
) {
    for text in workbench.add_scripts(registry, gate, agent).await {
        note(&format!("tw: {text}"));
    }
}

/// One call through the whole pipeline.
pub async fn run_one(
    workbench: &Workbench,
    registry: Registry,
    call: ToolCall,
) -> Result<Exit, Problem> {
    let arguments = if call.arguments == "-" {
        let mut text = String::new();
        let read = std::io::stdin().lock().read_to_string(&mut text);
        read.map_err(|e| Problem::usage(format!("cannot read the arguments: {e}")))?;
        text
    } else {
        call.arguments
    };
    let agent = workbench.agent(call.agent.as_deref()).map_err(toolwright::SetupError::from)?;
    let stance = Stance {
        mode: ModeCell::new(
            call.stance.mode().or(workbench.config.settings.permission_mode).unwrap_or_default(),
        ),
        everything: call.stance.dangerously_allow_everything,
        rules: Vec::new(),
    };
    if stance.everything {
        note(&Style::for_stderr().bad(EVERYTHING));
    }
    let policy = workbench.policy(&agent, &stance);
    let gate = Arc::new(PermissionGate::new(policy, None));
    // Named as a session's would be, so that they are kept for as long as those.
    let outputs = workbench.paths.sessions().join("without-session/calls.outputs");
    add_scripts(workbench, &registry, &gate, &agent.name).await;
    let pipeline = workbench.pipeline(registry, &gate, &Arc::default(), outputs, None);
    let request = CallRequest { id: "call".to_owned(), name: call.name, arguments, cut: false };
    let (sender, mut updates) = mpsc::channel(16);
    let cancel = CancellationToken::new();
    let running = pipeline.run_calls(vec![request], cancel.clone(), sender);
    let watching = async {
        let mut settled = None;
        while let Some(update) = updates.recv().await {
            match update {
                // Nothing is recorded here, so nothing has to be on disk first.
                Update::Starting { go, .. } => {
                    go.send(()).ok();
                }
                Update::Settled { outcome, .. } => settled = Some(outcome),
                Update::Fatal { message } => note(&format!("tw: {message}")),
                Update::Progress { .. } | Update::Changed(_) => {}
            }
        }
        settled
    };
    let interrupted = tokio::signal::ctrl_c();
    tokio::pin!(interrupted);
    let work = async { tokio::join!(running, watching) };
    tokio::pin!(work);
    let settled = loop {
        tokio::select! {
            ((), settled) = &mut work => break settled,
            _ = &mut interrupted, if !cancel.is_cancelled() => cancel.cancel(),
        }
    };
    let Some(outcome) = settled else {
        return Err(Problem::failed("the call gave no outcome"));
    };
    show(&outcome, call.json);
    Ok(match outcome.ending {
        Ending::Completed => Exit::Done,
        Ending::Failed => Exit::Failed,
        Ending::Denied => Exit::Denied,
        Ending::Skipped | Ending::Interrupted => Exit::Interrupted,
    })
}

fn show(outcome: &Outcome, as_json: bool) {
    if as_json {
        let attachments: Vec<Value> =
            outcome.attachments.iter().map(|a| json!({ "mime": a.mime, "name": a.name })).collect();
        let object = json!({
            "ending": outcome.ending, "tool": outcome.tool, "title": outcome.title,
            "output": outcome.output, "details": outcome.details, "attachments": attachments,
            "duration_ms": outcome.duration_ms,
        });
        print(&format!("{object}\n"));
    } else {
        let text = outcome.output.trim_end();
        let text = if std::io::IsTerminal::is_terminal(&std::io::stdout()) {
            harmless(text)
        } else {
            text.to_owned()
        };
        print(&format!("{text}\n"));
    }
}
