//! Wire formats: pure translations in both directions.

mod anthropic;
mod anthropic_encode;
mod chat;
mod chat_encode;
mod chat_frames;
mod chat_plain;
mod form;
mod gemini;
mod gemini_encode;
mod responses;
mod responses_encode;
mod schema;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::failure::excerpt;
use crate::provider::Quirks;
use crate::sse::EventTooLarge;
use crate::{Content, Event, Failure, FailureKind, Origin, Request, SseEvent, SseReader};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Wire {
    AnthropicMessages,
    OpenaiChat,
    OpenaiResponses,
    Gemini,
}

impl Wire {
    pub const ALL: [Self; 4] =
        [Self::AnthropicMessages, Self::OpenaiChat, Self::OpenaiResponses, Self::Gemini];

    pub fn name(self) -> &'static str {
        match self {
            Self::AnthropicMessages => "anthropic-messages",
            Self::OpenaiChat => "openai-chat",
            Self::OpenaiResponses => "openai-responses",
            Self::Gemini => "gemini",
        }
    }

    /// The request's body. The same request always gives the same bytes, and a request that only
    /// adds turns to another starts with the other's messages.
    pub fn encode(self, target: &Origin, request: &Request, quirks: Quirks) -> Vec<u8> {
        match self {
            Self::AnthropicMessages => anthropic_encode::encode(target, request, quirks),
            Self::OpenaiChat => chat_encode::encode(target, request, quirks),
            Self::OpenaiResponses => responses_encode::encode(target, request, quirks),
            Self::Gemini => gemini_encode::encode(target, request),
        }
    }

    /// Whether the wire and the model can hold an answer to this schema by themselves.
    pub fn takes_form(self, model: &str, schema: &Value) -> bool {
        form::native(self, model, schema).is_some()
    }

    pub fn decoder(self) -> Decoder {
        let codec: Box<dyn Codec> = match self {
            Self::AnthropicMessages => Box::new(anthropic::AnthropicCodec::default()),
            Self::OpenaiChat => Box::new(chat::ChatCodec::default()),
            Self::OpenaiResponses => Box::new(responses::ResponsesCodec::default()),
            Self::Gemini => Box::new(gemini::GeminiCodec::default()),
        };
        Decoder {
            sse: SseReader::default(),
            codec,
            closed: false,
            payloads: 0,
            head: Vec::new(),
            whole: None,
            came_whole: false,
        }
    }

    /// Where requests go, below a base URL that people write with and without `/v1`.
    pub fn url(self, base: &str, model: &str) -> String {
        let base = base.trim_end_matches('/');
        let versioned = base.ends_with("/v1");
        let path = match self {
            Self::AnthropicMessages => "messages",
            Self::OpenaiChat => "chat/completions",
            Self::OpenaiResponses => "responses",
            Self::Gemini => {
                let version = if has_path(base) { "" } else { "/v1beta" };
                return format!("{base}{version}/models/{model}:streamGenerateContent?alt=sse");
            }
        };
        // OpenAI's own libraries take a base with its version, Anthropic's one without.
        let complete = versioned || (self != Self::AnthropicMessages && has_path(base));
        if complete { format!("{base}/{path}") } else { format!("{base}/v1/{path}") }
    }
}

/// Whether a URL has more than a host: then its owner has said where the API lives.
fn has_path(base: &str) -> bool {
    base.split_once("://").is_some_and(|(_, rest)| rest.contains('/'))
}

/// The part of a decoder that differs between wire formats.
trait Codec: Send + Sync {
    fn event(&mut self, event: SseEvent<'_>, out: &mut Vec<Event>);
    /// An answer that came whole instead of as a stream.
    fn body(&mut self, body: Value, out: &mut Vec<Event>);
    /// The input ended without a closing event so far.
    fn end(&mut self, out: &mut Vec<Event>);
    /// The wire's own word for how the answer ended, as far as it was said.
    fn finish_word(&self) -> Option<String>;
}

/// Turns a response body, in any pieces, into events. The last event is always
/// [`Event::Finish`] or [`Event::Failed`]; nothing follows it.
pub struct Decoder {
    sse: SseReader,
    codec: Box<dyn Codec>,
    closed: bool,
    payloads: usize,
    /// The body's first bytes, to show when no event is in it.
    head: Vec<u8>,
    /// A body that starts like JSON is no stream: it is read as a whole.
    whole: Option<Vec<u8>>,
    came_whole: bool,
}

/// Enough of a body that is no event stream to say what it is.
const HEAD_BYTES: usize = 512;

impl Decoder {
    pub fn push(&mut self, bytes: &[u8]) -> Vec<Event> {
        let mut out = Vec::new();
        if self.head.len() < HEAD_BYTES {
            let room = HEAD_BYTES - self.head.len();
            self.head.extend_from_slice(&bytes[..bytes.len().min(room)]);
        }
        if self.looks_whole() {
            self.push_whole(bytes, &mut out);
            return out;
        }
        let Self { sse, codec, closed, payloads, .. } = self;
        let result = sse.push(bytes, &mut |event| {
            count(payloads, &event);
            take(codec.as_mut(), closed, event, &mut out);
        });
        if result == Err(EventTooLarge) {
            self.refuse_size(&mut out);
        }
        out
    }

