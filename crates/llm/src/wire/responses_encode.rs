//! OpenAI Responses, writing. Stateless: nothing is stored at the provider, and encrypted reasoning
//! goes back with each request.

use serde::Serialize;
use serde_json::{Value, json};

use crate::{Block, Content, Effort, Media, Origin, Request, ToolChoice, ToolDefinition, Turn};

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    stream: bool,
    store: bool,
    #[serde(skip_serializing_if = "str::is_empty")]
    instructions: &'a str,
    include: [&'static str; 1],
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
        call_id: &'a str,
        name: &'a str,
        arguments: &'a str,
    },
    Output {
        r#type: &'static str,
        call_id: &'a str,
        output: Value,
    },
    /// The maker's own item, as it came.
    Raw(&'a Value),
}

pub(super) fn encode(target: &Origin, request: &Request) -> Vec<u8> {
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
        include: ["reasoning.encrypted_content"],
        max_output_tokens: request.max_output_tokens,
        temperature: request.sampling.temperature,
        top_p: request.sampling.top_p,
        reasoning: request.effort.map(|e| json!({ "effort": effort(e), "summary": "auto" })),
        tools: request.tools.iter().map(tool).collect(),
        tool_choice: forbid.then_some("none"),
        input,
    };
    super::to_bytes(&body)
}

pub(super) fn effort(effort: Effort) -> &'static str {
    match effort {
        Effort::Off => "none",
        Effort::Minimal => "minimal",
        Effort::Low => "low",
        Effort::Medium => "medium",
        Effort::High => "high",
        Effort::Max => "xhigh",
    }
}

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
    for block in blocks {
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
                input.extend(item.filter(replayable).map(Item::Raw));
            }
            Block::ServerTool { opaque } if same_maker => input.push(Item::Raw(opaque)),
            Block::ServerTool { .. } => {}
            Block::Call { id, name, arguments, .. } => input.push(Item::Call {
                r#type: "function_call",
                call_id: id,
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
        input.push(Item::Output { r#type: "function_call_output", call_id: id, output });
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
