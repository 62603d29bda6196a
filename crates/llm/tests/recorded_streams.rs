//! Recorded answers of real providers decode to what they say, however their bytes are cut. The
//! recordings are not part of this repository: without them this test says so and passes.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use toolwright_llm::wire::Wire;
use toolwright_llm::{Event, Failure, ReplyBlock, ReplyBuilder};

fn recordings() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/fixtures/llm");
    folder.is_dir().then_some(folder)
}

fn wire_of(name: &str) -> Option<Wire> {
    match name {
        "anthropic-messages" => Some(Wire::AnthropicMessages),
        "openai-chat" => Some(Wire::OpenaiChat),
        _ => None,
    }
}

/// A recording of decoded chunks, made a stream again.
fn stream_again(wire: Wire, text: &str) -> Vec<u8> {
    let mut out = String::new();
    for line in text.split('\n').filter(|l| !l.trim().is_empty()) {
        if wire == Wire::AnthropicMessages {
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

fn decode(wire: Wire, bytes: &[u8], size: usize) -> Value {
    let mut decoder = wire.decoder();
    let mut events = Vec::new();
    for piece in bytes.chunks(size) {
        events.extend(decoder.push(piece));
    }
    events.extend(decoder.finish());
    let mut builder = ReplyBuilder::default();
    let mut failure: Option<Failure> = None;
    for event in &events {
        builder.apply(event);
        if let Event::Failed(why) = event {
            failure = Some(why.clone());
        }
    }
    let reply = builder.build();
    let text = |want_text: bool| -> String {
        let pick = |block: &ReplyBlock| match block {
            ReplyBlock::Text(text) if want_text => Some(text.clone()),
            ReplyBlock::Reasoning { text, .. } if !want_text => Some(text.clone()),
            _ => None,
        };
        reply.blocks.iter().filter_map(pick).collect()
    };
    let calls: Vec<Value> = reply
        .blocks
        .iter()
        .filter_map(|block| match block {
            ReplyBlock::Call { name, arguments, .. } => {
                let given = if arguments.trim().is_empty() { "{}" } else { arguments };
                let arguments = serde_json::from_str(given).unwrap_or_else(|_| json!(given));
                Some(json!({ "name": name, "arguments": arguments }))
            }
            _ => None,
        })
        .collect();
    json!({
        "text": text(true),
        "reasoning": text(false).split_whitespace().collect::<String>(),
        "tool_calls": calls,
        "finish_reason": reply.finish.as_ref().map(|f| f.raw.clone()),
        "output": reply.usage.output,
        "failed": failure.map(|f| f.kind),
    })
}

#[test]
fn every_recorded_stream_decodes_to_its_summary_whatever_the_split() {
    let Some(folder) = recordings() else {
        println!("skipped: the recorded streams are not here");
        return;
    };
    let manifest: Vec<Value> =
        serde_json::from_slice(&std::fs::read(folder.join("manifest.json")).unwrap()).unwrap();
    let mut wrong = Vec::new();
    let mut count = 0;
    for entry in &manifest {
        let Some(wire) = wire_of(entry["wire"].as_str().unwrap()) else { continue };
        let format = entry["format"].as_str().unwrap();
        if format == "json" {
            continue;
        }
        let name = entry["file"].as_str().unwrap();
        let expect = folder.join(name).with_extension("expect.json");
        let expect: Value = serde_json::from_slice(&std::fs::read(expect).unwrap()).unwrap();
        let raw = std::fs::read(folder.join(name)).unwrap();
        let bytes = match format {
            "jsonl" => stream_again(wire, std::str::from_utf8(&raw).unwrap()),
            _ => raw,
        };
        count += 1;
        let whole = decode(wire, &bytes, bytes.len().max(1));
        for size in [1, 2, 3, 7, 64] {
            assert_eq!(decode(wire, &bytes, size), whole, "{name} cut every {size} bytes");
        }
        let mut differences = differences(&whole, &expect);
        if !differences.is_empty() {
            differences.insert(0, name.to_owned());
            wrong.push(differences.join("\n      "));
        }
    }
    assert!(wrong.is_empty(), "{} of {count} differ:\n{}", wrong.len(), wrong.join("\n"));
    println!("{count} streams");
}

fn differences(got: &Value, expect: &Value) -> Vec<String> {
    let mut found = Vec::new();
    let mut compare = |what: &str, got: &Value, wanted: &Value| {
        if got != wanted {
            found.push(format!("{what}: got {got}, wanted {wanted}"));
        }
    };
    let refusal = expect["refusal"].as_str().unwrap_or_default();
    let text = format!("{}{refusal}", expect["text"].as_str().unwrap());
    compare("text", &got["text"], &json!(text));
    let reasoning: String = expect["reasoning"].as_str().unwrap().split_whitespace().collect();
    compare("reasoning", &got["reasoning"], &json!(reasoning));
    let calls: Vec<Value> = expect["tool_calls"]
        .as_array()
        .unwrap()
        .iter()
        .map(|c| {
            let arguments = c.get("arguments_raw").unwrap_or(&c["arguments"]);
            json!({ "name": c["name"], "arguments": arguments })
        })
        .collect();
    compare("calls", &got["tool_calls"], &json!(calls));
    if expect["outcome"] == "complete" {
        compare("failed", &got["failed"], &Value::Null);
        let reason = if expect["finish_reason"].is_null() {
            json!("")
        } else {
            expect["finish_reason"].clone()
        };
        compare("finish", &got["finish_reason"], &reason);
        let output = &expect["usage_norm"]["output"];
        if output.is_u64() {
            compare("output tokens", &got["output"], output);
        }
    } else if got["failed"].is_null() {
        found.push(format!("failed: no, wanted {}", expect["outcome"]));
    }
    found
}
