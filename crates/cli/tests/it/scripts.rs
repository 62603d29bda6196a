//! Tools and plugins that people wrote, through the whole program.

use std::os::unix::fs::PermissionsExt;

use serde_json::json;
use toolwright_testkit::{Answer, Captured, Folder, ModelServer, Wire};

use crate::{assert_history_is_valid, folder, results};

const RUN: [&str; 5] = ["run", "--trust", "-m", "anthropic/m", "go"];

const GREET: &str = r#"
import { tool } from "@opencode-ai/plugin"
export default tool({
  description: "Greets somebody",
  args: { name: tool.schema.string().describe("who") },
  async execute(args, context) {
    const note = await Bun.file("note.txt").text()
    context.metadata({ title: `greeting ${args.name}` })
    return `hello ${args.name}: ${note.trim()}`
  },
})
"#;

fn with(server: &ModelServer) -> Folder {
    folder().with_model(server, Wire::Anthropic)
}

fn offered(request: &Captured) -> Vec<&str> {
    request.body["tools"].as_array().unwrap().iter().map(|t| t["name"].as_str().unwrap()).collect()
}

#[test]
fn a_custom_tool_is_offered_called_and_answered() {
    let server = ModelServer::start([
        Answer::call("greet", json!({ "name": "Ada" })),
        Answer::call("greet", json!({ "who": 1 })),
        Answer::text("done"),
    ]);
    let folder =
        with(&server).file(".opencode/tool/greet.ts", GREET).file("note.txt", "well met\n");
    folder.tw(&RUN).expect(0);
    assert!(offered(&server.requests()[0]).contains(&"greet"));
    let request = server.last_request();
    assert_history_is_valid(&request);
    let results = results(&request);
    assert_eq!(results[0], "hello Ada: well met");
    assert!(results[1].contains("name"), "{}", results[1]);
}

#[test]
fn scripts_of_a_folder_that_is_not_trusted_are_not_run_and_that_is_said() {
    let server = ModelServer::start([Answer::text("ok")]);
    let poison = "require('fs').writeFileSync('made', '')\nmodule.exports = {}\n";
    let folder = with(&server)
        .file(".opencode/tool/greet.ts", GREET)
        .file(".opencode/tool/poison.js", poison)
        .file(".opencode/plugin/poison.js", poison);
    let ran = folder.tw(&["run", "-m", "anthropic/m", "go"]).expect(0);
    assert!(
        ran.stderr.contains("these are not used: tools, plugins (.opencode)"),
        "{}",
        ran.stderr
    );
    assert!(!offered(&server.last_request()).contains(&"greet"));
    assert!(!folder.work().join("made").exists());
}

#[test]
fn what_a_script_does_is_judged_like_anything_else() {
    let server = ModelServer::start([Answer::call("sneak", json!({})), Answer::text("ok")]);
    let sneak = "import fs from 'fs'\nimport { execSync } from 'child_process'\nexport default { description: 'd', args: {}, execute: async () => { const said = []; for (const f of [() => fs.writeFileSync('made', 'x'), () => execSync('touch made2'), () => fs.readFileSync('/etc/hostname')]) { try { f(); said.push('done') } catch (e) { said.push(e.code) } } return said.join(' ') } }\n";
    let folder = with(&server).file(".toolwright/tools/sneak.js", sneak);
    folder.tw(&RUN).expect(0);
    assert_eq!(results(&server.last_request()), ["EACCES EACCES EACCES"]);
    assert!(!folder.work().join("made").exists() && !folder.work().join("made2").exists());
}

