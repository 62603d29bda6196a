//! What is noted of what calls do.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use super::*;
use crate::entry::Entry;
use crate::fold::Session;
use crate::id::EntryId;
use crate::log::Log;
use crate::store::Store;

/// A session in a folder, without anybody who talks.
pub(super) struct Rig {
    _folder: tempfile::TempDir,
    pub(super) root: PathBuf,
    pub(super) work: PathBuf,
    pub(super) store: Store,
    pub(super) log: Log,
    pub(super) session: Session,
    pub(super) keeper: Keeper,
}

impl Rig {
    pub(super) fn new() -> Self {
        Self::with_quota(Quota::default())
    }

    pub(super) fn with_quota(quota: Quota) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(folder.path()).unwrap();
        let work = root.join("work");
        fs::create_dir(&work).unwrap();
        let store = Store::new(root.join("data/sessions"));
        let (log, session) = store.create(&work, "test").unwrap();
        let keeper = Self::keeper(&root, &work, &log, quota);
        Self { _folder: folder, root, work, store, log, session, keeper }
    }

    fn keeper(root: &Path, work: &Path, log: &Log, quota: Quota) -> Keeper {
        let data = root.join("data");
        let images = Images::new(data.join("images"), data.join("sessions"), quota);
        let watch = Watch::new(work, images, &data, &root.join("home"));
        Keeper::new(watch, Some(Store::outputs(log).join("memory")))
    }

    /// Another process takes over.
    pub(super) fn reborn(&mut self) {
        self.keeper = Self::keeper(&self.root, &self.work, &self.log, Quota::default());
    }

    pub(super) fn add(&mut self, entry: Entry) {
        let mark = self.log.append(&entry).unwrap();
        if let Entry::Changed(changed) = &entry {
            self.keeper.noted(changed.at);
        }
        self.session.apply(entry, mark);
    }

    pub(super) fn say(&mut self, text: &str) -> EntryId {
        self.add(crate::tree_tests::prompt(text));
        let id = self.session.prompts().last().unwrap().1.id;
        self.keeper.begin_turn(id);
        id
    }

    pub(super) async fn call(&mut self, reach: Reach, work: impl FnOnce()) -> Changed {
        let (ticket, log) = self.keeper.before(reach).await;
        log.into_iter().for_each(|changed| self.add(Entry::Changed(changed)));
        work();
        let changed = self.keeper.after(ticket, false).await.unwrap_or_default();
        self.add(Entry::Changed(changed.clone()));
        changed
    }

    /// A command that really runs.
    pub(super) async fn command(&mut self, line: &str) -> Changed {
        let work = self.work.clone();
        let run = || sh(&work, line);
        self.call(Reach { what: line.into(), anything: true, ..Reach::default() }, run).await
    }

    pub(super) async fn write(&mut self, name: &str, text: &str) -> Changed {
        let path = self.work.join(name);
        let reach = Reach { what: name.into(), writes: vec![path.clone()], anything: false };
        let write = || {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, text).unwrap();
        };
        self.call(reach, write).await
    }

    pub(super) fn put(&self, name: &str, text: &str) {
        let path = self.work.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub(super) fn text(&self, name: &str) -> String {
        fs::read_to_string(self.work.join(name)).unwrap_or_else(|e| format!("({e})"))
    }

    pub(super) fn undo(&mut self, options: &UndoOptions) -> Result<Report, UndoError> {
        let images = self.keeper.watch().images().clone();
        let workers = self.store.workers(&self.session.header);
        let outputs = Store::outputs(&self.log);
        let scene = Scene { images: &images, workers: &workers, outputs: &outputs };
        let done = scene.undo(&mut self.log, options)?;
        self.session = done.session.unwrap_or_else(|| self.session.clone());
        Ok(done.report)
    }

    pub(super) fn redo(&mut self) -> Result<Report, UndoError> {
        let images = self.keeper.watch().images().clone();
        let outputs = Store::outputs(&self.log);
        let scene = Scene { images: &images, workers: &[], outputs: &outputs };
        let done = scene.redo(&mut self.log, false)?;
        self.session = done.session.unwrap_or_else(|| self.session.clone());
        Ok(done.report)
    }

    /// Everything below the work folder but repositories' own.
    pub(super) fn all(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut found = BTreeMap::new();
        let mut folders = vec![self.work.clone()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap().flatten() {
                let path = entry.path();
                if entry.file_name() == ".git" {
                    continue;
                }
                match entry.file_type().unwrap() {
                    kind if kind.is_dir() => folders.push(path),
                    kind if kind.is_symlink() => {
                        found.insert(
                            path.clone(),
                            fs::read_link(&path).unwrap().display().to_string().into(),
                        );
                    }
                    _ => {
                        found.insert(path.clone(), fs::read(&path).unwrap());
                    }
                }
            }
        }
        found
    }
}

