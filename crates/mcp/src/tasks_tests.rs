use std::sync::{Arc, Mutex};

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream};

use super::*;
use crate::hub::{Ear, Hub};
use crate::pipes::Pipes;

type Seen = Arc<Mutex<Vec<String>>>;

/// A server whose only tool is a task that is never done.
async fn serve(stream: DuplexStream, seen: Seen) {
    let (from, mut to) = tokio::io::split(stream);
    let mut lines = BufReader::new(from).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        let message: Value = serde_json::from_str(&line).unwrap();
        let method = message["method"].as_str().unwrap_or_default();
        seen.lock().unwrap().push(method.to_owned());
        let params = &message["params"];
        let working = json!({"taskId": "t", "status": "working", "pollInterval": 5_000});
        let answer = match method {
            "initialize" => json!({"result": {
                "protocolVersion": params["protocolVersion"],
                "serverInfo": {"name": "s", "version": "1"}, "capabilities": {"tools": {}},
            }}),
            "tools/call" if params.get("task").is_none() => {
                json!({"error": {"code": -32601, "message": "it wants to be a task"}})
            }
            "tools/call" => json!({"result": {"task": working}}),
            "tasks/get" => json!({ "result": working }),
            "tasks/cancel" => json!({"result": {}}),
            _ => continue,
        };
        let mut answer = answer;
        answer["jsonrpc"] = json!("2.0");
        answer["id"] = message["id"].clone();
        to.write_all(format!("{answer}\n").as_bytes()).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_task_that_is_never_done_is_given_up_and_its_server_hears_of_it() {
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    let seen = Seen::default();
    let server = tokio::spawn(serve(theirs, Arc::clone(&seen)));
    let hub = Hub::new("s", Vec::new());
    let (output, input) = tokio::io::split(ours);
    let pipes = Pipes::new(output, input, Arc::clone(&hub.tail));
    let running = rmcp::serve_client(Ear(Arc::clone(&hub)), pipes).await.unwrap();
    let live = Live::new(running, Arc::clone(&hub), CancellationToken::new(), None).unwrap();
    let (known, cancel) = (hub.begin(None), CancellationToken::new());
    let timeout = Duration::from_secs(30);
    let waiting = Waiting { known: &known, timeout, cancel: &cancel };
    let began = tokio::time::Instant::now();
    let called = live.call_tool("slow", JsonObject::new(), &waiting).await;
    assert!(matches!(called, Err(CallError::TimedOut(_))), "{called:?}");
    assert!(began.elapsed() >= LONGEST_CALL, "it had its time");
    assert_eq!(seen.lock().unwrap().last().map(String::as_str), Some("tasks/cancel"));
    server.abort();
}

#[test]
fn only_the_refusal_of_this_very_tool_asks_for_a_task() {
    let said = |text: &str| json!({"isError": true, "content": [{"type": "text", "text": text}]});
    let sdk = "MCP error -32601: Tool slow requires task augmentation (taskSupport: 'required')";
    assert!(is_wanted(&said(sdk), "slow"));
    for (text, tool) in [
        (sdk, "other"),
        ("the task failed: MCP error -32601: no method", "slow"),
        ("upstream: MCP error -32601: Tool slow requires task augmentation", "slow"),
    ] {
        assert!(!is_wanted(&said(text), tool), "{text}");
    }
    let mut fine = said(sdk);
    fine["isError"] = json!(false);
    assert!(!is_wanted(&fine, "slow"));
}
