//! MCP servers in whole runs: their tools, their rules, their place in the prompt, and their end.

use serde_json::{Value, json};
use toolwright_testkit::mcp_server::program;
use toolwright_testkit::{
    Answer, Captured, Folder, ModelServer, Reply, Wire, eventually, processes_with,
};

use crate::{assert_history_is_valid, folder, results};

pub const RUN: [&str; 5] = ["run", "--auto", "-m", "anthropic/m", "go"];

/// The fake server as an entry of the `mcp` section.
pub fn fake(arguments: &[&str]) -> Value {
    let mut command = vec![program("fake_mcp").display().to_string()];
    command.extend(arguments.iter().map(|word| (*word).to_owned()));
    json!({ "type": "local", "command": command })
}

pub fn config(servers: Value) -> String {
    json!({ "mcp": servers }).to_string()
}

pub fn offered(request: &Captured) -> Vec<String> {
    let tools = request.body["tools"].as_array().cloned().unwrap_or_default();
    tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

pub fn call(folder: &Folder, tool: &str, arguments: Value) -> (i32, Value) {
    let text = arguments.to_string();
    let run = folder.tw(&["mcp", "call", "fake", tool, &text, "--auto", "--json"]);
    let outcome = serde_json::from_str(&run.stdout)
        .unwrap_or_else(|_| panic!("{tool}: {}{}", run.stdout, run.stderr));
    (run.code.unwrap(), outcome)
}

fn marker(word: &str) -> String {
    format!("mark-{word}-{}", std::process::id())
}

/// All servers are up before the first prompt, however busy the machine is.
fn ready(mut entry: Value) -> Value {
    entry["required"] = json!(true);
    entry
}

#[test]
fn tools_of_a_server_go_the_same_way_as_our_own() {
    let marker = marker("a");
    let server = ModelServer::start([
        Reply::default()
            .call("fake_echo", json!({"text": "hello"}))
            .call("fake_structured", json!({}))
            .call("fake_fail", json!({}))
            .call("fake_media", json!({}))
            .call("fake_lines", json!({}))
            .into(),
        Answer::text("Done."),
    ]);
    let folder = folder()
        .user_config(&config(json!({"fake": ready(fake(&["ok", &marker]))})))
        .with_model(&server, Wire::Anthropic);
    let run = folder.tw(&RUN).expect(0);
    assert!(run.stderr.contains("✓ fake_echo {\"text\":\"hello\"}"), "{}", run.stderr);
    let first = &server.requests()[0];
    let names = offered(first);
    for expected in ["fake_echo", "read", "read_mcp_resource"] {
        assert!(names.contains(&expected.to_owned()), "{names:?}");
    }
    assert!(first.body["system"].to_string().contains("Echo what you want to hear."));
    let last = server.last_request();
    assert_history_is_valid(&last);
    let results = results(&last);
    assert_eq!(results[0], "hello");
    assert_eq!(results[1], "{\"degrees\":21}");
    assert_eq!(results[2], "it went wrong");
    assert!(
        results[3].contains("kept in") && results[3].contains("fake://notes"),
        "{}",
        results[3]
    );
    assert!(results[4].contains("(Output cut: lines 1-2000 of 5000"), "{}", results[4]);
    assert!(String::from_utf8_lossy(&last.raw).contains("image/png"));
    assert_eq!(processes_with(&marker), Vec::<String>::new());
}

#[test]
fn an_untrusted_folder_starts_nothing_and_that_is_said() {
    let shared = json!({"mcpServers": {"fake": {"command": program("fake_mcp"), "args": ["starts", "ran"]}}});
    let server = ModelServer::start([Answer::text("a"), Answer::text("b")]);
    let folder =
        folder().file(".mcp.json", &shared.to_string()).with_model(&server, Wire::Anthropic);
    let run = folder.tw(&RUN).expect(0);
    let said = run.stderr.matches("this folder is not trusted, so these are not used: ").count();
    assert_eq!(said, 1, "{}", run.stderr);
    assert!(!folder.work().join("ran").exists());
    let list = folder.tw(&["mcp", "list", "--trust"]).expect(0);
    assert!(list.stdout.contains("✓ fake  connected"), "{}", list.stdout);
    assert!(folder.work().join("ran").exists());
}

#[test]
fn servers_do_not_see_our_keys_and_see_what_they_are_given() {
    let mut entry = fake(&["ok"]);
    entry["environment"] = json!({"OPENAI_API_KEY": "given-by-name", "MODE": "m"});
    let folder = folder()
        .user_config(&config(json!({ "fake": entry })))
        .env("ANTHROPIC_API_KEY", "sk-secret-value")
        .env("OPENAI_API_KEY", "sk-other-secret");
    for (name, expected) in [
        ("ANTHROPIC_API_KEY", "[]"),
        ("MODE", "[m]"),
        // It has it, and no output shows it.
        ("OPENAI_API_KEY", "[[masked: mcp.fake.environment.OPENAI_API_KEY]]"),
    ] {
        assert_eq!(call(&folder, "env", json!({ "name": name })).1["output"], expected);
    }
}

#[test]
fn a_slow_server_holds_up_nothing_and_its_tools_join_at_the_end_of_the_list() {
    let go = std::env::temp_dir().join(marker("go"));
    let path = go.display().to_string();
    let model = ModelServer::answering(move |request| {
        let turns = request.messages().len();
        match offered(request).contains(&"slow_echo".to_owned()) {
            // The server is only let go by the first answer: it cannot have been waited for.
            false if turns == 1 => {
                Answer::call("bash", json!({"command": format!("touch {path}")}))
            }
            false => Answer::call("bash", json!({"command": format!("sleep 0.05 # {turns}")})),
            true if !request.raw.windows(9).any(|w| w == b"late word") => {
                Answer::call("slow_echo", json!({"text": "a late word"}))
            }
            true => Answer::text("Done."),
        }
    });
    let entry = fake(&["wait_for_file", &go.display().to_string()]);
    let folder =
        folder().user_config(&config(json!({ "slow": entry }))).with_model(&model, Wire::Anthropic);
    let run = folder.tw(&RUN).expect(0);
    std::fs::remove_file(&go).ok();
    assert!(run.stderr.contains("the MCP server slow is still starting"), "{}", run.stderr);
    let requests = model.requests();
    let (first, last) = (&requests[0], requests.last().unwrap());
    let before = first.body["tools"].as_array().unwrap();
    let after = last.body["tools"].as_array().unwrap();
    assert!(after.len() > before.len());
    // The last of the old list carries a mark of where the cached prefix ends.
    let plain = |tools: &[Value]| -> Vec<Value> {
        tools.iter().map(|t| json!([t["name"], t["description"], t["input_schema"]])).collect()
    };
    assert_eq!(plain(before), plain(&after[..before.len()]), "the prefix moved");
    assert_eq!(first.body["system"][0]["text"], last.body["system"][0]["text"]);
    assert!(results(last).contains(&"a late word".to_owned()));
}

#[test]
fn a_required_server_that_cannot_be_had_ends_the_run_before_it_begins() {
    let server = ModelServer::start([]);
    let folder = folder()
        .user_config(&config(json!({"fake": ready(fake(&["die"]))})))
        .with_model(&server, Wire::Anthropic);
    let run = folder.tw(&RUN).expect(1);
    for expected in ["fake is required", "it exited with code 3", "flux capacitor"] {
        assert!(run.stderr.contains(expected), "{}", run.stderr);
    }
    assert!(server.requests().is_empty());
}

#[test]
fn a_server_that_fails_is_named_with_its_reason_everywhere() {
    let server = ModelServer::start([Answer::text("Done.")]);
    let gone = json!({"type": "local", "command": ["/no/such/program"]});
    let folder = folder()
        .user_config(&config(
            json!({"bad": fake(&["die"]), "gone": gone, "good": ready(fake(&["ok"]))}),
        ))
        .with_model(&server, Wire::Anthropic);
    let run = folder.tw(&RUN).expect(0);
    assert!(
        run.stderr.contains("! the MCP server gone does not work: cannot start"),
        "{}",
        run.stderr
    );
    let list = folder.tw(&["mcp", "list"]).expect(0).stdout;
    for expected in [
        "✗ bad  failed",
        "it exited with code 3 before it was ready",
        "| error: cannot find the flux capacitor",
        "✗ gone  failed",
        "✓ good  connected, 25 tools",
    ] {
        assert!(list.contains(expected), "{expected} in {list}");
    }
    let doctor = folder.tw(&["doctor"]).expect(1).stdout;
    assert!(doctor.contains("! ✗ bad  failed") && doctor.contains("flux capacitor"), "{doctor}");
    let json = folder.tw(&["mcp", "list", "--json"]).expect(0).stdout;
    let all: Value = serde_json::from_str(&json).unwrap();
    let states: Vec<_> =
        all.as_array().unwrap().iter().map(|s| s["state"].as_str().unwrap()).collect();
    assert_eq!(states, ["failed", "failed", "connected"]);
}

#[test]
fn rules_are_written_with_the_names_of_tools_and_with_wildcards() {
    let script = || {
        [
            Reply::default()
                .call("fake_echo", json!({"text": "x"}))
                .call("fake_structured", json!({}))
                .into(),
            Answer::text("Done."),
        ]
    };
    let with = |rules: Value| {
        let server = ModelServer::start(script());
        let text = json!({"mcp": {"fake": ready(fake(&["ok"]))}, "permission": rules}).to_string();
        let folder = folder().user_config(&text).with_model(&server, Wire::Anthropic);
        let code = folder.tw(&["run", "-m", "anthropic/m", "go"]).code;
        (code, offered(&server.requests()[0]), results(&server.last_request()))
    };
    // What a server says about itself lifts no question: echo is read-only by its own word.
    let (code, names, told) = with(json!({}));
    assert_eq!(code, Some(3));
    assert!(names.contains(&"fake_echo".to_owned()) && told[0].contains("denied"), "{told:?}");
    let (code, _, told) = with(json!({"fake_*": "allow"}));
    assert_eq!((code, told[0].as_str()), (Some(0), "x"));
    let (_, names, told) = with(json!({"fake_*": "deny", "fake_echo": "allow"}));
    assert!(names.contains(&"fake_echo".to_owned()) && !names.contains(&"fake_add".to_owned()));
    assert_eq!(told[0], "x");
    assert!(told[1].contains("denied"), "{told:?}");
}

#[test]
fn what_only_reads_runs_side_by_side_and_what_does_not_keeps_its_order() {
    let server = ModelServer::start([
        Reply::default()
            .call("fake_meet", json!({"own": "a", "other": "b"}))
            .call("fake_meet", json!({"own": "b", "other": "a"}))
            .into(),
        Reply::default()
            .call("fake_note", json!({"file": "notes", "text": "one", "after": "go"}))
            .call("fake_note", json!({"file": "notes", "text": "two"}))
            .call("bash", json!({"command": "touch go"}))
            .into(),
        Answer::text("Done."),
    ]);
    let folder = folder()
        .user_config(&config(json!({"fake": ready(fake(&["ok"]))})))
        .with_model(&server, Wire::Anthropic);
    folder.tw(&RUN).expect(0);
    assert_eq!(results(&server.last_request())[..2], ["met", "met"]);
    assert_eq!(folder.read("notes"), "one\ntwo\n");
}

#[test]
fn one_server_serves_a_run_and_its_sub_agents() {
    let model = ModelServer::answering(|request| {
        let turns = request.messages().len();
        let first = request.messages()[0]["content"].to_string();
        match (first.contains("the piece"), turns) {
            (true, 1) => Answer::call("fake_echo", json!({"text": "from below"})),
            (true, _) => Answer::text("Done."),
            (false, 1) => {
                let task =
                    json!({"description": "x", "prompt": "the piece", "subagent_type": "general"});
                Reply::default().call("fake_echo", json!({"text": "a"})).call("task", task).into()
            }
            (false, _) => Answer::text("All done."),
        }
    });
    let folder = folder()
        .user_config(&config(json!({"fake": ready(fake(&["starts", "starts"]))})))
        .with_model(&model, Wire::Anthropic);
    folder.tw(&RUN).expect(0);
    let below = model
        .requests()
        .into_iter()
        .rfind(|r| r.messages()[0]["content"].to_string().contains("the piece"));
    assert_eq!(results(&below.unwrap()), ["from below"]);
    assert_eq!(folder.read("starts").lines().count(), 1);
}

#[test]
fn a_resource_that_is_mentioned_is_part_of_the_prompt_and_can_be_read_by_the_model() {
    let server = ModelServer::start([
        Reply::default()
            .call("list_mcp_resources", json!({}))
            .call("read_mcp_resource", json!({"server": "fake", "uri": "fake://x"}))
            .call("read_mcp_resource", json!({"server": "other", "uri": "fake://x"}))
            .into(),
        Answer::text("Done."),
    ]);
    let folder = folder()
        .user_config(&config(json!({"fake": ready(fake(&["ok"]))})))
        .with_model(&server, Wire::Anthropic);
    // Reading needs no leave, as reading a file needs none.
    let prompt = "What is in @fake:fake://notes, please?";
    folder.tw(&["run", "-m", "anthropic/m", prompt]).expect(0);
    let said = server.requests()[0].messages()[0]["content"].to_string();
    assert!(said.contains("the content of fake://notes"), "{said}");
    let told = results(&server.last_request());
    assert!(
        told[0].contains("\"uri\": \"fake://notes\"") && told[0].contains("\"server\": \"fake\"")
    );
    assert_eq!(told[1], "Resource: fake://x\nMIME: text/plain\nthe content of fake://x");
    assert!(told[2].contains("Servers with resources: fake."), "{}", told[2]);
    let prompt = folder.tw(&["mcp", "prompt", "fake:greet", "Ann"]).expect(0);
    assert_eq!(prompt.stdout, "Say hello to Ann.\n");
    let missing = folder.tw(&["mcp", "prompt", "fake:greet"]).expect(1);
    assert!(missing.stderr.contains("it needs who"), "{}", missing.stderr);
}

#[test]
fn a_prompt_of_a_server_is_a_command() {
    let server = ModelServer::start([Answer::text("Hello.")]);
    let folder = folder()
        .user_config(&config(json!({"fake": fake(&["ok"])})))
        .with_model(&server, Wire::Anthropic);
    folder.tw(&["run", "-m", "anthropic/m", "--command", "fake:greet", "Ann"]).expect(0);
    let said = server.last_request().messages()[0]["content"].to_string();
    assert!(said.contains("Say hello to Ann."), "{said}");
    let unknown = folder.tw(&["run", "--command", "nobody:greet"]).expect(2);
    assert!(unknown.stderr.contains("there is no command"), "{}", unknown.stderr);
}

#[test]
fn a_server_may_ask_the_person_and_gets_what_was_said() {
    let server = ModelServer::start([
        Reply::default().call("fake_ask", json!({})).into(),
        Reply::default().call("fake_ask_url", json!({})).into(),
        Answer::text("Done."),
    ]);
    let folder = folder()
        .user_config(&config(json!({"fake": ready(fake(&["ok"]))})))
        .with_model(&server, Wire::Anthropic);
    let mut run = folder.converse(&[
        "run",
        "--auto",
        "--format",
        "json",
        "--commands",
        "-m",
        "anthropic/m",
        "go",
    ]);
    run.wait_for("\"inquiry\"");
    run.say(r#"{"type":"reply","id":0,"answers":[["green"],[]]}"#);
    run.wait_for("https://example.com/sign");
    run.say(r#"{"type":"reply","id":1,"answers":[["I have opened it"]]}"#);
    run.wait().expect(0);
    let told = results(&server.last_request());
    let answer: Value = serde_json::from_str(&told[0]).unwrap();
    assert_eq!(answer, json!({"action": "accept", "content": {"colour": "green", "size": 3}}));
    assert!(told[1].contains("\"accept\""), "{}", told[1]);
    // Where nobody is, nobody agrees.
    let (code, outcome) = call(&folder, "ask", json!({}));
    assert_eq!((code, outcome["output"].as_str().unwrap()), (0, "{\"action\":\"decline\"}"));
}

#[test]
fn a_server_may_ask_the_model_if_the_rules_let_it() {
    let run = |rules: Value| {
        let model = ModelServer::answering(|request| {
            let said = String::from_utf8_lossy(&request.raw).into_owned();
            let sampled = request.body["system"].to_string().contains("Be brief.");
            match (sampled, said.contains("tool_result")) {
                (true, _) => Answer::text("Paris."),
                (false, false) => Answer::call("fake_sample", json!({})),
                (false, true) => Answer::text("Done."),
            }
        });
        let text = json!({"mcp": {"fake": ready(fake(&["ok"]))}, "permission": rules}).to_string();
        let folder = folder().user_config(&text).with_model(&model, Wire::Anthropic);
        folder.tw(&RUN).expect(0);
        let sampled = model.requests().iter().find(|r| r.body["max_tokens"] == 50).cloned();
        (sampled.is_some(), results(&model.last_request())[0].clone())
    };
    let (asked, told) = run(json!({}));
    assert!(asked && told.contains("Paris.") && told.contains("anthropic/m"), "{told}");
    let (asked, told) = run(json!({"mcp_sampling": {"fake": "deny"}}));
    assert!(!asked && told.contains("denied"), "{told}");
}

#[test]
fn servers_are_added_to_and_taken_out_of_a_file_that_stays_as_it_was() {
    let folder = folder().user_config("{\n  // mine\n  \"model\": \"anthropic/m\"\n}\n");
    let path = folder.root().join("home/.config/toolwright/toolwright.json");
    let program = program("fake_mcp").display().to_string();
    folder.tw(&["mcp", "add", "here", "--env", "A=b=c", "--", &program, "ok"]).expect(0);
    folder
        .tw(&["mcp", "add", "there", "--url", "https://example.com/mcp", "--header", "X-A=1"])
        .expect(0);
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(
        text.contains("// mine") && text.contains("\"A\": \"b=c\"") && text.contains("X-A"),
        "{text}"
    );
    folder.tw(&["mcp", "remove", "there"]).expect(0);
    let list = folder.tw(&["mcp", "list"]).expect(0).stdout;
    assert!(list.contains("✓ here  connected") && !list.contains("there"), "{list}");
    for (arguments, expected) in [
        (vec!["mcp", "add", "x"], "--url"),
        (vec!["mcp", "add", "x", "--url", "ftp://x"], "http://"),
        (vec!["mcp", "add", "x", "--env", "A", "--", "y"], "NAME=VALUE"),
        (vec!["mcp", "remove", "nothing"], "configured: here"),
        (vec!["mcp", "debug", "nothing"], "configured: here"),
        (vec!["mcp", "call", "here", "nothing"], "here has no tool"),
        (vec!["mcp", "prompt", "nothing"], "SERVER:PROMPT"),
    ] {
        let run = folder.tw(&arguments).expect(2);
        assert!(run.stderr.contains(expected), "{arguments:?}: {}", run.stderr);
    }
}

#[test]
fn settings_that_cannot_work_are_named_with_their_file() {
    for (servers, expected) in [
        (json!({"a": {"type": "local"}}), "mcp.a: a local server needs \"command\""),
        (json!({"a": {"type": "remote", "url": "x"}}), "mcp.a: \"x\" is no address"),
        (json!({"a": {"command": ["x"], "url": "http://y"}}), "keep one of them"),
        (json!({"a": {"command": "x"}}), "mcp.a.command"),
    ] {
        let run = folder().user_config(&config(servers)).tw(&["tools"]).expect(2);
        assert!(
            run.stderr.contains(expected) && run.stderr.contains("toolwright.json"),
            "{}",
            run.stderr
        );
    }
    let only_off = folder().user_config(&config(json!({"a": {"enabled": false}})));
    let run = only_off.tw(&["mcp", "list"]).expect(0);
    assert!(run.stderr.contains("no file says what this server is"), "{}", run.stderr);
}

#[test]
fn however_a_run_ends_its_servers_end_with_it() {
    for (n, signal) in ["INT", "KILL"].into_iter().enumerate() {
        let marker = marker(&format!("end{n}"));
        let server = ModelServer::start([Answer::call("fake_never", json!({}))]);
        let folder = folder()
            .user_config(&config(json!({"fake": ready(fake(&["fork", &marker]))})))
            .with_model(&server, Wire::Anthropic);
        let run = folder.start(&["run", "--auto", "--format", "json", "-m", "anthropic/m", "go"]);
        run.wait_for("\"tool_start\"");
        // The server and what it has started.
        eventually("four processes", || (processes_with(&marker).len() >= 4).then_some(()));
        run.signal(signal);
        run.wait();
        eventually("no process left", || processes_with(&marker).is_empty().then_some(()));
    }
}
