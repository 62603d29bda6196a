//! When a command ran into the sandbox: a person may let it run once outside, and who cannot be
//! asked is told what stopped it.

use std::path::PathBuf;

use serde_json::json;
use toolwright_proc::put_back_late;
use toolwright_proc::sandbox::{PutBack, Stopped};
use toolwright_tool::{Access, Plan, RunContext, ToolError, ToolOutput};

use super::running::Running;
use super::{End, Prepared, told};

/// Said of a command that a person let out.
pub(super) const LEFT: &str =
    "\n[The sandbox had stopped it; this is from a second run outside, which was allowed.]";

/// The end of an output, where a command says what it failed of.
const LOOKED_AT_BYTES: usize = 16 << 10;

/// What the sandbox forbade, if that is why it failed.
pub(super) fn stopped(call: &Prepared, end: &End, running: &Running) -> Option<Stopped> {
    let End::Ended(finish) = end else { return None };
    if finish.exit_code() == 0 {
        return None;
    }
    let text = running.capture().recent(LOOKED_AT_BYTES);
    call.sandbox.as_ref()?.stopped(&call.directory, &text)
}

/// Asks whether it may run outside. The error holds what it had said, and what would be needed.
pub(super) async fn ask(
    call: &Prepared,
    stopped: &Stopped,
    running: &Running,
    end: &End,
    context: &RunContext,
) -> Result<(), ToolError> {
    let Prepared { command, directory, .. } = call;
    let access = Access::Execute { command: command.clone(), directory: directory.clone() };
    let summary = format!("{command} outside the sandbox, which stopped {stopped}");
    let plan = Plan::new(summary, vec![access]).outside_sandbox().offered();
    let Err(refusal) = context.door.ask(&plan).await else { return Ok(()) };
    let had = told(end, running, call.patience).output;
    Err(ToolError::for_model(format!(
        "{had}\nThe sandbox stopped it: {stopped} is not allowed inside. {refusal} Do without, ask for \
         it yourself with `outside: true`, or let a person run it."
    )))
}

/// A refusal does not keep back what became of protected files.
pub(super) fn told_with(error: ToolError, done: &PutBack) -> ToolError {
    match error {
        ToolError::ForModel(text) => ToolError::for_model(text + &words(done)),
        other => other,
    }
}

/// Names that are told; a command may have made thousands.
const NAMES_CAP: usize = 20;

/// What the model and the person are told of protected files.
pub(super) fn tell(output: &mut ToolOutput, done: &PutBack) {
    output.output.push_str(&words(done));
    if !done.failed.is_empty() {
        output.details["notPutBack"] = json!(done.failed);
    }
}

/// The same of what happened after commands whose answers were given already.
pub(super) fn tell_late(output: &mut ToolOutput) {
    let late = put_back_late();
    if !late.is_empty() {
        output.output.push_str("\n[Done by something that an earlier command had left behind:]");
        tell(output, &late);
    }
}

fn words(done: &PutBack) -> String {
    let mut text = String::new();
    let mut say = |paths: &[PathBuf], before: &str, after: &str| {
        if !paths.is_empty() {
            text.push_str(&format!("\n[{before}: {}.{after}]", names(paths)));
        }
    };
    let same = "The sandbox does not let commands change these, and they are as they were";
    say(&done.restored, same, "");
    let other = "Commands must not change these, and they could NOT be put back";
    let look = " Tell the user to look at them before anything else is run there.";
    say(&done.failed, other, look);
    say(&done.unwatched, "Not watched; what the command did to these is not known", "");
    say(&done.aside, "What the command made there lies in", "");
    text
}

fn names(paths: &[PathBuf]) -> String {
    let named = paths.iter().take(NAMES_CAP).map(|path| path.display().to_string());
    let mut text = named.collect::<Vec<_>>().join(", ");
    if paths.len() > NAMES_CAP {
        text.push_str(&format!(" and {} more", paths.len() - NAMES_CAP));
    }
    text
}
