//! What a command's answer means.

use serde::Deserialize;
use serde_json::{Value, json};
use toolwright_config::HookEvent;
use toolwright_engine::Verdict;
use toolwright_proc::Ended;
use toolwright_tool::Hint;

use super::event::Told;
use super::names;
use super::run::Finished;

/// Characters of an answer that are put before a model or a person.
const USED_CHARS: usize = 10_000;

/// The status by which a command refuses.
const REFUSED: i32 = 2;

/// Everything that an answer may hold; each event has a use for some of it.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Answer {
    #[serde(rename = "continue")]
    goes_on: Option<bool>,
    stop_reason: Option<String>,
    system_message: Option<String>,
    decision: Option<Decision>,
    reason: Option<String>,
    hook_specific_output: Option<Specific>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Decision {
    Block,
    Approve,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Specific {
    permission_decision: Option<Permission>,
    permission_decision_reason: Option<String>,
    updated_input: Option<Value>,
    additional_context: Option<String>,
    decision: Option<Behaviour>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Permission {
    Allow,
    Deny,
    Ask,
    /// As if nothing had been said.
    Defer,
}

/// The answer to a request for permission.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Behaviour {
    behavior: Permission,
    message: Option<String>,
    updated_input: Option<Value>,
}

/// Fails where the command failed.
pub(super) fn verdict(event: HookEvent, ended: &Finished, told: &Told) -> Result<Verdict, String> {
    match ended.how {
        Ended::Exit(0) => {}
        Ended::Exit(REFUSED) => return Ok(refused(event, &ended.errors)),
        Ended::Exit(status) => return Err(problem(&format!("exit status {status}"), ended)),
        Ended::Signal(signal) => return Err(problem(&format!("ended by signal {signal}"), ended)),
    }
    let output = ended.output.trim();
    let is_context = matches!(
        event,
        HookEvent::UserPromptSubmit | HookEvent::SessionStart | HookEvent::SubagentStart
    );
    if output.starts_with('{') {
        match serde_json::from_str::<Value>(output) {
            Ok(answer) => {
                let answer = serde_json::from_value(answer)
                    .map_err(|e| format!("its answer cannot be read: {e}"))?;
                return said(event, answer, told);
            }
            // Words that begin with a brace.
            Err(_) if is_context => {}
            Err(error) => return Err(format!("its answer is not JSON: {error}")),
        }
    }
    let words = (is_context && !output.is_empty()).then(|| cut(output));
    Ok(Verdict { context: words, ..Verdict::default() })
}

fn problem(how: &str, ended: &Finished) -> String {
    match ended.errors.trim().lines().next() {
        Some(line) => format!("{how}: {}", cut(line)),
        None => how.to_owned(),
    }
}

/// Whether the event can be refused, or a result be objected to.
fn can_refuse(event: HookEvent) -> bool {
    match event {
        HookEvent::PreToolUse
        | HookEvent::PostToolUse
        | HookEvent::PostToolUseFailure
        | HookEvent::PermissionRequest
        | HookEvent::UserPromptSubmit
        | HookEvent::Stop
        | HookEvent::SubagentStop => true,
        HookEvent::Notification
        | HookEvent::SubagentStart
        | HookEvent::SessionStart
        | HookEvent::SessionEnd
        | HookEvent::PreCompact => false,
    }
}

fn refused(event: HookEvent, errors: &str) -> Verdict {
    let mut verdict = Verdict::default();
    let reason = reason([Some(errors.to_owned())]);
    match can_refuse(event) {
        true => object(&mut verdict, event, reason),
        false => verdict.notice = Some(reason),
    }
    verdict
}

fn object(verdict: &mut Verdict, event: HookEvent, reason: String) {
    match event {
        // It has happened: the model is told, and the other hooks still look at it.
        HookEvent::PostToolUse | HookEvent::PostToolUseFailure => {
            let more = verdict.context.take().map_or(String::new(), |c| format!("\n{c}"));
            verdict.context = Some(reason + &more);
        }
        _ => verdict.block = Some(reason),
    }
}

/// The first that says something.
fn reason<const N: usize>(reasons: [Option<String>; N]) -> String {
    let given = reasons.into_iter().flatten().find(|reason| !reason.trim().is_empty());
    given.map_or_else(|| "no reason was given".to_owned(), |reason| cut(&reason))
}

fn said(event: HookEvent, answer: Answer, told: &Told) -> Result<Verdict, String> {
    let Answer { goes_on, stop_reason, system_message, decision, reason: why, .. } = answer;
    let Specific {
        permission_decision,
        permission_decision_reason,
        updated_input,
        additional_context,
        decision: behaviour,
    } = answer.hook_specific_output.unwrap_or_default();
    let mut verdict = Verdict {
        context: additional_context.filter(|c| !c.trim().is_empty()).map(|c| cut(&c)),
        notice: system_message.map(|m| cut(&m)),
        ..Verdict::default()
    };
    let stops = goes_on == Some(false);
    let blocks = decision == Some(Decision::Block);
    match event {
        HookEvent::PreToolUse => {
            let permission = permission_decision.or(match decision {
                Some(Decision::Block) => Some(Permission::Deny),
                Some(Decision::Approve) => Some(Permission::Allow),
                None => None,
            });
            match permission {
                Some(Permission::Deny) => {
                    verdict.block = Some(reason([permission_decision_reason, why]));
                }
                Some(Permission::Allow) => verdict.hint = Hint::Allow,
                Some(Permission::Ask) => verdict.hint = Hint::Ask,
                Some(Permission::Defer) | None => {}
            }
            verdict.output = updated_input.map(|input| changed(&input, told)).transpose()?;
        }
        HookEvent::PermissionRequest => match behaviour {
            // It agrees to something else than what would be done.
            Some(Behaviour { updated_input: Some(_), .. }) => {
                return Err("updatedInput cannot be used here; use PreToolUse".to_owned());
            }
            Some(Behaviour { behavior: Permission::Allow, .. }) => {
                verdict.output = Some(json!({ "status": "allow" }));
            }
            Some(Behaviour { behavior: Permission::Deny, message, .. }) => {
                verdict.block = Some(reason([message, why]));
            }
            Some(_) | None => {}
        },
        // Told to stop for good, nobody is sent back to work.
        HookEvent::Stop | HookEvent::SubagentStop if stops => {}
        _ if blocks && can_refuse(event) => object(&mut verdict, event, reason([why])),
        _ => {}
    }
    if stops {
        let words = reason([stop_reason]);
        match event {
            HookEvent::PreToolUse | HookEvent::UserPromptSubmit => {
                verdict.block.get_or_insert_with(|| words.clone());
            }
            _ => {}
        }
        if told.call.is_some() {
            verdict.stop = Some(words);
        }
    }
    Ok(verdict)
}

fn changed(input: &Value, told: &Told) -> Result<Value, String> {
    let Some(call) = told.call.as_ref().filter(|_| input.is_object()) else {
        return Err("updatedInput is not an object".to_owned());
    };
    let told = &told.text["tool_input"];
    let arguments = names::arguments_back(&call.tool, input, told, &call.arguments);
    Ok(json!({ "args": arguments }))
}

fn cut(text: &str) -> String {
    let text = text.trim();
    match text.char_indices().nth(USED_CHARS) {
        Some((end, _)) => format!("{}… (cut at {USED_CHARS} characters)", &text[..end]),
        None => text.to_owned(),
    }
}