#[test]
fn a_rule_against_a_custom_tool_holds_and_hides_it() {
    let server =
        ModelServer::start([Answer::call("greet", json!({ "name": "x" })), Answer::text("ok")]);
    let folder = with(&server)
        .file(".opencode/tool/greet.ts", GREET)
        .file("opencode.json", r#"{ "permission": { "greet": "deny" } }"#);
    folder.tw(&RUN).expect(3);
    assert!(!offered(&server.requests()[0]).contains(&"greet"));
}

#[test]
fn one_bad_file_is_named_and_the_rest_works() {
    let server = ModelServer::start([Answer::call("good", json!({})), Answer::text("ok")]);
    let good = "export default { description: 'good', args: {}, execute: () => 'fine' }\n";
    let folder = with(&server)
        .file(".opencode/tools/good.js", good)
        .file(".opencode/tools/syntax.ts", "export default {\n  description: = 1 }\n")
        .file(".opencode/tools/throws.js", "export const x = 1\nthrow new Error('at load')\n")
        .file(".opencode/tools/missing.ts", "import x from './nowhere'\nexport default x\n")
        .file(".opencode/tools/bad name.js", good)
        .file(".opencode/tools/read.js", good);
    let ran = folder.tw(&RUN).expect(0);
    for words in [
        "syntax.ts:2:16",
        "at load (at ",
        "throws.js:2:",
        "cannot find \"./nowhere\"",
        "its tool \"bad name\" is not used",
        "its tool read takes the place of another one",
    ] {
        assert!(ran.stderr.contains(words), "{words} in {}", ran.stderr);
    }
    assert_eq!(results(&server.last_request()), ["fine"]);
}

#[test]
fn a_plugin_stops_a_call_changes_one_and_brings_a_tool() {
    let server = ModelServer::start([
        Answer::call("read", json!({ "filePath": "secret.txt" })),
        Answer::call("read", json!({ "filePath": "a.txt" })),
        Answer::call("counted", json!({})),
        Answer::text("ok"),
    ]);
    let plugin = r#"
import { tool, type Plugin } from "@opencode-ai/plugin"
export const Guard: Plugin = async ({ directory }) => {
  let calls = 0
  return {
    "tool.execute.before": async (input, output) => {
      calls++
      if (String(output.args.filePath).includes("secret")) throw new Error("hands off")
      if (input.tool === "read") output.args.filePath = "b.txt"
    },
    "tool.execute.after": async (input, output) => { output.output += "\n(seen)" },
    tool: { counted: tool({ description: "c", args: {}, execute: async () => `calls: ${calls}` }) },
  }
}
"#;
    let folder = with(&server)
        .file(".opencode/plugin/guard.ts", plugin)
        .file("secret.txt", "s3")
        .file("a.txt", "from a")
        .file("b.txt", "from b");
    folder.tw(&RUN);
    let results = results(&server.last_request());
    assert!(results[0].contains("hands off"), "{}", results[0]);
    assert!(results[1].contains("from b") && results[1].ends_with("(seen)"), "{}", results[1]);
    assert_eq!(results[2], "calls: 3\n(seen)");
}

#[test]
fn a_warm_start_runs_no_script() {
    let server = ModelServer::start([Answer::text("one"), Answer::text("two")]);
    let text = "import fs from 'fs'\nglobalThis.n = 1\nexport default { description: process.env.MARK ?? 'none', args: {}, execute: () => '' }\n";
    let folder = with(&server).file(".opencode/tool/t.js", text);
    folder.tw(&RUN).expect(0);
    let folder = folder.env("MARK", "evaluated again");
    folder.tw(&RUN).expect(0);
    let request = server.last_request();
    let tool = request.body["tools"].as_array().unwrap().iter().find(|t| t["name"] == "t").unwrap();
    assert_eq!(tool["description"], "none");
}

#[test]
fn a_program_in_any_language_is_a_tool() {
    let server = ModelServer::start([
        Answer::call("count", json!({ "text": "a b c" })),
        Answer::call("count", json!({ "text": "fail" })),
        Answer::text("ok"),
    ]);
    let program = "#!/bin/sh\nif [ \"$1\" = --describe ]; then\n  echo '{\"name\":\"count\",\"description\":\"Counts\",\"parameters\":{\"type\":\"object\",\"properties\":{\"text\":{\"type\":\"string\"}},\"required\":[\"text\"]}}'\n  exit\nfi\nread -r input\ncase \"$input\" in *fail*) echo 'no luck' >&2; exit 4;; esac\nprintf 'got %s' \"$input\"\n";
    let folder = with(&server)
        .file(".opencode/tools/count.sh", program)
        .file("opencode.json", r#"{ "permission": { "count": "allow" } }"#);
    let path = folder.work().join(".opencode/tools/count.sh");
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    folder.tw(&RUN).expect(0);
    let results = results(&server.last_request());
    assert_eq!(results[0], r#"got {"text":"a b c"}"#);
    assert_eq!(results[1], "count failed (exit status 4): no luck");
}

#[test]
fn code_mode_calls_tools_and_gives_back_only_the_result() {
    let code = "const names = ['a.txt', 'b.txt']\nconst all = await Promise.all(names.map((filePath) => tools.read({ filePath })))\nlet refused = ''\ntry { await tools.bash({ command: 'touch made' }) } catch (e: any) { refused = e.message }\nconsole.log('read', all.length)\nreturn { found: all.filter((t: string) => t.includes('needle')).length, refused: refused.includes('denied') }";
    let server =
        ModelServer::start([Answer::call("execute", json!({ "code": code })), Answer::text("ok")]);
    let folder = with(&server)
        .file("a.txt", "needle")
        .file("b.txt", "hay")
        .file("opencode.json", r#"{ "experimental": { "code_mode": true } }"#);
    folder.tw(&RUN);
    let results = results(&server.last_request());
    assert_eq!(results, ["{\n  \"found\": 1,\n  \"refused\": true\n}\n\nLogs:\nread 2"]);
    assert!(!folder.work().join("made").exists());
}

#[test]
fn a_script_that_never_ends_is_stopped_and_the_turn_goes_on() {
    let server = ModelServer::start([Answer::call("spin", json!({})), Answer::text("ok")]);
    let spin =
        "export default { description: 'd', args: {}, execute: () => { while (true) {} } }\n";
    let folder = with(&server)
        .file(".opencode/tool/spin.js", spin)
        .file("opencode.json", r#"{ "tool_timeout": 1 }"#);
    folder.tw(&RUN).expect(0);
    let results = results(&server.last_request());
    assert!(results[0].contains("still at work after 1 s"), "{}", results[0]);
}

#[test]
fn custom_tools_are_listed_and_called_from_the_command_line() {
    let folder = folder().file(".opencode/tool/greet.ts", GREET).file("note.txt", "hi");
    let listed = folder.tw(&["tools", "--trust"]).expect(0);
    assert!(listed.stdout.contains("greet\n    Greets somebody"), "{}", listed.stdout);
    let called = folder.tw(&["tools", "--trust", "call", "greet", r#"{"name":"Bo"}"#]).expect(0);
    assert_eq!(called.stdout, "hello Bo: hi\n");
}
