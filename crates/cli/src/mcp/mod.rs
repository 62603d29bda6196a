//! `tw mcp`: servers of others, and Toolwright as one.

pub mod args;
mod edit;
mod serve;
mod sign_in;

use serde_json::json;
use toolwright::llm::Content;
use toolwright::mcp_servers::{ServerState, ServerStatus};
use toolwright::{CancellationToken, Workbench};

use crate::args::{Shared, StanceArguments, ToolCall};
use crate::exit::{Exit, Problem};
use crate::mcp::args::{Call, Mcp, McpAction};
use crate::run::directory;
use crate::terminal::{harmless, print};
use crate::tools;

pub async fn mcp(shared: &Shared, options: Mcp) -> Result<Exit, Problem> {
    let bench = Workbench::open(&directory(shared), shared.trust)?;
    let result = match options.action {
        McpAction::Add(options) => edit::add(&bench, &options),
        McpAction::Remove { name } => edit::remove(&bench, &name),
        McpAction::List { json } => list(&bench, json).await,
        McpAction::Auth { name, no_browser } => sign_in::auth(&bench, &name, !no_browser).await,
        McpAction::Logout { name } => sign_in::logout(&bench, &name).await,
        McpAction::Debug { name } => debug(&bench, &name).await,
        McpAction::Call(options) => call(&bench, options).await,
        McpAction::Prompt { name, arguments } => prompt(&bench, &name, &arguments).await,
        McpAction::Serve(options) => serve::serve(&bench, options).await,
    };
    bench.mcp.close().await;
    result
}

fn warn(bench: &Workbench) {
    for warning in &bench.config.warnings {
        crate::terminal::note(&format!("! {warning}"));
    }
}

async fn list(bench: &Workbench, as_json: bool) -> Result<Exit, Problem> {
    warn(bench);
    bench.mcp.start();
    bench.mcp.settle_all().await;
    let all = bench.mcp.status();
    if as_json {
        print(&format!("{}\n", json!(all)));
        return Ok(Exit::Done);
    }
    if all.is_empty() {
        crate::terminal::note("No MCP server is configured. Add one:  tw mcp add NAME -- COMMAND…");
    }
    print(&all.iter().map(line).collect::<String>());
    Ok(Exit::Done)
}

/// One server for people: how it stands, and why.
pub fn line(status: &ServerStatus) -> String {
    let mark = match status.state {
        ServerState::Connected => "✓",
        ServerState::Disabled | ServerState::Starting => "·",
        ServerState::Failed | ServerState::NeedsAuth => "✗",
    };
    let count = match status.state {
        ServerState::Connected => format!(", {} tools", status.tools.len()),
        _ => String::new(),
    };
    let (name, state) = (&status.name, status.state.as_str());
    let name = harmless(name);
    let mut out = format!("{mark} {name}  {state}{count}  ({})\n", harmless(&status.runs));
    if let Some(reason) = &status.reason {
        out.push_str(&format!("    {}\n", harmless(reason)));
        let words = status.last_words.iter().rev().take(5).rev();
        out.extend(words.map(|line| format!("    | {}\n", harmless(line))));
    }
    out
}

fn known<'a>(bench: &'a Workbench, name: &str) -> Result<&'a Workbench, Problem> {
    let names: Vec<String> = bench.mcp.status().into_iter().map(|status| status.name).collect();
    if names.iter().any(|known| known == name) {
        return Ok(bench);
    }
    let list = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
    Err(Problem::usage(format!("there is no MCP server {name:?}; configured: {list}")))
}

async fn debug(bench: &Workbench, name: &str) -> Result<Exit, Problem> {
    warn(bench);
    known(bench, name)?.mcp.start();
    bench.mcp.settle_one(name).await;
    let Some(status) = bench.mcp.status().into_iter().find(|status| status.name == name) else {
        return Err(Problem::failed("the server is gone"));
    };
    let mut out = line(&status);
    out.push_str(&format!("  configured in  {}\n", status.origin));
    if let (Some(server), Some(protocol)) = (&status.server, &status.protocol) {
        out.push_str(&format!("  server         {}\n", harmless(server)));
        out.push_str(&format!("  protocol       {protocol}\n"));
    }
    let mut section = |title: &str, names: Vec<String>| {
        if !names.is_empty() {
            out.push_str(&format!("  {title}\n"));
            out.extend(names.iter().map(|name| format!("    {}\n", harmless(name))));
        }
    };
    section("tools", status.tools.clone());
    if status.state == ServerState::Connected {
        let own = |server: &str| server == name;
        let prompts = bench.mcp.prompts().await.into_iter().filter(|p| own(&p.server));
        section("prompts", prompts.map(|p| format!("{}:{}", p.server, p.name)).collect());
        let resources = bench.mcp.resources().await.into_iter().filter(|r| own(&r.server));
        section("resources", resources.map(|r| format!("@{}:{}", r.server, r.uri)).collect());
    }
    if status.reason.is_none() {
        section("said besides the protocol", status.last_words.clone());
    }
    print(&out);
    let works = matches!(status.state, ServerState::Connected | ServerState::Disabled);
    Ok(if works { Exit::Done } else { Exit::Failed })
}

async fn call(bench: &Workbench, options: Call) -> Result<Exit, Problem> {
    warn(bench);
    known(bench, &options.server)?;
    let registry = bench.registry();
    bench.mcp.attach(&registry, None);
    bench.mcp.start();
    bench.mcp.settle_one(&options.server).await;
    let status = bench.mcp.status().into_iter().find(|status| status.name == options.server);
    if let Some(status) = status.filter(|status| status.state != ServerState::Connected) {
        return Err(Problem::failed(format!("cannot call it:\n{}", line(&status).trim_end())));
    }
    let Call { server, tool, arguments, auto, json } = options;
    let name = bench.mcp.tool_name(&server, &tool);
    if !registry.contains(&name) {
        let status = bench.mcp.status().into_iter().find(|status| status.name == server);
        let names = status.map(|status| status.tools.join(", ")).unwrap_or_default();
        return Err(Problem::usage(format!("{server} has no tool {tool:?}; there are: {names}")));
    }
    let stance = StanceArguments { mode: None, auto, dangerously_allow_everything: false };
    let call = ToolCall { name, arguments, stance, agent: None, json };
    tools::run_one(bench, registry, call).await
}

async fn prompt(bench: &Workbench, name: &str, words: &[String]) -> Result<Exit, Problem> {
    warn(bench);
    let Some((server, prompt)) = name.split_once(':') else {
        return Err(Problem::usage(format!("{name:?} is not written as SERVER:PROMPT")));
    };
    known(bench, server)?.mcp.start();
    let cancel = CancellationToken::new();
    let said = bench.mcp.prompt(server, prompt, words, &cancel).await.map_err(Problem::failed)?;
    for content in said {
        match content {
            Content::Text { text } => print(&format!("{}\n", harmless(&text))),
            Content::Media(media) => print(&format!("({})\n", media.mime)),
        }
    }
    Ok(Exit::Done)
}
