//! `tw sessions` and `tw show`.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use toolwright::Workbench;
use toolwright::llm::Content;
use toolwright::session::{
    Call, Ending, FOUND_END, FOUND_START, Index, Item, Listed, OpenError, Slot, Step, StepBlock,
    Store, Wanted,
};

use crate::args::{Sessions, SessionsAction, Shared, Show};
use crate::exit::{Exit, Problem};
use crate::run::directory;
use crate::terminal::{Style, counted, harmless, note, one_line, print};

pub fn sessions(shared: &Shared, options: &Sessions) -> Result<Exit, Problem> {
    let workbench = Workbench::open(&directory(shared), shared.trust)?;
    let store = workbench.store();
    let here = workbench.workspace.directory().display().to_string();
    match &options.action {
        None => list(&store, here, options),
        Some(SessionsAction::Reindex) => {
            let count = Index::rebuild(&store)?.count()?;
            note(&format!("Read {}.", counted(count, "session")));
            Ok(Exit::Done)
        }
        Some(SessionsAction::Delete { id }) => each(id, "Removed", |id| store.delete(id)),
        Some(SessionsAction::Archive { id }) => each(id, "Archived", |id| store.archive(id, true)),
        Some(SessionsAction::Unarchive { id }) => {
            each(id, "Listed again", |id| store.archive(id, false))
        }
        Some(SessionsAction::Rename { id, title }) => {
            let title = title.join(" ");
            if title.trim().is_empty() {
                return Err(Problem::usage("a session needs a name: tw sessions rename ID TITLE"));
            }
            each(std::slice::from_ref(id), "Renamed", |id| store.rename(id, &title))
        }
        Some(SessionsAction::Prune { older_than, dry_run, all }) => {
            let age = age(older_than)?;
            let directory = (!all).then_some(here);
            prune(&store, directory, age, *dry_run)
        }
    }
}

/// What was done with each is said as it is done.
fn each(
    ids: &[String],
    done: &str,
    act: impl Fn(&str) -> Result<String, OpenError>,
) -> Result<Exit, Problem> {
    for id in ids {
        let whole = act(id)?;
        note(&format!("{done}: {whole}"));
    }
    Ok(Exit::Done)
}

/// `90d`, `12w`, `36h`.
fn age(text: &str) -> Result<Duration, Problem> {
    let bad = || {
        let how = "write a number with h, d or w behind it, for example 90d";
        Problem::usage(format!("\"{text}\" is no age: {how}"))
    };
    let unit = text.chars().last().ok_or_else(bad)?;
    let (number, unit) = text.split_at(text.len() - unit.len_utf8());
    let hours = match unit {
        "h" => 1,
        "d" => 24,
        "w" => 7 * 24,
        _ => return Err(bad()),
    };
    let number: u64 = number.parse().map_err(|_| bad())?;
    let seconds = number.checked_mul(hours * 60 * 60).ok_or_else(bad)?;
    Ok(Duration::from_secs(seconds))
}

fn prune(
    store: &Store,
    directory: Option<String>,
    age: Duration,
    dry_run: bool,
) -> Result<Exit, Problem> {
    let wanted = Wanted { directory, ..Wanted::default() };
    let oldest = SystemTime::now().checked_sub(age).unwrap_or(UNIX_EPOCH);
    let old = |listed: &Listed| time_of(listed.updated) < oldest;
    let found: Vec<Listed> = Index::open(store)?.list(&wanted)?.into_iter().filter(old).collect();
    let mut removed = 0;
    for listed in &found {
        let title = harmless(&listed.title);
        let when = local_time(time_of(listed.updated));
        if dry_run {
            note(&format!("Would remove: {}  {when}  {title}", listed.id));
            continue;
        }
        match store.delete(&listed.id) {
            Ok(id) => {
                removed += 1;
                note(&format!("Removed: {id}  {when}  {title}"));
            }
            // One that is in use is not old.
            Err(error) => note(&format!("! {error}")),
        }
    }
    if found.is_empty() {
        note("No session is that old.");
    } else if !dry_run {
        note(&format!("Removed {removed} of {} old sessions.", found.len()));
    }
    Ok(if dry_run || removed == found.len() { Exit::Done } else { Exit::Failed })
}

