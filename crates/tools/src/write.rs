//! Writes a whole file.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use toolwright_tool::{PlanContext, Planned, RunContext, Tool, ToolError, ToolOutput};

use crate::apply_patch::is_patch_style;
use crate::feedback::Occasion;
use crate::rewrite::{BOM, Found, Rewrite, Target, commit, plan_one};
use crate::seen::Seen;

#[derive(Default)]
pub struct Write {
    seen: Seen,
}

impl Write {
    pub fn new(seen: Seen) -> Self {
        Self { seen }
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

pub type Prepared = Box<PreparedWrite>;

pub struct PreparedWrite {
    rewrite: Rewrite,
    size: Size,
}

struct Size {
    lines: usize,
    bytes: usize,
}

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

    fn suits(&self, model: &str, has: &dyn Fn(&str) -> bool) -> bool {
        !(is_patch_style(model) && has("apply_patch"))
    }

    async fn plan(&self, arguments: Arguments, context: &PlanContext) -> Planned<Prepared> {
        let Arguments { file_path, content } = arguments;
        let target = Target::of(&file_path, context);
        let asked = if file_path.is_empty() {
            Err(ToolError::for_model("filePath is required"))
        } else {
            Ok(())
        };
        let Planned { plan, prepared } =
            plan_one("write", target, &self.seen, asked, Found::at, move |target, found| {
                let mut content = content.into_bytes();
                let marked = found.content.as_ref().is_some_and(|old| old.starts_with(BOM));
                if marked && !content.starts_with(BOM) {
                    content.splice(0..0, BOM.iter().copied());
                }
                let lines = memchr::memchr_iter(b'\n', &content).count();
                let size = Size { lines, bytes: content.len() };
                Ok((Rewrite::replace(target, found, &content), size))
            })
            .await;
        let prepared = prepared.map(|(rewrite, size)| Box::new(PreparedWrite { rewrite, size }));
        Planned { plan, prepared }
    }

    async fn run(&self, call: Prepared, context: RunContext) -> Result<ToolOutput, ToolError> {
        let (files, seen) = (context.files.clone(), self.seen.clone());
        let (output, edited) = crate::walk::blocking(move || {
            let PreparedWrite { rewrite, size } = *call;
            commit(std::slice::from_ref(&rewrite), &files, &seen)?;
            let existed = rewrite.existed();
            let Rewrite { target, change, .. } = &rewrite;
            let path = target.path.display().to_string();
            let details = json!({
                "filepath": path, "exists": existed, "diff": change.patch, "diagnostics": {},
                "additions": change.additions, "deletions": change.deletions,
            });
            let verb = if existed { "Replaced" } else { "Created" };
            let (shown, Size { lines, bytes }) = (target.shown.clone(), size);
            let text =
                format!("Wrote file successfully. {verb} {shown} ({lines} lines, {bytes} bytes).");
            let output = ToolOutput::text(text).titled(shown).with_details(details);
            Ok((output, vec![rewrite.into_edited()]))
        })
        .await?;
        Ok(self.seen.follow(output, edited, Occasion::Write, &context).await)
    }
}
