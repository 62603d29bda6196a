//! The servers as a whole, over a scripted server in its own process.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};
use toolwright_proc::find_program;

use crate::{
    AskError, Entry, Options, Place, Query, Servers, Setting, Timing, apply_edits, configured,
    file_edits,
};

/// Long enough for any machine; nothing waits that long unless it fails.
const PATIENT: Duration = Duration::from_secs(60);

/// Waits that are meant to run out.
const SHORT: Duration = Duration::from_millis(300);

fn patient() -> Timing {
    Timing {
        initialize: PATIENT,
        start_wait: PATIENT,
        warm_up: Duration::ZERO,
        findings: PATIENT,
        pull: PATIENT,
        debounce: Duration::from_millis(10),
        request: PATIENT,
        alive: PATIENT,
    }
}

struct Project {
    folder: tempfile::TempDir,
    servers: Servers,
}

impl Project {
    /// Nothing where there is no Python to run the scripted server with.
    fn new(mode: &str, timing: Timing) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let python = find_program("python3", "/usr/bin:/usr/local/bin".as_ref(), &|_| false)
            .or_else(|| {
                find_program("python3", &std::env::var_os("PATH").unwrap_or_default(), &|_| false)
            });
        let Some(python) = python else {
            println!("skipped: no python3");
            return None;
        };
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fake_server.py");
        let command = [python.to_str().unwrap(), script, mode].map(str::to_owned).to_vec();
        let entry = Entry {
            command: Some(command),
            extensions: Some(vec![".fake".to_owned()]),
            ..Entry::default()
        };
        let directory = fs::canonicalize(folder.path()).unwrap();
        let place = Place {
            directory: directory.clone(),
            worktree: directory,
            trusted: false,
            path: "/usr/bin".into(),
            virtual_env: None,
        };
        let servers = configured(Setting::With(vec![("fake".to_owned(), entry)]), false).unwrap();
        let servers = servers.into_iter().filter(|server| server.id == "fake").collect();
        let options = Options {
            place,
            servers,
            withheld: vec!["TW_TEST_KEY".to_owned()],
            passed: vec![],
            sandbox: None,
        };
        Some(Self { folder, servers: Servers::new(options, timing) })
    }

    fn file(&self, name: &str, text: &str) -> PathBuf {
        let file = fs::canonicalize(self.folder.path()).unwrap().join(name);
        fs::write(&file, text).unwrap();
        file
    }

    /// The lines of what is found in a file that was just given this text.
    async fn check(&self, name: &str, text: &str) -> Vec<String> {
        let file = self.file(name, text);
        let report = self.servers.check(std::slice::from_ref(&file)).await;
        assert!(report.notices.is_empty(), "{:?}", report.notices);
        lines(&report.findings, &file)
    }

    async fn notices(&self, name: &str, text: &str) -> Vec<String> {
        let file = self.file(name, text);
        self.servers.check(&[file]).await.notices
    }

    fn starts(&self) -> usize {
        fs::read_to_string(self.folder.path().join(".starts")).map_or(0, |t| t.lines().count())
    }

    async fn ask(&self, file: &Path, position: (u32, u32), query: Query) -> Vec<Value> {
        self.servers.ask(file, position, &query).await.unwrap()
    }
}

type Findings = std::collections::BTreeMap<PathBuf, Vec<crate::Diagnostic>>;

fn lines(findings: &Findings, file: &Path) -> Vec<String> {
    findings.get(file).into_iter().flatten().map(crate::Diagnostic::line).collect()
}

#[tokio::test]
async fn findings_follow_each_change_of_a_file() {
    for mode in ["", "pull"] {
        let Some(project) = Project::new(mode, patient()) else { return };
        let found = project.check("a.fake", "fine\n").await;
        assert!(found.is_empty(), "{mode} {found:?}");
        let found = project.check("a.fake", "fine\n🦀 ERROR WARN").await;
        assert_eq!(found, ["ERROR [2:4] an error of two lines", "WARN [2:10] a warning"], "{mode}");
        assert_eq!(project.check("a.fake", "ERROR").await.len(), 1, "{mode}");
        assert!(project.check("a.fake", "fine again").await.is_empty(), "{mode}");
        // What is unchanged is known without a further word.
        assert!(project.check("a.fake", "fine again").await.is_empty(), "{mode}");
        assert_eq!(project.starts(), 1);
    }
}

#[tokio::test]
async fn one_server_is_shared_by_all_who_ask_at_once() {
    let Some(project) = Project::new("", patient()) else { return };
    let names = ["a.fake", "b.fake", "c.fake", "a.fake"];
    let checks = names.map(|name| project.check(name, "ERROR"));
    let found = futures_util::future::join_all(checks).await;
    assert!(found.iter().all(|lines| lines.len() == 1), "{found:?}");
    assert_eq!(project.starts(), 1);
    let status = project.servers.status();
    assert!(status.len() == 1 && status[0].connected && status[0].id == "fake");
}

