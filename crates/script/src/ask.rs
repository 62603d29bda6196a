//! What a script asks of the host: with a promise, or waiting for the answer.

use std::sync::atomic::Ordering;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use serde_json::json;

use crate::realm::{Message, Shared};

/// How often a script that waits in a call without a promise looks whether it must stop.
const SYNC_LOOK: Duration = Duration::from_millis(50);

/// Requests of a script that may wait; timers are among them.
const PENDING_CAP: usize = 4_096;

/// Gives the request to the host; the answer comes with the messages.
pub(crate) fn ask(shared: &Arc<Shared>, id: u64, op: String, payload: &str) {
    let inbox = shared.inbox.clone();
    if shared.pending.fetch_add(1, Ordering::Relaxed) >= PENDING_CAP {
        shared.pending.fetch_sub(1, Ordering::Relaxed);
        let payload = json!({ "message": format!("more than {PENDING_CAP} requests wait") });
        inbox.send(Message::Reply { id, good: false, payload: payload.to_string() }).ok();
        return;
    }
    let payload = serde_json::from_str(payload).unwrap_or_default();
    let (host, guard, me) = (Arc::clone(&shared.host), shared.guard(), Arc::clone(shared));
    shared.runtime.spawn(async move {
        let work = async {
            // Who only lets time pass is in nobody's way.
            let _turn = match op.as_str() {
                "sleep" => None,
                _ => me.at_once.acquire().await.ok(),
            };
            host.perform(&op, payload, guard).await
        };
        let result = tokio::select! {
            result = work => result,
            () = me.end.cancelled() => return,
        };
        me.pending.fetch_sub(1, Ordering::Relaxed);
        let (good, payload) = match result {
            Ok(value) => (true, value.to_string()),
            Err(error) => (false, error.to_json().to_string()),
        };
        inbox.send(Message::Reply { id, good, payload }).ok();
    });
}

pub(crate) fn ask_and_wait(shared: &Arc<Shared>, op: String, payload: &str) -> String {
    // A person may be asked meanwhile, and they may take their time. Said before it is looked at who decides:
    // whoever leaves from here on knows that this thread hears nothing.
    shared.pause(true);
    let payload = serde_json::from_str(payload).unwrap_or_default();
    let (host, guard, end) = (Arc::clone(&shared.host), shared.guard(), shared.end.clone());
    let (sender, answer) = mpsc::sync_channel(1);
    let work = shared.runtime.spawn(async move {
        let result = tokio::select! {
            result = host.perform(&op, payload, guard) => result,
            () = end.cancelled() => return,
        };
        sender.send(result).ok();
    });
    let answer = loop {
        match answer.recv_timeout(SYNC_LOOK) {
            Ok(Ok(value)) => break json!({ "value": value }),
            Ok(Err(error)) => break json!({ "error": error.to_json() }),
            Err(mpsc::RecvTimeoutError::Timeout) if !shared.must_stop() => {}
            Err(_) => {
                work.abort();
                break json!({ "error": { "message": "the script was stopped" } });
            }
        }
    };
    shared.pause(false);
    answer.to_string()
}
