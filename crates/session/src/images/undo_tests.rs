//! Back and forth.

use std::fs;
use std::os::unix::fs::symlink;

use super::keeper_tests::{Rig, sh};
use super::*;
use crate::entry::{Entry, MoveReason};
use crate::images::Quota;
use crate::store::Store;

fn options(files: bool, conversation: bool) -> UndoOptions {
    UndoOptions { files, conversation, ..UndoOptions::default() }
}

#[tokio::test]
async fn files_and_conversation_go_together_or_apart() {
    let mut rig = Rig::new();
    rig.put("a", "0");
    let first = rig.say("one");
    rig.write("a", "1").await;
    rig.say("two");
    rig.command("echo 2 > a; mkdir d; echo x > d/e").await;
    // Files alone.
    let report = rig.undo(&options(true, false)).unwrap();
    assert!(report.is_complete() && !report.conversation);
    assert_eq!((rig.text("a"), rig.session.prompts().count()), ("1".into(), 2));
    assert!(!rig.work.join("d").exists());
    // Twice is as good as once.
    assert!(rig.undo(&options(true, false)).unwrap().restored.is_empty());
    // More is done behind it, and all of it goes.
    rig.say("three");
    rig.write("a", "3").await;
    let all = UndoOptions { to: Some(first), ..UndoOptions::default() };
    let dry = UndoOptions { dry_run: true, ..all.clone() };
    let report = rig.undo(&dry).unwrap();
    assert_eq!((report.restored.len(), rig.text("a")), (1, "3".into()));
    let report = rig.undo(&all).unwrap();
    assert_eq!(report.messages, ["one", "two", "three"]);
    assert_eq!((rig.text("a"), rig.session.prompts().count()), ("0".into(), 0));
    rig.redo().unwrap();
    assert_eq!((rig.text("a"), rig.session.prompts().count()), ("3".into(), 3));
    // The conversation alone.
    rig.undo(&options(false, true)).unwrap();
    assert_eq!((rig.text("a"), rig.session.prompts().count()), ("3".into(), 2));
}

#[tokio::test]
async fn several_undos_are_redone_one_by_one_until_something_new_is_said() {
    let mut rig = Rig::new();
    for number in 1..=3 {
        rig.say(&number.to_string());
        rig.write("a", &number.to_string()).await;
    }
    rig.undo(&UndoOptions::default()).unwrap();
    rig.undo(&UndoOptions::default()).unwrap();
    assert_eq!(rig.text("a"), "1");
    assert_eq!(rig.redo().unwrap().messages, ["2"]);
    assert_eq!(rig.text("a"), "2");
    rig.redo().unwrap();
    assert_eq!((rig.text("a"), rig.session.prompts().count()), ("3".into(), 3));
    assert!(matches!(rig.redo(), Err(UndoError::NothingUndone)));
    rig.undo(&UndoOptions::default()).unwrap();
    rig.say("else");
    assert!(matches!(rig.redo(), Err(UndoError::NothingUndone)));
    rig.write("a", "4").await;
    rig.undo(&UndoOptions::default()).unwrap();
    assert_eq!(rig.text("a"), "2");
}

