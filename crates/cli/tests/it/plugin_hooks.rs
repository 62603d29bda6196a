//! Each hook of plugins that the others of these files do not show, through the whole program.

use serde_json::{Value, json};
use toolwright_testkit::{Answer, Captured, Folder, ModelServer, Wire};

use crate::{assert_history_is_valid, folder, results};

const RUN: [&str; 5] = ["run", "--trust", "-m", "anthropic/m", "go"];

fn with(server: &ModelServer, plugin: &str) -> Folder {
    folder().with_model(server, Wire::Anthropic).file(".opencode/plugin/p.ts", plugin)
}

fn said(request: &Captured, message: usize) -> String {
    request.messages()[message].to_string()
}

fn tool<'a>(request: &'a Captured, name: &str) -> &'a Value {
    request.body["tools"].as_array().unwrap().iter().find(|t| t["name"] == name).unwrap()
}

#[test]
fn chat_headers_go_with_each_request() {
    let server = ModelServer::start([Answer::text("ok")]);
    let plugin = r#"
export const P = async () => ({
  "chat.headers": async (input, output) => {
    output.headers["x-session"] = `${input.model.providerID}/${input.model.modelID} ${input.agent} ${typeof input.sessionID}`
  },
})"#;
    with(&server, plugin).tw(&RUN).expect(0);
    let request = server.last_request();
    assert_eq!(request.header("x-session"), Some("anthropic/m build string"));
    assert!(request.header("anthropic-version").is_some());
}

#[test]
fn config_changes_agents_commands_rules_and_models() {
    let server = ModelServer::start([
        Answer::call("write", json!({ "filePath": "x", "content": "x" })),
        Answer::text("ok"),
    ]);
    let plugin = r#"
let seen
export const P = async () => ({
  config: async (config) => {
    seen = config.username
    config.command = { ...config.command, hail: { template: "Hail $ARGUMENTS", description: "d", agent: "captain" } }
    config.agent = { ...config.agent, captain: { mode: "primary", prompt: "You command.", temperature: 0.125 } }
    config.permission = { edit: "deny" }
    config.leaks = config.provider?.anthropic?.options?.apiKey ?? "hidden"
  },
  "experimental.chat.system.transform": async (_, output) => { output.system.push(`user ${seen}`) },
})"#;
    let folder = with(&server, plugin).file(
        "opencode.json",
        r#"{ "username": "Ada", "provider": { "anthropic": { "options": { "apiKey": "sk-very-secret" } } } }"#,
    );
    let command = ["run", "--trust", "--auto", "-m", "anthropic/m", "--command", "hail", "all"];
    let ran = folder.tw(&command).expect(3);
    assert!(!ran.stderr.contains("sk-very-secret"));
    let first = &server.requests()[0];
    assert!(said(first, 0).contains("Hail all"), "{}", said(first, 0));
    let system = first.body["system"].to_string();
    assert!(system.contains("You command.") && system.contains("user Ada"), "{system}");
    assert_eq!(first.body["temperature"], 0.125);
    assert_eq!(first.header("x-api-key"), Some("sk-very-secret"), "what plugins do not see stays");
    assert!(!folder.work().join("x").exists());
}

#[test]
fn what_config_breaks_is_said_and_the_settings_stay() {
    let server = ModelServer::start([Answer::text("ok")]);
    let plugin = "export const P = async () => ({ config: async (c) => { c.steps = 'many' } })\nexport const Q = async () => ({ config: async () => { throw new Error('not today') } })\n";
    let ran = with(&server, plugin).tw(&RUN).expect(0);
    assert!(ran.stderr.contains("p.ts: its hook config failed: not today"), "{}", ran.stderr);
    assert!(
        ran.stderr.contains("what its hook config makes of the settings is not used: steps: "),
        "{}",
        ran.stderr
    );
}

#[test]
fn a_provider_of_a_plugin_brings_models() {
    let server = ModelServer::start([Answer::text("ok")]);
    let plugin = r#"
export const P = async () => ({
  provider: {
    id: "anthropic",
    models: async (provider) => ({ fancy: { id: "fancy", name: `Fancy of ${provider.id}`, api: { id: "real-name" }, limit: { context: 1000, output: 77 } } }),
  },
})"#;
    with(&server, plugin).tw(&["run", "--trust", "-m", "anthropic/fancy", "go"]).expect(0);
    let request = server.last_request();
    assert_eq!(request.body["model"], "real-name");
    assert_eq!(request.body["max_tokens"], 77);
}

