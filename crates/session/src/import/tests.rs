use std::path::Path;

use serde_json::{Value, json};
use toolwright_llm::{Content, Turn, Usage};

use super::*;
use crate::fold::Session;
use crate::step::{Ending, Slot, Step, StepBlock};
use crate::{Item, Store};

pub(super) fn lines(lines: &[Value]) -> Vec<u8> {
    lines.iter().map(|line| format!("{line}\n")).collect::<String>().into_bytes()
}

pub(super) struct Taken {
    _folder: tempfile::TempDir,
    pub(super) store: Store,
    pub(super) session: Session,
    pub(super) notices: Vec<String>,
    from: &'static str,
}

/// Read, kept, and opened again as any session is.
pub(super) fn taken(bytes: &[u8]) -> Taken {
    taken_from(&read(bytes).unwrap())
}

pub(super) fn taken_from(foreign: &Foreign) -> Taken {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::new(folder.path().join("sessions"));
    let id = store.keep(foreign, Path::new("/here"), "test").unwrap();
    let (_, mut session, notices) = store.open(&id).unwrap();
    assert!(notices.is_empty());
    assert_valid(&mut session);
    // With what no model is sent any more.
    let session = store.peek(&id).unwrap();
    Taken { _folder: folder, store, session, notices: foreign.notices.clone(), from: foreign.from }
}

/// What goes to a model has a result for each call, and ids that are unique.
fn assert_valid(session: &mut Session) {
    let mut ids = std::collections::HashSet::new();
    for turn in session.turns() {
        if let Turn::Assistant { blocks, .. } = &*turn {
            for block in blocks {
                if let toolwright_llm::Block::Call { id, arguments, result, .. } = block {
                    assert!(ids.insert(id.clone()), "{id} twice");
                    assert!(arguments.get().starts_with('{'), "{arguments}");
                    assert!(!result.content.is_empty());
                }
            }
        }
    }
    for item in session.items() {
        if let Item::Step(step) = item {
            assert!(step.calls().all(|call| matches!(call.slot(), Slot::Settled(_))));
        }
    }
}

pub(super) fn steps(session: &Session) -> Vec<&Step> {
    let steps = session.items().iter().filter_map(|item| match item {
        Item::Step(step) => Some(step),
        _ => None,
    });
    steps.collect()
}

pub(super) fn said(session: &Session) -> Vec<String> {
    let mut out = Vec::new();
    for item in session.items() {
        match item {
            Item::Prompt(prompt) => {
                let texts = prompt.content.iter().map(|part| match part {
                    Content::Text { text } => text.clone(),
                    Content::Media(media) => format!("[{}]", media.mime),
                });
                out.push(format!("> {}", texts.collect::<Vec<_>>().join(" ")));
            }
            Item::Note(text) => out.push(format!("# {text}")),
            Item::Step(step) => {
                for block in &step.blocks {
                    out.push(match block {
                        StepBlock::Text { text, .. } => text.clone(),
                        StepBlock::Reasoning { text, .. } => format!("? {text}"),
                        StepBlock::ServerTool { name, .. } => format!("@ {name}"),
                        StepBlock::Call(call) => {
                            let outcome = call.outcome().unwrap();
                            let mark = match outcome.ending {
                                Ending::Completed => "+",
                                Ending::Failed => "-",
                                _ => "~",
                            };
                            format!("{mark} {} {} = {}", call.name, call.arguments, outcome.output)
                        }
                    });
                }
                if let Some(failure) = &step.failure {
                    out.push(format!("! {}", failure.message));
                }
            }
        }
    }
    out
}

