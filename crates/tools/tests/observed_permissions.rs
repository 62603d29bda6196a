//! Rules decide as people know them from OpenCode: cases observed there, where the folder with them is
//! at hand. Each case gives the only layer of rules; where we are stricter on purpose it is listed.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use toolwright_permission::{Action, Layer, LayerKind, Policy, Request, Rule};
use toolwright_tool::{
    Audience, CallRequest, Decision, DeniedBy, Gate, Pipeline, PipelineOptions, Question, Registry,
    Workspace,
};
use toolwright_tools::{BashOptions, Feedback, register_all};

/// Where we say something else, and why.
const STRICTER: &[(&str, &str)] = &[(
    "bash_dash_c_is_not_looked_into",
    "a denied command stays denied inside the shell that runs it",
)];

/// Judges, remembers, and lets nothing run.
struct Judge {
    policy: Policy,
    seen: Mutex<Option<Action>>,
}

impl Gate for Judge {
    fn decide<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Decision> {
        let strictest = question.requests.iter().map(|r| self.policy.judge(r).action).max();
        *self.seen.lock().unwrap() = Some(strictest.unwrap_or(Action::Allow));
        let message = "only looking".to_owned();
        std::future::ready(Decision::Deny { by: DeniedBy::Rule, message }).boxed()
    }

    fn allows_silently(&self, _: &[Request]) -> bool {
        true
    }
}

fn project() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (path, text) in [("a.txt", "a\n"), ("x.env", "SECRET=1\n"), ("sub/b.txt", "b\n")] {
        let path = folder.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    std::fs::create_dir(folder.path().join(".git")).unwrap();
    std::fs::write(folder.path().join(".git/config"), "").unwrap();
    folder
}

fn policy(case: &Value) -> Policy {
    let rule = |rule: &Value| {
        let action = match rule[2].as_str().unwrap() {
            "allow" => Action::Allow,
            "ask" => Action::Ask,
            _ => Action::Deny,
        };
        Rule::new(rule[0].as_str().unwrap(), rule[1].as_str().unwrap(), action, "/home/x")
    };
    let rules = case["rules"].as_array().unwrap().iter().map(rule).collect();
    let own = Layer { kind: LayerKind::Session, origin: "case".into(), rules };
    // What the observed program ships: everything but a few things is allowed.
    let shipped = [
        ("*", "*", Action::Allow),
        ("doom_loop", "*", Action::Ask),
        ("external_directory", "*", Action::Ask),
        ("read", "*.env", Action::Ask),
        ("read", "*.env.*", Action::Ask),
        ("read", "*.env.example", Action::Allow),
    ];
    let shipped = shipped.map(|(k, p, a)| Rule::new(k, p, a, "/home/x")).to_vec();
    let shipped = Layer { kind: LayerKind::Defaults, origin: "shipped".into(), rules: shipped };
    Policy::new(vec![shipped, own])
}

async fn decide(case: &Value, folder: &Path) -> String {
    let root = folder.display().to_string();
    let input = case["input"].to_string().replace("@/", &format!("{root}/"));
    let workspace = Arc::new(Workspace::new(folder).unwrap());
    let gate = Arc::new(Judge { policy: policy(case), seen: Mutex::default() });
    let registry = Registry::default();
    register_all(&registry, BashOptions::default(), &Feedback::default());
    let tool = case["tool"].as_str().unwrap();
    let permission_denied = |key: &str| gate.policy.always_denies(key);
    let audience = Audience { model: "m", denied: &permission_denied, budget_tokens: None };
    let offered = registry.offer(&audience).definitions.iter().any(|d| d.name == tool);
    if !offered {
        return "deny".to_owned();
    }
    let options = PipelineOptions::new(folder.join("outputs"));
    let pipeline = Pipeline::new(registry, workspace, Arc::clone(&gate) as _, options);
    let call =
        CallRequest { id: String::new(), name: tool.to_owned(), arguments: input, cut: false };
    let (sender, mut updates) = mpsc::channel(16);
    let running = pipeline.run_calls(vec![call], CancellationToken::new(), sender);
    let watching = async { while updates.recv().await.is_some() {} };
    tokio::join!(running, watching);
    match *gate.seen.lock().unwrap() {
        Some(Action::Allow) => "allow".to_owned(),
        Some(Action::Ask) => "ask".to_owned(),
        Some(Action::Deny) => "deny".to_owned(),
        None => "never asked".to_owned(),
    }
}

#[tokio::test]
async fn rules_decide_as_they_were_observed_to() {
    let file: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../../shared/fixtures/permission/cases.json");
    let Ok(text) = std::fs::read_to_string(&file) else {
        println!("skipped: no observed cases at {}", file.display());
        return;
    };
    let cases: Vec<Value> = serde_json::from_str(&text).unwrap();
    let known: Vec<String> = {
        let registry = Registry::default();
        register_all(&registry, BashOptions::default(), &Feedback::default());
        registry.names()
    };
    let mut wrong = Vec::new();
    for case in &cases {
        let name = case["name"].as_str().unwrap();
        if !known.iter().any(|tool| case["tool"] == **tool) {
            continue;
        }
        let folder = project();
        let decided = decide(case, folder.path()).await;
        let listed = STRICTER.iter().any(|(stricter, _)| *stricter == name);
        if (case["result"] == *decided) == listed {
            wrong.push(format!("{name}: observed {}, decided {decided}: {case}", case["result"]));
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}
