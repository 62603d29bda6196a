//! Anthropic Messages, writing.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::value::RawValue;

use super::{Wire, call_id};
use crate::provider::Quirks;
use crate::{
    Block, CallResult, Content, Effort, Media, Origin, Request, ToolChoice, ToolDefinition, Turn,
};

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    max_tokens: u32,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_p: Option<f32>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    stop_sequences: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<Thinking>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_config: Option<OutputConfig>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    system: Vec<Part<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<Choice>,
    messages: Vec<Message<'a>>,
}

#[derive(Serialize)]
struct Tool<'a> {
    name: &'a str,
    description: &'a str,
    input_schema: &'a serde_json::Value,
    /// Long arguments come as they are written instead of at their end. They are then not checked
    /// at the provider's; all arguments are checked here.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    eager_input_streaming: bool,
}

#[derive(Serialize)]
struct OutputConfig {
    #[serde(skip_serializing_if = "Option::is_none")]
    effort: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    format: Option<Format>,
}

#[derive(Serialize)]
struct Format {
    r#type: &'static str,
    schema: serde_json::Value,
}

#[derive(Serialize)]
struct Thinking {
    r#type: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    budget_tokens: Option<u32>,
}

#[derive(Serialize)]
struct Choice {
    r#type: &'static str,
}

#[derive(Serialize)]
struct Message<'a> {
    role: &'static str,
    content: Vec<Part<'a>>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Part<'a> {
    Text {
        text: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        citations: Option<&'a serde_json::Value>,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<CacheControl>,
    },
    Image {
        source: Source<'a>,
    },
    Document {
        source: Source<'a>,
    },
    Thinking {
        thinking: &'a str,
        signature: &'a str,
    },
    RedactedThinking {
        data: &'a str,
    },
    ToolUse {
        id: Cow<'a, str>,
        name: &'a str,
        input: &'a RawValue,
    },
    ToolResult {
        tool_use_id: Cow<'a, str>,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        is_error: bool,
        content: Vec<Part<'a>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<CacheControl>,
    },
    /// A block of the maker's own, as it came.
    #[serde(untagged)]
    Raw(&'a serde_json::Value),
}

#[derive(Serialize)]
struct Source<'a> {
    r#type: &'static str,
    media_type: &'a str,
    data: &'a str,
}

#[derive(Serialize, Clone, Copy)]
struct CacheControl {
    r#type: &'static str,
}

