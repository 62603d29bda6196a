use std::path::{Path, PathBuf};

use proptest::prelude::*;
use toolwright_llm::{Block, Content, Finish, FinishReason, Origin, Turn, Usage};

use crate::{
    CallPlace, Ending, Entry, EntryId, Item, Log, LogError, MoveReason, NotFound, Notice, Outcome,
    ReplyPart, Session, Store, Touched, Tree, TurnStatus,
};

pub(crate) fn model() -> Origin {
    Origin { provider: "p".into(), model: "m".into() }
}

pub(crate) fn prompt(text: &str) -> Entry {
    Entry::Prompt {
        content: vec![Content::text(text)],
        agent: "build".into(),
        model: model(),
        steer: false,
        queued: None,
    }
}

/// A prompt and a step with one call that writes the file `path`.
pub(crate) fn turn(text: &str, path: &str) -> Vec<Entry> {
    let outcome = Outcome {
        ending: Ending::Completed,
        tool: "write".into(),
        output: format!("wrote {path}"),
        title: path.into(),
        details: serde_json::Value::Null,
        attachments: Vec::new(),
        duration_ms: 1,
        cost: None,
    };
    let call = ReplyPart::Call {
        id: format!("call_{text}"),
        name: "write".into(),
        arguments: "{}".into(),
        opaque: None,
    };
    vec![
        prompt(text),
        Entry::StepStarted { model: model() },
        Entry::Delta { kind: crate::DeltaKind::Text, text: "Shown".into() },
        Entry::Reply {
            parts: vec![ReplyPart::Text { text: format!("Shown: {text}"), opaque: None }, call],
            usage: Usage { output: 1, ..Usage::default() },
            finish: Finish { reason: FinishReason::ToolCalls, raw: "tool_use".into() },
            cost: None,
        },
        Entry::CallStarted {
            call: 0,
            tool: "write".into(),
            summary: path.into(),
            effects: true,
            decision: "d".into(),
            touched: Touched { reads: Vec::new(), writes: vec![path.into()] },
        },
        Entry::CallSettled { call: 0, outcome },
        Entry::TurnEnded { status: TurnStatus::Done },
    ]
}

pub(crate) struct Kept {
    _folder: tempfile::TempDir,
    pub store: Store,
    pub log: Log,
    pub session: Session,
}

impl Kept {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::new(folder.path());
        let (log, session) = store.create(Path::new("/work/a"), "test").unwrap();
        Self { _folder: folder, store, log, session }
    }

    pub fn add(&mut self, entries: impl IntoIterator<Item = Entry>) -> &mut Self {
        for entry in entries {
            let mark = self.log.append(&entry).unwrap();
            self.session.apply(entry, mark);
        }
        self
    }

    pub fn move_to(&mut self, target: EntryId, why: MoveReason) -> &mut Self {
        self.session = self.log.move_to(target, why).unwrap();
        self
    }

    /// Before this prompt of the branch.
    pub fn before(&self, number: usize) -> EntryId {
        self.session.prompts().nth(number).unwrap().1.before.unwrap()
    }

    pub fn path(&self) -> PathBuf {
        self.log.path().to_owned()
    }

    pub fn loaded(&self) -> Session {
        self.store.glance(&self.session.header.session).unwrap()
    }

    pub fn assert_memory_is_file(&self) {
        let loaded = self.loaded();
        assert_eq!(loaded.items(), self.session.items());
        assert_eq!(loaded.places(), self.session.places());
        assert_eq!(loaded.queued(), self.session.queued());
        assert_eq!(loaded.compaction(), self.session.compaction());
    }
}

pub(crate) fn said(session: &Session) -> Vec<String> {
    let text = |content: &[Content]| match content.first() {
        Some(Content::Text { text }) => text.clone(),
        _ => String::new(),
    };
    session.prompts().map(|(prompt, _)| text(&prompt.content)).collect()
}

