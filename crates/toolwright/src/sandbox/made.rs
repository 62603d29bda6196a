//! Repositories that a command made: what they make git run would run outside the fence, with the next
//! `git status` of a person. After each command they are looked at, and what names a program is moved aside.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use toolwright_config::print_of;
use toolwright_session::held::Held;
use toolwright_tool::programs_named;
use toolwright_tools::Ran;

use super::git::{self, Place};

/// As for all that a command must not have made.
const ASIDE: &str = "stopped-by-sandbox";

/// Names that are tried before one that nobody can have taken.
const ASIDE_TRIES: usize = 20;

/// Looks at what is new in a work tree.
#[derive(Debug)]
pub(super) struct Look {
    worktree: PathBuf,
    /// What no command inside can change.
    protected: Vec<PathBuf>,
    /// What was there before, and what commands outside have made, which a person agreed to; with what it held.
    agreed: Mutex<BTreeMap<PathBuf, String>>,
}

impl Look {
    /// What is there by now is somebody's own, protected or not.
    pub(super) fn new(worktree: &Path, protected: Vec<PathBuf>) -> Self {
        let look = Self { worktree: worktree.to_owned(), protected, agreed: Mutex::default() };
        look.after(Ran::Outside);
        look
    }

    /// Gives what there is to say to the model.
    pub(super) fn after(&self, ran: Ran) -> String {
        let mut agreed = self.agreed.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut moved, mut left) = (Vec::new(), Vec::new());
        for path in self.named() {
            let print = print_all(&path);
            if ran == Ran::Outside {
                agreed.insert(path, print);
            } else if agreed.get(&path) != Some(&print) {
                let shown = path.display().to_string();
                match aside(&path) {
                    Ok(()) => moved.push(shown),
                    Err(problem) => left.push(format!("{shown} ({problem})")),
                }
            }
        }
        let mut said = String::new();
        if !moved.is_empty() {
            said += &format!(
                "\n[The sandbox does not let commands make repositories that name programs for git to \
                 run: these lie beside their places as *.{ASIDE}: {}]",
                moved.join(", ")
            );
        }
        if !left.is_empty() {
            said += &format!(
                "\n[These make git run programs outside the sandbox and could NOT be moved aside; say so \
                 to the person, who must not use git here before they are gone: {}]",
                left.join(", ")
            );
        }
        said
    }

    /// What names a program in repositories that are new.
    fn named(&self) -> Vec<PathBuf> {
        let mut found = Vec::new();
        for place in git::inside(&self.worktree) {
            let folder = match place {
                Place::Repository(folder) => folder,
                Place::WorkTree(root) => root.join(".git"),
            };
            if fs::symlink_metadata(&folder).is_ok_and(|data| data.is_dir()) {
                found.extend(self.named_in(&folder));
            } else if !self.is_known(&folder) && self.leads_to_programs(&folder) {
                found.push(folder);
            }
        }
        found.sort();
        found.dedup();
        found
    }

    fn is_known(&self, path: &Path) -> bool {
        self.protected.iter().any(|own| path.starts_with(own))
    }

    fn named_in(&self, folder: &Path) -> Vec<PathBuf> {
        if self.is_known(&folder.join("config")) {
            return Vec::new();
        }
        // One that has its settings elsewhere is no repository of its own.
        let elsewhere = fs::symlink_metadata(folder.join("commondir")).is_ok();
        let names = programs_named(folder).into_iter().chain(elsewhere.then_some("commondir"));
        names.map(|name| folder.join(name)).collect()
    }

    /// A `.git` that is a file or a link: to what is known, or to what is harmless there.
    fn leads_to_programs(&self, git: &Path) -> bool {
        let Some(folder) = git::git_folder(git) else { return false };
        let shared = git::shared_folder(&folder);
        let names = |folder: &PathBuf| {
            !self.is_known(&folder.join("config")) && !programs_named(folder).is_empty()
        };
        [Some(folder), shared].iter().flatten().any(names)
    }
}

/// What a file or a folder holds, in short.
fn print_all(path: &Path) -> String {
    let one = |path: &Path| {
        let to = fs::read_link(path).ok();
        format!("{:?} {to:?}", print_of(path))
    };
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    let mut all: Vec<String> =
        entries.map(|entry| format!("{:?} {}", entry.file_name(), one(&entry.path()))).collect();
    all.sort();
    format!("{} {}", one(path), all.join("\n"))
}