#[test]
fn a_session_of_opencode_is_taken_whole() {
    let part = |part: Value| part;
    let export = json!({
        "info": { "id": "ses_x", "slug": "calm-sea", "directory": "/elsewhere", "title": "Fixing it",
                  "time": { "created": 1000, "updated": 9000 } },
        "messages": [
            { "info": { "id": "msg_1", "role": "user", "time": { "created": 1000 }, "agent": "build",
                        "model": { "providerID": "openai", "modelID": "gpt" } },
              "parts": [
                part(json!({ "type": "text", "text": "Fix it" })),
                part(json!({ "type": "text", "text": "Called the Read tool", "synthetic": true })),
                part(json!({ "type": "file", "mime": "image/png", "url": "data:image/png;base64,AAAA", "filename": "a.png" })),
                part(json!({ "type": "file", "mime": "text/plain", "url": "file:///etc/hosts" })),
              ] },
            { "info": { "id": "msg_2", "role": "assistant", "time": { "created": 2000, "completed": 3000 },
                        "providerID": "openai", "modelID": "gpt", "agent": "build", "cost": 0.5, "finish": "tool-calls",
                        "tokens": { "input": 10, "output": 4, "reasoning": 2, "cache": { "read": 3, "write": 1 } } },
              "parts": [
                { "type": "step-start" },
                { "type": "reasoning", "text": "Hm", "metadata": { "openai": { "itemId": "rs_1" } }, "time": { "start": 2000 } },
                { "type": "text", "text": "Looking." },
                { "type": "tool", "tool": "read", "callID": "c", "state": { "status": "completed", "input": { "filePath": "a" },
                  "output": "one", "title": "a", "metadata": { "preview": "one" }, "time": { "start": 2100, "end": 2200 } } },
                { "type": "tool", "tool": "bash", "callID": "c", "state": { "status": "error", "input": { "command": "x" },
                  "error": "no", "time": { "start": 2100, "end": 2200 } } },
                { "type": "tool", "tool": "bash", "callID": "d", "state": { "status": "running", "input": { "command": "y" }, "time": { "start": 2100 } } },
                { "type": "step-finish", "reason": "tool-calls", "cost": 0.5, "tokens": {} },
                { "type": "retry", "attempt": 1 },
              ] },
            { "info": { "id": "msg_3", "role": "user", "time": { "created": 4000 }, "agent": "build", "model": {} },
              "parts": [{ "type": "compaction", "auto": true, "tail_start_id": "msg_2" }] },
            { "info": { "id": "msg_4", "role": "assistant", "summary": true, "time": { "created": 4000 } },
              "parts": [{ "type": "text", "text": "So far: nothing." }] },
            { "info": { "id": "msg_5", "role": "assistant", "time": { "created": 5000 }, "providerID": "openai", "modelID": "gpt",
                        "error": { "name": "APIError", "data": { "message": "busy", "statusCode": 503 } } }, "parts": [] },
            { "info": { "id": "msg_6", "role": "assistant", "time": { "created": 6000, "completed": 7000 }, "providerID": "openai",
                        "modelID": "gpt", "finish": "stop" }, "parts": [{ "type": "text", "text": "Done." }] },
        ],
        "children": [{ "info": { "id": "ses_y" }, "messages": [
            { "info": { "id": "m", "role": "user" }, "parts": [{ "type": "text", "text": "Child" }] } ] }],
    });
    let taken = taken(export.to_string().as_bytes());
    assert_eq!(taken.from, "opencode");
    assert_eq!(
        said(&taken.session),
        [
            "> Fix it [image/png]",
            "# Called the Read tool",
            "? Hm",
            "Looking.",
            "+ read {\"filePath\":\"a\"} = one",
            "- bash {\"command\":\"x\"} = no",
            "~ bash {\"command\":\"y\"} = This call was interrupted and its outcome is unknown. Look at the present state before doing it again.",
            "! busy",
            "Done.",
        ]
    );
    let first = steps(&taken.session)[0];
    assert_eq!(first.cost, Some(0.5));
    assert_eq!(
        first.usage,
        Usage { input: 10, output: 6, reasoning: 2, cache_read: 3, cache_write: 1 }
    );
    let compaction = taken.session.compaction().unwrap();
    assert_eq!((compaction.summary.as_str(), compaction.keep_from), ("So far: nothing.", 2));
    assert_eq!(taken.session.title(), "Fixing it");
    assert_eq!(taken.session.imported().unwrap().id, "ses_x");
    assert_eq!(taken.store.children(&taken.session.header).len(), 1);
    let notices = taken.notices.join("\n");
    for told in ["attached files", "signatures of reasoning", "\"retry\"", "1 call had no result"] {
        assert!(notices.contains(told), "{told}: {notices}");
    }
    assert!(!taken.session.is_cut_off());
}

