//! Shows a folder as a tree, what is near its top first.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use toolwright_tool::{
    Access, Plan, PlanContext, Planned, RunContext, Tool, ToolError, ToolOutput,
};

use crate::names::{Place, show};
use crate::walk::{self, Filter, Stopped, Tree, Unreadable, Visitor, blocking_until};

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

    fn absorb(&mut self, other: Self) {
        self.total += other.total;
        self.kept.extend(other.kept);
        while self.kept.len() > RESULTS {
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

/// What one thread has seen.
struct Looking<'a> {
    call: &'a Prepared,
    seen: Seen,
}

impl Looking<'_> {
    fn inside<'p>(&self, path: &'p Path) -> Option<&'p Path> {
        let inside = path.strip_prefix(&self.call.place.root).ok();
        inside.filter(|inside| !inside.as_os_str().is_empty())
    }
}

impl Visitor for Looking<'_> {
    const SHOWS_ALL: bool = true;

    fn wants(&mut self, path: &Path) -> bool {
        !self.call.filter.excludes(path, false)
    }

    fn enters(&mut self, path: &Path) -> bool {
        let passed_over =
            path.file_name().is_some_and(|name| PASSED_OVER.iter().any(|passed| name == *passed));
        let entered = !passed_over && !self.call.filter.excludes(path, true);
        // One that cannot be read is there all the same.
        if let (true, Some(inside)) = (entered, self.inside(path)) {
            self.seen.folders.offer(inside);
        }
        entered
    }

    fn file(&mut self, found: &walk::Found<'_>) {
        if let Some(inside) = self.inside(found.path()) {
            self.seen.files.offer(inside);
        }
    }
}

fn look(call: &Prepared, stopped: &Stopped) -> Looked {
    let unreadable = Unreadable::default();
    let tree = Tree {
        root: &call.place.root,
        hidden: true,
        depth: None,
        stopped,
        unreadable: &unreadable,
    };
    let mut seen = Seen::default();
    for looking in tree.walk(|| Looking { call, seen: Seen::default() }) {
        seen.files.absorb(looking.seen.files);
        seen.folders.absorb(looking.seen.folders);
    }
    Looked { seen, unreadable }
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