    pub fn finish(&mut self) -> Vec<Event> {
        let mut out = Vec::new();
        if let Some(body) = self.whole.take().filter(|_| !self.closed) {
            self.read_whole(&body, &mut out);
        }
        let Self { sse, codec, closed, payloads, .. } = self;
        sse.finish(&mut |event| {
            count(payloads, &event);
            take(codec.as_mut(), closed, event, &mut out);
        });
        if self.closed {
            return out;
        }
        if self.payloads == 0 {
            let head = String::from_utf8_lossy(&self.head);
            let message = if head.trim().is_empty() {
                "the server closed the connection without sending an answer".to_owned()
            } else {
                format!(
                    "the server's answer is no event stream; it starts with: {}",
                    excerpt(&head)
                )
            };
            out.push(Event::Failed(Failure::new(FailureKind::Protocol, message)));
        } else {
            self.codec.end(&mut out);
        }
        self.closed = true;
        out
    }

    /// Nothing more comes, because of `cause`. An answer that was whole but for its closing mark
    /// stands; any other is cut off.
    pub fn break_off(&mut self, cause: Failure) -> Vec<Event> {
        if self.closed {
            return Vec::new();
        }
        self.closed = true;
        let mut out = Vec::new();
        self.codec.end(&mut out);
        match out.last() {
            Some(Event::Finish(_)) => {}
            // The server had said why before it went away.
            Some(Event::Failed(f)) if f.kind != FailureKind::Truncated => {}
            _ => out = vec![Event::Failed(cause)],
        }
        out
    }

    /// Whether the body came whole instead of as a stream.
    pub fn is_whole(&self) -> bool {
        self.came_whole
    }

    /// JSON payloads seen so far.
    pub fn payloads(&self) -> usize {
        self.payloads
    }

    /// The wire's own word for how the answer ended.
    pub fn finish_word(&self) -> Option<String> {
        self.codec.finish_word()
    }

    /// No line of an event stream starts with a bracket.
    fn looks_whole(&mut self) -> bool {
        if self.whole.is_none() && self.payloads == 0 {
            let start = self.head.iter().copied().find(|b| !b.is_ascii_whitespace());
            if matches!(start, Some(b'{' | b'[')) {
                self.whole = Some(Vec::new());
                self.came_whole = true;
            }
        }
        self.whole.is_some()
    }

    fn push_whole(&mut self, bytes: &[u8], out: &mut Vec<Event>) {
        let Some(body) = &mut self.whole else { return };
        // What stands before the bracket may have come alone and is gone then; it is never kept.
        let bytes = if body.is_empty() { bytes.trim_ascii_start() } else { bytes };
        body.extend_from_slice(bytes);
        if body.len() > crate::sse::EVENT_CAP_BYTES {
            self.whole = Some(Vec::new());
            self.refuse_size(out);
        }
    }

    fn read_whole(&mut self, body: &[u8], out: &mut Vec<Event>) {
        let text = String::from_utf8_lossy(body);
        let parsed = serde_json::from_str::<Value>(&text).or_else(|error| {
            let mended = without_lone_surrogates(&text).ok_or(error)?;
            serde_json::from_str(&mended)
        });
        match parsed {
            Ok(value) => {
                self.payloads += 1;
                self.codec.body(value, out);
                self.closed = ends_with_closing(out, 0);
            }
            Err(error) => {
                self.payloads += 1;
                self.closed = true;
                out.push(unreadable(&text, &error));
            }
        }
    }