#[test]
fn an_earlier_prompt_is_said_differently_and_the_old_branch_can_be_gone_back_to() {
    let mut kept = Kept::new();
    kept.add(turn("one", "a")).add(turn("two", "b"));
    let old_end = kept.log.leaf().unwrap();
    kept.move_to(kept.before(1), MoveReason::Branched);
    assert_eq!(said(&kept.session), ["one"]);
    kept.assert_memory_is_file();
    kept.add(turn("2nd", "c"));
    assert_eq!(said(&kept.session), ["one", "2nd"]);
    kept.assert_memory_is_file();
    kept.move_to(old_end, MoveReason::Switched);
    assert_eq!(said(&kept.session), ["one", "two"]);
    kept.add(turn("three", "d"));
    assert_eq!(said(&kept.loaded()), ["one", "two", "three"]);
    kept.assert_memory_is_file();
}

#[test]
fn a_model_is_told_with_the_next_prompt_what_was_done_on_the_way_that_was_left() {
    let mut kept = Kept::new();
    kept.add(turn("one", "a"));
    let (first, place) = (kept.log.leaf().unwrap(), kept.session.places()[1]);
    kept.add(turn("two", "b.txt"));
    kept.move_to(first, MoveReason::Branched);
    assert!(!kept.session.is_cut_off(), "nothing is left to do until somebody says something");
    kept.assert_memory_is_file();
    assert_eq!(kept.loaded().left_behind(), kept.session.left_behind());
    let text = kept.session.left_behind().unwrap();
    assert!(text.contains("\"two\"") && text.contains("changed b.txt"), "{text}");
    assert!(!text.contains("commands"), "{text}");
    kept.add(turn("2nd", "c"));
    assert_eq!(kept.session.left_behind(), None, "once");
    // An undo looks after files itself.
    kept.move_to(place.last, MoveReason::Undone);
    assert_eq!(kept.session.left_behind(), None);
}

#[test]
fn messages_are_found_by_number_and_by_the_end_of_their_id() {
    let mut kept = Kept::new();
    kept.add(turn("one", "a")).add(turn("two", "b"));
    let session = &kept.session;
    let id = session.places()[2].id;
    for given in ["3", "#3", &id.to_string(), &id.short(), &id.short().to_lowercase()] {
        assert_eq!(session.find_message(given), Ok(2), "{given}");
    }
    for given in ["0", "5", "", "XYZ"] {
        assert!(matches!(session.find_message(given), Err(NotFound::NoMessage(_))), "{given}");
    }
    assert_eq!(session.target_of(2), session.places()[2].before, "in place of a prompt");
    assert_eq!(session.target_of(3), Some(session.places()[3].last), "behind an answer");
    assert_eq!(session.target_of(4), None);
}

#[test]
fn a_move_to_an_entry_that_is_not_there_changes_nothing() {
    let mut kept = Kept::new();
    kept.add(turn("one", "a"));
    let before = std::fs::read(kept.path()).unwrap();
    let error = kept.log.move_to(EntryId::default(), MoveReason::Undone).unwrap_err();
    assert!(matches!(error, LogError::NoEntry { .. }), "{error}");
    assert_eq!(std::fs::read(kept.path()).unwrap(), before);
}

#[test]
fn a_place_names_what_comes_before_a_message_and_the_last_of_it() {
    let mut kept = Kept::new();
    kept.add(turn("one", "a")).add(turn("two", "b"));
    let places = kept.session.places().to_vec();
    assert_eq!(places.len(), 4);
    assert!(places.iter().all(|p| p.time > 0 && p.last_time >= p.time));
    assert_eq!(places[2].before, Some(places[1].last), "nothing lies between two turns");
    // Behind a step: its call has its result, and the turn has its end.
    kept.move_to(places[1].last, MoveReason::Branched);
    assert_eq!(said(&kept.session), ["one"]);
    assert!(kept.session.interrupted_calls().is_empty());
    assert_eq!(kept.session.ended(), Some(TurnStatus::Done));
}

#[test]
fn positions_are_those_of_the_branch() {
    let mut kept = Kept::new();
    kept.add(turn("one", "a")).add(turn("two", "b")).add(turn("three", "c"));
    kept.move_to(kept.before(1), MoveReason::Branched);
    kept.add(turn("2nd", "d")).add(turn("3rd", "e"));
    let pruned = Entry::Pruned { calls: vec![CallPlace { item: 3, call: 0 }] };
    let compacted = Entry::Compacted {
        summary: "notes".into(),
        keep_from: 4,
        reason: "test".into(),
        usage: Usage::default(),
        cost: None,
    };
    kept.add([pruned, compacted]);
    kept.assert_memory_is_file();
    let mut loaded = kept.store.peek(&kept.session.header.session).unwrap();
    let Item::Step(step) = &loaded.items()[3] else { panic!() };
    assert!(step.calls().next().unwrap().is_pruned());
    let turns = format!("{:?}", loaded.turns());
    assert!(turns.contains("notes") && turns.contains("3rd"), "{turns}");
    assert!(!turns.contains("2nd") && !turns.contains("three"), "{turns}");
    // Before the notes were taken everything is as it was.
    kept.move_to(kept.before(1), MoveReason::Undone);
    assert_eq!(kept.session.compaction(), None);
    assert_eq!(said(&kept.session), ["one"]);
}

