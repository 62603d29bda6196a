//! Fetches one page. Each hop of a redirect is looked at and judged like the first address.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reqwest::{Response, StatusCode, Url, header};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use toolwright_llm::Media;
use toolwright_tool::{
    Access, Door, Plan, PlanContext, Planned, RunContext, Tool, ToolError, ToolOutput,
};

use super::address::{Allowed, parse, resolve};
use super::http::{body, cause, client, has_proxy};
use super::page::{Form, convert};
use crate::question::PATIENCE;

/// Where private addresses may be fetched.
#[derive(Debug, Clone, Default)]
pub struct WebFetchOptions {
    /// Any address of this machine and its network.
    pub allow_private: bool,
    /// Only those that these hosts lead to.
    pub allow_hosts: Vec<String>,
}

#[derive(Default)]
pub struct WebFetch {
    allowed: Allowed,
}

impl WebFetch {
    pub fn new(options: WebFetchOptions) -> Self {
        let WebFetchOptions { allow_private, allow_hosts } = options;
        Self { allowed: Allowed { everywhere: allow_private, hosts: allow_hosts } }
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Format {
    #[default]
    Markdown,
    Text,
    Html,
}

#[derive(Deserialize, JsonSchema)]
pub struct Arguments {
    /// The page's address.
    url: String,
    /// markdown, text or html; markdown unless given.
    #[serde(default)]
    format: Format,
    /// Seconds; 30 unless given, at most 120.
    #[serde(default)]
    timeout: Option<f64>,
}

pub struct Prepared {
    url: Url,
    format: Format,
    limit: Duration,
}

const USUAL_SECONDS: f64 = 30.0;
const MOST_SECONDS: f64 = 120.0;

/// As browsers do, rounded down.
const REDIRECTS: usize = 10;

/// Many sites answer only to browsers.
const BROWSER: &str = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) \
                       Chrome/143.0.0.0 Safari/537.36";
/// Some ask what claims to be a browser for a proof that we cannot give, and let others pass.
const OURSELVES: &str = concat!("toolwright/", env!("CARGO_PKG_VERSION"));

const PERMISSION: &str = "webfetch";

impl Format {
    fn accept(self) -> &'static str {
        match self {
            Self::Markdown => {
                "text/markdown;q=1.0, text/x-markdown;q=0.9, text/plain;q=0.8, text/html;q=0.7, */*;q=0.1"
            }
            Self::Text => "text/plain;q=1.0, text/markdown;q=0.9, text/html;q=0.8, */*;q=0.1",
            Self::Html => {
                "text/html;q=1.0, application/xhtml+xml;q=0.9, text/plain;q=0.8, text/markdown;q=0.7, */*;q=0.1"
            }
        }
    }
}

impl Tool for WebFetch {
    type Arguments = Arguments;
    type Prepared = Prepared;

    fn name(&self) -> &str {
        PERMISSION
    }

    fn description(&self) -> &str {
        include_str!("webfetch.md")
    }

    async fn plan(&self, arguments: Arguments, _: &PlanContext) -> Planned<Prepared> {
        let Arguments { url, format, timeout } = arguments;
        let seconds = timeout.filter(|s| s.is_finite() && *s > 0.0).unwrap_or(USUAL_SECONDS);
        let limit = Duration::from_secs_f64(seconds.min(MOST_SECONDS));
        match parse(&url) {
            Ok(url) => {
                // Our own clock stands still while a person thinks about a redirect.
                let plan = hop(&url).within(limit + PATIENCE);
                Planned::ready(plan, Prepared { url, format, limit })
            }
            Err(text) => {
                let plan = Plan::new("fetch a page", Vec::new());
                Planned::failed(plan, ToolError::for_model(text))
            }
        }
    }

    async fn run(&self, call: Prepared, context: RunContext) -> Result<ToolOutput, ToolError> {
        let Prepared { url, format, limit } = call;
        let clock = Clock::new(limit);
        tokio::select! {
            fetched = self.fetch(url, format, &clock, &context.door) => fetched,
            () = context.cancel.cancelled() => Ok(ToolOutput {
                interrupted: true,
                ..ToolOutput::text("Interrupted before the page was there.")
            }),
        }
    }
}

fn hop(url: &Url) -> Plan {
    let access = Access::Fetch { permission: PERMISSION, url: url.to_string() };
    Plan::new(format!("fetch {url}"), vec![access])
}

/// The time that the network may take; a person who is asked in between has all the time they want.
struct Clock {
    left: std::sync::Mutex<Duration>,
}

impl Clock {
    fn new(limit: Duration) -> Self {
        Self { left: std::sync::Mutex::new(limit) }
    }

    async fn within<T>(
        &self,
        work: impl Future<Output = Result<T, String>>,
    ) -> Result<T, ToolError> {
        let left = *self.left.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let began = tokio::time::Instant::now();
        let done = tokio::time::timeout(left, work).await;
        *self.left.lock().unwrap_or_else(std::sync::PoisonError::into_inner) =
            left.saturating_sub(began.elapsed());
        match done {
            Ok(result) => result.map_err(ToolError::ForModel),
            Err(_) => Err(ToolError::for_model("Request timed out")),
        }
    }
}

