//! What follows an edit in whole runs: language servers and formatters, their configuration, whom they
//! are trusted by, and their end.

use serde_json::{Value, json};
use toolwright_testkit::{Answer, Captured, Folder, ModelServer, Reply, Wire, processes_with};

use crate::{folder, results};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../lsp/tests/fake_server.py");

/// The scripted server; nothing where there is no Python to run it with.
fn server(marker: &str) -> Option<Value> {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let known = ["/usr/bin", "/usr/local/bin"].map(std::path::PathBuf::from);
    let mut programs =
        known.into_iter().chain(std::env::split_paths(&folders)).map(|f| f.join("python3"));
    let Some(python) = programs.find(|p| p.is_file()) else {
        println!("skipped: no python3");
        return None;
    };
    Some(json!({ "command": [python, SCRIPT, marker], "extensions": [".fake"] }))
}

fn call(folder: &Folder, tool: &str, arguments: Value, more: &[&str]) -> (i32, Value) {
    let arguments = arguments.to_string();
    let mut all = vec!["tools", "call", tool, &arguments, "--json"];
    all.extend(more);
    let run = folder.tw(&all);
    (run.code.unwrap(), serde_json::from_str(&run.stdout).unwrap_or_default())
}

fn said(request: &Captured) -> String {
    request.messages()[0]["content"].to_string()
}

#[test]
fn one_server_serves_a_run_with_its_sub_agents_and_ends_with_it() {
    let marker = format!("mark-{}-a", std::process::id());
    let Some(entry) = server(&marker) else { return };
    let model = ModelServer::answering(|request| {
        let turns = request.messages().len();
        match said(request) {
            s if s.contains("the piece") && turns == 1 => {
                Answer::call("write", json!({"filePath": "b.fake", "content": "ERROR"}))
            }
            s if s.contains("the piece") => Answer::text("Done."),
            _ if turns == 1 => {
                let task =
                    json!({"description": "x", "prompt": "the piece", "subagent_type": "general"});
                let edit =
                    json!({"filePath": "a.fake", "oldString": "one", "newString": "an ERROR"});
                Reply::default().call("edit", edit).call("task", task).into()
            }
            _ => Answer::text("All done."),
        }
    });
    let config = json!({ "lsp": { "fake": entry } }).to_string();
    let folder =
        folder().file("a.fake", "one\n").user_config(&config).with_model(&model, Wire::Anthropic);
    folder.tw(&["run", "--auto", "-m", "anthropic/m", "go"]).expect(0);
    let last = |word: &str| model.requests().into_iter().rfind(|r| said(r).contains(word)).unwrap();
    let own = &results(&last("go"))[0];
    assert!(
        own.contains("LSP errors detected in this file, please fix:\n<diagnostics file="),
        "{own}"
    );
    assert!(own.contains("\nERROR [1:4] an error of two lines\n</diagnostics>"), "{own}");
    let below = &results(&last("the piece"))[0];
    assert!(below.contains("ERROR [1:1] an error"), "{below}");
    assert_eq!(folder.read(".starts").lines().count(), 1, "one server for both");
    assert_eq!(processes_with(&marker), Vec::<String>::new());
}

#[test]
fn the_lsp_tool_is_there_where_servers_are_turned_on() {
    let Some(entry) = server("mark") else { return };
    let config = |lsp: Value| json!({ "lsp": lsp, "formatter": false }).to_string();
    for (setting, expected) in
        [(json!(false), false), (json!({ "fake": entry }), true), (json!(true), true)]
    {
        let folder = folder().user_config(&config(setting.clone()));
        let tools = folder.tw(&["tools", "--json"]).expect(0).stdout;
        assert_eq!(tools.contains("\"name\":\"lsp\""), expected, "{setting}");
    }
}

#[test]
fn a_rename_is_judged_as_the_edit_of_each_file_that_it_is() {
    let Some(entry) = server("mark") else { return };
    let config = json!({ "lsp": { "fake": entry }, "permission": { "edit": { "*": "allow", "b.*": "deny" } } });
    let folder =
        folder().file("a.fake", "old").file("b.fake", "old").user_config(&config.to_string());
    let rename = json!({ "operation": "rename", "filePath": "a.fake", "line": 1, "character": 1, "newName": "new" });
    let (code, outcome) = call(&folder, "lsp", rename.clone(), &[]);
    assert_eq!((code, &outcome["ending"]), (3, &json!("denied")), "{outcome}");
    assert_eq!((folder.read("a.fake"), folder.read("b.fake")), ("old".into(), "old".into()));
    std::fs::remove_file(folder.work().join("b.fake")).unwrap();
    let (code, outcome) = call(&folder, "lsp", rename, &[]);
    assert_eq!((code, &outcome["title"]), (0, &json!("rename a.fake:1:1")), "{outcome}");
    assert_eq!(folder.read("a.fake"), "new");
}

#[test]
fn what_an_untrusted_project_configures_is_not_run() {
    let formatter = json!({ "command": ["/bin/sh", "-c", "printf formatted > \"$1\"", "sh", "$FILE"],
        "extensions": [".x"] });
    let lsp = json!({ "command": ["/bin/sh", "-c", "echo > ran"], "extensions": [".x"] });
    let own = json!({ "formatter": { "own": formatter }, "lsp": { "own": lsp } }).to_string();
    let folder = folder().file("toolwright.json", &own);
    let write = json!({ "filePath": "a.x", "content": "x" });
    assert_eq!(call(&folder, "write", write.clone(), &["--auto"]).0, 0);
    assert_eq!((folder.read("a.x"), folder.work().join("ran").exists()), ("x".into(), false));
    let (code, outcome) = call(&folder, "write", write, &["--auto", "--trust"]);
    assert_eq!((code, folder.read("a.x")), (0, "formatted".into()), "{outcome}");
    assert!(folder.work().join("ran").exists());
    assert!(
        outcome["output"].as_str().unwrap().contains("The language server own cannot be used"),
        "{outcome}"
    );
}

#[test]
fn formatters_do_not_see_our_keys() {
    let script = "printf \"[$ANTHROPIC_API_KEY]\" > \"$1\"";
    let formatter =
        json!({ "command": ["/bin/sh", "-c", script, "sh", "$FILE"], "extensions": [".x"] });
    let config = json!({ "formatter": { "own": formatter } }).to_string();
    let folder = folder().user_config(&config).env("ANTHROPIC_API_KEY", "sk-secret-value");
    call(&folder, "write", json!({ "filePath": "a.x", "content": "x" }), &["--auto"]);
    assert_eq!(folder.read("a.x"), "[]");
}

#[test]
fn settings_that_cannot_work_are_named() {
    let cases = [
        (
            json!({ "lsp": { "mine": { "command": ["x"] } } }),
            "lsp.mine: a server of your own needs extensions",
        ),
        (
            json!({ "formatter": { "mine": { "extensions": [".x"] } } }),
            "formatter.mine: a formatter of your own needs",
        ),
        (json!({ "lsp": "yes" }), "expected true, false or an object"),
    ];
    for (config, expected) in cases {
        let run = folder().user_config(&config.to_string()).tw(&["tools"]);
        assert_eq!(run.code, Some(2), "{}", run.stderr);
        assert!(run.stderr.contains(expected), "{}", run.stderr);
    }
}