#[test]
fn auth_of_a_plugin_is_said_to_have_another_way() {
    let server = ModelServer::start([Answer::text("ok"), Answer::text("ok")]);
    let plugin = "export const P = async () => ({ auth: { provider: 'x', methods: [{ type: 'oauth', label: 'Sign in', authorize: async () => ({}) }] }, 'chat.params': async (i, o) => { o.temperature = 0.5 }, 'no.such.hook': async () => {} })\n";
    let folder = with(&server, plugin);
    let ran = folder.tw(&RUN).expect(0);
    let words = "p.ts: it wants to sign in at a provider, which plugins cannot do here";
    assert_eq!(ran.stderr.matches(words).count(), 1, "{}", ran.stderr);
    assert!(ran.stderr.contains("have no effect here: no.such.hook"), "{}", ran.stderr);
    assert_eq!(server.last_request().body["temperature"], 0.5);
}

#[test]
fn tool_definition_changes_what_the_model_sees() {
    let server = ModelServer::start([
        Answer::call("read", json!({ "filePath": "a.txt" })),
        Answer::text("ok"),
    ]);
    let plugin = r#"
export const P = async () => ({
  "tool.definition": async (input, output) => {
    if (input.toolID !== "read") return
    output.description = "Opens a file."
    output.parameters.properties.filePath.description = "Where it is"
  },
})"#;
    let folder = with(&server, plugin).file("a.txt", "needle");
    folder.tw(&RUN).expect(0);
    let first = &server.requests()[0];
    assert_eq!(tool(first, "read")["description"], "Opens a file.");
    let form = &tool(first, "read")["input_schema"]["properties"]["filePath"];
    assert_eq!(form["description"], "Where it is");
    assert!(results(&server.last_request())[0].contains("needle"));
    assert_eq!(tool(first, "read"), tool(&server.last_request(), "read"));
}

#[test]
fn shell_env_reaches_commands_of_the_model_and_of_templates() {
    let server = ModelServer::start([
        Answer::call("bash", json!({ "command": "echo $PROJECT_MARK; pwd" })),
        Answer::text("ok"),
    ]);
    let plugin = r#"
export const P = async () => ({
  "shell.env": async (input, output) => {
    output.env.PROJECT_MARK = `marked in ${input.cwd.split("/").at(-1)}`
    output.env["BAD=NAME"] = "x"
  },
})"#;
    let folder =
        with(&server, plugin).file(".opencode/command/c.md", "Mark: !`echo $PROJECT_MARK`\n");
    folder.tw(&["run", "--trust", "--auto", "-m", "anthropic/m", "--command", "c"]).expect(0);
    assert!(said(&server.requests()[0], 0).contains("Mark: marked in work"));
    assert!(results(&server.last_request())[0].starts_with("marked in work\n"));
}

