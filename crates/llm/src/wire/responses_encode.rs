//! OpenAI Responses, writing. Stateless: nothing is stored at the provider, and encrypted reasoning
//! goes back with each request.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::{Value, json};

use super::{Wire, call_id};
use crate::provider::Quirks;
use crate::{Block, Content, Effort, Media, Origin, Request, ToolChoice, ToolDefinition, Turn};

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    stream: bool,
    store: bool,
    #[serde(skip_serializing_if = "str::is_empty")]
    instructions: &'a str,
    #[serde(skip_serializing_if = "<[&str]>::is_empty")]
    include: &'static [&'static str],
    #[serde(skip_serializing_if = "Option::is_none")]
    max_output_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_p: Option<f32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning: Option<Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<Value>,
    input: Vec<Item<'a>>,
}

#[derive(Serialize)]
struct Tool<'a> {
    r#type: &'static str,
    name: &'a str,
    description: &'a str,
    parameters: &'a Value,
    strict: bool,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Item<'a> {
    Message {
        r#type: &'static str,
        role: &'static str,
        content: Vec<Value>,
    },
    Call {
        r#type: &'static str,
        call_id: Cow<'a, str>,
        name: &'a str,
        arguments: &'a str,
    },
    Output {
        r#type: &'static str,
        call_id: Cow<'a, str>,
        output: Value,
    },
    /// The maker's own item, as it came.
    Raw(&'a Value),
}

pub(super) fn encode(target: &Origin, request: &Request, quirks: Quirks) -> Vec<u8> {
    let mut input = Vec::new();
    for turn in &request.turns {
        match turn.as_ref() {
            Turn::User(content) => {
                let content = content.iter().map(input_part).collect();
                input.push(Item::Message { r#type: "message", role: "user", content });
            }
            Turn::Assistant { origin, blocks } => {
                push_step(&mut input, blocks, origin == target);
            }
        }
    }
    let forbid = request.tool_choice == ToolChoice::None && !request.tools.is_empty();
    let body = Body {
        model: &target.model,
        stream: true,
        store: false,
        instructions: &request.system,
        include: if quirks.no_reasoning { &[] } else { &["reasoning.encrypted_content"] },
        max_output_tokens: request.max_output_tokens,
        temperature: request.sampling.temperature,
        top_p: request.sampling.top_p,
        reasoning: request
            .effort
            .and_then(|e| effort(&target.model, e))
            .map(|effort| json!({ "effort": effort, "summary": "auto" })),
        tools: request.tools.iter().map(tool).collect(),
        tool_choice: forbid.then_some("none"),
        text: request
            .form()
            .and_then(|schema| super::form::native(Wire::OpenaiResponses, &target.model, schema))
            .map(|schema| {
                let name = "final_answer";
                json!({ "format": { "type": "json_schema", "name": name, "strict": true, "schema": schema } })
            }),
        input,
    };
    super::to_bytes(&body)
}

/// The word for an effort that this model takes. The ends of the scale came with later models;
/// others take the nearest.
pub(super) fn effort(model: &str, effort: Effort) -> Option<&'static str> {
    let version = model.strip_prefix("gpt-5").map(|rest| rest.strip_prefix('.').unwrap_or("0"));
    let minor = version.and_then(|v| v.split('-').next()?.parse::<u32>().ok());
    Some(match (effort, minor) {
        (Effort::Off, Some(1..)) => "none",
        (Effort::Off, Some(0)) | (Effort::Minimal, Some(0)) => "minimal",
        (Effort::Off, None) => return None,
        (Effort::Minimal | Effort::Low, _) => "low",
        (Effort::Medium, _) => "medium",
        (Effort::Max, Some(2..)) => "xhigh",
        (Effort::High | Effort::Max, _) => "high",
    })
}

/// The longest id that the API takes.
const ID_CAP: usize = 64;

fn tool(definition: &ToolDefinition) -> Tool<'_> {
    Tool {
        r#type: "function",
        name: &definition.name,
        description: &definition.description,
        parameters: &definition.parameters,
        strict: false,
    }
}

fn push_step<'a>(input: &mut Vec<Item<'a>>, blocks: &'a [Block], same_maker: bool) {
    for (at, block) in blocks.iter().enumerate() {
        match block {
            Block::Text { text, .. } if text.is_empty() => {}
            Block::Text { text, .. } => {
                let content = vec![json!({ "type": "output_text", "text": text })];
                input.push(Item::Message { r#type: "message", role: "assistant", content });
            }
            Block::Reasoning { opaque, .. } => {
                let item = opaque.as_ref().filter(|_| same_maker).and_then(|o| o.get("item"));
                // Without its encrypted content an item is only a reference to what was not stored.
                let replayable =
                    |i: &&Value| i.get("encrypted_content").is_some_and(Value::is_string);
                // Nor is one taken that nothing follows: an answer that was cut while it thought.
                let followed =
                    blocks[at + 1..].iter().any(|b| !matches!(b, Block::Reasoning { .. }));
                input.extend(item.filter(replayable).filter(|_| followed).map(Item::Raw));
            }
            Block::ServerTool { opaque } if same_maker => input.push(Item::Raw(opaque)),
            Block::ServerTool { .. } => {}
            Block::Call { id, name, arguments, .. } => input.push(Item::Call {
                r#type: "function_call",
                call_id: call_id(id, ID_CAP),
                name,
                arguments: arguments.get(),
            }),
        }
    }
    for block in blocks {
        let Block::Call { id, result, .. } = block else { continue };
        let has_media = result.content.iter().any(|c| matches!(c, Content::Media(_)));
        let output = if has_media {
            Value::Array(result.content.iter().map(input_part).collect())
        } else {
            Value::String(super::joined_text(&result.content))
        };
        input.push(Item::Output {
            r#type: "function_call_output",
            call_id: call_id(id, ID_CAP),
            output,
        });
    }
}

fn input_part(content: &Content) -> Value {
    match content {
        Content::Text { text } => json!({ "type": "input_text", "text": text }),
        Content::Media(Media { mime, base64, name }) => {
            let url = format!("data:{mime};base64,{base64}");
            if mime.starts_with("image/") {
                json!({ "type": "input_image", "image_url": url })
            } else {
                let name = name.as_deref().unwrap_or("attachment");
                json!({ "type": "input_file", "filename": name, "file_data": url })
            }
        }
    }
}
