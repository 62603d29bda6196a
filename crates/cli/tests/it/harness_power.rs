//! The crash harness without current: the process ends, and of each log stays what was on the disk for
//! certain, or that and some of the rest. What was shown last may be missing then. Still nothing happens twice, no
//! effect is unheard of, every request is a valid history, and what was declared can be undone.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use toolwright::session::{FAIL_POINTS, Index};

use crate::harness::{Dice, End, Setting, Stage, named, number, places, points};
use crate::harness_shown::Shown;

/// Random points, besides those of the others.
const POWER_SHARE: f64 = 0.2;

/// Takes away what nobody had asked the disk to keep.
fn cut_power(stage: &Stage, before: &BTreeMap<PathBuf, u64>, torn: bool) {
    let noted = std::fs::read_to_string(stage.folder.root().join("synced")).unwrap_or_default();
    let mut certain = before.clone();
    for line in noted.lines() {
        let (length, path) = line.split_once(' ').unwrap();
        certain.insert(path.into(), length.parse().unwrap());
    }
    for file in stage.store().files() {
        // Nothing had been asked for, not even its name.
        let Some(kept) = certain.get(&file) else {
            std::fs::remove_file(&file).unwrap();
            continue;
        };
        let log = OpenOptions::new().write(true).open(&file).unwrap();
        let length = log.metadata().unwrap().len();
        let half = if torn { length.saturating_sub(*kept) / 2 } else { 0 };
        log.set_len(length.min(kept + half)).unwrap();
    }
}

fn lengths(stage: &Stage) -> BTreeMap<PathBuf, u64> {
    let files = stage.store().files().into_iter();
    files.map(|file| (file.clone(), std::fs::metadata(file).unwrap().len())).collect()
}

/// Whether the process died of it.
fn live_and_die(setting: Setting, end: &End, torn: bool) -> bool {
    let stage = Stage::set_in(setting);
    let edited = stage.folder.read("edited.txt");
    let lengths = lengths(&stage);
    let mut arguments = vec!["run", "--auto", "-m", "anthropic/m", "Do it all"];
    if setting == Setting::AfterUndo {
        arguments.push("-c");
    }
    let killed = stage.ended(&arguments, end, &[("TOOLWRIGHT_FAIL_SYNCED", "synced")]);
    if killed.code.is_some() {
        return false;
    }
    // The index may have reached the disk before the log did.
    Index::open(&stage.store()).unwrap();
    cut_power(&stage, &lengths, torn);
    let about = format!("{setting:?}, {end:?}, torn: {torn}\nstderr: {}\n", killed.stderr);
    let kept = stage.check_kept(&Shown::default(), &about);
    stage.check(&kept, &about);
    stage.check_index(&about);
    if stage.session().is_some_and(|session| session.prompts().next().is_some()) {
        let undone = stage.tw(&["undo"], &End::Never, false);
        // What commands did behind the last sync is known to nobody: it stands, and that is said.
        assert!(undone.code.is_some_and(|code| code < 2), "{about}: {undone:?}");
    }
    assert_eq!(stage.folder.read("edited.txt"), edited, "{about}");
    assert!(!stage.folder.work().join("written.txt").exists(), "{about}");
    true
}

#[test]
fn what_a_power_cut_takes_is_neither_done_twice_nor_unheard_of() {
    let passed = places();
    let mut ends = Vec::new();
    let passes = if number("TOOLWRIGHT_CRASH_POINTS").is_some() { 3 } else { 1 };
    let own = |place: &&&str| !place.starts_with("undo.") && !place.starts_with("index.");
    for place in FAIL_POINTS.iter().filter(own) {
        // Usually the last time that it is passed: most is left to lose then.
        let ends_there = named(place, &passed).into_iter().rev().take(passes);
        ends.extend(ends_there.map(|end| (Setting::Plain, end, false)));
    }
    let at_places = ends.len();
    let mut dice = Dice(number("TOOLWRIGHT_CRASH_SEED").unwrap_or(7));
    for _ in 0..points(POWER_SHARE) {
        let end = match dice.below(3) {
            0 => End::Killed(dice.below(1_200_000)),
            _ => End::At("any".to_owned(), 1 + dice.below(passed.len() as u64)),
        };
        let setting = *[Setting::Plain, Setting::Repository, Setting::AfterUndo]
            .get(dice.below(3) as usize)
            .unwrap();
        ends.push((setting, end, dice.below(2) == 0));
    }
    let all = ends.len();
    let queue = Mutex::new(ends.into_iter());
    let died = AtomicUsize::new(0);
    let work = || {
        loop {
            let Some((setting, end, torn)) = queue.lock().unwrap().next() else { return };
            let is_dead = live_and_die(setting, &end, torn);
            died.fetch_add(usize::from(is_dead), Ordering::Relaxed);
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(work);
        work();
    });
    eprintln!("{all} points, {} of them died", died.load(Ordering::Relaxed));
    assert!(died.load(Ordering::Relaxed) >= at_places);
}
