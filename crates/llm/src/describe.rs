//! What we make of a response body, as one JSON object: for people who debug a provider, and for
//! tests against recorded answers.

use serde_json::{Value, json};

use crate::wire::Wire;
use crate::{Event, Failure, FailureKind, Reply, ReplyBuilder, ReplyKind, Usage};

/// Decodes `body` in pieces of `size` bytes, as an answer with this HTTP status.
pub fn describe(wire: Wire, status: u16, body: &[u8], size: usize) -> Value {
    if status >= 400 {
        return describe_http_error(wire, status, body);
    }
    let mut decoder = wire.decoder();
    let mut events = Vec::new();
    for piece in body.chunks(size.max(1)) {
        events.extend(decoder.push(piece));
    }
    events.extend(decoder.finish());
    let stream = !decoder.is_whole();

    let mut seen = Seen::default();
    let mut builder = ReplyBuilder::default();
    for event in &events {
        builder.apply(event);
        seen.take(event);
    }
    let Reply { blocks, usage, .. } = builder.build();
    let mut summary = Summary::default();
    for block in &blocks {
        summary.add(&block.kind, block.opaque.as_ref());
    }
    let refusal = summary.refusal.clone();
    // These wires have one text, whatever stands between its pieces.
    if matches!(wire, Wire::OpenaiChat | Wire::Gemini) && !summary.texts.is_empty() {
        summary.texts = vec![summary.texts.concat()];
    }
    json!({
        "wire": wire.name(),
        "stream": stream,
        "outcome": outcome(seen.failure.as_ref()),
        // A stream that names no id sends it empty.
        "response_id": seen.id.filter(|id| !stream || !id.is_empty()),
        "model": seen.model,
        "text": summary.texts.concat(),
        "text_blocks": summary.texts,
        "reasoning": summary.reasoning.concat(),
        "reasoning_blocks": summary.reasoning,
        "reasoning_signatures": summary.signatures,
        "redacted_reasoning": summary.redacted,
        "refusal": if refusal.is_empty() { Value::Null } else { json!(refusal) },
        "tool_calls": summary.calls,
        "server_tool_calls": summary.server_calls,
        "finish_reason": decoder.finish_word(),
        "usage": seen.usage,
        "usage_norm": seen.usage.as_ref().map(|_| normalised(usage)),
        "error": seen.failure.as_ref().and_then(|f| f.raw.clone()),
        "payloads": decoder.payloads(),
    })
}

fn describe_http_error(wire: Wire, status: u16, body: &[u8]) -> Value {
    let text = String::from_utf8_lossy(body);
    let failure = Failure::from_status(status, &text, None);
    let parsed = serde_json::from_slice::<Value>(body).ok();
    let inner = |value: &Value| value.get("error").filter(|e| !e.is_null()).cloned();
    let error = match parsed.map(|value| match value {
        Value::Array(items) => items.into_iter().next().unwrap_or_default(),
        other => other,
    }) {
        Some(value) => inner(&value).unwrap_or(value),
        None => json!({ "message": text }),
    };
    json!({
        "wire": wire.name(), "stream": false, "outcome": "http_error", "response_id": null,
        "model": null, "text": "", "text_blocks": [], "reasoning": "", "reasoning_blocks": [],
        "reasoning_signatures": [], "redacted_reasoning": 0, "refusal": null, "tool_calls": [],
        "server_tool_calls": [], "finish_reason": null, "usage": null, "usage_norm": null,
        "error": error, "payloads": 1, "http_status": status, "error_class": class(failure.kind),
        "message": failure.message,
    })
}

fn class(kind: FailureKind) -> &'static str {
    match kind {
        FailureKind::Auth => "auth",
        FailureKind::RateLimit => "rate_limit",
        FailureKind::ContextOverflow => "context_overflow",
        FailureKind::NotFound => "not_found",
        FailureKind::InvalidRequest | FailureKind::Refused => "invalid_request",
        _ => "server",
    }
}

fn outcome(failure: Option<&Failure>) -> &'static str {
    match failure.map(|f| f.kind) {
        None => "complete",
        Some(FailureKind::Truncated) => "truncated",
        Some(FailureKind::Protocol) => "protocol_error",
        Some(_) => "error",
    }
}

