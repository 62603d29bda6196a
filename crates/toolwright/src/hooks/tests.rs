use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};
use toolwright_config::{self as config, HookEvent, Matcher};
use toolwright_engine::{OnFailure, Point, Verdict};
use toolwright_proc::Ended;
use toolwright_tool::{Hint, Workspace};

use super::answer::verdict;
use super::event::{Told, tell};
use super::run::{Finished, run};
use super::{Place, command_hooks, names};

fn place(worker: Option<&str>) -> Place {
    Place {
        session: "ses_1".to_owned(),
        transcript: PathBuf::from("/logs/ses_1.jsonl"),
        workspace: Arc::new(Workspace::new(Path::new("/usr")).unwrap()),
        worker: worker.map(str::to_owned),
        servers: vec!["my.files".to_owned(), "my".to_owned()],
        passed: Vec::new(),
        withheld: Vec::new(),
    }
}

fn configured(event: HookEvent, matcher: &str, command: &str) -> config::CommandHook {
    config::CommandHook {
        event,
        matcher: Matcher::try_from(matcher.to_owned()).unwrap(),
        command: command.to_owned(),
        timeout: None,
        on_failure: None,
        source: PathBuf::from("/settings.json"),
        project: None,
        files: std::collections::BTreeMap::new(),
    }
}

/// An event, what the engine knows, a field of what is told, and what it can be chosen by.
type Case<'a> = (HookEvent, Value, Value, &'a str, Value, &'a [&'a str]);

fn before_call() -> Told {
    let input = json!({ "tool": "edit", "callID": "c1" });
    let output = json!({ "args": { "filePath": "bin/x", "oldString": "a", "newString": "b" } });
    tell(HookEvent::PreToolUse, &place(None), &input, &output).unwrap()
}

fn prompt() -> Told {
    let output = json!({ "parts": [{ "type": "text", "text": "hi" }] });
    tell(HookEvent::UserPromptSubmit, &place(None), &json!({}), &output).unwrap()
}

fn ended(status: i32, output: &str, errors: &str) -> Finished {
    let (output, errors) = (output.to_owned(), errors.to_owned());
    Finished { how: Ended::Exit(status), output, errors }
}

#[test]
fn tools_have_the_names_that_hooks_know() {
    let servers = place(None).servers;
    for (own, expected) in [
        ("bash", "Bash"),
        ("bash_input", "Bash"),
        ("apply_patch", "Edit"),
        ("multiedit", "MultiEdit"),
        ("todowrite", "TodoWrite"),
        ("my_files_list", "mcp__my_files__list"),
        ("my_list", "mcp__my__list"),
        ("lint", "lint"),
    ] {
        assert_eq!(names::tool(own, &servers), expected);
    }
}

#[test]
fn words_that_are_typed_are_told_as_a_command_and_come_back_as_words() {
    let workspace = toolwright_tool::Workspace::new(std::path::Path::new("/usr")).unwrap();
    let ours = json!({"id": "1", "text": "rm x"});
    let told = names::arguments("bash_input", &ours, &workspace);
    assert_eq!(told["command"], "rm x");
    assert_eq!(names::arguments_back("bash_input", &told, &told, &ours), ours);
    let mut changed = told.clone();
    changed["command"] = json!("ls");
    let back = names::arguments_back("bash_input", &changed, &told, &ours);
    assert_eq!(back, json!({"id": "1", "text": "ls"}));
}

#[test]
fn a_call_is_told_in_the_fields_that_hooks_read() {
    let told = before_call();
    let expected = json!({
        "session_id": "ses_1", "transcript_path": "/logs/ses_1.jsonl", "cwd": "/usr",
        "permission_mode": "default", "hook_event_name": "PreToolUse", "tool_name": "Edit",
        "tool_input": { "file_path": "/usr/bin/x", "old_string": "a", "new_string": "b" },
        "tool_use_id": "c1",
    });
    assert_eq!(told.text, expected);
    assert_eq!(told.subjects, ["Edit", "edit"]);
}

