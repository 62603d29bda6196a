//! Tools, agents, commands and skills that are not right: one message that names the file, and the rest works.

use serde_json::json;
use toolwright_testkit::{Answer, Folder, ModelServer, Wire};

use crate::{assert_history_is_valid, folder, results};

const RUN: [&str; 5] = ["run", "--trust", "-m", "anthropic/m", "go"];

const GOOD: &str = "export default { description: 'good', args: {}, execute: () => 'fine' }\n";

fn with(server: &ModelServer) -> Folder {
    folder().with_model(server, Wire::Anthropic).file(".opencode/tool/good.js", GOOD)
}

fn of(text: &str) -> String {
    format!("export default {{ description: 'd', args: {{}}, execute: async () => {text} }}\n")
}

#[test]
fn imports_in_a_circle_work_or_say_what_is_not_there_yet() {
    let server = ModelServer::start([
        Answer::call("round", json!({})),
        Answer::call("good", json!({})),
        Answer::text("ok"),
    ]);
    let folder = with(&server)
        .file(".opencode/tool/round.ts", "import { b } from './lib/b'\nexport const name = 'a'\nexport default { description: 'd', args: {}, execute: () => b() }\n")
        .file(".opencode/tool/lib/b.ts", "import { name } from '../round'\nexport const b = () => `b of ${name}`\n")
        .file(".opencode/tool/early.ts", "import { c } from './lib/c'\nexport const early = 1\nexport default { description: c, args: {}, execute: () => '' }\n")
        .file(".opencode/tool/lib/c.ts", "import { early } from '../early'\nexport const c = `c ${early}`\n");
    let ran = folder.tw(&RUN).expect(0);
    assert_eq!(results(&server.last_request()), ["b of a", "fine"]);
    assert!(ran.stderr.contains("early.ts: it is not used: ReferenceError: "), "{}", ran.stderr);
    assert!(ran.stderr.contains("lib/c.ts:2:"), "{}", ran.stderr);
}

#[test]
fn whatever_a_tool_returns_becomes_text() {
    let cases = [
        ("number", "42", "42"),
        ("nothing", "undefined", ""),
        ("list", "[1, 'a']", "[\n  1,\n  \"a\"\n]"),
        ("object", "({ a: { b: true } })", "{\n  \"a\": {\n    \"b\": true\n  }\n}"),
        ("truth", "false", "false"),
        ("whole", "({ output: 'said', title: 5, metadata: 'x', attachments: 'y' })", "said"),
    ];
    let calls = cases.iter().map(|(name, ..)| Answer::call(name, json!({})));
    let circular = Answer::call("circular", json!({}));
    let server = ModelServer::start(calls.chain([circular, Answer::text("ok")]));
    let mut folder = with(&server)
        .file(".opencode/tool/circular.js", &of("{ const a = {}; a.a = a; return a }"));
    for (name, text, _) in &cases {
        folder = folder.file(&format!(".opencode/tool/{name}.js"), &of(text));
    }
    folder.tw(&RUN).expect(0);
    let request = server.last_request();
    assert_history_is_valid(&request);
    let results = results(&request);
    for ((name, _, expected), result) in cases.iter().zip(&results) {
        let nothing = expected.is_empty() && !result.contains("failed");
        assert!(result == expected || nothing, "{name}: {result}");
    }
    assert!(results[6].contains("circular failed: TypeError"), "{}", results[6]);
}

#[test]
fn ten_megabytes_are_cut_and_kept() {
    let server = ModelServer::start([Answer::call("big", json!({})), Answer::text("ok")]);
    let folder =
        with(&server).file(".opencode/tool/big.js", &of("'line of text\\n'.repeat(800_000)"));
    folder.tw(&RUN).expect(0);
    let result = &results(&server.last_request())[0];
    assert!(result.len() < 60_000 && result.contains("line of text"), "{}", result.len());
    let place = result.split_whitespace().find(|word| word.contains("/sessions/")).unwrap();
    let place = place.trim_matches(|c: char| !c.is_alphanumeric() && c != '/' && c != '.');
    assert_eq!(std::fs::metadata(place).unwrap().len(), 13 * 800_000);
}

