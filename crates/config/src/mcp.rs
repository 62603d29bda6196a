//! MCP servers as people configure them: OpenCode's `mcp` section, and the `.mcp.json` of others.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use toolwright_permission::LayerKind;

use crate::file::{self, ConfigError, Document};
use crate::load::Environment;

/// One entry of the `mcp` section. Which fields belong together is checked when all files are read,
/// because one file may turn off what another has defined.
#[derive(Debug, Clone, PartialEq, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub struct McpSettings {
    #[serde(rename = "type")]
    pub kind: Option<McpKind>,
    pub command: Option<Vec<String>>,
    pub cwd: Option<String>,
    pub environment: BTreeMap<String, String>,
    pub url: Option<String>,
    pub headers: BTreeMap<String, String>,
    pub oauth: Option<OauthSetting>,
    pub enabled: Option<bool>,
    /// Milliseconds until it must be ready, and between two signs of life of a call.
    pub timeout: Option<u64>,
    /// Whether the first prompt waits for it, and does not begin without it.
    pub required: bool,
    /// Whether a local server runs in the sandbox of commands: with a network, or `"offline"`.
    pub sandbox: Option<McpSandbox>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "expected true, false or \"offline\"")]
pub enum McpSandbox {
    Switch(bool),
    Word(McpSandboxWord),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum McpSandboxWord {
    Offline,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum McpKind {
    #[serde(alias = "stdio")]
    Local,
    #[serde(alias = "http", alias = "streamable-http", alias = "streamableHttp")]
    Remote,
    /// The older way over HTTP, where people say so.
    Sse,
}

#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "expected false or an object with clientId, scope and the like")]
pub enum OauthSetting {
    Switch(bool),
    With(OauthSettings),
}

#[derive(Debug, Clone, PartialEq, Default, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct OauthSettings {
    pub client_id: Option<String>,
    pub client_secret: Option<String>,
    pub scope: Option<String>,
    pub callback_port: Option<u16>,
    pub redirect_uri: Option<String>,
}

/// Where a server was defined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct McpOrigin {
    pub path: PathBuf,
    pub kind: LayerKind,
}

/// Variables that decide which code runs in a child, or whom it believes. What a project brings along
/// may start a server that its owner trusts; it may not reach into other programs through it.
const REACHING_VARIABLES: &[&str] = &[
    "PATH",
    "HOME",
    "SHELL",
    "IFS",
    "ENV",
    "BASH_ENV",
    "CDPATH",
    "NODE_OPTIONS",
    "NODE_PATH",
    "NODE_EXTRA_CA_CERTS",
    "NODE_TLS_REJECT_UNAUTHORIZED",
    "PYTHONPATH",
    "PYTHONHOME",
    "PYTHONSTARTUP",
    "PYTHONINSPECT",
    "RUBYOPT",
    "RUBYLIB",
    "PERL5OPT",
    "PERL5LIB",
    "PERL5DB",
    "JAVA_TOOL_OPTIONS",
    "JDK_JAVA_OPTIONS",
    "_JAVA_OPTIONS",
    "CLASSPATH",
    "DOTNET_STARTUP_HOOKS",
    "PHPRC",
    "PHP_INI_SCAN_DIR",
    "LUA_INIT",
    "R_PROFILE_USER",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "GIT_SSH",
    "GIT_SSH_COMMAND",
    "GIT_ASKPASS",
    "GIT_EXEC_PATH",
    "SSH_ASKPASS",
    "EDITOR",
    "VISUAL",
    "PAGER",
];
const REACHING_PREFIXES: &[&str] =
    &["LD_", "DYLD_", "NPM_CONFIG_", "UV_", "PIP_", "GIT_CONFIG", "TOOLWRIGHT_"];