/// Marks where the provider may keep the prompt so far. One stands on the system prompt (tools and
/// instructions), one on the newest message: the next request finds its whole history cached.
const CACHE_HERE: Option<CacheControl> = Some(CacheControl { r#type: "ephemeral" });

pub(super) fn encode(target: &Origin, request: &Request, quirks: Quirks) -> Vec<u8> {
    let model = target.model.as_str();
    let mut messages = Vec::with_capacity(request.turns.len() * 2);
    for turn in &request.turns {
        match turn.as_ref() {
            Turn::User(content) => push(&mut messages, "user", parts(content)),
            Turn::Assistant { blocks, origin } => {
                // Another model's signatures mean nothing to this one.
                let same_maker = origin == target;
                let said = blocks.iter().filter_map(|b| assistant_part(b, same_maker)).collect();
                push(&mut messages, "assistant", said);
                push(&mut messages, "user", blocks.iter().filter_map(result_part).collect());
            }
        }
    }
    if let Some(last) = messages.last_mut().and_then(|m| m.content.last_mut()) {
        mark_cached(last);
    }
    let system = match request.system.as_ref() {
        "" => Vec::new(),
        text => vec![Part::Text { text, citations: None, cache_control: CACHE_HERE }],
    };
    let forbid = request.tool_choice == ToolChoice::None && !request.tools.is_empty();
    let max_tokens = request.max_output_tokens.unwrap_or_else(|| usual_limit(model));
    let adaptive = thinks_adaptively(model);
    let thinking = match request.effort {
        None | Some(Effort::Off) => None,
        _ if continues_foreign_calls(target, request) => None,
        Some(_) if adaptive => Some(Thinking { r#type: "adaptive", budget_tokens: None }),
        Some(effort) => Some(thinking(effort, max_tokens)),
    };
    let effort =
        request.effort.filter(|_| adaptive && thinking.is_some()).map(|effort| match effort {
            Effort::Off | Effort::Minimal | Effort::Low => "low",
            Effort::Medium => "medium",
            Effort::High => "high",
            Effort::Max => "max",
        });
    let form = request.form();
    let format = form
        .and_then(|schema| super::form::native(Wire::AnthropicMessages, model, schema))
        .map(|schema| Format { r#type: "json_schema", schema });
    let output_config =
        (effort.is_some() || format.is_some()).then_some(OutputConfig { effort, format });
    let body = Body {
        model,
        max_tokens,
        stream: true,
        // The API refuses both together.
        temperature: request.sampling.temperature.filter(|_| thinking.is_none()),
        top_p: request.sampling.top_p.filter(|_| thinking.is_none()),
        stop_sequences: &request.sampling.stop,
        thinking,
        output_config,
        system,
        tools: request.tools.iter().map(|t| tool(t, quirks)).collect(),
        tool_choice: forbid.then_some(Choice { r#type: "none" }),
        messages,
    };
    super::to_bytes(&body)
}

/// Whether the request goes on after calls that were not thought out by this model. The API wants
/// its own signed thinking in front of them, so that one request goes without.
fn continues_foreign_calls(target: &Origin, request: &Request) -> bool {
    let Some(Turn::Assistant { origin, blocks }) = request.turns.last().map(AsRef::as_ref) else {
        return false;
    };
    let has_calls = blocks.iter().any(|b| matches!(b, Block::Call { .. }));
    let signed = |b: &Block| matches!(b, Block::Reasoning { opaque: Some(_), .. });
    has_calls && (origin != target || !blocks.iter().any(signed))
}

/// Models of the house from 4.6 on decide themselves how long to think, and refuse a budget.
fn thinks_adaptively(model: &str) -> bool {
    version(model) >= (4, 6)
}

/// Of a model of the house; nothing is older than any.
pub(super) fn version(model: &str) -> (u32, u32) {
    let Some(rest) = model.strip_prefix("claude-") else { return (0, 0) };
    let mut numbers =
        rest.split(['-', '.']).filter_map(|part| part.parse::<u32>().ok()).filter(|n| *n < 100);
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
}

/// Thinking counts against the answer's limit, so at most three quarters of it are for thinking.
fn thinking(effort: Effort, max_tokens: u32) -> Thinking {
    let wanted = match effort {
        Effort::Off | Effort::Minimal => 1_024,
        Effort::Low => 4_096,
        Effort::Medium => 10_000,
        Effort::High => 20_000,
        Effort::Max => 64_000,
    };
    // Less than this is refused.
    let budget = wanted.min(max_tokens / 4 * 3).max(1_024);
    Thinking { r#type: "enabled", budget_tokens: Some(budget) }
}

/// The API wants a number. Current models of the house take this much; others speak the same wire
/// and may take less.
fn usual_limit(model: &str) -> u32 {
    if model.starts_with("claude-") { 32_000 } else { 8_192 }
}

/// A message without content is refused by the API; leaving it out says the same.
fn push<'a>(messages: &mut Vec<Message<'a>>, role: &'static str, content: Vec<Part<'a>>) {
    if !content.is_empty() {
        messages.push(Message { role, content });
    }
}

fn tool(definition: &ToolDefinition, quirks: Quirks) -> Tool<'_> {
    Tool {
        name: &definition.name,
        description: &definition.description,
        input_schema: &definition.parameters,
        eager_input_streaming: quirks.eager_input,
    }
}

fn parts(content: &[Content]) -> Vec<Part<'_>> {
    content.iter().filter_map(part).collect()
}

fn part(content: &Content) -> Option<Part<'_>> {
    match content {
        Content::Text { text } if text.is_empty() => None,
        Content::Text { text } => Some(Part::Text { text, citations: None, cache_control: None }),
        Content::Media(media) if media.mime == "application/pdf" => {
            Some(Part::Document { source: source(media) })
        }
        Content::Media(media) => Some(Part::Image { source: source(media) }),
    }
}

fn source(media: &Media) -> Source<'_> {
    Source { r#type: "base64", media_type: &media.mime, data: &media.base64 }
}

fn assistant_part(block: &Block, same_maker: bool) -> Option<Part<'_>> {
    match block {
        Block::Text { text, .. } if text.trim().is_empty() => None,
        Block::Text { text, opaque } => {
            let citations = opaque.as_ref().filter(|_| same_maker).and_then(|o| o.get("citations"));
            Some(Part::Text { text, citations, cache_control: None })
        }
        Block::ServerTool { opaque } => same_maker.then_some(Part::Raw(opaque)),
        Block::Reasoning { text, opaque } => {
            let opaque = opaque.as_ref().filter(|_| same_maker)?;
            if let Some(data) = opaque.get("redacted").and_then(|d| d.as_str()) {
                return Some(Part::RedactedThinking { data });
            }
            let signature = opaque.get("signature")?.as_str()?;
            Some(Part::Thinking { thinking: text, signature })
        }
        Block::Call { id, name, arguments, .. } => {
            Some(Part::ToolUse { id: call_id(id, ID_CAP), name, input: arguments })
        }
    }
}

fn result_part(block: &Block) -> Option<Part<'_>> {
    let Block::Call { id, result: CallResult { content, is_error }, .. } = block else {
        return None;
    };
    Some(Part::ToolResult {
        tool_use_id: call_id(id, ID_CAP),
        is_error: *is_error,
        content: parts(content),
        cache_control: None,
    })
}

fn mark_cached(part: &mut Part<'_>) {
    match part {
        Part::Text { cache_control, .. } | Part::ToolResult { cache_control, .. } => {
            *cache_control = CACHE_HERE;
        }
        _ => {}
    }
}

/// The longest id that the API takes.
const ID_CAP: usize = 64;
