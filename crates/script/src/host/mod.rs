//! What a script asks of the world outside its engine. Files, processes and the network are asked for
//! in the same way and by the same rules as a tool's own.

mod files;
mod net;
mod permit;
mod process;

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use toolwright_proc::sandbox::Find;
use toolwright_tool::{Access, Extent, Plan, Workspace};

pub use permit::Permit;

/// Notices that wait to be shown.
const NOTICES_CAP: usize = 64;

/// Whoever decides what a script may do, and hears how it gets on.
pub trait Guard: Send + Sync {
    /// Must be allowed before it happens; the words of a refusal reach the script.
    fn ask<'a>(&'a self, plan: Plan) -> BoxFuture<'a, Result<Permit, String>>;
    fn progress(&self, _text: &str) {}
    /// Another tool, for scripts that may call them.
    fn call_tool<'a>(
        &'a self,
        name: &'a str,
        _input: Value,
    ) -> BoxFuture<'a, Result<Value, String>> {
        let refusal = format!("{name} cannot be called from here");
        Box::pin(std::future::ready(Err(refusal)))
    }
}

/// Where scripts work.
pub struct HostOptions {
    pub workspace: Arc<Workspace>,
    /// What they see as the environment.
    pub environment: BTreeMap<String, String>,
    /// Variables of ours that their children must not see.
    pub withheld: Vec<String>,
    /// Variables that look like secrets and may be seen all the same.
    pub passed: Vec<String>,
    /// What holds the commands of scripts, as it holds all others.
    pub sandbox: Option<Find>,
    /// Folders of scripts: they may read what lies with them.
    pub own_folders: Vec<PathBuf>,
    /// Who answers what plugins ask of the program itself.
    pub client: Option<Arc<dyn Client>>,
}

/// What plugins know as `client`: the program's own interface, by the names of its parts.
pub trait Client: Send + Sync {
    /// Nothing, where there is no such part here.
    fn call<'a>(
        &'a self,
        name: &'a str,
        input: Value,
    ) -> BoxFuture<'a, Option<Result<Value, String>>>;
}

pub struct Host {
    options: HostOptions,
    client: OnceLock<Result<reqwest::Client, String>>,
    notices: Mutex<Vec<String>>,
    /// All that is configured, as plugins are shown it.
    settings: Mutex<Value>,
}

/// What went wrong, as scripts know it.
#[derive(Debug)]
pub(crate) struct HostError {
    message: String,
    code: Option<&'static str>,
    /// Fields of its own.
    more: Value,
}

impl HostError {
    fn coded(code: &'static str, message: String) -> Self {
        Self { message, code: Some(code), more: Value::Null }
    }

    pub(crate) fn to_json(&self) -> Value {
        json!({ "message": self.message, "code": self.code, "more": self.more })
    }
}

impl From<String> for HostError {
    fn from(message: String) -> Self {
        Self { message, code: None, more: Value::Null }
    }
}

type Done = Result<Value, HostError>;

impl Host {
    pub fn new(options: HostOptions) -> Arc<Self> {
        Arc::new(Self {
            options,
            client: OnceLock::new(),
            notices: Mutex::default(),
            settings: Mutex::new(json!({})),
        })
    }

    /// What plugins that begin from here on find configured.
    pub fn set_settings(&self, settings: Value) {
        *self.settings.lock().unwrap_or_else(PoisonError::into_inner) = settings;
    }

    pub(crate) fn settings(&self) -> String {
        self.settings.lock().unwrap_or_else(PoisonError::into_inner).to_string()
    }

