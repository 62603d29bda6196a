//! What decoding costs: time and allocations for each delta of 20 characters, on every wire, beside
//! what reading the same bytes with `serde_json` alone costs.
//!
//!     cargo bench -p toolwright-llm --bench decode

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

fn delta(wire: Wire) -> String {
    let text = "twenty characters.. ";
    match wire {
        Wire::AnthropicMessages => format!(
            "event: content_block_delta\ndata: {{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{{\"type\":\"text_delta\",\"text\":\"{text}\"}}}}\n\n"
        ),
        Wire::OpenaiChat => format!(
            "data: {{\"id\":\"c\",\"model\":\"m\",\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{text}\"}},\"finish_reason\":null}}]}}\n\n"
        ),
        Wire::OpenaiResponses => format!(
            "event: response.output_text.delta\ndata: {{\"type\":\"response.output_text.delta\",\"output_index\":0,\"content_index\":0,\"delta\":\"{text}\"}}\n\n"
        ),
        Wire::Gemini => format!(
            "data: {{\"candidates\":[{{\"content\":{{\"parts\":[{{\"text\":\"{text}\"}}],\"role\":\"model\"}},\"index\":0}}]}}\n\n"
        ),
    }
}

fn main() {
    println!(
        "{:<20} {:>12} {:>14} {:>16}",
        "wire", "ns a delta", "allocations", "serde_json alone"
    );
    for wire in Wire::ALL {
        let one = delta(wire);
        let body = one.repeat(DELTAS);
        let json = one.split("data: ").nth(1).unwrap().trim_end().to_owned();
        let (mut best, mut allocations) = (f64::MAX, 0);
        for _ in 0..5 {
            let mut decoder = wire.decoder();
            let before = ALLOCATIONS.load(Ordering::Relaxed);
            let start = Instant::now();
            let events: usize =
                body.as_bytes().chunks(READ_BYTES).map(|piece| decoder.push(piece).len()).sum();
            best = best.min(start.elapsed().as_nanos() as f64 / DELTAS as f64);
            allocations = ALLOCATIONS.load(Ordering::Relaxed) - before;
            assert!(events > 0);
        }
        let start = Instant::now();
        for _ in 0..DELTAS {
            let parsed: serde_json::Value = serde_json::from_str(&json).unwrap();
            std::hint::black_box(&parsed);
        }
        let alone = start.elapsed().as_nanos() as f64 / DELTAS as f64;
        let each = allocations as f64 / DELTAS as f64;
        println!("{:<20} {best:>12.0} {each:>14.3} {alone:>16.0}", wire.name());
    }
}
