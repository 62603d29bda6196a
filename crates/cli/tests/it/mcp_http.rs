//! Remote servers: signing in and its tokens, sessions that expire, the older way over HTTP, headers.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use toolwright_testkit::{Answer, Folder, ModelServer, Reply, Wire};

use crate::mcp::{RUN, config};
use crate::{folder, results};

/// A server of MCP and of OAuth, on loopback.
struct Web {
    port: u16,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    needs_sign_in: bool,
    only_older: bool,
    /// Calls after which a session is forgotten, once.
    expires_after: Option<usize>,
    token_lives_secs: u64,
    tokens: usize,
    scope: String,
    session: usize,
    calls: usize,
    /// What was asked for, by path: the query or the form.
    seen: Vec<(String, HashMap<String, String>)>,
    headers: Vec<HashMap<String, String>>,
    stream: Option<Sender<String>>,
}

struct Request {
    method: String,
    path: String,
    query: HashMap<String, String>,
    headers: HashMap<String, String>,
    body: String,
}

impl Web {
    fn start(state: State) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let state = Arc::new(Mutex::new(state));
        let shared = Arc::clone(&state);
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let shared = Arc::clone(&shared);
                std::thread::spawn(move || serve(stream, port, &shared));
            }
        });
        Self { port, state }
    }

    fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    fn seen(&self, path: &str) -> Vec<HashMap<String, String>> {
        let state = self.state.lock().unwrap();
        state.seen.iter().filter(|(seen, _)| seen == path).map(|(_, form)| form.clone()).collect()
    }
}

fn decode(text: &str) -> String {
    let bytes = text.replace('+', " ").into_bytes();
    let mut out = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let hex = bytes.get(at + 1..at + 3).and_then(|h| std::str::from_utf8(h).ok());
        match (bytes[at], hex.and_then(|hex| u8::from_str_radix(hex, 16).ok())) {
            (b'%', Some(byte)) => {
                out.push(byte);
                at += 3;
            }
            (byte, _) => {
                out.push(byte);
                at += 1;
            }
        }
    }
    String::from_utf8(out).unwrap()
}

fn form(text: &str) -> HashMap<String, String> {
    let pair = |pair: &str| pair.split_once('=').map(|(k, v)| (decode(k), decode(v)));
    text.split('&').filter_map(pair).collect()
}

fn read(stream: &TcpStream) -> Option<Request> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let mut words = line.split(' ');
    let (method, target) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut headers = HashMap::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.insert(name.to_lowercase(), value.trim().to_owned());
    }
    let length = headers.get("content-length").and_then(|n| n.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    let (path, query) = (path.to_owned(), form(query));
    Some(Request { method, path, query, headers, body: String::from_utf8(body).ok()? })
}

fn answer(mut stream: &TcpStream, status: &str, more: &str, body: &str) {
    let text = format!(
        "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n{more}\r\n{body}",
        body.len()
    );
    stream.write_all(text.as_bytes()).ok();
}

