//! What hooks hear of the events. Nobody waits for them: one task passes events on in order.

use std::sync::{Arc, PoisonError, RwLock};

use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};
use tokio_util::task::AbortOnDropHandle;
use toolwright_session::{Ending, Outcome};

use super::{Hook, Point};
use crate::event::Event;

/// Events that wait for slow hooks; what comes when it is full is not told.
const CAPACITY: usize = 256;

enum Told {
    Event(Value),
    /// Everything before it has been told.
    Reached(oneshot::Sender<()>),
}

pub(super) struct Teller {
    sender: mpsc::Sender<Told>,
    _task: AbortOnDropHandle<()>,
}

impl Teller {
    pub(super) fn start(hooks: Arc<RwLock<Vec<Arc<dyn Hook>>>>) -> Self {
        let (sender, mut events) = mpsc::channel::<Told>(CAPACITY);
        let task = tokio::spawn(async move {
            while let Some(told) = events.recv().await {
                let event = match told {
                    Told::Event(event) => event,
                    Told::Reached(waiting) => {
                        waiting.send(()).ok();
                        continue;
                    }
                };
                let input = json!({ "event": event });
                let all = hooks.read().unwrap_or_else(PoisonError::into_inner).clone();
                for hook in all.iter().filter(|hook| hook.wants(Point::Event)) {
                    // What goes wrong in a listener is its own business: nothing hangs on it.
                    super::call(hook.as_ref(), Point::Event, &input, &Value::Null).await.ok();
                }
            }
        });
        Self { sender, _task: AbortOnDropHandle::new(task) }
    }

    pub(super) fn tell(&self, event: &Event) {
        for event in as_json(event) {
            self.sender.try_send(Told::Event(event)).ok();
        }
    }

    /// Until those who listen have heard everything so far.
    pub(super) async fn caught_up(&self) {
        let (sender, reached) = oneshot::channel();
        if self.sender.send(Told::Reached(sender)).await.is_ok() {
            reached.await.ok();
        }
    }
}

/// In the names and forms that listeners know; deltas and progress are not told.
fn as_json(event: &Event) -> Vec<Value> {
    let one =
        |kind: &str, properties: Value| vec![json!({ "type": kind, "properties": properties })];
    let status = |status: Value| one("session.status", json!({ "status": status }));
    let part = |part: Value| one("message.part.updated", json!({ "part": part }));
    match event {
        Event::StepStarted => status(json!({ "type": "busy" })),
        Event::Retrying { attempt, cause, .. } => {
            status(json!({ "type": "retry", "attempt": attempt, "message": cause.to_string() }))
        }
        Event::TextDone { text } => part(json!({ "type": "text", "text": text })),
        Event::ReasoningDone { text } => part(json!({ "type": "reasoning", "text": text })),
        Event::StepEnded { usage, finish, cost } => {
            let tokens = json!({
                "input": usage.input, "output": usage.output, "reasoning": usage.reasoning,
                "cache": { "read": usage.cache_read, "write": usage.cache_write },
            });
            let info = json!({
                "role": "assistant", "finish": finish.reason, "cost": cost, "tokens": tokens,
            });
            one("message.updated", json!({ "info": info }))
        }
        Event::CallStarted { call, tool, summary, .. } => {
            let state = json!({ "status": "running", "title": summary, "input": {} });
            part(json!({ "type": "tool", "callID": call, "tool": tool, "state": state }))
        }
        Event::CallSettled { call, arguments, outcome, .. } => settled(call, arguments, outcome),
        Event::Question { id, question, .. } => {
            let permission = question.requests.first().map(|r| r.permission.as_str());
            let patterns: Vec<&str> =
                question.requests.iter().map(|r| r.pattern.as_str()).collect();
            let always: Vec<&str> = question.requests.iter().map(|r| r.always.as_str()).collect();
            one(
                "permission.asked",
                json!({
                    "id": id.to_string(), "permission": permission.unwrap_or(&question.tool),
                    "patterns": patterns, "always": always, "title": question.summary,
                    "metadata": { "tool": question.tool, "summary": question.summary },
                }),
            )
        }
        Event::Inquiry { id, .. } => one("question.asked", json!({ "id": id.to_string() })),
        Event::ModeChanged { mode } => one("session.mode", json!({ "mode": mode })),
        Event::Compacted { before, after } => {
            one("session.compacted", json!({ "before": before, "after": after }))
        }
        Event::TurnEnded(end) => {
            let mut told = Vec::new();
            if let Some(problem) = &end.problem {
                let error = json!({ "name": "UnknownError", "data": { "message": problem } });
                told = one("session.error", json!({ "error": error, "status": end.status }));
            }
            told.extend(status(json!({ "type": "idle" })));
            told.extend(one("session.idle", json!({ "status": end.status })));
            told
        }
        _ => Vec::new(),
    }
}

/// A call's end, and what it says about files and tasks.
fn settled(call: &str, arguments: &str, outcome: &Outcome) -> Vec<Value> {
    let input: Value = serde_json::from_str(arguments).unwrap_or_default();
    let good = outcome.ending == Ending::Completed;
    let state = if good {
        json!({
            "status": "completed", "input": input, "output": outcome.output,
            "title": outcome.title, "metadata": outcome.details,
        })
    } else {
        json!({ "status": "error", "input": input, "error": outcome.output })
    };
    let part = json!({ "type": "tool", "callID": call, "tool": outcome.tool, "state": state });
    let mut told = vec![json!({ "type": "message.part.updated", "properties": { "part": part } })];
    let file = input["filePath"].as_str().filter(|_| good);
    match outcome.tool.as_str() {
        "write" | "edit" | "multiedit" => told.extend(
            file.map(|file| json!({ "type": "file.edited", "properties": { "file": file } })),
        ),
        "todowrite" if good => {
            told.push(json!({ "type": "todo.updated", "properties": { "todos": input["todos"] } }))
        }
        _ => {}
    }
    told
}
