//! Pages from servers on this machine, and the guard that usually keeps us from them.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use serde_json::json;

use super::{WebFetch, WebFetchOptions};
use crate::kit::{Door, Kit};

/// A server that answers each path with the bytes that `respond` gives, and remembers the requests.
pub(crate) struct Site {
    pub(crate) url: String,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Site {
    pub(crate) fn new(respond: impl Fn(&str) -> Vec<u8> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let requests: Arc<Mutex<Vec<String>>> = Arc::default();
        let (seen, respond) = (Arc::clone(&requests), Arc::new(respond));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (seen, respond) = (Arc::clone(&seen), Arc::clone(&respond));
                std::thread::spawn(move || serve(stream, &seen, respond.as_ref()));
            }
        });
        Self { url, requests }
    }

    pub(crate) fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

fn serve(stream: TcpStream, seen: &Mutex<Vec<String>>, respond: &dyn Fn(&str) -> Vec<u8>) {
    let mut reader = BufReader::new(stream);
    let (mut head, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).unwrap_or(0) == 0 || line == "\r\n" {
            break;
        }
        if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        head.push_str(&line);
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    let request = format!("{head}\r\n{}", String::from_utf8_lossy(&body));
    seen.lock().unwrap().push(request.clone());
    // A client that has read enough hangs up.
    reader.into_inner().write_all(&respond(&request)).ok();
}

pub(crate) fn answer(status: &str, headers: &str, body: &[u8]) -> Vec<u8> {
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\n{headers}content-length: {length}\r\nconnection: close\r\n\r\n"
    );
    [head.as_bytes(), body].concat()
}

fn page(kind: &str, body: &str) -> Vec<u8> {
    answer("200 OK", &format!("content-type: {kind}\r\n"), body.as_bytes())
}

fn open() -> Arc<WebFetch> {
    Arc::new(WebFetch::new(WebFetchOptions { allow_private: true, allow_hosts: Vec::new() }))
}

#[tokio::test]
async fn a_page_comes_in_the_form_that_is_wanted() {
    let html = "<h1>Title</h1><script>no</script><p>Text</p>";
    let site = Site::new(move |_| page("text/html; charset=utf-8", html));
    let kit = Kit::new([open() as _]);
    for (format, expected, accept) in [
        (json!(null), "# Title\n\nText", "text/markdown;q=1.0"),
        (json!("text"), "TitleText", "text/plain;q=1.0"),
        (json!("html"), html, "text/html;q=1.0"),
    ] {
        let mut arguments = json!({"url": format!("{}/a", site.url)});
        if !format.is_null() {
            arguments["format"] = format;
        }
        let outcome = kit.ok("webfetch", arguments).await;
        assert_eq!(outcome.output, expected);
        assert_eq!(outcome.title, format!("{}/a (text/html; charset=utf-8)", site.url));
        let request = site.requests().pop().unwrap().to_lowercase();
        assert!(request.starts_with("get /a http/1.1") && request.contains(accept), "{request}");
    }
    assert_eq!(kit.asked()[0], ("webfetch".to_owned(), format!("{}/a", site.url)));
}

#[tokio::test]
async fn other_content_comes_as_it_is() {
    let png = {
        let mut png = std::io::Cursor::new(Vec::new());
        image::RgbImage::new(1, 1).write_to(&mut png, image::ImageFormat::Png).unwrap();
        png.into_inner()
    };
    let site = Site::new(move |request| match request.split(' ').nth(1).unwrap() {
        "/json" => page("application/json", "{\"a\": \"<b>\"}"),
        "/svg" => page("image/svg+xml", "<svg/>"),
        "/png" => answer("200 OK", "content-type: image/png\r\n", &png),
        "/loud" => answer("200 OK", "content-type: IMAGE/PNG; charset=binary\r\n", &png),
        "/zip" => answer("200 OK", "content-type: application/zip\r\n", b"PK\0\0"),
        "/latin" => answer("200 OK", "content-type: text/plain\r\n", b"caf\xe9"),
        _ => answer("404 Not Found", "", b"nothing"),
    });
    let kit = Kit::new([open() as _]);
    let at = |path: &str| json!({"url": format!("{}{path}", site.url)});
    assert_eq!(kit.ok("webfetch", at("/json")).await.output, "{\"a\": \"<b>\"}");
    assert_eq!(kit.ok("webfetch", at("/svg")).await.output, "<svg/>");
    assert_eq!(kit.ok("webfetch", at("/latin")).await.output, "caf\u{fffd}");
    for path in ["/png", "/loud"] {
        let image = kit.ok("webfetch", at(path)).await;
        assert_eq!(image.output, "Image fetched successfully");
        assert_eq!(image.attachments[0].mime, "image/png");
    }
    assert!(kit.error("webfetch", at("/zip")).await.contains("4 bytes of application/zip"));
    assert!(kit.error("webfetch", at("/none")).await.contains("status 404"));
    assert!(kit.error("webfetch", json!({"url": "ftp://x"})).await.contains("URL must start with"));
}

#[tokio::test]
async fn too_much_and_too_slow_are_told_apart() {
    let site = Site::new(|request| match request.split(' ').nth(1).unwrap() {
        "/told" => b"HTTP/1.1 200 OK\r\ncontent-length: 6000000\r\n\r\n".to_vec(),
        "/untold" => {
            let head = b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n".to_vec();
            [head, vec![b'x'; 5 * 1024 * 1024 + 1]].concat()
        }
        // The promised body never comes; the connection stays open until the client leaves.
        _ => loop {
            std::thread::park();
        },
    });
    let kit = Kit::new([open() as _]);
    for path in ["/told", "/untold"] {
        let error = kit.error("webfetch", json!({"url": format!("{}{path}", site.url)})).await;
        assert_eq!(error, "Response too large (exceeds 5MB limit)");
    }
    let slow = json!({"url": format!("{}/slow", site.url), "timeout": 0.2});
    assert_eq!(kit.error("webfetch", slow).await, "Request timed out");
}