impl WebFetch {
    async fn fetch(
        &self,
        mut url: Url,
        format: Format,
        clock: &Clock,
        door: &Door,
    ) -> Result<ToolOutput, ToolError> {
        for _ in 0..=REDIRECTS {
            let response = clock.within(self.get(&url, format)).await?;
            match next(&url, &response)? {
                None => return self.read(url, format, response, clock).await,
                Some(target) => {
                    if !is_upgrade(&url, &target) {
                        door.ask(&hop(&target)).await?;
                    }
                    url = target;
                }
            }
        }
        Err(ToolError::for_model(format!("The page leads on more than {REDIRECTS} times.")))
    }

    async fn get(&self, url: &Url, format: Format) -> Result<Response, String> {
        let addresses = resolve(url, &self.allowed, has_proxy()).await?;
        let client = client(url, &addresses)?;
        let send = |agent: &'static str| {
            client
                .get(url.clone())
                .header(header::USER_AGENT, agent)
                .header(header::ACCEPT, format.accept())
                .header(header::ACCEPT_LANGUAGE, "en-US,en;q=0.9")
                .send()
        };
        let failed = |e: reqwest::Error| format!("Cannot fetch {url}: {}.", cause(&e));
        let response = send(BROWSER).await.map_err(failed)?;
        let challenged = response.status() == StatusCode::FORBIDDEN
            && response.headers().get("cf-mitigated").is_some_and(|v| v == "challenge");
        if challenged { send(OURSELVES).await.map_err(failed) } else { Ok(response) }
    }

    async fn read(
        &self,
        url: Url,
        format: Format,
        response: Response,
        clock: &Clock,
    ) -> Result<ToolOutput, ToolError> {
        let status = response.status();
        if !status.is_success() {
            let text = format!("The server answered {url} with status {status}.");
            return Err(ToolError::for_model(text));
        }
        let kind = header_text(&response, header::CONTENT_TYPE);
        let bytes = clock.within(body(response)).await?;
        let details =
            json!({ "url": url.as_str(), "status": status.as_u16(), "bytes": bytes.len() });
        let output = show(&kind, format, bytes).await?;
        Ok(output.titled(format!("{url} ({kind})")).with_details(details))
    }
}

fn header_text(response: &Response, name: header::HeaderName) -> String {
    let value = response.headers().get(name).map(|v| String::from_utf8_lossy(v.as_bytes()));
    value.map(|v| v.trim().to_owned()).unwrap_or_default()
}

/// Where an answer leads on to, if it does.
fn next(from: &Url, response: &Response) -> Result<Option<Url>, ToolError> {
    if !matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308) {
        return Ok(None);
    }
    let location = header_text(response, header::LOCATION);
    if location.is_empty() {
        return Ok(None);
    }
    let led = |why: &str| {
        ToolError::for_model(format!(
            "{from} leads on to {location:?}, which is not followed: {why}"
        ))
    };
    let target = from.join(&location).map_err(|e| led(&format!("{e}.")))?;
    parse(target.as_str()).map(Some).map_err(|why| led(&why))
}

/// The same page, only safer.
fn is_upgrade(from: &Url, to: &Url) -> bool {
    let rest = |url: &Url| {
        (url.host_str().map(str::to_owned), url.path().to_owned(), url.query().map(str::to_owned))
    };
    from.scheme() == "http"
        && to.scheme() == "https"
        && from.port().is_none()
        && to.port().is_none()
        && rest(from) == rest(to)
}

async fn show(kind: &str, format: Format, bytes: Vec<u8>) -> Result<ToolOutput, ToolError> {
    let mime = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let drawn = ["image/svg+xml", "image/vnd.fastbidsheet"].contains(&mime.as_str());
    if mime.starts_with("image/") && !drawn {
        let media = Media { mime, base64: STANDARD.encode(&bytes).into(), name: None };
        let output = ToolOutput::text("Image fetched successfully");
        return Ok(ToolOutput { attachments: vec![media], ..output });
    }
    if bytes.contains(&0) {
        return Err(ToolError::for_model(format!(
            "The answer is {} bytes of {}, which is no text. Download it with bash if it is needed.",
            bytes.len(),
            if mime.is_empty() { "an unknown kind" } else { &mime }
        )));
    }
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let head = text.get(..256).unwrap_or(&text).trim_start().to_ascii_lowercase();
    let untold =
        mime.is_empty() && (head.starts_with("<!doctype html") || head.starts_with("<html"));
    let is_page = untold || mime == "text/html" || mime == "application/xhtml+xml";
    let text = match format {
        Format::Markdown if is_page => convert(text, Form::Markdown).await,
        Format::Text if is_page => convert(text, Form::Text).await,
        _ => Ok(text),
    };
    Ok(ToolOutput::text(text.map_err(ToolError::ForModel)?))
}
