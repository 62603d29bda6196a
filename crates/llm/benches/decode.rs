//! What decoding costs: time and allocations for each delta of 20 characters, on every wire, beside
//! what reading the same bytes with `serde_json` alone costs. Both are the best of several rounds that
//! take turns, so that a busy machine disturbs them alike and their ratio stays.
//!
//!     cargo bench -p toolwright-llm --bench decode [WIRE]

// Counting allocations needs an allocator of our own.
#![allow(unsafe_code, clippy::unwrap_used)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use toolwright_llm::wire::Wire;

struct Counting;
static ALLOCATIONS: AtomicUsize = AtomicUsize::new(0);

// SAFETY: hands everything to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const DELTAS: usize = 100_000;
/// As a network hands them over.
const READ_BYTES: usize = 16 << 10;

/// Rounds of each measurement.
const ROUNDS: usize = 15;

const TEXT: &str = "twenty characters.. ";

/// A stream's opening, where the delta needs one, and the delta itself.
fn shapes() -> Vec<(&'static str, Wire, String, String)> {
    let sse = |json: String| format!("data: {json}\n\n");
    let named = |name: &str, json: String| format!("event: {name}\ndata: {json}\n\n");
    let chat = |delta: String| {
        sse(format!(
            r#"{{"id":"c","model":"m","choices":[{{"index":0,"delta":{delta},"finish_reason":null}}]}}"#
        ))
    };
    let call = |opening: &str, text: &str| {
        chat(format!(
            r#"{{"tool_calls":[{{"index":0,{opening}"function":{{"arguments":"{text}"}}}}]}}"#
        ))
    };
    let long = format!(
        r#"{{"id":"chatcmpl-CkVvP0XbqxDq4F0Wk3rYhT","object":"chat.completion.chunk","created":1764000000,"model":"gpt-5-mini-2025-08-07","service_tier":"default","system_fingerprint":"fp_1a2b3c4d5e","choices":[{{"index":0,"delta":{{"content":"{TEXT}"}},"logprobs":null,"finish_reason":null}}],"usage":null,"obfuscation":"Jd8sK2"}}"#
    );
    let none = String::new;
    vec![
        (
            "text",
            Wire::AnthropicMessages,
            none(),
            named(
                "content_block_delta",
                format!(
                    r#"{{"type":"content_block_delta","index":0,"delta":{{"type":"text_delta","text":"{TEXT}"}}}}"#
                ),
            ),
        ),
        ("text", Wire::OpenaiChat, none(), chat(format!(r#"{{"content":"{TEXT}"}}"#))),
        ("text, all fields", Wire::OpenaiChat, none(), sse(long)),
        ("reasoning", Wire::OpenaiChat, none(), chat(format!(r#"{{"reasoning":"{TEXT}"}}"#))),
        ("arguments", Wire::OpenaiChat, call(r#""id":"call_1","#, ""), call("", TEXT)),
        (
            "text",
            Wire::OpenaiResponses,
            none(),
            named(
                "response.output_text.delta",
                format!(
                    r#"{{"type":"response.output_text.delta","output_index":0,"content_index":0,"delta":"{TEXT}"}}"#
                ),
            ),
        ),
        (
            "text",
            Wire::Gemini,
            none(),
            sse(format!(
                r#"{{"candidates":[{{"content":{{"parts":[{{"text":"{TEXT}"}}],"role":"model"}},"index":0}}]}}"#
            )),
        ),
    ]
}

fn each(start: Instant) -> f64 {
    start.elapsed().as_nanos() as f64 / DELTAS as f64
}

fn main() {
    println!(
        "{:<20} {:<18} {:>10} {:>12} {:>12} {:>8}",
        "wire", "delta", "ns each", "allocations", "serde_json", "ratio"
    );
    let wanted = std::env::args().skip(1).find(|argument| !argument.starts_with('-'));
    let shapes = shapes().into_iter();
    for (name, wire, opening, one) in
        shapes.filter(|shape| wanted.as_deref().is_none_or(|wire| wire == shape.1.name()))
    {
        let body = one.repeat(DELTAS);
        let json = one.split("data: ").nth(1).unwrap().trim_end().to_owned();
        let (mut ours, mut alone, mut allocations) = (f64::MAX, f64::MAX, 0);
        for _ in 0..ROUNDS {
            let mut decoder = wire.decoder();
            decoder.push(opening.as_bytes());
            let before = ALLOCATIONS.load(Ordering::Relaxed);
            let start = Instant::now();
            let events: usize =
                body.as_bytes().chunks(READ_BYTES).map(|piece| decoder.push(piece).len()).sum();
            ours = ours.min(each(start));
            allocations = ALLOCATIONS.load(Ordering::Relaxed) - before;
            assert!(events > 0);
            let start = Instant::now();
            for _ in 0..DELTAS {
                let parsed: serde_json::Value = serde_json::from_str(&json).unwrap();
                std::hint::black_box(&parsed);
            }
            alone = alone.min(each(start));
        }
        let allocated = allocations as f64 / DELTAS as f64;
        let ratio = ours / alone;
        println!(
            "{:<20} {name:<18} {ours:>10.0} {allocated:>12.3} {alone:>12.0} {ratio:>8.2}",
            wire.name()
        );
    }
}
