use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use toolwright_lsp::{Entry, Options, Place, Servers, Setting, Timing, configured};
use toolwright_session::{Ending, Outcome};
use toolwright_tool::Registry;

use crate::tests::Place as Folder;
use crate::{BashOptions, Feedback, FormatterSetting, Formatters, register_all};

/// Long enough for any machine; nothing waits that long unless it fails.
const PATIENT: Duration = Duration::from_secs(60);

struct Project {
    folder: Folder,
    registry: Registry,
}

impl Project {
    /// Nothing where there is no Python to run the scripted server with.
    fn new(files: &[(&str, &[u8])]) -> Option<Self> {
        let folder = Folder::new(files);
        let directory = folder.path("");
        let place = Place {
            directory: directory.clone(),
            worktree: directory,
            trusted: false,
            path: std::env::var_os("PATH").unwrap_or_default(),
            virtual_env: None,
        };
        let system = Some(PathBuf::from("/usr/bin/python3")).filter(|file| file.exists());
        let Some(python) = system.or_else(|| place.program("python3", &place.directory)) else {
            println!("skipped: no python3");
            return None;
        };
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../lsp/tests/fake_server.py");
        let entry = Entry {
            command: Some([python.to_str().unwrap(), script].map(str::to_owned).to_vec()),
            extensions: Some(vec![".fake".to_owned()]),
            ..Entry::default()
        };
        let servers = configured(Setting::With(vec![("fake".to_owned(), entry)]), false).unwrap();
        let timing = Timing {
            initialize: PATIENT,
            start_wait: PATIENT,
            findings: PATIENT,
            request: PATIENT,
            debounce: Duration::from_millis(10),
            ..Timing::default()
        };
        let options = Options {
            place: place.clone(),
            servers,
            withheld: vec![],
            passed: vec![],
            sandbox: None,
        };
        let formatters = Formatters::new(FormatterSetting::Off, place, vec![]).unwrap();
        let feedback = Feedback::new(Servers::new(options, timing), formatters);
        let registry = Registry::default();
        register_all(&registry, BashOptions::default(), &feedback);
        Some(Self { folder, registry })
    }

    async fn call(&self, tool: &str, arguments: Value) -> Outcome {
        self.folder
            .call_with(self.registry.clone(), tool, arguments, CancellationToken::new())
            .await
    }

    async fn lsp(&self, operation: &str, arguments: Value) -> Outcome {
        let mut all =
            json!({ "operation": operation, "filePath": "a.fake", "line": 1, "character": 1 });
        all.as_object_mut().unwrap().extend(arguments.as_object().unwrap().clone());
        self.call("lsp", all).await
    }

    fn text(&self, name: &str) -> String {
        fs::read_to_string(self.folder.path(name)).unwrap()
    }
}

#[tokio::test]
async fn an_edit_tells_the_errors_that_it_made() {
    let Some(project) = Project::new(&[("a.fake", b"one\n")]) else { return };
    let path = project.folder.path("a.fake");
    let edit = json!({ "filePath": "a.fake", "oldString": "one", "newString": "WARN then ERROR" });
    let outcome = project.call("edit", edit).await;
    let expected = format!(
        "Edit applied successfully.\n\nLSP errors detected in this file, please fix:\n\
         <diagnostics file=\"{}\">\nERROR [1:11] an error of two lines\n</diagnostics>",
        path.display()
    );
    assert_eq!(outcome.output, expected);
    let told = &outcome.details["diagnostics"][path.to_str().unwrap()];
    assert_eq!(told.as_array().unwrap().len(), 2, "{}", outcome.details);
    let edit = json!({ "filePath": "a.fake", "oldString": "ERROR", "newString": "nothing" });
    assert_eq!(project.call("edit", edit).await.output, "Edit applied successfully.");
}

#[tokio::test]
async fn a_write_tells_twenty_errors_and_five_other_files() {
    let Some(project) = Project::new(&[]) else { return };
    let content = "OTHERS\n".to_owned() + &"ERROR\n".repeat(25);
    let outcome = project.call("write", json!({ "filePath": "a.fake", "content": content })).await;
    assert_eq!(outcome.output.matches("LSP errors detected in other files:").count(), 5);
    assert!(outcome.output.contains("ERROR [21:1]"), "{}", outcome.output);
    assert!(outcome.output.contains("\n... and 5 more\n</diagnostics>"), "{}", outcome.output);
    assert!(!outcome.output.contains("ERROR [22:1]"), "{}", outcome.output);
}

#[tokio::test]
async fn a_crashed_server_does_not_fail_the_edit() {
    let Some(project) = Project::new(&[]) else { return };
    let outcome = project.call("write", json!({ "filePath": "a.fake", "content": "CRASH" })).await;
    assert_eq!(outcome.ending, Ending::Completed);
    assert!(outcome.output.starts_with("Wrote file successfully."), "{}", outcome.output);
    assert!(
        outcome.output.contains("Note: The language server fake stopped"),
        "{}",
        outcome.output
    );
    assert_eq!(project.text("a.fake"), "CRASH");
}

