use std::os::unix::fs::PermissionsExt;

use proptest::prelude::*;
use serde_json::json;
use toolwright_llm::{Block, Content, Finish, FinishReason, Origin, Turn, Usage};

use crate::{
    Ending, Entry, Item, LogError, Mark, Notice, Outcome, ReplyPart, Session, Slot, Store,
    TurnStatus,
};

fn model() -> Origin {
    Origin { provider: "p".into(), model: "m".into() }
}

fn outcome(output: &str) -> Outcome {
    Outcome {
        ending: Ending::Completed,
        tool: "bash".into(),
        output: output.into(),
        title: "t".into(),
        details: json!({"exit": 0}),
        attachments: Vec::new(),
        duration_ms: 1,
        cost: None,
    }
}

fn entries() -> Vec<Entry> {
    let call = |id: &str| ReplyPart::Call {
        id: id.into(),
        name: "bash".into(),
        arguments: "{}".into(),
        opaque: None,
    };
    vec![
        Entry::Brief { agent: "build".into(), system: "Be.".into() },
        Entry::Prompt {
            content: vec![Content::text("Grüße\nund mehr")],
            agent: "build".into(),
            model: model(),
            steer: false,
            queued: None,
        },
        Entry::StepStarted { model: model() },
        Entry::Delta { kind: crate::DeltaKind::Text, text: "Hal".into() },
        Entry::Reply {
            parts: vec![
                ReplyPart::Text { text: "Hallo".into(), opaque: None },
                call("a"),
                call("b"),
            ],
            usage: Usage { input: 1, output: 2, ..Usage::default() },
            finish: Finish { reason: FinishReason::ToolCalls, raw: "tool_use".into() },
            cost: Some(0.5),
        },
        Entry::CallStarted {
            call: 1,
            tool: "bash".into(),
            summary: "rm x".into(),
            effects: true,
            decision: "d".into(),
            touched: Default::default(),
        },
        Entry::CallSettled { call: 0, outcome: outcome("first") },
        Entry::TurnEnded { status: TurnStatus::Interrupted },
    ]
}

fn written(folder: &std::path::Path) -> (Store, std::path::PathBuf, Session) {
    let store = Store::new(folder);
    let (mut log, mut session) = store.create(std::path::Path::new("/work/a"), "test").unwrap();
    for entry in entries() {
        let mark = log.append(&entry).unwrap();
        session.apply(entry, mark);
    }
    let path = log.path().to_owned();
    (store, path, session)
}

/// Every call of every turn has its result inside: nothing else can be built.
fn results(session: &mut Session) -> Vec<String> {
    let turns = session.turns();
    let blocks = turns.iter().flat_map(|turn| match turn.as_ref() {
        Turn::Assistant { blocks, .. } => blocks.clone(),
        Turn::User(_) => Vec::new(),
    });
    blocks
        .filter_map(|block| match block {
            Block::Call { result, .. } => Some(format!("{:?}", result.content)),
            _ => None,
        })
        .collect()
}

#[test]
fn what_is_loaded_is_what_was_in_memory() {
    let folder = tempfile::tempdir().unwrap();
    let (store, _, mut session) = written(folder.path());
    let mut loaded = store.peek(&session.header.session).unwrap();
    assert_eq!(loaded.items(), session.items());
    assert_eq!(loaded.places(), session.places());
    assert_eq!(loaded.usage(), session.usage());
    assert_eq!(loaded.title(), "Grüße");
    assert_eq!(results(&mut loaded), results(&mut session));
}

#[test]
fn a_slot_moves_forward_only_and_says_what_is_known() {
    let folder = tempfile::tempdir().unwrap();
    let (_, _, mut session) = written(folder.path());
    let texts = results(&mut session);
    assert!(texts[0].contains("first"));
    assert!(texts[1].contains("outcome is unknown") && texts[1].contains("rm x"));
    let mut apply = |entry| session.apply(entry, Mark::default());
    apply(Entry::CallSettled { call: 0, outcome: outcome("late") });
    apply(Entry::CallStarted {
        call: 0,
        tool: "x".into(),
        summary: "again".into(),
        effects: true,
        decision: String::new(),
        touched: Default::default(),
    });
    apply(Entry::CallSettled { call: 9, outcome: outcome("nowhere") });
    assert!(results(&mut session)[0].contains("first"), "a settled slot stays");
    let open = session.interrupted_calls();
    assert_eq!(open.len(), 1);
    assert_eq!(open[0].0, 1);
    let Some(Item::Step(step)) = session.items().last() else { panic!() };
    assert!(matches!(step.calls().nth(1).unwrap().slot(), Slot::Running { .. }));
}

