//! What it costs to follow commands in a large tree: 30,000 files, in a repository and without one. The
//! first look, a look when nothing changed, and one after a command that changed a few files, beside
//! what `git status` takes for the same tree. Run with `cargo bench -p toolwright-session --bench undo`.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use toolwright_session::images::{Images, Keeper, Quota, Reach, Watch};

const FILES: usize = 30_000;
const PER_FOLDER: usize = 50;

fn sh(folder: &Path, line: &str) {
    let output = Command::new("sh").arg("-c").arg(line).current_dir(folder).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn populate(work: &Path) {
    for number in 0..FILES {
        let folder = work.join(format!("part{}", number / PER_FOLDER));
        if number % PER_FOLDER == 0 {
            fs::create_dir_all(&folder).unwrap();
        }
        // About what a source file is.
        let text = format!("line of file {number}\n").repeat(200);
        fs::write(folder.join(format!("file{number}")), text).unwrap();
    }
}

/// Milliseconds.
async fn look(keeper: &Keeper, change: impl FnOnce()) -> (f64, f64, usize) {
    let reach = Reach { what: "command".into(), anything: true, ..Reach::default() };
    let began = Instant::now();
    let (ticket, _) = keeper.before(reach).await;
    let before = began.elapsed().as_secs_f64() * 1e3;
    change();
    let began = Instant::now();
    let changed = keeper.after(ticket, false).await;
    let after = began.elapsed().as_secs_f64() * 1e3;
    (before, after, changed.map_or(0, |c| c.changes.len()))
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    for repository in [true, false] {
        let folder = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(folder.path()).unwrap();
        let (work, data) = (root.join("work"), root.join("data"));
        populate(&work);
        let mut status = None;
        if repository {
            sh(
                &work,
                "git init -q; git add -A; git -c user.name=T -c user.email=t@e.org commit -qm x",
            );
            sh(&work, "git status > /dev/null");
            let began = Instant::now();
            sh(&work, "git status > /dev/null");
            status = Some(began.elapsed().as_secs_f64() * 1e3);
        }
        let images = Images::new(data.join("images"), data.join("sessions"), Quota::default());
        let watch = Watch::new(&work, images, &data, &root.join("home"));
        let keeper = Keeper::new(watch, Some(root.join("memory")));
        let (first, unchanged, none) = look(&keeper, || {}).await;
        assert_eq!(none, 0);
        let (again, after, some) = look(&keeper, || {
            for number in 0..10 {
                fs::write(work.join(format!("part{number}/file{}", number * PER_FOLDER)), "x")
                    .unwrap();
            }
        })
        .await;
        assert_eq!(some, 10);
        let kept = keeper.watch().images().used() as f64 / 1e6;
        let kind = if repository { "repository" } else { "plain folder" };
        println!("{FILES} files, {kind}: first look {first:.0} ms, kept {kept:.1} MB");
        println!(
            "  nothing changed: {unchanged:.0} and {again:.0} ms ({:.1} x less)",
            first / again
        );
        println!("  ten files changed: {after:.0} ms ({:.1} x a look)", after / again);
        if let Some(status) = status {
            println!("  git status: {status:.0} ms; first look {:.1} x that", first / status);
        }
    }
}
