//! What a plugin writes is noted whichever way the writing ends, and in nobody else's way after that.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::json;
use tokio::sync::mpsc;
use toolwright_engine::{Answer, Event};
use toolwright_permission::{Action, Layer, LayerKind, Policy, Rule};
use toolwright_script::{Host, HostOptions, Kind, Limit, Script};
use toolwright_session::images::{Changed, Images, Quota, Reach, Watch};
use toolwright_tool::Access;

use super::*;

const PLUGIN: &str = r#"
import { writeFileSync } from "fs"
export const P = async () => ({ "chat.message": async () => writeFileSync("p.txt", "plugin") })
"#;

struct Rig {
    _folder: tempfile::TempDir,
    work: PathBuf,
    workspace: Arc<Workspace>,
    keeper: Keeper,
    gate: Arc<PermissionGate>,
    guard: Arc<GateGuard>,
    events: mpsc::Receiver<Event>,
}

impl Rig {
    /// Each write is asked about.
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = std::fs::canonicalize(folder.path()).unwrap();
        let (work, data) = (root.join("work"), root.join("data"));
        std::fs::create_dir_all(&work).unwrap();
        let images = Images::new(data.join("images"), data.join("sessions"), Quota::default());
        let keeper = Keeper::new(Watch::new(&work, images, &data, &root.join("home")), None);
        let (permission, pattern) = ("*".to_owned(), "*".to_owned());
        let rules = vec![Rule { permission, pattern, action: Action::Ask }];
        let layer = Layer { kind: LayerKind::User, origin: "test".to_owned(), rules };
        let (asker, events) = mpsc::channel(16);
        let gate = Arc::new(PermissionGate::new(Policy::new(vec![layer]), Some(asker)));
        let post = Post::default();
        post.set(&gate);
        post.set_keeper(Some(keeper.clone()));
        let workspace = Arc::new(Workspace::new(&work).unwrap());
        let guard = Arc::new(GateGuard::new(&post, Arc::clone(&workspace), &work.join("p.ts")));
        Self { _folder: folder, work, workspace, keeper, gate, guard, events }
    }

    fn plugin(&self) -> Arc<Script> {
        let path = self.work.join("p.ts");
        std::fs::write(&path, PLUGIN).unwrap();
        let host = Host::new(HostOptions {
            workspace: Arc::clone(&self.workspace),
            environment: BTreeMap::new(),
            withheld: Vec::new(),
            passed: Vec::new(),
            sandbox: None,
            own_folders: Vec::new(),
            client: None,
        });
        Arc::new(Script::new(&path, Kind::Plugin, host))
    }

    async fn question(&mut self) -> u64 {
        loop {
            if let Some(Event::Question { id, .. }) = self.events.recv().await {
                return id;
            }
        }
    }

    /// Leave to write a file.
    async fn allowed(&mut self, name: &str) -> Permit {
        let (guard, path) = (Arc::clone(&self.guard), self.work.join(name));
        let access = Access::Write { path, diff: String::new() };
        let plan = Plan::new(format!("write {name}"), vec![access]);
        let asked = tokio::spawn(async move { guard.ask(plan).await });
        let id = self.question().await;
        self.gate.questions().answer(id, Answer::Once).unwrap();
        asked.await.unwrap().unwrap()
    }

    /// What is noted of a command that writes a file.
    async fn command(&self, name: &str) -> Vec<PathBuf> {
        let reach = Reach { what: "bash".to_owned(), anything: true, ..Reach::default() };
        let (ticket, _) = self.keeper.before(reach).await;
        std::fs::write(self.work.join(name), "command").unwrap();
        let changed = self.keeper.after(ticket, false).await.unwrap_or_default();
        changed.changes.into_iter().map(|change| change.path).collect()
    }

    /// What is to be told beside calls, once there are so many.
    async fn aside(&self, count: usize) -> Vec<Changed> {
        let mut told = Vec::new();
        while told.len() < count {
            told.extend(self.keeper.take_aside());
            tokio::task::yield_now().await;
        }
        told
    }
}

#[tokio::test]
async fn a_question_that_was_cut_off_does_not_hide_what_commands_do_to_the_file() {
    let mut rig = Rig::new();
    let script = rig.plugin();
    let guard = Arc::clone(&rig.guard) as Arc<dyn Guard>;
    let hook = || {
        let (script, guard) = (Arc::clone(&script), Some(Arc::clone(&guard)));
        tokio::spawn(async move {
            let limit = Limit::Own(Duration::from_secs(30));
            script.hook("chat.message", &json!({}), &json!({}), guard, limit).await
        })
    };
    let first = hook();
    rig.question().await;
    first.abort();
    first.await.unwrap_err();
    let second = hook();
    let id = rig.question().await;
    rig.gate.questions().answer(id, Answer::Once).unwrap();
    second.await.unwrap().unwrap();
    assert_eq!(std::fs::read_to_string(rig.work.join("p.txt")).unwrap(), "plugin");
    assert_eq!(rig.command("p.txt").await, [rig.work.join("p.txt")]);
}

#[tokio::test]
async fn each_write_is_noted_when_it_ends_itself_and_when_it_is_cut_off() {
    let mut rig = Rig::new();
    let (one, other) = (rig.allowed("one.txt").await, rig.allowed("other.txt").await);
    std::fs::write(rig.work.join("one.txt"), "plugin").unwrap();
    drop(one);
    // Two intents, and what became of one.
    let told = rig.aside(3).await;
    let ended: Vec<_> = told.iter().filter(|c| c.changes[0].after.is_some()).collect();
    assert_eq!(ended.len(), 1);
    assert_eq!(ended[0].changes[0].path, rig.work.join("one.txt"));
    assert_eq!(rig.command("one.txt").await, [rig.work.join("one.txt")]);
    assert!(rig.command("other.txt").await.is_empty(), "its writer is not done with it");
    drop(other);
    rig.aside(1).await;
    std::fs::remove_file(rig.work.join("other.txt")).unwrap();
    assert_eq!(rig.command("other.txt").await, [rig.work.join("other.txt")]);
}
