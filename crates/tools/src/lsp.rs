//! Asks language servers about code, and renames symbols with them.

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use toolwright_lsp::{Diagnostic, Query, Servers, apply_edits, file_edits};
use toolwright_tool::{
    Access, Extent, Plan, PlanContext, Planned, RunContext, Tool, ToolError, ToolOutput, Workspace,
};

use crate::diff::change;
use crate::feedback::{Before, Edited, Feedback, Occasion, details, in_tags};
use crate::rewrite::{BOM, read_existing, splice_between, unchanged_since_plan};

pub struct Lsp {
    feedback: Feedback,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Operation {
    GoToDefinition,
    FindReferences,
    Hover,
    DocumentSymbol,
    WorkspaceSymbol,
    GoToImplementation,
    PrepareCallHierarchy,
    IncomingCalls,
    OutgoingCalls,
    Diagnostics,
    Rename,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Arguments {
    /// What to ask.
    operation: Operation,
    /// The file: absolute, or relative to the working directory.
    file_path: String,
    /// The line of the symbol, from 1.
    #[serde(default)]
    #[schemars(range(min = 1))]
    line: Option<u32>,
    /// The place in the line, from 1.
    #[serde(default)]
    #[schemars(range(min = 1))]
    character: Option<u32>,
    /// For workspaceSymbol: what to look for.
    #[serde(default)]
    query: Option<String>,
    /// For rename: the new name.
    #[serde(default)]
    new_name: Option<String>,
}

pub struct Prepared {
    title: String,
    path: PathBuf,
    task: Task,
}

enum Task {
    Ask(Question),
    /// Decided upon as it was planned.
    Write {
        renamed: Vec<Renamed>,
        places: usize,
    },
}

enum Question {
    Query { name: &'static str, position: (u32, u32), query: Query },
    Diagnostics,
}

struct Renamed {
    path: PathBuf,
    shown: String,
    old: Vec<u8>,
    new: Vec<u8>,
    patch: String,
}

/// Files that one rename may change. Nobody reads the diff of more before deciding.
const RENAMED_CAP: usize = 500;

impl Operation {
    fn name(self) -> &'static str {
        match self {
            Self::GoToDefinition => "goToDefinition",
            Self::FindReferences => "findReferences",
            Self::Hover => "hover",
            Self::DocumentSymbol => "documentSymbol",
            Self::WorkspaceSymbol => "workspaceSymbol",
            Self::GoToImplementation => "goToImplementation",
            Self::PrepareCallHierarchy => "prepareCallHierarchy",
            Self::IncomingCalls => "incomingCalls",
            Self::OutgoingCalls => "outgoingCalls",
            Self::Diagnostics => "diagnostics",
            Self::Rename => "rename",
        }
    }

    fn is_about_a_place(self) -> bool {
        !matches!(self, Self::DocumentSymbol | Self::WorkspaceSymbol | Self::Diagnostics)
    }
}

impl Lsp {
    pub fn new(feedback: Feedback) -> Self {
        Self { feedback }
    }

    fn servers(&self) -> Result<&Servers, ToolError> {
        let off = || ToolError::for_model("Language servers are turned off (the setting `lsp`).");
        self.feedback.servers().ok_or_else(off)
    }

    async fn prepare(
        &self,
        arguments: Arguments,
        path: &Path,
        workspace: &Workspace,
    ) -> Result<Task, ToolError> {
        let Arguments { operation, line, character, query, new_name, .. } = arguments;
        if !path.is_file() {
            return Err(ToolError::for_model(format!("File not found: {}", path.display())));
        }
        let position = match (line, character) {
            (Some(line), Some(character)) => (line.saturating_sub(1), character.saturating_sub(1)),
            _ if operation.is_about_a_place() => {
                let text =
                    format!("{} needs the line and the character of a symbol.", operation.name());
                return Err(ToolError::for_model(text));
            }
            _ => (0, 0),
        };
        let query = match operation {
            Operation::GoToDefinition => Query::Definition,
            Operation::FindReferences => Query::References,
            Operation::Hover => Query::Hover,
            Operation::DocumentSymbol => Query::DocumentSymbols,
            Operation::WorkspaceSymbol => {
                Query::WorkspaceSymbols { query: query.unwrap_or_default() }
            }
            Operation::GoToImplementation => Query::Implementation,
            Operation::PrepareCallHierarchy => Query::PrepareCalls,
            Operation::IncomingCalls => Query::IncomingCalls,
            Operation::OutgoingCalls => Query::OutgoingCalls,
            Operation::Diagnostics => return Ok(Task::Ask(Question::Diagnostics)),
            Operation::Rename => {
                let needed = || ToolError::for_model("rename needs newName, the new name.");
                let new_name =
                    new_name.filter(|name| !name.trim().is_empty()).ok_or_else(needed)?;
                return self.plan_rename(path, position, new_name, workspace).await;
            }
        };
        Ok(Task::Ask(Question::Query { name: operation.name(), position, query }))
    }

    async fn plan_rename(
        &self,
        path: &Path,
        position: (u32, u32),
        new_name: String,
        workspace: &Workspace,
    ) -> Result<Task, ToolError> {
        let for_model = |e: &dyn std::fmt::Display| ToolError::for_model(e.to_string());
        let query = Query::Rename { new_name };
        let answers =
            self.servers()?.ask(path, position, &query).await.map_err(|e| for_model(&e))?;
        let mut files = Vec::new();
        for answer in &answers {
            files = file_edits(answer)
                .map_err(|e| ToolError::for_model(format!("Cannot rename: {e}.")))?;
            if !files.is_empty() {
                break;
            }
        }
        if files.is_empty() {
            let text = "There is nothing to rename at this place; point at a symbol's name.";
            return Err(ToolError::for_model(text));
        }
        if files.len() > RENAMED_CAP {
            let text =
                format!("The rename would change {} files, more than {RENAMED_CAP}.", files.len());
            return Err(ToolError::for_model(text));
        }
        let places = files.iter().map(|file| file.edits.len()).sum();
        let mut renamed: Vec<Renamed> = Vec::new();
        for file in files {
            let path = workspace.resolve(&file.path.to_string_lossy());
            let shown = workspace.relative(&path);
            if renamed.iter().any(|other| other.path == path) {
                return Err(ToolError::for_model(format!("Cannot rename: {shown} has two names.")));
            }
            let gone = || ToolError::for_model(format!("Cannot rename: {shown} is not there."));
            let old = read_existing(&path)?.ok_or_else(gone)?;
            let (mark, bare) = match old.strip_prefix(BOM) {
                Some(bare) => (BOM, bare),
                None => (&[][..], &old[..]),
            };
            let no_text =
                |_| ToolError::for_model(format!("Cannot rename: {shown} is not UTF-8 text."));
            let text = std::str::from_utf8(bare).map_err(no_text)?;
            let text = apply_edits(text, &file.edits)
                .map_err(|e| ToolError::for_model(format!("Cannot rename in {shown}: {e}.")))?;
            let new = [mark, text.as_bytes()].concat();
            let patch = change(&shown, &old, &splice_between(&old, &new)).patch;
            renamed.push(Renamed { path, shown, old, new, patch });
        }
        Ok(Task::Write { renamed, places })
    }

    async fn answer(&self, path: &Path, question: Question) -> Result<ToolOutput, ToolError> {
        let servers = self.servers()?;
        let Question::Query { name, position, query } = question else {
            return Ok(report(servers, path).await);
        };
        let asked = servers.ask(path, position, &query).await;
        let found = asked.map_err(|e| ToolError::for_model(e.to_string()))?;
        let text = match found.is_empty() {
            true => format!("No results found for {name}"),
            false => format!("{:#}", json!(found)),
        };
        Ok(ToolOutput::text(text).with_details(json!({ "result": found })))
    }

    /// All files or none: what was written is put back when one cannot be.
    async fn write(
        &self,
        renamed: Vec<Renamed>,
        places: usize,
        context: &RunContext,
    ) -> Result<ToolOutput, ToolError> {
        let files = context.files.clone();
        let renamed = crate::walk::blocking(move || {
            for file in &renamed {
                unchanged_since_plan(&file.path, &file.shown, Some(&file.old))?;
            }
            for (at, file) in renamed.iter().enumerate() {
                if let Err(error) = files.write(&file.path, &file.new) {
                    let undone =
                        renamed[..at].iter().map(|done| files.write(&done.path, &done.old));
                    let failed: Vec<String> =
                        undone.filter_map(Result::err).map(|e| e.to_string()).collect();
                    let state = match failed.is_empty() {
                        true => "Nothing was changed.".to_owned(),
                        false => format!("Some files stay changed: {}", failed.join("; ")),
                    };
                    return Err(ToolError::for_model(format!("{error} {state}")));
                }
            }
            Ok(renamed)
        })
        .await?;
        let list: Vec<&str> = renamed.iter().map(|file| file.shown.as_str()).collect();
        let text =
            format!("Renamed in {places} places of {} files:\n{}", list.len(), list.join("\n"));
        let patches: Vec<&str> = renamed.iter().map(|file| file.patch.as_str()).collect();
        let details = json!({ "files": list, "diff": patches.join("\n") });
        let edited = renamed.into_iter().map(|Renamed { path, shown, old, .. }| Edited {
            path,
            shown,
            old: Before::Held(old),
        });
        let edited: Vec<Edited> = edited.collect();
        let output = ToolOutput::text(text).with_details(details);
        Ok(self.feedback.complete(output, &edited, Occasion::Patch, context).await)
    }
}

async fn report(servers: &Servers, path: &Path) -> ToolOutput {
    let report = servers.check(&[path.to_owned()]).await;
    let found = report.findings.get(path).map_or(&[][..], Vec::as_slice);
    let lines: Vec<String> = found.iter().map(Diagnostic::line).collect();
    let mut text = match lines.is_empty() {
        true => "No results found for diagnostics".to_owned(),
        false => in_tags(path, &lines),
    };
    for notice in report.notices {
        text.push_str(&format!("\n\nNote: {notice}"));
    }
    ToolOutput::text(text).with_details(json!({ "diagnostics": details(&report.findings) }))
}

impl Tool for Lsp {
    type Arguments = Arguments;
    type Prepared = Prepared;

    fn name(&self) -> &str {
        "lsp"
    }

    fn description(&self) -> &str {
        include_str!("lsp.md")
    }

    async fn plan(&self, arguments: Arguments, context: &PlanContext) -> Planned<Prepared> {
        let path = context.workspace.resolve(&arguments.file_path);
        let shown = context.workspace.relative(&path);
        let name = arguments.operation.name();
        let title = match (arguments.operation, arguments.line, arguments.character) {
            (Operation::WorkspaceSymbol, ..) => name.to_owned(),
            (operation, Some(line), Some(character)) if operation.is_about_a_place() => {
                format!("{name} {shown}:{line}:{character}")
            }
            _ => format!("{name} {shown}"),
        };
        let mut accesses = vec![
            Access::Read { path: path.clone(), extent: Extent::Single },
            Access::Custom {
                permission: "lsp".to_owned(),
                pattern: "*".to_owned(),
                read_only: true,
            },
        ];
        match self.prepare(arguments, &path, &context.workspace).await {
            Ok(task) => {
                if let Task::Write { renamed, .. } = &task {
                    accesses.extend(renamed.iter().map(|file| Access::Write {
                        path: file.path.clone(),
                        diff: file.patch.clone(),
                    }));
                }
                Planned::ready(Plan::new(title.clone(), accesses), Prepared { title, path, task })
            }
            Err(error) => Planned::failed(Plan::new(title, accesses), error),
        }
    }

    async fn run(&self, call: Prepared, context: RunContext) -> Result<ToolOutput, ToolError> {
        let Prepared { title, path, task } = call;
        let question = match task {
            // Not left in the middle: some files would be renamed and others not.
            Task::Write { renamed, places } => {
                return Ok(self.write(renamed, places, &context).await?.titled(title));
            }
            Task::Ask(question) => question,
        };
        let answer = tokio::select! {
            biased;
            () = context.cancel.cancelled() => {
                return Ok(ToolOutput { interrupted: true, ..ToolOutput::text("Stopped.").titled(title) });
            }
            answer = self.answer(&path, question) => answer?,
        };
        Ok(answer.titled(title))
    }
}

#[cfg(test)]
#[path = "lsp_tests.rs"]
mod tests;
