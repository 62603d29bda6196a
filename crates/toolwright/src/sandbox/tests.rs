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
        let workspace = Workspace::new(&self.root.join(work)).unwrap();
        fence_of(&settings.sandbox, &self.paths(), &workspace, Vec::new())
    }

    fn paths(&self) -> Paths {
        let home = self.root.join("home");
        Paths {
            config: home.join(".config"),
            data: home.join(".local/share/toolwright"),
            managed: self.root.join("etc"),
            home,
        }
    }

    fn is_wide(&self, work: &str, settings: &str) -> bool {
        let settings: Settings = serde_json::from_str(settings).unwrap();
        let workspace =
            Workspace::new(&self.root.join(work)).unwrap().at_home(self.root.join("home"));
        is_wide(&settings.sandbox, &self.paths(), &workspace)
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
fn home_and_what_is_around_it_is_too_wide_to_be_a_fence() {
    let place = Place::new();
    assert!(place.is_wide("home", "{}"));
    assert!(place.is_wide("", "{}"));
    assert!(place.is_wide("home/project", r#"{"sandbox": {"writable": ["~/"]}}"#));
    assert!(!place.is_wide("home/project", r#"{"sandbox": {"writable": ["~/more"]}}"#));
    assert!(!place.is_wide("home/project/sub", "{}"));
}

#[test]
fn protected_names_that_are_links_are_protected_where_they_lead_and_where_they_are() {
    use std::os::unix::fs::symlink;
    let place = Place::new();
    let at = |name: &str| place.root.join("home").join(name);
    for folder in ["project/oc", "project/dotclaude", "project/githooks", "project/tw", ".config"] {
        fs::create_dir_all(at(folder)).unwrap();
    }
    fs::write(at("project/oc.json"), "{}").unwrap();
    fs::remove_dir(at("project/.git/hooks")).unwrap();
    symlink("oc", at("project/.opencode")).unwrap();
    symlink("oc.json", at("project/opencode.json")).unwrap();
    symlink("dotclaude", at("project/.claude")).unwrap();
    symlink("../githooks", at("project/.git/hooks")).unwrap();
    symlink("../project/tw", at(".config/toolwright")).unwrap();
    symlink("project/bashrc", at(".bashrc")).unwrap();
    // A link to everything closes nothing but itself.
    symlink(".", at("project/.toolwright")).unwrap();
    let fence = place.fence("home/project", "{}");
    for name in [
        ".opencode",
        "oc",
        "opencode.json",
        "oc.json",
        ".claude",
        "dotclaude/settings.json",
        ".git/hooks",
        "githooks",
        "tw",
        "bashrc",
        ".toolwright",
    ] {
        let path = at("project").join(name);
        assert!(fence.read_only.contains(&path), "{name}: {:?}", fence.read_only);
    }
    assert!(fence.allows_write(&at("project/main.rs")));
    assert!(fence.allows_write(&at("project/dotclaude/notes.md")));
}

#[test]
fn links_inside_of_what_is_protected_protect_what_they_lead_to() {
    use std::os::unix::fs::symlink;
    let place = Place::new();
    let at = |name: &str| place.root.join("home").join(name);
    fs::create_dir_all(at(".config/toolwright")).unwrap();
    symlink(at("project/tw.json"), at(".config/toolwright/toolwright.json")).unwrap();
    symlink("../../scripts/check", at("project/.git/hooks/pre-commit")).unwrap();
    let fence = place.fence("home/project", "{}");
    assert!(!fence.allows_write(&at("project/tw.json")));
    assert!(!fence.allows_write(&at("project/scripts/check")));
    assert!(fence.allows_write(&at("project/scripts/other")));
}
