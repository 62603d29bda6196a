//! A tool from a function, for those that touch nothing of ours.

use std::future::Future;
use std::marker::PhantomData;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use crate::access::{Access, Plan};
use crate::tool::{PlanContext, Planned, RunContext, Tool, ToolError, ToolOutput};

struct FunctionTool<A, F> {
    name: String,
    description: String,
    function: F,
    arguments: PhantomData<fn(A)>,
}

/// Makes a tool from an async function of its arguments. Rules see it under its own name.
///
/// ```
/// # use toolwright_tool::{tool_fn, ToolError};
/// # use schemars::JsonSchema;
/// # use serde::Deserialize;
/// #[derive(Deserialize, JsonSchema)]
/// struct City { city: String }
///
/// let tool = tool_fn("get_weather", "The weather in a city.", |a: City| async move {
///     Ok::<_, ToolError>(format!("It is sunny in {}.", a.city))
/// });
/// ```
pub fn tool_fn<A, F, R>(
    name: &str,
    description: &str,
    function: F,
) -> impl Tool<Arguments = A, Prepared = A> + use<A, F, R>
where
    A: DeserializeOwned + JsonSchema + Send + 'static,
    F: Fn(A) -> R + Send + Sync + 'static,
    R: Future<Output = Result<String, ToolError>> + Send + 'static,
{
    let (name, description) = (name.to_owned(), description.to_owned());
    FunctionTool { name, description, function, arguments: PhantomData }
}

impl<A, F, R> Tool for FunctionTool<A, F>
where
    A: DeserializeOwned + JsonSchema + Send + 'static,
    F: Fn(A) -> R + Send + Sync + 'static,
    R: Future<Output = Result<String, ToolError>> + Send + 'static,
{
    type Arguments = A;
    type Prepared = A;

    fn name(&self) -> &str {
        &self.name
    }

    fn description(&self) -> &str {
        &self.description
    }

    async fn plan(&self, arguments: A, _: &PlanContext) -> Planned<A> {
        let (permission, pattern) = (self.name.clone(), "*".to_owned());
        let access = Access::Custom { permission, pattern, read_only: false };
        Planned::ready(Plan::new(self.name.clone(), vec![access]), arguments)
    }

    async fn run(&self, arguments: A, context: RunContext) -> Result<ToolOutput, ToolError> {
        tokio::select! {
            result = (self.function)(arguments) => Ok(ToolOutput::text(result?)),
            () = context.cancel.cancelled() => {
                Ok(ToolOutput { interrupted: true, ..ToolOutput::text("Interrupted before it gave a result.") })
            }
        }
    }
}
