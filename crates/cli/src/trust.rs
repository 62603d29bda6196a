//! `tw trust`: which folders may do more than tighten rules.

use std::io::{BufRead, Write};

use serde_json::json;
use toolwright::Workbench;
use toolwright::config::{Paths, Trust as Store, TrustState};
use toolwright::tool::Workspace;

use crate::args::{Shared, Trust};
use crate::exit::{Exit, Problem};
use crate::run::directory;
use crate::terminal::{Style, harmless, print};

pub fn trust(shared: &Shared, options: &Trust) -> Result<Exit, Problem> {
    let folder = options.path.clone().unwrap_or_else(|| directory(shared));
    // Taking back must work for a folder that is gone or cannot be read any more.
    let store = Store::new(&Paths::from_env(&|name| std::env::var(name).ok()));
    let failed = |error: std::io::Error| Problem::failed(format!("cannot keep that: {error}"));
    if options.list {
        return list(&store, options.json);
    }
    if options.revoke {
        let worktree = Workspace::new(&folder).map_or(folder, |w| w.worktree().to_owned());
        let known = store.revoke(&worktree).map_err(failed)?;
        let text = if known { "is no longer trusted" } else { "was not trusted anyway" };
        print(&format!("{} {text}\n", worktree.display()));
        return Ok(Exit::Done);
    }
    // Opened as somebody would who trusts it: what is wrong with it is said before it is trusted.
    let workbench = Workbench::open(&folder, true)?;
    let (directory, worktree) = (workbench.workspace.directory(), workbench.workspace.worktree());
    store.decide(directory, worktree, true).map_err(failed)?;
    let shown = worktree.display();
    print(&format!("{shown} is trusted: its own configuration is used from now on\n"));
    Ok(Exit::Done)
}

fn list(store: &Store, as_json: bool) -> Result<Exit, Problem> {
    let all = store.all();
    let all = all.map_err(|error| Problem::failed(format!("cannot read the list: {error}")))?;
    if as_json {
        let entry = |e: &toolwright::config::TrustEntry| json!({ "path": e.path, "trusted": e.trusted, "time": e.time });
        let entries: Vec<_> = all.iter().map(entry).collect();
        print(&format!("{}\n", json!(entries)));
    } else if all.is_empty() {
        print("No folder is trusted.\n");
    } else {
        for entry in &all {
            let word = if entry.trusted { "trusted" } else { "refused" };
            print(&format!("{word}  {}\n", entry.path.display()));
        }
    }
    Ok(Exit::Done)
}

/// Asks the person at the terminal whether this folder is to be trusted, where there is a reason to ask
/// and nobody has answered yet. The answer is kept.
pub fn is_agreed_to(workbench: &Workbench) -> Result<bool, Problem> {
    let left_out = &workbench.config.left_out;
    if workbench.is_trusted || left_out.is_empty() || workbench.trust == TrustState::Refused {
        return Ok(false);
    }
    let style = Style::for_stderr();
    let (directory, worktree) = (workbench.workspace.directory(), workbench.workspace.worktree());
    let mut text = format!(
        "\n{} {}\n",
        style.attention("?"),
        style.bold(&format!("Do you trust {}?", harmless(&worktree.display().to_string())))
    );
    match &workbench.trust {
        TrustState::Changed { files, was_trusted: true } => {
            let files = harmless(&files.join(", "));
            text.push_str(&format!("  You did before; these have changed since: {files}\n"));
        }
        _ => text.push_str("  Its own files want to do more than tighten rules:\n"),
    }
    for left in left_out {
        let shown = left.path.strip_prefix(worktree).unwrap_or(&left.path);
        let line = format!("  · {}: {}\n", shown.display(), left.what.join(", "));
        text.push_str(&harmless(&line));
    }
    text.push_str("[y] yes, use them  [N] no, only what tightens: ");
    let mut out = std::io::stderr().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).ok();
    let mut line = String::new();
    // A terminal that is gone agrees to nothing, and nothing is kept.
    if !std::io::stdin().lock().read_line(&mut line).is_ok_and(|count| count > 0) {
        return Ok(false);
    }
    let agreed = matches!(line.trim(), "y" | "Y" | "yes");
    let kept = workbench.trust_store().decide(directory, worktree, agreed);
    kept.map_err(|error| Problem::failed(format!("cannot keep the answer: {error}")))?;
    Ok(agreed)
}
