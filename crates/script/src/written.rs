//! A tool that people wrote, as the registry takes it: what is the same for scripts and for programs.

use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::Value;
use toolwright_tool::{
    Access, AnyTool, ErasedPlan, Plan, PlanContext, RunContext, ToolError, ToolOutput,
};

use crate::script::Definition;

/// What runs when the tool is called.
pub trait Work: Send + Sync + 'static {
    fn definition(&self) -> &Definition;
    /// What a call is about, in one line.
    fn summary(&self, arguments: &Value) -> String;
    fn run(
        self: Arc<Self>,
        arguments: Value,
        context: RunContext,
    ) -> BoxFuture<'static, Result<ToolOutput, ToolError>>;
}

/// A tool over something that works.
pub struct Written<W>(pub(crate) Arc<W>);

impl<W: Work> AnyTool for Written<W> {
    fn name(&self) -> &str {
        &self.0.definition().name
    }

    fn description(&self) -> &str {
        &self.0.definition().description
    }

    fn permission(&self) -> &str {
        &self.0.definition().name
    }

    fn schema(&self) -> Value {
        self.0.definition().parameters.clone()
    }

    fn plan(
        self: Arc<Self>,
        arguments: Value,
        _: Arc<PlanContext>,
    ) -> BoxFuture<'static, Result<ErasedPlan, ToolError>> {
        let work = Arc::clone(&self.0);
        async move {
            let permission = work.definition().name.clone();
            let access = Access::Custom { permission, pattern: "*".to_owned(), read_only: false };
            let plan = Plan::new(work.summary(&arguments), vec![access]);
            Ok(ErasedPlan::new(plan, Ok(move |context| work.run(arguments, context))))
        }
        .boxed()
    }
}
