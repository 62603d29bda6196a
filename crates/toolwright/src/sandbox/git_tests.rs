use std::os::unix::fs::symlink;

use super::*;

struct Tree {
    _folder: tempfile::TempDir,
    root: PathBuf,
}

impl Tree {
    /// Folders end in a slash; the rest are files with their text.
    fn new(entries: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(folder.path()).unwrap();
        for (name, text) in entries {
            let path = root.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            match name.ends_with('/') {
                true => fs::create_dir_all(path).unwrap(),
                false => fs::write(path, text.replace("ROOT", root.to_str().unwrap())).unwrap(),
            }
        }
        Self { _folder: folder, root }
    }

    fn obeyed(&self, work: &str) -> Vec<String> {
        let found = obeyed(&self.root.join(work), &self.root.join("home"), &[]);
        let inside =
            |path: &PathBuf| Some(path.strip_prefix(&self.root).ok()?.display().to_string());
        found.iter().filter_map(inside).collect()
    }
}

fn has(found: &[String], wanted: &[&str]) {
    for name in wanted {
        assert!(found.iter().any(|path| path == name), "{name} is not among {found:?}");
    }
}

#[test]
fn a_linked_work_trees_file_and_its_repository_are_obeyed() {
    let tree = Tree::new(&[
        ("main/.git/HEAD", ""),
        ("main/.git/worktrees/w/HEAD", ""),
        ("main/.git/worktrees/w/commondir", "../..\n"),
        ("main/.git/worktrees/w/gitdir", "ROOT/w/.git\n"),
        ("w/.git", "gitdir: ROOT/main/.git/worktrees/w\n"),
    ]);
    let wanted =
        ["w/.git", "main/.git/config", "main/.git/hooks", "main/.git/worktrees/w/commondir"];
    has(&tree.obeyed("w"), &wanted);
    // Seen from the repository, its other work trees.
    has(&tree.obeyed("main"), &wanted);
}

#[test]
fn submodules_and_their_files_are_obeyed() {
    let tree = Tree::new(&[
        ("w/.git/modules/a/b/HEAD", ""),
        ("w/.git/modules/a/b/config", "[core]\n\tworktree = ../../../../sub\n"),
        ("w/.git/modules/a/b/modules/c/HEAD", ""),
        ("w/sub/.git", "gitdir: ../.git/modules/a/b\n"),
    ]);
    let found = tree.obeyed("w");
    has(&found, &["w/sub/.git", "w/.git/modules/a/b/config", "w/.git/modules/a/b/modules/c/hooks"]);
}

#[test]
fn a_repository_by_another_name_a_link_and_one_inside_are_obeyed() {
    let tree = Tree::new(&[
        ("w/.git", "gitdir: ./.bare\n"),
        ("w/.bare/HEAD", ""),
        ("w/.bare/objects/", ""),
        ("w/deep/er/.git/HEAD", ""),
        ("w/other.git/HEAD", ""),
        ("w/other.git/objects/", ""),
        ("linked/real/HEAD", ""),
    ]);
    symlink("real", tree.root.join("linked/.git")).unwrap();
    let found = tree.obeyed("w");
    has(&found, &["w/.git", "w/.bare/config", "w/deep/er/.git/config", "w/other.git/hooks"]);
    has(&tree.obeyed("linked"), &["linked/.git", "linked/real/config"]);
}

#[test]
fn what_settings_lead_to_is_obeyed() {
    let tree = Tree::new(&[
        (
            "w/.git/config",
            "[core]\n\thooksPath = .husky/_\n\tfsmonitor = \"./tools/watch.sh\" # quick\n\
             [include] path = ../shared\n[includeIf \"onbranch:x\"]\n\tpath = ~/more\n\
             [remote \"a\"]\n\turl = tools/watch.sh\n[filter \"x\"]\n\tclean = python3 \\\n tools/clean.py %f\n",
        ),
        ("w/shared", "[CORE]\n\tSSHCommand = sh tools/ssh.sh\n"),
        ("w/tools/watch.sh", ""),
        ("w/tools/clean.py", ""),
        ("w/tools/ssh.sh", ""),
        ("w/tools/harmless.sh", ""),
    ]);
    let found = tree.obeyed("w");
    let wanted = [
        "w/.husky",
        "w/.git/../shared",
        "home/more",
        "w/tools/watch.sh",
        "w/tools/clean.py",
        "w/tools/ssh.sh",
    ];
    has(&found, &wanted);
    assert!(!found.iter().any(|path| path.contains("harmless")), "{found:?}");
}

#[test]
fn circles_and_nonsense_come_to_an_end() {
    let tree = Tree::new(&[
        ("w/.git/config", "[include]\n\tpath = config\n[core\nx\n=\n[]\n\\"),
        ("w/.git/commondir", "."),
        ("w/.git/HEAD", ""),
        ("w/.git/worktrees/w/HEAD", ""),
        ("w/.git/worktrees/w/gitdir", "../../../.git"),
        ("w/.git/worktrees/w/commondir", "../.."),
    ]);
    has(&tree.obeyed("w"), &["w/.git/config"]);
}
