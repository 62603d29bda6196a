use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::json;
use toolwright_lsp::{Options, Servers, Timing};
use toolwright_session::{Ending, Outcome};
use toolwright_tool::Registry;

use super::*;
use crate::tests::Place as Folder;
use crate::{BashOptions, Feedback, register_all};

fn place(folder: &Folder, trusted: bool) -> Place {
    Place {
        directory: folder.path(""),
        worktree: folder.path(""),
        trusted,
        path: "/usr/bin:/bin".into(),
        virtual_env: None,
    }
}

/// A formatter that is a line of shell; `$1` is the file.
fn shell(name: &str, script: &str) -> (String, FormatterEntry) {
    let command = ["/bin/sh", "-c", script, "sh", "$FILE"].map(str::to_owned).to_vec();
    let entry = FormatterEntry {
        command: Some(command),
        extensions: Some(vec![".x".to_owned()]),
        environment: BTreeMap::from([("ADDED".to_owned(), "set".to_owned())]),
        ..FormatterEntry::default()
    };
    (name.to_owned(), entry)
}

async fn write(folder: &Folder, entries: Vec<(String, FormatterEntry)>, content: &str) -> Outcome {
    let place = place(folder, false);
    let entries_text = format!("{entries:?}");
    let mut formatters =
        Formatters::new(FormatterSetting::With(entries), place.clone(), vec!["HOME".to_owned()])
            .unwrap();
    // Only those that never end are meant to run out of time.
    let endless = entries_text.contains("sleep 1000");
    formatters.limit = Duration::from_millis(if endless { 300 } else { 60_000 });
    let options =
        Options { place, servers: vec![], withheld: vec![], passed: vec![], sandbox: None };
    let feedback = Feedback::new(Servers::new(options, Timing::default()), formatters);
    let registry = Registry::default();
    register_all(&registry, BashOptions::default(), &feedback);
    let arguments = json!({ "filePath": "a.x", "content": content });
    folder.call_with(registry, "write", arguments, CancellationToken::new()).await
}

#[tokio::test]
async fn formatters_run_one_after_the_other_in_written_order() {
    let folder = Folder::new(&[]);
    let entries = vec![shell("a", "printf A >> \"$1\""), shell("b", "printf B >> \"$1\"")];
    let outcome = write(&folder, entries, "x").await;
    assert_eq!(fs::read_to_string(folder.path("a.x")).unwrap(), "xAB");
    assert!(outcome.output.contains("a.x was formatted by a and b."), "{}", outcome.output);
    assert!(outcome.details["diff"].as_str().unwrap().contains("+xAB"), "{}", outcome.details);
}

#[tokio::test]
async fn a_formatter_that_fails_leaves_the_file_as_the_edit_made_it() {
    let cases = [
        ("printf broken > \"$1\"; echo no such style >&2; exit 3", "exit code 3: no such style"),
        ("rm \"$1\"; exit 1", "exit code 1"),
        ("printf broken > \"$1\"; sleep 1000", "took longer"),
        ("kill -9 $$", "signal 9"),
        (": > \"$1\"", "left the file empty"),
        ("rm \"$1\"", "left the file empty"),
    ];
    for (script, expected) in cases {
        let folder = Folder::new(&[]);
        let outcome = write(&folder, vec![shell("f", script)], "content").await;
        assert_eq!(outcome.ending, Ending::Completed);
        assert_eq!(fs::read_to_string(folder.path("a.x")).unwrap(), "content", "{script}");
        assert!(outcome.output.contains("Note: the formatter f failed: "), "{}", outcome.output);
        assert!(outcome.output.contains(expected), "{script}: {}", outcome.output);
    }
}

#[tokio::test]
async fn the_byte_order_mark_stays_as_it_was() {
    let strip = "tail -c +4 \"$1\" > t && cat t > \"$1\" && rm t; printf '!' >> \"$1\"";
    let folder = Folder::new(&[]);
    write(&folder, vec![shell("f", strip)], "\u{feff}text").await;
    assert_eq!(fs::read_to_string(folder.path("a.x")).unwrap(), "\u{feff}text!");
    let add = "printf '\\357\\273\\277' > t && cat \"$1\" >> t && cat t > \"$1\" && rm t";
    let folder = Folder::new(&[]);
    write(&folder, vec![shell("f", add)], "text").await;
    assert_eq!(fs::read_to_string(folder.path("a.x")).unwrap(), "text");
}

