//! `tw doctor`: what was found, what is missing, what to do next. It only looks.

use std::path::Path;

use toolwright::llm::{PROVIDERS, find_local_servers};
use toolwright::permission::LayerKind;
use toolwright::{LanguageServer, NoProgram, Selection, Workbench};

use crate::args::Shared;
use crate::exit::{Exit, Problem};
use crate::run::directory;
use crate::terminal::{harmless, print};

pub async fn doctor(shared: &Shared) -> Result<Exit, Problem> {
    let workbench = Workbench::open(&directory(shared), shared.trust)?;
    let report = look(&workbench).await;
    workbench.mcp.close().await;
    let Report { text, problems } = report?;
    print(&harmless(&text));
    Ok(if problems == 0 { Exit::Done } else { Exit::Failed })
}

/// The same for those who go on working.
pub async fn told(workbench: Workbench) -> String {
    match look(&workbench).await {
        Ok(report) => report.text,
        Err(problem) => problem.text,
    }
}

async fn look(workbench: &Workbench) -> Result<Report, Problem> {
    let env = |name: &str| workbench.variable(name);
    let mut report = Report::default();

    report.head("Toolwright");
    report.fact("version", env!("CARGO_PKG_VERSION"));
    report.fact("folder", &workbench.workspace.directory().display().to_string());
    let worktree = workbench.workspace.worktree();
    let git = if worktree.join(".git").exists() { "yes" } else { "no" };
    report.fact("git repository", git);

    report.head("Configuration");
    let trusted =
        if workbench.is_trusted { "yes" } else { "no: it can only tighten rules (tw trust)" };
    report.fact("folder trusted", trusted);
    if workbench.config.sources.is_empty() {
        report.fact("files", "none (all defaults)");
    }
    for source in &workbench.config.sources {
        let kind = match source.kind {
            LayerKind::Managed => "managed",
            LayerKind::Project => "project",
            _ => "user",
        };
        report.fact(kind, &source.path.display().to_string());
    }
    for warning in &workbench.config.warnings {
        report.problem(warning);
    }
    for hook in &workbench.config.hooks {
        let command = hook.command.lines().next().unwrap_or_default();
        let at = format!("{} {}", hook.event.name(), hook.matcher);
        report.fact("hook", &format!("{at}: {command} ({})", hook.source.display()));
    }

    report.head("Models");
    let mut keys = 0;
    let mut named = Vec::new();
    for provider in PROVIDERS.iter().filter(|p| !p.local) {
        let Some((variable, _)) = provider.key_from(&env) else { continue };
        if named.contains(&variable) {
            continue;
        }
        named.push(variable);
        keys += 1;
        let url = provider.endpoint(&env).base_url;
        report.fact("key", &format!("{variable} ({}, {url})", provider.name));
    }
    if keys == 0 {
        report.fact("keys", "none in the environment");
    }
    let off = env("TOOLWRIGHT_LOCAL_SERVERS").as_deref() == Some("off");
    let local = if off { Vec::new() } else { find_local_servers().await };
    if local.is_empty() {
        report.fact(
            "local servers",
            "none (Ollama, LM Studio, llama.cpp, vLLM at their usual ports)",
        );
    }
    for server in &local {
        let models = server.models.iter().take(3).cloned().collect::<Vec<_>>().join(", ");
        report.fact(server.provider.name, &format!("{} ({models})", server.base_url));
    }
    let agent = workbench.agent(None).map_err(toolwright::SetupError::from)?;
    let mut next = "tw run \"What is this project?\"".to_owned();
    match workbench.choose_model(None, &agent, None).await {
        Ok(chosen) => {
            let why = match &chosen.why {
                Selection::Asked | Selection::Configured => "configured".to_owned(),
                Selection::KeyFound(variable) => format!("{variable} is set"),
                Selection::LocalServer(name) => format!("{name} runs here"),
                Selection::Demo => "nothing else was found".to_owned(),
            };
            report.fact("used", &format!("{} ({why})", chosen.model.origin()));
            if chosen.why == Selection::Demo {
                next = "set ANTHROPIC_API_KEY, OPENAI_API_KEY or OPENROUTER_API_KEY, or start a local server"
                    .to_owned();
            }
        }
        Err(error) => {
            report.problem(&error.to_string());
            next = error.to_string();
        }
    }

    report.head("Tools");
    let registry = workbench.registry();
    report.fact("built in", &registry.names().join(", "));
    let shell = env("SHELL").unwrap_or_else(|| "not set".to_owned());
    report.fact("$SHELL", &shell);
    report.sandbox(&workbench.protection);

    report.language_servers(workbench);

    if !workbench.mcp.is_empty() {
        report.head("MCP servers");
        workbench.mcp.start();
        workbench.mcp.settle_all().await;
        for status in workbench.mcp.status() {
            match status.reason {
                None => report.fact(&status.name, status.state.as_str()),
                Some(_) => report.problem(crate::mcp::line(&status).trim()),
            }
        }
    }

    report.head("Folders");
    let data = &workbench.paths.data;
    match writable(data) {
        Ok(()) => report.fact("sessions", &workbench.paths.sessions().display().to_string()),
        Err(error) => {
            report.problem(&format!(
                "cannot write to {}: {error}; XDG_DATA_HOME moves it",
                data.display()
            ));
        }
    }
    report.fact(
        "sessions here",
        &workbench.store().list(Some(workbench.workspace.directory())).len().to_string(),
    );
    if let Err(error) = writable(workbench.workspace.directory()) {
        report.problem(&format!("this folder cannot be written to: {error}"));
    }

    report.head("Next");
    report.text.push_str(&format!("  {next}\n"));
    Ok(report)
}

