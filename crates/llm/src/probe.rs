//! Finds model servers that already run on this machine.

use std::time::Duration;

use futures_util::future::join_all;

use crate::{PROVIDERS, Provider};

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
