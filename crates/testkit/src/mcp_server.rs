//! An MCP server over standard input and output that does what tests need, well or badly. Examples of
//! other crates are built from it: see [`program`].

use std::collections::HashMap;
use std::io::{BufRead, Write};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};

/// Where cargo puts an example that is built with the tests.
pub fn program(name: &str) -> PathBuf {
    let test = std::env::current_exe().expect("the test's own path");
    let folder = test.parent().and_then(|deps| deps.parent()).expect("a target folder");
    folder.join("examples").join(name)
}

struct Server {
    out: Mutex<std::io::Stdout>,
    /// Answers to what we ask the client.
    waiting: Mutex<HashMap<i64, Sender<Value>>>,
    next: AtomicI64,
    cancelled: Mutex<Vec<Value>>,
    changed: AtomicBool,
    arguments: Vec<String>,
}

/// `MODE [WORD…]`: how it starts. Words are only there to be found in the list of processes, or are
/// what the mode needs.
// Children that nobody waits for are what some tests are about.
#[allow(clippy::zombie_processes)]
pub fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let mode = arguments.first().map_or("ok", String::as_str).to_owned();
    match mode.as_str() {
        "die" => {
            eprintln!("error: cannot find the flux capacitor");
            std::process::exit(3);
        }
        // As often as there are lines in a file, then well.
        "die_times" => {
            let path = PathBuf::from(&arguments[1]);
            let times: usize = arguments[2].parse().expect("a number");
            let before = std::fs::read_to_string(&path).unwrap_or_default();
            std::fs::write(&path, format!("{before}x")).expect("a file");
            if before.len() < times {
                eprintln!("not yet");
                std::process::exit(4);
            }
        }
        "starts" => {
            let path = PathBuf::from(&arguments[1]);
            let before = std::fs::read_to_string(&path).unwrap_or_default();
            std::fs::write(&path, format!("{before}{}\n", std::process::id())).expect("a file");
        }
        "wait_for_file" => await_file(&arguments[1]),
        "silent" => loop {
            std::thread::park();
        },
        "fork" => {
            let word = &arguments[1];
            for _ in 0..3 {
                let script = format!("trap '' TERM HUP; while :; do sleep 1; done # {word}");
                std::process::Command::new("sh").args(["-c", &script]).spawn().expect("a child");
            }
        }
        "noise" => {
            println!("Welcome to the server!\n\n{{\"half\": \n[1, 2, 3]");
        }
        _ => {}
    }
    let server = Arc::new(Server {
        out: Mutex::new(std::io::stdout()),
        waiting: Mutex::default(),
        next: AtomicI64::new(1_000),
        cancelled: Mutex::default(),
        changed: AtomicBool::new(false),
        arguments,
    });
    for line in std::io::stdin().lock().lines() {
        let Ok(line) = line else { break };
        let Ok(message) = serde_json::from_str::<Value>(&line) else { continue };
        let server = Arc::clone(&server);
        std::thread::spawn(move || server.take(&message));
    }
    if mode == "fork" || mode == "stubborn" {
        // The end of its input is nothing to it.
        loop {
            std::thread::park();
        }
    }
}

fn await_file(path: &str) {
    while !std::path::Path::new(path).exists() {
        std::thread::park_timeout(Duration::from_millis(5));
    }
}

impl Server {
    fn say(&self, message: &Value) {
        let mut out = self.out.lock().expect("the output");
        writeln!(out, "{message}").and_then(|()| out.flush()).unwrap_or_else(|_| {
            std::process::exit(0);
        });
    }

