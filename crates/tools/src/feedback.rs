//! What follows an edit: formatters bring the file into shape, language servers say what is wrong with
//! it, and the model is told. Nothing here can fail the edit.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};
use std::fs::File;
use std::io::{Read as _, Seek as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value, json};
use toolwright_lsp::{Diagnostic, Servers};
use toolwright_tool::{RunContext, ToolOutput};

use crate::diff::change;
use crate::formatter::{Formatted, Formatters};
use crate::rewrite::splice_between;

/// Errors of one file that the model is told, and other files that it is told of.
const ERRORS_SHOWN: usize = 20;
const OTHERS_SHOWN: usize = 5;

/// Files and findings in the details, which nobody reads to the end.
const DETAILS_FILES: usize = 20;
const DETAILS_FINDINGS: usize = 50;

/// The service, shared by all tools of a process that work in one folder. Without configuration it
/// does nothing.
#[derive(Clone, Default)]
pub struct Feedback {
    inner: Option<Arc<Inner>>,
}

struct Inner {
    servers: Servers,
    formatters: Formatters,
    /// Problems of formatters that were told; each is told once.
    told: Mutex<HashSet<String>>,
}

/// A file that a call has written, moved to or removed.
pub struct Edited {
    pub path: PathBuf,
    /// As people see it.
    pub shown: String,
    /// What it held before the call.
    pub old: Before,
}

/// The content of a file before a call.
#[derive(Debug, Clone)]
pub enum Before {
    Held(Vec<u8>),
    /// The file that was replaced, which is there as long as it is open.
    Large(Arc<File>),
}

impl Before {
    fn read(&self) -> Cow<'_, [u8]> {
        match self {
            Self::Held(content) => Cow::Borrowed(content),
            Self::Large(file) => {
                let mut content = Vec::new();
                let mut file = file.as_ref();
                let read = file.rewind().and_then(|()| file.read_to_end(&mut content));
                // A diff is made of it, and nothing depends on that.
                Cow::Owned(read.map(|_| content).unwrap_or_default())
            }
        }
    }
}

/// Which tool edited; they speak of errors in their own ways.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Occasion {
    /// One file, of which alone is spoken.
    Edit,
    /// One file, and others that broke because of it.
    Write,
    /// Several files, each by its name.
    Patch,
}

/// What to add to an output.
#[derive(Debug, Default)]
pub struct After {
    pub text: String,
    pub details: serde_json::Map<String, Value>,
    /// A formatter changed at least one of the files.
    pub reformatted: bool,
}

impl Feedback {
    pub fn new(servers: Servers, formatters: Formatters) -> Self {
        if servers.is_off() && formatters.is_off() {
            return Self::default();
        }
        let told = Mutex::default();
        Self { inner: Some(Arc::new(Inner { servers, formatters, told })) }
    }

    /// Whether nothing follows an edit.
    pub(crate) fn is_off(&self) -> bool {
        self.inner.is_none()
    }

    /// The language servers, where they are turned on.
    pub fn servers(&self) -> Option<&Servers> {
        self.inner.as_ref().map(|inner| &inner.servers).filter(|servers| !servers.is_off())
    }

    /// Starts the servers that a file will need, without waiting: for tools that read.
    pub fn warm(&self, file: &Path) {
        if let Some(servers) = self.servers() {
            servers.warm(file);
        }
    }

    /// The output of an edit with all that follows it: what the formatters and servers say, and the
    /// diff as it is after formatting.
    pub async fn complete(
        &self,
        mut output: ToolOutput,
        edited: &[Edited],
        occasion: Occasion,
        context: &RunContext,
    ) -> ToolOutput {
        let After { text, details, reformatted } = self.after_edit(edited, occasion, context).await;
        output.output.push_str(&text);
        if let Some(object) = output.details.as_object_mut() {
            object.extend(details);
            if let ([only], true) = (edited, reformatted) {
                let new = tokio::fs::read(&only.path).await.unwrap_or_default();
                let old = only.old.read();
                let change = change(&only.shown, &old, &splice_between(&old, &new));
                object.insert("diff".to_owned(), json!(change.patch));
                object.insert("additions".to_owned(), json!(change.additions));
                object.insert("deletions".to_owned(), json!(change.deletions));
            }
        }
        output
    }

