//! Each tool through the whole pipeline, on real files.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;
use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use toolwright_permission::Request;
use toolwright_session::{Ending, Outcome};
use toolwright_tool::{Decision, Gate, Pipeline, PipelineOptions, Question, Registry, Workspace};

use crate::kit::one_call;
use crate::{BashOptions, Feedback, register_all};

pub(crate) struct Open;

impl Gate for Open {
    fn decide<'a>(&'a self, _: &'a Question) -> BoxFuture<'a, Decision> {
        std::future::ready(Decision::Allow { why: "test".into() }).boxed()
    }

    fn allows_silently(&self, _: &[Request]) -> bool {
        true
    }
}

pub(crate) struct Place {
    pub(crate) folder: tempfile::TempDir,
}

impl Place {
    pub(crate) fn new(files: &[(&str, &[u8])]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for (name, content) in files {
            let path = folder.path().join("w").join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        fs::create_dir_all(folder.path().join("w")).unwrap();
        Self { folder }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        fs::canonicalize(self.folder.path().join("w")).unwrap().join(name)
    }

    pub(crate) async fn call(&self, tool: &str, arguments: Value) -> Outcome {
        self.call_until(tool, arguments, CancellationToken::new()).await
    }

    pub(crate) async fn call_until(
        &self,
        tool: &str,
        arguments: Value,
        cancel: CancellationToken,
    ) -> Outcome {
        let pipeline = self.pipeline(Arc::new(Open));
        Self::call_in(&pipeline, tool, arguments, cancel).await
    }

    pub(crate) fn pipeline(&self, gate: Arc<dyn Gate>) -> Pipeline {
        let registry = Registry::default();
        register_all(&registry, BashOptions::default(), &Feedback::default());
        self.pipeline_of(registry, gate)
    }

    pub(crate) fn pipeline_of(&self, registry: Registry, gate: Arc<dyn Gate>) -> Pipeline {
        let workspace = Arc::new(Workspace::new(&self.path("")).unwrap());
        let options = PipelineOptions::new(self.folder.path().join("outputs"));
        Pipeline::new(registry, workspace, gate, options)
    }

    pub(crate) async fn call_with(
        &self,
        registry: Registry,
        tool: &str,
        arguments: Value,
        cancel: CancellationToken,
    ) -> Outcome {
        let pipeline = self.pipeline_of(registry, Arc::new(Open));
        Self::call_in(&pipeline, tool, arguments, cancel).await
    }

    pub(crate) async fn call_in(
        pipeline: &Pipeline,
        tool: &str,
        arguments: Value,
        cancel: CancellationToken,
    ) -> Outcome {
        one_call(pipeline, tool, arguments, cancel).await
    }

    pub(crate) async fn ok(&self, tool: &str, arguments: Value) -> String {
        let outcome = self.call(tool, arguments).await;
        assert_eq!(outcome.ending, Ending::Completed, "{}", outcome.output);
        outcome.output
    }

    pub(crate) async fn error(&self, tool: &str, arguments: Value) -> String {
        let outcome = self.call(tool, arguments).await;
        assert_eq!(outcome.ending, Ending::Failed, "{}", outcome.output);
        outcome.output
    }
}

#[test]
fn the_default_set_stays_below_4000_tokens() {
    let registry = Registry::default();
    register_all(&registry, BashOptions::default(), &Feedback::default());
    let size: usize = registry
        .definitions()
        .iter()
        .map(|d| d.name.len() + d.description.len() + d.parameters.to_string().len())
        .sum();
    assert!(size / 4 < 4_000, "{} tokens", size / 4);
}

#[tokio::test]
async fn read_shows_numbered_lines_and_says_how_to_go_on() {
    let text: String = (1..=30).map(|n| format!("line {n}\n")).collect();
    let place =
        Place::new(&[("a.txt", text.as_bytes()), ("empty.txt", b""), ("no-end.txt", b"a\r\nb")]);
    let whole = place.ok("read", json!({"filePath": "a.txt"})).await;
    assert!(whole.starts_with(&format!(
        "<path>{}</path>\n<type>file</type>\n<content>\n1: line 1\n",
        place.path("a.txt").display()
    )));
    assert!(
        whole.ends_with("30: line 30\n\n(End of file - total 30 lines)\n</content>"),
        "{whole}"
    );
    let part = place.ok("read", json!({"filePath": "a.txt", "offset": 5, "limit": 2})).await;
    assert!(
        part.contains(
            "\n5: line 5\n6: line 6\n\n(Showing lines 5-6 of 30. Use offset=7 to continue.)"
        ),
        "{part}"
    );
    assert!(place.ok("read", json!({"filePath": "empty.txt"})).await.contains("total 0 lines"));
    assert!(
        place
            .ok("read", json!({"filePath": "no-end.txt"}))
            .await
            .contains("1: a\n2: b\n\n(End of file - total 2")
    );
    let error = place.error("read", json!({"filePath": "a.txt", "offset": 31})).await;
    assert_eq!(error, "Offset 31 is out of range for this file (30 lines)");
    let error = place.error("read", json!({"filePath": "empty.txt", "offset": 2})).await;
    assert_eq!(error, "Offset 2 is out of range for this file (0 lines)");
}

#[tokio::test]
async fn read_caps_bytes_and_long_lines() {
    let long = "ü".repeat(3_000);
    let many = "x".repeat(99) + "\n";
    let place =
        Place::new(&[("long.txt", long.as_bytes()), ("many.txt", many.repeat(1_000).as_bytes())]);
    let output = place.ok("read", json!({"filePath": "long.txt"})).await;
    assert!(
        output.contains("... (line truncated to 2000 chars)")
            && output.matches('ü').count() == 2_000
    );
    let output = place.ok("read", json!({"filePath": "many.txt"})).await;
    assert!(
        output
            .contains("(Output capped at 50 KB. Showing lines 1-512. Use offset=513 to continue.)"),
        "{}",
        &output[output.len() - 200..]
    );
}

#[tokio::test]
async fn read_lists_folders_and_suggests_names() {
    let place = Place::new(&[("b/x", b""), ("A.txt", b""), (".hidden", b"")]);
    let listing = place.ok("read", json!({"filePath": "."})).await;
    assert!(
        listing.contains("<entries>\n.hidden\nA.txt\nb/\n\n(3 entries)\n</entries>"),
        "{listing}"
    );
    let error = place.error("read", json!({"filePath": "a"})).await;
    assert!(
        error.contains("File not found")
            && error.contains("Did you mean one of these?")
            && error.contains("A.txt"),
        "{error}"
    );
}

#[tokio::test]
async fn read_gives_images_by_content_and_refuses_other_binaries() {
    let mut png = std::io::Cursor::new(Vec::new());
    image::RgbImage::new(1, 1).write_to(&mut png, image::ImageFormat::Png).unwrap();
    let place =
        Place::new(&[("picture.bin", png.get_ref()), ("data", b"a\0b"), ("x.zip", b"text")]);
    let outcome = place.call("read", json!({"filePath": "picture.bin"})).await;
    assert_eq!(outcome.output, "Image read successfully");
    assert_eq!(outcome.attachments[0].mime, "image/png");
    for name in ["data", "x.zip"] {
        assert!(
            place
                .error("read", json!({"filePath": name}))
                .await
                .contains("Cannot read binary file")
        );
    }
}

#[tokio::test]
async fn what_never_ends_is_not_read() {
    let place = Place::new(&[]);
    let fifo = place.path("pipe");
    let made = std::process::Command::new("mkfifo").arg(&fifo).status().unwrap();
    assert!(made.success());
    for path in ["pipe", "/dev/zero", "/dev/null"] {
        let error = place.error("read", json!({"filePath": path})).await;
        assert!(error.contains("neither a file nor a folder"), "{error}");
        let error = place
            .error("edit", json!({"filePath": path, "oldString": "a", "newString": "b"}))
            .await;
        assert!(error.contains("not a regular file"), "{error}");
        let error = place.error("grep", json!({"pattern": "a", "path": path})).await;
        assert!(error.contains("neither a file nor a folder"), "{error}");
    }
}

#[tokio::test]
async fn edit_changes_the_match_and_nothing_else() {
    let cases: &[(&[u8], &str, &str, &[u8])] = &[
        (b"a\nb\nc", "b", "B", b"a\nB\nc"),
        (b"\xEF\xBB\xBFone\r\ntwo\r\n", "one\ntwo", "1\n2", b"\xEF\xBB\xBF1\r\n2\r\n"),
        (b"mixed\r\nlines\nhere\r\n", "lines", "LINES", b"mixed\r\nLINES\nhere\r\n"),
        (b"x\r\ny\r\n", "x", "x1\nx2", b"x1\r\nx2\r\ny\r\n"),
        (b"one\ntwo\n", "one\r\ntwo", "1\r\n2", b"1\n2\n"),
        (b"one\n", "one", "1\r\n2", b"1\n2\n"),
        (b"a\r\nb\r\nc\r\n", "a\r\nb\nc", "x\ny\r\nz", b"x\r\ny\r\nz\r\n"),
        (b"\xff\xfe raw \x80 bytes", "raw", "RAW", b"\xff\xfe RAW \x80 bytes"),
        (b"no newline at end", "end", "END", b"no newline at END"),
        (b"$1 $& $$", "$&", "$1", b"$1 $1 $$"),
    ];
    for (before, old, new, after) in cases {
        let place = Place::new(&[("f", before)]);
        fs::set_permissions(place.path("f"), fs::Permissions::from_mode(0o751)).unwrap();
        place.ok("edit", json!({"filePath": "f", "oldString": old, "newString": new})).await;
        assert_eq!(fs::read(place.path("f")).unwrap(), *after, "{old:?}");
        assert_eq!(fs::metadata(place.path("f")).unwrap().permissions().mode() & 0o777, 0o751);
    }
}

#[tokio::test]
async fn edit_refuses_what_is_not_certain() {
    let place = Place::new(&[("f", b"one\ntwo\none\n"), ("d/x", b"")]);
    let edit = |old: &str, new: &str| json!({"filePath": "f", "oldString": old, "newString": new});
    let cases = [
        (edit("one", "1"), "Found multiple matches for oldString in f: 2, at lines 1, 3."),
        (edit("three", "3"), "Could not find oldString"),
        (edit("same", "same"), "identical"),
        (edit("", "x"), "oldString cannot be empty"),
        (json!({"filePath": "none", "oldString": "a", "newString": "b"}), "File none not found"),
        (json!({"filePath": "d", "oldString": "a", "newString": "b"}), "is a directory"),
    ];
    for (arguments, expected) in cases {
        let error = place.error("edit", arguments).await;
        assert!(error.contains(expected), "{error}");
    }
    assert_eq!(fs::read(place.path("f")).unwrap(), b"one\ntwo\none\n");
    let mut all = edit("one", "1");
    all["replaceAll"] = json!(true);
    assert!(place.ok("edit", all).await.contains("2 occurrences"));
    assert_eq!(fs::read(place.path("f")).unwrap(), b"1\ntwo\n1\n");
    place.ok("edit", json!({"filePath": "new/file", "oldString": "", "newString": "x"})).await;
    assert_eq!(fs::read(place.path("new/file")).unwrap(), b"x");
}

#[tokio::test]
async fn write_replaces_whole_files_and_leaves_no_rest() {
    let place = Place::new(&[("f", b"\xEF\xBB\xBFold")]);
    assert!(
        place
            .ok("write", json!({"filePath": "f", "content": "new\r\n"}))
            .await
            .contains("Replaced f")
    );
    assert_eq!(fs::read(place.path("f")).unwrap(), b"\xEF\xBB\xBFnew\r\n");
    assert!(
        place
            .ok("write", json!({"filePath": "a/b/c", "content": ""}))
            .await
            .contains("Created a/b/c")
    );
    let error = place.error("write", json!({"filePath": "a", "content": "x"})).await;
    assert!(error.contains("is a directory"), "{error}");
    let error = place.error("write", json!({"filePath": "f/below", "content": "x"})).await;
    assert!(error.contains("Not a directory"), "{error}");
    let names: Vec<_> =
        fs::read_dir(place.path("")).unwrap().flatten().map(|e| e.file_name()).collect();
    assert_eq!(names.len(), 2, "no temporary file is left: {names:?}");
}

#[tokio::test]
async fn writing_through_a_link_changes_its_target() {
    let place = Place::new(&[("real", b"old")]);
    symlink(place.path("real"), place.path("link")).unwrap();
    place.ok("write", json!({"filePath": "link", "content": "new"})).await;
    assert_eq!(fs::read(place.path("real")).unwrap(), b"new");
    assert!(fs::symlink_metadata(place.path("link")).unwrap().is_symlink());
}

#[tokio::test]
async fn glob_respects_ignore_files_and_caps_its_results() {
    let place = Place::new(&[
        (".gitignore", b"target/\n"),
        ("src/a.rs", b""),
        ("src/deep/b.rs", b""),
        ("target/c.rs", b""),
        (".hid/d.rs", b""),
    ]);
    let found = place.ok("glob", json!({"pattern": "**/*.rs"})).await;
    let mut names: Vec<_> = found.lines().map(|l| l.rsplit('/').next().unwrap()).collect();
    names.sort_unstable();
    assert_eq!(names, ["a.rs", "b.rs"]);
    assert_eq!(
        place.ok("glob", json!({"pattern": "*.rs"})).await.lines().count(),
        2,
        "names, anywhere"
    );
    assert!(place.ok("glob", json!({"pattern": "src/*.rs"})).await.ends_with("src/a.rs"));
    assert!(
        place.ok("glob", json!({"pattern": "*.rs", "path": "src/deep"})).await.ends_with("b.rs")
    );
    assert_eq!(place.ok("glob", json!({"pattern": "*.go"})).await, "No files found");
    assert!(
        place
            .error("glob", json!({"pattern": "*", "path": "src/a.rs"}))
            .await
            .contains("must be a directory")
    );
    assert!(place.error("glob", json!({"pattern": "a{"})).await.contains("cannot be used"));
    for n in 0..120 {
        fs::write(place.path(&format!("n{n}.txt")), "").unwrap();
    }
    let many = place.ok("glob", json!({"pattern": "*.txt"})).await;
    assert!(many.contains("(Results are truncated: showing first 100 results. 120 "), "{many}");
}

#[tokio::test]
async fn grep_finds_lines_with_numbers_and_passes_over_what_is_no_text() {
    let place = Place::new(&[
        ("a.rs", b"fn one() {}\nlet needle = 1;\r\n"),
        ("b.txt", b"needle"),
        ("bin", b"needle\0"),
        (".hidden", b"needle"),
        ("latin", b"\xe4 needle"),
    ]);
    let found = place.ok("grep", json!({"pattern": "needle", "include": "*.rs"})).await;
    assert_eq!(
        found,
        format!("Found 1 matches\n\n{}:\n  Line 2: let needle = 1;", place.path("a.rs").display())
    );
    let all = place.ok("grep", json!({"pattern": "(?i)NEEDLE"})).await;
    assert!(
        all.starts_with("Found 4 matches")
            && all.contains(".hidden")
            && all.contains("latin")
            && !all.contains("bin:"),
        "{all}"
    );
    let one = place.ok("grep", json!({"pattern": "needle", "path": "b.txt"})).await;
    assert!(one.starts_with("Found 1 matches"), "only the named file: {one}");
    assert_eq!(place.ok("grep", json!({"pattern": "nowhere"})).await, "No files found");
    assert!(
        place
            .error("grep", json!({"pattern": "("}))
            .await
            .contains("not a valid regular expression")
    );
    fs::write(place.path("many"), "x\n".repeat(500)).unwrap();
    let many = place.ok("grep", json!({"pattern": "^x$"})).await;
    assert!(
        many.starts_with("Found 100 matches (more matches available)")
            && many.ends_with("pattern.)"),
        "{many}"
    );
}

#[tokio::test]
async fn bash_tells_output_exit_and_where() {
    let place = Place::new(&[("sub/f", b"")]);
    assert_eq!(
        place.ok("bash", json!({"command": "echo out; echo err >&2; exit 7"})).await,
        "out\nerr\n[exit code 7]"
    );
    assert_eq!(place.ok("bash", json!({"command": "true"})).await, "(no output)\n[exit code 0]");
    assert_eq!(
        place.ok("bash", json!({"command": "kill -9 $$"})).await,
        "(no output)\n[ended by signal 9]"
    );
    assert_eq!(
        place.ok("bash", json!({"command": "ls", "workdir": "sub"})).await,
        "f\n[exit code 0]"
    );
    assert!(
        place
            .error("bash", json!({"command": "ls", "workdir": "none"}))
            .await
            .contains("no folder")
    );
    assert!(place.error("bash", json!({"command": "  "})).await.contains("empty"));
    let text = place.ok("bash", json!({"command": "printf 'a\\xffb'"})).await;
    assert_eq!(text, "a\u{fffd}b\n[exit code 0]");
}

#[tokio::test]
async fn bash_keeps_both_ends_of_a_flood_and_the_whole_in_a_file() {
    let place = Place::new(&[]);
    let outcome = place.call("bash", json!({"command": "seq 1 200000"})).await;
    assert!(
        outcome.output.starts_with("1\n2\n") && outcome.output.ends_with("200000\n[exit code 0]")
    );
    assert!(outcome.output.len() < 52 << 10);
    let path = outcome.details["outputPath"].as_str().unwrap();
    assert_eq!(fs::read_to_string(path).unwrap().lines().count(), 200_000);
    assert!(outcome.output.contains(path));
}

#[tokio::test]
async fn an_aborted_command_keeps_what_it_had_printed() {
    let place = Place::new(&[]);
    let cancel = CancellationToken::new();
    let stop = cancel.clone();
    let flag = place.path("flag");
    tokio::spawn(async move {
        while !flag.exists() {
            tokio::task::yield_now().await;
        }
        stop.cancel();
    });
    let command = json!({"command": "echo before; touch flag; sleep 300"});
    let outcome = place.call_until("bash", command, cancel).await;
    assert_eq!(outcome.ending, Ending::Interrupted);
    assert_eq!(outcome.output, "before\n[User aborted the command]");
}

#[tokio::test]
async fn an_aborted_flood_is_cut_and_kept_whole() {
    let place = Place::new(&[]);
    let cancel = CancellationToken::new();
    let (stop, flag) = (cancel.clone(), place.path("flag"));
    tokio::spawn(async move {
        while !flag.exists() {
            tokio::task::yield_now().await;
        }
        stop.cancel();
    });
    let command = json!({"command": "seq 1 200000; touch flag; sleep 300"});
    let outcome = place.call_until("bash", command, cancel).await;
    assert_eq!(outcome.ending, Ending::Interrupted);
    assert!(outcome.output.ends_with("200000\n[User aborted the command]"), "{}", outcome.output);
    assert_eq!(outcome.details["truncated"], true);
    let whole = fs::read_to_string(outcome.details["outputPath"].as_str().unwrap()).unwrap();
    assert_eq!(whole.lines().count(), 200_000);
}
