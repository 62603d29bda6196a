//! What people change while the program runs, and what they keep on the network.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};
use toolwright_testkit::{Answer, Captured, Folder, ModelServer, Terminal, Wire};

use crate::mcp::fake;
use crate::{folder, results};

fn tools(request: &Captured) -> String {
    request.body["tools"].to_string()
}

fn tool(said: &str) -> String {
    format!(
        "export default {{ description: 'says {said}', args: {{}}, execute: () => '{said}' }}\n"
    )
}

#[test]
fn a_change_counts_at_the_next_prompt_and_a_broken_one_leaves_all_as_it_was() {
    let server = ModelServer::start([
        Answer::call("say", json!({})),
        Answer::text("One."),
        Answer::call("say", json!({})),
        Answer::text("Two."),
        Answer::call("say", json!({})),
        Answer::text("Three."),
        Answer::call("say", json!({})),
        Answer::text("Four."),
    ]);
    let folder = folder().with_model(&server, Wire::Anthropic);
    let own = |file: &str, text: &str| {
        let path = folder.root().join("home/.config/toolwright").join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    own("tool/say.js", &tool("first"));
    let terminal = Terminal::start(&folder, &["-m", "anthropic/m"], 100, 40);
    terminal.wait_for("anthropic/m");
    terminal.keys("one\r");
    terminal.wait_for("One.");
    own("tool/say.js", &tool("second"));
    own("agent/helper.md", "---\ndescription: new here\nmode: subagent\n---\nHelp.\n");
    own(
        "plugin/p.js",
        "export const P = async () => ({ 'chat.headers': async (i, o) => { o.headers['x-mark'] = 'yes' }, 'tool.execute.after': async (i, o) => { o.output += '!' } })\n",
    );
    terminal.wait_for("Ask anything");
    terminal.keys("two\r");
    terminal.wait_for("Two.");
    terminal.wait_for("what they say now counts from here on");
    assert_eq!(results(&server.last_request()), ["first", "second!"]);
    assert!(tools(&server.last_request()).contains("says second"));
    assert!(tools(&server.last_request()).contains("helper"), "the new agent can be given work");
    assert_eq!(server.last_request().header("x-mark"), Some("yes"));
    own("toolwright.json", "{ \"steps\": \"many\" }");
    own("tool/say.js", &tool("third"));
    terminal.wait_for("Ask anything");
    terminal.keys("three\r");
    terminal.wait_for("Three.");
    terminal.wait_for("are not used");
    assert_eq!(results(&server.last_request()).last().unwrap(), "second!");
    own("toolwright.json", "{ \"permission\": { \"say\": \"deny\" } }");
    terminal.wait_for("Ask anything");
    terminal.keys("four\r");
    terminal.wait_for("Four.");
    assert!(!tools(&server.last_request()).contains("says third"), "what is denied is not offered");
}

#[test]
fn servers_and_included_texts_change_at_the_next_prompt_too() {
    let server = ModelServer::start([
        Answer::text("One."),
        Answer::call("second_echo", json!({ "text": "heard" })),
        Answer::text("Two."),
        Answer::text("Three."),
    ]);
    let folder = folder().with_model(&server, Wire::Anthropic);
    let own = |file: &str, text: &str| {
        let path = folder.root().join("home/.config/toolwright").join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    let settings = |name: &str| {
        let mut entry = fake(&["ok"]);
        entry["required"] = json!(true);
        let helper = json!({ "mode": "subagent", "description": "{file:words.md}" });
        json!({ "mcp": { name: entry }, "agent": { "helper": helper }, "permission": { "*": "allow" } })
            .to_string()
    };
    own("words.md", "first words");
    own("toolwright.json", &settings("first"));
    let terminal = Terminal::start(&folder, &["-m", "anthropic/m"], 100, 40);
    terminal.wait_for("anthropic/m");
    terminal.keys("one\r");
    terminal.wait_for("One.");
    assert!(tools(&server.last_request()).contains("first_echo"));
    assert!(tools(&server.last_request()).contains("first words"));
    own("toolwright.json", &settings("second"));
    terminal.wait_for("Ask anything");
    terminal.keys("two\r");
    terminal.wait_for("Two.");
    let offered = tools(&server.last_request());
    assert!(offered.contains("second_echo") && !offered.contains("first_echo"), "{offered}");
    assert_eq!(results(&server.last_request()), ["heard"]);
    own("words.md", "other words");
    terminal.wait_for("Ask anything");
    terminal.keys("three\r");
    terminal.wait_for("Three.");
    let offered = tools(&server.last_request());
    assert!(offered.contains("other words") && offered.contains("second_echo"), "{offered}");
}

/// A server that notes each of its processes in a file of its name.
fn noting(folder: &Folder, name: &str) -> Value {
    let starts = folder.work().join(name).display().to_string();
    let mut entry = fake(&["starts", &starts]);
    entry["required"] = json!(true);
    entry
}

fn processes(folder: &Folder, name: &str) -> Vec<u32> {
    let starts = std::fs::read_to_string(folder.work().join(name)).unwrap_or_default();
    starts.lines().map(|line| line.parse().unwrap()).collect()
}

fn write_settings(folder: &Folder, settings: Value) {
    let path = folder.root().join("home/.config/toolwright/toolwright.json");
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, settings.to_string()).unwrap();
}

#[test]
fn a_server_that_nobody_changed_keeps_its_process() {
    let server = ModelServer::start(["One.", "Two.", "Three."].map(Answer::text));
    let folder = folder().with_model(&server, Wire::Anthropic);
    let settings = |servers: Value| write_settings(&folder, json!({ "mcp": servers }));
    let of = |name: &str| processes(&folder, name);
    let (stays, mut other) = (noting(&folder, "stays"), noting(&folder, "other"));
    settings(json!({ "stays": stays, "other": other }));
    let terminal = Terminal::start(&folder, &["-m", "anthropic/m"], 100, 40);
    terminal.wait_for("anthropic/m");
    terminal.keys("one\r");
    terminal.wait_for("One.");
    let first = of("stays");
    assert_eq!((first.len(), of("other").len()), (1, 1));
    // One is changed, and one comes.
    other["environment"] = json!({ "A": "b" });
    settings(json!({ "other": other, "new": noting(&folder, "new"), "stays": stays }));
    terminal.wait_for("Ask anything");
    terminal.keys("two\r");
    terminal.wait_for("Two.");
    assert_eq!((of("stays"), of("other").len(), of("new").len()), (first.clone(), 2, 1));
    let offered = tools(&server.last_request());
    for name in ["stays_echo", "other_echo", "new_echo"] {
        assert!(offered.contains(name), "{name}: {offered}");
    }
    // Both go, and so do their processes.
    settings(json!({ "stays": stays }));
    terminal.wait_for("Ask anything");
    terminal.keys("three\r");
    terminal.wait_for("Three.");
    let offered = tools(&server.last_request());
    assert!(offered.contains("stays_echo") && !offered.contains("other_echo"), "{offered}");
    assert!(!offered.contains("new_echo"), "{offered}");
    assert_eq!(of("stays"), first);
    if cfg!(target_os = "linux") {
        let is_alive = |pid: &u32| std::path::Path::new(&format!("/proc/{pid}")).exists();
        assert!(first.iter().all(is_alive));
        assert!(!of("other").iter().chain(&of("new")).any(is_alive));
    }
}

#[test]
fn a_server_that_runs_before_the_first_prompt_goes_on_too() {
    let server = ModelServer::start([Answer::text("One.")]);
    let folder = folder().with_model(&server, Wire::Anthropic);
    let settings = |servers: Value| write_settings(&folder, json!({ "mcp": servers }));
    let stays = noting(&folder, "stays");
    settings(json!({ "stays": stays, "other": noting(&folder, "other") }));
    let terminal = Terminal::start(&folder, &["-m", "anthropic/m"], 100, 40);
    terminal.wait_for("anthropic/m");
    terminal.keys("/mcp\r");
    terminal.wait_until("both", |screen| screen.matches("connected,").count() == 2);
    terminal.keys("\x1b");
    terminal.wait_for("Ask anything");
    let first = processes(&folder, "stays");
    settings(json!({ "stays": stays }));
    terminal.keys("one\r");
    terminal.wait_for("One.");
    assert_eq!((processes(&folder, "stays"), first.len()), (first, 1));
    let offered = tools(&server.last_request());
    assert!(offered.contains("stays_echo") && !offered.contains("other_echo"), "{offered}");
}

#[test]
fn a_server_of_a_plugin_outlives_other_changes() {
    let server = ModelServer::start([
        Answer::text("One."),
        Answer::call("s_echo", json!({ "text": "heard" })),
        Answer::text("Two."),
    ]);
    let folder = folder().with_model(&server, Wire::Anthropic);
    let plugin = folder.root().join("home/.config/toolwright/plugin/p.js");
    std::fs::create_dir_all(plugin.parent().unwrap()).unwrap();
    let own = json!({ "s": noting(&folder, "s") });
    let script =
        format!("export const P = async () => ({{ config: async c => {{ c.mcp = {own} }} }})");
    std::fs::write(plugin, script).unwrap();
    write_settings(&folder, json!({ "permission": "allow" }));
    let terminal = Terminal::start(&folder, &["-m", "anthropic/m"], 100, 40);
    terminal.wait_for("anthropic/m");
    terminal.keys("one\r");
    terminal.wait_for("One.");
    write_settings(&folder, json!({ "permission": "allow", "username": "me" }));
    terminal.wait_for("Ask anything");
    terminal.keys("two\r");
    terminal.wait_for("Two.");
    terminal.wait_for("what they say now counts");
    assert_eq!(results(&server.last_request()), ["heard"]);
    assert_eq!(processes(&folder, "s").len(), 1);
}

#[test]
fn servers_come_where_there_were_none_and_read_their_resources() {
    let ask = || Answer::call("read_mcp_resource", json!({ "server": "s", "uri": "note://a" }));
    let server = ModelServer::start([
        Answer::text("One."),
        ask(),
        Answer::text("Two."),
        ask(),
        Answer::text("Three."),
    ]);
    let folder = folder().with_model(&server, Wire::Anthropic);
    let settings =
        |servers: Value| write_settings(&folder, json!({ "mcp": servers, "permission": "allow" }));
    settings(json!({}));
    let terminal = Terminal::start(&folder, &["-m", "anthropic/m"], 100, 40);
    terminal.wait_for("anthropic/m");
    terminal.keys("one\r");
    terminal.wait_for("One.");
    let mut entry = noting(&folder, "s");
    settings(json!({ "s": entry }));
    terminal.wait_for("Ask anything");
    terminal.keys("two\r");
    terminal.wait_for("Two.");
    entry["environment"] = json!({ "A": "b" });
    settings(json!({ "s": entry }));
    terminal.wait_for("Ask anything");
    terminal.keys("three\r");
    terminal.wait_for("Three.");
    assert_eq!(processes(&folder, "s").len(), 2);
    let read = "Resource: note://a\nMIME: text/plain\nthe content of note://a";
    assert_eq!(results(&server.last_request()), [read, read]);
}

#[test]
fn another_fence_is_drawn_around_the_servers_that_have_one() {
    if toolwright::sandbox_layers().is_empty() {
        println!("there is no sandbox here");
        return;
    }
    let server = ModelServer::start(["One.", "Two."].map(Answer::text));
    let folder = folder().with_model(&server, Wire::Anthropic).env("TOOLWRIGHT_SANDBOX", "on");
    let mut fenced = noting(&folder, "fenced");
    fenced["sandbox"] = json!(true);
    let servers = json!({ "fenced": fenced, "free": noting(&folder, "free") });
    let settings = |hidden: &str| {
        let fence = json!({ "unreadable": [hidden] });
        write_settings(&folder, json!({ "mcp": servers, "sandbox": fence }));
    };
    settings("hidden");
    let terminal = Terminal::start(&folder, &["-m", "anthropic/m"], 100, 40);
    terminal.wait_for("anthropic/m");
    terminal.keys("one\r");
    terminal.wait_for("One.");
    let count = |name: &str| processes(&folder, name).len();
    assert_eq!((count("fenced"), count("free")), (1, 1));
    settings("hidden too");
    terminal.wait_for("Ask anything");
    terminal.keys("two\r");
    terminal.wait_for("Two.");
    assert_eq!((count("fenced"), count("free")), (2, 1));
}

#[test]
fn what_a_project_would_run_counts_only_when_it_was_agreed_to() {
    let server = ModelServer::start([
        Answer::call("say", json!({})),
        Answer::text("One."),
        Answer::call("say", json!({})),
        Answer::text("Two."),
        Answer::call("say", json!({})),
        Answer::text("Three."),
    ]);
    let folder =
        folder().with_model(&server, Wire::Anthropic).file(".opencode/tool/say.js", &tool("first"));
    folder.tw(&["trust"]).expect(0);
    let terminal = Terminal::start(&folder, &["--trust", "-m", "anthropic/m"], 100, 40);
    terminal.wait_for("anthropic/m");
    terminal.keys("one\r");
    terminal.wait_for("One.");
    folder.write(".opencode/tool/say.js", &tool("second"));
    terminal.wait_for("Ask anything");
    terminal.keys("two\r");
    terminal.wait_for("Two.");
    terminal.wait_for("not used: .opencode/tool/say.js changed since");
    assert_eq!(results(&server.last_request()), ["first", "first"]);
    folder.tw(&["trust"]).expect(0);
    terminal.wait_for("Ask anything");
    terminal.keys("three\r");
    terminal.wait_for("Three.");
    assert_eq!(results(&server.last_request()).last().unwrap(), "second");
}

/// Answers each request with a text, for as long as `open` says; and counts them.
fn page(text: &'static str) -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/rules.md", listener.local_addr().unwrap());
    let count = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&count);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            seen.fetch_add(1, Ordering::SeqCst);
            let mut reader = BufReader::new(stream);
            let mut line = String::new();
            while reader.read_line(&mut line).is_ok_and(|n| n > 2) {
                line.clear();
            }
            let answer = format!(
                "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{text}",
                text.len()
            );
            reader.get_mut().write_all(answer.as_bytes()).ok();
        }
    });
    (address, count)
}