#[test]
fn a_rollout_of_codex_is_taken_whole() {
    let line = |time: &str, kind: &str, payload: Value| json!({ "timestamp": format!("2026-01-02T03:04:{time}Z"), "type": kind, "payload": payload });
    let message = |role: &str, kind: &str, text: &str| json!({ "type": "message", "role": role, "content": [{ "type": kind, "text": text }] });
    let usage = json!({ "input_tokens": 100, "cached_input_tokens": 40, "output_tokens": 9, "reasoning_output_tokens": 5, "total_tokens": 109 });
    let count = |total: u64| json!({ "type": "token_count", "info": { "total_token_usage": { "total_tokens": total }, "last_token_usage": usage } });
    let bytes = lines(&[
        line(
            "00.000",
            "session_meta",
            json!({ "id": "01-abc", "timestamp": "2026-01-02T03:04:00.000Z", "cwd": "/elsewhere", "model_provider": "openai" }),
        ),
        line("00.100", "response_item", message("developer", "input_text", "Be Codex.")),
        line(
            "00.200",
            "response_item",
            message("user", "input_text", "<environment_context>…</environment_context>"),
        ),
        line("00.300", "turn_context", json!({ "cwd": "/elsewhere", "model": "gpt-x" })),
        line(
            "01.000",
            "response_item",
            json!({ "type": "message", "role": "user", "content": [
            { "type": "input_text", "text": "Look" }, { "type": "input_image", "image_url": "data:image/png;base64,AAAA" } ] }),
        ),
        line(
            "02.000",
            "response_item",
            json!({ "type": "reasoning", "summary": [{ "type": "summary_text", "text": "Hm" }], "encrypted_content": "zzz" }),
        ),
        line("02.100", "response_item", message("assistant", "output_text", "Looking.")),
        line(
            "02.200",
            "response_item",
            json!({ "type": "function_call", "name": "exec_command", "arguments": "{\"cmd\":\"ls\"}", "call_id": "a" }),
        ),
        line(
            "02.300",
            "response_item",
            json!({ "type": "custom_tool_call", "name": "apply_patch", "input": "*** Begin Patch\n*** Update File: x.txt\n@@\n-a\n+b\n*** End Patch", "call_id": "b" }),
        ),
        line(
            "02.350",
            "event_msg",
            json!({ "type": "item_completed", "item": { "type": "FileChange", "id": "b", "changes": { "x.txt": { "type": "update", "unified_diff": "@@\n-a\n+b\n" } } } }),
        ),
        line(
            "02.400",
            "response_item",
            json!({ "type": "function_call_output", "call_id": "a", "output": "Process exited with code 2\nOutput:\nno" }),
        ),
        line(
            "02.500",
            "response_item",
            json!({ "type": "custom_tool_call_output", "call_id": "b", "output": [{ "type": "input_text", "text": "Done" }] }),
        ),
        line("02.600", "event_msg", count(109)),
        line("02.700", "event_msg", count(109)),
        line("03.000", "response_item", json!({ "type": "web_search_call", "action": {} })),
        line("03.100", "response_item", message("assistant", "output_text", "All done.")),
        line("03.200", "event_msg", count(218)),
        line("04.000", "compacted", json!({ "message": "So far: looked." })),
        line("05.000", "response_item", message("user", "input_text", "And now?")),
        line(
            "06.000",
            "response_item",
            json!({ "type": "function_call", "name": "exec_command", "arguments": "{\"cmd\":\"sleep 9\"}", "call_id": "c" }),
        ),
        line("07.000", "odd", json!({})),
    ]);
    let taken = taken(&bytes);
    assert_eq!(taken.from, "codex");
    assert_eq!(
        said(&taken.session)[..8],
        [
            "> Look [image/png]",
            "? Hm",
            "Looking.",
            "- exec_command {\"cmd\":\"ls\"} = Process exited with code 2\nOutput:\nno",
            "+ apply_patch {\"patchText\":\"*** Begin Patch\\n*** Update File: x.txt\\n@@\\n-a\\n+b\\n*** End Patch\"} = Done",
            "@ web_search",
            "All done.",
            "> And now?",
        ]
    );
    let steps = steps(&taken.session);
    assert_eq!(steps.len(), 3);
    assert_eq!(
        steps[0].usage,
        Usage { input: 60, output: 9, reasoning: 5, cache_read: 40, cache_write: 0 }
    );
    assert_eq!(steps[0].model.to_string(), "openai/gpt-x");
    let patch = steps[0].calls().nth(1).unwrap().outcome().unwrap();
    assert_eq!(
        (patch.title.as_str(), patch.details["diff"].as_str().unwrap()),
        ("x.txt", "--- x.txt\n+++ x.txt\n@@\n-a\n+b\n")
    );
    assert_eq!(steps[1].usage.input, 60, "sums that come twice count once");
    assert_eq!(taken.session.compaction().unwrap().keep_from, 3);
    assert_eq!(taken.session.places()[0].time, 1_767_323_041_000);
    let notices = taken.notices.join("\n");
    for told in
        ["2 messages with Codex's own instructions", "encrypted", "\"odd\"", "1 call had no result"]
    {
        assert!(notices.contains(told), "{told}: {notices}");
    }
}

