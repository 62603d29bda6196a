//! Files with tools, run for real: a guard that writes down what was asked stands in for the rules.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use serde_json::{Value, json};
use support::{Shop, thrown};
use toolwright_script::ScriptError;

#[tokio::test]
async fn a_typescript_tool_is_described_and_called() {
    let shop = Shop::new();
    let script = shop.tools(
        "math.ts",
        r#"
import { tool } from "@opencode-ai/plugin"
import type { Unused } from "./types"
import { twice } from "./lib/helper"

enum Mode { Sum = "sum", Product = "product" }
interface Options { mode: Mode }

export default tool({
  description: "Calculates",
  args: {
    a: tool.schema.number().describe("first"),
    b: tool.schema.number().int().min(0).optional(),
    mode: tool.schema.enum(["sum", "product"]).default("sum"),
  },
  async execute(args, context): Promise<string> {
    const options = { mode: args.mode as Mode } satisfies Options
    const b = args.b ?? 1
    return `${twice(options.mode === Mode.Sum ? args.a + b : args.a * b)} in ${context.agent}`
  },
})
export const other = tool({ description: "o", args: {}, async execute() { return "other" } })
export const helper = (x: number) => x
"#,
    );
    shop.write("tools/lib/helper.ts", "export const twice = (x: number): number => x * 2\n");
    let described = script.describe(None, None).await.unwrap();
    assert_eq!(described.problems, Vec::<String>::new());
    let names: Vec<_> = described.tools.iter().map(|t| t.name.as_str()).collect();
    assert_eq!(names, ["math", "math_other"]);
    assert_eq!(
        described.tools[0].parameters,
        json!({
            "type": "object",
            "properties": {
                "a": { "type": "number", "description": "first" },
                "b": { "type": "integer", "minimum": 0 },
                "mode": { "type": "string", "enum": ["sum", "product"], "default": "sum" },
            },
            "required": ["a"],
        })
    );
    assert_eq!(shop.call(&script, "math", json!({ "a": 3 })).await.unwrap(), "8 in build");
    let all = json!({ "a": 3, "b": 4, "mode": "product" });
    assert_eq!(shop.call(&script, "math", all).await.unwrap(), "24 in build");
    let wrong = shop.call(&script, "math", json!({ "a": "x", "b": -1 })).await.unwrap_err();
    let said = thrown(&wrong);
    assert!(said.contains("a: Invalid input: expected number, received string"), "{said}");
    assert!(said.contains("b: Too small"), "{said}");
}

#[tokio::test]
async fn the_older_form_works_too() {
    let shop = Shop::new();
    shop.write("tools/lib.js", "exports.greet = (name) => `hello ${name}`\n");
    let script = shop.tools(
        "old.js",
        r#"
const { tool } = require("@opencode-ai/plugin")
const path = require("node:path")
const lib = require("./lib")
module.exports = tool({
  description: "greets",
  args: { name: tool.schema.string() },
  execute: async ({ name }) => lib.greet(path.basename(name)),
})
"#,
    );
    assert_eq!(shop.call(&script, "old", json!({ "name": "/a/b" })).await.unwrap(), "hello b");
    let several = shop.tools(
        "several.js",
        "module.exports = { a: { description: 'a', args: {}, execute: () => 'A' }, b: { description: 'b', args: null, execute: () => 'B' } }",
    );
    let names: Vec<_> =
        several.describe(None, None).await.unwrap().tools.into_iter().map(|t| t.name).collect();
    assert_eq!(names, ["several_a", "several_b"]);
}

