//! What people keep in their folders: agents, commands, rules, settings.

use serde_json::{Value, json};
use toolwright_testkit::{Answer, Captured, Folder, ModelServer, Wire};

use crate::{folder, results};

fn with(server: &ModelServer) -> Folder {
    folder().with_model(server, Wire::Anthropic)
}

/// All that the person's side of the first request says.
fn said(request: &Captured) -> String {
    request.messages()[0]["content"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|part| part["text"].as_str())
        .collect::<Vec<_>>()
        .join("\n---\n")
}

fn system(request: &Captured) -> String {
    request.body["system"].to_string()
}

#[test]
fn an_agent_is_a_markdown_file() {
    let server = ModelServer::start([
        Answer::call("write", json!({ "filePath": "x", "content": "x" })),
        Answer::text("ok"),
    ]);
    let text = "---\ndescription: Reviews: carefully\nmode: primary\ntemperature: 0.25\ntools:\n  write: false\n  edit: false\n---\nYou only look.\n";
    let folder = with(&server).file(".opencode/agent/team/reviewer.md", text);
    folder
        .tw(&["run", "--trust", "--auto", "-m", "anthropic/m", "-a", "team/reviewer", "go"])
        .expect(3);
    let first = &server.requests()[0];
    assert!(system(first).contains("You only look."), "{}", system(first));
    assert_eq!(first.body["temperature"], 0.25);
    assert!(!folder.work().join("x").exists());
    let listed = folder.tw(&["agent", "list", "--trust"]).expect(0);
    assert!(listed.stdout.contains("Reviews: carefully"), "{}", listed.stdout);
    let untrusted = folder.tw(&["agent"]).expect(0);
    assert!(!untrusted.stdout.contains("team/reviewer"));
    assert!(untrusted.stderr.contains("not trusted"), "{}", untrusted.stderr);
}

#[test]
fn a_broken_head_is_named_and_the_rest_works() {
    let folder = folder()
        .file(".opencode/agents/broken.md", "---\nmode: [\n---\nx\n")
        .file(".opencode/agents/wrong.md", "---\nmode: sideways\n---\nx\n")
        .file(".opencode/agents/fine.md", "---\ndescription: fine\n---\nx\n");
    let listed = folder.tw(&["agent", "--trust"]).expect(0);
    assert!(listed.stdout.contains("fine"), "{}", listed.stdout);
    assert!(
        listed.stderr.contains("broken.md: it is not used: its head is not right: line"),
        "{}",
        listed.stderr
    );
    assert!(listed.stderr.contains("the agent wrong is not used: "), "{}", listed.stderr);
}

#[test]
fn a_command_is_filled_in_run_and_said() {
    let server = ModelServer::start([Answer::text("ok")]);
    let text = "---\ndescription: d\nagent: plan\n---\nLook at $1 in @notes.md\n\nFiles: !`ls *.md`\nRest: $2\n";
    let folder =
        with(&server).file(".opencode/command/look.md", text).file("notes.md", "the notes\n");
    folder
        .tw(&["run", "--trust", "-m", "anthropic/m", "--command", "look", "bugs", "and", "more"])
        .expect(0);
    let said = said(&server.last_request());
    assert!(
        said.contains("Look at bugs in @notes.md\n\nFiles: notes.md\nRest: and more"),
        "{said}"
    );
    assert!(said.contains("<file path=\"notes.md\">\nthe notes"), "{said}");
}

#[test]
fn a_shell_command_of_a_template_is_asked_for_like_any_other() {
    let server = ModelServer::start([Answer::text("ok")]);
    let folder = with(&server).file(".opencode/command/make.md", "Made: !`touch made`\n");
    let ran = folder.tw(&["run", "--trust", "-m", "anthropic/m", "--command", "make"]).expect(3);
    assert!(ran.stderr.contains("touch made"), "{}", ran.stderr);
    assert!(!folder.work().join("made").exists());
    assert!(server.requests().is_empty());
    let ran = folder.tw(&["run", "--command", "nothing"]).expect(2);
    assert!(ran.stderr.contains("known commands: init, review"), "{}", ran.stderr);
}

#[test]
fn a_command_for_another_agent_is_given_to_it() {
    let server = ModelServer::start([Answer::text("ok")]);
    let config =
        r#"{ "command": { "find": { "template": "Find $ARGUMENTS", "agent": "explore" } } }"#;
    let folder = with(&server).file("opencode.json", config);
    folder.tw(&["run", "--trust", "-m", "anthropic/m", "--command", "find", "it"]).expect(0);
    let said = said(&server.last_request());
    assert!(said.contains("Give this work to the agent \"explore\" with the task tool"), "{said}");
    assert!(said.contains("Find it"), "{said}");
}

