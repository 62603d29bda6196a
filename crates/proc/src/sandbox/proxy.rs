//! The way to named hosts for a child that has no network: a proxy of ours at a socket that only
//! that child can see. It speaks HTTP's `CONNECT` and plain HTTP with whole addresses.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UnixListener, UnixStream};
use tokio::task::JoinHandle;

/// The head of a request; no client needs more.
const HEAD_CAP: usize = 64 << 10;

/// How long a client may take to say what it wants, and a host to answer.
const PATIENCE: Duration = Duration::from_secs(30);

/// Ports of a host that is named without one.
const USUAL_PORTS: [u16; 2] = [443, 80];

#[derive(Debug)]
pub(crate) struct Proxy {
    folder: PathBuf,
    socket: PathBuf,
    serving: JoinHandle<()>,
}

impl Proxy {
    /// Serves until it is dropped. To be called inside the runtime.
    pub(super) fn start(hosts: &[String]) -> io::Result<Arc<Self>> {
        let folder = own_folder()?;
        let socket = folder.join("proxy");
        let listener = UnixListener::bind(&socket)?;
        let hosts: Arc<[String]> = hosts.iter().map(|host| host.to_lowercase()).collect();
        let serving = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let hosts = Arc::clone(&hosts);
                tokio::spawn(async move {
                    // A client that goes away is its own affair.
                    serve(client, &hosts).await.ok();
                });
            }
        });
        Ok(Arc::new(Self { folder, socket, serving }))
    }

    pub(super) fn path(&self) -> &Path {
        &self.socket
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.serving.abort();
        std::fs::remove_dir_all(&self.folder).ok();
    }
}

/// A folder that only we can look into.
fn own_folder() -> io::Result<PathBuf> {
    use std::os::unix::fs::DirBuilderExt;
    use std::sync::atomic::{AtomicU32, Ordering};
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let nanos = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(0, |time| time.subsec_nanos());
    let name = format!("toolwright-{}-{number}-{nanos}", std::process::id());
    let folder = std::fs::canonicalize(std::env::temp_dir())?.join(name);
    std::fs::DirBuilder::new().mode(0o700).create(&folder)?;
    Ok(folder)
}

async fn serve(mut client: UnixStream, hosts: &[String]) -> io::Result<()> {
    let head = tokio::time::timeout(PATIENCE, read_head(&mut client)).await??;
    let wish = match parse(&head) {
        Some(wish) => wish,
        None => return refuse(&mut client, "400 Bad Request", "this is no proxy request").await,
    };
    if !is_named(&wish.host, wish.port, hosts) {
        let text = format!("the sandbox does not let commands reach {}:{}", wish.host, wish.port);
        return refuse(&mut client, "403 Forbidden", &text).await;
    }
    let address = (wish.host.as_str(), wish.port);
    let server = tokio::time::timeout(PATIENCE, TcpStream::connect(address)).await;
    let mut server = match server {
        Ok(Ok(server)) => server,
        Ok(Err(error)) => {
            return refuse(&mut client, "502 Bad Gateway", &error.to_string()).await;
        }
        Err(_) => return refuse(&mut client, "504 Gateway Timeout", "it does not answer").await,
    };
    match wish.request {
        None => client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await?,
        Some(request) => server.write_all(&request).await?,
    }
    tokio::io::copy_bidirectional(&mut client, &mut server).await?;
    Ok(())
}

async fn read_head(client: &mut UnixStream) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    let mut buffer = [0; 4096];
    while !head.windows(4).any(|window| window == b"\r\n\r\n") {
        let count = client.read(&mut buffer).await?;
        if count == 0 || head.len() + count > HEAD_CAP {
            return Err(io::ErrorKind::InvalidData.into());
        }
        head.extend_from_slice(&buffer[..count]);
    }
    Ok(head)
}

async fn refuse(client: &mut UnixStream, status: &str, text: &str) -> io::Result<()> {
    let length = text.len();
    let answer = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{text}"
    );
    client.write_all(answer.as_bytes()).await
}

#[derive(Debug, PartialEq, Eq)]
struct Wish {
    host: String,
    port: u16,
    /// What goes to the server first; nothing for a tunnel.
    request: Option<Vec<u8>>,
}

