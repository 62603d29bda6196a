//! When a command ran into the sandbox: a person may let it run once outside, and who cannot be
//! asked is told what stopped it.

use std::path::PathBuf;

use toolwright_proc::sandbox::Stopped;
use toolwright_tool::{Access, Plan, RunContext, ToolError};

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
    let plan = Plan::new(summary, vec![access]).outside_sandbox();
    let Err(refusal) = context.door.ask(&plan).await else { return Ok(()) };
    let had = told(end, running, call.patience).output;
    Err(ToolError::for_model(format!(
        "{had}\nThe sandbox stopped it: {stopped} is not allowed inside. {refusal} Do without, or let \
         a person run it."
    )))
}

/// What the model is told of files that are as they were again.
pub(super) fn told_of(put_back: &[PathBuf]) -> String {
    if put_back.is_empty() {
        return String::new();
    }
    let names: Vec<_> = put_back.iter().map(|path| path.display().to_string()).collect();
    format!(
        "\n[The sandbox does not let commands change these; they are as they were, and what the \
         command made lies beside them as *.stopped-by-sandbox: {}]",
        names.join(", ")
    )
}