#[tokio::test]
async fn formatters_see_their_own_variables_and_none_of_ours() {
    let folder = Folder::new(&[]);
    write(&folder, vec![shell("f", "printf \"$ADDED$HOME\" > \"$1\"")], "x").await;
    assert_eq!(fs::read_to_string(folder.path("a.x")).unwrap(), "set");
}

#[tokio::test]
async fn much_output_does_not_hold_up_a_formatter() {
    let folder = Folder::new(&[]);
    let script = "head -c 1000000 /dev/zero; printf done > \"$1\"";
    write(&folder, vec![shell("f", script)], "x").await;
    assert_eq!(fs::read_to_string(folder.path("a.x")).unwrap(), "done");
}

fn names(setting: FormatterSetting) -> Vec<String> {
    configured(setting).unwrap().into_iter().map(|formatter| formatter.name).collect()
}

#[test]
fn formatters_are_off_unless_somebody_turns_them_on() {
    assert!(names(FormatterSetting::Off).is_empty());
    assert!(names(FormatterSetting::BuiltIn).contains(&"rustfmt".to_owned()));
    for name in ["ruff", "uv"] {
        let off = FormatterEntry { disabled: true, ..FormatterEntry::default() };
        let left = names(FormatterSetting::With(vec![(name.to_owned(), off)]));
        assert!(!left.contains(&"ruff".to_owned()) && !left.contains(&"uv".to_owned()));
    }
}

#[test]
fn an_entry_that_cannot_work_says_what_is_missing() {
    let command = |words: &[&str]| Some(words.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>());
    let cases = [
        (FormatterEntry::default(), "needs command and extensions"),
        (FormatterEntry { command: command(&["x"]), ..FormatterEntry::default() }, "needs command"),
        (FormatterEntry { command: command(&[]), ..FormatterEntry::default() }, "command is empty"),
    ];
    for (entry, expected) in cases {
        let error =
            configured(FormatterSetting::With(vec![("mine".to_owned(), entry)])).unwrap_err();
        assert!(error.starts_with("formatter.mine: ") && error.contains(expected), "{error}");
    }
}

#[test]
fn a_built_in_formatter_is_chosen_by_what_the_project_says() {
    let folder = Folder::new(&[
        ("js/package.json", b"{\"devDependencies\": {\"prettier\": \"3\"}}"),
        ("js/in/a.ts", b""),
        ("plain/a.ts", b""),
        ("py/ruff.toml", b""),
        ("py/a.py", b""),
        ("other/a.py", b""),
        ("node_modules/.bin/prettier", b""),
        ("node_modules/.bin/ruff", b""),
        ("node_modules/.bin/uv", b""),
    ]);
    for name in ["prettier", "ruff", "uv"] {
        let file = folder.path(&format!("node_modules/.bin/{name}"));
        fs::set_permissions(file, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let chosen = |file: &str, trusted: bool| -> Vec<String> {
        let formatters =
            Formatters::new(FormatterSetting::BuiltIn, place(&folder, trusted), vec![]).unwrap();
        let file = folder.path(file);
        let all = formatters.list.iter().filter(|formatter| formatter.takes(&file));
        all.filter(|f| formatters.program_for(f, &file).is_some()).map(|f| f.name.clone()).collect()
    };
    let cases: [(&str, &[&str]); 4] = [
        ("js/in/a.ts", &["prettier"]),
        ("plain/a.ts", &[]),
        ("py/a.py", &["ruff"]),
        ("other/a.py", &["uv"]),
    ];
    for (file, expected) in cases {
        assert_eq!(chosen(file, true), expected, "{file}");
        assert!(
            chosen(file, false).is_empty(),
            "{file}: the project's own programs are not trusted"
        );
    }
}
