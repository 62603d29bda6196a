//! `tw mcp auth` and `tw mcp logout`.

use std::io::IsTerminal;
use std::process::{Command, Stdio};

use toolwright::Workbench;
use toolwright::mcp_servers::ServerState;

use crate::exit::{Exit, Problem};
use crate::terminal::note;

pub async fn auth(bench: &Workbench, name: &str, may_open: bool) -> Result<Exit, Problem> {
    super::known(bench, name)?.mcp.start();
    // The server itself knows best what it wants.
    bench.mcp.settle_one(name).await;
    let sign_in = bench.sign_in(name).await.map_err(Problem::failed)?;
    note(&format!("Open this address to sign in at {name}:\n\n    {}\n", sign_in.url()));
    if may_open && std::io::stderr().is_terminal() {
        open(sign_in.url());
    }
    let finished = tokio::select! {
        finished = sign_in.finish() => finished,
        _ = tokio::signal::ctrl_c() => return Ok(Exit::Interrupted),
    };
    finished.map_err(Problem::failed)?;
    // Whether it helped is known once the server takes it.
    bench.mcp.try_again(name).await;
    let status = bench.mcp.status().into_iter().find(|status| status.name == name);
    match status {
        Some(status) if status.state == ServerState::Connected => {
            note(&format!("Signed in at {name}: {} tools.", status.tools.len()));
            Ok(Exit::Done)
        }
        Some(status) => {
            let reason = status.reason.unwrap_or_default();
            Err(Problem::failed(format!("signed in, but {name} cannot be used: {reason}")))
        }
        None => Ok(Exit::Done),
    }
}

pub async fn logout(bench: &Workbench, name: &str) -> Result<Exit, Problem> {
    bench.sign_out(name).await.map_err(Problem::failed)?;
    note(&format!("What was kept for {name} is removed."));
    Ok(Exit::Done)
}

/// A browser belongs to the person, not to us: it goes on when we end.
fn open(url: &str) {
    let program = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let quiet = || Stdio::null();
    // Without one, the address has been printed.
    Command::new(program).arg(url).stdin(quiet()).stdout(quiet()).stderr(quiet()).spawn().ok();
}
