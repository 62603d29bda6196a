//! `tw tree`: the branches of a session.

use serde_json::{Value, json};
use toolwright::Workbench;
use toolwright::llm::Content;
use toolwright::session::{Branch, Entry, Item, MoveReason, Session};

use crate::args::{Shared, Tree, TreeAction};
use crate::exit::{Exit, Problem};
use crate::run::directory;
use crate::terminal::{note, one_line, print};

/// Characters of a prompt or a list of files in one line.
const LINE_CHARS: usize = 72;

pub fn tree(shared: &Shared, options: &Tree) -> Result<Exit, Problem> {
    let workbench = Workbench::open(&directory(shared), shared.trust)?;
    let store = workbench.store();
    let session = match &options.session {
        Some(id) => store.peek(id)?,
        None => store.peek_latest(workbench.workspace.directory())?,
    };
    let id = session.header.session.clone();
    let branches = store.tree(&id)?.branches().map_err(Problem::from)?;
    match &options.action {
        None if options.json => print(&format!("{}\n", as_json(&session, &branches))),
        None => print(&render(&session, &branches)),
        Some(TreeAction::Switch { branch }) => {
            let branch = found(&branches, branch)?;
            if branch.is_current {
                note("tw: the session is on that branch already");
                return Ok(Exit::Done);
            }
            let (mut log, ..) = store.open(&id)?;
            let session = log.move_to(branch.leaf, MoveReason::Switched)?;
            note(&format!("tw: now on {} ({})", branch.leaf.short(), words(branch)));
            if session.left_behind().is_some() {
                note("tw: files stay as they are; the model is told with the next prompt");
            }
        }
        Some(TreeAction::Label { branch, name }) => {
            let branch = found(&branches, branch)?;
            let label = name.trim().to_owned();
            // A name that was given before the branch went on stands further up.
            let targets = if label.is_empty() { branch.named.clone() } else { vec![branch.leaf] };
            let (mut log, ..) = store.open(&id)?;
            for target in targets {
                log.append(&Entry::Labelled { target, label: label.clone() })?;
            }
        }
    }
    Ok(Exit::Done)
}

fn found<'a>(branches: &'a [Branch], given: &str) -> Result<&'a Branch, Problem> {
    Branch::find(branches, given).map_err(|error| Problem::usage(error.to_string()))
}

/// The prompts of the current branch, and where the others leave it.
fn render(session: &Session, branches: &[Branch]) -> String {
    let mut out = format!("{}\n", session.header.session);
    let left = |after: usize| branches.iter().filter(move |b| !b.is_current && b.after == after);
    for (number, item) in session.items().iter().enumerate() {
        left(number).for_each(|branch| out.push_str(&line(branch)));
        if let Item::Prompt(prompt) = item {
            out.push_str(&format!("  #{:<4} {}\n", number + 1, first_words(&prompt.content)));
        }
    }
    left(session.items().len()).for_each(|branch| out.push_str(&line(branch)));
    match branches.iter().find(|branch| branch.is_current) {
        Some(Branch { leaf, label: Some(label), .. }) => {
            out.push_str(&format!("  now {} [{}]\n", leaf.short(), one_line(label, LINE_CHARS)));
        }
        Some(Branch { leaf, .. }) => out.push_str(&format!("  now {}\n", leaf.short())),
        None => {}
    }
    out
}

fn line(branch: &Branch) -> String {
    let label = branch.label.as_deref();
    let label = label.map(|l| format!(" [{}]", one_line(l, LINE_CHARS))).unwrap_or_default();
    format!("    └ {}{label} {}\n", branch.leaf.short(), words(branch))
}

/// What a branch was about.
fn words(branch: &Branch) -> String {
    let count = |n: usize, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
    let mut text = one_line(&branch.title, LINE_CHARS);
    text.push_str(&format!(
        " ({}, {}",
        count(branch.prompts, "prompt"),
        count(branch.steps, "step")
    ));
    if !branch.changed.is_empty() {
        let names = one_line(&branch.changed.join(" "), LINE_CHARS);
        text.push_str(&format!(", changed {names}"));
    }
    if branch.other_effects {
        text.push_str(", ran commands");
    }
    text.push(')');
    text
}

fn first_words(content: &[Content]) -> String {
    let text = content.iter().find_map(|part| match part {
        Content::Text { text } => Some(text.as_str()),
        Content::Media(_) => None,
    });
    one_line(text.unwrap_or("(attached files)"), LINE_CHARS)
}

fn as_json(session: &Session, branches: &[Branch]) -> Value {
    let branch = |b: &Branch| {
        json!({
            "id": b.leaf.to_string(), "current": b.is_current, "label": b.label, "title": b.title,
            "after": b.after, "prompts": b.prompts, "steps": b.steps, "changed": b.changed,
            "ran_commands": b.other_effects, "updated": b.updated,
        })
    };
    let messages = session.items().iter().zip(session.places()).enumerate();
    let message = |(number, (item, place)): (usize, (&Item, &toolwright::session::Place))| {
        let (kind, text) = match item {
            Item::Prompt(prompt) => ("prompt", first_words(&prompt.content)),
            Item::Note(text) => ("note", one_line(text, LINE_CHARS)),
            Item::Step(_) => ("step", String::new()),
        };
        json!({
            "number": number + 1, "id": place.id.to_string(), "kind": kind, "text": text,
            "time": place.time,
        })
    };
    json!({
        "session": session.header.session,
        "branches": branches.iter().map(branch).collect::<Vec<_>>(),
        "messages": messages.map(message).collect::<Vec<_>>(),
    })
}
