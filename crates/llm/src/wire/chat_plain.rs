//! The chunk that most of a Chat Completions stream consists of: a piece of text, of reasoning or of
//! one call's arguments. Read without copying into something small, because moving a chunk that has
//! room for everything costs more than reading its bytes.

use serde::{Deserialize, Deserializer};

use super::Str;

/// Fields that would mean something here are [`Absent`], so that a chunk that has one is none of
/// these; fields that mean nothing are not looked at.
#[derive(Deserialize)]
pub(super) struct PlainChunk<'a> {
    #[serde(borrow)]
    pub(super) id: Option<Str<'a>>,
    #[serde(borrow)]
    pub(super) model: Option<Str<'a>>,
    #[serde(borrow)]
    pub(super) choices: [PlainChoice<'a>; 1],
    #[serde(rename = "usage")]
    _usage: Option<Absent>,
    #[serde(rename = "x_groq")]
    _x_groq: Option<Absent>,
    #[serde(rename = "error")]
    _error: Option<Absent>,
}

#[derive(Deserialize)]
pub(super) struct PlainChoice<'a> {
    pub(super) index: Option<u64>,
    #[serde(borrow)]
    pub(super) delta: PlainDelta<'a>,
    #[serde(borrow)]
    pub(super) finish_reason: Option<Str<'a>>,
    #[serde(rename = "usage")]
    _usage: Option<Absent>,
    #[serde(rename = "error")]
    _error: Option<Absent>,
}

#[derive(Deserialize)]
pub(super) struct PlainDelta<'a> {
    #[serde(borrow)]
    pub(super) content: Option<Str<'a>>,
    #[serde(borrow)]
    pub(super) reasoning_content: Option<Str<'a>>,
    #[serde(borrow)]
    pub(super) reasoning: Option<Str<'a>>,
    #[serde(borrow)]
    pub(super) tool_calls: Option<[PlainCall<'a>; 1]>,
    #[serde(rename = "reasoning_text")]
    _reasoning_text: Option<Absent>,
    #[serde(rename = "reasoning_details")]
    _reasoning_details: Option<Absent>,
    #[serde(rename = "refusal")]
    _refusal: Option<Absent>,
    #[serde(rename = "function_call")]
    _function_call: Option<Absent>,
}

/// More arguments for a call that has its name and its id already.
#[derive(Deserialize)]
pub(super) struct PlainCall<'a> {
    pub(super) index: u64,
    #[serde(borrow)]
    pub(super) function: PlainFunction<'a>,
    #[serde(rename = "id")]
    _id: Option<Absent>,
    #[serde(rename = "custom")]
    _custom: Option<Absent>,
}

#[derive(Deserialize)]
pub(super) struct PlainFunction<'a> {
    #[serde(borrow)]
    pub(super) arguments: Str<'a>,
    #[serde(rename = "name")]
    _name: Option<Absent>,
}

/// What has no value: only `null`, or nothing, stands in its place.
pub(super) enum Absent {}

impl<'de> Deserialize<'de> for Absent {
    fn deserialize<D: Deserializer<'de>>(_: D) -> Result<Self, D::Error> {
        // The words are for nobody: the chunk is read again as what it is.
        Err(serde::de::Error::custom(""))
    }
}