#[test]
fn each_event_has_its_fields_and_what_it_can_be_chosen_by() {
    let settled = json!({ "title": "t", "output": "text", "metadata": {} });
    let call = |failed: bool| json!({ "tool": "bash", "callID": "c", "args": { "command": "ls" }, "failed": failed });
    let ask = json!({ "tool": "bash", "args": {}, "summary": "rm x" });
    let stop = json!({ "answer": "Done.", "stop_hook_active": true });
    let cases: [Case<'_>; 9] = [
        (
            HookEvent::PostToolUse,
            call(false),
            settled.clone(),
            "/tool_response/stdout",
            json!("text"),
            &["Bash", "bash"],
        ),
        (
            HookEvent::PostToolUseFailure,
            call(true),
            settled,
            "/error",
            json!("text"),
            &["Bash", "bash"],
        ),
        (
            HookEvent::PermissionRequest,
            ask.clone(),
            json!({"status": "ask"}),
            "/tool_name",
            json!("Bash"),
            &["Bash", "bash"],
        ),
        (
            HookEvent::Notification,
            ask,
            json!({"status": "ask"}),
            "/message",
            json!("Bash needs your permission: rm x"),
            &["permission_prompt"],
        ),
        (HookEvent::Stop, stop, json!({}), "/stop_hook_active", json!(true), &[]),
        (
            HookEvent::SessionStart,
            json!({"source": "resume"}),
            json!({}),
            "/source",
            json!("resume"),
            &["resume"],
        ),
        (
            HookEvent::SessionEnd,
            json!({"reason": "other"}),
            json!({}),
            "/reason",
            json!("other"),
            &["other"],
        ),
        (
            HookEvent::PreCompact,
            json!({"reason": "asked for"}),
            json!({}),
            "/trigger",
            json!("manual"),
            &["manual"],
        ),
        (
            HookEvent::PreCompact,
            json!({"reason": "the context is full"}),
            json!({}),
            "/trigger",
            json!("auto"),
            &["auto"],
        ),
    ];
    for (event, input, output, field, expected, subjects) in cases {
        let told = tell(event, &place(None), &input, &output).unwrap();
        assert_eq!(told.text.pointer(field), Some(&expected), "{event:?}: {}", told.text);
        assert_eq!(told.subjects, subjects, "{event:?}");
    }
    assert_eq!(prompt().text["prompt"], "hi");
}

#[test]
fn a_point_reached_for_another_reason_is_not_told() {
    let decided = json!({ "status": "allow" });
    for (event, input, output) in [
        (HookEvent::PostToolUse, json!({ "failed": true }), json!({})),
        (HookEvent::PostToolUseFailure, json!({ "failed": false }), json!({})),
        (HookEvent::Notification, json!({}), decided.clone()),
        (HookEvent::PermissionRequest, json!({}), decided),
        (HookEvent::SubagentStart, json!({ "source": "compact" }), json!({})),
    ] {
        assert!(tell(event, &place(Some("a")), &input, &output).is_none(), "{event:?}");
    }
}