    /// Formats the files and asks the servers about them.
    pub async fn after_edit(
        &self,
        edited: &[Edited],
        occasion: Occasion,
        context: &RunContext,
    ) -> After {
        // Commands that run meanwhile are not to blame, if these are files that they must not change.
        for file in edited {
            toolwright_proc::sandbox::changed_by_us(&file.path);
        }
        let mut after = After::default();
        let Some(inner) = &self.inner else { return after };
        inner.format(edited, context, &mut after).await;
        if inner.servers.is_off() {
            return after;
        }
        let paths: Vec<PathBuf> = edited.iter().map(|file| file.path.clone()).collect();
        let report = tokio::select! {
            biased;
            () = context.cancel.cancelled() => return after,
            report = inner.servers.check(&paths) => report,
        };
        for file in edited {
            let findings = report.findings.get(&file.path).map_or(&[][..], Vec::as_slice);
            let Some(block) = block(&file.path, findings) else { continue };
            let place = match occasion {
                Occasion::Edit | Occasion::Write => "this file",
                Occasion::Patch => &file.shown,
            };
            after
                .text
                .push_str(&format!("\n\nLSP errors detected in {place}, please fix:\n{block}"));
        }
        if occasion == Occasion::Write {
            let others = report.findings.iter().filter(|(path, _)| !paths.contains(path));
            let shown = others.filter(|(path, _)| (context.may_read)(path));
            let blocks = shown.filter_map(|(path, findings)| block(path, findings));
            for block in blocks.take(OTHERS_SHOWN) {
                after.text.push_str(&format!("\n\nLSP errors detected in other files:\n{block}"));
            }
        }
        for notice in &report.notices {
            after.text.push_str(&format!("\n\nNote: {notice}"));
        }
        after.details.insert("diagnostics".to_owned(), details(&report.findings));
        after
    }
}

impl Inner {
    async fn format(&self, edited: &[Edited], context: &RunContext, after: &mut After) {
        if self.formatters.is_off() {
            return;
        }
        let mut all = Formatted::default();
        for file in edited {
            let Formatted { changed_by, problems } =
                self.formatters.format(&file.path, &context.files, &context.cancel).await;
            if !changed_by.is_empty() {
                let names = changed_by.join(" and ");
                after.text.push_str(&format!("\n\n{} was formatted by {names}.", file.shown));
            }
            all.changed_by.extend(changed_by);
            all.problems.extend(problems);
        }
        after.reformatted = !all.changed_by.is_empty();
        for problem in &all.problems {
            let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
            if told.insert(problem.clone()) {
                after.text.push_str(&format!("\n\nNote: the formatter {problem}."));
            }
        }
        if !all.changed_by.is_empty() || !all.problems.is_empty() {
            let told = json!({ "changed": all.changed_by, "problems": all.problems });
            after.details.insert("formatter".to_owned(), told);
        }
    }
}

/// The errors of one file as the model sees them; nothing where there are none.
pub(crate) fn block(path: &Path, findings: &[Diagnostic]) -> Option<String> {
    let errors: Vec<String> =
        findings.iter().filter(|finding| finding.is_error()).map(Diagnostic::line).collect();
    (!errors.is_empty()).then(|| in_tags(path, &errors))
}

pub(crate) fn in_tags(path: &Path, lines: &[String]) -> String {
    let mut text = format!("<diagnostics file=\"{}\">\n", path.display());
    text.push_str(&lines[..lines.len().min(ERRORS_SHOWN)].join("\n"));
    if lines.len() > ERRORS_SHOWN {
        text.push_str(&format!("\n... and {} more", lines.len() - ERRORS_SHOWN));
    }
    text.push_str("\n</diagnostics>");
    text
}

pub(crate) fn details(findings: &BTreeMap<PathBuf, Vec<Diagnostic>>) -> Value {
    let raw = |list: &Vec<Diagnostic>| -> Vec<Value> {
        list.iter().take(DETAILS_FINDINGS).map(|finding| finding.raw().clone()).collect()
    };
    let files = findings.iter().take(DETAILS_FILES);
    files
        .map(|(path, list)| (path.display().to_string(), json!(raw(list))))
        .collect::<serde_json::Map<_, _>>()
        .into()
}
