//! Plugins, run for real.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::time::Duration;

use serde_json::json;
use support::Shop;
use toolwright_script::Limit;

const SOON: Limit = Limit::Whole(Duration::from_secs(20));

#[tokio::test]
async fn a_plugin_gives_hooks_and_tools_and_keeps_its_state() {
    let shop = Shop::new();
    let script = shop.plugin(
        "guard.ts",
        r#"
import type { Plugin } from "@opencode-ai/plugin"
import { tool } from "@opencode-ai/plugin"
export const EnvGuard: Plugin = async ({ project, client, $, directory, worktree }) => {
  let seen = 0
  await client.app.log({ body: { service: "guard", level: "info", message: "ready" } })
  return {
    "tool.execute.before": async (input, output) => {
      seen += 1
      if (input.tool === "read" && output.args.filePath.includes(".env")) throw new Error("Do not read .env files")
      output.args.note = `seen ${seen}`
    },
    "chat.params": async (input, output) => { output.temperature = 0.2 },
    event: async ({ event }) => { if (event.type === "session.idle") await $`echo idle >> events.txt` },
    tool: { counted: tool({ description: "how many", args: {}, async execute() { return String(seen) } }) },
  }
}
"#,
    );
    let described = script.describe(None, Some(shop.guard())).await.unwrap();
    assert_eq!(described.hooks, ["tool.execute.before", "chat.params", "event"]);
    assert_eq!(described.tools[0].name, "counted");
    let before = async |file: &str| {
        let input = json!({ "tool": "read", "callID": "1" });
        let output = json!({ "args": { "filePath": file } });
        script.hook("tool.execute.before", &input, &output, Some(shop.guard()), SOON).await
    };
    assert_eq!(before("a.txt").await.unwrap()["args"]["note"], "seen 1");
    let refused = before("x/.env").await.unwrap_err().to_string();
    assert!(refused.starts_with("Do not read .env files"), "{refused}");
    assert_eq!(shop.call(&script, "counted", json!({})).await.unwrap(), "2");
    let idle = json!({ "event": { "type": "session.idle" } });
    script.hook("event", &idle, &json!({}), Some(shop.guard()), SOON).await.unwrap();
    assert_eq!(support::lines(&shop.path("events.txt")), ["idle"]);
    assert!(shop.asked().iter().any(|a| a == "echo idle >> events.txt"));
}

#[tokio::test]
async fn forms_of_plugins_that_people_have() {
    let shop = Shop::new();
    let with_server = shop.plugin(
        "one.js",
        "export default { id: 'x', server: async (input, options) => ({ 'chat.params': (i, o) => { o.temperature = options.heat } }) }",
    );
    let with_server = with_server.with_options(json!({ "heat": 0.7 }));
    let changed =
        with_server.hook("chat.params", &json!({}), &json!({}), None, SOON).await.unwrap();
    assert_eq!(changed["temperature"], 0.7);
    let older = shop.plugin("two.cjs", "module.exports = async () => ({ event() {} })");
    assert_eq!(older.describe(None, None).await.unwrap().hooks, ["event"]);
    let none = shop.plugin("three.js", "export const answer = 42");
    let problem = none.describe(None, None).await.unwrap_err().to_string();
    assert!(problem.contains("\"answer\" is no plugin"), "{problem}");
    let missing = shop.plugin(
        "four.js",
        "export default async ({ client }) => ({ event: async () => { await client.session.prompt({}) } })",
    );
    let problem = missing.hook("event", &json!({}), &json!({}), None, SOON).await.unwrap_err();
    assert!(problem.to_string().contains("client.session.prompt is not available"), "{problem}");
}

#[tokio::test]
async fn nothing_outside_is_reached_while_nobody_calls() {
    let shop = Shop::new();
    let script = shop.plugin(
        "late.js",
        "import fs from 'fs'\nexport default async () => ({ event: async () => { setTimeout(() => { try { fs.writeFileSync('late.txt', 'x') } catch (e) { globalThis.said = e.message } }, 1) }, 'chat.params': async (i, o) => { while (!globalThis.said) await new Promise((r) => setTimeout(r, 1)); o.said = globalThis.said } })",
    );
    script.hook("event", &json!({}), &json!({}), None, SOON).await.unwrap();
    let output = script.hook("chat.params", &json!({}), &json!({}), None, SOON).await.unwrap();
    assert!(output["said"].as_str().unwrap().contains("nobody calls it"), "{output}");
    assert!(!shop.path("late.txt").exists());
}
