//! Tools and plugins as people write them, all of them at once in one folder, called by the model.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::path::Path;

use serde_json::{Value, json};
use toolwright_testkit::{Answer, Folder, ModelServer, Wire};

use crate::{assert_history_is_valid, folder, results};

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().flatten() {
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// A project that has them all.
fn project(server: &ModelServer, parts: &[&str]) -> Folder {
    let folder = folder()
        .with_model(server, Wire::Anthropic)
        .file(
            "data/users.json",
            r#"[{"name":"Bo","age":3},{"name":"Al","age":5},{"name":"Cy","age":3}]"#,
        )
        .file("src/a.ts", "// TODO: first\nconst x = 1\n// FIXME second\n")
        .file("README.md", "# One\ntext\n## Two\n#### Deep\n")
        .file("log.txt", "a\nerror 1\nb\nerror 2\nerror 3\nerror 4\n")
        .file("package.json", r#"{ "name": "x", "scripts": { "test": "run" } }"#)
        .file(".opencode/node_modules/tiny-pad/package.json", r#"{ "main": "./index.js" }"#)
        .file(
            ".opencode/node_modules/tiny-pad/index.js",
            "module.exports = (s, n) => s.padStart(n, '.')\n",
        )
        .file(
            ".opencode/node_modules/@corpus/stars/package.json",
            r#"{ "type": "module", "exports": { ".": { "import": "./main.mjs" } } }"#,
        )
        .file(
            ".opencode/node_modules/@corpus/stars/main.mjs",
            "export const stars = (s) => `*${s}*`\n",
        )
        .env("CORPUS_MARK", "marked");
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus");
    for part in parts {
        copy(&corpus.join(part), &folder.work().join(".opencode").join(part));
    }
    folder
}

/// Answers like a small service of issues, for as long as the test runs.
fn service() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut reader = BufReader::new(stream);
            let mut head = String::new();
            let mut length = 0;
            loop {
                let mut line = String::new();
                reader.read_line(&mut line).unwrap();
                if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
                    length = value.trim().parse().unwrap();
                }
                if line.trim().is_empty() {
                    break;
                }
                head.push_str(&line);
            }
            let mut body = vec![0; length];
            reader.read_exact(&mut body).unwrap();
            let (status, answer) = match head.lines().next().unwrap_or_default() {
                "GET /issues/7?full=1 HTTP/1.1" => {
                    ("200 OK", json!({ "title": "Crash", "labels": ["bug", "p1"] }))
                }
                "POST /issues HTTP/1.1" => {
                    let given: Value = serde_json::from_slice(&body).unwrap();
                    ("201 Created", json!({ "number": given["title"].as_str().unwrap().len() }))
                }
                _ => ("404 Not Found", json!("no such thing")),
            };
            let answer = answer.to_string();
            let text = format!(
                "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{answer}",
                answer.len()
            );
            reader.get_mut().write_all(text.as_bytes()).ok();
        }
    });
    address
}