pub(super) fn sh(work: &Path, line: &str) {
    let mut command = Command::new("sh");
    command.arg("-c").arg(line).current_dir(work).env("GIT_CONFIG_GLOBAL", "/dev/null");
    for who in ["AUTHOR", "COMMITTER"] {
        command
            .env(format!("GIT_{who}_NAME"), "T")
            .env(format!("GIT_{who}_EMAIL"), "t@example.org");
    }
    let output = command.output().unwrap();
    assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
}

fn names(rig: &Rig, changed: &Changed) -> Vec<String> {
    let name = |change: &Change| {
        change.path.strip_prefix(&rig.work).unwrap_or(&change.path).display().to_string()
    };
    changed.changes.iter().map(name).collect()
}

#[tokio::test]
async fn what_people_change_between_two_commands_is_theirs() {
    let mut rig = Rig::new();
    rig.put("a", "one");
    rig.say("go");
    let changed = rig.command("echo x > b").await;
    assert_eq!(names(&rig, &changed), ["b"]);
    rig.put("a", "by a person");
    let changed = rig.command("echo y > b").await;
    assert_eq!(names(&rig, &changed), ["b"]);
    let report = rig.undo(&UndoOptions::default()).unwrap();
    assert!(report.is_complete());
    assert_eq!(rig.text("a"), "by a person");
    assert!(!rig.work.join("b").exists());
}

#[tokio::test]
async fn what_a_job_changes_later_is_noted_when_it_is_seen() {
    let mut rig = Rig::new();
    rig.put("a", "one");
    rig.say("go");
    let reach = || Reach { what: "job".into(), anything: true, ..Reach::default() };
    let (ticket, _) = rig.keeper.before(reach()).await;
    assert!(rig.keeper.after(ticket, true).await.is_none());
    rig.put("a", "by the job");
    let (ticket, log) = rig.keeper.before(reach()).await;
    assert_eq!(names(&rig, &log[0]), ["a"]);
    assert!(log[0].by.background);
    rig.keeper.after(ticket, false).await;
    rig.put("b", "by the job too");
    let later = rig.keeper.seen_later().await.unwrap();
    assert_eq!(names(&rig, &later), ["b"]);
    assert!(rig.keeper.seen_later().await.is_none());
}

#[tokio::test]
async fn copies_of_files_are_nobody_elses_business() {
    let mut rig = Rig::new();
    rig.put("a", "one");
    rig.say("go");
    let reach = Reach { what: "x".into(), anything: true, ..Reach::default() };
    let (ticket, _) = rig.keeper.before(reach).await;
    for name in ["memory", "memory.copies"] {
        let kept = Store::outputs(&rig.log).join(name);
        assert_eq!(fs::metadata(&kept).unwrap().permissions().mode() & 0o777, 0o600, "{name}");
    }
    rig.keeper.after(ticket, false).await;
}

#[tokio::test]
async fn a_declared_write_beside_a_command_is_not_the_commands() {
    let mut rig = Rig::new();
    rig.put("a", "one");
    rig.say("go");
    let reach = Reach { what: "long".into(), anything: true, ..Reach::default() };
    let (ticket, _) = rig.keeper.before(reach).await;
    let written = rig.write("new/a", "by the other").await;
    assert_eq!(names(&rig, &written), ["new", "new/a"]);
    rig.put("c", "by the command");
    let changed = rig.keeper.after(ticket, false).await.unwrap();
    assert_eq!(names(&rig, &changed), ["c"]);
}

#[tokio::test]
async fn an_ignored_file_that_is_no_longer_ignored_was_there_before() {
    let mut rig = Rig::new();
    rig.put(".gitignore", ".env\nlogs/\n");
    rig.put(".env", "SECRET");
    rig.put("logs/x", "log");
    rig.say("go");
    let changed = rig.command("echo > .gitignore; echo new > c").await;
    assert_eq!(names(&rig, &changed), [".gitignore", "c"]);
    // And one that becomes ignored is still known.
    let changed = rig.command("echo c > .gitignore; echo newer > c").await;
    assert_eq!(names(&rig, &changed), [".gitignore", "c"]);
    assert!(rig.undo(&UndoOptions::default()).unwrap().is_complete());
    assert_eq!((rig.text(".env"), rig.text("logs/x")), ("SECRET".into(), "log".into()));
    assert_eq!(rig.text(".gitignore"), ".env\nlogs/\n");
    assert!(!rig.work.join("c").exists());
}