#[tokio::test]
async fn what_is_thrown_is_told_with_its_place_in_the_typescript() {
    let shop = Shop::new();
    let script = shop.tools(
        "bad.ts",
        "interface A {\n  x: string\n}\n\nexport default {\n  description: 'd',\n  args: {},\n  async execute(_: A) {\n    throw new TypeError('no luck')\n  },\n}\n",
    );
    let error = shop.call(&script, "bad", json!({})).await.unwrap_err();
    let said = thrown(&error);
    assert!(said.starts_with("TypeError: no luck (at "), "{said}");
    assert!(said.contains("bad.ts:9:"), "{said}");
    let broken = shop.tools("broken.ts", "export default {\n  description: = 1\n}\n");
    let error = broken.describe(None, None).await.unwrap_err();
    assert!(thrown(&error).contains("broken.ts:2:16: "), "{error}");
    let throwing = shop.tools("throwing.js", "export const a = 1\nthrow new Error('at load')\n");
    let error = throwing.describe(None, None).await.unwrap_err();
    assert!(thrown(&error).contains("at load"), "{error}");
    assert!(thrown(&error).contains("throwing.js:2:"), "{error}");
}

#[tokio::test]
async fn an_endless_loop_ends_and_the_next_call_works() {
    let shop = Shop::new();
    let script = shop.tools(
        "loop.js",
        "export default { description: 'd', args: {}, execute: async ({ spin }) => { while (spin) {} ; return 'fine' } }",
    );
    let quick = std::time::Duration::from_millis(300);
    let error =
        shop.call_within(&script, "loop", json!({ "spin": true }), quick).await.unwrap_err();
    assert!(matches!(error, ScriptError::Deadline(_)), "{error}");
    assert_eq!(shop.call(&script, "loop", json!({ "spin": false })).await.unwrap(), "fine");
}

#[tokio::test]
async fn a_memory_bomb_ends_and_the_next_call_works() {
    let shop = Shop::new();
    let script = shop.tools(
        "bomb.js",
        "export default { description: 'd', args: {}, execute: async ({ boom }) => { const a = []; while (boom) a.push(new Array(10000).fill(1.5)); return 'fine' } }",
    );
    let error = shop.call(&script, "bomb", json!({ "boom": true })).await.unwrap_err();
    assert_eq!(error, ScriptError::Memory);
    assert_eq!(shop.call(&script, "bomb", json!({ "boom": false })).await.unwrap(), "fine");
}

#[tokio::test]
async fn a_call_that_waits_hears_that_it_must_stop() {
    let shop = Shop::new();
    let script = shop.tools(
        "wait.js",
        "export default { description: 'd', args: {}, execute: (a, c) => new Promise((resolve) => c.abort.addEventListener('abort', () => resolve('stopped early'))) }",
    );
    let quick = std::time::Duration::from_millis(50);
    let said = shop.call_within(&script, "wait", json!({}), quick).await.unwrap();
    assert_eq!(said, "stopped early");
}

#[tokio::test]
async fn calls_of_one_script_run_beside_each_other() {
    let shop = Shop::new();
    let script = shop.tools(
        "gate.js",
        "let open; const door = new Promise((r) => { open = r });\nexport default { description: 'd', args: {}, execute: async ({ opener }) => { if (opener) { open(); return 'opened' } await door; return 'through' } }",
    );
    let (waiting, opening) = tokio::join!(
        shop.call(&script, "gate", json!({ "opener": false })),
        shop.call(&script, "gate", json!({ "opener": true })),
    );
    assert_eq!((waiting.unwrap().as_str(), opening.unwrap().as_str()), ("through", "opened"));
}

