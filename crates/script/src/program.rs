//! Tools as programs, in any language: one that is asked with `--describe` says what it is, and takes
//! the arguments of a call as JSON on standard input.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt};
use toolwright_proc::sandbox::Find;
use toolwright_proc::{Ended, Spec, is_executable};
use toolwright_tool::{
    Access, AnyTool, ErasedPlan, Plan, PlanContext, RunContext, ToolError, ToolOutput, Workspace,
};

use crate::host::Host;
use crate::script::{Definition, recall, remember_one};
use crate::tool::output_of;

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
        let work = run(spec, String::new());
        let ran = tokio::time::timeout(DESCRIBE_LIMIT, work).await;
        let ran = ran.map_err(|_| {
            format!("it did not answer --describe within {} s", DESCRIBE_LIMIT.as_secs())
        })??;
        if ran.ended != Ended::Exit(0) {
            return Err(format!("--describe failed ({}): {}", said(ran.ended), ran.errors.trim()));
        }
        let given: Value = serde_json::from_str(&ran.output)
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

struct Ran {
    ended: Ended,
    output: String,
    errors: String,
}

fn said(ended: Ended) -> String {
    match ended {
        Ended::Exit(code) => format!("exit status {code}"),
        Ended::Signal(signal) => format!("ended by signal {signal}"),
    }
}

async fn run(spec: Spec, input: String) -> Result<Ran, String> {
    let mut child = spec.stdin(input).spawn().map_err(|e| e.to_string())?;
    let (output, errors) = (child.output(), child.errors());
    let (output, errors) =
        tokio::join!(collect(output, OUTPUT_CAP_BYTES), collect(errors, ERRORS_CAP_BYTES));
    let ended = child.wait().await;
    Ok(Ran { ended, output, errors })
}

async fn collect(stream: Option<impl AsyncRead + Unpin>, cap: usize) -> String {
    let mut kept = Vec::new();
    let Some(mut stream) = stream else { return String::new() };
    let mut chunk = [0; 8192];
    while let Ok(count @ 1..) = stream.read(&mut chunk).await {
        kept.extend_from_slice(&chunk[..count.min(cap.saturating_sub(kept.len()))]);
    }
    String::from_utf8_lossy(&kept).into_owned()
}

pub struct ProgramTool {
    program: Program,
    definition: Definition,
    session: String,
    agent: String,
}

impl ProgramTool {
    pub fn new(program: Program, definition: Definition, session: &str, agent: &str) -> Self {
        let (session, agent) = (session.to_owned(), agent.to_owned());
        Self { program, definition, session, agent }
    }

    async fn run(&self, arguments: Value, context: RunContext) -> Result<ToolOutput, ToolError> {
        let spec = self.program.spec();
        let spec =
            spec.env("TOOLWRIGHT_SESSION", &self.session).env("TOOLWRIGHT_AGENT", &self.agent);
        // Dropped with this future, and with it everything that the program started.
        let work = run(spec, arguments.to_string());
        let ran = tokio::select! {
            ran = work => ran.map_err(ToolError::ForModel)?,
            () = context.cancel.cancelled() => {
                let text = "Interrupted before it gave a result.";
                return Ok(ToolOutput { interrupted: true, ..ToolOutput::text(text) });
            }
            () = tokio::time::sleep(context.deadline) => {
                let limit = context.deadline.as_secs_f64();
                let name = &self.definition.name;
                return Err(ToolError::ForModel(format!("{name} took longer than {limit} s and was ended.")));
            }
        };
        if ran.ended != Ended::Exit(0) {
            let name = &self.definition.name;
            let words = [ran.errors.trim(), ran.output.trim()].join("\n");
            return Err(ToolError::ForModel(format!(
                "{name} failed ({}): {}",
                said(ran.ended),
                words.trim()
            )));
        }
        let value: Option<Value> = serde_json::from_str(&ran.output).ok();
        match value.filter(|value| value["output"].is_string()) {
            Some(value) => Ok(output_of(&value, &Value::Null, Vec::new())),
            None => Ok(ToolOutput::text(ran.output)),
        }
    }
}

impl AnyTool for ProgramTool {
    fn name(&self) -> &str {
        &self.definition.name
    }

    fn description(&self) -> &str {
        &self.definition.description
    }

    fn permission(&self) -> &str {
        &self.definition.name
    }

    fn schema(&self) -> Value {
        self.definition.parameters.clone()
    }

    fn plan(
        self: Arc<Self>,
        arguments: Value,
        _: Arc<PlanContext>,
    ) -> BoxFuture<'static, Result<ErasedPlan, ToolError>> {
        async move {
            let permission = self.definition.name.clone();
            let summary = format!("{permission} ({})", self.program.path.display());
            let access = Access::Custom { permission, pattern: "*".to_owned(), read_only: false };
            let run = move |context| async move { self.run(arguments, context).await };
            Ok(ErasedPlan::new(Plan::new(summary, vec![access]), Ok(run)))
        }
        .boxed()
    }
}
