//! Children that do everything against being put right, played by the tests themselves.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use super::*;

struct Place {
    _folder: tempfile::TempDir,
    root: PathBuf,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(folder.path()).unwrap();
        fs::create_dir_all(root.join("work/.git/hooks")).unwrap();
        fs::create_dir_all(root.join("outside")).unwrap();
        fs::write(root.join("work/.git/config"), "old").unwrap();
        fs::write(root.join("work/.git/hooks/pre-commit"), "hook").unwrap();
        Self { _folder: folder, root }
    }

    fn fence(&self, protected: &[&str]) -> Fence {
        Fence {
            writable: vec![self.root.join("work")],
            read_only: protected.iter().map(|name| self.path(name)).collect(),
            ..Fence::default()
        }
    }

    fn guarding(&self, protected: &[&str]) -> Guard {
        Guard::of(&self.fence(protected), |_| false).unwrap().unwrap()
    }

    fn guard(&self) -> Guard {
        self.guarding(&[".git/hooks", ".git/config", "opencode.json", ".claude/settings.json"])
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.join("work").join(name)
    }

    fn paths(&self, names: &[&str]) -> Vec<PathBuf> {
        names.iter().map(|name| self.path(name)).collect()
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn text(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    /// What was put aside under this name.
    fn aside(&self, name: &str) -> PathBuf {
        let begin = format!("{name}.stopped-by-sandbox-");
        let entries = fs::read_dir(self.path("")).unwrap().flatten();
        let mut found =
            entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(&begin));
        found.next().unwrap_or_else(|| panic!("no {name}")).path()
    }

    fn set_mode(&self, name: &str, mode: u32) {
        fs::set_permissions(self.path(name), fs::Permissions::from_mode(mode)).unwrap();
    }
}

/// Everything was put back, this and nothing else.
fn assert_restored(done: &PutBack, wanted: &[PathBuf]) {
    assert_eq!((&done.failed, done.restored.as_slice()), (&Vec::new(), wanted));
}

#[test]
fn what_was_not_touched_is_not_touched() {
    let place = Place::new();
    let guard = place.guard();
    let stamp = || state::Stamp::of(&fs::metadata(place.path(".git/config")).unwrap());
    let before = stamp();
    assert_eq!(guard.restore(), PutBack::default());
    assert_eq!(stamp(), before);
}

#[test]
fn changes_new_names_and_removals_are_put_back_and_kept_aside() {
    let place = Place::new();
    let guard = place.guard();
    place.write(".git/config", "evil");
    fs::remove_file(place.path(".git/hooks/pre-commit")).unwrap();
    place.write(".git/hooks/post-commit", "evil");
    place.write("opencode.json", "{}");
    place.write(".claude/settings.json", "{}");
    let done = guard.restore();
    let wanted = [
        ".claude/settings.json",
        ".git/config",
        ".git/hooks/post-commit",
        ".git/hooks/pre-commit",
        "opencode.json",
    ];
    assert_restored(&done, &place.paths(&wanted));
    assert_eq!(done.aside, [place.path("")].map(|path| path.components().collect::<PathBuf>()));
    assert_eq!(place.text(".git/config"), "old");
    assert_eq!(place.text(".git/hooks/pre-commit"), "hook");
    for gone in ["opencode.json", ".git/hooks/post-commit", ".claude/settings.json"] {
        assert!(!place.path(gone).exists(), "{gone}");
        place.aside(gone.rsplit('/').next().unwrap());
    }
    assert_eq!(fs::read_to_string(place.aside("config")).unwrap(), "evil");
    assert_eq!(guard.restore(), PutBack::default());
}

#[test]
fn what_we_wrote_ourselves_meanwhile_stays_and_nothing_beside_it() {
    let place = Place::new();
    let guard = place.guarding(&[".git/config", "opencode.json", ".opencode"]);
    for name in ["opencode.json", ".opencode/agent/own.md", ".opencode/agent/evil.md"] {
        place.write(name, "{}");
    }
    for name in ["opencode.json", ".opencode/agent/own.md"] {
        changed_by_us(&place.path(name));
    }
    place.write(".git/config", "evil");
    let done = guard.restore();
    assert_restored(&done, &place.paths(&[".git/config", ".opencode/agent/evil.md"]));
    assert_eq!(place.text("opencode.json"), "{}");
    assert_eq!(place.text(".opencode/agent/own.md"), "{}");
}