#[tokio::test]
async fn whoever_stops_an_edit_does_not_wait_for_a_server_that_hangs() {
    let Some(project) = Project::new(&[("a.fake", b"")]) else { return };
    let (cancel, path) = (CancellationToken::new(), project.folder.path("a.fake"));
    let arguments = json!({ "filePath": "a.fake", "content": "HANG" });
    let call =
        project.folder.call_with(project.registry.clone(), "write", arguments, cancel.clone());
    let stop = async {
        while fs::read_to_string(&path).unwrap() != "HANG" {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        cancel.cancel();
    };
    let (outcome, ()) =
        tokio::time::timeout(PATIENT / 2, async { tokio::join!(call, stop) }).await.unwrap();
    assert!(outcome.output.starts_with("Wrote file successfully."), "{}", outcome.output);
}

#[tokio::test]
async fn questions_have_the_titles_and_answers_of_the_reference() {
    let Some(project) = Project::new(&[("a.fake", b"word word")]) else { return };
    let cases = [
        ("goToDefinition", "goToDefinition a.fake:1:1", "\"character\": 0"),
        ("findReferences", "findReferences a.fake:1:1", "\"character\": 5"),
        ("hover", "hover a.fake:1:1", "the word word"),
        ("goToImplementation", "goToImplementation a.fake:1:1", "\"uri\""),
        ("documentSymbol", "documentSymbol a.fake", "\"word\""),
        ("workspaceSymbol", "workspaceSymbol", "\"name\": \"1\""),
        ("prepareCallHierarchy", "prepareCallHierarchy a.fake:1:1", "\"word\""),
        ("incomingCalls", "incomingCalls a.fake:1:1", "\"from\""),
        ("outgoingCalls", "outgoingCalls a.fake:1:1", "No results found for outgoingCalls"),
        ("diagnostics", "diagnostics a.fake", "No results found for diagnostics"),
    ];
    for (operation, title, expected) in cases {
        let outcome = project.lsp(operation, json!({})).await;
        assert_eq!((outcome.ending, outcome.title.as_str()), (Ending::Completed, title));
        assert!(outcome.output.contains(expected), "{operation}: {}", outcome.output);
    }
    fs::write(project.folder.path("a.fake"), "WARN").unwrap();
    let outcome = project.lsp("diagnostics", json!({})).await;
    assert!(outcome.output.contains("WARN [1:1] a warning"), "{}", outcome.output);
}

#[tokio::test]
async fn questions_that_cannot_be_answered_say_why() {
    let Some(project) = Project::new(&[("a.fake", b"word"), ("b.txt", b"")]) else { return };
    let cases = [
        (json!({ "filePath": "none.fake" }), "File not found: "),
        (json!({ "filePath": "b.txt" }), "No LSP server available for this file type."),
        (json!({ "line": 0 }), "line"),
        (json!({ "line": null }), "needs the line and the character"),
    ];
    for (arguments, expected) in cases {
        let outcome = project.lsp("hover", arguments).await;
        assert_eq!(outcome.ending, Ending::Failed);
        assert!(outcome.output.contains(expected), "{}", outcome.output);
    }
    let outcome = project.lsp("rename", json!({})).await;
    assert!(outcome.output.contains("needs newName"), "{}", outcome.output);
}

#[tokio::test]
async fn a_rename_changes_all_files_and_nothing_else() {
    let marked = "\u{feff}🦀 old\r\nolder".as_bytes();
    let Some(project) =
        Project::new(&[("a.fake", "old(\"🦀\", old)\n".as_bytes()), ("b.fake", marked)])
    else {
        return;
    };
    let outcome = project.lsp("rename", json!({ "newName": "new" })).await;
    assert_eq!(outcome.ending, Ending::Completed, "{}", outcome.output);
    assert_eq!(outcome.output, "Renamed in 3 places of 2 files:\na.fake\nb.fake");
    assert_eq!(project.text("a.fake"), "new(\"🦀\", new)\n");
    assert_eq!(project.text("b.fake"), "\u{feff}🦀 new\r\nolder");
    assert!(outcome.details["diff"].as_str().unwrap().contains("+new(\"🦀\", new)"));
    let outcome = project.lsp("rename", json!({ "character": 4, "newName": "x" })).await;
    assert_eq!(outcome.ending, Ending::Completed, "{}", outcome.output);
}

#[test]
fn without_configuration_there_is_no_lsp_tool() {
    let registry = Registry::default();
    register_all(&registry, BashOptions::default(), &Feedback::default());
    assert!(!registry.contains("lsp"));
}
