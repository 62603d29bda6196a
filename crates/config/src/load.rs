//! All sources together, from the outermost to the innermost.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;
use toolwright_permission::{Action, Layer, LayerKind};

use crate::file::{self, ConfigError};
use crate::folders::{ConfigFolder, PLUGIN_FOLDERS, TOOL_FOLDERS};
use crate::hooks::{CommandHook, Found, HookSettings};
use crate::mcp::{self, McpOrigin};
use crate::paths::Paths;
use crate::permission::wrong_example;
use crate::sandbox::{self, SandboxSettings};
use crate::settings::{AgentSettings, CommandSettings, Settings, switched};
use crate::texts::{self, Text};

/// Looks up a variable; passed in so that tests need not change the process's own environment.
pub type Environment<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Keys of a project's own file that are honoured before its folder is trusted. None of them can
/// run something, send something elsewhere or loosen a rule.
const HARMLESS_KEYS: &[&str] = &[
    "$schema",
    "permission",
    "tools",
    "tool_output",
    "compaction",
    "username",
    "theme",
    "layout",
    "steps",
    "serial_tools",
    "tool_cache",
    "tool_timeout",
    "share",
    "logLevel",
    "sandbox",
];

/// Of those, what would reach beyond the folder: outputs of all sessions are kept for as long.
const REACHING_OUT: &[(&str, &str)] =
    &[("tool_output", "retention_days"), ("tool_output", "retention_bytes")];

/// Variables that name a file of the user's.
const NAMING: [&str; 2] = ["OPENCODE_CONFIG", "TOOLWRIGHT_CONFIG"];

/// One place that settings came from.
#[derive(Debug, Clone)]
pub struct Source {
    pub path: PathBuf,
    pub kind: LayerKind,
}

/// What all files together say.
#[derive(Debug, Clone)]
pub struct Config {
    pub settings: Settings,
    /// The merged value, as read.
    pub value: Value,
    pub sources: Vec<Source>,
    /// Rules by layer; the agent's are added by whoever chooses the agent.
    pub layers: Vec<Layer>,
    /// Those of all files, in the order in which they are run.
    pub hooks: Vec<CommandHook>,
    /// Which file each MCP server comes from.
    pub mcp_origins: BTreeMap<String, McpOrigin>,
    pub warnings: Vec<String>,
    /// For each value, by its JSON pointer, the file that said it last.
    pub origins: BTreeMap<String, PathBuf>,
    /// Files that others include with `{file:…}`.
    pub included: Vec<PathBuf>,
    /// What the folder's own files say and is not used, because nobody trusts it.
    pub left_out: Vec<LeftOut>,
    /// What those say of the sandbox who may loosen something.
    pub(crate) trusted_sandbox: Value,
    /// The sandbox as the machine's administrator wants it.
    pub(crate) managed_sandbox: Value,
}

/// What is not used of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOut {
    pub path: PathBuf,
    pub what: Vec<String>,
}

impl Config {
    /// Reads everything that applies in `directory`, a folder of the repository `worktree`.
    pub fn load(
        paths: &Paths,
        directory: &Path,
        worktree: &Path,
        trusted: bool,
        env: Environment<'_>,
    ) -> Result<Self, ConfigError> {
        let home = paths.home.display().to_string();
        let mut config = Self {
            settings: Settings::default(),
            value: Value::Object(serde_json::Map::new()),
            sources: Vec::new(),
            layers: Vec::new(),
            hooks: Vec::new(),
            mcp_origins: BTreeMap::new(),
            warnings: Vec::new(),
            origins: BTreeMap::new(),
            included: Vec::new(),
            left_out: Vec::new(),
            trusted_sandbox: Value::Object(serde_json::Map::new()),
            managed_sandbox: Value::Null,
        };
        for variable in NAMING {
            let named = env(variable).filter(|file| !file.is_empty()).map(PathBuf::from);
            if let Some(path) = named.filter(|path| !path.exists()) {
                return Err(ConfigError::NotThere { variable, path });
            }
        }
        let mut hooks = Found::default();
        for (kind, path) in candidates(paths, directory, worktree, env) {
            if path.is_dir() {
                config.add_texts(kind, path, trusted);
                continue;
            }
            let text = match crate::bounded::read_to_string(&path) {
                Ok(text) => text,
                Err(error) if is_absent(&error) => continue,
                Err(source) => return Err(ConfigError::Unreadable { path, source }),
            };
            if mcp::is_shared_file(&path) {
                config.add_servers(kind, &path, &text, trusted, env)?;
                continue;
            }
            let own = config.add(kind, &path, &text, trusted, &home, env)?;
            hooks.add(kind, &path, None, own);
        }
        // The environment is the user's: it takes back what their files say, and nobody else's.
        for (name, wrap) in [
            ("OPENCODE_CONFIG_CONTENT", false),
            ("TOOLWRIGHT_CONFIG_CONTENT", false),
            ("OPENCODE_PERMISSION", true),
            ("TOOLWRIGHT_PERMISSION", true),
        ] {
            let Some(text) = env(name).filter(|t| !t.trim().is_empty()) else { continue };
            let text = if wrap { format!("{{\"permission\":{text}}}") } else { text };
            let path = PathBuf::from(format!("${name}"));
            let own = config.add(LayerKind::User, &path, &text, trusted, &home, env)?;
            hooks.add(LayerKind::User, &path, None, own);
        }
        let claude = hooks.add_claude_files(paths, directory, worktree, trusted);
        config.sources.extend(claude.into_iter().map(|(kind, path)| Source { path, kind }));
        config.warnings.append(&mut hooks.warnings);
        config.left_out.append(&mut hooks.left_out);
        config.say_what_is_left_out(worktree);
        config.hooks = hooks.in_order();
        config.hooks.iter_mut().for_each(|hook| hook.look(directory, worktree));
        config.settings = serde_json::from_value(config.value.clone()).unwrap_or_default();
        let managed = config.managed_sandbox.get("enabled").cloned();
        config.settings.sandbox.managed = managed.and_then(|v| serde_json::from_value(v).ok());
        Ok(config)
    }

