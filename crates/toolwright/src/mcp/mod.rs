//! MCP servers as people have configured them, and what they need of us: a place for tokens, the
//! session's model, the words of a prompt.

mod model;
mod vault;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use toolwright_config::{Config, McpKind, McpSandbox, McpSandboxWord, McpSettings, OauthSetting};
use toolwright_llm::Content;
use toolwright_mcp::{
    Launch, Oauth, OauthSpec, Options, Reach, RemoteKind, Sandboxes, ServerSpec, ServerState,
    Servers, USUAL_TIMEOUT, Vault, without_keys,
};
use toolwright_proc::sandbox::Network;
use toolwright_tool::{FittedImage, ImageLimits, Outputs, Plan, Workspace, fit_media};

use crate::auth::Credentials;
use crate::commands::FILE_CAP_BYTES;
use crate::planning::Handover;
use crate::sandbox::Protection;
use crate::secrets;

pub(crate) use model::SessionModel;
pub(crate) use vault::{TokenVault, tokens_in};

/// How long the first prompt waits for servers that it can do without.
pub(crate) const PATIENCE: Duration = Duration::from_millis(300);

/// Bytes of what one server says about its use that the model is told.
const INSTRUCTIONS_CAP_BYTES: usize = 2 << 10;

/// All that are configured, none of them started. Fails with words for whoever wrote the settings.
pub(crate) fn servers(
    config: &mut Config,
    workspace: &Workspace,
    credentials: Credentials,
    protection: &Protection,
) -> Result<Servers, String> {
    if config.settings.mcp.is_empty() {
        return Ok(Servers::new(Options::default()));
    }
    let usual = config.settings.experimental.mcp_timeout.map(Duration::from_millis);
    let mut specs = Vec::new();
    let mut warnings = Vec::new();
    for (name, settings) in &config.settings.mcp {
        let origin = config.mcp_origins.get(name).map(|origin| origin.path.display().to_string());
        let Some(origin) = origin else {
            warnings.push(format!("mcp.{name}: no file says what this server is; it is left out"));
            continue;
        };
        let launch = launch(settings, workspace.directory())
            .map_err(|problem| format!("{origin}: mcp.{name}: {problem}"))?;
        specs.push(ServerSpec {
            name: name.clone(),
            launch,
            enabled: settings.enabled.unwrap_or(true),
            required: settings.required,
            timeout: settings
                .timeout
                .map(Duration::from_millis)
                .or(usual)
                .filter(|timeout| !timeout.is_zero())
                .unwrap_or(USUAL_TIMEOUT),
            origin,
        });
    }
    config.warnings.append(&mut warnings);
    let withheld = secrets::key_variables(&config.settings).map(str::to_owned).collect();
    let vault: Arc<dyn Vault> = Arc::new(TokenVault::new(credentials));
    let roots = vec![workspace.directory().to_owned()];
    let sandboxes = Sandboxes {
        fenced: protection.with_network(Network::On),
        offline: protection.with_network(Network::Off),
        drawn_from: config.value.get("sandbox").cloned().unwrap_or_default(),
    };
    Ok(Servers::new(Options {
        servers: specs,
        roots,
        withheld,
        vault: Some(vault),
        sandboxes: Some(sandboxes),
    }))
}

