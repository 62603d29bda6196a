//! A file with tools or a plugin: what it offers, remembered by its content, and calls to it.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::host::{Guard, Host};
use crate::patience::Limit;
use crate::realm::{Aside, CallTerms, Realm, ScriptError};

/// How long a file may take to say what it offers. Some plugins run dozens of commands first.
const DESCRIBE_LIMIT: Duration = Duration::from_secs(30);

/// Raised when what is remembered would be misread.
const CACHE_VERSION: u32 = 2;

/// What a file offers.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Described {
    pub tools: Vec<Definition>,
    /// The hooks of a plugin, by name.
    #[serde(default)]
    pub hooks: Vec<String>,
    /// What of it cannot be used, and why.
    pub problems: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Definition {
    pub name: String,
    pub description: String,
    pub parameters: Value,
}

/// What a plugin makes of the settings.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub struct Configured {
    pub settings: Value,
    pub problems: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Tools,
    Plugin,
}

#[derive(Serialize, Deserialize)]
struct Remembered {
    version: u32,
    /// Every file that was read, with the hash of its content.
    files: Vec<(PathBuf, String)>,
    described: Described,
}

pub struct Script {
    path: PathBuf,
    kind: Kind,
    host: Arc<Host>,
    /// What plugins are told about where they are.
    surroundings: Value,
    options: Value,
    realm: Mutex<Option<Arc<Realm>>>,
}

impl Script {
    /// Nothing is read or started before it is needed.
    pub fn new(path: &Path, kind: Kind, host: Arc<Host>) -> Self {
        let workspace = host.workspace();
        let surroundings = json!({
            "directory": workspace.directory(),
            "worktree": workspace.worktree(),
            "project": { "id": workspace.worktree(), "worktree": workspace.worktree() },
        });
        let path = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        Self { path, kind, host, surroundings, options: Value::Null, realm: Mutex::default() }
    }

