use std::path::{Path, PathBuf};

use proptest::prelude::*;
use rusqlite::types::Value;
use toolwright_llm::{Content, Finish, FinishReason, Origin, Usage};

use super::*;
use crate::entry::{Entry, Touched};
use crate::step::{Ending, Outcome, ReplyPart};
use crate::{Log, Session};

fn origin(model: &str) -> Origin {
    Origin { provider: "p".to_owned(), model: model.to_owned() }
}

fn prompt(text: &str) -> Entry {
    Entry::Prompt {
        content: vec![Content::text(text)],
        agent: "build".to_owned(),
        model: origin("m"),
        steer: false,
        queued: None,
    }
}

fn reply(text: &str, calls: usize) -> Entry {
    let mut parts = vec![ReplyPart::Text { text: text.to_owned(), opaque: None }];
    parts.extend((0..calls).map(|n| ReplyPart::Call {
        id: format!("call_{text}_{n}"),
        name: "read".to_owned(),
        arguments: "{}".to_owned(),
        opaque: None,
    }));
    Entry::Reply {
        parts,
        usage: Usage { input: 7, output: 3, ..Usage::default() },
        finish: Finish { reason: FinishReason::Stop, raw: "stop".to_owned() },
        cost: Some(0.25),
    }
}

fn call(tool: &str, path: &str) -> [Entry; 2] {
    let touched = Touched { reads: vec![path.to_owned()], writes: Vec::new() };
    let outcome = Outcome {
        ending: Ending::Completed,
        tool: tool.to_owned(),
        output: "fine".to_owned(),
        title: format!("{path} (2 lines)"),
        details: serde_json::Value::Null,
        attachments: Vec::new(),
        duration_ms: 1,
        cost: None,
    };
    [
        Entry::CallStarted {
            call: 0,
            tool: tool.to_owned(),
            summary: format!("{tool} {path}"),
            effects: false,
            decision: "allow".to_owned(),
            touched,
        },
        Entry::CallSettled { call: 0, outcome },
    ]
}

fn turn(log: &mut Log, text: &str, answer: &str, model: &str) {
    log.append(&prompt(text)).unwrap();
    log.append(&Entry::StepStarted { model: origin(model) }).unwrap();
    log.append(&reply(answer, 1)).unwrap();
    for entry in call("read", "src/parser.rs") {
        log.append(&entry).unwrap();
    }
}

struct Place {
    folder: tempfile::TempDir,
    store: Store,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::new(folder.path().join("sessions"));
        Self { folder, store }
    }

    fn session(&self, directory: &str) -> (Log, Session) {
        self.store.create(Path::new(directory), "test").unwrap()
    }

    fn list(&self, search: Option<&str>) -> Vec<Listed> {
        let wanted = Wanted { search: search.map(str::to_owned), ..Wanted::default() };
        Index::open(&self.store).unwrap().list(&wanted).unwrap()
    }

    fn found(&self, search: &str) -> Vec<String> {
        self.list(Some(search)).into_iter().map(|listed| listed.title).collect()
    }
}

/// Everything that is in an index, without the numbers of rows.
fn dump(index: &Index) -> Vec<Vec<Value>> {
    let mut out = Vec::new();
    for select in [
        "SELECT * FROM sessions ORDER BY id",
        "SELECT * FROM spent ORDER BY session, number",
        "SELECT session, kind, time, body FROM pieces JOIN texts ON texts.rowid = pieces.rowid ORDER BY session, pieces.rowid",
    ] {
        let mut select = index.connection.prepare(select).unwrap();
        let columns = select.column_count();
        let rows = select
            .query_map([], |row| (0..columns).map(|n| row.get(n)).collect::<rusqlite::Result<_>>());
        out.extend(rows.unwrap().map(Result::unwrap));
    }
    out
}