#[tokio::test]
async fn files_processes_and_questions_go_through_the_guard() {
    let shop = Shop::new();
    shop.write("notes.txt", "hello\n");
    let script = shop.tools(
        "host.ts",
        r#"
import fs from "node:fs"
import { readFile, writeFile, mkdir, readdir } from "fs/promises"
import { execSync } from "child_process"
import { promisify } from "util"
import { exec } from "node:child_process"
import { createHash } from "crypto"
export default {
  description: "d",
  args: {},
  async execute(args: any, context: any) {
    const text = await readFile("notes.txt", "utf8")
    await mkdir("out/deep", { recursive: true })
    await writeFile("out/deep/a.txt", text.toUpperCase())
    fs.appendFileSync("out/deep/a.txt", "more")
    const names = (await readdir("out", { withFileTypes: true })).map((e) => `${e.name}:${e.isDirectory()}`)
    const shell = await Bun.$`printf '%s' ${"a b; c"}`.text()
    const piped = execSync("echo one | tr a-z A-Z", { encoding: "utf8" }).trim()
    const { stdout } = await promisify(exec)("echo two >&2; echo three")
    const failed = await Bun.$`exit 3`.nothrow()
    await context.ask({ permission: "deploy", patterns: ["prod"], always: ["*"], metadata: {} })
    const exists = [fs.existsSync("notes.txt"), fs.existsSync("missing")]
    const missing = await readFile("missing").catch((e: any) => e.code)
    const hash = createHash("sha256").update("x").digest("hex").slice(0, 8)
    context.metadata({ title: "half way", metadata: { n: 1 } })
    return JSON.stringify({ read: fs.readFileSync("out/deep/a.txt", "utf8"), names, shell, piped, stdout, code: failed.exitCode, exists, missing, hash })
  },
}
"#,
    );
    let said = shop.call(&script, "host", json!({})).await.unwrap();
    let said: Value = serde_json::from_str(&said).unwrap();
    assert_eq!(
        said,
        json!({
            "read": "HELLO\nmore", "names": ["deep:true"], "shell": "a b; c", "piped": "ONE",
            "stdout": "three\n", "code": 3, "exists": [true, false], "missing": "ENOENT",
            "hash": "2d711642",
        })
    );
    let asked = shop.asked();
    for expected in
        ["read notes.txt", "write out/deep/a.txt", "printf '%s' 'a b; c'", "deploy: prod"]
    {
        assert!(asked.iter().any(|a| a == expected), "{expected} in {asked:?}");
    }
}

#[tokio::test]
async fn what_is_refused_does_not_happen_and_can_be_caught() {
    let shop = Shop::refusing("out");
    let script = shop.tools(
        "sneaky.js",
        "import fs from 'fs'\nexport default { description: 'd', args: {}, execute: async () => { try { fs.writeFileSync('out.txt', 'x'); return 'written' } catch (e) { return `${e.code} ${e.message}` } } }",
    );
    let said = shop.call(&script, "sneaky", json!({})).await.unwrap();
    assert_eq!(said, "EACCES refused: write out.txt");
    assert!(!shop.path("out.txt").exists());
}

#[tokio::test]
async fn what_a_file_offers_is_remembered_until_it_or_what_it_imports_changes() {
    let shop = Shop::new();
    let memory = shop.path("memory");
    shop.write("tools/words.js", "export const words = 'first'\n");
    let text = "import { words } from './words.js'\nimport fs from 'fs'\nif (fs.existsSync('poison')) throw new Error('evaluated')\nexport default { description: words, args: {}, execute: () => '' }\n";
    shop.write("tools/t.js", text);
    let describe = async || {
        let script = shop.script("tools/t.js");
        let guard = shop.guard();
        script.describe(Some(&memory), Some(guard)).await.map(|d| d.tools[0].description.clone())
    };
    assert_eq!(describe().await.unwrap(), "first");
    shop.write("poison", "");
    assert_eq!(describe().await.unwrap(), "first", "it was not run again");
    shop.write("tools/words.js", "export const words = 'second'\n");
    assert!(describe().await.unwrap_err().to_string().contains("evaluated"));
    std::fs::remove_file(shop.path("poison")).unwrap();
    assert_eq!(describe().await.unwrap(), "second");
}

