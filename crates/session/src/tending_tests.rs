use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, SystemTime};

use toolwright_llm::{Content, Origin};

use super::*;
use crate::{Index, Log, Wanted};

fn store() -> (tempfile::TempDir, Store) {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::new(folder.path().join("sessions"));
    (folder, store)
}

fn prompt(log: &mut Log, text: &str) {
    let model = Origin { provider: "p".to_owned(), model: "m".to_owned() };
    let content = vec![Content::text(text)];
    let agent = "build".to_owned();
    log.append(&Entry::Prompt { content, agent, model, steer: false, queued: None }).unwrap();
}

/// A session that was used last so long ago.
fn aged(store: &Store, text: &str, days: u64) -> PathBuf {
    let (mut log, _) = store.create(Path::new("/a"), "test").unwrap();
    prompt(&mut log, text);
    let then = SystemTime::now() - Duration::from_secs(days * 24 * 60 * 60);
    log.set_used(then).unwrap();
    log.path().to_owned()
}

#[test]
fn sessions_of_last_week_become_small_and_stay_as_they_were() {
    let (_folder, store) = store();
    let old = aged(&store, "an old matter", 8);
    let young = aged(&store, "a young matter", 6);
    let id = id_of(&old).to_owned();
    let before = std::fs::read(&old).unwrap();
    store.compress_old(SystemTime::now(), &AtomicBool::new(false));
    assert!(young.is_file() && !old.exists());
    let small = old.with_extension("jsonl.zst");
    assert!(small.is_file());
    let mode = |path: &Path| {
        use std::os::unix::fs::PermissionsExt;
        std::fs::metadata(path).unwrap().permissions().mode() & 0o777
    };
    assert_eq!(mode(&small), 0o600, "for nobody else in either form");

    assert_eq!(store.peek(&id).unwrap().title(), "an old matter");
    assert_eq!(store.list(None).len(), 2);
    assert_eq!(store.files().len(), 2);
    assert_eq!(store.chronicle(&id).unwrap().session.title(), "an old matter");
    let wanted = Wanted { search: Some("old".to_owned()), ..Wanted::default() };
    assert_eq!(Index::open(&store).unwrap().list(&wanted).unwrap().len(), 1);
    assert_eq!(store.newest(Path::new("/a")).unwrap(), young, "its time is as it was");

    let (mut log, session, notices) = store.open(&id).unwrap();
    assert!(notices.is_empty() && !small.exists());
    assert_eq!(mode(&old), 0o600);
    assert_eq!(mode(&store.index_file()), 0o600);
    assert_eq!(std::fs::read(&old).unwrap(), before);
    assert_eq!(session.title(), "an old matter");
    prompt(&mut log, "again");
    assert_eq!(store.peek(&id).unwrap().items().len(), 2);
}

#[test]
fn what_is_in_use_is_neither_compressed_nor_removed() {
    let (_folder, store) = store();
    let old = aged(&store, "an old matter", 30);
    let id = id_of(&old).to_owned();
    let (log, _, _) = store.open(&id).unwrap();
    log.set_used(SystemTime::UNIX_EPOCH).unwrap();
    store.compress_old(SystemTime::now(), &AtomicBool::new(false));
    assert!(old.is_file());
    assert!(matches!(store.delete(&id), Err(OpenError::Log(LogError::Locked { .. }))));
    assert!(old.is_file());
}

#[test]
fn a_crash_between_two_forms_leaves_one_session() {
    let (_folder, store) = store();
    let plain = aged(&store, "an old matter", 30);
    let small = compress(&plain).unwrap();
    std::fs::write(&plain, zstd::decode_all(std::fs::read(&small).unwrap().as_slice()).unwrap())
        .unwrap();
    assert_eq!(store.files(), std::slice::from_ref(&plain));
    assert_eq!(expand(&small).unwrap(), plain);
    assert!(!small.exists());
}

#[test]
fn a_removed_session_takes_all_that_is_its_own_with_it() {
    let (_folder, store) = store();
    let (log, session) = store.create(Path::new("/a"), "test").unwrap();
    let (child, working) = store.create_child(&session.header, "test").unwrap();
    // Work that was given on.
    let (grandchild, _) = store.create_child(&working.header, "test").unwrap();
    let (other, _) = store.create(Path::new("/a"), "test").unwrap();
    let outputs = Store::outputs(&log);
    std::fs::create_dir(&outputs).unwrap();
    std::fs::write(outputs.join("tool_x"), "much").unwrap();
    let (path, child_path) = (log.path().to_owned(), child.path().to_owned());
    let grandchild_path = grandchild.path().to_owned();
    drop((log, child, grandchild));
    let id = store.delete(&session.header.session).unwrap();
    assert_eq!(id, session.header.session);
    assert!(!path.exists() && !outputs.exists() && !child_path.exists());
    assert!(!grandchild_path.exists());
    assert!(other.path().is_file());
    assert!(matches!(store.delete(&id), Err(OpenError::Unknown(_))));
}

#[test]
fn a_renamed_or_archived_session_is_not_the_one_used_last() {
    let (_folder, store) = store();
    let old = aged(&store, "old", 3);
    let young = aged(&store, "young", 1);
    let id = id_of(&old).to_owned();
    store.rename(&id, "A  better\nname").unwrap();
    store.archive(&id, true).unwrap();
    let session = store.peek(&id).unwrap();
    assert_eq!((session.title().as_str(), session.is_archived()), ("A better name", true));
    assert_eq!(store.newest(Path::new("/a")).unwrap(), young);
    let mut index = Index::open(&store).unwrap();
    let titles = |archived, index: &mut Index| {
        let wanted = Wanted { archived, ..Wanted::default() };
        index.list(&wanted).unwrap().into_iter().map(|l| l.title).collect::<Vec<_>>()
    };
    assert_eq!(titles(false, &mut index), ["young"]);
    assert_eq!(titles(true, &mut index), ["A better name"]);
    store.archive(&id, false).unwrap();
    assert_eq!(titles(false, &mut Index::open(&store).unwrap()).len(), 2);
}
