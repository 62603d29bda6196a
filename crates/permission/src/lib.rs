//! Who may do what: rules in layers, judged with the last match winning and *deny* final.
//!
//! This crate decides; it asks nobody and touches nothing. What a call would touch comes in as
//! [`Request`]s, a [`Judgement`] that names its rule goes out.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod approval;
mod defaults;
mod mode;
mod policy;
mod rule;
mod shell;
mod wildcard;

pub use approval::{Approval, Asked, Extent, Grant, Offer, Scope, Suggestion, agree, suggestions};
pub use defaults::{is_secret_name, shipped_defaults};
pub use mode::{Mode, ModeCell, Stance};
pub use policy::{Judgement, PLAN_FILES, Policy, Request};
pub use rule::{Action, Layer, LayerKind, Rule};
pub use shell::{
    Analysis, Below, Folder, Obeys, ShellCommand, Touch, TouchKind, When, Word, analyse,
    is_raw_device, mentions, readings, reprint,
};
pub use wildcard::matches;
