//! Changes several files by one patch: everything is worked out first, then all of it happens or
//! nothing.

mod grammar;
#[cfg(test)]
mod grammar_tests;
mod place;
mod tree;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use toolwright_tool::{
    Access, Plan, PlanContext, Planned, RunContext, Tool, ToolError, ToolOutput,
};

use self::grammar::Patch;
use self::tree::{Kind, Report, Tree};
use crate::feedback::Occasion;
use crate::rewrite::{Rewrite, commit};
use crate::seen::Seen;

/// Whether a model was taught to change files by patches rather than by edits.
pub(crate) fn is_patch_style(model: &str) -> bool {
    model.contains("gpt-") && !model.contains("oss") && !model.contains("gpt-4")
}

#[derive(Default)]
pub struct ApplyPatch {
    seen: Seen,
}

impl ApplyPatch {
    pub fn new(seen: Seen) -> Self {
        Self { seen }
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Arguments {
    /// The whole patch, from "*** Begin Patch" to "*** End Patch".
    patch_text: String,
}

pub type Prepared = Box<PreparedPatch>;

pub struct PreparedPatch {
    rewrites: Vec<Rewrite>,
    reports: Vec<Report>,
}

impl Tool for ApplyPatch {
    type Arguments = Arguments;
    type Prepared = Prepared;

    fn name(&self) -> &str {
        "apply_patch"
    }

    fn description(&self) -> &str {
        include_str!("apply_patch.md")
    }

    fn permission(&self) -> &str {
        "edit"
    }

    fn suits(&self, model: &str, _: &dyn Fn(&str) -> bool) -> bool {
        is_patch_style(model)
    }

    async fn plan(&self, arguments: Arguments, context: &PlanContext) -> Planned<Prepared> {
        let refused = |text: String| {
            Planned::failed(Plan::new("patch", Vec::new()), ToolError::for_model(text))
        };
        if arguments.patch_text.trim().is_empty() {
            return refused("patchText is required".to_owned());
        }
        let patch = match Patch::parse(&arguments.patch_text) {
            Ok(patch) => patch,
            Err(error) => return refused(error.to_string()),
        };
        let mut tree = Tree::new(&context.workspace, &patch, self.seen.clone());
        let named = tree.declared();
        let summary = format!("patch {}", tree.names());
        let made = crate::walk::blocking(move || {
            for section in patch.sections {
                tree.apply(section)?;
            }
            Ok(tree.finish())
        });
        match made.await {
            Ok(prepared) => {
                let accesses = prepared.accesses(named);
                Planned::ready(Plan::new(summary, accesses), Box::new(prepared))
            }
            Err(error) => {
                let text = format!("apply_patch verification failed: {error}");
                Planned::failed(Plan::new(summary, named), ToolError::for_model(text))
            }
        }
    }

    async fn run(&self, call: Prepared, context: RunContext) -> Result<ToolOutput, ToolError> {
        let (files, seen) = (context.files.clone(), self.seen.clone());
        let (output, edited) = crate::walk::blocking(move || {
            commit(&call.rewrites, &files, &seen)?;
            let output = call.report();
            let edited = call.rewrites.into_iter().map(Rewrite::into_edited).collect();
            Ok((output, edited))
        })
        .await?;
        Ok(self.seen.follow(output, edited, Occasion::Patch, &context).await)
    }
}

impl PreparedPatch {
    /// What was named, with what becomes of it.
    fn accesses(&self, named: Vec<Access>) -> Vec<Access> {
        let with_diff = |access: Access| match access {
            Access::Write { path, .. } => {
                let own = self.reports.iter().filter(|report| report.source.path == path);
                let over = self.reports.iter().filter(|report| report.target.path == path);
                let own = own.map(|report| &report.change);
                let all = own.chain(over.filter_map(|report| report.replaced.as_ref()));
                let diff = all.map(|change| change.patch.as_str()).collect::<Vec<_>>();
                Access::Write { diff: diff.join("\n"), path }
            }
            other => other,
        };
        named.into_iter().map(with_diff).collect()
    }

    fn report(&self) -> ToolOutput {
        let mut text = "Success. Updated the following files:".to_owned();
        for Report { kind, target, .. } in &self.reports {
            let letter = match kind {
                Kind::Add => 'A',
                Kind::Update | Kind::Move => 'M',
                Kind::Delete => 'D',
            };
            text.push_str(&format!("\n{letter} {}", target.shown));
        }
        let diff = self.reports.iter().map(|report| report.change.patch.as_str());
        let details = json!({
            "diff": diff.collect::<Vec<_>>().join("\n"),
            "files": self.reports.iter().map(Report::details).collect::<Vec<_>>(),
            "diagnostics": {},
        });
        let title = match self.reports.as_slice() {
            [one] => one.target.shown.clone(),
            many => format!("{} files", many.len()),
        };
        ToolOutput::text(text).titled(title).with_details(details)
    }
}
