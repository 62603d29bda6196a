//! What a script cannot do, however it tries: read on without end, ask without end, crash us.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::time::Duration;

use serde_json::json;
use support::Shop;

fn tool(body: &str) -> String {
    format!(
        "import fs from 'node:fs'\nimport {{ execSync }} from 'node:child_process'\nexport default {{ description: 'd', args: {{}}, execute: async () => {{ {body} }} }}\n"
    )
}

async fn said(shop: &Shop, body: &str) -> String {
    let script = shop.tools("t.js", &tool(body));
    match shop.call(&script, "t", json!({})).await {
        Ok(text) => text,
        Err(error) => format!("ERROR {error}"),
    }
}

#[tokio::test]
async fn what_never_ends_is_no_file() {
    let shop = Shop::new();
    let body = "const out = []; for (const f of ['/dev/zero', '/dev/urandom']) { try { fs.readFileSync(f); out.push('read') } catch (e) { out.push(e.code) } } execSync('mkfifo pipe'); try { fs.writeFileSync('pipe', 'x'); out.push('written') } catch (e) { out.push(e.code) } return out.join(' ')";
    assert_eq!(said(&shop, body).await, "EIO EIO EIO");
}

#[tokio::test]
async fn a_folder_is_not_copied_into_itself_and_links_stay_links() {
    let shop = Shop::new();
    shop.write("a/b/x.txt", "x");
    std::os::unix::fs::symlink("/etc/hostname", shop.path("a/link")).unwrap();
    let body = "let own = ''; try { fs.cpSync('a', 'a/b/c', { recursive: true }) } catch (e) { own = e.message } fs.cpSync('a', 'z', { recursive: true }); return `${own.includes('into itself')} ${fs.readFileSync('z/b/x.txt', 'utf8')} ${fs.lstatSync('z/link').isSymbolicLink()}`";
    assert_eq!(said(&shop, body).await, "true x true");
}

#[tokio::test]
async fn a_link_is_removed_and_not_what_it_leads_to() {
    let shop = Shop::new();
    shop.write("kept.txt", "x");
    std::os::unix::fs::symlink(shop.path("kept.txt"), shop.path("link")).unwrap();
    let body = "fs.unlinkSync('link'); return String(fs.existsSync('kept.txt'))";
    assert_eq!(said(&shop, body).await, "true");
}

#[tokio::test]
async fn odd_times_and_floods_of_requests_are_taken() {
    let shop = Shop::new();
    let body = "const all = []; for (let i = 0; i < 6000; i++) all.push(new Promise((r) => setTimeout(r, 1))); const many = await Promise.allSettled(Array.from({ length: 5000 }, () => fs.promises.stat('.'))); const json = JSON.stringify; JSON.stringify = (v) => (v && 'ms' in v ? '{\"ms\":-1e300}' : json(v)); await new Promise((r) => setTimeout(r, 1)); JSON.stringify = json; return many.length === 5000 ? 'taken' : 'lost'";
    assert_eq!(said(&shop, body).await, "taken");
}

#[tokio::test]
async fn requests_beyond_the_cap_are_refused_and_the_others_go_on() {
    let shop = Shop::new();
    // A timer is a request that waits; the one after the last that fits is not let in.
    let body = "for (let i = 0; i < 4095; i++) setTimeout(() => {}, 600000); const fits = await fs.promises.stat('.').then(() => 'fits', (e) => e.message); setTimeout(() => {}, 600000); const more = await fs.promises.stat('.').then(() => 'let in', (e) => e.message); return `${fits}; ${more}`";
    assert_eq!(said(&shop, body).await, "fits; more than 4096 requests wait");
}

#[tokio::test]
async fn what_is_thrown_without_an_error_is_no_lack_of_memory() {
    let shop = Shop::new();
    for (body, expected) in [
        ("throw null", "ERROR it threw null"),
        ("throw undefined", "ERROR it threw undefined"),
        ("throw 5", "ERROR 5"),
        ("throw 'words'", "ERROR words"),
        ("throw { a: 1 }", "ERROR { a: 1 }"),
        ("throw new Error('we are out of memory cards')", "ERROR we are out of memory cards"),
    ] {
        let said = said(&shop, body).await;
        assert!(said.starts_with(expected), "{body}: {said}");
    }
    // With small things there is no room for an error in the end.
    let small = "const all = []; while (true) all.push({ a: {}, b: [] })";
    let said = said(&shop, small).await;
    assert!(said.contains("more than 64 MiB"), "{said}");
}

