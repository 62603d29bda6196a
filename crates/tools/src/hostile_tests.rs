//! Names, files and folders that want to break a search or a read.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use toolwright_permission::Request;
use toolwright_session::Ending;
use toolwright_tool::{Decision, Gate, Question};

use crate::tests::Place;

/// Does something between a call's plan and its run.
struct Meddler(Box<dyn Fn() + Send + Sync>);

impl Gate for Meddler {
    fn decide<'a>(&'a self, _: &'a Question) -> BoxFuture<'a, Decision> {
        (self.0)();
        std::future::ready(Decision::Allow { why: "test".into() }).boxed()
    }

    fn allows_silently(&self, _: &[Request]) -> bool {
        true
    }
}

async fn meddled(
    place: &Place,
    tool: &str,
    arguments: Value,
    meddle: impl Fn() + Send + Sync + 'static,
) -> String {
    let pipeline = place.pipeline(Arc::new(Meddler(Box::new(meddle))));
    let outcome = Place::call_in(&pipeline, tool, arguments, CancellationToken::new()).await;
    assert_eq!(outcome.ending, Ending::Failed, "{}", outcome.output);
    outcome.output
}

fn make_fifo(path: &PathBuf) {
    let made = std::process::Command::new("mkfifo").arg(path).status().unwrap();
    assert!(made.success());
}

#[tokio::test]
async fn any_name_is_one_line_of_an_answer() {
    let place = Place::new(&[("plain", b"needle")]);
    let names: &[&[u8]] = &[
        b"new\nline",
        b"\"quoted\"",
        b"it's",
        b"bad\xff",
        b"esc\x1b[31m",
        b"tab\t",
        b" ",
        b"-rf",
        b"a:b",
    ];
    for name in names {
        fs::write(place.path("").join(OsStr::from_bytes(name)), "needle\n").unwrap();
    }
    let total = names.len() + 1;
    let glob = place.ok("glob", json!({"pattern": "*"})).await;
    assert_eq!(glob.lines().count(), total, "{glob}");
    assert!(glob.contains("new\\nline\"") && glob.contains("bad\\xff\"") && !glob.contains('\x1b'));
    let grep = place.ok("grep", json!({"pattern": "needle"})).await;
    assert_eq!(grep.matches("  Line 1: needle").count(), total, "{grep}");
    assert_eq!(grep.lines().count(), 1 + 3 * total, "{grep}");
    let list = place.ok("list", json!({})).await;
    assert_eq!(list.lines().count(), 1 + total, "{list}");
    let read = place.ok("read", json!({"filePath": "."})).await;
    assert!(read.contains(&format!("({total} entries)")) && !read.contains('\x1b'), "{read}");
    let found = place.ok("read", json!({"filePath": "new\nline"})).await;
    assert!(found.contains("1: needle") && found.contains("new\\nline\"</path>"), "{found}");
    let missing = place.error("read", json!({"filePath": "bad"})).await;
    assert!(missing.contains("bad\\xff\""), "{missing}");
}

#[tokio::test]
async fn paths_of_any_length_end_in_an_answer() {
    let place = Place::new(&[("f", b"needle")]);
    let long_name = "n".repeat(4_096);
    let long_path = "d/".repeat(4_096);
    for path in [long_name.as_str(), &long_path, "nul\0byte", ""] {
        for (tool, arguments) in [
            ("read", json!({"filePath": path, "limit": 1})),
            ("grep", json!({"pattern": "needle", "path": path})),
            ("glob", json!({"pattern": "*", "path": path})),
            ("list", json!({"path": path})),
        ] {
            let outcome = place.call(tool, arguments).await;
            let expected = if path.is_empty() { Ending::Completed } else { Ending::Failed };
            assert_eq!(outcome.ending, expected, "{tool}: {}", outcome.output);
        }
    }
    // As deep as the system lets it be reached in one step.
    let mut deep = place.path("");
    while deep.as_os_str().len() + 205 < 4_096 {
        deep.push("d".repeat(200));
        fs::create_dir(&deep).unwrap();
    }
    fs::write(deep.join("f"), "needle").unwrap();
    let found = place.ok("grep", json!({"pattern": "needle"})).await;
    assert!(found.starts_with("Found 2 matches"), "{found}");
    assert_eq!(place.ok("glob", json!({"pattern": "f"})).await.lines().count(), 2);
    let read = place.ok("read", json!({"filePath": deep.join("f").to_str().unwrap()})).await;
    assert!(read.contains("1: needle"));
}