#[test]
fn a_log_cut_at_every_byte_opens_with_a_valid_history() {
    let folder = tempfile::tempdir().unwrap();
    let (store, path, session) = written(folder.path());
    let whole = std::fs::read(&path).unwrap();
    let header = whole.iter().position(|b| *b == b'\n').unwrap() + 1;
    for cut in header..=whole.len() {
        std::fs::write(&path, &whole[..cut]).unwrap();
        let (mut log, mut loaded, notices) = store.open(&session.header.session).unwrap();
        let torn = whole[cut - 1] != b'\n';
        assert_eq!(notices.len(), usize::from(torn), "cut at {cut}");
        if let Some(Notice::TornTail { bytes, kept_in }) = notices.first() {
            assert_eq!(std::fs::read(kept_in).unwrap().len(), *bytes, "the cut is kept beside");
            let mode = std::fs::metadata(kept_in).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
        results(&mut loaded);
        log.append(&Entry::Note { text: "goes on".into() }).unwrap();
        drop(log);
        let again = store.peek(&session.header.session).unwrap();
        assert!(matches!(again.items().last(), Some(Item::Note(_))), "cut at {cut}");
    }
}

#[test]
fn a_damaged_line_is_skipped_and_said_and_unknown_kinds_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    let (store, path, session) = written(folder.path());
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replacen("Hal\"", "Hax\"", 1)).unwrap();
    let (mut log, _, notices) = store.open(&session.header.session).unwrap();
    assert_eq!(notices, [Notice::Damaged { line: 5 }]);
    log.append(&Entry::Note { text: "x".into() }).unwrap();
    drop(log);

    let body = r#"{"v":1,"id":"01X","parent":null,"time":1,"type":"invented_later","data":{"a":1}"#;
    let sum = crc32fast::hash(body.as_bytes());
    let line = format!("{body},\"crc\":\"{sum:08x}\"}}\n");
    std::fs::write(&path, format!("{text}{line}")).unwrap();
    let (_, loaded, notices) = store.open(&session.header.session).unwrap();
    assert_eq!(notices, []);
    assert_eq!(loaded.items(), session.items());
    assert!(std::fs::read_to_string(&path).unwrap().contains("invented_later"));
}

#[test]
fn a_newer_format_can_only_be_looked_at_and_a_foreign_file_not_even_that() {
    let folder = tempfile::tempdir().unwrap();
    let (store, path, session) = written(folder.path());
    let text = std::fs::read_to_string(&path).unwrap();
    let body = r#"{"v":99,"id":"01X","parent":null,"time":1,"type":"x","data":{}"#;
    let line = format!("{body},\"crc\":\"{:08x}\"}}\n", crc32fast::hash(body.as_bytes()));
    std::fs::write(&path, format!("{text}{line}")).unwrap();
    let error = store.open(&session.header.session).unwrap_err().to_string();
    assert!(error.contains("newer version (format 99"), "{error}");
    let seen = store.peek(&session.header.session).unwrap();
    assert_eq!((seen.items(), seen.newer_format), (session.items(), Some(99)));
    let error = store.fork(&seen, "test").unwrap_err().to_string();
    assert!(error.contains("newer version"), "a copy would carry what was misread: {error}");
    std::fs::write(&path, "hello\n").unwrap();
    let error = store.open(&session.header.session).unwrap_err().to_string();
    assert!(error.contains("no session file"), "{error}");
}

#[test]
fn one_owner_at_a_time() {
    let folder = tempfile::tempdir().unwrap();
    let (store, _, session) = written(folder.path());
    let id = &session.header.session;
    let (first, _, _) = store.open(id).unwrap();
    let second = store.open(id).map(|_| ()).unwrap_err();
    let crate::OpenError::Log(LogError::Locked { owner, .. }) = &second else { panic!("{second}") };
    if cfg!(target_os = "linux") {
        assert_eq!(*owner, Some(std::process::id()), "{second}");
    }
    assert!(store.peek(id).is_ok(), "looking is always allowed");
    drop(first);
    assert!(store.open(id).is_ok());
}

#[test]
fn a_failed_write_leaves_the_file_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::new(folder.path());
    let (mut log, _) = store.create(std::path::Path::new("/w"), "test").unwrap();
    let path = log.path().to_owned();
    let before = std::fs::read(&path).unwrap();
    // A handle that cannot be written stands in for a full disk.
    log.break_for_test();
    assert!(log.append(&Entry::Note { text: "lost".into() }).is_err());
    assert_eq!(std::fs::read(&path).unwrap(), before);
}

proptest! {
    #[test]
    fn any_flipped_byte_is_noticed_or_harmless(at in 0usize..3000, value in any::<u8>()) {
        let folder = tempfile::tempdir().unwrap();
        let (store, path, session) = written(folder.path());
        let mut bytes = std::fs::read(&path).unwrap();
        let at = at % bytes.len();
        bytes[at] = value;
        std::fs::write(&path, &bytes).unwrap();
        if let Ok((_, mut loaded, _)) = store.open(&session.header.session) {
            results(&mut loaded);
        }
    }
}
