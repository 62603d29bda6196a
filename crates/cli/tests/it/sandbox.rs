//! Commands in a sandbox, with each layer that this machine has: what stays inside runs without a
//! question, what would leave is stopped and said, and a person can let it out once.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use toolwright_testkit::mcp_server::program;
use toolwright_testkit::{Answer, Folder, ModelServer, Wire, eventually, processes_with};

use crate::mcp::config;
use crate::{folder, results};

const RUN: [&str; 4] = ["run", "-m", "anthropic/m", "go"];
const TALK: [&str; 7] = ["run", "--format", "json", "--commands", "-m", "anthropic/m", "go"];

/// A folder whose commands are fenced by this layer, with a temporary folder of its own: the usual
/// one holds everything that is outside here.
fn fenced(layer: &str, settings: &str) -> Folder {
    let folder = folder();
    let temp = folder.root().join("temp");
    fs::create_dir(&temp).unwrap();
    fs::create_dir_all(folder.root().join("home/.ssh")).unwrap();
    fs::write(folder.root().join("home/.ssh/id"), "a private key").unwrap();
    let config = format!(r#"{{"sandbox": {{"layer": "{layer}"{settings}}}}}"#);
    folder
        .user_config(&config)
        .env("TOOLWRIGHT_SANDBOX", "on")
        .env("TMPDIR", temp.to_str().unwrap())
}

fn layers() -> Vec<&'static str> {
    let names: Vec<_> = toolwright::sandbox_layers().iter().map(|layer| layer.name()).collect();
    println!("layers tested here: {names:?}");
    names
}

fn bash(command: &str) -> Answer {
    Answer::call("bash", json!({ "command": command }))
}

/// What the model is told of one command.
fn told(folder: Folder, command: &str, code: i32) -> String {
    let server = ModelServer::start([bash(command), Answer::text("ok")]);
    let folder = folder.with_model(&server, Wire::Anthropic);
    folder.tw(&RUN).expect(code);
    results(&server.last_request())[0].clone()
}

#[test]
fn what_stays_inside_is_done_without_a_question_and_the_header_says_why() {
    for layer in layers() {
        let server = ModelServer::start([
            bash(
                "echo made > made.txt && mkdir -p sub && cp made.txt sub/ && echo $TMPDIR > $TMPDIR/x",
            ),
            Answer::call("write", json!({"filePath": "written.txt", "content": "x"})),
            Answer::text("ok"),
        ]);
        let folder = fenced(layer, "").with_model(&server, Wire::Anthropic);
        let run = folder.tw(&RUN).expect(0);
        assert!(folder.work().join("sub/made.txt").exists());
        assert_eq!(folder.read("written.txt"), "x");
        let header = run.stderr.lines().next().unwrap().to_lowercase();
        assert!(header.contains("sandbox:") && header.contains(layer), "{header}");
        assert!(header.contains("network off"), "{header}");
        server.then(Answer::text("again"));
        let lines =
            folder.tw(&["run", "--format", "json", "-m", "anthropic/m", "go"]).expect(0).lines();
        assert!(
            lines[0]["sandbox"].as_str().unwrap().to_lowercase().contains(layer),
            "{}",
            lines[0]
        );
    }
}

#[test]
fn what_leaves_is_stopped_said_and_counts_as_denied() {
    for layer in layers() {
        let result = told(fenced(layer, ""), "echo be''gun; echo x > ../outside.txt", 3);
        assert!(result.starts_with("begun\n"), "{layer}: {result}");
        assert!(result.contains("The sandbox stopped it: writing"), "{layer}: {result}");
        assert!(
            result.contains("outside.txt") && result.contains("nobody can be asked"),
            "{result}"
        );
        // What fails for reasons of its own is told as ever.
        let result = told(fenced(layer, ""), "echo be''gun; false", 0);
        assert_eq!(result, "begun\n[exit code 1]", "{layer}");
        let result = told(fenced(layer, ""), "cat ~/.ssh/id", 3);
        assert!(!result.contains("a private key"), "{layer}: {result}");
    }
}