#[test]
fn what_waits_belongs_to_its_branch() {
    let mut kept = Kept::new();
    kept.add(turn("one", "a"));
    let queued = crate::Queued {
        id: 0,
        kind: crate::QueueKind::FollowUp,
        content: vec![Content::text("later")],
    };
    kept.add([Entry::Queued(queued)]);
    let waiting = kept.log.leaf().unwrap();
    kept.add(turn("two", "b"));
    kept.move_to(kept.before(1), MoveReason::Undone);
    assert!(kept.session.queued().is_empty(), "taken back with the prompt behind it");
    kept.assert_memory_is_file();
    kept.move_to(waiting, MoveReason::Switched);
    assert_eq!(kept.session.queued().len(), 1, "as it was");
}

#[test]
fn a_copy_can_end_anywhere_and_holds_one_branch() {
    let mut kept = Kept::new();
    kept.add(turn("one", "a")).add(turn("two", "b"));
    let old_end = kept.log.leaf().unwrap();
    kept.move_to(kept.before(1), MoveReason::Branched).add(turn("2nd", "c"));
    let (_, copy) = kept.store.fork(&kept.session, "test").unwrap();
    assert_eq!(said(&copy), ["one", "2nd"]);
    let (_, copy) = kept.store.fork_at(&kept.session, Some(old_end), "test").unwrap();
    assert_eq!(said(&copy), ["one", "two"]);
    let (_, copy) = kept.store.fork_at(&kept.session, Some(kept.before(1)), "test").unwrap();
    assert_eq!(said(&copy), ["one"]);
    assert_eq!(kept.store.peek(&copy.header.session).unwrap().items(), copy.items());
}

#[test]
fn what_was_left_behind_is_listed_with_what_it_was_about() {
    let mut kept = Kept::new();
    kept.add(turn("one", "a")).add(turn("two", "b")).add(turn("three", "c"));
    let old_end = kept.log.leaf().unwrap();
    let shared = kept.before(1);
    kept.move_to(shared, MoveReason::Branched).add(turn("2nd", "d"));
    // Undone and redone at once: a branch on which nothing was said.
    let end = kept.log.leaf().unwrap();
    kept.move_to(kept.before(0), MoveReason::Undone).move_to(end, MoveReason::Redone);
    kept.add([Entry::Labelled { target: old_end, label: "first try".into() }]);
    let branches = Tree::of(&kept.path()).unwrap().branches().unwrap();
    let [current, left] = branches.as_slice() else { panic!("{branches:?}") };
    assert!(current.is_current && current.leaf == kept.log.leaf().unwrap());
    assert_eq!((current.prompts, current.title.as_str(), &current.label), (2, "one", &None));
    assert_eq!(current.changed, ["a", "d"]);
    assert_eq!((left.leaf, left.leaves_at, left.is_current), (old_end, Some(shared), false));
    assert_eq!((left.prompts, left.steps, left.title.as_str()), (2, 2, "two"));
    assert_eq!((left.label.as_deref(), left.other_effects), (Some("first try"), false));
    assert_eq!(left.changed, ["b", "c"]);
    assert!(left.updated > 0);
    kept.add([Entry::Labelled { target: old_end, label: String::new() }]);
    assert!(Tree::of(&kept.path()).unwrap().labels().unwrap().is_empty());
}

#[test]
fn only_a_move_needs_the_newer_format() {
    let mut kept = Kept::new();
    kept.add(turn("one", "a"));
    assert!(!std::fs::read_to_string(kept.path()).unwrap().contains("\"v\":2"));
    kept.move_to(kept.before(0), MoveReason::Undone).add(turn("two", "b"));
    let text = std::fs::read_to_string(kept.path()).unwrap();
    assert_eq!(text.matches("\"v\":2").count(), 1);
}

