use super::*;
use crate::log::Log;

const HOUR: Duration = Duration::from_secs(3_600);

struct Place {
    root: tempfile::TempDir,
    store: Store,
    now: SystemTime,
}

impl Place {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        Self { store: Store::new(root.path()), root, now: SystemTime::now() }
    }

    /// A session that nobody works on.
    fn session(&self) -> PathBuf {
        Store::outputs(&self.open_session())
    }

    fn open_session(&self) -> Log {
        self.store.create(Path::new("/somewhere"), "test").unwrap().0
    }

    /// A file of 100 bytes that was written `age` ago.
    fn file(&self, folder: &Path, name: &str, age: Duration) -> PathBuf {
        fs::create_dir_all(folder).unwrap();
        let path = folder.join(name);
        fs::write(&path, [b'x'; 100]).unwrap();
        let file = File::options().write(true).open(&path).unwrap();
        file.set_times(fs::FileTimes::new().set_modified(self.now - age)).unwrap();
        path
    }

    fn sweep(&self, retention: Retention) {
        self.store.sweep(retention, self.now, &AtomicBool::new(false));
    }
}

fn left(files: &[PathBuf]) -> Vec<bool> {
    files.iter().map(|file| file.exists()).collect()
}

#[test]
fn what_is_older_than_a_week_goes_and_its_empty_folder_with_it() {
    let place = Place::new();
    let (a, b) = (place.session(), place.session());
    let files = [
        place.file(&a, "tool_1.txt", DAY * 8),
        place.file(&a, "tool_2.txt", DAY * 6),
        place.file(&b, "tool_3.txt", DAY * 7 + HOUR),
    ];
    place.sweep(Retention::default());
    assert_eq!(left(&files), [false, true, false]);
    assert!(a.exists() && !b.exists());
    assert!(b.with_extension("jsonl").exists(), "the log itself stays");
}

#[test]
fn what_is_too_much_goes_oldest_first_over_all_sessions_until_it_is_not() {
    let place = Place::new();
    let (a, b) = (place.session(), place.session());
    let files = [
        place.file(&a, "tool_1.txt", HOUR * 5),
        place.file(&b, "tool_2.txt", HOUR * 4),
        place.file(&a, "tool_3.txt", HOUR * 3),
        place.file(&b, "tool_4.txt", HOUR * 2),
    ];
    place.sweep(Retention { bytes: 250, ..Retention::default() });
    assert_eq!(left(&files), [false, false, true, true]);
}

#[test]
fn what_is_younger_than_an_hour_stays_whatever_the_limits_are() {
    let place = Place::new();
    let folder = place.session();
    let files = [
        place.file(&folder, "tool_1.txt", HOUR * 2),
        place.file(&folder, "tool_2.txt", HOUR / 2),
        place.file(&folder, "tool_3.txt", Duration::ZERO),
    ];
    place.sweep(Retention::of(Some(0), Some(0)));
    assert_eq!(left(&files), [false, true, true]);
}

#[test]
fn a_session_that_is_in_use_keeps_everything_and_others_make_room_for_it() {
    let place = Place::new();
    let log = place.open_session();
    let files = [
        place.file(&Store::outputs(&log), "tool_1.txt", DAY * 30),
        place.file(&place.session(), "tool_2.txt", HOUR * 3),
        place.file(&place.session(), "tool_3.txt", HOUR * 2),
    ];
    place.sweep(Retention { bytes: 200, ..Retention::default() });
    assert_eq!(left(&files), [true, false, true]);
    drop(log);
    place.sweep(Retention::default());
    assert_eq!(left(&files), [false, false, true]);
}

#[test]
fn only_files_of_ours_are_removed_and_links_are_not_followed() {
    let place = Place::new();
    let elsewhere = tempfile::tempdir().unwrap();
    let folder = place.session();
    let target = place.file(elsewhere.path(), "tool_1.txt", DAY * 9);
    let other = place.file(&folder, "notes.txt", DAY * 9);
    let linked = folder.join("tool_link");
    std::os::unix::fs::symlink(&target, &linked).unwrap();
    std::os::unix::fs::symlink(elsewhere.path(), folder.with_extension("x.outputs")).unwrap();
    place.sweep(Retention::of(Some(0), Some(0)));
    assert_eq!(left(&[target, other, linked]), [true, true, true]);
}

#[test]
fn a_sweep_happens_once_a_day_and_stops_when_told() {
    let place = Place::new();
    let folder = place.session();
    let go = AtomicBool::new(false);
    let old = |name| place.file(&folder, name, DAY * 8);
    let first = old("tool_1.txt");
    place.store.sweep_if_due(Retention::default(), place.now, &AtomicBool::new(true));
    assert!(first.exists(), "it was told to stop");
    place.store.sweep_if_due(Retention::default(), place.now + HOUR * 23, &go);
    assert!(first.exists(), "a day has not passed");
    place.store.sweep_if_due(Retention::default(), place.now + HOUR * 25, &go);
    assert!(!first.exists());
    let second = old("tool_2.txt");
    place.store.sweep_if_due(Retention::default(), place.now + HOUR * 26, &go);
    assert!(second.exists(), "the stamp is new");
    place.store.sweep_if_due(Retention::default(), place.now, &go);
    assert!(!second.exists(), "a stamp from the future counts for nothing");
}

#[test]
fn a_store_that_is_not_there_or_odd_is_no_problem() {
    let place = Place::new();
    let go = AtomicBool::new(false);
    let missing = Store::new(place.root.path().join("missing"));
    missing.sweep_if_due(Retention::default(), place.now, &go);
    fs::write(place.root.path().join("a file"), "x").unwrap();
    fs::write(place.root.path().join("b.outputs"), "x").unwrap();
    place.sweep(Retention { age: Duration::MAX, bytes: u64::MAX });
    place.sweep(Retention::of(Some(u64::MAX), Some(0)));
    let ancient = place.file(&place.session(), "tool_1.txt", Duration::ZERO);
    let file = File::options().write(true).open(&ancient).unwrap();
    file.set_times(fs::FileTimes::new().set_modified(SystemTime::UNIX_EPOCH - DAY)).unwrap();
    place.sweep(Retention::default());
    assert!(!ancient.exists());
}