fn serve(stream: TcpStream, port: u16, state: &Mutex<State>) {
    let Some(request) = read(&stream) else { return };
    let base = format!("http://127.0.0.1:{port}");
    let mut now = state.lock().unwrap();
    let said = if request.method == "POST" { form(&request.body) } else { request.query.clone() };
    now.seen.push((request.path.clone(), said.clone()));
    match (request.method.as_str(), request.path.as_str()) {
        ("GET", path) if path.starts_with("/.well-known/oauth-protected-resource") => {
            let body = json!({"resource": format!("{base}/mcp"), "authorization_servers": [base]});
            answer(&stream, "200 OK", "", &body.to_string());
        }
        ("GET", "/.well-known/oauth-authorization-server") => {
            let body = json!({"issuer": base, "authorization_endpoint": format!("{base}/authorize"),
                "token_endpoint": format!("{base}/token"), "registration_endpoint": format!("{base}/register"),
                "response_types_supported": ["code"], "code_challenge_methods_supported": ["S256"],
                "token_endpoint_auth_methods_supported": ["none"]});
            answer(&stream, "200 OK", "", &body.to_string());
        }
        ("POST", "/register") => {
            let asked: Value = serde_json::from_str(&request.body).unwrap();
            let body = json!({"client_id": "client-1", "redirect_uris": asked["redirect_uris"]});
            answer(&stream, "201 Created", "", &body.to_string());
        }
        ("GET", "/authorize") => {
            let place = format!("{}?code=code-1&state={}", said["redirect_uri"], said["state"]);
            now.scope = said.get("scope").cloned().unwrap_or_default();
            answer(&stream, "302 Found", &format!("Location: {place}\r\n"), "");
        }
        ("POST", "/token") => {
            now.tokens += 1;
            let body = json!({"access_token": format!("access-token-number-{}", now.tokens), "token_type": "Bearer",
                "expires_in": now.token_lives_secs, "refresh_token": "refresh-token-of-a-test", "scope": now.scope});
            answer(&stream, "200 OK", "", &body.to_string());
        }
        ("GET", "/sse") if now.only_older => {
            let (sender, receiver) = channel();
            now.stream = Some(sender);
            now.headers.push(request.headers);
            drop(now);
            let mut stream = stream;
            let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\nevent: endpoint\ndata: /messages?s=1\n\n";
            stream.write_all(head.as_bytes()).ok();
            for data in receiver {
                if write!(stream, "event: message\ndata: {data}\n\n").is_err() {
                    return;
                }
            }
        }
        ("POST", "/messages") => {
            let message: Value = serde_json::from_str(&request.body).unwrap();
            if let Some(result) = mcp(&mut now, &message) {
                let said = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
                now.stream.as_ref().unwrap().send(said.to_string()).ok();
            }
            now.headers.push(request.headers);
            answer(&stream, "202 Accepted", "", "");
        }
        ("POST", "/mcp") => streamable(&stream, &request, &mut now, &base),
        ("DELETE", "/mcp") => answer(&stream, "200 OK", "", ""),
        _ => answer(&stream, "405 Method Not Allowed", "", "{}"),
    }
}

fn streamable(stream: &TcpStream, request: &Request, now: &mut State, base: &str) {
    let where_to = format!("resource_metadata=\"{base}/.well-known/oauth-protected-resource/mcp\"");
    let token = format!("Bearer access-token-number-{}", now.tokens);
    if now.needs_sign_in && request.headers.get("authorization") != Some(&token) {
        let more = format!("WWW-Authenticate: Bearer {where_to}, scope=\"tools\"\r\n");
        return answer(stream, "401 Unauthorized", &more, "");
    }
    let message: Value = serde_json::from_str(&request.body).unwrap();
    let begins = message["method"] == "initialize";
    let session = request.headers.get("mcp-session-id").cloned();
    if !begins && session != Some(format!("session-{}", now.session)) {
        return answer(stream, "404 Not Found", "", "");
    }
    if begins {
        now.session += 1;
    }
    if message["method"] == "tools/call" {
        if now.expires_after == Some(now.calls) {
            now.expires_after = None;
            now.session += 1_000;
            return answer(stream, "404 Not Found", "", "");
        }
        now.calls += 1;
        let rights = now.scope.split(' ').any(|scope| scope == "admin");
        if message["params"]["name"] == "admin" && !rights {
            let more = format!(
                "WWW-Authenticate: Bearer error=\"insufficient_scope\", scope=\"admin\", {where_to}\r\n"
            );
            return answer(stream, "403 Forbidden", &more, "");
        }
    }
    let more = format!("Mcp-Session-Id: session-{}\r\n", now.session);
    match mcp(now, &message) {
        Some(result) => {
            let body = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
            answer(stream, "200 OK", &more, &body.to_string());
        }
        None => answer(stream, "202 Accepted", &more, ""),
    }
}

