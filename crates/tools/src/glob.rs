//! Finds files by name, newest first.

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use toolwright_tool::{
    Access, Plan, PlanContext, Planned, RunContext, Tool, ToolError, ToolOutput,
};

use crate::names::{Place, show};
use crate::recency::Newest;
use crate::walk::{
    self, Filter, Stopped, Tree, Unreadable, Visitor, blocking_until, depth_of, split_literal,
};

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
    filter: Filter,
    place: Place,
    shown: String,
    hidden: bool,
    /// No file further down can fit.
    depth: Option<usize>,
}

/// Paths that reach the model.
const RESULTS: usize = 100;

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
        let (folder, glob) = match path {
            None if pattern.starts_with('/') || pattern.starts_with("../") => {
                let (folder, rest) = split_literal(&pattern);
                (folder.display().to_string(), format!("/{rest}"))
            }
            path => (path.unwrap_or_else(|| ".".to_owned()), pattern.clone()),
        };
        let place = Place::new(&context.workspace, &folder);
        let root = place.root.clone();
        let shown = context.workspace.relative(&root);
        let access =
            Access::Search { permission: "glob", pattern: pattern.clone(), root: root.clone() };
        let plan = Plan::new(format!("glob {pattern} in {shown}"), vec![access]);
        let failed = |text: String| ToolError::for_model(text);
        if !root.is_dir() {
            let text = match root.exists() {
                true => format!("glob path must be a directory: {}", show(&root)),
                false => format!("There is no folder {}.", show(&root)),
            };
            return Planned::failed(plan, failed(text));
        }
        if glob.trim().is_empty() {
            let text = "The pattern is empty; `**/*` fits all files.".to_owned();
            return Planned::failed(plan, failed(text));
        }
        let inside = glob.strip_prefix(&*root.to_string_lossy()).filter(|g| g.starts_with('/'));
        let glob = inside.unwrap_or(&glob).to_owned();
        // Whoever names something hidden wants it; otherwise it is left out.
        let hidden = glob.split('/').any(|part| part.starts_with('.') && part.len() > 1);
        let depth = depth_of(&glob);
        match Filter::new(&root, &[glob]) {
            Ok(filter) => Planned::ready(plan, Prepared { filter, place, shown, hidden, depth }),
            Err(error) => {
                Planned::failed(plan, failed(format!("The pattern cannot be used: {error}.")))
            }
        }
    }

    async fn run(&self, call: Prepared, context: RunContext) -> Result<ToolOutput, ToolError> {
        context.files.check_read(&call.place.root)?;
        let find =
            move |stopped: &Stopped| Ok(find(&call, stopped).report(&call, stopped.is_set()));
        blocking_until(context.cancel, find).await
    }
}

struct Found {
    newest: Newest<()>,
    total: usize,
    unreadable: Unreadable,
}

/// What one thread has found.
struct Share<'a> {
    call: &'a Prepared,
    newest: Newest<()>,
    total: usize,
    unreadable: &'a Unreadable,
}

impl Visitor for Share<'_> {
    fn wants(&mut self, path: &Path) -> bool {
        self.call.filter.accepts(path)
    }

    fn file(&mut self, found: &walk::Found<'_>) {
        match found.changed() {
            Ok(changed) => {
                self.total += 1;
                if self.newest.has_room_for(changed) {
                    self.newest.offer(changed, found.path().to_owned(), 1, ());
                }
            }
            Err(error) => self.unreadable.note(found.path(), &error),
        }
    }
}

fn find(call: &Prepared, stopped: &Stopped) -> Found {
    let unreadable = Unreadable::default();
    let Prepared { place, hidden, depth, .. } = call;
    let tree = Tree {
        root: &place.root,
        hidden: *hidden,
        depth: *depth,
        stopped,
        unreadable: &unreadable,
    };
    let shares = tree.walk(|| Share {
        call,
        newest: Newest::new(RESULTS),
        total: 0,
        unreadable: &unreadable,
    });
    let (mut newest, mut total) = (Newest::new(RESULTS), 0);
    for share in shares {
        newest.absorb(share.newest);
        total += share.total;
    }
    Found { newest, total, unreadable }
}

impl Found {
    fn report(self, call: &Prepared, interrupted: bool) -> ToolOutput {
        let Self { newest, total, unreadable } = self;
        let truncated = newest.is_full();
        let count = newest.weight();
        let show = |(path, ()): (PathBuf, ())| call.place.show(Path::new(&path));
        let mut text: Vec<String> = newest.into_sorted().map(show).collect();
        if text.is_empty() {
            text.push("No files found".to_owned());
        }
        let mut add = |sentence: String| text.extend([String::new(), sentence]);
        if truncated {
            add(format!(
                "(Results are truncated: showing first {RESULTS} results. {total} files match; use a narrower pattern or path.)"
            ));
        }
        unreadable.sentence().into_iter().for_each(&mut add);
        if interrupted {
            add("(The search was stopped before its end.)".to_owned());
        }
        let details = json!({ "count": count, "truncated": truncated });
        let output = ToolOutput::text(text.join("\n")).titled(call.shown.clone());
        ToolOutput { interrupted, ..output.with_details(details) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_that_is_stopped_ends_at_once_and_says_so() {
        let workspace = toolwright_tool::Workspace::new(Path::new("/")).unwrap();
        let place = Place::new(&workspace, "/");
        let filter = Filter::new(&place.root, &["*".to_owned()]).unwrap();
        let call = Prepared { filter, place, shown: "/".to_owned(), hidden: true, depth: None };
        let stopped = Stopped::default();
        stopped.set();
        let found = find(&call, &stopped);
        assert_eq!(found.total, 0);
        let output = found.report(&call, true);
        assert!(output.interrupted && output.output.contains("stopped before its end"));
    }
}