fn parse(head: &[u8]) -> Option<Wish> {
    let end = head.windows(4).position(|window| window == b"\r\n\r\n")?;
    let text = std::str::from_utf8(head.get(..end)?).ok()?;
    let mut lines = text.split("\r\n");
    let mut first = lines.next()?.split(' ');
    let (method, target, version) = (first.next()?, first.next()?, first.next()?);
    if method == "CONNECT" {
        let (host, port) = address(target, None)?;
        return Some(Wish { host, port, request: None });
    }
    let rest = target.strip_prefix("http://")?;
    let (place, path) = rest.split_once('/').map_or((rest, ""), |(place, path)| (place, path));
    let (host, port) = address(place, Some(80))?;
    // One request for one connection: a second might be meant for somebody else.
    let is_ours = |line: &&str| {
        let name = line.split(':').next().unwrap_or_default().to_lowercase();
        !matches!(name.as_str(), "connection" | "proxy-connection" | "proxy-authorization")
    };
    let mut request = format!("{method} /{path} {version}\r\n");
    for line in lines.filter(is_ours) {
        request.push_str(line);
        request.push_str("\r\n");
    }
    request.push_str("Connection: close\r\n\r\n");
    let mut request = request.into_bytes();
    request.extend_from_slice(head.get(end + 4..)?);
    Some(Wish { host, port, request: Some(request) })
}

fn address(text: &str, usual: Option<u16>) -> Option<(String, u16)> {
    // Of a name with a password in it, nothing is wanted.
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let (host, rest) = rest.split_once(']')?;
            (host, rest.strip_prefix(':'))
        }
        None => text.rsplit_once(':').map_or((text, None), |(host, port)| (host, Some(port))),
    };
    let port = port.map_or(usual, |port| port.parse().ok())?;
    let plain = !host.is_empty() && !host.contains(['@', '/', '\\', '%']);
    plain.then(|| (host.trim_end_matches('.').to_lowercase(), port))
}

/// `name`, `name:port`, `*.name`: with no port, those of the web.
fn is_named(host: &str, port: u16, hosts: &[String]) -> bool {
    hosts.iter().any(|entry| {
        let (name, ports) = match entry.rsplit_once(':') {
            Some((name, number)) if number.parse::<u16>().is_ok() => {
                (name, number.parse().into_iter().collect())
            }
            _ => (entry.as_str(), USUAL_PORTS.to_vec()),
        };
        let fits = match name.strip_prefix("*.") {
            Some(end) => host.strip_suffix(end).is_some_and(|front| front.ends_with('.')),
            None => host == name,
        };
        fits && ports.contains(&port)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_named_hosts_at_their_ports_are_reached() {
        let hosts = ["crates.io", "*.npmjs.org", "localhost:8080"].map(str::to_owned);
        for (host, port, wanted) in [
            ("crates.io", 443, true),
            ("crates.io", 80, true),
            ("crates.io", 22, false),
            ("evil-crates.io", 443, false),
            ("crates.io.evil.com", 443, false),
            ("registry.npmjs.org", 443, true),
            ("npmjs.org", 443, false),
            ("evilnpmjs.org", 443, false),
            ("localhost", 8080, true),
            ("localhost", 443, false),
        ] {
            assert_eq!(is_named(host, port, &hosts), wanted, "{host}:{port}");
        }
    }

    #[test]
    fn requests_are_read_and_made_plain() {
        let tunnel = parse(b"CONNECT Crates.IO:443 HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
        assert_eq!(tunnel, Wish { host: "crates.io".into(), port: 443, request: None });
        let plain = parse(
            b"GET http://a.b:81/c?d HTTP/1.1\r\nHost: a.b:81\r\nConnection: keep-alive\r\n\r\nbody",
        )
        .unwrap();
        assert_eq!((plain.host.as_str(), plain.port), ("a.b", 81));
        let request = String::from_utf8(plain.request.unwrap()).unwrap();
        let wanted = "GET /c?d HTTP/1.1\r\nHost: a.b:81\r\nConnection: close\r\n\r\nbody";
        assert_eq!(request, wanted);
        for bad in [
            "GET /path HTTP/1.1\r\n\r\n",
            "CONNECT crates.io HTTP/1.1\r\n\r\n",
            "CONNECT user@crates.io:443 HTTP/1.1\r\n\r\n",
            "CONNECT :443 HTTP/1.1\r\n\r\n",
            "nonsense\r\n\r\n",
        ] {
            assert_eq!(parse(bad.as_bytes()), None, "{bad}");
        }
    }
}
