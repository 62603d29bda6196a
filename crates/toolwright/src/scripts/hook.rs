//! A plugin as a hook of the engine.

use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use toolwright_engine::{Hook, Point, Verdict};
use toolwright_script::{Described, Guard, Script, ScriptError};

/// How long one hook of a plugin may take.
const DEADLINE: Duration = Duration::from_secs(30);

pub(super) struct PluginHook {
    script: Arc<Script>,
    guard: Arc<dyn Guard>,
    name: String,
    /// Known once it has said so.
    hooks: OnceLock<Vec<String>>,
    session: OnceLock<String>,
}

impl PluginHook {
    pub(super) fn new(script: Arc<Script>, guard: Arc<dyn Guard>) -> Self {
        let name = script.path().display().to_string();
        Self { script, guard, name, hooks: OnceLock::new(), session: OnceLock::new() }
    }

    pub(super) fn script(&self) -> &Arc<Script> {
        &self.script
    }

    pub(super) fn belongs_to(&self, session: &str) {
        self.session.get_or_init(|| session.to_owned());
    }

    pub(super) async fn describe(&self, memory: Option<&Path>) -> Result<Described, ScriptError> {
        let described = self.script.describe(memory, Some(Arc::clone(&self.guard))).await?;
        self.hooks.get_or_init(|| described.hooks.clone());
        Ok(described)
    }

    fn has(&self, name: &str) -> bool {
        self.hooks.get().is_some_and(|hooks| hooks.iter().any(|hook| hook == name))
    }

    async fn run(&self, name: &str, input: &Value, output: &Value) -> Result<Value, ScriptError> {
        let mut input = input.clone();
        if let (Some(input), Some(session)) = (input.as_object_mut(), self.session.get()) {
            input.insert("sessionID".to_owned(), json!(session));
        }
        self.script.hook(name, &input, output, Some(Arc::clone(&self.guard)), DEADLINE).await
    }
}

/// Points that plugins know as events.
fn as_event(point: Point) -> Option<&'static str> {
    match point {
        Point::SessionStart => Some("session.created"),
        Point::SessionEnd => Some("session.deleted"),
        _ => None,
    }
}

impl Hook for PluginHook {
    fn name(&self) -> &str {
        &self.name
    }

    fn wants(&self, point: Point) -> bool {
        match point {
            Point::SessionStart => self.has("event"),
            Point::SessionEnd => self.has("dispose"),
            Point::Stop => false,
            _ => self.has(point.name()),
        }
    }

    fn deadline(&self) -> Duration {
        // The script's own is what people should hear of.
        DEADLINE + Duration::from_secs(1)
    }

    fn call<'a>(
        &'a self,
        point: Point,
        input: &'a Value,
        output: &'a Value,
    ) -> BoxFuture<'a, Result<Verdict, String>> {
        async move {
            if point == Point::SessionEnd {
                self.run("dispose", &json!({}), &Value::Null).await.map_err(|e| e.to_string())?;
                return Ok(Verdict::default());
            }
            let result = match as_event(point) {
                Some(kind) => {
                    let properties = json!({ "info": { "id": self.session.get() } });
                    let event = json!({ "event": { "type": kind, "properties": properties } });
                    self.run("event", &event, &Value::Null).await
                }
                None if point == Point::Event => {
                    let mut event = input.clone();
                    event["event"]["properties"]["sessionID"] = json!(self.session.get());
                    self.run("event", &event, &Value::Null).await
                }
                None => self.run(point.name(), input, output).await,
            };
            match result {
                Ok(_) if point == Point::Event || as_event(point).is_some() => {
                    Ok(Verdict::default())
                }
                Ok(output) => Ok(Verdict { output: Some(output), ..Verdict::default() }),
                // What throws before a call is how plugins say no.
                Err(ScriptError::Thrown { message, .. })
                    if matches!(point, Point::ToolBefore | Point::ChatMessage) =>
                {
                    Ok(Verdict { block: Some(message), ..Verdict::default() })
                }
                Err(error) => Err(error.to_string()),
            }
        }
        .boxed()
    }
}