#[test]
fn the_first_rollouts_of_codex_are_taken_too() {
    let bytes = lines(&[
        json!({ "id": "old", "timestamp": "2025-05-01T00:00:00.000Z", "instructions": null }),
        json!({ "type": "message", "role": "user", "content": [{ "type": "input_text", "text": "Hi" }] }),
        json!({ "type": "function_call", "name": "shell", "arguments": "{\"command\":[\"ls\",\"-l\"]}", "call_id": "a" }),
        json!({ "type": "function_call_output", "call_id": "a", "output": "{\"output\":\"x\\n\",\"metadata\":{\"exit_code\":1}}" }),
        json!({ "type": "message", "role": "assistant", "content": [{ "type": "output_text", "text": "Yes." }] }),
    ]);
    let taken = taken(&bytes);
    assert_eq!(
        said(&taken.session),
        ["> Hi", "- shell {\"command\":[\"ls\",\"-l\"]} = Exit code: 1\nx\n", "Yes."]
    );
    assert_eq!(steps(&taken.session)[0].calls().next().unwrap().outcome().unwrap().title, "ls -l");
}

#[test]
fn the_current_branch_of_a_session_of_claude_code_is_taken() {
    let line = |uuid: &str, parent: Option<&str>, kind: &str, message: Value| {
        json!({ "uuid": uuid, "parentUuid": parent, "type": kind, "sessionId": "s-1", "cwd": "/elsewhere",
                "isSidechain": false, "timestamp": "2026-01-02T03:04:05.000Z", "message": message })
    };
    let answer = |id: &str, part: Value, stop: Option<&str>| {
        json!({ "id": id, "role": "assistant", "model": "claude-x", "content": [part], "stop_reason": stop,
                "usage": { "input_tokens": 5, "output_tokens": 7, "cache_read_input_tokens": 2, "cache_creation_input_tokens": 1 } })
    };
    let result = |id: &str, content: Value, is_error: bool| json!({ "role": "user", "content": [{ "type": "tool_result", "tool_use_id": id, "content": content, "is_error": is_error }] });
    let mut meta = line("m", Some("u"), "user", json!({ "role": "user", "content": "Caveat" }));
    meta["isMeta"] = json!(true);
    let mut side = line("x1", None, "user", json!({ "role": "user", "content": "Explore" }));
    side["isSidechain"] = json!(true);
    let mut side2 = line(
        "x2",
        Some("x1"),
        "assistant",
        answer("w", json!({ "type": "text", "text": "Explored." }), Some("end_turn")),
    );
    side2["isSidechain"] = json!(true);
    let mut error = line(
        "e",
        Some("r2"),
        "assistant",
        answer("err", json!({ "type": "text", "text": "API Error" }), None),
    );
    error["isApiErrorMessage"] = json!(true);
    let mut read = line("r1", Some("a2"), "user", result("t1", json!("one"), false));
    read["toolUseResult"] = json!({ "file": { "filePath": "a" } });
    let bytes = lines(&[
        json!({ "type": "summary", "summary": "Looking around", "leafUuid": "z" }),
        line("u", None, "user", json!({ "role": "user", "content": "Look" })),
        meta,
        line("left", Some("m"), "user", json!({ "role": "user", "content": "Left behind" })),
        line(
            "a1",
            Some("m"),
            "assistant",
            answer("msg", json!({ "type": "thinking", "thinking": "Hm", "signature": "s" }), None),
        ),
        line(
            "a2",
            Some("a1"),
            "assistant",
            answer(
                "msg",
                json!({ "type": "tool_use", "id": "t1", "name": "Read", "input": { "file_path": "a" } }),
                None,
            ),
        ),
        read,
        line(
            "a3",
            Some("a2"),
            "assistant",
            answer(
                "msg",
                json!({ "type": "tool_use", "id": "t2", "name": "Bash", "input": { "command": "x" } }),
                Some("tool_use"),
            ),
        ),
        line(
            "r2",
            Some("a3"),
            "user",
            result(
                "t2",
                json!([{ "type": "text", "text": "no" }, { "type": "image", "source": { "type": "base64", "media_type": "image/png", "data": "AAAA" } }]),
                true,
            ),
        ),
        side,
        side2,
        error,
        line(
            "z",
            Some("e"),
            "assistant",
            answer("msg2", json!({ "type": "text", "text": "Done." }), Some("end_turn")),
        ),
        json!({ "type": "file-history-snapshot", "snapshot": {} }),
    ]);
    let taken = taken(&bytes);
    assert_eq!(taken.from, "claude-code");
    assert_eq!(
        said(&taken.session),
        [
            "> Look",
            "# Caveat",
            "? Hm",
            "+ Read {\"file_path\":\"a\"} = one",
            "- Bash {\"command\":\"x\"} = no",
            "! API Error",
            "Done."
        ]
    );
    let first = steps(&taken.session)[0];
    assert_eq!(
        first.usage,
        Usage { input: 5, output: 7, reasoning: 0, cache_read: 2, cache_write: 1 },
        "each line repeats it"
    );
    let shell = first.calls().nth(1).unwrap().outcome().unwrap();
    assert_eq!((shell.attachments.len(), shell.title.as_str()), (1, "x"));
    assert_eq!(taken.session.title(), "Looking around");
    let children = taken.store.children(&taken.session.header);
    assert_eq!(said(&children[0].session), ["> Explore", "Explored."]);
    assert!(
        taken.notices.iter().any(|notice| notice.contains("left behind")),
        "{:?}",
        taken.notices
    );
}

