//! Tools, prompts and resources of MCP servers.
//!
//! The protocol is the official SDK's; around it stand our own door for processes, our own pipes, a
//! life cycle that neither hangs nor storms, and tools that go the same way as every other. Nothing is
//! touched where no server is configured.

// The SDK marks sampling, roots and logging as going away; servers use them.
#![allow(deprecated)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod auth;
mod connect;
mod content;
mod desks;
mod elicit;
mod hub;
mod live;
mod name;
mod pipes;
mod prompts;
mod resources;
mod roots;
mod roster;
mod sampling;
mod schema;
mod serve;
mod server;
mod servers;
mod spec;
mod sse;
mod tail;
mod tasks;
mod tool;
mod watched;

pub use auth::{SIGN_IN_LIMIT, SignIn, Vault, begin_sign_in};
pub use name::plain;
pub use prompts::{PromptArgument, PromptInfo, ResourceInfo};
pub use resources::access as resource_access;
pub use sampling::{Sampled, Sampler, SamplingRequest, SamplingTurn};
pub use serve::{AGENT, Offering, RunAgent, serve_http, serve_pipes};
pub use server::TRIES;
pub use servers::{Options, Sandboxes, ServerState, ServerStatus, Servers};
pub use spec::{
    Launch, Oauth, OauthSpec, Reach, RemoteKind, ServerSpec, USUAL_TIMEOUT, without_keys,
};
