use std::path::Path;

use serde_json::{Value, json};
use toolwright_llm::{Content, Failure, FailureKind, Finish, FinishReason, Media, Origin, Usage};

use super::*;
use crate::entry::{CallPlace, DeltaKind, Entry, Header, TitledBy, Touched, TurnStatus};
use crate::import;
use crate::step::{Ending, Outcome, ReplyPart};
use crate::{Item, Log, Session};

/// What must only ever be looked at.
const HOSTILE: &str = "</script><script>window.pwned=1</script><img src=x onerror=\"window.pwned=2\"> \
    [click](javascript:window.pwned=3) ![pic](https://evil.example/spy.png) \
    <a href='javascript:window.pwned=4' onclick=\"window.pwned=5\">x</a> \
    [data](data:text/html,<script>window.pwned=6</script>) [up](JaVaScRiPt:alert) \u{202e}txt.exe";

fn origin() -> Origin {
    Origin { provider: "anthropic".to_owned(), model: "claude".to_owned() }
}

fn prompt(text: &str, steer: bool) -> Entry {
    let picture = Media {
        mime: "image/png".to_owned(),
        base64: "iVBORw0KGgo=".into(),
        name: Some("a \"picture\".png".to_owned()),
    };
    let content = match steer {
        true => vec![Content::text(text)],
        false => vec![Content::text(text), Content::Media(picture)],
    };
    Entry::Prompt { content, agent: "build".to_owned(), model: origin(), steer, queued: None }
}

fn call(id: &str, name: &str, arguments: &str) -> ReplyPart {
    let opaque = (id == "c1").then(|| json!({ "item": 7 }));
    ReplyPart::Call {
        id: id.to_owned(),
        name: name.to_owned(),
        arguments: arguments.to_owned(),
        opaque,
    }
}

fn outcome(ending: Ending, tool: &str, output: &str, details: Value) -> Outcome {
    let image = Media { mime: "image/png".to_owned(), base64: "iVBORw0KGgo=".into(), name: None };
    let attachments = if ending == Ending::Completed { vec![image] } else { Vec::new() };
    Outcome {
        ending,
        tool: tool.to_owned(),
        output: output.to_owned(),
        title: format!("{tool} it"),
        details,
        attachments,
        duration_ms: 12,
        cost: (ending == Ending::Denied).then_some(0.5),
    }
}

fn finish(reason: FinishReason, raw: &str) -> Finish {
    Finish { reason, raw: raw.to_owned() }
}

