//! What is sent, byte for byte, and what malformed answers come to.

use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::Wire;
use crate::provider::Quirks;
use crate::{
    Block, CallResult, Content, Event, FailureKind, Media, Origin, Request, Sampling, ToolChoice,
    ToolDefinition, Turn,
};

fn origin(model: &str) -> Origin {
    Origin { provider: "p".to_owned(), model: model.to_owned() }
}

fn text(text: &str) -> Block {
    Block::Text { text: text.to_owned(), opaque: None }
}

fn call(id: &str, text: &str, is_error: bool) -> Block {
    Block::Call {
        opaque: None,
        id: id.to_owned(),
        name: "read".to_owned(),
        arguments: serde_json::value::RawValue::from_string(r#"{"filePath": "a"}"#.to_owned())
            .unwrap(),
        result: CallResult { content: vec![Content::text(text)], is_error },
    }
}

fn request(turns: Vec<Turn>) -> Request {
    let tool = ToolDefinition {
        name: "read".to_owned(),
        description: "Reads.".to_owned(),
        parameters: json!({"type": "object"}),
    };
    Request {
        system: "Be brief.".into(),
        turns: turns.into_iter().map(Arc::new).collect(),
        tools: vec![tool].into(),
        tool_choice: ToolChoice::Auto,
        max_output_tokens: Some(100),
        sampling: Sampling::default(),
        effort: None,
    }
}

fn conversation() -> Vec<Turn> {
    let image = Media { mime: "image/png".into(), base64: "QUJD".into(), name: None };
    vec![
        Turn::User(vec![Content::text("Hi"), Content::Media(image)]),
        Turn::Assistant {
            origin: origin("m"),
            blocks: vec![
                Block::Reasoning { text: "Hm.".into(), opaque: Some(json!({"signature": "sig"})) },
                text("Reading."),
                call("c1", "content", false),
                call("c2", "no such file", true),
            ],
        },
    ]
}

fn encoded(wire: Wire, model: &str, request: &Request) -> Value {
    serde_json::from_slice(&wire.encode(&origin(model), request, Quirks::default())).unwrap()
}

#[test]
fn anthropic_requests_are_pinned() {
    let body = encoded(Wire::AnthropicMessages, "m", &request(conversation()));
    let expected = json!({
        "model": "m", "max_tokens": 100, "stream": true,
        "system": [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}],
        "tools": [{"name": "read", "description": "Reads.", "input_schema": {"type": "object"}}],
        "messages": [
            {"role": "user", "content": [
                {"type": "text", "text": "Hi"},
                {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "QUJD"}}]},
            {"role": "assistant", "content": [
                {"type": "thinking", "thinking": "Hm.", "signature": "sig"},
                {"type": "text", "text": "Reading."},
                {"type": "tool_use", "id": "c1", "name": "read", "input": {"filePath": "a"}},
                {"type": "tool_use", "id": "c2", "name": "read", "input": {"filePath": "a"}}]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "c1", "content": [{"type": "text", "text": "content"}]},
                {"type": "tool_result", "tool_use_id": "c2", "is_error": true,
                 "content": [{"type": "text", "text": "no such file"}], "cache_control": {"type": "ephemeral"}}]},
        ],
    });
    assert_eq!(body, expected);
}

#[test]
fn chat_requests_are_pinned() {
    let body = encoded(Wire::OpenaiChat, "m", &request(conversation()));
    let calls = |id: &str| json!({"id": id, "type": "function", "function": {"name": "read", "arguments": "{\"filePath\": \"a\"}"}});
    let expected = json!({
        "model": "m", "stream": true, "stream_options": {"include_usage": true}, "max_tokens": 100,
        "tools": [{"type": "function", "function":
            {"name": "read", "description": "Reads.", "parameters": {"type": "object"}}}],
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": [
                {"type": "text", "text": "Hi"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,QUJD"}}]},
            {"role": "assistant", "content": "Reading.", "tool_calls": [calls("c1"), calls("c2")]},
            {"role": "tool", "tool_call_id": "c1", "content": "content"},
            {"role": "tool", "tool_call_id": "c2", "content": "no such file"},
        ],
    });
    assert_eq!(body, expected);
}

#[test]
fn signatures_go_back_to_the_model_that_made_them_only() {
    let body = encoded(Wire::AnthropicMessages, "another", &request(conversation()));
    let content = body["messages"][1]["content"].as_array().unwrap();
    assert!(content.iter().all(|part| part["type"] != "thinking"), "{content:?}");
}