    fn tell(&self, method: &str, params: Value) {
        self.say(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    fn ask(&self, method: &str, params: Value) -> Value {
        let id = self.next.fetch_add(1, Ordering::SeqCst);
        let (sender, receiver) = channel();
        self.waiting.lock().expect("a map").insert(id, sender);
        self.say(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        receiver.recv().unwrap_or_default()
    }

    fn take(&self, message: &Value) {
        let id = message["id"].clone();
        let Some(method) = message["method"].as_str() else {
            let sender = id.as_i64().and_then(|id| self.waiting.lock().expect("a map").remove(&id));
            if let Some(sender) = sender {
                sender.send(message.clone()).ok();
            }
            return;
        };
        let params = &message["params"];
        let result = match method {
            "initialize" => json!({
                "protocolVersion": params["protocolVersion"],
                "serverInfo": {"name": "fake", "version": "1.0"},
                "capabilities": {"tools": {"listChanged": true}, "prompts": {}, "resources": {}, "logging": {}},
                "instructions": "Echo what you want to hear.",
            }),
            "notifications/cancelled" => {
                self.cancelled.lock().expect("a list").push(params["requestId"].clone());
                return;
            }
            "tools/list" => json!({ "tools": self.tools() }),
            "tools/call" => match self.call(&id, params) {
                Some(result) => result,
                None => return,
            },
            "prompts/list" => {
                json!({"prompts": [{"name": "greet", "description": "Greets somebody",
                "arguments": [{"name": "who", "required": true}]}]})
            }
            "prompts/get" => json!({"messages": [{"role": "user", "content":
                {"type": "text", "text": format!("Say hello to {}.", params["arguments"]["who"].as_str().unwrap_or("nobody"))}}]}),
            "resources/list" => {
                json!({"resources": [{"uri": "fake://notes", "name": "notes", "mimeType": "text/plain"}]})
            }
            "resources/templates/list" => {
                json!({"resourceTemplates": [{"uriTemplate": "fake://{name}", "name": "any"}]})
            }
            "resources/read" => {
                json!({"contents": [{"uri": params["uri"], "mimeType": "text/plain",
                "text": format!("the content of {}", params["uri"].as_str().unwrap_or_default())}]})
            }
            "ping" | "logging/setLevel" => json!({}),
            other if other.starts_with("notifications/") => return,
            other => {
                let error = json!({"code": -32601, "message": format!("no method {other}")});
                return self.say(&json!({"jsonrpc": "2.0", "id": id, "error": error}));
            }
        };
        self.say(&json!({"jsonrpc": "2.0", "id": id, "result": result}));
    }

    fn tools(&self) -> Vec<Value> {
        let tool = |name: &str, properties: Value| {
            json!({"name": name, "description": format!("The tool {name}."),
                "inputSchema": {"type": "object", "properties": properties}})
        };
        let names = [
            "add",
            "never",
            "exit",
            "flood_stderr",
            "flood_notifications",
            "huge",
            "wrong_id",
            "invalid_json",
            "change_tools",
            "ask",
            "ask_url",
            "sample",
            "roots",
            "media",
            "misnamed",
            "structured",
            "fail",
            "lines",
            "cancelled",
        ];
        let mut tools: Vec<Value> = names.iter().map(|name| tool(name, json!({}))).collect();
        let mut echo = tool("echo", json!({"text": {"type": "string"}}));
        echo["annotations"] = json!({"readOnlyHint": true});
        tools.push(echo);
        let text = json!({"type": "string"});
        tools.push(tool("env", json!({"name": text})));
        tools.push(tool("relay", json!({"file": text})));
        tools.push(tool("progress", json!({"file": text})));
        let mut meet = tool("meet", json!({"own": text, "other": text}));
        meet["annotations"] = json!({"readOnlyHint": true});
        tools.push(meet);
        tools.push(tool("note", json!({"file": text, "text": text, "after": text})));
        if self.changed.load(Ordering::SeqCst) {
            tools.retain(|tool| tool["name"] != "add");
            tools.push(tool("fresh", json!({})));
        }
        tools
    }

    fn call(&self, id: &Value, params: &Value) -> Option<Value> {
        let arguments = &params["arguments"];
        let word = |key: &str| arguments[key].as_str().unwrap_or_default().to_owned();
        let text = |text: String| Some(json!({"content": [{"type": "text", "text": text}]}));
        match params["name"].as_str().unwrap_or_default() {
            "echo" => text(word("text")),
            "fresh" => text("fresh".to_owned()),
            "env" => text(format!("[{}]", std::env::var(word("name")).unwrap_or_default())),
            "never" => loop {
                std::thread::park();
            },
            "exit" => {
                eprintln!("error: out of cheese");
                std::process::exit(7);
            }
            "flood_stderr" => {
                let line = format!("{}\n", "e".repeat(1_000));
                for _ in 0..5_000 {
                    std::io::stderr().write_all(line.as_bytes()).ok();
                }
                text("flooded".to_owned())
            }
            "flood_notifications" => {
                for n in 0..6_000 {
                    match n % 3 {
                        0 => {
                            self.tell("notifications/message", json!({"level": "info", "data": n}))
                        }
                        1 => self.tell("notifications/tools/list_changed", json!({})),
                        _ => self.tell("notifications/unheard_of", json!({"n": n})),
                    }
                }
                text("flooded".to_owned())
            }
            "huge" => {
                // By hand: making JSON of it takes longer than sending it.
                let mut out = self.out.lock().expect("the output");
                let head = format!(
                    r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[{{"type":"text","text":""#
                );
                out.write_all(head.as_bytes()).ok();
                let piece = vec![b'x'; 1 << 20];
                for _ in 0..100 {
                    out.write_all(&piece).ok();
                }
                out.write_all(b"\"}]}}\n").and_then(|()| out.flush()).ok();
                None
            }
            "wrong_id" => {
                let result = json!({"content": []});
                self.say(&json!({"jsonrpc": "2.0", "id": 987_654, "result": result}));
                self.say(&json!({"jsonrpc": "2.0", "id": "what", "result": result}));
                text("right".to_owned())
            }
            "invalid_json" => {
                {
                    let mut out = self.out.lock().expect("the output");
                    out.write_all(b"{\"jsonrpc\": \"2.0\", \n\xff\xfe\n]]\n").ok();
                }
                text("valid".to_owned())
            }
            "change_tools" => {
                self.changed.store(true, Ordering::SeqCst);
                self.tell("notifications/tools/list_changed", json!({}));
                text("changed".to_owned())
            }
            "ask" => {
                let schema = json!({"type": "object", "properties": {
                    "colour": {"type": "string", "enum": ["red", "green"]}, "size": {"type": "integer", "default": 3}},
                    "required": ["colour"]});
                let params = json!({"message": "Which one?", "requestedSchema": schema});
                text(self.ask("elicitation/create", params)["result"].to_string())
            }
            "ask_url" => {
                let params = json!({"mode": "url", "message": "Sign here", "url": "https://example.com/sign", "elicitationId": "1"});
                text(self.ask("elicitation/create", params)["result"].to_string())
            }
            "sample" => {
                let content = json!({"type": "text", "text": "What is the capital of France?"});
                let messages = json!([{"role": "user", "content": content}]);
                let params =
                    json!({"messages": messages, "systemPrompt": "Be brief.", "maxTokens": 50});
                let answer = self.ask("sampling/createMessage", params);
                text(format!("{}{}", answer["result"], answer["error"]))
            }
            "roots" => text(self.ask("roots/list", json!({}))["result"].to_string()),
            "media" => Some(json!({"content": [
                {"type": "image", "mimeType": "image/png", "data": PIXEL},
                {"type": "audio", "mimeType": "audio/wav", "data": "UklGRg=="},
                {"type": "resource_link", "uri": "fake://notes", "name": "notes"},
            ]})),
            "misnamed" => Some(json!({"content": [
                {"type": "image", "mimeType": "png", "data": PIXEL},
                {"type": "image", "mimeType": "image/png", "data": "AAAA"},
                {"type": "image", "mimeType": "video/mp4", "data": "AAAA"},
                {"type": "resource", "resource": {"uri": "fake://a.pdf", "mimeType": "application/pdf", "blob": "AAAA"}},
            ]})),
            // Has an effect, and fails with words that are not its own.
            "relay" => {
                let before = std::fs::read_to_string(word("file")).unwrap_or_default();
                std::fs::write(word("file"), format!("{before}ran\n")).expect("a file");
                let words = "the task failed: upstream says MCP error -32601: no method x";
                Some(json!({"isError": true, "content": [{"type": "text", "text": words}]}))
            }
            "structured" => Some(json!({"content": [], "structuredContent": {"degrees": 21}})),
            "fail" => Some(
                json!({"isError": true, "content": [{"type": "text", "text": "it went wrong"}]}),
            ),
            "lines" => text((1..=5_000).map(|n| format!("{n}\n")).collect()),
            "cancelled" => text(json!(*self.cancelled.lock().expect("a list")).to_string()),
            "progress" => {
                let token = &params["_meta"]["progressToken"];
                let mut step = 0;
                while !std::path::Path::new(&word("file")).exists() {
                    step += 1;
                    self.tell("notifications/progress", json!({"progressToken": token, "progress": step, "total": 100, "message": "working"}));
                    std::thread::park_timeout(Duration::from_millis(20));
                }
                text(format!("done, {}", self.arguments.len()))
            }
            "meet" => {
                std::fs::write(word("own"), "").expect("a file");
                await_file(&word("other"));
                text("met".to_owned())
            }
            "note" => {
                let after = word("after");
                if !after.is_empty() {
                    await_file(&after);
                }
                let before = std::fs::read_to_string(word("file")).unwrap_or_default();
                std::fs::write(word("file"), format!("{before}{}\n", word("text")))
                    .expect("a file");
                text("noted".to_owned())
            }
            other => {
                let error = json!({"code": -32602, "message": format!("no tool {other}")});
                self.say(&json!({"jsonrpc": "2.0", "id": id, "error": error}));
                None
            }
        }
    }
}

/// One white point.
const PIXEL: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8/5+hHgAHggJ/PchI7wAAAABJRU5ErkJggg==";
