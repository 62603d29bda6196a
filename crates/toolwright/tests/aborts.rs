//! A thousand aborts at random moments leave nothing behind.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::time::Duration;

use support::Place;
use toolwright::session::TurnStatus;
use toolwright_testkit::{eventually, processes_with};

#[test]
fn a_thousand_aborts_at_random_moments_leave_no_process_no_task_and_no_open_call() {
    let marker = format!("abort-marker-{}", std::process::id());
    let place = Place::new(&marker);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    // Spread over a turn by a fixed sequence that hits no two moments alike.
    let mut state = 0x2545_F491_4F6C_DD1D_u64;
    for _ in 0..1_000 {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let delay = Duration::from_micros(state % 25_000);
        let aborted = runtime.block_on(place.abort_after(delay));
        assert_eq!(aborted.status, TurnStatus::Interrupted);
        assert_eq!(aborted.open_calls, 0);
    }
    // Connections may take a moment to notice that nobody reads any more.
    eventually("the end of all tasks", || {
        runtime.block_on(async { tokio::task::yield_now().await });
        (runtime.metrics().num_alive_tasks() == 0).then_some(())
    });
    eventually("the end of all commands", || processes_with(&marker).is_empty().then_some(()));
}
