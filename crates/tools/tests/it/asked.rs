//! What calls declare before anybody decides: the keys, patterns and "always" of the rules.

use std::fs;
use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use toolwright_permission::Request;
use toolwright_tool::{
    Access, CallRequest, Decision, Gate, Pipeline, PipelineOptions, Question, Registry, Workspace,
};
use toolwright_tools::{BashOptions, Feedback, register_all};

struct Nobody;

impl Gate for Nobody {
    fn decide<'a>(&'a self, _: &'a Question) -> BoxFuture<'a, Decision> {
        std::future::ready(Decision::Allow { why: "test".into() }).boxed()
    }

    fn allows_silently(&self, _: &[Request]) -> bool {
        true
    }
}

struct Project {
    folder: tempfile::TempDir,
    workspace: Arc<Workspace>,
    pipeline: Pipeline,
}

impl Project {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        for path in ["w/src", "w/.git", "outside"] {
            fs::create_dir_all(folder.path().join(path)).unwrap();
        }
        for path in ["w/src/secret.ts", "w/a", "w/b", "w/c", "outside/there.txt"] {
            fs::write(folder.path().join(path), "1\n").unwrap();
        }
        let registry = Registry::default();
        register_all(&registry, BashOptions::default(), &Feedback::default());
        let workspace = Arc::new(Workspace::new(&folder.path().join("w")).unwrap());
        let options = PipelineOptions::new(folder.path().join("outputs"));
        let pipeline = Pipeline::new(registry, Arc::clone(&workspace), Arc::new(Nobody), options);
        Self { folder, workspace, pipeline }
    }

    /// Key, pattern and "always" of each request, without the temporary folder's name.
    async fn asked(&self, tool: &str, arguments: Value) -> Vec<(String, String, String)> {
        let call = CallRequest {
            name: tool.to_owned(),
            arguments: arguments.to_string(),
            ..CallRequest::default()
        };
        let plan = self.pipeline.look_at(&call).await.unwrap();
        let root = fs::canonicalize(self.folder.path()).unwrap().display().to_string();
        let short = |text: String| text.replace(&root, "T");
        let requests = plan.requests(&self.workspace).into_iter();
        requests.map(|r| (short(r.permission), short(r.pattern), short(r.always))).collect()
    }
}

/// Key, pattern and "always".
type Asked<'a> = (&'a str, &'a str, &'a str);

fn owned(expected: &[Asked<'_>]) -> Vec<(String, String, String)> {
    expected.iter().map(|(k, p, a)| ((*k).into(), (*p).into(), (*a).into())).collect()
}

#[tokio::test]
async fn reading_asks_for_the_path_whether_the_file_is_there_or_not() {
    let project = Project::new();
    let outside = project.folder.path().join("outside").display().to_string();
    let (folder, there, gone) =
        (outside.clone(), format!("{outside}/there.txt"), format!("{outside}/gone.txt"));
    let external = ("external_directory", "T/outside/*", "T/outside/*");
    let cases: &[(&str, &[Asked<'_>])] = &[
        ("src/secret.ts", &[("read", "src/secret.ts", "*")]),
        ("src/missing.ts", &[("read", "src/missing.ts", "*")]),
        (&there, &[external, ("read", "T/outside/there.txt", "*")]),
        (&gone, &[external, ("read", "T/outside/gone.txt", "*")]),
        ("../outside/gone.txt", &[external, ("read", "T/outside/gone.txt", "*")]),
        (&folder, &[external, ("read", "T/outside", "*")]),
    ];
    for (path, expected) in cases {
        let asked = project.asked("read", json!({ "filePath": path })).await;
        assert_eq!(asked, owned(expected), "{path}");
    }
}

#[tokio::test]
async fn one_patch_asks_once_for_all_its_files_and_for_where_they_move() {
    let project = Project::new();
    let text = "*** Begin Patch\n*** Add File: new\n+x\n*** Delete File: a\n*** Update File: b\n@@\n-1\n+2\n\
                *** Update File: c\n*** Move to: moved/c\n@@\n-1\n+2\n*** End Patch";
    let mut asked = project.asked("apply_patch", json!({ "patchText": text })).await;
    asked.sort();
    let edit = |path| ("edit", path, "*");
    let expected = [edit("a"), edit("b"), edit("c"), edit("moved/c"), edit("new")];
    assert_eq!(asked, owned(&expected));
}

#[tokio::test]
async fn a_move_over_another_file_shows_what_is_lost() {
    let project = Project::new();
    fs::write(project.folder.path().join("w/c"), "kept for years\n").unwrap();
    let text = "*** Begin Patch\n*** Update File: b\n*** Move to: c\n@@\n-1\n+2\n*** End Patch";
    let call = CallRequest {
        name: "apply_patch".to_owned(),
        arguments: json!({ "patchText": text }).to_string(),
        ..CallRequest::default()
    };
    let plan = project.pipeline.look_at(&call).await.unwrap();
    let diff_of = |name: &str| {
        let shown = plan.accesses.iter().find_map(|access| match access {
            Access::Write { path, diff } if path.ends_with(name) => Some(diff.clone()),
            _ => None,
        });
        shown.unwrap_or_default()
    };
    assert!(diff_of("b").contains("-1"), "{}", diff_of("b"));
    assert!(diff_of("c").contains("-kept for years"), "{}", diff_of("c"));
    assert!(diff_of("c").contains("+2"), "{}", diff_of("c"));
}

#[tokio::test]
async fn a_command_line_asks_for_each_of_its_commands() {
    let project = Project::new();
    let cases: &[(&str, &[&str])] = &[
        ("echo hello", &["echo hello"]),
        ("echo foo && echo bar", &["echo foo", "echo bar"]),
        ("git log --oneline -5", &["git log --oneline -5"]),
    ];
    for (command, expected) in cases {
        let asked = project.asked("bash", json!({ "command": command })).await;
        let own = asked.iter().filter(|(key, ..)| key == "bash");
        let patterns: Vec<&str> = own.map(|(_, pattern, _)| pattern.as_str()).collect();
        assert_eq!(patterns, *expected, "{command}");
    }
    let outside = project.folder.path().join("outside/there.txt").display().to_string();
    for command in ["cd ../outside".to_owned(), format!("echo $(cat \"{outside}\")")] {
        let asked = project.asked("bash", json!({ "command": command })).await;
        let external = ("external_directory".to_owned(), "T/outside/*".to_owned());
        let pairs: Vec<_> = asked.into_iter().map(|(key, pattern, _)| (key, pattern)).collect();
        assert!(pairs.contains(&external), "{command}: {pairs:?}");
    }
}
