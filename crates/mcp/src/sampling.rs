//! A server that asks our model something: through the permission door, with a budget.

use std::sync::atomic::Ordering;

use futures_util::future::BoxFuture;
use rmcp::model::{
    CreateMessageRequestParams, CreateMessageResult, ErrorData, Role, SamplingMessage,
    SamplingMessageContentBlock,
};
use toolwright_llm::{Content, Media};
use toolwright_tool::{Access, Plan};

use crate::hub::Active;

/// The key that rules about it are written with; the pattern is the server's name.
pub const PERMISSION: &str = "mcp_sampling";

/// Questions that one call may lead to. More would be a loop.
const QUESTIONS_CAP: usize = 10;

/// Tokens of one answer. What a server asks for is small; our model is not its own.
const ANSWER_CAP_TOKENS: u32 = 8_192;

/// Bytes of what it would ask, for the person who decides.
const PREVIEW_CAP_BYTES: usize = 4 << 10;

/// Asks the model of the session that a call belongs to.
pub trait Sampler: Send + Sync {
    fn sample(&self, request: SamplingRequest) -> BoxFuture<'static, Result<Sampled, String>>;
}

/// What a server wants to know.
#[derive(Debug, Clone)]
pub struct SamplingRequest {
    pub system: Option<String>,
    pub turns: Vec<SamplingTurn>,
    pub max_tokens: u32,
    pub temperature: Option<f32>,
    pub stop: Vec<String>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct SamplingTurn {
    pub by_model: bool,
    pub content: Vec<Content>,
}

/// What the model said.
#[derive(Debug, Clone, PartialEq)]
pub struct Sampled {
    pub model: String,
    pub text: String,
    pub was_cut: bool,
    /// US dollars, where the price is known.
    pub cost: Option<f64>,
}

pub(crate) async fn answer(
    server: &str,
    call: &Active,
    params: CreateMessageRequestParams,
) -> Result<CreateMessageResult, ErrorData> {
    let refuse = |why: String| ErrorData::invalid_request(why, None);
    let Some((desk, sampler)) =
        call.desk.as_ref().and_then(|desk| Some((desk, desk.sampler.clone()?)))
    else {
        return Err(refuse("no model can be asked here".to_owned()));
    };
    if call.samplings.fetch_add(1, Ordering::SeqCst) >= QUESTIONS_CAP {
        return Err(refuse(format!("more than {QUESTIONS_CAP} questions in one call")));
    }
    let preview = preview(&params);
    let request = SamplingRequest {
        system: params.system_prompt,
        turns: params.messages.into_iter().map(turn).collect(),
        max_tokens: params.max_tokens.clamp(1, ANSWER_CAP_TOKENS),
        temperature: params.temperature,
        stop: params.stop_sequences.unwrap_or_default(),
    };
    let access = Access::Mcp {
        server: server.to_owned(),
        permission: PERMISSION.to_owned(),
        pattern: server.to_owned(),
        preview,
        read_only: false,
    };
    let plan = Plan::new(format!("the MCP server {server} asks the model"), vec![access]);
    desk.door.ask(&plan).await.map_err(|denied| refuse(denied.to_string()))?;
    let sampled = sampler.sample(request).await.map_err(|why| ErrorData::internal_error(why, None));
    let Sampled { model, text, was_cut, cost } = sampled?;
    call.spend(cost);
    let message = SamplingMessage::new(Role::Assistant, SamplingMessageContentBlock::text(text));
    let mut result = CreateMessageResult::new(message, model);
    let reason = match was_cut {
        true => CreateMessageResult::STOP_REASON_END_MAX_TOKEN,
        false => CreateMessageResult::STOP_REASON_END_TURN,
    };
    result.stop_reason = Some(reason.to_owned());
    Ok(result)
}

fn turn(message: SamplingMessage) -> SamplingTurn {
    let by_model = message.role == Role::Assistant;
    let content = message.content.into_vec().into_iter().map(|block| match block {
        SamplingMessageContentBlock::Text(text) => Content::text(text.text),
        SamplingMessageContentBlock::Image(image) => {
            Content::Media(Media { mime: image.mime_type, base64: image.data.into(), name: None })
        }
        other => Content::text(format!("(left out: {})", kind(&other))),
    });
    SamplingTurn { by_model, content: content.collect() }
}

fn kind(block: &SamplingMessageContentBlock) -> &'static str {
    match block {
        SamplingMessageContentBlock::Audio(_) => "sound",
        _ => "something that is no text",
    }
}

fn preview(params: &CreateMessageRequestParams) -> String {
    let mut text = params.system_prompt.clone().unwrap_or_default();
    for message in &params.messages {
        for block in message.content.clone().into_vec() {
            if let SamplingMessageContentBlock::Text(own) = block {
                text.push_str(&format!("\n{:?}: {}", message.role, own.text));
            }
        }
    }
    crate::content::cut(text.trim(), PREVIEW_CAP_BYTES)
}
