//! The network under the codecs: one request, its deadlines, and another try while nothing of the
//! answer has been seen.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use tokio::time::Instant;

use crate::client::client_builder;
use crate::normalise::normalise;
use crate::think::ThinkSplitter;
use crate::trace::{self, Trace};
use crate::wire::{Decoder, Wire};
use crate::{Endpoint, Event, Failure, FailureKind, Model, ModelFacts, Origin, Request};

/// Neither is reset by pings or comments: a server that only keeps the line warm is not answering.
#[derive(Debug, Clone, Copy)]
pub struct Deadlines {
    pub connect: Duration,
    /// From the request to the first event of the answer. Large prompts take their time.
    pub first_event: Duration,
    pub between_events: Duration,
}

impl Default for Deadlines {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            first_event: Duration::from_secs(120),
            between_events: Duration::from_secs(60),
        }
    }
}

#[derive(Debug, Clone, Copy)]
pub struct Retry {
    /// Tries after the first.
    pub retries: u32,
    /// The first pause; each further one doubles it.
    pub base: Duration,
    /// A server that asks for a longer pause than this is reported instead.
    pub longest: Duration,
}

impl Default for Retry {
    fn default() -> Self {
        Self { retries: 3, base: Duration::from_millis(500), longest: Duration::from_secs(60) }
    }
}

/// Further tries while the machine seems to be cut off: about a minute in all.
const OFFLINE_RETRIES: u32 = 4;

/// A model behind HTTP.
#[derive(Clone)]
pub struct HttpModel {
    shared: Arc<Shared>,
}

struct Shared {
    origin: Origin,
    endpoint: Endpoint,
    /// The server has no Responses route; found out once.
    speaks_chat: AtomicBool,
    deadlines: Deadlines,
    retry: Retry,
    /// Made on first use: it reads certificates, which a run that never sends should not wait for.
    client: OnceLock<Result<reqwest::Client, String>>,
    trace: Option<Trace>,
    facts: ModelFacts,
    /// What had to be changed for this model was told.
    told_changes: AtomicBool,
    /// The server refused to hold an answer to a form; found out once.
    refused_form: AtomicBool,
}

impl HttpModel {
    pub fn new(endpoint: Endpoint, model: &str, deadlines: Deadlines, retry: Retry) -> Self {
        let origin = Origin { provider: endpoint.provider.clone(), model: model.to_owned() };
        let client = OnceLock::new();
        let speaks_chat = AtomicBool::new(false);
        let shared = Shared {
            origin,
            endpoint,
            speaks_chat,
            deadlines,
            retry,
            client,
            trace: None,
            facts: ModelFacts::default(),
            told_changes: AtomicBool::new(false),
            refused_form: AtomicBool::new(false),
        };
        Self { shared: Arc::new(shared) }
    }

    /// What is known of the model: requests are made to fit it. Has no effect once it is in use.
    pub fn with_facts(mut self, facts: ModelFacts) -> Self {
        if let Some(shared) = Arc::get_mut(&mut self.shared) {
            shared.endpoint.quirks.no_reasoning |= facts.reasoning == Some(false);
            shared.facts = facts;
        }
        self
    }

    /// Keeps what goes over the wire. Has no effect once the model is in use.
    pub fn with_trace(mut self, trace: Option<Trace>) -> Self {
        if let Some(shared) = Arc::get_mut(&mut self.shared) {
            shared.trace = trace;
        }
        self
    }
}

impl Shared {
    fn wire(&self) -> Wire {
        if self.speaks_chat.load(Ordering::Relaxed) { Wire::OpenaiChat } else { self.endpoint.wire }
    }

    fn url(&self) -> String {
        self.wire().url(&self.endpoint.base_url, &self.origin.model)
    }

    /// Without what may be secret in it.
    fn shown_url(&self) -> String {
        without_userinfo(&self.url())
    }

    /// Whether to go on with Chat Completions: the address answers, but has no such route.
    fn falls_back(&self, failure: &Failure) -> bool {
        self.endpoint.quirks.chat_fallback
            && self.wire() == Wire::OpenaiResponses
            && matches!(failure.status, Some(404 | 405))
            // A model that is not there is not there on the other route either.
            && !failure.message.to_lowercase().contains("model")
    }

    /// Whether to go on without the form: the server takes the request but for it. Who asked
    /// validates the answer anyway.
    fn drops_form(&self, request: &Request, failure: &Failure) -> bool {
        let words =
            ["response_format", "text.format", "output_config", "schema", "json mode", "mime type"];
        let message = failure.message.to_lowercase();
        request.output_schema.is_some()
            && matches!(failure.status, Some(400 | 422))
            && words.iter().any(|word| message.contains(word))
    }
}