#[tokio::test]
async fn a_redirect_is_judged_again_before_it_is_followed() {
    let target = Site::new(|_| page("text/plain", "arrived"));
    let (to, secret) = (format!("{}/b", target.url), format!("{}/secret", target.url));
    let site = Site::new(move |request| match request.split(' ').nth(1).unwrap() {
        "/a" => answer("302 Found", &format!("location: {to}\r\n"), b""),
        "/bad" => answer("302 Found", &format!("location: {secret}\r\n"), b""),
        "/file" => answer("302 Found", "location: file:///etc/passwd\r\n", b""),
        "/key" => answer("301 Moved", "location: http://user:pw@example.org/\r\n", b""),
        "/loop" => answer("307 Temporary", "location: /loop\r\n", b""),
        _ => answer("404 Not Found", "", b""),
    });
    let door = Door { refused: vec![format!("{}/secret", target.url)], ..Door::default() };
    let kit = Kit::behind(door, [open() as _]);
    let at = |path: &str| json!({"url": format!("{}{path}", site.url)});
    let outcome = kit.ok("webfetch", at("/a")).await;
    assert_eq!(outcome.output, "arrived");
    assert_eq!(outcome.details["url"], format!("{}/b", target.url));
    let patterns: Vec<String> = kit.asked().into_iter().map(|(_, pattern)| pattern).collect();
    assert_eq!(patterns, [format!("{}/a", site.url), format!("{}/b", target.url)]);
    let refused = kit.call("webfetch", at("/bad")).await;
    assert_eq!(refused.ending, toolwright_session::Ending::Denied);
    assert_eq!(target.requests().len(), 1, "what was refused was not asked for");
    assert!(kit.error("webfetch", at("/file")).await.contains("URL must start with"));
    assert!(kit.error("webfetch", at("/key")).await.contains("user name or password"));
    assert!(kit.error("webfetch", at("/loop")).await.contains("more than 10 times"));
}

#[tokio::test]
async fn a_challenge_is_answered_once_under_our_own_name() {
    let site = Site::new(|request| {
        if request.contains("Mozilla") {
            answer("403 Forbidden", "cf-mitigated: challenge\r\n", b"")
        } else {
            page("text/plain", "welcome")
        }
    });
    let kit = Kit::new([open() as _]);
    let outcome = kit.ok("webfetch", json!({"url": site.url})).await;
    assert_eq!(outcome.output, "welcome");
    assert!(site.requests()[1].to_lowercase().contains("user-agent: toolwright/"));
}

#[tokio::test]
async fn this_machine_is_not_fetched_unless_the_settings_say_so() {
    let site = Site::new(|_| page("text/plain", "inside"));
    let port = site.url.rsplit(':').next().unwrap().to_owned();
    let guarded = Kit::new([Arc::new(WebFetch::default()) as _]);
    for host in ["127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "2130706433"] {
        let url = format!("http://{host}:{port}/");
        let error = guarded.error("webfetch", json!({ "url": url })).await;
        assert!(error.contains("webfetch.allow_private"), "{error}");
    }
    assert!(site.requests().is_empty(), "nobody was connected to");
    let options = WebFetchOptions { allow_hosts: vec!["127.0.0.1".into()], ..Default::default() };
    let named = Kit::new([Arc::new(WebFetch::new(options)) as _]);
    let outcome = named.ok("webfetch", json!({"url": site.url})).await;
    assert_eq!(outcome.output, "inside");
    let url = format!("http://localhost:{port}/");
    assert!(named.error("webfetch", json!({ "url": url })).await.contains("not fetched"));
}

#[tokio::test]
async fn a_redirect_to_this_machine_is_refused_by_its_address() {
    let inside = Site::new(|_| page("text/plain", "inside"));
    let port = inside.url.rsplit(':').next().unwrap().to_owned();
    let to = format!("http://localhost:{port}/");
    let site = Site::new(move |_| answer("302 Found", &format!("location: {to}\r\n"), b""));
    let options = WebFetchOptions { allow_hosts: vec!["127.0.0.1".into()], ..Default::default() };
    let kit = Kit::new([Arc::new(WebFetch::new(options)) as _]);
    assert!(kit.error("webfetch", json!({"url": site.url})).await.contains("not fetched"));
    assert!(inside.requests().is_empty());
}

#[tokio::test]
async fn a_connection_goes_to_the_addresses_that_were_checked_and_nowhere_else() {
    let site = Site::new(|_| page("text/plain", "pinned"));
    let address: std::net::SocketAddr = site.url.trim_start_matches("http://").parse().unwrap();
    // No server knows this name: only the pin leads anywhere.
    let url = reqwest::Url::parse(&format!("http://pinned.invalid:{}/", address.port())).unwrap();
    let client = super::http::client(&url, &[address]).unwrap();
    let response = client.get(url.clone()).send().await.unwrap();
    assert_eq!(super::http::body(response).await.unwrap(), b"pinned");
    let url = reqwest::Url::parse(&format!("http://localhost:{}/", address.port())).unwrap();
    let nowhere = super::http::client(&url, &[]).unwrap();
    assert!(nowhere.get(url).send().await.is_err(), "the name is not looked up a second time");
}
