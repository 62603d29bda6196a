//! Where others may look in and change things: before and after each stage, in the order configured.
//!
//! A hook gets what is known (`input`) and what it may change (`output`), both as JSON, so that a
//! function of a program, a script and a command are the same to the engine. Whatever a hook does
//! wrong (fails, hangs, panics) is reported and counts as its own setting says.

mod calls;
mod messages;
mod outside;
mod request;
mod told;

use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock, RwLockReadGuard};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::Value;
use toolwright_llm::{Content, Media};
use toolwright_tool::Hint;

/// How long a hook may take when it does not say.
const USUAL_DEADLINE: Duration = Duration::from_secs(60);

/// How long listeners are waited for when a session is left.
const CATCH_UP: Duration = Duration::from_secs(5);

/// Reports that wait to be shown.
const NOTICES_CAP: usize = 64;

/// Where hooks are called, with the forms of `input` and `output`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Point {
    /// `{source}` where it is `startup`, `resume` or `compact`; context that is given goes to the
    /// model.
    SessionStart,
    /// Whoever worked with the session leaves it: `{reason}`. Nothing can be changed.
    SessionEnd,
    /// A prompt before it is recorded: `{agent, model}`, `{parts}`.
    ChatMessage,
    /// Each request's settings: `{agent, model}`, `{temperature, topP, maxOutputTokens}`.
    ChatParams,
    /// Each request's own headers: `{agent, model}`, `{headers: {…}}`.
    ChatHeaders,
    /// What each request says of the conversation: `{}`, `{messages: [{info, parts}]}`. The record
    /// stays as it is.
    MessagesTransform,
    /// A text of an answer before it is recorded: `{partID}`, `{text}`.
    TextComplete,
    /// A tool as the model is shown it: `{toolID}`, `{description, parameters}`.
    ToolDefinition,
    /// A command of people's before it is said: `{command, arguments}`, `{parts}`.
    CommandBefore,
    /// What a shell command sees beside its environment: `{cwd}`, `{env: {…}}`.
    ShellEnv,
    /// The system prompt of a new session: `{agent, model}`, `{system: […]}`.
    SystemTransform,
    /// A call that has been read: `{tool, callID}`, `{args}`.
    ToolBefore,
    /// A call that has run: `{tool, callID, args}`, `{title, output, metadata}`.
    ToolAfter,
    /// Before a person is asked: `{tool, args, summary, permissions}`, `{status: ask|allow|deny}`.
    PermissionAsk,
    /// Before a summary is asked for: `{reason}`, `{context: […], prompt?}`.
    Compacting,
    /// The model has no more to do: `{answer}`; blocking it makes it go on with the reason.
    Stop,
    /// Something was told to the faces: `{event}`. Nothing can be changed.
    Event,
}

impl Point {
    pub fn name(self) -> &'static str {
        match self {
            Self::SessionStart => "session.start",
            Self::SessionEnd => "session.end",
            Self::ChatMessage => "chat.message",
            Self::ChatParams => "chat.params",
            Self::ChatHeaders => "chat.headers",
            Self::MessagesTransform => "experimental.chat.messages.transform",
            Self::TextComplete => "experimental.text.complete",
            Self::ToolDefinition => "tool.definition",
            Self::CommandBefore => "command.execute.before",
            Self::ShellEnv => "shell.env",
            Self::SystemTransform => "experimental.chat.system.transform",
            Self::ToolBefore => "tool.execute.before",
            Self::ToolAfter => "tool.execute.after",
            Self::PermissionAsk => "permission.ask",
            Self::Compacting => "experimental.session.compacting",
            Self::Stop => "session.stop",
            Self::Event => "event",
        }
    }
}

/// What counts when a hook fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum OnFailure {
    Continue,
    /// A guard that fails counts as *ask*: before a call, what the rules allow is asked about.
    /// Elsewhere nothing hangs on it.
    #[default]
    Ask,
    Block,
}