    /// What its user configured for it.
    pub fn with_options(mut self, options: Value) -> Self {
        self.options = options;
        self
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn host(&self) -> &Arc<Host> {
        &self.host
    }

    fn stem(&self) -> String {
        self.path.file_stem().map(|s| s.to_string_lossy().into_owned()).unwrap_or_default()
    }

    /// What it offers. With a folder for it, that is remembered: a file that is as it was is not run.
    pub async fn describe(
        &self,
        memory: Option<&Path>,
        guard: Option<Arc<dyn Guard>>,
    ) -> Result<Described, ScriptError> {
        let kept_in = memory.map(|folder| {
            let mark = match self.kind {
                Kind::Tools => "tools",
                Kind::Plugin => "plugin",
            };
            let key = format!("{mark} {} {}", self.path.display(), self.options);
            memory_file(folder, &key)
        });
        if let Some(described) = kept_in.as_deref().and_then(remembered) {
            return Ok(described);
        }
        let kind = match self.kind {
            Kind::Tools => "describeTools",
            Kind::Plugin => "describePlugin",
        };
        let limit = Limit::Whole(DESCRIBE_LIMIT);
        let terms = CallTerms { guard, limit, cancel: CancellationToken::new() };
        let (result, _) = self.call(kind, json!({}), terms).await;
        let described: Described = serde_json::from_value(result?)
            .map_err(|e| ScriptError::Thrown { message: e.to_string(), code: None })?;
        if let (Some(file), Some(realm)) = (kept_in, self.present()) {
            let files = realm.loaded().into_iter().map(|(path, file)| (path, file.hash)).collect();
            let described = described.clone();
            remember(&file, &Remembered { version: CACHE_VERSION, files, described });
        }
        Ok(described)
    }

    /// Forgets what runs: tools that were only looked at need no engine until they are called.
    pub fn rest(&self) {
        *self.realm.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    fn present(&self) -> Option<Arc<Realm>> {
        self.realm.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The engine that runs it; a new one where the last was stopped.
    fn realm(&self) -> Result<Arc<Realm>, ScriptError> {
        let mut realm = self.realm.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(alive) = realm.as_ref().filter(|realm| !realm.is_dead()) {
            return Ok(Arc::clone(alive));
        }
        let started =
            Arc::new(Realm::start(Arc::clone(&self.host), self.path.parent().map(Path::to_owned))?);
        *realm = Some(Arc::clone(&started));
        Ok(started)
    }

    pub(crate) async fn call(
        &self,
        kind: &'static str,
        mut payload: Value,
        terms: CallTerms,
    ) -> (Result<Value, ScriptError>, Aside) {
        payload["path"] = json!(self.path);
        payload["file"] = json!(self.stem());
        payload["options"] = self.options.clone();
        payload["surroundings"] = self.surroundings.clone();
        loop {
            let realm = match self.realm() {
                Ok(realm) => realm,
                Err(problem) => return (Err(problem), Aside::default()),
            };
            // One that ended meanwhile is replaced by the next.
            if let Some(done) = realm.call(kind, &payload, &terms).await {
                return done;
            }
        }
    }

    /// One of its tools, with what the tool is told about the call.
    pub async fn call_tool(
        &self,
        name: &str,
        arguments: Value,
        context: Value,
        terms: CallTerms,
    ) -> Result<Value, ScriptError> {
        self.call_tool_aside(name, arguments, context, terms).await.0
    }

    pub(crate) async fn call_tool_aside(
        &self,
        name: &str,
        arguments: Value,
        context: Value,
        terms: CallTerms,
    ) -> (Result<Value, ScriptError>, Aside) {
        let kind = match self.kind {
            Kind::Tools => "callTool",
            Kind::Plugin => "callPluginTool",
        };
        let payload = json!({ "name": name, "args": arguments, "context": context });
        self.call(kind, payload, terms).await
    }

    /// What a plugin makes of the settings that its host shows, and the models that it brings.
    pub async fn configure(
        &self,
        guard: Option<Arc<dyn Guard>>,
        deadline: Duration,
    ) -> Result<Configured, ScriptError> {
        let limit = Limit::Whole(deadline);
        let terms = CallTerms { guard, limit, cancel: CancellationToken::new() };
        let given = self.call("configure", json!({}), terms).await.0?;
        serde_json::from_value(given)
            .map_err(|e| ScriptError::Thrown { message: e.to_string(), code: None })
    }

    /// A plugin's hook: what it makes of `output`.
    pub async fn hook(
        &self,
        name: &str,
        input: &Value,
        output: &Value,
        guard: Option<Arc<dyn Guard>>,
        limit: Limit,
    ) -> Result<Value, ScriptError> {
        let payload = json!({ "name": name, "input": input, "output": output });
        let terms = CallTerms { guard, limit, cancel: CancellationToken::new() };
        self.call("callHook", payload, terms).await.0
    }
}

/// What a single file said, if it is still the same.
pub(crate) fn recall(folder: &Path, key: &str, content: &[u8]) -> Option<Definition> {
    let kept = std::fs::read(memory_file(folder, key)).ok()?;
    let kept: Remembered = serde_json::from_slice(&kept).ok()?;
    let same = kept.files.iter().all(|(_, hash)| *hash == blake3::hash(content).to_hex().as_str());
    kept.described.tools.into_iter().next().filter(|_| same && kept.version == CACHE_VERSION)
}

pub(crate) fn remember_one(folder: &Path, key: &str, content: &[u8], definition: &Definition) {
    let hash = blake3::hash(content).to_hex().to_string();
    let described = Described { tools: vec![definition.clone()], ..Described::default() };
    let files = vec![(PathBuf::new(), hash)];
    let what = Remembered { version: CACHE_VERSION, files, described };
    remember(&memory_file(folder, key), &what);
}

fn memory_file(folder: &Path, key: &str) -> PathBuf {
    folder.join(format!("{}.json", blake3::hash(key.as_bytes()).to_hex()))
}

fn remembered(file: &Path) -> Option<Described> {
    let kept: Remembered = serde_json::from_slice(&std::fs::read(file).ok()?).ok()?;
    let fresh = |(path, hash): &(PathBuf, String)| {
        std::fs::read(path).is_ok_and(|bytes| blake3::hash(&bytes).to_hex().as_str() == hash)
    };
    (kept.version == CACHE_VERSION && !kept.files.is_empty() && kept.files.iter().all(fresh))
        .then_some(kept.described)
}

/// What cannot be remembered is found out again the next time.
fn remember(file: &Path, what: &Remembered) {
    let Ok(text) = serde_json::to_vec(what) else { return };
    let Some(folder) = file.parent() else { return };
    let beside = file.with_extension(format!("{}.new", std::process::id()));
    let written = std::fs::create_dir_all(folder)
        .and_then(|()| std::fs::write(&beside, text))
        .and_then(|()| std::fs::rename(&beside, file));
    if written.is_err() {
        std::fs::remove_file(&beside).ok();
    }
}