#[test]
fn lines_that_claude_code_never_wrote_and_notes_that_begin_anew_break_no_conversation() {
    let line = |uuid: &str, parent: Option<&str>, kind: &str, message: Value| {
        json!({ "uuid": uuid, "parentUuid": parent, "type": kind, "sessionId": "s-1", "cwd": "/elsewhere",
                "isSidechain": false, "timestamp": "2026-01-02T03:04:05.000Z", "message": message })
    };
    let said_by = |role: &str, text: &str| match role {
        "user" => json!({ "role": "user", "content": text }),
        _ => {
            json!({ "id": text, "role": "assistant", "model": "claude-x", "stop_reason": "end_turn",
                     "content": [{ "type": "text", "text": text }] })
        }
    };
    let user = |uuid: &str, parent, text: &str| line(uuid, parent, "user", said_by("user", text));
    let answer = |uuid: &str, parent, text: &str| {
        line(uuid, parent, "assistant", said_by("assistant", text))
    };
    let mut notes = user("n", Some("b"), "Notes.");
    notes["isCompactSummary"] = json!(true);
    let mut hook = user("h", Some("n"), "Said by a hook.");
    hook["origin"] = json!({ "kind": "hook" });
    let bytes = lines(&[
        user("u", None, "One"),
        answer("a", Some("u"), "First."),
        json!({ "type": "file-history-snapshot", "snapshot": {} }),
        // Its parent was lost.
        user("u2", Some("never-written"), "Two"),
        answer("a2", Some("u2"), "Second."),
        json!({ "uuid": "b", "parentUuid": null, "type": "system", "subtype": "compact_boundary",
                "isSidechain": false, "timestamp": "2026-01-02T03:04:05.000Z", "content": "Shortened" }),
        notes,
        hook,
        answer("a3", Some("h"), "Third."),
    ]);
    let taken = taken(&bytes);
    assert_eq!(
        said(&taken.session),
        ["> One", "First.", "> Two", "Second.", "# Said by a hook.", "Third."]
    );
    assert_eq!(taken.session.compaction().unwrap().summary, "Notes.");
    assert!(taken.notices.is_empty(), "{:?}", taken.notices);
}

