//! Proxies and certificates, by the variables and the keys that people set. Nothing here leaves the
//! machine: `.invalid` names are resolved by nobody, so a request that arrives came through the proxy.
//!
//! The certificate under `tls/` is for `model.invalid` and 127.0.0.1, signed by the authority beside it.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use rustls::pki_types::PrivateKeyDer;
use toolwright_testkit::{Answer, Folder, ModelServer};

use crate::folder;

const AUTHORITY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/tls/authority.pem");
const RUN: &[&str] = &["run", "-m", "openai-chat/m", "hi"];

fn chat_at(url: &str) -> Folder {
    let patience = r#"{"provider": {"openai-chat": {"options": {"retries": 0}}}}"#;
    folder().user_config(patience).env("OPENAI_API_KEY", "k").env("OPENAI_BASE_URL", url)
}

#[test]
fn a_plain_address_is_asked_for_through_the_proxy() {
    let list = r#"{"openai": {"models": {"fresh": {"name": "Fresh"}}}}"#;
    let proxy = ModelServer::start([Answer::text("Hello."), Answer::status(200, list)]);
    let folder = chat_at("http://model.invalid/v1")
        .env("HTTP_PROXY", &proxy.url())
        .env("TOOLWRIGHT_MODELS_URL", "http://list.invalid/api.json");
    assert_eq!(folder.tw(RUN).expect(0).stdout, "Hello.\n");
    assert_eq!(proxy.last_request().path, "http://model.invalid/v1/chat/completions");
    folder.tw(&["models", "--refresh"]).expect(0);
    assert_eq!(proxy.last_request().path, "http://list.invalid/api.json");
}

#[test]
fn an_exception_keeps_an_address_away_from_the_proxy() {
    let server = ModelServer::start([Answer::text("Hello.")]);
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let folder = chat_at(&server.url()).env("HTTP_PROXY", &format!("http://{nobody}"));
    folder.tw(RUN).expect(1);
    assert!(server.requests().is_empty());
    folder.env("NO_PROXY", "127.0.0.1").tw(RUN).expect(0);
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn an_encrypted_address_is_reached_through_a_tunnel() {
    let (port, heads) = serve_tls(Tunnel::First);
    let folder = chat_at("https://model.invalid/v1")
        .env("HTTPS_PROXY", &format!("http://127.0.0.1:{port}"))
        .env("NODE_EXTRA_CA_CERTS", AUTHORITY);
    assert_eq!(folder.tw(RUN).expect(0).stdout, "Over TLS.\n");
    assert!(heads.recv().unwrap().starts_with("CONNECT model.invalid:443 "));
    let head = heads.recv().unwrap();
    assert!(head.starts_with("POST /v1/chat/completions "), "{head}");
}

#[test]
fn an_authority_of_ones_own_is_believed_where_it_was_named_and_nowhere_else() {
    let (port, _heads) = serve_tls(Tunnel::None);
    let url = format!("https://127.0.0.1:{port}/v1");
    let run = chat_at(&url).tw(RUN).expect(1);
    assert!(run.stderr.to_lowercase().contains("certificate"), "{}", run.stderr);

    let with = |path: &str| {
        let options = format!(r#"{{"retries": 0, "caFile": "{path}"}}"#);
        let config = format!(r#"{{"provider": {{"openai-chat": {{"options": {options}}}}}}}"#);
        chat_at(&url).user_config(&config)
    };
    assert_eq!(with(AUTHORITY).tw(RUN).expect(0).stdout, "Over TLS.\n");
    let run = with("/nowhere/ca.pem").tw(RUN).expect(1);
    assert!(run.stderr.contains("certificates in /nowhere/ca.pem"), "{}", run.stderr);

    chat_at(&url).env("NODE_EXTRA_CA_CERTS", AUTHORITY).tw(RUN).expect(0);
    if cfg!(target_os = "linux") {
        chat_at(&url).env("SSL_CERT_FILE", AUTHORITY).tw(RUN).expect(0);
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Tunnel {
    None,
    /// A proxy's part is played too.
    First,
}

/// A server that answers every request the same way, over TLS. The heads of what it was sent come out.
fn serve_tls(tunnel: Tunnel) -> (u16, Receiver<String>) {
    let certificate = include_bytes!("tls/server.der").to_vec().into();
    let key = PrivateKeyDer::Pkcs8(include_bytes!("tls/server-key.der").to_vec().into());
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
    let config = Arc::new(config);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (told, heads) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            // A client that does not believe us goes away in the middle.
            answer(stream, Arc::clone(&config), tunnel, &told).ok();
        }
    });
    (port, heads)
}

fn answer(
    mut stream: TcpStream,
    config: Arc<rustls::ServerConfig>,
    tunnel: Tunnel,
    told: &Sender<String>,
) -> std::io::Result<()> {
    if tunnel == Tunnel::First {
        told.send(head(&mut stream)?).ok();
        stream.write_all(b"HTTP/1.1 200 Connected\r\n\r\n")?;
    }
    let connection = rustls::ServerConnection::new(config).map_err(std::io::Error::other)?;
    let mut stream = rustls::StreamOwned::new(connection, stream);
    let head = head(&mut stream)?;
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse().unwrap())
    });
    stream.read_exact(&mut vec![0; length.unwrap_or(0)])?;
    told.send(head).ok();
    let body = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Over TLS.\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
    let length = body.len();
    write!(
        stream,
        "HTTP/1.1 200 OK\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
    )?;
    stream.conn.send_close_notify();
    stream.flush()
}

/// Up to the empty line, byte by byte: what follows belongs to somebody else.
fn head(stream: &mut impl Read) -> std::io::Result<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte)?;
        head.push(byte[0]);
    }
    Ok(String::from_utf8_lossy(&head).into_owned())
}