#[derive(Default)]
struct Report {
    text: String,
    problems: usize,
}

impl Report {
    fn head(&mut self, title: &str) {
        let gap = if self.text.is_empty() { "" } else { "\n" };
        self.text.push_str(&format!("{gap}{title}\n"));
    }

    fn sandbox(&mut self, protection: &toolwright::Protection) {
        let held = match protection.sandbox() {
            Ok(held) => held,
            Err(problem) => return self.problem(&problem),
        };
        self.fact("sandbox", &protection.describe());
        match held {
            None => self.fact("", "writing and commands ask (pass --auto to allow them)"),
            Some(sandbox) => {
                for gap in sandbox.layer.gaps() {
                    self.fact("", gap);
                }
            }
        }
        let others = toolwright::sandbox_layers();
        let names: Vec<_> = others.iter().map(ToString::to_string).collect();
        let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        self.fact("works here", &names);
    }

    /// Which could be used. One that somebody configured and that is missing is a problem; the many that
    /// are merely known are not.
    fn language_servers(&mut self, workbench: &Workbench) {
        self.head("Language servers");
        let is_on = workbench.uses_language_servers();
        if !is_on {
            self.fact("lsp", "off; \"lsp\": true turns on those found below");
        }
        let mut missing = 0;
        for LanguageServer { id, program, is_named } in workbench.language_servers() {
            match program {
                Ok(program) => self.fact(&id, &program.display().to_string()),
                Err(reason) if is_named => self.problem(&format!("{id}: {reason}")),
                Err(NoProgram::NotFound { .. }) => missing += 1,
                Err(reason) => self.fact(&id, &reason.to_string()),
            }
        }
        if missing > 0 {
            self.fact("", &format!("{missing} more are known and not on PATH"));
        }
    }

    fn fact(&mut self, name: &str, value: &str) {
        self.text.push_str(&format!("  {name:<16} {value}\n"));
    }

    fn problem(&mut self, text: &str) {
        self.problems += 1;
        self.text.push_str(&format!("  ! {text}\n"));
    }
}

/// Whether something can be made in `folder`, or in the nearest parent that exists.
fn writable(folder: &Path) -> std::io::Result<()> {
    let existing = folder.ancestors().find(|f| f.exists()).unwrap_or(folder);
    let probe = existing.join(format!(".tw-probe-{}", std::process::id()));
    std::fs::write(&probe, b"")?;
    std::fs::remove_file(&probe)
}
