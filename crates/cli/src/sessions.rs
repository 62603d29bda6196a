//! `tw sessions` and `tw show`.

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use toolwright::Workbench;
use toolwright::llm::Content;
use toolwright::session::{Call, Ending, Item, Slot, Step, StepBlock, Summary};

use crate::args::{Sessions, Shared, Show};
use crate::exit::{Exit, Problem};
use crate::run::directory;
use crate::terminal::{harmless, note, one_line, print};

pub fn list(shared: &Shared, options: &Sessions) -> Result<Exit, Problem> {
    let workbench = Workbench::open(&directory(shared), shared.trust)?;
    let here = (!options.all).then(|| workbench.workspace.directory());
    let mut found = workbench.store().list(here);
    if let Some(words) = options.search.as_deref().map(str::to_lowercase) {
        found.retain(|s| s.title.to_lowercase().contains(&words));
    }
    if options.json {
        let list: Vec<Value> = found.iter().map(as_json).collect();
        print(&format!("{}\n", Value::Array(list)));
        return Ok(Exit::Done);
    }
    if found.is_empty() {
        let hint =
            if options.all { "" } else { " in this folder (--all lists those of other folders)" };
        note(&format!("There are no sessions{hint}."));
        return Ok(Exit::Done);
    }
    let mut out = String::new();
    for session in &found {
        let when = local_time(session.updated);
        let place = if options.all { format!("  {}", session.directory) } else { String::new() };
        out.push_str(&format!("{}  {when}  {}{place}\n", session.id, harmless(&session.title)));
    }
    print(&out);
    Ok(Exit::Done)
}

fn as_json(session: &Summary) -> Value {
    let since = session.updated.duration_since(UNIX_EPOCH).unwrap_or_default();
    json!({
        "id": session.id, "title": session.title, "directory": session.directory,
        "updated": u64::try_from(since.as_millis()).unwrap_or(u64::MAX), "path": session.path,
    })
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
    print(&out);
    Ok(Exit::Done)
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
            let mark = match outcome.ending {
                Ending::Completed => "✓",
                Ending::Failed => "✗",
                Ending::Denied => "⊘",
                Ending::Skipped | Ending::Interrupted => "–",
            };
            let why = match outcome.ending {
                Ending::Completed => String::new(),
                _ => format!(" – {}", one_line(&outcome.output, CHARS)),
            };
            format!("{mark} {} {}{why}", outcome.tool, one_line(&outcome.title, CHARS))
        }
    }
}
