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
        open(sign_in.url(), &bench.withheld_variables());
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

/// A browser belongs to the person, not to us: it goes on when we end. The server says what the address
/// is; only one of the web is opened.
fn open(url: &str, withheld: &[String]) {
    let Some(mut command) = browser(url, withheld) else { return };
    // Without one, the address has been printed.
    if let Ok(mut child) = command.spawn() {
        // It ends once the browser has it.
        std::thread::spawn(move || child.wait());
    }
}

fn browser(url: &str, withheld: &[String]) -> Option<Command> {
    if !url.starts_with("https://") && !url.starts_with("http://") {
        return None;
    }
    let program = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let mut command = Command::new(program);
    command.arg(url).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    withheld.iter().for_each(|name| {
        command.env_remove(name);
    });
    Some(command)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_pages_of_the_web_are_opened_and_without_our_keys() {
        let withheld = ["SOME_API_KEY".to_owned()];
        for url in ["file:///etc/passwd", "javascript:1", "--help", "httpx://a", "ssh://h"] {
            assert!(browser(url, &withheld).is_none(), "{url}");
        }
        let command = browser("https://a.example/sign-in", &withheld).unwrap();
        let removed: Vec<_> = command.get_envs().collect();
        assert_eq!(removed, [(std::ffi::OsStr::new("SOME_API_KEY"), None)]);
    }
}