    /// Agents and commands that are files of their own, in a folder that people keep for us.
    fn add_texts(&mut self, kind: LayerKind, path: PathBuf, trusted: bool) {
        let folder = ConfigFolder { path, kind };
        let (texts, warnings) = texts::read(&folder);
        if kind == LayerKind::Project && !trusted {
            let mut what: Vec<String> =
                texts.iter().map(|text| format!("{}s", text.group)).collect();
            what.dedup();
            for (name, folders) in [("tools", TOOL_FOLDERS), ("plugins", PLUGIN_FOLDERS)] {
                if !folder.all_files(folders).is_empty() {
                    what.push(name.to_owned());
                }
            }
            if !what.is_empty() {
                self.left_out.push(LeftOut { path: folder.path, what });
            }
            return;
        }
        self.warnings.extend(warnings);
        texts.into_iter().for_each(|text| self.take_text(text));
    }

    /// One that does not fit is left out, and the others are used.
    fn take_text(&mut self, Text { group, name, path, value }: Text) {
        let problem = match group {
            "agent" => serde_json::from_value::<AgentSettings>(value.clone()).err(),
            _ => serde_json::from_value::<CommandSettings>(value.clone()).err(),
        };
        if let Some(problem) = problem {
            let path = path.display();
            self.warnings.push(format!("{path}: the {group} {name} is not used: {problem}"));
            return;
        }
        let whole = serde_json::json!({ group: { name: value } });
        self.trace(&path, &whole);
        merge(&mut self.value, whole);
    }

    /// The sandbox as it would be without files that nobody trusts: those may fence more, and what
    /// they fence is asked about all the same.
    pub fn trusted_sandbox(&self) -> SandboxSettings {
        serde_json::from_value(self.trusted_sandbox.clone()).unwrap_or_default()
    }

    /// Remembers who said what.
    fn trace(&mut self, path: &Path, value: &Value) {
        fn walk(origins: &mut BTreeMap<String, PathBuf>, at: &str, value: &Value, path: &Path) {
            match value.as_object().filter(|map| !map.is_empty()) {
                Some(map) => {
                    for (key, inner) in map {
                        let key = key.replace('~', "~0").replace('/', "~1");
                        walk(origins, &format!("{at}/{key}"), inner, path);
                    }
                }
                None => {
                    // What stood below is no longer there.
                    let below = format!("{at}/");
                    origins.retain(|known, _| !known.starts_with(&below));
                    origins.insert(at.to_owned(), path.to_owned());
                }
            }
        }
        if value.as_object().is_some_and(|map| !map.is_empty()) {
            walk(&mut self.origins, "", value, path);
        }
    }

