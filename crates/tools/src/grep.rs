//! Searches file contents, on ripgrep's own parts.

mod report;
mod search;

use std::path::Path;

use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use ignore::types::{Types, TypesBuilder};
use schemars::JsonSchema;
use serde::Deserialize;
use toolwright_tool::{
    Access, Extent, Plan, PlanContext, Planned, RunContext, Tool, ToolError, ToolOutput,
};

use crate::names::{Place, show};
use crate::walk::{Filter, blocking_until};
use search::Search;

pub struct Grep;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Arguments {
    /// The regular expression.
    pattern: String,
    /// The folder or file to search; the working directory unless given.
    #[serde(default)]
    path: Option<String>,
    /// Only search files whose name or path fits this glob.
    #[serde(default)]
    include: Option<String>,
    /// Only search this type of file.
    #[serde(default, rename = "type")]
    kind: Option<String>,
    #[serde(default)]
    output: Output,
    /// Lines shown before and after each match.
    #[serde(default)]
    context: u32,
    #[serde(default)]
    ignore_case: bool,
    #[serde(default)]
    multiline: bool,
    /// Matches (or files) that are shown; 100 unless given.
    #[serde(default)]
    limit: Option<u32>,
}

#[derive(Deserialize, JsonSchema, Default, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum Output {
    #[default]
    Lines,
    Files,
    Count,
}

/// Results that reach the model unless it says otherwise, and at most.
const RESULTS: u32 = 100;
const RESULTS_CAP: u32 = 1_000;

/// Lines of context around a match, at most: more than that is a case for read.
const CONTEXT_CAP: u32 = 50;

pub struct Prepared {
    matcher: RegexMatcher,
    include: Option<Filter>,
    types: Option<Types>,
    place: Place,
    pattern: String,
    output: Output,
    context: usize,
    multiline: bool,
    limit: usize,
}

impl Tool for Grep {
    type Arguments = Arguments;
    type Prepared = Prepared;

    fn name(&self) -> &str {
        "grep"
    }

    fn description(&self) -> &str {
        include_str!("grep.md")
    }

    async fn plan(&self, arguments: Arguments, context: &PlanContext) -> Planned<Prepared> {
        let path = arguments.path.as_deref().unwrap_or(".");
        let place = Place::new(&context.workspace, path);
        let root = place.root.clone();
        let shown = context.workspace.relative(&root);
        let pattern = arguments.pattern.clone();
        let summary = format!("grep {pattern} in {shown}");
        let mut accesses = vec![Access::Search { permission: "grep", pattern, root: root.clone() }];
        // A file that is named is read like any other file: the rules for reading it apply.
        if root.is_file() {
            accesses.push(Access::Read { path: root, extent: Extent::Single });
        }
        let plan = Plan::new(summary, accesses);
        match prepare(arguments, place) {
            Ok(prepared) => Planned::ready(plan, prepared),
            Err(text) => Planned::failed(plan, ToolError::for_model(text)),
        }
    }

    async fn run(&self, call: Prepared, context: RunContext) -> Result<ToolOutput, ToolError> {
        context.files.check_read(&call.place.root)?;
        let may_read = context.may_read;
        blocking_until(context.cancel, move |stopped| {
            let search = Search::new(&call, stopped.clone(), may_read);
            let found = if call.place.root.is_dir() { search.tree() } else { search.one_file()? };
            Ok(found.report(&call, stopped.is_set()))
        })
        .await
    }
}

fn prepare(arguments: Arguments, place: Place) -> Result<Prepared, String> {
    let Arguments { pattern, include, kind, output, context, ignore_case, multiline, .. } =
        arguments;
    if pattern.is_empty() {
        return Err("pattern is required".to_owned());
    }
    let root = &place.root;
    if !root.is_dir() && !root.is_file() {
        return Err(match root.exists() {
            true => format!("{} is neither a file nor a folder.", show(root)),
            false => format!("There is no file or folder {}.", show(root)),
        });
    }
    let folder = if root.is_dir() { root } else { root.parent().unwrap_or(root) };
    let include = include.filter(|glob| !glob.trim().is_empty());
    let filter = |glob: String| {
        Filter::new(folder, &[glob]).map_err(|e| format!("include cannot be used: {e}."))
    };
    let limit = arguments.limit.unwrap_or(RESULTS).clamp(1, RESULTS_CAP);
    Ok(Prepared {
        matcher: matcher(&pattern, ignore_case, multiline)?,
        include: include.map(filter).transpose()?,
        types: kind.map(types).transpose()?,
        place,
        pattern,
        output,
        context: context.min(CONTEXT_CAP) as usize,
        multiline,
        limit: limit as usize,
    })
}

fn matcher(pattern: &str, ignore_case: bool, multiline: bool) -> Result<RegexMatcher, String> {
    let mut builder = RegexMatcherBuilder::new();
    builder.multi_line(true).case_insensitive(ignore_case);
    if multiline {
        builder.dot_matches_new_line(true);
    } else {
        builder.line_terminator(Some(b'\n'));
    }
    builder.build(pattern).map_err(|error| {
        let hint = match !multiline && pattern.contains("\\n") {
            true => " Set multiline to match across lines.",
            false => "",
        };
        format!("The pattern is not a valid regular expression: {error}.{hint}")
    })
}

fn types(name: String) -> Result<Types, String> {
    let mut builder = TypesBuilder::new();
    let types = builder.add_defaults().select(&name).build();
    types.map_err(|_| {
        let known = builder.definitions();
        let similar = known.iter().map(|known| known.name()).filter(|known| {
            let begins = known.starts_with(&name) || (known.len() > 1 && name.starts_with(known));
            begins || strsim::levenshtein(known, &name) == 1
        });
        let similar: Vec<&str> = similar.take(5).collect();
        let hint = match similar.as_slice() {
            [] => "use include with a glob instead".to_owned(),
            names => format!("did you mean {}?", names.join(", ")),
        };
        format!("There is no file type {name:?}; {hint}")
    })
}

impl Prepared {
    fn wants(&self, file: &Path) -> bool {
        self.include.as_ref().is_none_or(|filter| filter.accepts(file))
            && self.types.as_ref().is_none_or(|types| !types.matched(file, false).is_ignore())
    }
}
