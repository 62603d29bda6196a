//! `tw undo` and `tw redo`.

use std::path::Path;

use serde_json::{Value, json};
use toolwright::session::images::{Conflict, Report, Restored, State, UndoError, UndoOptions};
use toolwright::session::{EntryId, Item, Session, title_of};
use toolwright::{Reverse, ReverseError, SessionChoice, Workbench};

use crate::args::{Redo, Shared, Undo};
use crate::exit::{Exit, Problem};
use crate::run::directory;
use crate::terminal::{harmless, note, one_line, print};

/// Paths named one by one; beyond that their number is told.
const SHOWN_PATHS: usize = 50;

pub async fn undo(shared: &Shared, options: &Undo) -> Result<Exit, Problem> {
    let bench = Workbench::open(&directory(shared), shared.trust)?;
    if options.list {
        return list(&peek(&bench, options.id.as_deref())?, options.json);
    }
    let to = match &options.to {
        Some(named) => Some(message(&peek(&bench, options.id.as_deref())?, named)?),
        None => None,
    };
    let what = UndoOptions {
        to,
        files: !options.conversation,
        conversation: !options.files,
        dry_run: options.dry_run,
    };
    let done = bench.reverse(&choice(options.id.as_deref()), &Reverse::Undo(what)).await;
    tell(&bench, "undone", done, options.json)
}

pub async fn redo(shared: &Shared, options: &Redo) -> Result<Exit, Problem> {
    let bench = Workbench::open(&directory(shared), shared.trust)?;
    let what = Reverse::Redo { dry_run: options.dry_run };
    let done = bench.reverse(&choice(options.id.as_deref()), &what).await;
    tell(&bench, "redone", done, options.json)
}

fn choice(id: Option<&str>) -> SessionChoice {
    id.map_or(SessionChoice::Latest, |id| SessionChoice::Id(id.to_owned()))
}

fn peek(bench: &Workbench, id: Option<&str>) -> Result<Session, Problem> {
    Ok(match id {
        Some(id) => bench.store().peek(id)?,
        None => bench.store().peek_latest(bench.workspace.directory())?,
    })
}

/// Numbered as `tw show` does.
fn list(session: &Session, as_json: bool) -> Result<Exit, Problem> {
    let items = session.items().iter().zip(session.places()).enumerate();
    let messages = items.filter_map(|(n, (item, place))| match item {
        Item::Prompt(prompt) => Some((n + 1, place.id, title_of(&prompt.content))),
        Item::Note(_) | Item::Step(_) => None,
    });
    if as_json {
        let list: Vec<Value> = messages
            .map(|(number, id, title)| json!({ "number": number, "id": id, "title": title }))
            .collect();
        print(&format!("{}\n", Value::Array(list)));
        return Ok(Exit::Done);
    }
    for (number, id, title) in messages {
        print(&format!("#{number:<4} {}  {}\n", id.short(), harmless(&title)));
    }
    Ok(Exit::Done)
}

fn message(session: &Session, named: &str) -> Result<EntryId, Problem> {
    let item = session.find_message(named).map_err(|e| Problem::usage(e.to_string()))?;
    match (&session.items()[item], &session.places()[item]) {
        (Item::Prompt(_), place) => Ok(place.id),
        (Item::Note(_) | Item::Step(_), _) => Err(Problem::usage(format!(
            "{named} is no message of yours; `tw undo --list` shows those that can be gone back to"
        ))),
    }
}

fn tell(
    bench: &Workbench,
    word: &str,
    done: Result<(String, Report), ReverseError>,
    as_json: bool,
) -> Result<Exit, Problem> {
    let (session, report) = done.map_err(problem)?;
    report.notices.iter().for_each(|notice| note(&format!("tw: {}", harmless(notice))));
    let exit = if report.is_complete() { Exit::Done } else { Exit::Failed };
    if as_json {
        let mut value = serde_json::to_value(&report).unwrap_or_default();
        value["session"] = session.into();
        value["complete"] = report.is_complete().into();
        print(&format!("{value}\n"));
        return Ok(exit);
    }
    print(&render(&report, word, &|path| bench.workspace.relative(path)));
    if exit == Exit::Failed {
        note(&format!("tw: not everything could be {word}; see above"));
    }
    Ok(exit)
}

fn problem(error: ReverseError) -> Problem {
    match error {
        ReverseError::Open(error) => error.into(),
        ReverseError::Setup(error) => error.into(),
        ReverseError::Undo(UndoError::Log(error)) => error.into(),
        other @ (ReverseError::Worker { .. } | ReverseError::Undo(_)) => {
            Problem::usage(other.to_string())
        }
    }
}

fn render(report: &Report, word: &str, shown: &dyn Fn(&Path) -> String) -> String {
    const CHARS: usize = 72;
    let mut out = String::new();
    let would = if report.dry_run { format!("would be {word}") } else { word.to_owned() };
    for title in &report.messages {
        out.push_str(&format!("{would}: {}\n", harmless(title)));
    }
    let name = |path: &Path| harmless(&shown(path));
    for Restored { path, to, .. } in report.restored.iter().take(SHOWN_PATHS) {
        let mark = match to {
            State::Absent => "-",
            _ => "↺",
        };
        out.push_str(&format!("  {mark} {}\n", name(path)));
    }
    if report.restored.len() > SHOWN_PATHS {
        out.push_str(&format!("  … and {} more\n", report.restored.len() - SHOWN_PATHS));
    }
    if report.restored.is_empty() && report.is_complete() {
        out.push_str("  no file had to be changed\n");
    }
    for Conflict { path, wanted, left, now, wanted_in, left_in } in &report.conflicts {
        out.push_str(&format!("  ! {}: changed since by somebody else, left alone\n", name(path)));
        for (what, state, copy) in
            [("before", wanted, wanted_in), ("after", left, left_in), ("now", now, &None)]
        {
            let copy = copy.as_ref().map_or(String::new(), |p| format!(" ({})", p.display()));
            out.push_str(&format!("      {what}: {}{copy}\n", harmless(&state.describe())));
        }
    }
    for lost in report.lost.iter().take(SHOWN_PATHS) {
        out.push_str(&format!("  ! {}: cannot be restored: {}\n", name(&lost.path), lost.why));
    }
    for failed in &report.failed {
        out.push_str(&format!("  ! {}: {}\n", name(&failed.path), harmless(&failed.why)));
    }
    for folder in &report.kept_folders {
        out.push_str(&format!("  · {}/ stays: something else is in it\n", name(folder)));
    }
    for head in &report.heads {
        let (before, after) = (harmless(&head.before), harmless(&head.after));
        let repository = name(&head.repository);
        out.push_str(&format!(
            "  · {repository}: git went from {before} to {after}, which stays\n"
        ));
    }
    if !report.commands.is_empty() {
        out.push_str("  · what these did outside the workspace or over the network stays:\n");
        for command in report.commands.iter().take(SHOWN_PATHS) {
            out.push_str(&format!("      {}\n", one_line(command, CHARS)));
        }
    }
    out
}