#[tokio::test]
async fn odd_results_still_reach_the_model() {
    let shop = Shop::new();
    let script = shop.tools(
        "odd.js",
        "const t = (execute) => ({ description: 'd', args: {}, execute });\nexport const number = t(() => 42); export const nothing = t(() => undefined); export const object = t(() => ({ a: 1 })); export const big = t(() => 'x'.repeat(10 * 1024 * 1024)); export const circle = t(() => { const o = {}; o.o = o; return o });",
    );
    assert_eq!(shop.call(&script, "odd_number", json!({})).await.unwrap(), "42");
    assert_eq!(shop.call(&script, "odd_nothing", json!({})).await.unwrap(), "");
    assert_eq!(shop.call(&script, "odd_object", json!({})).await.unwrap(), "{\n  \"a\": 1\n}");
    assert_eq!(shop.call(&script, "odd_big", json!({})).await.unwrap().len(), 10 << 20);
    let circle = shop.call(&script, "odd_circle", json!({})).await.unwrap_err();
    assert!(thrown(&circle).contains("circular"), "{circle}");
}

#[tokio::test]
async fn imports_may_go_in_circles() {
    let shop = Shop::new();
    shop.write("tools/lib/a.js", "import { b } from './b.js'\nexport const a = () => 'a' + b()\n");
    shop.write(
        "tools/lib/b.js",
        "import { a } from './a.js'\nexport const b = () => (a ? 'b' : '')\n",
    );
    let script = shop.tools(
        "c.js",
        "import { a } from './lib/a.js'\nexport default { description: 'd', args: {}, execute: () => a() }\n",
    );
    assert_eq!(shop.call(&script, "c", json!({})).await.unwrap(), "ab");
}

#[tokio::test]
async fn names_are_matched_and_the_older_client_for_the_web_answers() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        use std::io::{Read, Write};
        let (mut stream, _) = listener.accept().unwrap();
        let mut head = [0; 1024];
        assert!(stream.read(&mut head).unwrap() > 0);
        stream
            .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello")
            .unwrap();
    });
    let shop = Shop::new();
    shop.write("src/a.ts", "");
    shop.write("src/deep/b.ts", "");
    shop.write("src/c.js", "");
    let script = shop.tools(
        "web.ts",
        r#"
import http from "node:http"
import { Glob } from "bun"
import { Readable } from "stream"
export default {
  description: "d",
  args: {},
  async execute({ url }: { url: string }) {
    const found = (await Array.fromAsync(new Glob("src/**/*.{ts,tsx}").scan("."))).sort()
    const text = await new Promise((resolve, reject) => {
      http.get(url, (res) => {
        let all = ""
        res.setEncoding("utf8")
        res.on("data", (d) => (all += d))
        res.on("end", () => resolve(`${res.statusCode} ${all}`))
      }).on("error", reject)
    })
    let said = ""
    try { new Readable() } catch (e: any) { said = e.message }
    return [found.join(" "), new Glob("*.md").match("a.md"), text, said === ""].join("; ")
  },
}
"#,
    );
    let said = shop.call(&script, "web", json!({ "url": address })).await.unwrap();
    assert_eq!(said, "src/a.ts src/deep/b.ts; true; 200 hello; true");
}

