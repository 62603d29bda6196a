//! Tools as programs, in any language: one that is asked with `--describe` says what it is, and takes
//! the arguments of a call as JSON on standard input.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use toolwright_proc::sandbox::Find;
use toolwright_proc::{Bounds, Ended, Ran, Spec, is_executable};
use toolwright_tool::{RunContext, ToolError, ToolOutput, Workspace};

use crate::host::Host;
use crate::script::{Definition, recall, remember_one};
use crate::tool::output_of;
use crate::written::{Work, Written};

/// How long it may take to say what it is.
const DESCRIBE_LIMIT: Duration = Duration::from_secs(10);

/// Of what it prints; the budget for the model is applied later.
const OUTPUT_CAP_BYTES: usize = 16 << 20;
const ERRORS_CAP_BYTES: usize = 64 << 10;

#[derive(Clone)]
pub struct Program {
    path: PathBuf,
    workspace: Arc<Workspace>,
    withheld: Vec<String>,
    sandbox: Option<Find>,
}

impl Program {
    pub fn new(path: PathBuf, host: &Host) -> Self {
        let path = std::fs::canonicalize(&path).unwrap_or(path);
        let (workspace, withheld) = (Arc::clone(host.workspace()), host.withheld().to_vec());
        Self { path, workspace, withheld, sandbox: host.sandbox().cloned() }
    }

    /// Whether a file is one at all: something that can be run, and no text about it.
    pub fn could_be(file: &Path) -> bool {
        let hidden = file.file_name().is_none_or(|n| n.to_string_lossy().starts_with('.'));
        !hidden && is_executable(file)
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    fn spec(&self) -> Spec {
        let mut spec = Spec::new(&self.path, self.workspace.directory()).separate_errors();
        spec.withheld.clone_from(&self.withheld);
        spec.env("TOOLWRIGHT_WORKTREE", &self.workspace.worktree().display().to_string())
    }

    /// What it offers; one that is as it was is not run again.
    pub async fn describe(&self, memory: Option<&Path>) -> Result<Definition, String> {
        let bytes = std::fs::read(&self.path).map_err(|e| format!("it cannot be read: {e}"))?;
        let key = format!("program {}", self.path.display());
        if let Some(definition) = memory.and_then(|folder| recall(folder, &key, &bytes)) {
            return Ok(definition);
        }
        // Nobody is asked about this, so it must not be able to do anything.
        let spec = self.spec().arg("--describe").fenced_by(self.sandbox.as_ref())?;
        let ran = run(spec, String::new(), DESCRIBE_LIMIT).await?;
        let ended = ran.ended.ok_or_else(|| {
            format!("it did not answer --describe within {} s", DESCRIBE_LIMIT.as_secs())
        })?;
        if ended != Ended::Exit(0) {
            let errors = ran.errors_text();
            return Err(format!("--describe failed ({}): {}", said(ended), errors.trim()));
        }
        let given: Value = serde_json::from_slice(&ran.output)
            .map_err(|e| format!("its answer to --describe is no JSON: {e}"))?;
        let stem = self.path.file_stem().map(|s| s.to_string_lossy().into_owned());
        let name = given["name"].as_str().map(str::to_owned).or(stem).unwrap_or_default();
        let Some(description) = given["description"].as_str().map(str::to_owned) else {
            return Err("its answer to --describe has no \"description\"".to_owned());
        };
        let schema = ["parameters", "inputSchema", "input_schema", "args"];
        let parameters = schema.iter().map(|key| &given[*key]).find(|v| v.is_object()).cloned();
        let parameters = match parameters {
            Some(schema) if schema["type"] == "object" => schema,
            Some(properties) => json!({ "type": "object", "properties": properties }),
            None => json!({ "type": "object", "properties": {} }),
        };
        let definition = Definition { name, description, parameters };
        if let Some(folder) = memory {
            remember_one(folder, &key, &bytes, &definition);
        }
        Ok(definition)
    }
}

fn said(ended: Ended) -> String {
    match ended {
        Ended::Exit(code) => format!("exit status {code}"),
        Ended::Signal(signal) => format!("ended by signal {signal}"),
    }
}

/// One run, with what it reads on its input.
async fn run(spec: Spec, input: String, time: Duration) -> Result<Ran, String> {
    let bounds = Bounds { time, output_bytes: OUTPUT_CAP_BYTES, errors_bytes: ERRORS_CAP_BYTES };
    spec.stdin(input).run(bounds).await.map_err(|e| e.to_string())
}

/// A program as a tool.
pub type ProgramTool = Written<ProgramWork>;

pub struct ProgramWork {
    program: Program,
    definition: Definition,
    session: String,
    agent: String,
}

impl ProgramTool {
    pub fn new(program: Program, definition: Definition, session: &str, agent: &str) -> Self {
        let (session, agent) = (session.to_owned(), agent.to_owned());
        Self(Arc::new(ProgramWork { program, definition, session, agent }))
    }
}

impl ProgramWork {
    async fn call(&self, arguments: Value, context: RunContext) -> Result<ToolOutput, ToolError> {
        let spec = self.program.spec();
        let spec =
            spec.env("TOOLWRIGHT_SESSION", &self.session).env("TOOLWRIGHT_AGENT", &self.agent);
        // Dropped with this future, and with it everything that the program started.
        let work = run(spec, arguments.to_string(), context.deadline);
        let ran = tokio::select! {
            ran = work => ran.map_err(ToolError::ForModel)?,
            () = context.cancel.cancelled() => {
                let text = "Interrupted before it gave a result.";
                return Ok(ToolOutput { interrupted: true, ..ToolOutput::text(text) });
            }
        };
        let name = &self.definition.name;
        let (output, errors) = (ran.text(), ran.errors_text());
        match ran.ended {
            Some(Ended::Exit(0)) => {}
            Some(ended) => {
                let words = [errors.trim(), output.trim()].join("\n");
                let said = format!("{name} failed ({}): {}", said(ended), words.trim());
                return Err(ToolError::ForModel(said));
            }
            None => {
                let limit = context.deadline.as_secs_f64();
                let said = format!("{name} took longer than {limit} s and was ended.");
                return Err(ToolError::ForModel(said));
            }
        }
        let value: Option<Value> = serde_json::from_str(&output).ok();
        match value.filter(|value| value["output"].is_string()) {
            Some(value) => Ok(output_of(&value, &Value::Null, Vec::new())),
            None => Ok(ToolOutput::text(output)),
        }
    }
}

impl Work for ProgramWork {
    fn definition(&self) -> &Definition {
        &self.definition
    }

    fn summary(&self, _: &Value) -> String {
        format!("{} ({})", self.definition.name, self.program.path.display())
    }

    fn run(
        self: Arc<Self>,
        arguments: Value,
        context: RunContext,
    ) -> BoxFuture<'static, Result<ToolOutput, ToolError>> {
        async move { self.call(arguments, context).await }.boxed()
    }
}