#[test]
fn a_link_that_was_put_in_the_way_leads_the_guard_nowhere() {
    let place = Place::new();
    let guard = place.guard();
    let outside = place.root.join("outside");
    fs::write(outside.join("config"), "somebody's").unwrap();
    fs::rename(place.path(".git"), place.path("moved")).unwrap();
    symlink(&outside, place.path(".git")).unwrap();
    symlink(&outside, place.path(".claude")).unwrap();
    fs::write(place.path("moved/config"), "evil").unwrap();
    let done = guard.restore();
    assert!(done.restored.contains(&place.path(".claude/settings.json")), "{done:?}");
    assert_eq!(fs::read_to_string(outside.join("config")).unwrap(), "somebody's");
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 1);
    // The folder is where it was, and as it was.
    assert_eq!(place.text(".git/config"), "old");
    assert!(!place.path("moved").exists());
    assert!(place.aside(".git").is_symlink());
}

/// A link where a folder far above was: what it leads to is somebody's, and has the same names.
#[test]
fn nothing_outside_is_moved_for_a_folder_that_was_moved() {
    let place = Place::new();
    place.write("apps/web/src/main.rs", "mine");
    place.write(".git/modules/x/home/alice/config", "old");
    let guard = place.guarding(&["apps/web/src/opencode.json", ".git/modules/x/home/alice/config"]);
    let outside = place.root.join("outside");
    fs::create_dir_all(outside.join("web/src")).unwrap();
    fs::create_dir_all(outside.join("home/alice")).unwrap();
    fs::write(outside.join("web/src/theirs"), "theirs").unwrap();
    for (from, to) in [("apps", "apps2"), (".git/modules/x", ".git/modules/y")] {
        fs::rename(place.path(from), place.path(to)).unwrap();
        symlink(&outside, place.path(from)).unwrap();
    }
    place.write(".git/modules/y/home/alice/.bashrc", "evil");
    let done = guard.restore();
    assert_restored(&done, &place.paths(&[".git/modules/x", "apps"]));
    assert_eq!(fs::read_to_string(outside.join("web/src/theirs")).unwrap(), "theirs");
    assert_eq!(fs::read_dir(outside.join("web")).unwrap().count(), 1);
    assert_eq!(fs::read_dir(outside.join("home")).unwrap().count(), 1);
    assert_eq!(fs::read_dir(outside.join("home/alice")).unwrap().count(), 0);
    assert_eq!(place.text("apps/web/src/main.rs"), "mine");
    assert_eq!(place.text(".git/modules/x/home/alice/config"), "old");
}

#[test]
fn a_folder_that_was_moved_into_what_took_its_place_comes_back() {
    let place = Place::new();
    let guard = place.guard();
    fs::create_dir(place.path("new")).unwrap();
    fs::rename(place.path(".git"), place.path("new/.git")).unwrap();
    place.write("new/config", "evil");
    fs::rename(place.path("new"), place.path(".git")).unwrap();
    assert_restored(&guard.restore(), &[place.path(".git")]);
    assert_eq!(place.text(".git/config"), "old");
    assert!(place.aside(".git").join("config").exists());
}

#[test]
fn a_folder_made_anew_after_the_first_was_removed_is_put_right() {
    let place = Place::new();
    place.write(".claude/settings.json", "rules");
    let guard = place.guard();
    fs::remove_dir_all(place.path(".git")).unwrap();
    fs::remove_dir_all(place.path(".claude")).unwrap();
    place.write(".git/config", "evil");
    place.write(".git/HEAD", "new");
    let done = guard.restore();
    let wanted = [".claude/settings.json", ".git/config", ".git/hooks"];
    assert_restored(&done, &place.paths(&wanted));
    assert_eq!(place.text(".git/config"), "old");
    assert_eq!(place.text(".git/hooks/pre-commit"), "hook");
    assert_eq!(place.text(".git/HEAD"), "new");
    assert_eq!(place.text(".claude/settings.json"), "rules");
    // A repository that is gone altogether runs nothing.
    fs::remove_dir_all(place.path(".git")).unwrap();
    assert_eq!(place.guard().restore(), PutBack::default());
    assert!(!place.path(".git").exists());
}

