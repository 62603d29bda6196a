//! glob, grep and list: what they find, beside `rg` on random trees.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;
use std::time::{Duration, SystemTime};

use proptest::prelude::*;
use serde_json::{Value, json};

use crate::tests::Place;

fn set_age(place: &Place, name: &str, seconds_ago: u64) {
    let file = fs::File::options().write(true).open(place.path(name)).unwrap();
    let base = SystemTime::UNIX_EPOCH + Duration::from_secs(2_000_000_000);
    file.set_modified(base - Duration::from_secs(seconds_ago)).unwrap();
}

/// What an answer names, relative to the workspace.
fn named(place: &Place, output: &str) -> Vec<String> {
    let root = place.path("").display().to_string();
    let paths = output.lines().filter_map(|line| line.strip_prefix(&root));
    paths.map(|path| path.trim_start_matches('/').trim_end_matches(':').to_owned()).collect()
}

#[tokio::test]
async fn the_newest_come_first_and_are_the_ones_that_are_kept() {
    let names: Vec<String> = (0..150).map(|n| format!("f{n:03}.txt")).collect();
    let files: Vec<(&str, &[u8])> =
        names.iter().map(|n| (n.as_str(), b"needle\n" as &[u8])).collect();
    let place = Place::new(&files);
    for (age, name) in names.iter().enumerate() {
        set_age(&place, name, age as u64);
    }
    let cases = [
        ("glob", json!({"pattern": "*.txt"})),
        ("grep", json!({"pattern": "needle"})),
        ("grep", json!({"pattern": "needle", "output": "files"})),
    ];
    for (tool, arguments) in cases {
        let outcome = place.call(tool, arguments).await;
        assert_eq!(named(&place, &outcome.output), names[..100], "{tool}");
        assert_eq!(outcome.details["truncated"], true);
    }
    let few = place.ok("grep", json!({"pattern": "needle", "limit": 2})).await;
    assert_eq!(named(&place, &few), names[..2]);
    let counted = place.ok("grep", json!({"pattern": "needle", "output": "count"})).await;
    assert!(counted.starts_with("Found 150 matches in 150 files\n\n"), "{counted}");
}

#[tokio::test]
async fn exactly_a_hundred_count_as_truncated_and_one_less_does_not() {
    for (count, truncated) in [(99, false), (100, true)] {
        let names: Vec<String> = (0..count).map(|n| format!("f{n}")).collect();
        let files: Vec<(&str, &[u8])> = names.iter().map(|n| (n.as_str(), b"x" as &[u8])).collect();
        let place = Place::new(&files);
        let found = place.call("glob", json!({"pattern": "f*"})).await;
        assert_eq!(found.details, json!({"count": count, "truncated": truncated}));
        let found = place.call("grep", json!({"pattern": "x"})).await;
        assert_eq!(found.details, json!({"matches": count, "truncated": truncated}));
    }
}

#[tokio::test]
async fn grep_does_what_its_options_say() {
    let place = Place::new(&[
        ("a.rs", b"one\ntwo\nThree\nfour\nfive\nsix\ntwo\n"),
        ("b.py", b"two = 2\n"),
        ("sub/c.rs", b"start {\n  two\n}\n"),
    ]);
    for (name, age) in [("a.rs", 0), ("b.py", 1), ("sub/c.rs", 2)] {
        set_age(&place, name, age);
    }
    let [a, b, c] = ["a.rs", "b.py", "sub/c.rs"].map(|n| place.path(n).display().to_string());
    let cases: &[(Value, String)] = &[
        (
            json!({"pattern": "two", "type": "py"}),
            format!("Found 1 matches\n\n{b}:\n  Line 1: two = 2"),
        ),
        (
            json!({"pattern": "two", "include": "*.rs", "output": "files"}),
            format!("Found 2 files\n\n{a}\n{c}"),
        ),
        (
            json!({"pattern": "two", "output": "count"}),
            format!("Found 4 matches in 3 files\n\n{a}: 2\n{b}: 1\n{c}: 1"),
        ),
        (json!({"pattern": "three"}), "No files found".to_owned()),
        (
            json!({"pattern": "three", "ignoreCase": true}),
            format!("Found 1 matches\n\n{a}:\n  Line 3: Three"),
        ),
        (
            json!({"pattern": "two", "path": "a.rs", "context": 1}),
            format!(
                "Found 2 matches\n\n{a}:\n  Line 1- one\n  Line 2: two\n  Line 3- Three\n  --\n  Line 6- six\n  Line 7: two"
            ),
        ),
        (
            json!({"pattern": "start.*\\}", "multiline": true}),
            format!("Found 1 matches\n\n{c}:\n  Line 1: start {{\n  Line 2:   two\n  Line 3: }}"),
        ),
        (
            json!({"pattern": "two", "include": "sub/**"}),
            format!("Found 1 matches\n\n{c}:\n  Line 2:   two"),
        ),
        (
            json!({"pattern": "two", "path": "a.rs", "limit": 1}),
            format!(
                "Found 1 matches (more matches available)\n\n{a}:\n  Line 2: two\n\n(Results truncated. Consider using a more specific path or pattern.)"
            ),
        ),
    ];
    for (arguments, expected) in cases {
        assert_eq!(place.ok("grep", arguments.clone()).await, *expected, "{arguments}");
    }
    let errors = [
        (json!({"pattern": ""}), "pattern is required"),
        (json!({"pattern": "a\\nb"}), "Set multiline to match across lines."),
        (json!({"pattern": "x", "type": "rusty"}), "did you mean rust?"),
        (json!({"pattern": "x", "include": "a{"}), "include cannot be used"),
        (json!({"pattern": "x", "path": "none"}), "There is no file or folder"),
    ];
    for (arguments, expected) in errors {
        let error = place.error("grep", arguments).await;
        assert!(error.contains(expected), "{error}");
    }
}

