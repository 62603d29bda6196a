//! Writes a whole file.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use toolwright_tool::{
    Access, Plan, PlanContext, Planned, RunContext, Tool, ToolError, ToolOutput,
};

use crate::diff::{Change, change};
use crate::edit::{read_existing, unchanged_since_plan};
use crate::feedback::{Edited, Feedback, Occasion};

pub struct Write {
    feedback: Feedback,
}

impl Write {
    pub fn new(feedback: Feedback) -> Self {
        Self { feedback }
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Arguments {
    /// The file to write: absolute, or relative to the working directory.
    file_path: String,
    /// The whole content.
    content: String,
}

pub struct Prepared {
    path: PathBuf,
    shown: String,
    old: Option<Vec<u8>>,
    content: Vec<u8>,
    change: Change,
}

/// The byte-order mark belongs to the file, not to the model's text.
pub(crate) const BOM: &[u8] = b"\xEF\xBB\xBF";

impl Tool for Write {
    type Arguments = Arguments;
    type Prepared = Prepared;

    fn name(&self) -> &str {
        "write"
    }

    fn description(&self) -> &str {
        include_str!("write.md")
    }

    fn permission(&self) -> &str {
        "edit"
    }

    async fn plan(&self, arguments: Arguments, context: &PlanContext) -> Planned<Prepared> {
        let path = context.workspace.resolve(&arguments.file_path);
        let shown = context.workspace.relative(&path);
        let declare = {
            let (path, shown) = (path.clone(), shown.clone());
            move |diff: String| {
                Plan::new(
                    format!("write {shown}"),
                    vec![Access::Write { path: path.clone(), diff }],
                )
            }
        };
        let made = crate::walk::blocking(move || {
            let old = read_existing(&path)?;
            let mut content = arguments.content.into_bytes();
            if old.as_ref().is_some_and(|o| o.starts_with(BOM)) && !content.starts_with(BOM) {
                content.splice(0..0, BOM.iter().copied());
            }
            let change = change(&shown, old.as_deref().unwrap_or_default(), &content);
            Ok(Prepared { path, shown, old, content, change })
        });
        match made.await {
            Ok(prepared) => Planned::ready(declare(prepared.change.patch.clone()), prepared),
            Err(error) => Planned::failed(declare(String::new()), error),
        }
    }

    async fn run(&self, call: Prepared, context: RunContext) -> Result<ToolOutput, ToolError> {
        let Prepared { path, shown, old, content, change } = call;
        let existed = old.is_some();
        let lines = content.iter().filter(|b| **b == b'\n').count();
        let bytes = content.len();
        let target = path.clone();
        let files = context.files.clone();
        let name = shown.clone();
        let old = crate::walk::blocking(move || {
            unchanged_since_plan(&target, &name, old.as_deref())?;
            files.write(&target, &content).map(|()| old)
        })
        .await?;
        let verb = if existed { "Replaced" } else { "Created" };
        let details = json!({
            "filepath": path, "exists": existed, "diff": change.patch,
            "additions": change.additions, "deletions": change.deletions,
        });
        let text =
            format!("Wrote file successfully. {verb} {shown} ({lines} lines, {bytes} bytes).");
        let output = ToolOutput::text(text).titled(shown.clone()).with_details(details);
        let edited = [Edited { path, shown, old }];
        Ok(self.feedback.complete(output, &edited, Occasion::Write, &context).await)
    }
}
