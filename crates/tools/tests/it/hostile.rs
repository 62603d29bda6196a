//! Files that are no files, names that are hardly names, and a world that does not hold still.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::process::Command;
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};
use toolwright_session::Ending;
use toolwright_tools::StaleEdits;

use crate::support::{Session, is_root};

/// Each way to change the file of that name.
fn changes(name: &str) -> Vec<(&'static str, Value)> {
    vec![
        ("edit", json!({"filePath": name, "oldString": "a", "newString": "b"})),
        ("edit", json!({"filePath": name, "oldString": "", "newString": "b"})),
        ("write", json!({"filePath": name, "content": "b"})),
        (
            "apply_patch",
            json!({"patchText": format!("*** Begin Patch\n*** Update File: {name}\n@@\n-a\n+b\n*** End Patch")}),
        ),
        (
            "apply_patch",
            json!({"patchText": format!("*** Begin Patch\n*** Add File: {name}\n+b\n*** End Patch")}),
        ),
        (
            "apply_patch",
            json!({"patchText": format!("*** Begin Patch\n*** Delete File: {name}\n*** End Patch")}),
        ),
    ]
}

#[tokio::test]
async fn what_is_no_regular_file_is_refused_at_once() {
    let session = Session::new(&[("d/x", b"")]);
    assert!(Command::new("mkfifo").arg(session.path("pipe")).status().unwrap().success());
    for name in ["pipe", "/dev/zero", "/dev/null", "/proc/self/mem", "d", "/"] {
        for (tool, arguments) in changes(name) {
            let error = session.error(tool, arguments.clone()).await;
            let clear = [
                "not a regular file",
                "directory",
                "Cannot read",
                "Failed to read",
                "cannot be empty",
            ];
            assert!(clear.iter().any(|text| error.contains(text)), "{tool} {name}: {error}");
        }
    }
}

#[tokio::test]
async fn odd_names_are_names() {
    let long = "n".repeat(200);
    let deep = "d/".repeat(100) + "f";
    for name in [
        "new\nline",
        "quo\"te's",
        "tab\there",
        " lead and trail ",
        "-dash",
        "*?[",
        &long,
        &deep,
        "\u{202e}rtl",
    ] {
        let session = Session::new(&[]);
        session.ok("write", json!({"filePath": name, "content": "a\n"})).await;
        session.ok("edit", json!({"filePath": name, "oldString": "a", "newString": "b"})).await;
        assert_eq!(session.bytes(name), b"b\n", "{name:?}");
    }
    let session = Session::new(&[]);
    let too_long = "n".repeat(4096);
    for name in ["nul\0byte", &too_long, "x/../../../../../../../../proc/nowhere/f"] {
        for (tool, arguments) in changes(name) {
            let outcome = session.call(tool, arguments).await;
            assert_eq!(outcome.ending, Ending::Failed, "{tool} {name:?}: {}", outcome.output);
        }
    }
    assert!(session.tree().is_empty());
}

#[tokio::test]
async fn a_file_name_that_is_not_utf_8_does_not_disturb_its_neighbours() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let session = Session::new(&[("f", b"a\n")]);
    let odd = session.path("").join(OsStr::from_bytes(b"\xff\xfe"));
    fs::create_dir(&odd).unwrap();
    symlink(odd.join("g"), session.path("link")).unwrap();
    fs::write(odd.join("g"), "a\n").unwrap();
    session.ok("edit", json!({"filePath": "link", "oldString": "a", "newString": "b"})).await;
    assert_eq!(fs::read(odd.join("g")).unwrap(), b"b\n");
}