/// Lines as text, to be spoilt.
fn lines(kept: &Kept) -> Vec<String> {
    let text = std::fs::read_to_string(kept.path()).unwrap();
    text.lines().map(|line| format!("{line}\n")).collect()
}

#[test]
fn a_damaged_line_keeps_the_tree_walkable() {
    let mut kept = Kept::new();
    kept.add(turn("one", "a")).add(turn("two", "b"));
    kept.move_to(kept.before(1), MoveReason::Branched).add(turn("2nd", "c"));
    let id = kept.session.header.session.clone();
    let (path, whole) = (kept.path(), lines(&kept));
    let store = kept.store.clone();
    let items = kept.session.items().len();
    drop(kept.log);
    for damaged in 1..whole.len() - 1 {
        // Once behind the head, once such that nothing of the line can be read.
        for spoil in
            [|line: &str| line.replacen("\"data\"", "\"dxta\"", 1), |_: &str| "\0\n".into()]
        {
            let mut spoilt = whole.clone();
            spoilt[damaged] = spoil(&whole[damaged]);
            std::fs::write(&path, spoilt.concat()).unwrap();
            let (_, session, notices) = store.open(&id).unwrap();
            assert_eq!(notices, [Notice::Damaged { line: damaged + 1 }]);
            assert!(said(&session).contains(&"2nd".to_owned()) || damaged > 15, "{damaged}");
            if spoilt[damaged].len() > 2 {
                assert_eq!(session.items().len(), items, "what counts items counts the same");
                assert!(!said(&session).contains(&"two".to_owned()), "{damaged}");
            }
        }
    }
}

#[test]
fn two_hundred_entries_cut_at_every_byte_load_every_time() {
    let mut kept = Kept::new();
    for number in 0..26 {
        kept.add(turn(&number.to_string(), "a"));
        if number % 8 == 3 {
            kept.move_to(kept.before(1), MoveReason::Branched);
        }
        if number % 8 == 6 {
            let keep_from = kept.session.items().len() - 2;
            let (summary, reason) = ("notes".into(), "test".into());
            let (usage, cost) = (Usage::default(), None);
            kept.add([Entry::Compacted { summary, keep_from, reason, usage, cost }]);
        }
    }
    kept.add(turn("last", "b").into_iter().take(5)).add(turn("very last", "b"));
    let bytes = std::fs::read(kept.path()).unwrap();
    let entries = bytes.iter().filter(|b| **b == b'\n').count();
    assert!(entries >= 200, "{entries}");
    let header = bytes.iter().position(|b| *b == b'\n').unwrap() + 1;
    // All of them take a minute without optimisation: usually those of every ninth line, and the edges
    // of the others.
    let all = std::env::var_os("TOOLWRIGHT_TEST_ALL").is_some();
    let (mut whole, mut line) = (header, 0);
    for cut in header..=bytes.len() {
        if bytes[cut - 1] == b'\n' {
            (whole, line) = (cut, line + 1);
        }
        let at_edge = cut - whole < 2 || bytes.get(cut..cut + 2).is_none_or(|b| b.contains(&b'\n'));
        if !all && !at_edge && line % 9 != 0 {
            continue;
        }
        let tree = Tree::scan_for_test(&bytes[..cut]).unwrap();
        assert_eq!(tree.whole, whole as u64, "cut at {cut}");
        assert!(tree.notices.is_empty(), "cut at {cut}");
        // What folds are the whole lines: once for each, it is the same for all cuts behind it.
        if whole == cut {
            assert_answered(&mut tree.fold_for_test(&bytes[..cut]).unwrap());
        }
    }
    assert!(Tree::scan_for_test(&bytes[..header - 1]).is_err(), "nothing was ever said in it");
    let (id, path, store) = (kept.session.header.session.clone(), kept.path(), kept.store.clone());
    drop(kept.log);
    // The same through the door that people take, which writes: all of them only if asked for.
    for cut in (header..=bytes.len()).step_by(if all { 1 } else { 997 }) {
        std::fs::write(&path, &bytes[..cut]).unwrap();
        let (mut log, mut session, notices) = store.open(&id).unwrap();
        assert_eq!(notices.is_empty(), bytes[cut - 1] == b'\n', "cut at {cut}: {notices:?}");
        assert_answered(&mut session);
        log.append(&Entry::Note { text: "on".into() }).unwrap();
        drop(log);
        assert!(store.open(&id).unwrap().2.is_empty(), "cut at {cut}, gone on");
    }
}

