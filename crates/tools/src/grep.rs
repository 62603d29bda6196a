//! Searches file contents, on ripgrep's own parts.

use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::SystemTime;

use globset::{GlobBuilder, GlobMatcher};
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::sinks::Lossy;
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder};
use ignore::WalkState;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use tokio_util::sync::CancellationToken;
use toolwright_tool::{
    Access, MayRead, Plan, PlanContext, Planned, RunContext, Tool, ToolError, ToolOutput,
};

use crate::walk::{blocking, fits, walker};

pub struct Grep;

#[derive(Deserialize, JsonSchema)]
pub struct Arguments {
    /// The regular expression.
    pattern: String,
    /// The folder or file to search; the working directory unless given.
    #[serde(default)]
    path: Option<String>,
    /// Only search files whose name or path fits this glob.
    #[serde(default)]
    include: Option<String>,
}

pub struct Prepared {
    matcher: RegexMatcher,
    include: Option<GlobMatcher>,
    root: PathBuf,
    pattern: String,
}

/// Matching lines that reach the model.
const RESULTS: usize = 100;

/// Matching lines that are held while sorting files by age.
const CANDIDATES: usize = 5_000;

/// Characters shown of a line. Minified files have lines of megabytes.
const LINE_CHARS: usize = 2_000;

struct FileHits {
    changed: SystemTime,
    path: PathBuf,
    lines: Vec<(u64, String)>,
}

#[derive(Default)]
struct Search {
    hits: Mutex<Vec<FileHits>>,
    count: AtomicUsize,
    /// Files with matches that may not be shown.
    withheld: AtomicUsize,
    may_read: Option<MayRead>,
    cancel: CancellationToken,
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
        let Arguments { pattern, path, include } = arguments;
        let root = context.workspace.resolve(path.as_deref().unwrap_or("."));
        let shown = context.workspace.relative(&root);
        let access =
            Access::Search { permission: "grep", pattern: pattern.clone(), root: root.clone() };
        let mut accesses = vec![access];
        // A file that is named is read like any other file: the rules for reading it apply.
        if root.is_file() {
            let extent = toolwright_tool::Extent::Single;
            accesses.push(Access::Read { path: root.clone(), extent });
        }
        let plan = Plan::new(format!("grep {pattern} in {shown}"), accesses);
        match prepare(pattern, include, root) {
            Ok(prepared) => Planned::ready(plan, prepared),
            Err(text) => Planned::failed(plan, ToolError::for_model(text)),
        }
    }

    async fn run(&self, call: Prepared, context: RunContext) -> Result<ToolOutput, ToolError> {
        let Prepared { matcher, include, root, pattern } = call;
        context.files.check_read(&root)?;
        let (cancel, may_read) = (context.cancel, Some(context.may_read));
        let search = blocking(move || {
            let search = Search { may_read, cancel: cancel.clone(), ..Search::default() };
            if root.is_file() {
                search.file(&matcher, &mut searcher(), root, SystemTime::UNIX_EPOCH);
                return Ok(search);
            }
            walker(&root, true).run(|| {
                let mut searcher = searcher();
                let (search, matcher, include, root, cancel) =
                    (&search, &matcher, &include, &root, &cancel);
                Box::new(move |entry| {
                    let Ok(entry) = entry else { return WalkState::Continue };
                    if cancel.is_cancelled() || search.is_full() {
                        return WalkState::Quit;
                    }
                    let relative = entry.path().strip_prefix(root).unwrap_or(entry.path());
                    let wanted = entry.file_type().is_some_and(|t| t.is_file())
                        && include.as_ref().is_none_or(|glob| fits(glob, relative));
                    if !wanted {
                        return WalkState::Continue;
                    }
                    let changed = entry.metadata().ok().and_then(|m| m.modified().ok());
                    let changed = changed.unwrap_or(SystemTime::UNIX_EPOCH);
                    search.file(matcher, &mut searcher, entry.into_path(), changed);
                    WalkState::Continue
                })
            });
            Ok(search)
        })
        .await?;
        Ok(report(search, pattern))
    }
}

