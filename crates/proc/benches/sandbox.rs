//! What a sandbox adds to starting a command and waiting for it, for each layer that works here.
//! Run with `cargo bench -p toolwright-proc --bench sandbox`.
//!
//! The goals are 5 ms more with Landlock and 15 ms more with bubblewrap, on a machine that has nothing else
//! to do. Where it has, the best rounds tell more than the median.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use toolwright_proc::sandbox::{Fence, Network, Sandbox, available};
use toolwright_proc::{Ended, Spec};

const ROUNDS: usize = 200;

/// As large as a real one: key stores of a home folder, a repository with protected files.
fn fence(root: &Path) -> Fence {
    let home = std::env::var_os("HOME").map_or_else(|| PathBuf::from("/"), PathBuf::from);
    let work = root.join("work");
    let protected = [".git/hooks", ".git/config", "toolwright.json", ".toolwright", ".opencode"];
    let hidden = [".ssh", ".aws", ".gnupg", ".netrc", ".config/gh", ".mozilla", ".kube"];
    Fence {
        writable: vec![work.clone(), std::env::temp_dir(), home.join(".cargo/registry")],
        read_only: protected.map(|name| work.join(name)).into(),
        unreadable: hidden.map(|name| home.join(name)).into(),
        network: Network::Off,
    }
}

async fn once(work: &Path, sandbox: Option<&Arc<Sandbox>>) -> Duration {
    let start = Instant::now();
    let mut spec = Spec::new("/bin/sh", work).arg("-c").arg("true");
    if let Some(sandbox) = sandbox {
        spec = spec.fenced(Arc::clone(sandbox));
    }
    let mut child = spec.spawn().unwrap();
    assert_eq!(child.wait().await, Ended::Exit(0));
    start.elapsed()
}

/// The median and the twentieth part that went best, in milliseconds.
fn summary(mut times: Vec<Duration>) -> (f64, f64) {
    times.sort();
    let at = |place: usize| times[place].as_secs_f64() * 1000.0;
    (at(times.len() / 2), at(times.len() / 20))
}

fn main() {
    let folder = tempfile::tempdir().unwrap();
    let root = std::fs::canonicalize(folder.path()).unwrap();
    let work = root.join("work");
    std::fs::create_dir_all(work.join(".git/hooks")).unwrap();
    std::fs::write(work.join(".git/config"), "[core]\n").unwrap();
    for number in 0..14 {
        let hook = work.join(format!(".git/hooks/hook-{number}.sample"));
        std::fs::write(hook, "#!/bin/sh\n".repeat(200)).unwrap();
    }
    let start = Instant::now();
    let layers = available();
    println!("trying the layers: {:.1} ms", start.elapsed().as_secs_f64() * 1000.0);
    let fence = fence(&root);
    let sandboxes: Vec<_> = layers
        .iter()
        .map(|layer| Arc::new(Sandbox { layer: layer.clone(), fence: fence.clone() }))
        .collect();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut bare = Vec::new();
    let mut fenced = vec![Vec::new(); sandboxes.len()];
    // In turns, so that whatever else the machine does falls on all.
    for round in 0..ROUNDS + 10 {
        let time = runtime.block_on(once(&work, None));
        let times: Vec<_> =
            sandboxes.iter().map(|sandbox| runtime.block_on(once(&work, Some(sandbox)))).collect();
        if round >= 10 {
            bare.push(time);
            times.into_iter().zip(&mut fenced).for_each(|(time, all)| all.push(time));
        }
    }
    let (bare, best_bare) = summary(bare);
    println!("bare: {bare:.2} ms, at best {best_bare:.2} ms");
    for (sandbox, times) in sandboxes.iter().zip(fenced) {
        let (time, best) = summary(times);
        let (more, best_more) = (time - bare, best - best_bare);
        let ratio = time / bare;
        println!(
            "{}: {time:.2} ms, {more:.2} ms more ({ratio:.1} times), at best {best_more:.2} ms more",
            sandbox.layer
        );
    }
}
