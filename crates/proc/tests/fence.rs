//! What a fence is made of stays what it was: the machine's own switches, the program that holds it, and the
//! folders that it leaves open. Each way is tried with a shell, behind every layer that this machine has.

#![cfg(target_os = "linux")]
#![allow(
    unsafe_code,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout
)]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::io::AsyncReadExt;
use toolwright_proc::sandbox::{Fence, Sandbox, available};
use toolwright_proc::{Ended, Spec};

struct Place {
    _folder: tempfile::TempDir,
    root: PathBuf,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(folder.path()).unwrap();
        for name in ["work/deep/inner", "outside/deep/inner"] {
            fs::create_dir_all(root.join(name)).unwrap();
        }
        Self { _folder: folder, root }
    }

    fn fence(&self) -> Fence {
        Fence { writable: vec![self.root.join("work")], ..Fence::default() }
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.root.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// How it ended and what it said; the words of the error where it was not started.
    async fn run(&self, sandbox: &Sandbox, script: &str) -> Result<(Ended, String), String> {
        run_in(&self.root.join("work"), sandbox, script).await
    }
}

async fn run_in(folder: &Path, sandbox: &Sandbox, script: &str) -> Result<(Ended, String), String> {
    let spec = Spec::new("/bin/sh", folder).arg("-c").arg(script);
    let spec = spec.fenced(Arc::new(sandbox.clone()));
    let mut child = spec.spawn().map_err(|error| error.to_string())?;
    let mut text = String::new();
    child.output().unwrap().read_to_string(&mut text).await.unwrap();
    Ok((child.wait().await, text))
}

fn sandboxes(fence: &Fence) -> Vec<Sandbox> {
    available().iter().map(|layer| Sandbox::new(layer.clone(), fence.clone())).collect()
}

fn behind(name: &str, fence: &Fence) -> Option<Sandbox> {
    let found = sandboxes(fence).into_iter().find(|sandbox| sandbox.layer.name() == name);
    if found.is_none() {
        println!("{name} does not work here: nothing is proved");
    }
    found
}

/// Whoever is root writes these without any power: what they say is done outside.
#[tokio::test]
async fn the_machines_own_switches_cannot_be_written() {
    let place = Place::new();
    for sandbox in sandboxes(&place.fence()) {
        // Opened for writing, and nothing written: should it work, nothing changes.
        let script = "for f in sys/kernel/core_pattern sys/kernel/modprobe sysrq-trigger \
            irq/default_smp_affinity; do [ ! -e /proc/$f ] || (: >> /proc/$f) 2> /dev/null && \
            [ -e /proc/$f ] && echo open $f; done; true";
        let (ended, text) = place.run(&sandbox, script).await.unwrap();
        assert_eq!((ended, text.as_str()), (Ended::Exit(0), ""), "{}", sandbox.layer);
    }
}

/// Bare, a shell would write through the link. The folder that is open is the one that was open.
#[tokio::test]
async fn a_folder_that_became_another_is_not_opened() {
    let layers = available().len();
    for index in 0..layers {
        let place = Place::new();
        let sandbox = sandboxes(&place.fence()).swap_remove(index);
        place.run(&sandbox, "echo x > before").await.unwrap();
        let (work, moved) = (place.root.join("work"), place.root.join("moved"));
        fs::rename(&work, &moved).unwrap();
        std::os::unix::fs::symlink(place.root.join("outside"), &work).unwrap();
        let said = place.run(&sandbox, "echo evil > evil").await.unwrap_err();
        assert!(said.contains("is not what it was when the sandbox was set up"), "{said}");
        // Another folder of the same name is another folder too.
        fs::remove_file(&work).unwrap();
        fs::create_dir(&work).unwrap();
        assert!(place.run(&sandbox, "echo evil > evil").await.is_err());
        assert!(!place.root.join("outside/evil").exists() && !work.join("evil").exists());
        // Put back, it is the one that is meant.
        fs::remove_dir(&work).unwrap();
        fs::rename(&moved, &work).unwrap();
        let (ended, _) = place.run(&sandbox, "echo x > after").await.unwrap();
        assert_eq!(ended, Ended::Exit(0), "{}", sandbox.layer);
    }
}

