//! Going back: undo, redo, and an earlier message.

use toolwright::session::images::{Report, UndoOptions};
use toolwright::session::{EntryId, Item};
use toolwright::{Engine, SessionChoice, Workbench};

use crate::app::News;
use crate::blocks::Level;

pub(super) enum Step {
    Undo,
    Redo,
    /// To before the prompt with this number, counted from the last; with its files or without.
    BackTo(usize, bool),
}

/// What was done, with what the person had said, to be said anew; or why it was not.
pub(super) async fn step(
    bench: &Workbench,
    engine: Option<&mut Engine>,
    step: Step,
) -> Result<(String, Option<String>), String> {
    let engine = engine.ok_or("There is nothing to take back yet")?;
    let last = engine.session().last_prompt().map(|prompt| super::past::said(&prompt.content));
    let draft = last.filter(|_| matches!(step, Step::Undo));
    let workers = bench.store().workers(&engine.session().header);
    let (word, done) = match step {
        Step::Undo => {
            let all = UndoOptions { to: None, files: true, conversation: true, dry_run: false };
            ("Undone", engine.undo(&all, &workers).await)
        }
        Step::Redo => ("Done again", engine.redo(false, &workers).await),
        Step::BackTo(number, files) => {
            let to = prompt(engine, number).ok_or("That message is no longer there")?;
            let words = UndoOptions { to: Some(to), files, conversation: true, dry_run: false };
            ("Gone back to before", engine.undo(&words, &workers).await)
        }
    };
    let report = done.map_err(|error| error.to_string())?;
    Ok((told(bench, word, &report), draft))
}

impl super::Host {
    /// A session that another model or agent is to go on with is at rest.
    pub(super) async fn take_up(&mut self) {
        if matches!(self.session, SessionChoice::Id(_))
            && let Err(problem) = self.open().await
        {
            self.say(Level::Problem, problem.to_string(), None).await;
        }
    }

    /// Goes on in a copy that ends before a prompt, counted from the last.
    pub(super) async fn copy_from(&mut self, number: usize) {
        self.take_up().await;
        let Some(table) = &self.desk else {
            return self.say(Level::Notice, "There is nothing to copy yet", None).await;
        };
        let items = table.engine.session().items();
        let mut prompts =
            items.iter().enumerate().rev().filter(|(_, item)| matches!(item, Item::Prompt(_)));
        let Some((at, _)) = prompts.nth(number) else {
            return self.say(Level::Notice, "That message is no longer there", None).await;
        };
        self.close().await;
        (self.fork, self.from) = (true, Some((at + 1).to_string()));
        if let Err(problem) = self.open().await {
            self.say(Level::Problem, problem.to_string(), None).await;
        }
        (self.fork, self.from) = (false, None);
    }

    /// The conversation is another one now.
    pub(super) async fn rewound(&self, draft: Option<String>) {
        let Some(table) = &self.desk else { return };
        let (blocks, _) = super::past::blocks(table.engine.session());
        self.tell(News::Rewound(blocks)).await;
        if let Some(draft) = draft {
            self.tell(News::Draft(draft)).await;
        }
    }
}

fn prompt(engine: &Engine, number: usize) -> Option<EntryId> {
    let session = engine.session();
    let items = session.items().iter().zip(session.places());
    let mut prompts = items.rev().filter(|(item, _)| matches!(item, Item::Prompt(_)));
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