#[test]
fn instructions_come_from_the_network_once_and_are_kept() {
    let server = ModelServer::start([Answer::text("a"), Answer::text("b"), Answer::text("c")]);
    let (address, count) = page("rule-from-afar");
    let gone = format!(
        "http://{}/none.md",
        TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
    );
    let config = json!({ "instructions": [address, gone] }).to_string();
    let folder = folder().with_model(&server, Wire::Anthropic).file("opencode.json", &config);
    let run = ["run", "-m", "anthropic/m", "go"];
    folder.tw(&run).expect(0);
    assert_eq!(count.load(Ordering::SeqCst), 0, "an unknown folder makes us fetch nothing");
    let trusted = ["run", "--trust", "-m", "anthropic/m", "go"];
    let ran = folder.tw(&trusted).expect(0);
    assert!(server.last_request().body["system"].to_string().contains("rule-from-afar"));
    assert!(ran.stderr.contains(&format!("instructions: {gone} cannot be had")), "{}", ran.stderr);
    assert!(ran.stderr.contains("goes on without it"), "{}", ran.stderr);
    let kept = folder.root().join("data/toolwright/instructions");
    assert_eq!(std::fs::read_dir(kept).unwrap().count(), 1);
    folder.tw(&trusted).expect(0);
    assert!(server.last_request().body["system"].to_string().contains("rule-from-afar"));
}
