//! The engine with a model in memory: what cannot be told from outside, and what needs ten thousand
//! runs.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod closing;
mod early;
mod random;
mod support;
mod tools;