/// A command may rename what lies in an open folder, also on the way to another open folder in it.
#[tokio::test]
async fn a_folder_inside_an_open_one_is_no_way_out() {
    let layers = available().len();
    for index in 0..layers {
        let place = Place::new();
        let inner = place.root.join("work/deep/inner");
        let fence = Fence { writable: vec![place.root.join("work"), inner], ..Fence::default() };
        let sandbox = sandboxes(&fence).swap_remove(index);
        let swap = "mv deep old && ln -s ../outside/deep deep && echo swapped";
        assert_eq!(place.run(&sandbox, swap).await.unwrap().1, "swapped\n", "{}", sandbox.layer);
        let evil = place.root.join("outside/deep/inner/evil");
        for script in ["echo x > deep/inner/evil", &format!("echo x > {}", evil.display())] {
            let (ended, _) = place.run(&sandbox, script).await.unwrap();
            assert_ne!(ended, Ended::Exit(0), "{script} behind {}", sandbox.layer);
        }
        assert!(!evil.exists());
    }
}

/// What leads to a protected file is mounted too: it must not be somebody else's folder.
#[tokio::test]
async fn a_link_on_the_way_to_a_protected_file_opens_nothing() {
    let layers = available().len();
    for index in 0..layers {
        let place = Place::new();
        place.write("outside/settings.json", "untouched");
        let read_only = vec![place.root.join("work/conf/settings.json")];
        let sandbox = sandboxes(&Fence { read_only, ..place.fence() }).swap_remove(index);
        std::os::unix::fs::symlink("../outside", place.root.join("work/conf")).unwrap();
        for script in ["echo x > conf/evil", "echo x > ../outside/evil"] {
            let (ended, _) = place.run(&sandbox, script).await.unwrap();
            assert_ne!(ended, Ended::Exit(0), "{script} behind {}", sandbox.layer);
            fs::remove_file(place.root.join("work/conf")).ok();
            std::os::unix::fs::symlink("../outside", place.root.join("work/conf")).unwrap();
        }
        assert!(!place.root.join("outside/evil").exists());
    }
}

#[tokio::test]
async fn what_is_unreadable_stays_so_where_everything_else_may_be_written() {
    let layers = available().len();
    for index in 0..layers {
        let place = Place::new();
        for name in ["work/secrets/a", "work/deep/key", "work/deep/near", "work/top"] {
            place.write(name, "TOPSECRET");
        }
        let unreadable = ["work/secrets", "work/deep/key"].map(|name| place.root.join(name)).into();
        let fence = Fence { unreadable, ..place.fence() };
        let sandbox = sandboxes(&fence).swap_remove(index);
        assert_eq!(sandbox.unheld(), Vec::<PathBuf>::new());
        let script = "cat secrets/a deep/key; cp -r secrets copy; ln secrets/a hard; cat hard copy/a; \
            mv secrets other; cat other/a; mv deep deeper; cat deeper/key; mv deep/key deep/inner/; \
            cat deep/inner/key; echo x > secrets/a; echo x > deep/key; rm -rf secrets; true";
        let (ended, text) = place.run(&sandbox, script).await.unwrap();
        assert_eq!(ended, Ended::Exit(0));
        assert!(!text.contains("TOPSECRET"), "{}: {text}", sandbox.layer);
        for name in ["work/secrets/a", "work/deep/key"] {
            assert_eq!(fs::read_to_string(place.root.join(name)).unwrap(), "TOPSECRET", "{name}");
        }
        // The next command finds it under no other name.
        let (_, text) = place.run(&sandbox, "grep -rs TOPSECRET . | grep -v near").await.unwrap();
        assert!(!text.contains("secrets") && !text.contains("key"), "{}: {text}", sandbox.layer);
        // What lies beside it is worked with as ever.
        let work = "echo x > top && echo x > deep/near && mkdir deep/inner/new && \
            echo x > deep/inner/new/file && mv deep/inner/new/file deep/inner/";
        let (ended, text) = place.run(&sandbox, work).await.unwrap();
        assert_eq!(ended, Ended::Exit(0), "{}: {text}", sandbox.layer);
    }
}

/// Rules about what is there say nothing of what comes: then the sandbox says that it cannot hold it.
#[tokio::test]
async fn what_landlock_cannot_keep_unreadable_is_said() {
    let place = Place::new();
    let secrets = place.root.join("work/secrets");
    let fence = Fence { unreadable: vec![secrets.clone()], ..place.fence() };
    let Some(sandbox) = behind("landlock", &fence) else { return };
    assert_eq!(sandbox.unheld(), std::slice::from_ref(&secrets));
    place.write("work/secrets/a", "");
    assert_eq!(sandbox.unheld(), Vec::<PathBuf>::new());
    for number in 0..2_100 {
        place.write(&format!("work/{number}"), "");
    }
    assert_eq!(sandbox.unheld(), [secrets]);
}

