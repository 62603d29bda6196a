//! `fetch`. Each address is asked for, also those that a redirect leads to.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue, LOCATION};
use reqwest::{Client, Method, StatusCode, Url};
use serde_json::{Value, json};
use toolwright_tool::{Access, Plan};

use super::{Done, Guard, Host, HostError, ask};

const BODY_CAP_BYTES: usize = 16 << 20;
const REDIRECTS: usize = 10;
const TIMEOUT: Duration = Duration::from_secs(120);

impl Host {
    pub(super) async fn fetch(&self, payload: &Value, guard: Option<&dyn Guard>) -> Done {
        let text = |name: &str| payload[name].as_str().unwrap_or_default();
        let mut url = Url::parse(text("url"))
            .map_err(|e| HostError::from(format!("{}: {e}", text("url"))))?;
        let mut method: Method = text("method")
            .parse()
            .map_err(|_| HostError::from(format!("{} is no method", text("method"))))?;
        let mut body = payload["body"].as_str().map(|b| STANDARD.decode(b).unwrap_or_default());
        let mut headers = headers_of(&payload["headers"])?;
        let client = self.client.get_or_init(|| {
            // Fails only when a provider is installed already, which serves as well.
            drop(rustls::crypto::ring::default_provider().install_default());
            let builder =
                Client::builder().redirect(reqwest::redirect::Policy::none()).timeout(TIMEOUT);
            builder.build().map_err(|e| e.to_string())
        });
        let client = client.as_ref().map_err(|e| HostError::from(e.clone()))?;
        for hop in 0..=REDIRECTS {
            let access = Access::Fetch { permission: "webfetch", url: url.to_string() };
            let _permit = ask(guard, Plan::new(format!("{method} {url}"), vec![access])).await?;
            let mut request = client.request(method.clone(), url.clone()).headers(headers.clone());
            if let Some(body) = &body {
                request = request.body(body.clone());
            }
            let response = request.send().await.map_err(cause)?;
            let status = response.status();
            let next =
                response.headers().get(LOCATION).and_then(|l| url.join(l.to_str().ok()?).ok());
            match next.filter(|_| status.is_redirection() && text("redirect") != "manual") {
                Some(_) if text("redirect") == "error" => {
                    return Err(HostError::from(
                        "it was redirected, which was not wanted".to_owned(),
                    ));
                }
                Some(next) => {
                    // What was meant for one host is not told to another.
                    if next.origin() != url.origin() {
                        headers.remove("authorization");
                        headers.remove("cookie");
                    }
                    if status == StatusCode::SEE_OTHER
                        || (method == Method::POST && status.as_u16() < 303)
                    {
                        method = Method::GET;
                        body = None;
                        headers.remove("content-type");
                    }
                    url = next;
                }
                None => return answer(response, hop > 0).await,
            }
        }
        Err(HostError::from(format!("it was redirected more than {REDIRECTS} times")))
    }
}

fn headers_of(given: &Value) -> Result<HeaderMap, HostError> {
    let mut headers = HeaderMap::new();
    for pair in given.as_array().into_iter().flatten() {
        let (name, value) =
            (pair[0].as_str().unwrap_or_default(), pair[1].as_str().unwrap_or_default());
        let bad = || HostError::from(format!("the header {name} cannot be sent"));
        let name: HeaderName = name.parse().map_err(|_| bad())?;
        headers.append(name, HeaderValue::from_str(value).map_err(|_| bad())?);
    }
    Ok(headers)
}

async fn answer(mut response: reqwest::Response, redirected: bool) -> Done {
    let status = response.status();
    let headers: Vec<[String; 2]> = response
        .headers()
        .iter()
        .map(|(name, value)| {
            [name.to_string(), String::from_utf8_lossy(value.as_bytes()).into_owned()]
        })
        .collect();
    let url = response.url().to_string();
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(cause)? {
        if body.len() + chunk.len() > BODY_CAP_BYTES {
            return Err(HostError::from(format!(
                "the answer is larger than {} MiB",
                BODY_CAP_BYTES >> 20
            )));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(json!({
        "status": status.as_u16(), "statusText": status.canonical_reason().unwrap_or_default(),
        "headers": headers, "url": url, "redirected": redirected, "body": STANDARD.encode(body),
    }))
}

/// The innermost words say what happened.
fn cause(error: reqwest::Error) -> HostError {
    let mut inner: &dyn std::error::Error = &error;
    while let Some(deeper) = inner.source() {
        inner = deeper;
    }
    HostError::from(inner.to_string())
}