#[tokio::test]
async fn findings_about_an_older_version_do_not_count() {
    let Some(project) = Project::new("", patient()) else { return };
    assert!(project.check("a.fake", "fine, LATE").await.is_empty());
    assert!(project.check("a.fake", "fine, LATE and changed").await.is_empty());
}

#[tokio::test]
async fn what_is_told_about_other_files_is_reported_too() {
    let Some(project) = Project::new("", patient()) else { return };
    let file = project.file("a.fake", "OTHERS");
    let report = project.servers.check(&[file]).await;
    assert_eq!(report.findings.len(), 8);
}

#[tokio::test]
async fn a_file_that_is_gone_has_no_findings() {
    let Some(project) = Project::new("", patient()) else { return };
    assert_eq!(project.check("a.fake", "ERROR").await.len(), 1);
    let file = project.folder.path().join("a.fake");
    fs::remove_file(&file).unwrap();
    let file = fs::canonicalize(project.folder.path()).unwrap().join("a.fake");
    assert!(project.servers.check(&[file]).await.findings.is_empty());
    assert_eq!(project.check("a.fake", "ERROR").await.len(), 1);
}

#[tokio::test]
async fn nothing_is_started_for_other_files_or_places() {
    let Some(project) = Project::new("", patient()) else { return };
    assert!(project.check("a.other", "ERROR").await.is_empty());
    let outside = tempfile::tempdir().unwrap();
    let file = outside.path().join("a.fake");
    fs::write(&file, "ERROR").unwrap();
    assert!(project.servers.check(std::slice::from_ref(&file)).await.findings.is_empty());
    let error = project.servers.ask(&file, (0, 0), &Query::Hover).await.unwrap_err();
    assert_eq!(error.to_string(), "No LSP server available for this file type.");
    assert_eq!(project.starts(), 0);
}

#[tokio::test]
async fn a_crashed_server_is_told_of_once_and_started_again_three_times() {
    let Some(project) = Project::new("", patient()) else { return };
    let told = project.notices("a.fake", "CRASH").await;
    assert_eq!(told.len(), 1, "{told:?}");
    for expected in ["language server fake stopped", "code 3", "boom goes the server"] {
        assert!(told[0].contains(expected), "{told:?}");
    }
    assert_eq!(project.check("a.fake", "ERROR").await.len(), 1, "it works again");
    for round in 0..3 {
        let told = project.notices("a.fake", &format!("CRASH {round}")).await;
        assert!(told.is_empty(), "{told:?}");
    }
    assert_eq!(project.starts(), 4);
    let told = project.notices("a.fake", "ERROR").await;
    assert!(told[0].contains("not started again"), "{told:?}");
    assert!(project.notices("a.fake", "ERROR!").await.is_empty());
    assert_eq!(project.starts(), 4);
    let file = project.file("a.fake", "word");
    let error = project.servers.ask(&file, (0, 0), &Query::Hover).await.unwrap_err();
    assert!(error.to_string().contains("stopped 4 times"), "{error}");
}