#[tokio::test]
async fn one_line_that_is_not_utf8_or_endless_fails_nothing() {
    let long = [b"needle ".to_vec(), b"x".repeat(1 << 20)].concat();
    let place = Place::new(&[("bad", b"\xff needle\n"), ("long", &long), ("ok", b"needle\n")]);
    let found = place.ok("grep", json!({"pattern": "needle"})).await;
    assert!(found.starts_with("Found 3 matches") && found.contains("\u{FFFD} needle"), "{found}");
    assert!(found.len() < 4_000, "the long line is cut: {}", found.len());
}

#[tokio::test]
async fn globs_mean_what_they_mean_elsewhere() {
    let place = Place::new(&[
        ("a.rs", b""),
        ("src/b.rs", b""),
        ("src/deep/c.rs", b""),
        (".github/w/ci.yml", b""),
        (".env", b""),
        ("#odd", b""),
        (".git/config", b""),
    ]);
    let all = ["a.rs", "src/b.rs", "src/deep/c.rs"];
    let absolute =
        format!("{}/src/**/*.rs", place.path("").display().to_string().trim_end_matches('/'));
    let cases: &[(&str, &[&str])] = &[
        ("*.rs", &all),
        ("**/*.rs", &all),
        ("./src/*.rs", &["src/b.rs"]),
        ("/*.rs", &[]),
        ("src/", &["src/b.rs", "src/deep/c.rs"]),
        ("src/**", &["src/b.rs", "src/deep/c.rs"]),
        ("{a,b}.rs", &["a.rs", "src/b.rs"]),
        (&absolute, &["src/b.rs", "src/deep/c.rs"]),
        (".github/**", &[".github/w/ci.yml"]),
        (".env*", &[".env"]),
        ("#odd", &["#odd"]),
        ("config", &[]),
        (".git/**", &[]),
        ("*.yml", &[]),
    ];
    for (pattern, expected) in cases {
        let found = place.ok("glob", json!({"pattern": pattern})).await;
        let found: BTreeSet<String> = named(&place, &found).into_iter().collect();
        let expected: BTreeSet<String> = expected.iter().map(|&name| name.to_owned()).collect();
        assert_eq!(found, expected, "{pattern}");
    }
    let outside = place.folder.path().join("other");
    fs::create_dir_all(&outside).unwrap();
    fs::write(outside.join("x.conf"), "").unwrap();
    let found = place.ok("glob", json!({"pattern": "../other/*.conf"})).await;
    assert!(found.ends_with("/other/x.conf"), "{found}");
}

#[tokio::test]
async fn what_was_found_keeps_the_name_that_was_asked_for() {
    let place = Place::new(&[("real/f.rs", b"needle")]);
    std::os::unix::fs::symlink(place.path("real"), place.path("alias")).unwrap();
    let cases = [
        ("grep", json!({"pattern": "needle", "path": "alias"})),
        ("glob", json!({"pattern": "*.rs", "path": "alias"})),
        ("list", json!({"path": "alias"})),
    ];
    let alias = place.path("alias").display().to_string();
    for (tool, arguments) in cases {
        let found = place.ok(tool, arguments).await;
        assert!(found.contains(&alias) && !found.contains("/real"), "{tool}: {found}");
    }
}

