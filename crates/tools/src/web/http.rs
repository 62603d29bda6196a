//! One request at a time, to addresses that were looked at before, with bounds on time and size.

use std::net::SocketAddr;
use std::time::Duration;

use reqwest::{Client, Response, Url};

/// More is not read, whatever a server says it sends.
pub(crate) const BODY_CAP_BYTES: usize = 5 * 1024 * 1024;

const CONNECT: Duration = Duration::from_secs(10);

/// A client for one host that goes to `addresses` and follows nothing.
pub(crate) fn client(url: &Url, addresses: &[SocketAddr]) -> Result<Client, String> {
    let host = url.host_str().unwrap_or_default();
    build(url.scheme() == "https", |builder| builder.resolve_to_addrs(host, addresses))
}

/// A client for a service that the settings name.
pub(crate) fn service_client(url: &Url) -> Result<Client, String> {
    build(url.scheme() == "https", |builder| builder)
}

fn build(
    secure: bool,
    change: impl FnOnce(reqwest::ClientBuilder) -> reqwest::ClientBuilder,
) -> Result<Client, String> {
    // Fails only when a provider is installed already, which serves as well.
    drop(rustls::crypto::ring::default_provider().install_default());
    let mut builder = Client::builder()
        .connect_timeout(CONNECT)
        .redirect(reqwest::redirect::Policy::none())
        .pool_max_idle_per_host(0);
    if !secure {
        // No certificate is checked on this address: do not read the system's store for it.
        builder = builder.tls_certs_only(std::iter::empty());
    }
    change(builder).build().map_err(|e| format!("Cannot prepare the connection: {}.", cause(&e)))
}

/// The body, as long as it is not too long.
pub(crate) async fn body(mut response: Response) -> Result<Vec<u8>, String> {
    let too_large = || "Response too large (exceeds 5MB limit)".to_owned();
    if response.content_length().is_some_and(|length| length > BODY_CAP_BYTES as u64) {
        return Err(too_large());
    }
    let mut body = Vec::new();
    loop {
        let chunk = response.chunk().await;
        match chunk.map_err(|e| format!("The answer broke off: {}.", cause(&e)))? {
            Some(chunk) if body.len() + chunk.len() > BODY_CAP_BYTES => return Err(too_large()),
            Some(chunk) => body.extend_from_slice(&chunk),
            None => return Ok(body),
        }
    }
}

/// Whether requests may go through somebody who looks up names for us.
pub(crate) fn has_proxy() -> bool {
    const NAMES: [&str; 3] = ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"];
    let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    NAMES.iter().any(|name| set(name) || set(&name.to_lowercase()))
}

/// The innermost reason, without the address, which may hold a key.
pub(crate) fn cause(error: &reqwest::Error) -> String {
    let mut innermost: &dyn std::error::Error = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    match innermost.downcast_ref::<reqwest::Error>() {
        Some(_) if error.is_timeout() => "it took too long".to_owned(),
        Some(_) => "the connection failed".to_owned(),
        None => innermost.to_string(),
    }
}
