//! The HTTP client under every request that leaves the machine: whose certificates are believed, and
//! which proxy is used (by the usual variables, which the HTTP library reads).

use std::path::{Path, PathBuf};

use reqwest::{Certificate, ClientBuilder};

/// Certificates of authorities besides the system's own, by the name that other programs use for it.
const EXTRA_CERTIFICATES: &str = "NODE_EXTRA_CA_CERTS";

/// A client for `url` that also believes the authorities in `ca_file`.
pub fn client_builder(url: &str, ca_file: Option<&Path>) -> Result<ClientBuilder, String> {
    // Fails only when a provider is installed already, which serves as well.
    drop(rustls::crypto::ring::default_provider().install_default());
    let builder =
        reqwest::Client::builder().user_agent(concat!("toolwright/", env!("CARGO_PKG_VERSION")));
    if url.starts_with("http://") && !proxy_speaks_tls() {
        // No certificate is checked on this address: do not read the system's store for it.
        return Ok(builder.tls_certs_only(std::iter::empty()));
    }
    let from_environment = std::env::var_os(EXTRA_CERTIFICATES).filter(|path| !path.is_empty());
    let mut extra = Vec::new();
    for file in ca_file.map(Path::to_owned).into_iter().chain(from_environment.map(PathBuf::from)) {
        extra.extend(certificates(&file)?);
    }
    Ok(if extra.is_empty() { builder } else { builder.tls_certs_merge(extra) })
}

fn certificates(file: &Path) -> Result<Vec<Certificate>, String> {
    let cannot = |why: String| format!("cannot use the certificates in {}: {why}", file.display());
    let pem = std::fs::read(file).map_err(|e| cannot(e.to_string()))?;
    match Certificate::from_pem_bundle(&pem) {
        Ok(found) if found.is_empty() => Err(cannot("there are none in it".to_owned())),
        Ok(found) => Ok(found),
        Err(error) => Err(cannot(error.to_string())),
    }
}

/// Whether a proxy for plain addresses is itself reached over TLS.
fn proxy_speaks_tls() -> bool {
    let names = ["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"];
    names.iter().filter_map(|name| std::env::var(name).ok()).any(|url| url.starts_with("https:"))
}
