//! Replaces text in a file and touches no byte outside the match.

pub(crate) mod apply;
mod blocks;
pub(crate) mod closest;
pub(crate) mod excerpt;
mod large;
pub(crate) mod lines;
pub(crate) mod matchers;
pub(crate) mod view;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use toolwright_tool::{PlanContext, Planned, RunContext, Tool, ToolError, ToolOutput};

use self::apply::{Applied, Replacement, apply_all};
use self::large::{Made, apply_large};
use crate::apply_patch::is_patch_style;
use crate::feedback::Occasion;
use crate::rewrite::{Found, Rewrite, Target, commit, plan_one};
use crate::seen::Seen;

#[derive(Default)]
pub struct Edit {
    seen: Seen,
}

impl Edit {
    pub fn new(seen: Seen) -> Self {
        Self { seen }
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Arguments {
    /// The file to change: absolute, or relative to the working directory.
    file_path: String,
    /// The text to replace, as it stands in the file. Empty to create a new file.
    #[serde(default)]
    old_string: Option<String>,
    /// The text to put in its place.
    #[serde(default)]
    new_string: Option<String>,
    /// Replace every occurrence instead of exactly one.
    #[serde(default)]
    replace_all: bool,
    /// Several edits instead, applied in order, all or none.
    #[serde(default)]
    edits: Vec<OneEdit>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct OneEdit {
    old_string: String,
    new_string: String,
    #[serde(default)]
    replace_all: bool,
}

impl From<OneEdit> for Replacement {
    fn from(OneEdit { old_string, new_string, replace_all }: OneEdit) -> Self {
        Self { old: old_string, new: new_string, all: replace_all }
    }
}

impl Arguments {
    /// The edits, or what is wrong with them.
    fn replacements(self) -> Result<Vec<Replacement>, ToolError> {
        let Self { old_string, new_string, replace_all, edits, .. } = self;
        let mut all: Vec<Replacement> = Vec::with_capacity(edits.len() + 1);
        match (old_string, new_string) {
            (Some(old), Some(new)) => {
                // Some models fill in every field that there is.
                if edits.is_empty() || !(old.is_empty() && new.is_empty()) {
                    all.push(Replacement { old, new, all: replace_all });
                }
            }
            (None, None) if !edits.is_empty() => {}
            _ => {
                let text = "Give oldString and newString, or a list of edits.";
                return Err(ToolError::for_model(text));
            }
        }
        all.extend(edits.into_iter().map(Replacement::from));
        Ok(all)
    }
}

impl Tool for Edit {
    type Arguments = Arguments;
    type Prepared = Prepared;

    fn name(&self) -> &str {
        "edit"
    }

    fn description(&self) -> &str {
        include_str!("edit.md")
    }

    fn suits(&self, model: &str, has: &dyn Fn(&str) -> bool) -> bool {
        !(is_patch_style(model) && has("apply_patch"))
    }

    async fn plan(&self, arguments: Arguments, context: &PlanContext) -> Planned<Prepared> {
        let file_path = arguments.file_path.clone();
        plan_edits(&file_path, arguments.replacements(), context, &self.seen).await
    }

    async fn run(&self, call: Prepared, context: RunContext) -> Result<ToolOutput, ToolError> {
        run_edits(call, context, self.seen.clone()).await
    }
}

pub type Prepared = Box<PreparedEdits>;

/// A change that is ready to be made, and how it came about.
pub struct PreparedEdits {
    rewrite: Rewrite,
    applied: Vec<Applied>,
}

pub(crate) async fn plan_edits(
    file_path: &str,
    replacements: Result<Vec<Replacement>, ToolError>,
    context: &PlanContext,
    seen: &Seen,
) -> Planned<Prepared> {
    let target = Target::of(file_path, context);
    let asked = match &replacements {
        _ if file_path.is_empty() => Err(ToolError::for_model("filePath is required")),
        Err(error) => Err(error.clone()),
        Ok(list) => list.iter().try_for_each(Replacement::check),
    };
    let replacements = replacements.unwrap_or_default();
    // Several edits see what those before them did: that needs the whole content.
    let look = if replacements.len() == 1 { Found::look_at } else { Found::at };
    let checking = seen.clone();
    let make = move |target: &Target, mut found: Found| {
        if let (Some(file), [only]) = (&found.large, replacements.as_slice()) {
            let made = apply_large(file, only).filter(|_| found.is_unchanged());
            if let Some(Made { splices, applied, around }) = made {
                let rewrite = Rewrite::within(target, found, splices, &around);
                return Ok((rewrite, vec![applied]));
            }
            found = Found::at(&target.path)?;
            checking.check(&target.path, &target.shown, &found)?;
        }
        let (splices, applied) = apply_all(&target.shown, found.content.as_deref(), &replacements)?;
        Ok((Rewrite::splice(target, found, splices), applied))
    };
    let Planned { plan, prepared } = plan_one("edit", target, seen, asked, look, make).await;
    let prepared = prepared.map(|(rewrite, applied)| Box::new(PreparedEdits { rewrite, applied }));
    Planned { plan, prepared }
}

pub(crate) async fn run_edits(
    call: Prepared,
    context: RunContext,
    seen: Seen,
) -> Result<ToolOutput, ToolError> {
    let (files, noting) = (context.files.clone(), seen.clone());
    let (output, edited) = crate::walk::blocking(move || {
        let PreparedEdits { rewrite, applied } = *call;
        commit(std::slice::from_ref(&rewrite), &files, &noting)?;
        let text = report(&applied, &rewrite);
        let details = details(&applied, &rewrite);
        let output = ToolOutput::text(text).titled(&rewrite.target.shown).with_details(details);
        Ok((output, vec![rewrite.into_edited()]))
    })
    .await?;
    Ok(seen.follow(output, edited, Occasion::Edit, &context).await)
}

fn report(applied: &[Applied], rewrite: &Rewrite) -> String {
    let mut text = "Edit applied successfully.".to_owned();
    if !rewrite.existed() {
        text.push_str(&format!(" Created {}.", rewrite.target.shown));
    }
    let tolerant =
        |matcher: Option<&str>| matcher.filter(|m| *m != matchers::EXACT).map(str::to_owned);
    if let [one] = applied {
        if one.count > 1 {
            text.push_str(&format!(" Replaced {} occurrences.", one.count));
        }
        if let Some(matcher) = tolerant(one.matcher) {
            text.push_str(&format!(
                " oldString was not exactly in the file; it was taken as the text at line {} ({matcher}).",
                one.line
            ));
        }
        text.push_str(&left(one));
        return text;
    }
    for (at, Applied { matcher, count, line, .. }) in applied.iter().enumerate() {
        let how = tolerant(*matcher).map(|m| format!(" ({m})")).unwrap_or_default();
        let what = match count {
            0 => "created the file".to_owned(),
            1 => format!("line {line}"),
            n => format!("{n} occurrences from line {line}"),
        };
        text.push_str(&format!("\n{}. {what}{how}", at + 1));
        text.push_str(&left(&applied[at]));
    }
    text
}

/// With `replaceAll`, what was not replaced although it looks the same.
fn left(applied: &Applied) -> String {
    if applied.left.is_empty() {
        return String::new();
    }
    let lines: Vec<String> = applied.left.iter().map(usize::to_string).collect();
    format!(" Not replaced, because their blanks differ: lines {}.", lines.join(", "))
}

fn details(applied: &[Applied], rewrite: &Rewrite) -> Value {
    let change = &rewrite.change;
    let path = rewrite.target.path.display().to_string();
    let one =
        |a: &Applied| json!({ "matcher": a.matcher, "replacements": a.count, "line": a.line });
    let first = applied.first();
    json!({
        "filepath": path,
        "diff": change.patch,
        "filediff": {
            "file": path, "patch": change.patch,
            "additions": change.additions, "deletions": change.deletions,
        },
        "diagnostics": {},
        "matcher": first.and_then(|a| a.matcher),
        "replacements": applied.iter().map(|a| a.count).sum::<usize>(),
        "edits": applied.iter().map(one).collect::<Vec<_>>(),
        "additions": change.additions,
        "deletions": change.deletions,
    })
}
