//! Tools that come and go while an agent lives: registered, replaced and taken away between prompts.
//!
//! Run with `cargo run --example dynamic_tools`; it needs no model.

use toolwright::{Deserialize, JsonSchema, Registry, ToolError, tool_fn};

#[derive(Deserialize, JsonSchema)]
struct Nothing {}

fn main() {
    let registry = Registry::default();
    registry.register(tool_fn("time", "What time it is.", |_: Nothing| async {
        Ok::<_, ToolError>("noon".to_owned())
    }));
    // Whoever holds a clone sees every change: sessions that are at work take it up at their next step.
    let seen_elsewhere = registry.clone();
    println!("{:?} (version {})", seen_elsewhere.names(), seen_elsewhere.version());

    // A taken name is replaced.
    registry.register(tool_fn("time", "What time it is, exactly.", |_: Nothing| async {
        Ok::<_, ToolError>("12:00:00".to_owned())
    }));
    let described = seen_elsewhere.definitions();
    println!("{}: {}", described[0].name, described[0].description);

    registry.unregister("time");
    println!("{:?} (version {})", seen_elsewhere.names(), seen_elsewhere.version());
}