#[tokio::test]
async fn what_is_nested_too_deeply_is_an_error_and_no_crash() {
    let shop = Shop::new();
    for (open, close) in [("(", ")"), ("[", "]"), ("{a:", "}"), ("!", ""), ("f(", ")"), ("a=>", "")]
    {
        for count in [900, 100_000] {
            let text = format!("module.exports = {}1{}", open.repeat(count), close.repeat(count));
            let script = shop.tools("deep.js", &text);
            // Whatever it says: we are still here.
            drop(script.describe(None, None).await);
        }
    }
    let script = shop.tools(
        "deep.js",
        "module.exports = { a: { description: 'd', args: {}, execute: () => 'fine' } }",
    );
    assert_eq!(shop.call(&script, "deep_a", json!({})).await.unwrap(), "fine");
}

#[tokio::test]
async fn a_stop_is_heard_while_the_script_waits_without_a_promise() {
    let shop = Shop::new();
    let script = shop.tools("wait.js", &tool("execSync('sleep 1000'); return 'never'"));
    let soon = Duration::from_millis(300);
    let error = shop.call_within(&script, "wait", json!({}), soon).await.unwrap_err();
    assert!(error.to_string().contains("still at work after 0.3 s"), "{error}");
    shop.write("tools/wait.js", &tool("return 'again'"));
    assert_eq!(shop.call(&script, "wait", json!({})).await.unwrap(), "again");
}

#[tokio::test]
async fn nodes_and_buns_world_is_there() {
    let shop = Shop::new();
    shop.write("in.txt", "one\ntwo\n");
    shop.write("tools/beside.json", r#"{"n": 5}"#);
    let text = r#"
import { Readable, Transform } from "node:stream"
import { pipeline } from "node:stream/promises"
import { createInterface } from "node:readline"
import { createReadStream, createWriteStream } from "node:fs"
import { randomFillSync, createCipheriv, scryptSync } from "node:crypto"
import { isMainThread } from "node:worker_threads"
import { parseArgs, styleText } from "node:util"
import { win32 } from "node:path"
import constants from "node:constants"
import { gzipSync } from "node:zlib"
import beside from "./beside.json"
const checks = {
  meta: () => import.meta.url.startsWith("file:///") && import.meta.dirname === __dirname && import.meta.filename === __filename,
  require: () => require("./beside.json").n === 5 && beside.n === 5,
  intl: () => new Intl.NumberFormat("en-US").format(1234567.891) === "1,234,567.891" && Intl.DateTimeFormat().resolvedOptions().timeZone.length > 0,
  date: () => new Intl.DateTimeFormat("en-US", { year: "numeric", month: "short", day: "numeric", timeZone: "UTC" }).format(new Date(0)) === "Jan 1, 1970",
  transform: async () => { const up = new Transform({ transform(c, _e, done) { done(null, c.toString().toUpperCase()) } }); let out = ""; up.on("data", (d) => (out += d)); await pipeline(Readable.from(["a", "b"]), up); await new Promise((r) => setTimeout(r, 5)); return out === "AB" },
  iterate: async () => { let out = ""; for await (const piece of Readable.from(["x", "y"])) out += piece; return out === "xy" },
  web: async () => (await new Response(new ReadableStream({ start(c) { c.enqueue(new TextEncoder().encode("hé")); c.close() } })).text()) === "hé",
  through: async () => { let out = ""; for await (const s of new Response("abc").body.pipeThrough(new TextDecoderStream())) out += s; return out === "abc" },
  decoder: () => { const d = new TextDecoder(); const b = new TextEncoder().encode("é"); return d.decode(b.slice(0, 1), { stream: true }) + d.decode(b.slice(1)) === "é" },
  names: () => randomFillSync(new Uint8Array(4)).length === 4 && isMainThread && constants.O_CREAT === 64 && win32.sep === "\\",
  absent: () => { try { createCipheriv(); return false } catch (e) { return e.message.includes("crypto.createCipheriv is not available") } },
  absent2: () => { try { gzipSync(""); return false } catch (e) { return e.message.includes("zlib.gzipSync is not available") } },
  style: () => typeof parseArgs === "function" && styleText("red", "t") === "t",
  buffer: () => Buffer.from("hello").indexOf("llo") === 2 && Buffer.from("hello").includes("ell"),
}
export default { description: "d", args: {}, async execute() { const bad = []; for (const [name, check] of Object.entries(checks)) { try { if (!(await check())) bad.push(name) } catch (e) { bad.push(`${name}: ${e.message}`) } } return bad.join("; ") || "all" } }
"#;
    let script = shop.tools("world.ts", text);
    assert_eq!(shop.call(&script, "world", json!({})).await.unwrap(), "all");
}