fn list(store: &Store, here: String, options: &Sessions) -> Result<Exit, Problem> {
    let wanted = Wanted {
        directory: (!options.all).then_some(here),
        search: options.search.clone(),
        archived: options.archived,
        limit: options.limit.map(std::num::NonZeroUsize::get),
    };
    let found = Index::open(store)?.list(&wanted)?;
    if options.json {
        let list: Vec<Value> = found.iter().map(as_json).collect();
        print(&format!("{}\n", Value::Array(list)));
        return Ok(Exit::Done);
    }
    if found.is_empty() {
        let hint =
            if options.all { "" } else { " in this folder (--all lists those of other folders)" };
        let what = match (options.archived, &options.search) {
            (_, Some(words)) => format!("sessions that say \"{words}\""),
            (true, None) => "archived sessions".to_owned(),
            (false, None) => "sessions".to_owned(),
        };
        note(&format!("There are no {what}{hint}."));
        return Ok(Exit::Done);
    }
    let style = Style::for_stdout();
    let mut out = String::new();
    for session in &found {
        let when = local_time(time_of(session.updated));
        let place = if options.all { format!("  {}", session.directory) } else { String::new() };
        let count = style.dim(&format!("({})", counted(session.messages, "message")));
        out.push_str(&format!(
            "{}  {when}  {} {count}{place}\n",
            session.id,
            harmless(&session.title)
        ));
        if let Some(snippet) = &session.snippet {
            out.push_str(&format!("    {}\n", marked(snippet, style)));
        }
    }
    print(&out);
    Ok(Exit::Done)
}

/// One line, with what was found in it made bold.
fn marked(snippet: &str, style: Style) -> String {
    let mut out = String::new();
    for (at, piece) in snippet.split(FOUND_START).enumerate() {
        match piece.split_once(FOUND_END) {
            Some((found, rest)) if at > 0 => {
                out.push_str(&style.bold(&harmless(found)));
                out.push_str(&harmless(rest));
            }
            _ => out.push_str(&harmless(piece)),
        }
    }
    out.replace(['\n', '\t'], " ")
}

fn as_json(session: &Listed) -> Value {
    let mut row = json!({
        "id": session.id, "title": session.title, "directory": session.directory,
        "created": session.created, "updated": session.updated, "messages": session.messages,
        "tokens": session.usage, "cost": session.cost, "models": session.models,
        "archived": session.archived, "path": session.path,
    });
    if let Some(snippet) = &session.snippet {
        row["snippet"] = json!(snippet.replace([FOUND_START, FOUND_END], ""));
    }
    row
}

fn time_of(milliseconds: u64) -> SystemTime {
    UNIX_EPOCH.checked_add(Duration::from_millis(milliseconds)).unwrap_or(UNIX_EPOCH)
}

fn local_time(time: SystemTime) -> String {
    match jiff::Timestamp::try_from(time) {
        Ok(stamp) => {
            let zoned = stamp.to_zoned(jiff::tz::TimeZone::system());
            zoned.strftime("%Y-%m-%d %H:%M").to_string()
        }
        Err(_) => "????-??-?? ??:??".to_owned(),
    }
}