#[test]
fn a_mentioned_file_comes_with_the_prompt_unless_it_may_not_be_read() {
    let server = ModelServer::start([Answer::text("ok")]);
    let folder = with(&server).file("a.txt", "content of a").file(".env", "KEY=1");
    folder.tw(&["run", "-m", "anthropic/m", "Compare @a.txt with @.env and @missing"]).expect(0);
    let said = said(&server.last_request());
    assert!(said.contains("<file path=\"a.txt\">\ncontent of a\n</file>"), "{said}");
    assert!(!said.contains("KEY=1"), "{said}");
}

#[test]
fn init_asks_for_an_agents_file() {
    let server = ModelServer::start([
        Answer::call("write", json!({ "filePath": "AGENTS.md", "content": "# Rules\n" })),
        Answer::text("done"),
    ]);
    let folder = with(&server);
    folder.tw(&["init", "--auto", "-m", "anthropic/m", "mind the tests"]).expect(0);
    let said = said(&server.requests()[0]);
    assert!(said.contains("AGENTS.md") && said.contains("mind the tests"), "{said}");
    assert_eq!(folder.read("AGENTS.md"), "# Rules\n");
    assert_eq!(results(&server.last_request()).len(), 1);
}

#[test]
fn files_that_the_settings_name_are_instructions() {
    let server = ModelServer::start([Answer::text("ok")]);
    let folder = with(&server)
        .file("opencode.json", r#"{ "instructions": ["docs/*.md", "RULES.txt"] }"#)
        .file("docs/a.md", "rule-a")
        .file("docs/deep/b.md", "rule-b")
        .file("RULES.txt", "rule-c");
    folder.tw(&["run", "--trust", "-m", "anthropic/m", "go"]).expect(0);
    let system = system(&server.last_request());
    assert!(system.contains("rule-a") && system.contains("rule-c"), "{system}");
    assert!(!system.contains("rule-b"), "{system}");
}

#[test]
fn the_settings_are_printed_with_where_they_came_from_and_without_keys() {
    let folder = folder()
        .user_config(r#"{ "model": "anthropic/m", "provider": { "x": { "options": { "apiKey": "sk-very-secret" } } } }"#)
        .file("opencode.json", r#"{ "model": "openai/n", "steps": 7 }"#);
    let shown = folder.tw(&["config", "--trust"]).expect(0);
    let value: Value = serde_json::from_str(&shown.stdout).unwrap();
    assert_eq!(value["model"], "openai/n");
    assert_eq!(value["provider"]["x"]["options"]["apiKey"], "(hidden)");
    let origins = folder.tw(&["config", "--trust", "--show-origin"]).expect(0).stdout;
    let line = |key: &str| origins.lines().find(|l| l.contains(key)).unwrap_or_default().to_owned();
    assert!(line("model = ").contains("work/opencode.json"), "{origins}");
    assert!(line("apiKey").contains("(hidden)"), "{origins}");
    assert!(!origins.contains("sk-very-secret"));
}

#[test]
fn a_new_agent_is_written_once() {
    let folder = folder();
    let new = [
        "agent",
        "create",
        "scout",
        "--description",
        "Looks around",
        "--read-only",
        "--mode",
        "subagent",
    ];
    let made = folder.tw(&new).expect(0);
    assert!(made.stdout.trim().ends_with(".toolwright/agent/scout.md"), "{}", made.stdout);
    let listed = folder.tw(&["agent", "--trust"]).expect(0).stdout;
    assert!(listed.contains("scout") && listed.contains("Looks around"), "{listed}");
    let again = folder.tw(&new).expect(2);
    assert!(again.stderr.contains("exists already"), "{}", again.stderr);
}

#[test]
fn skills_lie_in_all_their_folders_nested_and_in_the_home() {
    let server = ModelServer::start([
        Answer::call("skill", json!({ "name": "deep" })),
        Answer::call("skill", json!({ "name": "closed" })),
    ]);
    let skill = |name: &str| {
        format!("---\nname: {name}\ndescription: About {name}.\n---\nText of {name}.\n")
    };
    let mut folder =
        with(&server).file("../home/.claude/skills/six/ref/notes.txt", "what lies with it").file(
            "opencode.json",
            r#"{ "permission": { "skill": { "*": "allow", "closed": "deny" } } }"#,
        );
    let notes = folder.root().join("home/.claude/skills/six/ref/notes.txt");
    server.then(Answer::call("read", json!({ "filePath": notes })));
    server.then(Answer::text("ok"));
    for (place, name) in [
        (".opencode/skill/one", "one"),
        (".opencode/skills/two", "two"),
        (".toolwright/skill/three", "three"),
        (".toolwright/skills/four", "four"),
        (".claude/skills/five", "five"),
        (".agents/skills/group/deep", "deep"),
        (".claude/skills/closed", "closed"),
        ("../home/.claude/skills/six", "six"),
        ("../home/.agents/skills/seven", "seven"),
        ("../home/.config/opencode/skills/eight", "eight"),
        ("../home/.config/toolwright/skills/nine", "nine"),
    ] {
        folder = folder.file(&format!("{place}/SKILL.md"), &skill(name));
    }
    folder.tw(&["run", "--trust", "-m", "anthropic/m", "go"]);
    let request = server.last_request();
    let tools = request.body["tools"].as_array().unwrap();
    let listed = tools.iter().find(|t| t["name"] == "skill").unwrap()["description"].to_string();
    for name in ["one", "two", "three", "four", "five", "deep", "six", "seven", "eight", "nine"] {
        assert!(listed.contains(&format!("About {name}.")), "{name} in {listed}");
    }
    assert!(!listed.contains("About closed."), "{listed}");
    let results = results(&request);
    assert!(results[0].contains("Text of deep."), "{}", results[0]);
    assert!(!results[1].contains("Text of closed."), "{}", results[1]);
    assert!(results[2].contains("what lies with it"), "without a question: {}", results[2]);
}

#[test]
fn a_command_has_its_own_model_and_may_be_work_for_another() {
    let server = ModelServer::start([Answer::text("ok"), Answer::text("ok"), Answer::text("ok")]);
    let config = json!({ "command": {
        "own": { "template": "Own $1", "model": "anthropic/other", "agent": "plan" },
        "work": { "template": "Work", "subtask": true },
        "same": { "template": "Same", "agent": "explore", "subtask": false },
    } });
    let folder = with(&server).file("opencode.json", &config.to_string());
    let run = |name: &str| folder.tw(&["run", "--trust", "--command", name, "it"]).expect(0);
    run("own");
    assert_eq!(server.last_request().body["model"], "other");
    assert!(said(&server.last_request()).contains("Own it"));
    folder.tw(&["run", "--trust", "-m", "anthropic/m", "--command", "work"]).expect(0);
    assert!(said(&server.last_request()).contains("the agent \"general\" with the task tool"));
    folder.tw(&["run", "--trust", "-m", "anthropic/m", "--command", "same"]).expect(0);
    assert!(!said(&server.last_request()).contains("with the task tool"));
}

#[test]
fn an_agent_that_is_mentioned_is_given_the_work_in_run_and_in_the_terminal() {
    let server = ModelServer::start([Answer::text("ok"), Answer::text("Seen.")]);
    let folder = with(&server);
    folder.tw(&["run", "-m", "anthropic/m", "Ask @explore where it is"]).expect(0);
    let words = said(&server.last_request());
    assert!(
        words.contains("Give this work to the agent \"explore\" with the task tool"),
        "{words}"
    );
    let terminal = toolwright_testkit::Terminal::start(&folder, &["-m", "anthropic/m"], 90, 30);
    terminal.wait_for("anthropic/m");
    terminal.keys("Ask @explore where it is \r");
    terminal.wait_for("Seen.");
    let words = said(&server.last_request());
    assert!(words.contains("task tool with the agent \"explore\""), "{words}");
}

#[test]
fn the_schema_of_the_settings_is_printed_and_a_file_may_name_it() {
    let folder = folder().file(
        "opencode.json",
        r#"{ "$schema": "https://opencode.ai/config.json", "mode": { "docs": { "prompt": "Write." } } }"#,
    );
    let printed = folder.tw(&["config", "--schema"]).expect(0);
    let schema: Value = serde_json::from_str(&printed.stdout).unwrap();
    assert!(
        schema["properties"]["agent"].is_object() && schema["properties"]["$schema"].is_object()
    );
    let shown = folder.tw(&["config", "--trust"]).expect(0);
    assert!(!shown.stderr.contains("unknown key"), "{}", shown.stderr);
    let listed = folder.tw(&["agent", "--trust"]).expect(0).stdout;
    assert!(listed.contains("docs"), "{listed}");
}