/// No call goes out without a result.
fn assert_answered(session: &mut Session) {
    for turn in session.turns() {
        let Turn::Assistant { blocks, .. } = turn.as_ref() else { continue };
        assert!(blocks.iter().all(|b| match b {
            Block::Call { result, .. } => !result.content.is_empty(),
            _ => true,
        }));
    }
}

#[test]
fn what_is_no_longer_sent_is_let_go_of_except_for_what_is_asked_for_later() {
    let mut kept = Kept::new();
    kept.add(turn("the first prompt", "a")).add(turn("two", "b")).add(turn("three", "c"));
    let denied = Outcome {
        ending: Ending::Denied,
        tool: "bash".into(),
        output: "no".into(),
        title: "rm".into(),
        details: serde_json::json!({"denied_by": "rule"}),
        attachments: Vec::new(),
        duration_ms: 0,
        cost: Some(0.5),
    };
    let mut job = turn("four", "d");
    job.insert(5, Entry::CallSettled { call: 0, outcome: denied });
    kept.add(job).add(turn("five", "e"));
    let entry = Entry::Compacted {
        summary: "notes".into(),
        keep_from: 8,
        reason: "test".into(),
        usage: Usage::default(),
        cost: None,
    };
    kept.add([entry]);
    kept.assert_memory_is_file();
    let session = &kept.session;
    assert_eq!(session.items().len(), 10);
    assert_eq!(said(session), ["", "", "", "four", "five"], "the newest is repeated in notes");
    assert_eq!(session.title(), "the first prompt");
    let Item::Step(step) = &session.items()[1] else { panic!() };
    assert!(step.blocks.is_empty() && step.usage.output == 1 && step.finish.is_some());
    let Item::Step(step) = &session.items()[7] else { panic!() };
    assert_eq!(step.calls().next().unwrap().outcome().unwrap().ending, Ending::Denied);
    assert!((step.calls_cost() - 0.5).abs() < 1e-9);
    let (read, changed) = session.standing().forgotten_files();
    assert!(read.is_empty() && changed.iter().eq(["a", "b", "c"]), "{changed:?}");
    assert!(session.has_call("call_two"));
    // For people everything is there.
    let whole = kept.store.peek(&session.header.session).unwrap();
    assert_eq!(said(&whole), ["the first prompt", "two", "three", "four", "five"]);
}

#[derive(Debug, Clone)]
enum Act {
    Say,
    MoveTo(prop::sample::Index),
    Reopen,
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let act = prop_oneof![
        3 => Just(Act::Say),
        2 => any::<prop::sample::Index>().prop_map(Act::MoveTo),
        1 => Just(Act::Reopen),
    ];
    prop::collection::vec(act, 1..20)
}

proptest! {
    /// However the leaf is moved, the branch is what was said on the way to it, and memory is what a
    /// load gives.
    #[test]
    fn any_moves_give_the_branch_that_was_meant(acts in acts()) {
        let mut kept = Kept::new();
        // By entry: what had been said when it was written.
        let mut known = vec![(kept.log.leaf().unwrap(), Vec::new())];
        let mut path: Vec<String> = Vec::new();
        for (number, act) in acts.into_iter().enumerate() {
            match act {
                Act::Say => {
                    kept.add([prompt(&number.to_string())]);
                    path.push(number.to_string());
                    known.push((kept.log.leaf().unwrap(), path.clone()));
                }
                Act::MoveTo(index) => {
                    let (target, said) = index.get(&known).clone();
                    kept.move_to(target, MoveReason::Switched);
                    path = said;
                }
                Act::Reopen => {
                    let Kept { _folder, store, log, session } = kept;
                    drop(log);
                    let (log, session, notices) = store.open(&session.header.session).unwrap();
                    prop_assert!(notices.is_empty());
                    kept = Kept { _folder, store, log, session };
                }
            }
            prop_assert_eq!(&said(&kept.session), &path);
            kept.assert_memory_is_file();
        }
    }
}