    /// Takes over what a file says, except its hooks: those of all files count, in an order of
    /// their own.
    fn add(
        &mut self,
        kind: LayerKind,
        path: &Path,
        text: &str,
        trusted: bool,
        home: &str,
        env: Environment<'_>,
    ) -> Result<HookSettings, ConfigError> {
        let untrusted = kind == LayerKind::Project && !trusted;
        let mut parsed = file::parse(path, text, (!untrusted).then_some(env))?;
        self.included.append(&mut parsed.included);
        if let Some((place, message)) = wrong_example(&parsed.settings, home) {
            return Err(file::invalid_at(path, text, &place, message));
        }
        self.warnings.append(&mut parsed.warnings);
        place_plugins(&mut parsed.value, path);
        modes_are_agents(&mut parsed.value);
        let mut rules = switched(&parsed.settings.tools);
        rules.extend(parsed.settings.permission.map_or(Vec::new(), |p| p.rules(home)));
        if untrusted {
            let dropped = drop_untrusted(&mut parsed.value);
            let loosening = rules.iter().any(|r| r.action == Action::Allow);
            rules.retain(|rule| rule.action != Action::Allow);
            if !dropped.is_empty() || loosening {
                let mut what = dropped;
                if loosening {
                    what.push("permission rules that allow".to_owned());
                }
                self.left_out.push(LeftOut { path: path.to_owned(), what });
            }
        }
        if let Some(sandbox) = parsed.value.get("sandbox").filter(|_| !untrusted) {
            let mut own = serde_json::json!({ "sandbox": sandbox });
            if kind != LayerKind::Managed {
                sandbox::keep_managed(&mut own, &self.managed_sandbox);
            }
            merge(&mut self.trusted_sandbox, own["sandbox"].take());
        }
        if !rules.is_empty() {
            self.layers.push(Layer { kind, origin: path.display().to_string(), rules });
        }
        self.take_over(kind, path, parsed.value);
        Ok(parsed.settings.hooks.filter(|_| !untrusted).unwrap_or_default())
    }
}

/// The older word for agents that people talk to.
fn modes_are_agents(value: &mut Value) {
    let Some(Value::Object(modes)) = value.as_object_mut().and_then(|v| v.shift_remove("mode"))
    else {
        return;
    };
    for (name, mut own) in modes {
        if let Some(own) = own.as_object_mut() {
            own.insert("mode".to_owned(), "primary".into());
        }
        merge(value, serde_json::json!({ "agent": { name: own } }));
    }
}

/// A plugin's path is meant as seen from the file that names it.
fn place_plugins(value: &mut Value, file: &Path) {
    let folder = file.parent().unwrap_or(Path::new("/"));
    let plugins = value.get_mut("plugin").and_then(Value::as_array_mut);
    for spec in plugins.into_iter().flatten() {
        let name = if spec.is_array() { &mut spec[0] } else { spec };
        if let Some(relative) = name.as_str().filter(|name| name.starts_with('.')) {
            *name = Value::String(folder.join(relative).display().to_string());
        }
    }
}

impl Config {
    /// The servers of a `.mcp.json`.
    fn add_servers(
        &mut self,
        kind: LayerKind,
        path: &Path,
        text: &str,
        trusted: bool,
        env: Environment<'_>,
    ) -> Result<(), ConfigError> {
        let untrusted = kind == LayerKind::Project && !trusted;
        let (value, included) = match mcp::shared_settings(path, text, (!untrusted).then_some(env))
        {
            // What is not used need not be right.
            Err(_) if untrusted => return Ok(()),
            read => read?,
        };
        self.included.extend(included);
        if untrusted && value.get("mcp").is_some() {
            let what = vec!["MCP servers".to_owned()];
            self.left_out.push(LeftOut { path: path.to_owned(), what });
            return Ok(());
        }
        self.take_over(kind, path, value);
        Ok(())
    }

    /// Puts a file's value over what is known already.
    fn take_over(&mut self, kind: LayerKind, path: &Path, mut value: Value) {
        if kind == LayerKind::Project {
            self.warnings.extend(mcp::keep_to_itself(&mut value, path));
        }
        if kind != LayerKind::Managed {
            let lifted = sandbox::keep_managed(&mut value, &self.managed_sandbox);
            if !lifted.is_empty() {
                let what = lifted.join(", ");
                let shown = path.display();
                self.warnings.push(format!(
                    "{shown}: {what}: set by this machine's administrator, so not used"
                ));
            }
        }
        let servers = value.get("mcp").and_then(Value::as_object);
        for (name, _) in servers.into_iter().flatten().filter(|(_, entry)| mcp::defines(entry)) {
            // A server that is defined again is another one: nothing of the first may stay in it.
            if let Some(known) = self.value.get_mut("mcp").and_then(Value::as_object_mut) {
                known.shift_remove(name);
            }
            let origin = McpOrigin { path: path.to_owned(), kind };
            self.mcp_origins.insert(name.clone(), origin);
        }
        self.trace(path, &value);
        merge(&mut self.value, value);
        if kind == LayerKind::Managed {
            self.managed_sandbox = self.value.get("sandbox").cloned().unwrap_or_default();
        }
        self.sources.push(Source { path: path.to_owned(), kind });
    }

