//! The terminal interface: commands in, events out, and no agent logic.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

#![allow(dead_code)]
mod diff;
mod editor;
mod flow;
mod fuzzy;
mod highlight;
mod input;
mod key;
mod markdown;
mod screen;
mod style;
mod theme;
mod width;