#[test]
fn a_command_is_shown_before_it_is_said() {
    let server = ModelServer::start([Answer::text("ok")]);
    let plugin = r#"
export const P = async () => ({
  "command.execute.before": async (input, output) => {
    if (input.arguments === "stop") throw new Error("not this one")
    output.parts.push({ type: "text", text: `(${input.command} with ${input.arguments})`, synthetic: true })
    output.parts.push({ type: "text", text: "never seen", ignored: true })
  },
})"#;
    let folder = with(&server, plugin).file(".opencode/command/c.md", "Do $1\n");
    let run = |word| folder.tw(&["run", "--trust", "-m", "anthropic/m", "--command", "c", word]);
    run("it").expect(0);
    let first = said(&server.last_request(), 0);
    assert!(first.contains("Do it") && first.contains("(c with it)"), "{first}");
    assert!(!first.contains("never seen"), "{first}");
    let refused = run("stop");
    assert!(refused.stderr.contains("not this one"), "{}", refused.stderr);
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn messages_transform_changes_the_request_and_not_the_record() {
    let server = ModelServer::start([
        Answer::call("read", json!({ "filePath": "a.txt" })),
        Answer::call("read", json!({ "filePath": "b.txt" })),
        Answer::text("ok"),
    ]);
    let plugin = r#"
export const P = async () => ({
  "experimental.chat.messages.transform": async (_input, output) => {
    for (const { info, parts } of output.messages)
      for (const part of parts) {
        if (part.type === "tool" && part.state.status === "completed" && part.state.input.filePath === "a.txt") part.state.output = "[pruned]"
        if (info.role === "user" && part.type === "text") part.text += " (seen)"
      }
  },
})"#;
    let folder = with(&server, plugin).file("a.txt", "needle-a").file("b.txt", "needle-b");
    folder.tw(&RUN).expect(0);
    let last = server.last_request();
    assert_history_is_valid(&last);
    let results = results(&last);
    assert_eq!(results[0], "[pruned]");
    assert!(results[1].contains("needle-b"), "{}", results[1]);
    assert!(said(&last, 0).contains("go (seen)") && !said(&last, 0).contains("(seen) (seen)"));
    assert!(folder.session_text().contains("needle-a"));
    assert!(!folder.session_text().contains("[pruned]"));
}

#[test]
fn a_finished_text_is_changed_before_it_is_kept() {
    let server = ModelServer::start([Answer::text("|a|b|\n|-|-|\n|1|2|")]);
    let plugin = r#"
export const P = async () => ({
  "experimental.text.complete": async (input, output) => { output.text = output.text.replaceAll("|", " | ").trim() },
})"#;
    let folder = with(&server, plugin);
    let ran =
        folder.tw(&["run", "--trust", "--format", "json", "-m", "anthropic/m", "go"]).expect(0);
    assert!(ran.stdout.contains("1 | 2"), "{}", ran.stdout);
    assert!(folder.session_text().contains("| a | b |"));
}

#[test]
fn events_have_the_names_and_forms_that_plugins_know() {
    let server = ModelServer::start([
        Answer::call("write", json!({ "filePath": "made.txt", "content": "x" })),
        Answer::call("bash", json!({ "command": "exit 3" })),
        Answer::text("done"),
    ]);
    let plugin = r#"
import { appendFileSync } from "node:fs"
export const P = async ({ directory }) => ({
  event: async ({ event }) => {
    const p = event.properties
    const said = { "message.part.updated": () => `${p.part.type} ${p.part.tool ?? ""} ${p.part.state?.status ?? p.part.text}`, "file.edited": () => p.file, "session.status": () => p.status.type, "session.created": () => p.info.id === p.sessionID }
    appendFileSync(`${directory}/events.txt`, `${event.type}: ${said[event.type]?.() ?? ""} ${typeof p.sessionID}\n`)
  },
})"#;
    let folder = with(&server, plugin);
    folder.tw(&["run", "--trust", "--auto", "-m", "anthropic/m", "go"]).expect(0);
    let events = folder.read("events.txt");
    for line in [
        "session.created: true string",
        "session.status: busy string",
        "message.part.updated: tool write running string",
        "message.part.updated: tool write completed string",
        "file.edited: made.txt string",
        "message.part.updated: text  done string",
        "message.updated:  string",
        "session.status: idle string",
        "session.idle:  string",
    ] {
        assert!(events.contains(line), "{line} in\n{events}");
    }
}

#[test]
fn a_plugin_asks_the_program_about_its_session_and_speaks_to_it() {
    let server = ModelServer::start([
        Answer::call("look", json!({})),
        Answer::text("ok"),
        Answer::text("never asked for"),
    ]);
    let plugin = r#"
import { tool } from "@opencode-ai/plugin"
export const P = async ({ client }) => ({
  tool: {
    look: tool({
      description: "d",
      args: {},
      async execute(_args, { sessionID }) {
        const { data: session } = await client.session.get({ path: { id: sessionID } })
        const { data: messages } = await client.session.messages({ path: { id: sessionID } })
        const { data: agents } = await client.app.agents()
        const { data: commands } = await client.command.list()
        const other = await client.session.get({ path: { id: "ses_other" } }).then(() => "found", () => "none")
        const missing = await client.session.share({ path: { id: sessionID } }).catch((e) => e.message)
        await client.session.prompt({ path: { id: sessionID }, body: { noReply: true, parts: [{ type: "text", text: "told by the plugin" }] } })
        return [session.id === sessionID, messages[0].info.role, messages[0].parts[0].text, agents.some((a) => a.name === "build"), commands.some((c) => c.name === "init"), other, missing].join(" ")
      },
    }),
  },
})"#;
    let folder = with(&server, plugin);
    folder.tw(&RUN).expect(0);
    let last = &server.requests()[1];
    assert_eq!(
        results(last)[0],
        "true user go true true none client.session.share is not available in Toolwright"
    );
    assert!(last.body["messages"].to_string().contains("told by the plugin"), "{:?}", last.body);
    assert_eq!(server.requests().len(), 2);
}

#[test]
fn what_plugins_show_and_what_goes_wrong_while_they_listen_is_told() {
    let server = ModelServer::start([
        Answer::call("glob", json!({ "pattern": "*" })),
        Answer::call("glob", json!({ "pattern": "**" })),
        Answer::text("ok"),
    ]);
    let plugin = r#"
export const P = async ({ client, $ }) => ({
  event: async ({ event }) => {
    if (event.type === "session.idle") await $`no-such-notifier done`
    if (event.type === "message.part.updated") throw new Error("part broke")
  },
  "tool.execute.before": async (input) => {
    await client.tui.showToast({ body: { title: "Look", message: `at ${input.tool}`, variant: "info" } })
  },
})"#;
    let ran = with(&server, plugin).tw(&["run", "--trust", "--auto", "-m", "anthropic/m", "go"]);
    let ran = ran.expect(0);
    assert_eq!(ran.stderr.matches("Look: at glob").count(), 2, "{}", ran.stderr);
    assert_eq!(ran.stderr.matches("at event message.part.updated: part broke").count(), 1);
    assert!(ran.stderr.contains("at event session.idle: "), "{}", ran.stderr);
    assert!(ran.stderr.contains("exit code 127"), "{}", ran.stderr);
}
