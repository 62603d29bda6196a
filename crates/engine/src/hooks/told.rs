//! What hooks hear of the events. Nobody waits for them: one task passes events on in order.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};
use tokio_util::task::AbortOnDropHandle;

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
    pub(super) fn start(hooks: Vec<Arc<dyn Hook>>) -> Self {
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
                for hook in hooks.iter().filter(|hook| hook.wants(Point::Event)) {
                    // What goes wrong in a listener is its own business: nothing hangs on it.
                    super::call(hook.as_ref(), Point::Event, &input, &Value::Null).await.ok();
                }
            }
        });
        Self { sender, _task: AbortOnDropHandle::new(task) }
    }

    pub(super) fn tell(&self, event: &Event) {
        if let Event::TurnEnded(end) = event
            && end.problem.is_some()
        {
            let properties = json!({ "error": end.problem, "status": end.status });
            let error = json!({ "type": "session.error", "properties": properties });
            self.sender.try_send(Told::Event(error)).ok();
        }
        if let Some(event) = as_json(event) {
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

/// In the names that listeners know; deltas and progress are not told.
fn as_json(event: &Event) -> Option<Value> {
    let (kind, properties) = match event {
        Event::StepStarted => ("session.status", json!({ "status": "busy" })),
        Event::TextDone { text } => ("message.text", json!({ "text": text })),
        Event::CallStarted { call, tool, summary, .. } => {
            ("tool.started", json!({ "callID": call, "tool": tool, "title": summary }))
        }
        Event::CallSettled { call, outcome, .. } => (
            "tool.settled",
            json!({
                "callID": call, "tool": outcome.tool, "title": outcome.title,
                "output": outcome.output, "status": outcome.ending,
            }),
        ),
        Event::Question { id, question, .. } => (
            "permission.asked",
            json!({ "id": id, "tool": question.tool, "summary": question.summary }),
        ),
        Event::ModeChanged { mode } => ("session.mode", json!({ "mode": mode })),
        Event::Compacted { before, after } => {
            ("session.compacted", json!({ "before": before, "after": after }))
        }
        Event::TurnEnded(end) => ("session.idle", json!({ "status": end.status })),
        _ => return None,
    };
    Some(json!({ "type": kind, "properties": properties }))
}