#[tokio::test]
async fn schemas_of_a_zod_that_a_package_brings_along_are_understood() {
    let shop = Shop::new();
    // Both of the forms in which Zod keeps what it knows: by number (3 and 4), without its code.
    let script = shop.tools(
        "brought.ts",
        r#"
const three = (typeName: string, more = {}, description?: string) => ({ _def: { typeName, ...more }, description, safeParse: (v: unknown) => (v === "bad" ? { success: false, error: { issues: [{ code: "custom", message: "not bad", path: [] }] } } : { success: true, data: v ?? "usual" }) })
const four = (type: string, more = {}, description?: string) => ({ _zod: { def: { type, ...more } }, description, safeParse: (v: unknown) => ({ success: true, data: v }) })
const word = three("ZodString", { checks: [{ kind: "min", value: 2 }] }, "a word")
const count = four("number", { checks: [{ _zod: { def: { check: "greater_than", value: 1 } } }, { _zod: { def: { check: "number_format", format: "safeint" } } }] })
export default { description: "d", args: {
  word,
  mode: three("ZodDefault", { innerType: three("ZodEnum", { values: ["a", "b"] }), defaultValue: () => "a" }),
  list: three("ZodOptional", { innerType: three("ZodArray", { type: word }) }),
  count,
  kind: four("optional", { innerType: four("enum", { entries: { x: "x", y: "y" } }) }),
  inner: four("object", { shape: { a: four("string"), b: four("optional", { innerType: four("boolean") }) } }),
  either: four("union", { options: [four("string"), four("literal", { values: [5] })] }),
  none: four("nullable", { innerType: four("string") }),
}, async execute(args) { return JSON.stringify(args) } }
export const whole = { description: "w", args: four("object", { shape: { q: four("string") } }), async execute(args) { return args.q } }
"#,
    );
    let described = script.describe(None, None).await.unwrap();
    assert_eq!(described.problems, Vec::<String>::new());
    assert_eq!(
        described.tools[0].parameters,
        json!({
            "type": "object",
            "properties": {
                "word": { "type": "string", "minLength": 2, "description": "a word" },
                "mode": { "type": "string", "enum": ["a", "b"], "default": "a" },
                "list": { "type": "array", "items": { "type": "string", "minLength": 2, "description": "a word" } },
                "count": { "type": "integer", "minimum": 1 },
                "kind": { "type": "string", "enum": ["x", "y"] },
                "inner": { "type": "object", "properties": { "a": { "type": "string" }, "b": { "type": "boolean" } }, "required": ["a"] },
                "either": { "anyOf": [{ "type": "string" }, { "const": 5 }] },
                "none": { "type": ["string", "null"] },
            },
            "required": ["word", "count", "inner", "either", "none"],
        })
    );
    assert_eq!(described.tools[1].parameters["properties"], json!({ "q": { "type": "string" } }));
    let given =
        json!({ "word": "hi", "count": 3, "inner": { "a": "x" }, "either": 5, "none": null });
    let said = shop.call(&script, "brought", given).await.unwrap();
    assert!(said.contains(r#""mode":"usual""#) && said.contains(r#""count":3"#), "{said}");
    let wrong = shop.call(&script, "brought", json!({ "word": "bad", "count": 3 })).await;
    assert!(thrown(&wrong.unwrap_err()).contains("word: not bad"));
    assert_eq!(shop.call(&script, "brought_whole", json!({ "q": "yes" })).await.unwrap(), "yes");
}

#[tokio::test]
async fn what_packages_do_with_schemas_and_carry_along_does_not_stop_them() {
    let shop = Shop::new();
    let script = shop.tools(
        "carry.ts",
        r#"
import { tool } from "@opencode-ai/plugin"
const schema = tool.schema.string().describe("plain")
schema._zod.toJSONSchema = () => ({ type: "string", title: "own" })
const module = new WebAssembly.Module(new Uint8Array([0, 97, 115, 109]))
const piece = new WebAssembly.Instance(module, {})
export default tool({ description: "d", args: { schema }, async execute() {
  try { return String(piece.exports.count(1)) } catch (e) { return `${e.message}; ${await WebAssembly.instantiate(new Uint8Array()).catch((e) => e.message)}` }
} })
"#,
    );
    let described = script.describe(None, None).await.unwrap();
    let own = json!({ "type": "string", "title": "own" });
    assert_eq!(described.tools[0].parameters["properties"]["schema"], own);
    let words = "WebAssembly is not available in Toolwright's script engine";
    let said = shop.call(&script, "carry", json!({ "schema": "x" })).await.unwrap();
    assert_eq!(said, format!("{words}; {words}"));
}

#[tokio::test]
async fn packages_have_a_file_for_each_way_to_ask_for_them() {
    let shop = Shop::new();
    let write = |name: &str, text: &str| shop.write(&format!("tools/node_modules/{name}"), text);
    write("dual/package.json", r#"{ "exports": { "import": "./m.mjs", "require": "./c.cjs" } }"#);
    write("dual/m.mjs", "export const way = 'import'\n");
    write("dual/c.cjs", "exports.way = 'require'\n");
    write("user/package.json", r#"{ "main": "./u.cjs" }"#);
    write(
        "user/u.cjs",
        "exports.way = require('dual').way; exports.only = require('only').default; exports.late = () => require('late')\n",
    );
    // Newer packages have no other form: they can be required all the same, unless they wait.
    write("only/package.json", r#"{ "type": "module", "main": "./o.js" }"#);
    write("only/o.js", "import { way } from 'dual'\nexport default `only by ${way}`\n");
    write("late/package.json", r#"{ "type": "module", "main": "./l.js" }"#);
    write("late/l.js", "await new Promise((r) => setTimeout(r, 1))\nexport default 1\n");
    let script = shop.tools(
        "ways.ts",
        "import { way } from 'dual'\nimport user from 'user'\nexport default { description: 'd', args: {}, execute: () => { try { user.late() } catch (e) { return `${way} ${user.way} ${user.only}; ${e.message.includes('that waits')}` } } }\n",
    );
    let said = shop.call(&script, "ways", json!({})).await.unwrap();
    assert_eq!(said, "import require only by import; true");
}

#[tokio::test]
async fn what_cannot_be_is_named_with_who_wants_it() {
    let shop = Shop::new();
    shop.write("tools/node_modules/native/package.json", r#"{ "main": "./n.mjs" }"#);
    shop.write(
        "tools/node_modules/native/n.mjs",
        "import { dlopen } from 'bun:ffi'\nexport default dlopen\n",
    );
    let script = shop.tools("n.js", "import n from 'native'\nexport default { description: 'd', args: {}, execute: () => n() }\n");
    let said = script.describe(None, None).await.unwrap_err().to_string();
    assert!(said.contains("\"bun:ffi\"") && said.contains("node_modules/native/n.mjs"), "{said}");
}

#[tokio::test]
async fn what_we_put_before_a_first_line_does_not_count_in_its_places() {
    let shop = Shop::new();
    for (name, text) in [
        ("older.ts", "const x: any = null; throw new Error('broke')\n"),
        ("older.js", "const x = undefined; throw new Error('broke')\n"),
        ("newer.js", "export const d = 1; throw new Error('broke' + typeof __dirname)\n"),
    ] {
        let script = shop.tools(name, text);
        let said = script.describe(None, None).await.unwrap_err().to_string();
        let column: usize = said.rsplit_once(':').unwrap().1.trim_end_matches(')').parse().unwrap();
        let (from, to) = (text.find("throw").unwrap(), text.len());
        assert!((from..=to).contains(&column) && said.contains(&format!("{name}:1:")), "{said}");
    }
}

#[tokio::test]
async fn files_can_be_held_open_and_made_only_where_there_is_none() {
    let shop = Shop::new();
    shop.write("kept.txt", "kept");
    let script = shop.tools(
        "held.ts",
        r#"
import fs from "node:fs"
import { open } from "node:fs/promises"
export default { description: "d", args: {}, async execute() {
  const said: string[] = []
  const tried = (work: () => unknown) => { try { return String(work()) } catch (e) { return e.code } }
  said.push(tried(() => fs.writeFileSync("kept.txt", "lost", { flag: "wx" })), tried(() => fs.openSync("kept.txt", "wx")), fs.readFileSync("kept.txt", "utf8"))
  const fd = fs.openSync("new.txt", "w", 0o600)
  fs.writeSync(fd, "one ")
  fs.writeSync(fd, Buffer.from("xtwox"), 1, 3)
  fs.fsyncSync(fd)
  said.push(fs.readFileSync("new.txt", "utf8"), String(fs.fstatSync(fd).size))
  fs.closeSync(fd)
  said.push(tried(() => fs.writeSync(fd, "late")))
  const target = Buffer.alloc(3)
  const again = fs.openSync("new.txt", "r")
  said.push(`${fs.readSync(again, target, 0, 3, null)}${target}`, `${fs.readSync(again, target, 0, 3, 4)}${target}`, tried(() => fs.writeSync(again, "no")))
  const handle = await open("new.txt", "a")
  await handle.write("!")
  await handle.close()
  said.push(await fs.promises.readFile("new.txt", "utf8"))
  fs.linkSync("new.txt", "link.txt")
  fs.utimesSync("new.txt", 1, new Date(5000))
  said.push(String(fs.statSync("link.txt").mtimeMs), String(fs.statSync("link.txt").nlink))
  return said.join("|")
} }
"#,
    );
    let said = shop.call(&script, "held", json!({})).await.unwrap();
    assert_eq!(said, "EEXIST|EEXIST|kept|one two|7|EBADF|3one|3two|EBADF|one two!|5000|2");
}

/// What Node itself answers, for each of these.
#[tokio::test]
async fn a_command_line_is_taken_apart_as_node_does_it() {
    let shop = Shop::new();
    let script = shop.tools(
        "args.js",
        r#"
import { parseArgs } from "node:util"
const options = { v: { type: "boolean", short: "v" }, name: { type: "string", short: "n" }, m: { type: "string", multiple: true, short: "m" }, b: { type: "boolean", multiple: true, short: "b" }, d: { type: "string", default: "dd" } }
export default { description: "d", args: {}, execute: ({ args, more }) => { try { const { values, positionals } = parseArgs({ args, options, ...more }); return JSON.stringify([values, positionals]) } catch (e) { return e.code } } }
"#,
    );
    let strict = json!({ "allowPositionals": true });
    let loose = json!({ "strict": false });
    for (args, more, expected) in [
        (json!([]), &strict, r#"[{"d":"dd"},[]]"#),
        (json!(["-vb", "-b"]), &strict, r#"[{"v":true,"b":[true,true],"d":"dd"},[]]"#),
        (json!(["-vnfoo", "x"]), &strict, r#"[{"v":true,"name":"foo","d":"dd"},["x"]]"#),
        (json!(["-m", "1", "-m2", "--m=3"]), &strict, r#"[{"m":["1","2","3"],"d":"dd"},[]]"#),
        (json!(["--name=a=b", "--d", "e"]), &strict, r#"[{"name":"a=b","d":"e"},[]]"#),
        (json!(["a", "--", "-v"]), &strict, r#"[{"d":"dd"},["a","-v"]]"#),
        (json!(["-n", "-"]), &strict, r#"[{"name":"-","d":"dd"},[]]"#),
        (json!(["-n", "-x"]), &strict, "ERR_PARSE_ARGS_INVALID_OPTION_VALUE"),
        (json!(["--name"]), &strict, "ERR_PARSE_ARGS_INVALID_OPTION_VALUE"),
        (json!(["--v=1"]), &strict, "ERR_PARSE_ARGS_INVALID_OPTION_VALUE"),
        (json!(["--zz"]), &strict, "ERR_PARSE_ARGS_UNKNOWN_OPTION"),
        (json!(["x"]), &json!({}), "ERR_PARSE_ARGS_UNEXPECTED_POSITIONAL"),
        (
            json!(["--zz=1", "-z", "p", "--name"]),
            &loose,
            r#"[{"zz":"1","z":true,"name":true,"d":"dd"},["p"]]"#,
        ),
        (json!(["--no-v"]), &json!({ "allowNegative": true }), r#"[{"v":false,"d":"dd"},[]]"#),
    ] {
        let said = shop.call(&script, "args", json!({ "args": args, "more": more })).await.unwrap();
        assert_eq!(said, expected, "{args}");
    }
}
