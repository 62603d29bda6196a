//! Google Gemini, writing.

use serde::Serialize;
use serde_json::{Value, json};

use super::Wire;
use super::schema::for_gemini;
use crate::{Block, Content, Effort, Media, Opaque, Origin, Request, ToolChoice, Turn};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Body {
    #[serde(skip_serializing_if = "Option::is_none")]
    system_instruction: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_config: Option<Value>,
    #[serde(skip_serializing_if = "Value::is_null")]
    generation_config: Value,
    contents: Vec<Value>,
}

pub(super) fn encode(target: &Origin, request: &Request) -> Vec<u8> {
    let mut contents = Vec::new();
    for turn in &request.turns {
        match turn.as_ref() {
            Turn::User(content) => push(&mut contents, "user", content.iter().map(part).collect()),
            Turn::Assistant { origin, blocks } => {
                let same_maker = origin == target;
                let mut said: Vec<Value> =
                    blocks.iter().filter_map(|b| model_part(b, same_maker)).collect();
                if target.model.starts_with("gemini-3") {
                    vouch_for_first_call(&mut said);
                }
                push(&mut contents, "model", said);
                push(&mut contents, "user", results(blocks));
            }
        }
    }
    let system = (!request.system.is_empty())
        .then(|| json!({ "parts": [{ "text": request.system.as_ref() }] }));
    let declarations: Vec<Value> = request
        .tools
        .iter()
        .map(|tool| {
            let parameters = for_gemini(&tool.parameters);
            let mut declaration = json!({ "name": tool.name, "description": tool.description });
            // An object without properties is refused; no parameters at all are not.
            if parameters
                .get("properties")
                .and_then(Value::as_object)
                .is_some_and(|p| !p.is_empty())
            {
                declaration["parameters"] = parameters;
            }
            declaration
        })
        .collect();
    let has_tools = !declarations.is_empty();
    let forbid = has_tools && request.tool_choice == ToolChoice::None;
    let body = Body {
        system_instruction: system,
        tools: has_tools.then(|| json!([{ "functionDeclarations": declarations }])),
        tool_config: forbid.then(|| json!({ "functionCallingConfig": { "mode": "NONE" } })),
        generation_config: generation(target, request),
        contents,
    };
    super::to_bytes(&body)
}

fn generation(target: &Origin, request: &Request) -> Value {
    let mut config = serde_json::Map::new();
    let form = request.form();
    if let Some(schema) = form.and_then(|s| super::form::native(Wire::Gemini, &target.model, s)) {
        config.insert("responseMimeType".into(), "application/json".into());
        config.insert("responseJsonSchema".into(), schema);
    }
    if let Some(limit) = request.max_output_tokens {
        config.insert("maxOutputTokens".into(), limit.into());
    }
    let sampling = &request.sampling;
    if let Some(temperature) = sampling.temperature {
        config.insert("temperature".into(), temperature.into());
    }
    if let Some(top_p) = sampling.top_p {
        config.insert("topP".into(), top_p.into());
    }
    if let Some(seed) = sampling.seed {
        config.insert("seed".into(), seed.into());
    }
    if !sampling.stop.is_empty() {
        config.insert("stopSequences".into(), json!(sampling.stop));
    }
    if let Some(effort) = request.effort {
        let budget = match effort {
            // Those that always think take no less.
            Effort::Off if target.model.contains("pro") => 128,
            Effort::Off => 0,
            Effort::Minimal => 512,
            Effort::Low => 2_048,
            Effort::Medium => 8_192,
            Effort::High => 16_384,
            Effort::Max => 24_576,
        };
        let thinking =
            json!({ "thinkingBudget": budget, "includeThoughts": effort != Effort::Off });
        config.insert("thinkingConfig".into(), thinking);
    }
    if config.is_empty() { Value::Null } else { Value::Object(config) }
}

fn push(contents: &mut Vec<Value>, role: &str, parts: Vec<Value>) {
    if !parts.is_empty() {
        contents.push(json!({ "role": role, "parts": parts }));
    }
}

fn part(content: &Content) -> Value {
    match content {
        Content::Text { text } => json!({ "text": text }),
        Content::Media(Media { mime, base64, .. }) => {
            json!({ "inlineData": { "mimeType": mime, "data": base64 } })
        }
    }
}

fn model_part(block: &Block, same_maker: bool) -> Option<Value> {
    let signed = |mut part: Value, opaque: &Opaque| {
        let signature = opaque.as_ref().filter(|_| same_maker)?.get("thoughtSignature")?;
        part.as_object_mut()?.insert("thoughtSignature".into(), signature.clone());
        Some(part)
    };
    match block {
        Block::Text { text, .. } if text.is_empty() => None,
        Block::Text { text, opaque } => {
            let plain = json!({ "text": text });
            Some(signed(plain.clone(), opaque).unwrap_or(plain))
        }
        // Thoughts go back only with the signature that proves them.
        Block::Reasoning { text, opaque } => {
            signed(json!({ "text": text, "thought": true }), opaque)
        }
        Block::ServerTool { opaque } => same_maker.then(|| opaque.clone()),
        Block::Call { name, arguments, opaque, .. } => {
            let arguments: &serde_json::value::RawValue = arguments;
            let plain = json!({ "functionCall": { "name": name, "args": arguments } });
            Some(signed(plain.clone(), opaque).unwrap_or(plain))
        }
    }
}

/// These models refuse a step whose first call has no signature; for calls that another model made
/// there is a word that stands in for one.
fn vouch_for_first_call(parts: &mut [Value]) {
    let first = parts.iter_mut().find(|part| part.get("functionCall").is_some());
    if let Some(call) = first.and_then(Value::as_object_mut) {
        call.entry("thoughtSignature").or_insert_with(|| json!("skip_thought_signature_validator"));
    }
}

/// Results stand in the order of the calls, which is how they are told apart.
fn results(blocks: &[Block]) -> Vec<Value> {
    let mut parts = Vec::new();
    let mut media = Vec::new();
    for block in blocks {
        let Block::Call { name, result, .. } = block else { continue };
        let key = if result.is_error { "error" } else { "output" };
        let text = super::joined_text(&result.content);
        parts.push(json!({ "functionResponse": { "name": name, "response": { key: text } } }));
        media.extend(result.content.iter().filter(|c| matches!(c, Content::Media(_))).map(part));
    }
    parts.extend(media);
    parts
}