#[test]
fn sessions_are_listed_newest_first_with_what_they_cost() {
    let place = Place::new();
    let (mut one, _) = place.session("/a");
    turn(&mut one, "Fix the parser", "Fixed it.", "m");
    let (mut two, session) = place.session("/b");
    turn(&mut two, "Write docs", "Written.", "n");
    let (mut child, _) = place.store.create_child(&session.header, "test").unwrap();
    turn(&mut child, "Look at zebras", "Stripes.", "n");

    let all = place.list(None);
    let titles: Vec<&str> = all.iter().map(|listed| listed.title.as_str()).collect();
    assert_eq!(titles, ["Write docs", "Fix the parser"], "work for others is not listed");
    let first = &all[1];
    assert_eq!((first.messages, first.usage.input, first.usage.output), (2, 7, 3));
    assert_eq!((first.models.as_slice(), first.cost), (&["p/m".to_owned()][..], 0.25));
    let here = Wanted { directory: Some("/a".to_owned()), ..Wanted::default() };
    assert_eq!(Index::open(&place.store).unwrap().list(&here).unwrap().len(), 1);
    let one_only = Wanted { limit: Some(1), ..Wanted::default() };
    assert_eq!(Index::open(&place.store).unwrap().list(&one_only).unwrap().len(), 1);

    turn(&mut one, "And now?", "Done.", "m");
    assert_eq!(place.list(None)[0].messages, 4, "what was used last stands first");
}

#[test]
fn words_their_beginnings_paths_and_parts_of_words_are_found() {
    let place = Place::new();
    let (mut one, _) = place.session("/a");
    turn(&mut one, "Fix the parser", "The café is closed; 日本語のテスト here.", "m");
    let (_two, session) = place.session("/a");
    let (mut child, _) = place.store.create_child(&session.header, "test").unwrap();
    turn(&mut child, "Look at zebras", "Stripes \"quoted\" 100% sure.", "n");

    let parser = vec!["Fix the parser".to_owned()];
    let empty = vec!["(empty session)".to_owned()];
    for (words, found) in [
        ("PARSER", &parser),
        ("cafe", &parser),
        ("clos café", &parser),
        ("src/parser.rs", &parser),
        ("本語の", &parser),
        ("arser", &parser),
        ("zebra", &empty),
        ("\"quoted\"", &empty),
        ("100%", &empty),
        ("AND OR NOT", &Vec::new()),
        ("( * ^", &Vec::new()),
        ("nothing like it", &Vec::new()),
    ] {
        let got: Vec<String> =
            place.found(words).into_iter().filter(|t| found.contains(t)).collect();
        assert_eq!(&got, found, "{words}");
        if found.is_empty() {
            assert!(place.found(words).is_empty(), "{words}");
        }
    }
    let snippet = place.list(Some("closed"))[0].snippet.clone().unwrap();
    assert!(snippet.contains(&format!("{FOUND_START}closed{FOUND_END}")), "{snippet}");
    let named = place.list(Some("parser")).into_iter().find(|l| l.title == "Fix the parser");
    assert_eq!(named.unwrap().snippet, None, "the title shows it");
    let inner = place.list(Some("本語の"))[0].snippet.clone().unwrap();
    assert!(inner.contains(&format!("{FOUND_START}本語の{FOUND_END}")), "{inner}");
}

#[test]
fn a_broken_foreign_or_unwritable_index_is_made_again() {
    let place = Place::new();
    let (mut log, _) = place.session("/a");
    turn(&mut log, "Fix the parser", "Fixed.", "m");
    let file = place.store.index_file();
    let expected = dump(&Index::open(&place.store).unwrap());
    assert!(file.is_file());

    std::fs::write(&file, "this is no database, and long enough to look at".repeat(100)).unwrap();
    assert_eq!(dump(&Index::open(&place.store).unwrap()), expected);

    let whole = std::fs::read(&file).unwrap();
    for wal in ["-wal", "-shm"] {
        std::fs::remove_file(format!("{}{wal}", file.display())).ok();
    }
    std::fs::write(&file, &whole[..whole.len() / 2]).unwrap();
    let mut index = Index::open(&place.store).unwrap();
    assert_eq!(index.list(&Wanted::default()).unwrap().len(), 1);

    drop(index);
    Index::open(&place.store)
        .unwrap()
        .connection
        .execute_batch("PRAGMA user_version = 99; DELETE FROM spent; DROP TABLE texts;")
        .unwrap();
    assert_eq!(dump(&Index::open(&place.store).unwrap()), expected);

    remove(&file);
    std::fs::create_dir(&file).unwrap();
    assert_eq!(place.list(None).len(), 1, "in memory, where no file can be");
}