/// What a hook said.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Verdict {
    /// What it may change, as it wants it; nothing if it leaves it alone.
    pub output: Option<Value>,
    /// Why this must not go on.
    pub block: Option<String>,
    /// What the model should know.
    pub context: Option<String>,
    /// What a person should know.
    pub notice: Option<String>,
    /// Why the whole turn must end, before its next request.
    pub stop: Option<String>,
    pub hint: Hint,
}

/// One hook. `call` may fail and panic; it must come to an end when it is dropped.
pub trait Hook: Send + Sync {
    /// For reports.
    fn name(&self) -> &str;
    fn wants(&self, point: Point) -> bool;

    fn deadline(&self) -> Duration {
        USUAL_DEADLINE
    }

    fn on_failure(&self) -> OnFailure {
        OnFailure::default()
    }

    fn call<'a>(
        &'a self,
        point: Point,
        input: &'a Value,
        output: &'a Value,
    ) -> BoxFuture<'a, Result<Verdict, String>>;
}

/// All hooks of a session, in order.
#[derive(Default)]
pub struct Hooks {
    /// Replaced between turns, where people change theirs.
    hooks: Arc<RwLock<Vec<Arc<dyn Hook>>>>,
    notices: Mutex<Vec<String>>,
    stop: Mutex<Option<String>>,
    /// Who tells people what is to be told: those of whom this one's work is a part.
    above: Option<Arc<Hooks>>,
    teller: OnceLock<told::Teller>,
}

/// What all hooks together said.
pub(crate) struct Ran {
    pub(crate) output: Value,
    pub(crate) block: Option<String>,
    pub(crate) context: Vec<String>,
    pub(crate) hint: Hint,
}

impl Hooks {
    pub fn new(hooks: Vec<Arc<dyn Hook>>) -> Self {
        Self { hooks: Arc::new(RwLock::new(hooks)), ..Self::default() }
    }

    /// Those of an agent that works for another one: nobody watches it, so its notices are told
    /// above.
    pub fn below(self: &Arc<Self>, hooks: Vec<Arc<dyn Hook>>) -> Self {
        Self { above: Some(Arc::clone(self)), ..Self::new(hooks) }
    }

    /// Puts others in their place, from the next look on.
    pub fn replace(&self, hooks: Vec<Arc<dyn Hook>>) {
        *self.hooks.write().unwrap_or_else(PoisonError::into_inner) = hooks;
    }

    fn all(&self) -> RwLockReadGuard<'_, Vec<Arc<dyn Hook>>> {
        self.hooks.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether calls are to be shown to them. Calls that nobody looks at can be begun early and
    /// remembered.
    pub fn watch_calls(&self) -> bool {
        self.any(Point::ToolBefore) || self.any(Point::ToolAfter)
    }

    pub(crate) fn any(&self, point: Point) -> bool {
        self.all().iter().any(|hook| hook.wants(point))
    }

    /// Calls those that want this point, each with what the one before left. The first that blocks
    /// ends it.
    pub(crate) async fn run(&self, point: Point, input: &Value, output: Value) -> Ran {
        let mut ran = Ran { output, block: None, context: Vec::new(), hint: Hint::Nothing };
        let wanted: Vec<_> = self.all().iter().filter(|hook| hook.wants(point)).cloned().collect();
        for hook in wanted {
            let verdict = match call(hook.as_ref(), point, input, &ran.output).await {
                Ok(verdict) => verdict,
                Err(problem) => {
                    let report = format!("hook {} at {}: {problem}", hook.name(), point.name());
                    self.report(report.clone());
                    let on_failure = hook.on_failure();
                    let block = (on_failure == OnFailure::Block).then_some(report);
                    let guards = point == Point::ToolBefore && on_failure == OnFailure::Ask;
                    let hint = if guards { Hint::Failed } else { Hint::Nothing };
                    Verdict { block, hint, ..Verdict::default() }
                }
            };
            ran.output = verdict.output.unwrap_or(ran.output);
            ran.context.extend(verdict.context);
            // The strictest word counts.
            ran.hint = ran.hint.max(verdict.hint);
            verdict.notice.into_iter().for_each(|notice| self.report(notice));
            if let Some(reason) = verdict.stop {
                *lock(&self.stop) = Some(reason);
            }
            if verdict.block.is_some() {
                ran.block = verdict.block;
                break;
            }
        }
        ran
    }