fn launch(settings: &McpSettings, directory: &Path) -> Result<Launch, String> {
    let McpSettings { kind, command, cwd, environment, url, headers, oauth, sandbox, .. } =
        settings;
    let kind = match (kind, command, url) {
        (Some(kind), _, _) => *kind,
        (None, Some(_), Some(_)) => {
            return Err("it has both \"command\" and \"url\"; keep one of them".to_owned());
        }
        (None, Some(_), None) => McpKind::Local,
        (None, None, _) => McpKind::Remote,
    };
    if kind == McpKind::Local {
        let command = command.clone().filter(|words| words.iter().any(|word| !word.is_empty()));
        let command = command.ok_or("a local server needs \"command\": [\"program\", …]")?;
        let directory =
            cwd.as_ref().map_or_else(|| directory.to_owned(), |own| directory.join(own));
        let reach = match sandbox {
            None | Some(McpSandbox::Switch(false)) => Reach::Free,
            Some(McpSandbox::Switch(true)) => Reach::Fenced,
            Some(McpSandbox::Word(McpSandboxWord::Offline)) => Reach::Offline,
        };
        return Ok(Launch::Local { command, directory, environment: environment.clone(), reach });
    }
    if sandbox.is_some_and(|sandbox| sandbox != McpSandbox::Switch(false)) {
        return Err("\"sandbox\" is for servers that run here; this one is remote".to_owned());
    }
    let url = url.clone().ok_or("a remote server needs \"url\"")?;
    if !url.starts_with("http://") && !url.starts_with("https://") {
        let shown = without_keys(&url);
        return Err(format!("{shown:?} is no address: it must begin with http:// or https://"));
    }
    let oauth = match oauth {
        Some(OauthSetting::Switch(false)) => Oauth::Off,
        None | Some(OauthSetting::Switch(true)) => Oauth::On(OauthSpec::default()),
        Some(OauthSetting::With(own)) => Oauth::On(OauthSpec {
            client_id: own.client_id.clone(),
            client_secret: own.client_secret.clone(),
            scope: own.scope.clone(),
            callback_port: own.callback_port,
            redirect_uri: own.redirect_uri.clone(),
        }),
    };
    let kind = if kind == McpKind::Sse { RemoteKind::Sse } else { RemoteKind::Find };
    Ok(Launch::Remote { url, headers: headers.clone(), oauth, kind })
}

/// What a person should know about servers before the first prompt.
pub(crate) fn notices(servers: &Servers) -> Vec<String> {
    let notice = |status: toolwright_mcp::ServerStatus| {
        let name = &status.name;
        let reason = status.reason.clone().unwrap_or_default();
        match status.state {
            ServerState::Connected | ServerState::Disabled => None,
            ServerState::Starting => {
                Some(format!("the MCP server {name} is still starting; its tools will come later"))
            }
            ServerState::NeedsAuth => Some(format!("the MCP server {name} is not used: {reason}")),
            ServerState::Failed => {
                let last: Vec<_> = status.last_words.iter().rev().take(3).rev().collect();
                let words: String = last.iter().map(|line| format!("\n    {line}")).collect();
                Some(format!("the MCP server {name} does not work: {reason}{words}"))
            }
        }
    };
    servers.status().into_iter().filter_map(notice).collect()
}

/// The system prompt with what connected servers say about their use.
pub(crate) fn with_instructions(system: String, servers: &Servers) -> String {
    let all = servers.instructions();
    if all.is_empty() {
        return system;
    }
    let mut out = format!("{system}\n\n<mcp_instructions>");
    for (name, words) in all {
        let mut end = words.len().min(INSTRUCTIONS_CAP_BYTES);
        while !words.is_char_boundary(end) {
            end -= 1;
        }
        out.push_str(&format!("\n<server name=\"{name}\">\n{}\n</server>", words[..end].trim()));
    }
    out.push_str("\n</mcp_instructions>");
    out
}

impl Handover {
    /// What `@server:uri` in a person's own words stands for, as further content, as far as it may be
    /// looked at; and what could not be had.
    pub async fn resources(
        &self,
        words: &str,
        cancel: &CancellationToken,
    ) -> (Vec<Content>, Vec<String>) {
        let servers = &self.bench.mcp;
        let names: Vec<String> = servers.status().into_iter().map(|status| status.name).collect();
        let (mut found, mut problems) = (Vec::new(), Vec::new());
        let mut seen = Vec::new();
        for (server, uri) in mentions(words, &names) {
            if seen.contains(&(server, uri)) {
                continue;
            }
            seen.push((server, uri));
            match self.resource(server, uri, cancel).await {
                Ok(content) => found.extend(content),
                Err(problem) => problems.push(format!("@{server}:{uri}: {problem}")),
            }
        }
        (found, problems)
    }