#[test]
fn an_answer_before_a_call_decides_about_it() {
    let specific = |fields: &str| format!(r#"{{"hookSpecificOutput":{{{fields}}}}}"#);
    let block = |reason: &str| Verdict { block: Some(reason.to_owned()), ..Verdict::default() };
    let hint = |hint| Verdict { hint, ..Verdict::default() };
    let cases = [
        (String::new(), Verdict::default()),
        ("just words".to_owned(), Verdict::default()),
        ("{}".to_owned(), Verdict::default()),
        (specific(r#""permissionDecision":"allow""#), hint(Hint::Allow)),
        (specific(r#""permissionDecision":"ask""#), hint(Hint::Ask)),
        (specific(r#""permissionDecision":"defer""#), Verdict::default()),
        (specific(r#""permissionDecision":"deny","permissionDecisionReason":"no""#), block("no")),
        (specific(r#""permissionDecision":"deny""#), block("no reason was given")),
        (r#"{"decision":"approve"}"#.to_owned(), hint(Hint::Allow)),
        (r#"{"decision":"block","reason":"old form"}"#.to_owned(), block("old form")),
        (
            r#"{"continue":false,"stopReason":"enough"}"#.to_owned(),
            Verdict { stop: Some("enough".to_owned()), ..block("enough") },
        ),
        (
            r#"{"systemMessage":"look","suppressOutput":true}"#.to_owned(),
            Verdict { notice: Some("look".to_owned()), ..Verdict::default() },
        ),
        (
            specific(r#""additionalContext":"know this""#),
            Verdict { context: Some("know this".to_owned()), ..Verdict::default() },
        ),
    ];
    for (output, expected) in cases {
        let said = verdict(HookEvent::PreToolUse, &ended(0, &output, ""), &before_call());
        assert_eq!(said, Ok(expected), "{output}");
    }
}

#[test]
fn changed_input_comes_back_in_our_words_and_what_was_left_alone_as_it_was() {
    let output = json!({ "hookSpecificOutput": { "updatedInput": {
        "file_path": "/usr/bin/x", "old_string": "a", "new_string": "c", "replace_all": true,
    } } });
    let ended = ended(0, &output.to_string(), "");
    let said = verdict(HookEvent::PreToolUse, &ended, &before_call()).unwrap();
    let args =
        json!({ "filePath": "bin/x", "oldString": "a", "newString": "c", "replaceAll": true });
    assert_eq!(said.output, Some(json!({ "args": args })));
}

#[test]
fn status_2_refuses_what_can_be_refused() {
    let refused = ended(2, r#"{"decision":"approve"}"#, "  because\n");
    let blocked = Verdict { block: Some("because".to_owned()), ..Verdict::default() };
    let told = Verdict { context: Some("because".to_owned()), ..Verdict::default() };
    let noted = Verdict { notice: Some("because".to_owned()), ..Verdict::default() };
    for event in HookEvent::ALL {
        let expected = match event {
            HookEvent::PreToolUse
            | HookEvent::PermissionRequest
            | HookEvent::UserPromptSubmit
            | HookEvent::Stop
            | HookEvent::SubagentStop => &blocked,
            HookEvent::PostToolUse | HookEvent::PostToolUseFailure => &told,
            _ => &noted,
        };
        assert_eq!(verdict(event, &refused, &before_call()).as_ref(), Ok(expected), "{event:?}");
    }
}

#[test]
fn words_are_context_where_a_prompt_or_a_session_begins() {
    for event in [HookEvent::UserPromptSubmit, HookEvent::SessionStart, HookEvent::SubagentStart] {
        for words in ["the branch is main", "{not json}"] {
            let said = verdict(event, &ended(0, words, ""), &prompt()).unwrap();
            assert_eq!(said.context.as_deref(), Some(words));
        }
    }
    let long = "ä".repeat(20_000);
    let said = verdict(HookEvent::SessionStart, &ended(0, &long, ""), &prompt()).unwrap();
    assert!(said.context.unwrap().ends_with("ä… (cut at 10000 characters)"));
}

#[test]
fn a_stop_that_is_final_sends_nobody_back() {
    let text = r#"{"decision":"block","reason":"more","continue":false}"#;
    let said = verdict(HookEvent::Stop, &ended(0, text, ""), &prompt()).unwrap();
    assert_eq!(said, Verdict::default());
}

#[test]
fn a_request_for_permission_can_be_answered_but_not_changed() {
    let answer = |decision: &str| {
        let text = format!(r#"{{"hookSpecificOutput":{{"decision":{decision}}}}}"#);
        verdict(HookEvent::PermissionRequest, &ended(0, &text, ""), &before_call())
    };
    let allowed = answer(r#"{"behavior":"allow"}"#).unwrap();
    assert_eq!(allowed.output, Some(json!({ "status": "allow" })));
    let denied = answer(r#"{"behavior":"deny","message":"not here"}"#).unwrap();
    assert_eq!(denied.block.as_deref(), Some("not here"));
    assert!(answer(r#"{"behavior":"allow","updatedInput":{"command":"ls"}}"#).is_err());
}

#[test]
fn what_is_no_answer_is_a_failure_that_says_why() {
    let killed = Finished { how: Ended::Signal(9), ..ended(0, "", "") };
    for (ended, expected) in [
        (ended(1, "{}", "first\nsecond"), "exit status 1: first"),
        (ended(127, "", "sh: no-such: not found"), "exit status 127: sh: no-such: not found"),
        (killed, "ended by signal 9"),
        (ended(0, "{broken", ""), "its answer is not JSON: "),
        (ended(0, r#"{"decision":"perhaps"}"#, ""), "its answer cannot be read: "),
        (ended(0, r#"{"hookSpecificOutput":{"updatedInput":5}}"#, ""), "not an object"),
    ] {
        let problem = verdict(HookEvent::PreToolUse, &ended, &before_call()).unwrap_err();
        assert!(problem.contains(expected), "{problem}");
    }
}

#[test]
fn the_same_command_is_one_hook_whatever_number_of_matchers_name_it() {
    let mut strict = configured(HookEvent::PreToolUse, "Edit", "check");
    strict.on_failure = Some(toolwright_config::FailingHook::Block);
    let hooks = [
        configured(HookEvent::Notification, "", "ring"),
        configured(HookEvent::PreToolUse, "Bash", "check"),
        strict,
        configured(HookEvent::PermissionRequest, "", "decide"),
        configured(HookEvent::PostToolUse, "", "check"),
    ];
    let hooks = command_hooks(&hooks, place(None));
    let names: Vec<_> = hooks.iter().map(|hook| hook.name()).collect();
    assert_eq!(names, ["check", "decide", "check", "ring"], "people are called last");
    assert_eq!(hooks[0].on_failure(), OnFailure::Block, "the strictest counts");
}

#[test]
fn a_worker_has_events_of_its_own() {
    let hooks = HookEvent::ALL.map(|event| configured(event, "", event.name()));
    let at = |worker, point| -> Vec<String> {
        let hooks = command_hooks(&hooks, place(worker));
        hooks.iter().filter(|h| h.wants(point)).map(|h| h.name().to_owned()).collect()
    };
    assert_eq!(at(None, Point::Stop), ["Stop"]);
    assert_eq!(at(Some("general"), Point::Stop), ["SubagentStop"]);
    assert_eq!(at(None, Point::SessionStart), ["SessionStart"]);
    assert_eq!(at(Some("general"), Point::SessionStart), ["SubagentStart"]);
    assert_eq!(at(Some("general"), Point::ChatMessage), Vec::<String>::new());
    assert_eq!(at(Some("general"), Point::ToolBefore), ["PreToolUse"]);
    assert_eq!(at(None, Point::PermissionAsk), ["PermissionRequest", "Notification"]);
}

#[tokio::test]
async fn a_command_gets_the_event_its_folder_and_the_projects() {
    let script =
        "cat; pwd; echo $CLAUDE_PROJECT_DIR $TOOLWRIGHT_PROJECT_DIR; echo oops >&2; exit 3";
    let ended =
        run(script, Path::new("/usr"), Path::new("/etc"), "told\n".to_owned(), (&[], &[])).await;
    let ended = ended.unwrap();
    assert_eq!(ended.how, Ended::Exit(3));
    assert_eq!(ended.output, "told\n/usr\n/etc /etc\n");
    assert_eq!(ended.errors, "oops\n");
}

#[tokio::test]
async fn more_than_is_kept_is_read_and_dropped() {
    let script = "head -c 3000000 /dev/zero";
    let ended =
        run(script, Path::new("/"), Path::new("/"), String::new(), (&[], &[])).await.unwrap();
    assert_eq!(ended.output.len(), 1 << 20);
}

#[tokio::test]
async fn a_command_that_leaves_something_in_the_background_has_ended() {
    let script = "echo said; sleep 600 & exit 0";
    let ended =
        run(script, Path::new("/"), Path::new("/"), String::new(), (&[], &[])).await.unwrap();
    assert_eq!(ended.output, "said\n");
}

#[tokio::test]
async fn a_hook_that_does_not_fit_is_not_run() {
    let folder = tempfile::tempdir().unwrap();
    let mark = folder.path().join("ran");
    let command = format!("touch {}", mark.display());
    let hooks = command_hooks(&[configured(HookEvent::PreToolUse, "Bash", &command)], place(None));
    let call = |tool: &'static str| {
        let hook = Arc::clone(&hooks[0]);
        async move {
            let input = json!({ "tool": tool, "callID": "c" });
            hook.call(Point::ToolBefore, &input, &json!({ "args": {} })).await
        }
    };
    assert_eq!(call("read").await, Ok(Verdict::default()));
    assert!(!mark.exists());
    assert_eq!(call("bash").await, Ok(Verdict::default()));
    assert!(mark.exists());
}

#[tokio::test]
async fn a_hook_does_not_see_variables_that_hold_keys() {
    let told = |withheld: Vec<String>| async move {
        let root = Path::new("/");
        run("echo \"[$PWD$HOME]\"", root, root, String::new(), (&[], &withheld))
            .await
            .unwrap()
            .output
    };
    assert_ne!(told(Vec::new()).await.trim(), "[/]", "the test itself has a home");
    assert_eq!(told(vec!["HOME".to_owned()]).await.trim(), "[/]");
}