#[test]
fn an_index_that_breaks_between_two_questions_is_made_again() {
    let place = Place::new();
    let (mut log, _) = place.session("/a");
    turn(&mut log, "Fix the parser", "Fixed.", "m");
    let mut index = Index::open(&place.store).unwrap();
    index.connection.execute_batch("DROP TABLE spent; DROP TABLE pieces;").unwrap();
    assert_eq!(index.list(&Wanted::default()).unwrap().len(), 1);
    assert_eq!(index.spending().unwrap().len(), 3);
}

#[test]
fn while_another_writes_for_long_the_index_in_memory_answers() {
    let place = Place::new();
    let (mut log, _) = place.session("/a");
    turn(&mut log, "Fix the parser", "Fixed.", "m");
    let other = Index::open(&place.store).unwrap();
    other.connection.execute_batch("BEGIN IMMEDIATE").unwrap();
    turn(&mut log, "More", "More.", "m");
    assert_eq!(place.list(None)[0].messages, 4);
    other.connection.execute_batch("COMMIT").unwrap();
    assert!(place.store.index_file().is_file(), "it was not thrown away");
}

#[test]
fn several_at_once_read_and_write_the_same_index() {
    let place = Place::new();
    let mut logs: Vec<Log> = (0..6).map(|_| place.session("/a").0).collect();
    std::thread::scope(|scope| {
        for log in &mut logs {
            scope.spawn(|| {
                for n in 0..5 {
                    turn(log, &format!("Prompt {n}"), "Answer.", "m");
                    assert_eq!(place.list(None).len(), 6);
                }
            });
        }
    });
    let kept = dump(&Index::open(&place.store).unwrap());
    assert_eq!(kept, dump(&Index::rebuild(&place.store).unwrap()));
    assert!(place.list(None).iter().all(|listed| listed.messages == 10));
}

#[test]
fn copies_count_once_and_work_for_others_counts() {
    let place = Place::new();
    let (mut log, session) = place.session("/a");
    turn(&mut log, "one", "One.", "m");
    let (mut copy, _) = place.store.fork(&session, "test").unwrap();
    turn(&mut copy, "two", "Two.", "m");
    let (mut child, _) = place.store.create_child(&session.header, "test").unwrap();
    turn(&mut child, "three", "Three.", "m");
    let all = Index::open(&place.store).unwrap().spending().unwrap();
    let of = |kind| all.iter().filter(|c| c.kind == kind).collect::<Vec<_>>();
    assert_eq!(of(SpentKind::Prompt).len(), 3);
    assert_eq!(of(SpentKind::Step).iter().map(|c| c.usage.input).sum::<u64>(), 21);
    assert_eq!(of(SpentKind::Call).len(), 3);
    assert_eq!(all.iter().filter(|c| !c.own).count(), 3);
}

#[test]
fn of_a_branch_left_behind_the_cost_stays_and_the_messages_go() {
    let place = Place::new();
    let (mut log, session) = place.session("/a");
    turn(&mut log, "one", "One.", "m");
    let session = place.store.peek(&session.header.session).unwrap();
    Index::open(&place.store).unwrap();
    let before = session.places()[0].before.unwrap();
    log.move_to(before, crate::MoveReason::Branched).unwrap();
    log.append(&prompt("two")).unwrap();
    let listed = place.list(None).remove(0);
    assert_eq!((listed.title.as_str(), listed.messages, listed.usage.input), ("two", 1, 7));
    assert_eq!(place.found("One").len(), 1, "still found");
}

#[derive(Debug, Clone)]
enum Act {
    New,
    Turn(usize, u8),
    Fork(usize),
    Child(usize),
    Branch(usize),
    Tear(usize),
    Damage(usize),
    Rename(usize),
    Archive(usize, bool),
    Compress(usize),
    Delete(usize),
    Refresh,
}

