//! What a command leaves behind on purpose: it has left its session and forgotten its environment, and
//! changes what is protected when nobody looks any more.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use toolwright_proc::sandbox::{Fence, Sandbox, available};
use toolwright_proc::{Ended, Spec, put_back_late};

/// Far more than anything here takes.
const PATIENCE: Duration = Duration::from_secs(30);

async fn run(sandbox: &Sandbox, work: &Path, script: &str) {
    let spec = Spec::new("/bin/sh", work).arg("-c").arg(script);
    let mut child = spec.fenced(Arc::new(sandbox.clone())).spawn().unwrap();
    assert_eq!(child.wait().await, Ended::Exit(0));
    assert!(child.put_back().is_empty(), "{:?}", child.put_back());
}

/// Somebody reads it, or will.
async fn say(pipe: &Path) {
    let pipe = pipe.to_owned();
    tokio::task::spawn_blocking(move || fs::write(pipe, "go\n").unwrap()).await.unwrap();
}

#[tokio::test]
async fn what_is_changed_by_something_left_behind_is_put_back_when_that_has_ended() {
    for layer in available() {
        let folder = tempfile::tempdir().unwrap();
        let work = fs::canonicalize(folder.path()).unwrap();
        let protected = work.join("toolwright.json");
        let read_only = vec![protected.clone()];
        let fence = Fence { writable: vec![work.clone()], read_only, ..Fence::default() };
        let sandbox = Sandbox::new(layer.clone(), fence);
        let stray = "read x < go; echo evil > toolwright.json; echo > made; read x < go";
        let script = format!(
            "mkfifo go && {{ setsid env -i /bin/sh -c '{stray}' > /dev/null 2>&1 < /dev/null & }}"
        );
        run(&sandbox, &work, &script).await;
        say(&work.join("go")).await;
        let until = Instant::now() + PATIENCE;
        while !work.join("made").exists() {
            assert!(Instant::now() < until, "{layer}: it did not go on");
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        // Another command in between remembers what is wrong already.
        run(&sandbox, &work, "true").await;
        say(&work.join("go")).await;
        while protected.exists() {
            assert!(Instant::now() < until, "{layer}: it stays");
            // Whoever ends next looks around.
            run(&sandbox, &work, "true").await;
        }
        assert_eq!(put_back_late().restored, [protected], "{layer}");
    }
}
