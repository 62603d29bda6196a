//! Wire formats: pure translations in both directions.

mod anthropic;
mod anthropic_encode;
mod chat;
mod chat_encode;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

use crate::failure::excerpt;
use crate::sse::EventTooLarge;
use crate::{Event, Failure, FailureKind, Request, SseEvent, SseReader};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Wire {
    AnthropicMessages,
    OpenaiChat,
}

impl Wire {
    /// The request's body. The same request always gives the same bytes, and a request that only
    /// adds turns to another starts with the other's messages.
    pub fn encode(self, model: &str, request: &Request) -> Vec<u8> {
        match self {
            Self::AnthropicMessages => anthropic_encode::encode(model, request),
            Self::OpenaiChat => chat_encode::encode(model, request),
        }
    }

    pub fn decoder(self) -> Decoder {
        let codec: Box<dyn Codec> = match self {
            Self::AnthropicMessages => Box::new(anthropic::AnthropicCodec::default()),
            Self::OpenaiChat => Box::new(chat::ChatCodec::default()),
        };
        Decoder {
            sse: SseReader::default(),
            codec,
            closed: false,
            events_seen: 0,
            head: Vec::new(),
        }
    }

    /// Where requests go, below a base URL that people write with and without `/v1`.
    pub fn url(self, base: &str) -> String {
        let base = base.trim_end_matches('/');
        let versioned = base.ends_with("/v1");
        match self {
            Self::AnthropicMessages if versioned => format!("{base}/messages"),
            Self::AnthropicMessages => format!("{base}/v1/messages"),
            Self::OpenaiChat if versioned || has_path(base) => format!("{base}/chat/completions"),
            Self::OpenaiChat => format!("{base}/v1/chat/completions"),
        }
    }
}

/// Whether a URL has more than a host: then its owner has said where the API lives.
fn has_path(base: &str) -> bool {
    base.split_once("://").is_some_and(|(_, rest)| rest.contains('/'))
}

/// The part of a decoder that differs between wire formats.
trait Codec: Send + Sync {
    fn event(&mut self, event: SseEvent<'_>, out: &mut Vec<Event>);
    /// The input ended without a closing event so far.
    fn end(&mut self, out: &mut Vec<Event>);
}

/// Turns a response body, in any pieces, into events. The last event is always
/// [`Event::Finish`] or [`Event::Failed`]; nothing follows it.
pub struct Decoder {
    sse: SseReader,
    codec: Box<dyn Codec>,
    closed: bool,
    events_seen: usize,
    /// The body's first bytes, to show when no event is in it.
    head: Vec<u8>,
}

/// Enough of a body that is no event stream to say what it is.
const HEAD_BYTES: usize = 512;

impl Decoder {
    pub fn push(&mut self, bytes: &[u8]) -> Vec<Event> {
        let mut out = Vec::new();
        if self.closed {
            return out;
        }
        if self.head.len() < HEAD_BYTES {
            let room = HEAD_BYTES - self.head.len();
            self.head.extend_from_slice(&bytes[..bytes.len().min(room)]);
        }
        let Self { sse, codec, closed, events_seen, .. } = self;
        let result = sse.push(bytes, &mut |event| {
            *events_seen += 1;
            if !*closed {
                codec.event(event, &mut out);
                *closed = ends_with_closing(&mut out);
            }
        });
        if result == Err(EventTooLarge) && !self.closed {
            self.closed = true;
            let limit = crate::sse::EVENT_CAP_BYTES >> 20;
            let message = format!("the server sent a single event of more than {limit} MiB");
            out.push(Event::Failed(Failure::new(FailureKind::Protocol, message)));
        }
        out
    }

    pub fn finish(&mut self) -> Vec<Event> {
        let mut out = Vec::new();
        if self.closed {
            return out;
        }
        let Self { sse, codec, closed, events_seen, .. } = self;
        sse.finish(&mut |event| {
            *events_seen += 1;
            if !*closed {
                codec.event(event, &mut out);
                *closed = ends_with_closing(&mut out);
            }
        });
        if self.events_seen == 0 {
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
        } else if !self.closed {
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
        if !matches!(out.last(), Some(Event::Finish(_))) {
            out = vec![Event::Failed(cause)];
        }
        out
    }
}

/// Whether the answer is over; drops what a codec may have put behind its closing event.
fn ends_with_closing(out: &mut Vec<Event>) -> bool {
    let closing = out.iter().position(|e| matches!(e, Event::Finish(_) | Event::Failed(_)));
    if let Some(at) = closing {
        out.truncate(at + 1);
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

/// Serialising plain data into memory cannot fail; an empty body would be refused by any server,
/// visibly, if that ever changed.
fn to_bytes(body: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(body).unwrap_or_default()
}

/// FNV-1a: the same on every machine and in every version, unlike the standard hasher.
fn stable_hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