fn act() -> impl Strategy<Value = Act> {
    let at = 0..8_usize;
    prop_oneof![
        2 => Just(Act::New),
        6 => (at.clone(), any::<u8>()).prop_map(|(n, text)| Act::Turn(n, text)),
        1 => at.clone().prop_map(Act::Fork),
        1 => at.clone().prop_map(Act::Child),
        1 => at.clone().prop_map(Act::Branch),
        1 => at.clone().prop_map(Act::Tear),
        1 => at.clone().prop_map(Act::Damage),
        1 => at.clone().prop_map(Act::Rename),
        1 => (at.clone(), any::<bool>()).prop_map(|(n, on)| Act::Archive(n, on)),
        1 => at.clone().prop_map(Act::Compress),
        1 => at.prop_map(Act::Delete),
        4 => Just(Act::Refresh),
    ]
}

fn perform(place: &Place, act: &Act, step: usize) {
    let files = place.store.files();
    let pick = |n: usize| -> Option<PathBuf> { files.get(n % files.len().max(1)).cloned() };
    let id = |n: usize| pick(n).map(|path| crate::store::id_of(&path).to_owned());
    let plain = |n: usize| pick(n).filter(|path| path.extension().unwrap() == "jsonl");
    match act {
        Act::New => drop(place.session("/a")),
        Act::Turn(n, text) => {
            if let Some(Ok((mut log, _, _))) = id(*n).map(|id| place.store.open(&id)) {
                turn(&mut log, &format!("Prompt {text}"), &format!("Answer {text}"), "m");
            }
        }
        Act::Fork(n) => {
            if let Some(Ok(session)) = id(*n).map(|id| place.store.peek(&id)) {
                drop(place.store.fork(&session, "test"));
            }
        }
        Act::Child(n) => {
            if let Some(Ok(session)) = id(*n).map(|id| place.store.peek(&id)) {
                let (mut log, _) = place.store.create_child(&session.header, "test").unwrap();
                turn(&mut log, "Child", "Work.", "n");
            }
        }
        Act::Branch(n) => {
            if let Some(Ok((mut log, session, _))) = id(*n).map(|id| place.store.open(&id))
                && let Some(at) = session.places().get(step % session.places().len().max(1))
            {
                log.move_to(at.last, crate::MoveReason::Branched).unwrap();
                log.append(&prompt("Elsewhere")).unwrap();
            }
        }
        Act::Tear(n) => {
            if let Some(path) = plain(*n) {
                let bytes = std::fs::read(&path).unwrap();
                std::fs::write(&path, &bytes[..bytes.len() - step % 40 % bytes.len()]).unwrap();
            }
        }
        Act::Damage(n) => {
            if let Some(path) = plain(*n) {
                // What was written over in place and also grew looks as if it only grew.
                drop(Index::open(&place.store).unwrap());
                let mut bytes = std::fs::read(&path).unwrap();
                let at = bytes.len() / 2;
                bytes[at] = b'~';
                std::fs::write(&path, bytes).unwrap();
                // The clock of files is coarse, and the size is as it was.
                let later = std::time::SystemTime::now() + std::time::Duration::from_secs(1);
                let file = std::fs::File::options().append(true).open(&path).unwrap();
                file.set_modified(later).unwrap();
                drop(Index::open(&place.store).unwrap());
            }
        }
        Act::Rename(n) => drop(id(*n).map(|id| place.store.rename(&id, &format!("Title {step}")))),
        Act::Archive(n, on) => drop(id(*n).map(|id| place.store.archive(&id, *on))),
        Act::Compress(n) => drop(plain(*n).map(|path| crate::tending::compress(&path))),
        Act::Delete(n) => drop(id(*n).map(|id| place.store.delete(&id))),
        Act::Refresh => drop(Index::open(&place.store).unwrap()),
    }
}

/// `PROPTEST_CASES` asks for more.
fn cases() -> u32 {
    std::env::var("PROPTEST_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(40)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() })]

    /// Reading on gives what reading all gives, whatever happened to the files in between.
    #[test]
    fn the_index_is_equal_to_the_log(acts in prop::collection::vec(act(), 1..40)) {
        let place = Place::new();
        for (step, act) in acts.iter().enumerate() {
            perform(&place, act, step);
        }
        let kept = dump(&Index::open(&place.store).unwrap());
        let fresh = dump(&Index::rebuild(&place.store).unwrap());
        for (kept, fresh) in kept.iter().zip(&fresh) {
            prop_assert_eq!(kept, fresh);
        }
        prop_assert_eq!(kept.len(), fresh.len());
        prop_assert!(place.folder.path().is_dir());
    }
}
