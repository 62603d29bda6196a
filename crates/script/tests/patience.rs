//! Whose time it is while somebody decides about what a script asked for.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::json;
use support::Shop;
use toolwright_script::{Guard, Limit, Permit, ScriptError};
use toolwright_tool::Plan;

const LIMIT: Duration = Duration::from_secs(30);

/// Answers a second after the limit, or not at all.
struct Slow {
    answers: bool,
}

impl Guard for Slow {
    fn ask<'a>(&'a self, _: Plan) -> BoxFuture<'a, Result<Permit, String>> {
        async move {
            tokio::time::pause();
            tokio::time::advance(LIMIT + Duration::from_secs(1)).await;
            tokio::time::resume();
            if !self.answers {
                std::future::pending::<()>().await;
            }
            Ok(Permit::default())
        }
        .boxed()
    }
}

#[tokio::test]
async fn the_time_of_whoever_decides_is_not_the_hooks_own() {
    for write in ["fs.writeFileSync('x', 'y')", "await fs.promises.writeFile('x', 'y')"] {
        let shop = Shop::new();
        let text = format!(
            "import fs from 'node:fs'\nexport const P = async () => ({{ h: async (i, o) => {{ {write}; o.done = true }} }})\n"
        );
        let plugin = shop.plugin("p.js", &text);
        let hook = async |limit, answers| {
            let guard = Arc::new(Slow { answers });
            plugin.hook("h", &json!({}), &json!({}), Some(guard), limit).await
        };
        let ended = hook(Limit::Whole(LIMIT), false).await;
        assert_eq!(ended, Err(ScriptError::Deadline(LIMIT)), "{write}");
        let output = hook(Limit::Own(LIMIT), true).await;
        assert_eq!(output, Ok(json!({ "done": true })), "{write}");
    }
}

#[tokio::test]
async fn what_is_its_own_counts_on_both_sides_of_a_question() {
    let shop = Shop::new();
    let text = "import fs from 'node:fs'\nexport const P = async () => ({ h: async () => { fs.writeFileSync('x', 'y'); await new Promise(() => {}) } })\n";
    let plugin = shop.plugin("p.js", text);
    let limit = Duration::from_millis(200);
    let (nothing, guard) = (json!({}), Some(shop.guard()));
    let ended = plugin.hook("h", &nothing, &nothing, guard, Limit::Own(limit)).await;
    assert_eq!(ended, Err(ScriptError::Deadline(limit)));
}
