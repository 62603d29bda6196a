//! Going back: undo, redo, and an earlier message.

use toolwright::session::images::{Report, UndoOptions};
use toolwright::session::{EntryId, Item};
use toolwright::{Engine, Workbench};

pub(super) enum Step {
    Undo,
    Redo,
    /// To before the prompt with this number, counted from the session's first. Files stay as they are.
    BackTo(usize),
}

/// What was done, or why it was not.
pub(super) async fn step(
    bench: &Workbench,
    engine: Option<&mut Engine>,
    step: Step,
) -> Result<String, String> {
    let engine = engine.ok_or("There is nothing to take back yet")?;
    let workers = bench.store().workers(&engine.session().header);
    let (word, done) = match step {
        Step::Undo => {
            let all = UndoOptions { to: None, files: true, conversation: true, dry_run: false };
            ("Undone", engine.undo(&all, &workers).await)
        }
        Step::Redo => ("Done again", engine.redo(false, &workers).await),
        Step::BackTo(number) => {
            let to = prompt(engine, number).ok_or("That message is no longer there")?;
            let words =
                UndoOptions { to: Some(to), files: false, conversation: true, dry_run: false };
            ("Gone back to before", engine.undo(&words, &workers).await)
        }
    };
    done.map(|report| told(bench, word, &report)).map_err(|error| error.to_string())
}

fn prompt(engine: &Engine, number: usize) -> Option<EntryId> {
    let session = engine.session();
    let items = session.items().iter().zip(session.places());
    let mut prompts = items.filter(|(item, _)| matches!(item, Item::Prompt(_)));
    prompts.nth(number).map(|(_, place)| place.id)
}

fn told(bench: &Workbench, word: &str, report: &Report) -> String {
    let mut text = match report.messages.first() {
        Some(first) => format!("{word}: {first}"),
        None => word.to_owned(),
    };
    let files =
        |count: usize| if count == 1 { "1 file".to_owned() } else { format!("{count} files") };
    if !report.restored.is_empty() {
        text.push_str(&format!("\n{} as before", files(report.restored.len())));
    }
    for conflict in &report.conflicts {
        let path = bench.workspace.relative(&conflict.path);
        text.push_str(&format!("\n{path} was changed by somebody else since and is left alone"));
    }
    for lost in report.lost.iter().chain(&report.failed) {
        let path = bench.workspace.relative(&lost.path);
        text.push_str(&format!("\nnot brought back: {path} ({})", lost.why));
    }
    for command in &report.commands {
        text.push_str(&format!("\nwhat this did elsewhere stays: {command}"));
    }
    text
}