#[tokio::test]
async fn links_are_neither_followed_in_circles_nor_out() {
    let place = Place::new(&[("sub/f.txt", b"needle")]);
    let outside = place.folder.path().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("secret.txt"), "needle").unwrap();
    symlink("..", place.path("sub/up")).unwrap();
    symlink("self", place.path("self")).unwrap();
    symlink(&outside, place.path("out")).unwrap();
    symlink(outside.join("secret.txt"), place.path("file-out.txt")).unwrap();
    let grep = place.ok("grep", json!({"pattern": "needle"})).await;
    assert!(grep.starts_with("Found 1 matches"), "{grep}");
    assert_eq!(place.ok("glob", json!({"pattern": "*.txt"})).await.lines().count(), 1);
    let list = place.ok("list", json!({})).await;
    assert!(!list.contains("secret") && list.contains("  out\n"), "{list}");
    let error = place.error("read", json!({"filePath": "self"})).await;
    assert!(error.contains("Cannot read") && error.contains("symbolic links"), "{error}");
    let listing = place.ok("read", json!({"filePath": "."})).await;
    assert!(listing.contains("\nout/\nself\nsub/\n"), "{listing}");
}

#[tokio::test]
async fn what_never_ends_or_is_no_file_is_refused_at_once() {
    let place = Place::new(&[("f", b"needle")]);
    make_fifo(&place.path("pipe"));
    let socket = std::os::unix::net::UnixListener::bind(place.path("socket")).unwrap();
    for path in ["pipe", "socket", "/dev/zero", "/dev/null", "/dev/random"] {
        let error = place.error("read", json!({"filePath": path})).await;
        assert!(error.contains("neither a file nor a folder"), "{error}");
        let error = place.error("grep", json!({"pattern": "a", "path": path})).await;
        assert!(error.contains("neither a file nor a folder"), "{error}");
    }
    drop(socket);
    let error = place.error("read", json!({"filePath": "/proc/self/mem"})).await;
    assert!(error.contains("Cannot read /proc/") && error.contains("error"), "{error}");
    let error = place.error("grep", json!({"pattern": "a", "path": "/proc/self/mem"})).await;
    assert!(error.contains("Cannot search /proc/") && error.contains("error"), "{error}");
    // In a tree they are passed over.
    let found = place.ok("grep", json!({"pattern": "needle"})).await;
    assert!(found.starts_with("Found 1 matches"), "{found}");
    assert!(place.ok("glob", json!({"pattern": "*"})).await.ends_with("/f"));
}

#[tokio::test]
async fn ignore_files_that_are_no_files_hold_nothing_up() {
    let place = Place::new(&[("a/f", b"needle"), ("b/f", b"needle"), ("c/f", b"needle")]);
    make_fifo(&place.path(".gitignore"));
    make_fifo(&place.path("a/.ignore"));
    fs::create_dir(place.path("b/.gitignore")).unwrap();
    fs::create_dir_all(place.path("b/.git")).unwrap();
    symlink("loop", place.path("b/.git/info")).unwrap();
    symlink(".ignore", place.path("c/.ignore")).unwrap();
    make_fifo(&place.path("c/.git"));
    assert!(place.ok("grep", json!({"pattern": "needle"})).await.starts_with("Found 3 matches"));
    assert_eq!(place.ok("glob", json!({"pattern": "f"})).await.lines().count(), 3);
    let list = place.ok("list", json!({})).await;
    assert_eq!(list.matches("    f").count(), 3, "{list}");
}

#[tokio::test]
async fn what_changes_between_plan_and_run_ends_in_a_clear_error() {
    let cases: [(&str, Value); 2] =
        [("read", json!({"filePath": "f"})), ("grep", json!({"pattern": "needle", "path": "f"}))];
    for (tool, arguments) in cases {
        let place = Place::new(&[("f", b"needle")]);
        let path = place.path("f");
        let gone = meddled(&place, tool, arguments.clone(), move || {
            fs::remove_file(&path).unwrap();
        });
        let gone = gone.await;
        assert!(gone.contains("not found") || gone.contains("No such file"), "{gone}");
        let place = Place::new(&[("f", b"needle")]);
        let path = place.path("f");
        let pipe = meddled(&place, tool, arguments, move || {
            fs::remove_file(&path).unwrap();
            make_fifo(&path);
        });
        let pipe = pipe.await;
        assert!(pipe.contains("neither a file") || pipe.contains("no longer a file"), "{pipe}");
    }
    let place = Place::new(&[("d/f", b"needle")]);
    let path = place.path("d");
    let gone = meddled(&place, "grep", json!({"pattern": "needle", "path": "d"}), move || {
        fs::remove_dir_all(&path).unwrap();
    });
    let gone = gone.await;
    assert!(gone.contains("No such file"), "{gone}");
}

