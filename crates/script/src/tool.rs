//! A tool of a script's, as the registry takes it.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use toolwright_llm::Media;
use toolwright_tool::{Door, Plan, Progress, RunContext, ToolError, ToolOutput};

use crate::host::{Guard, Permit};
use crate::patience::Limit;
use crate::realm::{CallTerms, ScriptError};
use crate::script::{Definition, Script};
use crate::written::{Work, Written};

/// One of a script's tools.
pub type ScriptTool = Written<ScriptWork>;

pub struct ScriptWork {
    script: Arc<Script>,
    definition: Definition,
    /// Which session and agent it is for.
    session: String,
    agent: String,
}

impl ScriptTool {
    pub fn new(script: Arc<Script>, definition: Definition, session: &str, agent: &str) -> Self {
        let (session, agent) = (session.to_owned(), agent.to_owned());
        Self(Arc::new(ScriptWork { script, definition, session, agent }))
    }
}

impl ScriptWork {
    async fn call(
        self: Arc<Self>,
        arguments: Value,
        context: RunContext,
    ) -> Result<ToolOutput, ToolError> {
        let workspace = &context.workspace;
        let told = json!({
            "sessionID": self.session, "messageID": "", "agent": self.agent,
            "directory": workspace.directory(), "worktree": workspace.worktree(),
        });
        let guard = Through { door: context.door.clone(), progress: context.progress.clone() };
        let terms = CallTerms {
            guard: Some(Arc::new(guard)),
            // The call itself has no more.
            limit: Limit::Whole(context.deadline),
            cancel: context.cancel.clone(),
        };
        let called =
            self.script.call_tool_aside(&self.definition.name, arguments, told, terms).await;
        let (result, aside) = called;
        let note = aside.note.unwrap_or_default();
        let logs = aside.log;
        match result {
            Ok(value) => Ok(output_of(&value, &note, logs)),
            Err(ScriptError::Stopped) if context.cancel.is_cancelled() => {
                let said = "Interrupted before it gave a result.".to_owned();
                let text =
                    if logs.is_empty() { said } else { format!("{said}\n{}", logs.join("\n")) };
                Ok(ToolOutput { interrupted: true, ..ToolOutput::text(text) })
            }
            Err(ScriptError::Thrown { message, code }) if code.as_deref() == Some("ARGUMENTS") => {
                let name = &self.definition.name;
                Err(ToolError::ForModel(format!(
                    "The arguments of {name} are not right:\n{message}"
                )))
            }
            Err(error) => {
                let mut said = format!("{} failed: {error}", self.definition.name);
                if !logs.is_empty() {
                    said.push_str(&format!("\n\nIt had said:\n{}", logs.join("\n")));
                }
                Err(ToolError::ForModel(said))
            }
        }
    }
}

impl Work for ScriptWork {
    fn definition(&self) -> &Definition {
        &self.definition
    }

    fn summary(&self, arguments: &Value) -> String {
        let name = &self.definition.name;
        let shown = arguments.as_object().and_then(|a| a.values().find_map(Value::as_str));
        match shown.and_then(|text| text.lines().next()) {
            Some(text) => format!("{name}: {}", text.chars().take(80).collect::<String>()),
            None => name.clone(),
        }
    }

    fn run(
        self: Arc<Self>,
        arguments: Value,
        context: RunContext,
    ) -> BoxFuture<'static, Result<ToolOutput, ToolError>> {
        self.call(arguments, context).boxed()
    }
}

/// Bytes of what a tool says beside its output.
const DETAILS_CAP_BYTES: usize = 256 << 10;

/// A script asks by the call's own door.
struct Through {
    door: Door,
    progress: Progress,
}

impl Guard for Through {
    fn ask<'a>(&'a self, plan: Plan) -> BoxFuture<'a, Result<Permit, String>> {
        let asked = async move { self.door.ask(&plan).await };
        asked.map(|answer| answer.map(|()| Permit::default()).map_err(|e| e.to_string())).boxed()
    }

    fn progress(&self, text: &str) {
        self.progress.update(text);
    }
}

pub(crate) fn output_of(value: &Value, note: &Value, logs: Vec<String>) -> ToolOutput {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let title = text(&value["title"]).or_else(|| text(&note["title"])).unwrap_or_default();
    let mut details = match (&value["metadata"], &note["metadata"]) {
        (Value::Object(own), _) | (_, Value::Object(own)) => own.clone(),
        _ => serde_json::Map::new(),
    };
    if !logs.is_empty() {
        details.insert("logs".to_owned(), json!(logs));
    }
    // What stands beside a result is kept with the session, for people.
    if Value::Object(details.clone()).to_string().len() > DETAILS_CAP_BYTES {
        details.clear();
        details.insert("note".to_owned(), json!("too large to be kept"));
    }
    let attachments =
        value["attachments"].as_array().into_iter().flatten().filter_map(media).collect();
    ToolOutput {
        output: text(&value["output"]).unwrap_or_default(),
        title,
        details: if details.is_empty() { Value::Null } else { Value::Object(details) },
        attachments,
        ..ToolOutput::default()
    }
}

/// `{mime, url: "data:…;base64,…"}`.
fn media(given: &Value) -> Option<Media> {
    let (head, data) = given["url"].as_str()?.strip_prefix("data:")?.split_once(',')?;
    let mime = given["mime"].as_str().unwrap_or_else(|| head.split(';').next().unwrap_or_default());
    // What is no base64 would fail at the provider, and take the whole conversation with it.
    STANDARD.decode(data).ok()?;
    let name = given["filename"].as_str().map(str::to_owned);
    Some(Media { mime: mime.to_owned(), base64: data.into(), name })
}
