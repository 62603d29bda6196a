//! Several edits of one file, as older agents call it: `edit` with a list does the same.

use schemars::JsonSchema;
use serde::Deserialize;
use toolwright_tool::{PlanContext, Planned, RunContext, Tool, ToolError, ToolOutput};

use crate::edit::apply::Replacement;
use crate::edit::{OneEdit, Prepared, plan_edits, run_edits};
use crate::seen::Seen;

#[derive(Default)]
pub struct MultiEdit {
    seen: Seen,
}

impl MultiEdit {
    pub fn new(seen: Seen) -> Self {
        Self { seen }
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Arguments {
    /// The file to change: absolute, or relative to the working directory.
    file_path: String,
    /// Applied in order, each to what the one before has left; all or none.
    edits: Vec<OneEdit>,
}

impl Tool for MultiEdit {
    type Arguments = Arguments;
    type Prepared = Prepared;

    fn name(&self) -> &str {
        "multiedit"
    }

    fn description(&self) -> &str {
        include_str!("multiedit.md")
    }

    fn permission(&self) -> &str {
        "edit"
    }

    /// Where there is `edit` it would only be a second way to the same.
    fn suits(&self, _: &str, has: &dyn Fn(&str) -> bool) -> bool {
        !has("edit")
    }

    async fn plan(&self, arguments: Arguments, context: &PlanContext) -> Planned<Prepared> {
        let Arguments { file_path, edits } = arguments;
        let edits: Vec<Replacement> = edits.into_iter().map(Replacement::from).collect();
        let edits = if edits.is_empty() {
            Err(ToolError::for_model("The list of edits is empty: nothing would change."))
        } else {
            Ok(edits)
        };
        plan_edits(&file_path, edits, context, &self.seen).await
    }

    async fn run(&self, call: Prepared, context: RunContext) -> Result<ToolOutput, ToolError> {
        run_edits(call, context, self.seen.clone()).await
    }
}
