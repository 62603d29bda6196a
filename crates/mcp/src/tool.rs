//! A tool of a server as one of ours: the same plan, the same decision, the same budget.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::{Map, Value};
use toolwright_llm::ToolDefinition;
use toolwright_tool::{
    Access, AnyTool, ErasedPlan, Plan, PlanContext, RunContext, ToolError, ToolOutput,
};

use crate::content;
use crate::hub::CallDesk;
use crate::live::{CallError, Waiting};
use crate::sampling::Sampler;
use crate::schema::sanitise;
use crate::server::Server;

/// Bytes of a description. Some servers paste a manual.
const DESCRIPTION_CAP_BYTES: usize = 4 << 10;

/// Bytes of a call's arguments in its summary, and for the person who decides.
const SUMMARY_CAP_BYTES: usize = 120;
const PREVIEW_CAP_BYTES: usize = 4 << 10;

pub(crate) struct McpTool {
    server: Arc<Server>,
    /// As the server calls it.
    own_name: String,
    name: String,
    description: String,
    schema: Value,
    read_only: bool,
    sampler: Option<Arc<dyn Sampler>>,
}

impl McpTool {
    /// Nothing, where it has no name.
    pub(crate) fn read(
        value: &Value,
        server: &Arc<Server>,
        named: impl FnOnce(&str, &str) -> String,
        sampler: Option<Arc<dyn Sampler>>,
    ) -> Option<Self> {
        let own_name = value["name"].as_str().filter(|name| !name.is_empty())?.to_owned();
        let notes = &value["annotations"];
        let title = value["title"].as_str().or(notes["title"].as_str()).unwrap_or_default();
        let words = value["description"].as_str().unwrap_or(title).trim();
        let words = if words.is_empty() { own_name.as_str() } else { words };
        let empty = Map::new();
        Some(Self {
            name: named(&server.spec.name, &own_name),
            description: content::cut(words, DESCRIPTION_CAP_BYTES),
            schema: sanitise(value["inputSchema"].as_object().unwrap_or(&empty)),
            read_only: notes["readOnlyHint"] == true,
            server: Arc::clone(server),
            own_name,
            sampler,
        })
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn is_as(&self, known: &ToolDefinition) -> bool {
        known.description == self.description && known.parameters == self.schema
    }

    fn plan_of(&self, arguments: &Value) -> Plan {
        let short = content::cut(&arguments.to_string(), SUMMARY_CAP_BYTES);
        let summary = if short == "{}" { String::new() } else { short };
        let pretty = serde_json::to_string_pretty(arguments).unwrap_or_default();
        let access = Access::Mcp {
            server: self.server.spec.name.clone(),
            permission: self.name.clone(),
            pattern: "*".to_owned(),
            preview: content::cut(&pretty, PREVIEW_CAP_BYTES),
            read_only: self.read_only,
        };
        // Its own time is counted from sign of life to sign of life.
        Plan::new(summary, vec![access]).within(Duration::MAX)
    }
}

impl AnyTool for McpTool {
    fn name(&self) -> &str {
        &self.name
    }

    fn description(&self) -> &str {
        &self.description
    }

    fn permission(&self) -> &str {
        &self.name
    }

    fn schema(&self) -> Value {
        self.schema.clone()
    }

    fn plan(
        self: Arc<Self>,
        arguments: Value,
        _: Arc<PlanContext>,
    ) -> BoxFuture<'static, Result<ErasedPlan, ToolError>> {
        async move {
            let plan = self.plan_of(&arguments);
            let run = move |context: RunContext| self.call(arguments, context);
            Ok(ErasedPlan::new(plan, Ok(run)))
        }
        .boxed()
    }
}

impl McpTool {
    async fn call(
        self: Arc<Self>,
        arguments: Value,
        context: RunContext,
    ) -> Result<ToolOutput, ToolError> {
        let name = &self.server.spec.name;
        let unavailable = |why: String| {
            ToolError::for_model(format!("The MCP server {name} is not available: {why}"))
        };
        let live = self.server.live(&context.cancel).await.map_err(unavailable)?;
        let desk = CallDesk {
            door: context.door.clone(),
            progress: context.progress.clone(),
            sampler: self.sampler.clone(),
        };
        let known = self.server.hub.begin(Some(desk));
        let timeout = self.server.spec.timeout;
        let waiting = Waiting { known: &known, timeout, cancel: &context.cancel };
        let arguments = match arguments {
            Value::Object(arguments) => arguments,
            _ => Map::new(),
        };
        let answer = live.call_tool(&self.own_name, arguments, &waiting).await;
        let cost = *known.call.spent.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let result = match answer {
            Ok(result) => result,
            Err(CallError::Interrupted) => {
                let nothing = ToolOutput::text("The call was interrupted; the server was told.");
                return Ok(ToolOutput { interrupted: true, cost, ..nothing });
            }
            Err(error) => {
                let text = self.server.explain(error).await;
                return Ok(ToolOutput { failed: true, cost, ..ToolOutput::text(text) });
            }
        };
        match content::output(&result, name, &self.own_name, &context.outputs) {
            Ok(output) => Ok(ToolOutput { cost, ..output }),
            Err(error) if cost.is_none() => Err(error),
            Err(error) => {
                Ok(ToolOutput { failed: true, cost, ..ToolOutput::text(error.to_string()) })
            }
        }
    }
}