#[test]
fn a_person_can_let_one_command_out() {
    for layer in layers() {
        for (reply, made) in [("once", true), ("reject", false)] {
            let server = ModelServer::start([bash("echo x > ../outside.txt"), Answer::text("ok")]);
            let folder = fenced(layer, "").with_model(&server, Wire::Anthropic);
            let mut run = folder.converse(&TALK);
            run.wait_for("\"question\"");
            run.say(&json!({"type": "answer", "id": 0, "reply": reply}).to_string());
            let run = run.wait();
            let question = run.lines().into_iter().find(|l| l["type"] == "question").unwrap();
            let summary = question["summary"].as_str().unwrap();
            assert!(summary.contains("outside the sandbox, which stopped writing"), "{summary}");
            let keys: Vec<&Value> = question["permissions"].as_array().unwrap().iter().collect();
            assert!(keys.iter().any(|k| k["permission"] == "outside_sandbox"), "{question}");
            assert_eq!(folder.root().join("outside.txt").exists(), made, "{layer}, {reply}");
            let result = &results(&server.last_request())[0];
            assert_eq!(result.contains("second run outside"), made, "{result}");
        }
    }
}

#[test]
fn asking_to_run_outside_is_asked_about() {
    for layer in layers() {
        let outside = json!({"command": "echo x > ../outside.txt", "outside": true});
        let server = ModelServer::start([Answer::call("bash", outside), Answer::text("ok")]);
        let folder = fenced(layer, "").with_model(&server, Wire::Anthropic);
        folder.tw(&RUN).expect(3);
        assert!(!folder.root().join("outside.txt").exists());
        let result = &results(&server.last_request())[0];
        assert!(result.contains("needs a person's approval"), "{result}");
    }
}

/// Whoever allows commands has not said that they may leave the sandbox.
#[test]
fn a_rule_for_commands_is_none_for_leaving_the_sandbox() {
    for layer in layers() {
        let rule = format!(
            r#"{{"permission": {{"bash": "allow", "external_directory": "allow"}}, "sandbox": {{"layer": "{layer}"}}}}"#
        );
        let folder = fenced(layer, "").user_config(&rule);
        let result = told(folder, "echo x > ../outside.txt", 3);
        assert!(result.contains("The sandbox stopped it"), "{result}");
    }
}