#[tokio::test]
async fn list_shows_a_tree_with_folders_first() {
    let place = Place::new(&[
        (".gitignore", b"*.log\n"),
        ("z.txt", b""),
        ("a.txt", b""),
        ("x.log", b""),
        ("src/main.rs", b""),
        ("src/deep/d.rs", b""),
        ("node_modules/m/i.js", b""),
        ("target/t", b""),
        ("skip/s", b""),
        (".git/config", b""),
        ("build", b"a file, not a folder"),
    ]);
    let tree = place.call("list", json!({"ignore": ["skip/", "d.rs"]})).await;
    let root = place.path("");
    let root = root.display().to_string();
    let root = root.trim_end_matches('/');
    assert_eq!(
        tree.output,
        format!("{root}/\n  src/\n    deep/\n    main.rs\n  .gitignore\n  a.txt\n  build\n  z.txt")
    );
    assert_eq!(tree.details, json!({"count": 5, "truncated": false}));
    let named = place.ok("list", json!({"path": "target"})).await;
    assert_eq!(named, format!("{root}/target/\n  t"), "what is named is shown");
    for n in 0..120 {
        let name = format!("many/{n:03}");
        fs::create_dir_all(place.path("many")).unwrap();
        fs::write(place.path(&name), "").unwrap();
    }
    let many = place.ok("list", json!({})).await;
    assert!(
        many.contains("  src/\n    deep/\n") && many.contains("\n  z.txt"),
        "the top is kept: {many}"
    );
    assert!(many.contains("(Results are truncated: showing 100 of "), "{many}");
    assert!(place.error("list", json!({"path": "z.txt"})).await.contains("not a folder"));
    assert!(place.error("list", json!({"path": "none"})).await.contains("no folder"));
}

/// Files with contents, and lines for ignore files.
#[derive(Debug, Clone)]
struct Tree {
    files: Vec<(String, Vec<u8>)>,
    ignored: Vec<(String, String)>,
}

fn tree() -> impl Strategy<Value = Tree> {
    let folder = prop::sample::select(vec![
        "",
        "",
        "src/",
        "src/deep/",
        "target/",
        ".hid/",
        "a b/",
        "src/.x/",
    ]);
    let name =
        prop::sample::select(vec!["a.rs", "b.rs", "c.ts", "d.md", ".dot.rs", "e", "lib.test.ts"]);
    let content = prop::collection::vec(
        prop::sample::select(vec![
            "foo",
            "bar",
            "foo bar",
            "FOO",
            "",
            "fn main() {",
            "x\0y",
            "\u{fc}foo",
            "foo\r",
        ]),
        0..6,
    );
    let file = (folder.clone(), name, content).prop_map(|(folder, name, lines)| {
        (format!("{folder}{name}"), lines.join("\n").into_bytes())
    });
    let line = prop::sample::select(vec![
        "target/",
        "*.ts",
        "!lib.test.ts",
        "/a.rs",
        "deep",
        "src/*.md",
        "**/e",
        "# words",
        "b.rs",
        "!b.rs",
        "!.dot.rs",
        "!.hid/",
        "src/**/c.ts",
        "w/src/e",
    ]);
    let ignore = prop::sample::select(vec![
        ".gitignore",
        ".ignore",
        "src/.gitignore",
        "src/deep/.ignore",
        ".git/info/exclude",
        "../.gitignore",
        "src/.git/info/exclude",
    ]);
    let ignored = (ignore, line).prop_map(|(file, line)| (file.to_owned(), line.to_owned()));
    (prop::collection::vec(file, 1..25), prop::collection::vec(ignored, 0..4))
        .prop_map(|(files, ignored)| Tree { files, ignored })
}