    /// What scripts want a person to know, since the last time.
    pub fn take_notices(&self) -> Vec<String> {
        std::mem::take(&mut *self.notices.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Keeps something for people until somebody asks for it.
    pub fn notice(&self, text: String) {
        let mut notices = self.notices.lock().unwrap_or_else(PoisonError::into_inner);
        if notices.len() < NOTICES_CAP {
            notices.push(text);
        }
    }

    /// Said while no call is under way.
    pub(crate) fn log(&self, level: &str, text: &str) {
        if matches!(level, "warn" | "error") {
            self.notice(text.to_owned());
        }
    }

    pub(crate) fn workspace(&self) -> &Arc<Workspace> {
        &self.options.workspace
    }

    pub(crate) fn own_folders(&self) -> &[PathBuf] {
        &self.options.own_folders
    }

    pub(crate) fn withheld(&self) -> &[String] {
        &self.options.withheld
    }

    pub(crate) fn sandbox(&self) -> Option<&Find> {
        self.options.sandbox.as_ref()
    }

    pub(crate) fn facts(&self) -> Value {
        let variable = |name: &str| self.options.environment.get(name).cloned();
        let platform = if cfg!(target_os = "macos") { "darwin" } else { std::env::consts::OS };
        let arch = match std::env::consts::ARCH {
            "x86_64" => "x64",
            "aarch64" => "arm64",
            other => other,
        };
        let temporary = std::env::temp_dir();
        // Whose process this is: the system shows it as a folder of theirs, and so is their home.
        let home = variable("HOME").unwrap_or_default();
        let owner =
            |path: &str| std::fs::metadata(path).map(|facts| (facts.uid(), facts.gid())).ok();
        let own = owner("/proc/self").or_else(|| owner(&home));
        json!({
            "env": self.options.environment,
            "directory": self.options.workspace.directory(),
            "platform": platform,
            "arch": arch,
            "pid": std::process::id(),
            "program": std::env::current_exe().ok(),
            "version": env!("CARGO_PKG_VERSION"),
            "home": home,
            "user": variable("USER").unwrap_or_default(),
            "host": variable("HOSTNAME").unwrap_or_default(),
            "temporary": temporary,
            "cores": std::thread::available_parallelism().map_or(1, usize::from),
            "uid": own.map(|(uid, _)| uid),
            "gid": own.map(|(_, gid)| gid),
        })
    }

    pub(crate) async fn perform(
        &self,
        op: &str,
        payload: Value,
        guard: Option<Arc<dyn Guard>>,
    ) -> Done {
        if let Some(op) = op.strip_prefix("fs.") {
            return self.file(op, &payload, guard.as_deref()).await;
        }
        match op {
            "sleep" => {
                let ms = payload["ms"].as_f64().unwrap_or_default();
                tokio::time::sleep(milliseconds(ms).unwrap_or_default()).await;
                Ok(Value::Null)
            }
            "ask" => self.asked(&payload, guard.as_deref()).await,
            "run" => self.run(&payload, guard.as_deref()).await,
            "fetch" => self.fetch(&payload, guard.as_deref()).await,
            "client" => {
                let name = payload["name"].as_str().unwrap_or_default();
                let answer = match &self.options.client {
                    Some(client) => client.call(name, payload["input"].clone()).await,
                    None => None,
                };
                let absent =
                    || HostError::from(format!("client.{name} is not available in Toolwright"));
                Ok(answer.ok_or_else(absent)??)
            }
            "which" => {
                let name = payload["name"].as_str().unwrap_or_default();
                Ok(json!(self.program(name)))
            }
            "tool" => {
                let guard = guard.ok_or_else(nobody)?;
                let name = payload["name"].as_str().unwrap_or_default();
                Ok(guard.call_tool(name, payload["input"].clone()).await?)
            }
            _ => Err(HostError::from(format!("the host does not know {op}"))),
        }
    }

    /// A question in a script's own words.
    async fn asked(&self, payload: &Value, guard: Option<&dyn Guard>) -> Done {
        let permission = payload["permission"].as_str().unwrap_or("custom").to_owned();
        let patterns = payload["patterns"].as_array().cloned().unwrap_or_default();
        let patterns: Vec<&str> = patterns.iter().filter_map(Value::as_str).collect();
        let patterns = if patterns.is_empty() { vec!["*"] } else { patterns };
        let summary = format!("{permission}: {}", patterns.join(", "));
        let access = |pattern: &str| Access::Custom {
            permission: permission.clone(),
            pattern: pattern.to_owned(),
            read_only: false,
        };
        let accesses = patterns.into_iter().map(access).collect();
        drop(ask(guard, Plan::new(summary, accesses)).await?);
        Ok(Value::Null)
    }

    fn program(&self, name: &str) -> Option<PathBuf> {
        let path = self.options.environment.get("PATH")?;
        toolwright_proc::find_program(name, path.as_ref(), &|_| false)
    }

    /// Whether a file lies with the scripts themselves.
    fn is_own(&self, path: &Path) -> bool {
        self.options.own_folders.iter().any(|folder| path.starts_with(folder))
    }

    async fn may_read(
        &self,
        path: &Path,
        extent: Extent,
        guard: Option<&dyn Guard>,
    ) -> Result<(), HostError> {
        if self.is_own(path) {
            return Ok(());
        }
        let summary = format!("read {}", self.workspace().relative(path));
        let access = Access::Read { path: path.to_owned(), extent };
        ask(guard, Plan::new(summary, vec![access])).await.map(drop)
    }

    async fn may_write(
        &self,
        paths: &[&Path],
        what: &str,
        guard: Option<&dyn Guard>,
    ) -> Result<Permit, HostError> {
        let named: Vec<String> = paths.iter().map(|p| self.workspace().relative(p)).collect();
        let access = |path: &&Path| Access::Write {
            path: (*path).to_owned(),
            diff: format!("{what} {}", self.workspace().relative(path)),
        };
        let accesses = paths.iter().map(access).collect();
        ask(guard, Plan::new(format!("{what} {}", named.join(", ")), accesses)).await
    }
}

/// A time as scripts give it; nothing where it is none.
fn milliseconds(ms: f64) -> Option<Duration> {
    Duration::try_from_secs_f64(ms / 1000.0).ok()
}

fn nobody() -> HostError {
    let message = "nothing outside the script can be reached while nobody calls it".to_owned();
    HostError::coded("EACCES", message)
}

async fn ask(guard: Option<&dyn Guard>, plan: Plan) -> Result<Permit, HostError> {
    let guard = guard.ok_or_else(nobody)?;
    guard.ask(plan).await.map_err(|message| HostError::coded("EACCES", message))
}
