//! Shows a folder as a tree, what is near its top first.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use ignore::WalkState;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use toolwright_tool::{
    Access, Plan, PlanContext, Planned, RunContext, Tool, ToolError, ToolOutput,
};

use crate::names::{Place, show};
use crate::walk::{Filter, Stopped, Unreadable, blocking_until, walker};

pub struct List;

#[derive(Deserialize, JsonSchema)]
pub struct Arguments {
    /// The folder; the working directory unless given.
    #[serde(default)]
    path: Option<String>,
    /// Globs of what to leave out.
    #[serde(default)]
    ignore: Vec<String>,
}

pub struct Prepared {
    place: Place,
    shown: String,
    filter: Filter,
}

/// Files in one tree, and folders.
const RESULTS: usize = 100;

/// Folders of results, dependencies and tools, which say nothing about a project.
const PASSED_OVER: &[&str] = &[
    "node_modules",
    "__pycache__",
    ".git",
    "dist",
    "build",
    "target",
    "vendor",
    "bin",
    "obj",
    ".idea",
    ".vscode",
    ".zig-cache",
    "zig-out",
    ".coverage",
    "coverage",
    "tmp",
    "temp",
    ".cache",
    "cache",
    "logs",
    ".venv",
    "venv",
    "env",
];

impl Tool for List {
    type Arguments = Arguments;
    type Prepared = Prepared;

    fn name(&self) -> &str {
        "list"
    }

    fn description(&self) -> &str {
        include_str!("list.md")
    }

    async fn plan(&self, arguments: Arguments, context: &PlanContext) -> Planned<Prepared> {
        let place = Place::new(&context.workspace, arguments.path.as_deref().unwrap_or("."));
        let root = place.root.clone();
        let shown = context.workspace.relative(&root);
        let pattern = root.display().to_string();
        let access = Access::Search { permission: "list", pattern, root: root.clone() };
        let plan = Plan::new(format!("list {shown}"), vec![access]);
        let failed = |plan, text: String| Planned::failed(plan, ToolError::for_model(text));
        if !root.is_dir() {
            let text = match root.exists() {
                true => format!("{} is not a folder; use read for files.", show(&root)),
                false => format!("There is no folder {}.", show(&root)),
            };
            return failed(plan, text);
        }
        let left_out = arguments.ignore.iter().map(|glob| {
            let glob = glob.trim_end_matches('/');
            format!("!{}", glob.strip_prefix('!').unwrap_or(glob))
        });
        match Filter::new(&root, &left_out.collect::<Vec<_>>()) {
            Ok(filter) => Planned::ready(plan, Prepared { place, shown, filter }),
            Err(error) => failed(plan, format!("ignore cannot be used: {error}.")),
        }
    }

    async fn run(&self, call: Prepared, context: RunContext) -> Result<ToolOutput, ToolError> {
        context.files.check_read(&call.place.root)?;
        let look =
            move |stopped: &Stopped| Ok(look(&call, stopped).report(&call, stopped.is_set()));
        blocking_until(context.cancel, look).await
    }
}

/// What is nearest to the top, in a fixed order: depth, then name.
#[derive(Default)]
struct Nearest {
    kept: BTreeSet<(usize, PathBuf)>,
    total: usize,
}

impl Nearest {
    fn offer(&mut self, path: &Path) {
        self.total += 1;
        self.kept.insert((path.components().count(), path.to_owned()));
        if self.kept.len() > RESULTS {
            self.kept.pop_last();
        }
    }
}

#[derive(Default)]
struct Seen {
    files: Nearest,
    folders: Nearest,
}

struct Looked {
    seen: Seen,
    unreadable: Unreadable,
}

fn look(call: &Prepared, stopped: &Stopped) -> Looked {
    let seen = Mutex::new(Seen::default());
    let unreadable = Unreadable::default();
    let enters = |entry: &ignore::DirEntry| {
        let is_folder = entry.file_type().is_some_and(|t| t.is_dir());
        let passed_over = PASSED_OVER.iter().any(|name| entry.file_name() == *name);
        !(is_folder && passed_over)
    };
    walker(&call.place.root, true, None, enters).run(|| {
        Box::new(|entry| {
            if stopped.is_set() {
                return WalkState::Quit;
            }
            let entry = match entry {
                Ok(entry) => entry,
                Err(error) => {
                    unreadable.note_walk(&error);
                    return WalkState::Continue;
                }
            };
            let is_folder = entry.file_type().is_some_and(|t| t.is_dir());
            if call.filter.excludes(entry.path(), is_folder) {
                return WalkState::Skip;
            }
            let Ok(inside) = entry.path().strip_prefix(&call.place.root) else {
                return WalkState::Continue;
            };
            if inside.as_os_str().is_empty() {
                return WalkState::Continue;
            }
            let mut seen = seen.lock().unwrap_or_else(|e| e.into_inner());
            if is_folder {
                seen.folders.offer(inside)
            } else {
                seen.files.offer(inside)
            }
            WalkState::Continue
        })
    });
    Looked { seen: seen.into_inner().unwrap_or_else(|e| e.into_inner()), unreadable }
}

#[derive(Default)]
struct Branch {
    folders: BTreeMap<OsString, Branch>,
    files: BTreeSet<OsString>,
}

impl Branch {
    fn folder(&mut self, path: &Path) -> &mut Self {
        path.components().fold(self, |branch, part| {
            branch.folders.entry(part.as_os_str().to_owned()).or_default()
        })
    }

    fn write(&self, depth: usize, text: &mut String) {
        let indent = "  ".repeat(depth);
        for (name, branch) in &self.folders {
            text.push_str(&format!("\n{indent}{}/", show(Path::new(name))));
            branch.write(depth + 1, text);
        }
        for name in &self.files {
            text.push_str(&format!("\n{indent}{}", show(Path::new(name))));
        }
    }
}

impl Looked {
    fn report(self, call: &Prepared, interrupted: bool) -> ToolOutput {
        let Seen { files, folders } = self.seen;
        let mut tree = Branch::default();
        for (_, path) in &folders.kept {
            tree.folder(path);
        }
        for (_, path) in &files.kept {
            let folder = tree.folder(path.parent().unwrap_or(Path::new("")));
            folder.files.extend(path.file_name().map(OsString::from));
        }
        let mut text = format!("{}/", call.place.show(&call.place.root));
        tree.write(1, &mut text);
        let truncated = files.kept.len() >= RESULTS || folders.total > folders.kept.len();
        if files.total + folders.total == 0 {
            text.push_str("\n\n(The folder is empty, or everything in it is ignored.)");
        }
        if truncated {
            text.push_str(&format!(
                "\n\n(Results are truncated: showing {} of {} files. List a folder further down.)",
                files.kept.len(),
                files.total
            ));
        }
        if let Some(sentence) = self.unreadable.sentence() {
            text.push_str(&format!("\n\n{sentence}"));
        }
        if interrupted {
            text.push_str("\n\n(The listing was stopped before its end.)");
        }
        let details = json!({ "count": files.kept.len(), "truncated": truncated });
        let output = ToolOutput::text(text).titled(call.shown.clone()).with_details(details);
        ToolOutput { interrupted, ..output }
    }
}
