//! Search services behind one interface. A provider only writes requests and reads answers; sending
//! is done here, once.

use std::sync::Arc;

use reqwest::{Method, StatusCode, Url};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::exa::Exa;
use super::lists::{Brave, Custom, SearXng, Tavily};
use crate::web::http::{body, cause, service_client};

/// Which service, with what it needs.
#[derive(Debug, Clone, Default)]
pub struct SearchOptions {
    /// `exa`, `brave`, `tavily`, `searxng` or `custom`; by the key or the address that is there,
    /// unless given.
    pub provider: Option<String>,
    pub key: Option<String>,
    pub base_url: Option<String>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Freshness {
    #[default]
    Fallback,
    Preferred,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Depth {
    #[default]
    Auto,
    Fast,
    Deep,
}

/// What is looked for.
#[derive(Debug, Clone)]
pub struct Inquiry {
    pub(crate) query: String,
    pub(crate) results: u32,
    pub(crate) livecrawl: Freshness,
    pub(crate) depth: Depth,
    pub(crate) characters: Option<u32>,
    /// Code is looked for, and this much of it.
    pub(crate) code_tokens: Option<u32>,
}

impl Inquiry {
    pub(crate) fn usual(query: String) -> Self {
        let (livecrawl, depth) = (Freshness::default(), Depth::default());
        Self { query, results: 10, livecrawl, depth, characters: None, code_tokens: None }
    }
}

/// A request as data.
pub struct Outgoing {
    pub(crate) method: Method,
    pub(crate) url: Url,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: Option<Value>,
}

pub struct Hit {
    pub(crate) title: String,
    pub(crate) url: String,
    pub(crate) text: String,
}

pub enum Found {
    Hits(Vec<Hit>),
    /// A service that writes the text itself.
    Text(String),
}

/// A service that searches.
pub trait SearchProvider: Send + Sync {
    /// As the settings name it.
    fn id(&self) -> &str;
    /// As people name it.
    fn name(&self) -> &str;
    fn request(&self, inquiry: &Inquiry) -> Outgoing;
    /// Reads a successful answer; an error is in words for the model.
    fn read(&self, answer: &str) -> Result<Found, String>;
}

impl SearchOptions {
    /// The service, or nothing where none is configured, or what is wrong with the settings.
    pub fn provider(self) -> Result<Option<Arc<dyn SearchProvider>>, String> {
        let Self { provider, key, base_url } = self;
        let Some(id) = provider.or_else(|| base_url.as_ref().map(|_| "custom".to_owned())) else {
            return Ok(None);
        };
        let url = |usual: Option<&str>| {
            let text = base_url.as_deref().or(usual);
            let text = text.ok_or_else(|| format!("websearch.baseURL is needed for {id}"))?;
            let url = Url::parse(text).ok().filter(|u| ["http", "https"].contains(&u.scheme()));
            url.ok_or_else(|| format!("websearch.baseURL is no web address: {text:?}"))
        };
        let keyed = |usual: &str| -> Result<Option<(String, Url)>, String> {
            let url = url(Some(usual))?;
            Ok(key.clone().filter(|key| !key.trim().is_empty()).map(|key| (key, url)))
        };
        Ok(match id.as_str() {
            "exa" => keyed("https://mcp.exa.ai/mcp")?
                .map(|(key, url)| Arc::new(Exa { key, url }) as Arc<dyn SearchProvider>),
            "brave" => keyed("https://api.search.brave.com/res/v1/web/search")?
                .map(|(key, url)| Arc::new(Brave { key, url }) as _),
            "tavily" => keyed("https://api.tavily.com/search")?
                .map(|(key, url)| Arc::new(Tavily { key, url }) as _),
            "searxng" => Some(Arc::new(SearXng { url: url(None)? }) as _),
            "custom" => Some(Arc::new(Custom { key, url: url(None)? }) as _),
            other => {
                return Err(format!(
                    "websearch.provider {other:?} is not known; there are exa, brave, tavily, searxng and custom"
                ));
            }
        })
    }
}

/// Four characters are a token.
const TOKEN_CHARS: usize = 4;

/// Sends the request and gives the answer as text, or nothing where nothing was found.
pub(crate) async fn ask(
    provider: &dyn SearchProvider,
    inquiry: &Inquiry,
) -> Result<Option<String>, String> {
    let name = provider.name();
    let Outgoing { method, url, headers, body: sent } = provider.request(inquiry);
    let mut request = service_client(&url)?.request(method, url);
    for (header, value) in headers {
        request = request.header(header, value);
    }
    if let Some(sent) = sent {
        request = request.header("content-type", "application/json").body(sent.to_string());
    }
    let response = request.send().await;
    let response = response.map_err(|e| format!("{name} cannot be reached: {}.", cause(&e)))?;
    let status = response.status();
    let bytes = body(response).await?;
    let answer = String::from_utf8_lossy(&bytes);
    if !status.is_success() {
        return Err(refusal(name, status, &answer));
    }
    Ok(match provider.read(&answer)? {
        Found::Text(text) => Some(text).filter(|text| !text.trim().is_empty()),
        Found::Hits(hits) if hits.is_empty() => None,
        Found::Hits(hits) => Some(render(&hits, inquiry)),
    })
}

fn refusal(name: &str, status: StatusCode, answer: &str) -> String {
    const SHOWN_CHARS: usize = 300;
    match status.as_u16() {
        401 | 403 => format!(
            "{name} did not accept the key (status {status}). The user should look at websearch.apiKey in the settings or the key's variable."
        ),
        429 => format!("{name} takes no more requests for now (status {status}). Try again later."),
        _ => {
            let words: String = answer.trim().chars().take(SHOWN_CHARS).collect();
            format!("{name} answered with status {status}: {words}")
        }
    }
}

fn render(hits: &[Hit], inquiry: &Inquiry) -> String {
    let of = |Hit { title, url, text }: &Hit| {
        format!("Title: {}\nURL: {url}\nText: {}", title.trim(), text.trim())
    };
    let most = usize::try_from(inquiry.results).unwrap_or(usize::MAX);
    let text = hits.iter().take(most).map(of).collect::<Vec<_>>().join("\n\n");
    let wanted = inquiry.code_tokens.map(|tokens| tokens as usize * TOKEN_CHARS);
    let wanted = wanted.or(inquiry.characters.map(|n| n as usize)).unwrap_or(usize::MAX);
    match text.char_indices().nth(wanted) {
        Some((at, _)) => format!("{}\n(cut here)", &text[..at]),
        None => text,
    }
}

/// Reads JSON, or says that it is none.
pub(crate) fn parsed(name: &str, answer: &str) -> Result<Value, String> {
    serde_json::from_str(answer)
        .map_err(|e| format!("{name} gave an answer that cannot be read: {e}."))
}