#[tokio::test]
async fn what_a_command_did_is_known_although_the_process_was_killed_meanwhile() {
    let mut rig = Rig::new();
    for name in ["a", "b", "c"] {
        rig.put(name, name);
    }
    rig.say("go");
    let before = rig.all();
    rig.command("echo 1 >> a").await;
    let reach = Reach { what: "killed".into(), anything: true, ..Reach::default() };
    let (ticket, _) = rig.keeper.before(reach).await;
    sh(&rig.work, "echo 2 >> a; rm b; mkdir d; mv c d");
    std::mem::forget(ticket);
    std::mem::forget(rig.keeper.clone());
    rig.reborn();
    let changed = rig.keeper.recover().await.unwrap();
    assert_eq!(names(&rig, &changed), ["a", "b", "c", "d", "d/c"]);
    assert_eq!(changed.by.what, "killed");
    assert!(rig.keeper.recover().await.is_some(), "whoever asked may be killed as well");
    rig.add(Entry::Changed(changed));
    rig.keeper.recovered();
    assert!(rig.keeper.recover().await.is_none(), "once");
    assert!(rig.undo(&UndoOptions::default()).unwrap().is_complete());
    assert_eq!(rig.all(), before);
}

#[tokio::test]
async fn what_a_command_did_is_known_although_nobody_came_to_write_it_down() {
    let mut rig = Rig::new();
    rig.put("a", "a");
    rig.put("b", "b");
    rig.say("go");
    let before = rig.all();
    rig.command("echo 1 >> a").await;
    let reach = Reach { what: "unnoted".into(), anything: true, ..Reach::default() };
    let (ticket, _) = rig.keeper.before(reach).await;
    sh(&rig.work, "echo 2 >> a; rm b; echo c > c");
    let lost = rig.keeper.after(ticket, false).await.unwrap();
    assert_eq!(names(&rig, &lost), ["a", "b", "c"]);
    std::mem::forget(rig.keeper.clone());
    rig.reborn();
    let changed = rig.keeper.recover().await.unwrap();
    assert_eq!(changed.changes, lost.changes);
    rig.add(Entry::Changed(changed));
    rig.keeper.recovered();
    assert!(rig.undo(&UndoOptions::default()).unwrap().is_complete());
    assert_eq!(rig.all(), before);
}

#[tokio::test]
async fn what_people_changed_after_a_process_was_killed_is_theirs() {
    let mut rig = Rig::new();
    for name in ["a", "b", "c"] {
        rig.put(name, name);
    }
    rig.say("go");
    let reach = Reach { what: "killed".into(), anything: true, ..Reach::default() };
    let (ticket, _) = rig.keeper.before(reach).await;
    std::mem::forget(ticket);
    std::mem::forget(rig.keeper.clone());
    rig.put("a", "theirs");
    sh(&rig.work, "rm b");
    let memory = fs::File::open(Store::outputs(&rig.log).join("memory")).unwrap();
    let hour = std::time::Duration::from_secs(3600);
    memory.set_modified(std::time::SystemTime::now() - hour).unwrap();
    rig.reborn();
    let changed = rig.keeper.recover().await.unwrap();
    assert!(changed.changes.is_empty(), "{changed:?}");
    assert_eq!(changed.lost.len(), 1);
    assert_eq!(changed.lost[0].path, rig.work.join("b"));
}

#[tokio::test]
async fn a_call_that_was_given_up_before_it_began_leaves_nothing_open() {
    let mut rig = Rig::new();
    rig.put("a", "a");
    rig.say("go");
    rig.command("true").await;
    let reach = || Reach { what: "never".into(), anything: true, ..Reach::default() };
    // Dropped while it looks.
    let keeper = rig.keeper.clone();
    tokio::select! {
        biased;
        _ = keeper.before(reach()) => panic!("it cannot be ready at once"),
        () = std::future::ready(()) => {}
    }
    // It comes to its end in the background, and whoever comes next waits for that.
    rig.command("true").await;
    rig.put("a", "theirs");
    rig.reborn();
    assert!(rig.keeper.recover().await.is_none());
}

#[tokio::test]
async fn clean_files_are_not_copied_and_come_back_from_the_repository() {
    let mut rig = Rig::new();
    sh(
        &rig.work,
        "git init -q; seq 100000 > big; echo x > small; git add -A; git commit -qm first",
    );
    // Older than the index by more than a tick, as files are that nobody touches.
    sh(
        &rig.work,
        "touch -d '1 hour ago' big small; git update-index --refresh -q; touch -d '1 hour' .git/index",
    );
    let before = rig.all();
    rig.say("go");
    let index = fs::read(rig.work.join(".git/index")).unwrap();
    rig.command("true").await;
    let kept = rig.keeper.watch().images().used();
    assert!(kept < 1000, "{kept} bytes were copied");
    rig.command("rm big; echo y > small; chmod 600 small").await;
    let report = rig.undo(&UndoOptions::default()).unwrap();
    assert!(report.is_complete(), "{report:?}");
    assert_eq!(rig.all(), before);
    assert_eq!(fs::read(rig.work.join(".git/index")).unwrap(), index);
}