    /// In one line, whatever number of files it is about.
    fn say_what_is_left_out(&mut self, worktree: &Path) {
        if self.left_out.is_empty() {
            return;
        }
        let of_file = |LeftOut { path, what }: &LeftOut| {
            let shown = path.strip_prefix(worktree).unwrap_or(path);
            format!("{} ({})", what.join(", "), shown.display())
        };
        let all: Vec<String> = self.left_out.iter().map(of_file).collect();
        self.warnings.push(format!(
            "{}: this folder is not trusted, so these are not used: {}. Look at them, then: tw trust (or pass --trust for one run).",
            worktree.display(),
            all.join("; ")
        ));
    }
}

/// A path below something that is no folder is absent too.
pub(crate) fn is_absent(error: &std::io::Error) -> bool {
    matches!(error.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory)
}

fn drop_untrusted(value: &mut Value) -> Vec<String> {
    let Some(object) = value.as_object_mut() else { return Vec::new() };
    let mut dropped: Vec<String> =
        object.keys().filter(|key| !HARMLESS_KEYS.contains(&key.as_str())).cloned().collect();
    object.retain(|key, _| HARMLESS_KEYS.contains(&key.as_str()));
    dropped.extend(sandbox::only_tightening(object));
    for (key, inner) in REACHING_OUT {
        let group = object.get_mut(*key).and_then(Value::as_object_mut);
        if group.is_some_and(|group| group.shift_remove(*inner).is_some()) {
            dropped.push(format!("{key}.{inner}"));
        }
    }
    dropped
}

/// Every file that may hold settings, outermost first. The nearest folder wins, and within one
/// folder ours wins over OpenCode's.
pub(crate) fn candidates(
    paths: &Paths,
    directory: &Path,
    worktree: &Path,
    env: Environment<'_>,
) -> Vec<(LayerKind, PathBuf)> {
    let both = |folder: PathBuf, name: &str| {
        ["json", "jsonc"].map(|extension| folder.join(format!("{name}.{extension}")))
    };
    let mut found = Vec::new();
    let mut add = |kind, files: [PathBuf; 2]| found.extend(files.map(|file| (kind, file)));

    add(LayerKind::Managed, both(paths.managed.join("opencode"), "opencode"));
    add(LayerKind::Managed, both(paths.managed.join("toolwright"), "toolwright"));
    let shared = [paths.home.join(".mcp.json"), paths.config.join("toolwright/mcp.json")];
    add(LayerKind::User, shared);
    add(LayerKind::User, both(paths.config.join("opencode"), "config"));
    add(LayerKind::User, both(paths.config.join("opencode"), "opencode"));
    found.push((LayerKind::User, paths.config.join("opencode")));
    let mut add = |kind, files: [PathBuf; 2]| found.extend(files.map(|file| (kind, file)));
    add(LayerKind::User, both(paths.config.join("toolwright"), "toolwright"));
    found.push((LayerKind::User, paths.config.join("toolwright")));
    let named = NAMING.into_iter().filter_map(env).filter(|file| !file.is_empty());
    let named: Vec<_> = named.map(|file| (LayerKind::User, PathBuf::from(file))).collect();

    let mut folders: Vec<&Path> =
        directory.ancestors().take_while(|folder| folder.starts_with(worktree)).collect();
    folders.reverse();
    let mut project = Vec::new();
    for folder in folders {
        // In the home folder it is the user's own.
        project.extend(Some(folder.join(".mcp.json")).filter(|_| folder != paths.home));
        project.extend(both(folder.to_owned(), "opencode"));
        project.extend(both(folder.join(".opencode"), "opencode"));
        project.push(folder.join(".opencode"));
        project.extend(both(folder.to_owned(), "toolwright"));
        project.extend(both(folder.join(".toolwright"), "toolwright"));
        project.push(folder.join(".toolwright"));
    }
    found.extend(named);
    found.extend(project.into_iter().map(|file| (LayerKind::Project, file)));
    found
}

fn is_added_up(key: &str) -> bool {
    matches!(key, "instructions" | "plugin") || sandbox::ADDED_UP.contains(&key)
}

/// Objects are merged key by key; `instructions`, `plugin` and the sandbox's lists are added up;
/// everything else is replaced.
fn merge(into: &mut Value, from: Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (key, value) in from {
                match into.get_mut(&key) {
                    Some(Value::Array(list)) if is_added_up(&key) => {
                        let added = value.as_array().cloned().unwrap_or_default();
                        let new: Vec<_> = added.into_iter().filter(|v| !list.contains(v)).collect();
                        list.extend(new);
                    }
                    Some(existing) => merge(existing, value),
                    None => {
                        into.insert(key, value);
                    }
                }
            }
        }
        (into, from) => *into = from,
    }
}