    fn refuse_size(&mut self, out: &mut Vec<Event>) {
        if !self.closed {
            self.closed = true;
            let limit = crate::sse::EVENT_CAP_BYTES >> 20;
            let message = format!("the server sent a single event of more than {limit} MiB");
            out.push(Event::Failed(Failure::new(FailureKind::Protocol, message)));
        }
    }
}

fn take(codec: &mut dyn Codec, closed: &mut bool, event: SseEvent<'_>, out: &mut Vec<Event>) {
    if *closed || is_keep_alive(&event) {
        return;
    }
    let before = out.len();
    codec.event(event.clone(), out);
    let unreadable = |e: &Event| matches!(e, Event::Failed(f) if f.kind == FailureKind::Protocol);
    if out[before.min(out.len())..].iter().any(unreadable)
        && let Some(mended) = without_lone_surrogates(event.data)
    {
        out.truncate(before);
        codec.event(SseEvent { name: event.name, data: &mended }, out);
    }
    *closed = ends_with_closing(out, before);
}

/// Data that only keeps the line warm.
fn is_keep_alive(event: &SseEvent<'_>) -> bool {
    let data = event.data.trim();
    data.is_empty()
        || (matches!(event.name, "ping" | "keepalive" | "keep-alive") && !data.starts_with('{'))
}

fn count(payloads: &mut usize, event: &SseEvent<'_>) {
    *payloads += usize::from(event.data.trim() != "[DONE]" && !is_keep_alive(event));
}

/// Whether the answer is over by what is new in `out`; drops what a codec may have put behind its
/// closing event.
fn ends_with_closing(out: &mut Vec<Event>, new_from: usize) -> bool {
    let new = out[new_from.min(out.len())..].iter();
    let closing = new.clone().position(|e| matches!(e, Event::Finish(_) | Event::Failed(_)));
    if let Some(at) = closing {
        out.truncate(new_from + at + 1);
    }
    closing.is_some()
}

fn unreadable(data: &str, error: &serde_json::Error) -> Event {
    let message =
        format!("the server sent an event that is not valid JSON ({error}): {}", excerpt(data));
    Event::Failed(Failure::new(FailureKind::Protocol, message))
}

fn broke_off() -> Event {
    let message = "the answer stopped before its end";
    Event::Failed(Failure::new(FailureKind::Truncated, message))
}

/// The same JSON with `\uFFFD` for each half of a surrogate pair that lacks its other half: some
/// servers cut texts between them. Nothing if there is none.
fn without_lone_surrogates(json: &str) -> Option<String> {
    let unit = |at: usize| {
        let hex = json.get(at..at + 6)?.strip_prefix("\\u")?;
        u16::from_str_radix(hex, 16).ok()
    };
    let mut out = String::with_capacity(json.len());
    let (mut from, mut at, mut found) = (0, 0, false);
    while let Some(step) = json[at..].find('\\') {
        at += step;
        match (unit(at), unit(at + 6)) {
            (Some(0xD800..=0xDBFF), Some(0xDC00..=0xDFFF)) => at += 12,
            (Some(0xD800..=0xDFFF), _) => {
                out.push_str(&json[from..at]);
                out.push_str("\\ufffd");
                at += 6;
                from = at;
                found = true;
            }
            // Another escape: skip what it escapes.
            _ => at += 1 + json[at + 1..].chars().next().map_or(0, char::len_utf8),
        }
    }
    out.push_str(&json[from..]);
    found.then_some(out)
}

/// All text of a content, for wires that keep text and media apart.
fn joined_text(content: &[Content]) -> String {
    let texts = content.iter().filter_map(|c| match c {
        Content::Text { text } => Some(text.as_str()),
        Content::Media(_) => None,
    });
    texts.collect::<Vec<_>>().join("\n\n")
}

/// A string of the frame it stands in, borrowed where it holds no escapes. (`Option<Cow<str>>` would
/// always be copied: serde borrows only a bare `Cow`.)
#[derive(Deserialize)]
#[serde(transparent)]
struct Str<'a>(#[serde(borrow)] std::borrow::Cow<'a, str>);

impl std::ops::Deref for Str<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

/// A text field of a JSON object; empty where there is none.
fn text_of<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn optional_text(value: &Value, key: &str) -> Option<String> {
    value.get(key).and_then(Value::as_str).map(str::to_owned)
}

/// Serialising plain data into memory cannot fail; an empty body would be refused by any server,
/// visibly, if that ever changed.
fn to_bytes(body: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(body).unwrap_or_default()
}

/// A call id that the target takes. Others (made by other providers) are rewritten the same way each
/// time: cleaned, and told apart by a hash of the whole.
fn call_id(id: &str, cap: usize) -> Cow<'_, str> {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !id.is_empty() && id.len() <= cap && id.chars().all(fits) {
        return Cow::Borrowed(id);
    }
    let clean: String = id.chars().filter(|c| fits(*c)).take(cap - 17).collect();
    Cow::Owned(format!("{clean}_{:016x}", stable_hash(id)))
}

/// FNV-1a: the same on every machine and in every version, unlike the standard hasher.
fn stable_hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