#[tokio::test]
async fn files_that_git_converts_come_back_as_they_were_on_disk() {
    let mut rig = Rig::new();
    sh(
        &rig.work,
        "git init -q; git config core.autocrlf true; git config filter.rot.clean 'tr a-z n-za-m'
         git config filter.rot.smudge 'tr a-z n-za-m'
         printf '*.rot filter=rot\\n*.id ident\\n*.lf eol=lf\\n' > .gitattributes
         printf 'one\\r\\ntwo\\r\\n' > crlf; printf 'hello' > same.rot
         printf '$Id$\\n' > x.id; printf 'a\\nb\\n' > y.lf
         git add -A; git commit -qm first; rm x.id crlf; git checkout -q -- .
         find . -path ./.git -prune -o -type f -exec touch -d '1 hour ago' {} +
         git update-index --refresh -q; touch -d '1 hour' .git/index",
    );
    let before = rig.all();
    rig.say("go");
    rig.command("rm crlf same.rot x.id; echo > y.lf").await;
    assert!(rig.undo(&UndoOptions::default()).unwrap().is_complete());
    assert_eq!(rig.all(), before);
}

#[tokio::test]
async fn what_cannot_be_brought_back_is_named() {
    let mut rig = Rig::with_quota(Quota { bytes: 80_000, ..Quota::default() });
    rig.put("large", &"x".repeat(20_000));
    sh(
        &rig.work,
        "git init -q; git commit -q --allow-empty -m first; git init -q inner; mkfifo pipe",
    );
    rig.say("go");
    rig.command("rm -r large inner pipe; git commit -q --allow-empty -m second; echo > a").await;
    let report = rig.undo(&UndoOptions::default()).unwrap();
    let lost: Vec<String> = report
        .lost
        .iter()
        .map(|l| l.path.strip_prefix(&rig.work).unwrap().display().to_string())
        .collect();
    assert_eq!(lost, ["inner/.git", "large", "pipe"]);
    assert!(report.lost[1].why.contains("larger than the 10000 bytes"), "{:?}", report.lost);
    assert_eq!(report.heads.len(), 1);
    assert_eq!(report.commands.len(), 1);
    assert!(!rig.work.join("a").exists(), "the rest is undone");
}

#[tokio::test]
async fn a_home_folder_is_not_followed() {
    let rig = Rig::new();
    let images = rig.keeper.watch().images().clone();
    let watch = Watch::new(&rig.work, images, &rig.root.join("data"), &rig.work.join("me"));
    let keeper = Keeper::new(watch, None);
    rig.put("a", "one");
    let reach = Reach { what: "x".into(), anything: true, ..Reach::default() };
    let (ticket, _) = keeper.before(reach).await;
    rig.put("a", "two");
    let changed = keeper.after(ticket, false).await.unwrap();
    assert!(changed.changes.is_empty());
    assert!(changed.lost[0].why.contains("too large to be followed"), "{:?}", changed.lost);
    assert_eq!(keeper.watch().images().used(), 0);
}

#[tokio::test]
async fn a_change_within_one_tick_of_the_clock_is_seen() {
    let mut rig = Rig::new();
    rig.put("a", "0");
    rig.say("go");
    for round in 0..30 {
        // Same size, same inode, and as soon as possible after the last look.
        let path = rig.work.join("a");
        let text = (round % 2 + 1).to_string();
        let reach = Reach { what: "x".into(), anything: true, ..Reach::default() };
        let changed = rig.call(reach, || fs::write(&path, text).unwrap()).await;
        assert_eq!(names(&rig, &changed), ["a"], "round {round}");
    }
    assert!(rig.undo(&UndoOptions::default()).unwrap().is_complete());
    assert_eq!(rig.text("a"), "0");
}

#[tokio::test]
async fn a_first_look_that_nobody_waits_for_any_more_ends_and_the_next_one_is_whole() {
    let mut rig = Rig::new();
    rig.put("a", "one");
    rig.say("go");
    let anything = || Reach { what: "x".into(), anything: true, ..Reach::default() };
    let held = Arc::clone(&rig.keeper.watch.seen).lock_owned().await;
    let mut waiting = Box::pin(rig.keeper.before(anything()));
    // It has begun, and stands behind us.
    tokio::select! {
        biased;
        _ = &mut waiting => panic!("it cannot be done"),
        () = std::future::ready(()) => {}
    }
    tokio::task::yield_now().await;
    drop(waiting);
    drop(held);
    let seen = Arc::clone(&rig.keeper.watch.seen).lock_owned().await;
    assert!(seen.table.is_none(), "nothing was looked at");
    drop(seen);
    rig.command("echo two > a").await;
    assert!(rig.undo(&UndoOptions::default()).unwrap().is_complete());
    assert_eq!(rig.text("a"), "one");
}
