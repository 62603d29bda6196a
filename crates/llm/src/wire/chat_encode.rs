//! OpenAI Chat Completions, writing.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::{Value, json};

use super::{Wire, joined_text};
use crate::provider::Quirks;
use crate::{Block, Content, Media, Origin, Request, ToolChoice, ToolDefinition, Turn};

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    stream: bool,
    stream_options: StreamOptions,
    /// Left to the server unless somebody said a number: what a server takes differs too much.
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_effort: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_p: Option<f32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seed: Option<i64>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    stop: &'a [String],
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_format: Option<Value>,
    messages: Vec<Message<'a>>,
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

#[derive(Serialize)]
struct Tool<'a> {
    r#type: &'static str,
    function: &'a ToolDefinition,
}

#[derive(Serialize)]
#[serde(tag = "role", rename_all = "lowercase")]
enum Message<'a> {
    System {
        content: &'a str,
    },
    User {
        content: UserContent<'a>,
    },
    Assistant {
        content: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        reasoning_content: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        reasoning_details: Option<&'a serde_json::Value>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<Call<'a>>,
    },
    Tool {
        tool_call_id: Cow<'a, str>,
        content: String,
    },
}

#[derive(Serialize)]
#[serde(untagged)]
enum UserContent<'a> {
    /// Plain text where it can be: not every compatible server takes parts.
    Plain(String),
    Parts(Vec<Part<'a>>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Part<'a> {
    Text { text: &'a str },
    ImageUrl { image_url: ImageUrl },
    File { file: File<'a> },
}

#[derive(Serialize)]
struct ImageUrl {
    url: String,
}

#[derive(Serialize)]
struct File<'a> {
    filename: &'a str,
    file_data: String,
}

#[derive(Serialize)]
struct Call<'a> {
    id: Cow<'a, str>,
    r#type: &'static str,
    function: Function<'a>,
}

#[derive(Serialize)]
struct Function<'a> {
    name: &'a str,
    arguments: &'a str,
}

pub(super) fn encode(target: &Origin, request: &Request, quirks: Quirks) -> Vec<u8> {
    let mut messages = Vec::with_capacity(request.turns.len() * 2 + 1);
    if !request.system.is_empty() {
        messages.push(Message::System { content: &request.system });
    }
    for turn in &request.turns {
        match turn.as_ref() {
            Turn::User(content) => {
                after_tool(&mut messages, quirks);
                messages.push(Message::User { content: user_content(content) });
            }
            Turn::Assistant { origin, blocks } => {
                push_step(&mut messages, blocks, origin == target, quirks);
            }
        }
    }
    let forbid = request.tool_choice == ToolChoice::None && !request.tools.is_empty();
    let body = Body {
        model: &target.model,
        stream: true,
        stream_options: StreamOptions { include_usage: true },
        max_tokens: request.max_output_tokens.filter(|_| !quirks.max_completion_tokens),
        max_completion_tokens: request.max_output_tokens.filter(|_| quirks.max_completion_tokens),
        reasoning_effort: request
            .effort
            .and_then(|effort| super::responses_encode::effort(&target.model, effort)),
        temperature: request.sampling.temperature,
        top_p: request.sampling.top_p,
        seed: request.sampling.seed,
        stop: &request.sampling.stop,
        tools: request.tools.iter().map(|function| Tool { r#type: "function", function }).collect(),
        tool_choice: forbid.then_some("none"),
        response_format: request
            .form()
            .and_then(|schema| super::form::native(Wire::OpenaiChat, &target.model, schema))
            .map(|schema| {
                let form = json!({ "name": "final_answer", "strict": true, "schema": schema });
                json!({ "type": "json_schema", "json_schema": form })
            }),
        messages,
    };
    super::to_bytes(&body)
}

fn push_step<'a>(
    messages: &mut Vec<Message<'a>>,
    blocks: &'a [Block],
    same_maker: bool,
    quirks: Quirks,
) {
    let mut said = String::new();
    let mut calls = Vec::new();
    let mut details = None;
    let mut thought = String::new();
    for block in blocks {
        match block {
            Block::Text { text, .. } => said.push_str(text),
            Block::Call { id, name, arguments, .. } => calls.push(Call {
                id: sent_id(id, quirks),
                r#type: "function",
                function: Function { name, arguments: arguments.get() },
            }),
            // The format has one agreed place for reasoning that goes back: OpenRouter's.
            Block::Reasoning { text, opaque } => {
                thought.push_str(text);
                let own = opaque.as_ref().filter(|_| same_maker);
                details = own.and_then(|o| o.get("reasoning_details")).or(details);
            }
            Block::ServerTool { .. } => {}
        }
    }
    if said.is_empty() && calls.is_empty() {
        return;
    }
    let content = (!said.is_empty()).then_some(said);
    let wanted = quirks.reasoning_content && same_maker && !calls.is_empty();
    // Where it must be there, it must not be empty.
    let thought = if thought.is_empty() { " ".to_owned() } else { thought };
    messages.push(Message::Assistant {
        content,
        reasoning_content: wanted.then_some(thought),
        reasoning_details: details,
        tool_calls: calls,
    });

    let mut media = Vec::new();
    for block in blocks {
        let Block::Call { id, result, .. } = block else { continue };
        messages.push(Message::Tool {
            tool_call_id: sent_id(id, quirks),
            content: joined_text(&result.content),
        });
        media.extend(result.content.iter().filter_map(media_part));
    }
    // A tool message holds text only; what was seen follows as a user's message.
    if !media.is_empty() {
        after_tool(messages, quirks);
        let mut parts = vec![Part::Text { text: "Attached media from tool result:" }];
        parts.extend(media);
        messages.push(Message::User { content: UserContent::Parts(parts) });
    }
}

/// OpenAI takes at most this many characters.
const ID_CAP: usize = 40;

fn sent_id(id: &str, quirks: Quirks) -> Cow<'_, str> {
    let nine = |id: &str| id.len() == 9 && id.chars().all(|c| c.is_ascii_alphanumeric());
    match quirks.mistral_order {
        true if nine(id) => Cow::Borrowed(id),
        true => Cow::Owned(format!("{:09x}", super::stable_hash(id) & 0xf_ffff_ffff)),
        false => super::call_id(id, ID_CAP),
    }
}

/// Some servers refuse a user's words right behind a tool's.
fn after_tool(messages: &mut Vec<Message<'_>>, quirks: Quirks) {
    if quirks.mistral_order && matches!(messages.last(), Some(Message::Tool { .. })) {
        messages.push(Message::Assistant {
            content: Some("Done.".to_owned()),
            reasoning_content: None,
            reasoning_details: None,
            tool_calls: Vec::new(),
        });
    }
}

fn user_content(content: &[Content]) -> UserContent<'_> {
    if content.iter().all(|c| matches!(c, Content::Text { .. })) {
        return UserContent::Plain(joined_text(content));
    }
    UserContent::Parts(content.iter().filter_map(any_part).collect())
}

fn any_part(content: &Content) -> Option<Part<'_>> {
    match content {
        Content::Text { text } => Some(Part::Text { text }),
        Content::Media(_) => media_part(content),
    }
}

fn media_part(content: &Content) -> Option<Part<'_>> {
    let Content::Media(Media { mime, base64, name }) = content else { return None };
    let url = format!("data:{mime};base64,{base64}");
    Some(if mime.starts_with("image/") {
        Part::ImageUrl { image_url: ImageUrl { url } }
    } else {
        let filename = name.as_deref().unwrap_or("attachment");
        Part::File { file: File { filename, file_data: url } }
    })
}