fn normalised(usage: Usage) -> Value {
    json!({
        "input": usage.input, "cache_read": usage.cache_read, "cache_write": usage.cache_write,
        "output": usage.output, "reasoning": usage.reasoning,
    })
}

#[derive(Default)]
struct Seen {
    id: Option<String>,
    model: Option<String>,
    usage: Option<Value>,
    failure: Option<Failure>,
}

impl Seen {
    fn take(&mut self, event: &Event) {
        match event {
            Event::Started { id, model } => {
                self.id.clone_from(id);
                self.model.clone_from(model);
            }
            Event::Usage { raw, .. } => self.usage = Some(raw.clone()),
            Event::Failed(failure) => self.failure = Some(failure.clone()),
            _ => {}
        }
    }
}

#[derive(Default)]
struct Summary {
    texts: Vec<String>,
    reasoning: Vec<String>,
    signatures: Vec<String>,
    redacted: usize,
    refusal: String,
    calls: Vec<Value>,
    server_calls: Vec<Value>,
}

impl Summary {
    fn add(&mut self, kind: &ReplyKind, opaque: Option<&Value>) {
        if let Some(opaque) = opaque.filter(|_| !matches!(kind, ReplyKind::ServerTool { .. })) {
            self.redacted += usize::from(opaque.get("redacted").is_some());
            self.signatures.extend(signatures(opaque));
        }
        match kind {
            ReplyKind::Text(text) => self.texts.push(text.clone()),
            ReplyKind::Reasoning(text) if !text.is_empty() => self.reasoning.push(text.clone()),
            ReplyKind::Reasoning(_) => {}
            ReplyKind::Refusal(text) => self.refusal.push_str(text),
            ReplyKind::Call { id, name, arguments } => {
                let kind = opaque.and_then(|o| o.pointer("/item/type")).and_then(Value::as_str);
                self.calls.push(call(id, name, arguments, kind));
            }
            ReplyKind::ServerTool { kind, id, name } => {
                let named =
                    ["mcp_list_tools", "mcp_approval_request", "executableCode", "toolCall"];
                let is_call = kind.ends_with("_use")
                    || kind.ends_with("_call")
                    || named.contains(&kind.as_str());
                if let Some(signature) = opaque.and_then(|o| o.get("thoughtSignature")) {
                    self.signatures.extend(signature.as_str().map(str::to_owned));
                }
                if is_call {
                    self.server_calls.push(json!({ "type": kind, "id": id, "name": name }));
                }
            }
        }
    }
}

fn call(id: &str, name: &str, arguments: &str, kind: Option<&str>) -> Value {
    let given = if arguments.trim().is_empty() { "{}" } else { arguments };
    let id = if id.is_empty() { Value::Null } else { json!(id) };
    let provider_defined = kind.filter(|kind| *kind != "function_call");
    let free = provider_defined == Some("custom_tool_call");
    let unnamed = provider_defined.is_some() && !free;
    let name = if unnamed { Value::Null } else { json!(name) };
    let parsed = serde_json::from_str::<Value>(given).ok().filter(|_| !free);
    let mut call = json!({ "id": id, "name": name, "arguments": parsed });
    if parsed.is_none() {
        call["arguments_raw"] = json!(arguments);
    }
    if let Some(kind) = provider_defined {
        call["type"] = json!(kind);
    }
    call
}

/// Every opaque proof in a block's data, whatever the provider calls it.
fn signatures(opaque: &Value) -> Vec<String> {
    let plain = ["/signature", "/thoughtSignature", "/item/encrypted_content"];
    let direct = plain.iter().filter_map(|path| opaque.pointer(path)?.as_str());
    let details = opaque.get("reasoning_details").and_then(Value::as_array);
    let detailed = details.into_iter().flatten().filter_map(|detail| {
        let text = |key: &str| detail.get(key).and_then(Value::as_str);
        text("signature").or_else(|| text("data"))
    });
    direct.chain(detailed).map(str::to_owned).collect()
}
