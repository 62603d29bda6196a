//! Finds model servers that already run on this machine.

use std::time::Duration;

use futures_util::future::join_all;

use crate::client::client_builder;
use crate::{Failure, FailureKind, PROVIDERS, Provider};

/// All probes together take no longer than this: it stands between a newcomer and the first answer.
const PROBE_LIMIT: Duration = Duration::from_millis(150);

#[derive(Debug, Clone)]
pub struct LocalServer {
    pub provider: &'static Provider,
    pub base_url: String,
    /// What it offers, in its own order.
    pub models: Vec<String>,
}

/// Asks the usual loopback ports, side by side. Whatever does not answer in time is not there.
pub async fn find_local_servers() -> Vec<LocalServer> {
    drop(rustls::crypto::ring::default_provider().install_default());
    let client = reqwest::Client::builder()
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .tls_certs_only(std::iter::empty())
        .timeout(PROBE_LIMIT)
        .build();
    let Ok(client) = client else { return Vec::new() };
    let probes = PROVIDERS.iter().filter(|p| p.local).map(|p| ask(&client, p));
    join_all(probes).await.into_iter().flatten().collect()
}

/// Bytes of a catalogue that are believed. The real one has a few million.
const CATALOGUE_CAP_BYTES: usize = 64 << 20;

/// Fetches a list of models in models.dev's form and checks that it is one.
pub async fn fetch_catalogue(url: &str) -> Result<String, Failure> {
    let failed = |why: String| {
        Failure::new(
            FailureKind::Connect,
            format!("cannot fetch the list of models from {url}: {why}"),
        )
    };
    let client = client_builder(url, None)
        .map_err(failed)?
        .timeout(Duration::from_secs(30))
        .build()
        .map_err(|e| failed(e.to_string()))?;
    let mut response = client.get(url).send().await.map_err(|e| failed(e.to_string()))?;
    if !response.status().is_success() {
        return Err(failed(format!("status {}", response.status().as_u16())));
    }
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|e| failed(e.to_string()))? {
        body.extend_from_slice(&chunk);
        if body.len() > CATALOGUE_CAP_BYTES {
            return Err(failed("it is too large".to_owned()));
        }
    }
    let list: serde_json::Value =
        serde_json::from_slice(&body).map_err(|e| failed(format!("it is not JSON ({e})")))?;
    let is_list = |o: &serde_json::Map<_, serde_json::Value>| {
        !o.is_empty() && o.values().all(|p| p.get("models").is_some())
    };
    if !list.as_object().is_some_and(is_list) {
        return Err(failed("it is no list of models".to_owned()));
    }
    String::from_utf8(body).map_err(|_| failed("it is not text".to_owned()))
}

async fn ask(client: &reqwest::Client, provider: &'static Provider) -> Option<LocalServer> {
    let response = client.get(format!("{}/models", provider.base_url)).send().await.ok()?;
    if !response.status().is_success() {
        return None;
    }
    // Something else may listen there: only a list of models counts.
    let list: serde_json::Value = serde_json::from_slice(&response.bytes().await.ok()?).ok()?;
    let models: Vec<String> = list
        .get("data")?
        .as_array()?
        .iter()
        .filter_map(|m| m.get("id")?.as_str().map(str::to_owned))
        .collect();
    let base_url = provider.base_url.to_owned();
    (!models.is_empty()).then_some(LocalServer { provider, base_url, models })
}
