//! Recorded answers of real providers decode to what they say, however their bytes are cut. The
//! recordings are not part of this repository: without them this test says so and passes.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::{Path, PathBuf};

use futures_util::StreamExt;
use serde_json::{Value, json};
use toolwright_llm::wire::Wire;
use toolwright_llm::{
    Deadlines, Endpoint, Event, HttpModel, Model, Quirks, ReplyBuilder, ReplyKind, Request, Retry,
    Sampling, ToolChoice, describe,
};
use toolwright_testkit::{Answer, ModelServer};

fn recordings() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/fixtures/llm");
    folder.is_dir().then_some(folder)
}

/// A recording of decoded chunks, made a stream again.
fn stream_again(wire: Wire, text: &str) -> Vec<u8> {
    let mut out = String::new();
    for line in text.split('\n').filter(|l| !l.trim().is_empty()) {
        if matches!(wire, Wire::AnthropicMessages | Wire::OpenaiResponses) {
            let value: Value = serde_json::from_str(line).unwrap();
            out.push_str(&format!("event: {}\n", value["type"].as_str().unwrap_or_default()));
        }
        out.push_str(&format!("data: {line}\n\n"));
    }
    if wire == Wire::OpenaiChat {
        out.push_str("data: [DONE]\n\n");
    }
    out.into_bytes()
}

#[test]
fn every_recorded_answer_decodes_to_its_summary_whatever_the_split() {
    let Some(folder) = recordings() else {
        println!("skipped: the recorded streams are not here");
        return;
    };
    let manifest: Vec<Value> =
        serde_json::from_slice(&std::fs::read(folder.join("manifest.json")).unwrap()).unwrap();
    let mut wrong = Vec::new();
    for entry in &manifest {
        let name = entry["file"].as_str().unwrap();
        let wire_name = entry["wire"].as_str().unwrap();
        let wire = Wire::ALL.into_iter().find(|w| w.name() == wire_name).unwrap();
        let expect = folder.join(name).with_extension("expect.json");
        let expect: Value = serde_json::from_slice(&std::fs::read(expect).unwrap()).unwrap();
        let raw = std::fs::read(folder.join(name)).unwrap();
        let bytes = match entry["format"].as_str().unwrap() {
            "jsonl" => stream_again(wire, std::str::from_utf8(&raw).unwrap()),
            _ => raw,
        };
        let status = entry["status"].as_u64().map_or(200, |s| u16::try_from(s).unwrap());
        let whole = describe(wire, status, &bytes, bytes.len());
        for size in [1, 2, 3, 7, 64] {
            assert_eq!(
                describe(wire, status, &bytes, size),
                whole,
                "{name} cut every {size} bytes"
            );
        }
        let mut differences = differences(&whole, &expect);
        if !differences.is_empty() {
            differences.insert(0, name.to_owned());
            wrong.push(differences.join("\n      "));
        }
    }
    let count = manifest.len();
    assert!(wrong.is_empty(), "{} of {count} differ:\n{}", wrong.len(), wrong.join("\n"));
}

/// What the whole path gives, in the fields that both ways can tell.
async fn over_http(server: &ModelServer, wire: Wire) -> (String, String, bool) {
    let endpoint = Endpoint {
        provider: "recorded".to_owned(),
        wire,
        base_url: server.url(),
        key: None,
        headers: Vec::new(),
        ca_file: None,
        quirks: Quirks::default(),
    };
    let retry = Retry { retries: 0, ..Retry::default() };
    let model = HttpModel::new(endpoint, "m", Deadlines::default(), retry);
    let request = Request {
        system: "".into(),
        turns: Vec::new(),
        tools: Vec::new().into(),
        tool_choice: ToolChoice::Auto,
        max_output_tokens: None,
        sampling: Sampling::default(),
        effort: None,
        output_schema: None,
        headers: Vec::new(),
    };
    let mut builder = ReplyBuilder::default();
    let mut failed = false;
    let mut stream = model.stream(request);
    while let Some(event) = stream.next().await {
        builder.apply(&event);
        failed |= matches!(event, Event::Failed(_));
    }
    let (mut text, mut calls) = (String::new(), String::new());
    for block in builder.build().blocks {
        match block.kind {
            ReplyKind::Text(said) => text.push_str(&said),
            ReplyKind::Call { name, .. } => calls.push_str(&name),
            _ => {}
        }
    }
    (text, calls, failed)
}

#[tokio::test]
async fn every_recorded_answer_comes_through_the_real_http_path() {
    let Some(folder) = recordings() else {
        println!("skipped: the recorded streams are not here");
        return;
    };
    let manifest: Vec<Value> =
        serde_json::from_slice(&std::fs::read(folder.join("manifest.json")).unwrap()).unwrap();
    let server = ModelServer::start([]);
    for entry in &manifest {
        let name = entry["file"].as_str().unwrap();
        let wire_name = entry["wire"].as_str().unwrap();
        let wire = Wire::ALL.into_iter().find(|w| w.name() == wire_name).unwrap();
        let raw = std::fs::read(folder.join(name)).unwrap();
        let bytes = match entry["format"].as_str().unwrap() {
            "jsonl" => stream_again(wire, std::str::from_utf8(&raw).unwrap()),
            _ => raw,
        };
        let status = entry["status"].as_u64().map_or(200, |s| u16::try_from(s).unwrap());
        let direct = describe(wire, status, &bytes, bytes.len());
        server.then(match status {
            200 => Answer::Raw(bytes),
            status => Answer::status(status, &String::from_utf8_lossy(&bytes)),
        });
        let (text, calls, failed) = over_http(&server, wire).await;
        let expected: String = direct["tool_calls"]
            .as_array()
            .unwrap()
            .iter()
            .map(|c| {
                c["name"]
                    .as_str()
                    .or(c["type"].as_str())
                    .unwrap_or_default()
                    .trim_end_matches("_call")
            })
            .collect();
        assert_eq!(text, direct["text"].as_str().unwrap(), "{name}");
        assert_eq!(calls, expected, "{name}");
        assert_eq!(failed, direct["outcome"] != "complete", "{name}");
    }
}

fn differences(got: &Value, expect: &Value) -> Vec<String> {
    let mut found = Vec::new();
    let mut compare = |what: &str, got: &Value, wanted: &Value| {
        if got != wanted {
            found.push(format!("{what}: got {got}, wanted {wanted}"));
        }
    };
    for field in [
        "outcome",
        "text",
        "text_blocks",
        "reasoning_signatures",
        "redacted_reasoning",
        "refusal",
        "tool_calls",
        "server_tool_calls",
        "finish_reason",
        "usage",
        "error",
        "error_class",
        "response_id",
        "model",
        "payloads",
    ] {
        let wanted = expect.get(field).unwrap_or(&Value::Null);
        compare(field, got.get(field).unwrap_or(&Value::Null), wanted);
    }
    let squeezed = |value: &Value| -> Value {
        json!(value["reasoning"].as_str().unwrap().split_whitespace().collect::<String>())
    };
    compare("reasoning", &squeezed(got), &squeezed(expect));
    for key in ["input", "cache_read", "cache_write", "output", "reasoning"] {
        let wanted = &expect["usage_norm"][key];
        if !wanted.is_null() {
            compare(&format!("usage {key}"), &got["usage_norm"][key], wanted);
        }
    }
    found
}
