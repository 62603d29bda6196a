//! The tools that change files, through the whole pipeline on real files.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod apply_patch;
mod asked;
mod edit;
mod fixtures;
mod hostile;
mod properties;
mod stale;
mod support;
