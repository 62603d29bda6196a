//! One session in a temporary folder: its calls share a registry, as a session's do.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use toolwright_permission::Request;
use toolwright_session::{Ending, Outcome};
use toolwright_tool::{
    CallRequest, Decision, Gate, Pipeline, PipelineOptions, Question, Registry, Update, Workspace,
};
use toolwright_tools::{
    BashOptions, Feedback, Nearby, StaleEdits, register_all, register_file_tools,
};

/// Allows everything, after having done something that a person may do while they think.
struct Open {
    meanwhile: Box<dyn Fn() + Send + Sync>,
}

impl Gate for Open {
    fn decide<'a>(&'a self, _: &'a Question) -> BoxFuture<'a, Decision> {
        (self.meanwhile)();
        std::future::ready(Decision::Allow { why: "test".into() }).boxed()
    }

    fn allows_silently(&self, _: &[Request]) -> bool {
        true
    }
}

pub struct Session {
    pub folder: tempfile::TempDir,
    pipeline: Pipeline,
}

impl Session {
    pub fn new(files: &[(&str, &[u8])]) -> Self {
        Self::with(files, StaleEdits::Error, |_| {})
    }

    /// `meanwhile` happens between the plan and the run of each call, and is given the folder.
    pub fn with(
        files: &[(&str, &[u8])],
        stale: StaleEdits,
        meanwhile: impl Fn(&Path) + Send + Sync + 'static,
    ) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(folder.path()).unwrap().join("w");
        fs::create_dir_all(&root).unwrap();
        for (name, content) in files {
            let path = root.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        let registry = Registry::default();
        register_all(&registry, BashOptions::default(), &Feedback::default());
        register_file_tools(&registry, stale, &Feedback::default(), Nearby::default());
        let workspace = Arc::new(Workspace::new(&root).unwrap());
        let options = PipelineOptions::new(folder.path().join("outputs"));
        let gate = Arc::new(Open { meanwhile: Box::new(move || meanwhile(&root)) });
        let pipeline = Pipeline::new(registry, workspace, gate, options);
        Self { folder, pipeline }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        fs::canonicalize(self.folder.path()).unwrap().join("w").join(name)
    }

    pub fn bytes(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).unwrap()
    }

    /// Every file of the folder with its content.
    pub fn tree(&self) -> BTreeMap<String, Vec<u8>> {
        tree(&self.path(""))
    }

    pub async fn calls(&self, calls: &[(&str, Value)]) -> Vec<Outcome> {
        let (sender, mut updates) = mpsc::channel(8);
        let request = |(tool, arguments): &(&str, Value)| CallRequest {
            name: (*tool).to_owned(),
            arguments: arguments.to_string(),
            ..CallRequest::default()
        };
        let requests: Vec<CallRequest> = calls.iter().map(request).collect();
        let running = self.pipeline.run_calls(requests, CancellationToken::new(), sender);
        let watching = async {
            let mut settled: Vec<Option<Outcome>> = vec![None; calls.len()];
            while let Some(update) = updates.recv().await {
                match update {
                    Update::Starting { go, .. } => go.send(()).unwrap(),
                    Update::Settled { outcome, position } => settled[position] = Some(outcome),
                    Update::Progress { .. } | Update::Changed(_) => {}
                    Update::Fatal { message } => panic!("{message}"),
                }
            }
            settled.into_iter().map(Option::unwrap).collect()
        };
        tokio::join!(running, watching).1
    }

    pub async fn call(&self, tool: &str, arguments: Value) -> Outcome {
        self.calls(&[(tool, arguments)]).await.remove(0)
    }

    pub async fn ok(&self, tool: &str, arguments: Value) -> Outcome {
        let outcome = self.call(tool, arguments).await;
        assert_eq!(outcome.ending, Ending::Completed, "{}", outcome.output);
        outcome
    }

    pub async fn error(&self, tool: &str, arguments: Value) -> String {
        let outcome = self.call(tool, arguments).await;
        assert_eq!(outcome.ending, Ending::Failed, "{}", outcome.output);
        outcome.output
    }
}

pub fn tree(root: &Path) -> BTreeMap<String, Vec<u8>> {
    fn walk(root: &Path, folder: &Path, found: &mut BTreeMap<String, Vec<u8>>) {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if entry.file_type().unwrap().is_dir() {
                walk(root, &path, found);
            } else {
                let name = path.strip_prefix(root).unwrap().display().to_string();
                found.insert(name, fs::read(&path).unwrap_or_default());
            }
        }
    }
    let mut found = BTreeMap::new();
    walk(root, root, &mut found);
    found
}

pub fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt;
    fs::metadata("/proc/self").is_ok_and(|data| data.uid() == 0)
}
