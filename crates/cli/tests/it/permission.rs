use serde_json::{Value, json};
use toolwright_testkit::{Answer, ModelServer, Wire};

use crate::{assert_history_is_valid, folder, results};

#[test]
fn with_nobody_to_ask_an_ask_is_a_deny_and_the_status_says_so() {
    let server = ModelServer::start([
        Answer::call("write", json!({"filePath": "a.txt", "content": "x"})),
        Answer::text("I could not write it."),
    ]);
    let folder = folder().with_model(&server, Wire::Anthropic);
    let run = folder.tw(&["run", "-m", "anthropic/m", "write"]).expect(3);
    assert!(!folder.work().join("a.txt").exists());
    assert!(run.stderr.contains("denied: write a.txt"), "{}", run.stderr);
    assert!(run.stderr.contains("Nobody could be asked"), "{}", run.stderr);
    let request = server.last_request();
    assert_history_is_valid(&request);
    assert!(results(&request)[0].contains("nobody can be asked"));
}

#[test]
fn a_rule_denies_allows_and_is_named() {
    let server = ModelServer::start([
        Answer::call("bash", json!({"command": "rm -rf keep"})),
        Answer::call("bash", json!({"command": "touch made"})),
        Answer::text("ok"),
    ]);
    let folder = folder()
        .user_config(r#"{"permission":{"bash":{"*":"allow","rm *":"deny"}}}"#)
        .file("keep/file", "x")
        .with_model(&server, Wire::Anthropic);
    // The denied call was not the last thing tried: the run came to its end by another way.
    folder.tw(&["run", "--auto", "-m", "anthropic/m", "go"]).expect(0);
    assert!(folder.work().join("keep/file").exists());
    assert!(folder.work().join("made").exists());
    let denied = &results(&server.last_request())[0];
    assert!(denied.contains("rm *") && denied.contains("toolwright.json"), "{denied}");
}

#[test]
fn a_projects_own_rules_can_tighten_but_not_loosen_until_it_is_trusted() {
    let write = || Answer::call("write", json!({"filePath": "a.txt", "content": "x"}));
    let server = ModelServer::start([write(), Answer::text("no"), write(), Answer::text("yes")]);
    let folder = folder()
        .file("opencode.json", r#"{"permission":{"edit":"allow"}}"#)
        .with_model(&server, Wire::Anthropic);
    let run = folder.tw(&["run", "-m", "anthropic/m", "write"]).expect(3);
    assert!(run.stderr.contains("not trusted") && run.stderr.contains("--trust"), "{}", run.stderr);
    folder.tw(&["run", "--trust", "-m", "anthropic/m", "write"]).expect(0);
    assert_eq!(folder.read("a.txt"), "x");
}

#[test]
fn a_tool_that_is_always_denied_is_not_offered() {
    let server = ModelServer::start([Answer::text("ok")]);
    let folder = folder()
        .user_config(
            r#"{"permission":{"bash":"deny","edit":{"*":"deny","a":"allow"}},
                "agent":{"review":{"permission":{"edit":"deny"}}}}"#,
        )
        .with_model(&server, Wire::Anthropic);
    folder.tw(&["run", "-a", "review", "-m", "anthropic/m", "go"]).expect(0);
    let tools = server.last_request().body["tools"].as_array().unwrap().clone();
    let names: Vec<&str> = tools.iter().map(|t| t["name"].as_str().unwrap()).collect();
    for (name, is_offered) in [
        ("glob", true),
        ("list", true),
        ("read", true),
        ("task", true),
        ("bash", false),
        ("edit", false),
        ("write", false),
    ] {
        assert_eq!(names.contains(&name), is_offered, "{name}: {names:?}");
    }
}

#[test]
fn reading_outside_and_secrets_ask() {
    let server = ModelServer::start([
        Answer::call("read", json!({"filePath": ".env"})),
        Answer::call("read", json!({"filePath": "link"})),
        Answer::call("read", json!({"filePath": "../outside.txt"})),
        Answer::call("grep", json!({"pattern": "SECRET"})),
        Answer::call(
            "edit",
            json!({"filePath": "../outside.txt", "oldString": "nope", "newString": "x"}),
        ),
        Answer::text("ok"),
    ]);
    let folder = folder().file(".env", "SECRET=1").with_model(&server, Wire::Anthropic);
    std::fs::write(folder.root().join("outside.txt"), "hidden words").unwrap();
    std::os::unix::fs::symlink(folder.root().join("outside.txt"), folder.work().join("link"))
        .unwrap();
    folder.tw(&["run", "-m", "anthropic/m", "go"]).expect(3);
    let results = results(&server.last_request());
    for denied in &results[..3] {
        assert!(denied.contains("Permission denied"), "{denied}");
    }
    assert!(
        results[3].contains("No files found") && results[3].contains("needs approval"),
        "{}",
        results[3]
    );
    assert!(
        results[4].contains("may not be read"),
        "an error must not tell about the file: {}",
        results[4]
    );
}

#[test]
fn permission_check_explains_itself() {
    let folder =
        folder().file(".env", "X=1").user_config(r#"{"permission":{"bash":{"git push*":"deny"}}}"#);
    let check = |command: &str| -> Value {
        let run = folder.tw(&["permission", "check", "--json", command]).expect(0);
        serde_json::from_str(&run.stdout).unwrap()
    };
    assert_eq!(check("git status")["decision"], "allow");
    assert_eq!(check("git status; git push")["decision"], "deny", "each part of a line is judged");
    assert_eq!(check("cat .env")["decision"], "ask", "what a command reads is judged as reading");
    assert_eq!(check("make all")["decision"], "ask");
    let denied = check("git push --force");
    assert_eq!(denied["decision"], "deny");
    assert_eq!(denied["rule"]["pattern"], "git push*");
    assert!(denied["from"].as_str().unwrap().ends_with("toolwright.json"));
    assert_eq!(denied["accesses"][0]["permission"], "bash");
}

#[test]
fn what_was_too_large_for_an_answer_can_be_read_without_asking() {
    let server = ModelServer::start([Answer::call("bash", json!({"command": "seq 1 100000"}))]);
    let folder = folder()
        .user_config(r#"{"permission":{"bash":"allow"}}"#)
        .with_model(&server, Wire::Anthropic);
    let child = folder.start(&["run", "-m", "anthropic/m", "go"]);
    server.wait_for_request();
    server.wait_for_request();
    child.kill();
    let notice = results(&server.last_request())[0].clone();
    let path = notice
        .split("output is in ")
        .nth(1)
        .unwrap()
        .split(": use grep")
        .next()
        .unwrap()
        .to_owned();
    server.then(Answer::call("read", json!({"filePath": path, "offset": 50000, "limit": 1})));
    server.then(Answer::text("ok"));
    folder.tw(&["run", "-c", "go on"]).expect(0);
    assert!(results(&server.last_request()).last().unwrap().contains("50000: 50000"));
}

#[test]
fn a_deny_cannot_be_hidden_behind_another_command() {
    let hide = ["cd . && rm -rf keep", "true; rm -rf keep", " rm -rf keep", "echo $(rm -rf keep)"];
    let calls = hide.iter().map(|command| Answer::call("bash", json!({"command": command})));
    let server = ModelServer::start(calls.chain([Answer::text("ok")]));
    let folder = folder()
        .user_config(r#"{"permission":{"bash":{"*":"allow","rm *":"deny"}}}"#)
        .file("keep/file", "x")
        .with_model(&server, Wire::Anthropic);
    folder.tw(&["run", "--auto", "-m", "anthropic/m", "go"]).expect(3);
    assert!(folder.work().join("keep/file").exists());
    assert!(results(&server.last_request()).iter().all(|r| r.contains("Permission denied")));
}

#[test]
fn permission_check_explains_tools_modes_and_lines() {
    let config = "{\n  \"permission\": {\n    \"edit\": {\n      \"*\": \"ask\",\n      \"gen/*\": \"deny\"\n    }\n  },\n  \"agent\": {\n    \"review\": {\n      \"permission\": {\n        \"bash\": \"deny\"\n      }\n    }\n  }\n}";
    let folder = folder().user_config(config);
    let check = |arguments: &[&str]| -> Value {
        let arguments = [&["permission", "check", "--json"], arguments].concat();
        serde_json::from_str(&folder.tw(&arguments).expect(0).stdout).unwrap()
    };
    let write = |path: &str| json!({"filePath": path, "content": "x"}).to_string();
    let denied = check(&["--tool", "write", &write("gen/a.rs")]);
    assert_eq!((&denied["decision"], &denied["line"]), (&json!("deny"), &json!(5)), "{denied}");
    assert!(denied["from"].as_str().unwrap().ends_with("toolwright.json"));
    assert_eq!(denied["accesses"][0]["permission"], "edit");
    assert!(!folder.work().join("gen/a.rs").exists(), "nothing is run");
    let asked = check(&["--tool", "write", &write("src/a.rs")]);
    assert_eq!((&asked["decision"], &asked["line"]), (&json!("ask"), &json!(4)));
    assert_eq!(asked["accesses"][0]["always"][1]["pattern"], "src/*");
    let accepted = check(&["--mode", "accept-edits", "--tool", "write", &write("src/a.rs")]);
    assert_eq!(accepted["decision"], "allow");
    let planned = check(&["--mode", "plan", "make"]);
    assert_eq!((&planned["decision"], &planned["from"]), (&json!("deny"), &json!("the mode")));
    let review = check(&["--agent", "review", "make"]);
    assert_eq!(review["line"], 11, "{review}");
    assert!(review["from"].as_str().unwrap().ends_with("toolwright.json"), "{review}");
    let wrong = folder.tw(&["permission", "check", "--tool", "write", "{}"]).expect(2);
    assert!(wrong.stderr.contains("filePath"), "{}", wrong.stderr);
    let text = folder.tw(&["permission", "check", "make; rm -rf ~"]).expect(0).stdout;
    assert!(text.contains("would be denied: never allowed"), "{text}");
    let text = folder.tw(&["permission", "check", "ls; make"]).expect(0).stdout;
    assert!(text.contains("· bash ls: allow") && text.contains("· bash make: ask"), "{text}");
    let listed = folder.tw(&["permission", "list", "--agent", "review"]).expect(0).stdout;
    for part in ["defaults: shipped defaults", "deny   edit gen/*  (line 5)", "toolwright.json:11"]
    {
        assert!(listed.contains(part), "{part}: {listed}");
    }
}

#[test]
fn a_rule_with_a_wrong_example_is_an_error_that_says_where() {
    let config = "{\"permission\":{\"bash\":{\"git push *\":{\"action\":\"ask\",\n\"match\":[\"git push origin\"],\n\"not_match\":[\"git push\"]}}}}";
    let folder = folder().user_config(config);
    let run = folder.tw(&["permission", "check", "ls"]).expect(2);
    let expected = "toolwright.json:3:14: the rule bash \"git push *\" matches its not_match example \"git push\"";
    assert!(run.stderr.contains(expected), "{}", run.stderr);
}

#[test]
fn the_environment_takes_back_the_users_word_and_nobody_elses() {
    let folder = folder()
        .user_config(r#"{"permission":{"bash":"deny"}}"#)
        .env("TOOLWRIGHT_PERMISSION", r#"{"bash":{"*":"allow"}}"#);
    let managed = folder.root().join("etc/opencode");
    std::fs::create_dir_all(&managed).unwrap();
    let rules = r#"{"permission":{"bash":{"rm *":"deny"}}}"#;
    std::fs::write(managed.join("opencode.json"), rules).unwrap();
    let check = |command: &str| -> Value {
        let run = folder.tw(&["permission", "check", "--json", command]).expect(0);
        serde_json::from_str(&run.stdout).unwrap()
    };
    assert_eq!(check("make")["decision"], "allow");
    assert_eq!(check("make")["from"], "$TOOLWRIGHT_PERMISSION");
    assert_eq!(check("rm x")["decision"], "deny");
    let broken =
        folder.env("OPENCODE_PERMISSION", "{").tw(&["permission", "check", "ls"]).expect(2);
    assert!(broken.stderr.contains("$OPENCODE_PERMISSION"), "{}", broken.stderr);
}

#[test]
fn a_rule_for_reading_counts_for_a_search_that_would_come_across_the_file() {
    let folder = folder()
        .user_config(
            r#"{"permission":{"read":{"secrets/**":"ask"}},
                "agent":{"shy":{"permission":{"read":{"drafts/*":"deny"}}}}}"#,
        )
        .file("secrets/plan.txt", "x")
        .file("drafts/a.txt", "x")
        .file("src/main.rs", "x");
    let decision = |arguments: &[&str]| {
        let arguments = [&["permission", "check", "--json"], arguments].concat();
        let run = folder.tw(&arguments);
        let told: Value = serde_json::from_str(&run.stdout).expect(&run.stdout);
        told["decision"].as_str().unwrap().to_owned()
    };
    assert_eq!(decision(&["rg x src"]), "allow");
    assert_eq!(decision(&["rg x"]), "ask");
    assert_eq!(decision(&["grep -r x ."]), "ask");
    assert_eq!(decision(&["cat secrets/*"]), "ask");
    assert_eq!(decision(&["rg x drafts"]), "allow");
    assert_eq!(decision(&["--agent", "shy", "rg x drafts"]), "deny");
}