#[test]
fn names_that_were_taken_before_are_in_nobodys_way() {
    let place = Place::new();
    let guard = place.guard();
    for name in ["opencode.json", ".git/config"] {
        for number in 0..100 {
            place.write(&format!("{name}.stopped-by-sandbox-{number}"), "");
        }
        place.write(&format!("{name}.stopped-by-sandbox"), "");
        place.write(name, "evil");
    }
    assert_restored(&guard.restore(), &place.paths(&[".git/config", "opencode.json"]));
    assert_eq!(place.text(".git/config"), "old");
    assert!(!place.path("opencode.json").exists());
}

/// Root may write everywhere; for others this is the way to keep us out.
#[test]
fn folders_that_were_closed_are_opened() {
    let place = Place::new();
    let guard = place.guard();
    place.write(".git/config", "evil");
    place.write(".git/hooks/evil/deep", "evil");
    place.write("opencode.json", "{}");
    for name in [".git/hooks/evil", ".git/hooks", ".git", ""] {
        place.set_mode(name, 0o555);
    }
    place.set_mode(".git/hooks", 0);
    let done = guard.restore();
    let wanted = [".git/config", ".git/hooks", ".git/hooks/evil", "opencode.json"];
    assert_restored(&done, &place.paths(&wanted));
    for name in ["", ".git", ".git/hooks"] {
        place.set_mode(name, 0o755);
    }
    assert_eq!(place.text(".git/config"), "old");
    assert_eq!(fs::read_dir(place.path(".git/hooks")).unwrap().count(), 1);
}

#[test]
fn only_our_plans_stay() {
    let place = Place::new();
    let guard = place.guarding(&[".opencode", ".toolwright"]);
    let evil = [
        ".opencode/plugin/stopped-by-sandbox.js",
        ".opencode/agent/plans/x.md",
        ".toolwright/tools/x.stopped-by-sandbox",
    ];
    for name in evil.into_iter().chain([".opencode/plans/a.md", ".toolwright/plans/b.md"]) {
        place.write(name, "x");
    }
    let done = guard.restore();
    let wanted = [".opencode/agent", ".opencode/plugin", ".toolwright/tools"];
    assert_restored(&done, &place.paths(&wanted));
    assert_eq!(place.text(".opencode/plans/a.md"), "x");
    assert_eq!(place.text(".toolwright/plans/b.md"), "x");
    // A link of that name leads anywhere.
    fs::remove_dir_all(place.path(".opencode/plans")).unwrap();
    symlink(place.root.join("outside"), place.path(".opencode/plans")).unwrap();
    assert_restored(&guard.restore(), &[place.path(".opencode")]);
}

#[test]
fn what_is_too_large_is_said_and_takes_no_room_from_the_others() {
    let place = Place::new();
    for number in 0..state::CAP_FILES {
        place.write(&format!(".git/hooks/{number}"), "");
    }
    fs::File::create(place.path("opencode.json")).unwrap().set_len(1 << 40).unwrap();
    let protected = [".git/hooks", ".git/config", "opencode.json", ".claude/settings.json"];
    let large = place.paths(&[".git/hooks", "opencode.json"]);
    assert_eq!(unwatched(&place.fence(&protected), |_| false).unwrap(), large);
    let guard = place.guard();
    place.write(".git/config", "evil");
    let done = guard.restore();
    assert_eq!(done.unwatched, large);
    assert_restored(&done, &[place.path(".git/config")]);
    assert_eq!(
        unwatched(&place.fence(&[".git/config"]), |_| false).unwrap(),
        Vec::<PathBuf>::new()
    );
}

