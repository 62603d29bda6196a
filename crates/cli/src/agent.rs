//! `tw agent`: who can work here, and a new one.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use toolwright::Workbench;
use toolwright::config::{Agent, AgentMode};

use crate::args::{AgentAction, AgentCreate, Agents, Shared};
use crate::exit::{Exit, Problem};
use crate::run::directory;
use crate::terminal::{note, print};

pub fn agent(shared: &Shared, options: Agents) -> Result<Exit, Problem> {
    let workbench = Workbench::open(&directory(shared), shared.trust)?;
    for warning in &workbench.config.warnings {
        note(&format!("! {warning}"));
    }
    match options.action {
        None => list(&workbench, options.json),
        Some(AgentAction::List { json }) => list(&workbench, json || options.json),
        Some(AgentAction::Create(new)) => return create(&workbench, &new),
    }
    Ok(Exit::Done)
}

fn mode(mode: AgentMode) -> &'static str {
    match mode {
        AgentMode::Primary => "primary",
        AgentMode::Subagent => "subagent",
        AgentMode::All => "all",
    }
}

fn list(workbench: &Workbench, as_json: bool) {
    let home = workbench.paths.home.display().to_string();
    let agents = Agent::all(&workbench.config.settings, &home);
    if as_json {
        let all: Vec<Value> = agents
            .iter()
            .map(|a| {
                json!({
                    "name": a.name, "description": a.description, "mode": mode(a.mode),
                    "hidden": a.hidden, "model": a.model, "steps": a.steps,
                })
            })
            .collect();
        return print(&format!("{}\n", Value::Array(all)));
    }
    let mut out = String::new();
    for agent in agents.iter().filter(|a| !a.hidden) {
        out.push_str(&format!("{:<16} {:<9}", agent.name, mode(agent.mode)));
        if let Some(model) = &agent.model {
            out.push_str(&format!(" [{model}]"));
        }
        out.push_str(&format!(" {}\n", agent.description.trim()));
    }
    print(&out);
}

fn create(workbench: &Workbench, new: &AgentCreate) -> Result<Exit, Problem> {
    let name = new.name.trim_end_matches(".md");
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '/');
    if name.is_empty() || !name.chars().all(fits) || name.starts_with('/') {
        let text = format!("\"{name}\" is no name for an agent: use letters, digits, - and _");
        return Err(Problem::usage(text));
    }
    let folder = if new.global {
        workbench.paths.config.join("toolwright")
    } else {
        project_folder(workbench.workspace.worktree())
    };
    let path = folder.join("agent").join(format!("{name}.md"));
    let prompt = new.prompt.as_deref().unwrap_or(
        "Say here what this agent is for, what it should look at first, and what its answer should look like.",
    );
    let mut head = format!(
        "description: {}\nmode: {}\n",
        Value::from(new.description.trim()),
        new.mode.as_str()
    );
    if let Some(model) = &new.model {
        head.push_str(&format!("model: {model}\n"));
    }
    if new.read_only {
        head.push_str("permission:\n  edit: deny\n  bash: deny\n");
    }
    let text = format!("---\n{head}---\n\n{}\n", prompt.trim());
    let failed =
        |e: std::io::Error| Problem::failed(format!("cannot write {}: {e}", path.display()));
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent).map_err(failed)?;
    }
    // One that is there is somebody's work.
    let made = std::fs::OpenOptions::new().write(true).create_new(true).open(&path);
    let mut file = match made {
        Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {
            return Err(Problem::usage(format!(
                "{} exists already; edit it, or choose another name",
                path.display()
            )));
        }
        other => other.map_err(failed)?,
    };
    std::io::Write::write_all(&mut file, text.as_bytes()).map_err(failed)?;
    print(&format!("{}\n", path.display()));
    Ok(Exit::Done)
}

/// Where a project keeps what is for us: in the folder that it has.
fn project_folder(worktree: &Path) -> PathBuf {
    let theirs = worktree.join(".opencode");
    if theirs.is_dir() { theirs } else { worktree.join(".toolwright") }
}