#[test]
fn call_ids_that_a_provider_refuses_are_rewritten_the_same_way_each_time() {
    let long = "x".repeat(500);
    let strange = "call|äöü/1";
    let blocks = vec![call(&long, "a", false), call(strange, "b", false), call("", "c", false)];
    let turns = vec![Turn::Assistant { origin: origin("m"), blocks }];
    let body = encoded(Wire::AnthropicMessages, "m", &request(turns));
    let ids = |n: usize, key: &str| -> Vec<String> {
        let content = body["messages"][n]["content"].as_array().unwrap();
        content.iter().map(|p| p[key].as_str().unwrap().to_owned()).collect()
    };
    let sent = ids(0, "id");
    assert_eq!(sent, ids(1, "tool_use_id"));
    assert_eq!(sent.iter().collect::<std::collections::HashSet<_>>().len(), 3);
    for id in &sent {
        assert!(!id.is_empty() && id.len() <= 64, "{id}");
        assert!(id.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-'), "{id}");
    }
}

#[test]
fn nothing_empty_is_sent() {
    let turns = vec![
        Turn::User(vec![Content::text("")]),
        Turn::Assistant { origin: origin("m"), blocks: vec![text("  ")] },
        Turn::User(vec![Content::text("Hi")]),
    ];
    let body = encoded(Wire::AnthropicMessages, "m", &request(turns));
    assert_eq!(body["messages"].as_array().unwrap().len(), 1);
}

#[test]
fn base_urls_work_with_and_without_version() {
    let cases = [
        (Wire::AnthropicMessages, "http://h", "http://h/v1/messages"),
        (Wire::AnthropicMessages, "http://h/", "http://h/v1/messages"),
        (Wire::AnthropicMessages, "http://h/v1", "http://h/v1/messages"),
        (Wire::AnthropicMessages, "http://h/api/anthropic", "http://h/api/anthropic/v1/messages"),
        (Wire::OpenaiChat, "http://h", "http://h/v1/chat/completions"),
        (Wire::OpenaiChat, "http://h/v1/", "http://h/v1/chat/completions"),
        (Wire::OpenaiChat, "http://h/openai", "http://h/openai/chat/completions"),
    ];
    for (wire, base, expected) in cases {
        assert_eq!(wire.url(base, "m"), expected);
    }
}

#[test]
fn a_stream_always_closes_exactly_once() {
    let bodies: &[(&str, FailureKind)] = &[
        ("", FailureKind::Protocol),
        ("<html>", FailureKind::Protocol),
        ("data: {\n\n", FailureKind::Protocol),
        ("data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n", FailureKind::Truncated),
        ("data: {\"error\":{\"message\":\"slow down\",\"code\":429}}\n\n", FailureKind::RateLimit),
        (
            "data: {\"error\":{\"message\":\"maximum context length is 5\"}}\n\n",
            FailureKind::ContextOverflow,
        ),
    ];
    for (body, kind) in bodies {
        let mut decoder = Wire::OpenaiChat.decoder();
        let mut events = decoder.push(body.as_bytes());
        events.extend(decoder.finish());
        events.extend(decoder.finish());
        let closing: Vec<_> =
            events.iter().filter(|e| matches!(e, Event::Finish(_) | Event::Failed(_))).collect();
        assert_eq!(closing.len(), 1, "{body}");
        assert!(matches!(closing[0], Event::Failed(f) if f.kind == *kind), "{body}: {closing:?}");
    }
}

proptest! {
    #[test]
    fn any_bytes_decode_without_a_panic_and_close(
        pieces in proptest::collection::vec(
            prop_oneof![
                Just(b"data: {\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"x\",\"arguments\":\"{\"}}]}}]}\n\n".to_vec()),
                Just(b"event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"tool_use\"}}\n\n".to_vec()),
                Just(b"data: {\"type\":\"content_block_delta\",\"index\":9,\"delta\":{\"type\":\"text_delta\",\"text\":\"x\"}}\n\n".to_vec()),
                Just(b"data: {\"type\":\"content_block_stop\",\"index\":0}\n\n".to_vec()),
                Just(b"data: [DONE]\n\n".to_vec()),
                proptest::collection::vec(any::<u8>(), 0..40),
            ],
            0..12,
        )
    ) {
        for wire in [Wire::AnthropicMessages, Wire::OpenaiChat] {
            let mut decoder = wire.decoder();
            let mut events = Vec::new();
            for piece in &pieces {
                events.extend(decoder.push(piece));
            }
            events.extend(decoder.finish());
            let closings = events.iter().filter(|e| matches!(e, Event::Finish(_) | Event::Failed(_))).count();
            prop_assert_eq!(closings, 1);
            prop_assert!(matches!(events.last(), Some(Event::Finish(_) | Event::Failed(_))));
        }
    }
}

#[test]
fn half_a_surrogate_pair_does_not_end_an_answer() {
    for (json, expected) in [
        (r#""a\ud83d""#, Some(r#""a\ufffd""#)),
        (r#""\ude00b""#, Some(r#""\ufffdb""#)),
        (r#""\ud83d\ude00""#, None),
        (r#""\\ud83d""#, None),
        (r#""\ud83d\n\ud83d""#, Some(r#""\ufffd\n\ufffd""#)),
        ("plain", None),
        ("\\", None),
    ] {
        assert_eq!(super::without_lone_surrogates(json).as_deref(), expected, "{json}");
    }
    let body = b"data: {\"choices\":[{\"delta\":{\"content\":\"x\\ud83d\"},\"finish_reason\":\"stop\"}]}\n\n";
    let summary = crate::describe(Wire::OpenaiChat, 200, body, 1);
    assert_eq!((&summary["outcome"], &summary["text"]), (&json!("complete"), &json!("x\u{fffd}")));
}

#[test]
fn responses_requests_are_pinned() {
    let mut request = request(conversation());
    request.effort = Some(crate::Effort::Max);
    let body = encoded(Wire::OpenaiResponses, "m", &request);
    let call = |id: &str| json!({"type": "function_call", "call_id": id, "name": "read", "arguments": "{\"filePath\": \"a\"}"});
    let expected = json!({
        "model": "m", "stream": true, "store": false, "instructions": "Be brief.",
        "include": ["reasoning.encrypted_content"], "max_output_tokens": 100,
        "reasoning": {"effort": "xhigh", "summary": "auto"},
        "tools": [{"type": "function", "name": "read", "description": "Reads.", "parameters": {"type": "object"}, "strict": false}],
        "input": [
            {"type": "message", "role": "user", "content": [
                {"type": "input_text", "text": "Hi"},
                {"type": "input_image", "image_url": "data:image/png;base64,QUJD"}]},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Reading."}]},
            call("c1"), call("c2"),
            {"type": "function_call_output", "call_id": "c1", "output": "content"},
            {"type": "function_call_output", "call_id": "c2", "output": "no such file"},
        ],
    });
    assert_eq!(body, expected);
}

#[test]
fn gemini_requests_are_pinned() {
    let body = encoded(Wire::Gemini, "m", &request(conversation()));
    let call = json!({"functionCall": {"name": "read", "args": {"filePath": "a"}}});
    let expected = json!({
        "systemInstruction": {"parts": [{"text": "Be brief."}]},
        "tools": [{"functionDeclarations": [{"name": "read", "description": "Reads.", "parameters": {"type": "object"}}]}],
        "generationConfig": {"maxOutputTokens": 100},
        "contents": [
            {"role": "user", "parts": [{"text": "Hi"}, {"inlineData": {"mimeType": "image/png", "data": "QUJD"}}]},
            {"role": "model", "parts": [{"text": "Reading."}, call, call]},
            {"role": "user", "parts": [
                {"functionResponse": {"name": "read", "response": {"output": "content"}}},
                {"functionResponse": {"name": "read", "response": {"error": "no such file"}}}]},
        ],
    });
    assert_eq!(body, expected);
}

/// The maker's own data of each wire, as its decoder keeps it.
fn own_data(wire: Wire) -> Value {
    match wire {
        Wire::AnthropicMessages => json!({"signature": "proof"}),
        Wire::OpenaiChat => {
            json!({"reasoning_details": [{"type": "reasoning.text", "signature": "proof"}]})
        }
        Wire::OpenaiResponses => {
            json!({"item": {"type": "reasoning", "id": "rs", "summary": [], "encrypted_content": "proof"}})
        }
        Wire::Gemini => json!({"thoughtSignature": "proof"}),
    }
}

#[test]
fn each_hand_over_keeps_the_words_and_leaves_the_proofs_with_their_maker() {
    for maker in Wire::ALL {
        let blocks = vec![
            Block::Reasoning { text: "Hm.".into(), opaque: Some(own_data(maker)) },
            Block::ServerTool { opaque: json!({"type": "web_search_call", "id": "ws_secret"}) },
            text("Said."),
            call("c1", "seen", false),
        ];
        let turns = vec![
            Turn::User(vec![Content::text("Hi")]),
            Turn::Assistant { origin: origin("maker"), blocks },
        ];
        let request = request(turns);
        for target in Wire::ALL {
            let same =
                String::from_utf8(target.encode(&origin("maker"), &request, Quirks::default()))
                    .unwrap();
            let other =
                String::from_utf8(target.encode(&origin("other"), &request, Quirks::default()))
                    .unwrap();
            assert!(
                !other.contains("proof") && !other.contains("ws_secret"),
                "{maker:?} to {target:?}: {other}"
            );
            for words in ["Said.", "seen", "filePath"] {
                assert!(other.contains(words), "{words} from {maker:?} to {target:?}: {other}");
            }
            assert_eq!(same.contains("proof"), maker == target, "{maker:?} to {target:?}: {same}");
        }
    }
}

#[test]
fn gemini_gets_only_the_schema_words_it_knows() {
    let schema = json!({
        "$schema": "x", "type": "object", "additionalProperties": false, "required": ["a", "gone"],
        "properties": {
            "a": {"type": ["string", "null"], "pattern": "x", "examples": [1]},
            "b": {"type": ["string", "integer"]}, "c": {"type": "array"}, "d": {"enum": [1, "two"]},
            "e": {"const": 5}, "f": {"oneOf": [{"type": "string"}, true]}, "g": {"type": "string", "required": ["x"]},
        },
    });
    let expected = json!({
        "type": "object", "required": ["a"],
        "properties": {
            "a": {"type": "string", "pattern": "x", "nullable": true},
            "b": {"anyOf": [{"type": "string"}, {"type": "integer"}]},
            "c": {"type": "array", "items": {"type": "string"}},
            "d": {"enum": ["1", "two"], "type": "string"},
            "e": {"enum": ["5"], "type": "string"},
            "f": {"anyOf": [{"type": "string"}, {"type": "string"}]},
            "g": {"type": "string"},
        },
    });
    assert_eq!(super::schema::for_gemini(&schema), expected);
}

#[test]
fn sampling_reaches_every_wire_that_has_a_place_for_it() {
    let mut request = request(conversation());
    request.sampling = Sampling {
        temperature: Some(0.5),
        top_p: Some(0.25),
        seed: Some(7),
        stop: vec!["END".into()],
    };
    let body = |wire| encoded(wire, "m", &request);
    let anthropic = body(Wire::AnthropicMessages);
    assert_eq!((&anthropic["temperature"], &anthropic["top_p"]), (&json!(0.5), &json!(0.25)));
    assert_eq!(anthropic["stop_sequences"], json!(["END"]));
    let chat = body(Wire::OpenaiChat);
    assert_eq!((&chat["seed"], &chat["stop"]), (&json!(7), &json!(["END"])));
    assert_eq!(body(Wire::OpenaiResponses)["top_p"], json!(0.25));
    let gemini = &body(Wire::Gemini)["generationConfig"];
    assert_eq!((&gemini["topP"], &gemini["seed"]), (&json!(0.25), &json!(7)));
}

#[test]
fn openai_itself_wants_max_completion_tokens() {
    let quirks = crate::provider("openai-chat").unwrap().quirks;
    let bytes = Wire::OpenaiChat.encode(&origin("m"), &request(conversation()), quirks);
    let body: Value = serde_json::from_slice(&bytes).unwrap();
    assert_eq!((&body["max_completion_tokens"], &body["max_tokens"]), (&json!(100), &Value::Null));
}

#[test]
fn images_in_results_are_pinned_on_every_wire() {
    let image = Media { mime: "image/png".into(), base64: "QUJD".into(), name: None };
    let mut block = call("c1", "shown", false);
    if let Block::Call { result, .. } = &mut block {
        result.content.push(Content::Media(image));
    }
    let turns = vec![Turn::Assistant { origin: origin("m"), blocks: vec![block] }];
    let request = request(turns);
    let anthropic = encoded(Wire::AnthropicMessages, "m", &request);
    assert_eq!(
        anthropic["messages"][1]["content"][0]["content"],
        json!([{"type": "text", "text": "shown"},
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "QUJD"}}])
    );
    let chat = encoded(Wire::OpenaiChat, "m", &request);
    assert_eq!(chat["messages"][2], json!({"role": "tool", "tool_call_id": "c1", "content": "shown"}));
    assert_eq!(
        chat["messages"][3],
        json!({"role": "user", "content": [{"type": "text", "text": "Attached media from tool result:"},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,QUJD"}}]})
    );
    let responses = encoded(Wire::OpenaiResponses, "m", &request);
    assert_eq!(
        responses["input"][1]["output"],
        json!([{"type": "input_text", "text": "shown"},
            {"type": "input_image", "image_url": "data:image/png;base64,QUJD"}])
    );
    let gemini = encoded(Wire::Gemini, "m", &request);
    assert_eq!(
        gemini["contents"][1]["parts"],
        json!([{"functionResponse": {"name": "read", "response": {"output": "shown"}}},
            {"inlineData": {"mimeType": "image/png", "data": "QUJD"}}])
    );
}