pub fn show(shared: &Shared, options: &Show) -> Result<Exit, Problem> {
    let workbench = Workbench::open(&directory(shared), shared.trust)?;
    let store = workbench.store();
    let session = match &options.id {
        Some(id) => store.peek(id)?,
        None => store.peek_latest(workbench.workspace.directory())?,
    };
    let mut out = format!("{}  {}\n", session.header.session, session.header.directory);
    if let Some(original) = &session.header.forked_from {
        out.push_str(&format!("a copy of {original}\n"));
    }
    if let Some(imported) = session.imported() {
        out.push_str(&format!("imported from {} {}\n", imported.from, harmless(&imported.id)));
    }
    if let Some(format) = session.newer_format {
        note(&format!(
            "! a newer version of tw wrote this session (format {format}): it can only be looked at, \
             and parts may be missing"
        ));
    }
    for (number, (item, place)) in session.items().iter().zip(session.places()).enumerate() {
        let text = match item {
            Item::Prompt(prompt) => format!("> {}\n", quoted(&prompt.content)),
            Item::Note(text) => format!("(note to the model: {})\n", harmless(text)),
            Item::Step(step) => render_step(step),
        };
        // What `tw run --from` takes.
        out.push_str(&format!("\n#{} {}\n", number + 1, place.id.short()));
        out.push_str(text.trim_start_matches('\n'));
    }
    out.push_str(&todos(session.standing().todos()));
    out.push_str(&crate::jobs::report(&session, store.is_in_use(&session.header)));
    // Names of tools and files come from anywhere too.
    print(&harmless(&out));
    Ok(Exit::Done)
}

/// What is to be done, as the conversation left it.
fn todos(list: Option<&Value>) -> String {
    const CHARS: usize = 120;
    let mut out = String::new();
    for todo in list.and_then(Value::as_array).into_iter().flatten() {
        let mark = match todo["status"].as_str() {
            Some("completed") => "✓",
            Some("in_progress") => "▸",
            Some("cancelled") => "–",
            _ => "·",
        };
        let what = one_line(todo["content"].as_str().unwrap_or_default(), CHARS);
        out.push_str(&format!("  {mark} {what}\n"));
    }
    if out.is_empty() { out } else { format!("\nTo do:\n{out}") }
}

fn quoted(content: &[Content]) -> String {
    let parts = content.iter().map(|part| match part {
        Content::Text { text } => harmless(text).trim_end().replace('\n', "\n> "),
        Content::Media(media) => {
            format!("[{} {}]", media.mime, media.name.as_deref().unwrap_or("attached"))
        }
    });
    parts.collect::<Vec<_>>().join("\n> ")
}

fn render_step(step: &Step) -> String {
    let mut out = String::new();
    for block in &step.blocks {
        match block {
            StepBlock::Text { text, .. } if text.trim().is_empty() => {}
            StepBlock::Text { text, .. } => {
                out.push_str(&format!("\n{}\n", harmless(text).trim_end()))
            }
            StepBlock::Reasoning { .. } => {}
            StepBlock::ServerTool { name, .. } => {
                out.push_str(&format!("  · {} (by the provider)\n", harmless(name)));
            }
            StepBlock::Call(call) => out.push_str(&format!("  {}\n", render_call(call))),
        }
    }
    if let Some(failure) = &step.failure {
        out.push_str(&format!("\n(failed: {})\n", harmless(&failure.message)));
    } else if step.finish.is_none() {
        out.push_str("\n(interrupted here)\n");
    }
    out
}

fn render_call(call: &Call) -> String {
    const CHARS: usize = 120;
    match call.slot() {
        Slot::Pending => format!("– {} not started", call.name),
        Slot::Running { summary, .. } => {
            format!("– {} {} (interrupted)", call.name, one_line(summary, CHARS))
        }
        Slot::Settled(outcome) => {
            let exit = outcome.details["exit"].as_i64().filter(|status| *status != 0);
            let mark = match outcome.ending {
                // A command that did not do what it was to do is no success to people.
                Ending::Completed if exit.is_some() => "✗",
                Ending::Completed => "✓",
                Ending::Failed => "✗",
                Ending::Denied => "⊘",
                Ending::Skipped | Ending::Interrupted => "–",
            };
            let why = match outcome.ending {
                Ending::Completed => {
                    exit.map_or(String::new(), |status| format!(" – exit code {status}"))
                }
                _ => format!(" – {}", one_line(&outcome.output, CHARS)),
            };
            format!("{mark} {} {}{why}", outcome.tool, one_line(&outcome.title, CHARS))
        }
    }
}
