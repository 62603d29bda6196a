use std::fs;

use super::*;

fn look(root: &Path) -> (Vec<String>, Vec<String>) {
    let found = scan(root, &[root.join("data")], &AtomicBool::new(false)).unwrap();
    let name = |path: &PathBuf| path.strip_prefix(root).unwrap().display().to_string();
    let mut seen: Vec<String> = found.entries.keys().map(name).collect();
    seen.sort();
    (seen, found.ignored.iter().map(name).collect())
}

fn write(root: &Path, name: &str, text: &str) {
    let path = root.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

#[test]
fn ignore_files_count_as_git_reads_them_with_and_without_a_repository() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    write(root, ".gitignore", "*.o\n!keep.o\n/top\nout/\nnested/*.txt\n");
    for name in ["a.o", "keep.o", "top", "x/top", "out/deep/f", "x/out", "nested/a.txt", "x/b.txt"]
    {
        write(root, name, "");
    }
    write(root, "x/.gitignore", "!*.o\nb.txt\n");
    write(root, "x/c.o", "");
    write(root, "data/ours", "");
    fs::create_dir(root.join("empty")).unwrap();
    let (seen, ignored) = look(root);
    let expected =
        [".gitignore", "empty", "keep.o", "nested", "x", "x/.gitignore", "x/c.o", "x/out", "x/top"];
    assert_eq!(seen, expected);
    assert_eq!(ignored, ["a.o", "nested/a.txt", "out", "top", "x/b.txt"]);
}

#[test]
fn a_repository_inside_has_its_own_rules_and_its_state_is_not_looked_at() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    write(root, ".gitignore", "*.log\n");
    for inner in ["", "lib"] {
        write(root, format!("{inner}/.git/HEAD").trim_start_matches('/'), "ref: refs/heads/main\n");
        write(root, format!("{inner}/.git/info/exclude").trim_start_matches('/'), "private\n");
    }
    for name in ["a.log", "private", "lib/a.log", "lib/private", "lib/src"] {
        write(root, name, "");
    }
    // A submodule: its state is elsewhere, and a file says where.
    write(root, ".git/modules/sub/HEAD", "ref: refs/heads/main\n");
    write(root, "sub/.git", "gitdir: ../.git/modules/sub\n");
    let found = scan(root, &[], &AtomicBool::new(false)).unwrap();
    let roots: Vec<&Path> =
        found.repositories.iter().map(|r| r.root.strip_prefix(root).unwrap()).collect();
    assert_eq!(roots.len(), 3, "{roots:?}");
    let (seen, ignored) = look(root);
    assert_eq!(seen, [".gitignore", "lib", "lib/a.log", "lib/src", "sub", "sub/.git"]);
    assert_eq!(ignored, ["a.log", "lib/private", "private"]);
}

#[test]
fn a_look_can_be_stopped() {
    let folder = tempfile::tempdir().unwrap();
    let stopped = scan(folder.path(), &[], &AtomicBool::new(true));
    assert!(matches!(stopped, Err(ScanError::Stopped)));
}