#[tokio::test]
async fn links_are_followed_for_content_and_not_removed_for_their_target() {
    let session = Session::new(&[("real", b"a\n")]);
    let outside = session.folder.path().join("outside");
    fs::write(&outside, "a\n").unwrap();
    symlink(&outside, session.path("out")).unwrap();
    symlink(session.path("real"), session.path("link")).unwrap();
    symlink("loop", session.path("loop")).unwrap();
    // The pipeline is asked about where a link leads; here everything is allowed.
    let update = "*** Begin Patch\n*** Update File: out\n@@\n-a\n+b\n*** End Patch";
    session.ok("apply_patch", json!({ "patchText": update })).await;
    assert_eq!(fs::read(&outside).unwrap(), b"b\n");
    for name in ["link", "out"] {
        let delete = format!("*** Begin Patch\n*** Delete File: {name}\n*** End Patch");
        let error = session.error("apply_patch", json!({ "patchText": delete })).await;
        assert!(error.contains("is a symbolic link"), "{error}");
        let moved = format!(
            "*** Begin Patch\n*** Update File: {name}\n*** Move to: x\n@@\n+z\n*** End Patch"
        );
        let error = session.error("apply_patch", json!({ "patchText": moved })).await;
        assert!(error.contains("is a symbolic link"), "{error}");
    }
    assert!(outside.exists() && session.path("real").exists() && !session.path("x").exists());
    for (tool, arguments) in changes("loop") {
        let outcome = session.call(tool, arguments).await;
        assert_eq!(outcome.ending, Ending::Failed, "{}", outcome.output);
    }
}

#[tokio::test]
async fn a_link_or_a_pipe_put_there_after_the_decision_is_not_written_through() {
    for trap in ["link", "pipe", "folder"] {
        let swap = move |folder: &std::path::Path| {
            let victim = folder.join("f");
            fs::remove_file(&victim).unwrap();
            match trap {
                "link" => {
                    fs::write(folder.join("secret"), "a\n").unwrap();
                    symlink(folder.join("secret"), victim).unwrap();
                }
                "pipe" => assert!(Command::new("mkfifo").arg(victim).status().unwrap().success()),
                _ => fs::create_dir(victim).unwrap(),
            }
        };
        let session = Session::with(&[("f", b"a\n")], StaleEdits::Error, swap);
        let arguments = json!({"filePath": "f", "oldString": "a", "newString": "b"});
        let error = session.error("edit", arguments).await;
        assert!(!error.is_empty());
        if trap == "link" {
            assert!(error.contains("no longer the file that was approved"), "{error}");
            assert_eq!(session.bytes("secret"), b"a\n");
        }
    }
}

#[tokio::test]
async fn a_large_file_that_changes_after_the_decision_is_noticed() {
    let large = "line\n".repeat(1_200_000) + "needle\n";
    let session = Session::with(&[("f", large.as_bytes())], StaleEdits::Allow, |folder| {
        // The same size, somewhere else than the edit.
        use std::os::unix::fs::FileExt;
        fs::File::options()
            .write(true)
            .open(folder.join("f"))
            .unwrap()
            .write_at(b"LINE", 0)
            .unwrap();
    });
    let arguments = json!({"filePath": "f", "oldString": "needle", "newString": "pin"});
    let error = session.error("edit", arguments).await;
    assert!(error.contains("changed by something else just now"), "{error}");
    assert!(session.bytes("f").starts_with(b"LINE") && session.bytes("f").ends_with(b"needle\n"));
}

/// Until a later change of the file must show in its times.
fn settle(path: &std::path::Path) {
    let data = fs::metadata(path).unwrap();
    let (seconds, nanos) = (data.ctime() as u64, data.ctime_nsec() as u32);
    let changed = SystemTime::UNIX_EPOCH + Duration::new(seconds, nanos);
    while changed.elapsed().is_ok_and(|age| age < Duration::from_millis(50)) {
        std::thread::yield_now();
    }
}