fn prepare(pattern: String, include: Option<String>, root: PathBuf) -> Result<Prepared, String> {
    if pattern.is_empty() {
        return Err("pattern is required".to_owned());
    }
    if !root.is_dir() && !root.is_file() {
        return Err(match root.exists() {
            true => format!("{} is neither a file nor a folder.", root.display()),
            false => format!("There is no file or folder {}.", root.display()),
        });
    }
    let matcher = RegexMatcherBuilder::new()
        .line_terminator(Some(b'\n'))
        .build(&pattern)
        .map_err(|e| format!("The pattern is not a valid regular expression: {e}"))?;
    let glob = |text: String| {
        let glob = GlobBuilder::new(&text).literal_separator(true).build();
        glob.map(|g| g.compile_matcher()).map_err(|e| format!("include cannot be used: {e}."))
    };
    Ok(Prepared { matcher, include: include.map(glob).transpose()?, root, pattern })
}

fn searcher() -> Searcher {
    // A file may be one endless line.
    const LINE_HEAP_BYTES: usize = 64 << 20;
    SearcherBuilder::new()
        .binary_detection(BinaryDetection::quit(0))
        .line_number(true)
        .heap_limit(Some(LINE_HEAP_BYTES))
        .build()
}

impl Search {
    fn is_full(&self) -> bool {
        self.count.load(Ordering::Relaxed) >= CANDIDATES
    }

    /// Files that cannot be read are passed over, as ripgrep does with `--no-messages`.
    fn file(
        &self,
        matcher: &RegexMatcher,
        searcher: &mut Searcher,
        path: PathBuf,
        changed: SystemTime,
    ) {
        let mut lines = Vec::new();
        let sink = Lossy(|number, line: &str| {
            lines.push((number, shorten(line)));
            let count = self.count.fetch_add(1, Ordering::Relaxed) + 1;
            Ok(lines.len() <= RESULTS && count < CANDIDATES && !self.cancel.is_cancelled())
        });
        let searched = searcher.search_path(matcher, &path, sink);
        if searched.is_ok() && !lines.is_empty() {
            if self.may_read.as_ref().is_some_and(|may_read| !may_read(&path)) {
                self.count.fetch_sub(lines.len(), Ordering::Relaxed);
                self.withheld.fetch_add(1, Ordering::Relaxed);
                return;
            }
            let mut hits = self.hits.lock().unwrap_or_else(|e| e.into_inner());
            hits.push(FileHits { changed, path, lines });
        }
    }
}

fn shorten(line: &str) -> String {
    let line = line.trim_end_matches(['\n', '\r']);
    match line.char_indices().nth(LINE_CHARS) {
        Some((at, _)) => format!("{}...", &line[..at]),
        None => line.to_owned(),
    }
}

fn report(search: Search, pattern: String) -> ToolOutput {
    let mut files = search.hits.into_inner().unwrap_or_else(|e| e.into_inner());
    files.sort_by(|a, b| b.changed.cmp(&a.changed).then_with(|| a.path.cmp(&b.path)));
    let total: usize = files.iter().map(|f| f.lines.len()).sum();
    let shown = total.min(RESULTS);
    let truncated = total > RESULTS;
    let mut text = if total == 0 {
        "No files found".to_owned()
    } else {
        let more = if truncated { " (more matches available)" } else { "" };
        format!("Found {shown} matches{more}")
    };
    let mut left = RESULTS;
    for file in &files {
        if left == 0 {
            break;
        }
        text.push_str(&format!("\n\n{}:", file.path.display()));
        for (number, line) in file.lines.iter().take(left) {
            text.push_str(&format!("\n  Line {number}: {line}"));
        }
        left -= file.lines.len().min(left);
    }
    if truncated {
        text.push_str("\n\n(Results truncated. Consider using a more specific path or pattern.)");
    }
    let withheld = search.withheld.into_inner();
    if withheld > 0 {
        text.push_str(&format!(
            "\n\n({withheld} more files match, but reading them needs approval; name one as path to ask for it.)"
        ));
    }
    let title = format!("{pattern} ({total} matches)");
    let details = json!({ "matches": shown, "truncated": truncated });
    ToolOutput::text(text).titled(title).with_details(details)
}
