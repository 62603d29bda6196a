//! Speaks to language models: a [`Request`] becomes bytes, bytes become [`Event`]s.
//!
//! The codecs under [`wire`] are pure: they can be fed any split of the bytes and always give the
//! same events. [`HttpModel`] adds the network: deadlines, retries, clear failures. Nothing here
//! knows of sessions, permissions or how tools are run.

// A failed `expect` is what a test is for; outside tests the lint stands.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod catalogue;
mod client;
mod demo;
mod describe;
mod event;
mod failure;
mod message;
mod normalise;
mod probe;
mod provider;
mod reply;
mod sse;
mod think;
mod trace;
mod transport;
pub mod wire;

pub use catalogue::{Limits, ModelFacts, Price, Tier, models_of};
pub use client::client_builder;
pub use demo::DemoModel;
pub use describe::describe;
pub use event::{Event, Finish, FinishReason, Usage};
pub use failure::{Failure, FailureKind};
pub use message::{
    Block, CallResult, Content, Effort, Media, Opaque, Origin, Request, Sampling, ToolChoice,
    ToolDefinition, Turn,
};
pub use probe::{LocalServer, fetch_catalogue, find_local_servers};
pub use provider::{Endpoint, PROVIDERS, Provider, Quirks, provider};
pub use reply::{Reply, ReplyBlock, ReplyBuilder, ReplyKind};
pub use sse::{SseEvent, SseReader};
pub use trace::Trace;
pub use transport::{Deadlines, HttpModel, Retry};

use futures_util::stream::BoxStream;

/// Something that answers requests.
///
/// The stream must not panic and always closes with exactly one [`Event::Finish`] or
/// [`Event::Failed`]; there is no other way to fail. Dropping it ends the request at once.
pub trait Model: Send + Sync {
    /// Who answers, as recorded with each reply.
    fn origin(&self) -> &Origin;
    fn stream(&self, request: Request) -> BoxStream<'static, Event>;
    /// Whether its provider can hold an answer to this JSON Schema ([`Request::output_schema`]).
    fn takes_form(&self, _schema: &serde_json::Value) -> bool {
        false
    }
}