/// A sparse file of a terabyte, a pipe without a writer, a link to a device without an end.
#[test]
fn what_has_no_end_is_not_read() {
    let place = Place::new();
    let guard = place.guard();
    fs::OpenOptions::new()
        .write(true)
        .open(place.path(".git/config"))
        .unwrap()
        .set_len(1 << 40)
        .unwrap();
    let pipe = std::ffi::CString::new(place.path("opencode.json").to_str().unwrap()).unwrap();
    assert_eq!(unsafe { libc::mkfifo(pipe.as_ptr(), 0o600) }, 0);
    fs::remove_file(place.path(".git/hooks/pre-commit")).unwrap();
    symlink("/dev/zero", place.path(".git/hooks/pre-commit")).unwrap();
    let wanted = [".git/config", ".git/hooks/pre-commit", "opencode.json"];
    assert_restored(&guard.restore(), &place.paths(&wanted));
    assert_eq!(place.text(".git/config"), "old");
    assert_eq!(place.text(".git/hooks/pre-commit"), "hook");
}

#[test]
fn more_than_can_be_looked_through_is_moved_as_a_whole() {
    let place = Place::new();
    let guard = place.guard();
    for number in 0..state::CAP_FILES + 2 {
        place.write(&format!(".git/hooks/{number}"), "");
    }
    assert_restored(&guard.restore(), &[place.path(".git/hooks")]);
    assert_eq!(fs::read_dir(place.path(".git/hooks")).unwrap().count(), 1);
    assert_eq!(place.text(".git/hooks/pre-commit"), "hook");
}

#[test]
fn links_and_what_they_lead_to_are_put_back() {
    let place = Place::new();
    place.write("oc/agent.md", "old");
    place.write("first.json", "old");
    place.write("dotclaude/settings.json", "old");
    symlink("oc", place.path(".opencode")).unwrap();
    symlink("second.json", place.path("opencode.json")).unwrap();
    symlink(place.path("first.json"), place.path("second.json")).unwrap();
    symlink("dotclaude", place.path(".claude")).unwrap();
    symlink("../nowhere", place.path(".git/commondir")).unwrap();
    let guard =
        place.guarding(&[".opencode", "opencode.json", ".claude/settings.json", ".git/commondir"]);
    // Through them, in their place, and where one leads that leads nowhere yet.
    place.write("oc/agent.md", "evil");
    place.write("first.json", "evil");
    fs::remove_file(place.path("second.json")).unwrap();
    place.write("second.json", "evil");
    fs::remove_file(place.path(".claude")).unwrap();
    place.write(".claude/settings.json", "evil");
    place.write("nowhere", "evil");
    let done = guard.restore();
    let wanted = [".claude", "first.json", "nowhere", "oc/agent.md", "second.json"];
    assert_restored(&done, &place.paths(&wanted));
    for name in [".opencode/agent.md", "opencode.json", ".claude/settings.json"] {
        assert_eq!(place.text(name), "old", "{name}");
    }
    assert!(!place.path("nowhere").exists());
    assert_eq!(guard.restore(), PutBack::default());
}

/// What one child made is not what another is to be measured by.
#[test]
fn what_was_there_before_the_first_child_counts() {
    let place = Place::new();
    let first = place.guard();
    place.write(".git/config", "evil");
    let second = place.guard();
    assert_restored(&first.restore(), &[place.path(".git/config")]);
    drop(first);
    assert_eq!(second.restore(), PutBack::default());
    assert_eq!(place.text(".git/config"), "old");
}

#[test]
fn what_cannot_be_put_back_is_said() {
    let place = Place::new();
    let pipe = std::ffi::CString::new(place.path("opencode.json").to_str().unwrap()).unwrap();
    assert_eq!(unsafe { libc::mkfifo(pipe.as_ptr(), 0o600) }, 0);
    let guard = place.guard();
    fs::remove_file(place.path("opencode.json")).unwrap();
    // A folder that somebody took out of the fence.
    fs::rename(place.path(".git"), place.root.join("outside/.git")).unwrap();
    place.write(".git/config", "evil");
    let done = guard.restore();
    assert_eq!(done.failed, place.paths(&[".git", "opencode.json"]));
    assert!(!place.path(".git").exists());
    assert_eq!(fs::read_to_string(place.root.join("outside/.git/config")).unwrap(), "old");
}