impl Model for HttpModel {
    fn origin(&self) -> &Origin {
        &self.shared.origin
    }

    fn takes_form(&self, schema: &serde_json::Value) -> bool {
        let Shared { endpoint, facts, origin, .. } = self.shared.as_ref();
        endpoint.quirks.native_form
            && facts.structured_output != Some(false)
            && endpoint.wire.takes_form(&origin.model, schema)
    }

    fn stream(&self, request: Request) -> BoxStream<'static, Event> {
        let shared = Arc::clone(&self.shared);
        let (mut request, changes) = normalise(request, &shared.facts);
        if shared.refused_form.load(Ordering::Relaxed) {
            request.output_schema = None;
        }
        let mut queue = VecDeque::new();
        if !changes.is_empty() && !shared.told_changes.swap(true, Ordering::Relaxed) {
            queue.extend(changes.into_iter().map(Event::Notice));
        }
        let body = encode(&shared, &request);
        let exchange = Exchange { shared, request, body, attempt: 0, phase: Phase::Send, queue };
        stream::unfold(exchange, |mut exchange| async {
            exchange.next().await.map(|event| (event, exchange))
        })
        .boxed()
    }
}

/// One request and its further tries.
struct Exchange {
    shared: Arc<Shared>,
    request: Request,
    body: Bytes,
    attempt: u32,
    phase: Phase,
    queue: VecDeque<Event>,
}

enum Phase {
    Send,
    Pause(Instant),
    Read(Box<Reading>),
    Done,
}

struct Reading {
    response: reqwest::Response,
    decoder: Decoder,
    think: Option<ThinkSplitter>,
    deadline: Instant,
    /// Something of the answer has been handed out: a second try would say it twice.
    answered: bool,
    trace: Option<trace::Answer>,
}

impl Exchange {
    async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.queue.pop_front() {
                return Some(event);
            }
            match std::mem::replace(&mut self.phase, Phase::Done) {
                Phase::Send => match self.send().await {
                    Ok(reading) => self.phase = Phase::Read(Box::new(reading)),
                    Err(failure) => self.fail(failure),
                },
                Phase::Pause(until) => {
                    tokio::time::sleep_until(until).await;
                    self.phase = Phase::Send;
                }
                Phase::Read(reading) => self.read(reading).await,
                Phase::Done => return None,
            }
        }
    }

    async fn send(&self) -> Result<Reading, Failure> {
        let shared = &self.shared;
        let client = shared.client.get_or_init(|| make_client(shared));
        let client = client.as_ref().map_err(|e| Failure::new(FailureKind::Connect, e.clone()))?;
        let deadline = Instant::now() + shared.deadlines.first_event;
        let url = shared.url();
        let headers = headers(&shared.endpoint, &self.request.headers)?;
        let mut trace =
            shared.trace.as_ref().map(|t| t.begin(&shared.shown_url(), &headers, &self.body));
        let request = client.post(&url).headers(headers).body(self.body.clone());
        let response = match tokio::time::timeout_at(deadline, request.send()).await {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => return Err(unreachable_server(&shared.shown_url(), &error)),
            Err(_) => {
                return Err(too_slow("answer", &shared.shown_url(), shared.deadlines.first_event));
            }
        };
        if response.status().is_success() {
            let decoder = shared.wire().decoder();
            let think = shared.endpoint.quirks.inline_think.then(ThinkSplitter::default);
            return Ok(Reading { response, decoder, think, deadline, answered: false, trace });
        }
        let status = response.status().as_u16();
        let retry_after = retry_after(response.headers());
        let body = tokio::time::timeout_at(deadline, read_error_body(response)).await;
        // Some servers repeat the key that they refuse.
        let body = shared.endpoint.masked(&body.unwrap_or_default());
        if let Some(trace) = &mut trace {
            trace.push(body.as_bytes());
        }
        Err(Failure::from_status(status, &body, retry_after))
    }

    async fn read(&mut self, mut reading: Box<Reading>) {
        let deadlines = self.shared.deadlines;
        let chunk = tokio::time::timeout_at(reading.deadline, reading.response.chunk()).await;
        let events = match chunk {
            Ok(Ok(Some(bytes))) => {
                if let Some(trace) = &mut reading.trace {
                    trace.push(&bytes);
                }
                reading.decoder.push(&bytes)
            }
            Ok(Ok(None)) => reading.decoder.finish(),
            Ok(Err(error)) => {
                let cause = format!("the connection broke mid-answer: {}", root_cause(&error));
                reading.decoder.break_off(Failure::new(FailureKind::Truncated, cause))
            }
            Err(_) if reading.answered => {
                let cause = too_slow("go on", &self.shared.shown_url(), deadlines.between_events);
                reading.decoder.break_off(cause)
            }
            Err(_) => {
                let cause = too_slow("answer", &self.shared.shown_url(), deadlines.first_event);
                reading.decoder.break_off(cause)
            }
        };
        let events = match &mut reading.think {
            Some(think) => think.split(events),
            None => events,
        };
        // The usage that opens a stream is no answer yet.
        if events.iter().any(|event| !matches!(event, Event::Usage { .. } | Event::Started { .. }))
        {
            reading.deadline = Instant::now() + deadlines.between_events;
        }
        for event in events {
            match event {
                Event::Failed(failure) if !reading.answered => return self.fail(failure),
                Event::Finish(_) | Event::Failed(_) => {
                    self.queue.push_back(event);
                    return;
                }
                // These show nothing of the answer: they may come again.
                Event::Usage { .. } | Event::Started { .. } => self.queue.push_back(event),
                _ => {
                    reading.answered = true;
                    self.queue.push_back(event);
                }
            }
        }
        self.phase = Phase::Read(reading);
    }

    /// Ends the stream with `failure`, or goes round again where that may help.
    fn fail(&mut self, failure: Failure) {
        if self.shared.falls_back(&failure) {
            self.shared.speaks_chat.store(true, Ordering::Relaxed);
            self.body = encode(&self.shared, &self.request);
            let base = &self.shared.endpoint.base_url;
            let text = format!("{base} has no Responses route; using Chat Completions");
            self.queue.push_back(Event::Notice(text));
            self.phase = Phase::Send;
            return;
        }
        if self.shared.drops_form(&self.request, &failure) {
            self.shared.refused_form.store(true, Ordering::Relaxed);
            self.request.output_schema = None;
            self.body = encode(&self.shared, &self.request);
            let text = format!(
                "the provider does not take the schema ({}); the answer is checked here",
                failure.message
            );
            self.queue.push_back(Event::Notice(text));
            self.phase = Phase::Send;
            return;
        }
        let retry = self.shared.retry;
        let pause = failure.retry_after.unwrap_or_else(|| backoff(retry.base, self.attempt));
        // A machine that is cut off (no name found, no route) may come back: that is waited out
        // longer than an address where nobody listens.
        let cut_off = failure.kind == FailureKind::Connect && !failure.message.contains("refused");
        let extra = if cut_off && retry.retries > 0 { OFFLINE_RETRIES } else { 0 };
        let tries = retry.retries + extra;
        if !failure.is_transient() || self.attempt >= tries || pause > retry.longest {
            self.queue.push_back(Event::Failed(failure));
            return;
        }
        self.attempt += 1;
        let attempt = self.attempt;
        self.queue.push_back(Event::Retrying { attempt, delay: pause, cause: failure });
        self.phase = Phase::Pause(Instant::now() + pause);
    }
}