    async fn resource(
        &self,
        server: &str,
        uri: &str,
        cancel: &CancellationToken,
    ) -> Result<Vec<Content>, String> {
        let access = toolwright_mcp::resource_access(server, uri);
        self.ask(Plan::new(format!("attach {server}:{uri}"), vec![access])).await?;
        let outputs = Outputs::new(&self.outputs).masking(self.bench.secrets().clone());
        let output = self.bench.mcp.resource(server, uri, &outputs, cancel).await?;
        let words = outputs.secrets().mask(&output.output).into_owned();
        let size = words.len();
        if size as u64 > FILE_CAP_BYTES {
            return Ok(vec![Content::text(format!(
                "({server}:{uri} has {size} bytes: read it with read_mcp_resource.)"
            ))]);
        }
        let mut content = vec![Content::text(format!(
            "<resource server=\"{server}\" uri=\"{uri}\">\n{words}\n</resource>"
        ))];
        content.extend(fitted(output.attachments.into_iter().map(Content::Media).collect()).await);
        Ok(content)
    }
}

/// Content of others with what models take: the rest becomes notes.
pub(crate) async fn fitted(content: Vec<Content>) -> Vec<Content> {
    let mut fit = Vec::new();
    for part in content {
        let Content::Media(media) = part else {
            fit.push(part);
            continue;
        };
        match fit_media(media, ImageLimits::default()).await {
            Ok(FittedImage { media, note }) => {
                fit.push(Content::Media(media));
                fit.extend(note.map(Content::text));
            }
            Err(note) => fit.push(Content::text(note)),
        }
    }
    fit
}

/// Each `@server:uri` of a text whose server is known.
fn mentions<'a>(text: &'a str, names: &'a [String]) -> Vec<(&'a str, &'a str)> {
    let word = |word: &'a str| {
        let rest = word.strip_prefix('@')?;
        let of = |name: &'a String| Some((name.as_str(), rest.strip_prefix(name.as_str())?));
        let (name, uri) = names
            .iter()
            .filter_map(of)
            .find_map(|(name, rest)| rest.strip_prefix(':').map(|uri| (name, uri)))?;
        let uri = uri.trim_end_matches([',', '.', ';', '!', '?', ')', '"']);
        (!uri.is_empty()).then_some((name, uri))
    };
    text.split_whitespace().filter_map(word).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_known_servers_are_mentioned() {
        let names = ["docs".to_owned(), "a b".to_owned()];
        let text =
            "See @docs:note://1, and @docs: or me@docs:x or @other:y (not) @docs:file:///a.b.";
        assert_eq!(mentions(text, &names), [("docs", "note://1"), ("docs", "file:///a.b")]);
    }

    #[test]
    fn what_does_not_go_together_is_named() {
        let of = |value: serde_json::Value| {
            launch(&serde_json::from_value(value).unwrap(), Path::new("/work"))
        };
        use serde_json::json;
        for (value, expected) in [
            (json!({"command": ["a"], "url": "http://b"}), "both"),
            (json!({"type": "local"}), "needs \"command\""),
            (json!({"type": "local", "command": []}), "needs \"command\""),
            (json!({"type": "remote"}), "needs \"url\""),
            (json!({"type": "remote", "url": "ftp://x"}), "http://"),
            (json!({"url": "http://x", "sandbox": true}), "this one is remote"),
        ] {
            let problem = of(value.clone()).unwrap_err();
            assert!(problem.contains(expected), "{value}: {problem}");
        }
        let local = of(json!({"command": ["a", "b"], "cwd": "sub"})).unwrap();
        assert!(
            matches!(local, Launch::Local { directory, .. } if directory == Path::new("/work/sub"))
        );
        for (value, expected) in [
            (json!(true), Reach::Fenced),
            (json!("offline"), Reach::Offline),
            (json!(false), Reach::Free),
        ] {
            let local = of(json!({"command": ["a"], "sandbox": value})).unwrap();
            assert!(matches!(local, Launch::Local { reach, .. } if reach == expected), "{local:?}");
        }
        let sse = of(json!({"type": "sse", "url": "http://x/", "oauth": false})).unwrap();
        assert!(matches!(sse, Launch::Remote { kind: RemoteKind::Sse, oauth: Oauth::Off, .. }));
    }
}
