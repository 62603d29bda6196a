//! What a person agreed to for longer than a run: read as a layer that turns *ask* into *allow* and
//! lifts nothing else.

use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use toolwright_config::{Paths, StateFile};
use toolwright_engine::Keeper;
use toolwright_permission::{Approval, Scope};

/// One of them, as it is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptApproval {
    /// By which it can be named.
    pub id: String,
    #[serde(flatten)]
    pub approval: Approval,
    /// The repository that it is for; everywhere without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<PathBuf>,
    /// When it was given, as seconds since 1970.
    pub time: u64,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct Store {
    version: u32,
    /// Never used twice: an id in somebody's notes must not come to mean something else.
    last_id: u64,
    approvals: Vec<KeptApproval>,
}

/// The store, as seen from one repository.
#[derive(Debug, Clone)]
pub struct Approvals {
    file: StateFile,
    worktree: PathBuf,
    home: String,
}

impl Approvals {
    pub fn new(paths: &Paths, worktree: &Path) -> Self {
        Self {
            file: StateFile::new(paths.data.join("approvals.json")),
            worktree: worktree.to_owned(),
            home: paths.home.display().to_string(),
        }
    }

    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// Those of all repositories.
    pub fn all(&self) -> io::Result<Vec<KeptApproval>> {
        Ok(self.file.read::<Store>()?.approvals)
    }

    /// Those that count here.
    pub fn here(&self) -> io::Result<Vec<KeptApproval>> {
        let mut found = self.all()?;
        found.retain(|kept| kept.project.as_ref().is_none_or(|project| *project == self.worktree));
        Ok(found)
    }

    /// Forgets those that `which` says; how many they were.
    pub fn forget(&self, which: impl Fn(&KeptApproval) -> bool) -> io::Result<usize> {
        self.file.change(|store: &mut Store| {
            let before = store.approvals.len();
            store.approvals.retain(|kept| !which(kept));
            before - store.approvals.len()
        })
    }
}

impl Keeper for Approvals {
    fn keep(&self, approvals: &[Approval]) -> Result<(), String> {
        let since = std::time::UNIX_EPOCH.elapsed().unwrap_or_default();
        let kept = self.file.change(|store: &mut Store| {
            store.version = 1;
            for approval in approvals {
                let project = (approval.scope == Scope::Project).then(|| self.worktree.clone());
                let same = |known: &KeptApproval| {
                    let of = |a: &Approval| (a.permission.clone(), a.pattern.clone(), a.exact);
                    known.project == project && of(&known.approval) == of(approval)
                };
                if store.approvals.iter().any(same) {
                    continue;
                }
                store.last_id += 1;
                store.approvals.push(KeptApproval {
                    id: format!("a{}", store.last_id),
                    approval: approval.clone(),
                    project,
                    time: since.as_secs(),
                });
            }
        });
        kept.map_err(|error| error.to_string())
    }

    fn home(&self) -> String {
        self.home.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(root: &Path) -> Paths {
        Paths {
            home: root.join("home"),
            config: root.join("config"),
            data: root.join("data"),
            managed: root.join("etc"),
        }
    }

    fn approval(pattern: &str, scope: Scope) -> Approval {
        let (permission, pattern) = ("bash".to_owned(), pattern.to_owned());
        let command = pattern.clone();
        Approval { permission, pattern, exact: true, scope, command }
    }

    #[test]
    fn an_approval_counts_in_its_project_or_everywhere_until_it_is_forgotten() {
        let root = tempfile::tempdir().unwrap();
        let paths = paths(root.path());
        let here = Approvals::new(&paths, Path::new("/a"));
        let there = Approvals::new(&paths, Path::new("/b"));
        here.keep(&[approval("make", Scope::Project), approval("ls", Scope::Everywhere)]).unwrap();
        here.keep(&[approval("make", Scope::Project)]).unwrap();
        let patterns = |store: &Approvals| -> Vec<String> {
            store.here().unwrap().into_iter().map(|kept| kept.approval.pattern).collect()
        };
        assert_eq!(patterns(&here), ["make", "ls"], "the same is kept once");
        assert_eq!(patterns(&there), ["ls"]);
        assert_eq!(there.forget(|kept| kept.id == "a1").unwrap(), 1);
        assert_eq!(patterns(&here), ["ls"]);
        here.keep(&[approval("make", Scope::Project)]).unwrap();
        assert_eq!(here.all().unwrap()[1].id, "a3", "an id is not used twice");
        use std::os::unix::fs::PermissionsExt;
        let mode = std::fs::metadata(here.path()).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn many_who_keep_at_once_lose_nothing() {
        let root = tempfile::tempdir().unwrap();
        let store = Approvals::new(&paths(root.path()), Path::new("/a"));
        std::thread::scope(|scope| {
            for n in 0..8 {
                let store = &store;
                scope.spawn(move || {
                    store.keep(&[approval(&format!("make {n}"), Scope::Everywhere)]).unwrap();
                });
            }
        });
        assert_eq!(store.all().unwrap().len(), 8);
    }

    #[test]
    fn a_broken_store_is_an_error_and_stays_as_it_is() {
        let root = tempfile::tempdir().unwrap();
        let store = Approvals::new(&paths(root.path()), Path::new("/a"));
        std::fs::create_dir_all(root.path().join("data")).unwrap();
        std::fs::write(store.path(), "[").unwrap();
        assert!(store.keep(&[approval("ls", Scope::Everywhere)]).is_err());
        assert_eq!(std::fs::read_to_string(store.path()).unwrap(), "[");
    }
}