#[test]
fn the_current_branch_of_a_session_of_pi_is_taken() {
    let entry = |id: &str, parent: Option<&str>, rest: Value| {
        let mut entry =
            json!({ "id": id, "parentId": parent, "timestamp": "2026-01-02T03:04:05.000Z" });
        entry.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
        entry
    };
    let message = |message: Value| json!({ "type": "message", "message": message });
    let usage = json!({ "input": 3, "output": 4, "cacheRead": 1, "cacheWrite": 2, "cost": { "total": 0.25 } });
    let bytes = lines(&[
        json!({ "type": "session", "version": 3, "id": "pi-1", "timestamp": "2026-01-02T03:04:00.000Z", "cwd": "/elsewhere" }),
        entry("1", None, json!({ "type": "model_change", "provider": "p", "modelId": "m" })),
        entry(
            "2",
            Some("1"),
            message(
                json!({ "role": "user", "content": "Look", "timestamp": 1_700_000_000_000_u64 }),
            ),
        ),
        entry("x", Some("2"), message(json!({ "role": "user", "content": "Left behind" }))),
        entry(
            "3",
            Some("2"),
            message(
                json!({ "role": "assistant", "provider": "p", "model": "m", "stopReason": "toolUse", "usage": usage, "content": [
            { "type": "thinking", "thinking": "Hm", "thinkingSignature": "s" }, { "type": "text", "text": "Looking." },
            { "type": "toolCall", "id": "a", "name": "read", "arguments": { "path": "a" } },
            { "type": "toolCall", "id": "b", "name": "bash", "arguments": { "command": "x" } } ] }),
            ),
        ),
        entry(
            "4",
            Some("3"),
            message(
                json!({ "role": "toolResult", "toolCallId": "a", "toolName": "read", "isError": false, "content": [
            { "type": "text", "text": "one" }, { "type": "image", "data": "AAAA", "mimeType": "image/png" } ] }),
            ),
        ),
        entry(
            "5",
            Some("4"),
            message(
                json!({ "role": "toolResult", "toolCallId": "b", "toolName": "bash", "isError": true, "content": [{ "type": "text", "text": "no" }], "details": { "diff": "+1 x" } }),
            ),
        ),
        entry(
            "6",
            Some("5"),
            message(json!({ "role": "bashExecution", "command": "ls", "output": "a" })),
        ),
        entry(
            "7",
            Some("6"),
            json!({ "type": "compaction", "summary": "So far.", "firstKeptEntryId": "3" }),
        ),
        entry("8", Some("7"), json!({ "type": "session_info", "name": "Named" })),
        entry(
            "9",
            Some("8"),
            message(
                json!({ "role": "assistant", "provider": "p", "model": "m", "stopReason": "stop", "content": [{ "type": "text", "text": "Done." }] }),
            ),
        ),
    ]);
    let taken = taken(&bytes);
    assert_eq!(taken.from, "pi");
    assert_eq!(
        said(&taken.session),
        [
            "> Look",
            "? Hm",
            "Looking.",
            "+ read {\"path\":\"a\"} = one",
            "- bash {\"command\":\"x\"} = no",
            "# The user ran this command:\n$ ls\na",
            "Done."
        ]
    );
    let first = steps(&taken.session)[0];
    assert_eq!(
        (first.cost, first.usage.cache_write, first.model.to_string().as_str()),
        (Some(0.25), 2, "p/m")
    );
    assert_eq!(first.calls().next().unwrap().outcome().unwrap().attachments.len(), 1);
    assert_eq!(taken.session.title(), "Named");
    assert_eq!(taken.session.compaction().unwrap().keep_from, 1);
    assert!(taken.notices.iter().any(|notice| notice.contains("left behind")));
}

