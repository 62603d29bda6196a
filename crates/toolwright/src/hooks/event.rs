//! What a command is told, in the fields that commands written for Claude Code read.

use serde_json::{Value, json};
use toolwright_config::HookEvent;

use super::{Place, names};

/// An event as it is told.
pub(super) struct Told {
    pub(super) text: Value,
    /// What a matcher is held against; nothing where there is no choice.
    pub(super) subjects: Vec<String>,
    /// The call that it is about.
    pub(super) call: Option<Call>,
}

pub(super) struct Call {
    pub(super) tool: String,
    /// As the model gave them.
    pub(super) arguments: Value,
}

/// Nothing, where the point was reached for another reason than this event.
pub(super) fn tell(event: HookEvent, place: &Place, input: &Value, output: &Value) -> Option<Told> {
    let mut told = Told { text: common(event, place), subjects: Vec::new(), call: None };
    match event {
        HookEvent::PreToolUse => told.about_call(place, input, &output["args"]),
        HookEvent::PostToolUse | HookEvent::PostToolUseFailure => {
            let failed = input["failed"] == true;
            if failed != (event == HookEvent::PostToolUseFailure) {
                return None;
            }
            told.about_call(place, input, &input["args"]);
            if failed {
                told.text["error"] = output["output"].clone();
            } else {
                let response = response(input, &told.text["tool_input"], output);
                told.text["tool_response"] = response;
            }
        }
        HookEvent::PermissionRequest | HookEvent::Notification => {
            // Somebody has decided already.
            if output["status"] != "ask" {
                return None;
            }
            if event == HookEvent::PermissionRequest {
                told.about_call(place, input, &input["args"]);
            } else {
                let what = input["summary"].as_str().unwrap_or_default();
                let tool = names::tool(text(input, "tool"), &place.servers);
                told.text["message"] = format!("{tool} needs your permission: {what}").into();
                told.subject("notification_type", "permission_prompt");
            }
        }
        HookEvent::UserPromptSubmit => told.text["prompt"] = words(&output["parts"]).into(),
        HookEvent::Stop | HookEvent::SubagentStop => {
            told.text["stop_hook_active"] = input["stop_hook_active"].clone();
            told.text["last_assistant_message"] = input["answer"].clone();
            told.subjects.extend(place.worker.clone());
        }
        HookEvent::SubagentStart if input["source"] == "compact" => return None,
        HookEvent::SubagentStart => told.subjects.extend(place.worker.clone()),
        HookEvent::SessionStart => told.subject("source", text(input, "source")),
        HookEvent::SessionEnd => told.subject("reason", text(input, "reason")),
        HookEvent::PreCompact => {
            let asked = text(input, "reason") == "asked for";
            told.subject("trigger", if asked { "manual" } else { "auto" });
            told.text["custom_instructions"] = "".into();
        }
    }
    Some(told)
}

impl Told {
    /// A field that the event can be chosen by.
    fn subject(&mut self, field: &str, value: &str) {
        self.text[field] = value.into();
        self.subjects.push(value.to_owned());
    }

    fn about_call(&mut self, place: &Place, input: &Value, arguments: &Value) {
        let tool = text(input, "tool").to_owned();
        let theirs = names::tool(&tool, &place.servers);
        self.text["tool_name"] = theirs.clone().into();
        self.text["tool_input"] = names::arguments(&tool, arguments, &place.workspace);
        if let Some(id) = input.get("callID") {
            self.text["tool_use_id"] = id.clone();
        }
        self.subjects = vec![theirs, tool.clone()];
        self.call = Some(Call { tool, arguments: arguments.clone() });
    }
}

fn common(event: HookEvent, place: &Place) -> Value {
    let mut text = json!({
        "session_id": place.session,
        "transcript_path": place.transcript,
        "cwd": place.workspace.directory(),
        "permission_mode": "default",
        "hook_event_name": event.name(),
    });
    if let Some(agent) = &place.worker {
        text["agent_id"] = place.session.clone().into();
        text["agent_type"] = agent.clone().into();
    }
    text
}

/// A result, with the fields that hooks look for in those of the tools that they know.
fn response(input: &Value, told: &Value, output: &Value) -> Value {
    let mut response = output.clone();
    match text(input, "tool") {
        "bash" => {
            response["stdout"] = output["output"].clone();
            response["stderr"] = "".into();
            response["interrupted"] = false.into();
        }
        "read" | "write" | "edit" | "multiedit" => {
            response["filePath"] = told["file_path"].clone();
            response["success"] = true.into();
        }
        _ => {}
    }
    response
}

fn words(parts: &Value) -> String {
    let texts = parts.as_array().into_iter().flatten().filter_map(|part| part["text"].as_str());
    texts.collect::<Vec<_>>().join("\n")
}

fn text<'a>(input: &'a Value, key: &str) -> &'a str {
    input[key].as_str().unwrap_or_default()
}
