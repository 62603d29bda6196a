//! What a sandbox adds to starting a command and waiting for it, for each layer that works here.
//! Run with `cargo bench -p toolwright-proc --bench sandbox`.
//!
//! The goals are 5 ms more with Landlock and 15 ms more with bubblewrap, on a machine that has nothing else
//! to do. Where it has, the least tells more than the median, and time on the processor more than both.
//! bubblewrap by itself, in the same run, says how much of it is not ours.

#![allow(
    unsafe_code,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout
)]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use toolwright_proc::sandbox::{Fence, Layer, Network, Sandbox, available};
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

/// The program of the layer by itself, around the same command and with nothing hidden or opened: what
/// remains of our time above this is our own.
async fn raw(program: &Path, work: &Path) -> Duration {
    let start = Instant::now();
    let spec = Spec::new(program, work).arg("--ro-bind").arg("/").arg("/");
    let mut child = spec.arg("/bin/sh").arg("-c").arg("true").spawn().unwrap();
    assert_eq!(child.wait().await, Ended::Exit(0));
    start.elapsed()
}

/// Time on processors that children took so far, in milliseconds: what others do on the machine counts
/// less in it.
fn processor_ms() -> f64 {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: it is as large as the call expects, and zeroes are a valid value of it.
    let usage = unsafe {
        libc::getrusage(libc::RUSAGE_CHILDREN, usage.as_mut_ptr());
        usage.assume_init()
    };
    let ms = |time: libc::timeval| time.tv_sec as f64 * 1000.0 + time.tv_usec as f64 / 1000.0;
    ms(usage.ru_utime) + ms(usage.ru_stime)
}

#[derive(Default)]
struct Times {
    wall: Vec<f64>,
    processor: f64,
}

impl Times {
    fn measure(&mut self, counts: bool, work: impl FnOnce() -> Duration) {
        let before = processor_ms();
        let time = work();
        if counts {
            self.wall.push(time.as_secs_f64() * 1000.0);
            self.processor += processor_ms() - before;
        }
    }

    /// The least, the median, and the processor's time for one, in milliseconds.
    fn summary(&mut self) -> (f64, f64, f64) {
        self.wall.sort_by(f64::total_cmp);
        let count = self.wall.len();
        (self.wall[0], self.wall[count / 2], self.processor / count as f64)
    }
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
    let sandboxes: Vec<_> =
        layers.iter().map(|layer| Arc::new(Sandbox::new(layer.clone(), fence.clone()))).collect();
    let program = layers.iter().find_map(|layer| match layer {
        Layer::Bubblewrap(found) => Some(found.program.clone()),
        _ => None,
    });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (mut bare, mut alone) = (Times::default(), Times::default());
    let mut fenced: Vec<Times> = sandboxes.iter().map(|_| Times::default()).collect();
    // In turns, so that whatever else the machine does falls on all.
    for round in 0..ROUNDS + 10 {
        let counts = round >= 10;
        bare.measure(counts, || runtime.block_on(once(&work, None)));
        if let Some(program) = &program {
            alone.measure(counts, || runtime.block_on(raw(program, &work)));
        }
        for (sandbox, times) in sandboxes.iter().zip(&mut fenced) {
            times.measure(counts, || runtime.block_on(once(&work, Some(sandbox))));
        }
    }
    println!("{:<22} {:>9} {:>9} {:>10} {:>9}", "", "least", "median", "processor", "more");
    let (least, ..) = bare.summary();
    let show = |name: &str, times: &mut Times| {
        let (best, median, processor) = times.summary();
        let (more, ratio) = (best - least, best / least);
        println!(
            "{name:<22} {best:>6.2} ms {median:>6.2} ms {processor:>7.2} ms {more:>6.2} ms ({ratio:.1} times bare)"
        );
        best
    };
    show("bare", &mut bare);
    let raw = program.is_some().then(|| show("bwrap by itself", &mut alone));
    for (sandbox, times) in sandboxes.iter().zip(&mut fenced) {
        let best = show(&sandbox.layer.to_string(), times);
        if let Some(raw) = raw.filter(|_| sandbox.layer.name() == "bubblewrap") {
            println!("{:<22} {:.1} times bwrap by itself", "", best / raw);
        }
    }
}