fn encode(shared: &Shared, request: &Request) -> Bytes {
    let quirks = shared.endpoint.quirks;
    Bytes::from(shared.wire().encode(&shared.origin, request, quirks))
}

fn make_client(shared: &Shared) -> Result<reqwest::Client, String> {
    let Endpoint { base_url, ca_file, .. } = &shared.endpoint;
    let cannot = |why: String| format!("cannot prepare the connection: {why}");
    client_builder(base_url, ca_file.as_deref())
        .map_err(cannot)?
        .connect_timeout(shared.deadlines.connect)
        // A redirected POST would lose its body or send the key elsewhere.
        .redirect(reqwest::redirect::Policy::none())
        .tcp_nodelay(true)
        .build()
        .map_err(|e| cannot(root_cause(&e)))
}

fn headers(endpoint: &Endpoint, more: &[(String, String)]) -> Result<HeaderMap, Failure> {
    let mut map = HeaderMap::new();
    map.insert("content-type", HeaderValue::from_static("application/json"));
    map.insert("accept", HeaderValue::from_static("text/event-stream"));
    if endpoint.wire == Wire::AnthropicMessages {
        map.insert("anthropic-version", HeaderValue::from_static("2023-06-01"));
    }
    if let Some(key) = &endpoint.key {
        let (name, text) = match endpoint.wire {
            Wire::AnthropicMessages => ("x-api-key", key.clone()),
            Wire::Gemini => ("x-goog-api-key", key.clone()),
            Wire::OpenaiChat | Wire::OpenaiResponses if endpoint.quirks.api_key_header => {
                ("api-key", key.clone())
            }
            Wire::OpenaiChat | Wire::OpenaiResponses => ("authorization", format!("Bearer {key}")),
        };
        let unsendable = || {
            let text = "the API key holds characters that cannot be sent in a header";
            Failure::new(FailureKind::Auth, text)
        };
        let mut value = HeaderValue::from_str(&text).map_err(|_| unsendable())?;
        value.set_sensitive(true);
        map.insert(name, value);
    }
    for (name, value) in endpoint.headers.iter().chain(more) {
        let bad = || {
            let text = format!("the header {name:?} cannot be sent");
            Failure::new(FailureKind::InvalidRequest, text)
        };
        let key = HeaderName::from_bytes(name.as_bytes()).map_err(|_| bad())?;
        let mut value = HeaderValue::from_str(value).map_err(|_| bad())?;
        // It may hold a key: nobody knows but who wrote it.
        value.set_sensitive(true);
        map.insert(key, value);
    }
    Ok(map)
}

