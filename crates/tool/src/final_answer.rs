//! An answer in a form that a caller asked for: the model gives it by calling a tool whose arguments
//! are validated like any others, so that its mistakes come back to it.

use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};

use crate::access::Plan;
use crate::tool::{AnyTool, ErasedPlan, PlanContext, RunOnce, ToolError, ToolOutput};

pub struct FinalAnswer {
    schema: Value,
    /// A schema for something else than an object stands in a field of its own.
    wrapped: bool,
}

impl FinalAnswer {
    pub const NAME: &'static str = "final_answer";

    /// Fails with words about what is wrong with the schema.
    pub fn new(schema: Value) -> Result<Self, String> {
        jsonschema::validator_for(&schema).map_err(|e| e.to_string())?;
        let is_object = schema.get("type").and_then(Value::as_str) == Some("object");
        let schema = if is_object {
            schema
        } else {
            json!({ "type": "object", "properties": { "answer": schema }, "required": ["answer"] })
        };
        Ok(Self { schema, wrapped: !is_object })
    }

    /// The answer in a finished call's details, if it was one to this tool.
    pub fn captured(details: &Value) -> Option<&Value> {
        details.get("final_answer")
    }
}

impl AnyTool for FinalAnswer {
    fn name(&self) -> &str {
        Self::NAME
    }

    fn description(&self) -> &str {
        "Gives the final answer in the form that was asked for. Call it once, when the work is done; the turn ends with it."
    }

    fn permission(&self) -> &str {
        Self::NAME
    }

    fn schema(&self) -> Value {
        self.schema.clone()
    }

    fn plan(
        self: Arc<Self>,
        arguments: Value,
        _: Arc<PlanContext>,
    ) -> BoxFuture<'static, Result<ErasedPlan, ToolError>> {
        let answer = if self.wrapped { arguments["answer"].clone() } else { arguments };
        let output = ToolOutput::text("The final answer is taken.")
            .titled("final answer")
            .with_details(json!({ "final_answer": answer }));
        let run: RunOnce = Box::new(move |_| std::future::ready(Ok(output)).boxed());
        // It touches nothing: there is nothing to decide.
        let plan = Plan::new("final answer", Vec::new());
        std::future::ready(Ok(ErasedPlan { plan, run: Ok(run) })).boxed()
    }
}
