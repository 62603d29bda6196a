//! A command as the prompt that it stands for: its shell commands run, its files attached.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;
use tokio_util::sync::CancellationToken;
use toolwright_config::{AgentMode, Command, Piece, mentions};
use toolwright_llm::Content;
use toolwright_proc::{Bounds, Ended, Spec, find_program};
use toolwright_tool::{Access, Decision, Extent, Gate, Hint, Plan, Question};

use crate::mcp::fitted;
use crate::planning::Handover;
use crate::secrets;

/// How long one shell command of a template may take, and what of its output is used.
const SHELL_LIMIT: Duration = Duration::from_secs(60);
const SHELL_CAP_BYTES: usize = 64 << 10;

/// A mentioned file that is larger is better read in parts.
pub(crate) const FILE_CAP_BYTES: u64 = 256 << 10;

/// Mentioned files that are attached.
const FILES: usize = 20;

/// Why a command did not become a prompt.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotSaid {
    /// Something that it needs was refused.
    #[error("{0}")]
    Denied(String),
    #[error("{0}")]
    Failed(String),
}

impl Handover {
    /// What the command says, with everything in its place. A shell command that is refused is the
    /// error.
    pub async fn render(
        &self,
        command: &Command,
        arguments: &str,
    ) -> Result<Vec<Content>, NotSaid> {
        let mut text = String::new();
        for piece in command.fill(arguments) {
            match piece {
                Piece::Text(words) => text.push_str(&words),
                Piece::Shell(line) => text.push_str(&self.shell(&line).await?),
            }
        }
        let text = text.trim().to_owned();
        let mut content = vec![Content::text(text.clone())];
        if let Some(worker) = self.worker_for(command) {
            content.insert(0, Content::text(given_to(&worker)));
        }
        content.extend(self.mentioned(&text).await);
        let shown = self.hooks.show_command(&command.name, arguments, content).await;
        shown.map_err(NotSaid::Denied)
    }

    /// What a prompt of an MCP server says.
    pub async fn server_prompt(
        &self,
        server: &str,
        prompt: &str,
        words: &[String],
        cancel: &CancellationToken,
    ) -> Result<Vec<Content>, NotSaid> {
        let said = self.bench.mcp.prompt(server, prompt, words, cancel).await;
        Ok(fitted(said.map_err(NotSaid::Failed)?).await)
    }

    /// The agent that a command is work for, where it is.
    fn worker_for(&self, command: &Command) -> Option<String> {
        let agent = command.agent.clone();
        let workers = self.bench.workers();
        let known = |name: &str| workers.iter().find(|worker| worker.name == name);
        let only_works =
            agent.as_deref().and_then(known).is_some_and(|a| a.mode == AgentMode::Subagent);
        match command.subtask {
            Some(false) => None,
            Some(true) => agent.filter(|name| known(name).is_some()).or(Some("general".to_owned())),
            None => agent.filter(|_| only_works),
        }
    }

    /// The files and agents that a text mentions with `@`, as far as they may be looked at.
    pub async fn mentioned(&self, text: &str) -> Vec<Content> {
        let mut content = Vec::new();
        for name in mentions(text).into_iter().take(FILES) {
            let path = match name.strip_prefix("~/") {
                Some(below) => self.bench.paths.home.join(below),
                None => self.bench.workspace.resolve_in(self.bench.workspace.directory(), &name),
            };
            if path.is_file() {
                content.extend(self.file(&name, &path).await);
            } else if self.bench.workers().iter().any(|worker| worker.name == name) {
                content.push(Content::text(given_to(&name)));
            }
        }
        content
    }

    async fn file(&self, name: &str, path: &Path) -> Option<Content> {
        let path = self.bench.workspace.resolve(&path.display().to_string());
        let access = Access::Read { path: path.clone(), extent: Extent::Single };
        self.ask(Plan::new(format!("attach {name}"), vec![access])).await.ok()?;
        let size = std::fs::metadata(&path).ok()?.len();
        if size > FILE_CAP_BYTES {
            return Some(Content::text(format!(
                "({name} has {size} bytes: read what is needed of it.)"
            )));
        }
        let text = String::from_utf8(std::fs::read(&path).ok()?).ok()?;
        Some(Content::text(format!("<file path=\"{name}\">\n{text}\n</file>")))
    }

    pub(crate) async fn ask(&self, plan: Plan) -> Result<(), String> {
        let question = Question {
            position: 0,
            tool: "command".to_owned(),
            arguments: Value::Null,
            summary: plan.summary.clone(),
            requests: plan.requests(&self.bench.workspace),
            preview: plan.preview(),
            hint: Hint::Nothing,
        };
        match self.gate.decide(&question).await {
            Decision::Allow { .. } => Ok(()),
            Decision::Deny { message, .. } => Err(message),
        }
    }

    /// What a shell command of a template prints. One that fails says so in its place.
    async fn shell(&self, line: &str) -> Result<String, NotSaid> {
        let directory = self.bench.workspace.directory().to_owned();
        let access = Access::Execute { command: line.to_owned(), directory: directory.clone() };
        let asked = self.ask(Plan::new(line.to_owned(), vec![access])).await;
        asked.map_err(NotSaid::Denied)?;
        self.run_shell(line, directory).await.map_err(NotSaid::Failed)
    }

    async fn run_shell(&self, line: &str, directory: PathBuf) -> Result<String, String> {
        let path = self.bench.variable("PATH").unwrap_or_default();
        let shell =
            ["bash", "sh"].iter().find_map(|name| find_program(name, path.as_ref(), &|_| false));
        let shell = shell.ok_or("there is no shell on this machine")?;
        let mut spec = Spec::new(shell, directory).arg("-c").arg(line);
        spec.withheld =
            secrets::key_variables(&self.bench.config.settings).map(str::to_owned).collect();
        spec.passed.clone_from(&self.bench.config.settings.sandbox.environment);
        spec.environment.extend(self.hooks.shell_variables(self.bench.workspace.directory()).await);
        // It was asked about less because a sandbox holds it.
        let spec = spec.fenced_by(self.bench.protection.as_find().as_ref())?;
        let bounds = Bounds { time: SHELL_LIMIT, output_bytes: SHELL_CAP_BYTES, errors_bytes: 0 };
        let ran = spec.run(bounds).await.map_err(|e| e.to_string())?;
        let mut said = ran.text().trim_end().to_owned();
        match ran.ended {
            Some(Ended::Exit(0)) => {}
            Some(Ended::Exit(code)) => said.push_str(&format!("\n({line}: exit status {code})")),
            Some(Ended::Signal(signal)) => {
                said.push_str(&format!("\n({line}: ended by signal {signal})"))
            }
            None => {
                said.push_str(&format!("\n({line}: ended after {} s)", SHELL_LIMIT.as_secs()));
            }
        }
        Ok(said)
    }

    /// The person's words with the files and agents that they mention.
    pub async fn with_mentions(&self, mut content: Vec<Content>) -> Vec<Content> {
        let texts: Vec<String> = content
            .iter()
            .filter_map(|part| match part {
                Content::Text { text } if text.contains('@') && !text.starts_with("<file ") => {
                    Some(text.clone())
                }
                _ => None,
            })
            .collect();
        for text in texts {
            content.extend(self.mentioned(&text).await);
        }
        content
    }
}

fn given_to(agent: &str) -> String {
    format!(
        "Give this work to the agent \"{agent}\" with the task tool, and report what comes of it."
    )
}
