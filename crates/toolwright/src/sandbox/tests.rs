use std::fs;

use toolwright_config::Settings;

use super::*;

struct Place {
    _root: tempfile::TempDir,
    root: PathBuf,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(folder.path()).unwrap();
        for name in
            ["home/.cargo/registry", "home/project/.git/hooks", "home/project/sub", "home/more"]
        {
            fs::create_dir_all(root.join(name)).unwrap();
        }
        Self { _root: folder, root }
    }

    fn fence(&self, work: &str, settings: &str) -> Fence {
        let settings: Settings = serde_json::from_str(settings).unwrap();
        let home = self.root.join("home");
        let paths = Paths {
            config: home.join(".config"),
            data: home.join(".local/share/toolwright"),
            managed: self.root.join("etc"),
            home,
        };
        fence(&settings.sandbox, &paths, &Workspace::new(&self.root.join(work)).unwrap())
    }
}

/// Where the temporary folder holds the test itself, everything in it is writable.
fn without_temp(fence: &Fence) -> Vec<&PathBuf> {
    let temp = fs::canonicalize(std::env::temp_dir()).unwrap();
    fence.writable.iter().filter(|path| **path != temp).collect()
}

#[test]
fn a_folder_its_repository_and_caches_are_writable_and_what_decides_later_is_not() {
    let place = Place::new();
    let fence = place.fence("home/project/sub", "{}");
    let at = |name: &str| place.root.join("home").join(name);
    let wanted = [at(".cargo/registry"), at("project"), at("project/.git"), at("project/sub")];
    assert_eq!(without_temp(&fence), wanted.iter().collect::<Vec<_>>());
    for name in [
        "project/.git/hooks",
        "project/.git/config",
        "project/sub/toolwright.json",
        "project/.opencode",
        "project/sub/.toolwright",
    ] {
        assert!(fence.read_only.contains(&at(name)), "{name}");
        assert!(!fence.allows_write(&at(name)), "{name}");
    }
    assert!(fence.allows_write(&at("project/.git/index")));
    for name in [".ssh", ".aws", ".local/share/toolwright/auth.json"] {
        assert!(fence.unreadable.contains(&at(name)), "{name}");
    }
    assert_eq!(fence.network, Network::Off);
}

#[test]
fn settings_widen_and_tighten_it() {
    let place = Place::new();
    let settings = r#"{"sandbox": {"writable": ["~/more"], "readable": ["~/.aws"], "caches": false,
        "unreadable": ["secrets"], "network": ["crates.io"]}}"#;
    let fence = place.fence("home/project", settings);
    let at = |name: &str| place.root.join("home").join(name);
    let wanted = [at("more"), at("project"), at("project/.git")];
    assert_eq!(without_temp(&fence), wanted.iter().collect::<Vec<_>>());
    assert!(!fence.unreadable.contains(&at(".aws")));
    assert!(fence.unreadable.contains(&at("project/secrets")));
    assert_eq!(fence.network, Network::Hosts(vec!["crates.io".to_owned()]));
}

#[test]
fn in_the_home_folder_itself_start_up_files_stay_as_they_are() {
    let place = Place::new();
    let fence = place.fence("home", "{}");
    for name in [".bashrc", ".config/systemd", ".cargo/bin", ".local/share/toolwright"] {
        assert!(!fence.allows_write(&place.root.join("home").join(name)), "{name}");
    }
    assert!(fence.allows_write(&place.root.join("home/notes")));
}

#[test]
fn a_linked_worktree_brings_its_repository_and_a_false_link_does_not() {
    let place = Place::new();
    let git = place.root.join("home/project/.git");
    let linked = git.join("worktrees/w");
    let work = place.root.join("home/more");
    fs::create_dir_all(&linked).unwrap();
    fs::write(git.join("HEAD"), "ref: refs/heads/main").unwrap();
    fs::write(linked.join("commondir"), "../..\n").unwrap();
    fs::write(work.join(".git"), format!("gitdir: {}\n", linked.display())).unwrap();
    let fence = place.fence("home/more", "{}");
    assert!(!without_temp(&fence).contains(&&git), "the repository does not know of it");
    fs::write(linked.join("gitdir"), format!("{}\n", work.join(".git").display())).unwrap();
    let fence = place.fence("home/more", "{}");
    assert!(without_temp(&fence).contains(&&git));
    assert!(fence.read_only.contains(&git.join("hooks")));
}

#[test]
fn what_git_obeys_is_protected_in_submodules_and_further_work_trees_too() {
    let folder = tempfile::tempdir().unwrap();
    let git = folder.path().join(".git");
    for inner in ["modules/a/b", "modules/a/b/modules/c", "worktrees/w"] {
        std::fs::create_dir_all(git.join(inner)).unwrap();
        std::fs::write(git.join(inner).join("HEAD"), "").unwrap();
    }
    let mut found = Vec::new();
    add_inner_git(&git.join("modules"), 3, &mut found);
    add_inner_git(&git.join("worktrees"), 0, &mut found);
    found.sort();
    let expected = ["modules/a/b", "modules/a/b/modules/c", "worktrees/w"];
    assert_eq!(found, expected.map(|inner| git.join(inner)));
    assert!(GIT_SETTINGS.contains(&"commondir"));
}