/// Moves something to a name beside it that means nothing to git. The folder is held: a command that still
/// runs may put a link in its place.
fn aside(path: &Path) -> io::Result<()> {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else { return Ok(()) };
    let held = Held::open(folder)?;
    let is_free = |name: &OsStr| fs::symlink_metadata(held.join(name)).is_err();
    let unique = std::time::UNIX_EPOCH.elapsed().unwrap_or_default().as_nanos();
    let numbers = (1..ASIDE_TRIES).map(|number| format!("-{number}"));
    let mut endings = std::iter::once(String::new()).chain(numbers).chain([format!("-{unique}")]);
    let to = endings.find_map(|ending| {
        let mut to = name.to_owned();
        to.push(format!(".{ASIDE}{ending}"));
        is_free(&to).then_some(to)
    });
    let to = to.ok_or(io::ErrorKind::AlreadyExists)?;
    let moved = fs::rename(held.join(name), held.join(&to));
    if moved.as_ref().is_err_and(|e| e.kind() == io::ErrorKind::PermissionDenied) {
        // The command may have closed the folder for this.
        fs::set_permissions(held.path(), fs::Permissions::from_mode(0o755))?;
        return fs::rename(held.join(name), held.join(&to));
    }
    moved
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVIL: &str = "[core]\n\tfsmonitor = ./evil\n";

    struct Work {
        _folder: tempfile::TempDir,
        root: PathBuf,
    }

    impl Work {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let root = fs::canonicalize(folder.path()).unwrap();
            let work = Self { _folder: folder, root };
            work.make(".git/config", EVIL);
            work
        }

        fn make(&self, name: &str, text: &str) {
            let path = self.root.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }

        fn has(&self, name: &str) -> bool {
            fs::symlink_metadata(self.root.join(name)).is_ok()
        }

        fn look(&self) -> Look {
            Look::new(&self.root, vec![self.root.join(".git/config"), self.root.join(".git/hooks")])
        }
    }

    #[test]
    fn what_was_there_before_and_what_names_nothing_stays() {
        let work = Work::new();
        work.make("sub/.git/config", "[core]\n\tbare = false\n");
        work.make("sub/.git/hooks/pre-commit.sample", "");
        work.make(
            "tree/.git",
            &format!("gitdir: {}", work.root.join(".git/worktrees/t").display()),
        );
        work.make(".git/worktrees/t/commondir", "../..");
        assert_eq!(work.look().after(Ran::InSandbox), "");
        assert!(work.has(".git/config") && work.has("sub/.git/config") && work.has("tree/.git"));
    }

    #[test]
    fn settings_hooks_and_ways_to_them_are_moved_aside_and_told() {
        let work = Work::new();
        let look = work.look();
        work.make("sub/.git/config", EVIL);
        work.make("sub/.git/config.stopped-by-sandbox", "taken");
        work.make("sub/.git/hooks/pre-commit", "");
        work.make("led/.git", "gitdir: ../evil.git");
        work.make("evil.git/HEAD", "");
        work.make("evil.git/objects/x", "");
        work.make("evil.git/config", EVIL);
        let said = look.after(Ran::InSandbox);
        for gone in ["sub/.git/config", "sub/.git/hooks", "led/.git", "evil.git/config"] {
            assert!(!work.has(gone), "{gone}");
            assert!(said.contains(gone), "{said}");
        }
        assert!(work.has("sub/.git/config.stopped-by-sandbox-1") && work.has("sub/.git"));
        assert!(work.has(".git/config"));
        assert_eq!(look.after(Ran::InSandbox), "");
    }

    #[test]
    fn what_a_command_outside_made_stays_as_it_was_then() {
        let work = Work::new();
        let look = work.look();
        work.make("clone/.git/config", EVIL);
        assert_eq!(look.after(Ran::Outside), "");
        assert_eq!(look.after(Ran::InSandbox), "");
        assert!(work.has("clone/.git/config"));
        work.make("clone/.git/config", &EVIL.replace("evil", "other"));
        assert!(look.after(Ran::InSandbox).contains("clone/.git/config"));
    }
}