#[test]
fn what_is_no_session_is_refused_with_what_would_be_one() {
    for (bytes, told) in [
        (&b""[..], "no session that can be imported"),
        (b"hello", "no session that can be imported"),
        (b"{}", "no session that can be imported"),
        (b"[1,2]\n[3]", "no session that can be imported"),
        (b"{\"info\":{},\"messages\":[]}", "nothing in this session"),
        (b"{\"info\":{},\n\"messages\":[", "damaged"),
        (b"\xff\xfe\x00", "no session that can be imported"),
    ] {
        let error = read(bytes).unwrap_err().to_string();
        assert!(error.contains(told), "{error}");
    }
}

proptest::proptest! {
    /// Whatever a file holds, it is read or refused.
    #[test]
    fn no_shape_of_json_is_too_odd(seed in proptest::collection::vec(0..60_usize, 1..40)) {
        let words = ["session", "session_meta", "response_item", "message", "user", "assistant", "toolResult",
            "function_call", "tool_use", "tool", "text", "compaction", "info", "messages", "parts", "payload", "type", "role",
            "content", "id", "parentId", "uuid", "parentUuid", "cwd", "state", "status", "completed"];
        let mut at = 0;
        let mut next = || { at += 1; seed[at % seed.len()] };
        let mut value = |depth: usize| -> Value { build(&words, &mut next, depth) };
        let odd: Vec<Value> = (0..4).map(|_| value(4)).collect();
        read(&lines(&odd)).ok();
        read(json!({ "info": value(3), "messages": [value(4), { "info": value(2), "parts": [value(3)] }] }).to_string().as_bytes()).ok();
        let header = json!({ "type": "session", "id": "x", "cwd": "/" });
        read(&lines(&[header, value(4), value(4)])).ok();
        let meta = json!({ "type": "session_meta", "payload": { "id": "x" } });
        read(&lines(&[meta, json!({ "type": "response_item", "payload": value(4) }), value(4)])).ok();
    }
}

fn build(words: &[&str], next: &mut dyn FnMut() -> usize, depth: usize) -> Value {
    match (next() % 6, depth) {
        (0, _) | (_, 0) => json!(words[next() % words.len()]),
        (1, _) => json!(next() as i64 - 30),
        (2, _) => Value::Null,
        (3, _) => Value::Array((0..next() % 4).map(|_| build(words, next, depth - 1)).collect()),
        _ => Value::Object(
            (0..next() % 6)
                .map(|_| (words[next() % words.len()].to_owned(), build(words, next, depth - 1)))
                .collect(),
        ),
    }
}

#[test]
fn two_agents_of_one_name_and_a_time_to_come_are_taken_and_do_not_become_the_latest() {
    let of = |id: &str, children: Vec<Foreign>| Foreign {
        from: "OpenCode",
        id: id.to_owned(),
        directory: "/there".to_owned(),
        title: None,
        created: 1_700_000_000_000,
        notices: Vec::new(),
        children,
        entries: vec![(
            u64::MAX,
            Entry::Titled {
                title: "t".to_owned(),
                by: TitledBy::Import,
                usage: Default::default(),
                cost: Default::default(),
                model: Default::default(),
            },
        )],
    };
    let foreign = of("a", vec![of("same", Vec::new()), of("same", Vec::new())]);
    let folder = tempfile::tempdir().unwrap();
    let store = Store::new(folder.path().join("sessions"));
    let before = std::time::SystemTime::now();
    let id = store.keep(&foreign, Path::new("/here"), "test").unwrap();
    assert_eq!(store.workers(&store.peek(&id).unwrap().header).len(), 2);
    let listed = store.list(Some(Path::new("/here")));
    let ahead = std::time::Duration::from_secs(60);
    assert!(listed.iter().all(|found| found.updated <= before + ahead));
}
