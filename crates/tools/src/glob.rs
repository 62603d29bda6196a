//! Finds files by name.

use std::path::PathBuf;
use std::sync::Mutex;
use std::time::SystemTime;

use globset::{GlobBuilder, GlobMatcher};
use ignore::WalkState;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use toolwright_tool::{
    Access, Plan, PlanContext, Planned, RunContext, Tool, ToolError, ToolOutput,
};

use crate::walk::{blocking, walker};

pub struct Glob;

#[derive(Deserialize, JsonSchema)]
pub struct Arguments {
    /// The pattern, relative to the folder that is searched.
    pattern: String,
    /// The folder to search; the working directory unless given.
    #[serde(default)]
    path: Option<String>,
}

pub struct Prepared {
    matcher: GlobMatcher,
    root: PathBuf,
    shown: String,
}

/// Paths that reach the model.
const RESULTS: usize = 100;

/// Matches that are held while sorting. A pattern that fits more says nothing by its order.
const CANDIDATES: usize = 50_000;

impl Tool for Glob {
    type Arguments = Arguments;
    type Prepared = Prepared;

    fn name(&self) -> &str {
        "glob"
    }

    fn description(&self) -> &str {
        include_str!("glob.md")
    }

    async fn plan(&self, arguments: Arguments, context: &PlanContext) -> Planned<Prepared> {
        let Arguments { pattern, path } = arguments;
        let root = context.workspace.resolve(path.as_deref().unwrap_or("."));
        let shown = context.workspace.relative(&root);
        let access =
            Access::Search { permission: "glob", pattern: pattern.clone(), root: root.clone() };
        let plan = Plan::new(format!("glob {pattern} in {shown}"), vec![access]);
        if !root.is_dir() {
            let text = if root.exists() {
                format!("glob path must be a directory: {}", root.display())
            } else {
                format!("There is no folder {}.", root.display())
            };
            return Planned::failed(plan, ToolError::for_model(text));
        }
        // Without a slash it is about names, anywhere below, as with `rg --glob`; with one, `*` stays
        // within a folder and `**` crosses them.
        let relative = pattern.strip_prefix("./").unwrap_or(&pattern);
        let relative = match relative.strip_prefix(&format!("{}/", root.display())) {
            Some(inside) => inside,
            None => relative,
        };
        match GlobBuilder::new(relative).literal_separator(true).build() {
            Ok(glob) => {
                Planned::ready(plan, Prepared { matcher: glob.compile_matcher(), root, shown })
            }
            Err(error) => {
                let text = format!("The pattern cannot be used: {error}.");
                Planned::failed(plan, ToolError::for_model(text))
            }
        }
    }

    async fn run(&self, call: Prepared, context: RunContext) -> Result<ToolOutput, ToolError> {
        let Prepared { matcher, root, shown } = call;
        context.files.check_read(&root)?;
        let cancel = context.cancel;
        let found = blocking(move || {
            let found: Mutex<Vec<(SystemTime, PathBuf)>> = Mutex::new(Vec::new());
            walker(&root, false).run(|| {
                Box::new(|entry| {
                    let Ok(entry) = entry else { return WalkState::Continue };
                    if cancel.is_cancelled() {
                        return WalkState::Quit;
                    }
                    let relative = entry.path().strip_prefix(&root).unwrap_or(entry.path());
                    let is_file = entry.file_type().is_some_and(|t| !t.is_dir());
                    let fits = crate::walk::fits(&matcher, relative);
                    if !is_file || !fits {
                        return WalkState::Continue;
                    }
                    let changed = entry.metadata().ok().and_then(|m| m.modified().ok());
                    let changed = changed.unwrap_or(SystemTime::UNIX_EPOCH);
                    let mut found = found.lock().unwrap_or_else(|e| e.into_inner());
                    found.push((changed, entry.into_path()));
                    if found.len() >= CANDIDATES { WalkState::Quit } else { WalkState::Continue }
                })
            });
            Ok(found.into_inner().unwrap_or_else(|e| e.into_inner()))
        })
        .await?;
        Ok(report(found, shown))
    }
}

fn report(mut found: Vec<(SystemTime, PathBuf)>, shown: String) -> ToolOutput {
    found.sort_by(|(a_time, a), (b_time, b)| b_time.cmp(a_time).then_with(|| a.cmp(b)));
    let total = found.len();
    let truncated = total > RESULTS;
    let mut text: Vec<String> =
        found.into_iter().take(RESULTS).map(|(_, p)| p.display().to_string()).collect();
    if text.is_empty() {
        text.push("No files found".to_owned());
    }
    if truncated {
        text.push(String::new());
        text.push(format!(
            "(Results are truncated: showing first {RESULTS} results of {total}. Use a narrower pattern or path.)"
        ));
    }
    let count = total.min(RESULTS);
    let title = format!("{shown} ({total} files)");
    let details = json!({ "count": count, "truncated": truncated });
    ToolOutput::text(text.join("\n")).titled(title).with_details(details)
}
