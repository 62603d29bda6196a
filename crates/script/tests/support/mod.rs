//! A folder with scripts, and a guard that writes down what was asked.

#![allow(dead_code)]

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use toolwright_script::{
    CallTerms, Guard, Host, HostOptions, Kind, Limit, Permit, Script, ScriptError,
};
use toolwright_tool::{Plan, Workspace};

pub struct Shop {
    folder: tempfile::TempDir,
    refuse: Option<&'static str>,
    asked: Arc<Mutex<Vec<String>>>,
}

struct Clerk {
    refuse: Option<&'static str>,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Guard for Clerk {
    fn ask<'a>(&'a self, plan: Plan) -> BoxFuture<'a, Result<Permit, String>> {
        let refused = self.refuse.is_some_and(|word| plan.summary.contains(word));
        self.asked.lock().unwrap().push(plan.summary.clone());
        let answer =
            if refused { Err(format!("refused: {}", plan.summary)) } else { Ok(Permit::default()) };
        std::future::ready(answer).boxed()
    }
}

impl Shop {
    pub fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap(), refuse: None, asked: Arc::default() }
    }

    pub fn refusing(word: &'static str) -> Self {
        Self { refuse: Some(word), ..Self::new() }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    }

    pub fn host(&self) -> Arc<Host> {
        Host::new(HostOptions {
            workspace: Arc::new(Workspace::new(self.folder.path()).unwrap()),
            environment: std::env::vars().collect(),
            withheld: Vec::new(),
            passed: Vec::new(),
            sandbox: None,
            own_folders: Vec::new(),
            client: None,
        })
    }

    pub fn script(&self, name: &str) -> Script {
        Script::new(&self.path(name), Kind::Tools, self.host())
    }

    pub fn tools(&self, name: &str, text: &str) -> Script {
        self.write(&format!("tools/{name}"), text);
        self.script(&format!("tools/{name}"))
    }

    pub fn plugin(&self, name: &str, text: &str) -> Script {
        let path = self.write(&format!("plugin/{name}"), text);
        Script::new(&path, Kind::Plugin, self.host())
    }

    pub fn guard(&self) -> Arc<dyn Guard> {
        Arc::new(Clerk { refuse: self.refuse, asked: Arc::clone(&self.asked) })
    }

    pub fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }

    pub async fn call(
        &self,
        script: &Script,
        name: &str,
        args: Value,
    ) -> Result<String, ScriptError> {
        self.call_within(script, name, args, Duration::from_secs(30)).await
    }

    pub async fn call_within(
        &self,
        script: &Script,
        name: &str,
        args: Value,
        deadline: Duration,
    ) -> Result<String, ScriptError> {
        let context = serde_json::json!({ "sessionID": "s", "messageID": "", "agent": "build" });
        let terms = CallTerms {
            guard: Some(self.guard()),
            limit: Limit::Whole(deadline),
            cancel: CancellationToken::new(),
        };
        let result = script.call_tool(name, args, context, terms).await?;
        Ok(result["output"].as_str().unwrap_or_default().to_owned())
    }
}

pub fn thrown(error: &ScriptError) -> String {
    match error {
        ScriptError::Thrown { message, .. } => message.clone(),
        other => panic!("not thrown: {other}"),
    }
}

pub fn lines(path: &Path) -> Vec<String> {
    std::fs::read_to_string(path).unwrap_or_default().lines().map(str::to_owned).collect()
}
