//! How a run begins and who answers it: commands, prompts of servers, standard input.

use std::io::Write;
use std::process::Stdio;

use serde_json::json;
use toolwright_testkit::{Answer, Child, Folder, ModelServer, Wire};

use crate::mcp::{config, fake};
use crate::{folder, results};

const TALK: [&str; 7] = ["run", "--format", "json", "--commands", "-m", "anthropic/m", "go"];

/// A command whose template runs something that is asked about.
fn asking(server: &ModelServer) -> Folder {
    folder()
        .file(".opencode/command/gone.md", "Look: !`rm -f zzz`\n")
        .with_model(server, Wire::Anthropic)
}

const GONE: [&str; 9] =
    ["run", "--trust", "--format", "json", "--commands", "-m", "anthropic/m", "--command", "gone"];

#[test]
fn a_command_that_waits_for_an_answer_can_be_aborted() {
    let server = ModelServer::start([]);
    let folder = asking(&server);
    let mut run = folder.converse(&GONE);
    run.wait_for("\"question\"");
    run.say(r#"{"type":"abort"}"#);
    run.wait().expect(130);
    let run = folder.converse(&GONE);
    run.wait_for("\"question\"");
    run.signal("TERM");
    run.wait().expect(130);
    assert!(server.requests().is_empty());
}

#[test]
fn behind_the_end_of_its_input_nobody_is_asked() {
    let server = ModelServer::start([]);
    // Nobody was ever there.
    asking(&server).start(&GONE).wait().expect(3);
    assert!(server.requests().is_empty());
    // Somebody leaves while a question waits, and another one comes after that.
    let server = ModelServer::start([
        Answer::call("bash", json!({"command": "touch one"})),
        Answer::call("bash", json!({"command": "touch two"})),
        Answer::text("I give up."),
    ]);
    let folder = folder().with_model(&server, Wire::Anthropic);
    let mut run = folder.converse(&TALK);
    run.wait_for("\"question\"");
    run.end_input();
    let run = run.wait().expect(3);
    assert_eq!(run.stdout.matches("\"question_closed\"").count(), 1, "{}", run.stdout);
    let told = results(&server.last_request());
    assert!(told.iter().all(|text| text.contains("nobody can be asked")), "{told:?}");
    assert!(!folder.work().join("one").exists() && !folder.work().join("two").exists());
}

#[test]
fn a_line_that_is_no_text_is_named_and_the_next_one_counts() {
    let server = ModelServer::start([
        Answer::call("bash", json!({"command": "touch one"})),
        Answer::text("ok"),
    ]);
    let folder = folder().with_model(&server, Wire::Anthropic);
    let mut command = folder.command(&TALK);
    command.stdin(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(b"{\"type\":\"\xff\"}\n{\"type\":\"mode\",\"mode\":\"auto\"}\n").unwrap();
    let output = child.wait_with_output();
    drop(input);
    let output = output.unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{errors}");
    assert!(errors.contains("this command is not understood"), "{errors}");
    assert!(folder.work().join("one").exists());
}

#[test]
fn a_prompt_of_a_server_that_cannot_be_had_is_a_failure_and_no_refusal() {
    let server = ModelServer::start([]);
    let folder = folder()
        .user_config(&config(json!({"fake": fake(&["ok"])})))
        .with_model(&server, Wire::Anthropic);
    let run = ["run", "-m", "anthropic/m", "--command", "fake:greet"];
    let run = folder.tw(&run).expect(1);
    assert!(run.stderr.contains("it needs who"), "{}", run.stderr);
    assert!(server.requests().is_empty());
}

fn with_input(folder: &Folder, arguments: &[&str], text: &str) -> Child {
    let mut run = folder.converse(arguments);
    run.say(text);
    run.end_input();
    run
}

#[test]
fn files_and_input_go_with_a_prompt_of_a_server() {
    let server = ModelServer::start([Answer::text("Hello.")]);
    let folder = folder()
        .user_config(&config(json!({"fake": fake(&["ok"])})))
        .file("a.txt", "what the file says")
        .with_model(&server, Wire::Anthropic);
    let run = ["run", "-m", "anthropic/m", "-f", "a.txt", "--command", "fake:greet", "Ann"];
    with_input(&folder, &run, "what was piped").wait().expect(0);
    let said = server.last_request().messages()[0]["content"].to_string();
    for part in ["Say hello to Ann.", "what the file says", "what was piped"] {
        assert!(said.contains(part), "{part}: {said}");
    }
}

#[test]
fn only_a_persons_own_words_mention_resources_and_the_rules_decide() {
    let server = ModelServer::start([Answer::text("a"), Answer::text("b")]);
    let mut entry = fake(&["ok"]);
    entry["required"] = json!(true);
    let folder = folder().with_model(&server, Wire::Anthropic);
    let folder = folder.user_config(&config(json!({"fake": entry.clone()})));
    folder.write("a.txt", "@fake:fake://in-a-file");
    let run = ["run", "-m", "anthropic/m", "-f", "a.txt", "See @fake:fake://typed"];
    with_input(&folder, &run, "@fake:fake://piped").wait().expect(0);
    let said = server.last_request().messages()[0]["content"].to_string();
    assert!(said.contains("the content of fake://typed"), "{said}");
    assert!(!said.contains("the content of fake://piped"), "{said}");
    assert!(!said.contains("the content of fake://in-a-file"), "{said}");
    let rule = json!({"mcp": {"fake": entry}, "permission": {"read": {"mcp:fake:*": "deny"}}});
    let folder = folder.user_config(&rule.to_string());
    let run = folder.tw(&["run", "-m", "anthropic/m", "See @fake:fake://typed"]).expect(0);
    assert!(run.stderr.contains("@fake:fake://typed: Permission denied"), "{}", run.stderr);
    let said = server.last_request().messages()[0]["content"].to_string();
    assert!(!said.contains("the content of"), "{said}");
}
