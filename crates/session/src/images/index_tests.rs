use std::process::Command;

use super::*;

fn git(root: &Path, arguments: &[&str]) -> String {
    let output = Command::new("git")
        .args(["-c", "user.name=T", "-c", "user.email=t@example.org"])
        .args(arguments)
        .current_dir(root)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn every_version_of_the_index_is_read_as_git_reads_it() {
    for (version, format) in [("2", "sha1"), ("3", "sha1"), ("4", "sha1"), ("4", "sha256")] {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        git(root, &["init", "-q", &format!("--object-format={format}")]);
        for number in 0..40 {
            let path = root.join(format!("folder{}/file{number}", number % 7));
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, format!("{number}")).unwrap();
        }
        fs::write(root.join("a\nb ü"), "odd").unwrap();
        git(root, &["add", "-A"]);
        git(root, &["update-index", "--index-version", version]);
        if version == "3" {
            git(root, &["update-index", "--skip-worktree", "folder0/file0"]);
        }
        let index = Index::read(&root.join(".git")).unwrap().unwrap();
        let said = git(root, &["ls-files", "-s", "-z"]);
        let theirs: Vec<String> = said.split_terminator('\0').map(str::to_owned).collect();
        let ours: Vec<String> = index
            .files
            .iter()
            .map(|f| format!("100644 {} 0\t{}", f.object, f.path.display()))
            .collect();
        assert_eq!(ours, theirs, "version {version}, {format}");
    }
}

#[test]
fn only_an_untouched_file_that_is_older_than_the_index_is_clean() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    git(root, &["init", "-q"]);
    fs::write(root.join("a"), "one").unwrap();
    git(root, &["add", "-A"]);
    let mut index = Index::read(&root.join(".git")).unwrap().unwrap();
    let facts = Facts::at(&root.join("a")).unwrap().unwrap();
    let tracked = index.files[0].clone();
    // Written in the same tick of the clock, it may have changed since.
    index.written = facts.mtime;
    assert!(!index.is_clean(&tracked, &facts));
    index.written = facts.ctime + 1;
    assert!(index.is_clean(&tracked, &facts));
    for other in [
        Facts { len: 4, ..facts },
        Facts { mtime: facts.mtime - 1, ..facts },
        Facts { ctime: facts.ctime - 1, ..facts },
        Facts { inode: facts.inode + 1, ..facts },
        Facts { kind: Kind::Link, ..facts },
    ] {
        assert!(!index.is_clean(&tracked, &other), "{other:?}");
    }
}

#[test]
fn garbage_is_no_index() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    git(root, &["init", "-q"]);
    fs::write(root.join("a"), "one").unwrap();
    git(root, &["add", "-A"]);
    let bytes = fs::read(root.join(".git/index")).unwrap();
    for cut in 0..bytes.len() - 20 {
        assert!(parse(&bytes[..cut], 20).is_none(), "cut at {cut}");
    }
    for at in 0..bytes.len() {
        let mut spoilt = bytes.clone();
        spoilt[at] ^= 0xff;
        // Whatever comes of it, it comes to an end.
        parse(&spoilt, 20);
        parse(&spoilt, 32);
    }
}
