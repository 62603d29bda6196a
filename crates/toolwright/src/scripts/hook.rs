//! A plugin as a hook of the engine.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use toolwright_engine::{Hook, Point, Verdict};
use toolwright_script::{Configured, Described, Guard, Limit, Script, ScriptError};

/// How long one hook of a plugin may take.
const DEADLINE: Duration = Duration::from_secs(30);

/// Different things that can go wrong while a plugin listens; more would be noise.
const FAILURES_CAP: usize = 20;

pub(super) struct PluginHook {
    script: Arc<Script>,
    guard: Arc<dyn Guard>,
    name: String,
    /// Known once it has said so.
    hooks: OnceLock<Vec<String>>,
    session: OnceLock<String>,
    /// What went wrong while it listened, each told once.
    failures: Mutex<BTreeSet<String>>,
}

impl PluginHook {
    pub(super) fn new(script: Arc<Script>, guard: Arc<dyn Guard>) -> Self {
        let name = script.path().display().to_string();
        let (hooks, session, failures) = <_>::default();
        Self { script, guard, name, hooks, session, failures }
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

    /// What it makes of the settings that its host shows.
    pub(super) async fn configure(&self) -> Result<Configured, ScriptError> {
        self.script.configure(Some(Arc::clone(&self.guard)), DEADLINE).await
    }

    fn has(&self, name: &str) -> bool {
        self.hooks.get().is_some_and(|hooks| hooks.iter().any(|hook| hook == name))
    }

    async fn run(
        &self,
        name: &str,
        input: &Value,
        output: &Value,
        limit: Limit,
    ) -> Result<Value, ScriptError> {
        let mut input = input.clone();
        if let (Some(input), Some(session)) = (input.as_object_mut(), self.session.get()) {
            input.insert("sessionID".to_owned(), json!(session));
            if let Some(model) = input.get("model").and_then(Value::as_str).map(model) {
                input.insert(
                    "provider".to_owned(),
                    json!({ "id": model["providerID"], "info": { "id": model["providerID"] } }),
                );
                input.insert("model".to_owned(), model);
            }
        }
        self.script.hook(name, &input, output, Some(Arc::clone(&self.guard)), limit).await
    }
}

impl PluginHook {
    async fn tell(&self, kind: &str) -> Result<Value, ScriptError> {
        let info = json!({ "id": self.session.get(), "title": "" });
        let event = json!({ "event": { "type": kind, "properties": { "info": info } } });
        self.run("event", &self.told(event), &Value::Null, Limit::Whole(DEADLINE)).await
    }

    /// Nobody waits for those who listen; what goes wrong with them is told with what comes next.
    fn failed_listening(&self, event: &Value, error: &ScriptError) {
        let kind = event["event"]["type"].as_str().unwrap_or_default();
        let words = format!("hook {} at event {kind}: {error}", self.name);
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        if failures.len() < FAILURES_CAP && failures.insert(words.clone()) {
            self.script.host().notice(words);
        }
    }

    /// What plugins want people to know since the last time.
    fn notice(&self) -> Option<String> {
        let notices = self.script.host().take_notices();
        (!notices.is_empty()).then(|| notices.join("\n"))
    }

    /// An event that says which session it is about, wherever listeners look for that.
    fn told(&self, mut event: Value) -> Value {
        let session = json!(self.session.get());
        let properties = &mut event["event"]["properties"];
        for inner in ["part", "info"] {
            if let Some(inner) = properties.get_mut(inner).and_then(Value::as_object_mut) {
                inner.entry("sessionID").or_insert_with(|| session.clone());
            }
        }
        properties["sessionID"] = session;
        event
    }
}

/// In a turn people see what is asked, and can end all of it: their time is not the hook's. Elsewhere it may
/// be that nobody looks, and a hook that helps to decide must not wait for what waits for it.
fn limit(point: Point) -> Limit {
    match point {
        Point::ChatMessage
        | Point::ChatParams
        | Point::ChatHeaders
        | Point::MessagesTransform
        | Point::TextComplete
        | Point::ToolBefore
        | Point::ToolAfter
        | Point::Compacting => Limit::Own(DEADLINE),
        Point::SessionStart
        | Point::SessionEnd
        | Point::SystemTransform
        | Point::ToolDefinition
        | Point::CommandBefore
        | Point::ShellEnv
        | Point::PermissionAsk
        | Point::Stop
        | Point::Event => Limit::Whole(DEADLINE),
    }
}

/// A model in the words of both of the forms that plugins know.
fn model(spec: &str) -> Value {
    let (provider, id) = spec.split_once('/').unwrap_or_default();
    json!({ "providerID": provider, "modelID": id, "id": id, "name": id, "api": { "id": id } })
}

impl Hook for PluginHook {
    fn name(&self) -> &str {
        &self.name
    }

    fn wants(&self, point: Point) -> bool {
        match point {
            Point::SessionStart => self.has("event"),
            // What was said last is told then.
            Point::SessionEnd => self.has("dispose") || self.has("event"),
            Point::Stop => false,
            _ => self.has(point.name()),
        }
    }

    fn deadline(&self) -> Duration {
        // The script's own clock ends it: that one may stand still while a person is asked.
        Duration::MAX
    }

    fn call<'a>(
        &'a self,
        point: Point,
        input: &'a Value,
        output: &'a Value,
    ) -> BoxFuture<'a, Result<Verdict, String>> {
        async move {
            let limit = limit(point);
            let result = match point {
                Point::SessionEnd if !self.has("dispose") => Ok(Value::Null),
                Point::SessionEnd => self.run("dispose", &json!({}), &Value::Null, limit).await,
                Point::SessionStart => match input["source"].as_str() {
                    Some("startup") => self.tell("session.created").await,
                    Some("resume") => self.tell("session.updated").await,
                    _ => Ok(Value::Null),
                },
                Point::Event => {
                    self.run("event", &self.told(input.clone()), &Value::Null, limit).await
                }
                _ => self.run(point.name(), input, output, limit).await,
            };
            let listens = matches!(point, Point::SessionEnd | Point::SessionStart);
            if point == Point::Event {
                if let Err(error) = &result {
                    self.failed_listening(input, error);
                }
                return Ok(Verdict::default());
            }
            match result {
                Ok(_) if listens => Ok(Verdict { notice: self.notice(), ..Verdict::default() }),
                Ok(output) => Ok(Verdict {
                    output: Some(output),
                    notice: self.notice(),
                    ..Verdict::default()
                }),
                // What throws before a call is how plugins say no.
                Err(ScriptError::Thrown { message, .. })
                    if matches!(
                        point,
                        Point::ToolBefore | Point::ChatMessage | Point::CommandBefore
                    ) =>
                {
                    Ok(Verdict {
                        block: Some(message),
                        notice: self.notice(),
                        ..Verdict::default()
                    })
                }
                Err(error) => Err(error.to_string()),
            }
        }
        .boxed()
    }
}