/// A list that cannot be read as text, a name that is no longer the one it was made under, a network of its
/// own: whoever listens there is reached in none of these ways.
#[tokio::test]
async fn sockets_of_other_programs_are_hidden_however_they_were_made() {
    use std::os::linux::net::SocketAddrExt;
    use std::os::unix::net::{SocketAddr, UnixListener};

    let place = Place::new();
    let Some(sandbox) = behind("bubblewrap", &place.fence()) else { return };
    let odd = format!("tw-{}-", std::process::id()).into_bytes();
    let odd = SocketAddr::from_abstract_name([odd, vec![0xff, 0xfe]].concat()).unwrap();
    let _odd = UnixListener::bind_addr(&odd).unwrap();
    let plain = place.root.join("outside/plain");
    let renamed = place.root.join("outside/renamed");
    let _plain = UnixListener::bind(&plain).unwrap();
    let _renamed = UnixListener::bind(place.root.join("outside/first")).unwrap();
    fs::rename(place.root.join("outside/first"), &renamed).unwrap();
    let stale = place.root.join("work/stale");
    drop(UnixListener::bind(&stale).unwrap());
    for path in [&plain, &renamed] {
        // Hidden, it is no socket any more.
        let script = format!("[ -e {0} ] && [ ! -S {0} ] && echo hidden", path.display());
        let (_, text) = place.run(&sandbox, &script).await.unwrap();
        assert_eq!(text, "hidden\n", "{}", path.display());
    }
    // A name that nobody listens at any more can be taken.
    let (ended, text) = place.run(&sandbox, "rm stale").await.unwrap();
    assert_eq!(ended, Ended::Exit(0), "{text}");
}

/// Its own terminal and no other, and nothing that programs of one user share.
#[tokio::test]
async fn landlock_leaves_terminals_and_shared_memory_of_others_alone() {
    let place = Place::new();
    let Some(sandbox) = behind("landlock", &place.fence()) else { return };
    // Somebody's terminal: it must exist for the time of the test.
    let theirs = unsafe { libc::posix_openpt(libc::O_RDWR | libc::O_NOCTTY | libc::O_CLOEXEC) };
    assert!(theirs >= 0);
    let mut name = [0u8; 64];
    let done = unsafe {
        libc::unlockpt(theirs) + libc::ptsname_r(theirs, name.as_mut_ptr().cast(), name.len())
    };
    assert_eq!(done, 0);
    let name: Vec<u8> = name.into_iter().take_while(|byte| *byte != 0).collect();
    let name = String::from_utf8(name).unwrap();
    let shared = format!("/dev/shm/tw-{}", std::process::id());
    let has_shared = fs::write(&shared, "theirs").is_ok();
    let script = format!(
        "(echo x > {name}) 2> /dev/null && echo wrote; (: < {name}) 2> /dev/null && echo opened; \
         cat {shared} 2> /dev/null; (echo x > {shared}) 2> /dev/null && echo shared; \
         tty; (echo own > \"$(tty)\") && (echo own > /dev/tty) && stty size"
    );
    let spec = Spec::new("/bin/sh", place.root.join("work")).arg("-c").arg(script);
    let spec = spec.terminal(toolwright_proc::TerminalSize { columns: 77, rows: 33 });
    let mut child = spec.fenced(Arc::new(sandbox)).spawn().unwrap();
    let mut output = child.output().unwrap();
    let mut text = Vec::new();
    // A terminal ends with an error, not with an end.
    while let Ok(count) = output.read_buf(&mut text).await
        && count > 0
    {}
    let ended = child.wait().await;
    unsafe { libc::close(theirs) };
    let kept = fs::read_to_string(&shared).unwrap_or_default();
    fs::remove_file(&shared).ok();
    let text = String::from_utf8(text).unwrap();
    let own: Vec<_> = text.lines().map(str::trim).collect();
    assert_eq!(ended, Ended::Exit(0), "{text}");
    assert!(own[0].starts_with("/dev/pts/") && own[1..] == ["own", "own", "33 77"], "{text}");
    assert!(!has_shared || kept == "theirs");
}