#[test]
fn the_network_is_off_unless_the_settings_say_otherwise() {
    for layer in layers() {
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = server.local_addr().unwrap().port();
        let command = format!("exec 3<>/dev/tcp/127.0.0.1/{port} && echo conn''ected");
        let server = ModelServer::start([bash(&command), Answer::text("ok")]);
        let folder = fenced(layer, "").with_model(&server, Wire::Anthropic);
        folder.tw(&RUN);
        let result = &results(&server.last_request())[0];
        assert!(!result.contains("connected"), "{layer}: {result}");
        // With a network nothing is contained, so it is asked about.
        let on = fenced(layer, r#", "network": "on""#);
        let result = told(on, &command, 3);
        assert!(result.contains("nobody can be asked"), "{layer}: {result}");
        let server = ModelServer::start([bash(&command), Answer::text("ok")]);
        let on = fenced(layer, r#", "network": "on""#).with_model(&server, Wire::Anthropic);
        on.tw(&["run", "--auto", "-m", "anthropic/m", "go"]).expect(0);
        let result = &results(&server.last_request())[0];
        assert!(result.contains("connected"), "{layer}: {result}");
    }
}

#[test]
fn only_named_hosts_are_reached_through_the_proxy() {
    if !layers().contains(&"bubblewrap") {
        return;
    }
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let answers = std::thread::spawn(move || {
        let (mut client, _) = listener.accept().unwrap();
        let mut request = [0; 1024];
        let count = client.read(&mut request).unwrap();
        client.write_all(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nhello there").unwrap();
        String::from_utf8_lossy(&request[..count]).into_owned()
    });
    let get = |port: u16| {
        format!(
            "exec 3<>/dev/tcp/127.0.0.1/${{HTTP_PROXY##*:}}; \
             printf 'GET http://127.0.0.1:{port}/x HTTP/1.1\\r\\nHost: y\\r\\n\\r\\n' >&3; cat <&3"
        )
    };
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let direct = format!("exec 3<>/dev/tcp/127.0.0.1/{port} && echo conn''ected; true");
    let server = ModelServer::start([
        bash(&get(port)),
        bash(&get(other.local_addr().unwrap().port())),
        bash(&direct),
        Answer::text("ok"),
    ]);
    let hosts = format!(r#", "network": ["127.0.0.1:{port}"]"#);
    let folder = fenced("bubblewrap", &hosts).with_model(&server, Wire::Anthropic);
    folder.tw(&["run", "--auto", "-m", "anthropic/m", "go"]).expect(0);
    let results = results(&server.last_request());
    assert!(results[0].contains("hello there"), "{}", results[0]);
    assert!(!results[0].contains("left something"), "{}", results[0]);
    assert!(answers.join().unwrap().starts_with("GET /x HTTP/1.1"));
    assert!(results[1].contains("403") && results[1].contains("the sandbox"), "{}", results[1]);
    assert!(!results[2].contains("connected"), "{}", results[2]);
}

fn git(directory: &Path, arguments: &[&str]) {
    let status = Command::new("git").args(arguments).current_dir(directory).output().unwrap();
    assert!(status.status.success(), "{status:?}");
}

#[test]
fn commits_work_and_hooks_and_settings_stay_as_they_are() {
    for layer in layers() {
        let server = ModelServer::start([
            bash("echo a > a && git add a && git commit -qm one && git log --oneline | grep one"),
            bash(
                "echo evil > .git/hooks/pre-commit; git config user.name Evil; echo {} > toolwright.json; true",
            ),
            Answer::text("ok"),
        ]);
        let folder = fenced(layer, "").with_model(&server, Wire::Anthropic);
        git(&folder.work(), &["init", "-q"]);
        git(&folder.work(), &["config", "user.name", "Me"]);
        git(&folder.work(), &["config", "user.email", "me@example.org"]);
        let config = folder.read(".git/config");
        folder.tw(&RUN).expect(0);
        let results = results(&server.last_request());
        assert!(results[0].contains("exit code 0"), "{layer}: {}", results[0]);
        assert_eq!(folder.read(".git/config"), config, "{layer}");
        assert!(!folder.work().join(".git/hooks/pre-commit").exists(), "{layer}");
        assert!(!folder.work().join("toolwright.json").exists(), "{layer}");
        assert!(results[1].contains("stopped-by-sandbox"), "{layer}: {}", results[1]);
        // Our own tools ask before they write there.
        let write = json!({"filePath": "toolwright.json", "content": "{}"});
        let server = ModelServer::start([Answer::call("write", write), Answer::text("ok")]);
        let folder = folder.with_model(&server, Wire::Anthropic);
        folder.tw(&RUN).expect(3);
    }
}

#[test]
fn a_file_of_secrets_is_still_asked_about() {
    for layer in layers() {
        let folder = fenced(layer, "").file(".env", "SECRET=1");
        let result = told(folder, "cat .env", 3);
        assert!(!result.contains("SECRET"), "{result}");
    }
}

#[test]
fn children_do_not_see_secrets_unless_they_are_named() {
    let show = "echo [$GITHUB_TOKEN$NPM_TOKEN$LD_TEST_PATH$PLAIN]";
    for layer in layers().into_iter().chain(["off"]) {
        let settings = r#", "environment": ["NPM_TOKEN"]"#;
        let folder = match layer {
            "off" => fenced("auto", settings).env("TOOLWRIGHT_SANDBOX", "off"),
            layer => fenced(layer, settings),
        };
        let folder = folder
            .env("GITHUB_TOKEN", "one-secret-token")
            .env("NPM_TOKEN", "two")
            .env("LD_TEST_PATH", "three")
            .env("PLAIN", "four");
        let server = ModelServer::start([bash(show), Answer::text("ok")]);
        let folder = folder.with_model(&server, Wire::Anthropic);
        folder.tw(&["run", "--auto", "-m", "anthropic/m", "go"]).expect(0);
        let result = &results(&server.last_request())[0];
        assert!(result.contains("[twofour]"), "{layer}: {result}");
    }
}

#[test]
fn a_folder_that_is_not_trusted_can_only_tighten_the_sandbox() {
    let Some(layer) = layers().first().copied() else { return };
    let loosen = r#"{"sandbox": {"enabled": false, "network": "on", "writable": [".."]}}"#;
    let server = ModelServer::start([bash("echo x > ../outside.txt"), Answer::text("ok")]);
    let folder = folder()
        .file("toolwright.json", loosen)
        .user_config(&format!(r#"{{"sandbox": {{"layer": "{layer}", "enabled": "auto"}}}}"#));
    let temp = folder.root().join("temp");
    fs::create_dir(&temp).unwrap();
    let folder = folder
        .env("TOOLWRIGHT_SANDBOX", "")
        .env("TMPDIR", temp.to_str().unwrap())
        .with_model(&server, Wire::Anthropic);
    let run = folder.tw(&RUN).expect(3);
    for key in ["sandbox.enabled", "sandbox.network", "sandbox.writable"] {
        assert!(run.stderr.contains(key), "{key}: {}", run.stderr);
    }
    assert!(!folder.root().join("outside.txt").exists());
}

#[test]
fn one_that_is_required_and_cannot_be_had_is_an_error_with_a_next_step() {
    let server = ModelServer::start([]);
    let folder =
        fenced("bubblewrap", "").env("PATH", "/nowhere").with_model(&server, Wire::Anthropic);
    let run = folder.tw(&RUN).expect(2);
    assert!(
        run.stderr.contains("install") && run.stderr.contains("sandbox.enabled"),
        "{}",
        run.stderr
    );
}

#[test]
fn doctor_and_the_command_line_say_which_one() {
    for layer in layers() {
        let doctor = fenced(layer, "").tw(&["doctor"]);
        let line =
            doctor.stdout.lines().find(|line| line.contains("sandbox")).unwrap().to_lowercase();
        assert!(line.contains(layer), "{line}");
    }
    let off = folder().tw(&["doctor", "--sandbox", "off"]);
    assert!(off.stdout.contains("none (switched off)"), "{}", off.stdout);
}

fn marker(n: u32) -> String {
    format!("sleep 9{n}765.{}", std::process::id())
}

#[test]
fn nothing_is_left_of_what_ran_inside() {
    for (n, layer) in layers().into_iter().enumerate() {
        let marker = marker(10 + u32::try_from(n).unwrap());
        let command = format!(
            "{marker} & (setsid {marker} >/dev/null 2>&1 &) ; nohup {marker} >/dev/null 2>&1 & echo started"
        );
        let server = ModelServer::start([bash(&command), bash("true"), Answer::text("ok")]);
        let folder = fenced(layer, "").with_model(&server, Wire::Anthropic);
        folder.tw(&RUN).expect(0);
        assert_eq!(processes_with(&marker), Vec::<String>::new(), "{layer}");
        let results = results(&server.last_request());
        assert!(results[0].contains("left something running"), "{layer}: {}", results[0]);
        assert!(!results[1].contains("left something running"), "{layer}: {}", results[1]);
    }
}

#[test]
fn every_signal_that_ends_us_ends_what_runs_inside() {
    for (l, layer) in layers().into_iter().enumerate() {
        for (n, signal) in ["INT", "TERM", "KILL"].into_iter().enumerate() {
            let marker = marker(30 + u32::try_from(10 * l + n).unwrap());
            let command = format!("(setsid {marker} &); {marker}; {marker}");
            let server = ModelServer::start([bash(&command)]);
            let folder = fenced(layer, "").with_model(&server, Wire::Anthropic);
            let child = folder.start(&RUN);
            eventually("the command", || (processes_with(&marker).len() >= 3).then_some(()));
            child.signal(signal);
            child.wait();
            eventually("no process left", || processes_with(&marker).is_empty().then_some(()));
        }
    }
}

#[test]
fn a_command_that_is_ended_can_say_a_last_word() {
    for layer in layers() {
        let command = "trap 'echo tidied; exit 5' TERM; echo ready; while :; do sleep 0.02; done";
        let call = json!({"command": command, "timeout": 600});
        let server = ModelServer::start([Answer::call("bash", call), Answer::text("ok")]);
        let folder = fenced(layer, "").with_model(&server, Wire::Anthropic);
        folder.tw(&RUN).expect(0);
        let result = &results(&server.last_request())[0];
        assert!(result.contains("ready") && result.contains("tidied"), "{layer}: {result}");
    }
}

#[test]
fn a_job_with_a_terminal_is_talked_to_inside() {
    for layer in layers() {
        let start =
            json!({"command": "test -t 0 && read -p 'name? ' n && echo hello $n", "pty": true});
        let server = ModelServer::start([Answer::call("bash", start)]);
        server.then(Answer::text("ok"));
        let folder = fenced(layer, "").with_model(&server, Wire::Anthropic);
        folder.tw(&RUN).expect(0);
        let result = &results(&server.last_request())[0];
        assert!(result.contains("name?"), "{layer}: {result}");
    }
}

#[test]
fn commands_of_scripts_and_of_templates_are_held_like_any_other() {
    for layer in layers() {
        let server = ModelServer::start([Answer::call("t", json!({})), Answer::text("ok")]);
        let script = "import { execSync } from 'child_process'\nexport default { description: 'd', args: {}, execute: async () => { const said = []; for (const c of ['touch inside', 'D=$(dirname $PWD); touch $D/outside']) { try { execSync(c); said.push('done') } catch (e) { said.push('stopped') } } return said.join(' ') } }\n";
        let folder = fenced(layer, "")
            .with_model(&server, Wire::Anthropic)
            .file(".opencode/tool/t.js", script)
            .file(
                ".opencode/command/c.md",
                "Said: !`D=$(dirname $PWD); touch $D/outside2; touch inside2; echo end`\n",
            );
        folder.tw(&["run", "--trust", "-m", "anthropic/m", "go"]).expect(0);
        let outside = |name: &str| folder.root().join(name);
        assert!(folder.work().join("inside").exists(), "{layer}");
        assert!(!outside("outside").exists(), "{layer}: it got out");
        assert_eq!(results(&server.last_request()), ["done stopped"], "{layer}");
        server.then(Answer::text("ok"));
        folder.tw(&["run", "--trust", "-m", "anthropic/m", "--command", "c"]).expect(0);
        assert!(folder.work().join("inside2").exists(), "{layer}");
        assert!(!outside("outside2").exists(), "{layer}: it got out");
    }
}

#[test]
fn an_mcp_server_reaches_what_its_settings_say() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    let script =
        "touch inside; touch $OUT; (exec 3<>/dev/tcp/127.0.0.1/$PORT) && touch online; exec $0";
    for layer in layers() {
        for (sandbox, got_out, got_through) in [
            (json!(false), true, true),
            (json!(true), false, true),
            (json!("offline"), false, false),
        ] {
            let folder = fenced(layer, "");
            let outside = folder.root().join("outside");
            let entry = json!({
                "command": ["bash", "-c", script, program("fake_mcp")], "sandbox": sandbox,
                "environment": {"OUT": outside, "PORT": port},
            });
            let folder = folder.file("toolwright.json", &config(json!({ "fake": entry })));
            let call =
                ["mcp", "call", "fake", "echo", "{\"text\": \"hello\"}", "--auto", "--trust"];
            assert_eq!(folder.tw(&call).expect(0).stdout.trim(), "hello", "{layer} {sandbox}");
            assert!(folder.work().join("inside").exists(), "{layer} {sandbox}");
            assert_eq!(outside.exists(), got_out, "{layer} {sandbox}");
            assert_eq!(folder.work().join("online").exists(), got_through, "{layer} {sandbox}");
            if sandbox != json!(false) {
                let none = folder.tw(&[&call[..], &["--sandbox", "off"]].concat());
                assert_ne!(none.code, Some(0), "{layer} {sandbox}");
                assert!(none.stderr.contains("there is none"), "{layer}: {}", none.stderr);
            }
        }
    }
}
