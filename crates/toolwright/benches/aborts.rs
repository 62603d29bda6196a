//! How long it takes from an abort to the last event, at many moments of a turn. Run with
//! `cargo bench -p toolwright --bench aborts`.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../tests/support/mod.rs"]
mod support;

use std::time::Duration;

fn main() {
    let place = support::Place::new("abort-bench-marker");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut took: Vec<Duration> = (0..300)
        .map(|n| runtime.block_on(place.abort_after(Duration::from_micros(n * 200))).took)
        .collect();
    took.sort();
    let at = |share: f64| took[((took.len() - 1) as f64 * share) as usize].as_secs_f64() * 1e3;
    println!("abort to last event, {} moments of a turn:", took.len());
    println!("median {:.2} ms   99 % {:.2} ms   longest {:.2} ms", at(0.5), at(0.99), at(1.0));
}