/// Bytes of an error's body that are worth reading.
const ERROR_BODY_CAP_BYTES: usize = 64 << 10;

async fn read_error_body(mut response: reqwest::Response) -> String {
    let mut body = Vec::new();
    while let Ok(Some(chunk)) = response.chunk().await {
        body.extend_from_slice(&chunk);
        if body.len() > ERROR_BODY_CAP_BYTES {
            body.truncate(ERROR_BODY_CAP_BYTES);
            break;
        }
    }
    String::from_utf8_lossy(&body).into_owned()
}

/// In milliseconds, in seconds, or as a date.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let word = |name: &str| headers.get(name)?.to_str().ok().map(str::trim);
    let text = |name: &str| word(name)?.parse::<f64>().ok();
    if let Some(date) = word("retry-after").filter(|w| w.ends_with("GMT")) {
        return until_http_date(date);
    }
    let seconds = match text("retry-after-ms") {
        Some(milliseconds) => milliseconds / 1000.0,
        None => text("retry-after")?,
    };
    Duration::try_from_secs_f64(seconds).ok()
}

/// `Sun, 06 Nov 1994 08:49:37 GMT`, the one form that servers may send. A date that has passed means
/// now.
fn until_http_date(date: &str) -> Option<Duration> {
    const MONTHS: &str = "JanFebMarAprMayJunJulAugSepOctNovDec";
    let mut words = date.split([' ', ':']).filter(|w| !w.is_empty()).skip(1);
    let day: i64 = words.next()?.parse().ok()?;
    let month = MONTHS.find(words.next()?)? as i64 / 3 + 1;
    let year: i64 = words.next()?.parse().ok().filter(|y| (1970..10_000).contains(y))?;
    let mut number = || words.next()?.parse::<i64>().ok();
    let (hour, minute, second) = (number()?, number()?, number()?);
    // Days since 1970 of the civil calendar, with the year starting in March.
    let (y, m) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = y * 365 + y / 4 - y / 100 + y / 400 + (m * 153 + 2) / 5 + day - 1 - 719_468;
    let then = days * 86_400 + hour * 3600 + minute * 60 + second;
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).ok()?.as_secs();
    Some(Duration::from_secs(u64::try_from(then).ok()?.saturating_sub(now)))
}

/// Doubles with each try; the jitter keeps many clients from coming back together.
fn backoff(base: Duration, attempt: u32) -> Duration {
    let full = base.saturating_mul(1 << attempt.min(10));
    let nanos = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(0, |d| d.subsec_nanos());
    full.mul_f64(0.75 + 0.5 * f64::from(nanos % 1000) / 1000.0)
}

/// A user's name and password before the host, and a query, are nobody's business.
fn without_userinfo(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
    let path = path.split('?').next().unwrap_or_default();
    format!("{scheme}://{host}/{path}")
}

fn unreachable_server(url: &str, error: &reqwest::Error) -> Failure {
    if error.is_builder() {
        let text = format!("the address {url} cannot be used: {}", root_cause(error));
        return Failure::new(FailureKind::NotFound, text);
    }
    let text = format!("cannot reach {url}: {}", root_cause(error));
    Failure::new(FailureKind::Connect, text)
}

fn too_slow(what: &str, url: &str, limit: Duration) -> Failure {
    let text = format!("{url} did not {what} within {} s", limit.as_secs_f32());
    Failure::new(FailureKind::Timeout, text)
}

/// The innermost cause, which is the one that names what happened.
fn root_cause(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_and_addresses() {
        assert_eq!(until_http_date("Sun, 06 Nov 1994 08:49:37 GMT"), Some(Duration::ZERO));
        let far = until_http_date("Fri, 01 Jan 2100 00:00:00 GMT").unwrap();
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
        assert!((far + now).as_secs().abs_diff(4_102_444_800) <= 1);
        assert_eq!(until_http_date("nonsense GMT"), None);
        assert_eq!(without_userinfo("https://u:secret@h:1/v1/x?key=y"), "https://h:1/v1/x");
        assert_eq!(without_userinfo("nonsense/v1"), "nonsense/v1");
    }
}
