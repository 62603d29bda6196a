//! What is known about the folder before anything is said in it.

use toolwright::config::Command;
use toolwright::{Selection, SessionChoice, SetupError};

use super::Host;
use crate::app::{Facts, News, OwnCommand};

impl Host {
    pub(super) async fn introduce(&mut self) -> Result<(), SetupError> {
        let told = self.bench.prepare(self.mode).await;
        let bench = &self.bench;
        let agent = bench.agent(self.agent.as_deref())?;
        let home = bench.paths.home.display().to_string();
        let all = toolwright::config::Agent::all(&bench.config.settings, &home);
        let primary = |a: &&toolwright::config::Agent| {
            a.mode != toolwright::config::AgentMode::Subagent && !a.hidden
        };
        let pair = |a: &toolwright::config::Agent| (a.name.clone(), a.description.clone());
        let mut facts = Facts {
            agent: agent.name.clone(),
            agents: all.iter().filter(primary).map(pair).collect(),
            workers: bench.workers().iter().map(pair).collect(),
            skills: bench
                .skills
                .iter()
                .map(|s| (s.name.clone(), s.description.clone().unwrap_or_default()))
                .collect(),
            directory: self.directory(),
            branch: self.branch(),
            warnings: bench.config.warnings.iter().cloned().chain(told).collect(),
            sandbox: Some(short(&bench.protection.describe())),
            mode: self.mode.or(bench.config.settings.permission_mode).unwrap_or_default(),
            commands: Command::all(&bench.config.settings).into_iter().map(own_command).collect(),
            servers: !bench.mcp.is_empty(),
            ..Facts::default()
        };
        match bench.choose_model(self.model.as_deref(), &agent, None).await {
            Ok(chosen) => {
                facts.model = chosen.model.origin().to_string();
                facts.window = chosen.window.map(u64::from);
                facts.demo = chosen.why == Selection::Demo;
                if let Selection::LocalServer(name) = chosen.why {
                    facts.local = Some(name.to_string());
                }
            }
            // A session may have a model of its own.
            Err(problem) if self.session == SessionChoice::New => {
                facts.warnings.push(problem.to_string())
            }
            Err(_) => {}
        }
        self.tell(News::Ready(facts)).await;
        Ok(())
    }

    fn directory(&self) -> String {
        let directory = self.bench.workspace.directory();
        match directory.strip_prefix(&self.bench.paths.home) {
            Ok(rest) if rest.as_os_str().is_empty() => "~".to_owned(),
            Ok(rest) => format!("~/{}", rest.display()),
            Err(_) => directory.display().to_string(),
        }
    }

    /// Read off the repository's own file; no process for one word.
    pub(super) fn branch(&self) -> Option<String> {
        let git = self.bench.workspace.worktree().join(".git");
        let folder = match std::fs::read_to_string(&git) {
            Ok(text) => std::path::PathBuf::from(text.strip_prefix("gitdir:")?.trim()),
            Err(_) => git,
        };
        let head = std::fs::read_to_string(folder.join("HEAD")).ok()?;
        let head = head.trim();
        Some(match head.strip_prefix("ref: refs/heads/") {
            Some(branch) => branch.to_owned(),
            None => head.chars().take(8).collect(),
        })
    }
}

fn own_command(own: Command) -> OwnCommand {
    // Those that everybody has do without words.
    let takes_words =
        own.template.contains('$') && !["init", "review"].contains(&own.name.as_str());
    let about = own.description.unwrap_or_else(|| "your own command".to_owned());
    OwnCommand { name: own.name, about, takes_words }
}

/// What holds commands, in a word.
fn short(sandbox: &str) -> String {
    match sandbox.split([',', '(']).next().unwrap_or_default().trim() {
        "none" => "no sandbox".to_owned(),
        layer => layer.to_owned(),
    }
}