#[test]
fn a_schema_that_no_provider_takes_is_named_and_not_sent() {
    let server = ModelServer::start([Answer::call("good", json!({})), Answer::text("ok")]);
    let tool = |args: &str| {
        format!(
            "import {{ tool }} from '@opencode-ai/plugin'\nexport default {{ description: 'd', args: {args}, execute: () => '' }}\n"
        )
    };
    let folder = with(&server)
        .file(".opencode/tool/plain.ts", &tool("tool.schema.string()"))
        .file(
            ".opencode/tool/choice.ts",
            &tool("tool.schema.union([tool.schema.object({}), tool.schema.object({})])"),
        )
        .file(
            ".opencode/tool/odd.ts",
            &tool("{ type: 'object', properties: { a: { type: 'text' } } }"),
        )
        .file(".opencode/tool/spaced.ts", &tool("{ 'a b': tool.schema.string() }"));
    let ran = folder.tw(&RUN).expect(0);
    for words in [
        "plain.ts: its tool plain is not used, no model would take it: its arguments are no object",
        "choice.ts: its tool choice is not used",
        "odd.ts: its tool odd is not used, no model would take it: args.a has the type \"text\"",
        "spaced.ts: its tool spaced is not used",
    ] {
        assert!(ran.stderr.contains(words), "{words} in\n{}", ran.stderr);
    }
    let offered = server.requests()[0].body["tools"].to_string();
    for name in ["plain", "choice", "odd", "spaced"] {
        assert!(!offered.contains(&format!("\"name\":\"{name}\"")), "{name}");
    }
    assert_eq!(results(&server.last_request()), ["fine"]);
}

#[test]
fn a_name_that_collides_is_said_once_and_the_custom_one_wins() {
    let server = ModelServer::start([Answer::call("read", json!({})), Answer::text("ok")]);
    let folder = with(&server).file(".opencode/tool/read.js", GOOD);
    let ran = folder.tw(&RUN).expect(0);
    let words = "read.js: its tool read takes the place of another one";
    assert_eq!(ran.stderr.matches(words).count(), 1, "{}", ran.stderr);
    assert_eq!(results(&server.last_request()), ["fine"]);
}

#[test]
fn a_broken_head_of_an_agent_a_command_or_a_skill_is_named() {
    let server = ModelServer::start([Answer::call("good", json!({})), Answer::text("ok")]);
    let broken = "---\ndescription: [\n---\nx\n";
    let folder = with(&server)
        .file(".opencode/agent/broken-agent.md", broken)
        .file(".opencode/command/broken-command.md", broken)
        .file(".opencode/skill/broken-skill/SKILL.md", broken);
    let ran = folder.tw(&RUN).expect(0);
    for name in ["broken-agent.md", "broken-command.md", "broken-skill/SKILL.md"] {
        assert_eq!(ran.stderr.matches(name).count(), 1, "{name} in\n{}", ran.stderr);
    }
    assert_eq!(results(&server.last_request()), ["fine"]);
}

#[test]
fn nothing_outside_is_read_by_importing_it() {
    let server = ModelServer::start([
        Answer::call("reach", json!({})),
        Answer::call(
            "execute",
            json!({ "code": "return await import('../secret.json').then(() => 'read', (e) => e.message)" }),
        ),
        Answer::text("ok"),
    ]);
    let reach = "export default { description: 'd', args: {}, execute: async () => { const said = []; for (const f of ['../../../secret.json', '../../data.json', '../../code.js']) said.push(await import(f).then(() => 'read', (e) => e.message.includes('outside of what scripts may import') ? 'refused' : e.message)); try { require('../../../secret.json'); said.push('read') } catch { said.push('refused') } return said.join(' ') } }\n";
    let folder = with(&server)
        .file(".opencode/tool/reach.js", reach)
        .file("../secret.json", r#"{"key": 1}"#)
        .file("data.json", "{}")
        .file("code.js", "export const x = 1\n")
        .file("opencode.json", r#"{ "experimental": { "code_mode": true } }"#);
    folder.tw(&RUN).expect(0);
    let results = results(&server.last_request());
    assert_eq!(results[0], "refused refused read refused");
    assert!(results[1].contains("a program of code mode imports no files"), "{}", results[1]);
}