    /// Passes an event on to those who listen, without waiting for them.
    pub(crate) fn tell(&self, event: &crate::event::Event) {
        self.teller.get_or_init(|| told::Teller::start(Arc::clone(&self.hooks))).tell(event);
    }

    /// Lets those who listen hear the last of it, for a short while.
    pub(crate) async fn catch_up(&self) {
        if let Some(teller) = self.teller.get().filter(|_| self.any(Point::Event)) {
            tokio::time::timeout(CATCH_UP, teller.caught_up()).await.ok();
        }
    }

    fn report(&self, notice: String) {
        if let Some(above) = &self.above {
            return above.report(notice);
        }
        let mut notices = lock(&self.notices);
        if notices.len() < NOTICES_CAP {
            notices.push(notice);
        }
    }

    /// What should be shown of what happened since the last time.
    pub(crate) fn take_notices(&self) -> Vec<String> {
        std::mem::take(&mut *lock(&self.notices))
    }

    /// Why the turn must end, if somebody said so.
    pub(crate) fn take_stop(&self) -> Option<String> {
        lock(&self.stop).take()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One call of one hook, which may neither hang nor crash us.
async fn call(
    hook: &dyn Hook,
    point: Point,
    input: &Value,
    output: &Value,
) -> Result<Verdict, String> {
    let call = async { hook.call(point, input, output).await };
    let call = AssertUnwindSafe(call).catch_unwind();
    match tokio::time::timeout(hook.deadline(), call).await {
        Ok(Ok(result)) => result,
        Ok(Err(_)) => Err("it crashed".to_owned()),
        Err(_) => Err(format!("it took longer than {} s", hook.deadline().as_secs_f64())),
    }
}

/// A prompt as the hooks leave it, with what they want the model to know, or why it must not be said.
pub(crate) async fn show_prompt(
    hooks: &Hooks,
    about: &Value,
    mut content: Vec<Content>,
) -> Result<Vec<Content>, String> {
    if !hooks.any(Point::ChatMessage) {
        return Ok(content);
    }
    let output = serde_json::json!({
        "message": { "role": "user", "agent": about["agent"], "model": about["model"] },
        "parts": parts_of(&content),
    });
    let mut ran = hooks.run(Point::ChatMessage, about, output).await;
    if let Some(reason) = ran.block {
        return Err(reason);
    }
    // Parts that are no longer in the form of a prompt are not taken over.
    if let Some(changed) = taken_parts(ran.output["parts"].take()) {
        content = changed;
    }
    content.extend(ran.context.into_iter().map(Content::text));
    Ok(content)
}

/// Parts of a prompt, each with a name of its own.
fn parts_of(content: &[Content]) -> Value {
    let part = |(at, content): (usize, &Content)| {
        let mut part = serde_json::to_value(content).unwrap_or_default();
        if let Some(part) = part.as_object_mut() {
            part.insert("id".to_owned(), Value::String(format!("prt_{at:04}")));
        }
        part
    };
    content.iter().enumerate().map(part).collect()
}

/// Those that are still parts of a prompt; nothing where none is. What people are not meant to see counts
/// all the same, what is to be ignored does not.
fn taken_parts(parts: Value) -> Option<Vec<Content>> {
    let wanted = parts.as_array()?.iter().filter(|part| part["ignored"] != true);
    let parts: Vec<Content> = wanted.filter_map(taken_part).collect();
    (!parts.is_empty()).then_some(parts)
}

fn taken_part(part: &Value) -> Option<Content> {
    if part["type"] != "file" {
        return serde_json::from_value(part.clone()).ok();
    }
    let (_, base64) = part["url"].as_str()?.strip_prefix("data:")?.split_once(";base64,")?;
    let (mime, name) = (part["mime"].as_str()?.to_owned(), part["filename"].as_str());
    Some(Content::Media(Media { mime, base64: base64.into(), name: name.map(str::to_owned) }))
}