fn mcp(_: &mut State, message: &Value) -> Option<Value> {
    let tool = |name: &str| json!({"name": name, "inputSchema": {"type": "object"}});
    match message["method"].as_str()? {
        "initialize" => {
            Some(json!({"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
            "serverInfo": {"name": "web", "version": "1"}}))
        }
        "tools/list" => Some(json!({"tools": [tool("echo"), tool("admin")]})),
        "tools/call" => {
            let text = message["params"]["arguments"]["text"].as_str().unwrap_or("done");
            Some(json!({"content": [{"type": "text", "text": text}]}))
        }
        "ping" => Some(json!({})),
        _ => None,
    }
}

/// What a browser does: goes there, and where it is sent.
fn browse(url: &str) {
    let (place, path) = url.strip_prefix("http://").unwrap().split_once('/').unwrap();
    let mut stream = TcpStream::connect(place).unwrap();
    write!(stream, "GET /{path} HTTP/1.1\r\nHost: {place}\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let next = text.lines().find_map(|line| line.strip_prefix("Location: "));
    if let Some(next) = next {
        browse(next);
    }
}

fn sign_in(folder: &Folder) {
    let child = folder.start(&["mcp", "auth", "web"]);
    browse(&child.wait_for_error("http://127.0.0.1", ""));
    child.wait().expect(0);
}

fn at(url: &str) -> Folder {
    folder().user_config(&config(json!({"web": {"type": "remote", "url": url}})))
}

#[test]
fn signing_in_from_the_terminal_interface_opens_the_browser_and_connects() {
    let web =
        Web::start(State { needs_sign_in: true, token_lives_secs: 3_600, ..State::default() });
    let folder = at(&web.url("/mcp"));
    let browser = folder.root().join("browser");
    let opened = folder.root().join("opened");
    let script = format!("#!/bin/sh\nprintf '%s\\n' \"$1\" > {}\n", opened.display());
    std::fs::write(&browser, script).unwrap();
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(&browser, std::fs::Permissions::from_mode(0o755)).unwrap();
    let folder = folder.env("BROWSER", &browser.display().to_string());
    let terminal = toolwright_testkit::Terminal::start(&folder, &[], 100, 30);
    terminal.wait_for("Ask anything");
    terminal.keys("/mcp\r");
    terminal.wait_for("✗ web  needs sign-in");
    terminal.keys("\x13");
    terminal.wait_for("Open this address to sign in at web");
    let address = toolwright_testkit::eventually("the browser", || {
        std::fs::read_to_string(&opened).ok().filter(|text| text.ends_with('\n'))
    });
    browse(address.trim());
    terminal.wait_for("Signed in at web");
    terminal.wait_for("✓ web  connected");
}

#[test]
fn signing_in_finds_its_way_keeps_its_tokens_and_renews_them() {
    let web =
        Web::start(State { needs_sign_in: true, token_lives_secs: 3_600, ..State::default() });
    let folder = at(&web.url("/mcp"));
    let list = folder.tw(&["mcp", "list"]).expect(0).stdout;
    assert!(list.contains("needs sign-in") && list.contains("tw mcp auth web"), "{list}");
    sign_in(&folder);
    let asked = &web.seen("/authorize")[0];
    assert_eq!(asked["code_challenge_method"], "S256");
    assert_eq!(asked["resource"], web.url("/mcp"));
    assert_eq!(asked["scope"], "tools");
    let exchanged = &web.seen("/token")[0];
    assert!(exchanged["code_verifier"].len() >= 43 && exchanged["code"] == "code-1");

    let kept = folder.root().join("data/toolwright/auth.json");
    let text = std::fs::read_to_string(&kept).unwrap();
    assert!(text.contains("mcp_web") && text.contains("access-token-number-1"));
    use std::os::unix::fs::PermissionsExt;
    assert_eq!(std::fs::metadata(&kept).unwrap().permissions().mode() & 0o777, 0o600);

    let echo = |text: &str| {
        let arguments = json!({ "text": text }).to_string();
        folder.tw(&["mcp", "call", "web", "echo", &arguments, "--auto"])
    };
    assert_eq!(echo("hello").expect(0).stdout, "hello\n");
    let masked = echo("see access-token-number-1 here").expect(0).stdout;
    assert_eq!(masked, "see [masked: stored token of web] here\n");

    // One that is about to end is renewed before it is used.
    web.state.lock().unwrap().token_lives_secs = 1;
    folder.tw(&["mcp", "logout", "web"]).expect(0);
    let list = folder.tw(&["mcp", "list"]).expect(0).stdout;
    assert!(list.contains("needs sign-in"), "{list}");
    sign_in(&folder);
    assert_eq!(echo("again").expect(0).stdout, "again\n");
    let renewed = web.seen("/token").iter().any(|form| {
        form.get("grant_type").is_some_and(|kind| kind == "refresh_token")
            && form.get("refresh_token").is_some_and(|t| t == "refresh-token-of-a-test")
    });
    assert!(renewed);
}

#[test]
fn rights_that_are_missing_are_asked_for_together_with_those_that_are_there() {
    let web =
        Web::start(State { needs_sign_in: true, token_lives_secs: 3_600, ..State::default() });
    let folder = at(&web.url("/mcp"));
    sign_in(&folder);
    let run = folder.tw(&["mcp", "call", "web", "admin", "--auto"]).expect(1);
    assert!(run.stdout.contains("more rights: tw mcp auth web"), "{}{}", run.stdout, run.stderr);
    sign_in(&folder);
    let asked = web.seen("/authorize").pop().unwrap()["scope"].clone();
    let mut scopes: Vec<_> = asked.split(' ').collect();
    scopes.sort_unstable();
    assert_eq!(scopes, ["admin", "tools"]);
    folder.tw(&["mcp", "call", "web", "admin", "--auto"]).expect(0);
}

#[test]
fn a_session_that_has_expired_is_begun_again_once() {
    let web = Web::start(State { expires_after: Some(1), ..State::default() });
    let server = ModelServer::start([
        Answer::call("web_echo", json!({"text": "one"})),
        Reply::default().call("web_echo", json!({"text": "two"})).into(),
        Answer::text("Done."),
    ]);
    let text = config(json!({"web": {"type": "remote", "url": web.url("/mcp"), "required": true}}));
    let folder = folder().user_config(&text).with_model(&server, Wire::Anthropic);
    folder.tw(&RUN).expect(0);
    assert_eq!(results(&server.last_request()), ["one", "two"]);
    assert_eq!(web.state.lock().unwrap().calls, 2);
}

#[test]
fn the_older_way_over_http_is_found_and_headers_are_sent() {
    let web = Web::start(State { only_older: true, ..State::default() });
    let entry = json!({"type": "remote", "url": web.url("/sse"), "headers": {"X-Team": "blue"}});
    let folder = folder().user_config(&config(json!({ "web": entry })));
    let arguments = json!({"text": "old"}).to_string();
    let run = folder.tw(&["mcp", "call", "web", "echo", &arguments, "--auto"]).expect(0);
    assert_eq!(run.stdout, "old\n");
    let headers = web.state.lock().unwrap().headers.clone();
    assert!(
        headers.len() > 3 && headers.iter().all(|h| h.get("x-team").is_some_and(|v| v == "blue"))
    );
}

#[test]
fn a_server_that_is_not_there_is_named_with_its_reason() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let list = at(&format!("http://127.0.0.1:{port}/mcp")).tw(&["mcp", "list"]).expect(0).stdout;
    assert!(list.contains("✗ web  failed") && list.to_lowercase().contains("refused"), "{list}");
}
