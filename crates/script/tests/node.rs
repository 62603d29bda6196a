//! What scripts use of Node is as Node has it.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use serde_json::json;
use support::Shop;

/// A tool of this body, called once.
async fn said(shop: &Shop, body: &str) -> String {
    let text = format!(
        "import fs from 'node:fs'\nimport {{ execSync, spawn }} from 'node:child_process'\nexport default {{ description: 'd', args: {{}}, execute: async () => {{ {body} }} }}\n"
    );
    let script = shop.tools("t.js", &text);
    match shop.call(&script, "t", json!({})).await {
        Ok(text) => text,
        Err(error) => format!("ERROR {error}"),
    }
}

/// Each line of `buffer.txt` is an expression and what Node 20 makes of it.
#[tokio::test]
async fn buffers_are_those_of_node() {
    let cases: Vec<(&str, &str)> =
        include_str!("buffer.txt").lines().map(|line| line.split_once("  //= ").unwrap()).collect();
    let works: Vec<String> = cases.iter().map(|(code, _)| format!("() => {code}")).collect();
    let body = format!(
        "const show = (v) => Buffer.isBuffer(v) ? `<${{[...v].map((b) => b.toString(16).padStart(2, '0')).join(' ')}}>` : Array.isArray(v) ? `[${{v.map(show).join(', ')}}]` : JSON.stringify(v)
return [{}].map((work) => {{ try {{ return show(work()) }} catch (e) {{ return `! ${{e.name}} ${{e.code}}` }} }}).join('\\n')",
        works.join(",\n")
    );
    let text = said(&Shop::new(), &body).await;
    let given: Vec<&str> = text.lines().collect();
    assert_eq!(given.len(), cases.len(), "{text}");
    let wrong: Vec<String> = cases
        .iter()
        .zip(given)
        .filter(|((_, wanted), given)| wanted != given)
        .map(|((code, wanted), given)| format!("{code}\n  wanted {wanted}\n  given  {given}"))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test]
async fn an_error_of_a_file_says_what_failed_where() {
    let shop = Shop::new();
    shop.write("there.txt", "x");
    let body = "const out = []; for (const work of [() => fs.readFileSync('no.txt'), () => fs.readdirSync('no'), () => fs.accessSync('no'), () => fs.mkdirSync('there.txt'), () => fs.unlinkSync('no')]) { try { work() } catch (e) { out.push([e.code, e.errno, e.syscall, e.path.split('/').at(-1)].join(' ')) } } await fs.promises.lstat('no').catch((e) => out.push(e.message.replace(/'.*\\//, \"'\"))); return out.join('\\n')";
    let wanted = [
        "ENOENT -2 open no.txt",
        "ENOENT -2 scandir no",
        "ENOENT -2 access no",
        "EEXIST -17 mkdir there.txt",
        "ENOENT -2 unlink no",
        "ENOENT: no such file or directory, lstat 'no'",
    ];
    assert_eq!(said(&shop, body).await.lines().collect::<Vec<_>>(), wanted);
}

#[tokio::test]
async fn times_are_set_without_opening_a_pipe() {
    let body = "execSync('mkfifo pipe'); fs.utimesSync('pipe', 1, 2.5); await fs.promises.utimes('pipe', 3, 4.5); const s = fs.statSync('pipe'); return `${s.atimeMs} ${s.mtimeMs}`";
    assert_eq!(said(&Shop::new(), body).await, "3000 4500");
}

/// A child that gives back what it is told, and how it is told.
#[tokio::test]
async fn a_child_gets_what_is_written_to_it_later_too() {
    let shop = Shop::new();
    shop.write("words.txt", "from a file");
    let cases = [
        ("at once", "child.stdin.end('at once')"),
        ("in two pieces", "child.stdin.write('in two '); child.stdin.end('pieces')"),
        (
            "in a moment",
            "await null; await null; child.stdin.write('in a '); child.stdin.end('moment')",
        ),
        (
            "with a pause",
            "child.stdin.write('with '); setTimeout(() => child.stdin.end('a pause'), 50)",
        ),
        ("encoded", "child.stdin.end('656e636f646564', 'hex')"),
        ("from a file", "fs.createReadStream('words.txt').pipe(child.stdin)"),
        ("", "child.stdin.end()"),
        ("", ""),
    ];
    for (wanted, write) in cases {
        let body = format!(
            "const child = spawn('cat'); let text = ''; child.stdout.on('data', (d) => (text += d)); const closed = new Promise((go) => child.on('close', go)); {write}; await closed; return text"
        );
        assert_eq!(said(&shop, &body).await, wanted, "{write}");
    }
}

#[tokio::test]
async fn what_comes_too_late_for_a_child_is_not_lost_in_silence() {
    let body = "const child = spawn('cat'); await new Promise((go) => child.on('close', go)); const said = []; try { child.stdin.write('x') } catch (e) { said.push(e.code) } child.stdin.on('error', (e) => said.push(e.syscall)); child.stdin.write('x'); const none = spawn('true', [], { stdio: ['ignore', 'pipe', 'pipe'] }); said.push(String(none.stdin)); return said.join(' ')";
    assert_eq!(said(&Shop::new(), body).await, "EPIPE write null");
}
