//! Code mode: a program of the model's that calls tools. Each call is judged by itself; only what the
//! program returns and logs goes back.

use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use toolwright_tool::{
    Access, InnerCalls, Plan, PlanContext, Planned, Progress, RunContext, Tool, ToolError,
    ToolOutput,
};

use crate::host::{Guard, Host, Permit};
use crate::patience::Limit;
use crate::realm::{CallTerms, Realm, ScriptError};

pub const EXECUTE: &str = "execute";

/// Calls of one program that run at once.
const AT_ONCE: usize = 8;

pub struct ExecuteTool {
    host: Arc<Host>,
}

#[derive(Deserialize, JsonSchema)]
pub struct Arguments {
    /// The program.
    code: String,
}

impl ExecuteTool {
    pub fn new(host: Arc<Host>) -> Self {
        Self { host }
    }
}

impl Tool for ExecuteTool {
    type Arguments = Arguments;
    type Prepared = Arguments;

    fn name(&self) -> &str {
        EXECUTE
    }

    fn description(&self) -> &str {
        include_str!("execute.md")
    }

    async fn plan(&self, arguments: Arguments, _: &PlanContext) -> Planned<Arguments> {
        let lines = arguments.code.lines().map(str::trim).filter(|l| !l.is_empty());
        let count = lines.clone().count();
        let first: String = lines.clone().next().unwrap_or_default().chars().take(60).collect();
        let summary = format!("a program of {count} line(s): {first}");
        let (permission, pattern) = (EXECUTE.to_owned(), "*".to_owned());
        let access = Access::Custom { permission, pattern, read_only: false };
        Planned::ready(Plan::new(summary, vec![access]), arguments)
    }

    async fn run(&self, given: Arguments, context: RunContext) -> Result<ToolOutput, ToolError> {
        let calls = context.inner_calls();
        let names = calls.names();
        let caller = Arc::new(Caller {
            calls,
            progress: context.progress.clone(),
            at_once: Semaphore::new(AT_ONCE),
        });
        let realm = Realm::start(Arc::clone(&self.host), None)
            .map_err(|e| ToolError::Fatal(e.to_string()))?;
        let terms = CallTerms {
            guard: Some(Arc::clone(&caller) as Arc<dyn Guard>),
            limit: Limit::Whole(context.deadline),
            cancel: context.cancel.clone(),
        };
        let payload = json!({ "code": given.code, "names": names });
        let called = realm.call("execute", &payload, &terms).await;
        let Some((result, aside)) = called else {
            return Err(ToolError::Fatal("the script engine did not start".to_owned()));
        };
        match result {
            Ok(value) => Ok(report(&value)),
            Err(ScriptError::Stopped) if context.cancel.is_cancelled() => {
                let text = "Execution cancelled.";
                Ok(ToolOutput { interrupted: true, ..ToolOutput::text(text) })
            }
            Err(error) => {
                let mut said = format!("Uncaught: {error}");
                if !aside.log.is_empty() {
                    said.push_str(&format!("\n\nLogs:\n{}", aside.log.join("\n")));
                }
                Err(ToolError::ForModel(said))
            }
        }
    }
}

fn report(value: &Value) -> ToolOutput {
    let mut output = match &value["value"] {
        Value::String(text) => text.clone(),
        other => serde_json::to_string_pretty(other).unwrap_or_default(),
    };
    let logs: Vec<&str> =
        value["logs"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    if !logs.is_empty() {
        output.push_str(&format!("\n\nLogs:\n{}", logs.join("\n")));
    }
    ToolOutput::text(output)
}

/// A program reaches the tools and nothing else.
struct Caller {
    calls: InnerCalls,
    progress: Progress,
    at_once: Semaphore,
}

impl Guard for Caller {
    fn ask<'a>(&'a self, _: Plan) -> BoxFuture<'a, Result<Permit, String>> {
        let refusal =
            "a program reaches nothing but the tools: use tools.read, tools.bash and the others";
        std::future::ready(Err(refusal.to_owned())).boxed()
    }

    fn call_tool<'a>(
        &'a self,
        name: &'a str,
        input: Value,
    ) -> BoxFuture<'a, Result<Value, String>> {
        async move {
            let _turn = self.at_once.acquire().await.map_err(|e| e.to_string())?;
            self.progress.update(format!("{name} …"));
            let outcome = self.calls.call(name, &input).await.map_err(|e| e.to_string())?;
            if outcome.ending != toolwright_session::Ending::Completed {
                return Err(outcome.output);
            }
            // What a tool gives in parts is easier to go through as such.
            Ok(match outcome.details.get("structured") {
                Some(structured) => structured.clone(),
                None => json!(outcome.output),
            })
        }
        .boxed()
    }
}
