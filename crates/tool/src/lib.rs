//! The contract between the loop and what it can do: a call is repaired, validated, *planned*,
//! decided, scheduled, run and fitted, in that order, and always ends in one outcome.
//!
//! A tool declares what a call would touch ([`Plan`], a list of [`Access`]es) before it touches
//! anything. Permission, ordering and display all come from that list; a tool knows of none of them.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod access;
mod batch;
mod below;
mod cache;
mod capture;
mod containment;
mod deferred;
mod door;
mod early;
mod final_answer;
mod fit;
mod floor;
mod function;
mod hooks;
mod image;
mod inner;
mod mask;
mod perform;
mod pipeline;
mod progress;
mod registry;
mod repair;
mod schedule;
mod schema;
mod shell;
mod tame;
mod tool;
mod validate;
mod workspace;

pub use access::{Access, Extent, Plan};
pub use batch::BatchTool;
pub use cache::canonical;
pub use capture::{Capture, Captured};
pub use containment::{Containment, OUTSIDE_SANDBOX};
pub use door::{Choice, Door, Inquiry, InquiryItem, Replies, Unanswered};
pub use early::EarlyCalls;
pub use final_answer::FinalAnswer;
pub use fit::{OUTPUT_CAP_BYTES, OUTPUT_CAP_LINES, OutputCaps, Outputs};
pub use function::tool_fn;
pub use hooks::{Before, CallHooks, Hint, HookedCall};
pub use image::{
    FittedImage, ImageLimits, Source as ImageSource, attachable_bytes, fit_image, fit_media,
};
pub use inner::InnerCalls;
pub use mask::Secrets;
pub use pipeline::{
    CallRequest, Decision, DeniedBy, Gate, Pipeline, PipelineOptions, Question, Update,
};
pub use progress::Progress;
pub use registry::{Audience, Offer, Registry, Source, WeakRegistry};
pub use schedule::Batch;
pub use tame::programs_named;
pub use tool::{
    AnyTool, ErasedPlan, MayRead, PlanContext, Planned, RunContext, Tool, ToolError, ToolOutput,
};
pub use workspace::{Files, Workspace, cannot};

#[cfg(test)]
mod schedule_tests;