#[tokio::test]
async fn files_that_vanish_mid_search_are_not_missed() {
    let names: Vec<String> = (0..2_000).map(|n| format!("d{}/f{n}", n % 20)).collect();
    let files: Vec<(&str, &[u8])> =
        names.iter().map(|n| (n.as_str(), b"needle" as &[u8])).collect();
    let place = Place::new(&files);
    let root = place.path("");
    let remover = std::thread::spawn(move || {
        for n in 0..20 {
            fs::remove_dir_all(root.join(format!("d{n}"))).unwrap();
        }
    });
    for tool in ["grep", "glob", "list"] {
        let arguments = json!({"pattern": if tool == "grep" { "needle" } else { "f*" }});
        let arguments = if tool == "list" { json!({}) } else { arguments };
        let output = place.ok(tool, arguments).await;
        assert!(!output.contains("could not be read"), "{output}");
    }
    remover.join().unwrap();
    assert_eq!(place.ok("grep", json!({"pattern": "needle"})).await, "No files found");
}

#[tokio::test]
async fn a_folder_without_permission_is_told_and_the_rest_is_searched() {
    let place = Place::new(&[("open/f", b"needle"), ("shut/f", b"needle")]);
    let shut = place.path("shut");
    fs::set_permissions(&shut, fs::Permissions::from_mode(0o000)).unwrap();
    let all_powerful = fs::read_dir(&shut).is_ok();
    let found = place.ok("grep", json!({"pattern": "needle"})).await;
    let glob = place.ok("glob", json!({"pattern": "f"})).await;
    let read = place.call("read", json!({"filePath": "shut"})).await;
    fs::set_permissions(&shut, fs::Permissions::from_mode(0o755)).unwrap();
    if all_powerful {
        println!("run as root, to whom nothing is shut");
        assert!(found.starts_with("Found 2 matches") && read.ending == Ending::Completed);
    } else {
        assert!(found.starts_with("Found 1 matches"), "{found}");
        for text in [found, glob] {
            assert!(text.contains("(One path could not be read: "), "{text}");
        }
        assert!(read.output.contains("Permission denied"), "{}", read.output);
    }
}

/// Ends the run when a search comes upon the first file, and lets it go on once that is known.
struct Stopper {
    cancel: CancellationToken,
    known: Arc<(Mutex<bool>, Condvar)>,
}

impl Gate for Stopper {
    fn decide<'a>(&'a self, _: &'a Question) -> BoxFuture<'a, Decision> {
        std::future::ready(Decision::Allow { why: "test".into() }).boxed()
    }

    fn allows_silently(&self, _: &[Request]) -> bool {
        self.cancel.cancel();
        let (known, changed) = &*self.known;
        drop(changed.wait_while(known.lock().unwrap(), |known| !*known).unwrap());
        true
    }
}

#[tokio::test]
async fn a_search_that_is_stopped_says_so_and_hands_over_what_it_has() {
    let names: Vec<String> = (0..1_000).map(|n| format!("d{}/f{n}", n % 10)).collect();
    let files: Vec<(&str, &[u8])> =
        names.iter().map(|n| (n.as_str(), b"needle" as &[u8])).collect();
    let place = Place::new(&files);
    let cancel = CancellationToken::new();
    let known = Arc::new((Mutex::new(false), Condvar::new()));
    let stopper = Stopper { cancel: cancel.clone(), known: Arc::clone(&known) };
    let pipeline = place.pipeline(Arc::new(stopper));
    let watched = cancel.clone();
    tokio::spawn(async move {
        watched.cancelled().await;
        // Everybody else on this one thread has had a turn by then.
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        *known.0.lock().unwrap() = true;
        known.1.notify_all();
    });
    let arguments = json!({"pattern": "needle", "output": "count"});
    let outcome = Place::call_in(&pipeline, "grep", arguments, cancel).await;
    assert_eq!(outcome.ending, Ending::Interrupted);
    assert!(outcome.output.ends_with("(The search was stopped before its end.)"));
    let matches = outcome.details["matches"].as_u64().unwrap();
    assert!((1..100).contains(&matches), "each thread ends with the file it has: {matches}");
}