/// A session with one of everything.
fn everything(log: &mut Log) {
    let usage = Usage { input: 10, output: 9, reasoning: 4, cache_read: 3, cache_write: 2 };
    let started = |call, tool: &str, writes: &[&str]| Entry::CallStarted {
        call,
        tool: tool.to_owned(),
        summary: "it".to_owned(),
        effects: true,
        decision: "allow".to_owned(),
        touched: Touched {
            reads: vec!["/w/a".to_owned()],
            writes: writes.iter().map(|path| (*path).to_owned()).collect(),
        },
    };
    let parts = vec![
        ReplyPart::Reasoning { text: "Hm.".to_owned(), opaque: Some(json!({ "signature": "s" })) },
        ReplyPart::Text { text: HOSTILE.to_owned(), opaque: None },
        ReplyPart::ServerTool { name: "web_search".to_owned(), opaque: json!({ "q": [1] }) },
        call("c1", "Read", r#"{"filePath":"/w/a"}"#),
        call("c2", "bash", r#"{ "command" : "ls" }"#),
        call("c3", "edit", "not json"),
        call("c4", "bash", "[1,2]"),
        call("c5", "task", r#"{"prompt":"Go"}"#),
    ];
    let failed = Failure {
        status: Some(529),
        ..Failure::new(FailureKind::Overloaded, "too many\nrequests")
    };
    let settled = |call, outcome| Entry::CallSettled { call, outcome };
    let (none, object) = (Value::Null, json!({ "diff": "-a\n+<b>", "exit": 0 }));
    for entry in [
        Entry::Brief { agent: "build".to_owned(), system: "Be good.".to_owned() },
        prompt(&format!("Do it {HOSTILE}"), false),
        Entry::StepStarted { model: origin() },
        Entry::Reply {
            parts,
            usage,
            finish: finish(FinishReason::ToolCalls, "tool_use"),
            cost: Some(0.25),
        },
        started(0, "read", &[]),
        settled(0, outcome(Ending::Completed, "read", "<b>one</b>", object.clone())),
        started(1, "bash", &["/w/b"]),
        settled(1, outcome(Ending::Failed, "bash", "no", none.clone())),
        settled(2, outcome(Ending::Denied, "edit", "denied", json!([1]))),
        started(3, "bash", &[]),
        settled(3, outcome(Ending::Interrupted, "bash", "stopped", object)),
        settled(4, outcome(Ending::Skipped, "task", "skipped", none)),
        prompt("And that", true),
        Entry::Note { text: "A note".to_owned() },
        Entry::Pruned { calls: vec![CallPlace { item: 1, call: 0 }] },
        Entry::Compacted {
            summary: "What was".to_owned(),
            keep_from: 2,
            reason: "full".to_owned(),
            usage,
            cost: None,
        },
        Entry::StepStarted { model: origin() },
        Entry::StepFailed { failure: failed, usage },
        Entry::StepStarted { model: origin() },
        Entry::Delta { kind: DeltaKind::Text, text: "Half an ".to_owned() },
        Entry::TurnEnded { status: TurnStatus::Interrupted },
        prompt("Next", false),
        Entry::StepStarted { model: origin() },
        Entry::Reply {
            parts: vec![ReplyPart::Text { text: "Done.".to_owned(), opaque: None }],
            usage,
            finish: finish(FinishReason::Stop, "end_turn"),
            cost: None,
        },
        Entry::TurnEnded { status: TurnStatus::Done },
        Entry::Titled {
            title: "A <title>".to_owned(),
            by: TitledBy::Person,
            usage: Usage::default(),
            cost: None,
            model: None,
        },
    ] {
        log.append(&entry).unwrap();
    }
}

struct Place {
    _folder: tempfile::TempDir,
    store: Store,
    header: Header,
    form: Value,
}

fn place() -> Place {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::new(folder.path().join("sessions"));
    let (mut log, session) = store.create(Path::new("/w"), "test").unwrap();
    everything(&mut log);
    let (mut child, _) = store.create_child(&session.header, "test").unwrap();
    child.append(&prompt("Look for it", false)).unwrap();
    let chronicle = store.chronicle(&session.header.session).unwrap();
    let form = store.export(&chronicle);
    Place { _folder: folder, store, header: session.header, form }
}

/// Items with what a slot that was left open says in the end.
fn comparable(session: &Session) -> Vec<Item> {
    session.items().to_vec()
}

#[test]
fn what_is_exported_and_imported_again_is_the_same() {
    let place = place();
    let text = serde_json::to_string_pretty(&place.form).unwrap();
    let foreign = import::read(text.as_bytes()).unwrap();
    assert_eq!(foreign.from, "toolwright");
    assert!(foreign.notices.is_empty(), "{:?}", foreign.notices);
    let id = place.store.keep(&foreign, Path::new("/w"), "test").unwrap();
    assert_ne!(id, place.header.session);
    let (before, after) = (
        place.store.chronicle(&place.header.session).unwrap(),
        place.store.chronicle(&id).unwrap(),
    );
    assert_eq!(comparable(&before.session), comparable(&after.session));
    assert_eq!(before.session.compaction(), after.session.compaction());
    assert_eq!(before.session.title(), after.session.title());
    assert_eq!(before.session.usage(), after.session.usage());
    assert_eq!(before.created, after.created);
    // What came behind the last message (its turn's end) has no place of its own in the form.
    assert!(after.updated <= before.updated, "{} {}", after.updated, before.updated);
    let times = |chronicle: &Chronicle| {
        chronicle.session.places().iter().map(|place| place.time).collect::<Vec<_>>()
    };
    assert_eq!(times(&before), times(&after));
    let children = place.store.children(&after.session.header);
    assert_eq!(children.len(), 1);
    assert_eq!(children[0].session.title(), "Look for it");

    // And once more from the copy: nothing wears off.
    let again = place.store.export(&after);
    let copy = import::read(again.to_string().as_bytes()).unwrap();
    let third = place.store.keep(&copy, Path::new("/w"), "test").unwrap();
    let third = place.store.peek(&third).unwrap();
    assert_eq!(comparable(&third), comparable(&before.session));
}

#[test]
fn the_form_is_opencodes() {
    let place = place();
    let form = &place.form;
    assert_eq!(form["info"]["id"], place.header.session);
    assert_eq!(form["info"]["title"], "A <title>");
    let messages = form["messages"].as_array().unwrap();
    let roles: Vec<&str> = messages.iter().map(|m| m["info"]["role"].as_str().unwrap()).collect();
    let expected = [
        "user",
        "assistant",
        "user",
        "user",
        "user",
        "assistant",
        "assistant",
        "assistant",
        "user",
        "assistant",
    ];
    assert_eq!(roles, expected, "a compaction is a wish and its answer");
    let mut ids: Vec<String> = Vec::new();
    for message in messages {
        ids.push(message["info"]["id"].as_str().unwrap().to_owned());
        for part in message["parts"].as_array().unwrap() {
            assert_eq!(part["messageID"], message["info"]["id"]);
            assert!(part["id"].as_str().unwrap().starts_with("prt_"));
        }
    }
    assert!(ids.is_sorted() && ids.iter().all(|id| id.starts_with("msg_")), "{ids:?}");
    let parts = messages[1]["parts"].as_array().unwrap();
    let states: Vec<&str> =
        parts.iter().filter_map(|part| part["state"]["status"].as_str()).collect();
    assert_eq!(states, ["completed", "completed", "error", "error", "error", "error"]);
    assert_eq!(parts[4]["tool"], "read", "as it ran, not as it was written");
    assert!(parts[4]["state"]["time"]["compacted"].is_u64());
    assert_eq!(messages[1]["info"]["tokens"]["output"], 5, "reasoning is counted apart");
    assert_eq!(messages[6]["info"]["error"]["data"]["statusCode"], 529);
    assert_eq!(messages[7]["info"]["error"]["name"], "MessageAbortedError");
    assert_eq!(form["children"][0]["messages"][0]["parts"][0]["text"], "Look for it");
}

#[test]
fn without_what_was_said_the_shape_stays() {
    let place = place();
    let clean = sanitized(place.form.clone());
    let text = clean.to_string();
    for secret in ["pwned", "Hm.", "/w", "one</b>", "What was", "A <title>", "A note", "iVBOR"] {
        let found = text.contains(secret);
        assert!(!found, "{secret} in {text}");
    }
    assert!(text.contains("[redacted:text:prt_") && text.contains("\"ending\":\"denied\""));
    let count = |form: &Value| form["messages"].as_array().unwrap().len();
    assert_eq!(count(&clean), count(&place.form));
    assert_eq!(clean["info"]["tokens"], place.form["info"]["tokens"]);
    let foreign = import::read(text.as_bytes()).unwrap();
    assert_eq!(foreign.contents().calls, 5);
    assert!(!page(&clean).contains("pwned") && !document(&clean).contains("pwned"));
}

#[test]
fn each_colour_of_a_page_is_said_once_for_light_and_for_dark() {
    let style = include_str!("page.css");
    let mut said: Vec<&str> = style.lines().filter_map(|l| l.trim().strip_prefix("--")).collect();
    assert!(said.iter().all(|line| line.contains(": light-dark(#")), "{said:?}");
    said.iter_mut().for_each(|line| *line = line.split(':').next().unwrap_or_default());
    let count = said.len();
    said.sort_unstable();
    said.dedup();
    assert_eq!(said.len(), count);
    for used in style.split("var(--").skip(1) {
        let name = used.split(')').next().unwrap_or_default();
        assert!(said.contains(&name), "{name} is no colour");
    }
}

#[test]
fn nothing_in_a_page_can_run_or_load() {
    let place = place();
    let html = page(&place.form);
    let body = html.split("</style>").nth(1).unwrap();
    let lower = body.to_lowercase();
    assert!(
        !lower.contains("<script") && !lower.contains("<iframe") && !lower.contains("<a onclick")
    );
    assert!(lower.contains("&lt;script&gt;"), "it is shown");
    // Every tag that is ours, with what it may have.
    let mut rest = body;
    while let Some(at) = rest.find('<') {
        let end = rest[at..].find('>').map_or(rest.len(), |end| at + end);
        let tag = rest[at + 1..end].to_lowercase();
        assert!(!tag.contains("javascript:") && !tag.contains("onerror="), "{tag}");
        let names = tag.split('"').step_by(2).collect::<String>();
        assert!(!names.contains(" on"), "{tag}");
        for source in ["src=", "href="] {
            if let Some((_, value)) = tag.split_once(source) {
                let fits = value.starts_with("\"data:image/png;base64,")
                    || (source == "href=" && value.starts_with("\"https://"));
                assert!(fits, "{tag}");
            }
        }
        rest = &rest[end..];
    }
    assert!(html.contains("default-src 'none'"));
    assert!(!html.contains('\u{202e}'), "nothing turns the text around");
    for part in ["A &lt;title&gt;", "class=\"add\">+&lt;b&gt;", "Look for it", "Thinking"] {
        assert!(html.contains(part), "{part}");
    }
}

#[test]
fn a_document_has_everything_in_order_and_fences_that_hold() {
    let place = place();
    let text = document(&place.form);
    let mut at = 0;
    for part in [
        "# A <title>",
        "## User",
        "Do it",
        "## Assistant (build · claude",
        "_Thinking:_",
        "**✓ read**",
        "```diff",
        "**⊘ edit**",
        "And that",
        "A note",
        "What was",
        "**Failed:** too many requests",
        "Half an",
        "Next",
        "Done.",
        "### Look for it",
    ] {
        let found = text[at..].find(part);
        assert!(found.is_some(), "{part} behind {at} in {text}");
        at += found.unwrap();
    }
    let form = json!({ "info": {}, "messages": [{ "info": { "role": "assistant" }, "parts": [{
        "type": "tool", "tool": "x", "state": { "status": "completed", "input": {}, "output": "````\ninside\n````" },
    }] }] });
    assert!(document(&form).contains("`````\n````\ninside\n````\n`````"));
}
