//! The parts that can be looked at without starting anything. The rest is in `tests/escapes.rs`.

use std::fs;

use super::*;

struct Place {
    _folder: tempfile::TempDir,
    root: PathBuf,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(folder.path()).unwrap();
        for name in ["work/.git/hooks", "outside", "home/.ssh"] {
            fs::create_dir_all(root.join(name)).unwrap();
        }
        fs::write(root.join("home/.netrc"), "").unwrap();
        fs::write(root.join("outside/file"), "").unwrap();
        Self { _folder: folder, root }
    }

    fn fence(&self) -> Fence {
        Fence {
            writable: vec![self.root.join("work")],
            read_only: vec![self.root.join("work/.git/hooks"), self.root.join("work/new.json")],
            unreadable: vec![self.root.join("home/.ssh"), self.root.join("home/.netrc")],
            network: Network::Off,
        }
    }

    fn sandbox(&self) -> Sandbox {
        Sandbox::new(Layer::Landlock(7), self.fence())
    }
}

fn bubblewrap_options() -> Bubblewrap {
    Bubblewrap { program: PathBuf::from("/usr/bin/bwrap"), is_setuid: false, closes_users: true }
}

#[test]
fn bubblewrap_is_told_the_fence_from_the_outside_in() {
    let place = Place::new();
    let socket = place.root.join("work/socket");
    let covered = vec![place.root.join("work/.git/hooks")];
    let fence = Fence { read_only: covered, ..place.fence() };
    let mounts = bubblewrap::mounts(&fence, &[socket]);
    let words = bubblewrap::arguments(&fence, &bubblewrap_options(), &mounts);
    let text = words.join(" ".as_ref()).into_string().unwrap();
    let text = text.replace(place.root.to_str().unwrap(), "R");
    let wanted = "--ro-bind / / --dev /dev --proc /proc --bind R/work R/work \
        --perms 0000 --tmpfs R/home/.ssh --remount-ro R/home/.ssh \
        --bind R/work/.git R/work/.git --ro-bind /dev/null R/home/.netrc \
        --ro-bind /dev/null R/work/socket --ro-bind R/work/.git/hooks R/work/.git/hooks";
    let words = |text: &str| {
        // Mounts of one depth may stand in any order; what there is in `/proc` is the machine's.
        let mut all: Vec<String> = text.split(" --").map(str::to_owned).collect();
        all.retain(|words| !words.starts_with("ro-bind /proc/"));
        all.sort();
        all
    };
    let (front, mounts) = text.split_once("--ro-bind / /").unwrap();
    assert_eq!(words(&format!("--ro-bind / /{mounts}")), words(wanted));
    for flag in ["--unshare-pid", "--unshare-net", "--cap-drop ALL"] {
        assert!(front.contains(flag), "{front}");
    }
    let at = |part: &str| text.find(part).unwrap();
    assert!(at("--bind R/work R/work") < at("--bind R/work/.git R/work/.git"));
    assert!(at("--bind R/work/.git R/work/.git") < at("--ro-bind R/work/.git/hooks"));
    let open = Fence { network: Network::On, ..place.fence() };
    let words = bubblewrap::arguments(&open, &bubblewrap_options(), &[]);
    assert!(!words.contains(&"--unshare-net".into()));
}

#[test]
fn what_the_fence_forbids_is_known_from_where_it_is_and_not_from_words_alone() {
    let place = Place::new();
    let (sandbox, work) = (place.sandbox(), place.root.join("work"));
    let root = place.root.display();
    let stopped = |text: &str| sandbox.stopped(&work, text);
    let outside = Some(Stopped::Write(place.root.join("outside/file")));
    for text in [
        format!("bash: line 1: {root}/outside/file: Permission denied"),
        "sh: 1: cannot create ../outside/file: Read-only file system".to_owned(),
        format!("touch: cannot touch '{root}/outside/file': Read-only file system"),
        format!("PermissionError: [Errno 13] Permission denied: '{root}/outside/file'"),
        format!("Error: EACCES: permission denied, open '{root}/outside/file'\nmore\nlines"),
        format!("failed to write `{root}/outside/file`: Read-only file system (os error 30)"),
    ] {
        assert_eq!(stopped(&text), outside, "{text}");
    }
    let hooks = Some(Stopped::Write(work.join(".git/hooks/pre-commit")));
    assert_eq!(stopped(".git/hooks/pre-commit: Device or resource busy"), hooks);
    let key = Some(Stopped::Read(place.root.join("home/.ssh/id")));
    assert_eq!(stopped(&format!("cat: {root}/home/.ssh/id: Permission denied")), key);
    for text in [
        // Its own modes, its own mistakes.
        "bash: ./run.sh: Permission denied",
        "Permission denied (publickey).",
        "make: *** [Makefile:3: all] Error 1",
        "/proc/1/environ: Permission denied",
        "test permission_denied ... FAILED",
    ] {
        assert_eq!(stopped(text), None, "{text}");
    }
    assert_eq!(stopped("curl: (6) Could not resolve host: crates.io"), Some(Stopped::Network));
    let open = Sandbox { fence: Fence { network: Network::On, ..place.fence() }, ..sandbox };
    assert_eq!(open.stopped(&work, "curl: (6) Could not resolve host: crates.io"), None);
}

#[test]
fn named_hosts_are_no_hosts_where_they_cannot_be_told_from_others() {
    let place = Place::new();
    let hosts = Network::Hosts(vec!["crates.io".to_owned()]);
    let fence = Fence { network: hosts, ..place.fence() };
    let sandbox = Sandbox::new(Layer::Landlock(7), fence);
    assert_eq!(sandbox.network(), Network::Off);
}