#[tokio::test]
async fn a_server_that_hangs_costs_its_wait_and_is_ended() {
    let timing = Timing { findings: SHORT, alive: SHORT, ..patient() };
    let Some(project) = Project::new("", timing) else { return };
    assert!(project.notices("a.fake", "HANG").await.is_empty());
    // The probe ends it in the background; nobody waits for that but this test.
    while project.servers.status()[0].connected {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let told = project.notices("a.fake", "fine").await;
    assert!(told.len() == 1 && told[0].contains("no longer answers"), "{told:?}");
    assert_eq!(project.starts(), 2);
}

#[tokio::test]
async fn a_server_that_has_nothing_to_say_is_left_alone() {
    let timing = Timing { findings: SHORT, ..patient() };
    let Some(project) = Project::new("", timing) else { return };
    assert!(project.check("a.fake", "SILENT").await.is_empty());
    let file = project.file("a.fake", "word");
    assert_eq!(project.ask(&file, (0, 0), Query::Hover).await.len(), 1);
    assert_eq!((project.starts(), project.servers.status()[0].connected), (1, true));
}

#[tokio::test]
async fn a_server_that_never_gets_ready_is_not_waited_for_again() {
    let timing = Timing { initialize: SHORT, start_wait: PATIENT, ..patient() };
    let Some(project) = Project::new("deaf", timing) else { return };
    let told = project.notices("a.fake", "ERROR").await;
    assert!(told.len() == 1 && told[0].contains("did not answer initialize"), "{told:?}");
    assert!(project.notices("a.fake", "ERROR!").await.is_empty());
}

#[tokio::test]
async fn an_edit_does_not_wait_for_a_slow_start() {
    let Some(project) = Project::new("deaf", Timing { start_wait: SHORT, ..patient() }) else {
        return;
    };
    let told = project.notices("a.fake", "ERROR").await;
    assert!(told.len() == 1 && told[0].contains("still starting"), "{told:?}");
}

#[tokio::test]
async fn a_server_that_cannot_start_says_why() {
    let Some(project) = Project::new("die", patient()) else { return };
    let told = project.notices("a.fake", "ERROR").await;
    assert!(told.len() == 1 && told[0].contains("cannot work like this"), "{told:?}");
    assert!(project.notices("a.fake", "ERROR!").await.is_empty(), "told once");
}

#[tokio::test]
async fn noise_and_large_messages_do_not_hide_what_is_said() {
    for word in ["GARBAGE", "LARGE"] {
        let Some(project) = Project::new("", patient()) else { return };
        assert_eq!(project.check("a.fake", &format!("{word} ERROR")).await.len(), 1, "{word}");
        assert_eq!(
            project.check("a.fake", &format!("{word} ERROR ERROR")).await.len(),
            2,
            "{word}"
        );
    }
}

#[tokio::test]
async fn a_message_without_measure_ends_the_server_and_nothing_else() {
    let Some(project) = Project::new("", patient()) else { return };
    let told = project.notices("a.fake", "HUGE").await;
    assert!(told.len() == 1 && told[0].contains("99999999999 bytes"), "{told:?}");
    assert_eq!(project.check("a.fake", "ERROR").await.len(), 1);
}

#[tokio::test]
async fn questions_are_answered_as_the_protocol_does() {
    let Some(project) = Project::new("", patient()) else { return };
    let file = project.file("a b.fake", "let word = 1;\n🦀 word");
    project.file("c.fake", "word");
    let at = (1, 4);
    let hover = project.ask(&file, at, Query::Hover).await;
    assert_eq!(hover[0]["contents"]["value"], "the word word");
    let definition = project.ask(&file, at, Query::Definition).await;
    assert_eq!(definition[0]["range"]["start"], json!({ "line": 0, "character": 4 }));
    assert_eq!(project.ask(&file, at, Query::References).await.len(), 3);
    assert_eq!(project.ask(&file, at, Query::Implementation).await.len(), 1);
    assert_eq!(project.ask(&file, at, Query::DocumentSymbols).await.len(), 4);
    let symbols = Query::WorkspaceSymbols { query: "x".to_owned() };
    assert_eq!(project.ask(&file, at, symbols).await.len(), 10);
    assert_eq!(project.ask(&file, at, Query::PrepareCalls).await[0]["name"], "word");
    let calls = project.ask(&file, at, Query::IncomingCalls).await;
    assert_eq!(calls[0]["from"]["name"], "word");
    // The scripted server does not know this one.
    assert_eq!(project.ask(&file, at, Query::OutgoingCalls).await, Vec::<Value>::new());
}

#[tokio::test]
async fn a_rename_says_what_to_change_in_every_file() {
    let Some(project) = Project::new("", patient()) else { return };
    let file = project.file("a.fake", "🦀🦀 old\nold older");
    project.file("b.fake", "x old");
    let query = Query::Rename { new_name: "new".to_owned() };
    let answer = project.ask(&file, (1, 1), query).await;
    let edits = file_edits(&answer[0]).unwrap();
    let renamed: Vec<String> = edits
        .iter()
        .map(|edit| apply_edits(&fs::read_to_string(&edit.path).unwrap(), &edit.edits).unwrap())
        .collect();
    assert_eq!(renamed, ["🦀🦀 new\nnew older", "x new"]);
}

#[tokio::test]
async fn a_question_to_a_crashed_server_starts_it_again() {
    let Some(project) = Project::new("", patient()) else { return };
    project.notices("a.fake", "CRASH").await;
    let file = project.file("a.fake", "word");
    assert_eq!(project.ask(&file, (0, 0), Query::Hover).await.len(), 1);
    assert_eq!(project.starts(), 2);
}

#[tokio::test]
async fn a_missing_server_is_named_when_somebody_asks_and_silent_after_edits() {
    let folder = tempfile::tempdir().unwrap();
    let directory = fs::canonicalize(folder.path()).unwrap();
    let place = Place {
        directory: directory.clone(),
        worktree: directory.clone(),
        trusted: true,
        path: "/nowhere".into(),
        virtual_env: None,
    };
    let servers = configured(Setting::BuiltIn, false).unwrap();
    let servers = Servers::new(
        Options { place, servers, withheld: vec![], passed: vec![], sandbox: None },
        patient(),
    );
    let file = directory.join("main.go");
    fs::write(&file, "package main").unwrap();
    let report = servers.check(std::slice::from_ref(&file)).await;
    assert!(report.findings.is_empty() && report.notices.is_empty());
    let error = servers.ask(&file, (0, 0), &Query::Hover).await.unwrap_err();
    let AskError::NoServer { reason } = &error else { panic!("{error}") };
    assert_eq!(reason.as_deref(), Some("gopls was not found on PATH"));
}