#[tokio::test]
async fn what_somebody_else_changed_is_left_alone_and_shown_in_three_versions() {
    let mut rig = Rig::new();
    rig.put("a", "before");
    rig.put("between", "0");
    rig.put("back", "0");
    rig.say("go");
    for name in ["a", "b", "between", "back", "fine"] {
        rig.write(name, "by us").await;
    }
    rig.put("between", "theirs");
    rig.put("back", "0");
    rig.write("between", "ours again").await;
    rig.write("back", "ours again").await;
    rig.put("a", "theirs");
    rig.put("b", "theirs");
    let report = rig.undo(&UndoOptions::default()).unwrap();
    assert_eq!((rig.text("a"), rig.text("b")), ("theirs".into(), "theirs".into()));
    assert_eq!(rig.text("between"), "ours again", "what they wrote is in the middle of it");
    assert_eq!(rig.text("back"), "0", "they had put it back themselves");
    assert!(!rig.work.join("fine").exists());
    let paths: Vec<_> = report.conflicts.iter().map(|c| c.path.file_name().unwrap()).collect();
    assert_eq!(paths, ["a", "b", "between"]);
    let conflict = &report.conflicts[0];
    let read =
        |path: &Option<std::path::PathBuf>| fs::read_to_string(path.as_ref().unwrap()).unwrap();
    assert_eq!(
        (read(&conflict.wanted_in), read(&conflict.left_in)),
        ("before".into(), "by us".into())
    );
    assert_eq!(report.conflicts[1].wanted, State::Absent);
}

#[tokio::test]
async fn a_folder_comes_back_with_all_that_was_in_it_where_a_link_took_its_place() {
    let (content, inside) = (["0", "1"], ["d/f", "d/deep/g"]);
    // Moved away with a link left behind, by which everything still seems to be in its place; a link to
    // something else of the same names; a link to nothing.
    let replaced = [
        "mv d e; ln -s e d",
        "cp -r d e; echo other > e/f; rm -r d; ln -s e d",
        "rm -r d; ln -s nothing d",
    ];
    for (command, tracked) in replaced.iter().flat_map(|c| [(*c, false), (*c, true)]) {
        let mut rig = Rig::new();
        for (path, text) in inside.iter().zip(content) {
            rig.put(path, text);
        }
        if tracked {
            sh(&rig.work, "git init -q; git add -A");
        }
        fs::create_dir(rig.work.join("d/deep/empty")).unwrap();
        rig.say("go");
        rig.command(command).await;
        assert!(rig.work.join("d").is_symlink());
        let report = rig.undo(&UndoOptions::default()).unwrap();
        assert!(report.is_complete(), "{command}: {report:#?}");
        assert_eq!(inside.map(|path| rig.text(path)), content, "{command}: {report:#?}");
        assert!(rig.work.join("d/deep/empty").is_dir() && !rig.work.join("d").is_symlink());
        assert!(!rig.work.join("e").exists(), "{command}");
        let report = rig.redo().unwrap();
        assert!(report.is_complete(), "{command}: {report:#?}");
        assert!(rig.work.join("d").is_symlink(), "{command}");
    }
}

#[tokio::test]
async fn what_was_too_large_to_be_kept_goes_as_it_came_and_only_a_redo_misses_it() {
    let mut rig = Rig::with_quota(Quota { bytes: 80_000, ..Quota::default() });
    rig.put("theirs", "x");
    rig.say("go");
    rig.command("head -c 20000 /dev/zero > large; head -c 20000 /dev/zero > touched").await;
    rig.put("touched", &"y".repeat(20_000));
    let report = rig.undo(&UndoOptions::default()).unwrap();
    assert!(!rig.work.join("large").exists(), "{report:#?}");
    let odd: Vec<_> = report.conflicts.iter().map(|c| c.path.file_name().unwrap()).collect();
    assert_eq!(odd, ["touched"], "{report:#?}");
    let report = rig.redo().unwrap();
    assert_eq!(report.lost.len(), 1, "{report:#?}");
    assert!(report.lost[0].path.ends_with("large"));
}

