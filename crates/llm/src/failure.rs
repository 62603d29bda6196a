//! Why an answer did not come, in words that name the cause and the next thing to do.

use serde::{Deserialize, Serialize};
use std::time::Duration;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    pub kind: FailureKind,
    /// What happened, with the address or the server's own words in it.
    pub message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<Duration>,
    /// The error object as it came.
    #[serde(default, skip)]
    pub raw: Option<serde_json::Value>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    /// Nobody answered at the address, or the connection broke before an answer began.
    Connect,
    Auth,
    RateLimit,
    Overloaded,
    ContextOverflow,
    NotFound,
    InvalidRequest,
    /// The provider failed by its own account.
    Server,
    /// A deadline of ours ran out.
    Timeout,
    /// What came is not the protocol.
    Protocol,
    /// The answer stopped before its end.
    Truncated,
    /// The provider refused the content.
    Refused,
}

impl Failure {
    pub fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), status: None, retry_after: None, raw: None }
    }

    /// Whether the same request may succeed later.
    pub fn is_transient(&self) -> bool {
        use FailureKind::*;
        matches!(self.kind, Connect | RateLimit | Overloaded | Server | Timeout | Truncated)
    }

    /// What a person can do about it.
    pub fn advice(&self) -> &'static str {
        match self.kind {
            FailureKind::Connect => {
                "Check the address (the provider's *_BASE_URL variable or options.baseURL) and that the server runs."
            }
            FailureKind::Auth => {
                "Check the API key (`tw doctor` shows which variable it is read from)."
            }
            FailureKind::RateLimit => "Wait a little, or use another model with --model.",
            FailureKind::Overloaded | FailureKind::Server => {
                "The provider has a problem; try again, or use another model with --model."
            }
            FailureKind::ContextOverflow => {
                "The conversation is too long for this model; start a new session or use a larger model."
            }
            FailureKind::NotFound => {
                "Check the model's name and the base URL (`tw doctor` shows what is used)."
            }
            FailureKind::InvalidRequest => {
                "The provider did not accept the request; its own words are above."
            }
            FailureKind::Timeout => "The server took too long; try again with `tw run -c`.",
            FailureKind::Protocol => {
                "The address answers, but not as this provider does; check the base URL and the provider."
            }
            FailureKind::Truncated => "The answer broke off; go on with `tw run -c`.",
            FailureKind::Refused => "The provider refused to answer this; rephrase the request.",
        }
    }

    /// Classifies an HTTP error by status and body.
    pub(crate) fn from_status(status: u16, body: &str, retry_after: Option<Duration>) -> Self {
        let words = error_message(body);
        let kind = match status {
            401 | 403 => FailureKind::Auth,
            429 => FailureKind::RateLimit,
            // Behind a router the words stand deeper in the body.
            _ if mentions_overflow(body) => FailureKind::ContextOverflow,
            // Some say it with 400.
            400 if words.to_lowercase().contains("api key") => FailureKind::Auth,
            404 | 405 => FailureKind::NotFound,
            413 => FailureKind::ContextOverflow,
            529 | 503 => FailureKind::Overloaded,
            500..=599 => FailureKind::Server,
            300..=399 => FailureKind::Protocol,
            _ => FailureKind::InvalidRequest,
        };
        let message = if words.is_empty() {
            format!("the server answered with status {status}")
        } else {
            format!("the server answered with status {status}: {words}")
        };
        Self { kind, message, status: Some(status), retry_after, raw: None }
    }

    /// Classifies an error object that came inside a stream.
    pub(crate) fn from_error_object(error: &serde_json::Value) -> Self {
        let text = |key: &str| error.get(key).and_then(|v| v.as_str()).unwrap_or_default();
        let code = error.get("code");
        let status = code.and_then(serde_json::Value::as_u64).and_then(|n| u16::try_from(n).ok());
        let message = match error {
            serde_json::Value::String(words) => excerpt(words),
            _ if !text("message").is_empty() => excerpt(text("message")),
            other => excerpt(&other.to_string()),
        };
        let word = if text("type").is_empty() || text("type") == "error" {
            text("code")
        } else {
            text("type")
        };
        let kind = match (word, status) {
            _ if mentions_overflow(&error.to_string()) => FailureKind::ContextOverflow,
            ("insufficient_quota" | "invalid_prompt" | "invalid_request", _) => {
                FailureKind::InvalidRequest
            }
            ("overloaded_error", _) => FailureKind::Overloaded,
            ("rate_limit_error" | "rate_limit_exceeded", _) | (_, Some(429)) => {
                FailureKind::RateLimit
            }
            ("authentication_error" | "permission_error", _) | (_, Some(401 | 403)) => {
                FailureKind::Auth
            }
            ("not_found_error", _) | (_, Some(404)) => FailureKind::NotFound,
            ("invalid_request_error", _) | (_, Some(400)) => FailureKind::InvalidRequest,
            _ => FailureKind::Server,
        };
        let message = format!("the server reported an error inside the answer: {message}");
        Self { kind, message, status, retry_after: None, raw: Some(error.clone()) }
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}

/// How providers say that the prompt is too long.
const OVERFLOW_PHRASES: &[&str] = &[
    "prompt is too long",
    "maximum context length",
    "context_length_exceeded",
    "context length exceeded",
    "exceeds the context window",
    "exceeds the available context size",
    "input is too long",
    "too many tokens",
    "maximum prompt length",
    "reduce the length of the messages",
    "token count exceeds",
    "exceeds the limit of",
    "context window exceeds",
    "exceeds the maximum number of tokens",
    "exceeds the maximum tokens",
    "exceed context limit",
    "exceeded max context length",
    "prompt too long",
    "input length and `max_tokens` exceed",
    "request_too_large",
    "too large for model",
    "longer than the model's context length",
    "exceeded model token limit",
    "greater than the context length",
    "request entity too large",
    "token limit exceeded",
    "context length is only",
    "tokens in request more than max tokens allowed",
    "but the configured context size is",
    "range of input length should be",
    "exceeds max length",
    "longer than the maximum model length",
];

fn mentions_overflow(words: &str) -> bool {
    let lower = words.to_lowercase();
    OVERFLOW_PHRASES.iter().any(|phrase| lower.contains(phrase))
}

/// The readable part of an error body: the usual JSON places, else the start of the text.
fn error_message(body: &str) -> String {
    let found = serde_json::from_str::<serde_json::Value>(body).ok().and_then(|value| {
        let value = if let serde_json::Value::Array(items) = value {
            items.into_iter().next().unwrap_or_default()
        } else {
            value
        };
        [
            value.pointer("/error/message"),
            value.get("message"),
            value.get("detail"),
            value.get("error"),
        ]
        .into_iter()
        .flatten()
        .find_map(|v| v.as_str().map(str::to_owned))
    });
    excerpt(found.as_deref().unwrap_or(body))
}

/// Enough of a foreign text to recognise it by, on one line.
pub(crate) fn excerpt(text: &str) -> String {
    const EXCERPT_CHARS: usize = 500;
    let mut line: String = text
        .trim()
        .chars()
        .take(EXCERPT_CHARS)
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    if text.trim().chars().count() > EXCERPT_CHARS {
        line.push('…');
    }
    line
}
