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
        output_schema: None,
        headers: Vec::new(),
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
fn a_form_for_the_answer_is_pinned_on_every_wire() {
    let schema =
        json!({"type": "object", "required": ["a"], "properties": {"a": {"type": "string"}}});
    let mut sent = schema.clone();
    sent["additionalProperties"] = json!(false);
    let mut asked = request(conversation());
    asked.output_schema = Some(Arc::new(schema));
    let named = json!({"name": "final_answer", "strict": true, "schema": sent});
    let cases = [
        (
            Wire::OpenaiChat,
            "gpt-5.5",
            "/response_format",
            json!({"type": "json_schema", "json_schema": named}),
        ),
        (
            Wire::OpenaiResponses,
            "gpt-5.5",
            "/text/format",
            json!({
                "type": "json_schema", "name": "final_answer", "strict": true, "schema": sent,
            }),
        ),
        (
            Wire::AnthropicMessages,
            "claude-sonnet-5",
            "/output_config",
            json!({
                "format": {"type": "json_schema", "schema": sent},
            }),
        ),
        (
            Wire::Gemini,
            "gemini-3.5-flash",
            "/generationConfig",
            json!({
                "maxOutputTokens": 100, "responseMimeType": "application/json", "responseJsonSchema": sent,
            }),
        ),
    ];
    for (wire, model, place, expected) in cases {
        let body = encoded(wire, model, &asked);
        assert_eq!(body.pointer(place), Some(&expected), "{wire:?}");
        // The summary that closes a turn out of budget is for people.
        let closing = Request { tool_choice: ToolChoice::None, ..asked.clone() };
        assert!(!encoded(wire, model, &closing).to_string().contains("additionalProperties"));
    }
}

#[test]
fn anthropic_streams_arguments_eagerly_where_it_takes_the_word() {
    let asked = request(conversation());
    let quirks = Quirks { eager_input: true, ..Quirks::default() };
    let body = Wire::AnthropicMessages.encode(&origin("m"), &asked, quirks);
    let body: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(body["tools"][0]["eager_input_streaming"], true);
    let body = encoded(Wire::AnthropicMessages, "m", &asked);
    assert!(body["tools"][0].get("eager_input_streaming").is_none());
}