#[tokio::test]
async fn an_undo_that_was_killed_still_says_what_it_leaves_alone() {
    let mut rig = Rig::new();
    rig.put("a", "0");
    rig.say("go");
    rig.write("a", "1").await;
    rig.write("b", "1").await;
    rig.put("b", "theirs");
    let log = rig.log.path().to_owned();
    let before = fs::read(&log).unwrap();
    rig.undo(&UndoOptions::default()).unwrap();
    // Killed behind the announcement.
    let after = fs::read(&log).unwrap();
    let line = after[before.len()..].iter().position(|byte| *byte == b'\n').unwrap() + 1;
    let id = rig.session.header.session.clone();
    rig.log = rig.store.create(&rig.root, "other").unwrap().0;
    fs::write(&log, &after[..before.len() + line]).unwrap();
    rig.put("a", "1");
    (rig.log, rig.session, _) = rig.store.open(&id).unwrap();
    let report = rig.undo(&UndoOptions::default()).unwrap();
    assert_eq!(rig.text("a"), "0");
    let odd: Vec<_> = report.conflicts.iter().map(|c| c.path.file_name().unwrap()).collect();
    assert_eq!(odd, ["b"], "{report:#?}");
}

#[tokio::test]
async fn an_undo_that_was_cut_off_anywhere_is_brought_to_its_end() {
    // How far it came: nothing, some files, all files, all but the conversation.
    for stage in 0..4 {
        let mut rig = Rig::new();
        rig.put("a", "0");
        rig.put("b", "0");
        rig.say("one");
        rig.say("two");
        rig.command("echo 1 > a; echo 1 > b; mkdir d").await;
        let after = rig.all();
        let leaf = rig.log.leaf().unwrap();
        let bytes = fs::read(rig.log.path()).unwrap();
        rig.undo(&UndoOptions::default()).unwrap();
        let before = rig.all();
        // The log as it was at that moment, with the files that belong to it.
        let whole = fs::read_to_string(rig.log.path()).unwrap();
        let (old, new) = whole.split_at(bytes.len());
        let lines: Vec<&str> = new.split_inclusive('\n').collect();
        assert_eq!(lines.len(), 3, "{lines:?}");
        let keep = if stage == 3 { 2 } else { 1 };
        let path = rig.log.path().to_owned();
        let id = rig.session.header.session.clone();
        let (log, session) = rig.store.create(&rig.root, "other").unwrap();
        rig.log = log;
        fs::write(&path, format!("{old}{}", lines[..keep].concat())).unwrap();
        if stage < 2 {
            sh(&rig.work, "echo 1 > a");
        }
        if stage < 1 {
            sh(&rig.work, "echo 1 > b; mkdir d");
            assert_eq!(rig.all(), after);
        }
        drop(session);
        let (log, session, notices) = rig.store.open(&id).unwrap();
        assert!(notices.is_empty());
        (rig.log, rig.session) = (log, session);
        assert!(Scene::is_pending(&rig.log).unwrap());
        let images = rig.keeper.watch().images().clone();
        let outputs = Store::outputs(&rig.log);
        let scene = Scene { images: &images, workers: &[], outputs: &outputs };
        let (kind, done) = scene.finish(&mut rig.log).unwrap().unwrap();
        assert_eq!(kind, ReversalKind::Undo);
        assert_eq!(done.report.messages, ["two"]);
        assert!(done.report.is_complete(), "stage {stage}: {:?}", done.report);
        assert_eq!(done.session.unwrap().prompts().count(), 1);
        assert_eq!(rig.all(), before, "stage {stage}");
        assert!(!Scene::is_pending(&rig.log).unwrap());
        assert!(rig.redo().unwrap().is_complete());
        assert_eq!(rig.all(), after, "and forth again");
        assert!(rig.log.leaf() != Some(leaf));
    }
}

#[tokio::test]
async fn a_write_that_nobody_saw_the_end_of_is_taken_back() {
    let mut rig = Rig::new();
    rig.put("a", "0");
    rig.say("go");
    let path = rig.work.join("a");
    let reach = Reach { what: "write".into(), writes: vec![path.clone()], anything: false };
    let (_, log) = rig.keeper.before(reach).await;
    log.into_iter().for_each(|changed| rig.add(Entry::Changed(changed)));
    fs::write(&path, "1").unwrap();
    assert!(rig.undo(&UndoOptions::default()).unwrap().is_complete());
    assert_eq!(rig.text("a"), "0");
    rig.redo().unwrap();
    assert_eq!(rig.text("a"), "1");
}