/// Whether a project's own configuration must leave this variable alone.
pub fn reaches_beyond(variable: &str) -> bool {
    let name = variable.to_uppercase();
    REACHING_VARIABLES.contains(&name.as_str())
        || REACHING_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

/// Takes such variables out of the servers of a project's file, and says which.
pub(crate) fn keep_to_itself(value: &mut Value, path: &Path) -> Vec<String> {
    let mut warnings = Vec::new();
    let servers = value.get_mut("mcp").and_then(Value::as_object_mut);
    for (name, server) in servers.into_iter().flatten() {
        let environment = server.get_mut("environment").and_then(Value::as_object_mut);
        let Some(environment) = environment else { continue };
        let refused: Vec<String> =
            environment.keys().filter(|key| reaches_beyond(key)).cloned().collect();
        environment.retain(|key, _| !refused.contains(key));
        if !refused.is_empty() {
            warnings.push(format!(
                "{}: mcp.{name}.environment: a project cannot set {}; set it in your own configuration if the server needs it",
                path.display(),
                refused.join(", ")
            ));
        }
    }
    warnings
}

/// Whether an entry says what a server is, and not only whether it is used.
pub(crate) fn defines(entry: &Value) -> bool {
    ["type", "command", "url"].iter().any(|key| entry.get(key).is_some())
}

/// A `.mcp.json`, as other programs write it.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct SharedFile {
    #[serde(rename = "mcpServers", alias = "servers")]
    servers: BTreeMap<String, SharedServer>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct SharedServer {
    #[serde(rename = "type")]
    kind: Option<McpKind>,
    command: Option<String>,
    args: Vec<String>,
    env: BTreeMap<String, String>,
    cwd: Option<String>,
    url: Option<String>,
    headers: BTreeMap<String, String>,
    disabled: bool,
    timeout: Option<u64>,
}

pub(crate) fn is_shared_file(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name == ".mcp.json" || name == "mcp.json")
}

/// The settings that a `.mcp.json` stands for, and the files whose texts stand in it. Without `env` nothing is
/// filled in.
pub(crate) fn shared_settings(
    path: &Path,
    text: &str,
    env: Option<Environment<'_>>,
) -> Result<(Value, Vec<PathBuf>), ConfigError> {
    let Document { settings: file, included, .. } = file::read::<SharedFile>(path, text, env)?;
    let fill = |text: String| env.map_or_else(|| text.clone(), |env| expand(&text, env));
    let filled = |map: BTreeMap<String, String>| -> Map<String, Value> {
        map.into_iter().map(|(key, value)| (key, Value::String(fill(value)))).collect()
    };
    let entry = |(name, server): (String, SharedServer)| {
        let SharedServer { kind, command, args, env, cwd, url, headers, disabled, timeout } =
            server;
        let mut entry = Map::new();
        let kind = match kind {
            Some(McpKind::Sse) => Some("sse"),
            Some(McpKind::Remote) => Some("remote"),
            Some(McpKind::Local) => Some("local"),
            None => None,
        };
        if let Some(kind) = kind {
            entry.insert("type".into(), kind.into());
        }
        if let Some(command) = command {
            let words = std::iter::once(command).chain(args).map(fill);
            entry.insert("command".into(), words.collect());
            entry.insert("environment".into(), filled(env).into());
        }
        if let Some(url) = url {
            entry.insert("url".into(), fill(url).into());
            entry.insert("headers".into(), filled(headers).into());
        }
        if let Some(cwd) = cwd {
            entry.insert("cwd".into(), fill(cwd).into());
        }
        if disabled {
            entry.insert("enabled".into(), false.into());
        }
        if let Some(timeout) = timeout {
            entry.insert("timeout".into(), timeout.into());
        }
        (name, Value::Object(entry))
    };
    let servers: Map<String, Value> = file.servers.into_iter().map(entry).collect();
    let value = if servers.is_empty() { json!({}) } else { json!({ "mcp": servers }) };
    Ok((value, included))
}

/// Replaces `${NAME}` and `${NAME:-otherwise}`, as `.mcp.json` files have it.
fn expand(text: &str, env: Environment<'_>) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        out.push_str(before);
        let Some((inner, behind)) = after.split_once('}') else {
            out.push_str("${");
            rest = after;
            continue;
        };
        let (name, otherwise) = inner.split_once(":-").unwrap_or((inner, ""));
        out.push_str(&env(name).unwrap_or_else(|| otherwise.to_owned()));
        rest = behind;
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
#[path = "mcp_tests.rs"]
mod tests;