#[test]
fn arguments_that_are_no_json_reach_the_caller_as_they_came() {
    // What eager streaming may end in: nothing in front of us has checked it.
    let lines = [
        r#"{"type":"message_start","message":{"id":"i","model":"m","usage":{"input_tokens":1}}}"#,
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t","name":"write","input":{}}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"content\": \"half a"}}"#,
        r#"{"type":"content_block_stop","index":0}"#,
        r#"{"type":"message_delta","delta":{"stop_reason":"max_tokens"},"usage":{"output_tokens":9}}"#,
        r#"{"type":"message_stop"}"#,
    ];
    let told = told(Wire::AnthropicMessages, &lines);
    assert_eq!(told["outcome"], "complete", "{told}");
    assert_eq!(told["tool_calls"][0]["arguments_raw"], "{\"content\": \"half a", "{told}");
    assert_eq!(told["finish_reason"], "max_tokens");
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
fn white_space_before_a_whole_answer_counts_alike_in_one_piece_and_in_several() {
    let body = "\u{c}\r\n {\"choices\": [{\"message\": {\"content\": \"Hi\"}, \"finish_reason\": \"stop\"}]}";
    let whole = crate::describe(Wire::OpenaiChat, 200, body.as_bytes(), body.len());
    assert_eq!(whole["text"], "Hi");
    assert_eq!(crate::describe(Wire::OpenaiChat, 200, body.as_bytes(), 1), whole);
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
        "reasoning": {"effort": "high", "summary": "auto"},
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
        "tools": [{"functionDeclarations": [{"name": "read", "description": "Reads."}]}],
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
    assert_eq!(
        chat["messages"][2],
        json!({"role": "tool", "tool_call_id": "c1", "content": "shown"})
    );
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

/// One `data:` event for each line.
fn told(wire: Wire, lines: &[&str]) -> Value {
    let body: String = lines.iter().map(|line| format!("data: {line}\n\n")).collect();
    crate::describe(wire, 200, body.as_bytes(), 5)
}

#[test]
fn chat_dialects_that_are_not_in_the_book() {
    let done = "[DONE]";
    let call = |summary: &Value, n: usize| {
        (summary["tool_calls"][n]["name"].clone(), summary["tool_calls"][n]["arguments"].clone())
    };
    // A finish reason that is empty is none.
    let summary = told(
        Wire::OpenaiChat,
        &[
            r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":""}}]},"finish_reason":""}]}"#,
            r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"x\":1}"}}]},"finish_reason":""}]}"#,
            r#"{"choices":[{"delta":{},"finish_reason":"tool_calls"}]}"#,
            done,
        ],
    );
    assert_eq!(call(&summary, 0), (json!("f"), json!({"x": 1})));
    assert_eq!(summary["tool_calls"].as_array().unwrap().len(), 1);
    // A name after the first delta; an id of another type; an index as text.
    let summary = told(
        Wire::OpenaiChat,
        &[
            r#"{"choices":[{"delta":{"tool_calls":[{"index":"0","id":17,"type":"function"}]}}]}"#,
            r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"name":"f","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}"#,
            done,
        ],
    );
    assert_eq!(
        (&summary["tool_calls"][0]["id"], call(&summary, 0).0),
        (&json!("17"), json!("f")),
        "{summary}"
    );
    // Odd types beside what matters.
    let summary = told(
        Wire::OpenaiChat,
        &[
            r#"{"choices":[null,{"delta":{"content":"hi","refusal":false,"reasoning_content":[1]},"finish_reason":5}]}"#,
            r#"{"choices":[{"delta":[],"finish_reason":"stop"}]}"#,
            done,
        ],
    );
    assert_eq!(
        (&summary["text"], &summary["outcome"]),
        (&json!("hi"), &json!("complete")),
        "{summary}"
    );
    // Errors in other places.
    for lines in [
        &[r#"{"choices":[{"delta":{},"error":{"message":"x","code":502}}]}"#][..],
        &[r#"{"error":{"message":"x"}}"#],
    ] {
        assert_eq!(told(Wire::OpenaiChat, lines)["outcome"], "error");
    }
    for body in [r#"{"object":"error","message":"x","code":400}"#, r#"{"detail":"no"}"#] {
        for wire in Wire::ALL {
            let outcome = crate::describe(wire, 200, body.as_bytes(), 3)["outcome"].clone();
            assert!(outcome == "error" || outcome == "truncated", "{wire:?} {body}: {outcome}");
        }
    }
    // Nothing but air.
    let summary = told(
        Wire::OpenaiChat,
        &["", r#"{"choices":[{"delta":{"content":"hi"},"finish_reason":"stop"}]}"#, done],
    );
    assert_eq!((&summary["outcome"], &summary["payloads"]), (&json!("complete"), &json!(1)));
}

#[test]
fn a_chat_chunk_read_quickly_says_what_it_says_read_thoroughly() {
    let deltas = [
        json!({"role": "assistant", "content": ""}),
        json!({"reasoning": "a\u{e9}\n", "reasoning_content": null}),
        json!({"reasoning": "same", "reasoning_content": "same"}),
        json!({"reasoning_details": [{"type": "reasoning.text", "text": "x", "index": 0}]}),
        json!({"content": "Hi \"you\""}),
        json!({"content": [{"type": "text", "text": "parts"}]}),
        json!({"content": "and", "tool_calls": [{"index": 0, "id": "c", "function": {"name": "f", "arguments": ""}}]}),
        json!({"tool_calls": [{"index": 0, "type": "function", "function": {"arguments": "{\"a\":"}}]}),
        json!({"tool_calls": [{"index": 0, "id": null, "function": {"name": null, "arguments": "1}"}}]}),
        json!({"tool_calls": [{"index": 1, "function": {"name": "g", "arguments": {"b": 2}}}, {"index": 0, "function": {"arguments": " "}}]}),
        json!({"refusal": "no"}),
        json!({}),
    ];
    let mut quick = Wire::OpenaiChat.decoder();
    let mut thorough = Wire::OpenaiChat.decoder();
    let (mut from_quick, mut from_thorough) = (Vec::new(), Vec::new());
    for (at, delta) in deltas.iter().enumerate() {
        for index in [0, 1] {
            let reason = if at + 1 == deltas.len() { json!("stop") } else { json!(null) };
            let mut chunk = json!({"id": "i", "object": "chunk", "model": "m", "choices": [
                {"index": index, "delta": delta, "logprobs": null, "finish_reason": reason}
            ], "usage": null});
            from_quick.extend(quick.push(format!("data: {chunk}\n\n").as_bytes()));
            // Means nothing, but makes the chunk one that needs a closer look.
            chunk["x_groq"] = json!({"id": "req"});
            from_thorough.extend(thorough.push(format!("data: {chunk}\n\n").as_bytes()));
        }
    }
    from_quick.extend(quick.finish());
    from_thorough.extend(thorough.finish());
    assert!(from_quick.len() > 12, "{from_quick:#?}");
    assert_eq!(format!("{from_quick:#?}"), format!("{from_thorough:#?}"));
}

#[test]
fn odd_types_do_not_end_an_anthropic_answer() {
    let summary = told(
        Wire::AnthropicMessages,
        &[
            r#"{"type":"message_start","message":{"id":"m"}}"#,
            r#"{"type":"content_block_delta","index":null,"delta":{"type":"text_delta","text":"hi"}}"#,
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"new_delta","text":{"a":1}}}"#,
            r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"}}"#,
            r#"{"type":"message_stop"}"#,
        ],
    );
    assert_eq!(
        (&summary["text"], &summary["outcome"]),
        (&json!("hi"), &json!("complete")),
        "{summary}"
    );
    assert_eq!(
        told(Wire::AnthropicMessages, &[r#"{"error":{"message":"x"}}"#])["outcome"],
        "error"
    );
}

#[test]
fn responses_that_break_off_are_not_taken_for_whole() {
    let item =
        r#"{"type":"function_call","call_id":"c","name":"f","arguments":"","status":"incomplete"}"#;
    let end = format!(
        r#"{{"type":"response.incomplete","response":{{"incomplete_details":{{"reason":"content_filter"}},"output":[{item}]}}}}"#
    );
    let summary = told(Wire::OpenaiResponses, &[&end]);
    assert_eq!(
        (&summary["tool_calls"], &summary["finish_reason"]),
        (&json!([]), &json!("incomplete:content_filter"))
    );
    let failed = r#"{"type":"response.failed","response":{"error":{"code":"x","message":"y"}}}"#;
    assert_eq!(told(Wire::OpenaiResponses, &[failed])["outcome"], "error");
}

#[test]
fn gemini_paths_build_what_they_name_and_nothing_without_end() {
    let piece = |path: &str| {
        let piece = json!({"jsonPath": path, "stringValue": "v"});
        let call = json!({"functionCall": {"name": "f", "partialArgs": [piece]}});
        json!({"candidates": [{"content": {"parts": [call]}, "finishReason": "STOP"}]}).to_string()
    };
    for (path, expected) in [
        ("$.a.b[0]['c.d']", json!({"a": {"b": [{"c.d": "v"}]}})),
        ("$.years.2024", json!({"years": {"2024": "v"}})),
        ("$.a[9999]", json!({"a": []})),
    ] {
        assert_eq!(
            told(Wire::Gemini, &[&piece(path)])["tool_calls"][0]["arguments"],
            expected,
            "{path}"
        );
    }
    told(Wire::Gemini, &[&piece(&format!("${}", "[0]".repeat(100_000)))]);
    let nulls = r#"{"candidates":[{"content":{"parts":[{"text":"hi","functionCall":null,"thoughtSignature":null,"executableCode":null}]},"finishReason":"STOP"}]}"#;
    let summary = told(Wire::Gemini, &[nulls]);
    assert_eq!((&summary["text"], &summary["tool_calls"]), (&json!("hi"), &json!([])));
}

#[test]
fn efforts_are_said_in_words_that_the_model_takes() {
    use super::responses_encode::effort;
    use crate::Effort::{High, Max, Minimal, Off};
    assert_eq!(effort("gpt-5.5", Max), Some("xhigh"));
    assert_eq!(effort("gpt-5", Max), Some("high"));
    assert_eq!(effort("gpt-5-mini", Minimal), Some("minimal"));
    assert_eq!(effort("gpt-5.4-mini", Minimal), Some("low"));
    assert_eq!((effort("gpt-5.1", Off), effort("grok-4", Off)), (Some("none"), None));
    let mut request = request(vec![Turn::User(vec![Content::text("Hi")])]);
    request.effort = Some(High);
    let new = encoded(Wire::AnthropicMessages, "claude-sonnet-5", &request);
    assert_eq!(
        (&new["thinking"], &new["output_config"]),
        (&json!({"type": "adaptive"}), &json!({"effort": "high"}))
    );
    let old = encoded(Wire::AnthropicMessages, "claude-sonnet-4-5-20250929", &request);
    assert_eq!(old["thinking"]["type"], "enabled");
}

#[test]
fn deepseek_wants_its_reasoning_back_and_mistral_its_order() {
    let mut turns = conversation();
    turns.push(Turn::User(vec![Content::text("go on")]));
    let request = request(turns);
    let body = |id: &str| -> Value {
        let quirks = crate::provider(id).unwrap().quirks;
        serde_json::from_slice(&Wire::OpenaiChat.encode(&origin("m"), &request, quirks)).unwrap()
    };
    assert_eq!(body("deepseek")["messages"][2]["reasoning_content"], "Hm.");
    assert_eq!(body("groq")["messages"][2]["reasoning_content"], Value::Null);
    let mistral = body("mistral");
    let roles: Vec<&str> = mistral["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|m| m["role"].as_str().unwrap())
        .collect();
    assert_eq!(roles, ["system", "user", "assistant", "tool", "tool", "assistant", "user"]);
    let id = mistral["messages"][2]["tool_calls"][0]["id"].as_str().unwrap();
    assert!(id.len() == 9 && id.chars().all(|c| c.is_ascii_alphanumeric()), "{id}");
    assert_eq!(mistral["messages"][3]["tool_call_id"], id);
}

#[test]
fn reasoning_is_not_asked_of_a_model_that_has_none_nor_replayed_alone() {
    let quirks = Quirks { no_reasoning: true, ..Quirks::default() };
    let item = json!({"item": {"type": "reasoning", "encrypted_content": "proof"}});
    let alone = vec![Turn::Assistant {
        origin: origin("m"),
        blocks: vec![Block::Reasoning { text: String::new(), opaque: Some(item) }],
    }];
    let bytes = Wire::OpenaiResponses.encode(&origin("m"), &request(alone), quirks);
    let body: Value = serde_json::from_slice(&bytes).unwrap();
    assert_eq!((&body["include"], &body["input"]), (&Value::Null, &json!([])));
}

#[test]
fn a_hand_over_in_the_middle_of_calls_is_one_that_the_target_takes() {
    let mut request = request(conversation());
    request.effort = Some(crate::Effort::High);
    let foreign = encoded(Wire::AnthropicMessages, "claude-sonnet-5", &request);
    assert_eq!((&foreign["thinking"], &foreign["output_config"]), (&Value::Null, &Value::Null));
    let own = encoded(Wire::AnthropicMessages, "m", &request);
    assert_eq!(own["thinking"]["type"], "enabled");
    let gemini = encoded(Wire::Gemini, "gemini-3.5-flash", &request);
    let parts = gemini["contents"][1]["parts"].as_array().unwrap();
    assert_eq!(parts[1]["thoughtSignature"], "skip_thought_signature_validator");
    assert_eq!(parts[2]["thoughtSignature"], Value::Null, "only the first needs one");
}