#[tokio::test]
async fn a_large_file_that_is_not_held_is_changed_only_if_it_is_still_the_same() {
    let large = "line\n".repeat(1_200_000) + "    needle\r\nlast";
    let cases: [(&str, Meddle); 4] = [
        ("written into", |path| {
            use std::os::unix::fs::FileExt;
            let file = fs::File::options().write(true).open(path).unwrap();
            file.write_at(b"LINE", 0).unwrap();
        }),
        ("cut", |path| {
            fs::File::options().write(true).open(path).unwrap().set_len(5_000_000).unwrap();
        }),
        ("replaced", |path| {
            fs::write(path.with_extension("new"), "other").unwrap();
            fs::rename(path.with_extension("new"), path).unwrap();
        }),
        ("removed", |path| fs::remove_file(path).unwrap()),
    ];
    for (how, meddle) in cases {
        let before = move |folder: &std::path::Path| meddle(&folder.join("f"));
        let session = Session::with(&[("f", large.as_bytes())], StaleEdits::Allow, before);
        settle(&session.path("f"));
        let arguments = json!({"filePath": "f", "oldString": "needle", "newString": "pin"});
        let error = session.error("edit", arguments).await;
        assert!(error.contains("changed by something else just now"), "{how}: {error}");
        let left: Vec<String> = session.tree().into_keys().collect();
        assert!(left.iter().all(|name| name == "f"), "{how}: {left:?}");
    }
    let session = Session::new(&[("f", large.as_bytes())]);
    fs::set_permissions(session.path("f"), fs::Permissions::from_mode(0o640)).unwrap();
    settle(&session.path("f"));
    let arguments = json!({"filePath": "f", "oldString": "the  needle\n", "newString": "pin\n"});
    let error = session.error("edit", arguments).await;
    assert!(error.contains("Could not find oldString"), "{error}");
    let arguments = json!({"filePath": "f", "oldString": "needle\nlast", "newString": "pin\nend"});
    session.ok("edit", arguments).await;
    assert_eq!(session.bytes("f"), large.replace("needle\r\nlast", "pin\r\nend").as_bytes());
    let mode = fs::metadata(session.path("f")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o640);
}

type Meddle = fn(&std::path::Path);

#[tokio::test]
async fn a_read_only_file_and_a_read_only_folder_stay() {
    if is_root() {
        println!("skipped: root may write everywhere");
        return;
    }
    let session = Session::new(&[("f", b"a\n"), ("d/g", b"a\n")]);
    fs::set_permissions(session.path("f"), fs::Permissions::from_mode(0o444)).unwrap();
    fs::set_permissions(session.path("d"), fs::Permissions::from_mode(0o555)).unwrap();
    for name in ["f", "d/g"] {
        let arguments = json!({"filePath": name, "oldString": "a", "newString": "b"});
        let error = session.error("edit", arguments).await;
        assert!(error.contains("Permission denied"), "{error}");
    }
    fs::set_permissions(session.path("d"), fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!((session.bytes("f"), session.bytes("d/g")), (b"a\n".to_vec(), b"a\n".to_vec()));
    assert_eq!(session.tree().len(), 2, "no temporary file is left");
}

#[tokio::test]
async fn a_file_of_equal_lines_does_not_hold_up_the_search() {
    // Line by line this would be 150 million comparisons for each matcher and pass; planning has a limit.
    let many = "same\n".repeat(30_000);
    let session = Session::new(&[("f", many.as_bytes())]);
    let old = " same\n".repeat(5_000) + "other";
    let error =
        session.error("edit", json!({"filePath": "f", "oldString": old, "newString": ""})).await;
    assert!(error.contains("Could not find oldString"), "{}", &error[..200]);
    let lines = "- same\n".repeat(5_000);
    let text = format!("*** Begin Patch\n*** Update File: f\n@@\n{lines}-other\n*** End Patch");
    let error = session.error("apply_patch", json!({ "patchText": text })).await;
    assert!(error.contains("Failed to find expected lines"), "{}", &error[..200]);
}

#[tokio::test]
async fn a_file_beyond_all_measure_is_refused_before_it_is_read() {
    let session = Session::new(&[("f", b"a\n")]);
    fs::File::options().write(true).open(session.path("f")).unwrap().set_len(1 << 40).unwrap();
    for (tool, arguments) in changes("f") {
        let error = session.error(tool, arguments).await;
        assert!(error.contains("has more than 256 MiB"), "{tool}: {error}");
    }
}