#[test]
fn tools_as_people_write_them_work() {
    let calls: Vec<(&str, Value, &str)> = vec![
        (
            "query",
            json!({ "table": "users", "where": { "age": 3 }, "columns": ["name"], "orderBy": "name" }),
            r#"{"total":2,"rows":[{"name":"Bo"},{"name":"Cy"}]}"#,
        ),
        ("query", json!({ "table": "users; drop" }), "table"),
        ("http_get", json!({ "number": 7 }), "#7 Crash [bug, p1]"),
        ("http_get", json!({ "number": 8 }), "404 Not Found: \"no such thing\""),
        ("http_create", json!({ "title": "Fix it" }), "created #6"),
        ("git_recent", json!({ "count": 2 }), "git failed"),
        ("todos", json!({ "kind": "any" }), "src/a.ts:1 first\nsrc/a.ts:3 second"),
        ("words", json!({ "text": "a b\nc" }), "3 words, 2 lines, 5 characters"),
        ("slug", json!({ "title": "  Héllo, World! " }), "he-llo-world"),
        ("dates", json!({ "from": "2026-01-01", "to": "2026-01-20" }), "19 days (2 weeks)"),
        ("dates", json!({ "from": "2026-01-01", "to": "never" }), "not a date"),
        ("semver", json!({ "version": "v1.2.3", "part": "minor" }), "1.3.0"),
        ("semver", json!({ "version": "1.2", "part": "minor" }), "does not match"),
        ("encode_base64", json!({ "text": "hé" }), "aMOp"),
        ("encode_base64", json!({ "text": "aMOp", "decode": true }), "hé"),
        (
            "encode_sha",
            json!({ "text": "abc" }),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
        ),
        ("encode_uuid", json!({}), "-4"),
        ("csv", json!({ "text": "a,b\n1,\"x, y\"\n" }), r#"[{"a":"1","b":"x, y"}]"#),
        (
            "template",
            json!({ "template": "{{name}}: {{items}} = {{total}}", "values": { "name": "Bo", "items": [{ "label": "tea", "price": 2 }, { "label": "bun", "price": 1.5 }] } }),
            "Bo: tea 2.00; bun 1.50 = 3.50",
        ),
        ("shape", json!({ "shape": { "kind": "circle", "radius": 2 }, "unit": "m2" }), "12.6 m2"),
        ("shape", json!({ "shape": { "kind": "rectangle", "width": 2, "height": 4 } }), "8.0"),
        ("toc", json!({ "file": "README.md" }), "- [One](#one)\n  - [Two](#two)"),
        ("toc", json!({ "file": "missing.md" }), "there is no file missing.md"),
        ("changelog", json!({ "line": "corpus" }), "added to CHANGES.md"),
        ("check", json!({ "commands": ["true", "exit 3"] }), "true: ok\nexit 3: failed (3)"),
        ("scripts", json!({}), "test: run"),
        ("system", json!({}), "platform marked lf string"),
        (
            "link",
            json!({ "url": "https://x.org:81/a?b=1#c", "set": { "b": "2 3" } }),
            "x.org 81 /a https://x.org:81/a?b=2+3 /a b/c",
        ),
        ("tail", json!({ "file": "log.txt", "word": "error" }), "4:error 2\n5:error 3\n6:error 4"),
        ("python", json!({ "a": 2, "b": 40 }), "42"),
        ("pad", json!({ "text": "x", "width": 3 }), "*..x*"),
        ("picture", json!({}), "here it is"),
        ("deploy", json!({ "target": "staging" }), "deployed to staging"),
        ("cache", json!({ "key": "ABC" }), "abc: 1"),
        ("cache", json!({ "key": "abc" }), "abc: 2"),
        ("failing", json!({}), "Trouble: as it was told to (at "),
    ];
    let answers = calls.iter().map(|(name, arguments, _)| Answer::call(name, arguments.clone()));
    let server = ModelServer::start(answers.chain([Answer::text("done")]));
    let folder = project(&server, &["tool"]).env("CORPUS_API", &service());
    let ran = folder.tw(&["run", "--trust", "--auto", "-m", "anthropic/m", "go"]).expect(0);
    assert!(!ran.stderr.contains("is not used"), "{}", ran.stderr);
    let request = server.last_request();
    assert_history_is_valid(&request);
    let results = results(&request);
    assert_eq!(results.len(), calls.len());
    for ((name, arguments, expected), result) in calls.iter().zip(&results) {
        assert!(result.contains(expected), "{name} {arguments}: {result}");
    }
    assert_eq!(folder.read("CHANGES.md"), "# Changes\n- corpus\n");
}

#[test]
fn plugins_as_people_write_them_work_together() {
    let server = ModelServer::start([
        Answer::call("read", json!({ "filePath": ".env.local" })),
        Answer::call("write", json!({ "filePath": "note.txt", "content": "a   \nb\n" })),
        Answer::call("bash", json!({ "command": "seq 3" })),
        Answer::call("bash", json!({ "command": "rm -rf build" })),
        Answer::call("project_age", json!({})),
        Answer::text("done"),
    ]);
    let folder = project(&server, &["plugin"])
        .file(".env.local", "A=1")
        .file("opencode.json", r#"{ "permission": { "edit": "allow", "bash": { "*": "ask", "echo *": "allow", "sed *": "allow" } } }"#);
    let ran = folder.tw(&["run", "--trust", "-m", "anthropic/m", "please :ship"]);
    assert!(!ran.stderr.contains("is not used"), "{}", ran.stderr);
    let request = server.last_request();
    assert_history_is_valid(&request);
    let results = results(&request);
    assert!(results[0].contains("Environment files stay closed"), "{}", results[0]);
    assert!(results[1].contains("(formatted)"), "{}", results[1]);
    assert_eq!(folder.read("note.txt"), "a\nb\n");
    assert!(results[2].starts_with("1\n2\n3"), "{}", results[2]);
    assert!(results[3].contains("is not done in this house"), "{}", results[3]);
    assert_eq!(results[4], "young (string)");
    let first = &server.requests()[0];
    assert!(first.messages()[0].to_string().contains("Write the release notes and stop."));
    assert!(first.body["system"].to_string().contains("-house."));
    assert_eq!(first.body["temperature"], 0.3);
    assert!(folder.read("notices.txt").contains("finished: session.idle"));
    let journal = folder.read("journal.txt");
    assert!(journal.contains("session.created") && journal.contains("session.idle"), "{journal}");
}