impl Tree {
    fn place(&self) -> Place {
        let place = Place::new(&[]);
        let write = |name: &str, bytes: &[u8], append: bool| {
            use std::io::Write;
            let path = place.path(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            let mut file =
                fs::File::options().create(true).append(append).write(true).open(path).unwrap();
            file.write_all(bytes).unwrap();
        };
        self.files.iter().for_each(|(name, bytes)| write(name, bytes, false));
        self.ignored
            .iter()
            .for_each(|(name, line)| write(name, format!("{line}\n").as_bytes(), true));
        place
    }
}

/// What `rg` prints there, sorted; nothing if it is not installed.
fn rg(place: &Place, arguments: &[&str]) -> Option<BTreeSet<String>> {
    let mut command = Command::new("rg");
    command.args(["--no-config", "--no-require-git", "--no-messages"]).args(arguments);
    let output = command.current_dir(place.path("")).stdin(std::process::Stdio::null()).output();
    let Ok(output) = output else {
        println!("skipped: rg is not installed");
        return None;
    };
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    Some(text.lines().map(|line| line.trim_start_matches("./").to_owned()).collect())
}

fn call(place: &Place, tool: &str, arguments: Value) -> String {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(place.ok(tool, arguments))
}

#[tokio::test]
async fn what_a_repository_leaves_out_is_left_out_in_its_worktrees_too() {
    let place = Place::new(&[
        ("tree/f.rs", b"needle"),
        ("tree/out.rs", b"needle"),
        ("main/.git/info/exclude", b"out.rs\n"),
        ("main/.git/worktrees/tree/commondir", b"../..\n"),
        ("tree/.git", b"gitdir: ../main/.git/worktrees/tree\n"),
    ]);
    let found = place.ok("grep", json!({"pattern": "needle", "path": "tree"})).await;
    assert!(found.starts_with("Found 1 matches") && found.contains("f.rs"), "{found}");
}

#[tokio::test]
async fn one_folder_of_many_files_is_shared_among_threads_and_each_is_found_once() {
    let names: Vec<String> = (0..1_000).map(|n| format!("f{n}")).collect();
    let files: Vec<(&str, &[u8])> =
        names.iter().map(|n| (n.as_str(), b"needle\nneedle\n" as &[u8])).collect();
    let place = Place::new(&files);
    let counted = place.ok("grep", json!({"pattern": "needle", "output": "count"})).await;
    assert!(counted.starts_with("Found 2000 matches in 1000 files\n"), "{counted}");
    let found = place.ok("glob", json!({"pattern": "f*"})).await;
    assert!(found.contains(" 1000 files match;"), "{found}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 80, ..ProptestConfig::default() })]

    /// Ignored and hidden files stay out whatever the pattern says: `rg --glob` would let a pattern
    /// overrule the ignore files, so that `**/*` lists everything that a build has left.
    #[test]
    fn glob_finds_what_rg_finds(
        tree in tree(),
        pattern in prop::sample::select(vec![
            "*.rs", "**/*.rs", "src/**", "src/*", "*", "**/*", "*.{ts,md}", "lib*", "[ab].rs", "?", "/*.rs",
            "**/deep/*", "!*.rs",
        ]),
    ) {
        let place = tree.place();
        let Some(visible) = rg(&place, &["--files"]) else { return Ok(()) };
        let fitting = rg(&place, &["--files", "--no-ignore", "--hidden", "-g", pattern]).unwrap_or_default();
        let expected: BTreeSet<String> = visible.intersection(&fitting).cloned().collect();
        // An absolute pattern is one on the whole machine unless a folder is named.
        let found = call(&place, "glob", json!({"pattern": pattern, "path": "."}));
        let found: BTreeSet<String> = named(&place, &found).into_iter().collect();
        prop_assert_eq!(found, expected, "{}", pattern);
    }

    #[test]
    fn grep_finds_what_rg_finds(
        tree in tree(),
        pattern in prop::sample::select(vec!["foo", "^foo", "bar$", "(?i)foo", "o+ b", "^$", "fn \\w+\\(", "."]),
        ignore_case in any::<bool>(),
    ) {
        let place = tree.place();
        let mut theirs = vec!["--hidden", "--glob=!**/.git/**", "--with-filename", "-n", "--no-heading", "--color=never"];
        if ignore_case {
            theirs.push("-i");
        }
        theirs.extend(["-e", pattern, "."]);
        let Some(expected) = rg(&place, &theirs) else { return Ok(()) };
        let arguments = json!({"pattern": pattern, "ignoreCase": ignore_case, "limit": 1000});
        let mut found = BTreeSet::new();
        let mut file = String::new();
        for line in call(&place, "grep", arguments).lines() {
            match line.strip_prefix("  Line ").and_then(|line| line.split_once(": ")) {
                Some((number, text)) => {
                    found.insert(format!("{file}:{number}:{text}"));
                }
                None => file = named(&place, line).pop().unwrap_or_default(),
            }
        }
        // Older ones print their warning among the matches.
        let matches = expected.into_iter().filter(|line| !line.contains(": WARNING: stopped"));
        let expected: BTreeSet<String> =
            matches.map(|line| line.trim_end_matches('\r').to_owned()).collect();
        prop_assert_eq!(found, expected, "{}", pattern);
    }
}