#[tokio::test]
async fn a_file_that_was_changed_long_after_a_write_was_killed_is_its_owners() {
    let mut rig = Rig::new();
    rig.put("a", "0");
    rig.say("go");
    let path = rig.work.join("a");
    let reach = Reach { what: "write".into(), writes: vec![path.clone()], anything: false };
    let (_, log) = rig.keeper.before(reach).await;
    let hour = 3_600_000_000;
    for changed in log {
        rig.add(Entry::Changed(Changed { at: changed.at - hour, ..changed }));
    }
    fs::write(&path, "a day's work").unwrap();
    let report = rig.undo(&UndoOptions::default()).unwrap();
    assert_eq!(report.conflicts.len(), 1, "{report:?}");
    assert_eq!(rig.text("a"), "a day's work");
}

#[tokio::test]
async fn nothing_is_written_through_a_link_that_took_a_folders_place() {
    let mut rig = Rig::new();
    rig.put("d/a", "0");
    let outside = rig.root.join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("a"), "1").unwrap();
    rig.say("go");
    rig.write("d/a", "1").await;
    fs::rename(rig.work.join("d"), rig.work.join("moved")).unwrap();
    symlink(&outside, rig.work.join("d")).unwrap();
    let report = rig.undo(&UndoOptions::default()).unwrap();
    assert_eq!(fs::read_to_string(outside.join("a")).unwrap(), "1");
    assert_eq!(report.conflicts[0].now, State::Absent, "{report:?}");
}

#[tokio::test]
async fn a_folder_with_something_of_somebody_elses_in_it_stays() {
    let mut rig = Rig::new();
    rig.say("go");
    rig.command("mkdir -p d/e; echo > d/x").await;
    rig.put("d/theirs", "x");
    let report = rig.undo(&UndoOptions::default()).unwrap();
    assert!(report.is_complete());
    assert_eq!(report.kept_folders, [rig.work.join("d")]);
    assert_eq!(rig.all().len(), 1);
}

#[tokio::test]
async fn what_workers_did_goes_with_the_turn_they_worked_in_and_no_other() {
    let mut rig = Rig::new();
    rig.put("a", "0");
    let (mut worker, _) = rig.store.create_child(&rig.session.header, "test").unwrap();
    for number in 1..=2 {
        rig.say(&number.to_string());
        let path = rig.work.join("a");
        let reach = Reach { what: "write".into(), writes: vec![path.clone()], anything: false };
        let (ticket, _) = rig.keeper.before(reach).await;
        fs::write(&path, number.to_string()).unwrap();
        let changed = rig.keeper.after(ticket, false).await.unwrap();
        worker.append(&Entry::Changed(changed)).unwrap();
    }
    rig.undo(&UndoOptions::default()).unwrap();
    assert_eq!(rig.text("a"), "1");
    rig.say("3");
    rig.write("a", "3").await;
    // What was undone on another branch is not undone again.
    let first = rig.session.prompts().next().unwrap().1.id;
    let all = UndoOptions { to: Some(first), ..UndoOptions::default() };
    assert!(rig.undo(&all).unwrap().is_complete());
    assert_eq!(rig.text("a"), "0");
}

#[tokio::test]
async fn without_a_message_there_is_nothing_to_undo() {
    let mut rig = Rig::new();
    assert!(matches!(rig.undo(&UndoOptions::default()), Err(UndoError::NothingSaid)));
    assert!(matches!(rig.redo(), Err(UndoError::NothingUndone)));
    rig.say("one");
    let place = *rig.session.prompts().next().unwrap().1;
    rig.session = rig.log.move_to(place.before.unwrap(), MoveReason::Branched).unwrap();
    let gone = UndoOptions { to: Some(place.id), ..UndoOptions::default() };
    assert!(matches!(rig.undo(&gone), Err(UndoError::NoMessage(_))));
}
